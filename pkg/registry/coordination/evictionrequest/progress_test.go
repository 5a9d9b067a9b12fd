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
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/coordination"
	coordinationapiv1alpha1 "k8s.io/kubernetes/pkg/apis/coordination/v1alpha1"
	"k8s.io/kubernetes/test/utils/kstatus"
)

// kstatusFixtures is where the test with kstatus finds what the API server stores.
const kstatusFixtures = "../../../../hack/interop/testdata/kstatus"

const other = "a.example.com"

// as returns a condition that a controller writes.
func as(conditionType coordination.EvictionRequestConditionType, value metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: string(conditionType), Status: value, Reason: reason, Message: "says the controller", ObservedGeneration: 1}
}

// progressCase is a status as a controller writes it, and what the API server makes of it.
type progressCase struct {
	status coordination.EvictionRequestStatus
	// want is "type reason: message" of the condition, and kstatus what tools make of the request.
	want, kstatus string
}

func progressCases() map[string]progressCase {
	intercepting := func(active string, processed ...string) coordination.EvictionRequestStatus {
		status := coordination.EvictionRequestStatus{
			ObservedGeneration: 1, TargetInterceptors: []coordination.Interceptor{{Name: other}, {Name: "imperative-eviction.k8s.io"}},
			ProcessedInterceptors: processed,
		}
		if active != "" {
			status.ActiveInterceptors = []string{active}
		}
		return status
	}
	with := func(status coordination.EvictionRequestStatus, conditions ...metav1.Condition) coordination.EvictionRequestStatus {
		status.Conditions = conditions
		return status
	}
	evicting := intercepting("imperative-eviction.k8s.io", other)
	blocked := func(reason string) metav1.Condition {
		return as(coordination.EvictionRequestConditionBlocked, metav1.ConditionTrue, reason)
	}
	return map[string]progressCase{
		"not acted yet": {coordination.EvictionRequestStatus{}, "Reconciling Pending: The controller has not acted on the request yet.", "InProgress"},
		"intercepting":  {intercepting(other), "Reconciling Intercepting: Interceptor a.example.com is active.", "InProgress"},
		"unresponsive": {with(intercepting(other), as(coordination.EvictionRequestConditionInterceptorUnresponsive, metav1.ConditionTrue, "HeartbeatOverdue")),
			"Reconciling Intercepting: Interceptor a.example.com is active.", "InProgress"},
		"evicting": {evicting, "Reconciling Evicting: The pod has not left yet.", "InProgress"},
		"blocked by a budget": {with(evicting, blocked(coordination.EvictionRequestReasonDisruptionBudget)),
			"Reconciling Blocked: The eviction waits for a PodDisruptionBudget: see the condition Blocked.", "InProgress"},
		"refused": {with(evicting, blocked(coordination.EvictionRequestReasonEvictionRefused)),
			"Stalled EvictionRefused: The API server refuses the eviction: see the condition Blocked.", "Failed"},
		"no longer blocked": {with(evicting, as(coordination.EvictionRequestConditionBlocked, metav1.ConditionFalse, "NotBlocked")),
			"Reconciling Evicting: The pod has not left yet.", "InProgress"},
		"all have acted": {intercepting("", other, "imperative-eviction.k8s.io"), "Stalled NoInterceptorLeft: All interceptors have acted, and the pod is still there.", "Failed"},
		"evicted": {with(intercepting("", other, "imperative-eviction.k8s.io"), as(coordination.EvictionRequestConditionEvicted, metav1.ConditionTrue, "PodDeleted")),
			"", "Current"},
		"canceled": {with(intercepting("", other), as(coordination.EvictionRequestConditionCanceled, metav1.ConditionTrue, "NoRequesters")), "", "Current"},
	}
}

// progressIn describes the conditions of a status that the API server sets.
func progressIn(status *coordination.EvictionRequestStatus) string {
	described := ""
	for _, c := range status.Conditions {
		if c.Type == reconciling || c.Type == stalled {
			described += c.Type + " " + c.Reason + ": " + c.Message
			if c.Status != metav1.ConditionTrue {
				described += " (" + string(c.Status) + ")"
			}
		}
	}
	return described
}

