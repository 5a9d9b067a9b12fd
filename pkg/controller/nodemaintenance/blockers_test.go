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

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/ptr"
)

// refusal makes the API server reject writes of one kind if err returns an error for the name of
// the object. attempts are the times of the rejected writes.
type refusal struct {
	err      func(name string) error
	attempts []time.Time
}

func (f *fixture) refuse(verb, resource, subresource string, err func(name string) error) *refusal {
	r := &refusal{err: err}
	f.client.PrependReactor(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != subresource {
			return false, nil, nil
		}
		var name string
		switch action := action.(type) {
		case clienttesting.PatchAction:
			name = action.GetName()
		case clienttesting.UpdateAction:
			name = action.GetObject().(metav1.Object).GetName()
		}
		if err := r.err(name); err != nil {
			r.attempts = append(r.attempts, f.clock.Now())
			return true, nil, err
		}
		return false, nil, nil
	})
	return r
}

func quota(name string) error {
	return apierrors.NewForbidden(requestResource, name, errors.New("exceeded\nquota"))
}

func webhook(name string) error {
	return apierrors.NewForbidden(write.NodeResource, name, errors.New("a webhook says no"))
}

func allowed(string) error { return nil }

// A drain that cannot join the request of others says so, and not what that request waits for: nothing that the drain
// demands, such as to pass over interceptors, has an effect.
func TestRequestOfOthersThatCannotBeJoined(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	request := &coordinationv1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: string(pod.UID)}}
	request.Spec.Requesters = []coordinationv1alpha1.Requester{{Name: "tenant.example.com"}}
	if _, err := f.client.CoordinationV1alpha1().EvictionRequests(pod.Namespace).Create(f.ctx, request, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.intercept(pod, "hold.example.com")
	refused := f.refuse("patch", "evictionrequests", "", quota)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(5 * time.Second)
	blockers := f.maintenance("m").Status.DrainStatus.Blockers
	if len(blockers) != 1 || blockers[0].Cause != coordinationv1alpha1.DrainBlockerRequestFailed {
		t.Errorf("blockers %+v", blockers)
	}
	f.expectBlockedPods("n", 1)
	refused.err = allowed
	f.run(time.Minute)
	blockers = f.maintenance("m").Status.DrainStatus.Blockers
	if len(blockers) != 1 || blockers[0].Cause != coordinationv1alpha1.DrainBlockerInterceptor {
		t.Errorf("blockers after it has joined: %+v", blockers)
	}
}

// A pod is a blocker while the API server rejects its EvictionRequest.
func TestRefusedRequestIsABlocker(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pods := f.createPods(2, "n", 0)
	refused := f.refuse("patch", "evictionrequests", "", func(name string) error {
		if name == string(pods[0].UID) {
			return quota(name)
		}
		return nil
	})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(5 * time.Second)
	stored := f.maintenance("m").Status
	since := stored.DrainStatus.Blockers[0].SinceTime
	want := []coordinationv1alpha1.DrainBlocker{{
		Cause: coordinationv1alpha1.DrainBlockerRequestFailed, Name: "default", Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Namespace", Name: "default"},
		PodCount: 1, NodeCount: 1, Pods: []coordinationv1alpha1.DrainBlockerPod{{Namespace: "default", Name: pods[0].Name}}, SinceTime: since,
		Message: fmt.Sprintf("1 pod in namespace default cannot get an EvictionRequest (requesting the eviction of pod default/%s as nodemaintenance.k8s.io: evictionrequests.coordination.k8s.io %q is forbidden: exceeded quota)",
			pods[0].Name, pods[0].UID),
	}, {
		Cause: coordinationv1alpha1.DrainBlockerEvicting, PodCount: 1, NodeCount: 1, Pods: []coordinationv1alpha1.DrainBlockerPod{{Namespace: "default", Name: pods[1].Name}},
		SinceTime: stored.DrainStatus.Blockers[1].SinceTime, Message: "1 pod is being evicted",
	}}
	if diff := cmp.Diff(want, stored.DrainStatus.Blockers); diff != "" {
		t.Errorf("blockers (-want, +got):\n%s", diff)
	}
	drained := status.FindDrained(&stored)
	if stored.DrainStatus.BlockedPods != 1 || stored.DrainStatus.BlockerCount != 2 || drained.Reason != coordinationv1alpha1.NodeMaintenanceReasonBlocked ||
		!strings.Contains(drained.Message, "cannot get an EvictionRequest") {
		t.Errorf("status %+v, condition %+v", stored.DrainStatus, drained)
	}
	f.expectBlockedPods("n", 1)
	if got := f.progress.Count(f.clock.Now()).BlockedPods; got[maintenance.BlockerRequestFailed] != 1 {
		t.Errorf("metrics %v", got)
	}
	if since.Sub(start) > 2*time.Second || since.Nanosecond() != 0 {
		t.Errorf("since %v", since)
	}
	// Retries write nothing else while no state changes.
	f.client.ClearActions()
	f.run(5 * time.Minute)
	if got := slices.DeleteFunc(f.writes(), func(w string) bool { return w == "patch evictionrequests" }); !slices.Equal(got, []string{"update nodemaintenances/status"}) {
		t.Errorf("writes %q besides, must be that the maintenance is stalled", got)
	}
	expectRetries(t, refused.attempts)
	refused.err = allowed
	f.run(pace.MaxRetry)
	stored = f.maintenance("m").Status
	if stored.DrainStatus.BlockedPods != 0 || stored.DrainStatus.ActiveEvictionRequests != 2 || len(f.failures.Nodes()) > 0 {
		t.Errorf("after the retry: status %+v, failures %v", stored.DrainStatus, f.failures.Nodes())
	}
	f.expectBlockedPods("n", 0)
}

