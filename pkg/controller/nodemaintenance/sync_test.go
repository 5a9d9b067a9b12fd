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
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/metrics"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/util/consistency"
	"k8s.io/utils/ptr"
)

// writes returns the writes since the actions were cleared, as "verb resource".
func (f *fixture) writes() []string {
	var writes []string
	for _, action := range f.client.Actions() {
		if slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			continue
		}
		what := action.GetVerb() + " " + action.GetResource().Resource
		if action.GetSubresource() != "" {
			what += "/" + action.GetSubresource()
		}
		writes = append(writes, what)
	}
	return writes
}

func (f *fixture) expectWrites(what string, want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.writes()); diff != "" {
		f.t.Errorf("%s: writes (-want, +got):\n%s", what, diff)
	}
	f.client.ClearActions()
}

func TestOrderOfWrites(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.client.ClearActions()
	f.settle()
	f.expectWrites("a drain",
		"patch nodemaintenances", // The finalizer.
		"update nodemaintenances/status",
		"patch nodes",
		"patch nodes/status",
		"patch evictionrequests",
		"update nodemaintenances/status",
		"patch nodes/status")
	f.setStage("m", stageComplete)
	f.client.ClearActions()
	f.settle()
	f.expectWrites("its completion",
		"update nodemaintenances/status",
		"patch evictionrequests",
		"patch nodes",
		"patch nodes/status",
		"update nodemaintenances/status", // Completed.
		"patch nodemaintenances")
	if m := f.maintenance("m"); len(m.Finalizers) > 0 {
		t.Errorf("finalizers are left: %v", m.Finalizers)
	}
}

// A node that no maintenance selects, or only one in the stage Idle, keeps its spec and pods.
func TestIdleTouchesNothing(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createNode("other", nil)
	f.createPods(1, "n", 0)
	f.createMaintenance("m", stageIdle, "a", maintenance.StandardPlan()...)
	f.client.ClearActions()
	f.settle()
	f.expectWrites("planning", "update nodemaintenances/status", "patch nodes/status")
	node := f.node("n")
	if node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil {
		t.Errorf("the node was changed: %+v", node)
	}
	if planned := node.Status.Conditions[0]; planned.Type != v1.NodeMaintenancePlanned || planned.Status != v1.ConditionTrue || planned.Message != "NodeMaintenance m" {
		t.Errorf("condition %+v", planned)
	}
	f.deleteMaintenance("m")
	f.client.ClearActions()
	f.settle()
	f.expectWrites("the end of the plan", "patch nodes/status")
	if conditions := f.node("n").Status.Conditions; len(conditions) > 0 {
		t.Errorf("conditions are left: %v", conditions)
	}
}

