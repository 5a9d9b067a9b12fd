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
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// maxCombinations is up to how many combinations of label values a term may have to be
// checked against the nodes one by one.
const maxCombinations = 10000

// labelTerm is a term that does not name its node, and what the nodes of the cluster say
// of it.
//
// Which nodes it will match is known as far as its labels have nodes now: a node that
// comes with the labels of others is what those labels are for. So each combination of
// the values that In requires, one value of each key, must be on a node that the term
// matches. Otherwise a value that no node has yet, written beside one that nodes have,
// would take nodes later that the user has no right on.
type labelTerm struct {
	*nodeaffinity.NodeSelector
	path *field.Path
	// keys are the labels that must have one of several values, in order.
	keys []string
	// combinations is how many combinations of their values there are. Beyond
	// maxCombinations it is not exact.
	combinations int
	// found are those that nodes have which the term matches.
	found sets.Set[string]
}

func newLabelTerm(term v1.NodeSelectorTerm, compiled *nodeaffinity.NodeSelector, path *field.Path) *labelTerm {
	values := map[string]sets.Set[string]{}
	var keys []string
	for _, requirement := range term.MatchExpressions {
		if requirement.Operator != v1.NodeSelectorOpIn {
			continue
		}
		required := sets.New(requirement.Values...)
		if others, found := values[requirement.Key]; found {
			required = required.Intersection(others)
		} else {
			keys = append(keys, requirement.Key)
		}
		values[requirement.Key] = required
	}
	slices.Sort(keys)
	combinations := 1
	for _, key := range keys {
		combinations = min(combinations*values[key].Len(), maxCombinations+1)
	}
	return &labelTerm{NodeSelector: compiled, path: path, keys: keys, combinations: combinations, found: sets.New[string]()}
}

// noteMatch records that the term matches the node.
func (t *labelTerm) noteMatch(node *v1.Node) {
	values := make([]string, len(t.keys))
	for i, key := range t.keys {
		values[i] = node.Labels[key]
	}
	t.found.Insert(strings.Join(values, ",")) // No value of a label has a comma.
}

// isKnown reports whether the term is limited to labels, and nodes with all of them were
// found: it says nothing then of nodes that nobody knows. Nor does one whose labels no
// node can ever have.
func (t *labelTerm) isKnown() bool {
	return len(t.keys) > 0 && t.combinations <= maxCombinations && t.found.Len() == t.combinations
}

// describe says why it is unknown which nodes the term will match.
func (t *labelTerm) describe() string {
	switch {
	case t.found.Len() == 0:
		return fmt.Sprintf("%s selects no node now", t.path)
	case len(t.keys) == 0:
		return fmt.Sprintf("%s has no name and no label with the operator In", t.path)
	}
	return fmt.Sprintf("%s takes values of %q that no selected node has now", t.path, strings.Join(t.keys, ", "))
}
