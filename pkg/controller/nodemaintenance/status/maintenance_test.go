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

package status

import (
	"encoding/json"
	"github.com/google/go-cmp/cmp"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/utils/ptr"
)

func TestDrainedCondition(t *testing.T) {
	for _, tc := range []struct {
		name string
		sums progress.Summary
		want metav1.Condition
	}{
		{
			"no nodes", progress.Summary{Ready: true},
			metav1.Condition{Status: metav1.ConditionFalse, Reason: "NoNodesSelected", Message: "spec.nodeSelector matches no node."},
		},
		{
			"drained", progress.Summary{Ready: true, Nodes: 2, Drained: 2, State: progress.DrainState{Cordoned: true}},
			metav1.Condition{Status: metav1.ConditionTrue, Reason: "Drained", Message: "No pod is left on 2 nodes."},
		},
		{
			"draining", progress.Summary{Ready: true, Nodes: 2, Drained: 1, Left: 1, State: progress.DrainState{Left: true, Draining: true}},
			metav1.Condition{Status: metav1.ConditionFalse, Reason: "Draining", Message: "1 pod left on 1 of 2 nodes."},
		},
		{
			"limited", progress.Summary{Ready: true, Nodes: 2, Left: 3, State: progress.DrainState{Left: true, Draining: true, LimitedBy: []string{"x"}}},
			metav1.Condition{Status: metav1.ConditionFalse, Reason: "Draining", Message: "3 pods left on 2 of 2 nodes. Draining (limited by x)."},
		},
		{
			"waiting", progress.Summary{Ready: true, Nodes: 1, Left: 3, State: progress.DrainState{Left: true, WaitingFor: []string{"y", "x"}}},
			metav1.Condition{Status: metav1.ConditionFalse, Reason: "WaitingForOtherMaintenances", Message: "3 pods left on 1 of 1 node. Waiting for x, y."},
		},
		{
			"blocked", progress.Summary{Ready: true, Nodes: 1, Left: 1, Blocked: 1, State: progress.DrainState{Left: true, Draining: true}, Blockers: []maintenance.BlockerGroup{{Cause: maintenance.BlockerEvictionRefused, Pods: 1}}},
			metav1.Condition{Status: metav1.ConditionFalse, Reason: "Blocked", Message: "1 pod left on 1 of 1 node. " + maintenance.BlockerMessage([]maintenance.BlockerGroup{{Cause: maintenance.BlockerEvictionRefused, Pods: 1}})},
		},
		{
			"not in the plan", progress.Summary{Ready: true, Nodes: 1, Unplanned: 1, Left: 1, State: progress.DrainState{Left: true}},
			metav1.Condition{Status: metav1.ConditionFalse, Reason: "Draining", Message: "1 pod left on 1 of 1 node. 1 pod without a matching entry in spec.drainPlan: the admission plugin NodeMaintenance adds the standard entries on creation."},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, drainedCondition(&tc.sums)); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
		})
	}
}

func TestPodTypesDone(t *testing.T) {
	m := &coordinationv1alpha1.NodeMaintenance{Spec: coordinationv1alpha1.NodeMaintenanceSpec{DrainPlan: maintenance.StandardPlan()}}
	at := func(position int32, drained metav1.ConditionStatus) *coordinationv1alpha1.NodeMaintenanceStatus {
		status := &coordinationv1alpha1.NodeMaintenanceStatus{DrainStatus: coordinationv1alpha1.DrainStatus{DrainPlanPosition: &position}}
		setCondition(status, metav1.Condition{Status: drained}, 1, time.Time{})
		return status
	}
	for _, tc := range []struct {
		name   string
		status *coordinationv1alpha1.NodeMaintenanceStatus
		want   []v1.PodType
	}{
		{"not begun", &coordinationv1alpha1.NodeMaintenanceStatus{}, nil},
		{"default pods", at(3, metav1.ConditionFalse), nil},
		{"daemon sets", at(4, metav1.ConditionFalse), []v1.PodType{v1.PodTypeDefault}},
		{"static pods", at(11, metav1.ConditionFalse), []v1.PodType{v1.PodTypeDefault, v1.PodTypeDaemonSet}},
		{"all", at(11, metav1.ConditionTrue), []v1.PodType{v1.PodTypeDefault, v1.PodTypeDaemonSet, v1.PodTypeStatic}},
	} {
		if diff := cmp.Diff(tc.want, PodTypesDone(m, tc.status)); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", tc.name, diff)
		}
	}
}

// A pod type without entries is not done before the whole drain.
func TestPodTypeWithoutEntries(t *testing.T) {
	m := &coordinationv1alpha1.NodeMaintenance{Spec: coordinationv1alpha1.NodeMaintenanceSpec{DrainPlan: []v1.DrainPlanEntry{entry(v1.PodTypeDefault, 1), entry(v1.PodTypeDefault, 2)}}}
	if got := PodTypesDone(m, &coordinationv1alpha1.NodeMaintenanceStatus{DrainStatus: coordinationv1alpha1.DrainStatus{DrainPlanPosition: ptr.To[int32](1)}}); len(got) > 0 {
		t.Errorf("done: %v", got)
	}
}

