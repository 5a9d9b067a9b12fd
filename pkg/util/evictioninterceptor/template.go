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

// AddTo makes controllers interceptors of the pods that are created from the template,
// in this order, after those that its author has named. A controller that the author has
// placed in the spec stays where it is; annotations do not move one.
//
// What the annotations of the template register with a priority above that of controllers
// is added before them. Otherwise the controllers would end the pod before its turn comes:
// by annotation it comes after the whole spec, since others than the author may annotate
// a pod that runs. Those of the template are the author's.
//
// The caller must own the template: it is changed, and must not be one that is stored
// or cached.
//
// Names are added all or none, since one controller may rely on another that has its
// turn first. None is added where the API server would refuse the pod for it: a pod
// that can be created matters more than one that is intercepted. Whether the spec has
// all the controllers now is returned.
func AddTo(template *v1.PodTemplateSpec, controllers ...string) bool {
	placed := sets.New[string]()
	for _, interceptor := range template.Spec.EvictionInterceptors {
		placed.Insert(interceptor.Name)
	}
	missing := firstSeen(controllers, placed, len(controllers))
	if len(missing) == 0 {
		return true
	}
	if template.Spec.SchedulingGroup != nil || placed.Union(registeredNames(template.Annotations)).Len() > MaxOnPod {
		return false
	}
	earlier := firstSeen(namesBeforeControllers(template.Annotations), placed, MaxOnPod)
	// Clipped, so that a copy that shares the list of the original leaves it alone.
	interceptors := slices.Clip(template.Spec.EvictionInterceptors)
	for _, name := range slices.Concat(earlier, missing) {
		interceptors = append(interceptors, v1.EvictionInterceptor{Name: name})
	}
	template.Spec.EvictionInterceptors = interceptors
	return true
}

// registeredNames returns what the annotations register. It includes names with a value
// that is not valid: the API server counts them, too.
func registeredNames(annotations map[string]string) sets.Set[string] {
	names := sets.New[string]()
	for key := range annotations {
		if name, registers := RegisteredName(key); registers {
			names.Insert(name)
		}
	}
	return names
}

// namesBeforeControllers returns what the annotations register with a higher priority than
// controllers have, the highest first.
func namesBeforeControllers(annotations map[string]string) []string {
	var names []string
	for _, registration := range validRegistrations(annotations) {
		if registration.Priority > coordinationv1alpha1.EvictionInterceptorControllerPriority {
			names = append(names, registration.Name)
		}
	}
	return names
}
