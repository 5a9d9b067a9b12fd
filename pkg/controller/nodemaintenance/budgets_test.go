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
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
)

func budgetIndexer(t testing.TB, budgets ...*policyv1.PodDisruptionBudget) cache.Indexer {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, budget := range budgets {
		if err := indexer.Add(budget); err != nil {
			t.Fatal(err)
		}
	}
	return indexer
}

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

// The finder returns the same budgets as the lister, which evaluates all of them for each pod.
func TestBudgetFinder(t *testing.T) {
	var budgets []*policyv1.PodDisruptionBudget
	for i, selector := range []*metav1.LabelSelector{
		nil, {}, {MatchLabels: map[string]string{"a": "1"}}, {MatchLabels: map[string]string{"a": "1", "b": "2"}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: []string{"1", "2"}}}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "b", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"1"}}}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "c", Operator: metav1.LabelSelectorOpExists}}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "a", Operator: metav1.LabelSelectorOpDoesNotExist}, {Key: "b", Operator: metav1.LabelSelectorOpIn, Values: []string{"", "2"}},
		}},
		{MatchLabels: map[string]string{"a": "not valid!"}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: manyLabels(20, "2", "1")}}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpNotIn, Values: manyLabels(20, "", "3")}}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: manyLabels(20, "1")}, {Key: "b", Operator: metav1.LabelSelectorOpIn, Values: []string{"2", "2", "3"}},
			{Key: "c", Operator: metav1.LabelSelectorOpNotIn, Values: manyLabels(20, "1")},
		}},
	} {
		for _, namespace := range []string{"one", "two"} {
			budgets = append(budgets, newBudget(namespace, fmt.Sprintf("%s-%d", namespace, i), selector))
		}
	}
	lister := policylisters.NewPodDisruptionBudgetLister(budgetIndexer(t, budgets...))
	finder := newBudgetFinder(lister, newBudgetSelectors())
	random := rand.New(rand.NewPCG(1, 1))
	names := func(budgets []*policyv1.PodDisruptionBudget) []string {
		var names []string
		for _, budget := range budgets {
			names = append(names, budget.Name)
		}
		slices.Sort(names)
		return names
	}
	found := 0
	for range 300 {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: []string{"one", "two", "none"}[random.IntN(3)], Labels: map[string]string{}}}
		for _, name := range []string{"a", "b", "c"} {
			if value := random.IntN(5); value < 4 {
				pod.Labels[name] = []string{"", "1", "2", "3"}[value]
			}
		}
		want, _ := lister.GetPodPodDisruptionBudgets(pod) //nolint:errcheck // The error means that no budget matches.
		if diff := cmp.Diff(names(want), names(finder.of(pod))); diff != "" {
			t.Errorf("labels %v in %s (-lister, +finder):\n%s", pod.Labels, pod.Namespace, diff)
		}
		found += len(want)
	}
	if found == 0 {
		t.Error("no budget selects a pod")
	}
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
	f.budgetLister = policylisters.NewPodDisruptionBudgetLister(budgetIndexer(f.t, budgets...))
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

// countingLister counts how often the budgets of a namespace are listed.
type countingLister struct {
	policylisters.PodDisruptionBudgetLister
	passes int
}

func (l *countingLister) PodDisruptionBudgets(namespace string) policylisters.PodDisruptionBudgetNamespaceLister {
	l.passes++
	return l.PodDisruptionBudgetLister.PodDisruptionBudgets(namespace)
}

func (l *countingLister) GetPodPodDisruptionBudgets(pod *v1.Pod) ([]*policyv1.PodDisruptionBudget, error) {
	l.passes++
	return l.PodDisruptionBudgetLister.GetPodPodDisruptionBudgets(pod)
}

// A sync of a node reads the budgets of a namespace once, whatever the number of its pods.
func TestBudgetsAreReadOnce(t *testing.T) {
	f := newFixture(t)
	f.blockedPods(10, ownBudget)
	lister := &countingLister{PodDisruptionBudgetLister: f.budgetLister}
	f.budgetLister = lister
	facts, err := f.readFacts("n", nil, nil, start)
	if err != nil || len(facts.pods) != 10 || lister.passes != 1 {
		t.Fatalf("%d passes for %d pods, %v", lister.passes, len(facts.pods), err)
	}
	for _, pod := range facts.pods {
		if want := "default/budget-" + pod.Labels["app"]; pod.blocker.Name != want {
			t.Errorf("%s is blocked by %q, want %q", pod.Name, pod.blocker.Name, want)
		}
	}
}

