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

package podpicker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/fairshare"
	"k8s.io/utils/clock"
)

const (
	// maxStay is how long a question may have a place. Then it goes on without one, as a slow question:
	// attempts of 30 seconds, in as many namespaces as there are places, would use up the time of all
	// others. It is the default of timeoutSeconds: with 20 places, of which new namespaces may have 15, the
	// first questions of 40 namespaces are asked within three seconds.
	maxStay = time.Second

	// slowPerPlace is how many slow questions there may be for each place. Each may hold an answer of
	// MaxBodyBytes. If they begin as fast as places allow, they have at least so many seconds.
	slowPerPlace = 5

	// firstPerHost is how many questions are asked at a time at a host whose speed is not known.
	firstPerHost = 2
)

// errGaveWay is why an attempt ends when there are too many slow questions.
var errGaveWay = errors.New("no answer, and too many other pickers are slow at the same time")

// places bounds how many pickers are asked at a time: in all, for a namespace, and at a host.
type places struct {
	shared *fairshare.Places
	// perHost is the maximum for a host, and maxSlow that of slow questions.
	perHost, maxSlow int

	lock  sync.Mutex
	hosts map[string]*host
	// slow are the stays that go on without a place, the oldest first.
	slow []*stay
}

// newPlaces returns so many places. A namespace whose pickers answer quickly may have half of them,
// others get fewer, see fairshare.
func newPlaces(total int) *places {
	most := max(1, total/2)
	return &places{
		shared:  fairshare.NewPlaces(total, most, clock.RealClock{}).SlowAfter(maxStay),
		perHost: most, maxSlow: slowPerPlace * total,
		hosts: map[string]*host{},
	}
}

// stay is the time for which a question has a place, and is slow afterwards.
type stay struct {
	places    *places
	namespace string
	place     *fairshare.Place
	leaves    *time.Timer
	// cancel ends the context of the stay.
	cancel context.CancelCauseFunc
	// slow is whether it has no place any more, and ended whether end was called.
	slow, ended bool
}

// begin waits for a place. The context that it returns ends with the stay.
func (p *places) begin(ctx context.Context, namespace string) (*stay, context.Context, error) {
	place, err := p.shared.Acquire(ctx, namespace)
	if err != nil {
		return nil, nil, err
	}
	place.Begin()
	s := &stay{places: p, namespace: namespace, place: place}
	staying, cancel := context.WithCancelCause(ctx)
	s.cancel = cancel
	s.leaves = time.AfterFunc(maxStay, s.leave)
	return s, staying, nil
}

// leave gives the place up. If there are too many slow questions then, the oldest one of the namespace
// that has most of them ends.
func (s *stay) leave() {
	s.places.lock.Lock()
	if s.ended {
		s.places.lock.Unlock()
		return
	}
	s.slow = true
	s.places.slow = append(s.places.slow, s)
	if len(s.places.slow) > s.places.maxSlow {
		s.places.endOne()
	}
	s.places.lock.Unlock()
	s.place.Leave() // Without effect if it has ended in between.
}

func (p *places) endOne() {
	count := map[string]int{}
	for _, s := range p.slow {
		count[s.namespace]++
	}
	ends := p.slow[0]
	for _, s := range p.slow {
		if count[s.namespace] > count[ends.namespace] {
			ends = s
		}
	}
	p.remove(ends)
	ends.cancel(errGaveWay)
}

func (p *places) remove(s *stay) {
	if i := slices.Index(p.slow, s); i >= 0 {
		p.slow = slices.Delete(p.slow, i, i+1)
	}
}

// isOver reports whether another attempt needs another place.
func (s *stay) isOver() bool {
	s.places.lock.Lock()
	defer s.places.lock.Unlock()
	return s.slow
}

// end ends the stay. Further calls have no effect.
func (s *stay) end() {
	s.leaves.Stop()
	s.places.lock.Lock()
	s.ended = true
	s.places.remove(s)
	s.places.lock.Unlock()
	s.cancel(nil)
	s.place.Release()
}

// host counts those who ask a picker, or wait for that.
type host struct {
	// limit is how many may ask it. It follows its speed, see observe.
	limit, asking int
	waiting       []chan struct{}
	// best is the shortest time of an answer. It grows slowly, so that an old one loses its weight.
	best time.Duration
}

// enterHost waits until the host has a place.
func (p *places) enterHost(ctx context.Context, name string) (leave func(), err error) {
	p.lock.Lock()
	h := p.hosts[name]
	if h == nil {
		h = &host{limit: min(firstPerHost, p.perHost)}
		p.hosts[name] = h
	}
	entered := make(chan struct{})
	h.waiting = append(h.waiting, entered)
	h.admit()
	p.lock.Unlock()
	leave = sync.OnceFunc(func() {
		p.lock.Lock()
		defer p.lock.Unlock()
		if i := slices.Index(h.waiting, entered); i >= 0 {
			h.waiting = slices.Delete(h.waiting, i, i+1)
		} else {
			h.asking--
		}
		h.admit()
		if h.asking+len(h.waiting) == 0 {
			delete(p.hosts, name)
		}
	})
	select {
	case <-entered:
		return leave, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

// admit lets those enter who waited longest.
func (h *host) admit() {
	for len(h.waiting) > 0 && h.asking < h.limit {
		close(h.waiting[0])
		h.waiting = slices.Delete(h.waiting, 0, 1)
		h.asking++
	}
}

// observe changes the limit of a host after an attempt: one more as long as its answers are as quick as
// when it was asked less, one less when they take twice as long, because it then answers one after the
// other, and half as many after a failure.
func (p *places) observe(name string, took time.Duration, failed bool) {
	const noise = 20 * time.Millisecond
	p.lock.Lock()
	defer p.lock.Unlock()
	h := p.hosts[name]
	switch {
	case h == nil:
		return
	case failed:
		h.limit = max(1, h.limit/2)
		return
	case h.best == 0 || took < h.best:
		h.best = took
	default:
		h.best += (took - h.best) / 64
	}
	switch {
	case took <= h.best*3/2+noise:
		h.limit = min(h.limit+1, p.perHost)
	case took > h.best*2-h.best/8+noise:
		h.limit = max(1, h.limit-1)
	}
	h.admit()
}
