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
	"time"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
)

// computeMaintenanceStatus returns the desired node.status.maintenanceStatus; nil for a node that no
// maintenance claims, and to which none is or was admitted.
func computeMaintenanceStatus(view *nodeView) *v1.MaintenanceStatus {
	status := computeClaim(view)
	if len(view.admissions) == 0 {
		return status
	}
	if status == nil {
		status = &v1.MaintenanceStatus{Unclaimed: true}
	}
	status.Admissions = view.admissions
	return status
}

// computeClaim returns what the status says of the claim and of the drain; nil without a claim.
func computeClaim(view *nodeView) *v1.MaintenanceStatus {
	switch {
	case view.keepsCordon:
		// It remembers the cordon, which ends if the maintenance is deleted before it claims the
		// node.
		return &v1.MaintenanceStatus{}
	case !view.claimed():
		return nil
	case !view.drains():
		return &v1.MaintenanceStatus{}
	}
	left := int32(view.pending + view.active)
	return &v1.MaintenanceStatus{
		DrainTargets:               view.targets.Entries(),
		DrainMessage:               drainMessage(view.state),
		PodsPendingEvictionRequest: int32(view.pending),
		ActiveEvictionRequests:     int32(view.active),
		BlockedPods:                int32(view.blocked),
		EmptiedTime:                view.emptiedTime,
		InitialPods:                max(left, view.initialPods),
	}
}

// nodeConditionTypes are the conditions that this controller writes, in order.
var nodeConditionTypes = []v1.NodeConditionType{
	// A maintenance selects the node that is in the stage Idle, or in the stage Drain and waits for
	// the admission of the node.
	v1.NodeMaintenancePlanned,
	// A maintenance in the stage Cordon or Drain selects the node, and neither waits for its admission
	// nor has given it back.
	v1.NodeMaintenanceInProgress,
	// A maintenance in the stage Drain drains the node, which it does once the node is admitted if it
	// has to be, and the node has pods left or is not cordoned.
	v1.NodeDrainInProgress,
	// A maintenance in the stage Drain drains the node, it is cordoned, and no pod is left on it. False
	// as soon as the work on the node is done.
	v1.NodeDrained,
}

// Reasons of the conditions. A condition with another one was written by another client.
const (
	reasonPlanned         = "MaintenancePlanned"
	reasonNotPlanned      = "NoMaintenancePlanned"
	reasonInProgress      = maintenance.ReasonInProgress
	reasonNotInProgress   = "NoMaintenanceInProgress"
	reasonPodsLeft        = "PodsLeft"
	reasonVolumesAttached = "VolumesAttached"
	reasonNotCordoned     = "NotCordoned"
	reasonPodsMayComeBack = "PodsMayComeBack"
	reasonNotDraining     = "NoDrainInProgress"
	reasonNoPodsLeft      = "NoPodsLeft"
	reasonNotDrained      = "NotDrained"
)

var ownReasons = sets.New(reasonPlanned, reasonNotPlanned, reasonInProgress, reasonNotInProgress, reasonPodsLeft,
	reasonVolumesAttached, reasonNotCordoned, reasonPodsMayComeBack, reasonNotDraining, reasonNoPodsLeft, reasonNotDrained)

// foreignConditions returns those of the conditions that another client has written, who may do so where no
// maintenance has to do with the node (KEP-5683).
func foreignConditions(conditions []v1.NodeCondition) []v1.NodeCondition {
	return slices.DeleteFunc(ownConditions(conditions), func(c v1.NodeCondition) bool { return ownReasons.Has(c.Reason) })
}

