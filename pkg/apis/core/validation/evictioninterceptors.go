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
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
)

// validateEvictionInterceptors validates spec.evictionInterceptors of a pod or a pod template. The
// list of a pod is immutable: ValidatePodUpdate rejects changes of all fields except a few.
//
// A pod of a scheduling group may have interceptors. Whether they act depends on the disruptionMode of the
// group, which may not exist yet.
func validateEvictionInterceptors(spec *core.PodSpec, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	interceptors := spec.EvictionInterceptors
	if len(interceptors) == 0 {
		return nil
	}
	if len(interceptors) > evictioninterceptor.MaxOnPod {
		errs = append(errs, field.TooMany(fldPath, len(interceptors), evictioninterceptor.MaxOnPod))
	}
	seen := sets.New[string]()
	for i, interceptor := range interceptors {
		namePath := fldPath.Index(i).Child("name")
		if seen.Has(interceptor.Name) {
			errs = append(errs, field.Duplicate(namePath, interceptor.Name))
			continue
		}
		seen.Insert(interceptor.Name)
		errs = append(errs, evictioninterceptor.ValidateName(interceptor.Name, namePath)...)
	}
	return errs
}

// validateEvictionInterceptorAnnotations validates the annotations of a pod or a pod template that
// register interceptors. Without the validation of templates, an error would be reported only when
// a pod is created from the template.
//
// Only annotations that are added or changed by the update can make it fail. Pods may have invalid
// annotations from a time when the gate was off, and clients that do not use these annotations,
// such as kubelets, must still be able to update the pods.
func validateEvictionInterceptorAnnotations(annotations map[string]string, spec *core.PodSpec, fldPath *field.Path, opts PodValidationOptions) field.ErrorList {
	if !utilfeature.DefaultFeatureGate.Enabled(features.EvictionRequestAPI) {
		return nil
	}
	var changed, unchanged []string
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if _, registers := evictioninterceptor.RegisteredName(key); !registers {
			continue
		}
		if stored, found := opts.StoredAnnotations[key]; found && stored == annotations[key] {
			unchanged = append(unchanged, key)
		} else {
			changed = append(changed, key)
		}
	}
	var errs field.ErrorList
	for _, key := range changed {
		_, parseErrs := evictioninterceptor.ParseRegistration(key, annotations[key], fldPath)
		errs = append(errs, parseErrs...)
	}
	errs = append(errs, validateOneInterceptingController(annotations, unchanged, changed, fldPath)...)
	return append(errs, validateInterceptorCount(annotations, spec, fldPath, opts)...)
}

// validateOneInterceptingController rejects each changed annotation that makes a second interceptor
// the controller of the pod.
func validateOneInterceptingController(annotations map[string]string, unchanged, changed []string, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	controller := ""
	for i, key := range slices.Concat(unchanged, changed) {
		registration, parseErrs := evictioninterceptor.ParseRegistration(key, annotations[key], fldPath)
		switch {
		case len(parseErrs) > 0 || !registration.IsController():
		case controller == "":
			controller = registration.Name
		case i >= len(unchanged):
			errs = append(errs, field.Invalid(fldPath.Key(key), annotations[key], fmt.Sprintf(
				"%s already has the role %s, which only one interceptor may have: use another role or none", controller, registration.Role)))
		}
	}
	return errs
}

// validateInterceptorCount rejects each annotation that adds an interceptor to a pod that already
// has the maximum number.
func validateInterceptorCount(annotations map[string]string, spec *core.PodSpec, fldPath *field.Path, opts PodValidationOptions) field.ErrorList {
	names := sets.New[string]()
	for _, interceptor := range spec.EvictionInterceptors {
		names.Insert(interceptor.Name)
	}
	var added []string
	for key := range annotations {
		name, registers := evictioninterceptor.RegisteredName(key)
		if _, stored := opts.StoredAnnotations[key]; registers && stored {
			names.Insert(name)
		} else if registers && !names.Has(name) {
			added = append(added, key)
		}
	}
	slices.Sort(added)
	room := max(0, evictioninterceptor.MaxOnPod-len(names))
	var errs field.ErrorList
	for _, key := range added[min(room, len(added)):] {
		errs = append(errs, field.Invalid(fldPath.Key(key), annotations[key], fmt.Sprintf(
			"the pod would have more than %d interceptors in spec.evictionInterceptors and annotations: remove an interceptor", evictioninterceptor.MaxOnPod)))
	}
	return errs
}
