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

package evictions

import "time"

const (
	// MinHeartbeatInterval is the minimum time between two heartbeats of a responder. The API server of
	// coordination.k8s.io rejects earlier ones, because each heartbeat is a write that all watchers receive.
	MinHeartbeatInterval = time.Minute

	// maxHeartbeatInterval limits the interval for long deadlines, so that users see recent
	// reports.
	maxHeartbeatInterval = 3 * time.Minute

	// messageInterval is the minimum interval between two reports of one turn without a heartbeat.
	// A handler can set its message in a loop without overloading the API server.
	messageInterval = 10 * time.Second

	// firstReportDelay is how long after its start a turn reports what Handle has set: users should
	// see the first ETA soon, and it may be set after the first message.
	firstReportDelay = time.Second

	// writeTimeout limits each write. It is short compared with every deadline.
	writeTimeout = 15 * time.Second
)

// never is later than any time of a turn.
var never = time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC)

// pace computes when a turn reports. It follows the validation rules of the API server, which would
// reject other reports.
type pace struct {
	// deadline is how long the responder may go without a heartbeat.
	deadline time.Duration
	// skew is how far its clock may differ from that of the API server.
	skew time.Duration
	// persistent is whether the responder never times out.
	persistent bool
	// activation is the activationTime of the responder.
	activation time.Time
	// heartbeat is the last heartbeat that the API server has, or zero.
	heartbeat time.Time
	// first is whether this process has not reported yet.
	first bool
	// working is whether work is in progress, which is a condition for heartbeats. since is when
	// the attempt after a failure started, or zero.
	working bool
	since   time.Time
}

// lastSign returns when the deadline started.
func (p pace) lastSign() time.Time { return later(p.heartbeat, p.activation) }

// expiresAt returns when to stop without a heartbeat. Two clocks are involved: the clock of this
// process may be behind, and the API server may allow the next activation earlier by the same
// amount. After that time, the next responder may act at the same time.
func (p pace) expiresAt() time.Time {
	if p.persistent {
		return never
	}
	return p.lastSign().Add(p.deadline - 2*p.skew)
}

// interval returns the interval between two heartbeats. Two may fail before the deadline, unless
// the deadline is too short for the minimum interval.
func (p pace) interval() time.Duration {
	return min(max(p.deadline/3, MinHeartbeatInterval), maxHeartbeatInterval)
}

// nextHeartbeat returns when the next heartbeat is due while work is in progress.
func (p pace) nextHeartbeat() time.Time {
	return later(p.heartbeat, p.since).Add(p.interval())
}

// settled returns when an attempt after a failure has run long enough to report it. Most attempts
// fail earlier with the same error, which needs no new report.
func (p pace) settled() time.Time {
	if p.since.IsZero() {
		return p.since
	}
	return p.since.Add(MinHeartbeatInterval)
}

// sendsHeartbeat reports whether a report that is written now has a new heartbeat. There is no
// heartbeat without work in progress. After a restart the heartbeat is sent early, because it is
// unknown how long the process was down.
func (p pace) sendsHeartbeat(now time.Time) bool {
	switch {
	case !p.working:
		return false
	case p.heartbeat.IsZero():
		return true
	case p.first:
		return !now.Before(p.heartbeat.Add(MinHeartbeatInterval))
	}
	return !now.Before(p.nextHeartbeat())
}

// acceptableETA moves a new ETA that the API server would reject as past into the future. An ETA that is already stored
// may be in the past. The extra second is for times that are truncated to seconds.
func acceptableETA(now, eta, old time.Time, skew time.Duration) time.Time {
	if old.Equal(eta) {
		return old
	}
	return later(eta, now.Add(skew+time.Second)).Truncate(time.Second)
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
