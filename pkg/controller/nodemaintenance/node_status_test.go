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
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
)

// busyAgent simulates a client that updates the status of the node n before each write of the
// status by the controller, unless skip returns true.
func (f *fixture) busyAgent(skip func() bool) {
	f.busyAgentThat(skip, func(node *v1.Node) { node.Status.VolumesInUse = append(node.Status.VolumesInUse, "volume") })
}

func (f *fixture) busyAgentThat(skip func() bool, change func(*v1.Node)) {
	nodes := v1.SchemeGroupVersion.WithResource("nodes")
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "status" || skip() {
			return false, nil, nil
		}
		live, err := f.tracker.Get(nodes, "", "n")
		if err != nil {
			f.t.Fatal(err)
		}
		node := live.DeepCopyObject().(*v1.Node)
		change(node)
		if err := f.tracker.Update(nodes, node, ""); err != nil {
			f.t.Fatal(err)
		}
		return false, nil, nil
	})
}

// An agent that writes the status of a node more often than the cache is updated blocks neither the
// drain nor the release of the node, as long as no decision depends on the fields that it writes.
func TestBusyAgentDelaysNoDrain(t *testing.T) {
	writes := 0
	for name, change := range map[string]func(*v1.Node){
		"volumes": func(node *v1.Node) { node.Status.VolumesInUse = append(node.Status.VolumesInUse, "volume") },
		"conditions of the controller": func(node *v1.Node) {
			writes++
			node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeDrained, Status: v1.ConditionTrue, Message: fmt.Sprint(writes)}}
		},
	} {
		t.Run(name, func(t *testing.T) { testBusyAgent(t, change) })
	}
}

func testBusyAgent(t *testing.T, change func(*v1.Node)) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0)
	// The agent does not write between a live read of the node and the patch that follows it.
	read := false
	f.client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		read = false
		return false, nil, nil
	})
	f.client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		read = true
		return false, nil, nil
	})
	f.busyAgentThat(func() bool { defer func() { read = false }(); return read }, change)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(5 * time.Second)
	if targets := progress.StoredTargets(f.node("n")); targets.IsEmpty() || f.requested() != 1 {
		t.Errorf("targets %s, %d evictions requested", targets, f.requested())
	}
	f.setStage("m", stageComplete)
	f.run(5 * time.Second)
	if node := f.node("n"); node.Status.MaintenanceStatus != nil || len(f.maintenance("m").Finalizers) > 0 {
		t.Errorf("not released: %+v", node.Status)
	}
}

// After a conflict, the status is not written again if the data that it is based on has changed.
func TestConflictOfAnOutdatedDecision(t *testing.T) {
	for name, change := range map[string]func(*v1.Node){
		"another node":  func(*v1.Node) {},
		"unschedulable": func(node *v1.Node) { node.Spec.Unschedulable = true },
		"labels":        func(node *v1.Node) { node.Labels = map[string]string{"a": ""} },
		"targets": func(node *v1.Node) {
			node.Status.MaintenanceStatus = &v1.MaintenanceStatus{DrainTargets: []v1.DrainPlanEntry{entry(v1.PodTypeDefault, 1000)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", nil)
			node := f.node("n")
			if name == "another node" {
				if err := f.client.CoreV1().Nodes().Delete(f.ctx, "n", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				f.createNode("n", nil)
			}
			changed := f.node("n")
			change(changed)
			f.update(changed)
			changed = f.node("n")
			status := &v1.MaintenanceStatus{DrainTargets: []v1.DrainPlanEntry{entry(v1.PodTypeDefault, 1)}}
			if err := f.writer.SetNodeStatus(f.ctx, node, status, nil); !apierrors.IsConflict(err) || f.node("n").ResourceVersion != changed.ResourceVersion {
				t.Errorf("error %v, status %+v", err, f.node("n").Status)
			}
		})
	}
}

// What another client writes to a node without a maintenance, between the decision and a write that is repeated after a
// conflict, stays. The conditions of a maintenance replace it.
func TestConflictWithForeignConditions(t *testing.T) {
	announced := v1.NodeCondition{Type: v1.NodeMaintenancePlanned, Status: v1.ConditionTrue, Reason: "AnnouncedBySomebody"}
	own := v1.NodeCondition{Type: v1.NodeMaintenancePlanned, Status: v1.ConditionTrue, Reason: status.ReasonPlanned}
	for name, test := range map[string]struct {
		decided []v1.NodeCondition
		want    v1.NodeCondition
	}{
		"no maintenance": {want: announced},
		"a maintenance":  {decided: []v1.NodeCondition{own}, want: own},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", nil)
			decidedOn := f.node("n")
			changed := f.node("n")
			changed.Status.Conditions = append(changed.Status.Conditions, announced)
			f.update(changed)
			if err := f.writer.SetNodeStatus(f.ctx, decidedOn, &v1.MaintenanceStatus{DrainMessage: "x"}, test.decided); err != nil {
				t.Fatal(err)
			}
			got := status.OwnConditions(f.node("n").Status.Conditions)
			if len(got) != 1 || got[0].Reason != test.want.Reason {
				t.Errorf("conditions %+v, want %s", got, test.want.Reason)
			}
		})
	}
}

