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

package evictionrequest

import (
	"fmt"
	"slices"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/evictions"
)

// FieldManager returns the field manager of the requester or interceptor with that name. It is the
// name itself, so that "kubectl apply --server-side --field-manager=<name>" acts as the same
// participant. A name that is too long for a field manager is truncated and ends in a hash of the
// whole name, which keeps it unique.
//
// Do not apply the entry of a participant with another field manager: an entry with two owners
// remains when one of them removes it.
func FieldManager(name string) string { return evictions.FieldManager(name) }

// ValidateParticipantName validates the form of the name of a requester or interceptor, as the API
// server does: a fully qualified domain name, or a domain-prefixed key such as example.com/migrate.
// The KEP specifies the former, and the API of Kubernetes 1.37 the latter.
func ValidateParticipantName(name string, fldPath *field.Path) field.ErrorList {
	if strings.Contains(name, "/") {
		return validation.IsDomainPrefixedKey(fldPath, name)
	}
	// A trailing dot is part of the absolute form of a domain name. Here, it would be a second name
	// of the same participant and would bypass the check of reserved names.
	if strings.HasSuffix(name, ".") {
		return field.ErrorList{field.Invalid(fldPath, name, "may not end with a dot")}
	}
	return validation.IsFullyQualifiedDomainName(fldPath, name)
}

// validateName validates the name of a requester or interceptor when the program starts, and not
// for the first pod.
func validateName(name string) error {
	errs := ValidateParticipantName(name, field.NewPath("name"))
	if err := errs.ToAggregate(); err != nil {
		return fmt.Errorf("%w: use a lower-case name in your own domain, such as drain.example.com", err)
	}
	return nil
}

// isConditionTrue reports whether a condition of the request is True.
func isConditionTrue(request *coordinationv1alpha1.EvictionRequest, condition coordinationv1alpha1.EvictionRequestConditionType) bool {
	return meta.IsStatusConditionTrue(request.Status.Conditions, string(condition))
}

// hasRequester reports whether the requester with that name is in the request.
func hasRequester(request *coordinationv1alpha1.EvictionRequest, name string) bool {
	return slices.ContainsFunc(request.Spec.Requesters, func(r coordinationv1alpha1.Requester) bool { return r.Name == name })
}

// isActive reports whether the interceptor with that name is active.
func isActive(request *coordinationv1alpha1.EvictionRequest, name string) bool {
	return slices.Contains(request.Status.ActiveInterceptors, name)
}
