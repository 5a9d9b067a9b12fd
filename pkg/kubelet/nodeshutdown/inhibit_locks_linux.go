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

package nodeshutdown

import (
	"sync"

	"k8s.io/kubernetes/pkg/kubelet/nodeshutdown/systemd"
)

// inhibitLocks gives each lock a number that is never used again. The locks of systemd are numbers
// of files, which the system uses again: a manager that takes a new lock after a canceled shutdown,
// and then releases the old one a second time, would release the new one.
type inhibitLocks struct {
	mutex sync.Mutex
	last  systemd.InhibitLock
	// files has the files of the locks that are not released. Locks can share one.
	files map[systemd.InhibitLock]systemd.InhibitLock
}

func newInhibitLocks() *inhibitLocks {
	return &inhibitLocks{files: map[systemd.InhibitLock]systemd.InhibitLock{}}
}

// add returns a new lock for a file.
func (l *inhibitLocks) add(file systemd.InhibitLock) systemd.InhibitLock {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.last++
	l.files[l.last] = file
	return l.last
}

// share returns a new lock for the file of another one, or if there is none, one without a file.
func (l *inhibitLocks) share() systemd.InhibitLock {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.last++
	for _, file := range l.files {
		l.files[l.last] = file
		break
	}
	return l.last
}

// release closes the file of the lock, unless another lock shares it.
func (l *inhibitLocks) release(lock systemd.InhibitLock, closeFile func(systemd.InhibitLock) error) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	file, ok := l.files[lock]
	delete(l.files, lock)
	if !ok {
		return nil // It was released before.
	}
	for _, other := range l.files {
		if other == file {
			return nil
		}
	}
	return closeFile(file)
}