// TestProgress writes each status over each other one: what the API server sets follows from the new one alone.
func TestProgress(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	atTime(t, now)
	fixtures := map[string]kstatus.Case{}
	for name, test := range progressCases() {
		for before, former := range progressCases() {
			t.Run(name+" after "+before, func(t *testing.T) {
				old := newRequest(func(request *coordination.EvictionRequest) {
					request.Generation, request.Status = 1, former.status
					stampProgress(&request.Status, &coordination.EvictionRequestStatus{}, now.Add(-time.Hour))
				})
				request := old.DeepCopy()
				request.Status = *test.status.DeepCopy()
				StatusStrategy.PrepareForUpdate(context.Background(), request, old)
				if got := progressIn(&request.Status); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
				again := request.DeepCopy()
				StatusStrategy.PrepareForUpdate(context.Background(), again, request)
				if diff := cmp.Diff(request, again); diff != "" {
					t.Errorf("written again (-first, +second):\n%s", diff)
				}
				if before == "not acted yet" {
					fixtures[name] = kstatus.Case{Want: test.kstatus, Object: versioned(t, request)}
				}
			})
		}
	}
	strategy := NewStrategy(func(context.Context, string) (*v1.Pod, error) {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web-0", UID: targetUID}}, nil
	})
	created := newRequest()
	strategy.PrepareForCreate(context.Background(), created)
	fixtures["created"] = kstatus.Case{Want: "InProgress", Object: versioned(t, created)}
	joined := created.DeepCopy()
	joined.Generation = 2
	joined.Status.Conditions = append(joined.Status.Conditions, as(coordination.EvictionRequestConditionEvicted, metav1.ConditionTrue, "PodDeleted"))
	StatusStrategy.PrepareForUpdate(context.Background(), joined, created)
	joined.Generation = 2
	fixtures["evicted, and changed since"] = kstatus.Case{Want: "InProgress", Object: versioned(t, joined)}
	kstatus.Check(t, kstatusFixtures, "evictionrequests.json", fixtures)
}

func versioned(t *testing.T, request *coordination.EvictionRequest) *coordinationv1alpha1.EvictionRequest {
	t.Helper()
	result := &coordinationv1alpha1.EvictionRequest{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1alpha1", Kind: "EvictionRequest"}}
	if err := coordinationapiv1alpha1.Convert_coordination_EvictionRequest_To_v1alpha1_EvictionRequest(request, result, nil); err != nil {
		t.Fatalf("converting: %v", err)
	}
	return result
}

// TestProgressIsOfTheServer verifies that no client decides what tools make of a request, nor when that has changed.
func TestProgressIsOfTheServer(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	atTime(t, now)
	old := newRequest(func(request *coordination.EvictionRequest) {
		request.Status = progressCases()["evicting"].status
		stampProgress(&request.Status, &coordination.EvictionRequestStatus{}, now.Add(-time.Hour))
		request.Status.Conditions = append(request.Status.Conditions, as(coordination.EvictionRequestConditionBlocked, metav1.ConditionFalse, "NotBlocked"))
	})
	of := func(conditionType string, value metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: value, Reason: "Forged", LastTransitionTime: metav1.Time{Time: now}}
	}
	for name, send := range map[string]func([]metav1.Condition) []metav1.Condition{
		"removed": func(conditions []metav1.Condition) []metav1.Condition { return conditions[1:] },
		"False": func(conditions []metav1.Condition) []metav1.Condition {
			return append(conditions[1:], of(reconciling, metav1.ConditionFalse))
		},
		"stalled": func(conditions []metav1.Condition) []metav1.Condition {
			return append(conditions, of(stalled, metav1.ConditionTrue))
		},
	} {
		t.Run(name, func(t *testing.T) {
			request := old.DeepCopy()
			request.Status.Conditions = send(request.Status.Conditions)
			StatusStrategy.PrepareForUpdate(context.Background(), request, old)
			byType := func(conditions []metav1.Condition) map[string]metav1.Condition {
				all := map[string]metav1.Condition{}
				for _, c := range conditions {
					all[c.Type] = c
				}
				return all
			}
			if diff := cmp.Diff(byType(old.Status.Conditions), byType(request.Status.Conditions)); diff != "" {
				t.Errorf("conditions (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestProgressIsNoWork verifies that a controller of another version, which knows nothing of the conditions,
// may initialize a request with which the API server has begun.
func TestProgressIsNoWork(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	atTime(t, now)
	strategy := NewStrategy(func(context.Context, string) (*v1.Pod, error) {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web-0", UID: targetUID}}, nil
	})
	old := newRequest()
	strategy.PrepareForCreate(context.Background(), old)
	request := old.DeepCopy()
	request.Status.TargetInterceptors = slices.Insert(request.Status.TargetInterceptors, 0, coordination.Interceptor{Name: other})
	request.Status.Interceptors = slices.Insert(request.Status.Interceptors, 0, coordination.InterceptorStatus{Name: other})
	request.Status.ActiveInterceptors = []string{other}
	StatusStrategy.PrepareForUpdate(context.Background(), request, old)
	if errs := StatusStrategy.ValidateUpdate(context.Background(), request, old); len(errs) > 0 {
		t.Errorf("refused: %v", errs)
	}
}
