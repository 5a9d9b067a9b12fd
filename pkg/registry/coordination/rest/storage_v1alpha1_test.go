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
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/registry/registrytest"

	// Registers the versions of the API group.
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
)

// servedVersion returns a --runtime-config that enables the version or not.
func servedVersion(enabled bool) *serverstorage.ResourceConfig {
	config := serverstorage.NewResourceConfig()
	if enabled {
		config.EnableVersions(coordinationv1alpha1.SchemeGroupVersion)
	}
	return config
}

// setGates sets the gates, each of which requires the one before.
func setGates(t *testing.T, evictionRequests, nodeMaintenances, budgets bool) {
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: evictionRequests, features.DeclarativeNodeMaintenance: nodeMaintenances, features.NodeMaintenanceBudgets: budgets,
	})
}

// The resources are served only by kube-apiserver, with the version enabled and their gate on.
func TestServedResources(t *testing.T) {
	etcd, server := registrytest.NewEtcdStorageForResource(t, coordination.Resource("evictionrequests"))
	t.Cleanup(func() { server.Terminate(t) })
	options := generic.RESTOptions{StorageConfig: etcd, Decorator: generic.UndecoratedStorage, ResourcePrefix: "evictionrequests"}
	requests := []string{"v1alpha1/evictionrequests *storage.REST", "v1alpha1/evictionrequests/status *storage.StatusREST"}
	maintenances := []string{"v1alpha1/nodemaintenances *storage.REST", "v1alpha1/nodemaintenances/status *storage.StatusREST"}
	budgets := []string{"v1alpha1/nodemaintenancebudgets *storage.REST", "v1alpha1/nodemaintenancebudgets/status *storage.StatusREST"}

	for _, gates := range []struct {
		evictionRequests, nodeMaintenances, budgets bool
		want                                        []string
	}{
		{},
		{evictionRequests: true, want: requests},
		{evictionRequests: true, nodeMaintenances: true, want: slices.Concat(requests, maintenances)},
		{evictionRequests: true, nodeMaintenances: true, budgets: true, want: slices.Concat(requests, budgets, maintenances)},
	} {
		for _, kubeAPIServer := range []bool{true, false} {
			for _, enabled := range []bool{true, false} {
				t.Run(fmt.Sprintf("kube-apiserver %t, enabled %t, gates %t, %t and %t", kubeAPIServer, enabled, gates.evictionRequests, gates.nodeMaintenances, gates.budgets), func(t *testing.T) {
					setGates(t, gates.evictionRequests, gates.nodeMaintenances, gates.budgets)
					info, err := RESTStorageProvider{KubeAPIServer: kubeAPIServer}.NewRESTStorage(servedVersion(enabled), options)
					if err != nil {
						t.Fatalf("unexpected error: %v", err)
					}
					var want []string
					if kubeAPIServer && enabled {
						want = gates.want
					}
					if diff := cmp.Diff(want, served(t, info)); diff != "" {
						t.Errorf("unexpected resources (-want, +got):\n%s", diff)
					}
				})
			}
		}
	}
}

// Each resource can be enabled alone.
func TestOneResourceEnabled(t *testing.T) {
	setGates(t, true, true, true)
	for _, resource := range []string{"evictionrequests", "nodemaintenances", "nodemaintenancebudgets"} {
		etcd, server := registrytest.NewEtcdStorageForResource(t, coordination.Resource(resource))
		t.Cleanup(func() { server.Terminate(t) })
		config := serverstorage.NewResourceConfig()
		config.EnableResources(coordinationv1alpha1.SchemeGroupVersion.WithResource(resource))
		info, err := RESTStorageProvider{KubeAPIServer: true}.NewRESTStorage(config,
			generic.RESTOptions{StorageConfig: etcd, Decorator: generic.UndecoratedStorage, ResourcePrefix: resource})
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		want := []string{"v1alpha1/" + resource + " *storage.REST", "v1alpha1/" + resource + "/status *storage.StatusREST"}
		if diff := cmp.Diff(want, served(t, info)); diff != "" {
			t.Errorf("unexpected resources (-want, +got):\n%s", diff)
		}
	}
}

// served returns the served resources of the group, and destroys them at the end of the test.
func served(t *testing.T, info genericapiserver.APIGroupInfo) []string {
	var got []string
	for version, resources := range info.VersionedResourcesStorageMap {
		for resource, storage := range resources {
			got = append(got, fmt.Sprintf("%s/%s %T", version, resource, storage))
			t.Cleanup(storage.Destroy)
		}
	}
	slices.Sort(got)
	return got
}

// onlyBroken returns an error for one resource.
type onlyBroken struct {
	generic.RESTOptions
	resource string
}

func (o onlyBroken) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	if resource.Resource == o.resource {
		return generic.RESTOptions{}, errBroken
	}
	return o.RESTOptions.GetRESTOptions(resource, example)
}

func TestStorageErrors(t *testing.T) {
	etcd, server := registrytest.NewEtcdStorageForResource(t, coordination.Resource("evictionrequests"))
	t.Cleanup(func() { server.Terminate(t) })
	options := generic.RESTOptions{StorageConfig: etcd, Decorator: generic.UndecoratedStorage, ResourcePrefix: "evictionrequests"}
	setGates(t, true, true, true)
	for _, resource := range []string{"evictionrequests", "nodemaintenances", "nodemaintenancebudgets"} {
		_, err := RESTStorageProvider{KubeAPIServer: true}.NewRESTStorage(servedVersion(true), onlyBroken{options, resource})
		if !errors.Is(err, errBroken) {
			t.Errorf("%s: got error %v, want %v", resource, err, errBroken)
		}
	}
}

var errBroken = errors.New("broken")
