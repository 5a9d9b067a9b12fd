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
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/utils/ptr"
)

// A terminating EvictionRequest that has finalizers is not patched. It is reported as a blocker,
// and the eviction is requested when it is gone.
func TestTerminatingRequestIsABlocker(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	terminating := f.createObstacle(pod)
	requests := f.client.CoordinationV1alpha1().EvictionRequests(pod.Namespace)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.client.ClearActions()
	f.run(5 * time.Minute)
	if writes := f.writes(); slices.Contains(writes, "patch evictionrequests") {
		t.Errorf("patches it: %v", writes)
	}
	blockers := f.maintenance("m").Status.DrainStatus.Blockers
	const want = "the EvictionRequest default/%s of the pod is being deleted and waits for its finalizers example.com/a, example.com/z: "
	if len(blockers) != 1 || blockers[0].Cause != coordinationv1alpha1.DrainBlockerRequestFailed || !blockers[0].SinceTime.Time.Equal(start) ||
		!strings.Contains(blockers[0].Message, strings.ReplaceAll(want, "%s", terminating.Name)) {
		t.Errorf("blockers %+v", blockers)
	}
	if err := requests.Delete(f.ctx, terminating.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.run(50 * time.Millisecond)
	if f.requested() != 1 {
		t.Error("the eviction is not requested when it is gone")
	}
}

// A finished request that is being deleted is as good as absent, also one that says that the pod is gone which runs:
// kube-apiserver lets the next one take its place. It would keep the pod on the node without a word.
func TestFinishedRequestThatIsKeptIsNoObstacle(t *testing.T) {
	for _, final := range []struct {
		condition coordinationv1alpha1.EvictionRequestConditionType
		reason    string
	}{
		{coordinationv1alpha1.EvictionRequestConditionEvicted, coordinationv1alpha1.EvictionRequestReasonPodTerminal},
		{coordinationv1alpha1.EvictionRequestConditionCanceled, coordinationv1alpha1.EvictionRequestReasonValidationFailed},
		{coordinationv1alpha1.EvictionRequestConditionCanceled, coordinationv1alpha1.EvictionRequestReasonNoRequesters},
	} {
		t.Run(string(final.condition)+final.reason, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			f.createObstacle(f.createPods(1, "n", 0)[0], metav1.Condition{Type: string(final.condition), Status: metav1.ConditionTrue, Reason: final.reason})
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			f.client.ClearActions()
			f.run(10 * time.Second)
			if writes := f.writes(); !slices.Contains(writes, "patch evictionrequests") {
				t.Errorf("the eviction is not requested: %v", writes)
			}
		})
	}
}

// Such a request does not block a pod that the drain plan has not reached yet.
func TestObstacleOfAPodThatIsNoTarget(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0)
	f.createObstacle(f.createPods(1, "n", 2000000000)[0])
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(time.Minute)
	status := f.maintenance("m").Status.DrainStatus
	if len(status.Blockers) != 1 || status.Blockers[0].Cause != coordinationv1alpha1.DrainBlockerEvicting || status.BlockedPods != 0 {
		t.Errorf("status %+v, want no blocker but the eviction of the other pod", status)
	}
	f.expectBlockedPods("n", 0)
}

// createObstacle creates a terminating EvictionRequest with finalizers for the pod, which is not finished yet unless
// the conditions say so.
func (f *fixture) createObstacle(pod *v1.Pod, conditions ...metav1.Condition) *coordinationv1alpha1.EvictionRequest {
	f.t.Helper()
	request := &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: string(pod.UID), UID: f.newUID(),
			DeletionTimestamp: ptr.To(metav1.NewTime(start)), Finalizers: []string{"example.com/z", "example.com/a"},
		},
		Spec:   coordinationv1alpha1.EvictionRequestSpec{Target: coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}}},
		Status: coordinationv1alpha1.EvictionRequestStatus{Conditions: conditions},
	}
	if _, err := f.client.CoordinationV1alpha1().EvictionRequests(pod.Namespace).Create(f.ctx, request, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	return request
}

