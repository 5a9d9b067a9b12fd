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
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/test/utils/kstatus"
	"k8s.io/utils/ptr"
)

// kstatusFixtures is where the test with kstatus finds what the controller writes.
const kstatusFixtures = "../../../hack/interop/testdata/kstatus"

const (
	conditionReconciling = coordinationv1alpha1.NodeMaintenanceConditionReconciling
	conditionStalled     = coordinationv1alpha1.NodeMaintenanceConditionStalled
	conditionCompleted   = coordinationv1alpha1.NodeMaintenanceConditionCompleted
)

// advanceStory keeps what the status of the maintenance m is at the moments of a test.
type advanceStory struct {
	*fixture
	cases map[string]kstatus.Case
}

func newAdvanceStory(t *testing.T, cases map[string]kstatus.Case, nodes ...string) *advanceStory {
	return &advanceStory{newFleet(t, nodes...), cases}
}

// expect checks the conditions that kstatus knows, and keeps the object. want is what kstatus makes of it, and begins
// what the condition says that is True.
func (s *advanceStory) expect(moment, want, says string) {
	s.t.Helper()
	m := s.maintenance("m")
	m.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1alpha1", Kind: "NodeMaintenance"}
	s.cases[moment] = kstatus.Case{Want: want, Object: m}
	reconciling, stalled := s.conditionOf("m", conditionReconciling), s.conditionOf("m", conditionStalled)
	isTrue, isFalse := strings.HasPrefix(reconciling, "True "), strings.HasPrefix(reconciling, "False ")
	isStalled := strings.HasPrefix(stalled, "True ")
	got := "Current"
	switch {
	case isTrue && !isStalled:
		got = "InProgress"
	case isFalse && isStalled:
		got = "Failed"
	case !isFalse || isStalled:
		got = "contradictory"
	}
	told := strings.TrimPrefix(reconciling, "True ")
	if isStalled {
		told = strings.TrimPrefix(stalled, "True ")
	}
	if got != want || !strings.HasPrefix(told, says) {
		s.t.Errorf("%s: %s, want %s %q: Reconciling is %q, Stalled %q", moment, got, want, says, reconciling, stalled)
	}
	if c := status.FindCondition(&m.Status, conditionReconciling); c != nil && c.ObservedGeneration != m.Generation {
		s.t.Errorf("%s: Reconciling is of generation %d, not %d", moment, c.ObservedGeneration, m.Generation)
	}
}

// TestAdvance follows maintenances to their ends. From their statuses, hack/interop computes what kstatus makes of them.
func TestAdvance(t *testing.T) {
	cases := map[string]kstatus.Case{}
	t.Run("a drain", func(t *testing.T) { testAdvanceOfADrain(t, cases) })
	t.Run("a rollout", func(t *testing.T) { testAdvanceOfARollout(t, cases) })
	t.Run("blocked", func(t *testing.T) { testAdvanceOfABlockedDrain(t, cases) })
	t.Run("blocked at the end", func(t *testing.T) { testAdvanceOfABlockedEnd(t, cases) })
	t.Run("a cordon", func(t *testing.T) { testAdvanceOfACordon(t, cases) })
	kstatus.Check(t, kstatusFixtures, "nodemaintenances.json", cases)
}

func testAdvanceOfADrain(t *testing.T, cases map[string]kstatus.Case) {
	s := newAdvanceStory(t, cases, "n1", "n2", "n3")
	s.createLimit("pool", 0)
	s.createMaintenance("m", coordinationv1alpha1.NodeMaintenanceStageIdle, "a", maintenance.StandardPlan()...)
	s.run(10 * time.Second)
	s.expect("announced", "Current", "")
	s.setStage("m", stageDrain)
	s.run(10 * time.Second)
	s.expect("frozen", "InProgress", "WaitingForAdmission: 0 of 3 nodes drained. 3 of 3 nodes waiting.")
	if got := s.maintenance("m").Status.DrainStatus.DrainMessage; got != status.MessageWaiting {
		t.Errorf("a maintenance that has begun with no node says %q", got)
	}
	s.changeLimit("pool", func(b *coordinationv1alpha1.NodeMaintenanceBudgetSpec) {
		b.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	})
	s.run(10 * time.Second)
	s.expect("draining", "InProgress", "Draining: 0 of 3 nodes drained. 1 pod left on 1 of 3 nodes. 2 of 3 nodes waiting.")
	s.restart()
	s.run(time.Second)
	s.expect("draining, after a restart", "InProgress", "Draining: ")
	s.deleteLimit("pool")
	s.drainNodes()
	s.expect("drained", "Current", "")
	if got := s.conditionOf("m", conditionCompleted); got != "" {
		t.Errorf("completed before the stage: %q", got)
	}
	s.setStage("m", stageComplete)
	s.run(10 * time.Second)
	s.expect("completed", "Current", "")
	s.expectCompleted()
}

// expectCompleted checks that Completed was written before the finalizer was removed, after which nothing is.
func (s *advanceStory) expectCompleted() {
	s.t.Helper()
	if got := s.conditionOf("m", conditionCompleted); got != "True NodesReleased: All nodes are released that no other maintenance claims." {
		s.t.Errorf("Completed is %q", got)
	}
	if finalizers := s.maintenance("m").Finalizers; len(finalizers) > 0 {
		s.t.Errorf("finalizers %v", finalizers)
	}
}

