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
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func responding(priorities map[string]int32) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		for name, priority := range priorities {
			pod.Spec.EvictionResponders = append(pod.Spec.EvictionResponders, v1.EvictionResponder{Name: name, Priority: ptr.To(priority)})
		}
	}
}

func TestAllTargets(t *testing.T) {
	many := map[string]int32{}
	for i := range 10 {
		many[fmt.Sprintf("example.com/r%d", i)] = int32(5000 - i)
	}
	tests := map[string]struct {
		pod  *v1.Pod
		want []string
	}{
		"none": {podWith(naming("a.example.com")), []string{"a.example.com", builtIn}},
		"before and after the others": {
			podWith(naming("a.example.com"), responding(map[string]int32{"example.com/low": 1000, "example.com/first": 20000, "example.com/controller": 10000})),
			[]string{"example.com/first", "a.example.com", "example.com/controller", "example.com/low", builtIn},
		},
		"before a controller that removes the pod": {
			podWith(naming("a.example.com", coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet),
				responding(map[string]int32{"example.com/low": 1000, "example.com/first": 20000})),
			[]string{"example.com/first", "a.example.com", "example.com/low", coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet, builtIn},
		},
		"after a controller that leaves the pod": {
			podWith(naming(coordinationv1alpha1.EvictionInterceptorStatefulSet), responding(map[string]int32{"example.com/low": 1000})),
			[]string{coordinationv1alpha1.EvictionInterceptorStatefulSet, "example.com/low", builtIn},
		},
		"the same priority": {
			podWith(responding(map[string]int32{"b.com/x": 5000, "a.b.com/x": 5000, "a.org/x": 5000, "b.com/a": 5000})),
			[]string{"b.com/a", "b.com/x", "a.b.com/x", "a.org/x", builtIn},
		},
		"before what has no deadline": {
			podWith(ownedByDaemonSet(true), responding(map[string]int32{"example.com/low": 1000})),
			[]string{"example.com/low", daemonSet, builtIn},
		},
		"as an interceptor as well": {
			podWith(naming("example.com/both"), responding(map[string]int32{"example.com/both": 20000})),
			[]string{"example.com/both", builtIn},
		},
		"as an interceptor as well, after another one": {
			podWith(naming("example.com/both", "a.example.com"), responding(map[string]int32{"example.com/both": 15000, "example.com/first": 20000})),
			[]string{"example.com/first", "example.com/both", "a.example.com", builtIn},
		},
		"as an interceptor as well, which comes later": {
			podWith(naming("a.example.com", "example.com/both"), responding(map[string]int32{"example.com/both": 15000})),
			[]string{"example.com/both", "a.example.com", builtIn},
		},
		"before a ReplicaSet alone": {
			podWith(naming("a.example.com", coordinationv1alpha1.EvictionInterceptorReplicaSet), responding(map[string]int32{"example.com/low": 1000})),
			[]string{"a.example.com", "example.com/low", coordinationv1alpha1.EvictionInterceptorReplicaSet, builtIn},
		},
		"too many": {
			podWith(naming(numbered("i", 10)...), responding(many)),
			append(append(numbered("i", 10), "example.com/r0", "example.com/r1", "example.com/r2", "example.com/r3", "example.com/r4"), builtIn),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := AllTargets(test.pod); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if got := Targets(test.pod); slices.ContainsFunc(test.pod.Spec.EvictionResponders, func(r v1.EvictionResponder) bool {
				return slices.Contains(got, r.Name) && len(test.pod.Spec.EvictionInterceptors) == 0
			}) {
				t.Errorf("without responders: %q", got)
			}
		})
	}
}
