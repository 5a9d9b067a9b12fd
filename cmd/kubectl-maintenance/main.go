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

// Command kubectl-maintenance is "kubectl maintenance" for users whose kubectl lacks it. kubectl
// runs it as a plugin if it is in the PATH. It can also be called by its own name.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd/maintenance"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	// Import to initialize client auth plugins.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
)

func main() {
	if err := cli.RunNoErrOutput(newCommand(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})); err != nil {
		cmdutil.CheckErr(err)
	}
}

// newCommand returns the command with the common flags of kubectl, such as --context: kubectl
// passes them on if they follow the name of the plugin.
func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true).WithWarningPrinter(streams)
	matchVersion := cmdutil.NewMatchVersionFlags(flags)
	cmd := maintenance.NewCmdMaintenance(cmdutil.NewFactory(matchVersion), streams)
	cmd.Use = "kubectl-maintenance SUBCOMMAND"
	cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl maintenance"}
	cmd.SilenceUsage = true
	flags.AddFlags(cmd.PersistentFlags())
	matchVersion.AddFlags(cmd.PersistentFlags())
	cmd.PersistentPreRun = func(*cobra.Command, []string) {
		rest.SetDefaultWarningHandler(rest.NewWarningWriter(streams.ErrOut, rest.WarningWriterOptions{
			Deduplicate: true, Color: printers.AllowsColorOutput(streams.ErrOut),
		}))
	}
	return cmd
}
