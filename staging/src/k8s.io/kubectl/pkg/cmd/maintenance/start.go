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
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/cmd/maintenance/nodeselection"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"
	"k8s.io/kubectl/pkg/util/completion"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
)

var (
	startLong = templates.LongDesc(i18n.T(`
		Start a maintenance of nodes, or move one to a later stage.

		Nodes are named, or selected with -l: then nodes that get or lose the labels later are added
		or removed. Without --name, the name of the maintenance is made from its nodes and printed.

		With the name of a maintenance and no nodes, that maintenance is moved to a later stage: from
		Idle to Cordon or Drain. It cannot return to an earlier stage. If an open maintenance has the
		same node selector, that one is moved instead of starting a second one, unless --name names
		another one.

		All nodes are drained at the same time, and released together, as far as
		NodeMaintenanceBudgets allow it. With --max-concurrent or another flag for the rollout, each
		is released by itself when the work on it is done: see --complete-nodes. Only
		--max-concurrent limits how many are drained at the same time: without it, and without
		NodeMaintenanceBudgets, all are. A rollout has to be asked for when the maintenance is
		created.

		With --wait, blockers are printed as soon as they appear, and the command ends when no pod is
		left or, with a rollout, when all nodes are released.

		Exit codes: 0 done; with --wait only when all nodes are drained, or done. 1 after an error, and when
		the maintenance was deleted, replaced or completed, or its selector was changed, before that.
		2 when --timeout has passed, 3 when it has passed while pods or nodes were blocked, while no
		further node is drained until somebody intervenes, as when the rollout is paused, halted or
		frozen, or while no controller acted, 130 after Ctrl-C. None of them ends the maintenance.`))

	startExample = templates.Examples(i18n.T(`
		# Drain node "foo"
		kubectl maintenance start foo --reason="firmware upgrade"

		# Drain all nodes of a pool, and wait up to half an hour
		kubectl maintenance start --name=pool-a -l pool=a --wait --timeout=30m

		# Drain ten nodes of the pool at a time, and release each when it has been rebooted
		kubectl maintenance start --name=kernel -l pool=a --max-concurrent=10 --complete-nodes=Rebooted

		# The same, but no pod keeps its node for more than two hours, whatever its budget says
		kubectl maintenance start --name=kernel -l pool=a --max-concurrent=10 --ignore-budgets-after=2h

		# Announce a maintenance of two nodes, and drain them later
		kubectl maintenance start --name=rack-7 foo bar --stage=Idle
		kubectl maintenance start rack-7

		# Drain the pods of one app before the others
		kubectl maintenance start foo --drain-plan-file=plan.yaml

		# Print what would be created
		kubectl maintenance start foo --dry-run=server -o yaml`))
)

type startOptions struct {
	*environment
	printFlags *genericclioptions.PrintFlags

	args []string
	// isNode is whether an argument says that it is a node.
	isNode        bool
	name          string
	selector      string
	reason        string
	stageText     string
	drainPlanFile string
	allowNoNodes  bool
	wait          bool
	timeout       time.Duration
	rolloutFlags  rolloutFlags

	rollout    *coordinationv1alpha1.NodeMaintenanceRollout
	escalation []coordinationv1alpha1.NodeMaintenanceEscalationStep
	stage      coordinationv1alpha1.NodeMaintenanceStage
	drainPlan  []corev1.DrainPlanEntry
	dryRun     cmdutil.DryRunStrategy
}

func newCmdStart(env *environment) *cobra.Command {
	o := &startOptions{
		environment: env,
		printFlags:  genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme),
		stageText:   string(coordinationv1alpha1.NodeMaintenanceStageDrain),
	}
	cmd := &cobra.Command{
		Use:                   "start (NODE... | -l SELECTOR | NAME) [--name=NAME] [--stage=Idle|Cordon|Drain] [--wait]",
		DisableFlagsInUseLine: true,
		Short:                 i18n.T("Start a maintenance of nodes, or move one to a later stage"),
		Long:                  startLong,
		Example:               startExample,
		ValidArgsFunction:     completeNodesAndNames(env.factory),
		Run: func(cmd *cobra.Command, args []string) {
			checkErr(o.complete(cmd, args))
			checkErr(o.validate(cmd))
			ctx, stop := untilInterrupted(cmd, o.timeout)
			defer stop()
			checkErr(o.run(ctx))
		},
	}
	o.printFlags.AddFlags(cmd)
	cmdutil.AddDryRunFlag(cmd)
	cmd.Flags().StringVarP(&o.selector, "selector", "l", o.selector, "Selector (label query) of the nodes, such as -l pool=a. Nodes may join and leave later.")
	cmd.Flags().StringVar(&o.name, "name", o.name, "Name of the maintenance. If empty, it is made from the names of the nodes.")
	cmd.Flags().StringVar(&o.reason, "reason", o.reason, "Reason for the maintenance, for people.")
	cmd.Flags().StringVar(&o.stageText, "stage", o.stageText, "How far the maintenance goes: Idle, Cordon or Drain.")
	cmd.Flags().StringVar(&o.drainPlanFile, "drain-plan-file", o.drainPlanFile, "File with the drain plan in YAML or JSON: a list of entries, or a NodeMaintenance. '-' is stdin. Missing standard entries are added.")
	o.rolloutFlags.add(cmd)
	cmd.Flags().BoolVar(&o.allowNoNodes, "allow-no-nodes", o.allowNoNodes, "If true, start the maintenance even if no node has the labels of --selector.")
	cmd.Flags().BoolVar(&o.wait, "wait", o.wait, "If true, print blockers, and return when no pod is left (with --stage=Cordon: when all nodes are cordoned).")
	addTimeoutFlag(cmd, &o.timeout)
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("stage", cobra.FixedCompletions(startStages, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func completeNodesAndNames(f cmdutil.Factory) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		names := completion.CompGetResource(f, "nodes", toComplete)
		if len(args) == 0 {
			names = append(names, completion.CompGetResource(f, qualifiedResource, toComplete)...)
		}
		return cmdutil.Difference(names, args), cobra.ShellCompDirectiveNoFileComp
	}
}