// The metrics count every node and pod once, however many maintenances select them.
func TestCount(t *testing.T) {
	f := newFixture(t)
	f.createNode("one", map[string]string{"a": "", "b": "", "c": ""})
	f.createNode("two", map[string]string{"b": "", "c": ""})
	f.createNode("three", map[string]string{"c": ""})
	f.createPods(2, "one", 1000)
	f.createPods(1, "one", 2000)
	blocked := f.createPods(1, "one", 1000)[0]
	plan := maintenance.CompletePlan([]v1.DrainPlanEntry{entry(v1.PodTypeDefault, 1000)})
	f.createMaintenance("m1", stageDrain, "a", plan...)
	f.createMaintenance("m2", stageDrain, "a", plan...)
	f.createMaintenance("m3", stageCordon, "b")
	f.createMaintenance("m4", stageIdle, "c")
	f.settle()
	request := f.request1(blocked)
	meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
		Type: string(coordinationv1alpha1.EvictionRequestConditionBlocked), Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.EvictionRequestReasonEvictionRefused,
		LastTransitionTime: metav1.NewTime(f.clock.Now()),
	})
	if _, err := f.client.CoordinationV1alpha1().EvictionRequests("default").UpdateStatus(f.ctx, request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.settle()
	begun := f.maintenance("m1").Status.StageStatuses[0].StartTimestamp.Time
	blockedSince := request.Status.Conditions[0].LastTransitionTime.Time
	f.clock.Step(time.Hour)
	age := f.clock.Since(begun)
	want := metrics.Counts{
		Maintenances: map[coordinationv1alpha1.NodeMaintenanceStage]int{stageDrain: 2, stageCordon: 1, stageIdle: 1},
		Nodes:        map[coordinationv1alpha1.NodeMaintenanceStage]int{stageDrain: 1, stageCordon: 1, stageIdle: 1},
		PendingPods:  1, EvictingPods: 3,
		BlockedPods:  map[maintenance.BlockerCause]int{maintenance.BlockerEvictionRefused: 1},
		BlockedNodes: map[maintenance.BlockerCause]int{},
		WaitingNodes: map[coordinationv1alpha1.NodeMaintenanceWaitReason]int{},

		OldestMaintenance: map[coordinationv1alpha1.NodeMaintenanceStage]time.Duration{stageDrain: age, stageCordon: age, stageIdle: age},
		OldestBlocker:     map[maintenance.BlockerCause]time.Duration{maintenance.BlockerEvictionRefused: f.clock.Since(blockedSince)},
	}
	if diff := cmp.Diff(want, f.count()); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	stored := f.maintenance("m1").Status
	if status.FindDrained(&stored).Reason != coordinationv1alpha1.NodeMaintenanceReasonBlocked || stored.DrainStatus.BlockedPods != 1 {
		t.Errorf("status %+v", stored)
	}
}

// The oldest of several maintenances and blockers counts, and what needs no intervention does not.
func TestCountOldest(t *testing.T) {
	f := newFixture(t)
	f.createNode("one", map[string]string{"a": ""})
	f.createNode("two", map[string]string{"b": ""})
	var pods []*v1.Pod
	for i := range 4 {
		app := strconv.Itoa(i)
		pods = append(pods, f.createPods(1, []string{"one", "two"}[i/2], 1000, ofApp(app))...)
		budget := newBudget("default", "budget-"+app, &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}})
		if i == 3 {
			budget.Spec.Selector.MatchLabels["app"] = "2" // Both block one pod, and none the other.
		}
		if _, err := f.client.PolicyV1().PodDisruptionBudgets("default").Create(f.ctx, budget, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.deliverBudgets()
	plan := maintenance.CompletePlan([]v1.DrainPlanEntry{entry(v1.PodTypeDefault, 1000)})
	f.createMaintenance("first", stageDrain, "a", plan...)
	f.settle()
	first := f.maintenance("first").Status.StageStatuses[0].StartTimestamp.Time
	f.clock.Step(time.Hour)
	f.createMaintenance("second", stageDrain, "b", plan...)
	f.settle()
	for i, pod := range pods[:3] {
		request := f.request1(pod)
		meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
			Type: string(coordinationv1alpha1.EvictionRequestConditionBlocked), Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.EvictionRequestReasonDisruptionBudget,
			LastTransitionTime: metav1.NewTime(first.Add(time.Duration(8+i) * time.Minute)),
		})
		if _, err := f.client.CoordinationV1alpha1().EvictionRequests("default").UpdateStatus(f.ctx, request, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.settle()
	f.clock.Step(time.Hour)
	var counts metrics.Counts
	for range 20 { // Neither the cache nor the progress has an order.
		counts = f.count()
		if got, want := counts.OldestMaintenance[stageDrain], f.clock.Since(first); got != want {
			t.Fatalf("the oldest drain began %s ago, want %s", got, want)
		}
		want := map[maintenance.BlockerCause]time.Duration{maintenance.BlockerDisruptionBudget: f.clock.Since(first.Add(8 * time.Minute))}
		if diff := cmp.Diff(want, counts.OldestBlocker); diff != "" {
			t.Fatalf("oldest blockers (-want, +got):\n%s", diff)
		}
	}
	if counts.BlockedPods[maintenance.BlockerDisruptionBudget] != 3 || counts.BlockingBudgets != 3 {
		t.Errorf("%d budgets block, want 3: %v", counts.BlockingBudgets, counts)
	}
	// A pod is not blocked before its grace period is over.
	f.deletePods(pods[3])
	stuck := f.createPods(1, "two", 1000, func(pod *v1.Pod) {
		pod.DeletionTimestamp = &metav1.Time{Time: f.clock.Now().Add(-10 * time.Minute)}
		pod.DeletionGracePeriodSeconds = ptr.To[int64](3600)
	})
	f.settle()
	if got := f.count().OldestBlocker[maintenance.BlockerStuckTerminating]; got >= 10*time.Minute || got < 9*time.Minute {
		t.Errorf("%s has been stuck for %s since the end of its grace period 10 minutes ago", stuck[0].Name, got)
	}
	f.deletePods(stuck...)
	// What is complete is not old, however long it is kept.
	f.setStage("first", stageComplete)
	f.setStage("second", stageComplete)
	f.settle()
	f.clock.Step(time.Hour)
	if counts = f.count(); len(counts.OldestMaintenance) > 0 || len(counts.OldestBlocker) > 0 || counts.BlockingBudgets != 0 {
		t.Errorf("after the completion: %+v", counts)
	}
}

