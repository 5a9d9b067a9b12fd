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
	"context"
	"errors"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
)

const (
	// firstRetry is how long a write that failed waits for its first repetition. The wait
	// doubles with each failure up to maxRetry: who lifts a quota does not wait for long.
	firstRetry = time.Second
	maxRetry   = 30 * time.Second

	// transientFailures is how often a write may fail for a reason that passes, such as an
	// overloaded API server, before it counts as a blocker.
	transientFailures = 3

	// maxMessage is how much is kept of what the API server says, which may repeat megabytes of a
	// webhook. No more of it is shown.
	maxMessage = 512
)

// failure is a write that did not succeed.
type failure struct {
	// message is what the API server said last, as it is shown.
	message string
	// since is when the write failed first. In seconds, as the API has it.
	since time.Time
	// attempts counts the failures; retryAt is when the next attempt is due.
	attempts int
	retryAt  time.Time
	// refused is whether the API server has once refused the write for good.
	refused bool
}

// blocks reports whether the failure is shown as a blocker.
func (f failure) blocks() bool { return f.refused || f.attempts >= transientFailures }

// failures remembers, for each node, which writes for it failed: its own cordon, the requests of
// its pods, by UID, the end of its cordon, by uncordonOf, its status, by statusOf, and the
// withdrawals, by withdrawalOf. It spaces the attempts of each, and is what the status says about
// them. After a restart the next attempts fill it again.
type failures struct {
	lock  sync.Mutex
	nodes map[string]map[types.UID]failure
}

func newFailures() *failures { return &failures{nodes: map[string]map[types.UID]failure{}} }

// get returns the failure of the object with that UID, and false if there is none.
func (f *failures) get(node string, uid types.UID) (failure, bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	found, ok := f.nodes[node][uid]
	return found, ok
}

// wait returns how long the next attempt has to wait.
func (f *failures) wait(node string, uid types.UID, now time.Time) time.Duration {
	found, ok := f.get(node, uid)
	if !ok {
		return 0
	}
	return max(found.retryAt.Sub(now), 0)
}

// failed notes that a write for the object has failed, and tells whether it blocks from now on.
// Until then what has changed meanwhile is tried again at once.
func (f *failures) failed(node string, uid types.UID, err error, now time.Time) (blocks bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.nodes[node] == nil {
		f.nodes[node] = map[types.UID]failure{}
	}
	latest, again := f.nodes[node][uid]
	if !again {
		latest.since = now.Truncate(time.Second)
	}
	blocked := latest.blocks()
	latest.message = maintenance.Printable(err.Error(), maxMessage)
	latest.refused = latest.refused || !isTransient(err)
	latest.retryAt = now.Add(retryAfter(latest.attempts))
	latest.attempts++
	if apierrors.IsConflict(err) && !latest.blocks() {
		latest.retryAt = now
	}
	f.nodes[node][uid] = latest
	return latest.blocks() && !blocked
}

// retryAfter returns how long to wait after that many earlier failures.
func retryAfter(earlier int) time.Duration {
	wait := firstRetry
	for range earlier {
		if wait *= 2; wait >= maxRetry {
			return maxRetry
		}
	}
	return wait
}

// succeeded forgets the failure of an object, and tells whether it was a blocker.
func (f *failures) succeeded(node string, uid types.UID) (blocked bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	blocked = f.nodes[node][uid].blocks()
	f.drop(node, func(failed types.UID) bool { return failed == uid })
	return blocked
}

// keep forgets the failures of all objects of the node but these.
func (f *failures) keep(node string, uids sets.Set[types.UID]) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.drop(node, func(failed types.UID) bool { return !uids.Has(failed) })
}

func (f *failures) drop(node string, drop func(types.UID) bool) {
	for uid := range f.nodes[node] {
		if drop(uid) {
			delete(f.nodes[node], uid)
		}
	}
	if len(f.nodes[node]) == 0 {
		delete(f.nodes, node)
	}
}

// uncordonOf names the end of the cordon of a node.
func uncordonOf(node types.UID) types.UID { return "uncordon of " + node }

// statusOf names the status of a node.
func statusOf(node types.UID) types.UID { return "status of " + node }

// withdrawalOf names the withdrawal of the request of a pod.
func withdrawalOf(pod types.UID) types.UID { return "withdrawal of " + pod }

func withdrawalsOf(pods []*v1.Pod) sets.Set[types.UID] {
	names := sets.New[types.UID]()
	for _, pod := range pods {
		names.Insert(withdrawalOf(pod.UID))
	}
	return names
}

// isTransient reports whether an error says nothing about the object that was written: the
// same write may succeed a moment later without an intervention.
func isTransient(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || // The network, or the end of the wait for a response.
		errors.Is(err, context.DeadlineExceeded) ||
		apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}
