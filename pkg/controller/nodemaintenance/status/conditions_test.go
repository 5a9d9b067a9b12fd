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
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
)

// TestOverdue verifies when the next blocker makes a maintenance stalled, and that those count at once which do not say
// since when they are there.
func TestOverdue(t *testing.T) {
	group := func(cause maintenance.BlockerCause, since time.Duration) maintenance.BlockerGroup {
		at := metav1.NewTime(start.Add(-since))
		return maintenance.BlockerGroup{Cause: cause, Since: &at}
	}
	sums := progress.Summary{Blockers: []maintenance.BlockerGroup{
		group(maintenance.BlockerDisruptionBudget, 2*time.Minute), group(maintenance.BlockerEvictionRefused, 4*time.Minute), group(maintenance.BlockerStuckTerminating, 3*time.Minute),
		group(maintenance.BlockerEvicting, time.Hour),
	}}
	groups, _, next := Overdue(&sums, &coordinationv1alpha1.NodeMaintenanceStatus{}, start)
	if len(groups) != 0 || next != time.Minute {
		t.Errorf("%d are overdue, the next one after %v", len(groups), next)
	}
	sums.ReleaseBlockers = []maintenance.BlockerGroup{{Cause: maintenance.BlockerRequestFailed}}
	if groups, _, _ = Overdue(&sums, &coordinationv1alpha1.NodeMaintenanceStatus{}, start); len(groups) != 1 {
		t.Errorf("%d are overdue, of which one does not say since when", len(groups))
	}
}
