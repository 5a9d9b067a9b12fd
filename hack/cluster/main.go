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

// Command cluster starts and stops local clusters, see test/utils/localcluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/kubernetes/test/utils/realcluster"
)

const usage = `usage: cluster up [flags]         start a local cluster, or reuse the one that runs
       cluster down [flags]       stop a local cluster and remove its state
       cluster up-real [flags]    the same with real nodes, as root
       cluster down-real [flags]
       cluster local-up [flags]   the same with upstream's hack/local-up-cluster.sh, as root
       cluster local-down [flags]

Run "cluster up -h" for the flags.
`

// defaultTimeout is far more than a start takes, five to ten seconds. On a machine that is
// busy building, reading the binaries alone can take half a minute, and a component that
// fails for good is noticed at once.
const defaultTimeout = 2 * time.Minute

func main() {
	// An interrupted start must not leave half a cluster behind, so signals cancel the
	// context and the ordinary failure path cleans up.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return errors.New("name a command: up, down, up-real, down-real, local-up or local-down")
	}
	if ours, err := realcluster.Run(ctx, args); ours {
		return err
	}
	c := &localcluster.Cluster{Printf: func(format string, args ...any) { fmt.Printf(format, args...) }}
	flags := flag.NewFlagSet("cluster "+args[0], flag.ContinueOnError)
	flags.StringVar(&c.Name, "name", defaultName(args[0]), "name of the cluster")
	flags.StringVar(&c.Output, "output", "_output", "directory for binaries and state")
	switch args[0] {
	case "up":
		if err := parseUp(flags, c, args[1:], 3, localcluster.MaxNodes); err != nil {
			return err
		}
		return c.Ensure(ctx)
	case "up-real":
		if err := parseUp(flags, c, args[1:], 2, realcluster.MaxNodes); err != nil {
			return err
		}
		return (&realcluster.Cluster{Local: c}).Ensure(ctx)
	case "local-up":
		if err := parseStart(flags, c, args[1:]); err != nil {
			return err
		}
		return localUp(ctx, c)
	case "local-down":
		if err := parse(flags, args[1:]); err != nil {
			return err
		}
		return (&realcluster.Cluster{Local: c, Script: &realcluster.Script{}}).Down(ctx)
	case "down":
		if err := parse(flags, args[1:]); err != nil {
			return err
		}
		return c.Down(ctx)
	case "down-real":
		if err := parse(flags, args[1:]); err != nil {
			return err
		}
		return (&realcluster.Cluster{Local: c}).Down(ctx)
	case "-h", "--help", "help":
		fmt.Print(usage)
		return nil
	default:
		return fmt.Errorf("unknown command %q: use up, down, up-real, down-real, local-up or local-down", args[0])
	}
}

// defaultName is the name of the cluster of a command.
func defaultName(command string) string {
	switch {
	case strings.HasSuffix(command, "-real"):
		return realcluster.DefaultName
	case strings.HasPrefix(command, "local-"):
		return realcluster.DefaultScriptName
	default:
		return localcluster.DefaultName
	}
}

// localUp starts a cluster with upstream's script, which takes its settings from the environment.
func localUp(ctx context.Context, c *localcluster.Cluster) error {
	script, err := realcluster.ScriptEnvironment(os.Environ())
	if err != nil {
		return err
	}
	c.Nodes = 1
	return (&realcluster.Cluster{Local: c, Script: script}).Ensure(ctx)
}

// parseStart reads the flags of all starts.
func parseStart(flags *flag.FlagSet, c *localcluster.Cluster, args []string) error {
	flags.StringVar(&c.Bin, "bin", "", "directory of the binaries (default bin in the output directory)")
	flags.DurationVar(&c.Timeout, "timeout", defaultTimeout, "time in which the cluster must be ready for use")
	if err := parse(flags, args); err != nil {
		return err
	}
	if c.Bin == "" {
		c.Bin = filepath.Join(c.Output, "bin")
	}
	return nil
}

// parseUp reads the flags of a start that has settings.
func parseUp(flags *flag.FlagSet, c *localcluster.Cluster, args []string, nodes, maxNodes int) error {
	settings := localcluster.DefaultSettings
	c.Settings = &settings
	flags.IntVar(&c.Nodes, "nodes", nodes, "number of nodes")
	flags.StringVar(&settings.Gates, "gates", settings.Gates, "feature gates of the control plane, Name=true,...")
	flags.StringVar(&settings.RuntimeConfig, "runtime-config", settings.RuntimeConfig, "API versions to serve, group/version=true,...")
	flags.Var(&settings.Args, "arg", "a further flag of a component, component:flag=value; can be repeated")
	if err := parseStart(flags, c, args); err != nil {
		return err
	}
	if c.Nodes < 0 || c.Nodes > maxNodes {
		return fmt.Errorf("--nodes is %d, must be 0 to %d", c.Nodes, maxNodes)
	}
	return nil
}

// parse refuses arguments that are not flags: "down second" without --name must not take
// down the default cluster.
func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: %s takes only flags", flags.Arg(0), flags.Name())
	}
	return nil
}
