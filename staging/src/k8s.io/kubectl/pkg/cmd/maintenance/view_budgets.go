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
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// refusalOf says why the API server would not evict the pod now, under the budgets that select it;
// empty if it would. It checks the same conditions in the same order as the API server.
func refusalOf(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) string {
	if len(budgets) == 0 || ignoresBudgets(pod) {
		return ""
	}
	if len(budgets) > 1 {
		return fmt.Sprintf("%d PodDisruptionBudgets select it, and the API server does not evict such pods: %s", len(budgets), strings.Join(budgetNames(budgets), ", "))
	}
	budget := budgets[0]
	name, status := budget.Namespace+"/"+budget.Name, &budget.Status
	switch {
	case !isReady(pod) && mayEvictUnready(budget):
		return ""
	case status.ObservedGeneration < budget.Generation:
		return fmt.Sprintf("PodDisruptionBudget %s is not processed yet", name)
	case status.DisruptionsAllowed > 0:
		return ""
	}
	return fmt.Sprintf("PodDisruptionBudget %s allows no disruption: %d of %d healthy pods are needed", name, status.DesiredHealthy, status.CurrentHealthy)
}

// ignoresBudgets reports whether the eviction of the pod disrupts nothing.
func ignoresBudgets(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodPending || pod.DeletionTimestamp != nil
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// mayEvictUnready reports whether the budget allows the eviction of pods that are not ready.
func mayEvictUnready(budget *policyv1.PodDisruptionBudget) bool {
	if policy := budget.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
		return true
	}
	return budget.Status.DesiredHealthy > 0 && budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy
}

func budgetNames(budgets []*policyv1.PodDisruptionBudget) []string {
	var names []string
	for _, budget := range budgets {
		names = append(names, budget.Namespace+"/"+budget.Name)
	}
	return names
}
