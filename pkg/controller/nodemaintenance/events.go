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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-helpers/node/maintenance"
)

// Reasons of events. Events are for people: no program depends on them.
const (
	reasonStageStarted    = "StageStarted"
	reasonDrained         = "Drained"
	reasonDrainBlocked    = "DrainBlocked"
	reasonCompleted       = "MaintenanceCompleted"
	reasonInvalid         = "InvalidMaintenance"
	reasonFastForwarded   = "DrainFastForwarded"
	reasonNodeCordoned    = "NodeCordoned"
	reasonNodeUncordoned  = "NodeUncordoned"
	reasonCordonContested = "CordonContested"
	reasonCordonFailed    = "CordonFailed"
	reasonNodeDrained     = "NodeDrained"
	reasonStatusFailed    = "NodeStatusFailed"
	reasonRequestFailed   = "EvictionRequestFailed"
	reasonWithdrawFailed  = "WithdrawalFailed"
	reasonCompleteBlocked = "CompletionBlocked"
)

// eventWriter has one method for each thing to tell.
type eventWriter struct {
	recorder events.EventRecorder
}

// tell records an event. What is too long for one is cut.
func (w *eventWriter) tell(regarding, related runtime.Object, eventType, reason, action, text string) {
	w.recorder.Eventf(regarding, related, eventType, reason, action, "%s", shorten(text))
}

func (w *eventWriter) node(node *v1.Node, eventType, reason, action, text string) {
	w.tell(node, nil, eventType, reason, action, text)
}

func (w *eventWriter) cordonFailed(node *v1.Node, err error) {
	w.node(node, v1.EventTypeWarning, reasonCordonFailed, "Cordon", err.Error())
}

func (w *eventWriter) statusFailed(node *v1.Node, err error) {
	w.node(node, v1.EventTypeWarning, reasonStatusFailed, "Report", err.Error())
}

func (w *eventWriter) cordoned(node *v1.Node, holding []string) {
	w.node(node, v1.EventTypeNormal, reasonNodeCordoned, "Cordon", fmt.Sprintf("Made the node unschedulable for NodeMaintenance %s", joinNames(holding)))
}

func (w *eventWriter) uncordoned(node *v1.Node) {
	w.node(node, v1.EventTypeNormal, reasonNodeUncordoned, "Uncordon", "Made the node schedulable: no NodeMaintenance holds it any more")
}

func (w *eventWriter) contested(node *v1.Node, holding []string) {
	w.node(node, v1.EventTypeWarning, reasonCordonContested, "Cordon", fmt.Sprintf(
		"Somebody makes the node schedulable again and again while NodeMaintenance %s holds it; it is made unschedulable once a minute now", joinNames(holding)))
}

func (w *eventWriter) fastForwarded(m *coordinationv1alpha1.NodeMaintenance, node *v1.Node, floor maintenance.Targets) {
	w.tell(m, node, v1.EventTypeWarning, reasonFastForwarded, "Drain",
		fmt.Sprintf("Fast-forwarded on node %s: an older maintenance has drained it up to %s already, which is not taken back", node.Name, floor))
}

// nodeChanged tells of a node that has become drained.
func (w *eventWriter) nodeChanged(node *v1.Node, conditions []v1.NodeCondition) {
	drained := func(c v1.NodeCondition) bool {
		return c.Type == coordinationv1alpha1.NodeDrained && c.Status == v1.ConditionTrue
	}
	if slices.ContainsFunc(conditions, drained) && !slices.ContainsFunc(node.Status.Conditions, drained) {
		w.node(node, v1.EventTypeNormal, reasonNodeDrained, "Drain", "Drained the node: no pod is left")
	}
}

func (w *eventWriter) requestFailed(pod *v1.Pod, err error) {
	w.tell(pod, nil, v1.EventTypeWarning, reasonRequestFailed, "Drain", fmt.Sprintf("Could not ask the pod to leave its node: %v", err))
}

func (w *eventWriter) withdrawalFailed(node *v1.Node, pod *v1.Pod, err error) {
	w.tell(node, pod, v1.EventTypeWarning, reasonWithdrawFailed, "Complete", fmt.Sprintf("Could not withdraw the request that the pod %s/%s leaves: %v", pod.Namespace, pod.Name, err))
}

// maintenanceChanged tells of stages that were started, and of drains that are over or
// stuck.
func (w *eventWriter) maintenanceChanged(m *coordinationv1alpha1.NodeMaintenance, status *coordinationv1alpha1.NodeMaintenanceStatus) {
	for _, started := range status.StageStatuses {
		if !hasStarted(&m.Status, started.Name) {
			note := fmt.Sprintf("Started the stage %s", started.Name)
			// Before the nodes of a drain are counted, the number is that of another time.
			if status.ObservedGeneration == m.Generation {
				note += " on " + count(int(status.SelectedNodes), "node")
			}
			w.tell(m, nil, v1.EventTypeNormal, reasonStageStarted, string(started.Name), note)
		}
	}
	if isDrained(status) && !isDrained(&m.Status) {
		w.tell(m, nil, v1.EventTypeNormal, reasonDrained, "Drain", fmt.Sprintf("Drained %s: no pod is left", count(int(status.SelectedNodes), "node")))
	}
	if isCompletionBlocked(status) && !isCompletionBlocked(&m.Status) {
		w.tell(m, nil, v1.EventTypeWarning, reasonCompleteBlocked, "Complete", status.DrainStatus.Blockers[0].Message)
	}
	if isBlocked(status) && !isBlocked(&m.Status) {
		w.tell(m, nil, v1.EventTypeWarning, reasonDrainBlocked, "Drain", findDrained(status).Message)
	}
}

// isCompletionBlocked reports whether something keeps the stage Complete from its end.
func isCompletionBlocked(status *coordinationv1alpha1.NodeMaintenanceStatus) bool {
	return hasStarted(status, coordinationv1alpha1.NodeMaintenanceStageComplete) && status.DrainStatus.BlockerCount > 0
}

func isBlocked(status *coordinationv1alpha1.NodeMaintenanceStatus) bool {
	condition := findDrained(status)
	return condition != nil && condition.Reason == coordinationv1alpha1.NodeMaintenanceReasonBlocked
}

// maxNote is how many bytes the note of an event may have.
const maxNote = 1024

// shorten makes a text fit for an event: the whole stands in the condition. It may repeat what
// a webhook says, which goes to terminals.
func shorten(text string) string { return maintenance.Printable(text, maxNote) }

func (w *eventWriter) completed(m *coordinationv1alpha1.NodeMaintenance) {
	w.tell(m, nil, v1.EventTypeNormal, reasonCompleted, "Complete", "Completed: the nodes that no other maintenance holds are schedulable")
}

func (w *eventWriter) invalid(m *coordinationv1alpha1.NodeMaintenance, err error) {
	w.tell(m, nil, v1.EventTypeWarning, reasonInvalid, "Observe", fmt.Sprintf("Nothing is done: %v", err))
}
