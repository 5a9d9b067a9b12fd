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
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	migrate    = "migrate.example.com"
	imperative = coordinationv1alpha1.EvictionInterceptorImperative
)

// activeRequest returns a request with these active interceptors and true conditions.
func activeRequest(active []string, conditions ...coordinationv1alpha1.EvictionRequestConditionType) *coordinationv1alpha1.EvictionRequest {
	request := &coordinationv1alpha1.EvictionRequest{}
	request.Status.ActiveInterceptors = active
	for _, name := range []string{migrate, imperative} {
		request.Status.Interceptors = append(request.Status.Interceptors, coordinationv1alpha1.InterceptorStatus{Name: name})
	}
	for _, condition := range conditions {
		request.Status.Conditions = append(request.Status.Conditions, metav1.Condition{Type: string(condition), Status: metav1.ConditionTrue})
	}
	return request
}

func TestStateOf(t *testing.T) {
	const (
		evicted      = coordinationv1alpha1.EvictionRequestConditionEvicted
		canceled     = coordinationv1alpha1.EvictionRequestConditionCanceled
		blocked      = coordinationv1alpha1.EvictionRequestConditionBlocked
		unresponsive = coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive
	)
	notBlocked := activeRequest([]string{imperative}, blocked)
	notBlocked.Status.Conditions[0].Status = metav1.ConditionFalse

	tests := map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		want    State
	}{
		"new":                            {activeRequest(nil), StatePending},
		"an interceptor is active":       {activeRequest([]string{migrate}), StateIntercepting},
		"an interceptor is unresponsive": {activeRequest([]string{migrate}, unresponsive), StateIntercepting},
		"the built-in one is active":     {activeRequest([]string{imperative}), StateEvicting},
		"refused":                        {activeRequest([]string{imperative}, blocked), StateBlocked},
		"no longer refused":              {notBlocked, StateEvicting},
		"evicted":                        {activeRequest(nil, evicted), StateEvicted},
		"evicted, was refused":           {activeRequest(nil, blocked, evicted), StateEvicted},
		"canceled":                       {activeRequest(nil, canceled), StateCanceled},
		"canceled, was refused":          {activeRequest(nil, blocked, canceled), StateCanceled},
		"canceled, with an active one":   {activeRequest([]string{migrate}, canceled), StateCanceled},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := StateOf(test.request); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestActiveInterceptor(t *testing.T) {
	request := activeRequest([]string{imperative})
	if got := ActiveInterceptor(request); got != &request.Status.Interceptors[1] {
		t.Errorf("got %v, want a pointer to the second entry", got)
	}
	if got := ActiveInterceptor(activeRequest(nil)); got != nil {
		t.Errorf("no interceptor is active, got %v", got)
	}
	if got := ActiveInterceptor(activeRequest([]string{"other.example.com"})); got != nil {
		t.Errorf("the active one has no entry, got %v", got)
	}
}

const (
	daemonSet = coordinationv1alpha1.EvictionInterceptorDaemonSet
	kubelet   = coordinationv1alpha1.EvictionInterceptorKubelet
)

// ownedPod returns a pod with an owner.
func TestInterceptorStatusOf(t *testing.T) {
	status := &activeRequest([]string{migrate}).Status
	if entry := InterceptorStatusOf(status, imperative); entry != &status.Interceptors[1] {
		t.Errorf("got %v, want a pointer into the status: callers write to it", entry)
	}
	if entry := InterceptorStatusOf(status, "unknown.example.com"); entry != nil {
		t.Errorf("got %v for an unknown interceptor", entry)
	}
}

func TestIsWanted(t *testing.T) {
	now := metav1.Now()
	drain := []coordinationv1alpha1.Requester{{Name: "drain.example.com"}}
	for name, test := range map[string]struct {
		requesters []coordinationv1alpha1.Requester
		deleted    *metav1.Time
		policy     coordinationv1alpha1.EvictionRequestCancellationPolicy
		want       bool
	}{
		"a requester":                      {requesters: drain, want: true},
		"no requester":                     {},
		"being deleted":                    {requesters: drain, deleted: &now},
		"no requester, final":              {policy: coordinationv1alpha1.EvictionRequestCancellationPolicyForbid, want: true},
		"being deleted, final":             {requesters: drain, deleted: &now, policy: coordinationv1alpha1.EvictionRequestCancellationPolicyForbid, want: true},
		"no requester, may be canceled":    {policy: coordinationv1alpha1.EvictionRequestCancellationPolicyAllow},
		"a requester, and may be canceled": {requesters: drain, policy: coordinationv1alpha1.EvictionRequestCancellationPolicyAllow, want: true},
	} {
		request := &coordinationv1alpha1.EvictionRequest{}
		request.Spec.Requesters, request.DeletionTimestamp, request.Status.EvictionRequestCancellationPolicy = test.requesters, test.deleted, test.policy
		if got := IsWanted(request); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}

// A condition that is False or Unknown does not finish a request.
func TestIsFinished(t *testing.T) {
	for _, conditionType := range []coordinationv1alpha1.EvictionRequestConditionType{
		coordinationv1alpha1.EvictionRequestConditionCanceled, coordinationv1alpha1.EvictionRequestConditionEvicted, coordinationv1alpha1.EvictionRequestConditionBlocked,
	} {
		for _, value := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
			want := conditionType != coordinationv1alpha1.EvictionRequestConditionBlocked && value == metav1.ConditionTrue
			conditions := []metav1.Condition{{Type: "Other", Status: metav1.ConditionTrue}, {Type: string(conditionType), Status: value}}
			if got := IsFinished(conditions); got != want {
				t.Errorf("with %s=%s: got %t, want %t", conditionType, value, got, want)
			}
			if final := FinalCondition(conditions); want && final != &conditions[1] {
				t.Errorf("with %s=%s: the final condition is %v", conditionType, value, final)
			}
		}
	}
	if IsFinished(nil) {
		t.Error("finished without a condition")
	}
}
