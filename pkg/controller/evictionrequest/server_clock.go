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
	"sync/atomic"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/utils/clock"
)

// toleratedSkew is how far the clocks may differ before the difference is corrected. The API server
// tolerates the same difference in reported times.
const toleratedSkew = 10 * time.Second

// serverClock returns the time of the API server, which deadlines and delays use: the server sets
// activationTime and the times of the built-in interceptor, see
// pkg/registry/coordination/evictionrequest. It is the local clock plus an offset that is derived
// from responses of the server. Timers need no correction, because both clocks run at the same
// rate.
type serverClock struct {
	clock.WithTicker
	// offset is added to the local clock, in nanoseconds.
	offset atomic.Int64
}

func newServerClock(local clock.WithTicker) *serverClock { return &serverClock{WithTicker: local} }

// Now returns the time of the API server, as far as known.
func (c *serverClock) Now() time.Time {
	return c.WithTicker.Now().Add(time.Duration(c.offset.Load()))
}

// Since returns the time since then.
func (c *serverClock) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

// observe updates the offset from a time that the server set during a call. began and ended are the
// times of the local clock before and after the call. The offset is zero if the server's time may
// lie within the call, however long that took.
func (c *serverClock) observe(stamp, began, ended time.Time) {
	var offset time.Duration
	switch {
	case stamp.Before(began.Add(-toleratedSkew)):
		offset = stamp.Sub(began)
	case stamp.After(ended.Add(toleratedSkew)):
		offset = stamp.Sub(ended)
	}
	c.offset.Store(int64(offset))
}

// serverStamp returns the time that the API server set in this update of a status.
func serverStamp(before, written *coordinationv1alpha1.EvictionRequestStatus) (stamp time.Time, stamped bool) {
	if activation := written.ActivationTime; activation != nil && !activation.Equal(before.ActivationTime) {
		return activation.Time, true
	}
	old := evictionrequesttools.InterceptorStatusOf(before, coordinationv1alpha1.EvictionInterceptorImperative)
	entry := evictionrequesttools.InterceptorStatusOf(written, coordinationv1alpha1.EvictionInterceptorImperative)
	if old == nil || entry == nil || entry.HeartbeatTime == nil || entry.HeartbeatTime.Equal(old.HeartbeatTime) {
		return time.Time{}, false
	}
	return entry.HeartbeatTime.Time, true
}
