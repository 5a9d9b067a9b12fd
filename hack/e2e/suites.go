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
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/kubernetes/test/utils/realcluster"
	"k8s.io/kubernetes/test/utils/steps"
	"k8s.io/utils/ptr"
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

	// provisioned is where the controller manager creates volumes. The path is a constant of its own.
	provisioned = "/tmp/hostpath_pv"

	// listTimeout is for a cluster whose tests have failed.
	listTimeout = 10 * time.Second
)

// suite is a program with tests.
type suite struct {
	selection
	choice

	clusterSuffix string
	nodes         int
	// command returns the program that runs ginkgo, with the arguments before those of ginkgo, and
	// the arguments of the tests.
	command func(ctx context.Context, o options, c *realcluster.Cluster, client kubernetes.Interface, dir string) (before, after []string)
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
func findSuites(ctx context.Context, o options) map[string][]*suite {
	suites := map[string][]*suite{}
	for _, selection := range steps.Must(readSelections(selectionFile)) {
		s, found := suitesByProgram[selection.Program]
		if !found {
			steps.Check(fmt.Errorf("the selection of tests: there is no program %q", selection.Program))
		}
		s.selection = selection
		tests := s.tests(ctx, o)
		for _, m := range o.modes {
			inMode := s
			inMode.choice = steps.Must(s.choose(tests, m.name)).narrow(o.focus)
			if len(inMode.selected) > 0 {
				suites[m.name] = append(suites[m.name], &inMode)
			}
		}
	}
	if len(suites) == 0 {
		steps.Check(fmt.Errorf("--focus is %q, which matches no selected test", o.focus))
	}
	return suites
}

// tests are the names of all tests of the program.
func (s *suite) tests(ctx context.Context, o options) []string {
	// The program creates directories.
	dir := steps.Must(os.MkdirTemp("", "e2e"))
	defer os.RemoveAll(dir)
	list := exec.CommandContext(ctx, s.file(o), "--ginkgo.dry-run", "--ginkgo.json-report="+filepath.Join(dir, reportFile))
	list.Dir = dir
	output, err := list.CombinedOutput()
	steps.Check(err, "list the tests of ", s.Program, ": ", string(output))
	return testNames(readReport(filepath.Join(dir, reportFile)))
}

// runSuite runs the selected tests on a cluster of their own, whose logs stay if not all have passed.
func runSuite(ctx context.Context, o options, m mode, s *suite, results string) (report types.Report) {
	dir := s.directory(results)
	steps.Check(os.MkdirAll(dir, 0o755))
	c := newCluster(o, m, s)
	steps.Check(c.Up(ctx))
	var volumes []string
	err := steps.Attempt(func() {
		client, _, err := c.Local.Client()
		steps.Check(err)
		createStorageClass(ctx, client)
		failure := steps.Attempt(func() {
			s.run(ctx, o, c, client, results)
			report = steps.Must(s.judge(readReport(filepath.Join(dir, reportFile))))
		})
		if failure != nil || len(failures(report)) > 0 {
			failure = errors.Join(failure, c.Local.KeepLogs(filepath.Join(dir, "cluster")))
		}
		steps.Check(errors.Join(failure, steps.Attempt(func() { volumes = findVolumes(ctx, client) })))
	})
	steps.Check(errors.Join(err, c.Down(ctx), removeVolumes(volumes)))
	return report
}

// run runs ginkgo, which runs several processes of the program with the tests. Tests that fail are no
// failure of it.
func (s *suite) run(ctx context.Context, o options, c *realcluster.Cluster, client kubernetes.Interface, results string) {
	dir := s.directory(results)
	before, after := s.command(ctx, o, c, client, dir)
	args := append(before, filepath.Join(o.bin, "ginkgo"), "run", "--no-color", "--silence-skips",
		"--procs="+strconv.Itoa(o.procs), "--timeout="+suiteTimeout.String(), "--flake-attempts="+strconv.Itoa(attempts), "--focus="+s.expression(),
		"--output-dir="+dir, "--json-report="+reportFile, s.file(o), "--")
	args = append(args, after...)
	log := steps.Must(os.Create(s.log(results)))
	defer log.Close()
	tests := exec.CommandContext(ctx, args[0], args[1:]...)
	tests.Dir, tests.Stdout, tests.Stderr = dir, log, log
	// All processes at once: what tests would clean up goes with the cluster.
	tests.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	tests.Cancel = func() error { return unix.Kill(-tests.Process.Pid, unix.SIGKILL) }
	err := tests.Run()
	var failed *exec.ExitError
	if ctx.Err() != nil || !errors.As(err, &failed) {
		steps.Check(err, "run ", s.Program)
	}
}

// clusterCommand runs the tests of a cluster.
func clusterCommand(_ context.Context, o options, c *realcluster.Cluster, _ kubernetes.Interface, _ string) (before, after []string) {
	return nil, []string{
		"--provider=skeleton", "--kubeconfig=" + c.Local.Kubeconfig(), "--kubectl-path=" + c.Local.Kubectl(),
		"--num-nodes=" + strconv.Itoa(c.Local.Nodes),
	}
}

// nodeCommand runs the tests of a node in the namespaces of the node: they write manifests of static
// pods, and read what the kubelet has on its disk. They take no kubeconfig but the token of the administrator.
func nodeCommand(ctx context.Context, o options, c *realcluster.Cluster, client kubernetes.Interface, dir string) (before, after []string) {
	token := steps.Must(c.Local.Config()).BearerToken
	service := steps.Must(client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{}))
	pid := steps.Must(c.Process(firstNode))
	before = append([]string{"nsenter", "--target", strconv.Itoa(pid), "--mount", "--pid", "--net", "--uts", "--ipc", "env", "--chdir=" + dir},
		systemctlVariables(o, c, dir)...)
	return before, []string{
		"--start-services=false", "--stop-services=false", "--prepull-images=false",
		"--host=https://" + service.Spec.ClusterIP, "--bearer-token=" + token, "--node-name=" + firstNode,
		"--container-runtime-endpoint=unix:///run/containerd/containerd.sock",
	}
}

