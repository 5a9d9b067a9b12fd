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

package logind

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

var (
	one = Lock{Who: "one", Why: "it has pods"}
	two = Lock{Who: "two", Why: "it has files"}
)

func TestShutdownWaitsForLocks(t *testing.T) {
	l := newTestLogind(t, time.Minute)
	first, second := mustInhibit(t, l, one), mustInhibit(t, l, two)
	mustPowerOff(t, l)
	mustClose(t, first)
	awaitLocks(t, l, two)
	expectUp(t, l)
	mustClose(t, second)
	outcome := <-l.down
	if outcome.Reason != LocksReleased || len(outcome.Locks) != 0 {
		t.Errorf("the shutdown ends with %+v", outcome)
	}
}

func TestShutdownWithoutLocks(t *testing.T) {
	l := newTestLogind(t, time.Minute)
	mustPowerOff(t, l)
	if outcome := <-l.down; outcome.Reason != LocksReleased {
		t.Errorf("the shutdown ends with %+v", outcome)
	}
}

func TestShutdownWaitsForDelay(t *testing.T) {
	const delay = 200 * time.Millisecond
	l := newTestLogind(t, delay)
	defer mustClose(t, mustInhibit(t, l, one))
	mustPowerOff(t, l)
	outcome := <-l.down
	if outcome.Reason != DelayOver || outcome.After < delay || !slices.Equal(outcome.Locks, []Lock{one}) {
		t.Errorf("the shutdown ends with %+v, after %v", outcome, outcome.After)
	}
}

// During a shutdown nothing takes a lock, and no second one begins.
func TestShutdownInProgress(t *testing.T) {
	l := newTestLogind(t, time.Minute)
	defer mustClose(t, mustInhibit(t, l, one))
	mustPowerOff(t, l)
	if _, err := l.inhibit(two); !errors.Is(err, errInProgress) {
		t.Errorf("a lock during a shutdown: %v", err)
	}
	if err := l.powerOff(); !errors.Is(err, errInProgress) {
		t.Errorf("a second shutdown: %v", err)
	}
}

func TestCancel(t *testing.T) {
	const delay = 200 * time.Millisecond
	l := newTestLogind(t, delay)
	if l.cancel() {
		t.Error("there was no shutdown to cancel")
	}
	var announced []bool
	l.announce = func(begins bool) { announced = append(announced, begins) }
	lock := mustInhibit(t, l, one)
	mustPowerOff(t, l)
	if !l.cancel() {
		t.Error("there was a shutdown to cancel")
	}
	mustClose(t, lock)
	awaitLocks(t, l)
	time.Sleep(2 * delay)
	expectUp(t, l)
	mustPowerOff(t, l)
	<-l.down
	if want := []bool{true, false, true}; !slices.Equal(announced, want) {
		t.Errorf("announced: %v, want %v", announced, want)
	}
}

func TestReload(t *testing.T) {
	l := newTestLogind(t, time.Second)
	for _, file := range []struct {
		name, content string
		want          time.Duration
	}{
		{"90-ours.conf", "[Login]\nInhibitDelayMaxSec=7\n", 7 * time.Second},
		{"50-distribution.conf", "[Login]\nInhibitDelayMaxSec=6\n", 7 * time.Second},
		{"99-kubelet.conf", "# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=20\n", 20 * time.Second},
		{"99-other.conf", "[Other]\nInhibitDelayMaxSec=1\n", 20 * time.Second},
	} {
		write(t, filepath.Join(l.configDirectory, "logind.conf.d", file.name), file.content)
		if err := l.reload(); err != nil {
			t.Fatal(err)
		}
		if delay, _, _ := l.state(); delay != file.want {
			t.Errorf("with %s the delay is %v, want %v", file.name, delay, file.want)
		}
	}
	write(t, filepath.Join(l.configDirectory, "logind.conf"), "[Login]\nInhibitDelayMaxSec=soon\n")
	if err := l.reload(); err == nil {
		t.Error("a delay that is no number was read")
	}
}

func newTestLogind(t *testing.T, delay time.Duration) *Logind {
	t.Helper()
	directory := t.TempDir()
	write(t, filepath.Join(directory, "logind.conf"), Config(delay))
	l, err := New(directory)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := l.state(); got != delay {
		t.Fatalf("the delay is %v, want %v", got, delay)
	}
	return l
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func mustInhibit(t *testing.T, l *Logind, lock Lock) *os.File {
	t.Helper()
	file, err := l.inhibit(lock)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func mustPowerOff(t *testing.T, l *Logind) {
	t.Helper()
	if err := l.powerOff(); err != nil {
		t.Fatal(err)
	}
}

func mustClose(t *testing.T, lock *os.File) {
	t.Helper()
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

func awaitLocks(t *testing.T, l *Logind, want ...Lock) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		_, _, locks := l.state()
		if slices.Equal(locks, want) {
			return
		}
		if time.Since(start) > time.Minute {
			t.Fatalf("locks: %v, want %v", locks, want)
		}
	}
}

func expectUp(t *testing.T, l *Logind) {
	t.Helper()
	select {
	case outcome := <-l.down:
		t.Errorf("the machine goes down: %+v", outcome)
	default:
	}
}