// expectBlockedPods checks how many pods the status of a node counts as blocked.
func (f *fixture) expectBlockedPods(node string, want int32) {
	f.t.Helper()
	if status := f.node(node).Status.MaintenanceStatus; status == nil || status.BlockedPods != want {
		f.t.Errorf("status of node %s: %+v, want %d blocked pods", node, status, want)
	}
}

// A pod whose eviction could not be requested is no longer a blocker when its labels change so that
// the drain targets do not include it.
func TestRefusedRequestOutsideTheTargetsIsNoBlocker(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pods := f.createPods(2, "n", 0, ofApp("web"))
	f.refuse("patch", "evictionrequests", "", func(name string) error {
		if name == string(pods[0].UID) {
			return quota(name)
		}
		return nil
	})
	f.createMaintenance("m", stageDrain, "a", maintenance.CompletePlan([]v1.DrainPlanEntry{entryFor("web", v1.PodTypeDefault, 0)})...)
	f.run(5 * time.Second)
	if got := f.maintenance("m").Status.DrainStatus; got.BlockedPods != 1 || got.BlockerCount != 2 {
		t.Fatalf("before: %+v", got)
	}
	f.expectBlockedPods("n", 1)
	ofApp("other")(pods[0])
	if _, err := f.client.CoreV1().Pods("default").Update(f.ctx, pods[0], metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.run(5 * time.Second)
	if got := f.maintenance("m").Status.DrainStatus; got.BlockedPods != 0 || got.BlockerCount != 1 || got.Blockers[0].Cause != coordinationv1alpha1.DrainBlockerEvicting {
		t.Errorf("want only the other pod as a blocker, got %+v", got)
	}
	f.expectBlockedPods("n", 0)
	if len(f.failures.Nodes()) > 0 {
		t.Errorf("failures are left: %v", f.failures.Nodes())
	}
}

// expectRetries checks the times of attempts: their interval doubles up to 30 seconds.
func expectRetries(t *testing.T, attempts []time.Time) {
	t.Helper()
	var gaps []time.Duration
	for i := 1; i < len(attempts); i++ {
		gaps = append(gaps, attempts[i].Sub(attempts[i-1]))
	}
	want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}
	if len(gaps) < len(want) || !slices.Equal(gaps[:len(want)], want) || slices.Max(gaps) > pace.MaxRetry {
		t.Errorf("attempts %v apart, want %v", gaps, want)
	}
}

