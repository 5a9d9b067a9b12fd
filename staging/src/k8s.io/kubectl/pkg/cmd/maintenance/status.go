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

	"github.com/spf13/cobra"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	cmd := &cobra.Command{
		Use:                   "status [NAME... | NODE...] [--all]",
		DisableFlagsInUseLine: true,
		Short:                 i18n.T("Show the progress and the blockers of maintenances"),
		Long:                  statusLong,
		Example:               statusExample,
		ValidArgsFunction:     completeNames(env.factory, qualifiedResource),
		Run: func(cmd *cobra.Command, args []string) {
			o.names = args
			checkErr(validateOutput(o.output))
			ctx, stop := untilInterrupted(cmd, 0)
			defer stop()
			checkErr(o.run(ctx))
		},
	}
	addOutputFlag(cmd, &o.output)
	cmd.Flags().BoolVar(&o.all, "all", o.all, "If true, show completed maintenances too.")
	return cmd
}

func (o *statusOptions) run(ctx context.Context) error {
	client, err := o.servedClient()
	if err != nil {
		return err
	}
	maintenances, err := o.findMaintenances(ctx, client, o.names)
	if err != nil {
		return err
	}
	found := len(maintenances)
	if len(o.names) == 0 && !o.all {
		maintenances = slices.DeleteFunc(maintenances, isCompleted)
	}
	completed := found - len(maintenances)
	s, err := readSnapshot(ctx, client, maintenances)
	if err != nil {
		return err
	}
	views := viewsOf(s)
	var lease *coordinationv1.Lease
	if slices.ContainsFunc(views, func(v view) bool { return v.needsController() }) {
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
	for _, format := range formats {
		if output == format {
			return nil
		}
	}
	return fmt.Errorf("--output=%q: must be one of %v", output, formats[1:])
}

// printStructured prints a view for a script.
func printStructured(out io.Writer, format string, value any) error {
	var data []byte
	var err error
	if format == "yaml" {
		data, err = yaml.Marshal(value)
	} else if data, err = json.MarshalIndent(value, "", "    "); err == nil {
		data = append(data, '\n')
	}
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}
