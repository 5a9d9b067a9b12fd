/*
Copyright The Kubernetes Authors.

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

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// defaultName is the cluster whose kubeconfig stands at _output/kubeconfig.
const defaultName = "graceful"

// validName keeps names usable as a directory and as a kubeconfig context.
var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// cluster is one local cluster: where its files are. What runs is never cached
// here but read from /proc, because processes die without telling.
type cluster struct {
	name   string
	output string // absolute path, without symbolic links
	bin    string // directory of the binaries to run
	proc   string // the proc file system
}

// newCluster resolves the paths of a cluster; it creates the output directory.
func newCluster(name, output string) (*cluster, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("--name is %q: use lower case letters, digits and inner dashes, at most 63 characters", name)
	}
	if err := os.MkdirAll(output, 0o755); err != nil {
		return nil, fmt.Errorf("create the output directory: %w", err)
	}
	abs, err := filepath.Abs(output)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", output, err)
	}
	// Processes are recognised by the paths on their command lines, so the same
	// directory must have the same path however the caller came to it.
	abs, err = filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", output, err)
	}
	// kwokctl splits lists of paths at commas, and PATH is split at colons.
	if strings.ContainsAny(abs, ",:") {
		return nil, fmt.Errorf("the output directory %q has a comma or a colon in its path: move the repository, or give --output", abs)
	}
	return &cluster{name: name, output: abs, bin: filepath.Join(abs, "bin"), proc: "/proc"}, nil
}

func (c *cluster) useBinaries(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("resolve --bin %s: %w", dir, err)
	}
	c.bin = abs
	return nil
}

// dir is where kwokctl keeps the cluster; kwokctl prescribes the "clusters".
func (c *cluster) dir() string { return filepath.Join(c.output, "clusters", c.name) }

// kwokHome is the path by which kwokctl reaches the output directory: .kwok in
// its home directory. The variable KWOK_WORKDIR cannot be used, because kwokctl
// reads it only up to the first blank, and would work in, and remove, another
// directory.
func (c *cluster) kwokHome() string { return filepath.Join(c.output, ".kwok") }

// binLinks is the directory from which the components are started. Its path is
// on the command line of every process of this cluster and of no other.
func (c *cluster) binLinks() string { return filepath.Join(c.kwokHome(), "clusters", c.name, "bin") }

func (c *cluster) logFile(component string) string {
	return filepath.Join(c.dir(), "logs", component+".log")
}

func (c *cluster) kubeconfig() string {
	if c.name == defaultName {
		return filepath.Join(c.output, "kubeconfig")
	}
	return filepath.Join(c.output, "clusters", c.name+".kubeconfig")
}

// processes returns the components of this cluster that run.
func (c *cluster) processes() ([]process, error) { return findProcesses(c.proc, c.binLinks()) }

func (c *cluster) stop() error { return stopProcesses(c.proc, c.binLinks(), stopGrace) }

// lock keeps a second up or down out while one is at work. One lock serves all
// clusters of an output directory, so that two starts do not race for ports.
func (c *cluster) lock(ctx context.Context) (unlock func(), err error) {
	parent := filepath.Dir(c.dir())
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("create the directory of the clusters: %w", err)
	}
	f, err := os.Open(parent)
	if err != nil {
		return nil, fmt.Errorf("open the directory of the clusters: %w", err)
	}
	// The kernel drops the lock with the file descriptor, so a killed run
	// leaves nothing behind. A blocking call would not notice the context.
	for first := true; ; first = false {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
		if first {
			fmt.Println("waiting for another up or down in", parent)
		}
		if err = pause(ctx); err != nil {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", parent, err)
	}
	return func() { f.Close() }, nil
}

func (c *cluster) up(ctx context.Context, opts options) error {
	opts, err := opts.normalized()
	if err != nil {
		return err
	}
	// Waiting for another one is none of the time that this one takes.
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, opts.timeout)
	defer cancel()
	version, err := checkBinaries(ctx, c.bin)
	if err != nil {
		return err
	}

	state := "is up after %.1f s"
	record, obstacle := c.reusable(ctx, opts)
	if obstacle == nil {
		state = "is already up, checked in %.1f s"
	} else {
		if !errors.Is(obstacle, errNoCluster) {
			fmt.Printf("cluster %q starts anew: %v\n", c.name, obstacle)
		}
		if record, err = c.startWithFreePorts(ctx, opts); err != nil {
			return err
		}
	}
	if err := c.finish(ctx, record, opts.nodes); err != nil {
		return fmt.Errorf("cluster %q runs, but %w", c.name, err)
	}
	fmt.Printf("cluster %q "+state+": %s, %d nodes, https://127.0.0.1:%d\n",
		c.name, time.Since(start).Seconds(), version, opts.nodes, record.Ports.APIServer)
	fmt.Printf("  export KUBECONFIG='%s'\n", c.kubeconfig())
	return nil
}

// startWithFreePorts starts the cluster from nothing. Another process can take
// a port between its choice and its use; then new ports are tried.
func (c *cluster) startWithFreePorts(ctx context.Context, opts options) (record, error) {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		if err := c.remove(); err != nil {
			return record{}, err
		}
		rec, err := c.start(ctx, opts)
		if err == nil {
			return rec, nil
		}
		if stopErr := c.stop(); stopErr != nil {
			return record{}, errors.Join(err, stopErr)
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return record{}, errors.Join(fmt.Errorf("cluster %q: interrupted, nothing is left running", c.name), c.remove())
		}
		var failure *startFailure
		if attempt == attempts || ctx.Err() != nil || !errors.As(err, &failure) || !failure.portTaken() {
			return record{}, err
		}
		fmt.Printf("a port was taken meanwhile, trying others: %s\n", failure.component)
	}
}

// finish makes the running cluster ready for use: its nodes and its kubeconfig.
func (c *cluster) finish(ctx context.Context, rec record, nodes int) error {
	api, err := c.apiClient(rec)
	if err != nil {
		return err
	}
	if err := ensureNodes(ctx, api, nodes); err != nil {
		return err
	}
	if err := waitForDefaultServiceAccount(ctx, api); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(c.dir(), "kubeconfig.yaml"))
	if err != nil {
		return fmt.Errorf("its kubeconfig is unreadable: %w", err)
	}
	if err := os.WriteFile(c.kubeconfig(), data, 0o600); err != nil {
		return fmt.Errorf("its kubeconfig cannot be written: %w", err)
	}
	return nil
}

func (c *cluster) down(ctx context.Context) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	running, err := c.processes()
	if err != nil {
		return err
	}
	_, statErr := os.Stat(c.dir())
	if err := c.remove(); err != nil {
		return err
	}
	switch {
	case len(running) > 0:
		fmt.Printf("cluster %q is down: %d processes ended, state removed\n", c.name, len(running))
	case statErr == nil:
		fmt.Printf("cluster %q was not running: leftovers removed\n", c.name)
	default:
		fmt.Printf("there is no cluster %q\n", c.name)
	}
	return nil
}

// remove ends the processes of the cluster and deletes its files.
func (c *cluster) remove() error {
	if err := c.stop(); err != nil {
		return err
	}
	if err := os.RemoveAll(c.dir()); err != nil {
		return fmt.Errorf("remove the state of cluster %q: %w", c.name, err)
	}
	if err := os.Remove(c.kubeconfig()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the kubeconfig of cluster %q: %w", c.name, err)
	}
	return nil
}
