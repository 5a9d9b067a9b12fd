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

	"github.com/spf13/cobra"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/utils/ptr"
)

// pausing is a way to change whether rollouts begin with further nodes.
type pausing struct {
	verb, short, long, example string

	// paused is what spec.rollout.paused becomes.
	paused bool
}

var pauses = &pausing{
	verb:  "pause",
	short: i18n.T("Begin with no further node of a maintenance"),
	long: templates.LongDesc(i18n.T(`
		Begin with no further node of a maintenance with a rollout (spec.rollout.paused).

		Nodes with which it has begun go on: they are drained, and released when the work on them is
		done. To stop the drain of nodes that a maintenance has begun with, end it with "kubectl
		maintenance complete" or "cancel".

		Pausing a paused maintenance is not an error. If an argument names no maintenance, nothing is
		changed.`)),
	example: templates.Examples(i18n.T(`
		# Begin with no further node
		kubectl maintenance pause kernel

		# Go on
		kubectl maintenance resume kernel`)),
	paused: true,
}

var resumes = &pausing{
	verb:  "resume",
	short: i18n.T("Go on with a maintenance that is paused or halted"),
	long: templates.LongDesc(i18n.T(`
		Go on with a maintenance with a rollout that is paused, or that was halted because nodes did
		not come back in time.

		If it is halted, the nodes that have failed so far are acknowledged by their UIDs
		(spec.rollout.acknowledgedNodeUIDs): they do not halt it any more, and the next node that fails
		does. The failed nodes are named. Nothing is repaired: they stay cordoned until they come back,
		and count as unavailable for NodeMaintenanceBudgets, but not for --max-concurrent. This takes
		the permission to list nodes.

		Resuming a maintenance that is neither paused nor halted is not an error. If an argument names
		no maintenance, nothing is changed.`)),
	example: templates.Examples(i18n.T(`
		# See why it is halted
		kubectl maintenance status kernel

		# Go on without the nodes that did not come back
		kubectl maintenance resume kernel`)),
}

type pauseOptions struct {
	*environment
	pausing *pausing
	args    []string
}

func newCmdPause(env *environment, pausing *pausing) *cobra.Command {
	o := &pauseOptions{environment: env, pausing: pausing}
	return env.subcommand(&cobra.Command{
		Use:               pausing.verb + " NAME...",
		Short:             pausing.short,
		Long:              pausing.long,
		Example:           pausing.example,
		ValidArgsFunction: completeNames(env.factory),
	}, nil, func(cmd *cobra.Command, args []string) error {
		o.args = args
		return requireNames(cmd, args)
	}, o.run)
}

func (o *pauseOptions) run(ctx context.Context, client kubernetes.Interface) error {
	found, err := o.findOwn(ctx, client, o.args, o.pausing.verb)
	if err != nil {
		return err
	}
	return joined(mapped(found, func(nm *coordinationv1alpha1.NodeMaintenance) error { return o.changeRollout(ctx, client, nm.Name) }))
}

// changeRollout changes the rollout of a maintenance, and prints what was changed: what it prints as failed is what
// was acknowledged.
func (o *pauseOptions) changeRollout(ctx context.Context, client kubernetes.Interface, name string) error {
	var failed failedNodes
	var wanted *coordinationv1alpha1.NodeMaintenanceRollout
	before, after, err := patchSpec(ctx, client, name, nil, func(nm *coordinationv1alpha1.NodeMaintenance) (map[string]any, error) {
		if err := o.pausing.validate(nm); err != nil {
			return nil, err
		}
		var err error
		if failed, err = o.pausing.readFailed(ctx, client, nm); err != nil {
			return nil, err
		}
		wanted = nm.Spec.Rollout.DeepCopy()
		if wanted.Paused = o.pausing.paused; !o.pausing.paused && failed.halt(nm) {
			// Those that are back are left out, so that the list stays short.
			wanted.AcknowledgedNodeUIDs = mapped(failed, (*corev1.Node).GetUID)
		}
		return changedFields(nm.Spec.Rollout, wanted), nil
	})
	if err != nil {
		return err
	}
	if after != nil && !slices.Equal(after.Spec.Rollout.AcknowledgedNodeUIDs, wanted.AcknowledgedNodeUIDs) {
		return fmt.Errorf("kube-apiserver is of an older version, which does not store spec.rollout.acknowledgedNodeUIDs of NodeMaintenance %q: raise spec.rollout.maxFailedNodes to %d", name, len(failed))
	}
	report := resumeReport(before, failed, after != nil)
	if o.pausing.paused {
		report = pauseReport(before, after != nil)
	}
	for _, line := range report {
		fmt.Fprintln(o.Out, line)
	}
	return nil
}

