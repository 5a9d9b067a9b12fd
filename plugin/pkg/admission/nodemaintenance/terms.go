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
	helpers "k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// maxCombinations is the maximum number of combinations of label values for which a term is checked
// against the nodes.
const maxCombinations = 10000

// tooMuch returns why the terms of a selector are not matched with the nodes, or an empty string.
func tooMuch(selector *v1.NodeSelector) string {
	what, count, most := helpers.SelectorExcess(selector)
	if what == "" {
		return ""
	}
	return fmt.Sprintf("spec.nodeSelector has %d %s, and at most %d are checked", count, what, most)
}

// labelTerm is a term that does not name its node, together with its matches in the cluster.
//
// The nodes that it will match are known if its labels are in use now: a new node with the labels
// of existing nodes is what these labels are meant for. So each combination of the values required
// with In, one value for each key, must be found on a node that the term matches. Otherwise a value
// that no node has yet, listed beside a value that nodes have, would later match nodes on which the
// user has no permission.
type labelTerm struct {
	*nodeaffinity.NodeSelector
	path *field.Path
	// keys are the labels that must have one of several values, sorted.
	keys []string
	// combinations is the number of combinations of their values. It is not exact beyond
	// maxCombinations.
	combinations int
	// found are the combinations on the nodes that the term matches.
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

// recordMatch records that the term matches the node.
func (t *labelTerm) recordMatch(node *v1.Node) {
	values := make([]string, len(t.keys))
	for i, key := range t.keys {
		values[i] = node.Labels[key]
	}
	t.found.Insert(strings.Join(values, ",")) // Label values contain no comma.
}

// isKnown reports whether the term requires labels with In, and all of their combinations were
// found: it then matches no labels that are not in use. This includes terms that can never match a
// node.
func (t *labelTerm) isKnown() bool {
	return len(t.keys) > 0 && t.combinations <= maxCombinations && t.found.Len() == t.combinations
}

// describe returns why the nodes that the term will match are unknown.
func (t *labelTerm) describe() string {
	switch {
	case t.found.Len() == 0:
		return fmt.Sprintf("%s currently selects no node", t.path)
	case len(t.keys) == 0:
		return fmt.Sprintf("%s has neither a node name nor a label with the operator In", t.path)
	}
	return fmt.Sprintf("%s accepts values of %q that no selected node currently has", t.path, strings.Join(t.keys, ", "))
}
