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

package evictionrequest

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
)

// candidate is a request whose pod waits for an eviction under one budget.
type candidate struct {
	request types.NamespacedName
	created time.Time
	// healthy is whether the pod is ready, which is how budgets define healthy.
	healthy bool
	// dueAt is when an attempt is made even if the budget seems to allow none.
	dueAt time.Time

	// removed marks a candidate that is no longer in the queue.
	removed bool
}

// canEvict reports whether to attempt the eviction now.
func (c *candidate) canEvict(now time.Time, allowance poddisruptionbudget.Allowance) bool {
	return !now.Before(c.dueAt) || allowance.Allows(c.healthy)
}

// compareAge orders candidates by age, the oldest first.
func compareAge(a, b *candidate) int {
	return cmp.Or(a.created.Compare(b.created),
		strings.Compare(a.request.Namespace, b.request.Namespace), strings.Compare(a.request.Name, b.request.Name))
}

// budgetQueues holds, for each PodDisruptionBudget, the requests whose pods wait for an eviction
// under it. A worker takes a request with next and returns it with done. It is safe for concurrent
// use. It is derived from the caches: a restart empties it.
type budgetQueues struct {
	lock   sync.Mutex
	queues map[types.NamespacedName]*budgetQueue
	// budgets holds the budgets that select the pod of each request.
	budgets map[types.NamespacedName][]types.NamespacedName
	// taken holds the requests that are being evicted, and whether place was called for them since.
	taken map[types.NamespacedName]bool
}

// budgetQueue is the queue of one budget.
type budgetQueue struct {
	// related holds all requests whose pods the budget selects, including those that do not wait in
	// this queue.
	related sets.Set[types.NamespacedName]
	waiting map[types.NamespacedName]*candidate
	// order holds the waiting candidates and some removed ones. sorted reports whether it is sorted
	// by age.
	order  []*candidate
	sorted bool

	inFlight int
	// pace limits inFlight.
	pace pace
	// spent counts the evictions since the cached version of the budget.
	spent        int
	spentVersion string
	// No request is taken before pausedUntil. A pause with a version ends earlier if the version of
	// the budget changes.
	pausedUntil   time.Time
	pausedVersion string
}

func newBudgetQueues() *budgetQueues {
	return &budgetQueues{
		queues:  map[types.NamespacedName]*budgetQueue{},
		budgets: map[types.NamespacedName][]types.NamespacedName{},
		taken:   map[types.NamespacedName]bool{},
	}
}

// place records the budgets that select the pod of a request. With a candidate and exactly one
// budget, the request waits for that budget. Otherwise it waits for none. A request that is being
// evicted waits for none either, and done reports that place was called in the meantime.
func (b *budgetQueues) place(request types.NamespacedName, budgets []types.NamespacedName, c *candidate) (taken bool) {
	b.lock.Lock()
	defer b.lock.Unlock()
	for _, budget := range b.budgets[request] {
		if !slices.Contains(budgets, budget) {
			b.leave(budget, request)
		}
	}
	if len(budgets) == 0 {
		delete(b.budgets, request)
	} else {
		b.budgets[request] = budgets
	}
	if _, taken = b.taken[request]; taken {
		b.taken[request] = true
	}
	for _, budget := range budgets {
		queue := b.queue(budget)
		queue.related.Insert(request)
		if c == nil || taken || len(budgets) > 1 {
			queue.remove(request)
		} else {
			queue.put(*c)
		}
	}
	return taken
}

// forget drops a request.
func (b *budgetQueues) forget(request types.NamespacedName) {
	b.lock.Lock()
	defer b.lock.Unlock()
	for _, budget := range b.budgets[request] {
		b.leave(budget, request)
	}
	delete(b.budgets, request)
}

// relatedTo returns the requests whose pods the budget selects, as recorded by place.
func (b *budgetQueues) relatedTo(budget types.NamespacedName) []types.NamespacedName {
	b.lock.Lock()
	defer b.lock.Unlock()
	if queue := b.queues[budget]; queue != nil {
		return queue.related.UnsortedList()
	}
	return nil
}

// has reports whether a request waits for the budget.
func (b *budgetQueues) has(budget types.NamespacedName) bool {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queues[budget]
	return queue != nil && len(queue.waiting) > 0
}

// used returns how many evictions of this version of the budget are used up.
func (b *budgetQueues) used(budget types.NamespacedName, version string) int {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queues[budget]
	switch {
	case queue == nil:
		return 0
	case queue.spentVersion == version:
		return queue.spent + queue.inFlight
	}
	return queue.inFlight
}

// first returns the oldest request that waits for the budget, as far as known. If none waits, it
// returns only the namespace of the budget.
func (b *budgetQueues) first(budget types.NamespacedName) types.NamespacedName {
	b.lock.Lock()
	defer b.lock.Unlock()
	if queue := b.queues[budget]; queue != nil {
		for _, c := range queue.order {
			if !c.removed {
				return c.request
			}
		}
	}
	return types.NamespacedName{Namespace: budget.Namespace}
}

