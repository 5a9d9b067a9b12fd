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
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/fairshare"
	"k8s.io/klog/v2"
)

// Why a turn ends before the interceptor is done: context.Cause of the context that
// Handle gets is, or wraps, one of these.
var (
	// ErrCanceled means that the eviction was called off: the pod stays.
	ErrCanceled = errors.New("the eviction request is canceled")

	// ErrEvicted means that the pod is gone or has ended, by whomever.
	ErrEvicted = errors.New("the pod is evicted")

	// ErrTurnLost means that it is not the interceptor's turn any more, or soon will not
	// be: no heartbeat has reached the API server until the deadline.
	ErrTurnLost = errors.New("the interceptor has lost its turn")

	// ErrRequestGone means that the request was deleted, or does not match the label
	// selector any more.
	ErrRequestGone = errors.New("the eviction request is gone")
)

// errReturned ends what serves a turn when Handle does not need it any more.
var errReturned = errors.New("the turn is done")

// declined is what Decline returns.
type declined struct{ message string }

func (d declined) Error() string { return "declined: " + d.message }

// Decline is what Handle returns to pass on a pod: the turn is complete, with this
// message, and the next interceptor gets its turn.
func Decline(message string) error { return declined{message} }

// Turn is one turn of an interceptor. Its methods may be called by several goroutines,
// and do nothing after the turn.
type Turn struct {
	interceptor *Interceptor
	request     *coordinationv1alpha1.EvictionRequest

	// ctx is what Handle gets; cancel ends it.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// over is closed when nothing of the turn runs any more.
	over chan struct{}
	// finished tells, when over is closed, that this turn is not to be begun again.
	finished bool

	// wake tells the reporter that something has changed.
	wake chan struct{}

	// hasPlace is the place that the turn got last.
	hasPlace atomic.Pointer[fairshare.Place]

	lock     sync.Mutex
	wanted   report
	accepted accepted
}

func newTurn(ctx context.Context, interceptor *Interceptor, request *coordinationv1alpha1.EvictionRequest) *Turn {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "evictionRequest", klog.KObj(request), "pod", targetName(request))
	t := &Turn{
		interceptor: interceptor,
		request:     request.DeepCopy(),
		over:        make(chan struct{}),
		wake:        make(chan struct{}, 1),
	}
	t.ctx, t.cancel = context.WithCancelCause(klog.NewContext(ctx, logger))
	t.accepted = accepted{entry: interceptor.ownEntry(request), changed: make(chan struct{})}
	t.wanted = resumedReport(request, t.accepted.entry)
	return t
}

// Request returns the request as it was when the turn began. It must not be modified.
func (t *Turn) Request() *coordinationv1alpha1.EvictionRequest { return t.request }

// SetMessage tells people what the interceptor is doing or waiting for. It stands in the
// request within seconds, and stays there after completion.
func (t *Turn) SetMessage(message string) {
	t.want(func(r *report) { r.message, r.spoken = message, true })
}

// SetExpectedFinishTime tells when the work will be done, as far as can be said now. The
// zero time means that it cannot be said. A time that is past, or nearly, is moved ahead
// by a few seconds, because the API server takes only those that lie ahead.
func (t *Turn) SetExpectedFinishTime(eta time.Time) {
	t.want(func(r *report) { r.eta = eta.Truncate(time.Second) })
}

// ForbidCancellation says that the eviction cannot be called off from now on, and
// returns nil when the API server has recorded that. Call it before the first step that
// cannot be undone, and do not take that step if it returns an error. It cannot be taken
// back, and outlasts the turn.
func (t *Turn) ForbidCancellation(ctx context.Context) error {
	revision := t.want(func(r *report) { r.forbid, r.urgent = true, true })
	if err := t.awaitAccepted(ctx, revision); err != nil {
		return fmt.Errorf("forbidding the cancellation of request %s: %w", klog.KObj(t.request), err)
	}
	return nil
}

// want changes what should be reported and returns the revision that has it.
func (t *Turn) want(change func(*report)) int {
	t.lock.Lock()
	defer t.lock.Unlock()
	before := t.wanted.content
	change(&t.wanted)
	t.wanted.message = cutMessage(t.wanted.message)
	if t.wanted.content != before {
		t.wanted.revision++
		if t.accepted.known && t.wanted.content == t.accepted.content {
			t.accepted.take(t.wanted.revision) // What was to be written in between is out of date.
		}
	}
	select {
	case t.wake <- struct{}{}:
	default: // It has been told already.
	}
	return t.wanted.revision
}

