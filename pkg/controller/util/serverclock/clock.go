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

// Package serverclock tells controllers the time of kube-apiserver. What they store, and compare with times
// that others have stored, must not depend on the clock of the machine on which the current leader runs.
package serverclock

import (
	"net/http"
	"sync/atomic"
	"time"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// toleratedSkew is how far the clocks may differ before the difference is corrected. The API server
// tolerates the same difference in times that are reported to it.
const toleratedSkew = 10 * time.Second

// Clock returns the time of the API server, as far as known: the local time plus an offset that is derived
// from responses of the server. Before the first one, it is the local time. Timers need no correction,
// because both clocks run at the same rate; the local clock is the embedded one.
type Clock struct {
	clock.WithTicker
	// offset is added to the local clock, in nanoseconds.
	offset atomic.Int64
}

// New returns a clock that is derived from the local one.
func New(local clock.WithTicker) *Clock { return &Clock{WithTicker: local} }

// Now returns the time of the API server, without the reading of a monotonic clock: if the local clock is set,
// the offset changes, and times from before remain comparable.
func (c *Clock) Now() time.Time { return c.at(c.WithTicker.Now()) }

// at returns the time of the API server at a local time.
func (c *Clock) at(local time.Time) time.Time {
	return local.Round(0).Add(time.Duration(c.offset.Load()))
}

// Since returns the time since then.
func (c *Clock) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

// Observe updates the offset from a time that the server set during a call. began and ended are the
// times of the local clock before and after the call. The offset stays as it is if it agrees with that,
// however long the call took, and it is zero if the local time does.
func (c *Clock) Observe(stamp, began, ended time.Time) {
	before := c.offset.Load()
	var offset time.Duration
	switch {
	case agrees(stamp, c.at(began), c.at(ended)):
		return
	case agrees(stamp, began, ended): // The local time is right.
	case stamp.Before(began):
		offset = stamp.Sub(began)
	default:
		offset = stamp.Sub(ended)
	}
	if c.offset.CompareAndSwap(before, int64(offset)) {
		klog.Background().V(2).Info("The local clock differs from that of kube-apiserver, or was set", "ahead", -offset)
	}
}

// agrees reports whether a call in which the server has set the time may have lasted from began to ended.
func agrees(stamp, began, ended time.Time) bool {
	return !stamp.Before(began.Add(-toleratedSkew)) && !stamp.After(ended.Add(toleratedSkew))
}

// Transport wraps the transport of a client: each answer of kube-apiserver says what time it is there.
func (c *Clock) Transport(transport http.RoundTripper) http.RoundTripper {
	return &observer{clock: c, transport: transport}
}

type observer struct {
	clock     *Clock
	transport http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (o *observer) RoundTrip(request *http.Request) (*http.Response, error) {
	began := o.clock.WithTicker.Now()
	response, err := o.transport.RoundTrip(request)
	if err != nil {
		return response, err
	}
	// What a proxy answers itself has no ID of an audit.
	if response.Header.Get(auditinternal.HeaderAuditID) != "" {
		if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			o.clock.Observe(date, began, o.clock.WithTicker.Now())
		}
	}
	return response, nil
}

// WrappedRoundTripper implements k8s.io/apimachinery/pkg/util/net.RoundTripperWrapper.
func (o *observer) WrappedRoundTripper() http.RoundTripper { return o.transport }