func (o *startOptions) complete(cmd *cobra.Command, args []string) error {
	o.args, o.isNode = bareNames(args), slices.ContainsFunc(args, isNodeArgument)
	if i := slices.IndexFunc(args, isMaintenanceArgument); i >= 0 {
		if len(unique(args)) > 1 || o.name != "" || o.selector != "" {
			return cmdutil.UsageErrorf(cmd, "%s is a NodeMaintenance: name it alone to move it to a later stage", args[i])
		}
		o.args, o.name = nil, o.args[0]
	}
	var err error
	if o.stage, err = parseStage(o.stageText); err != nil {
		return err
	}
	if o.dryRun, err = cmdutil.GetDryRunStrategy(cmd); err != nil {
		return err
	}
	if o.rollout, err = o.rolloutFlags.rollout(); err != nil {
		return err
	}
	if o.escalation, err = o.rolloutFlags.escalation(); err != nil {
		return err
	}
	if o.drainPlanFile != "" {
		if o.drainPlan, _, err = readDrainPlan(o.drainPlanFile, o.In); err != nil {
			return err
		}
	}
	return nil
}

func (o *startOptions) validate(cmd *cobra.Command) error {
	switch {
	case o.selector != "" && len(o.args) > 0:
		// The argument is not taken as the name of the maintenance: the user may mean a node.
		return cmdutil.UsageErrorf(cmd, "name nodes (%s) or select them with -l, not both; --name names the maintenance", strings.Join(o.args, ", "))
	case o.selector == "" && len(o.args) == 0 && o.name == "":
		return cmdutil.UsageErrorf(cmd, "name nodes, or select them with -l, or name a maintenance to move to a later stage")
	case o.wait && o.stage == coordinationv1alpha1.NodeMaintenanceStageIdle:
		return cmdutil.UsageErrorf(cmd, "--wait: there is nothing to wait for in stage Idle")
	case o.wait && o.dryRun != cmdutil.DryRunNone:
		return cmdutil.UsageErrorf(cmd, "--wait: there is nothing to wait for with --dry-run")
	case o.allowNoNodes && o.selector == "":
		return cmdutil.UsageErrorf(cmd, "--allow-no-nodes needs --selector: nodes that are named must exist")
	case o.timeout != 0 && !o.wait:
		return cmdutil.UsageErrorf(cmd, "--timeout needs --wait")
	}
	return validateTimeout(o.timeout)
}

func (o *startOptions) run(ctx context.Context) error {
	client, err := o.servedClient()
	if err != nil {
		return err
	}
	nm, err := o.newMaintenance(ctx, client)
	if err != nil {
		return err
	}
	if nm == nil {
		nm, err = o.moveNamed(ctx, client)
	} else {
		nm, err = o.createOrResume(ctx, client, nm)
	}
	if err != nil || !o.wait {
		return err
	}
	return o.waitFor(ctx, client, nm)
}

