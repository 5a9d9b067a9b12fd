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
	"time"

	"github.com/spf13/cobra"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/plaintext"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
)

// ending is a way to end maintenances: complete keeps their objects, cancel deletes them.
type ending struct {
	verb, short, long, example, waitUsage string

	// operands are the arguments in the usage line.
	operands string
	// completeNodes reports whether nodes can be named behind a maintenance, to end the work on them
	// alone, so that the end of a rollout takes --force while it is not done with some of its nodes.
	completeNodes bool

	// end ends one maintenance, and returns it as it was before.
	end func(o *endOptions, ctx context.Context, client kubernetes.Interface, nm *coordinationv1alpha1.NodeMaintenance) (*coordinationv1alpha1.NodeMaintenance, error)
	// isOver reports whether an existing maintenance has ended. One that is gone always has.
	isOver func(v *view) bool
	// finish runs after the wait, if there is one. It may be nil.
	finish func(o *endOptions, ctx context.Context, client kubernetes.Interface, ended []*coordinationv1alpha1.NodeMaintenance)
}

type endOptions struct {
	*environment
	ending  *ending
	args    []string
	force   bool
	wait    bool
	timeout time.Duration
	dryRun  cmdutil.DryRunStrategy
}

func newCmdEnd(env *environment, ending *ending) *cobra.Command {
	o := &endOptions{environment: env, ending: ending}
	cmd := env.subcommand(&cobra.Command{
		Use:               ending.verb + " " + ending.operands,
		Short:             ending.short,
		Long:              ending.long,
		Example:           ending.example,
		ValidArgsFunction: completeNames(env.factory),
	}, &o.timeout, o.prepare, o.run)
	cmd.Flags().BoolVar(&o.wait, "wait", o.wait, ending.waitUsage)
	cmdutil.AddDryRunFlag(cmd)
	if ending.completeNodes {
		cmd.ValidArgsFunction = completeMaintenanceAndNodes(env)
		cmd.Flags().BoolVar(&o.force, "force", o.force, "If true, complete nodes that are not drained yet, which skips them: the maintenance leaves them as they are, and does not drain them later. Without nodes: end a rollout that is not done with some of its nodes, and release them as they are.")
	}
	return cmd
}

func (o *endOptions) prepare(cmd *cobra.Command, args []string) (err error) {
	o.args = args
	if err := requireNames(cmd, args); err != nil {
		return err
	}
	if o.dryRun, err = cmdutil.GetDryRunStrategy(cmd); err == nil && o.wait && o.dryRun != cmdutil.DryRunNone {
		err = cmdutil.UsageErrorf(cmd, "--wait: there is nothing to wait for with --dry-run")
	}
	return err
}

// printChange prints what happens to an object, or would happen.
func (o *endOptions) printChange(object, change string) {
	note := map[cmdutil.DryRunStrategy]string{cmdutil.DryRunClient: " (dry run)", cmdutil.DryRunServer: " (server dry run)"}[o.dryRun]
	fmt.Fprintf(o.Out, "%s %s%s\n", object, change, note)
}

func requireNames(cmd *cobra.Command, names []string) error {
	if len(names) == 0 {
		return cmdutil.UsageErrorf(cmd, "at least one NAME is required; \"kubectl maintenance status\" lists them")
	}
	return nil
}

func (o *endOptions) run(ctx context.Context, client kubernetes.Interface) error {
	if o.ending.completeNodes {
		if named, err := o.nodesToComplete(ctx, client); err != nil {
			return err
		} else if named != nil {
			return o.completeNodes(ctx, client, named)
		}
	}
	return o.endAll(ctx, client)
}

// endAll ends maintenances as a whole, unless an argument names none.
func (o *endOptions) endAll(ctx context.Context, client kubernetes.Interface) error {
	found, err := o.findOwn(ctx, client, o.args, o.ending.verb)
	if err != nil {
		return err
	}
	if err := o.checkUnderWay(ctx, client, found); err != nil {
		return err
	}
	var errs []error
	var ended []*coordinationv1alpha1.NodeMaintenance
	for _, nm := range found {
		if nm, err = o.ending.end(o, ctx, client, nm); err != nil {
			errs = append(errs, err)
			continue
		}
		ended = append(ended, nm)
	}
	if o.wait && len(ended) > 0 {
		if _, err := follow(ctx, client, ended, o.clock, (&lineDisplay{out: o.Out}).show, released(o.ending.isOver)); err != nil {
			return joined(append(errs, err))
		}
	}
	if o.ending.finish != nil && o.dryRun == cmdutil.DryRunNone {
		o.ending.finish(o, ctx, client, ended)
	}
	return joined(errs)
}

