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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
)

const (
	// transientFailures is how often a write may fail for a temporary reason, such as an
	// overloaded API server, before it counts as a blocker.
	transientFailures = 3

	// maxMessage bounds what is kept of an error of the API server, which may contain megabytes
	// from a webhook.
	maxMessage = 512
)

// failure is a write that did not succeed.
type failure struct {
	// message is the latest error of the API server, as it is shown.
	message string
	// since is when the write first failed, in seconds, because API fields have no more.
	since time.Time
	// attempts counts the failures; retryAt is when the next attempt is due.
	attempts int
	retryAt  time.Time
	// refused is whether the API server has ever rejected the write for a permanent reason.
	refused bool
}

// blocks reports whether the failure is shown as a blocker.
func (f failure) blocks() bool { return f.refused || f.attempts >= transientFailures }

// writeKind is what a write changes.
type writeKind int

const (
	writeCordon writeKind = iota
	writeUncordon
	writeStatus
	writeTaint
	writeAdmission
	writeRequest
	writeWithdrawal
	writeEscalation
)

// writeKey identifies a write for a node: what it changes, and the UID of the node or the pod.
type writeKey struct {
	kind writeKind
	uid  types.UID
}

// writeKeys returns the keys of a write for each of the pods.
func writeKeys(kind writeKind, pods []*v1.Pod) sets.Set[writeKey] {
	keys := sets.New[writeKey]()
	for _, pod := range pods {
		keys.Insert(writeKey{kind, pod.UID})
	}
	return keys
}

// failures remembers the failed writes for each node. They delay the next attempts, and are
// published as blockers. After a restart the next attempts add them again: see resume.go.
type failures struct {
	lock  sync.Mutex
	nodes map[string]map[writeKey]failure
}

func newFailures() *failures { return &failures{nodes: map[string]map[writeKey]failure{}} }

// get returns the failure of a write, and false if there is none.
func (f *failures) get(node string, write writeKey) (failure, bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	found, ok := f.nodes[node][write]
	return found, ok
}

// wait returns the delay before the next attempt.
func (f *failures) wait(node string, write writeKey, now time.Time) time.Duration {
	found, ok := f.get(node, write)
	if !ok {
		return 0
	}
	return pace.Within(max(found.retryAt.Sub(now), 0), pace.MaxRetry)
}

// failed records that a write has failed, and reports whether it is a blocker from now on. earlier is since when a
// process before has found that; zero if it has not. After a conflict the next attempt is due at once, until the
// conflicts are a blocker; but an escalation, a request that the drain does not want, or what contradicts what the cache
// does not have yet, waits until it has that.
func (f *failures) failed(node string, write writeKey, err error, earlier, now time.Time) (blocks bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.nodes[node] == nil {
		f.nodes[node] = map[writeKey]failure{}
	}
	latest, again := f.nodes[node][write]
	if !again {
		latest.since = pace.Earliest(now.Truncate(time.Second), earlier)
	}
	blocked := latest.blocks()
	latest.message = maintenance.Printable(err.Error(), maxMessage)
	latest.refused = latest.refused || !isTransient(err)
	latest.retryAt = now.Add(pace.RetryAfter(latest.attempts))
	latest.attempts++
	// kube-apiserver has seen more than the cache has: another attempt at once would be refused as well.
	waits := write.kind == writeEscalation || isUnseen(err) || apierrors.HasStatusCause(err, coordinationv1alpha1.EvictionNotDrainedCause)
	if apierrors.IsConflict(err) && !latest.blocks() && !waits {
		latest.retryAt = now
	}
	f.nodes[node][write] = latest
	return latest.blocks() && !blocked
}

// succeeded forgets the failure of a write, and reports whether it was a blocker.
func (f *failures) succeeded(node string, write writeKey) (blocked bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	blocked = f.nodes[node][write].blocks()
	f.drop(node, func(failed writeKey) bool { return failed == write })
	return blocked
}

// keep forgets the failures of all other writes for the node.
func (f *failures) keep(node string, writes sets.Set[writeKey]) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.drop(node, func(failed writeKey) bool { return !writes.Has(failed) })
}

func (f *failures) drop(node string, drop func(writeKey) bool) {
	for write := range f.nodes[node] {
		if drop(write) {
			delete(f.nodes[node], write)
		}
	}
	if len(f.nodes[node]) == 0 {
		delete(f.nodes, node)
	}
}

// isTransient reports whether an error says nothing about the object that was written: the same
// write may succeed a moment later without an intervention.
func isTransient(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || // The network failed, or no response came in time.
		errors.Is(err, context.DeadlineExceeded) ||
		apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}
