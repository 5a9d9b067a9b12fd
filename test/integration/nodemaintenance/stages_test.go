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
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
)

// stageTest changes the stages of a maintenance of node one, whose pod stays until the test deletes
// it. Node two is not selected.
type stageTest struct {
	name  string
	steps []stageStep
}

// stageStep is an action of an administrator, and the expected states.
type stageStep struct {
	// stage is the stage to set. The first step creates the maintenance in it.
	stage coordinationv1alpha1.NodeMaintenanceStage
	// deleted and podEnds mean that the maintenance or the pod is deleted instead.
	deleted, podEnds bool
	// The states that are expected then.
	maintenance, node, request string
}

const (
	asked    = "Intercepting by [nodemaintenance.k8s.io]"
	canceled = "Canceled by []"

	planned  = "schedulable: MaintenancePlanned"
	cordoned = "unschedulable, claimed: MaintenanceInProgress"
	draining = "unschedulable, claimed: DrainInProgress, MaintenanceInProgress"
	empty    = "unschedulable, claimed: Drained, MaintenanceInProgress"
	free     = "schedulable"
)

var stageTests = []stageTest{
	{"all stages in order", []stageStep{
		{stage: stageIdle, maintenance: "Idle of 1", node: planned, request: "none"},
		{stage: stageCordon, maintenance: "Idle, Cordon of 1, finalizer", node: cordoned, request: "none"},
		{stage: stageDrain, maintenance: "Idle, Cordon, Drain of 1, finalizer, False: Draining", node: draining, request: asked},
		{podEnds: true, maintenance: "Idle, Cordon, Drain of 1, finalizer, True: Drained", node: empty, request: "Evicted by [nodemaintenance.k8s.io]"},
		{stage: stageComplete, maintenance: "Idle, Cordon, Drain, Complete of 1, True: Drained", node: free, request: "Evicted by [nodemaintenance.k8s.io]"},
		{deleted: true, maintenance: "gone", node: free, request: "Evicted by [nodemaintenance.k8s.io]"},
	}},
	{"Idle to Complete", []stageStep{
		{stage: stageIdle, maintenance: "Idle of 1", node: planned, request: "none"},
		{stage: stageComplete, maintenance: "Idle, Complete of 1", node: free, request: "none"},
	}},
	{"Idle to Drain", []stageStep{
		{stage: stageIdle, maintenance: "Idle of 1", node: planned, request: "none"},
		{stage: stageDrain, maintenance: "Idle, Cordon, Drain of 1, finalizer, False: Draining", node: draining, request: asked},
	}},
	{"Cordon to Complete", []stageStep{
		{stage: stageCordon, maintenance: "Cordon of 1, finalizer", node: cordoned, request: "none"},
		{stage: stageComplete, maintenance: "Cordon, Complete of 1", node: free, request: "none"},
	}},
	{"completed during the drain", []stageStep{
		{stage: stageDrain, maintenance: "Cordon, Drain of 1, finalizer, False: Draining", node: draining, request: asked},
		{stage: stageComplete, maintenance: "Cordon, Drain, Complete of 1, False: NotDraining", node: free, request: canceled},
	}},
	{"created in Complete", []stageStep{
		{stage: stageComplete, maintenance: "Complete of 1", node: free, request: "none"},
	}},
	{"deleted in Idle", []stageStep{
		{stage: stageIdle, maintenance: "Idle of 1", node: planned, request: "none"},
		{deleted: true, maintenance: "gone", node: free, request: "none"},
	}},
	{"deleted in Cordon", []stageStep{
		{stage: stageCordon, maintenance: "Cordon of 1, finalizer", node: cordoned, request: "none"},
		{deleted: true, maintenance: "gone", node: free, request: "none"},
	}},
	{"deleted in Drain", []stageStep{
		{stage: stageDrain, maintenance: "Cordon, Drain of 1, finalizer, False: Draining", node: draining, request: asked},
		{deleted: true, maintenance: "gone", node: free, request: canceled},
	}},
	{"deleted when drained", []stageStep{
		{stage: stageDrain, maintenance: "Cordon, Drain of 1, finalizer, False: Draining", node: draining, request: asked},
		{podEnds: true, maintenance: "Cordon, Drain of 1, finalizer, True: Drained", node: empty, request: "Evicted by [nodemaintenance.k8s.io]"},
		{deleted: true, maintenance: "gone", node: free, request: "Evicted by [nodemaintenance.k8s.io]"},
	}},
	{"deleted in Complete", []stageStep{
		{stage: stageCordon, maintenance: "Cordon of 1, finalizer", node: cordoned, request: "none"},
		{stage: stageComplete, maintenance: "Cordon, Complete of 1", node: free, request: "none"},
		{deleted: true, maintenance: "gone", node: free, request: "none"},
	}},
}

