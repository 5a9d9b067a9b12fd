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

package nodemaintenance

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// isWrite tells whether the request changes what controllers act upon. Events are not
// counted: they are sent late and tell people.
func isWrite(request *http.Request) bool {
	return request.Method != http.MethodGet && !strings.Contains(request.URL.Path, "/events")
}

// writeLog keeps what a controller has written, as "PATCH nodes/one/status".
type writeLog struct {
	lock   sync.Mutex
	writes []string
}

var apiPrefix = regexp.MustCompile(`^/apis?/([^/]*\.[^/]*/)?v[^/]*/(namespaces/[^/]*/)?`)

func (l *writeLog) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if isWrite(request) && !strings.Contains(request.URL.Path, "/marker-") {
			l.lock.Lock()
			l.writes = append(l.writes, describeWrite(request))
			l.lock.Unlock()
		}
		return next.RoundTrip(request)
	})
}

func describeWrite(request *http.Request) string {
	return request.Method + " " + apiPrefix.ReplaceAllString(request.URL.Path, "")
}

// all returns the writes in order, without those about the markers of settle.
func (l *writeLog) all() []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	return slices.Clone(l.writes)
}

// count returns how often this was written.
func (l *writeLog) count(write string) int {
	n := 0
	for _, other := range l.all() {
		if other == write {
			n++
		}
	}
	return n
}

// barrier lets one kind of write fail until it is opened.
type barrier struct {
	write  string
	opened atomic.Bool
}

func newBarrier(write string) *barrier { return &barrier{write: write} }

func (b *barrier) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if !b.opened.Load() && describeWrite(request) == b.write {
			return nil, errors.New("the barrier is closed")
		}
		return next.RoundTrip(request)
	})
}

func (b *barrier) open() { b.opened.Store(true) }

// lifeline is a transport through which a controller can be killed at a chosen write:
// from there on none of its requests arrives, as when its process was ended by SIGKILL.
// Nothing that it does on its way out can reach the API server.
type lifeline struct {
	// cutAt is the write at which it is cut, counted from 1; 0 is never.
	cutAt int
	// moment says on which side of the API server the cut is.
	moment moment
	// cut is closed when the line is cut.
	cut chan struct{}

	lock   sync.Mutex
	writes int
	dead   bool
}

// moment is when a controller is killed.
type moment string

const (
	// beforeWrite: the API server never gets the write.
	beforeWrite moment = "before"
	// afterWrite: the API server has done the write; its answer is lost.
	afterWrite moment = "after"
)

var errCut = errors.New("this controller was killed")

func newLifeline(cutAt int, when moment) *lifeline {
	return &lifeline{cutAt: cutAt, moment: when, cut: make(chan struct{})}
}

// wrap returns the lifeline as a transport.
func (l *lifeline) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		last := isWrite(request) && l.count()
		if last && l.moment == beforeWrite {
			l.sever()
		}
		if l.isDead() {
			return nil, errCut
		}
		response, err := next.RoundTrip(request)
		if last {
			l.sever()
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

// count tells whether this write is the one at which the line is to be cut.
func (l *lifeline) count() bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.writes++
	return l.writes == l.cutAt
}

func (l *lifeline) sever() {
	l.lock.Lock()
	defer l.lock.Unlock()
	if !l.dead {
		l.dead = true
		close(l.cut)
	}
}

func (l *lifeline) isDead() bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.dead
}
