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
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/returns"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// countNodeWrites counts the writes of the node by the controller whose patch has the text.
func (f *fixture) countNodeWrites(subresource, text string) *int {
	writes := 0
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if isByController(action) && action.GetSubresource() == subresource && strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), text) {
			writes++
		}
		return false, nil, nil
	})
	return &writes
}

// undo has another client change the node n every 100 ms, where change returns that it has to.
func (f *fixture) undo(duration time.Duration, change func(*v1.Node) bool) {
	f.t.Helper()
	for end := f.clock.Now().Add(duration); f.clock.Now().Before(end); {
		f.run(100 * time.Millisecond)
		if node := f.node("n"); change(node) {
			f.update(node)
		}
	}
}

// expectBlocker checks the only blocker of the maintenance m that needs an intervention, and returns since when it is.
func (f *fixture) expectBlocker(when string, cause coordinationv1alpha1.DrainBlockerCause, says string) time.Time {
	f.t.Helper()
	for _, b := range f.maintenance("m").Status.DrainStatus.Blockers {
		if b.Cause == cause && strings.Contains(b.Message, says) && b.SinceTime != nil {
			return b.SinceTime.Time
		}
	}
	f.t.Errorf("%s: no blocker %s %q in %+v", when, cause, says, f.maintenance("m").Status.DrainStatus.Blockers)
	return time.Time{}
}

func (f *fixture) expectPace(what string, writes *int) {
	f.t.Helper()
	if *writes < pace.RevertLimit || *writes > pace.RevertLimit+6 {
		f.t.Errorf("%s: written %d times in five minutes", what, *writes)
	}
	*writes = 0
}

// TestTaintThatOthersAdd: a client that adds the taint of planned nodes again and again, such as one that applies all
// taints that it has read, makes the controller neither spin nor wait without a word.
func TestTaintThatOthersAdd(t *testing.T) {
	f := newFleet(t, "n")
	f.createMaintenance("m", stageCordon, "a")
	f.run(5 * time.Second)
	writes := f.countNodeWrites("", coordinationv1alpha1.NodePlannedTaint)
	// A removal of the only taint is a patch that names no taint.
	removals := f.countNodeWrites("", `"taints"`)
	add := func(node *v1.Node) bool {
		if write.HasTaint(node) {
			return false
		}
		node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: coordinationv1alpha1.NodePlannedTaint, Effect: v1.TaintEffectPreferNoSchedule})
		return true
	}
	f.undo(5*time.Minute, add)
	f.expectPace("the taint", removals)
	if *writes > 0 {
		t.Errorf("added %d times", *writes)
	}
	if !slices.ContainsFunc(f.events, func(e string) bool {
		return strings.HasPrefix(e, "Node n: TaintContested: Another client keeps adding")
	}) {
		t.Errorf("no event: %q", f.events)
	}
	f.undo(20*time.Second, add) // It was removed a while ago.
	f.setStage("m", stageComplete)
	f.undo(10*time.Second, add)
	f.expectBlocker("at the end", coordinationv1alpha1.DrainBlockerCordonFailed, "another client adds the taint")
	f.run(2 * pace.RevertPause)
	if write.HasTaint(f.node("n")) || len(f.maintenance("m").Finalizers) > 0 {
		t.Error("they have stopped: the taint stays, or the maintenance does not end")
	}
}

