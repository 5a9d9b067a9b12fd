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

// Package maintenance implements "kubectl maintenance", which plans, starts, watches and ends
// NodeMaintenances.
//
// Its files are three parts, and each uses only those before it:
//
//   - read*.go, view_*.go: snapshots of objects, and views that are made of them. "status" and
//     "watch" read NodeMaintenances and nodes: the controller publishes blockers and counters in
//     their status. Its lease says whether it runs (read_lease.go), by the clock of the API server
//     (read_server_time.go). "plan" also reads pods (read_pods.go, view_plan.go), because there is
//     no drain yet; what only one view of a plan needs, the file of that view reads.
//   - render_*.go: views as text, as lines of a log, or on a terminal.
//   - all other files: the commands, and the wait for their end (follow.go).
//
// "convert" is a package of its own: it needs no server. Both select nodes by the package
// nodeselection.
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
	"k8s.io/client-go/rest"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/kubectl/pkg/cmd/maintenance/convert"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/utils/clock"
)

// Exit codes besides 0 and 1. They are part of the interface: the help documents them.
const (
	// exitTimedOut means that --timeout has passed while pods were being evicted, or nodes waited for
	// something that ends by itself.
	exitTimedOut = 2

	// exitBlocked means that --timeout has passed while there was something that needs an
	// intervention: blockers, a rollout that begins with no further node, or no controller that acts. The
	// message names it.
	exitBlocked = 3

	// exitInterrupted is the exit code that shells expect after Ctrl-C.
	exitInterrupted = 130
)

var (
	maintenanceLong = templates.LongDesc(i18n.T(`
		Drain nodes for an upgrade, a repair or their removal, and release them afterwards.

		A NodeMaintenance selects nodes and has a stage: Idle announces the maintenance, Cordon makes
		the nodes unschedulable, Drain requests the eviction of their pods in the order of the drain
		plan, Complete releases the nodes. A controller does the work, so nothing is lost if this
		command is interrupted.

		Exit codes of all subcommands:

		    0    done
		    1    an error, wrong usage, or a maintenance that ended before it was drained
		    2    --timeout has passed while pods were leaving, or nodes waited for their turn
		    3    --timeout has passed while pods or nodes were blocked: the message names the
		         blockers. Also if no further node is drained until somebody intervenes, or no
		         controller acted
		    130  interrupted`))

	maintenanceExample = templates.Examples(i18n.T(`
		# Show what a drain of node "foo" would do, and what would block it
		kubectl maintenance plan foo

		# Drain node "foo", print blockers, and wait until no pod is left
		kubectl maintenance start foo --reason="firmware upgrade" --wait

		# Watch the drain
		kubectl maintenance watch

		# Release the nodes
		kubectl maintenance complete foo-x7k2p`))
)

// environment has the dependencies of all subcommands. Tests replace parts of it.
type environment struct {
	genericiooptions.IOStreams
	factory cmdutil.Factory
	client  func() (kubernetes.Interface, error)
	clock   clock.WithTicker
	// server is the clock of the API server; nil if it is unknown.
	server *serverTime

	// terminal is Out without the filter for plain text: a screen writes control sequences.
	terminal io.Writer
}

// NewCmdMaintenance returns the command "maintenance" with its subcommands.
func NewCmdMaintenance(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	server := &serverTime{clock: clock.RealClock{}}
	return newCmdMaintenance(&environment{
		IOStreams: streams,
		factory:   f,
		client:    func() (kubernetes.Interface, error) { return newClient(f, server) },
		clock:     clock.RealClock{},
		server:    server,
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
		Short:                 i18n.T("Drain nodes declaratively, and show blockers"),
		Long:                  maintenanceLong,
		Example:               maintenanceExample,
		Run:                   cmdutil.DefaultSubCommandRun(env.Out),
	}
	cmd.AddCommand(newCmdPlan(env))
	cmd.AddCommand(newCmdStart(env))
	cmd.AddCommand(newCmdStatus(env))
	cmd.AddCommand(newCmdWatch(env))
	cmd.AddCommand(newCmdPause(env, pauses))
	cmd.AddCommand(newCmdPause(env, resumes))
	cmd.AddCommand(newCmdEnd(env, completing))
	cmd.AddCommand(newCmdEnd(env, canceling))
	cmd.AddCommand(convert.NewCmdConvert(base.IOStreams))
	return cmd
}

func newClient(f cmdutil.Factory, server *serverTime) (kubernetes.Interface, error) {
	config, err := f.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = clientConfig(config)
	config.Wrap(server.observe)
	return kubernetes.NewForConfig(config)
}

// servedClient returns a client, if the server serves NodeMaintenances.
func (e *environment) servedClient() (kubernetes.Interface, error) {
	client, err := e.client()
	if err != nil {
		return nil, err
	}
	return client, requireServed(client)
}

// clientConfig allows more requests per second than the default, because a plan of many nodes reads
// the pods of each.
func clientConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100
	return config
}

// untilInterrupted returns a context that ends on Ctrl-C, and after the timeout unless it is 0.
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
