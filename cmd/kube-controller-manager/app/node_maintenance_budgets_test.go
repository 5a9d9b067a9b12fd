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
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/features"
)

// budgetServer answers what is asked about budgets with these statuses, and counts lists of budgets.
type budgetServer struct {
	discovery, list atomic.Int32
	resources       []string
	lists           atomic.Int32
}

func (s *budgetServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	var object any = metav1.List{}
	code := http.StatusNotFound
	switch r.URL.Path {
	case "/apis/coordination.k8s.io/v1alpha1":
		resources := metav1.APIResourceList{GroupVersion: coordinationv1alpha1.SchemeGroupVersion.String()}
		for _, name := range s.resources {
			resources.APIResources = append(resources.APIResources, metav1.APIResource{Name: name})
		}
		object, code = resources, int(s.discovery.Load())
	case "/apis/coordination.k8s.io/v1alpha1/nodemaintenancebudgets":
		s.lists.Add(1)
		object, code = coordinationv1alpha1.NodeMaintenanceBudgetList{}, int(s.list.Load())
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

// start starts the server, and returns a client.
func (s *budgetServer) start(t *testing.T) kubernetes.Interface {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&restclient.Config{Host: server.URL, ContentConfig: restclient.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestServesBudgets(t *testing.T) {
	with, without := []string{"nodemaintenances", "nodemaintenancebudgets"}, []string{"nodemaintenances"}
	for name, test := range map[string]struct {
		gateOff         bool
		resources       []string
		discovery, list int32
		want, unknown   bool
	}{
		"served":                              {resources: with, discovery: 200, want: true},
		"not served":                          {resources: without, discovery: 200},
		"the gate is off here":                {gateOff: true, resources: with, discovery: 200},
		"no such group":                       {discovery: 404},
		"overloaded":                          {discovery: 503, unknown: true},
		"an internal error":                   {discovery: 500, unknown: true},
		"discovery is forbidden, served":      {discovery: 403, list: 200, want: true},
		"discovery is forbidden, not served":  {discovery: 403, list: 404},
		"everything is forbidden":             {discovery: 403, list: 403},
		"discovery is forbidden, and no list": {discovery: 403, list: 500, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			setGates(t, features.EvictionRequestAPI, features.DeclarativeNodeMaintenance, features.NodeMaintenanceBudgets)
			if test.gateOff {
				setGates(t, features.EvictionRequestAPI, features.DeclarativeNodeMaintenance)
			}
			_, ctx := ktesting.NewTestContext(t)
			s := &budgetServer{resources: test.resources}
			s.discovery.Store(test.discovery)
			s.list.Store(test.list)
			got, err := servesBudgets(ctx, s.start(t))
			if got != test.want || (err != nil) != test.unknown {
				t.Errorf("got %t and error %v, want %t and error %t", got, err, test.want, test.unknown)
			}
		})
	}
}

// A controller manager that gets no answer asks again, without delaying other controllers, and begins
// when it knows.
func TestNodeMaintenanceControllerAwaitsTheAnswer(t *testing.T) {
	setGates(t, features.EvictionRequestAPI, features.DeclarativeNodeMaintenance, features.NodeMaintenanceBudgets)
	_, ctx := ktesting.NewTestContext(t)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &budgetServer{resources: []string{"nodemaintenancebudgets"}}
	s.discovery.Store(http.StatusServiceUnavailable)
	s.list.Store(http.StatusOK)
	client := s.start(t)
	controllerContext, builder := withClients(asTheyAre)
	builder.config.Host = "http://" + client.CoordinationV1alpha1().RESTClient().Get().URL().Host
	controllerContext.InformerFactory = informers.NewSharedInformerFactory(client, 0)
	controller, err := newNodeMaintenanceController(ctx, controllerContext, "nodemaintenance-controller")
	if err != nil {
		t.Fatalf("creating the controller: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		controller.Run(ctx)
		close(ended)
	}()
	time.Sleep(firstDiscoveryRetry / 2)
	if s.lists.Load() > 0 {
		t.Error("budgets are read before it is known that they are served")
	}
	s.discovery.Store(http.StatusOK)
	for deadline := time.Now().Add(30 * time.Second); s.lists.Load() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("budgets are not read when it is known that they are served")
		}
	}
	stop()
	<-ended
}
