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
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/ptr"
)

// A picker that has failed again and again is not asked for a while, so that the next steps of a rollout
// do not wait for it. Then one question tries it once, and if it answers, it is asked as before.
func TestRest(t *testing.T) {
	var calls atomic.Int32
	var works atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		if !works.Load() {
			http.Error(w, "broken", http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte(`{"chosen_pods":["a"]}`))
	}))
	defer server.Close()
	a, q := newAsked(t, 20), newQuestion(t, server.URL, 1)
	q.Picker.MaxRetries = ptr.To[int32](1)
	expect := func(step string, wantCalls int32, wantReason FallbackReason) {
		t.Helper()
		calls.Store(0)
		q.Replicas++
		if result := a.result(t, q); result.Reason != wantReason || calls.Load() != wantCalls {
			t.Errorf("%s: %v (%s) after %d calls, want %q after %d", step, result.Err, result.Reason, calls.Load(), wantReason, wantCalls)
		}
	}
	wake := func() {
		a.rests.lock.Lock()
		defer a.rests.lock.Unlock()
		a.rests.failing[pickerKey(&q)].until = time.Now()
	}
	expect("first", 2, FallbackFailed)
	expect("second", 2, FallbackFailed)
	expect("at rest", 0, FallbackSkipped)
	wake()
	expect("a try", 1, FallbackFailed)
	expect("at rest again", 0, FallbackSkipped)
	before := q.Picker
	q.Picker = q.Picker.DeepCopy()
	q.Picker.TimeoutSeconds = ptr.To[int32](3)
	expect("another picker", 2, FallbackFailed)
	q.Picker = before
	q.Namespace = "other"
	expect("the picker of another namespace", 2, FallbackFailed)
	q.Namespace = key.Namespace
	works.Store(true)
	expect("still at rest", 0, FallbackSkipped)
	wake()
	expect("it works", 1, "")
	expect("as before", 1, "")
}

func TestRestTimes(t *testing.T) {
	now := time.Now()
	r := &rests{failing: map[[32]byte]*failing{}}
	key := [32]byte{1}
	fail := func(tried bool) { r.fail(key, tried, errTest, now) }
	for range failuresToRest - 1 {
		fail(false)
	}
	if tries, err := r.admit(key, now); err != nil || tries {
		t.Errorf("tries %t, %v after too few failures", tries, err)
	}
	fail(false)
	for _, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		now = now.Add(want - time.Second)
		fail(false) // One that began before does not prolong it.
		if err := r.check(key, now); !errorHas(err, "is not asked again before "+now.Add(time.Second).UTC().Format(time.RFC3339)) || !errorHas(err, "attempts failed: refused") {
			t.Errorf("after nearly %s: %v", want, err)
		}
		now = now.Add(time.Second)
		if tries, err := r.admit(key, now); err != nil || !tries {
			t.Fatalf("after %s: tries %t, %v", want, tries, err)
		}
		if _, err := r.admit(key, now); !errorHas(err, "another scale-down tries it") {
			t.Errorf("two try it: %v", err)
		}
		r.withdraw(key) // It was not needed any more.
		if tries, err := r.admit(key, now); err != nil || !tries {
			t.Errorf("nobody tries it any more: %v", err)
		}
		fail(true)
	}
	r.succeed(key)
	if len(r.failing) > 0 {
		t.Error("it is remembered")
	}

	// Many failing pickers do not use up the memory.
	for i := range maxFailing + 10 {
		now = now.Add(time.Second)
		r.fail([32]byte{byte(i), byte(i >> 8)}, false, fmt.Errorf("%s", strings.Repeat("x", 10000)), now)
	}
	if len(r.failing) != maxFailing || r.failing[[32]byte{0, 0}] != nil {
		t.Errorf("%d are remembered, want the last %d", len(r.failing), maxFailing)
	}
	for _, f := range r.failing {
		if len(f.lastError) > maxRestError {
			t.Fatalf("an error of %d bytes is kept", len(f.lastError))
		}
	}
}

// The questions that wait for a picker while it fails do not wait in vain.
func TestRestWhileOthersWait(t *testing.T) {
	a := newAsked(t, 20)
	began := time.Now()
	reasons := map[FallbackReason]int{}
	askMany(t, a, hang(t).URL, 40, func(_ string, result Result) { reasons[result.Reason]++ })
	if took := time.Since(began); took > 9*time.Second || reasons[FallbackSkipped] < 30 {
		t.Errorf("ended %v after %s", reasons, took)
	}
}
