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
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Admissions returns the admissions of a node: the NodeMaintenances that may drain it.
func Admissions(node *v1.Node) []v1.MaintenanceAdmission {
	if node.Status.MaintenanceStatus == nil {
		return nil
	}
	return node.Status.MaintenanceStatus.Admissions
}

// AdmissionOf returns the admission of a maintenance to the node, or nil.
func AdmissionOf(node *v1.Node, uid types.UID) *v1.MaintenanceAdmission {
	admissions := Admissions(node)
	i := slices.IndexFunc(admissions, func(a v1.MaintenanceAdmission) bool { return a.MaintenanceUID == uid })
	if i < 0 {
		return nil
	}
	return &admissions[i]
}

// IsGivenBack reports whether the maintenance with this UID, which has begun with the node, drains it no more although it
// goes on with others: its work there is done, or somebody who may maintain the node has said so.
func IsGivenBack(node *v1.Node, uid types.UID) bool {
	admission := AdmissionOf(node, uid)
	return admission != nil && (admission.ReturningTime != nil || admission.DoneTime != nil ||
		node.Annotations[coordinationv1alpha1.NodeDoneAnnotation] == string(uid))
}

// IsDrainedFor reports whether the node is drained for a maintenance without an admission: it has drain
// targets, and no other maintenance has an admission that explains them.
func IsDrainedFor(node *v1.Node, uid types.UID) bool {
	return IsClaimed(node) && len(node.Status.MaintenanceStatus.DrainTargets) > 0 &&
		!slices.ContainsFunc(Admissions(node), func(a v1.MaintenanceAdmission) bool { return a.MaintenanceUID != uid && a.DoneTime == nil })
}

// IsReady reports whether the node has the condition Ready.
func IsReady(node *v1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
}

// IsClaimed reports whether the status of the node says that it is or was cordoned by a maintenance.
func IsClaimed(node *v1.Node) bool {
	return node.Status.MaintenanceStatus != nil && !node.Status.MaintenanceStatus.Unclaimed
}
