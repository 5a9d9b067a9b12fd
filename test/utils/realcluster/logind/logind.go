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

// Package logind does on the nodes of test/utils/realcluster what systemd's logind does for a
// kubelet before a machine goes down: it gives out locks that delay a shutdown, announces the
// shutdown, and waits until all locks are released or its delay is over.
//
// It differs from systemd's in what no kubelet sees: there are no locks but those that delay
// shutdowns, and a shutdown can be cancelled during the delay. There, only one that fails is.
package logind

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Lock delays shutdowns until its holder closes it.
type Lock struct {
	// Who and Why are what the holder says about itself.
	Who, Why string
}

// Reason is why a machine goes down at a moment.
type Reason string

const (
	// LocksReleased means that there are no locks, or no more.
	LocksReleased Reason = "all locks are released"
	// DelayOver means that locks were left when the delay was over.
	DelayOver Reason = "the delay is over"
)

// Outcome is how the wait for the locks has ended.
type Outcome struct {
	Reason Reason
	// After is how long it took.
	After time.Duration
	// Locks are those that were left.
	Locks []Lock
}

// errInProgress is why there is no second shutdown, and why there are no locks meanwhile: a program
// must not believe that it has the time for which it asks.
var errInProgress = errors.New("a shutdown is in progress")

// Logind counts locks and waits for them.
type Logind struct {
	// configDirectory is where its configuration is.
	configDirectory string
	// down gets the outcome when the machine is to go down.
	down chan Outcome

	mutex sync.Mutex
	// announce tells programs that a shutdown begins, or is cancelled.
	announce func(begins bool)
	delay    time.Duration
	locks    map[*os.File]Lock
	shutdown *shutdown // nil if none is in progress.
}

// shutdown is one that waits for locks.
type shutdown struct {
	began   time.Time
	timeout *time.Timer
}

// New returns a logind with the configuration in a directory, such as /etc/systemd.
func New(configDirectory string) (*Logind, error) {
	l := &Logind{configDirectory: configDirectory, down: make(chan Outcome, 1), announce: func(bool) {}, locks: map[*os.File]Lock{}}
	return l, l.reload()
}

// reload reads the configuration again. A shutdown in progress keeps its delay.
func (l *Logind) reload() error {
	delay, err := readInhibitDelay(l.configDirectory)
	if err != nil {
		return err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.delay = delay
	return nil
}

// inhibit gives out a lock: the end of a pipe. Its holder has the lock until all copies of it are
// closed, that of the caller included.
func (l *Logind) inhibit(lock Lock) (*os.File, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.shutdown != nil {
		return nil, errInProgress
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a lock: %w", err)
	}
	l.locks[reader] = lock
	go func() {
		_, _ = reader.Read(make([]byte, 1)) // It returns when the other end is closed.
		_ = reader.Close()
		l.mutex.Lock()
		defer l.mutex.Unlock()
		delete(l.locks, reader)
		say("the lock of %s is released", lock.Who)
		if l.shutdown != nil && len(l.locks) == 0 {
			l.end(LocksReleased)
		}
	}()
	say("%s takes a lock: %s", lock.Who, lock.Why)
	return writer, nil
}

// powerOff begins a shutdown.
func (l *Logind) powerOff() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.shutdown != nil {
		return errInProgress
	}
	began := &shutdown{began: time.Now()}
	began.timeout = time.AfterFunc(l.delay, func() {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		if l.shutdown == began {
			l.end(DelayOver)
		}
	})
	l.shutdown = began
	say("a shutdown begins: it waits %v for %d locks", l.delay, len(l.locks))
	l.announce(true)
	if len(l.locks) == 0 {
		l.end(LocksReleased)
	}
	return nil
}

// cancel ends a shutdown that waits. It reports whether there was one.
func (l *Logind) cancel() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.shutdown == nil {
		return false
	}
	l.shutdown.timeout.Stop()
	l.shutdown = nil
	say("the shutdown is cancelled")
	l.announce(false)
	return true
}

// end says how the wait of a shutdown has ended. The shutdown stays, so that nothing can take a lock
// any more.
func (l *Logind) end(reason Reason) {
	outcome := Outcome{Reason: reason, After: time.Since(l.shutdown.began)}
	for _, lock := range l.locks {
		outcome.Locks = append(outcome.Locks, lock)
	}
	select {
	case l.down <- outcome:
	default: // It was told before.
	}
}

// state returns what programs can ask for.
func (l *Logind) state() (delay time.Duration, preparing bool, locks []Lock) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, lock := range l.locks {
		locks = append(locks, lock)
	}
	return l.delay, l.shutdown != nil, locks
}

// say writes to the log.
func say(format string, args ...any) {
	fmt.Printf("%s logind: %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}
