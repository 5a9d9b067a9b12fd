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

// Package storage implements the storage of EvictionRequests.
package storage

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
	printerstorage "k8s.io/kubernetes/pkg/printers/storage"
	"k8s.io/kubernetes/pkg/registry/coordination/evictionrequest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// REST serves EvictionRequests.
type REST struct {
	*genericregistry.Store
	targets *targets
	drains  *Drains
}

// Destroy closes the connections to etcd.
func (r *REST) Destroy() {
	r.Store.Destroy()
	r.targets.destroy()
	r.drains.Destroy()
}

var _ rest.ShortNamesProvider = &REST{}

// ShortNames returns the short names of the resource.
func (r *REST) ShortNames() []string { return []string{"er"} }

// StatusREST serves the status subresource of EvictionRequests.
type StatusREST struct {
	store  *genericregistry.Store
	expiry *evictionrequest.Expiry
}

var _ rest.Patcher = &StatusREST{}

// NewREST returns the main and the status endpoint, which share one store. etcd removes finished requests
// according to retention.
func NewREST(optsGetter generic.RESTOptionsGetter, retention evictionrequest.Retention) (*REST, *StatusREST, error) {
	drains, err := NewDrains(optsGetter)
	if err != nil {
		return nil, nil, err
	}
	targets, err := newTargetsOf(drains, optsGetter)
	if err != nil {
		return nil, nil, err // Without drains, there is nothing to close.
	}
	expiry := evictionrequest.NewExpiry(retention)
	store, err := newStore(ownLeases{optsGetter}, func(store *genericregistry.Store) {
		store.CreateStrategy = evictionrequest.NewStrategy(targets.get)
		store.TTLFunc = expiry.TTL
	})
	if err != nil {
		targets.destroy()
		drains.Destroy()
		return nil, nil, err
	}
	statusStore := *store
	statusStore.UpdateStrategy = evictionrequest.StatusStrategy
	statusStore.ResetFieldsStrategy = evictionrequest.StatusStrategy
	return &REST{store, targets, drains}, &StatusREST{store: &statusStore, expiry: expiry}, nil
}

// ownLeases has a lease for each object. etcd removes the objects of a lease in one transaction, so that
// their deletions have the same resourceVersion, and the watch cache takes a version for one change: lists
// would differ, and a watch from there on would lack deletions. Only events, which have no watch cache,
// can share leases.
type ownLeases struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (l ownLeases) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := l.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	config := *options.StorageConfig
	config.LeaseManagerConfig.MaxObjectCount = 1
	options.StorageConfig = &config
	return options, nil
}

// NewReader returns a store for those who read requests, and only read them.
func NewReader(optsGetter generic.RESTOptionsGetter) (*genericregistry.Store, error) {
	return newStore(optsGetter, func(*genericregistry.Store) {})
}

func newStore(optsGetter generic.RESTOptionsGetter, change func(*genericregistry.Store)) (*genericregistry.Store, error) {
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &coordination.EvictionRequest{} },
		NewListFunc:               func() runtime.Object { return &coordination.EvictionRequestList{} },
		DefaultQualifiedResource:  coordination.Resource("evictionrequests"),
		SingularQualifiedResource: coordination.Resource("evictionrequest"),

		CreateStrategy:      evictionrequest.Strategy,
		UpdateStrategy:      evictionrequest.Strategy,
		DeleteStrategy:      evictionrequest.Strategy,
		ResetFieldsStrategy: evictionrequest.Strategy,

		TableConvertor: printerstorage.TableConvertor{TableGenerator: printers.NewTableGenerator().With(printersinternal.AddHandlers)},
	}
	change(store)
	return store, store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: optsGetter})
}

// New returns an empty object.
func (r *StatusREST) New() runtime.Object { return &coordination.EvictionRequest{} }

// Destroy does nothing: the store belongs to REST, which cleans it up.
func (r *StatusREST) Destroy() {}

// Get reads the object, which is the base of a patch of the status.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update updates the status, and takes note of requests that it has finished. It never creates an object.
func (r *StatusREST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	// The last attempt is the one that is written.
	finishes := false
	watched := rest.WrapUpdatedObjectInfo(objInfo, func(_ context.Context, obj, old runtime.Object) (runtime.Object, error) {
		finishes = isFinished(obj) && !isFinished(old)
		return obj, nil
	})
	updated, created, err := r.store.Update(ctx, name, watched, createValidation, updateValidation, false, options)
	if err == nil && finishes && !dryrun.IsDryRun(options.DryRun) {
		r.expiry.Finished(updated.(*coordination.EvictionRequest))
	}
	return updated, created, err
}

func isFinished(obj runtime.Object) bool {
	request, isRequest := obj.(*coordination.EvictionRequest)
	return isRequest && evictionrequesttools.IsFinished(request.Status.Conditions)
}

// GetResetFields returns the fields that the status endpoint ignores.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable converts responses of the status endpoint like those of the main one.
func (r *StatusREST) ConvertToTable(ctx context.Context, object runtime.Object, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, tableOptions)
}
