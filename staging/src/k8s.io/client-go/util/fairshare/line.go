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
	"math/rand/v2"
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

	// keptWaiting is for how many waiting items a line keeps its map when none waits any more. A map
	// never shrinks: after 100,000 items, it would hold megabytes for ever.
	keptWaiting = 1000
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

// Owner says to whom an item belongs.
type Owner struct {
	// Flow is for what the work is done, such as a maintenance, which concerns many tenants. Flows
	// have equal shares. A tenant must not be able to choose among many, because each one adds to its
	// share.
	Flow string
	// Tenant is whose webhooks can make the work slow, such as a namespace. The limits are for tenants,
	// in all flows together.
	Tenant string
	// Source is who wants the work, such as a requester. The sources of a tenant in a flow take turns.
	Source string
}

// Line holds the items that wait for a place and those that have one. An item must not be waiting
// twice, and calls must not be concurrent.
//
// It makes progress without a timer. The places of slow and unknown tenants together, and those of
// one tenant, are limited to one or more. So when a limit holds back a waiting item, an item that
// counts toward this limit has a place, and its Release allows the next one. The number of free
// places also changes with Pop and Release only.
//
// The cost of an item grows with the number of places, and hardly with those of flows, tenants and
// items. No state says which tenants may have another place: that depends on all places, and a
// tenant may be in thousands of flows. Instead, next skips tenants that may not, of which there are
// at most as many as places: a tenant without a place may have one, if its class may. The flows that
// wait with the same tenants are a group, which is skipped at once, because the tenants of thousands
// of flows may have no more. Only a change of the class of a tenant costs time for each of its flows.
type Line[T comparable] struct {
	clock            clock.PassiveClock
	total, perTenant int // See Limit.
	slowAfter        time.Duration

	tenants map[string]*tenant[T]
	flows   map[string]*flow[T]
	waiting map[T]position[T]
	// mostWaiting is how many items have waited at a time since the map was made.
	mostWaiting int
	// running has the items with a place, in the order of Begin, or of Pop before Begin.
	running []*work[T]
	// left has the items that have left their place, and whose work goes on.
	left map[T]*work[T]
	// places counts them by the class of their tenants, and idle the tenants that wait without a place.
	places, idle [numClasses]int
	// turns numbers flows and queues in the order in which they began to wait or were last served.
	turns uint64
	// groups has the groups by class, in the order of the first flow of each, and bySet by set.
	groups [numClasses]ordered[*group[T]]
	bySet  [numClasses]map[uint64]*group[T]
	// recent has the tenants with such an item in the window, the oldest first.
	recent [unknown]list.List
}

// work is an item that has a place.
type work[T comparable] struct {
	tenant *tenant[T]
	flow   *flow[T]
	item   T
	began  time.Time // Zero before Begin.
	slow   bool      // It takes Line.slowAfter or longer.
}

type tenant[T comparable] struct {
	name string
	// id is random. See part.set.
	id     uint64
	class  class
	places int
	// left is how many items have left their place, see Leave.
	left int
	// queues has the waiting items by flow; none of them is empty.
	queues map[*flow[T]]*queue[T]
	// idle is whether it counts in Line.idle.
	idle bool
	// slowWork counts the slow items in progress. timesSlow counts the slow items in the window,
	// and lastSlow is when it last increased.
	slowWork, timesSlow int
	lastSlow            time.Time
	// recent is the element in Line.recent, and until is when it expires.
	recent [unknown]*list.Element
	until  [unknown]time.Time
}

type flow[T comparable] struct {
	name   string
	places int
	// turn is the order among flows with the same number of places.
	turn  uint64
	parts [numClasses]part[T]
}

// part has the queues of a flow whose tenants are of one class.
type part[T comparable] struct {
	flow *flow[T]
	// queues is in the order of turn. The places of tenants change too often.
	queues ordered[*queue[T]]
	// set identifies the tenants of the queues: it is the exclusive or of their random numbers. That
	// two sets have the same one is as good as impossible, and then some flows only wait for a place
	// of a tenant that they do not have.
	set   uint64
	group *group[T]
	index int // In group.parts.
}

// group holds the parts of flows that have the same tenants. If the first one has no queue that may
// have another place, none has.
type group[T comparable] struct {
	parts ordered[*part[T]] // In the order of their flows.
	index int               // In Line.groups.
}

