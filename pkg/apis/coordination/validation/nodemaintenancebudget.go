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
	"strconv"
	"strings"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversionedvalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/coordination/schedule"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// This file has only the rules that the markers in k8s.io/api/coordination/v1alpha1 cannot express.

// ValidateNodeMaintenanceBudgetCreate validates a new NodeMaintenanceBudget.
func ValidateNodeMaintenanceBudgetCreate(budget *coordination.NodeMaintenanceBudget) field.ErrorList {
	errs := corevalidation.ValidateObjectMeta(&budget.ObjectMeta, false, apimachineryvalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateBudgetSpec(&budget.Spec, nil, field.NewPath("spec"))...)
}

// ValidateNodeMaintenanceBudgetUpdate validates an update of metadata and spec. Fields that do not
// change are not validated again: a time zone may have gone.
func ValidateNodeMaintenanceBudgetUpdate(budget, old *coordination.NodeMaintenanceBudget) field.ErrorList {
	errs := corevalidation.ValidateObjectMetaUpdate(&budget.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateBudgetSpec(&budget.Spec, &old.Spec, field.NewPath("spec"))...)
}

// ValidateNodeMaintenanceBudgetStatusUpdate validates an update of the status.
func ValidateNodeMaintenanceBudgetStatusUpdate(budget, old *coordination.NodeMaintenanceBudget) field.ErrorList {
	errs := corevalidation.ValidateObjectMetaUpdate(&budget.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	fldPath := field.NewPath("status")
	status, before := &budget.Status, &old.Status
	for _, counter := range []struct {
		name       string
		value, old int32
	}{
		{"expectedNodes", status.ExpectedNodes, before.ExpectedNodes},
		{"unavailableNodes", status.UnavailableNodes, before.UnavailableNodes},
		{"admissionsAllowed", status.AdmissionsAllowed, before.AdmissionsAllowed},
	} {
		if counter.value != counter.old {
			errs = append(errs, corevalidation.ValidateNonnegativeField(int64(counter.value), fldPath.Child(counter.name))...)
		}
	}
	errs = append(errs, validateObservedGeneration(status.ObservedGeneration, before.ObservedGeneration, budget.Generation, fldPath)...)
	return append(errs, validateConditions(status.Conditions, before.Conditions, fldPath.Child("conditions"))...)
}

// validateObservedGeneration validates that it grows, and not beyond the generation of the object.
func validateObservedGeneration(observed, before, generation int64, fldPath *field.Path) field.ErrorList {
	if observed == before || observed > before && observed <= generation {
		return nil
	}
	return field.ErrorList{field.Invalid(fldPath.Child("observedGeneration"), observed,
		fmt.Sprintf("must not be less than the current value, %d, or greater than metadata.generation, %d", before, generation))}
}

// validateConditions validates each condition that changes. Declarative validation ensures that types
// are unique.
func validateConditions(conditions, old []metav1.Condition, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, condition := range conditions {
		if before := meta.FindStatusCondition(old, condition.Type); before == nil || !apiequality.Semantic.DeepEqual(*before, condition) {
			errs = append(errs, unversionedvalidation.ValidateCondition(condition, fldPath.Index(i))...)
		}
	}
	return errs
}

// validateBudgetSpec validates what differs from the old spec, which is nil for a new object.
func validateBudgetSpec(spec, old *coordination.NodeMaintenanceBudgetSpec, fldPath *field.Path) field.ErrorList {
	if old == nil {
		old = &coordination.NodeMaintenanceBudgetSpec{}
	}
	var errs field.ErrorList
	if spec.NodeSelector != nil && !apiequality.Semantic.DeepEqual(spec.NodeSelector, old.NodeSelector) {
		errs = append(errs, corevalidation.ValidateNodeSelector(spec.NodeSelector, false, fldPath.Child("nodeSelector"))...)
		errs = append(errs, validateComparedValues(spec.NodeSelector, fldPath.Child("nodeSelector"))...)
		errs = append(errs, validateNodeSelectorSize(spec.NodeSelector, fldPath.Child("nodeSelector"))...)
	}
	if spec.MaxUnavailable != nil && !apiequality.Semantic.DeepEqual(spec.MaxUnavailable, old.MaxUnavailable) {
		errs = append(errs, validateNumberOrPercentage(spec.MaxUnavailable, 0, fldPath.Child("maxUnavailable"))...)
	}
	if spec.Topology != nil && (old.Topology == nil || spec.Topology.Key != old.Topology.Key) {
		errs = append(errs, validateTopologyKey(spec.Topology.Key, fldPath.Child("topology", "key"))...)
	}
	// More windows, and longer texts, are reported by declarative validation. They are not parsed: each
	// takes a while, and there may be as many as fit into a request.
	for i := range spec.Windows[:min(len(spec.Windows), maxWindows)] {
		if !slices.Contains(old.Windows, spec.Windows[i]) {
			errs = append(errs, validateWindow(&spec.Windows[i], fldPath.Child("windows").Index(i))...)
		}
	}
	return errs
}

// validateNodeSelectorSize validates how much of a node selector has to be matched with every node, whenever one
// changes. The admission plugin NodeMaintenance does it for NodeMaintenances.
func validateNodeSelectorSize(selector *core.NodeSelector, fldPath *field.Path) field.ErrorList {
	converted := &v1.NodeSelector{}
	if err := corev1.Convert_core_NodeSelector_To_v1_NodeSelector(selector, converted, nil); err != nil {
		return field.ErrorList{field.InternalError(fldPath, err)}
	}
	what, count, most := maintenance.SelectorExcess(converted)
	if what == "" {
		return nil
	}
	return field.ErrorList{field.Forbidden(fldPath.Child("nodeSelectorTerms"), fmt.Sprintf("must not have more than %d %s, but has %d", most, what, count))}
}

// What declarative validation allows; lengths in characters.
const (
	maxWindows           = 20
	maxScheduleLength    = 256
	maxTimeZoneLength    = 64
	maxTopologyKeyLength = 317
)

// validateNumberOrPercentage validates a number of nodes, at least the minimum, or a percentage of
// them, up to 100 and not less than the minimum.
func validateNumberOrPercentage(value *intstr.IntOrString, minimum int, fldPath *field.Path) field.ErrorList {
	wanted := fmt.Sprintf("must be a number of nodes, at least %d, or a percentage of them from %d%% to 100%%, such as 2 or \"10%%\"", minimum, minimum)
	if value.Type == intstr.Int {
		if value.IntValue() < minimum {
			return field.ErrorList{field.Invalid(fldPath, value.IntValue(), wanted)}
		}
		return nil
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(value.StrVal, "%"))
	if len(validation.IsValidPercent(value.StrVal)) > 0 || err != nil || percent < minimum || percent > 100 {
		return field.ErrorList{field.Invalid(fldPath, value.StrVal, wanted)}
	}
	return nil
}

// validateTopologyKey validates the key of a label.
func validateTopologyKey(key string, fldPath *field.Path) field.ErrorList {
	if key == "" || utf8.RuneCountInString(key) > maxTopologyKeyLength {
		return nil // Reported by declarative validation.
	}
	errs := unversionedvalidation.ValidateLabelName(key, fldPath)
	for _, err := range errs {
		err.Detail = "must be the name of a label, such as topology.kubernetes.io/zone: " + err.Detail
	}
	return errs
}

// validateWindow validates that a window opens at some time.
func validateWindow(window *coordination.NodeMaintenanceWindow, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if window.Schedule != "" && utf8.RuneCountInString(window.Schedule) <= maxScheduleLength { // Otherwise reported by declarative validation.
		if _, err := schedule.ParseSchedule(window.Schedule); err != nil {
			errs = append(errs, field.Invalid(fldPath.Child("schedule"), window.Schedule, err.Error()))
		}
	}
	if utf8.RuneCountInString(window.TimeZone) > maxTimeZoneLength {
		return errs // Reported by declarative validation.
	}
	if _, err := schedule.ParseTimeZone(window.TimeZone); err != nil {
		errs = append(errs, field.Invalid(fldPath.Child("timeZone"), window.TimeZone, err.Error()))
	}
	return errs
}

// validateComparedValues validates that values are numbers which labels are compared with. Upstream
// accepts any, and such a selector matches no node.
func validateComparedValues(selector *core.NodeSelector, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, term := range selector.NodeSelectorTerms {
		for j, r := range term.MatchExpressions {
			if r.Operator != core.NodeSelectorOpGt && r.Operator != core.NodeSelectorOpLt || len(r.Values) != 1 {
				continue
			}
			if _, err := strconv.ParseInt(r.Values[0], 10, 64); err != nil {
				valuePath := fldPath.Child("nodeSelectorTerms").Index(i).Child("matchExpressions").Index(j).Child("values").Index(0)
				errs = append(errs, field.Invalid(valuePath, r.Values[0], fmt.Sprintf("must be an integer for the operator %s", r.Operator)))
			}
		}
	}
	return errs
}
