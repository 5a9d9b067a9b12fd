/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package requests

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
)

// queueTest is a queue for eight workers: at most two for one namespace, and at most four for all
// slow namespaces together. The namespaces a to d have answered quickly.
type queueTest struct {
	*Queue
	t     *testing.T
	clock *testingclock.FakeClock
	taken []Write
}

func newQueueTest(t *testing.T) *queueTest {
	clock := testingclock.NewFakeClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	q := &queueTest{Queue: NewQueue(8, clock), t: t, clock: clock}
	for _, namespace := range []string{"a", "b", "c", "d"} {
		q.answer(namespace, 0)
	}
	return q
}

// answer runs a write of the namespace that takes the given time.
func (q *queueTest) answer(namespace string, took time.Duration) {
	q.t.Helper()
	q.fill(namespace, 1)
	q.expectNext("one write", namespace+"/0")
	q.clock.Step(took)
	q.end(namespace + "/0")
}

// writeFor returns the write for a pod with the name "namespace/number".
func writeFor(node, namespace string, number int) Write {
	name := fmt.Sprintf("%s/%d", namespace, number)
	return Write{Namespace: namespace, Pod: name, Node: node, UID: types.UID(name)}
}

// fill adds writes for pods of the namespace, each on a different node.
func (q *queueTest) fill(namespace string, count int) {
	for i := range count {
		q.Set(fmt.Sprintf("%s-%d", namespace, i), "m", []Write{writeFor(fmt.Sprintf("%s-%d", namespace, i), namespace, i)})
	}
}

// expectNext takes all writes that may begin, and compares them with want.
func (q *queueTest) expectNext(why string, want ...string) {
	q.t.Helper()
	var got []string
	for {
		w, ok := q.next()
		if !ok {
			break
		}
		got = append(got, w.Pod)
		q.taken = append(q.taken, w)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		q.t.Errorf("%s (-want, +got):\n%s", why, diff)
	}
}

// end ends a write that was taken.
func (q *queueTest) end(pod string) {
	q.t.Helper()
	i := slices.IndexFunc(q.taken, func(w Write) bool { return w.Pod == pod })
	if i < 0 {
		q.t.Fatalf("%s was not taken: %v", pod, q.taken)
	}
	q.Done(q.taken[i])
	q.taken = slices.Delete(q.taken, i, i+1)
}

func (q *queueTest) expectEmpty() {
	q.t.Helper()
	if len(q.nodes)+q.line.Len() > 0 {
		q.t.Errorf("has the nodes %v, and %d writes wait", q.nodes, q.line.Len())
	}
}

// A namespace has at most its share of the workers, however many of its writes wait.
func TestNamespaceHasAShare(t *testing.T) {
	q := newQueueTest(t)
	q.fill("a", 5)
	q.expectNext("one namespace", "a/0", "a/1")
	q.fill("b", 1)
	q.expectNext("another one", "b/0")
	q.end("a/1")
	q.expectNext("after one is done", "a/2")
	q.end("a/0")
	q.end("a/2")
	q.expectNext("after two are done", "a/3", "a/4")
	q.end("b/0")
	q.end("a/3")
	q.end("a/4")
	q.expectEmpty()
}

// Namespaces take turns, each with its oldest write.
func TestNamespacesTakeTurns(t *testing.T) {
	q := newQueueTest(t)
	q.fill("a", 3)
	q.fill("b", 2)
	q.fill("c", 1)
	q.expectNext("turns", "a/0", "b/0", "c/0", "a/1", "b/1")
	q.end("a/0")
	q.fill("c", 2)
	q.expectNext("equal shares, so the oldest turn first", "a/2", "c/1")
}

