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
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
)

// Whatever number of pods waits for a budget that allows no eviction, the API server is asked about one
// of them: the probe. Its answer, the verdict, is recorded in the requests of all, once. What follows
// decides when the next probe is due, and whose request is to be recorded.

const (
	// budgetProbeInterval is the minimum time between two probes under a budget, and between two attempts in
	// a row that the API server refuses although the cached budget allows them.
	budgetProbeInterval = 10 * time.Second

	// quietPeriod is how long a budget must not have let a pod go, nor have changed, before the API
	// server is asked about it and refusals are recorded: most pods under a budget that lets one after
	// the other go are gone sooner than their refusal is of use. It is also how long the cache may lack
	// an eviction.
	quietPeriod = 10 * time.Second

	// maxVerdictAge is how old a verdict may be when it is recorded in another request.
	maxVerdictAge = time.Minute
)

// verdict is what the API server has said about a budget that allows nothing, as far as the cache
// knows. It is lost in a restart; what the requests say is sufficient to go on.
type verdict struct {
	// refusals counts the probes that the budget has refused since it moved. If it is not zero, detail
	// is the last answer.
	refusals int
	detail   string
	// probing is whether a probe is in flight. askedAt is when the last one was sent or answered.
	probing bool
	askedAt time.Time
	// movedAt is when the budget has let a pod go, or its spec has changed.
	movedAt time.Time
	// ahead is whether the API server has allowed an eviction that version aheadOf of the budget in the
	// cache does not allow.
	ahead   bool
	aheadOf string
	// uid and generation are those of the spec.
	uid        types.UID
	generation int64
}

// move forgets what the API server has said, because it no longer holds.
func (v *verdict) move(now time.Time) {
	v.refusals, v.detail, v.movedAt, v.ahead = 0, "", now, false
}

// notice takes note of the spec of the budget. A new spec makes the verdict void. If its status is older
// than that, the disruption controller is about to count.
func (b *budgetQueues) notice(budget *policyv1.PodDisruptionBudget, now time.Time) {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queues[keyOf(budget)]
	if queue == nil {
		return
	}
	v := &queue.verdict
	if v.uid == budget.UID && v.generation == budget.Generation {
		return
	}
	known := v.generation > 0
	v.uid, v.generation = budget.UID, budget.Generation
	if known || budget.Status.ObservedGeneration < budget.Generation {
		v.move(now)
	}
}

// moved takes note of an eviction under the budget. ahead is whether this version of it, the one in the
// cache, does not allow it.
func (b *budgetQueues) moved(budget types.NamespacedName, version string, now time.Time, ahead bool) {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queue(budget)
	queue.verdict.move(now)
	queue.verdict.ahead, queue.verdict.aheadOf = ahead, version
	queue.contendedVersion = ""
}

// asked takes note that a probe was sent or answered.
func (b *budgetQueues) asked(budget types.NamespacedName, now time.Time) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.queue(budget).verdict.askedAt = now
}

// refused takes note of a verdict, which is void if the spec has changed since the probe was sent.
func (b *budgetQueues) refused(budget *policyv1.PodDisruptionBudget, detail string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	v := &b.queue(keyOf(budget)).verdict
	if v.uid != budget.UID || v.generation != budget.Generation {
		return
	}
	v.refusals++
	v.detail, v.ahead = detail, false
}

// probe takes the request about whose pod the API server is to be asked now, although this version of
// the budget allows no eviction of it, not even without those that it does not have yet. If it is not
// the time for that, it returns the delay until then. Zero means that only a change can require it.
func (b *budgetQueues) probe(budget types.NamespacedName, version string, now time.Time, allowance poddisruptionbudget.Allowance) (request types.NamespacedName, found bool, wait time.Duration) {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queues[budget]
	if queue == nil || queue.verdict.probing || len(queue.waiting) == 0 {
		return request, false, 0
	}
	if pause := queue.pause(now, version); pause > 0 {
		return request, false, pause
	}
	// The candidates are searched only if it can be the time for one of them.
	due := queue.verdict.notBefore(version)
	var c *candidate
	if !now.Before(due) {
		if c, due = queue.nextProbe(version, now, due, allowance); c == nil {
			return request, false, 0
		}
	}
	if wait := due.Sub(now); wait > 0 {
		return request, false, wait
	}
	queue.verdict.probing = true
	return b.take(queue, c), true, 0
}

