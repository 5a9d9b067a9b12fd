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
// Its files form four layers, each of which uses only those before it:
//
//   - read*.go: snapshots of NodeMaintenances and nodes, by lists and watches. The controller publishes
//     blockers and counters in their status, and its lease says whether it runs (read_watch.go).
//   - view_*.go: views that are made of snapshots. Those of "plan" also read pods (view_pods.go),
//     because there is no drain yet; what only one of them needs, its file reads.
//   - render_*.go: views as text, as lines of a log, or on a terminal.
//   - all other files: the commands (plan.go, start.go; status.go has watch, too; pause.go: pause and
//     resume; end.go: complete and cancel; complete_nodes.go: complete, for nodes of a rollout), their
//     flags (flags.go), names of maintenances and nodes, and their completion in shells (names.go),
//     what the commands need of their surroundings (environment.go), and the wait for their end
//     (follow.go).
//
// "convert" is a package of its own: it needs no server. Both select nodes by the package
// nodeselection.
package maintenance

import (
	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/kubectl/pkg/cmd/maintenance/convert"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/utils/clock"
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
		    2    --timeout has passed while pods were leaving, or nodes waited for their turn: the
		         message names the first of what they wait for
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
