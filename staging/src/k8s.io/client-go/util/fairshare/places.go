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

package fairshare

import (
	"context"
	"sync"
)

// Places is a semaphore of which one tenant gets a bounded number of places. Those who wait
// get the places that come free at once, the tenants in turn, and each tenant's in their
// order.
type Places struct {
	lock sync.Mutex
	free int
	line *line[*waiter]
}

// waiter is somebody who waits. The channel is closed when the place is theirs.
type waiter struct{ granted chan struct{} }

// NewPlaces returns that many places, of which one tenant may have perTenant, or all of them
// if that is zero.
func NewPlaces(total, perTenant int) *Places {
	return &Places{free: total, line: newLine[*waiter](perTenant)}
}

// TryAcquire takes a place for the tenant if there is one, and reports whether there was.
func (p *Places) TryAcquire(tenant string) bool {
	return !p.leave(tenant, p.enter(tenant))
}

// Acquire waits for a place for the tenant. It returns an error if the context ends before;
// no place is taken then.
func (p *Places) Acquire(ctx context.Context, tenant string) error {
	w := p.enter(tenant)
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	if !p.leave(tenant, w) {
		p.Release(tenant) // It has come at the same time.
	}
	return context.Cause(ctx)
}

// Release gives a place of the tenant back.
func (p *Places) Release(tenant string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.free++
	p.line.release(tenant)
	p.grant()
}

func (p *Places) enter(tenant string) *waiter {
	p.lock.Lock()
	defer p.lock.Unlock()
	w := &waiter{granted: make(chan struct{})}
	p.line.push(tenant, w)
	p.grant()
	return w
}

// leave gives waiting up, and reports whether it was in time: otherwise the place is theirs.
func (p *Places) leave(tenant string, w *waiter) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.granted(w) {
		return false
	}
	p.line.remove(tenant, w)
	return true
}

func (p *Places) granted(w *waiter) bool {
	select {
	case <-w.granted:
		return true
	default:
		return false
	}
}

// grant gives free places to those who wait.
func (p *Places) grant() {
	for p.free > 0 {
		w, found := p.line.pop()
		if !found {
			return
		}
		p.free--
		close(w.granted)
	}
}
