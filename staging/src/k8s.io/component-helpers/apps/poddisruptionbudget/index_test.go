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
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
)

func in(namespace string) func(*policyv1.PodDisruptionBudget) {
	return func(budget *policyv1.PodDisruptionBudget) { budget.Namespace = namespace }
}

func selecting(selector *metav1.LabelSelector) func(*policyv1.PodDisruptionBudget) {
	return func(budget *policyv1.PodDisruptionBudget) { budget.Spec.Selector = selector }
}

// withLabels returns a selector of pods with all of these labels, whose names and values alternate.
func withLabels(labels ...string) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for pair := range slices.Chunk(labels, 2) {
		selector.MatchLabels[pair[0]] = pair[1]
	}
	return selector
}

func withExpressions(requirements ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: requirements}
}

func requirement(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
}

// podOf returns a pod with these labels, whose names and values alternate.
func podOf(namespace string, labels ...string) *v1.Pod {
	return newPod(func(pod *v1.Pod) { pod.Namespace, pod.Labels = namespace, withLabels(labels...).MatchLabels })
}

func newIndexer(t testing.TB, budgets ...*policyv1.PodDisruptionBudget) (cache.Indexer, *Index) {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, budget := range budgets {
		store(t, indexer, budget)
	}
	return indexer, indexOf(t, indexer)
}

func indexOf(t testing.TB, indexer cache.Indexer) *Index {
	t.Helper()
	index, err := IndexOf(indexer)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func store(t testing.TB, indexer cache.Indexer, budget *policyv1.PodDisruptionBudget) {
	t.Helper()
	if err := indexer.Update(budget); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, indexer cache.Indexer, budget *policyv1.PodDisruptionBudget) {
	t.Helper()
	if err := indexer.Delete(budget); err != nil {
		t.Fatal(err)
	}
}

func names(budgets []*policyv1.PodDisruptionBudget) string {
	var names []string
	for _, budget := range budgets {
		names = append(names, budget.Name)
	}
	return strings.Join(names, " ")
}

// fromLister returns what the lister of an informer returns for a pod, sorted by name.
func fromLister(lister policylisters.PodDisruptionBudgetLister, pod *v1.Pod) []*policyv1.PodDisruptionBudget {
	budgets, _ := lister.GetPodPodDisruptionBudgets(pod) //nolint:errcheck // The error means that no budget matches.
	slices.SortFunc(budgets, func(a, b *policyv1.PodDisruptionBudget) int { return strings.Compare(a.Name, b.Name) })
	return budgets
}

// randomSelector returns a selector of any kind, which may be invalid.
func randomSelector(random *rand.Rand) *metav1.LabelSelector {
	if random.IntN(15) == 0 {
		return nil
	}
	value := func() string { return []string{"", "1", "2", "3"}[random.IntN(4)] }
	selector := &metav1.LabelSelector{}
	for _, name := range []string{"a", "b", "c"} {
		switch random.IntN(12) {
		case 0, 1, 2:
			metav1.AddLabelToSelector(selector, name, value())
		case 3, 4:
			selector.MatchExpressions = append(selector.MatchExpressions, requirement(name, metav1.LabelSelectorOpIn, value(), value()))
		case 5:
			selector.MatchExpressions = append(selector.MatchExpressions, requirement(name, metav1.LabelSelectorOpIn, manyLabels(manyValues, value(), value())...))
		case 6:
			selector.MatchExpressions = append(selector.MatchExpressions, requirement(name, metav1.LabelSelectorOpNotIn, manyLabels(random.IntN(2)*manyValues, value())...))
		case 7:
			selector.MatchExpressions = append(selector.MatchExpressions, requirement(name, metav1.LabelSelectorOpExists))
		case 8:
			selector.MatchExpressions = append(selector.MatchExpressions, requirement(name, metav1.LabelSelectorOpDoesNotExist))
		case 9:
			if random.IntN(5) == 0 {
				selector.MatchExpressions = append(selector.MatchExpressions, requirement(name, "Like", value()))
			}
		}
	}
	return selector
}

// The index returns the same objects as the lister, which evaluates all budgets for each pod,
// whatever happens in between.
func TestIndexIsLikeLister(t *testing.T) {
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, seed))
		namespaces := []string{"one", "two", "three"}
		indexer, index := newIndexer(t)
		lister := policylisters.NewPodDisruptionBudgetLister(indexer)
		stored := func() []*policyv1.PodDisruptionBudget {
			var budgets []*policyv1.PodDisruptionBudget
			for _, obj := range indexer.List() {
				budgets = append(budgets, obj.(*policyv1.PodDisruptionBudget))
			}
			slices.SortFunc(budgets, func(a, b *policyv1.PodDisruptionBudget) int {
				return strings.Compare(a.Namespace+a.Name, b.Namespace+b.Name)
			})
			return budgets
		}
		change := func() {
			budgets := stored()
			choice := random.IntN(10)
			switch {
			case len(budgets) < 20 || choice < 3:
				store(t, indexer, newBudget(fmt.Sprint("budget-", random.IntN(60)), in(namespaces[random.IntN(2)]), selecting(randomSelector(random))))
			case choice < 6:
				changed := budgets[random.IntN(len(budgets))].DeepCopy()
				changed.Status.DisruptionsAllowed++
				store(t, indexer, changed)
			case choice < 9:
				remove(t, indexer, budgets[random.IntN(len(budgets))])
			case random.IntN(10) == 0: // The informer was disconnected.
				var rest []any
				for _, budget := range budgets {
					switch random.IntN(4) {
					case 0:
					case 1:
						budget = budget.DeepCopy()
						budget.Spec.Selector = randomSelector(random)
						fallthrough
					default:
						rest = append(rest, budget)
					}
				}
				if err := indexer.Replace(rest, "1"); err != nil {
					t.Fatal(err)
				}
			}
		}
		found := 0
		for step := range 400 {
			for range random.IntN(8) {
				change()
			}
			pod := podOf(namespaces[random.IntN(3)])
			for _, name := range []string{"a", "b", "c"} {
				if value := random.IntN(6); value < 4 {
					pod.Labels[name] = []string{"", "1", "2", "3"}[value]
				}
			}
			if len(pod.Labels) == 0 {
				pod.Labels = nil
			}
			want, got := fromLister(lister, pod), index.For(pod)
			if !slices.Equal(want, got) {
				t.Fatalf("seed %d, step %d: labels %v in %s: got %q, want %q, of which some may be older objects", seed, step, pod.Labels, pod.Namespace, names(got), names(want))
			}
			found += len(want)
		}
		if found == 0 {
			t.Error("no budget selects a pod")
		}
	}
}

