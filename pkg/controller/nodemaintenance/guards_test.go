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
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-helpers/node/maintenance"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// A look that began before a maintenance was completed does not release the node from it.
func TestReleaseByAnOldLook(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.deliverAll()
	_, observed := f.ledger.selecting(f.node("n"))
	f.createMaintenance("m", stageComplete, "a")
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Finalizers = []string{coordinationv1alpha1.NodeMaintenanceFinalizer}
	})
	if err := f.observe(f.maintenance("m")); err != nil {
		t.Fatal(err)
	}
	if finished := f.ledger.release("n", observed); len(finished) > 0 || !f.ledger.isUnreleased("n") {
		t.Errorf("released %v", finished)
	}
	_, observed = f.ledger.selecting(f.node("n"))
	if finished := f.ledger.release("n", observed); !slices.Equal(finished, []string{"m"}) || f.ledger.isUnreleased("n") {
		t.Errorf("released %v", finished)
	}
}

// A node that is not given back in its status keeps the maintenance.
func TestRefusedStatusKeepsTheMaintenance(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageCordon, "a")
	f.settle()
	refused := f.refuse("patch", "nodes", "status", webhook)
	f.setStage("m", stageComplete)
	f.run(5 * time.Second)
	if m := f.maintenance("m"); len(m.Finalizers) == 0 {
		t.Error("let go")
	}
	refused.err = allowed
	f.settle()
	if m := f.maintenance("m"); len(m.Finalizers) > 0 || f.node("n").Status.MaintenanceStatus != nil {
		t.Error("not let go")
	}
}

// A pod that is terminating becomes stuck by time alone.
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
	f.run(15 * time.Second)
	if got := f.maintenance("m").Status.DrainStatus; got.Blockers[0].Cause != coordinationv1alpha1.DrainBlockerStuckTerminating || got.BlockedPods != 1 {
		t.Errorf("later: %+v", got)
	}
}

// What failed for a node that is gone is forgotten.
func TestFailuresOfAVanishedNode(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.refuse("patch", "nodes", "", webhook)
	f.createMaintenance("m", stageCordon, "a")
	f.run(time.Second)
	if len(f.failures.nodes) != 1 {
		t.Errorf("remembers %v", f.failures.nodes)
	}
	if err := f.client.CoreV1().Nodes().Delete(f.ctx, "n", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.run(time.Minute)
	if len(f.failures.nodes) > 0 {
		t.Errorf("remembers %v", f.failures.nodes)
	}
	f.deleteMaintenance("m")
	f.settle()
	if len(f.maintenanceWrites.last) > 0 {
		t.Errorf("remembers the maintenance: %v", f.maintenanceWrites.last)
	}
}

// A node that was replaced by another one of its name is not cordoned by a look at the first,
// and that is no failure.
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
		f.clock.Step(lookInterval)
	}
	if f.node("n").Spec.Unschedulable || len(f.failures.nodes) > 0 {
		t.Errorf("node %+v, failures %v", f.node("n").Spec, f.failures.nodes)
	}
	f.expectNoEvent(reasonCordonFailed)
}

func TestNodeStatusPatchHasPreconditions(t *testing.T) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "7"}}
	patch, err := nodeStatusPatch(node, &v1.MaintenanceStatus{}, nil)
	if want := `"metadata":{"resourceVersion":"7","uid":"u"}`; err != nil || !strings.Contains(string(patch), want) {
		t.Errorf("patch %s, %v", patch, err)
	}
}

// Until the caches have an own write, nothing else is written.
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
	f.expectWrites("a maintenance", "update nodemaintenances")
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

// A pod that is bound to the node later is asked as soon as it is there.
func TestBoundPodIsAsked(t *testing.T) {
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

// A pod that begins to terminate is a blocker of another kind.
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

// What somebody else makes of the status of a node is put right.
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

// A request that this controller is left with on a node without maintenance is withdrawn from.
func TestLeftoverRequestIsWithdrawn(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", nil)
	pod := f.createPods(1, "n", 0)[0]
	f.settle()
	if err := f.writer.request(f.ctx, pod); err != nil {
		t.Fatal(err)
	}
	f.settle()
	if requesters := f.request1(pod).Spec.Requesters; len(requesters) > 0 {
		t.Errorf("still asked by %v", requesters)
	}
}

// Outside of the stage Drain a status that comes too soon is written later.
func TestStatusThatComesTooSoon(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageIdle, "a")
	f.run(100 * time.Millisecond)
	f.setStage("m", stageCordon)
	f.run(2 * time.Second)
	if m := f.maintenance("m"); m.Status.ObservedGeneration != m.Generation || !hasStarted(&m.Status, stageCordon) {
		t.Errorf("status %+v", m.Status)
	}
}

