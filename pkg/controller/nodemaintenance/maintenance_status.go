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

// stagesOf lists the stages that start with the one of the spec: a drain includes a cordon.
var stagesOf = map[coordinationv1alpha1.NodeMaintenanceStage][]coordinationv1alpha1.NodeMaintenanceStage{
	coordinationv1alpha1.NodeMaintenanceStageIdle:     {coordinationv1alpha1.NodeMaintenanceStageIdle},
	coordinationv1alpha1.NodeMaintenanceStageCordon:   {coordinationv1alpha1.NodeMaintenanceStageCordon},
	coordinationv1alpha1.NodeMaintenanceStageDrain:    {coordinationv1alpha1.NodeMaintenanceStageCordon, coordinationv1alpha1.NodeMaintenanceStageDrain},
	coordinationv1alpha1.NodeMaintenanceStageComplete: {coordinationv1alpha1.NodeMaintenanceStageComplete},
}

// stagesInOrder has the stages in the order in which they start.
var stagesInOrder = []coordinationv1alpha1.NodeMaintenanceStage{
	coordinationv1alpha1.NodeMaintenanceStageIdle, coordinationv1alpha1.NodeMaintenanceStageCordon,
	coordinationv1alpha1.NodeMaintenanceStageDrain, coordinationv1alpha1.NodeMaintenanceStageComplete,
}

