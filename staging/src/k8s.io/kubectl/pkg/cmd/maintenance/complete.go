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
	"time"

	"github.com/spf13/cobra"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/plaintext"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
)

var (
	completeLong = templates.LongDesc(i18n.T(`
		End maintenances and give their nodes back.

		The nodes become schedulable again, unless another maintenance holds them. Pods that
		were asked to leave and are still there may stay, unless somebody else asks them too, or
		their interceptor forbids to call the eviction off. The object stays as a record; delete
		it when you like.

		Completing what is completed is no error. Instead of the maintenance its node may be named,
		if it has no other.`))

	completeExample = templates.Examples(i18n.T(`
		# Give the nodes back
		kubectl maintenance complete foo-x7k2p

		# Return when they are given back
		kubectl maintenance complete foo-x7k2p --wait --timeout=1m`))
)

type completeOptions struct {
	*environment
	names   []string
	wait    bool
	timeout time.Duration
}

func newCmdComplete(env *environment) *cobra.Command {
	o := &completeOptions{environment: env}
	cmd := &cobra.Command{
		Use:                   "complete NAME...",
		DisableFlagsInUseLine: true,
		Short:                 i18n.T("End maintenances and give their nodes back"),
		Long:                  completeLong,
		Example:               completeExample,
		ValidArgsFunction:     completeNames(env.factory, resource),
		Run: func(cmd *cobra.Command, args []string) {
			o.names = bareNames(args)
			checkErr(requireNames(cmd, o.names))
			checkErr(validateTimeout(o.timeout))
			ctx, stop := untilInterrupted(cmd, o.timeout)
			defer stop()
			checkErr(o.run(ctx))
		},
	}
	cmd.Flags().BoolVar(&o.wait, "wait", o.wait, "If true, return when the nodes are given back.")
	addTimeoutFlag(cmd, &o.timeout)
	return cmd
}

func requireNames(cmd *cobra.Command, names []string) error {
	if len(names) == 0 {
		return cmdutil.UsageErrorf(cmd, "at least one NAME is required; \"kubectl maintenance status\" lists them")
	}
	return nil
}

