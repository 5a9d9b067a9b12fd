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

package storage

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	api "k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
)

// targets reads the pods of requests from etcd. A cache could lack the interceptors that somebody has
// just registered for a pod.
type targets struct{ *reader }

func newTargets(optsGetter generic.RESTOptionsGetter) (*targets, error) {
	pods, err := newReader(optsGetter, api.Resource("pods"), &api.Pod{}, &api.PodList{})
	return &targets{pods}, err
}

// newTargetsOf returns targets that are read by the connection of drains, or by one of their own without drains.
func newTargetsOf(drains *Drains, optsGetter generic.RESTOptionsGetter) (*targets, error) {
	if drains != nil {
		return &targets{drains.pods.borrowed()}, nil
	}
	return newTargets(optsGetter)
}

// get implements evictionrequest.TargetReader.
func (t *targets) get(ctx context.Context, name string) (*v1.Pod, error) {
	key, err := genericregistry.NamespaceKeyFunc(ctx, t.prefix, name)
	if err != nil {
		return nil, err
	}
	stored, pod := &api.Pod{}, &v1.Pod{}
	if found, err := t.read(ctx, key, stored); !found || err != nil {
		return nil, err
	}
	return pod, corev1.Convert_core_Pod_To_v1_Pod(stored, pod, nil)
}
