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
	"strings"
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
	"k8s.io/kubernetes/pkg/controller/util/serverclock"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

func TestOutages(t *testing.T) {
	fakeClock := testingclock.NewFakeClock(start)
	outages := newOutages(fakeClock, fakeClock)
	expect := func(what string, got, want time.Time) {
		t.Helper()
		if !got.Equal(want) {
			t.Errorf("%s: no timeouts before %s, want %s", what, got, want)
		}
	}
	expect("without an outage", outages.noTimeoutBefore(requestKeyOfPod), time.Time{})
	for range 2 {
		fakeClock.Step(time.Minute)
		outages.observe(errUnreachable)
		expect("after an outage", outages.noTimeoutBefore(requestKeyOfPod), fakeClock.Now().Add(5*time.Minute))
	}
	// The clock of the API server is ahead: the grace period has the same length.
	ahead := serverclock.New(fakeClock)
	ahead.Observe(fakeClock.Now().Add(time.Hour), fakeClock.Now(), fakeClock.Now())
	outages.clock = ahead
	expect("with a corrected clock", outages.noTimeoutBefore(requestKeyOfPod), ahead.Now().Add(5*time.Minute))
	outages.observe(errUnreachable)
	expect("after another outage, with a corrected clock", outages.noTimeoutBefore(requestKeyOfPod), ahead.Now().Add(5*time.Minute))
	outages.clock = fakeClock
	before := outages.noTimeoutBefore(requestKeyOfPod)
	fakeClock.Step(time.Minute)
	outages.observe(io.EOF)
	expect("after the end of a watch", outages.noTimeoutBefore(requestKeyOfPod), before)
}

// The correction of the clock changes during the grace period, which keeps its length.
func TestOutagesOfTheControllerUseBothClocks(t *testing.T) {
	f := newFixture(t)
	f.outages.note()
	f.Controller.clock.(*serverclock.Clock).Observe(f.clock.Now().Add(time.Hour), f.clock.Now(), f.clock.Now())
	if got, want := f.outages.noTimeoutBefore(requestKeyOfPod), f.clock.Now().Add(time.Hour+timeoutGracePeriod); !got.Equal(want) {
		t.Errorf("no timeouts before %s, want %s", got, want)
	}
}

// A refused status write counts for its request only, until the next attempt.
func TestRefusedWrites(t *testing.T) {
	fakeClock := testingclock.NewFakeClock(start)
	outages := newOutages(fakeClock, fakeClock)
	another := keys("another")[0]
	outages.noteRefused(requestKeyOfPod)
	if got, want := outages.noTimeoutBefore(requestKeyOfPod), start.Add(maxDecisionRetryDelay+timeoutGracePeriod); !got.Equal(want) {
		t.Errorf("no timeouts before %s, want %s", got, want)
	}
	if got := outages.noTimeoutBefore(another); !got.IsZero() {
		t.Errorf("no timeouts of another request before %s", got)
	}
	// The clock of the API server is ahead: a refusal lasts equally long.
	ahead := serverclock.New(fakeClock)
	ahead.Observe(fakeClock.Now().Add(time.Hour), fakeClock.Now(), fakeClock.Now())
	corrected := newOutages(ahead, fakeClock)
	corrected.noteRefused(requestKeyOfPod)
	if got, want := corrected.noTimeoutBefore(requestKeyOfPod), ahead.Now().Add(maxDecisionRetryDelay+timeoutGracePeriod); !got.Equal(want) {
		t.Errorf("no timeouts before %s with a corrected clock, want %s", got, want)
	}
	corrected.noteWritten(requestKeyOfPod)
	if got, want := corrected.noTimeoutBefore(requestKeyOfPod), ahead.Now().Add(timeoutGracePeriod); !got.Equal(want) {
		t.Errorf("no timeouts before %s after a write with a corrected clock, want %s", got, want)
	}
	if got := corrected.untilProbe(); got != probeInterval {
		t.Errorf("the next probe is due %s after a write with a corrected clock, want %s", got, probeInterval)
	}
	// It ends with a successful write. Further successful writes change nothing.
	outages.noteWritten(another)
	fakeClock.Step(time.Minute)
	outages.noteWritten(requestKeyOfPod)
	for range 2 {
		if got, want := outages.noTimeoutBefore(requestKeyOfPod), start.Add(time.Minute+timeoutGracePeriod); !got.Equal(want) {
			t.Errorf("no timeouts before %s after a write, want %s", got, want)
		}
		fakeClock.Step(time.Second)
		outages.noteWritten(requestKeyOfPod)
	}
	if got := outages.noTimeoutBefore(another); !got.IsZero() {
		t.Errorf("no timeouts of another request before %s after its write", got)
	}
	// A later outage counts if it lasts longer.
	fakeClock.Step(maxDecisionRetryDelay + time.Minute)
	outages.note()
	for _, request := range []types.NamespacedName{requestKeyOfPod, another} {
		if got, want := outages.noTimeoutBefore(request), fakeClock.Now().Add(timeoutGracePeriod); !got.Equal(want) {
			t.Errorf("no timeouts of %s before %s after an outage, want %s", request, got, want)
		}
	}
	outages.noteRefused(requestKeyOfPod)
	outages.forget(requestKeyOfPod)
	if got, want := outages.noTimeoutBefore(requestKeyOfPod), outages.noTimeoutBefore(another); !got.Equal(want) || len(outages.refused) > 0 {
		t.Errorf("%v stored for a finished request: no timeouts before %s, want %s", outages.refused, got, want)
	}
}