// awaitAccepted returns nil when the API server has taken that revision of the report.
func (t *Turn) awaitAccepted(ctx context.Context, revision int) error {
	return t.await(ctx, func(a *accepted) bool { return a.revision >= revision })
}

// await returns nil when the condition holds.
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

// run takes the turn: it waits for one of the places, confirms by a report that it is its
// turn, works, and reports completion. Reports are written by one goroutine, so that they
// cannot overtake each other.
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
		err = t.awaitAccepted(t.ctx, t.want(func(r *report) { r.complete(message) }))
	}
	if err != nil {
		logger.Info("Turn is over, the interceptor was not done", "reason", err)
		t.finished = t.gaveUp()
		return
	}
	logger.Info("Turn is complete", "message", message)
	t.finished = true
}

// work calls Handle until it succeeds or the turn is over, and returns the last words.
// place is what the turn has already, if it is not nil.
func (t *Turn) work(place *fairshare.Place) (message string, err error) {
	backoff := wait.Backoff{Duration: 5 * time.Second, Factor: 2, Jitter: 0.1, Steps: 20, Cap: 5 * time.Minute}
	for number := 1; ; number++ {
		message, err := t.attempt(number, place)
		// Whatever Handle returned: its work was cut short, or may have been.
		if t.ctx.Err() != nil {
			return "", context.Cause(t.ctx)
		}
		if err == nil {
			return message, nil
		}
		place = nil
		delay := backoff.Step()
		klog.FromContext(t.ctx).Error(err, "Handle failed", "tryingAgainIn", delay)
		t.want(func(r *report) { r.fail(err) })
		if err := pause(t.ctx, t.interceptor.config.Clock, delay); err != nil {
			return "", err
		}
	}
}

// tryStart starts an attempt if there is a place, and returns it. If not, it says so, unless there
// is a failure that says more.
func (t *Turn) tryStart(number int) (place *fairshare.Place) {
	place = t.interceptor.places.TryAcquire(t.request.Namespace)
	switch {
	case place != nil:
		t.hasPlace.Store(place)
		t.want(func(r *report) { r.start(number, t.interceptor.config.Clock.Now()) })
	case number == 1:
		t.want(func(r *report) { r.message = t.interceptor.waitingMessage() })
	}
	return place
}

// start starts an attempt when there is a place, and returns it. There is no
// heartbeat before: no work is done that one could speak for, and who waits for longer than
// the deadline loses the turn (KEP-4563, Interceptor).
func (t *Turn) start(number int) (place *fairshare.Place, err error) {
	if place := t.tryStart(number); place != nil {
		return place, nil
	}
	place, err = t.interceptor.places.Acquire(t.ctx, t.request.Namespace)
	if err != nil {
		return nil, err
	}
	t.hasPlace.Store(place)
	t.want(func(r *report) {
		r.message = ""
		r.start(number, t.interceptor.config.Clock.Now())
	})
	return place, nil
}

// confirm waits until the API server has confirmed the first start, which says that it is this
// interceptor's turn. Where it does not take the report, as a webhook may refuse it for hours,
// the place is given back until it takes another one.
func (t *Turn) confirm(place *fairshare.Place) (*fairshare.Place, error) {
	for backoff := newReportBackoff(); ; {
		revision, confirmed := t.want(func(*report) {}), false
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
		if err := t.awaitAccepted(t.ctx, t.want(func(r *report) { r.working, r.started = false, false })); err != nil {
			return nil, err
		}
		// It may be just the start that is refused.
		if err := pause(t.ctx, t.interceptor.config.Clock, backoff.Step()); err != nil {
			return nil, err
		}
		if place, err = t.start(1); err != nil {
			return nil, err
		}
	}
}

// attempt calls Handle when it has one of the places. It returns the last words.
func (t *Turn) attempt(number int, place *fairshare.Place) (message string, err error) {
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
	err = t.interceptor.config.Handle(t.ctx, t)
	var declined declined
	if errors.As(err, &declined) {
		return declined.message, nil
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.wanted.spoken {
		return t.wanted.message, err
	}
	return "Done.", err
}

// gaveUp reports whether the turn was lost because Handle kept failing, or there was no place
// for it. Beginning it again would send a heartbeat, and so hold up the eviction for ever. A
// turn of which no report was taken may still be the interceptor's.
func (t *Turn) gaveUp() bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	return errors.Is(context.Cause(t.ctx), ErrTurnLost) && !t.wanted.working && t.accepted.revision > 0
}
