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
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// errReturned stops the goroutines of a turn after Handle has returned.
var errReturned = errors.New("the turn is done")

// declined is the error that Decline returns.
type declined struct{ message string }

func (d declined) Error() string { return "declined: " + d.message }

// Decline returns an error for Handle to pass a pod on: the responder completes with this
// message, and the next one is activated.
func Decline(message string) error { return declined{message} }

// Turn is the period during which an responder is active for one request. Its methods are safe
// for concurrent use, and have no effect after the turn.
type Turn struct {
	responder *Responder
	request   *Request

	// ctx is the context of Handle. cancel cancels it.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// over is closed when all goroutines of the turn have returned.
	over chan struct{}
	// finished is whether this turn must not be started again. It is valid after over is closed.
	finished bool

	// wake notifies the reporter of a change.
	wake chan struct{}

	// currentPlace is the place that the turn acquired last.
	currentPlace atomic.Pointer[Place]

	lock     sync.Mutex
	desired  report
	accepted accepted
}

func newTurn(ctx context.Context, responder *Responder, request *Request) *Turn {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "evictionRequest", request.ref(), "pod", request.Pod.Name)
	t := &Turn{
		responder: responder,
		request:   request,
		over:      make(chan struct{}),
		wake:      make(chan struct{}, 1),
	}
	t.ctx, t.cancel = context.WithCancelCause(klog.NewContext(ctx, logger))
	t.accepted = accepted{entry: request.Report, changed: make(chan struct{})}
	t.desired = resumedReport(request)
	return t
}

// Request returns the request as it was at the start of the turn. It must not be modified.
func (t *Turn) Request() *Request { return t.request }

// SetMessage sets the message for users about what the responder does or waits for. It is written
// to the request within seconds and remains there after completion.
func (t *Turn) SetMessage(message string) {
	t.update(func(r *report) { r.message, r.messageSet = message, true })
}

// SetExpectedFinishTime sets the estimated time of completion. The zero time means that there is no
// estimate. A time in the past or the near future is moved a few seconds into the future, because
// the API server accepts only future times.
func (t *Turn) SetExpectedFinishTime(eta time.Time) {
	t.update(func(r *report) { r.eta = eta.Truncate(time.Second) })
}

// ForbidCancellation forbids the cancellation of the request, and returns nil when the API server
// has stored that. Call it before the first step that cannot be undone, and do not take that step
// if it returns an error. It cannot be revoked and remains in effect after the turn.
func (t *Turn) ForbidCancellation(ctx context.Context) error {
	if !t.responder.rules.CanForbid {
		return ErrNotSupported
	}
	revision := t.update(func(r *report) { r.forbid, r.urgent = true, true })
	if err := t.awaitAccepted(ctx, revision); err != nil {
		return fmt.Errorf("forbidding the cancellation of request %s: %w", t.request.ref(), err)
	}
	return nil
}

// update changes the desired report and returns its revision.
func (t *Turn) update(change func(*report)) int {
	t.lock.Lock()
	defer t.lock.Unlock()
	before := t.desired.content
	change(&t.desired)
	t.desired.message = truncateMessage(t.desired.message, t.responder.rules)
	if t.desired.content != before {
		t.desired.revision++
		if t.accepted.known && t.desired.content == t.accepted.content {
			t.accepted.accept(t.desired.revision) // The request already has this content.
		}
	}
	select {
	case t.wake <- struct{}{}:
	default: // A notification is pending already.
	}
	return t.desired.revision
}

// awaitAccepted returns nil when the API server has accepted this revision of the report.
func (t *Turn) awaitAccepted(ctx context.Context, revision int) error {
	return t.await(ctx, func(a *accepted) bool { return a.revision >= revision })
}

// await returns nil when the condition is true.
func (t *Turn) await(ctx context.Context, condition func(*accepted) bool) error {
	for {
		t.lock.Lock()
		done, changed := condition(&t.accepted), t.accepted.changed
		t.lock.Unlock()
		switch {
		case done:
			return nil
		case t.ctx.Err() != nil:
			return context.Cause(t.ctx)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-t.ctx.Done():
		}
	}
}

func (t *Turn) returned() bool {
	select {
	case <-t.over:
		return true
	default:
		return false
	}
}

// run runs the turn: it acquires a place, confirms with a report that the responder is active,
// calls Handle, and reports the completion. One goroutine writes all reports, so that their order
// is kept.
func (t *Turn) run() {
	defer utilruntime.HandleCrashWithContext(t.ctx)
	defer close(t.over)
	// Before the first report, so that it says whether the work starts.
	place := t.tryStart(1)
	var reporting sync.WaitGroup
	reporting.Go(t.reportUntilOver)
	defer func() {
		t.cancel(errReturned)
		reporting.Wait()
	}()
	logger := klog.FromContext(t.ctx)
	message, err := t.work(place)
	if err == nil {
		err = t.awaitAccepted(t.ctx, t.update(func(r *report) { r.complete(message) }))
	}
	if err != nil {
		logger.Info("Turn ended before the responder completed", "reason", err)
		t.finished = t.gaveUp()
		return
	}
	logger.Info("Turn is complete", "message", message)
	t.finished = true
}