// TestCordonThatOthersRemove: a maintenance whose node others make schedulable again and again says so, and since
// when, also while the node is cordoned for a moment and after a restart.
func TestCordonThatOthersRemove(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(5 * time.Second)
	uncordon := func(node *v1.Node) bool {
		undone := node.Spec.Unschedulable
		node.Spec.Unschedulable = false
		return undone
	}
	f.undo(10*time.Second, uncordon)
	const says = "another client makes it schedulable again and again"
	since := f.expectBlocker("at first", coordinationv1alpha1.DrainBlockerCordonFailed, says)
	for range 25 {
		f.undo(30*time.Second, uncordon)
		if again := f.expectBlocker("later", coordinationv1alpha1.DrainBlockerCordonFailed, says); !again.Equal(since) {
			t.Fatalf("since %v, was %v", again, since)
		}
	}
	if got := f.conditionOf("m", coordinationv1alpha1.NodeMaintenanceConditionStalled); !strings.HasPrefix(got, "True ") {
		t.Errorf("Stalled is %q", got)
	}
	f.restart()
	f.undo(10*time.Second, uncordon)
	if again := f.expectBlocker("after a restart", coordinationv1alpha1.DrainBlockerCordonFailed, says); !again.Equal(since) {
		t.Errorf("since %v after a restart, was %v", again, since)
	}
	f.run(2*pace.RevertPause + pace.RevertSlack)
	if m := f.maintenance("m"); !status.IsDrained(&m.Status) || len(m.Status.DrainStatus.Blockers) > 0 {
		t.Errorf("they have stopped: %+v", m.Status)
	}
}

// TestSelectionThatOthersChange: two clients that fight over a label by which a maintenance selects a node have it neither
// cordoned nor drained each time, and a blocker says so. When they have stopped, it is drained.
func TestSelectionThatOthersChange(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(2, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(5 * time.Second)
	cordons, statuses, requests := f.countNodeWrites("", `"unschedulable":true`), f.countNodeWrites("status", "maintenanceStatus"), 0
	f.client.PrependReactor("*", "evictionrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetVerb() == "create" || action.GetVerb() == "patch" {
			requests++
		}
		return false, nil, nil
	})
	change := func(node *v1.Node) bool {
		if _, selected := node.Labels["a"]; selected {
			delete(node.Labels, "a")
		} else {
			node.Labels = map[string]string{"a": ""}
		}
		return true
	}
	f.undo(5*time.Minute, change)
	f.expectPace("the cordon", cordons)
	// Requests are made and withdrawn, for two pods.
	if *statuses > 2*(pace.RevertLimit+6) || requests > 4*(pace.RevertLimit+6) {
		t.Errorf("%d statuses of the node, and %d writes of requests in five minutes", *statuses, requests)
	}
	if !slices.ContainsFunc(f.events, func(e string) bool {
		return strings.HasPrefix(e, "Node n: SelectionContested: NodeMaintenance m keeps selecting")
	}) {
		t.Errorf("no event: %q", f.events)
	}
	if _, selected := f.node("n").Labels["a"]; !selected {
		f.undo(100*time.Millisecond, change)
	}
	f.run(5 * time.Second)
	if !f.node("n").Spec.Unschedulable { // Otherwise the minute was just over.
		f.expectBlocker("while they fight", coordinationv1alpha1.DrainBlockerCordonFailed, "changes again and again whether spec.nodeSelector selects it")
	}
	f.run(2*pace.RevertPause + pace.RevertSlack)
	if node := f.node("n"); !node.Spec.Unschedulable || f.maintenance("m").Status.DrainStatus.ActiveEvictionRequests != 2 || f.maintenance("m").Status.DrainStatus.BlockedPods > 0 ||
		slices.ContainsFunc(f.maintenance("m").Status.DrainStatus.Blockers, func(b coordinationv1alpha1.DrainBlocker) bool {
			return b.Cause == coordinationv1alpha1.DrainBlockerCordonFailed
		}) {
		t.Errorf("they have stopped: unschedulable %t, %+v", node.Spec.Unschedulable, f.maintenance("m").Status.DrainStatus)
	}
}

