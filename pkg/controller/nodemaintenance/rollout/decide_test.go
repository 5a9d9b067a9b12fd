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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

// pool returns so many nodes, which are changed. Their names have a prefix.
func pool(prefix string, count int, changes ...func(*v1.Node)) (nodes []*v1.Node) {
	for i := range count {
		n := readyNode(fmt.Sprintf("%s%02d", prefix, i), map[string]string{"pool": "", "zone": prefix})
		for _, change := range changes {
			change(n)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func cordoned(n *v1.Node) { n.Spec.Unschedulable = true }

func down(n *v1.Node) { n.Status.Conditions[0].Status = v1.ConditionUnknown }

func removed(n *v1.Node) { n.Spec.Taints = []v1.Taint{{Key: "karpenter.sh/disrupted"}} }

func outOfService(n *v1.Node) { n.Spec.Taints = []v1.Taint{{Key: v1.TaintNodeOutOfService}} }

func admitted(n *v1.Node) {
	n.Status.MaintenanceStatus = &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{MaintenanceUID: "other"}}}
}

func givenBack(n *v1.Node) {
	admitted(n)
	n.Status.MaintenanceStatus.Admissions[0].DoneTime = ptr.To(metav1.Now())
}

func concat(pools ...[]*v1.Node) (nodes []*v1.Node) {
	for _, p := range pools {
		nodes = append(nodes, p...)
	}
	return nodes
}

// A budget limits nodes that are available by the unavailable ones, and nodes that are cordoned by
// those that are unavailable for another reason. Nodes that are down are not limited.
func TestCordonedNodes(t *testing.T) {
	for name, test := range map[string]struct {
		max        intstr.IntOrString
		maxDomains int32
		nodes      []*v1.Node
		// want counts the admitted nodes by the prefix of their names.
		want map[string]int
	}{
		"none is cordoned":            {intstr.FromString("10%"), 0, pool("a", 40), map[string]int{"a": 4}},
		"all are cordoned":            {intstr.FromString("10%"), 0, pool("c", 40, cordoned), map[string]int{"c": 4}},
		"some, by an administrator":   {intstr.FromInt(3), 0, concat(pool("c", 3, cordoned), pool("a", 5)), map[string]int{"c": 3}},
		"fewer than are allowed":      {intstr.FromInt(3), 0, concat(pool("c", 2, cordoned), pool("a", 5)), map[string]int{"c": 2, "a": 1}},
		"available ones come first":   {intstr.FromInt(3), 0, concat(pool("a", 5), pool("c", 2, cordoned)), map[string]int{"c": 2, "a": 1}},
		"more than are allowed":       {intstr.FromInt(3), 0, concat(pool("c", 4, cordoned), pool("a", 5)), map[string]int{"c": 3}},
		"others are down":             {intstr.FromInt(3), 0, concat(pool("c", 4, cordoned), pool("d", 2, down)), map[string]int{"c": 1, "d": 2}},
		"too many are down":           {intstr.FromInt(3), 0, concat(pool("c", 4, cordoned), pool("d", 4, down)), map[string]int{"d": 4}},
		"most are down":               {intstr.FromInt(3), 0, concat(pool("c", 4, cordoned), pool("d", 5, down)), map[string]int{}},
		"down and cordoned":           {intstr.FromInt(1), 0, concat(pool("a", 4), pool("d", 4, down, cordoned)), map[string]int{"d": 4}},
		"removed by others":           {intstr.FromInt(3), 0, concat(pool("a", 5), pool("r", 2, removed)), map[string]int{"a": 1}},
		"removed, no room for others": {intstr.FromInt(2), 0, concat(pool("a", 5), pool("r", 2, removed)), map[string]int{}},
		"removed, others cordoned":    {intstr.FromInt(3), 0, concat(pool("c", 4, cordoned), pool("r", 2, removed)), map[string]int{"c": 1}},
		"out of service":              {intstr.FromInt(2), 0, concat(pool("a", 5), pool("o", 1, outOfService)), map[string]int{"a": 1, "o": 1}},
		"out of service, no room":     {intstr.FromInt(2), 0, concat(pool("c", 3, cordoned), pool("o", 2, outOfService)), map[string]int{}},
		"others are admitted":         {intstr.FromInt(3), 0, concat(pool("c", 4, cordoned), pool("t", 2, admitted, cordoned)), map[string]int{"c": 1, "t": 2}},
		"others are given back":       {intstr.FromInt(3), 0, concat(pool("c", 4, cordoned), pool("b", 2, givenBack)), map[string]int{"c": 3}},
		"given back, cordoned again":  {intstr.FromInt(3), 0, pool("b", 4, givenBack, cordoned), map[string]int{"b": 3}},
		"a freeze":                    {intstr.FromInt(0), 0, concat(pool("c", 4, cordoned), pool("d", 2, down)), map[string]int{}},
		"one domain":                  {intstr.FromInt(9), 1, concat(pool("c", 3, cordoned), pool("e", 3, cordoned)), map[string]int{"c": 3}},
		"a domain is down":            {intstr.FromInt(9), 1, concat(pool("c", 3, cordoned), pool("d", 3, down)), map[string]int{"c": 3}},
		"another domain has begun":    {intstr.FromInt(9), 1, concat(pool("c", 3, cordoned), pool("t", 1, admitted)), map[string]int{"t": 1}},
		"there is room for a domain":  {intstr.FromInt(9), 2, concat(pool("c", 3, cordoned), pool("t", 1, admitted), pool("x", 3, cordoned)), map[string]int{"c": 3, "t": 1}},
		"a domain, and a low maximum": {intstr.FromInt(2), 1, concat(pool("c", 3, cordoned), pool("e", 3, cordoned)), map[string]int{"c": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			f, m := NewFleet(), Maintenance{NodeMaintenance: &coordinationv1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "m"}}}
			for _, n := range test.nodes {
				f.SetNode(n)
				m.Waiting = append(m.Waiting, n.Name)
			}
			b := budgetFor("b", v1.NodeSelectorRequirement{Key: "pool", Operator: v1.NodeSelectorOpExists})
			b.Spec.MaxUnavailable = &test.max
			if test.maxDomains > 0 {
				b.Spec.Topology = &coordinationv1alpha1.NodeMaintenanceTopology{Key: "zone", MaxDomains: test.maxDomains}
			}
			if err := f.SetBudget(b); err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for _, admission := range f.Decide([]Maintenance{m}, time.Now()).Admissions {
				got[admission.Node.Name[:1]]++
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("admitted nodes (-want, +got):\n%s", diff)
			}
		})
	}
}

