/*
Copyright The Kubernetes Authors.

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

// Command cluster starts and stops local clusters: the components of this
// repository with etcd and simulated nodes, as plain processes of the user. It
// needs neither root nor a container runtime nor the network.
//
// kwokctl writes the certificates and starts the components; this program adds
// what kwokctl leaves to its caller: free ports on loopback, a check that every
// component became healthy, an error that names the one that did not, and a
// stop that ends only processes of the cluster in question.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `usage: cluster up [flags]      start a local cluster, or reuse the one that runs
       cluster down [flags]    stop a local cluster and remove its state

Run "cluster up -h" for the flags.
`

// defaultTimeout is far more than a start takes, five to ten seconds. On a machine
// that is busy building, reading the binaries alone can take half a minute, and a
// component that fails for good is noticed at once.
const defaultTimeout = 2 * time.Minute

func main() {
	// An interrupted start must not leave half a cluster behind, so signals
	// cancel the context and the ordinary failure path cleans up.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return errors.New("name a command: up or down")
	}
	switch args[0] {
	case "up":
		return runUp(ctx, args[1:])
	case "down":
		return runDown(ctx, args[1:])
	case "-h", "--help", "help":
		fmt.Print(usage)
		return nil
	default:
		return fmt.Errorf("unknown command %q: use up or down", args[0])
	}
}

func runUp(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("cluster up", flag.ContinueOnError)
	locate := locationFlags(flags)
	bin := flags.String("bin", "", "directory of the binaries (default bin in the output directory)")
	var opts options
	flags.IntVar(&opts.nodes, "nodes", 3, "number of simulated nodes")
	flags.StringVar(&opts.gates, "gates", defaultGates, "feature gates of the control plane, Name=true,...")
	flags.StringVar(&opts.runtimeConfig, "runtime-config", "coordination.k8s.io/v1alpha1=true", "API versions to serve, group/version=true,...")
	flags.Var(&opts.args, "arg", "a further flag of a component, component:flag=value; can be repeated")
	flags.DurationVar(&opts.timeout, "timeout", defaultTimeout, "time in which the cluster must be ready for use, the check of the binaries included")
	if err := parse(flags, args); err != nil {
		return err
	}
	if opts.nodes < 0 || opts.nodes > maxNodes {
		return fmt.Errorf("--nodes is %d: give 0 to %d", opts.nodes, maxNodes)
	}
	c, err := locate()
	if err != nil {
		return err
	}
	if *bin != "" {
		if err := c.useBinaries(*bin); err != nil {
			return err
		}
	}
	return c.up(ctx, opts)
}

func runDown(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("cluster down", flag.ContinueOnError)
	locate := locationFlags(flags)
	if err := parse(flags, args); err != nil {
		return err
	}
	c, err := locate()
	if err != nil {
		return err
	}
	return c.down(ctx)
}

// locationFlags adds the flags that say which cluster is meant, and returns a
// function that resolves them after parsing.
func locationFlags(flags *flag.FlagSet) func() (*cluster, error) {
	name := flags.String("name", defaultName, "name of the cluster")
	output := flags.String("output", "_output", "directory for binaries and state")
	return func() (*cluster, error) { return newCluster(*name, *output) }
}

// parse refuses arguments that are not flags: "down second" without --name must
// not take down the default cluster.
func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: %s takes only flags", flags.Arg(0), flags.Name())
	}
	return nil
}
