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
	testingclock "k8s.io/utils/clock/testing"
)

var errDone = errors.New("done")

// newTestPlaces returns places for which the tenants a to d are quick.
func newTestPlaces(total, perTenant int) *Places {
	places := NewPlaces(total, perTenant, clock.RealClock{})
	for _, tenant := range []string{"a", "b", "c", "d"} {
		place := places.TryAcquire(tenant)
		place.Begin()
		place.Release()
	}
	return places
}

func TestTryAcquire(t *testing.T) {
	places := newTestPlaces(3, 2)
	var a, b, other *Place
	for i, step := range []struct {
		tenant string
		place  **Place
		want   bool
	}{{"a", &a, true}, {"a", &other, true}, {"a", &other, false}, {"b", &b, true}, {"b", &other, false}, {"c", &other, false}} {
		if *step.place = places.TryAcquire(step.tenant); (*step.place != nil) != step.want {
			t.Errorf("step %d: tenant %s got a place: %t, want %t", i, step.tenant, !step.want, step.want)
		}
	}
	b.Release()
	if places.TryAcquire("a") != nil || places.TryAcquire("c") == nil {
		t.Error("a released place is not for all tenants below their limit")
	}
	a.Release()
	a.Release() // No effect.
	if places.TryAcquire("a") != nil || places.TryAcquire("b") == nil || places.TryAcquire("d") != nil {
		t.Error("the last place is not only for a tenant without one")
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
		holders := map[string]*Place{}
		acquire := func(tenant, name string) {
			go func() {
				place, err := places.Acquire(t.Context(), tenant)
				if err != nil {
					t.Errorf("unexpected error: %v", err)
				}
				lock.Lock()
				defer lock.Unlock()
				got = append(got, name)
				holders[name] = place
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
			t.Error("got a place although none is free")
		}
		holders["a1"].Release() // a2 has waited for longer than c1.
		expect("a1", "b1", "a2")
		holders["a2"].Release()
		expect("a1", "b1", "a2", "c1")
		holders["b1"].Release()
		expect("a1", "b1", "a2", "c1", "b2")
		holders["c1"].Release()
		expect("a1", "b1", "a2", "c1", "b2", "a3")
	})
}

// A canceled Acquire takes no place, even if a place is assigned at the same time.
func TestAcquireCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := newTestPlaces(1, 1)
		place := places.TryAcquire("a")
		if place == nil {
			t.Fatal("no place is free")
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		results := make(chan error, 1)
		go func() {
			_, err := places.Acquire(ctx, "a")
			results <- err
		}()
		synctest.Wait()
		cancel(errDone)
		if err := <-results; !errors.Is(err, errDone) {
			t.Errorf("got error %v, want the cause of the context", err)
		}
		place.Release()
		if place = places.TryAcquire("a"); place == nil {
			t.Fatal("the canceled Acquire holds the place")
		}
		place.Release()

		over, cancelOver := context.WithCancel(t.Context())
		cancelOver()
		for range 200 {
			// Both have happened: a place is free, and the context is canceled.
			if place, err := places.Acquire(over, "b"); err == nil {
				place.Release()
			}
		}
		if places.TryAcquire("b") == nil {
			t.Error("the place was lost")
		}
	})
}

// Many tenants with work that hangs leave places to others.
func TestManyHangingTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := newTestPlaces(32, 8)
		var acquired atomic.Int32
		for tenant := range 100 {
			for range 8 {
				go func() {
					if place, err := places.Acquire(t.Context(), fmt.Sprintf("hanging-%d", tenant)); err == nil {
						place.Begin()
						acquired.Add(1)
					}
				}()
			}
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		for i, tenant := range []string{"a", "a", "a", "a", "b", "b", "c", "d"} {
			if places.TryAcquire(tenant) == nil {
				t.Fatalf("%d places are held by hanging tenants, %d by others", acquired.Load(), i)
			}
		}
		if acquired.Load() != 24 {
			t.Errorf("%d places are held by hanging tenants, want 24", acquired.Load())
		}
	})
}

// A limit that grows lets those who wait have a place, and one that shrinks takes none away.
func TestLimit(t *testing.T) {
	places := newTestPlaces(1, 1)
	a := places.TryAcquire("a")
	waiting := make(chan *Place)
	go func() {
		place, _ := places.Acquire(t.Context(), "b")
		waiting <- place
	}()
	places.Limit(2, 1)
	b := <-waiting
	places.Limit(1, 1)
	a.Release()
	if places.TryAcquire("c") != nil {
		t.Error("more places than the limit")
	}
	b.Release()
	if places.TryAcquire("c") == nil {
		t.Error("no place is free")
	}
}

func TestSlowAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := NewPlaces(8, 2, clock.RealClock{}).SlowAfter(time.Second)
		for range 2 {
			place := places.TryAcquire("a")
			place.Begin()
			time.Sleep(time.Second)
			place.Release()
			time.Sleep(time.Minute)
		}
		if got := places.line.tenants["a"].class; got != slow {
			t.Errorf("class %d, want slow", got)
		}
	})
}

// Work that goes on without its place holds none, and its tenant is slow and comes after others until it
// ends.
func TestLeave(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	places := NewPlaces(3, 2, clock)
	acquire := func(tenant string) *Place {
		t.Helper()
		place := places.TryAcquire(tenant)
		if place == nil {
			t.Fatalf("there is no place for %s", tenant)
		}
		place.Begin()
		return place
	}
	var left []*Place
	for range 10 { // More than there are places.
		place := acquire("hanging")
		place.Leave()
		place.Leave()
		left = append(left, place)
	}
	line := places.line
	if tenant := line.tenants["hanging"]; tenant.class != slow || tenant.busy() != 10 || len(line.running) != 0 {
		t.Errorf("the tenant is of class %d and has %d in progress, %d of them with a place", tenant.class, tenant.busy(), len(line.running))
	}
	// It waits first, and is served last.
	one, other := acquire("one"), acquire("other")
	if places.TryAcquire("third") != nil {
		t.Error("new tenants have all places")
	}
	waiting := places.enqueue("hanging")
	third := places.enqueue("third")
	one.Release()
	select {
	case <-third.acquired:
	default:
		t.Error("who has work in progress comes before who has none")
	}
	select {
	case <-waiting.acquired:
		t.Error("both have the place")
	default:
	}
	other.Release()
	third.Release()
	waiting.Release()
	for _, place := range left {
		place.Release()
		place.Release()
	}
	clock.Step(time.Hour)
	acquire("last").Release()
	if len(line.left)+len(line.running) > 0 || line.tenants["hanging"] != nil {
		t.Errorf("%d items are kept, and the tenant %v", len(line.left)+len(line.running), line.tenants["hanging"])
	}
}
