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
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

// stagesOf lists the stages that are started when the administrator asks for one: to
// drain a node is to cordon it too.
var stagesOf = map[coordinationv1alpha1.NodeMaintenanceStage][]coordinationv1alpha1.NodeMaintenanceStage{
	coordinationv1alpha1.NodeMaintenanceStageIdle:     {coordinationv1alpha1.NodeMaintenanceStageIdle},
	coordinationv1alpha1.NodeMaintenanceStageCordon:   {coordinationv1alpha1.NodeMaintenanceStageCordon},
	coordinationv1alpha1.NodeMaintenanceStageDrain:    {coordinationv1alpha1.NodeMaintenanceStageCordon, coordinationv1alpha1.NodeMaintenanceStageDrain},
	coordinationv1alpha1.NodeMaintenanceStageComplete: {coordinationv1alpha1.NodeMaintenanceStageComplete},
}

// computeStatus returns what the status of a maintenance should be. As long as a drain has not
// counted all of its nodes, what is there stays, with the generation that it is about: who
// reads a new generation beside an old Drained would take nodes for drained that are not.
func computeStatus(m *coordinationv1alpha1.NodeMaintenance, sums *summary, now time.Time) *coordinationv1alpha1.NodeMaintenanceStatus {
	status := m.Status.DeepCopy()
	for _, stage := range stagesOf[m.Spec.Stage] {
		if !hasStarted(status, stage) {
			status.StageStatuses = append(status.StageStatuses, coordinationv1alpha1.StageStatus{Name: stage, StartTimestamp: ptr.To(metav1.NewTime(now))})
		}
	}
	if m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain && !sums.ready {
		return status
	}
	status.ObservedGeneration = m.Generation
	status.SelectedNodes = int32(sums.nodes)
	switch m.Spec.Stage {
	case coordinationv1alpha1.NodeMaintenanceStageDrain:
		status.DrainStatus = computeDrainStatus(sums)
		setCondition(status, drainedCondition(sums), m.Generation, now)
	case coordinationv1alpha1.NodeMaintenanceStageCordon:
		if sums.ready {
			status.DrainStatus.Blockers, status.DrainStatus.BlockerCount = blockersOf(sums)
		}
	case coordinationv1alpha1.NodeMaintenanceStageComplete:
		// What the drain had reached stays there to read. Blocked are only nodes that cannot be
		// given back, and what cannot be withdrawn: until all of them were looked at, what was
		// found before, but not what a drain has waited for.
		if sums.ready {
			status.DrainStatus.Blockers, status.DrainStatus.BlockerCount = completionBlockers(sums.delays)
		} else if !hasStarted(&m.Status, m.Spec.Stage) {
			status.DrainStatus.Blockers, status.DrainStatus.BlockerCount = nil, 0
		}
		if drained := findDrained(status); drained != nil && drained.Status != metav1.ConditionTrue {
			setCondition(status, metav1.Condition{
				Status: metav1.ConditionFalse, Reason: coordinationv1alpha1.NodeMaintenanceReasonNotDraining,
				Message: "The maintenance was completed before its nodes were drained.",
			}, m.Generation, now)
		}
	}
	return status
}

// blockersOf returns the blockers of a maintenance that holds nodes. Those of nodes that it does not
// select any more have the words of the stage Complete.
func blockersOf(sums *summary) ([]coordinationv1alpha1.DrainBlocker, int32) {
	blockers, total := maintenance.Blockers(maintenance.MergeGroups(sums.holds, sums.delays))
	held, _ := maintenance.Blockers(sums.holds)
	delays, _ := completionBlockers(sums.delays)
	for i := range blockers {
		b := &blockers[i]
		same := func(other coordinationv1alpha1.DrainBlocker) bool {
			return other.Cause == b.Cause && other.Name == b.Name
		}
		at := slices.IndexFunc(delays, same)
		if at < 0 || b.Cause == coordinationv1alpha1.DrainBlockerNodeStatusFailed {
			continue
		}
		b.Message = delays[at].Message
		if at = slices.IndexFunc(held, same); at >= 0 {
			b.Message = shorten(held[at].Message + "; " + b.Message)
		}
	}
	return blockers, total
}

// completionBlockers returns failed withdrawals and uncordons, which have the causes and the form of
// failed requests and cordons, with words of their own.
func completionBlockers(groups []maintenance.HoldGroup) ([]coordinationv1alpha1.DrainBlocker, int32) {
	blockers, total := maintenance.Blockers(groups)
	for i := range blockers {
		b := &blockers[i]
		at := slices.IndexFunc(groups, func(g maintenance.HoldGroup) bool {
			return g.Cause == maintenance.HoldCause(b.Cause) && g.Name == b.Name
		})
		text := ""
		switch b.Cause {
		case coordinationv1alpha1.DrainBlockerRequestFailed:
			text = fmt.Sprintf("%s in namespace %s is still asked to leave: its request cannot be withdrawn", count(int(b.PodCount), "pod"), b.Name)
			if b.PodCount != 1 {
				text = fmt.Sprintf("%s in namespace %s are still asked to leave: their requests cannot be withdrawn", count(int(b.PodCount), "pod"), b.Name)
			}
		case coordinationv1alpha1.DrainBlockerCordonFailed:
			text = count(int(b.NodeCount), "node") + " cannot be made schedulable"
		default:
			continue
		}
		b.Message = shorten(fmt.Sprintf("%s (since %s, %s)", text, b.SinceTime.UTC().Format(time.RFC3339), groups[at].Message))
	}
	return blockers, total
}

