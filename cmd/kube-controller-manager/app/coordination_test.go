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
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/features"
)

// recordedClientBuilder returns a config for each requested client, and records the names.
type recordedClientBuilder struct {
	clientbuilder.ControllerClientBuilder
	config *restclient.Config
	// err is returned after the given number of configs.
	err      error
	errAfter int
	names    []string
	// ordinary are the names of the clients with the default rate limits.
	ordinary []string
}

func (b *recordedClientBuilder) Config(name string) (*restclient.Config, error) {
	b.names = append(b.names, name)
	if b.err != nil && len(b.names) > b.errAfter {
		return nil, b.err
	}
	config := restclient.CopyConfig(b.config)
	config.UserAgent = name
	return config, nil
}

// withClients returns the context of a controller manager with the flags
// --kube-api-qps=20 and --kube-api-burst=30.
func withClients(change func(*recordedClientBuilder)) (ControllerContext, *recordedClientBuilder) {
	builder := &recordedClientBuilder{config: &restclient.Config{Host: "https://127.0.0.1:1", QPS: 20, Burst: 30}}
	change(builder)
	controllerContext := ControllerContext{ClientBuilder: builder, InformerFactory: informers.NewSharedInformerFactory(fake.NewClientset(), 0)}
	controllerContext.ComponentConfig.Generic.Controllers = []string{"*"}
	return controllerContext, builder
}

func asTheyAre(*recordedClientBuilder) {}

// Client returns a client with the config for that name.
func (b *recordedClientBuilder) Client(name string) (kubernetes.Interface, error) {
	b.ordinary = append(b.ordinary, name)
	config, err := b.Config(name)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// setGates turns these gates on, and all other gates of the workload controllers off.
func setGates(t *testing.T, on ...featuregate.Feature) {
	t.Helper()
	gates := featuregatetesting.FeatureOverrides{}
	for _, gate := range []featuregate.Feature{
		features.EvictionRequestAPI, features.DeploymentPodSurge, features.StatefulSetEvictionPacing,
		features.DeclarativeNodeMaintenance, features.NodeMaintenanceBudgets, features.NodeMaintenanceAwareDaemonSet, features.DownscalePodPicker,
	} {
		gates[gate] = slices.Contains(on, gate)
	}
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, gates)
}

// Without its gate the controller would watch a resource that is not served.
func TestEvictionRequestControllerNeedsItsGate(t *testing.T) {
	descriptor := newEvictionRequestControllerDescriptor()
	if want := []featuregate.Feature{features.EvictionRequestAPI}; !slices.Equal(descriptor.GetRequiredFeatureGates(), want) {
		t.Errorf("needs the gates %v, want %v", descriptor.GetRequiredFeatureGates(), want)
	}
	if got := descriptor.Name(); got != "evictionrequest-controller" {
		t.Errorf("the name is %q", got)
	}
	if descriptor.IsDisabledByDefault() {
		t.Error("the gate alone does not switch it on")
	}
}

// Evictions must not use up the calls of the controller, or vice versa.
func TestEvictionRequestClientHasLimitsOfItsOwn(t *testing.T) {
	controllerContext, builder := withClients(asTheyAre)
	first, err := newEvictionClient(controllerContext, "evictionrequest-controller")
	if err != nil {
		t.Fatalf("creating a client: %v", err)
	}
	second, err := newEvictionClient(controllerContext, "evictionrequest-controller")
	if err != nil {
		t.Fatalf("creating a second client: %v", err)
	}
	limiter := first.CoreV1().RESTClient().GetRateLimiter()
	if limiter == second.CoreV1().RESTClient().GetRateLimiter() {
		t.Error("two clients share one limit")
	}
	if got := limiter.QPS(); got != 20*20 {
		t.Errorf("allows %v calls per second, want 400", got)
	}
	burst := 0
	for burst < 10000 && limiter.TryAccept() {
		burst++
	}
	// The limiter refills meanwhile.
	if burst < 30*100 || burst > 30*100+1000 {
		t.Errorf("allows a burst of %d calls, want 3000", burst)
	}
	if builder.config.QPS != 20 || builder.config.Burst != 30 {
		t.Errorf("changed the default limits to %v and %d", builder.config.QPS, builder.config.Burst)
	}
}

