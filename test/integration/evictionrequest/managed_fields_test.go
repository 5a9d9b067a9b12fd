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
	"encoding/json"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testForgedManagedFields has users without permission on pods who forge managed fields. A
// requester that is assigned to the manager of another one would be withdrawn when that manager
// applies the next time, with its permissions.
func testForgedManagedFields(t *testing.T, c *cluster) {
	c.grant(guest, allOnRequests())
	c.grant(saverUser, reportRules(first)...)
	pod := c.createPod(newPod("wanted"))
	c.join(pod, drainer)
	before := c.join(pod, scaler)

	var drainerIsScaler []metav1.ManagedFieldsEntry
	for _, entry := range before.ManagedFields {
		if entry.Manager == scaler {
			continue
		}
		if entry.Manager == drainer {
			entry.Manager = scaler
		}
		drainerIsScaler = append(drainerIsScaler, entry)
	}
	for what, forged := range map[string][]metav1.ManagedFieldsEntry{
		"giving the requester to another manager": drainerIsScaler,
		"taking it from all managers":             {{}}, // The API server resets the managed fields.
	} {
		update := before.DeepCopy()
		update.ManagedFields = forged
		_, err := c.requestsOf(guest).Update(t.Context(), update, metav1.UpdateOptions{})
		c.expectDenied(what, pod, err)
		_, err = c.requestsOf(guest).Update(t.Context(), update, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		c.expectDenied(what+", dry run", pod, err)
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": forged}})
		if err != nil {
			t.Fatal(err)
		}
		c.expectDenied(what+" by patch", pod, c.patchAs(guest, pod, string(patch), metav1.PatchOptions{}))
		// The API server uses the stored managed fields here, as the end of this test shows.
		_, err = c.requestsOf(saverUser).UpdateStatus(t.Context(), update, metav1.UpdateOptions{})
		c.expectAllowed(what+" with the status", err)
	}

	after := c.join(pod, scaler)
	if !hasRequester(after, drainer) || !hasRequester(after, scaler) {
		t.Errorf("requesters after %s has applied again: %v", scaler, after.Spec.Requesters)
	}
}

func hasRequester(request *coordinationv1alpha1.EvictionRequest, name string) bool {
	for _, requester := range request.Spec.Requesters {
		if requester.Name == name {
			return true
		}
	}
	return false
}
