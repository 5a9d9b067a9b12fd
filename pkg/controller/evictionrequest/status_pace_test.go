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
	"fmt"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2/ktesting"
)

// refusesStatus has the API server refuse all writes of statuses of requests.
func (f *fixture) refusesStatus(err error) {
	f.client.PrependReactor("update", "evictionrequests", answering(err))
}

// A status that the API server refuses is not written as often as something changes.
func TestRefusedStatusHasAPace(t *testing.T) {
	pod := newPod(interceptedBy(first))
	request := newRequest()
	f := newFixture(t, request, pod)
	f.refusesStatus(errUnreachable)
	_, ctx := ktesting.NewTestContext(t)
	for second := range 300 {
		changed := request.DeepCopy()
		changed.Annotations = map[string]string{"changes": fmt.Sprint(second)}
		f.addToCache(t, changed)
		f.decisions.Add(requestKeyOfPod)
		f.workOnce(ctx)
		f.clock.Step(time.Second)
	}
	// After 1, 3, 7 and 15 seconds, and then every ten.
	if got := countActions(f.client.Actions(), "update", "evictionrequests"); got < 5 || got > 35 {
		t.Errorf("tried to write the status %d times in 5 minutes, want 5 to 35 times", got)
	}
	failed, blocks := f.writer.failures.Get(requestKeyOfPod)
	if !blocks || !failed.Since.Equal(start) {
		t.Errorf("the failure is %+v, %t, want one since %s", failed, blocks, start)
	}
	want := []recordedEvent{
		{"EvictionRequest " + string(podUID), "Pod " + pod.Name, v1.EventTypeWarning, eventRequestWriteFailed, "The status of the request cannot be written: unreachable"},
		{"Pod " + pod.Name, "EvictionRequest " + string(podUID), v1.EventTypeWarning, eventRequestWriteFailed, "The status of the request cannot be written: unreachable"},
	}
	if fmt.Sprint(f.events) != fmt.Sprint(want) {
		t.Errorf("the events are %v, want %v", f.events, want)
	}
}

// It is over when the status can be written.
func TestRefusedStatusEnds(t *testing.T) {
	f := newFixture(t, newRequest(), newPod(interceptedBy(first)))
	for range 3 {
		f.writer.failures.Failed(requestKeyOfPod, "refused", f.clock.Now())
	}
	f.clock.Step(time.Minute)
	_, ctx := ktesting.NewTestContext(t)
	if err := f.syncRequest(ctx, requestKeyOfPod); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	if failed, blocks := f.writer.failures.Get(requestKeyOfPod); blocks {
		t.Errorf("the failure is %+v after the status was written", failed)
	}
}

// A conflict is none: the request has changed, and is synced again.
func TestConflictIsNoRefusedStatus(t *testing.T) {
	f := newFixture(t, newRequest(), newPod(interceptedBy(first)))
	f.refusesStatus(apierrors.NewConflict(evictionRequestResource, string(podUID), errUnreachable))
	_, ctx := ktesting.NewTestContext(t)
	for range 2 {
		if err := f.syncRequest(ctx, requestKeyOfPod); err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
	}
	if wait := f.writer.failures.Wait(requestKeyOfPod, f.clock.Now()); wait != 0 {
		t.Errorf("the next attempt waits for %s after conflicts", wait)
	}
}

// An eviction that is refused is tried ever less often also if its refusals cannot be recorded.
func TestUnrecordedRefusalsHaveAPace(t *testing.T) {
	pod := newPod()
	f := newFixture(t, newRequest(imperativeActive()), pod)
	f.evictErr = apierrors.NewForbidden(podResource, pod.Name, errUnreachable)
	f.refusesStatus(errUnreachable)
	for second := range 600 {
		pod = pod.DeepCopy()
		pod.Annotations = map[string]string{"changes": fmt.Sprint(second)}
		f.sendUpdate(t, pod)
		f.evictions.Add(itemOf(requestKeyOfPod))
		f.runEvictions(t)
		f.clock.Step(time.Second)
	}
	if got := len(f.evicted); got < 5 || got > 12 {
		t.Errorf("tried to evict the pod %d times in 10 minutes, want 5 to 12 times", got)
	}
	stored, err := f.client.CoordinationV1alpha1().EvictionRequests(namespace).Get(context.Background(), string(podUID), metav1.GetOptions{})
	if err != nil || len(stored.Status.Conditions) > 0 {
		t.Errorf("the request has the conditions %v, %v", stored.Status.Conditions, err)
	}
}