// A node that was reserved while it was down or cordoned, and is not any more, waits for room.
func TestReservedNodeComesBack(t *testing.T) {
	now := time.Date(2026, 11, 25, 1, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		nodes    []*v1.Node
		reserved string
		want     int
	}{
		"still down":                  {concat(pool("d", 1, down), pool("t", 1, admitted)), "d00", 1},
		"down, now available":         {concat(pool("d", 1), pool("t", 1, admitted)), "d00", 0},
		"down, now cordoned":          {concat(pool("d", 1, cordoned), pool("t", 1, admitted)), "d00", 0},
		"cordoned":                    {concat(pool("c", 1, cordoned), pool("x", 1, cordoned)), "c00", 1},
		"cordoned, now available":     {concat(pool("c", 1), pool("x", 1, cordoned)), "c00", 0},
		"available":                   {concat(pool("a", 1), pool("x", 1)), "a00", 1},
		"available, another is down":  {concat(pool("a", 1), pool("x", 1, down)), "a00", 0},
		"cordoned, another goes down": {concat(pool("c", 1, cordoned), pool("x", 1, down)), "c00", 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFleet()
			f.SetNodes(test.nodes)
			b := budgetFor("b", v1.NodeSelectorRequirement{Key: "pool", Operator: v1.NodeSelectorOpExists})
			b.Status.PendingAdmissions = []coordinationv1alpha1.NodeMaintenancePendingAdmission{{NodeName: test.reserved, MaintenanceUID: "m", Time: metav1.NewTime(now)}}
			if err := f.SetBudget(b); err != nil {
				t.Fatal(err)
			}
			m := Maintenance{NodeMaintenance: &coordinationv1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "m"}}, Waiting: []string{test.reserved}}
			if got := f.Decide([]Maintenance{m}, now).Admissions; len(got) != test.want {
				t.Errorf("%d admissions, not %d", len(got), test.want)
			}
		})
	}
}

// inZone returns a node of the pool in a zone.
func inZone(name, zone string, changes ...func(*v1.Node)) *v1.Node {
	n := readyNode(name, map[string]string{"pool": "", "zone": zone})
	for _, change := range changes {
		change(n)
	}
	return n
}

// waitingFor returns a maintenance without a rollout for which nodes wait.
func waitingFor(name string, nodes ...string) Maintenance {
	return Maintenance{
		NodeMaintenance: &coordinationv1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}},
		Rank:            name, Selected: len(nodes), Waiting: nodes,
	}
}

// budgetOfPool returns a budget of the pool, of which nodes of so many zones may be disrupted at once;
// 0 is any number.
func budgetOfPool(maxUnavailable, maxDomains int32) *coordinationv1alpha1.NodeMaintenanceBudget {
	b := budgetFor("b", v1.NodeSelectorRequirement{Key: "pool", Operator: v1.NodeSelectorOpExists})
	b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(maxUnavailable))
	if maxDomains > 0 {
		b.Spec.Topology = &coordinationv1alpha1.NodeMaintenanceTopology{Key: "zone", MaxDomains: maxDomains}
	}
	return b
}

func reservedAt(at time.Time, uid types.UID, nodes ...string) (pending []coordinationv1alpha1.NodeMaintenancePendingAdmission) {
	for _, n := range nodes {
		pending = append(pending, coordinationv1alpha1.NodeMaintenancePendingAdmission{NodeName: n, MaintenanceUID: uid, Time: metav1.NewTime(at)})
	}
	return pending
}

// decisionText names the admissions in their order, and what nodes wait for.
func decisionText(d Decision) (admissions []string, waits map[string]int) {
	for _, a := range d.Admissions {
		admissions = append(admissions, a.Maintenance.Name+" "+a.Node.Name)
	}
	waits = map[string]int{}
	for name, counts := range d.Waits {
		for wait, count := range counts {
			waits[name+" "+string(wait.Reason)] += count
		}
	}
	return admissions, waits
}

var decidedAt = time.Date(2026, 11, 25, 1, 0, 0, 0, time.UTC)

// Nodes that are reserved come first, then those in active zones, then zone by zone, each by name.
func TestOrderOfNodes(t *testing.T) {
	f := NewFleet()
	f.SetNodes([]*v1.Node{
		inZone("n1", "c"), inZone("n2", "a"), inZone("n3", "c"), inZone("n4", "a"), inZone("n5", "b"), inZone("n6", "c"), inZone("t", "b", admitted),
	})
	b := budgetOfPool(9, 3)
	b.Status.PendingAdmissions = reservedAt(decidedAt, "m", "n6")
	if err := f.SetBudget(b); err != nil {
		t.Fatal(err)
	}
	got, waits := decisionText(f.Decide([]Maintenance{waitingFor("m", "n1", "n2", "n3", "n4", "n5", "n6")}, decidedAt))
	if diff := cmp.Diff([]string{"m n6", "m n5", "m n1", "m n3", "m n2", "m n4"}, got); diff != "" || len(waits) > 0 {
		t.Errorf("waits %v, admissions (-want, +got):\n%s", waits, diff)
	}
}

// A machine that comes back under its name does not go again before those that have not gone yet.
func TestYoungNodesGoLast(t *testing.T) {
	created := func(offset time.Duration) func(*v1.Node) {
		return func(n *v1.Node) { n.CreationTimestamp = metav1.NewTime(decidedAt.Add(offset)) }
	}
	f := NewFleet()
	f.SetNodes([]*v1.Node{
		inZone("n1", "a", created(time.Second)), inZone("n2", "a", created(0)), inZone("n3", "b", created(-time.Hour)), inZone("n4", "b", created(time.Hour)), inZone("t", "a", admitted),
	})
	b := budgetOfPool(9, 3)
	b.Status.PendingAdmissions = reservedAt(decidedAt, "m", "n4")
	if err := f.SetBudget(b); err != nil {
		t.Fatal(err)
	}
	m := waitingFor("m", "n1", "n2", "n3", "n4")
	m.CreationTimestamp = metav1.NewTime(decidedAt)
	got, waits := decisionText(f.Decide([]Maintenance{m}, decidedAt))
	if diff := cmp.Diff([]string{"m n4", "m n2", "m n3", "m n1"}, got); diff != "" || len(waits) > 0 {
		t.Errorf("waits %v, admissions (-want, +got):\n%s", waits, diff)
	}
}