func TestIsOutage(t *testing.T) {
	tests := map[string]struct {
		err  error
		want bool
	}{
		"success":                   {},
		"no response":               {err: fmt.Errorf("writing: %w", errUnreachable), want: true},
		"a timeout":                 {err: context.DeadlineExceeded, want: true},
		"a starting server":         {err: fmt.Errorf("writing: %w", apierrors.NewServiceUnavailable("starting")), want: true},
		"the end of a watch":        {err: io.EOF},
		"the sudden end of a watch": {err: fmt.Errorf("watching: %w", io.ErrUnexpectedEOF)},
		"an expired watch":          {err: apierrors.NewResourceExpired("too old")},
		"no permission to watch":    {err: apierrors.NewForbidden(podResource, "", errUnreachable)},
		"an overloaded server":      {err: apierrors.NewTooManyRequests("busy", 1), want: true},
		"an internal error":         {err: apierrors.NewInternalError(errUnreachable), want: true},
		"a timeout of the server":   {err: apierrors.NewTimeoutError("slow", 1), want: true},
		"a server timeout":          {err: apierrors.NewServerTimeout(podResource, "list", 1), want: true},
		"a canceled context":        {err: context.Canceled},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isOutage(test.err); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// watchedInformer stores the handler of watch errors, or rejects it.
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
	outages := newOutages(fakeClock, fakeClock)
	informer := &watchedInformer{}
	outages.watchThrough(logger, informer)
	informer.handler(ctx, &cache.Reflector{}, apierrors.NewResourceExpired("too old"))
	if got := outages.noTimeoutBefore(requestKeyOfPod); !got.IsZero() {
		t.Error("an expired watch counts as an outage")
	}
	// The handler replaces the one that logs failures, which must still be logged.
	log := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	informer.handler(klog.NewContext(ctx, log), &cache.Reflector{}, errUnreachable)
	if logged := log.GetSink().(ktesting.Underlier).GetBuffer().String(); !strings.Contains(logged, errUnreachable.Error()) {
		t.Errorf("logged %q, want the failure of the watch", logged)
	}
	if got := outages.noTimeoutBefore(requestKeyOfPod); !got.Equal(start.Add(timeoutGracePeriod)) {
		t.Errorf("no timeouts before %s", got)
	}
	// A running informer rejects the handler. That is not fatal.
	outages.watchThrough(logger, &watchedInformer{err: errors.New("informer has already started")})
}

// After its start, after an outage, and after a failed status write, the controller lets no
// interceptor time out for a while. Everything else continues. A write that a webhook of one tenant
// refuses does not affect the requests of others.
func TestNoTimeoutAfterAnOutage(t *testing.T) {
	silent := newRequest(deadlineOf(600), having(targets(first), active(first, 0)))
	for name, test := range map[string]struct {
		outage    func(t *testing.T, f *fixture)
		after     time.Duration
		processed int
	}{
		"none":            {outage: func(*testing.T, *fixture) {}, processed: 1},
		"a failing write": {outage: failingWrite("update", requestKeyOfPod)},
		"just before the grace period of a failing write ends":             {outage: failingWrite("update", requestKeyOfPod), after: maxDecisionRetryDelay + timeoutGracePeriod - time.Second},
		"when the grace period of a failing write ends":                    {outage: failingWrite("update", requestKeyOfPod), after: maxDecisionRetryDelay + timeoutGracePeriod, processed: 1},
		"just before the grace period of a failed and repeated write ends": {outage: writtenAfterwards, after: timeoutGracePeriod - time.Second},
		"when the grace period of a failed and repeated write ends":        {outage: writtenAfterwards, after: timeoutGracePeriod, processed: 1},
		"a failed write, and then nothing to write":                        {outage: nothingToWrite, after: timeoutGracePeriod},
		"failing labels":                     {outage: failingWrite("patch", requestKeyOfPod), processed: 1},
		"a failing write to another request": {outage: failingWrite("update", keys("another")[0]), processed: 1},
		"a failing eviction":                 {outage: failingEviction, processed: 1},
		"a failing watch":                    {outage: failingWatch},
		"just before the grace period of a failing watch ends": {outage: failingWatch, after: timeoutGracePeriod - time.Second},
		"when the grace period of a failing watch ends":        {outage: failingWatch, after: timeoutGracePeriod, processed: 1},
		"the start of the process":                             {outage: func(t *testing.T, f *fixture) { startAndStop(t, f, func() bool { return true }) }},
		"a failing probe":                                      {outage: failingProbe},
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
			if err := f.syncRequest(ctx, requestKeyOfPod); err != nil && !errors.As(err, new(*waitError)) {
				t.Fatalf("unexpected error: %v", err)
			}
			processed := 0
			for _, status := range f.writes(t) {
				processed += len(status.ProcessedInterceptors)
			}
			if processed != test.processed {
				t.Errorf("%d interceptors have timed out, want %d", processed, test.processed)
			}
		})
	}
}