// A transient failure is a blocker only after it has repeated.
func TestTransientFailureOfARequest(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0)
	f.refuse("patch", "evictionrequests", "", func(name string) error { return apierrors.NewServerTimeout(requestResource, "patch", 1) })
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(2500 * time.Millisecond)
	if got := f.maintenance("m").Status.DrainStatus; got.BlockedPods != 0 {
		t.Errorf("after two attempts: %+v", got)
	}
	f.run(5 * time.Second)
	if got := f.maintenance("m").Status.DrainStatus; got.BlockedPods != 1 {
		t.Errorf("after three attempts: %+v", got)
	}
}

// A node that cannot be cordoned is a blocker, and no eviction of its pods is requested.
func TestRefusedCordonIsABlocker(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"bad", "good", "worse"} {
		f.createNode(name, map[string]string{"a": ""})
	}
	f.createPods(1, "worse", 0)
	refused := f.refuse("patch", "nodes", "", func(name string) error {
		if name == "good" {
			return nil
		}
		return webhook(name)
	})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(5 * time.Minute)
	stored := f.maintenance("m").Status
	since := stored.DrainStatus.Blockers[0].SinceTime
	message := "2 nodes cannot be cordoned (setting spec.unschedulable of the node to true: nodes \"bad\" is forbidden: a webhook says no)"
	want := coordinationv1alpha1.DrainStatus{
		PodsPendingEvictionRequest: 1, DrainMessage: "Draining", DrainPlanPosition: ptr.To[int32](0), DrainedNodes: 1, BlockerCount: 1,
		Blockers: []coordinationv1alpha1.DrainBlocker{{
			Cause: coordinationv1alpha1.DrainBlockerCordonFailed, NodeCount: 2, SinceTime: since, Message: message,
			Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: "bad"},
		}},
	}
	if diff := cmp.Diff(want, stored.DrainStatus); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	drained := status.FindDrained(&stored)
	if drained.Status != metav1.ConditionFalse || drained.Reason != coordinationv1alpha1.NodeMaintenanceReasonBlocked || !strings.HasSuffix(drained.Message, strings.Replace(message, "(", fmt.Sprintf("(since %s, ", since.UTC().Format(time.RFC3339)), 1)+": bad, worse.") ||
		!strings.Contains(drained.Message, "2 of 3 nodes not cordoned.") {
		t.Errorf("condition %+v", drained)
	}
	if c := nodeCondition(f.node("bad"), v1.NodeDrained); c.Status != v1.ConditionFalse {
		t.Errorf("node condition %+v", c)
	}
	if c := nodeCondition(f.node("bad"), v1.NodeDrainInProgress); c.Status != v1.ConditionTrue || c.Reason != "NotCordoned" {
		t.Errorf("node condition %+v", c)
	}
	if got := f.progress.Count(f.clock.Now()); got.BlockedNodes[maintenance.BlockerCordonFailed] != 2 || got.BlockedPods[maintenance.BlockerCordonFailed] != 0 {
		t.Errorf("metrics %+v", got)
	}
	if l, err := f.client.CoordinationV1alpha1().EvictionRequests("").List(f.ctx, metav1.ListOptions{}); err != nil || len(l.Items) > 0 {
		t.Errorf("requests for pods of a schedulable node: %v, error %v", l.Items, err)
	}
	if targets := progress.StoredTargets(f.node("worse")); !targets.IsEmpty() {
		t.Errorf("targets %s", targets)
	}
	f.expectNoEvent("CordonContested")
	// Both nodes are tried at the same times.
	expectRetries(t, slices.Compact(refused.attempts))
	refused.err = allowed
	f.run(pace.MaxRetry)
	f.expectDrains("afterwards", map[string]string{"worse": "0/1 Draining Default<=1000000000"})
	if len(f.failures.Nodes()) > 0 || len(f.pacer.Names(pace.RevertedCordon)) > 0 {
		t.Errorf("failures %v and re-cordons %v are left", f.failures.Nodes(), f.pacer.Names(pace.RevertedCordon))
	}
}

