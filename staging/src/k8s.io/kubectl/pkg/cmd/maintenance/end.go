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
	"k8s.io/client-go/kubernetes"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// ending is a way to end maintenances: complete keeps their objects, cancel deletes them.
type ending struct {
	verb, short, long, example, waitUsage string

	// operands are the arguments in the usage line.
	operands string
	// completeNodes reports whether nodes can be named behind a maintenance, to end the work on them
	// alone.
	completeNodes bool
	// asksForForce reports whether the end of a rollout takes --force while it is not done with some of its nodes.
	asksForForce bool

	// end ends one maintenance, and returns it as it was before.
	end func(o *endOptions, ctx context.Context, client kubernetes.Interface, name string) (*coordinationv1alpha1.NodeMaintenance, error)
	// isOver reports whether an existing maintenance has ended. One that is gone always has.
	isOver func(v *view) bool
	// finish runs after the wait, if there is one. It may be nil.
	finish func(o *endOptions, ctx context.Context, client kubernetes.Interface, ended []*coordinationv1alpha1.NodeMaintenance)
}

type endOptions struct {
	*environment
	ending  *ending
	args    []string
	force   bool
	wait    bool
	timeout time.Duration
	dryRun  cmdutil.DryRunStrategy
}

func newCmdEnd(env *environment, ending *ending) *cobra.Command {
	o := &endOptions{environment: env, ending: ending}
	cmd := &cobra.Command{
		Use:                   ending.verb + " " + ending.operands,
		DisableFlagsInUseLine: true,
		Short:                 ending.short,
		Long:                  ending.long,
		Example:               ending.example,
		ValidArgsFunction:     completeNames(env.factory, qualifiedResource),
		Run: func(cmd *cobra.Command, args []string) {
			o.args = args
			checkErr(requireNames(cmd, o.args))
			checkErr(o.complement(cmd))
			ctx, stop := untilInterrupted(cmd, o.timeout)
			defer stop()
			checkErr(o.run(ctx))
		},
	}
	cmd.Flags().BoolVar(&o.wait, "wait", o.wait, ending.waitUsage)
	addTimeoutFlag(cmd, &o.timeout)
	cmdutil.AddDryRunFlag(cmd)
	if ending.completeNodes {
		cmd.ValidArgsFunction = completeMaintenanceAndNodes(env)
		cmd.Flags().BoolVar(&o.force, "force", o.force, "If true, complete nodes that are not drained yet, which skips them: the maintenance leaves them as they are, and does not drain them later. Without nodes: end a rollout that is not done with some of its nodes, and release them as they are.")
	}
	return cmd
}

// complement reads and checks what the flags say.
func (o *endOptions) complement(cmd *cobra.Command) (err error) {
	if o.dryRun, err = cmdutil.GetDryRunStrategy(cmd); err != nil {
		return err
	}
	if o.wait && o.dryRun != cmdutil.DryRunNone {
		return cmdutil.UsageErrorf(cmd, "--wait: there is nothing to wait for with --dry-run")
	}
	return validateTimeout(o.timeout)
}

// printChange prints what happens to an object, or would happen.
func (o *endOptions) printChange(object, change string) {
	note := map[cmdutil.DryRunStrategy]string{cmdutil.DryRunClient: " (dry run)", cmdutil.DryRunServer: " (server dry run)"}[o.dryRun]
	fmt.Fprintf(o.Out, "%s %s%s\n", object, change, note)
}

func requireNames(cmd *cobra.Command, names []string) error {
	if len(names) == 0 {
		return cmdutil.UsageErrorf(cmd, "at least one NAME is required; \"kubectl maintenance status\" lists them")
	}
	return nil
}

func (o *endOptions) run(ctx context.Context) error {
	client, err := o.servedClient()
	if err != nil {
		return err
	}
	if o.ending.completeNodes {
		if named, err := o.nodesToComplete(ctx, client); err != nil {
			return err
		} else if named != nil {
			return o.completeNodes(ctx, client, named)
		}
	}
	return o.endAll(ctx, client)
}

// endAll ends maintenances as a whole, unless an argument names none.
func (o *endOptions) endAll(ctx context.Context, client kubernetes.Interface) error {
	names, err := o.resolveNames(ctx, client, o.args, o.ending.verb)
	if err != nil {
		return err
	}
	if err := o.checkUnderWay(ctx, client, names); err != nil {
		return err
	}
	var errs []error
	var ended []*coordinationv1alpha1.NodeMaintenance
	for _, name := range names {
		nm, err := o.ending.end(o, ctx, client, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ended = append(ended, nm)
	}
	if o.wait && len(ended) > 0 {
		if _, err := follow(ctx, client, ended, o.clock, &lineDisplay{out: o.Out}, released(o.ending.isOver)); err != nil {
			return joined(append(errs, err))
		}
	}
	if o.ending.finish != nil && o.dryRun == cmdutil.DryRunNone {
		o.ending.finish(o, ctx, client, ended)
	}
	return joined(errs)
}
