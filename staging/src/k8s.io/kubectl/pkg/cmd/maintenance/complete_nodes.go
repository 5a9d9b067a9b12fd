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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"
)

// namedNodes are nodes of a maintenance that the arguments name: "complete NAME NODE...".
type namedNodes struct {
	*coordinationv1alpha1.NodeMaintenance
	names []string
	// nodes are those that exist.
	nodes map[string]*corev1.Node
	// others are the maintenances by their UIDs, once they are needed; nil if the user may not list them.
	others func() (map[types.UID]*coordinationv1alpha1.NodeMaintenance, error)
}

// nodesToComplete returns the nodes that the arguments name behind a maintenance, or nil if all
// arguments are maintenances, or nodes in their place. Whoever mistypes a name must not release all
// nodes of a maintenance, so what could be both is an error, and so is what is neither.
func (o *endOptions) nodesToComplete(ctx context.Context, client kubernetes.Interface) (*namedNodes, error) {
	if len(o.args) < 2 {
		return nil, nil
	}
	first, rest := bareName(o.args[0]), o.args[1:]
	all := append(bareNames(rest), first)
	maintenances, err := existing(ctx, "NodeMaintenance", all, client.CoordinationV1alpha1().NodeMaintenances())
	if err != nil {
		return nil, fmt.Errorf("reading NodeMaintenances: %w", errors.Unwrap(err))
	}
	nodes, err := existing(ctx, "node", all, client.CoreV1().Nodes())
	switch {
	case apierrors.IsForbidden(err) && len(maintenances) == len(unique(all)) && !slices.ContainsFunc(o.args, isNodeArgument):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading nodes: %w", errors.Unwrap(err))
	}
	named := &namedNodes{NodeMaintenance: maintenances[first], nodes: nodes}
	isMaintenance, err := named.sort(rest, maintenances)
	switch {
	case isNodeArgument(o.args[0]), named.NodeMaintenance == nil && !isMaintenanceArgument(o.args[0]) && (nodes[first] != nil || len(named.names) == 0):
		return nil, o.validateInPlace(ctx, client, maintenances, nodes)
	case named.NodeMaintenance == nil:
		return nil, failed("%q is neither a node nor a NodeMaintenance: %s. Nothing was changed", first, listCommands)
	case err != nil || len(isMaintenance) == len(rest):
		return nil, err
	case len(isMaintenance) > 0:
		return nil, failed("%s: complete nodes of one maintenance at a time; %s: a NodeMaintenance. Nothing was changed", strings.Join(named.names, ", "), strings.Join(isMaintenance, ", "))
	}
	return named, nil
}

// validateInPlace refuses nodes in the place of maintenances that have other nodes, too: whoever turns
// the arguments around, "complete NODE NAME", must not release all nodes of a maintenance.
func (o *endOptions) validateInPlace(ctx context.Context, client kubernetes.Interface, maintenances map[string]*coordinationv1alpha1.NodeMaintenance, nodes map[string]*corev1.Node) error {
	var errs []error
	for _, arg := range unique(o.args) {
		name := bareName(arg)
		switch {
		case !isNodeArgument(arg) && (nodes[name] == nil || maintenances[name] != nil):
		case nodes[name] == nil:
			errs = append(errs, failed("node %q not found", name))
		default:
			if _, err := ownOf(ctx, client, name, o.ending.verb, failed("NodeMaintenance %q not found", name)); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return unchanged(errs...)
}

// sort adds the arguments that name nodes, and returns those that name maintenances.
func (n *namedNodes) sort(args []string, maintenances map[string]*coordinationv1alpha1.NodeMaintenance) (isMaintenance []string, err error) {
	var errs []error
	for _, arg := range args {
		name := bareName(arg)
		asNode, asMaintenance := n.nodes[name] != nil, maintenances[name] != nil
		if name != arg { // The prefix says what it is.
			asNode, asMaintenance = isNodeArgument(arg), !isNodeArgument(arg)
		}
		switch {
		case asNode && asMaintenance:
			errs = append(errs, failed("%q is a node and a NodeMaintenance: write node/%s or nm/%s. Nothing was changed", name, name, name))
		case asNode:
			n.names = append(n.names, name)
		case asMaintenance:
			isMaintenance = append(isMaintenance, name)
		default:
			errs = append(errs, failed("%q is neither a node nor a NodeMaintenance: %s. Nothing was changed", name, listCommands))
		}
	}
	n.names = unique(n.names)
	return isMaintenance, joined(errs)
}

// completeNodes says of each node that the work on it is done.
func (o *endOptions) completeNodes(ctx context.Context, client kubernetes.Interface, named *namedNodes) error {
	if err := validateNodesOf(named.NodeMaintenance); err != nil {
		return err
	}
	named.others = sync.OnceValues(func() (map[types.UID]*coordinationv1alpha1.NodeMaintenance, error) {
		list, err := client.CoordinationV1alpha1().NodeMaintenances().List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsForbidden(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("reading NodeMaintenances: %w", err)
		}
		return keyed(pointers(list.Items), (*coordinationv1alpha1.NodeMaintenance).GetUID), nil
	})
	var errs []error
	completed := sets.New[string]()
	for _, name := range named.names {
		if err := o.completeNode(ctx, client, named, name); err != nil {
			errs = append(errs, err)
			continue
		}
		completed.Insert(name)
	}
	if o.wait && completed.Len() > 0 {
		errs = append(errs, o.waitForNodes(ctx, client, named.NodeMaintenance, completed))
	}
	return joined(errs)
}

// completeNode annotates a node. The annotation has the UID of the maintenance, and the patch that of
// the node: another one of the same name may have been created since.
func (o *endOptions) completeNode(ctx context.Context, client kubernetes.Interface, named *namedNodes, name string) error {
	node := named.nodes[name]
	if node == nil {
		return failed("node %q not found", name)
	}
	if done := doneText(named.NodeMaintenance, node); done != "" {
		o.printChange("node/"+name, done)
		return nil
	}
	if err := o.validateNode(named, node); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": node.UID, "annotations": map[string]string{coordinationv1alpha1.NodeDoneAnnotation: string(named.UID)},
	}})
	if err != nil {
		return err
	}
	if o.dryRun != cmdutil.DryRunClient {
		options := metav1.PatchOptions{FieldManager: fieldManager, DryRun: serverDryRun(o.dryRun)}
		if _, err := client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, options); err != nil {
			return fmt.Errorf("annotating node %q: %w", name, err)
		}
	}
	o.printChange("node/"+name, "is being completed")
	return nil
}

