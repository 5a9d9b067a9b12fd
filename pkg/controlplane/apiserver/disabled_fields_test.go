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
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	extensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	genericapiserver "k8s.io/apiserver/pkg/server"
	apiserveroptions "k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/options"
	"k8s.io/kubernetes/pkg/features"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
)

const (
	podSpec       = "io.k8s.api.core.v1.PodSpec"
	interceptor   = "io.k8s.api.core.v1.EvictionInterceptor"
	nodeStatus    = "io.k8s.api.core.v1.NodeStatus"
	maintenance   = "io.k8s.api.core.v1.MaintenanceStatus"
	planEntry     = "io.k8s.api.core.v1.DrainPlanEntry"
	nodeAdmission = "io.k8s.api.core.v1.MaintenanceAdmission"
	nmSpec        = "io.k8s.api.coordination.v1alpha1.NodeMaintenanceSpec"
	escalation    = "io.k8s.api.coordination.v1alpha1.NodeMaintenanceEscalationStep"
	podPolicy     = "io.k8s.api.coordination.v1alpha1.NodeMaintenancePodPolicy"
	drainedWhen   = "io.k8s.api.coordination.v1alpha1.NodeMaintenanceDrainedWhen"
	settle        = "io.k8s.api.coordination.v1alpha1.NodeMaintenanceSettle"
	drainStatus   = "io.k8s.api.coordination.v1alpha1.DrainStatus"
	nmStatus      = "io.k8s.api.coordination.v1alpha1.NodeMaintenanceStatus"
	rollout       = "io.k8s.api.coordination.v1alpha1.NodeMaintenanceRollout"
	rolloutStatus = "io.k8s.api.coordination.v1alpha1.NodeMaintenanceRolloutStatus"
	waitCause     = "io.k8s.api.coordination.v1alpha1.NodeMaintenanceWait"
	pending       = "io.k8s.api.coordination.v1alpha1.NodeMaintenancePendingAdmission"
	deployment    = "io.k8s.api.apps.v1.DeploymentSpec"
	replicaSet    = "io.k8s.api.apps.v1.ReplicaSetSpec"
	picker        = "io.k8s.api.core.v1.DownscalePodPicker"
	httpPicker    = "io.k8s.api.core.v1.HTTPDownscalePodPicker"
	pickerHeader  = "io.k8s.api.core.v1.HTTPDownscalePodPickerHeader"
	headerSource  = "io.k8s.api.core.v1.HTTPDownscalePodPickerHeaderSource"
	secretKey     = "io.k8s.api.core.v1.SecretKeySelector"
	deleteOptions = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
)

// publishedSchemas are the definitions that our gates affect, as the server builds them.
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
		nodeStatus:    withProperties("conditions", "maintenanceStatus"),
		maintenance:   withProperties("drainTargets", "admissions", "unclaimed", "emptiedTime"),
		nodeAdmission: withProperties("maintenanceName"),
		nmSpec:        withProperties("stage", "rollout", "podPolicies", "drainedWhen", "escalation"),
		escalation:    withProperties("afterSeconds"),
		podPolicy:     withProperties("action"),
		drainedWhen:   withProperties("volumes"),
		settle:        withProperties("replacements"),
		drainStatus:   withProperties("drainMessage", "skippedPods", "escalatedPods"),
		nmStatus:      withProperties("drainStatus", "rolloutStatus"),
		rollout:       withProperties("paused"),
		rolloutStatus: withProperties("doneNodes"),
		waitCause:     withProperties("reason"),
		pending:       withProperties("nodeName"),
		planEntry:     withProperties("podType"),
		deployment:    withProperties("replicas", "downscalePodPicker"),
		replicaSet:    withProperties("replicas", "downscalePodPicker"),
		picker:        withProperties("http"),
		httpPicker:    withProperties("host"),
		pickerHeader:  withProperties("name"),
		headerSource:  withProperties("secretKeyRef"),
		secretKey:     withProperties("key"),
		deleteOptions: withKinds("v1", "v1alpha1", "v1alpha2"),
	}
}

