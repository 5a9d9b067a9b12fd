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

package admission

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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
		"too many are down":           {intstr.FromInt(3), 0, concat(pool("c", 4, cordoned), pool("d", 5, down)), map[string]int{"d": 5}},
		"down and cordoned":           {intstr.FromInt(1), 0, pool("d", 4, down, cordoned), map[string]int{"d": 4}},
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