// doneText says that the node is completed already; empty if it is not.
func doneText(nm *coordinationv1alpha1.NodeMaintenance, node *corev1.Node) string {
	admission := maintenance.AdmissionOf(node, nm.UID)
	switch {
	case admission != nil && admission.DoneTime != nil:
		return "is already completed"
	case admission != nil && admission.ReturningTime != nil, node.Annotations[coordinationv1alpha1.NodeDoneAnnotation] == string(nm.UID):
		return "is already being completed"
	}
	return ""
}

// validateNode refuses a node on which the work cannot be done yet: the maintenance would never drain
// it.
func (o *endOptions) validateNode(named *namedNodes, node *corev1.Node) error {
	nm := named.NodeMaintenance
	admission := maintenance.AdmissionOf(node, nm.UID)
	unrecorded, err := named.unrecordedMark(node)
	rollout, podsLeft := rolloutOf(nm), counted(podsLeftOn(node), "pod", "pods")+" left"
	switch {
	case !maintenance.SelectsNode(nm.Spec.NodeSelector, node):
		return failed("NodeMaintenance %q does not select node %q: %s", nm.Name, node.Name, insteadOf(nm, node))
	case admission == nil && (rollout == nil || !needsAdmission(&view{Rollout: rollout}, node)):
		return failed("NodeMaintenance %q drains all its nodes together, so node %q cannot be completed alone: kubectl maintenance complete %s", nm.Name, node.Name, nm.Name)
	case err != nil:
		return err
	case unrecorded != "":
		return failed("node %q was completed for NodeMaintenance %q just now, which the controller has not recorded yet: try again", node.Name, unrecorded)
	case o.force:
		return nil
	case admission == nil:
		return failed("node %q waits for its admission and is not drained yet: kubectl maintenance status %s says for what. With --force, it is never drained by NodeMaintenance %q", node.Name, nm.Name, nm.Name)
	case hasPodsAgain(node, admission, skipsPods(nm)):
		return failed("node %q is not drained any more (%s): pods have come back, wait until they are gone (kubectl maintenance watch %s). With --force, its drain ends", node.Name, podsLeft, nm.Name)
	case admission.DrainedTime == nil:
		return failed("node %q is not drained yet (%s): wait for it (kubectl maintenance watch %s). With --force, its drain ends", node.Name, podsLeft, nm.Name)
	}
	return nil
}

// insteadOf returns the command for a node that the maintenance does not select: the one of the
// maintenance that has begun with it, or one that shows the selected nodes.
func insteadOf(nm *coordinationv1alpha1.NodeMaintenance, node *corev1.Node) string {
	for _, admission := range maintenance.Admissions(node) {
		if admission.DoneTime == nil {
			return fmt.Sprintf("it is a node of %s: kubectl maintenance complete %s %s", admission.MaintenanceName, admission.MaintenanceName, node.Name)
		}
	}
	return "kubectl maintenance status " + nm.Name
}

// unrecordedMark returns the name of another maintenance for which the node is marked as done, if the controller has
// yet to record it; otherwise empty. A node has one mark: without the record, the other one would drain the node although
// somebody was told that it never does. Marks for maintenances that are gone, or do not drain the node, have no effect.
func (n *namedNodes) unrecordedMark(node *corev1.Node) (string, error) {
	uid := types.UID(node.Annotations[coordinationv1alpha1.NodeDoneAnnotation])
	if uid == "" || uid == n.UID {
		return "", nil
	}
	admission := maintenance.AdmissionOf(node, uid)
	if admission != nil && (admission.ReturningTime != nil || admission.DoneTime != nil) {
		return "", nil
	}
	others, err := n.others()
	other := others[uid]
	switch {
	case err != nil:
		return "", err
	case others == nil && admission != nil:
		return admission.MaintenanceName, nil
	case other == nil || other.DeletionTimestamp != nil || other.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete,
		!maintenance.SelectsNode(other.Spec.NodeSelector, node):
		return "", nil
	}
	return other.Name, nil
}