// TestSelectorThatOthersChange: two clients that fight over spec.nodeSelector, such as two tools that apply manifests from
// git, have no node cordoned and drained each time either.
func TestSelectorThatOthersChange(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createNode("other", map[string]string{"b": ""})
	f.createPods(2, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(5 * time.Second)
	cordons := f.countNodeWrites("", `"unschedulable":true`)
	fight := func() {
		f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
			m.Generation++
			requirement := &m.Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0]
			requirement.Key = map[string]string{"a": "b", "b": "a"}[requirement.Key]
		})
		f.run(2 * time.Second)
	}
	for range 5 * 30 {
		fight()
	}
	// Of two nodes.
	if limit := 2 * (pace.RevertLimit + 6); *cordons == 0 || *cordons > limit {
		t.Errorf("%d cordons in five minutes, want at most %d", *cordons, limit)
	}
	if !slices.ContainsFunc(f.events, func(e string) bool {
		return strings.HasPrefix(e, "Node n: SelectionContested: NodeMaintenance m keeps selecting")
	}) {
		t.Errorf("no event: %q", f.events)
	}
	f.run(2*pace.RevertPause + pace.RevertSlack)
	if n, other := f.node("n").Spec.Unschedulable, f.node("other").Spec.Unschedulable; n == other {
		t.Errorf("they have stopped: n is unschedulable: %t, other: %t", n, other)
	}
	if len(f.progress.Deselected()) > 0 {
		t.Errorf("not reconciled: %v", f.progress.Deselected())
	}
}

// TestSelectorThatMovesOn: who has a maintenance go from node to node is not slowed down.
func TestSelectorThatMovesOn(t *testing.T) {
	f := newFixture(t)
	f.createMaintenance("m", stageDrain, "n0", maintenance.StandardPlan()...)
	for i := range 8 {
		name := fmt.Sprintf("n%d", i)
		f.createNode(name, map[string]string{name: ""})
		f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
			m.Generation++
			m.Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Key = name
		})
		f.run(5 * time.Second)
		if !f.node(name).Spec.Unschedulable || i > 0 && f.node(fmt.Sprintf("n%d", i-1)).Spec.Unschedulable {
			t.Fatalf("%s is not cordoned, or the one before is", name)
		}
	}
}

// TestSelectionOfANodeThatStaysClaimed: no claim ends while another maintenance has one.
func TestSelectionOfANodeThatStaysClaimed(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": "", "b": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.createMaintenance("other", stageCordon, "b")
	f.run(5 * time.Second)
	f.undo(10*time.Second, func(node *v1.Node) bool {
		if _, selected := node.Labels["a"]; selected {
			delete(node.Labels, "a")
		} else {
			node.Labels["a"] = ""
		}
		return true
	})
	if !f.node("n").Spec.Unschedulable || len(f.pacer.Names(pace.RevertedSelection)) > 0 {
		t.Errorf("unschedulable %t, claims that have ended: %v", f.node("n").Spec.Unschedulable, f.pacer.Names(pace.RevertedSelection))
	}
}

