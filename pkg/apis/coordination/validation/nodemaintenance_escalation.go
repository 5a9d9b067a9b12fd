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

// validateEscalation validates the escalation of a new maintenance, or one that has changed.
func validateEscalation(spec *coordination.NodeMaintenanceSpec, fldPath *field.Path) field.ErrorList {
	if len(spec.Escalation) == 0 {
		return nil
	}
	var errs field.ErrorList
	if spec.Rollout == nil {
		errs = append(errs, field.Forbidden(fldPath, needsRollout+"set spec.rollout, which limits nothing if it is {}"))
	}
	return append(errs, validateEscalationSteps(spec, fldPath)...)
}

// needsRollout is why there is no escalation without a rollout.
const needsRollout = "needs spec.rollout, because the clock of a node begins with its admission: "

// validateEscalationSteps validates the steps by themselves.
func validateEscalationSteps(spec *coordination.NodeMaintenanceSpec, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range spec.Escalation {
		step, stepPath := &spec.Escalation[i], fldPath.Index(i)
		if i > 0 && step.AfterSeconds < spec.Escalation[i-1].AfterSeconds {
			errs = append(errs, field.Invalid(stepPath.Child("afterSeconds"), step.AfterSeconds, fmt.Sprintf(
				"must not be less than that of the step before, %d: sort the steps by afterSeconds", spec.Escalation[i-1].AfterSeconds)))
		}
		// That there is one, declarative validation checks.
		errs = append(errs, corevalidation.ValidateMaintenanceEscalation(step.Action, stepPath.Child("action"))...)
		errs = append(errs, validatePodSelection(step.PodSelector, step.NamespaceSelector, stepPath)...)
	}
	return errs
}

// validateEscalationUpdate validates an escalation that has changed.
func validateEscalationUpdate(spec, old *coordination.NodeMaintenanceSpec, fldPath *field.Path) field.ErrorList {
	if apiequality.Semantic.DeepEqual(spec.Escalation, old.Escalation) {
		return nil
	}
	if len(spec.Escalation) > 0 && spec.Rollout == nil && old.Rollout == nil {
		// A rollout must not be added.
		return append(field.ErrorList{field.Forbidden(fldPath, needsRollout+"create another NodeMaintenance with both, and complete this one")},
			validateEscalationSteps(spec, fldPath)...)
	}
	return validateEscalation(spec, fldPath)
}
