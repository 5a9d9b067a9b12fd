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

// maxMessageLength is what the API server accepts, in characters.
const maxMessageLength = 32768

// content is what people and the API server get to see of a report.
type content struct {
	message string
	eta     time.Time // Zero for none.
	forbid  bool
	started bool
	done    bool
}

// report is what an interceptor wants to have in the request.
type report struct {
	content

	// spoken tells that Handle has set the message, and not the library.
	spoken bool
	// urgent asks for a write that does not wait for messageInterval.
	urgent bool
	// revision counts the changes of the content.
	revision int

	// working and since are what the pace asks for.
	working bool
	since   time.Time
}

// resumedReport is what a turn begins with: what stands in the request already, from
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

// start begins an attempt. The first one is reported at once, as everything before the call
// of Handle is.
func (r *report) start(attempt int, now time.Time) {
	r.working, r.spoken = true, false
	if !r.started {
		r.started, r.urgent = true, true
	}
	if attempt > 1 {
		r.since = now
		r.message = fmt.Sprintf("Attempt %d.", attempt)
	}
}

// fail shows the error. No heartbeats are sent until Handle has run for a while again:
// failing is no progress, and whoever does nothing else loses the turn in the end. The message
// is the same for the same error: one that tells of each attempt would be written for each.
func (r *report) fail(err error) {
	r.working = false
	r.eta = time.Time{}
	r.message = fmt.Sprintf("Failed, trying again: %v", err)
}

func (r *report) complete(message string) {
	r.done, r.urgent = true, true
	r.eta = time.Time{}
	r.message = message
}

// accepted is what the API server has of an interceptor.
type accepted struct {
	// entry is what it had last, also before this process has written anything.
	entry coordinationv1alpha1.InterceptorStatus
	// revision is the last revision of the report that it has taken, failed the last one that
	// it has not, as far as the answers tell; at is where messageInterval counts from.
	revision, failed int
	at               time.Time
	// content is what is in the request, if that is known: a write that has begun, or whose
	// answer was lost, may have had its effect.
	content content
	known   bool
	// changed is closed, and replaced, when a write has ended.
	changed chan struct{}
}

// reportUntilOver writes the reports of one turn, each when it is due.
func (t *Turn) reportUntilOver() {
	clock := t.interceptor.config.Clock
	backoff := newReportBackoff()
	var notBefore time.Time // After a failure.
	for t.ctx.Err() == nil {
		now := clock.Now()
		due, pace := t.nextReport(now)
		due = later(due, notBefore)
		// Even where the deadline has passed the turn may go on, if the controller was
		// away too: the first report tells.
		lost, tried := pace.lostAt(), !pace.first || !notBefore.IsZero()
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

// nextReport returns when something has to be written, and the pace that says so.
func (t *Turn) nextReport(now time.Time) (time.Time, pace) {
	t.lock.Lock()
	defer t.lock.Unlock()
	pace := t.pace()
	changed := t.wanted.revision > t.accepted.revision
	switch {
	case changed && t.wanted.urgent:
		return now, pace
	case changed && t.wanted.working:
		return earlier(later(t.accepted.at.Add(messageInterval), pace.settled()), pace.nextBeat()), pace
	case changed:
		return t.accepted.at.Add(messageInterval), pace
	case t.wanted.working:
		return pace.nextBeat(), pace
	}
	return pace.lostAt(), pace
}

// pace is called with the lock.
func (t *Turn) pace() pace {
	p := pace{
		deadline: HeartbeatDeadline(t.request),
		first:    t.accepted.revision == 0,
		working:  t.wanted.working,
		since:    t.wanted.since,

		persistent: t.interceptor.config.Persistent,
	}
	if activation := t.request.Status.ActivationTime; activation != nil {
		p.activation = activation.Time
	}
	if beat := t.accepted.entry.HeartbeatTime; beat != nil {
		p.beat = beat.Time
	}
	return p
}

func newReportBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 20, Cap: 30 * time.Second}
}

