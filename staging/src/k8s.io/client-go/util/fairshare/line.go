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
	// slowAnswer is how long the work on one item takes at least that makes its tenant slow.
	// A busy API server takes up to three seconds for an eviction; what takes longer waits,
	// for a webhook for example.
	slowAnswer = 5 * time.Second

	// slowMemory and quickMemory are for how long an answer says something of its tenant. Each
	// time that a tenant may count as quick, its calls can hang in all the places that it gets.
	slowMemory  = 30 * time.Minute
	quickMemory = 5 * time.Minute

	// hiccup is how long after slow work other work has to begin that counts as slow again.
	hiccup = time.Minute
)

var memory = [unknown]time.Duration{slow: slowMemory, quick: quickMemory}

// standing is what the answers of a tenant say.
type standing int

const (
	// slow is a tenant of which an item takes slowAnswer now, or took it twice.
	slow standing = iota
	// quick is another tenant, of which an item took less.
	quick
	// unknown is one without a quick answer in the memory.
	unknown
	standings
)

// Line is what waits for places, and what has one. Each item is of a tenant. Its caller has
// at most one equal item waiting at a time, and makes its calls one after the other.
//
// Nothing can stand still without a timer. The places of slow and unknown tenants, and those of
// one tenant, are bounded by one or more. So when a bound holds back what waits, something
// that counts for this bound has a place, and its Release makes room. How many places are free
// changes with Pop and Release alone, too.
type Line[T comparable] struct {
	clock            clock.PassiveClock
	total, perTenant int // See Limit.

	tenants map[string]*tenant[T]
	waiting int
	// running has a place, in the order of its beginning, or of Pop if it has not begun.
	running []*work[T]
	// places counts these by the standing of their tenants.
	places [standings]int
	// ready are the tenants of which an item may be taken as far as it is up to them alone.
	// Turns number these over all heaps.
	ready [standings]readyTenants[T]
	turns uint64
	// answered are the tenants with an answer of that kind in the memory, the oldest first.
	answered [unknown]list.List
}

// work is an item that has a place.
type work[T comparable] struct {
	tenant *tenant[T]
	item   T
	began  time.Time // Zero before Begin.
	slow   bool      // It takes slowAnswer already.
}

type tenant[T comparable] struct {
	name     string
	standing standing
	places   int
	// first waits before the others; waiting has the elements of both.
	first, others list.List
	waiting       map[T]*list.Element
	// ready is its index in Line.ready, -1 if it is not there; turn is its turn among those
	// with as many places.
	ready int
	turn  uint64
	// slowWork counts its items that take slowAnswer now. timesSlow is how often some did in
	// the memory, lastSlow when that was counted last.
	slowWork, timesSlow int
	lastSlow            time.Time
	// answered is its place in Line.answered, until when it stays there.
	answered [unknown]*list.Element
	until    [unknown]time.Time
}

// readyTenants is a heap: the tenant with the fewest places is the first, and of several that
// have as many the one whose turn it is.
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

// NewLine returns a line with any number of places.
func NewLine[T comparable](clock clock.PassiveClock) *Line[T] {
	return &Line[T]{clock: clock, tenants: map[string]*tenant[T]{}}
}

// Limit sets how many places there are, and how many of them one tenant may have. If total is
// zero, there is any number of places, also for one tenant; if perTenant is zero, no share is
// bounded.
func (l *Line[T]) Limit(total, perTenant int) {
	if total == 0 {
		perTenant = 0
	}
	l.total, l.perTenant = total, perTenant
	for _, name := range slices.Sorted(maps.Keys(l.tenants)) {
		l.update(l.tenants[name])
	}
}

// Push adds an item behind the others of its tenant.
func (l *Line[T]) Push(name string, item T) {
	t := l.tenant(name)
	t.waiting[item] = t.others.PushBack(item)
	l.waiting++
	l.update(t)
}

// PushFirst adds an item that goes before those of Push, behind others of PushFirst.
func (l *Line[T]) PushFirst(name string, item T) {
	t := l.tenant(name)
	t.waiting[item] = t.first.PushBack(item)
	l.waiting++
	l.update(t)
}

func (l *Line[T]) tenant(name string) *tenant[T] {
	t := l.tenants[name]
	if t == nil {
		t = &tenant[T]{name: name, standing: unknown, ready: -1, waiting: map[T]*list.Element{}}
		l.tenants[name] = t
	}
	return t
}

// Len is how many items wait.
func (l *Line[T]) Len() int { return l.waiting }

// Pop takes the next item that may have a place, which it has until Release. It is of the
// tenant with the fewest places; those with as many have their turns.
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
	l.unready(t) // It comes to be the last in turn.
	l.running = append(l.running, &work[T]{tenant: t, item: item})
	t.places++
	l.places[t.standing]++
	l.update(t)
	return item, true
}

// Remove takes an item out that waits, if it does.
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

// Begin says that the work on an item that has a place begins: it counts from then on how long
// that takes. It has no effect later.
func (l *Line[T]) Begin(item T) {
	i := l.place(item)
	if i < 0 || !l.running[i].began.IsZero() {
		return
	}
	w := l.running[i]
	w.began = l.clock.Now()
	l.running = append(slices.Delete(l.running, i, i+1), w)
}

