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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

func TestOutages(t *testing.T) {
	fakeClock := testingclock.NewFakeClock(start)
	away := newOutages(fakeClock, fakeClock)
	expect := func(what string, got, want time.Time) {
		t.Helper()
		if !got.Equal(want) {
			t.Errorf("%s: no timeouts before %s, want %s", what, got, want)
		}
	}
	expect("without an outage", away.noTimeoutBefore(requestKeyOfPod), time.Time{})
	for range 2 {
		fakeClock.Step(time.Minute)
		away.observe(errUnreachable)
		expect("after an outage", away.noTimeoutBefore(requestKeyOfPod), fakeClock.Now().Add(5*time.Minute))
	}
	// The clock of the API server turns out to be ahead: the grace period is as long.
	ahead := newServerClock(fakeClock)
	ahead.offset.Store(int64(time.Hour))
	away.clock = ahead
	expect("with a corrected clock", away.noTimeoutBefore(requestKeyOfPod), ahead.Now().Add(5*time.Minute))
	away.clock = fakeClock
	before := away.noTimeoutBefore(requestKeyOfPod)
	fakeClock.Step(time.Minute)
	away.observe(io.EOF)
	expect("after the end of a watch", away.noTimeoutBefore(requestKeyOfPod), before)
}

// What keeps the status of one request from being written is the business of that request.
// It may last until the next attempt.
func TestRefusedWrites(t *testing.T) {
	fakeClock := testingclock.NewFakeClock(start)
	away := newOutages(fakeClock, fakeClock)
	another := keys("another")[0]
	away.noteRefused(requestKeyOfPod)
	if got, want := away.noTimeoutBefore(requestKeyOfPod), start.Add(maxDecisionRetryDelay+timeoutGracePeriod); !got.Equal(want) {
		t.Errorf("no timeouts before %s, want %s", got, want)
	}
	if got := away.noTimeoutBefore(another); !got.IsZero() {
		t.Errorf("no timeouts of another request before %s", got)
	}
	// The clock of the API server turns out to be ahead: a refusal counts for as long.
	ahead := newServerClock(fakeClock)
	ahead.offset.Store(int64(time.Hour))
	corrected := newOutages(ahead, fakeClock)
	corrected.noteRefused(requestKeyOfPod)
	if got, want := corrected.noTimeoutBefore(requestKeyOfPod), ahead.Now().Add(maxDecisionRetryDelay+timeoutGracePeriod); !got.Equal(want) {
		t.Errorf("no timeouts before %s with a corrected clock, want %s", got, want)
	}
	// It lasts no longer than until a write succeeds, and one that succeeds again changes nothing.
	away.noteWritten(another)
	fakeClock.Step(time.Minute)
	away.noteWritten(requestKeyOfPod)
	for range 2 {
		if got, want := away.noTimeoutBefore(requestKeyOfPod), start.Add(time.Minute+timeoutGracePeriod); !got.Equal(want) {
			t.Errorf("no timeouts before %s after a write, want %s", got, want)
		}
		fakeClock.Step(time.Second)
		away.noteWritten(requestKeyOfPod)
	}
	if got := away.noTimeoutBefore(another); !got.IsZero() {
		t.Errorf("no timeouts of another request before %s after its write", got)
	}
	// A later outage counts, as far as it lasts longer.
	fakeClock.Step(maxDecisionRetryDelay + time.Minute)
	away.note()
	for _, request := range []types.NamespacedName{requestKeyOfPod, another} {
		if got, want := away.noTimeoutBefore(request), fakeClock.Now().Add(timeoutGracePeriod); !got.Equal(want) {
			t.Errorf("no timeouts of %s before %s after an outage, want %s", request, got, want)
		}
	}
	away.noteRefused(requestKeyOfPod)
	away.forget(requestKeyOfPod)
	if got, want := away.noTimeoutBefore(requestKeyOfPod), away.noTimeoutBefore(another); !got.Equal(want) || len(away.refused) > 0 {
		t.Errorf("remembers %v of a request that is over: no timeouts before %s, want %s", away.refused, got, want)
	}
}

