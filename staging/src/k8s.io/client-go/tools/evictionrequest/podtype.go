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
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodTypeOf returns the type of the pod. It decides which interceptors a pod has by default, and
// when a node maintenance drains the pod.
func PodTypeOf(pod *v1.Pod) v1.PodType {
	if _, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]; mirror {
		return v1.PodTypeStatic
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == daemonSetKind {
		return v1.PodTypeDaemonSet
	}
	return v1.PodTypeDefault
}

// daemonSetKind is the kind of DaemonSets in all groups. Other groups have some as well, such as apps.kruise.io, whose
// controllers recreate pods on a cordoned node like that of Kubernetes.
const daemonSetKind = "DaemonSet"

// HasDaemonSetController reports whether the DaemonSet controller of Kubernetes manages the pod. Of another group's
// DaemonSet, only the controller of that group can stop the pods for good.
func HasDaemonSetController(pod *v1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return PodTypeOf(pod) == v1.PodTypeDaemonSet && strings.HasPrefix(owner.APIVersion, "apps/")
}

// DefaultInterceptors returns the interceptors that each request for such a pod has, even if the
// pod does not name them. Nothing else can stop the pod, because it is exempt from API-initiated
// eviction. So are pods of another group's DaemonSet, whose controller may be an interceptor that they name.
func DefaultInterceptors(pod *v1.Pod) []string {
	switch PodTypeOf(pod) {
	case v1.PodTypeStatic:
		return []string{coordinationv1alpha1.EvictionInterceptorKubelet}
	case v1.PodTypeDaemonSet:
		if !HasDaemonSetController(pod) {
			return nil
		}
		return []string{coordinationv1alpha1.EvictionInterceptorDaemonSet}
	}
	return nil
}
