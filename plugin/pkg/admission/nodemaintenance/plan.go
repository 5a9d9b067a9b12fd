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
	"cmp"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	helpers "k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
)

// maxPlanEntries is the limit of the API for the length of a plan.
const maxPlanEntries = 100

// completePlan adds the standard entries that a new maintenance lacks.
func completePlan(a admission.Attributes, maintenance *coordination.NodeMaintenance) error {
	given := len(maintenance.Spec.DrainPlan)
	plan, err := completed(maintenance.Spec.DrainPlan)
	if err != nil {
		return err
	}
	if given <= maxPlanEntries && len(plan) > maxPlanEntries {
		// Validation would count entries that the user has not written.
		return apierrors.NewInvalid(a.GetKind().GroupKind(), cmp.Or(maintenance.Name, maintenance.GenerateName), field.ErrorList{field.Invalid(
			field.NewPath("spec", "drainPlan"), given, fmt.Sprintf("must have at most %d entries, but %d added standard entries make it %d: merge or remove at least %d of the given entries",
				maxPlanEntries, len(plan)-given, len(plan), len(plan)-maxPlanEntries))})
	}
	maintenance.Spec.DrainPlan = plan
	return nil
}

// restorePlan replaces a plan by the stored plan if it completes to the stored one. Any other plan
// is not changed, so that validation rejects it.
func restorePlan(maintenance, old *coordination.NodeMaintenance) error {
	plan, err := completed(maintenance.Spec.DrainPlan)
	if err != nil {
		return err
	}
	if apiequality.Semantic.DeepEqual(plan, old.Spec.DrainPlan) {
		maintenance.Spec.DrainPlan = old.DeepCopy().Spec.DrainPlan
	}
	return nil
}

// completed returns the plan with the standard entries that it lacks. An invalid plan is returned
// unchanged.
func completed(plan []core.DrainPlanEntry) ([]core.DrainPlanEntry, error) {
	if len(plan) > maxPlanEntries {
		return plan, nil
	}
	var versioned []v1.DrainPlanEntry
	for i := range plan {
		var entry v1.DrainPlanEntry
		if err := corev1.Convert_core_DrainPlanEntry_To_v1_DrainPlanEntry(&plan[i], &entry, nil); err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("converting spec.drainPlan[%d] to v1: %w", i, err))
		}
		versioned = append(versioned, entry)
	}
	if !isValidPlan(versioned) {
		return plan, nil
	}
	var complete []core.DrainPlanEntry
	for i, entry := range helpers.CompletePlan(versioned) {
		var internal core.DrainPlanEntry
		if err := corev1.Convert_v1_DrainPlanEntry_To_core_DrainPlanEntry(&entry, &internal, nil); err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("converting entry %d of the completed spec.drainPlan from v1: %w", i, err))
		}
		complete = append(complete, internal)
	}
	return complete, nil
}

// isValidPlan reports whether the plan is sorted, has no duplicates, and has valid pod types and
// selectors.
func isValidPlan(plan []v1.DrainPlanEntry) bool {
	seen := map[helpers.EntryKey]bool{}
	for i, entry := range plan {
		if entry.PodType != v1.PodTypeDefault && entry.PodType != v1.PodTypeDaemonSet && entry.PodType != v1.PodTypeStatic {
			return false
		}
		if _, err := metav1.LabelSelectorAsSelector(entry.PodSelector); err != nil {
			return false
		}
		key := helpers.EntryKeyOf(entry)
		if seen[key] || i > 0 && helpers.CompareEntries(plan[i-1], entry) > 0 {
			return false
		}
		seen[key] = true
	}
	return true
}
