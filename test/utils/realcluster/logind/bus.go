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
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
	"golang.org/x/sys/unix"
)

// Names on the bus.
const (
	service  = "org.freedesktop.login1"
	object   = dbus.ObjectPath("/org/freedesktop/login1")
	managing = service + ".Manager"

	// The kubelet asks systemd to let logind read its configuration.
	systemdService  = "org.freedesktop.systemd1"
	systemdObject   = dbus.ObjectPath("/org/freedesktop/systemd1")
	systemdManaging = systemdService + ".Manager"
	logindUnit      = "systemd-logind.service"
)

const (
	// reconnectDelay is the pause before the next attempt to reach the bus.
	reconnectDelay = 200 * time.Millisecond

	// sendTime is how long a message may take to be written to the bus.
	sendTime = 500 * time.Millisecond
)

// Serve answers on a bus until the machine is to go down, or ctx is over. It connects again when the
// bus was restarted: locks outlive that. It calls ready whenever it can be reached.
func (l *Logind) Serve(ctx context.Context, address string, ready func()) (Outcome, error) {
	for {
		gone, err := l.connect(ctx, address)
		if err != nil {
			say("%v", err)
			gone = nil
		} else {
			ready()
		}
		var retry <-chan time.Time
		if err != nil {
			retry = time.After(reconnectDelay)
		}
		select {
		case outcome := <-l.down:
			say("the machine goes down after %v: %s, %d locks are left", outcome.After.Round(time.Millisecond), outcome.Reason, len(outcome.Locks))
			time.Sleep(sendTime) // Who has asked for it still gets the answer.
			return outcome, nil
		case <-ctx.Done():
			return Outcome{}, context.Cause(ctx)
		case <-gone:
			say("the bus has ended")
		case <-retry:
		}
	}
}

// connect answers on a bus until the channel is closed that it returns.
func (l *Logind) connect(ctx context.Context, address string) (gone <-chan struct{}, err error) {
	conn, err := dbus.Connect(address, dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("connect to the bus: %w", err)
	}
	m := &manager{logind: l}
	l.mutex.Lock()
	l.announce = func(begins bool) {
		if err := conn.Emit(object, managing+".PrepareForShutdown", begins); err != nil {
			say("the announcement is lost: %v", err)
		}
	}
	l.mutex.Unlock()
	err = errors.Join(
		conn.Export(m, object, managing),
		conn.Export(properties{l}, object, "org.freedesktop.DBus.Properties"),
		conn.Export(systemd{l}, systemdObject, systemdManaging),
		own(conn, service), own(conn, systemdService))
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn.Context().Done(), nil
}

// own takes a name on the bus.
func own(conn *dbus.Conn, name string) error {
	reply, err := conn.RequestName(name, dbus.NameFlagDoNotQueue)
	if err == nil && reply != dbus.RequestNameReplyPrimaryOwner {
		err = errors.New("another program has it")
	}
	if err != nil {
		return fmt.Errorf("own %s on the bus: %w", name, err)
	}
	return nil
}

// manager has the methods of org.freedesktop.login1.Manager.
type manager struct{ logind *Logind }

// Inhibit gives out a lock.
func (m *manager) Inhibit(what, who, why, mode string) (dbus.UnixFD, *dbus.Error) {
	if what != "shutdown" || mode != "delay" {
		return 0, dbus.NewError("org.freedesktop.DBus.Error.InvalidArgs", []any{"only locks that delay shutdowns are known here"})
	}
	file, err := m.logind.inhibit(Lock{Who: who, Why: why})
	if err != nil {
		return 0, failure(err)
	}
	// The holder gets a copy, which is sent when this has returned. Until ours is closed, the lock
	// is not released.
	time.AfterFunc(sendTime, func() { _ = file.Close() })
	return dbus.UnixFD(file.Fd()), nil
}

// ListInhibitors returns the locks. Unlike systemd, it does not know the users and processes.
func (m *manager) ListInhibitors() ([]inhibitor, *dbus.Error) {
	_, _, locks := m.logind.state()
	list := []inhibitor{}
	for _, lock := range locks {
		list = append(list, inhibitor{What: "shutdown", Who: lock.Who, Why: lock.Why, Mode: "delay"})
	}
	return list, nil
}

// inhibitor is a lock on the bus.
type inhibitor struct {
	What, Who, Why, Mode string
	UID, PID             uint32
}

// PowerOff begins a shutdown.
func (m *manager) PowerOff(_ bool) *dbus.Error { return failure(m.logind.powerOff()) }

// CancelScheduledShutdown cancels a shutdown, and reports whether there was one.
func (m *manager) CancelScheduledShutdown() (bool, *dbus.Error) { return m.logind.cancel(), nil }

// properties answers for the properties of the manager.
type properties struct{ logind *Logind }

// Get returns a property.
func (p properties) Get(name, property string) (dbus.Variant, *dbus.Error) {
	if name != managing {
		return dbus.Variant{}, prop.ErrIfaceNotFound
	}
	delay, preparing, _ := p.logind.state()
	switch property {
	case "InhibitDelayMaxUSec":
		return dbus.MakeVariant(uint64(delay.Microseconds())), nil
	case "PreparingForShutdown":
		return dbus.MakeVariant(preparing), nil
	}
	return dbus.Variant{}, prop.ErrPropNotFound
}

// systemd has the method of org.freedesktop.systemd1.Manager that kubelets call.
type systemd struct{ logind *Logind }

// KillUnit lets logind read its configuration again.
func (s systemd) KillUnit(name, _ string, signal int32) *dbus.Error {
	if name != logindUnit || unix.Signal(signal) != unix.SIGHUP {
		return failure(fmt.Errorf("only SIGHUP to logind is known here, not %d to %s", signal, name))
	}
	return failure(s.logind.reload())
}

// failure returns an error as the bus needs it.
func failure(err error) *dbus.Error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errInProgress):
		return dbus.NewError(service+".OperationInProgress", []any{err.Error()})
	default:
		return dbus.MakeFailedError(err)
	}
}