// In the stage Cordon, too, a node is a blocker until it can be cordoned.
func TestRefusedCordonWithoutADrain(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"bad", "good"} {
		f.createNode(name, map[string]string{"a": ""})
	}
	refused := f.refuse("patch", "nodes", "", func(name string) error {
		if name == "good" {
			return nil
		}
		return webhook(name)
	})
	f.createMaintenance("m", stageCordon, "a")
	f.run(time.Minute)
	status := f.maintenance("m").Status.DrainStatus
	if len(status.Blockers) != 1 || status.BlockerCount != 1 || status.Blockers[0].Cause != coordinationv1alpha1.DrainBlockerCordonFailed ||
		status.Blockers[0].NodeCount != 1 || status.Blockers[0].Object.Name != "bad" || !strings.Contains(status.Blockers[0].Message, "a webhook says no") {
		t.Errorf("status %+v", status)
	}
	if got := f.progress.Count(f.clock.Now()); got.BlockedNodes[maintenance.BlockerCordonFailed] != 1 || got.PendingPods != 0 {
		t.Errorf("metrics %+v", got)
	}
	// Another maintenance that drains the node adds its pod, but does not count the node again.
	f.createPods(1, "bad", 0)
	f.createMaintenance("drain", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(time.Minute)
	for range 200 { // count visits the two maintenances in random order.
		if got := f.progress.Count(f.clock.Now()); got.BlockedNodes[maintenance.BlockerCordonFailed] != 1 || got.PendingPods != 1 {
			t.Fatalf("metrics %+v", got)
		}
	}
	refused.err = allowed
	f.run(pace.MaxRetry)
	if status := f.maintenance("m").Status.DrainStatus; len(status.Blockers) > 0 || status.BlockerCount > 0 || f.requested() != 1 {
		t.Errorf("after the cordon: %+v", status)
	}
	f.setStage("m", stageComplete)
	f.setStage("drain", stageComplete)
	f.settle()
	if len(f.maintenance("m").Finalizers) > 0 {
		t.Error("not completed")
	}
}

// Waiting requests are dropped if the node becomes schedulable and cannot be cordoned again.
func TestRefusedCordonEndsWaiting(t *testing.T) {
	f := newFixture(t)
	f.hung = sets.New("default")
	f.requests.Limit(requests.NamespaceShare, 1)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(3, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(5 * time.Second)
	if waiting := len(f.requests.WaitingFor("n")); waiting != 2 {
		t.Fatalf("%d requests wait, %+v are running", waiting, f.running)
	}
	f.refuse("patch", "nodes", "", webhook)
	node := f.node("n")
	node.Spec.Unschedulable = false
	f.update(node)
	f.run(5 * time.Second)
	if waiting := f.requests.WaitingFor("n"); len(waiting) > 0 {
		t.Errorf("%d requests still wait", len(waiting))
	}
}

func nodeCondition(node *v1.Node, conditionType v1.NodeConditionType) v1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	return v1.NodeCondition{}
}

// A drained node that another client uncordons is not drained until it can be cordoned again.
func TestDrainedNodeThatCannotBeCordonedAgain(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	if m := f.maintenance("m"); !status.IsDrained(&m.Status) {
		t.Fatalf("not drained: %+v", m.Status)
	}
	refused := f.refuse("patch", "nodes", "", webhook)
	node := f.node("n")
	node.Spec.Unschedulable = false
	f.update(node)
	f.createPods(1, "n", 0)
	f.run(time.Minute)
	if m := f.maintenance("m"); status.IsDrained(&m.Status) || m.Status.DrainStatus.Blockers[0].Cause != coordinationv1alpha1.DrainBlockerCordonFailed {
		t.Errorf("maintenance %+v", m.Status)
	}
	if c := nodeCondition(f.node("n"), v1.NodeDrained); c.Status != v1.ConditionFalse {
		t.Errorf("node condition %+v", c)
	}
	if l, err := f.client.CoordinationV1alpha1().EvictionRequests("").List(f.ctx, metav1.ListOptions{}); err != nil || len(l.Items) > 0 {
		t.Errorf("requests for pods of a schedulable node: %v, error %v", l.Items, err)
	}
	refused.err = allowed
	f.run(pace.MaxRetry)
	if status := f.node("n").Status.MaintenanceStatus; status.ActiveEvictionRequests != 1 {
		t.Errorf("afterwards: %+v", status)
	}
}

