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

	"k8s.io/utils/clock"
)

// Places is a semaphore whose places the tenants share. Those who wait get the places that
// come free at once, the tenants in turn, and each tenant's in their order.
type Places struct {
	lock sync.Mutex
	line *Line[*waiter]
}

// waiter is somebody who waits, or has a place. The channel is closed when the place is theirs.
type waiter struct{ granted chan struct{} }

// NewPlaces returns that many places, of which one tenant may have perTenant. If that is zero,
// no share is bounded.
func NewPlaces(total, perTenant int, clock clock.PassiveClock) *Places {
	p := &Places{line: NewLine[*waiter](clock)}
	p.line.Limit(total, perTenant)
	return p
}

// TryAcquire takes a place for the tenant, which release gives back. It returns nil if there
// is none.
func (p *Places) TryAcquire(tenant string) (release func()) {
	w := p.enter(tenant)
	if p.leave(tenant, w) {
		return nil
	}
	return func() { p.release(w) }
}

// Acquire waits for a place for the tenant, which release gives back. It returns an error if
// the context ends before; no place is taken then.
func (p *Places) Acquire(ctx context.Context, tenant string) (release func(), err error) {
	w := p.enter(tenant)
	select {
	case <-w.granted:
		return func() { p.release(w) }, nil
	case <-ctx.Done():
	}
	if !p.leave(tenant, w) {
		p.release(w) // It has come at the same time.
	}
	return nil, context.Cause(ctx)
}

func (p *Places) release(w *waiter) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.line.Release(w)
	p.grant()
}

func (p *Places) enter(tenant string) *waiter {
	p.lock.Lock()
	defer p.lock.Unlock()
	w := &waiter{granted: make(chan struct{})}
	p.line.Push(tenant, w)
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
	p.line.Remove(tenant, w)
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
	for {
		w, found := p.line.Pop()
		if !found {
			return
		}
		close(w.granted)
	}
}
