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
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

const (
	ownsDrainer   = `{"f:spec":{"f:requesters":{"k:{\"name\":\"drain.example.com\"}":{".":{},"f:name":{}}}}}`
	ownsOther     = `{"f:spec":{"f:requesters":{"k:{\"name\":\"other.example.com\"}":{".":{},"f:name":{}}}}}`
	ownsSpec      = `{"f:spec":{}}`
	ownsApp       = `{"f:metadata":{"f:labels":{"f:app":{}}}}`
	ownsAppTier   = `{"f:metadata":{"f:labels":{"f:app":{},"f:tier":{}}}}`
	ownsAllLabels = `{"f:metadata":{"f:labels":{}}}`
	ownsMetadata  = `{"f:metadata":{}}`
	ownsFinalizer = `{"f:metadata":{"f:finalizers":{"v:\"a/b\"":{}}}}`
	ownsBoth      = `{"f:metadata":{"f:finalizers":{"v:\"a/b\"":{}}},"f:spec":{"f:requesters":{"k:{\"name\":\"drain.example.com\"}":{".":{},"f:name":{}}}}}`
)

type entryOption func(*metav1.ManagedFieldsEntry)

// applied returns the managed fields of a manager that has applied these fields.
func applied(manager, fields string, options ...entryOption) metav1.ManagedFieldsEntry {
	entry := metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "coordination.k8s.io/v1alpha1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
	for _, option := range options {
		option(&entry)
	}
	return entry
}

func asUpdate(entry *metav1.ManagedFieldsEntry) {
	entry.Operation = metav1.ManagedFieldsOperationUpdate
}

func ofStatus(entry *metav1.ManagedFieldsEntry) { entry.Subresource = "status" }

func ofVersion(version string) entryOption {
	return func(entry *metav1.ManagedFieldsEntry) { entry.APIVersion = version }
}

func atTime(entry *metav1.ManagedFieldsEntry) {
	entry.Time = &metav1.Time{Time: time.Unix(1, 0)}
}

func withoutFields(entry *metav1.ManagedFieldsEntry) { entry.FieldsV1 = nil }

func withManagers(entries ...metav1.ManagedFieldsEntry) option {
	return func(request *coordination.EvictionRequest) { request.ManagedFields = entries }
}

// A manager that has applied a requester removes it by applying without it. So a change of the
// managers or of their fields could remove a requester with the permissions of another user.
func TestFieldOwnershipChange(t *testing.T) {
	drainer := applied("drain", ownsDrainer)
	labelled := func(value string) option { return withLabels(map[string]string{"app": value}) }
	tests := map[string]struct {
		request, old *coordination.EvictionRequest
		denied       bool
	}{
		"unchanged":                          {old: newRequest(withManagers(drainer)), request: newRequest(withManagers(drainer))},
		"other time":                         {old: newRequest(withManagers(drainer)), request: newRequest(withManagers(applied("drain", ownsDrainer, atTime)))},
		"other order":                        {old: newRequest(withManagers(drainer, applied("b", ownsApp))), request: newRequest(withManagers(applied("b", ownsApp), drainer))},
		"an update by another manager":       {old: newRequest(withManagers(drainer)), request: newRequest(withManagers(drainer, applied("b", ownsFinalizer, asUpdate)))},
		"a report":                           {old: newRequest(withManagers(drainer)), request: newRequest(withManagers(drainer, applied("b", `{"f:status":{}}`, ofStatus)))},
		"a finalizer is removed":             {old: newRequest(withManagers(applied("drain", ownsBoth))), request: newRequest(withManagers(drainer))},
		"the only finalizer is removed":      {old: newRequest(withManagers(drainer, applied("b", ownsFinalizer))), request: newRequest(withManagers(drainer))},
		"an entry without fields":            {old: newRequest(withManagers(drainer)), request: newRequest(withManagers(drainer, applied("b", "", withoutFields)))},
		"renamed":                            {old: newRequest(withManagers(drainer)), request: newRequest(withManagers(applied("other", ownsDrainer))), denied: true},
		"added":                              {old: newRequest(), request: newRequest(withManagers(drainer)), denied: true},
		"removed":                            {old: newRequest(withManagers(drainer)), request: newRequest(withManagers()), denied: true},
		"second owner":                       {old: newRequest(withManagers(drainer)), request: newRequest(withManagers(drainer, applied("other", ownsDrainer))), denied: true},
		"swapped":                            {old: newRequest(withManagers(drainer, applied("b", ownsOther))), request: newRequest(withManagers(applied("drain", ownsOther), applied("b", ownsDrainer))), denied: true},
		"no longer applied":                  {old: newRequest(withManagers(drainer)), request: newRequest(withManagers(applied("drain", ownsDrainer, asUpdate))), denied: true},
		"now applied":                        {old: newRequest(withManagers(applied("drain", ownsDrainer, asUpdate))), request: newRequest(withManagers(drainer)), denied: true},
		"moved to the status":                {old: newRequest(withManagers(drainer)), request: newRequest(withManagers(applied("drain", ownsDrainer, ofStatus))), denied: true},
		"other version":                      {old: newRequest(withManagers(drainer)), request: newRequest(withManagers(applied("drain", ownsDrainer, ofVersion("v1")))), denied: true},
		"other fields":                       {old: newRequest(withManagers(drainer)), request: newRequest(withManagers(applied("drain", ownsOther))), denied: true},
		"the whole spec":                     {old: newRequest(), request: newRequest(withManagers(applied("b", ownsSpec))), denied: true},
		"all labels":                         {old: newRequest(), request: newRequest(withManagers(applied("b", ownsAllLabels))), denied: true},
		"all metadata":                       {old: newRequest(), request: newRequest(withManagers(applied("b", ownsMetadata))), denied: true},
		"a label":                            {old: newRequest(), request: newRequest(withManagers(applied("b", ownsApp))), denied: true},
		"fields that cannot be read":         {old: newRequest(), request: newRequest(withManagers(applied("b", `{"x":{}}`))), denied: true},
		"renamed, with a label of the pod":   {old: newRequest(withManagers(drainer), labelled("old")), request: newRequest(withManagers(applied("other", ownsDrainer)), labelled("web")), denied: true},
		"owner of the changed label":         {old: newRequest(withManagers(applied("b", ownsApp)), labelled("old")), request: newRequest(withManagers(), labelled("web"))},
		"owner of the new label":             {old: newRequest(withManagers()), request: newRequest(withManagers(applied("b", ownsApp)), labelled("web"))},
		"owner of an unchanged label":        {old: newRequest(withManagers(applied("b", ownsAppTier)), labelled("old")), request: newRequest(withManagers(), labelled("web")), denied: true},
		"owner of the only, unchanged label": {old: newRequest(withManagers(applied("b", ownsApp)), labelled("web")), request: newRequest(withManagers(), labelled("web")), denied: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, username := range []string{guest, owner} {
				plugin, _, _ := cluster{pod: newPod(podUID, map[string]string{"app": "web"})}.newPlugin(t, true)
				err := plugin.Validate(t.Context(), attributes(admission.Update, username, "", test.request, test.old), nil)
				if denied := err != nil; denied != (test.denied && username == guest) {
					t.Errorf("update by %s: %v, want denied to guest: %t", username, err, test.denied)
				}
			}
		})
	}
}
