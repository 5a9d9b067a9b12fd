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
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	policylisters "k8s.io/client-go/listers/policy/v1"
)

// budgetFinder finds the PodDisruptionBudgets that select pods. It reads the selectors of a
// namespace once, and evaluates only those that need a label of the pod, or none: a tenant may
// have thousands of budgets, and of pods that wait for one.
type budgetFinder struct {
	lister policylisters.PodDisruptionBudgetLister
	// namespaces has the budgets of each namespace by a label that a pod needs for one of them.
	namespaces map[string]map[podLabel][]budgetSelector
}

// podLabel is a label of a pod. The zero label stands for all pods.
type podLabel struct{ name, value string }

type budgetSelector struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
}

func newBudgetFinder(lister policylisters.PodDisruptionBudgetLister) *budgetFinder {
	return &budgetFinder{lister: lister, namespaces: map[string]map[podLabel][]budgetSelector{}}
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
			if budget.selector.Matches(labels.Set(pod.Labels)) {
				found = append(found, budget.PodDisruptionBudget)
			}
		}
	}
	find(podLabel{})
	for name, value := range pod.Labels {
		find(podLabel{name, value})
	}
	return found
}

// read sorts the budgets of a namespace by labels.
func (f *budgetFinder) read(namespace string) map[podLabel][]budgetSelector {
	byLabel := map[podLabel][]budgetSelector{}
	budgets, err := f.lister.PodDisruptionBudgets(namespace).List(labels.Everything())
	if err != nil {
		return byLabel // A lister of a cache has no errors.
	}
	for _, budget := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			continue // One that is invalid selects no pod.
		}
		for _, label := range neededLabels(selector) {
			byLabel[label] = append(byLabel[label], budgetSelector{budget, selector})
		}
	}
	return byLabel
}

// neededLabels returns labels of which a pod has exactly one if the selector matches it.
func neededLabels(selector labels.Selector) []podLabel {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return nil
	}
	for _, requirement := range requirements {
		switch requirement.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			var needed []podLabel
			for value := range requirement.Values() {
				needed = append(needed, podLabel{requirement.Key(), value})
			}
			return needed
		}
	}
	return []podLabel{{}}
}
