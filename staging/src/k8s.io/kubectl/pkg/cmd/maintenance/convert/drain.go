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

package convert

import (
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectldrain "k8s.io/kubectl/pkg/cmd/drain"
	"k8s.io/kubectl/pkg/cmd/maintenance/nodeselection"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// flagMatchServerVersion is a flag of all commands of kubectl.
const flagMatchServerVersion = "match-server-version"

// addCommand converts a drain command that was given as arguments.
func (c *converter) addCommand(args []string) {
	where := source{object: "kubectl drain"}
	if len(args) < 2 || path.Base(args[0]) != "kubectl" {
		c.fail(source{object: strings.Join(args, " ")}, "", "is not \"kubectl drain\": write the whole command after \"--\", such as: kubectl drain NODE --ignore-daemonsets")
		return
	}
	if c.to != ours {
		c.fail(where, "", "cannot be converted to %s: %s", c.to, noMaintenanceIn137)
		return
	}
	flags, nodes, err := parseDrain(args[1:])
	if err != nil {
		c.fail(where, "", "%v", err)
		return
	}
	nm, err := maintenanceOfDrain(flags, nodes)
	if err != nil {
		c.fail(where, "", "%v", err)
		return
	}
	if selector := valueOf(flags, "pod-selector"); selector != "" {
		plan, valid := c.podsFirst(where, "--pod-selector", selector)
		if !valid {
			return
		}
		nm.Spec.DrainPlan = plan
	}
	if len(nodes) > 1 || flags.Changed("selector") {
		c.add(isChanged, where, "order of the nodes", "kubectl drains one node after the other; a maintenance drains all of its nodes at the same time, or so many as spec.rollout says. Create one for each node to keep the order")
	}
	if nm.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain {
		c.add(isChanged, where, "wait", "kubectl returns when the nodes are drained. Wait for the maintenance instead: kubectl wait nodemaintenances.coordination.k8s.io/%s --for=condition=Drained", nm.Name)
	}
	c.reportStaying(where, "static pods", nm)
	c.reportFlags(where, flags, nm)
	c.writeMaintenance(where, nm)
}

// newDrainCommand returns the command of kubectl with its flags, and those of all commands.
func newDrainCommand() *cobra.Command {
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}
	// Only the flags of the command are used: it asks the factory for nothing before it runs.
	cmd := kubectldrain.NewCmdDrain(nil, streams)
	cmd.Flags().SetOutput(streams.Out)
	cmd.Flags().AddFlagSet(newGlobalFlags())
	return cmd
}

// newGlobalFlags returns the flags of all commands of kubectl.
func newGlobalFlags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(flags)
	flags.Bool(flagMatchServerVersion, false, "")
	flags.IntP("v", "v", 0, "")
	for _, name := range []string{"vmodule", "kuberc", "profile", "profile-output"} {
		flags.String(name, "", "")
	}
	flags.Bool("warnings-as-errors", false, "")
	return flags
}

// parseDrain parses the arguments with the flags that kubectl itself has.
func parseDrain(args []string) (*pflag.FlagSet, []string, error) {
	cmd := newDrainCommand()
	flags := cmd.Flags()
	if err := flags.Parse(args); err != nil {
		return nil, nil, err
	}
	if flags.NArg() == 0 || flags.Arg(0) != "drain" {
		return nil, nil, errors.New("is not \"kubectl drain\"")
	}
	if _, err := cmdutil.GetDryRunStrategy(cmd); err != nil {
		return nil, nil, err
	}
	nodes := nodeNames(flags.Args()[1:])
	return flags, nodes, validateDrain(flags, nodes)
}

