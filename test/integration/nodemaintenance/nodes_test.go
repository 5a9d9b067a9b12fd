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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testNodeJoins adds nodes to a drain that has reached a later entry of its plan: one gets the
// label, one is created. Their drains begin with the first entry.
func testNodeJoins(t *testing.T, c *cluster) {
	c.createNode("one", "pool=blue")
	c.createNode("labeled", "pool=green")
	c.createPod(newPod("high", "one", atPriority(5000), withInterceptor(stubborn)))
	for _, node := range []string{"labeled", "created"} {
		c.createPod(newPod(node+"-low", node, atPriority(1000), withInterceptor(stubborn)))
		c.createPod(newPod(node+"-high", node, atPriority(5000), withInterceptor(stubborn)))
	}
	history := c.watchAll()
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesLabeled("pool", "blue"), planOf(defaultPods(1000), defaultPods(5000))...))
	c.await("the drain", states{"targets/one": targetsOf(c, "Draining", defaultPods(5000)), "request/high": asked, "node/labeled": free, "request/labeled-low": "none"})

	c.labelNode("labeled", "pool", "blue")
	c.createNode("created", "pool=blue")
	want := states{"maintenance/m": "Cordon, Drain of 3, finalizer, False: Draining", "targets/one": targetsOf(c, "Draining", defaultPods(5000))}
	for _, node := range []string{"labeled", "created"} {
		want["node/"+node] = draining
		want["targets/"+node] = targetsOf(c, "Draining", defaultPods(1000))
		want["request/"+node+"-low"] = asked
		want["request/"+node+"-high"] = "none"
	}
	c.await("the added nodes to begin with the first entry", want)

	for _, node := range []string{"labeled", "created"} {
		c.deletePod(newPod(node+"-low", node))
	}
	c.await("the added nodes to catch up", states{
		"targets/labeled": targetsOf(c, "Draining", defaultPods(5000)), "request/labeled-high": asked,
		"targets/created": targetsOf(c, "Draining", defaultPods(5000)), "request/created-high": asked,
	})
	c.expectInvariants(history)
}

// testNodeLeaves changes the label by which nodes were selected.
func testNodeLeaves(t *testing.T, c *cluster) {
	for _, node := range []string{"one", "two", "shared"} {
		c.createNode(node, "pool=blue")
		c.createPod(newPod(node, node, withInterceptor(stubborn)))
	}
	c.labelNode("shared", "rack", "first")
	history := c.watchAll()
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesLabeled("pool", "blue"), planOf()...))
	c.createMaintenance(newMaintenance("other", stageCordon, nodesLabeled("rack", "first"), planOf()...))
	c.await("the drain", states{
		"request/one": asked, "request/two": asked, "request/shared": asked, "node/two": draining,
		"maintenance/m": "Cordon, Drain of 3, finalizer, False: Draining",
	})
	c.labelNode("two", "pool", "green")
	c.labelNode("shared", "pool", "green")
	c.await("the nodes to be released", states{
		"maintenance/m": "Cordon, Drain of 1, finalizer, False: Draining",
		"node/one":      draining, "request/one": asked,
		"node/two": free, "targets/two": "none", "request/two": canceled, "pod/two": "here",
		"node/shared": cordoned, "targets/shared": "; ", "request/shared": canceled, "pod/shared": "here",
	})
	c.deletePod(newPod("one", "one"))
	c.await("the drain to finish without them", states{"maintenance/m": "Cordon, Drain of 1, finalizer, True: Drained"})
	c.expectInvariants(history)
}

