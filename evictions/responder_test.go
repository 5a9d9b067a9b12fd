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
	"errors"
	"testing"
	"testing/synctest"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

func eviction(state lifecyclev1alpha1.ResponderStateType, conditions ...metav1.Condition) *lifecyclev1alpha1.Eviction {
	message, start := "Saving.", metav1.Unix(1_700_000_000, 0)
	return &lifecyclev1alpha1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "pod-1-web", UID: "uid-of-eviction"},
		Spec:       lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: "web", UID: "uid-of-web"}}},
		Status: lifecyclev1alpha1.EvictionStatus{
			Conditions:       conditions,
			TargetResponders: []lifecyclev1alpha1.TargetResponder{{Name: "example.com/other", State: "Active"}, {Name: own, State: state}},
			Responders:       []lifecyclev1alpha1.ResponderStatus{{Name: "example.com/other"}, {Name: own, StartTime: &start, HeartbeatTime: &start, Message: &message}},
		},
	}
}

// TestEnds: why a responder is not active, in either group.
func TestEnds(t *testing.T) {
	is := func(conditionType, reason string) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason}
	}
	request := func(status map[string]any) any {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "status": status}}
	}
	condition := func(conditionType string) map[string]any {
		return map[string]any{"activeInterceptors": []any{own}, "conditions": []any{map[string]any{"type": conditionType, "status": "True"}}}
	}
	lifecycle, coordination := Lifecycle(nil), Coordination(nil)
	for name, tc := range map[string]struct {
		api  API
		obj  any
		want error
	}{
		"Active":            {lifecycle, eviction("Active"), nil},
		"Inactive":          {lifecycle, eviction("Inactive"), ErrTurnLost},
		"Interrupted":       {lifecycle, eviction("Interrupted"), ErrTurnLost},
		"Canceled":          {lifecycle, eviction("Canceled"), ErrCanceled},
		"Completed":         {lifecycle, eviction("Completed"), ErrTurnLost},
		"evicted":           {lifecycle, eviction("Completed", is("TargetEvicted", "PodDeleted")), ErrEvicted},
		"no requesters":     {lifecycle, eviction("Active", is("Failed", "CanceledDueToNoRequesters")), ErrCanceled},
		"no such responder": {lifecycle, &lifecyclev1alpha1.Eviction{}, ErrTurnLost},

		"active":           {coordination, request(map[string]any{"activeInterceptors": []any{own}}), nil},
		"not active":       {coordination, request(map[string]any{"activeInterceptors": []any{"example.com/other"}}), ErrTurnLost},
		"Evicted":          {coordination, request(condition("Evicted")), ErrEvicted},
		"request canceled": {coordination, request(condition("Canceled")), ErrCanceled},
		"unreadable":       {coordination, request(map[string]any{"activeInterceptors": own}), ErrTurnLost},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.api.Read(tc.obj, own).Ended; !errors.Is(got, tc.want) {
				t.Errorf("ended by %v, want %v", got, tc.want)
			}
		})
	}
}

func TestRead(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	got := Lifecycle(nil).Read(eviction("Active"), own)
	if got.Pod != (Pod{Name: "web", UID: "uid-of-web"}) || got.UID != "uid-of-eviction" || got.HeartbeatDeadline != 20*time.Minute || !got.ActiveSince.Equal(start) ||
		!got.Report.Start.Equal(start) || !got.Report.Heartbeat.Equal(start) || got.Report.Message != "Saving." || !got.Report.Completion.IsZero() {
		t.Errorf("lifecycle.k8s.io: %+v", got)
	}
	object := map[string]any{
		"metadata": map[string]any{"namespace": "work", "name": "uid-of-web", "uid": "uid-of-request"},
		"spec":     map[string]any{"target": map[string]any{"pod": map[string]any{"name": "web", "uid": "uid-of-web"}}, "heartbeatDeadlineSeconds": int64(120)},
		"status": map[string]any{
			"activeInterceptors": []any{own}, "activationTime": start.UTC().Format(time.RFC3339), "unknown": "field",
			"interceptors": []any{map[string]any{"name": own, "startTime": start.UTC().Format(time.RFC3339), "message": "Saving."}},
		},
	}
	got = Coordination(nil).Read(&unstructured.Unstructured{Object: object}, own)
	if got.Pod != (Pod{Name: "web", UID: "uid-of-web"}) || got.UID != "uid-of-request" || got.HeartbeatDeadline != 2*time.Minute || !got.ActiveSince.Equal(start) ||
		!got.Report.Start.Equal(start) || got.Report.Message != "Saving." || !got.Unwanted || got.CancellationForbidden {
		t.Errorf("coordination.k8s.io: %+v", got)
	}
	object["status"].(map[string]any)["evictionRequestCancellationPolicy"] = "Forbid"
	if got = Coordination(nil).Read(&unstructured.Unstructured{Object: object}, own); got.Unwanted || !got.CancellationForbidden {
		t.Errorf("once the cancellation is forbidden: %+v", got)
	}
}

// TestInterrupted: the context of Handle is canceled when the responder is Interrupted, and it is not called again.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, causes := &fakeAPI{live: active(), write: func(context.Context, Report) error { return nil }}, make(chan error, 2)
		responder, err := NewResponder(ResponderConfig{API: api, Name: own, Handle: func(ctx context.Context, turn *Turn) error {
			if err := turn.ForbidCancellation(ctx); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer responder.queue.ShutDown()
		responder.sync(t.Context(), "work/a", active())
		synctest.Wait()
		responder.sync(t.Context(), "work/a", Lifecycle(nil).Read(eviction("Interrupted"), own))
		responder.working.Wait()
		if cause := <-causes; !errors.Is(cause, ErrRequestGone) {
			t.Errorf("another Eviction of that name: %v", cause)
		}
		responder.sync(t.Context(), "work/a", active())
		synctest.Wait()
		interrupted := active()
		interrupted.Ended = Lifecycle(nil).Read(eviction("Interrupted"), own).Ended
		responder.sync(t.Context(), "work/a", interrupted)
		responder.working.Wait()
		if cause := <-causes; !errors.Is(cause, ErrTurnLost) || len(responder.turns) != 0 && !responder.turns["work/a"].returned() {
			t.Errorf("the turn was ended by %v", cause)
		}
		if last := api.writes[len(api.writes)-1]; !last.Completion.IsZero() {
			t.Errorf("reported its completion afterwards: %+v", last)
		}
	})
}

func TestNotSupported(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	turn := newTestTurn(t, ctx, ResponderConfig{API: Lifecycle(nil)})
	if err := turn.ForbidCancellation(ctx); !errors.Is(err, ErrNotSupported) {
		t.Errorf("forbidding the cancellation in lifecycle.k8s.io: %v", err)
	}
}

func TestInvalidConfig(t *testing.T) {
	handle, informer := func(context.Context, *Turn) error { return nil }, cache.NewSharedIndexInformer(nil, nil, 0, nil)
	for name, config := range map[string]ResponderConfig{
		"no API":         {Name: own, Handle: handle},
		"no name":        {API: Lifecycle(nil), Handle: handle},
		"no handler":     {API: Lifecycle(nil), Name: own},
		"negative":       {API: Lifecycle(nil), Name: own, Handle: handle, MaxConcurrent: -1},
		"bad selector":   {API: Lifecycle(nil), Name: own, Handle: handle, LabelSelector: "a in"},
		"two namespaces": {API: Lifecycle(nil), Name: own, Handle: handle, Informer: informer, Namespace: "n"},
	} {
		if err := Run(t.Context(), config); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
