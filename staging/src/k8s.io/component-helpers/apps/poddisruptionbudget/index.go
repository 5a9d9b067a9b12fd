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
	"math"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
)

// Index finds the budgets that select a pod, for as much as the pod has labels, and not as its
// namespace has budgets: a tenant may have thousands of them. Its selectors are parsed once.
//
// It is never older than the cache of an informer. A handler of events could not keep it so: the
// handlers of an informer run at their own pace, so one may learn from the lister of a budget that
// the handler that feeds the index does not know yet. Therefore the index is fed by an index function:
// the cache calls it for each budget in the same step in which it stores it. That function only
// records which budgets have changed, since nobody can read the cache meanwhile. A look-up reads
// these first.
//
// An index of client-go alone would not be enough. Its functions see one budget at a time, so they
// cannot know which of its labels few other budgets have: often all those of a namespace share some.
type Index struct {
	cache cache.Indexer

	// lock is taken while the cache is locked: who has it must not use the cache.
	lock sync.Mutex
	// namespaces are those of which pods were looked up, as long as they have budgets.
	namespaces map[string]*namespaceIndex
	changes    uint64
}

// namespaceIndex has the budgets of a namespace. Its lock is taken before that of the cache.
type namespaceIndex struct {
	name string

	lock     sync.Mutex
	complete bool
	budgets  map[string]*indexedBudget
	// byLabel has each budget under labels of which a pod needs one.
	byLabel map[podLabel][]*indexedBudget

	// changed are the names of budgets that have changed since they were read. The lock of the Index
	// guards it and maxChanged.
	changed map[string]struct{}
	// maxChanged is with how many changes the namespace is forgotten. It is as cheap then to read
	// all of its budgets again, and nobody may look up pods of it anymore.
	maxChanged int
}

type indexedBudget struct {
	*policy.PodDisruptionBudget
	name     string
	selector *selector
	// labels are those under which byLabel has it.
	labels []podLabel
}

// feedName is the name of the function that feeds an index, among those of a cache.
const feedName = "poddisruptionbudget.Index"

// creating is locked while it is decided whether a cache has an index.
var creating sync.Mutex

// IndexOf returns the index of a cache of budgets, such as that of an informer. All callers share
// it.
func IndexOf(budgets cache.Indexer) (*Index, error) {
	creating.Lock()
	defer creating.Unlock()
	functions := budgets.GetIndexers()
	if feed, exists := functions[feedName]; exists {
		request := &indexRequest{}
		_, err := feed(request)
		return request.index, err
	}
	x := &Index{cache: budgets, namespaces: map[string]*namespaceIndex{}}
	added := cache.Indexers{feedName: x.feed}
	if _, exists := functions[cache.NamespaceIndex]; !exists {
		added[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc
	}
	if err := budgets.AddIndexers(added); err != nil {
		return nil, fmt.Errorf("indexing pod disruption budgets: %w", err)
	}
	return x, nil
}

// NewIndex returns an index of budgets for which there is no informer.
func NewIndex(budgets []*policy.PodDisruptionBudget) *Index {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, budget := range budgets {
		utilruntime.Must(indexer.Add(budget)) // It only fails for what is no API object.
	}
	x, err := IndexOf(indexer)
	utilruntime.Must(err) // It only fails if the cache has an index function of that name.
	return x
}

// indexRequest asks the function that feeds an index for the index. A cache has no other place
// where it could be found.
type indexRequest struct{ index *Index }

// feed is called by the cache, which is locked, with what it stores from now on, and with what it
// has stored until now. It has nothing to add to the indices of the cache.
func (x *Index) feed(obj any) ([]string, error) {
	switch obj := obj.(type) {
	case *indexRequest:
		obj.index = x
	case *policy.PodDisruptionBudget:
		x.noteChange(obj)
	}
	return nil, nil
}

func (x *Index) noteChange(budget *policy.PodDisruptionBudget) {
	x.lock.Lock()
	defer x.lock.Unlock()
	x.changes++
	n := x.namespaces[budget.Namespace]
	if n == nil {
		return // All of its budgets are read when it is looked up.
	}
	n.changed[budget.Name] = struct{}{}
	if len(n.changed) > n.maxChanged {
		delete(x.namespaces, n.name)
	}
}

// Version is a state of a cache of budgets. If it has not changed, neither has a budget.
type Version struct {
	changes uint64
	// resourceVersion also tells that budgets have gone while the informer was disconnected.
	resourceVersion string
}

// Version returns the version of the cache.
func (x *Index) Version() Version {
	resourceVersion := x.cache.LastStoreSyncResourceVersion()
	x.lock.Lock()
	defer x.lock.Unlock()
	return Version{x.changes, resourceVersion}
}

// For returns the budgets that select the pod, sorted by name, as they are in the cache. They must
// not be changed.
func (x *Index) For(pod *v1.Pod) []*policy.PodDisruptionBudget {
	n := x.acquire(pod.Namespace)
	defer x.release(n)
	for {
		x.update(n)
		indexed := n.selecting(pod)
		if !x.areCurrent(n, indexed) {
			continue
		}
		var budgets []*policy.PodDisruptionBudget
		for _, budget := range indexed {
			budgets = append(budgets, budget.PodDisruptionBudget)
		}
		return budgets
	}
}

// acquire returns the index of a namespace, which is locked and not forgotten until it is released.
func (x *Index) acquire(namespace string) *namespaceIndex {
	for {
		x.lock.Lock()
		n := x.namespaces[namespace]
		if n == nil {
			n = &namespaceIndex{
				name: namespace, budgets: map[string]*indexedBudget{}, byLabel: map[podLabel][]*indexedBudget{},
				changed: map[string]struct{}{}, maxChanged: math.MaxInt,
			}
			x.namespaces[namespace] = n
		}
		x.lock.Unlock()
		n.lock.Lock()
		if x.keep(n) {
			return n
		}
		n.lock.Unlock()
	}
}

// keep prevents that a namespace is forgotten, unless it was already.
func (x *Index) keep(n *namespaceIndex) bool {
	x.lock.Lock()
	defer x.lock.Unlock()
	n.maxChanged = math.MaxInt
	return x.namespaces[n.name] == n
}

func (x *Index) release(n *namespaceIndex) {
	x.lock.Lock()
	defer x.lock.Unlock()
	defer n.lock.Unlock()
	n.maxChanged = len(n.budgets) / 2
	if len(n.budgets) == 0 {
		delete(x.namespaces, n.name) // No change of a budget would.
	}
}

// update reads what has changed. When it returns, n has exactly the budgets that the cache had at
// one moment, but for those that have gone while the informer was disconnected.
func (x *Index) update(n *namespaceIndex) {
	if !n.complete {
		// The index exists: IndexOf has made sure.
		budgets, _ := x.cache.ByIndex(cache.NamespaceIndex, n.name) //nolint:errcheck
		for _, obj := range budgets {
			budget := obj.(*policy.PodDisruptionBudget)
			n.set(budget.Name, budget)
		}
		n.complete = true
	}
	for {
		changed := x.takeChanged(n)
		if len(changed) == 0 {
			return
		}
		for name := range changed {
			n.set(name, x.read(n.name, name))
		}
	}
}

func (x *Index) takeChanged(n *namespaceIndex) map[string]struct{} {
	x.lock.Lock()
	defer x.lock.Unlock()
	if len(n.changed) == 0 {
		return nil // Not the map, to which others may add.
	}
	changed := n.changed
	n.changed = map[string]struct{}{}
	return changed
}

// read returns a budget from the cache, or nil.
func (x *Index) read(namespace, name string) *policy.PodDisruptionBudget {
	obj, exists, err := x.cache.GetByKey(cache.NewObjectName(namespace, name).String())
	if err != nil || !exists {
		return nil
	}
	return obj.(*policy.PodDisruptionBudget)
}

// areCurrent reports whether the cache still has these budgets, and corrects n otherwise. A cache
// that is replaced as a whole does not call index functions for what is no longer in it.
func (x *Index) areCurrent(n *namespaceIndex, budgets []*indexedBudget) bool {
	current := true
	for _, budget := range budgets {
		if cached := x.read(n.name, budget.name); cached != budget.PodDisruptionBudget {
			n.set(budget.name, cached)
			current = false
		}
	}
	return current
}

// selecting returns the budgets that select the pod, sorted by name.
func (n *namespaceIndex) selecting(pod *v1.Pod) []*indexedBudget {
	var found []*indexedBudget
	find := func(label podLabel) {
		for _, budget := range n.byLabel[label] {
			if budget.selector.matches(pod.Labels) {
				found = append(found, budget)
			}
		}
	}
	find(podLabel{})
	for name, value := range pod.Labels {
		find(podLabel{name: name, value: value})
		find(podLabel{name: name, any: true})
	}
	slices.SortFunc(found, func(a, b *indexedBudget) int { return strings.Compare(a.name, b.name) })
	return found
}

// set stores the current state of a budget, nil if it is gone.
func (n *namespaceIndex) set(name string, budget *policy.PodDisruptionBudget) {
	if known := n.budgets[name]; known != nil {
		if budget != nil && equalSelectors(known.Spec.Selector, budget.Spec.Selector) {
			known.PodDisruptionBudget = budget // The usual change is one of its status.
			return
		}
		n.remove(known)
	}
	if budget != nil {
		n.add(budget)
	}
}

func (n *namespaceIndex) add(budget *policy.PodDisruptionBudget) {
	selector, choices := parse(budget.Spec.Selector)
	added := &indexedBudget{PodDisruptionBudget: budget, name: budget.Name, selector: selector, labels: n.rarest(choices)}
	n.budgets[added.name] = added
	for _, label := range added.labels {
		n.byLabel[label] = append(n.byLabel[label], added)
	}
}

func (n *namespaceIndex) remove(budget *indexedBudget) {
	delete(n.budgets, budget.name)
	for _, label := range budget.labels {
		rest := slices.DeleteFunc(n.byLabel[label], func(other *indexedBudget) bool { return other == budget })
		if len(rest) == 0 {
			delete(n.byLabel, label)
		} else {
			n.byLabel[label] = rest
		}
	}
}

// rarest returns the choice under whose labels the fewest budgets are.
func (n *namespaceIndex) rarest(choices [][]podLabel) []podLabel {
	var best []podLabel
	fewest := math.MaxInt
	for _, labels := range choices {
		budgets := 0
		for _, label := range labels {
			budgets = max(budgets, len(n.byLabel[label]))
		}
		if budgets < fewest {
			best, fewest = labels, budgets
		}
	}
	return best
}
