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

package evictionpacing

import (
	"testing"

	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSamePermission verifies which changes of a budget workloads have to hear of.
func TestSamePermission(t *testing.T) {
	budget := func(changes ...func(*policy.PodDisruptionBudget)) *policy.PodDisruptionBudget {
		b := &policy.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "budget", UID: "uid", Generation: 1},
			Status:     policy.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 3, DesiredHealthy: 2, CurrentHealthy: 3, DisruptionsAllowed: 1},
		}
		for _, change := range changes {
			change(b)
		}
		return b
	}
	for name, test := range map[string]struct {
		change func(*policy.PodDisruptionBudget)
		want   bool
	}{
		"a pod was evicted":         {func(b *policy.PodDisruptionBudget) { b.Status.CurrentHealthy, b.Status.DisruptionsAllowed = 2, 0 }, true},
		"it permits more":           {func(b *policy.PodDisruptionBudget) { b.Status.DesiredHealthy = 1 }, false},
		"its selector has changed":  {func(b *policy.PodDisruptionBudget) { b.Generation, b.Status.ObservedGeneration = 2, 2 }, false},
		"it was created again":      {func(b *policy.PodDisruptionBudget) { b.UID = "next" }, false}, // Maybe with another selector.
		"it cannot be computed now": {func(b *policy.PodDisruptionBudget) { b.Status.Conditions = syncFailed }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := SamePermission(budget(), budget(test.change)); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

var syncFailed = []metav1.Condition{{Type: policy.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policy.SyncFailedReason}}
