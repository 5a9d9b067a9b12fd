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
	"cmp"
	"container/heap"
	"container/list"
	"maps"
	"slices"
	"time"

	"k8s.io/utils/clock"
)

const (
	// slowThreshold is the minimum duration of a slow item. A busy API server takes up to three
	// seconds for an eviction. A longer call waits, for example for a webhook.
	slowThreshold = 5 * time.Second

	// slowWindow and quickWindow are how long an item counts for its tenant. Whenever a tenant
	// counts as quick, its calls can hang in all the places that it gets.
	slowWindow  = 30 * time.Minute
	quickWindow = 5 * time.Minute

	// slowInterval is how long after slow work other work must begin to count as slow again.
	slowInterval = time.Minute
)

var window = [unknown]time.Duration{slow: slowWindow, quick: quickWindow}

// class is the classification of a tenant by its items.
type class int

const (
	// slow is a tenant with a slow item in progress, or with two in the window.
	slow class = iota
	// quick is any other tenant with a quick item in the window.
	quick
	// unknown is any other tenant.
	unknown
	numClasses
)

// Line holds the items that wait for a place and those that have one. Each item belongs to a
// tenant. An item must not be waiting twice, and calls must not be concurrent.
//
// It makes progress without a timer. The places of slow and unknown tenants together, and those of
// one tenant, are limited to one or more. So when a limit holds back a waiting item, an item that
// counts toward this limit has a place, and its Release allows the next one. The number of free
// places also changes with Pop and Release only.
type Line[T comparable] struct {
	clock            clock.PassiveClock
	total, perTenant int // See Limit.

	tenants map[string]*tenant[T]
	waiting int
	// running has the items with a place, in the order of Begin, or of Pop before Begin.
	running []*work[T]
	// places counts them by the class of their tenants.
	places [numClasses]int
	// ready holds the tenants that have waiting items and are below their own limit. turns numbers
	// them across all heaps.
	ready [numClasses]readyTenants[T]
	turns uint64
	// recent has the tenants with such an item in the window, the oldest first.
	recent [unknown]list.List
}

// work is an item that has a place.
type work[T comparable] struct {
	tenant *tenant[T]
	item   T
	began  time.Time // Zero before Begin.
	slow   bool      // It takes slowThreshold or longer.
}

type tenant[T comparable] struct {
	name   string
	class  class
	places int
	// first is served before others; waiting has the elements of both.
	first, others list.List
	waiting       map[T]*list.Element
	// ready is the index in Line.ready, or -1. turn is the order among tenants with the same number
	// of places.
	ready int
	turn  uint64
	// slowWork counts the slow items in progress. timesSlow counts the slow items in the window,
	// and lastSlow is when it last increased.
	slowWork, timesSlow int
	lastSlow            time.Time
	// recent is the element in Line.recent, and until is when it expires.
	recent [unknown]*list.Element
	until  [unknown]time.Time
}

// readyTenants is a heap: the first tenant has the fewest places, and the earliest turn of those
// with the same number.
type readyTenants[T comparable] []*tenant[T]

func (r readyTenants[T]) Len() int           { return len(r) }
func (r readyTenants[T]) Less(i, j int) bool { return r[i].compare(r[j]) < 0 }
func (r readyTenants[T]) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].ready, r[j].ready = i, j
}

func (r *readyTenants[T]) Push(x any) {
	t := x.(*tenant[T])
	t.ready = len(*r)
	*r = append(*r, t)
}

func (r *readyTenants[T]) Pop() any {
	last := len(*r) - 1
	t := (*r)[last]
	(*r)[last] = nil
	*r = (*r)[:last]
	t.ready = -1
	return t
}

func (t *tenant[T]) compare(other *tenant[T]) int {
	return cmp.Or(cmp.Compare(t.places, other.places), cmp.Compare(t.turn, other.turn))
}

// NewLine returns a line with an unlimited number of places.
func NewLine[T comparable](clock clock.PassiveClock) *Line[T] {
	return &Line[T]{clock: clock, tenants: map[string]*tenant[T]{}}
}

