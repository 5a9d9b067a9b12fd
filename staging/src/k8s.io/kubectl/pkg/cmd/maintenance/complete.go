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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
)

// completing moves maintenances to the stage Complete and keeps their objects.
var completing = &ending{
	verb: "complete", operands: "(NAME... | NAME NODE...)", completeNodes: true, asksForForce: true,
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
func (o *endOptions) complete(ctx context.Context, client kubernetes.Interface, name string) (*coordinationv1alpha1.NodeMaintenance, error) {
	before, err := moveTo(ctx, client, name, coordinationv1alpha1.NodeMaintenanceStageComplete, o.dryRun)
	if err != nil {
		return nil, err
	}
	switch {
	case isCompleted(before):
		o.printChange("nodemaintenance/"+name, "is already completed")
	case before.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete:
		o.printChange("nodemaintenance/"+name, "is already being completed")
	default:
		o.printChange("nodemaintenance/"+name, "is being completed")
	}
	o.printRemainingEvictions(ctx, client, before)
	return before, nil
}

// reportCompleted names nodes that stay cordoned, and the objects that stay.
func (o *endOptions) reportCompleted(ctx context.Context, client kubernetes.Interface, completed []*coordinationv1alpha1.NodeMaintenance) {
	if o.wait && len(completed) > 0 {
		o.printStillHeld(ctx, client, completed)
	}
	open := slices.DeleteFunc(slices.Clone(completed), func(before *coordinationv1alpha1.NodeMaintenance) bool {
		return before.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete
	})
	if len(open) > 0 {
		fmt.Fprintf(o.ErrOut, "The record stays until you delete it: kubectl delete nm %s\n", strings.Join(namesOf(open), " "))
	}
}

// printStillHeld names the nodes that stay cordoned, and the maintenances that claim them. It reads
// all maintenances: the wait has only read these. Errors are ignored: the nodes are released.
func (o *endOptions) printStillHeld(ctx context.Context, client kubernetes.Interface, completed []*coordinationv1alpha1.NodeMaintenance) {
	maintenances, err := getMaintenances(ctx, client, nil)
	if err != nil {
		return
	}
	s, err := readSnapshot(ctx, client, maintenances)
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
		lines = append(lines, fmt.Sprintf("%s: still claimed by %s", listPods(held[:min(maxHeldNodes, len(held))], len(held)), holders))
	}
	return lines
}
