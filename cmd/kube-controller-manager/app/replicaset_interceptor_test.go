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
	"slices"
	"testing"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/features"
)

func setDeploymentPodSurge(t *testing.T, enabled bool) {
	t.Helper()
	if enabled {
		setGates(t, features.EvictionRequestAPI, features.DeploymentPodSurge)
		return
	}
	setGates(t)
}

func newTestReplicaSetController(ctx context.Context, controllerContext ControllerContext) *replicaset.ReplicaSetController {
	factory := controllerContext.InformerFactory
	return replicaset.NewReplicaSetController(ctx, factory.Apps().V1().ReplicaSets(), factory.Core().V1().Pods(), fake.NewClientset(), 1)
}

// With the gate off, the controller is upstream's: without additional clients and informers, above
// all not for EvictionRequests, which are not served then.
func TestInterceptReplicaSetEvictions(t *testing.T) {
	const controllerName = "replicaset-controller"
	for name, test := range map[string]struct {
		enabled     bool
		wantClients []string
		wantKinds   int
	}{
		"gate off": {wantKinds: 2},
		// One client for reports, one for evictions, under the name that the role is bound to.
		"gate on": {enabled: true, wantClients: []string{controllerName, controllerName}, wantKinds: 5},
	} {
		t.Run(name, func(t *testing.T) {
			setDeploymentPodSurge(t, test.enabled)
			_, ctx := ktesting.NewTestContext(t)
			ctx, stop := context.WithCancel(ctx)
			controllerContext, builder := withClients(asTheyAre)
			run, err := interceptReplicaSetEvictions(controllerContext, controllerName, newTestReplicaSetController(ctx, controllerContext))
			if err != nil || (run != nil) != test.enabled {
				t.Fatalf("got error %v, something to run: %v, want %v", err, run != nil, test.enabled)
			}
			if !slices.Equal(builder.names, test.wantClients) {
				t.Errorf("asked for the clients %v, want %v", builder.names, test.wantClients)
			}
			controllerContext.InformerFactory.Start(ctx.Done())
			if kinds := controllerContext.InformerFactory.WaitForCacheSync(ctx.Done()); len(kinds) != test.wantKinds {
				t.Errorf("watches %v, want %d kinds", kinds, test.wantKinds)
			}
			wait := run.start(ctx)
			stop()
			wait()
			controllerContext.InformerFactory.Shutdown()
		})
	}
}

func TestInterceptReplicaSetEvictionsNeedsItsClient(t *testing.T) {
	setDeploymentPodSurge(t, true)
	_, ctx := ktesting.NewTestContext(t)
	broken := errors.New("no credentials")
	controllerContext, _ := withClients(func(b *recordedClientBuilder) { b.err = broken })
	run, err := interceptReplicaSetEvictions(controllerContext, "replicaset-controller", newTestReplicaSetController(ctx, controllerContext))
	if !errors.Is(err, broken) || run != nil {
		t.Errorf("got error %v, something to run: %v, want an error only that wraps its cause", err, run != nil)
	}
}
