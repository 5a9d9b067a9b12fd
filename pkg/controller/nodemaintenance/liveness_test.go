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
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// drainAll ends the pods whose eviction is requested, until there are none.
func (f *fixture) drainAll() {
	f.t.Helper()
	for range 100 {
		f.settle()
		if !f.endRequestedPods() {
			return
		}
	}
	f.t.Fatal("evictions are still requested")
}

func (f *fixture) expectDrained(names ...string) {
	f.t.Helper()
	for _, name := range names {
		if m := f.maintenance(name); !status.IsDrained(&m.Status) {
			f.t.Errorf("%s is not drained: %+v", name, m.Status)
		}
	}
}

func plan(entries ...v1.DrainPlanEntry) []v1.DrainPlanEntry { return maintenance.CompletePlan(entries) }

// Each of three maintenances begins with pods that the next one drains later, and each of three
// nodes is shared by two of them: ordered only by age, each would wait for the next one.
func TestCircleOfContradictingPlans(t *testing.T) {
	f := newFixture(t)
	f.createNode("ab", map[string]string{"a": "", "b": ""})
	f.createNode("bc", map[string]string{"b": "", "c": ""})
	f.createNode("ca", map[string]string{"c": "", "a": ""})
	f.createPods(1, "ab", 0, ofApp("db"))
	f.createPods(1, "bc", 0, ofApp("web"))
	f.createPods(1, "ca", 3, ofApp("web"))
	f.createMaintenance("a", stageDrain, "a", plan(entryFor("web", v1.PodTypeDefault, 5))...)
	f.clock.Step(time.Minute)
	f.createMaintenance("b", stageDrain, "b", plan(entryFor("db", v1.PodTypeDefault, 5))...)
	f.clock.Step(time.Minute)
	f.createMaintenance("c", stageDrain, "c", plan(entryFor("web", v1.PodTypeDefault, 1))...)
	f.drainAll()
	f.expectDrained("a", "b", "c")
}

// Two maintenances with contradicting plans share their nodes only after both drains have begun.
func TestPlansThatContradictLater(t *testing.T) {
	f := newFixture(t)
	f.createNode("n1", map[string]string{"a": ""})
	f.createNode("n2", map[string]string{"b": ""})
	web := f.createPods(1, "n1", 0, ofApp("web"))
	f.createPods(1, "n1", 0, ofApp("db"))
	db := f.createPods(1, "n2", 0, ofApp("db"))
	f.createPods(1, "n2", 0, ofApp("web"))
	f.createMaintenance("x", stageDrain, "a", plan(entryFor("web", v1.PodTypeDefault, 5))...)
	f.clock.Step(time.Minute)
	f.createMaintenance("y", stageDrain, "b", plan(entryFor("db", v1.PodTypeDefault, 5))...)
	f.settle()
	f.relabel("n1", map[string]string{"a": "", "b": ""})
	f.relabel("n2", map[string]string{"a": "", "b": ""})
	f.settle()
	f.deletePods(append(web, db...)...)
	f.drainAll()
	f.expectDrained("x", "y")
}