// A refused withdrawal blocks the completion of a maintenance. It is reported in the status and by
// events, and retried.
func TestRefusedWithdrawalIsABlocker(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pods := f.createPods(2, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	refused := f.refuse("patch", "evictionrequests", "", func(name string) error {
		if name == string(pods[0].UID) {
			return quota(name)
		}
		return nil
	})
	f.setStage("m", stageComplete)
	f.run(5 * time.Minute)
	status := f.maintenance("m").Status
	if f.requested() != 1 || len(f.maintenance("m").Finalizers) == 0 {
		t.Errorf("%d requests, maintenance %+v", f.requested(), f.maintenance("m"))
	}
	if blockers := status.DrainStatus.Blockers; len(blockers) != 1 || status.DrainStatus.BlockerCount != 1 || blockers[0].PodCount != 1 ||
		blockers[0].Cause != coordinationv1alpha1.DrainBlockerRequestFailed || blockers[0].Name != "default" ||
		!strings.Contains(blockers[0].Message, "1 pod in namespace default still has an eviction request that cannot be withdrawn") || !strings.Contains(blockers[0].Message, "exceeded quota") {
		t.Errorf("blockers %+v", blockers)
	}
	expectRetries(t, refused.attempts)
	events := strings.Join(f.events, "\n")
	for _, want := range []string{"Node n: WithdrawalFailed: ", "NodeMaintenance m: CompletionBlocked: "} {
		if !strings.Contains(events, want) {
			t.Errorf("no event %q among\n%s", want, events)
		}
	}
	refused.err = allowed
	f.run(pace.MaxRetry + 5*time.Second)
	if m := f.maintenance("m"); len(m.Finalizers) > 0 || len(m.Status.DrainStatus.Blockers) > 0 || f.requested() > 0 || len(f.failures.Nodes()) > 0 {
		t.Errorf("maintenance %+v, recorded failures %v", m, f.failures.Nodes())
	}
}

// If another client cordons a released node on which a withdrawal is refused, the cordon stays,
// also after a restart of the controller.
func TestCordonByHandDuringARefusedWithdrawal(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	refused := f.refuse("patch", "evictionrequests", "", quota)
	f.setStage("m", stageComplete)
	f.run(time.Minute)
	node := f.node("n")
	if node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil || len(f.maintenance("m").Finalizers) == 0 {
		t.Fatalf("node %+v, maintenance %+v", node, f.maintenance("m"))
	}
	node.Spec.Unschedulable = true
	f.update(node)
	f.run(time.Minute)
	if !f.node("n").Spec.Unschedulable {
		t.Error("uncordoned")
	}
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Generation++ })
	f.run(time.Minute)
	if !f.node("n").Spec.Unschedulable {
		t.Error("uncordoned after a change of the maintenance")
	}
	f.restart()
	f.run(time.Minute)
	if !f.node("n").Spec.Unschedulable {
		t.Error("uncordoned after a restart")
	}
	refused.err = allowed
	f.run(time.Minute)
	if !f.node("n").Spec.Unschedulable || len(f.maintenance("m").Finalizers) > 0 {
		t.Errorf("at the end: node %+v, maintenance %+v", f.node("n"), f.maintenance("m"))
	}
}

