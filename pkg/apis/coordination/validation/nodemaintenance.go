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
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/coordination"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// This file has only the rules that the markers in k8s.io/api/coordination/v1alpha1 cannot express.

// stages has the stages of a maintenance in order.
var stages = []coordination.NodeMaintenanceStage{
	coordination.NodeMaintenanceStageIdle,
	coordination.NodeMaintenanceStageCordon,
	coordination.NodeMaintenanceStageDrain,
	coordination.NodeMaintenanceStageComplete,
}

// ValidateNodeMaintenanceCreate validates a new NodeMaintenance. It may start in any stage.
func ValidateNodeMaintenanceCreate(maintenance *coordination.NodeMaintenance) field.ErrorList {
	errs := corevalidation.ValidateObjectMeta(&maintenance.ObjectMeta, false, apimachineryvalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, validateNodeSelector(&maintenance.Spec, field.NewPath("spec", "nodeSelector"))...)
	errs = append(errs, validatePodPolicies(maintenance.Spec.PodPolicies, field.NewPath("spec", "podPolicies"))...)
	errs = append(errs, validateRollout(maintenance.Spec.Rollout, field.NewPath("spec", "rollout"))...)
	errs = append(errs, validateEscalation(&maintenance.Spec, field.NewPath("spec", "escalation"))...)
	return append(errs, validateDrainPlan(maintenance.Spec.DrainPlan, field.NewPath("spec", "drainPlan"))...)
}

// ValidateNodeMaintenanceUpdate validates an update of metadata and spec. Unchanged fields are not
// validated again.
func ValidateNodeMaintenanceUpdate(maintenance, old *coordination.NodeMaintenance) field.ErrorList {
	errs := corevalidation.ValidateObjectMetaUpdate(&maintenance.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if !apiequality.Semantic.DeepEqual(maintenance.Spec.NodeSelector, old.Spec.NodeSelector) {
		errs = append(errs, validateNodeSelector(&maintenance.Spec, field.NewPath("spec", "nodeSelector"))...)
	}
	errs = append(errs, validateStageTransition(maintenance.Spec.Stage, old.Spec.Stage, field.NewPath("spec", "stage"))...)
	errs = append(errs, validatePoliciesUpdate(&maintenance.Spec, &old.Spec, field.NewPath("spec"))...)
	errs = append(errs, validateEscalationUpdate(&maintenance.Spec, &old.Spec, field.NewPath("spec", "escalation"))...)
	errs = append(errs, validateRolloutUpdate(maintenance.Spec.Rollout, old.Spec.Rollout, field.NewPath("spec", "rollout"))...)
	// A plan that was stored empty is immutable as well: otherwise, drained and undrained nodes
	// would follow different plans.
	if !apiequality.Semantic.DeepEqual(maintenance.Spec.DrainPlan, old.Spec.DrainPlan) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "drainPlan"), describePlan(maintenance.Spec.DrainPlan),
			fmt.Sprintf("is immutable: keep %q or create another NodeMaintenance with this plan", describePlan(old.Spec.DrainPlan))))
	}
	return errs
}

func validateNodeSelector(spec *coordination.NodeMaintenanceSpec, fldPath *field.Path) field.ErrorList {
	if spec.NodeSelector == nil {
		return nil // Reported by declarative validation.
	}
	return corevalidation.ValidateNodeSelector(spec.NodeSelector, false, fldPath)
}

// validateStageTransition validates that the stage only moves forward, by any number of stages.
// This also applies to an object that is being deleted: it has to become Complete.
func validateStageTransition(stage, old coordination.NodeMaintenanceStage, fldPath *field.Path) field.ErrorList {
	rank, oldRank := slices.Index(stages, stage), slices.Index(stages, old)
	if rank < 0 || rank >= oldRank {
		return nil // Declarative validation reports an unknown stage.
	}
	var names []string
	for _, known := range stages {
		names = append(names, string(known))
	}
	return field.ErrorList{field.Invalid(fldPath, stage, fmt.Sprintf(
		"must not go back from %s: the order is %s; create another NodeMaintenance to start again", old, strings.Join(names, ", ")))}
}
