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
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
)

// computeTargetInterceptors returns the interceptors of the pod in order: those that the pod names
// in its spec or by annotation, the default ones for its kind, and the built-in one.
func computeTargetInterceptors(pod *v1.Pod) []coordinationv1alpha1.Interceptor {
	var named []string
	for _, interceptor := range pod.Spec.EvictionInterceptors {
		named = append(named, interceptor.Name)
	}
	var interceptors []coordinationv1alpha1.Interceptor
	for _, name := range evictioninterceptor.TargetNames(named, pod.Annotations, evictionrequesttools.DefaultInterceptors(pod)) {
		interceptors = append(interceptors, coordinationv1alpha1.Interceptor{Name: name})
	}
	return interceptors
}

// activeInterceptor returns the name of the active interceptor, or "".
func activeInterceptor(status *coordinationv1alpha1.EvictionRequestStatus) string {
	if len(status.ActiveInterceptors) == 0 {
		return ""
	}
	return status.ActiveInterceptors[0]
}