// TestConditionsThatOthersChange: a client that writes conditions of maintenances back to what it has read once makes
// the controller write neither all the time nor without a word. What else changes does not wait for that.
func TestConditionsThatOthersChange(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pods := f.createPods(2, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(5 * time.Second)
	stale := f.node("n").DeepCopy().Status.Conditions
	for i := range stale {
		stale[i].Message = "of another maintenance"
	}
	change := func(node *v1.Node) bool {
		if len(node.Status.Conditions) > 0 && node.Status.Conditions[0].Message == stale[0].Message {
			return false
		}
		node.Status.Conditions = slices.Clone(stale)
		return true
	}
	writes := f.countNodeWrites("status", "conditions")
	f.undo(5*time.Minute, change)
	f.expectPace("conditions", writes)
	if !slices.ContainsFunc(f.events, func(e string) bool { return strings.HasPrefix(e, "Node n: NodeStatusContested: ") }) {
		t.Errorf("no event: %q", f.events)
	}
	f.expectBlocker("in the drain", coordinationv1alpha1.DrainBlockerNodeStatusFailed, "another client changes the conditions")
	f.deletePods(pods[0])
	f.undo(2*pace.ProgressInterval, change)
	if got := f.node("n").Status.MaintenanceStatus; got.ActiveEvictionRequests != 1 {
		t.Errorf("the counts wait for the conditions: %+v", got)
	}
	f.run(2*pace.RevertPause + pace.RevertSlack)
	for _, c := range f.node("n").Status.Conditions {
		if c.Message == stale[0].Message {
			t.Errorf("they have stopped: %+v", c)
		}
	}
	for _, b := range f.maintenance("m").Status.DrainStatus.Blockers {
		if b.Cause == coordinationv1alpha1.DrainBlockerNodeStatusFailed {
			t.Errorf("they have stopped: %+v", b)
		}
	}
}

// TestStatusThatOthersRemove: a client that removes status.maintenanceStatus again and again makes the controller write
// neither all the time nor without a word. No pod is evicted that the stored targets do not include.
func TestStatusThatOthersRemove(t *testing.T) {
	for name, change := range map[string]func(*v1.Node) bool{
		"all of it": func(node *v1.Node) bool {
			undone := node.Status.MaintenanceStatus != nil
			node.Status.MaintenanceStatus = nil
			return undone
		},
		"its admissions": func(node *v1.Node) bool {
			status := node.Status.MaintenanceStatus
			undone := status != nil && len(status.Admissions) > 0
			if undone {
				status.Admissions = nil
			}
			return undone
		},
		"its drain targets": func(node *v1.Node) bool {
			status := node.Status.MaintenanceStatus
			undone := status != nil && len(status.DrainTargets) > 0
			if undone {
				status.DrainTargets = nil
			}
			return undone
		},
	} {
		for kind, create := range map[string]func(*fixture){
			"plain":   func(f *fixture) { f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...) },
			"rollout": func(f *fixture) { f.createRollout("m", atOnce(1)) },
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				f := newFleet(t, "n")
				f.createPods(2, "n", 0)
				create(f)
				f.run(5 * time.Second)
				writes := f.countNodeWrites("status", "maintenanceStatus")
				f.undo(5*time.Minute, change)
				if *writes < pace.RevertLimit || *writes > 2*(pace.RevertLimit+6) {
					t.Errorf("written %d times in five minutes", *writes)
				}
				if !slices.ContainsFunc(f.events, func(e string) bool { return strings.HasPrefix(e, "Node n: NodeStatusContested: ") }) {
					t.Errorf("no event: %q", f.events)
				}
				// A node without an admission waits for it, and is no part of the drain.
				if !strings.Contains(fmt.Sprint(f.maintenance("m").Status), string(coordinationv1alpha1.NodeMaintenanceWaitAdmissionFailed)) {
					f.expectBlocker("in the drain", coordinationv1alpha1.DrainBlockerNodeStatusFailed, "another client changes status.maintenanceStatus")
				}
				f.run(2*pace.RevertPause + pace.RevertSlack)
				if node := f.node("n"); !maintenance.IsClaimed(node) || len(node.Status.MaintenanceStatus.DrainTargets) == 0 {
					t.Errorf("they have stopped: %+v", node.Status.MaintenanceStatus)
				}
				for _, b := range f.maintenance("m").Status.DrainStatus.Blockers {
					if b.Cause == coordinationv1alpha1.DrainBlockerNodeStatusFailed {
						t.Errorf("they have stopped: %+v", b)
					}
				}
				f.deleteMaintenance("m")
				f.run(5 * time.Second)
				if node := f.node("n"); node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil {
					t.Errorf("the node is not released: %+v", node)
				}
			})
		}
	}
}

// TestFinalizerThatOthersRemove: a client that replaces a maintenance by its manifest again and again, which has no
// finalizer, makes the controller not write all the time. The drain goes on, and what it has done ends with the object.
func TestFinalizerThatOthersRemove(t *testing.T) {
	f := newFleet(t, "n")
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(5 * time.Second)
	writes := 0
	f.client.PrependReactor("patch", "nodemaintenances", func(clienttesting.Action) (bool, runtime.Object, error) {
		writes++
		return false, nil, nil
	})
	for range 5 * 60 * 10 {
		f.run(100 * time.Millisecond)
		f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Finalizers = nil })
	}
	f.expectPace("the finalizer", &writes)
	if !slices.ContainsFunc(f.events, func(e string) bool { return strings.HasPrefix(e, "NodeMaintenance m: FinalizerContested: ") }) {
		t.Errorf("no event: %q", f.events)
	}
	f.endAllPods()
	f.run(returns.LateSettled)
	if m := f.maintenance("m"); !status.IsDrained(&m.Status) {
		t.Errorf("the drain does not go on without the finalizer: %+v", m.Status)
	}
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Finalizers = nil })
	f.deleteMaintenance("m")
	f.run(5 * time.Second)
	if node := f.node("n"); node.Spec.Unschedulable || maintenance.IsClaimed(node) || len(f.pacer.Names(pace.RevertedFinalizer)) > 0 {
		t.Errorf("the node is not released, or something is remembered: %+v", node)
	}
}

