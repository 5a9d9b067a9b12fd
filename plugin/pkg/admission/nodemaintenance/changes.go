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
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	helpers "k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/plugin/pkg/admission/internal/owners"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// isHousekeeping reports whether an update does not change what happens to any node. These are the
// changes that the controller makes to the main resource, and changes of labels and annotations but those by which
// a kubelet knows its maintenance.
func isHousekeeping(maintenance, old *coordination.NodeMaintenance) bool {
	return leavesSpec(maintenance, old) && leavesFinalizers(maintenance, old) && !owners.AddsOwner(maintenance, old) && keepsFieldOwners(maintenance, old) &&
		leavesShutdown(maintenance, old)
}

// leavesShutdown reports whether the maintenance of a shutdown keeps the annotations by which its kubelet knows that it
// has to end it. Without them, the node would stay cordoned after the boot, and its static pods away.
func leavesShutdown(maintenance, old *coordination.NodeMaintenance) bool {
	if !helpers.IsShutdownName(old.Name) {
		return true
	}
	for _, key := range []string{helpers.EndedByAnnotation, helpers.BootIDAnnotation} {
		value, found := maintenance.Annotations[key]
		oldValue, oldFound := old.Annotations[key]
		if value != oldValue || found != oldFound {
			return false
		}
	}
	return true
}

// keepsFieldOwners reports whether the appliers of the spec are unchanged: a field that is assigned to
// another manager is removed when that manager applies the next time. The stage changes its owner when it
// changes. See owners.KeepsAppliers.
func keepsFieldOwners(maintenance, old *coordination.NodeMaintenance) bool {
	return owners.KeepsAppliers(maintenance, old, func(path fieldpath.Path) bool {
		return owners.IsField(path, 0, "spec") && (maintenance.Spec.Stage == old.Spec.Stage || !owners.IsField(path, 1, "stage"))
	})
}

// leavesSpec reports whether the spec is unchanged. During deletion, the stage may become Complete,
// because the deletion has already decided that.
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

// leavesFinalizers reports whether the finalizers are unchanged. The finalizer of the controller
// may be added and removed in the stages in which the controller does that. A maintenance in the
// stage Idle has touched no node, so its deletion has nothing to wait for.
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
