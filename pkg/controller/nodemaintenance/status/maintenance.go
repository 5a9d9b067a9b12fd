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
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
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

// Compute returns the desired status of a maintenance. Until a drain has counted all of its
// nodes, the stored status stays, with its generation: with a new generation beside an old Drained,
// a client would consider nodes drained that are not.
func Compute(m *coordinationv1alpha1.NodeMaintenance, sums *progress.Summary, now time.Time) *coordinationv1alpha1.NodeMaintenanceStatus {
	status := m.Status.DeepCopy()
	cordonedFirst := sums.CordonedFirst || progress.StartOf(&m.Status, coordinationv1alpha1.NodeMaintenanceStageCordon) != nil
	for _, stage := range stagesOf[m.Spec.Stage] {
		if !progress.HasStarted(status, stage) {
			start := metav1.NewTime(startAfter(status, stage, cordonedFirst, m.Spec.Stage, now))
			status.StageStatuses = append(status.StageStatuses, coordinationv1alpha1.StageStatus{Name: stage, StartTimestamp: &start})
		}
	}
	if m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain && !sums.Ready {
		return status
	}
	status.ObservedGeneration = m.Generation
	status.SelectedNodes = int32(sums.Nodes)
	sums = withOwnTimes(sums, cmp.Or(progress.StartOf(status, coordinationv1alpha1.NodeMaintenanceStageCordon), &m.CreationTimestamp))
	switch m.Spec.Stage {
	case coordinationv1alpha1.NodeMaintenanceStageDrain:
		status.DrainStatus = computeDrainStatus(sums)
		setCondition(status, drainedCondition(sums), m.Generation, now)
		setRollout(status, m, sums, now)
	case coordinationv1alpha1.NodeMaintenanceStageCordon:
		if sums.Ready {
			status.DrainStatus.Blockers, status.DrainStatus.BlockerCount = blockersOf(sums.Blockers, sums.ReleaseBlockers)
		}
	case coordinationv1alpha1.NodeMaintenanceStageComplete:
		// What the drain has reached stays in the status. Its blockers do not: only what delays the
		// release of nodes is a blocker now. Until all of them have been reconciled, the blockers
		// stay that an earlier process has found.
		if sums.Ready {
			status.DrainStatus.Blockers, status.DrainStatus.BlockerCount = blockersOf(nil, sums.ReleaseBlockers)
		} else if !progress.HasStarted(&m.Status, m.Spec.Stage) {
			status.DrainStatus.Blockers, status.DrainStatus.BlockerCount = nil, 0
		}
		if IsHalted(status) {
			meta.SetStatusCondition(&status.Conditions, metav1.Condition{
				Type: string(coordinationv1alpha1.NodeMaintenanceConditionHalted), Status: metav1.ConditionFalse,
				Reason: coordinationv1alpha1.NodeMaintenanceReasonNotHalted, Message: "The maintenance is completed.",
				ObservedGeneration: m.Generation, LastTransitionTime: metav1.NewTime(now),
			})
		}
		if drained := FindDrained(status); drained != nil && drained.Status != metav1.ConditionTrue {
			setCondition(status, metav1.Condition{
				Status: metav1.ConditionFalse, Reason: coordinationv1alpha1.NodeMaintenanceReasonNotDraining,
				Message: "The maintenance was completed before its nodes were drained.",
			}, m.Generation, now)
		}
	}
	setAdvance(status, m, sums, now)
	return status
}

// withOwnTimes returns the summary with failed writes that are not older than the start of the maintenance: they may have
// failed for an earlier one of the same nodes.
func withOwnTimes(sums *progress.Summary, start *metav1.Time) *progress.Summary {
	own := *sums
	for _, groups := range []*[]maintenance.BlockerGroup{&own.Blockers, &own.ReleaseBlockers} {
		*groups = slices.Clone(*groups)
		for i := range *groups {
			g := &(*groups)[i]
			failed := g.Cause == maintenance.BlockerCordonFailed || g.Cause == maintenance.BlockerNodeStatusFailed || g.Cause == maintenance.BlockerRequestFailed
			if failed && g.Since != nil && g.Since.Before(start) {
				g.Since = start
			}
		}
	}
	return &own
}

// blockersOf returns the blockers of the work on the claimed nodes and of the release of others.
// Failed withdrawals and uncordons are reported as failed requests and cordons, with messages of
// their own.
func blockersOf(claimed, unreleased []maintenance.BlockerGroup) ([]coordinationv1alpha1.DrainBlocker, int32) {
	blockers, total := maintenance.ListedBlockers(maintenance.MergeGroups(claimed, unreleased))
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
		b.Message = Shorten(text)
		if work := findGroup(claimed, b); work != nil {
			alone, _ := maintenance.ListedBlockers([]maintenance.BlockerGroup{*work})
			b.Message = Shorten(alone[0].Message + "; " + text)
		}
	}
	return blockers, total
}

