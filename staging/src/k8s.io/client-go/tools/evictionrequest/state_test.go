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
	"slices"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
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
func ownedPod(apiVersion, kind string, controller bool) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
		{APIVersion: apiVersion, Kind: kind, Name: "owner", Controller: &controller},
	}}}
}

func mirrored(pod *v1.Pod) *v1.Pod {
	pod.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "hash"}
	return pod
}

func TestDefaultInterceptors(t *testing.T) {
	tests := map[string]struct {
		pod  *v1.Pod
		want []string
	}{
		"a plain pod":                        {pod: &v1.Pod{}},
		"a pod of a DaemonSet":               {pod: ownedPod("apps/v1", "DaemonSet", true), want: []string{daemonSet}},
		"a pod that a DaemonSet merely owns": {pod: ownedPod("apps/v1", "DaemonSet", false)},
		"a pod of another group's DaemonSet": {pod: ownedPod("apps.example.com/v1", "DaemonSet", true)},
		"a pod of a ReplicaSet":              {pod: ownedPod("apps/v1", "ReplicaSet", true)},
		"a mirror pod":                       {pod: mirrored(&v1.Pod{}), want: []string{kubelet}},
		"a mirror pod of a DaemonSet":        {pod: mirrored(ownedPod("apps/v1", "DaemonSet", true)), want: []string{kubelet}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := DefaultInterceptors(test.pod); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestActiveDeadline(t *testing.T) {
	daemonSetPod, mirrorPod := ownedPod("apps/v1", "DaemonSet", true), mirrored(&v1.Pod{})
	created := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	minute := func(minutes int) *metav1.Time {
		return &metav1.Time{Time: created.Add(time.Duration(minutes) * time.Minute)}
	}
	tests := map[string]struct {
		active     []string
		pod        *v1.Pod
		activation *metav1.Time
		heartbeat  *metav1.Time
		seconds    *int32
		want       *metav1.Time
	}{
		"none is active":            {activation: minute(1)},
		"the built-in one":          {active: []string{imperative}, activation: minute(1)},
		"no activation time":        {active: []string{migrate}, want: minute(20)},
		"no heartbeat":              {active: []string{migrate}, activation: minute(5), want: minute(25)},
		"heartbeat":                 {active: []string{migrate}, activation: minute(5), heartbeat: minute(9), want: minute(29)},
		"activated after heartbeat": {active: []string{migrate}, activation: minute(9), heartbeat: minute(5), want: minute(29)},
		"a DaemonSet":               {active: []string{daemonSet}, pod: daemonSetPod, activation: minute(5)},
		"a DaemonSet, unknown pod":  {active: []string{daemonSet}, activation: minute(5)},
		"a DaemonSet, another pod":  {active: []string{daemonSet}, pod: &v1.Pod{}, activation: minute(5), want: minute(25)},
		"a kubelet":                 {active: []string{kubelet}, pod: mirrorPod, activation: minute(5)},
		"a kubelet, unknown pod":    {active: []string{kubelet}, activation: minute(5)},
		"a kubelet, another pod":    {active: []string{kubelet}, pod: daemonSetPod, activation: minute(5), want: minute(25)},
		"before the DaemonSet":      {active: []string{migrate}, pod: daemonSetPod, activation: minute(5), want: minute(25)},
		"deadline of the request":   {active: []string{migrate}, activation: minute(5), seconds: ptr.To[int32](120), want: minute(7)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request := activeRequest(test.active)
			request.CreationTimestamp = metav1.Time{Time: created}
			request.Spec.HeartbeatDeadlineSeconds = test.seconds
			request.Status.ActivationTime = test.activation
			request.Status.Interceptors[0].HeartbeatTime = test.heartbeat
			got, limited := ActiveDeadline(request, test.pod)
			if limited != (test.want != nil) {
				t.Fatalf("limited is %t", limited)
			}
			if limited && !got.Equal(test.want.Time) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
