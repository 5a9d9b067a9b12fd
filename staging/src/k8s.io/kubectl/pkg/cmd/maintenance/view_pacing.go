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
)

// leavesAlone reports whether the StatefulSet of a pod lets its pods leave one after another. Whether
// its controller does so depends on a feature gate that kubectl cannot read, but pods name it only
// if they were created with the gate.
func (s *podSnapshot) leavesAlone(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) bool {
	if !slices.Contains(evictioninterceptor.Targets(pod), coordinationv1alpha1.EvictionInterceptorStatefulSet) ||
		pod.DeletionTimestamp != nil || !isReady(pod) {
		return false
	}
	own, owned := s.workloadOf(pod)
	set := s.owners().statefulSets[own]
	if !owned || set == nil || !isPacedSet(set) {
		return false
	}
	if len(budgets) == 1 {
		if permitted, known := poddisruptionbudget.Permitted(budgets[0]); known {
			return permitted <= 1
		}
	}
	update := set.Spec.UpdateStrategy.RollingUpdate
	if update == nil || update.MaxUnavailable == nil || set.Spec.Replicas == nil {
		return true
	}
	limit, err := intstr.GetScaledValueFromIntOrPercent(update.MaxUnavailable, int(*set.Spec.Replicas), false)
	return err != nil || limit <= 1
}

// isPacedSet reports whether pods of the StatefulSet wait for each other if they name it.
func isPacedSet(set *appsv1.StatefulSet) bool {
	return set.DeletionTimestamp == nil && set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType &&
		set.Annotations[coordinationv1alpha1.EvictionPacingAnnotation] != coordinationv1alpha1.EvictionPacingDisabled
}