// TestFailuresGoOnAfterARestart: a new process knows since when writes fail, and a maintenance that is stalled because
// of them remains so all the time.
func TestFailuresGoOnAfterARestart(t *testing.T) {
	for name, test := range map[string]struct {
		resource, subresource string
		err                   func(string) error
		cause                 coordinationv1alpha1.DrainBlockerCause
	}{
		"cordon":  {"nodes", "", webhook, coordinationv1alpha1.DrainBlockerCordonFailed},
		"status":  {"nodes", "status", webhook, coordinationv1alpha1.DrainBlockerNodeStatusFailed},
		"request": {"evictionrequests", "", quota, coordinationv1alpha1.DrainBlockerRequestFailed},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			f.createPods(1, "n", 0)
			refused := f.refuse("patch", test.resource, test.subresource, test.err)
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			f.run(10 * time.Minute)
			since := f.expectBlocker("before", test.cause, "")
			attempts := len(refused.attempts)
			stalled := func() bool {
				return strings.HasPrefix(f.conditionOf("m", coordinationv1alpha1.NodeMaintenanceConditionStalled), "True ")
			}
			if !stalled() {
				t.Fatal("not stalled")
			}
			f.client.ClearActions()
			f.restart()
			for range 600 {
				f.run(100 * time.Millisecond)
				if !stalled() {
					t.Fatal("not stalled any more")
				}
			}
			if again := f.expectBlocker("after a restart", test.cause, ""); !again.Equal(since) {
				t.Errorf("since %v after a restart, was %v", again, since)
			}
			if got := f.countWrites("update nodemaintenances/status"); got > 0 {
				t.Errorf("the restart has written the status %d times", got)
			}
			if got := f.progress.Count(f.clock.Now()).OldestBlocker[maintenance.BlockerCause(test.cause)]; got < 10*time.Minute {
				t.Errorf("the metric says %v", got)
			}
			if len(refused.attempts) == attempts {
				t.Error("not tried again")
			}
			// A process finds no failure any more, and says so.
			refused.err = allowed
			f.restart()
			f.run(progress.ResumeTime + 5*time.Second)
			if stalled() {
				t.Errorf("stalled although nothing fails: %+v", f.maintenance("m").Status)
			}
			// What fails later, has not failed before.
			refused.err = test.err
			f.run(time.Minute)
			f.changeNamed("n", func(node *v1.Node) { node.Spec.Unschedulable, node.Status.Conditions = false, nil })
			f.createPods(1, "n", 0)
			f.run(time.Minute)
			if again := f.expectBlocker("later", test.cause, ""); f.clock.Now().Sub(again) > 2*time.Minute {
				t.Errorf("since %v, it is %v", again, f.clock.Now())
			}
		})
	}
}

// TestSinceOfContestedRequests: since when others withdraw requests does not change while they go on.
func TestSinceOfContestedRequests(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	var since time.Time
	for i := range 30 {
		for range 60 {
			f.run(time.Second)
			f.withdrawAll(pod, false)
		}
		f.run(100 * time.Millisecond)
		found := f.expectBlocker("contested", coordinationv1alpha1.DrainBlockerRequestFailed, "others have withdrawn")
		if i > 0 && !found.Equal(since) {
			t.Fatalf("after %d minutes: since %v, was %v", i, found, since)
		}
		since = found
	}
}
