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
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// A sync of a node that began before a maintenance was completed does not release the node for it.
func TestReleaseByAnOldSync(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.deliverAll()
	_, observed := f.progress.Selecting(f.node("n"))
	f.createMaintenance("m", stageComplete, "a")
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Finalizers = []string{coordinationv1alpha1.NodeMaintenanceFinalizer}
	})
	if err := f.observe(f.maintenance("m")); err != nil {
		t.Fatal(err)
	}
	f.progress.Uncordoned("n", observed)
	if finished := f.progress.Release("n", observed); len(finished) > 0 || !f.progress.IsCordoned("n") {
		t.Errorf("released %v", finished)
	}
	_, observed = f.progress.Selecting(f.node("n"))
	if finished := f.progress.Release("n", observed); !slices.Equal(finished, []string{"m"}) || f.progress.IsCordoned("n") {
		t.Errorf("released %v", finished)
	}
}

// A node whose status cannot be cleared keeps the maintenance from completing.
func TestRefusedStatusKeepsTheMaintenance(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageCordon, "a")
	f.settle()
	refused := f.refuse("patch", "nodes", "status", webhook)
	f.setStage("m", stageComplete)
	f.run(5 * time.Second)
	if m := f.maintenance("m"); len(m.Finalizers) == 0 {
		t.Error("completed")
	}
	refused.err = allowed
	f.settle()
	if m := f.maintenance("m"); len(m.Finalizers) > 0 || f.node("n").Status.MaintenanceStatus != nil {
		t.Error("not completed")
	}
}

// A terminating pod becomes stuck after some time, without an event.
func TestTerminatingPodBecomesStuck(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0, func(pod *v1.Pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(start.Add(time.Minute))), ptr.To[int64](60)
		pod.Finalizers = []string{"example.com/f"}
	})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(80 * time.Second)
	if got := f.maintenance("m").Status.DrainStatus; got.Blockers[0].Cause != coordinationv1alpha1.DrainBlockerTerminating || got.BlockedPods != 0 {
		t.Errorf("after its grace period: %+v", got)
	}
	f.expectBlockedPods("n", 0)
	f.run(15 * time.Second)
	if got := f.maintenance("m").Status.DrainStatus; got.Blockers[0].Cause != coordinationv1alpha1.DrainBlockerStuckTerminating || got.BlockedPods != 1 {
		t.Errorf("later: %+v", got)
	}
	f.expectBlockedPods("n", 1)
}

// The failures of a deleted node are forgotten.
func TestFailuresOfADeletedNode(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.refuse("patch", "nodes", "", webhook)
	f.createMaintenance("m", stageCordon, "a")
	f.run(time.Second)
	if len(f.failures.Nodes()) != 1 {
		t.Errorf("failures %v", f.failures.Nodes())
	}
	if err := f.client.CoreV1().Nodes().Delete(f.ctx, "n", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.run(time.Minute)
	if len(f.failures.Nodes()) > 0 {
		t.Errorf("failures %v", f.failures.Nodes())
	}
	f.deleteMaintenance("m")
	f.settle()
	if len(f.pacer.Names(pace.MaintenanceStatus)) > 0 {
		t.Errorf("write times of the deleted maintenance: %v", f.pacer.Names(pace.MaintenanceStatus))
	}
}

// A new node with the name of a deleted one is not cordoned in its place, and the failed
// precondition does not count as a failure.
func TestReplacedNodeIsNotCordoned(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageCordon, "a")
	f.deliverAll()
	if err := f.client.CoreV1().Nodes().Delete(f.ctx, "n", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.createNode("n", nil)
	for range 10 {
		f.deliverMaintenances()
		f.step()
		f.clock.Step(pace.SummaryDelay)
	}
	if f.node("n").Spec.Unschedulable || len(f.failures.Nodes()) > 0 {
		t.Errorf("node %+v, failures %v", f.node("n").Spec, f.failures.Nodes())
	}
	f.expectNoEvent("CordonFailed")
}

// Nothing else is written until the caches have the last write.
func TestOwnWritesAreWaitedFor(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageCordon, "a")
	f.deliverAll()
	f.client.ClearActions()
	for range 10 {
		f.maintenanceQueue.Add("m")
		f.step()
	}
	f.expectWrites("a maintenance", "patch nodemaintenances")
	f.deliverMaintenances()
	for range 10 {
		f.nodeQueue.Add("n")
		f.maintenanceQueue.keys = nil
		f.step()
		if err := f.syncMaintenance(f.ctx, "m"); err != nil {
			t.Fatal(err)
		}
		f.deliverMaintenances()
	}
	if got := f.writes(); len(slices.DeleteFunc(got, func(w string) bool { return w != "patch nodes" && w != "patch nodes/status" })) > 2 {
		t.Errorf("wrote %v", got)
	}
}

