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

package availability

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// moment returns the moment of an event in a test, of which there is one each second.
func moment(n int) Moment { return Moment{At: second(n), ResourceVersion: fmt.Sprint(n)} }

// points returns a series from pairs of a second and a number.
func points(pairs ...[2]int) Series {
	var s Series
	for _, pair := range pairs {
		s = append(s, Point{Moment: moment(pair[0]), Value: pair[1]})
	}
	return s
}

func newSlice(name, service string, ready ...*bool) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Labels: map[string]string{discoveryv1.LabelServiceName: service},
	}}
	for _, r := range ready {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: r}})
	}
	return slice
}

func TestObserveSlice(t *testing.T) {
	type event struct {
		slice   *discoveryv1.EndpointSlice
		deleted bool
	}
	yes, no := ptr.To(true), ptr.To(false)
	tests := []struct {
		name   string
		events []event
		want   map[string]Series
	}{
		{
			name: "replaced by another endpoint",
			events: []event{
				{slice: newSlice("a-1", "a", yes)},
				{slice: newSlice("a-1", "a", yes, no)},
				{slice: newSlice("a-1", "a", yes, yes)},
				{slice: newSlice("a-1", "a", no, yes)},
				{slice: newSlice("a-1", "a", yes)},
			},
			want: map[string]Series{"a": points([2]int{1, 1}, [2]int{3, 2}, [2]int{4, 1})},
		},
		{
			name: "gone before another endpoint is ready",
			events: []event{
				{slice: newSlice("a-1", "a", yes)},
				{slice: newSlice("a-1", "a", no)},
				{slice: newSlice("a-1", "a")},
				{slice: newSlice("a-1", "a", no)},
				{slice: newSlice("a-1", "a", yes)},
			},
			want: map[string]Series{"a": points([2]int{1, 1}, [2]int{2, 0}, [2]int{5, 1})},
		},
		{
			name:   "ready is the default",
			events: []event{{slice: newSlice("a-1", "a", nil)}},
			want:   map[string]Series{"a": points([2]int{1, 1})},
		},
		{
			name: "several slices of one Service",
			events: []event{
				{slice: newSlice("a-1", "a", yes)},
				{slice: newSlice("a-2", "a", yes)},
				{slice: newSlice("a-1", "a"), deleted: true},
				{slice: newSlice("a-2", "a", yes), deleted: true},
			},
			want: map[string]Series{"a": points([2]int{1, 1}, [2]int{2, 2}, [2]int{3, 1}, [2]int{4, 0})},
		},
		{
			name: "another Service",
			events: []event{
				{slice: newSlice("a-1", "a", yes)},
				{slice: newSlice("b-1", "b", yes)},
				{slice: newSlice("b-1", "b", no)},
			},
			want: map[string]Series{"a": points([2]int{1, 1}), "b": points([2]int{2, 1}, [2]int{3, 0})},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRecord()
			for i, event := range test.events {
				r.observeSlice(event.slice, event.deleted, moment(i+1))
			}
			if diff := cmp.Diff(test.want, r.ReadyEndpoints); diff != "" {
				t.Errorf("ready endpoints (-want, +got):\n%s", diff)
			}
		})
	}
}

// newPod returns a pod of app a.
func newPod(name string, edits ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{appLabel: "a"}},
		Spec:       v1.PodSpec{NodeName: "node"},
		Status:     v1.PodStatus{Phase: v1.PodPending},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func unassigned(pod *v1.Pod) { pod.Spec.NodeName = "" }

func ready(pod *v1.Pod) {
	pod.Status.Phase = v1.PodRunning
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
}

func terminating(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: second(0)} }

func failed(pod *v1.Pod) { pod.Status.Phase = v1.PodFailed }

