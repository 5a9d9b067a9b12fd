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

package realcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/localcluster"
)

// outputVariable names the directory with the programs and images.
const outputVariable = "REAL_CLUSTER_OUTPUT"

// settleTimeout is how long the kernel may take to end what a killed process has left, and a start
// or a pod on a busy machine.
const settleTimeout = 3 * time.Minute

// TestNodesLeaveNothing ends clusters in all ways that there are. Afterwards the machine must be as
// it was. Cgroups may need the next down, where the supervisor was killed.
func TestNodesLeaveNothing(t *testing.T) {
	for name, test := range map[string]struct {
		// during is the moment of the start at which end is called: nil means after the start.
		during func(c *Cluster) bool
		// end ends the cluster, or the program that starts it.
		end func(t *testing.T, c *Cluster, program *exec.Cmd)
		// needsDown says that something is left that down removes.
		needsDown bool
	}{
		"down":                     {end: func(*testing.T, *Cluster, *exec.Cmd) {}, needsDown: true},
		"the sandbox is killed":    {end: killProcess(sandboxLock)},
		"the supervisor is killed": {end: killProcess(supervisorLock), needsDown: true},
		"etcd is killed":           {end: killEtcd},
		"the directory is removed": {end: removeDirectory},

		"interrupted early":                       {during: supervised, end: signalProgram(unix.SIGINT)},
		"killed early":                            {during: supervised, end: signalProgram(unix.SIGKILL)},
		"terminated when the API server starts":   {during: apiServerStarts, end: signalProgram(unix.SIGTERM)},
		"killed when the API server starts":       {during: apiServerStarts, end: signalProgram(unix.SIGKILL)},
		"interrupted when the kubelet runs":       {during: kubeletRuns, end: signalProgram(unix.SIGINT)},
		"killed when the kubelet runs":            {during: kubeletRuns, end: signalProgram(unix.SIGKILL)},
		"the sandbox is killed during a start":    {during: apiServerStarts, end: killProcess(sandboxLock)},
		"the supervisor is killed during a start": {during: kubeletRuns, end: killProcess(supervisorLock), needsDown: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster(t)
			before := takeInventory(t, c)
			program := c.program("up-real")
			if err := program.Start(); err != nil {
				t.Fatal(err)
			}
			if test.during == nil {
				if err := program.Wait(); err != nil {
					t.Fatalf("up-real: %v", err)
				}
				runPod(t, c)
				test.end(t, c, program)
			} else {
				await(t, "this moment of the start", func() bool { return test.during(c) })
				test.end(t, c, program)
				_ = program.Wait() // It was interrupted.
			}
			if test.needsDown {
				if output, err := c.program("down-real").CombinedOutput(); err != nil {
					t.Fatalf("down-real: %v: %s", err, output)
				}
			}
			awaitInventory(t, c, before)
		})
	}
}

// A cluster that was killed must not be in the way of the next one.
func TestNodesStartAfterKill(t *testing.T) {
	c := newTestCluster(t)
	before := takeInventory(t, c)
	for range 2 {
		if output, err := c.program("up-real").CombinedOutput(); err != nil {
			t.Fatalf("up-real: %v: %s", err, output)
		}
		runPod(t, c)
		kill(t, c, supervisorLock)
	}
	if err := c.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitInventory(t, c, before)
}

func newTestCluster(t *testing.T) *Cluster {
	t.Helper()
	return newTestClusterIn(t, os.Getenv(outputVariable))
}

func newTestClusterIn(t *testing.T, output string) *Cluster {
	t.Helper()
	return newNamedTestClusterIn(t, "test-real", output)
}

// newNamedTestCluster is for a cluster that runs beside others.
func newNamedTestCluster(t *testing.T, name string) *Cluster {
	t.Helper()
	return newNamedTestClusterIn(t, name, os.Getenv(outputVariable))
}

func newNamedTestClusterIn(t *testing.T, name, output string) *Cluster {
	t.Helper()
	if os.Getenv(outputVariable) == "" {
		t.Skipf("%s is not set: run it with make test-node", outputVariable)
	}
	c := &Cluster{Local: &localcluster.Cluster{Name: name, Output: output, Bin: filepath.Join(output, "bin"), Nodes: 1}}
	// Of an earlier run. It also makes the paths of the cluster absolute.
	if err := c.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			keepLogs(t, c)
		}
		if err := c.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// keepLogs copies the logs of the cluster and what its API server has to where they outlive the test.
