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
	"time"

	"k8s.io/utils/clock"
)

// Places is a semaphore whose places are shared between tenants. A free place is assigned
// immediately: the tenants take turns, and the goroutines of one tenant keep their order.
type Places struct {
	lock sync.Mutex
	line *Line[*Place]
}

// Place is a place of a tenant. It is held until Release.
type Place struct {
	places *Places
	// acquired is closed when the place is assigned.
	acquired chan struct{}
}

// Begin starts to measure the duration of the work for which the place was acquired. Only the first
// call has an effect.
func (p *Place) Begin() {
	p.places.lock.Lock()
	defer p.places.lock.Unlock()
	p.places.line.Begin(p)
}

// Release releases the place. Only the first call has an effect.
func (p *Place) Release() {
	p.places.lock.Lock()
	defer p.places.lock.Unlock()
	p.places.line.Release(p)
	p.places.assign()
}

// Leave gives up the place, and the work goes on: others get the place, and the tenant is slow until
// Release.
func (p *Place) Leave() {
	p.places.lock.Lock()
	defer p.places.lock.Unlock()
	p.places.line.Leave(p)
	p.places.assign()
}

// NewPlaces returns a semaphore with total places, of which one tenant may have perTenant. If
// perTenant is zero, only the total is limited.
func NewPlaces(total, perTenant int, clock clock.PassiveClock) *Places {
	p := &Places{line: NewLine[*Place](clock)}
	p.line.Limit(total, perTenant)
	return p
}

// SlowAfter sets how long an item takes that makes its tenant slow. It must be called before the first
// place is acquired.
func (p *Places) SlowAfter(duration time.Duration) *Places {
	p.line.slowAfter = duration
	return p
}

// Limit changes the numbers that NewPlaces has set. Places that are held are kept.
func (p *Places) Limit(total, perTenant int) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.line.Limit(total, perTenant)
	p.assign()
}

// TryAcquire acquires a place for the tenant. It returns nil if none is free.
func (p *Places) TryAcquire(tenant string) *Place {
	place := p.enqueue(tenant)
	if p.cancel(place) {
		return nil
	}
	return place
}

// Acquire waits for a place for the tenant. If the context is done first, it returns an error and
// holds no place.
func (p *Places) Acquire(ctx context.Context, tenant string) (*Place, error) {
	place := p.enqueue(tenant)
	select {
	case <-place.acquired:
		return place, nil
	case <-ctx.Done():
	}
	if !p.cancel(place) {
		place.Release() // It was assigned at the same time.
	}
	return nil, context.Cause(ctx)
}

func (p *Places) enqueue(tenant string) *Place {
	p.lock.Lock()
	defer p.lock.Unlock()
	place := &Place{places: p, acquired: make(chan struct{})}
	p.line.Push(Owner{Tenant: tenant}, place)
	p.assign()
	return place
}

// cancel stops waiting. It returns false if the place was already assigned.
func (p *Places) cancel(place *Place) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	select {
	case <-place.acquired:
		return false
	default:
		p.line.Remove(place)
		return true
	}
}

// assign assigns free places to waiting goroutines.
func (p *Places) assign() {
	for {
		place, found := p.line.Pop()
		if !found {
			return
		}
		close(place.acquired)
	}
}
