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
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/nodeshutdown/systemd"
)

const (
	// firstPassedFile is the number of the first file that systemd passes to a service.
	firstPassedFile = 3

	// storedLockPrefix begins the names of the files that this package has stored. What follows is the process that
	// has stored the file, and a number.
	storedLockPrefix = "kubelet-shutdown-lock-"
)

// systemdStore is the file descriptor store that systemd has for a service whose unit sets FileDescriptorStoreMax.
// It passes the files to the service when that starts again, and closes them when it is stopped. Without the setting,
// or where systemd does not run the kubelet, nothing is stored.
type systemdStore struct {
	logger klog.Logger
	// socket is where systemd receives notifications, empty if it does not.
	socket string

	mutex sync.Mutex
	last  int
	names map[systemd.InhibitLock]string
	// passed are the files that systemd has passed.
	passed []systemd.InhibitLock
}

func newSystemdStore(logger klog.Logger) *systemdStore {
	s := &systemdStore{logger: logger, socket: os.Getenv("NOTIFY_SOCKET"), names: map[systemd.InhibitLock]string{}}
	if pid, err := strconv.Atoi(os.Getenv("LISTEN_PID")); err != nil || pid != os.Getpid() {
		return s // They are for another process.
	}
	s.passed = s.find(os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES"))
	return s
}

// find returns those of the files that systemd has passed which this package has stored.
func (s *systemdStore) find(count, names string) []systemd.InhibitLock {
	n, err := strconv.Atoi(count)
	if err != nil {
		return nil
	}
	var found []systemd.InhibitLock
	for i, name := range strings.Split(names, ":") {
		if i >= n || !strings.HasPrefix(name, storedLockPrefix) {
			continue
		}
		file := systemd.InhibitLock(firstPassedFile + i)
		syscall.CloseOnExec(int(file)) // Programs that the kubelet starts must not keep the lock.
		s.names[file] = name
		found = append(found, file)
	}
	return found
}

// take implements lockStore.
func (s *systemdStore) take() []systemd.InhibitLock {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	passed := s.passed
	s.passed = nil
	return passed
}

// put implements lockStore.
func (s *systemdStore) put(file systemd.InhibitLock) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, stored := s.names[file]; stored || s.socket == "" {
		return
	}
	s.last++
	name := fmt.Sprintf("%s%d-%d", storedLockPrefix, os.Getpid(), s.last)
	// Without FDPOLL=0, systemd would forget the lock when logind restarts.
	if err := s.notify("FDSTORE=1\nFDPOLL=0\nFDNAME="+name, syscall.UnixRights(int(file))); err != nil {
		s.logger.Error(err, "Unable to store the lock that delays shutdowns in systemd: a restart of the kubelet during a shutdown loses it")
		return
	}
	s.names[file] = name
}

// remove implements lockStore.
func (s *systemdStore) remove(file systemd.InhibitLock) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	name, stored := s.names[file]
	if !stored {
		return
	}
	delete(s.names, file)
	if err := s.notify("FDSTOREREMOVE=1\nFDNAME="+name, nil); err != nil {
		s.logger.Error(err, "Unable to remove the lock that delays shutdowns from systemd: the next shutdown may take the whole delay", "name", name)
	}
}

// notify sends a message to systemd, and does not wait for it.
func (s *systemdStore) notify(message string, rights []byte) error {
	socket, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening a socket for systemd: %w", err)
	}
	defer func() { _ = syscall.Close(socket) }() // It was only written to.
	if err := syscall.Sendmsg(socket, []byte(message), rights, &syscall.SockaddrUnix{Name: s.socket}, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("sending to systemd: %w", err)
	}
	return nil
}
