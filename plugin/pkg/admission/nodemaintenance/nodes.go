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
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/kubernetes/pkg/apis/coordination"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
)

// maxNamedNodes is how many nodes an error names.
const maxNamedNodes = 5

// selection is what the selector of a maintenance stands for.
type selection struct {
	// nodes are the names of the nodes that it matches now.
	nodes sets.Set[string]
	// concerned are those, and others that it selects by name.
	concerned sets.Set[string]
	// unknown is the path of the first term that will match nodes nobody knows yet, and
	// why, or empty.
	unknown string
}

// selectionOf matches the selector with the nodes of the cluster. Terms with the name of
// a node, which maintenances of many nodes may have by the thousand, look at that node
// alone. A maintenance that does not exist selects nothing.
func (p *Plugin) selectionOf(maintenance *coordination.NodeMaintenance) (selection, error) {
	selected := selection{nodes: sets.New[string](), concerned: sets.New[string]()}
	if maintenance == nil || maintenance.Spec.NodeSelector == nil {
		return selected, nil
	}
	var selector v1.NodeSelector
	if err := corev1.Convert_core_NodeSelector_To_v1_NodeSelector(maintenance.Spec.NodeSelector, &selector, nil); err != nil {
		return selected, apierrors.NewInternalError(fmt.Errorf("converting spec.nodeSelector to v1: %w", err))
	}
	var unnamed []*labelTerm
	for i, term := range selector.NodeSelectorTerms {
		compiled, err := nodeaffinity.NewNodeSelector(&v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}})
		if err != nil {
			continue // Validation lets none in. One that is stored nevertheless matches no node.
		}
		name, named := nodeNameOf(term)
		if !named {
			if len(term.MatchExpressions)+len(term.MatchFields) > 0 { // An empty one matches no node ever.
				unnamed = append(unnamed, newLabelTerm(term, compiled, field.NewPath("spec", "nodeSelector", "nodeSelectorTerms").Index(i)))
			}
			continue
		}
		selected.concerned.Insert(name)
		node, err := p.nodes.Get(name)
		if err != nil && !apierrors.IsNotFound(err) {
			return selected, apierrors.NewInternalError(fmt.Errorf("reading node %q, which spec.nodeSelector names: %w", name, err))
		}
		if err == nil && compiled.Match(node) {
			selected.nodes.Insert(name)
		}
	}
	err := p.matchAll(unnamed, selected)
	if i := slices.IndexFunc(unnamed, func(term *labelTerm) bool { return !term.isKnown() }); i >= 0 {
		selected.unknown = unnamed[i].describe()
	}
	return selected, err
}

// matchAll adds all nodes of the cluster that one of the terms matches, and notes in the
// terms what they match.
func (p *Plugin) matchAll(terms []*labelTerm, selected selection) error {
	if len(terms) == 0 {
		return nil
	}
	nodes, err := p.nodes.List(labels.Everything())
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("listing the nodes for spec.nodeSelector: %w", err))
	}
	for _, node := range nodes {
		for _, term := range terms {
			if term.isKnown() && selected.nodes.Has(node.Name) {
				continue // Nothing new can come of it.
			}
			if term.Match(node) {
				term.noteMatch(node)
				selected.nodes.Insert(node.Name)
				selected.concerned.Insert(node.Name)
			}
		}
	}
	return nil
}

// nodeNameOf returns the only node that the term can match, if it names one. Terms are
// read as the scheduler does: all requirements must hold, and In takes one value.
func nodeNameOf(term v1.NodeSelectorTerm) (name string, named bool) {
	for _, requirement := range term.MatchFields {
		if requirement.Key == metav1.ObjectNameField && requirement.Operator == v1.NodeSelectorOpIn && len(requirement.Values) == 1 {
			return requirement.Values[0], true
		}
	}
	return "", false
}

// authorize returns an error unless the user may delete the nodes that the maintenance
// selects or selected before, those that it will select included. The error is about the
// new version of the maintenance, or about the old one if it is deleted.
func (p *Plugin) authorize(ctx context.Context, a admission.Attributes, maintenance, old *coordination.NodeMaintenance, selected, oldSelected selection) error {
	names := selected.concerned.Union(oldSelected.concerned)
	unknown := unknownSelector(maintenance, selected, names)
	if len(names) == 0 && unknown == "" {
		return nil // No node is there that it could be about, and none will be.
	}
	decision, err := p.mayDelete(ctx, a, "")
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case unknown != "" && err != nil:
		return apierrors.NewInternalError(fmt.Errorf("authorizing user %q to delete all nodes: %w", a.GetUserInfo().GetName(), err))
	case unknown != "":
		return forbidden(a, maintenance, fmt.Errorf("user %q cannot delete all nodes: %s, and which nodes it will select is unknown; "+
			"who creates or changes such a NodeMaintenance needs the verb \"delete\" on all nodes", a.GetUserInfo().GetName(), unknown))
	}
	// An error is no answer yet: the nodes are asked about one by one.
	return p.authorizeEach(ctx, a, cmp.Or(maintenance, old), names)
}

// unknownSelector returns the path of what selects nodes that nobody knows yet, and why,
// or an empty string. It is decided per term: one that matches some nodes says nothing
// of what another one will match. A maintenance that is over selects none any more.
func unknownSelector(maintenance *coordination.NodeMaintenance, selected selection, names sets.Set[string]) string {
	switch {
	case maintenance == nil || maintenance.Spec.Stage == coordination.NodeMaintenanceStageComplete:
		return ""
	case selected.unknown != "":
		return selected.unknown
	case len(names) == 0:
		return "spec.nodeSelector selects no node now"
	}
	return ""
}

// authorizeEach returns an error unless the user may delete each of these nodes.
func (p *Plugin) authorizeEach(ctx context.Context, a admission.Attributes, maintenance *coordination.NodeMaintenance, names sets.Set[string]) error {
	user := a.GetUserInfo().GetName()
	var denied []string
	for _, name := range sets.List(names) {
		decision, err := p.mayDelete(ctx, a, name)
		if decision == authorizer.DecisionAllow {
			continue
		}
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("authorizing user %q to delete node %q, which spec.nodeSelector selects: %w", user, name, err))
		}
		denied = append(denied, name)
	}
	if len(denied) == 0 {
		return nil
	}
	return forbidden(a, maintenance, fmt.Errorf("user %q cannot delete %s, selected by spec.nodeSelector: who creates, changes or deletes a NodeMaintenance "+
		"needs the verb \"delete\" on each of its nodes", user, describeNodes(denied)))
}

// mayDelete asks whether the user may delete the node, or all nodes if no name is given.
func (p *Plugin) mayDelete(ctx context.Context, a admission.Attributes, name string) (authorizer.Decision, error) {
	decision, _, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User:            a.GetUserInfo(),
		Verb:            "delete",
		APIVersion:      "v1",
		Resource:        "nodes",
		Name:            name,
		ResourceRequest: true,
	})
	return decision, err
}

// describeNodes names the first of these nodes and counts the others.
func describeNodes(names []string) string {
	kind := "nodes"
	if len(names) == 1 {
		kind = "node"
	}
	var quoted []string
	for _, name := range names[:min(len(names), maxNamedNodes)] {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	text := kind + " " + strings.Join(quoted, ", ")
	if more := len(names) - len(quoted); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