// With budgets of zones and of racks, nodes come first that begin with the fewest new ones.
func TestOrderOfNodesInRacks(t *testing.T) {
	in := func(name, zone, rack string, changes ...func(*v1.Node)) *v1.Node {
		n := inZone(name, zone, changes...)
		n.Labels["rack"] = rack
		return n
	}
	f := NewFleet()
	f.SetNodes([]*v1.Node{
		in("n1", "a", "a2"), in("n2", "b", "b2"), in("n3", "b", "b1"), in("n4", "a", "a1"), in("n5", "b", "b2"), in("t", "b", "b1", admitted),
	})
	racks := budgetOfPool(9, 4)
	racks.Name, racks.Spec.Topology.Key = "racks", "rack"
	for _, b := range []*coordinationv1alpha1.NodeMaintenanceBudget{budgetOfPool(9, 3), racks} {
		if err := f.SetBudget(b); err != nil {
			t.Fatal(err)
		}
	}
	got, waits := decisionText(f.Decide([]Maintenance{waitingFor("m", "n1", "n2", "n3", "n4", "n5")}, decidedAt))
	if diff := cmp.Diff([]string{"m n3", "m n2", "m n5", "m n4", "m n1"}, got); diff != "" || len(waits) > 0 {
		t.Errorf("waits %v, admissions (-want, +got):\n%s", waits, diff)
	}
}

// The order follows the nodes, their labels and the budgets.
func TestOrderChanges(t *testing.T) {
	f := NewFleet()
	expect := func(when string, want ...string) {
		t.Helper()
		got, _ := decisionText(f.Decide([]Maintenance{waitingFor("m", "n1", "n2", "n3", "n4")}, decidedAt))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", when, diff)
		}
	}
	set := func(change func(*coordinationv1alpha1.NodeMaintenanceBudget)) {
		t.Helper()
		b := budgetOfPool(9, 9)
		change(b)
		if err := f.SetBudget(b); err != nil {
			t.Fatal(err)
		}
	}
	f.SetNodes([]*v1.Node{inZone("n1", "b"), inZone("n3", "a")})
	expect("without budgets", "m n1", "m n3")
	set(func(*coordinationv1alpha1.NodeMaintenanceBudget) {})
	expect("by zone", "m n3", "m n1")
	f.SetNode(inZone("n2", "a"))
	expect("another node", "m n2", "m n3", "m n1")
	f.SetNode(inZone("n3", "a", cordoned))
	expect("cordoned", "m n2", "m n3", "m n1")
	f.SetNode(inZone("n3", "c"))
	expect("another zone", "m n2", "m n1", "m n3")
	f.RemoveNode("n2")
	f.SetNode(inZone("n4", "b"))
	expect("one is gone, one is new", "m n1", "m n4", "m n3")
	set(func(b *coordinationv1alpha1.NodeMaintenanceBudget) { b.Generation, b.Spec.Topology.Key = 2, "pool" })
	expect("another topology", "m n1", "m n3", "m n4")
	set(func(b *coordinationv1alpha1.NodeMaintenanceBudget) { b.Generation = 3 })
	expect("by zone again", "m n1", "m n4", "m n3")
	f.RemoveBudget("b")
	expect("the budget is gone", "m n1", "m n3", "m n4")
}

// In a large cluster, the nodes of a zone are spread, as long as the cluster is large.
func TestOrderOfManyNodes(t *testing.T) {
	f := NewFleet()
	if err := f.SetBudget(budgetOfPool(9, 9)); err != nil {
		t.Fatal(err)
	}
	nodes := []*v1.Node{inZone("n1", "b"), inZone("n2", "a"), inZone("n3", "a"), inZone("n4", "a"), inZone("n5", "b")}
	expect := func(when string, want ...string) {
		t.Helper()
		got, _ := decisionText(f.Decide([]Maintenance{waitingFor("m", "n1", "n2", "n3", "n4", "n5")}, decidedAt))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", when, diff)
		}
	}
	byName := []string{"m n2", "m n3", "m n4", "m n1", "m n5"}
	f.SetNodes(concat(nodes, pool("other", 95)))
	expect("100 nodes", byName...)
	f.SetNodes(concat(nodes, pool("other", 96)))
	expect("101 nodes", "m n2", "m n3", "m n4", "m n5", "m n1")
	f.SetNodes(concat(nodes, pool("other", 95)))
	expect("100 nodes again", byName...)
}

// The oldest maintenance is first. One that waits only for another zone holds younger ones up, but not
// if it waits for something else as well.
func TestOldestMaintenanceFirst(t *testing.T) {
	paused := waitingFor("m1", "b")
	paused.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{Paused: true}
	for name, test := range map[string]struct {
		nodes                      []*v1.Node
		maxUnavailable, maxDomains int32
		maintenances               []Maintenance
		want                       []string
		waits                      map[string]int
	}{
		"one slot": {
			[]*v1.Node{inZone("a", "a"), inZone("b", "b")}, 1, 0,
			[]Maintenance{waitingFor("m2", "a"), waitingFor("m1", "b")},
			[]string{"m1 b"}, map[string]int{"m2 Budget": 1},
		},
		"the older one waits for its zone": {
			[]*v1.Node{inZone("a", "a"), inZone("b", "b"), inZone("t", "a", admitted)}, 9, 1,
			[]Maintenance{waitingFor("m2", "a"), waitingFor("m1", "b")},
			nil, map[string]int{"m1 Topology": 1, "m2 OlderMaintenance": 1},
		},
		"it is the younger one that waits": {
			[]*v1.Node{inZone("a", "a"), inZone("b", "b"), inZone("t", "a", admitted)}, 9, 1,
			[]Maintenance{waitingFor("m2", "b"), waitingFor("m1", "a")},
			[]string{"m1 a"}, map[string]int{"m2 Topology": 1},
		},
		"the older one is paused": {
			[]*v1.Node{inZone("a", "a"), inZone("b", "b"), inZone("t", "a", admitted)}, 9, 1,
			[]Maintenance{waitingFor("m2", "a"), paused},
			[]string{"m2 a"}, map[string]int{"m1 Paused": 1},
		},
		"too many zones are active": {
			[]*v1.Node{inZone("a", "a"), inZone("t", "a", admitted), inZone("u", "b", admitted)}, 9, 1,
			[]Maintenance{waitingFor("m1", "a")},
			nil, map[string]int{"m1 Topology": 1},
		},
		"the older one waits for the number of nodes": {
			[]*v1.Node{inZone("a", "a", cordoned), inZone("b", "a"), inZone("t", "a", admitted)}, 2, 1,
			[]Maintenance{waitingFor("m2", "a"), waitingFor("m1", "b")},
			[]string{"m2 a"}, map[string]int{"m1 Budget": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFleet()
			f.SetNodes(test.nodes)
			if err := f.SetBudget(budgetOfPool(test.maxUnavailable, test.maxDomains)); err != nil {
				t.Fatal(err)
			}
			got, waits := decisionText(f.Decide(test.maintenances, decidedAt))
			if diff := cmp.Diff([]any{test.want, test.waits}, []any{got, waits}); diff != "" {
				t.Errorf("admissions and waits (-want, +got):\n%s", diff)
			}
		})
	}
}

