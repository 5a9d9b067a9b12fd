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
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

func TestHeartbeats(t *testing.T) {
	cases := map[string]struct {
		deadline time.Duration
		work     time.Duration
		want     []time.Duration
	}{
		"the shortest deadline":          {deadline: 2 * time.Minute, work: 3*time.Minute + 30*time.Second, want: []time.Duration{0, time.Minute, 2 * time.Minute, 3 * time.Minute}},
		"a third of the deadline":        {deadline: 6 * time.Minute, work: 5 * time.Minute, want: []time.Duration{0, 2 * time.Minute, 4 * time.Minute}},
		"the default deadline":           {deadline: 20 * time.Minute, work: 10 * time.Minute, want: []time.Duration{0, 3 * time.Minute, 6 * time.Minute, 9 * time.Minute}},
		"the longest deadline":           {deadline: 6 * time.Hour, work: 7 * time.Minute, want: []time.Duration{0, 3 * time.Minute, 6 * time.Minute}},
		"completion brings no heartbeat": {deadline: 2 * time.Minute, work: 59 * time.Second, want: []time.Duration{0}},
		"work longer than the deadline":  {deadline: 3 * time.Minute, work: 3*time.Minute + 59*time.Second, want: []time.Duration{0, time.Minute, 2 * time.Minute, 3 * time.Minute}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inSynctest(t, func(t *testing.T) {
				start := time.Now()
				w := newCluster(t, newRequest("a", withDeadline(tc.deadline)))
				stop := w.start(func(ctx context.Context, _ *Turn) error {
					time.Sleep(tc.work)
					return ctx.Err()
				})
				time.Sleep(tc.work + time.Second)
				stop()

				got := w.heartbeats(start)
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("heartbeats (-want +got):\n%s", diff)
				}
				if w.entry("a").CompletionTime == nil {
					t.Error("the turn is not complete")
				}
			})
		})
	}
}

// A request without a deadline has the default of the API server, 20 minutes.
func TestDefaultDeadline(t *testing.T) {
	if got := HeartbeatDeadline(newRequest("a")); got != 20*time.Minute {
		t.Errorf("the deadline is %v, want 20m", got)
	}
}

func TestMessagesAreSpaced(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		start := time.Now()
		w := newCluster(t, newRequest("a"))
		stop := w.start(func(ctx context.Context, turn *Turn) error {
			for time.Since(start) < 25*time.Second {
				turn.SetMessage(time.Since(start).String())
				time.Sleep(500 * time.Millisecond)
			}
			time.Sleep(time.Minute)
			return ctx.Err()
		})
		time.Sleep(time.Minute)
		stop()
		var got []time.Duration
		for _, report := range w.sent() {
			got = append(got, report.at.Sub(start))
		}
		want := []time.Duration{0, time.Second, 11 * time.Second, 21 * time.Second, 31 * time.Second}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
		if got := w.entry("a").Message; got != "24.5s" {
			t.Errorf("the message is %q, want the last one", got)
		}
	})
}

// A message is written without waiting for the next heartbeat.
func TestMessageDoesNotWaitForHeartbeat(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		start := time.Now()
		w := newCluster(t, newRequest("a", withDeadline(2*time.Minute)))
		stop := w.start(func(ctx context.Context, turn *Turn) error {
			time.Sleep(55 * time.Second)
			turn.SetMessage("at 55 s")
			time.Sleep(4 * time.Second)
			turn.SetMessage("at 59 s")
			time.Sleep(time.Minute)
			return ctx.Err()
		})
		time.Sleep(70 * time.Second)
		stop()
		var got []time.Duration
		for _, report := range w.sent() {
			got = append(got, report.at.Sub(start))
		}
		if diff := cmp.Diff([]time.Duration{0, 55 * time.Second, time.Minute}, got); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
	})
}