// The eviction of a pod that is bound to the node later is requested.
func TestEvictionOfBoundPodIsRequested(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "", 0)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	pod.Spec.NodeName = "n"
	if _, err := f.client.CoreV1().Pods("default").Update(f.ctx, pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.settle()
	if got := f.node("n").Status.MaintenanceStatus; got.ActiveEvictionRequests != 1 {
		t.Errorf("status %+v", got)
	}
}

// A pod that begins to terminate becomes a blocker with another cause.
func TestPodThatBeginsToTerminate(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	pod.DeletionTimestamp = ptr.To(metav1.NewTime(f.clock.Now().Add(30 * time.Second)))
	pod.ResourceVersion = ""
	if _, err := f.client.CoreV1().Pods("default").Update(f.ctx, pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.run(5 * time.Second)
	if got := f.maintenance("m").Status.DrainStatus.Blockers; got[0].Cause != coordinationv1alpha1.DrainBlockerTerminating {
		t.Errorf("blockers %+v", got)
	}
}

// A change of the status of a node by another client is reverted.
func TestForeignWriteToTheStatusOfANode(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageCordon, "a")
	f.settle()
	node := f.node("n")
	want := node.Status.DeepCopy()
	node.Status.Conditions = nil
	f.update(node)
	f.settle()
	if got := f.node("n").Status; len(got.Conditions) != len(want.Conditions) {
		t.Errorf("conditions %+v", got.Conditions)
	}
}

// This controller withdraws from a leftover request on a node without maintenance.
func TestLeftoverRequestIsWithdrawn(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", nil)
	pod := f.createPods(1, "n", 0)[0]
	f.settle()
	if err := f.writer.Request(f.ctx, pod); err != nil {
		t.Fatal(err)
	}
	f.settle()
	if requesters := f.request1(pod).Spec.Requesters; len(requesters) > 0 {
		t.Errorf("still requested by %v", requesters)
	}
}

// Outside of the stage Drain a status that changes within pace.StatusInterval is written later.
func TestStatusChangesWithinInterval(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageIdle, "a")
	f.run(100 * time.Millisecond)
	f.setStage("m", stageCordon)
	f.run(2 * time.Second)
	if m := f.maintenance("m"); m.Status.ObservedGeneration != m.Generation || !progress.HasStarted(&m.Status, stageCordon) {
		t.Errorf("status %+v", m.Status)
	}
}

// Metrics count each write once.
func TestMetricsOfADrain(t *testing.T) {
	f := newFixture(t)
	before := metricValues(t)
	f.createNode("n", map[string]string{"a": ""})
	pods := f.createPods(3, "n", 0)
	f.createPods(1, "n", 0, daemon)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	f.deletePods(pods...)
	f.settle()
	// The drain of a pod type is not measured again after new pods have left.
	f.selectAlso("m", "b")
	f.deletePods(f.createPods(1, "n", 0)...)
	f.settle()
	f.setStage("m", stageComplete)
	f.settle()
	got := metricValues(t)
	for name, want := range map[string]float64{
		"evictionrequests_created_total": 4, "evictionrequests_withdrawn_total": 1, "contested_cordons_total": 0,
		"stage_transitions_total": 3, "drain_duration_seconds": 1,
	} {
		if diff := got[name] - before[name]; diff != want {
			t.Errorf("%s grew by %v, want %v", name, diff, want)
		}
	}
}

