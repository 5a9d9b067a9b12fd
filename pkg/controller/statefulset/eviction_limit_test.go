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

package statefulset

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/controller/util/evictionpacing"
)

// permitting returns a budget of all pods that permits so many of six to be disrupted.
func permitting(pods int32, options ...func(*policy.PodDisruptionBudget)) *policy.PodDisruptionBudget {
	budget := &policy.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "budget", Generation: 1},
		Spec:       policy.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
		Status:     policy.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 6, DesiredHealthy: 6 - pods},
	}
	for _, option := range options {
		option(budget)
	}
	return budget
}

func TestEvictionLimitOf(t *testing.T) {
	named := func(name string) func(*policy.PodDisruptionBudget) {
		return func(budget *policy.PodDisruptionBudget) { budget.Name = name }
	}
	selecting := func(name string) func(*policy.PodDisruptionBudget) {
		return func(budget *policy.PodDisruptionBudget) {
			budget.Spec.Selector.MatchLabels = map[string]string{"name": name}
		}
	}
	tests := map[string]struct {
		budgets []*policy.PodDisruptionBudget
		want    evictionpacing.Limit
	}{
		"none":                   {want: evictionpacing.Limit{Pods: 2}},
		"one":                    {budgets: []*policy.PodDisruptionBudget{permitting(5)}, want: evictionpacing.Limit{Pods: 5, Budget: "budget"}},
		"one, less than the set": {budgets: []*policy.PodDisruptionBudget{permitting(1)}, want: evictionpacing.Limit{Pods: 1, Budget: "budget"}},
		"one that permits none":  {budgets: []*policy.PodDisruptionBudget{permitting(0)}, want: evictionpacing.Limit{Pods: 1, Budget: "budget"}},
		"one that wants more pods than there are": {budgets: []*policy.PodDisruptionBudget{permitting(-3)}, want: evictionpacing.Limit{Pods: 1, Budget: "budget"}},
		"two":                        {budgets: []*policy.PodDisruptionBudget{permitting(5), permitting(5, named("other"))}, want: evictionpacing.Limit{Pods: 2}},
		"one of some pods":           {budgets: []*policy.PodDisruptionBudget{permitting(5, selecting("web-0"))}, want: evictionpacing.Limit{Pods: 2}},
		"one per pod":                {budgets: []*policy.PodDisruptionBudget{permitting(5, selecting("web-0")), permitting(5, selecting("web-1"), named("other"))}, want: evictionpacing.Limit{Pods: 2}},
		"of another namespace":       {budgets: []*policy.PodDisruptionBudget{permitting(5, func(b *policy.PodDisruptionBudget) { b.Namespace = "other" })}, want: evictionpacing.Limit{Pods: 2}},
		"not computed yet":           {budgets: []*policy.PodDisruptionBudget{permitting(5, func(b *policy.PodDisruptionBudget) { b.Status = policy.PodDisruptionBudgetStatus{} })}, want: evictionpacing.Limit{Pods: 2}},
		"computed for an older spec": {budgets: []*policy.PodDisruptionBudget{permitting(5, func(b *policy.PodDisruptionBudget) { b.Generation = 2 })}, want: evictionpacing.Limit{Pods: 2}},
		"cannot be computed": {budgets: []*policy.PodDisruptionBudget{permitting(5, func(b *policy.PodDisruptionBudget) {
			b.Status.Conditions = []metav1.Condition{{Type: policy.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policy.SyncFailedReason}}
		})}, want: evictionpacing.Limit{Pods: 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			setMaxUnavailable(t, true)
			var pods []*v1.Pod
			for ordinal := range 2 {
				pods = append(pods, pacedPod(ordinal, func(pod *v1.Pod) { pod.Labels = map[string]string{"name": pod.Name} }))
			}
			if got := evictionLimitOf(pacedSet(6, atMost(intstr.FromInt32(2))), pods, poddisruptionbudget.NewIndex(test.budgets)); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// As many pods as the budget permits leave together, and the others say what they wait for.
func TestBudgetIsTheLimit(t *testing.T) {
	setMaxUnavailable(t, false)
	p := newPacing(t, pacedSet(6), permitting(5))
	var turns []*evictionTurn
	for ordinal := range 6 {
		pod := pacedPod(ordinal)
		p.store(pod)
		p.store(pacedRequest(pod))
		turns = append(turns, p.begin(pacedRequest(pod)))
	}
	p.sync()
	for ordinal, turn := range turns[1:] {
		if got := overWith(turn); got != passedOn {
			t.Errorf("the turn of web-%d ended with %q", ordinal+1, got)
		}
	}
	expectOver(t, turns[0], "")
	want := "Waiting for pod web-1 to be evicted, pod web-2 to be evicted, pod web-3 to be evicted, 2 more: at most 5 of the 6 pods of StatefulSet web may be unavailable at a time (PodDisruptionBudget budget)."
	if p.said["web-0"] != want {
		t.Errorf("the message is %q, want %q", p.said["web-0"], want)
	}
}

// A budget that permits another number wakes the sets of its namespace, and its other changes do not.
func TestBudgetWakesUp(t *testing.T) {
	pod := pacedPod(0)
	tests := map[string]struct {
		old, new *policy.PodDisruptionBudget
		want     bool
	}{
		"created":              {new: permitting(5), want: true},
		"deleted":              {old: permitting(5), want: true},
		"of another namespace": {new: permitting(5, func(b *policy.PodDisruptionBudget) { b.Namespace = "default-2" })},
		"permits more":         {old: permitting(4), new: permitting(5), want: true},
		"is computed":          {old: permitting(5, func(b *policy.PodDisruptionBudget) { b.Status.ObservedGeneration = 0 }), new: permitting(5), want: true},
		"another spec":         {old: permitting(5), new: permitting(5, func(b *policy.PodDisruptionBudget) { b.Generation, b.Status.ObservedGeneration = 2, 2 }), want: true},
		"an eviction":          {old: permitting(5), new: permitting(5, func(b *policy.PodDisruptionBudget) { b.Status.CurrentHealthy, b.Status.DisruptionsAllowed = 3, 2 })},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPacing(t, pacedSet(2), pod, pacedRequest(pod))
			p.begin(pacedRequest(pod))
			for p.pacer.queue.Len() > 0 {
				key, _ := p.pacer.queue.Get()
				p.pacer.queue.Done(key)
			}
			handler := p.pacer.budgetHandler()
			switch {
			case test.old == nil:
				handler.OnAdd(test.new, false)
			case test.new == nil:
				handler.OnDelete(test.old)
			default:
				handler.OnUpdate(test.old, test.new)
			}
			if woken := p.pacer.queue.Len() > 0; woken != test.want {
				t.Errorf("enqueued: %t, want %t", woken, test.want)
			}
		})
	}
}