// newMaintenance returns the object to create, or nil if an existing maintenance is to be moved.
// Nothing is created for a node that does not exist: it is more likely a typo.
func (o *startOptions) newMaintenance(ctx context.Context, client kubernetes.Interface) (*coordinationv1alpha1.NodeMaintenance, error) {
	nm := &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: o.name},
		Spec:       coordinationv1alpha1.NodeMaintenanceSpec{Stage: o.stage, Reason: o.reason, DrainPlan: o.drainPlan, Rollout: o.rollout, Escalation: o.escalation},
	}
	if o.selector != "" {
		var err error
		if nm.Spec.NodeSelector, err = nodeselection.ByLabels(o.selector); err != nil {
			return nil, err
		}
		if !o.allowNoNodes {
			if err := requireNodes(ctx, client, o.selector); err != nil {
				return nil, err
			}
		}
		if nm.Name == "" {
			nm.GenerateName = nodeselection.PrefixForLabels(nm.Spec.NodeSelector)
		}
		return nm, nil
	}
	if len(o.args) == 0 {
		return nil, nil
	}
	existing, err := existingNodes(ctx, client, o.args)
	mayMove := len(o.args) == 1 && o.name == "" && !o.isNode
	switch {
	case err != nil && mayMove && hasMaintenance(ctx, client, o.args[0]):
		// There may be a node of that name, which comes first.
		return nil, fmt.Errorf("%w; to move the NodeMaintenance of that name to a later stage: kubectl maintenance start nm/%s", err, o.args[0])
	case err != nil:
		return nil, err
	case len(existing) == len(o.args):
	case mayMove && hasMaintenance(ctx, client, o.args[0]):
		o.name = o.args[0]
		return nil, nil
	case mayMove:
		return nil, fmt.Errorf("%w, nor is there a NodeMaintenance of that name: %s", notFound(o.args, existing), listCommand)
	default:
		return nil, notFound(o.args, existing)
	}
	nm.Spec.NodeSelector = nodeselection.ByName(o.args)
	if nm.Name == "" {
		nm.GenerateName = nodeselection.PrefixForNodes(o.args)
	}
	return nm, nil
}

// hasMaintenance reports whether there is a maintenance of that name.
func hasMaintenance(ctx context.Context, client kubernetes.Interface, name string) bool {
	_, err := client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, name, metav1.GetOptions{})
	return err == nil
}

func (o *startOptions) createOrResume(ctx context.Context, client kubernetes.Interface, nm *coordinationv1alpha1.NodeMaintenance) (*coordinationv1alpha1.NodeMaintenance, error) {
	switch open, err := openMaintenance(ctx, client, nm); {
	case err != nil:
		return nil, err
	case open != nil:
		return o.resume(ctx, client, open)
	}
	return o.create(ctx, client, nm)
}

// nameTaken says what to do about a name that another maintenance has. One that has ended keeps it until it is deleted.
func nameTaken(ctx context.Context, client kubernetes.Interface, name string) error {
	taken, err := client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, name, metav1.GetOptions{})
	if err == nil && (taken.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete || taken.DeletionTimestamp != nil) {
		return fmt.Errorf("NodeMaintenance %q already exists, and has ended: choose another name, or delete it first: kubectl delete nm %s", name, name)
	}
	return fmt.Errorf("NodeMaintenance %q already exists: choose another name, or move that one to a later stage with \"kubectl maintenance start --name=%s\" and no nodes", name, name)
}

func (o *startOptions) create(ctx context.Context, client kubernetes.Interface, nm *coordinationv1alpha1.NodeMaintenance) (*coordinationv1alpha1.NodeMaintenance, error) {
	if nm.Spec.Rollout != nil {
		if err := requireRollouts(client); err != nil {
			return nil, err
		}
	}
	if o.dryRun == cmdutil.DryRunClient {
		return nm, o.print(nm, "created")
	}
	options := metav1.CreateOptions{FieldManager: fieldManager, DryRun: serverDryRun(o.dryRun)}
	created, err := client.CoordinationV1alpha1().NodeMaintenances().Create(ctx, nm, options)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, nameTaken(ctx, client, nm.Name)
	case err != nil:
		return nil, err
	}
	if o.dryRun == cmdutil.DryRunNone {
		if err := verifyRollout(ctx, client, nm, created); err != nil {
			return nil, err
		}
	}
	if err := o.print(created, "created"); err != nil {
		return nil, err
	}
	if o.dryRun == cmdutil.DryRunNone {
		o.printOthers(ctx, client, created)
	}
	o.warnUnlimited(ctx, client, created)
	return created, nil
}

// warnUnlimited warns of a rollout that drains all its nodes at once: who asks for one expects that only
// some are. Errors are ignored: it is created, and budgets that cannot be read may limit it.
func (o *startOptions) warnUnlimited(ctx context.Context, client kubernetes.Interface, created *coordinationv1alpha1.NodeMaintenance) {
	if created.Spec.Rollout == nil || created.Spec.Rollout.MaxConcurrent != nil {
		return
	}
	s := &podSnapshot{}
	budgets, err := client.CoordinationV1alpha1().NodeMaintenanceBudgets().List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	s.setNodeBudgets(pointers(budgets.Items))
	if err := s.readNodes(ctx, client); err != nil {
		return
	}
	nodes := s.selectedNodes(created.Spec.NodeSelector)
	if len(nodes) < 2 || s.haveBudget(nodes) {
		return
	}
	wayOut := ": see --" + maxConcurrentFlag
	if o.dryRun == cmdutil.DryRunNone { // The flag alone does not help any more.
		wayOut = fmt.Sprintf(". To start it again with --%s, first: kubectl maintenance cancel %s", maxConcurrentFlag, created.Name)
	}
	fmt.Fprintf(o.ErrOut, "Warning: nothing limits how many of the %d nodes are drained at once%s\n", len(nodes), wayOut)
}

