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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"
)

// lineTest is a line whose items start with the name of their tenant, a letter.
type lineTest struct {
	*Line[string]
	t     *testing.T
	clock *testingclock.FakeClock
}

// newLineTest returns a line with limits, in which all given tenants are quick.
func newLineTest(t *testing.T, total, perTenant int, tenants string) *lineTest {
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	l := &lineTest{Line: NewLine[string](clock), t: t, clock: clock}
	l.Limit(total, perTenant)
	for _, tenant := range tenants {
		l.recordDuration(string(tenant), 0)
	}
	return l
}

func (l *lineTest) Push(tenant, item string) { l.Line.Push(Owner{Tenant: tenant}, item) }

func (l *lineTest) PushFirst(tenant, item string) { l.Line.PushFirst(Owner{Tenant: tenant}, item) }

func (l *lineTest) PushFlow(flow, tenant, item string) {
	l.Line.Push(Owner{Flow: flow, Tenant: tenant}, item)
}

// Pop also begins the work on the item.
func (l *lineTest) Pop() (item string, found bool) {
	if item, found = l.Line.Pop(); found {
		l.Begin(item)
	}
	return item, found
}

// recordDuration processes an item of the tenant in the given time.
func (l *lineTest) recordDuration(tenant string, took time.Duration) {
	l.Push(tenant, tenant+"!")
	if item, found := l.Pop(); !found || item != tenant+"!" {
		l.t.Fatalf("got %q, %t, want an item of %s alone", item, found, tenant)
	}
	l.clock.Step(took)
	l.Release(tenant + "!")
}

// fill adds an item for each letter, numbered from zero.
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
		"nothing waits":                         {total: 9, perTenant: 1},
		"one tenant, in order":                  {waiting: "aaa", want: []string{"a0", "a1", "a2"}},
		"tenants take turns":                    {waiting: "aaabbc", want: []string{"a0", "b3", "c5", "a1", "b4", "a2"}},
		"all places are taken":                  {total: 2, waiting: "aaab", want: []string{"a0", "b3"}},
		"a tenant at its limit":                 {total: 9, perTenant: 2, waiting: "aaabb", want: []string{"a0", "b3", "a1", "b4"}},
		"a place is released":                   {total: 9, perTenant: 1, waiting: "aab", change: func(l *lineTest) { l.popAll(); l.Release("a0") }, want: []string{"a1"}},
		"a place is released for none":          {total: 9, perTenant: 1, waiting: "aab", change: func(l *lineTest) { l.popAll(); l.Release("b2") }},
		"an item without a place":               {total: 9, perTenant: 1, waiting: "aa", change: func(l *lineTest) { l.popAll(); l.Release("a1") }},
		"a tenant that comes later":             {total: 9, perTenant: 1, waiting: "aab", change: func(l *lineTest) { l.Push("c", "c3") }, want: []string{"a0", "b2", "c3"}},
		"items that go first":                   {waiting: "aab", change: func(l *lineTest) { l.PushFirst("a", "a!"); l.PushFirst("a", "a?") }, want: []string{"a!", "b2", "a?", "a0", "a1"}},
		"an item is removed":                    {waiting: "aab", change: func(l *lineTest) { l.Remove("a0") }, want: []string{"a1", "b2"}},
		"an item that goes first is removed":    {waiting: "aab", change: func(l *lineTest) { l.PushFirst("a", "a!"); l.Remove("a!") }, want: []string{"a0", "b2", "a1"}},
		"the only item is removed":              {total: 9, perTenant: 1, waiting: "ab", change: func(l *lineTest) { l.Remove("a0") }, want: []string{"b1"}},
		"removal of an item that does not wait": {waiting: "ab", change: func(l *lineTest) { l.Remove("b0") }, want: []string{"a0", "b1"}},
		"the limit is raised":                   {total: 9, perTenant: 1, waiting: "aaa", change: func(l *lineTest) { l.popAll(); l.Limit(9, 2) }, want: []string{"a1"}},
		"the limit falls":                       {total: 9, perTenant: 3, waiting: "aaab", change: func(l *lineTest) { l.Pop(); l.Limit(9, 1) }, want: []string{"b3"}},
		"fewest places first":                   {waiting: "aab", change: func(l *lineTest) { l.popAll(); l.fill("aabbb"); l.Release("b2") }, want: []string{"b2", "b3", "a0", "b4", "a1"}},
		"unlimited places":                      {perTenant: 1, waiting: "aab", want: []string{"a0", "b2", "a1"}},
		"two busy tenants":                      {total: 9, perTenant: 6, waiting: "aaaaaaaabbbbbbbb", want: []string{"a0", "b8", "a1", "b9", "a2", "b10", "a3"}},
		"a tenant without a place":              {total: 9, perTenant: 6, waiting: "aaaaaaaabbbbbbbb", change: func(l *lineTest) { l.popAll(); l.fill("cc") }, want: []string{"c0"}},
		"a small limit for each":                {total: 9, perTenant: 2, waiting: "aaabbbccc", want: []string{"a0", "b3", "c6", "a1", "b4", "c7"}},
		"places of another are released":        {total: 9, perTenant: 6, waiting: "aaaaaaaabbbb", change: func(l *lineTest) { l.popAll(); l.releaseAll("b8", "b9") }, want: []string{"b11", "a4"}},
		"more places than a lowered limit":      {total: 9, perTenant: 3, waiting: "aaaa", change: func(l *lineTest) { l.popAll(); l.Limit(9, 1); l.Release("a0") }},
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

