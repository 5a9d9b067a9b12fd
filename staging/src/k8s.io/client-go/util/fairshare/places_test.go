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
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

var errOver = errors.New("it is over")

// newTestPlaces returns places whose tenants a to d were quick.
func newTestPlaces(total, perTenant int) *Places {
	places := NewPlaces(total, perTenant, clock.RealClock{})
	for _, tenant := range []string{"a", "b", "c", "d"} {
		places.TryAcquire(tenant)()
	}
	return places
}

func TestTryAcquire(t *testing.T) {
	places := newTestPlaces(3, 2)
	var releaseA, releaseB func()
	for i, step := range []struct {
		tenant  string
		release *func()
		want    bool
	}{{"a", &releaseA, true}, {"a", new(func()), true}, {"a", new(func()), false}, {"b", &releaseB, true}, {"b", new(func()), false}, {"c", new(func()), false}} {
		if *step.release = places.TryAcquire(step.tenant); (*step.release != nil) != step.want {
			t.Errorf("step %d: tenant %s got a place: %t, want %t", i, step.tenant, !step.want, step.want)
		}
	}
	releaseB()
	if places.TryAcquire("a") != nil || places.TryAcquire("c") == nil {
		t.Error("a place that comes free is not for everybody but who has enough")
	}
	releaseA()
	releaseA() // It counts once.
	if places.TryAcquire("a") == nil || places.TryAcquire("b") != nil {
		t.Error("a tenant does not get the place that it gave back, or another gets one")
	}
	unlimited := newTestPlaces(2, 0)
	for i, want := range []bool{true, true, false} {
		if got := unlimited.TryAcquire("z") != nil; got != want {
			t.Errorf("attempt %d without a limit got a place: %t, want %t", i, got, want)
		}
	}
}

func TestAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := newTestPlaces(2, 1)
		var lock sync.Mutex
		var got []string
		releases := map[string]func(){}
		acquire := func(tenant, name string) {
			go func() {
				release, err := places.Acquire(t.Context(), tenant)
				if err != nil {
					t.Errorf("unexpected error: %v", err)
				}
				lock.Lock()
				defer lock.Unlock()
				got = append(got, name)
				releases[name] = release
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
		if places.TryAcquire("d") != nil {
			t.Error("got a place though there is none")
		}
		releases["a1"]()
		expect("a1", "b1", "c1")
		releases["c1"]()
		expect("a1", "b1", "c1", "a2")
		releases["b1"]()
		expect("a1", "b1", "c1", "a2", "b2")
		releases["a2"]()
		expect("a1", "b1", "c1", "a2", "b2", "a3")
	})
}

// Who gives up takes no place, and leaves none behind, also when it comes at that moment.
func TestAcquireUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := newTestPlaces(1, 1)
		release := places.TryAcquire("a")
		if release == nil {
			t.Fatal("there is no place")
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		results := make(chan error, 1)
		go func() {
			_, err := places.Acquire(ctx, "a")
			results <- err
		}()
		synctest.Wait()
		cancel(errOver)
		if err := <-results; !errors.Is(err, errOver) {
			t.Errorf("got error %v, want why the context has ended", err)
		}
		release()
		if release = places.TryAcquire("a"); release == nil {
			t.Fatal("who has given up keeps the place")
		}
		release()

		over, cancelOver := context.WithCancel(t.Context())
		cancelOver()
		for range 200 {
			// Both have come: the place, and the end.
			if release, err := places.Acquire(over, "b"); err == nil {
				release()
			}
		}
		if places.TryAcquire("b") == nil {
			t.Error("the place is lost in the end")
		}
	})
}

// Many tenants whose work hangs leave places to the others.
func TestPlacesOfManyTenantsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := newTestPlaces(32, 8)
		var acquired atomic.Int32
		for tenant := range 100 {
			for range 8 {
				go func() {
					if _, err := places.Acquire(t.Context(), fmt.Sprintf("hanging-%d", tenant)); err == nil {
						acquired.Add(1)
					}
				}()
			}
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		for range 8 {
			if places.TryAcquire("a") == nil {
				t.Fatalf("%d places are taken by those that hang", acquired.Load())
			}
		}
		if acquired.Load() != 24 {
			t.Errorf("%d places are taken by those that hang, want 24", acquired.Load())
		}
	})
}