// No decision is made on a node before the pods of all nodes of its maintenances are counted: nodes
// that are not counted yet would seem to have no pods.
func TestNothingIsDecidedBeforeAllNodesAreCounted(t *testing.T) {
	f := newFixture(t)
	f.createNode("first", map[string]string{"a": ""})
	f.createNode("second", map[string]string{"a": ""})
	f.createPods(1, "first", 2000)
	f.createPods(1, "second", 1000)
	f.createMaintenance("m", stageDrain, "a", maintenance.CompletePlan([]v1.DrainPlanEntry{entry(v1.PodTypeDefault, 1000), entry(v1.PodTypeDefault, 2000)})...)
	f.settle()
	if got := f.drains("m")["m"]; got != "1/1 Draining Default<=1000" {
		t.Fatalf("before the restart: %s", got)
	}
	f.restart()
	f.client.ClearActions()
	f.reconcile("first")
	f.expectWrites("one node of two")
	f.settle()
	f.expectWrites("both")
}

// A new pod that matches an earlier entry does not move the position back.
func TestPositionNeverGoesBack(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	low := f.createPods(1, "n", 1000)
	f.createPods(1, "n", 2000)
	f.createMaintenance("m", stageDrain, "a", maintenance.CompletePlan([]v1.DrainPlanEntry{entry(v1.PodTypeDefault, 1000), entry(v1.PodTypeDefault, 2000)})...)
	f.settle()
	f.deletePods(low...)
	f.settle()
	f.createPods(1, "n", 999)
	f.settle()
	if got := f.drains("m")["m"]; got != "0/2 Draining Default<=2000" {
		t.Errorf("after a late pod: %s", got)
	}
	if position := f.maintenance("m").Status.DrainStatus.DrainPlanPosition; !cmp.Equal(position, ptr.To[int32](1)) {
		t.Errorf("the position is %v", *position)
	}
	f.restart()
	f.settle()
	if position := f.maintenance("m").Status.DrainStatus.DrainPlanPosition; !cmp.Equal(position, ptr.To[int32](1)) {
		t.Errorf("after a restart the position is %v", *position)
	}
}

// A node that joins late follows the plan from its beginning, while others are further.
func TestLateNodeFollowsThePlan(t *testing.T) {
	f := newFixture(t)
	f.createNode("early", map[string]string{"a": ""})
	f.createPods(1, "early", 2000)
	f.createMaintenance("m", stageDrain, "a", maintenance.CompletePlan([]v1.DrainPlanEntry{entry(v1.PodTypeDefault, 1000), entry(v1.PodTypeDefault, 2000)})...)
	f.settle()
	f.createNode("late", map[string]string{"a": ""})
	low := f.createPods(1, "late", 1000)
	f.createPods(1, "late", 2000)
	f.expectDrains("a late node", map[string]string{
		"early": "0/1 Draining Default<=2000",
		"late":  "1/1 Draining Default<=1000",
		"m":     "1/2 Draining Default<=1000",
	})
	f.deletePods(low...)
	f.expectDrains("it catches up", map[string]string{
		"late": "0/1 Draining Default<=2000",
		"m":    "0/2 Draining Default<=2000",
	})
}

