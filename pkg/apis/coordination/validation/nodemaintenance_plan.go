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
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

const (
	// maxDrainPlanEntries is the declared maximum length of a plan. A longer plan is not validated
	// further: comparing all pairs of entries would take too long.
	maxDrainPlanEntries = 100

	// The selectors of a plan are copied to the status of each node, up to once per pod type,
	// together with those of other maintenances. Nodes are written and watched often, so these
	// limits keep the copies small: about 25 KB per maintenance in the worst case.
	maxSelectorRequirements = 10
	maxRequirementValues    = 20
	maxPlanSelectorLength   = 8192

	// maxPlanDescribed limits the number of entries in an error message.
	maxPlanDescribed = 20
)

// planEntry is the key of an entry of a drain plan. The controller and the admission plugin compare
// entries by the same key.
type planEntry struct{ maintenance.EntryKey }

func newPlanEntry(entry *core.DrainPlanEntry) planEntry {
	return planEntry{maintenance.EntryKey{
		PodType: v1.PodType(entry.PodType), PodPriority: entry.PodPriority, Selector: maintenance.SelectorKey(entry.PodSelector),
	}}
}

// validateDrainPlan validates each entry, and then the order of the valid ones.
func validateDrainPlan(plan []core.DrainPlanEntry, fldPath *field.Path) field.ErrorList {
	if len(plan) > maxDrainPlanEntries {
		return nil // Reported by declarative validation.
	}
	var errs field.ErrorList
	length := 0
	before := map[int]planEntry{}
	for i := range plan {
		if tooLarge := validateSelectorSize(plan[i].PodSelector, fldPath.Index(i).Child("podSelector")); len(tooLarge) > 0 {
			errs = append(errs, tooLarge...)
			continue
		}
		if invalid := corevalidation.ValidateDrainPlanEntry(&plan[i], fldPath.Index(i)); len(invalid) > 0 {
			errs = append(errs, invalid...)
			continue
		}
		entry := newPlanEntry(&plan[i])
		if err := validateOrder(i, entry, before, fldPath); err != nil {
			errs = append(errs, err)
		}
		before[i] = entry
		length += len(entry.Selector)
	}
	if length > maxPlanSelectorLength {
		errs = append(errs, field.Forbidden(fldPath, fmt.Sprintf("must not have podSelectors of more than %d characters in total, but has %d: "+
			"use fewer or shorter labels", maxPlanSelectorLength, length)))
	}
	return errs
}

// validateSelectorSize validates the size of a selector. A plan is immutable, so larger selectors
// that are already stored are not validated.
func validateSelectorSize(selector *metav1.LabelSelector, fldPath *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	var errs field.ErrorList
	if count := len(selector.MatchLabels) + len(selector.MatchExpressions); count > maxSelectorRequirements {
		errs = append(errs, field.TooMany(fldPath, count, maxSelectorRequirements))
	}
	for i, requirement := range selector.MatchExpressions {
		if count := len(requirement.Values); count > maxRequirementValues {
			errs = append(errs, field.TooMany(fldPath.Child("matchExpressions").Index(i).Child("values"), count, maxRequirementValues))
		}
	}
	return errs
}

// validateOrder reports the first earlier entry that is equal to this one or must come after it.
// The error names both entries, so that the user can correct the plan.
func validateOrder(index int, entry planEntry, before map[int]planEntry, fldPath *field.Path) *field.Error {
	for i := range index {
		other, valid := before[i]
		if !valid {
			continue
		}
		switch {
		case entry.Compare(other.EntryKey) < 0:
			return field.Invalid(fldPath.Index(index), entry.String(), fmt.Sprintf("must come before %s, %q, because %s", fldPath.Index(i), other, entry.orderRule(other)))
		case entry == other:
			err := field.Duplicate(fldPath.Index(index), entry.String())
			err.Detail = fmt.Sprintf("selects the same pods as %s: remove one of them", fldPath.Index(i))
			return err
		}
	}
	return nil
}

// orderRule returns the rule by which two entries are in an order.
func (e planEntry) orderRule(other planEntry) string {
	switch {
	case e.PodType != other.PodType:
		return "pod types must be in the order Default, DaemonSet, Static"
	case e.PodPriority != other.PodPriority:
		return "priorities must not decrease within a pod type"
	}
	return "entries with a podSelector must come first at the same priority"
}

// String returns the name of the entry in an error, such as Default<=1000 or Default<=1000{app=db}.
func (e planEntry) String() string {
	if e.Selector == "" {
		return fmt.Sprintf("%s<=%d", e.PodType, e.PodPriority)
	}
	return fmt.Sprintf("%s<=%d{%s}", e.PodType, e.PodPriority, e.Selector)
}

// describePlan returns the names of the entries of a plan. A long plan is truncated.
func describePlan(plan []core.DrainPlanEntry) string {
	var entries []string
	for i := range plan[:min(len(plan), maxPlanDescribed)] {
		entries = append(entries, newPlanEntry(&plan[i]).String())
	}
	if more := len(plan) - len(entries); more > 0 {
		entries = append(entries, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(entries, ", ")
}
