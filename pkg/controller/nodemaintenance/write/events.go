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

package write

import (
	"fmt"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ref "k8s.io/client-go/tools/reference"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// Reasons of events. Events are for people: no program depends on them.
const (
	reasonStageStarted     = "StageStarted"
	reasonDrained          = "Drained"
	reasonDrainBlocked     = "DrainBlocked"
	reasonCompleted        = "MaintenanceCompleted"
	reasonInvalid          = "InvalidMaintenance"
	reasonFastForwarded    = "DrainFastForwarded"
	reasonNodeCordoned     = "NodeCordoned"
	reasonNodeUncordoned   = "NodeUncordoned"
	reasonNodeLeftCordoned = "NodeLeftCordoned"
	reasonCordonContested  = "CordonContested"
	reasonTaintContested   = "TaintContested"
	reasonSelectContested  = "SelectionContested"
	reasonCordonFailed     = "CordonFailed"
	reasonTaintFailed      = "TaintFailed"
	reasonNodeDrained      = "NodeDrained"
	reasonStatusFailed     = "NodeStatusFailed"
	reasonStatusContested  = "NodeStatusContested"
	reasonRequestFailed    = "EvictionRequestFailed"
	reasonWithdrawFailed   = "WithdrawalFailed"
	reasonCompleteBlocked  = "CompletionBlocked"
	reasonAdmitted         = "NodeAdmitted"
	reasonAdmissionFailed  = "NodeAdmissionFailed"
	reasonGivenBack        = "NodeGivenBack"
	reasonNotBack          = "NodeNotBack"
	reasonHalted           = "RolloutHalted"
	reasonEscalated        = "MaintenanceEscalated"
	reasonHeldUp           = "EscalationHeldUp"
	reasonEscalateFailed   = "EscalationFailed"
	reasonWriteFailed      = "MaintenanceWriteFailed"
	reasonRefinalized      = "FinalizerContested"
	reasonBudgetFailed     = "BudgetWriteFailed"
	reasonInvalidBudget    = "InvalidBudget"
)

// Events has one method for each kind of event.
type Events struct {
	recorder events.EventRecorder
	notes    *eventNotes
}

// NewEvents returns events that the recorder records.
func NewEvents(recorder events.EventRecorder, clock clock.PassiveClock) *Events {
	return &Events{recorder: recorder, notes: newEventNotes(clock)}
}

// record records an event, with a text that is truncated to what fits. A failure that repeats is one
// event, which counts: the recorder compares references, so these have no resourceVersion, which
// each heartbeat of a node changes. One with another text is another event: see eventNotes.
func (w *Events) record(regarding, related runtime.Object, eventType, reason, action, text string) {
	text = status.Shorten(text)
	about, other := referenceTo(regarding), referenceTo(related)
	if reference, ok := about.(*v1.ObjectReference); ok {
		part := w.notes.part(eventKey{*reference, ptr.Deref(asReference(other), v1.ObjectReference{}), reason, action}, text)
		other = withPart(reference, other, part)
	}
	w.recorder.Eventf(about, other, eventType, reason, action, "%s", text)
}

// withPart returns the related object of an event, by which the recorder tells it apart from others with another text;
// about itself if there is none. The field path of about would do, too, but kubectl describe prints it before the text.
func withPart(about *v1.ObjectReference, related runtime.Object, part string) runtime.Object {
	if part == "" {
		return related
	}
	reference := *about
	if other := asReference(related); other != nil {
		reference = *other
	}
	reference.FieldPath = part
	return &reference
}

// asReference returns a reference, or nil for anything else.
func asReference(object runtime.Object) *v1.ObjectReference {
	reference, _ := object.(*v1.ObjectReference)
	return reference
}

// referenceTo returns a reference to an object of any version, or nil.
func referenceTo(object runtime.Object) runtime.Object {
	if object == nil {
		return nil
	}
	reference, err := ref.GetReference(scheme.Scheme, object)
	if err != nil {
		return object // The recorder reports the same error.
	}
	reference.ResourceVersion = ""
	return reference
}

func (w *Events) node(node *v1.Node, eventType, reason, action, text string) {
	w.record(node, nil, eventType, reason, action, text)
}

// nodeFor records an event about a node for which a maintenance is the reason. The recorder counts events
// that differ in their texts only: without the maintenance, the next one would be a repetition.
func (w *Events) nodeFor(node *v1.Node, maintenance string, uid types.UID, eventType, reason, action, text string) {
	related := &v1.ObjectReference{APIVersion: coordinationv1alpha1.SchemeGroupVersion.String(), Kind: "NodeMaintenance", Name: maintenance, UID: uid}
	w.record(node, related, eventType, reason, action, text)
}

// CordonFailed emits an event for a node that cannot be cordoned or uncordoned.
func (w *Events) CordonFailed(node *v1.Node, err error) {
	w.node(node, v1.EventTypeWarning, reasonCordonFailed, "Cordon", err.Error())
}

// TaintFailed emits an event for a node whose taint cannot be written.
func (w *Events) TaintFailed(node *v1.Node, err error) {
	w.node(node, v1.EventTypeWarning, reasonTaintFailed, "Taint", err.Error())
}

// StatusFailed emits an event for a node whose status cannot be written.
func (w *Events) StatusFailed(node *v1.Node, err error) {
	w.node(node, v1.EventTypeWarning, reasonStatusFailed, "Report", err.Error())
}

// MaintenanceFailed emits an event for a maintenance whose status or finalizer the API server does not store.
func (w *Events) MaintenanceFailed(m *coordinationv1alpha1.NodeMaintenance, err error) {
	w.record(m, nil, v1.EventTypeWarning, reasonWriteFailed, "Report", err.Error())
}

// FinalizerContested emits an event for a maintenance whose finalizer others remove again and again.
func (w *Events) FinalizerContested(m *coordinationv1alpha1.NodeMaintenance) {
	w.record(m, nil, v1.EventTypeWarning, reasonRefinalized, "Observe", fmt.Sprintf(
		"Another client keeps removing the finalizer %s; adding it at most once a minute", coordinationv1alpha1.NodeMaintenanceFinalizer))
}

// BudgetFailed emits an event for a budget whose status the API server does not store.
func (w *Events) BudgetFailed(b *coordinationv1alpha1.NodeMaintenanceBudget, err error) {
	w.record(b, nil, v1.EventTypeWarning, reasonBudgetFailed, "Report", err.Error())
}

// InvalidBudget emits an event for a budget of which this process does not understand all.
func (w *Events) InvalidBudget(b *coordinationv1alpha1.NodeMaintenanceBudget, err error) {
	w.record(b, nil, v1.EventTypeWarning, reasonInvalidBudget, "Admit", "Ignoring what is not understood: "+err.Error())
}

// Cordoned emits an event for a node that was cordoned for these maintenances.
func (w *Events) Cordoned(node *v1.Node, claiming []string) {
	w.nodeFor(node, slices.Min(claiming), "", v1.EventTypeNormal, reasonNodeCordoned, "Cordon", fmt.Sprintf("Cordoned the node for NodeMaintenance %s", status.JoinNames(claiming)))
}

// Uncordoned emits an event for a node that is schedulable again.
func (w *Events) Uncordoned(node *v1.Node) {
	w.node(node, v1.EventTypeNormal, reasonNodeUncordoned, "Uncordon", "Uncordoned the node: no NodeMaintenance claims it any more")
}

// LeftCordoned emits an event for a node that is released as that field manager has cordoned it.
func (w *Events) LeftCordoned(node *v1.Node, manager string) {
	w.node(node, v1.EventTypeNormal, reasonNodeLeftCordoned, "Uncordon", fmt.Sprintf(
		"Left the node cordoned: no NodeMaintenance claims it any more, but %s has cordoned it", manager))
}

// Contested emits an event for a node that others uncordon again and again.
func (w *Events) Contested(node *v1.Node, claiming []string) {
	w.nodeFor(node, slices.Min(claiming), "", v1.EventTypeWarning, reasonCordonContested, "Cordon", fmt.Sprintf(
		"Node keeps being uncordoned while NodeMaintenance %s claims it; re-cordoning at most once a minute", status.JoinNames(claiming)))
}

// SelectionContested emits an event for a node that these maintenances select and deselect again and again.
func (w *Events) SelectionContested(node *v1.Node, deselecting []string) {
	w.node(node, v1.EventTypeWarning, reasonSelectContested, "Cordon", fmt.Sprintf(
		"NodeMaintenance %s keeps selecting and deselecting the node, because another client changes the node or spec.nodeSelector; claiming it at most once a minute", status.JoinNames(deselecting)))
}

// TaintContested emits an event for a node whose taint others remove again and again, or add if it is not wanted.
func (w *Events) TaintContested(node *v1.Node, wanted bool) {
	if !wanted {
		w.node(node, v1.EventTypeWarning, reasonTaintContested, "Taint", fmt.Sprintf(
			"Another client keeps adding the taint %s to the node, which does not wait for a maintenance; removing it at most once a minute", coordinationv1alpha1.NodePlannedTaint))
		return
	}
	w.node(node, v1.EventTypeWarning, reasonTaintContested, "Taint", fmt.Sprintf(
		"Another client keeps removing or changing the taint %s of the node, which waits for its maintenance; adding it at most once a minute", coordinationv1alpha1.NodePlannedTaint))
}

// StatusContested emits an event for a node of whose status others change that part again and again.
func (w *Events) StatusContested(node *v1.Node, what string) {
	w.node(node, v1.EventTypeWarning, reasonStatusContested, "Report",
		fmt.Sprintf("Another client keeps changing %s; restoring that at most once a minute", what))
}

// FastForwarded emits an event for a maintenance that has got a node which another one has drained further than it allows.
func (w *Events) FastForwarded(m *coordinationv1alpha1.NodeMaintenance, node *v1.Node, floor maintenance.Targets) {
	w.record(m, node, v1.EventTypeWarning, reasonFastForwarded, "Drain",
		fmt.Sprintf("Fast-forwarded on node %s: another maintenance has already drained it up to %s, and drain targets do not step back", node.Name, floor))
}

// NodeChanged emits an event for a node that has become drained.
func (w *Events) NodeChanged(node *v1.Node, conditions []v1.NodeCondition) {
	if status.CompletesDrain(node.Status.Conditions, conditions) {
		w.node(node, v1.EventTypeNormal, reasonNodeDrained, "Drain", "Drained the node: no pod is left")
	}
}

// Admitted emits an event for a node with which a maintenance begins.
func (w *Events) Admitted(node *v1.Node, m *coordinationv1alpha1.NodeMaintenance) {
	w.record(node, m, v1.EventTypeNormal, reasonAdmitted, "Admit", fmt.Sprintf("NodeMaintenance %s begins with the node", m.Name))
}

// AdmissionFailed emits an event on the node and one on the maintenance that waits for it.
func (w *Events) AdmissionFailed(node *v1.Node, m *coordinationv1alpha1.NodeMaintenance, why string) {
	w.record(node, m, v1.EventTypeWarning, reasonAdmissionFailed, "Admit", fmt.Sprintf("NodeMaintenance %s cannot begin with the node: %s", m.Name, why))
	w.record(m, node, v1.EventTypeWarning, reasonAdmissionFailed, "Admit", fmt.Sprintf("Cannot begin with a node: %s", why))
}

// AdmissionsChanged emits events for a node that was given back, or has not come back in time, for a reason.
func (w *Events) AdmissionsChanged(node *v1.Node, status *v1.MaintenanceStatus, reason func(*v1.MaintenanceAdmission) string) {
	if status == nil {
		return
	}
	for _, now := range status.Admissions {
		before := maintenance.AdmissionOf(node, now.MaintenanceUID)
		switch {
		case before == nil:
		case now.DoneTime != nil && before.DoneTime == nil:
			w.nodeFor(node, now.MaintenanceName, now.MaintenanceUID, v1.EventTypeNormal, reasonGivenBack, "Complete", fmt.Sprintf("NodeMaintenance %s is done with the node", now.MaintenanceName))
		case now.FailedTime != nil && before.FailedTime == nil:
			w.nodeFor(node, now.MaintenanceName, now.MaintenanceUID, v1.EventTypeWarning, reasonNotBack, "Complete", fmt.Sprintf(
				"The node did not come back in time for NodeMaintenance %s: %s", now.MaintenanceName, reason(&now)))
		}
	}
}

// escalationTexts say what an escalation does.
var escalationTexts = map[v1.MaintenanceEscalation]string{
	v1.MaintenanceEscalationSkipInterceptors: "Passing over interceptors",
	v1.MaintenanceEscalationIgnoreBudgets:    "Deleting with the grace period, whatever PodDisruptionBudgets say",
	v1.MaintenanceEscalationForceDelete:      "Removing from the API, because the node is out of service",
}

// Escalated emits an event for a pod on which an escalation has acted.
func (w *Events) Escalated(pod *v1.Pod, action v1.MaintenanceEscalation, message string) {
	w.record(pod, nil, v1.EventTypeWarning, reasonEscalated, string(action), fmt.Sprintf("%s: %s", escalationTexts[action], message))
}

// Escalates emits an event for a maintenance on whose behalf a pod of a node was acted on.
func (w *Events) Escalates(m *coordinationv1alpha1.NodeMaintenance, node *v1.Node, action v1.MaintenanceEscalation) {
	w.record(m, node, v1.EventTypeWarning, reasonEscalated, string(action), fmt.Sprintf("%s, on pods of node %s: its drain has come to %s of spec.escalation", escalationTexts[action], node.Name, action))
}

// HeldUp emits an event for a maintenance whose escalation others hold up on a node: it has come to
// that action, and the holders have not.
func (w *Events) HeldUp(m *coordinationv1alpha1.NodeMaintenance, node *v1.Node, action v1.MaintenanceEscalation, holders []string) {
	w.record(m, node, v1.EventTypeWarning, reasonHeldUp, string(action), fmt.Sprintf(
		"The drain of node %s has come to %s of spec.escalation, which NodeMaintenance %s holds up: it drains the node as well, and has not come to that, or keeps pods", node.Name, action, status.JoinNames(holders)))
}

// EscalationFailed emits an event for a pod for which an act of an escalation has failed.
func (w *Events) EscalationFailed(pod *v1.Pod, err error) {
	w.record(pod, nil, v1.EventTypeWarning, reasonEscalateFailed, "Drain", fmt.Sprintf("Failed to stop waiting for the pod: %v", err))
}

// RequestFailed emits an event for a pod whose eviction cannot be requested.
func (w *Events) RequestFailed(pod *v1.Pod, err error) {
	w.record(pod, nil, v1.EventTypeWarning, reasonRequestFailed, "Drain", fmt.Sprintf("Failed to request the eviction of the pod: %v", err))
}

// WithdrawalFailed emits an event for a node of whose pod the request cannot be withdrawn.
func (w *Events) WithdrawalFailed(node *v1.Node, pod *v1.Pod, err error) {
	w.record(node, pod, v1.EventTypeWarning, reasonWithdrawFailed, "Complete", fmt.Sprintf("Failed to withdraw the eviction request for pod %s/%s: %v", pod.Namespace, pod.Name, err))
}

// MaintenanceChanged emits events for stages that were started, and for drains and completions that
// have ended or are blocked.
func (w *Events) MaintenanceChanged(m *coordinationv1alpha1.NodeMaintenance, desired *coordinationv1alpha1.NodeMaintenanceStatus) {
	for _, started := range desired.StageStatuses {
		if !progress.HasStarted(&m.Status, started.Name) {
			note := fmt.Sprintf("Started the stage %s", started.Name)
			// Before the nodes of a drain are counted, the number is that of an earlier generation.
			if desired.ObservedGeneration == m.Generation {
				note += " on " + status.Count(int(desired.SelectedNodes), "node")
			}
			w.record(m, nil, v1.EventTypeNormal, reasonStageStarted, string(started.Name), note)
		}
	}
	if status.IsDrained(desired) && !status.IsDrained(&m.Status) {
		w.record(m, nil, v1.EventTypeNormal, reasonDrained, "Drain", fmt.Sprintf("Drained %s: no pod is left", status.Count(int(desired.SelectedNodes), "node")))
	}
	if halted, before := status.IsHalted(desired), status.IsHalted(&m.Status); halted && !before {
		w.record(m, nil, v1.EventTypeWarning, reasonHalted, "Drain", meta.FindStatusCondition(desired.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionHalted)).Message)
	}
	if status.IsCompletionBlocked(desired) && !status.IsCompletionBlocked(&m.Status) {
		w.record(m, nil, v1.EventTypeWarning, reasonCompleteBlocked, "Complete", desired.DrainStatus.Blockers[0].Message)
	}
	if status.IsBlocked(desired) && (!status.IsBlocked(&m.Status) || status.HasNewCause(desired, &m.Status)) {
		w.record(m, nil, v1.EventTypeWarning, reasonDrainBlocked, "Drain", status.FindDrained(desired).Message)
	}
}

// Completed emits an event for a maintenance that is over.
func (w *Events) Completed(m *coordinationv1alpha1.NodeMaintenance) {
	w.record(m, nil, v1.EventTypeNormal, reasonCompleted, "Complete", "Completed: its nodes are released, and schedulable unless another maintenance claims them")
}

// Invalid emits an event for a maintenance whose spec cannot be parsed.
func (w *Events) Invalid(m *coordinationv1alpha1.NodeMaintenance, err error) {
	w.record(m, nil, v1.EventTypeWarning, reasonInvalid, "Observe", fmt.Sprintf("The maintenance is ignored: %v", err))
}
