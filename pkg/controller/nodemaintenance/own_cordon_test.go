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
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// reselect changes the label by which the maintenance selects nodes.
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

// No node is cordoned before the pods of all nodes are counted, because the status that records the
// cordon cannot be written earlier.
func TestNoCordonBeforeAllAreCounted(t *testing.T) {
	f := newFixture(t)
	f.createNode("n1", map[string]string{"a": "", "b": ""})
	f.createNode("n2", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	for range 3 {
		f.deliverAll()
		f.syncOnly("m")
	}
	f.reconcile("n2")
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

// A node whose drain waits for the finalizer of another maintenance has a status that records the
// cordon, so that the node is uncordoned even after a restart.
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
		f.reconcile("n")
	}
	if node := f.node("n"); !node.Spec.Unschedulable || !progress.StoredTargets(node).IsEmpty() {
		t.Fatalf("the drain does not wait: %+v", node)
	}
	f.reselect("m", "b")
	f.reselect("claim", "b")
	f.restart()
	f.run(time.Minute)
	if node := f.node("n"); node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil {
		t.Errorf("not released: %+v", node)
	}
}

// A cordoned node whose status cannot be written is uncordoned when it is no longer selected. A
// later cordon by another client is not reverted.
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

// The record that a node was uncordoned is removed when another maintenance cordons the node, even
// while the node still has the status of the first maintenance.
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
	// The pods of this node are not counted before m2 is completed.
	f.createNode("other", map[string]string{"b": ""})
	f.createMaintenance("m2", stageDrain, "b", maintenance.StandardPlan()...)
	for range 3 {
		f.deliverAll()
		f.syncOnly("m2")
	}
	f.reconcile("n")
	f.complete("m2")
	for range 3 {
		f.deliverAll()
		f.syncOnly("m2")
	}
	refused.err = allowed
	f.run(time.Minute)
	for _, name := range []string{"m1", "m2"} {
		if m := f.maintenance(name); len(m.Finalizers) > 0 {
			t.Errorf("%s is not completed", name)
		}
	}
	if node := f.node("n"); node.Spec.Unschedulable {
		t.Error("still unschedulable")
	}
}

// If the selector changes while a maintenance completes, the nodes that it has cordoned are still
// released.
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
		t.Errorf("released too early: %+v", node)
	}
	status.err, cordon.err = allowed, allowed
	f.run(time.Minute)
	if f.node("n").Spec.Unschedulable || len(f.maintenance("m").Finalizers) > 0 {
		t.Error("not released")
	}
}

// If another client reverts a cordon before the status records it, the record of the cordon is
// removed: only another client can have cordoned the node after that.
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

// The record of a cordon does not apply to a new node of the same name, and is deleted with it.
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
		t.Error("the cordon of another node was reverted")
	}
	remove()
	f.run(time.Minute)
	if _, kept := f.ownCordons.Load("n"); kept {
		t.Error("the record is not deleted with the node")
	}
}

// If a client reverts a cordon while the watch is interrupted, the cache does not change. Therefore
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
		t.Error("not cordoned again after the second uncordon")
	}
}

