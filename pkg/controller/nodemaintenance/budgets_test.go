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

package nodemaintenance

import (
	"fmt"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
)

func newBudget(namespace, name string, selector *metav1.LabelSelector) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector},
	}
}

// manyLabels returns n generated values of a label, followed by the given ones.
func manyLabels(n int, values ...string) []string {
	many := make([]string, 0, n+len(values))
	for i := range n {
		many = append(many, fmt.Sprintf("v%05d", i))
	}
	return append(many, values...)
}

// blockedPods adds pods of the node n to the caches, each of which a budget blocks, and as many
// budgets.
func (f *fixture) blockedPods(n int, selector func(i int) *metav1.LabelSelector) {
	f.t.Helper()
	var budgets []*policyv1.PodDisruptionBudget
	for i := range n {
		uid := f.newUID()
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("pod-", i), UID: uid, Labels: map[string]string{"app": fmt.Sprint(i), "tier": "web"}},
			Spec:       v1.PodSpec{NodeName: "n"},
		}
		request := &coordinationv1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: string(uid)}}
		meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
			Type: string(coordinationv1alpha1.EvictionRequestConditionBlocked), Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.EvictionRequestReasonDisruptionBudget,
		})
		for indexer, object := range map[cache.Indexer]any{f.podInformer.GetIndexer(): pod, f.requestInformer.GetIndexer(): request} {
			if err := indexer.Add(object); err != nil {
				f.t.Fatal(err)
			}
		}
		budgets = append(budgets, newBudget("default", fmt.Sprint("budget-", i), selector(i)))
	}
	f.podBudgets = poddisruptionbudget.NewIndex(budgets)
}

func ownBudget(i int) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(i)}}
}

// longBudget selects one pod; the first ten selectors have 20,000 further values each.
func longBudget(i int) *metav1.LabelSelector {
	values := []string{fmt.Sprint(i)}
	if i < 10 {
		values = manyLabels(20_000, values...)
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values}}}
}

// The blocker of each pod is its own budget.
func TestBlockingBudgets(t *testing.T) {
	f := newFixture(t)
	f.blockedPods(10, ownBudget)
	facts, err := f.readFacts("n", nil, nil, start)
	if err != nil || len(facts.Pods) != 10 {
		t.Fatalf("%d pods, %v", len(facts.Pods), err)
	}
	for _, pod := range facts.Pods {
		if want := "default/budget-" + pod.Labels["app"]; pod.Blocker.Name != want {
			t.Errorf("%s is blocked by %q, want %q", pod.Name, pod.Blocker.Name, want)
		}
	}
}

// BenchmarkReadFacts reads a node with 1,000 pods that are blocked by 1,000 budgets.
func BenchmarkReadFacts(b *testing.B) {
	for name, selector := range map[string]func(i int) *metav1.LabelSelector{
		"one budget for each pod":  ownBudget,
		"all budgets for each pod": func(int) *metav1.LabelSelector { return &metav1.LabelSelector{} },
		"long budgets":             longBudget,
	} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b)
			f.blockedPods(1000, selector)
			b.ReportAllocs()
			for b.Loop() {
				facts, err := f.readFacts("n", nil, nil, start)
				if err != nil || len(facts.Pods) != 1000 || facts.Pods[0].Blocker.Name == "" {
					b.Fatalf("%d pods, %v", len(facts.Pods), err)
				}
			}
		})
	}
}