func readReport(path string) types.Report {
	var reports []types.Report
	steps.Check(json.Unmarshal(steps.Must(os.ReadFile(path)), &reports), "read the report of the tests")
	if len(reports) != 1 {
		steps.Check(fmt.Errorf("%s has %d reports, not one", path, len(reports)))
	}
	return reports[0]
}

// newCluster returns the cluster for a suite.
func newCluster(o options, m mode, s *suite) *realcluster.Cluster {
	settings := m.settings
	// Tests of StatefulSets need volumes.
	settings.Args = append(settings.Args, "kube-controller-manager:enable-hostpath-provisioner=true")
	return &realcluster.Cluster{Local: &localcluster.Cluster{
		Name: m.name + "-" + s.clusterSuffix, Output: o.output, Bin: o.programs(m), Nodes: s.nodes, Settings: &settings,
	}}
}

// programs is the directory of the components.
func (o options) programs(m mode) string {
	if m.pristine {
		return o.base
	}
	return o.bin
}

// findVolumes returns the directories that tests have left: those of tests that were interrupted, or
// whose namespaces are not empty yet.
func findVolumes(ctx context.Context, client kubernetes.Interface) (directories []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listTimeout)
	defer cancel()
	volumes, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	steps.Check(err, "list the volumes that tests have left")
	for _, volume := range volumes.Items {
		if source := volume.Spec.HostPath; source != nil && filepath.Dir(source.Path) == provisioned {
			directories = append(directories, source.Path)
		}
	}
	return directories
}

// removeVolumes removes directories of a cluster that has ended, and the one that they were in
// unless another cluster uses it.
func removeVolumes(directories []string) error {
	var errs []error
	for _, directory := range directories {
		errs = append(errs, os.RemoveAll(directory))
	}
	err := unix.Rmdir(provisioned)
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTEMPTY) {
		errs = append(errs, fmt.Errorf("remove %s: %w", provisioned, err))
	}
	return errors.Join(errs...)
}

// createStorageClass lets claims without a class get a directory of the machine, which all nodes
// share.
func createStorageClass(ctx context.Context, client kubernetes.Interface) {
	_, err := client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta:    metav1.ObjectMeta{Name: "host-path", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner:   "kubernetes.io/host-path",
		ReclaimPolicy: ptr.To(v1.PersistentVolumeReclaimDelete),
	}, metav1.CreateOptions{})
	steps.Check(err, "create the default storage class")
}
