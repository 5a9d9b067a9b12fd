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
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/plugin/pkg/admission/internal/owners"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// keepsFieldOwners reports whether the appliers of the fields of the spec and of labels are
// unchanged, except for the labels with these keys: a requester that is assigned to another manager is
// withdrawn when that manager applies the next time. See owners.KeepsAppliers.
func keepsFieldOwners(request, old *coordination.EvictionRequest, changedLabels sets.Set[string]) bool {
	return owners.KeepsAppliers(request, old, func(path fieldpath.Path) bool { return isSpecOrLabel(path, changedLabels) })
}

// isSpecOrLabel reports whether the field is in the spec, is a label with a key that is not in
// changedLabels, or contains such fields.
func isSpecOrLabel(path fieldpath.Path, changedLabels sets.Set[string]) bool {
	switch {
	case owners.IsField(path, 0, "spec"):
		return true
	case !owners.IsField(path, 0, "metadata"):
		return false
	case len(path) == 1:
		return true
	case !owners.IsField(path, 1, "labels"):
		return false
	}
	return len(path) == 2 || path[2].FieldName == nil || !changedLabels.Has(*path[2].FieldName)
}
