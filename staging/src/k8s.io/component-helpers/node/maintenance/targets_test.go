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

package maintenance

import (
	gocmp "cmp"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

func TestLeastPowerful(t *testing.T) {
	for _, tc := range []struct {
		name string
		all  [][]v1.DrainPlanEntry
		want []v1.DrainPlanEntry
	}{
		{"none", nil, nil},
		{"one", [][]v1.DrainPlanEntry{{defaultPods(5)}}, []v1.DrainPlanEntry{defaultPods(5)}},
		{"lower of two", [][]v1.DrainPlanEntry{{defaultPods(15000)}, {defaultPods(10000)}}, []v1.DrainPlanEntry{defaultPods(10000)}},
		{"one allows nothing", [][]v1.DrainPlanEntry{{defaultPods(5)}, nil}, nil},
		{"type that one has not reached", [][]v1.DrainPlanEntry{{defaultPods(9), daemonPods(3)}, {defaultPods(7)}}, []v1.DrainPlanEntry{defaultPods(7)}},
		{
			"selector that the other does not know",
			[][]v1.DrainPlanEntry{{defaultPods(10), ofApp("db", defaultPods(50))}, {defaultPods(30)}},
			[]v1.DrainPlanEntry{defaultPods(10), ofApp("db", defaultPods(30))},
		},
		{
			"two selectors",
			[][]v1.DrainPlanEntry{{defaultPods(10), ofApp("db", defaultPods(50))}, {defaultPods(20), ofApp("web", defaultPods(40))}},
			[]v1.DrainPlanEntry{defaultPods(10), ofApp("db", defaultPods(20)), ofApp("web", defaultPods(10))},
		},
		{
			"only selectors",
			[][]v1.DrainPlanEntry{{ofApp("db", defaultPods(50))}, {ofApp("web", defaultPods(40))}},
			nil,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var all []Targets
			for _, entries := range tc.all {
				all = append(all, mustTargets(t, entries...))
			}
			if diff := cmp.Diff(tc.want, LeastPowerful(all...).Entries()); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
		})
	}
}

func TestRaisedTo(t *testing.T) {
	for _, tc := range []struct {
		name                 string
		targets, floor, want []v1.DrainPlanEntry
	}{
		{"no floor", []v1.DrainPlanEntry{defaultPods(5)}, nil, []v1.DrainPlanEntry{defaultPods(5)}},
		{"lower", []v1.DrainPlanEntry{defaultPods(2000)}, []v1.DrainPlanEntry{defaultPods(10000)}, []v1.DrainPlanEntry{defaultPods(10000)}},
		{"higher", []v1.DrainPlanEntry{defaultPods(9)}, []v1.DrainPlanEntry{defaultPods(7)}, []v1.DrainPlanEntry{defaultPods(9)}},
		{
			"types and selectors of both",
			[]v1.DrainPlanEntry{defaultPods(5), ofApp("db", defaultPods(6))}, []v1.DrainPlanEntry{defaultPods(8), daemonPods(1)},
			[]v1.DrainPlanEntry{defaultPods(8), ofApp("db", defaultPods(8)), daemonPods(1)},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := mustTargets(t, tc.targets...).RaisedTo(mustTargets(t, tc.floor...))
			if diff := cmp.Diff(tc.want, got.Entries()); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
		})
	}
}

func TestReachesAndEqual(t *testing.T) {
	for _, tc := range []struct {
		name           string
		a, b           []v1.DrainPlanEntry
		reaches, equal bool
	}{
		{"nothing", nil, nil, true, true},
		{"something and nothing", []v1.DrainPlanEntry{defaultPods(1)}, nil, true, false},
		{"nothing and something", nil, []v1.DrainPlanEntry{defaultPods(1)}, false, false},
		{"a selector below all is no difference", []v1.DrainPlanEntry{defaultPods(9)}, []v1.DrainPlanEntry{defaultPods(9), ofApp("db", defaultPods(3))}, true, true},
		{"another type", []v1.DrainPlanEntry{defaultPods(9)}, []v1.DrainPlanEntry{daemonPods(1)}, false, false},
		{"a selector above all", []v1.DrainPlanEntry{defaultPods(9)}, []v1.DrainPlanEntry{defaultPods(1), ofApp("db", defaultPods(10))}, false, false},
	} {
		a, b := mustTargets(t, tc.a...), mustTargets(t, tc.b...)
		if a.Reaches(b) != tc.reaches || a.Equal(b) != tc.equal {
			t.Errorf("%s: reaches %t, equal %t", tc.name, a.Reaches(b), a.Equal(b))
		}
	}
}

