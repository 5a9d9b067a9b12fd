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
	"slices"
	"time"

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
	errs = append(errs, validateStageStarts(maintenance.Spec.Stage, status, oldStatus, fldPath.Child("stageStatuses"))...)
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
				fmt.Sprintf("is immutable once set: %s was started at %s", before.Name, before.StartTimestamp.UTC().Format(time.RFC3339))))
		}
	}
	return errs
}

// validateStageStarts validates the stages that an update adds, and the start times that it sets: no stage starts before
// spec.stage has reached it, before an earlier stage, or after a later one. Others rely on that: the start of the stage
// Drain is the place of a maintenance among those that wait for budgets. It never prevents the controller from writing,
// because spec.stage does not go back.
func validateStageStarts(reached coordination.NodeMaintenanceStage, status, old *coordination.NodeMaintenanceStatus, fldPath *field.Path) field.ErrorList {
	started := slices.Clone(status.StageStatuses)
	var errs field.ErrorList
	var set []int
	for i := range started {
		s := &started[i]
		before := slices.IndexFunc(old.StageStatuses, func(before coordination.StageStatus) bool { return before.Name == s.Name })
		if before >= 0 && (old.StageStatuses[before].StartTimestamp != nil || s.StartTimestamp == nil) {
			*s = old.StageStatuses[before] // To change it is forbidden.
			continue
		}
		if limit := slices.Index(stages, reached); limit >= 0 && slices.Index(stages, s.Name) > limit {
			errs = append(errs, field.Forbidden(fldPath.Index(i), fmt.Sprintf("must not have the stage %s, because spec.stage is %s", s.Name, reached)))
			continue
		}
		if s.StartTimestamp != nil {
			set = append(set, i)
		}
	}
	for _, i := range set {
		errs = append(errs, validateStart(i, started, fldPath.Index(i).Child("startTimestamp"))...)
	}
	return errs
}

// validateStart validates that a stage does not start before earlier or after later ones. Any time is valid if these
// are not in order themselves.
func validateStart(index int, started []coordination.StageStatus, fldPath *field.Path) field.ErrorList {
	rank, start := slices.Index(stages, started[index].Name), started[index].StartTimestamp
	var earlier, later *coordination.StageStatus // That start last, and first.
	for i := range started {
		other := &started[i]
		switch otherRank := slices.Index(stages, other.Name); {
		case other.StartTimestamp == nil || rank < 0 || otherRank < 0: // Declarative validation reports unknown stages.
		case otherRank < rank && (earlier == nil || earlier.StartTimestamp.Before(other.StartTimestamp)):
			earlier = other
		case otherRank > rank && (later == nil || other.StartTimestamp.Before(later.StartTimestamp)):
			later = other
		}
	}
	switch {
	case earlier != nil && later != nil && later.StartTimestamp.Before(earlier.StartTimestamp):
	case earlier != nil && start.Before(earlier.StartTimestamp):
		return field.ErrorList{field.Invalid(fldPath, start, fmt.Sprintf("must not be before %s, when %s was started", earlier.StartTimestamp.UTC().Format(time.RFC3339), earlier.Name))}
	case later != nil && later.StartTimestamp.Before(start):
		return field.ErrorList{field.Invalid(fldPath, start, fmt.Sprintf("must not be after %s, when %s was started", later.StartTimestamp.UTC().Format(time.RFC3339), later.Name))}
	}
	return nil
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
