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

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// WorkQueue is a workqueue whose workers the tenants share. What may not be handed out yet
// stays in the queue, in its order.
//
// It shuts down as every workqueue does: workers get what is left, also what is held back,
// and ShutDownWithDrain waits until that is done. So it needs workers that call Get until it
// reports the shutdown.
type WorkQueue[T comparable] struct {
	workqueue.TypedInterface[T]
	items *items[T]
}

// NewWorkQueue returns a queue with that configuration, whose own Queue must not be set. One
// tenant may have any number of workers until Limit is called.
func NewWorkQueue[T comparable](config workqueue.TypedQueueConfig[T], tenantOf func(T) string) *WorkQueue[T] {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	items := &items[T]{tenantOf: tenantOf, line: NewLine[T](config.Clock)}
	items.changed = sync.NewCond(&items.lock)
	config.Queue = items
	return &WorkQueue[T]{TypedInterface: workqueue.NewTypedWithConfig(config), items: items}
}

// Limit sets how many workers there are, and how many of them may work for one tenant. Call it
// before the workers start.
func (q *WorkQueue[T]) Limit(workers, perTenant int) { q.items.limit(workers, perTenant) }

// Len is how many items wait to be handed out.
func (q *WorkQueue[T]) Len() int { return q.items.waiting() }

// Get waits for an item that may be handed out. It keeps its place until Done.
func (q *WorkQueue[T]) Get() (item T, shutdown bool) {
	q.items.take()
	return q.TypedInterface.Get() // It does not wait: it gets what was taken, or the queue is shut down.
}

// Done makes the place of the item free, besides what it does in every workqueue.
func (q *WorkQueue[T]) Done(item T) {
	q.TypedInterface.Done(item) // What this adds again must be there before the place is free, for drain.
	q.items.release(item)
}

func (q *WorkQueue[T]) ShutDown() {
	q.TypedInterface.ShutDown()
	q.items.close(false)
}

func (q *WorkQueue[T]) ShutDownWithDrain() {
	q.TypedInterface.ShutDown()
	q.items.close(true)
	q.items.drain()
}

// items is the storage of a workqueue, which calls Touch, Push, Len and Pop with its own lock
// held.
type items[T comparable] struct {
	tenantOf func(T) string

	lock sync.Mutex
	// changed is signaled when an item may have come to be ready: to one worker, who tells
	// the next one.
	changed *sync.Cond
	line    *Line[T]
	// taken has a place, and is about to be handed out by the workqueue.
	taken            []T
	closed, draining bool
}

// Touch leaves an item that is added again where it is.
func (i *items[T]) Touch(T) {}

func (i *items[T]) Push(item T) {
	i.lock.Lock()
	defer i.lock.Unlock()
	i.line.Push(i.tenantOf(item), item)
	i.wake()
}

func (i *items[T]) Len() int {
	i.lock.Lock()
	defer i.lock.Unlock()
	return len(i.taken)
}

func (i *items[T]) Pop() T {
	i.lock.Lock()
	defer i.lock.Unlock()
	item := i.taken[0]
	i.taken = i.taken[1:]
	return item
}

func (i *items[T]) waiting() int {
	i.lock.Lock()
	defer i.lock.Unlock()
	return i.line.Len()
}

// take waits until it has taken an item, or the queue is shut down and empty.
func (i *items[T]) take() {
	i.lock.Lock()
	defer i.lock.Unlock()
	for {
		if item, found := i.line.Pop(); found {
			i.line.Begin(item)
			i.taken = append(i.taken, item)
			i.wake()
			return
		}
		if i.closed && i.line.Len() == 0 {
			return
		}
		i.changed.Wait()
	}
}

func (i *items[T]) release(item T) {
	i.lock.Lock()
	defer i.lock.Unlock()
	i.line.Release(item)
	i.wake()
}

// wake is called with the lock. One worker that waits is enough, as it wakes another one; those
// who wait for the end are woken all.
func (i *items[T]) wake() {
	if i.closed {
		i.changed.Broadcast()
		return
	}
	i.changed.Signal()
}

func (i *items[T]) limit(workers, perTenant int) {
	i.lock.Lock()
	defer i.lock.Unlock()
	i.line.Limit(workers, perTenant)
	i.changed.Broadcast()
}

func (i *items[T]) close(drain bool) {
	i.lock.Lock()
	defer i.lock.Unlock()
	i.closed, i.draining = true, drain
	i.changed.Broadcast()
}

// drain waits until nothing waits and nothing has a place, or the queue is closed without that.
func (i *items[T]) drain() {
	i.lock.Lock()
	defer i.lock.Unlock()
	for i.draining && i.line.Len()+len(i.line.running) > 0 {
		i.changed.Wait()
	}
}