// A maintenance that an older one holds up holds up younger ones, in the other budgets of its node.
func TestHeldMaintenanceHolds(t *testing.T) {
	labeled := func(label string, labels ...string) func(*v1.Node) {
		return func(n *v1.Node) {
			delete(n.Labels, "pool")
			for _, l := range append(labels, label) {
				n.Labels[l] = ""
			}
		}
	}
	f := NewFleet()
	f.SetNodes([]*v1.Node{
		inZone("t", "a", labeled("first", "second"), admitted), inZone("x", "b", labeled("first")),
		inZone("y", "c", labeled("first", "second")), inZone("z", "a", labeled("second")),
	})
	for _, label := range []string{"first", "second"} {
		b := budgetFor(label, v1.NodeSelectorRequirement{Key: label, Operator: v1.NodeSelectorOpExists})
		b.UID, b.Spec.MaxUnavailable, b.Spec.Topology = types.UID(label), ptr.To(intstr.FromInt32(9)), zoneTopology()
		if err := f.SetBudget(b); err != nil {
			t.Fatal(err)
		}
	}
	got, waits := decisionText(f.Decide([]Maintenance{waitingFor("m1", "x"), waitingFor("m2", "y"), waitingFor("m3", "z")}, decidedAt))
	if diff := cmp.Diff(map[string]int{"m1 Topology": 1, "m2 Topology": 1, "m3 OlderMaintenance": 1}, waits); diff != "" || len(got) > 0 {
		t.Errorf("admissions %v, waits (-want, +got):\n%s", got, diff)
	}
}

// A node that is not Ready for a moment is admitted only as if it were available: with hundreds of them, when
// a network is interrupted, hundreds would be drained when they are back. After five minutes it is free.
func TestNodesThatAreDownForAMoment(t *testing.T) {
	since := func(age time.Duration) func(*v1.Node) {
		return func(n *v1.Node) {
			down(n)
			n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(decidedAt.Add(-age))
		}
	}
	isNew := func(n *v1.Node) {
		n.Status.Conditions, n.CreationTimestamp = nil, metav1.NewTime(decidedAt.Add(-time.Minute))
	}
	for name, test := range map[string]struct {
		nodes          []*v1.Node
		maxUnavailable int32
		want           int
	}{
		"for a minute":               {concat(pool("a", 9, since(time.Minute)), pool("b", 9)), 2, 0},
		"for almost five minutes":    {concat(pool("a", 9, since(deadAfter-time.Second)), pool("b", 9)), 2, 0},
		"for five minutes":           {concat(pool("a", 9, since(deadAfter)), pool("b", 9)), 2, 9},
		"nobody knows since when":    {concat(pool("a", 9, down), pool("b", 9)), 2, 9},
		"all for an hour":            {pool("a", 9, since(time.Hour)), 2, 0},
		"more than half":             {concat(pool("a", 11, since(time.Hour)), pool("b", 9)), 2, 0},
		"more than half, of few":     {concat(pool("a", 2, since(time.Hour)), pool("b", 1)), 1, 2},
		"all but those of another":   {concat(pool("a", 5, since(time.Hour)), pool("t", 5, admitted, down)), 2, 5}, // The latter.
		"an outage within the limit": {pool("a", 3, since(time.Hour)), 3, 3},
		"a clock is ahead":           {concat(pool("a", 9, since(-time.Minute)), pool("b", 9)), 2, 0},
		"a clock is wrong":           {concat(pool("a", 9, since(-time.Hour)), pool("b", 9)), 2, 9},
		"new nodes":                  {concat(pool("a", 9, isNew), pool("b", 9)), 2, 0},
		"each has its own place":     {pool("a", 2, since(time.Minute)), 2, 2},
		"beside one that is there":   {concat(pool("a", 1, since(time.Minute)), pool("b", 3)), 2, 2},
		"beside some that are dead":  {concat(pool("a", 2, since(time.Hour)), pool("b", 3, since(time.Minute)), pool("c", 6)), 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFleet()
			f.SetNodes(test.nodes)
			if err := f.SetBudget(budgetOfPool(test.maxUnavailable, 0)); err != nil {
				t.Fatal(err)
			}
			m := waitingFor("m")
			for _, n := range test.nodes {
				m.Waiting = append(m.Waiting, n.Name)
			}
			if got, waits := decisionText(f.Decide([]Maintenance{m}, decidedAt)); len(got) != test.want {
				t.Errorf("%v, waits %v", got, waits)
			}
		})
	}
}

// A node that goes down is down since then, and not since its condition has changed before.
func TestNodeGoesDown(t *testing.T) {
	f := NewFleet()
	ready := pool("a", 1, func(n *v1.Node) {
		n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(decidedAt.Add(-time.Hour))
	})[0]
	f.SetNodes(concat([]*v1.Node{ready}, pool("b", 9), pool("c", 2, outOfService)))
	if err := f.SetBudget(budgetOfPool(2, 0)); err != nil {
		t.Fatal(err)
	}
	wentDown := ready.DeepCopy()
	down(wentDown)
	wentDown.Status.Conditions[0].LastTransitionTime = metav1.NewTime(decidedAt.Add(-time.Second))
	f.SetNode(wentDown)
	for _, test := range []struct {
		at   time.Time
		want int
	}{{decidedAt, 0}, {decidedAt.Add(deadAfter), 1}} {
		if got, waits := decisionText(f.Decide([]Maintenance{waitingFor("m", "a00")}, test.at)); len(got) != test.want {
			t.Errorf("%s later: %v, waits %v, want %d", test.at.Sub(decidedAt), got, waits, test.want)
		}
	}
}

