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

// Package statusfailures has the EvictionRequests whose status the evictionrequest-controller cannot write, such as
// because a webhook refuses it. No object can say so: who waits for the evictions finds it here.
package statusfailures

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/cachestate"
)

const (
	// firstPause is for how long nothing is written after a failure, whatever happens. It doubles with each failure
	// up to maxPause, which is short: who repairs a webhook expects a result, and a pod may just be gone.
	firstPause = time.Second
	maxPause   = 10 * time.Second

	// limit is how many failures of a write are more than an incident.
	limit = 3
)

// Failure is that the status of a request cannot be written.
type Failure struct {
	// Message is the last answer of the API server.
	Message string
	// Since is when the first attempt has failed, in seconds, because API fields have no more.
	Since time.Time
	// attempts counts those that have failed in succession, and notBefore is when the next one may follow.
	attempts  int
	notBefore time.Time
}

// Blocks reports whether it is more than an incident.
func (f Failure) Blocks() bool { return f.attempts >= limit }

// Failures are those of all requests. It is safe for concurrent use. It is only in memory: after a restart, the next
// attempts find the same.
type Failures struct {
	lock     sync.Mutex
	requests map[types.NamespacedName]Failure
	// changed is called for a request that is blocked from now on, or not any more.
	changed func(request types.NamespacedName)
}

// New returns Failures that nobody shares.
func New() *Failures {
	return &Failures{requests: map[types.NamespacedName]Failure{}, changed: func(types.NamespacedName) {}}
}

// Of returns the Failures of a cache of requests. All controllers of a process that share the cache share them.
func Of(requests cache.Indexer) (*Failures, error) {
	return cachestate.Of(requests, "statusfailures.Failures", New)
}

// OnChange sets what is called for a request that is blocked from now on, or not any more.
func (f *Failures) OnChange(changed func(request types.NamespacedName)) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.changed = changed
}

// Failed records that the API server has refused a write, or not answered. It reports whether it is a blocker from now on.
func (f *Failures) Failed(request types.NamespacedName, message string, now time.Time) (blocks bool) {
	f.lock.Lock()
	found, again := f.requests[request]
	if !again {
		found.Since = now.Truncate(time.Second)
	}
	pause := firstPause
	for range found.attempts {
		pause = min(2*pause, maxPause)
	}
	blocked := found.Blocks()
	found.attempts++
	found.Message, found.notBefore = message, now.Add(pause)
	f.requests[request] = found
	changed := f.changed
	f.lock.Unlock()
	if blocks = found.Blocks() && !blocked; blocks {
		changed(request)
	}
	return blocks
}

// Ended records that the write has succeeded, or that there is nothing to write.
func (f *Failures) Ended(request types.NamespacedName) {
	f.lock.Lock()
	blocked := f.requests[request].Blocks()
	delete(f.requests, request)
	changed := f.changed
	f.lock.Unlock()
	if blocked {
		changed(request)
	}
}

// Wait returns for how long the status of the request must not be written.
func (f *Failures) Wait(request types.NamespacedName, now time.Time) time.Duration {
	f.lock.Lock()
	defer f.lock.Unlock()
	wait := f.requests[request].notBefore.Sub(now)
	if wait <= 0 || wait > maxPause { // The clock may have been set back.
		return 0
	}
	return wait
}

// Get returns why the status of the request cannot be written, and false if it can, or that may be an incident.
func (f *Failures) Get(request types.NamespacedName) (Failure, bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	found := f.requests[request]
	return found, found.Blocks()
}

// Resume records that another process has found the failure earlier.
func (f *Failures) Resume(request types.NamespacedName, earlier time.Time) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if found, is := f.requests[request]; is && earlier.Before(found.Since) {
		found.Since = earlier
		f.requests[request] = found
	}
}
