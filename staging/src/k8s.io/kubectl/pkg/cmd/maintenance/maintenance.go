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

// Package maintenance is "kubectl maintenance": it plans, starts, watches and ends
// NodeMaintenances.
//
// Each command reads what it needs into a snapshot (snapshot.go, or kept up to date by
// observer.go), pure functions make a view of it (view.go, planview.go), and others
// turn views into text (render.go, planrender.go, changes.go). What a command writes to
// the server stands in its own file, and in stage.go.
package maintenance

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/plaintext"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/utils/clock"
)

// Exit codes besides 0 and 1. They are part of the interface: the help documents them.
const (
	// exitTimedOut means that --timeout has passed while pods were leaving.
	exitTimedOut = 2

	// exitBlocked means that --timeout has passed, and that pods stay until somebody
	// acts. The message names who is in the way.
	exitBlocked = 3

	// exitInterrupted is what shells expect of a program that Ctrl-C has ended.
	exitInterrupted = 130
)

var (
	maintenanceLong = templates.LongDesc(i18n.T(`
		Take pods off nodes for an upgrade, a repair or the end of the nodes, and give the nodes back.

		A NodeMaintenance says which nodes are maintained and how far: Idle announces it, Cordon
		keeps new pods away, Drain asks the pods to leave in the order of the drain plan, Complete
		gives the nodes back. A controller does the work, so nothing is lost when this command is
		interrupted.

		Exit codes of all subcommands:

		    0    done
		    1    an error, wrong usage, or a maintenance that ended before it was drained
		    2    --timeout has passed while pods were leaving
		    3    --timeout has passed while pods or nodes were blocked: the message names the blockers
		    130  interrupted`))

	maintenanceExample = templates.Examples(i18n.T(`
		# See what a drain of node "foo" would do, and who would be in the way
		kubectl maintenance plan foo

		# Drain node "foo", name who holds it up, and wait until no pod is left
		kubectl maintenance start foo --reason="firmware upgrade" --wait

		# Watch the drain
		kubectl maintenance watch

		# Give the nodes back
		kubectl maintenance complete foo-x7k2p`))
)

// environment is what all subcommands act on. Tests replace parts of it.
type environment struct {
	genericiooptions.IOStreams
	factory cmdutil.Factory
	client  func() (kubernetes.Interface, error)
	clock   clock.WithTicker

	// terminal is Out before it was made to print plain text only: whoever redraws the
	// screen writes control sequences.
	terminal io.Writer
}

// NewCmdMaintenance returns the command "maintenance" with its subcommands.
func NewCmdMaintenance(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return newCmdMaintenance(&environment{
		IOStreams: streams,
		factory:   f,
		client:    func() (kubernetes.Interface, error) { return newClient(f) },
		clock:     clock.RealClock{},
	})
}

func newCmdMaintenance(base *environment) *cobra.Command {
	plain := *base
	env := &plain
	env.terminal = env.Out
	env.Out, env.ErrOut = plaintext.NewWriter(env.Out), plaintext.NewWriter(env.ErrOut)
	cmd := &cobra.Command{
		Use:                   "maintenance SUBCOMMAND",
		DisableFlagsInUseLine: true,
		Short:                 i18n.T("Drain nodes declaratively, and see what holds the drain up"),
		Long:                  maintenanceLong,
		Example:               maintenanceExample,
		Run:                   cmdutil.DefaultSubCommandRun(env.Out),
	}
	cmd.AddCommand(newCmdPlan(env))
	cmd.AddCommand(newCmdStart(env))
	cmd.AddCommand(newCmdStatus(env))
	cmd.AddCommand(newCmdWatch(env))
	cmd.AddCommand(newCmdComplete(env))
	cmd.AddCommand(newCmdCancel(env))
	return cmd
}

// newClient returns a client that is not slowed down more than the server wants: a plan
// of many nodes reads the pods of each.
func newClient(f cmdutil.Factory) (kubernetes.Interface, error) {
	config, err := f.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 50, 100
	return kubernetes.NewForConfig(config)
}

// untilInterrupted returns a context that ends with Ctrl-C, and after the timeout if
// that is not 0.
func untilInterrupted(cmd *cobra.Command, timeout time.Duration) (context.Context, context.CancelFunc) {
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, stop := signal.NotifyContext(parent, syscall.SIGINT, syscall.SIGTERM)
	if timeout == 0 {
		return ctx, stop
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	return ctx, func() { cancel(); stop() }
}

func validateTimeout(timeout time.Duration) error {
	if timeout < 0 {
		return fmt.Errorf("--timeout=%s: must not be negative; 0 waits without end", timeout)
	}
	return nil
}
