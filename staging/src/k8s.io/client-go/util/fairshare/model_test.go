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
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// In random histories, the line pops the same items as a simple implementation of its rules.
func TestLineInRandomHistories(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		flows, tenants, sources := 1+random.IntN(1+random.IntN(30)), 1+random.IntN(8), 1+random.IntN(3)
		l := newLineTest(t, 0, 0, "")
		m := &lineModel{flows: map[string]int{}, slow: map[string][]time.Time{}, quick: map[string]time.Time{}}
		limit := func() {
			m.total, m.perTenant = 1+random.IntN(20), 0
			switch random.IntN(10) {
			case 0:
				m.total = 0
			case 1:
			default:
				m.perTenant = 1 + random.IntN(m.total)
			}
			l.Limit(m.total, m.perTenant)
		}
		limit()
		popped, held := 0, 0
		for next := range 600 {
			l.clock.Step([]time.Duration{0, time.Millisecond, slowThreshold, quickWindow / 3, slowWindow / 3}[max(0, random.IntN(15)-10)])
			m.now = l.clock.Now()
			owner := Owner{
				Flow: fmt.Sprint("flow", random.IntN(flows)), Tenant: fmt.Sprint("tenant", random.IntN(tenants)),
				Source: fmt.Sprint("source", random.IntN(sources)),
			}
			item := fmt.Sprint(owner, next)
			switch action := random.IntN(100); {
			case action < 30:
				l.Line.Push(owner, item)
				m.push(owner, owner.Source, item)
			case action < 35:
				l.Line.PushFirst(owner, item)
				m.push(owner, goesFirst, item)
			case action < 65:
				want := m.pop()
				if got, found := l.Line.Pop(); got != want || found != (want != "") {
					t.Fatalf("seed %d, step %d, %d places, %d for a tenant: took %q, want %q", seed, next, m.total, m.perTenant, got, want)
				}
				if want != "" {
					popped++
				} else if len(m.waiting) > 0 {
					held++
				}
				if want == "" && len(m.waiting) > 0 && len(m.running) == 0 {
					t.Fatalf("seed %d, step %d: nothing is running, and %d items wait", seed, next, l.Len())
				}
			case action < 82:
				if len(m.running) > 0 {
					w := m.running[random.IntN(len(m.running))]
					l.Release(w.item)
					m.release(w)
				}
			case action < 95:
				if len(m.running) > 0 {
					w := m.running[random.IntN(len(m.running))]
					l.Begin(w.item)
					if w.began.IsZero() {
						w.began = m.now
					}
				}
			case action < 99:
				if waiting := m.items(); len(waiting) > 0 {
					item := waiting[random.IntN(len(waiting))]
					l.Remove(item)
					m.remove(item)
				}
			default:
				limit()
			}
			if next%8 > 0 {
				continue
			}
			if err := l.check(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, next, err)
			}
			if got, want := l.Len(), len(m.items()); got != want {
				t.Fatalf("seed %d, step %d: %d items wait, want %d", seed, next, got, want)
			}
		}
		if popped < 20 {
			t.Errorf("seed %d: only %d items were popped, and %d times limits held back all", seed, popped, held)
		}
		for _, item := range m.items() {
			l.Remove(item)
		}
		for _, w := range m.running {
			l.Release(w.item)
		}
		l.clock.Step(slowWindow)
		l.expectEmpty()
	}
}

