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

	"github.com/spf13/cobra"

	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/yaml"
)

var (
	statusLong = templates.LongDesc(i18n.T(`
		Show how far maintenances are, node by node, and what they wait for.

		In a progress bar, "!" stands for pods that stay until somebody acts, ">" for pods that
		were asked to leave, "." for pods that were not asked yet. A bar of "#" is a drained node.

		Pods, eviction requests and budgets are read to name the blockers. Without the right to
		list them, what the controller says of the maintenance is shown instead.`))

	statusExample = templates.Examples(i18n.T(`
		# Show all maintenances
		kubectl maintenance status

		# Show one, and who holds it up, for a script
		kubectl maintenance status foo-x7k2p -o json`))
)

type statusOptions struct {
	*environment
	names  []string
	output string
}

func newCmdStatus(env *environment) *cobra.Command {
	o := &statusOptions{environment: env}
	cmd := &cobra.Command{
		Use:                   "status [NAME...]",
		DisableFlagsInUseLine: true,
		Short:                 i18n.T("Show how far maintenances are, and what they wait for"),
		Long:                  statusLong,
		Example:               statusExample,
		ValidArgsFunction:     completeNames(env.factory, resource),
		Run: func(cmd *cobra.Command, args []string) {
			o.names = args
			checkErr(validateOutput(o.output))
			ctx, stop := untilInterrupted(cmd, 0)
			defer stop()
			checkErr(o.run(ctx))
		},
	}
	addOutputFlag(cmd, &o.output)
	return cmd
}

func (o *statusOptions) run(ctx context.Context) error {
	client, err := o.servedClient()
	if err != nil {
		return err
	}
	maintenances, err := getMaintenances(ctx, client, o.names)
	if err != nil {
		return err
	}
	s, err := readSnapshot(ctx, client, maintenances)
	if err != nil {
		return err
	}
	now := o.clock.Now()
	views := viewsOf(s, now)
	if o.output != "" {
		return printStructured(o.Out, o.output, map[string]any{"maintenances": views})
	}
	if len(views) == 0 {
		_, err := fmt.Fprintln(o.ErrOut, "No maintenances found")
		return err
	}
	_, err = io.WriteString(o.Out, renderStatus(views, now, defaultWidth))
	return err
}

// addOutputFlag adds -o with the formats that views have, besides text.
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