// Tenants that were slow twice share half of the places for half an hour.
func TestSlowTenants(t *testing.T) {
	l := newLineTest(t, 8, 6, "abcdq")
	for _, tenant := range []string{"a", "b", "c"} {
		l.recordDuration(tenant, slowThreshold)
	}
	l.clock.Step(time.Minute - 2*slowThreshold)
	for _, tenant := range []string{"a", "b", "c", "d"} {
		l.recordDuration(tenant, slowThreshold)
	}
	l.recordDuration("q", slowThreshold-1)
	l.fill("aabbccqqqdd")
	l.expect("half for all slow tenants, in turn", "a0", "b2", "c4", "q6", "d9", "a1", "q7")
	l.Release("q6")
	l.expect("a place of a quick tenant is not for slow ones", "d10")
	l.Release("a1")
	l.expect("a place of a slow tenant is", "b3")
	l.releaseAll("d9", "d10", "q7", "a0", "b2", "b3", "c4")
	l.expect("the last items", "c5", "q8")
	l.releaseAll("c5", "q8")

	l.clock.Step(30*time.Minute - 5*slowThreshold)
	l.recordDuration("a", 0)
	l.fill("aaaaaa")
	l.expect("still slow", "a0", "a1", "a2", "a3")
	l.releaseAll("a0", "a1", "a2", "a3")
	l.clock.Step(4 * slowThreshold)
	l.expect("no longer slow", "a4", "a5")
	if l.tenants["a"].class != quick {
		t.Error("a is slow for longer than half an hour")
	}
}

// A short outage makes a tenant slow once, for any number of items.
func TestShortOutage(t *testing.T) {
	l := newLineTest(t, 8, 6, "a")
	l.fill("aaaaaa")
	l.popAll()
	l.clock.Step(slowThreshold)
	l.releaseAll("a0", "a1", "a2")
	l.expect("no more items")
	if l.tenants["a"].class != slow {
		t.Error("a is not slow during the outage")
	}
	l.clock.Step(slowThreshold)
	l.releaseAll("a3", "a4", "a5")
	l.fill("aaaaaa")
	l.expect("up to its limit, afterwards", "a0", "a1", "a2", "a3", "a4", "a5")
	l.releaseAll("a0", "a1", "a2", "a3", "a4", "a5")

	l.clock.Step(time.Minute - slowThreshold - 1)
	l.fill("aaaaaa")
	l.expect("retries right after the outage", "a0", "a1", "a2", "a3", "a4", "a5")
	l.clock.Step(slowThreshold)
	l.releaseAll("a0", "a1", "a2", "a3", "a4", "a5")
	l.fill("a")
	l.expect("count as the same outage", "a0")
	l.clock.Step(1)
	l.releaseAll("a0")
	l.fill("aaaaaa")
	l.expect("a minute later", "a0", "a1", "a2", "a3", "a4", "a5")
	l.clock.Step(slowThreshold)
	l.releaseAll("a0", "a1", "a2", "a3", "a4", "a5")
	l.fill("aaaaaa")
	l.expect("half after the second slow item", "a0", "a1", "a2", "a3")
}

