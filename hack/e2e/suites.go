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
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/onsi/ginkgo/v2/types"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/utils/realcluster"
)

const (
	// suiteTimeout is far more than a suite takes on two cores, 10 minutes.
	suiteTimeout = time.Hour

	// attempts is how often a test may run until it passes. Some of upstream's lose races on a busy
	// machine, on the base as well; what needs a second attempt is printed.
	attempts = 2

	// firstNode is the only one of the cluster in which the tests of a node run.
	firstNode = "node-0"

	// reportFile is what ginkgo writes into the directory of a suite.
	reportFile = "report.json"
)

// suite is a program with tests.
type suite struct {
	selection
	choice

	clusterSuffix string
	nodes         int
	// command returns the program that runs ginkgo, with the arguments before those of ginkgo, and
	// the arguments of the tests.
	command func(ctx context.Context, o options, c *realcluster.Cluster, client kubernetes.Interface, dir string) (before, after []string, err error)
}

// suitesByProgram are all programs that a selection can name.
var suitesByProgram = map[string]suite{
	"e2e":      {clusterSuffix: "cluster", nodes: 2, command: clusterCommand},
	"e2e_node": {clusterSuffix: "node", nodes: 1, command: nodeCommand},
}

func (s *suite) file(o options) string           { return filepath.Join(o.bin, s.Program+".test") }
func (s *suite) directory(results string) string { return filepath.Join(results, s.Program) }
func (s *suite) log(results string) string       { return filepath.Join(s.directory(results), "log") }

// findSuites reads the selections, asks the programs which tests they have, and returns the suites of each mode, by its
// name.
func findSuites(ctx context.Context, o options) (map[string][]*suite, error) {
	selections, err := readSelections(selectionFile)
	if err != nil {
		return nil, err
	}
	suites := map[string][]*suite{}
	for _, selection := range selections {
		s, found := suitesByProgram[selection.Program]
		if !found {
			return nil, fmt.Errorf("the selection of tests: there is no program %q", selection.Program)
		}
		s.selection = selection
		tests, err := s.tests(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, m := range o.modes {
			inMode := s
			if inMode.choice, err = s.choose(tests, m.name); err != nil {
				return nil, err
			}
			if inMode.choice = inMode.narrow(o.focus); len(inMode.selected) > 0 {
				suites[m.name] = append(suites[m.name], &inMode)
			}
		}
	}
	if len(suites) == 0 {
		return nil, fmt.Errorf("--focus is %q, which matches no selected test", o.focus)
	}
	return suites, nil
}

// tests are the names of all tests of the program.
func (s *suite) tests(ctx context.Context, o options) ([]string, error) {
	// The program creates directories.
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		return nil, fmt.Errorf("create a directory: %w", err)
	}
	defer os.RemoveAll(dir)
	list := exec.CommandContext(ctx, s.file(o), "--ginkgo.dry-run", "--ginkgo.json-report="+filepath.Join(dir, reportFile))
	list.Dir = dir
	if output, err := list.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w: %s", s.Program, err, output)
	}
	report, err := readReport(filepath.Join(dir, reportFile))
	return testNames(report), err
}

// runSuite runs the selected tests on a cluster of their own.
func runSuite(ctx context.Context, o options, m mode, s *suite, results string) (types.Report, error) {
	dir := s.directory(results)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return types.Report{}, fmt.Errorf("create the directory of a suite: %w", err)
	}
	var report types.Report
	c := newCluster(o, m, s)
	err := withCluster(ctx, c, filepath.Join(dir, "cluster"), func(client kubernetes.Interface) (bool, error) {
		if err := s.run(ctx, o, c, client, results); err != nil {
			return false, err
		}
		all, err := readReport(filepath.Join(dir, reportFile))
		if err != nil {
			return false, err
		}
		report, err = s.judge(all)
		return err == nil && count(report).failed == 0, err
	})
	return report, err
}

// run runs ginkgo, which runs several processes of the program with the tests. It returns no error
// for tests that fail.
func (s *suite) run(ctx context.Context, o options, c *realcluster.Cluster, client kubernetes.Interface, results string) error {
	dir := s.directory(results)
	before, after, err := s.command(ctx, o, c, client, dir)
	if err != nil {
		return err
	}
	args := append(before, filepath.Join(o.bin, "ginkgo"), "run", "--no-color", "--silence-skips",
		"--procs="+strconv.Itoa(o.procs), "--timeout="+suiteTimeout.String(), "--flake-attempts="+strconv.Itoa(attempts), "--focus="+s.expression(),
		"--output-dir="+dir, "--json-report="+reportFile, s.file(o), "--")
	args = append(args, after...)
	log, err := os.Create(s.log(results))
	if err != nil {
		return fmt.Errorf("create the log of the tests: %w", err)
	}
	defer log.Close()
	tests := exec.CommandContext(ctx, args[0], args[1:]...)
	tests.Dir, tests.Stdout, tests.Stderr = dir, log, log
	// All processes at once: what tests would clean up goes with the cluster.
	tests.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	tests.Cancel = func() error { return unix.Kill(-tests.Process.Pid, unix.SIGKILL) }
	err = tests.Run()
	var failed *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &failed) {
		return fmt.Errorf("run %s: %w", s.Program, err)
	}
	return nil
}

// clusterCommand runs the tests of a cluster.
func clusterCommand(_ context.Context, o options, c *realcluster.Cluster, _ kubernetes.Interface, _ string) (before, after []string, err error) {
	return nil, []string{
		"--provider=skeleton", "--kubeconfig=" + c.Local.Kubeconfig(), "--kubectl-path=" + c.Local.Kubectl(),
		"--num-nodes=" + strconv.Itoa(c.Local.Nodes),
	}, nil
}

// nodeCommand runs the tests of a node in the namespaces of the node: they write manifests of static
// pods, and read what the kubelet has on its disk.
func nodeCommand(ctx context.Context, o options, c *realcluster.Cluster, client kubernetes.Interface, dir string) (before, after []string, err error) {
	token, err := createToken(ctx, client)
	if err != nil {
		return nil, nil, err
	}
	url, err := apiServer(ctx, client)
	if err != nil {
		return nil, nil, err
	}
	pid, err := c.Process(firstNode)
	if err != nil {
		return nil, nil, err
	}
	variables, err := systemctlVariables(o, c, dir)
	if err != nil {
		return nil, nil, err
	}
	before = append([]string{"nsenter", "--target", strconv.Itoa(pid), "--mount", "--pid", "--net", "--uts", "--ipc", "env", "--chdir=" + dir}, variables...)
	return before, []string{
		"--start-services=false", "--stop-services=false", "--prepull-images=false",
		"--host=" + url, "--bearer-token=" + token, "--node-name=" + firstNode,
		"--container-runtime-endpoint=unix:///run/containerd/containerd.sock",
	}, nil
}

func readReport(path string) (types.Report, error) {
	var reports []types.Report
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &reports)
	}
	if err != nil {
		return types.Report{}, fmt.Errorf("read the report of the tests: %w", err)
	}
	if len(reports) != 1 {
		return types.Report{}, fmt.Errorf("%s has %d reports, not one", path, len(reports))
	}
	return reports[0], nil
}
