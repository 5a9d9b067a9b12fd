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
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/metrics"
	"k8s.io/kubernetes/pkg/controller/util/serverclock"
)

func version(version string) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) { request.ResourceVersion = version }
}

// Each kind of write is tested with each kind of response.
func TestWriterResponses(t *testing.T) {
	resource, name := evictionRequestResource, string(podUID)
	seen := newStatus(targets(first), active(first, 0))
	writes := map[string]struct {
		verb      string
		write     func(t *testing.T, w *requestWriter, request *coordinationv1alpha1.EvictionRequest) error
		operation string
	}{
		"status": {verb: "update", operation: "writing the status", write: func(t *testing.T, w *requestWriter, request *coordinationv1alpha1.EvictionRequest) error {
			_, ctx := ktesting.NewTestContext(t)
			return w.setStatus(ctx, request, seen)
		}},
		"labels": {verb: "patch", operation: "copying the labels of the pod", write: func(t *testing.T, w *requestWriter, request *coordinationv1alpha1.EvictionRequest) error {
			_, ctx := ktesting.NewTestContext(t)
			written, err := w.setLabels(ctx, request, map[string]string{"tier": "x"})
			if written != nil {
				t.Errorf("returned a request that was not written")
			}
			return err
		}},
		"callers": {verb: "patch", operation: "withdrawing eviction.k8s.io", write: func(t *testing.T, w *requestWriter, request *coordinationv1alpha1.EvictionRequest) error {
			_, ctx := ktesting.NewTestContext(t)
			written, err := w.withdrawCalls(ctx, request, change{kind: changeCallsExpired})
			if written != nil {
				t.Errorf("returned a request that was not written")
			}
			return err
		}},
		"deletion": {verb: "delete", operation: "deleting the request", write: func(t *testing.T, w *requestWriter, request *coordinationv1alpha1.EvictionRequest) error {
			_, ctx := ktesting.NewTestContext(t)
			return w.remove(ctx, request)
		}},
	}
	answers := map[string]struct {
		answer  error
		ignored bool
	}{
		"the request was deleted": {answer: apierrors.NewNotFound(resource, name), ignored: true},
		"the request changed":     {answer: apierrors.NewConflict(resource, name, errUnreachable), ignored: true},
		"the API server fails":    {answer: apierrors.NewInternalError(errUnreachable)},
		"the write is refused":    {answer: apierrors.NewForbidden(resource, name, errUnreachable)},
		"no response":             {answer: errUnreachable},
	}
	for kind, write := range writes {
		for testName, test := range answers {
			t.Run(kind+"/"+testName, func(t *testing.T) {
				request := newRequest(version("17"))
				f := newFixture(t, request)
				f.client.PrependReactor(write.verb, "evictionrequests", answering(test.answer))
				err := write.write(t, f.writer, request)
				if test.ignored && err != nil {
					t.Errorf("got error %v, want none: an event triggers the next sync", err)
				}
				if !test.ignored && (!errors.Is(err, test.answer) || err.Error() != write.operation+": "+test.answer.Error()) {
					t.Errorf("got error %v, want %q that wraps its cause", err, write.operation)
				}
				if len(f.events) > 0 {
					t.Errorf("events for a write that failed: %v", f.events)
				}
				f.expectCacheUntouched(t, newRequest(version("17")))
			})
		}
	}
}

// The status of a request whose namespace is gone cannot be written: the request is deleted, with
// the usual preconditions.
func TestSetStatusWithoutNamespace(t *testing.T) {
	f := newFixture(t, newRequest(version("17")))
	f.client.PrependReactor("update", "evictionrequests",
		answering(apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace)))
	_, ctx := ktesting.NewTestContext(t)
	if err := f.writer.setStatus(ctx, newRequest(version("17")), newStatus(targets(), active(builtIn, 0))); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	actions := f.client.Actions()
	if len(actions) != 2 || !actions[1].Matches("delete", "evictionrequests") {
		t.Fatalf("got %v, want a deletion after the update", actions)
	}
	if got := actions[1].(clienttesting.DeleteAction).GetDeleteOptions().Preconditions; got == nil || *got.UID != requestUID || *got.ResourceVersion != "17" {
		t.Errorf("deleted with preconditions %v", got)
	}
}