// TestTargetsProperties checks on random plans and pods what the rest of the project
// relies upon.
func TestTargetsProperties(t *testing.T) {
	for _, seed := range []uint64{4212, rand.Uint64()} {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { testTargetsProperties(t, seed) })
	}
}

func testTargetsProperties(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	apps := []string{"db", "web", "queue"}
	randomEntry := func() v1.DrainPlanEntry {
		entry := v1.DrainPlanEntry{PodPriority: random.Int32N(6), PodType: podTypes[random.IntN(3)]}
		if random.IntN(2) == 0 {
			entry = ofApp(apps[random.IntN(3)], entry)
		}
		return entry
	}
	randomPlan := func() *Plan {
		var entries []v1.DrainPlanEntry
		for range 1 + random.IntN(8) {
			entries = append(entries, randomEntry())
		}
		return mustPlan(t, entries...)
	}
	var pods []*v1.Pod
	for priority := range int32(7) {
		for _, app := range apps {
			pods = append(pods, pod(priority, app))
		}
		pods = append(pods, daemonPod(priority), staticPod(priority))
	}
	for range 2000 {
		a, b := randomPlan(), randomPlan()
		i, j := random.IntN(a.Len()), random.IntN(b.Len())
		least := LeastPowerful(a.TargetsAt(i), b.TargetsAt(j))
		for _, p := range pods {
			// A position takes exactly the pods whose entry has been reached.
			if a.TargetsAt(i).Take(p) != (a.EntryFor(p) <= i) {
				t.Fatalf("seed %d: position %d of %v and pod %v disagree", seed, i, a.entries, p)
			}
			if least.Take(p) && !(a.TargetsAt(i).Take(p) && b.TargetsAt(j).Take(p)) {
				t.Fatalf("seed %d: the least powerful targets of %v and %v take %v", seed, a.entries, b.entries, p)
			}
			if raised := least.RaisedTo(b.TargetsAt(j)); (least.Take(p) || b.TargetsAt(j).Take(p)) && !raised.Take(p) {
				t.Fatalf("seed %d: raising %v to %v loses %v", seed, least.Entries(), b.TargetsAt(j).Entries(), p)
			}
		}
		if !a.TargetsAt(i+1).Reaches(a.TargetsAt(i)) || !least.RaisedTo(a.TargetsAt(i)).Reaches(a.TargetsAt(i)) {
			t.Fatalf("seed %d: a step back in %v at %d", seed, a.entries, i)
		}
		stored := mustTargets(t, least.Entries()...)
		if !stored.Equal(least) {
			t.Fatalf("seed %d: %v changes when it is stored", seed, least.Entries())
		}
	}
}

// What is stored does not depend on the order of a plan.
func TestTargetsAreSorted(t *testing.T) {
	got := mustTargets(t, v1.DrainPlanEntry{PodPriority: 1, PodType: v1.PodTypeStatic}, ofApp("db", defaultPods(5)), daemonPods(2), defaultPods(3)).Entries()
	want := []v1.DrainPlanEntry{defaultPods(3), ofApp("db", defaultPods(5)), daemonPods(2), {PodPriority: 1, PodType: v1.PodTypeStatic}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	if CompareEntries(ofApp("db", defaultPods(5)), defaultPods(5)) >= 0 {
		t.Error("an entry for all pods is before one with a selector")
	}
}

// Each of these targets is later than the one before.
func TestCompareProgress(t *testing.T) {
	all := []Targets{
		{},
		mustTargets(t, defaultPods(1)),
		mustTargets(t, defaultPods(1), ofApp("db", defaultPods(7))),
		mustTargets(t, defaultPods(8)),
		mustTargets(t, defaultPods(1), ofApp("db", defaultPods(9))),
		mustTargets(t, defaultPods(8), ofApp("db", defaultPods(10))),
		mustTargets(t, daemonPods(1)),
		mustTargets(t, defaultPods(8), daemonPods(1)),
	}
	for i := range all {
		for j := range all {
			if got, want := CompareProgress(all[i], all[j]), gocmp.Compare(i, j); got != want {
				t.Errorf("%v and %v compare as %d, want %d", all[i], all[j], got, want)
			}
		}
	}
}