// admitAll decides until nothing follows, stores the admissions, and returns how many nodes were admitted.
func admitAll(f *Fleet, m Maintenance, now time.Time) (admitted int) {
	for {
		decision := f.Decide([]Maintenance{m}, now)
		if len(decision.Admissions) == 0 {
			return admitted
		}
		for _, admission := range decision.Admissions {
			n := admission.Node.DeepCopy()
			n.Status.MaintenanceStatus = &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{MaintenanceUID: m.UID, AdmittedTime: metav1.NewTime(now)}}}
			f.SetNode(n)
			admitted++
		}
	}
}

// An outage may take the nodes of a pool one after the other: those that were admitted because too few of them were
// down have been taken down by it as well. What is down because a maintenance has drained it does not count.
func TestSpreadingOutage(t *testing.T) {
	later := decidedAt.Add(time.Hour)
	change := func(f *Fleet, prefix string, change func(*v1.Node)) {
		for _, n := range pool(prefix, 100) {
			if known := f.nodes[n.Name]; known != nil {
				changed := known.Node.DeepCopy()
				change(changed)
				f.SetNode(changed)
			}
		}
	}
	since := func(at time.Time, status v1.ConditionStatus) func(*v1.Node) {
		return func(n *v1.Node) {
			n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = status, metav1.NewTime(at)
		}
	}
	drainedAt := func(at time.Time) func(*v1.Node) {
		return func(n *v1.Node) { n.Status.MaintenanceStatus.Admissions[0].DrainedTime = ptr.To(metav1.NewTime(at)) }
	}
	for name, test := range map[string]struct {
		// then is what happens to the nodes that have begun.
		then func(f *Fleet)
		want int
	}{
		"they are still down": {func(*Fleet) {}, 0},
		"they have been drained meanwhile": {func(f *Fleet) {
			change(f, "a", drainedAt(decidedAt.Add(time.Minute)))
		}, 0},
		"another condition is known of them": {func(f *Fleet) { change(f, "a", since(decidedAt.Add(time.Minute), v1.ConditionFalse)) }, 0},
		"they are back":                      {func(f *Fleet) { change(f, "a", since(decidedAt.Add(time.Minute), v1.ConditionTrue)) }, 25},
		"they are back, drained, and reboot": {func(f *Fleet) {
			change(f, "a", drainedAt(decidedAt.Add(2*time.Minute)))
			change(f, "a", since(decidedAt.Add(3*time.Minute), v1.ConditionUnknown))
		}, 25},
		"another maintenance has drained them before": {func(f *Fleet) {
			change(f, "a", func(n *v1.Node) {
				before := v1.MaintenanceAdmission{MaintenanceUID: "before", DrainedTime: ptr.To(metav1.NewTime(decidedAt.Add(-2 * time.Hour)))}
				n.Status.MaintenanceStatus.Admissions = append(n.Status.MaintenanceStatus.Admissions, before)
			})
		}, 25},
		"another one was done with them": {func(f *Fleet) {
			change(f, "a", func(n *v1.Node) {
				before := v1.MaintenanceAdmission{
					MaintenanceUID: "before", DrainedTime: ptr.To(metav1.NewTime(decidedAt.Add(-2 * time.Hour))), DoneTime: ptr.To(metav1.NewTime(decidedAt)),
				}
				n.Status.MaintenanceStatus.Admissions = append(n.Status.MaintenanceStatus.Admissions, before)
			})
		}, 0},
		"their kubelets shut down": {func(f *Fleet) {
			change(f, "a", func(n *v1.Node) {
				n.Status.MaintenanceStatus = &v1.MaintenanceStatus{DrainTargets: []v1.DrainPlanEntry{{}}}
			})
		}, 25},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFleet()
			f.SetNodes(concat(pool("a", 54, since(decidedAt.Add(-time.Hour), v1.ConditionUnknown)), pool("b", 25), pool("c", 21)))
			b := budgetOfPool(0, 0)
			b.Spec.MaxUnavailable = ptr.To(intstr.FromString("10%"))
			if err := f.SetBudget(b); err != nil {
				t.Fatal(err)
			}
			m := waitingFor("m")
			for name := range f.nodes {
				m.Waiting = append(m.Waiting, name)
			}
			if got := admitAll(f, m, decidedAt); got != 54 {
				t.Fatalf("%d nodes are admitted of those that are down", got)
			}
			test.then(f)
			change(f, "b", since(later.Add(-10*time.Minute), v1.ConditionUnknown))
			m.Waiting = slices.DeleteFunc(slices.Clone(m.Waiting), func(name string) bool { return strings.HasPrefix(name, "a") })
			if got := admitAll(f, m, later); got != test.want {
				t.Errorf("%d nodes more are admitted, want %d", got, test.want)
			}
		})
	}
}

