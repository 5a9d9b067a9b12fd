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
	"io"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	testingclock "k8s.io/utils/clock/testing"
)

func TestOutages(t *testing.T) {
	fakeClock := testingclock.NewFakeClock(start)
	away := &outages{clock: fakeClock, own: fakeClock}
	if got := away.noTimeoutBefore(); !got.IsZero() {
		t.Errorf("no timeouts before %s without an outage", got)
	}
	for range 2 {
		fakeClock.Step(time.Minute)
		away.observe(errUnreachable)
		if got, want := away.noTimeoutBefore(), fakeClock.Now().Add(5*time.Minute); !got.Equal(want) {
			t.Errorf("no timeouts before %s, want %s", got, want)
		}
	}
	// The clock of the API server turns out to be ahead: the grace period is as long.
	ahead := newServerClock(fakeClock)
	ahead.offset.Store(int64(time.Hour))
	away.clock = ahead
	if got, want := away.noTimeoutBefore(), ahead.Now().Add(5*time.Minute); !got.Equal(want) {
		t.Errorf("no timeouts before %s with a corrected clock, want %s", got, want)
	}
	away.clock = fakeClock
	before := away.noTimeoutBefore()
	fakeClock.Step(time.Minute)
	away.observe(io.EOF)
	if got := away.noTimeoutBefore(); !got.Equal(before) {
		t.Error("the end of a watch counts as an outage")
	}
}

func TestIsOutage(t *testing.T) {
	tests := map[string]struct {
		err  error
		want bool
	}{
		"success":                {},
		"no answer":              {err: fmt.Errorf("writing: %w", errUnreachable), want: true},
		"a time-out":             {err: context.DeadlineExceeded, want: true},
		"a server that starts":   {err: fmt.Errorf("writing: %w", apierrors.NewServiceUnavailable("starting")), want: true},
		"the end of a watch":     {err: io.EOF},
		"the sudden end of one":  {err: fmt.Errorf("watching: %w", io.ErrUnexpectedEOF)},
		"an expired watch":       {err: apierrors.NewResourceExpired("too old")},
		"no right to watch":      {err: apierrors.NewForbidden(podResource, "", errUnreachable)},
		"a server that is busy":  {err: apierrors.NewTooManyRequests("busy", 1)},
		"a refused write":        {err: apierrors.NewInternalError(errUnreachable)},
		"the end of the process": {err: context.Canceled},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isOutage(test.err); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// watchedInformer keeps the handler of watch errors, or takes none.
type watchedInformer struct {
	cache.SharedIndexInformer
	handler cache.WatchErrorHandlerWithContext
	err     error
}

func (i *watchedInformer) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	i.handler = handler
	return i.err
}

func TestOutagesOfTheWatch(t *testing.T) {
	logger, ctx := ktesting.NewTestContext(t)
	fakeClock := testingclock.NewFakeClock(start)
	away := &outages{clock: fakeClock, own: fakeClock}
	informer := &watchedInformer{}
	away.watchThrough(logger, informer)
	informer.handler(ctx, &cache.Reflector{}, apierrors.NewResourceExpired("too old"))
	if got := away.noTimeoutBefore(); !got.IsZero() {
		t.Error("an expired watch counts as an outage")
	}
	informer.handler(ctx, &cache.Reflector{}, errUnreachable)
	if got := away.noTimeoutBefore(); !got.Equal(start.Add(timeoutGracePeriod)) {
		t.Errorf("no timeouts before %s", got)
	}
	// An informer that runs takes no handler. That is no reason to fail.
	away.watchThrough(logger, &watchedInformer{err: errors.New("informer has already started")})
}

// After its start, and after a call that did not get through, the controller takes no
// turn away for a while; all else goes its way.
func TestNoTimeoutAfterAnOutage(t *testing.T) {
	silent := newRequest(deadlineOf(600), having(targets(first), active(first, 0)))
	for name, test := range map[string]struct {
		outage    func(t *testing.T, f *fixture)
		after     time.Duration
		processed int
	}{
		"none":                    {outage: func(*testing.T, *fixture) {}, processed: 1},
		"a failing write":         {outage: failingWrite},
		"a failing eviction":      {outage: failingEviction},
		"just before its end":     {outage: failingWrite, after: timeoutGracePeriod - time.Second},
		"when the outage is over": {outage: failingWrite, after: timeoutGracePeriod, processed: 1},
		"a watch that is away": {outage: func(t *testing.T, f *fixture) {
			_, ctx := ktesting.NewTestContext(t)
			f.requests.watchFailed(ctx, &cache.Reflector{}, errUnreachable)
		}},
		"the start of the process": {outage: func(t *testing.T, f *fixture) { startAndStop(t, f) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, silent, newPod(interceptedBy(first)))
			f.clock.Step(time.Hour)
			test.outage(t, f)
			f.clock.Step(test.after)
			f.client.ClearActions()
			_, ctx := ktesting.NewTestContext(t)
			if err := f.syncRequest(ctx, requestKeyOfPod); err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			processed := 0
			for _, status := range f.writes(t) {
				processed += len(status.ProcessedInterceptors)
			}
			if processed != test.processed {
				t.Errorf("%d interceptors have lost their turn, want %d", processed, test.processed)
			}
		})
	}
}

// failingWrite has the write of a timeout not get through.
func failingWrite(t *testing.T, f *fixture) {
	t.Helper()
	failed := false
	f.client.PrependReactor("update", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		fails := !failed
		failed = true
		return fails, nil, errUnreachable
	})
	f.decisions.Add(requestKeyOfPod)
	f.Controller.work(klog.NewContext(context.Background(), logr.Discard()))
	if !failed {
		t.Fatal("no write was tried")
	}
}

// failingEviction has the eviction of another pod not get through.
func failingEviction(t *testing.T, f *fixture) {
	t.Helper()
	request, pod := pair("another", 0)
	f.cached(t, request)
	f.cached(t, pod)
	f.evictErr = errUnreachable
	f.syncsEviction(t, keyOf(request))
	if len(f.evicted) != 1 {
		t.Fatal("no eviction was tried")
	}
}

// startAndStop runs the controller for a moment, without its queues.
func startAndStop(t *testing.T, f *fixture) {
	t.Helper()
	_, ctx := ktesting.NewTestContext(t)
	ctx, stop := context.WithCancel(ctx)
	f.queue, f.limitWorkers = newQueue(f.clock)
	f.imperative.queue, f.imperative.limitWorkers = newEvictionQueue(f.clock)
	f.cachesSynced = nil
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Run(ctx, 1, 1)
	}()
	waitFor(ctx, t, "the start", func() bool { return !f.outages.noTimeoutBefore().IsZero() })
	stop()
	receive(t, "the controller to end", ended)
}
