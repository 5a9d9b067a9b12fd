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
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"
)

// lineTest is a line whose items begin with the name of their tenant, a letter.
type lineTest struct {
	*Line[string]
	t     *testing.T
	clock *testingclock.FakeClock
}

// newLineTest returns a line with limits, in which all tenants of that string were quick.
func newLineTest(t *testing.T, total, perTenant int, tenants string) *lineTest {
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	l := &lineTest{Line: NewLine[string](clock), t: t, clock: clock}
	l.Limit(total, perTenant)
	for _, tenant := range tenants {
		l.answer(string(tenant), 0)
	}
	return l
}

// Pop begins the work on what it takes, too.
func (l *lineTest) Pop() (item string, found bool) {
	if item, found = l.Line.Pop(); found {
		l.Begin(item)
	}
	return item, found
}

// answer has an item of the tenant take so long.
func (l *lineTest) answer(tenant string, took time.Duration) {
	l.Push(tenant, tenant+"!")
	if item, found := l.Pop(); !found || item != tenant+"!" {
		l.t.Fatalf("got %q, %t, want an item of %s alone", item, found, tenant)
	}
	l.clock.Step(took)
	l.Release(tenant + "!")
}

// fill has an item wait for each letter, numbered from zero.
func (l *lineTest) fill(tenants string) {
	for i, tenant := range tenants {
		l.Push(string(tenant), fmt.Sprintf("%c%d", tenant, i))
	}
}

func (l *lineTest) popAll() []string {
	var got []string
	for {
		item, found := l.Pop()
		if !found {
			return got
		}
		got = append(got, item)
	}
}

func (l *lineTest) expect(why string, want ...string) {
	l.t.Helper()
	if diff := cmp.Diff(want, l.popAll()); diff != "" {
		l.t.Errorf("%s (-want, +got):\n%s", why, diff)
	}
}

