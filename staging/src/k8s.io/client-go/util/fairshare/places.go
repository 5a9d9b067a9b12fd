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
	line *Line[*Place]
}

// Place is what one waits for, and has until Release.
type Place struct {
	places *Places
	// granted is closed when there is a place.
	granted chan struct{}
}

// Begin says that the work begins for which the place is. It counts from then on how long that
// takes. Only the first call has an effect.
func (p *Place) Begin() {
	p.places.lock.Lock()
	defer p.places.lock.Unlock()
	p.places.line.Begin(p)
}

// Release gives the place back. Only the first call has an effect.
func (p *Place) Release() {
	p.places.lock.Lock()
	defer p.places.lock.Unlock()
	p.places.line.Release(p)
	p.places.grant()
}

// NewPlaces returns that many places, of which one tenant may have perTenant. If that is zero,
// no share is bounded.
func NewPlaces(total, perTenant int, clock clock.PassiveClock) *Places {
	p := &Places{line: NewLine[*Place](clock)}
	p.line.Limit(total, perTenant)
	return p
}

// TryAcquire takes a place for the tenant. It returns nil if there is none.
func (p *Places) TryAcquire(tenant string) *Place {
	place := p.enter(tenant)
	if p.leave(tenant, place) {
		return nil
	}
	return place
}

// Acquire waits for a place for the tenant. It returns an error if the context ends before; no
// place is taken then.
func (p *Places) Acquire(ctx context.Context, tenant string) (*Place, error) {
	place := p.enter(tenant)
	select {
	case <-place.granted:
		return place, nil
	case <-ctx.Done():
	}
	if !p.leave(tenant, place) {
		place.Release() // It has come at the same time.
	}
	return nil, context.Cause(ctx)
}

func (p *Places) enter(tenant string) *Place {
	p.lock.Lock()
	defer p.lock.Unlock()
	place := &Place{places: p, granted: make(chan struct{})}
	p.line.Push(tenant, place)
	p.grant()
	return place
}

// leave gives waiting up, and reports whether it was in time: otherwise the place is theirs.
func (p *Places) leave(tenant string, place *Place) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	select {
	case <-place.granted:
		return false
	default:
		p.line.Remove(tenant, place)
		return true
	}
}

// grant gives free places to those who wait.
func (p *Places) grant() {
	for {
		place, found := p.line.Pop()
		if !found {
			return
		}
		close(place.granted)
	}
}