func TestObservePod(t *testing.T) {
	type event struct {
		pod     *v1.Pod
		deleted bool
	}
	at := func(n int) *Moment { return ptr.To(moment(n)) }
	tests := []struct {
		name     string
		events   []event
		wantApp  *App
		wantPods map[types.UID]*Pod
	}{
		{
			name: "a pod is replaced",
			events: []event{
				{pod: newPod("old", ready)},
				{pod: newPod("new", unassigned)},
				{pod: newPod("new")},
				{pod: newPod("new", ready)},
				{pod: newPod("old", ready, terminating)},
				{pod: newPod("old", ready, terminating), deleted: true},
			},
			wantApp: &App{
				Active:   points([2]int{1, 1}, [2]int{2, 2}, [2]int{5, 1}),
				Existing: points([2]int{1, 1}, [2]int{2, 2}, [2]int{6, 1}),
				Ready:    points([2]int{1, 1}, [2]int{4, 2}, [2]int{5, 1}),
			},
			wantPods: map[types.UID]*Pod{
				"old": {Name: "old", App: "a", Node: "node", Terminating: at(5), Gone: at(6)},
				"new": {Name: "new", App: "a", Node: "node", active: true, ready: true},
			},
		},
		{
			name:   "a pod fails and is removed later",
			events: []event{{pod: newPod("old", ready)}, {pod: newPod("old", failed)}, {pod: newPod("old", failed), deleted: true}},
			wantApp: &App{
				Active:   points([2]int{1, 1}, [2]int{2, 0}),
				Existing: points([2]int{1, 1}, [2]int{2, 0}),
				Ready:    points([2]int{1, 1}, [2]int{2, 0}),
			},
			wantPods: map[types.UID]*Pod{"old": {Name: "old", App: "a", Node: "node", Terminating: at(3), Gone: at(2)}},
		},
		{
			name:   "a pod without a grace period",
			events: []event{{pod: newPod("old", ready)}, {pod: newPod("old", ready), deleted: true}},
			wantApp: &App{
				Active:   points([2]int{1, 1}, [2]int{2, 0}),
				Existing: points([2]int{1, 1}, [2]int{2, 0}),
				Ready:    points([2]int{1, 1}, [2]int{2, 0}),
			},
			wantPods: map[types.UID]*Pod{"old": {Name: "old", App: "a", Node: "node", Terminating: at(2), Gone: at(2)}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRecord()
			for i, event := range test.events {
				r.observePod(event.pod, event.deleted, moment(i+1))
			}
			if diff := cmp.Diff(map[string]*App{"a": test.wantApp}, r.Apps); diff != "" {
				t.Errorf("app (-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.wantPods, r.Pods, cmp.AllowUnexported(Pod{})); diff != "" {
				t.Errorf("pods (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestOnNode(t *testing.T) {
	r := newRecord()
	for i, pod := range []*v1.Pod{newPod("b"), newPod("a"), newPod("c", unassigned)} {
		r.observePod(pod, false, moment(i+1))
	}
	var got []string
	for _, pod := range r.OnNode("node") {
		got = append(got, pod.Name)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" {
		t.Errorf("pods (-want, +got):\n%s", diff)
	}
}

func TestObserveDeployment(t *testing.T) {
	condition := func(conditionType appsv1.DeploymentConditionType, status v1.ConditionStatus, message string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{Type: conditionType, Status: status, Reason: "Reason", Message: message}
	}
	const surging appsv1.DeploymentConditionType = "EvictionInProgress"
	states := [][]appsv1.DeploymentCondition{
		{condition(appsv1.DeploymentAvailable, v1.ConditionTrue, "fine")},
		{condition(appsv1.DeploymentAvailable, v1.ConditionTrue, "fine"), condition(surging, v1.ConditionTrue, "Surging 0/1")},
		{condition(appsv1.DeploymentAvailable, v1.ConditionTrue, "fine"), condition(surging, v1.ConditionTrue, "Surging 1/1")},
		{condition(appsv1.DeploymentAvailable, v1.ConditionTrue, "fine")},
		{condition(appsv1.DeploymentAvailable, v1.ConditionFalse, "not fine")},
	}
	r := newRecord()
	for i, conditions := range states {
		r.observeDeployment(&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: appsv1.DeploymentStatus{Conditions: conditions},
		}, false, moment(i+1))
	}
	want := map[string]map[appsv1.DeploymentConditionType][]Condition{"a": {
		appsv1.DeploymentAvailable: {
			{Moment: moment(1), Status: v1.ConditionTrue, Reason: "Reason", Message: "fine"},
			{Moment: moment(5), Status: v1.ConditionFalse, Reason: "Reason", Message: "not fine"},
		},
		surging: {
			{Moment: moment(2), Status: v1.ConditionTrue, Reason: "Reason", Message: "Surging 0/1"},
			{Moment: moment(3), Status: v1.ConditionTrue, Reason: "Reason", Message: "Surging 1/1"},
			{Moment: moment(4)},
		},
	}}
	if diff := cmp.Diff(want, r.Conditions); diff != "" {
		t.Errorf("conditions (-want, +got):\n%s", diff)
	}
}
