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

package nodemaintenance

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
)

// queueTest is a queue of eight workers, two of which a namespace may have, and four those
// that are slow. The namespaces a to d were quick.
type queueTest struct {
	*requestQueue
	t     *testing.T
	clock *testingclock.FakeClock
	taken []requestWrite
}

func newQueueTest(t *testing.T) *queueTest {
	clock := testingclock.NewFakeClock(start)
	q := &queueTest{requestQueue: newRequestQueue(8, clock), t: t, clock: clock}
	for _, namespace := range []string{"a", "b", "c", "d"} {
		q.answer(namespace, 0)
	}
	return q
}

// answer has a write of the namespace take so long.
func (q *queueTest) answer(namespace string, took time.Duration) {
	q.t.Helper()
	q.fill(namespace, 1)
	q.expectNext("one write", namespace+"/0")
	q.clock.Step(took)
	q.end(namespace + "/0")
}

// wish returns the write for a pod with the name "namespace/number".
func wish(node, namespace string, number int) requestWrite {
	name := fmt.Sprintf("%s/%d", namespace, number)
	return requestWrite{namespace: namespace, pod: name, node: node, uid: types.UID(name)}
}

// fill has pods of the namespace wait, each on a node of its own.
func (q *queueTest) fill(namespace string, count int) {
	for i := range count {
		q.set(fmt.Sprintf("%s-%d", namespace, i), []requestWrite{wish(fmt.Sprintf("%s-%d", namespace, i), namespace, i)})
	}
}

// expectNext takes all writes that may begin.
func (q *queueTest) expectNext(why string, want ...string) {
	q.t.Helper()
	var got []string
	for {
		w, ok := q.next()
		if !ok {
			break
		}
		got = append(got, w.pod)
		q.taken = append(q.taken, w)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		q.t.Errorf("%s (-want, +got):\n%s", why, diff)
	}
}

// end ends a write that was taken.
func (q *queueTest) end(pod string) {
	q.t.Helper()
	i := slices.IndexFunc(q.taken, func(w requestWrite) bool { return w.pod == pod })
	if i < 0 {
		q.t.Fatalf("%s was not taken: %v", pod, q.taken)
	}
	q.done(q.taken[i])
	q.taken = slices.Delete(q.taken, i, i+1)
}

func (q *queueTest) expectEmpty() {
	q.t.Helper()
	if len(q.nodes)+q.line.Len() > 0 {
		q.t.Errorf("remembers %v, and %d writes wait", q.nodes, q.line.Len())
	}
}

// A namespace has at most its share of the workers, however much of it waits.
func TestNamespaceHasAShare(t *testing.T) {
	q := newQueueTest(t)
	q.fill("a", 5)
	q.expectNext("one namespace", "a/0", "a/1")
	q.fill("b", 1)
	q.expectNext("another one", "b/0")
	q.end("a/1")
	q.expectNext("when one is done", "a/2")
	q.end("a/0")
	q.end("a/2")
	q.expectNext("when two are done", "a/3", "a/4")
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
	q.expectNext("what came first goes first", "a/2", "c/1")
}