// The cordon also stays while the node keeps its status, because a request is being written.
func TestCordonByHandDuringARunningRequest(t *testing.T) {
	for name, complete := range map[string]func(*fixture){
		"completed":    func(f *fixture) { f.setStage("m", stageComplete) },
		"other labels": func(f *fixture) { f.relabel("n", nil) },
	} {
		f := hang(t)
		complete(f)
		f.run(10 * time.Second)
		node := f.node("n")
		if node.Spec.Unschedulable || node.Status.MaintenanceStatus == nil {
			t.Fatalf("%s: node %+v", name, node)
		}
		node.Spec.Unschedulable = true
		f.update(node)
		f.run(10 * time.Second)
		if node := f.node("n"); !node.Spec.Unschedulable || node.Status.MaintenanceStatus == nil {
			t.Errorf("%s: while a request is being written: %+v", name, node)
		}
		f.endRequest(0, answered)
		f.hung.Clear()
		f.settle()
		if node := f.node("n"); !node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil {
			t.Errorf("%s: at the end: %+v", name, node)
		}
		// The next maintenance uncordons what it claims.
		f.relabel("n", map[string]string{"b": ""})
		f.createMaintenance("next", stageDrain, "b", maintenance.StandardPlan()...)
		f.settle()
		f.setStage("next", stageComplete)
		f.settle()
		if f.node("n").Spec.Unschedulable {
			t.Errorf("%s: the next maintenance does not uncordon it", name)
		}
	}
}

// A maintenance is not over while a request is being written for a pod of a node that is gone, or is
// not in the cache yet: it has to be withdrawn.
func TestRunningRequestOfALostNode(t *testing.T) {
	f := hang(t)
	f.setStage("m", stageComplete)
	if err := f.client.CoreV1().Nodes().Delete(f.ctx, "n", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.run(10 * time.Second)
	if len(f.maintenance("m").Finalizers) == 0 {
		t.Error("the maintenance is over while a request is being written")
	}
	f.endRequest(0, answered)
	f.stepFor(20, func() { f.deliverNodes(); f.deliverMaintenances(); f.deliverPods() })
	if len(f.maintenance("m").Finalizers) == 0 {
		t.Error("the maintenance is over while the cache lacks a request")
	}
	f.hung.Clear()
	f.settle()
	if m := f.maintenance("m"); len(m.Finalizers) > 0 || f.requested() > 0 {
		t.Errorf("%d requests are left, maintenance %+v", f.requested(), m.Status)
	}
}

// A maintenance also waits for withdrawals on a node that it no longer selects or that is gone. It
// reports them as a blocker until they are made.
func TestRefusedWithdrawalOfALostNodeIsABlocker(t *testing.T) {
	for name, lose := range map[string]func(*fixture){
		"other labels": func(f *fixture) { f.relabel("n", nil) },
		"gone": func(f *fixture) {
			if err := f.client.CoreV1().Nodes().Delete(f.ctx, "n", metav1.DeleteOptions{}); err != nil {
				f.t.Fatal(err)
			}
		},
	} {
		for _, when := range []string{"before", "after"} {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			f.createNode("other", map[string]string{"a": ""})
			f.createPods(1, "n", 0)
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			f.settle()
			refused := f.refuse("patch", "evictionrequests", "", quota)
			f.setStage("m", stageComplete)
			if when == "after" {
				f.run(time.Minute)
			} else {
				f.deliverMaintenances()
				f.syncOnly("m")
			}
			lose(f)
			f.run(5 * time.Minute)
			m := f.maintenance("m")
			if blockers := m.Status.DrainStatus.Blockers; len(m.Finalizers) == 0 || len(blockers) != 1 || m.Status.DrainStatus.BlockerCount != 1 ||
				!strings.Contains(blockers[0].Message, "1 pod in namespace default still has an eviction request that cannot be withdrawn") {
				t.Errorf("%s, %s the refusal: finalizers %v, blockers %+v", name, when, m.Finalizers, blockers)
			}
			refused.err = allowed
			f.run(pace.MaxRetry + 5*time.Second)
			if m := f.maintenance("m"); len(m.Finalizers) > 0 || len(m.Status.DrainStatus.Blockers) > 0 || f.requested() > 0 || len(f.failures.Nodes()) > 0 {
				t.Errorf("%s, %s the refusal: at the end %+v, recorded failures %v", name, when, m, f.failures.Nodes())
			}
		}
	}
}

// A maintenance is not completed while a node cannot be uncordoned, and reports it as a blocker,
// even if it no longer selects the node.
func TestRefusedUncordonIsABlocker(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"selected":     func(*fixture) {},
		"other labels": func(f *fixture) { f.relabel("n", nil) },
	} {
		f := newFixture(t)
		f.createNode("n", map[string]string{"a": ""})
		f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
		f.settle()
		refused := f.refuse("patch", "nodes", "", webhook)
		f.setStage("m", stageComplete)
		f.deliverMaintenances()
		f.syncOnly("m")
		change(f)
		f.run(5 * time.Minute)
		m := f.maintenance("m")
		if blockers := m.Status.DrainStatus.Blockers; len(m.Finalizers) == 0 || len(blockers) != 1 || blockers[0].Cause != coordinationv1alpha1.DrainBlockerCordonFailed ||
			blockers[0].Object == nil || blockers[0].Object.Name != "n" ||
			!strings.Contains(blockers[0].Message, "1 node cannot be uncordoned (") || !strings.Contains(blockers[0].Message, "a webhook says no") {
			t.Fatalf("%s: finalizers %v, blockers %+v", name, m.Finalizers, blockers)
		}
		expectRetries(t, refused.attempts)
		f.expectEvent("NodeMaintenance m: CompletionBlocked: " + m.Status.DrainStatus.Blockers[0].Message)
		refused.err = allowed
		f.run(pace.MaxRetry + 5*time.Second)
		if m := f.maintenance("m"); len(m.Finalizers) > 0 || len(m.Status.DrainStatus.Blockers) > 0 || f.node("n").Spec.Unschedulable || len(f.failures.Nodes()) > 0 {
			t.Errorf("%s: at the end %+v, recorded failures %v", name, m, f.failures.Nodes())
		}
	}
}

