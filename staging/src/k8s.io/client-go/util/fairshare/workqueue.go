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
)

// WorkQueue is a workqueue that hands out items of each tenant to a bounded number of
// workers at a time, and items of several tenants in turn. What is not handed out stays in
// the queue, in its order, and goes to the worker whose Done makes room for it: each worker
// has to call Get after Done, or to shut the queue down.
//
// Len is the number of items that may be handed out now.
type WorkQueue[T comparable] struct {
	workqueue.TypedInterface[T]
	items *items[T]
}

// NewWorkQueue returns a queue with that configuration, whose own Queue must not be set. One
// tenant may have any number of workers until Limit is called.
func NewWorkQueue[T comparable](config workqueue.TypedQueueConfig[T], tenantOf func(T) string) *WorkQueue[T] {
	items := &items[T]{tenantOf: tenantOf, line: newLine[T](0)}
	config.Queue = items
	return &WorkQueue[T]{TypedInterface: workqueue.NewTypedWithConfig(config), items: items}
}

// Limit sets how many workers the items of one tenant may have at a time. Call it before the
// workers start.
func (q *WorkQueue[T]) Limit(perTenant int) { q.items.limit(perTenant) }

// Done makes the place of the item free, besides what it does in every workqueue.
func (q *WorkQueue[T]) Done(item T) {
	q.items.release(item)
	q.TypedInterface.Done(item)
}

// items is the storage of a workqueue, which calls it with its own lock held. Places come
// free without that.
type items[T comparable] struct {
	tenantOf func(T) string

	lock sync.Mutex
	line *line[T]
}

// Touch leaves an item that is added again where it is.
func (i *items[T]) Touch(T) {}

func (i *items[T]) Push(item T) {
	i.lock.Lock()
	defer i.lock.Unlock()
	i.line.push(i.tenantOf(item), item)
}

func (i *items[T]) Len() int {
	i.lock.Lock()
	defer i.lock.Unlock()
	return i.line.available
}

func (i *items[T]) Pop() T {
	i.lock.Lock()
	defer i.lock.Unlock()
	item, _ := i.line.pop() // The workqueue asks for the length before.
	return item
}

func (i *items[T]) release(item T) {
	i.lock.Lock()
	defer i.lock.Unlock()
	i.line.release(i.tenantOf(item))
}

func (i *items[T]) limit(perTenant int) {
	i.lock.Lock()
	defer i.lock.Unlock()
	i.line.setLimit(perTenant)
}
