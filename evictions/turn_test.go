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

package evictions

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
)

// Most tests of turns are in package evictionrequest of the tree, whose interceptors are responders of this package.

const own = "example.com/own"

var errUnavailable = errors.New("the API server is unavailable")

// fakeAPI has at most one request.
type fakeAPI struct {
	live   *Request
	write  func(ctx context.Context, report Report) error
	writes []Report
}

func (a *fakeAPI) Rules() Rules                                              { return CoordinationRules }
func (a *fakeAPI) Informer(string, string, string) cache.SharedIndexInformer { return nil }
func (a *fakeAPI) Read(obj any, _ string) *Request                           { return obj.(*Request) }

func (a *fakeAPI) Get(context.Context, string, string, string) (*Request, error) {
	if a.live == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "a")
	}
	return a.live, nil
}

func (a *fakeAPI) Write(ctx context.Context, _ *Request, _ string, report Report, _ bool) (*Request, error) {
	a.writes = append(a.writes, report)
	if err := a.write(ctx, report); err != nil {
		return nil, err
	}
	written := *a.live
	written.Report = report
	return &written, nil
}

func active() *Request {
	return &Request{Namespace: "work", Name: "a", UID: "uid-of-a", ActiveSince: time.Now(), HeartbeatDeadline: 20 * time.Minute}
}

func newTestTurn(t *testing.T, ctx context.Context, config ResponderConfig) *Turn {
	t.Helper()
	config.Name = own
	if config.Handle == nil {
		config.Handle = func(context.Context, *Turn) error { return nil }
	}
	responder, err := NewResponder(config)
	if err != nil {
		t.Fatalf("creating a responder: %v", err)
	}
	t.Cleanup(responder.queue.ShutDown)
	return newTurn(ctx, responder, active())
}

// A report fails that was in flight when the turn got its place. It did not report the start, so
// the turn keeps the place.
func TestReportThatFailsBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, places := &fakeAPI{live: active()}, make(semaphore, 1)
		held := places.TryAcquire("")
		api.write = func(context.Context, Report) error {
			if len(api.writes) > 1 {
				return nil
			}
			held.Release()
			time.Sleep(time.Second)
			return errUnavailable
		}
		newTestTurn(t, t.Context(), ResponderConfig{API: api, Places: places}).run()
		if reports := api.writes; len(reports) < 2 || !reports[0].Start.IsZero() || reports[1].Start.IsZero() {
			t.Errorf("sent %+v, want one without a start, and then the start", reports)
		}
	})
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

// begun is a place that notes when the work begins.
type begun struct{ at []time.Time }

func (b *begun) TryAcquire(string) Place                        { return b }
func (b *begun) Acquire(context.Context, string) (Place, error) { return b, nil }
func (b *begun) Begin()                                         { b.at = append(b.at, time.Now()) }
func (b *begun) Release()                                       {}

// The work begins with the call that reports its start, which a webhook may delay, and not while the client waits for
// its rate limit.
func TestWorkBeginsWithTheReport(t *testing.T) {
	for name, tc := range map[string]struct {
		limited, answers, begins time.Duration
		never                    bool
	}{
		"rate limit":         {limited: 10 * time.Second, begins: 10 * time.Second},
		"slow webhook":       {answers: 10 * time.Second},
		"is not sent at all": {limited: writeTimeout + time.Second, never: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := make(pipes)
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					time.Sleep(tc.answers)
					w.WriteHeader(http.StatusForbidden)
				})}
				var serving sync.WaitGroup
				serving.Go(func() { _ = server.Serve(listener) })
				limiter := flowcontrol.NewTokenBucketRateLimiter(1/float32(max(1, tc.limited.Seconds())), 1)
				if tc.limited > 0 {
					limiter.Accept()
				}
				client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://pipes", RateLimiter: limiter,
					Transport: &http.Transport{DialContext: listener.dial, DisableKeepAlives: true}})
				if err != nil {
					t.Fatalf("creating a client: %v", err)
				}
				place := &begun{}
				turn := newTestTurn(t, t.Context(), ResponderConfig{API: Lifecycle(client), Places: place})
				if _, err := turn.start(1); err != nil {
					t.Fatalf("starting: %v", err)
				}
				start := time.Now()
				if _, err := turn.send(Report{}, false); err == nil {
					t.Error("the API server, which forbids everything, has accepted a report")
				}
				if tc.never != (len(place.at) == 0) || !tc.never && place.at[0].Sub(start).Round(time.Second) != tc.begins {
					t.Errorf("began at %v, started at %s, want it %s later", place.at, start, tc.begins)
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
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{write: func(ctx context.Context, _ Report) error { <-ctx.Done(); return ctx.Err() }}
		// A report without a timeout fails the test instead of blocking it.
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		_, err := newTestTurn(t, ctx, ResponderConfig{API: api}).send(Report{}, false)
		if lasted := time.Since(began); lasted != writeTimeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended after %s with %v, want that after %s", lasted, err, writeTimeout)
		}
	})
}

