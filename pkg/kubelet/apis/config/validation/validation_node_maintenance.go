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

package validation

import (
	"fmt"

	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

// validateNodeMaintenance validates how the kubelet takes part in node maintenances.
func validateNodeMaintenance(kc *kubeletconfig.KubeletConfiguration, gate featuregate.FeatureGate) []error {
	if !kc.PreferNodeMaintenanceDuringGracefulShutdown {
		return nil
	}
	var errs []error
	if !gate.Enabled(features.NodeMaintenanceAwareKubelet) {
		errs = append(errs, fmt.Errorf("invalid configuration: preferNodeMaintenanceDuringGracefulShutdown true requires feature gate %s", features.NodeMaintenanceAwareKubelet))
	}
	if kc.ShutdownGracePeriod.Duration <= 0 && len(kc.ShutdownGracePeriodByPodPriority) == 0 {
		errs = append(errs, fmt.Errorf("invalid configuration: preferNodeMaintenanceDuringGracefulShutdown true has no effect without a graceful shutdown: set shutdownGracePeriod or shutdownGracePeriodByPodPriority too"))
	}
	return errs
}
