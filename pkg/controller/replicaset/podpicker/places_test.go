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
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// However many namespaces have pickers that hang, for half a minute in each attempt, those of others are
// asked after three seconds or earlier.
func TestNamespacesDoNotStarve(t *testing.T) {
	for _, namespaces := range []int{25, 40} {
		t.Run(fmt.Sprint(namespaces), func(t *testing.T) {
			t.Parallel()
			quick := httptest.NewServer(answering(`{"chosen_pods":["a"]}`))
			defer quick.Close()
			a, hanging := newAsked(t, 20), hang(t).URL
			for i := range namespaces {
				for name := range 2 {
					q := newQuestion(t, hanging, 1)
					patient(&q)
					q.Namespace, q.Name = fmt.Sprint("hostile-", i), fmt.Sprint("rs-", name)
					a.Ask(t.Context(), q)
					defer a.Forget(q.NamespacedName)
				}
			}
			for i := range 6 {
				time.Sleep(time.Second)
				q := newQuestion(t, quick.URL, 1)
				q.Namespace, q.Picker.TimeoutSeconds, q.Picker.MaxRetries = fmt.Sprint("healthy-", i), nil, nil
				began := time.Now()
				a.Ask(t.Context(), q)
				for {
					if result, found := a.Take(q.NamespacedName); found {
						if result.Err != nil {
							t.Errorf("%d: %v (%s after %s)", i, result.Err, result.Reason, result.Duration)
						}
						break
					}
					if time.Since(began) > 4*time.Second {
						t.Fatalf("%d is not asked", i)
					}
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
}

// Of too many slow questions, one of the namespace that has most of them ends, and says why. None holds a
// place, and none is kept in the end.
func TestTooManySlow(t *testing.T) {
	p := newPlaces(2) // So at most ten are slow.
	var stays []*stay
	ended := map[*stay]string{}
	var lock sync.Mutex
	begin := func(namespace string) {
		s, ctx, err := p.begin(t.Context(), namespace)
		if err != nil {
			t.Fatal(err)
		}
		s.leaves.Stop()
		stays = append(stays, s)
		s.leave()
		go func() {
			<-ctx.Done()
			lock.Lock()
			defer lock.Unlock()
			ended[s] = namespace
		}()
	}
	for i := range 2 {
		begin(fmt.Sprint("patient-", i))
	}
	for range 14 {
		begin("hostile")
	}
	waitUntil(t, func() bool { lock.Lock(); defer lock.Unlock(); return len(ended) == 6 })
	for s, namespace := range ended {
		if namespace != "hostile" {
			t.Errorf("a question of %s has ended", namespace)
		}
		if !s.isOver() {
			t.Error("it goes on with its place")
		}
	}
	for _, s := range stays {
		s.end()
		s.end()
		s.leave()
	}
	if len(p.slow) > 0 {
		t.Errorf("%d are kept", len(p.slow))
	}
}

// A question that gives way is no failure of its picker.
func TestGivesWay(t *testing.T) {
	h := hold(t)
	q, a := newQuestion(t, h.URL, 1), newAsked(t, 1)
	q.Picker.TimeoutSeconds = ptr.To[int32](30)
	a.Ask(t.Context(), q)
	receive(t, h.reached, "call")
	waitUntil(t, func() bool { a.places.lock.Lock(); defer a.places.lock.Unlock(); return len(a.places.slow) == 1 })
	a.places.lock.Lock()
	a.places.endOne()
	a.places.lock.Unlock()
	if result := a.wait(t, key); !errorHas(result.Err, "too many other pickers are slow") || result.Reason != FallbackBusy || len(a.rests.failing) > 0 {
		t.Errorf("%v (%s), %d pickers failed", result.Err, result.Reason, len(a.rests.failing))
	}
}

func errorHas(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// The scale-downs of a burst in one namespace are all picked, if their picker is able to answer them at
// the same time: the time of a picker begins when it is asked, and more are asked at a time.
func TestBurst(t *testing.T) {
	var most, now atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for count := now.Add(1); count > most.Load(); {
			most.Store(count)
		}
		time.Sleep(700 * time.Millisecond)
		now.Add(-1)
		_, _ = w.Write([]byte(`{"chosen_pods":["a"]}`))
	}))
	defer server.Close()
	a := newAsked(t, 20)
	askMany(t, a, server.URL, 60, func(name string, result Result) {
		if result.Err != nil {
			t.Errorf("%s: %v (%s after %s)", name, result.Err, result.Reason, result.Duration)
		}
	})
	if most.Load() > 10 {
		t.Errorf("%d were asked at a time, want half of the places at most", most.Load())
	}
}

// A picker that answers one after the other is not asked more than it is able to answer in time. Who does
// not get a turn is busy, and the picker is not blamed.
func TestBurstOfOneByOne(t *testing.T) {
	var lock sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		time.Sleep(300 * time.Millisecond)
		_, _ = w.Write([]byte(`{"chosen_pods":["a"]}`))
	}))
	defer server.Close()
	a := newAsked(t, 20)
	a.maxWait = 4 * time.Second
	picked := 0
	askMany(t, a, server.URL, 30, func(name string, result Result) {
		switch {
		case result.Err == nil:
			picked++
		case result.Reason != FallbackBusy || !errorHas(result.Err, "others are being asked: no turn within 4s"):
			t.Errorf("%s: %v (%s after %s)", name, result.Err, result.Reason, result.Duration)
		}
	})
	if picked < 10 {
		t.Errorf("%d are picked", picked)
	}
}

