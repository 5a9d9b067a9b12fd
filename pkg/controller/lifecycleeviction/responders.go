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

package lifecycleeviction

import (
	"slices"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/utils/ptr"
)

// imperativePriority is the priority of the responder that evicts the pod through the API. Kubernetes fixes it.
const imperativePriority = 100

// respondersOf returns the responders of a pod in the order in which they become active, with the last one, which
// evicts the pod. If the pod is gone (nil), nobody knows them any more but an Eviction that lists them, and only the last one
// can have its turn.
func respondersOf(pod *v1.Pod) []lifecyclev1alpha1.TargetResponder {
	var responders []lifecyclev1alpha1.TargetResponder
	if pod != nil {
		for _, responder := range pod.Spec.EvictionResponders {
			responders = append(responders, lifecyclev1alpha1.TargetResponder{Name: responder.Name, Priority: responder.Priority})
		}
	}
	responders = append(responders, lifecyclev1alpha1.TargetResponder{
		Name: lifecyclev1alpha1.EvictionResponderImperativeEviction, Priority: ptr.To[int32](imperativePriority),
	})
	sortResponders(responders)
	return responders
}

func sortResponders(responders []lifecyclev1alpha1.TargetResponder) {
	slices.SortStableFunc(responders, func(a, b lifecyclev1alpha1.TargetResponder) int {
		return evictioninterceptor.CompareResponders(a.Name, a.Priority, b.Name, b.Priority)
	})
}

// interceptorOf returns the name under which a responder is an interceptor.
func interceptorOf(responder string) string {
	if responder == lifecyclev1alpha1.EvictionResponderImperativeEviction {
		return coordinationv1alpha1.EvictionInterceptorImperative
	}
	return responder
}

// participantOf returns the name of a requester in the form domain/key, which the group requires: those of
// spec.requesters may be domains, of which the first label becomes the key.
func participantOf(requester string) string {
	if strings.Contains(requester, "/") {
		return requester
	}
	key, domain, _ := strings.Cut(requester, ".")
	return domain + "/" + key
}
