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
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// randomFleet returns a fleet with some nodes, budgets and maintenances.
func randomFleet(t *testing.T, random *rand.Rand) (*Fleet, []Maintenance) {
	t.Helper()
	f := NewFleet()
	states := []func(*v1.Node){func(*v1.Node) {}, func(*v1.Node) {}, func(*v1.Node) {}, cordoned, down, removed, admitted, givenBack}
	var names []string
	for i := range 5 + random.IntN(11) { // Fewer than a decision may have, for all maintenances.
		name := fmt.Sprintf("n%02d", i)
		n := inZone(name, string(rune('a'+random.IntN(3))), states[random.IntN(len(states))])
		n.Labels["rack"], n.Labels[fmt.Sprint("pool", random.IntN(3))] = fmt.Sprint(random.IntN(5)), ""
		n.CreationTimestamp = metav1.NewTime(decidedAt.Add(time.Duration(random.IntN(9)-6) * time.Minute))
		if random.IntN(5) == 0 {
			n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(decidedAt.Add(-time.Minute))
		}
		if random.IntN(6) == 0 {
			delete(n.Labels, "zone")
		}
		f.SetNode(n)
		names = append(names, name)
		if random.IntN(10) == 0 {
			f.refused[name] = decidedAt
		}
	}
	pick := func() string { return names[random.IntN(len(names))] }
	for i := range 1 + random.IntN(4) {
		b := budgetFor(fmt.Sprint("b", i), v1.NodeSelectorRequirement{Key: []string{"pool", "pool0", "pool1"}[random.IntN(3)], Operator: v1.NodeSelectorOpExists})
		b.UID, b.Spec.MaxUnavailable = types.UID(b.Name), ptr.To(intstr.FromInt(1+random.IntN(12)))
		if random.IntN(2) == 0 {
			b.Spec.Topology = &coordinationv1alpha1.NodeMaintenanceTopology{Key: []string{"zone", "rack"}[random.IntN(2)], MaxDomains: int32(1 + random.IntN(3))}
		}
		if random.IntN(6) == 0 {
			b.Spec.Windows = []coordinationv1alpha1.NodeMaintenanceWindow{{Schedule: []string{"0 1 * * *", "0 2 * * *"}[random.IntN(2)], DurationSeconds: 600}}
		}
		for range random.IntN(3) {
			b.Status.PendingAdmissions = append(b.Status.PendingAdmissions, reservedAt(decidedAt, types.UID(fmt.Sprint("m", random.IntN(3))), pick())...)
		}
		if err := f.SetBudget(b); err != nil {
			t.Fatal(err)
		}
	}
	var maintenances []Maintenance
	for i := range 3 {
		m := waitingFor(fmt.Sprint("m", i))
		m.CreationTimestamp = metav1.NewTime(decidedAt)
		for _, name := range names {
			if random.IntN(4) > 0 {
				m.Waiting = append(m.Waiting, name)
			}
		}
		if m.Selected = len(m.Waiting); random.IntN(2) == 0 {
			m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt(1 + random.IntN(5))), Paused: random.IntN(6) == 0}
		}
		maintenances = append(maintenances, m)
	}
	return f, maintenances
}

// What is decided on nodes of a class is what is decided on each of them alone: a budget for each node that
// allows everything makes them classes of their own.
func TestClassesAndTheirNodes(t *testing.T) {
	for seed := range uint64(2000) {
		decide := func(split bool) (admissions []string, waiting map[string]int) {
			random := rand.New(rand.NewPCG(seed, 0))
			f, maintenances := randomFleet(t, random)
			for name, n := range f.nodes {
				if !split {
					break
				}
				b := budgetFor("own-"+name, v1.NodeSelectorRequirement{Key: "own", Operator: v1.NodeSelectorOpIn, Values: []string{name}})
				b.UID, b.Spec.MaxUnavailable = types.UID(b.Name), ptr.To(intstr.FromInt32(9))
				n.Labels["own"] = name
				if err := f.SetBudget(b); err != nil {
					t.Fatal(err)
				}
			}
			decision := f.Decide(maintenances, decidedAt)
			admissions, _ = decisionText(decision)
			waiting = map[string]int{}
			for name, waits := range decision.Waits {
				for _, count := range waits {
					waiting[name] += count
				}
			}
			return admissions, waiting
		}
		together, waiting := decide(false)
		alone, waitingAlone := decide(true)
		if diff := cmp.Diff([]any{alone, waitingAlone}, []any{together, waiting}); diff != "" {
			t.Fatalf("seed %d: admissions and how many nodes wait (-each node alone, +in classes):\n%s", seed, diff)
		}
	}
}

