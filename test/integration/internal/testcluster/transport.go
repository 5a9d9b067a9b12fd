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

package testcluster

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// RoundTripper adapts a function to http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

func (f RoundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// IsWrite reports whether the request changes objects on which controllers act. Events do not
// count: they are sent asynchronously and are only for users.
func IsWrite(request *http.Request) bool {
	return request.Method != http.MethodGet && !strings.Contains(request.URL.Path, "/events")
}

// Lifeline is a transport through which controllers can be killed at a chosen write: from then on,
// none of their requests reaches the API server, as after SIGKILL. This includes requests that they
// make while they shut down.
type Lifeline struct {
	// cutAt is the write at which the line is cut, counted from 1; 0 means never.
	cutAt int
	// moment defines whether the write at which the line is cut reaches the API server.
	moment Moment
	// cut is closed when the line is cut.
	cut chan struct{}

	lock   sync.Mutex
	writes int
	dead   bool
}

// Moment is whether controllers are killed before or after a write.
type Moment string

const (
	// BeforeWrite: the API server does not get the write.
	BeforeWrite Moment = "before"
	// AfterWrite: the API server has executed the write, but the response is lost.
	AfterWrite Moment = "after"
)

var errCut = errors.New("this controller was killed")

// NewLifeline returns a line that is cut at the given write.
func NewLifeline(cutAt int, when Moment) *Lifeline {
	return &Lifeline{cutAt: cutAt, moment: when, cut: make(chan struct{})}
}

// Wrap returns the lifeline as a transport.
func (l *Lifeline) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(request *http.Request) (*http.Response, error) {
		last := IsWrite(request) && l.count()
		if last && l.moment == BeforeWrite {
			l.Sever()
		}
		if l.isDead() {
			return nil, errCut
		}
		response, err := next.RoundTrip(request)
		if last {
			l.Sever()
		}
		if l.isDead() {
			if response != nil {
				response.Body.Close()
			}
			return nil, errCut
		}
		return response, err
	})
}

// Cut returns a channel that is closed when the line is cut.
func (l *Lifeline) Cut() <-chan struct{} { return l.cut }

// WasCut reports whether the line was cut.
func (l *Lifeline) WasCut() bool {
	select {
	case <-l.cut:
		return true
	default:
		return false
	}
}

// Writes returns how many writes were sent.
func (l *Lifeline) Writes() int {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.writes
}

// count reports whether this write is the one at which to cut the line.
func (l *Lifeline) count() bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.writes++
	return l.writes == l.cutAt
}

// Sever cuts the line now.
func (l *Lifeline) Sever() {
	l.lock.Lock()
	defer l.lock.Unlock()
	if !l.dead {
		l.dead = true
		close(l.cut)
	}
}

func (l *Lifeline) isDead() bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.dead
}

// Barrier fails the requests that match while it is closed.
type Barrier struct {
	match  func(*http.Request) bool
	closed atomic.Bool
}

// NewBarrier returns an open barrier.
func NewBarrier(match func(*http.Request) bool) *Barrier { return &Barrier{match: match} }

// Close makes matching requests fail, and Open lets them pass again.
func (b *Barrier) Close() { b.closed.Store(true) }
func (b *Barrier) Open()  { b.closed.Store(false) }

var errBarrier = errors.New("the barrier is closed")

// Wrap returns the barrier as a transport.
func (b *Barrier) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(request *http.Request) (*http.Response, error) {
		if b.closed.Load() && b.match(request) {
			return nil, errBarrier
		}
		return next.RoundTrip(request)
	})
}
