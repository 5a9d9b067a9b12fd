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
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/utils/localcluster"
)

const (
	// DefaultName is the name of a cluster if none is given.
	DefaultName = "real"

	// DefaultTimeout is for a machine that is slow: a start takes about 15 seconds.
	DefaultTimeout = 3 * time.Minute

	// stopTimeout is how long the supervisor may take to end the sandbox and remove cgroups.
	stopTimeout = time.Minute

	// readyTimeout is how long the nodes of a cluster that runs may take to be ready again.
	readyTimeout = 15 * time.Second

	// pollInterval is the pause between two checks of a state that is waited for.
	pollInterval = 100 * time.Millisecond
)

// Cluster is a cluster with real nodes.
type Cluster struct {
	// Local has the name, directories, settings and messages. Its directory, its kubeconfig and
	// kubectl are those of this cluster; do not start or stop it.
	Local *localcluster.Cluster

	// ControlPlane is the directory of the control plane if it is not that in Local.Bin but, for
	// example, that of the pristine base. Local.Settings must be what it understands.
	ControlPlane string
	// Kubelets are those of nodes that do not run that in Local.Bin, by the names of the nodes.
	Kubelets map[string]Kubelet

	// StaticControlPlane, if it is there, replaces the control plane in the sandbox but etcd.
	StaticControlPlane *StaticControlPlane

	// InhibitDelayMax, if it is not 0, gives each node a system bus with a logind, which waits so
	// long for kubelets before the node goes down. See shutdown.go.
	InhibitDelayMax time.Duration

	// Script, if it is set, starts the control plane and the only node. What is above does not
	// apply then, nor do the settings in Local.
	Script *Script

	// supervisor is that of a cluster that ends with this program.
	supervisor *supervisor
}

// Kubelet is a kubelet of another release, or with another configuration.
type Kubelet struct {
	// Bin is its directory, by default that of the cluster.
	Bin string
	// Gates are its feature gates, Name=true,...
	Gates string
	// ManifestURL is where it gets static pods from, beside the manifests in files.
	ManifestURL string
	// Config has fields of its configuration that the other kubelets do not set, in YAML.
	Config string
}

// Ensure starts the cluster, or reuses the one that runs if it is as it should be. The cluster
// outlives this program. If it does not start, nothing runs.
func (c *Cluster) Ensure(ctx context.Context) error {
	unlock, settings, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	start, state := time.Now(), "is already up, checked in"
	if obstacle := c.reusable(ctx, settings); obstacle != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("cluster %q: interrupted, nothing was changed: %w", c.Local.Name, obstacle)
		}
		state = "is up after"
		if !errors.Is(obstacle, errNoCluster) {
			c.printf("cluster %q is started again: %v\n", c.Local.Name, obstacle)
		}
		s, err := c.start(ctx, settings)
		if err != nil {
			return err
		}
		if err := s.keep(); err != nil {
			return err
		}
	}
	nodes := fmt.Sprintf("real nodes: %d", c.Local.Nodes)
	if c.Script != nil {
		nodes = fmt.Sprintf("upstream's hack/%s.sh", scriptName)
	}
	c.printf("cluster %q %s %.1f s: %s\n  export KUBECONFIG='%s'\n", c.Local.Name, state, time.Since(start).Seconds(), nodes, c.Local.Kubeconfig())
	if c.Script != nil {
		c.describeScript()
	}
	pid, err := c.Process(nodeName(0))
	if err == nil && pid != 0 {
		c.printf("from a node, such as to the address of a Service:\n  nsenter --target %d --net curl http://...\n", pid)
	}
	return err
}

// Up starts the cluster from nothing. It ends with this program at the latest, even if that is
// killed. If it does not start, nothing runs.
func (c *Cluster) Up(ctx context.Context) error {
	unlock, settings, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	// It has the end of the pipe that keeps the cluster running.
	c.supervisor, err = c.start(ctx, settings)
	return err
}

