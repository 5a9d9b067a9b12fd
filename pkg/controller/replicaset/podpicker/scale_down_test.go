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

package podpicker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/downscalepodpicker"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"
)

// Whose answer may be used for which question.
func TestIdentity(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Question)
		same   bool
	}{
		"unchanged":                      {func(*Question) {}, true},
		"the pods in another order":      {func(q *Question) { q.CandidateUIDs = []types.UID{"3", "1", "2"} }, true},
		"another ReplicaSet of the name": {func(q *Question) { q.UID = "rs-2" }, false},
		"other replicas":                 {func(q *Question) { q.Replicas++ }, false},
		"more pods have to go":           {func(q *Question) { q.Pods++ }, false},
		"another pod of the name":        {func(q *Question) { q.CandidateUIDs = []types.UID{"1", "2", "4"} }, false},
		"a pod less":                     {func(q *Question) { q.CandidateUIDs = q.CandidateUIDs[:2] }, false},
	} {
		q := newQuestion(t, "http://127.0.0.1:1", 1)
		before := q.identity()
		test.change(&q)
		if same := q.identity() == before; same != test.same {
			t.Errorf("%s: the same question: %t, want %t", name, same, test.same)
		}
	}
}

// Pickers at other ports of the host, and those of other namespaces, have places of their own.
func TestHostKey(t *testing.T) {
	keys := map[string]string{}
	for name, change := range map[string]func(*Question){
		"itself":            func(*Question) {},
		"another host":      func(q *Question) { q.Picker.HTTP.Host = "127.0.0.2" },
		"another port":      func(q *Question) { q.Picker.HTTP.Port = intstr.FromInt32(2) },
		"a named port":      func(q *Question) { q.Picker.HTTP.Port = intstr.FromString("http") },
		"another namespace": func(q *Question) { q.Namespace = "other" },
	} {
		q := newQuestion(t, "http://127.0.0.1:1", 1)
		change(&q)
		if other, found := keys[hostKey(&q)]; found {
			t.Errorf("%s and %s share places", name, other)
		}
		keys[hostKey(&q)] = name
	}
	q := newQuestion(t, "http://127.0.0.1:1", 1)
	before := hostKey(&q)
	q.Name, q.Picker.HTTP.Path = "others", "/other"
	if hostKey(&q) != before {
		t.Error("another ReplicaSet of the namespace has places of its own")
	}
}

// Two questions at a time are asked at a host whose speed is not known. A place is free again when one has ended.
func TestPlacesOfHosts(t *testing.T) {
	a := newAsked(t, 100)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	enter := func() (leave func()) {
		leave, err := a.places.enterHost(ctx, "host")
		if err != nil {
			t.Fatalf("there is no place: %v", err)
		}
		return leave
	}
	first := enter()
	for range 5 {
		enter()()
	}
	second := enter()
	ended, end := context.WithCancel(t.Context())
	end()
	for range 50 { // Either of two cases that are ready may be selected.
		if leave, err := a.places.enterHost(ended, "host"); err == nil {
			leave()
			t.Fatal("a third one has a place")
		}
	}
	first()
	second()
	if len(a.places.hosts) > 0 {
		t.Errorf("%d hosts are kept", len(a.places.hosts))
	}
}

// A namespace has few places, and half of them once its pickers answer quickly.
func TestPlacesOfNamespaces(t *testing.T) {
	server := httptest.NewServer(answering(`{}`))
	defer server.Close()
	q := newQuestion(t, server.URL, 1)
	a := newAsked(t, 20)
	count := func() (places int) {
		for place := a.places.shared.TryAcquire(q.Namespace); place != nil; place = a.places.shared.TryAcquire(q.Namespace) {
			places++
			defer place.Release()
		}
		return places
	}
	if got := count(); got != 2 {
		t.Errorf("%d places before the first answer, want 2", got)
	}
	a.result(t, q)
	waitUntil(t, func() bool { return count() == 10 })

	// All namespaces together have one.
	a = newAsked(t, 1)
	a.result(t, q)
	q.Namespace = "other"
	a.result(t, q)
	waitUntil(t, func() bool {
		place := a.places.shared.TryAcquire(key.Namespace)
		if place == nil {
			return false // The last question still leaves.
		}
		defer place.Release()
		if second := a.places.shared.TryAcquire("other"); second != nil {
			t.Error("there are two places, want 1")
		}
		return true
	})
}

// holding is a picker that holds questions until the client goes.
type holding struct {
	*httptest.Server
	reached, gone chan struct{}
}

func hold(t *testing.T) *holding {
	h := &holding{reached: make(chan struct{}, 100), gone: make(chan struct{}, 100)}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // Otherwise the server does not notice that the client goes.
		h.reached <- struct{}{}
		<-r.Context().Done()
		h.gone <- struct{}{}
	}))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}

