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

package kubeapiserver

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	serveroptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/lifecycle"

	// Registers the versions of the API group.
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
)

// Kinds of v1alpha1 alone cannot be stored in the preferred version of their group.
func TestCoordinationKindsAreStoredAsV1alpha1(t *testing.T) {
	factory, err := NewStorageFactoryConfig().Complete(serveroptions.NewEtcdOptions(&storagebackend.Config{})).New()
	if err != nil {
		t.Fatal(err)
	}
	want := schema.GroupVersion{Group: coordination.GroupName, Version: "v1alpha1"}
	for _, resource := range []string{"evictionrequests", "nodemaintenances"} {
		got, err := factory.ResourceEncodingConfig.StorageEncodingFor(coordination.Resource(resource))
		if err != nil || got != want {
			t.Errorf("%s are stored as %v, %v, want %v", resource, got, err, want)
		}
	}
}

// Upstream has a kind of the same resource name in another group. What is stored stays where it is.
func TestEvictionRequestsHaveTheirOwnPlaces(t *testing.T) {
	factory, err := NewStorageFactoryConfig().Complete(serveroptions.NewEtcdOptions(&storagebackend.Config{})).New()
	if err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[schema.GroupResource]string{
		coordination.Resource("evictionrequests"): "evictionrequests",
		lifecycle.Resource("evictionrequests"):    "lifecycleevictionrequests",
	} {
		if got := factory.ResourcePrefix(resource); got != want {
			t.Errorf("%s are stored in %s, want %s", resource, got, want)
		}
	}
}