// queue holds the waiting items of one tenant in one flow.
type queue[T comparable] struct {
	tenant *tenant[T]
	flow   *flow[T]
	// first is served before the others, which sources has by name; none of them is empty. turns has
	// the sources in the order in which they are next.
	first   list.List
	sources map[string]*source
	turns   list.List
	// turn is the order among queues whose tenants have the same number of places. A queue keeps it
	// while its tenant may have no more places.
	turn  uint64
	index int // In part.queues.
}

// source holds the waiting items of one source in a queue.
type source struct {
	name  string
	items list.List
	// turn is the element in queue.turns.
	turn *list.Element
}

// position is where an item waits. Without a source, it is one of those that go first.
type position[T comparable] struct {
	queue   *queue[T]
	source  *source
	element *list.Element
}

// next returns the first item of the queue, which is not empty.
func (q *queue[T]) next() T {
	if q.first.Len() > 0 {
		return q.first.Front().Value.(T)
	}
	return q.turns.Front().Value.(*source).items.Front().Value.(T)
}

// push adds an item of the source.
func (q *queue[T]) push(name string, item T) position[T] {
	s := q.sources[name]
	if s == nil {
		s = &source{name: name}
		s.turn = q.turns.PushBack(s)
		q.sources[name] = s
	}
	return position[T]{q, s, s.items.PushBack(item)}
}

// remove removes an item.
func (q *queue[T]) remove(at position[T]) {
	s := at.source
	if s == nil {
		q.first.Remove(at.element)
		return
	}
	if s.items.Remove(at.element); s.items.Len() == 0 {
		q.turns.Remove(s.turn)
		delete(q.sources, s.name)
	}
}

func (q *queue[T]) isEmpty() bool { return q.first.Len()+q.turns.Len() == 0 }

// rank is the order of the queue within its flow.
func (q *queue[T]) rank() rank { return rank{q.tenant.busy(), q.turn} }

// busy is how many of its items are in progress.
func (t *tenant[T]) busy() int { return t.places + t.left }

// rank is the order of the flow.
func (f *flow[T]) rank() rank { return rank{f.places, f.turn} }

func (q *queue[T]) heapIndex() *int { return &q.index }
func (p *part[T]) heapIndex() *int  { return &p.index }
func (g *group[T]) heapIndex() *int { return &g.index }

// NewLine returns a line with an unlimited number of places.
func NewLine[T comparable](clock clock.PassiveClock) *Line[T] {
	l := &Line[T]{clock: clock, slowAfter: slowThreshold, tenants: map[string]*tenant[T]{}, flows: map[string]*flow[T]{}, waiting: map[T]position[T]{}, left: map[T]*work[T]{}}
	for s := range numClasses {
		l.bySet[s] = map[uint64]*group[T]{}
	}
	return l
}

// Limit sets the total number of places and the maximum for one tenant. If total is zero, there is
// no limit at all. If perTenant is zero, only the total is limited.
func (l *Line[T]) Limit(total, perTenant int) {
	if total == 0 {
		perTenant = 0
	}
	l.total, l.perTenant = total, perTenant
}

// Push adds an item after the other items of its owner.
func (l *Line[T]) Push(owner Owner, item T) {
	q := l.queue(owner)
	l.wait(item, q.push(owner.Source, item))
}

// PushFirst adds an item before the items added by Push for the tenant in the flow, and after those
// added by PushFirst.
func (l *Line[T]) PushFirst(owner Owner, item T) {
	q := l.queue(owner)
	l.wait(item, position[T]{queue: q, element: q.first.PushBack(item)})
}

func (l *Line[T]) wait(item T, at position[T]) {
	l.waiting[item] = at
	l.mostWaiting = max(l.mostWaiting, len(l.waiting))
	l.update(at.queue.tenant)
}

// queue returns the queue of the tenant in the flow. It creates what does not exist.
func (l *Line[T]) queue(owner Owner) *queue[T] {
	t := l.tenants[owner.Tenant]
	if t == nil {
		t = &tenant[T]{name: owner.Tenant, id: rand.Uint64(), class: unknown, queues: map[*flow[T]]*queue[T]{}}
		l.tenants[owner.Tenant] = t
	}
	f := l.flows[owner.Flow]
	if f == nil {
		l.turns++
		f = &flow[T]{name: owner.Flow, turn: l.turns}
		for s := range f.parts {
			f.parts[s].flow = f
		}
		l.flows[owner.Flow] = f
	}
	q := t.queues[f]
	if q == nil {
		l.turns++
		q = &queue[T]{tenant: t, flow: f, sources: map[string]*source{}, turn: l.turns}
		t.queues[f] = q
		l.add(q)
	}
	return q
}

// Len returns the number of waiting items.
func (l *Line[T]) Len() int { return len(l.waiting) }

