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
	"fmt"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
)

// WaitText returns what the nodes of a wait wait for, as a sentence: "7 nodes wait for
// NodeMaintenanceBudget workers, which allows no more unavailable nodes". It does not say until when.
func WaitText(wait *coordinationv1alpha1.NodeMaintenanceWait) string {
	nodes := counted(int(wait.NodeCount), "node waits", "nodes wait")
	budget := fmt.Sprintf("%s for NodeMaintenanceBudget %s, ", nodes, wait.Budget)
	switch wait.Reason {
	case coordinationv1alpha1.NodeMaintenanceWaitBudget:
		return budget + "which allows no more unavailable nodes"
	case coordinationv1alpha1.NodeMaintenanceWaitFrozen:
		return budget + "which is frozen: spec.maxUnavailable is 0"
	case coordinationv1alpha1.NodeMaintenanceWaitWindow:
		return budget + "no window of which is open"
	case coordinationv1alpha1.NodeMaintenanceWaitTopology:
		return budget + "which allows no more domains at once"
	case coordinationv1alpha1.NodeMaintenanceWaitConcurrency:
		return nodes + " until others are given back: spec.rollout.maxConcurrent are admitted"
	case coordinationv1alpha1.NodeMaintenanceWaitPaused:
		return nodes + ", because spec.rollout.paused is set"
	case coordinationv1alpha1.NodeMaintenanceWaitSettling:
		return nodes + " until pods that replace those of drained nodes are ready: spec.rollout.settle"
	case coordinationv1alpha1.NodeMaintenanceWaitHalted:
		return nodes + ", because more nodes have failed than spec.rollout.maxFailedNodes"
	case coordinationv1alpha1.NodeMaintenanceWaitDisabled:
		return nodes + ", because the feature gate NodeMaintenanceBudgets is off in kube-controller-manager"
	}
	// A reason of a later release.
	if wait.Budget != "" {
		return budget + string(wait.Reason)
	}
	return fmt.Sprintf("%s: %s", nodes, wait.Reason)
}

// DescribeWait returns for what nodes wait, without their number and without advice, where there is
// little room: "for NodeMaintenanceBudget workers".
func DescribeWait(wait *coordinationv1alpha1.NodeMaintenanceWait) string {
	budget := "NodeMaintenanceBudget " + wait.Budget
	switch wait.Reason {
	case coordinationv1alpha1.NodeMaintenanceWaitBudget:
		return "for " + budget
	case coordinationv1alpha1.NodeMaintenanceWaitFrozen:
		return fmt.Sprintf("for %s, which is frozen", budget)
	case coordinationv1alpha1.NodeMaintenanceWaitWindow:
		if wait.UntilTime == nil {
			return "for a window of " + budget
		}
		return fmt.Sprintf("for the window of %s at %s", budget, wait.UntilTime.UTC().Format(time.RFC3339))
	case coordinationv1alpha1.NodeMaintenanceWaitTopology:
		return "for other domains of " + budget
	case coordinationv1alpha1.NodeMaintenanceWaitConcurrency:
		return "for spec.rollout.maxConcurrent"
	case coordinationv1alpha1.NodeMaintenanceWaitPaused:
		return "because spec.rollout.paused is set"
	case coordinationv1alpha1.NodeMaintenanceWaitSettling:
		return "until replacements of drained pods are ready"
	case coordinationv1alpha1.NodeMaintenanceWaitHalted:
		return "because nodes did not come back"
	case coordinationv1alpha1.NodeMaintenanceWaitDisabled:
		return "because the controller has the feature gate NodeMaintenanceBudgets off"
	}
	return "for " + string(wait.Reason)
}
