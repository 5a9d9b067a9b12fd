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

package validation

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/coordination"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// ValidateNodeMaintenanceStatusUpdate validates an update of the status. It protects the state that
// the controller and other clients rely on: the progress of the drain, and the start times of the
// stages. As for EvictionRequests, each rule validates only what the update changes, so that a
// stored object that breaks a rule can still be finished.
func ValidateNodeMaintenanceStatusUpdate(maintenance, old *coordination.NodeMaintenance) field.ErrorList {
	errs := corevalidation.ValidateObjectMetaUpdate(&maintenance.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	status, oldStatus := &maintenance.Status, &old.Status
	fldPath := field.NewPath("status")
	errs = append(errs, validateStageStatuses(status, oldStatus, fldPath.Child("stageStatuses"))...)
	errs = append(errs, validateDrainStatus(&status.DrainStatus, &oldStatus.DrainStatus, fldPath.Child("drainStatus"))...)
	if status.SelectedNodes != oldStatus.SelectedNodes {
		errs = append(errs, corevalidation.ValidateNonnegativeField(int64(status.SelectedNodes), fldPath.Child("selectedNodes"))...)
	}
	errs = append(errs, validateDrainPlanPosition(maintenance, old, fldPath.Child("drainStatus", "drainPlanPosition"))...)
	errs = append(errs, validateConditions(status.Conditions, oldStatus.Conditions, fldPath.Child("conditions"))...)
	errs = append(errs, validateObservedGeneration(status.ObservedGeneration, oldStatus.ObservedGeneration, maintenance.Generation, fldPath)...)
	errs = append(errs, validateRolloutStatus(status.RolloutStatus, oldStatus.RolloutStatus, fldPath.Child("rolloutStatus"))...)
	return errs
}

// validateStageStatuses validates that started stages stay recorded. Declarative validation ensures
// that the names are known and unique.
func validateStageStatuses(status, old *coordination.NodeMaintenanceStatus, fldPath *field.Path) field.ErrorList {
	started := map[coordination.NodeMaintenanceStage]int{}
	for i := range status.StageStatuses {
		started[status.StageStatuses[i].Name] = i
	}
	var errs field.ErrorList
	for _, before := range old.StageStatuses {
		i, kept := started[before.Name]
		if !kept {
			errs = append(errs, field.Forbidden(fldPath, fmt.Sprintf("must keep the entry of %s: the stage has started", before.Name)))
			continue
		}
		if now := status.StageStatuses[i].StartTimestamp; before.StartTimestamp != nil && !now.Equal(before.StartTimestamp) {
			errs = append(errs, field.Invalid(fldPath.Index(i).Child("startTimestamp"), now,
				fmt.Sprintf("is immutable once set: %s was started at %s", before.Name, before.StartTimestamp.UTC().Format("2006-01-02T15:04:05Z"))))
		}
	}
	return errs
}

func validateDrainStatus(drain, old *coordination.DrainStatus, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !apiequality.Semantic.DeepEqual(drain.ReachedDrainTargets, old.ReachedDrainTargets) {
		for i := range drain.ReachedDrainTargets {
			errs = append(errs, corevalidation.ValidateDrainPlanEntry(&drain.ReachedDrainTargets[i], fldPath.Child("reachedDrainTargets").Index(i))...)
		}
	}
	if drain.DrainMessage != old.DrainMessage {
		errs = append(errs, corevalidation.ValidateDrainMessage(drain.DrainMessage, fldPath.Child("drainMessage"))...)
	}
	if !apiequality.Semantic.DeepEqual(drain.Blockers, old.Blockers) {
		for i := range drain.Blockers {
			blockerPath := fldPath.Child("blockers").Index(i)
			errs = append(errs, corevalidation.ValidateNonnegativeField(int64(drain.Blockers[i].PodCount), blockerPath.Child("podCount"))...)
			errs = append(errs, corevalidation.ValidateNonnegativeField(int64(drain.Blockers[i].NodeCount), blockerPath.Child("nodeCount"))...)
		}
	}
	for _, counter := range []struct {
		name       string
		value, old int32
	}{
		{"podsPendingEvictionRequest", drain.PodsPendingEvictionRequest, old.PodsPendingEvictionRequest},
		{"activeEvictionRequests", drain.ActiveEvictionRequests, old.ActiveEvictionRequests},
		{"drainedNodes", drain.DrainedNodes, old.DrainedNodes},
		{"blockedPods", drain.BlockedPods, old.BlockedPods},
		{"blockerCount", drain.BlockerCount, old.BlockerCount},
	} {
		if counter.value != counter.old {
			errs = append(errs, corevalidation.ValidateNonnegativeField(int64(counter.value), fldPath.Child(counter.name))...)
		}
	}
	return errs
}

// validateDrainPlanPosition validates that the position does not decrease: otherwise, pods whose
// eviction was requested would no longer be drained. Only a stored position beyond the end of the
// plan may decrease to a valid one, because the controller can write only valid ones.
func validateDrainPlanPosition(maintenance, old *coordination.NodeMaintenance, fldPath *field.Path) field.ErrorList {
	position, before := maintenance.Status.DrainStatus.DrainPlanPosition, old.Status.DrainStatus.DrainPlanPosition
	last := int32(max(len(maintenance.Spec.DrainPlan)-1, 0)) // An empty plan has one position as well.
	switch {
	case position == nil && before == nil:
		return nil
	case position == nil:
		return field.ErrorList{field.Required(fldPath, fmt.Sprintf("must not be removed: the current value is %d", *before))}
	case before != nil && *position == *before:
		return nil
	case before != nil && *position < min(*before, last):
		return field.ErrorList{field.Invalid(fldPath, *position, fmt.Sprintf("must not be less than the current value, %d", *before))}
	case *position > last:
		return field.ErrorList{field.Invalid(fldPath, *position, fmt.Sprintf("must not be greater than %d, the index of the last entry of spec.drainPlan", last))}
	}
	return nil
}
