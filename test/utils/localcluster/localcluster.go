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

// Package localcluster runs local clusters: the control plane of this repository, or of the
// pristine base that it is compared with, and nodes that kwok simulates, as plain processes
// of the user on loopback. It needs neither root nor a container runtime nor the network.
//
// hack/cluster is the command; other programs use the package.
package localcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/test/utils/controlplane"
)

// ErrNoBase says that there is nothing to compare with.
var ErrNoBase = errors.New("the pristine base is not built: run `make base`")

const (
	// DefaultName is the cluster whose kubeconfig is directly in the output directory.
	DefaultName = "graceful"

	// startTimeout is for a machine that is slow: a start takes five to ten seconds.
	startTimeout = 6 * time.Minute
	stopTimeout  = 2 * time.Minute

	// pollInterval is the pause between two checks of a state that is waited for.
	pollInterval = 100 * time.Millisecond
)

// Cluster is a local cluster. What runs of it is never stored here but read from /proc:
// processes can die, and outlive the program that started them.
type Cluster struct {
	// Name tells clusters apart. It is a directory and a context of kubeconfigs.
	Name string
	// Output is the directory for state, Bin is that of the binaries of the fork.
	Output, Bin string
	// Base is where all components come from if the cluster is one of the pristine base. It
	// is empty for a cluster of the fork.
	Base string
	// Nodes is how many simulated nodes it has at least.
	Nodes int
	// Settings configure the components. The default is DefaultSettings for a cluster of the
	// fork, and nothing for one of the base.
	Settings *Settings
	// Timeout is the time in which the cluster must be ready for use, 6 minutes by default.
	Timeout time.Duration
	// Printf gets messages for people, if it is set.
	Printf func(format string, args ...any)

	proc     string // The proc file system; tests replace it.
	attached bool   // The components end with this program.
}

// Up starts the cluster from nothing: leftovers of a killed run would influence it. It fails
// with ErrNoBase if the components of the base are not there. After an error nothing runs, and the
// logs stay.
//
// The cluster ends with this program at the latest, even if that is killed.
func (c *Cluster) Up(ctx context.Context) error {
	c.attached = true
	if err := c.Down(ctx); err != nil {
		return err
	}
	if err := c.Ensure(ctx); err != nil {
		return errors.Join(err, c.Stop(ctx))
	}
	return nil
}

// Ensure starts the cluster, or reuses the one that runs if it is as it should be. The cluster
// outlives this program. If it does not start, nothing runs, and the logs stay.
func (c *Cluster) Ensure(ctx context.Context) error {
	settings, err := c.ResolvedSettings()
	if err != nil {
		return err
	}
	// Before anything is stopped.
	if err := c.checkBinaries(); err != nil {
		return err
	}
	unlock, err := c.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.checkKind(); err != nil {
		return err
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, startTimeout))
	defer cancel()
	state, started := "is already up, checked in", false
	if obstacle := c.reusable(ctx, settings); obstacle != nil {
		state, started = "is up after", true
		if !errors.Is(obstacle, errNoCluster) {
			c.printf("cluster %q is started again: %v\n", c.Name, obstacle)
		}
		if err := c.start(ctx, settings); err != nil {
			return err
		}
	}
	serves, err := c.finish(ctx)
	switch {
	case err != nil && started && errors.Is(ctx.Err(), context.Canceled):
		return c.interrupted()
	case err != nil:
		return fmt.Errorf("cluster %q runs, but %w", c.Name, err)
	}
	c.printf("cluster %q %s %.1f s: %s\n  export KUBECONFIG='%s'\n", c.Name, state, time.Since(start).Seconds(), serves, c.Kubeconfig())
	return nil
}

// interrupted is the end of a start that the user has interrupted.
func (c *Cluster) interrupted() error {
	if err := c.remove(); err != nil {
		return fmt.Errorf("cluster %q: interrupted: %w", c.Name, err)
	}
	return fmt.Errorf("cluster %q: interrupted, nothing is left running", c.Name)
}

// finish makes the running cluster ready for use. It returns what there is to use.
func (c *Cluster) finish(ctx context.Context) (string, error) {
	data, err := os.ReadFile(controlplane.Kubeconfig(c.Dir()))
	if err != nil {
		return "", fmt.Errorf("its kubeconfig is unreadable: %w", err)
	}
	if err := os.WriteFile(c.Kubeconfig(), data, 0o600); err != nil {
		return "", fmt.Errorf("its kubeconfig cannot be written: %w", err)
	}
	client, version, err := c.Client()
	if err != nil {
		return "", err
	}
	serves := fmt.Sprintf("Kubernetes %s, %d nodes, https://%s", version, c.Nodes, client.Discovery().RESTClient().Get().URL().Host)
	return serves, ensureNodes(ctx, client, c.Nodes)
}

