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

package internalversion

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubernetes/pkg/apis/coordination"
	api "k8s.io/kubernetes/pkg/apis/core"
	internalprinters "k8s.io/kubernetes/pkg/printers"
)

// nodeMaintenances returns one maintenance in every stage, printed at now.
func nodeMaintenances(now time.Time) []coordination.NodeMaintenance {
	const idle, cordon, drain, complete = coordination.NodeMaintenanceStageIdle, coordination.NodeMaintenanceStageCordon, coordination.NodeMaintenanceStageDrain, coordination.NodeMaintenanceStageComplete
	started := func(stages ...coordination.NodeMaintenanceStage) (statuses []coordination.StageStatus) {
		for _, stage := range stages {
			statuses = append(statuses, coordination.StageStatus{Name: stage})
		}
		return statuses
	}
	postgres := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "postgres"}}
	progress := coordination.DrainStatus{
		ReachedDrainTargets: []api.DrainPlanEntry{
			{PodType: api.PodTypeDefault, PodPriority: 2147483647}, {PodType: api.PodTypeDefault, PodPriority: 2147483647, PodSelector: postgres},
			{PodType: api.PodTypeDaemonSet, PodPriority: 1000, PodSelector: &metav1.LabelSelector{}},
		},
		PodsPendingEvictionRequest: 12, ActiveEvictionRequests: 4, DrainedNodes: 3, BlockedPods: 2, DrainMessage: "Draining (limited by firmware)",
	}
	maintenances := []coordination.NodeMaintenance{
		{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Spec: coordination.NodeMaintenanceSpec{Stage: drain, Reason: "firmware"}},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "planned"},
			Spec:       coordination.NodeMaintenanceSpec{Stage: idle, Reason: "sixteen letters!"},
			Status:     coordination.NodeMaintenanceStatus{ObservedGeneration: 1, SelectedNodes: 5},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "nothing"},
			Spec:       coordination.NodeMaintenanceSpec{Stage: cordon, Reason: "ünïcödé röüter 2"},
			Status:     coordination.NodeMaintenanceStatus{ObservedGeneration: 1, StageStatuses: started(cordon)},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "asked"},
			Spec:       coordination.NodeMaintenanceSpec{Stage: drain},
			Status:     coordination.NodeMaintenanceStatus{ObservedGeneration: 1, SelectedNodes: 5, StageStatuses: started(cordon)},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "upgrade"},
			Spec:       coordination.NodeMaintenanceSpec{Stage: drain, Reason: "kernel\n6.12, as announced on Monday"},
			Status:     coordination.NodeMaintenanceStatus{ObservedGeneration: 2, SelectedNodes: 5, StageStatuses: started(cordon, drain), DrainStatus: progress},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "done"},
			Spec:       coordination.NodeMaintenanceSpec{Stage: complete},
			Status:     coordination.NodeMaintenanceStatus{ObservedGeneration: 3, SelectedNodes: 5, StageStatuses: started(cordon, drain, complete), DrainStatus: progress},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "deleted", DeletionTimestamp: &metav1.Time{Time: now}},
			Spec:       coordination.NodeMaintenanceSpec{Stage: drain, Reason: "repair"},
			Status:     coordination.NodeMaintenanceStatus{ObservedGeneration: 2, SelectedNodes: 1, StageStatuses: started(cordon, drain), DrainStatus: progress},
		},
	}
	uncordonable := coordination.DrainBlocker{Cause: "CordonFailed", NodeCount: 2}
	mixed, alone := progress, progress
	mixed.Blockers = []coordination.DrainBlocker{{Cause: "CordonFailed", NodeCount: 1}, {Cause: "DisruptionBudget", PodCount: 2, NodeCount: 1}}
	alone.Blockers, alone.BlockedPods = []coordination.DrainBlocker{uncordonable}, 0
	withdrawals := coordination.DrainStatus{Blockers: []coordination.DrainBlocker{{Cause: "RequestFailed", PodCount: 3, NodeCount: 2}}}
	for _, blocked := range []struct {
		name       string
		stage      coordination.NodeMaintenanceStage
		status     coordination.DrainStatus
		generation int64
	}{
		{"refused", cordon, coordination.DrainStatus{Blockers: []coordination.DrainBlocker{uncordonable}}, 3},
		{"refused-drain", drain, alone, 3}, {"both", drain, mixed, 3}, {"stuck", complete, withdrawals, 3}, {"ending", complete, withdrawals, 4},
	} {
		maintenances = append(maintenances, coordination.NodeMaintenance{
			ObjectMeta: metav1.ObjectMeta{Name: blocked.name, Generation: blocked.generation},
			Spec:       coordination.NodeMaintenanceSpec{Stage: blocked.stage},
			Status:     coordination.NodeMaintenanceStatus{ObservedGeneration: 3, SelectedNodes: 5, StageStatuses: started(cordon, blocked.stage), DrainStatus: blocked.status},
		})
	}
	rolled, over := coordination.NodeMaintenanceRolloutStatus{WaitingNodes: 37, AdmittedNodes: 20, DoneNodes: 3}, coordination.NodeMaintenanceRolloutStatus{DoneNodes: 59}
	failed := rolled
	failed.FailedNodes = 1
	for _, rollout := range []struct {
		name   string
		stage  coordination.NodeMaintenanceStage
		status coordination.NodeMaintenanceRolloutStatus
	}{{"rollout", drain, rolled}, {"failed", drain, failed}, {"rolled-out", complete, over}} {
		maintenances = append(maintenances, coordination.NodeMaintenance{
			ObjectMeta: metav1.ObjectMeta{Name: rollout.name},
			Spec:       coordination.NodeMaintenanceSpec{Stage: rollout.stage, Reason: "kernel"},
			Status:     coordination.NodeMaintenanceStatus{ObservedGeneration: 3, SelectedNodes: 60, StageStatuses: started(cordon, rollout.stage), DrainStatus: progress, RolloutStatus: &rollout.status},
		})
	}
	halted := []metav1.Condition{{Type: "Halted", Status: metav1.ConditionTrue}}
	for _, stopped := range []struct {
		name       string
		stage      coordination.NodeMaintenanceStage
		paused     bool
		conditions []metav1.Condition
	}{{"paused", drain, true, nil}, {"halted", drain, true, halted}, {"was-halted", complete, true, halted}} {
		maintenances = append(maintenances, coordination.NodeMaintenance{
			ObjectMeta: metav1.ObjectMeta{Name: stopped.name},
			Spec:       coordination.NodeMaintenanceSpec{Stage: stopped.stage, Rollout: &coordination.NodeMaintenanceRollout{Paused: stopped.paused}},
			Status:     coordination.NodeMaintenanceStatus{ObservedGeneration: 3, SelectedNodes: 60, StageStatuses: started(cordon, stopped.stage), DrainStatus: progress, RolloutStatus: &rolled, Conditions: stopped.conditions},
		})
	}
	for i := range maintenances {
		maintenances[i].CreationTimestamp = metav1.Time{Time: now.Add(-time.Duration(i) * time.Hour)}
	}
	return maintenances
}

