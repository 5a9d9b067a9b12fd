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

// Package nodeselection selects the nodes of a maintenance as the arguments and the flags of a
// command say, and names the maintenance after them.
package nodeselection

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// maxPrefixLength keeps names readable, and leaves room for the suffix of the server.
const maxPrefixLength = 40

// ByName selects nodes by their names. A requirement on a field has exactly one value, so each
// node gets a term.
func ByName(names []string) *corev1.NodeSelector {
	selector := &corev1.NodeSelector{}
	for _, name := range names {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
		})
	}
	return selector
}

// operators translates the operators of -l.
var operators = map[selection.Operator]corev1.NodeSelectorOperator{
	selection.In:           corev1.NodeSelectorOpIn,
	selection.Equals:       corev1.NodeSelectorOpIn,
	selection.DoubleEquals: corev1.NodeSelectorOpIn,
	selection.NotIn:        corev1.NodeSelectorOpNotIn,
	selection.NotEquals:    corev1.NodeSelectorOpNotIn,
	selection.Exists:       corev1.NodeSelectorOpExists,
	selection.DoesNotExist: corev1.NodeSelectorOpDoesNotExist,
	selection.GreaterThan:  corev1.NodeSelectorOpGt,
	selection.LessThan:     corev1.NodeSelectorOpLt,
}

// ByLabels selects nodes like -l of other commands.
func ByLabels(text string) (*corev1.NodeSelector, error) {
	requirements, err := Requirements(text)
	if err != nil {
		return nil, fmt.Errorf("--selector=%q: %w", text, err)
	}
	if len(requirements) == 0 {
		return nil, fmt.Errorf("--selector=%q: is empty; name the labels of the nodes, such as -l pool=a", text)
	}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: requirements}}}, nil
}

// Requirements returns the requirements that -l of other commands stands for.
func Requirements(text string) ([]corev1.NodeSelectorRequirement, error) {
	parsed, err := labels.ParseToRequirements(text)
	if err != nil {
		return nil, err
	}
	var requirements []corev1.NodeSelectorRequirement
	for _, r := range parsed {
		operator, known := operators[r.Operator()]
		if !known {
			return nil, fmt.Errorf("nodes cannot be selected with %q", r.Operator())
		}
		requirement := corev1.NodeSelectorRequirement{Key: r.Key(), Operator: operator}
		if r.Values().Len() > 0 {
			requirement.Values = r.Values().List()
		}
		requirements = append(requirements, requirement)
	}
	return requirements, nil
}

// PrefixForNodes is the prefix of the generated name of a maintenance of these nodes.
func PrefixForNodes(names []string) string {
	first := namePart(names[0])
	if len(names) == 1 {
		return first + "-"
	}
	return fmt.Sprintf("%s-and-%d-more-", first, len(names)-1)
}

// PrefixForLabels is the prefix of the generated name of a maintenance of the nodes with these
// labels: the first label with its value, if it has one.
func PrefixForLabels(selector *corev1.NodeSelector) string {
	requirement := selector.NodeSelectorTerms[0].MatchExpressions[0]
	label := requirement.Key[strings.LastIndex(requirement.Key, "/")+1:]
	switch requirement.Operator {
	case corev1.NodeSelectorOpIn:
		label += "-" + requirement.Values[0]
	case corev1.NodeSelectorOpExists:
	default:
		label = "nodes"
	}
	return namePart(label) + "-"
}

// namePart makes a valid part of a name of a label or of the name of a node.
func namePart(text string) string {
	valid := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '-', r == '.':
			return r
		}
		return '-'
	}, strings.ToLower(text))
	if len(valid) > maxPrefixLength {
		valid = valid[:maxPrefixLength]
	}
	if valid = strings.Trim(valid, "-."); valid == "" {
		return "nodes"
	}
	return valid
}