// Only work that has begun affects the class of its tenant, from the call of Begin.
func TestBegin(t *testing.T) {
	l := newLineTest(t, 8, 4, "a")
	l.fill("aaa")
	for _, item := range []string{"a0", "a1", "a2"} {
		if got, found := l.Line.Pop(); got != item || !found {
			t.Fatalf("took %s, want %s", got, item)
		}
	}
	l.clock.Step(slowThreshold)
	l.Begin("a2")
	l.Begin("a1")
	l.clock.Step(slowThreshold - 1)
	l.Begin("a1") // No effect.
	l.Begin("a9") // This item has no place.
	l.Release("a0")
	l.expect("no more items")
	if tenant := l.tenants["a"]; tenant.class != quick || tenant.timesSlow > 0 {
		t.Errorf("a is %v, was slow %d times, want quick", tenant.class, tenant.timesSlow)
	}
	l.clock.Step(1)
	l.popAll()
	if tenant := l.tenants["a"]; tenant.class != slow || tenant.slowWork != 2 {
		t.Errorf("a is %v with %d slow items, want slow with two", tenant.class, tenant.slowWork)
	}
	l.releaseAll("a1", "a2")

	unused := newLineTest(t, 8, 4, "")
	unused.fill("a")
	unused.Line.Pop()
	unused.Release("a0")
	unused.expectEmpty()
}

func (l *lineTest) releaseAll(items ...string) {
	for _, item := range items {
		l.Release(item)
	}
}

// A tenant is slow before a slow item completes: when some of its many items complete, the others
// do not take all the places.
func TestTenantIsSlowBeforeTheEnd(t *testing.T) {
	l := newLineTest(t, 8, 6, "abq")
	l.fill("aaaaaaabbb")
	l.expect("all places except one", "a0", "b7", "a1", "b8", "a2", "b9", "a3")
	l.clock.Step(slowThreshold)
	l.fill("qqq")
	l.releaseAll("a0", "b7", "a1", "b8")
	l.expect("quick tenants, with half of the places for slow ones", "q0", "q1", "a4", "q2")
	l.Release("a2")
	l.expect("the next slow item", "a5")
}

// A tenant without completed items has few places until the first quick one. All such tenants leave
// a quarter of the places to others, also when they turn out to be slow.
func TestUnknownTenants(t *testing.T) {
	l := newLineTest(t, 16, 8, "q")
	l.fill("aaaa")
	l.expect("an eighth", "a0", "a1")
	l.clock.Step(slowThreshold)
	l.Release("a0")
	l.expect("after a slow item", "a2")
	l.Push("a", "a!")
	l.clock.Step(slowThreshold - 1)
	l.Release("a2")
	l.expect("after a quick item", "a3", "a!")
	l.releaseAll("a1", "a3", "a!")

	l.fill("bbccddeeffgghhiiqqqq")
	l.expect("three quarters", "b0", "c2", "d4", "e6", "f8", "g10", "h12", "i14", "q16", "b1", "c3", "d5", "e7", "q17")
	l.releaseAll("q16", "q17")
	l.clock.Step(slowThreshold)
	l.fill("zqqqq")
	l.expect("when they are slow", "q18", "q19")
	l.releaseAll("b0", "c2", "d4")
	l.expect("a place for an unknown tenant, and none for slow ones", "z0", "q1")
}

// With few places, unknown tenants have one each until the first quick item: two of them whose items
// hang neither hold up another one nor a quick tenant.
func TestUnknownTenantsWithFewPlaces(t *testing.T) {
	l := newLineTest(t, 4, 3, "q")
	l.fill("aaaabb")
	l.expect("one each", "a0", "b4")
	l.clock.Step(slowThreshold)
	l.fill("cq")
	l.expect("others, while both hang", "c0", "q1")
	l.releaseAll("c0", "q1")
	l.expect("none, until an item ends")
	l.Release("a0")
	l.expect("the next one, after an item that has hung", "a1")
	l.Release("a1")
	l.expect("several, after a quick one", "a2", "a3")
}

// A tenant is dropped when its last item is older than the window.
func TestTenantsAreForgotten(t *testing.T) {
	l := newLineTest(t, 8, 6, "ab")
	l.recordDuration("a", slowThreshold)
	l.clock.Step(slowWindow - slowThreshold)
	l.popAll()
	if len(l.tenants) != 1 || l.tenants["a"].timesSlow != 1 {
		t.Errorf("tenants are %v, want only a, slow once", l.tenants)
	}
	l.clock.Step(slowThreshold)
	l.expectEmpty()
	l.fill("aa")
	l.expect("like a new tenant", "a0")
}

