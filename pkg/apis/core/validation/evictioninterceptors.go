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

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
)

// maxEvictionInterceptors leaves room for the built-in interceptor that ends every
// list: an EvictionRequest has up to 16.
const maxEvictionInterceptors = 15

// imperativeEvictionInterceptor is appended to every list by the eviction request
// controller, so nobody else may put it on a pod.
const imperativeEvictionInterceptor = "imperative-eviction.k8s.io"

// reservedInterceptorDomain is kept for components of Kubernetes itself.
const reservedInterceptorDomain = ".k8s.io"

// kubernetesEvictionInterceptors are the names in the reserved domain that a pod may carry.
var kubernetesEvictionInterceptors = sets.New(
	"daemonset.apps.k8s.io",
	"deployment.apps.k8s.io",
	"horizontalpodautoscaler.autoscaling.k8s.io",
	"kubelet.k8s.io",
	"replicaset.apps.k8s.io",
	"statefulset.apps.k8s.io",
)

// validateEvictionInterceptors checks spec.evictionInterceptors of a pod or a pod
// template. That a pod's list never changes follows from ValidatePodUpdate, which
// allows only named fields to change.
func validateEvictionInterceptors(spec *core.PodSpec, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	interceptors := spec.EvictionInterceptors
	if len(interceptors) == 0 {
		return nil
	}
	if spec.SchedulingGroup != nil {
		errs = append(errs, field.Forbidden(fldPath, "may not be set together with schedulingGroup: pods of a scheduling group are not evicted one by one"))
	}
	if len(interceptors) > maxEvictionInterceptors {
		errs = append(errs, field.TooMany(fldPath, len(interceptors), maxEvictionInterceptors))
	}
	seen := sets.New[string]()
	for i, interceptor := range interceptors {
		namePath := fldPath.Index(i).Child("name")
		if seen.Has(interceptor.Name) {
			errs = append(errs, field.Duplicate(namePath, interceptor.Name))
			continue
		}
		seen.Insert(interceptor.Name)
		errs = append(errs, ValidateEvictionInterceptorName(interceptor.Name, namePath)...)
	}
	return errs
}

// ValidateEvictionInterceptorName checks a name that somebody wants to intercept
// evictions under.
func ValidateEvictionInterceptorName(name string, fldPath *field.Path) field.ErrorList {
	if errs := ValidateEvictionParticipantName(name, fldPath); len(errs) > 0 {
		return errs
	}
	switch {
	case name == imperativeEvictionInterceptor:
		return field.ErrorList{field.Invalid(fldPath, name, "is added to every eviction request by Kubernetes: leave it out")}
	case strings.HasSuffix("."+name, reservedInterceptorDomain) && !kubernetesEvictionInterceptors.Has(name):
		return field.ErrorList{field.Invalid(fldPath, name, fmt.Sprintf("names that end in %s are reserved: use a domain of your own, or one of %s",
			reservedInterceptorDomain, strings.Join(sets.List(kubernetesEvictionInterceptors), ", ")))}
	}
	return nil
}

// ValidateEvictionParticipantName checks the form that the names of requesters and
// of interceptors share.
func ValidateEvictionParticipantName(name string, fldPath *field.Path) field.ErrorList {
	// A final dot is part of a domain name's absolute form. Here it would make a second
	// name for the same participant, which also gets round the reserved names.
	if strings.HasSuffix(name, ".") {
		return field.ErrorList{field.Invalid(fldPath, name, "may not end with a dot")}
	}
	return validation.IsFullyQualifiedDomainName(fldPath, name)
}
