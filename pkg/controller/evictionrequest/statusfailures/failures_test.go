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

package statusfailures

import (
	"slices"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

var (
	start        = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	one, another = types.NamespacedName{Namespace: "default", Name: "one"}, types.NamespacedName{Namespace: "default", Name: "another"}
)

// blocked returns Failures of which one has failed so often that it is a blocker, the first time at start.
func blocked() *Failures {
	f := New()
	for range limit {
		f.Failed(one, "refused", start)
	}
	return f
}

// The pause after a failure doubles up to ten seconds, and begins again after a success. Other requests have none.
func TestPauses(t *testing.T) {
	f, now := New(), start
	for round := range 2 {
		for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second} {
			f.Failed(one, "refused", now)
			if got := f.Wait(one, now); got != want {
				t.Errorf("round %d: after %d failures, the next attempt waits for %s, want %s", round, i+1, got, want)
			}
			if got := f.Wait(one, now.Add(want-time.Millisecond)); got != time.Millisecond {
				t.Errorf("round %d: shortly before the end of the pause, it waits for %s", round, got)
			}
			if got := f.Wait(another, now); got != 0 {
				t.Errorf("round %d: another request waits for %s", round, got)
			}
			now = now.Add(want)
			if got := f.Wait(one, now); got != 0 {
				t.Errorf("round %d: after the pause, it waits for %s", round, got)
			}
		}
		f.Ended(one)
		if got := f.Wait(one, now.Add(-time.Second)); got != 0 || len(f.requests) > 0 {
			t.Errorf("round %d: after a success, it waits for %s, and %v are kept", round, got, f.requests)
		}
	}
}

// A clock that is set back does not stop the attempts for as long.
func TestClockThatIsSetBack(t *testing.T) {
	f := blocked()
	if got := f.Wait(one, start.Add(-time.Hour)); got != 0 {
		t.Errorf("the next attempt waits for %s", got)
	}
}

// Three failures in succession are a blocker, which has the last answer, and the time of the first one in seconds. Who
// waits for the eviction is told once when it begins, and once when it ends.
func TestBlocker(t *testing.T) {
	f := New()
	var told []types.NamespacedName
	f.OnChange(func(request types.NamespacedName) {
		told = append(told, request)
		f.Get(request) // It may ask.
	})
	for i, message := range []string{"first", "second", "third", "fourth"} {
		if got, want := f.Failed(one, message, start.Add(time.Duration(i)*time.Minute+400*time.Millisecond)), i == 2; got != want {
			t.Errorf("the %s failure begins a blocker: %t", message, got)
		}
		failure, blocks := f.Get(one)
		if want := i >= 2; blocks != want || len(told) > 0 != want {
			t.Errorf("after the %s failure: a blocker %t, told %v", message, blocks, told)
		}
		if failure.Message != message || !failure.Since.Equal(start) {
			t.Errorf("after the %s failure: %+v, want one since %s", message, failure, start)
		}
	}
	if _, blocks := f.Get(another); blocks {
		t.Errorf("another request is blocked")
	}
	f.Ended(one)
	f.Ended(one)
	if failure, blocks := f.Get(one); blocks || failure != (Failure{}) {
		t.Errorf("after a success: %+v", failure)
	}
	if want := []types.NamespacedName{one, one}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

// An incident is nobody's business.
func TestIncident(t *testing.T) {
	f := New()
	f.OnChange(func(request types.NamespacedName) { t.Errorf("told of %s", request) })
	for range limit - 1 {
		f.Failed(one, "unreachable", start)
	}
	f.Ended(one)
	f.Failed(one, "unreachable", start)
}

// What a process before has found earlier is since when it fails; what it has found later is not. Requests that do not
// fail have no memory of it.
func TestResume(t *testing.T) {
	f := blocked()
	wait := f.Wait(one, start)
	for _, test := range []struct{ earlier, want time.Time }{
		{start.Add(time.Minute), start},
		{start.Add(-time.Minute), start.Add(-time.Minute)},
		{start.Add(-time.Second), start.Add(-time.Minute)},
	} {
		f.Resume(one, test.earlier)
		if got, blocks := f.Get(one); !blocks || !got.Since.Equal(test.want) || got.Message != "refused" {
			t.Errorf("found at %s: %+v, want one since %s", test.earlier, got, test.want)
		}
	}
	if got := f.Wait(one, start); got != wait {
		t.Errorf("the next attempt waits for %s, want %s", got, wait)
	}
	f.Failed(one, "refused again", start.Add(time.Minute))
	if got, _ := f.Get(one); !got.Since.Equal(start.Add(-time.Minute)) {
		t.Errorf("after the next failure: %+v", got)
	}
	f.Resume(another, start.Add(-time.Hour))
	f.Ended(one)
	f.Resume(one, start.Add(-time.Hour))
	if len(f.requests) > 0 {
		t.Errorf("kept are %v", f.requests)
	}
}

// All who read from a cache share its Failures. The cache goes on as before.
func TestFailuresAreOfACache(t *testing.T) {
	newCache := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	of := func(requests cache.Indexer) *Failures {
		t.Helper()
		f, err := Of(requests)
		if err != nil || f == nil {
			t.Fatalf("got %v, %v", f, err)
		}
		return f
	}
	requests := newCache()
	request := &coordinationv1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: one.Namespace, Name: one.Name}}
	if err := requests.Add(request); err != nil {
		t.Fatal(err)
	}
	first := of(requests)
	if second := of(requests); second != first {
		t.Error("they are not shared")
	}
	if third := of(newCache()); third == first {
		t.Error("two caches share them")
	}
	first.Failed(one, "refused", start)
	if of(requests).Wait(one, start) == 0 {
		t.Error("a failure is not shared")
	}
	if found, err := requests.ByIndex(cache.NamespaceIndex, one.Namespace); err != nil || len(found) != 1 {
		t.Errorf("the cache has %v, %v", found, err)
	}
	if err := requests.Update(request.DeepCopy()); err != nil {
		t.Error(err)
	}
}
