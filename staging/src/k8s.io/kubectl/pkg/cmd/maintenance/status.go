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
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/yaml"
)

var (
	statusLong = templates.LongDesc(i18n.T(`
		Show the progress of maintenances, node by node, and their blockers. Completed maintenances
		are shown only by name or with --all. A node can be named in place of its maintenances.

		In a progress bar, "!" stands for pods that need an intervention, ">" for pods whose
		eviction is requested, "." for pods whose eviction is not requested yet, "#" for those that have
		gone since the drain of the node began, as its status says. A bar of "#" is a drained node.

		Of a maintenance that begins with its nodes one by one, at most ten nodes are shown, those that
		need attention first, and how many are done, in progress and waiting, and for what.

		The controller publishes the blockers. This command reads only NodeMaintenances and nodes, and
		the lease of kube-controller-manager, if it may, to say when that does not run.`))

	statusExample = templates.Examples(i18n.T(`
		# Show all maintenances that are not completed
		kubectl maintenance status

		# Show those of node "foo"
		kubectl maintenance status foo

		# Show one with its blockers, for a script
		kubectl maintenance status foo-x7k2p -o json`))
)

type statusOptions struct {
	*environment
	names  []string
	all    bool
	output string
}

func newCmdStatus(env *environment) *cobra.Command {
	o := &statusOptions{environment: env}
	cmd := env.subcommand(&cobra.Command{
		Use:               "status [NAME... | NODE...] [--all]",
		Short:             i18n.T("Show the progress and the blockers of maintenances"),
		Long:              statusLong,
		Example:           statusExample,
		ValidArgsFunction: completeNames(env.factory),
	}, nil, func(_ *cobra.Command, args []string) error {
		o.names = args
		return validateOutput(o.output)
	}, o.run)
	addOutputFlag(cmd, &o.output)
	cmd.Flags().BoolVar(&o.all, "all", o.all, "If true, show completed maintenances too.")
	return cmd
}

func (o *statusOptions) run(ctx context.Context, client kubernetes.Interface) error {
	maintenances, err := o.findMaintenances(ctx, client, o.names)
	if err != nil {
		return err
	}
	found := len(maintenances)
	if len(o.names) == 0 && !o.all {
		maintenances = slices.DeleteFunc(maintenances, isCompleted)
	}
	completed := found - len(maintenances)
	s, err := readSnapshot(ctx, client, maintenances...)
	if err != nil {
		return err
	}
	views := viewsOf(s)
	var lease *coordinationv1.Lease
	if slices.ContainsFunc(views, (*view).needsController) {
		if lease, err = readLease(ctx, client); err != nil {
			lease = nil // That it is unknown is no news.
		}
	}
	now, isServerTime := o.server.now(o.clock.Now())
	silent := silenceOf(lease, now, isServerTime)
	if o.output != "" {
		root := map[string]any{"maintenances": views}
		if silent != nil {
			root["controllerSilentSince"] = metav1.NewTime(silent.since)
		}
		return printStructured(o.Out, o.output, root)
	}
	if len(views) == 0 && completed == 0 {
		_, err := fmt.Fprintln(o.ErrOut, "No maintenances found")
		return err
	}
	if len(views) > 0 {
		if _, err = io.WriteString(o.Out, renderSilence(silent, now, defaultWidth)+renderStatus(views, now, defaultWidth)); err != nil {
			return err
		}
	}
	if completed > 0 {
		_, err = fmt.Fprintf(o.ErrOut, "%s not shown, see --all\n", counted(completed, "completed maintenance is", "completed maintenances are"))
	}
	return err
}

// addOutputFlag adds -o with the formats of views besides text.
func addOutputFlag(cmd *cobra.Command, output *string, more ...string) {
	formats := append([]string{"json", "yaml"}, more...)
	cmd.Flags().StringVarP(output, "output", "o", *output, fmt.Sprintf("Output format, besides text for people. One of: %v.", formats))
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))
}

func validateOutput(output string, more ...string) error {
	formats := append([]string{"", "json", "yaml"}, more...)
	if slices.Contains(formats, output) {
		return nil
	}
	return fmt.Errorf("--output=%q: must be one of %v", output, formats[1:])
}

// printStructured prints a view for a script.
func printStructured(out io.Writer, format string, value any) error {
	data, err := yaml.Marshal(value)
	if format == "json" {
		data, err = json.MarshalIndent(value, "", "    ")
		data = append(data, '\n')
	}
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

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
		deleted, replaced or completed, when its selector was changed, when a node lost its labels, or was
		deleted before it was drained, when there is none to watch, or after an error. 2 when --timeout has
		passed, 3 when it has passed while pods or nodes were blocked, while no further node is drained until somebody intervenes, as when the rollout is
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
	return env.subcommand(&cobra.Command{
		Use:               "watch [NAME... | NODE...]",
		Short:             i18n.T("Watch maintenances until they are drained"),
		Long:              watchLong,
		Example:           watchExample,
		ValidArgsFunction: completeNames(env.factory),
	}, &o.timeout, func(_ *cobra.Command, args []string) error {
		o.names = args
		return nil
	}, o.run)
}

func (o *watchOptions) run(ctx context.Context, client kubernetes.Interface) error {
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
	show := (&lineDisplay{out: o.Out, clocked: true}).show
	if screen := newScreen(o.terminal); screen != nil {
		defer screen.close()
		show = screen.show
	}
	last, err := follow(ctx, client, maintenances, o.clock, show, drained(isEnded))
	if err != nil {
		return err
	}
	return undrained(maintenances, last)
}

// isCordoned reports whether the controller has started the stage, and all nodes are cordoned. It
// is false if there are no nodes.
func (v *view) isCordoned() bool {
	schedulable := slices.ContainsFunc(v.Nodes, func(node *nodeView) bool { return !node.Cordoned })
	return v.StageStarted != nil && v.observed && len(v.Nodes) > 0 && !schedulable
}
