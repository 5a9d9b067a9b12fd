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
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// pollInterval is the pause between two looks at a starting cluster.
const pollInterval = 100 * time.Millisecond

// binaryOf names the file of each component in the directory of binaries.
// kwokctl calls its controller by another name than the file has.
func binaryOf(component string) string {
	if component == "kwok-controller" {
		return "kwok"
	}
	return component
}

func (c *cluster) binaryPath(component string) string {
	return filepath.Join(c.bin, binaryOf(component))
}

// checkBinaries runs every binary once, and returns the version of the API
// server. A binary that is missing or broken is named here, before anything is
// started or stopped.
//
// One after another, and within the time that the caller gives to everything:
// right after a build the binaries have to be read back from the disk, a
// gigabyte of them, and a slow disk is even slower when several read at once.
func checkBinaries(ctx context.Context, bin string) (version string, err error) {
	for _, name := range append([]string{"kwokctl", "kubectl"}, components...) {
		name = binaryOf(name)
		first, err := binaryVersion(ctx, filepath.Join(bin, name))
		if err != nil {
			return "", err
		}
		if name == "kube-apiserver" {
			version = first
		}
	}
	return version, nil
}

// binaryVersion returns the first line that the binary prints for --version.
func binaryVersion(ctx context.Context, path string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is missing (%w): build it with `make`", filepath.Base(path), err)
	}
	arg := "--version"
	if filepath.Base(path) == "kubectl" {
		arg = "--help" // kubectl has "version" instead, which asks a server
	}
	cmd := exec.CommandContext(ctx, path, arg)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	// It was killed because the time is over: that says nothing about the binary.
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "", fmt.Errorf("no time is left: `%s %s` did not end, which is slow rather than broken; try again, or give a longer --timeout: %w", path, arg, ctx.Err())
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("interrupted while checking %s: %w", filepath.Base(path), ctx.Err())
	}
	if err != nil {
		return "", fmt.Errorf("%s is broken: `%s %s` failed: %w\n%s", filepath.Base(path), path, arg, err, lastLines(out, 10))
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return first, nil
}

// startFailure says which component kept the cluster from starting, and why.
type startFailure struct {
	component string
	reason    string
	logFile   string
	logTail   string
}

func (f *startFailure) Error() string {
	return fmt.Sprintf("%s %s\nlog: %s\nits last lines:\n%s", f.component, f.reason, f.logFile, f.logTail)
}

// portTaken tells whether the component died because its port was in use.
func (f *startFailure) portTaken() bool {
	return strings.Contains(f.logTail, "address already in use")
}

func (c *cluster) failure(component, reason string) error {
	file := c.logFile(component)
	data, err := os.ReadFile(file)
	if err != nil {
		data = []byte(err.Error())
	}
	return &startFailure{component: component, reason: reason, logFile: file, logTail: lastLines(data, 10)}
}

// lastLines returns the end of a log, indented, with long lines cut.
func lastLines(log []byte, count int) string {
	const width = 300
	text := strings.TrimSpace(string(log))
	if text == "" {
		text = "(nothing)"
	}
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-count):]
	for i, line := range lines {
		if len(line) > width {
			line = line[:width] + "..."
		}
		lines[i] = "    " + line
	}
	return strings.Join(lines, "\n")
}

// start writes the configuration, lets kwokctl start the components and waits
// until all are healthy. After an error processes may be left; the caller
// stops them and the logs stay.
func (c *cluster) start(ctx context.Context, opts options) (record, error) {
	var err error
	rec := record{Gates: opts.gates, RuntimeConfig: opts.runtimeConfig, Args: opts.args}
	if rec.Ports, err = choosePorts(); err != nil {
		return rec, err
	}
	if err := c.prepare(opts, rec); err != nil {
		return rec, err
	}
	kwokctl := make(chan error, 1)
	kwokctlCtx, stopKwokctl := context.WithCancel(ctx)
	go func() {
		kwokctl <- c.runKwokctl(kwokctlCtx)
		close(kwokctl) // for the second receiver, below
	}()

	err = c.watchStart(ctx, rec, kwokctl)
	// kwokctl would go on starting components after the failure of one.
	stopKwokctl()
	<-kwokctl
	return rec, err
}

// prepare creates what kwokctl is to find.
func (c *cluster) prepare(opts options, rec record) error {
	if err := c.linkKwokHome(); err != nil {
		return err
	}
	if err := os.MkdirAll(c.binLinks(), 0o755); err != nil {
		return fmt.Errorf("create the directory of cluster %q: %w", c.name, err)
	}
	// kwokctl fetches what does not stand in this directory yet, from the place
	// in its configuration. That is a local file as well (see kwokctlOptions),
	// so that nothing is ever downloaded.
	for _, component := range append([]string{"kubectl"}, components...) {
		if err := os.Symlink(c.binaryPath(component), filepath.Join(c.binLinks(), component)); err != nil {
			return fmt.Errorf("link %s into cluster %q: %w", component, c.name, err)
		}
	}
	if err := writeJSON(c.recordFile(), rec); err != nil {
		return err
	}
	if err := os.WriteFile(c.stagesFile(), stages, 0o644); err != nil {
		return fmt.Errorf("write the stages of simulated pods: %w", err)
	}
	return writeJSON(c.kwokctlFile(), kwokctlConfig(opts, rec.Ports, c.binaryPath, c.stagesFile()))
}