// Of a budget with one or two nodes, all may have failed, but not while most of the cluster is down.
func TestOutageOfSmallBudgets(t *testing.T) {
	dead := func(n *v1.Node) {
		down(n)
		n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(decidedAt.Add(-time.Hour))
	}
	racks := func(prefix string, count int, changes ...func(*v1.Node)) (nodes []*v1.Node) {
		for i := range count {
			nodes = append(nodes, pool(fmt.Sprintf("%s%02dn", prefix, i), 2, changes...)...)
		}
		return nodes
	}
	unlimited := func(n *v1.Node) { delete(n.Labels, "pool") }
	inZone := func(zone string) func(*v1.Node) { return func(n *v1.Node) { n.Labels["zone"] = zone } }
	for name, test := range map[string]struct {
		nodes []*v1.Node
		want  int
	}{
		"one rack":                    {concat(racks("a", 1, dead), racks("b", 14)), 2},
		"all racks":                   {racks("a", 15, dead), 0},
		"most of the racks":           {concat(racks("a", 9, dead), racks("b", 6)), 0},
		"half of the racks":           {concat(racks("a", 8, dead), racks("b", 7)), 16},
		"a cluster of one rack":       {racks("a", 1, dead), 2},
		"beside others without limit": {concat(racks("a", 1, dead), pool("x", 9, dead, unlimited)), 0},
		"beside others that are back": {concat(racks("a", 1, dead), pool("x", 9, unlimited)), 2},
		"beside others that are maintained": {concat(racks("a", 1, dead), pool("x", 9, unlimited, admitted, dead, func(n *v1.Node) {
			n.Status.MaintenanceStatus.Admissions[0].DrainedTime = ptr.To(metav1.NewTime(decidedAt.Add(-2 * time.Hour)))
		}), pool("y", 1, unlimited)), 2},
		"beside most of those that are not maintained":       {concat(racks("a", 1, dead), pool("x", 1, unlimited, dead), pool("y", 2, unlimited), pool("z", 4, unlimited, admitted)), 0},
		"beside some that were admitted when they were down": {concat(racks("a", 1, dead), pool("x", 2, unlimited, admitted, dead), pool("y", 4, unlimited)), 2},
		"half of a pool, and nobody maintains it":            {concat(pool("a", 4, dead), pool("b", 4, inZone("a")), pool("x", 9, unlimited)), 4},
		"half of a pool, and the others are maintained":      {concat(pool("a", 4, dead), pool("b", 4, inZone("a"), admitted), pool("x", 9, unlimited)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, m := NewFleet(), waitingFor("m")
			for _, n := range test.nodes {
				f.SetNode(n)
				rack := n.Labels["zone"]
				if _, limited := n.Labels["pool"]; !limited {
					continue
				}
				m.Waiting = append(m.Waiting, n.Name)
				b := budgetFor(rack, v1.NodeSelectorRequirement{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{rack}})
				b.UID = types.UID(rack)
				if err := f.SetBudget(b); err != nil {
					t.Fatal(err)
				}
			}
			limited := Maintenance{NodeMaintenance: m.NodeMaintenance, Waiting: slices.DeleteFunc(slices.Clone(m.Waiting), func(name string) bool { return maintenance.IsReady(f.nodes[name].Node) })}
			if got := admitAll(f, limited, decidedAt); got != test.want {
				t.Errorf("%d nodes are admitted, want %d", got, test.want)
			}
			for name := range f.nodes {
				f.RemoveNode(name)
			}
			if f.lost != 0 || f.working != 0 {
				t.Errorf("without nodes, %d are lost, and %d working", f.lost, f.working)
			}
		})
	}
}

// Nodes that are reserved and cannot be written, as many as one decision may have, do not keep others.
func TestReservedNodesDoNotFillADecision(t *testing.T) {
	f := NewFleet()
	nodes := concat(pool("a", maxBatch+9), pool("b", 1))
	f.SetNodes(nodes)
	stuck, other := waitingFor("m1"), waitingFor("m2", "b00")
	stuck.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{}
	stuck.Status.RolloutStatus = &coordinationv1alpha1.NodeMaintenanceRolloutStatus{}
	for i, n := range nodes[:maxBatch+9] {
		stuck.Waiting = append(stuck.Waiting, n.Name)
		if i < maxBatch {
			stuck.Status.RolloutStatus.PendingAdmissions = append(stuck.Status.RolloutStatus.PendingAdmissions, reservedAt(decidedAt, "m1", n.Name)...)
			f.refused[n.Name] = decidedAt
		}
	}
	decision := f.Decide([]Maintenance{stuck, other}, decidedAt)
	got, _ := decisionText(decision)
	if len(got) != maxBatch+9+1 || !slices.Contains(got, "m2 b00") || decision.Full {
		t.Errorf("%d admissions, full %t: %v", len(got), decision.Full, got)
	}
}

// Nodes that are done and cannot be made schedulable keep their places.
func TestUnreleasedNodesKeepTheirPlaces(t *testing.T) {
	f := NewFleet()
	f.SetNodes(pool("a", 3))
	m := waitingFor("m", "a00", "a01", "a02")
	m.Spec.Rollout, m.Unreleased = &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt32(2))}, 1
	got, waits := decisionText(f.Decide([]Maintenance{m}, decidedAt))
	if diff := cmp.Diff([]any{[]string{"m a00"}, map[string]int{"m MaxConcurrent": 2}}, []any{got, waits}); diff != "" {
		t.Errorf("admissions and waits (-want, +got):\n%s", diff)
	}
}

// What a node without the label of the topology counts as.
func TestNodeWithoutZone(t *testing.T) {
	alone := func(name string) *v1.Node { return readyNode(name, map[string]string{"pool": ""}) }
	f := NewFleet()
	f.SetNodes([]*v1.Node{alone("a"), alone("b"), inZone("c", "a")})
	if err := f.SetBudget(budgetOfPool(9, 2)); err != nil {
		t.Fatal(err)
	}
	got, waits := decisionText(f.Decide([]Maintenance{waitingFor("m", "a", "b", "c")}, decidedAt))
	if diff := cmp.Diff([]any{[]string{"m c", "m a"}, map[string]int{"m Topology": 1}}, []any{got, waits}); diff != "" {
		t.Errorf("admissions and waits (-want, +got):\n%s", diff)
	}
}

