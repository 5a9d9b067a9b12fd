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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
)

// StalledAfter is for how long a blocker has to need an intervention before the maintenance is stalled. A
// PodDisruptionBudget that refuses an eviction until a replacement is ready is part of many drains, and tools that
// follow kstatus give up at once when something is stalled.
const StalledAfter = 5 * time.Minute

// advance is how far a maintenance is with what its stage asks for, in terms of kstatus: done, if conditionType is
// empty, or the condition that is True.
type advance struct {
	conditionType   coordinationv1alpha1.NodeMaintenanceConditionType
	reason, message string
}

func reconciles(reason, message string) advance {
	return advance{coordinationv1alpha1.NodeMaintenanceConditionReconciling, reason, message}
}

func stalls(reason, message string) advance {
	return advance{coordinationv1alpha1.NodeMaintenanceConditionStalled, reason, message}
}

// setAdvance sets the conditions Reconciling, Stalled and Completed. They are for tools that know nothing of
// maintenances, such as those of GitOps, and follow from the rest of the status, so they change with it.
func setAdvance(status *coordinationv1alpha1.NodeMaintenanceStatus, m *coordinationv1alpha1.NodeMaintenance, sums *progress.Summary, now time.Time) {
	set := func(conditionType coordinationv1alpha1.NodeMaintenanceConditionType, value metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: string(conditionType), Status: value, ObservedGeneration: m.Generation,
			LastTransitionTime: metav1.NewTime(now), Reason: reason, Message: message,
		})
	}
	if isCompleted(sums, m.Spec.Stage) {
		set(coordinationv1alpha1.NodeMaintenanceConditionCompleted, metav1.ConditionTrue, coordinationv1alpha1.NodeMaintenanceReasonNodesReleased,
			"All nodes are released that no other maintenance claims.")
	}
	if !sums.Ready && !isCompleted(sums, m.Spec.Stage) && isOfGeneration(status, m.Generation) {
		return // A restart of the controller changes nothing.
	}
	switch found := advanceOf(status, m, sums, now); found.conditionType {
	case coordinationv1alpha1.NodeMaintenanceConditionStalled:
		set(coordinationv1alpha1.NodeMaintenanceConditionReconciling, metav1.ConditionFalse, found.reason, "The condition Stalled says why.")
		set(coordinationv1alpha1.NodeMaintenanceConditionStalled, metav1.ConditionTrue, found.reason, found.message)
	case coordinationv1alpha1.NodeMaintenanceConditionReconciling:
		set(coordinationv1alpha1.NodeMaintenanceConditionReconciling, metav1.ConditionTrue, found.reason, found.message)
		clearStalled(status, set)
	default:
		set(coordinationv1alpha1.NodeMaintenanceConditionReconciling, metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonReconciled,
			fmt.Sprintf("The stage %s is done.", m.Spec.Stage))
		clearStalled(status, set)
	}
}

// clearStalled sets Stalled to False if it was True before.
func clearStalled(status *coordinationv1alpha1.NodeMaintenanceStatus, set func(coordinationv1alpha1.NodeMaintenanceConditionType, metav1.ConditionStatus, string, string)) {
	if FindCondition(status, coordinationv1alpha1.NodeMaintenanceConditionStalled) != nil {
		set(coordinationv1alpha1.NodeMaintenanceConditionStalled, metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonNotStalled, "")
	}
}

// isOfGeneration reports whether Reconciling was computed for that generation, by a controller.
func isOfGeneration(status *coordinationv1alpha1.NodeMaintenanceStatus, generation int64) bool {
	known := FindCondition(status, coordinationv1alpha1.NodeMaintenanceConditionReconciling)
	return known != nil && known.ObservedGeneration == generation && known.Reason != coordinationv1alpha1.NodeMaintenanceReasonNotObserved
}

// FindCondition returns a condition of a maintenance, or nil.
func FindCondition(status *coordinationv1alpha1.NodeMaintenanceStatus, conditionType coordinationv1alpha1.NodeMaintenanceConditionType) *metav1.Condition {
	return meta.FindStatusCondition(status.Conditions, string(conditionType))
}