// metricValues returns the sums of the counters and the sample counts of the histograms.
func metricValues(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		name, ok := strings.CutPrefix(family.GetName(), "nodemaintenance_controller_")
		for _, m := range family.GetMetric() {
			if ok {
				values[name] += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return values
}

// Keys that fail are retried within 30 seconds, each with its own backoff.
func TestRetriesOfKeys(t *testing.T) {
	limiter := newRateLimiter()
	for range 100 {
		limiter.When("a")
	}
	if got := limiter.When("a"); got != pace.MaxRetry {
		t.Errorf("wait %v", got)
	}
	if got := limiter.When("b"); got != minBackoff {
		t.Errorf("wait of another key %v", got)
	}
	for _, failed := range []error{errors.New("no"), apierrors.NewConflict(write.NodeResource, "n", errors.New("changed"))} {
		clock := testingclock.NewFakeClock(start)
		queue := workqueue.NewTypedRateLimitingQueueWithConfig(newRateLimiter(), workqueue.TypedRateLimitingQueueConfig[string]{Clock: clock})
		queue.Add("n")
		calls := 0
		work(context.Background(), queue, func(context.Context, string) error {
			if calls++; calls == 1 {
				queue.AddAfter("n", time.Nanosecond)
				clock.Step(time.Hour)
				return failed
			}
			if got := queue.NumRequeues("n"); got != 1 {
				t.Errorf("%d retries after %v", got, failed)
			}
			queue.ShutDown()
			return nil
		})
		if got := queue.NumRequeues("n"); got != 0 || calls != 2 {
			t.Errorf("%d retries are counted after %d calls", got, calls)
		}
	}
}

// Other clients may forge the node conditions of this controller. That affects no decision, and is
// reverted on the nodes of maintenances. On others, only what looks like an earlier one of this controller is.
func TestForgedConditions(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createNode("by hand", nil)
	pod := f.createPods(1, "n", 0)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	for _, name := range []string{"n", "by hand"} {
		node := f.node(name)
		node.Spec.Unschedulable, node.Status.Conditions = true, nil
		for _, conditionType := range status.NodeConditionTypes {
			node.Status.Conditions = append(node.Status.Conditions, v1.NodeCondition{Type: conditionType, Status: v1.ConditionTrue, Reason: "Forged"})
		}
		if _, err := f.client.CoreV1().Nodes().Update(f.ctx, node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.run(time.Minute)
	if c := nodeCondition(f.node("n"), v1.NodeDrained); c.Status != v1.ConditionFalse {
		t.Errorf("the node with pod %s has the condition %+v", pod.Name, c)
	}
	if drained := status.FindDrained(&f.maintenance("m").Status); drained == nil || drained.Status != metav1.ConditionFalse {
		t.Errorf("the maintenance of the node with pod %s has the condition %+v", pod.Name, drained)
	}
	if node := f.node("by hand"); !node.Spec.Unschedulable || len(status.OwnConditions(node.Status.Conditions)) != len(status.NodeConditionTypes) {
		t.Errorf("the node that no maintenance selects is unschedulable: %t, with conditions %+v", node.Spec.Unschedulable, node.Status.Conditions)
	}
}

func TestNextStep(t *testing.T) {
	for _, tc := range []struct {
		stage                  coordinationv1alpha1.NodeMaintenanceStage
		deleted, guarded, over bool
		want                   step
	}{
		{stageIdle, false, false, false, stepObserve},
		{stageIdle, false, true, false, stepObserve},
		{stageIdle, true, false, false, stepObserve},
		{stageIdle, true, true, false, stepRemoveFinalizer},
		{stageCordon, false, false, false, stepAddFinalizer},
		{stageDrain, false, false, false, stepAddFinalizer},
		{stageDrain, false, true, false, stepObserve},
		{stageDrain, true, true, false, stepComplete},
		{stageDrain, true, false, false, stepComplete},
		{stageComplete, false, false, false, stepAddFinalizer},
		{stageComplete, false, true, false, stepObserve},
		{stageComplete, false, true, true, stepObserve},
		{stageComplete, true, true, true, stepObserve},
		{stageComplete, false, false, true, stepNothing},
		{stageComplete, true, false, false, stepNothing},
	} {
		m := &coordinationv1alpha1.NodeMaintenance{Spec: coordinationv1alpha1.NodeMaintenanceSpec{Stage: tc.stage}}
		if tc.deleted {
			m.DeletionTimestamp = ptr.To(metav1.NewTime(start))
		}
		if tc.guarded {
			m.Finalizers = []string{coordinationv1alpha1.NodeMaintenanceFinalizer}
		}
		if tc.over {
			m.Status.StageStatuses = []coordinationv1alpha1.StageStatus{{Name: stageComplete}}
		}
		if got := nextStep(m); got != tc.want {
			t.Errorf("%+v: got %d", tc, got)
		}
	}
}

// A maintenance whose finalizer another client removes in the stage Complete is completed nevertheless.
func TestHasEnded(t *testing.T) {
	started := []coordinationv1alpha1.StageStatus{{Name: stageComplete}}
	condition := func(conditionType coordinationv1alpha1.NodeMaintenanceConditionType, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: string(conditionType), Status: status}
	}
	const reconciling, stalled, completed = coordinationv1alpha1.NodeMaintenanceConditionReconciling, coordinationv1alpha1.NodeMaintenanceConditionStalled, coordinationv1alpha1.NodeMaintenanceConditionCompleted
	for name, test := range map[string]struct {
		stages     []coordinationv1alpha1.StageStatus
		conditions []metav1.Condition
		want       bool
	}{
		"not started":                     {nil, nil, false},
		"completed by an earlier version": {started, nil, true},
		"releasing nodes":                 {started, []metav1.Condition{condition(reconciling, metav1.ConditionTrue)}, false},
		"a node cannot be released":       {started, []metav1.Condition{condition(reconciling, metav1.ConditionFalse), condition(stalled, metav1.ConditionTrue)}, false},
		"completed":                       {started, []metav1.Condition{condition(reconciling, metav1.ConditionFalse), condition(completed, metav1.ConditionTrue)}, true},
		"completed with skipped nodes":    {started, []metav1.Condition{condition(stalled, metav1.ConditionTrue), condition(completed, metav1.ConditionTrue)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			status := &coordinationv1alpha1.NodeMaintenanceStatus{StageStatuses: test.stages, Conditions: test.conditions}
			if got := hasEnded(status); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// The finalizers and node conditions of other controllers are kept.
func TestForeignFinalizersAndConditionsAreKept(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	node := f.node("n")
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	f.update(node)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Finalizers = []string{"example.com/f"} })
	f.settle()
	f.setStage("m", stageComplete)
	f.settle()
	if m := f.maintenance("m"); !slices.Equal(m.Finalizers, []string{"example.com/f"}) {
		t.Errorf("finalizers %q", m.Finalizers)
	}
	if conditions := f.node("n").Status.Conditions; len(conditions) != 1 || conditions[0].Type != v1.NodeReady {
		t.Errorf("conditions %+v", conditions)
	}
	// A maintenance that is over selects no node.
	if specs, _ := f.progress.Selecting(f.node("n")); len(specs) > 0 {
		t.Errorf("orders %+v", specs)
	}
}

// Who undoes the cordons of one maintenance after the other has the pace of one: the first cordon of each is at once,
// those that follow have the backoff of the last ten minutes.
func TestPaceOfCordonsOutlastsTheMaintenance(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	uncordon := func() {
		node := f.node("n")
		node.Spec.Unschedulable = false
		f.update(node)
		f.run(time.Second)
	}
	before := metricValues(t)
	contested := func() float64 { return metricValues(t)["contested_cordons_total"] - before["contested_cordons_total"] }
	maintain := func(name string) {
		f.createMaintenance(name, stageCordon, "a")
		f.run(time.Second)
		if !f.node("n").Spec.Unschedulable {
			t.Errorf("%s: the first cordon waits", name)
		}
	}
	release := func(name string) {
		f.setStage(name, stageComplete)
		f.run(5 * time.Second)
		if f.node("n").Spec.Unschedulable {
			t.Errorf("%s: not uncordoned", name)
		}
	}

	maintain("m")
	for range pace.RevertLimit {
		uncordon()
	}
	if contested() != pace.RevertLimit {
		t.Errorf("counted %v contested cordons", contested())
	}
	release("m")

	maintain("soon")
	uncordon()
	if f.node("n").Spec.Unschedulable || contested() != pace.RevertLimit {
		t.Errorf("cordoned again at once: %v contested cordons", contested())
	}
	release("soon")

	f.run(pace.RevertWindow)
	maintain("later")
	if len(f.pacer.Names(pace.RevertedCordon)) > 0 {
		t.Errorf("re-cordons are left: %v", f.pacer.Names(pace.RevertedCordon))
	}
	uncordon()
	if !f.node("n").Spec.Unschedulable || contested() != pace.RevertLimit+1 {
		t.Errorf("not cordoned again: %v contested cordons", contested())
	}
}

// A completion does not wait for a node that was deleted meanwhile.
func TestCompletionOfADeletedNode(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageCordon, "a")
	f.settle()
	f.setStage("m", stageComplete)
	f.deliverMaintenances()
	if err := f.syncMaintenance(f.ctx, "m"); err != nil {
		t.Fatal(err)
	}
	if err := f.client.CoreV1().Nodes().Delete(f.ctx, "n", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.settle()
	if m := f.maintenance("m"); len(m.Finalizers) > 0 {
		t.Errorf("not released: %+v", m.Status)
	}
}

// A deselected node does not delay the drain of the others.
func TestDeselectedNodeDoesNotDelayOthers(t *testing.T) {
	f := newFixture(t)
	f.createNode("n1", map[string]string{"a": ""})
	f.createNode("n2", map[string]string{"a": ""})
	f.createPods(1, "n1", 2000)
	f.createPods(1, "n2", 1000)
	f.createMaintenance("m", stageDrain, "a", plan(entry(v1.PodTypeDefault, 1000), entry(v1.PodTypeDefault, 2000))...)
	f.expectDrains("at first", map[string]string{"n1": "1/0 Waiting for m. Default<=1000"})
	f.relabel("n2", nil)
	f.expectDrains("then", map[string]string{"n1": "0/1 Draining Default<=2000"})
}

// Requests of other requesters are active, too, and a blocker has the name of the budget.
func TestRequestsOfOthersAndBudgets(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 1000)
	later := f.createPods(1, "n", 2000, ofApp("db"))[0]
	request := &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: string(later.UID)},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: later.Name, UID: string(later.UID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: "other.example.com"}},
		},
	}
	meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
		Type: string(coordinationv1alpha1.EvictionRequestConditionBlocked), Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.EvictionRequestReasonDisruptionBudget,
	})
	if _, err := f.client.CoordinationV1alpha1().EvictionRequests("default").Create(f.ctx, request, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.podBudgets = poddisruptionbudget.NewIndex([]*policyv1.PodDisruptionBudget{
		newBudget("default", "db", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}),
	})
	f.createMaintenance("m", stageDrain, "a", plan(entry(v1.PodTypeDefault, 1000), entry(v1.PodTypeDefault, 2000))...)
	f.settle()
	status := f.maintenance("m").Status.DrainStatus
	if status.ActiveEvictionRequests != 2 || status.PodsPendingEvictionRequest != 0 || status.Blockers[0].Name != "default/db" {
		t.Errorf("status %+v", status)
	}
	// When the request of another requester is gone, the eviction of the pod has to be requested.
	if err := f.client.CoordinationV1alpha1().EvictionRequests("default").Delete(f.ctx, string(later.UID), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.settle()
	if status := f.maintenance("m").Status.DrainStatus; status.ActiveEvictionRequests != 1 || status.PodsPendingEvictionRequest != 1 {
		t.Errorf("afterwards: %+v", status)
	}
}

