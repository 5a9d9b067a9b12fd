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
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestInterceptorConfig(t *testing.T) {
	client := fake.NewClientset()
	handle := func(context.Context, *Turn) error { return nil }
	informer := informers.NewSharedInformerFactory(client, 0).Coordination().V1alpha1().EvictionRequests()
	cases := map[string]struct {
		config InterceptorConfig
		want   string
	}{
		"complete":         {config: InterceptorConfig{Client: client, Name: own, Handle: handle, Namespace: "n", LabelSelector: "a=b"}},
		"with an informer": {config: InterceptorConfig{Client: client, Name: own, Handle: handle, Informer: informer}},
		"no client":        {config: InterceptorConfig{Name: own, Handle: handle}, want: "client is nil"},
		"no name":          {config: InterceptorConfig{Client: client, Handle: handle}, want: "name: Required"},
		"no domain name":   {config: InterceptorConfig{Client: client, Name: "own", Handle: handle}, want: `"own"`},
		"no handler":       {config: InterceptorConfig{Client: client, Name: own}, want: "handle"},
		"negative":         {config: InterceptorConfig{Client: client, Name: own, Handle: handle, MaxConcurrent: -1}, want: "-1"},
		"negative per namespace": {
			config: InterceptorConfig{Client: client, Name: own, Handle: handle, MaxConcurrentPerNamespace: -2}, want: "maxConcurrentPerNamespace of interceptor own.example.com is -2",
		},
		"bad selector":        {config: InterceptorConfig{Client: client, Name: own, Handle: handle, LabelSelector: "a in"}, want: `"a in"`},
		"two namespaces":      {config: InterceptorConfig{Client: client, Name: own, Handle: handle, Informer: informer, Namespace: "n"}, want: `"n"`},
		"two label selectors": {config: InterceptorConfig{Client: client, Name: own, Handle: handle, Informer: informer, LabelSelector: "a=b"}, want: `"a=b"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := NewInterceptor(tc.config)
			if tc.want == "" && err != nil {
				t.Errorf("NewInterceptor: %v", err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("NewInterceptor: %v, want an error with %s", err, tc.want)
			}
		})
	}
}

func TestRunOrDie(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("RunOrDie returned, want a panic because the configuration is empty")
		}
	}()
	RunOrDie(t.Context(), InterceptorConfig{})
}

func TestTurn(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a"))
		begin := metav1.NewTime(time.Now().Truncate(time.Second))
		stop := w.start(func(ctx context.Context, turn *Turn) error {
			if got := turn.Request().Name; got != "a" {
				t.Errorf("the turn is for request %s, want a", got)
			}
			turn.SetMessage("Working.")
			turn.SetExpectedFinishTime(time.Now().Add(time.Hour))
			time.Sleep(30 * time.Second)
			return nil
		})
		time.Sleep(time.Second)
		synctest.Wait()
		entry := w.entry("a")
		if !entry.StartTime.Equal(&begin) || !entry.HeartbeatTime.Equal(&begin) {
			t.Errorf("started at %v, heartbeat at %v, want both at %v", entry.StartTime, entry.HeartbeatTime, begin)
		}
		if want := begin.Add(time.Hour); entry.ExpectedFinishTime == nil || !entry.ExpectedFinishTime.Time.Equal(want) {
			t.Errorf("the ETA is %v, want %v", entry.ExpectedFinishTime, want)
		}
		if entry.Message != "Working." || entry.CompletionTime != nil {
			t.Errorf("during the turn the entry is %v", entry)
		}

		time.Sleep(40 * time.Second)
		synctest.Wait()
		entry = w.entry("a")
		if want := begin.Add(30 * time.Second); entry.CompletionTime == nil || !entry.CompletionTime.Time.Equal(want) {
			t.Errorf("completed at %v, want %v", entry.CompletionTime, want)
		}
		if !entry.StartTime.Equal(&begin) || entry.Message != "Working." || entry.ExpectedFinishTime != nil {
			t.Errorf("after the turn the entry is %v", entry)
		}
		for _, report := range w.sent() {
			if report.manager != own || !report.force || report.uid != "uid-of-a" || report.policy != "" {
				t.Errorf("a report was sent as %+v", report)
			}
		}
		if got := len(w.sent()); got != 3 {
			t.Errorf("%d reports, want 3: start, message with ETA, completion", got)
		}
		stop()
	})
}

// The cache may contain the active interceptor long after it has completed.
func TestTurnRunsOnce(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a"))
		calls := 0
		stop := w.start(func(context.Context, *Turn) error {
			calls++
			return nil
		})
		time.Sleep(time.Hour)
		for range 3 {
			// The state of a cache that does not have the completion yet.
			w.update("a", func(request *coordinationv1alpha1.EvictionRequest) {
				request.Status.Interceptors[0] = coordinationv1alpha1.InterceptorStatus{Name: own}
				request.Status.ObservedGeneration++
			})
			time.Sleep(time.Hour)
		}
		if calls != 1 {
			t.Errorf("Handle was called %d times, want once", calls)
		}
		stop()
	})
}

func TestNotActive(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		completed := newRequest("completed", reportedBefore(time.Hour, time.Minute))
		completed.Status.Interceptors[0].CompletionTime = ago(time.Minute)
		canceled := newRequest("canceled", setTrue(coordinationv1alpha1.EvictionRequestConditionCanceled, "NoRequesters"))
		evicted := newRequest("evicted", setTrue(coordinationv1alpha1.EvictionRequestConditionEvicted, "PodDeleted"))
		w := newCluster(t, completed, canceled, evicted, newRequest("others", activate(other)))
		stop := w.start(func(_ context.Context, turn *Turn) error {
			t.Errorf("Handle was called for request %s", turn.Request().Name)
			return nil
		})
		time.Sleep(time.Hour)
		stop()
		if sent := w.sent(); len(sent) > 0 {
			t.Errorf("reports were sent: %v", sent)
		}
	})
}

// accepter implements Accept and counts the calls.
type accepter struct {
	open  atomic.Bool
	calls atomic.Int32
}

func (g *accepter) accept(*coordinationv1alpha1.EvictionRequest) bool {
	g.calls.Add(1)
	return g.open.Load()
}

// startGuarded runs an interceptor with the Accept function of the accepter, and returns it.
func (w *cluster) startGuarded(g *accepter, handle Handler) (interceptor *Interceptor, stop func()) {
	w.t.Helper()
	interceptor, err := NewInterceptor(InterceptorConfig{Client: w.client, Name: own, Handle: handle, Accept: g.accept})
	if err != nil {
		w.t.Fatalf("NewInterceptor: %v", err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error)
	go func() { done <- interceptor.Run(ctx) }()
	synctest.Wait()
	return interceptor, func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	}
}

// TestNotAccepted has an interceptor that does not accept the turn until something happens.
func TestNotAccepted(t *testing.T) {
	cases := map[string]struct {
		happen    func(*cluster, *Interceptor)
		wantTurns int
	}{
		"nothing":                  {happen: func(*cluster, *Interceptor) {}},
		"reconsidered":             {happen: func(_ *cluster, i *Interceptor) { i.Reconsider(namespace, "a") }, wantTurns: 1},
		"another is reconsidered":  {happen: func(_ *cluster, i *Interceptor) { i.Reconsider(namespace, "b") }},
		"the request has changed":  {happen: func(w *cluster, _ *Interceptor) { w.update("a", setTrue("Other", "Other")) }, wantTurns: 1},
		"no longer active":         {happen: func(w *cluster, i *Interceptor) { w.update("a", activate(other)); i.Reconsider(namespace, "a") }},
		"the request is gone":      {happen: func(w *cluster, i *Interceptor) { w.delete("a"); i.Reconsider(namespace, "a") }},
		"reconsidered three times": {happen: func(_ *cluster, i *Interceptor) { reconsiderOften(i) }, wantTurns: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inSynctest(t, func(t *testing.T) {
				w, g := newCluster(t, newRequest("a")), &accepter{}
				turns := 0
				interceptor, stop := w.startGuarded(g, func(context.Context, *Turn) error {
					turns++
					return nil
				})
				time.Sleep(time.Hour)
				if sent := w.sent(); len(sent) > 0 || turns > 0 {
					t.Errorf("%d turns and reports %v, want none", turns, sent)
				}
				if got := g.calls.Load(); got != 1 {
					t.Errorf("Accept was called %d times while nothing happened, want once", got)
				}
				g.open.Store(true)
				tc.happen(w, interceptor)
				time.Sleep(time.Hour)
				stop()
				if turns != tc.wantTurns {
					t.Errorf("%d turns, want %d", turns, tc.wantTurns)
				}
			})
		})
	}
}

func reconsiderOften(i *Interceptor) {
	for range 3 {
		i.Reconsider(namespace, "a")
		time.Sleep(time.Minute)
	}
}

// TestAcceptedTurnIsNotRevoked makes Accept return false during the turn, in which an attempt also
// fails.
func TestAcceptedTurnIsNotRevoked(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w, g := newCluster(t, newRequest("a")), &accepter{}
		g.open.Store(true)
		calls := 0
		interceptor, stop := w.startGuarded(g, func(ctx context.Context, _ *Turn) error {
			calls++
			time.Sleep(10 * time.Minute)
			if calls == 1 {
				return errUnavailable
			}
			return ctx.Err()
		})
		g.open.Store(false)
		interceptor.Reconsider(namespace, "a")
		w.update("a", setTrue("Other", "Other"))
		time.Sleep(time.Hour)
		stop()
		if entry := w.entry("a"); entry.CompletionTime == nil || calls != 2 {
			t.Errorf("after %d calls the entry is %v, want it complete after two", calls, entry)
		}
		if got := g.calls.Load(); got != 1 {
			t.Errorf("Accept was called %d times, want once, before the turn", got)
		}
	})
}

// TestAcceptIsCalledAfterRestart has a turn that was started before a restart.
func TestAcceptIsCalledAfterRestart(t *testing.T) {
	for name, accepted := range map[string]bool{"accepted": true, "not accepted": false} {
		t.Run(name, func(t *testing.T) {
			inSynctest(t, func(t *testing.T) {
				w := newCluster(t, newRequest("a", reportedBefore(5*time.Minute, 2*time.Minute)))
				turns := 0
				stop := w.start(func(context.Context, *Turn) error {
					turns++
					return nil
				}, func(config *InterceptorConfig) {
					config.Accept = func(request *coordinationv1alpha1.EvictionRequest) bool {
						if request.Status.Interceptors[0].StartTime == nil {
							t.Error("the request does not have the startTime")
						}
						return accepted
					}
				})
				time.Sleep(time.Hour)
				stop()
				if silent := len(w.sent()) == 0 && turns == 0; silent == accepted {
					t.Errorf("%d turns and reports %v", turns, w.sent())
				}
			})
		})
	}
}

// TestReconsiderAtAnyTime calls Reconsider before and after Run.
func TestReconsiderAtAnyTime(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a"))
		calls := 0
		interceptor, err := NewInterceptor(InterceptorConfig{Client: w.client, Name: own, Handle: func(context.Context, *Turn) error {
			calls++
			return nil
		}})
		if err != nil {
			t.Fatalf("NewInterceptor: %v", err)
		}
		interceptor.Reconsider(namespace, "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := interceptor.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
		interceptor.Reconsider(namespace, "a")
		if calls != 1 {
			t.Errorf("%d calls, want 1", calls)
		}
	})
}

// TestRunOnce checks that a second call of Run fails, during and after the first: two workers would
// access unprotected state.
func TestRunOnce(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a"))
		interceptor, err := NewInterceptor(InterceptorConfig{Client: w.client, Name: own, Handle: func(context.Context, *Turn) error { return nil }})
		if err != nil {
			t.Fatalf("NewInterceptor: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		again := make(chan error, 1)
		go func() {
			time.Sleep(time.Minute)
			again <- interceptor.Run(ctx)
		}()
		if err := interceptor.Run(ctx); err != nil {
			t.Errorf("the first call: %v", err)
		}
		for when, err := range map[string]error{"during": <-again, "after": interceptor.Run(t.Context())} {
			if err == nil || !strings.Contains(err.Error(), own) {
				t.Errorf("%s the first call: %v, want an error that names the interceptor", when, err)
			}
		}
	})
}

func TestDecline(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a"))
		stop := w.start(func(_ context.Context, turn *Turn) error {
			turn.SetMessage("Looking.")
			return fmt.Errorf("wrapped: %w", Decline("Not ours."))
		})
		time.Sleep(time.Minute)
		stop()
		if entry := w.entry("a"); entry.CompletionTime == nil || entry.Message != "Not ours." {
			t.Errorf("the entry is %v, want it complete with the message of Decline", entry)
		}
	})
}

func TestCauses(t *testing.T) {
	cases := map[string]struct {
		happen func(w *cluster)
		want   error
	}{
		"canceled": {
			happen: func(w *cluster) {
				w.update("a", setTrue(coordinationv1alpha1.EvictionRequestConditionCanceled, "NoRequesters"))
			},
			want: ErrCanceled,
		},
		"evicted": {
			happen: func(w *cluster) {
				w.update("a", setTrue(coordinationv1alpha1.EvictionRequestConditionEvicted, "PodDeleted"))
			},
			want: ErrEvicted,
		},
		"another one is active": {happen: func(w *cluster) { w.update("a", activate(other)) }, want: ErrTurnLost},
		"deleted":               {happen: func(w *cluster) { w.delete("a") }, want: ErrRequestGone},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inSynctest(t, func(t *testing.T) {
				w := newCluster(t, newRequest("a"))
				causes := make(chan error, 10)
				stop := w.start(untilDone(causes))
				time.Sleep(time.Minute)
				tc.happen(w)
				if got := <-causes; !errors.Is(got, tc.want) {
					t.Errorf("the cause is %v, want %v", got, tc.want)
				}
				before := len(w.sent())
				time.Sleep(time.Hour)
				stop()
				if after := len(w.sent()); after != before {
					t.Errorf("%d reports after the end: %v", after-before, w.sent()[before:])
				}
				if len(causes) > 0 {
					t.Error("the turn was started again")
				}
			})
		})
	}
}

func TestRunWaitsForHandle(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a"))
		returned := false
		stop := w.start(func(ctx context.Context, _ *Turn) error {
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				t.Errorf("the cause is %v, want that of the context of Run", cause)
			}
			time.Sleep(time.Hour) // A slow handler.
			returned = true
			return nil
		})
		stop()
		if !returned {
			t.Error("Run returned before Handle")
		}
		if entry := w.entry("a"); entry.CompletionTime != nil {
			t.Errorf("the entry is %v: interrupted work must not count as complete", entry)
		}
	})
}

// TestReplaced creates another request of the same name while Handle still runs for the first one.
func TestReplaced(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a"))
		var running, calls atomic.Int32
		stop := w.start(func(ctx context.Context, _ *Turn) error {
			if running.Add(1) > 1 {
				t.Error("two calls for the same pod at the same time")
			}
			defer running.Add(-1)
			if calls.Add(1) == 1 {
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, ErrRequestGone) {
					t.Errorf("the cause is %v, want %v", cause, ErrRequestGone)
				}
				time.Sleep(time.Minute)
			}
			return nil
		})
		// Updated in one step, so that the informer may see a single update of the object.
		tracker, resource := w.client.Tracker(), coordinationv1alpha1.SchemeGroupVersion.WithResource("evictionrequests")
		second := newRequest("a")
		second.UID = "another-uid"
		if err := tracker.Update(resource, second, namespace); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		stop()
		if got := calls.Load(); got != 2 {
			t.Errorf("%d calls, want one for each request", got)
		}
		if last := w.sent()[len(w.sent())-1]; last.uid != "another-uid" || last.entry.CompletionTime == nil {
			t.Errorf("the last report is %+v, want the completion of the second request", last)
		}
	})
}

// The end of a turn has no effect on another request of the same name that is created right after.
func TestReplacedAfterItsTurn(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a"))
		var calls atomic.Int32
		stop := w.start(func(context.Context, *Turn) error {
			calls.Add(1)
			return nil
		})
		time.Sleep(time.Minute)
		tracker, resource := w.client.Tracker(), coordinationv1alpha1.SchemeGroupVersion.WithResource("evictionrequests")
		second := newRequest("a")
		second.UID = "another-uid"
		if err := tracker.Update(resource, second, namespace); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		stop()
		if got := calls.Load(); got != 2 {
			t.Errorf("%d calls, want one for each request", got)
		}
	})
}

func TestMaxConcurrent(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		const requests, places = 5, 2
		var all []*coordinationv1alpha1.EvictionRequest
		for i := range requests {
			all = append(all, newRequest(fmt.Sprintf("r%d", i), withDeadline(time.Hour)))
		}
		w := newCluster(t, all...)
		var running, calls atomic.Int32
		stop := w.start(func(ctx context.Context, turn *Turn) error {
			time.Sleep(time.Minute) // Longer than messageInterval.
			if message := w.entry(turn.Request().Name).Message; message != "" {
				t.Errorf("a turn with a place has the message %q", message)
			}
			if now := running.Add(1); now > places {
				t.Errorf("%d calls at the same time, want at most %d", now, places)
			}
			defer running.Add(-1)
			calls.Add(1)
			time.Sleep(10 * time.Minute)
			return ctx.Err()
		}, func(config *InterceptorConfig) { config.MaxConcurrent = places })
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		waiting := 0
		for i := range requests {
			entry := w.entry(fmt.Sprintf("r%d", i))
			if strings.HasPrefix(entry.Message, "Waiting: the interceptor handles at most 2 pods at a time.") {
				waiting++
				if entry.StartTime != nil || entry.HeartbeatTime != nil {
					t.Errorf("a heartbeat for work that has not started: %v", entry)
				}
			}
		}
		if waiting != requests-places {
			t.Errorf("%d requests have the message that they wait, want %d", waiting, requests-places)
		}
		time.Sleep(40 * time.Minute)
		stop()
		for i := range requests {
			if entry := w.entry(fmt.Sprintf("r%d", i)); entry.CompletionTime == nil || entry.Message != "Done." {
				t.Errorf("request %d ended as %v, want it complete", i, entry)
			}
		}
		if got := calls.Load(); got != requests {
			t.Errorf("%d calls, want %d", got, requests)
		}
	})
}

// The calls for one namespace hang, and there are more of them than places. They leave places to
// another namespace.
func TestMaxConcurrentPerNamespace(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		var all []*coordinationv1alpha1.EvictionRequest
		for i := range 10 {
			all = append(all, newRequest(fmt.Sprintf("slow%d", i), withDeadline(time.Hour)))
		}
		for i := range 3 {
			all = append(all, newRequest(fmt.Sprintf("quick%d", i), withDeadline(time.Hour), func(request *coordinationv1alpha1.EvictionRequest) { request.Namespace = "another" }))
		}
		w := newCluster(t, all...)
		var slow, quick atomic.Int32
		stop := w.start(func(ctx context.Context, turn *Turn) error {
			if turn.Request().Namespace == namespace {
				slow.Add(1)
				<-ctx.Done()
				return context.Cause(ctx)
			}
			quick.Add(1)
			return nil
		}, func(config *InterceptorConfig) { config.MaxConcurrent, config.MaxConcurrentPerNamespace = 4, 3 })
		time.Sleep(time.Minute)
		synctest.Wait()
		if slow, quick := slow.Load(), quick.Load(); slow != 1 || quick != 3 {
			t.Errorf("%d slow and %d quick calls, want 1 and 3", slow, quick)
		}
		waiting := 0
		for i := range 10 {
			if entry := w.entry(fmt.Sprintf("slow%d", i)); entry.Message == "Waiting: the interceptor handles at most 4 pods at a time, at most 3 of them in this namespace, and fewer if its work is slow." {
				waiting++
			}
		}
		if waiting != 9 {
			t.Errorf("%d requests have the message that they wait, want 9", waiting)
		}
		stop()
	})
}

// A namespace gets its maximum number of places after its first quick call.
func TestQuickNamespaceReachesItsLimit(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		var all []*coordinationv1alpha1.EvictionRequest
		for i := range 6 {
			all = append(all, newRequest(fmt.Sprintf("r%d", i), withDeadline(time.Hour)))
		}
		w := newCluster(t, all...)
		var calls atomic.Int32
		stop := w.start(func(ctx context.Context, _ *Turn) error {
			if calls.Add(1) > 1 {
				<-ctx.Done()
			}
			return nil
		}, func(config *InterceptorConfig) { config.MaxConcurrent, config.MaxConcurrentPerNamespace = 8, 4 })
		time.Sleep(time.Minute)
		if got := calls.Load(); got != 5 {
			t.Errorf("%d calls, want a quick one and four others", got)
		}
		stop()
	})
}

// A webhook rejects reports of one namespace: all of them, or those of a start. The turns of this
// namespace hold no place in the meantime, and start afterwards.
func TestRejectedReportHoldsNoPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		refuses func(sentReport) bool
		// takesAnother is whether reports without a start are accepted: then the turn starts again.
		acceptsOthers bool
	}{
		"all":    {refuses: func(sentReport) bool { return true }},
		"starts": {refuses: func(r sentReport) bool { return r.entry.StartTime != nil }, acceptsOthers: true},
	} {
		t.Run(name, func(t *testing.T) {
			inSynctest(t, func(t *testing.T) {
				w := newCluster(t,
					newRequest("refused-1", withDeadline(24*time.Hour)), newRequest("refused-2", withDeadline(24*time.Hour)), newRequest("refused-3", withDeadline(24*time.Hour)))
				var refused atomic.Bool
				refused.Store(true)
				w.rejectReports(func(report sentReport) error {
					if strings.HasPrefix(string(report.uid), "uid-of-refused") && refused.Load() && tc.refuses(report) {
						return apierrors.NewForbidden(coordinationv1alpha1.Resource("evictionrequests"), "refused", errors.New("refused by a webhook"))
					}
					return nil
				})
				stop := w.start(func(_ context.Context, turn *Turn) error {
					if refused.Load() && turn.Request().Name != "another" {
						t.Errorf("Handle was called for %s, whose start is refused", turn.Request().Name)
					}
					return nil
				}, func(config *InterceptorConfig) { config.MaxConcurrent = 2 })
				time.Sleep(time.Hour)
				if reports := len(w.sent()); reports > 3*3*60*2 {
					t.Errorf("%d reports in an hour", reports)
				}
				starts, revoked := map[types.UID]int{}, map[types.UID]bool{}
				for _, report := range w.sent() {
					if report.entry.StartTime != nil {
						starts[report.uid]++
					} else if starts[report.uid] > 0 {
						revoked[report.uid] = true
					}
				}
				for _, name := range []types.UID{"uid-of-refused-1", "uid-of-refused-2", "uid-of-refused-3"} {
					if !revoked[name] || starts[name] > 1 != tc.acceptsOthers {
						t.Errorf("%s has reported %d starts, and revoked one: %t", name, starts[name], revoked[name])
					}
				}
				another := newRequest("another")
				if err := w.client.Tracker().Create(coordinationv1alpha1.SchemeGroupVersion.WithResource("evictionrequests"), another, namespace); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if entry := w.entry("another"); entry.CompletionTime == nil {
					t.Errorf("the turn of another pod is %+v, want it complete", entry)
				}
				for _, name := range []string{"refused-1", "refused-2", "refused-3"} {
					if entry := w.entry(name); entry.HeartbeatTime != nil {
						t.Errorf("%s has a heartbeat: %+v", name, entry)
					}
				}
				refused.Store(false)
				time.Sleep(2 * time.Minute)
				for _, name := range []string{"refused-1", "refused-2", "refused-3"} {
					if entry := w.entry(name); entry.CompletionTime == nil || entry.StartTime == nil {
						t.Errorf("%s is %+v, want it complete", name, entry)
					}
				}
				stop()
			})
		})
	}
}

// A turn that waits for a place does no work, so it sends no heartbeat and its deadline applies.
func TestWaitingDoesNotExtendTheTurn(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a", withDeadline(10*time.Minute)), newRequest("b", withDeadline(10*time.Minute)))
		var calls atomic.Int32
		stop := w.start(func(ctx context.Context, _ *Turn) error {
			calls.Add(1)
			<-ctx.Done()
			return context.Cause(ctx)
		}, func(config *InterceptorConfig) { config.MaxConcurrent = 1 })
		time.Sleep(time.Hour)
		stop()
		if got := calls.Load(); got != 1 {
			t.Errorf("%d calls, want one: the other turn ended before a place was free", got)
		}
		heartbeats := 0
		for _, name := range []string{"a", "b"} {
			if w.entry(name).HeartbeatTime != nil {
				heartbeats++
			}
		}
		if heartbeats != 1 {
			t.Errorf("%d requests have a heartbeat, want only the one whose handler runs", heartbeats)
		}
	})
}

func TestConfiguredInformer(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a"))
		factory := informers.NewSharedInformerFactory(w.client, 0)
		interceptor, err := NewInterceptor(InterceptorConfig{
			Client: w.client, Name: own, Informer: factory.Coordination().V1alpha1().EvictionRequests(),
			Handle: func(context.Context, *Turn) error { return nil },
		})
		if err != nil {
			t.Fatalf("NewInterceptor: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		factory.StartWithContext(ctx)
		if err := interceptor.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
		if entry := w.entry("a"); entry.CompletionTime == nil {
			t.Errorf("the entry is %v, want it complete", entry)
		}
		factory.Shutdown()
	})
}

func TestOwnInformerSelects(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		labelled := newRequest("labelled")
		labelled.Labels = map[string]string{"app": "db"}
		elsewhere := newRequest("elsewhere")
		elsewhere.Labels, elsewhere.Namespace = labelled.Labels, "elsewhere"
		w := newCluster(t, labelled, newRequest("plain"), elsewhere)
		var calls []string
		stop := w.start(func(_ context.Context, turn *Turn) error {
			calls = append(calls, turn.Request().Name)
			return nil
		}, func(config *InterceptorConfig) { config.Namespace, config.LabelSelector = namespace, "app=db" })
		time.Sleep(time.Minute)
		stop()
		if len(calls) != 1 || calls[0] != "labelled" {
			t.Errorf("Handle was called for %v, want labelled", calls)
		}
	})
}

// TestNotConfirmed has a stale cache: the interceptor is no longer active in the API server. Handle
// must not be called.
func TestNotConfirmed(t *testing.T) {
	invalid := apierrors.NewInvalid(coordinationv1alpha1.SchemeGroupVersion.WithKind("EvictionRequest").GroupKind(), "a", nil)
	gone := apierrors.NewNotFound(coordinationv1alpha1.Resource("evictionrequests"), "a")
	conflict := apierrors.NewConflict(coordinationv1alpha1.Resource("evictionrequests"), "a", errors.New("another UID"))
	cases := map[string]struct {
		answer error
		live   func(*coordinationv1alpha1.EvictionRequest)
	}{
		"accepted, but not active": {live: activate(other)},
		"rejected as not active":   {answer: invalid, live: activate(other)},
		"not found":                {answer: gone},
		"another one of that name": {answer: conflict, live: func(request *coordinationv1alpha1.EvictionRequest) { request.UID = "another" }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inSynctest(t, func(t *testing.T) {
				w := newCluster(t, newRequest("a"))
				live := newRequest("a")
				if tc.live != nil {
					tc.live(live)
				}
				tracker, resource := w.client.Tracker(), coordinationv1alpha1.SchemeGroupVersion.WithResource("evictionrequests")
				changed := false
				w.rejectReports(func(sentReport) error {
					// The change happens between the event of the watch and the report.
					if !changed {
						changed = true
						if err := tracker.Update(resource, live, namespace); err != nil {
							t.Error(err)
						}
					}
					return tc.answer
				})
				stop := w.start(func(ctx context.Context, turn *Turn) error {
					if turn.Request().UID == "uid-of-a" {
						t.Error("Handle was called although the interceptor was not active")
					}
					return nil
				})
				stop()
				if !changed {
					t.Error("no report was sent, so nothing was tested")
				}
			})
		})
	}
}

// The request of another requester for a pod of a DaemonSet is an hour old when a maintenance
// reaches the pod. The controller has no deadline for this interceptor, so it is still active. The
// first report fails because the API server is unavailable for a moment.
func TestOldTurnSurvivesOneFailure(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("old", func(r *coordinationv1alpha1.EvictionRequest) { r.Status.ActivationTime = ago(time.Hour) }))
		failures := 1
		w.rejectReports(func(sentReport) error {
			if failures--; failures >= 0 {
				return errUnavailable
			}
			return nil
		})
		handled := false
		stop := w.start(func(context.Context, *Turn) error { handled = true; return nil }, persistent)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		stop()
		if !handled {
			t.Errorf("a day later, after %d reports, the turn has not started", len(w.sent()))
		}
	})
}

// Deletion of a pod of a DaemonSet is refused for longer than the deadline, and then allowed. The
// controller has no deadline for this interceptor, so it stays active.
func TestTurnWithoutDeadlineIsRetried(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("refused", withDeadline(20*time.Minute)))
		began, handled := time.Now(), false
		stop := w.start(func(context.Context, *Turn) error {
			if time.Since(began) < 40*time.Minute {
				return errUnavailable
			}
			handled = true
			return nil
		}, persistent)
		time.Sleep(time.Hour)
		w.update("refused", func(r *coordinationv1alpha1.EvictionRequest) { r.Labels = map[string]string{"something": "changed"} })
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		stop()
		if !handled {
			t.Errorf("a day later, after %d reports, the deletion was not retried; message: %q", len(w.sent()), w.entry("refused").Message)
		}
	})
}

func persistent(config *InterceptorConfig) { config.Persistent = true }

// Between two attempts, the cache of a process that was suspended does not show what has become of the request. Handle
// is not called again unless the API server says that the interceptor is active and the eviction wanted.
func TestAttemptIsConfirmed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*coordinationv1alpha1.EvictionRequest)
		err    error
		// repeated is whether Handle is called again.
		repeated bool
	}{
		"still wanted": {repeated: true},
		"canceled": {change: func(request *coordinationv1alpha1.EvictionRequest) {
			setTrue(coordinationv1alpha1.EvictionRequestConditionCanceled, "NoRequesters")(request)
			request.Status.ActiveInterceptors = nil
		}},
		"another one is active":    {change: activate(other)},
		"nobody requests it":       {change: func(request *coordinationv1alpha1.EvictionRequest) { request.Spec.Requesters = nil }},
		"it must not be canceled":  {change: forbidden, repeated: true},
		"the API server is silent": {err: errUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			inSynctest(t, func(t *testing.T) {
				request := newRequest("uid")
				w := newCluster(t, request)
				stored := request.DeepCopy()
				if test.change != nil {
					test.change(stored)
				}
				var attempts atomic.Int32
				stop := w.start(func(context.Context, *Turn) error {
					if attempts.Add(1) == 1 {
						w.client.PrependReactor("get", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
							return true, stored.DeepCopy(), test.err
						})
						w.client.PrependReactor("patch", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
							return !isActive(stored, own), stored.DeepCopy(), nil
						})
					}
					return errUnavailable
				}, persistent)
				defer stop()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if got := attempts.Load(); got > 1 != test.repeated {
					t.Errorf("Handle is called %d times", got)
				}
			})
		})
	}
}

// forbidden has the request without requesters, but its cancellation forbidden.
func forbidden(request *coordinationv1alpha1.EvictionRequest) {
	request.Spec.Requesters = nil
	request.Status.EvictionRequestCancellationPolicy = coordinationv1alpha1.EvictionRequestCancellationPolicyForbid
}
