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
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	policylisters "k8s.io/client-go/listers/policy/v1"
)

// manyValues is how many values a requirement may have that is looked up by each of them, and
// compared with one after the other. A tenant may write tens of thousands into one budget.
const manyValues = 8

// budgetFinder finds the PodDisruptionBudgets that select pods. It goes through those of a
// namespace once, and evaluates only those that need a label of the pod, or none: a tenant may
// have thousands of budgets, and of pods that wait for one.
type budgetFinder struct {
	lister    policylisters.PodDisruptionBudgetLister
	selectors *budgetSelectors
	// namespaces has the budgets of each namespace by a label that a pod needs for one of them.
	namespaces map[string]map[podLabel][]selectingBudget
}

// podLabel is a label of a pod, with that value or with any. The zero label stands for all pods.
type podLabel struct {
	name, value string
	any         bool
}

type selectingBudget struct {
	*policyv1.PodDisruptionBudget
	*budgetSelector
}

func newBudgetFinder(lister policylisters.PodDisruptionBudgetLister, selectors *budgetSelectors) *budgetFinder {
	return &budgetFinder{lister: lister, selectors: selectors, namespaces: map[string]map[podLabel][]selectingBudget{}}
}

// of returns the budgets that select the pod.
func (f *budgetFinder) of(pod *v1.Pod) []*policyv1.PodDisruptionBudget {
	byLabel, known := f.namespaces[pod.Namespace]
	if !known {
		byLabel = f.read(pod.Namespace)
		f.namespaces[pod.Namespace] = byLabel
	}
	var found []*policyv1.PodDisruptionBudget
	find := func(label podLabel) {
		for _, budget := range byLabel[label] {
			if budget.matches(pod.Labels) {
				found = append(found, budget.PodDisruptionBudget)
			}
		}
	}
	find(podLabel{})
	for name, value := range pod.Labels {
		find(podLabel{name: name, value: value})
		find(podLabel{name: name, any: true})
	}
	return found
}

// read sorts the budgets of a namespace by labels.
func (f *budgetFinder) read(namespace string) map[podLabel][]selectingBudget {
	byLabel := map[podLabel][]selectingBudget{}
	lister := f.lister.PodDisruptionBudgets(namespace)
	budgets, err := lister.List(labels.Everything())
	if err != nil {
		return byLabel // A lister of a cache has no errors.
	}
	for _, budget := range budgets {
		selector := f.selectors.of(budget, lister)
		for _, label := range selector.needed {
			byLabel[label] = append(byLabel[label], selectingBudget{budget, selector})
		}
	}
	return byLabel
}

// budgetSelectors keeps the parsed selectors of budgets from one sync of a node to the next. Those
// of budgets that are gone are forgotten.
type budgetSelectors struct {
	lock  sync.Mutex
	known map[types.NamespacedName]*budgetSelector
}

func newBudgetSelectors() *budgetSelectors {
	return &budgetSelectors{known: map[types.NamespacedName]*budgetSelector{}}
}

// of returns the selector of a budget that the lister had.
func (s *budgetSelectors) of(budget *policyv1.PodDisruptionBudget, lister policylisters.PodDisruptionBudgetNamespaceLister) *budgetSelector {
	name := types.NamespacedName{Namespace: budget.Namespace, Name: budget.Name}
	s.lock.Lock()
	known := s.known[name]
	s.lock.Unlock()
	if known != nil && known.uid == budget.UID && known.generation == budget.Generation {
		return known
	}
	// Others do not wait for that.
	read := newBudgetSelector(budget)
	s.lock.Lock()
	defer s.lock.Unlock()
	// One that has gone meanwhile was forgotten already, or will be.
	if _, err := lister.Get(name.Name); err == nil {
		s.known[name] = read
	}
	return read
}

// forget handles the event that a budget is gone.
func (s *budgetSelectors) forget(obj any) {
	budget := obj.(*policyv1.PodDisruptionBudget)
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.known, types.NamespacedName{Namespace: budget.Namespace, Name: budget.Name})
}

// budgetSelector is the selector of a budget.
type budgetSelector struct {
	uid        types.UID
	generation int64
	// needed are labels of which a pod has exactly one if the selector matches it.
	needed []podLabel
	// selector has the requirements but those with many values.
	selector labels.Selector
	long     []longRequirement
}

// longRequirement is that a label has one of many values, which are sorted, or none of them.
type longRequirement struct {
	name   string
	values []string
	not    bool
}

func newBudgetSelector(budget *policyv1.PodDisruptionBudget) *budgetSelector {
	read := &budgetSelector{uid: budget.UID, generation: budget.Generation, selector: labels.Nothing()}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return read // One that is invalid selects no pod.
	}
	requirements, selectable := selector.Requirements()
	if !selectable {
		return read
	}
	short := map[string]labels.Requirement{} // Each once, however often the budget has it.
	for _, requirement := range requirements {
		name, values := requirement.Key(), requirement.ValuesUnsorted()
		var needed []podLabel
		switch requirement.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			if len(values) > manyValues {
				needed = []podLabel{{name: name, any: true}}
				break
			}
			slices.Sort(values)
			for _, value := range slices.Compact(values) {
				needed = append(needed, podLabel{name: name, value: value})
			}
		}
		if len(values) > manyValues {
			slices.Sort(values)
			read.long = append(read.long, longRequirement{name, values, requirement.Operator() == selection.NotIn})
		} else {
			short[requirement.String()] = requirement
		}
		if read.needed == nil || len(needed) > 0 && read.needed[0].any {
			read.needed = needed
		}
	}
	if read.needed == nil {
		read.needed = []podLabel{{}}
	}
	// All at once: each Add sorts what is there.
	read.selector = labels.NewSelector().Add(slices.Collect(maps.Values(short))...)
	return read
}

func (s *budgetSelector) matches(pod labels.Set) bool {
	for _, requirement := range s.long {
		value, exists := pod[requirement.name]
		found := false
		if exists {
			_, found = slices.BinarySearch(requirement.values, value)
		}
		if found == requirement.not {
			return false
		}
	}
	return s.selector.Matches(pod)
}
