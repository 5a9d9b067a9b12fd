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

package poddisruptionbudget

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/plaintext"
)

// The functions of this file apply the rules of the pods/eviction subresource to objects that may
// be out of date. They serve to predict its response, never to decide whether a pod may be evicted.

// maxDisruptedPods is how many unconfirmed evictions a budget may have before the pods/eviction
// subresource refuses more (MaxDisruptedPodSize in its code).
const maxDisruptedPods = 2000

// Allowance is whether a budget seems to allow evictions now.
type Allowance struct {
	Healthy, Unhealthy bool
}

// AllowanceOf returns the allowance of a budget after the given number of evictions.
func AllowanceOf(budget *policy.PodDisruptionBudget, used int) Allowance {
	counted := budget.Status.ObservedGeneration >= budget.Generation && len(budget.Status.DisruptedPods) <= maxDisruptedPods
	disruptions := counted && int(budget.Status.DisruptionsAllowed) > used
	unhealthyPolicy := budget.Spec.UnhealthyPodEvictionPolicy
	unhealthy := unhealthyPolicy != nil && *unhealthyPolicy == policy.AlwaysAllow ||
		budget.Status.DesiredHealthy > 0 && budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy
	return Allowance{Healthy: disruptions, Unhealthy: disruptions || unhealthy}
}

// Allows reports whether the budget seems to allow the eviction of a pod. Budgets count a pod as
// healthy if it is ready.
func (a Allowance) Allows(healthy bool) bool {
	if healthy {
		return a.Healthy
	}
	return a.Unhealthy
}

// Permitted returns how many of its pods a budget permits to be disrupted at a time, whatever is
// disrupted now. known is false while the status does not follow from the spec, or if it cannot be
// computed.
func Permitted(budget *policy.PodDisruptionBudget) (pods int, known bool) {
	if failed, _ := syncFailed(budget); failed || budget.Status.ObservedGeneration == 0 || budget.Status.ObservedGeneration < budget.Generation {
		return 0, false
	}
	return max(int(budget.Status.ExpectedPods-budget.Status.DesiredHealthy), 0), true
}

// syncFailed reports whether the disruption controller cannot compute the status of a budget, and why.
func syncFailed(budget *policy.PodDisruptionBudget) (failed bool, why string) {
	allowed := meta.FindStatusCondition(budget.Status.Conditions, policy.DisruptionAllowedCondition)
	if allowed == nil || allowed.Status == metav1.ConditionTrue || allowed.Reason != policy.SyncFailedReason {
		return false, ""
	}
	return true, allowed.Message
}

// maxReason is how much of the message of a condition is repeated, in bytes.
const maxReason = 200

// WhyNever says why waiting does not help the pods that a budget selects, and what does, in one line that follows
// its name: it cannot be computed, needs as many healthy pods as there are, or expects none. It returns "" if waiting may help,
// or nothing is known yet.
func WhyNever(budget *policy.PodDisruptionBudget) string {
	status := &budget.Status
	failed, why := syncFailed(budget)
	switch {
	case failed: // It counts no pods then.
		return fmt.Sprintf("cannot be computed: %s: set minAvailable to a number, or let it select only pods whose controllers have the subresource scale",
			plaintext.Truncate(plaintext.Line(strings.TrimSuffix(why, ".")), maxReason))
	case status.ObservedGeneration >= budget.Generation && status.ExpectedPods > 0 && status.DesiredHealthy >= status.ExpectedPods:
		pods := "pods"
		if status.DesiredHealthy == 1 {
			pods = "pod"
		}
		return fmt.Sprintf("never allows a disruption: it needs %d healthy %s, of %d: lower minAvailable or raise maxUnavailable, or add a pod",
			status.DesiredHealthy, pods, status.ExpectedPods)
	case status.ObservedGeneration >= budget.Generation && status.ExpectedPods == 0 && status.DesiredHealthy == 0 && status.CurrentHealthy > 0:
		// The disruption controller expects the replicas that the controllers of the pods want.
		return "never allows a disruption: it expects 0 pods: if no controller wants those that it selects, set minAvailable to a number"
	}
	return ""
}

// Applicable returns the budgets that the eviction of the pod has to respect, among those that
// select it. The pods/eviction subresource checks no budget for a pod that is not running.
func Applicable(pod *v1.Pod, budgets []*policy.PodDisruptionBudget) []*policy.PodDisruptionBudget {
	switch {
	case pod.DeletionTimestamp != nil:
		return nil
	case pod.Status.Phase == v1.PodPending, pod.Status.Phase == v1.PodSucceeded, pod.Status.Phase == v1.PodFailed:
		return nil
	}
	return budgets
}

// AllowEviction reports whether the budgets that select a pod seem to allow its eviction.
func AllowEviction(pod *v1.Pod, healthy bool, budgets []*policy.PodDisruptionBudget) bool {
	switch applicable := Applicable(pod, budgets); len(applicable) {
	case 0:
		return true
	case 1:
		return AllowanceOf(applicable[0], 0).Allows(healthy)
	default:
		return false // The subresource refuses to evict a pod that has several budgets.
	}
}