// canceling deletes maintenances.
var canceling = &ending{
	verb: "cancel", operands: "NAME...",
	short: i18n.T("End maintenances and delete them"),
	long: templates.LongDesc(i18n.T(`
		End maintenances and delete them.

		The controller completes them first: the nodes become schedulable again, unless another
		maintenance claims them, and the eviction of pods that are still running is canceled. Two
		kinds of pods are still evicted, and are named: pods whose interceptor forbids cancellation,
		and pods whose eviction another client requests too; calls of pods/eviction for a cordoned node
		count only while it stays cordoned. A node can be named in place of its
		maintenance if it has only one, and that selects no other node. If an argument names no
		maintenance, nothing is changed. Nodes of a rollout that are released although it is not done with
		them are named.

		To end the work on single nodes, use "kubectl maintenance complete NAME NODE".`)),
	example: templates.Examples(i18n.T(`
		# Cancel a maintenance
		kubectl maintenance cancel foo-x7k2p

		# Show which nodes and pods that concerns, and whether the API server would accept it
		kubectl maintenance cancel foo-x7k2p --dry-run=server

		# Return when it is gone
		kubectl maintenance cancel foo-x7k2p --wait`)),
	waitUsage: "If true, return when the maintenances are gone.",
	end:       (*endOptions).cancel,
	isOver:    func(*view) bool { return false },
}

// cancel deletes the maintenance, and returns it as it was before. The precondition keeps one that
// was created later under the same name.
func (o *endOptions) cancel(ctx context.Context, client kubernetes.Interface, nm *coordinationv1alpha1.NodeMaintenance) (*coordinationv1alpha1.NodeMaintenance, error) {
	if o.dryRun != cmdutil.DryRunClient {
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(nm.UID)), DryRun: serverDryRun(o.dryRun)}
		if err := client.CoordinationV1alpha1().NodeMaintenances().Delete(ctx, nm.Name, options); err != nil {
			return nil, fmt.Errorf("deleting NodeMaintenance %q: %w", nm.Name, err)
		}
	}
	o.printChange("nodemaintenance/"+nm.Name, "is canceled")
	o.printRemainingEvictions(ctx, client, nm)
	return nm, nil
}

// completing moves maintenances to the stage Complete and keeps their objects.
var completing = &ending{
	verb: "complete", operands: "(NAME... | NAME NODE...)", completeNodes: true,
	short: i18n.T("End maintenances and release their nodes, or single nodes"),
	long: templates.LongDesc(i18n.T(`
		End maintenances and release their nodes, or say of single nodes that the work on them is done.

		The nodes become schedulable again, unless another maintenance claims them. The eviction of
		pods that are still running is canceled, unless another client requests it too, or the
		interceptor of the pod forbids cancellation. The object stays as a record until you delete
		it.

		With nodes behind the name of a maintenance, only these are completed: each becomes schedulable
		when it is Ready and runs its pods of DaemonSets, the next nodes are drained in their place, and
		the maintenance does not drain them again. That needs the feature gate NodeMaintenanceBudgets, and
		nodes that are drained, to which no pod has come back; --force completes others, too. Those that
		never were drained are skipped then. Nodes that cannot be completed are named, and the others
		are completed nevertheless.

		A rollout that is not done with nodes that it has begun with is not completed without --force: it
		would release nodes on which work is under way, or that are not healthy. The nodes are named.

		Completing a completed maintenance or node is not an error. A node can be named in place of its
		maintenance if it has only one, and that selects no other node. If a maintenance does not exist,
		nothing is changed.`)),
	example: templates.Examples(i18n.T(`
		# Release the nodes
		kubectl maintenance complete foo-x7k2p

		# Say that the work on two nodes of a maintenance is done
		kubectl maintenance complete kernel node-7 node-8

		# Show what that would do, and whether the API server would accept it
		kubectl maintenance complete kernel node-7 node-8 --dry-run=server

		# Return when they are released
		kubectl maintenance complete foo-x7k2p --wait --timeout=1m`)),
	waitUsage: "If true, return when the nodes are released.",
	end:       (*endOptions).complete,
	isOver:    func(v *view) bool { return v.Outcome == outcomeCompleted },
	finish:    (*endOptions).reportCompleted,
}