// A maintenance in Cordon whose finalizer cannot be stored keeps the node cordoned when another one
// is deleted, but not its requests, targets and conditions. The cordon ends with it.
func TestClaimKeepsOnlyTheCordon(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	f.createMaintenance("old", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	f.refuse("patch", "nodemaintenances", "", func(name string) error {
		if name == "new" {
			return apierrors.NewForbidden(write.MaintenanceResource, "new", nil)
		}
		return nil
	})
	f.createMaintenance("new", stageCordon, "a")
	f.run(time.Minute)
	f.deleteMaintenance("old")
	f.run(time.Minute)
	if requesters := f.request1(pod).Spec.Requesters; len(requesters) > 0 {
		t.Errorf("deleted, but the eviction of the pod is still requested by %v", requesters)
	}
	if _, err := f.client.CoordinationV1alpha1().NodeMaintenances().Get(f.ctx, "old", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("old is not deleted: %v", err)
	}
	node := f.node("n")
	if !node.Spec.Unschedulable || node.Status.MaintenanceStatus == nil || len(node.Status.MaintenanceStatus.DrainTargets) > 0 || len(status.OwnConditions(node.Status.Conditions)) > 0 {
		t.Errorf("node %+v", node)
	}
	f.deleteMaintenance("new")
	f.settle()
	if node := f.node("n"); node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil {
		t.Errorf("not uncordoned when the claim has ended: %+v", node)
	}
}

// Such a maintenance also keeps the cordon of a node that no other one has claimed, but that a
// completion would uncordon.
func TestClaimKeepsTheCordonOfACompletion(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	node := f.node("n")
	node.Spec.Unschedulable = true
	f.update(node)
	f.refuse("patch", "nodemaintenances", "", func(name string) error {
		if name == "new" {
			return apierrors.NewForbidden(write.MaintenanceResource, "new", nil)
		}
		return nil
	})
	f.createMaintenance("new", stageCordon, "a")
	f.run(time.Second)
	f.createMaintenance("done", stageComplete, "a")
	f.run(time.Minute)
	if !f.node("n").Spec.Unschedulable || len(f.maintenance("done").Finalizers) > 0 {
		t.Errorf("node %+v, maintenance %+v", f.node("n"), f.maintenance("done"))
	}
	f.deleteMaintenance("new")
	f.settle()
	if f.node("n").Spec.Unschedulable {
		t.Error("not uncordoned when the claim has ended")
	}
}

// A maintenance whose finalizer cannot be stored writes nothing else.
func TestClaimWritesNothing(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0)
	f.refuse("patch", "nodemaintenances", "", func(name string) error { return apierrors.NewForbidden(write.MaintenanceResource, name, nil) })
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.client.ClearActions()
	f.run(time.Minute)
	for _, write := range f.writes() {
		if write != "patch nodemaintenances" {
			t.Errorf("wrote: %s", write)
		}
	}
}

// A maintenance in the stage Idle with the finalizer, for example from a backup, can be deleted,
// and does not uncordon nodes that other clients have cordoned.
func TestIdleMaintenanceWithFinalizerIsDeleted(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageIdle, "a")
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Finalizers = []string{coordinationv1alpha1.NodeMaintenanceFinalizer}
	})
	node := f.node("n")
	node.Spec.Unschedulable = true
	f.update(node)
	f.settle()
	f.deleteMaintenance("m")
	f.settle()
	if m, err := f.client.CoordinationV1alpha1().NodeMaintenances().Get(f.ctx, "m", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("not deleted: %+v %v", m, err)
	}
	if node := f.node("n"); !node.Spec.Unschedulable || len(status.OwnConditions(node.Status.Conditions)) > 0 {
		t.Errorf("node %+v", node)
	}
}

// A pod that was orphaned by its DaemonSet is evicted as a pod of the type Default.
func TestEvictionOfOrphanedPodIsRequested(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0)
	orphan := f.createPods(1, "n", 0, daemon)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.expectDrains("at first", map[string]string{"n": "1/1 Draining Default<=1000000000"})
	orphan.OwnerReferences = nil
	if _, err := f.client.CoreV1().Pods("default").Update(f.ctx, orphan, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.expectDrains("orphaned", map[string]string{"n": "0/2 Draining Default<=1000000000"})
}

