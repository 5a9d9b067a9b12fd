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

// Package nodemaintenance has what a kubelet declares that stops static pods for maintenances.
package nodemaintenance

import (
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures/types"
)

// AwareKubelet is the name of the feature in status.declaredFeatures of a node, and of its feature gate: the
// kubelet stops static pods for maintenances of its node, and starts them after their end (KEP-4212).
const AwareKubelet = "NodeMaintenanceAwareKubelet"

// Feature is what the kubelet declares. It concerns no pod that is scheduled or changed: the
// nodemaintenance-controller reads it, and leaves static pods alone that nobody would stop.
var Feature types.Feature = feature{}

type feature struct{}

// Name implements Feature.
func (feature) Name() string { return AwareKubelet }

// Discover implements Feature.
func (feature) Discover(cfg *types.NodeConfiguration) bool {
	return cfg.FeatureGates.Enabled(AwareKubelet)
}

// Requirements implements Feature.
func (feature) Requirements() *types.FeatureRequirements {
	return &types.FeatureRequirements{EnabledFeatureGates: []string{AwareKubelet}}
}

// InferForScheduling implements Feature.
func (feature) InferForScheduling(*types.PodInfo) bool { return false }

// InferForUpdate implements Feature.
func (feature) InferForUpdate(_, _ *types.PodInfo) bool { return false }

// MaxVersion implements Feature.
func (feature) MaxVersion() *version.Version { return nil }
