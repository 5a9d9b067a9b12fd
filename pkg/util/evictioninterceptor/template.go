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

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// AddTo makes controllers interceptors of the pods that are created from the template,
// in this order, after those that its author has named. A name that the author has
// placed already, in the spec or by annotation, stays where it is.
//
// The caller must own the template: it is changed, and must not be one that is stored
// or cached.
//
// Names are added all or none, since one controller may rely on another that has its
// turn first. None is added where the API server would refuse the pod for it: a pod
// that can be created matters more than one that is intercepted. Whether the template
// has all the names now is returned.
func AddTo(template *v1.PodTemplateSpec, names ...string) bool {
	placed := sets.New[string]()
	for _, interceptor := range template.Spec.EvictionInterceptors {
		placed.Insert(interceptor.Name)
	}
	for key := range template.Annotations {
		// Also one whose value is not valid: the API server counts it, too.
		if name, registers := RegisteredName(key); registers {
			placed.Insert(name)
		}
	}
	var missing []v1.EvictionInterceptor
	for _, name := range names {
		if !placed.Has(name) {
			placed.Insert(name)
			missing = append(missing, v1.EvictionInterceptor{Name: name})
		}
	}
	if len(missing) == 0 {
		return true
	}
	if template.Spec.SchedulingGroup != nil || placed.Len() > MaxOnPod {
		return false
	}
	// Clipped, so that a copy that shares the list of the original leaves it alone.
	template.Spec.EvictionInterceptors = append(slices.Clip(template.Spec.EvictionInterceptors), missing...)
	return true
}
