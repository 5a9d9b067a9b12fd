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
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/registry/coordination/evictionrequest"
	"k8s.io/kubernetes/pkg/registry/registrytest"
)

// countedStores counts the storages that are made of the options. Each has its own connection to etcd.
type countedStores struct {
	generic.RESTOptions
	stores map[string]int
}

func (c countedStores) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	c.stores[resource.Resource]++
	return c.RESTOptions.GetRESTOptions(resource, example)
}

// The endpoint, and the fence that asks drains and calls, read each kind by one connection.
func TestConnectionsAreShared(t *testing.T) {
	all := map[string]int{"pods": 1, "nodes": 1, "nodemaintenances": 1, "namespaces": 1}
	for name, test := range map[string]struct {
		drains          bool
		endpoint, fence map[string]int
	}{
		"with drains":    {drains: true, endpoint: all, fence: all},
		"without drains": {endpoint: map[string]int{"pods": 1}, fence: map[string]int{"pods": 1, "nodes": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
				features.EvictionRequestAPI: true, features.DeclarativeNodeMaintenance: test.drains,
			})
			config, server := registrytest.NewEtcdStorageForResource(t, coordination.Resource("evictionrequests"))
			t.Cleanup(func() { server.Terminate(t) })
			options := generic.RESTOptions{StorageConfig: config, Decorator: generic.UndecoratedStorage, DeleteCollectionWorkers: 1, ResourcePrefix: "evictionrequests"}
			counted := countedStores{options, map[string]int{}}
			main, _, err := NewREST(counted, evictionrequest.Retention{})
			if err != nil {
				t.Fatal(err)
			}
			want := maps.Clone(test.endpoint)
			want["evictionrequests"] = 1
			if diff := cmp.Diff(want, counted.stores); diff != "" {
				t.Errorf("storages of the endpoint (-want +got):\n%s", diff)
			}
			counted.stores = map[string]int{}
			drains, err := NewDrains(counted)
			if err != nil {
				t.Fatal(err)
			}
			calls, err := NewCalls(counted, drains)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.fence, counted.stores); diff != "" {
				t.Errorf("storages of drains and calls (-want +got):\n%s", diff)
			}
			calls.Destroy()
			drains.Destroy()
			main.Destroy()
		})
	}
}

// Only the reader that has made a connection closes it: others may go on reading by it.
func TestBorrowedReaderClosesNothing(t *testing.T) {
	closed := 0
	first := &reader{destroy: func() { closed++ }}
	if first.borrowed().destroy(); closed != 0 {
		t.Error("a borrowed reader closes the connection")
	}
	if first.destroy(); closed != 1 {
		t.Errorf("the connection is closed %d times, want once", closed)
	}
}