// A decision does not do more because there are more nodes of the same kind: it only counts them.
func TestDecisionOnManyNodes(t *testing.T) {
	allocations := func(nodes int) float64 {
		f := NewFleet()
		names := make([]string, 0, nodes)
		for i := range nodes {
			n := inZone(fmt.Sprintf("n%04d", i), string(rune('a'+i%3)), cordoned)
			names = append(names, n.Name)
			f.SetNode(n)
		}
		for i := range 5 {
			b := budgetFor(fmt.Sprint("b", i), v1.NodeSelectorRequirement{Key: "pool", Operator: v1.NodeSelectorOpExists})
			b.Spec.MaxUnavailable, b.Spec.Topology = ptr.To(intstr.FromString("0%")), zoneTopology()
			if err := f.SetBudget(b); err != nil {
				t.Fatal(err)
			}
		}
		var maintenances []Maintenance
		for i := range 20 {
			maintenances = append(maintenances, waitingFor(fmt.Sprint("m", i), names...))
		}
		return testing.AllocsPerRun(3, func() {
			if d := f.Decide(maintenances, decidedAt); len(d.Admissions) > 0 || len(d.Waits) != len(maintenances) {
				t.Fatalf("%d admissions, waits of %d maintenances", len(d.Admissions), len(d.Waits))
			}
		})
	}
	if few, many := allocations(100), allocations(2000); many > 1.5*few {
		t.Errorf("%.0f allocations for 100 nodes, and %.0f for 2,000", few, many)
	}
}

// Of machines that have come back, the one is first that has been back the longest: otherwise the first one
// would go again and again.
func TestYoungNodesTakeTurns(t *testing.T) {
	created := func(after time.Duration) func(*v1.Node) {
		return func(n *v1.Node) { n.CreationTimestamp = metav1.NewTime(decidedAt.Add(after)) }
	}
	f := NewFleet()
	f.SetNodes([]*v1.Node{inZone("n1", "a", created(3*time.Hour)), inZone("n2", "b", created(time.Hour)), inZone("n3", "a", created(2*time.Hour))})
	m := waitingFor("m", "n1", "n2", "n3")
	m.CreationTimestamp = metav1.NewTime(decidedAt)
	got, _ := decisionText(f.Decide([]Maintenance{m}, decidedAt))
	if diff := cmp.Diff([]string{"m n2", "m n3", "m n1"}, got); diff != "" {
		t.Errorf("admissions (-want, +got):\n%s", diff)
	}
}

// A machine that has come back does not keep its zone active while a node of another zone has never gone.
func TestYoungNodeLeavesItsZone(t *testing.T) {
	young := func(n *v1.Node) { n.CreationTimestamp = metav1.NewTime(decidedAt.Add(time.Hour)) }
	f := NewFleet()
	f.SetNodes([]*v1.Node{inZone("back", "a", young), inZone("busy", "a", admitted), inZone("never", "b")})
	if err := f.SetBudget(budgetOfPool(2, 1)); err != nil {
		t.Fatal(err)
	}
	m := waitingFor("m", "back", "never")
	m.CreationTimestamp = metav1.NewTime(decidedAt)
	got, waits := decisionText(f.Decide([]Maintenance{m}, decidedAt))
	if diff := cmp.Diff(map[string]int{"m Topology": 2}, waits); diff != "" || len(got) > 0 {
		t.Errorf("admissions %v, waits (-want, +got):\n%s", got, diff)
	}
	m.Waiting = []string{"back"}
	if got, _ := decisionText(f.Decide([]Maintenance{m}, decidedAt)); len(got) != 1 {
		t.Errorf("%d admissions when the others have gone, not 1", len(got))
	}
}