func keepLogs(t *testing.T, c *Cluster) {
	t.Helper()
	dir := filepath.Join(os.Getenv(outputVariable), "test", strings.ReplaceAll(t.Name(), "/", "-")+"-logs")
	if err := c.Local.KeepLogs(dir); err != nil {
		t.Errorf("the logs are not kept: %v", err)
		return
	}
	kubectl := exec.Command(filepath.Join(c.Local.Bin, "kubectl"), "--kubeconfig", c.Local.Kubeconfig(), "--request-timeout", "10s",
		"get", "nodemaintenances,evictionrequests,nodes,pods,events", "--all-namespaces", "--output", "yaml", "--show-managed-fields")
	objects, err := kubectl.CombinedOutput()
	if err != nil {
		objects = fmt.Appendf(objects, "%v\n", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "objects.yaml"), objects, 0o644); err != nil {
		t.Error(err)
	}
	t.Logf("the logs are kept in %s", dir)
}

// program is the command on the cluster. Its output must be a file: a process that is left would
// keep a pipe open, and the test waiting.
func (c *Cluster) program(command string, flags ...string) *exec.Cmd {
	args := []string{command, "--name", c.Local.Name, "--output", c.Local.Output}
	if command == "up-real" {
		args = append(args, "--nodes", strconv.Itoa(c.Local.Nodes), "--timeout", "5m")
	}
	return exec.Command(filepath.Join(c.Local.Bin, "cluster"), append(args, flags...)...)
}

// supervised reports whether the supervisor runs.
func supervised(c *Cluster) bool {
	pid, err := c.Process(supervisorLock)
	return err == nil && pid != 0
}

// apiServerStarts reports whether there is a log of the API server.
func apiServerStarts(c *Cluster) bool {
	return exists(filepath.Join(c.Local.Logs(), controlplane.APIServer+".log"))
}

// kubeletRuns reports whether the kubelet has created the first cgroup.
func kubeletRuns(c *Cluster) bool {
	found, err := filepath.Glob(cgroupMount + "/*" + cgroupOf(c.Local.Dir()) + "/*/kubepods")
	version2 := exists(filepath.Join(cgroupMount, cgroupOf(c.Local.Dir()), nodeName(0), "kubepods"))
	return err == nil && (len(found) > 0 || version2)
}

func await(t *testing.T, what string, check func() bool) {
	t.Helper()
	for start := time.Now(); !check(); time.Sleep(pollInterval) {
		if time.Since(start) > settleTimeout {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func kill(t *testing.T, c *Cluster, process string) {
	t.Helper()
	pid, err := c.Process(process)
	if err == nil && pid == 0 {
		err = errors.New("it does not run")
	}
	if err == nil {
		err = unix.Kill(pid, unix.SIGKILL)
	}
	if err != nil {
		t.Fatalf("killing the %s: %v", process, err)
	}
}

func killProcess(process string) func(*testing.T, *Cluster, *exec.Cmd) {
	return func(t *testing.T, c *Cluster, _ *exec.Cmd) {
		t.Helper()
		kill(t, c, process)
	}
}

// killEtcd ends a component of the control plane: the cluster ends with it.
func killEtcd(t *testing.T, c *Cluster, _ *exec.Cmd) {
	t.Helper()
	if err := c.SignalControlPlane(controlplane.Etcd, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// removeDirectory does what "git clean" does. etcd would end when it misses its files.
func removeDirectory(t *testing.T, c *Cluster, _ *exec.Cmd) {
	t.Helper()
	if err := c.SignalControlPlane(controlplane.Etcd, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// The programs of the cluster still write into it.
	await(t, "the directory to be gone", func() bool { return os.RemoveAll(c.Local.Dir()) == nil })
}

func signalProgram(signal unix.Signal) func(*testing.T, *Cluster, *exec.Cmd) {
	return func(t *testing.T, _ *Cluster, program *exec.Cmd) {
		t.Helper()
		if err := program.Process.Signal(signal); err != nil {
			t.Fatalf("the start is over already: %v", err)
		}
	}
}

// runPod creates a pod and waits until it runs: it has cgroups, mounts and a network.
func runPod(t *testing.T, c *Cluster, changes ...func(*v1.Pod)) {
	t.Helper()
	client, _, err := c.Local.Client()
	if err != nil {
		t.Fatal(err)
	}
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: WorkloadImage, ImagePullPolicy: v1.PullNever}}},
	}
	for _, change := range changes {
		change(pod)
	}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the pod to run", func() bool {
		pod, err := pods.Get(t.Context(), "pod", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == v1.PodRunning
	})
}
