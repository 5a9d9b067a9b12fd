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
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/features"
	evictionrequeststorage "k8s.io/kubernetes/pkg/registry/coordination/evictionrequest/storage"
	"k8s.io/kubernetes/pkg/registry/registrytest"

	// Registers the versions of the API group.
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
)

// servedVersion is the --runtime-config of the version: on or off.
func servedVersion(enabled bool) *serverstorage.ResourceConfig {
	config := serverstorage.NewResourceConfig()
	if enabled {
		config.EnableVersions(coordinationv1alpha1.SchemeGroupVersion)
	}
	return config
}

// EvictionRequests are served where there are pods, the version is enabled and the
// gate is on, and nowhere else.
func TestEvictionRequestsAreServed(t *testing.T) {
	etcd, server := registrytest.NewEtcdStorageForResource(t, coordination.Resource("evictionrequests"))
	t.Cleanup(func() { server.Terminate(t) })
	options := generic.RESTOptions{StorageConfig: etcd, Decorator: generic.UndecoratedStorage, ResourcePrefix: "evictionrequests"}

	for _, kubeAPIServer := range []bool{true, false} {
		for _, enabled := range []bool{true, false} {
			for _, gate := range []bool{true, false} {
				t.Run(fmt.Sprintf("kube-apiserver %t, enabled %t, gate %t", kubeAPIServer, enabled, gate), func(t *testing.T) {
					featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, gate)
					info, err := RESTStorageProvider{KubeAPIServer: kubeAPIServer}.NewRESTStorage(servedVersion(enabled), options)
					if err != nil {
						t.Fatalf("unexpected error: %v", err)
					}
					var got []string
					for version, resources := range info.VersionedResourcesStorageMap {
						for resource, storage := range resources {
							got = append(got, fmt.Sprintf("%s/%s %T", version, resource, storage))
							if destroyer, ok := storage.(*evictionrequeststorage.REST); ok {
								t.Cleanup(destroyer.Destroy)
							}
						}
					}
					slices.Sort(got)
					var want []string
					if kubeAPIServer && enabled && gate {
						want = []string{"v1alpha1/evictionrequests *storage.REST", "v1alpha1/evictionrequests/status *storage.StatusREST"}
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("unexpected resources (-want, +got):\n%s", diff)
					}
				})
			}
		}
	}
}

func TestEvictionRequestStorageErrors(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, true)
	_, err := RESTStorageProvider{KubeAPIServer: true}.NewRESTStorage(servedVersion(true), brokenOptions{})
	if !errors.Is(err, errBroken) {
		t.Errorf("got error %v, want %v", err, errBroken)
	}
}

var errBroken = errors.New("broken")

type brokenOptions struct{}

func (brokenOptions) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{}, errBroken
}