// A node that another client keeps uncordoning is not drained either.
func TestContestedNodeIsNotDrained(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	for range pace.RevertLimit + 1 {
		node := f.node("n")
		node.Spec.Unschedulable = false
		f.update(node)
		f.run(2 * time.Second)
	}
	m := f.maintenance("m")
	if status.IsDrained(&m.Status) || !strings.HasPrefix(status.FindDrained(&m.Status).Message, "1 of 1 node not cordoned. 1 node cannot be cordoned (since ") || m.Status.DrainStatus.DrainMessage != "Draining" {
		t.Errorf("status %+v", m.Status)
	}
	f.settle()
	if m := f.maintenance("m"); !status.IsDrained(&m.Status) {
		t.Errorf("in the end: %+v", m.Status)
	}
}

// A maintenance completes even if another one cannot cordon the node.
func TestCompletesDespiteTheCordonOfAnother(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("a", stageDrain, "a", maintenance.StandardPlan()...)
	f.createMaintenance("b", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	f.refuse("patch", "nodes", "", webhook)
	node := f.node("n")
	node.Spec.Unschedulable = false
	f.update(node)
	f.setStage("a", stageComplete)
	f.run(time.Minute)
	if m := f.maintenance("a"); len(m.Finalizers) > 0 {
		t.Errorf("a is not released: %+v", m.Status)
	}
}

// Requests are withdrawn even if the node cannot be uncordoned. The uncordon is retried until it
// succeeds.
func TestRefusedUncordon(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	refused := f.refuse("patch", "nodes", "", webhook)
	f.setStage("m", stageComplete)
	f.run(time.Second)
	if requesters := f.request1(pod).Spec.Requesters; len(requesters) > 0 {
		t.Errorf("the eviction of the pod is still requested by %v", requesters)
	}
	if m := f.maintenance("m"); len(m.Finalizers) == 0 || f.node("n").Status.MaintenanceStatus == nil {
		t.Errorf("completed before the node was released: %+v", m)
	}
	f.expectEvent("Node n: CordonFailed: setting spec.unschedulable of the node to false: nodes \"n\" is forbidden: a webhook says no")
	refused.err = allowed
	f.settle()
	if m := f.maintenance("m"); len(m.Finalizers) > 0 || f.node("n").Spec.Unschedulable || f.node("n").Status.MaintenanceStatus != nil {
		t.Errorf("not released: %+v", f.node("n"))
	}
}

// A client that replaces the object by a manifest removes the finalizer. While nodes are not released yet, the
// maintenance gets it again, and is completed when they are.
func TestReplacedWhileItIsCompleted(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	refused := f.refuse("patch", "nodes", "", webhook)
	f.setStage("m", stageComplete)
	f.run(10 * time.Minute) // Long enough to be stalled.
	replace := func() { f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Finalizers = nil }) }
	replace()
	f.run(time.Minute)
	if m := f.maintenance("m"); !progress.HasFinalizer(m) || status.HasCompleted(&m.Status) {
		t.Errorf("finalizers %q, conditions %+v", m.Finalizers, m.Status.Conditions)
	}
	refused.err = allowed
	f.settle()
	m, node := f.maintenance("m"), f.node("n")
	if progress.HasFinalizer(m) || !status.HasCompleted(&m.Status) || node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil {
		t.Errorf("not completed: finalizers %q, conditions %+v, node %+v", m.Finalizers, m.Status.Conditions, node)
	}
	replace()
	f.settle()
	if m := f.maintenance("m"); progress.HasFinalizer(m) {
		t.Errorf("it is over, and has the finalizer again")
	}
}

// A failed uncordon does not delay a later cordon.
func TestRefusedUncordonIsNoRefusedCordon(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": "", "b": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	refused := f.refuse("patch", "nodes", "", webhook)
	f.setStage("m", stageComplete)
	f.run(10 * time.Minute)
	refused.err = allowed
	f.createMaintenance("other", stageDrain, "b", maintenance.StandardPlan()...)
	for range 3 {
		f.deliverMaintenances()
		f.syncOnly("other")
	}
	node := f.node("n")
	node.Spec.Unschedulable = false
	f.update(node)
	f.deliverAll()
	f.reconcile("n")
	if !f.node("n").Spec.Unschedulable {
		t.Error("the failed uncordon delays the cordon")
	}
}

