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
	"iter"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// nodeMatcher is a node selector that does not go through all of its terms: people write a term
// for each node, and a maintenance may have thousands.
type nodeMatcher struct {
	names sets.Set[string]
	// others are the terms that do more than name a node, by the keys of which a node needs one.
	others map[nodeKey][]*nodeaffinity.NodeSelector
}

// nodeKey is something that a node has, and by which selectors are found that may match it: its
// name, as the field metadata.name, or a label. Every node has the zero key.
type nodeKey struct{ name, value string }

func newNodeMatcher(selector *v1.NodeSelector) (*nodeMatcher, error) {
	matcher := &nodeMatcher{names: sets.New[string](), others: map[nodeKey][]*nodeaffinity.NodeSelector{}}
	for i, term := range selector.NodeSelectorTerms {
		if name, ok := namedNode(&term); ok {
			matcher.names.Insert(name)
			continue
		}
		compiled, err := nodeaffinity.NewNodeSelector(&v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}})
		if err != nil {
			return nil, fmt.Errorf("term %d: %w", i, err)
		}
		for _, key := range neededKeys(&term) {
			matcher.others[key] = append(matcher.others[key], compiled)
		}
	}
	return matcher, nil
}

// namedNode returns the name in a term that does nothing else than name a node.
func namedNode(term *v1.NodeSelectorTerm) (string, bool) {
	if len(term.MatchExpressions) > 0 || len(term.MatchFields) != 1 {
		return "", false
	}
	field := term.MatchFields[0]
	if field.Key != metav1.ObjectNameField || field.Operator != v1.NodeSelectorOpIn || len(field.Values) != 1 {
		return "", false
	}
	return field.Values[0], true
}

// neededKeys returns keys of which a node needs one for the term to match it.
func neededKeys(term *v1.NodeSelectorTerm) []nodeKey {
	var needed *v1.NodeSelectorRequirement
	for _, requirements := range [][]v1.NodeSelectorRequirement{term.MatchFields, term.MatchExpressions} {
		for i := range requirements {
			// Of labels, the one that no other node has takes fewest nodes.
			if requirements[i].Operator == v1.NodeSelectorOpIn && (needed == nil || requirements[i].Key == v1.LabelHostname) {
				needed = &requirements[i]
			}
		}
	}
	if needed == nil {
		return []nodeKey{{}}
	}
	var keys []nodeKey
	for value := range sets.New(needed.Values...) {
		keys = append(keys, nodeKey{needed.Key, value})
	}
	return keys
}

// keysOf returns what the node has.
func keysOf(node *v1.Node) iter.Seq[nodeKey] {
	return func(yield func(nodeKey) bool) {
		if !yield(nodeKey{}) || !yield(nodeKey{metav1.ObjectNameField, node.Name}) {
			return
		}
		for name, value := range node.Labels {
			if !yield(nodeKey{name, value}) {
				return
			}
		}
	}
}

// keys returns keys of which every node has one that is selected.
func (m *nodeMatcher) keys() iter.Seq[nodeKey] {
	return func(yield func(nodeKey) bool) {
		for name := range m.names {
			if !yield(nodeKey{metav1.ObjectNameField, name}) {
				return
			}
		}
		for key := range m.others {
			if !yield(key) {
				return
			}
		}
	}
}

// matches tells whether the node is selected. A nil node is not.
func (m *nodeMatcher) matches(node *v1.Node) bool {
	if node == nil {
		return false
	}
	if m.names.Has(node.Name) {
		return true
	}
	for key := range keysOf(node) {
		for _, term := range m.others[key] {
			if term.Match(node) {
				return true
			}
		}
	}
	return false
}
