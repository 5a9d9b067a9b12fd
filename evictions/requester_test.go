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
	"encoding/json"
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

const asker = "example.com/asker"

func web() *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "web", UID: "uid-of-web"}}
}

// What was said before the last change of the intent is not the answer.
func TestLifecycleStatus(t *testing.T) {
	for name, test := range map[string]struct {
		observed *int64
		want     State
	}{
		"not observed":        {nil, Requested},
		"observed before":     {new(int64(1)), Requested},
		"observed, and ended": {new(int64(2)), Canceled},
	} {
		request := &lifecyclev1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		request.Status.ObservedGeneration = test.observed
		request.Status.Conditions = []metav1.Condition{{Type: string(lifecyclev1alpha1.EvictionConditionFailed), Status: metav1.ConditionTrue}}
		if got := (lifecycleAPI{}).status(request).State; got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// A request that is about to be deleted is made again when it is gone.
func TestRequestWaitsForDeletion(t *testing.T) {
	client, calls := fake.NewClientset(), 0
	client.PrependReactor("patch", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		request := &lifecyclev1alpha1.EvictionRequest{}
		if calls++; calls == 1 {
			request.DeletionTimestamp = new(metav1.Now())
		}
		return true, request, nil
	})
	status, err := LifecycleRequester(client, asker).Request(t.Context(), web())
	if err != nil || status.State != Requested || calls != 2 {
		t.Errorf("%v, %v after %d calls, want 2", status, err, calls)
	}
}

// Who waits hears that the request is deleted.
func TestWaitEndsWithTheRequest(t *testing.T) {
	request := &lifecyclev1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: lifecycleName(web(), asker)}}
	client := fake.NewClientset(request)
	watched := make(chan struct{})
	client.PrependWatchReactor("evictionrequests", func(action clienttesting.Action) (bool, watch.Interface, error) {
		if action.(clienttesting.WatchActionImpl).ListOptions.SendInitialEvents != nil {
			return true, nil, apierrors.NewInvalid(schema.GroupKind{}, request.Name, nil) // The fake one has no such lists.
		}
		close(watched)
		return false, nil, nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go func() {
		<-watched
		time.Sleep(time.Second) // It has seen the request by then.
		if err := client.LifecycleV1alpha1().EvictionRequests("work").Delete(ctx, request.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}()
	if status, err := LifecycleRequester(client, asker).Wait(ctx, web()); !errors.Is(err, ErrRequestGone) {
		t.Errorf("%v, %v, want %v", status, err, ErrRequestGone)
	}
}

// patched returns the UID that a patch has as a precondition.
func patched(t *testing.T, action clienttesting.Action) string {
	t.Helper()
	var patch metav1.PartialObjectMetadata
	if err := json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &patch); err != nil {
		t.Fatal(err)
	}
	return string(patch.UID)
}

// Nothing is written to another object of the same name, nor is one made.
func TestWritesHaveTheUID(t *testing.T) {
	client, reported := fake.NewClientset(), ""
	client.PrependReactor("patch", "evictions", func(action clienttesting.Action) (bool, runtime.Object, error) {
		reported = patched(t, action)
		return true, eviction(lifecyclev1alpha1.ResponderStateActive), nil
	})
	request := Lifecycle(client).Read(eviction(lifecyclev1alpha1.ResponderStateActive), own)
	if _, err := Lifecycle(client).Write(t.Context(), request, own, Report{}, false); err != nil || reported != "uid-of-eviction" {
		t.Errorf("reported to %q, %v", reported, err)
	}

	shared := func(requesters ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "coordination.k8s.io/v1alpha1", "kind": "EvictionRequest",
			"metadata": map[string]any{"namespace": "work", "name": "uid-of-web", "uid": "uid-of-request"},
			"spec":     map[string]any{"requesters": requesters},
		}}
	}
	dynamic, withdrawn := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), shared(map[string]any{"name": asker})), ""
	dynamic.PrependReactor("patch", "evictionrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		withdrawn = patched(t, action)
		return true, shared(), nil
	})
	if err := CoordinationRequester(dynamic, asker).Withdraw(t.Context(), web()); err != nil || withdrawn != "uid-of-request" {
		t.Errorf("withdrawn from %q, %v", withdrawn, err)
	}
}

// A turn without any accepted report may be started again: nobody knows whether the responder is still active.
func TestGaveUp(t *testing.T) {
	for name, test := range map[string]struct {
		revision int
		working  bool
		cause    error
		want     bool
	}{
		"nothing was accepted": {0, false, ErrTurnLost, false},
		"did not work":         {1, false, ErrTurnLost, true},
		"works":                {1, true, ErrTurnLost, false},
		"canceled":             {1, false, ErrCanceled, false},
	} {
		turn := newTestTurn(t, t.Context(), ResponderConfig{API: &fakeAPI{}})
		turn.accepted.revision, turn.desired.working = test.revision, test.working
		turn.cancel(test.cause)
		if got := turn.gaveUp(); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// Both clocks may differ, so a silent turn ends before the next responder may act.
func TestExpiresAt(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	p := pace{deadline: 20 * time.Minute, skew: 10 * time.Second, activation: start}
	if got, want := p.expiresAt().Sub(start), 20*time.Minute-20*time.Second; got != want {
		t.Errorf("after %s, want %s", got, want)
	}
	p.persistent = true
	if got := p.expiresAt(); got != never {
		t.Errorf("a persistent one ends at %s", got)
	}
}
