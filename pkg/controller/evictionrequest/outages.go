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
	// probeInterval is how long the API server may have served nothing before it is asked whether
	// it serves. A shorter outage is over before the client library gives up two attempts to
	// report.
	probeInterval = 30 * time.Second

	// probeTimeout is how long the answer may take. A report that took longer would be given
	// up by the client library.
	probeTimeout = 15 * time.Second
)

// outages remembers when interceptors may have been unable to report. It is safe for
// concurrent use. Before the first note there is no outage.
//
// What counts for all requests is what no tenant can cause: the start of the controller, and
// reads that fail. Writes and evictions pass the webhooks of tenants. Where one fails, that
// counts for the request alone.
type outages struct {
	// clock is the one by which deadlines count, which may be corrected at any time; own is
	// the one behind it, which measures how long an outage is over.
	clock, own clock.PassiveClock

	lock sync.Mutex
	last time.Time
	// served is when the API server and its storage were last seen to serve.
	served time.Time
	// refused holds until when the status of a request cannot be written, as far as is known.
	refused map[types.NamespacedName]time.Time
}

func newOutages(clock, own clock.PassiveClock) *outages {
	return &outages{clock: clock, own: own, refused: map[types.NamespacedName]time.Time{}}
}

// note records that there was an outage until now. The start of the controller counts as
// one: it cannot know what happened before.
func (o *outages) note() {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.last = o.own.Now()
}

// noteRefused records that the status of a request could not be written: what is in the way
// may be in that of its interceptor, too. It may be so until the next attempt, which comes after
// maxDecisionRetryDelay at the latest.
func (o *outages) noteRefused(request types.NamespacedName) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.refused[request] = o.own.Now().Add(maxDecisionRetryDelay)
}

// noteWritten records that the status of a request could be written: what was in the way is gone,
// and there is no outage.
func (o *outages) noteWritten(request types.NamespacedName) {
	o.lock.Lock()
	defer o.lock.Unlock()
	now := o.own.Now()
	o.served = now
	if until := o.refused[request]; until.After(now) {
		o.refused[request] = now
	}
}

// forget drops what is remembered of a request that is over.
func (o *outages) forget(request types.NamespacedName) {
	o.lock.Lock()
	defer o.lock.Unlock()
	delete(o.refused, request)
}

// observe notes an outage if the error of a read is one.
func (o *outages) observe(err error) {
	if isOutage(err) {
		o.note()
	}
}

// noTimeoutBefore returns when the interceptors of a request may lose turns by silence again.
func (o *outages) noTimeoutBefore(request types.NamespacedName) time.Time {
	o.lock.Lock()
	defer o.lock.Unlock()
	last := o.last
	if until := o.refused[request]; until.After(last) {
		last = until
	}
	if last.IsZero() {
		return time.Time{}
	}
	return o.clock.Now().Add(timeoutGracePeriod - o.own.Since(last))
}

// isOutage reports whether the error of a read means that the API server could not be
// reached, or cannot serve. The end of a watch is none, nor is any other answer of the API
// server.
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

// watchThrough has the informer report when its watch is away. Where that comes too late,
// because the informer runs already, probes are the only sign of an outage.
func (o *outages) watchThrough(logger klog.Logger, informer cache.SharedIndexInformer) {
	if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *cache.Reflector, err error) {
		o.observe(err)
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
	}); err != nil {
		logger.V(2).Info("Outages of the watch will not be noticed", "err", err)
	}
}

// probe reads requests whenever nothing else has shown for a while that the API server serves,
// until the context ends. The watch alone would not do: where the API server refuses connections,
// or is too busy, the informer waits in silence.
func (o *outages) probe(ctx context.Context, clock clock.WithTicker, client kubernetes.Interface) {
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
			o.observe(readOnce(ctx, client))
			wait = probeInterval
		}
		timer.Reset(wait)
	}
}

// untilProbe returns how long the last sign that the API server serves is enough.
func (o *outages) untilProbe() time.Duration {
	o.lock.Lock()
	defer o.lock.Unlock()
	return probeInterval - o.own.Since(o.served)
}

// readOnce reads as little as it can. It wants the newest state, so that the API server needs
// its storage for the answer.
func readOnce(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := client.CoordinationV1alpha1().EvictionRequests(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}