func receive[T any](t *testing.T, from <-chan T, what string) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(20 * time.Second): // Less than the timeout of these questions.
		t.Fatal("no " + what)
	}
	return value
}

func patient(q *Question) {
	q.Picker.TimeoutSeconds, q.Picker.MaxRetries = ptr.To[int32](30), ptr.To[int32](10)
}

// A call ends when nobody waits for it any more, so its places are free.
func TestCallsEnd(t *testing.T) {
	for name, end := range map[string]func(*asked, Question){
		"forgotten":          func(a *asked, q Question) { a.Forget(q.NamespacedName) },
		"other replicas":     func(a *asked, q Question) { q.Replicas++; a.Ask(t.Context(), q) },
		"another ReplicaSet": func(a *asked, q Question) { q.UID = "rs-2"; a.Ask(t.Context(), q) },
	} {
		t.Run(name, func(t *testing.T) {
			h := hold(t)
			q, a := newQuestion(t, h.URL, 1), newAsked(t, 100)
			patient(&q)
			a.Ask(t.Context(), q)
			receive(t, h.reached, "call")
			end(a, q)
			receive(t, h.gone, "end of the call")
			if name == "forgotten" {
				waitUntil(t, func() bool { a.places.lock.Lock(); defer a.places.lock.Unlock(); return len(a.places.hosts) == 0 })
				if _, found := a.Take(q.NamespacedName); found || len(a.ended) > 0 {
					t.Error("it has a result")
				}
			}
			a.Forget(q.NamespacedName)
		})
	}
}

// An answer to one question is none to the next.
func TestAnswerIsForOneQuestion(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		downscalepodpicker.NewHandler(func(_ context.Context, q downscalepodpicker.Question) (downscalepodpicker.Answer, error) {
			return downscalepodpicker.Answer{Chosen: q.Candidates[:q.Pods]}, nil
		}).ServeHTTP(w, r)
	}))
	defer server.Close()
	q, a := newQuestion(t, server.URL, 1), newAsked(t, 1)
	a.Ask(t.Context(), q)
	receive(t, a.ended, "answer")
	if !a.Ask(t.Context(), q) {
		t.Error("the question is asked again")
	}
	q.Candidates, q.CandidateUIDs = []string{"d", "e", "f"}, []types.UID{"4", "5", "6"}
	if a.Ask(t.Context(), q) {
		t.Error("the answer to the question before is taken for one to this")
	}
	if _, found := a.Take(key); found {
		t.Error("the answer to the question before is there")
	}
	a.Ask(t.Context(), q)
	if result := a.wait(t, key); !reflect.DeepEqual(result.Ranks, map[string]int{"d": RankChosen, "e": RankOther, "f": RankOther}) {
		t.Errorf("result %+v", result)
	}
}

// What comes of a question that was replaced, or of a scale-down that has ended, changes nothing.
func TestLateAnswers(t *testing.T) {
	h := hold(t)
	q, a := newQuestion(t, h.URL, 1), newAsked(t, 100)
	patient(&q)
	a.Ask(t.Context(), q)
	receive(t, h.reached, "call")
	a.lock.Lock()
	s := a.asked[key]
	a.lock.Unlock()
	ended, end := context.WithCancel(t.Context())
	end()
	a.work(ended, s, s.turn-1, q)
	a.work(ended, &scaleDown{turn: s.turn, cancel: func(error) {}, expires: time.NewTimer(0)}, s.turn, q)
	if _, found := a.Take(key); found || len(a.ended) > 0 {
		t.Error("there is a result")
	}
	a.Forget(key)
}

// The time of a scale-down begins with its first question, whatever is asked later.
func TestTimeOfScaleDown(t *testing.T) {
	h := hold(t)
	q, a := newQuestion(t, h.URL, 1), newAsked(t, 100)
	patient(&q)
	endsIn := func(left time.Duration) {
		a.lock.Lock()
		defer a.lock.Unlock()
		clock := &a.asked[key].clock
		clock.enter(clock.current, time.Now())
		clock.left[phaseAsks] = left
	}
	a.Ask(t.Context(), q)
	endsIn(10 * time.Millisecond)
	q.Replicas++
	if a.Ask(t.Context(), q) {
		t.Fatal("there is an answer")
	}
	receive(t, a.ended, "end")
	if result, found := a.Take(key); !found || result.Err == nil {
		t.Errorf("%+v, %t", result, found)
	}

	a.Ask(t.Context(), q)
	a.lock.Lock()
	a.asked[key].began = time.Now().Add(-time.Minute)
	a.lock.Unlock()
	endsIn(-time.Second)
	q.UID = "rs-2"
	if a.Ask(t.Context(), q) {
		t.Error("another ReplicaSet of the name has no time")
	}
	a.lock.Lock()
	a.asked[key].began = time.Now().Add(-time.Minute)
	a.lock.Unlock()
	endsIn(-time.Second)
	if q.Replicas++; !a.Ask(t.Context(), q) {
		t.Error("there is time left")
	}
	if result, found := a.Take(key); !found || result.Reason != FallbackChanged || result.Duration < time.Minute {
		t.Errorf("%+v, %t, want that it changed for a minute", result, found)
	}
}

