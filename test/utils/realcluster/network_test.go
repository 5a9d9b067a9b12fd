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
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a client and a server send arrives at the other end, and so does the end of what they send.
// The forwarding ends with its context, with which the cluster ends.
func TestForward(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		asked, _ := io.ReadAll(conn) // An error shows in the answer.
		_, _ = conn.Write(append(asked, " answered"...))
	}()
	entrance, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- forward(ctx, entrance, server.Addr().String()) }()
	client, err := net.Dial("tcp", entrance.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("asked")); err != nil {
		t.Fatal(err)
	}
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(client); err != nil || string(got) != "asked answered" {
		t.Errorf("the client reads %q (%v)", got, err)
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
}

// A program that connects from a node has children that die with the thread that has started them.
func TestDialKeepsThreads(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := dialIn(t.Context(), os.Getpid(), listener.Addr().String())
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skipf("namespaces need root: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	done := make(chan error)
	for range 20 {
		go func() {
			conn, err := dialIn(t.Context(), os.Getpid(), listener.Addr().String())
			if err == nil {
				conn.Close()
				// It is likely that this thread is the one that a dial was locked to.
				child := exec.Command("sleep", "60")
				child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
				if err = child.Start(); err == nil {
					go func() { done <- child.Wait() }()
					runtime.Gosched()
					return
				}
			}
			done <- err
		}()
	}
	select {
	case err := <-done:
		t.Errorf("a child has ended: %v", err)
	case <-time.After(time.Second):
	}
}
