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
	"maps"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/features"
)

// gatedField is a field of a type whose other fields are served without its gate, with the definitions
// that only it refers to.
type gatedField struct {
	gate       featuregate.Feature
	definition string
	property   string
	referred   []string
}

// gatedFields are the fields that this fork adds to upstream's types, and those of its own kinds with
// another gate than the kind.
var gatedFields = []gatedField{{
	gate:       features.EvictionRequestAPI,
	definition: "io.k8s.api.core.v1.PodSpec",
	property:   "evictionInterceptors",
	referred:   []string{"io.k8s.api.core.v1.EvictionInterceptor"},
}, {
	gate:       features.DeclarativeNodeMaintenance,
	definition: "io.k8s.api.core.v1.NodeStatus",
	property:   "maintenanceStatus",
	// NodeMaintenances also refer to the second one, but are not served without the gate.
	referred: []string{"io.k8s.api.core.v1.MaintenanceStatus", "io.k8s.api.core.v1.DrainPlanEntry"},
}, {
	gate:       features.NodeMaintenanceBudgets,
	definition: "io.k8s.api.core.v1.MaintenanceStatus",
	property:   "admissions",
	referred:   []string{"io.k8s.api.core.v1.MaintenanceAdmission"},
}, {
	gate:       features.NodeMaintenanceBudgets,
	definition: "io.k8s.api.core.v1.MaintenanceStatus",
	property:   "unclaimed",
}, {
	gate:       features.NodeMaintenanceBudgets,
	definition: "io.k8s.api.core.v1.MaintenanceStatus",
	property:   "emptiedTime",
}, {
	gate:       features.NodeMaintenanceBudgets,
	definition: "io.k8s.api.coordination.v1alpha1.NodeMaintenanceSpec",
	property:   "podPolicies",
	referred:   []string{"io.k8s.api.coordination.v1alpha1.NodeMaintenancePodPolicy"},
}, {
	gate:       features.NodeMaintenanceBudgets,
	definition: "io.k8s.api.coordination.v1alpha1.NodeMaintenanceSpec",
	property:   "drainedWhen",
	referred:   []string{"io.k8s.api.coordination.v1alpha1.NodeMaintenanceDrainedWhen"},
}, {
	gate:       features.NodeMaintenanceBudgets,
	definition: "io.k8s.api.coordination.v1alpha1.DrainStatus",
	property:   "skippedPods",
}, {
	gate:       features.NodeMaintenanceBudgets,
	definition: "io.k8s.api.coordination.v1alpha1.NodeMaintenanceSpec",
	property:   "escalation",
	referred:   []string{"io.k8s.api.coordination.v1alpha1.NodeMaintenanceEscalationStep"},
}, {
	gate:       features.NodeMaintenanceBudgets,
	definition: "io.k8s.api.coordination.v1alpha1.DrainStatus",
	property:   "escalatedPods",
}, {
	gate:       features.NodeMaintenanceBudgets,
	definition: "io.k8s.api.coordination.v1alpha1.NodeMaintenanceSpec",
	property:   "rollout",
	referred: []string{
		"io.k8s.api.coordination.v1alpha1.NodeMaintenanceRollout", "io.k8s.api.coordination.v1alpha1.NodeMaintenanceSettle",
	},
}, {
	gate:       features.NodeMaintenanceBudgets,
	definition: "io.k8s.api.coordination.v1alpha1.NodeMaintenanceStatus",
	property:   "rolloutStatus",
	// NodeMaintenanceBudgets also refer to the third one, but are not served without the gate.
	referred: []string{
		"io.k8s.api.coordination.v1alpha1.NodeMaintenanceRolloutStatus", "io.k8s.api.coordination.v1alpha1.NodeMaintenanceWait",
		"io.k8s.api.coordination.v1alpha1.NodeMaintenancePendingAdmission",
	},
}, {
	gate:       features.DownscalePodPicker,
	definition: "io.k8s.api.apps.v1.DeploymentSpec",
	property:   "downscalePodPicker",
}, {
	gate:       features.DownscalePodPicker,
	definition: "io.k8s.api.apps.v1.ReplicaSetSpec",
	property:   "downscalePodPicker",
	// DeploymentSpec refers to them as well, with the same gate.
	referred: []string{
		"io.k8s.api.core.v1.DownscalePodPicker", "io.k8s.api.core.v1.HTTPDownscalePodPicker",
		"io.k8s.api.core.v1.HTTPDownscalePodPickerHeader", "io.k8s.api.core.v1.HTTPDownscalePodPickerHeaderSource",
	},
}}