// computeStatus returns the desired status of a maintenance. Until a drain has counted all of its
// nodes, the stored status stays, with its generation: with a new generation beside an old Drained,
// a client would consider nodes drained that are not.
func computeStatus(m *coordinationv1alpha1.NodeMaintenance, sums *summary, now time.Time) *coordinationv1alpha1.NodeMaintenanceStatus {
	status := m.Status.DeepCopy()
	cordonedFirst := sums.cordonedFirst || startOf(&m.Status, coordinationv1alpha1.NodeMaintenanceStageCordon) != nil
	for _, stage := range stagesOf[m.Spec.Stage] {
		if !hasStarted(status, stage) {
			start := metav1.NewTime(startAfter(status, stage, cordonedFirst, m.Spec.Stage, now))
			status.StageStatuses = append(status.StageStatuses, coordinationv1alpha1.StageStatus{Name: stage, StartTimestamp: &start})
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
		setRollout(status, m, sums, now)
	case coordinationv1alpha1.NodeMaintenanceStageCordon:
		if sums.ready {
			status.DrainStatus.Blockers, status.DrainStatus.BlockerCount = blockersOf(sums.blockers, sums.releaseBlockers)
		}
	case coordinationv1alpha1.NodeMaintenanceStageComplete:
		// What the drain has reached stays in the status. Its blockers do not: only what delays the
		// release of nodes is a blocker now. Until all of them have been reconciled, the blockers
		// stay that an earlier process has found.
		if sums.ready {
			status.DrainStatus.Blockers, status.DrainStatus.BlockerCount = blockersOf(nil, sums.releaseBlockers)
		} else if !hasStarted(&m.Status, m.Spec.Stage) {
			status.DrainStatus.Blockers, status.DrainStatus.BlockerCount = nil, 0
		}
		if isHalted(status) {
			meta.SetStatusCondition(&status.Conditions, metav1.Condition{
				Type: string(coordinationv1alpha1.NodeMaintenanceConditionHalted), Status: metav1.ConditionFalse,
				Reason: coordinationv1alpha1.NodeMaintenanceReasonNotHalted, Message: "The maintenance is completed.",
				ObservedGeneration: m.Generation, LastTransitionTime: metav1.NewTime(now),
			})
		}
		if drained := findDrained(status); drained != nil && drained.Status != metav1.ConditionTrue {
			setCondition(status, metav1.Condition{
				Status: metav1.ConditionFalse, Reason: coordinationv1alpha1.NodeMaintenanceReasonNotDraining,
				Message: "The maintenance was completed before its nodes were drained.",
			}, m.Generation, now)
		}
	}
	setAdvance(status, m, sums, now)
	return status
}

// blockersOf returns the blockers of the work on the claimed nodes and of the release of others.
// Failed withdrawals and uncordons are reported as failed requests and cordons, with messages of
// their own.
func blockersOf(claimed, unreleased []maintenance.HoldGroup) ([]coordinationv1alpha1.DrainBlocker, int32) {
	blockers, total := maintenance.Blockers(maintenance.MergeGroups(claimed, unreleased))
	for i := range blockers {
		b := &blockers[i]
		release := findGroup(unreleased, b)
		if release == nil {
			continue
		}
		text, ok := releaseText(release)
		if !ok {
			continue
		}
		b.Message = shorten(text)
		if work := findGroup(claimed, b); work != nil {
			alone, _ := maintenance.Blockers([]maintenance.HoldGroup{*work})
			b.Message = shorten(alone[0].Message + "; " + text)
		}
	}
	return blockers, total
}

// findGroup returns the group that the blocker was made of, or nil.
func findGroup(groups []maintenance.HoldGroup, blocker *coordinationv1alpha1.DrainBlocker) *maintenance.HoldGroup {
	at := slices.IndexFunc(groups, func(g maintenance.HoldGroup) bool {
		return string(g.Cause) == string(blocker.Cause) && g.Name == blocker.Name
	})
	if at < 0 {
		return nil
	}
	return &groups[at]
}

// releaseText describes what delays the release of nodes, and returns false where it is the same
// that may delay the work on them.
func releaseText(g *maintenance.HoldGroup) (string, bool) {
	text := ""
	switch {
	case g.Cause == maintenance.HoldCordonFailed:
		text = count(g.Nodes, "node") + " cannot be uncordoned"
	case g.Cause != maintenance.HoldRequestFailed:
		return "", false
	case g.Pods == 1:
		text = fmt.Sprintf("1 pod in namespace %s still has an eviction request that cannot be withdrawn", g.Name)
	default:
		text = fmt.Sprintf("%d pods in namespace %s still have eviction requests that cannot be withdrawn", g.Pods, g.Name)
	}
	return fmt.Sprintf("%s (%s)", text, g.Message), true
}

// startAfter returns when a stage starts that has not yet: now, but the stage Drain later than a stage
// Cordon that came before, in seconds, as they are stored. See cordonedUntil. It is never before the start of an earlier
// stage, or after that of a later one, which kube-apiserver refuses: the clock of another process may have been ahead.
func startAfter(status *coordinationv1alpha1.NodeMaintenanceStatus, stage coordinationv1alpha1.NodeMaintenanceStage, cordonedFirst bool, reached coordinationv1alpha1.NodeMaintenanceStage, now time.Time) time.Time {
	start := now
	switch cordon := startOf(status, coordinationv1alpha1.NodeMaintenanceStageCordon); {
	case !cordonedFirst || reached != coordinationv1alpha1.NodeMaintenanceStageDrain:
	case stage == coordinationv1alpha1.NodeMaintenanceStageCordon:
		start = now.Add(-time.Second) // It has begun before, and could not be stored.
	case cordon != nil:
		start = slices.MaxFunc([]time.Time{now, cordon.Add(time.Second)}, time.Time.Compare)
	}
	isLater := false
	for _, other := range stagesInOrder {
		isLater = isLater || other == stage
		switch stored := startOf(status, other); {
		case stored == nil:
		case !isLater && start.Before(stored.Time), isLater && start.After(stored.Time):
			start = stored.Time
		}
	}
	return start
}

func hasStarted(status *coordinationv1alpha1.NodeMaintenanceStatus, stage coordinationv1alpha1.NodeMaintenanceStage) bool {
	return slices.ContainsFunc(status.StageStatuses, func(s coordinationv1alpha1.StageStatus) bool { return s.Name == stage })
}

// startOf returns when a stage was started, or nil.
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
		SkippedPods:                int32(sums.skipped),
		EscalatedPods:              int32(sums.escalated),
	}
	status.Blockers, status.BlockerCount = blockersOf(sums.blockers, sums.releaseBlockers)
	if sums.nodes > 0 {
		status.DrainMessage = sums.state.message()
	}
	return status
}

// noNodesMessage explains the reason NodeMaintenanceReasonNoNodes.
const noNodesMessage = "spec.nodeSelector matches no node."