// A maintenance whose finalizer was removed by another client still claims its nodes, also after a
// restart of the controller.
func TestLostFinalizer(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageCordon, "a")
	f.settle()
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Finalizers = nil })
	f.restart()
	f.client.ClearActions()
	f.reconcile("n")
	f.expectWrites("before the finalizer is back")
	f.settle()
	f.expectWrites("after it", "patch nodemaintenances")
}

// If a maintenance is gone because its finalizer was removed by force, its nodes are released and
// its requests withdrawn.
func TestVanishedMaintenance(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	if err := f.client.CoordinationV1alpha1().NodeMaintenances().Delete(f.ctx, "m", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.restart()
	f.settle()
	if node := f.node("n"); node.Spec.Unschedulable || !node.Status.MaintenanceStatus.Unclaimed || len(node.Status.Conditions) > 0 {
		t.Errorf("the node was not released: %+v", node)
	}
	f.run(progress.UnknownAdmission) // The cache may have been behind.
	if node := f.node("n"); node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil || len(node.Status.Conditions) > 0 {
		t.Errorf("the node was not released: %+v", node)
	}
	requests, err := f.client.CoordinationV1alpha1().EvictionRequests("default").List(f.ctx, metav1.ListOptions{})
	if err != nil || len(requests.Items) != 1 || len(requests.Items[0].Spec.Requesters) > 0 {
		t.Errorf("the eviction of the pod is still requested: %v %v", requests, err)
	}
}

// A completed maintenance does not react to later changes of its nodes.
func TestCompletedMaintenanceRests(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageComplete, "a")
	node := f.node("n")
	node.Spec.Unschedulable = true
	f.update(node)
	f.settle()
	if f.node("n").Spec.Unschedulable {
		t.Error("the node is not uncordoned in Complete")
	}
	node = f.node("n")
	node.Spec.Unschedulable = true
	f.update(node)
	f.client.ClearActions()
	f.settle()
	f.restart()
	f.settle()
	f.expectWrites("a cordon by hand afterwards")
}

func (f *fixture) update(node *v1.Node) {
	f.t.Helper()
	if _, err := f.client.CoreV1().Nodes().Update(f.ctx, node, metav1.UpdateOptions{}); err != nil {
		f.t.Fatalf("updating a node: %v", err)
	}
	f.client.ClearActions()
}

// If another client keeps uncordoning the node, an event is emitted, and re-cordons slow down.
func TestContestedCordon(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageCordon, "a")
	f.settle()
	for i := range pace.RevertLimit + 1 {
		node := f.node("n")
		node.Spec.Unschedulable = false
		f.update(node)
		f.deliverAll()
		for f.step() {
		}
		want := []string{"patch nodes"}
		if i >= pace.RevertLimit {
			want = nil
		}
		if diff := cmp.Diff(want, f.writes()); diff != "" {
			t.Errorf("attempt %d (-want, +got):\n%s", i, diff)
		}
		f.deliverAll()
		for f.step() {
		}
	}
	f.expectEvent("Node n: CordonContested: Node keeps being uncordoned while NodeMaintenance m claims it; re-cordoning at most once a minute")
	f.clock.Step(pace.RevertPause)
	f.settle()
	if !f.node("n").Spec.Unschedulable {
		t.Error("the node is not cordoned again after the pause")
	}
}