func (o *completeOptions) run(ctx context.Context) error {
	client, err := o.servedClient()
	if err != nil {
		return err
	}
	var errs []error
	var completing []*coordinationv1alpha1.NodeMaintenance
	var moved []string
	for _, name := range o.names {
		before, err := o.complete(ctx, client, name)
		if apierrors.IsNotFound(err) {
			if name, err = o.findOwn(ctx, client, name, "complete", err); err == nil {
				before, err = o.complete(ctx, client, name)
			}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		completing = append(completing, before)
		if before.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageComplete {
			moved = append(moved, name)
		}
	}
	if o.wait && len(completing) > 0 {
		_, err := follow(ctx, client, completing, o.clock, &lineDisplay{out: o.Out}, givenBack(func(v *view) bool { return v.Outcome == outcomeCompleted }))
		if err != nil {
			return err
		}
		o.printStillHeld(ctx, client, completing)
	}
	if len(moved) > 0 {
		fmt.Fprintf(o.ErrOut, "The record stays until you delete it: kubectl delete nm %s\n", strings.Join(moved, " "))
	}
	return joined(errs)
}

// printStillHeld names the nodes that stay cordoned, and by whom. It reads anew: what was
// followed is only these maintenances, and nodes that may be older. It is a courtesy: what
// it cannot read, it does not tell.
func (o *completeOptions) printStillHeld(ctx context.Context, client kubernetes.Interface, completed []*coordinationv1alpha1.NodeMaintenance) {
	maintenances, err := getMaintenances(ctx, client, nil)
	if err != nil {
		return
	}
	s := &snapshot{}
	s.setMaintenances(maintenances)
	if err := s.readNodes(ctx, client); err != nil {
		return
	}
	for _, v := range viewsOf(s, o.clock.Now()) {
		if slices.ContainsFunc(completed, func(nm *coordinationv1alpha1.NodeMaintenance) bool { return nm.UID == v.uid }) {
			for _, line := range v.stillHeld() {
				fmt.Fprintf(o.Out, "%s: %s\n", v.Name, line)
			}
		}
	}
}

// maxHeldNodes is how many nodes of those with the same holders are named.
const maxHeldNodes = 5

// stillHeld names nodes that stay cordoned, in a line for each set of maintenances that hold
// them.
func (v *view) stillHeld() []string {
	nodes := map[string][]string{}
	for _, node := range v.Nodes {
		if len(node.HeldBy) > 0 {
			holders := strings.Join(node.HeldBy, ", ")
			nodes[holders] = append(nodes[holders], node.Name)
		}
	}
	var lines []string
	for _, holders := range sortedNames(nodes) {
		held := nodes[holders]
		lines = append(lines, fmt.Sprintf("%s: still held by %s", listPods(held[:min(maxHeldNodes, len(held))], len(held)), holders))
	}
	return lines
}

// complete returns the maintenance as it was before.
func (o *completeOptions) complete(ctx context.Context, client kubernetes.Interface, name string) (*coordinationv1alpha1.NodeMaintenance, error) {
	before, err := moveTo(ctx, client, name, coordinationv1alpha1.NodeMaintenanceStageComplete, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return nil, err
	}
	switch {
	case isCompleted(before):
		fmt.Fprintf(o.Out, "nodemaintenance/%s is completed already\n", name)
		return before, nil
	case before.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete:
		fmt.Fprintf(o.Out, "nodemaintenance/%s is being completed already\n", name)
	default:
		fmt.Fprintf(o.Out, "nodemaintenance/%s is being completed\n", name)
	}
	printWhoGoesOn(ctx, o.environment, client, before)
	return before, nil
}

// printWhoGoesOn names the pods that leave although the maintenance ends. It is a
// courtesy: what it cannot read, it does not tell.
func printWhoGoesOn(ctx context.Context, env *environment, client kubernetes.Interface, nm *coordinationv1alpha1.NodeMaintenance) {
	if nm.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
		return
	}
	s, err := readSnapshot(ctx, client, []*coordinationv1alpha1.NodeMaintenance{nm})
	if err != nil || len(s.unreadable) > 0 {
		return
	}
	forbidding, others := whoGoesOn(nm, s)
	if len(forbidding) > 0 {
		fmt.Fprintf(env.Out, "%s on, because an interceptor forbids to call the eviction off: %s\n",
			counted(len(forbidding), "pod goes", "pods go"), plaintext.Line(strings.Join(forbidding, ", ")))
	}
	if len(others) > 0 {
		fmt.Fprintf(env.Out, "%s on, because somebody else asks for the eviction: %s\n",
			counted(len(others), "pod goes", "pods go"), plaintext.Line(strings.Join(others, ", ")))
	}
}

// whoGoesOn returns the pods whose eviction does not end with the maintenance: those
// whose interceptor forbids it, and those that others ask to leave.
func whoGoesOn(nm *coordinationv1alpha1.NodeMaintenance, s *snapshot) (forbidding, others []string) {
	for _, node := range s.selectedNodes(nm.Spec.NodeSelector) {
		for _, pod := range s.pods[node.Name] {
			request := s.requests[string(pod.UID)]
			if request == nil || isFinal(request) {
				continue
			}
			name := pod.Namespace + "/" + pod.Name
			switch {
			case request.Status.EvictionRequestCancellationPolicy == coordinationv1alpha1.EvictionRequestCancellationPolicyForbid:
				forbidding = append(forbidding, name)
			case hasOtherRequester(request):
				others = append(others, name)
			}
		}
	}
	return forbidding, others
}

func isFinal(request *coordinationv1alpha1.EvictionRequest) bool {
	state := evictionrequest.StateOf(request)
	return state == evictionrequest.StateEvicted || state == evictionrequest.StateCanceled
}

func hasOtherRequester(request *coordinationv1alpha1.EvictionRequest) bool {
	for _, requester := range request.Spec.Requesters {
		if requester.Name != coordinationv1alpha1.NodeMaintenanceRequester {
			return true
		}
	}
	return false
}

// joined returns errors as kubectl prints them: a single one as it is, so that what the
// server said of it is recognized.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