func TestRestart(t *testing.T) {
	cases := map[string]struct {
		heartbeat time.Duration
		want      []time.Duration
	}{
		"a heartbeat is allowed":       {heartbeat: time.Minute, want: []time.Duration{0, 3 * time.Minute, 6 * time.Minute}},
		"too early for a heartbeat":    {heartbeat: 59 * time.Second, want: []time.Duration{0, 121 * time.Second, 301 * time.Second}},
		"the deadline has passed":      {heartbeat: 30 * time.Minute, want: []time.Duration{0, 3 * time.Minute, 6 * time.Minute}},
		"the previous clock was ahead": {heartbeat: -5 * time.Second, want: []time.Duration{0, 185 * time.Second, 365 * time.Second}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inSynctest(t, func(t *testing.T) {
				start := time.Now()
				request := newRequest("a", reportedBefore(time.Hour, tc.heartbeat))
				old := &request.Status.Interceptors[0]
				old.Message, old.ExpectedFinishTime = "Half done.", ago(time.Minute)
				request.Status.EvictionRequestCancellationPolicy = coordinationv1alpha1.EvictionRequestCancellationPolicyForbid
				w := newCluster(t, request)
				stop := w.start(func(ctx context.Context, _ *Turn) error {
					time.Sleep(7 * time.Minute)
					return ctx.Err()
				})
				time.Sleep(7*time.Minute - time.Second)
				if diff := cmp.Diff(tc.want, w.heartbeats(start)); diff != "" {
					t.Errorf("heartbeats (-want +got):\n%s", diff)
				}
				for _, report := range w.sent() {
					entry := report.entry
					if !entry.StartTime.Equal(old.StartTime) || entry.Message != old.Message || !entry.ExpectedFinishTime.Equal(old.ExpectedFinishTime) ||
						report.policy != coordinationv1alpha1.EvictionRequestCancellationPolicyForbid {
						t.Errorf("a report is %+v, want the previous values", report)
					}
				}
				time.Sleep(2 * time.Second)
				stop()
				if entry := w.entry("a"); entry.CompletionTime == nil || entry.Message != "Done." {
					t.Errorf("the entry is %v, want it complete", entry)
				}
			})
		})
	}
}

func TestForbidCancellation(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a"))
		stop := w.start(func(ctx context.Context, turn *Turn) error {
			turn.SetMessage("Working.")
			time.Sleep(5 * time.Second) // Less than messageInterval since the message.
			if err := turn.ForbidCancellation(ctx); err != nil {
				t.Errorf("ForbidCancellation: %v", err)
			}
			if got := w.get("a").Status.EvictionRequestCancellationPolicy; got != coordinationv1alpha1.EvictionRequestCancellationPolicyForbid {
				t.Errorf("the policy is %q after ForbidCancellation has returned", got)
			}
			time.Sleep(10 * time.Minute)
			return ctx.Err()
		})
		time.Sleep(11 * time.Minute)
		stop()
		if got := w.get("a").Status.EvictionRequestCancellationPolicy; got != coordinationv1alpha1.EvictionRequestCancellationPolicyForbid {
			t.Errorf("the policy is %q at the end, want it unchanged", got)
		}
		sent := w.sent()
		if len(sent) < 4 || sent[1].policy != "" || sent[2].policy == "" || sent[2].at.Sub(sent[0].at) != 5*time.Second {
			t.Errorf("the reports are %v, want the policy immediately, in the third", sent)
		}
	})
}

// A change that becomes urgent during a write is written right after it.
func TestForbidCancellationDuringAWrite(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a"))
		writing := make(chan struct{}, 10)
		w.rejectReports(func(report sentReport) error {
			if report.entry.Message == "slow" {
				writing <- struct{}{}
				time.Sleep(time.Second)
			}
			return nil
		})
		var waited time.Duration
		stop := w.start(func(ctx context.Context, turn *Turn) error {
			turn.SetMessage("slow")
			<-writing
			began := time.Now()
			err := turn.ForbidCancellation(ctx)
			waited = time.Since(began)
			return err
		})
		time.Sleep(time.Minute)
		stop()
		if waited == 0 || waited > 3*time.Second {
			t.Errorf("forbidden after %s, want it right after the previous write", waited)
		}
	})
}

