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

// Bench measures what evictions through EvictionRequests and drains by NodeMaintenances
// cost, on a cluster of its own with simulated nodes, against kubectl drain of the
// pristine base and against a bare client that calls pods/eviction. All of them are
// measured in the same run, because only ratios of one run can be compared. It prints a table, writes all figures as
// JSON, and fails if a target is missed.
//
// # Reading order
//
//	main.go        flags, and the order of the measurements
//	cluster.go     the cluster and its clients
//	audit.go       which requests count: read from the audit log of the API server
//	workload.go    pods, budgets and requests: created, waited for, removed
//	evict.go       the ways to evict pods that are compared
//	idle.go        what requests cost that only wait
//	maintenance.go the drain of all nodes by one NodeMaintenance, and by kubectl drain
//	scale.go       what maintenances cost on a cluster with thousands of nodes
//	surge.go       what it costs that Deployments replace pods before these leave
//	surge_workload.go  the Deployments for that
//	statistics.go  median and percentile
//	report.go      targets, tables, JSON
//	surge_report.go  those of the surge
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// options is what the caller can choose.
type options struct {
	parts                 partSet
	pods, drainPods, idle int
	runs, parallel, nodes int
	scaleNodes            int
	surge, surgeReplicas  int
	idleTime, timeout     time.Duration
	bin, base, output     string
	enforce               bool
	args                  argList
}

// argList are further flags of components, in the order in which they were given.
type argList []string

func (a *argList) String() string { return strings.Join(*a, " ") }

// Set adds one; hack/localcluster checks it.
func (a *argList) Set(arg string) error {
	*a = append(*a, arg)
	return nil
}

// part is something that can be measured by itself.
type part string

const (
	partEvictions part = "evictions"
	partIdle      part = "idle"
	partDrain     part = "drain"
	partScale     part = "scale"
	partSurge     part = "surge"
)

var allParts = partSet{partEvictions, partIdle, partDrain, partScale, partSurge}

// partSet are the parts that are measured.
type partSet []part

func (p *partSet) String() string {
	var names []string
	for _, part := range *p {
		names = append(names, string(part))
	}
	return strings.Join(names, ",")
}

// Set replaces the parts by those of a list with commas.
func (p *partSet) Set(list string) error {
	*p = nil
	for _, name := range strings.Split(list, ",") {
		if !slices.Contains(allParts, part(name)) {
			return fmt.Errorf("%q is no part of the benchmark: the parts are %s", name, allParts.String())
		}
		*p = append(*p, part(name))
	}
	return nil
}

func (p partSet) has(wanted part) bool { return slices.Contains(p, wanted) }

