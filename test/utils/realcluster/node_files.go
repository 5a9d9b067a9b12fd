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

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
	"k8s.io/kubernetes/test/utils/controlplane"
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
	for _, directory := range []string{programDirectory(n.dir, n.name()), temporaryDirectory} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return fmt.Errorf("create a directory of the node: %w", err)
		}
	}
	for path, directory := range n.disk() {
		if err := bindDirectory(directory, path); err != nil {
			return err
		}
	}
	if err := errors.Join(n.hideSysctls(), newBootID(), createCgroup(cgroupMount, n.cgroup())); err != nil {
		return err
	}
	for path, content := range map[string]string{
		containerdConfigFile:              containerdConfig,
		cniDirectory + "/10-ptp.conflist": n.cniConfig(),
		proxyConfigFile:                   n.proxyConfig(),
	} {
		if err := writeConfig(path, content); err != nil {
			return err
		}
	}
	return n.setUpShutdowns()
}

// writeConfig writes a file that configures a component of the node.
func writeConfig(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create a directory of the node: %w", err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return fmt.Errorf("configure the node: %w", err)
	}
	return nil
}

// disk is what the node has on disk, by its path in the node: it outlives the processes of the
// node, and the kubelet cannot tell how much room there is in memory. The paths in the node are
// fixed, because containerd and the kubelet take only some of those that a user may choose.
func (n *node) disk() map[string]string {
	return map[string]string{
		"/var/lib/containerd": filepath.Join(n.state(), "containerd"),
		"/var/lib/kubelet":    kubeletDirectory(n.dir, n.name()),
		"/var/log/pods":       filepath.Join(n.dir, "logs", n.name()+"-pods"),
		manifestsDirectory:    manifests(n.dir, n.name()),
	}
}

// bindDirectory lets a directory appear at a path, too. It creates both.
func bindDirectory(directory, path string) error {
	for _, created := range []string{directory, path} {
		if err := os.MkdirAll(created, 0o755); err != nil {
			return fmt.Errorf("create a directory of the node: %w", err)
		}
	}
	if err := unix.Mount(directory, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", directory, path, err)
	}
	return nil
}

// newBootID gives the node the identity of a boot of its own: it boots when its processes start.
func newBootID() error {
	return replaceFile("/proc/sys/kernel/random/boot_id", []byte(uuid.NewString()+"\n"))
}

// replaceFile puts a file of the node over one of the machine.
func replaceFile(path string, content []byte) error {
	file := "/run/" + strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", ".")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return fmt.Errorf("write a file of the node: %w", err)
	}
	if err := unix.Mount(file, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", file, path, err)
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
		if err := replaceFile(sysctl, value); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) kubeconfig(user string) string { return controlplane.UserKubeconfig(n.dir, user) }

func (n *node) cgroup() string { return nodeCgroup(n.dir, n.name()) }

// zones is the number of zones that the nodes are spread over, as in clusters of localcluster.
const zones = 3

func zoneOf(index int) string { return fmt.Sprintf("zone-%c", 'a'+index%zones) }
