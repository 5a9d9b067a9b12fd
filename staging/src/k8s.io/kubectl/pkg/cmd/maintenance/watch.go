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
	"slices"
	"time"

	"github.com/spf13/cobra"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
)

var (
	watchLong = templates.LongDesc(i18n.T(`
		Watch maintenances until each of them is drained, or can no longer become drained. One with a
		rollout is watched until all of its nodes are done, which means that they are released.

		On a terminal, the output of "kubectl maintenance status" is kept up to date, with progress
		bars that fill as pods leave. Otherwise a line is printed for each change of the stage, of a
		node or of a blocker. Without a name, all maintenances that are not completed are watched.

		Exit codes: 0 only when all are drained, so that "kubectl maintenance watch foo && reboot" is
		safe. Not if nodes are given back one by one, by a rollout or
		"kubectl maintenance complete foo NODE": they are done then and run pods again. 1 when one was
		deleted, replaced or completed, when its selector was changed, when a node was deleted, or lost its
		labels, before it was drained, when there is none to watch, or after an error. 2 when --timeout has passed, 3 when it has passed while pods or nodes were
		blocked, while no further node is drained until somebody intervenes, as when the rollout is
		paused, halted or frozen, or while no controller acted, 130 after Ctrl-C. A maintenance that
		selects no node is not drained: 1 if it has selected none for 30 seconds, because its nodes were
		deleted, or because those that it names do not exist. A lost connection is retried. None of this
		ends the maintenance.`))

	watchExample = templates.Examples(i18n.T(`
		# Watch all maintenances
		kubectl maintenance watch

		# Watch one for at most ten minutes
		kubectl maintenance watch foo-x7k2p --timeout=10m`))
)

type watchOptions struct {
	*environment
	names   []string
	timeout time.Duration
}

func newCmdWatch(env *environment) *cobra.Command {
	o := &watchOptions{environment: env}
	cmd := &cobra.Command{
		Use:                   "watch [NAME... | NODE...]",
		DisableFlagsInUseLine: true,
		Short:                 i18n.T("Watch maintenances until they are drained"),
		Long:                  watchLong,
		Example:               watchExample,
		ValidArgsFunction:     completeNames(env.factory, qualifiedResource),
		Run: func(cmd *cobra.Command, args []string) {
			o.names = args
			checkErr(validateTimeout(o.timeout))
			ctx, stop := untilInterrupted(cmd, o.timeout)
			defer stop()
			checkErr(o.run(ctx))
		},
	}
	addTimeoutFlag(cmd, &o.timeout)
	return cmd
}

func addTimeoutFlag(cmd *cobra.Command, timeout *time.Duration) {
	cmd.Flags().DurationVar(timeout, "timeout", *timeout, "How long to wait, such as 10m; 0 waits without end. The maintenance continues afterwards.")
}

func (o *watchOptions) run(ctx context.Context) error {
	client, err := o.servedClient()
	if err != nil {
		return err
	}
	// A name that does not exist is an error. One that is deleted later ends the watch.
	maintenances, err := o.findMaintenances(ctx, client, o.names)
	if err != nil {
		return err
	}
	if len(o.names) == 0 {
		maintenances = slices.DeleteFunc(maintenances, isCompleted)
	}
	if len(maintenances) == 0 {
		// A script that waits for a drain must not take this for one.
		return failed("no maintenances found that are not completed")
	}
	var shown display = &lineDisplay{out: o.Out, clocked: true}
	if screen := newScreen(o.terminal); screen != nil {
		shown = &screenDisplay{screen: screen}
	}
	last, err := follow(ctx, client, maintenances, o.clock, shown, drained(isEnded))
	if err != nil {
		return err
	}
	return undrained(maintenances, last)
}

// isInStage returns a function that reports whether a maintenance has done what the stage is for.
func isInStage(stage coordinationv1alpha1.NodeMaintenanceStage) func(v *view) bool {
	return func(v *view) bool {
		if isEnded(v) || stage != coordinationv1alpha1.NodeMaintenanceStageCordon {
			return isEnded(v)
		}
		// Without the permission to list nodes, that is unknown: the caller returns an error.
		return v.isCordoned() || slices.Contains(v.Unreadable, "nodes")
	}
}

// isCordoned reports whether the controller has started the stage, and all nodes are cordoned. It
// is false if there are no nodes.
func (v *view) isCordoned() bool {
	schedulable := slices.ContainsFunc(v.Nodes, func(node nodeView) bool { return !node.Cordoned })
	return v.StageStarted != nil && v.observed && len(v.Nodes) > 0 && !schedulable
}
