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

	"github.com/spf13/cobra"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubectl/pkg/cmd/maintenance/nodeselection"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"
)

// listCommand is what to do about a wrong name.
const listCommand = `"kubectl maintenance status --all" lists them`

// listCommands is what to do about a name that is neither that of a maintenance nor of a node.
const listCommands = `"kubectl maintenance status --all" and "kubectl get nodes" list them`

// completed completes names, each once.
func completed(names func(args []string, toComplete string) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return cmdutil.Difference(names(args, toComplete), args), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeNames completes any number of names of maintenances.
func completeNames(f cmdutil.Factory) cobra.CompletionFunc {
	return completed(func(_ []string, toComplete string) []string {
		return completion.CompGetResource(f, qualifiedResource, toComplete)
	})
}

// completeNodesAndNames completes any number of names of nodes, or that of a maintenance.
func completeNodesAndNames(f cmdutil.Factory) cobra.CompletionFunc {
	return completed(func(args []string, toComplete string) []string {
		names := completion.CompGetResource(f, "nodes", toComplete)
		if len(args) == 0 {
			names = append(names, completion.CompGetResource(f, qualifiedResource, toComplete)...)
		}
		return names
	})
}

// findMaintenances reads maintenances by their names, or all if there are none. For the name of a node, it
// returns the open maintenances that select the node, and prints their names.
func (e *environment) findMaintenances(ctx context.Context, client kubernetes.Interface, args []string) ([]*coordinationv1alpha1.NodeMaintenance, error) {
	if len(args) == 0 {
		return listMaintenances(ctx, client)
	}
	return e.resolve(ctx, client, args, func(node string, notFound error) ([]*coordinationv1alpha1.NodeMaintenance, error) {
		return maintenancesOfNode(ctx, client, node, notFound)
	})
}

// findOwn reads the maintenances that the arguments name. For a node, it is the only open maintenance of the node, if
// that selects no other one. If one of the arguments names none, the error says that nothing was changed: whoever
// writes "cancel NAME NODE" to end the work on one node must not end the maintenance of all.
func (e *environment) findOwn(ctx context.Context, client kubernetes.Interface, args []string, subcommand string) ([]*coordinationv1alpha1.NodeMaintenance, error) {
	found, err := e.resolve(ctx, client, args, func(node string, notFound error) ([]*coordinationv1alpha1.NodeMaintenance, error) {
		return ownOf(ctx, client, node, subcommand, notFound)
	})
	if err != nil && len(unique(args)) > 1 {
		err = unchanged(err)
	}
	return found, err
}

// resolve reads the maintenances that the arguments name, each once. Those of the name of a node are returned by a
// function, which gets the error that says that there is no maintenance of that name. A prefix says what an argument is,
// because there may be both: behind that of a node, no maintenance is looked for.
func (e *environment) resolve(ctx context.Context, client kubernetes.Interface, args []string, ofNode func(node string, notFound error) ([]*coordinationv1alpha1.NodeMaintenance, error)) ([]*coordinationv1alpha1.NodeMaintenance, error) {
	var found []*coordinationv1alpha1.NodeMaintenance
	var errs []error
	for _, arg := range unique(args) {
		name := bareName(arg)
		var named []*coordinationv1alpha1.NodeMaintenance
		var err error
		if !isNodeArgument(arg) {
			var nm *coordinationv1alpha1.NodeMaintenance
			nm, err = getMaintenance(ctx, client, name)
			named = append(named, nm)
		}
		if isNodeArgument(arg) || apierrors.IsNotFound(err) && !isMaintenanceArgument(arg) {
			if named, err = ofNode(name, err); err == nil {
				fmt.Fprintf(e.ErrOut, "%q is a node under maintenance: %s\n", name, strings.Join(namesOf(named), ", "))
			}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, filtered(named, func(nm *coordinationv1alpha1.NodeMaintenance) bool { return !slices.Contains(namesOf(found), nm.Name) })...)
	}
	return found, joined(errs)
}

// ownOf returns the only open maintenance of a node, if it selects no other node. A maintenance of several
// nodes must be named to be ended.
func ownOf(ctx context.Context, client kubernetes.Interface, node, subcommand string, notFound error) ([]*coordinationv1alpha1.NodeMaintenance, error) {
	maintenances, err := maintenancesOfNode(ctx, client, node, notFound)
	if err != nil {
		return nil, err
	}
	first, names := maintenances[0], namesOf(maintenances)
	switch {
	case len(names) == 1 && apiequality.Semantic.DeepEqual(first.Spec.NodeSelector, nodeselection.ByName([]string{node})):
		return maintenances, nil
	case rolloutOf(first) == nil:
	case subcommand == "complete":
		return nil, failed("%q is a node. When the work on it is done: kubectl maintenance complete %s %s. To end the maintenance of all its nodes: kubectl maintenance complete %s", node, names[0], node, names[0])
	case subcommand == "cancel" && len(names) == 1 && validateNodesOf(first) == nil:
		return nil, failed("%q is a node. To end the work on it alone: kubectl maintenance complete %s %s. To cancel the maintenance of all its nodes: kubectl maintenance cancel %s", node, names[0], node, names[0])
	}
	return nil, failed("%q is a node. To %s its maintenances, use: kubectl maintenance %s %s", node, subcommand, subcommand, strings.Join(names, " "))
}

// maintenancesOfNode returns the open maintenances of a node. notFound is the error of a read of
// the maintenance of that name, or nil if there was none.
func maintenancesOfNode(ctx context.Context, client kubernetes.Interface, name string, notFound error) ([]*coordinationv1alpha1.NodeMaintenance, error) {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && notFound == nil:
		return nil, failed("node %q not found", name)
	case apierrors.IsNotFound(err):
		return nil, failed("NodeMaintenance %q not found, and no node of that name: %s", name, listCommand)
	case err != nil && notFound == nil:
		return nil, fmt.Errorf("reading node %q: %w", name, err)
	case err != nil:
		return nil, fmt.Errorf("%w; reading the node of that name: %w", notFound, err)
	}
	all, err := listMaintenances(ctx, client)
	if err != nil {
		return nil, err
	}
	selecting := filtered(all, func(nm *coordinationv1alpha1.NodeMaintenance) bool {
		return !isCompleted(nm) && maintenance.SelectsNode(nm.Spec.NodeSelector, node)
	})
	if len(selecting) == 0 {
		return nil, failed("%q is a node, and no open maintenance selects it", name)
	}
	return selecting, nil
}

