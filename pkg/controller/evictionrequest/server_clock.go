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
	"k8s.io/utils/clock"
)

// toleratedSkew is how far the clocks may be apart before that is corrected. The API
// server allows as much in times that are reported to it.
const toleratedSkew = 10 * time.Second

// serverClock shows the time of the API server, by which deadlines and delays count: it
// sets activationTime and the times of the built-in interceptor, see
// pkg/registry/coordination/evictionrequest. It is the controller's own clock, corrected
// by what the server's answers show. Timers need no correction: both clocks are equally
// fast.
type serverClock struct {
	clock.WithTicker
	// offset is what has to be added to the own clock, in nanoseconds.
	offset atomic.Int64
}

func newServerClock(own clock.WithTicker) *serverClock { return &serverClock{WithTicker: own} }

// Now returns the time of the API server as far as it is known.
func (c *serverClock) Now() time.Time {
	return c.WithTicker.Now().Add(time.Duration(c.offset.Load()))
}

// Since returns the time that has passed since then.
func (c *serverClock) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

// observe learns from a time that the server has set while it answered a call, which
// lasted from the one to the other time of the own clock. However long the call took,
// clocks that agree are taken to agree.
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

// serverStamp returns the time that the API server has set in this update of a status.
func serverStamp(before, written *coordinationv1alpha1.EvictionRequestStatus) (stamp time.Time, stamped bool) {
	if activation := written.ActivationTime; activation != nil && !activation.Equal(before.ActivationTime) {
		return activation.Time, true
	}
	old := interceptorStatus(before, coordinationv1alpha1.EvictionInterceptorImperative)
	entry := interceptorStatus(written, coordinationv1alpha1.EvictionInterceptorImperative)
	if old == nil || entry == nil || entry.HeartbeatTime == nil || entry.HeartbeatTime.Equal(old.HeartbeatTime) {
		return time.Time{}, false
	}
	return entry.HeartbeatTime.Time, true
}
