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
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/evictions"
	"k8s.io/utils/ptr"
)

func TestActiveDeadline(t *testing.T) {
	daemonSetPod, mirrorPod := ownedPod("apps/v1", "DaemonSet", true), mirrored(&v1.Pod{})
	responderPod := &v1.Pod{Spec: v1.PodSpec{EvictionResponders: []v1.EvictionResponder{{Name: migrate}}}}
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
		"a responder":               {active: []string{migrate}, pod: responderPod, activation: minute(5), seconds: ptr.To[int32](120), want: minute(25)},
		"a responder, long":         {active: []string{migrate}, pod: responderPod, activation: minute(5), seconds: ptr.To[int32](1800), want: minute(35)},
		"beside a responder":        {active: []string{"audit.example.com"}, pod: responderPod, activation: minute(5), seconds: ptr.To[int32](120), want: minute(7)},
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

func TestIsPassable(t *testing.T) {
	daemonSetPod, mirrorPod := ownedPod("apps/v1", "DaemonSet", true), mirrored(&v1.Pod{})
	tests := map[string]struct {
		active []string
		pod    *v1.Pod
		want   bool
	}{
		"none is active":           {pod: &v1.Pod{}},
		"the built-in one":         {active: []string{imperative}, pod: &v1.Pod{}},
		"another one":              {active: []string{migrate}, pod: &v1.Pod{}, want: true},
		"another one, unknown pod": {active: []string{migrate}, want: true},
		"before the DaemonSet":     {active: []string{migrate}, pod: daemonSetPod, want: true},
		"a DaemonSet":              {active: []string{daemonSet}, pod: daemonSetPod},
		"a DaemonSet, another pod": {active: []string{daemonSet}, pod: &v1.Pod{}, want: true},
		"a DaemonSet, unknown pod": {active: []string{daemonSet}},
		"a kubelet":                {active: []string{kubelet}, pod: mirrorPod},
		"a kubelet, another pod":   {active: []string{kubelet}, pod: daemonSetPod, want: true},
		"a kubelet, unknown pod":   {active: []string{kubelet}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsPassable(activeRequest(test.active), test.pod); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// The library for everybody cannot import the API, so it has the default as a value of its own.
func TestDefaultDeadlineOfTheLibrary(t *testing.T) {
	want := HeartbeatDeadline(&coordinationv1alpha1.EvictionRequest{})
	if got := evictions.Coordination(nil).Read(&unstructured.Unstructured{Object: map[string]any{}}, "a.example.com").HeartbeatDeadline; got != want {
		t.Errorf("package evictions: %v, want that of the API, %v", got, want)
	}
}
