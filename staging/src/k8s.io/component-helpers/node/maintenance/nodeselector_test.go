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

package maintenance

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNodeMatcher(t *testing.T) {
	named := func(names ...string) v1.NodeSelectorTerm {
		return v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: names}}}
	}
	labeled := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "a", Operator: v1.NodeSelectorOpExists}}}
	both := named("n")
	both.MatchExpressions = labeled.MatchExpressions
	otherLabel := named("n")
	otherLabel.MatchExpressions = []v1.NodeSelectorRequirement{{Key: "a", Operator: v1.NodeSelectorOpIn, Values: []string{"8"}}}
	notOther := named("o")
	notOther.MatchFields[0].Operator = v1.NodeSelectorOpNotIn
	not := named("n")
	not.MatchFields[0].Operator = v1.NodeSelectorOpNotIn
	in := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "a", Operator: v1.NodeSelectorOpIn, Values: []string{"x", ""}}}}
	host := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
		{Key: "a", Operator: v1.NodeSelectorOpIn, Values: []string{""}}, {Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{"n"}},
	}}
	plain, withLabel, other := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "", v1.LabelHostname: "n"}}}, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "o"}}
	for _, tc := range []struct {
		name  string
		terms []v1.NodeSelectorTerm
		want  []bool // Of plain, withLabel, other and no node.
	}{
		{"nothing", nil, []bool{false, false, false, false}},
		{"empty term", []v1.NodeSelectorTerm{{}}, []bool{false, false, false, false}},
		{"one name", []v1.NodeSelectorTerm{named("n")}, []bool{true, true, false, false}},
		{"two names", []v1.NodeSelectorTerm{named("n"), named("o")}, []bool{true, true, true, false}},
		{"label", []v1.NodeSelectorTerm{labeled}, []bool{false, true, false, false}},
		{"label or name", []v1.NodeSelectorTerm{labeled, named("o")}, []bool{false, true, true, false}},
		{"label and name", []v1.NodeSelectorTerm{both}, []bool{false, true, false, false}},
		{"values of a label", []v1.NodeSelectorTerm{in}, []bool{false, true, false, false}},
		{"values or name", []v1.NodeSelectorTerm{in, named("n")}, []bool{true, true, false, false}},
		{"label and host name", []v1.NodeSelectorTerm{host}, []bool{false, true, false, false}},
		{"another name", []v1.NodeSelectorTerm{named("other")}, []bool{false, false, false, false}},
		{"not another name", []v1.NodeSelectorTerm{notOther}, []bool{true, true, false, false}},
		{"another name or label", []v1.NodeSelectorTerm{named("other"), labeled}, []bool{false, true, false, false}},
		{"name and another label", []v1.NodeSelectorTerm{otherLabel}, []bool{false, false, false, false}},
		{"two names at once", []v1.NodeSelectorTerm{{MatchFields: slices.Concat(named("n").MatchFields, named("o").MatchFields)}}, []bool{false, false, false, false}},
		{"not the name", []v1.NodeSelectorTerm{not}, []bool{false, false, true, false}},
	} {
		matcher, err := NewNodeMatcher(&v1.NodeSelector{NodeSelectorTerms: tc.terms})
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		var got []bool
		for _, node := range []*v1.Node{plain, withLabel, other, nil} {
			selected := matcher.Matches(node)
			got = append(got, selected)
			if node != nil && SelectsNode(&v1.NodeSelector{NodeSelectorTerms: tc.terms}, node) != selected {
				t.Errorf("%s: SelectsNode decides otherwise than the matcher for %v", tc.name, node.ObjectMeta)
			}
			if selected && !slices.ContainsFunc(slices.Collect(NodeKeysOf(node)), func(key NodeKey) bool { return slices.Contains(slices.Collect(matcher.Keys()), key) }) {
				t.Errorf("%s: node %s is not found by a key", tc.name, node.Name)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", tc.name, diff)
		}
	}
}

