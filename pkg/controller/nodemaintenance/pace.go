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
	"sync"
	"time"
)

const (
	// statusInterval is the least time between two writes of the status of one object: a
	// drain changes its counts with every pod.
	statusInterval = time.Second

	// lookInterval is how long a maintenance waits for more news of its nodes before it sums
	// them up: the sums of thousands of nodes take more than a millisecond.
	lookInterval = 50 * time.Millisecond

	// staleInterval is how long to wait at first for a cache that lacks an own write. The wait
	// doubles up to maxStaleInterval: a watch that is away may stay so for long.
	staleInterval    = 20 * time.Millisecond
	maxStaleInterval = time.Second

	// contestWindow is how long a node is remembered that had to be cordoned again.
	contestWindow = 10 * time.Minute

	// contestLimit is how often it is cordoned again at once; after that, once per
	// contestPause.
	contestLimit = 3
	contestPause = time.Minute
)

// writeTimes remembers when objects were written, by their names. It only spaces writes:
// nothing depends on it after a restart.
type writeTimes struct {
	lock sync.Mutex
	last map[string]time.Time
}

func newWriteTimes() *writeTimes { return &writeTimes{last: map[string]time.Time{}} }

// wait returns how long the next write of the object has to wait.
func (w *writeTimes) wait(name string, now time.Time) time.Duration {
	w.lock.Lock()
	defer w.lock.Unlock()
	last, ok := w.last[name]
	if !ok {
		return 0
	}
	wait := last.Add(statusInterval).Sub(now)
	if wait <= 0 {
		delete(w.last, name)
	}
	return wait
}

func (w *writeTimes) wrote(name string, now time.Time) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.last[name] = now
}

func (w *writeTimes) forget(name string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	delete(w.last, name)
}

// staleWaits spaces the looks at objects of which the cache lacks an own write.
type staleWaits struct {
	lock sync.Mutex
	next map[string]time.Duration
}

func newStaleWaits() *staleWaits { return &staleWaits{next: map[string]time.Duration{}} }

// wait returns how long to wait for the next look at the object.
func (s *staleWaits) wait(name string) time.Duration {
	s.lock.Lock()
	defer s.lock.Unlock()
	wait := max(s.next[name], staleInterval)
	s.next[name] = min(2*wait, maxStaleInterval)
	return wait
}

// reset notes that the cache has all that was written.
func (s *staleWaits) reset(name string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.next, name)
}

// contests remembers which nodes had to be cordoned again, because somebody else made
// them schedulable.
type contests struct {
	lock  sync.Mutex
	nodes map[string][]time.Time
}

func newContests() *contests { return &contests{nodes: map[string][]time.Time{}} }

// wait returns how long it takes until the node may be cordoned again.
func (c *contests) wait(node string, now time.Time) time.Duration {
	c.lock.Lock()
	defer c.lock.Unlock()
	times := c.recent(node, now)
	if len(times) < contestLimit {
		return 0
	}
	return times[len(times)-1].Add(contestPause).Sub(now)
}

// wrote notes that the node was cordoned again, and tells whether that is often enough
// to call it a contest.
func (c *contests) wrote(node string, now time.Time) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.nodes[node] = append(c.recent(node, now), now)
	return len(c.nodes[node]) >= contestLimit
}

// recent drops what was too long ago.
func (c *contests) recent(node string, now time.Time) []time.Time {
	times := c.nodes[node]
	for len(times) > 0 && now.Sub(times[0]) > contestWindow {
		times = times[1:]
	}
	return times
}

func (c *contests) forget(node string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.nodes, node)
}
