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

package internalversion

import (
	"fmt"
	"slices"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/kubernetes/pkg/apis/coordination"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/printers"
)

const (
	// terminatingStage is printed for a maintenance that is being deleted: its stage is about to
	// become Complete, or no controller completes it.
	terminatingStage = "Terminating"

	// haltedStage and pausedStage are printed for rollouts in the stage Drain that begin with no node.
	haltedStage = "Halted"
	pausedStage = "Paused"

	// maxReasonShown limits the width of the column, so that the other columns stay visible.
	// kubectl describe shows the whole reason. A server does not know whether a client prints with
	// -o wide.
	maxReasonShown = 16
)

func addNodeMaintenanceHandlers(h printers.PrintHandler) {
	columns := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
		{Name: "Stage", Type: "string", Description: "Idle, Cordon, Drain or Complete; Terminating while the maintenance is deleted; Halted or Paused while its rollout in the stage Drain begins with no node."},
		{Name: "Nodes", Type: "string", Description: "The number of selected nodes."},
		{Name: "Drained", Type: "string", Description: "The number of selected nodes that are drained."},
		{Name: "Pending", Type: "string", Description: "The number of pods on these nodes whose eviction has not been requested."},
		{Name: "Evicting", Type: "string", Description: "The number of pods on these nodes whose eviction has been requested."},
		{Name: "Blocked", Type: "string", Description: "The number of these pods that are blocked, and of nodes that are blocked, for example because they cannot be cordoned."},
		{Name: "Reason", Type: "string", Description: "Why the nodes are maintained."},
		{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
		{Name: "Waiting", Type: "string", Priority: 1, Description: "The number of selected nodes that wait for their admission."},
		{Name: "Done", Type: "string", Priority: 1, Description: "The number of selected nodes that were given back, and of those that did not come back in time."},
		{Name: "Targets", Type: "string", Priority: 1, Description: "The pods whose eviction is requested on every selected node."},
		{Name: "Message", Type: "string", Priority: 1, Description: "The progress of the drain."},
	}
	// TableHandler logs its errors itself.
	_ = h.TableHandler(columns, printNodeMaintenance)
	_ = h.TableHandler(columns, printNodeMaintenanceList)
}

func printNodeMaintenanceList(list *coordination.NodeMaintenanceList, options printers.GenerateOptions) ([]metav1.TableRow, error) {
	return printEach(list.Items, printNodeMaintenance, options)
}

func printNodeMaintenance(maintenance *coordination.NodeMaintenance, options printers.GenerateOptions) ([]metav1.TableRow, error) {
	stage, drain := string(maintenance.Spec.Stage), maintenance.Status.DrainStatus
	switch rollout := maintenance.Spec.Rollout; {
	case maintenance.DeletionTimestamp != nil:
		stage = terminatingStage
	case !isDraining(maintenance) || rollout == nil:
	case meta.IsStatusConditionTrue(maintenance.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionHalted)):
		stage = haltedStage
	case rollout.Paused:
		stage = pausedStage
	}
	nodes, drained, pending, evicting, blocked := noValue, noValue, noValue, noValue, noValue
	if maintenance.Status.ObservedGeneration > 0 {
		nodes = fmt.Sprint(maintenance.Status.SelectedNodes)
	}
	drains := maintenance.Spec.Stage == coordination.NodeMaintenanceStageDrain
	if isDraining(maintenance) {
		drained = fmt.Sprintf("%d/%d", drain.DrainedNodes, maintenance.Status.SelectedNodes)
		pending, evicting = fmt.Sprint(drain.PodsPendingEvictionRequest), fmt.Sprint(drain.ActiveEvictionRequests)
		blocked = blockedCell(drain.BlockedPods, blockedNodes(&drain))
	} else if pods, nodes := blockedPods(&drain), blockedNodes(&drain); pods+nodes > 0 && !drains && maintenance.Status.ObservedGeneration == maintenance.Generation {
		// Blockers that prevent the stages Cordon and Complete from completing.
		blocked = blockedCell(pods, nodes)
	}
	row := metav1.TableRow{
		Object: runtime.RawExtension{Object: maintenance},
		Cells: []any{
			maintenance.Name, stage, nodes, drained, pending, evicting, blocked,
			maintenanceReason(maintenance.Spec.Reason), translateTimestampSince(maintenance.CreationTimestamp),
		},
	}
	if options.Wide {
		waiting, done := rolloutCells(maintenance)
		row.Cells = append(row.Cells, waiting, done, drainTargets(drain.ReachedDrainTargets), orNoValue(drain.DrainMessage))
	}
	row.Cells = plainCells(row.Cells)
	return []metav1.TableRow{row}, nil
}

