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

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/features"
)

// interceptDaemonSetEvictions makes the DaemonSet controller an interceptor, if its gate is on.
func interceptDaemonSetEvictions(controllerContext ControllerContext, controllerName string, dsc *daemon.DaemonSetsController) (runInterceptor, error) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceAwareDaemonSet) {
		return nil, nil
	}
	// The service account is not named like the controller.
	client, err := newEvictionClient(controllerContext, "daemon-set-controller")
	if err != nil {
		return nil, err
	}
	interceptor, err := daemon.NewInterceptor(
		dsc,
		controllerContext.InformerFactory.Coordination().V1alpha1().NodeMaintenances(),
		controllerContext.InformerFactory.Coordination().V1alpha1().EvictionRequests(),
		controllerContext.InformerFactory.Core().V1().Nodes(),
		controllerContext.InformerFactory.Core().V1().Pods(),
		controllerContext.InformerFactory.Scheduling().V1().PriorityClasses(),
		client,
	)
	if err != nil {
		return nil, fmt.Errorf("creating the interceptor of the %s: %w", controllerName, err)
	}
	return interceptor.Run, nil
}