func TestSetStatus(t *testing.T) {
	f := newFixture(t, newRequest(version("17")))
	_, ctx := ktesting.NewTestContext(t)
	unseen := newRequest().Status
	if err := f.writer.setStatus(ctx, newRequest(version("17")), &unseen); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	f.expectWrites(t)

	seen := newStatus(targets(first), active(first, 0))
	if err := f.writer.setStatus(ctx, newRequest(version("17")), seen); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	f.expectWrites(t, seen)
	// The resourceVersion that was read makes the write fail if it is outdated.
	update := f.client.Actions()[0].(clienttesting.UpdateAction).GetObject().(*coordinationv1alpha1.EvictionRequest)
	if update.ResourceVersion != "17" {
		t.Errorf("wrote over version %q, want 17", update.ResourceVersion)
	}
	const turn = "Activated interceptor first.example.com."
	turnOf, pod := "EvictionRequest "+string(podUID)+" status.interceptors{first.example.com}", "Pod web-0"
	want := []recordedEvent{
		{turnOf, pod, "Normal", "InterceptorActivated", turn},
	}
	if diff := cmp.Diff(want, f.events); diff != "" {
		t.Errorf("unexpected events (-want, +got):\n%s", diff)
	}
}

func TestSetLabels(t *testing.T) {
	f := newFixture(t, newRequest())
	_, ctx := ktesting.NewTestContext(t)
	request := newRequest()
	if same, err := f.writer.setLabels(ctx, request, nil); same != request || err != nil || len(f.client.Actions()) > 0 {
		t.Errorf("got %v and %v after %v, want the request and no write", same, err, f.client.Actions())
	}
	written, err := f.writer.setLabels(ctx, request, map[string]string{"tier": "x"})
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"app": "web", "tier": "x"}, written.Labels); diff != "" {
		t.Errorf("unexpected labels (-want, +got):\n%s", diff)
	}
	patch := f.client.Actions()[0].(clienttesting.PatchAction)
	const want = `{"metadata":{"labels":{"tier":"x"},"uid":"` + string(requestUID) + `"}}`
	if got := string(patch.GetPatch()); got != want || patch.GetPatchType() != types.MergePatchType {
		t.Errorf("sent %s %s, want %s", patch.GetPatchType(), got, want)
	}
}

func TestRemove(t *testing.T) {
	f := newFixture(t, newRequest())
	_, ctx := ktesting.NewTestContext(t)
	if err := f.writer.remove(ctx, newRequest(version("17"))); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	uid, resourceVersion := requestUID, "17"
	want := &metav1.Preconditions{UID: &uid, ResourceVersion: &resourceVersion}
	got := f.client.Actions()[0].(clienttesting.DeleteAction).GetDeleteOptions().Preconditions
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected preconditions (-want, +got):\n%s", diff)
	}
}

// versionedStore is a cache with a given resource version.
type versionedStore struct {
	cache.Store
	version string
}

func (s *versionedStore) LastStoreSyncResourceVersion() string { return s.version }

// After a write, no decision is made until the cache has it.
func TestWriterWaitsForItsCache(t *testing.T) {
	f := newFixture(t, newRequest())
	store := &versionedStore{Store: f.requests.GetStore(), version: "17"}
	w := newRequestWriter(f.client, f, store, serverclock.New(f.clock))
	f.addToCache(t, newRequest(imperativeActive()))
	f.client.PrependReactor("update", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, newRequest(version("18")), nil
	})
	_, ctx := ktesting.NewTestContext(t)
	if err := w.setStatus(ctx, newRequest(version("17")), newStatus(targets(), active(builtIn, 0))); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	if w.isCurrent(requestKeyOfPod) {
		t.Error("a cache older than the last write is current")
	}
	f.writer, f.imperative.writer = w, w
	if err := errors.Join(f.syncRequest(ctx, requestKeyOfPod), f.imperative.syncRequest(ctx, requestKeyOfPod)); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	if f.decisions.waits(requestKeyOfPod) != safetyInterval || f.evictions.waits(itemOf(requestKeyOfPod)) != safetyInterval {
		t.Error("no safety sync is scheduled")
	}
	if got := countActions(f.client.Actions(), "update", "evictionrequests"); got != 1 {
		t.Errorf("wrote %d times, want once", got)
	}
	store.version = "18"
	if !w.isCurrent(requestKeyOfPod) {
		t.Error("a cache with the last write is not current")
	}
	if err := w.setStatus(ctx, newRequest(version("17")), newStatus(targets(), active(builtIn, 0))); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	store.version = "17"
	f.writer.forget(requestKeyOfPod)
	if !w.isCurrent(requestKeyOfPod) {
		t.Error("the write of a deleted request is still stored")
	}
}

// The other writes of requests count like those of the status: no decision uses an older version.
func TestWriterRemembersPatches(t *testing.T) {
	for name, write := range map[string]func(context.Context, *requestWriter) error{
		"of labels": func(ctx context.Context, w *requestWriter) error {
			_, err := w.setLabels(ctx, newRequest(version("17")), map[string]string{"tier": "x"})
			return err
		},
		"that withdraw calls": func(ctx context.Context, w *requestWriter) error {
			_, err := w.withdrawCalls(ctx, newRequest(version("17"), calledAt(0)), change{kind: changeCallsExpired})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newRequest())
			w := newRequestWriter(f.client, f, &versionedStore{Store: f.requests.GetStore(), version: "17"}, serverclock.New(f.clock))
			f.client.PrependReactor("patch", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, newRequest(version("18")), nil
			})
			_, ctx := ktesting.NewTestContext(t)
			if err := write(ctx, w); err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if w.isCurrent(requestKeyOfPod) {
				t.Error("a cache older than the last write is current")
			}
		})
	}
}

