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

package progress

import (
	"slices"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
)

const (
	stageIdle     = coordinationv1alpha1.NodeMaintenanceStageIdle
	stageCordon   = coordinationv1alpha1.NodeMaintenanceStageCordon
	stageDrain    = coordinationv1alpha1.NodeMaintenanceStageDrain
	stageComplete = coordinationv1alpha1.NodeMaintenanceStageComplete
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func plan(entries ...v1.DrainPlanEntry) []v1.DrainPlanEntry { return maintenance.CompletePlan(entries) }

func entry(podType v1.PodType, priority int32) v1.DrainPlanEntry {
	return v1.DrainPlanEntry{PodType: podType, PodPriority: priority}
}

func entryFor(app string, podType v1.PodType, priority int32) v1.DrainPlanEntry {
	return v1.DrainPlanEntry{PodType: podType, PodPriority: priority, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
}

// termFor selects a node by its name (even i, like kubectl) or by its hostname label (like users).
func termFor(i int, name string) v1.NodeSelectorTerm {
	if i%2 == 0 {
		return v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{name}}}}
	}
	return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{name}}}}
}

func expectNames(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
