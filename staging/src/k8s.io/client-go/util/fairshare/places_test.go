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

package fairshare

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

var errOver = errors.New("it is over")

func TestTryAcquire(t *testing.T) {
	places := NewPlaces(3, 2)
	for i, step := range []struct {
		tenant string
		want   bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"b", false}, {"c", false}} {
		if got := places.TryAcquire(step.tenant); got != step.want {
			t.Errorf("step %d: tenant %s got a place: %t, want %t", i, step.tenant, got, step.want)
		}
	}
	places.Release("b")
	if places.TryAcquire("a") || !places.TryAcquire("c") {
		t.Error("a place that comes free is not for everybody but who has enough")
	}
	places.Release("a")
	if !places.TryAcquire("a") {
		t.Error("a tenant does not get the place that it gave back")
	}
	unlimited := NewPlaces(2, 0)
	for i, want := range []bool{true, true, false} {
		if got := unlimited.TryAcquire("a"); got != want {
			t.Errorf("attempt %d without a limit got a place: %t, want %t", i, got, want)
		}
	}
}

func TestAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := NewPlaces(2, 1)
		var lock sync.Mutex
		var got []string
		acquire := func(tenant, name string) {
			go func() {
				if err := places.Acquire(t.Context(), tenant); err != nil {
					t.Errorf("unexpected error: %v", err)
				}
				lock.Lock()
				defer lock.Unlock()
				got = append(got, name)
			}()
			synctest.Wait()
		}
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("unexpected holders (-want, +got):\n%s", diff)
			}
		}
		for _, name := range []string{"a1", "a2", "a3", "b1", "b2", "c1"} {
			acquire(name[:1], name)
		}
		expect("a1", "b1")
		if places.TryAcquire("d") {
			t.Error("got a place though there is none")
		}
		places.Release("a")
		expect("a1", "b1", "c1")
		places.Release("c")
		expect("a1", "b1", "c1", "a2")
		places.Release("b")
		expect("a1", "b1", "c1", "a2", "b2")
		places.Release("a")
		expect("a1", "b1", "c1", "a2", "b2", "a3")
	})
}

// Who gives up takes no place, and leaves none behind, also when it comes at that moment.
func TestAcquireUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := NewPlaces(1, 1)
		if !places.TryAcquire("a") {
			t.Fatal("there is no place")
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		results := make(chan error, 1)
		go func() { results <- places.Acquire(ctx, "a") }()
		synctest.Wait()
		cancel(errOver)
		if err := <-results; !errors.Is(err, errOver) {
			t.Errorf("got error %v, want why the context has ended", err)
		}
		places.Release("a")
		if !places.TryAcquire("a") {
			t.Error("who has given up keeps the place")
		}
		places.Release("a")

		over, cancelOver := context.WithCancel(t.Context())
		cancelOver()
		for range 200 {
			// Both have come: the place, and the end.
			if err := places.Acquire(over, "b"); err == nil {
				places.Release("b")
			}
		}
		if !places.TryAcquire("b") {
			t.Error("the place is lost in the end")
		}
	})
}
