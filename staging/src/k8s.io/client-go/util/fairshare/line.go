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

	// memory is for how long an answer says something of its tenant. It is many times what a
	// call may last: a tenant that is slow each time never counts as quick in between.
	memory = 5 * time.Minute
)

// standing is what the answers of a tenant say.
type standing int

const (
	// slow is a tenant of which an item took slowAnswer, or does now.
	slow standing = iota
	// quick is another tenant, of which an item took less.
	quick
	// unknown is one without an answer in the memory.
	unknown
	standings
)

// Line is what waits for places, and what has one. Each item is of a tenant. Its caller has
// at most one equal item waiting at a time, and makes its calls one after the other.
//
// Nothing can stand still without a timer. The places of slow and unknown tenants, and those of
// one tenant, are bounded by one or more. So when a bound holds back what waits, something
// that counts for this bound has a place, and its Release makes room.
type Line[T comparable] struct {
	clock            clock.PassiveClock
	total, perTenant int // See Limit.

	tenants map[string]*tenant[T]
	waiting int
	// running has a place, in the order of its beginning.
	running []work[T]
	// places counts these by the standing of their tenants.
	places [standings]int
	// ready are the tenants of which an item may be taken as far as it is up to them alone, the
	// next one first. Turns number these over all lists.
	ready [standings]list.List
	turns uint64
	// answered are the tenants with an answer of that kind in the memory, the oldest first.
	answered [unknown]list.List
}

// work is an item that has a place.
type work[T comparable] struct {
	tenant *tenant[T]
	item   T
	began  time.Time
}

type tenant[T comparable] struct {
	name     string
	standing standing
	places   int
	// first waits before the others; waiting has the elements of both.
	first, others list.List
	waiting       map[T]*list.Element
	// ready and turn are its place in Line.ready.
	ready *list.Element
	turn  uint64
	// answered is its place in Line.answered, until when it stays there.
	answered [unknown]*list.Element
	until    [unknown]time.Time
}

// NewLine returns a line with any number of places.
func NewLine[T comparable](clock clock.PassiveClock) *Line[T] {
	return &Line[T]{clock: clock, tenants: map[string]*tenant[T]{}}
}

// Limit sets how many places there are, zero being any number, and how many of them one tenant
// may have. If perTenant is zero, no share is bounded.
func (l *Line[T]) Limit(total, perTenant int) {
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
		t = &tenant[T]{name: name, standing: unknown, waiting: map[T]*list.Element{}}
		l.tenants[name] = t
	}
	return t
}

// Len is how many items wait.
func (l *Line[T]) Len() int { return l.waiting }

// Pop takes the next item that may have a place, which it has until Release. The next item
// after it is of another tenant, if there is one.
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
	l.running = append(l.running, work[T]{tenant: t, item: item, began: l.clock.Now()})
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

// Release gives the place of the item back. That may let several items have one: the caller
// asks for them with Pop.
func (l *Line[T]) Release(item T) {
	i := slices.IndexFunc(l.running, func(w work[T]) bool { return w.item == item })
	if i < 0 {
		return
	}
	w := l.running[i]
	l.running = slices.Delete(l.running, i, i+1)
	w.tenant.places--
	l.places[w.tenant.standing]--
	if now := l.clock.Now(); now.Sub(w.began) < slowAnswer {
		l.remember(w.tenant, quick, now)
	} else {
		l.remember(w.tenant, slow, now)
	}
	l.update(w.tenant)
}

// next returns the tenant whose turn it is, or nil.
func (l *Line[T]) next() *tenant[T] {
	l.age(l.clock.Now())
	if l.total > 0 && len(l.running) >= l.total {
		return nil
	}
	var next *tenant[T]
	for s := range standings {
		front := l.ready[s].Front()
		if front == nil || !l.mayHaveMore(s) {
			continue
		}
		if t := front.Value.(*tenant[T]); next == nil || t.turn < next.turn {
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
		if now.Sub(w.began) < slowAnswer {
			break
		}
		l.remember(w.tenant, slow, now)
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

// remember notes an answer of the tenant.
func (l *Line[T]) remember(t *tenant[T], s standing, now time.Time) {
	t.until[s] = now.Add(memory)
	if t.answered[s] == nil {
		t.answered[s] = l.answered[s].PushBack(t)
	}
	l.answered[s].MoveToBack(t.answered[s])
}

// update brings up to date what follows from the places and answers of a tenant, and from
// what of it waits. Who comes to be ready is the last in turn.
func (l *Line[T]) update(t *tenant[T]) {
	now := unknown
	for s := range unknown {
		if t.answered[s] != nil {
			now = min(now, s)
		}
	}
	ready := len(t.waiting) > 0 && (l.perTenant == 0 || t.places < l.share(t))
	if !ready || now != t.standing {
		l.unready(t)
	}
	l.places[t.standing] -= t.places
	l.places[now] += t.places
	t.standing = now
	if ready && t.ready == nil {
		l.turns++
		t.turn, t.ready = l.turns, l.ready[now].PushBack(t)
	}
	if len(t.waiting) == 0 && t.places == 0 && now == unknown {
		delete(l.tenants, t.name)
	}
}

func (l *Line[T]) unready(t *tenant[T]) {
	if t.ready != nil {
		l.ready[t.standing].Remove(t.ready)
		t.ready = nil
	}
}