// computeConditions returns the desired conditions of these types: all of them if a maintenance plans for
// the node or claims it, otherwise those of others. Times change only with the conditions, unless another client has
// written them.
func computeConditions(view *nodeView, current []v1.NodeCondition, now time.Time) []v1.NodeCondition {
	if len(view.planning) == 0 && !view.claimed() {
		return foreignConditions(current)
	}
	desired := []v1.NodeCondition{
		condition(v1.NodeMaintenancePlanned, len(view.planning) > 0, reasonPlanned, view.planning, reasonNotPlanned),
		condition(v1.NodeMaintenanceInProgress, view.claimed(), reasonInProgress, view.claiming, reasonNotInProgress),
		condition(v1.NodeDrainInProgress, view.drains() && !view.state.IsDrained(), inProgressReason(view), view.draining, reasonNotDraining),
		condition(v1.NodeDrained, view.drains() && view.state.IsDrained(), reasonNoPodsLeft, view.draining, reasonNotDrained),
	}
	for i := range desired {
		at := slices.IndexFunc(current, func(c v1.NodeCondition) bool { return c.Type == desired[i].Type })
		desired[i].LastHeartbeatTime, desired[i].LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
		if at < 0 || current[at].Status != desired[i].Status || !isOwnCondition(&current[at], now) {
			continue
		}
		desired[i].LastTransitionTime = current[at].LastTransitionTime
		if current[at].Reason == desired[i].Reason && current[at].Message == desired[i].Message {
			desired[i].LastHeartbeatTime = current[at].LastHeartbeatTime
		}
	}
	return desired
}

// isOwnCondition reports whether this controller may have written a condition: another client gives it a reason of its
// own, or a time that is yet to come.
func isOwnCondition(c *v1.NodeCondition, now time.Time) bool {
	since := c.LastTransitionTime
	return ownReasons.Has(c.Reason) && !since.IsZero() && !since.After(now.Add(maintenance.MaxClockDifference))
}

func inProgressReason(view *nodeView) string {
	switch {
	case view.state.Left:
		return reasonPodsLeft
	case view.state.Detaching:
		return reasonVolumesAttached
	case view.state.Settling && view.state.Cordoned:
		return reasonPodsMayComeBack
	}
	return reasonNotCordoned
}

func condition(conditionType v1.NodeConditionType, isTrue bool, reason string, names []string, otherwise string) v1.NodeCondition {
	if !isTrue {
		return v1.NodeCondition{Type: conditionType, Status: v1.ConditionFalse, Reason: otherwise}
	}
	return v1.NodeCondition{Type: conditionType, Status: v1.ConditionTrue, Reason: reason, Message: fmt.Sprintf("NodeMaintenance %s", joinNames(names))}
}

// ownConditions returns the conditions that this controller writes, in order.
func ownConditions(conditions []v1.NodeCondition) []v1.NodeCondition {
	var own []v1.NodeCondition
	for _, conditionType := range nodeConditionTypes {
		if i := slices.IndexFunc(conditions, func(c v1.NodeCondition) bool { return c.Type == conditionType }); i >= 0 {
			own = append(own, conditions[i])
		}
	}
	return own
}

// differsInCounts reports whether the node has this status except for counts of pods.
func differsInCounts(node *v1.Node, status *nodeStatus) bool {
	current := node.Status.MaintenanceStatus
	if current == nil || status.maintenance == nil {
		return false
	}
	counted := current.DeepCopy()
	counted.PodsPendingEvictionRequest = status.maintenance.PodsPendingEvictionRequest
	counted.ActiveEvictionRequests = status.maintenance.ActiveEvictionRequests
	counted.BlockedPods = status.maintenance.BlockedPods
	counted.InitialPods = status.maintenance.InitialPods
	return apiequality.Semantic.DeepEqual(counted, status.maintenance) &&
		apiequality.Semantic.DeepEqual(ownConditions(node.Status.Conditions), status.conditions)
}

// differsInProgress reports whether the node has this status except for counts of pods that change
// when requests are written and pods leave. That a pod is blocked is no progress.
func differsInProgress(node *v1.Node, status *nodeStatus) bool {
	return differsInCounts(node, status) && node.Status.MaintenanceStatus.BlockedPods == status.maintenance.BlockedPods
}

// sameNodeStatus reports whether the node has this status and these conditions already.
func sameNodeStatus(node *v1.Node, status *v1.MaintenanceStatus, conditions []v1.NodeCondition) bool {
	return apiequality.Semantic.DeepEqual(node.Status.MaintenanceStatus, status) &&
		apiequality.Semantic.DeepEqual(ownConditions(node.Status.Conditions), conditions)
}