func failingWatch(t *testing.T, f *fixture) {
	t.Helper()
	_, ctx := ktesting.NewTestContext(t)
	f.requests.watchFailed(ctx, &cache.Reflector{}, errUnreachable)
}

// failingWrite makes one write to a request fail, like a webhook could.
func failingWrite(verb string, request types.NamespacedName) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		t.Helper()
		if verb == "patch" {
			pod := newPod(interceptedBy(first), podLabels(map[string]string{"app": "another"}))
			f.addToCache(t, pod)
			defer f.addToCache(t, newPod(interceptedBy(first)))
		}
		failed := false
		f.client.PrependReactor(verb, "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
			fails := !failed
			failed = true
			return fails, nil, apierrors.NewServiceUnavailable("a webhook fails")
		})
		if verb == "patch" {
			// The status is not written as well: that would process the interceptor.
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

// writtenAfterwards makes the next write succeed, which sets the condition InterceptorUnresponsive.
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
	f.addToCache(t, written)
}

// nothingToWrite makes a write fail. The next sync writes nothing, so it does not show whether
// writes succeed again.
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

// failingProbe lets the controller probe and detect that reads fail although its watch works.
func failingProbe(t *testing.T, f *fixture) {
	t.Helper()
	var fails atomic.Bool
	f.client.PrependReactor("list", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		return fails.Load(), nil, apierrors.NewInternalError(errUnreachable)
	})
	startAndStop(t, f, func() bool {
		if !fails.Swap(true) {
			// The start was long ago.
			f.clock.Step(time.Hour)
			return false
		}
		f.clock.Step(probeInterval)
		return f.outages.noTimeoutBefore(requestKeyOfPod).After(f.clock.Now())
	})
}

// failingEviction makes the eviction of another pod fail.
func failingEviction(t *testing.T, f *fixture) {
	t.Helper()
	request, pod := pair("another", 0)
	f.addToCache(t, request)
	f.addToCache(t, pod)
	f.evictErr = errUnreachable
	f.syncEviction(t, keyOf(request))
	if len(f.evicted) != 1 {
		t.Fatal("no eviction was tried")
	}
}