// A status is reported in events and metrics once, after it was written, even if earlier writes had
// conflicts. A drain is measured once, even if the controller restarts.
func TestStatusThatLosesAConflict(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	lost := 0
	f.client.PrependReactor("update", "nodemaintenances", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "status" || lost == 3 {
			return false, nil, nil
		}
		lost++
		f.maintenanceQueue.Add("m") // The event of the other write.
		return true, nil, apierrors.NewConflict(write.MaintenanceResource, "m", errors.New("changed"))
	})
	before := metricValues(t)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	f.restart()
	f.createPods(1, "n", 0)
	f.settle()
	got := metricValues(t)
	for name, want := range map[string]float64{"stage_transitions_total": 2, "drain_duration_seconds": 3} {
		if diff := got[name] - before[name]; diff != want {
			t.Errorf("%s grew by %v, want %v", name, diff, want)
		}
	}
	started := 0
	for _, event := range f.events {
		if strings.Contains(event, "StageStarted") {
			started++
		}
	}
	if started != 2 || lost != 3 {
		t.Errorf("%d events about stages after %d conflicts: %q", started, lost, f.events)
	}
	if _, err := f.writer.SetStatus(f.ctx, &coordinationv1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}, &coordinationv1alpha1.NodeMaintenanceStatus{}); err != nil {
		t.Errorf("a maintenance that is gone: %v", err)
	}
	old := f.maintenance("m")
	old.ResourceVersion = "1"
	if written, err := f.writer.SetStatus(f.ctx, old, &old.Status); written || err != nil {
		t.Errorf("a conflict: %t, %v", written, err)
	}
}

