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

// Command e2e runs upstream's end-to-end tests on clusters with real nodes, see
// test/utils/realcluster: with the feature gates of the fork on, with them off, and on the pristine
// base. All three run the same tests.
//
// # Reading order
//
//	main.go         flags, and one run per mode
//	selection.yaml  which tests run, and why others do not
//	selection.go    reads it, and applies it to the tests that the programs have
//	suites.go       the two programs with tests, their clusters, and how they are run
//	node.go         what the tests ask for: images, built here, and systemd, to restart the kubelet
//	report.go       what the tests did: JUnit, and one line
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/ginkgo/v2/types"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/kubernetes/test/utils/steps"
)

// options is what the caller can choose.
type options struct {
	// bin is the directory of our programs, base that of the pristine base, tree that of our source,
	// output that for results, images and clusters.
	bin, base, tree, output string
	modes                   []mode
	procs                   int
	// focus narrows the selection for those who look for the cause of a failure.
	focus *regexp.Regexp
}

// mode is what the tests run on.
type mode struct {
	name     string
	settings localcluster.Settings
	// pristine says that the programs are those of the base.
	pristine bool
}

// modes run in this order.
var modes = []mode{
	{name: "on", settings: localcluster.DefaultSettings},
	{name: "off"},
	{name: "base", pristine: true},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	// The client library logs errors that it returns as well.
	klog.SetLogger(logr.Discard())
	err := run(ctx, filepath.Base(os.Args[0]), os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, program string, args []string) error {
	if program == sudo {
		return runSystemctl(ctx, args)
	}
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	return steps.Attempt(func() {
		suites := findSuites(ctx, o)
		makeImages(ctx, o)
		failed := 0
		for _, m := range o.modes {
			steps.Check(steps.Attempt(func() { failed += runMode(ctx, o, m, suites[m.name]) }), "mode ", m.name)
		}
		if failed > 0 {
			steps.Check(fmt.Errorf("%d tests failed: results and logs are in %s", failed, o.output))
		}
	})
}

func parseOptions(args []string) (options, error) {
	o := options{focus: &regexp.Regexp{}}
	flags := flag.NewFlagSet("e2e", flag.ContinueOnError)
	output := flags.String("output", "_output", "directory with the programs; results go into e2e in it")
	chosen := flags.String("mode", "", "on, off or base: the gates of the fork on, off, or the pristine base (default all of them)")
	flags.TextVar(o.focus, "focus", regexp.MustCompile(""), "run only those of the selected tests whose names match")
	flags.IntVar(&o.procs, "procs", 6, "how many tests run at the same time; most of them wait")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: e2e takes only flags", flags.Arg(0))
	}
	for _, m := range modes {
		if *chosen == "" || *chosen == m.name {
			o.modes = append(o.modes, m)
		}
	}
	if len(o.modes) == 0 {
		return o, fmt.Errorf("--mode is %q, must be on, off or base", *chosen)
	}
	if o.procs < 1 {
		return o, fmt.Errorf("--procs is %d, must be at least 1", o.procs)
	}
	absolute, err := filepath.Abs(*output)
	o.bin, o.base = filepath.Join(absolute, "bin"), filepath.Join(absolute, "base", "bin")
	o.tree, o.output = filepath.Join(absolute, "kubernetes"), filepath.Join(absolute, "e2e")
	return o, err
}

// runMode runs all suites in a mode, writes what they did, and returns how many tests failed. They run at
// the same time: in each, some tests run alone.
func runMode(ctx context.Context, o options, m mode, suites []*suite) int {
	results := filepath.Join(o.output, m.name)
	steps.Check(os.RemoveAll(results), "remove the results of an earlier run")
	start := time.Now()
	reports := make([]types.Report, len(suites))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, s := range suites {
		fmt.Printf("e2e %s: %d tests of %s, log in %s\n", m.name, len(s.selected), s.Program, s.log(results))
		group.Go(func() error {
			return steps.Attempt(func() { reports[i] = runSuite(groupCtx, o, m, s, results) })
		})
	}
	steps.Check(group.Wait())
	steps.Check(writeJUnit(reports, results), "write the results")
	var all types.Report
	for _, report := range reports {
		all = all.Add(report)
	}
	for _, name := range retried(all) {
		fmt.Printf("e2e %s: passed at another attempt: %s\n", m.name, name)
	}
	failed := failures(all)
	for _, failure := range failed {
		fmt.Printf("e2e %s: FAILED: %s\n", m.name, failure)
	}
	fmt.Printf("e2e %s: %s, %s\n", m.name, totals(all), time.Since(start).Round(time.Second))
	return len(failed)
}
