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
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// The pod of a request may be deleted before the cache has the request.
func TestPodIsDeletedBeforeItsRequestIsCached(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	for len(f.writer.UnseenNodes()) == 0 {
		f.deliverNodes()
		f.deliverMaintenances()
		f.deliverPods()
		if !f.step() {
			f.clock.Step(pace.StatusInterval)
			f.nodeQueue.release()
			f.maintenanceQueue.release()
		}
	}
	// The watch of pods is faster than that of requests.
	f.deletePods(pod)
	for range 5 {
		f.deliverNodes()
		f.deliverMaintenances()
		f.deliverPods()
		for f.step() {
		}
		f.clock.Step(pace.StatusInterval)
		f.nodeQueue.release()
		f.maintenanceQueue.release()
	}
	f.settle()
	if m := f.maintenance("m"); !status.IsDrained(&m.Status) {
		t.Errorf("never drained: %+v", m.Status)
	}
}

// A sync of a node that began before the maintenance was completed does not complete it.
func TestOldSyncDoesNotRelease(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0)
	// While a worker requests the eviction of the pod, the administrator completes the maintenance.
	fired := false
	f.client.PrependReactor("patch", "evictionrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if !fired {
			fired = true
			// Do what setStage, the informer and syncMaintenance do: the client is locked here.
			resource := coordinationv1alpha1.SchemeGroupVersion.WithResource("nodemaintenances")
			object, err := f.tracker.Get(resource, "", "m")
			if err != nil {
				t.Error(err)
			}
			m := object.(*coordinationv1alpha1.NodeMaintenance).DeepCopy()
			m.Spec.Stage = stageComplete
			m.Generation++
			if err := f.tracker.Update(resource, m, ""); err != nil {
				t.Error(err)
			}
			if err := f.maintenanceInformer.GetIndexer().Update(m); err != nil {
				t.Error(err)
			}
			if err := f.observe(m); err != nil {
				t.Error(err)
			}
			sums, _, _ := f.progress.Summarize("m")
			m = m.DeepCopy()
			m.Status = *status.Compute(m, &sums, f.clock.Now())
			if err := f.tracker.Update(resource, m, ""); err != nil {
				t.Error(err)
			}
			if err := f.maintenanceInformer.GetIndexer().Update(m); err != nil {
				t.Error(err)
			}
			f.maintenanceQueue.Add("m")
		}
		return false, nil, nil
	})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settleUntilReleased(t)
}

func (f *fixture) settleUntilReleased(t *testing.T) {
	for range 200 {
		f.deliverAll()
		if !f.step() {
			f.clock.Step(pace.StatusInterval)
			f.nodeQueue.release()
			f.maintenanceQueue.release()
		}
		m := f.maintenance("m")
		if m.Spec.Stage == stageComplete && len(m.Finalizers) == 0 {
			if f.node("n").Spec.Unschedulable || f.node("n").Status.MaintenanceStatus != nil {
				t.Errorf("completed, but the node was not released: unschedulable %t, events %q", f.node("n").Spec.Unschedulable, f.events)
			}
			return
		}
	}
	t.Fatal("never released")
}

// A node is not uncordoned while another maintenance that selects it awaits its finalizer.
func TestMaintenanceWithoutFinalizerKeepsTheCordon(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("old", stageCordon, "a")
	f.settle()
	f.createMaintenance("new", stageCordon, "a")
	f.setStage("old", stageComplete)
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), `"unschedulable":false`) {
			t.Error("uncordoned although both the API server and the cache have a maintenance in Cordon")
		}
		return false, nil, nil
	})
	f.deliverAll()
	for f.step() {
	}
	f.settle()
}

// A node that cannot be cordoned gets an event, and the other nodes are counted.
func TestNodeThatCannotBeCordoned(t *testing.T) {
	f := newFixture(t)
	f.createNode("bad", map[string]string{"a": ""})
	f.createNode("good", map[string]string{"a": ""})
	f.createPods(1, "good", 0)
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.(clienttesting.PatchAction).GetName() == "bad" {
			return true, nil, apierrors.NewForbidden(write.NodeResource, "bad", errors.New("a webhook says no"))
		}
		return false, nil, nil
	})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	for range 60 {
		f.deliverAll()
		if !f.step() {
			break
		}
		f.clock.Step(pace.StatusInterval)
		f.nodeQueue.release()
		f.maintenanceQueue.release()
	}
	m := f.maintenance("m")
	if status.FindDrained(&m.Status) == nil {
		t.Errorf("no condition: %+v; events %q", m.Status, f.events)
	}
	f.expectEvent("Node bad: CordonFailed: setting spec.unschedulable of the node to true: nodes \"bad\" is forbidden: a webhook says no")
}

