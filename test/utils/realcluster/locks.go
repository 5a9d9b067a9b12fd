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
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The processes that hold locks, beside the first processes of the nodes.
const (
	supervisorLock = "supervisor"
	sandboxLock    = "sandbox"
)

// lockFile is the file whose lock a process holds for as long as it lives. Unlike a file with a
// pid, a lock cannot outlive its process; and the kernel says which process it is, by the pid that
// it has for the one who asks.
func lockFile(dir, name string) string { return filepath.Join(dir, "locks", name) }

// takeLock takes a lock until this process ends.
func takeLock(dir, name string) error {
	path := lockFile(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create the directory of the locks: %w", err)
	}
	// Never closed: a process loses its lock when it closes any descriptor of the file.
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	if err := unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		return fmt.Errorf("lock %s, another process has it: %w", path, err)
	}
	return nil
}

// lockOwner returns the process that holds a lock, 0 if there is none.
func lockOwner(dir, name string) (int, error) {
	file, err := os.OpenFile(lockFile(dir, name), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open the lock of %s: %w", name, err)
	}
	defer file.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(file.Fd(), unix.F_GETLK, &lock); err != nil {
		return 0, fmt.Errorf("read the lock of %s: %w", name, err)
	}
	if lock.Type == unix.F_UNLCK {
		return 0, nil
	}
	if lock.Pid <= 0 {
		return 0, fmt.Errorf("the %s runs in a namespace that is not visible from here, such as another container", name)
	}
	return int(lock.Pid), nil
}
