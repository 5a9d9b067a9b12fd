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
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/cmd/maintenance/nodeselection"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"
)

// listCommand is what to do about a wrong name.
const listCommand = `"kubectl maintenance status --all" lists them`

// listCommands is what to do about a name that is neither that of a maintenance nor of a node.
const listCommands = `"kubectl maintenance status --all" and "kubectl get nodes" list them`

// completeNames completes any number of names of maintenances or nodes.
func completeNames(f cmdutil.Factory, resource string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return cmdutil.Difference(completion.CompGetResource(f, resource, toComplete), args), cobra.ShellCompDirectiveNoFileComp
	}
}

// getMaintenances reads maintenances by their names, or all if there are none.
func getMaintenances(ctx context.Context, client kubernetes.Interface, names []string) ([]*coordinationv1alpha1.NodeMaintenance, error) {
	if len(names) == 0 {
		list, err := client.CoordinationV1alpha1().NodeMaintenances().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing NodeMaintenances: %w", err)
		}
		return pointers(list.Items), nil
	}
	var found []*coordinationv1alpha1.NodeMaintenance
	var errs []error
	for _, name := range bareNames(names) {
		nm, err := client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			errs = append(errs, fmt.Errorf("reading NodeMaintenance %q: %w", name, err))
			continue
		}
		found = append(found, nm)
	}
	return found, joined(errs)
}

// findMaintenances reads maintenances by their names. For the name of a node, it returns the open
// maintenances that select the node, and prints their names.
func (e *environment) findMaintenances(ctx context.Context, client kubernetes.Interface, names []string) ([]*coordinationv1alpha1.NodeMaintenance, error) {
	if len(names) == 0 {
		return getMaintenances(ctx, client, nil)
	}
	var found []*coordinationv1alpha1.NodeMaintenance
	var errs []error
	for _, arg := range unique(names) {
		var maintenances []*coordinationv1alpha1.NodeMaintenance
		err := onNamed(arg, func(name string) (err error) {
			maintenances, err = getMaintenances(ctx, client, []string{name})
			return err
		}, func(node string, notFound error) (err error) {
			if maintenances, err = maintenancesOfNode(ctx, client, node, notFound); err == nil {
				fmt.Fprintf(e.ErrOut, "%q is a node under maintenance: %s\n", node, strings.Join(namesOf(maintenances), ", "))
			}
			return err
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, nm := range maintenances {
			if !slices.Contains(namesOf(found), nm.Name) {
				found = append(found, nm)
			}
		}
	}
	return found, joined(errs)
}

// onNamed calls the first function with the name of the maintenance that an argument names, and the second
// one with that of the node if there is no such maintenance, and the error that says so. A prefix says what
// the argument is, because there may be both: behind that of a node, no maintenance is looked for.
func onNamed(arg string, ofMaintenance func(name string) error, ofNode func(node string, notFound error) error) error {
	name := bareName(arg)
	if isNodeArgument(arg) {
		return ofNode(name, nil)
	}
	err := ofMaintenance(name)
	if apierrors.IsNotFound(err) && !isMaintenanceArgument(arg) {
		return ofNode(name, err)
	}
	return err
}

// resolveNames returns the names of the maintenances that the arguments name, each once. If one of them
// names none, the error says that nothing was changed: whoever writes "cancel NAME NODE" to end the work
// on one node must not end the maintenance of all.
func (e *environment) resolveNames(ctx context.Context, client kubernetes.Interface, args []string, subcommand string) ([]string, error) {
	var names []string
	var errs []error
	args = unique(args)
	for _, arg := range args {
		err := onNamed(arg, func(name string) error {
			if _, err := client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, name, metav1.GetOptions{}); err != nil {
				return fmt.Errorf("reading NodeMaintenance %q: %w", name, err)
			}
			names = append(names, name)
			return nil
		}, func(node string, notFound error) error {
			name, err := e.findOwn(ctx, client, node, subcommand, notFound)
			if err == nil {
				names = append(names, name)
			}
			return err
		})
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 && len(args) > 1 {
		errs = append(errs, failed("nothing was changed"))
	}
	return unique(names), joined(errs)
}

// findOwn returns the name of the only open maintenance of a node, if it selects no other node. A
// maintenance of several nodes must be named to be ended.
func (e *environment) findOwn(ctx context.Context, client kubernetes.Interface, node, subcommand string, notFound error) (string, error) {
	name, err := ownOf(ctx, client, node, subcommand, notFound)
	if err == nil {
		fmt.Fprintf(e.ErrOut, "%q is a node under maintenance: %s\n", node, name)
	}
	return name, err
}

// ownOf is findOwn without the text.
func ownOf(ctx context.Context, client kubernetes.Interface, node, subcommand string, notFound error) (string, error) {
	maintenances, err := maintenancesOfNode(ctx, client, node, notFound)
	if err != nil {
		return "", err
	}
	names := namesOf(maintenances)
	if len(names) == 1 && apiequality.Semantic.DeepEqual(maintenances[0].Spec.NodeSelector, nodeselection.ByName([]string{node})) {
		return names[0], nil
	}
	switch {
	case rolloutOf(maintenances[0]) == nil:
	case subcommand == "complete":
		return "", failed("%q is a node. When the work on it is done: kubectl maintenance complete %s %s. To end the maintenance of all its nodes: kubectl maintenance complete %s", node, names[0], node, names[0])
	case subcommand == "cancel" && len(names) == 1 && validateNodesOf(maintenances[0]) == nil:
		return "", failed("%q is a node. To end the work on it alone: kubectl maintenance complete %s %s. To cancel the maintenance of all its nodes: kubectl maintenance cancel %s", node, names[0], node, names[0])
	}
	return "", failed("%q is a node. To %s its maintenances, use: kubectl maintenance %s %s", node, subcommand, subcommand, strings.Join(names, " "))
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
	all, err := getMaintenances(ctx, client, nil)
	if err != nil {
		return nil, err
	}
	s := &snapshot{nodes: []*corev1.Node{node}}
	selecting := slices.DeleteFunc(all, func(nm *coordinationv1alpha1.NodeMaintenance) bool {
		return isCompleted(nm) || len(s.selectedNodes(nm.Spec.NodeSelector)) == 0
	})
	if len(selecting) == 0 {
		return nil, failed("%q is a node, and no open maintenance selects it", name)
	}
	return selecting, nil
}

func namesOf(maintenances []*coordinationv1alpha1.NodeMaintenance) []string {
	var names []string
	for _, nm := range maintenances {
		names = append(names, nm.Name)
	}
	return names
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
