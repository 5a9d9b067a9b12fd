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
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a running component of one cluster.
type process struct {
	pid       int
	component string
}

// findProcesses returns the processes that were started from binDir. Pid files
// are not asked: a pid can belong to another program by now, and a killed run
// may not have written it.
func findProcesses(proc, binDir string) ([]process, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if component := processComponent(proc, pid, binDir); component != "" {
			found = append(found, process{pid: pid, component: component})
		}
	}
	return found, nil
}

// processComponent returns the name of the component that pid runs from binDir,
// or "". A process that has ended, zombies included, has no command line.
func processComponent(proc string, pid int, binDir string) string {
	cmdline, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return ""
	}
	argv := strings.Split(string(bytes.TrimRight(cmdline, "\x00")), "\x00")
	// The second argument is the program where a script stands in for it: the
	// first one is then the interpreter.
	for _, arg := range argv[:min(2, len(argv))] {
		if filepath.Dir(arg) == binDir && slices.Contains(components, filepath.Base(arg)) {
			return filepath.Base(arg)
		}
	}
	return ""
}

// diedComponents returns the components that were started, as their pid files
// say, and that do not run. The result has the order of components.
func diedComponents(pidDir, proc, binDir string) ([]string, error) {
	var started []string
	for _, component := range components {
		pidFile := filepath.Join(pidDir, component+".pid")
		if _, err := os.Stat(pidFile); err == nil && !isStarting(pidFile, proc) {
			started = append(started, component)
		}
	}
	// The processes are read after the pid files and the starting ones: the other
	// way round, a component that starts in between would look dead.
	running, err := findProcesses(proc, binDir)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(started, func(component string) bool {
		return slices.ContainsFunc(running, func(p process) bool { return p.component == component })
	}), nil
}

// isStarting tells whether the process of a pid file is so young that it cannot be
// recognised. The kernel sets its command line after the one who started it was told
// of the success, and on a slow disk well after. A zombie has no command line either.
func isStarting(pidFile, proc string) bool {
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		return false
	}
	if len(pid) == 0 {
		return true // It is being written.
	}
	dir := filepath.Join(proc, string(bytes.TrimSpace(pid)))
	cmdline, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil || len(cmdline) > 0 {
		return false
	}
	// "pid (program) state ...": the program may have any character in its name.
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	_, state, found := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	return err == nil && found && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// stopGrace is how long the components may take to end by themselves. Their
// state is thrown away, so nothing is lost when it is over.
const stopGrace = 5 * time.Second

// killGrace is how long a process may take to be gone after SIGKILL: for as long as
// the kernel waits for the disk on its behalf, it cannot end.
const killGrace = time.Minute

// stopProcesses asks all processes that run from binDir to end, forces them when
// the grace time is over, and returns when they are gone.
func stopProcesses(proc, binDir string, grace time.Duration) error {
	signal := syscall.SIGTERM
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		running, err := findProcesses(proc, binDir)
		if err != nil {
			return err
		}
		if len(running) == 0 {
			return nil
		}
		elapsed := time.Since(start)
		if elapsed > grace+killGrace {
			return fmt.Errorf("process %d (%s) does not end, not even by SIGKILL", running[0].pid, running[0].component)
		}
		if elapsed > grace {
			signal = syscall.SIGKILL
		}
		for _, p := range running {
			if err := signalProcess(proc, p, binDir, signal); err != nil {
				return err
			}
		}
	}
}

// signalProcess opens the process before it looks at the command line again, so
// that the signal cannot reach another process that got the same pid meanwhile.
func signalProcess(proc string, p process, binDir string, signal syscall.Signal) error {
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return fmt.Errorf("find process %d: %w", p.pid, err)
	}
	defer handle.Release()
	if processComponent(proc, p.pid, binDir) != p.component {
		return nil
	}
	if err := handle.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end process %d (%s): %w", p.pid, p.component, err)
	}
	return nil
}

// runsBinary tells whether the process runs the file that is now at path. A
// rebuild replaces the file, and the process keeps the old one.
func runsBinary(proc string, p process, path string) bool {
	running, err := os.Stat(filepath.Join(proc, strconv.Itoa(p.pid), "exe"))
	if err != nil {
		return false
	}
	current, err := os.Stat(path)
	return err == nil && os.SameFile(running, current)
}
