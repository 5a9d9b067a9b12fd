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
package apiserver

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	genericapiserver "k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/features"
)

const (
	podSpec       = "io.k8s.api.core.v1.PodSpec"
	interceptor   = "io.k8s.api.core.v1.EvictionInterceptor"
	deleteOptions = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
)

// publishedSchemas are the definitions that our gates have a part in, as the server
// builds them.
func publishedSchemas() map[string]spec.Schema {
	withProperties := func(names ...string) spec.Schema {
		properties := map[string]spec.Schema{}
		for _, name := range names {
			properties[name] = *spec.StringProperty()
		}
		return spec.Schema{SchemaProps: spec.SchemaProps{Properties: properties}}
	}
	return map[string]spec.Schema{
		podSpec:       withProperties("containers", "evictionInterceptors"),
		interceptor:   withProperties("name"),
		deleteOptions: withKinds("v1", "v1alpha1", "v1alpha2"),
	}
}

// withKinds is a definition that stands for a kind in some versions of our group, and
// in the same version of another one.
func withKinds(versions ...string) spec.Schema {
	kinds := []any{map[string]any{"group": "storage.k8s.io", "version": "v1alpha1", "kind": "DeleteOptions"}}
	for _, version := range versions {
		kinds = append(kinds, map[string]any{"group": "coordination.k8s.io", "version": version, "kind": "DeleteOptions"})
	}
	return spec.Schema{VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{extensionGVK: kinds}}}
}

// document is what a client sees of the definitions.
func document(t *testing.T, definitions spec.Definitions) string {
	t.Helper()
	data, err := json.MarshalIndent(definitions, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestHideDisabledFields(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, false)
	config := &genericapiserver.Config{OpenAPIConfig: &common.Config{}, OpenAPIV3Config: &common.OpenAPIV3Config{}}
	hideDisabledFields(config)

	t.Run("version 2", func(t *testing.T) {
		built, want := publishedSchemas(), publishedSchemas()
		delete(want, interceptor)
		delete(want[podSpec].Properties, "evictionInterceptors")
		want[deleteOptions] = withKinds("v1", "v1alpha2")

		shared := built[podSpec].Properties
		published, err := config.OpenAPIConfig.PostProcessSpec(&spec.Swagger{SwaggerProps: spec.SwaggerProps{Definitions: built}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(document(t, want), document(t, published.Definitions)); diff != "" {
			t.Errorf("unexpected definitions (-want +got):\n%s", diff)
		}
		if _, ok := shared["evictionInterceptors"]; !ok {
			t.Error("the server's own schema lost the field too: objects stored with it could not be applied any more")
		}
	})

	t.Run("version 3", func(t *testing.T) {
		built := map[string]*spec.Schema{}
		for name, schema := range publishedSchemas() {
			built[name] = &schema
		}
		own := built[podSpec]
		published, err := config.OpenAPIV3Config.PostProcessSpec(&spec3.OpenAPI{Components: &spec3.Components{Schemas: built}})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := published.Components.Schemas[interceptor]; ok {
			t.Errorf("%s is still published", interceptor)
		}
		if _, ok := published.Components.Schemas[podSpec].Properties["evictionInterceptors"]; ok {
			t.Error("the field is still published")
		}
		if _, ok := own.Properties["evictionInterceptors"]; !ok {
			t.Error("the server's own schema lost the field too")
		}
	})

	t.Run("version 3 without components", func(t *testing.T) {
		if _, err := config.OpenAPIV3Config.PostProcessSpec(&spec3.OpenAPI{}); err != nil {
			t.Error(err)
		}
	})
}

func TestHideDisabledFieldsLeavesEnabledOnes(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, true)
	config := &genericapiserver.Config{OpenAPIConfig: &common.Config{}, OpenAPIV3Config: &common.OpenAPIV3Config{}}
	hideDisabledFields(config)
	if config.OpenAPIConfig.PostProcessSpec != nil || config.OpenAPIV3Config.PostProcessSpec != nil {
		t.Error("with every gate on, the documents are published as they are")
	}
}