func askMany(t *testing.T, a *asked, url string, count int, check func(name string, result Result)) {
	t.Helper()
	for i := range count {
		q := newQuestion(t, url, 1)
		q.Name, q.Picker.TimeoutSeconds, q.Picker.MaxRetries = fmt.Sprint("rs-", i), nil, nil
		a.Ask(t.Context(), q)
	}
	left := map[string]bool{}
	for i := range count {
		left[fmt.Sprint("rs-", i)] = true
	}
	for deadline := time.Now().Add(time.Minute); len(left) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d do not end", len(left))
		}
		for name := range left {
			if result, found := a.Take(types.NamespacedName{Namespace: key.Namespace, Name: name}); found {
				delete(left, name)
				check(name, result)
			}
		}
	}
}

// The limit of a host follows its speed.
func TestHostLimit(t *testing.T) {
	p := newPlaces(20)
	leave, err := p.enterHost(t.Context(), "host")
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want int) {
		t.Helper()
		if got := p.hosts["host"].limit; got != want {
			t.Errorf("the limit is %d, want %d", got, want)
		}
	}
	expect(firstPerHost)
	for range 20 {
		p.observe("host", 500*time.Millisecond, false)
	}
	expect(10)
	p.observe("host", 1200*time.Millisecond, false)
	expect(9)
	p.observe("host", 850*time.Millisecond, false) // Neither quick nor slow.
	expect(9)
	p.observe("host", 0, true)
	expect(4)
	for range 5 {
		p.observe("host", 0, true)
	}
	expect(1)
	leave()
	leave()
	p.observe("host", 0, true)
	if len(p.hosts) > 0 {
		t.Errorf("%d hosts are kept", len(p.hosts))
	}
}

// What earlier questions have used up is not the fault of the picker that is asked next.
func TestLittleTimeLeft(t *testing.T) {
	h := hold(t)
	q, a := newQuestion(t, h.URL, 1), newAsked(t, 100)
	a.Ask(t.Context(), q)
	receive(t, h.reached, "call")
	a.lock.Lock()
	a.asked[key].clock.left[phaseAsks] = 50 * time.Millisecond
	a.lock.Unlock()
	q.Replicas++
	a.Ask(t.Context(), q)
	if result := a.wait(t, key); result.Err == nil || result.Reason != FallbackChanged || len(a.rests.failing) > 0 {
		t.Errorf("%v (%s), %d pickers failed", result.Err, result.Reason, len(a.rests.failing))
	}
}

var errTest = errors.New("refused")
