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

// Package convert implements "kubectl maintenance convert".
//
// It needs no server, and converts objects of other projects (operators.go), drain commands
// (drain.go), and objects of Kubernetes 1.37 (lifecycle.go, pods.go, names.go). input.go reads them,
// objects.go selects the conversion of each and checks what is written. What cannot be expressed is
// in a report (report.go).
package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	cliresource "k8s.io/cli-runtime/pkg/resource"
	"k8s.io/component-helpers/plaintext"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/yaml"
)

var (
	convertLong = templates.LongDesc(i18n.T(`
		Convert objects of other projects, and drain commands, to NodeMaintenances and EvictionRequests.

		The command reads

		    NodeMaintenance  nodemaintenance.medik8s.io/v1beta1  Medik8s' node-maintenance-operator
		    NodeMaintenance  maintenance.nvidia.com/v1alpha1     NVIDIA's maintenance-operator
		    EvictionRequest  lifecycle.k8s.io/v1alpha1           Kubernetes 1.37
		    pods and workloads with spec.evictionResponders      Kubernetes 1.37
		    kubectl drain    after "--"

		With --to=lifecycle.k8s.io/v1alpha1, it converts EvictionRequests, and pods and workloads with
		spec.evictionInterceptors, to the API of Kubernetes 1.37.

		The objects are written to standard output. What is not written as it was is written to
		standard error, one line for each field, with what to do instead:

		    lost     the field has no effect any more
		    changed  its effect is expressed in another way
		    ignored  nothing is to be written for it

		Nothing is written if anything is not understood: an unknown kind, version, field or flag.

		The command needs no server, and changes nothing. Exit codes: 0 done, also if fields are lost,
		unless --fail-on-loss is given; 1 after an error.`))

	convertExample = templates.Examples(i18n.T(`
		# Convert an object of the node-maintenance-operator, and create the result
		kubectl maintenance convert -f nmo.yaml | kubectl create -f -

		# Convert all objects of that operator in the cluster
		kubectl get nodemaintenances.nodemaintenance.medik8s.io -o yaml | kubectl maintenance convert -f -

		# Convert a drain command
		kubectl maintenance convert -- kubectl drain foo --ignore-daemonsets --timeout=5m

		# Fail if the effect of a flag is lost
		kubectl maintenance convert --fail-on-loss -- kubectl drain foo --grace-period=30

		# Convert a Deployment with interceptors to the API of Kubernetes 1.37
		kubectl maintenance convert -f deployment.yaml --to=lifecycle.k8s.io/v1alpha1

		# Choose the name that an interceptor or a requester has there
		kubectl maintenance convert -f pod.yaml --to=lifecycle.k8s.io/v1alpha1 --rename=example.com=example.com/migrate`))
)

// The values of --to and --output.
var (
	targets       = []string{ours, theirs}
	outputFormats = []string{"json", "yaml"}
)

type options struct {
	genericiooptions.IOStreams
	cliresource.FilenameOptions
	command    []string
	to         string
	output     string
	failOnLoss bool
	rename     map[string]string
}

