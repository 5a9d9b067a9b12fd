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

// maxDisruptedPods is how many unconfirmed evictions a budget may have before the pods/eviction
// subresource refuses more (MaxDisruptedPodSize in its code).
const maxDisruptedPods = 2000

// allowance is whether a budget seems to allow evictions now. It applies the rules of the
// pods/eviction subresource to cached objects. It decides when to retry a refused eviction, never
// whether a pod may be evicted.
type allowance struct {
	healthy, unhealthy bool
}

// allowanceOf returns the allowance of a budget after the given number of evictions.
func allowanceOf(budget *policyv1.PodDisruptionBudget, used int) allowance {
	counted := budget.Status.ObservedGeneration >= budget.Generation && len(budget.Status.DisruptedPods) <= maxDisruptedPods
	disruptions := counted && int(budget.Status.DisruptionsAllowed) > used
	policy := budget.Spec.UnhealthyPodEvictionPolicy
	unhealthy := policy != nil && *policy == policyv1.AlwaysAllow ||
		budget.Status.DesiredHealthy > 0 && budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy
	return allowance{healthy: disruptions, unhealthy: disruptions || unhealthy}
}

// allows reports whether the budget seems to allow the eviction of a pod.
func (r allowance) allows(healthy bool) bool {
	if healthy {
		return r.healthy
	}
	return r.unhealthy
}

// applicable returns the budgets that the eviction of the pod has to respect. The pods/eviction
// subresource checks no budget for a pod that is not running.
func applicable(pod *v1.Pod, budgets []*policyv1.PodDisruptionBudget) []*policyv1.PodDisruptionBudget {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == v1.PodPending || podutil.IsPodPhaseTerminal(pod.Status.Phase) {
		return nil
	}
	return budgets
}

// budgetsAllow reports whether the budgets that select a pod seem to allow its eviction.
func budgetsAllow(pod *v1.Pod, budgets []*policyv1.PodDisruptionBudget) bool {
	switch applicable := applicable(pod, budgets); len(applicable) {
	case 0:
		return true
	case 1:
		return allowanceOf(applicable[0], 0).allows(podutil.IsPodReady(pod))
	default:
		return false // The subresource refuses to evict a pod that has several budgets.
	}
}
