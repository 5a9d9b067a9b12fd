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
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/features"
)

// interceptReplicaSetEvictions makes the ReplicaSet controller an interceptor, if its gate is on. It
// also makes it ask downscale pod pickers, and prefer nodes that are to go, if theirs are.
func interceptReplicaSetEvictions(controllerContext ControllerContext, controllerName string, rsc *replicaset.ReplicaSetController) (runInterceptor, error) {
	if err := askPickers(controllerContext, controllerName, rsc); err != nil {
		return nil, err
	}
	preferDepartingNodes(controllerContext, rsc)
	if !utilfeature.DefaultFeatureGate.Enabled(features.DeploymentPodSurge) {
		return nil, nil
	}
	// With separate clients, evictions do not delay the creation of pods.
	reportClient, evictionClient, err := newInterceptorClients(controllerContext, controllerName)
	if err != nil {
		return nil, err
	}
	return rsc.InterceptEvictions(
		reportClient,
		evictionClient,
		controllerContext.InformerFactory.Apps().V1().Deployments(),
		controllerContext.InformerFactory.Coordination().V1alpha1().EvictionRequests(),
		controllerContext.InformerFactory.Policy().V1().PodDisruptionBudgets(),
	)
}
