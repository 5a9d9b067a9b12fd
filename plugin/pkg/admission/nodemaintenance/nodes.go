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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	helpers "k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/kubernetes/pkg/apis/coordination"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
)

// maxNamedNodes is how many nodes an error lists.
const maxNamedNodes = 5

// maxDeniedNodes is after how many denials the authorizer, which may be a webhook, is not asked about
// the other nodes: a selector may name tens of thousands.
const maxDeniedNodes = 100

// selection is the result of the selector of a maintenance.
type selection struct {
	// nodes are the names of the nodes that it matches now.
	nodes sets.Set[string]
	// concerned are these nodes, and others that it selects by name.
	concerned sets.Set[string]
	// missing are nodes that it selects by name and that do not exist.
	missing sets.Set[string]
	// unknown is the path of the first term that may match nodes that do not exist yet, and the
	// reason, or empty.
	unknown string
	// unchecked says why it is not known which nodes it matches, or is empty.
	unchecked string
}

// selectionOf matches the selector with the nodes of the cluster. Terms with the name of a node, of
// which a maintenance may have thousands, are only matched with that node. A nil maintenance
// selects nothing.
func (p *Plugin) selectionOf(maintenance *coordination.NodeMaintenance) (selection, error) {
	selected := selection{nodes: sets.New[string](), concerned: sets.New[string](), missing: sets.New[string]()}
	selector, err := nodeSelectorOf(maintenance)
	if err != nil || selector == nil {
		return selected, err
	}
	var unnamed []*labelTerm
	for i, term := range selector.NodeSelectorTerms {
		compiled, err := nodeaffinity.NewNodeSelector(&v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}})
		if err != nil {
			continue // Validation rejects invalid terms. A stored one matches no node.
		}
		name, named := helpers.NamedNode(&term)
		if !named {
			if len(term.MatchExpressions)+len(term.MatchFields) > 0 { // An empty term never matches a node.
				unnamed = append(unnamed, newLabelTerm(term, compiled, field.NewPath("spec", "nodeSelector", "nodeSelectorTerms").Index(i)))
			}
			continue
		}
		selected.concerned.Insert(name)
		node, err := p.nodes.Get(name)
		if err != nil && !apierrors.IsNotFound(err) {
			return selected, apierrors.NewInternalError(fmt.Errorf("reading node %q, which spec.nodeSelector names: %w", name, err))
		}
		switch {
		case err != nil:
			selected.missing.Insert(name)
		case compiled.Match(node):
			selected.nodes.Insert(name)
		}
	}
	if selected.unchecked = tooMuch(selector); selected.unchecked != "" {
		return selected, nil
	}
	err = p.matchAll(unnamed, selected)
	if i := slices.IndexFunc(unnamed, func(term *labelTerm) bool { return !term.isKnown() }); i >= 0 {
		selected.unknown = unnamed[i].describe()
	}
	return selected, err
}

// matchAll adds the nodes of the cluster that at least one of the terms matches, and records the
// matches in the terms.
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
				continue // The match would change nothing.
			}
			if term.Match(node) {
				term.recordMatch(node)
				selected.nodes.Insert(node.Name)
				selected.concerned.Insert(node.Name)
			}
		}
	}
	return nil
}

// nodeSelectorOf returns the selector in the version of the rules that are shared with clients. It
// is nil if there is none. maintenance may be nil.
func nodeSelectorOf(maintenance *coordination.NodeMaintenance) (*v1.NodeSelector, error) {
	if maintenance == nil || maintenance.Spec.NodeSelector == nil {
		return nil, nil
	}
	selector := &v1.NodeSelector{}
	if err := corev1.Convert_core_NodeSelector_To_v1_NodeSelector(maintenance.Spec.NodeSelector, selector, nil); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("converting spec.nodeSelector to v1: %w", err))
	}
	return selector, nil
}

// authorize returns an error unless the user may delete the nodes that the maintenance selects or
// has selected before, including those that it will select later. The error refers to the new
// version of the maintenance, or to the old one if it is deleted.
func (p *Plugin) authorize(ctx context.Context, a admission.Attributes, maintenance, old *coordination.NodeMaintenance, selected, oldSelected selection) error {
	names := selected.concerned.Union(oldSelected.concerned)
	unknown := cmp.Or(selected.unchecked, oldSelected.unchecked, unknownSelector(maintenance, selected, names))
	if len(names) == 0 && unknown == "" {
		return nil // It concerns no node, neither now nor later.
	}
	decision, err := p.mayDelete(ctx, a, "")
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case unknown != "" && err != nil:
		return apierrors.NewInternalError(fmt.Errorf("authorizing user %q to delete all nodes: %w", a.GetUserInfo().GetName(), err))
	case unknown != "":
		return forbidden(a, cmp.Or(maintenance, old), fmt.Errorf("user %q cannot delete all nodes: %s, so it may later select any node; "+
			"creating or changing such a NodeMaintenance requires the verb \"delete\" on all nodes", a.GetUserInfo().GetName(), unknown))
	}
	// An error is not a denial: ask for each node.
	return p.authorizeEach(ctx, a, cmp.Or(maintenance, old), names)
}

// unknownSelector returns the path of a selector that may match nodes that do not exist yet, and
// the reason, or an empty string. It is decided per term: a term that matches some nodes says
// nothing about the matches of another term. A completed maintenance selects no more nodes.
func unknownSelector(maintenance *coordination.NodeMaintenance, selected selection, names sets.Set[string]) string {
	switch {
	case maintenance == nil || maintenance.Spec.Stage == coordination.NodeMaintenanceStageComplete:
		return ""
	case selected.unknown != "":
		return selected.unknown
	case len(names) == 0:
		return "spec.nodeSelector currently selects no node"
	}
	return ""
}

// authorizeEach returns an error unless the user may delete each of these nodes.
func (p *Plugin) authorizeEach(ctx context.Context, a admission.Attributes, maintenance *coordination.NodeMaintenance, names sets.Set[string]) error {
	user := a.GetUserInfo().GetName()
	var denied []string
	for _, name := range sets.List(names) {
		if len(denied) == maxDeniedNodes {
			break
		}
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
	return forbidden(a, maintenance, fmt.Errorf("user %q cannot delete %s, selected by spec.nodeSelector: creating, changing or deleting a NodeMaintenance "+
		"requires the verb \"delete\" on each of its nodes", user, describeNodes(denied)))
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

// describeNodes lists the first of these nodes and counts the others, of which there may be more than
// maxDeniedNodes.
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
	switch more := len(names) - len(quoted); {
	case len(names) == maxDeniedNodes:
		text += fmt.Sprintf(" and at least %d more", more)
	case more > 0:
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
