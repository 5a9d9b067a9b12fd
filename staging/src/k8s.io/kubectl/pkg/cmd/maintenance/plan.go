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
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/kubectl/pkg/cmd/maintenance/nodeselection"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

var (
	planLong = templates.LongDesc(i18n.T(`
		Show what a drain would do, and change nothing.

		The pods of each node are listed in the order in which their eviction would be requested,
		with their step of the drain plan, the interceptors that act before the eviction, and what
		would block it: budgets that allow no disruption now, and pods that are not evicted through
		the API. Warnings name workloads whose ready pods would all be evicted together, and Jobs that
		would fail. Budgets do not block a pod whose Deployment starts a replacement first: the pod
		is deleted when the replacement is available. Pods that spec.podPolicies skips stay, and those
		for which it waits are not evicted: the plan says until when, if they have a deadline.

		If the maintenance has a rollout, or NodeMaintenanceBudgets limit how many nodes are drained at
		the same time, the plan says in which batches, when windows open, how long it takes at the pace
		of the last hour, and whether the pods of the largest batch would fit on other nodes. The
		latter is a hint: it considers requests, node selectors, required node affinity, taints and
		tolerations.

		The plan is for nodes that are named or selected with -l, for an existing maintenance (its name,
		if no node has it, or --maintenance), or for one in a file (-f). "comes back" marks pods whose
		replacements may run on the cordoned node, because they tolerate the taint of a cordon, or spec.nodeName
		of their template names it. A pod is "evicted without a replacement" although its Deployment
		surges, if its template, its claims, its volumes or its topology spread constraints let none start
		while it runs.

		The command only reads from the server. It asks the server by a dry run whether that accepts the
		manifest in a file; without the permission to create it, or to patch it if it exists, it warns
		that nothing has checked it.`))

	planExample = templates.Examples(i18n.T(`
		# Show what a drain of node "foo" would do
		kubectl maintenance plan foo

		# Show it for all nodes of a pool, with the pods of one app before the others
		kubectl maintenance plan -l pool=a --drain-plan-file=plan.yaml

		# Show what is left to do for an existing maintenance
		kubectl maintenance plan foo-x7k2p

		# Show in how many batches a pool would be drained, and whether the pods fit elsewhere
		kubectl maintenance plan -l pool=a --max-concurrent=10%

		# Check a manifest before it is applied
		kubectl maintenance plan -f maintenance.yaml

		# List the pods that a budget would block now
		kubectl maintenance plan foo -o json | jq '.nodes[].pods[] | select(.blocked)'`))
)

// wide is the output format with one line for each pod.
const wide = "wide"

type planOptions struct {
	*environment
	args []string
	// isNode reports whether an argument is said to be a node.
	isNode        bool
	selector      string
	maintenance   string
	filename      string
	drainPlanFile string
	output        string
	rolloutFlags  rolloutFlags
}

func newCmdPlan(env *environment) *cobra.Command {
	o := &planOptions{environment: env}
	cmd := env.subcommand(&cobra.Command{
		Use:               "plan (NODE... | -l SELECTOR | NAME | --maintenance=NAME | -f FILENAME)",
		Short:             i18n.T("Show what a drain would do, and change nothing"),
		Long:              planLong,
		Example:           planExample,
		ValidArgsFunction: completeNodesAndNames(env.factory),
	}, nil, o.prepare, o.run)
	cmd.Flags().StringVarP(&o.selector, "selector", "l", o.selector, "Selector (label query) of the nodes, such as -l pool=a.")
	cmd.Flags().StringVar(&o.maintenance, "maintenance", o.maintenance, "Name of an existing maintenance.")
	cmd.Flags().StringVarP(&o.filename, "filename", "f", o.filename, "File with a NodeMaintenance, which need not exist. '-' is stdin.")
	cmd.Flags().StringVar(&o.drainPlanFile, "drain-plan-file", o.drainPlanFile, "File with the drain plan, as for \"kubectl maintenance start\".")
	o.rolloutFlags.addMaxConcurrent(cmd)
	addOutputFlag(cmd, &o.output, wide)
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("maintenance", completeNames(env.factory)))
	return cmd
}

func (o *planOptions) prepare(cmd *cobra.Command, args []string) error {
	o.args, o.isNode = bareNames(args), slices.ContainsFunc(args, isNodeArgument)
	if len(args) == 1 && isMaintenanceArgument(args[0]) && o.maintenance == "" {
		o.args, o.maintenance = nil, o.args[0]
	}
	if err := o.validate(cmd); err != nil {
		return err
	}
	if i := slices.IndexFunc(args, isMaintenanceArgument); i >= 0 && len(o.args) > 0 {
		return cmdutil.UsageErrorf(cmd, "%s is a NodeMaintenance: name it alone, or with --maintenance", args[i])
	}
	return nil
}

