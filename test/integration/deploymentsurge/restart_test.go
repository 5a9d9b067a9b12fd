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
	"cmp"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
)

// minWrites is the minimum number of writes of the controllers, so that a test that loops over the
// writes does not become void.
const minWrites = 25

// TestRestart kills the controllers of Deployments, ReplicaSets and EvictionRequests, which are one
// process, right after each single write while two of three pods are evicted, and starts new ones.
// This includes the case that they are killed before the next write. The end must be the same as
// without, and the invariants must always hold.
func TestRestart(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd())
	startSilentControllers(t, config)
	writes := 0
	t.Run("undisturbed", func(t *testing.T) {
		writes, _ = runSurge(t, config, testcluster.KillFirst(0, testcluster.AfterWrite))
	})
	t.Run("killed", func(t *testing.T) {
		for n := 1; n <= max(writes, minWrites); n++ {
			t.Run(fmt.Sprintf("after write %d", n), func(t *testing.T) {
				t.Parallel()
				// The number of writes beyond the minimum varies.
				if _, killed := runSurge(t, config, testcluster.KillFirst(n, testcluster.AfterWrite)); !killed && n <= minWrites {
					t.Errorf("the flow has fewer than %d writes", n)
				}
			})
		}
		t.Run("before the first write", func(t *testing.T) {
			t.Parallel()
			if _, killed := runSurge(t, config, testcluster.KillFirst(1, testcluster.BeforeWrite)); !killed {
				t.Error("no controller was killed")
			}
		})
		for _, n := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("again and again, after %d writes each", n), func(t *testing.T) {
				t.Parallel()
				runSurge(t, config, func(int) (int, testcluster.Moment) { return n, testcluster.AfterWrite })
			})
		}
	})
}

// runSurge evicts two of three pods, one after the other. deathOf decides at which write
// controllers are killed. It returns the number of writes of the first controllers, and whether any
// were killed.
func runSurge(t *testing.T, config *rest.Config, deathOf testcluster.DeathOf) (writes int, killed bool) {
	c := newCluster(t, config)
	stop := c.startControllers()
	pods := c.createDeployment(newDeployment(3, withMaxSurge(intstr.FromInt32(1))))
	stop()
	history := c.watchAll()
	var first *testcluster.Lifeline
	stopRelay := c.StartRelay(deathOf, func(life *testcluster.Lifeline) func() {
		first = cmp.Or(first, life)
		return c.startAllThrough(life)
	})
	c.request(pods[0], pods[1])
	c.awaitMoved(3, pods[0], pods[1])
	c.expectLiving(pods[2])
	killed = stopRelay() > 1
	c.expectBounds(history, bounds{most: 4, least: 3})
	return first.Writes(), killed
}

// startAllThrough starts all controllers that move pods, through one lifeline.
func (c *cluster) startAllThrough(life *testcluster.Lifeline) (stop func()) {
	stopEvictions := c.StartEvictionController(c.ClientThrough(testcluster.EvictionUser, life.Wrap), c.Namespace, clock.RealClock{})
	stopWorkloads := c.startControllersThrough(true, life.Wrap)
	return func() {
		stopWorkloads()
		stopEvictions()
	}
}