// Blockers of nodes stay in the status until the nodes are reconciled again, also after a restart.
// Only one event reports them.
func TestBlockersOfNodesStayUntilTheNextSync(t *testing.T) {
	for _, stage := range []coordinationv1alpha1.NodeMaintenanceStage{stageCordon, stageComplete} {
		for name, change := range map[string]func(*fixture){
			"restart": (*fixture).restart,
			"change": func(f *fixture) {
				f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Generation++ })
				f.deliverMaintenances()
				f.syncOnly("m")
			},
		} {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			f.createNode("o", map[string]string{"a": ""})
			if stage == stageComplete {
				f.createMaintenance("m", stageCordon, "a")
				f.settle()
			} else {
				f.createMaintenance("m", stage, "a")
			}
			refused := f.refuse("patch", "nodes", "", func(name string) error {
				if name == "n" {
					return webhook(name)
				}
				return nil
			})
			f.setStage("m", stage)
			f.run(time.Minute)
			before := f.maintenance("m").Status.DrainStatus
			if before.BlockerCount != 1 {
				t.Fatalf("%s: status %+v", stage, before)
			}
			var counts []int32
			f.client.PrependReactor("update", "nodemaintenances", func(action clienttesting.Action) (bool, runtime.Object, error) {
				m := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1alpha1.NodeMaintenance)
				counts = append(counts, m.Status.DrainStatus.BlockerCount)
				return false, nil, nil
			})
			change(f)
			f.syncOnly("m")
			// The other node is reconciled first.
			f.reconcile("o")
			f.run(time.Minute)
			if slices.Contains(counts, 0) || f.maintenance("m").Status.ObservedGeneration != f.maintenance("m").Generation {
				t.Errorf("%s, %s: blockers were counted as %v", stage, name, counts)
			}
			if reported := strings.Count(strings.Join(f.events, "\n"), "CompletionBlocked"); stage == stageComplete && reported != 1 {
				t.Errorf("%s: %d events CompletionBlocked", name, reported)
			}
			refused.err = allowed
			f.run(pace.MaxRetry + 5*time.Second)
			if status := f.maintenance("m").Status.DrainStatus; status.BlockerCount != 0 || len(status.Blockers) > 0 {
				t.Errorf("%s, %s: at the end %+v", stage, name, status)
			}
		}
	}
}