// Who comes to write during the pause comes again at its end, without an event, and without a longer back-off.
func TestRefusedStatusIsTriedAfterThePause(t *testing.T) {
	f := newFixture(t, newRequest(), newPod(interceptedBy(first)))
	f.refusesStatus(apierrors.NewForbidden(evictionRequestResource, string(podUID), errUnreachable))
	_, ctx := ktesting.NewTestContext(t)
	for range 2 {
		f.decisions.Add(requestKeyOfPod)
		f.workOnce(ctx)
		f.clock.Step(400 * time.Millisecond)
	}
	if got := f.decisions.waits(requestKeyOfPod); got != 600*time.Millisecond {
		t.Errorf("the request is synced again after %s, want 600ms", got)
	}
	if len(f.decisions.limited) != 1 || len(f.decisions.forgotten) > 0 {
		t.Errorf("in the back-off are %v, and no more %v", f.decisions.limited, f.decisions.forgotten)
	}
	if got := countActions(f.client.Actions(), "update", "evictionrequests"); got != 1 {
		t.Errorf("tried to write %d times, want once", got)
	}
}

// A refusal that cannot be recorded during the pause is looked at again at its end.
func TestUnrecordedRefusalIsTriedAfterThePause(t *testing.T) {
	pod := newPod()
	f := newFixture(t, newRequest(imperativeActive()), pod)
	f.evictErr = apierrors.NewForbidden(podResource, pod.Name, errUnreachable)
	for range 2 {
		f.writer.failures.Failed(requestKeyOfPod, "refused", f.clock.Now())
	}
	f.clock.Step(500 * time.Millisecond)
	f.syncEviction(t, requestKeyOfPod)
	if got := f.evictions.waits(itemOf(requestKeyOfPod)); got != 1500*time.Millisecond {
		t.Errorf("the eviction is tried again after %s, want 1.5s", got)
	}
	if len(f.evicted) != 1 || countActions(f.client.Actions(), "update", "evictionrequests") != 0 {
		t.Errorf("tried to evict %d times, want once, and to write in the pause", len(f.evicted))
	}
}

// What ends a failure, and what does not: the built-in interceptor writes from another queue, which may still fail when
// there is nothing to write in this one.
func TestWhatEndsARefusedStatus(t *testing.T) {
	unchanged := func(ctx context.Context, f *fixture, request *coordinationv1alpha1.EvictionRequest) error {
		return f.writer.setStatus(ctx, request, request.Status.DeepCopy())
	}
	for name, test := range map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		do      func(context.Context, *fixture, *coordinationv1alpha1.EvictionRequest) error
		ends    bool
	}{
		"nothing is to be written":                      {newRequest(), unchanged, true},
		"nothing is to be written in one of two queues": {newRequest(imperativeActive()), unchanged, false},
		"the request is deleted": {newRequest(), func(ctx context.Context, f *fixture, request *coordinationv1alpha1.EvictionRequest) error {
			return f.writer.remove(ctx, request)
		}, true},
		"the request is gone": {newRequest(), func(ctx context.Context, f *fixture, request *coordinationv1alpha1.EvictionRequest) error {
			f.sendDelete(t, request)
			return f.syncRequest(ctx, requestKeyOfPod)
		}, true},
		"another request is gone": {newRequest(), func(ctx context.Context, f *fixture, _ *coordinationv1alpha1.EvictionRequest) error {
			return f.syncRequest(ctx, types.NamespacedName{Namespace: namespace, Name: "another"})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.request)
			for range 3 {
				f.writer.failures.Failed(requestKeyOfPod, "refused", f.clock.Now())
			}
			_, ctx := ktesting.NewTestContext(t)
			if err := test.do(ctx, f, test.request); err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if _, blocks := f.writer.failures.Get(requestKeyOfPod); blocks == test.ends {
				t.Errorf("it is a blocker: %t", blocks)
			}
		})
	}
}

// A controller that stops finds no failure.
func TestStopIsNoRefusedStatus(t *testing.T) {
	f := newFixture(t, newRequest(), newPod(interceptedBy(first)))
	_, ctx := ktesting.NewTestContext(t)
	ctx, stop := context.WithCancel(ctx)
	f.client.PrependReactor("update", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		stop()
		return true, nil, ctx.Err()
	})
	if err := f.syncRequest(ctx, requestKeyOfPod); err == nil {
		t.Fatal("no error")
	}
	if wait := f.writer.failures.Wait(requestKeyOfPod, f.clock.Now()); wait != 0 {
		t.Errorf("the next attempt waits for %s", wait)
	}
}
