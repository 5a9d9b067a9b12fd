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

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// content is the part of a report that is written to the request.
type content struct {
	message string
	eta     time.Time // Zero for none.
	forbid  bool
	started bool
	done    bool
}

// report is the desired report of an responder.
type report struct {
	content

	// messageSet is whether Handle has set the message, and not the library.
	messageSet bool
	// urgent is whether to write without waiting for messageInterval.
	urgent bool
	// revision counts the changes of the content.
	revision int

	// working and since are inputs of pace.
	working bool
	since   time.Time
}

// resumedReport returns the initial report of a turn: the values in the request, which are from
// before a restart.
func resumedReport(request *Request) report {
	r := report{revision: 1, urgent: true}
	r.message, r.eta, r.forbid = request.Report.Message, request.Report.ExpectedCompletion, request.CancellationForbidden
	return r
}

// start starts an attempt. The first attempt is reported immediately, like everything before the
// call of Handle.
func (r *report) start(attempt int, now time.Time) {
	r.working, r.messageSet = true, false
	if !r.started {
		r.started, r.urgent = true, true
	}
	if attempt > 1 {
		r.since = now
		r.message = fmt.Sprintf("Attempt %d.", attempt)
	}
}

// fail reports the error. No heartbeats are sent until Handle has run for a while again: a failure
// is no progress, and an responder that only fails must time out. The message of the same error
// does not change: a message with the number of the attempt would cause a write for each attempt.
func (r *report) fail(err error) {
	r.working = false
	r.eta = time.Time{}
	r.message = fmt.Sprintf("Failed, will retry: %v", err)
}

func (r *report) complete(message string) {
	r.done, r.urgent = true, true
	r.eta = time.Time{}
	r.message = message
}

// accepted is the state of the reports that the API server has accepted.
type accepted struct {
	// entry is the last known status entry, including one from before a restart.
	entry Report
	// revision is the last revision of the report that was accepted, and failed the last one whose
	// write returned an error. at is the start of messageInterval.
	revision, failed int
	at               time.Time
	// content is the content of the request if known is true. It is unknown during a write and
	// after a failed one, which may have had an effect.
	content content
	known   bool
	// changed is closed and replaced at the end of each write.
	changed chan struct{}
}