func (test *stageTest) run(c *cluster) {
	c.createNode("one")
	c.createNode("two")
	pod := c.createPod(newPod("pod", "one", withInterceptor(stubborn)))
	other := c.createPod(newPod("other", "two"))
	history := c.watchAll()
	_, writes := c.startQuick()
	for i, step := range test.steps {
		switch {
		case i == 0:
			c.createMaintenance(newMaintenance("m", step.stage, nodesNamed("one"), planOf()...))
		case step.deleted:
			c.deleteMaintenance("m")
		case step.podEnds:
			c.deletePod(pod)
		default:
			c.setStage("m", step.stage)
		}
		c.await(fmt.Sprintf("step %d", i), states{
			"maintenance/m": step.maintenance, "node/one": step.node, "request/pod": step.request, "node/two": free, "request/other": "none",
		})
	}
	c.settle()
	last := test.steps[len(test.steps)-1]
	c.expect("the same states later", states{"maintenance/m": last.maintenance, "node/one": last.node, "request/pod": last.request, "node/two": free})
	c.expectUntouched(other)
	for _, write := range writes.all() {
		if strings.Contains(write, "nodes/two") {
			c.t.Errorf("the controller has written to a node that no maintenance selects: %s", write)
		}
	}
	c.expectInvariants(history)
}

