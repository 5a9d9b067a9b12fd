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
	// statusInterval is the minimum time between two writes of the status of one object, because a
	// drain changes the counts with every pod.
	statusInterval = time.Second

	// progressInterval is the same for the status of a node that was admitted, and of which only the
	// counts of pods have changed that a drain changes: in a fleet, such writes would be the most
	// frequent ones. Those of the maintenance are exact.
	progressInterval = 10 * time.Second

	// refreshInterval is the minimum time between two writes of statuses, of all nodes together, in
	// which only counts of pods change. In the drain of thousands of nodes they would otherwise be a
	// third of all writes. Those of a maintenance are exact: they do not depend on these. 100 nodes that
	// drain at the same time have their progressInterval.
	refreshInterval = 100 * time.Millisecond

	// summaryDelay is the time in which changes of nodes are collected before the sums of their
	// maintenance are computed: those of thousands of nodes take more than a millisecond.
	summaryDelay = 50 * time.Millisecond

	// staleInterval is the first delay before an object is reconciled again because the cache lacks
	// an own write. It doubles up to maxStaleInterval, because a watch may be interrupted for long.
	staleInterval    = 20 * time.Millisecond
	maxStaleInterval = time.Second

	// recordonWindow is how long a re-cordon counts, or the restoration of something else that another client
	// has undone.
	recordonWindow = 10 * time.Minute

	// recordonLimit is how many of them in that time are made at once; further ones are made
	// once per recordonPause.
	recordonLimit = 3
	recordonPause = time.Minute

	// recordonSlack is how much longer than recordonPause nothing has to be undone until it is known that
	// nobody does so any more.
	recordonSlack = 5 * time.Second
)

// writeTimes has the times of the last writes of objects, by their names. It only delays writes:
// nothing depends on it after a restart.
type writeTimes struct {
	lock sync.Mutex
	last map[string]time.Time
}

func newWriteTimes() *writeTimes { return &writeTimes{last: map[string]time.Time{}} }

// within returns a delay that began in the past, and 0 if it is longer than it can be: the clock was set back.
func within(delay, longest time.Duration) time.Duration {
	if delay > longest {
		return 0
	}
	return delay
}

// wait returns the delay before the next write of the object, if there has to be so much time between
// two.
func (w *writeTimes) wait(name string, now time.Time, interval time.Duration) time.Duration {
	w.lock.Lock()
	defer w.lock.Unlock()
	last, ok := w.last[name]
	if !ok {
		return 0
	}
	wait := within(last.Add(interval).Sub(now), interval)
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

// staleWaits has the delays of objects of which the cache lacks an own write.
type staleWaits struct {
	lock sync.Mutex
	next map[string]time.Duration
}

func newStaleWaits() *staleWaits { return &staleWaits{next: map[string]time.Duration{}} }

// wait returns the delay before the object is reconciled again, and doubles the next one.
func (s *staleWaits) wait(name string) time.Duration {
	s.lock.Lock()
	defer s.lock.Unlock()
	wait := max(s.next[name], staleInterval)
	s.next[name] = min(2*wait, maxStaleInterval)
	return wait
}

// reset records that the cache has all own writes.
func (s *staleWaits) reset(name string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.next, name)
}

// recordonBackoff has the times at which something of nodes was written again because another client had
// undone it, such as their cordons. They outlast the maintenance: who undoes the cordons of one would otherwise have
// the pace of the limit anew from each of several that are short.
type recordonBackoff struct {
	lock  sync.Mutex
	nodes map[string]*recordons
}

// recordons are the times at which something of one node was written again: those that count, the oldest first,
// and since when there have always been some that do.
type recordons struct {
	times []time.Time
	since time.Time
}

func newRecordonBackoff() *recordonBackoff {
	return &recordonBackoff{nodes: map[string]*recordons{}}
}

// wait returns the delay before the node may be written again.
func (b *recordonBackoff) wait(node string, now time.Time) time.Duration {
	b.lock.Lock()
	defer b.lock.Unlock()
	times := b.recent(node, now)
	if len(times) < recordonLimit {
		return 0
	}
	return within(times[len(times)-1].Add(recordonPause).Sub(now), recordonPause)
}

// wrote records that the node was written again, and reports whether the limit is reached. earlier is since when a
// process before has found that others undo that; zero if it has not.
func (b *recordonBackoff) wrote(node string, earlier, now time.Time) bool {
	b.lock.Lock()
	defer b.lock.Unlock()
	times := b.recent(node, now)
	if len(times) == 0 {
		b.nodes[node] = &recordons{since: sinceEarlier(now.Truncate(time.Second), earlier)}
	}
	b.nodes[node].times = append(times, now)
	return len(times)+1 >= recordonLimit
}

// recent returns the times within recordonWindow.
func (b *recordonBackoff) recent(node string, now time.Time) []time.Time {
	found := b.nodes[node]
	if found == nil {
		return nil
	}
	for len(found.times) > 0 && now.Sub(found.times[0]) > recordonWindow {
		found.times = found.times[1:]
	}
	if len(found.times) == 0 {
		delete(b.nodes, node)
	}
	return found.times
}

// undoing is that other clients keep undoing what is written to a node: since when, and when they have stopped if
// nothing is written again before.
type undoing struct{ since, over time.Time }

// contested returns that others keep undoing what is written, if the limit is reached. undone is whether it is undone
// now: if it is not, they may have stopped.
func (b *recordonBackoff) contested(node string, undone bool, now time.Time) (found undoing, is bool) {
	b.lock.Lock()
	defer b.lock.Unlock()
	times := b.recent(node, now)
	if len(times) < recordonLimit {
		return undoing{}, false
	}
	found = undoing{b.nodes[node].since, times[len(times)-1].Add(recordonPause + recordonSlack)}
	return found, undone || within(found.over.Sub(now), recordonPause+recordonSlack) > 0
}

func (b *recordonBackoff) forget(node string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	delete(b.nodes, node)
}
