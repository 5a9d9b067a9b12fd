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
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/flowcontrol"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/features"
)

func TestDaemonSetInterceptor(t *testing.T) {
	unavailable := errors.New("no token")
	cases := map[string]struct {
		gate        bool
		err         error
		wantClients []string
	}{
		"gate on":              {gate: true, wantClients: []string{"daemon-set-controller"}},
		"gate off":             {},
		"gate on, no client":   {gate: true, err: unavailable, wantClients: []string{"daemon-set-controller"}},
		"gate off, no clients": {err: unavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
				features.EvictionRequestAPI:            tc.gate,
				features.DeclarativeNodeMaintenance:    tc.gate,
				features.NodeMaintenanceAwareDaemonSet: tc.gate,
			})
			controllerContext, builder := withClients(func(b *recordedClientBuilder) { b.err = tc.err })
			factory := controllerContext.InformerFactory
			dsc, err := daemon.NewDaemonSetsController(t.Context(), factory.Apps().V1().DaemonSets(), factory.Apps().V1().ControllerRevisions(),
				factory.Core().V1().Pods(), factory.Core().V1().Nodes(), fake.NewClientset(), flowcontrol.NewBackOff(time.Second, time.Minute))
			if err != nil {
				t.Fatalf("creating the controller: %v", err)
			}
			run, err := interceptDaemonSetEvictions(controllerContext, "daemonset-controller", dsc)
			if wantErr := tc.gate && tc.err != nil; (err != nil) != wantErr || wantErr && !strings.Contains(err.Error(), "no token") {
				t.Errorf("the error is %v", err)
			}
			if want := tc.gate && tc.err == nil; (run != nil) != want {
				t.Errorf("there is an interceptor: %t, want %t", run != nil, want)
			}
			if !slices.Equal(builder.names, tc.wantClients) {
				t.Errorf("asked for clients of %v, want %v", builder.names, tc.wantClients)
			}
		})
	}
}
