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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
)

func TestWaitText(t *testing.T) {
	for _, test := range []struct {
		wait coordinationv1alpha1.NodeMaintenanceWait
		want string
	}{
		{coordinationv1alpha1.NodeMaintenanceWait{Reason: "Budget", Budget: "workers", NodeCount: 7}, "7 nodes wait for NodeMaintenanceBudget workers, which allows no more unavailable nodes"},
		{coordinationv1alpha1.NodeMaintenanceWait{Reason: "Frozen", Budget: "stop", NodeCount: 1}, "1 node waits for NodeMaintenanceBudget stop, which is frozen: spec.maxUnavailable is 0"},
		{coordinationv1alpha1.NodeMaintenanceWait{Reason: "Window", Budget: "nights", NodeCount: 2}, "2 nodes wait for NodeMaintenanceBudget nights, no window of which is open"},
		{coordinationv1alpha1.NodeMaintenanceWait{Reason: "Topology", Budget: "zones", NodeCount: 2}, "2 nodes wait for NodeMaintenanceBudget zones, which allows no more domains at once"},
		{coordinationv1alpha1.NodeMaintenanceWait{Reason: "MaxConcurrent", NodeCount: 2}, "2 nodes wait until others are given back: spec.rollout.maxConcurrent are admitted"},
		{coordinationv1alpha1.NodeMaintenanceWait{Reason: "Paused", NodeCount: 2}, "2 nodes wait, because spec.rollout.paused is set"},
		{coordinationv1alpha1.NodeMaintenanceWait{Reason: "Settling", NodeCount: 2}, "2 nodes wait until pods that replace those of drained nodes are ready: spec.rollout.settle"},
		{coordinationv1alpha1.NodeMaintenanceWait{Reason: "Halted", NodeCount: 2}, "2 nodes wait, because more nodes have failed than spec.rollout.maxFailedNodes"},
		{coordinationv1alpha1.NodeMaintenanceWait{Reason: "Disabled", NodeCount: 2}, "2 nodes wait, because the feature gate NodeMaintenanceBudgets is off in kube-controller-manager"},
		{coordinationv1alpha1.NodeMaintenanceWait{Reason: "Moon", NodeCount: 0}, "0 nodes wait: Moon"},
		{coordinationv1alpha1.NodeMaintenanceWait{Reason: "Moon", Budget: "nights", NodeCount: 2}, "2 nodes wait for NodeMaintenanceBudget nights, Moon"},
	} {
		if got := WaitText(&test.wait); got != test.want {
			t.Errorf("%s: got %q, want %q", test.wait.Reason, got, test.want)
		}
	}
}
