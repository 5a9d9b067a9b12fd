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

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/transport"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/evictionrequest"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/returns"
	"k8s.io/kubernetes/pkg/controller/util/serverclock"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/clock"
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
		if respondersAct(ctx, controllerContext, client) {
			if err := controller.LetRespondersAct(); err != nil {
				utilruntime.HandleErrorWithContext(ctx, err, "Responders do not act")
			}
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
	now := serverclock.New(clock.RealClock{})
	client, err := newEvictionClient(controllerContext, controllerName, now.Transport)
	if err != nil {
		return nil, err
	}
	requestClient, err := newEvictionClient(controllerContext, controllerName, now.Transport)
	if err != nil {
		return nil, err
	}
	eventClient, err := newEvictionClient(controllerContext, controllerName, now.Transport)
	if err != nil {
		return nil, err
	}
	absences, watchAbsences, err := unservedInterceptors(controllerContext, client)
	if err != nil {
		return nil, err
	}
	create := func(budgetsServed bool) (*nodemaintenance.Controller, error) {
		factory := controllerContext.InformerFactory
		controller, err := nodemaintenance.New(ctx, nodemaintenance.Config{
			Maintenances:         factory.Coordination().V1alpha1().NodeMaintenances(),
			Requests:             factory.Coordination().V1alpha1().EvictionRequests(),
			Nodes:                factory.Core().V1().Nodes(),
			Pods:                 factory.Core().V1().Pods(),
			PodDisruptionBudgets: factory.Policy().V1().PodDisruptionBudgets(),
			Client:               client,
			RequestClient:        requestClient,
			EventClient:          eventClient,
			Absences:             absences,
			Owners: &returns.OwnerInformers{
				Jobs:                   factory.Batch().V1().Jobs(),
				ReplicaSets:            factory.Apps().V1().ReplicaSets(),
				StatefulSets:           factory.Apps().V1().StatefulSets(),
				ReplicationControllers: factory.Core().V1().ReplicationControllers(),
			},
			Fleet: fleetInformers(controllerContext, budgetsServed),
			Clock: now,
		})
		if err != nil {
			return nil, fmt.Errorf("creating the %s: %w", controllerName, err)
		}
		return controller, nil
	}
	served, err := servesBudgets(ctx, client)
	if err != nil {
		return newControllerLoop(func(ctx context.Context) {
			defer watchAbsences.start(ctx)()
			runWhenBudgetsKnown(ctx, controllerContext, client, create)
		}, controllerName), nil
	}
	controller, err := create(served)
	if err != nil {
		return nil, err
	}
	return newControllerLoop(func(ctx context.Context) {
		defer watchAbsences.start(ctx)()
		controller.Run(ctx, concurrentNodeMaintenanceSyncs)
	}, controllerName), nil
}

// newEvictionClient returns a client with its own rate limits for a controller that takes part in
// drains, through the transports that wrap the one of its configuration.
func newEvictionClient(controllerContext ControllerContext, controllerName string, wrappers ...transport.WrapperFunc) (kubernetes.Interface, error) {
	config, err := controllerContext.NewClientConfig(controllerName)
	if err != nil {
		return nil, err
	}
	config.QPS *= evictionQPSFactor
	config.Burst *= evictionBurstFactor
	for _, wrapper := range wrappers {
		config.Wrap(wrapper)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the %s: %w", controllerName, err)
	}
	return client, nil
}
