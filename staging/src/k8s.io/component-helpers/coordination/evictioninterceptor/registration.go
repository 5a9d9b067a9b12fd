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

package evictioninterceptor

import (
	"fmt"
	"strconv"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Registration is the registration of one interceptor by a pod annotation.
type Registration struct {
	// Name of the interceptor.
	Name string
	// Priority is from 0 to EvictionInterceptorMaxPriority. A higher priority is activated earlier.
	Priority int
	// Role is the role of the interceptor for the pod, or empty.
	Role string
}

// IsController reports whether the controller of the pod has registered itself.
func (r Registration) IsController() bool {
	return r.Role == coordinationv1alpha1.EvictionInterceptorControllerRole
}

// RegisteredName returns the name of the interceptor that an annotation with this key registers.
// registers is false for other annotations.
func RegisteredName(key string) (name string, registers bool) {
	return strings.CutPrefix(key, coordinationv1alpha1.EvictionInterceptorAnnotationPrefix)
}

// ParseRegistration parses an annotation that registers an interceptor. fldPath is the path of the
// pod's annotations.
func ParseRegistration(key, value string, fldPath *field.Path) (Registration, field.ErrorList) {
	fldPath = fldPath.Key(key)
	name, _ := RegisteredName(key)
	if errs := ValidateName(name, fldPath); len(errs) > 0 {
		return Registration{}, errs
	}
	digits, role, hasRole := strings.Cut(value, "/")
	// Unsigned, because with the signs that Atoi accepts, a priority would have several spellings.
	priority, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || priority > coordinationv1alpha1.EvictionInterceptorMaxPriority {
		return Registration{}, field.ErrorList{field.Invalid(fldPath, value, fmt.Sprintf(
			`must be "<priority>" or "<priority>/<role>", where the priority is an integer from 0 to %d`, coordinationv1alpha1.EvictionInterceptorMaxPriority))}
	}
	if hasRole && (len(role) == 0 || len(validation.IsValidLabelValue(role)) > 0) {
		return Registration{}, field.ErrorList{field.Invalid(fldPath, value,
			"the role must have 1 to 63 letters, digits, '-', '_' or '.', and begin and end with a letter or digit; omit it and the slash if there is no role")}
	}
	registration := Registration{Name: name, Priority: int(priority), Role: role}
	if registration.IsController() && priority != coordinationv1alpha1.EvictionInterceptorControllerPriority {
		return Registration{}, field.ErrorList{field.Invalid(fldPath, value, fmt.Sprintf(
			"the role %s requires the priority %d: use that priority or another role", role, coordinationv1alpha1.EvictionInterceptorControllerPriority))}
	}
	return registration, nil
}