// TestRejected tests the error of the API server alone, as with a stale cache.
func TestRejected(t *testing.T) {
	var (
		resource    = schema.GroupResource{Resource: "evictionrequests"}
		errNotFound = apierrors.NewNotFound(resource, "a")
		errConflict = apierrors.NewConflict(resource, "a", errors.New("the UID differs"))
		errInvalid  = apierrors.NewInvalid(schema.GroupKind{}, "a", nil)
	)
	replaced, lost := active(), active()
	replaced.UID, lost.Ended = "another", ErrTurnLost
	for name, tc := range map[string]struct {
		err  error
		live *Request
		want error
	}{
		"not found":              {err: errNotFound, live: active(), want: ErrRequestGone},
		"conflict, gone":         {err: errConflict, want: ErrRequestGone},
		"conflict, replaced":     {err: errConflict, live: replaced, want: ErrRequestGone},
		"conflict, still active": {err: errConflict, live: active()},
		"invalid, still active":  {err: errInvalid, live: active()},
		"invalid, not active":    {err: errInvalid, live: lost, want: ErrTurnLost},
		"another error":          {err: errUnavailable, live: lost},
	} {
		t.Run(name, func(t *testing.T) {
			turn := newTestTurn(t, t.Context(), ResponderConfig{API: &fakeAPI{live: tc.live}})
			turn.handleRejection(tc.err)
			if cause := context.Cause(turn.ctx); !errors.Is(cause, tc.want) {
				t.Errorf("the turn was ended by %v, want %v", cause, tc.want)
			}
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

func TestAcceptableETA(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 700_000_000, time.UTC)
	at := func(seconds int) time.Time { return time.Date(2026, 5, 1, 12, 0, seconds, 0, time.UTC) }
	for name, tc := range map[string]struct{ eta, old, want time.Time }{
		"far ahead":                {eta: at(30), want: at(30)},
		"in a few seconds":         {eta: at(5), want: at(11)},
		"past":                     {eta: at(-5), want: at(11)},
		"past, and stored":         {eta: at(-5), old: at(-5), want: at(-5)},
		"past, and another stored": {eta: at(-5), old: at(-6), want: at(11)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := acceptableETA(now, tc.eta, tc.old, 10*time.Second); !got.Equal(tc.want) {
				t.Errorf("acceptableETA = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestStampsDoNotGoBack: the controller, whose clock is ahead, has set the start.
func TestStampsDoNotGoBack(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	start := now.Add(3 * time.Second)
	entry := report{content: content{done: true}}.entry(now, Report{Start: start}, true, time.Minute)
	if want := (Report{Start: start, Heartbeat: start, Completion: start}); entry != want {
		t.Errorf("reports %+v, want %+v", entry, want)
	}
}

func TestTruncateMessage(t *testing.T) {
	fits := strings.Repeat("ä", 32768)
	if got := truncateMessage(fits, CoordinationRules); got != fits {
		t.Error("a message of 32768 characters was truncated")
	}
	if got := truncateMessage(fits+"b", CoordinationRules); got != fits {
		t.Errorf("a message of 32769 characters was truncated to %d bytes, want %d", len(got), len(fits))
	}
	if got := truncateMessage(fits, lifecycleRules); len(got) != 2*4000 {
		t.Errorf("a message for lifecycle.k8s.io has %d bytes", len(got))
	}
}
