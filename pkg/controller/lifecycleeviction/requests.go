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
	"cmp"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// maxWanted is how many requesters of the group a request of the other one gets: it has 90 places for all, and one more
// does not change what becomes of the pod.
const maxWanted = 50

// wantedBy returns the requesters of a pod that have not withdrawn: the names in the EvictionRequests of the group, of
// many those of the oldest ones.
func wantedBy(requests []*lifecyclev1alpha1.EvictionRequest) sets.Set[string] {
	requests = slices.SortedFunc(slices.Values(requests), func(a, b *lifecyclev1alpha1.EvictionRequest) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	wanted := sets.New[string]()
	for _, request := range requests {
		if len(wanted) == maxWanted {
			break
		}
		if isOver(request) {
			continue
		}
		if request.Spec.Intent == lifecyclev1alpha1.EvictionRequestIntentEviction && request.DeletionTimestamp == nil {
			wanted.Insert(request.Spec.Requester)
		}
	}
	return wanted
}

// isOver reports whether a request has an end that is final: the pod is gone, or it was never valid.
func isOver(request *lifecyclev1alpha1.EvictionRequest) bool {
	failed := meta.FindStatusCondition(request.Status.Conditions, string(lifecyclev1alpha1.EvictionConditionFailed))
	return meta.IsStatusConditionTrue(request.Status.Conditions, string(lifecyclev1alpha1.EvictionConditionTargetEvicted)) ||
		failed != nil && failed.Status == metav1.ConditionTrue && failed.Reason == string(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid)
}

// requestersOf returns the requesters of a pod for the status of its Eviction: those of the group, and those of the
// request, which may have come by the other one. Requesters that have withdrawn stay, as long as there is room.
func requestersOf(known []lifecyclev1alpha1.Requester, wanted sets.Set[string], request *coordinationv1alpha1.EvictionRequest) []lifecyclev1alpha1.Requester {
	wanted = wanted.Clone()
	if request != nil {
		for _, requester := range request.Spec.Requesters {
			wanted.Insert(participantOf(requester.Name))
		}
	}
	names := wanted.Clone()
	for _, requester := range known {
		names.Insert(requester.Name)
	}
	var requesters []lifecyclev1alpha1.Requester
	for _, name := range sets.List(names) {
		intent := lifecyclev1alpha1.RequesterIntentWithdrawn
		if wanted.Has(name) {
			intent = lifecyclev1alpha1.RequesterIntentEviction
		}
		requesters = append(requesters, lifecyclev1alpha1.Requester{Name: name, Intent: intent})
	}
	if len(requesters) > maxRequesters {
		slices.SortStableFunc(requesters, func(a, b lifecyclev1alpha1.Requester) int { return cmp.Compare(a.Intent, b.Intent) })
		requesters = requesters[:maxRequesters]
	}
	return requesters
}

// presentOf returns the requesters that have an EvictionRequest of the group, also a withdrawn one, or an entry in the
// request of the other one.
func presentOf(requesters []lifecyclev1alpha1.Requester, requests []*lifecyclev1alpha1.EvictionRequest, request *coordinationv1alpha1.EvictionRequest) []lifecyclev1alpha1.Requester {
	present := sets.New[string]()
	for _, r := range requests {
		present.Insert(r.Spec.Requester)
	}
	if request != nil {
		for _, requester := range request.Spec.Requesters {
			present.Insert(participantOf(requester.Name))
		}
	}
	var found []lifecyclev1alpha1.Requester
	for _, requester := range requesters {
		if present.Has(requester.Name) {
			found = append(found, requester)
			present.Delete(requester.Name)
		}
	}
	for _, name := range sets.List(present) {
		if len(found) < maxRequesters {
			found = append(found, lifecyclev1alpha1.Requester{Name: name})
		}
	}
	return found
}

// labelsOf returns the labels by which participants find an Eviction: their names, with their roles.
func labelsOf(requesters []lifecyclev1alpha1.Requester, pod *v1.Pod) map[string]string {
	labels := map[string]string{}
	for _, requester := range requesters {
		labels[requester.Name] = string(lifecyclev1alpha1.EvictionParticipantRoleRequester)
	}
	for _, responder := range respondersOf(pod) {
		role := lifecyclev1alpha1.EvictionParticipantRoleResponder
		if _, both := labels[responder.Name]; both {
			role = lifecyclev1alpha1.EvictionParticipantRoleRequesterResponder
		}
		labels[responder.Name] = string(role)
	}
	return labels
}

// ownersOf returns who an Eviction goes with: the EvictionRequests of the group, and the request of the other one if it
// has further requesters: then the eviction goes on without the former.
func ownersOf(requests []*lifecyclev1alpha1.EvictionRequest, wanted sets.Set[string], request *coordinationv1alpha1.EvictionRequest) []metav1.OwnerReference {
	var owners []metav1.OwnerReference
	for _, r := range requests {
		owners = append(owners, metav1.OwnerReference{APIVersion: lifecyclev1alpha1.SchemeGroupVersion.String(), Kind: "EvictionRequest", Name: r.Name, UID: r.UID})
	}
	if request != nil && (len(owners) == 0 || slices.ContainsFunc(request.Spec.Requesters, func(r coordinationv1alpha1.Requester) bool { return !wanted.Has(r.Name) })) {
		owners = append(owners, metav1.OwnerReference{APIVersion: coordinationv1alpha1.SchemeGroupVersion.String(), Kind: "EvictionRequest", Name: request.Name, UID: request.UID})
	}
	slices.SortFunc(owners, func(a, b metav1.OwnerReference) int { return cmp.Compare(a.UID, b.UID) })
	return owners[:min(len(owners), maxRequesters)]
}

// nextRequestStatus returns the status of an EvictionRequest of the group: the conditions are those of the Eviction.
func nextRequestStatus(request *lifecyclev1alpha1.EvictionRequest, conditions []metav1.Condition, now time.Time) *lifecyclev1alpha1.EvictionRequestStatus {
	status := request.Status.DeepCopy()
	status.ObservedGeneration = ptr.To(request.Generation)
	if isOver(request) {
		return status
	}
	for _, conditionType := range []lifecyclev1alpha1.EvictionConditionType{lifecyclev1alpha1.EvictionConditionTargetEvicted, lifecyclev1alpha1.EvictionConditionFailed} {
		if found := meta.FindStatusCondition(conditions, string(conditionType)); found != nil {
			condition := *found
			condition.ObservedGeneration, condition.LastTransitionTime = request.Generation, metav1.NewTime(now)
			meta.SetStatusCondition(&status.Conditions, condition)
		}
	}
	return status
}
