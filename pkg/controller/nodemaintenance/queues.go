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
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/fairshare"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/rollout"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/clock"
)

// queues have what has changed, by name.
type queues struct {
	// The nodes and maintenances of these are reconciled. They wait for no API call to a node or about a pod, so that the status of a
	// maintenance is current.
	nodeQueue, maintenanceQueue workqueue.TypedRateLimitingInterface[string]
	// writeQueue has the nodes that are to be cordoned, or whose status is to be written, and refreshQueue
	// those where only the counts of pods are outdated.
	writeQueue, refreshQueue workqueue.TypedRateLimitingInterface[string]
}

// minBackoff is the first delay of a key whose sync failed. The usual reason is a conflict with the
// kubelet.
const minBackoff = 10 * time.Millisecond

// newQueue returns a queue of names that uses the given clock.
func newQueue(name string, clock clock.WithTicker) workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		newRateLimiter(),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: name, Clock: clock},
	)
}

// newFlowQueue is newQueue for nodes. Each flow has the same share of the workers: a maintenance of
// three nodes does not wait for one of thousands.
func newFlowQueue(name string, clock clock.WithTicker, flowOf func(string) string) workqueue.TypedRateLimitingInterface[string] {
	queue := fairshare.NewWorkQueue(workqueue.TypedQueueConfig[string]{Name: name, Clock: clock}, func(node string) fairshare.Owner {
		return fairshare.Owner{Flow: flowOf(node)}
	})
	return workqueue.NewTypedRateLimitingQueueWithConfig(newRateLimiter(), workqueue.TypedRateLimitingQueueConfig[string]{
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Name: name, Clock: clock, Queue: queue}),
	})
}

// newRateLimiter returns one without an overall limit: many keys that fail must not delay the first
// retry of another one.
func newRateLimiter() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](minBackoff, pace.MaxRetry)
}

const (
	// slowSync is how long a sync must take to count as hanging, usually because of a webhook.
	slowSync = 2 * time.Second

	// slowInterval is after which time it is tried again if as many others hang as may.
	slowInterval = time.Second

	// slowMemory is how long it is remembered: nobody says when a node is gone for good.
	slowMemory = 10 * time.Minute
)

// slowSyncs keeps the objects of which the last sync was slow from taking all workers.
type slowSyncs struct {
	queue workqueue.TypedRateLimitingInterface[string]
	sync  func(ctx context.Context, name string) error
	clock clock.PassiveClock
	// limit is how many of them are synced at a time.
	limit int

	lock sync.Mutex
	// slow has when the last sync of each of them has ended.
	slow    map[string]time.Time
	running int
}

// limitSlow returns a sync that does the same, but puts objects off that were slow, while as many others are.
func limitSlow(limit int, clock clock.PassiveClock, queue workqueue.TypedRateLimitingInterface[string], sync func(context.Context, string) error) func(context.Context, string) error {
	return (&slowSyncs{queue: queue, sync: sync, clock: clock, limit: limit, slow: map[string]time.Time{}}).do
}

func (s *slowSyncs) do(ctx context.Context, name string) error {
	wasSlow, full := s.begin(name)
	if full {
		s.queue.AddAfter(name, slowInterval)
		return nil
	}
	begun := s.clock.Now()
	defer func() { s.end(name, wasSlow, s.clock.Since(begun) >= slowSync) }()
	return s.sync(ctx, name)
}

func (s *slowSyncs) begin(name string) (wasSlow, full bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if _, found := s.slow[name]; !found {
		return false, false
	}
	if s.running >= s.limit {
		return true, true
	}
	s.running++
	return true, false
}

func (s *slowSyncs) end(name string, wasSlow, isSlow bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if wasSlow {
		s.running--
	}
	delete(s.slow, name)
	if !isSlow {
		return
	}
	now := s.clock.Now()
	s.slow[name] = now
	maps.DeleteFunc(s.slow, func(_ string, at time.Time) bool { return now.Sub(at).Abs() >= slowMemory })
}

const (
	// admissionsKey is the only key in the queue of admissions: they are decided in one place.
	admissionsKey = "admissions"

	// admissionDelay is the time in which changes are collected before admissions are decided: when
	// thousands of nodes change, one decision is about all of them.
	admissionDelay = 50 * time.Millisecond

	// admissionTimeout is how long an admission of a node may take: more than a webhook has by default.
	admissionTimeout = 15 * time.Second
)

// admissions decides on admissions, by its only worker.
type admissions struct {
	queue    workqueue.TypedRateLimitingInterface[string]
	admitter *rollout.Admitter
	// version is what the cache of nodes had reached when the fleet was last brought up to date.
	version string
	// conflicts counts those in a row, by the UIDs of budgets and maintenances. Writes that hang end in the background.
	conflictLock sync.Mutex
	conflicts    map[types.UID]int
}

func newAdmissions(clock clock.WithTicker) *admissions {
	return &admissions{queue: newQueue("nodemaintenance_admissions", clock), conflicts: map[types.UID]int{}}
}

// contended returns the error of a write of a status, but of too many conflicts in a row another one: the cache is not
// behind, and a retry resolves nothing.
func (a *admissions) contended(uid types.UID, err error) error {
	a.conflictLock.Lock()
	defer a.conflictLock.Unlock()
	if !apierrors.IsConflict(err) {
		delete(a.conflicts, uid)
		return err
	}
	if a.conflicts[uid]++; a.conflicts[uid] < write.MaxStatusConflicts {
		return err
	}
	return fmt.Errorf("%d attempts in a row failed, because other clients write it so often, or a webhook refuses it: %v", write.MaxStatusConflicts, err) //nolint:errorlint // It is no conflict any more.
}

// changed has admissions decided again.
func (a *admissions) changed() { a.queue.AddAfter(admissionsKey, admissionDelay) }
