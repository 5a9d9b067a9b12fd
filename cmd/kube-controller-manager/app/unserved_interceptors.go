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

package app

import (
	"fmt"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/features"
)

// unservedInterceptors returns the interceptors that only this process could run and does not run,
// with the reason. They have no stand-in, so drains would wait for them without any explanation.
func unservedInterceptors(controllerContext ControllerContext) map[string]string {
	const without = "; nothing deletes DaemonSet pods of nodes that are drained"
	why := ""
	switch {
	case !utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceAwareDaemonSet):
		why = fmt.Sprintf("feature gate %s of the kube-controller-manager is off", features.NodeMaintenanceAwareDaemonSet)
	case !controllerContext.IsControllerEnabled(NewControllerDescriptors()[names.DaemonSetController]):
		why = fmt.Sprintf("%s of the kube-controller-manager is disabled", names.DaemonSetController)
	default:
		return nil
	}
	return map[string]string{coordinationv1alpha1.EvictionInterceptorDaemonSet: why + without}
}
