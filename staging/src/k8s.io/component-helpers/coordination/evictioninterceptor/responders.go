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
	"cmp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// ResponderControllerPriority is the priority that the controller of a pod has as a responder: others register before or
// after it (v1.EvictionResponder).
const ResponderControllerPriority = 10000

// CompareResponders orders responders of lifecycle.k8s.io: the highest priority is first; those of the same one are
// ordered by the labels of their domains, beginning with the top one, and then by their keys.
func CompareResponders(nameA string, priorityA *int32, nameB string, priorityB *int32) int {
	domainA, keyA, _ := strings.Cut(nameA, "/")
	domainB, keyB, _ := strings.Cut(nameB, "/")
	labelsA, labelsB := strings.Split(domainA, "."), strings.Split(domainB, ".")
	slices.Reverse(labelsA)
	slices.Reverse(labelsB)
	return cmp.Or(cmp.Compare(ptr.Deref(priorityB, -1), ptr.Deref(priorityA, -1)), slices.Compare(labelsA, labelsB), cmp.Compare(keyA, keyB))
}

// respondersOf returns the responders of the pod.
func respondersOf(pod *v1.Pod) responders {
	sorted := slices.Clone(pod.Spec.EvictionResponders)
	slices.SortStableFunc(sorted, func(a, b v1.EvictionResponder) int {
		return CompareResponders(a.Name, a.Priority, b.Name, b.Priority)
	})
	var found responders
	for _, responder := range sorted {
		if ptr.Deref(responder.Priority, 0) > ResponderControllerPriority {
			found.before = append(found.before, responder.Name)
		} else {
			found.after = append(found.after, responder.Name)
		}
	}
	return found
}