// isAhead reports whether the API server is known to be ahead of this version of the budget.
func (v *verdict) isAhead(version string) bool { return v.ahead && v.aheadOf == version }

// notBefore returns the time before which no probe is sent, whoever waits.
func (v *verdict) notBefore(version string) time.Time {
	if v.isAhead(version) { // Others may be allowed as well.
		return v.movedAt.Add(contentionPause)
	}
	asked, quiet := v.askedAt.Add(budgetProbeInterval), v.movedAt.Add(quietPeriod)
	if quiet.After(asked) {
		return quiet
	}
	return asked
}

// nextProbe returns the candidate for the next probe, and when it is due, which is not before
// notBefore. Requests that something else has refused say nothing about the budget, and hear nothing
// from others: they are tried one by one, when their own back-off is over and the budget needs no
// probe.
func (q *budgetQueue) nextProbe(version string, now, notBefore time.Time, allowance poddisruptionbudget.Allowance) (*candidate, time.Time) {
	waits := func(c *candidate) bool { return !allowance.Allows(c.healthy) }
	c := q.first(func(c *candidate) bool { return waits(c) && c.report != reportOther })
	other := q.first(func(c *candidate) bool { return waits(c) && c.report == reportOther })
	switch {
	case c == nil:
		return other, notBefore
	case q.verdict.isAhead(version):
		return c, notBefore
	}
	due := q.probeDue(waits)
	if other != nil && now.Before(due) {
		return other, notBefore
	}
	return c, due
}

// probeDue returns when the next probe is due for requests that no other reason keeps. For one that
// does not say yet why it waits, the verdict must be young. Otherwise the delay doubles with each
// refusal. After a restart, it follows from what the requests say.
func (q *budgetQueue) probeDue(waits func(*candidate) bool) time.Time {
	v, fresh, backoff := &q.verdict, false, time.Time{}
	for _, c := range q.waiting {
		switch {
		case !waits(c):
		case c.report == reportNone:
			fresh = true
		case c.report == reportBudget && c.dueAt.After(backoff):
			backoff = c.dueAt
		}
	}
	switch {
	case fresh && v.refusals == 0:
		return time.Time{}
	case fresh:
		return v.askedAt.Add(maxVerdictAge)
	case v.refusals > 0:
		return v.askedAt.Add(retryDelay(int32(v.refusals)))
	case !v.movedAt.IsZero():
		return v.movedAt.Add(minRetryDelay)
	}
	return backoff
}

// probed returns the request of a probe, and reports whether place was called for it in the meantime.
func (b *budgetQueues) probed(budget, request types.NamespacedName) (again bool) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if queue := b.queues[budget]; queue != nil {
		queue.verdict.probing = false
		b.discard(budget)
	}
	return b.release(request)
}

// unrecorded takes the oldest request in which the verdict is to be recorded, and returns its detail.
// If there is none, it returns the delay after which there may be one without any change. Zero means
// never.
func (b *budgetQueues) unrecorded(budget types.NamespacedName, now time.Time, allowance poddisruptionbudget.Allowance) (request types.NamespacedName, detail string, found bool, wait time.Duration) {
	b.lock.Lock()
	defer b.lock.Unlock()
	queue := b.queues[budget]
	if queue == nil || queue.verdict.refusals == 0 || now.Sub(queue.verdict.askedAt) >= maxVerdictAge {
		return request, "", false, 0 // The next probe comes first.
	}
	queue.sort()
	for _, c := range queue.order {
		if c.removed || c.report != reportNone || allowance.Allows(c.healthy) {
			continue
		}
		if delay := c.recordAfter.Sub(now); delay > 0 {
			wait = earliest(wait, delay)
			continue
		}
		return b.take(queue, c), queue.verdict.detail, true, 0
	}
	return request, "", false, wait
}

// recorded returns a request of unrecorded, and reports whether place was called for it in the
// meantime.
func (b *budgetQueues) recorded(request types.NamespacedName) (again bool) {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.release(request)
}
