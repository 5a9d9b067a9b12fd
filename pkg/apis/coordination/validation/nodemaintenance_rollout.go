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
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/coordination"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// validateRollout validates the rollout of a new maintenance.
func validateRollout(rollout *coordination.NodeMaintenanceRollout, fldPath *field.Path) field.ErrorList {
	if rollout == nil || rollout.MaxConcurrent == nil {
		return nil
	}
	return validateNumberOrPercentage(rollout.MaxConcurrent, 1, fldPath.Child("maxConcurrent"))
}

// validateRolloutUpdate validates a change of the rollout. How nodes are completed, and whether there
// is a rollout at all, is immutable: otherwise, nodes of one maintenance would follow different rules.
func validateRolloutUpdate(rollout, old *coordination.NodeMaintenanceRollout, fldPath *field.Path) field.ErrorList {
	switch {
	case apiequality.Semantic.DeepEqual(rollout, old):
		return nil
	case rollout == nil:
		return field.ErrorList{field.Forbidden(fldPath, "must not be removed: all remaining nodes would be drained at once. Raise maxConcurrent, or create another NodeMaintenance")}
	case old == nil:
		return field.ErrorList{field.Forbidden(fldPath, "must not be added: the drain of the nodes may have begun. Create another NodeMaintenance with it, and complete this one")}
	}
	var errs field.ErrorList
	if rollout.CompleteNodes != old.CompleteNodes {
		errs = append(errs, field.Invalid(fldPath.Child("completeNodes"), rollout.CompleteNodes,
			"is immutable: keep "+string(old.CompleteNodes)+" or create another NodeMaintenance"))
	}
	if !apiequality.Semantic.DeepEqual(rollout.Settle, old.Settle) {
		errs = append(errs, field.Forbidden(fldPath.Child("settle"), "is immutable: create another NodeMaintenance"))
	}
	if !apiequality.Semantic.DeepEqual(rollout.MaxConcurrent, old.MaxConcurrent) {
		errs = append(errs, validateRollout(rollout, fldPath)...)
	}
	return errs
}

// validateRolloutStatus validates the counters that change.
func validateRolloutStatus(status, old *coordination.NodeMaintenanceRolloutStatus, fldPath *field.Path) field.ErrorList {
	if status == nil {
		return nil
	}
	if old == nil {
		old = &coordination.NodeMaintenanceRolloutStatus{}
	}
	var errs field.ErrorList
	for _, counter := range []struct {
		name       string
		value, old int32
	}{
		{"waitingNodes", status.WaitingNodes, old.WaitingNodes},
		{"admittedNodes", status.AdmittedNodes, old.AdmittedNodes},
		{"doneNodes", status.DoneNodes, old.DoneNodes},
		{"failedNodes", status.FailedNodes, old.FailedNodes},
		{"skippedNodes", status.SkippedNodes, old.SkippedNodes},
	} {
		if counter.value != counter.old {
			errs = append(errs, corevalidation.ValidateNonnegativeField(int64(counter.value), fldPath.Child(counter.name))...)
		}
	}
	if apiequality.Semantic.DeepEqual(status.WaitingFor, old.WaitingFor) {
		return errs
	}
	for i := range status.WaitingFor {
		errs = append(errs, corevalidation.ValidateNonnegativeField(int64(status.WaitingFor[i].NodeCount), fldPath.Child("waitingFor").Index(i).Child("nodeCount"))...)
	}
	return errs
}
