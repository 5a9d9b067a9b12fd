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

package maintenance

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// serverTime is what the answers of the API server say of its clock, which the one of this computer may differ from.
type serverTime struct {
	clock clock.PassiveClock
	// ahead is how far the clock of the server is ahead of the own one; nil before the first answer that says it.
	ahead atomic.Pointer[time.Duration]
}

// now returns the time of the server, to the second, and the own one if that is unknown.
func (t *serverTime) now(own time.Time) (now time.Time, isServerTime bool) {
	if t == nil {
		return own, false
	}
	ahead := t.ahead.Load()
	if ahead == nil {
		return own, false
	}
	return own.Add(*ahead), true
}

// observe returns a transport that notes the time in the answers that pass.
func (t *serverTime) observe(transport http.RoundTripper) http.RoundTripper {
	return &observedTransport{transport, t}
}

type observedTransport struct {
	next http.RoundTripper
	time *serverTime
}

var _ http.RoundTripper = &observedTransport{}

// RoundTrip implements http.RoundTripper.
func (o *observedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		ahead := date.Sub(o.time.clock.Now())
		o.time.ahead.Store(&ahead)
	}
	return response, nil
}

// WrappedRoundTripper lets client-go find what it closes.
func (o *observedTransport) WrappedRoundTripper() http.RoundTripper { return o.next }