// reportUntilOver writes the reports of one turn when they are due.
func (t *Turn) reportUntilOver() {
	clock := t.responder.config.Clock
	backoff := newReportBackoff()
	var notBefore time.Time // Set after a failure.
	for t.ctx.Err() == nil {
		now := clock.Now()
		due, pace := t.nextReport(now)
		due = later(due, notBefore)
		// Even after the deadline, the turn may still be active if the controller was down as well:
		// the first report shows that.
		lost, tried := pace.expiresAt(), !pace.first || !notBefore.IsZero()
		if tried && !lost.After(now) {
			t.cancel(fmt.Errorf("%w: no heartbeat since %s", ErrTurnLost, pace.lastSign().Format(time.RFC3339)))
			return
		}
		if !due.After(now) {
			if t.write(now) {
				backoff = newReportBackoff()
			} else {
				notBefore = clock.Now().Add(backoff.Step())
			}
			continue
		}
		timer := clock.NewTimer(earlier(due, lost).Sub(now))
		select {
		case <-t.ctx.Done():
		case <-t.wake:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// nextReport returns when the next report is due, and the pace that it follows from.
func (t *Turn) nextReport(now time.Time) (time.Time, pace) {
	t.lock.Lock()
	defer t.lock.Unlock()
	pace := t.pace()
	changed := t.desired.revision > t.accepted.revision
	switch {
	case changed && t.desired.urgent:
		return now, pace
	case changed && t.desired.working:
		return earlier(later(t.accepted.at.Add(messageInterval), pace.settled()), pace.nextHeartbeat()), pace
	case changed:
		return t.accepted.at.Add(messageInterval), pace
	case t.desired.working:
		return pace.nextHeartbeat(), pace
	}
	return pace.expiresAt(), pace
}

// pace returns the current pace. The caller must hold the lock.
func (t *Turn) pace() pace {
	return pace{
		deadline:   t.request.HeartbeatDeadline,
		skew:       t.responder.rules.MaxClockSkew,
		persistent: t.responder.config.Persistent,
		activation: t.request.ActiveSince,
		heartbeat:  t.accepted.entry.Heartbeat,
		first:      t.accepted.revision == 0,
		working:    t.desired.working,
		since:      t.desired.since,
	}
}

func newReportBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 20, Cap: 30 * time.Second}
}

// write applies the report and reports whether it was accepted.
func (t *Turn) write(now time.Time) bool {
	t.lock.Lock()
	desired := t.desired
	entry := desired.entry(now, t.accepted.entry, t.pace().sendsHeartbeat(now), t.responder.rules.MaxClockSkew)
	t.accepted.known = false
	t.lock.Unlock()

	request, err := t.send(entry, desired.forbid)
	if err != nil {
		t.handleRejection(err)
		t.lock.Lock()
		defer t.lock.Unlock()
		t.accepted.failed = desired.revision
		t.accepted.notify()
		return false
	}
	// The API server checks whether the responder is active only if the report changes something.
	if request.Ended != nil {
		t.cancel(request.Ended)
		return true
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	t.accepted.at = now
	if t.accepted.revision == 0 {
		t.accepted.at = now.Add(firstReportDelay - messageInterval)
	}
	t.accepted.entry = request.Report
	t.accepted.content, t.accepted.known = desired.content, true
	if t.desired.revision == desired.revision {
		t.desired.urgent = false
	}
	t.accepted.accept(desired.revision)
	return true
}

// accept records that the API server has this revision.
func (a *accepted) accept(revision int) {
	a.revision = revision
	a.notify()
}

func (a *accepted) notify() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// handleRejection determines why a report was rejected. If the responder is no longer active, the
// API server returns an Invalid error, which also has many other reasons.
func (t *Turn) handleRejection(err error) {
	if t.ctx.Err() != nil {
		return
	}
	klog.FromContext(t.ctx).Error(err, "Failed to report, will retry")
	if apierrors.IsNotFound(err) {
		t.cancel(ErrRequestGone)
		return
	}
	if !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
		return
	}
	live, err := t.readLive()
	if err != nil {
		return // The next attempt checks again.
	}
	// The next report must fit the stored entry: the previous process may have written after the
	// last event of the watch.
	t.lock.Lock()
	defer t.lock.Unlock()
	t.accepted.entry = live.Report
}

// readLive reads the request from the API server. It ends the turn, and returns why, if the responder is not active
// any more.
func (t *Turn) readLive() (*Request, error) {
	ctx, cancel := context.WithTimeout(t.ctx, writeTimeout)
	defer cancel()
	live, err := t.responder.config.API.Get(ctx, t.request.Namespace, t.request.Name, t.responder.config.Name)
	var ended error
	switch {
	case apierrors.IsNotFound(err), err == nil && live.UID != t.request.UID:
		ended = ErrRequestGone
	case err != nil:
		return nil, err
	default:
		ended = live.Ended
	}
	if ended != nil {
		t.cancel(ended)
		return nil, ended
	}
	return live, nil
}

// send writes a report. Once the cancellation is forbidden, each report must say that: leaving it out would remove it,
// which the API server rejects.
func (t *Turn) send(entry Report, forbid bool) (*Request, error) {
	ctx, cancel := context.WithTimeout(t.ctx, writeTimeout)
	defer cancel()
	// The work on the place begins with the call that reports the start: webhooks of the namespace
	// can make this call slow as well. Waiting for the client's rate limit does not count.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) {
		if place := t.currentPlace.Load(); place != nil {
			(*place).Begin()
		}
	}})
	return t.responder.config.API.Write(ctx, t.request, t.responder.config.Name, entry, forbid)
}

// entry returns the report as the API server accepts it after the old one.
func (r report) entry(now time.Time, old Report, sendsHeartbeat bool, skew time.Duration) Report {
	// Not before what is stored, which may be the time of another clock.
	stamp := later(now.Truncate(time.Second), later(old.Start, old.Heartbeat))
	entry := Report{Start: old.Start, Heartbeat: old.Heartbeat, Message: r.message}
	if sendsHeartbeat {
		entry.Heartbeat = stamp
		if old.Start.IsZero() {
			entry.Start = stamp
		}
	}
	if !r.eta.IsZero() {
		entry.ExpectedCompletion = acceptableETA(now, r.eta, old.ExpectedCompletion, skew)
	}
	if r.done {
		entry.Completion = stamp
	}
	return entry
}

// truncateMessage limits a message to the characters that the API server accepts.
func truncateMessage(message string, rules Rules) string {
	if utf8.RuneCountInString(message) > rules.MaxMessageLength {
		message = string([]rune(message)[:rules.MaxMessageLength])
	}
	for len(message) > rules.MaxMessageBytes {
		_, size := utf8.DecodeLastRuneInString(message)
		message = message[:len(message)-size]
	}
	return message
}