// What is stored before a look-up begins is found by it, while others look up as well: they may
// have begun to read it.
func TestIndexIsCurrent(t *testing.T) {
	pod := podOf("default", "app", "web")
	indexer, index := newIndexer(t)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	defer readers.Wait()
	defer close(stop)
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					index.For(pod)
				}
			}
		})
	}
	for i := range 100 {
		store(t, indexer, newBudget(fmt.Sprint("other-", i), in("default"), selecting(withLabels("app", "other"))))
	}
	for i := range 2000 {
		app := []string{"web", "db"}[i%2]
		budget := newBudget("b", in("default"), selecting(withLabels("app", app)))
		store(t, indexer, budget)
		got := index.For(pod)
		if want := app == "web"; want != slices.Contains(got, budget) {
			t.Fatalf("change %d: the pod is selected: %t, want %t", i, !want, want)
		}
	}
}

// A cache that is replaced by a new list does not tell which budgets have gone.
func TestBudgetsGoneWhileDisconnected(t *testing.T) {
	for name, rest := range map[string]int{"some are left": 3, "none is left": 0} {
		t.Run(name, func(t *testing.T) {
			budgets := unrelatedBudgets(10, unrelated["one label"])
			indexer, index := newIndexer(t, budgets...)
			pod := podOf("default", "app", "app-9")
			if found := index.For(pod); len(found) != 1 {
				t.Fatalf("found %q", names(found))
			}
			var list []any
			for _, budget := range budgets[:rest] {
				list = append(list, budget)
			}
			if err := indexer.Replace(list, "2"); err != nil {
				t.Fatal(err)
			}
			if found := index.For(pod); len(found) > 0 {
				t.Errorf("found %q, which is gone", names(found))
			}
		})
	}
}

