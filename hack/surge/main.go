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

// Surge proves that workloads move without downtime, on local clusters of its own. One node
// has ten Deployments with a single replica each, behind Services, under different budgets,
// and a StatefulSet under a budget. It is drained, once by a NodeMaintenance of the fork,
// once by kubectl drain on the pristine base. A new pod takes seconds to become ready, and
// an old one to end, so a gap shows where there is one.
//
// It watches the EndpointSlices, the pods and the conditions of the Deployments, prints for
// both how long each Service had no ready endpoint, and fails unless the drain by the
// NodeMaintenance was without a gap, and left nothing behind.
//
// # Reading order
//
//	main.go      flags, and the order of what is done
//	workload.go  what is on the node
//	drain.go     the drains, and what is recorded of them
//	checks.go    what must hold of the drain by a NodeMaintenance
//	report.go    the table of both
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/kubernetes/hack/localcluster"
)

// options is what the caller can choose.
type options struct {
	bin, base, output string
	// drainTimeout is when the drain by a NodeMaintenance has failed, baseTimeout is when
	// kubectl drain of the base gives up.
	drainTimeout, baseTimeout time.Duration
}

// timeout bounds everything.
const timeout = 15 * time.Minute

func main() {
	var opts options
	flag.StringVar(&opts.bin, "bin", "_output/bin", "directory of the binaries of the fork")
	flag.StringVar(&opts.base, "base", "_output/base/bin", "directory of the binaries of the pristine base")
	flag.StringVar(&opts.output, "output", "_output", "directory for the state of the clusters")
	flag.DurationVar(&opts.drainTimeout, "drain-timeout", 2*time.Minute, "time in which a NodeMaintenance must have drained the node")
	flag.DurationVar(&opts.baseTimeout, "base-timeout", 20*time.Second, "when kubectl drain of the base gives up: some pods hold it for ever")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := run(ctx, opts); err != nil {
		fmt.Fprintln(os.Stderr, "surge:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options) error {
	for _, dir := range []*string{&opts.bin, &opts.base, &opts.output} {
		var err error
		if *dir, err = filepath.Abs(*dir); err != nil {
			return fmt.Errorf("resolving %s: %w", *dir, err)
		}
	}
	ours, err := measure(ctx, &way{
		name:    "NodeMaintenance",
		cluster: &localcluster.Cluster{Name: "surge", Output: opts.output, Bin: opts.bin, Nodes: nodes},
		drain:   byMaintenance(opts.drainTimeout),
		after:   completeMaintenance,
	})
	if err != nil {
		return err
	}
	base, err := measure(ctx, &way{
		name:    "kubectl drain",
		cluster: &localcluster.Cluster{Name: "surge-base", Output: opts.output, Bin: opts.bin, Base: opts.base, Nodes: nodes},
		drain:   byKubectlDrain(opts.baseTimeout),
	})
	switch {
	case errors.Is(err, localcluster.ErrNoBase):
		fmt.Printf("Only the NodeMaintenance was measured: %v.\n", err)
	case err != nil:
		return err
	}
	results := []*result{ours}
	if base != nil {
		results = append(results, base)
	}
	if err := writeTable(os.Stdout, results); err != nil {
		return err
	}
	return judge(os.Stdout, ours, base)
}