// Limit sets the total number of places and the maximum for one tenant. If total is zero, there is
// no limit at all. If perTenant is zero, only the total is limited.
func (l *Line[T]) Limit(total, perTenant int) {
	if total == 0 {
		perTenant = 0
	}
	l.total, l.perTenant = total, perTenant
	for _, name := range slices.Sorted(maps.Keys(l.tenants)) {
		l.update(l.tenants[name])
	}
}

// Push adds an item after the other items of its tenant.
func (l *Line[T]) Push(name string, item T) {
	t := l.tenant(name)
	t.waiting[item] = t.others.PushBack(item)
	l.waiting++
	l.update(t)
}

// PushFirst adds an item before the items added by Push and after those added by PushFirst.
func (l *Line[T]) PushFirst(name string, item T) {
	t := l.tenant(name)
	t.waiting[item] = t.first.PushBack(item)
	l.waiting++
	l.update(t)
}

func (l *Line[T]) tenant(name string) *tenant[T] {
	t := l.tenants[name]
	if t == nil {
		t = &tenant[T]{name: name, class: unknown, ready: -1, waiting: map[T]*list.Element{}}
		l.tenants[name] = t
	}
	return t
}

// Len returns the number of waiting items.
func (l *Line[T]) Len() int { return l.waiting }

// Pop returns the next item that may have a place. It keeps the place until Release. It belongs to
// the tenant with the fewest places. Tenants with the same number take turns.
func (l *Line[T]) Pop() (item T, found bool) {
	t := l.next()
	if t == nil {
		return item, false
	}
	element := t.first.Front()
	if element == nil {
		element = t.others.Front()
	}
	item = element.Value.(T)
	l.drop(t, item)
	l.removeReady(t) // It is added again as the last in turn.
	l.running = append(l.running, &work[T]{tenant: t, item: item})
	t.places++
	l.places[t.class]++
	l.update(t)
	return item, true
}

// Remove removes an item that waits. It does nothing if the item does not wait.
func (l *Line[T]) Remove(name string, item T) {
	if t := l.tenants[name]; t != nil && t.waiting[item] != nil {
		l.drop(t, item)
		l.update(t)
	}
}

func (l *Line[T]) drop(t *tenant[T], item T) {
	t.first.Remove(t.waiting[item])
	t.others.Remove(t.waiting[item])
	delete(t.waiting, item)
	l.waiting--
}

// Begin starts to measure the duration of the work on an item that has a place. Further calls have
// no effect.
func (l *Line[T]) Begin(item T) {
	i := l.place(item)
	if i < 0 || !l.running[i].began.IsZero() {
		return
	}
	w := l.running[i]
	w.began = l.clock.Now()
	l.running = append(slices.Delete(l.running, i, i+1), w)
}

// Release releases the place of the item. Without Begin, it does not affect the class of the
// tenant. Several items may be able to have a place then: call Pop until it finds none.
func (l *Line[T]) Release(item T) {
	i := l.place(item)
	if i < 0 {
		return
	}
	now, w := l.clock.Now(), l.running[i]
	l.refresh(now)
	l.running = slices.Delete(l.running, i, i+1)
	w.tenant.places--
	l.places[w.tenant.class]--
	if !w.began.IsZero() {
		l.recordDuration(w, now)
	}
	l.update(w.tenant)
}

// place returns the index of the item in running, or -1.
func (l *Line[T]) place(item T) int {
	return slices.IndexFunc(l.running, func(w *work[T]) bool { return w.item == item })
}

// next returns the tenant that gets the next place, or nil.
func (l *Line[T]) next() *tenant[T] {
	l.refresh(l.clock.Now())
	if l.total > 0 && len(l.running) >= l.total {
		return nil
	}
	var next *tenant[T]
	for s := range numClasses {
		if len(l.ready[s]) == 0 || !l.belowClassLimit(s) {
			continue
		}
		// If the tenant with the fewest places may not have more, no other tenant of the class may.
		if t := l.ready[s][0]; l.leavesReserve(t) && (next == nil || t.compare(next) < 0) {
			next = t
		}
	}
	return next
}

