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

package requests

import (
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/fairshare"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/clock"
)

const (
	// Workers is how many requests are written at a time, which the rate limits of the
	// client allow.
	Workers = 80

	// One in NamespaceShare of the workers may work for one namespace, because a tenant may have a
	// slow webhook there. The package fairshare limits slow namespaces further.
	NamespaceShare = 4
)

// Write is one write that is due: to request the eviction of a pod, to withdraw that, or what
// an escalation does to the pod.
type Write struct {
	Namespace, Pod, Node string
	UID                  types.UID
	Withdraw             bool
	// Act is what an escalation does to the pod instead; "" for requests and withdrawals.
	Act v1.MaintenanceEscalation
}

// Queue has the writes that are due, by maintenance and namespace. The next write is for a
// maintenance with the fewest running, and there of a namespace with the fewest running. So a drain
// of three nodes does not wait for one of thousands, and slow writes delay only their own namespace.
// Withdrawals go first, because an administrator waits for them. Only the sync of a node adds or removes waiting
// writes, also those that have failed. At most one write for a pod exists at a time.
type Queue struct {
	lock sync.Mutex
	// changed is signaled when a write may have become ready: to one worker, which signals the
	// next one.
	changed *sync.Cond
	line    *fairshare.Line[*Write]
	nodes   map[string]*nodeWrites
	closed  bool
}

// nodeWrites are the writes of one node, by pod.
type nodeWrites struct {
	waiting map[types.UID]*Write
	running map[types.UID]*runningWrite
}

// runningWrite is a write that a worker has taken.
type runningWrite struct {
	*Write
	// causes are the maintenances that want it; nil until the worker has read them.
	causes []string
}

// Key identifies the write among the failures.
func (w Write) Key() write.Key {
	switch {
	case w.Withdraw:
		return write.Withdrawal.Of(w.UID)
	case w.Act != "":
		return write.Escalation.Of(w.UID)
	}
	return write.Request.Of(w.UID)
}

func NewQueue(workers int, clock clock.PassiveClock) *Queue {
	q := &Queue{line: fairshare.NewLine[*Write](clock), nodes: map[string]*nodeWrites{}}
	q.line.Limit(workers, workers/NamespaceShare)
	q.changed = sync.NewCond(&q.lock)
	return q
}

// Set makes these the waiting writes of the node, in the flow of a maintenance: the first one of each
// pod. Those that wait already keep their places, and pods with a running write are left out: see done.
func (q *Queue) Set(node, flow string, writes []Write) {
	q.lock.Lock()
	defer q.lock.Unlock()
	wanted := make(map[types.UID]Write, len(writes))
	for _, w := range writes {
		if _, found := wanted[w.UID]; !found {
			wanted[w.UID] = w
		}
	}
	q.drop(node, func(w Write) bool { return wanted[w.UID] != w })
	for _, w := range writes {
		q.add(flow, w)
	}
}

// DropRequests removes the waiting requests of the node, but not its withdrawals, and reports
// whether a request is running.
func (q *Queue) DropRequests(node string) (running bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.drop(node, func(w Write) bool { return !w.Withdraw })
	if writes := q.nodes[node]; writes != nil {
		for _, w := range writes.running {
			running = running || !w.Withdraw
		}
	}
	return running
}

func (q *Queue) add(flow string, w Write) {
	writes := q.nodes[w.Node]
	if writes == nil {
		writes = &nodeWrites{waiting: map[types.UID]*Write{}, running: map[types.UID]*runningWrite{}}
		q.nodes[w.Node] = writes
	}
	_, waiting := writes.waiting[w.UID]
	if _, running := writes.running[w.UID]; running || waiting {
		return
	}
	writes.waiting[w.UID] = &w
	owner := fairshare.Owner{Flow: flow, Tenant: w.Namespace}
	if w.Withdraw {
		q.line.PushFirst(owner, &w)
	} else {
		q.line.Push(owner, &w)
	}
	q.changed.Signal()
}

// drop removes waiting writes of the node.
func (q *Queue) drop(node string, drop func(Write) bool) {
	writes := q.nodes[node]
	if writes == nil {
		return
	}
	for uid, w := range writes.waiting {
		if drop(*w) {
			delete(writes.waiting, uid)
			q.line.Remove(w)
		}
	}
	q.tidy(node)
}

// tidy forgets a node without writes.
func (q *Queue) tidy(node string) {
	if writes := q.nodes[node]; writes != nil && len(writes.waiting)+len(writes.running) == 0 {
		delete(q.nodes, node)
	}
}

// Get waits for a write that may begin, which is running until done is called. It returns false
// after the queue was shut down.
func (q *Queue) Get() (Write, bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	for !q.closed {
		if w, ok := q.next(); ok {
			return w, true
		}
		q.changed.Wait()
	}
	return Write{}, false
}

// next begins a write, if one may begin.
func (q *Queue) next() (Write, bool) {
	w, ok := q.line.Pop()
	if !ok {
		return Write{}, false
	}
	writes := q.nodes[w.Node]
	delete(writes.waiting, w.UID)
	writes.running[w.UID] = &runningWrite{Write: w}
	q.line.Begin(w)
	q.changed.Signal()
	return *w, true
}

// Decided records which maintenances want a running write.
func (q *Queue) Decided(w Write, causes []string) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.nodes[w.Node].running[w.UID].causes = causes
}

// IsRequestingFor reports whether a running request may be one that the maintenance wants.
func (q *Queue) IsRequestingFor(maintenance string) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	for _, writes := range q.nodes {
		for _, w := range writes.running {
			if !w.Withdraw && (w.causes == nil || slices.Contains(w.causes, maintenance)) {
				return true
			}
		}
	}
	return false
}

// Done ends a write. The caller has to enqueue the node afterwards: while the write was running, no
// other one was accepted for the pod.
func (q *Queue) Done(w Write) {
	q.lock.Lock()
	defer q.lock.Unlock()
	running := q.nodes[w.Node].running
	q.line.Release(running[w.UID].Write)
	delete(running, w.UID)
	q.tidy(w.Node)
	q.changed.Signal()
}

// ShutDown makes get return for all workers.
func (q *Queue) ShutDown() {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
