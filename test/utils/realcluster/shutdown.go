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
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/utils/realcluster/logind"
)

// A kubelet learns from logind that its node shuts down, and takes the time that it needs by a lock.
// The machine has only one logind, so each node has one of our own, on a bus of its own.

// dbusDaemon is the program of the bus.
const dbusDaemon = "dbus-daemon"

// Paths in the file system of a node.
const (
	busConfigFile = "/run/node/bus.conf"
	busSocket     = "/run/dbus/system_bus_socket"

	// systemdConfigDirectory is where the kubelet writes how much time it needs.
	systemdConfigDirectory = "/etc/systemd"
)

// busConfig lets every program of the node do everything on the bus: all are root's.
const busConfig = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=` + busSocket + `</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
`

func busAddress(socket string) string { return "unix:path=" + socket }

// outcomeFile has the outcome of the last shutdown of a node.
func outcomeFile(dir, node string) string { return filepath.Join(dir, "nodes", node, "shutdown.json") }

// checkShutdowns checks what shutdowns need from the machine.
func (c *Cluster) checkShutdowns() error {
	if c.InhibitDelayMax == 0 {
		return nil
	}
	if _, err := exec.LookPath(dbusDaemon); err != nil {
		return fmt.Errorf("%s is missing (%w): install the package dbus", dbusDaemon, err)
	}
	if _, err := os.Stat(systemdConfigDirectory); err != nil {
		return fmt.Errorf("nodes cannot have a directory %s of their own: %w", systemdConfigDirectory, err)
	}
	return nil
}

// setUpShutdowns prepares the files of the bus and of logind. What the kubelet writes below
// systemdConfigDirectory does not reach the machine.
func (n *node) setUpShutdowns() error {
	if n.InhibitDelayMax == 0 {
		return nil
	}
	if err := unix.Mount("tmpfs", systemdConfigDirectory, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount a file system in memory at %s: %w", systemdConfigDirectory, err)
	}
	if err := os.MkdirAll(filepath.Dir(busSocket), 0o755); err != nil {
		return fmt.Errorf("create the directory of the bus: %w", err)
	}
	return errors.Join(
		writeConfig(busConfigFile, busConfig),
		writeConfig(filepath.Join(systemdConfigDirectory, "logind.conf"), logind.Config(n.InhibitDelayMax)))
}

// startLogind starts the bus and logind, and waits until kubelets can reach it: they try once. What
// ends the node is sent.
func (n *node) startLogind(ctx context.Context, again chan<- string, down chan<- error) error {
	if n.InhibitDelayMax == 0 {
		return nil
	}
	if err := n.start(ctx, dbusDaemon, again); err != nil {
		return err
	}
	l, err := logind.New(systemdConfigDirectory)
	if err != nil {
		return err
	}
	ready := make(chan struct{}, 1)
	go func() { down <- n.runLogind(ctx, l, ready) }()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// runLogind returns when the node is to go down: it has no power when its first process ends.
func (n *node) runLogind(ctx context.Context, l *logind.Logind, ready chan<- struct{}) error {
	outcome, err := l.Serve(ctx, busAddress(busSocket), func() {
		select {
		case ready <- struct{}{}:
		default: // The bus was restarted.
		}
	})
	if err != nil {
		return err
	}
	data, err := json.Marshal(outcome)
	if err == nil {
		err = os.WriteFile(outcomeFile(n.dir, n.name()), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write how the shutdown has ended: %w", err)
	}
	return fmt.Errorf("the node was shut down: %s", outcome.Reason)
}

// Logind connects to the logind of a node.
func (c *Cluster) Logind(ctx context.Context, node string) (*logind.Client, error) {
	pid, err := c.Process(node)
	if err == nil && pid == 0 {
		err = errors.New("it does not run")
	}
	if err != nil {
		return nil, fmt.Errorf("find the logind of %s: %w", node, err)
	}
	return logind.Dial(ctx, busAddress(fmt.Sprintf("/proc/%d/root%s", pid, busSocket)))
}

// ShutDown begins a shutdown of a node: it goes down when all locks are released, or the delay is
// over. ctx is that of the request.
func (c *Cluster) ShutDown(ctx context.Context, node string) error {
	if err := os.Remove(outcomeFile(c.Local.Dir(), node)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the outcome of an earlier shutdown: %w", err)
	}
	return c.withLogind(ctx, node, func(l *logind.Client) error { return l.PowerOff(ctx) })
}

// SetInhibitDelay changes for how long locks may delay shutdowns of a node, until its next boot,
// whatever the kubelet has configured.
func (c *Cluster) SetInhibitDelay(ctx context.Context, node string, delay time.Duration) error {
	pid, err := c.Process(node)
	if err != nil {
		return err
	}
	// The last file counts: its name is after that of the kubelet's.
	path := filepath.Join("/proc", strconv.Itoa(pid), "root", systemdConfigDirectory, "logind.conf.d", "99-rig.conf")
	if err := writeConfig(path, logind.Config(delay)); err != nil {
		return err
	}
	return c.withLogind(ctx, node, func(l *logind.Client) error { return l.Reload(ctx) })
}

// CancelShutdown cancels a shutdown of a node that waits for locks.
func (c *Cluster) CancelShutdown(ctx context.Context, node string) error {
	return c.withLogind(ctx, node, func(l *logind.Client) error {
		found, err := l.Cancel(ctx)
		if err == nil && !found {
			err = fmt.Errorf("%s does not shut down", node)
		}
		return err
	})
}

// InhibitLocks returns the locks that delay shutdowns of a node.
func (c *Cluster) InhibitLocks(ctx context.Context, node string) (locks []logind.Lock, err error) {
	err = c.withLogind(ctx, node, func(l *logind.Client) error {
		locks, err = l.Locks(ctx)
		return err
	})
	return locks, err
}

// AwaitDown waits until a node has gone down after ShutDown, and returns why it did so at this
// moment.
func (c *Cluster) AwaitDown(ctx context.Context, node string) (logind.Outcome, error) {
	var outcome logind.Outcome
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		pid, err := c.Process(node)
		return pid == 0, err
	})
	var data []byte
	if err == nil {
		data, err = os.ReadFile(outcomeFile(c.Local.Dir(), node))
	}
	if err == nil {
		err = json.Unmarshal(data, &outcome)
	}
	if err != nil {
		return outcome, fmt.Errorf("wait until %s is down: %w", node, err)
	}
	return outcome, nil
}

func (c *Cluster) withLogind(ctx context.Context, node string, do func(*logind.Client) error) error {
	l, err := c.Logind(ctx, node)
	if err != nil {
		return err
	}
	defer l.Close()
	return do(l)
}