// silentServer is an API server that never responds.
type silentServer struct{}

func (silentServer) RoundTrip(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

// pipes is a listener for an API server in the same process.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p <- server
	return client, nil
}

// The duration of the work begins with the call that reports its start, which a webhook may delay.
// It does not include the wait for the rate limit of the client.
func TestWorkBeginsWithTheReport(t *testing.T) {
	for name, tc := range map[string]struct {
		limited, answers time.Duration
		waits, quick     bool
	}{
		"after waiting":      {waits: true, quick: true},
		"rate limit":         {limited: 10 * time.Second, quick: true},
		"slow webhook":       {answers: 10 * time.Second},
		"is not sent at all": {limited: writeTimeout + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inSynctest(t, func(t *testing.T) {
				listener := make(pipes)
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					time.Sleep(tc.answers)
					w.WriteHeader(http.StatusForbidden)
				})}
				var serving sync.WaitGroup
				serving.Go(func() { _ = server.Serve(listener) })
				limiter := flowcontrol.NewTokenBucketRateLimiter(1/float32(max(1, tc.limited.Seconds())), 1)
				limiter.Accept()
				client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://pipes", RateLimiter: limiter,
					Transport: &http.Transport{DialContext: listener.dial, DisableKeepAlives: true}})
				if err != nil {
					t.Fatalf("creating a client: %v", err)
				}
				interceptor, err := NewInterceptor(InterceptorConfig{Client: client, Name: own, Handle: untilDone(nil), MaxConcurrent: 8, MaxConcurrentPerNamespace: 4})
				if err != nil {
					t.Fatalf("creating an interceptor: %v", err)
				}
				defer interceptor.queue.ShutDown()
				turn := newTurn(t.Context(), interceptor, newRequest("a"))
				if tc.waits {
					time.AfterFunc(time.Second, interceptor.places.TryAcquire(namespace).Release)
				}
				place, err := turn.start(1)
				if err != nil {
					t.Fatalf("starting: %v", err)
				}
				if _, err := turn.apply(coordinationapply.InterceptorStatus().WithName(own), false); err == nil {
					t.Error("the API server, which forbids everything, has accepted a report")
				}
				place.Release()
				// A namespace has an eighth of the places until its first quick call.
				interceptor.places.TryAcquire(namespace)
				if quick := interceptor.places.TryAcquire(namespace) != nil; quick != tc.quick {
					t.Errorf("the namespace counts as quick: %t, want %t", quick, tc.quick)
				}
				if err := server.Close(); err != nil {
					t.Error(err)
				}
				serving.Wait()
			})
		})
	}
}

func TestReportsTimeOut(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://silent", Transport: silentServer{}, QPS: -1})
		if err != nil {
			t.Fatalf("creating a client: %v", err)
		}
		interceptor, err := NewInterceptor(InterceptorConfig{Client: client, Name: own, Handle: untilDone(nil)})
		if err != nil {
			t.Fatalf("creating an interceptor: %v", err)
		}
		defer interceptor.queue.ShutDown()
		// A report without a timeout fails the test instead of blocking it.
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		_, err = newTurn(ctx, interceptor, newRequest("a")).apply(coordinationapply.InterceptorStatus().WithName(own), false)
		if lasted := time.Since(began); lasted != writeTimeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended after %s with %v, want that after %s", lasted, err, writeTimeout)
		}
	})
}

func TestForbidCancellationFails(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a"))
		results := make(chan error, 2)
		stop := w.start(func(ctx context.Context, turn *Turn) error {
			w.rejectReports(func(sentReport) error { return errUnavailable })
			impatient, cancel := context.WithTimeoutCause(context.Background(), time.Second, errors.New("no time"))
			defer cancel()
			results <- turn.ForbidCancellation(impatient)
			results <- turn.ForbidCancellation(context.Background())
			return nil
		})
		if err := <-results; err == nil || !strings.Contains(err.Error(), "no time") {
			t.Errorf("ForbidCancellation: %v, want it to end with its context", err)
		}
		w.update("a", setTrue(coordinationv1alpha1.EvictionRequestConditionCanceled, "NoRequesters"))
		if err := <-results; !errors.Is(err, ErrCanceled) {
			t.Errorf("ForbidCancellation: %v, want it to end with the turn", err)
		}
		stop()
	})
}

