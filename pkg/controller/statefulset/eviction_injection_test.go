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

package statefulset

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// recordedPods records the pods to create, and returns the answers one after another.
type recordedPods struct {
	StatefulPodControlObjectManager
	created []*v1.Pod
	answers []error
}

func (r *recordedPods) CreatePod(_ context.Context, pod *v1.Pod, _ *apps.StatefulSet) error {
	r.created = append(r.created, pod.DeepCopy())
	if len(r.answers) < len(r.created) {
		return nil
	}
	return r.answers[len(r.created)-1]
}

func (r *recordedPods) interceptors() [][]string {
	var all [][]string
	for _, pod := range r.created {
		names := []string{}
		for _, interceptor := range pod.Spec.EvictionInterceptors {
			names = append(names, interceptor.Name)
		}
		all = append(all, names)
	}
	return all
}

func TestInterceptedPods(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "", nil)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("by a webhook"))
	unavailable := apierrors.NewServiceUnavailable("busy")
	own, none := []string{ownInterceptor}, []string{}
	tests := map[string]struct {
		set     *apps.StatefulSet
		change  func(*v1.Pod)
		answers []error
		want    [][]string
		wantErr error
	}{
		"several replicas":           {set: pacedSet(2), want: [][]string{own}},
		"one replica":                {set: pacedSet(1), want: [][]string{none}},
		"replicas by default":        {set: pacedSet(1, func(s *apps.StatefulSet) { s.Spec.Replicas = nil }), want: [][]string{none}},
		"on delete":                  {set: pacedSet(2, onDelete), want: [][]string{none}},
		"opted out":                  {set: pacedSet(2, withPacing("Disabled")), want: [][]string{none}},
		"interceptors of the author": {set: pacedSet(2), change: naming("a.example.com"), want: [][]string{{"a.example.com", ownInterceptor}}},
		"placed by the author":       {set: pacedSet(2), change: naming(ownInterceptor, "a.example.com"), want: [][]string{{ownInterceptor, "a.example.com"}}},
		"in a scheduling group":      {set: pacedSet(2), change: func(p *v1.Pod) { p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("g")} }, want: [][]string{own}},
		"placed by annotation": {set: pacedSet(2), change: func(p *v1.Pod) {
			p.Annotations = map[string]string{"interceptor.evictionrequest.coordination.k8s.io/priority_" + ownInterceptor: "10000/controller"}
		}, want: [][]string{own}},
		"registered with a higher priority": {set: pacedSet(2), change: func(p *v1.Pod) {
			p.Annotations = map[string]string{"interceptor.evictionrequest.coordination.k8s.io/priority_a.example.com": "20000/copies-data"}
		}, want: [][]string{{"a.example.com", ownInterceptor}}},
		"rejected with the interceptor":  {set: pacedSet(2), answers: []error{invalid}, want: [][]string{own, none}},
		"forbidden with the interceptor": {set: pacedSet(2), answers: []error{forbidden}, want: [][]string{own, none}},
		"rejected without it, too":       {set: pacedSet(2), answers: []error{invalid, invalid}, want: [][]string{own, none}, wantErr: invalid},
		"no response":                    {set: pacedSet(2), answers: []error{unavailable}, want: [][]string{own}, wantErr: unavailable},
		"rejected if not added":          {set: pacedSet(1), answers: []error{invalid}, want: [][]string{none}, wantErr: invalid},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := newStatefulSetPod(test.set, 0)
			if test.change != nil {
				test.change(pod)
			}
			before, setBefore := pod.DeepCopy(), test.set.DeepCopy()
			recorder := &recordedPods{answers: test.answers}
			err := interceptedPods{recorder, evictioninterceptor.NewCreator(clock.RealClock{}), record.NewFakeRecorder(10)}.CreatePod(t.Context(), pod, test.set)
			if !errors.Is(err, test.wantErr) {
				t.Errorf("got error %v, want %v", err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, recorder.interceptors()); diff != "" {
				t.Errorf("interceptors of the pods (-want +got):\n%s", diff)
			}
			// Nothing else is changed, neither in the created pod nor in the objects of the caller.
			for _, created := range recorder.created {
				created.Spec.EvictionInterceptors = before.Spec.EvictionInterceptors
				if diff := cmp.Diff(before, created); diff != "" {
					t.Errorf("the pod that was created (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(before, pod); diff != "" {
				t.Errorf("the pod of the caller has changed (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(setBefore, test.set); diff != "" {
				t.Errorf("the StatefulSet has changed (-before +after):\n%s", diff)
			}
		})
	}
}

func (r *recordedPods) CreateClaim(*v1.PersistentVolumeClaim, *apps.StatefulSet) error {
	return r.answers[0]
}

// The pacer gets to know which pods cannot be created, also because of their claims.
func TestObservedPods(t *testing.T) {
	refused := errors.New("refused")
	set := pacedSet(2)
	set.Spec.VolumeClaimTemplates = []v1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}, {ObjectMeta: metav1.ObjectMeta{Name: "logs"}}}
	claim := func(name string) *v1.PersistentVolumeClaim {
		return &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	for name, test := range map[string]struct {
		call   func(observedPods) error
		answer error
		want   []string
	}{
		"a pod":            {func(m observedPods) error { return m.CreatePod(t.Context(), pacedPod(1), set) }, nil, []string{"web-1: <nil>"}},
		"a refused pod":    {func(m observedPods) error { return m.CreatePod(t.Context(), pacedPod(1), set) }, refused, []string{"web-1: refused"}},
		"a claim":          {func(m observedPods) error { return m.CreateClaim(claim("logs-web-1"), set) }, nil, nil},
		"a refused claim":  {func(m observedPods) error { return m.CreateClaim(claim("logs-web-1"), set) }, refused, []string{"web-1: refused"}},
		"an unknown claim": {func(m observedPods) error { return m.CreateClaim(claim("tmp-web-1"), set) }, refused, nil},
	} {
		var got []string
		m := observedPods{&recordedPods{answers: []error{test.answer}}, func(_ *apps.StatefulSet, pod string, err error) { got = append(got, fmt.Sprintf("%s: %v", pod, err)) }}
		if err := test.call(m); err != test.answer {
			t.Errorf("%s: got error %v, want %v", name, err, test.answer)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func onDelete(set *apps.StatefulSet) {
	set.Spec.UpdateStrategy = apps.StatefulSetUpdateStrategy{Type: apps.OnDeleteStatefulSetStrategyType}
}

func naming(names ...string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		for _, name := range names {
			pod.Spec.EvictionInterceptors = append(pod.Spec.EvictionInterceptors, v1.EvictionInterceptor{Name: name})
		}
	}
}

// That a pod gets no name is said at the StatefulSet: nothing else would show it.
func TestLeftOutInterceptorIsSaid(t *testing.T) {
	var names []string
	for i := range 15 {
		names = append(names, fmt.Sprintf("i%d.example.com", i))
	}
	set, events := pacedSet(2), record.NewFakeRecorder(10)
	pod := newStatefulSetPod(set, 0)
	naming(names...)(pod)
	if err := (interceptedPods{&recordedPods{}, evictioninterceptor.NewCreator(clock.RealClock{}), events}).CreatePod(t.Context(), pod, set); err != nil {
		t.Fatal(err)
	}
	const want = "Warning EvictionInterceptorsLeftOut Pod web-0 was created without statefulset.apps.k8s.io, and its eviction does not wait for other pods: " +
		"the pod template names 15 interceptors, and a pod has at most 15"
	select {
	case got := <-events.Events:
		if got != want {
			t.Errorf("got event %q, want %q", got, want)
		}
	default:
		t.Error("no event")
	}
}
