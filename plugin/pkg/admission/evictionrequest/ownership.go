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
	"bytes"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// applier is a field manager that has applied fields to the main resource.
type applier struct{ manager, apiVersion string }

// keepsFieldOwners reports whether the appliers of the fields of the spec and of labels are
// unchanged, except for the labels with these keys. Clients can claim any manager, also in
// managedFields. A manager that applies again without a field that it owns removes the field. So a
// requester that is assigned to another manager is withdrawn when that manager applies the next
// time, with the permissions of that manager.
//
// Fields that were updated and not applied, and the status, cannot be removed in this way. The time
// of an entry is irrelevant.
func keepsFieldOwners(request, old *coordination.EvictionRequest, changedLabels sets.Set[string]) bool {
	fields, err := appliedFields(request, changedLabels)
	if err != nil {
		return false
	}
	oldFields, err := appliedFields(old, changedLabels)
	if err != nil {
		return false
	}
	return maps.EqualFunc(fields, oldFields, func(a, b *fieldpath.Set) bool { return a.Equals(b) })
}

// appliedFields returns the fields of the spec and the labels that each applier owns. An applier
// that owns none of them is left out.
func appliedFields(request *coordination.EvictionRequest, changedLabels sets.Set[string]) (map[applier]*fieldpath.Set, error) {
	owned := map[applier]*fieldpath.Set{}
	for _, entry := range request.ManagedFields {
		if entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var fields fieldpath.Set
		if err := fields.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			return nil, err
		}
		key := applier{entry.Manager, entry.APIVersion}
		fields.Iterate(func(path fieldpath.Path) {
			if !isSpecOrLabel(path, changedLabels) {
				return
			}
			if owned[key] == nil {
				owned[key] = fieldpath.NewSet()
			}
			owned[key].Insert(path)
		})
	}
	return owned, nil
}

// isSpecOrLabel reports whether the field is in the spec, is a label with a key that is not in
// changedLabels, or contains such fields.
func isSpecOrLabel(path fieldpath.Path, changedLabels sets.Set[string]) bool {
	switch {
	case isField(path, 0, "spec"):
		return true
	case !isField(path, 0, "metadata"):
		return false
	case len(path) == 1:
		return true
	case !isField(path, 1, "labels"):
		return false
	}
	return len(path) == 2 || path[2].FieldName == nil || !changedLabels.Has(*path[2].FieldName)
}

func isField(path fieldpath.Path, i int, name string) bool {
	return len(path) > i && path[i].FieldName != nil && *path[i].FieldName == name
}