func TestHandleFails(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		start := time.Now()
		w := newCluster(t, newRequest("a"))
		var calls []time.Duration
		stop := w.start(func(ctx context.Context, turn *Turn) error {
			calls = append(calls, time.Since(start).Round(10*time.Second))
			turn.SetExpectedFinishTime(time.Now().Add(time.Hour))
			if len(calls) < 4 {
				return errors.New("no connection")
			}
			return nil
		})
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if entry := w.entry("a"); entry.Message != "Failed, will retry: no connection" || entry.ExpectedFinishTime != nil {
			t.Errorf("after a failure the entry is %v, want it to say so", entry)
		}
		time.Sleep(5 * time.Minute)
		stop()
		// 5, 10 and 20 seconds apart, plus jitter.
		if diff := cmp.Diff([]time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second}, calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if entry := w.entry("a"); entry.CompletionTime == nil || entry.Message != "Done." {
			t.Errorf("the entry is %v, want it complete", entry)
		}
	})
}

// Failing is no progress: an interceptor that fails until the deadline times out.
func TestHandleFailsUntilDeadline(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		start := time.Now()
		w := newCluster(t, newRequest("a"))
		var last time.Duration
		stop := w.start(func(context.Context, *Turn) error {
			last = time.Since(start)
			time.Sleep(5 * time.Second)
			return errors.New("no connection")
		})
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if diff := cmp.Diff([]time.Duration{0}, w.heartbeats(start)); diff != "" {
			t.Errorf("heartbeats (-want +got):\n%s", diff)
		}
		if limit := 20*time.Minute - 20*time.Second; last < 10*time.Minute || last >= limit {
			t.Errorf("Handle was last called after %v, want attempts until nearly %v", last, limit)
		}
		stop()
	})
}

// A long error is truncated to the limit of the API server.
func TestLongErrorIsTruncated(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a"))
		turns := make(chan *Turn, 1)
		stop := w.start(func(_ context.Context, turn *Turn) error {
			turns <- turn
			return errors.New(strings.Repeat("x", 1<<20))
		})
		defer stop()
		turn := <-turns
		time.Sleep(4 * time.Second)
		turn.lock.Lock()
		defer turn.lock.Unlock()
		for name, message := range map[string]string{"desired": turn.desired.message, "accepted": turn.accepted.content.message} {
			if len(message) != maxMessageLength {
				t.Errorf("%s has a message of %d bytes, want %d", name, len(message), maxMessageLength)
			}
		}
	})
}

// TestFailingIsReportedOnce counts the reports of an interceptor that keeps failing with the same
// error and never times out: a write for each attempt of each pod would overload the API server.
func TestFailingIsReportedOnce(t *testing.T) {
	refused := errors.New("refused")
	cases := map[string]struct {
		handle  Handler
		options []func(*InterceptorConfig)
		// want is the maximum number of reports for each request.
		want int
	}{
		"at once": {handle: func(context.Context, *Turn) error { return refused }, want: 2},
		"after it has set a message": {handle: func(_ context.Context, turn *Turn) error {
			turn.SetMessage("Deleting the pod.")
			turn.SetExpectedFinishTime(time.Now().Add(time.Minute))
			return refused
		}, want: 2},
		// The first attempt is reported after a second, because it may take long.
		"after half a minute": {handle: func(_ context.Context, turn *Turn) error {
			turn.SetMessage("Deleting the pod.")
			time.Sleep(30 * time.Second)
			return refused
		}, want: 3},
		"one at a time": {handle: func(context.Context, *Turn) error {
			time.Sleep(5 * time.Second)
			return refused
		}, options: []func(*InterceptorConfig){func(c *InterceptorConfig) { c.MaxConcurrent = 1 }}, want: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inSynctest(t, func(t *testing.T) {
				w := newCluster(t, newRequest("a"), newRequest("b"), newRequest("c"))
				stop := w.start(tc.handle, append(tc.options, persistent)...)
				time.Sleep(24 * time.Hour)
				synctest.Wait()
				counts := map[types.UID]int{}
				for _, report := range w.sent() {
					counts[report.uid]++
				}
				for uid, count := range counts {
					if count > tc.want {
						t.Errorf("%d reports with %s in a day, want at most %d", count, uid, tc.want)
					}
				}
				for _, request := range []string{"a", "b", "c"} {
					if got := w.entry(request).Message; got != "Failed, will retry: refused" {
						t.Errorf("%s has the message %q", request, got)
					}
				}
				stop()
			})
		})
	}
}