// For a slow call, the server's time is compared with the start and the end of the call.
func TestWriterLearnsTheTimeFromSlowCalls(t *testing.T) {
	for name, test := range map[string]struct{ stamp, ahead time.Duration }{
		"stamped during the call":   {stamp: 15 * time.Second},
		"stamped at its end":        {stamp: 30 * time.Second},
		"stamped by a clock behind": {stamp: -time.Minute, ahead: -time.Minute},
		"stamped by a clock ahead":  {stamp: 90 * time.Second, ahead: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newRequest())
			f.client.PrependReactor("update", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
				f.clock.Step(30 * time.Second)
				return true, newRequest(having(targets(first), active(first, test.stamp))), nil
			})
			_, ctx := ktesting.NewTestContext(t)
			if err := f.writer.setStatus(ctx, newRequest(), newStatus(targets(first), active(first, 0))); err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if got := f.writer.clock.Now().Sub(f.clock.Now()); got != test.ahead {
				t.Errorf("offset of the server clock %s, want %s", got, test.ahead)
			}
		})
	}
}

// A turn lasts until the interceptor completes, or until it is ended.
func TestTurnDuration(t *testing.T) {
	now := start.Add(time.Hour)
	for name, test := range map[string]struct {
		request     *coordinationv1alpha1.EvictionRequest
		interceptor string
		want        time.Duration
	}{
		"completed":    {newRequest(having(targets(first), active(first, 0), reporting(done(first, 20*time.Minute)))), first, 20 * time.Minute},
		"ended":        {newRequest(having(targets(first), active(first, 0))), first, time.Hour},
		"never active": {newRequest(having(targets(first, second), active(first, 0))), second, 0},
		"no turn":      {newRequest(having(targets(first))), first, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := turnDuration(test.request, test.interceptor, now); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// The duration metric has the outcome of the request as a label.
func TestDurationsByOutcome(t *testing.T) {
	metrics.Register()
	observed := func() map[string]uint64 {
		families, err := legacyregistry.DefaultGatherer.Gather()
		if err != nil {
			t.Fatalf("gathering metrics: %v", err)
		}
		counts := map[string]uint64{}
		for _, family := range families {
			if family.GetName() != "evictionrequest_controller_request_duration_seconds" {
				continue
			}
			for _, metric := range family.GetMetric() {
				counts[metric.GetLabel()[0].GetValue()] += metric.GetHistogram().GetSampleCount()
			}
		}
		return counts
	}
	for _, test := range []struct {
		outcome string
		pod     []runtime.Object
		change  func(*coordinationv1alpha1.EvictionRequest)
	}{
		{outcomePodGone, []runtime.Object{newPod(inPhase(v1.PodSucceeded))}, func(*coordinationv1alpha1.EvictionRequest) {}},
		{outcomeCanceled, []runtime.Object{newPod()}, withoutRequesters},
	} {
		f := newFixture(t, append(test.pod, newRequest(having(targets(first), active(first, 0)), test.change))...)
		before := observed()
		_, ctx := ktesting.NewTestContext(t)
		if err := f.syncRequest(ctx, requestKeyOfPod); err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		before[test.outcome]++
		if diff := cmp.Diff(before, observed()); diff != "" {
			t.Errorf("unexpected durations after %s (-want, +got):\n%s", test.outcome, diff)
		}
	}
}

// Two queues process one request at the same time: a write of one must not be lost while the other
// checks whether the cache has the previous write.
func TestWriterRemembersWritesOfTwoQueues(t *testing.T) {
	const rounds = 50000
	store := &versionedStore{}
	w := newRequestWriter(nil, nil, store, nil)
	start, ended := make(chan string), make(chan struct{})
	go func() {
		for newer := range start {
			w.wrote(newRequest(version(newer)))
			ended <- struct{}{}
		}
	}()
	defer close(start)
	lost := 0
	for round := range rounds {
		store.version = strconv.Itoa(2*round + 2)
		w.wrote(newRequest(version(store.version)))
		start <- strconv.Itoa(2*round + 3)
		w.isCurrent(requestKeyOfPod)
		<-ended
		if w.isCurrent(requestKeyOfPod) {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("lost %d of %d writes", lost, rounds)
	}
}

// The controller derives the server's time from the times that the server sets in its writes, and
// from nothing else.
func TestWriterLearnsTheTimeOfTheServer(t *testing.T) {
	const skew = 3 * time.Minute
	for name, test := range map[string]struct {
		err  error
		want time.Duration
	}{
		"a write that is stamped": {want: skew},
		"a write that fails":      {err: errors.New("refused")},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newRequest())
			f.client.PrependReactor("update", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
				answer := newRequest(version("18"))
				answer.Status.ActivationTime = &metav1.Time{Time: f.clock.Now().Add(skew)}
				return true, answer, test.err
			})
			_, ctx := ktesting.NewTestContext(t)
			_ = f.Controller.writer.setStatus(ctx, newRequest(version("17")), newStatus(targets(), active(builtIn, 0)))
			if got := f.Controller.clock.Now().Sub(f.clock.Now()); got != test.want {
				t.Errorf("offset of the server clock %s, want %s", got, test.want)
			}
		})
	}
}

