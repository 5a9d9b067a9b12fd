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

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/maintenance"
)

// targetsOf returns what describeDrain returns for a node with these targets.
func targetsOf(c *cluster, message string, entries ...v1.DrainPlanEntry) string {
	c.t.Helper()
	targets, err := maintenance.NewTargets(entries)
	if err != nil {
		c.t.Fatalf("reading targets: %v", err)
	}
	return fmt.Sprintf("%s; %s", targets, message)
}

// testTwoIntersecting creates maintenances a and b, which both wait for a pod on their shared node.
func testTwoIntersecting(t *testing.T, c *cluster) {
	for _, name := range []string{"one", "two", "three"} {
		c.createNode(name)
		c.createPod(newPod(name+"-low", name, atPriority(1000), withInterceptor(stubborn)))
		c.createPod(newPod(name+"-high", name, atPriority(5000), withInterceptor(stubborn)))
	}
	lowOf := func(node string) []*v1.Pod { return []*v1.Pod{newPod(node+"-low", node)} }
	history := c.watchAll()
	c.startQuick()
	c.createMaintenance(newMaintenance("a", stageDrain, nodesNamed("one", "two"), planOf(defaultPods(1000))...))
	c.await("the first maintenance", states{"targets/one": targetsOf(c, "Draining", defaultPods(1000)), "targets/two": targetsOf(c, "Draining", defaultPods(1000))})
	c.createMaintenance(newMaintenance("b", stageDrain, nodesNamed("two", "three"), planOf(defaultPods(1000))...))
	c.await("both maintenances", states{
		"targets/three":   targetsOf(c, "Draining", defaultPods(1000)),
		"request/one-low": asked, "request/two-low": asked, "request/three-low": asked,
		"request/one-high": "none", "request/two-high": "none", "request/three-high": "none",
	})

	c.deletePods(lowOf("one"))
	c.deletePods(lowOf("three"))
	c.await("the other nodes to wait for node two", states{
		"targets/one":   targetsOf(c, "Waiting for a.", defaultPods(1000)),
		"targets/two":   targetsOf(c, "Draining", defaultPods(1000)),
		"targets/three": targetsOf(c, "Waiting for b.", defaultPods(1000)),
	})
	c.settle()
	c.expect("no maintenance to advance", states{"request/one-high": "none", "request/two-high": "none", "request/three-high": "none"})

	c.setStage("a", stageComplete)
	c.await("the completion of a", states{
		"maintenance/a": "Cordon, Drain, Complete of 2, False: NotDraining",
		"node/one":      free, "targets/one": "none", "pod/one-high": "here",
		"node/two": draining, "request/two-low": asked, "targets/two": targetsOf(c, "Draining", defaultPods(1000)),
		"maintenance/b": "Cordon, Drain of 2, finalizer, False: Draining",
	})

	c.deletePods(lowOf("two"))
	c.await("b to advance", states{
		"request/two-high": asked, "request/three-high": asked, "request/one-high": "none",
		"targets/two": targetsOf(c, "Draining", defaultPods(1000000000)),
	})
	c.expectInvariants(history)
}

// testCompletionOfHolder completes a maintenance that another one waits for. The other advances,
// although the pod for which the first one waited still exists.
func testCompletionOfHolder(t *testing.T, c *cluster) {
	for _, name := range []string{"one", "two"} {
		c.createNode(name)
	}
	c.createPod(newPod("one-high", "one", atPriority(5000), withInterceptor(stubborn)))
	c.createPod(newPod("two-low", "two", atPriority(1000), withInterceptor(stubborn)))
	history := c.watchAll()
	c.startQuick()
	c.createMaintenance(newMaintenance("holder", stageDrain, nodesNamed("one", "two"), planOf(defaultPods(1000))...))
	c.await("the first maintenance to drain", states{"request/two-low": asked, "targets/one": targetsOf(c, "Waiting for holder.", defaultPods(1000))})
	c.createMaintenance(newMaintenance("other", stageDrain, nodesNamed("one"), planOf(defaultPods(1000))...))
	c.await("the other to wait", states{
		"maintenance/other": "Cordon, Drain of 1, finalizer, False: WaitingForOtherMaintenances",
		"targets/one":       targetsOf(c, "Waiting for holder.", defaultPods(1000)),
	})
	c.settle()
	c.expect("the other to wait", states{"request/one-high": "none"})

	c.setStage("holder", stageComplete)
	c.await("the other to continue", states{
		"request/one-high": asked, "request/two-low": canceled, "node/one": draining, "node/two": free,
		"targets/one":       targetsOf(c, "Draining", defaultPods(1000000000)),
		"maintenance/other": "Cordon, Drain of 1, finalizer, False: Draining",
	})
	c.expectInvariants(history)
}

