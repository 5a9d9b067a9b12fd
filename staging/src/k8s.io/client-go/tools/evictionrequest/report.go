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
	"context"
	"fmt"
	"net/http/httptrace"
	"time"
	"unicode/utf8"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/klog/v2"
)

// maxMessageLength is the maximum length that the API server accepts, in characters.
const maxMessageLength = 32768

// maxMessageBytes is the maximum length that it accepts in bytes.
const maxMessageBytes = 65536

// content is the part of a report that is written to the request.
type content struct {
	message string
	eta     time.Time // Zero for none.
	forbid  bool
	started bool
	done    bool
}

// report is the desired report of an interceptor.
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
func resumedReport(request *coordinationv1alpha1.EvictionRequest, entry coordinationv1alpha1.InterceptorStatus) report {
	r := report{revision: 1, urgent: true}
	r.message = entry.Message
	r.forbid = request.Status.EvictionRequestCancellationPolicy == coordinationv1alpha1.EvictionRequestCancellationPolicyForbid
	if entry.ExpectedFinishTime != nil {
		r.eta = entry.ExpectedFinishTime.Time
	}
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
// is no progress, and an interceptor that only fails must time out. The message of the same error
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
	entry coordinationv1alpha1.InterceptorStatus
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
	clock := t.interceptor.config.Clock
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
	p := pace{
		deadline: HeartbeatDeadline(t.request),
		first:    t.accepted.revision == 0,
		working:  t.desired.working,
		since:    t.desired.since,

		persistent: t.interceptor.config.Persistent,
	}
	if activation := t.request.Status.ActivationTime; activation != nil {
		p.activation = activation.Time
	}
	if heartbeat := t.accepted.entry.HeartbeatTime; heartbeat != nil {
		p.heartbeat = heartbeat.Time
	}
	return p
}

func newReportBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 20, Cap: 30 * time.Second}
}

// write applies the report and reports whether it was accepted.
func (t *Turn) write(now time.Time) bool {
	t.lock.Lock()
	desired := t.desired
	entry := desired.entry(now, t.accepted.entry, t.pace().sendsHeartbeat(now))
	t.accepted.known = false
	t.lock.Unlock()

	request, err := t.apply(entry, desired.forbid)
	if err != nil {
		t.handleRejection(err)
		t.lock.Lock()
		defer t.lock.Unlock()
		t.accepted.failed = desired.revision
		t.accepted.notify()
		return false
	}
	// The API server checks whether the interceptor is active only if the report changes something.
	if reason := t.interceptor.endReason(request); reason != nil {
		t.cancel(reason)
		return true
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	t.accepted.at = now
	if t.accepted.revision == 0 {
		t.accepted.at = now.Add(firstReportDelay - messageInterval)
	}
	t.accepted.entry = t.interceptor.ownEntry(request)
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

// handleRejection determines why a report was rejected. If the interceptor is no longer active, the
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
	t.accepted.entry = t.interceptor.ownEntry(live)
}

// readLive reads the request from the API server. It ends the turn, and returns why, if the interceptor is not active
// any more.
func (t *Turn) readLive() (*coordinationv1alpha1.EvictionRequest, error) {
	ctx, cancel := context.WithTimeout(t.ctx, writeTimeout)
	defer cancel()
	live, err := t.interceptor.config.Client.CoordinationV1alpha1().EvictionRequests(t.request.Namespace).Get(ctx, t.request.Name, metav1.GetOptions{})
	var ended error
	switch {
	case apierrors.IsNotFound(err), err == nil && live.UID != t.request.UID:
		ended = ErrRequestGone
	case err != nil:
		return nil, err
	default:
		ended = t.interceptor.endReason(live)
	}
	if ended != nil {
		t.cancel(ended)
		return nil, ended
	}
	return live, nil
}

// apply writes the status entry of the interceptor and no other entry. An entry is atomic: it is
// applied as a whole. Force is set because the controller, which has created the entry, is its
// first owner and no longer needs it.
//
// Once the cancellation policy is Forbid, each report must contain it: leaving it out would remove
// it, which the API server rejects.
func (t *Turn) apply(entry *coordinationapply.InterceptorStatusApplyConfiguration, forbid bool) (*coordinationv1alpha1.EvictionRequest, error) {
	status := coordinationapply.EvictionRequestStatus().WithInterceptors(entry)
	if forbid {
		status.WithEvictionRequestCancellationPolicy(coordinationv1alpha1.EvictionRequestCancellationPolicyForbid)
	}
	// The UID ensures that the patch does not apply to another request of the same name.
	patch := coordinationapply.EvictionRequest(t.request.Name, t.request.Namespace).WithUID(t.request.UID).WithStatus(status)
	ctx, cancel := context.WithTimeout(t.ctx, writeTimeout)
	defer cancel()
	// The work on the place begins with the call that reports the start: webhooks of the namespace
	// can make this call slow as well. Waiting for the client's rate limit does not count.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) {
		if place := t.currentPlace.Load(); place != nil {
			place.Begin()
		}
	}})
	return t.interceptor.config.Client.CoordinationV1alpha1().EvictionRequests(t.request.Namespace).
		ApplyStatus(ctx, patch, metav1.ApplyOptions{FieldManager: FieldManager(t.interceptor.config.Name), Force: true})
}

// entry returns the report as a status entry that the API server accepts after the old one.
func (r report) entry(now time.Time, old coordinationv1alpha1.InterceptorStatus, sendsHeartbeat bool) *coordinationapply.InterceptorStatusApplyConfiguration {
	stamp := metav1.NewTime(now.Truncate(time.Second))
	entry := coordinationapply.InterceptorStatus().WithName(old.Name)
	entry.StartTime, entry.HeartbeatTime = old.StartTime, old.HeartbeatTime
	if old.StartTime == nil && sendsHeartbeat {
		entry.WithStartTime(stamp)
	}
	if sendsHeartbeat {
		entry.WithHeartbeatTime(stamp)
	}
	if !r.eta.IsZero() {
		entry.WithExpectedFinishTime(acceptableETA(now, r.eta, old.ExpectedFinishTime))
	}
	if r.done {
		entry.WithCompletionTime(stamp)
	}
	if r.message != "" {
		entry.WithMessage(r.message)
	}
	return entry
}

// truncateMessage limits a message to the characters that the API server accepts.
func truncateMessage(message string) string {
	if utf8.RuneCountInString(message) > maxMessageLength {
		message = string([]rune(message)[:maxMessageLength])
	}
	for len(message) > maxMessageBytes {
		_, size := utf8.DecodeLastRuneInString(message)
		message = message[:len(message)-size]
	}
	return message
}
