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
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
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
	var unnamed []*nodeaffinity.NodeSelector
	for _, term := range selector.NodeSelectorTerms {
		compiled, err := nodeaffinity.NewNodeSelector(&v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}})
		if err != nil {
			continue // Validation lets none in. One that is stored nevertheless matches no node.
		}
		name, named := nodeNameOf(term)
		if !named {
			unnamed = append(unnamed, compiled)
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
	return selected, p.matchAll(unnamed, selected)
}

// matchAll adds all nodes of the cluster that one of the selectors matches.
func (p *Plugin) matchAll(selectors []*nodeaffinity.NodeSelector, selected selection) error {
	if len(selectors) == 0 {
		return nil
	}
	nodes, err := p.nodes.List(labels.Everything())
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("listing the nodes for spec.nodeSelector: %w", err))
	}
	for _, node := range nodes {
		for _, selector := range selectors {
			if selector.Match(node) {
				selected.nodes.Insert(node.Name)
				selected.concerned.Insert(node.Name)
				break
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

// authorize returns an error unless the user may delete all these nodes. The error is
// about the new version of the maintenance, or about the old one if it is deleted.
func (p *Plugin) authorize(ctx context.Context, a admission.Attributes, maintenance, old *coordination.NodeMaintenance, names sets.Set[string]) error {
	if len(names) == 0 {
		if maintenance == nil || maintenance.Spec.Stage == coordination.NodeMaintenanceStageComplete {
			return nil // No node is there that it could be about, and none will be.
		}
		return p.authorizeUnknown(ctx, a, maintenance)
	}
	// An error is no answer yet: the nodes are asked about one by one.
	if decision, _ := p.mayDelete(ctx, a, ""); decision == authorizer.DecisionAllow {
		return nil
	}
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
	if maintenance == nil {
		maintenance = old
	}
	return forbidden(a, maintenance, fmt.Errorf("user %q cannot delete %s, selected by spec.nodeSelector: who creates, changes or deletes a NodeMaintenance "+
		"needs the verb \"delete\" on each of its nodes", user, describeNodes(denied)))
}

// authorizeUnknown returns an error unless the user may delete all nodes, whichever will
// be selected.
func (p *Plugin) authorizeUnknown(ctx context.Context, a admission.Attributes, maintenance *coordination.NodeMaintenance) error {
	user := a.GetUserInfo().GetName()
	decision, err := p.mayDelete(ctx, a, "")
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("authorizing user %q to delete all nodes: %w", user, err))
	}
	return forbidden(a, maintenance, fmt.Errorf("user %q cannot delete all nodes: spec.nodeSelector selects no node now, and which nodes it will select is unknown; "+
		"who creates or changes such a NodeMaintenance needs the verb \"delete\" on all nodes", user))
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