// testFastForward creates a maintenance of a node that an older one has already drained beyond the
// first entry of the new plan.
func testFastForward(t *testing.T, c *cluster) {
	c.createNode("one")
	c.createNode("two")
	c.createPod(newPod("high", "one", atPriority(5000), withInterceptor(stubborn)))
	c.createPod(newPod("low", "two", atPriority(500), withInterceptor(stubborn)))
	history := c.watchAll()
	c.startEvictionController()
	stop, _ := c.startLogged()
	c.createMaintenance(newMaintenance("old", stageDrain, nodesNamed("one"), planOf(defaultPods(5000))...))
	c.await("the old one", states{"targets/one": targetsOf(c, "Draining", defaultPods(5000)), "request/high": asked})
	c.createMaintenance(newMaintenance("new", stageDrain, nodesNamed("one", "two"), planOf(defaultPods(500))...))
	c.awaitEvent("DrainFastForwarded", "new")
	c.await("the new one", states{
		"targets/one": targetsOf(c, "Draining", defaultPods(5000)), "request/high": asked,
		"targets/two": targetsOf(c, "Draining", defaultPods(500)), "request/low": asked,
	})
	c.settle()
	stop()
	c.startLogged()
	c.settle()
	if n, err := c.countEvents(t.Context(), "DrainFastForwarded", "new"); n != 1 || err != nil {
		t.Errorf("DrainFastForwarded was emitted %d times (%v), must be once, also after a restart", n, err)
	}
	if n, err := c.countEvents(t.Context(), "DrainFastForwarded", "old"); n != 0 || err != nil {
		t.Errorf("DrainFastForwarded was emitted %d times for the older maintenance (%v)", n, err)
	}
	c.expectInvariants(history)
}

// testThreeIntersecting creates three maintenances: each shares a node with each of the others, and
// all plans differ.
func testThreeIntersecting(t *testing.T, c *cluster) {
	for _, name := range []string{"ab", "bc", "ca"} {
		c.createNode(name)
		for _, priority := range []int32{1000, 2000, 3000} {
			c.createPod(newPod(fmt.Sprintf("%s-%d", name, priority), name, atPriority(priority), withInterceptor(stubborn)))
		}
	}
	history := c.watchAll()
	c.startEvictionController()
	c.startLogged()
	// Create them in order: if a younger one gets its finalizer first, its targets are kept.
	c.createMaintenance(newMaintenance("a", stageDrain, nodesNamed("ab", "ca"), planOf(defaultPods(1000), defaultPods(3000))...))
	c.await("the first maintenance", states{"targets/ab": targetsOf(c, "Draining", defaultPods(1000)), "targets/ca": targetsOf(c, "Draining", defaultPods(1000))})
	c.createMaintenance(newMaintenance("b", stageDrain, nodesNamed("ab", "bc"), planOf(defaultPods(2000))...))
	c.await("the second maintenance", states{"targets/bc": targetsOf(c, "Draining", defaultPods(2000))})
	c.createMaintenance(newMaintenance("c", stageDrain, nodesNamed("bc", "ca"), planOf(defaultPods(3000))...))
	c.await("the most restrictive targets", states{
		"targets/ab":      targetsOf(c, "Draining", defaultPods(1000)),
		"targets/ca":      targetsOf(c, "Draining", defaultPods(1000)),
		"targets/bc":      targetsOf(c, "Draining", defaultPods(2000)),
		"request/bc-2000": asked, "request/bc-3000": "none", "request/ab-2000": "none", "request/ca-2000": "none",
	})
	for _, name := range []string{"a", "b", "c"} {
		c.eventually("the nodes of "+name+" to be counted", func(context.Context) (bool, string) {
			selected := c.maintenance(name).Status.SelectedNodes
			return selected == 2, fmt.Sprintf("%d", selected)
		})
	}

	c.deletePods([]*v1.Pod{newPod("ab-1000", "ab"), newPod("ca-1000", "ca"), newPod("bc-1000", "bc"), newPod("bc-2000", "bc")})
	c.await("the next step of a", states{
		"targets/ab":      targetsOf(c, "Draining (limited by b)", defaultPods(2000)),
		"targets/ca":      targetsOf(c, "Draining", defaultPods(3000)),
		"request/ab-2000": asked, "request/ab-3000": "none", "request/ca-2000": asked, "request/ca-3000": asked,
	})
	for _, node := range []string{"ab", "bc", "ca"} {
		c.deletePods([]*v1.Pod{newPod(node+"-2000", node)})
	}
	c.await("the last step", states{"request/ab-3000": asked, "request/bc-3000": asked, "request/ca-3000": asked})
	for _, node := range []string{"ab", "bc", "ca"} {
		c.deletePods([]*v1.Pod{newPod(node+"-3000", node)})
	}
	c.await("the drains to finish", states{
		"maintenance/a": "Cordon, Drain of 2, finalizer, True: Drained",
		"maintenance/b": "Cordon, Drain of 2, finalizer, True: Drained",
		"maintenance/c": "Cordon, Drain of 2, finalizer, True: Drained",
		"node/ab":       empty, "node/bc": empty, "node/ca": empty,
	})
	c.expectInvariants(history)
}
