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
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/nodeshutdown/systemd"
)

// TestSystemdStore verifies what systemd receives: the file under a name, and the name when it is to be closed.
func TestSystemdStore(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	connection, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	receive := func() (message string, files []int) {
		t.Helper()
		text, rights := make([]byte, 1000), make([]byte, 1000)
		n, oobn, _, _, err := connection.ReadMsgUnix(text, rights)
		if err != nil {
			t.Fatal(err)
		}
		controls, err := syscall.ParseSocketControlMessage(rights[:oobn])
		if err != nil {
			t.Fatal(err)
		}
		for i := range controls {
			found, err := syscall.ParseUnixRights(&controls[i])
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, found...)
		}
		return string(text[:n]), files
	}
	t.Setenv("NOTIFY_SOCKET", socket)
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	store, lock := newSystemdStore(klog.Logger{}), systemd.InhibitLock(file.Fd())
	store.put(lock)
	store.put(lock) // It is stored once.
	stored, files := receive()
	name, found := strings.CutPrefix(stored, "FDSTORE=1\nFDPOLL=0\nFDNAME=kubelet-shutdown-lock-")
	if !found || len(files) != 1 {
		t.Fatalf("received %q with the files %v", stored, files)
	}
	defer syscall.Close(files[0])
	var sent, got syscall.Stat_t
	if err := syscall.Fstat(int(lock), &sent); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Fstat(files[0], &got); err != nil || sent.Ino != got.Ino {
		t.Errorf("received another file: %v", err)
	}
	store.remove(lock)
	store.remove(lock)
	store.put(lock)
	if removed, files := receive(); removed != "FDSTOREREMOVE=1\nFDNAME=kubelet-shutdown-lock-"+name || len(files) > 0 {
		t.Errorf("received %q with the files %v", removed, files)
	}
	if again, _ := receive(); again == stored || !strings.HasPrefix(again, "FDSTORE=1\n") {
		t.Errorf("received %q, after %q: the name is used again", again, stored)
	}
}

// TestPassedLocks verifies that a kubelet takes its own files from systemd, once, and no others.
func TestPassedLocks(t *testing.T) {
	for name, test := range map[string]struct {
		pid          int
		count, names string
		want         []systemd.InhibitLock
	}{
		"one lock":             {os.Getpid(), "1", "kubelet-shutdown-lock-7-1", []systemd.InhibitLock{3}},
		"among others":         {os.Getpid(), "3", "stored:kubelet-shutdown-lock-7-1:kubelet-shutdown-lock-7-2", []systemd.InhibitLock{4, 5}},
		"more names":           {os.Getpid(), "1", "stored:kubelet-shutdown-lock-7-1", nil},
		"for another process":  {os.Getpid() + 1, "1", "kubelet-shutdown-lock-7-1", nil},
		"nothing":              {os.Getpid(), "", "", nil},
		"the number is broken": {os.Getpid(), "x", "kubelet-shutdown-lock-7-1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NOTIFY_SOCKET", "")
			t.Setenv("LISTEN_PID", strconv.Itoa(test.pid))
			t.Setenv("LISTEN_FDS", test.count)
			t.Setenv("LISTEN_FDNAMES", test.names)
			store := newSystemdStore(klog.Logger{})
			if got := store.take(); !slices.Equal(got, test.want) {
				t.Errorf("took %v, want %v", got, test.want)
			}
			if again := store.take(); len(again) > 0 {
				t.Errorf("took %v again", again)
			}
		})
	}
}

// TestPassedLocksAreClosed verifies that programs which the kubelet starts do not get a lock that systemd has passed: it
// would be held as long as they run.
func TestPassedLocksAreClosed(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	passed, err := syscall.Dup(int(file.Fd())) // Without the flag, as systemd passes files.
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(passed)
	names := append(slices.Repeat([]string{"other"}, passed-firstPassedFile), "kubelet-shutdown-lock-7-1")
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	t.Setenv("LISTEN_FDS", strconv.Itoa(len(names)))
	t.Setenv("LISTEN_FDNAMES", strings.Join(names, ":"))
	if got := newSystemdStore(klog.Logger{}).take(); !slices.Equal(got, []systemd.InhibitLock{systemd.InhibitLock(passed)}) {
		t.Fatalf("took %v, want %d", got, passed)
	}
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(passed), syscall.F_GETFD, 0)
	if errno != 0 || flags&syscall.FD_CLOEXEC == 0 {
		t.Errorf("flags %d, %v", flags, errno)
	}
}