// changedFields returns what a merge patch of a spec has to have to change its rollout.
func changedFields(before, after *coordinationv1alpha1.NodeMaintenanceRollout) map[string]any {
	fields := map[string]any{}
	if before.Paused != after.Paused {
		fields["paused"] = after.Paused
	}
	if !slices.Equal(before.AcknowledgedNodeUIDs, after.AcknowledgedNodeUIDs) {
		fields["acknowledgedNodeUIDs"] = after.AcknowledgedNodeUIDs
	}
	if len(fields) == 0 {
		return nil
	}
	return map[string]any{"rollout": fields}
}

// validate refuses maintenances that cannot be paused or resumed.
func (p *pausing) validate(nm *coordinationv1alpha1.NodeMaintenance) error {
	switch {
	case nm.DeletionTimestamp != nil || nm.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete:
		return failed("NodeMaintenance %q has ended, and begins with no further node", nm.Name)
	case nm.Spec.Rollout == nil && !p.paused:
		return failed("NodeMaintenance %q has no spec.rollout, so it is neither paused nor halted. What it waits for: kubectl maintenance status %s", nm.Name, nm.Name)
	case nm.Spec.Rollout == nil:
		return failed("NodeMaintenance %q has no spec.rollout, which can only be set when it is created, so it cannot be paused. "+
			"To begin with no further node, create a NodeMaintenanceBudget that selects its nodes, with maxUnavailable 0, which needs the feature gate NodeMaintenanceBudgets. To end it: kubectl maintenance cancel %s", nm.Name, nm.Name)
	}
	return nil
}

func pauseReport(before *coordinationv1alpha1.NodeMaintenance, changed bool) []string {
	if !changed {
		return []string{fmt.Sprintf("nodemaintenance/%s is already paused. To resume it: kubectl maintenance resume %s", before.Name, before.Name)}
	}
	line := fmt.Sprintf("nodemaintenance/%s is paused", before.Name)
	if status := before.Status.RolloutStatus; status != nil && before.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain {
		line += fmt.Sprintf(": %d waiting; %d in progress, which go on", status.WaitingNodes, status.AdmittedNodes)
	}
	return []string{line + ". To resume it: kubectl maintenance resume " + before.Name}
}

func resumeReport(before *coordinationv1alpha1.NodeMaintenance, failed failedNodes, changed bool) []string {
	switch {
	case !changed && isHalted(before):
		return []string{fmt.Sprintf("nodemaintenance/%s was resumed, and the controller has not acted on it yet", before.Name)}
	case !changed:
		return []string{fmt.Sprintf("nodemaintenance/%s is neither paused nor halted. What its nodes wait for: kubectl maintenance status %s", before.Name, before.Name)}
	case !failed.halt(before):
		return []string{fmt.Sprintf("nodemaintenance/%s is resumed", before.Name)}
	}
	stay, acknowledged := "They stay cordoned, and unavailable for NodeMaintenanceBudgets, until you repair them; then they are released", "failed nodes are"
	if len(failed) == 1 {
		stay, acknowledged = "It stays cordoned, and unavailable for NodeMaintenanceBudgets, until you repair it; then it is released", "failed node is"
	}
	return []string{
		fmt.Sprintf("nodemaintenance/%s is resumed: %d %s acknowledged; it halts again if more than %d others fail", before.Name, len(failed), acknowledged, ptr.Deref(before.Spec.Rollout.MaxFailedNodes, 0)),
		plaintext.Line(fmt.Sprintf("Not repaired: %s. %s.", failed.names(), stay)),
	}
}

// maxAcknowledged is how many nodes spec.rollout.acknowledgedNodeUIDs may have.
const maxAcknowledged = 1000

// readFailed returns the failed nodes of a halted rollout that is to go on.
func (p *pausing) readFailed(ctx context.Context, client kubernetes.Interface, nm *coordinationv1alpha1.NodeMaintenance) (failedNodes, error) {
	if p.paused || !isHalted(nm) {
		return nil, nil
	}
	s := &snapshot{}
	if err := s.readNodes(ctx, client); err != nil {
		return nil, err
	}
	if !s.readable("nodes") {
		return nil, failed("NodeMaintenance %q is halted, and to acknowledge the nodes that have failed takes the permission to list nodes. "+
			"Without it, raise spec.rollout.maxFailedNodes, which is %d", nm.Name, ptr.Deref(nm.Spec.Rollout.MaxFailedNodes, 0))
	}
	found := failedNodes(filtered(s.nodes, func(node *corev1.Node) bool {
		admission := maintenance.AdmissionOf(node, nm.UID)
		return admission != nil && admission.FailedTime != nil && admission.DoneTime == nil
	}))
	if len(found) > maxAcknowledged {
		return nil, failed("%d nodes of NodeMaintenance %q have failed, and at most %d can be acknowledged: raise spec.rollout.maxFailedNodes", len(found), nm.Name, maxAcknowledged)
	}
	return found, nil
}