// A controller whose cache is behind does not claim a node that another one, which knows that the
// maintenance has ended, has uncordoned and released.
func TestReleasedNodeIsNotClaimedAgain(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageCordon, "a")
	f.settle()
	node := f.node("n")
	node.Spec.Unschedulable = false
	f.update(node)
	f.deliverNodes()
	node = f.node("n")
	node.Status.MaintenanceStatus = nil
	f.update(node)
	for f.step() {
	}
	if node := f.node("n"); node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil {
		t.Errorf("unschedulable: %t, status: %v", node.Spec.Unschedulable, node.Status.MaintenanceStatus)
	}
	// If the maintenance goes on, the node is claimed when the cache has all of it.
	f.settle()
	if node := f.node("n"); !node.Spec.Unschedulable || node.Status.MaintenanceStatus == nil {
		t.Errorf("in the end: unschedulable: %t, status: %v", node.Spec.Unschedulable, node.Status.MaintenanceStatus)
	}
}

// Statuses are written at most once per interval, however often pods come and go.
func TestStatusWritesAreSpaced(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pods := f.createPods(5, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	f.clock.Step(pace.StatusInterval)
	f.client.ClearActions()
	for _, pod := range pods[1:] {
		f.deletePods(pod)
		f.deliverAll()
		for f.step() {
		}
		f.clock.Step(pace.SummaryDelay)
		f.maintenanceQueue.release()
		for f.step() {
		}
	}
	var statuses []string
	for _, write := range f.writes() {
		if strings.HasSuffix(write, "/status") {
			statuses = append(statuses, write)
		}
	}
	if diff := cmp.Diff([]string{"patch nodes/status", "update nodemaintenances/status"}, statuses); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	f.expectDrains("at the end", map[string]string{"n": "0/1 Draining Default<=1000000000", "m": "0/1 Draining Default<=1000000000"})
}

// A request is not withdrawn if its interceptor forbids cancellation.
func TestForbiddenCancellation(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	request := f.request1(pod)
	request.Status.EvictionRequestCancellationPolicy = coordinationv1alpha1.EvictionRequestCancellationPolicyForbid
	if _, err := f.client.CoordinationV1alpha1().EvictionRequests("default").UpdateStatus(f.ctx, request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.setStage("m", stageComplete)
	f.settle()
	if requesters := f.request1(pod).Spec.Requesters; len(requesters) != 1 {
		t.Errorf("requesters %v", requesters)
	}
	if len(f.maintenance("m").Finalizers) > 0 || f.node("n").Spec.Unschedulable {
		t.Error("the maintenance does not complete")
	}
}

func (f *fixture) request1(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	f.t.Helper()
	request, err := f.client.CoordinationV1alpha1().EvictionRequests(pod.Namespace).Get(f.ctx, string(pod.UID), metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return request
}

// If the request for one pod is refused, the evictions of the others are still requested, an event
// reports the failure, and the node does not count as drained.
func TestPodThatCannotBeAsked(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pods := f.createPods(3, "n", 0)
	refused := true
	f.client.PrependReactor("patch", "evictionrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if refused && action.(clienttesting.PatchAction).GetName() == string(pods[1].UID) {
			return true, nil, apierrors.NewForbidden(requestResource, string(pods[1].UID), errors.New("no"))
		}
		return false, nil, nil
	})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	for range 40 {
		f.deliverAll()
		f.step()
		f.advanceTo(f.clock.Now().Add(pace.StatusInterval))
	}
	if got := f.drains("n")["n"]; got != "1/2 Draining Default<=1000000000" {
		t.Errorf("the node: %s", got)
	}
	if !slices.ContainsFunc(f.events, func(event string) bool {
		return strings.HasPrefix(event, "Pod "+pods[1].Name+": EvictionRequestFailed: Failed to request the eviction of the pod: ")
	}) {
		t.Errorf("events %q", f.events)
	}
	refused = false
	f.expectDrains("at the end", map[string]string{"n": "0/3 Draining Default<=1000000000"})
}

// No other request is written for a pod whose request was refused for good, or has the condition
// Evicted while the cache of pods lags behind.
func TestPodsThatAreNotAskedAgain(t *testing.T) {
	for _, condition := range []metav1.Condition{
		{Type: string(coordinationv1alpha1.EvictionRequestConditionCanceled), Reason: coordinationv1alpha1.EvictionRequestReasonValidationFailed},
		{Type: string(coordinationv1alpha1.EvictionRequestConditionEvicted), Reason: coordinationv1alpha1.EvictionRequestReasonPodDeleted},
	} {
		t.Run(condition.Type, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			pod := f.createPods(1, "n", 0)[0]
			request := &coordinationv1alpha1.EvictionRequest{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: string(pod.UID)},
				Spec:       coordinationv1alpha1.EvictionRequestSpec{Target: coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}}},
			}
			condition.Status = metav1.ConditionTrue
			meta.SetStatusCondition(&request.Status.Conditions, condition)
			if _, err := f.client.CoordinationV1alpha1().EvictionRequests("default").Create(f.ctx, request, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			f.client.ClearActions()
			f.settle()
			if slices.Contains(f.writes(), "patch evictionrequests") {
				t.Error("the eviction was requested")
			}
			stored := f.maintenance("m").Status
			if status.IsDrained(&stored) || stored.DrainStatus.PodsPendingEvictionRequest != 1 {
				t.Errorf("status %+v", stored)
			}
		})
	}
}

