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
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
)

// queueTest is a queue of eight workers, two of which a namespace may have, and four those
// that are slow.
type queueTest struct {
	*requestQueue
	t     *testing.T
	clock *testingclock.FakeClock
	taken []requestWrite
}

func newQueueTest(t *testing.T) *queueTest {
	clock := testingclock.NewFakeClock(start)
	return &queueTest{requestQueue: newRequestQueue(8, clock), t: t, clock: clock}
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
	for len(q.taken) < q.workers {
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
func (q *queueTest) end(pod string, took time.Duration) {
	q.t.Helper()
	i := slices.IndexFunc(q.taken, func(w requestWrite) bool { return w.pod == pod })
	if i < 0 {
		q.t.Fatalf("%s was not taken: %v", pod, q.taken)
	}
	q.done(q.taken[i], took)
	q.taken = slices.Delete(q.taken, i, i+1)
}

func (q *queueTest) expectEmpty() {
	q.t.Helper()
	if len(q.nodes)+len(q.lines)+len(q.turns) > 0 {
		q.t.Errorf("remembers %v, %v, %v", q.nodes, q.lines, q.turns)
	}
}

// A namespace has at most its share of the workers, however much of it waits.
func TestNamespaceHasAShare(t *testing.T) {
	q := newQueueTest(t)
	q.fill("a", 5)
	q.expectNext("one namespace", "a/0", "a/1")
	q.fill("b", 1)
	q.expectNext("another one", "b/0")
	q.end("a/1", 0)
	q.expectNext("when one is done", "a/2")
	q.end("a/0", 0)
	q.end("a/2", 0)
	q.expectNext("when two are done", "a/3", "a/4")
	q.end("b/0", 0)
	q.end("a/3", 0)
	q.end("a/4", 0)
	q.expectEmpty()
}

// Namespaces take turns, each with its oldest write.
func TestNamespacesTakeTurns(t *testing.T) {
	q := newQueueTest(t)
	q.fill("a", 3)
	q.fill("b", 2)
	q.fill("c", 1)
	q.expectNext("turns", "a/0", "b/0", "c/0", "a/1", "b/1")
	q.end("a/0", 0)
	q.fill("c", 2)
	q.expectNext("what came first goes first", "a/2", "c/1")
}

// Namespaces that were slow have a share together. So many of them have no more than a few.
func TestSlowNamespacesHaveAShareTogether(t *testing.T) {
	q := newQueueTest(t)
	slow := []string{"a", "b", "c", "d"}
	for _, namespace := range slow {
		q.fill(namespace, 4)
	}
	q.expectNext("all workers, as nobody knows that they are slow", "a/0", "b/0", "c/0", "d/0", "a/1", "b/1", "c/1", "d/1")
	q.fill("fast", 4)
	for _, namespace := range slow {
		q.end(namespace+"/0", slowAnswer)
		q.end(namespace+"/1", slowAnswer)
	}
	q.expectNext("half of the workers for all of them", "a/2", "b/2", "c/2", "d/2", "fast/0", "fast/1")
	q.end("fast/0", slowAnswer-1)
	q.expectNext("the others go on", "fast/2")
	q.end("a/2", 0)
	q.end("b/2", 0)
	q.expectNext("a fast answer does not count", "a/3", "b/3")
	q.clock.Step(slowMemory)
	q.expectNext("after a while", "c/3", "d/3")
	q.end("c/2", slowAnswer)
	if len(q.slow) != 1 {
		t.Errorf("remembers %v as slow", q.slow)
	}
}

// A namespace is slow for a while after its last slow answer. Then its writes count no more.
func TestNamespaceIsSlowForAWhile(t *testing.T) {
	q := newQueueTest(t)
	slow := func(namespaces ...string) {
		for _, namespace := range namespaces {
			q.fill(namespace, 1)
			q.expectNext("one write", namespace+"/0")
			q.end(namespace+"/0", slowAnswer)
		}
		q.clock.Step(slowMemory / 2)
	}
	slow("a", "b")
	slow("b", "c")
	if q.isSlow("a") || !q.isSlow("b") || !q.isSlow("c") {
		t.Errorf("slow are %v at %v", q.slow, q.clock.Now())
	}
	for _, namespace := range []string{"a", "b", "c"} {
		q.fill(namespace, 2)
	}
	q.expectNext("two slow ones, and another", "a/0", "b/0", "c/0", "a/1", "b/1", "c/1")
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
	q.end("a/0", 0)
	q.end("a/1", 0)
	q.expectNext("in the order in which they came", "a/3", "a/6")
	q.end("a/3", 0)
	q.expectNext("a withdrawal is another write", "a/4")
	if !q.taken[1].withdraw {
		t.Errorf("took %+v", q.taken[1])
	}
	q.set("n", nil)
	q.end("a/6", 0)
	q.end("a/4", 0)
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
	q.end("a/1", 0)
	q.expectNext("the sync of the node has to say it again")
	q.set("n", []requestWrite{withdrawal})
	q.expectNext("withdrawn", "a/1")
}

func TestStopAsking(t *testing.T) {
	q := newQueueTest(t)
	withdrawal := wish("n", "a", 3)
	withdrawal.withdraw = true
	q.set("n", []requestWrite{wish("n", "a", 1), wish("n", "a", 2), withdrawal})
	if q.stopAsking("o") || q.isAskingFor("m") {
		t.Error("nothing is running")
	}
	w, _ := q.next()
	if !q.stopAsking("n") || !q.isAskingFor("m") {
		t.Error("one is running, nobody knows for whom")
	}
	q.decided(w, []string{"l"})
	if !q.stopAsking("n") || q.isAskingFor("m") || !q.isAskingFor("l") {
		t.Error("one is running for l")
	}
	q.done(w, 0)
	q.expectNext("asks were dropped", "a/3")
	if q.stopAsking("n") || q.isAskingFor("m") {
		t.Error("a withdrawal asks nobody")
	}
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
		q.done(wish("a-"+pod[2:], "a", int(pod[2]-'0')), 0)
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
		"the share is free": func(q *queueTest) { q.end("a/0", 0) },
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
				t.Errorf("%s: nobody was woken", name)
			}
			q.shutDown()
		})
	}
}