// Targets that another leader has raised are not lowered, even if the cache does not have them.
func TestTargetsOfAnotherLeader(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	plan := maintenance.CompletePlan([]v1.DrainPlanEntry{entry(v1.PodTypeDefault, 1000), entry(v1.PodTypeDefault, 2000)})
	f.createPods(1, "n", 1000)
	f.createMaintenance("m", stageDrain, "a", plan...)
	// The cache is stale: another leader has already cordoned the node and raised its targets.
	f.deliverAll()
	behind := true
	f.client.ReactionChain = append([]clienttesting.Reactor{&clienttesting.SimpleReactor{Verb: "patch", Resource: "nodes", Reaction: func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		if behind && patch.GetSubresource() == "" {
			behind = false
			object, err := f.tracker.Get(v1.SchemeGroupVersion.WithResource("nodes"), "", "n")
			if err != nil {
				t.Error(err)
			}
			node := object.(*v1.Node).DeepCopy()
			node.Spec.Unschedulable = true
			node.Status.MaintenanceStatus = &v1.MaintenanceStatus{DrainTargets: []v1.DrainPlanEntry{entry(v1.PodTypeDefault, 2000)}, DrainMessage: "Draining"}
			if err := f.tracker.Update(v1.SchemeGroupVersion.WithResource("nodes"), node, ""); err != nil {
				t.Error(err)
			}
		}
		return false, nil, nil
	}}}, f.client.ReactionChain...)
	for range 30 {
		f.deliverMaintenances()
		f.deliverPods()
		if !f.step() {
			break
		}
		if targets := progress.StoredTargets(f.node("n")); !behind && targets.String() != "Default<=2000" {
			t.Errorf("targets stepped back to %s", targets)
			return
		}
	}
	if behind {
		t.Error("never cordoned")
	}
}

// A maintenance completes even if another one cannot request the eviction of a pod on the node.
func TestCompletesDespiteTheFailuresOfAnother(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("a", stageDrain, "a", maintenance.StandardPlan()...)
	f.createMaintenance("b", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	f.createPods(1, "n", 0)
	f.client.PrependReactor("patch", "evictionrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(requestResource, "x", errors.New("no"))
	})
	f.setStage("a", stageComplete)
	for range 60 {
		f.deliverAll()
		if !f.step() {
			break
		}
		f.clock.Step(pace.StatusInterval)
		f.nodeQueue.release()
		f.maintenanceQueue.release()
	}
	if m := f.maintenance("a"); len(m.Finalizers) > 0 {
		t.Errorf("a is not released: %+v", m.Status)
	}
}

// Which maintenances a node waits for depends only on the current state, not on earlier ones.
func TestWaitingForIsUpToDate(t *testing.T) {
	f := newFixture(t)
	f.createNode("one", map[string]string{"m": "", "b": ""})
	f.createNode("two", map[string]string{"m": ""})
	f.createNode("three", map[string]string{"m": ""})
	f.createPods(1, "one", 500)
	f.createPods(1, "one", 1000)
	own := f.createPods(1, "two", 1000)
	f.createPods(1, "three", 2000)
	f.createMaintenance("b", stageDrain, "b", maintenance.CompletePlan([]v1.DrainPlanEntry{entry(v1.PodTypeDefault, 500)})...)
	f.createMaintenance("m", stageDrain, "m", maintenance.CompletePlan([]v1.DrainPlanEntry{entry(v1.PodTypeDefault, 1000), entry(v1.PodTypeDefault, 2000)})...)
	f.settle()
	before := f.node("three").Status.MaintenanceStatus.DrainMessage
	f.deletePods(own...)
	f.settle()
	got := f.node("three").Status.MaintenanceStatus.DrainMessage
	f.restart()
	f.settle()
	if want := f.node("three").Status.MaintenanceStatus.DrainMessage; got != want {
		t.Errorf("before %q, afterwards %q, after a restart %q", before, got, want)
	}
}