// A budget with tens of thousands of values is parsed once, and indexed by the name of the label.
func TestBudgetWithManyValues(t *testing.T) {
	budget := newBudget("default", "b", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: manyLabels(20_000)}}})
	budget.UID, budget.Generation = "1", 1
	indexer := budgetIndexer(t, budget)
	selectors, lister := newBudgetSelectors(), policylisters.NewPodDisruptionBudgetLister(indexer)
	if labels := newBudgetFinder(lister, selectors).read("default"); len(labels) != 1 {
		t.Errorf("indexed by %d labels", len(labels))
	}
	of := func(budget *policyv1.PodDisruptionBudget) *budgetSelector {
		return selectors.of(budget, lister.PodDisruptionBudgets("default"))
	}
	first := of(budget)
	status := budget.DeepCopy()
	status.Status.DisruptionsAllowed = 1
	if got := of(status); got != first {
		t.Error("parsed again without a change of its spec")
	}
	for name, change := range map[string]func(*policyv1.PodDisruptionBudget){
		"another spec":   func(b *policyv1.PodDisruptionBudget) { b.Generation++ },
		"another object": func(b *policyv1.PodDisruptionBudget) { b.UID = "2" },
	} {
		of(budget)
		changed := budget.DeepCopy()
		changed.Spec.Selector = &metav1.LabelSelector{}
		if change(changed); !of(changed).matches(nil) {
			t.Errorf("%s: not parsed again", name)
		}
	}
	// A budget that is deleted while it is parsed is not kept.
	if err := indexer.Delete(budget); err != nil {
		t.Fatal(err)
	}
	selectors.forget(budget)
	of(budget)
	if len(selectors.known) > 0 {
		t.Errorf("keeps %d deleted budgets", len(selectors.known))
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
				if err != nil || len(facts.pods) != 1000 || facts.pods[0].blocker.Name == "" {
					b.Fatalf("%d pods, %v", len(facts.pods), err)
				}
			}
		})
	}
}

// Parsing takes linear memory: a tenant may write tens of thousands of requirements into a budget.
func TestBudgetWithManyRequirements(t *testing.T) {
	for name, tc := range map[string]struct {
		selector func(size int) *metav1.LabelSelector
		keeps    func(size int) int
	}{
		"distinct": {
			func(size int) *metav1.LabelSelector {
				selector := &metav1.LabelSelector{MatchLabels: map[string]string{}}
				for _, name := range manyLabels(size) {
					selector.MatchLabels[name] = ""
				}
				return selector
			},
			func(size int) int { return size },
		},
		"equal": {
			func(size int) *metav1.LabelSelector {
				exists := metav1.LabelSelectorRequirement{Key: "a", Operator: metav1.LabelSelectorOpExists}
				return &metav1.LabelSelector{MatchExpressions: slices.Repeat([]metav1.LabelSelectorRequirement{exists}, size)}
			},
			func(int) int { return 1 },
		},
	} {
		var takes []uint64
		for _, size := range []int{500, 5_000} {
			budget := newBudget("default", "b", tc.selector(size))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			read := newBudgetSelector(budget)
			runtime.ReadMemStats(&after)
			takes = append(takes, after.TotalAlloc-before.TotalAlloc)
			if requirements, _ := read.selector.Requirements(); len(requirements) != tc.keeps(size) {
				t.Errorf("%s: keeps %d requirements, want %d", name, len(requirements), tc.keeps(size))
			}
		}
		// Quadratic growth would take a hundred times as much.
		if takes[1] > 30*takes[0] {
			t.Errorf("%s: parsing 5,000 requirements allocates %d bytes, parsing 500 allocates %d", name, takes[1], takes[0])
		}
	}
}

// The parsed selector of a deleted budget is forgotten.
func TestDeletedBudgetIsForgotten(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pods := f.createPods(1, "n", 0, ofApp("web"))
	budgets := f.client.PolicyV1().PodDisruptionBudgets("default")
	if _, err := budgets.Create(f.ctx, newBudget("default", "web", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.deliverBudgets()
	if found := newBudgetFinder(f.budgetLister, f.budgetSelectors).of(pods[0]); len(found) != 1 || len(f.budgetSelectors.known) != 1 {
		t.Fatalf("found %d budgets, keeps %d, want 1 and 1", len(found), len(f.budgetSelectors.known))
	}
	if err := budgets.Delete(f.ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.deliverBudgets()
	if len(f.budgetSelectors.known) > 0 {
		t.Errorf("keeps %v after the budget was deleted", f.budgetSelectors.known)
	}
}