// isCompleted reports whether the stage Complete is done: every node is released, and nothing is written for the
// maintenance any more.
func isCompleted(sums *progress.Summary, stage coordinationv1alpha1.NodeMaintenanceStage) bool {
	return stage == coordinationv1alpha1.NodeMaintenanceStageComplete && sums.Released && !sums.Requesting
}

// HasCompleted reports whether the condition Completed is True.
func HasCompleted(status *coordinationv1alpha1.NodeMaintenanceStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionCompleted))
}

// advanceOf returns how far the maintenance is. The rest of the status is of now.
func advanceOf(status *coordinationv1alpha1.NodeMaintenanceStatus, m *coordinationv1alpha1.NodeMaintenance, sums *progress.Summary, now time.Time) advance {
	switch m.Spec.Stage {
	case coordinationv1alpha1.NodeMaintenanceStageCordon:
		if stalled, is := blockedAdvance(status, sums, now); is {
			return stalled
		}
		if sums.Nodes == 0 {
			// A mistyped label must not look like success: see drainedCondition.
			return reconciles(coordinationv1alpha1.NodeMaintenanceReasonNoNodes, noNodesMessage)
		}
		if !sums.Ready || sums.Uncordoned > 0 {
			return reconciles(coordinationv1alpha1.NodeMaintenanceReasonCordoning, cordonMessage(sums))
		}
	case coordinationv1alpha1.NodeMaintenanceStageDrain:
		return drainAdvance(status, m, sums, now)
	case coordinationv1alpha1.NodeMaintenanceStageComplete:
		if isCompleted(sums, m.Spec.Stage) {
			return advance{}
		}
		if stalled, is := blockedAdvance(status, sums, now); is {
			return stalled
		}
		return reconciles(coordinationv1alpha1.NodeMaintenanceReasonReleasing, "The nodes are being released.")
	}
	return advance{}
}

// drainAdvance returns how far a drain is. What needs people who know of it comes first, also if other nodes go on.
func drainAdvance(status *coordinationv1alpha1.NodeMaintenanceStatus, m *coordinationv1alpha1.NodeMaintenance, sums *progress.Summary, now time.Time) advance {
	if IsHalted(status) {
		halted := FindCondition(status, coordinationv1alpha1.NodeMaintenanceConditionHalted)
		return stalls(halted.Reason, halted.Message)
	}
	if stalled, is := blockedAdvance(status, sums, now); is {
		return stalled
	}
	drained := FindDrained(status)
	switch rollout := m.Spec.Rollout != nil; {
	case drained.Reason == coordinationv1alpha1.NodeMaintenanceReasonNodesSkipped:
		return stalls(drained.Reason, drained.Message)
	case drained.Reason == coordinationv1alpha1.NodeMaintenanceReasonNoNodes:
		return reconciles(drained.Reason, drained.Message)
	case drained.Status != metav1.ConditionTrue:
		drainedNodes := fmt.Sprintf("%d of %s drained.", sums.Drained, Count(sums.Nodes, "node"))
		return reconciles(drained.Reason, strings.Join(append([]string{drainedNodes}, progressSentences(sums)...), " "))
	case rollout && sums.Done < sums.Nodes:
		return reconciles(coordinationv1alpha1.NodeMaintenanceReasonNodesNotReturned,
			fmt.Sprintf("%d of %s not given back yet.", sums.Nodes-sums.Done, Count(sums.Nodes, "node")))
	}
	return advance{}
}

func cordonMessage(sums *progress.Summary) string {
	if !sums.Ready {
		return "The nodes are being cordoned."
	}
	return fmt.Sprintf("%d of %s not cordoned.", sums.Uncordoned, Count(sums.Nodes, "node"))
}