func main() {
	opts, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		// The client library logs errors that it returns as well.
		klog.SetLogger(logr.Discard())
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		// A second signal ends the program at once.
		context.AfterFunc(ctx, stop)
		err = run(ctx, opts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parseOptions(args []string) (options, error) {
	o := options{parts: allParts}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Var(&o.parts, "parts", "what is measured, with commas in between")
	flags.IntVar(&o.pods, "pods", 500, "pods that are evicted in each measurement, except by the drain of one node")
	flags.IntVar(&o.drainPods, "drain-pods", 100, "pods that kubectl drain evicts from one node in each measurement, about 5 each second")
	flags.IntVar(&o.idle, "idle", 1000, "requests that wait while writes are counted; 0 skips this part")
	flags.IntVar(&o.scaleNodes, "scale-nodes", 5000, "nodes of the cluster with many nodes; 0 skips this part")
	flags.IntVar(&o.surge, "surge", 200, "Deployments with one replica whose pods are moved; 0 skips this part")
	flags.IntVar(&o.surgeReplicas, "surge-replicas", 1000, "replicas of the one Deployment a quarter of whose pods is moved; 0 leaves it out")
	flags.IntVar(&o.runs, "runs", 5, "how often everything is measured, except idle, scale and surge, and kubectl drain -l; the tables have the medians")
	flags.IntVar(&o.parallel, "parallel", 30, "calls that the requester, and the bare client, have in flight; the controller evicts 30 pods at a time")
	flags.IntVar(&o.nodes, "nodes", 10, "simulated nodes")
	flags.DurationVar(&o.idleTime, "idle-time", time.Minute, "how long it is measured what is done while nothing happens")
	flags.DurationVar(&o.timeout, "timeout", time.Hour, "bound of the whole benchmark")
	flags.StringVar(&o.bin, "bin", "_output/bin", "directory of the binaries to measure")
	flags.StringVar(&o.base, "base", "_output/base/bin", "directory of the binaries of the pristine base")
	flags.StringVar(&o.output, "output", "_output", "directory for the cluster; results go into bench in it")
	flags.BoolVar(&o.enforce, "enforce", true, "fail if a target is missed")
	flags.Var(&o.args, "arg", "a further flag of a component, component:flag=value, to see what it changes; can be repeated")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: bench takes only flags", flags.Arg(0))
	}
	return o, o.check()
}

// maxPods is what one PodDisruptionBudget can have on their way out: the API server
// refuses further evictions.
const maxPods = 2000

// maxSurge and maxSurgeReplicas are what the nodes have room for, 110 pods each.
const (
	maxSurge         = 400
	maxSurgeReplicas = 1200
)

func (o *options) check() error {
	for _, bound := range []struct {
		name            string
		value, min, max int
	}{
		{"pods", o.pods, 1, maxPods},
		{"drain-pods", o.drainPods, 1, maxPods},
		{"idle", o.idle, 0, 100000},
		{"runs", o.runs, 1, 100},
		{"parallel", o.parallel, 1, 1000},
		{"nodes", o.nodes, 1, 1000},
		{"scale-nodes", o.scaleNodes, 0, 100000},
		{"surge", o.surge, 0, maxSurge},
		{"surge-replicas", o.surgeReplicas, 0, maxSurgeReplicas},
	} {
		if bound.value < bound.min || bound.value > bound.max {
			return fmt.Errorf("--%s is %d: give %d to %d", bound.name, bound.value, bound.min, bound.max)
		}
	}
	if o.idleTime < time.Second {
		return fmt.Errorf("--idle-time is %s: give at least 1s", o.idleTime)
	}
	var err error
	for _, dir := range []*string{&o.bin, &o.base, &o.output} {
		abs, absErr := filepath.Abs(*dir)
		*dir, err = abs, errors.Join(err, absErr)
	}
	return err
}

// resultsDir is where results and the audit log are.
func (o *options) resultsDir() string { return filepath.Join(o.output, "bench") }

func run(ctx context.Context, opts options) error {
	ctx, cancel := context.WithTimeoutCause(ctx, opts.timeout, fmt.Errorf("not done after --timeout=%s", opts.timeout))
	defer cancel()
	if err := os.MkdirAll(opts.resultsDir(), 0o755); err != nil {
		return fmt.Errorf("creating the directory of the results: %w", err)
	}
	unlock, err := lock(opts.resultsDir())
	if err != nil {
		return err
	}
	defer unlock()

	report, err := measure(ctx, opts)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("stopped: %w, in the middle of: %w", context.Cause(ctx), err)
		}
		return err
	}
	if err := report.writeTable(os.Stdout); err != nil {
		return err
	}
	file := filepath.Join(opts.resultsDir(), "eviction.json")
	if err := report.writeJSON(file); err != nil {
		return err
	}
	fmt.Printf("\nAll figures are in %s.\n", file)
	if missed := report.missed(); missed > 0 && opts.enforce {
		return fmt.Errorf("%d of %d targets missed: see the table above", missed, len(report.Targets))
	}
	return nil
}

// measurements is all that was measured.
type measurements struct {
	version string
	results []result
	idle    []idleResult
	scale   *scaleResult
	surge   *surgeResult
}

// measure measures the parts that were asked for, one after another.
func measure(ctx context.Context, opts options) (*report, error) {
	var m measurements
	if opts.parts.has(partEvictions) || opts.parts.has(partIdle) || opts.parts.has(partDrain) {
		if err := m.measureOnCluster(ctx, opts); err != nil {
			return nil, err
		}
	}
	if opts.parts.has(partScale) && opts.scaleNodes > 0 {
		var err error
		if m.scale, err = measureScale(ctx, opts); err != nil {
			return nil, err
		}
		m.version = m.scale.version
	}
	if opts.parts.has(partSurge) && opts.surge > 0 {
		var err error
		if m.surge, err = measureSurge(ctx, opts); err != nil {
			return nil, err
		}
		m.version = m.surge.version
	}
	return newReport(opts, m), nil
}

// measureOnCluster starts the cluster, measures on it what needs pods that become ready,
// and takes it down again.
func (m *measurements) measureOnCluster(ctx context.Context, opts options) (err error) {
	c, err := startCluster(ctx, opts, featureGates)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop(ctx)) }()
	m.version = c.version
	if opts.parts.has(partEvictions) {
		if m.results, err = c.measureEvictions(ctx); err != nil {
			return err
		}
	}
	if opts.parts.has(partIdle) {
		if m.idle, err = c.measureIdle(ctx); err != nil {
			return err
		}
	}
	if opts.parts.has(partDrain) {
		drains, err := c.measureDrains(ctx)
		if err != nil {
			return err
		}
		m.results = append(m.results, drains...)
	}
	return nil
}

// lock keeps a second benchmark from taking down the cluster of the first. The kernel
// drops the lock of a killed run.
func lock(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the benchmark: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w: another benchmark runs there, wait for its end or give another --output", f.Name(), err)
	}
	return func() { f.Close() }, nil
}
