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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// nodeMatcher is a node selector that matches in constant time by names: kubectl writes a
// term for each node, and a maintenance may have thousands.
type nodeMatcher struct {
	names sets.Set[string]
	// others are the terms that do more than name a node; nil if there are none.
	others *nodeaffinity.NodeSelector
}

func newNodeMatcher(selector *v1.NodeSelector) (*nodeMatcher, error) {
	matcher := &nodeMatcher{names: sets.New[string]()}
	others := &v1.NodeSelector{}
	for _, term := range selector.NodeSelectorTerms {
		if name, ok := namedNode(&term); ok {
			matcher.names.Insert(name)
		} else {
			others.NodeSelectorTerms = append(others.NodeSelectorTerms, term)
		}
	}
	if len(others.NodeSelectorTerms) == 0 {
		return matcher, nil
	}
	var err error
	matcher.others, err = nodeaffinity.NewNodeSelector(others)
	return matcher, err
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

// matches tells whether the node is selected. A nil node is not.
func (m *nodeMatcher) matches(node *v1.Node) bool {
	if node == nil {
		return false
	}
	return m.names.Has(node.Name) || m.others != nil && m.others.Match(node)
}
