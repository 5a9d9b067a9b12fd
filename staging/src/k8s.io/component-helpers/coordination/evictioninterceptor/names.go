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

// Package evictioninterceptor defines the valid names of the interceptors of a pod, their
// registration by annotation, and the order in which they are activated. The API server and the
// eviction request controller must agree on these rules.
package evictioninterceptor

import (
	"fmt"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/evictionrequest"
)

const (
	// imperative is the last interceptor of each request, so pods must not name it.
	imperative = coordinationv1alpha1.EvictionInterceptorImperative

	// reservedDomain is reserved for components of Kubernetes.
	reservedDomain = ".k8s.io"
	// reservedKeyDomain is also reserved in domain-prefixed keys, which Kubernetes 1.37 accepts as
	// names and reserves as well.
	reservedKeyDomain = ".kubernetes.io"
)

// kubernetesNames are the names in the reserved domain that a pod may use.
var kubernetesNames = sets.New(
	coordinationv1alpha1.EvictionInterceptorDaemonSet,
	coordinationv1alpha1.EvictionInterceptorDeployment,
	coordinationv1alpha1.EvictionInterceptorHorizontalPodAutoscaler,
	coordinationv1alpha1.EvictionInterceptorKubelet,
	coordinationv1alpha1.EvictionInterceptorReplicaSet,
	coordinationv1alpha1.EvictionInterceptorStatefulSet,
)

// IsReserved reports whether the name of a participant is in the domain that is reserved for components of
// Kubernetes, or a key in it.
func IsReserved(name string) bool {
	domain, _, _ := strings.Cut(name, "/")
	return strings.HasSuffix("."+domain, reservedDomain)
}

// ConditionOwner returns which of these interceptors may set conditions of this type in status.conditions of an
// EvictionRequest, or "": of those that own it, the one with the longest name.
func ConditionOwner(conditionType string, interceptors []string) string {
	owner := ""
	for _, interceptor := range interceptors {
		if len(interceptor) > len(owner) && ownsCondition(interceptor, conditionType) {
			owner = interceptor
		}
	}
	return owner
}

// ownsCondition reports whether the type begins with the name of the interceptor and a slash or, because a type has
// one slash at most, with its name and a dot.
func ownsCondition(interceptor, conditionType string) bool {
	separator := "/"
	if strings.Contains(interceptor, "/") {
		separator = "."
	}
	return strings.HasPrefix(conditionType, interceptor+separator)
}

// ValidateName validates the name of an interceptor of a pod.
func ValidateName(name string, fldPath *field.Path) field.ErrorList {
	if errs := evictionrequest.ValidateParticipantName(name, fldPath); len(errs) > 0 {
		return errs
	}
	domain, _, isKey := strings.Cut(name, "/")
	switch {
	case name == imperative:
		return field.ErrorList{field.Invalid(fldPath, name, "is reserved, because every EvictionRequest has it: remove it")}
	case isKey && strings.HasSuffix("."+domain, reservedKeyDomain):
		return field.ErrorList{field.Invalid(fldPath, name, fmt.Sprintf("names in the domain %s are reserved: use your own domain", strings.TrimPrefix(reservedKeyDomain, ".")))}
	case IsReserved(name) && !kubernetesNames.Has(name):
		return field.ErrorList{field.Invalid(fldPath, name, fmt.Sprintf("names that end in %s are reserved: use your own domain, or one of %s",
			reservedDomain, strings.Join(sets.List(kubernetesNames), ", ")))}
	}
	return nil
}
