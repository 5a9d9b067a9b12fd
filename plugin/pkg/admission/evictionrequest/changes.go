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
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// targetOf returns the pod that the request is about. A request without one, which
// validation does not let in, is about all pods: rights on a single one do not do.
func targetOf(request *coordination.EvictionRequest) coordination.LocalPodReference {
	if request.Spec.Target.Pod == nil {
		return coordination.LocalPodReference{}
	}
	return *request.Spec.Target.Pod
}

// isFinished says whether the request will do nothing more.
func isFinished(request *coordination.EvictionRequest) bool {
	return isEvicted(request) || meta.IsStatusConditionTrue(request.Status.Conditions, string(coordination.EvictionRequestConditionCanceled))
}

func isEvicted(request *coordination.EvictionRequest) bool {
	return meta.IsStatusConditionTrue(request.Status.Conditions, string(coordination.EvictionRequestConditionEvicted))
}

// isHousekeeping reports whether an update changes nothing that an eviction depends on:
// at most it lets go of finalizers and owners, as garbage collection does, and those who
// wait for the deletion of a request. What is added is different. An owner that does not
// exist has the garbage collector delete the request, with all its rights; a finalizer
// that nobody removes keeps a canceled one, whose name no other request for the pod can
// have. Nor may it change who has applied what, see keepsAppliers.
func isHousekeeping(request, old *coordination.EvictionRequest) bool {
	return onlyLetsGo(request, old) && keepsAppliers(request, old, nil)
}

// onlyLetsGo reports whether an update changes nothing but finalizers and owners, which
// it removes, and what the API server itself writes.
func onlyLetsGo(request, old *coordination.EvictionRequest) bool {
	return apiequality.Semantic.DeepEqual(withoutHousekeeping(request), withoutHousekeeping(old)) &&
		!addsOwner(request, old) && !addsFinalizer(request, old)
}

func addsOwner(request, old *coordination.EvictionRequest) bool {
	return slices.ContainsFunc(request.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return !slices.ContainsFunc(old.OwnerReferences, func(oldOwner metav1.OwnerReference) bool { return isSameOwner(owner, oldOwner) })
	})
}

func addsFinalizer(request, old *coordination.EvictionRequest) bool {
	return slices.ContainsFunc(request.Finalizers, func(finalizer string) bool { return !slices.Contains(old.Finalizers, finalizer) })
}

// isSameOwner ignores whether the owner waits, which the garbage collector resets.
func isSameOwner(owner, other metav1.OwnerReference) bool {
	owner.BlockOwnerDeletion, other.BlockOwnerDeletion = nil, nil
	return apiequality.Semantic.DeepEqual(owner, other)
}

// changesLabelsOnly reports whether labels are all that an update changes, apart from
// housekeeping. Whoever applied a label that changes does not own it any more.
func changesLabelsOnly(request, old *coordination.EvictionRequest) bool {
	relabeled := request.DeepCopy()
	relabeled.Labels = old.Labels
	return onlyLetsGo(relabeled, old) && keepsAppliers(request, old, changedLabels(request.Labels, old.Labels))
}

// withoutHousekeeping returns a copy that has only what evictions depend on.
func withoutHousekeeping(request *coordination.EvictionRequest) *coordination.EvictionRequest {
	request = request.DeepCopy()
	request.Finalizers, request.OwnerReferences = nil, nil
	// What the API server itself writes in every update; but see keepsAppliers.
	request.ManagedFields, request.ResourceVersion = nil, ""
	return request
}

// followsLabels says whether each label that changes becomes what it is on the pod.
func followsLabels(labels, oldLabels, podLabels map[string]string) bool {
	for key := range changedLabels(labels, oldLabels) {
		if !sameLabel(key, labels, podLabels) {
			return false
		}
	}
	return true
}

// changedLabels returns the keys of the labels that one of them lacks, or that differ.
func changedLabels(labels, oldLabels map[string]string) sets.Set[string] {
	keys := sets.KeySet(labels).Union(sets.KeySet(oldLabels))
	for key := range keys {
		if sameLabel(key, labels, oldLabels) {
			keys.Delete(key)
		}
	}
	return keys
}

// sameLabel says whether both have the label with the same value, or both lack it.
func sameLabel(key string, labels, others map[string]string) bool {
	value, found := labels[key]
	otherValue, otherFound := others[key]
	return found == otherFound && value == otherValue
}
