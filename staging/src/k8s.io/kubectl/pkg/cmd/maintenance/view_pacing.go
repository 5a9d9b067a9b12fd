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
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/utils/ptr"
)

// leavesAlone reports whether the StatefulSet or the Deployment of a pod lets its pods leave one after another. Whether
// its controller does so depends on a feature gate that kubectl cannot read, but pods name it only
// if they were created with the gate.
func (s *podSnapshot) leavesAlone(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) bool {
	if pod.DeletionTimestamp != nil || !isReady(pod) || s.isGrouped(pod) {
		return false
	}
	own, paced := s.pacedLimit(pod)
	if !paced {
		return false
	}
	if len(budgets) == 1 {
		if permitted, known := poddisruptionbudget.Permitted(budgets[0]); known {
			return permitted <= 1
		}
	}
	return own <= 1
}

// pacedLimit reports whether the pods of the workload of a pod wait for each other, and how many of them may be
// unavailable at a time if no budget says so.
func (s *podSnapshot) pacedLimit(pod *corev1.Pod) (pods int, paced bool) {
	if deployment := s.deploymentOf(pod); deployment != nil && s.awaitsSurge(pod) {
		return maxUnavailable(deployment), isPacedDeployment(deployment)
	}
	set := s.statefulSetOf(pod)
	if set == nil || !isPacedSet(set) || !slices.Contains(evictioninterceptor.Targets(pod), coordinationv1alpha1.EvictionInterceptorStatefulSet) {
		return 0, false
	}
	update := set.Spec.UpdateStrategy.RollingUpdate
	if update == nil || update.MaxUnavailable == nil || set.Spec.Replicas == nil {
		return 1, true
	}
	limit, err := intstr.GetScaledValueFromIntOrPercent(update.MaxUnavailable, int(*set.Spec.Replicas), false)
	if err != nil {
		return 1, true
	}
	return limit, true
}

// statefulSetOf returns the StatefulSet that controls the pod, or nil if there is none, or it is unknown.
func (s *podSnapshot) statefulSetOf(pod *corev1.Pod) *appsv1.StatefulSet {
	own, owned := s.workloadOf(pod)
	if !owned {
		return nil
	}
	return s.owners().statefulSets[own]
}

// isOfPacedSet reports whether a pod is of a StatefulSet whose pods wait for each other.
func (s *podSnapshot) isOfPacedSet(pod *corev1.Pod) bool {
	_, paced := s.pacedLimit(pod)
	return paced && s.statefulSetOf(pod) != nil
}

// isPacedDeployment reports whether pods of the Deployment wait for each other if they name it, by the rule of its
// controller.
func isPacedDeployment(deployment *appsv1.Deployment) bool {
	return deployment.DeletionTimestamp == nil && deployment.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType &&
		!allowsSurge(deployment) && ptr.Deref(deployment.Spec.Replicas, 1) > 1 &&
		!evictioninterceptor.IsPacingDisabled(deployment.Annotations, evictioninterceptor.DeploymentPacingAnnotation)
}

// maxUnavailable returns how many pods may be unavailable in a rollout of a Deployment without a surge.
func maxUnavailable(deployment *appsv1.Deployment) int {
	update := deployment.Spec.Strategy.RollingUpdate
	if update == nil || update.MaxUnavailable == nil {
		return 1
	}
	limit, err := intstr.GetScaledValueFromIntOrPercent(update.MaxUnavailable, int(ptr.Deref(deployment.Spec.Replicas, 1)), false)
	if err != nil {
		return 1
	}
	return limit
}

// isPacedSet reports whether pods of the StatefulSet wait for each other if they name it.
func isPacedSet(set *appsv1.StatefulSet) bool {
	return set.DeletionTimestamp == nil && set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType &&
		!evictioninterceptor.IsPacingDisabled(set.Annotations, coordinationv1alpha1.EvictionPacingAnnotation)
}
