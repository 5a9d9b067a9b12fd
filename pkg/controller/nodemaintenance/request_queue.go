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
	"container/list"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// requestWorkers is how many requests are written at a time, which the limits of the
	// client allow.
	requestWorkers = 80

	// One in namespaceShare of the workers may work for one namespace: a tenant may have a
	// webhook there that takes its time. And one in slowShare for all namespaces together that
	// were slow lately: a tenant may have many.
	namespaceShare = 4
	slowShare      = 2

	// slowAnswer is how long a write takes at least that makes its namespace slow, and
	// slowMemory for how long.
	slowAnswer = time.Second
	slowMemory = time.Minute
)

// requestWrite is one write that is due: to ask a pod to leave, or to withdraw that.
type requestWrite struct {
	namespace, pod, node string
	uid                  types.UID
	withdraw             bool
}

// requestQueue holds the writes that are due, a line for each namespace, which have their
// turns one after the other. So a namespace whose writes take long delays its own. Only the
// sync of a node adds or removes what waits: everything is decided there, and a write that
// has failed comes back from there. There is at most one write for a pod at a time.
type requestQueue struct {
	lock sync.Mutex
	// changed is signaled when a write may have become ready for a worker.
	changed *sync.Cond
	clock   clock.PassiveClock
	workers int
	nodes   map[string]*nodeWrites
	lines   map[string]*writeLine
	// turns are the namespaces in which a write waits, the next one first.
	turns []string
	// slow says of namespaces until when they count as slow.
	slow   map[string]time.Time
	closed bool
}

// nodeWrites are the writes of one node, by pod.
type nodeWrites struct {
	waiting map[types.UID]*list.Element
	running map[types.UID]*runningWrite
}

// runningWrite is a write that a worker has taken.
type runningWrite struct {
	requestWrite
	// causes are the maintenances that want it; nil until the worker has found out.
	causes []string
}

// writeLine are the writes of one namespace that wait, and how many are running.
type writeLine struct {
	waiting *list.List
	running int
}

func newRequestQueue(workers int, clock clock.PassiveClock) *requestQueue {
	q := &requestQueue{workers: workers, clock: clock, nodes: map[string]*nodeWrites{}, lines: map[string]*writeLine{}, slow: map[string]time.Time{}}
	q.changed = sync.NewCond(&q.lock)
	return q
}

// set makes these the writes of the node that wait. Those that wait already keep their
// places, and pods of which a write is running are left out: see done.
func (q *requestQueue) set(node string, writes []requestWrite) {
	q.lock.Lock()
	defer q.lock.Unlock()
	wanted := make(map[types.UID]requestWrite, len(writes))
	for _, w := range writes {
		wanted[w.uid] = w
	}
	q.drop(node, func(w requestWrite) bool { return wanted[w.uid] != w })
	for _, w := range writes {
		q.add(w)
	}
}

// stopAsking drops the writes of the node that wait to ask a pod, and reports whether one
// is running.
func (q *requestQueue) stopAsking(node string) (running bool) {
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

func (q *requestQueue) add(w requestWrite) {
	writes := q.nodes[w.node]
	if writes == nil {
		writes = &nodeWrites{waiting: map[types.UID]*list.Element{}, running: map[types.UID]*runningWrite{}}
		q.nodes[w.node] = writes
	}
	if _, running := writes.running[w.uid]; running || writes.waiting[w.uid] != nil {
		return
	}
	line := q.lines[w.namespace]
	if line == nil {
		line = &writeLine{waiting: list.New()}
		q.lines[w.namespace] = line
	}
	if line.waiting.Len() == 0 {
		q.turns = append(q.turns, w.namespace)
	}
	writes.waiting[w.uid] = line.waiting.PushBack(w)
	q.changed.Signal()
}

// drop removes writes of the node that wait.
func (q *requestQueue) drop(node string, drop func(requestWrite) bool) {
	writes := q.nodes[node]
	if writes == nil {
		return
	}
	for _, element := range writes.waiting {
		if w := element.Value.(requestWrite); drop(w) {
			q.remove(w)
		}
	}
	q.tidy(node)
}

// remove takes a write out of its line.
func (q *requestQueue) remove(w requestWrite) {
	writes, line := q.nodes[w.node], q.lines[w.namespace]
	line.waiting.Remove(writes.waiting[w.uid])
	delete(writes.waiting, w.uid)
	if line.waiting.Len() == 0 {
		q.turns = slices.DeleteFunc(q.turns, func(namespace string) bool { return namespace == w.namespace })
		if line.running == 0 {
			delete(q.lines, w.namespace)
		}
	}
}

// tidy forgets a node without writes.
func (q *requestQueue) tidy(node string) {
	if writes := q.nodes[node]; writes != nil && len(writes.waiting)+len(writes.running) == 0 {
		delete(q.nodes, node)
	}
}

// get waits for a write that may begin. It is running until done is called. It returns false
// when the queue has shut down.
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

// next begins the oldest write of the first namespace in turn that has not its share already.
func (q *requestQueue) next() (requestWrite, bool) {
	slow := 0
	for namespace := range q.slow { // Of all namespaces with work these are few.
		if line := q.lines[namespace]; line != nil && q.isSlow(namespace) {
			slow += line.running
		}
	}
	for i, namespace := range q.turns {
		line := q.lines[namespace]
		if line.running >= q.workers/namespaceShare || slow >= q.workers/slowShare && q.isSlow(namespace) {
			continue
		}
		w := line.waiting.Front().Value.(requestWrite)
		line.running++
		q.nodes[w.node].running[w.uid] = &runningWrite{requestWrite: w}
		q.turns = append(slices.Delete(q.turns, i, i+1), namespace)
		q.remove(w)
		return w, true
	}
	return requestWrite{}, false
}

// decided notes which maintenances want a write that is running.
func (q *requestQueue) decided(w requestWrite, causes []string) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.nodes[w.node].running[w.uid].causes = causes
}

// isAskingFor reports whether a pod may be asked just now because of the maintenance.
func (q *requestQueue) isAskingFor(maintenance string) bool {
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

func (q *requestQueue) isSlow(namespace string) bool {
	until, ok := q.slow[namespace]
	return ok && q.clock.Now().Before(until)
}

// done ends a write that took so long. Whoever calls it has the node looked at afterwards:
// while the write was running, no other was accepted for the pod.
func (q *requestQueue) done(w requestWrite, took time.Duration) {
	q.lock.Lock()
	defer q.lock.Unlock()
	delete(q.nodes[w.node].running, w.uid)
	q.tidy(w.node)
	line := q.lines[w.namespace]
	if line.running--; line.running == 0 && line.waiting.Len() == 0 {
		delete(q.lines, w.namespace)
	}
	if took >= slowAnswer {
		now := q.clock.Now()
		for namespace, until := range q.slow {
			if !now.Before(until) {
				delete(q.slow, namespace)
			}
		}
		q.slow[w.namespace] = now.Add(slowMemory)
	}
	q.changed.Signal()
}

// shutDown ends the waiting of all workers.
func (q *requestQueue) shutDown() {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
