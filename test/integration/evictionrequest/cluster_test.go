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

package evictionrequest

import (
	"context"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

const (
	// pollInterval is short, because the tests wait for hundreds of states.
	pollInterval = 20 * time.Millisecond

	// pollTimeout is how long a test waits for a state.
	pollTimeout = testcluster.PollTimeout

	// controllerUser is the user of the evictionrequest-controller in kube-controller-manager. All
	// tests run it with only the permissions of its bootstrap role.
	controllerUser = testcluster.EvictionUser
)

// cluster is a namespace of an API server for one test. The controllers that the test starts watch
// only this namespace.
type cluster struct {
	*testcluster.Cluster
	t         *testing.T
	config    *rest.Config
	client    clientset.Interface
	namespace string
	// clock is the fake clock of the test, if it uses one.
	clock *testingclock.FakeClock
}

// startAPIServer starts an API server with the alpha API enabled by flag. Whether the API is served
// depends only on the gate. The server stops at the end of the test.
func startAPIServer(t *testing.T, etcd *storagebackend.Config, gateOn bool) *rest.Config {
	t.Helper()
	return testcluster.StartAPIServer(t, etcd, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: gateOn,
		// This gate adds the permissions of the workload controllers as interceptors.
		features.DeploymentPodSurge: gateOn,
		// Pods keep spec.schedulingGroup only with this gate.
		features.GenericWorkload: true,
	})
}

// newCluster returns a new namespace of the API server, with a client of an administrator.
func newCluster(t *testing.T, config *rest.Config) *cluster {
	t.Helper()
	return clusterIn(testcluster.New(t, config, "evictionrequest"))
}

// clusterIn is newCluster for an existing namespace.
func clusterIn(c *testcluster.Cluster) *cluster {
	c.PollTimeout = pollTimeout
	return &cluster{Cluster: c, t: c.T, config: c.Config, client: c.Client, namespace: c.Namespace}
}

// startController starts the evictionrequest controller. stop stops it and waits until it has
// stopped, as does the end of the test. The API server uses the same clock, because it rejects
// times that differ from its own.
func (c *cluster) startController(now clock.WithTicker) (stop func()) {
	c.t.Helper()
	c.SetServerTime(now)
	return c.startControllerWith(c.ClientOf(controllerUser), now)
}

// startControllerWith starts the evictionrequest controller with the given client.
func (c *cluster) startControllerWith(client clientset.Interface, now clock.WithTicker) (stop func()) {
	c.t.Helper()
	return c.StartEvictionController(client, c.namespace, now)
}

func (c *cluster) informers(client clientset.Interface) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(c.namespace))
}

// awaitRequest polls the request for a pod until reached returns true.
func (c *cluster) awaitRequest(pod *v1.Pod, what string, reached func(*coordinationv1alpha1.EvictionRequest) bool) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	var request *coordinationv1alpha1.EvictionRequest
	c.Eventually(what, func(ctx context.Context) (bool, string) {
		var err error
		request, err = c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return reached(request), describe(request)
	})
	return request
}
