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

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
)

func TestComputeTargetInterceptors(t *testing.T) {
	tests := map[string]struct {
		pod  *v1.Pod
		want []coordinationv1alpha1.Interceptor
	}{
		"only the built-in one": {
			pod:  newPod(),
			want: []coordinationv1alpha1.Interceptor{{Name: builtIn}},
		},
		"in the order of the pod": {
			pod:  newPod(interceptedBy(second, first)),
			want: []coordinationv1alpha1.Interceptor{{Name: second}, {Name: first}, {Name: builtIn}},
		},
		"registered by annotation, after those of the pod": {
			pod: newPod(interceptedBy(first), registered("early.example.com", "10001"), registered("late.example.com", "9999")),
			want: []coordinationv1alpha1.Interceptor{
				{Name: first}, {Name: "early.example.com"}, {Name: "late.example.com"}, {Name: builtIn},
			},
		},
		"the DaemonSet controller for its pods": {
			pod:  newPod(interceptedBy(first), ownedBy("DaemonSet", true)),
			want: []coordinationv1alpha1.Interceptor{{Name: first}, {Name: "daemonset.apps.k8s.io"}, {Name: builtIn}},
		},
		"the DaemonSet controller once, where the pod names it": {
			pod:  newPod(interceptedBy("daemonset.apps.k8s.io", first), ownedBy("DaemonSet", true)),
			want: []coordinationv1alpha1.Interceptor{{Name: "daemonset.apps.k8s.io"}, {Name: first}, {Name: builtIn}},
		},
		"a DaemonSet that does not control the pod": {
			pod:  newPod(ownedBy("DaemonSet", false)),
			want: []coordinationv1alpha1.Interceptor{{Name: builtIn}},
		},
		"the kubelet for mirror pods": {
			pod:  newPod(mirrored),
			want: []coordinationv1alpha1.Interceptor{{Name: "kubelet.k8s.io"}, {Name: builtIn}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, computeTargetInterceptors(test.pod)); diff != "" {
				t.Errorf("unexpected interceptors (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestActiveInterceptor(t *testing.T) {
	if got := activeInterceptor(newStatus(targets(first))); got != "" {
		t.Errorf("got %q, want none", got)
	}
	if got := activeInterceptor(newStatus(targets(first), active(first, 0))); got != first {
		t.Errorf("got %q, want %q", got, first)
	}
}
