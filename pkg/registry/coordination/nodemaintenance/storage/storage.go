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

// Package storage keeps NodeMaintenances in etcd.
package storage

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
	printerstorage "k8s.io/kubernetes/pkg/printers/storage"
	"k8s.io/kubernetes/pkg/registry/coordination/nodemaintenance"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// REST serves NodeMaintenances.
type REST struct {
	*genericregistry.Store
}

var _ rest.ShortNamesProvider = &REST{}

// ShortNames are the abbreviations that kubectl takes.
func (r *REST) ShortNames() []string { return []string{"nm"} }

// StatusREST serves the status subresource of NodeMaintenances.
type StatusREST struct {
	store *genericregistry.Store
}

var _ rest.Patcher = &StatusREST{}

// NewREST returns the main and the status endpoint, which share one store.
func NewREST(optsGetter generic.RESTOptionsGetter) (*REST, *StatusREST, error) {
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &coordination.NodeMaintenance{} },
		NewListFunc:               func() runtime.Object { return &coordination.NodeMaintenanceList{} },
		DefaultQualifiedResource:  coordination.Resource("nodemaintenances"),
		SingularQualifiedResource: coordination.Resource("nodemaintenance"),

		CreateStrategy:      nodemaintenance.Strategy,
		UpdateStrategy:      nodemaintenance.Strategy,
		DeleteStrategy:      nodemaintenance.Strategy,
		ResetFieldsStrategy: nodemaintenance.Strategy,

		TableConvertor: printerstorage.TableConvertor{TableGenerator: printers.NewTableGenerator().With(printersinternal.AddHandlers)},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: optsGetter}); err != nil {
		return nil, nil, err
	}

	statusStore := *store
	statusStore.UpdateStrategy = nodemaintenance.StatusStrategy
	statusStore.ResetFieldsStrategy = nodemaintenance.StatusStrategy
	return &REST{store}, &StatusREST{store: &statusStore}, nil
}

// New returns an empty object to decode into.
func (r *StatusREST) New() runtime.Object { return &coordination.NodeMaintenance{} }

// Destroy does nothing: the store belongs to REST, which cleans it up.
func (r *StatusREST) Destroy() {}

// Get reads the object, which a patch of the status starts from.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update writes the status; it never creates an object.
func (r *StatusREST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, objInfo, createValidation, updateValidation, false, options)
}

// GetResetFields names what the status endpoint ignores.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable prints the status endpoint's answers like those of the main one.
func (r *StatusREST) ConvertToTable(ctx context.Context, object runtime.Object, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, tableOptions)
}