func (o *planOptions) validate(cmd *cobra.Command) error {
	given := filtered([]bool{len(o.args) > 0, o.selector != "", o.maintenance != "", o.filename != ""}, func(isGiven bool) bool { return isGiven })
	if len(given) != 1 {
		return cmdutil.UsageErrorf(cmd, "exactly one of NODE..., --selector, --maintenance and --filename is required")
	}
	if o.maintenance != "" || o.filename != "" {
		if err := o.validateOwn(); err != nil {
			return cmdutil.UsageErrorf(cmd, "%v", err)
		}
	}
	return validateOutput(o.output, wide)
}

// validateOwn refuses flags for what a maintenance has itself.
func (o *planOptions) validateOwn() error {
	switch {
	case o.drainPlanFile != "":
		return errors.New("--drain-plan-file: the maintenance has its own drain plan")
	case len(o.rolloutFlags.given()) > 0:
		return errors.New("--max-concurrent: the maintenance has its own rollout")
	}
	return nil
}

func (o *planOptions) run(ctx context.Context, client kubernetes.Interface) error {
	nm, err := o.target(ctx, client)
	if err != nil {
		return err
	}
	s, nodes, err := o.read(ctx, client, nm)
	if err != nil {
		return err
	}
	// Admission completes the plan in the same way. That of a stored maintenance is complete.
	plan, err := planOf(s, nm.Name, nodes, maintenance.CompletePlan(nm.Spec.DrainPlan))
	if err != nil {
		return fmt.Errorf("drain plan: %w", err)
	}
	plan.MissingNodes = s.missingNames(nm.Spec.NodeSelector)
	switch o.output {
	case wide:
		if text := plan.missingText(); text != "" {
			fmt.Fprintln(o.ErrOut, "Warning: "+text)
		}
		return writeWidePlan(o.Out, plan, o.clock.Now())
	case "":
		_, err := io.WriteString(o.Out, renderPlan(plan, defaultWidth, o.clock.Now()))
		return err
	}
	return printStructured(o.Out, o.output, plan)
}

// target returns the maintenance to plan for, whether or not it is stored.
func (o *planOptions) target(ctx context.Context, client kubernetes.Interface) (*coordinationv1alpha1.NodeMaintenance, error) {
	nm := &coordinationv1alpha1.NodeMaintenance{}
	var err error
	if nm.Spec.Rollout, err = o.rolloutFlags.rollout(); err != nil {
		return nil, err
	}
	switch {
	case o.maintenance != "":
		return getMaintenance(ctx, client, o.maintenance)
	case o.filename != "":
		return o.readManifest(ctx, client)
	case o.selector != "":
		nm.Spec.NodeSelector, err = nodeselection.ByLabels(o.selector)
	default:
		nm.Spec.NodeSelector = nodeselection.ByName(o.args)
		nodes, err := existing(ctx, "node", o.args, client.CoreV1().Nodes())
		if err != nil {
			// A typo would select nothing without notice.
			return nil, err
		}
		if missing := notFound(o.args, nodes); missing != nil {
			return o.insteadOfNodes(ctx, client, nodes, missing)
		}
	}
	if err == nil && o.drainPlanFile != "" {
		var unset []int
		nm.Spec.DrainPlan, unset, err = readDrainPlan(o.drainPlanFile, o.In)
		o.warnOfPriorities(unset)
	}
	return nm, err
}

// insteadOfNodes returns the maintenance that the only argument names, which is no node. Otherwise, the
// error says what is missing.
func (o *planOptions) insteadOfNodes(ctx context.Context, client kubernetes.Interface, nodes map[string]*corev1.Node, missing error) (*coordinationv1alpha1.NodeMaintenance, error) {
	i := slices.IndexFunc(o.args, func(name string) bool { return nodes[name] == nil && hasMaintenance(ctx, client, name) })
	switch {
	case o.isNode:
		return nil, missing
	case i >= 0 && len(o.args) > 1:
		return nil, fmt.Errorf("%w; NodeMaintenance %q exists: name it alone", missing, o.args[i])
	case i >= 0:
		if err := o.validateOwn(); err != nil {
			return nil, err
		}
		return getMaintenance(ctx, client, o.args[0])
	case len(o.args) == 1:
		return nil, fmt.Errorf("%w, nor is there a NodeMaintenance of that name: %s", missing, listCommand)
	}
	return nil, missing
}

// warnOfPriorities warns of entries of a drain plan that say no priority. The server cannot: there, no
// value and 0 look the same.
func (o *planOptions) warnOfPriorities(unset []int) {
	for _, i := range unset {
		fmt.Fprintf(o.ErrOut, "Warning: entry %d of the drain plan has no podPriority, so it is 0: the entry selects no pod of a higher priority\n", i+1)
	}
}

