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

// Package testcluster is shared by the integration tests of evictions. It starts API servers with
// etcd and controllers, and contains common actions.
package testcluster

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	kubeapiservertesting "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
	"k8s.io/kubernetes/test/integration/framework"
)

// PollInterval is short, because tests wait for hundreds of states.
const PollInterval = 20 * time.Millisecond

// Cluster is a namespace of an API server, with the client of an administrator.
type Cluster struct {
	T         *testing.T
	Config    *rest.Config
	Client    clientset.Interface
	Namespace string
	// PollTimeout is how long Eventually waits.
	PollTimeout time.Duration
}

// StartAPIServer starts an API server with the alpha API enabled by flag, so that the gates alone
// decide whether it is served. The server stops when the test ends.
func StartAPIServer(t *testing.T, etcd *storagebackend.Config, gates featuregatetesting.FeatureOverrides, flags ...string) *rest.Config {
	t.Helper()
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, gates)
	flags = append(append(framework.DefaultTestServerFlags(),
		"--authorization-mode=RBAC",
		"--runtime-config=coordination.k8s.io/v1alpha1=true"), flags...)
	server := kubeapiservertesting.StartTestServerOrDie(t, nil, flags, etcd)
	t.Cleanup(server.TearDownFn)
	config := server.ClientConfig
	// A test binary has no version, so the server considers every alpha API deprecated.
	config.WarningHandler = rest.NoWarnings{}
	config.QPS, config.Burst = 1000, 1000
	return config
}

// New creates a new namespace in the API server. Its name starts with the prefix.
func New(t *testing.T, config *rest.Config, prefix string) *Cluster {
	t.Helper()
	c := In(t, config, "")
	namespace, err := c.Client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	c.Namespace = namespace.Name
	return c
}

// In uses an existing namespace.
func In(t *testing.T, config *rest.Config, namespace string) *Cluster {
	return &Cluster{T: t, Config: config, Client: clientset.NewForConfigOrDie(config), Namespace: namespace, PollTimeout: PollTimeout}
}

// ClientOf returns a client that impersonates the user.
func (c *Cluster) ClientOf(user string) clientset.Interface {
	return c.ClientThrough(user, func(transport http.RoundTripper) http.RoundTripper { return transport })
}

// ClientThrough returns a client that impersonates the user and sends all requests through the
// given transport.
func (c *Cluster) ClientThrough(user string, wrap transport.WrapperFunc) clientset.Interface {
	config := rest.CopyConfig(c.Config)
	config.Impersonate.UserName = user
	config.Wrap(wrap)
	return clientset.NewForConfigOrDie(rest.AddUserAgent(config, "integration-test"))
}

// Run starts controllers with their informers and returns a function that stops them. It is also
// called when the test ends. When stop returns, none of their goroutines is running.
func (c *Cluster) Run(ctx context.Context, cancel context.CancelFunc, factory informers.SharedInformerFactory, work ...func()) (stop func()) {
	var running sync.WaitGroup
	for _, work := range work {
		running.Go(work)
	}
	factory.Start(ctx.Done())
	stop = sync.OnceFunc(func() {
		cancel()
		Join(c.T, "the controller", &running)
		factory.Shutdown()
	})
	c.T.Cleanup(stop)
	return stop
}

// Eventually polls until the condition is met. After PollTimeout, it fails the test with the last
// state.
func (c *Cluster) Eventually(what string, condition func(ctx context.Context) (met bool, state string)) {
	c.T.Helper()
	state := "unknown"
	err := wait.PollUntilContextTimeout(c.T.Context(), PollInterval, c.PollTimeout, true, func(context.Context) (met bool, err error) {
		// Do not use the context of the poll: its cancellation would hide the last state.
		met, state = condition(c.T.Context())
		return met, nil
	})
	if err != nil {
		c.T.Fatalf("waiting for %s: %v; last state: %s", what, err, state)
	}
}
