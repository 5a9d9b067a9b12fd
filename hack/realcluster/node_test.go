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
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/hack/localcluster"
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
		// during is the moment of the start at which the program that starts the cluster is to end:
		// nil means after the start.
		during func(c *Cluster) bool
		// end ends the cluster, or the program that starts it.
		end func(t *testing.T, c *Cluster, program *exec.Cmd)
		// needsDown says that something is left that down removes.
		needsDown bool
	}{
		"down": {end: func(t *testing.T, c *Cluster, _ *exec.Cmd) {}, needsDown: true},
		"the sandbox is killed": {end: func(t *testing.T, c *Cluster, _ *exec.Cmd) {
			kill(t, c, sandboxLock)
		}},
		"the supervisor is killed": {end: func(t *testing.T, c *Cluster, _ *exec.Cmd) {
			kill(t, c, supervisorLock)
		}, needsDown: true},
		"interrupt early": {during: supervised, end: func(t *testing.T, _ *Cluster, program *exec.Cmd) {
			signal(t, program, unix.SIGINT)
		}},
		"interrupt when the kubelet runs": {during: kubeletRuns, end: func(t *testing.T, _ *Cluster, program *exec.Cmd) {
			signal(t, program, unix.SIGINT)
		}},
		"the program is killed when the kubelet runs": {during: kubeletRuns, end: func(t *testing.T, _ *Cluster, program *exec.Cmd) {
			signal(t, program, unix.SIGKILL)
		}},
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
	output := os.Getenv(outputVariable)
	if output == "" {
		t.Skipf("%s is not set: run it with make test-node", outputVariable)
	}
	c := &Cluster{Local: &localcluster.Cluster{Name: "test-real", Output: output, Bin: filepath.Join(output, "bin"), Nodes: 1}}
	// Of an earlier run. It also makes the paths of the cluster absolute.
	if err := c.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// program is the command on the cluster. Its output must be a file: a process that is left would
// keep a pipe open, and the test waiting.
func (c *Cluster) program(command string) *exec.Cmd {
	args := []string{command, "--name", c.Local.Name, "--output", c.Local.Output}
	if command == "up-real" {
		args = append(args, "--nodes", strconv.Itoa(c.Local.Nodes), "--timeout", "5m")
	}
	return exec.Command(filepath.Join(c.Local.Bin, "cluster"), args...)
}

// supervised reports whether the supervisor runs.
func supervised(c *Cluster) bool {
	pid, err := c.Process(supervisorLock)
	return err == nil && pid != 0
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

func signal(t *testing.T, program *exec.Cmd, signal unix.Signal) {
	t.Helper()
	if err := program.Process.Signal(signal); err != nil {
		t.Fatalf("the start is over already: %v", err)
	}
}

// runPod creates a pod and waits until it runs: it has cgroups, mounts and a network.
func runPod(t *testing.T, c *Cluster) {
	t.Helper()
	client, _, err := c.Local.Client()
	if err != nil {
		t.Fatal(err)
	}
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	_, err = pods.Create(t.Context(), &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: WorkloadImage, ImagePullPolicy: v1.PullNever}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the pod to run", func() bool {
		pod, err := pods.Get(t.Context(), "pod", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == v1.PodRunning
	})
}

// inventory is what a cluster could leave on a machine, by kind.
type inventory map[string][]string

func takeInventory(t *testing.T, c *Cluster) inventory {
	t.Helper()
	i := inventory{}
	add := func(kind string, found []string, err error) {
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		i[kind] = found
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	add("mounts", strings.Split(string(mounts), "\n"), err)
	// nft lists what iptables of either kind has made; without modules there is nothing to list.
	for _, command := range []string{"iptables-save", "iptables-legacy-save"} {
		rules, _ := exec.Command(command).Output()
		add(command, withoutComments(string(rules)), nil)
	}
	for _, sysctl := range kubeletSysctls {
		value, err := os.ReadFile(filepath.Join("/proc/sys", sysctl))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		add(sysctl, []string{string(value)}, err)
	}
	links, err := filepath.Glob("/sys/class/net/*")
	add("interfaces", links, err)
	for _, pattern := range []string{
		"/run/netns/*", "/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/var/log/containers", "/run/containerd", "/run/cni",
		"/usr/libexec/kubernetes", cgroupMount + "/" + cgroupParent, cgroupMount + "/*/" + cgroupParent, cgroupMount + "/*/k8s.io",
		cgroupMount + "/*/kubepods",
	} {
		files, err := filepath.Glob(pattern)
		add(pattern, files, err)
	}
	add("processes", processesOf(t, c), nil)
	return i
}

// withoutComments returns the rules: comments have the time, and counters change.
func withoutComments(rules string) []string {
	return slices.DeleteFunc(strings.Split(rules, "\n"), func(line string) bool { return !strings.HasPrefix(line, "-A") })
}

// processesOf returns the processes that were started from the directory of the cluster, or with it
// as an argument, and those of containers.
func processesOf(t *testing.T, c *Cluster) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		command, err := os.ReadFile(file)
		if err != nil {
			continue // It has ended.
		}
		line := strings.ReplaceAll(string(command), "\x00", " ")
		isContainer := strings.HasPrefix(line, "/workload ") || strings.Contains(line, "containerd-shim")
		if isContainer || strings.Contains(line, c.Local.Dir()) {
			found = append(found, fmt.Sprintf("%s %s", filepath.Base(filepath.Dir(file)), line))
		}
	}
	return found
}

// awaitInventory waits until the machine is as it was: the kernel removes namespaces a moment after
// their last process.
func awaitInventory(t *testing.T, c *Cluster, before inventory) {
	t.Helper()
	var left []string
	for start := time.Now(); time.Since(start) < settleTimeout; time.Sleep(pollInterval) {
		left = nil
		for kind, now := range takeInventory(t, c) {
			if !slices.Equal(now, before[kind]) {
				left = append(left, fmt.Sprintf("%s: %q, before %q", kind, now, before[kind]))
			}
		}
		if left == nil {
			return
		}
	}
	t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
}
