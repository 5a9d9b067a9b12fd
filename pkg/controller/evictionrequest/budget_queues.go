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
	// dueAt is when the back-off ends that the request says.
	dueAt time.Time
	// recordAfter is the time before which its status is not written again: see imperativeInterceptor.
	recordAfter time.Time

	// healthy is whether the pod is ready, which is how budgets define healthy.
	healthy bool
	// report is what the request says about its last attempt.
	report report
	// removed marks a candidate that is no longer in the queue.
	removed bool
}

// report is what a request says about why its pod is not evicted.
type report int8

const (
	// reportNone: it says nothing about the budget for which it waits.
	reportNone report = iota
	// reportBudget: that budget refuses.
	reportBudget
	// reportOther: something else has refused the last attempt, such as a webhook.
	reportOther
)

// compareAge orders candidates by age, the oldest first.
func compareAge(a, b *candidate) int {
	return cmp.Or(a.created.Compare(b.created),
		strings.Compare(a.request.Namespace, b.request.Namespace), strings.Compare(a.request.Name, b.request.Name))
}

// budgetQueues holds, for each PodDisruptionBudget, the requests whose pods wait for an eviction
// under it. A worker takes a request with next and returns it with done; budget_verdicts.go has the
// other ways to take one. It is safe for concurrent use. It is derived from the caches: a restart
// empties it.
type budgetQueues struct {
	lock   sync.Mutex
	queues map[types.NamespacedName]*budgetQueue
	// budgets holds the budgets that select the pod of each request.
	budgets map[types.NamespacedName][]types.NamespacedName
	// taken holds the requests that are being evicted or recorded, and whether place was called for
	// them since.
	taken map[types.NamespacedName]bool
}

