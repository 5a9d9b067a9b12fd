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

package write

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// Failure is a write that did not succeed.
type Failure struct {
	// Message is the latest error of the API server, as it is shown.
	Message string
	// Since is when the write first failed, in seconds, because API fields have no more.
	Since time.Time
	// attempts counts the failures; retryAt is when the next attempt is due.
	attempts int
	retryAt  time.Time
	// refused is whether the API server has ever rejected the write for a permanent reason.
	refused bool
}

// Blocks reports whether the failure is shown as a blocker.
func (f Failure) Blocks() bool { return f.refused || f.attempts >= transientFailures }

// Kind is what a write changes.
type Kind int

const (
	// Cordon and Uncordon set spec.unschedulable of a node.
	Cordon Kind = iota
	Uncordon
	// Status writes status.maintenanceStatus and the conditions of a node.
	Status
	// Taint adds or removes the taint of planned nodes.
	Taint
	// Admission adds admissions to the status of a node.
	Admission
	// Request requests the eviction of a pod, and Withdrawal withdraws that.
	Request
	Withdrawal
	// Escalation is what an escalation does to a pod.
	Escalation
)

// Key identifies a write for a node: what it changes, and the UID of the node or the pod.
type Key struct {
	// Kind is what the write changes.
	Kind Kind
	uid  types.UID
}

// Of returns the key of a write of this kind of a node, or about a pod, with that UID.
func (k Kind) Of(uid types.UID) Key { return Key{k, uid} }

// KeysOf returns the keys of a write for each of the pods.
func KeysOf(kind Kind, pods []*v1.Pod) sets.Set[Key] {
	keys := sets.New[Key]()
	for _, pod := range pods {
		keys.Insert(kind.Of(pod.UID))
	}
	return keys
}

// Failures remembers the failed writes for each node. They delay the next attempts, and are
// published as blockers. After a restart the next attempts add them again: see resume.go of the controller.
type Failures struct {
	lock  sync.Mutex
	nodes map[string]map[Key]Failure
}

// NewFailures returns that no write has failed.
func NewFailures() *Failures { return &Failures{nodes: map[string]map[Key]Failure{}} }

// Nodes names the nodes that have failed writes, sorted.
func (f *Failures) Nodes() []string {
	f.lock.Lock()
	defer f.lock.Unlock()
	return slices.Sorted(maps.Keys(f.nodes))
}

// Get returns the failure of a write, and false if there is none.
func (f *Failures) Get(node string, write Key) (Failure, bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	found, ok := f.nodes[node][write]
	return found, ok
}

// Wait returns the delay before the next attempt.
func (f *Failures) Wait(node string, write Key, now time.Time) time.Duration {
	found, _ := f.Get(node, write)
	return found.Wait(now)
}

// Wait returns the delay before the next attempt; 0 for a write that has not failed.
func (f Failure) Wait(now time.Time) time.Duration {
	return pace.Within(max(f.retryAt.Sub(now), 0), pace.MaxRetry)
}

// Of returns the failed writes for a node, as they are now.
func (f *Failures) Of(node string) map[Key]Failure {
	f.lock.Lock()
	defer f.lock.Unlock()
	return maps.Clone(f.nodes[node])
}

// Failed records that a write has failed, and reports whether it is a blocker from now on. earlier is since when a
// process before has found that; zero if it has not. After a conflict the next attempt is due at once, until the
// conflicts are a blocker; but an escalation, a request that the drain does not want, or what contradicts what the cache
// does not have yet, waits until it has that.
func (f *Failures) Failed(node string, write Key, err error, earlier, now time.Time) (blocks bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.nodes[node] == nil {
		f.nodes[node] = map[Key]Failure{}
	}
	latest, again := f.nodes[node][write]
	if !again {
		latest.Since = pace.Earliest(now.Truncate(time.Second), earlier)
	}
	blocked := latest.Blocks()
	latest.Message = maintenance.Printable(err.Error(), maxMessage)
	latest.refused = latest.refused || !isTransient(err)
	latest.retryAt = now.Add(pace.RetryAfter(latest.attempts))
	latest.attempts++
	// kube-apiserver has seen more than the cache has: another attempt at once would be refused as well.
	waits := write.Kind == Escalation || IsUnseen(err) || apierrors.HasStatusCause(err, coordinationv1alpha1.EvictionNotDrainedCause)
	if apierrors.IsConflict(err) && !latest.Blocks() && !waits {
		latest.retryAt = now
	}
	f.nodes[node][write] = latest
	return latest.Blocks() && !blocked
}

// Succeeded forgets the failure of a write, and reports whether it was a blocker.
func (f *Failures) Succeeded(node string, write Key) (blocked bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	blocked = f.nodes[node][write].Blocks()
	f.drop(node, func(failed Key) bool { return failed == write })
	return blocked
}

// Keep forgets the failures of all other writes for the node.
func (f *Failures) Keep(node string, writes sets.Set[Key]) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.drop(node, func(failed Key) bool { return !writes.Has(failed) })
}

func (f *Failures) drop(node string, drop func(Key) bool) {
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

// unseen is a conflict with what the API server has, and the cache has not. Another attempt finds the same until the
// cache has it, or until that is read again.
type unseen struct{ *apierrors.StatusError }

// NewUnseen returns such a conflict about an object.
func NewUnseen(resource schema.GroupResource, name string, err error) error {
	return unseen{apierrors.NewConflict(resource, name, err)}
}

// IsUnseen reports whether a write was not made because of such a conflict.
func IsUnseen(err error) bool { return errors.As(err, new(unseen)) }

// IsOutdated reports whether a write has failed because an object has changed or is gone since it was decided.
func IsOutdated(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }
