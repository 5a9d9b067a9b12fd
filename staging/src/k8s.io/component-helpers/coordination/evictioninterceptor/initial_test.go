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

package evictioninterceptor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func podWith(changes ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Annotations: map[string]string{}}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func naming(names ...string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		for _, name := range names {
			pod.Spec.EvictionInterceptors = append(pod.Spec.EvictionInterceptors, v1.EvictionInterceptor{Name: name})
		}
	}
}

func registering(name, priority string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Annotations["interceptor.evictionrequest.coordination.k8s.io/priority_"+name] = priority
	}
}

func ownedByDaemonSet(controller bool) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "owner", UID: "owner-uid", Controller: &controller}}
	}
}

func TestTargets(t *testing.T) {
	const first, second, builtIn = "first.example.com", "second.example.com", coordinationv1alpha1.EvictionInterceptorImperative
	tests := map[string]struct {
		pod       *v1.Pod
		want, own []string
	}{
		"only the built-in one":   {pod: podWith(), want: []string{builtIn}, own: []string{builtIn}},
		"in the order of the pod": {pod: podWith(naming(second, first)), want: []string{second, first, builtIn}, own: []string{second, first, builtIn}},
		"registered by annotation, after those of the pod": {
			pod:  podWith(naming(first), registering("early.example.com", "10001"), registering("late.example.com", "9999")),
			want: []string{first, "early.example.com", "late.example.com", builtIn},
			own:  []string{first, "early.example.com", "late.example.com", builtIn},
		},
		"the DaemonSet controller for its pods": {
			pod:  podWith(naming(first), ownedByDaemonSet(true)),
			want: []string{first, "daemonset.apps.k8s.io", builtIn},
			own:  []string{first, builtIn},
		},
		"the DaemonSet controller once, where the pod names it": {
			pod:  podWith(naming("daemonset.apps.k8s.io", first), ownedByDaemonSet(true)),
			want: []string{"daemonset.apps.k8s.io", first, builtIn},
			own:  []string{"daemonset.apps.k8s.io", first, builtIn},
		},
		"a DaemonSet that does not control the pod": {pod: podWith(ownedByDaemonSet(false)), want: []string{builtIn}, own: []string{builtIn}},
		"the kubelet for mirror pods": {
			pod:  podWith(func(pod *v1.Pod) { pod.Annotations[v1.MirrorPodAnnotationKey] = "hash" }),
			want: []string{"kubelet.k8s.io", builtIn},
			own:  []string{builtIn},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Targets(test.pod); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if got := OwnTargets(test.pod); !slices.Equal(got, test.own) {
				t.Errorf("named by somebody: got %q, want %q", got, test.own)
			}
		})
	}
}

func TestInitialize(t *testing.T) {
	now := metav1.Time{Time: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
	status := &coordinationv1alpha1.EvictionRequestStatus{ObservedGeneration: 7}
	Initialize(status, Targets(podWith(naming("a.example.com"))), now)
	const builtIn = coordinationv1alpha1.EvictionInterceptorImperative
	want := &coordinationv1alpha1.EvictionRequestStatus{
		ObservedGeneration: 7,
		TargetInterceptors: []coordinationv1alpha1.Interceptor{{Name: "a.example.com"}, {Name: builtIn}},
		Interceptors:       []coordinationv1alpha1.InterceptorStatus{{Name: "a.example.com"}, {Name: builtIn}},
		ActiveInterceptors: []string{"a.example.com"},
		ActivationTime:     &now,
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("unexpected status (-want, +got):\n%s", diff)
	}
}

func TestMissingLabels(t *testing.T) {
	tests := map[string]struct {
		request, pod, want map[string]string
	}{
		"both have none":                      {},
		"the request has them all":            {request: map[string]string{"app": "web", "team": "a"}, pod: map[string]string{"app": "web"}},
		"the request lacks one":               {request: map[string]string{"app": "web"}, pod: map[string]string{"app": "web", "tier": "x"}, want: map[string]string{"tier": "x"}},
		"the value of the pod wins":           {request: map[string]string{"app": "db"}, pod: map[string]string{"app": "web"}, want: map[string]string{"app": "web"}},
		"an empty value is a value":           {pod: map[string]string{"app": ""}, want: map[string]string{"app": ""}},
		"labels of the request only are kept": {request: map[string]string{"team": "a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, MissingLabels(test.request, test.pod)); diff != "" {
				t.Errorf("unexpected labels (-want, +got):\n%s", diff)
			}
		})
	}
}

// A request gets all labels of its pod or, if they are too many for etcd, none.
func TestManyLabels(t *testing.T) {
	labels := func(bytes int) map[string]string {
		labels := map[string]string{}
		for i := 0; i*64 < bytes; i++ {
			labels[fmt.Sprintf("%032d", i)] = strings.Repeat("x", 23)
		}
		return labels
	}
	if got := LabelsSize(MissingLabels(nil, labels(MaxLabelsSize))); got != MaxLabelsSize {
		t.Errorf("of %d bytes, %d are copied", MaxLabelsSize, got)
	}
	if got := MissingLabels(map[string]string{"a": "b"}, labels(MaxLabelsSize+1)); len(got) > 0 {
		t.Errorf("of more, %d are copied", len(got))
	}
}

func TestConditionOwner(t *testing.T) {
	const a, sub, key, longer = "a.example.com", "b.a.example.com", "a.example.com/migrate", "a.example.com/migrate.pods"
	for _, test := range []struct {
		conditionType string
		interceptors  []string
		want          string
	}{
		{a + "/Ready", []string{a, sub, key}, a},
		{sub + "/Ready", []string{a, sub}, sub},
		{sub + "/Ready", []string{a}, ""},
		{key + ".Ready", []string{a, key}, key},
		{key + ".Ready", []string{key, a}, key},
		{longer + ".Ready", []string{a, key, longer}, longer},
		{longer + ".Ready", []string{longer, key, a}, longer},
		{key + "Ready", []string{key}, ""},
		{a, []string{a}, ""},
		{a + ".Ready", []string{a}, ""},
		{"Evicted", []string{a}, ""},
		{a + "/Ready", nil, ""},
	} {
		if got := ConditionOwner(test.conditionType, test.interceptors); got != test.want {
			t.Errorf("%s among %v belongs to %q, want %q", test.conditionType, test.interceptors, got, test.want)
		}
	}
}

func TestIsReserved(t *testing.T) {
	for name, want := range map[string]bool{
		"drain.k8s.io": true, "a.b.k8s.io": true, "k8s.io": true, "k8s.io/drain": true, "apps.k8s.io/drain": true,
		"k8s.io.example.com": false, "notk8s.io": false, "a.notk8s.io/drain": false, "example.com/k8s.io": false, "": false,
	} {
		if got := IsReserved(name); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}
