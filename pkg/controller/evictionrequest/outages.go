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
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// outages remembers when this controller was last without the API server. It is safe for
// concurrent use. Before the first note there is no outage.
type outages struct {
	// clock is the one by which deadlines count, which may be corrected at any time; own is
	// the one behind it, which measures how long an outage is over.
	clock, own clock.PassiveClock

	lock sync.Mutex
	last time.Time
}

// note records that there was an outage until now. The start of the controller counts as
// one: it cannot know what happened before.
func (o *outages) note() {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.last = o.own.Now()
}

// observe notes an outage if the error of a call is one.
func (o *outages) observe(err error) {
	if isOutage(err) {
		o.note()
	}
}

// noTimeoutBefore returns when interceptors may lose turns by silence again.
func (o *outages) noTimeoutBefore() time.Time {
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.last.IsZero() {
		return time.Time{}
	}
	return o.clock.Now().Add(timeoutGracePeriod - o.own.Since(o.last))
}

// isOutage reports whether the error means that the API server could not be reached, or
// cannot serve. The end of a watch is none, nor is any other answer of the API server.
func isOutage(err error) bool {
	var status apierrors.APIStatus
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &status):
		return apierrors.IsServiceUnavailable(err)
	}
	return true
}

// watchThrough has the informer report when its watch is away. Where that comes too late,
// because the informer runs already, failing writes are the only sign of an outage.
func (o *outages) watchThrough(logger klog.Logger, informer cache.SharedIndexInformer) {
	if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *cache.Reflector, err error) {
		o.observe(err)
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
	}); err != nil {
		logger.V(2).Info("Outages of the watch will not be noticed", "err", err)
	}
}