// complete returns the maintenance as it was before.
func (o *endOptions) complete(ctx context.Context, client kubernetes.Interface, nm *coordinationv1alpha1.NodeMaintenance) (*coordinationv1alpha1.NodeMaintenance, error) {
	before, err := moveTo(ctx, client, nm.Name, coordinationv1alpha1.NodeMaintenanceStageComplete, o.dryRun)
	if err != nil {
		return nil, err
	}
	change := "is being completed"
	switch {
	case isCompleted(before):
		change = "is already completed"
	case before.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete:
		change = "is already being completed"
	}
	o.printChange("nodemaintenance/"+nm.Name, change)
	o.printRemainingEvictions(ctx, client, before)
	return before, nil
}

// reportCompleted names nodes that stay cordoned, and the objects that stay.
func (o *endOptions) reportCompleted(ctx context.Context, client kubernetes.Interface, completed []*coordinationv1alpha1.NodeMaintenance) {
	if o.wait && len(completed) > 0 {
		o.printStillHeld(ctx, client, completed)
	}
	open := filtered(completed, func(before *coordinationv1alpha1.NodeMaintenance) bool {
		return before.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageComplete
	})
	if len(open) > 0 {
		fmt.Fprintf(o.ErrOut, "The record stays until you delete it: kubectl delete nm %s\n", strings.Join(namesOf(open), " "))
	}
}

// printStillHeld names the nodes that stay cordoned, and the maintenances that claim them. It reads
// all maintenances: the wait has only read these. Errors are ignored: the nodes are released.
func (o *endOptions) printStillHeld(ctx context.Context, client kubernetes.Interface, completed []*coordinationv1alpha1.NodeMaintenance) {
	maintenances, err := listMaintenances(ctx, client)
	if err != nil {
		return
	}
	s, err := readSnapshot(ctx, client, maintenances...)
	if err != nil {
		return
	}
	for _, v := range viewsOf(s) {
		if slices.ContainsFunc(completed, func(nm *coordinationv1alpha1.NodeMaintenance) bool { return nm.UID == v.uid }) {
			for _, line := range v.stillHeld() {
				fmt.Fprintf(o.Out, "%s: %s\n", v.Name, line)
			}
		}
	}
}

// stillHeld names nodes that stay cordoned, in a line for each set of maintenances that claim them.
func (v *view) stillHeld() []string {
	nodes := map[string][]string{}
	for _, node := range v.Nodes {
		if len(node.ClaimedBy) > 0 {
			holders := strings.Join(node.ClaimedBy, ", ")
			nodes[holders] = append(nodes[holders], node.Name)
		}
	}
	var lines []string
	for _, holders := range sortedNames(nodes) {
		held := nodes[holders]
		lines = append(lines, fmt.Sprintf("%s: still claimed by %s", listFirst(held, maxHeldNodes), holders))
	}
	return lines
}

// checkUnderWay refuses to complete rollouts that are not done with some of their nodes, unless somebody insists:
// the end of the maintenance releases these nodes whether or not the work on them is done, and without a look
// whether they are healthy. It reads all of them before the first write. cancel only names such nodes.
func (o *endOptions) checkUnderWay(ctx context.Context, client kubernetes.Interface, maintenances []*coordinationv1alpha1.NodeMaintenance) error {
	var errs []error
	for _, nm := range maintenances {
		if nm.Spec.Rollout == nil || validateNodesOf(nm) != nil {
			continue // Whoever ends it says what is wrong.
		}
		s, err := readSnapshot(ctx, client, nm)
		if err != nil {
			return err
		}
		v := viewOf(nm, s)
		count, list := v.underWayText(o.clock.Now())
		switch {
		case count == 0:
		case o.force || !o.ending.completeNodes:
			fmt.Fprintln(o.ErrOut, plaintext.Line(fmt.Sprintf("Warning: NodeMaintenance %q releases %s with which it is not done%s", nm.Name, counted(count, "node", "nodes"), list)))
		default:
			errs = append(errs, failed("NodeMaintenance %q is not done with %s, which it would release as they are%s. When the work on one is done: kubectl maintenance complete %s NODE. To release them all the same, add --force",
				nm.Name, counted(count, "node", "nodes"), plaintext.Line(list), nm.Name))
		}
	}
	return unchanged(errs...)
}

