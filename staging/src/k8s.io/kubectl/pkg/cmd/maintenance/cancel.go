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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
)

var (
	cancelLong = templates.LongDesc(i18n.T(`
		Call maintenances off and delete them.

		The controller completes them first: nodes become schedulable again, unless another
		maintenance holds them, and pods that were asked to leave may stay. Two kinds of pods go
		on leaving, and are named: those whose interceptor forbids to call the eviction off, and
		those that somebody else asks to leave. Instead of the maintenance its node may be named, if
		it has no other.`))

	cancelExample = templates.Examples(i18n.T(`
		# Call a maintenance off
		kubectl maintenance cancel foo-x7k2p

		# Return when it is gone
		kubectl maintenance cancel foo-x7k2p --wait`))
)

type cancelOptions struct {
	*environment
	names   []string
	wait    bool
	timeout time.Duration
}

func newCmdCancel(env *environment) *cobra.Command {
	o := &cancelOptions{environment: env}
	cmd := &cobra.Command{
		Use:                   "cancel NAME...",
		DisableFlagsInUseLine: true,
		Short:                 i18n.T("Call maintenances off and delete them"),
		Long:                  cancelLong,
		Example:               cancelExample,
		ValidArgsFunction:     completeNames(env.factory, resource),
		Run: func(cmd *cobra.Command, args []string) {
			o.names = bareNames(args)
			checkErr(requireNames(cmd, o.names))
			checkErr(validateTimeout(o.timeout))
			ctx, stop := untilInterrupted(cmd, o.timeout)
			defer stop()
			checkErr(o.run(ctx))
		},
	}
	cmd.Flags().BoolVar(&o.wait, "wait", o.wait, "If true, return when the maintenances are gone.")
	addTimeoutFlag(cmd, &o.timeout)
	return cmd
}

func (o *cancelOptions) run(ctx context.Context) error {
	client, err := o.servedClient()
	if err != nil {
		return err
	}
	var errs []error
	var deleting []*coordinationv1alpha1.NodeMaintenance
	for _, name := range o.names {
		nm, err := o.cancel(ctx, client, name)
		if apierrors.IsNotFound(err) {
			if name, err = o.findOwn(ctx, client, name, "cancel", err); err == nil {
				nm, err = o.cancel(ctx, client, name)
			}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		deleting = append(deleting, nm)
	}
	if o.wait && len(deleting) > 0 {
		if _, err := follow(ctx, client, deleting, o.clock, &lineDisplay{out: o.Out}, givenBack(func(*view) bool { return false })); err != nil {
			return err
		}
	}
	return joined(errs)
}

// cancel deletes this very maintenance, not one that somebody has made under the same
// name since, and returns it as it was before.
func (o *cancelOptions) cancel(ctx context.Context, client kubernetes.Interface, name string) (*coordinationv1alpha1.NodeMaintenance, error) {
	nm, err := client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading NodeMaintenance %q: %w", name, err)
	}
	err = client.CoordinationV1alpha1().NodeMaintenances().Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(nm.UID))})
	if err != nil {
		return nil, fmt.Errorf("deleting NodeMaintenance %q: %w", name, err)
	}
	fmt.Fprintf(o.Out, "nodemaintenance/%s is called off\n", name)
	printWhoGoesOn(ctx, o.environment, client, nm)
	return nm, nil
}
