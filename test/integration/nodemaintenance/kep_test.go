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

package nodemaintenance

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/test/integration/framework"
)

func defaultPods(priority int32) v1.DrainPlanEntry {
	return v1.DrainPlanEntry{PodPriority: priority, PodType: v1.PodTypeDefault}
}

func daemonPods(priority int32) v1.DrainPlanEntry {
	return v1.DrainPlanEntry{PodPriority: priority, PodType: v1.PodTypeDaemonSet}
}

// drain is the progress of a drain in the status of a node or of a maintenance.
type drain struct {
	pending, active int32
	message         string
	targets         []v1.DrainPlanEntry
}

func (d drain) String() string {
	return fmt.Sprintf("pending %d, active %d, %q, %v", d.pending, d.active, d.message, d.targets)
}

func drainOfNode(node *v1.Node) drain {
	status := node.Status.MaintenanceStatus
	if status == nil {
		return drain{}
	}
	return drain{status.PodsPendingEvictionRequest, status.ActiveEvictionRequests, status.DrainMessage, status.DrainTargets}
}

func drainOfMaintenance(m *coordinationv1alpha1.NodeMaintenance) drain {
	status := m.Status.DrainStatus
	return drain{status.PodsPendingEvictionRequest, status.ActiveEvictionRequests, status.DrainMessage, status.ReachedDrainTargets}
}

// awaitDrains waits until all nodes and maintenances with these names are as expected at the same
// time.
func (c *cluster) awaitDrains(what string, want map[string]drain) {
	c.t.Helper()
	c.eventually(what, func(ctx context.Context) (bool, string) {
		got := map[string]drain{}
		for name := range want {
			if node, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); err == nil {
				got[name] = drainOfNode(node)
			} else if m, err := c.client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, name, metav1.GetOptions{}); err == nil {
				got[name] = drainOfMaintenance(m)
			}
		}
		diff := cmp.Diff(want, got, cmp.AllowUnexported(drain{}))
		return diff == "", diff
	})
}

// TestKEP4212Example replays the example of the section "Pod Selection and DrainTargets
// Example" state by state: all counts, targets and messages are those of the KEP.
func TestKEP4212Example(t *testing.T) {
	c := newCluster(t, startAPIServer(t, framework.SharedEtcd(), true))
	for _, name := range []string{"one", "two", "three"} {
		c.createNode(name)
	}
	intercepted := withInterceptor(stubborn)
	oneTo5000 := c.createPods(10, "one-5000", "one", atPriority(5000), intercepted)
	c.createPods(30, "one-10000", "one", atPriority(10000), intercepted)
	c.createPods(70, "one-20000", "one", atPriority(20000), intercepted)
	twoTo5000 := c.createPods(7, "two-5000", "two", atPriority(4000), intercepted)
	c.createPods(9, "two-15000", "two", atPriority(15000), intercepted)
	c.createPods(21, "two-20000", "two", atPriority(20000), intercepted)
	threeTo10000 := c.createPods(25, "three-10000", "three", atPriority(9000), intercepted)
	c.createPods(45, "three-20000", "three", atPriority(11000), intercepted)
	c.startControllers()

	planA := maintenance.CompletePlan([]v1.DrainPlanEntry{defaultPods(5000), defaultPods(15000), daemonPods(3000)})
	planB := maintenance.CompletePlan([]v1.DrainPlanEntry{defaultPods(10000), defaultPods(15000), daemonPods(4000)})
	planC := maintenance.CompletePlan([]v1.DrainPlanEntry{defaultPods(2000), defaultPods(15000)})
	const stage = coordinationv1alpha1.NodeMaintenanceStageDrain
	c.createMaintenance(newMaintenance("maintenance-a", stage, nodesNamed("one", "two"), planA...))
	c.createMaintenance(newMaintenance("maintenance-b", stage, nodesNamed("one", "three"), planB...))
	to := func(priority int32) []v1.DrainPlanEntry { return []v1.DrainPlanEntry{defaultPods(priority)} }

	c.awaitDrains("the first state", map[string]drain{
		"maintenance-a": {130, 17, "Draining", to(5000)},
		"maintenance-b": {145, 35, "Draining (limited by maintenance-a)", to(5000)},
		"one":           {100, 10, "Draining", to(5000)},
		"two":           {30, 7, "Draining", to(5000)},
		"three":         {45, 25, "Draining", to(10000)},
	})

	c.deletePods(threeTo10000)
	c.deletePods(oneTo5000[5:])
	c.awaitDrains("node three to wait for node one", map[string]drain{
		"maintenance-b": {145, 5, "Draining (limited by maintenance-a)", to(5000)},
		"three":         {45, 0, "Waiting for maintenance-a.", to(10000)},
	})

	c.deletePods(oneTo5000[:5])
	c.deletePods(twoTo5000[2:])
	c.awaitDrains("node one to wait for node two", map[string]drain{
		"maintenance-a": {130, 2, "Draining", to(5000)},
		"maintenance-b": {145, 0, "Waiting for maintenance-a.", to(5000)},
		"one":           {100, 0, "Waiting for maintenance-a.", to(5000)},
		"two":           {30, 2, "Draining", to(5000)},
		"three":         {45, 0, "Waiting for maintenance-a.", to(10000)},
	})

	c.deletePods(twoTo5000[:2])
	c.awaitDrains("the next entry", map[string]drain{
		"maintenance-a": {91, 39, "Draining", to(10000)},
		"maintenance-b": {115, 30, "Draining", to(10000)},
		"one":           {70, 30, "Draining (limited by maintenance-b)", to(10000)},
		"two":           {21, 9, "Draining", to(15000)},
		"three":         {45, 0, "Waiting for maintenance-b.", to(10000)},
	})

	c.createNode("four")
	c.createPods(5, "four-2000", "four", atPriority(2000), intercepted)
	c.createPods(20, "four-20000", "four", atPriority(20000), intercepted)
	c.createMaintenance(newMaintenance("maintenance-c", stage, nodesNamed("one", "four"), planC...))
	c.awaitDrains("a third maintenance", map[string]drain{
		"maintenance-c": {90, 35, "Draining", to(2000)},
		"one":           {70, 30, "Draining (limited by maintenance-b, maintenance-c)", to(10000)},
		"four":          {20, 5, "Draining", to(2000)},
	})
}
