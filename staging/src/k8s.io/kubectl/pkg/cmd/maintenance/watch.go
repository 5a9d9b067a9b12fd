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
	"time"

	"github.com/spf13/cobra"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
)

var (
	watchLong = templates.LongDesc(i18n.T(`
		Watch maintenances until each of them is drained, completed or deleted.

		On a terminal the overview of "kubectl maintenance status" is kept up to date, with
		progress bars that fill as pods leave; anywhere else a line is printed for each change.
		Without a name all maintenances that are not completed are watched.

		Exit codes: 0 when all are drained, completed or deleted, 1 after an error, 2 when
		--timeout has passed, 3 when it has passed while pods were blocked, 130 after Ctrl-C.
		None of them ends the maintenance.`))

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
		Use:                   "watch [NAME...]",
		DisableFlagsInUseLine: true,
		Short:                 i18n.T("Watch maintenances until they are drained"),
		Long:                  watchLong,
		Example:               watchExample,
		ValidArgsFunction:     completeNames(env.factory, resource),
		Run: func(cmd *cobra.Command, args []string) {
			o.names = args
			cmdutil.CheckErr(validateTimeout(o.timeout))
			ctx, stop := untilInterrupted(cmd, o.timeout)
			defer stop()
			cmdutil.CheckErr(o.run(ctx))
		},
	}
	addTimeoutFlag(cmd, &o.timeout)
	return cmd
}

func addTimeoutFlag(cmd *cobra.Command, timeout *time.Duration) {
	cmd.Flags().DurationVar(timeout, "timeout", *timeout, "How long to wait, such as 10m; 0 waits without end. The maintenance goes on afterwards.")
}

func (o *watchOptions) run(ctx context.Context) error {
	client, err := o.servedClient()
	if err != nil {
		return err
	}
	// A name that does not exist is an error now, and the end of the watch later.
	maintenances, err := getMaintenances(ctx, client, o.names)
	if err != nil {
		return err
	}
	var names []string
	for _, nm := range maintenances {
		if len(o.names) > 0 || !isCompleted(nm) {
			names = append(names, nm.Name)
		}
	}
	if len(names) == 0 {
		_, err := fmt.Fprintln(o.ErrOut, "No maintenances found that are not completed")
		return err
	}
	var shown display = &lineDisplay{out: o.Out, clocked: true}
	if screen := newScreen(o.Out); screen != nil {
		shown = &screenDisplay{screen: screen}
	}
	_, err = follow(ctx, client, names, o.clock, shown, isOver)
	return err
}

// isOver tells whether there is nothing more to watch.
func isOver(v *view) bool { return v.Outcome != "" }

// isInStage returns whether a maintenance has done what its stage is for.
func isInStage(stage coordinationv1alpha1.NodeMaintenanceStage) func(v *view) bool {
	return func(v *view) bool {
		if v.Outcome == outcomeCompleted || stage != coordinationv1alpha1.NodeMaintenanceStageCordon {
			return isOver(v)
		}
		for _, node := range v.Nodes {
			if !node.Cordoned {
				return false
			}
		}
		return v.StageStarted != nil
	}
}
