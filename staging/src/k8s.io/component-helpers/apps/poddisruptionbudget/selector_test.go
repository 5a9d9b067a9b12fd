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
	"runtime"
	"slices"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// manyLabels returns n generated values of a label, followed by the given ones.
func manyLabels(n int, values ...string) []string {
	many := make([]string, 0, n+len(values))
	for i := range n {
		many = append(many, fmt.Sprintf("v%05d", i))
	}
	return append(many, values...)
}

// A budget with tens of thousands of values is indexed by the name of the label only.
func TestBudgetWithManyValues(t *testing.T) {
	index := NewIndex([]*policyv1.PodDisruptionBudget{
		newBudget("b", in("default"), selecting(withExpressions(requirement("app", metav1.LabelSelectorOpIn, manyLabels(20_000)...)))),
	})
	if got := index.For(podOf("default", "app", "v00001")); len(got) != 1 {
		t.Errorf("found %q", names(got))
	}
	if got := index.For(podOf("default", "app", "w")); len(got) > 0 {
		t.Errorf("found %q for a value that it does not have", names(got))
	}
	if labels := index.namespaces["default"].byLabel; len(labels) != 1 {
		t.Errorf("indexed by %d labels", len(labels))
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
				return withExpressions(slices.Repeat([]metav1.LabelSelectorRequirement{requirement("a", metav1.LabelSelectorOpExists)}, size)...)
			},
			func(int) int { return 1 },
		},
	} {
		var takes []uint64
		for _, size := range []int{500, 5_000} {
			selector := tc.selector(size)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			parsed, _ := parse(selector)
			runtime.ReadMemStats(&after)
			takes = append(takes, after.TotalAlloc-before.TotalAlloc)
			if requirements, _ := parsed.short.Requirements(); len(requirements) != tc.keeps(size) {
				t.Errorf("%s: keeps %d requirements, want %d", name, len(requirements), tc.keeps(size))
			}
		}
		// Quadratic growth would take a hundred times as much.
		if takes[1] > 30*takes[0] {
			t.Errorf("%s: parsing 5,000 requirements allocates %d bytes, parsing 500 allocates %d", name, takes[1], takes[0])
		}
	}
}

// Every part of a selector counts.
func TestEqualSelectors(t *testing.T) {
	full := func() *metav1.LabelSelector {
		selector := withLabels("a", "1")
		selector.MatchExpressions = []metav1.LabelSelectorRequirement{requirement("b", metav1.LabelSelectorOpIn, "1", "2")}
		return selector
	}
	if !equalSelectors(full(), full()) || !equalSelectors(nil, nil) {
		t.Error("equal selectors are not")
	}
	for name, change := range map[string]func(*metav1.LabelSelector){
		"label":         func(s *metav1.LabelSelector) { s.MatchLabels["a"] = "2" },
		"no expression": func(s *metav1.LabelSelector) { s.MatchExpressions = nil },
		"key":           func(s *metav1.LabelSelector) { s.MatchExpressions[0].Key = "c" },
		"operator":      func(s *metav1.LabelSelector) { s.MatchExpressions[0].Operator = metav1.LabelSelectorOpNotIn },
		"values":        func(s *metav1.LabelSelector) { s.MatchExpressions[0].Values[1] = "3" },
	} {
		changed := full()
		if change(changed); equalSelectors(full(), changed) {
			t.Errorf("%s: not seen", name)
		}
	}
	if equalSelectors(nil, &metav1.LabelSelector{}) || equalSelectors(&metav1.LabelSelector{}, nil) {
		t.Error("a missing selector selects nothing, an empty one everything")
	}
}
