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
	"slices"
	"testing"

	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/features"
)

// With the gate on, both controllers know the nodes. With it off, they are upstream's.
func TestPreferDepartingNodes(t *testing.T) {
	for name, gates := range map[string][]featuregate.Feature{
		"gate off": nil,
		"gate on":  {features.EvictionRequestAPI, features.DeclarativeNodeMaintenance},
	} {
		for kind, create := range map[string]func(context.Context, ControllerContext) error{
			"ReplicaSet": func(ctx context.Context, controllerContext ControllerContext) error {
				_, err := interceptReplicaSetEvictions(controllerContext, "replicaset-controller", newTestReplicaSetController(ctx, controllerContext))
				return err
			},
			"ReplicationController": func(ctx context.Context, controllerContext ControllerContext) error {
				_, err := newReplicationController(ctx, controllerContext, "replicationcontroller-controller")
				return err
			},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				setGates(t, gates...)
				_, ctx := ktesting.NewTestContext(t)
				ctx, stop := context.WithCancel(ctx)
				controllerContext, _ := withClients(asTheyAre)
				if err := create(ctx, controllerContext); err != nil {
					t.Fatal(err)
				}
				controllerContext.InformerFactory.Start(ctx.Done())
				var watched []string
				for kind := range controllerContext.InformerFactory.WaitForCacheSync(ctx.Done()) {
					watched = append(watched, kind.Elem().Name())
				}
				if slices.Contains(watched, "Node") != (gates != nil) {
					t.Errorf("watches %v", watched)
				}
				stop()
				controllerContext.InformerFactory.Shutdown()
			})
		}
	}
}