// TestContestedStatus: labels and annotations that others write all the time do not keep the controller from writing the
// status, but a change of what it has decided on does.
func TestContestedStatus(t *testing.T) {
	// The answer to a patch of which a test has failed is the same as that to an invalid status.
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "EvictionRequest"}, string(podUID), nil)
	for name, test := range map[string]struct {
		answer error
		// stored is what the API server has, if it answers that something is invalid.
		stored *coordinationv1alpha1.EvictionRequest
		want   []string
		err    bool
	}{
		"it is written":           {want: []string{"update", "update", "update", "patch"}},
		"its status has changed":  {answer: invalid, stored: newRequest(having(targets(first))), want: []string{"update", "update", "update", "patch", "get"}},
		"its spec has changed":    {answer: invalid, stored: newRequest(generation(2)), want: []string{"update", "update", "update", "patch", "get"}},
		"it is another one":       {answer: invalid, stored: newRequest(func(request *coordinationv1alpha1.EvictionRequest) { request.UID = otherUID }), want: []string{"update", "update", "update", "patch", "get"}},
		"only its labels changed": {answer: invalid, stored: newRequest(version("99"), requestLabels(map[string]string{"a": "b"})), want: []string{"update", "update", "update", "patch", "get"}, err: true},
		"the status is invalid":   {answer: invalid, stored: newRequest(), want: []string{"update", "update", "update", "patch", "get"}, err: true},
		"the patch fails":         {answer: errUnreachable, want: []string{"update", "update", "update", "patch"}, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newRequest(), newPod(interceptedBy(first)))
			conflicts := 0
			f.client.PrependReactor("update", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
				conflicts++
				return true, nil, apierrors.NewConflict(evictionRequestResource, string(podUID), errors.New("others write"))
			})
			var sent []byte
			f.client.PrependReactor("patch", "evictionrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
				sent = action.(clienttesting.PatchAction).GetPatch()
				if test.answer != nil || action.GetSubresource() != "status" {
					return true, nil, test.answer
				}
				return true, newRequest(having(targets(first), active(first, 0))), nil
			})
			f.client.PrependReactor("get", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, test.stored, nil
			})
			_, ctx := ktesting.NewTestContext(t)
			var err error
			for range 3 {
				err = errors.Join(err, f.syncRequest(ctx, requestKeyOfPod))
			}
			if (err != nil) != test.err {
				t.Errorf("got error %v", err)
			}
			var verbs []string
			for _, action := range f.client.Actions() {
				verbs = append(verbs, action.GetVerb())
			}
			if diff := cmp.Diff(test.want, verbs); diff != "" {
				t.Errorf("unexpected calls (-want, +got):\n%s", diff)
			}
			for _, want := range []string{`{"op":"test","path":"/metadata/generation","value":1}`, `{"op":"test","path":"/status","value":{}}`, `{"op":"replace","path":"/status","value":{`} {
				if !strings.Contains(string(sent), want) {
					t.Errorf("the patch is %s, want %s in it", sent, want)
				}
			}
		})
	}
}

// A success in between begins anew.
func TestConflictsInSuccession(t *testing.T) {
	f := newFixture(t, newRequest())
	request := newRequest()
	conflict := apierrors.NewConflict(evictionRequestResource, string(podUID), errors.New("others write"))
	for i, step := range []struct {
		err  error
		want bool
	}{{conflict, false}, {conflict, false}, {conflict, true}, {conflict, true}, {nil, false}, {conflict, false}, {conflict, false}, {errUnreachable, false}, {conflict, false}} {
		if got := f.writer.isContested(request, step.err); got != step.want {
			t.Errorf("step %d: got %t", i, got)
		}
	}
	f.writer.forget(requestKeyOfPod)
	if len(f.writer.contested) > 0 {
		t.Error("they are not forgotten")
	}
}
