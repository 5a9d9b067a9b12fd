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
)

// defaultEvictionsPerBudget is how many evictions of pods under one PodDisruptionBudget
// are in flight. Each of them writes to the status of the budget, as the disruption
// controller does, and the loser of two writes waits half a second in the API server
// before it tries again. Two at a time evicted no more pods per second than one, and
// one call in a hundred then took more than a second, for losing twice ("make bench").
const defaultEvictionsPerBudget = 1

// candidate is a request whose pod waits for its eviction under one budget.
type candidate struct {
	request types.NamespacedName
	created time.Time
	// healthy is whether the pod is ready, as budgets count.
	healthy bool
	// dueAt is when an attempt is made even where the budget seems to have no room.
	dueAt time.Time

	// gone marks a candidate that is not in the queue any more.
	gone bool
}

// mayGo reports whether an attempt is worth a call now.
func (c *candidate) mayGo(now time.Time, room room) bool {
	return !now.Before(c.dueAt) || room.allows(c.healthy)
}

// compareAge orders candidates, the oldest first.
func compareAge(a, b *candidate) int {
	return cmp.Or(a.created.Compare(b.created),
		strings.Compare(a.request.Namespace, b.request.Namespace), strings.Compare(a.request.Name, b.request.Name))
}

// budgetQueues holds, for each PodDisruptionBudget, the requests whose pods wait for their
// eviction under it. Whoever evicts takes one with next and gives it back with done. It is
// safe for concurrent use, and a memory of what the caches say: a restart empties it.
type budgetQueues struct {
	// perBudget is how many requests of one budget may be taken at a time.
	perBudget int

	lock   sync.Mutex
	queues map[types.NamespacedName]*budgetQueue
	// budgets holds the budgets of each request that was placed.
	budgets map[types.NamespacedName][]types.NamespacedName
	// taken holds the requests that are being evicted, and whether they were placed again
	// meanwhile.
	taken map[types.NamespacedName]bool
}

// budgetQueue is what waits for one budget.
type budgetQueue struct {
	// related holds the requests whose pods the budget selects, also those that do not wait
	// for it alone.
	related sets.Set[types.NamespacedName]
	waiting map[types.NamespacedName]*candidate
	// order has all that wait, and some that are gone. It is sorted by age if sorted says so.
	order  []*candidate
	sorted bool

	inFlight int
	// spent counts the evictions since the version of the budget that the cache has.
	spent        int
	spentVersion string
	// No request is taken before pausedUntil. A pause with a version ends earlier when the
	// budget has another one.
	pausedUntil   time.Time
	pausedVersion string
}

func newBudgetQueues(perBudget int) *budgetQueues {
	return &budgetQueues{
		perBudget: perBudget,
		queues:    map[types.NamespacedName]*budgetQueue{},
		budgets:   map[types.NamespacedName][]types.NamespacedName{},
		taken:     map[types.NamespacedName]bool{},
	}
}

// place records the budgets that select the pod of a request. With a candidate, the
// request waits for the only one of them; without, it waits for none. While the request
// is taken, it waits for none either, and done returns that there is news.
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

// relatedTo returns the requests whose pods the budget selects, as far as they were placed.
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

// used returns how much of the room of this version of the budget is used up.
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

// next takes the oldest request that may go now. If there is none, it returns after which
// time there may be one without any change; zero is never.
func (b *budgetQueues) next(budget types.NamespacedName, version string, now time.Time, room room) (request types.NamespacedName, found bool, wait time.Duration) {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queues[budget]
	if queue == nil || queue.inFlight >= b.perBudget {
		return request, false, 0
	}
	if pause := queue.pausedUntil.Sub(now); pause > 0 && (queue.pausedVersion == "" || queue.pausedVersion == version) {
		return request, false, pause
	}
	queue.sort()
	for _, c := range queue.order {
		if c.mayGo(now, room) {
			queue.remove(c.request)
			queue.inFlight++
			b.taken[c.request] = false
			return c.request, true, 0
		}
		wait = earliest(wait, c.dueAt.Sub(now))
	}
	return request, false, wait
}

// done gives a request back, and reports whether it was placed again meanwhile.
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

// spend notes that an eviction used up some room of that version of the budget, and returns
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

// pause lets no request under the budget go for a while, or until the budget has another
// version, if one is given.
func (b *budgetQueues) pause(budget types.NamespacedName, until time.Time, version string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queue(budget)
	queue.pausedUntil, queue.pausedVersion = until, version
}

// queue returns the queue of a budget, which it creates if need be.
func (b *budgetQueues) queue(budget types.NamespacedName) *budgetQueue {
	queue := b.queues[budget]
	if queue == nil {
		queue = &budgetQueue{related: sets.New[types.NamespacedName](), waiting: map[types.NamespacedName]*candidate{}}
		b.queues[budget] = queue
	}
	return queue
}

// leave ends the relation of a request to a budget.
func (b *budgetQueues) leave(budget, request types.NamespacedName) {
	if queue := b.queues[budget]; queue != nil {
		queue.related.Delete(request)
		queue.remove(request)
		b.discard(budget)
	}
}

// discard drops the queue of a budget that nothing is related to.
func (b *budgetQueues) discard(budget types.NamespacedName) {
	if queue := b.queues[budget]; queue.related.Len() == 0 && queue.inFlight == 0 {
		delete(b.queues, budget)
	}
}

// put adds a candidate, or brings up to date the one of that request.
func (q *budgetQueue) put(c candidate) {
	if known := q.waiting[c.request]; known != nil {
		if known.created.Equal(c.created) {
			known.healthy, known.dueAt = c.healthy, c.dueAt
			return
		}
		q.remove(c.request) // Another request of that name.
	}
	q.waiting[c.request] = &c
	q.sorted = q.sorted && (len(q.order) == 0 || compareAge(q.order[len(q.order)-1], &c) <= 0)
	q.order = append(q.order, &c)
}

func (q *budgetQueue) remove(request types.NamespacedName) {
	if known := q.waiting[request]; known != nil {
		known.gone = true
		delete(q.waiting, request)
	}
}

// sort brings order into order. It costs little where requests come in the order of their
// age, and leave from the front.
func (q *budgetQueue) sort() {
	for len(q.order) > 0 && q.order[0].gone {
		q.order[0] = nil
		q.order = q.order[1:]
	}
	if len(q.order) > len(q.waiting) {
		q.order = slices.DeleteFunc(q.order, func(c *candidate) bool { return c.gone })
	}
	if !q.sorted {
		slices.SortFunc(q.order, compareAge)
		q.sorted = true
	}
}
