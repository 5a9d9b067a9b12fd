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
	"k8s.io/component-helpers/apps/poddisruptionbudget"
)

// refusalOf says why the API server would not evict the pod now, under the budgets that select it;
// empty if it would.
func refusalOf(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) string {
	applicable := poddisruptionbudget.Applicable(pod, budgets)
	switch {
	case poddisruptionbudget.AllowEviction(pod, isReady(pod), budgets):
		return ""
	case len(applicable) > 1:
		return fmt.Sprintf("%d PodDisruptionBudgets select it, and the API server does not evict such pods: %s", len(applicable), strings.Join(budgetNames(applicable), ", "))
	}
	budget := applicable[0]
	name, status := budget.Namespace+"/"+budget.Name, &budget.Status
	why := poddisruptionbudget.WhyNever(budget)
	switch {
	case why != "":
		return fmt.Sprintf("PodDisruptionBudget %s %s", name, why)
	case status.ObservedGeneration < budget.Generation:
		return fmt.Sprintf("PodDisruptionBudget %s is not processed yet", name)
	}
	text := fmt.Sprintf("PodDisruptionBudget %s allows no disruption: %d of %d healthy pods are needed", name, status.DesiredHealthy, status.CurrentHealthy)
	if !isReady(pod) { // With the policy, it would not be refused.
		text += "; the pod is not ready: unhealthyPodEvictionPolicy AlwaysAllow lets such pods go"
	}
	return text
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func budgetNames(budgets []*policyv1.PodDisruptionBudget) []string {
	var names []string
	for _, budget := range budgets {
		names = append(names, budget.Namespace+"/"+budget.Name)
	}
	return names
}