// check returns an error if the groups, or the numbers of idle tenants, are wrong.
func (l *lineTest) check() error {
	idle := [numClasses]int{}
	for name, t := range l.tenants {
		if len(t.queues) > 0 && t.places == 0 {
			idle[t.class]++
		}
		for f, q := range t.queues {
			if queues := f.parts[t.class].queues; q.index >= len(queues) || queues[q.index] != (ranked[*queue[string]]{rank{turn: q.turn}, q}) {
				return fmt.Errorf("the queue of %s in %s is not in the part for its class %v", name, f.name, t.class)
			}
		}
	}
	if idle != l.idle {
		return fmt.Errorf("there are %v idle tenants, want %v", l.idle, idle)
	}
	for s := range numClasses {
		if len(l.groups[s]) != len(l.bySet[s]) {
			return fmt.Errorf("there are %d groups, and %d by their sets", len(l.groups[s]), len(l.bySet[s]))
		}
		parts := 0
		for _, g := range l.groups[s] {
			first := g.element.parts[0]
			parts += len(g.element.parts)
			if g.rank != first.rank {
				return fmt.Errorf("the rank of a group is %v, want %v, that of %s", g.rank, first.rank, first.element.flow.name)
			}
			for _, p := range g.element.parts {
				if p.rank != p.element.flow.rank() {
					return fmt.Errorf("the rank of %s is %v, want %v", p.element.flow.name, p.rank, p.element.flow.rank())
				}
				if p.element.group != g.element || l.bySet[s][p.element.set] != g.element || !first.element.tenants().Equal(p.element.tenants()) {
					return fmt.Errorf("a group has %s of %v and %s of %v", first.element.flow.name, first.element.tenants(), p.element.flow.name, p.element.tenants())
				}
			}
		}
		for _, f := range l.flows {
			if len(f.parts[s].queues) > 0 {
				parts--
			}
		}
		if parts != 0 {
			return fmt.Errorf("groups have %d more parts than flows have", parts)
		}
	}
	return nil
}

func (p *part[T]) tenants() sets.Set[string] {
	names := sets.Set[string]{}
	for _, q := range p.queues {
		names.Insert(q.element.tenant.name)
	}
	return names
}

// goesFirst is the source of items that go before those of the other sources.
const goesFirst = "first"

// lineModel is an implementation of the rules of a line without any structures to look something up.
type lineModel struct {
	total, perTenant int
	now              time.Time
	turns            int
	flows            map[string]int // The turns of those with items.
	waiting          []*modelQueue
	running          []*modelWork
	slow             map[string][]time.Time // When slow items were counted, and the last slow item.
	quick            map[string]time.Time   // The last quick item.
}

type modelQueue struct {
	flow, tenant string
	turn         int
	sources      []modelSource // In turn.
}

type modelSource struct {
	name  string
	items []string
}

type modelWork struct {
	item, flow, tenant string
	began              time.Time
}

func (m *lineModel) push(owner Owner, source, item string) {
	m.turns++
	if m.flows[owner.Flow] == 0 {
		m.flows[owner.Flow] = m.turns
	}
	i := slices.IndexFunc(m.waiting, func(q *modelQueue) bool { return q.flow == owner.Flow && q.tenant == owner.Tenant })
	if i < 0 {
		i = len(m.waiting)
		m.waiting = append(m.waiting, &modelQueue{flow: owner.Flow, tenant: owner.Tenant, turn: m.turns})
	}
	q := m.waiting[i]
	if s := slices.IndexFunc(q.sources, func(s modelSource) bool { return s.name == source }); s >= 0 {
		q.sources[s].items = append(q.sources[s].items, item)
	} else if source == goesFirst {
		q.sources = slices.Insert(q.sources, 0, modelSource{source, []string{item}})
	} else {
		q.sources = append(q.sources, modelSource{source, []string{item}})
	}
}

// pop returns the next item, or "".
func (m *lineModel) pop() string {
	var next *modelQueue
	for _, q := range m.waiting {
		if m.mayBegin(q.tenant) && (next == nil || m.compare(q, next) < 0) {
			next = q
		}
	}
	if next == nil {
		return ""
	}
	m.turns++
	m.flows[next.flow], next.turn = m.turns, m.turns
	source := next.sources[0]
	item := source.items[0]
	m.running = append(m.running, &modelWork{item: item, flow: next.flow, tenant: next.tenant})
	if source.name != goesFirst {
		next.sources = append(next.sources[1:], source)
	}
	m.remove(item)
	return item
}

