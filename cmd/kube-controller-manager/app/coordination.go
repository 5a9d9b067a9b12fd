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
	"fmt"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/evictionrequest"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance"
	"k8s.io/kubernetes/pkg/features"
)

// concurrentNodeMaintenanceSyncs is the number of nodes that are synced concurrently. Pods are
// requested to leave by separate workers.
const concurrentNodeMaintenanceSyncs = 10

const (
	// evictionQPSFactor and evictionBurstFactor multiply the limits of --kube-api-qps and
	// --kube-api-burst for these controllers, as for the namespace controller: their calls come in
	// bursts when nodes are drained.
	evictionQPSFactor   = 20
	evictionBurstFactor = 100
)

func newEvictionRequestControllerDescriptor() *ControllerDescriptor {
	return &ControllerDescriptor{
		name:                 names.EvictionRequestController,
		constructor:          newEvictionRequestController,
		requiredFeatureGates: []featuregate.Feature{features.EvictionRequestAPI},
	}
}

func newEvictionRequestController(ctx context.Context, controllerContext ControllerContext, controllerName string) (Controller, error) {
	client, err := newEvictionClient(controllerContext, controllerName)
	if err != nil {
		return nil, err
	}
	evictionClient, err := newEvictionClient(controllerContext, controllerName)
	if err != nil {
		return nil, err
	}
	eventClient, err := newEvictionClient(controllerContext, controllerName)
	if err != nil {
		return nil, err
	}
	config := controllerContext.ComponentConfig.EvictionRequestController
	controller, err := evictionrequest.New(
		ctx,
		controllerContext.InformerFactory.Coordination().V1alpha1().EvictionRequests(),
		controllerContext.InformerFactory.Core().V1().Pods(),
		controllerContext.InformerFactory.Core().V1().Nodes(),
		controllerContext.InformerFactory.Policy().V1().PodDisruptionBudgets(),
		client,
		evictionClient,
		eventClient,
		config.EvictionRequestTTLAfterFinished.Duration,
	)
	if err != nil {
		return nil, fmt.Errorf("creating the %s: %w", controllerName, err)
	}
	reportClient, err := newEvictionClient(controllerContext, controllerName)
	if err != nil {
		return nil, err
	}
	absent, err := absentInterceptors(controllerContext, reportClient)
	if err != nil {
		return nil, err
	}
	return newControllerLoop(func(ctx context.Context) {
		for _, interceptor := range absent {
			defer interceptor.start(ctx)()
		}
		controller.Run(ctx, int(config.ConcurrentEvictionRequestSyncs), int(config.ConcurrentEvictions))
	}, controllerName), nil
}

func newNodeMaintenanceControllerDescriptor() *ControllerDescriptor {
	return &ControllerDescriptor{
		name:                 names.NodeMaintenanceController,
		constructor:          newNodeMaintenanceController,
		requiredFeatureGates: []featuregate.Feature{features.DeclarativeNodeMaintenance},
	}
}

func newNodeMaintenanceController(ctx context.Context, controllerContext ControllerContext, controllerName string) (Controller, error) {
	client, err := newEvictionClient(controllerContext, controllerName)
	if err != nil {
		return nil, err
	}
	requestClient, err := newEvictionClient(controllerContext, controllerName)
	if err != nil {
		return nil, err
	}
	eventClient, err := newEvictionClient(controllerContext, controllerName)
	if err != nil {
		return nil, err
	}
	controller, err := nodemaintenance.New(
		ctx,
		controllerContext.InformerFactory.Coordination().V1alpha1().NodeMaintenances(),
		controllerContext.InformerFactory.Coordination().V1alpha1().EvictionRequests(),
		controllerContext.InformerFactory.Core().V1().Nodes(),
		controllerContext.InformerFactory.Core().V1().Pods(),
		controllerContext.InformerFactory.Policy().V1().PodDisruptionBudgets(),
		client,
		requestClient,
		eventClient,
		unservedInterceptors(controllerContext),
		fleetInformers(ctx, controllerContext, client),
	)
	if err != nil {
		return nil, fmt.Errorf("creating the %s: %w", controllerName, err)
	}
	return newControllerLoop(func(ctx context.Context) {
		controller.Run(ctx, concurrentNodeMaintenanceSyncs)
	}, controllerName), nil
}

// fleetInformers returns what the gate NodeMaintenanceBudgets needs, or nil if it is off here or in
// kube-apiserver: a cache of what is not served would never sync, and no node would be drained.
func fleetInformers(ctx context.Context, controllerContext ControllerContext, client kubernetes.Interface) *nodemaintenance.FleetInformers {
	if !utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceBudgets) {
		return nil
	}
	version := coordinationv1alpha1.SchemeGroupVersion.String()
	served, err := client.Discovery().ServerResourcesForGroupVersion(version)
	if err == nil && !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == "nodemaintenancebudgets" }) {
		klog.FromContext(ctx).Info("Maintenances with a rollout begin with no node: kube-apiserver does not serve NodeMaintenanceBudgets. Enable the feature gate there, and restart this process",
			"featureGate", features.NodeMaintenanceBudgets, "apiVersion", version)
		return nil
	}
	return &nodemaintenance.FleetInformers{
		Budgets:    controllerContext.InformerFactory.Coordination().V1alpha1().NodeMaintenanceBudgets(),
		DaemonSets: controllerContext.InformerFactory.Apps().V1().DaemonSets(),
		Namespaces: controllerContext.InformerFactory.Core().V1().Namespaces(),

		VolumeAttachments: controllerContext.InformerFactory.Storage().V1().VolumeAttachments(),
		Claims:            controllerContext.InformerFactory.Core().V1().PersistentVolumeClaims(),
	}
}

// newEvictionClient returns a client with its own rate limits for a controller that takes part in
// drains.
func newEvictionClient(controllerContext ControllerContext, controllerName string) (kubernetes.Interface, error) {
	config, err := controllerContext.NewClientConfig(controllerName)
	if err != nil {
		return nil, err
	}
	config.QPS *= evictionQPSFactor
	config.Burst *= evictionBurstFactor
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the %s: %w", controllerName, err)
	}
	return client, nil
}