// The calls of a client go through what wraps its transport.
func TestEvictionClientIsWrapped(t *testing.T) {
	controllerContext, builder := withClients(asTheyAre)
	called := false
	client, err := newEvictionClient(controllerContext, "nodemaintenance-controller", func(http.RoundTripper) http.RoundTripper {
		return roundTripper(func(*http.Request) (*http.Response, error) {
			called = true
			return nil, errors.New("no connection")
		})
	})
	if err != nil {
		t.Fatalf("creating a client: %v", err)
	}
	if _, err := client.Discovery().ServerVersion(); err == nil || !called {
		t.Errorf("called the wrapper: %t, error: %v", called, err)
	}
	if builder.config.WrapTransport != nil {
		t.Error("changed the configuration of others")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// All controllers of a process have the same answer whether lifecycle.k8s.io is served, also if kube-apiserver gives another
// one meanwhile.
func TestServedIsAskedOnce(t *testing.T) {
	controllerContext, _ := withClients(asTheyAre)
	client := fake.NewClientset()
	if isServed(t.Context(), controllerContext, client) {
		t.Error("it is not served")
	}
	client.Resources = []*metav1.APIResourceList{{GroupVersion: lifecyclev1alpha1.SchemeGroupVersion.String()}}
	if isServed(t.Context(), controllerContext, client) {
		t.Error("another answer")
	}
	another, _ := withClients(asTheyAre)
	if !isServed(t.Context(), another, client) {
		t.Error("the answer of another process")
	}
}

func TestNewEvictionRequestController(t *testing.T) {
	setGates(t)
	_, ctx := ktesting.NewTestContext(t)
	ctx, stop := context.WithCancel(ctx)
	controllerContext, builder := withClients(asTheyAre)
	controller, err := newEvictionRequestController(ctx, controllerContext, "evictionrequest-controller")
	if err != nil {
		t.Fatalf("creating the controller: %v", err)
	}
	if got := controller.Name(); got != "evictionrequest-controller" {
		t.Errorf("the name is %q", got)
	}
	// One client for the controller, one for evictions, one for events and one for the reports
	// of the stand-ins, all under the name that the role is bound to.
	if want := []string{"evictionrequest-controller", "evictionrequest-controller", "evictionrequest-controller", "evictionrequest-controller"}; !slices.Equal(builder.names, want) {
		t.Errorf("asked for the clients %v, want %v", builder.names, want)
	}
	stop()
	controller.Run(ctx) // Returns, and stops the queues.
}

func TestNewEvictionRequestControllerErrors(t *testing.T) {
	broken := errors.New("no credentials")
	setGates(t, features.EvictionRequestAPI, features.DeploymentPodSurge)
	tests := map[string]func(*recordedClientBuilder){
		"no config":         func(b *recordedClientBuilder) { b.err = broken },
		"no second config":  func(b *recordedClientBuilder) { b.err, b.errAfter = broken, 1 },
		"no third config":   func(b *recordedClientBuilder) { b.err, b.errAfter = broken, 2 },
		"no fourth config":  func(b *recordedClientBuilder) { b.err, b.errAfter = broken, 3 },
		"an invalid config": func(b *recordedClientBuilder) { b.config.Host = "https://host:port:port" },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			_, ctx := ktesting.NewTestContext(t)
			controllerContext, builder := withClients(change)
			controller, err := newEvictionRequestController(ctx, controllerContext, "evictionrequest-controller")
			if err == nil || controller != nil {
				t.Errorf("got controller %v and error %v, want an error only", controller, err)
			}
			if builder.err != nil && !errors.Is(err, builder.err) {
				t.Errorf("got error %v, want one that wraps its cause", err)
			}
		})
	}
}

// A stopped informer accepts no handlers.
func TestNewEvictionRequestControllerTooLate(t *testing.T) {
	setGates(t)
	_, ctx := ktesting.NewTestContext(t)
	ctx, stop := context.WithCancel(ctx)
	controllerContext, _ := withClients(asTheyAre)
	controllerContext.InformerFactory.Coordination().V1alpha1().EvictionRequests().Informer()
	stop()
	controllerContext.InformerFactory.StartWithContext(ctx)
	controllerContext.InformerFactory.Shutdown()
	_, err := newEvictionRequestController(ctx, controllerContext, "evictionrequest-controller")
	if err == nil || !strings.HasPrefix(err.Error(), "creating the evictionrequest-controller: ") {
		t.Errorf("got error %v, want one that names the controller", err)
	}
}
