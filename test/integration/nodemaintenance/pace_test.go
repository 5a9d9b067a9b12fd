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
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

// testTugOfWar uncordons a claimed node repeatedly.
func testTugOfWar(t *testing.T, c *cluster) {
	c.createNode("one")
	_, writes := c.startQuick()
	c.createMaintenance(newMaintenance("m", stageCordon, nodesNamed("one"), planOf()...))
	c.await("the cordon", states{"node/one": cordoned, "maintenance/m": "Cordon of 1, finalizer"})
	started := c.clock.Now()
	for range 3 {
		c.setSchedulable("one", true)
		c.await("the node to be cordoned again", states{"node/one": cordoned})
	}
	c.awaitEvent("CordonContested", "one")

	for range 10 {
		c.setSchedulable("one", false)
		c.setSchedulable("one", true)
	}
	c.settle()
	// One more write is allowed for each minute that has passed.
	allowed := 4 + int(c.clock.Since(started)/time.Minute)
	if got := writes.count("PATCH nodes/one"); got > allowed {
		t.Errorf("node one was cordoned %d times, must be at most %d times", got, allowed)
	}

	c.setSchedulable("one", true)
	c.clock.Step(time.Minute)
	c.await("the node to be cordoned after a pause", states{"node/one": cordoned})
	c.deleteMaintenance("m")
	c.await("the node to be released", states{"node/one": free, "maintenance/m": "gone"})
}

// testNodeSaysFirst completes an entry of a plan while it is too early to write the status of the
// node again. No eviction may be requested before the node has the targets of the next entry.
func testNodeSaysFirst(_ *testing.T, c *cluster) {
	c.createNode("one")
	low := c.createPod(newPod("low", "one", atPriority(1000), withInterceptor(stubborn)))
	c.createPod(newPod("high", "one", atPriority(5000), withInterceptor(stubborn)))
	history := c.watchAll()
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf(defaultPods(1000))...))
	c.await("the first entry", states{"request/low": asked, "targets/one": targetsOf(c, "Draining", defaultPods(1000))})
	c.settle()

	c.frozen = true
	late := c.createPod(newPod("late", "one", atPriority(1000), withInterceptor(stubborn)))
	c.awaitDrains("the late pod to be counted", map[string]drain{
		"one": {pending: 2, active: 1, message: "Draining", targets: []v1.DrainPlanEntry{defaultPods(1000)}},
	})
	c.deletePods([]*v1.Pod{low, late})
	c.awaitMarker()
	c.expect("no change while the clock is stopped", states{"request/high": "none", "targets/one": targetsOf(c, "Draining", defaultPods(1000))})

	c.frozen = false
	c.await("the second entry", states{"request/high": asked, "targets/one": targetsOf(c, "Draining", defaultPods(1000000000))})
	c.expectInvariants(history)
}

// testSteadyState checks that there are no writes while nothing relevant changes.
func testSteadyState(t *testing.T, c *cluster) {
	nodes := []string{"announced", "cordoned", "drained", "blocked", "waiting", "intercepted", "completed", "other"}
	for _, node := range nodes {
		c.createNode(node)
	}
	c.StartDisruptionController("")
	c.protect(c.createPod(newPod("blocked", "blocked")))
	c.createPod(newPod("intercepted", "intercepted", atPriority(5000), withInterceptor(stubborn)))
	c.createPod(newPod("waiting", "waiting", atPriority(5000)))
	_, writes := c.startQuick()
	plan := planOf(defaultPods(1000))
	c.createMaintenance(newMaintenance("announced", stageIdle, nodesNamed("announced", "blocked"), plan...))
	c.createMaintenance(newMaintenance("cordoned", stageCordon, nodesNamed("cordoned", "blocked"), plan...))
	c.createMaintenance(newMaintenance("intercepted", stageDrain, nodesNamed("intercepted", "drained"), plan...))
	c.createMaintenance(newMaintenance("blocked", stageDrain, nodesNamed("blocked", "waiting"), plan...))
	c.createMaintenance(newMaintenance("completed", stageComplete, nodesNamed("completed"), plan...))
	c.await("the steady state", states{
		"maintenance/announced": "Idle of 2", "maintenance/cordoned": "Cordon of 2, finalizer", "maintenance/completed": "Complete of 1",
		"maintenance/intercepted": "Cordon, Drain of 2, finalizer, False: Draining", "request/intercepted": asked,
		"maintenance/blocked": "Cordon, Drain of 2, finalizer, False: Blocked", "targets/waiting": targetsOf(c, "Waiting for blocked.", defaultPods(1000)),
		"request/waiting": "none", "node/drained": empty,
	})
	c.settle()
	// After five minutes, the maintenance that is blocked is Stalled.
	want := append(writes.all(), "PUT nodemaintenances/blocked/status")

	for i := range 20 {
		for _, node := range nodes {
			c.labelNode(node, "unrelated", fmt.Sprint(i))
		}
		c.clock.Step(time.Minute)
	}
	c.settle()
	if diff := cmp.Diff(want, writes.all()); diff != "" {
		t.Errorf("writes (-want, +got after twenty minutes without relevant changes):\n%s", diff)
	}
}
