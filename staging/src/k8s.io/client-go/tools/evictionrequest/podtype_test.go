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

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ownedPod(apiVersion, kind string, controller bool) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
		{APIVersion: apiVersion, Kind: kind, Name: "owner", Controller: &controller},
	}}}
}

func mirrored(pod *v1.Pod) *v1.Pod {
	pod.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "hash"}
	return pod
}

func TestPodType(t *testing.T) {
	tests := map[string]struct {
		pod          *v1.Pod
		podType      v1.PodType
		interceptors []string
	}{
		"a plain pod":                        {pod: &v1.Pod{}, podType: v1.PodTypeDefault},
		"a pod of a DaemonSet":               {pod: ownedPod("apps/v1", "DaemonSet", true), podType: v1.PodTypeDaemonSet, interceptors: []string{daemonSet}},
		"a pod that a DaemonSet merely owns": {pod: ownedPod("apps/v1", "DaemonSet", false), podType: v1.PodTypeDefault},
		"a pod of another group's DaemonSet": {pod: ownedPod("apps.kruise.io/v1alpha1", "DaemonSet", true), podType: v1.PodTypeDaemonSet},
		"a pod of a ReplicaSet":              {pod: ownedPod("apps/v1", "ReplicaSet", true), podType: v1.PodTypeDefault},
		"a mirror pod":                       {pod: mirrored(&v1.Pod{}), podType: v1.PodTypeStatic, interceptors: []string{kubelet}},
		"a mirror pod of a DaemonSet":        {pod: mirrored(ownedPod("apps/v1", "DaemonSet", true)), podType: v1.PodTypeStatic, interceptors: []string{kubelet}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := PodTypeOf(test.pod); got != test.podType {
				t.Errorf("got type %s, want %s", got, test.podType)
			}
			if got := DefaultInterceptors(test.pod); !slices.Equal(got, test.interceptors) {
				t.Errorf("got interceptors %v, want %v", got, test.interceptors)
			}
		})
	}
}
