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
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// probeInterval is how long there may be no sign that the API server works before it is probed.
	// A shorter outage ends before the client library gives up two attempts to report.
	probeInterval = 30 * time.Second

	// probeTimeout limits each probe. The client library gives up a report that takes longer.
	probeTimeout = 15 * time.Second
)

// outages records when interceptors may have been unable to report. It is safe for concurrent use.
// Before the first call of note there is no outage.
//
// An outage for all requests is only what no tenant can cause: the start of the controller and
// failed reads. Writes and evictions pass through the webhooks of tenants. A failed write counts
// for its request alone.
type outages struct {
	// clock is the corrected clock that deadlines use. Its offset may change at any time. local is
	// the clock without the correction. It measures the time since an outage.
	clock, local clock.PassiveClock

	lock sync.Mutex
	// began is when this was created: what happened before is unknown. periods are the outages since, the
	// oldest first, of which the last one may go on.
	began   time.Time
	periods []period
	// looked is when this process has last looked whether the API server works: an outage may have begun then.
	looked time.Time
	// served is when a status write last succeeded, which shows that the API server works.
	served time.Time
	// refused holds the time until which the status of a request is assumed not to be writable.
	refused map[types.NamespacedName]time.Time
}

func newOutages(clock, local clock.PassiveClock) *outages {
	return &outages{clock: clock, local: local, began: local.Now(), looked: local.Now(), refused: map[types.NamespacedName]time.Time{}}
}

// period is the time from the first to the last sign of an outage.
type period struct{ from, to time.Time }

const (
	// sameOutage is the longest time between two signs of the same outage: that between two probes, one of
	// which may take until it fails.
	sameOutage = 2 * probeInterval

	// maxPeriods limits the memory. Older periods are the oldest that can matter: no turn is silent for longer
	// than the longest deadline and the allowance.
	maxPeriods = 1000

	// silenceAllowance is for how much longer than its deadline an interceptor may be silent in one turn because
	// of outages, in addition to the time that these have taken. Each outage ends with a grace period. Without
	// a limit, a load balancer that resets all watches every few minutes would keep a silent one for ever.
	silenceAllowance = 30 * time.Minute
)

// note records an outage that ends now. The start of the controller counts as an outage: what
// happened before is unknown.
func (o *outages) note() {
	o.lock.Lock()
	defer o.lock.Unlock()
	now := o.local.Now()
	from := now
	if now.Sub(o.looked) > sameOutage {
		from = o.looked // The process was suspended.
	}
	o.looked = now
	if last := len(o.periods) - 1; last >= 0 && now.Sub(o.periods[last].to) <= sameOutage && o.served.Before(o.periods[last].to) {
		o.periods[last].to = now
		return
	}
	o.periods = append(o.periods, period{from, now})
	if len(o.periods) > maxPeriods {
		o.periods = o.periods[1:]
	}
}

// noteRefused records that the status of a request could not be written. The same cause may block
// the reports of its interceptor. It may last until the next attempt, which is at most
// maxDecisionRetryDelay later.
func (o *outages) noteRefused(request types.NamespacedName) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.refused[request] = o.local.Now().Add(maxDecisionRetryDelay)
}

// noteWritten records that the status of a request could be written: the cause of an earlier
// refusal is gone, and there is no outage.
func (o *outages) noteWritten(request types.NamespacedName) {
	o.lock.Lock()
	defer o.lock.Unlock()
	now := o.local.Now()
	o.served, o.looked = now, now
	if until := o.refused[request]; until.After(now) {
		o.refused[request] = now
	}
}

// look records that there is no outage, or that it was recorded.
func (o *outages) look() {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.looked = o.local.Now()
}

// forget drops the entry of a finished request.
func (o *outages) forget(request types.NamespacedName) {
	o.lock.Lock()
	defer o.lock.Unlock()
	delete(o.refused, request)
}

