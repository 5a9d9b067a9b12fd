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
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// newBalancer returns a balancer whose servers are not ready.
func newBalancer(servers ...string) *balancer {
	return &balancer{servers: servers, ready: map[string]bool{}, dialTimeout: time.Second}
}

func TestBalancerChoosesInTurn(t *testing.T) {
	for _, test := range []struct {
		name, ready string
		want        string
	}{
		{"none is known", "", "----"},
		{"one of three", "b", "bbbb"},
		{"two of three", "ac", "acac"},
		{"all", "abc", "abca"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBalancer("a", "b", "c")
			for _, server := range b.servers {
				b.setReady(server, strings.Contains(test.ready, server))
			}
			var got string
			for range test.want {
				if server := b.choose(); server != "" {
					got += server
				} else {
					got += "-"
				}
			}
			if got != test.want {
				t.Errorf("chooses %s, want %s", got, test.want)
			}
		})
	}
}

// newListener returns a listener that accepts connections and does nothing with them.
func newListener(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

// A server that refuses connections gets none until it is probed again.
func TestBalancerDialsTheNext(t *testing.T) {
	gone, there := newListener(t), newListener(t)
	gone.Close()
	b := newBalancer(gone.Addr().String(), there.Addr().String())
	for _, server := range b.servers {
		b.setReady(server, true)
	}
	for range 3 {
		conn, err := b.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if got := conn.RemoteAddr().String(); got != there.Addr().String() {
			t.Errorf("connects to %s, want %s", got, there.Addr())
		}
	}
	if b.ready[gone.Addr().String()] {
		t.Error("a server that refuses connections is ready")
	}
}

func TestBalancerDialFails(t *testing.T) {
	gone, other, there := newListener(t), newListener(t), newListener(t)
	gone.Close()
	other.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name    string
		ctx     context.Context
		servers []net.Listener
		ready   bool
		want    string
	}{
		{"no server", t.Context(), nil, true, "no server is ready"},
		{"none is ready", t.Context(), []net.Listener{there}, false, "no server is ready"},
		{"all refuse", t.Context(), []net.Listener{gone, other}, true, "connection refused"},
		{"the cluster has ended", ended, []net.Listener{there}, true, "operation was canceled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBalancer()
			for _, server := range test.servers {
				b.servers = append(b.servers, server.Addr().String())
				b.setReady(server.Addr().String(), test.ready)
			}
			conn, err := b.dial(test.ctx)
			if conn != nil || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, %v, want %q", conn, err, test.want)
			}
			if server := b.choose(); server != "" && !slices.Contains(test.servers, there) {
				t.Errorf("%s is ready", server)
			}
		})
	}
}

// apiServer is a server that a balancer probes.
type apiServer struct {
	*httptest.Server
	// status is what it answers, 0 for no answer.
	status atomic.Int32

	lock  sync.Mutex
	asked *sync.Cond
	paths []string
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{}
	s.asked = sync.NewCond(&s.lock)
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.lock.Lock()
		s.paths = append(s.paths, r.URL.Path)
		s.asked.Broadcast()
		s.lock.Unlock()
		if status := s.status.Load(); status != 0 {
			w.WriteHeader(int(status))
		} else {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) address() string { return s.Listener.Addr().String() }

// awaitProbe waits until the balancer knows a status that was set before: the next probe reads it,
// and the one after that is sent when it was read.
func (s *apiServer) awaitProbe() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for wanted := len(s.paths) + 2; len(s.paths) < wanted; {
		s.asked.Wait()
	}
}

func TestBalancerProbes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	first, second := newAPIServer(t), newAPIServer(t)
	b := newBalancer(first.address(), second.address())
	ended := make(chan error, 2)
	for _, server := range b.servers {
		go func() { ended <- b.probe(ctx, server) }()
	}
	for _, step := range []struct {
		name          string
		first, second int
		want          []string
	}{
		{"both are ready", 200, 200, []string{first.address(), second.address()}},
		{"one shuts down", 500, 200, []string{second.address(), second.address()}},
		{"one does not answer", 200, 0, []string{first.address(), first.address()}},
		{"one asks for credentials", 401, 200, []string{second.address(), second.address()}},
		{"all are away", 500, 503, []string{"", ""}},
		{"they are back", 200, 200, []string{first.address(), second.address()}},
	} {
		first.status.Store(int32(step.first))
		second.status.Store(int32(step.second))
		first.awaitProbe()
		second.awaitProbe()
		got := []string{b.choose(), b.choose()}
		slices.Sort(got)
		slices.Sort(step.want)
		if !slices.Equal(got, step.want) {
			t.Errorf("%s: chooses %q, want %q", step.name, got, step.want)
		}
	}
	cancel()
	for range b.servers {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the probes end with %v", err)
		}
	}
	for _, path := range slices.Concat(first.paths, second.paths) {
		if path != "/readyz" {
			t.Errorf("the balancer asks for %s", path)
		}
	}
}

