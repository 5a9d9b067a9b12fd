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

package maintenance

import (
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestWaitText(t *testing.T) {
	type wait = coordinationv1alpha1.NodeMaintenanceWait
	opens := ptr.To(metav1.NewTime(time.Date(2026, 11, 25, 1, 0, 0, 0, time.UTC)))
	for _, test := range []struct {
		wait wait
		want string
	}{
		{wait{Reason: "Budget", Budget: "workers", NodeCount: 7}, "7 nodes wait for NodeMaintenanceBudget workers, which allows no more unavailable nodes"},
		{wait{Reason: "Frozen", Budget: "stop", NodeCount: 1}, "1 node waits for NodeMaintenanceBudget stop, which is frozen: spec.maxUnavailable is 0"},
		{wait{Reason: "Window", Budget: "nights", NodeCount: 2}, "2 nodes wait for a window of NodeMaintenanceBudget nights, and in the next 30 days there is none in which all budgets of the nodes are open: change spec.windows"},
		{wait{Reason: "Window", Budget: "nights", NodeCount: 2, UntilTime: opens}, "2 nodes wait for the window of NodeMaintenanceBudget nights at 01:00"},
		{wait{Reason: "Topology", Budget: "zones", NodeCount: 2}, "2 nodes wait for NodeMaintenanceBudget zones, which allows no more domains"},
		{wait{Reason: "MaxConcurrent", NodeCount: 2}, "2 nodes wait until others are given back: spec.rollout.maxConcurrent are admitted"},
		{wait{Reason: "Paused", NodeCount: 2}, "2 nodes wait because spec.rollout.paused is set"},
		{wait{Reason: "Settling", NodeCount: 2}, "2 nodes wait until pods that replace those of drained nodes are ready: spec.rollout.settle"},
		{wait{Reason: "Settling", NodeCount: 2, UntilTime: opens}, "2 nodes wait until pods that replace those of drained nodes are ready, at most until 01:00: spec.rollout.settle"},
		{wait{Reason: "OlderMaintenance", Budget: "zones", NodeCount: 2}, "2 nodes wait for an older NodeMaintenance, which waits for another domain of NodeMaintenanceBudget zones"},
		{wait{Reason: "NotCurrent", NodeCount: 2}, "2 nodes wait because kube-controller-manager does not have the current nodes or NodeMaintenanceBudgets: see its log"},
		{wait{Reason: "Halted", NodeCount: 2}, "2 nodes wait because more nodes have failed than spec.rollout.maxFailedNodes"},
		{wait{Reason: "Disabled", NodeCount: 2}, "2 nodes wait because the feature gate NodeMaintenanceBudgets is off in kube-controller-manager"},
		{wait{Reason: "AdmissionFailed", NodeCount: 2}, "2 nodes wait because the API server does not store their admission: see the events of kubectl describe nodemaintenance"},
		{wait{Reason: "StatusFailed", NodeCount: 2}, "2 nodes wait because the status of the NodeMaintenance cannot be written: see the events of kubectl describe nodemaintenance"},
		{wait{Reason: "StatusFailed", Budget: "workers", NodeCount: 2}, "2 nodes wait for NodeMaintenanceBudget workers, whose status cannot be written: see the events of kubectl describe nodemaintenancebudget"},
		{wait{Reason: "Moon", NodeCount: 0}, "0 nodes wait for Moon"},
		{wait{Reason: "Moon", Budget: "nights", NodeCount: 2}, "2 nodes wait for NodeMaintenanceBudget nights, Moon"},
	} {
		format := func(at metav1.Time) string { return at.Format("15:04") }
		if test.wait.UntilTime == nil && WaitSentence(&test.wait) != test.want+"." {
			t.Errorf("%s: got %q, want %q and a point", test.wait.Reason, WaitSentence(&test.wait), test.want)
		}
		if got := WaitText(&test.wait, format); got != test.want {
			t.Errorf("%s: got %q, want %q", test.wait.Reason, got, test.want)
		}
	}
}
