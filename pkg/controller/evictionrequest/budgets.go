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
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// budgetsAllow tells whether the budgets that select a pod seem to allow its eviction
// now. It follows the rules of the pods/eviction subresource, on cached objects: it
// decides when a refused eviction is worth another try, never whether a pod may go.
func budgetsAllow(pod *v1.Pod, budgets []*policyv1.PodDisruptionBudget) bool {
	if pod.DeletionTimestamp != nil || podutil.IsPodPhaseTerminal(pod.Status.Phase) || pod.Status.Phase == v1.PodPending {
		return true
	}
	switch len(budgets) {
	case 0:
		return true
	case 1:
		return budgetAllows(pod, budgets[0])
	default:
		return false // The subresource refuses to choose between two budgets.
	}
}

func budgetAllows(pod *v1.Pod, budget *policyv1.PodDisruptionBudget) bool {
	if !podutil.IsPodReady(pod) {
		if policy := budget.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
			return true
		}
		if budget.Status.DesiredHealthy > 0 && budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy {
			return true
		}
	}
	return budget.Status.ObservedGeneration >= budget.Generation && budget.Status.DisruptionsAllowed > 0
}
