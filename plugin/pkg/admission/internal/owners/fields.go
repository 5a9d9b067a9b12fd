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

package owners

import (
	"bytes"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// applier is a field manager that has applied fields to the main resource.
type applier struct{ manager, apiVersion string }

// KeepsAppliers reports whether an update leaves the appliers of those fields unchanged for which
// matters returns true. Clients can claim any manager, also in managedFields. A manager that applies again
// without a field that it owns removes the field. So a field that is assigned to another manager is
// removed when that manager applies the next time, with the permissions of that manager.
//
// Fields that were updated and not applied, and the status, cannot be removed in this way. The time
// of an entry is irrelevant.
func KeepsAppliers(object, old metav1.Object, matters func(fieldpath.Path) bool) bool {
	fields, err := appliedFields(object, matters)
	if err != nil {
		return false
	}
	oldFields, err := appliedFields(old, matters)
	if err != nil {
		return false
	}
	return maps.EqualFunc(fields, oldFields, func(a, b *fieldpath.Set) bool { return a.Equals(b) })
}

// appliedFields returns the fields that matter and that each applier owns. An applier that owns none of
// them is left out.
func appliedFields(object metav1.Object, matters func(fieldpath.Path) bool) (map[applier]*fieldpath.Set, error) {
	owned := map[applier]*fieldpath.Set{}
	for _, entry := range object.GetManagedFields() {
		if entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var fields fieldpath.Set
		if err := fields.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			return nil, err
		}
		key := applier{entry.Manager, entry.APIVersion}
		fields.Iterate(func(path fieldpath.Path) {
			if !matters(path) {
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

// IsField reports whether the element i of a path is the field with that name.
func IsField(path fieldpath.Path, i int, name string) bool {
	return len(path) > i && path[i].FieldName != nil && *path[i].FieldName == name
}
