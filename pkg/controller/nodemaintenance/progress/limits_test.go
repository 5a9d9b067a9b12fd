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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

func limitingNodesWith(label string, uid types.UID, generation int64) *coordinationv1alpha1.NodeMaintenanceBudget {
	return &coordinationv1alpha1.NodeMaintenanceBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "b", UID: uid, Generation: generation},
		Spec: coordinationv1alpha1.NodeMaintenanceBudgetSpec{NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: label, Operator: v1.NodeSelectorOpExists}},
		}}}},
	}
}

// TestPhaseOn checks which nodes a maintenance may begin with.
func TestPhaseOn(t *testing.T) {
	now := metav1.Now()
	admission := func(a v1.MaintenanceAdmission) *v1.MaintenanceStatus {
		return &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{a}}
	}
	targets := []v1.DrainPlanEntry{{}}
	rollout := func(o *Spec) { o.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{} }
	plain := func(*Spec) {}
	for name, test := range map[string]struct {
		change  func(*Spec)
		limited bool
		status  *v1.MaintenanceStatus
		done    string
		want    Phase
	}{
		"no limit":                        {plain, false, nil, "", PhaseAdmitted},
		"a budget":                        {plain, true, nil, "", PhaseWaiting},
		"a rollout":                       {rollout, false, nil, "", PhaseWaiting},
		"the stage Cordon":                {func(o *Spec) { rollout(o); o.Stage = stageCordon }, true, nil, "", PhaseAdmitted},
		"not effective yet":               {func(o *Spec) { rollout(o); o.Effective = false }, true, nil, "", PhaseAdmitted},
		"begun before the budget":         {plain, true, &v1.MaintenanceStatus{DrainTargets: targets}, "", PhaseAdmitted},
		"begun, and given back":           {plain, true, &v1.MaintenanceStatus{DrainTargets: targets, Unclaimed: true}, "", PhaseWaiting},
		"only cordoned before the budget": {plain, true, &v1.MaintenanceStatus{}, "", PhaseWaiting},
		"begun by another maintenance":    {rollout, false, &v1.MaintenanceStatus{DrainTargets: targets}, "", PhaseWaiting},
		"begun with another maintenance":  {plain, true, &v1.MaintenanceStatus{DrainTargets: targets, Admissions: []v1.MaintenanceAdmission{{MaintenanceUID: "other"}}}, "", PhaseWaiting},
		"begun after another maintenance": {plain, true, &v1.MaintenanceStatus{DrainTargets: targets, Admissions: []v1.MaintenanceAdmission{{MaintenanceUID: "other", DoneTime: &now}}}, "", PhaseAdmitted},
		"admitted":                        {rollout, true, admission(v1.MaintenanceAdmission{MaintenanceUID: "m"}), "", PhaseAdmitted},
		"another one is admitted":         {rollout, true, admission(v1.MaintenanceAdmission{MaintenanceUID: "other"}), "", PhaseWaiting},
		"returning":                       {rollout, true, admission(v1.MaintenanceAdmission{MaintenanceUID: "m", ReturningTime: &now}), "", PhaseReturning},
		"done":                            {rollout, true, admission(v1.MaintenanceAdmission{MaintenanceUID: "m", ReturningTime: &now, DoneTime: &now}), "", PhaseDone},
		"a kubelet that shuts down":       {func(o *Spec) { rollout(o); o.Name = maintenance.ShutdownName("n") }, true, nil, "", PhaseAdmitted},
		"marked as done":                  {rollout, true, nil, "m", PhaseDone},
		"marked as done, and cordoned":    {rollout, true, &v1.MaintenanceStatus{}, "m", PhaseWaiting},
		"marked, and another one drains":  {rollout, true, admission(v1.MaintenanceAdmission{MaintenanceUID: "other"}), "m", PhaseDone},
		"marked, and another one is done": {rollout, true, admission(v1.MaintenanceAdmission{MaintenanceUID: "other", DoneTime: &now}), "m", PhaseWaiting},
		"marked for another one":          {rollout, true, nil, "other", PhaseWaiting},
		"marked, without a limit":         {plain, false, nil, "m", PhaseAdmitted},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLimits()
			if test.limited {
				if _, err := l.Set(limitingNodesWith("a", "b", 1)); err != nil {
					t.Fatal(err)
				}
			}
			node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": ""}}, Status: v1.NodeStatus{MaintenanceStatus: test.status}}
			if test.done != "" {
				node.Annotations = map[string]string{coordinationv1alpha1.NodeDoneAnnotation: test.done}
			}
			o := &Spec{Name: "m", UID: "m", Effective: true, Stage: stageDrain}
			test.change(o)
			if got := l.PhaseOn(o, node); got != test.want {
				t.Errorf("phase %d, not %d", got, test.want)
			}
		})
	}
}

