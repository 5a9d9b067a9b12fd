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
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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
