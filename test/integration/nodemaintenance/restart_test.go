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

	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
)

// TestRestart kills the controller after each write of a flow, and starts a new one. The state of
// the API server is then the same as after a kill before the next write. The flow must reach the
// same final state as without a restart, and never violate the invariants.
func TestRestart(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd(), true)
	// minWrites is the minimum number of writes in the flow. Without it, the loop could end early
	// and pass.
	const minWrites = 20
	for n, more := 1, true; more && !t.Failed(); n++ {
		more = false // Unless the subtest runs.
		t.Run(fmt.Sprintf("killed after write %d", n), func(t *testing.T) {
			more = playFlow(t, config, testcluster.KillFirst(n, testcluster.AfterWrite))
			if !more && n <= minWrites {
				t.Errorf("the flow has %d writes, must have at least %d for this test to mean anything", n-1, minWrites)
			}
		})
	}
	t.Run("killed before the first write", func(t *testing.T) {
		if !playFlow(t, config, testcluster.KillFirst(1, testcluster.BeforeWrite)) {
			t.Error("no controller was killed")
		}
	})
	for _, n := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("each controller is killed after %d writes", n), func(t *testing.T) {
			playFlow(t, config, func(int) (int, testcluster.Moment) { return n, testcluster.AfterWrite })
		})
	}
	t.Run("two controllers at once", func(t *testing.T) { playFlowTwice(t, config) })
}

// playFlowTwice runs two controllers, as when one continues after it has lost its lease: the latest
// writes of one are not in the cache of the other yet.
func playFlowTwice(t *testing.T, config *rest.Config) {
	c := newCluster(t, config)
	c.prepareFlow()
	history := c.watchAll()
	c.startEvictionController()
	for range 2 {
		c.StartMaintenanceController(c.ClientOf(maintenanceUser), c.clock)
	}
	c.playMaintenances()
	c.expectInvariants(history)
}

// playFlow runs two maintenances that share a node. deathOf returns the write at which a controller
// is killed. playFlow returns whether any controller was killed.
func playFlow(t *testing.T, config *rest.Config, deathOf testcluster.DeathOf) bool {
	c := newCluster(t, config)
	c.prepareFlow()
	history := c.watchAll()
	c.startEvictionController()
	stopRelay := c.startRelay(deathOf)
	c.playMaintenances()
	killed := stopRelay() > 1
	c.expectInvariants(history)
	return killed
}

// prepareFlow creates nodes one, shared and two. A pod on the shared one limits both maintenances.
func (c *cluster) prepareFlow() {
	c.t.Helper()
	for _, node := range []string{"one", "shared", "two"} {
		c.createNode(node)
	}
	c.createPod(newPod("one-low", "one", atPriority(1000)))
	c.createPod(newPod("shared-low", "shared", atPriority(1000), withInterceptor(stubborn)))
	c.createPod(newPod("one-high", "one", atPriority(5000)))
	c.createPod(newPod("two-high", "two", atPriority(5000), withInterceptor(stubborn)))
}

// playMaintenances creates, advances and deletes maintenances a and b. It waits only for states
// that last, because a controller that is restarted may skip others.
func (c *cluster) playMaintenances() {
	c.t.Helper()
	c.createMaintenance(newMaintenance("a", stageIdle, nodesNamed("one", "shared"), planOf(defaultPods(1000))...))
	c.createMaintenance(newMaintenance("b", stageDrain, nodesNamed("shared", "two"), planOf(defaultPods(1000))...))
	c.setStage("a", stageDrain)
	c.await("both to wait for the pod on the shared node", states{
		"pod/one-low": "gone", "request/shared-low": asked, "request/one-high": "none", "request/two-high": "none",
		"node/one": draining, "node/shared": draining, "node/two": draining,
		"targets/one": targetsOf(c, "Waiting for a.", defaultPods(1000)),
		"targets/two": targetsOf(c, "Waiting for b.", defaultPods(1000)),
	})
	c.deletePod(newPod("shared-low", "shared"))
	c.await("node one to be drained, and the drain of node two", states{
		"pod/one-high": "gone", "node/one": empty, "node/shared": empty, "request/two-high": asked,
		"maintenance/b": "Cordon, Drain of 2, finalizer, False: Draining",
	})
	c.deleteMaintenance("b")
	c.await("b to be canceled", states{
		"maintenance/b": "gone", "node/two": free, "request/two-high": canceled, "pod/two-high": "here",
		"node/one": empty, "node/shared": empty,
	})
	c.setStage("a", stageComplete)
	c.await("a to release its nodes", states{"node/one": free, "node/shared": free, "targets/one": "none"})
	c.eventually("a to be completed", func(ctx context.Context) (bool, string) {
		m := c.maintenance("a")
		return len(m.Finalizers) == 0 && hasStage(m, stageComplete), describeMaintenance(m)
	})
	c.deleteMaintenance("a")
	c.await("the final state", states{"maintenance/a": "gone", "node/one": free, "node/shared": free, "node/two": free, "request/two-high": canceled})
}

// startRelay keeps one controller running: when it is killed, the next one is started.
func (c *cluster) startRelay(deathOf testcluster.DeathOf) (stop func() (controllers int)) {
	return c.StartRelay(deathOf, func(life *testcluster.Lifeline) func() {
		return c.StartMaintenanceController(c.ClientThrough(maintenanceUser, life.Wrap), c.clock)
	})
}
