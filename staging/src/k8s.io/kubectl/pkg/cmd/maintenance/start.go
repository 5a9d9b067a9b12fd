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
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubectl/pkg/cmd/maintenance/nodeselection"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/utils/ptr"
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

		Exit codes: 0 done; with --wait only when all nodes are drained, or done, and otherwise those of
		"kubectl maintenance watch". 1 after an error. None of them ends the maintenance.`))

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
	cmd := env.subcommand(&cobra.Command{
		Use:               "start (NODE... | -l SELECTOR | NAME) [--name=NAME] [--stage=Idle|Cordon|Drain] [--wait]",
		Short:             i18n.T("Start a maintenance of nodes, or move one to a later stage"),
		Long:              startLong,
		Example:           startExample,
		ValidArgsFunction: completeNodesAndNames(env.factory),
	}, &o.timeout, o.complete, o.run)
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
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("stage", cobra.FixedCompletions(startStages, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
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
	return o.validate(cmd)
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
	return nil
}

func (o *startOptions) run(ctx context.Context, client kubernetes.Interface) error {
	nm, err := o.newMaintenance(ctx, client)
	if err != nil {
		return err
	}
	if nm == nil {
		nm, err = o.moveNamed(ctx, client)
	} else {
		nm, err = o.create(ctx, client, nm)
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
	nodes, err := existing(ctx, "node", o.args, client.CoreV1().Nodes())
	mayMove := len(o.args) == 1 && o.name == "" && !o.isNode
	switch {
	case err != nil && mayMove && hasMaintenance(ctx, client, o.args[0]):
		// There may be a node of that name, which comes first.
		return nil, fmt.Errorf("%w; to move the NodeMaintenance of that name to a later stage: kubectl maintenance start nm/%s", err, o.args[0])
	case err != nil:
		return nil, err
	case len(nodes) == len(o.args):
	case mayMove && hasMaintenance(ctx, client, o.args[0]):
		o.name = o.args[0]
		return nil, nil
	case mayMove:
		return nil, fmt.Errorf("%w, nor is there a NodeMaintenance of that name: %s", notFound(o.args, nodes), listCommand)
	default:
		return nil, notFound(o.args, nodes)
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

// nameTaken says what to do about a name that another maintenance has. One that has ended keeps it until it is deleted.
func nameTaken(ctx context.Context, client kubernetes.Interface, name string) error {
	taken, err := client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil && taken.DeletionTimestamp != nil:
		return fmt.Errorf("NodeMaintenance %q is being deleted already, and exists until its finalizers are removed (%s): choose another name, or wait for that: kubectl wait --for=delete nm/%s",
			name, strings.Join(taken.Finalizers, ", "), name)
	case err == nil && taken.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete:
		return fmt.Errorf("NodeMaintenance %q already exists, and has ended: choose another name, or delete it first: kubectl delete nm %s", name, name)
	}
	return fmt.Errorf("NodeMaintenance %q already exists: choose another name, or move that one to a later stage with \"kubectl maintenance start --name=%s\" and no nodes", name, name)
}

// create creates the maintenance, or resumes an open one of the same nodes.
func (o *startOptions) create(ctx context.Context, client kubernetes.Interface, nm *coordinationv1alpha1.NodeMaintenance) (*coordinationv1alpha1.NodeMaintenance, error) {
	switch open, err := openMaintenance(ctx, client, nm); {
	case err != nil:
		return nil, err
	case open != nil:
		return o.resume(ctx, client, open)
	}
	if nm.Spec.Rollout != nil {
		// If that is unknown, the answer to the creation tells.
		if err := require(client, budgetResource, errNoRollouts); err != nil {
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
	if err != nil || s.readNodes(ctx, client) != nil {
		return
	}
	s.nodeBudgets = pointers(budgets.Items)
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
	maintenances, err := listMaintenances(ctx, client)
	if err != nil || len(maintenances) < 2 {
		return
	}
	s, err := readSnapshot(ctx, client, maintenances...)
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
	for _, name := range sortedNames(others) {
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
		if format := ptr.Deref(o.printFlags.OutputFormat, ""); format == "" || format == "name" {
			nm.Name = nm.GenerateName + "*"
		}
	}
	return printer.PrintObj(nm, o.Out)
}

// waitFor prints blockers until the maintenance has done what its stage is for.
func (o *startOptions) waitFor(ctx context.Context, client kubernetes.Interface, nm *coordinationv1alpha1.NodeMaintenance) error {
	out := o.Out
	if ptr.Deref(o.printFlags.OutputFormat, "") != "" {
		// With an output format, stdout has only the object.
		out = o.ErrOut
	}
	isInStage := func(v *view) bool {
		// Without the permission to list nodes, it is unknown whether they are cordoned.
		isCordoned := v.isCordoned() || slices.Contains(v.Unreadable, "nodes")
		return isEnded(v) || o.stage == coordinationv1alpha1.NodeMaintenanceStageCordon && isCordoned
	}
	last, err := follow(ctx, client, []*coordinationv1alpha1.NodeMaintenance{nm}, o.clock, (&lineDisplay{out: out}).show, drained(isInStage))
	if err != nil {
		return err
	}
	v := last[nm.Name]
	switch {
	case o.stage != coordinationv1alpha1.NodeMaintenanceStageCordon || isEnded(v):
	case v.isCordoned():
		return nil
	default:
		return failed("without the permission to list nodes, kubectl cannot see when they are cordoned; the maintenance continues")
	}
	return undrained([]*coordinationv1alpha1.NodeMaintenance{nm}, last)
}

// openMaintenance returns the maintenance that a second start of the same nodes resumes: the oldest
// open one with the same selector and, if one is given, that name. With two maintenances, both
// would have to be completed before the nodes are released. Nil if there is none, or if the user
// may not list them.
func openMaintenance(ctx context.Context, client kubernetes.Interface, wanted *coordinationv1alpha1.NodeMaintenance) (*coordinationv1alpha1.NodeMaintenance, error) {
	all, err := listMaintenances(ctx, client)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var oldest *coordinationv1alpha1.NodeMaintenance
	for _, nm := range all {
		switch {
		case nm.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete || nm.DeletionTimestamp != nil:
		case wanted.Name != "" && nm.Name != wanted.Name:
		case !sameNodes(nm.Spec.NodeSelector, wanted.Spec.NodeSelector):
		case oldest == nil || nm.CreationTimestamp.Before(&oldest.CreationTimestamp):
			oldest = nm
		}
	}
	return oldest, nil
}

// sameNodes reports whether the selectors are equal, regardless of the order of their terms,
// requirements and values.
func sameNodes(a, b *corev1.NodeSelector) bool {
	return a != nil && b != nil && slices.Equal(termKeys(a), termKeys(b))
}

func termKeys(selector *corev1.NodeSelector) []string {
	return distinct(mapped(selector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) string {
		return strings.Join(append(requirementKeys("label", term.MatchExpressions), requirementKeys("field", term.MatchFields)...), " and ")
	}))
}

func requirementKeys(kind string, requirements []corev1.NodeSelectorRequirement) []string {
	return distinct(mapped(requirements, func(r corev1.NodeSelectorRequirement) string {
		return fmt.Sprintf("%s %s %s %q", kind, r.Key, r.Operator, distinct(r.Values))
	}))
}

// distinct sorts texts, each once.
func distinct(texts []string) []string { return slices.Compact(slices.Sorted(slices.Values(texts))) }

// resume moves an open maintenance to the requested stage, and says so. Other flags would be for a
// new maintenance.
func (o *startOptions) resume(ctx context.Context, client kubernetes.Interface, open *coordinationv1alpha1.NodeMaintenance) (*coordinationv1alpha1.NodeMaintenance, error) {
	if len(o.drainPlan) > 0 && !apiequality.Semantic.DeepEqual(maintenance.CompletePlan(o.drainPlan), maintenance.CompletePlan(open.Spec.DrainPlan)) {
		return nil, failed("NodeMaintenance %q of these nodes is open and has another drain plan, which is immutable: complete or cancel it first, or start another one with --name", open.Name)
	}
	if o.rolloutFlags.contradicts(open.Spec.Rollout) {
		return nil, failed("NodeMaintenance %q of these nodes is open, and its spec.rollout is not what %s asks for: %s", open.Name, strings.Join(o.rolloutFlags.given(), ", "), changeRollout(open))
	}
	if lacksEscalation(o.escalation, open.Spec.Escalation) {
		return nil, failed("NodeMaintenance %q of these nodes is open, and its spec.escalation is not what %s asks for: change it with \"kubectl edit nm %s\", or start another one with --name",
			open.Name, strings.Join(o.rolloutFlags.given(), ", "), open.Name)
	}
	hint := ""
	if o.name == "" {
		hint = " To start another one, use --name."
	}
	fmt.Fprintf(o.ErrOut, "NodeMaintenance %s of these nodes is open and is resumed.%s\n", open.Name, hint)
	if o.reason != "" && o.reason != open.Spec.Reason {
		fmt.Fprintf(o.ErrOut, "NodeMaintenance %s keeps its reason.\n", open.Name)
	}
	return o.move(ctx, client, open.Name)
}

// changeRollout says how to get another rollout than that of an open maintenance.
func changeRollout(open *coordinationv1alpha1.NodeMaintenance) string {
	if open.Spec.Rollout == nil {
		return "it has none, which cannot be changed. Complete or cancel it first, or start another one with --name"
	}
	return fmt.Sprintf("change it with \"kubectl edit nm %s\" (completeNodes and settle are immutable), \"kubectl maintenance pause\" or \"resume\", or start another one with --name", open.Name)
}

// requireNodes refuses labels that no node has: they are more likely a typo, and a drain without
// nodes would wait for ever.
func requireNodes(ctx context.Context, client kubernetes.Interface, selector string) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
	if err != nil {
		return fmt.Errorf("listing nodes (not needed with --allow-no-nodes): %w", err)
	}
	if len(nodes.Items) == 0 {
		return failed("no node matches --selector=%q; with --allow-no-nodes, the maintenance waits for such nodes", selector)
	}
	return nil
}

// fieldManager marks in managedFields the stages that a user has set.
const fieldManager = "kubectl-maintenance"

// stages in their order.
var stages = []coordinationv1alpha1.NodeMaintenanceStage{
	coordinationv1alpha1.NodeMaintenanceStageIdle,
	coordinationv1alpha1.NodeMaintenanceStageCordon,
	coordinationv1alpha1.NodeMaintenanceStageDrain,
	coordinationv1alpha1.NodeMaintenanceStageComplete,
}

// moveTo moves a maintenance to a later stage and returns it as it was before. It does not write if
// the maintenance already is in that stage, or in a dry run by the client.
func moveTo(ctx context.Context, client kubernetes.Interface, name string, stage coordinationv1alpha1.NodeMaintenanceStage, dryRun cmdutil.DryRunStrategy) (*coordinationv1alpha1.NodeMaintenance, error) {
	before, _, err := patchSpec(ctx, client, name, serverDryRun(dryRun), func(nm *coordinationv1alpha1.NodeMaintenance) (map[string]any, error) {
		if nm.Spec.Stage == stage && (nm.DeletionTimestamp == nil || stage == coordinationv1alpha1.NodeMaintenanceStageComplete) {
			return nil, nil // What is completed and deleted as well releases its nodes all the same.
		}
		if err := validateMove(nm, stage); err != nil || dryRun == cmdutil.DryRunClient {
			return nil, err
		}
		return map[string]any{"stage": stage}, nil
	})
	return before, err
}

// patchSpec changes the fields of the spec that a function returns for a maintenance, and returns it as it was before
// and, if a field was changed, as it is after that.
//
// The patch has the resource version that the function has seen. The controller may write the status at any
// time, so it is retried after a conflict.
func patchSpec(ctx context.Context, client kubernetes.Interface, name string, dryRun []string, change func(nm *coordinationv1alpha1.NodeMaintenance) (map[string]any, error)) (before, after *coordinationv1alpha1.NodeMaintenance, err error) {
	maintenances := client.CoordinationV1alpha1().NodeMaintenances()
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		nm, err := maintenances.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		before = nm
		fields, err := change(nm)
		if err != nil || len(fields) == 0 {
			return err
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": nm.UID, "resourceVersion": nm.ResourceVersion},
			"spec":     fields,
		})
		if err != nil {
			return err
		}
		after, err = maintenances.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager, DryRun: dryRun})
		return err
	})
	return before, after, err
}

// serverDryRun is the field DryRun of the options of a write.
func serverDryRun(strategy cmdutil.DryRunStrategy) []string {
	if strategy == cmdutil.DryRunServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func validateMove(nm *coordinationv1alpha1.NodeMaintenance, stage coordinationv1alpha1.NodeMaintenanceStage) error {
	switch {
	case nm.DeletionTimestamp != nil && stage == coordinationv1alpha1.NodeMaintenanceStageComplete:
		return fmt.Errorf("NodeMaintenance %q is being deleted, which releases its nodes: there is nothing to complete", nm.Name)
	case nm.DeletionTimestamp != nil:
		return fmt.Errorf("NodeMaintenance %q is being deleted: start another one", nm.Name)
	}
	// A stage that this kubectl does not know is left to the server.
	if slices.Index(stages, nm.Spec.Stage) > slices.Index(stages, stage) {
		if nm.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete {
			return fmt.Errorf("NodeMaintenance %q is in stage Complete and cannot return to %s: start another one; to use its name again, delete it first: kubectl delete nm %s", nm.Name, stage, nm.Name)
		}
		return fmt.Errorf("NodeMaintenance %q is in stage %s and cannot return to %s: complete or cancel it and start another one", nm.Name, nm.Spec.Stage, stage)
	}
	return nil
}
