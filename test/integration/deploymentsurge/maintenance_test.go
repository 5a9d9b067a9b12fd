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
	"fmt"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
)

// testNodeDrain drains the node of a Deployment by a NodeMaintenance: all of its pods move to the
// other node, and its Service always has a ready endpoint.
func testNodeDrain(replicas int32) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		c.startControllers()
		pods := c.createDeployment(newDeployment(replicas))
		history := c.watchAll()
		name := c.startMaintenance(c.from)
		c.awaitMoved(int(replicas), pods...)
		c.awaitDrained(name)
		for _, pod := range c.livingPods() {
			c.expectStillAt(pod, c.to)
		}
		c.expectSurged(history, bounds{most: int(replicas) + 1, least: int(replicas)})
	}
}

// testDrainCanceled completes the maintenance in mid-surge: the pod stays.
func testDrainCanceled(t *testing.T, c *cluster) {
	c.startControllers()
	old := c.createDeployment(newDeployment(1))[0]
	history := c.watchAll()
	c.setUnready(except(old))
	name := c.startMaintenance(c.from)
	c.await("the surge", states{string(old.UID): "Intercepting by deployment: Surging 0/1", "pods": "1 ready, 1 not"})
	c.setStage(name, coordinationv1alpha1.NodeMaintenanceStageComplete)
	c.await("the surge to be reverted", states{string(old.UID): "Canceled", "replicaSets": "1", "pods": "1 ready", "condition": "none"})
	c.expectStillAt(old, c.from)
	c.expectBounds(history, bounds{most: 2, least: 1})
}

// startMaintenance starts to drain a node, and returns the name of the maintenance.
func (c *cluster) startMaintenance(node string) string {
	c.T.Helper()
	m := &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: c.Namespace},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{
			NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{node}}},
			}}},
			Stage:     coordinationv1alpha1.NodeMaintenanceStageDrain,
			DrainPlan: maintenance.CompletePlan(nil),
			Reason:    "test",
		},
	}
	if _, err := c.Client.CoordinationV1alpha1().NodeMaintenances().Create(c.T.Context(), m, metav1.CreateOptions{}); err != nil {
		c.T.Fatalf("creating maintenance %s: %v", m.Name, err)
	}
	return m.Name
}

func (c *cluster) setStage(name string, stage coordinationv1alpha1.NodeMaintenanceStage) {
	c.T.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"stage":%q}}`, stage)
	if _, err := c.Client.CoordinationV1alpha1().NodeMaintenances().Patch(c.T.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		c.T.Fatalf("moving maintenance %s to stage %s: %v", name, stage, err)
	}
}

func (c *cluster) awaitDrained(name string) {
	c.T.Helper()
	c.Eventually("the node to be drained", func(ctx context.Context) (bool, string) {
		m, err := c.Client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		drained := string(coordinationv1alpha1.NodeMaintenanceConditionDrained)
		return meta.IsStatusConditionTrue(m.Status.Conditions, drained), fmt.Sprintf("%+v", m.Status.Conditions)
	})
}
