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

package deploymentsurge

import (
	"context"
	"net/http"
	"net/netip"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/transport"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replicaset/podpicker"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
)

// The users of the controllers in kube-controller-manager. All tests run them with the permissions
// of their bootstrap roles.
const (
	managerUser    = "system:kube-controller-manager"
	deploymentUser = "system:serviceaccount:kube-system:deployment-controller"
	replicaSetUser = "system:serviceaccount:kube-system:replicaset-controller"
)

// cluster is a namespace with two nodes, in which the test simulates the scheduler and the
// kubelets.
type cluster struct {
	*testcluster.Cluster
	*kubelet
	// from and to are the names of the nodes. Pods are scheduled to the first schedulable one.
	from, to string
}

// startAPIServer starts an API server with all gates that a surge needs.
func startAPIServer(t *testing.T, etcd *storagebackend.Config) *rest.Config {
	t.Helper()
	return testcluster.StartAPIServer(t, etcd, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI:         true,
		features.DeclarativeNodeMaintenance: true,
		features.DeploymentPodSurge:         true,
		features.DownscalePodPicker:         true,
		features.GenericWorkload:            true,
	}, "--runtime-config=scheduling.k8s.io/v1beta1=true")
}

// newCluster returns a namespace that only the shared controllers handle.
func newCluster(t *testing.T, config *rest.Config) *cluster {
	t.Helper()
	c := &cluster{Cluster: testcluster.New(t, config, "surge")}
	c.from, c.to = c.Namespace+"-from", c.Namespace+"-to"
	for _, name := range []string{c.from, c.to} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := c.Client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatalf("creating node %s: %v", name, err)
		}
	}
	c.kubelet = startKubelet(c)
	return c
}

// startSharedControllers starts the controllers that are not under test, for all namespaces.
func startSharedControllers(t *testing.T, config *rest.Config) {
	t.Helper()
	c := testcluster.New(t, config, "shared")
	c.StartEvictionController(c.ClientOf(testcluster.EvictionUser), "", clock.RealClock{})
	c.StartMaintenanceController(c.ClientOf(testcluster.MaintenanceUser), clock.RealClock{})
	startSilentControllers(t, config)
}

// startSilentControllers starts the shared controllers that have nothing to do with evictions.
func startSilentControllers(t *testing.T, config *rest.Config) {
	t.Helper()
	c := testcluster.New(t, config, "silent")
	c.StartDisruptionController("")
	startEndpointSliceController(c)
	startGarbageCollector(c)
}

func startEndpointSliceController(c *testcluster.Cluster) {
	ctx, cancel := context.WithCancel(c.T.Context())
	factory := informers.NewSharedInformerFactory(c.Client, 0)
	controller := endpointslice.NewController(ctx,
		factory.Core().V1().Pods(),
		factory.Core().V1().Services(),
		factory.Core().V1().Nodes(),
		factory.Discovery().V1().EndpointSlices(),
		100, c.Client, 0)
	c.Run(ctx, cancel, factory, func() { controller.Run(ctx, 4) })
}

func startGarbageCollector(c *testcluster.Cluster) {
	ctx, cancel := context.WithCancel(c.T.Context())
	factory := informers.NewSharedInformerFactory(c.Client, 0)
	client := metadata.NewForConfigOrDie(c.Config)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(c.Client.Discovery()))
	started := make(chan struct{})
	close(started)
	collector, err := garbagecollector.NewGarbageCollector(ctx, c.Client, client, mapper, garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(factory, metadatainformer.NewSharedInformerFactory(client, 0)), started)
	if err != nil {
		c.T.Fatalf("creating the garbage collector: %v", err)
	}
	c.Run(ctx, cancel, factory,
		func() { collector.Run(ctx, 4, time.Minute) },
		func() { collector.Sync(ctx, c.Client.Discovery(), time.Minute) })
}

// startControllers starts the controllers of Deployments and ReplicaSets with the gate on, and
// returns a function to stop them.
func (c *cluster) startControllers() (stop func()) {
	c.T.Helper()
	return c.startControllersThrough(true, func(transport http.RoundTripper) http.RoundTripper { return transport })
}

// startUpstream starts the controllers with the gate off.
func (c *cluster) startUpstream() (stop func()) {
	c.T.Helper()
	return c.startControllersThrough(false, func(transport http.RoundTripper) http.RoundTripper { return transport })
}

func (c *cluster) startControllersThrough(gateOn bool, wrap transport.WrapperFunc) (stop func()) {
	c.T.Helper()
	ctx, cancel := context.WithCancel(c.T.Context())
	factory := informers.NewSharedInformerFactoryWithOptions(c.ClientThrough(managerUser, wrap), 0, informers.WithNamespace(c.Namespace))
	deployments, replicaSets, pods := factory.Apps().V1().Deployments(), factory.Apps().V1().ReplicaSets(), factory.Core().V1().Pods()
	requests := factory.Coordination().V1alpha1().EvictionRequests()
	deploymentClient, replicaSetClient := c.ClientThrough(deploymentUser, wrap), c.ClientThrough(replicaSetUser, wrap)
	dc, err := deployment.NewDeploymentController(ctx, deployments, replicaSets, pods, deploymentClient)
	if err != nil {
		c.T.Fatalf("creating the deployment controller: %v", err)
	}
	rsc := replicaset.NewReplicaSetController(ctx, replicaSets, pods, replicaSetClient, replicaset.BurstReplicas)
	work := []func(){func() { dc.Run(ctx, 5) }, func() { rsc.Run(ctx, 5) }}
	if gateOn {
		if err := dc.SurgeForEvictions(deployment.SurgeInformers{
			Requests: requests, Deployments: deployments, ReplicaSets: replicaSets, Pods: pods,
			Nodes: factory.Core().V1().Nodes(), Budgets: factory.Policy().V1().PodDisruptionBudgets(),
		}, deploymentClient, deploymentClient); err != nil {
			c.T.Fatalf("making the deployment controller an interceptor: %v", err)
		}
		intercept, err := rsc.InterceptEvictions(replicaSetClient, replicaSetClient, deployments, requests, factory.Policy().V1().PodDisruptionBudgets())
		if err != nil {
			c.T.Fatalf("making the replicaset controller an interceptor: %v", err)
		}
		addresses := &podpicker.Addresses{Allowed: []podpicker.Range{{Prefix: netip.MustParsePrefix("127.0.0.1/32")}}}
		if err := rsc.AskPickers(replicaSetClient, replicaSets, addresses, 20); err != nil {
			c.T.Fatalf("making the replicaset controller ask pickers: %v", err)
		}
		work = append(work, func() { _ = dc.InterceptEvictions(ctx) }, func() { intercept(ctx) })
	}
	return c.Run(ctx, cancel, factory, work...)
}
