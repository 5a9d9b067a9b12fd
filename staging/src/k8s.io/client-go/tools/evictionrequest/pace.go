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

package evictionrequest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// minHeartbeatInterval is the least that the API server accepts.
	minHeartbeatInterval = time.Minute

	// maxHeartbeatInterval keeps people informed where the deadline is long.
	maxHeartbeatInterval = 3 * time.Minute

	// messageInterval is the time between two reports of one turn that are no heartbeats.
	// It lets a handler set its message in a loop without a thought for the API server.
	messageInterval = 10 * time.Second

	// settleTime is how soon after its start a turn reports what Handle has set: people
	// should not wait for the first ETA, and it may come after the first message.
	settleTime = time.Second

	// clockSkew is how far a time in a report may be from the clock of the API server.
	clockSkew = 10 * time.Second

	// minETALead keeps an ETA from being past for an API server whose clock is ahead. A
	// second more, because times are cut to seconds.
	minETALead = clockSkew + time.Second

	// writeTimeout is what one write may take. It is short against every deadline.
	writeTimeout = 15 * time.Second
)

// never is later than any time that a turn sees.
var never = time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC)

// pace says when a turn reports. The API server has the same rules: a report that broke
// them would be rejected.
type pace struct {
	// deadline is how long the interceptor may be silent.
	deadline time.Duration
	// persistent tells that nobody takes over from a silent interceptor.
	persistent bool
	// activation is when the turn began for the controller.
	activation time.Time
	// beat is the last heartbeat that the API server has, or zero.
	beat time.Time
	// first is true until this process has reported.
	first bool
	// working tells whether there is work that a heartbeat can speak for. After a
	// failure it counts since the next attempt.
	working bool
	since   time.Time
}

// lastSign is where the deadline counts from.
func (p pace) lastSign() time.Time { return later(p.beat, p.activation) }

// lostAt is when to stop for lack of a heartbeat. Two participants have clocks: this
// process may be behind, and the API server allows the next activation earlier by the
// same amount. Acting beyond that could mean to act beside the next interceptor.
func (p pace) lostAt() time.Time {
	if p.persistent {
		return never
	}
	return p.lastSign().Add(p.deadline - 2*clockSkew)
}

// interval is the time between two heartbeats: two may fail before the deadline, unless
// it is so short that the least interval does not allow that.
func (p pace) interval() time.Duration {
	return min(max(p.deadline/3, minHeartbeatInterval), maxHeartbeatInterval)
}

// nextBeat is when the next heartbeat is due, if there is work.
func (p pace) nextBeat() time.Time {
	return later(p.beat, p.since).Add(p.interval())
}

// settled is when an attempt that follows a failure has run for long enough to be told of. Most
// fail again before, in the same way, and then there is nothing new to write.
func (p pace) settled() time.Time {
	if p.since.IsZero() {
		return p.since
	}
	return p.since.Add(minHeartbeatInterval)
}

// beats reports whether a report that is written now has a new heartbeat: only while there
// is work that it speaks for. After a restart it is early, because nobody knows how long the
// process was away.
func (p pace) beats(now time.Time) bool {
	switch {
	case !p.working:
		return false
	case p.beat.IsZero():
		return true
	case p.first:
		return !now.Before(p.beat.Add(minHeartbeatInterval))
	}
	return !now.Before(p.nextBeat())
}

// acceptableETA moves a new ETA ahead that the API server would reject as past. One that
// it has already may be past.
func acceptableETA(now, eta time.Time, old *metav1.Time) metav1.Time {
	if old != nil && old.Time.Equal(eta) {
		return *old
	}
	return metav1.NewTime(later(eta, now.Add(minETALead)).Truncate(time.Second))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