func TestLine(t *testing.T) {
	for name, test := range map[string]struct {
		total, perTenant int
		waiting          string
		change           func(l *lineTest)
		want             []string
	}{
		"nothing waits":                   {total: 9, perTenant: 1},
		"one tenant, in its order":        {waiting: "aaa", want: []string{"a0", "a1", "a2"}},
		"tenants in turn":                 {waiting: "aaabbc", want: []string{"a0", "b3", "c5", "a1", "b4", "a2"}},
		"all places are taken":            {total: 2, waiting: "aaab", want: []string{"a0", "b3"}},
		"a tenant at its limit":           {total: 9, perTenant: 2, waiting: "aaabb", want: []string{"a0", "b3", "a1", "b4"}},
		"a place comes free":              {total: 9, perTenant: 1, waiting: "aab", change: func(l *lineTest) { l.popAll(); l.Release("a0") }, want: []string{"a1"}},
		"a place comes free for nobody":   {total: 9, perTenant: 1, waiting: "aab", change: func(l *lineTest) { l.popAll(); l.Release("b2") }},
		"a place that nobody has":         {total: 9, perTenant: 1, waiting: "aa", change: func(l *lineTest) { l.popAll(); l.Release("a1") }},
		"who comes later":                 {total: 9, perTenant: 1, waiting: "aab", change: func(l *lineTest) { l.Push("c", "c3") }, want: []string{"a0", "b2", "c3"}},
		"who goes first":                  {waiting: "aab", change: func(l *lineTest) { l.PushFirst("a", "a!"); l.PushFirst("a", "a?") }, want: []string{"a!", "b2", "a?", "a0", "a1"}},
		"one is removed":                  {waiting: "aab", change: func(l *lineTest) { l.Remove("a", "a0") }, want: []string{"a1", "b2"}},
		"one that goes first is removed":  {waiting: "aab", change: func(l *lineTest) { l.PushFirst("a", "a!"); l.Remove("a", "a!") }, want: []string{"a0", "b2", "a1"}},
		"the only one is removed":         {total: 9, perTenant: 1, waiting: "ab", change: func(l *lineTest) { l.Remove("a", "a0") }, want: []string{"b1"}},
		"one that does not wait":          {waiting: "ab", change: func(l *lineTest) { l.Remove("a", "b1") }, want: []string{"a0", "b1"}},
		"one of nobody":                   {waiting: "a", change: func(l *lineTest) { l.Remove("z", "z0") }, want: []string{"a0"}},
		"the limit is raised":             {total: 9, perTenant: 1, waiting: "aaa", change: func(l *lineTest) { l.popAll(); l.Limit(9, 2) }, want: []string{"a1"}},
		"the limit falls":                 {total: 9, perTenant: 3, waiting: "aaab", change: func(l *lineTest) { l.Pop(); l.Limit(9, 1) }, want: []string{"b3"}},
		"fewest places first":             {waiting: "aab", change: func(l *lineTest) { l.popAll(); l.fill("aabbb"); l.Release("b2") }, want: []string{"b2", "b3", "a0", "b4", "a1"}},
		"any number of places":            {perTenant: 1, waiting: "aab", want: []string{"a0", "b2", "a1"}},
		"two take what they get":          {total: 9, perTenant: 6, waiting: "aaaaaaaabbbbbbbb", want: []string{"a0", "b8", "a1", "b9", "a2", "b10", "a3"}},
		"one that has no place gets it":   {total: 9, perTenant: 6, waiting: "aaaaaaaabbbbbbbb", change: func(l *lineTest) { l.popAll(); l.fill("cc") }, want: []string{"c0"}},
		"a small share for each":          {total: 9, perTenant: 2, waiting: "aaabbbccc", want: []string{"a0", "b3", "c6", "a1", "b4", "c7"}},
		"a place of another comes free":   {total: 9, perTenant: 6, waiting: "aaaaaaaabbbb", change: func(l *lineTest) { l.popAll(); l.answerAll("b8", "b9") }, want: []string{"b11", "a4"}},
		"places beyond a limit that fell": {total: 9, perTenant: 3, waiting: "aaaa", change: func(l *lineTest) { l.popAll(); l.Limit(9, 1); l.Release("a0") }},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLineTest(t, test.total, test.perTenant, "abc")
			l.fill(test.waiting)
			if test.change != nil {
				test.change(l)
			}
			l.expect("unexpected items", test.want...)
		})
	}
}

// Tenants that were slow twice have half of the places together, for half an hour.
func TestSlowTenants(t *testing.T) {
	l := newLineTest(t, 8, 6, "abcdq")
	for _, tenant := range []string{"a", "b", "c"} {
		l.answer(tenant, slowAnswer)
	}
	l.clock.Step(time.Minute - 2*slowAnswer)
	for _, tenant := range []string{"a", "b", "c", "d"} {
		l.answer(tenant, slowAnswer)
	}
	l.answer("q", slowAnswer-1)
	l.fill("aabbccqqqdd")
	l.expect("half for all of them, in turn", "a0", "b2", "c4", "q6", "d9", "a1", "q7")
	l.Release("q6")
	l.expect("a quick one makes no room for them", "d10")
	l.Release("a1")
	l.expect("one of them does", "b3")
	l.answerAll("d9", "d10", "q7", "a0", "b2", "b3", "c4")
	l.expect("the last ones", "c5", "q8")
	l.answerAll("c5", "q8")

	l.clock.Step(30*time.Minute - 5*slowAnswer)
	l.answer("a", 0)
	l.fill("aaaaaa")
	l.expect("still slow", "a0", "a1", "a2", "a3")
	l.answerAll("a0", "a1", "a2", "a3")
	l.clock.Step(4 * slowAnswer)
	l.expect("no longer slow", "a4", "a5")
	if l.tenants["a"].standing != quick {
		t.Error("a is slow for longer than half an hour")
	}
}

