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
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newPod(changes ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{Status: v1.PodStatus{Phase: v1.PodRunning}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func inPhase(phase v1.PodPhase) func(*v1.Pod) { return func(pod *v1.Pod) { pod.Status.Phase = phase } }

func terminating(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{} }

// newBudget returns a budget that allows no disruption.
func newBudget(name string, changes ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, CurrentHealthy: 3, DesiredHealthy: 3},
	}
	for _, change := range changes {
		change(budget)
	}
	return budget
}

func allowing(disruptions int32) func(*policyv1.PodDisruptionBudget) {
	return func(budget *policyv1.PodDisruptionBudget) { budget.Status.DisruptionsAllowed = disruptions }
}

func healthy(current, desired int32) func(*policyv1.PodDisruptionBudget) {
	return func(budget *policyv1.PodDisruptionBudget) {
		budget.Status.CurrentHealthy, budget.Status.DesiredHealthy = current, desired
	}
}

func evictingUnhealthy(policy policyv1.UnhealthyPodEvictionPolicyType) func(*policyv1.PodDisruptionBudget) {
	return func(budget *policyv1.PodDisruptionBudget) { budget.Spec.UnhealthyPodEvictionPolicy = &policy }
}

func TestAllowEviction(t *testing.T) {
	full := newBudget("full")
	observedLate := func(budget *policyv1.PodDisruptionBudget) { budget.Generation = 2 }
	observedEarly := func(budget *policyv1.PodDisruptionBudget) { budget.Status.ObservedGeneration = 2 }

	tests := map[string]struct {
		pod     *v1.Pod
		unready bool
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
		"a terminating pod": {pod: newPod(terminating), budgets: []*policyv1.PodDisruptionBudget{full, full}, want: true},
		"a failed pod":      {pod: newPod(inPhase(v1.PodFailed)), budgets: []*policyv1.PodDisruptionBudget{full}, want: true},
		"a succeeded pod":   {pod: newPod(inPhase(v1.PodSucceeded)), budgets: []*policyv1.PodDisruptionBudget{full}, want: true},
		"a pending pod":     {pod: newPod(inPhase(v1.PodPending)), budgets: []*policyv1.PodDisruptionBudget{full}, want: true},
		"an unhealthy pod while enough others are healthy": {
			pod: newPod(), unready: true, budgets: []*policyv1.PodDisruptionBudget{newBudget("b", healthy(3, 3))}, want: true,
		},
		"an unhealthy pod while one other is missing": {
			pod: newPod(), unready: true, budgets: []*policyv1.PodDisruptionBudget{newBudget("b", healthy(2, 3))},
		},
		"an unhealthy pod while the budget requires none yet": {
			pod: newPod(), unready: true, budgets: []*policyv1.PodDisruptionBudget{newBudget("b", healthy(0, 0))},
		},
		"an unhealthy pod that may always be evicted": {
			pod: newPod(), unready: true,
			budgets: []*policyv1.PodDisruptionBudget{newBudget("b", healthy(0, 3), evictingUnhealthy(policyv1.AlwaysAllow))}, want: true,
		},
		"an unhealthy pod that may be evicted within the budget": {
			pod: newPod(), unready: true,
			budgets: []*policyv1.PodDisruptionBudget{newBudget("b", healthy(0, 3), evictingUnhealthy(policyv1.IfHealthyBudget))},
		},
		"an unhealthy pod within a budget that allows one": {
			pod: newPod(), unready: true,
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
			if got := AllowEviction(test.pod, !test.unready, test.budgets); got != test.want {
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
		want   Allowance
	}{
		"none":                       {budget: newBudget("b", sick), want: Allowance{}},
		"some":                       {budget: newBudget("b", sick, allowing(1)), want: Allowance{Healthy: true, Unhealthy: true}},
		"all used up":                {budget: newBudget("b", sick, allowing(1)), used: 1, want: Allowance{}},
		"one left":                   {budget: newBudget("b", sick, allowing(2)), used: 1, want: Allowance{Healthy: true, Unhealthy: true}},
		"negative":                   {budget: newBudget("b", sick, allowing(-1)), want: Allowance{}},
		"used up, for healthy pods":  {budget: newBudget("b", allowing(1)), used: 1, want: Allowance{Unhealthy: true}},
		"many unconfirmed evictions": {budget: newBudget("b", sick, allowing(1), unconfirmed(2000)), want: Allowance{Healthy: true, Unhealthy: true}},
		"too many":                   {budget: newBudget("b", sick, allowing(1), unconfirmed(2001)), want: Allowance{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := AllowanceOf(test.budget, test.used); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// What a budget permits depends on its spec and on its number of pods, not on their health.
func TestPermitted(t *testing.T) {
	of := func(expected, desired int32) func(*policyv1.PodDisruptionBudget) {
		return func(budget *policyv1.PodDisruptionBudget) {
			budget.Status.ExpectedPods, budget.Status.DesiredHealthy = expected, desired
		}
	}
	condition := func(status metav1.ConditionStatus, reason string) func(*policyv1.PodDisruptionBudget) {
		return func(budget *policyv1.PodDisruptionBudget) {
			budget.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: status, Reason: reason}}
		}
	}
	tests := map[string]struct {
		budget *policyv1.PodDisruptionBudget
		want   int
		known  bool
	}{
		"some":                  {budget: newBudget("b", of(6, 1)), want: 5, known: true},
		"none":                  {budget: newBudget("b", of(6, 6)), known: true},
		"more than there are":   {budget: newBudget("b", of(6, 8)), known: true},
		"whatever is disrupted": {budget: newBudget("b", of(6, 1), func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy = 0 }, condition(metav1.ConditionFalse, policyv1.InsufficientPodsReason)), want: 5, known: true},
		"not computed":          {budget: newBudget("b", of(6, 1), func(b *policyv1.PodDisruptionBudget) { b.Generation, b.Status.ObservedGeneration = 0, 0 })},
		"an older spec":         {budget: newBudget("b", of(6, 1), func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 })},
		"cannot be computed":    {budget: newBudget("b", of(6, 1), condition(metav1.ConditionFalse, policyv1.SyncFailedReason))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, known := Permitted(test.budget); got != test.want || known != test.known {
				t.Errorf("got %d, %t, want %d, %t", got, known, test.want, test.known)
			}
		})
	}
}

// TestWhyNever says that waiting does not help only where it does not.
func TestWhyNever(t *testing.T) {
	expecting := func(pods, desired, current int32) *policyv1.PodDisruptionBudget {
		budget := newBudget("budget", healthy(current, desired))
		budget.Status.ExpectedPods = pods
		return budget
	}
	late := expecting(0, 0, 1)
	late.Generation = 2
	for name, test := range map[string]struct {
		budget *policyv1.PodDisruptionBudget
		want   string
	}{
		"all are needed":           {expecting(2, 2, 1), "never allows a disruption: it needs 2 healthy pods, of 2: lower minAvailable or raise maxUnavailable, or add a pod"},
		"one is spare":             {expecting(3, 2, 2), ""},
		"pods without controllers": {expecting(0, 0, 1), "never allows a disruption: it expects 0 pods: if no controller wants those that it selects, set minAvailable to a number"},
		"no pod is counted":        {expecting(0, 0, 0), ""},
		"of an older spec":         {late, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WhyNever(test.budget); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
