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
	"context"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/features"
)

// interceptDeploymentEvictions makes the Deployment controller an interceptor, if its gate
// is on.
func interceptDeploymentEvictions(controllerContext ControllerContext, controllerName string, dc *deployment.DeploymentController) (runInterceptor, error) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.DeploymentPodSurge) {
		return nil, nil
	}
	reportClient, client, err := newInterceptorClients(controllerContext, controllerName)
	if err != nil {
		return nil, err
	}
	informers := controllerContext.InformerFactory
	if err := dc.SurgeForEvictions(
		deployment.SurgeInformers{
			Requests:    informers.Coordination().V1alpha1().EvictionRequests(),
			Deployments: informers.Apps().V1().Deployments(),
			ReplicaSets: informers.Apps().V1().ReplicaSets(),
			Pods:        informers.Core().V1().Pods(),
			Nodes:       informers.Core().V1().Nodes(),
			Budgets:     informers.Policy().V1().PodDisruptionBudgets(),
		},
		reportClient,
		client,
	); err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		if err := dc.InterceptEvictions(ctx); err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "The Deployment controller does not intercept evictions")
		}
	}, nil
}

// newSurgeClient returns the client of a controller that takes part in surges. With the gate on,
// drains make it work in bursts that exceed the default limits: the replacement of a pod takes
// about ten calls, and the default is 20 calls per second.
func newSurgeClient(controllerContext ControllerContext, controllerName string) (kubernetes.Interface, error) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.DeploymentPodSurge) {
		return controllerContext.NewClient(controllerName)
	}
	return newEvictionClient(controllerContext, controllerName)
}
