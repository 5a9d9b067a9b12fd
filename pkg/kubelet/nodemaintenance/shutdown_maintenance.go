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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
)

// maxDrainPlan is the maximum length of a drain plan in the API.
const maxDrainPlan = 100

// newShutdownMaintenance returns the maintenance of a shutdown in this boot.
func newShutdownMaintenance(nodeName, bootID string, priorities []int32) *coordinationv1alpha1.NodeMaintenance {
	return &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{
			Name: maintenance.ShutdownName(nodeName),
			Annotations: map[string]string{
				maintenance.EndedByAnnotation: maintenance.EndedByKubelet,
				maintenance.BootIDAnnotation:  bootID,
			},
		},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{
			NodeSelector: maintenance.ShutdownSelector(nodeName),
			Stage:        coordinationv1alpha1.NodeMaintenanceStageDrain,
			DrainPlan:    shutdownPlan(priorities),
			Reason:       "The node shuts down.",
		},
	}
}

// shutdownPlan returns the drain plan for groups of pods that begin with these priorities, ascending:
// a pod belongs to the last group that begins at or below its priority, or else to the first group.
// For each type of pods, the groups are drained one after the other. A plan that would be too long
// for the API has the standard entries only.
func shutdownPlan(priorities []int32) []v1.DrainPlanEntry {
	var plan []v1.DrainPlanEntry
	for _, podType := range []v1.PodType{v1.PodTypeDefault, v1.PodTypeDaemonSet, v1.PodTypeStatic} {
		for i := range priorities {
			last := int32(math.MaxInt32)
			if i+1 < len(priorities) {
				if priorities[i+1] == priorities[i] {
					continue // An empty group.
				}
				last = priorities[i+1] - 1
			}
			plan = append(plan, v1.DrainPlanEntry{PodType: podType, PodPriority: last})
		}
	}
	if complete := maintenance.CompletePlan(plan); len(complete) <= maxDrainPlan {
		return complete
	}
	return maintenance.StandardPlan()
}
