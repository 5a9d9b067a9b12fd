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
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/evictions"
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
		stop := w.start(func(context.Context, *Turn) error { return errors.New(strings.Repeat("x", 1<<20)) })
		defer stop()
		time.Sleep(time.Minute)
		if length, limit := len(w.entry("a").Message), evictions.CoordinationRules.MaxMessageLength; length != limit {
			t.Errorf("the message has %d bytes, want %d", length, limit)
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