// TestSendsHeartbeat tests the boundary second of each rule.
func TestSendsHeartbeat(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	const deadline = 9 * time.Minute // So the interval is 3 minutes.
	cases := map[string]struct {
		pace pace
		want bool
	}{
		"no heartbeat yet":              {pace: pace{working: true, first: true}, want: true},
		"no heartbeat yet, later":       {pace: pace{working: true}, want: true},
		"no work yet":                   {pace: pace{first: true}},
		"no work yet, later":            {pace: pace{}},
		"no work after a restart":       {pace: pace{first: true, heartbeat: before(time.Hour)}},
		"first report, a minute later":  {pace: pace{working: true, first: true, heartbeat: before(time.Minute)}, want: true},
		"first report, a second before": {pace: pace{working: true, first: true, heartbeat: before(59 * time.Second)}},
		"due":                           {pace: pace{working: true, heartbeat: before(3 * time.Minute)}, want: true},
		"due in a second":               {pace: pace{working: true, heartbeat: before(3*time.Minute - time.Second)}},
		"no work in progress":           {pace: pace{heartbeat: before(3 * time.Minute)}},
		"after a failure, working":      {pace: pace{working: true, heartbeat: before(time.Hour), since: before(3 * time.Minute)}, want: true},
		"after a failure, too early":    {pace: pace{working: true, heartbeat: before(time.Hour), since: before(3*time.Minute - time.Second)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.pace.deadline = deadline
			if got := tc.pace.sendsHeartbeat(now); got != tc.want {
				t.Errorf("sendsHeartbeat = %t, want %t", got, tc.want)
			}
		})
	}
}

// A long second attempt sends heartbeats again.
func TestHandleFailsThenWorks(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		start := time.Now()
		w := newCluster(t, newRequest("a"))
		calls := 0
		stop := w.start(func(ctx context.Context, _ *Turn) error {
			if calls++; calls == 1 {
				time.Sleep(2 * time.Minute)
				return errors.New("no connection")
			}
			time.Sleep(30 * time.Minute)
			return ctx.Err()
		})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := w.entry("a").Message; got != "Attempt 2." {
			t.Errorf("the message is %q, want the second attempt", got)
		}
		if got := w.heartbeats(start); len(got) != 1 {
			t.Errorf("heartbeats at %v, want none before the second attempt has run for 3 minutes", got)
		}
		time.Sleep(28 * time.Minute)
		stop()
		if entry := w.entry("a"); entry.CompletionTime == nil {
			t.Errorf("the entry is %v, want it complete", entry)
		}
	})
}

// A message is reset after a write whose response was lost: it is in the request and must be
// overwritten.
func TestMessageAfterLostResponse(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a", withDeadline(time.Hour)))
		var lost atomic.Int32
		w.rejectReports(func(report sentReport) error {
			if report.entry.Message != "second" || lost.Load() > 0 {
				return nil
			}
			lost.Add(1)
			stored := newRequest("a", withDeadline(time.Hour))
			stored.Status.Interceptors[0] = report.entry
			if err := w.client.Tracker().Update(coordinationv1alpha1.SchemeGroupVersion.WithResource("evictionrequests"), stored, namespace); err != nil {
				t.Error(err)
			}
			return errUnavailable
		})
		stop := w.start(func(ctx context.Context, turn *Turn) error {
			turn.SetMessage("first")
			time.Sleep(time.Minute)
			turn.SetMessage("second")
			for lost.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			turn.SetMessage("first")
			<-ctx.Done()
			return nil
		})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := w.entry("a").Message; lost.Load() != 1 || got != "first" {
			t.Errorf("%d responses were lost, and the message is %q, want first", lost.Load(), got)
		}
		stop()
	})
}

