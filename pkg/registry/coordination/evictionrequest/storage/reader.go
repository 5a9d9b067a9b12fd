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

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/kubernetes/pkg/registry/internal/uncached"
)

// reader reads objects of another resource from etcd.
type reader struct {
	objects storage.Interface
	// prefix is that of the keys.
	prefix  string
	destroy func()
}

// newReader returns a reader of a resource, of which the objects are examples.
func newReader(optsGetter generic.RESTOptionsGetter, resource schema.GroupResource, example, exampleList runtime.Object) (*reader, error) {
	options, err := uncached.Getter{RESTOptionsGetter: optsGetter}.GetRESTOptions(resource, example)
	if err != nil {
		return nil, err
	}
	prefix := "/" + strings.TrimPrefix(options.ResourcePrefix, "/")
	objects, destroy, err := generic.NewRawStorage(options.StorageConfig, example.DeepCopyObject, exampleList.DeepCopyObject, prefix)
	if err != nil {
		return nil, err
	}
	return &reader{objects: objects, prefix: prefix, destroy: destroy}, nil
}

// borrowed returns a reader with the same connection, which only the first one closes.
func (r *reader) borrowed() *reader {
	return &reader{objects: r.objects, prefix: r.prefix, destroy: func() {}}
}

// read reads the object with this key, and reports whether there is one.
func (r *reader) read(ctx context.Context, key string, into runtime.Object) (found bool, err error) {
	err = r.objects.Get(ctx, key, storage.GetOptions{}, into)
	if storage.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// readUnscoped reads the object with this name of a resource without namespaces.
func (r *reader) readUnscoped(ctx context.Context, name string, into runtime.Object) (found bool, err error) {
	key, err := genericregistry.NoNamespaceKeyFunc(ctx, r.prefix, name)
	if err != nil {
		return false, err
	}
	return r.read(ctx, key, into)
}
