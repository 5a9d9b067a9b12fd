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

package v1alpha1

// spec.evictionInterceptors of a running pod is immutable. A component that becomes interested in
// its eviction later annotates the pod:
//
//	interceptor.evictionrequest.coordination.k8s.io/priority_<name>: "<priority>"
//	interceptor.evictionrequest.coordination.k8s.io/priority_<name>: "<priority>/<role>"
//
// This is the registration of the 2024 draft of KEP-4563, "Evacuator", in addition to the list of
// the KEP of 2026. It is read once, when the eviction request controller writes
// status.targetInterceptors: later changes have no effect on a started request.
const (
	// EvictionInterceptorAnnotationPrefix, followed by the name of an interceptor, is the key of
	// the pod annotation that registers it. The key of an annotation has at most 63 characters
	// after its domain, so the name has at most 54 here; longer names can be used in
	// spec.evictionInterceptors only.
	//
	// Written by the interceptor, or by the author of the pod. A pod has at most 15 interceptors,
	// including those of spec.evictionInterceptors. A name in both counts once, at its place in
	// the spec. Those of a pod that leaves with its PodGroup only do not act.
	EvictionInterceptorAnnotationPrefix = "interceptor.evictionrequest.coordination.k8s.io/priority_"

	// EvictionInterceptorMaxPriority is the highest priority; the lowest is 0. Interceptors of a
	// higher priority act earlier, those of the same priority in the order of their names. All of
	// them act after those of spec.evictionInterceptors.
	EvictionInterceptorMaxPriority = 100000

	// EvictionInterceptorControllerPriority is the priority of the controller of the pod.
	EvictionInterceptorControllerPriority = 10000

	// EvictionInterceptorControllerRole is the role of the controller that created the pod and can
	// replace it. At most one interceptor of a pod has it, with
	// EvictionInterceptorControllerPriority. Every other role is informational.
	EvictionInterceptorControllerRole = "controller"
)

const (
	// EvictionPacingAnnotation, of a StatefulSet, with the value EvictionPacingDisabled, turns off that
	// its pods wait for each other before they are evicted (feature gate StatefulSetEvictionPacing).
	// Then all requested pods are evicted at once, within their budgets. Every other value has no
	// effect. It is read at each decision, so it applies to existing pods and pending evictions. On
	// the template of the set it has no effect: a change there would replace all pods.
	//
	// Written by the owner of the StatefulSet.
	EvictionPacingAnnotation = "statefulset.kubernetes.io/eviction-pacing"

	// EvictionPacingDisabled is the value of EvictionPacingAnnotation that has an effect.
	EvictionPacingDisabled = "Disabled"
)
