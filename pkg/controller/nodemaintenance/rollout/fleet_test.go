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

package rollout

import (
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

func readyNode(name string, labels map[string]string) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	return n
}

func budgetFor(name string, requirement v1.NodeSelectorRequirement) *coordinationv1alpha1.NodeMaintenanceBudget {
	b := &coordinationv1alpha1.NodeMaintenanceBudget{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", Generation: 1}}
	b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	b.Spec.NodeSelector = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{requirement}}}}
	return b
}

// An invalid budget has no node, but is known: decisions are only made if all budgets that the API
// server has are known, and one that is invalid must not stop all maintenances.
func TestInvalidBudget(t *testing.T) {
	f := NewFleet()
	f.SetNode(readyNode("n", map[string]string{"generation": "5"}))
	valid := v1.NodeSelectorRequirement{Key: "generation", Operator: v1.NodeSelectorOpGt, Values: []string{"4"}}
	if err := f.SetBudget(budgetFor("b", valid)); err != nil || f.budgets["b"].nodes.Len() != 1 {
		t.Fatalf("error %v, nodes %v", err, f.budgets["b"])
	}
	invalid := budgetFor("b", v1.NodeSelectorRequirement{Key: "generation", Operator: v1.NodeSelectorOpGt, Values: []string{"v4"}})
	invalid.Generation = 2
	err := f.SetBudget(invalid)
	if err == nil || f.budgets["b"] == nil || f.budgets["b"].nodes.Len() != 0 {
		t.Errorf("error %v, budget %+v", err, f.budgets["b"])
	}
	f.SetNode(readyNode("other", map[string]string{"generation": "6"}))
	if got := f.budgets["b"].nodes.Len(); got != 0 {
		t.Errorf("an invalid budget has %d nodes", got)
	}
}

// The fleet follows a list: nodes that have changed are counted again, and those that are gone do not
// count.
func TestSetNodes(t *testing.T) {
	f := NewFleet()
	if err := f.SetBudget(budgetFor("b", v1.NodeSelectorRequirement{Key: "pool", Operator: v1.NodeSelectorOpExists})); err != nil {
		t.Fatal(err)
	}
	pool := map[string]string{"pool": ""}
	same, changed, gone := readyNode("same", pool), readyNode("changed", pool), readyNode("gone", pool)
	f.SetNodes([]*v1.Node{same, changed, gone})
	cordoned := changed.DeepCopy()
	cordoned.Spec.Unschedulable = true
	f.SetNodes([]*v1.Node{same, cordoned, readyNode("new", nil)})
	if b := f.budgets["b"]; b.nodes.Len() != 2 || b.unavailable != 1 || len(f.nodes) != 3 {
		t.Errorf("nodes %v, %d unavailable, %d in all", b.nodes, b.unavailable, len(f.nodes))
	}
}

// An admission counts once, however often its node is seen, and no more when it is done.
func TestAdmissionsAreCountedOnce(t *testing.T) {
	f, n := NewFleet(), readyNode("n", nil)
	n.Status.MaintenanceStatus = &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{MaintenanceUID: "m"}}}
	for range 3 {
		f.SetNode(n.DeepCopy())
	}
	if c := f.admitted["m"]; c == nil || c.working != 1 || c.done != 0 {
		t.Fatalf("counted: %+v, want one that is worked on", c)
	}
	n.Status.MaintenanceStatus.Admissions[0].DoneTime = ptr.To(metav1.Now())
	f.SetNode(n.DeepCopy())
	if c := f.admitted["m"]; c == nil || c.working != 0 || c.done != 1 {
		t.Fatalf("counted: %+v, want one that is done", c)
	}
	f.RemoveNode("n")
	if len(f.admitted) != 0 {
		t.Errorf("counted without nodes: %v", f.admitted)
	}
}

// What was refused for a node says nothing of the one that has replaced it under its name.
func TestRefusedNodesAreForgotten(t *testing.T) {
	node := func(name string, uid types.UID) *v1.Node {
		n := readyNode(name, nil)
		n.UID = uid
		return n
	}
	f, stays := NewFleet(), node("stays", "1")
	f.SetNodes([]*v1.Node{stays, node("again", "2"), node("gone", "3")})
	for name := range f.nodes {
		f.refused[name] = decidedAt
	}
	relabeled := stays.DeepCopy()
	relabeled.Labels = map[string]string{"a": ""}
	f.SetNodes([]*v1.Node{relabeled, node("again", "4")})
	if _, kept := f.refused["stays"]; len(f.refused) != 1 || !kept {
		t.Errorf("refused: %v, want only the one that is there", f.refused)
	}
}

// A percentage rounds down, and is at least one node unless it is 0%.
func TestLimit(t *testing.T) {
	for _, test := range []struct {
		value *intstr.IntOrString
		all   int
		want  int
	}{
		{nil, 10, unlimited},
		{ptr.To(intstr.FromInt32(0)), 10, 0},
		{ptr.To(intstr.FromInt32(3)), 2, 3},
		{ptr.To(intstr.FromString("0%")), 1000, 0},
		{ptr.To(intstr.FromString("10%")), 0, 1},
		{ptr.To(intstr.FromString("10%")), 9, 1},
		{ptr.To(intstr.FromString("10%")), 19, 1},
		{ptr.To(intstr.FromString("10%")), 20, 2},
		{ptr.To(intstr.FromString("99%")), 100, 99},
		{ptr.To(intstr.FromString("100%")), 7, 7},
		{ptr.To(intstr.FromString("all")), 7, 0},
	} {
		if got := limit(test.value, test.all); got != test.want {
			t.Errorf("%v of %d: %d, not %d", test.value, test.all, got, test.want)
		}
	}
}

