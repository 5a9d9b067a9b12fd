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

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversionedvalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
)

// validatePodPolicies validates the policies of a new maintenance.
func validatePodPolicies(policies []coordination.NodeMaintenancePodPolicy, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range policies {
		policy, policyPath := &policies[i], fldPath.Index(i)
		errs = append(errs, validatePodSelection(policy.PodSelector, policy.NamespaceSelector, policyPath)...)
		errs = append(errs, validateResourceNames(policy.ResourceNames, policyPath.Child("resourceNames"))...)
		if i < len(policies)-1 && policy.PodSelector == nil && policy.NamespaceSelector == nil && len(policy.ResourceNames) == 0 {
			errs = append(errs, field.Invalid(policyPath, string(policy.Action), fmt.Sprintf(
				"must be the last one, because it matches all pods, so that those after it match none: move it to the end, or give it a podSelector, namespaceSelector or resourceNames (%d follow)", len(policies)-1-i)))
		}
	}
	return errs
}

// validatePodSelection validates the selectors of pods and of their namespaces, below the path.
func validatePodSelection(pods, namespaces *metav1.LabelSelector, fldPath *field.Path) field.ErrorList {
	podPath, namespacePath := fldPath.Child("podSelector"), fldPath.Child("namespaceSelector")
	options := unversionedvalidation.LabelSelectorValidationOptions{}
	return slices.Concat(
		validateSelectorSize(pods, podPath), unversionedvalidation.ValidateLabelSelector(pods, options, podPath),
		validateSelectorSize(namespaces, namespacePath), unversionedvalidation.ValidateLabelSelector(namespaces, options, namespacePath),
	)
}

func validateResourceNames(names []core.ResourceName, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[core.ResourceName]()
	for i, name := range names {
		for _, message := range validation.IsQualifiedName(string(name)) {
			errs = append(errs, field.Invalid(fldPath.Index(i), string(name), "must be the name of a resource, such as cpu or nvidia.com/gpu: "+message))
		}
		if seen.Has(name) {
			errs = append(errs, field.Duplicate(fldPath.Index(i), string(name)))
		}
		seen.Insert(name)
	}
	return errs
}

// validatePoliciesUpdate validates that the policies and what a drained node is do not change: nodes
// of one maintenance would follow different rules.
func validatePoliciesUpdate(spec, old *coordination.NodeMaintenanceSpec, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	const immutable = "is immutable: create another NodeMaintenance, which may select the same nodes, and complete this one"
	if !apiequality.Semantic.DeepEqual(spec.PodPolicies, old.PodPolicies) {
		errs = append(errs, field.Forbidden(fldPath.Child("podPolicies"), immutable))
	}
	if !apiequality.Semantic.DeepEqual(spec.DrainedWhen, old.DrainedWhen) {
		errs = append(errs, field.Forbidden(fldPath.Child("drainedWhen"), immutable))
	}
	return errs
}
