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

package features

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/featuregate"
)

// A component does not start with a gate on whose dependency is off.
func TestDependenciesOfEvictionGates(t *testing.T) {
	for gate, want := range map[featuregate.Feature][]featuregate.Feature{
		EvictionRequestAPI:            {},
		EvictionRequestForEvictions:   {EvictionRequestAPI},
		DeclarativeNodeMaintenance:    {EvictionRequestAPI},
		DeploymentPodSurge:            {EvictionRequestAPI},
		DownscalePodPicker:            {},
		EvictionLane:                  {},
		LifecycleEvictions:            {EvictionRequestAPI},
		NodeMaintenanceAwareDaemonSet: {DeclarativeNodeMaintenance},
		NodeMaintenanceAwareKubelet:   {DeclarativeNodeMaintenance},
		NodeMaintenanceBudgets:        {DeclarativeNodeMaintenance},
		StatefulSetEvictionPacing:     {EvictionRequestAPI},
	} {
		if diff := cmp.Diff(want, defaultKubernetesFeatureGateDependencies[gate]); diff != "" {
			t.Errorf("dependencies of %s (-want, +got):\n%s", gate, diff)
		}
	}
}