// gatedVersion is an API version that this fork adds, with its gate.
type gatedVersion struct {
	gate    featuregate.Feature
	version schema.GroupVersion
}

var gatedVersions = []gatedVersion{{
	gate:    features.EvictionRequestAPI,
	version: coordinationv1alpha1.SchemeGroupVersion,
}}

// extensionGVK lists the kinds of a definition. Definitions that all groups share, such as
// DeleteOptions, list all known groups and versions.
const extensionGVK = "x-kubernetes-group-version-kind"

// hideDisabledFields removes fields and versions whose gates are off from the OpenAPI documents
// that the server publishes: clients then see the same as from upstream's server, and report such a
// field as unknown instead of silently losing it. The server's own schemas keep the field, because
// an object that was stored with the field must stay applicable.
func hideDisabledFields(config *genericapiserver.Config) {
	fields := slices.DeleteFunc(slices.Clone(gatedFields), func(f gatedField) bool { return utilfeature.DefaultFeatureGate.Enabled(f.gate) })
	versions := slices.DeleteFunc(slices.Clone(gatedVersions), func(v gatedVersion) bool { return utilfeature.DefaultFeatureGate.Enabled(v.gate) })
	if len(fields) == 0 && len(versions) == 0 {
		return
	}
	config.OpenAPIConfig.PostProcessSpec = func(swagger *spec.Swagger) (*spec.Swagger, error) {
		for _, field := range fields {
			if definition, ok := swagger.Definitions[field.definition]; ok {
				swagger.Definitions[field.definition] = withoutProperty(definition, field.property)
			}
			for _, name := range field.referred {
				delete(swagger.Definitions, name)
			}
		}
		for name, definition := range swagger.Definitions {
			swagger.Definitions[name] = withoutVersions(definition, versions)
		}
		return swagger, nil
	}
	// Version 3 publishes one document per group and version, with its own kinds only.
	config.OpenAPIV3Config.PostProcessSpec = func(document *spec3.OpenAPI) (*spec3.OpenAPI, error) {
		for _, field := range fields {
			if document.Components == nil {
				continue
			}
			if schema, ok := document.Components.Schemas[field.definition]; ok {
				hiding := withoutProperty(*schema, field.property)
				document.Components.Schemas[field.definition] = &hiding
			}
			for _, name := range field.referred {
				delete(document.Components.Schemas, name)
			}
		}
		return document, nil
	}
}

// withoutProperty returns the schema without one of its properties. Schemas share their maps with
// other documents, so the map is copied.
func withoutProperty(schema spec.Schema, property string) spec.Schema {
	schema.Properties = maps.Clone(schema.Properties)
	delete(schema.Properties, property)
	return schema
}

// withoutVersions returns the schema without the kinds of these versions in its list.
func withoutVersions(schema spec.Schema, versions []gatedVersion) spec.Schema {
	kinds, ok := schema.Extensions[extensionGVK].([]any)
	if !ok {
		return schema
	}
	remaining := slices.DeleteFunc(slices.Clone(kinds), func(kind any) bool {
		gvk, ok := kind.(map[string]any)
		return ok && slices.ContainsFunc(versions, func(v gatedVersion) bool {
			return gvk["group"] == v.version.Group && gvk["version"] == v.version.Version
		})
	})
	schema.Extensions = maps.Clone(schema.Extensions)
	schema.Extensions[extensionGVK] = remaining
	return schema
}