// Nodes of several budgets with windows wait until all of them are open, and say so if that is never.
func TestBudgetsThatAreOpenTogether(t *testing.T) {
	hourly := func(schedules ...string) (windows []coordinationv1alpha1.NodeMaintenanceWindow) {
		for _, schedule := range schedules {
			windows = append(windows, coordinationv1alpha1.NodeMaintenanceWindow{Schedule: schedule, DurationSeconds: 3600})
		}
		return windows
	}
	// It is 01:00 on a Wednesday.
	for name, test := range map[string]struct {
		windows [][]coordinationv1alpha1.NodeMaintenanceWindow
		want    Wait
	}{
		"one":                       {[][]coordinationv1alpha1.NodeMaintenanceWindow{hourly("0 3 * * *")}, Wait{Budget: "b0", Until: decidedAt.Add(2 * time.Hour)}},
		"one, in months":            {[][]coordinationv1alpha1.NodeMaintenanceWindow{hourly("0 3 1 3 *")}, Wait{Budget: "b0", Until: time.Date(2027, 3, 1, 3, 0, 0, 0, time.UTC)}},
		"one, and one without":      {[][]coordinationv1alpha1.NodeMaintenanceWindow{nil, hourly("0 3 * * *")}, Wait{Budget: "b1", Until: decidedAt.Add(2 * time.Hour)}},
		"two with the same":         {[][]coordinationv1alpha1.NodeMaintenanceWindow{hourly("0 3 * * *"), hourly("0 3 * * *")}, Wait{Budget: "b0", Until: decidedAt.Add(2 * time.Hour)}},
		"they meet":                 {[][]coordinationv1alpha1.NodeMaintenanceWindow{hourly("0 2 * * *"), hourly("30 2 * * 6")}, Wait{Budget: "b1", Until: time.Date(2026, 11, 28, 2, 30, 0, 0, time.UTC)}},
		"one is open, but not then": {[][]coordinationv1alpha1.NodeMaintenanceWindow{hourly("30 0 * * *"), hourly("0 16 * * *", "0 1 * * 0")}, Wait{Budget: "b1", Until: time.Date(2026, 11, 29, 1, 0, 0, 0, time.UTC)}},
		"they never meet":           {[][]coordinationv1alpha1.NodeMaintenanceWindow{hourly("0 16 * * *"), hourly("0 18 * * *")}, Wait{Budget: "b0"}},
		"the open one never meets":  {[][]coordinationv1alpha1.NodeMaintenanceWindow{hourly("30 0 * * *"), hourly("0 18 * * *")}, Wait{Budget: "b1"}},
		"one is not understood":     {[][]coordinationv1alpha1.NodeMaintenanceWindow{hourly("30 0 * * *"), hourly("never")}, Wait{Budget: "b1"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFleet()
			f.SetNodes(pool("n", 2))
			for i, windows := range test.windows {
				b := budgetOfPool(2, 0)
				b.Name, b.UID, b.Spec.Windows = fmt.Sprint("b", i), types.UID(fmt.Sprint(i)), windows
				if err := f.SetBudget(b); err != nil && name != "one is not understood" {
					t.Fatal(err)
				}
			}
			test.want.Reason = coordinationv1alpha1.NodeMaintenanceWaitWindow
			waits := f.Decide([]Maintenance{waitingFor("m", "n00", "n01")}, decidedAt).Waits["m"]
			if diff := cmp.Diff(map[Wait]int{test.want: 2}, waits); diff != "" {
				t.Errorf("waits (-want, +got):\n%s", diff)
			}
		})
	}
}

