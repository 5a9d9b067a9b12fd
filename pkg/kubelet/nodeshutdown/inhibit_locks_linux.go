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

// lockStore keeps the files of locks while the kubelet restarts.
type lockStore interface {
	// take returns the files of the kubelet before.
	take() []systemd.InhibitLock
	// put keeps a file until it is removed, once. A store that cannot keep it does nothing.
	put(systemd.InhibitLock)
	remove(systemd.InhibitLock)
}

// inhibitLocks gives each lock a number that is never used again. The locks of systemd are numbers
// of files, which the system uses again: a manager that takes a new lock after a canceled shutdown,
// and then releases the old one a second time, would release the new one.
type inhibitLocks struct {
	mutex sync.Mutex
	last  systemd.InhibitLock
	// files has the files of the locks that are not released. Locks can share one.
	files map[systemd.InhibitLock]systemd.InhibitLock
	// store has the same files while the machine shuts down. Otherwise a kubelet that does not know of it would leave
	// them there, and each shutdown would take the whole delay.
	store lockStore
	// inherited are the files of the kubelet before, which no lock has taken over. They count for logind.
	inherited []systemd.InhibitLock
}

func newInhibitLocks(store lockStore) *inhibitLocks {
	return &inhibitLocks{files: map[systemd.InhibitLock]systemd.InhibitLock{}, store: store, inherited: store.take()}
}

// add returns a new lock for a file. It replaces those of the kubelet before.
func (l *inhibitLocks) add(file systemd.InhibitLock, closeFile func(systemd.InhibitLock) error) systemd.InhibitLock {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.last++
	l.files[l.last] = file
	l.closeInherited(closeFile)
	return l.last
}

// keep keeps the files while the kubelet restarts, if wanted, or not any more.
func (l *inhibitLocks) keep(wanted bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, file := range l.files {
		if wanted {
			l.store.put(file)
		} else {
			l.store.remove(file)
		}
	}
}

// closeInherited closes the files of the kubelet before that no lock has taken over.
func (l *inhibitLocks) closeInherited(closeFile func(systemd.InhibitLock) error) {
	for _, file := range l.inherited {
		l.store.remove(file)
		_ = closeFile(file) // There is nothing to do about an error: it is closed in any case.
	}
	l.inherited = nil
}

// share returns a new lock for the file of another one, or of the kubelet before. held is false if there is none,
// so that the lock has no file.
func (l *inhibitLocks) share() (lock systemd.InhibitLock, held bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.last++
	for _, file := range l.files {
		l.files[l.last] = file
		return l.last, true
	}
	if len(l.inherited) == 0 {
		return l.last, false
	}
	l.files[l.last], l.inherited = l.inherited[0], l.inherited[1:]
	return l.last, true
}

// release closes the file of the lock, unless another lock shares it, and then those that no lock has taken over: a
// machine that shuts down would wait for them.
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
	l.closeInherited(closeFile)
	l.store.remove(file)
	return closeFile(file)
}