// drainedCondition returns the condition Drained, whose message names the blockers.
func drainedCondition(sums *summary) metav1.Condition {
	if sums.nodes == 0 {
		return metav1.Condition{
			Status: metav1.ConditionFalse, Reason: coordinationv1alpha1.NodeMaintenanceReasonNoNodes,
			Message: noNodesMessage,
		}
	}
	if sums.state.isDrained() && sums.skippedNodes > 0 {
		return metav1.Condition{
			Status: metav1.ConditionFalse, Reason: coordinationv1alpha1.NodeMaintenanceReasonNodesSkipped,
			Message: fmt.Sprintf("%s completed before the drain was over: pods may still run there. No pod is left on the others.", count(sums.skippedNodes, "node")),
		}
	}
	if sums.state.isDrained() {
		return metav1.Condition{
			Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.NodeMaintenanceReasonDrained,
			Message: drainedMessage(sums),
		}
	}
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: drainReason(sums), Message: strings.Join(drainSentences(sums), " ")}
}

func drainedMessage(sums *summary) string {
	message := fmt.Sprintf("No pod is left on %s.", count(sums.nodes, "node"))
	switch others := sums.nodes - sums.done; {
	case sums.done == 0:
	case others == 0:
		message = fmt.Sprintf("%s given back.", count(sums.done, "node"))
	default:
		message = fmt.Sprintf("%s given back. No pod is left on %s.", count(sums.done, "node"), count(others, "other"))
	}
	if skipped := sums.skipped - sums.unstopped.count(); skipped > 0 {
		message += " " + maintenance.SkippedSentence(skipped)
	}
	return strings.Join(append([]string{message}, sums.unstopped.sentences()...), " ")
}

func drainReason(sums *summary) string {
	switch {
	case slices.ContainsFunc(sums.blockers, func(g maintenance.HoldGroup) bool { return g.Cause.Blocked() }):
		return coordinationv1alpha1.NodeMaintenanceReasonBlocked
	case !sums.state.draining && len(sums.state.waitingFor) > 0:
		return coordinationv1alpha1.NodeMaintenanceReasonWaiting
	case sums.waiting > 0 && !sums.state.left:
		return coordinationv1alpha1.NodeMaintenanceReasonWaitingForAdmission
	}
	return coordinationv1alpha1.NodeMaintenanceReasonDraining
}

// drainSentences say how far the drain is, and what delays it.
func drainSentences(sums *summary) []string {
	sentences := progressSentences(sums)
	if blockers := maintenance.HoldMessage(sums.blockers); blockers != "" {
		sentences = append(sentences, blockers)
	}
	return sentences
}

// progressSentences say how far the drain is.
func progressSentences(sums *summary) []string {
	var sentences []string
	if sums.state.left {
		sentences = append(sentences, fmt.Sprintf("%s left on %d of %s.", count(sums.left, "pod"), sums.nodes-sums.drained-sums.skippedNodes-sums.waiting, count(sums.nodes, "node")))
	}
	if sums.skippedNodes > 0 {
		sentences = append(sentences, fmt.Sprintf("%s completed before the drain was over.", count(sums.skippedNodes, "node")))
	}
	if sums.uncordoned > 0 {
		sentences = append(sentences, fmt.Sprintf("%d of %s not cordoned.", sums.uncordoned, count(sums.nodes, "node")))
	}
	if waits := waitSentence(sums); waits != "" {
		sentences = append(sentences, waits)
	}
	if sums.state.settling && !sums.state.left {
		sentences = append(sentences, "The last pods have left: it waits some seconds whether others come back.")
	}
	if message := sums.state.message(); message != messageDraining && message != messageWaiting {
		sentences = append(sentences, strings.TrimSuffix(message, ".")+".")
	}
	if sums.unplanned > 0 {
		sentences = append(sentences, fmt.Sprintf("%s without a matching entry in spec.drainPlan: the admission plugin NodeMaintenance adds the standard entries on creation.", count(sums.unplanned, "pod")))
	}
	sentences = append(sentences, sums.unstopped.sentences()...)
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

// podTypesDone returns the pod types of which no pod was left when this status was written: the
// position is after all of their entries.
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
