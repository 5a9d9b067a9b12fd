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

// Package localcluster starts and stops local clusters for other programs, through
// hack/cluster: those of the fork, and those of the pristine base that it is compared with.
package localcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ErrNoBase says that there is nothing to compare with.
var ErrNoBase = errors.New("the pristine base is not built: run `make base`")

const (
	// startTimeout is for a machine that is slow: a start takes five to ten seconds.
	startTimeout = 6 * time.Minute
	stopTimeout  = 2 * time.Minute
)

// Cluster is a local cluster.
type Cluster struct {
	// Name is not that of a cluster that somebody works with.
	Name string
	// Output is the directory for binaries and state, Bin is where hack/cluster is.
	Output, Bin string
	// Base is where all components come from if the cluster is one of the pristine base. It
	// is empty for a cluster of the fork, which has all gates on.
	Base string
	// Nodes is how many it has.
	Nodes int
}

// Up starts the cluster anew: leftovers of a killed run would be in the way. It fails with
// ErrNoBase if the components are not there. After an error nothing is left.
func (c *Cluster) Up(ctx context.Context) error {
	args := []string{"--nodes", fmt.Sprint(c.Nodes), "--timeout", startTimeout.String()}
	if c.Base != "" {
		for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"} {
			if _, err := os.Stat(filepath.Join(c.Base, component)); err != nil {
				return fmt.Errorf("%w (%w)", ErrNoBase, err)
			}
		}
		args = append(args, "--bin", c.Base, "--gates=", "--runtime-config=")
	}
	if err := c.Down(ctx); err != nil {
		return err
	}
	if err := c.run(ctx, "up", args...); err != nil {
		return errors.Join(err, c.Down(ctx))
	}
	return nil
}

// Down stops the cluster and removes its state, also when ctx is over.
func (c *Cluster) Down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return c.run(ctx, "down")
}

func (c *Cluster) run(ctx context.Context, command string, args ...string) error {
	run := exec.CommandContext(ctx, filepath.Join(c.Bin, "cluster"), append([]string{command, "--name", c.Name, "--output", c.Output}, args...)...)
	// In a group of its own: an interrupt from the terminal reaches us, and we pass it on to
	// a start, but it must not end a stop half way.
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	run.WaitDelay = 30 * time.Second
	if output, err := run.CombinedOutput(); err != nil {
		return fmt.Errorf("cluster %s --name %s: %w: %s", command, c.Name, err, bytes.TrimSpace(output))
	}
	return nil
}

// Kubeconfig is the path of the kubeconfig file.
func (c *Cluster) Kubeconfig() string {
	return filepath.Join(c.Output, "clusters", c.Name+".kubeconfig")
}

// Kubectl is the kubectl that belongs to the cluster.
func (c *Cluster) Kubectl() string {
	if c.Base != "" {
		return filepath.Join(c.Base, "kubectl")
	}
	return filepath.Join(c.Bin, "kubectl")
}

// Command is kubectl on the cluster.
func (c *Cluster) Command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, c.Kubectl(), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	// As a user ends it.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 5 * time.Second
	return command
}

// Client returns a client with all rights, and the version of the API server.
func (c *Cluster) Client() (kubernetes.Interface, string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig of cluster %s: %w", c.Name, err)
	}
	config.WarningHandler = rest.NoWarnings{}
	config.QPS = -1 // Nobody is to wait for a client of a test.
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