// That budgets are never open together is asked again, and not in each decision.
func TestMeetingIsKept(t *testing.T) {
	f := NewFleet()
	f.SetNodes(pool("n", 1))
	for i, schedule := range []string{"0 16 * * *", "0 18 * * *"} {
		b := budgetOfPool(2, 0)
		b.Name, b.UID = fmt.Sprint("b", i), types.UID(fmt.Sprint(i))
		b.Spec.Windows = []coordinationv1alpha1.NodeMaintenanceWindow{{Schedule: schedule, DurationSeconds: 3600}}
		if err := f.SetBudget(b); err != nil {
			t.Fatal(err)
		}
	}
	asked := func(now time.Time) time.Time {
		t.Helper()
		f.Decide([]Maintenance{waitingFor("m", "n00")}, now)
		for _, m := range f.meetings {
			return m.asked
		}
		return time.Time{}
	}
	for _, step := range []struct{ now, want time.Duration }{{0, 0}, {time.Minute, 0}, {meetingMemory, meetingMemory}, {meetingMemory - time.Second, meetingMemory - time.Second}} {
		if got := asked(decidedAt.Add(step.now)).Sub(decidedAt); got != step.want {
			t.Errorf("after %v: asked after %v, not %v", step.now, got, step.want)
		}
	}
	f.RemoveBudget("b1")
	f.Decide([]Maintenance{waitingFor("m", "n00")}, decidedAt)
	if len(f.meetings) > 0 {
		t.Errorf("%d meetings of one budget", len(f.meetings))
	}
}

// Slots are numbered again when most of them are those of nodes that are gone.
func TestSlotsAreNumberedAgain(t *testing.T) {
	f := NewFleet()
	m := waitingFor("m", "stays", "comes", "done")
	done := inZone("done", "a", func(n *v1.Node) {
		n.Status.MaintenanceStatus = &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{MaintenanceUID: "m", DoneTime: ptr.To(metav1.Now())}}}
	})
	for i := range 3 * minSlots {
		f.SetNode(readyNode(fmt.Sprint("gone-", i), nil))
		f.RemoveNode(fmt.Sprint("gone-", i))
		if i == 0 || i == minSlots {
			f.SetNodes([]*v1.Node{inZone("stays", "a"), done})
			f.Decide([]Maintenance{m}, decidedAt)
		}
	}
	f.SetNode(inZone("comes", "a"))
	got, _ := decisionText(f.Decide([]Maintenance{m}, decidedAt))
	if diff := cmp.Diff([]string{"m comes", "m stays"}, got); diff != "" || len(f.slots) > minSlots {
		t.Errorf("%d slots, admissions (-want, +got):\n%s", len(f.slots), diff)
	}
}

// Of the young nodes of a class, no more are taken than the budget allows, in whatever order they came back.
func TestYoungNodesAreWithinTheBudget(t *testing.T) {
	f := NewFleet()
	var names []string
	for i, after := range []time.Duration{3, 2, 1} {
		n := inZone(fmt.Sprint("n", i), "a", func(n *v1.Node) { n.CreationTimestamp = metav1.NewTime(decidedAt.Add(after * time.Hour)) })
		names = append(names, n.Name)
		f.SetNode(n)
	}
	if err := f.SetBudget(budgetOfPool(2, 0)); err != nil {
		t.Fatal(err)
	}
	m := waitingFor("m", names...)
	m.CreationTimestamp = metav1.NewTime(decidedAt)
	got, waits := decisionText(f.Decide([]Maintenance{m}, decidedAt))
	if diff := cmp.Diff([]any{[]string{"m n2", "m n1"}, map[string]int{"m Budget": 1}}, []any{got, waits}); diff != "" {
		t.Errorf("admissions and waits (-want, +got):\n%s", diff)
	}
}