// linkKwokHome makes the link by which kwokctl finds the output directory.
func (c *cluster) linkKwokHome() error {
	err := os.Symlink(".", c.kwokHome())
	if err == nil {
		return nil
	}
	if target, readErr := os.Readlink(c.kwokHome()); readErr == nil && target == "." {
		return nil
	}
	return fmt.Errorf("link kwokctl to the output directory (remove %s if it is not needed): %w", c.kwokHome(), err)
}

func (c *cluster) kwokctlFile() string { return filepath.Join(c.dir(), "kwokctl.json") }

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// runKwokctl creates the cluster. It returns when the API server answers.
func (c *cluster) runKwokctl(ctx context.Context) error {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "kwokctl"),
		"create", "cluster", "--name", c.name, "--config", c.kwokctlFile(), "--kubeconfig", "", "--wait", "0")
	cmd.Env = c.environment(os.Environ())
	cmd.Stdout, cmd.Stderr = &out, &out
	// kwokctl runs kubectl; a group of their own lets both be ended together.
	// The components are in sessions of their own, and are not touched.
	// Should this program be killed, kwokctl must not go on: the next start
	// would meet it. The kernel looks at the thread, not at the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	// kwokctl deletes the directory when it fails early, so its output is
	// written afterwards. The log only explains failures: not having it is
	// reported where it is read.
	if mkdirErr := os.MkdirAll(filepath.Dir(c.logFile("kwokctl")), 0o755); mkdirErr == nil {
		_ = os.WriteFile(c.logFile("kwokctl"), out.Bytes(), 0o644)
	}
	return err
}

// environment is the environment of kwokctl and of all that it starts. Variables
// that would change the cluster behind our back are taken out.
func (c *cluster) environment(inherited []string) []string {
	var env []string
	for _, variable := range inherited {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "KWOK_") || strings.HasPrefix(name, "ETCD_") || name == "PATH" || name == "HOME" || name == "KUBECONFIG" {
			continue
		}
		env = append(env, variable)
	}
	return append(env,
		// The home of the user stays untouched by all that is started here.
		"HOME="+c.output,
		// kwokctl takes the first kubectl in PATH.
		"PATH="+c.binLinks()+":"+os.Getenv("PATH"),
		"KUBECONFIG="+filepath.Join(c.dir(), "kubeconfig.yaml"),
		"KUBECACHEDIR="+filepath.Join(c.dir(), "kubectl-cache"),
	)
}

// watchStart returns when all components are healthy, or with the first thing
// that went wrong.
func (c *cluster) watchStart(ctx context.Context, rec record, kwokctl <-chan error) error {
	kwokctlDone := false
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if err := c.deathDuringStart(); err != nil {
			return err
		}
		var sick *unhealthy
		if kwokctlDone {
			if sick = c.firstUnhealthy(ctx, rec); sick == nil {
				return nil
			}
		}
		select {
		case err := <-kwokctl:
			if err != nil {
				return c.kwokctlFailure(ctx, err)
			}
			kwokctlDone, kwokctl = true, nil
		case <-ctx.Done():
			return c.timeoutFailure(rec, ctx.Err())
		case <-ticker.C:
		}
	}
}

// deathDuringStart returns an error if a component has ended that was started.
func (c *cluster) deathDuringStart() error {
	died, err := diedComponents(filepath.Join(c.dir(), "pids"), c.proc, c.binLinks())
	if err != nil {
		return err
	}
	if len(died) > 0 {
		return c.failure(died[0], "ended while the cluster was starting")
	}
	return nil
}

// kwokctlFailure explains why kwokctl failed: a component that died meanwhile is
// the better explanation.
func (c *cluster) kwokctlFailure(ctx context.Context, err error) error {
	if death := c.deathDuringStart(); death != nil {
		return death
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.failure("kwokctl", "failed: "+err.Error())
}

// timeoutFailure names the first component that is not healthy. The context of
// the start is over, so the question gets one of its own, long enough for an
// answer of those that are healthy on a machine that is slow.
func (c *cluster) timeoutFailure(rec record, cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	if sick := c.firstUnhealthy(ctx, rec); sick != nil {
		return c.failure(sick.component, "did not become healthy in time: "+sick.err.Error())
	}
	return fmt.Errorf("the cluster became healthy too late: %w", cause)
}