// NewCmdConvert returns the command "convert", which writes plain text.
func NewCmdConvert(streams genericiooptions.IOStreams) *cobra.Command {
	streams.Out, streams.ErrOut = plaintext.NewWriter(streams.Out), plaintext.NewWriter(streams.ErrOut)
	o := &options{IOStreams: streams, to: ours, output: "yaml"}
	cmd := &cobra.Command{
		Use:                   "convert (-f FILENAME | -- kubectl drain ARGUMENT...) [--to=VERSION] [--fail-on-loss]",
		DisableFlagsInUseLine: true,
		Short:                 i18n.T("Convert objects of other projects, and drain commands"),
		Long:                  convertLong,
		Example:               convertExample,
		Run: func(cmd *cobra.Command, args []string) {
			o.command = args
			cmdutil.CheckErr(plain(o.validate(cmd)))
			cmdutil.CheckErr(plain(o.run()))
		},
	}
	cmdutil.AddJsonFilenameFlag(cmd.Flags(), &o.Filenames, "Files and directories with objects. '-' is stdin.")
	cmdutil.CheckErr(cmd.MarkFlagFilename("filename", "json", "yaml", "yml"))
	cmd.Flags().BoolVarP(&o.Recursive, "recursive", "R", o.Recursive, "Read the directories of --filename recursively.")
	cmd.Flags().StringVar(&o.to, "to", o.to, fmt.Sprintf("Version of the API to convert to. One of: %v.", targets))
	cmd.Flags().BoolVar(&o.failOnLoss, "fail-on-loss", o.failOnLoss, "If true, write no object if anything is lost, and exit with 1.")
	cmd.Flags().StringToStringVar(&o.rename, "rename", o.rename, "New names of interceptors and requesters, such as --rename=old.example.com=example.com/new.")
	cmd.Flags().StringVarP(&o.output, "output", "o", o.output, "Output format: yaml, as a stream of documents, or json, as a List if there are several objects.")
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputFormats, cobra.ShellCompDirectiveNoFileComp)))
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(targets, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (o *options) validate(cmd *cobra.Command) error {
	switch {
	case len(o.Filenames) > 0 && len(o.command) > 0:
		return cmdutil.UsageErrorf(cmd, "either --filename or a drain command is converted, not both")
	case len(o.Filenames) == 0 && len(o.command) == 0:
		return cmdutil.UsageErrorf(cmd, "--filename, or a drain command after \"--\", is required")
	case !slices.Contains(targets, o.to):
		return fmt.Errorf("--to=%q: must be one of %v", o.to, targets)
	case o.output == "":
		o.output = "yaml"
	case !slices.Contains(outputFormats, o.output):
		return fmt.Errorf("--output=%q: must be one of %v", o.output, outputFormats)
	}
	return nil
}

// plain returns an error that is safe for a terminal: it may repeat what a file says.
func plain(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(plaintext.Escape(err.Error()))
}

func (o *options) run() error {
	c := newConverter(o.to, o.rename)
	if len(o.command) > 0 {
		c.addCommand(o.command)
	} else {
		inputs, err := readInputs(o.FilenameOptions, o.In)
		if err != nil {
			return err
		}
		for _, in := range inputs {
			c.addInput(in)
		}
	}
	objects := c.finish()
	if len(c.report.errs) > 0 {
		return errors.Join(c.report.errs...)
	}
	for _, f := range c.report.findings {
		if _, err := fmt.Fprintln(o.ErrOut, f); err != nil {
			return err
		}
	}
	if o.failOnLoss {
		switch lost := c.report.countLost(); lost {
		case 0:
		case 1:
			return errors.New("--fail-on-loss: 1 field is lost, nothing is written")
		default:
			return fmt.Errorf("--fail-on-loss: %d fields are lost, nothing is written", lost)
		}
	}
	if len(objects) == 0 {
		_, err := fmt.Fprintln(o.ErrOut, "no object is written")
		return err
	}
	return writeObjects(o.Out, o.output, objects)
}

// writeObjects writes documents of YAML, or one of JSON.
func writeObjects(out io.Writer, format string, objects []map[string]any) error {
	if format == "json" {
		var object any = objects[0]
		if len(objects) > 1 {
			object = map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}
		}
		text, err := encodeJSON(object)
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, text)
		return err
	}
	for i, object := range objects {
		text, isJSON, err := encode(object)
		if err != nil {
			return err
		}
		if i > 0 || isJSON {
			text = "---\n" + text // Without it, the stream would be taken for one of JSON.
		}
		// In one piece: the writer escapes each write by itself.
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	}
	return nil
}

// encode returns an object as YAML. It returns JSON, which is also YAML, if the YAML would have
// characters that are escaped on the way to a terminal: outside of quotes, YAML would not read the
// escapes as these characters.
func encode(object map[string]any) (text string, isJSON bool, err error) {
	asYAML, err := yaml.Marshal(object)
	if err != nil {
		return "", false, err
	}
	if text = string(asYAML); plaintext.Escape(text) == text {
		return text, false, nil
	}
	text, err = encodeJSON(object)
	return text, true, err
}

func encodeJSON(object any) (string, error) {
	text, err := json.MarshalIndent(object, "", "    ")
	return string(text) + "\n", err
}