// A node that somebody has cordoned before or during its maintenance stays so. Whoever updates the field to the value
// that it has already does not become its manager, so its manager has made the node unschedulable; who applies it does.
func TestCordonOfOthersStays(t *testing.T) {
	entry := func(manager, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Subresource: subresource, Operation: metav1.ManagedFieldsOperationUpdate,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	applied := func(manager, fields string) metav1.ManagedFieldsEntry {
		found := entry(manager, "", fields)
		found.Operation = metav1.ManagedFieldsOperationApply
		return found
	}
	const unschedulable, taints = `{"f:spec":{"f:unschedulable":{}}}`, `{"f:spec":{"f:taints":{}}}`
	// tainted returns a taint of a cordoned node that was added at this time after the maintenance was created.
	tainted := func(after time.Duration) *v1.Taint {
		return &v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: start.Add(after)}}
	}
	merged := entry("ancient-changes", "", unschedulable)
	for name, test := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		// before is whether the node is unschedulable before the maintenance.
		before, stays bool
		taint         *v1.Taint
	}{
		"nobody knows":             {fields: nil, before: true},
		"by this controller":       {fields: []metav1.ManagedFieldsEntry{entry("kubectl", "", taints), entry(write.FieldManager, "", unschedulable)}},
		"by kubectl before":        {fields: []metav1.ManagedFieldsEntry{entry(write.FieldManager, "", taints), entry("kubectl-cordon", "", unschedulable)}, before: true, stays: true},
		"by kubectl during":        {fields: []metav1.ManagedFieldsEntry{entry("kubectl-cordon", "", unschedulable)}, stays: true},
		"by both":                  {fields: []metav1.ManagedFieldsEntry{entry("other", "", unschedulable), entry(write.FieldManager, "", unschedulable)}},
		"by both, as with apply":   {fields: []metav1.ManagedFieldsEntry{entry(write.FieldManager, "", unschedulable), applied("gitops", unschedulable)}, stays: true},
		"of others, as with apply": {fields: []metav1.ManagedFieldsEntry{entry(write.FieldManager, "", unschedulable), applied("gitops", taints)}},
		"applied, and merged":      {fields: []metav1.ManagedFieldsEntry{merged, applied("gitops", unschedulable)}, stays: true},
		"in a subresource":         {fields: []metav1.ManagedFieldsEntry{entry("kubelet", "status", unschedulable)}, before: true},
		"what cannot be read":      {fields: []metav1.ManagedFieldsEntry{entry("other", "", `{"f:spec":[]}`)}, before: true},
		"by a client with no name": {fields: []metav1.ManagedFieldsEntry{entry("", "", unschedulable)}, before: true, stays: true},
		// kube-apiserver keeps ten managers, and merges the oldest ones into one that has no other name.
		"merged, nobody knows":                 {fields: []metav1.ManagedFieldsEntry{merged, entry(write.FieldManager, "", taints)}},
		"merged, tainted during":               {fields: []metav1.ManagedFieldsEntry{merged}, taint: tainted(time.Second)},
		"merged, tainted by a clock behind":    {fields: []metav1.ManagedFieldsEntry{merged}, taint: tainted(-30 * time.Second)},
		"merged, tainted before":               {fields: []metav1.ManagedFieldsEntry{merged}, before: true, taint: tainted(-time.Hour), stays: true},
		"merged, another taint before":         {fields: []metav1.ManagedFieldsEntry{merged}, taint: &v1.Taint{Key: "other", TimeAdded: &metav1.Time{Time: start.Add(-time.Hour)}}},
		"merged, a taint without time":         {fields: []metav1.ManagedFieldsEntry{merged}, taint: &v1.Taint{Key: v1.TaintNodeUnschedulable}},
		"merged before, by this controller":    {fields: []metav1.ManagedFieldsEntry{entry("ancient-changes", "", taints), entry(write.FieldManager, "", unschedulable)}, taint: tainted(-time.Hour)},
		"merged, and by kubectl without taint": {fields: []metav1.ManagedFieldsEntry{merged, entry("kubectl-cordon", "", unschedulable)}, stays: true},
		"by kubectl without taint, and merged": {fields: []metav1.ManagedFieldsEntry{entry("kubectl-cordon", "", unschedulable), merged}, stays: true},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %t", name, restarts), func(t *testing.T) {
				f := newFixture(t)
				f.createReadyNode("n", map[string]string{"a": ""})
				f.changeNamed("n", func(node *v1.Node) { node.Spec.Unschedulable = test.before })
				f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
				f.run(5 * time.Second)
				f.changeNamed("n", func(node *v1.Node) {
					if node.ManagedFields = test.fields; test.taint != nil {
						node.Spec.Taints = append(node.Spec.Taints, *test.taint)
					}
				})
				if restarts {
					f.restart()
				}
				f.complete("m")
				f.run(time.Minute)
				node := f.node("n")
				if node.Spec.Unschedulable != test.stays || node.Status.MaintenanceStatus != nil || progress.HasFinalizer(f.maintenance("m")) {
					t.Errorf("unschedulable %t, not %t; %+v", node.Spec.Unschedulable, test.stays, node.Status.MaintenanceStatus)
				}
				left := slices.ContainsFunc(f.events, func(event string) bool { return strings.Contains(event, "NodeLeftCordoned") })
				if left != test.stays {
					t.Errorf("events: %q", f.events)
				}
				f.client.ClearActions()
				f.restart()
				f.run(time.Minute)
				f.expectWrites("later")
			})
		}
	}
}