func TestIsOutage(t *testing.T) {
	tests := map[string]struct {
		err  error
		want bool
	}{
		"success":                 {},
		"no answer":               {err: fmt.Errorf("writing: %w", errUnreachable), want: true},
		"a time-out":              {err: context.DeadlineExceeded, want: true},
		"a server that starts":    {err: fmt.Errorf("writing: %w", apierrors.NewServiceUnavailable("starting")), want: true},
		"the end of a watch":      {err: io.EOF},
		"the sudden end of one":   {err: fmt.Errorf("watching: %w", io.ErrUnexpectedEOF)},
		"an expired watch":        {err: apierrors.NewResourceExpired("too old")},
		"no right to watch":       {err: apierrors.NewForbidden(podResource, "", errUnreachable)},
		"a server that is busy":   {err: apierrors.NewTooManyRequests("busy", 1), want: true},
		"no storage":              {err: apierrors.NewInternalError(errUnreachable), want: true},
		"a server that is slow":   {err: apierrors.NewTimeoutError("slow", 1), want: true},
		"a try that was too long": {err: apierrors.NewServerTimeout(podResource, "list", 1), want: true},
		"the end of the process":  {err: context.Canceled},
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
	away := newOutages(fakeClock, fakeClock)
	informer := &watchedInformer{}
	away.watchThrough(logger, informer)
	informer.handler(ctx, &cache.Reflector{}, apierrors.NewResourceExpired("too old"))
	if got := away.noTimeoutBefore(requestKeyOfPod); !got.IsZero() {
		t.Error("an expired watch counts as an outage")
	}
	informer.handler(ctx, &cache.Reflector{}, errUnreachable)
	if got := away.noTimeoutBefore(requestKeyOfPod); !got.Equal(start.Add(timeoutGracePeriod)) {
		t.Errorf("no timeouts before %s", got)
	}
	// An informer that runs takes no handler. That is no reason to fail.
	away.watchThrough(logger, &watchedInformer{err: errors.New("informer has already started")})
}

// After its start, after an outage, and after the status of a request could not be written,
// the controller takes no turn away for a while; all else goes its way. What the webhooks of
// one tenant refuse extends the turns of no other.
func TestNoTimeoutAfterAnOutage(t *testing.T) {
	silent := newRequest(deadlineOf(600), having(targets(first), active(first, 0)))
	for name, test := range map[string]struct {
		outage    func(t *testing.T, f *fixture)
		after     time.Duration
		processed int
	}{
		"none":                {outage: func(*testing.T, *fixture) {}, processed: 1},
		"a failing write":     {outage: failingWrite("update", requestKeyOfPod)},
		"just before its end": {outage: failingWrite("update", requestKeyOfPod), after: maxDecisionRetryDelay + timeoutGracePeriod - time.Second},
		"when it is over":     {outage: failingWrite("update", requestKeyOfPod), after: maxDecisionRetryDelay + timeoutGracePeriod, processed: 1},
		"just before a write that failed is made for long": {outage: writtenAfterwards, after: timeoutGracePeriod - time.Second},
		"when a write that failed is made for long":        {outage: writtenAfterwards, after: timeoutGracePeriod, processed: 1},
		"a write that failed, and then none":               {outage: nothingToWrite, after: timeoutGracePeriod},
		"failing labels":                                   {outage: failingWrite("patch", requestKeyOfPod), processed: 1},
		"a failing write of another":                       {outage: failingWrite("update", keys("another")[0]), processed: 1},
		"a failing eviction":                               {outage: failingEviction, processed: 1},
		"a watch that is away":                             {outage: watchAway},
		"just before a watch is back":                      {outage: watchAway, after: timeoutGracePeriod - time.Second},
		"when a watch is back for long":                    {outage: watchAway, after: timeoutGracePeriod, processed: 1},
		"the start of the process":                         {outage: func(t *testing.T, f *fixture) { startAndStop(t, f, func() bool { return true }) }},
		"a probe without an answer":                        {outage: failingProbe},
	} {
		t.Run(name, func(t *testing.T) {
			another := newRequest(func(request *coordinationv1alpha1.EvictionRequest) { request.Name = "another" }, having(targets(first), active(first, 0)))
			another.Spec.Target.Pod = &coordinationv1alpha1.LocalPodReference{Name: "another", UID: "another"}
			anotherPod := newPod(podUIDIs("another"), interceptedBy(first))
			anotherPod.Name = "another"
			f := newFixture(t, silent, newPod(interceptedBy(first)), another, anotherPod)
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

func watchAway(t *testing.T, f *fixture) {
	t.Helper()
	_, ctx := ktesting.NewTestContext(t)
	f.requests.watchFailed(ctx, &cache.Reflector{}, errUnreachable)
}

// failingWrite has a write to a request fail once, as a webhook may have it.
func failingWrite(verb string, request types.NamespacedName) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		t.Helper()
		if verb == "patch" {
			pod := newPod(interceptedBy(first), podLabels(map[string]string{"app": "another"}))
			f.cached(t, pod)
			defer f.cached(t, newPod(interceptedBy(first)))
		}
		failed := false
		f.client.PrependReactor(verb, "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
			fails := !failed
			failed = true
			return fails, nil, apierrors.NewServiceUnavailable("a webhook says so")
		})
		if verb == "patch" {
			// Its status is not written besides: that would be the turn.
			f.client.PrependReactor("update", "evictionrequests", answering(apierrors.NewConflict(evictionRequestResource, request.Name, errUnreachable)))
			defer func() { f.client.ReactionChain = f.client.ReactionChain[1:] }()
		}
		f.decisions.Add(request)
		f.Controller.work(klog.NewContext(context.Background(), logr.Discard()))
		if !failed {
			t.Fatal("no write was tried")
		}
	}
}

// writtenAfterwards has the next write succeed, which says that the interceptor is overdue.
func writtenAfterwards(t *testing.T, f *fixture) {
	t.Helper()
	failingWrite("update", requestKeyOfPod)(t, f)
	f.clock.Step(time.Second)
	f.client.ClearActions()
	_, ctx := ktesting.NewTestContext(t)
	if err := f.syncRequest(ctx, requestKeyOfPod); err != nil || len(f.writes(t)) != 1 {
		t.Fatalf("writes %v, %v", f.writes(t), err)
	}
	written, err := f.client.CoordinationV1alpha1().EvictionRequests(requestKeyOfPod.Namespace).Get(ctx, requestKeyOfPod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.cached(t, written)
}

// nothingToWrite has a write fail, and the next sync write nothing, which tells nothing of what is in the way.
func nothingToWrite(t *testing.T, f *fixture) {
	t.Helper()
	writtenAfterwards(t, f)
	f.outages.noteRefused(requestKeyOfPod)
	f.client.ClearActions()
	_, ctx := ktesting.NewTestContext(t)
	if err := f.syncRequest(ctx, requestKeyOfPod); err != nil || len(f.writes(t)) > 0 {
		t.Fatalf("writes %v, %v", f.writes(t), err)
	}
}

// failingProbe has the controller find out that nothing can be read, though its watch stands.
func failingProbe(t *testing.T, f *fixture) {
	t.Helper()
	var fails atomic.Bool
	f.client.PrependReactor("list", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		return fails.Load(), nil, apierrors.NewInternalError(errUnreachable)
	})
	startAndStop(t, f, func() bool {
		if !fails.Swap(true) {
			// Its start is long ago.
			f.clock.Step(time.Hour)
			return false
		}
		f.clock.Step(probeInterval)
		return f.outages.noTimeoutBefore(requestKeyOfPod).After(f.clock.Now())
	})
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

// startAndStop runs the controller, without its queues, from its start until the condition is
// true.
func startAndStop(t *testing.T, f *fixture, until func() bool) {
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
	waitFor(ctx, t, "the start", func() bool { return !f.outages.noTimeoutBefore(requestKeyOfPod).IsZero() })
	waitFor(ctx, t, "what should happen then", until)
	stop()
	receive(t, "the controller to end", ended)
}

// The probe reads next to nothing, but the newest state. An API server that does not answer
// does not serve.
func TestProbe(t *testing.T) {
	f := newFixture(t, newRequest())
	_, ctx := ktesting.NewTestContext(t)
	if err := readOnce(ctx, f.client); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	options := f.client.Actions()[0].(clienttesting.ListActionImpl).ListOptions
	if options.Limit != 1 || options.ResourceVersion != "" || len(f.client.Actions()) != 1 {
		t.Errorf("read with %v %+v, want one list of one request, as it is now", f.client.Actions(), options)
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := readOnce(t.Context(), silentClient(t))
		if lasted := time.Since(began); lasted != probeTimeout || !isOutage(err) {
			t.Errorf("ended after %s with %v, want an outage after %s", lasted, err, probeTimeout)
		}
	})
}

// While the controller's own writes succeed nothing else is asked. When they cease, the API server
// is asked as long after the last of them as after a probe.
func TestNoProbeWhileWritesSucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		client := fake.NewClientset()
		away := newOutages(clock.RealClock{}, clock.RealClock{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			away.probe(ctx, clock.RealClock{}, client)
		}()
		probes := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if got := len(client.Actions()); got != want {
				t.Errorf("%d probes %s, want %d", got, when, want)
			}
		}
		for range 20 {
			time.Sleep(7 * time.Second)
			away.noteWritten(requestKeyOfPod)
		}
		probes("while writes succeed", 0)
		away.noteRefused(requestKeyOfPod)
		time.Sleep(probeInterval - time.Second)
		probes("just after a write", 0)
		for i := range 3 {
			time.Sleep(time.Second)
			probes("after silence", i+1)
			time.Sleep(probeInterval - time.Second)
			probes("soon after another", i+1)
		}
		stop()
		<-ended
	})
}

func TestRefusedWritesAreForgotten(t *testing.T) {
	_, ctx := ktesting.NewTestContext(t)
	for name, objects := range map[string][]runtime.Object{
		"a finished request":     {newRequest(having(targets(), condition(evicted, metav1.ConditionTrue, coordinationv1alpha1.EvictionRequestReasonPodDeleted, "", 0)))},
		"a request that is gone": nil,
	} {
		f := newFixture(t, objects...)
		f.outages.noteRefused(requestKeyOfPod)
		if err := f.syncRequest(ctx, requestKeyOfPod); err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		if len(f.outages.refused) > 0 {
			t.Errorf("remembers %v of %s", f.outages.refused, name)
		}
	}
}