// A rollout has so many nodes at once: those that are admitted and neither done nor failed, and those
// that are reserved. What is reserved is admitted although nothing more is allowed, but not for long.
func TestLimitsOfARollout(t *testing.T) {
	admission := func(change func(*v1.MaintenanceAdmission)) func(*v1.Node) {
		return func(n *v1.Node) {
			a := v1.MaintenanceAdmission{MaintenanceUID: "m"}
			change(&a)
			n.Status.MaintenanceStatus = &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{a}}
		}
	}
	began := admission(func(*v1.MaintenanceAdmission) {})
	failed := admission(func(a *v1.MaintenanceAdmission) { a.FailedTime = ptr.To(metav1.Now()) })
	done := admission(func(a *v1.MaintenanceAdmission) { a.DoneTime = ptr.To(metav1.Now()) })
	doneLate := admission(func(a *v1.MaintenanceAdmission) {
		a.DoneTime, a.FailedTime = ptr.To(metav1.Now()), ptr.To(metav1.Now())
	})
	none := func(*Maintenance) {}
	reserved := func(age time.Duration, nodes ...string) func(*Maintenance) {
		return func(m *Maintenance) {
			m.Status.RolloutStatus = &coordinationv1alpha1.NodeMaintenanceRolloutStatus{PendingAdmissions: reservedAt(decidedAt.Add(-age), "m", nodes...)}
		}
	}
	var many []string
	for i := range maxPending {
		many = append(many, fmt.Sprintf("gone-%d", i))
	}
	large := func(change func(*Maintenance)) func(*Maintenance) {
		return func(m *Maintenance) {
			change(m)
			m.Spec.Rollout.MaxConcurrent = ptr.To(intstr.FromInt32(2 * maxPending))
		}
	}
	for name, test := range map[string]struct {
		first  func(*v1.Node) // what the first of four nodes is; it waits in any case
		change func(*Maintenance)
		want   []string
		waits  map[string]int
	}{
		"the first nodes":      {func(*v1.Node) {}, none, []string{"m n00", "m n01"}, map[string]int{"m MaxConcurrent": 2}},
		"one is admitted":      {began, none, []string{"m n01"}, map[string]int{"m MaxConcurrent": 2}},
		"one is done":          {done, none, []string{"m n01", "m n02"}, map[string]int{"m MaxConcurrent": 1}},
		"one has failed":       {failed, none, []string{"m n01", "m n02"}, map[string]int{"m MaxConcurrent": 1}},
		"too many have failed": {failed, func(m *Maintenance) { m.Spec.Rollout.MaxFailedNodes = nil }, nil, map[string]int{"m Halted": 3}},
		"it is acknowledged": {failed, func(m *Maintenance) {
			m.Spec.Rollout.MaxFailedNodes, m.Spec.Rollout.AcknowledgedNodeUIDs = nil, []types.UID{"uid-of-n00"}
		}, []string{"m n01", "m n02"}, map[string]int{"m MaxConcurrent": 1}},
		"one that had its name is acknowledged": {failed, func(m *Maintenance) {
			m.Spec.Rollout.MaxFailedNodes, m.Spec.Rollout.AcknowledgedNodeUIDs = nil, []types.UID{"uid-of-n00-before"}
		}, nil, map[string]int{"m Halted": 3}},
		"done after it has failed":  {doneLate, func(m *Maintenance) { m.Spec.Rollout.MaxFailedNodes = nil }, []string{"m n01", "m n02"}, map[string]int{"m MaxConcurrent": 1}},
		"admitted, not confirmed":   {began, reserved(time.Second, "n00"), []string{"m n01"}, map[string]int{"m MaxConcurrent": 2}},
		"reserved":                  {func(*v1.Node) {}, reserved(time.Second, "n02", "n03"), []string{"m n02", "m n03"}, map[string]int{"m MaxConcurrent": 2}},
		"reserved long ago":         {func(*v1.Node) {}, reserved(pendingUsable, "n00"), []string{"m n01"}, map[string]int{"m MaxConcurrent": 3}},
		"reserved a bit later":      {func(*v1.Node) {}, reserved(pendingUsable-time.Second, "n00"), []string{"m n00", "m n01"}, map[string]int{"m MaxConcurrent": 2}},
		"the status is full":        {func(*v1.Node) {}, large(reserved(time.Second, many...)), nil, map[string]int{"m MaxConcurrent": 4}},
		"there is room for one":     {func(*v1.Node) {}, large(reserved(time.Second, many[1:]...)), []string{"m n00"}, map[string]int{"m MaxConcurrent": 3}},
		"paused":                    {func(*v1.Node) {}, func(m *Maintenance) { m.Spec.Rollout.Paused = true }, nil, map[string]int{"m Paused": 4}},
		"settling":                  {func(*v1.Node) {}, func(m *Maintenance) { m.SettlingUntil = decidedAt }, nil, map[string]int{"m Settling": 4}},
		"the gate is off":           {func(*v1.Node) {}, func(m *Maintenance) { m.Disabled = true }, nil, map[string]int{"m Disabled": 4}},
		"reserved, and then paused": {func(*v1.Node) {}, func(m *Maintenance) { reserved(time.Second, "n00")(m); m.Spec.Rollout.Paused = true }, nil, map[string]int{"m Paused": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFleet()
			nodes := pool("n", 4)
			nodes[0].UID = "uid-of-n00"
			test.first(nodes[0])
			f.SetNodes(nodes)
			m := waitingFor("m", "n00", "n01", "n02", "n03")
			m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt32(2)), MaxFailedNodes: ptr.To[int32](1)}
			test.change(&m)
			got, waits := decisionText(f.Decide([]Maintenance{m}, decidedAt))
			if diff := cmp.Diff([]any{test.want, test.waits}, []any{got, waits}); diff != "" {
				t.Errorf("admissions and waits (-want, +got):\n%s", diff)
			}
		})
	}
}

// A reservation of a budget is used as long as the budget is open and not frozen, and not for long.
func TestReservationsOfABudget(t *testing.T) {
	reserved := func(age time.Duration, uid types.UID, nodes ...string) func(*coordinationv1alpha1.NodeMaintenanceBudget) {
		return func(b *coordinationv1alpha1.NodeMaintenanceBudget) {
			b.Status.PendingAdmissions = append(b.Status.PendingAdmissions, reservedAt(decidedAt.Add(-age), uid, nodes...)...)
		}
	}
	var many []string
	for i := range maxPending {
		many = append(many, fmt.Sprintf("gone-%d", i))
	}
	large := func(change func(*coordinationv1alpha1.NodeMaintenanceBudget)) func(*coordinationv1alpha1.NodeMaintenanceBudget) {
		return func(b *coordinationv1alpha1.NodeMaintenanceBudget) {
			change(b)
			b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(2 * maxPending))
		}
	}
	for name, test := range map[string]struct {
		change func(*coordinationv1alpha1.NodeMaintenanceBudget)
		want   []string
		waits  map[string]int
	}{
		"none":                      {func(*coordinationv1alpha1.NodeMaintenanceBudget) {}, []string{"m n00", "m n01"}, map[string]int{"m Budget": 1}},
		"one":                       {reserved(time.Second, "m", "n02"), []string{"m n02", "m n00"}, map[string]int{"m Budget": 1}},
		"one is too old to be used": {reserved(pendingUsable, "m", "n00"), []string{"m n01"}, map[string]int{"m Budget": 2}},
		"one is almost too old":     {reserved(pendingUsable-time.Second, "m", "n00"), []string{"m n00", "m n01"}, map[string]int{"m Budget": 1}},
		"for another maintenance":   {reserved(time.Second, "other", "n00", "n01"), []string{"m n00", "m n01"}, map[string]int{"m Budget": 1}},
		"frozen since": {func(b *coordinationv1alpha1.NodeMaintenanceBudget) {
			reserved(time.Second, "m", "n00")(b)
			b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(0))
		}, nil, map[string]int{"m Frozen": 3}},
		"closed since": {func(b *coordinationv1alpha1.NodeMaintenanceBudget) {
			reserved(time.Second, "m", "n00")(b)
			b.Spec.Windows = []coordinationv1alpha1.NodeMaintenanceWindow{{Schedule: "30 0 * * *", DurationSeconds: 1799}}
		}, nil, map[string]int{"m Window": 3}},
		"the status is full":    {large(reserved(time.Second, "m", many...)), nil, map[string]int{"m Budget": 3}},
		"there is room for one": {large(reserved(time.Second, "m", many[1:]...)), []string{"m n00"}, map[string]int{"m Budget": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			f, b := NewFleet(), budgetOfPool(2, 0)
			f.SetNodes(pool("n", 3))
			test.change(b)
			if err := f.SetBudget(b); err != nil {
				t.Fatal(err)
			}
			got, waits := decisionText(f.Decide([]Maintenance{waitingFor("m", "n00", "n01", "n02")}, decidedAt))
			if diff := cmp.Diff([]any{test.want, test.waits}, []any{got, waits}); diff != "" {
				t.Errorf("admissions and waits (-want, +got):\n%s", diff)
			}
		})
	}
}