// Nodes that cannot be cordoned and deselected nodes that cannot be uncordoned are one blocker.
func TestBlockersOfNodesThatLeft(t *testing.T) {
	group := func(node string) []maintenance.BlockerGroup {
		return maintenance.GroupBlockers([]maintenance.Blocker{maintenance.FailedCordon(node, "no", start)})
	}
	blockers, total := blockersOf(group("a"), group("b"))
	const message = " (no)"
	if want := "1 node cannot be cordoned" + message + "; 1 node cannot be uncordoned" + message; total != 1 || blockers[0].NodeCount != 2 || blockers[0].Message != want {
		t.Errorf("%d blockers: %+v, want %q", total, blockers, want)
	}
}

// Blockers of selected and of deselected nodes share a message only if it applies to both.
func TestMessagesOfBlockersOfNodesThatLeft(t *testing.T) {
	request := func(namespace string) maintenance.Blocker {
		return maintenance.FailedRequest(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}}, "no", start)
	}
	blockers, _ := blockersOf(
		maintenance.GroupBlockers([]maintenance.Blocker{maintenance.FailedNodeStatus("a", "no", start), request("current")}),
		maintenance.GroupBlockers([]maintenance.Blocker{maintenance.FailedNodeStatus("b", "no", start), request("left")}),
	)
	const message = " (no)"
	var got []string
	for _, blocker := range blockers {
		got = append(got, blocker.Message)
	}
	expectNames(t, "messages", got, "1 pod in namespace current cannot get an EvictionRequest"+message,
		"1 pod in namespace left still has an eviction request that cannot be withdrawn"+message, "2 nodes have a status that cannot be written"+message)
}

// That the stage Cordon came first is known from times, which are stored in seconds.
func TestCordonedUntil(t *testing.T) {
	for name, test := range map[string]struct {
		stages []coordinationv1alpha1.NodeMaintenanceStage
		after  time.Duration
		want   bool
	}{
		"skipped":           {[]coordinationv1alpha1.NodeMaintenanceStage{stageDrain}, 0, false},
		"Idle came first":   {[]coordinationv1alpha1.NodeMaintenanceStage{stageIdle, stageDrain}, time.Minute, false},
		"only Cordon":       {[]coordinationv1alpha1.NodeMaintenanceStage{stageCordon}, 0, true},
		"at the same time":  {[]coordinationv1alpha1.NodeMaintenanceStage{stageCordon, stageDrain}, 0, true},
		"a bit later":       {[]coordinationv1alpha1.NodeMaintenanceStage{stageCordon, stageDrain}, 600 * time.Millisecond, true},
		"in another second": {[]coordinationv1alpha1.NodeMaintenanceStage{stageCordon, stageDrain}, 1100 * time.Millisecond, true},
		"clocks differ":     {[]coordinationv1alpha1.NodeMaintenanceStage{stageCordon, stageDrain}, -time.Minute, true},
	} {
		m, now := &coordinationv1alpha1.NodeMaintenance{}, start.Add(100*time.Millisecond)
		for _, stage := range test.stages {
			m.Spec.Stage = stage
			m.Status = *Compute(m, &progress.Summary{}, now)
			stored, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			m = &coordinationv1alpha1.NodeMaintenance{}
			if err := json.Unmarshal(stored, m); err != nil {
				t.Fatal(err)
			}
			now = now.Add(test.after)
		}
		if got := progress.CordonedUntil(&m.Status) != nil; got != test.want {
			t.Errorf("%s: %t, stages %v", name, got, m.Status.StageStatuses)
		}
	}
}

// What fails since before the maintenance is as old as it is: another client may have undone the cordon of an earlier
// one. The times of pods are their own.
func TestBlockersAreNotOlderThanTheMaintenance(t *testing.T) {
	const ago = time.Minute
	began := metav1.NewTime(start)
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
	for name, test := range map[string]struct {
		blocker maintenance.Blocker
		started bool
		want    time.Duration
	}{
		"a cordon, since before":      {maintenance.FailedCordon("a", "no", start.Add(-time.Hour)), true, 0},
		"a cordon, since then":        {maintenance.FailedCordon("a", "no", start.Add(ago)), true, ago},
		"a node status, since before": {maintenance.FailedNodeStatus("a", "no", start.Add(-time.Hour)), true, 0},
		"a request, since before":     {maintenance.FailedRequest(pod, "no", start.Add(-time.Hour)), true, 0},
		"a pod that is terminating":   {maintenance.Blocker{Cause: maintenance.BlockerTerminating, Pod: types.NamespacedName{Namespace: "shop", Name: "p"}, Since: ptr.To(metav1.NewTime(start.Add(-time.Hour)))}, true, -time.Hour},
		"before its first status":     {maintenance.FailedCordon("a", "no", start.Add(-time.Hour)), false, ago},
	} {
		m := &coordinationv1alpha1.NodeMaintenance{}
		m.CreationTimestamp, m.Spec.Stage = metav1.NewTime(start.Add(-time.Second)), stageDrain
		if test.started {
			m.Status.StageStatuses = []coordinationv1alpha1.StageStatus{{Name: stageCordon, StartTimestamp: &began}, {Name: stageDrain, StartTimestamp: &began}}
		}
		sums := &progress.Summary{Ready: true, Nodes: 1, Blockers: maintenance.GroupBlockers([]maintenance.Blocker{test.blocker})}
		before := sums.Blockers[0].Since
		got := Compute(m, sums, start.Add(ago)).DrainStatus.Blockers[0].SinceTime
		if !got.Equal(ptr.To(metav1.NewTime(start.Add(test.want)))) || sums.Blockers[0].Since != before {
			t.Errorf("%s: since %v", name, got)
		}
	}
}