// withKinds is a definition with a kind in some versions of our group, and in the same version of
// another group.
func withKinds(versions ...string) spec.Schema {
	kinds := []any{map[string]any{"group": "storage.k8s.io", "version": "v1alpha1", "kind": "DeleteOptions"}}
	for _, version := range versions {
		kinds = append(kinds, map[string]any{"group": "coordination.k8s.io", "version": version, "kind": "DeleteOptions"})
	}
	return spec.Schema{VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{extensionGVK: kinds}}}
}

// document is the JSON of the definitions.
func document(t *testing.T, definitions spec.Definitions) string {
	t.Helper()
	data, err := json.MarshalIndent(definitions, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// setGates sets all gates. Each of the first three requires the one before.
func setGates(t *testing.T, evictionRequests, nodeMaintenances, budgets, podPickers bool) {
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: evictionRequests, features.DeclarativeNodeMaintenance: nodeMaintenances, features.NodeMaintenanceBudgets: budgets,
		features.DownscalePodPicker: podPickers,
	})
}

func TestHideDisabledFields(t *testing.T) {
	withoutBudgets := func(want map[string]spec.Schema) {
		for _, name := range []string{nodeAdmission, rollout, rolloutStatus, waitCause, pending, podPolicy, drainedWhen, settle, escalation} {
			delete(want, name)
		}
		delete(want[maintenance].Properties, "admissions")
		delete(want[maintenance].Properties, "unclaimed")
		delete(want[maintenance].Properties, "emptiedTime")
		delete(want[drainStatus].Properties, "skippedPods")
		delete(want[nmSpec].Properties, "rollout")
		delete(want[nmSpec].Properties, "podPolicies")
		delete(want[nmSpec].Properties, "drainedWhen")
		delete(want[nmSpec].Properties, "escalation")
		delete(want[drainStatus].Properties, "escalatedPods")
		delete(want[nmStatus].Properties, "rolloutStatus")
	}
	withoutMaintenances := func(want map[string]spec.Schema) {
		withoutBudgets(want)
		delete(want, maintenance)
		delete(want, planEntry)
		delete(want[nodeStatus].Properties, "maintenanceStatus")
	}
	withoutPickers := func(want map[string]spec.Schema) {
		for _, name := range []string{picker, httpPicker, pickerHeader, headerSource} {
			delete(want, name)
		}
		delete(want[deployment].Properties, "downscalePodPicker")
		delete(want[replicaSet].Properties, "downscalePodPicker")
	}
	tests := map[string]struct {
		evictionRequests, maintenances, budgets, podPickers bool
		hide                                                func(map[string]spec.Schema)
	}{
		"all gates off": {hide: func(want map[string]spec.Schema) {
			withoutMaintenances(want)
			withoutPickers(want)
			delete(want, interceptor)
			delete(want[podSpec].Properties, "evictionInterceptors")
		}},
		"maintenances off": {evictionRequests: true, podPickers: true, hide: withoutMaintenances},
		"budgets off":      {evictionRequests: true, maintenances: true, podPickers: true, hide: withoutBudgets},
		"pickers off":      {evictionRequests: true, maintenances: true, budgets: true, hide: withoutPickers},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			setGates(t, test.evictionRequests, test.maintenances, test.budgets, test.podPickers)
			config := &genericapiserver.Config{OpenAPIConfig: &common.Config{}, OpenAPIV3Config: &common.OpenAPIV3Config{}}
			hideDisabledFields(config)
			want := publishedSchemas()
			test.hide(want)

			t.Run("version 3", func(t *testing.T) {
				testPublishedV3(t, config.OpenAPIV3Config, want)
			})
			t.Run("version 2", func(t *testing.T) {
				// Only this document lists the kinds of all versions.
				if !test.evictionRequests {
					want[deleteOptions] = withKinds("v1", "v1alpha2")
				}
				testPublishedV2(t, config.OpenAPIConfig, want)
			})
			t.Run("version 3 without components", func(t *testing.T) {
				if _, err := config.OpenAPIV3Config.PostProcessSpec(&spec3.OpenAPI{}); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func testPublishedV2(t *testing.T, config *common.Config, want spec.Definitions) {
	built := publishedSchemas()
	own := map[string]map[string]spec.Schema{}
	for name := range ownFields {
		own[name] = built[name].Properties
	}
	published, err := config.PostProcessSpec(&spec.Swagger{SwaggerProps: spec.SwaggerProps{Definitions: built}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(document(t, want), document(t, published.Definitions)); diff != "" {
		t.Errorf("unexpected definitions (-want +got):\n%s", diff)
	}
	expectOwnFields(t, own)
}

func testPublishedV3(t *testing.T, config *common.OpenAPIV3Config, want spec.Definitions) {
	built := map[string]*spec.Schema{}
	for name, schema := range publishedSchemas() {
		built[name] = &schema
	}
	own := map[string]map[string]spec.Schema{}
	for name := range ownFields {
		own[name] = built[name].Properties
	}
	document3, err := config.PostProcessSpec(&spec3.OpenAPI{Components: &spec3.Components{Schemas: built}})
	if err != nil {
		t.Fatal(err)
	}
	published := spec.Definitions{}
	for name, schema := range document3.Components.Schemas {
		published[name] = *schema
	}
	if diff := cmp.Diff(document(t, want), document(t, published)); diff != "" {
		t.Errorf("unexpected schemas (-want +got):\n%s", diff)
	}
	expectOwnFields(t, own)
}

// ownFields are the fields of our gates, by the definitions that they are in.
var ownFields = map[string]string{
	podSpec: "evictionInterceptors", nodeStatus: "maintenanceStatus", deployment: "downscalePodPicker", replicaSet: "downscalePodPicker",
}

// expectOwnFields expects the server's own schemas to be complete: objects that are stored with a
// field must stay applicable.
func expectOwnFields(t *testing.T, own map[string]map[string]spec.Schema) {
	t.Helper()
	for definition, field := range ownFields {
		if _, ok := own[definition][field]; !ok {
			t.Errorf("the server's own schema %s lost %s", definition, field)
		}
	}
}

func TestHideDisabledFieldsLeavesEnabledOnes(t *testing.T) {
	setGates(t, true, true, true, true)
	config := &genericapiserver.Config{OpenAPIConfig: &common.Config{}, OpenAPIV3Config: &common.OpenAPIV3Config{}}
	hideDisabledFields(config)
	if config.OpenAPIConfig.PostProcessSpec != nil || config.OpenAPIV3Config.PostProcessSpec != nil {
		t.Error("with every gate on, the documents are published as they are")
	}
}

// The generic configuration of a server hides the fields.
func TestBuildGenericConfigHidesDisabledFields(t *testing.T) {
	setGates(t, false, false, false, false)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	opts := options.NewOptions()
	opts.SecureServing = (&apiserveroptions.SecureServingOptions{BindAddress: net.IPv4(127, 0, 0, 1)}).WithLoopback()
	opts.SecureServing.Listener, opts.SecureServing.BindPort = listener, listener.Addr().(*net.TCPAddr).Port
	completed, err := opts.Complete(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	schemes := []*runtime.Scheme{legacyscheme.Scheme, extensionsapiserver.Scheme, aggregatorscheme.Scheme}
	config, _, _, err := BuildGenericConfig(completed, schemes, nil, generatedopenapi.GetOpenAPIDefinitions, nil)
	if err != nil {
		t.Fatal(err)
	}
	if config.OpenAPIConfig.PostProcessSpec == nil || config.OpenAPIV3Config.PostProcessSpec == nil {
		t.Error("with the gates off, the documents are published as they are")
	}
}