// Pop returns the next item that may have a place. It keeps the place until Release. It belongs to
// the flow with the fewest places of those with such an item, and there to the tenant with the
// fewest places, where those of items that have left count. Flows and tenants with the same number take turns, and so do the sources of a tenant.
// Who may have no more places keeps its turn: it is next before those that came or had an item later.
func (l *Line[T]) Pop() (item T, found bool) {
	q := l.next()
	if q == nil {
		return item, false
	}
	item = q.next()
	t, f := q.tenant, q.flow
	if s := l.waiting[item].source; s != nil {
		q.turns.MoveToBack(s.turn)
	}
	l.turns++
	f.turn, q.turn = l.turns, l.turns
	f.parts[t.class].queues.set(q, rank{turn: q.turn})
	l.drop(item)
	l.running = append(l.running, &work[T]{tenant: t, flow: f, item: item})
	t.places++
	f.places++
	l.places[t.class]++
	l.reorder(f)
	l.update(t)
	return item, true
}

// Remove removes an item that waits. It does nothing if the item does not wait.
func (l *Line[T]) Remove(item T) {
	if waiting, found := l.waiting[item]; found {
		l.drop(item)
		l.update(waiting.queue.tenant)
		l.tidyFlow(waiting.queue.flow)
	}
}

// drop removes a waiting item, and its queue if it was the last one.
func (l *Line[T]) drop(item T) {
	at := l.waiting[item]
	delete(l.waiting, item)
	if len(l.waiting) == 0 && l.mostWaiting > keptWaiting {
		l.waiting, l.mostWaiting = map[T]position[T]{}, 0
	}
	q := at.queue
	if q.remove(at); q.isEmpty() {
		l.remove(q)
		delete(q.tenant.queues, q.flow)
	}
}

func (l *Line[T]) tidyFlow(f *flow[T]) {
	waiting := 0
	for s := range f.parts {
		waiting += len(f.parts[s].queues)
	}
	if waiting+f.places == 0 {
		delete(l.flows, f.name)
	}
}

// add adds the queue to the part of its flow that is for its tenant. The class of the tenant must
// not change before remove.
func (l *Line[T]) add(q *queue[T]) {
	p := &q.flow.parts[q.tenant.class]
	p.queues.add(q, rank{turn: q.turn})
	l.regroup(p, q.tenant)
}

func (l *Line[T]) remove(q *queue[T]) {
	p := &q.flow.parts[q.tenant.class]
	p.queues.remove(q)
	l.regroup(p, q.tenant)
}

// regroup moves the part to the group of its tenants, after one was added or removed.
func (l *Line[T]) regroup(p *part[T], changed *tenant[T]) {
	groups, bySet := &l.groups[changed.class], l.bySet[changed.class]
	if g := p.group; g != nil {
		if g.parts.remove(p); len(g.parts) > 0 {
			groups.set(g, g.parts[0].rank)
		} else {
			groups.remove(g)
			delete(bySet, p.set)
		}
	}
	p.group = nil
	p.set ^= changed.id
	if len(p.queues) == 0 {
		return
	}
	r := p.flow.rank()
	g := bySet[p.set]
	if g == nil {
		g = &group[T]{}
		bySet[p.set] = g
		groups.add(g, r)
	}
	g.parts.add(p, r)
	groups.set(g, g.parts[0].rank)
	p.group = g
}

// reorder is called after the places or the turn of the flow have changed.
func (l *Line[T]) reorder(f *flow[T]) {
	for s := range f.parts {
		if p := &f.parts[s]; p.group != nil {
			p.group.parts.set(p, f.rank())
			l.groups[s].set(p.group, p.group.parts[0].rank)
		}
	}
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
	now := l.clock.Now()
	if w := l.left[item]; w != nil {
		l.refresh(now)
		delete(l.left, item)
		w.tenant.left--
		l.recordDuration(w, now)
		l.update(w.tenant)
		return
	}
	w := l.vacate(item, now)
	if w == nil {
		return
	}
	if !w.began.IsZero() {
		l.recordDuration(w, now)
	}
	l.update(w.tenant)
	l.tidyFlow(w.flow)
}

// Leave gives up the place of an item whose work goes on. Its tenant is slow until Release. Whoever
// calls it bounds the number of such items.
func (l *Line[T]) Leave(item T) {
	now := l.clock.Now()
	w := l.vacate(item, now)
	if w == nil {
		return
	}
	if !w.slow {
		w.slow = true
		w.tenant.slowWork++
	}
	l.left[item] = w
	w.tenant.left++
	l.update(w.tenant)
	l.tidyFlow(w.flow)
}