// startBalancer forwards to servers that are ready, and returns where clients connect.
func startBalancer(t *testing.T, servers ...net.Listener) (*balancer, string) {
	t.Helper()
	b := newBalancer()
	b.dialTimeout = time.Minute
	for _, server := range servers {
		b.servers = append(b.servers, server.Addr().String())
		b.setReady(server.Addr().String(), true)
	}
	entrance := newListener(t)
	go func() { _ = forwardBy(t.Context(), entrance, b.dial) }() // It ends with the test.
	return b, entrance.Addr().String()
}

func mustDial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// connect returns both ends of a connection that the balancer makes. Others may connect to the
// listener as well: clients of a program that had the port before.
func connect(t *testing.T, address string, listener net.Listener) (client, server *net.TCPConn) {
	t.Helper()
	client = mustDial(t, address)
	token := client.LocalAddr().String()
	if _, err := io.WriteString(client, token); err != nil {
		t.Fatal(err)
	}
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			t.Fatalf("the balancer's connection: %v", err)
		}
		t.Cleanup(func() { conn.Close() })
		got := make([]byte, len(token))
		err = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, readErr := io.ReadFull(conn, got); err == nil && readErr == nil && string(got) == token {
			if err := conn.SetReadDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			return client, conn.(*net.TCPConn)
		}
		conn.Close()
	}
}

// send writes, and says that nothing follows.
func send(t *testing.T, conn *net.TCPConn, content string) {
	t.Helper()
	_, err := io.WriteString(conn, content)
	if err := errors.Join(err, conn.CloseWrite()); err != nil {
		t.Fatal(err)
	}
}

func expectContent(t *testing.T, conn *net.TCPConn, want string) {
	t.Helper()
	if got, err := io.ReadAll(conn); err != nil || string(got) != want {
		t.Errorf("reads %q, %v, want %q", got, err, want)
	}
}

// A side that has sent all it has to say still hears the other.
func TestBalancerHalfClosedConnections(t *testing.T) {
	for _, serverFirst := range []bool{false, true} {
		listener := newListener(t)
		_, address := startBalancer(t, listener)
		first, second := connect(t, address, listener)
		if serverFirst {
			first, second = second, first
		}
		send(t, first, "one")
		expectContent(t, second, "one")
		send(t, second, strings.Repeat("two", 100_000))
		expectContent(t, first, strings.Repeat("two", 100_000))
	}
}

// A client of a server that does not answer delays no other.
func TestBalancerSlowServer(t *testing.T) {
	listener := newListener(t)
	_, address := startBalancer(t, listener)
	patient, slow := connect(t, address, listener)
	other, quick := connect(t, address, listener)
	send(t, quick, "quick")
	expectContent(t, other, "quick")
	send(t, slow, "slow")
	expectContent(t, patient, "slow")
}

// A client whose server dies is told so, and connects to another; without another, its connection
// ends at once.
func TestBalancerServerDies(t *testing.T) {
	dying, other := newListener(t), newListener(t)
	b, address := startBalancer(t, dying, other)
	stranger := mustDial(t, dying.Addr().String())
	send(t, stranger, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	client, server := connect(t, address, dying)
	dying.Close()
	// A reset, as of a process that is killed.
	if err := errors.Join(server.SetLinger(0), server.Close()); err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(client); len(content) != 0 {
		t.Errorf("the client of a server that has died reads %q, %v", content, err)
	}
	for range 3 {
		client, server := connect(t, address, other)
		send(t, server, "other")
		expectContent(t, client, "other")
	}
	b.setReady(other.Addr().String(), false)
	if content, err := io.ReadAll(mustDial(t, address)); len(content) != 0 {
		t.Errorf("a client reads %q, %v though no server is ready", content, err)
	}
}
