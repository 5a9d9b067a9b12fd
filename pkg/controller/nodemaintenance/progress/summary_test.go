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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/metrics"
)

// Blockers of nodes that are still to be released have ages, too. Only budgets that have a name are
// counted as budgets, each once.
func TestCountGroups(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(minutes int) *metav1.Time {
		return &metav1.Time{Time: now.Add(-time.Duration(minutes) * time.Minute)}
	}
	p := newMaintenanceProgress(Spec{Name: "m", Effective: true, Stage: stageDrain, Plan: &maintenance.Plan{}}, 0)
	p.unreleased["released"] = &nodeRelease{blockers: []maintenance.BlockerGroup{{Cause: maintenance.BlockerCordonFailed, Nodes: 1, Since: ago(7)}}}
	p.nodes["n"] = &nodeProgress{Decision: Decision{Blockers: []maintenance.BlockerGroup{
		{Cause: maintenance.BlockerDisruptionBudget, Pods: 1, Since: ago(1)}, // Its budget has gone.
		{Cause: maintenance.BlockerDisruptionBudget, Name: "shop/web", Pods: 2, Since: ago(3)},
		{Cause: maintenance.BlockerDisruptionBudget, Name: "shop/db", Pods: 4, Since: ago(2)},
		{Cause: maintenance.BlockerInterceptorUnresponsive, Name: "a.example.com", Pods: 8, Since: ago(90), OverdueSince: ago(30)},
		{Cause: maintenance.BlockerInterceptor, Name: "b.example.com", Pods: 16, Since: ago(60)},
	}}}
	p.nodes["o"] = &nodeProgress{Decision: Decision{Blockers: []maintenance.BlockerGroup{
		{Cause: maintenance.BlockerDisruptionBudget, Name: "shop/db", Pods: 32, Since: ago(2)},
	}}}
	store := NewStore(NewLimits())
	store.maintenances["m"] = p
	want := metrics.Counts{
		Nodes:        map[coordinationv1alpha1.NodeMaintenanceStage]int{stageDrain: 2},
		BlockedPods:  map[maintenance.BlockerCause]int{maintenance.BlockerDisruptionBudget: 1 + 2 + 4 + 32, maintenance.BlockerInterceptorUnresponsive: 8},
		WaitingNodes: map[coordinationv1alpha1.NodeMaintenanceWaitReason]int{}, BlockedNodes: map[maintenance.BlockerCause]int{maintenance.BlockerCordonFailed: 1},
		BlockingBudgets: 2,
		OldestBlocker: map[maintenance.BlockerCause]time.Duration{
			maintenance.BlockerCordonFailed: 7 * time.Minute, maintenance.BlockerDisruptionBudget: 3 * time.Minute, maintenance.BlockerInterceptorUnresponsive: 30 * time.Minute,
		},
	}
	if diff := cmp.Diff(want, store.Count(now)); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}
