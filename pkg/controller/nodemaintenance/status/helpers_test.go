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
	"slices"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
)

const (
	stageIdle   = coordinationv1alpha1.NodeMaintenanceStageIdle
	stageCordon = coordinationv1alpha1.NodeMaintenanceStageCordon
	stageDrain  = coordinationv1alpha1.NodeMaintenanceStageDrain
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func entry(podType v1.PodType, priority int32) v1.DrainPlanEntry {
	return v1.DrainPlanEntry{PodType: podType, PodPriority: priority}
}

func expectNames(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