// Namespaces that were slow twice have at most half of the workers together, however many they are.
// A new one has one worker until its first quick answer.
func TestSlowNamespacesHaveAShareTogether(t *testing.T) {
	q := newQueueTest(t)
	for range 2 {
		for _, namespace := range []string{"a", "b", "c"} {
			q.answer(namespace, 5*time.Second)
		}
		q.clock.Step(time.Minute) // Slow writes without this pause count once.
	}
	for _, namespace := range []string{"a", "b", "c", "new", "d"} {
		q.fill(namespace, 4)
	}
	q.expectNext("half of the workers for the slow ones", "a/0", "b/0", "c/0", "new/0", "d/0", "a/1", "d/1")
	q.end("d/0")
	q.expectNext("the others continue", "d/2")
	q.end("new/0")
	q.expectNext("a quick answer", "new/1")
	q.end("c/0")
	q.end("d/1")
	q.expectNext("the next slow one, and of two others the one that has waited for longer", "c/1", "d/3")
}

// set replaces the waiting writes of a node.
func TestSetReplacesWhatWaits(t *testing.T) {
	q := newQueueTest(t)
	q.fill("a", 2)
	q.expectNext("first", "a/0", "a/1")
	withdrawal := writeFor("n", "a", 4)
	withdrawal.Withdraw = true
	q.Set("n", "m", []Write{writeFor("n", "a", 2), writeFor("n", "a", 3), writeFor("n", "a", 4), writeFor("n", "b", 5)})
	q.Set("o", "m", []Write{writeFor("o", "a", 6)})
	q.Set("n", "m", []Write{writeFor("n", "a", 3), withdrawal})
	q.expectNext("dropped")
	q.end("a/0")
	q.end("a/1")
	q.expectNext("withdrawals are different writes and go first; the others keep their order", "a/4", "a/3")
	if !q.taken[0].Withdraw {
		t.Errorf("took %+v", q.taken[0])
	}
	q.end("a/3")
	q.expectNext("the last one", "a/6")
	q.Set("n", "m", nil)
	q.end("a/6")
	q.end("a/4")
	q.expectEmpty()
}

// A pod of which two writes are wanted keeps the place of the first one.
func TestActKeepsItsPlace(t *testing.T) {
	q := newQueueTest(t)
	q.fill("a", 2)
	q.expectNext("first", "a/0", "a/1")
	act := func(node string, number int) Write {
		w := writeFor(node, "a", number)
		w.Act = v1.MaintenanceEscalationIgnoreBudgets
		return w
	}
	writes := []Write{act("n", 2), writeFor("n", "a", 2)}
	q.Set("n", "m", writes)
	q.Set("o", "m", []Write{act("o", 3)})
	q.Set("n", "m", writes)
	q.end("a/0")
	q.end("a/1")
	q.expectNext("in order", "a/2", "a/3")
}

// At most one write for a pod runs at a time.
func TestOneWriteForAPodAtATime(t *testing.T) {
	q := newQueueTest(t)
	request, withdrawal := writeFor("n", "a", 1), writeFor("n", "a", 1)
	withdrawal.Withdraw = true
	q.Set("n", "m", []Write{request})
	q.expectNext("request", "a/1")
	q.Set("n", "m", []Write{withdrawal})
	q.expectNext("running")
	q.end("a/1")
	q.expectNext("dropped until the next sync of the node")
	q.Set("n", "m", []Write{withdrawal})
	q.expectNext("withdrawal", "a/1")
}

func TestDropRequests(t *testing.T) {
	q := newQueueTest(t)
	withdrawal := writeFor("n", "a", 3)
	withdrawal.Withdraw = true
	q.Set("n", "m", []Write{writeFor("n", "a", 1), writeFor("n", "a", 2), withdrawal})
	if q.DropRequests("o") || q.IsRequestingFor("m") {
		t.Error("nothing is running")
	}
	first, _ := q.next()
	if !first.Withdraw || q.IsRequestingFor("m") {
		t.Errorf("first write %+v, want the withdrawal, which does not count as a request", first)
	}
	w, _ := q.next()
	if !q.DropRequests("n") || !q.IsRequestingFor("m") {
		t.Error("one is running, for an unknown maintenance")
	}
	q.Decided(w, []string{"l"})
	if !q.DropRequests("n") || q.IsRequestingFor("m") || !q.IsRequestingFor("l") {
		t.Error("one is running for l")
	}
	q.Done(w)
	q.expectNext("requests were dropped")
	if q.DropRequests("n") || q.IsRequestingFor("m") {
		t.Error("a withdrawal is no request")
	}
}