// A maintenance that no longer selects a node, but cannot release it, reports this as a blocker,
// and is not completed before the node is released.
func TestDeselectedNodeThatCannotBeReleased(t *testing.T) {
	writes := map[string]struct {
		subresource string
		cause       coordinationv1alpha1.DrainBlockerCause
		message     string
	}{
		"uncordon": {"", coordinationv1alpha1.DrainBlockerCordonFailed, "1 node cannot be uncordoned ("},
		"status":   {"status", coordinationv1alpha1.DrainBlockerNodeStatusFailed, "1 node has a status that cannot be written ("},
	}
	deselections := map[string]func(*fixture){
		"other labels": func(f *fixture) { f.relabel("n", nil) },
		"other selector": func(f *fixture) {
			f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
				m.Generation++
				m.Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions = append(m.Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions,
					v1.NodeSelectorRequirement{Key: "b", Operator: v1.NodeSelectorOpExists})
			})
		},
	}
	for _, stage := range []coordinationv1alpha1.NodeMaintenanceStage{stageCordon, stageDrain} {
		for refusedWrite, write := range writes {
			for how, deselect := range deselections {
				name := string(stage) + ", " + refusedWrite + ", " + how
				f := newFixture(t)
				f.createNode("n", map[string]string{"a": ""})
				f.createNode("o", map[string]string{"a": "", "b": ""})
				f.createMaintenance("m", stage, "a", maintenance.StandardPlan()...)
				f.settle()
				refused := f.refuse("patch", "nodes", write.subresource, func(name string) error {
					if name == "n" {
						return webhook(name)
					}
					return nil
				})
				expectBlocker := func(when string) {
					t.Helper()
					status := f.maintenance("m").Status.DrainStatus
					if len(status.Blockers) != 1 || status.BlockerCount != 1 || status.Blockers[0].Cause != write.cause || status.Blockers[0].NodeCount != 1 ||
						status.Blockers[0].Object.Name != "n" || !strings.HasPrefix(status.Blockers[0].Message, write.message) {
						t.Errorf("%s, %s: blockers %+v", name, when, status.Blockers)
					}
				}
				deselect(f)
				f.run(time.Minute)
				expectBlocker("deselected")
				if m := f.maintenance("m"); m.Status.SelectedNodes != 1 || stage == stageDrain && !status.IsDrained(&m.Status) {
					t.Errorf("%s: want one node, drained in the stage Drain: %+v", name, m.Status)
				}
				f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Generation++ })
				f.run(time.Minute)
				expectBlocker("after a change")
				f.setStage("m", stageComplete)
				f.run(time.Minute)
				if expectBlocker("in Complete"); len(f.maintenance("m").Finalizers) == 0 {
					t.Errorf("%s: released", name)
				}
				refused.err = allowed
				f.run(pace.MaxRetry + 5*time.Second)
				if m, n := f.maintenance("m"), f.node("n"); len(m.Finalizers) > 0 || m.Status.DrainStatus.BlockerCount > 0 || n.Spec.Unschedulable || n.Status.MaintenanceStatus != nil || len(f.failures.Nodes()) > 0 {
					t.Errorf("%s: at the end %+v, node %+v", name, m, n)
				}
			}
		}
	}
}

// A maintenance that selects the node again no longer has to release it.
func TestNodeThatLeftComesBack(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	f.refuse("patch", "nodes", "", webhook)
	f.relabel("n", nil)
	f.run(time.Minute)
	if stored := f.maintenance("m").Status; stored.DrainStatus.BlockerCount != 1 || status.FindDrained(&stored).Reason != coordinationv1alpha1.NodeMaintenanceReasonNoNodes {
		t.Errorf("deselected: %+v", stored)
	}
	f.relabel("n", map[string]string{"a": ""})
	f.run(time.Minute)
	if m := f.maintenance("m"); m.Status.DrainStatus.BlockerCount != 0 || !status.IsDrained(&m.Status) || len(f.progress.Unreleased("m")) > 0 {
		t.Errorf("selected again: %+v", m.Status)
	}
}