// Nodes that wait for a window say until when.
func TestWaitForAWindow(t *testing.T) {
	f, b := NewFleet(), budgetOfPool(2, 0)
	f.SetNodes(pool("n", 3))
	b.Spec.Windows = []coordinationv1alpha1.NodeMaintenanceWindow{{Schedule: "0 4 * * *", DurationSeconds: 3600}, {Schedule: "0 3 * * *", DurationSeconds: 3600}}
	if err := f.SetBudget(b); err != nil {
		t.Fatal(err)
	}
	want := map[Wait]int{{Reason: coordinationv1alpha1.NodeMaintenanceWaitWindow, Budget: "b", Until: decidedAt.Add(2 * time.Hour)}: 3}
	if diff := cmp.Diff(want, f.Decide([]Maintenance{waitingFor("m", "n00", "n01", "n02")}, decidedAt).Waits["m"]); diff != "" {
		t.Errorf("waits (-want, +got):\n%s", diff)
	}
}

// A node that is reserved counts once, whatever it was before.
func TestReservedNodeCountsOnce(t *testing.T) {
	for name, nodes := range map[string][]*v1.Node{
		"taken by another maintenance": {inZone("r", "a", admitted), inZone("n", "a")},
		"cordoned":                     {inZone("r", "a", cordoned), inZone("n", "a")},
		"down":                         {inZone("r", "a", down), inZone("n", "a", cordoned)},
		"available":                    {inZone("r", "a"), inZone("n", "a")},
	} {
		t.Run(name, func(t *testing.T) {
			f, b := NewFleet(), budgetOfPool(2, 0)
			f.SetNodes(nodes)
			b.Status.PendingAdmissions = reservedAt(decidedAt, "m", "r")
			if err := f.SetBudget(b); err != nil {
				t.Fatal(err)
			}
			got, waits := decisionText(f.Decide([]Maintenance{waitingFor("m", "n")}, decidedAt))
			if diff := cmp.Diff([]string{"m n"}, got); diff != "" {
				t.Errorf("waits %v, admissions (-want, +got):\n%s", waits, diff)
			}
		})
	}
}

// TestPendingNodeIsGone checks that a node counts that was reserved and that the cache does not have: it
// may have been created again, and be admitted by another process.
func TestPendingNodeIsGone(t *testing.T) {
	pending := reservedAt(decidedAt.Add(-time.Minute), "m", "gone")
	for name, test := range map[string]struct {
		change func(*coordinationv1alpha1.NodeMaintenanceBudget, *Maintenance)
		want   int
	}{
		"nothing is reserved": {func(*coordinationv1alpha1.NodeMaintenanceBudget, *Maintenance) {}, 1},
		"by the rollout": {func(_ *coordinationv1alpha1.NodeMaintenanceBudget, m *Maintenance) {
			m.Status.RolloutStatus.PendingAdmissions = pending
		}, 0},
		"by the budget": {func(b *coordinationv1alpha1.NodeMaintenanceBudget, _ *Maintenance) {
			b.Status.PendingAdmissions = pending
		}, 0},
		"by a budget with room, but of one domain": {func(b *coordinationv1alpha1.NodeMaintenanceBudget, _ *Maintenance) {
			b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(5))
			b.Spec.Topology = &coordinationv1alpha1.NodeMaintenanceTopology{Key: "zone", MaxDomains: 1}
			b.Status.PendingAdmissions = pending
		}, 0},
	} {
		f, b, m := NewFleet(), budgetOfPool(1, 0), waitingFor("m", "n")
		m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt32(1))}
		m.Status.RolloutStatus = &coordinationv1alpha1.NodeMaintenanceRolloutStatus{}
		test.change(b, &m)
		f.SetNodes([]*v1.Node{inZone("n", "a")})
		if err := f.SetBudget(b); err != nil {
			t.Fatal(err)
		}
		if got := len(f.Decide([]Maintenance{m}, decidedAt).Admissions); got != test.want {
			t.Errorf("%s: %d admissions, not %d", name, got, test.want)
		}
	}
}

// A maintenance that cannot be written does not keep a domain free for itself, and says why it waits.
func TestUnwritableHoldsNoDomain(t *testing.T) {
	f := NewFleet()
	f.SetNodes([]*v1.Node{inZone("n1", "a", admitted), inZone("n2", "b"), inZone("n3", "a")})
	if err := f.SetBudget(budgetOfPool(5, 1)); err != nil {
		t.Fatal(err)
	}
	old := waitingFor("old", "n2")
	old.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{}
	for unwritable, want := range map[types.UID][]string{"": nil, "old": {"young n3"}} {
		f.unwritable = sets.New(unwritable)
		admissions, _ := decisionText(f.Decide([]Maintenance{old, waitingFor("young", "n3")}, decidedAt))
		if diff := cmp.Diff(want, admissions); diff != "" {
			t.Errorf("%q: admissions (-want, +got):\n%s", unwritable, diff)
		}
	}
	f.unwritable = sets.New[types.UID]("old")
	waits := f.Decide([]Maintenance{old}, decidedAt).Waits["old"]
	if diff := cmp.Diff(map[Wait]int{{Reason: coordinationv1alpha1.NodeMaintenanceWaitStatusFailed}: 1}, waits); diff != "" {
		t.Errorf("waits (-want, +got):\n%s", diff)
	}
}