// vacate takes the place from an item. It returns nil if it has none.
func (l *Line[T]) vacate(item T, now time.Time) *work[T] {
	i := l.place(item)
	if i < 0 {
		return nil
	}
	w := l.running[i]
	l.refresh(now)
	l.running = slices.Delete(l.running, i, i+1)
	w.tenant.places--
	w.flow.places--
	l.places[w.tenant.class]--
	l.reorder(w.flow)
	return w
}

// place returns the index of the item in running, or -1.
func (l *Line[T]) place(item T) int {
	return slices.IndexFunc(l.running, func(w *work[T]) bool { return w.item == item })
}

// next returns the queue whose first item gets the next place, or nil.
func (l *Line[T]) next() *queue[T] {
	l.refresh(l.clock.Now())
	if l.total > 0 && len(l.running) >= l.total || !l.mayServe() {
		return nil
	}
	var first *flow[T]
	for s := range numClasses {
		if !l.belowClassLimit(s) {
			continue
		}
		l.groups[s].walk(func(g *group[T]) bool {
			p := g.parts[0].element
			if first != nil && first.rank().compare(p.flow.rank()) <= 0 {
				return false
			}
			if l.nextOf(p) == nil {
				return true
			}
			first = p.flow
			return false
		})
	}
	if first == nil {
		return nil
	}
	var next *queue[T]
	for s := range numClasses {
		if !l.belowClassLimit(s) {
			continue
		}
		if q := l.nextOf(&first.parts[s]); q != nil && (next == nil || q.rank().compare(next.rank()) < 0) {
			next = q
		}
	}
	return next
}

// mayServe reports whether an item may have a place. Most calls of Pop end here: there may be
// thousands of groups of the same few tenants, none of which may have more.
func (l *Line[T]) mayServe() bool {
	for s := range numClasses {
		if l.idle[s] > 0 && l.belowClassLimit(s) {
			return true
		}
	}
	return slices.ContainsFunc(l.running, func(w *work[T]) bool {
		return len(w.tenant.queues) > 0 && l.belowClassLimit(w.tenant.class) && l.mayHaveMore(w.tenant)
	})
}

// nextOf returns the queue of the part that gets the next place if the class may have more, or nil.
func (l *Line[T]) nextOf(p *part[T]) (next *queue[T]) {
	p.queues.walk(func(q *queue[T]) bool {
		if next != nil && next.tenant.busy() == 0 && next.turn < q.turn {
			return false
		}
		if l.mayHaveMore(q.tenant) && (next == nil || q.rank().compare(next.rank()) < 0) {
			next = q
		}
		return q.tenant.busy() > 0
	})
	return next
}

// mayHaveMore reports whether the tenant may have another place as far as its own places matter. It
// may have its first one.
func (l *Line[T]) mayHaveMore(t *tenant[T]) bool {
	return l.perTenant == 0 || t.places == 0 || t.places < l.maxPlaces(t) && l.leavesReserve(t)
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
	return t.places*min(l.perTenant, l.total-l.perTenant) <= l.perTenant*free
}

// maxPlaces returns how many places the tenant may have. A tenant without a quick item in the
// window gets few, so that only many such tenants can fill their common limit. With less than 16
// places, this is one, so its other items wait while the first one hangs. A second place would
// seldom help, because what hangs is most often the webhook for all of them. And it would let half
// as many such tenants fill the common limit: two of them with four places. Then all others that
// have done nothing for a while would wait as well, which are most tenants of a small cluster.
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
		if now.Sub(w.began) < l.slowAfter {
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

// update updates the state that depends on the places and items of a tenant.
func (l *Line[T]) update(t *tenant[T]) {
	now := unknown
	switch {
	case t.slowWork > 0, t.recent[slow] != nil && t.timesSlow > 1:
		now = slow
	case t.recent[quick] != nil:
		now = quick
	}
	if t.idle {
		l.idle[t.class]--
	}
	if now != t.class {
		for _, q := range t.queues {
			l.remove(q)
		}
		l.places[t.class] -= t.places
		l.places[now] += t.places
		t.class = now
		for _, q := range t.queues {
			l.add(q)
		}
	}
	if t.idle = t.places == 0 && len(t.queues) > 0; t.idle {
		l.idle[t.class]++
	}
	if len(t.queues)+t.places+t.slowWork == 0 && t.recent == [unknown]*list.Element{} {
		delete(l.tenants, t.name)
	}
}
