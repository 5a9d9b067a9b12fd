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
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
)

const (
	// maxNodeGets is how many nodes are read one by one. For more, one list is cheaper.
	maxNodeGets = 10

	// maxPrefixLength keeps names readable, and leaves room for the suffix of the server.
	maxPrefixLength = 40
)

// nodesByName selects nodes by their names. A requirement on a field has exactly one value, so each
// node gets a term.
func nodesByName(names []string) *corev1.NodeSelector {
	selector := &corev1.NodeSelector{}
	for _, name := range names {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
		})
	}
	return selector
}

// nodeOperators translates the operators of -l.
var nodeOperators = map[selection.Operator]corev1.NodeSelectorOperator{
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

// nodesByLabels selects nodes like -l of other commands.
func nodesByLabels(text string) (*corev1.NodeSelector, error) {
	parsed, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--selector=%q: %w", text, err)
	}
	requirements, _ := parsed.Requirements()
	if len(requirements) == 0 {
		return nil, fmt.Errorf("--selector=%q: is empty; name the labels of the nodes, such as -l pool=a", text)
	}
	var term corev1.NodeSelectorTerm
	for _, r := range requirements {
		operator, known := nodeOperators[r.Operator()]
		if !known {
			return nil, fmt.Errorf("--selector=%q: nodes cannot be selected with %q", text, r.Operator())
		}
		requirement := corev1.NodeSelectorRequirement{Key: r.Key(), Operator: operator}
		if r.Values().Len() > 0 {
			requirement.Values = r.Values().List()
		}
		term.MatchExpressions = append(term.MatchExpressions, requirement)
	}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}, nil
}

// notFound returns an error that names the nodes that do not exist.
func notFound(names []string, existing sets.Set[string]) error {
	var errs []error
	for _, name := range names {
		if !existing.Has(name) {
			errs = append(errs, fmt.Errorf("node %q not found", name))
		}
	}
	return errors.Join(errs...)
}

func existingNodes(ctx context.Context, client kubernetes.Interface, names []string) (sets.Set[string], error) {
	existing := sets.New[string]()
	if len(names) > maxNodeGets {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, fmt.Errorf("listing nodes: %w", err)
		}
		for i := range nodes.Items {
			existing.Insert(nodes.Items[i].Name)
		}
		return existing, nil
	}
	for _, name := range names {
		switch _, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("reading node %q: %w", name, err)
		default:
			existing.Insert(name)
		}
	}
	return existing, nil
}

// These prefixes may precede a name, as in the output of "kubectl get -o name".
var (
	nodePrefixes        = sets.New("no", "node", "nodes")
	maintenancePrefixes = sets.New("nm", "nodemaintenance", "nodemaintenances", "nodemaintenance.coordination.k8s.io", "nodemaintenances.coordination.k8s.io")
)

func isNodeArgument(arg string) bool { return hasPrefixOf(arg, nodePrefixes) }

func isMaintenanceArgument(arg string) bool { return hasPrefixOf(arg, maintenancePrefixes) }

func hasPrefixOf(arg string, prefixes sets.Set[string]) bool {
	prefix, _, found := strings.Cut(arg, "/")
	return found && prefixes.Has(prefix)
}

// bareName returns the name of an argument without its type prefix.
func bareName(arg string) string {
	if isNodeArgument(arg) || isMaintenanceArgument(arg) {
		_, arg, _ = strings.Cut(arg, "/")
	}
	return arg
}

// bareNames returns the names of arguments without their type prefix, each once.
func bareNames(args []string) []string {
	names := make([]string, 0, len(args))
	for _, arg := range args {
		names = append(names, bareName(arg))
	}
	return unique(names)
}

// unique removes duplicate names, and keeps the order.
func unique(names []string) []string {
	seen := sets.New[string]()
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		if seen.Has(name) {
			return true
		}
		seen.Insert(name)
		return false
	})
}

// prefixForNodes is the prefix of the generated name of a maintenance of these nodes.
func prefixForNodes(names []string) string {
	first := namePart(names[0])
	if len(names) == 1 {
		return first + "-"
	}
	return fmt.Sprintf("%s-and-%d-more-", first, len(names)-1)
}

// prefixForLabels is the prefix of the generated name of a maintenance of the nodes with these
// labels: the first label with its value, if it has one.
func prefixForLabels(selector *corev1.NodeSelector) string {
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