// One event is emitted for each node that an older maintenance has drained further than a new one.
func TestFastForwardIsToldOnce(t *testing.T) {
	f := newFixture(t)
	f.createNode("one", map[string]string{"a": "", "b": ""})
	f.createNode("two", map[string]string{"a": "", "b": ""})
	f.createNode("three", map[string]string{"b": ""})
	for _, node := range []string{"one", "two", "three"} {
		f.createPods(1, node, 5000)
		f.createPods(1, node, 900)
	}
	f.createMaintenance("old", stageDrain, "a", maintenance.CompletePlan([]v1.DrainPlanEntry{entry(v1.PodTypeDefault, 5000)})...)
	f.settle()
	f.createMaintenance("new", stageDrain, "b", maintenance.CompletePlan([]v1.DrainPlanEntry{entry(v1.PodTypeDefault, 1000)})...)
	f.settle()
	f.restart()
	f.settle()
	var got []string
	for _, event := range f.events {
		if strings.Contains(event, "DrainFastForwarded") {
			got = append(got, event)
		}
	}
	slices.Sort(got)
	const event = "NodeMaintenance new: DrainFastForwarded: Fast-forwarded on node %s: another maintenance has already drained it up to Default<=5000, and drain targets do not step back"
	if diff := cmp.Diff([]string{fmt.Sprintf(event, "one"), fmt.Sprintf(event, "two")}, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// behind is a cache that lacks an own write while lacks is set.
type behind struct {
	consistency.ConsistencyStore
	lacks bool
}

func (b *behind) EnsureReady(owner types.NamespacedName) error {
	if b.lacks {
		return errors.New("behind")
	}
	return b.ConsistencyStore.EnsureReady(owner)
}

// A sync that waits for an own write to reach the cache is repeated even without an event, because
// the event for the write may be about a pod that is gone.
func TestStaleCachesAreWaitedFor(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	nodes, maintenances := &behind{f.writer.Nodes, true}, &behind{f.writer.Maintenances, true}
	f.writer.Nodes, f.writer.Maintenances = nodes, maintenances
	f.client.ClearActions()
	f.deliverAll()
	for f.step() {
	}
	f.expectWrites("with stale caches")
	if f.nodeQueue.later["n"].IsZero() || f.maintenanceQueue.later["m"].IsZero() {
		t.Errorf("no further sync: %v, %v", f.nodeQueue.later, f.maintenanceQueue.later)
	}
	nodes.lacks, maintenances.lacks = false, false
	f.expectDrains("afterwards", map[string]string{"n": "0/1 Draining Default<=1000000000"})
}
