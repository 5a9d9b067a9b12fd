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
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/utils/controlplane"
)

// What happens to nodes and control planes. A test gives the time for it by a context, and waits
// until the API server knows.

// kubelet is the program.
const kubelet = "kubelet"

// programDirectory has links to the programs of a node: each runs from a path of its own.
func programDirectory(dir, node string) string { return filepath.Join(dir, "nodes", node, "bin") }

// stopFile is there while a component of a node that has ended must not be started again.
func stopFile(dir, node, component string) string {
	return filepath.Join(dir, "nodes", node, component+".stopped")
}

// powerFile asks the sandbox to start a node.
func powerFile(dir, node string) string { return filepath.Join(dir, "nodes", node, "power-on") }

// StopKubelet sends a signal that ends the kubelet of a node, and waits until it has ended. Its pods
// run on.
func (c *Cluster) StopKubelet(ctx context.Context, node string, signal unix.Signal) error {
	path := c.kubeletPath(node)
	pid, err := processOf(path)
	if err == nil && pid == 0 {
		err = errors.New("it does not run")
	}
	if err == nil {
		err = touch(stopFile(c.Local.Dir(), node, kubelet))
	}
	if err == nil {
		err = c.signal(path, signal)
	}
	if err == nil {
		err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) { return !runs(pid, path), nil })
	}
	if err != nil {
		return fmt.Errorf("stop the kubelet of %s: %w", node, err)
	}
	return nil
}

// StartKubelet starts the kubelet of a node after StopKubelet, and waits until it runs.
func (c *Cluster) StartKubelet(ctx context.Context, node string) error {
	err := os.Remove(stopFile(c.Local.Dir(), node, kubelet))
	if err == nil {
		err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
			pid, err := processOf(c.kubeletPath(node))
			return pid != 0, err
		})
	}
	if err != nil {
		return fmt.Errorf("start the kubelet of %s: %w", node, err)
	}
	return nil
}

// RestartBus kills the system bus of a node, and waits until logind answers on the next one.
func (c *Cluster) RestartBus(ctx context.Context, node string) error {
	if err := c.signal(filepath.Join(programDirectory(c.Local.Dir(), node), dbusDaemon), unix.SIGKILL); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, pollInterval, false, func(ctx context.Context) (bool, error) {
		_, err := c.InhibitLocks(ctx, node)
		return err == nil, nil
	})
}

// RestartKubelet ends the kubelet of a node by a signal, and waits until it runs again.
func (c *Cluster) RestartKubelet(ctx context.Context, node string, signal unix.Signal) error {
	if err := c.StopKubelet(ctx, node, signal); err != nil {
		return err
	}
	return c.StartKubelet(ctx, node)
}

// ReplaceKubelet restarts a node with the kubelet of another release. An empty release is that of
// the cluster, with its feature gates.
func (c *Cluster) ReplaceKubelet(ctx context.Context, node string, release Kubelet) error {
	if err := c.StopKubelet(ctx, node, unix.SIGTERM); err != nil {
		return err
	}
	if err := c.SetKubelet(node, release); err != nil {
		return err
	}
	return c.StartKubelet(ctx, node)
}

// recordChange is held by those who change the record of a cluster that runs.
var recordChange sync.Mutex

// SetKubelet gives a node the kubelet of another release, which runs from its next start on. The
// node may be without power.
func (c *Cluster) SetKubelet(node string, release Kubelet) error {
	recordChange.Lock()
	defer recordChange.Unlock()
	r, err := readRecord(c.Local.Dir())
	if err != nil {
		return err
	}
	if r.Kubelets == nil {
		r.Kubelets = map[string]Kubelet{}
	}
	r.Kubelets[node] = release
	if release == (Kubelet{}) {
		delete(r.Kubelets, node)
	}
	return r.write(c.Local.Dir())
}

// KubeletDirectory is what a node has at /var/lib/kubelet. It outlives the node's power.
func (c *Cluster) KubeletDirectory(node string) string { return kubeletDirectory(c.Local.Dir(), node) }

func kubeletDirectory(dir, node string) string { return filepath.Join(dir, "nodes", node, kubelet) }

func (c *Cluster) kubeletPath(node string) string {
	return filepath.Join(programDirectory(c.Local.Dir(), node), kubelet)
}

// PowerOff ends all processes of a node at once, and waits until they have ended. What the node has
// on disk stays.
func (c *Cluster) PowerOff(ctx context.Context, node string) error {
	return c.end(ctx, node, unix.SIGKILL)
}

// PowerOn boots a node after PowerOff. It returns when the node boots.
func (c *Cluster) PowerOn(ctx context.Context, node string) error {
	pid, err := c.Process(node)
	if err == nil && pid != 0 {
		err = errors.New("it runs")
	}
	if err == nil {
		err = touch(powerFile(c.Local.Dir(), node))
	}
	if err == nil {
		err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
			if err := c.Ended(); err != nil {
				return false, err
			}
			pid, err := c.Process(node)
			return pid != 0, err
		})
	}
	if err != nil {
		return fmt.Errorf("power %s on: %w", node, err)
	}
	return nil
}

// SignalControlPlane sends a signal to a component of the control plane: SIGSTOP freezes it until
// SIGCONT. The cluster ends when one of them ends.
func (c *Cluster) SignalControlPlane(component string, signal unix.Signal) error {
	return c.signal(filepath.Join(controlplane.LinkDir(c.Local.Dir()), component), signal)
}

func touch(path string) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return fmt.Errorf("write a request: %w", err)
	}
	return nil
}
