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
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/fairshare"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/clock"
)

const (
	// requestWorkers is how many requests are written at a time, which the rate limits of the
	// client allow.
	requestWorkers = 80

	// One in namespaceShare of the workers may work for one namespace, because a tenant may have a
	// slow webhook there. The package fairshare limits slow namespaces further.
	namespaceShare = 4
)

// requestWrite is one write that is due: to request the eviction of a pod, to withdraw that, or what
// an escalation does to the pod.
type requestWrite struct {
	namespace, pod, node string
	uid                  types.UID
	withdraw             bool
	// act is what an escalation does to the pod instead; "" for requests and withdrawals.
	act v1.MaintenanceEscalation
}

// requestQueue has the writes that are due, by maintenance and namespace. The next write is for a
// maintenance with the fewest running, and there of a namespace with the fewest running. So a drain
// of three nodes does not wait for one of thousands, and slow writes delay only their own namespace.
// Withdrawals go first, because an administrator waits for them. Only the sync of a node adds or removes waiting
// writes, also those that have failed. At most one write for a pod exists at a time.
type requestQueue struct {
	lock sync.Mutex
	// changed is signaled when a write may have become ready: to one worker, which signals the
	// next one.
	changed *sync.Cond
	line    *fairshare.Line[*requestWrite]
	nodes   map[string]*nodeWrites
	closed  bool
}

// nodeWrites are the writes of one node, by pod.
type nodeWrites struct {
	waiting map[types.UID]*requestWrite
	running map[types.UID]*runningWrite
}

// runningWrite is a write that a worker has taken.
type runningWrite struct {
	*requestWrite
	// causes are the maintenances that want it; nil until the worker has read them.
	causes []string
}

// key identifies the write among the failures.
func (w requestWrite) key() write.Key {
	switch {
	case w.withdraw:
		return write.Withdrawal.Of(w.uid)
	case w.act != "":
		return write.Escalation.Of(w.uid)
	}
	return write.Request.Of(w.uid)
}

func newRequestQueue(workers int, clock clock.PassiveClock) *requestQueue {
	q := &requestQueue{line: fairshare.NewLine[*requestWrite](clock), nodes: map[string]*nodeWrites{}}
	q.line.Limit(workers, workers/namespaceShare)
	q.changed = sync.NewCond(&q.lock)
	return q
}

// set makes these the waiting writes of the node, in the flow of a maintenance: the first one of each
// pod. Those that wait already keep their places, and pods with a running write are left out: see done.
func (q *requestQueue) set(node, flow string, writes []requestWrite) {
	q.lock.Lock()
	defer q.lock.Unlock()
	wanted := make(map[types.UID]requestWrite, len(writes))
	for _, w := range writes {
		if _, found := wanted[w.uid]; !found {
			wanted[w.uid] = w
		}
	}
	q.drop(node, func(w requestWrite) bool { return wanted[w.uid] != w })
	for _, w := range writes {
		q.add(flow, w)
	}
}

// dropRequests removes the waiting requests of the node, but not its withdrawals, and reports
// whether a request is running.
func (q *requestQueue) dropRequests(node string) (running bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.drop(node, func(w requestWrite) bool { return !w.withdraw })
	if writes := q.nodes[node]; writes != nil {
		for _, w := range writes.running {
			running = running || !w.withdraw
		}
	}
	return running
}

func (q *requestQueue) add(flow string, w requestWrite) {
	writes := q.nodes[w.node]
	if writes == nil {
		writes = &nodeWrites{waiting: map[types.UID]*requestWrite{}, running: map[types.UID]*runningWrite{}}
		q.nodes[w.node] = writes
	}
	_, waiting := writes.waiting[w.uid]
	if _, running := writes.running[w.uid]; running || waiting {
		return
	}
	writes.waiting[w.uid] = &w
	owner := fairshare.Owner{Flow: flow, Tenant: w.namespace}
	if w.withdraw {
		q.line.PushFirst(owner, &w)
	} else {
		q.line.Push(owner, &w)
	}
	q.changed.Signal()
}

// drop removes waiting writes of the node.
func (q *requestQueue) drop(node string, drop func(requestWrite) bool) {
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
func (q *requestQueue) tidy(node string) {
	if writes := q.nodes[node]; writes != nil && len(writes.waiting)+len(writes.running) == 0 {
		delete(q.nodes, node)
	}
}

// get waits for a write that may begin, which is running until done is called. It returns false
// after the queue was shut down.
func (q *requestQueue) get() (requestWrite, bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	for !q.closed {
		if w, ok := q.next(); ok {
			return w, true
		}
		q.changed.Wait()
	}
	return requestWrite{}, false
}

// next begins a write, if one may begin.
func (q *requestQueue) next() (requestWrite, bool) {
	w, ok := q.line.Pop()
	if !ok {
		return requestWrite{}, false
	}
	writes := q.nodes[w.node]
	delete(writes.waiting, w.uid)
	writes.running[w.uid] = &runningWrite{requestWrite: w}
	q.line.Begin(w)
	q.changed.Signal()
	return *w, true
}

// decided records which maintenances want a running write.
func (q *requestQueue) decided(w requestWrite, causes []string) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.nodes[w.node].running[w.uid].causes = causes
}

// isRequestingFor reports whether a running request may be one that the maintenance wants.
func (q *requestQueue) isRequestingFor(maintenance string) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	for _, writes := range q.nodes {
		for _, w := range writes.running {
			if !w.withdraw && (w.causes == nil || slices.Contains(w.causes, maintenance)) {
				return true
			}
		}
	}
	return false
}

// done ends a write. The caller has to enqueue the node afterwards: while the write was running, no
// other one was accepted for the pod.
func (q *requestQueue) done(w requestWrite) {
	q.lock.Lock()
	defer q.lock.Unlock()
	running := q.nodes[w.node].running
	q.line.Release(running[w.uid].requestWrite)
	delete(running, w.uid)
	q.tidy(w.node)
	q.changed.Signal()
}

// shutDown makes get return for all workers.
func (q *requestQueue) shutDown() {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
