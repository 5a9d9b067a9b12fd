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
	"context"
	"fmt"
	"net"
	"os"
	"runtime"

	"github.com/vishvananda/netns"
)

// Dial connects to an address from a node: there the rules of kube-proxy apply, so that it can be
// that of a Service. The address must be an IP address with a port.
func (c *Cluster) Dial(ctx context.Context, node, address string) (net.Conn, error) {
	pid, err := c.Process(node)
	if err != nil {
		return nil, err
	}
	if pid == 0 {
		return nil, fmt.Errorf("%s does not run", node)
	}
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		conn, err := dialIn(ctx, pid, address)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

// dialIn connects from the network of a process.
func dialIn(ctx context.Context, pid int, address string) (conn net.Conn, err error) {
	err = inNetwork(pid, func() error {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
		return err
	})
	return conn, err
}

// inNetwork makes sockets in the network of a process. A socket stays in the namespace in which it was
// made, so that the thread can leave it at once. It does: a locked thread ends with its goroutine,
// and the kernel would kill the children that this thread has started and that die with their
// parent.
func inNetwork(pid int, makeSockets func() error) error {
	own, err := netns.GetFromPid(os.Getpid())
	if err != nil {
		return fmt.Errorf("open the network of this process: %w", err)
	}
	defer own.Close()
	namespace, err := netns.GetFromPid(pid)
	if err != nil {
		return fmt.Errorf("open the network of process %d: %w", pid, err)
	}
	defer namespace.Close()
	runtime.LockOSThread()
	if err := netns.Set(namespace); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter the network of process %d: %w", pid, err)
	}
	made := makeSockets()
	// A thread that cannot leave must run no other goroutine.
	if err := netns.Set(own); err == nil {
		runtime.UnlockOSThread()
	}
	return made
}
