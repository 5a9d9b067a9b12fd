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

package fairshare

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
)

func tenantOf(item string) string { return item[:1] }

func ownerOf(item string) Owner { return Owner{Tenant: tenantOf(item)} }

func newTestQueue(t *testing.T, limit int) *WorkQueue[string] {
	t.Helper()
	queue := NewWorkQueue(workqueue.TypedQueueConfig[string]{}, ownerOf)
	queue.Limit(8, limit)
	t.Cleanup(queue.ShutDown)
	for _, tenant := range []string{"a", "b", "c"} { // All of them are quick.
		queue.Add(tenant + "!")
		take(t, queue, 1)
		queue.Done(tenant + "!")
	}
	return queue
}

// isReady reports whether Get would return an item without blocking.
func isReady(queue *WorkQueue[string]) bool {
	queue.items.lock.Lock()
	defer queue.items.lock.Unlock()
	return queue.items.line.next() != nil
}

// take returns the next items, which must be ready.
func take(t *testing.T, queue *WorkQueue[string], count int) []string {
	t.Helper()
	var items []string
	for range count {
		if !isReady(queue) {
			t.Fatalf("only %v may be taken, want %d items", items, count)
		}
		item, _ := queue.Get()
		items = append(items, item)
	}
	return items
}

func TestWorkQueue(t *testing.T) {
	queue := newTestQueue(t, 2)
	for _, item := range []string{"a1", "a2", "a3", "a4", "b1", "a1"} {
		queue.Add(item)
	}
	if diff := cmp.Diff([]string{"a1", "b1", "a2"}, take(t, queue, 3)); diff != "" || isReady(queue) || queue.Len() != 2 {
		t.Errorf("%d items wait, one is ready: %t; unexpected items (-want, +got):\n%s", queue.Len(), isReady(queue), diff)
	}
	queue.Done("b1")
	if isReady(queue) {
		t.Error("an item is ready after an item of another tenant is done")
	}
	// An item that is added again while it is processed is queued behind the waiting items.
	queue.Add("a2")
	queue.Done("a2")
	if diff := cmp.Diff([]string{"a3"}, take(t, queue, 1)); diff != "" {
		t.Errorf("unexpected items (-want, +got):\n%s", diff)
	}
	queue.Done("a1")
	queue.Done("a3")
	if diff := cmp.Diff([]string{"a4", "a2"}, take(t, queue, 2)); diff != "" {
		t.Errorf("unexpected items (-want, +got):\n%s", diff)
	}
}

// No item is lost when workers process items in any order, and no tenant exceeds its number of
// workers.
func TestWorkQueueLosesNothing(t *testing.T) {
	const workers, limit, rounds = 8, 2, 200
	queue := newTestQueue(t, limit)
	var lock sync.Mutex
	working, worked := map[string]int{}, map[string]int{}
	done := make(chan struct{}, 100000)
	for range workers {
		go func() {
			for {
				item, shutdown := queue.Get()
				if shutdown {
					return
				}
				lock.Lock()
				working[tenantOf(item)]++
				worked[item]++
				if working[tenantOf(item)] > limit {
					t.Errorf("%d workers for tenant %s", working[tenantOf(item)], tenantOf(item))
				}
				lock.Unlock()
				time.Sleep(10 * time.Microsecond)
				lock.Lock()
				working[tenantOf(item)]--
				lock.Unlock()
				queue.Done(item)
				done <- struct{}{}
			}
		}()
	}
	items := 0
	for range rounds {
		for _, tenant := range []string{"a", "a", "a", "b", "c"} {
			items++
			queue.Add(tenant + string(rune(0x4e00+items)))
		}
	}
	for range items {
		select {
		case <-done:
		case <-time.After(wait.ForeverTestTimeout):
			lock.Lock()
			defer lock.Unlock()
			t.Fatalf("%d of %d items were processed, then none for %s", len(worked), items, wait.ForeverTestTimeout)
		}
	}
}

