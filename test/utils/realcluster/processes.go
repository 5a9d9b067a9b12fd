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
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// runs reports whether a process was started from a path. A process that has ended, zombies
// included, has no command line.
func runs(pid int, path string) bool {
	command, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err == nil && bytes.HasPrefix(command, append([]byte(path), 0))
}

// processOf returns the process that was started from a path, 0 if there is none: each component of
// a cluster has a path of its own.
func processOf(path string) (int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && runs(pid, path) {
			return pid, nil
		}
	}
	return 0, nil
}

// programsIn returns the programs that run from paths in a directory.
func programsIn(directory string) map[string]bool {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline") // The pattern is a good one.
	running := map[string]bool{}
	for _, command := range commands {
		line, _ := os.ReadFile(command) // It may have ended.
		path, _, _ := bytes.Cut(line, []byte{0})
		if filepath.Dir(string(path)) == directory {
			running[filepath.Base(string(path))] = true
		}
	}
	return running
}

// signal sends a signal to the process that was started from a path.
func (c *Cluster) signal(path string, signal unix.Signal) error {
	pid, err := processOf(path)
	if err != nil {
		return err
	}
	if pid == 0 {
		return fmt.Errorf("%s of cluster %q does not run", filepath.Base(path), c.Local.Name)
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("find process %d: %w", pid, err)
	}
	defer process.Release()
	// Asked again now that there is a handle: another process can have got the pid.
	if !runs(pid, path) {
		return fmt.Errorf("%s of cluster %q: %w", filepath.Base(path), c.Local.Name, os.ErrProcessDone)
	}
	if err := process.Signal(signal); err != nil {
		return fmt.Errorf("send a signal to process %d: %w", pid, err)
	}
	return nil
}