// An admission of a node that was down ends if the node is Ready again before any eviction was requested.
func TestAdmissionOfANodeThatIsBack(t *testing.T) {
	at := func(seconds int) metav1.Time { return metav1.NewTime(start.Add(time.Duration(seconds) * time.Second)) }
	ready := func(since int) []v1.NodeCondition {
		return []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, LastTransitionTime: at(since)}}
	}
	down := []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionUnknown, LastTransitionTime: at(70)}}
	admitted := func(change func(*v1.MaintenanceStatus, *v1.MaintenanceAdmission)) *v1.MaintenanceStatus {
		status := &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{MaintenanceUID: "m", AdmittedTime: at(60)}}}
		change(status, &status.Admissions[0])
		return status
	}
	plain := func(*v1.MaintenanceStatus, *v1.MaintenanceAdmission) {}
	for name, test := range map[string]struct {
		conditions []v1.NodeCondition
		status     *v1.MaintenanceStatus
		limited    bool
		want       Phase
	}{
		"it is still down":       {down, admitted(plain), true, PhaseAdmitted},
		"it is back":             {ready(61), admitted(plain), true, PhaseWaiting},
		"it was back before":     {ready(60), admitted(plain), true, PhaseAdmitted},
		"a clock is ahead":       {ready(101), admitted(plain), true, PhaseAdmitted},
		"no budget has a say":    {ready(61), admitted(plain), false, PhaseAdmitted},
		"requests may have been": {ready(61), admitted(func(s *v1.MaintenanceStatus, _ *v1.MaintenanceAdmission) { s.DrainTargets = []v1.DrainPlanEntry{{}} }), true, PhaseAdmitted},
		"it was drained": {ready(61), admitted(func(_ *v1.MaintenanceStatus, a *v1.MaintenanceAdmission) {
			a.DrainedTime = ptr.To(at(61))
		}), true, PhaseAdmitted},
		"it has failed": {ready(61), admitted(func(_ *v1.MaintenanceStatus, a *v1.MaintenanceAdmission) { a.FailedTime = ptr.To(at(61)) }), true, PhaseAdmitted},
		"it is given back": {ready(61), admitted(func(_ *v1.MaintenanceStatus, a *v1.MaintenanceAdmission) {
			a.ReturningTime = ptr.To(at(61))
		}), true, PhaseReturning},
	} {
		l := NewLimits()
		l.Now = func() time.Time { return start.Add(100 * time.Second) }
		if test.limited {
			if _, err := l.Set(limitingNodesWith("a", "b", 1)); err != nil {
				t.Fatal(err)
			}
		}
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": ""}}, Status: v1.NodeStatus{MaintenanceStatus: test.status, Conditions: test.conditions}}
		if got := l.PhaseOn(&Spec{Name: "m", UID: "m", Effective: true, Stage: stageDrain, Rollout: &coordinationv1alpha1.NodeMaintenanceRollout{}}, node); got != test.want {
			t.Errorf("%s: phase %d, not %d", name, got, test.want)
		}
	}
}

// Budgets are known by UID and generation: one of the same name may select other nodes.
func TestKnownBudgets(t *testing.T) {
	l := NewLimits()
	nodeWith := func(label string) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label: ""}}}
	}
	for _, step := range []struct {
		what    string
		set     *coordinationv1alpha1.NodeMaintenanceBudget
		changed bool
		limits  string
	}{
		{"new", limitingNodesWith("a", "b", 1), true, "a"},
		{"the same", limitingNodesWith("a", "b", 1), false, "a"},
		{"changed", limitingNodesWith("c", "b", 2), true, "c"},
		{"created again", limitingNodesWith("d", "other", 2), true, "d"},
	} {
		if l.HaveAll([]coordinationv1alpha1.NodeMaintenanceBudget{*step.set}) != !step.changed {
			t.Errorf("%s: it is known before: %t", step.what, step.changed)
		}
		if changed, err := l.Set(step.set); err != nil || changed != step.changed {
			t.Errorf("%s: changed %t, error %v", step.what, changed, err)
		}
		for _, label := range []string{"a", "c", "d"} {
			if got := l.Selects(nodeWith(label)); got != (label == step.limits) {
				t.Errorf("%s: a node with %s is limited: %t", step.what, label, got)
			}
		}
	}
	if !l.HaveAll([]coordinationv1alpha1.NodeMaintenanceBudget{*limitingNodesWith("d", "other", 1)}) {
		t.Error("a later generation is known, and the list is older")
	}
	l.Remove("b")
	if l.Selects(nodeWith("d")) || l.HaveAll([]coordinationv1alpha1.NodeMaintenanceBudget{*limitingNodesWith("d", "other", 2)}) {
		t.Error("a budget that is gone is known")
	}
}

// That all budgets are known, is so for one generation of one maintenance.
func TestCheckedMaintenances(t *testing.T) {
	l := NewLimits()
	of := func(uid types.UID, generation int64) *coordinationv1alpha1.NodeMaintenance {
		return &coordinationv1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: uid, Generation: generation}}
	}
	l.MarkChecked(of("m", 2))
	for _, test := range []struct {
		m    *coordinationv1alpha1.NodeMaintenance
		want bool
	}{{of("m", 2), true}, {of("m", 3), false}, {of("m", 1), false}, {of("other", 2), false}} {
		if got := l.IsChecked(test.m); got != test.want {
			t.Errorf("%s, generation %d: %t", test.m.UID, test.m.Generation, got)
		}
	}
	l.Forget("m")
	if l.IsChecked(of("m", 2)) {
		t.Error("it is not forgotten")
	}
}
