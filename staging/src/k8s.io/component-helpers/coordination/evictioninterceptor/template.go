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
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// AddTo adds controllers as interceptors to the pods that are created from the template, in this
// order, after those that its author has named. A controller that is already in the spec keeps its
// position, and annotations do not move it.
//
// Registrations in the annotations of the template with a priority above that of controllers are
// added before the controllers. Otherwise, the controllers would stop the pod before these
// interceptors are activated: on a running pod, registrations by annotation come after the whole
// spec, because other clients than the author may annotate it. The annotations of the template
// belong to the author.
//
// The caller must own the template: it is modified, and must not be a stored or cached one.
//
// Either all names are added or none, because one controller may rely on another one that is
// activated first. None is added if the API server would refuse the pod because of it: it is more
// important that a pod is created than that it is intercepted. AddTo reports whether the spec
// contains all the controllers.
func AddTo(template *v1.PodTemplateSpec, controllers ...string) bool {
	inSpec := sets.New[string]()
	for _, interceptor := range template.Spec.EvictionInterceptors {
		inSpec.Insert(interceptor.Name)
	}
	missing := firstSeen(controllers, inSpec, len(controllers))
	if len(missing) == 0 {
		return true
	}
	if inSpec.Union(registeredNames(template.Annotations)).Len() > MaxOnPod {
		return false
	}
	earlier := firstSeen(namesBeforeControllers(template.Annotations), inSpec, MaxOnPod)
	// Clipped, so that append does not write to the list of the original template.
	interceptors := slices.Clip(template.Spec.EvictionInterceptors)
	for _, name := range slices.Concat(earlier, missing) {
		interceptors = append(interceptors, v1.EvictionInterceptor{Name: name})
	}
	template.Spec.EvictionInterceptors = interceptors
	return true
}

// CountOnPod returns how many interceptors a pod has by its spec and its annotations, of which it may have MaxOnPod.
func CountOnPod(inSpec []v1.EvictionInterceptor, annotations map[string]string) int {
	names := registeredNames(annotations)
	for _, interceptor := range inSpec {
		names.Insert(interceptor.Name)
	}
	return names.Len()
}

// registeredNames returns the names that the annotations register, including those with invalid
// values: the API server counts them as well.
func registeredNames(annotations map[string]string) sets.Set[string] {
	names := sets.New[string]()
	for key := range annotations {
		if name, registers := RegisteredName(key); registers {
			names.Insert(name)
		}
	}
	return names
}

// namesBeforeControllers returns the valid registrations with a priority above that of controllers,
// the highest first.
func namesBeforeControllers(annotations map[string]string) []string {
	var names []string
	for _, registration := range validRegistrations(annotations) {
		if registration.Priority > coordinationv1alpha1.EvictionInterceptorControllerPriority {
			names = append(names, registration.Name)
		}
	}
	return names
}