// blockedAdvance returns that the maintenance is stalled because of its blockers, if it is.
func blockedAdvance(status *coordinationv1alpha1.NodeMaintenanceStatus, sums *progress.Summary, now time.Time) (stalled advance, is bool) {
	groups, waits, _ := Overdue(sums, status, now)
	if len(groups)+len(waits) == 0 {
		return advance{}, false
	}
	var messages []string
	for i := range waits {
		messages = append(messages, maintenance.WaitSentence(&waits[i]))
	}
	for i := range status.DrainStatus.Blockers {
		if blocker := &status.DrainStatus.Blockers[i]; findGroup(groups, blocker) != nil {
			messages = append(messages, blocker.Message)
		}
	}
	return stalls(coordinationv1alpha1.NodeMaintenanceReasonBlocked, Shorten(strings.Join(messages, "; "))), true
}

// Overdue returns the blockers, and what nodes wait for, that have needed an intervention for so long that the maintenance
// is stalled, and how long it takes until another one does; zero if none will. Once it is stalled, it is until nothing is
// left that needs one: since when there is something is not known after each restart.
func Overdue(sums *progress.Summary, status *coordinationv1alpha1.NodeMaintenanceStatus, now time.Time) (groups []maintenance.BlockerGroup, waits []coordinationv1alpha1.NodeMaintenanceWait, next time.Duration) {
	patience := StalledAfter
	if known := FindCondition(status, coordinationv1alpha1.NodeMaintenanceConditionStalled); known != nil && known.Status == metav1.ConditionTrue &&
		known.Reason == coordinationv1alpha1.NodeMaintenanceReasonBlocked {
		patience = 0
	}
	isOverdue := func(since time.Time) bool {
		wait := since.Add(patience).Sub(now)
		if wait > 0 && patience > 0 && (next == 0 || wait < next) {
			next = wait
		}
		return wait <= 0 || patience == 0
	}
	for _, group := range slices.Concat(sums.Blockers, sums.ReleaseBlockers) {
		if since := cmp.Or(group.OverdueSince, group.Since); group.Cause.Blocked() && (since == nil || isOverdue(since.Time)) {
			groups = append(groups, group)
		}
	}
	if sums.Waiting > 0 && !sums.EndlessSince.IsZero() && isOverdue(sums.EndlessSince) {
		for wait, nodes := range sums.Waits {
			if progress.IsEndless(wait) {
				waits = append(waits, progress.ListedWait(wait, nodes))
			}
		}
	}
	sortWaits(waits)
	return groups, waits, next
}

// IsDrained reports whether the condition Drained is True.
func IsDrained(status *coordinationv1alpha1.NodeMaintenanceStatus) bool {
	condition := FindDrained(status)
	return condition != nil && condition.Status == metav1.ConditionTrue
}

// IsHalted reports whether the rollout is halted.
func IsHalted(status *coordinationv1alpha1.NodeMaintenanceStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionHalted))
}

// IsCompletionBlocked reports whether the stage Complete has blockers.
func IsCompletionBlocked(status *coordinationv1alpha1.NodeMaintenanceStatus) bool {
	return progress.HasStarted(status, coordinationv1alpha1.NodeMaintenanceStageComplete) && status.DrainStatus.BlockerCount > 0
}

// HasNewCause reports whether a blocker needs an intervention for a cause that none had before. The
// event of the others is not about it.
func HasNewCause(status, before *coordinationv1alpha1.NodeMaintenanceStatus) bool {
	return slices.ContainsFunc(status.DrainStatus.Blockers, func(b coordinationv1alpha1.DrainBlocker) bool {
		return maintenance.BlockerCause(b.Cause).Blocked() &&
			!slices.ContainsFunc(before.DrainStatus.Blockers, func(known coordinationv1alpha1.DrainBlocker) bool { return known.Cause == b.Cause })
	})
}

// IsBlocked reports whether the condition Drained names blockers that need an intervention.
func IsBlocked(status *coordinationv1alpha1.NodeMaintenanceStatus) bool {
	condition := FindDrained(status)
	return condition != nil && condition.Reason == coordinationv1alpha1.NodeMaintenanceReasonBlocked
}