// underWayText counts the nodes that the maintenance has begun with and not given back, and lists the first of
// them, those first that need attention, if the user may list nodes.
func (v *view) underWayText(now time.Time) (count int, list string) {
	if !v.hasPhases() {
		return v.Rollout.AdmittedNodes, ""
	}
	// Others should be cordoned, and are not.
	underWay := filtered(v.mostUrgent(), func(node *nodeView) bool { return node.Phase.isUnderWay() })
	if len(underWay) == 0 {
		return 0, ""
	}
	texts := mapped(underWay, func(node *nodeView) string {
		if why := node.unhealthyText(now); why != "" {
			return fmt.Sprintf("%s (%s, %s)", node.Name, node.Phase, why)
		}
		return fmt.Sprintf("%s (%s)", node.Name, node.Phase)
	})
	return len(texts), ": " + strings.TrimSpace(listFirst(texts, maxHeldNodes))
}

const (
	// maxRemainingNodes is of how many nodes pods are read to name those that are still evicted.
	maxRemainingNodes = maxNodesOneByOne

	// maxRemainingPods is how many of these pods are named.
	maxRemainingPods = 10
)

// printRemainingEvictions names the pods that are evicted although the maintenance ends. No status
// has them, so it reads the pods of the nodes with active requests. Errors are ignored: the
// maintenance has ended, and the user may not have the permission.
func (o *endOptions) printRemainingEvictions(ctx context.Context, client kubernetes.Interface, nm *coordinationv1alpha1.NodeMaintenance) {
	if nm.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
		return
	}
	s := &podSnapshot{}
	if err := s.readNodes(ctx, client); err != nil {
		return
	}
	requested := s.nodesWithRequests(nm)
	names := namesOf(requested[:min(maxRemainingNodes, len(requested))])
	if len(names) == 0 || s.readPods(ctx, client, sets.New(names...), podSelectors(names)) != nil {
		return
	}
	forbidding, others, called := s.remainingEvictions(requested[:len(names)])
	atLeast := ""
	if len(requested) > len(names) {
		atLeast = "at least "
	}
	o.printRemaining(atLeast, forbidding, "will still be evicted, because its interceptor forbids cancellation", "will still be evicted, because their interceptors forbid cancellation")
	o.printRemaining(atLeast, others, "will still be evicted, because another client requests it", "will still be evicted, because other clients request it")
	o.printRemaining(atLeast, called, "will only be evicted while its node stays cordoned, because somebody called pods/eviction for it", "will only be evicted while their nodes stay cordoned, because somebody called pods/eviction for them")
}

// nodesWithRequests returns the nodes of the maintenance on which evictions are requested.
func (s *podSnapshot) nodesWithRequests(nm *coordinationv1alpha1.NodeMaintenance) []*corev1.Node {
	return filtered(s.selectedNodes(nm.Spec.NodeSelector), func(node *corev1.Node) bool {
		return node.Status.MaintenanceStatus != nil && node.Status.MaintenanceStatus.ActiveEvictionRequests > 0
	})
}

// printRemaining names some of the pods, and says what becomes of one or of several.
func (o *endOptions) printRemaining(atLeast string, pods []string, one, many string) {
	if len(pods) > 0 {
		fmt.Fprintf(o.Out, "%s%s: %s\n", atLeast, counted(len(pods), "pod "+one, "pods "+many), plaintext.Line(listFirst(pods, maxRemainingPods)))
	}
}

// remainingEvictions returns the pods whose eviction does not end with the maintenance: their interceptor forbids it,
// or another client requests it too. The server withdraws calls of pods/eviction while a node was cordoned when it
// gets schedulable, as it does unless something else keeps it cordoned.
func (s *podSnapshot) remainingEvictions(nodes []*corev1.Node) (forbidding, others, called []string) {
	for _, node := range nodes {
		for _, pod := range s.pods[node.Name] {
			request, name := s.openRequestOf(pod), pod.Namespace+"/"+pod.Name
			switch {
			case request == nil:
			case request.Status.EvictionRequestCancellationPolicy == coordinationv1alpha1.EvictionRequestCancellationPolicyForbid:
				forbidding = append(forbidding, name)
			case slices.ContainsFunc(evictionrequest.RequestersWithoutCalls(request), func(other coordinationv1alpha1.Requester) bool {
				return other.Name != coordinationv1alpha1.NodeMaintenanceRequester
			}), evictionrequest.IsRequestedByCalls(request) && !evictionrequest.WasEvictionCallCordoned(request, node):
				others = append(others, name)
			case evictionrequest.IsRequestedByCalls(request):
				called = append(called, name)
			}
		}
	}
	return forbidding, others, called
}