// An invalid term, which the API server rejects, selects nothing.
func TestInvalidNodeSelectors(t *testing.T) {
	invalid := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "a", Operator: "Like", Values: []string{"x"}}}}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "x"}}}
	if _, err := NewNodeMatcher(&v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{invalid}}); err == nil || !strings.Contains(err.Error(), "term 0: ") {
		t.Errorf("unexpected error: %v", err)
	}
	if SelectsNode(&v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{invalid}}, node) {
		t.Error("an invalid term selects a node")
	}
	if SelectsNode(nil, node) || SelectsOnly(nil, "n") {
		t.Error("no selector selects a node")
	}
}

func TestSelectsOnly(t *testing.T) {
	name := v1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{"n"}}
	not := name
	not.Operator = v1.NodeSelectorOpNotIn
	two := name
	two.Values = []string{"n", "o"}
	label := v1.NodeSelectorRequirement{Key: "a", Operator: v1.NodeSelectorOpExists}
	term := func(fields ...v1.NodeSelectorRequirement) v1.NodeSelectorTerm {
		return v1.NodeSelectorTerm{MatchFields: fields}
	}
	tests := map[string]struct {
		terms []v1.NodeSelectorTerm
		want  bool
	}{
		"the name":           {terms: []v1.NodeSelectorTerm{term(name)}, want: true},
		"no term":            {},
		"an empty term":      {terms: []v1.NodeSelectorTerm{term()}},
		"two terms":          {terms: []v1.NodeSelectorTerm{term(name), term(name)}},
		"two requirements":   {terms: []v1.NodeSelectorTerm{term(name, name)}},
		"the name and label": {terms: []v1.NodeSelectorTerm{{MatchFields: term(name).MatchFields, MatchExpressions: []v1.NodeSelectorRequirement{label}}}},
		"not the name":       {terms: []v1.NodeSelectorTerm{term(not)}},
		"two names":          {terms: []v1.NodeSelectorTerm{term(two)}},
		"a label":            {terms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{label}}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			selector := &v1.NodeSelector{NodeSelectorTerms: tc.terms}
			if got := SelectsOnly(selector, "n"); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
			if SelectsOnly(selector, "other") {
				t.Error("selects another node")
			}
		})
	}
}

// A term that needs a name or a value is not evaluated for nodes that have another one.
func TestNeededKeys(t *testing.T) {
	requirement := func(key string, operator v1.NodeSelectorOperator, values ...string) v1.NodeSelectorRequirement {
		return v1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	zone := requirement("zone", v1.NodeSelectorOpIn, "y", "z", "y")
	for _, tc := range []struct {
		name   string
		fields []v1.NodeSelectorRequirement
		labels []v1.NodeSelectorRequirement
		want   []NodeKey
	}{
		{"nothing", nil, nil, []NodeKey{{}}},
		{"a label", nil, []v1.NodeSelectorRequirement{requirement("zone", v1.NodeSelectorOpExists)}, []NodeKey{{}}},
		{"another value", nil, []v1.NodeSelectorRequirement{requirement("zone", v1.NodeSelectorOpNotIn, "z")}, []NodeKey{{}}},
		{"values", nil, []v1.NodeSelectorRequirement{requirement("os", v1.NodeSelectorOpExists), zone}, []NodeKey{{"zone", "y"}, {"zone", "z"}}},
		{"the host name first", nil, []v1.NodeSelectorRequirement{zone, requirement(v1.LabelHostname, v1.NodeSelectorOpIn, "n"), zone}, []NodeKey{{v1.LabelHostname, "n"}}},
		{"the name first", []v1.NodeSelectorRequirement{requirement("metadata.name", v1.NodeSelectorOpIn, "n")}, []v1.NodeSelectorRequirement{zone}, []NodeKey{{"metadata.name", "n"}}},
	} {
		got := neededKeys(&v1.NodeSelectorTerm{MatchFields: tc.fields, MatchExpressions: tc.labels})
		slices.SortFunc(got, func(a, b NodeKey) int { return strings.Compare(a.Value, b.Value) })
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}