// A hiccup makes a tenant slow once, however many of its items last for it.
func TestHiccup(t *testing.T) {
	l := newLineTest(t, 8, 6, "a")
	l.fill("aaaaaa")
	l.popAll()
	l.clock.Step(slowAnswer)
	l.answerAll("a0", "a1", "a2")
	l.expect("nothing more")
	if l.tenants["a"].standing != slow {
		t.Error("a is not slow during the hiccup")
	}
	l.clock.Step(slowAnswer)
	l.answerAll("a3", "a4", "a5")
	l.fill("aaaaaa")
	l.expect("all it may have, afterwards", "a0", "a1", "a2", "a3", "a4", "a5")
	l.answerAll("a0", "a1", "a2", "a3", "a4", "a5")

	l.clock.Step(time.Minute - slowAnswer - 1)
	l.fill("aaaaaa")
	l.expect("what is tried again right after it", "a0", "a1", "a2", "a3", "a4", "a5")
	l.clock.Step(slowAnswer)
	l.answerAll("a0", "a1", "a2", "a3", "a4", "a5")
	l.fill("a")
	l.expect("is part of it", "a0")
	l.clock.Step(1)
	l.answerAll("a0")
	l.fill("aaaaaa")
	l.expect("a minute later", "a0", "a1", "a2", "a3", "a4", "a5")
	l.clock.Step(slowAnswer)
	l.answerAll("a0", "a1", "a2", "a3", "a4", "a5")
	l.fill("aaaaaa")
	l.expect("half after the second time", "a0", "a1", "a2", "a3")
}

// Only work that has begun says something of its tenant, from its beginning.
func TestBegin(t *testing.T) {
	l := newLineTest(t, 8, 4, "a")
	l.fill("aaa")
	for _, item := range []string{"a0", "a1", "a2"} {
		if got, found := l.Line.Pop(); got != item || !found {
			t.Fatalf("took %s, want %s", got, item)
		}
	}
	l.clock.Step(slowAnswer)
	l.Begin("a2")
	l.Begin("a1")
	l.clock.Step(slowAnswer - 1)
	l.Begin("a1") // No effect.
	l.Begin("a9") // Nobody has it.
	l.Release("a0")
	l.expect("nothing more")
	if tenant := l.tenants["a"]; tenant.standing != quick || tenant.timesSlow > 0 {
		t.Errorf("a is %v, was slow %d times, want quick", tenant.standing, tenant.timesSlow)
	}
	l.clock.Step(1)
	l.popAll()
	if tenant := l.tenants["a"]; tenant.standing != slow || tenant.slowWork != 2 {
		t.Errorf("a is %v because of %d items, want slow because of two", tenant.standing, tenant.slowWork)
	}
	l.answerAll("a1", "a2")

	unused := newLineTest(t, 8, 4, "")
	unused.fill("a")
	unused.Line.Pop()
	unused.Release("a0")
	unused.expectEmpty()
}

func (l *lineTest) answerAll(items ...string) {
	for _, item := range items {
		l.Release(item)
	}
}

// An item that takes long makes its tenant slow before its end: many that begin at once do not
// take all the places when some of them have an answer.
func TestTenantIsSlowBeforeTheEnd(t *testing.T) {
	l := newLineTest(t, 8, 6, "abq")
	l.fill("aaaaaaabbb")
	l.expect("all places but one", "a0", "b7", "a1", "b8", "a2", "b9", "a3")
	l.clock.Step(slowAnswer)
	l.fill("qqq")
	l.answerAll("a0", "b7", "a1", "b8")
	l.expect("quick ones beside half of the places", "q0", "q1", "a4", "q2")
	l.Release("a2")
	l.expect("the next slow one", "a5")
}