// While the status of a node cannot be written, it is a blocker in each stage that depends on it:
// no eviction is requested, and the node is not released.
func TestNodeStatusThatCannotBeWritten(t *testing.T) {
	for name, fail := range map[string]func(f *fixture) (stop func(), why string){
		"refused": func(f *fixture) (func(), string) {
			refused := f.refuse("patch", "nodes", "status", webhook)
			return func() { refused.err = allowed }, "a webhook says no"
		},
		"conflicts that require a new decision": func(f *fixture) (func(), string) {
			stopped, writes := false, 0
			f.busyAgentThat(func() bool { return stopped }, func(node *v1.Node) {
				writes++
				if node.Labels["writes"] = fmt.Sprint(writes); writes > 20 {
					f.t.Fatal("retried without a delay")
				}
			})
			return func() { stopped = true }, "Operation cannot be fulfilled"
		},
		"continuous writes of another client": func(f *fixture) (func(), string) {
			stopped := false
			f.busyAgent(func() bool { return stopped })
			return func() { stopped = true }, "other clients write the node so often that 10 attempts in a row failed"
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			f.createPods(1, "n", 0)
			expectBlocker := func(why string) {
				t.Helper()
				blockers := f.maintenance("m").Status.DrainStatus.Blockers
				if len(blockers) != 1 || blockers[0].Cause != coordinationv1alpha1.DrainBlockerNodeStatusFailed || blockers[0].Object == nil || blockers[0].Object.Name != "n" ||
					!strings.Contains(blockers[0].Message, "1 node has a status that cannot be written (") || !strings.Contains(blockers[0].Message, why) {
					t.Errorf("blockers %+v", blockers)
				}
			}
			stop, why := fail(f)
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			f.run(10 * time.Second)
			expectBlocker(why)
			if !slices.ContainsFunc(f.events, func(event string) bool { return strings.HasPrefix(event, "Node n: NodeStatusFailed: ") }) {
				t.Errorf("events %q", f.events)
			}
			if drained := status.FindDrained(&f.maintenance("m").Status); drained.Reason != coordinationv1alpha1.NodeMaintenanceReasonBlocked || f.requested() > 0 {
				t.Errorf("condition %+v, %d evictions requested", drained, f.requested())
			}
			stop()
			f.run(pace.MaxRetry)
			if blockers := f.maintenance("m").Status.DrainStatus.Blockers; len(blockers) != 1 || blockers[0].Cause != coordinationv1alpha1.DrainBlockerEvicting || f.requested() != 1 {
				t.Errorf("afterwards: blockers %+v, %d evictions requested", blockers, f.requested())
			}
			stop, why = fail(f)
			f.setStage("m", stageComplete)
			f.run(10 * time.Second)
			if expectBlocker(why); len(f.maintenance("m").Finalizers) == 0 || f.requested() > 0 {
				t.Errorf("in Complete: %+v, %d evictions requested", f.maintenance("m"), f.requested())
			}
			stop()
			f.run(pace.MaxRetry)
			if m := f.maintenance("m"); len(m.Finalizers) > 0 || len(m.Status.DrainStatus.Blockers) > 0 || len(f.failures.Nodes()) > 0 {
				t.Errorf("at the end: %+v, recorded failures %v", m, f.failures.Nodes())
			}
		})
	}
}

