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
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// keepComplete keeps the stage of a maintenance that has ended. Tools apply the manifest from a repository again and
// again, which says Drain, also after somebody has completed the maintenance, or while it is being deleted. An error
// would keep them from applying anything else; going back is what validation refuses.
//
// It is done here and not in the registry, because the API server compares field owners and objects after admission:
// an apply that changes nothing else writes nothing.
func keepComplete(ctx context.Context, maintenance, old *coordination.NodeMaintenance) {
	if old.Spec.Stage != coordination.NodeMaintenanceStageComplete {
		return
	}
	switch stage := maintenance.Spec.Stage; stage {
	case coordination.NodeMaintenanceStageIdle, coordination.NodeMaintenanceStageCordon, coordination.NodeMaintenanceStageDrain:
		maintenance.Spec.Stage = old.Spec.Stage
		warning.AddWarning(ctx, "", fmt.Sprintf("spec.stage stays Complete: NodeMaintenance %q has ended, so %s has no effect; "+
			"to maintain its nodes again, create another NodeMaintenance, or delete this one first", old.Name, stage))
	}
}
