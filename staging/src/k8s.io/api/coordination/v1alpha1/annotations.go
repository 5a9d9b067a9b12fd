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

// A pod that runs cannot get spec.evictionInterceptors any more, because its spec is
// immutable. Whoever wants a say in its eviction nevertheless annotates it:
//
//	interceptor.evictionrequest.coordination.k8s.io/priority_<name>: "<priority>"
//	interceptor.evictionrequest.coordination.k8s.io/priority_<name>: "<priority>/<role>"
//
// This is the registration of the 2024 draft of KEP-4563, "Evacuator", beside the list
// of the KEP of 2026. It is read once, when the eviction request controller writes
// status.targetInterceptors: later changes do not reach a request that has begun.
const (
	// EvictionInterceptorAnnotationPrefix and the name of an interceptor are the key of
	// the pod annotation that registers that interceptor. The key of an annotation has
	// 63 characters after its domain, so the name has 54 at most here; longer ones stand
	// in spec.evictionInterceptors only.
	//
	// Written by the interceptor, or by whoever writes the pod. A pod has at most 15
	// interceptors, those of spec.evictionInterceptors included. A name that stands in
	// both counts once, at its place in the spec. Pods with a schedulingGroup cannot
	// have any.
	EvictionInterceptorAnnotationPrefix = "interceptor.evictionrequest.coordination.k8s.io/priority_"

	// EvictionInterceptorMaxPriority is the highest priority; the lowest is 0. Those with
	// a higher priority get their turn earlier, those of the same one by their names. All
	// of them come after those of spec.evictionInterceptors.
	EvictionInterceptorMaxPriority = 100000

	// EvictionInterceptorControllerPriority is the priority of the controller of the pod.
	EvictionInterceptorControllerPriority = 10000

	// EvictionInterceptorControllerRole is the role of the controller that made the pod,
	// and can replace it. At most one interceptor of a pod has it, with
	// EvictionInterceptorControllerPriority. Every other role is a hint for people and
	// for other interceptors, without an effect.
	EvictionInterceptorControllerRole = "controller"
)
