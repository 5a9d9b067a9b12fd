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

// The status of an EvictionRequest has several writers. In addition to update or patch on
// evictionrequests/status, a client needs a permission for the fields that it changes:
//
//	fields                                          permission, in the namespace of the request
//	the entry of an interceptor in                  EvictionInterceptVerb on EvictionInterceptorResource,
//	status.interceptors                             with the name of that interceptor
//	status.evictionRequestCancellationPolicy        the same, with the name of the active interceptor
//	conditions with a type of an interceptor's own  the same, with the name of that interceptor
//	the condition InterceptorsSkipped, set to True  EvictionRequestEscalateVerb on evictionrequests/status
//	all others; entries that are added or removed   EvictionRequestControlVerb on evictionrequests/status,
//	                                                in all namespaces
//
// EvictionRequestControlVerb permits changing every field. It is for controllers only.
const (
	// EvictionInterceptorResource is a virtual resource of the API group
	// coordination.k8s.io, like signers of certificates.k8s.io: no objects of it are
	// served. It exists in authorization only, where its resource names are the names of
	// interceptors.
	EvictionInterceptorResource = "evictioninterceptors"

	// EvictionInterceptVerb permits reporting as an interceptor. Without resource names, it
	// permits reporting as any interceptor. For names in the domain k8s.io it counts only if it is
	// granted in all namespaces.
	EvictionInterceptVerb = "intercept"

	// EvictionRequestControlVerb, on evictionrequests/status, permits changing every field of the
	// status: activating interceptors and finishing a request. It counts only if it is granted in all
	// namespaces.
	EvictionRequestControlVerb = "control"
)

// Everybody who may delete a pod may request its eviction, and withdraw the request: requesters are
// equal. Those whose names are in the domain k8s.io are not: an administrator's drain must neither be
// kept out by a full list, nor be called off by who owns the pod. In addition to the permission to
// delete the pod, adding or removing such a name, and deleting an unfinished request that has one, need
// EvictionRequestVerb on EvictionRequesterResource with that name, in all namespaces.
const (
	// EvictionRequesterResource is a virtual resource of the API group coordination.k8s.io, whose
	// resource names are the names of requesters in the domain k8s.io. See
	// EvictionInterceptorResource.
	EvictionRequesterResource = "evictionrequesters"

	// EvictionRequestVerb permits requesting evictions under that name, and withdrawing them.
	// Without resource names, it permits all names. It counts only if it is granted in all
	// namespaces, except that a caller of pods/eviction needs it in the namespace of the pod: see
	// EvictionRequestAtOnceAnnotation.
	EvictionRequestVerb = "request"

	// EvictionWithdrawnByAnnotation, of an EvictionRequest, is the name of the user who has last
	// removed a requester, of which it keeps 253 bytes. Written by kube-apiserver; what clients
	// send is ignored. Who requests the eviction again learns from it who does not want that.
	EvictionWithdrawnByAnnotation = "coordination.k8s.io/eviction-withdrawn-by"
)
