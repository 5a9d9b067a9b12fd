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
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
)

// reselect has the maintenance select the nodes with another label.
func (f *fixture) reselect(name, label string) {
	f.t.Helper()
	f.change(name, func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Generation++
		m.Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Key = label
	})
}

func (f *fixture) complete(name string) {
	f.t.Helper()
	f.change(name, func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Generation++
		m.Spec.Stage = stageComplete
	})
}

// No node is cordoned before all were counted: its status, which says who has cordoned it, could
// not be written yet.
func TestNoCordonBeforeAllAreCounted(t *testing.T) {
	f := newFixture(t)
	f.createNode("n1", map[string]string{"a": "", "b": ""})
	f.createNode("n2", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	for range 3 {
		f.deliverAll()
		f.syncOnly("m")
	}
	if err := f.syncNode(f.ctx, "n2"); err != nil {
		t.Fatal(err)
	}
	if node := f.node("n2"); node.Spec.Unschedulable && node.Status.MaintenanceStatus == nil {
		t.Error("cordoned without a status")
	}
	f.restart()
	f.reselect("m", "b")
	f.run(time.Minute)
	if f.node("n2").Spec.Unschedulable || !f.node("n1").Spec.Unschedulable {
		t.Errorf("n1 unschedulable %t, n2 %t", f.node("n1").Spec.Unschedulable, f.node("n2").Spec.Unschedulable)
	}
}

// A node whose drain waits for a claim has a status that says who has cordoned it, also after a
// restart.
func TestCordonOfANodeThatWaitsForAClaimEnds(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createNode("other", map[string]string{"b": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.createMaintenance("claim", stageDrain, "a", maintenance.StandardPlan()...)
	f.deliverAll()
	if err := f.observe(f.maintenance("claim")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		f.deliverAll()
		f.syncOnly("m")
		if err := f.syncNode(f.ctx, "n"); err != nil {
			t.Fatal(err)
		}
	}
	if node := f.node("n"); !node.Spec.Unschedulable || !storedTargets(node).IsEmpty() {
		t.Fatalf("does not wait: %+v", node)
	}
	f.reselect("m", "b")
	f.reselect("claim", "b")
	f.restart()
	f.run(time.Minute)
	if node := f.node("n"); node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil {
		t.Errorf("not released: %+v", node)
	}
}

// A node that was cordoned, and whose status cannot be written, is released when it is not
// selected any more. Who cordons it after that is left alone.
func TestCordonWithoutAStatusEnds(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createNode("other", map[string]string{"b": ""})
	f.refuse("patch", "nodes", "status", webhook)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(time.Minute)
	if node := f.node("n"); !node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil {
		t.Fatalf("not cordoned without a status: %+v", node)
	}
	f.reselect("m", "b")
	f.run(time.Minute)
	node := f.node("n")
	if node.Spec.Unschedulable {
		t.Error("still unschedulable")
	}
	node.Spec.Unschedulable = true
	f.update(node)
	f.run(time.Minute)
	if !f.node("n").Spec.Unschedulable {
		t.Error("the cordon of another client was reverted")
	}
}

// That a node was made schedulable is forgotten when another maintenance cordons it, also while
// the status still tells of the first one.
func TestCordonAfterAnUncordonEnds(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": "", "b": ""})
	f.createMaintenance("m1", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	refused := f.refuse("patch", "nodes", "status", webhook)
	f.complete("m1")
	f.run(10 * time.Second)
	if node := f.node("n"); node.Spec.Unschedulable || node.Status.MaintenanceStatus == nil {
		t.Fatalf("not uncordoned with a status: %+v", node)
	}
	// It comes with a node that is not counted before it is completed.
	f.createNode("other", map[string]string{"b": ""})
	f.createMaintenance("m2", stageDrain, "b", maintenance.StandardPlan()...)
	for range 3 {
		f.deliverAll()
		f.syncOnly("m2")
	}
	if err := f.syncNode(f.ctx, "n"); err != nil {
		t.Fatal(err)
	}
	f.complete("m2")
	for range 3 {
		f.deliverAll()
		f.syncOnly("m2")
	}
	refused.err = allowed
	f.run(time.Minute)
	for _, name := range []string{"m1", "m2"} {
		if m := f.maintenance(name); len(m.Finalizers) > 0 {
			t.Errorf("%s is not over", name)
		}
	}
	if node := f.node("n"); node.Spec.Unschedulable {
		t.Error("still unschedulable")
	}
}

// While a maintenance completes it may come to select other nodes: those that it has cordoned are
// released all the same.
func TestCompletionThatSelectsOtherNodes(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createNode("other", map[string]string{"b": ""})
	status := f.refuse("patch", "nodes", "status", webhook)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(time.Minute)
	cordon := f.refuse("patch", "nodes", "", webhook)
	f.complete("m")
	f.restart()
	f.run(time.Minute)
	f.reselect("m", "b")
	f.run(time.Minute)
	if node := f.node("n"); !node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil || len(f.maintenance("m").Finalizers) == 0 {
		t.Errorf("released already: %+v", node)
	}
	status.err, cordon.err = allowed, allowed
	f.run(time.Minute)
	if f.node("n").Spec.Unschedulable || len(f.maintenance("m").Finalizers) > 0 {
		t.Error("not released")
	}
}

// A cordon that another client has reverted before it was published in the status is over: whoever
// cordons the node after that is another client.
func TestOwnCordonThatWasTakenBack(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createNode("other", map[string]string{"b": ""})
	f.refuse("patch", "nodes", "status", webhook)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(time.Minute)
	for _, unschedulable := range []bool{false, true} {
		f.reselect("m", "b")
		node := f.node("n")
		node.Spec.Unschedulable = unschedulable
		f.update(node)
		f.run(time.Minute)
		if got := f.node("n").Spec.Unschedulable; got != unschedulable {
			t.Errorf("unschedulable %t, want %t", got, unschedulable)
		}
	}
}

// What was written to a node is not known of another one with its name, and forgotten with it.
func TestOwnCordonOfANodeThatIsReplaced(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.refuse("patch", "nodes", "status", webhook)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(time.Minute)
	remove := func() {
		t.Helper()
		if err := f.client.CoreV1().Nodes().Delete(f.ctx, "n", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	f.createNode("n", nil)
	node := f.node("n")
	node.Spec.Unschedulable = true
	f.update(node)
	f.run(time.Minute)
	if !f.node("n").Spec.Unschedulable {
		t.Error("the cordon of another node was taken back")
	}
	remove()
	f.run(time.Minute)
	if _, kept := f.ownCordons.Load("n"); kept {
		t.Error("remembered after the node is gone")
	}
}

// A client that reverts a cordon at once, while the watch is interrupted, leaves the cache unchanged:
// the node is reconciled again without an event.
func TestRevertedCordonWithoutAnEvent(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageCordon, "a")
	f.settle()
	uncordon := func() {
		node := f.node("n")
		node.Spec.Unschedulable = false
		f.update(node)
	}
	uncordon()
	f.deliverAll()
	for f.stepSyncs() {
	}
	if !f.node("n").Spec.Unschedulable {
		t.Fatal("not cordoned again")
	}
	uncordon()
	f.run(time.Minute)
	if !f.node("n").Spec.Unschedulable {
		t.Error("not cordoned after the second time")
	}
}
