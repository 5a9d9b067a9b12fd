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

// Tenants that were slow have half of the places together, for five minutes.
func TestSlowTenants(t *testing.T) {
	l := newLineTest(t, 8, 6, "abcq")
	for _, tenant := range []string{"a", "b", "c"} {
		l.answer(tenant, slowAnswer)
	}
	l.answer("q", slowAnswer-1)
	l.fill("aabbccqqqq")
	l.expect("half for all of them, in turn", "a0", "b2", "c4", "q6", "a1", "q7", "q8", "q9")
	l.Release("q6")
	l.expect("another quick one makes no room for them")
	l.Release("a1")
	l.expect("one of them does", "b3")
	l.answerAll("q7", "q8", "q9", "a0", "b2", "b3", "c4")
	l.expect("the last one", "c5")
	l.Release("c5")

	l.clock.Step(memory - slowAnswer)
	l.answer("q", 0) // The answers of a, b and c that were quick are nearly forgotten, too.
	l.answer("a", 0)
	l.fill("aaaaaa")
	l.expect("no longer slow", "a0", "a1", "a2", "a3", "a4", "a5")
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
	l.expect("all places", "a0", "b7", "a1", "b8", "a2", "b9", "a3", "a4")
	l.clock.Step(slowAnswer)
	l.fill("qqq")
	l.Push("b", "b!")
	l.answerAll("a0", "b7", "a1", "b8")
	l.expect("quick ones, while half of the places are held", "q0", "q1", "q2")
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
	l.expect("three quarters", "b0", "c2", "d4", "e6", "f8", "g10", "h12", "i14", "q16", "b1", "c3", "d5", "e7", "q17", "q18", "q19")
	l.answerAll("q16", "q17", "q18", "q19")
	l.clock.Step(slowAnswer)
	l.fill("qqqqz")
	l.expect("when they are slow", "q0", "q1", "q2", "q3")
	l.answerAll("b0", "c2", "d4")
	l.expect("room for one without an answer, and none for slow ones", "z4")
}

// A tenant is forgotten when its last answer is too old.
func TestTenantsAreForgotten(t *testing.T) {
	l := newLineTest(t, 8, 6, "ab")
	l.answer("a", slowAnswer)
	l.clock.Step(memory - slowAnswer)
	l.popAll()
	if len(l.tenants) != 1 || l.tenants["a"].standing != slow {
		t.Errorf("remembers %v, want a alone, as slow", l.tenants)
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
		m := &lineModel{waiting: map[string][]string{}, slow: map[string]time.Time{}, quick: map[string]time.Time{}}
		for next := range 400 {
			l.clock.Step([]time.Duration{0, time.Millisecond, slowAnswer, memory / 3}[min(3, random.IntN(12))%4])
			m.now = l.clock.Now()
			switch name := string(rune('a' + random.IntN(6))); random.IntN(5) {
			case 0, 1:
				item := fmt.Sprintf("%s%d", name, next)
				l.Push(name, item)
				m.waiting[name] = append(m.waiting[name], item)
			case 2, 3:
				item, found := l.Pop()
				if err := m.pop(item, found, total, perTenant); err != nil {
					t.Fatalf("seed %d, %d places, %d for a tenant: %v", seed, total, perTenant, err)
				}
			case 4:
				if len(m.running) > 0 {
					i := random.IntN(len(m.running))
					l.Release(m.running[i].item)
					m.release(i)
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
		l.clock.Step(memory)
		l.expectEmpty()
	}
}

// lineModel is what a line should do, said in another way.
type lineModel struct {
	now         time.Time
	waiting     map[string][]string
	running     []work[string]
	slow, quick map[string]time.Time // The last answers.
}

func (m *lineModel) release(i int) {
	w := m.running[i]
	m.running = append(m.running[:i:i], m.running[i+1:]...)
	if m.now.Sub(w.began) < slowAnswer {
		m.quick[w.item[:1]] = m.now
	} else {
		m.slow[w.item[:1]] = m.now
	}
}

func (m *lineModel) lately(answers map[string]time.Time, name string) bool {
	at, found := answers[name]
	return found && m.now.Sub(at) < memory
}

func (m *lineModel) isSlow(name string) bool {
	for _, w := range m.running {
		if w.item[:1] == name && m.now.Sub(w.began) >= slowAnswer {
			return true
		}
	}
	return m.lately(m.slow, name)
}

// mayBegin reports whether the bounds allow a tenant another place.
func (m *lineModel) mayBegin(name string, total, perTenant int) bool {
	own, slow, unknown := 0, 0, 0
	for _, w := range m.running {
		switch other := w.item[:1]; {
		case m.isSlow(other):
			slow++
		case !m.lately(m.quick, other):
			unknown++
		}
		if w.item[:1] == name {
			own++
		}
	}
	isSlow, isQuick := m.isSlow(name), m.lately(m.quick, name)
	return len(m.running) < total && own < perTenant &&
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
	m.waiting[name] = m.waiting[name][1:]
	m.running = append(m.running, work[string]{item: item, began: m.now})
	return nil
}

// BenchmarkLine has ten thousand tenants wait, nearly all of which are slow.
func BenchmarkLine(b *testing.B) {
	clock := testingclock.NewFakeClock(time.Now())
	l := NewLine[int](clock)
	l.Limit(80, 20)
	for i := range 10000 {
		l.Push(fmt.Sprint(i), i)
		l.Pop()
		clock.Step(slowAnswer)
		l.Release(i)
		clock.Step(-slowAnswer)
	}
	for i := range 10000 {
		l.Push(fmt.Sprint(i), i)
	}
	for b.Loop() {
		item, found := l.Pop()
		if !found {
			b.Fatal("nothing may begin")
		}
		l.Release(item)
		l.Push(fmt.Sprint(item), item)
	}
}
