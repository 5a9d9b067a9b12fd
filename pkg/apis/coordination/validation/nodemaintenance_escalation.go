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
	unversionedvalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
)

// escalations are the actions of an escalation.
var escalations = []core.MaintenanceEscalation{
	core.MaintenanceEscalationSkipInterceptors, core.MaintenanceEscalationIgnoreBudgets, core.MaintenanceEscalationForceDelete,
}

// validateEscalation validates the escalation of a new maintenance, or one that has changed.
func validateEscalation(spec *coordination.NodeMaintenanceSpec, fldPath *field.Path) field.ErrorList {
	if len(spec.Escalation) == 0 {
		return nil
	}
	var errs field.ErrorList
	if spec.Rollout == nil {
		errs = append(errs, field.Forbidden(fldPath, "needs spec.rollout, because the clock of a node begins with its admission: set spec.rollout, which limits nothing if it is {}"))
	}
	for i := range spec.Escalation {
		step, stepPath := &spec.Escalation[i], fldPath.Index(i)
		if i > 0 && step.AfterSeconds < spec.Escalation[i-1].AfterSeconds {
			errs = append(errs, field.Invalid(stepPath.Child("afterSeconds"), step.AfterSeconds, fmt.Sprintf(
				"must not be less than that of the step before, %d: sort the steps by afterSeconds", spec.Escalation[i-1].AfterSeconds)))
		}
		errs = append(errs, validateEscalationAction(step.Action, stepPath.Child("action"))...)
		podPath, namespacePath := stepPath.Child("podSelector"), stepPath.Child("namespaceSelector")
		errs = append(errs, validateSelectorSize(step.PodSelector, podPath)...)
		errs = append(errs, unversionedvalidation.ValidateLabelSelector(step.PodSelector, unversionedvalidation.LabelSelectorValidationOptions{}, podPath)...)
		errs = append(errs, validateSelectorSize(step.NamespaceSelector, namespacePath)...)
		errs = append(errs, unversionedvalidation.ValidateLabelSelector(step.NamespaceSelector, unversionedvalidation.LabelSelectorValidationOptions{}, namespacePath)...)
	}
	return errs
}

func validateEscalationAction(action core.MaintenanceEscalation, fldPath *field.Path) field.ErrorList {
	for _, known := range escalations {
		if action == known {
			return nil
		}
	}
	if action == "" {
		return nil // Reported by declarative validation.
	}
	return field.ErrorList{field.NotSupported(fldPath, action, escalations)}
}

// validateEscalationUpdate validates an escalation that has changed.
func validateEscalationUpdate(spec, old *coordination.NodeMaintenanceSpec, fldPath *field.Path) field.ErrorList {
	if apiequality.Semantic.DeepEqual(spec.Escalation, old.Escalation) {
		return nil
	}
	return validateEscalation(spec, fldPath)
}
