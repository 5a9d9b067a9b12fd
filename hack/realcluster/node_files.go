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
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/kubernetes/hack/controlplane"
)

// replacedDirectories are those of the host into which a node would write, at paths that cannot be
// configured. A node has empty ones, in memory.
var replacedDirectories = []string{"/run", "/var/lib", "/var/log"}

// kubeletSysctls are those that the kubelet sets for the whole machine.
var kubeletSysctls = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// setUpFiles prepares the file system of the node, in the mount namespace of this process.
func (n *node) setUpFiles() error {
	// The kubelet propagates mounts into pods.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("make mounts shared: %w", err)
	}
	for _, directory := range replacedDirectories {
		if err := unix.Mount("tmpfs", directory, "tmpfs", 0, "mode=0755"); err != nil {
			return fmt.Errorf("mount a file system in memory at %s: %w", directory, err)
		}
	}
	for _, directory := range []string{manifests(n.dir, n.name()), n.podLogs(), "/var/lib/kubelet", filepath.Join(n.state(), "cni")} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return fmt.Errorf("create a directory of the node: %w", err)
		}
	}
	if err := errors.Join(n.hideSysctls(), createCgroup(cgroupMount, n.cgroup())); err != nil {
		return err
	}
	for file, content := range map[string]string{
		"containerd.toml":     n.containerdConfig(),
		"cni/10-ptp.conflist": n.cniConfig(),
		"kubelet.yaml":        n.kubeletConfig(),
		"kube-proxy.yaml":     n.proxyConfig(),
	} {
		if err := os.WriteFile(filepath.Join(n.state(), file), []byte(content), 0o600); err != nil {
			return fmt.Errorf("configure the node: %w", err)
		}
	}
	return nil
}

// hideSysctls puts files with the same content over the sysctls that the kubelet would set for the
// whole machine.
func (n *node) hideSysctls() error {
	for _, name := range kubeletSysctls {
		sysctl := filepath.Join("/proc/sys", name)
		value, err := os.ReadFile(sysctl)
		if os.IsNotExist(err) {
			continue // The kernel was built without it.
		}
		if err != nil {
			return fmt.Errorf("read a sysctl: %w", err)
		}
		file := "/run/sysctl-" + strings.ReplaceAll(name, "/", ".")
		if err := os.WriteFile(file, value, 0o600); err != nil {
			return fmt.Errorf("copy a sysctl: %w", err)
		}
		if err := unix.Mount(file, sysctl, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("hide sysctl %s: %w", name, err)
		}
	}
	return nil
}

func (n *node) kubeconfig(user string) string { return controlplane.UserKubeconfig(n.dir, user) }

// cgroup is that of all pods of the node.
func (n *node) cgroup() string { return cgroupOf(n.dir) + "/" + n.name() }

// podLogs is the directory of the logs of containers, on the disk of the host.
func (n *node) podLogs() string { return filepath.Join(n.dir, "logs", n.name()+"-pods") }

// zones is the number of zones that the nodes are spread over, as in clusters of hack/localcluster.
const zones = 3

func zoneOf(index int) string { return fmt.Sprintf("zone-%c", 'a'+index%zones) }