// The request for a pod that was already evicted is not counted.
func TestEvictedPodIsNotCounted(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", nil)
	pod := f.createPods(1, "n", 0)[0]
	before := metricValues(t)["evictionrequests_created_total"]
	if err := f.writer.Request(f.ctx, pod); err != nil {
		t.Fatal(err)
	}
	request := f.request1(pod)
	meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
		Type: string(coordinationv1alpha1.EvictionRequestConditionEvicted), Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.EvictionRequestReasonPodDeleted,
	})
	if _, err := f.client.CoordinationV1alpha1().EvictionRequests("default").UpdateStatus(f.ctx, request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := f.writer.Request(f.ctx, pod); err != nil {
		t.Fatal(err)
	}
	if got := metricValues(t)["evictionrequests_created_total"] - before; got != 1 {
		t.Errorf("counted %v requests", got)
	}
}

// After each kind of write to a node the cache is not current until it has the write.
func TestEachWriteIsRemembered(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.deliverAll()
	if _, err := f.writer.Cordon(f.ctx, f.node("n")); err != nil {
		t.Fatal(err)
	}
	if f.writer.IsCurrentNode("n") {
		t.Error("current without the cordon")
	}
	f.deliverAll()
	if !f.writer.IsCurrentNode("n") {
		t.Error("not current with the cordon")
	}
	if err := f.writer.SetNodeStatus(f.ctx, f.node("n"), &v1.MaintenanceStatus{}, nil); err != nil {
		t.Fatal(err)
	}
	if f.writer.IsCurrentNode("n") {
		t.Error("current without the status")
	}
	f.deliverAll()
}

