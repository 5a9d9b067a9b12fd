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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WaitText returns what the nodes of a wait wait for, as a sentence: "7 nodes wait for
// NodeMaintenanceBudget workers, which allows no more unavailable nodes". See WaitCause.
func WaitText(wait *coordinationv1alpha1.NodeMaintenanceWait, formatTime func(metav1.Time) string) string {
	return counted(int(wait.NodeCount), "node waits ", "nodes wait ") + WaitCause(wait, formatTime)
}

// WaitSentence returns WaitText as a sentence of the condition Drained, with the time in UTC.
func WaitSentence(wait *coordinationv1alpha1.NodeMaintenanceWait) string {
	return WaitText(wait, func(at metav1.Time) string { return at.UTC().Format(time.RFC3339) }) + "."
}

// IsNeverOpen reports whether the budgets of the nodes are never open together, as far as the controller looks
// ahead: somebody has to change spec.windows of one of them.
func IsNeverOpen(wait *coordinationv1alpha1.NodeMaintenanceWait) bool {
	return wait.Reason == coordinationv1alpha1.NodeMaintenanceWaitWindow && wait.UntilTime == nil
}

// WaitCause returns what follows the word "wait": "for NodeMaintenanceBudget workers, which allows no
// more unavailable nodes". It names the field that ends the wait. formatTime formats the time at which
// a window opens: a condition has absolute times, a terminal those of the reader.
func WaitCause(wait *coordinationv1alpha1.NodeMaintenanceWait, formatTime func(metav1.Time) string) string {
	budget := "for NodeMaintenanceBudget " + wait.Budget + ", "
	switch wait.Reason {
	case coordinationv1alpha1.NodeMaintenanceWaitBudget:
		return budget + "which allows no more unavailable nodes"
	case coordinationv1alpha1.NodeMaintenanceWaitFrozen:
		return budget + "which is frozen: spec.maxUnavailable is 0"
	case coordinationv1alpha1.NodeMaintenanceWaitWindow:
		if IsNeverOpen(wait) {
			return "for a window of NodeMaintenanceBudget " + wait.Budget + ", and in the next 30 days there is none in which all budgets of the nodes are open: change spec.windows"
		}
		return "for the window of NodeMaintenanceBudget " + wait.Budget + " at " + formatTime(*wait.UntilTime)
	case coordinationv1alpha1.NodeMaintenanceWaitTopology:
		return budget + "which allows no more domains"
	case coordinationv1alpha1.NodeMaintenanceWaitOlderMaintenance:
		return "for an older NodeMaintenance, which waits for another domain of NodeMaintenanceBudget " + wait.Budget
	case coordinationv1alpha1.NodeMaintenanceWaitConcurrency:
		return "until others are given back: spec.rollout.maxConcurrent are admitted"
	case coordinationv1alpha1.NodeMaintenanceWaitPaused:
		return "because spec.rollout.paused is set"
	case coordinationv1alpha1.NodeMaintenanceWaitSettling:
		until := ""
		if wait.UntilTime != nil {
			until = ", at most until " + formatTime(*wait.UntilTime)
		}
		return "until pods that replace those of drained nodes are ready" + until + ": spec.rollout.settle"
	case coordinationv1alpha1.NodeMaintenanceWaitHalted:
		return "because more nodes have failed than spec.rollout.maxFailedNodes"
	case coordinationv1alpha1.NodeMaintenanceWaitDisabled:
		return "because the feature gate NodeMaintenanceBudgets is off in kube-controller-manager"
	case coordinationv1alpha1.NodeMaintenanceWaitAdmissionFailed:
		return "because the API server does not store their admission: see the events of kubectl describe nodemaintenance"
	case coordinationv1alpha1.NodeMaintenanceWaitStatusFailed:
		if wait.Budget == "" {
			return "because the status of the NodeMaintenance cannot be written: see the events of kubectl describe nodemaintenance"
		}
		return budget + "whose status cannot be written: see the events of kubectl describe nodemaintenancebudget"
	case coordinationv1alpha1.NodeMaintenanceWaitBeingRemoved:
		return "because others remove the nodes: they are being deleted, or have a taint that says so"
	case coordinationv1alpha1.NodeMaintenanceWaitNotCurrent:
		return "because kube-controller-manager does not have the current nodes or NodeMaintenanceBudgets: see its log"
	}
	// A reason of a later release.
	if wait.Budget != "" {
		return budget + string(wait.Reason)
	}
	return "for " + string(wait.Reason)
}