// Down stops the cluster and removes its state, also when ctx is over.
func (c *Cluster) Down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*stopTimeout)
	defer cancel()
	if err := checkRoot(); err != nil {
		return err
	}
	unlock, err := c.Local.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.checkKind(); err != nil {
		return err
	}
	running, err := c.Process(supervisorLock)
	if err != nil {
		return err
	}
	_, statErr := os.Stat(c.Local.Dir())
	if err := c.remove(ctx); err != nil {
		return err
	}
	switch {
	case running != 0:
		c.printf("cluster %q is down, its state removed\n", c.Local.Name)
	case statErr == nil:
		c.printf("cluster %q was not running: leftovers removed\n", c.Local.Name)
	default:
		c.printf("there is no cluster %q\n", c.Local.Name)
	}
	return nil
}

// prepare checks what is needed before anything is stopped, and locks the directory.
func (c *Cluster) prepare(ctx context.Context) (unlock func(), settings localcluster.Settings, err error) {
	if settings, err = c.Local.ResolvedSettings(); err != nil {
		return nil, settings, err
	}
	if err := checkRoot(); err != nil {
		return nil, settings, err
	}
	if unlock, err = c.Local.Lock(ctx); err != nil {
		return nil, settings, err
	}
	// The processes of the cluster have another working directory.
	if c.Local.Bin, err = filepath.Abs(c.Local.Bin); err == nil {
		err = errors.Join(c.checkKind(), c.checkFiles())
	}
	if err != nil {
		unlock()
	}
	return unlock, settings, err
}

// remove ends the supervisor if it runs, and removes what it leaves.
func (c *Cluster) remove(ctx context.Context) error {
	if err := c.end(ctx, supervisorLock, unix.SIGTERM); err != nil {
		return err
	}
	// What a killed supervisor has started ends with it, but a moment later.
	if err := c.end(ctx, sandboxLock, unix.SIGKILL); err != nil {
		return err
	}
	dir := c.Local.Dir()
	if err := removeCgroups(ctx, cgroupOf(dir)); err != nil {
		return err
	}
	// The lock of the first process of a sandbox is free a moment before all others have ended.
	var failed error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, stopTimeout, true, func(context.Context) (bool, error) {
		failed = errors.Join(os.RemoveAll(dir), os.RemoveAll(c.Local.Kubeconfig()))
		return failed == nil, nil
	})
	if err != nil {
		return fmt.Errorf("remove the state of cluster %q: %w", c.Local.Name, errors.Join(failed, err))
	}
	return nil
}

// end sends a signal to the process with a lock, if there is one, and waits until it has ended: all
// processes of its namespace have then ended, too.
func (c *Cluster) end(ctx context.Context, name string, signal unix.Signal) error {
	pid, err := c.Process(name)
	if err != nil || pid == 0 {
		return err
	}
	// The handle keeps the process apart from another one that gets its pid.
	process, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("find the %s: %w", name, err)
	}
	defer process.Release()
	if owner, err := c.Process(name); err != nil || owner != pid {
		return err
	}
	if err := process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the %s: %w", name, err)
	}
	err = wait.PollUntilContextTimeout(ctx, pollInterval/5, stopTimeout, true, func(context.Context) (bool, error) {
		return errors.Is(process.Signal(unix.Signal(0)), os.ErrProcessDone), nil
	})
	if err != nil {
		return fmt.Errorf("process %d, the %s of cluster %q, does not end: %w", pid, name, c.Local.Name, err)
	}
	return nil
}

// Process returns the pid of the first process of a node, of the sandbox or of the supervisor, 0
// if it does not run.
func (c *Cluster) Process(name string) (int, error) { return lockOwner(c.Local.Dir(), name) }

// Ended returns an error if the cluster has ended by itself.
func (c *Cluster) Ended() error {
	pid, err := c.Process(sandboxLock)
	if err == nil && pid == 0 {
		err = fmt.Errorf("cluster %q does not run any more: logs are in %s", c.Local.Name, c.Local.Logs())
	}
	return err
}

// Manifests is the directory of the manifests of the static pods of a node.
func (c *Cluster) Manifests(node string) string {
	if c.Script != nil {
		node = nodeName(0) // The script gives it another name.
	}
	return manifests(c.Local.Dir(), node)
}

func nodeNames(count int) []string {
	var names []string
	for index := range count {
		names = append(names, nodeName(index))
	}
	return names
}

func (c *Cluster) printf(format string, args ...any) {
	if c.Local.Printf != nil {
		c.Local.Printf(format, args...)
	}
}
