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
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
)

// ComputeNode returns the desired node.status.maintenanceStatus; nil for a node that no
// maintenance claims, and to which none is or was admitted.
func ComputeNode(view *View) *v1.MaintenanceStatus {
	status := computeClaim(view)
	if len(view.Admissions) == 0 {
		return status
	}
	if status == nil {
		status = &v1.MaintenanceStatus{Unclaimed: true}
	}
	status.Admissions = view.Admissions
	return status
}

// computeClaim returns what the status says of the claim and of the drain; nil without a claim.
func computeClaim(view *View) *v1.MaintenanceStatus {
	switch {
	case view.KeepsCordon:
		// It remembers the cordon, which ends if the maintenance is deleted before it claims the
		// node.
		return &v1.MaintenanceStatus{}
	case !view.Claimed():
		return nil
	case !view.Drains():
		return &v1.MaintenanceStatus{}
	}
	left := int32(view.Pending + view.Active)
	return &v1.MaintenanceStatus{
		DrainTargets:               view.Targets.Entries(),
		DrainMessage:               drainMessage(view.State),
		PodsPendingEvictionRequest: int32(view.Pending),
		ActiveEvictionRequests:     int32(view.Active),
		BlockedPods:                int32(view.Blocked),
		EmptiedTime:                view.EmptiedTime,
		InitialPods:                max(left, view.InitialPods),
	}
}

// NodeConditionTypes are the conditions that this controller writes, in order.
var NodeConditionTypes = []v1.NodeConditionType{
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
	ReasonPlanned         = "MaintenancePlanned"
	ReasonNotPlanned      = "NoMaintenancePlanned"
	ReasonInProgress      = maintenance.ReasonInProgress
	ReasonNotInProgress   = "NoMaintenanceInProgress"
	ReasonPodsLeft        = "PodsLeft"
	ReasonVolumesAttached = "VolumesAttached"
	ReasonNotCordoned     = "NotCordoned"
	ReasonPodsMayComeBack = "PodsMayComeBack"
	ReasonNotDraining     = "NoDrainInProgress"
	ReasonNoPodsLeft      = "NoPodsLeft"
	ReasonNotDrained      = "NotDrained"
)

// OwnReasons are the reasons of conditions that this controller has written.
var OwnReasons = sets.New(ReasonPlanned, ReasonNotPlanned, ReasonInProgress, ReasonNotInProgress, ReasonPodsLeft,
	ReasonVolumesAttached, ReasonNotCordoned, ReasonPodsMayComeBack, ReasonNotDraining, ReasonNoPodsLeft, ReasonNotDrained)

// ForeignConditions returns those of the conditions that another client has written, who may do so where no
// maintenance has to do with the node (KEP-5683).
func ForeignConditions(conditions []v1.NodeCondition) []v1.NodeCondition {
	return slices.DeleteFunc(OwnConditions(conditions), func(c v1.NodeCondition) bool { return OwnReasons.Has(c.Reason) })
}

// ComputeNodeConditions returns the desired conditions of these types: all of them if a maintenance plans for
// the node or claims it, otherwise those of others. Times change only with the conditions, unless another client has
// written them.
func ComputeNodeConditions(view *View, current []v1.NodeCondition, now time.Time) []v1.NodeCondition {
	if len(view.Planning) == 0 && !view.Claimed() {
		return ForeignConditions(current)
	}
	desired := []v1.NodeCondition{
		condition(v1.NodeMaintenancePlanned, len(view.Planning) > 0, ReasonPlanned, view.Planning, ReasonNotPlanned),
		condition(v1.NodeMaintenanceInProgress, view.Claimed(), ReasonInProgress, view.Claiming, ReasonNotInProgress),
		condition(v1.NodeDrainInProgress, view.Drains() && !view.State.IsDrained(), inProgressReason(view), view.Draining, ReasonNotDraining),
		condition(v1.NodeDrained, view.Drains() && view.State.IsDrained(), ReasonNoPodsLeft, view.Draining, ReasonNotDrained),
	}
	for i := range desired {
		at := slices.IndexFunc(current, func(c v1.NodeCondition) bool { return c.Type == desired[i].Type })
		desired[i].LastHeartbeatTime, desired[i].LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
		if at < 0 || current[at].Status != desired[i].Status || !IsOwnCondition(&current[at], now) {
			continue
		}
		desired[i].LastTransitionTime = current[at].LastTransitionTime
		if current[at].Reason == desired[i].Reason && current[at].Message == desired[i].Message {
			desired[i].LastHeartbeatTime = current[at].LastHeartbeatTime
		}
	}
	return desired
}