// belowClassLimit reports whether the tenants of the class may have another place. Slow tenants
// have at most half of the places, and slow and unknown tenants three quarters.
func (l *Line[T]) belowClassLimit(s class) bool {
	switch {
	case l.perTenant == 0 || s == quick:
		return true
	case s == slow && l.places[slow] >= max(1, l.total/2):
		return false
	}
	return l.places[slow]+l.places[unknown] < max(1, l.total*3/4)
}

// leavesReserve reports whether enough places stay free for others if the tenant takes another one.
// The number grows with the places of the tenant, in the proportion in which a single tenant with
// perTenant places leaves the rest, but is never larger than the number of its places. So several
// busy tenants never have all places, and a tenant without a place gets one: any of the quick
// tenants may hang next. Network switches share their buffers by similar dynamic thresholds.
func (l *Line[T]) leavesReserve(t *tenant[T]) bool {
	free := l.total - len(l.running) - 1
	return l.perTenant == 0 || t.places == 0 || t.places*min(l.perTenant, l.total-l.perTenant) <= l.perTenant*free
}

// maxPlaces returns how many places the tenant may have. A tenant without a quick item in the
// window gets few, so that only many such tenants can fill their common limit.
func (l *Line[T]) maxPlaces(t *tenant[T]) int {
	if t.recent[quick] == nil {
		return max(1, min(l.perTenant, l.total/8))
	}
	return l.perTenant
}

// refresh applies the effects of the passage of time.
func (l *Line[T]) refresh(now time.Time) {
	for _, w := range l.running {
		if w.slow || w.began.IsZero() {
			continue
		}
		if now.Sub(w.began) < slowThreshold {
			break
		}
		w.slow = true
		w.tenant.slowWork++
		l.update(w.tenant)
	}
	for s := range unknown {
		for front := l.recent[s].Front(); front != nil; front = l.recent[s].Front() {
			t := front.Value.(*tenant[T])
			if now.Before(t.until[s]) {
				break
			}
			l.recent[s].Remove(front)
			t.recent[s] = nil
			l.update(t)
		}
	}
}

// recordDuration records how long the work took. Slow work that overlaps counts once: a short
// outage of the API server does not make all tenants slow for long.
func (l *Line[T]) recordDuration(w *work[T], now time.Time) {
	t := w.tenant
	if !w.slow {
		l.recordItem(t, quick, now)
		return
	}
	t.slowWork--
	if t.recent[slow] == nil {
		t.timesSlow = 0
	}
	if t.timesSlow == 0 || w.began.Sub(t.lastSlow) >= slowInterval {
		t.timesSlow++
		t.lastSlow = now
	}
	l.recordItem(t, slow, now)
}

// recordItem records an item of the tenant in the window of its class.
func (l *Line[T]) recordItem(t *tenant[T], s class, now time.Time) {
	t.until[s] = now.Add(window[s])
	if t.recent[s] == nil {
		t.recent[s] = l.recent[s].PushBack(t)
	}
	l.recent[s].MoveToBack(t.recent[s])
}

// update updates the state that depends on the places and items of a tenant. A tenant that becomes
// ready is the last in turn.
func (l *Line[T]) update(t *tenant[T]) {
	now := unknown
	switch {
	case t.slowWork > 0, t.recent[slow] != nil && t.timesSlow > 1:
		now = slow
	case t.recent[quick] != nil:
		now = quick
	}
	ready := len(t.waiting) > 0 && (l.perTenant == 0 || t.places < l.maxPlaces(t))
	if !ready || now != t.class {
		l.removeReady(t)
	}
	l.places[t.class] -= t.places
	l.places[now] += t.places
	t.class = now
	switch {
	case ready && t.ready < 0:
		l.turns++
		t.turn = l.turns
		heap.Push(&l.ready[now], t)
	case ready:
		heap.Fix(&l.ready[now], t.ready) // Its number of places may have changed.
	}
	if len(t.waiting)+t.places == 0 && t.recent == [unknown]*list.Element{} {
		delete(l.tenants, t.name)
	}
}

func (l *Line[T]) removeReady(t *tenant[T]) {
	if t.ready >= 0 {
		heap.Remove(&l.ready[t.class], t.ready)
	}
}
