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
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// probeInterval is the pause between two probes of a server: a tenth of the time for which an API
// server that is to end still accepts connections.
const probeInterval = 300 * time.Millisecond

// balancer connects clients to the servers that are ready, in turn.
type balancer struct {
	// dialTimeout is how long a server that is ready may take to accept a connection.
	dialTimeout time.Duration

	lock    sync.Mutex
	servers []string
	ready   map[string]bool
	next    int
}

// balance connects the clients of a cluster to its API servers.
func balance(ctx context.Context, r record) error {
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", r.Port))
	if err != nil {
		return fmt.Errorf("listen for clients of the API servers: %w", err)
	}
	b := &balancer{ready: map[string]bool{}, dialTimeout: time.Second}
	for index := range r.StaticControlPlane.Nodes {
		b.servers = append(b.servers, fmt.Sprintf("%s:%d", networkOf(index).address, r.Port))
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, server := range b.servers {
		group.Go(func() error { return b.probe(ctx, server) })
	}
	group.Go(func() error { return forwardBy(ctx, listener, b.dial) })
	return group.Wait()
}

// probe asks a server again and again whether it is ready.
func (b *balancer) probe(ctx context.Context, server string) error {
	client := &http.Client{
		Timeout:   time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+server+"/readyz", nil)
		if err != nil {
			return fmt.Errorf("probe %s: %w", server, err)
		}
		response, err := client.Do(request)
		if err == nil {
			response.Body.Close()
		}
		b.setReady(server, err == nil && response.StatusCode == http.StatusOK)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(probeInterval):
		}
	}
}

func (b *balancer) setReady(server string, ready bool) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.ready[server] = ready
}

// dial connects to the next server that is ready and accepts connections.
func (b *balancer) dial(ctx context.Context) (net.Conn, error) {
	err := errors.New("no server is ready")
	for range b.servers {
		server := b.choose()
		if server == "" {
			break
		}
		var conn net.Conn
		if conn, err = (&net.Dialer{Timeout: b.dialTimeout}).DialContext(ctx, "tcp", server); err == nil {
			return conn, nil
		}
		b.setReady(server, false)
	}
	return nil, err
}

// choose returns the next server that is ready, if there is one.
func (b *balancer) choose() string {
	b.lock.Lock()
	defer b.lock.Unlock()
	for range b.servers {
		server := b.servers[b.next%len(b.servers)]
		b.next++
		if b.ready[server] {
			return server
		}
	}
	return ""
}
