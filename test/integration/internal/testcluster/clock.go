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
	"sync/atomic"
	"time"

	evictionrequestregistry "k8s.io/kubernetes/pkg/registry/coordination/evictionrequest"
	"k8s.io/utils/clock"
)

// serverClock is the clock with which all API servers of a process validate times in the status of
// a request. It returns the real time unless it follows another clock.
var serverClock followingClock

// init sets the clock before any server runs, because all servers of a process share the strategy.
func init() { evictionrequestregistry.StatusStrategy.Clock = &serverClock }

type followingClock struct {
	followed atomic.Pointer[clock.PassiveClock]
}

func (f *followingClock) follow(other clock.PassiveClock) { f.followed.Store(&other) }

func (f *followingClock) Now() time.Time {
	if followed := f.followed.Load(); followed != nil {
		return (*followed).Now()
	}
	return time.Now()
}

func (f *followingClock) Since(t time.Time) time.Duration { return f.Now().Sub(t) }

// SetServerTime makes the API servers use this clock until the test ends.
func (c *Cluster) SetServerTime(now clock.PassiveClock) {
	serverClock.follow(now)
	c.T.Cleanup(func() { serverClock.follow(clock.RealClock{}) })
}