// validateNodesOf refuses maintenances whose nodes cannot be completed one by one.
func validateNodesOf(nm *coordinationv1alpha1.NodeMaintenance) error {
	switch {
	case nm.DeletionTimestamp != nil || nm.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete:
		return failed("NodeMaintenance %q has ended, which releases all its nodes", nm.Name)
	case nm.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain:
		return failed("NodeMaintenance %q is in stage %s and drains no node: kubectl maintenance start %s", nm.Name, nm.Spec.Stage, nm.Name)
	}
	return nil
}

// maxNodeGets is how many nodes are read one by one. For more, one list is cheaper.
const maxNodeGets = 10

// notFound returns an error that names the nodes that do not exist.
func notFound(names []string, nodes map[string]*corev1.Node) error {
	missing := filtered(names, func(name string) bool { return nodes[name] == nil })
	return errors.Join(mapped(missing, func(name string) error { return fmt.Errorf("node %q not found", name) })...)
}

// reader reads objects, as the typed clients do.
type reader[P metav1.Object, L runtime.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (P, error)
	List(ctx context.Context, options metav1.ListOptions) (L, error)
}

// existing reads objects of a kind by their names, and omits those that do not exist. Many are read at once, if
// the user may list them.
func existing[P metav1.Object, L runtime.Object](ctx context.Context, kind string, names []string, from reader[P, L]) (map[string]P, error) {
	found := map[string]P{}
	if len(names) > maxNodeGets {
		all, err := from.List(ctx, metav1.ListOptions{})
		if err == nil {
			return found, meta.EachListItem(all, func(object runtime.Object) error {
				if listed := object.(P); slices.Contains(names, listed.GetName()) {
					found[listed.GetName()] = listed
				}
				return nil
			})
		}
		if !apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("listing %ss: %w", kind, err)
		}
	}
	for _, name := range names {
		object, err := from.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("reading %s %q: %w", kind, name, err)
		default:
			found[name] = object
		}
	}
	return found, nil
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
func bareNames(args []string) []string { return unique(mapped(args, bareName)) }

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