// A maintenance does not complete while a request cannot be withdrawn.
func TestRefusedWithdrawal(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	refused := f.refuse("patch", "evictionrequests", "", quota)
	f.setStage("m", stageComplete)
	f.run(time.Second)
	if m := f.maintenance("m"); len(m.Finalizers) == 0 {
		t.Error("completed although an eviction is still requested")
	}
	if f.node("n").Spec.Unschedulable {
		t.Error("the uncordon waits for the withdrawal")
	}
	refused.err = allowed
	f.settle()
	if m := f.maintenance("m"); len(m.Finalizers) > 0 {
		t.Error("not completed")
	}
}

// Pods that name an interceptor which another process may run are asked. Without one they are blocked, and the
// message has the reason.
func TestDisabledInterceptor(t *testing.T) {
	const why = "feature gate X is off"
	f := newFixture(t)
	f.absences = NewAbsences(map[string]Absence{coordinationv1alpha1.EvictionInterceptorDaemonSet: {Why: why, MaybeElsewhere: true}})
	f.restart()
	f.createNode("n", map[string]string{"a": ""})
	pods := f.createPods(3, "n", 0, daemon, aware)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	for i, change := range []func(*coordinationv1alpha1.EvictionRequestStatus){
		func(s *coordinationv1alpha1.EvictionRequestStatus) {
			s.ActiveInterceptors = []string{coordinationv1alpha1.EvictionInterceptorDaemonSet}
		},
		func(s *coordinationv1alpha1.EvictionRequestStatus) {
			s.ActiveInterceptors = nil
			s.Interceptors = []coordinationv1alpha1.InterceptorStatus{{Name: coordinationv1alpha1.EvictionInterceptorDaemonSet, CompletionTime: ptr.To(metav1.NewTime(start))}}
		},
		func(s *coordinationv1alpha1.EvictionRequestStatus) {
			s.ActiveInterceptors = []string{"other.example.com"}
		},
	} {
		request := f.request1(pods[i])
		request.Status.TargetInterceptors = []coordinationv1alpha1.Interceptor{{Name: coordinationv1alpha1.EvictionInterceptorDaemonSet}, {Name: "other.example.com"}}
		change(&request.Status)
		if _, err := f.client.CoordinationV1alpha1().EvictionRequests("default").UpdateStatus(f.ctx, request, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.settle()
	got := map[string]string{}
	for _, b := range f.maintenance("m").Status.DrainStatus.Blockers {
		got[string(b.Cause)+" "+b.Name] = b.Message
	}
	for key, explained := range map[string]bool{
		"InterceptorUnresponsive " + coordinationv1alpha1.EvictionInterceptorDaemonSet: true,
		"Unhandled DaemonSet":           true,
		"Interceptor other.example.com": false,
	} {
		if message, ok := got[key]; !ok || strings.Contains(message, why) != explained {
			t.Errorf("%s: %t %q among %q", key, ok, message, got)
		}
	}
}

// A DaemonSet pod that others have asked for before the drain has come to it is no blocker, and needs no intervention in
// the moment in which it has: its interceptor does nothing before that.
func TestDaemonSetPodThatOthersAskedForTooEarly(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	web, agent := f.createPods(1, "n", 0)[0], f.createPods(1, "n", 0, daemon)[0]
	request := &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: agent.Namespace, Name: string(agent.UID)},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: agent.Name, UID: string(agent.UID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: "other.example.com"}},
		},
	}
	if _, err := f.client.CoordinationV1alpha1().EvictionRequests(agent.Namespace).Create(f.ctx, request, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.intercept(agent, coordinationv1alpha1.EvictionInterceptorDaemonSet)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(5 * time.Second)
	f.setUnresponsive(agent)
	f.run(5 * time.Second)
	blockers := func() (described []string) {
		for _, b := range f.maintenance("m").Status.DrainStatus.Blockers {
			described = append(described, string(b.Cause))
		}
		return described
	}
	if diff := cmp.Diff([]string{"Evicting"}, blockers()); diff != "" {
		t.Errorf("too early (-want, +got):\n%s", diff)
	}
	f.deletePods(web)
	f.run(5 * time.Second)
	if !f.asksFor(agent) {
		t.Fatal("the drain has not come to the pod")
	}
	if diff := cmp.Diff([]string{"Interceptor"}, blockers()); diff != "" {
		t.Errorf("a moment after the drain has come to it (-want, +got):\n%s", diff)
	}
	for _, event := range f.events {
		if strings.Contains(event, "DrainBlocked") {
			t.Errorf("unexpected event: %s", event)
		}
	}
	f.run(decision.FirstReport)
	if diff := cmp.Diff([]string{"InterceptorUnresponsive"}, blockers()); diff != "" {
		t.Errorf("it still does nothing (-want, +got):\n%s", diff)
	}
}

