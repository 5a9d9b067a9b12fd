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

// Package owners compares the owners of objects.
package owners

import (
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddsOwner reports whether an update adds an owner, whose deletion would delete the object as
// well, with the permissions of the garbage collector.
func AddsOwner(object, old metav1.Object) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return !slices.ContainsFunc(old.GetOwnerReferences(), func(oldOwner metav1.OwnerReference) bool { return isSame(owner, oldOwner) })
	})
}

// isSame ignores blockOwnerDeletion, which the garbage collector resets.
func isSame(owner, other metav1.OwnerReference) bool {
	owner.BlockOwnerDeletion, other.BlockOwnerDeletion = nil, nil
	return apiequality.Semantic.DeepEqual(owner, other)
}