// Without the verb control, the API server reports success when the controller clears a status, but
// keeps it. The node is not released, and the blocker names the missing permission.
func TestNodeStatusThatIsKept(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	// The admission plugin NodeMaintenance restores the status in the same way.
	controls, attempts := false, 0
	nodes := v1.SchemeGroupVersion.WithResource("nodes")
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "status" || controls {
			return false, nil, nil
		}
		attempts++
		live, err := f.tracker.Get(nodes, "", "n")
		if err != nil {
			f.t.Fatal(err)
		}
		node := live.DeepCopyObject().(*v1.Node)
		node.Status.Conditions = nil
		if err := f.tracker.Update(nodes, node, ""); err != nil {
			f.t.Fatal(err)
		}
		live, err = f.tracker.Get(nodes, "", "n")
		return true, live, err
	})
	f.setStage("m", stageComplete)
	f.run(time.Minute)
	m := f.maintenance("m")
	if blockers := m.Status.DrainStatus.Blockers; len(m.Finalizers) == 0 || len(blockers) != 1 || blockers[0].Cause != coordinationv1alpha1.DrainBlockerNodeStatusFailed ||
		!strings.Contains(blockers[0].Message, `whose removal needs the verb "control" on the resource "nodes/status"`) {
		t.Errorf("maintenance %+v", m)
	}
	if attempts > 8 {
		t.Errorf("%d attempts in a minute", attempts)
	}
	controls = true
	f.run(pace.MaxRetry)
	if m := f.maintenance("m"); len(m.Finalizers) > 0 || len(f.failures.Nodes()) > 0 {
		t.Errorf("at the end: %+v, recorded failures %v", m, f.failures.Nodes())
	}
}

// A refused write is logged when it first blocks, not at each attempt, and counted while it lasts.
func TestRefusedNodeIsLoggedAndCounted(t *testing.T) {
	for _, tc := range []struct {
		name, subresource, log string
		stage                  coordinationv1alpha1.NodeMaintenanceStage
		cause                  maintenance.BlockerCause
	}{
		{"cordon", "", "Failed to cordon or uncordon the node", stageDrain, maintenance.BlockerCordonFailed},
		{"status", "status", "Failed to write the status of the node", stageCordon, maintenance.BlockerNodeStatusFailed},
		{"uncordon", "", "Failed to cordon or uncordon the node", stageComplete, maintenance.BlockerCordonFailed},
		{"status of a node that is released", "status", "Failed to write the status of the node", stageComplete, maintenance.BlockerNodeStatusFailed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
			f.ctx = klog.NewContext(f.ctx, logger)
			f.createNode("n", map[string]string{"a": ""})
			if tc.stage == stageComplete {
				f.createMaintenance("m", stageCordon, "a")
				f.settle()
			} else {
				f.createMaintenance("m", tc.stage, "a", maintenance.StandardPlan()...)
			}
			refused := f.refuse("patch", "nodes", tc.subresource, webhook)
			f.setStage("m", tc.stage)
			f.run(5 * time.Minute)
			logged := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
			if strings.Count(logged, tc.log) != 1 || !strings.Contains(logged, "a webhook says no") || len(refused.attempts) < 5 {
				t.Errorf("%d attempts, logged:\n%s", len(refused.attempts), logged)
			}
			want := map[maintenance.BlockerCause]int{tc.cause: 1}
			if got := f.progress.Count(f.clock.Now()).BlockedNodes; !maps.Equal(got, want) {
				t.Errorf("counts %v, want %v", got, want)
			}
			refused.err = allowed
			f.run(pace.MaxRetry + 5*time.Second)
			if got := f.progress.Count(f.clock.Now()).BlockedNodes; len(got) > 0 {
				t.Errorf("counts %v at the end", got)
			}
		})
	}
}

// A status whose write got no response is a blocker until the cache has the status.
func TestNodeStatusWhoseAnswerIsLost(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	attempts := 0
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "status" {
			return false, nil, nil
		}
		if attempts++; attempts == 1 {
			return true, nil, webhook("n")
		}
		if attempts > 2 {
			return false, nil, nil
		}
		for _, reactor := range f.client.ReactionChain[1:] {
			if !reactor.Handles(action) {
				continue
			}
			if handled, _, err := reactor.React(action); err != nil {
				t.Fatal(err)
			} else if handled {
				break
			}
		}
		return true, nil, apierrors.NewTimeoutError("the response is lost", 0)
	})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(time.Minute)
	if m := f.maintenance("m"); attempts != 2 || len(m.Status.DrainStatus.Blockers) > 0 {
		t.Errorf("%d attempts, status %+v", attempts, m.Status)
	}
}

