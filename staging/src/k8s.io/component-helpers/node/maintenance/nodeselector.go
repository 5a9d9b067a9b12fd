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
	"fmt"
	"iter"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Node selectors of maintenances often have a term for each node, up to thousands of them: kubectl
// writes such selectors. The functions of this file evaluate only the terms that can match a node.

// NodeMatcher is a node selector that is ready to match many nodes.
type NodeMatcher struct {
	names sets.Set[string]
	// others are the terms that do more than name a node, by their needed keys.
	others map[NodeKey][]*nodeaffinity.NodeSelector
}

// NodeKey is a property of a node by which the selectors that may match it are found: a label, or
// the name as the field metadata.name. Every node has the zero key.
type NodeKey struct{ Name, Value string }

// NewNodeMatcher compiles a selector. It fails if a term is invalid.
func NewNodeMatcher(selector *v1.NodeSelector) (*NodeMatcher, error) {
	matcher := &NodeMatcher{names: sets.New[string](), others: map[NodeKey][]*nodeaffinity.NodeSelector{}}
	for i := range selector.NodeSelectorTerms {
		term := &selector.NodeSelectorTerms[i]
		if name, named := NamedNode(term); named && hasOneRequirement(term) {
			matcher.names.Insert(name)
			continue
		}
		compiled, err := compileTerm(term)
		if err != nil {
			return nil, fmt.Errorf("term %d: %w", i, err)
		}
		for _, key := range neededKeys(term) {
			matcher.others[key] = append(matcher.others[key], compiled)
		}
	}
	return matcher, nil
}

// MatchNoNode returns a matcher of no node, for a selector that is invalid.
func MatchNoNode() *NodeMatcher { return &NodeMatcher{} }

// Matches reports whether the node is selected. A nil node is not.
func (m *NodeMatcher) Matches(node *v1.Node) bool {
	if node == nil {
		return false
	}
	if m.names.Has(node.Name) {
		return true
	}
	for key := range NodeKeysOf(node) {
		for _, term := range m.others[key] {
			if term.Match(node) {
				return true
			}
		}
	}
	return false
}

// Keys returns keys of which every selected node has at least one.
func (m *NodeMatcher) Keys() iter.Seq[NodeKey] {
	return func(yield func(NodeKey) bool) {
		for name := range m.names {
			if !yield(NodeKey{metav1.ObjectNameField, name}) {
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

// NodeKeysOf returns the keys of the node.
func NodeKeysOf(node *v1.Node) iter.Seq[NodeKey] {
	return func(yield func(NodeKey) bool) {
		if !yield(NodeKey{}) || !yield(NodeKey{metav1.ObjectNameField, node.Name}) {
			return
		}
		for name, value := range node.Labels {
			if !yield(NodeKey{name, value}) {
				return
			}
		}
	}
}

// SelectsNode reports whether the selector, which may be nil, selects the node. It compiles
// nothing in advance: for several nodes, NewNodeMatcher is faster. An invalid term, which the API
// server rejects, matches no node.
func SelectsNode(selector *v1.NodeSelector, node *v1.Node) bool {
	return selector != nil && slices.ContainsFunc(selector.NodeSelectorTerms, func(term v1.NodeSelectorTerm) bool {
		if name, named := NamedNode(&term); named && (name != node.Name || hasOneRequirement(&term)) {
			return name == node.Name
		}
		compiled, err := compileTerm(&term)
		return err == nil && compiled.Match(node)
	})
}

// SelectsOnly reports whether the selector consists of the name of this node, so that it selects
// no other node, whatever the labels of nodes.
func SelectsOnly(selector *v1.NodeSelector, nodeName string) bool {
	if selector == nil || len(selector.NodeSelectorTerms) != 1 {
		return false
	}
	term := &selector.NodeSelectorTerms[0]
	name, named := NamedNode(term)
	return named && name == nodeName && hasOneRequirement(term)
}

// NamedNode returns the only node that the term can match, if it names one. It may have further
// requirements: terms are interpreted as by the scheduler, where all requirements must match, and
// In has one value for a field.
func NamedNode(term *v1.NodeSelectorTerm) (name string, named bool) {
	for _, requirement := range term.MatchFields {
		if requirement.Key == metav1.ObjectNameField && requirement.Operator == v1.NodeSelectorOpIn && len(requirement.Values) == 1 {
			return requirement.Values[0], true
		}
	}
	return "", false
}

// Terms that name no node are matched with every node. These bounds keep that below a second for thousands
// of nodes, because it is done for whoever may write maintenances or budgets, and delete no node.
const (
	MaxLabelTerms        = 100
	MaxLabelRequirements = 1000
	MaxLabelValues       = 10000
)

// SelectorExcess returns of what the terms that name no node have more than these bounds, how many, and how
// many they may have; empty if they are within them.
func SelectorExcess(selector *v1.NodeSelector) (what string, count, most int) {
	terms, requirements, values := 0, 0, 0
	for i := range selector.NodeSelectorTerms {
		term := &selector.NodeSelectorTerms[i]
		if _, named := NamedNode(term); named || len(term.MatchExpressions)+len(term.MatchFields) == 0 {
			continue // An empty term never matches a node.
		}
		terms++
		for _, listed := range [][]v1.NodeSelectorRequirement{term.MatchExpressions, term.MatchFields} {
			requirements += len(listed)
			for j := range listed {
				values += len(listed[j].Values)
			}
		}
	}
	switch {
	case terms > MaxLabelTerms:
		return "terms that name no node", terms, MaxLabelTerms
	case requirements > MaxLabelRequirements:
		return "requirements in terms that name no node", requirements, MaxLabelRequirements
	case values > MaxLabelValues:
		return "values in terms that name no node", values, MaxLabelValues
	}
	return "", 0, 0
}

func hasOneRequirement(term *v1.NodeSelectorTerm) bool {
	return len(term.MatchFields)+len(term.MatchExpressions) == 1
}

func compileTerm(term *v1.NodeSelectorTerm) (*nodeaffinity.NodeSelector, error) {
	return nodeaffinity.NewNodeSelector(&v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{*term}})
}

// neededKeys returns keys of which a node needs at least one for the term to match it.
func neededKeys(term *v1.NodeSelectorTerm) []NodeKey {
	var needed *v1.NodeSelectorRequirement
	for _, requirements := range [][]v1.NodeSelectorRequirement{term.MatchFields, term.MatchExpressions} {
		for i := range requirements {
			// The host name is the label that selects the fewest nodes.
			if requirements[i].Operator == v1.NodeSelectorOpIn && (needed == nil || requirements[i].Key == v1.LabelHostname) {
				needed = &requirements[i]
			}
		}
	}
	if needed == nil {
		return []NodeKey{{}}
	}
	var keys []NodeKey
	for value := range sets.New(needed.Values...) {
		keys = append(keys, NodeKey{needed.Key, value})
	}
	return keys
}