func (l *lineTest) expectEmpty() {
	l.t.Helper()
	l.popAll()
	none := [numClasses]int{}
	if len(l.tenants)+len(l.flows)+len(l.running)+l.Len()+l.recent[slow].Len()+l.recent[quick].Len() > 0 || l.places != none || l.idle != none {
		l.t.Errorf("tenants %v with places %v and recent items %v remain", l.tenants, l.places, l.recent)
	}
	for s := range numClasses {
		if len(l.groups[s])+len(l.bySet[s]) > 0 {
			l.t.Errorf("groups %v, %v remain", l.groups[s], l.bySet[s])
		}
	}
}

// Flows take turns, whatever the number of their items and tenants.
func TestLineWithFlows(t *testing.T) {
	for name, test := range map[string]struct {
		total, perTenant int
		change           func(l *lineTest)
		want             []string
	}{
		"a flow that comes later": {change: func(l *lineTest) { l.PushFlow("2", "c", "c!") }, want: []string{"a0", "c!", "b3", "a1", "b4", "a2"}},
		"a flow of the same tenants": {
			change: func(l *lineTest) { l.PushFlow("2", "a", "a!"); l.PushFlow("2", "a", "a?") },
			want:   []string{"a0", "a!", "b3", "a?", "b4", "a1", "a2"},
		},
		"a flow without a place while others have some": {
			total: 4, perTenant: 0,
			change: func(l *lineTest) {
				l.popAll()
				l.PushFlow("2", "a", "a!")
				l.PushFlow("2", "a", "a?")
				l.releaseAll("a0", "b3")
			},
			want: []string{"a!", "a?"},
		},
		"the limit of a tenant is about all flows": {
			total: 9, perTenant: 2,
			change: func(l *lineTest) { l.PushFlow("2", "a", "a!"); l.PushFlow("2", "c", "c!") },
			want:   []string{"a0", "c!", "b3", "a!", "b4"},
		},
		"a flow at the limits of its tenants does not hold up others": {
			total: 9, perTenant: 1,
			change: func(l *lineTest) {
				l.popAll()
				l.PushFlow("2", "a", "a!")
				l.PushFlow("3", "c", "c!")
			},
			want: []string{"c!"},
		},
		"items of a flow that go first": {
			change: func(l *lineTest) { l.PushFlow("2", "a", "a!"); l.Line.PushFirst(Owner{Flow: "2", Tenant: "a"}, "a?") },
			want:   []string{"a0", "a?", "b3", "a!", "b4", "a1", "a2"},
		},
		"sources of a tenant take turns": {
			change: func(l *lineTest) {
				l.Line.Push(Owner{Tenant: "a", Source: "x"}, "ax")
				l.Line.Push(Owner{Tenant: "a", Source: "x"}, "ax2")
				l.Line.Push(Owner{Tenant: "a", Source: "y"}, "ay")
			},
			want: []string{"a0", "b3", "ax", "b4", "ay", "a1", "ax2", "a2"},
		},
		"the only item of a source is removed": {
			change: func(l *lineTest) { l.Line.Push(Owner{Tenant: "a", Source: "x"}, "ax"); l.Remove("ax") },
			want:   []string{"a0", "b3", "a1", "b4", "a2"},
		},
		"the only item of a flow is removed": {
			change: func(l *lineTest) { l.PushFlow("2", "c", "c!"); l.Remove("c!") },
			want:   []string{"a0", "b3", "a1", "b4", "a2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLineTest(t, test.total, test.perTenant, "abc")
			l.fill("aaabb")
			test.change(l)
			l.expect("unexpected items", test.want...)
		})
	}
}

// After many items, the line does not hold their memory.
func TestLineForgetsManyItems(t *testing.T) {
	for count, want := range map[int]int{keptWaiting: keptWaiting, keptWaiting + 1: 0} {
		l := NewLine[int](testingclock.NewFakeClock(time.Now()))
		for i := range count {
			l.Push(Owner{}, i)
		}
		for range count {
			if item, found := l.Pop(); found {
				l.Release(item)
			}
		}
		if l.Len() != 0 || l.mostWaiting != want {
			t.Errorf("%d items: %d wait, at most %d in this map, want none and %d", count, l.Len(), l.mostWaiting, want)
		}
	}
}