// A node whose last admission was refused comes after all others, also after those of younger maintenances.
func TestRefusedNodesComeLast(t *testing.T) {
	f := NewFleet()
	f.SetNodes([]*v1.Node{inZone("a", "a"), inZone("b", "a")})
	f.refused["a"] = decidedAt.Add(-time.Hour)
	if err := f.SetBudget(budgetOfPool(1, 0)); err != nil {
		t.Fatal(err)
	}
	got, waits := decisionText(f.Decide([]Maintenance{waitingFor("m", "a"), waitingFor("younger", "b")}, decidedAt))
	if diff := cmp.Diff([]any{[]string{"younger b"}, map[string]int{"m Budget": 1}}, []any{got, waits}); diff != "" {
		t.Errorf("admissions and waits (-want, +got):\n%s", diff)
	}
}

// A class waits for what is least likely to end, whether that is of the budget or of the rollout.
func TestWorstWaitOfAClass(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Maintenance)
		want   string
	}{
		"the budget":  {func(m *Maintenance) { m.Spec.Rollout.MaxConcurrent = ptr.To(intstr.FromInt32(0)) }, "m Frozen"},
		"the rollout": {func(m *Maintenance) { m.Spec.Rollout.Paused = true }, "m Paused"},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFleet()
			f.SetNodes(pool("n", 2))
			if err := f.SetBudget(budgetOfPool(0, 0)); err != nil {
				t.Fatal(err)
			}
			m := waitingFor("m", "n00", "n01")
			m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{}
			test.change(&m)
			if _, waits := decisionText(f.Decide([]Maintenance{m}, decidedAt)); !cmp.Equal(map[string]int{test.want: 2}, waits) {
				t.Errorf("waits %v, want %s", waits, test.want)
			}
		})
	}
}

// A decision that is full still begins with nodes that nobody has to reserve.
func TestFullDecisionTakesUnlimitedNodes(t *testing.T) {
	f := NewFleet()
	var names []string
	for _, n := range pool("n", maxBatch+1) {
		names = append(names, n.Name)
		f.SetNode(n)
	}
	f.SetNode(readyNode("free", nil))
	if err := f.SetBudget(budgetOfPool(2*maxBatch, 0)); err != nil {
		t.Fatal(err)
	}
	d := f.Decide([]Maintenance{waitingFor("m", names...), waitingFor("other", "free")}, decidedAt)
	if got, _ := decisionText(d); !d.Full || len(got) != maxBatch+1 || got[maxBatch] != "other free" {
		t.Errorf("full: %t, admissions %v", d.Full, got)
	}
}

// What is known of the nodes of a maintenance is forgotten with it.
func TestWaitingNodesAreForgotten(t *testing.T) {
	f := NewFleet()
	f.SetNodes(pool("n", 1))
	f.Decide([]Maintenance{waitingFor("a", "n00"), waitingFor("b", "n00")}, decidedAt)
	f.Decide([]Maintenance{waitingFor("b", "n00")}, decidedAt)
	if len(f.waiting) != 1 || f.waiting["b"] == nil {
		t.Errorf("%d are known, of which one waits", len(f.waiting))
	}
}

// What a class waited for is not what it waits for when an older maintenance holds the domains.
func TestHeldClassOfYoungNodes(t *testing.T) {
	young := func(n *v1.Node) { n.CreationTimestamp = metav1.NewTime(decidedAt.Add(time.Hour)) }
	f := NewFleet()
	f.SetNodes([]*v1.Node{inZone("busy", "a", admitted), inZone("y1", "a", young), inZone("y2", "a", young), inZone("never", "b")})
	if err := f.SetBudget(budgetOfPool(4, 1)); err != nil {
		t.Fatal(err)
	}
	older, younger := waitingFor("m0", "y1", "never"), waitingFor("m1", "y2")
	older.CreationTimestamp, younger.CreationTimestamp = metav1.NewTime(decidedAt), metav1.NewTime(decidedAt)
	got, waits := decisionText(f.Decide([]Maintenance{older, younger}, decidedAt))
	if diff := cmp.Diff(map[string]int{"m0 Topology": 2, "m1 OlderMaintenance": 1}, waits); diff != "" || len(got) > 0 {
		t.Errorf("admissions %v, waits (-want, +got):\n%s", got, diff)
	}
}
