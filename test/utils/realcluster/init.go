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
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// The commands of the program that starts clusters, see doc.go.
const (
	superviseCommand = "real-supervise"
	initCommand      = "real-init"
	sandboxCommand   = "real-sandbox"
	nodeCommand      = "real-node"
)

// newNamespaces are those that a sandbox and a node have of their own. Cgroups are not among
// them: the kubelet and containerd must agree on paths.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC

// initProcess returns a command that runs another one in new namespaces, and ends when this thread
// does: the caller must be locked to it.
func initProcess(dir, lock, hostname string, command ...string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	c := exec.Command(program, append([]string{initCommand, dir, lock, hostname}, command...)...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: newNamespaces, Pdeathsig: syscall.SIGKILL}
	return c, nil
}

// runInit is the first process of a sandbox or a node. It starts the command that does the work,
// passes its standard input on, and ends with it. Until then it removes ended
// processes whose parents are gone, which os/exec cannot do beside commands of its own.
func runInit(dir, lock, hostname string, command []string) error {
	if os.Getpid() != 1 {
		return errors.New("this is not the first process of a namespace")
	}
	if err := takeLock(dir, lock); err != nil {
		return err
	}
	// What is mounted here must not appear outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount proc: %w", err)
	}
	if err := unix.Sethostname([]byte(hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	c := exec.Command(program, command...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Start(); err != nil {
		return fmt.Errorf("start %s: %w", command[0], err)
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for %s: %w", command[0], err)
		case pid == c.Process.Pid:
			return fmt.Errorf("%s has ended: exit code %d, signal %d", command[0], status.ExitStatus(), status.Signal())
		}
	}
}