// A node is only cordoned or uncordoned as it was read: it may have been released, or claimed again, since.
// Whoever writes it all the time does not keep it from that.
func TestCordonNeedsNodeAsRead(t *testing.T) {
	for _, unschedulable := range []bool{true, false} {
		t.Run(fmt.Sprint(unschedulable), func(t *testing.T) { testCordonNeedsNodeAsRead(t, unschedulable) })
	}
}

func testCordonNeedsNodeAsRead(t *testing.T, unschedulable bool) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.deliverAll()
	read := f.node("n")
	done := func(node *v1.Node) (*v1.Node, error) {
		if unschedulable {
			return f.writer.Cordon(f.ctx, node)
		}
		written, _, err := f.writer.Uncordon(f.ctx, node, f.cordonedBefore)
		return written, err
	}
	if err := f.writer.SetNodeStatus(f.ctx, read, &v1.MaintenanceStatus{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := done(read); !apierrors.IsConflict(err) {
		t.Errorf("written, though it has changed: %v", err)
	}
	read = f.node("n")
	// Changes of agents do not count.
	changed := f.node("n")
	changed.Annotations = map[string]string{"agent": "1"}
	f.update(changed)
	if written, err := done(read); err != nil || written.Spec.Unschedulable != unschedulable {
		t.Errorf("not written after the change of an agent: %v", err)
	}
	attempts := 0
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if attempts++; !strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), "resourceVersion") {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(write.NodeResource, "n", errors.New("an agent was faster"))
	})
	if written, err := done(f.node("n")); err != nil || written.Spec.Unschedulable != unschedulable {
		t.Errorf("not written while an agent writes all the time: %v", err)
	}
	if attempts != write.MaxStatusConflicts+1 {
		t.Errorf("%d attempts", attempts)
	}
}