// A sync of a node that began before the selector of its maintenance has changed does not remove
// the node from the new progress: without the node, the position could skip entries.
func TestOldSyncDoesNotDeselect(t *testing.T) {
	f := newFixture(t)
	f.createNode("n1", map[string]string{"a": ""})
	f.createNode("n2", map[string]string{"b": ""})
	f.createPods(1, "n1", 0, daemon)
	ordinary := f.createPods(1, "n1", 0)
	f.createPods(1, "n2", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	f.selectAlso("m", "b")
	f.deletePods(ordinary...)
	n2, err := f.nodeLister.Get("n2")
	if err != nil {
		t.Fatal(err)
	}
	// One worker syncs n2; meanwhile the selector changes, and another worker counts n1.
	specs, observed := f.progress.Selecting(n2)
	f.deliverAll()
	if err := f.syncMaintenance(f.ctx, "m"); err != nil {
		t.Fatal(err)
	}
	f.reconcile("n1")
	if left, _ := f.progress.Deselect("n2", specs, observed); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	f.expectDrains("then", map[string]string{
		"n1": "1/0 Waiting for m. Default<=1000000000",
		"n2": "0/1 Draining Default<=1000000000",
	})
}

func (f *fixture) selectAlso(name, label string) {
	f.t.Helper()
	f.change(name, func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Spec.NodeSelector.NodeSelectorTerms = append(m.Spec.NodeSelector.NodeSelectorTerms, v1.NodeSelectorTerm{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: label, Operator: v1.NodeSelectorOpExists}},
		})
	})
}

// A status has a new observedGeneration only when all its fields are about that generation.
func TestStatusIsAboutOneGeneration(t *testing.T) {
	f := newFixture(t)
	f.createNode("n1", map[string]string{"a": ""})
	f.createNode("n2", map[string]string{"b": ""})
	f.createPods(1, "n2", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	f.expectDrained("m")
	before := f.maintenance("m").Status
	f.clock.Step(time.Minute)
	f.selectAlso("m", "b")
	f.deliverAll()
	if err := f.syncMaintenance(f.ctx, "m"); err != nil {
		t.Fatal(err)
	}
	if status := f.maintenance("m").Status; status.ObservedGeneration != before.ObservedGeneration || status.SelectedNodes != before.SelectedNodes {
		t.Errorf("before the new node was examined: %+v", status)
	}
	f.settle()
	m := f.maintenance("m")
	if drained := status.FindDrained(&m.Status); m.Status.ObservedGeneration != m.Generation || drained.ObservedGeneration != m.Generation ||
		m.Status.SelectedNodes != 2 || status.IsDrained(&m.Status) || m.Status.DrainStatus.ActiveEvictionRequests != 1 {
		t.Errorf("afterwards: %+v", m.Status)
	}
}

// In Complete a True condition keeps its generation, and a False one gets the new generation.
func TestConditionAfterTheDrain(t *testing.T) {
	for _, drained := range []bool{true, false} {
		f := newFixture(t)
		f.createNode("n", map[string]string{"a": ""})
		if !drained {
			f.createPods(1, "n", 0)
		}
		f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
		f.settle()
		f.setStage("m", stageComplete)
		f.settle()
		m := f.maintenance("m")
		condition := status.FindDrained(&m.Status)
		if m.Status.ObservedGeneration != m.Generation || status.IsDrained(&m.Status) != drained || len(m.Status.DrainStatus.Blockers) > 0 || m.Status.DrainStatus.BlockerCount != 0 {
			t.Errorf("drained %t: %+v", drained, m.Status)
		}
		if drained == (condition.ObservedGeneration == m.Generation) {
			t.Errorf("drained %t: the condition is about generation %d of %d", drained, condition.ObservedGeneration, m.Generation)
		}
	}
}

// A selector that matches no node for a while does not move the position to the end of the plan.
func TestPositionStaysWithoutNodes(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0)
	f.createMaintenance("m", stageDrain, "a", plan()...)
	f.settle()
	f.relabel("n", nil)
	f.settle()
	m := f.maintenance("m")
	if position := *m.Status.DrainStatus.DrainPlanPosition; position != 0 || status.FindDrained(&m.Status).Reason != coordinationv1alpha1.NodeMaintenanceReasonNoNodes {
		t.Errorf("position %d, status %+v", position, m.Status)
	}
}