// startAndStop runs the controller, with empty queues, until the condition is true.
func startAndStop(t *testing.T, f *fixture, until func() bool) {
	t.Helper()
	_, ctx := ktesting.NewTestContext(t)
	ctx, stop := context.WithCancel(ctx)
	f.queue, f.limitWorkers = newQueue(f.clock, f.owners.of)
	f.imperative.queue, f.imperative.limitWorkers = newEvictionQueue(f.clock, f.imperative.ownerOf)
	f.cachesSynced = nil
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Run(ctx, 1, 1)
	}()
	waitFor(ctx, t, "the start", func() bool { return !f.outages.noTimeoutBefore(requestKeyOfPod).IsZero() })
	waitFor(ctx, t, "the condition", until)
	stop()
	receive(t, "the controller to end", ended)
}

// The probe reads a single request, in its latest version. An API server that does not respond has
// an outage.
func TestProbe(t *testing.T) {
	f := newFixture(t, newRequest())
	_, ctx := ktesting.NewTestContext(t)
	if err := readOnce(ctx, f.client); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	options := f.client.Actions()[0].(clienttesting.ListActionImpl).ListOptions
	if options.Limit != 1 || options.ResourceVersion != "" || len(f.client.Actions()) != 1 {
		t.Errorf("read with %v %+v, want one list of one request in its latest version", f.client.Actions(), options)
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := readOnce(t.Context(), silentClient(t))
		if lasted := time.Since(began); lasted != probeTimeout || !isOutage(err) {
			t.Errorf("ended after %s with %v, want an outage after %s", lasted, err, probeTimeout)
		}
	})
}

// No probe is made while status writes succeed. After the last write, the first probe follows after
// the same interval as after a probe.
func TestNoProbeWhileWritesSucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		client := fake.NewClientset()
		outages := newOutages(clock.RealClock{}, clock.RealClock{})
		ended := make(chan struct{})
		var active atomic.Bool
		active.Store(true)
		go func() {
			defer close(ended)
			outages.probe(ctx, clock.RealClock{}, client, active.Load)
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
			outages.noteWritten(requestKeyOfPod)
		}
		probes("while writes succeed", 0)
		outages.noteRefused(requestKeyOfPod)
		time.Sleep(probeInterval - time.Second)
		probes("just after a write", 0)
		for i := range 3 {
			time.Sleep(time.Second)
			probes("after silence", i+1)
			time.Sleep(probeInterval - time.Second)
			probes("soon after another", i+1)
		}
		active.Store(false)
		time.Sleep(3 * probeInterval)
		probes("while no interceptor is active", 3)
		active.Store(true)
		time.Sleep(probeInterval)
		probes("after an interceptor was activated", 4)
		stop()
		<-ended
	})
}

func TestHasActiveInterceptor(t *testing.T) {
	waiting := newRequest(having(targets()))
	for name, tc := range map[string]struct {
		objects []runtime.Object
		want    bool
	}{
		"no request":                 {},
		"before the first activated": {objects: []runtime.Object{waiting}},
		"an active interceptor":      {objects: []runtime.Object{newRequest(having(targets("a.example.com"), active("a.example.com", 0)))}, want: true},
	} {
		if got := newFixture(t, tc.objects...).hasActiveInterceptor(); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// If the API server dies after it has activated an interceptor and before the cache has that, it is
// probed: without an outage, the interceptor would time out when the API server is back.
func TestUnseenWriteMayHaveActivated(t *testing.T) {
	f := newFixture(t, newRequest())
	store := &versionedStore{version: "17"}
	f.writer = newRequestWriter(f.client, f, store, serverclock.New(f.clock))
	if f.hasActiveInterceptor() {
		t.Error("active before the first write")
	}
	f.writer.wrote(newRequest(version("18")))
	if !f.hasActiveInterceptor() {
		t.Error("not active although the cache is older than the write")
	}
	store.version = "18"
	if f.hasActiveInterceptor() {
		t.Error("active although the cache has the write")
	}
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
			t.Errorf("%v stored for %s", f.outages.refused, name)
		}
	}
}