func hasStarted(status *coordinationv1alpha1.NodeMaintenanceStatus, stage coordinationv1alpha1.NodeMaintenanceStage) bool {
	return slices.ContainsFunc(status.StageStatuses, func(s coordinationv1alpha1.StageStatus) bool { return s.Name == stage })
}

// startOf returns when a stage was started; nil if it was not.
func startOf(status *coordinationv1alpha1.NodeMaintenanceStatus, stage coordinationv1alpha1.NodeMaintenanceStage) *metav1.Time {
	for i := range status.StageStatuses {
		if status.StageStatuses[i].Name == stage {
			return status.StageStatuses[i].StartTimestamp
		}
	}
	return nil
}

func computeDrainStatus(sums *summary) coordinationv1alpha1.DrainStatus {
	status := coordinationv1alpha1.DrainStatus{
		ReachedDrainTargets:        sums.reached.Entries(),
		PodsPendingEvictionRequest: int32(sums.pending),
		ActiveEvictionRequests:     int32(sums.active),
		DrainPlanPosition:          ptr.To(int32(sums.position)),
		DrainedNodes:               int32(sums.drained),
		BlockedPods:                int32(sums.blocked),
	}
	status.Blockers, status.BlockerCount = blockersOf(sums)
	if sums.nodes > 0 {
		status.DrainMessage = sums.state.message()
	}
	return status
}

// drainedCondition says whether the nodes are drained, and otherwise what is blocking.
func drainedCondition(sums *summary) metav1.Condition {
	if sums.nodes == 0 {
		return metav1.Condition{
			Status: metav1.ConditionFalse, Reason: coordinationv1alpha1.NodeMaintenanceReasonNoNodes,
			Message: "spec.nodeSelector matches no node.",
		}
	}
	if sums.state.isDrained() {
		return metav1.Condition{
			Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.NodeMaintenanceReasonDrained,
			Message: fmt.Sprintf("No pod is left on %s.", count(sums.nodes, "node")),
		}
	}
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: drainReason(sums), Message: strings.Join(drainSentences(sums), " ")}
}

func drainReason(sums *summary) string {
	switch {
	case slices.ContainsFunc(sums.holds, func(g maintenance.HoldGroup) bool { return g.Cause.Blocked() }):
		return coordinationv1alpha1.NodeMaintenanceReasonBlocked
	case !sums.state.draining && len(sums.state.waitingFor) > 0:
		return coordinationv1alpha1.NodeMaintenanceReasonWaiting
	}
	return coordinationv1alpha1.NodeMaintenanceReasonDraining
}

func drainSentences(sums *summary) []string {
	var sentences []string
	if sums.state.left {
		sentences = append(sentences, fmt.Sprintf("%s left on %d of %s.", count(sums.left, "pod"), sums.nodes-sums.drained, count(sums.nodes, "node")))
	}
	if sums.uncordoned > 0 {
		sentences = append(sentences, fmt.Sprintf("%d of %s not cordoned.", sums.uncordoned, count(sums.nodes, "node")))
	}
	if message := sums.state.message(); message != messageDraining {
		sentences = append(sentences, strings.TrimSuffix(message, ".")+".")
	}
	if sums.unplanned > 0 {
		sentences = append(sentences, fmt.Sprintf("%s in no entry of spec.drainPlan: the admission plugin NodeMaintenance adds the standard entries on creation.", count(sums.unplanned, "pod")))
	}
	if holds := maintenance.HoldMessage(sums.holds); holds != "" {
		sentences = append(sentences, holds)
	}
	return sentences
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func findDrained(status *coordinationv1alpha1.NodeMaintenanceStatus) *metav1.Condition {
	return meta.FindStatusCondition(status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained))
}

func setCondition(status *coordinationv1alpha1.NodeMaintenanceStatus, condition metav1.Condition, generation int64, now time.Time) {
	condition.Type = string(coordinationv1alpha1.NodeMaintenanceConditionDrained)
	condition.ObservedGeneration = generation
	condition.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(&status.Conditions, condition)
}

// podTypesDone returns the pod types of which no pod was left when this status was
// written: those whose entries are all behind the position.
func podTypesDone(m *coordinationv1alpha1.NodeMaintenance, status *coordinationv1alpha1.NodeMaintenanceStatus) []v1.PodType {
	if status.DrainStatus.DrainPlanPosition == nil {
		return nil
	}
	drained := findDrained(status)
	all := drained != nil && drained.Status == metav1.ConditionTrue
	var done []v1.PodType
	for _, podType := range []v1.PodType{v1.PodTypeDefault, v1.PodTypeDaemonSet, v1.PodTypeStatic} {
		last := -1
		for i := range m.Spec.DrainPlan {
			if m.Spec.DrainPlan[i].PodType == podType {
				last = i
			}
		}
		if all || last >= 0 && last < int(*status.DrainStatus.DrainPlanPosition) {
			done = append(done, podType)
		}
	}
	return done
}