// TestPrintNodeMaintenances compares the output of "kubectl get nm" and "-o wide".
func TestPrintNodeMaintenances(t *testing.T) {
	for file, wide := range map[string]bool{"nodemaintenances.txt": false, "nodemaintenances-wide.txt": true} {
		t.Run(file, func(t *testing.T) {
			// In the synctest bubble, the time is constant while the rows are printed.
			synctest.Test(t, func(t *testing.T) {
				list := &coordination.NodeMaintenanceList{Items: nodeMaintenances(time.Now())}
				generator := internalprinters.NewTableGenerator().With(addNodeMaintenanceHandlers)
				// Like in an API server: the client omits columns.
				table, err := generator.GenerateTable(list, internalprinters.GenerateOptions{Wide: true})
				if err != nil {
					t.Fatal(err)
				}
				var output bytes.Buffer
				if err := printers.NewTablePrinter(printers.PrintOptions{Wide: wide}).PrintObj(table, &output); err != nil {
					t.Fatal(err)
				}
				compareWithGolden(t, file, trimLines(output.String()))
			})
		})
	}
}

func TestMaintenanceReason(t *testing.T) {
	long := strings.Repeat("ö", 17)
	for name, test := range map[string]struct {
		reason string
		want   string
	}{
		"none":                               {want: "<none>"},
		"only blanks":                        {reason: " \n\t", want: "<none>"},
		"several lines":                      {reason: "a\n b\r\n\tc", want: "a b c"},
		"as long as allowed":                 {reason: long[2:], want: long[2:]},
		"one character more":                 {reason: long, want: strings.Repeat("ö", 13) + "..."},
		"no punctuation before the ellipsis": {reason: "twelve lette, and more", want: "twelve lette..."},
	} {
		if got := maintenanceReason(test.reason); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