// A tenant without answers has few places until the first that is quick. All of them leave a
// quarter to others, also when they turn out to be slow.
func TestUnknownTenants(t *testing.T) {
	l := newLineTest(t, 16, 8, "q")
	l.fill("aaaa")
	l.expect("an eighth", "a0", "a1")
	l.clock.Step(slowAnswer)
	l.Release("a0")
	l.expect("a slow answer is not enough", "a2")
	l.Push("a", "a!")
	l.clock.Step(slowAnswer - 1)
	l.Release("a2")
	l.expect("a quick one is", "a3", "a!")
	l.answerAll("a1", "a3", "a!")

	l.fill("bbccddeeffgghhiiqqqq")
	l.expect("three quarters", "b0", "c2", "d4", "e6", "f8", "g10", "h12", "i14", "q16", "b1", "c3", "d5", "e7", "q17")
	l.answerAll("q16", "q17")
	l.clock.Step(slowAnswer)
	l.fill("zqqqq")
	l.expect("when they are slow", "q18", "q19")
	l.answerAll("b0", "c2", "d4")
	l.expect("room for one without an answer, and none for slow ones", "z0", "q1")
}

// A tenant is forgotten when its last answer is too old.
func TestTenantsAreForgotten(t *testing.T) {
	l := newLineTest(t, 8, 6, "ab")
	l.answer("a", slowAnswer)
	l.clock.Step(slowMemory - slowAnswer)
	l.popAll()
	if len(l.tenants) != 1 || l.tenants["a"].timesSlow != 1 {
		t.Errorf("remembers %v, want a alone, as slow once", l.tenants)
	}
	l.clock.Step(slowAnswer)
	l.expectEmpty()
	l.fill("aa")
	l.expect("a tenant like any other", "a0")
}

func (l *lineTest) expectEmpty() {
	l.t.Helper()
	l.popAll()
	if len(l.tenants)+len(l.running)+l.Len()+l.answered[slow].Len()+l.answered[quick].Len() > 0 || l.places != [standings]int{} {
		l.t.Errorf("remembers tenants %v with places %v and answers %v", l.tenants, l.places, l.answered)
	}
}

// Whatever happens, no bound is broken, and what waits is held back by one of them.
func TestLineInRandomHistories(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		total := 1 + random.IntN(20)
		perTenant := 1 + random.IntN(total)
		l := newLineTest(t, total, perTenant, "")
		m := &lineModel{waiting: map[string][]string{}, slow: map[string][]time.Time{}, quick: map[string]time.Time{}}
		for next := range 400 {
			l.clock.Step([]time.Duration{0, time.Millisecond, slowAnswer, quickMemory / 3, slowMemory / 3}[max(0, random.IntN(15)-10)])
			m.now = l.clock.Now()
			switch name := string(rune('a' + random.IntN(6))); random.IntN(6) {
			case 0, 1:
				item := fmt.Sprintf("%s%d", name, next)
				l.Push(name, item)
				m.waiting[name] = append(m.waiting[name], item)
			case 2, 3:
				item, found := l.Line.Pop()
				if err := m.pop(item, found, total, perTenant); err != nil {
					t.Fatalf("seed %d, %d places, %d for a tenant: %v", seed, total, perTenant, err)
				}
			case 4:
				if len(m.running) > 0 {
					i := random.IntN(len(m.running))
					l.Release(m.running[i].item)
					m.release(i)
				}
			case 5:
				if len(m.running) > 0 {
					w := &m.running[random.IntN(len(m.running))]
					l.Begin(w.item)
					if w.began.IsZero() {
						w.began = m.now
					}
				}
			}
		}
		for name, items := range m.waiting {
			for _, item := range items {
				l.Remove(name, item)
			}
		}
		for _, w := range m.running {
			l.Release(w.item)
		}
		l.clock.Step(slowMemory)
		l.expectEmpty()
	}
}

// lineModel is what a line should do, said in another way.
type lineModel struct {
	now     time.Time
	waiting map[string][]string
	running []work[string]
	slow    map[string][]time.Time // When it was counted, and the last answer.
	quick   map[string]time.Time   // The last answer.
}