// testNodeVanishes deletes a node during its drain, and creates another one with the same name.
func testNodeVanishes(t *testing.T, c *cluster) {
	c.createNode("one", "pool=blue")
	c.createNode("two", "pool=blue")
	c.createPod(newPod("low", "one", atPriority(1000), withInterceptor(stubborn)))
	c.createPod(newPod("high", "two", atPriority(5000), withInterceptor(stubborn)))
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesLabeled("pool", "blue"), planOf(defaultPods(1000))...))
	c.await("the drain", states{"request/low": asked, "request/high": "none", "targets/two": targetsOf(c, "Waiting for m.", defaultPods(1000))})

	c.deleteNode("one")
	c.await("the drain to continue without the node", states{
		"request/low": canceled, "request/high": asked, "targets/two": targetsOf(c, "Draining", defaultPods(1000000000)),
		"maintenance/m": "Cordon, Drain of 1, finalizer, False: Draining",
	})
	c.createNode("one", "pool=blue")
	c.await("the new node to be drained from the start", states{
		"node/one": draining, "targets/one": targetsOf(c, "Draining", defaultPods(1000)), "request/low": asked,
		"maintenance/m": "Cordon, Drain of 2, finalizer, False: Draining",
	})
	c.deleteNode("one")
	c.deleteMaintenance("m")
	c.await("the maintenance to be deleted without this node", states{"maintenance/m": "gone", "node/two": free, "request/high": canceled})
}

// testCordonOfOthers drains a node that an administrator has cordoned before, one that is cordoned again by hand
// during the maintenance, one that somebody applies as unschedulable meanwhile, one that is not, and one that so many
// clients have written since that kube-apiserver does not know any more who has cordoned it: only the last two become
// schedulable. A cordon of a node that is cordoned already is an update that changes nothing.
func testCordonOfOthers(t *testing.T, c *cluster) {
	for _, node := range []string{"before", "during", "neither", "merged", "applied"} {
		c.createNode(node, "pool=blue")
	}
	cordon := func(node string, unschedulable bool) {
		c.patchNodeAs("kubectl-cordon", node, types.StrategicMergePatchType, fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, unschedulable))
	}
	cordon("before", true)
	stop, _ := c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesLabeled("pool", "blue"), planOf()...))
	c.await("the drain", states{"node/before": empty, "node/during": empty, "node/neither": empty, "node/merged": empty, "node/applied": empty})
	stop()
	time.Sleep(1100 * time.Millisecond) // The times of managers have seconds, and the oldest are merged.
	for i := range 12 {
		name := fmt.Sprintf("manager-%d", i)
		c.patchNodeAs(name, "merged", types.MergePatchType, fmt.Sprintf(`{"metadata":{"annotations":{%q:""}}}`, name))
	}
	cordon("neither", true)
	c.patchNodeAs("quarantine", "applied", types.ApplyPatchType, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"applied"},"spec":{"unschedulable":true}}`)
	cordon("during", false)
	cordon("during", true)
	c.startQuick()
	c.deleteMaintenance("m")
	c.await("the end", states{"maintenance/m": "gone", "node/before": "unschedulable", "node/during": "unschedulable", "node/neither": free, "node/merged": free, "node/applied": "unschedulable"})
}

// patchNodeAs writes a node as a client with this field manager.
func (c *cluster) patchNodeAs(manager, node string, kind types.PatchType, patch string) {
	c.t.Helper()
	if _, err := c.client.CoreV1().Nodes().Patch(c.t.Context(), node, kind, []byte(patch), metav1.PatchOptions{FieldManager: manager}); err != nil {
		c.t.Fatalf("writing node %s: %v", node, err)
	}
}

// testNoNodes creates a maintenance that selects no node until one is created.
func testNoNodes(t *testing.T, c *cluster) {
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesLabeled("pool", "blue"), planOf()...))
	c.await("the reason NoNodesSelected", states{"maintenance/m": "Cordon, Drain of 0, finalizer, False: NoNodesSelected"})
	c.createNode("one", "pool=blue")
	c.await("the node", states{"maintenance/m": "Cordon, Drain of 1, finalizer, True: Drained", "node/one": empty})
	c.labelNode("one", "pool", "green")
	c.await("no node again", states{"maintenance/m": "Cordon, Drain of 0, finalizer, False: NoNodesSelected", "node/one": free})
	c.setStage("m", stageComplete)
	c.await("the completion", states{"maintenance/m": "Cordon, Drain, Complete of 0, False: NotDraining"})
}