// IsOwnCondition reports whether this controller may have written a condition: another client gives it a reason of its
// own, or a time that is yet to come.
func IsOwnCondition(c *v1.NodeCondition, now time.Time) bool {
	since := c.LastTransitionTime
	return OwnReasons.Has(c.Reason) && !since.IsZero() && !since.After(now.Add(maintenance.MaxClockDifference))
}

func inProgressReason(view *View) string {
	switch {
	case view.State.Left:
		return ReasonPodsLeft
	case view.State.Detaching:
		return ReasonVolumesAttached
	case view.State.Settling && view.State.Cordoned:
		return ReasonPodsMayComeBack
	}
	return ReasonNotCordoned
}

func condition(conditionType v1.NodeConditionType, isTrue bool, reason string, names []string, otherwise string) v1.NodeCondition {
	if !isTrue {
		return v1.NodeCondition{Type: conditionType, Status: v1.ConditionFalse, Reason: otherwise}
	}
	return v1.NodeCondition{Type: conditionType, Status: v1.ConditionTrue, Reason: reason, Message: fmt.Sprintf("NodeMaintenance %s", JoinNames(names))}
}

// OwnConditions returns the conditions that this controller writes, in order.
func OwnConditions(conditions []v1.NodeCondition) []v1.NodeCondition {
	var own []v1.NodeCondition
	for _, conditionType := range NodeConditionTypes {
		if i := slices.IndexFunc(conditions, func(c v1.NodeCondition) bool { return c.Type == conditionType }); i >= 0 {
			own = append(own, conditions[i])
		}
	}
	return own
}

// DiffersInCounts reports whether the node has this status except for counts of pods.
func DiffersInCounts(node *v1.Node, status *Node) bool {
	current := node.Status.MaintenanceStatus
	if current == nil || status.Maintenance == nil {
		return false
	}
	counted := current.DeepCopy()
	counted.PodsPendingEvictionRequest = status.Maintenance.PodsPendingEvictionRequest
	counted.ActiveEvictionRequests = status.Maintenance.ActiveEvictionRequests
	counted.BlockedPods = status.Maintenance.BlockedPods
	counted.InitialPods = status.Maintenance.InitialPods
	return apiequality.Semantic.DeepEqual(counted, status.Maintenance) &&
		apiequality.Semantic.DeepEqual(OwnConditions(node.Status.Conditions), status.Conditions)
}

// DiffersInProgress reports whether the node has this status except for counts of pods that change
// when requests are written and pods leave. That a pod is blocked is no progress.
func DiffersInProgress(node *v1.Node, status *Node) bool {
	return DiffersInCounts(node, status) && node.Status.MaintenanceStatus.BlockedPods == status.Maintenance.BlockedPods
}

// IsStored reports whether the node has this status and these conditions already.
func IsStored(node *v1.Node, status *v1.MaintenanceStatus, conditions []v1.NodeCondition) bool {
	return apiequality.Semantic.DeepEqual(node.Status.MaintenanceStatus, status) &&
		apiequality.Semantic.DeepEqual(OwnConditions(node.Status.Conditions), conditions)
}

// Node is the desired status of a node.
type Node struct {
	// Maintenance is status.maintenanceStatus, and Conditions are those of NodeConditionTypes in status.conditions.
	Maintenance *v1.MaintenanceStatus
	Conditions  []v1.NodeCondition
}

// CompletesDrain reports whether the condition Drained of a node becomes True.
func CompletesDrain(before, after []v1.NodeCondition) bool {
	isDrained := func(c v1.NodeCondition) bool { return c.Type == v1.NodeDrained && c.Status == v1.ConditionTrue }
	return slices.ContainsFunc(after, isDrained) && !slices.ContainsFunc(before, isDrained)
}
