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

package pace

import "time"

const (
	// StatusInterval is the minimum time between two writes of the status of one object, because a
	// drain changes the counts with every pod.
	StatusInterval = time.Second

	// ProgressInterval is the same for the status of a node that was admitted, and of which only the
	// counts of pods have changed that a drain changes: in a fleet, such writes would be the most
	// frequent ones. Those of the maintenance are exact.
	ProgressInterval = 10 * time.Second

	// RefreshInterval is the minimum time between two writes of statuses, of all nodes together, in
	// which only counts of pods change. In the drain of thousands of nodes they would otherwise be a
	// third of all writes. Those of a maintenance are exact: they do not depend on these. 100 nodes that
	// drain at the same time have their ProgressInterval.
	RefreshInterval = 100 * time.Millisecond

	// SummaryDelay is the time in which changes of nodes are collected before the sums of their
	// maintenance are computed: those of thousands of nodes take more than a millisecond.
	SummaryDelay = 50 * time.Millisecond

	// StaleInterval is the first delay before an object is reconciled again because the cache lacks
	// an own write. It doubles up to MaxStaleInterval, because a watch may be interrupted for long.
	StaleInterval    = 20 * time.Millisecond
	MaxStaleInterval = time.Second

	// RevertWindow is how long it counts that something was written again because another client had reverted it.
	RevertWindow = 10 * time.Minute

	// RevertLimit is how many of these writes in that time are made at once; further ones are made
	// once per RevertPause.
	RevertLimit = 3
	RevertPause = time.Minute

	// RevertSlack is how much longer than RevertPause nothing has to be reverted until it is known that
	// nobody does so any more.
	RevertSlack = 5 * time.Second

	// FirstRetry is the delay before a failed write is retried. It doubles with each failure up
	// to MaxRetry, which is short: an administrator who raises a quota expects a result.
	FirstRetry = time.Second
	MaxRetry   = 30 * time.Second
)

// RetryAfter returns the delay after a failure that comes after so many earlier ones.
func RetryAfter(earlier int) time.Duration {
	wait := FirstRetry
	for range earlier {
		if wait *= 2; wait >= MaxRetry {
			return MaxRetry
		}
	}
	return wait
}

// Within returns a delay that began in the past, and 0 if it is longer than it can be: the clock was set back.
func Within(delay, longest time.Duration) time.Duration {
	if delay > longest {
		return 0
	}
	return delay
}

// Earliest returns the earlier of now and when a process before has found the same, which is zero if it has not.
func Earliest(now, earlier time.Time) time.Time {
	if earlier.IsZero() || now.Before(earlier) {
		return now
	}
	return earlier
}