// Down stops the cluster and removes its state, also when ctx is over. It waits 2 minutes for
// another start or stop that is at work.
func (c *Cluster) Down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	unlock, err := c.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.checkKind(); err != nil {
		return err
	}
	running, err := c.processes()
	if err != nil {
		return err
	}
	_, statErr := os.Stat(c.Dir())
	if err := c.remove(); err != nil {
		return err
	}
	switch {
	case len(running) > 0:
		c.printf("cluster %q is down: %d processes ended, state removed\n", c.Name, len(running))
	case statErr == nil:
		c.printf("cluster %q was not running: leftovers removed\n", c.Name)
	default:
		c.printf("there is no cluster %q\n", c.Name)
	}
	return nil
}

// Stop ends the processes of the cluster, also when ctx is over, and keeps its state, because
// the user needs the logs. The next start removes it, and so does Down.
func (c *Cluster) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	unlock, err := c.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return c.kill()
}

// remove ends the processes of the cluster and deletes its files.
func (c *Cluster) remove() error {
	if err := c.kill(); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(c.Dir()), os.RemoveAll(c.Kubeconfig())); err != nil {
		return fmt.Errorf("remove the state of cluster %q: %w", c.Name, err)
	}
	return nil
}

// validName keeps names usable as a directory and as a context of kubeconfigs.
var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// resolve makes the paths absolute, and creates the directory of the clusters. Processes are
// recognised by the paths on their command lines, so it follows symbolic links: each
// directory must have one path only.
func (c *Cluster) resolve() error {
	if !validName.MatchString(c.Name) {
		return fmt.Errorf("--name is %q: use lower case letters, digits and inner dashes, at most 63 characters", c.Name)
	}
	c.proc = cmp.Or(c.proc, "/proc")
	if err := os.MkdirAll(filepath.Join(c.Output, "clusters"), 0o755); err != nil {
		return fmt.Errorf("create the directory of the clusters: %w", err)
	}
	output, err := filepath.Abs(c.Output)
	if err == nil {
		output, err = filepath.EvalSymlinks(output)
	}
	if err != nil {
		return fmt.Errorf("resolve %s: %w", c.Output, err)
	}
	// KUBECONFIG is a list with colons.
	if strings.Contains(output, ":") {
		return fmt.Errorf("the output directory %q has a colon in its path: move the repository, or give --output", output)
	}
	c.Output = output
	return nil
}

// Lock keeps a second start or stop out while one is at work. One lock serves all clusters of
// an output directory, so that two starts do not race for ports.
func (c *Cluster) Lock(ctx context.Context) (unlock func(), err error) {
	if err := c.resolve(); err != nil {
		return nil, err
	}
	parent := filepath.Dir(c.Dir())
	f, err := os.Open(parent)
	if err != nil {
		return nil, fmt.Errorf("open the directory of the clusters: %w", err)
	}
	// The kernel drops the lock with the file descriptor, so a killed run leaves nothing
	// behind. A blocking call would not notice the context.
	waiting := false
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err == nil, err
		}
		if !waiting {
			c.printf("waiting for another up or down in %s\n", parent)
		}
		waiting = true
		return false, nil
	})
	if err != nil {
		f.Close()
		if waiting {
			return nil, fmt.Errorf("another up or down is at work in %s, try again when it has ended: %w", parent, err)
		}
		return nil, fmt.Errorf("lock %s: %w", parent, err)
	}
	return func() { f.Close() }, nil
}

func (c *Cluster) printf(format string, args ...any) {
	if c.Printf != nil {
		c.Printf(format, args...)
	}
}

// Dir is where the state is, after Lock by an absolute path.
func (c *Cluster) Dir() string { return filepath.Join(c.Output, "clusters", c.Name) }

// Logs is the directory of the logs.
func (c *Cluster) Logs() string { return filepath.Join(c.Dir(), "logs") }

// KeepLogs copies the logs to a directory, which it removes before. Those of the cluster end with it.
func (c *Cluster) KeepLogs(dir string) error {
	return errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(c.Logs())))
}

// components is the directory of the binaries to run.
func (c *Cluster) components() string { return cmp.Or(c.Base, c.Bin) }

// Kubeconfig is the path of the kubeconfig file.
func (c *Cluster) Kubeconfig() string {
	if c.Name == DefaultName {
		return filepath.Join(c.Output, "kubeconfig")
	}
	return filepath.Join(c.Output, "clusters", c.Name+".kubeconfig")
}

// Kubectl is the kubectl that belongs to the cluster.
func (c *Cluster) Kubectl() string { return filepath.Join(c.components(), "kubectl") }

// Command is kubectl on the cluster.
func (c *Cluster) Command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, c.Kubectl(), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	// As a user ends it.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 5 * time.Second
	return command
}

// Config returns the configuration for a client with all rights.
func (c *Cluster) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %s: %w", c.Name, err)
	}
	config.WarningHandler = rest.NoWarnings{}
	config.QPS = -1 // Tests must not wait for their own client.
	return config, nil
}

// Client returns a client with all rights, and the version of the API server.
func (c *Cluster) Client() (kubernetes.Interface, string, error) {
	config, err := c.Config()
	if err != nil {
		return nil, "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, "", fmt.Errorf("creating a client of cluster %s: %w", c.Name, err)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, "", fmt.Errorf("asking cluster %s for its version: %w", c.Name, err)
	}
	return client, version.GitVersion, nil
}