// The pause between two attempts ends with the question.
func TestEndInPause(t *testing.T) {
	server := httptest.NewServer(answering("nonsense"))
	defer server.Close()
	q, a := newQuestion(t, server.URL, 1), newAsked(t, 1)
	patient(&q)
	a.pauses.Duration = time.Hour
	failed := countOf(t, callDuration, callFailed)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a.Ask(ctx, q)
	waitUntil(t, func() bool { return countOf(t, callDuration, callFailed) > failed })
	cancel()
	receive(t, a.ended, "end")
	if result, found := a.Take(key); !found || result.Err == nil || !strings.Contains(result.Err.Error(), "attempt 1 of 11") {
		t.Errorf("%v, %t", result.Err, found)
	}
}

// An attempt whose time ends says so, wherever it waits.
func TestTimeOfAttempt(t *testing.T) {
	q, a := newQuestion(t, "http://127.0.0.1:1", 1), newAsked(t, 1)
	q.Picker.HTTP.Host = "slow.test"
	a.resolver.lookup = func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	before := countOf(t, callDuration, callTimeout)
	if _, err := a.attemptWithin(t.Context(), time.Millisecond, &q); err == nil || err.Error() != "no answer within 1ms" {
		t.Errorf("error %v", err)
	}
	if got := countOf(t, callDuration, callTimeout) - before; got != 1 {
		t.Errorf("it counts %d times as timeout", got)
	}
}

func countOf(t *testing.T, histogram *metrics.HistogramVec, result string) uint64 {
	t.Helper()
	count, err := testutil.GetHistogramMetricCount(histogram.WithLabelValues(result))
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// Each attempt and each scale-down counts once, by how it ended.
func TestMetrics(t *testing.T) {
	a := newAsked(t, 100)
	failure := errors.New("refused")
	for _, test := range []struct {
		timedOut bool
		err      error
		want     string
	}{{false, nil, callAnswered}, {true, failure, callTimeout}, {false, failure, callFailed}} {
		before := countOf(t, callDuration, test.want)
		observeCall(time.Now(), test.timedOut, test.err)
		if got := countOf(t, callDuration, test.want) - before; got != 1 {
			t.Errorf("a call counts %d times as %s", got, test.want)
		}
	}
	for want, result := range map[string]Result{
		"picked": {Ranks: map[string]int{"a": RankChosen}}, "undecided": {}, "failed": {Err: failure, Reason: FallbackFailed},
		"busy": {Err: failure, Reason: FallbackBusy}, "skipped": {Err: failure, Reason: FallbackSkipped}, "changed": {Err: failure, Reason: FallbackChanged},
	} {
		before := countOf(t, scaleDownDuration, want)
		a.asked[key] = &scaleDown{result: &result}
		a.Take(key)
		if got := countOf(t, scaleDownDuration, want) - before; got != 1 {
			t.Errorf("a scale-down counts %d times as %s", got, want)
		}
	}
	// Nobody wants to know how a call ended that was canceled.
	ended, end := context.WithCancel(t.Context())
	end()
	q := newQuestion(t, "http://127.0.0.1:1", 1)
	all := func() (count uint64) {
		for _, result := range []string{callAnswered, callTimeout, callFailed} {
			count += countOf(t, callDuration, result)
		}
		return count
	}
	before := all()
	if _, err := a.attemptWithin(ended, time.Minute, &q); err == nil || all() != before {
		t.Errorf("%v, and %d calls are counted", err, all()-before)
	}
}

// The metric of waiting scale-downs has those that have no result yet.
func TestWaitingMetric(t *testing.T) {
	h := hold(t)
	server := httptest.NewServer(answering(`{}`))
	defer server.Close()
	a := newAsked(t, 100)
	expect := func(want int) {
		t.Helper()
		name := "replicaset_controller_downscale_pod_picker_waiting_scale_downs"
		text := fmt.Sprintf("# HELP %[1]s [ALPHA] Number of scale-downs that wait for their downscale pod picker now.\n# TYPE %[1]s gauge\n%[1]s %[2]d\n", name, want)
		if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(text), name); err != nil {
			t.Error(err)
		}
	}
	expect(0)
	for _, name := range []string{"first", "second"} {
		q := newQuestion(t, h.URL, 1)
		q.Name = name
		patient(&q)
		a.Ask(t.Context(), q)
		defer a.Forget(q.NamespacedName)
	}
	expect(2)
	a.Ask(t.Context(), newQuestion(t, server.URL, 1))
	receive(t, a.ended, "answer")
	expect(2) // The third one has its answer, which nobody has taken.
	a.Forget(types.NamespacedName{Namespace: key.Namespace, Name: "first"})
	expect(1)
}