// The completion emits one event, even if the removal of the finalizer has conflicts first.
func TestCompletionEmitsOneEvent(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageCordon, "a")
	f.settle()
	lost := 0
	f.client.PrependReactor("patch", "nodemaintenances", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), `"finalizers":[]`) && lost < 3 {
			lost++
			f.maintenanceQueue.Add("m") // The event of the other write.
			return true, nil, apierrors.NewConflict(write.MaintenanceResource, "m", errors.New("changed"))
		}
		return false, nil, nil
	})
	f.setStage("m", stageComplete)
	f.settle()
	completed := 0
	for _, e := range f.events {
		if strings.Contains(e, "MaintenanceCompleted") {
			completed++
		}
	}
	if completed != 1 {
		t.Errorf("%d events", completed)
	}
}

// Write times and re-cordons of deleted nodes are forgotten.
func TestDeletedNodesAreForgotten(t *testing.T) {
	f := newFixture(t)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	for i := range 20 {
		name := fmt.Sprintf("n%d", i)
		f.createNode(name, map[string]string{"a": ""})
		f.settle()
		node := f.node(name)
		node.Spec.Unschedulable = false
		f.update(node)
		f.settle()
		if err := f.client.CoreV1().Nodes().Delete(f.ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.settle()
	}
	if writes, cordons := f.pacer.Names(pace.NodeStatus), f.pacer.Names(pace.RevertedCordon); len(writes)+len(cordons) > 0 {
		t.Errorf("keeps %d write times and %d re-cordons of deleted nodes", len(writes), len(cordons))
	}
}

// The message names a pod whose request failed its validation.
func TestPodThatCannotBeEvictedIsNamed(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	request := f.request1(pod)
	meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
		Type: string(coordinationv1alpha1.EvictionRequestConditionCanceled), Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.EvictionRequestReasonValidationFailed,
	})
	if _, err := f.client.CoordinationV1alpha1().EvictionRequests("default").UpdateStatus(f.ctx, request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.settle()
	stored := f.maintenance("m").Status
	if drained := status.FindDrained(&stored); drained.Reason != coordinationv1alpha1.NodeMaintenanceReasonBlocked || !strings.Contains(drained.Message, "1 pod cannot be evicted by an EvictionRequest: default/"+pod.Name) {
		t.Errorf("condition %+v", drained)
	}
}

// A write that another client reverts before the cache has it is repeated, although the cache sees
// no change.
func TestRevertedWrites(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.deliverAll()
	for !f.node("n").Spec.Unschedulable {
		f.deliverMaintenances()
		if !f.step() {
			f.clock.Step(pace.SummaryDelay)
			f.nodeQueue.release()
		}
	}
	node := f.node("n")
	node.Spec.Unschedulable = false
	node.Status = v1.NodeStatus{}
	f.update(node)
	f.expectDrains("reverted cordon", map[string]string{"n": "0/1 Draining Default<=1000000000"})
	if !f.node("n").Spec.Unschedulable {
		t.Error("not cordoned again")
	}
	// The same with a request.
	f.deletePods(pod)
	next := f.createPods(1, "n", 0)[0]
	f.deliverNodes()
	f.deliverPods()
	for f.step() {
	}
	if err := f.client.CoordinationV1alpha1().EvictionRequests("default").Delete(f.ctx, string(next.UID), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.expectDrains("reverted request", map[string]string{"n": "0/1 Draining Default<=1000000000"})
}

// That also applies to a write of the status of a node alone.
func TestNodeIsReconciledAfterItsStatus(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageIdle, "a")
	f.settle()
	node := f.node("n")
	node.Status.Conditions = nil
	f.update(node)
	f.deliverAll()
	f.nodeQueue.later = map[string]time.Time{}
	f.clock.Step(pace.StatusInterval)
	f.reconcile("n")
	if len(f.node("n").Status.Conditions) == 0 {
		t.Fatal("not written")
	}
	if got, want := f.nodeQueue.later["n"], f.clock.Now().Add(pace.StaleInterval); !got.Equal(want) {
		t.Errorf("reconciled again at %v, want %v", got, want)
	}
}