// A message that is set during a write is not in the request yet and must be written.
func TestMessageDuringAWrite(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a", withDeadline(time.Hour)))
		writing, set := make(chan struct{}), make(chan struct{})
		w.rejectReports(func(report sentReport) error {
			if report.entry.Message == "first" {
				writing <- struct{}{}
				<-set
			}
			return nil
		})
		stop := w.start(func(ctx context.Context, turn *Turn) error {
			turn.SetMessage("first")
			<-writing
			turn.SetMessage("second")
			close(set)
			time.Sleep(time.Millisecond)
			turn.SetMessage("third")
			turn.SetMessage("second")
			<-ctx.Done()
			return nil
		})
		time.Sleep(2 * time.Minute)
		if got := w.entry("a").Message; got != "second" {
			t.Errorf("the message is %q, want second", got)
		}
		stop()
	})
}

// TestAPIServerAway rejects all reports for longer than the deadline: the interceptor stops,
// because the controller may be about to activate the next one.
func TestAPIServerUnavailable(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a", withDeadline(6*time.Minute)))
		causes := make(chan error, 10)
		start := time.Now()
		stop := w.start(untilDone(causes))
		w.rejectReports(func(sentReport) error { return errUnavailable })
		if cause := <-causes; !errors.Is(cause, ErrTurnLost) {
			t.Errorf("the cause is %v, want %v", cause, ErrTurnLost)
		}
		if got, want := time.Since(start), 6*time.Minute-20*time.Second; got != want {
			t.Errorf("lost after %v, want %v", got, want)
		}

		// The interceptor may still be active, if the controller was down as well.
		time.Sleep(time.Hour)
		if len(causes) > 0 {
			t.Error("Handle was called without a confirmation")
		}
		w.rejectReports(nil)
		time.Sleep(2 * time.Minute)
		w.update("a", activate(other))
		if cause := <-causes; !errors.Is(cause, ErrTurnLost) {
			t.Errorf("the cause is %v, want %v of a second turn", cause, ErrTurnLost)
		}
		stop()
	})
}

// A failed report is retried, and the turn continues.
func TestReportFails(t *testing.T) {
	invalid := apierrors.NewInvalid(coordinationv1alpha1.SchemeGroupVersion.WithKind("EvictionRequest").GroupKind(), "a", nil)
	for name, answer := range map[string]error{"unavailable": errUnavailable, "invalid": invalid} {
		t.Run(name, func(t *testing.T) {
			inSynctest(t, func(t *testing.T) {
				start := time.Now()
				w := newCluster(t, newRequest("a"))
				w.rejectReports(func(report sentReport) error {
					if report.at.Sub(start) < 30*time.Second {
						return answer
					}
					return nil
				})
				called := time.Duration(0)
				stop := w.start(func(context.Context, *Turn) error {
					called = time.Since(start)
					return nil
				})
				time.Sleep(2 * time.Minute)
				stop()
				if called < 30*time.Second {
					t.Errorf("Handle was called after %v, want it to wait until a report is accepted", called)
				}
				if sent := len(w.sent()); sent > 9 {
					t.Errorf("%d reports, want increasing delays between them", sent)
				}
				if entry := w.entry("a"); entry.CompletionTime == nil {
					t.Errorf("the entry is %v, want it complete", entry)
				}
			})
		})
	}
}