// A withdrawal does not wait for the requests of its namespace.
func TestWithdrawalsGoFirst(t *testing.T) {
	q := newQueueTest(t)
	q.fill("a", 3)
	q.expectNext("the share", "a/0", "a/1")
	for _, number := range []int{7, 8} {
		withdrawal := writeFor(fmt.Sprintf("n-%d", number), "a", number)
		withdrawal.Withdraw = true
		q.Set(withdrawal.Node, "m", []Write{withdrawal})
	}
	q.end("a/0")
	q.end("a/1")
	q.expectNext("withdrawals, in their order", "a/7", "a/8")
	q.end("a/7")
	q.expectNext("then the others", "a/2")
}

// Workers wait for writes that may begin, and end when the queue shuts down.
func TestWorkersWait(t *testing.T) {
	q := newQueueTest(t)
	q.fill("a", 3)
	got := make(chan string)
	for range 3 {
		go func() {
			for {
				w, ok := q.Get()
				got <- w.Pod
				if !ok {
					return
				}
			}
		}()
	}
	first, second := <-got, <-got
	for _, pod := range []string{first, second} {
		q.Done(writeFor("a-"+pod[2:], "a", int(pod[2]-'0')))
	}
	if third := <-got; third != "a/2" {
		t.Errorf("got %s", third)
	}
	q.fill("b", 1)
	if b := <-got; b != "b/0" {
		t.Errorf("got %s", b)
	}
	q.ShutDown()
	for range 3 {
		if pod := <-got; pod != "" {
			t.Errorf("got %s", pod)
		}
	}
}

// A waiting worker is woken when a write is added and when a write ends.
func TestWaitingWorkerIsWoken(t *testing.T) {
	for name, wake := range map[string]func(*queueTest){
		"another namespace": func(q *queueTest) { q.fill("b", 1) },
		"the share is free": func(q *queueTest) { q.end("a/0") },
	} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueueTest(t)
			q.fill("a", 3)
			q.expectNext("the share", "a/0", "a/1")
			woken := false
			go func() { _, woken = q.Get() }()
			synctest.Wait()
			wake(q)
			synctest.Wait()
			if !woken {
				t.Errorf("%s: no worker was woken", name)
			}
			q.ShutDown()
		})
	}
}

// The first quick answer of a new namespace wakes all workers that may take its other writes.
func TestAllWaitingWorkersAreWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueueTest(t)
		q.fill("new", 4)
		q.expectNext("one worker", "new/0")
		var woken atomic.Int32
		for range 3 {
			go func() {
				if _, ok := q.Get(); ok {
					woken.Add(1)
				}
			}()
		}
		synctest.Wait()
		q.end("new/0")
		synctest.Wait()
		if woken.Load() != 2 {
			t.Errorf("%d workers were woken, want 2", woken.Load())
		}
		q.ShutDown()
	})
}

// Maintenances take turns, whatever the number of their writes and namespaces.
func TestMaintenancesTakeTurns(t *testing.T) {
	q := newQueueTest(t)
	for i, namespace := range []string{"a", "b", "c", "a", "b", "c"} {
		node := fmt.Sprintf("large-%d", i)
		q.Set(node, "large", []Write{writeFor(node, namespace, i)})
	}
	q.Set("small", "small", []Write{writeFor("small", "a", 6), writeFor("small", "a", 7)})
	q.expectNext("turns", "a/0", "a/6", "b/1", "c/2", "b/4", "c/5")
	q.end("a/0")
	q.expectNext("the one with fewer writes running", "a/7")
}