// testIdleTouchesNothing compares objects before and after an announcement, which may change only
// the status of the maintenance and conditions of the node.
func testIdleTouchesNothing(t *testing.T, c *cluster) {
	node := c.createNode("one")
	pod := c.createPod(newPod("pod", "one"))
	created := c.createMaintenance(newMaintenance("m", stageIdle, nodesNamed("one"), planOf()...))
	_, writes := c.startQuick()
	c.await("the announcement", states{"node/one": planned, "maintenance/m": "Idle of 1"})
	c.settle()

	c.expectUntouched(pod)
	now := c.node("one")
	if diff := cmp.Diff(node.Spec, now.Spec); diff != "" {
		t.Errorf("spec of the node (-before +now):\n%s", diff)
	}
	if now.Status.MaintenanceStatus != nil {
		t.Errorf("the node has a maintenanceStatus: %+v", now.Status.MaintenanceStatus)
	}
	m := c.maintenance("m")
	if diff := cmp.Diff(created.Finalizers, m.Finalizers) + cmp.Diff(created.Spec, m.Spec); diff != "" {
		t.Errorf("finalizers and spec of the maintenance (-before +now):\n%s", diff)
	}
	got := slices.Compact(slices.Sorted(slices.Values(writes.all())))
	if diff := cmp.Diff([]string{"PATCH nodes/one/status", "PUT nodemaintenances/m/status"}, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// testFinalizerFirst lets the write of the finalizer fail: no node may be changed before the
// finalizer is stored.
func testFinalizerFirst(t *testing.T, c *cluster) {
	c.createNode("one")
	c.createPod(newPod("pod", "one"))
	c.startEvictionController()
	writes := &writeLog{}
	barrier := newBarrier("PATCH nodemaintenances/m")
	c.StartMaintenanceController(c.ClientThrough(maintenanceUser, func(next http.RoundTripper) http.RoundTripper { return writes.wrap(barrier.Wrap(next)) }), c.clock)
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.eventually("three attempts to add the finalizer", func(context.Context) (bool, string) {
		n := writes.count("PATCH nodemaintenances/m")
		return n >= 3, fmt.Sprint(n)
	})
	c.settle()
	c.expect("without the finalizer", states{"node/one": free, "request/pod": "none"})
	barrier.Open()
	c.await("the drain", states{"node/one": empty, "pod/pod": "gone", "maintenance/m": "Cordon, Drain of 1, finalizer, True: Drained"})
	var order []string
	for _, write := range writes.all() {
		if strings.HasPrefix(write, "PATCH evictionrequests/") {
			write = "PATCH evictionrequests"
		}
		if !slices.Contains(order, write) && write != "PUT nodemaintenances/m/status" {
			order = append(order, write)
		}
	}
	want := []string{"PATCH nodemaintenances/m", "PATCH nodes/one", "PATCH nodes/one/status", "PATCH evictionrequests"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order of the writes (-want +got):\n%s", diff)
	}
}

// testLastUncordons ends three maintenances that claim the same node.
func testLastUncordons(t *testing.T, c *cluster) {
	c.createNode("one")
	c.createPod(newPod("pod", "one", withInterceptor(stubborn)))
	history := c.watchAll()
	c.startQuick()
	c.createMaintenance(newMaintenance("a", stageDrain, nodesNamed("one"), planOf()...))
	c.createMaintenance(newMaintenance("b", stageDrain, nodesNamed("one"), planOf()...))
	c.createMaintenance(newMaintenance("c", stageCordon, nodesNamed("one"), planOf()...))
	c.createMaintenance(newMaintenance("d", stageIdle, nodesNamed("one"), planOf()...))
	c.await("the drain", states{"node/one": "unschedulable, claimed: DrainInProgress, MaintenanceInProgress, MaintenancePlanned", "request/pod": asked})

	c.setStage("a", stageComplete)
	c.await("the first to complete", states{"maintenance/a": "Cordon, Drain, Complete of 1, False: NotDraining"})
	c.settle()
	c.expect("with b and c", states{"node/one": "unschedulable, claimed: DrainInProgress, MaintenanceInProgress, MaintenancePlanned", "request/pod": asked})

	c.deleteMaintenance("b")
	c.await("the second to be deleted", states{
		"maintenance/b": "gone", "request/pod": canceled, "targets/one": "; ",
		"node/one": "unschedulable, claimed: MaintenanceInProgress, MaintenancePlanned",
	})

	c.setStage("c", stageComplete)
	c.await("the last to complete", states{"maintenance/c": "Cordon, Complete of 1", "node/one": planned, "pod/pod": "here"})
	c.expectInvariants(history)
}

// testManualCordon manually cordons nodes that no maintenance claims, or claims any longer. The
// controller must not uncordon them.
func testManualCordon(t *testing.T, c *cluster) {
	for _, name := range []string{"claimed", "announced", "never"} {
		c.createNode(name)
	}
	stop, _ := c.startQuick()
	c.createMaintenance(newMaintenance("m", stageCordon, nodesNamed("claimed"), planOf()...))
	c.createMaintenance(newMaintenance("announced", stageIdle, nodesNamed("announced"), planOf()...))
	c.await("the cordon", states{"node/claimed": cordoned, "node/announced": planned})
	c.setStage("m", stageComplete)
	c.await("the node to be released", states{"node/claimed": free, "maintenance/m": "Cordon, Complete of 1"})

	want := states{"node/claimed": "unschedulable", "node/never": "unschedulable", "node/announced": "unschedulable: MaintenancePlanned"}
	for _, name := range []string{"claimed", "announced", "never"} {
		c.setSchedulable(name, false)
	}
	c.settle()
	c.expect("the manually cordoned nodes", want)

	stop()
	_, writes := c.startLogged()
	c.settle()
	c.expect("the same after a restart", want)
	c.setStage("announced", stageComplete)
	c.await("the end of the announcement", states{"maintenance/announced": "Idle, Complete of 1"})
	if n := writes.count("PATCH nodes/claimed") + writes.count("PATCH nodes/never") + writes.count("PATCH nodes/claimed/status"); n != 0 {
		t.Errorf("a restarted controller has written to nodes without a maintenance %d times: %v", n, writes.all())
	}
}