// Release gives the place of the item back. Without Begin, that says nothing of its tenant. It
// may let several items have a place: the caller asks for them with Pop.
func (l *Line[T]) Release(item T) {
	i := l.place(item)
	if i < 0 {
		return
	}
	now, w := l.clock.Now(), l.running[i]
	l.age(now)
	l.running = slices.Delete(l.running, i, i+1)
	w.tenant.places--
	l.places[w.tenant.standing]--
	if !w.began.IsZero() {
		l.answer(w, now)
	}
	l.update(w.tenant)
}

// place is the index of the item in what is running, or -1.
func (l *Line[T]) place(item T) int {
	return slices.IndexFunc(l.running, func(w *work[T]) bool { return w.item == item })
}

// next returns the tenant whose turn it is, or nil.
func (l *Line[T]) next() *tenant[T] {
	l.age(l.clock.Now())
	if l.total > 0 && len(l.running) >= l.total {
		return nil
	}
	var next *tenant[T]
	for s := range standings {
		if len(l.ready[s]) == 0 || !l.mayHaveMore(s) {
			continue
		}
		// Where the one with the fewest places may not have more, no other may.
		if t := l.ready[s][0]; l.leavesEnough(t) && (next == nil || t.compare(next) < 0) {
			next = t
		}
	}
	return next
}

// mayHaveMore reports whether the tenants of that standing may have another place: slow ones
// have half together, and three quarters with those that may turn out to be slow.
func (l *Line[T]) mayHaveMore(s standing) bool {
	switch {
	case l.perTenant == 0 || s == quick:
		return true
	case s == slow && l.places[slow] >= max(1, l.total/2):
		return false
	}
	return l.places[slow]+l.places[unknown] < max(1, l.total*3/4)
}

// leavesEnough reports whether enough places stay free for others when the tenant takes another
// one: the more it has, the more, in the proportion in which one tenant alone has perTenant and
// leaves the rest, but never more than it has itself. So several tenants that take what they
// get never have all, and one without a place gets one: nobody knows which of the quick ones
// will hang next. Switches share their buffers by such dynamic thresholds.
func (l *Line[T]) leavesEnough(t *tenant[T]) bool {
	free := l.total - len(l.running) - 1
	return l.perTenant == 0 || t.places == 0 || t.places*min(l.perTenant, l.total-l.perTenant) <= l.perTenant*free
}

// share is how many places the tenant may have. One that was never quick in the memory gets
// few, so that it takes many of those to fill what they have together.
func (l *Line[T]) share(t *tenant[T]) int {
	if t.answered[quick] == nil {
		return max(1, min(l.perTenant, l.total/8))
	}
	return l.perTenant
}

// age brings up to date what time has changed.
func (l *Line[T]) age(now time.Time) {
	for _, w := range l.running {
		if w.slow || w.began.IsZero() {
			continue
		}
		if now.Sub(w.began) < slowAnswer {
			break
		}
		w.slow = true
		w.tenant.slowWork++
		l.update(w.tenant)
	}
	for s := range unknown {
		for front := l.answered[s].Front(); front != nil; front = l.answered[s].Front() {
			t := front.Value.(*tenant[T])
			if now.Before(t.until[s]) {
				break
			}
			l.answered[s].Remove(front)
			t.answered[s] = nil
			l.update(t)
		}
	}
}

// answer notes how long the work took. What was going on at about the same time counts as slow
// once: an API server that hangs for a moment does not make all tenants slow for long.
func (l *Line[T]) answer(w *work[T], now time.Time) {
	t := w.tenant
	if !w.slow {
		l.remember(t, quick, now)
		return
	}
	t.slowWork--
	if t.answered[slow] == nil {
		t.timesSlow = 0
	}
	if t.timesSlow == 0 || w.began.Sub(t.lastSlow) >= hiccup {
		t.timesSlow++
		t.lastSlow = now
	}
	l.remember(t, slow, now)
}

// remember notes an answer of the tenant.
func (l *Line[T]) remember(t *tenant[T], s standing, now time.Time) {
	t.until[s] = now.Add(memory[s])
	if t.answered[s] == nil {
		t.answered[s] = l.answered[s].PushBack(t)
	}
	l.answered[s].MoveToBack(t.answered[s])
}

// update brings up to date what follows from the places and answers of a tenant, and from
// what of it waits. Who comes to be ready is the last in turn.
func (l *Line[T]) update(t *tenant[T]) {
	now := unknown
	switch {
	case t.slowWork > 0, t.answered[slow] != nil && t.timesSlow > 1:
		now = slow
	case t.answered[quick] != nil:
		now = quick
	}
	ready := len(t.waiting) > 0 && (l.perTenant == 0 || t.places < l.share(t))
	if !ready || now != t.standing {
		l.unready(t)
	}
	l.places[t.standing] -= t.places
	l.places[now] += t.places
	t.standing = now
	switch {
	case ready && t.ready < 0:
		l.turns++
		t.turn = l.turns
		heap.Push(&l.ready[now], t)
	case ready:
		heap.Fix(&l.ready[now], t.ready) // It may have another number of places.
	}
	if len(t.waiting)+t.places == 0 && t.answered == [unknown]*list.Element{} {
		delete(l.tenants, t.name)
	}
}

func (l *Line[T]) unready(t *tenant[T]) {
	if t.ready >= 0 {
		heap.Remove(&l.ready[t.standing], t.ready)
	}
}
