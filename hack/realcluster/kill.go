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
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/kubernetes/hack/controlplane"
)

// KillKubelet kills the kubelet of a node, as a crash does. Pods continue to run, and the node
// starts the kubelet again after a second.
func (c *Cluster) KillKubelet(node string) error {
	process, err := c.findKubelet(node)
	if err != nil {
		return err
	}
	defer process.Release()
	if err := process.Signal(unix.SIGKILL); err != nil {
		return fmt.Errorf("kill the kubelet of %s: %w", node, err)
	}
	return nil
}

// findKubelet finds the kubelet by its kubeconfig, which no other process is given.
func (c *Cluster) findKubelet(node string) (*os.Process, error) {
	kubeconfig := "--kubeconfig=" + controlplane.UserKubeconfig(c.Local.Dir(), node)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		var pid int
		if _, err := fmt.Sscanf(entry.Name(), "%d", &pid); err != nil {
			continue
		}
		// The handle keeps the process apart from another one that gets its pid.
		process, err := os.FindProcess(pid)
		if err != nil {
			continue // It has ended.
		}
		command, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		args := strings.Split(string(command), "\x00")
		if err == nil && filepath.Base(args[0]) == "kubelet" && slices.Contains(args, kubeconfig) {
			return process, nil
		}
		process.Release()
	}
	return nil, fmt.Errorf("the kubelet of %s does not run", node)
}