func testAdvanceOfARollout(t *testing.T, cases map[string]kstatus.Case) {
	s := newAdvanceStory(t, cases, "n1", "n2")
	rollout := atOnce(2)
	rollout.CompleteNodes, rollout.ReturnTimeoutSeconds = rebooted, ptr.To[int32](600)
	s.createRollout("m", rollout)
	s.drainNodes()
	s.expect("drained, not given back", "InProgress", "NodesNotReturned: 2 of 2 nodes not given back yet.")
	s.changeNamed("n1", reboot)
	s.run(decision.RebootSettled + 10*time.Second)
	s.expect("one node given back", "InProgress", "NodesNotReturned: 1 of 2 nodes not given back yet.")
	s.run(20 * time.Minute)
	s.expect("halted", "Failed", "FailedNodes: 1 node did not come back in time: n2.")
	s.changeNamed("n2", reboot)
	s.run(decision.RebootSettled + 10*time.Second)
	s.expect("all nodes given back", "Current", "")
}

func testAdvanceOfABlockedDrain(t *testing.T, cases map[string]kstatus.Case) {
	s := newAdvanceStory(t, cases, "n1", "n2")
	refused := s.refuse("patch", "evictionrequests", "", quota)
	s.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	s.run(time.Minute)
	s.expect("blocked for a minute", "InProgress", "Blocked: 0 of 2 nodes drained. 2 pods left on 2 of 2 nodes.")
	s.run(status.StalledAfter)
	s.expect("blocked for long", "Failed", "Blocked: 2 pods in namespace default cannot get an EvictionRequest")
	stalledSince := func() metav1.Time {
		m := s.maintenance("m")
		return status.FindCondition(&m.Status, conditionStalled).LastTransitionTime
	}
	since := stalledSince()
	s.restart()
	s.run(time.Minute)
	s.expect("blocked for long, after a restart", "Failed", "Blocked: ")
	if now := stalledSince(); !now.Equal(&since) {
		t.Errorf("a restart ends the stall for a moment: since %v, not %v", now, since)
	}
	refused.err = allowed
	s.run(2 * pace.MaxRetry)
	s.expect("no longer blocked", "InProgress", "Draining: ")
	if got := s.conditionOf("m", conditionStalled); got != "False NotStalled: " {
		t.Errorf("Stalled is %q", got)
	}
}

func testAdvanceOfABlockedEnd(t *testing.T, cases map[string]kstatus.Case) {
	s := newAdvanceStory(t, cases, "n1")
	s.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	s.run(10 * time.Second)
	refused := s.refuse("patch", "evictionrequests", "", quota)
	s.setStage("m", stageComplete)
	s.run(time.Minute)
	s.expect("releasing nodes", "InProgress", "ReleasingNodes: ")
	s.run(status.StalledAfter)
	s.expect("cannot release nodes", "Failed", "Blocked: 1 pod in namespace default still has an eviction request that cannot be withdrawn")
	if got := s.conditionOf("m", conditionCompleted); got != "" {
		t.Errorf("completed although a request is not withdrawn: %q", got)
	}
	refused.err = allowed
	s.run(2 * pace.MaxRetry)
	s.expect("completed after all", "Current", "")
	s.expectCompleted()
}

func testAdvanceOfACordon(t *testing.T, cases map[string]kstatus.Case) {
	s := newAdvanceStory(t, cases, "n1", "n2")
	refused := s.refuse("patch", "nodes", "", webhook)
	s.createMaintenance("m", stageCordon, "a")
	s.run(time.Minute)
	s.expect("cordoning", "InProgress", "Cordoning: 2 of 2 nodes not cordoned.")
	s.run(status.StalledAfter)
	s.expect("cannot cordon", "Failed", "Blocked: 2 nodes cannot be cordoned")
	refused.err = allowed
	s.run(2 * pace.MaxRetry)
	s.expect("cordoned", "Current", "")
	s.restart()
	s.client.ClearActions()
	s.run(time.Minute)
	if writes := s.writes(); len(writes) > 0 {
		t.Errorf("a restart writes %v", writes)
	}
}

// TestInitialPods verifies that a node says how many pods its drain has begun with, also after a restart.
func TestInitialPods(t *testing.T) {
	f := newFleet(t, "n")
	pods := f.createPods(3, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	expect := func(when string, initial, left int32) {
		t.Helper()
		status := f.node("n").Status.MaintenanceStatus
		if status == nil || status.InitialPods != initial || status.PodsPendingEvictionRequest+status.ActiveEvictionRequests != left {
			t.Errorf("%s: %+v, want %d pods at first and %d left", when, status, initial, left)
		}
	}
	f.run(30 * time.Second)
	expect("at first", 4, 4)
	f.deletePods(pods[:2]...)
	f.run(30 * time.Second)
	expect("two have left", 4, 2)
	f.restart()
	f.createPods(1, "n", 0)
	f.run(30 * time.Second)
	expect("after a restart, and another pod", 4, 3)
	f.createPods(4, "n", 0)
	f.run(30 * time.Second)
	expect("many more", 7, 7)
	f.setStage("m", stageComplete)
	f.run(time.Minute)
	if status := f.node("n").Status.MaintenanceStatus; status != nil {
		t.Errorf("at the end: %+v", status)
	}
}
