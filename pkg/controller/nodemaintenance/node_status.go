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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
)

// nodeView is what a sync has found on a node: all that its status depends on.
type nodeView struct {
	// planning, holding and draining name the maintenances in the stage Idle, in Cordon
	// or Drain, and in Drain.
	planning, holding, draining []string
	// keepsCordon is whether only a maintenance that has yet to get its finalizer is about to
	// hold the node, which would be made schedulable without it.
	keepsCordon bool
	// cordonRefused is whether the API server has refused to cordon the node.
	cordonRefused bool
	// cordonHold is what the status says of that, or of a node that cannot be uncordoned.
	cordonHold *maintenance.Hold
	// statusHold is what is said of a status of the node that cannot be written.
	statusHold      *maintenance.Hold
	targets         maintenance.Targets
	state           drainState
	pending, active int
	// podHolds is what delays the eviction of pods, blocked how many of them need an
	// intervention. Both are empty unless a maintenance drains the node.
	podHolds []maintenance.Hold
	blocked  int
}

// addPodHolds collects what delays the eviction of pods.
func (v *nodeView) addPodHolds(facts *nodeFacts) {
	for _, pod := range facts.pods {
		// A request that failed does not matter for a pod that is no longer a target.
		unwanted := pod.hold.Cause == maintenance.HoldRequestFailed && !v.targets.Take(pod.Pod)
		if !pod.held || unwanted {
			continue
		}
		v.podHolds = append(v.podHolds, pod.hold)
		if pod.hold.Cause.Blocked() {
			v.blocked++
		}
	}
}

// computeMaintenanceStatus returns what node.status.maintenanceStatus should be; nil
// for a node that no maintenance holds.
func computeMaintenanceStatus(view *nodeView) *v1.MaintenanceStatus {
	switch {
	case view.keepsCordon:
		// So that the cordon ends with the claim, too, if the claim comes to nothing.
		return &v1.MaintenanceStatus{}
	case len(view.holding) == 0:
		return nil
	case len(view.draining) == 0:
		return &v1.MaintenanceStatus{}
	}
	return &v1.MaintenanceStatus{
		DrainTargets:               view.targets.Entries(),
		DrainMessage:               view.state.message(),
		PodsPendingEvictionRequest: int32(view.pending),
		ActiveEvictionRequests:     int32(view.active),
		BlockedPods:                int32(view.blocked),
	}
}

// nodeConditionTypes are the conditions that this controller writes, in order.
var nodeConditionTypes = []v1.NodeConditionType{
	coordinationv1alpha1.NodeMaintenancePlanned,
	coordinationv1alpha1.NodeMaintenanceInProgress,
	coordinationv1alpha1.NodeDrainInProgress,
	coordinationv1alpha1.NodeDrained,
}

// computeConditions returns this controller's conditions of a node: all of them if a
// maintenance selects it, or none. Times stay as they are where nothing else changes.
func computeConditions(view *nodeView, current []v1.NodeCondition, now time.Time) []v1.NodeCondition {
	if len(view.planning) == 0 && len(view.holding) == 0 {
		return nil
	}
	draining := len(view.draining) > 0
	desired := []v1.NodeCondition{
		condition(coordinationv1alpha1.NodeMaintenancePlanned, len(view.planning) > 0, "MaintenancePlanned", view.planning, "NoMaintenancePlanned"),
		condition(coordinationv1alpha1.NodeMaintenanceInProgress, len(view.holding) > 0, "MaintenanceInProgress", view.holding, "NoMaintenanceInProgress"),
		condition(coordinationv1alpha1.NodeDrainInProgress, draining && !view.state.isDrained(), inProgressReason(view), view.draining, "NoDrainInProgress"),
		condition(coordinationv1alpha1.NodeDrained, draining && view.state.isDrained(), "NoPodsLeft", view.draining, "NotDrained"),
	}
	for i := range desired {
		at := slices.IndexFunc(current, func(c v1.NodeCondition) bool { return c.Type == desired[i].Type })
		desired[i].LastHeartbeatTime, desired[i].LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
		if at < 0 || current[at].Status != desired[i].Status {
			continue
		}
		desired[i].LastTransitionTime = current[at].LastTransitionTime
		if current[at].Reason == desired[i].Reason && current[at].Message == desired[i].Message {
			desired[i].LastHeartbeatTime = current[at].LastHeartbeatTime
		}
	}
	return desired
}

func inProgressReason(view *nodeView) string {
	if view.state.left {
		return "PodsLeft"
	}
	return "NotCordoned"
}

func condition(conditionType v1.NodeConditionType, holds bool, reason string, names []string, otherwise string) v1.NodeCondition {
	if !holds {
		return v1.NodeCondition{Type: conditionType, Status: v1.ConditionFalse, Reason: otherwise}
	}
	return v1.NodeCondition{Type: conditionType, Status: v1.ConditionTrue, Reason: reason, Message: fmt.Sprintf("NodeMaintenance %s", joinNames(names))}
}

// ownConditions returns those of the conditions that this controller writes, in order.
func ownConditions(conditions []v1.NodeCondition) []v1.NodeCondition {
	var own []v1.NodeCondition
	for _, conditionType := range nodeConditionTypes {
		if i := slices.IndexFunc(conditions, func(c v1.NodeCondition) bool { return c.Type == conditionType }); i >= 0 {
			own = append(own, conditions[i])
		}
	}
	return own
}

// sameNodeStatus tells whether there is nothing to write.
func sameNodeStatus(node *v1.Node, status *v1.MaintenanceStatus, conditions []v1.NodeCondition) bool {
	return apiequality.Semantic.DeepEqual(node.Status.MaintenanceStatus, status) &&
		apiequality.Semantic.DeepEqual(ownConditions(node.Status.Conditions), conditions)
}
