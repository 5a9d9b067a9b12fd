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

package testcluster

import (
	"context"
	"sync"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/evictionrequest"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/returns"
	"k8s.io/kubernetes/pkg/controller/util/serverclock"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/clock"
)

// The users of the controllers in kube-controller-manager. Tests run them with the permissions of
// their bootstrap roles.
const (
	MaintenanceUser = "system:serviceaccount:kube-system:nodemaintenance-controller"
	EvictionUser    = "system:serviceaccount:kube-system:evictionrequest-controller"
)

// StartMaintenanceController starts the nodemaintenance controller with the given client.
func (c *Cluster) StartMaintenanceController(client clientset.Interface, now clock.WithTicker) (stop func()) {
	c.T.Helper()
	ctx, cancel := context.WithCancel(c.T.Context())
	factory := informers.NewSharedInformerFactory(client, 0)
	controller := c.newMaintenanceController(ctx, factory, client, now)
	return c.Run(ctx, cancel, factory, func() { controller.Run(ctx, 4) })
}

// StartSharing starts both controllers with shared informers, as kube-controller-manager does.
func (c *Cluster) StartSharing(maintenanceClient, evictionClient clientset.Interface, now clock.WithTicker) (stop func()) {
	c.T.Helper()
	ctx, cancel := context.WithCancel(c.T.Context())
	factory := informers.NewSharedInformerFactory(maintenanceClient, 0)
	evictions := c.newEvictionController(ctx, factory, evictionClient, now)
	maintenances := c.newMaintenanceController(ctx, factory, maintenanceClient, now)
	return c.Run(ctx, cancel, factory, func() {
		var running sync.WaitGroup
		running.Go(func() { evictions.Run(ctx, 4, 4) })
		running.Go(func() { maintenances.Run(ctx, 4) })
		running.Wait()
	})
}

func (c *Cluster) newMaintenanceController(ctx context.Context, factory informers.SharedInformerFactory, client clientset.Interface, now clock.WithTicker) *nodemaintenance.Controller {
	c.T.Helper()
	controller, err := nodemaintenance.New(ctx, nodemaintenance.Config{
		Maintenances:         factory.Coordination().V1alpha1().NodeMaintenances(),
		Requests:             factory.Coordination().V1alpha1().EvictionRequests(),
		Nodes:                factory.Core().V1().Nodes(),
		Pods:                 factory.Core().V1().Pods(),
		PodDisruptionBudgets: factory.Policy().V1().PodDisruptionBudgets(),
		Client:               client,
		RequestClient:        client,
		EventClient:          client,
		Owners: &returns.OwnerInformers{
			Jobs: factory.Batch().V1().Jobs(), ReplicaSets: factory.Apps().V1().ReplicaSets(),
			StatefulSets: factory.Apps().V1().StatefulSets(), ReplicationControllers: factory.Core().V1().ReplicationControllers(),
		},
		Fleet: fleetInformers(factory),
		Clock: serverclock.New(now),
	})
	if err != nil {
		c.T.Fatalf("creating the nodemaintenance controller: %v", err)
	}
	return controller
}

// fleetInformers returns what kube-controller-manager passes to the controller.
func fleetInformers(factory informers.SharedInformerFactory) *nodemaintenance.FleetInformers {
	if !utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceBudgets) {
		return nil
	}
	return &nodemaintenance.FleetInformers{
		Budgets: factory.Coordination().V1alpha1().NodeMaintenanceBudgets(), DaemonSets: factory.Apps().V1().DaemonSets(),
		Namespaces: factory.Core().V1().Namespaces(), VolumeAttachments: factory.Storage().V1().VolumeAttachments(), Claims: factory.Core().V1().PersistentVolumeClaims(),
	}
}

// StartEvictionController starts the evictionrequest controller with the given client, for one
// namespace, or for all if it is "".
func (c *Cluster) StartEvictionController(client clientset.Interface, namespace string, now clock.WithTicker) (stop func()) {
	c.T.Helper()
	ctx, cancel := context.WithCancel(c.T.Context())
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	controller := c.newEvictionController(ctx, factory, client, now)
	return c.Run(ctx, cancel, factory, func() { controller.Run(ctx, 4, 4) })
}

func (c *Cluster) newEvictionController(ctx context.Context, factory informers.SharedInformerFactory, client clientset.Interface, now clock.WithTicker) *evictionrequest.Controller {
	c.T.Helper()
	controller, err := evictionrequest.NewWithClock(ctx,
		factory.Coordination().V1alpha1().EvictionRequests(),
		factory.Core().V1().Pods(),
		factory.Core().V1().Nodes(),
		factory.Policy().V1().PodDisruptionBudgets(),
		client, client, client, time.Hour, now)
	if err != nil {
		c.T.Fatalf("creating the evictionrequest controller: %v", err)
	}
	return controller
}

// StartDisruptionController starts the controller that updates the status of PodDisruptionBudgets,
// for one namespace, or for all if it is "".
func (c *Cluster) StartDisruptionController(namespace string) {
	c.T.Helper()
	ctx, cancel := context.WithCancel(c.T.Context())
	factory := informers.NewSharedInformerFactoryWithOptions(c.Client, 0, informers.WithNamespace(namespace))
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(c.Client.Discovery()))
	scaleClient, err := scale.NewForConfig(c.Config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(c.Client.Discovery()))
	if err != nil {
		c.T.Fatalf("creating a scale client: %v", err)
	}
	controller := disruption.NewDisruptionController(ctx,
		factory.Core().V1().Pods(),
		factory.Policy().V1().PodDisruptionBudgets(),
		factory.Core().V1().ReplicationControllers(),
		factory.Apps().V1().ReplicaSets(),
		factory.Apps().V1().Deployments(),
		factory.Apps().V1().StatefulSets(),
		c.Client, mapper, scaleClient, c.Client.Discovery())
	c.Run(ctx, cancel, factory, func() { controller.Run(ctx, 1) })
}