func (o *planOptions) readManifest(ctx context.Context, client kubernetes.Interface) (*coordinationv1alpha1.NodeMaintenance, error) {
	name := o.filename
	data, err := readFile(name, o.In)
	if err != nil {
		return nil, fmt.Errorf("--filename: %w", err)
	}
	// First, because other objects, and the NodeMaintenances of other projects, have other fields.
	var found metav1.TypeMeta
	switch version := coordinationv1alpha1.SchemeGroupVersion.String(); {
	case yaml.Unmarshal(data, &found) != nil || found.Kind == "":
	case found.Kind != "NodeMaintenance":
		return nil, fmt.Errorf("--filename=%s: is a %s of %q, and not a NodeMaintenance of %s", name, plaintext.Line(found.Kind), found.APIVersion, version)
	case found.APIVersion != version:
		return nil, fmt.Errorf("--filename=%s: is a NodeMaintenance of %q, and not of %s: convert it with \"kubectl maintenance convert -f %s\"", name, found.APIVersion, version, name)
	}
	nm := &coordinationv1alpha1.NodeMaintenance{}
	if err := yaml.UnmarshalStrict(data, nm); err != nil {
		return nil, fmt.Errorf("--filename=%s: %w", name, err)
	}
	if nm.Kind != "NodeMaintenance" || nm.Spec.NodeSelector == nil {
		return nil, fmt.Errorf("--filename=%s: not a NodeMaintenance with a spec.nodeSelector", name)
	}
	_, unset, err := parseDrainPlan(data)
	if err != nil {
		return nil, fmt.Errorf("--filename=%s: %w", name, err)
	}
	o.warnOfPriorities(unset)
	return nm, o.check(ctx, client, nm, data)
}

// check asks the server by a dry run whether it accepts the manifest, as a new object or as a change of the stored one,
// if the user may write that, and no webhook says that it knows no dry runs.
func (o *planOptions) check(ctx context.Context, client kubernetes.Interface, nm *coordinationv1alpha1.NodeMaintenance, manifest []byte) error {
	verb, dryRun := "create", []string{metav1.DryRunAll}
	_, err := client.CoordinationV1alpha1().NodeMaintenances().Create(ctx, nm, metav1.CreateOptions{FieldManager: fieldManager, DryRun: dryRun})
	if apierrors.IsAlreadyExists(err) {
		verb = "patch"
		_, err = client.CoordinationV1alpha1().NodeMaintenances().Patch(ctx, nm.Name, types.ApplyPatchType, manifest, metav1.PatchOptions{FieldManager: fieldManager, Force: ptr.To(true), DryRun: dryRun})
	}
	switch {
	case err == nil:
	case !strings.Contains(err.Error(), "does not support dry run") && (!apierrors.IsForbidden(err) || mayWrite(ctx, client, verb)):
		return fmt.Errorf("--filename=%s: the server does not accept it: %w", o.filename, err)
	default:
		fmt.Fprintf(o.ErrOut, "Warning: the server was not asked whether it accepts the manifest: %v\n", err)
	}
	return nil
}

// mayWrite reports whether the user may write maintenances by this verb, as far as the server says that: otherwise,
// it is the admission that forbids it.
func mayWrite(ctx context.Context, client kubernetes.Interface, verb string) bool {
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: coordinationv1alpha1.GroupName, Resource: resource},
	}}, metav1.CreateOptions{})
	return err == nil && review.Status.Allowed
}

// read reads everything that a plan shows. A plan needs the permission to list nodes and pods.
func (o *planOptions) read(ctx context.Context, client kubernetes.Interface, nm *coordinationv1alpha1.NodeMaintenance) (*podSnapshot, []*corev1.Node, error) {
	s := &podSnapshot{}
	maintenances, err := listMaintenances(ctx, client)
	if err != nil && !s.skip(resource, err) {
		return nil, nil, err
	}
	s.maintenances = sorted(maintenances)
	if err := s.readNodes(ctx, client); err != nil {
		return nil, nil, err
	}
	nodes := s.selectedNodes(nm.Spec.NodeSelector)
	if err := s.readNodeBudgets(ctx, client); err != nil {
		return nil, nil, err
	}
	if err := s.readPolicies(ctx, client, nm); err != nil {
		return nil, nil, err
	}
	// Otherwise, all nodes are drained at the same time.
	limited := nm.Spec.Rollout != nil || s.haveBudget(nodes)
	if limited {
		nodes = s.planRollout(nm, nodes, o.clock.Now())
	}
	names := namesOf(nodes)
	selectors := podSelectors(names)
	if limited {
		// The capacity hint needs all pods.
		s.used, selectors = map[string]amounts{}, []string{""}
	}
	if err := s.readPods(ctx, client, sets.New(names...), selectors); err != nil {
		return nil, nil, err
	}
	s.keepPods(nodes)
	for _, read := range []func(context.Context, kubernetes.Interface) error{s.readDeployments, s.readWorkloads, s.readObstacles, s.readResponders} {
		if err := read(ctx, client); err != nil {
			return nil, nil, err
		}
	}
	for _, needed := range []string{"nodes", "pods"} {
		if !s.readable(needed) {
			return nil, nil, apierrors.NewForbidden(corev1.Resource(needed), "", errors.New("a plan needs the permission to list them in all namespaces"))
		}
	}
	if limited {
		s.rollout.addCapacity(s)
	}
	return s, nodes, nil
}