// write applies the report and tells whether it was accepted.
func (t *Turn) write(now time.Time) bool {
	t.lock.Lock()
	wanted := t.wanted
	entry := wanted.entry(now, t.accepted.entry, t.pace().beats(now))
	t.accepted.known = false
	t.lock.Unlock()

	request, err := t.apply(entry, wanted.forbid)
	if err != nil {
		t.rejected(err)
		t.lock.Lock()
		defer t.lock.Unlock()
		t.accepted.failed = wanted.revision
		t.accepted.tell()
		return false
	}
	// The API server checks whose turn it is only where a report changes something.
	if over := t.interceptor.whyOver(request); over != nil {
		t.cancel(over)
		return true
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	t.accepted.at = now
	if t.accepted.revision == 0 {
		t.accepted.at = now.Add(settleTime - messageInterval)
	}
	t.accepted.entry = t.interceptor.ownEntry(request)
	t.accepted.content, t.accepted.known = wanted.content, true
	if t.wanted.revision == wanted.revision {
		t.wanted.urgent = false
	}
	t.accepted.take(wanted.revision)
	return true
}

// take notes that the API server has what that revision says.
func (a *accepted) take(revision int) {
	a.revision = revision
	a.tell()
}

func (a *accepted) tell() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// rejected finds out why a report was not accepted. When the turn is over, the API
// server says that the report is invalid, as it does for many another reason.
func (t *Turn) rejected(err error) {
	if t.ctx.Err() != nil {
		return
	}
	klog.FromContext(t.ctx).Error(err, "Could not report, trying again")
	if apierrors.IsNotFound(err) {
		t.cancel(ErrRequestGone)
		return
	}
	if !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
		return
	}
	client := t.interceptor.config.Client.CoordinationV1alpha1().EvictionRequests(t.request.Namespace)
	live, err := client.Get(t.ctx, t.request.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && live.UID != t.request.UID:
		t.cancel(ErrRequestGone)
		return
	case err != nil:
		return // The next attempt will tell.
	}
	if over := t.interceptor.whyOver(live); over != nil {
		t.cancel(over)
		return
	}
	// What stands there is what the next report must fit: the process that was here
	// before may have written after the watch had its last word.
	t.lock.Lock()
	defer t.lock.Unlock()
	t.accepted.entry = t.interceptor.ownEntry(live)
}

// apply writes the interceptor's own entry, and nothing else of the list. An entry is
// atomic: it is applied whole. It forces, because the controller has created the entry,
// and does not need it any more.
//
// The cancellation policy must be in every report once it is Forbid: leaving it out
// would take it back, which the API server refuses.
func (t *Turn) apply(entry *coordinationapply.InterceptorStatusApplyConfiguration, forbid bool) (*coordinationv1alpha1.EvictionRequest, error) {
	status := coordinationapply.EvictionRequestStatus().WithInterceptors(entry)
	if forbid {
		status.WithEvictionRequestCancellationPolicy(coordinationv1alpha1.EvictionRequestCancellationPolicyForbid)
	}
	// The UID, so that it does not go to another request of the same name.
	patch := coordinationapply.EvictionRequest(t.request.Name, t.request.Namespace).WithUID(t.request.UID).WithStatus(status)
	ctx, cancel := context.WithTimeout(t.ctx, writeTimeout)
	defer cancel()
	// The work begins with the call that reports its start: webhooks of the namespace can make
	// that last, too. The client may have waited for its rate limit before.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) {
		if place := t.hasPlace.Load(); place != nil {
			place.Begin()
		}
	}})
	return t.interceptor.config.Client.CoordinationV1alpha1().EvictionRequests(t.request.Namespace).
		ApplyStatus(ctx, patch, metav1.ApplyOptions{FieldManager: FieldManager(t.interceptor.config.Name), Force: true})
}

// entry is the report as the API server accepts it now, after the old one.
func (r report) entry(now time.Time, old coordinationv1alpha1.InterceptorStatus, beats bool) *coordinationapply.InterceptorStatusApplyConfiguration {
	stamp := metav1.NewTime(now.Truncate(time.Second))
	entry := coordinationapply.InterceptorStatus().WithName(old.Name)
	entry.StartTime, entry.HeartbeatTime = old.StartTime, old.HeartbeatTime
	if old.StartTime == nil && beats {
		entry.WithStartTime(stamp)
	}
	if beats {
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

// cutMessage cuts a message to what the API server accepts, between characters.
func cutMessage(message string) string {
	if utf8.RuneCountInString(message) <= maxMessageLength {
		return message
	}
	return string([]rune(message)[:maxMessageLength])
}
