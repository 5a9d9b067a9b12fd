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

package controlplane

import (
	"slices"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	coordinationrest "k8s.io/kubernetes/pkg/registry/coordination/rest"
)

// "--runtime-config=api/alpha=true" enables the versions that are disabled by name.
func TestCoordinationV1alpha1IsDisabledByName(t *testing.T) {
	enabled, ok := DefaultAPIResourceConfigSource().GroupVersionConfigs[coordinationv1alpha1.SchemeGroupVersion]
	if enabled || !ok {
		t.Errorf("enabled %t, known %t, want a version that is known and disabled", enabled, ok)
	}
}

// Only a server with pods and nodes serves the resources for them.
func TestCoordinationOfPodsIsServedByKubeAPIServerOnly(t *testing.T) {
	server, config, _ := setUp(t)
	defer server.Terminate(t)
	completed := config.Complete()
	client, err := kubernetes.NewForConfig(config.ControlPlane.Generic.LoopbackClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	full, err := completed.StorageProviders(client)
	if err != nil {
		t.Fatal(err)
	}
	generic, err := completed.ControlPlane.GenericStorageProviders(discovery.NewDiscoveryClient(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		server    string
		providers []controlplaneapiserver.RESTStorageProvider
		want      coordinationrest.RESTStorageProvider
	}{
		{"kube-apiserver", full, coordinationrest.RESTStorageProvider{KubeAPIServer: true}},
		{"a generic server", generic, coordinationrest.RESTStorageProvider{}},
	} {
		if !slices.ContainsFunc(test.providers, func(provider controlplaneapiserver.RESTStorageProvider) bool { return provider == test.want }) {
			t.Errorf("%s does not have the provider %+v", test.server, test.want)
		}
	}
}