// A node that is selected again while its status cannot be written is counted once.
func TestNodeThatIsBackIsCountedOnce(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	f.refuse("patch", "nodes", "status", webhook)
	f.relabel("n", nil)
	f.run(time.Minute)
	f.createPods(1, "n", 0)
	f.relabel("n", map[string]string{"a": ""})
	f.run(time.Minute)
	if blockers := f.maintenance("m").Status.DrainStatus.Blockers; len(blockers) == 0 || blockers[0].Cause != coordinationv1alpha1.DrainBlockerNodeStatusFailed || blockers[0].NodeCount != 1 {
		t.Errorf("blockers %+v", blockers)
	}
}

// After a restart, a maintenance in Complete still waits for nodes that it no longer selects or
// that are gone, and reports their blockers. It does not wait for nodes that another one drains.
func TestCompletionAfterARestart(t *testing.T) {
	for name, tc := range map[string]struct {
		refuse func(*fixture) *refusal
		change func(*fixture)
		cause  coordinationv1alpha1.DrainBlockerCause
	}{
		"withdrawal, not selected": {
			func(f *fixture) *refusal { return f.refuse("patch", "evictionrequests", "", quota) },
			func(f *fixture) { f.relabel("n", nil) },
			coordinationv1alpha1.DrainBlockerRequestFailed,
		},
		"withdrawal, only cordoned by another one": {
			func(f *fixture) *refusal { return f.refuse("patch", "evictionrequests", "", quota) },
			func(f *fixture) {
				f.createMaintenance("cordon", stageCordon, "c")
				f.relabel("n", map[string]string{"c": ""})
			},
			coordinationv1alpha1.DrainBlockerRequestFailed,
		},
		"withdrawal, gone": {
			func(f *fixture) *refusal { return f.refuse("patch", "evictionrequests", "", quota) },
			func(f *fixture) {
				if err := f.client.CoreV1().Nodes().Delete(f.ctx, "n", metav1.DeleteOptions{}); err != nil {
					f.t.Fatal(err)
				}
			},
			coordinationv1alpha1.DrainBlockerRequestFailed,
		},
		"cordon": {
			func(f *fixture) *refusal { return f.refuse("patch", "nodes", "", webhook) },
			func(f *fixture) { f.relabel("n", nil) },
			coordinationv1alpha1.DrainBlockerCordonFailed,
		},
		"status": {
			func(f *fixture) *refusal { return f.refuse("patch", "nodes", "status", webhook) },
			func(f *fixture) { f.relabel("n", nil) },
			coordinationv1alpha1.DrainBlockerNodeStatusFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			f.createNode("claimed", map[string]string{"b": ""})
			f.createPods(1, "n", 0)
			f.createPods(1, "claimed", 0)
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			f.createMaintenance("other", stageDrain, "b", maintenance.StandardPlan()...)
			f.settle()
			refused := tc.refuse(f)
			f.complete("m")
			f.run(time.Minute)
			tc.change(f)
			f.run(time.Minute)
			f.restart()
			if left := f.progress.Unreleased("m"); len(left) != 1 {
				t.Errorf("waits for the nodes %v", left)
			}
			f.run(time.Minute)
			m := f.maintenance("m")
			if blockers := m.Status.DrainStatus.Blockers; len(m.Finalizers) == 0 || len(blockers) != 1 || blockers[0].Cause != tc.cause {
				t.Errorf("finalizers %q, blockers %+v", m.Finalizers, blockers)
			}
			refused.err = allowed
			f.run(time.Minute)
			if m := f.maintenance("m"); len(m.Finalizers) > 0 || len(m.Status.DrainStatus.Blockers) > 0 || f.requested() != 1 {
				t.Errorf("at the end: finalizers %q, %d evictions requested, blockers %+v", m.Finalizers, f.requested(), m.Status.DrainStatus.Blockers)
			}
		})
	}
}

