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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	migrate    = "migrate.example.com"
	imperative = coordinationv1alpha1.EvictionInterceptorImperative
)

// activeRequest is a request with these active interceptors and true conditions.
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
		"new":                           {activeRequest(nil), StatePending},
		"turn of an interceptor":        {activeRequest([]string{migrate}), StateIntercepting},
		"turn of a silent interceptor":  {activeRequest([]string{migrate}, unresponsive), StateIntercepting},
		"turn of the built-in one":      {activeRequest([]string{imperative}), StateEvicting},
		"refused":                       {activeRequest([]string{imperative}, blocked), StateBlocked},
		"not refused any more":          {notBlocked, StateEvicting},
		"evicted":                       {activeRequest(nil, evicted), StateEvicted},
		"evicted, was refused":          {activeRequest(nil, blocked, evicted), StateEvicted},
		"canceled":                      {activeRequest(nil, canceled), StateCanceled},
		"canceled, was refused":         {activeRequest(nil, blocked, canceled), StateCanceled},
		"canceled, active still stands": {activeRequest([]string{migrate}, canceled), StateCanceled},
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
		t.Errorf("got %v, want the second entry itself", got)
	}
	if got := ActiveInterceptor(activeRequest(nil)); got != nil {
		t.Errorf("nobody is active, got %v", got)
	}
	if got := ActiveInterceptor(activeRequest([]string{"other.example.com"})); got != nil {
		t.Errorf("the active one has no entry, got %v", got)
	}
}

func TestActiveDeadline(t *testing.T) {
	created := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	minute := func(minutes int) *metav1.Time {
		return &metav1.Time{Time: created.Add(time.Duration(minutes) * time.Minute)}
	}
	tests := map[string]struct {
		active     []string
		activation *metav1.Time
		heartbeat  *metav1.Time
		seconds    *int32
		want       *metav1.Time
	}{
		"nobody's turn":             {activation: minute(1)},
		"the built-in one":          {active: []string{imperative}, activation: minute(1)},
		"no activation time":        {active: []string{migrate}, want: minute(20)},
		"silent since activation":   {active: []string{migrate}, activation: minute(5), want: minute(25)},
		"heartbeat":                 {active: []string{migrate}, activation: minute(5), heartbeat: minute(9), want: minute(29)},
		"activated after heartbeat": {active: []string{migrate}, activation: minute(9), heartbeat: minute(5), want: minute(29)},
		"deadline of its own":       {active: []string{migrate}, activation: minute(5), seconds: ptr.To[int32](120), want: minute(7)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request := activeRequest(test.active)
			request.CreationTimestamp = metav1.Time{Time: created}
			request.Spec.HeartbeatDeadlineSeconds = test.seconds
			request.Status.ActivationTime = test.activation
			request.Status.Interceptors[0].HeartbeatTime = test.heartbeat
			got, limited := ActiveDeadline(request)
			if limited != (test.want != nil) {
				t.Fatalf("limited is %t", limited)
			}
			if limited && !got.Equal(test.want.Time) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