func TestTimesOfNodeConditions(t *testing.T) {
	view := &nodeView{planning: []string{"m"}}
	first := computeConditions(view, nil, start)
	later := start.Add(time.Hour)
	for i, c := range computeConditions(view, first, later) {
		if c != first[i] {
			t.Errorf("unchanged: %+v", c)
		}
	}
	view.planning = []string{"m", "n"}
	if c := computeConditions(view, first, later)[0]; !c.LastHeartbeatTime.Time.Equal(later) || !c.LastTransitionTime.Time.Equal(start) {
		t.Errorf("another message: %+v", c)
	}
	view.planning, view.holding = nil, []string{"m"}
	if c := computeConditions(view, first, later)[0]; c.Status != v1.ConditionFalse || !c.LastHeartbeatTime.Time.Equal(later) || !c.LastTransitionTime.Time.Equal(later) {
		t.Errorf("another status: %+v", c)
	}
}

func TestContests(t *testing.T) {
	c := newContests()
	if c.wrote("n", start) || c.wrote("n", start.Add(time.Minute)) || c.wait("n", start.Add(time.Minute)) != 0 {
		t.Error("two are no contest")
	}
	third := start.Add(contestWindow - 30*time.Second)
	if !c.wrote("n", third) || c.wait("n", third.Add(time.Second)) != contestPause-time.Second {
		t.Errorf("three are, and wait %v", c.wait("n", third.Add(time.Second)))
	}
	if c.wait("n", start.Add(contestWindow)) == 0 || c.wait("n", start.Add(contestWindow+time.Second)) != 0 {
		t.Error("the first is not forgotten in time")
	}
}

func TestWriteTimes(t *testing.T) {
	w := newWriteTimes()
	w.wrote("n", start)
	if got := w.wait("n", start.Add(400*time.Millisecond)); got != 600*time.Millisecond {
		t.Errorf("waits %v", got)
	}
	if got := w.wait("n", start.Add(statusInterval)); got > 0 || len(w.last) > 0 {
		t.Errorf("waits %v, remembers %v", got, w.last)
	}
}

// Metrics say what was written, each thing once.
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
	// Pods that come later do not end the drain of their type a second time.
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

// metricValues returns the sums of the counters, and how often histograms were observed.
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

// Keys that fail are tried again, each for itself, and within half a minute.
func TestRetriesOfKeys(t *testing.T) {
	limiter := newRateLimiter()
	for range 100 {
		limiter.When("a")
	}
	if got := limiter.When("a"); got != maxRetry {
		t.Errorf("waits %v", got)
	}
	if got := limiter.When("b"); got != minBackoff {
		t.Errorf("another key waits %v", got)
	}
	for _, failed := range []error{errors.New("no"), apierrors.NewConflict(nodeResource, "n", errors.New("changed"))} {
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
			t.Errorf("%d retries are remembered after %d calls", got, calls)
		}
	}
}

// Others may write conditions of nodes. What they claim of ours decides nothing, and does not
// last.
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
		for _, conditionType := range nodeConditionTypes {
			node.Status.Conditions = append(node.Status.Conditions, v1.NodeCondition{Type: conditionType, Status: v1.ConditionTrue, Reason: "Forged"})
		}
		if _, err := f.client.CoreV1().Nodes().Update(f.ctx, node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.run(time.Minute)
	if c := nodeCondition(f.node("n"), coordinationv1alpha1.NodeDrained); c.Status != v1.ConditionFalse {
		t.Errorf("the node with pod %s has the condition %+v", pod.Name, c)
	}
	if drained := findDrained(&f.maintenance("m").Status); drained == nil || drained.Status != metav1.ConditionFalse {
		t.Errorf("the maintenance of the node with pod %s has the condition %+v", pod.Name, drained)
	}
	if node := f.node("by hand"); !node.Spec.Unschedulable || len(ownConditions(node.Status.Conditions)) > 0 {
		t.Errorf("the node that no maintenance selects is unschedulable: %t, with conditions %+v", node.Spec.Unschedulable, node.Status.Conditions)
	}
}