// observe records an outage if the error of a read indicates one.
func (o *outages) observe(err error) {
	if isOutage(err) {
		o.note()
	}
}

// noTimeoutBefore returns the time before which nothing times out that has to do with this request, or the zero time.
func (o *outages) noTimeoutBefore(request types.NamespacedName) time.Time {
	o.lock.Lock()
	defer o.lock.Unlock()
	return later(o.graceAfter(o.last()), o.graceAfter(o.refused[request]))
}

// noTurnEndsBefore is noTimeoutBefore for an interceptor whose last sign of life was at that time, and which has to
// give the next one until the deadline. Outages keep it only for so long: see silenceAllowance.
func (o *outages) noTurnEndsBefore(request types.NamespacedName, lastSign, deadline time.Time) time.Time {
	o.lock.Lock()
	defer o.lock.Unlock()
	outage := o.graceAfter(o.last())
	if latest := o.longestSilence(lastSign, deadline); outage.After(latest) {
		outage = latest
	}
	return later(outage, o.graceAfter(o.refused[request]))
}

// last returns the end of the last outage, or the zero time.
func (o *outages) last() time.Time {
	if len(o.periods) == 0 {
		return time.Time{}
	}
	return o.periods[len(o.periods)-1].to
}

// graceAfter returns the end of the grace period after an outage, by the corrected clock.
func (o *outages) graceAfter(outage time.Time) time.Time {
	if outage.IsZero() {
		return time.Time{}
	}
	return o.clock.Now().Add(timeoutGracePeriod - o.local.Since(outage))
}

// longestSilence returns until when an interceptor may be silent at most. Before this process began, it may have been
// unable to report all the time.
func (o *outages) longestSilence(lastSign, deadline time.Time) time.Time {
	correction := o.clock.Now().Sub(o.local.Now())
	longest := deadline
	if began := o.began.Add(correction); longest.Before(began) {
		longest = began
	}
	for _, outage := range o.periods {
		if from, to := later(outage.from.Add(correction), lastSign), outage.to.Add(correction); to.After(from) {
			longest = longest.Add(to.Sub(from))
		}
	}
	return longest.Add(silenceAllowance)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// isOutage reports whether the error of a read means that the API server is unreachable or cannot
// serve. The end of a watch is not an outage, and neither is any other response of the API server.
func isOutage(err error) bool {
	var status apierrors.APIStatus
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &status):
		return apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsTooManyRequests(err) ||
			apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
	}
	return true
}

// watchThrough records an outage when the watch of the informer fails. If the informer has already
// started, the handler cannot be set, and only probes detect outages.
func (o *outages) watchThrough(logger klog.Logger, informer cache.SharedIndexInformer) {
	if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *cache.Reflector, err error) {
		o.observe(err)
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
	}); err != nil {
		logger.V(2).Info("Failed to set the watch error handler, watch failures will not count as outages", "err", err)
	}
}

// probe reads requests whenever there was no other sign for a while that the API server works,
// until the context ends. The watch alone is not sufficient: if the API server refuses connections
// or is overloaded, the informer waits and reports no error. needed reports whether an interceptor
// is active: an outage that ends before one is activated has no consequence.
func (o *outages) probe(ctx context.Context, clock clock.WithTicker, client kubernetes.Interface, needed func() bool) {
	timer := clock.NewTimer(probeInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		wait := o.untilProbe()
		if wait <= 0 {
			if needed() {
				o.observe(readOnce(ctx, client))
			}
			o.look()
			wait = probeInterval
		}
		timer.Reset(wait)
	}
}

// untilProbe returns how long it is until the next probe is due.
func (o *outages) untilProbe() time.Duration {
	o.lock.Lock()
	defer o.lock.Unlock()
	return probeInterval - o.local.Since(o.served)
}

// readOnce reads a single request. It asks for the latest state, so that the API server needs its
// storage for the response.
func readOnce(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := client.CoordinationV1alpha1().EvictionRequests(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}