// nodeNames returns the names in arguments, each once. Like kubectl, it takes "node/foo" for "foo".
func nodeNames(args []string) []string {
	var names []string
	for _, name := range args {
		if prefix, rest, found := strings.Cut(name, "/"); found && slices.Contains([]string{"no", "node", "nodes"}, prefix) {
			name = rest
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func validateDrain(flags *pflag.FlagSet, nodes []string) error {
	switch {
	case len(nodes) == 0 && !flags.Changed("selector"):
		return errors.New("names no node, and has no --selector: kubectl refuses it")
	case len(nodes) > 0 && valueOf(flags, "selector") != "":
		return errors.New("has nodes and --selector: kubectl refuses it")
	}
	return nil
}

func valueOf(flags *pflag.FlagSet, name string) string {
	if flag := flags.Lookup(name); flag != nil {
		return flag.Value.String()
	}
	return ""
}

// maintenanceOfDrain returns a maintenance that does what the command does, and no more.
func maintenanceOfDrain(flags *pflag.FlagSet, nodes []string) (*coordinationv1alpha1.NodeMaintenance, error) {
	nm := &coordinationv1alpha1.NodeMaintenance{Spec: coordinationv1alpha1.NodeMaintenanceSpec{Stage: coordinationv1alpha1.NodeMaintenanceStageDrain}}
	if dryRun := valueOf(flags, "dry-run"); dryRun != "none" && dryRun != "false" {
		nm.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageIdle
	} else if valueOf(flags, "pod-selector") != "" {
		nm.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageCordon
	}
	if len(nodes) > 0 {
		nm.Name = "drain-" + strings.TrimSuffix(nodeselection.PrefixForNodes(nodes), "-")
		nm.Spec.NodeSelector = nodeselection.ByName(nodes)
		return nm, nil
	}
	selector, err := nodeselection.ByLabels(valueOf(flags, "selector"))
	if err != nil {
		return nil, err
	}
	nm.Name = "drain-" + strings.TrimSuffix(nodeselection.PrefixForLabels(selector), "-")
	nm.Spec.NodeSelector = selector
	return nm, nil
}

// flagReport says what becomes of a flag that is given.
type flagReport struct {
	verdict verdict
	text    string
	// absent is what is lost if the flag is not given, or is false.
	absent string
	// neutral are values that are like no flag, besides the default.
	neutral []string
}

// drainFlags are the flags of kubectl drain. Those of all commands have globalFlag.
var drainFlags = map[string]flagReport{
	"chunk-size":           {verdict: isIgnored, text: "the controller reads pods from its cache"},
	"delete-emptydir-data": {verdict: isIgnored, text: "pods that use emptyDir volumes leave in any case", absent: emptyDirLost},
	"disable-eviction": {verdict: isLost, text: "a maintenance respects PodDisruptionBudgets, in a rollout until its spec.escalation. " +
		"Change the budget, or delete the pod yourself: \"kubectl maintenance status\" names both"},
	"dry-run": {verdict: isChanged, text: "the stage is Idle, which changes nothing on the node. \"kubectl maintenance plan -f\" shows what a drain would do"},
	"evict-intercepted-pods": {verdict: isLost, text: "a maintenance lets the interceptors of a pod act, in a rollout until its spec.escalation. " +
		"Delete the pod yourself to skip them"},
	"force":             {verdict: isIgnored, text: "pods that no controller manages leave in any case", absent: bareLost},
	"grace-period":      {verdict: isLost, text: "the terminationGracePeriodSeconds of each pod applies: change it there", neutral: []string{"-1"}},
	"ignore-daemonsets": {verdict: isChanged, text: "pods of DaemonSets do not stay: they leave after all others", absent: "without it, nodes with pods of DaemonSets are not drained; in a maintenance these pods leave after all others"},
	"pod-selector":      {verdict: isLost, text: podSelectorLost},
	"selector":          {verdict: isChanged, text: "nodes that get or lose the labels later join or leave the maintenance. Name the nodes to keep the set"},
	"skip-wait-for-delete-timeout": {verdict: isLost, text: "a maintenance waits until each pod is gone, and shows one that does not terminate as a blocker. " +
		"Delete that pod with --force to go on", neutral: []string{"0"}},
	"timeout": {verdict: isLost, text: noTimeLimit, neutral: []string{"0s"}},
	"v":       {verdict: isIgnored, text: "the log of the command is no part of an object"},
	"vmodule": {verdict: isIgnored, text: "the log of the command is no part of an object"},
}

// globalFlag is the report of the flags that select the server and the user.
var globalFlag = flagReport{verdict: isLost, text: "is not part of an object: give it to the command that creates the object"}

// reportFlags says what becomes of each flag.
func (c *converter) reportFlags(where source, flags *pflag.FlagSet, nm *coordinationv1alpha1.NodeMaintenance) {
	flags.VisitAll(func(flag *pflag.Flag) {
		report, known := drainFlags[flag.Name]
		if !known {
			report = globalFlag
		}
		value := flag.Value.String()
		isFalse := flag.Value.Type() == "bool" && value == "false"
		switch {
		case report.absent != "" && isFalse:
			c.add(isLost, where, "no --"+flag.Name, "%s", report.absent)
		case !flag.Changed, isFalse, slices.Contains(report.neutral, value), flag.Name == "dry-run" && value == "none":
		case flag.Name == "timeout":
			c.add(report.verdict, where, withValue("--timeout", value), report.text, nm.Name, value)
		case flag.Value.Type() == "bool":
			c.add(report.verdict, where, "--"+flag.Name, "%s", report.text)
		default:
			c.add(report.verdict, where, withValue("--"+flag.Name, value), "%s", report.text)
		}
	})
}

// selectorOf returns the label selector that a text stands for. Unlike ParseToLabelSelector, it
// loses no requirement if a label has two of them.
func selectorOf(text string) (*metav1.LabelSelector, error) {
	requirements, err := nodeselection.Requirements(text)
	if err != nil {
		return nil, err
	}
	selector := &metav1.LabelSelector{}
	for _, r := range requirements {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: r.Key, Operator: metav1.LabelSelectorOperator(r.Operator), Values: r.Values,
		})
	}
	// Numbers are compared in selectors of nodes only.
	_, err = metav1.LabelSelectorAsSelector(selector)
	return selector, err
}
