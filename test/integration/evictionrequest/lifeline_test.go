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

package evictionrequest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// lifeline is a transport through which a controller can be killed at a chosen write:
// from there on none of its requests arrives, as when its process was ended by SIGKILL.
// Nothing that it does on its way out can reach the API server.
type lifeline struct {
	// cutAt is the write at which it is cut, counted from 1; 0 is never.
	cutAt int
	// moment says on which side of the API server the cut is.
	moment    moment
	evictions *evictionCounter
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

func newLifeline(cutAt int, when moment, evictions *evictionCounter) *lifeline {
	return &lifeline{cutAt: cutAt, moment: when, evictions: evictions, cut: make(chan struct{})}
}

// wrap returns the lifeline as a transport.
func (l *lifeline) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		last := l.count(request)
		if last && l.moment == beforeWrite {
			l.sever()
		}
		if l.isDead() {
			return nil, errCut
		}
		response, err := next.RoundTrip(request)
		if err == nil && isEviction(request) {
			err = l.evictions.count(request, response)
		}
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

// count tells whether this request is the write at which the line is to be cut.
// Events are not counted: they are sent late and tell people, not controllers.
func (l *lifeline) count(request *http.Request) bool {
	if request.Method == http.MethodGet || strings.Contains(request.URL.Path, "/events") {
		return false
	}
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

// wasCut tells whether the controller ever came to the write.
func (l *lifeline) wasCut() bool {
	select {
	case <-l.cut:
		return true
	default:
		return false
	}
}

// evictionCounter counts the evictions that the API server has accepted, by the name
// of the pod, whoever asked for them.
type evictionCounter struct {
	lock     sync.Mutex
	accepted map[string]int
}

func newEvictionCounter() *evictionCounter { return &evictionCounter{accepted: map[string]int{}} }

// isEviction tells whether the request goes to the eviction subresource of a pod.
func isEviction(request *http.Request) bool {
	return request.Method == http.MethodPost && path.Base(request.URL.Path) == "eviction"
}

// count reads the answer to an eviction, and leaves it to be read again. The status
// code is not enough: the subresource reports some failures in the body of a 201.
func (e *evictionCounter) count(request *http.Request, response *http.Response) error {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	if response.StatusCode != http.StatusCreated {
		return nil
	}
	answer, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), body)
	if err != nil {
		return err
	}
	if status, ok := answer.(*metav1.Status); ok && status.Status == metav1.StatusSuccess {
		e.lock.Lock()
		defer e.lock.Unlock()
		e.accepted[path.Base(path.Dir(request.URL.Path))]++
	}
	return nil
}

// of returns how often the eviction of a pod was accepted.
func (e *evictionCounter) of(pod string) int {
	e.lock.Lock()
	defer e.lock.Unlock()
	return e.accepted[pod]
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