// A node that waited after the stage Cordon was claimed anew when it was admitted: its cordon is older than that claim,
// and that of the controller all the same, although the managed fields do not say so any more.
func TestMergedCordonOfANodeThatWaited(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageCordon, "a", maintenance.StandardPlan()...)
	f.run(2 * time.Hour)
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Generation++
		m.Spec.Stage = stageDrain
	})
	f.run(time.Minute)
	f.changeNamed("n", func(node *v1.Node) {
		node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "ancient-changes", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)}}
		node.Spec.Taints = []v1.Taint{{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: start}}}
		for i := range node.Status.Conditions {
			node.Status.Conditions[i].LastTransitionTime = metav1.NewTime(f.clock.Now())
		}
	})
	f.complete("m")
	f.run(time.Minute)
	if f.node("n").Spec.Unschedulable {
		t.Errorf("still cordoned: %q", f.events)
	}
}

// A node that a drain selects long after it has begun may have been cordoned in between by others.
func TestMergedCordonOfANodeThatJoinedLate(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("first", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(2 * time.Hour)
	f.createReadyNode("n", map[string]string{"a": ""})
	f.changeNamed("n", func(node *v1.Node) {
		node.Spec.Unschedulable = true
		node.Spec.Taints = []v1.Taint{{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: start.Add(time.Hour)}}}
		node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "ancient-changes", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)}}
	})
	f.run(time.Minute)
	f.complete("m")
	f.run(time.Minute)
	if !f.node("n").Spec.Unschedulable || f.node("first").Spec.Unschedulable {
		t.Errorf("unschedulable: %t and %t, want only the one that joined: %q", f.node("n").Spec.Unschedulable, f.node("first").Spec.Unschedulable, f.events)
	}
}

// Whoever resets the managed fields of a node hides who cordons it from then on.
func TestCordonOfANodeWhoseManagedFieldsWereReset(t *testing.T) {
	for name, test := range map[string]struct {
		tainted time.Duration
		stays   bool
	}{
		"before the maintenance": {tainted: -time.Hour, stays: true},
		"by the maintenance":     {},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createReadyNode("n", map[string]string{"a": ""})
			f.changeNamed("n", func(node *v1.Node) {
				node.Spec.Unschedulable = test.stays
				node.Spec.Taints = []v1.Taint{{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: start.Add(test.tainted)}}}
			})
			f.createMaintenance("m", stageCordon, "a", maintenance.StandardPlan()...)
			f.run(time.Minute)
			f.changeNamed("n", func(node *v1.Node) { node.ManagedFields = nil })
			f.complete("m")
			f.run(time.Minute)
			if got := f.node("n").Spec.Unschedulable; got != test.stays {
				t.Errorf("unschedulable: %t, want %t: %q", got, test.stays, f.events)
			}
		})
	}
}

// Where the status of a node does not say since when it is claimed, because another client has overwritten that, the stage
// Cordon does.
func TestMergedCordonWithoutAClaimTime(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageCordon, "a", maintenance.StandardPlan()...)
	f.run(time.Minute)
	for name, test := range map[string]struct {
		tainted time.Duration
		before  bool
	}{
		"by the maintenance": {tainted: 0},
		"before":             {tainted: -time.Hour, before: true},
	} {
		node := f.node("n").DeepCopy()
		node.Status.Conditions = nil
		node.Spec.Taints = []v1.Taint{{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: start.Add(test.tainted)}}}
		if got := f.cordonedBefore(node); (got != "") != test.before {
			t.Errorf("%s: cordoned by %q", name, got)
		}
	}
}

