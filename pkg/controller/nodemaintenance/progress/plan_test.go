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

package progress

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
)

// A maintenance with less progress goes first, whatever its age, and the order is total.
func TestCompareProgress(t *testing.T) {
	at := func(name string, entries ...v1.DrainPlanEntry) Participant {
		targets, err := maintenance.NewTargets(entries)
		if err != nil {
			t.Fatal(err)
		}
		return Participant{Name: name, rank: name, Allowed: targets}
	}
	const pod, daemon = v1.PodTypeDefault, v1.PodTypeDaemonSet
	sorted := []Participant{
		at("9"),
		at("8", entryFor("web", pod, 1)),
		at("6", entryFor("web", pod, 5)),
		at("7", entryFor("db", pod, 5)),
		at("5", entryFor("db", pod, 2), entryFor("web", pod, 5)),
		at("4", entry(pod, 6)),
		at("3", entry(daemon, 1)),
		at("2", entry(pod, 9), entry(daemon, 1)),
		at("1", entry(daemon, 3)),
	}
	for i := range sorted {
		for j := range sorted {
			if got := compareProgress(sorted[i], sorted[j]); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%s (%s) against %s (%s): %d", sorted[i].Name, sorted[i].Allowed, sorted[j].Name, sorted[j].Allowed, got)
			}
		}
	}
}

// The progress of a maintenance never decreases from one position of its plan to the next.
func TestProgressGrowsWithThePosition(t *testing.T) {
	plan, err := maintenance.NewPlan(plan(entryFor("web", v1.PodTypeDefault, 5), entryFor("db", v1.PodTypeDefault, 5), entry(v1.PodTypeDefault, 5),
		entryFor("web", v1.PodTypeDefault, 2000000000), entryFor("db", v1.PodTypeDaemonSet, 7), entryFor("db", v1.PodTypeStatic, 7)))
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < plan.Len(); i++ {
		if before, now := plan.TargetsAt(i-1), plan.TargetsAt(i); maintenance.CompareProgress(before, now) > 0 {
			t.Errorf("%s at position %d comes after %s", before, i-1, now)
		}
	}
}

// A participant is limited only by those that allow less.
func TestLimitedBy(t *testing.T) {
	at := func(name string, priority int32) Participant {
		targets, err := maintenance.NewTargets([]v1.DrainPlanEntry{entry(v1.PodTypeDefault, priority)})
		if err != nil {
			t.Fatal(err)
		}
		return Participant{Name: name, rank: name, Allowed: targets}
	}
	all := []Participant{at("a", 1), at("b", 2), at("c", 3)}
	expectNames(t, "limited by", LimitedBy(all[1], all, all[0].Allowed), "a")
	expectNames(t, "limited by none", LimitedBy(all[0], all, all[0].Allowed))
	ofShutdown := func(p Participant) Participant {
		p.shutdown = true
		return p
	}
	all[0] = ofShutdown(all[0])
	expectNames(t, "limited by no shutdown", LimitedBy(all[2], all, all[0].Allowed), "b")
	if got := NodeTargets(all, maintenance.Targets{}, func(maintenance.Targets) bool { return true }); !got.Equal(all[1].Allowed) {
		t.Errorf("targets %s with a shutdown, want %s", got, all[1].Allowed)
	}
	// Alone, it drains as it allows, whatever the node was drained to before.
	if got := NodeTargets([]Participant{ofShutdown(all[2])}, all[1].Allowed, func(maintenance.Targets) bool { return true }); !got.Equal(all[2].Allowed) {
		t.Errorf("targets %s of a shutdown alone, want %s", got, all[2].Allowed)
	}
}

// Only a drain waits for finalizers.
func TestAwaitsFinalizers(t *testing.T) {
	claim, drain, other := orderOf(t, "c", 1, stageDrain), orderOf(t, "d", 1, stageDrain, ours), orderOf(t, "o", 1, stageComplete, ours)
	named := func(name string) Spec {
		o := orderOf(t, "s", 1, stageDrain)
		o.Name = name
		return o
	}
	begun := &v1.Node{Status: v1.NodeStatus{MaintenanceStatus: &v1.MaintenanceStatus{DrainTargets: []v1.DrainPlanEntry{entry(v1.PodTypeDefault, 1)}}}}
	for _, tc := range []struct {
		name  string
		node  *v1.Node
		specs []Spec
		want  bool
	}{
		{"a drain and a claim", &v1.Node{}, []Spec{drain, claim}, true},
		{"a drain that has begun", begun, []Spec{drain, claim}, false},
		{"a drain alone", &v1.Node{}, []Spec{drain}, false},
		{"a claim alone", &v1.Node{}, []Spec{claim}, false},
		{"a completion and a claim", &v1.Node{}, []Spec{other, claim}, false},
		{"a drain and a shutdown", &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, []Spec{drain, named(maintenance.ShutdownName("n"))}, false},
		{"that of another node", &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, []Spec{drain, named(maintenance.ShutdownName("m"))}, true},
	} {
		if got := AwaitsFinalizers(tc.node, tc.specs); got != tc.want {
			t.Errorf("%s: got %t", tc.name, got)
		}
	}
}
