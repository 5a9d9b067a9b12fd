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
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

func TestLeavesAlone(t *testing.T) {
	atMost := func(pods intstr.IntOrString) func(*appsv1.StatefulSet) {
		return func(set *appsv1.StatefulSet) {
			set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &pods}
		}
	}
	permitting := func(pods int32) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 6, DesiredHealthy: 6 - pods}}
	}
	now := metav1.Now()
	tests := map[string]struct {
		set     func(*appsv1.StatefulSet)
		pod     func(*corev1.Pod)
		budgets []*policyv1.PodDisruptionBudget
		unknown bool
		want    bool
	}{
		"by default":                 {want: true},
		"two at a time":              {set: atMost(intstr.FromInt32(2))},
		"a share of less than one":   {set: atMost(intstr.FromString("10%")), want: true},
		"half of them":               {set: atMost(intstr.FromString("50%"))},
		"a budget of five":           {budgets: []*policyv1.PodDisruptionBudget{permitting(5)}},
		"a budget of one":            {set: atMost(intstr.FromInt32(2)), budgets: []*policyv1.PodDisruptionBudget{permitting(1)}, want: true},
		"a budget that is not ready": {budgets: []*policyv1.PodDisruptionBudget{{}}, want: true},
		"two budgets":                {budgets: []*policyv1.PodDisruptionBudget{permitting(5), permitting(5)}, want: true},
		"opted out": {set: func(set *appsv1.StatefulSet) {
			set.Annotations = map[string]string{"statefulset.kubernetes.io/eviction-pacing": "Disabled"}
		}},
		"on delete":   {set: func(set *appsv1.StatefulSet) { set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType }},
		"deleted":     {set: func(set *appsv1.StatefulSet) { set.DeletionTimestamp = &now }},
		"not ready":   {pod: func(pod *corev1.Pod) { pod.Status.Conditions = nil }},
		"terminating": {pod: func(pod *corev1.Pod) { pod.DeletionTimestamp = &now }},
		"in a group that leaves as one": {pod: func(pod *corev1.Pod) {
			pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("all")}
		}},
		"in a group without a name": {pod: func(pod *corev1.Pod) { pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{} }},
		"in a group": {pod: func(pod *corev1.Pod) {
			pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("single")}
		}, want: true},
		"does not name the set":        {pod: func(pod *corev1.Pod) { pod.Spec.EvictionInterceptors = nil }},
		"a set that could not be read": {unknown: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web"},
				Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To[int32](6), UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}},
			}
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}},
				Spec:       corev1.PodSpec{EvictionInterceptors: []corev1.EvictionInterceptor{{Name: "statefulset.apps.k8s.io"}}},
				Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
			}
			if test.set != nil {
				test.set(set)
			}
			if test.pod != nil {
				test.pod(pod)
			}
			s := &podSnapshot{independent: sets.New(types.NamespacedName{Namespace: "default", Name: "single"})}
			if !test.unknown {
				s.addStatefulSet(set)
			}
			if got := s.leavesAlone(pod, test.budgets); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