// Namespaces that were slow twice have a share together, and a new one has one worker until its first
// answer. So many of them have no more than a few.
func TestSlowNamespacesHaveAShareTogether(t *testing.T) {
	q := newQueueTest(t)
	for range 2 {
		for _, namespace := range []string{"a", "b", "c"} {
			q.answer(namespace, 5*time.Second)
		}
		q.clock.Step(time.Minute) // What is slow right after that counts once.
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
	q.expectNext("the next slow one", "c/1", "new/2")
}

// The sync of a node says what waits.
func TestSetReplacesWhatWaits(t *testing.T) {
	q := newQueueTest(t)
	q.fill("a", 2)
	q.expectNext("first", "a/0", "a/1")
	withdrawal := wish("n", "a", 4)
	withdrawal.withdraw = true
	q.set("n", []requestWrite{wish("n", "a", 2), wish("n", "a", 3), wish("n", "a", 4), wish("n", "b", 5)})
	q.set("o", []requestWrite{wish("o", "a", 6)})
	q.set("n", []requestWrite{wish("n", "a", 3), withdrawal})
	q.expectNext("dropped")
	q.end("a/0")
	q.end("a/1")
	q.expectNext("a withdrawal, which is another write, then in the order in which they came", "a/4", "a/3")
	if !q.taken[0].withdraw {
		t.Errorf("took %+v", q.taken[0])
	}
	q.end("a/3")
	q.expectNext("the last one", "a/6")
	q.set("n", nil)
	q.end("a/6")
	q.end("a/4")
	q.expectEmpty()
}

// There is one write for a pod at a time.
func TestOneWriteForAPodAtATime(t *testing.T) {
	q := newQueueTest(t)
	ask, withdrawal := wish("n", "a", 1), wish("n", "a", 1)
	withdrawal.withdraw = true
	q.set("n", []requestWrite{ask})
	q.expectNext("asked", "a/1")
	q.set("n", []requestWrite{withdrawal})
	q.expectNext("running")
	q.end("a/1")
	q.expectNext("the sync of the node has to say it again")
	q.set("n", []requestWrite{withdrawal})
	q.expectNext("withdrawn", "a/1")
}

func TestDropRequests(t *testing.T) {
	q := newQueueTest(t)
	withdrawal := wish("n", "a", 3)
	withdrawal.withdraw = true
	q.set("n", []requestWrite{wish("n", "a", 1), wish("n", "a", 2), withdrawal})
	if q.dropRequests("o") || q.isRequestingFor("m") {
		t.Error("nothing is running")
	}
	first, _ := q.next()
	if !first.withdraw || q.isRequestingFor("m") {
		t.Errorf("began with %+v, want the withdrawal, which is no request", first)
	}
	w, _ := q.next()
	if !q.dropRequests("n") || !q.isRequestingFor("m") {
		t.Error("one is running, for an unknown maintenance")
	}
	q.decided(w, []string{"l"})
	if !q.dropRequests("n") || q.isRequestingFor("m") || !q.isRequestingFor("l") {
		t.Error("one is running for l")
	}
	q.done(w)
	q.expectNext("asks were dropped")
	if q.dropRequests("n") || q.isRequestingFor("m") {
		t.Error("a withdrawal is no request")
	}
}

// A withdrawal does not wait behind the pods of its namespace that are to be asked.
func TestWithdrawalsGoFirst(t *testing.T) {
	q := newQueueTest(t)
	q.fill("a", 3)
	q.expectNext("the share", "a/0", "a/1")
	for _, number := range []int{7, 8} {
		withdrawal := wish(fmt.Sprintf("n-%d", number), "a", number)
		withdrawal.withdraw = true
		q.set(withdrawal.node, []requestWrite{withdrawal})
	}
	q.end("a/0")
	q.end("a/1")
	q.expectNext("withdrawals, in their order", "a/7", "a/8")
	q.end("a/7")
	q.expectNext("then the others", "a/2")
}

// Workers wait for what may begin, and end with the queue.
func TestWorkersWait(t *testing.T) {
	q := newQueueTest(t)
	q.fill("a", 3)
	got := make(chan string)
	for range 3 {
		go func() {
			for {
				w, ok := q.get()
				got <- w.pod
				if !ok {
					return
				}
			}
		}()
	}
	first, second := <-got, <-got
	for _, pod := range []string{first, second} {
		q.done(wish("a-"+pod[2:], "a", int(pod[2]-'0')))
	}
	if third := <-got; third != "a/2" {
		t.Errorf("got %s", third)
	}
	q.fill("b", 1)
	if b := <-got; b != "b/0" {
		t.Errorf("got %s", b)
	}
	q.shutDown()
	for range 3 {
		if pod := <-got; pod != "" {
			t.Errorf("got %s", pod)
		}
	}
}

// A worker that waits is woken by a write that comes, and by one that ends.
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
			go func() { _, woken = q.get() }()
			synctest.Wait()
			wake(q)
			synctest.Wait()
			if !woken {
				t.Errorf("%s: no worker was woken", name)
			}
			q.shutDown()
		})
	}
}

// A new namespace has one worker until its first quick answer: it wakes all workers that may continue.
func TestAllWaitingWorkersAreWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueueTest(t)
		q.fill("new", 4)
		q.expectNext("one worker", "new/0")
		var woken atomic.Int32
		for range 3 {
			go func() {
				if _, ok := q.get(); ok {
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
		q.shutDown()
	})
}