// A node counts until it is given back, also one that is drained without an admission.
func TestIsTaken(t *testing.T) {
	now := ptr.To(metav1.Now())
	for name, test := range map[string]struct {
		status *v1.MaintenanceStatus
		want   bool
	}{
		"no status":               {nil, false},
		"cordoned":                {&v1.MaintenanceStatus{}, false},
		"drained without budgets": {&v1.MaintenanceStatus{DrainTargets: []v1.DrainPlanEntry{{}}}, true},
		"admitted":                {&v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{}}}, true},
		"failed":                  {&v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{FailedTime: now}}}, true},
		"returning":               {&v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{ReturningTime: now}}}, true},
		"done":                    {&v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{ReturningTime: now, DoneTime: now}}}, false},
		"done, and admitted":      {&v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{DoneTime: now}, {}}}, true},
	} {
		n := readyNode("n", nil)
		n.Status.MaintenanceStatus = test.status
		if got := maintenance.IsTaken(n); got != test.want {
			t.Errorf("%s: %t, not %t", name, got, test.want)
		}
	}
}

// A node is lost unless a maintenance that has begun with it has drained it before it went down.
func TestIsLost(t *testing.T) {
	at := func(seconds int64) *metav1.Time { return ptr.To(metav1.Unix(seconds, 0)) }
	const wentDown = 1000
	for name, test := range map[string]struct {
		status *v1.MaintenanceStatus
		want   bool
	}{
		"no maintenance":             {nil, true},
		"its kubelet shuts down":     {&v1.MaintenanceStatus{DrainTargets: []v1.DrainPlanEntry{{}}}, false},
		"not drained":                {&v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{}}}, true},
		"drained before":             {&v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{DrainedTime: at(wentDown - 1)}}}, false},
		"drained in the same second": {&v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{DrainedTime: at(wentDown)}}}, true},
		"drained since":              {&v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{DrainedTime: at(wentDown + 1)}}}, true},
		"drained and given back":     {&v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{DrainedTime: at(1), DoneTime: at(2)}}}, true},
		"drained by one of two":      {&v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{}, {DrainedTime: at(1)}}}, false},
	} {
		n := readyNode("n", nil)
		n.Status.MaintenanceStatus = test.status
		if isLost(n) {
			t.Errorf("%s: it is Ready, and lost", name)
		}
		n.Status.Conditions = []v1.NodeCondition{
			{Type: v1.NodeReady, Status: v1.ConditionUnknown, LastTransitionTime: *at(wentDown)},
			{Type: v1.NodeDiskPressure, Status: v1.ConditionUnknown, LastTransitionTime: *at(wentDown + 100)},
		}
		if got := isLost(n); got != test.want {
			t.Errorf("%s: lost: %t, want %t", name, got, test.want)
		}
	}
}

// The earliest window opens next. One that cannot be read does not open, and without any other the
// budget is closed.
func TestWindowsOfABudget(t *testing.T) {
	now := time.Date(2026, 11, 25, 1, 0, 0, 0, time.UTC)
	at := func(schedule string) coordinationv1alpha1.NodeMaintenanceWindow {
		return coordinationv1alpha1.NodeMaintenanceWindow{Schedule: schedule, DurationSeconds: 600}
	}
	for name, test := range map[string]struct {
		windows []coordinationv1alpha1.NodeMaintenanceWindow
		open    bool
		next    time.Time
		invalid bool
	}{
		"none":               {nil, true, time.Time{}, false},
		"open":               {[]coordinationv1alpha1.NodeMaintenanceWindow{at("55 0 * * *")}, true, now.Add(24*time.Hour - 5*time.Minute), false},
		"the last one first": {[]coordinationv1alpha1.NodeMaintenanceWindow{at("0 4 * * *"), at("0 3 * * *")}, false, now.Add(2 * time.Hour), false},
		"the first one":      {[]coordinationv1alpha1.NodeMaintenanceWindow{at("0 3 * * *"), at("0 4 * * *")}, false, now.Add(2 * time.Hour), false},
		"invalid":            {[]coordinationv1alpha1.NodeMaintenanceWindow{at("never")}, false, time.Time{}, true},
		"one is invalid":     {[]coordinationv1alpha1.NodeMaintenanceWindow{at("never"), at("55 0 * * *")}, true, now.Add(24*time.Hour - 5*time.Minute), true},
	} {
		f, b := NewFleet(), budgetFor("b", v1.NodeSelectorRequirement{Key: "pool", Operator: v1.NodeSelectorOpExists})
		b.Spec.Windows = test.windows
		if err := f.SetBudget(b); (err != nil) != test.invalid {
			t.Errorf("%s: error %v", name, err)
		}
		if open, next := f.budgets["b"].isOpen(now), f.budgets["b"].nextWindow(now); open != test.open || !next.Equal(test.next) {
			t.Errorf("%s: open %t, next %v, not %t, %v", name, open, next, test.open, test.next)
		}
	}
}

// A budget that was deleted and created again is another one, although both have the same generation.
func TestBudgetCreatedAgain(t *testing.T) {
	f := NewFleet()
	f.SetNodes([]*v1.Node{readyNode("n", map[string]string{"pool": ""})})
	for _, requirement := range []v1.NodeSelectorRequirement{
		{Key: "other", Operator: v1.NodeSelectorOpExists},
		{Key: "pool", Operator: v1.NodeSelectorOpExists},
	} {
		b := budgetFor("b", requirement)
		b.UID = types.UID(requirement.Key)
		if err := f.SetBudget(b); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.budgets["b"].nodes.Len(); got != 1 {
		t.Errorf("the budget has %d nodes, not 1", got)
	}
}
