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

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/test/utils/steps"
)

// options is what the caller can choose.
type options struct {
	parts                 []string
	pods, drainPods, idle int
	runs, parallel, nodes int
	lanePods              int
	scaleNodes            int
	surge, surgeReplicas  int
	massPods              int
	pickerSets            int
	fleetNodes, fleetPods int
	fleetAtOnce           int
	fleetDrains           int
	// audited are the rules of what the API server records, by default auditAll.
	audited           string
	idleTime, timeout time.Duration
	bin, base, output string
	enforce           bool
	// args are further flags of components, in the order in which they were given.
	args []string
	// flags has the values of all flags.
	flags map[string]string
}

// parts are measured in this order, and can be measured one by one. Each adds its tables to the report.
// One whose size is 0 is skipped.
var parts = []struct {
	name    string
	measure func(context.Context, options, *report)
	size    func(*options) int
}{
	{"evictions", measureEvictions, func(o *options) int { return o.pods }},
	{"lane", measureLane, func(o *options) int { return o.lanePods }},
	{"idle", measureIdle, func(o *options) int { return o.idle }},
	{"drain", measureDrains, func(o *options) int { return o.pods }},
	{"scale", measureScale, func(o *options) int { return o.scaleNodes }},
	{"surge", measureSurge, func(o *options) int { return o.surge }},
	{"mass", measureMass, func(o *options) int { return o.massPods }},
	{"podpicker", measurePodPicker, func(o *options) int { return o.pickerSets }},
	{"fleet", measureFleet, func(o *options) int { return o.fleetNodes }},
}

func allParts() []string {
	var names []string
	for _, part := range parts {
		names = append(names, part.name)
	}
	return names
}

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
	o := options{flags: map[string]string{}}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	list := flags.String("parts", strings.Join(allParts(), ","), "parts to run, separated by commas")
	for _, n := range o.numbers() {
		flags.IntVar(n.to, n.name, n.value, n.usage)
	}
	flags.DurationVar(&o.idleTime, "idle-time", time.Minute, "duration of the measurement of an idle cluster")
	flags.DurationVar(&o.timeout, "timeout", 4*time.Hour, "maximum duration of the whole benchmark")
	flags.StringVar(&o.bin, "bin", "_output/bin", "directory of the binaries to measure")
	flags.StringVar(&o.base, "base", "_output/base/bin", "directory of the binaries of the pristine base")
	flags.StringVar(&o.output, "output", "_output", "directory for the cluster; results go into bench in it")
	flags.BoolVar(&o.enforce, "enforce", true, "fail if a target is missed")
	flags.Func("arg", "a further flag of a component, component:flag=value, to see what it changes; can be repeated", func(arg string) error {
		o.args = append(o.args, arg) // test/utils/localcluster checks it.
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: bench takes only flags", flags.Arg(0))
	}
	flags.VisitAll(func(f *flag.Flag) { o.flags[f.Name] = f.Value.String() })
	o.flags["arg"] = strings.Join(o.args, " ")
	o.parts = strings.Split(*list, ",")
	return o, o.check()
}

// maxPods is how many disruptions one PodDisruptionBudget can record at a time: the API server
// refuses further evictions.
const maxPods = 2000

// maxSurge and maxSurgeReplicas are what the nodes have room for, 110 pods each.
const (
	maxSurge         = 400
	maxSurgeReplicas = 1200
)

// number is a flag with an integer.
type number struct {
	to              *int
	name            string
	value, min, max int
	usage           string
}

func (o *options) numbers() []number {
	return []number{
		{&o.pods, "pods", 500, 1, maxPods, "pods that are evicted in each measurement, except by the drain of one node"},
		{&o.drainPods, "drain-pods", 100, 1, maxPods, "pods that kubectl drain evicts from one node in each measurement, about 5 each second"},
		{&o.lanePods, "lane-pods", 2000, 0, 4000, "pods that are evicted with 64 calls in flight; 0 skips the comparison of API servers without and with EvictionLane"},
		{&o.idle, "idle", 1000, 0, 100000, "requests that wait while writes are counted; 0 skips this part"},
		{&o.scaleNodes, "scale-nodes", 5000, 0, 100000, "nodes of the cluster with many nodes; 0 skips this part"},
		{&o.surge, "surge", 200, 0, maxSurge, "Deployments with one replica whose pods are moved; 0 skips this part"},
		{&o.surgeReplicas, "surge-replicas", 1000, 0, maxSurgeReplicas, "replicas of the one Deployment a quarter of whose pods is moved; 0 leaves it out"},
		{&o.massPods, "mass-pods", 150000, 0, 300000, "pods on nodes of 30 each that one maintenance drains; 0 skips this part"},
		{&o.pickerSets, "picker-sets", 1000, 0, 2000, "ReplicaSets that are scaled down with and without a downscale pod picker; 0 skips this part"},
		{&o.fleetNodes, "fleet-nodes", 5000, 0, 20000, "nodes that are drained so many at a time, and given back; 0 skips this part"},
		{&o.fleetPods, "fleet-pods", 30, 1, 100, "pods on each of them"},
		{&o.fleetAtOnce, "fleet-at-once", 20, 1, 1000, "how many of them are drained at a time"},
		{&o.fleetDrains, "fleet-drains", 200, 1, 20000, "how many of them kubectl drain drains, at most: it takes longer"},
		{&o.runs, "runs", 5, 1, 100, "how often everything is measured, except idle, scale, surge, mass and fleet, and kubectl drain -l; the tables have the medians"},
		{&o.parallel, "parallel", 30, 1, 1000, "calls that the requester, and the bare client, have in flight; the controller evicts 30 pods at a time"},
		{&o.nodes, "nodes", 10, 1, 1000, "simulated nodes"},
	}
}

func (o *options) check() error {
	for _, name := range o.parts {
		if !slices.Contains(allParts(), name) {
			return fmt.Errorf("--parts has %q: the parts are %s", name, strings.Join(allParts(), ","))
		}
	}
	for _, n := range o.numbers() {
		if *n.to < n.min || *n.to > n.max {
			return fmt.Errorf("--%s is %d, must be %d to %d", n.name, *n.to, n.min, n.max)
		}
	}
	if o.idleTime < time.Second {
		return fmt.Errorf("--idle-time is %s, must be at least 1s", o.idleTime)
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

	r := &report{Processors: runtime.NumCPU(), Parameters: opts.flags}
	for _, part := range parts {
		if !slices.Contains(opts.parts, part.name) || part.size(&opts) == 0 {
			continue
		}
		if err := steps.Attempt(func() { part.measure(ctx, opts, r) }); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("stopped: %w, in the middle of: %w", context.Cause(ctx), err)
			}
			return err
		}
	}
	if err := r.write(os.Stdout); err != nil {
		return err
	}
	file := filepath.Join(opts.resultsDir(), "eviction.json")
	if err := r.writeJSON(file); err != nil {
		return err
	}
	fmt.Printf("\nAll figures are in %s.\n", file)
	if targets, missed := r.targets(); missed > 0 && opts.enforce {
		return fmt.Errorf("%d of %d targets missed: see the table above", missed, len(targets))
	}
	return nil
}

// lock keeps a second benchmark from taking down the cluster of the first. The kernel drops the
// lock of a killed run.
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
