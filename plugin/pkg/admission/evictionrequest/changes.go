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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/plugin/pkg/admission/internal/owners"
)

// targetOf returns the target pod of the request. A request without a target, which validation
// rejects, is treated as one for all pods: permission on a single pod is not sufficient.
func targetOf(request *coordination.EvictionRequest) coordination.LocalPodReference {
	if request.Spec.Target.Pod == nil {
		return coordination.LocalPodReference{}
	}
	return *request.Spec.Target.Pod
}

func isFinished(request *coordination.EvictionRequest) bool {
	return evictionrequesttools.IsFinished(request.Status.Conditions)
}

func isEvicted(request *coordination.EvictionRequest) bool {
	return meta.IsStatusConditionTrue(request.Status.Conditions, string(coordination.EvictionRequestConditionEvicted))
}

// isHousekeeping reports whether an update changes nothing that an eviction depends on: it may only
// remove finalizers and owners, like the garbage collector or clients that wait for the deletion of
// a request. Adding them is different. For an owner that does not exist, the garbage collector
// deletes the request with its own permissions. A finalizer that is never removed keeps a canceled
// request, and blocks its name for the next request for the pod. The update must not change field
// ownership either, see keepsFieldOwners.
func isHousekeeping(request, old *coordination.EvictionRequest) bool {
	return onlyRemovesMetadata(request, old) && keepsFieldOwners(request, old, nil)
}

// onlyRemovesMetadata reports whether an update only removes finalizers and owners, apart from the
// fields that the API server itself writes.
func onlyRemovesMetadata(request, old *coordination.EvictionRequest) bool {
	return apiequality.Semantic.DeepEqual(withoutHousekeeping(request), withoutHousekeeping(old)) &&
		!owners.AddsOwner(request, old) && !addsFinalizer(request, old)
}

func addsFinalizer(request, old *coordination.EvictionRequest) bool {
	return slices.ContainsFunc(request.Finalizers, func(finalizer string) bool { return !slices.Contains(old.Finalizers, finalizer) })
}

// changesLabelsOnly reports whether an update changes nothing but labels, apart from housekeeping.
// A manager that applied a changed label no longer owns it.
func changesLabelsOnly(request, old *coordination.EvictionRequest) bool {
	relabeled := request.DeepCopy()
	relabeled.Labels = old.Labels
	return onlyRemovesMetadata(relabeled, old) && keepsFieldOwners(request, old, changedLabels(request.Labels, old.Labels))
}

// withoutHousekeeping returns a copy with only the fields that evictions depend on.
func withoutHousekeeping(request *coordination.EvictionRequest) *coordination.EvictionRequest {
	request = request.DeepCopy()
	request.Finalizers, request.OwnerReferences = nil, nil
	// The API server itself writes these in each update; see also keepsFieldOwners.
	request.ManagedFields, request.ResourceVersion = nil, ""
	delete(request.Annotations, coordinationv1alpha1.EvictionWithdrawnByAnnotation)
	return request
}

// matchesPodLabels reports whether each changed label has the value that it has on the pod.
func matchesPodLabels(labels, oldLabels, podLabels map[string]string) bool {
	for key := range changedLabels(labels, oldLabels) {
		if !sameLabel(key, labels, podLabels) {
			return false
		}
	}
	return true
}

// changedLabels returns the keys of the labels that differ.
func changedLabels(labels, oldLabels map[string]string) sets.Set[string] {
	keys := sets.KeySet(labels).Union(sets.KeySet(oldLabels))
	for key := range keys {
		if sameLabel(key, labels, oldLabels) {
			keys.Delete(key)
		}
	}
	return keys
}

// sameLabel reports whether both have the label with the same value, or neither has it.
func sameLabel(key string, labels, others map[string]string) bool {
	value, found := labels[key]
	otherValue, otherFound := others[key]
	return found == otherFound && value == otherValue
}