// A change that makes several items ready wakes as many workers.
func TestWorkQueueWakesWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := newTestQueue(t, 4)
		for i := range 6 {
			queue.Add(fmt.Sprintf("n%d", i))
		}
		take(t, queue, 1)
		var lock sync.Mutex
		var got []string
		for range 7 {
			go func() {
				if item, shutdown := queue.Get(); !shutdown {
					lock.Lock()
					defer lock.Unlock()
					got = append(got, item)
				}
			}()
		}
		synctest.Wait()
		if len(got) > 0 {
			t.Fatalf("got %v of an unknown tenant that has a place", got)
		}
		queue.Done("n0")
		synctest.Wait()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"n1", "n2", "n3", "n4"}, got); diff != "" {
			t.Errorf("unexpected items after the first quick item (-want, +got):\n%s", diff)
		}
		for _, item := range got {
			queue.Done(item)
		}
	})
}

// A queue that is shut down hands out the remaining items, including those held back by a limit.
func TestWorkQueueShutsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := newTestQueue(t, 1)
		for _, item := range []string{"a1", "a2", "a3"} {
			queue.Add(item)
		}
		take(t, queue, 1)
		var lock sync.Mutex
		var worked []string
		var workers atomic.Int32
		for range 2 {
			workers.Add(1)
			go func() {
				defer workers.Add(-1)
				for {
					item, shutdown := queue.Get()
					if shutdown {
						return
					}
					lock.Lock()
					worked = append(worked, item)
					lock.Unlock()
					queue.Done(item)
				}
			}()
		}
		queue.ShutDown()
		queue.Add("a4")
		synctest.Wait()
		if workers.Load() != 2 || len(worked) > 0 {
			t.Errorf("%d workers are running and have processed %v, want two that wait", workers.Load(), worked)
		}
		queue.Done("a1")
		synctest.Wait()
		if diff := cmp.Diff([]string{"a2", "a3"}, worked); diff != "" || workers.Load() != 0 {
			t.Errorf("%d workers are running, unexpected items (-want, +got):\n%s", workers.Load(), diff)
		}
	})
}

// ShutDownWithDrain waits for all items that were added before. ShutDown ends the wait.
func TestWorkQueueDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := newTestQueue(t, 1)
		queue.Add("a1")
		queue.Add("a2")
		take(t, queue, 1)
		queue.Add("a1") // Added again, behind the other item.
		drained := false
		go func() {
			queue.ShutDownWithDrain()
			drained = true
		}()
		for _, item := range []string{"a1", "a2"} {
			synctest.Wait()
			queue.Done(item)
			synctest.Wait()
			if drained {
				t.Fatalf("drained after %s, while %d wait", item, queue.Len())
			}
			take(t, queue, 1)
		}
		synctest.Wait()
		if drained {
			t.Error("drained while the last item is processed")
		}
		queue.Done("a1")
		synctest.Wait()
		if !drained {
			t.Error("does not return")
		}
	})
	// A goroutine in ShutDownWithDrain does not consume the wake-up of a worker that waits for an
	// item.
	synctest.Test(t, func(t *testing.T) {
		queue := newTestQueue(t, 1)
		queue.Add("a1")
		queue.Add("a2")
		take(t, queue, 1)
		drained := false
		go func() {
			queue.ShutDownWithDrain()
			drained = true
		}()
		synctest.Wait()
		go func() {
			item, _ := queue.Get()
			queue.Done(item)
		}()
		synctest.Wait()
		queue.Done("a1")
		synctest.Wait()
		if !drained {
			t.Errorf("%d items remain while a worker waits", queue.Len())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		queue := newTestQueue(t, 1)
		queue.Add("a1")
		take(t, queue, 1)
		drained := false
		go func() {
			queue.ShutDownWithDrain()
			drained = true
		}()
		synctest.Wait()
		queue.ShutDown()
		synctest.Wait()
		if !drained {
			t.Error("ShutDown does not end ShutDownWithDrain")
		}
	})
}

// An item that was added again while it was processed is in the queue before its place is released:
// a queue that drains does not return in between.
func TestWorkQueueAddsAgainBeforeThePlaceIsFree(t *testing.T) {
	var queue *WorkQueue[string]
	var places []int
	queue = NewWorkQueue(workqueue.TypedQueueConfig[string]{}, func(item string) Owner {
		places = append(places, len(queue.items.line.running))
		return ownerOf(item)
	})
	defer queue.ShutDown()
	queue.Add("a1")
	take(t, queue, 1)
	queue.Add("a1")
	queue.Done("a1")
	if diff := cmp.Diff([]int{0, 1}, places); diff != "" {
		t.Errorf("unexpected places in use when the item is added (-want, +got):\n%s", diff)
	}
}