// findGroup returns the group that the blocker was made of, or nil.
func findGroup(groups []maintenance.BlockerGroup, blocker *coordinationv1alpha1.DrainBlocker) *maintenance.BlockerGroup {
	at := slices.IndexFunc(groups, func(g maintenance.BlockerGroup) bool {
		return string(g.Cause) == string(blocker.Cause) && g.Name == blocker.Name
	})
	if at < 0 {
		return nil
	}
	return &groups[at]
}

// releaseText describes what delays the release of nodes, and returns false where it is the same
// that may delay the work on them.
func releaseText(g *maintenance.BlockerGroup) (string, bool) {
	text := ""
	switch {
	case g.Cause == maintenance.BlockerCordonFailed:
		text = Count(g.Nodes, "node") + " cannot be uncordoned"
	case g.Cause != maintenance.BlockerRequestFailed:
		return "", false
	case g.Pods == 1:
		text = fmt.Sprintf("1 pod in namespace %s still has an eviction request that cannot be withdrawn", g.Name)
	default:
		text = fmt.Sprintf("%d pods in namespace %s still have eviction requests that cannot be withdrawn", g.Pods, g.Name)
	}
	return fmt.Sprintf("%s (%s)", text, g.Message), true
}

// startAfter returns when a stage starts that has not yet: now, but the stage Drain later than a stage
// Cordon that came before, in seconds, as they are stored. See progress.CordonedUntil. It is never before the start of an earlier
// stage, or after that of a later one, which kube-apiserver refuses: the clock of another process may have been ahead.
func startAfter(status *coordinationv1alpha1.NodeMaintenanceStatus, stage coordinationv1alpha1.NodeMaintenanceStage, cordonedFirst bool, reached coordinationv1alpha1.NodeMaintenanceStage, now time.Time) time.Time {
	start := now
	switch cordon := progress.StartOf(status, coordinationv1alpha1.NodeMaintenanceStageCordon); {
	case !cordonedFirst || reached != coordinationv1alpha1.NodeMaintenanceStageDrain:
	case stage == coordinationv1alpha1.NodeMaintenanceStageCordon:
		start = now.Add(-time.Second) // It has begun before, and could not be stored.
	case cordon != nil:
		start = slices.MaxFunc([]time.Time{now, cordon.Add(time.Second)}, time.Time.Compare)
	}
	isLater := false
	for _, other := range stagesInOrder {
		isLater = isLater || other == stage
		switch stored := progress.StartOf(status, other); {
		case stored == nil:
		case !isLater && start.Before(stored.Time), isLater && start.After(stored.Time):
			start = stored.Time
		}
	}
	return start
}

func computeDrainStatus(sums *progress.Summary) coordinationv1alpha1.DrainStatus {
	status := coordinationv1alpha1.DrainStatus{
		ReachedDrainTargets:        sums.Reached.Entries(),
		PodsPendingEvictionRequest: int32(sums.Pending),
		ActiveEvictionRequests:     int32(sums.Active),
		DrainPlanPosition:          ptr.To(int32(sums.Position)),
		DrainedNodes:               int32(sums.Drained),
		BlockedPods:                int32(sums.Blocked),
		SkippedPods:                int32(sums.Skipped),
		EscalatedPods:              int32(sums.Escalated),
	}
	status.Blockers, status.BlockerCount = blockersOf(sums.Blockers, sums.ReleaseBlockers)
	if sums.Nodes > 0 {
		status.DrainMessage = drainMessage(sums.State)
	}
	return status
}

// noNodesMessage explains the reason NodeMaintenanceReasonNoNodes.
const noNodesMessage = "spec.nodeSelector matches no node."

// drainedCondition returns the condition Drained, whose message names the blockers.
func drainedCondition(sums *progress.Summary) metav1.Condition {
	if sums.Nodes == 0 {
		return metav1.Condition{
			Status: metav1.ConditionFalse, Reason: coordinationv1alpha1.NodeMaintenanceReasonNoNodes,
			Message: noNodesMessage,
		}
	}
	if sums.State.IsDrained() && sums.SkippedNodes > 0 {
		return metav1.Condition{
			Status: metav1.ConditionFalse, Reason: coordinationv1alpha1.NodeMaintenanceReasonNodesSkipped,
			Message: fmt.Sprintf("%s completed before the drain was over: pods may still run there. No pod is left on the others.", Count(sums.SkippedNodes, "node")),
		}
	}
	if sums.State.IsDrained() {
		return metav1.Condition{
			Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.NodeMaintenanceReasonDrained,
			Message: drainedMessage(sums),
		}
	}
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: drainReason(sums), Message: strings.Join(drainSentences(sums), " ")}
}

