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

package maintenance

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRefusalsByBudgets: whether waiting helps is what decides about the remedy.
func TestRefusalsByBudgets(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}, Status: corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}}
	budget := func(change func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 2}}
		budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 3, CurrentHealthy: 2, DesiredHealthy: 2}
		change(budget)
		return budget
	}
	failed := func(status metav1.ConditionStatus, reason, message string) func(*policyv1.PodDisruptionBudget) {
		return func(budget *policyv1.PodDisruptionBudget) {
			budget.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: status, Reason: reason, Message: message}}
			budget.Status.ObservedGeneration, budget.Status.ExpectedPods, budget.Status.CurrentHealthy, budget.Status.DesiredHealthy = 1, 0, 0, 0
		}
	}
	for name, test := range map[string]struct {
		budget *policyv1.PodDisruptionBudget
		want   string
	}{
		"it allows one":   {budget: budget(func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 1 })},
		"none now":        {budget: budget(func(*policyv1.PodDisruptionBudget) {}), want: "allows no disruption: 2 of 2 healthy pods are needed"},
		"never one":       {budget: budget(func(b *policyv1.PodDisruptionBudget) { b.Status.DesiredHealthy = 3 }), want: "never allows a disruption: it needs 3 healthy pods, of 3: lower minAvailable or raise maxUnavailable, or add a pod"},
		"not processed":   {budget: budget(func(b *policyv1.PodDisruptionBudget) { b.Status.ObservedGeneration = 1 }), want: "is not processed yet"},
		"not computed":    {budget: budget(failed(metav1.ConditionFalse, policyv1.SyncFailedReason, "jobs.batch does not implement the scale subresource.")), want: "cannot be computed: jobs.batch does not implement the scale subresource: set minAvailable to a number"},
		"computed before": {budget: budget(failed(metav1.ConditionFalse, policyv1.InsufficientPodsReason, "")), want: "is not processed yet"},
		"a long message":  {budget: budget(failed(metav1.ConditionFalse, policyv1.SyncFailedReason, strings.Repeat("x", 1000))), want: "cannot be computed: xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			got := refusalOf(pod, []*policyv1.PodDisruptionBudget{test.budget})
			if test.want == "" && got != "" || !strings.Contains(got, test.want) || test.want != "" && !strings.HasPrefix(got, "PodDisruptionBudget shop/web ") || len(got) > 400 {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
