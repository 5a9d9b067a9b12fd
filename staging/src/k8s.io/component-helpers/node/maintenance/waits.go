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

// DescribeWait says for what nodes wait, as in "3 nodes wait ...".
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
		return fmt.Sprintf("for other domains of %s", budget)
	case coordinationv1alpha1.NodeMaintenanceWaitConcurrency:
		return "for spec.rollout.maxConcurrent"
	case coordinationv1alpha1.NodeMaintenanceWaitPaused:
		return "because spec.rollout.paused is set"
	case coordinationv1alpha1.NodeMaintenanceWaitSettling:
		return "until pods that replace those of drained nodes are ready"
	case coordinationv1alpha1.NodeMaintenanceWaitHalted:
		return "because nodes did not come back"
	case coordinationv1alpha1.NodeMaintenanceWaitDisabled:
		return "because the controller has the feature gate NodeMaintenanceBudgets off"
	}
	return "for " + string(wait.Reason)
}