// budgetQueue is the queue of one budget.
type budgetQueue struct {
	// key is that of the budget, alone. Its requests share it.
	key []types.NamespacedName
	// related holds all requests whose pods the budget selects, including those that do not wait in
	// this queue.
	related sets.Set[types.NamespacedName]
	waiting map[types.NamespacedName]*candidate
	// order holds the waiting candidates and some removed ones. sorted reports whether it is sorted
	// by age.
	order  []*candidate
	sorted bool
	// unhealthy is how many of waiting are not healthy.
	unhealthy int

	// inFlight counts the evictions that the cached budget allows.
	inFlight int
	// pace limits inFlight.
	pace pace
	// spent counts the evictions since the cached version of the budget, the last of which was at
	// spentAt.
	spent        int
	spentVersion string
	spentAt      time.Time
	// No request is taken before pausedUntil. A pause with a version ends earlier if the version of
	// the budget changes.
	pausedUntil   time.Time
	pausedVersion string
	// contentions counts the pauses because of contention under contendedVersion.
	contentions      int
	contendedVersion string
	// verdict is what the API server has said about the budget.
	verdict verdict
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
	switch len(budgets) {
	case 0:
		delete(b.budgets, request)
	case 1:
		b.budgets[request] = b.queue(budgets[0]).key
	default:
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
func (b *budgetQueues) used(budget types.NamespacedName, version string, now time.Time) int {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queues[budget]
	switch {
	case queue == nil:
		return 0
	case queue.spentUntil(version).After(now):
		return queue.spent + queue.inFlight
	}
	return queue.inFlight
}

// spentUntil returns until when the evictions since this version of the budget count. The next version
// has them and comes with the watch. If it does not come, the API server knows better: an eviction of a
// pod that it saw terminate already, for example, has changed nothing.
func (q *budgetQueue) spentUntil(version string) time.Time {
	if q.spent == 0 || q.spentVersion != version {
		return time.Time{}
	}
	return q.spentAt.Add(quietPeriod)
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

// next takes the request that is to be evicted next of those that the budget allows: first pods that are
// not ready, whose evictions cost the budget nothing or leave it what the ready ones need, then the oldest. If there
// is none, it returns the delay after which there may be one without any change. Zero means never.
func (b *budgetQueues) next(budget types.NamespacedName, version string, now time.Time, allowance poddisruptionbudget.Allowance) (request types.NamespacedName, found bool, wait time.Duration) {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queues[budget]
	if queue == nil || queue.inFlight >= queue.pace.limit {
		return request, false, 0
	}
	if pause := queue.pause(now, version); pause > 0 {
		return request, false, pause
	}
	c := queue.first(func(c *candidate) bool { return allowance.Allows(c.healthy) })
	if c == nil {
		return request, false, max(0, queue.spentUntil(version).Sub(now))
	}
	queue.inFlight++
	return b.take(queue, c), true, 0
}

// take removes a candidate from its queue while its request is being evicted or recorded.
func (b *budgetQueues) take(queue *budgetQueue, c *candidate) types.NamespacedName {
	queue.remove(c.request)
	b.taken[c.request] = false
	return c.request
}

// release ends what take began, and reports whether place was called in the meantime.
func (b *budgetQueues) release(request types.NamespacedName) (again bool) {
	again = b.taken[request]
	delete(b.taken, request)
	return again
}

// done returns a request, and reports whether place was called for it in the meantime.
func (b *budgetQueues) done(budget, request types.NamespacedName) (again bool) {
	b.lock.Lock()
	defer b.lock.Unlock()
	again = b.release(request)
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

// spend records that an eviction used up a disruption of this version of the budget.
func (b *budgetQueues) spend(budget types.NamespacedName, version string, now time.Time) {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queue(budget)
	if queue.spentVersion != version {
		queue.spent, queue.spentVersion = 0, version
	}
	queue.spent++
	queue.spentAt = now
}

// pause takes no request under the budget until the given time.
func (b *budgetQueues) pause(budget types.NamespacedName, until time.Time) {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queue(budget)
	queue.pausedUntil, queue.pausedVersion = until, ""
}

// contend takes no request under the budget for a while or until it has another version, because the
// API server contradicts this one. If that does not come, the next pauses are longer.
func (b *budgetQueues) contend(budget types.NamespacedName, version string, now time.Time) {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queue(budget)
	if queue.pause(now, version) > 0 {
		return // Several evictions were in flight.
	}
	if queue.contendedVersion != version {
		queue.contentions, queue.contendedVersion = 0, version
	}
	pause := contentionPause
	for i := 0; i < queue.contentions && pause < budgetProbeInterval; i++ {
		pause *= 2
	}
	queue.contentions++
	queue.pausedUntil, queue.pausedVersion = now.Add(min(pause, budgetProbeInterval)), version
}

// pause returns how much longer no request is taken under this version of the budget.
func (q *budgetQueue) pause(now time.Time, version string) time.Duration {
	if q.pausedVersion != "" && q.pausedVersion != version {
		return 0
	}
	return max(0, q.pausedUntil.Sub(now))
}

// first returns the candidate to take next of those that match: the oldest that is not healthy, or else the
// oldest.
func (q *budgetQueue) first(matches func(*candidate) bool) *candidate {
	q.sort()
	var oldest *candidate
	for _, c := range q.order {
		switch {
		case c.removed || !matches(c):
		case !c.healthy || q.unhealthy == 0:
			return c
		case oldest == nil:
			oldest = c
		}
	}
	return oldest
}

// queue returns the queue of a budget. It creates one if there is none.
func (b *budgetQueues) queue(budget types.NamespacedName) *budgetQueue {
	queue := b.queues[budget]
	if queue == nil {
		queue = &budgetQueue{key: []types.NamespacedName{budget}, related: sets.New[types.NamespacedName](), waiting: map[types.NamespacedName]*candidate{}, pace: newPace()}
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
	if queue := b.queues[budget]; queue.related.Len() == 0 && queue.inFlight == 0 && !queue.verdict.probing {
		delete(b.queues, budget)
	}
}

// put adds a candidate, or updates the existing one of the same request.
func (q *budgetQueue) put(c candidate) {
	if known := q.waiting[c.request]; known != nil {
		if known.created.Equal(c.created) {
			q.unhealthy += unhealthy(&c) - unhealthy(known)
			known.healthy, known.report, known.dueAt, known.recordAfter = c.healthy, c.report, c.dueAt, c.recordAfter
			return
		}
		q.remove(c.request) // Another request of the same name.
	}
	q.waiting[c.request] = &c
	q.unhealthy += unhealthy(&c)
	q.sorted = q.sorted && (len(q.order) == 0 || compareAge(q.order[len(q.order)-1], &c) <= 0)
	q.order = append(q.order, &c)
}

func (q *budgetQueue) remove(request types.NamespacedName) {
	if known := q.waiting[request]; known != nil {
		known.removed = true
		q.unhealthy -= unhealthy(known)
		delete(q.waiting, request)
	}
}

// unhealthy counts a candidate if it is not healthy.
func unhealthy(c *candidate) int {
	if c.healthy {
		return 0
	}
	return 1
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