// TestLongestSilence: many short outages keep a silent interceptor for a limited time only, and long ones for as long
// as they last.
func TestLongestSilence(t *testing.T) {
	const deadline = 20 * time.Minute
	for name, test := range map[string]struct {
		// every is the time between two outages, each of which takes so long.
		every, each time.Duration
		// ends is when the turn of an interceptor that was silent from the beginning ends, to the minute.
		ends time.Duration
	}{
		"no outage":           {every: 100 * time.Hour, ends: 20 * time.Minute},
		"a reset of watches":  {every: 4 * time.Minute, ends: 50 * time.Minute},
		"long outages":        {every: 15 * time.Minute, each: 10 * time.Minute, ends: 120 * time.Minute},
		"short outages, rare": {every: 18 * time.Minute, each: time.Minute, ends: 24 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testingclock.NewFakePassiveClock(start)
			outages := newOutages(clock, clock)
			for now := time.Duration(0); ; now += 10 * time.Second {
				clock.SetTime(start.Add(now))
				if into := now % test.every; now >= test.every && into <= test.each {
					outages.note()
				}
				outages.look()
				end := start.Add(deadline)
				if grace := outages.noTurnEndsBefore(requestKeyOfPod, start, end); grace.After(end) {
					end = grace
				}
				if !end.After(clock.Now()) {
					if now.Truncate(time.Minute) != test.ends {
						t.Errorf("the turn ends after %s, want %s", now, test.ends)
					}
					return
				}
				if now > 10*time.Hour {
					t.Fatal("the turn does not end")
				}
			}
		})
	}
}

// A new process does not know what was before it. It gives a grace period, however long the silence was.
func TestLongestSilenceAfterARestart(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	ahead := testingclock.NewFakePassiveClock(start.Add(time.Hour)) // The clock of the API server.
	outages := newOutages(ahead, clock)
	outages.note()
	longAgo := ahead.Now().Add(-10 * time.Hour)
	if got, want := outages.noTurnEndsBefore(requestKeyOfPod, longAgo, longAgo.Add(20*time.Minute)), ahead.Now().Add(timeoutGracePeriod); !got.Equal(want) {
		t.Errorf("got %s, want %s", got, want)
	}
	// A refused write of the status of this request is no outage of the server.
	outages.noteRefused(requestKeyOfPod)
	if got, want := outages.noTurnEndsBefore(requestKeyOfPod, longAgo, longAgo.Add(20*time.Minute)), ahead.Now().Add(maxDecisionRetryDelay+timeoutGracePeriod); !got.Equal(want) {
		t.Errorf("after a refused write: got %s, want %s", got, want)
	}
}

// Signs of one outage are one period, unless the server has worked in between.
func TestPeriods(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	outages := newOutages(clock, clock)
	at := func(seconds int) { clock.SetTime(start.Add(time.Duration(seconds) * time.Second)) }
	for _, step := range []struct{ seconds, want int }{{0, 1}, {60, 1}, {120, 1}, {181, 2}, {190, 2}} {
		at(step.seconds)
		if outages.note(); len(outages.periods) != step.want {
			t.Errorf("after %d s: %d periods, want %d", step.seconds, len(outages.periods), step.want)
		}
	}
	at(195)
	outages.noteWritten(requestKeyOfPod)
	at(200)
	if outages.note(); len(outages.periods) != 3 {
		t.Errorf("after a write: %d periods, want 3", len(outages.periods))
	}
	for i := range 2 * maxPeriods {
		at(1000 + 100*i)
		outages.note()
		outages.served = clock.Now()
	}
	if len(outages.periods) != maxPeriods {
		t.Errorf("%d periods are kept", len(outages.periods))
	}
}

// A process that was suspended, and then finds that the API server does not answer, does not know since when. It gives a
// grace period. Without an outage, time just passes.
func TestSuspended(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	outages := newOutages(clock, clock)
	for range 10 {
		clock.SetTime(clock.Now().Add(probeInterval))
		outages.look()
	}
	if got := outages.noTimeoutBefore(requestKeyOfPod); !got.IsZero() {
		t.Errorf("before: got %s", got)
	}
	clock.SetTime(clock.Now().Add(time.Hour))
	if got := outages.noTimeoutBefore(requestKeyOfPod); !got.IsZero() {
		t.Errorf("after an hour: got %s", got)
	}
	outages.note()
	if got, want := outages.noTurnEndsBefore(requestKeyOfPod, start, start.Add(20*time.Minute)), clock.Now().Add(timeoutGracePeriod); !got.Equal(want) {
		t.Errorf("after an outage: got %s, want %s", got, want)
	}
}