// A handler of an informer that knows of a change finds it.
func TestIndexOfInformer(t *testing.T) {
	client := fake.NewClientset()
	for _, budget := range unrelatedBudgets(10, unrelated["one label"]) {
		if err := client.Tracker().Add(budget); err != nil {
			t.Fatal(err)
		}
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Policy().V1().PodDisruptionBudgets().Informer()
	index := indexOf(t, informer.GetIndexer())
	pod := podOf("default", "app", "web")
	found := make(chan string, 10)
	lookUp := func(obj any) {
		if budgets := names(index.For(pod)); obj.(*policyv1.PodDisruptionBudget).Name == "b" {
			found <- budgets
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: lookUp, DeleteFunc: lookUp}); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-found:
			if got != want {
				t.Errorf("found %q, want %q", got, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("no event within 30 seconds")
		}
	}
	budgets := client.PolicyV1().PodDisruptionBudgets("default")
	if _, err := budgets.Create(t.Context(), newBudget("b", in("default"), selecting(withLabels("app", "web"))), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("b")
	if err := budgets.Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("")
}

// All controllers of a process share the index of an informer.
func TestIndexIsShared(t *testing.T) {
	indexer, index := newIndexer(t)
	if indexOf(t, indexer) != index {
		t.Error("a second index of the same cache")
	}
	if _, other := newIndexer(t); other == index {
		t.Error("two caches share an index")
	}
}

// The version changes with each change of the cache, and only then.
func TestVersion(t *testing.T) {
	budget := newBudget("b", in("default"), selecting(withLabels("app", "web")))
	indexer, index := newIndexer(t)
	version := index.Version()
	expectChange := func(what string, change bool) {
		t.Helper()
		if got := index.Version(); (got != version) != change {
			t.Errorf("%s: changed %t, want %t", what, !change, change)
		}
		version = index.Version()
	}
	store(t, indexer, budget)
	expectChange("a new budget", true)
	index.For(podOf("default", "app", "web"))
	expectChange("a look-up", false)
	store(t, indexer, budget.DeepCopy())
	expectChange("a changed budget", true)
	remove(t, indexer, budget)
	expectChange("a deleted budget", true)
	store(t, indexer, budget)
	version = index.Version()
	// The cache calls no index function then.
	if err := indexer.Replace(nil, "2"); err != nil {
		t.Fatal(err)
	}
	expectChange("a list without budgets", true)
}

// evaluated returns how many budgets are compared with a pod.
func evaluated(index *Index, pod *v1.Pod) int {
	n := index.namespaces[pod.Namespace]
	count := len(n.byLabel[podLabel{}])
	for name, value := range pod.Labels {
		count += len(n.byLabel[podLabel{name: name, value: value}]) + len(n.byLabel[podLabel{name: name, any: true}])
	}
	return count
}

// unrelated are selectors by what the budgets of a namespace often have in common.
var unrelated = map[string]func(i int) *metav1.LabelSelector{
	"one label": func(i int) *metav1.LabelSelector { return withLabels("app", fmt.Sprint("app-", i)) },
	"a label that all have": func(i int) *metav1.LabelSelector {
		return withLabels("component", "server", "instance", fmt.Sprint("app-", i), "name", "chart")
	},
	"some values": func(i int) *metav1.LabelSelector {
		return withExpressions(requirement("app", metav1.LabelSelectorOpIn, fmt.Sprint("app-", i), fmt.Sprint("canary-", i)), requirement("component", metav1.LabelSelectorOpExists))
	},
}

var unrelatedPod = podOf("default", "app", "web", "component", "server", "instance", "web", "name", "chart", "pod-template-hash", "68f4c5d7b9")

func unrelatedBudgets(n int, selector func(i int) *metav1.LabelSelector) []*policyv1.PodDisruptionBudget {
	var budgets []*policyv1.PodDisruptionBudget
	for i := range n {
		budgets = append(budgets, newBudget(fmt.Sprint("budget-", i), in("default"), selecting(selector(i))))
	}
	return budgets
}

// Budgets that share a label with a pod, but not all, are not evaluated for it.
func TestUnrelatedBudgetsAreNotEvaluated(t *testing.T) {
	for name, selector := range unrelated {
		_, index := newIndexer(t, unrelatedBudgets(1000, selector)...)
		if found := index.For(unrelatedPod); len(found) > 0 {
			t.Errorf("%s: found %q", name, names(found))
		}
		// One budget may be under the label that all have, when no other one is known.
		if got := evaluated(index, unrelatedPod); got > 2 {
			t.Errorf("%s: %d budgets are evaluated, want 2 at most", name, got)
		}
	}
}

// A selector is parsed once. The usual change of a budget is one of its status.
func TestSelectorIsParsedOnce(t *testing.T) {
	budgets := unrelatedBudgets(10, unrelated["one label"])
	indexer, index := newIndexer(t, budgets...)
	pod := podOf("default", "app", "app-3")
	index.For(pod)
	parsed := index.namespaces["default"].budgets["budget-3"].selector
	changed := budgets[3].DeepCopy()
	changed.Status.DisruptionsAllowed++
	store(t, indexer, changed)
	if got := index.For(pod); len(got) != 1 || got[0] != changed {
		t.Errorf("found %q, or an old object", names(got))
	}
	if index.namespaces["default"].budgets["budget-3"].selector != parsed {
		t.Error("parsed again without a change of the selector")
	}
	// Neither UID nor generation has to tell of the change.
	changed = budgets[3].DeepCopy()
	changed.Spec.Selector = withLabels("app", "other")
	store(t, indexer, changed)
	if got := index.For(pod); len(got) > 0 {
		t.Errorf("found %q by its old selector", names(got))
	}
}

// The index does not grow with what is no longer looked up.
func TestNamespacesAreForgotten(t *testing.T) {
	pod := podOf("default", "app", "app-1")
	for name, tc := range map[string]struct {
		budgets int
		events  func(t *testing.T, indexer cache.Indexer, budgets []*policyv1.PodDisruptionBudget)
		forgets bool
	}{
		"without budgets": {0, func(*testing.T, cache.Indexer, []*policyv1.PodDisruptionBudget) {}, true},
		"all budgets are deleted": {10, func(t *testing.T, indexer cache.Indexer, budgets []*policyv1.PodDisruptionBudget) {
			for _, budget := range budgets {
				remove(t, indexer, budget)
			}
		}, true},
		"many budgets are created": {10, func(t *testing.T, indexer cache.Indexer, _ []*policyv1.PodDisruptionBudget) {
			for i := range 6 {
				store(t, indexer, newBudget(fmt.Sprint("new-", i), in("default")))
			}
		}, true},
		"one budget changes often": {10, func(t *testing.T, indexer cache.Indexer, budgets []*policyv1.PodDisruptionBudget) {
			for range 100 {
				store(t, indexer, budgets[0].DeepCopy())
			}
		}, false},
		"budgets of another namespace change": {10, func(t *testing.T, indexer cache.Indexer, budgets []*policyv1.PodDisruptionBudget) {
			for i := range 100 {
				store(t, indexer, newBudget(fmt.Sprint("new-", i), in("other")))
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			budgets := unrelatedBudgets(tc.budgets, unrelated["one label"])
			indexer, index := newIndexer(t, budgets...)
			index.For(pod)
			tc.events(t, indexer, budgets)
			if got := len(index.namespaces) == 0; got != tc.forgets {
				t.Errorf("forgotten %t, want %t", got, tc.forgets)
			}
			if n := index.namespaces["default"]; n != nil && len(n.changed) > len(budgets) {
				t.Errorf("knows of %d changes of %d budgets", len(n.changed), len(budgets))
			}
		})
	}
}

// An index without an informer finds budgets of all namespaces, and only those of the pod's.
func TestNewIndex(t *testing.T) {
	index := NewIndex([]*policyv1.PodDisruptionBudget{
		newBudget("z", in("one"), selecting(withLabels("app", "web"))),
		newBudget("everything", in("one"), selecting(&metav1.LabelSelector{})),
		newBudget("nothing", in("one"), selecting(nil)),
		newBudget("invalid", in("one"), selecting(withExpressions(requirement("app", "Like")))),
		newBudget("elsewhere", in("two"), selecting(withLabels("app", "web"))),
	})
	for namespace, want := range map[string]string{"one": "everything z", "two": "elsewhere", "three": ""} {
		if got := names(index.For(podOf(namespace, "app", "web"))); got != want {
			t.Errorf("%s: found %q, want %q", namespace, got, want)
		}
	}
}

// BenchmarkLookUp looks up a pod that one budget selects, whose status has just changed, among many
// that do not select it.
func BenchmarkLookUp(b *testing.B) {
	for _, kind := range []string{"one label", "a label that all have"} {
		for _, n := range []int{1, 100, 10_000} {
			own := newBudget("own", in("default"), selecting(withLabels("instance", "web")))
			indexer, index := newIndexer(b, append(unrelatedBudgets(n, unrelated[kind]), own)...)
			lister := policylisters.NewPodDisruptionBudgetLister(indexer)
			for name, lookUp := range map[string]func(*v1.Pod) []*policyv1.PodDisruptionBudget{
				"lister": func(pod *v1.Pod) []*policyv1.PodDisruptionBudget { return fromLister(lister, pod) },
				"index":  index.For,
			} {
				b.Run(fmt.Sprintf("%s/%s/%d", kind, name, n), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						store(b, indexer, own)
						if found := lookUp(unrelatedPod); len(found) != 1 || found[0].Name != "own" {
							b.Fatalf("found %q", names(found))
						}
					}
				})
			}
		}
	}
}