func drainedMessage(sums *progress.Summary) string {
	message := fmt.Sprintf("No pod is left on %s.", Count(sums.Nodes, "node"))
	switch others := sums.Nodes - sums.Done; {
	case sums.Done == 0:
	case others == 0:
		message = fmt.Sprintf("%s given back.", Count(sums.Done, "node"))
	default:
		message = fmt.Sprintf("%s given back. No pod is left on %s.", Count(sums.Done, "node"), Count(others, "other"))
	}
	if skipped := sums.Skipped - sums.Unstopped.Count(); skipped > 0 {
		message += " " + maintenance.SkippedSentence(skipped)
	}
	return strings.Join(append([]string{message}, unstoppedSentences(sums.Unstopped)...), " ")
}

func drainReason(sums *progress.Summary) string {
	switch {
	case slices.ContainsFunc(sums.Blockers, func(g maintenance.BlockerGroup) bool { return g.Cause.Blocked() }):
		return coordinationv1alpha1.NodeMaintenanceReasonBlocked
	case !sums.State.Draining && len(sums.State.WaitingFor) > 0:
		return coordinationv1alpha1.NodeMaintenanceReasonWaiting
	case sums.Waiting > 0 && !sums.State.Left:
		return coordinationv1alpha1.NodeMaintenanceReasonWaitingForAdmission
	}
	return coordinationv1alpha1.NodeMaintenanceReasonDraining
}

// drainSentences say how far the drain is, and what delays it.
func drainSentences(sums *progress.Summary) []string {
	sentences := progressSentences(sums)
	if blockers := maintenance.BlockerMessage(sums.Blockers); blockers != "" {
		sentences = append(sentences, blockers)
	}
	return sentences
}

// progressSentences say how far the drain is.
func progressSentences(sums *progress.Summary) []string {
	var sentences []string
	if sums.State.Left {
		sentences = append(sentences, fmt.Sprintf("%s left on %d of %s.", Count(sums.Left, "pod"), sums.Nodes-sums.Drained-sums.SkippedNodes-sums.Waiting, Count(sums.Nodes, "node")))
	}
	if sums.SkippedNodes > 0 {
		sentences = append(sentences, fmt.Sprintf("%s completed before the drain was over.", Count(sums.SkippedNodes, "node")))
	}
	if sums.Uncordoned > 0 {
		sentences = append(sentences, fmt.Sprintf("%d of %s not cordoned.", sums.Uncordoned, Count(sums.Nodes, "node")))
	}
	if waits := waitSentence(sums); waits != "" {
		sentences = append(sentences, waits)
	}
	if sums.State.Settling && !sums.State.Left {
		sentences = append(sentences, "The last pods have left: it waits some seconds whether others come back.")
	}
	if message := drainMessage(sums.State); message != MessageDraining && message != MessageWaiting {
		sentences = append(sentences, strings.TrimSuffix(message, ".")+".")
	}
	if sums.Unplanned > 0 {
		sentences = append(sentences, fmt.Sprintf("%s without a matching entry in spec.drainPlan: the admission plugin NodeMaintenance adds the standard entries on creation.", Count(sums.Unplanned, "pod")))
	}
	sentences = append(sentences, unstoppedSentences(sums.Unstopped)...)
	return sentences
}

// FindDrained returns the condition Drained, or nil.
func FindDrained(status *coordinationv1alpha1.NodeMaintenanceStatus) *metav1.Condition {
	return meta.FindStatusCondition(status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained))
}

func setCondition(status *coordinationv1alpha1.NodeMaintenanceStatus, condition metav1.Condition, generation int64, now time.Time) {
	condition.Type = string(coordinationv1alpha1.NodeMaintenanceConditionDrained)
	condition.ObservedGeneration = generation
	condition.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(&status.Conditions, condition)
}

// PodTypesDone returns the pod types of which no pod was left when this status was written: the
// position is after all of their entries.
func PodTypesDone(m *coordinationv1alpha1.NodeMaintenance, status *coordinationv1alpha1.NodeMaintenanceStatus) []v1.PodType {
	if status.DrainStatus.DrainPlanPosition == nil {
		return nil
	}
	drained := FindDrained(status)
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