func (m *lineModel) compare(a, b *modelQueue) int {
	if a.flow != b.flow {
		return cmp.Or(m.placesOfFlow(a.flow)-m.placesOfFlow(b.flow), m.flows[a.flow]-m.flows[b.flow])
	}
	return cmp.Or(m.places(a.tenant)-m.places(b.tenant), a.turn-b.turn)
}

func (m *lineModel) remove(item string) {
	for _, q := range m.waiting {
		for i := range q.sources {
			q.sources[i].items = slices.DeleteFunc(q.sources[i].items, func(other string) bool { return other == item })
		}
		q.sources = slices.DeleteFunc(q.sources, func(s modelSource) bool { return len(s.items) == 0 })
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(q *modelQueue) bool { return len(q.sources) == 0 })
	m.tidy()
}

// tidy forgets flows without items.
func (m *lineModel) tidy() {
	for flow := range m.flows {
		if m.placesOfFlow(flow) == 0 && !slices.ContainsFunc(m.waiting, func(q *modelQueue) bool { return q.flow == flow }) {
			delete(m.flows, flow)
		}
	}
}

func (m *lineModel) items() (items []string) {
	for _, q := range m.waiting {
		for _, s := range q.sources {
			items = append(items, s.items...)
		}
	}
	return items
}

func (m *lineModel) release(w *modelWork) {
	m.running = slices.DeleteFunc(m.running, func(other *modelWork) bool { return other == w })
	m.tidy()
	switch times := m.slow[w.tenant]; {
	case w.began.IsZero():
	case m.now.Sub(w.began) < slowThreshold:
		m.quick[w.tenant] = m.now
	case len(times) == 0 || m.now.Sub(times[len(times)-1]) >= slowWindow:
		m.slow[w.tenant] = []time.Time{m.now, m.now}
	case w.began.Sub(times[len(times)-2]) < time.Minute:
		times[len(times)-1] = m.now
	default:
		m.slow[w.tenant] = append(times[:len(times)-1:len(times)-1], m.now, m.now)
	}
}

func (m *lineModel) isQuick(tenant string) bool {
	at, found := m.quick[tenant]
	return found && m.now.Sub(at) < quickWindow
}

func (m *lineModel) isSlow(tenant string) bool {
	for _, w := range m.running {
		if w.tenant == tenant && !w.began.IsZero() && m.now.Sub(w.began) >= slowThreshold {
			return true
		}
	}
	times := m.slow[tenant]
	return len(times) > 2 && m.now.Sub(times[len(times)-1]) < slowWindow
}

func (m *lineModel) places(tenant string) (places int) {
	for _, w := range m.running {
		if w.tenant == tenant {
			places++
		}
	}
	return places
}

func (m *lineModel) placesOfFlow(flow string) (places int) {
	for _, w := range m.running {
		if w.flow == flow {
			places++
		}
	}
	return places
}

// mayBegin reports whether the limits allow a tenant another place.
func (m *lineModel) mayBegin(tenant string) bool {
	if m.perTenant == 0 {
		return m.total == 0 || len(m.running) < m.total
	}
	slow, unknown := 0, 0
	for _, w := range m.running {
		if m.isSlow(w.tenant) {
			slow++
		} else if !m.isQuick(w.tenant) {
			unknown++
		}
	}
	own, left := m.places(tenant), m.total-len(m.running)-1
	isSlow, isQuick := m.isSlow(tenant), m.isQuick(tenant)
	return left >= 0 && own < m.perTenant &&
		(own == 0 || own <= left || own*(m.total-m.perTenant) <= m.perTenant*left) &&
		(isQuick || own < max(1, m.total/8)) &&
		(!isSlow || slow < max(1, m.total/2)) &&
		(isQuick && !isSlow || slow+unknown < max(1, m.total*3/4))
}