// The next report must fit a report that another process has written in the meantime.
func TestRejectedReportIsAdapted(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a"))
		earlier := ago(0)
		tracker, resource := w.client.Tracker(), coordinationv1alpha1.SchemeGroupVersion.WithResource("evictionrequests")
		live := newRequest("a")
		live.Status.Interceptors[0].StartTime, live.Status.Interceptors[0].HeartbeatTime = earlier, earlier
		time.Sleep(30 * time.Second)
		w.rejectReports(func(report sentReport) error {
			if report.entry.StartTime.Equal(earlier) {
				return nil
			}
			// The informer does not have this change when the turn starts.
			if err := tracker.Update(resource, live, namespace); err != nil {
				t.Error(err)
			}
			return apierrors.NewInvalid(coordinationv1alpha1.SchemeGroupVersion.WithKind("EvictionRequest").GroupKind(), "a", nil)
		})
		stop := w.start(func(context.Context, *Turn) error { return nil })
		time.Sleep(time.Minute)
		stop()
		if entry := w.entry("a"); entry.CompletionTime == nil || !entry.StartTime.Equal(earlier) || !entry.HeartbeatTime.Equal(earlier) {
			t.Errorf("the entry is %v, want it complete and started at %v", entry, earlier)
		}
	})
}

// TestRejected tests the error of the API server alone, as with a stale cache.
func TestRejected(t *testing.T) {
	replaced := newRequest("a")
	replaced.UID = "another"
	cases := map[string]struct {
		err  error
		live *coordinationv1alpha1.EvictionRequest
		want error
	}{
		"not found":              {err: errNotFound, live: newRequest("a"), want: ErrRequestGone},
		"conflict, gone":         {err: errConflict, want: ErrRequestGone},
		"conflict, replaced":     {err: errConflict, live: replaced, want: ErrRequestGone},
		"conflict, still active": {err: errConflict, live: newRequest("a")},
		"invalid, still active":  {err: errInvalid, live: newRequest("a")},
		"invalid, not active":    {err: errInvalid, live: newRequest("a", activate(other)), want: ErrTurnLost},
		"another error":          {err: errUnavailable, live: newRequest("a", activate(other))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newCluster(t)
			if tc.live != nil {
				w = newCluster(t, tc.live)
			}
			interceptor, err := NewInterceptor(InterceptorConfig{Client: w.client, Name: own, Handle: func(context.Context, *Turn) error { return nil }})
			if err != nil {
				t.Fatal(err)
			}
			defer interceptor.queue.ShutDown()
			turn := newTurn(t.Context(), interceptor, newRequest("a"))
			turn.handleRejection(tc.err)
			if cause := context.Cause(turn.ctx); !errors.Is(cause, tc.want) {
				t.Errorf("the turn was ended by %v, want %v", cause, tc.want)
			}
		})
	}
}

func TestAcceptableETA(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 700_000_000, time.UTC)
	at := func(seconds int) time.Time { return time.Date(2026, 5, 1, 12, 0, seconds, 0, time.UTC) }
	cases := map[string]struct {
		eta  time.Time
		old  *time.Time
		want time.Time
	}{
		"far ahead":                {eta: at(30), want: at(30)},
		"in a few seconds":         {eta: at(5), want: at(11)},
		"past":                     {eta: at(-5), want: at(11)},
		"past, and stored":         {eta: at(-5), old: func() *time.Time { t := at(-5); return &t }(), want: at(-5)},
		"past, and another stored": {eta: at(-5), old: func() *time.Time { t := at(-6); return &t }(), want: at(11)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var old *metav1.Time
			if tc.old != nil {
				old = &metav1.Time{Time: *tc.old}
			}
			if got := acceptableETA(now, tc.eta, old); !got.Time.Equal(tc.want) {
				t.Errorf("acceptableETA = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTruncateMessage(t *testing.T) {
	fits := strings.Repeat("ä", 32768)
	if got := truncateMessage(fits); got != fits {
		t.Error("a message of 32768 characters was truncated")
	}
	if got := truncateMessage(fits + "b"); got != fits {
		t.Errorf("a message of 32769 characters was truncated to %d bytes, want %d", len(got), len(fits))
	}
}
