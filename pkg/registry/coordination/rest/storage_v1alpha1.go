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

package rest

import (
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	evictionrequeststorage "k8s.io/kubernetes/pkg/registry/coordination/evictionrequest/storage"
	nodemaintenancestorage "k8s.io/kubernetes/pkg/registry/coordination/nodemaintenance/storage"
	nodemaintenancebudgetstorage "k8s.io/kubernetes/pkg/registry/coordination/nodemaintenancebudget/storage"
)

// v1alpha1Storage returns the storage of the kinds for pods and nodes. A generic control plane has
// neither, so it serves none of these kinds, even if --runtime-config enables them.
func (p RESTStorageProvider) v1alpha1Storage(apiResourceConfigSource serverstorage.APIResourceConfigSource, restOptionsGetter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	storage := map[string]rest.Storage{}
	if p.serves("evictionrequests", features.EvictionRequestAPI, apiResourceConfigSource) {
		main, status, err := evictionrequeststorage.NewREST(restOptionsGetter, p.Retention)
		if err != nil {
			return nil, err
		}
		storage["evictionrequests"], storage["evictionrequests/status"] = main, status
	}
	if p.serves("nodemaintenances", features.DeclarativeNodeMaintenance, apiResourceConfigSource) {
		main, status, err := nodemaintenancestorage.NewREST(restOptionsGetter)
		if err != nil {
			return nil, err
		}
		storage["nodemaintenances"], storage["nodemaintenances/status"] = main, status
	}
	if p.serves("nodemaintenancebudgets", features.NodeMaintenanceBudgets, apiResourceConfigSource) {
		main, status, err := nodemaintenancebudgetstorage.NewREST(restOptionsGetter)
		if err != nil {
			return nil, err
		}
		storage["nodemaintenancebudgets"], storage["nodemaintenancebudgets/status"] = main, status
	}
	return storage, nil
}

// serves reports whether the resource is enabled by the configuration and by its feature gate.
func (p RESTStorageProvider) serves(resource string, gate featuregate.Feature, apiResourceConfigSource serverstorage.APIResourceConfigSource) bool {
	if !p.KubeAPIServer || !apiResourceConfigSource.ResourceEnabled(coordinationv1alpha1.SchemeGroupVersion.WithResource(resource)) {
		return false
	}
	if !utilfeature.DefaultFeatureGate.Enabled(gate) {
		klog.InfoS("Not serving a resource that is enabled by --runtime-config: its feature gate is off", "resource", resource, "featureGate", gate)
		return false
	}
	return true
}
