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

package tcpproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// startEcho returns the address of a server that says again what it is told.
func startEcho(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				_, _ = io.Copy(connection, connection)
			}()
		}
	}()
	return listener.Addr().String()
}

// peer is a client of the echo.
type peer struct {
	*testing.T
	*net.TCPConn
	lines *bufio.Reader
}

func start(t *testing.T) (*Proxy, func() peer) {
	t.Helper()
	proxy, err := New(startEcho(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy, func() peer {
		t.Helper()
		connection, err := net.Dial("tcp", proxy.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { connection.Close() })
		return peer{t, connection.(*net.TCPConn), bufio.NewReader(connection)}
	}
}

func (p peer) say(text string) {
	p.Helper()
	if _, err := fmt.Fprintln(p, text); err != nil {
		p.Fatal(err)
	}
}

// expect expects an answer within a time, none if it is empty.
func (p peer) expect(text string, within time.Duration) {
	p.Helper()
	_ = p.SetReadDeadline(time.Now().Add(within))
	line, err := p.lines.ReadString('\n')
	if text == "" {
		if netErr, ok := err.(net.Error); !ok || !netErr.Timeout() {
			p.Fatalf("got %q (%v), want nothing", line, err)
		}
		return
	}
	if err != nil || line != text+"\n" {
		p.Fatalf("got %q (%v), want %q", line, err, text)
	}
}

// expectReset expects that the connection ends with an error, and not in order.
func (p peer) expectReset() {
	p.Helper()
	_ = p.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, err := p.lines.ReadString('\n')
	if netErr, ok := err.(net.Error); err == nil || err == io.EOF || ok && netErr.Timeout() {
		p.Fatalf("got %v, want a reset", err)
	}
}

func TestPass(t *testing.T) {
	_, dial := start(t)
	client := dial()
	client.say("one")
	client.expect("one", 10*time.Second)
	// What is said before the end arrives, and then the end.
	client.say("two")
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	client.expect("two", 10*time.Second)
	if rest, err := io.ReadAll(client.lines); err != nil || len(rest) > 0 {
		t.Errorf("got %q (%v), want the end", rest, err)
	}
}

// A connection that was frozen goes on where it was, and so does one that has begun meanwhile.
func TestFreeze(t *testing.T) {
	proxy, dial := start(t)
	old := dial()
	old.say("one")
	old.expect("one", 10*time.Second)
	if n := proxy.Freeze(); n != 1 {
		t.Errorf("%d connections are frozen, want 1", n)
	}
	proxy.Freeze()
	young := dial()
	for _, client := range []peer{old, young} {
		client.say("two")
		client.say("three")
		client.expect("", 200*time.Millisecond)
	}
	proxy.Restore()
	for _, client := range []peer{old, young} {
		client.expect("two", 10*time.Second)
		client.expect("three", 10*time.Second)
	}
}

// Some of the connections are frozen, and those that begin meanwhile are not.
func TestFreezeSome(t *testing.T) {
	proxy, dial := start(t)
	clients := map[peer]bool{}
	for range 40 {
		client := dial()
		client.say("one")
		client.expect("one", 10*time.Second)
		clients[client] = true
	}
	count := proxy.FreezeSome(4)
	if count == 0 || count == len(clients) {
		t.Fatalf("%d of %d connections are frozen, want some", count, len(clients))
	}
	silent := 0
	for client := range clients {
		client.say("two")
		_ = client.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if _, err := client.lines.Peek(1); err != nil {
			silent++
		}
	}
	if silent < count {
		t.Errorf("%d connections are silent, want at least the %d that are frozen", silent, count)
	}
	young := dial()
	young.say("two")
	young.expect("two", 10*time.Second)
	proxy.Restore()
	for client := range clients {
		client.expect("two", 10*time.Second)
	}
	if n := proxy.FreezeSome(1); n != len(clients)+1 {
		t.Errorf("%d connections are frozen, want all", n)
	}
}

// The connections are frozen whose clients have talked of something.
func TestFreezeTopic(t *testing.T) {
	proxy, dial := start(t)
	proxy.Tell(func(said []byte) []string { return strings.Fields(string(said)) })
	of, others := dial(), dial()
	of.say("pods")
	of.expect("pods", 10*time.Second)
	others.say("nodes")
	others.expect("nodes", 10*time.Second)
	if count := proxy.FreezeTopic("pods"); count != 1 {
		t.Errorf("%d connections are frozen, want 1", count)
	}
	of.say("late")
	others.say("soon")
	others.expect("soon", 10*time.Second)
	_ = of.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := of.lines.Peek(1); err == nil {
		t.Error("the connection goes on, want it to be frozen")
	}
	proxy.Restore()
	of.expect("late", 10*time.Second)
}

// An end that closes a frozen connection is not heard.
func TestFreezeClosed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	proxy, err := New(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	client, err := net.Dial("tcp", proxy.Address())
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	proxy.Freeze()
	client.Close()
	other := peer{t, server.(*net.TCPConn), bufio.NewReader(server)}
	other.expect("", 200*time.Millisecond)
	proxy.Restore()
	_ = server.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := other.lines.ReadByte(); err != io.EOF {
		t.Errorf("got %v, want the end", err)
	}
}

func TestCut(t *testing.T) {
	proxy, dial := start(t)
	old := dial()
	old.say("one")
	old.expect("one", 10*time.Second)
	if n := proxy.Cut(); n != 1 {
		t.Errorf("%d connections are cut, want 1", n)
	}
	old.expectReset()
	expectRefusal(t, proxy)
	proxy.Restore()
	young := dial()
	young.say("two")
	young.expect("two", 10*time.Second)
}

// A delay is one of time: it does not matter how much is said.
func TestDelay(t *testing.T) {
	proxy, dial := start(t)
	client := dial()
	client.say("one")
	client.expect("one", 10*time.Second)
	const delay = 300 * time.Millisecond
	proxy.Delay(delay)
	began := time.Now()
	for range 10 {
		client.say("two")
		time.Sleep(delay / 10)
	}
	client.expect("two", 10*time.Second)
	if took := time.Since(began); took < 2*delay {
		t.Errorf("an answer after %v, want %v in each direction", took, delay)
	}
	for range 9 {
		client.expect("two", 10*time.Second)
	}
	if took := time.Since(began); took > 8*delay {
		t.Errorf("the last answer after %v, want all to be on their way at the same time", took)
	}
	proxy.Restore()
	began = time.Now()
	client.say("three")
	client.expect("three", 10*time.Second)
	if took := time.Since(began); took > delay {
		t.Errorf("an answer after %v, want no delay any more", took)
	}
}

// Without a server, a client is told so.
func TestNoTarget(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target := listener.Addr().String()
	listener.Close()
	proxy, err := New(target)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	expectRefusal(t, proxy)
}

func expectRefusal(t *testing.T, proxy *Proxy) {
	t.Helper()
	connection, err := net.Dial("tcp", proxy.Address())
	if err != nil {
		return // It was reset at once.
	}
	defer connection.Close()
	peer{t, connection.(*net.TCPConn), bufio.NewReader(connection)}.expectReset()
}
