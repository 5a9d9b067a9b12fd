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

package nodemaintenance

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
)

func TestNewShutdownMaintenance(t *testing.T) {
	want := &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{
			Name: "graceful-shutdown-n1",
			Annotations: map[string]string{
				"nodemaintenance.coordination.k8s.io/ended-by": "kubelet",
				"nodemaintenance.coordination.k8s.io/boot-id":  "boot-1",
			},
		},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{
			NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{"n1"}}},
			}}},
			Stage:     coordinationv1alpha1.NodeMaintenanceStageDrain,
			DrainPlan: maintenance.StandardPlan(),
			Reason:    "The node shuts down.",
		},
	}
	if diff := cmp.Diff(want, newShutdownMaintenance("n1", "boot-1", nil)); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

func TestShutdownPlan(t *testing.T) {
	var many []int32
	for i := range int32(31) {
		many = append(many, i)
	}
	for name, test := range map[string]struct {
		priorities []int32
		// want are the priorities of the entries of each type.
		want []int32
	}{
		"standard":            {nil, []int32{1000000000, 2000000000, 2000001000, math.MaxInt32}},
		"two periods":         {[]int32{0, 2000000000}, []int32{1000000000, 1999999999, 2000000000, 2000001000, math.MaxInt32}},
		"several":             {[]int32{-5, 0, 100, 1000000001}, []int32{-1, 99, 1000000000, 2000000000, 2000001000, math.MaxInt32}},
		"twice the same":      {[]int32{0, 0, 10}, []int32{9, 1000000000, 2000000000, 2000001000, math.MaxInt32}},
		"lowest":              {[]int32{math.MinInt32, math.MinInt32 + 1}, []int32{math.MinInt32, 1000000000, 2000000000, 2000001000, math.MaxInt32}},
		"highest":             {[]int32{0, math.MaxInt32}, []int32{1000000000, 2000000000, 2000001000, math.MaxInt32 - 1, math.MaxInt32}},
		"too many for a plan": {many, []int32{1000000000, 2000000000, 2000001000, math.MaxInt32}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []v1.DrainPlanEntry
			for _, podType := range []v1.PodType{v1.PodTypeDefault, v1.PodTypeDaemonSet, v1.PodTypeStatic} {
				for _, priority := range test.want {
					want = append(want, v1.DrainPlanEntry{PodType: podType, PodPriority: priority})
				}
			}
			got := shutdownPlan(test.priorities)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
			if !slices.IsSortedFunc(got, maintenance.CompareEntries) {
				t.Error("the plan is not in order")
			}
		})
	}
}
