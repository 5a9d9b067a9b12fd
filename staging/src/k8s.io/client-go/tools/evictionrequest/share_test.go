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
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"
	"unsafe"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"
)

// decodedRequest returns a request that shares no memory with others, as one that was decoded.
func decodedRequest(t testing.TB, uid string) *coordinationv1alpha1.EvictionRequest {
	t.Helper()
	name, began := coordinationv1alpha1.EvictionInterceptorImperative, metav1.Unix(1764331200, 0)
	later := metav1.Time{Time: began.Add(time.Minute)}
	request := &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name: uid, Namespace: "prod", UID: types.UID("of " + uid), ResourceVersion: "1" + uid, Generation: 1,
			Labels:        map[string]string{"app": "web", "pod-template-hash": "5b4d9c7f6"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "drain.example.com"}},
		},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:                   coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: "web-" + uid, UID: uid}},
			Requesters:               []coordinationv1alpha1.Requester{{Name: "drain.example.com"}},
			HeartbeatDeadlineSeconds: ptr.To[int32](1200),
		},
		Status: coordinationv1alpha1.EvictionRequestStatus{
			TargetInterceptors: []coordinationv1alpha1.Interceptor{{Name: name}}, ActiveInterceptors: []string{name},
			Interceptors: []coordinationv1alpha1.InterceptorStatus{{Name: name, Retries: 1, Message: "refused", StartTime: &began, HeartbeatTime: &began, CompletionTime: &later}},
			Conditions:   []metav1.Condition{{Type: "Blocked", Status: metav1.ConditionTrue, Reason: "DisruptionBudget", Message: "not now"}},
		},
	}
	encoded, err := request.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	decoded := &coordinationv1alpha1.EvictionRequest{}
	if err := decoded.Unmarshal(encoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// TestShareMemory: what many requests have in common is in memory once, and nothing of them changes but managedFields.
func TestShareMemory(t *testing.T) {
	transform := ShareMemory()
	share := func(request *coordinationv1alpha1.EvictionRequest) *coordinationv1alpha1.EvictionRequest {
		shared, err := transform(request)
		if err != nil {
			t.Fatal(err)
		}
		return shared.(*coordinationv1alpha1.EvictionRequest)
	}
	a, b := share(decodedRequest(t, "a")), share(decodedRequest(t, "b"))
	for uid, got := range map[string]*coordinationv1alpha1.EvictionRequest{"a": a, "b": b} {
		want := decodedRequest(t, uid)
		want.ManagedFields = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("request %s has changed (-want, +got):\n%s", uid, diff)
		}
	}
	for name, texts := range map[string][2]string{
		"namespace":           {a.Namespace, b.Namespace},
		"requester":           {a.Spec.Requesters[0].Name, b.Spec.Requesters[0].Name},
		"target interceptor":  {a.Status.TargetInterceptors[0].Name, b.Status.TargetInterceptors[0].Name},
		"active interceptor":  {a.Status.ActiveInterceptors[0], b.Status.ActiveInterceptors[0]},
		"interceptor":         {a.Status.Interceptors[0].Name, b.Status.Interceptors[0].Name},
		"message":             {a.Status.Interceptors[0].Message, b.Status.Interceptors[0].Message},
		"type of a condition": {a.Status.Conditions[0].Type, b.Status.Conditions[0].Type},
		"reason":              {a.Status.Conditions[0].Reason, b.Status.Conditions[0].Reason},
		"blocker":             {a.Status.Conditions[0].Message, b.Status.Conditions[0].Message},
		"UID of the pod":      {a.Name, a.Spec.Target.Pod.UID},
	} {
		if unsafe.StringData(texts[0]) != unsafe.StringData(texts[1]) {
			t.Errorf("%s is in memory twice", name)
		}
	}
	if entry := a.Status.Interceptors[0]; entry.StartTime != entry.HeartbeatTime {
		t.Error("the time at which the interceptor has started is in memory twice")
	}
	if reflect.ValueOf(a.Labels).Pointer() != reflect.ValueOf(b.Labels).Pointer() {
		t.Error("the labels are in memory twice")
	}
}

// TestShareMemoryOfLabels: requests share labels only if all of them are the same, however names and values are made.
func TestShareMemoryOfLabels(t *testing.T) {
	transform := ShareMemory()
	sets := []map[string]string{
		nil, {"a": "1"}, {"a": "2"}, {"b": "1"}, {"a": "1", "b": "2"}, {"a": "2", "b": "1"}, {"a": "1,b=2"}, {`a"="1`: ""}, {"a": ""}, {"": "a"},
	}
	for range 2 {
		for _, labels := range sets {
			request := &coordinationv1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)}}
			if _, err := transform(request); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(labels, request.Labels) {
				t.Errorf("got labels %v, want %v", request.Labels, labels)
			}
		}
	}
}

// TestShareMemoryIsBounded: requests whose labels differ do not fill the memory, and keep their labels.
func TestShareMemoryIsBounded(t *testing.T) {
	shared := newSharedLabels()
	for i := range 2 * maxSharedLabels {
		request := &coordinationv1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"index": fmt.Sprint(i)}}}
		if shared.share(request); request.Labels["index"] != fmt.Sprint(i) {
			t.Fatalf("request %d has the labels %v", i, request.Labels)
		}
	}
	if got := shared.sets.Len(); got > maxSharedLabels {
		t.Errorf("%d sets of labels are remembered", got)
	}
}
