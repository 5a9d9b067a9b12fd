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
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/transport"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	kubeapiservertesting "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/evictionrequest"
	"k8s.io/kubernetes/pkg/features"
	evictionrequestregistry "k8s.io/kubernetes/pkg/registry/coordination/evictionrequest"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

const (
	// pollInterval is short, because the tests have hundreds of states to wait for.
	pollInterval = 20 * time.Millisecond

	// pollTimeout is far beyond what any state takes, so that only a state that never
	// comes runs into it.
	pollTimeout = 30 * time.Second

	// controllerUser is who the evictionrequest-controller is within
	// kube-controller-manager. All tests run it with no other rights than those of its
	// bootstrap role.
	controllerUser = "system:serviceaccount:kube-system:evictionrequest-controller"
)

// cluster is a namespace of an API server, in which one test is alone with the
// controllers that it starts: they watch no other namespace.
type cluster struct {
	t         *testing.T
	config    *rest.Config
	client    clientset.Interface
	namespace string
	// clock is what a test turns by hand, if it does.
	clock *testingclock.FakeClock
}

// startAPIServer starts an API server with the alpha API switched on by flag; whether
// it is served depends on the gate alone. The server ends with the test.
func startAPIServer(t *testing.T, etcd *storagebackend.Config, gateOn bool) *rest.Config {
	t.Helper()
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: gateOn,
		// It gives the workload controllers their rights as interceptors.
		features.DeploymentPodSurge: gateOn,
		// Pods keep spec.schedulingGroup only with this gate.
		features.GenericWorkload: true,
	})
	flags := append(framework.DefaultTestServerFlags(),
		"--authorization-mode=RBAC",
		"--runtime-config=coordination.k8s.io/v1alpha1=true")
	server := kubeapiservertesting.StartTestServerOrDie(t, nil, flags, etcd)
	t.Cleanup(server.TearDownFn)
	config := server.ClientConfig
	// A test binary has no version, so that the server takes every alpha API for deprecated.
	config.WarningHandler = rest.NoWarnings{}
	return config
}

// newCluster returns a new namespace of the API server, seen by an administrator.
func newCluster(t *testing.T, config *rest.Config) *cluster {
	t.Helper()
	client := clientset.NewForConfigOrDie(config)
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "evictionrequest-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	return &cluster{t: t, config: config, client: client, namespace: namespace.Name}
}

// clientOf returns a client with the rights of that user.
func (c *cluster) clientOf(user string) clientset.Interface {
	return c.clientThrough(user, func(transport http.RoundTripper) http.RoundTripper { return transport })
}

// clientThrough returns a client with the rights of that user, all of whose requests
// go through the given transport.
func (c *cluster) clientThrough(user string, wrap transport.WrapperFunc) clientset.Interface {
	config := rest.CopyConfig(c.config)
	config.Impersonate.UserName = user
	config.Wrap(wrap)
	return clientset.NewForConfigOrDie(rest.AddUserAgent(config, "evictionrequest-test"))
}

// serverClock is the clock of the API servers of this package when they check the
// times in a status. It shows the real time until it is set to follow another clock.
var serverClock followingClock

// Set before any server runs, because all servers of a process share the strategy.
func init() { evictionrequestregistry.StatusStrategy.Clock = &serverClock }

type followingClock struct {
	followed atomic.Pointer[clock.PassiveClock]
}

func (f *followingClock) follow(other clock.PassiveClock) { f.followed.Store(&other) }

func (f *followingClock) Now() time.Time {
	if followed := f.followed.Load(); followed != nil {
		return (*followed).Now()
	}
	return time.Now()
}

func (f *followingClock) Since(t time.Time) time.Duration { return f.Now().Sub(t) }

// setServerTime has the API server go by that clock until the test ends.
func (c *cluster) setServerTime(now clock.PassiveClock) {
	serverClock.follow(now)
	c.t.Cleanup(func() { serverClock.follow(clock.RealClock{}) })
}

// startController starts the evictionrequest controller and returns how to stop it,
// which the end of the test does too. Nothing of it runs any more when stop returns.
// The API server goes by the same clock: it refuses what others do not do in time.
func (c *cluster) startController(now clock.WithTicker) (stop func()) {
	c.t.Helper()
	c.setServerTime(now)
	return c.startControllerWith(c.clientOf(controllerUser), now)
}

// startControllerWith starts the evictionrequest controller with the given client.
func (c *cluster) startControllerWith(client clientset.Interface, now clock.WithTicker) (stop func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	factory := c.informers(client)
	controller, err := evictionrequest.NewWithClock(ctx,
		factory.Coordination().V1alpha1().EvictionRequests(),
		factory.Core().V1().Pods(),
		factory.Policy().V1().PodDisruptionBudgets(),
		client, client, time.Hour, now)
	if err != nil {
		c.t.Fatalf("creating the evictionrequest controller: %v", err)
	}
	return c.run(ctx, cancel, factory, func() { controller.Run(ctx, 2, 2) })
}

// startDisruptionController starts the controller that keeps the status of the
// PodDisruptionBudgets.
func (c *cluster) startDisruptionController() {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	factory := c.informers(c.client)
	discovery := cacheddiscovery.NewMemCacheClient(c.client.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(discovery)
	scaleClient, err := scale.NewForConfig(c.config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(c.client.Discovery()))
	if err != nil {
		c.t.Fatalf("creating a scale client: %v", err)
	}
	controller := disruption.NewDisruptionController(ctx,
		factory.Core().V1().Pods(),
		factory.Policy().V1().PodDisruptionBudgets(),
		factory.Core().V1().ReplicationControllers(),
		factory.Apps().V1().ReplicaSets(),
		factory.Apps().V1().Deployments(),
		factory.Apps().V1().StatefulSets(),
		c.client, mapper, scaleClient, c.client.Discovery())
	c.run(ctx, cancel, factory, func() { controller.Run(ctx) })
}

func (c *cluster) informers(client clientset.Interface) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(c.namespace))
}

// run starts a controller with its informers and returns how to stop both.
func (c *cluster) run(ctx context.Context, cancel context.CancelFunc, factory informers.SharedInformerFactory, work func()) (stop func()) {
	var running sync.WaitGroup
	running.Go(work)
	factory.Start(ctx.Done())
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		factory.Shutdown()
	})
	c.t.Cleanup(stop)
	return stop
}

// eventually polls until the condition is met. It fails the test with the words of
// the last attempt, which say how far things have come.
func (c *cluster) eventually(what string, condition func(ctx context.Context) (met bool, state string)) {
	c.t.Helper()
	state := "unknown"
	err := wait.PollUntilContextTimeout(c.t.Context(), pollInterval, pollTimeout, true, func(ctx context.Context) (met bool, err error) {
		met, state = condition(ctx)
		return met, nil
	})
	if err != nil {
		c.t.Fatalf("waiting for %s: %v; last state: %s", what, err, state)
	}
}

// awaitRequest polls the request for a pod until it is as it should be.
func (c *cluster) awaitRequest(pod *v1.Pod, what string, reached func(*coordinationv1alpha1.EvictionRequest) bool) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	var request *coordinationv1alpha1.EvictionRequest
	c.eventually(what, func(ctx context.Context) (bool, string) {
		var err error
		request, err = c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return reached(request), describe(request)
	})
	return request
}