// next takes the oldest request that may be evicted now. If there is none, it returns the delay
// after which there may be one without any change. Zero means never.
func (b *budgetQueues) next(budget types.NamespacedName, version string, now time.Time, allowance poddisruptionbudget.Allowance) (request types.NamespacedName, found bool, wait time.Duration) {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queues[budget]
	if queue == nil || queue.inFlight >= queue.pace.limit {
		return request, false, 0
	}
	if pause := queue.pausedUntil.Sub(now); pause > 0 && (queue.pausedVersion == "" || queue.pausedVersion == version) {
		return request, false, pause
	}
	queue.sort()
	for _, c := range queue.order {
		if c.removed {
			continue
		}
		if c.canEvict(now, allowance) {
			queue.remove(c.request)
			queue.inFlight++
			b.taken[c.request] = false
			return c.request, true, 0
		}
		wait = earliest(wait, c.dueAt.Sub(now))
	}
	return request, false, wait
}

// done returns a request, and reports whether place was called for it in the meantime.
func (b *budgetQueues) done(budget, request types.NamespacedName) (again bool) {
	b.lock.Lock()
	defer b.lock.Unlock()
	again = b.taken[request]
	delete(b.taken, request)
	if queue := b.queues[budget]; queue != nil {
		queue.inFlight--
		b.discard(budget)
	}
	return again
}

// limit returns how many requests of the budget may be in flight.
func (b *budgetQueues) limit(budget types.NamespacedName) int {
	b.lock.Lock()
	defer b.lock.Unlock()
	if queue := b.queues[budget]; queue != nil {
		return queue.pace.limit
	}
	return 0
}

// began takes note of an eviction under the budget.
func (b *budgetQueues) began(budget types.NamespacedName, now time.Time) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if queue := b.queues[budget]; queue != nil {
		queue.pace.begin(now)
	}
}

// ended takes note of its answer, and of whether it failed because of others. It returns whether more
// requests may be in flight from now on.
func (b *budgetQueues) ended(budget types.NamespacedName, began, ended time.Time, conflict bool) (more bool) {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queues[budget]
	return queue != nil && queue.pace.end(began, ended, conflict)
}

// spend records that an eviction used up a disruption of this version of the budget, and returns
// how many have.
func (b *budgetQueues) spend(budget types.NamespacedName, version string) int {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queue(budget)
	if queue.spentVersion != version {
		queue.spent, queue.spentVersion = 0, version
	}
	queue.spent++
	return queue.spent
}

// pause takes no request under the budget until the given time, or until the budget has another
// version, if one is given.
func (b *budgetQueues) pause(budget types.NamespacedName, until time.Time, version string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queue(budget)
	queue.pausedUntil, queue.pausedVersion = until, version
}

// queue returns the queue of a budget. It creates one if there is none.
func (b *budgetQueues) queue(budget types.NamespacedName) *budgetQueue {
	queue := b.queues[budget]
	if queue == nil {
		queue = &budgetQueue{related: sets.New[types.NamespacedName](), waiting: map[types.NamespacedName]*candidate{}, pace: newPace()}
		b.queues[budget] = queue
	}
	return queue
}

// leave removes a request from the queue of a budget.
func (b *budgetQueues) leave(budget, request types.NamespacedName) {
	if queue := b.queues[budget]; queue != nil {
		queue.related.Delete(request)
		queue.remove(request)
		b.discard(budget)
	}
}

// discard drops the queue of a budget if it has no requests.
func (b *budgetQueues) discard(budget types.NamespacedName) {
	if queue := b.queues[budget]; queue.related.Len() == 0 && queue.inFlight == 0 {
		delete(b.queues, budget)
	}
}

// put adds a candidate, or updates the existing one of the same request.
func (q *budgetQueue) put(c candidate) {
	if known := q.waiting[c.request]; known != nil {
		if known.created.Equal(c.created) {
			known.healthy, known.dueAt = c.healthy, c.dueAt
			return
		}
		q.remove(c.request) // Another request of the same name.
	}
	q.waiting[c.request] = &c
	q.sorted = q.sorted && (len(q.order) == 0 || compareAge(q.order[len(q.order)-1], &c) <= 0)
	q.order = append(q.order, &c)
}

func (q *budgetQueue) remove(request types.NamespacedName) {
	if known := q.waiting[request]; known != nil {
		known.removed = true
		delete(q.waiting, request)
	}
}

// sort sorts order. This is cheap if requests are added in the order of their age and removed from
// the front.
func (q *budgetQueue) sort() {
	for len(q.order) > 0 && q.order[0].removed {
		q.order[0] = nil
		q.order = q.order[1:]
	}
	if len(q.order) > len(q.waiting) {
		q.order = slices.DeleteFunc(q.order, func(c *candidate) bool { return c.removed })
	}
	if !q.sorted {
		slices.SortFunc(q.order, compareAge)
		q.sorted = true
	}
}