// If a maintenance selects a node that was not released before a restart, no other maintenance
// waits for it.
func TestRestartLetsOthersComplete(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createNode("o", map[string]string{"b": ""})
	f.createPods(1, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.createMaintenance("other", stageDrain, "b", maintenance.StandardPlan()...)
	f.settle()
	f.refuse("patch", "nodes", "status", webhook)
	f.complete("m")
	f.complete("other")
	f.restart()
	for name, want := range map[string][]string{"m": {"n"}, "other": {"o"}} {
		if got := f.progress.Unreleased(name); !slices.Equal(got, want) {
			t.Errorf("%s waits for %q, want %q", name, got, want)
		}
	}
}

// After a restart, maintenances wait for nodes that were not released, unless another maintenance
// needs the status or the requests that are left there. These nodes are synced even without an
// event, because the caches may have received the request before its pod.
func TestNodesOfAnEarlierProcess(t *testing.T) {
	refuseStatus := func(f *fixture) { f.refuse("patch", "nodes", "status", webhook) }
	for name, test := range map[string]struct {
		refuse func(*fixture)
		change func(f *fixture, pod *v1.Pod)
		waits  bool
	}{
		"a status that was not cleared": {refuseStatus, func(f *fixture, _ *v1.Pod) { f.relabel("n", nil) }, true},
		"a status that another maintenance needs": {refuseStatus, func(f *fixture, _ *v1.Pod) {
			f.createMaintenance("cordon", stageCordon, "c")
			f.relabel("n", map[string]string{"c": ""})
			f.run(time.Minute)
		}, false},
		"a request": {refuseRequests, func(f *fixture, _ *v1.Pod) { f.relabel("n", nil) }, true},
		"a finished request": {refuseRequests, func(f *fixture, pod *v1.Pod) {
			f.relabel("n", nil)
			f.finish(pod)
		}, false},
		"a request that another maintenance needs": {refuseRequests, func(f *fixture, _ *v1.Pod) {
			f.createMaintenance("drain", stageDrain, "c", maintenance.StandardPlan()...)
			f.relabel("n", map[string]string{"c": ""})
			f.run(time.Minute)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			f.createNode("claimed", map[string]string{"b": ""})
			pods := f.createPods(1, "n", 0)
			f.createPods(1, "claimed", 0)
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			f.createMaintenance("other", stageDrain, "b", maintenance.StandardPlan()...)
			f.settle()
			test.refuse(f)
			// The other one cannot complete in any case, so it waits for everything that is left.
			f.complete("other")
			f.complete("m")
			f.run(time.Minute)
			test.change(f, pods[0])
			f.restart()
			if waits := slices.Contains(f.progress.Unreleased("other"), "n"); waits != test.waits {
				t.Errorf("waits for the node: %t, want %t", waits, test.waits)
			}
			f.nodeQueue.keys = nil
			f.adoptAll()
			if synced := slices.Contains(f.nodeQueue.keys, "n"); synced != test.waits {
				t.Errorf("syncs the node: %t, want %t", synced, test.waits)
			}
		})
	}
}

func refuseRequests(f *fixture) { f.refuse("patch", "evictionrequests", "", quota) }

// finish cancels the request of a pod that still exists.
func (f *fixture) finish(pod *v1.Pod) {
	f.t.Helper()
	request := f.request1(pod)
	meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
		Type: string(coordinationv1alpha1.EvictionRequestConditionCanceled), Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.EvictionRequestReasonValidationFailed,
	})
	if _, err := f.client.CoordinationV1alpha1().EvictionRequests(pod.Namespace).UpdateStatus(f.ctx, request, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}