// While a node cannot be uncordoned, its status is not written, and only the uncordon is a blocker.
func TestNodeStatusThatIsNotWrittenIsNoBlocker(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	f.refuse("patch", "nodes", "status", webhook)
	f.createPods(1, "n", 0)
	f.run(10 * time.Second)
	f.refuse("patch", "nodes", "", webhook)
	f.setStage("m", stageComplete)
	f.run(time.Minute)
	if blockers := f.maintenance("m").Status.DrainStatus.Blockers; len(blockers) != 1 || blockers[0].Cause != coordinationv1alpha1.DrainBlockerCordonFailed {
		t.Errorf("blockers %+v", blockers)
	}
}

// After a conflict with a change that affects the decision, the next sync waits until the cache has
// the change: attempts on the same old node would count as failures.
func TestConflictWaitsForTheCache(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.deliverAll()
	cached, err := f.nodeLister.Get("n")
	if err != nil {
		t.Fatal(err)
	}
	changed := cached.DeepCopy()
	changed.Labels["b"] = ""
	if _, err := f.client.CoreV1().Nodes().Update(f.ctx, changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if !f.writer.IsCurrentNode("n") {
		t.Fatal("waits although the cache has all own writes")
	}
	if err := f.writer.SetNodeStatus(f.ctx, cached, &v1.MaintenanceStatus{}, nil); !apierrors.IsConflict(err) {
		t.Fatalf("got %v, want a conflict", err)
	}
	if f.writer.IsCurrentNode("n") {
		t.Error("does not wait for the cache")
	}
	f.deliverNodes()
	if !f.writer.IsCurrentNode("n") {
		t.Error("still waits although the cache has the change")
	}
}

// A status that was refused for a long time is written at once when the node is uncordoned.
func TestStatusIsWrittenAfterAnUncordon(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	refused := f.refuse("patch", "nodes", "status", webhook)
	f.createPods(1, "n", 0)
	f.run(10 * time.Minute)
	last := refused.attempts[len(refused.attempts)-1]
	f.run(last.Add(pace.MaxRetry).Sub(f.clock.Now()) + time.Second)
	refused.err = allowed
	f.setStage("m", stageComplete)
	f.run(5 * time.Second)
	if m := f.maintenance("m"); len(m.Finalizers) > 0 {
		t.Errorf("not completed: %+v", m.Status.DrainStatus.Blockers)
	}
}

// A node that cannot be cordoned is no longer a blocker when another client cordons it.
func TestRefusedCordonThatAnotherClientMakes(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.refuse("patch", "nodes", "", webhook)
	f.createMaintenance("m", stageCordon, "a")
	f.run(time.Minute)
	node := f.node("n")
	node.Spec.Unschedulable = true
	f.update(node)
	f.deliverAll()
	f.reconcile("n")
	if got := f.progress.Count(f.clock.Now()).BlockedNodes; len(got) > 0 {
		t.Errorf("counts %v", got)
	}
}

// TestConditionsOfOthers: what another client says about a node is left alone where no maintenance has to do with it.
func TestConditionsOfOthers(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	planned := v1.NodeCondition{Type: v1.NodeMaintenancePlanned, Status: v1.ConditionTrue, Reason: "PlannedByOperator", Message: "tonight"}
	foreign := v1.NodeCondition{Type: v1.NodeDrained, Status: v1.ConditionTrue, Reason: "DrainedByOperator"}
	left := v1.NodeCondition{Type: v1.NodeDrainInProgress, Status: v1.ConditionTrue, Reason: "PodsLeft", Message: "NodeMaintenance gone"}
	node := f.node("n")
	node.Status.Conditions = append(node.Status.Conditions, planned, foreign, left)
	if _, err := f.client.CoreV1().Nodes().UpdateStatus(f.ctx, node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect := func(what string, want ...v1.NodeCondition) {
		t.Helper()
		f.run(time.Minute)
		if diff := cmp.Diff(want, status.OwnConditions(f.node("n").Status.Conditions)); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", what, diff)
		}
	}
	// What an earlier maintenance has left behind goes.
	expect("without a maintenance", planned, foreign)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(time.Minute)
	if conditions := status.OwnConditions(f.node("n").Status.Conditions); len(conditions) != len(status.NodeConditionTypes) || conditions[3].Reason != "NoPodsLeft" {
		t.Errorf("with a maintenance: %v", conditions)
	}
	f.setStage("m", stageComplete)
	expect("after it")
}