func (m *lineModel) release(i int) {
	w := m.running[i]
	m.running = append(m.running[:i:i], m.running[i+1:]...)
	name := w.item[:1]
	switch times := m.slow[name]; {
	case w.began.IsZero():
	case m.now.Sub(w.began) < slowAnswer:
		m.quick[name] = m.now
	case len(times) == 0 || m.now.Sub(times[len(times)-1]) >= slowMemory:
		m.slow[name] = []time.Time{m.now, m.now}
	case w.began.Sub(times[len(times)-2]) < time.Minute:
		times[len(times)-1] = m.now
	default:
		m.slow[name] = append(times[:len(times)-1:len(times)-1], m.now, m.now)
	}
}

func (m *lineModel) isQuick(name string) bool {
	at, found := m.quick[name]
	return found && m.now.Sub(at) < quickMemory
}

func (m *lineModel) isSlow(name string) bool {
	for _, w := range m.running {
		if w.item[:1] == name && !w.began.IsZero() && m.now.Sub(w.began) >= slowAnswer {
			return true
		}
	}
	times := m.slow[name]
	return len(times) > 2 && m.now.Sub(times[len(times)-1]) < slowMemory
}

func (m *lineModel) places(name string) (places int) {
	for _, w := range m.running {
		if w.item[:1] == name {
			places++
		}
	}
	return places
}

// mayBegin reports whether the bounds allow a tenant another place.
func (m *lineModel) mayBegin(name string, total, perTenant int) bool {
	slow, unknown := 0, 0
	for _, w := range m.running {
		switch other := w.item[:1]; {
		case m.isSlow(other):
			slow++
		case !m.isQuick(other):
			unknown++
		}
	}
	own, left := m.places(name), total-len(m.running)-1
	isSlow, isQuick := m.isSlow(name), m.isQuick(name)
	return left >= 0 && own < perTenant &&
		(own == 0 || own <= left || own*(total-perTenant) <= perTenant*left) &&
		(isQuick || own < max(1, total/8)) &&
		(!isSlow || slow < max(1, total/2)) &&
		(isQuick && !isSlow || slow+unknown < max(1, total*3/4))
}

func (m *lineModel) pop(item string, found bool, total, perTenant int) error {
	if !found {
		for name, items := range m.waiting {
			if len(items) > 0 && m.mayBegin(name, total, perTenant) {
				return fmt.Errorf("took nothing, though %s may begin", items[0])
			}
			if len(items) > 0 && len(m.running) == 0 {
				return fmt.Errorf("%s waits, and nothing is running", items[0])
			}
		}
		return nil
	}
	name := item[:1]
	if !m.mayBegin(name, total, perTenant) {
		return fmt.Errorf("took %s, which may not begin", item)
	}
	if want := m.waiting[name][0]; item != want {
		return fmt.Errorf("took %s, want %s", item, want)
	}
	for other, items := range m.waiting {
		if len(items) > 0 && m.places(other) < m.places(name) && m.mayBegin(other, total, perTenant) {
			return fmt.Errorf("took %s, though %s has fewer places", item, other)
		}
	}
	m.waiting[name] = m.waiting[name][1:]
	m.running = append(m.running, work[string]{item: item})
	return nil
}

// BenchmarkLine has ten thousand tenants wait, all of which are slow, or quick.
func BenchmarkLine(b *testing.B) {
	for name, took := range map[string]time.Duration{"slow": slowAnswer, "quick": time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			clock := testingclock.NewFakeClock(time.Now())
			l := NewLine[int](clock)
			l.Limit(80, 60)
			for i := range 20000 { // Each twice.
				l.Push(fmt.Sprint(i%10000), i)
				l.Pop()
				l.Begin(i)
				clock.Step(took)
				l.Release(i)
				clock.Step(-took)
			}
			for i := range 20000 {
				l.Push(fmt.Sprint(i%10000), i)
			}
			var running []int
			for b.Loop() {
				item, found := l.Pop()
				for ; found; item, found = l.Pop() {
					l.Begin(item)
					running = append(running, item)
				}
				l.Release(running[0])
				l.Push(fmt.Sprint(running[0]%10000), running[0])
				running = running[1:]
			}
		})
	}
}