// A node that was created after the stage Cordon, by clocks that may differ, was not cordoned by it.
func TestNodesThatCameAfterTheStageCordon(t *testing.T) {
	until := metav1.NewTime(start)
	for name, test := range map[string]struct {
		until   *metav1.Time
		created time.Duration
		want    bool
	}{
		"before":                {&until, -time.Hour, true},
		"by a clock ahead":      {&until, maintenance.MaxClockDifference, true},
		"after":                 {&until, maintenance.MaxClockDifference + time.Second, false},
		"there was no such one": {nil, -time.Hour, false},
	} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(start.Add(test.created))}}
		if o := (&progress.Spec{CordonedUntil: test.until}); o.HasCordoned(node) != test.want {
			t.Errorf("%s: got %t", name, !test.want)
		}
	}
}

// While it cannot be read who has cordoned a node, it stays cordoned.
func TestCordonOfUnknownClients(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(10 * time.Second)
	unread := f.refuse("get", "nodes", "", webhook)
	f.complete("m")
	f.run(time.Minute)
	unread.err = allowed
	if !f.node("n").Spec.Unschedulable || len(unread.attempts) == 0 {
		t.Errorf("unschedulable %t after %d attempts to read it", f.node("n").Spec.Unschedulable, len(unread.attempts))
	}
	f.run(5 * time.Minute)
	if f.node("n").Spec.Unschedulable {
		t.Error("still unschedulable when it can be read")
	}
}

// A node of a plain maintenance that was given back, and is cordoned by hand since, stays so when the next leader
// completes the maintenance.
func TestCordonAfterTheNodeWasDone(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	f.createPlain("m")
	f.drainNodes()
	f.setDone("m", "n1")
	f.run(10 * time.Second)
	f.changeNamed("n1", func(node *v1.Node) { node.Spec.Unschedulable = true })
	f.run(10 * time.Second)
	f.restart()
	f.complete("m")
	f.run(time.Minute)
	if n1, n2 := f.node("n1"), f.node("n2"); !n1.Spec.Unschedulable || n2.Spec.Unschedulable {
		t.Errorf("unschedulable %t and %t, want only the first one", n1.Spec.Unschedulable, n2.Spec.Unschedulable)
	}
}

// Who applies a cordon to a cordoned node changes only its managed fields. That counts up to the moment of the write that
// would undo it.
func TestCordonAppliedBeforeTheUncordon(t *testing.T) {
	applied := []metav1.ManagedFieldsEntry{{Manager: "by-hand", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)}}
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(10 * time.Second)
	node, attempts := f.node("n"), 0
	node.ManagedFields = applied
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if !strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), `"unschedulable":false`) {
			return false, nil, nil
		}
		attempts++
		return true, nil, apierrors.NewConflict(write.NodeResource, "n", errors.New("it was applied"))
	})
	f.client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return attempts > 0, node, nil
	})
	f.complete("m")
	f.run(time.Minute)
	if attempts != 1 || !slices.ContainsFunc(f.events, func(event string) bool { return strings.Contains(event, "NodeLeftCordoned") }) {
		t.Errorf("%d attempts to uncordon it, want one: %q", attempts, f.events)
	}
}

// What the managed fields of another node with the name say is not about this one.
func TestCordonOfAnotherNode(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", nil)
	f.changeNamed("n", func(node *v1.Node) {
		node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)}}
	})
	if _, manager, err := f.writer.Uncordon(f.ctx, f.node("n"), nil); manager != "kubelet" || err != nil {
		t.Errorf("the same node: got %q, %v", manager, err)
	}
	before := f.node("n").DeepCopy()
	before.UID = "before"
	if _, manager, err := f.writer.Uncordon(f.ctx, before, nil); manager != "" || !apierrors.IsConflict(err) {
		t.Errorf("the node before it: got %q, %v", manager, err)
	}
}