// setUnresponsive has the active interceptor of the pod count as silent.
func (f *fixture) setUnresponsive(pod *v1.Pod) {
	f.t.Helper()
	requests := f.client.CoordinationV1alpha1().EvictionRequests(pod.Namespace)
	request, err := requests.Get(f.ctx, string(pod.UID), metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	request.Status.Conditions = append(request.Status.Conditions, metav1.Condition{
		Type: string(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive), Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(f.clock.Now()),
	})
	if _, err := requests.UpdateStatus(f.ctx, request, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// The status says what keeps a pod that does not end: its finalizers, or its node.
func TestStuckPodIsExplained(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(time.Second)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds, pod.Finalizers = ptr.To(metav1.NewTime(f.clock.Now())), ptr.To[int64](30), []string{"example.com/backup"}
	update := func() {
		if _, err := f.client.CoreV1().Pods(pod.Namespace).Update(f.ctx, pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	update()
	expect := func(when, want string) {
		t.Helper()
		f.run(3 * time.Second)
		blockers := f.maintenance("m").Status.DrainStatus.Blockers
		if want = "1 pod is still terminating after the grace period" + want; len(blockers) != 1 || blockers[0].Message != want {
			t.Errorf("%s: %+v, want %q", when, blockers, want)
		}
	}
	f.run(time.Minute)
	expect("a finalizer", " (finalizers: example.com/backup)")
	pod.Finalizers = nil
	update()
	expect("its owner has removed it", "")
	f.changeNamed("n", setReady(false))
	expect("the machine is off", " (node n is not Ready: if the machine is off, give the node the taint node.kubernetes.io/out-of-service, or delete it)")
	f.changeNamed("n", addTaint(v1.TaintNodeOutOfService))
	expect("somebody has said so", " (node n is not Ready and out of service: the garbage collector of pods removes it)")
}

// While the status of a request cannot be written, it may say what is not so any more: that a budget refuses the eviction
// which is gone, or who else did. A budget that exists comes first.
func TestOutdatedRefusal(t *testing.T) {
	const why = "the status of its request cannot be written: a policy says no"
	for name, test := range map[string]struct {
		reason  string
		budgets []*policyv1.PodDisruptionBudget
		want    string
		texts   []string
	}{
		"the budget is gone": {reason: coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, want: "RequestFailed", texts: []string{why}},
		"the budget exists": {
			reason: coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, budgets: []*policyv1.PodDisruptionBudget{newBudget("default", "web", &metav1.LabelSelector{})},
			want: "DisruptionBudget", texts: []string{"default/web"},
		},
		"a webhook refused it": {reason: coordinationv1alpha1.EvictionRequestReasonEvictionRefused, want: "RequestFailed", texts: []string{why, "was refused: ask team Y"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.podBudgets = poddisruptionbudget.NewIndex(test.budgets)
			f.createNode("n", map[string]string{"a": ""})
			pod := f.createPods(1, "n", 0)[0]
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			f.run(5 * time.Second)
			request := f.request1(pod)
			request.Status.Conditions = append(request.Status.Conditions, metav1.Condition{
				Type: string(coordinationv1alpha1.EvictionRequestConditionBlocked), Status: metav1.ConditionTrue, Reason: test.reason, Message: "ask team Y",
				LastTransitionTime: metav1.NewTime(f.clock.Now()),
			})
			if _, err := f.client.CoordinationV1alpha1().EvictionRequests("default").UpdateStatus(f.ctx, request, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			f.run(time.Second)
			for range 3 {
				f.statusFailures.Failed(keyOf(request), "a policy says no", f.clock.Now())
			}
			f.run(5 * time.Second)
			blockers := f.maintenance("m").Status.DrainStatus.Blockers
			if len(blockers) != 1 || string(blockers[0].Cause) != test.want {
				t.Fatalf("blockers %+v, want one of cause %s", blockers, test.want)
			}
			for _, text := range test.texts {
				if !strings.Contains(blockers[0].Message, text) {
					t.Errorf("message %q lacks %q", blockers[0].Message, text)
				}
			}
		})
	}
}

// failStatus has the evictionrequest-controller of the same process find that it cannot write the status of the request
// for the pod, until that is a blocker.
func (f *fixture) failStatus(pod *v1.Pod) {
	f.t.Helper()
	for range 3 {
		f.statusFailures.Failed(keyOf(f.request1(pod)), "not on my watch", f.clock.Now())
		f.run(4 * time.Second)
	}
}

// requestFailed returns the blockers of the maintenance m because of requests that fail.
func (f *fixture) requestFailed() (found []coordinationv1alpha1.DrainBlocker) {
	f.t.Helper()
	for _, b := range f.maintenance("m").Status.DrainStatus.Blockers {
		if b.Cause == coordinationv1alpha1.DrainBlockerRequestFailed {
			found = append(found, b)
		}
	}
	return found
}

// A pod whose interceptors nobody can follow, because the status of its request cannot be written, is a blocker at once,
// and none at once when it can. A process that starts finds since when another one has found that.
func TestStatusOfRequestThatCannotBeWritten(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(5 * time.Second)
	key := keyOf(f.request1(pod))
	for range 2 {
		f.statusFailures.Failed(key, "not on my watch", f.clock.Now())
		f.run(4 * time.Second)
	}
	if found := f.requestFailed(); len(found) > 0 {
		t.Errorf("after an incident: %+v", found)
	}
	first := start.Add(5 * time.Second)
	f.statusFailures.Failed(key, "not on my watch", f.clock.Now())
	f.run(2 * time.Second)
	const message = "the status of its request cannot be written: not on my watch"
	if since := f.expectBlocker("it fails", coordinationv1alpha1.DrainBlockerRequestFailed, message); !since.Equal(first) {
		t.Errorf("it fails since %s, want %s", since, first)
	}
	f.restart()
	f.failStatus(pod)
	if since := f.expectBlocker("another process finds it", coordinationv1alpha1.DrainBlockerRequestFailed, message); !since.Equal(first) {
		t.Errorf("after a restart, it fails since %s, want %s", since, first)
	}
	f.statusFailures.Ended(key)
	f.run(2 * time.Second)
	if found := f.requestFailed(); len(found) > 0 {
		t.Errorf("it is over: %+v", found)
	}
}

// A pod that terminates, and what needs an intervention itself, come before a status that cannot be written.
func TestStatusThatFailsHidesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fixture, *v1.Pod)
		want   coordinationv1alpha1.DrainBlockerCause
	}{
		"the pod terminates": {func(f *fixture, pod *v1.Pod) {
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(f.clock.Now().Add(time.Hour))), ptr.To[int64](3600)
			if _, err := f.client.CoreV1().Pods(pod.Namespace).Update(f.ctx, pod, metav1.UpdateOptions{}); err != nil {
				f.t.Fatal(err)
			}
		}, coordinationv1alpha1.DrainBlockerTerminating},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createReadyNode("n", map[string]string{"a": ""})
			pod := f.createPods(1, "n", 0)[0]
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			f.run(time.Second)
			f.failStatus(pod)
			if found := f.requestFailed(); len(found) != 1 {
				t.Fatalf("blockers %+v", found)
			}
			test.change(f, pod)
			f.run(5 * time.Second)
			if got := f.maintenance("m").Status.DrainStatus.Blockers; len(got) != 1 || got[0].Cause != test.want {
				t.Errorf("blockers %+v, want %s", got, test.want)
			}
		})
	}
}

func keyOf(request *coordinationv1alpha1.EvictionRequest) types.NamespacedName {
	return types.NamespacedName{Namespace: request.Namespace, Name: request.Name}
}