// rolloutCells returns how many nodes wait, and how many were given back. Both are shown with -o wide
// only: in the other columns, a row has 100 characters already.
func rolloutCells(maintenance *coordination.NodeMaintenance) (waiting, done string) {
	rollout := maintenance.Status.RolloutStatus
	if rollout == nil || !isDraining(maintenance) {
		return noValue, noValue
	}
	done = fmt.Sprintf("%d/%d", rollout.DoneNodes, maintenance.Status.SelectedNodes)
	if rollout.FailedNodes > 0 {
		done += fmt.Sprintf(", %d failed", rollout.FailedNodes)
	}
	return fmt.Sprint(rollout.WaitingNodes), done
}

// blockedCell formats the number of pods and, if there are any, of nodes.
func blockedCell(pods, nodes int32) string {
	unit := "nodes"
	if nodes == 1 {
		unit = "node"
	}
	switch {
	case nodes == 0:
		return fmt.Sprint(pods)
	case pods == 0:
		return fmt.Sprintf("%d %s", nodes, unit)
	}
	return fmt.Sprintf("%d, %d %s", pods, nodes, unit)
}

// blockedPods returns the number of pods of all blockers.
func blockedPods(drain *coordination.DrainStatus) int32 {
	pods := int32(0)
	for i := range drain.Blockers {
		pods += drain.Blockers[i].PodCount
	}
	return pods
}

// blockedNodes returns the number of nodes of the blockers without pods. It is a maximum and not a
// sum, because a node may have two causes.
func blockedNodes(drain *coordination.DrainStatus) int32 {
	nodes := int32(0)
	for i := range drain.Blockers {
		if drain.Blockers[i].PodCount == 0 {
			nodes = max(nodes, drain.Blockers[i].NodeCount)
		}
	}
	return nodes
}

// isDraining reports whether the counters of the drain are current: the controller has started the
// drain, and it was not ended.
func isDraining(maintenance *coordination.NodeMaintenance) bool {
	return maintenance.DeletionTimestamp == nil && maintenance.Spec.Stage == coordination.NodeMaintenanceStageDrain &&
		slices.ContainsFunc(maintenance.Status.StageStatuses, func(s coordination.StageStatus) bool {
			return s.Name == coordination.NodeMaintenanceStageDrain
		})
}

// maintenanceReason shortens the reason to one short line.
func maintenanceReason(reason string) string {
	reason = plaintext.Line(reason)
	if characters := []rune(reason); len(characters) > maxReasonShown {
		reason = strings.TrimRight(string(characters[:maxReasonShown-3]), " ,;.:") + "..."
	}
	return orNoValue(reason)
}

// drainTargets lists the priority up to which evictions are requested, by pod type and selector.
func drainTargets(entries []api.DrainPlanEntry) string {
	var targets []string
	for _, entry := range entries {
		target := fmt.Sprintf("%s<=%d", entry.PodType, entry.PodPriority)
		if selector := entry.PodSelector; selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
			target += "{" + metav1.FormatLabelSelector(selector) + "}"
		}
		targets = append(targets, target)
	}
	return orNoValue(strings.Join(targets, ","))
}

func orNoValue(text string) string {
	if text == "" {
		return noValue
	}
	return text
}
