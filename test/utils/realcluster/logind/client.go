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
	"fmt"
	"os"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"
)

// Client asks a logind, as other programs of its machine do.
type Client struct{ conn *dbus.Conn }

// Dial connects to the bus of a logind.
func Dial(ctx context.Context, address string) (*Client, error) {
	conn, err := dbus.Connect(address, dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("connect to the bus: %w", err)
	}
	return &Client{conn}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// PowerOff begins a shutdown.
func (c *Client) PowerOff(ctx context.Context) error {
	return c.call(ctx, "PowerOff", false).Err
}

// Cancel cancels a shutdown, and reports whether there was one.
func (c *Client) Cancel(ctx context.Context) (found bool, err error) {
	err = c.call(ctx, "CancelScheduledShutdown").Store(&found)
	return found, err
}

// Locks returns the locks.
func (c *Client) Locks(ctx context.Context) ([]Lock, error) {
	var list []inhibitor
	if err := c.call(ctx, "ListInhibitors").Store(&list); err != nil {
		return nil, err
	}
	locks := []Lock{}
	for _, i := range list {
		locks = append(locks, Lock{Who: i.Who, Why: i.Why})
	}
	return locks, nil
}

// Inhibit takes a lock, which is released when the file is closed.
func (c *Client) Inhibit(ctx context.Context, lock Lock) (*os.File, error) {
	var fd dbus.UnixFD
	if err := c.call(ctx, "Inhibit", "shutdown", lock.Who, lock.Why, "delay").Store(&fd); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "lock"), nil
}

// Reload lets logind read its configuration again.
func (c *Client) Reload(ctx context.Context) error {
	return c.conn.Object(systemdService, systemdObject).CallWithContext(ctx, systemdManaging+".KillUnit", 0, logindUnit, "all", int32(unix.SIGHUP)).Err
}

func (c *Client) call(ctx context.Context, method string, args ...any) *dbus.Call {
	return c.conn.Object(service, object).CallWithContext(ctx, managing+"."+method, 0, args...)
}
