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

// WorkQueue is a workqueue whose workers are shared between tenants. Items that may not be handed
// out yet stay in the queue, in order.
//
// It shuts down like any workqueue: workers get the remaining items, including those held back by a
// limit, and ShutDownWithDrain waits until they are done. So workers must call Get until it reports
// the shutdown.
type WorkQueue[T comparable] struct {
	workqueue.TypedInterface[T]
	items *items[T]
}

// NewWorkQueue returns a queue with this configuration, whose Queue must not be set. An item belongs
// to the owner that ownerOf returns when it starts to wait; the function must not use the queue. The
// workers per tenant are unlimited until Limit is called.
func NewWorkQueue[T comparable](config workqueue.TypedQueueConfig[T], ownerOf func(T) Owner) *WorkQueue[T] {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	items := &items[T]{ownerOf: ownerOf, line: NewLine[T](config.Clock)}
	items.changed = sync.NewCond(&items.lock)
	config.Queue = items
	return &WorkQueue[T]{TypedInterface: workqueue.NewTypedWithConfig(config), items: items}
}

// Limit sets the number of workers and the maximum number for one tenant. Call it before the
// workers start.
func (q *WorkQueue[T]) Limit(workers, perTenant int) { q.items.limit(workers, perTenant) }

// Len returns the number of items that wait to be handed out.
func (q *WorkQueue[T]) Len() int { return q.items.waiting() }

// Get waits for an item that may be handed out. The item holds its place until Done.
func (q *WorkQueue[T]) Get() (item T, shutdown bool) {
	q.items.take()
	return q.TypedInterface.Get() // This does not block: an item was taken, or the queue is shut down.
}

// Done is Done of the workqueue, and releases the place of the item.
func (q *WorkQueue[T]) Done(item T) {
	q.TypedInterface.Done(item) // This may add the item again, which drain must see before the place is released.
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

// items is the storage of a workqueue. The workqueue calls Touch, Push, Len and Pop with its own
// lock held.
type items[T comparable] struct {
	ownerOf func(T) Owner

	lock sync.Mutex
	// changed is signaled when an item may have become ready. It wakes one worker, which wakes the
	// next one.
	changed *sync.Cond
	line    *Line[T]
	// taken has the items with a place that the workqueue will hand out next.
	taken            []T
	closed, draining bool
}

// Touch does nothing: an item that is added again keeps its position.
func (i *items[T]) Touch(T) {}

func (i *items[T]) Push(item T) {
	owner := i.ownerOf(item)
	i.lock.Lock()
	defer i.lock.Unlock()
	i.line.Push(owner, item)
	i.signal()
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

// take waits until it has taken an item, or until the queue is shut down and empty.
func (i *items[T]) take() {
	i.lock.Lock()
	defer i.lock.Unlock()
	for {
		if item, found := i.line.Pop(); found {
			i.line.Begin(item)
			i.taken = append(i.taken, item)
			i.signal()
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
	i.signal()
}

// signal wakes one waiting worker, which wakes the next one, or everything that waits for the
// shutdown. The caller must hold the lock.
func (i *items[T]) signal() {
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

// drain waits until no item waits or has a place, or until the queue is closed without draining.
func (i *items[T]) drain() {
	i.lock.Lock()
	defer i.lock.Unlock()
	for i.draining && i.line.Len()+len(i.line.running) > 0 {
		i.changed.Wait()
	}
}