// work calls Handle until it succeeds or the turn ends, and returns the final message. place is the
// place that the turn already has, or nil.
func (t *Turn) work(place Place) (message string, err error) {
	backoff := wait.Backoff{Duration: 5 * time.Second, Factor: 2, Jitter: 0.1, Steps: 20, Cap: 5 * time.Minute}
	for number := 1; ; number++ {
		message, err := t.attempt(number, place)
		// After the end of the turn, the return value of Handle is irrelevant: its work was or may
		// have been interrupted.
		if t.ctx.Err() != nil {
			return "", context.Cause(t.ctx)
		}
		if err == nil {
			return message, nil
		}
		place = nil
		delay := backoff.Step()
		klog.FromContext(t.ctx).Error(err, "Handle failed", "retryAfter", delay)
		t.update(func(r *report) { r.fail(err) })
		if err := sleep(t.ctx, t.responder.config.Clock, delay); err != nil {
			return "", err
		}
	}
}

// tryStart starts an attempt if a place is free, and returns the place. If none is free, the first
// attempt reports that. Later attempts keep the message of the failure, which is more useful.
func (t *Turn) tryStart(number int) (place Place) {
	place = t.responder.config.Places.TryAcquire(t.request.Namespace)
	switch {
	case place != nil:
		t.currentPlace.Store(&place)
		t.update(func(r *report) { r.start(number, t.responder.config.Clock.Now()) })
	case number == 1:
		t.update(func(r *report) { r.message = t.responder.config.WaitingMessage })
	}
	return place
}

// start waits for a place, starts an attempt and returns the place. No heartbeat is sent while it
// waits: no work is in progress, and a turn that waits for longer than the deadline is lost
// (KEP-4563, Interceptor).
func (t *Turn) start(number int) (place Place, err error) {
	if place := t.tryStart(number); place != nil {
		return place, nil
	}
	place, err = t.responder.config.Places.Acquire(t.ctx, t.request.Namespace)
	if err != nil {
		return nil, err
	}
	t.currentPlace.Store(&place)
	t.update(func(r *report) {
		r.message = ""
		r.start(number, t.responder.config.Clock.Now())
	})
	return place, nil
}

// confirm waits until the API server has accepted the report of the first start, which confirms
// that the responder is active. If the report is rejected, as a webhook may do for hours, the
// place is released until another report is accepted.
func (t *Turn) confirm(place Place) (Place, error) {
	for backoff := newReportBackoff(); ; {
		revision, confirmed := t.update(func(*report) {}), false
		err := t.await(t.ctx, func(a *accepted) bool {
			confirmed = a.revision >= revision
			return confirmed || a.failed >= revision
		})
		if err == nil && confirmed {
			klog.FromContext(t.ctx).Info("Work has started")
			return place, nil
		}
		place.Release()
		if err != nil {
			return nil, err
		}
		if err := t.awaitAccepted(t.ctx, t.update(func(r *report) { r.working, r.started = false, false })); err != nil {
			return nil, err
		}
		// Only the report of the start may be rejected.
		if err := sleep(t.ctx, t.responder.config.Clock, backoff.Step()); err != nil {
			return nil, err
		}
		if place, err = t.start(1); err != nil {
			return nil, err
		}
	}
}

// errNotWanted is why Handle is not called again for a request that is about to be canceled.
var errNotWanted = errors.New("nobody requests the eviction any more")

// confirmAgain returns an error unless the API server says that the responder is still active, and that the
// eviction is wanted. The attempt before may have been long ago, and the cache may be as old: a process that was
// suspended goes on where it was.
func (t *Turn) confirmAgain() error {
	live, err := t.readLive()
	if err != nil {
		return fmt.Errorf("reading the request before another attempt: %w", err)
	}
	if live.Unwanted {
		return errNotWanted
	}
	return nil
}

// attempt acquires a place, if necessary, and calls Handle. It returns the final message.
func (t *Turn) attempt(number int, place Place) (message string, err error) {
	if place == nil {
		if place, err = t.start(number); err != nil {
			return "", err
		}
	}
	if number == 1 {
		if place, err = t.confirm(place); err != nil {
			return "", err
		}
	}
	defer place.Release()
	place.Begin()
	if number > 1 {
		if err := t.confirmAgain(); err != nil {
			return "", err
		}
	}
	err = t.responder.config.Handle(t.ctx, t)
	var declined declined
	if errors.As(err, &declined) {
		return declined.message, nil
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.desired.messageSet {
		return t.desired.message, err
	}
	return "Done.", err
}

// gaveUp reports whether the turn was lost because Handle kept failing or no place was free.
// Starting it again would send a heartbeat and so block the eviction forever. If no report was
// accepted, the responder may still be active.
func (t *Turn) gaveUp() bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	return errors.Is(context.Cause(t.ctx), ErrTurnLost) && !t.desired.working && t.accepted.revision > 0
}

// sleep returns an error if the context is done first.
func sleep(ctx context.Context, clock clock.Clock, duration time.Duration) error {
	timer := clock.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C():
		return nil
	}
}
