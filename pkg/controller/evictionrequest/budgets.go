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

// maxDisruptedPods is how many unconfirmed evictions a budget may have before the
// pods/eviction subresource refuses more (MaxDisruptedPodSize there).
const maxDisruptedPods = 2000

// room is whether a budget seems to allow evictions now. It follows the rules of the
// pods/eviction subresource, on cached objects: it decides when a refused eviction is worth
// another try, never whether a pod may go.
type room struct {
	healthy, unhealthy bool
}

// roomOf returns the room of a budget of which some is used up already.
func roomOf(budget *policyv1.PodDisruptionBudget, used int) room {
	counted := budget.Status.ObservedGeneration >= budget.Generation && len(budget.Status.DisruptedPods) <= maxDisruptedPods
	disruptions := counted && int(budget.Status.DisruptionsAllowed) > used
	policy := budget.Spec.UnhealthyPodEvictionPolicy
	unhealthy := policy != nil && *policy == policyv1.AlwaysAllow ||
		budget.Status.DesiredHealthy > 0 && budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy
	return room{healthy: disruptions, unhealthy: disruptions || unhealthy}
}

// allows reports whether there is room for a pod.
func (r room) allows(healthy bool) bool {
	if healthy {
		return r.healthy
	}
	return r.unhealthy
}

// governing returns those of the pod's budgets that its eviction has to respect. The
// pods/eviction subresource asks no budget about a pod that does not run.
func governing(pod *v1.Pod, budgets []*policyv1.PodDisruptionBudget) []*policyv1.PodDisruptionBudget {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == v1.PodPending || podutil.IsPodPhaseTerminal(pod.Status.Phase) {
		return nil
	}
	return budgets
}

// budgetsAllow reports whether the budgets that select a pod seem to allow its eviction.
func budgetsAllow(pod *v1.Pod, budgets []*policyv1.PodDisruptionBudget) bool {
	switch governing := governing(pod, budgets); len(governing) {
	case 0:
		return true
	case 1:
		return roomOf(governing[0], 0).allows(podutil.IsPodReady(pod))
	default:
		return false // The subresource refuses to choose between two budgets.
	}
}
