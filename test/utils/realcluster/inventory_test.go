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
	"bytes"
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
)

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
	// Without the modules of the kernel there is nothing to list.
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
		"/usr/libexec/kubernetes", "/tmp/kubelet-*", "/tmp/containerd*", cgroupMount + cgroupOf(c.Local.Dir()), cgroupMount + "/*" + cgroupOf(c.Local.Dir()), cgroupMount + "/*/k8s.io",
		cgroupMount + "/*/kubepods",
		// Of hack/local-up-cluster.sh.
		"/run/kubernetes", "/var/run/kubernetes", "/opt/cni", "/etc/cni", "/tmp/local-up-cluster.sh.*",
	} {
		files, err := filepath.Glob(pattern)
		add(pattern, files, err)
	}
	// That of all clusters belongs to another one, or is left.
	for _, pattern := range []string{cgroupMount + "/" + cgroupParent, cgroupMount + "/*/" + cgroupParent} {
		parents, err := filepath.Glob(pattern)
		add(pattern, slices.DeleteFunc(parents, func(parent string) bool {
			clusters, _ := filepath.Glob(parent + "/*/cgroup.procs")
			return len(clusters) > 0
		}), err)
	}
	add("processes", processesOf(t, c), nil)
	return i
}

// withoutComments returns the rules: comments have the time, and counters change.
func withoutComments(rules string) []string {
	return slices.DeleteFunc(strings.Split(rules, "\n"), func(line string) bool { return !strings.HasPrefix(line, "-A") })
}

// processesOf returns the processes that have the directory of the cluster on their command lines or
// in their environments, and those in its cgroups. Other clusters may run beside it.
func processesOf(t *testing.T, c *Cluster) []string {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, process := range processes {
		var all []byte
		for _, file := range []string{"cmdline", "environ", "cgroup"} {
			data, _ := os.ReadFile(filepath.Join(process, file)) // It may have ended.
			all = append(append(all, data...), 0)
		}
		if pid := filepath.Base(process); pid != strconv.Itoa(os.Getpid()) && (bytes.Contains(all, []byte(c.Local.Dir())) || bytes.Contains(all, []byte(cgroupOf(c.Local.Dir())))) {
			found = append(found, fmt.Sprintf("%s %q", pid, all))
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
