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
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestBudgetsAllow(t *testing.T) {
	full := newBudget("full")
	observedLate := func(budget *policyv1.PodDisruptionBudget) { budget.Generation = 2 }
	observedEarly := func(budget *policyv1.PodDisruptionBudget) { budget.Status.ObservedGeneration = 2 }

	tests := map[string]struct {
		pod     *v1.Pod
		budgets []*policyv1.PodDisruptionBudget
		want    bool
	}{
		"no budget":                    {pod: newPod(), want: true},
		"a budget that allows none":    {pod: newPod(), budgets: []*policyv1.PodDisruptionBudget{full}},
		"a budget that allows one":     {pod: newPod(), budgets: []*policyv1.PodDisruptionBudget{newBudget("b", allowing(1))}, want: true},
		"a status older than the spec": {pod: newPod(), budgets: []*policyv1.PodDisruptionBudget{newBudget("b", allowing(1), observedLate)}},
		"a status newer than the spec": {pod: newPod(), budgets: []*policyv1.PodDisruptionBudget{newBudget("b", allowing(1), observedEarly)}, want: true},
		"two budgets that allow one each": {
			pod:     newPod(),
			budgets: []*policyv1.PodDisruptionBudget{newBudget("a", allowing(1)), newBudget("b", allowing(1))},
		},
		"a terminating pod": {pod: newPod(terminatingSince(0)), budgets: []*policyv1.PodDisruptionBudget{full, full}, want: true},
		"a failed pod":      {pod: newPod(inPhase(v1.PodFailed)), budgets: []*policyv1.PodDisruptionBudget{full}, want: true},
		"a succeeded pod":   {pod: newPod(inPhase(v1.PodSucceeded)), budgets: []*policyv1.PodDisruptionBudget{full}, want: true},
		"a pending pod":     {pod: newPod(inPhase(v1.PodPending)), budgets: []*policyv1.PodDisruptionBudget{full}, want: true},
		"an unhealthy pod while enough others are healthy": {
			pod: newPod(notReady), budgets: []*policyv1.PodDisruptionBudget{newBudget("b", healthy(3, 3))}, want: true,
		},
		"an unhealthy pod while one other is missing": {
			pod: newPod(notReady), budgets: []*policyv1.PodDisruptionBudget{newBudget("b", healthy(2, 3))},
		},
		"an unhealthy pod while the budget requires none yet": {
			pod: newPod(notReady), budgets: []*policyv1.PodDisruptionBudget{newBudget("b", healthy(0, 0))},
		},
		"an unhealthy pod that may always be evicted": {
			pod:     newPod(notReady),
			budgets: []*policyv1.PodDisruptionBudget{newBudget("b", healthy(0, 3), evictingUnhealthy(policyv1.AlwaysAllow))}, want: true,
		},
		"an unhealthy pod that may be evicted within the budget": {
			pod:     newPod(notReady),
			budgets: []*policyv1.PodDisruptionBudget{newBudget("b", healthy(0, 3), evictingUnhealthy(policyv1.IfHealthyBudget))},
		},
		"an unhealthy pod within a budget that allows one": {
			pod:     newPod(notReady),
			budgets: []*policyv1.PodDisruptionBudget{newBudget("b", healthy(0, 0), allowing(1))}, want: true,
		},
		"a healthy pod while only unhealthy ones may always be evicted": {
			pod:     newPod(),
			budgets: []*policyv1.PodDisruptionBudget{newBudget("b", evictingUnhealthy(policyv1.AlwaysAllow))},
		},
		"a healthy pod while enough are healthy": {
			pod: newPod(), budgets: []*policyv1.PodDisruptionBudget{newBudget("b", healthy(3, 3))},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := budgetsAllow(test.pod, test.budgets); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// Used disruptions count for healthy pods only, and an unusable budget allows none.
func TestAllowanceOf(t *testing.T) {
	unconfirmed := func(pods int) func(*policyv1.PodDisruptionBudget) {
		return func(budget *policyv1.PodDisruptionBudget) {
			budget.Status.DisruptedPods = map[string]metav1.Time{}
			for i := range pods {
				budget.Status.DisruptedPods[fmt.Sprint(i)] = metav1.Time{}
			}
		}
	}
	sick := healthy(2, 3)
	tests := map[string]struct {
		budget *policyv1.PodDisruptionBudget
		used   int
		want   allowance
	}{
		"none":                       {budget: newBudget("b", sick), want: allowance{}},
		"some":                       {budget: newBudget("b", sick, allowing(1)), want: allowance{healthy: true, unhealthy: true}},
		"all used up":                {budget: newBudget("b", sick, allowing(1)), used: 1, want: allowance{}},
		"one left":                   {budget: newBudget("b", sick, allowing(2)), used: 1, want: allowance{healthy: true, unhealthy: true}},
		"negative":                   {budget: newBudget("b", sick, allowing(-1)), want: allowance{}},
		"used up, for healthy pods":  {budget: newBudget("b", allowing(1)), used: 1, want: allowance{unhealthy: true}},
		"many unconfirmed evictions": {budget: newBudget("b", sick, allowing(1), unconfirmed(2000)), want: allowance{healthy: true, unhealthy: true}},
		"too many":                   {budget: newBudget("b", sick, allowing(1), unconfirmed(2001)), want: allowance{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := allowanceOf(test.budget, test.used); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
