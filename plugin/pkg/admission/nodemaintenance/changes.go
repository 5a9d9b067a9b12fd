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
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// isHousekeeping says whether an update moves no node that does not move anyway. That
// is what the controller does to the main resource, and what anybody may do to labels
// and annotations.
func isHousekeeping(maintenance, old *coordination.NodeMaintenance) bool {
	return leavesSpec(maintenance, old) && leavesFinalizers(maintenance, old) && addsNoOwner(maintenance, old)
}

// leavesSpec says whether the spec stays as it is. The deletion has already decided that
// the stage becomes Complete.
func leavesSpec(maintenance, old *coordination.NodeMaintenance) bool {
	if apiequality.Semantic.DeepEqual(maintenance.Spec, old.Spec) {
		return true
	}
	if old.DeletionTimestamp == nil || maintenance.Spec.Stage != coordination.NodeMaintenanceStageComplete {
		return false
	}
	spec := maintenance.Spec
	spec.Stage = old.Spec.Stage
	return apiequality.Semantic.DeepEqual(spec, old.Spec)
}

// leavesFinalizers says whether the finalizers stay as they are, apart from that of the
// controller, where it comes and goes as the controller would have it. An Idle
// maintenance has touched no node, so that its deletion has nothing to wait for.
func leavesFinalizers(maintenance, old *coordination.NodeMaintenance) bool {
	finalizers, oldFinalizers := sets.New(maintenance.Finalizers...), sets.New(old.Finalizers...)
	added, removed := finalizers.Difference(oldFinalizers), oldFinalizers.Difference(finalizers)
	stage := maintenance.Spec.Stage
	if added.Has(coordination.NodeMaintenanceFinalizer) && stage == coordination.NodeMaintenanceStageIdle {
		return false
	}
	if removed.Has(coordination.NodeMaintenanceFinalizer) && stage != coordination.NodeMaintenanceStageComplete &&
		(stage != coordination.NodeMaintenanceStageIdle || old.DeletionTimestamp == nil) {
		return false
	}
	return added.Union(removed).Delete(coordination.NodeMaintenanceFinalizer).Len() == 0
}

// addsNoOwner says whether no object can pull this one into its end that could not
// before. The garbage collector resets blockOwnerDeletion.
func addsNoOwner(maintenance, old *coordination.NodeMaintenance) bool {
	return !slices.ContainsFunc(maintenance.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return !slices.ContainsFunc(old.OwnerReferences, func(oldOwner metav1.OwnerReference) bool { return isSameOwner(owner, oldOwner) })
	})
}

func isSameOwner(owner, other metav1.OwnerReference) bool {
	owner.BlockOwnerDeletion, other.BlockOwnerDeletion = nil, nil
	return apiequality.Semantic.DeepEqual(owner, other)
}
