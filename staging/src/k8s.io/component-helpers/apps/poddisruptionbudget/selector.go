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
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// manyValues is how many values a requirement may have that is looked up by each of them, and
// compared with one after the other. A tenant may write tens of thousands into one budget.
const manyValues = 32

// podLabel is a label of a pod, with that value or with any. The zero label stands for all pods.
type podLabel struct {
	name, value string
	any         bool
}

// selector is the parsed selector of a budget.
type selector struct {
	// short has the requirements but those with many values.
	short labels.Selector
	long  []longRequirement
}

// longRequirement is that a label has one of many values, which are sorted, or none of them.
type longRequirement struct {
	name   string
	values []string
	not    bool
}

// parse returns the selector of a budget, and choices of labels: of each choice, a pod that is
// selected has exactly one label. There is none if no pod is selected, because the selector is
// missing or invalid.
func parse(spec *metav1.LabelSelector) (parsed *selector, choices [][]podLabel) {
	parsed = &selector{short: labels.Nothing()}
	all, err := metav1.LabelSelectorAsSelector(spec)
	if err != nil {
		return parsed, nil
	}
	requirements, selectable := all.Requirements()
	if !selectable {
		return parsed, nil
	}
	short := map[string]labels.Requirement{} // Each once, however often the budget has it.
	for _, requirement := range requirements {
		name, values, operator := requirement.Key(), requirement.ValuesUnsorted(), requirement.Operator()
		slices.Sort(values)
		values = slices.Compact(values)
		if len(values) > manyValues {
			parsed.long = append(parsed.long, longRequirement{name, values, operator == selection.NotIn})
		} else {
			short[requirement.String()] = requirement
		}
		if choice := needed(name, operator, values); choice != nil {
			choices = append(choices, choice)
		}
	}
	if choices == nil {
		choices = [][]podLabel{{{}}}
	}
	// All at once: each Add sorts what is there.
	parsed.short = labels.NewSelector().Add(slices.Collect(maps.Values(short))...)
	return parsed, choices
}

// needed returns the labels of which a pod has exactly one if it meets the requirement, or nil.
func needed(name string, operator selection.Operator, values []string) []podLabel {
	switch operator {
	case selection.In, selection.Equals, selection.DoubleEquals:
		if len(values) > manyValues {
			break
		}
		needed := make([]podLabel, 0, len(values))
		for _, value := range values {
			needed = append(needed, podLabel{name: name, value: value})
		}
		return needed
	case selection.Exists:
	default:
		return nil
	}
	return []podLabel{{name: name, any: true}}
}

func (s *selector) matches(pod labels.Set) bool {
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
	return s.short.Matches(pod)
}

// equalSelectors reports whether two selectors are the same. Neither the generation nor the UID of
// their budgets says more: they need not be trusted.
func equalSelectors(a, b *metav1.LabelSelector) bool {
	if a == nil || b == nil {
		return a == b
	}
	return maps.Equal(a.MatchLabels, b.MatchLabels) &&
		slices.EqualFunc(a.MatchExpressions, b.MatchExpressions, func(a, b metav1.LabelSelectorRequirement) bool {
			return a.Key == b.Key && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
		})
}