// waitForNodes returns when the nodes are released, or when the maintenance releases all of them.
func (o *endOptions) waitForNodes(ctx context.Context, client kubernetes.Interface, nm *coordinationv1alpha1.NodeMaintenance, names sets.Set[string]) error {
	remaining := func(v *view) bool {
		return slices.ContainsFunc(v.Nodes, func(node *nodeView) bool { return names.Has(node.Name) && node.Phase != phaseDone })
	}
	reached := func(v *view) bool {
		return !remaining(v) || v.Outcome == outcomeCompleted || slices.Contains(v.Unreadable, "nodes")
	}
	last, err := follow(ctx, client, []*coordinationv1alpha1.NodeMaintenance{nm}, o.clock, (&nodesDisplay{out: o.Out, names: names}).show, released(reached))
	if err != nil {
		return err
	}
	if v := last[nm.Name]; slices.Contains(v.Unreadable, "nodes") {
		return failed("without the permission to list nodes, kubectl cannot see when they are released; they will be released anyway")
	}
	return nil
}

// nodesDisplay prints a line for each phase that some nodes reach, why they are not released, and notices.
type nodesDisplay struct {
	out     io.Writer
	names   sets.Set[string]
	notices printedTexts
	// before are the nodes as they were shown last, by name, and unhealthy is why they are not released, as it was
	// printed last.
	before    map[string]*nodeView
	unhealthy map[string]string
	// notActed is since when the controller has not acted on nodes that are completed.
	notActed patience
}

func (d *nodesDisplay) show(frame frame) error {
	if d.unhealthy == nil {
		d.unhealthy, d.notActed = map[string]string{}, patience{}
	}
	if err := d.notices.printNotices(d.out, "", &frame); err != nil {
		return err
	}
	for _, v := range frame.views {
		awaited := filtered(v.Nodes, func(node *nodeView) bool { return d.names.Has(node.Name) })
		completed := filtered(awaited, func(node *nodeView) bool { return node.completed })
		late := d.notActed.exhausted(nodeNames(completed), frame.now)
		for _, node := range awaited {
			change := phaseChange(v, d.before[node.Name], node)
			if node.Phase == phaseFailed {
				change = "" // The next line says so, and why.
			}
			for _, line := range []string{change, d.unhealthyLine(node, slices.Contains(late, node.Name))} {
				if line != "" {
					if _, err := fmt.Fprintln(d.out, plaintext.Line(line)); err != nil {
						return err
					}
				}
			}
		}
		d.before = nodesByNames(v)
	}
	return nil
}

// unhealthyLine says that a node has failed, why one that comes back is not released, or that the controller has
// not acted for long; empty if that was said. In the first view, it is no change, but a person waits for it.
func (d *nodesDisplay) unhealthyLine(node *nodeView, notActedOn bool) string {
	why := ""
	switch {
	case node.completed && notActedOn:
		why = notActed + ", so kube-controller-manager may not run; " + seeLease
	case len(node.startedBy) > 0 && (node.Phase == phaseWaiting || node.Phase == phaseDone):
		why = "still claimed by " + strings.Join(node.startedBy, ", ")
	case node.completed: // What was missing before does not matter any more.
	case node.Phase != phaseReturning && node.Phase != phaseFailed:
	case node.unexplainedSince != nil:
		why = node.unreleasedText()
	default:
		why = node.unhealthy
	}
	if node.Phase == phaseFailed && !node.completed {
		why = strings.TrimSuffix("did not come back in time: "+why, ": ")
	}
	was := d.unhealthy[node.Name]
	if d.unhealthy[node.Name] = why; why == was || why == "" {
		return ""
	}
	return node.Name + ": " + why
}

// completionTimeout is how long a shell waits for the names of nodes.
const completionTimeout = 3 * time.Second

// completeMaintenanceAndNodes completes the name of a maintenance, then those of its nodes that are
// under way, and of other maintenances.
func completeMaintenanceAndNodes(env *environment) cobra.CompletionFunc {
	return completed(func(args []string, toComplete string) (names []string) {
		if len(args) > 0 {
			names, _ = nodesUnderWay(env, bareName(args[0]), toComplete)
		}
		return append(names, completion.CompGetResource(env.factory, qualifiedResource, toComplete)...)
	})
}

// nodesUnderWay returns the names of the nodes that begin with the prefix and can be completed. A
// shell shows no error.
func nodesUnderWay(env *environment, name, prefix string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	client, err := env.client()
	if err != nil {
		return nil, err
	}
	nm, err := client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	underWay := filtered(pointers(nodes.Items), func(node *corev1.Node) bool {
		admission := maintenance.AdmissionOf(node, nm.UID)
		return admission != nil && admission.DoneTime == nil && strings.HasPrefix(node.Name, prefix)
	})
	return namesOf(underWay), nil
}
