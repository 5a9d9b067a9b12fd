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
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
)

func tenantOf(item string) string { return item[:1] }

func newTestQueue(t *testing.T, limit int) *WorkQueue[string] {
	t.Helper()
	queue := NewWorkQueue(workqueue.TypedQueueConfig[string]{}, tenantOf)
	queue.Limit(limit)
	t.Cleanup(queue.ShutDown)
	return queue
}

// take returns the next items; they are there already.
func take(t *testing.T, queue *WorkQueue[string], count int) []string {
	t.Helper()
	var items []string
	for range count {
		if queue.Len() == 0 {
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
	if diff := cmp.Diff([]string{"a1", "b1", "a2"}, take(t, queue, 3)); diff != "" || queue.Len() != 0 {
		t.Errorf("%d more may be taken, unexpected items (-want, +got):\n%s", queue.Len(), diff)
	}
	queue.Done("b1")
	if got := queue.Len(); got != 0 {
		t.Errorf("%d items may be taken when another tenant is done", got)
	}
	// News of what is worked on goes behind what waits.
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

// Nothing is left behind when workers come and go in any order, and no tenant has more
// workers than it may have.
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
			t.Fatalf("%d of %d items were worked on, then nothing for %s", len(worked), items, wait.ForeverTestTimeout)
		}
	}
}

// A queue that shuts down lets its workers go, also while a tenant has more than it may have.
func TestWorkQueueShutsDown(t *testing.T) {
	queue := newTestQueue(t, 1)
	queue.Add("a1")
	queue.Add("a2")
	take(t, queue, 1)
	queue.ShutDown()
	if item, shutdown := queue.Get(); !shutdown {
		t.Errorf("got %s from a queue that shuts down", item)
	}
	queue.Done("a1")
	if item, shutdown := queue.Get(); shutdown || item != "a2" {
		t.Errorf("got %q and shutdown %t, want what was added before", item, shutdown)
	}
}
