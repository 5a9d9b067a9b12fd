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
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	api "k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/registry/internal/uncached"
)

// targets reads the pods of requests from etcd. A cache could lack the interceptors that somebody has
// just registered for a pod.
type targets struct {
	pods    storage.Interface
	prefix  string
	destroy func()
}

func newTargets(optsGetter generic.RESTOptionsGetter) (*targets, error) {
	newPod, newList := func() runtime.Object { return &api.Pod{} }, func() runtime.Object { return &api.PodList{} }
	options, err := uncached.Getter{RESTOptionsGetter: optsGetter}.GetRESTOptions(api.Resource("pods"), newPod())
	if err != nil {
		return nil, err
	}
	prefix := "/" + strings.TrimPrefix(options.ResourcePrefix, "/")
	pods, destroy, err := generic.NewRawStorage(options.StorageConfig, newPod, newList, prefix)
	if err != nil {
		return nil, err
	}
	return &targets{pods: pods, prefix: prefix, destroy: destroy}, nil
}

// get implements evictionrequest.TargetReader.
func (t *targets) get(ctx context.Context, name string) (*v1.Pod, error) {
	key, err := genericregistry.NamespaceKeyFunc(ctx, t.prefix, name)
	if err != nil {
		return nil, err
	}
	stored, pod := &api.Pod{}, &v1.Pod{}
	switch err := t.pods.Get(ctx, key, storage.GetOptions{}, stored); {
	case storage.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return pod, corev1.Convert_core_Pod_To_v1_Pod(stored, pod, nil)
}