// printOthers names the maintenances that select the same nodes: a node stays cordoned until all of
// them are completed. Errors are ignored: the maintenance is created.
func (o *startOptions) printOthers(ctx context.Context, client kubernetes.Interface, created *coordinationv1alpha1.NodeMaintenance) {
	maintenances, err := getMaintenances(ctx, client, nil)
	if err != nil || len(maintenances) < 2 {
		return
	}
	s, err := readSnapshot(ctx, client, maintenances)
	if err != nil {
		return
	}
	others := map[string]coordinationv1alpha1.NodeMaintenanceStage{}
	coversOf := s.covers(created.Name)
	for _, node := range s.selectedNodes(created.Spec.NodeSelector) {
		for _, cover := range coversOf(node) {
			others[cover.Name] = cover.Stage
		}
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		fmt.Fprintf(o.ErrOut, "NodeMaintenance %s (%s) selects some of the same nodes.\n", name, others[name])
	}
}

// moveNamed moves the maintenance that is named to a later stage.
func (o *startOptions) moveNamed(ctx context.Context, client kubernetes.Interface) (*coordinationv1alpha1.NodeMaintenance, error) {
	if o.reason != "" || len(o.drainPlan) > 0 {
		return nil, fmt.Errorf("without nodes, NodeMaintenance %q is only moved to a later stage: --reason and --drain-plan-file are for a new one", o.name)
	}
	if o.rollout != nil {
		return nil, fmt.Errorf("without nodes, NodeMaintenance %q is only moved to a later stage: leave out %s; to change its rollout, if it has one, use \"kubectl edit nm %s\" (completeNodes and settle are immutable), \"kubectl maintenance pause\" or \"resume\"",
			o.name, strings.Join(o.rolloutFlags.given(), ", "), o.name)
	}
	return o.move(ctx, client, o.name)
}

func (o *startOptions) move(ctx context.Context, client kubernetes.Interface, name string) (*coordinationv1alpha1.NodeMaintenance, error) {
	before, err := moveTo(ctx, client, name, o.stage, o.dryRun)
	if err != nil {
		return nil, err
	}
	operation := fmt.Sprintf("moved from %s to %s", before.Spec.Stage, o.stage)
	if before.Spec.Stage == o.stage {
		operation = fmt.Sprintf("unchanged, already in stage %s", o.stage)
	}
	nm := before.DeepCopy()
	nm.Spec.Stage = o.stage
	return nm, o.print(nm, operation)
}

// print prints what was done in the output format.
func (o *startOptions) print(nm *coordinationv1alpha1.NodeMaintenance, operation string) error {
	o.printFlags.NamePrintFlags.Operation = operation
	printer, err := cmdutil.PrintFlagsWithDryRunStrategy(o.printFlags, o.dryRun).ToPrinter()
	if err != nil {
		return err
	}
	if nm.Name == "" {
		// Only with --dry-run=client: the server generates the name.
		nm = nm.DeepCopy()
		if o.printFlags.OutputFormat == nil || *o.printFlags.OutputFormat == "" || *o.printFlags.OutputFormat == "name" {
			nm.Name = nm.GenerateName + "*"
		}
	}
	return printer.PrintObj(nm, o.Out)
}

// waitFor prints blockers until the maintenance has done what its stage is for.
func (o *startOptions) waitFor(ctx context.Context, client kubernetes.Interface, nm *coordinationv1alpha1.NodeMaintenance) error {
	out := o.Out
	if o.printFlags.OutputFormat != nil && *o.printFlags.OutputFormat != "" {
		// With an output format, stdout has only the object.
		out = o.ErrOut
	}
	last, err := follow(ctx, client, []*coordinationv1alpha1.NodeMaintenance{nm}, o.clock, &lineDisplay{out: out}, drained(isInStage(o.stage)))
	if err != nil {
		return err
	}
	v := last[nm.Name]
	switch {
	case o.stage != coordinationv1alpha1.NodeMaintenanceStageCordon || isEnded(&v):
	case v.isCordoned():
		return nil
	default:
		return failed("without the permission to list nodes, kubectl cannot see when they are cordoned; the maintenance continues")
	}
	return undrained([]*coordinationv1alpha1.NodeMaintenance{nm}, last)
}
