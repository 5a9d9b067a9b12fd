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

package maintenance

import (
	"fmt"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

// rolloutView says how far the nodes are of a maintenance that begins with them one by one.
type rolloutView struct {
	// MaxConcurrent, CompleteNodes, MaxFailedNodes and Paused are those of spec.rollout. A
	// maintenance that only NodeMaintenanceBudgets limit has none.
	MaxConcurrent  string                                    `json:"maxConcurrent,omitempty"`
	CompleteNodes  coordinationv1alpha1.NodeCompletionPolicy `json:"completeNodes,omitempty"`
	MaxFailedNodes *int32                                    `json:"maxFailedNodes,omitempty"`
	Paused         bool                                      `json:"paused,omitempty"`
	// Halted is true if so many nodes have failed that no further one is drained.
	Halted bool `json:"halted,omitempty"`
	// WaitingNodes wait for their admission, AdmittedNodes are admitted and not given back, DoneNodes
	// are given back. FailedNodes, which are among the admitted ones, did not come back in time.
	WaitingNodes  int `json:"waitingNodes"`
	AdmittedNodes int `json:"admittedNodes"`
	DoneNodes     int `json:"doneNodes"`
	FailedNodes   int `json:"failedNodes"`
	// AcknowledgedNodes, which are among the failed ones, do not count for MaxFailedNodes.
	AcknowledgedNodes int `json:"acknowledgedNodes,omitempty"`
	// SkippedNodes, which are among the done ones, were completed before they were drained.
	SkippedNodes int `json:"skippedNodes,omitempty"`
	// Failed are the names of the first of the failed nodes.
	Failed []string `json:"failed,omitempty"`
	// WaitingFor says what nodes wait for, most nodes first.
	WaitingFor []coordinationv1alpha1.NodeMaintenanceWait `json:"waitingFor,omitempty"`

	// skipped are the names of the skipped nodes.
	skipped []string
	// halting are the nodes that count for MaxFailedNodes; empty if the user may not list nodes.
	halting failedNodes
	// own reports whether the maintenance has spec.rollout.
	own bool
	// counted reports whether the controller has counted nodes. Until then, their numbers are
	// unknown, not 0.
	counted bool
	// phases counts the nodes by their phases; empty if the user may not list nodes.
	phases map[nodePhase]int
	// finished is how many of the drained nodes need nothing more: they were completed, or rebooted if that
	// ends the work on them. bootUnknown is how many others have to be completed, although the maintenance
	// waits for reboots.
	finished, bootUnknown int
}

// nodePhase is how far a maintenance is with one of its nodes.
type nodePhase string

// The phases in their order, except that a node may fail at any time after it was drained.
const (
	phaseWaiting   nodePhase = "Waiting"
	phaseDraining  nodePhase = "Draining"
	phaseDrained   nodePhase = "Drained"
	phaseReturning nodePhase = "Returning"
	phaseFailed    nodePhase = "Failed"
	phaseDone      nodePhase = "Done"
)

// urgency orders phases by how much a person has to know of a node. From phaseWaiting on, there is
// nothing to do with it.
var urgency = []nodePhase{phaseFailed, phaseReturning, phaseDraining, phaseDrained, phaseWaiting, phaseDone}

// isUnderWay reports whether the maintenance has begun with the node and has not given it back.
func (p nodePhase) isUnderWay() bool { return p != "" && p != phaseWaiting && p != phaseDone }

// rolloutOf returns the view of a rollout, without its nodes; nil if all nodes are drained at the
// same time.
func rolloutOf(nm *coordinationv1alpha1.NodeMaintenance) *rolloutView {
	spec, status := nm.Spec.Rollout, nm.Status.RolloutStatus
	if spec == nil && status == nil {
		return nil
	}
	r := &rolloutView{own: spec != nil, counted: status != nil, Halted: isHalted(nm), phases: map[nodePhase]int{}}
	if spec != nil {
		r.CompleteNodes, r.Paused, r.MaxFailedNodes = spec.CompleteNodes, spec.Paused, ptr.To(ptr.Deref(spec.MaxFailedNodes, 0))
		if spec.MaxConcurrent != nil {
			r.MaxConcurrent = spec.MaxConcurrent.String()
		}
	}
	if status != nil {
		r.WaitingNodes, r.AdmittedNodes, r.DoneNodes, r.FailedNodes = int(status.WaitingNodes), int(status.AdmittedNodes), int(status.DoneNodes), int(status.FailedNodes)
		r.Failed, r.WaitingFor = status.Failed, status.WaitingFor
	}
	return r
}

// isHalted reports whether nodes that did not come back keep the maintenance from going on.
func isHalted(nm *coordinationv1alpha1.NodeMaintenance) bool {
	return nm.Spec.Rollout != nil && meta.IsStatusConditionTrue(nm.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionHalted))
}

// isHaltedWait reports whether nodes wait because the maintenance is halted.
func isHaltedWait(wait coordinationv1alpha1.NodeMaintenanceWait) bool {
	return wait.Reason == coordinationv1alpha1.NodeMaintenanceWaitHalted
}

// addPhases sets how far each node is. Numbers that follow from the nodes replace those of the
// status, which may be older.
func (v *view) addPhases(nm *coordinationv1alpha1.NodeMaintenance, nodes []*corev1.Node) {
	r := v.Rollout
	if r == nil || v.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
		return
	}
	// Before the controller has acted, it is unknown which nodes need an admission. In a rollout all do:
	// a change of it, such as a pause, changes no phase.
	if !v.observed && !r.own || v.StageStarted == nil {
		return
	}
	for i, node := range nodes {
		n, admission := v.Nodes[i], maintenance.AdmissionOf(node, v.uid)
		n.Phase, n.PhaseSince = phaseOf(v, node, admission)
		for _, other := range maintenance.Admissions(node) {
			if other.MaintenanceUID != v.uid && other.DoneTime == nil {
				n.startedBy = append(n.startedBy, other.MaintenanceName)
			}
		}
		if n.Phase == phaseDone && admission.DrainedTime == nil {
			n.Skipped = true
			r.SkippedNodes, r.skipped = r.SkippedNodes+1, append(r.skipped, n.Name)
		}
		n.addHealth(node, admission, r.CompleteNodes)
		switch {
		case n.Phase == phaseFailed && r.own && slices.Contains(nm.Spec.Rollout.AcknowledgedNodeUIDs, node.UID):
			r.AcknowledgedNodes++
		case n.Phase == phaseFailed:
			r.halting = append(r.halting, node)
		case n.Phase != phaseDrained:
		case n.completed || n.rebooted:
			r.finished++
		case n.bootUnknown:
			r.bootUnknown++
		}
		if n.Phase == phaseWaiting && n.Drained {
			// For another maintenance: this one has not begun with it.
			n.Drained = false
			v.DrainedNodes--
		}
		r.phases[n.Phase]++
	}
	r.WaitingNodes, r.DoneNodes, r.FailedNodes = r.phases[phaseWaiting], r.phases[phaseDone], r.phases[phaseFailed]
	r.AdmittedNodes = len(nodes) - r.WaitingNodes - r.DoneNodes
	// The maintenance may say it before the nodes, and after somebody has acknowledged their failure.
	r.Halted = r.halting.halt(nm)
	v.DrainedNodes += r.DoneNodes - r.SkippedNodes
}

// skippedNodesText counts the nodes that were completed before they were drained; empty if there are none.
func (v *view) skippedNodesText() string {
	if v.Rollout == nil || v.Rollout.SkippedNodes == 0 {
		return ""
	}
	return fmt.Sprintf(", %d skipped", v.Rollout.SkippedNodes)
}

// hasPhases reports whether it is known how far each node is.
func (v *view) hasPhases() bool { return len(v.Nodes) > 0 && v.Nodes[0].Phase != "" }

// phaseOf returns the phase of a node, and since when it has it, if that is known.
func phaseOf(v *view, node *corev1.Node, admission *corev1.MaintenanceAdmission) (nodePhase, *metav1.Time) {
	switch {
	case admission == nil && needsAdmission(v, node):
		return phaseWaiting, nil
	case admission == nil:
		return phaseDraining, nil
	case admission.DoneTime != nil:
		return phaseDone, admission.DoneTime
	case admission.FailedTime != nil:
		return phaseFailed, admission.FailedTime
	case admission.ReturningTime != nil:
		return phaseReturning, admission.ReturningTime
	case admission.DrainedTime != nil && !hasPodsAgain(node, admission, v.skips):
		return phaseDrained, admission.DrainedTime
	}
	return phaseDraining, &admission.AdmittedTime
}

// skipsPods reports whether the maintenance may leave pods alone that others want to leave.
func skipsPods(nm *coordinationv1alpha1.NodeMaintenance) bool { return len(nm.Spec.PodPolicies) > 0 }

// podsLeftOn returns how many pods are left on a node for any of its maintenances.
func podsLeftOn(node *corev1.Node) int {
	status := node.Status.MaintenanceStatus
	if status == nil {
		return 0
	}
	return int(status.PodsPendingEvictionRequest + status.ActiveEvictionRequests)
}

// hasPodsAgain reports whether pods have come back to a node that was drained for the maintenance of the admission: the
// admission has when it was for the first time. It is as good as drained if it was rebooted since, or if the
// pods that are left may be those that the maintenance skips and others do not.
func hasPodsAgain(node *corev1.Node, admission *corev1.MaintenanceAdmission, skips bool) bool {
	return hasPodsAfterDrain(node, admission) && !bootsDiffer(node, admission) && !mayBeOfOthers(node, admission, skips)
}

// hasPodsAfterDrain reports whether the node of an admission was drained, is not given back, and has pods.
func hasPodsAfterDrain(node *corev1.Node, admission *corev1.MaintenanceAdmission) bool {
	return admission != nil && admission.DrainedTime != nil && admission.ReturningTime == nil && admission.DoneTime == nil && podsLeftOn(node) > 0 &&
		!saysDrained(node)
}

// mayBeOfOthers reports whether the maintenance of an admission skips pods, and another one drains the node, so that the
// pods that are left may be those that only the other one wants to leave. The node counts them for all together.
func mayBeOfOthers(node *corev1.Node, admission *corev1.MaintenanceAdmission, skips bool) bool {
	return skips && slices.ContainsFunc(maintenance.Admissions(node), func(other corev1.MaintenanceAdmission) bool {
		return other.MaintenanceUID != admission.MaintenanceUID && other.ReturningTime == nil && other.DoneTime == nil
	})
}

// needsAdmission reports whether a node without an admission waits for one. A maintenance that only
// budgets limit goes on with nodes with which it has begun before.
func needsAdmission(v *view, node *corev1.Node) bool {
	return v.Rollout.own || v.Rollout.WaitingNodes > 0 && !maintenance.IsDrainedFor(node, v.uid)
}

const (
	// notReleased says of a node that nothing is known which keeps it.
	notReleased = "not released yet"

	// notActed says of a node that somebody has completed, and that still looks as before.
	notActed = "completed, the controller has not acted yet"

	// unknownBoot says of a node that its reboot cannot be seen.
	unknownBoot = "its boot ID is unknown"
)

// addHealth sets why a node is not released, as far as the node says it.
func (n *nodeView) addHealth(node *corev1.Node, admission *corev1.MaintenanceAdmission, policy coordinationv1alpha1.NodeCompletionPolicy) {
	switch n.Phase {
	case phaseDrained, phaseReturning, phaseFailed:
	default:
		return
	}
	waitsForReboot := admission.ReturningTime == nil && policy == coordinationv1alpha1.NodeCompletionRebooted
	if waitsForReboot && bootsDiffer(node, admission) {
		n.rebooted, n.ready = true, maintenance.IsReady(node)
		// A reboot may be so short that the condition does not change: if it is older than the drain, nothing says when
		// the node was rebooted.
		if since := readyTransition(node); n.ready && since != nil && (admission.DrainedTime == nil || admission.DrainedTime.Before(since)) {
			n.readySince = since
		}
	}
	if admission.ReturningTime == nil && node.Annotations[coordinationv1alpha1.NodeDoneAnnotation] == string(admission.MaintenanceUID) {
		n.completed, n.unhealthy = true, notActed
	}
	if n.rebooted || n.completed {
		return // For how long it is Ready depends on the time.
	}
	n.bootUnknown = waitsForReboot && admission.BootID == ""
	if n.Phase == phaseDrained {
		if n.bootUnknown {
			n.unhealthy = unknownBoot
		}
		return // The work on it is not done.
	}
	switch taint := slices.IndexFunc(node.Spec.Taints, maintenance.IsStartupTaint); {
	case !maintenance.IsReady(node):
		n.unhealthy = "not Ready"
	case admission.ReturningTime == nil && !knowsBoots(node, admission):
		n.unhealthy = unknownBoot
	case admission.ReturningTime == nil:
		n.unhealthy = "not rebooted"
	case taint >= 0:
		n.unhealthy = "has the taint " + node.Spec.Taints[taint].Key
	default:
		// The controller waits for pods of DaemonSets, or does not run: pods are not read here.
		n.unhealthy, n.unexplainedSince = notReleased, admission.ReturningTime
		if since := readyTransition(node); n.unexplainedSince.Before(since) {
			n.unexplainedSince = since // Until then, it was not Ready.
		}
	}
}

// knowsBoots reports whether it is known in which boot the node was drained, and in which it is.
func knowsBoots(node *corev1.Node, admission *corev1.MaintenanceAdmission) bool {
	return admission.BootID != "" && node.Status.NodeInfo.BootID != ""
}

// bootsDiffer reports whether the node was rebooted since it was drained.
func bootsDiffer(node *corev1.Node, admission *corev1.MaintenanceAdmission) bool {
	return knowsBoots(node, admission) && admission.BootID != node.Status.NodeInfo.BootID
}

// readyTransition returns when the node became Ready, or not Ready; nil if it does not say so.
func readyTransition(node *corev1.Node) *metav1.Time {
	at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if at < 0 {
		return nil
	}
	return &node.Status.Conditions[at].LastTransitionTime
}

// failedNodes are the nodes of a rollout that did not come back in time, by name. The status of the maintenance has
// only the first names: a node that was created again has the name of one that has failed.
type failedNodes []*corev1.Node

// halt reports whether these nodes halt the rollout: more of them are not acknowledged than may fail.
func (f failedNodes) halt(nm *coordinationv1alpha1.NodeMaintenance) bool {
	if !isHalted(nm) {
		return false
	}
	unacknowledged := filtered(f, func(node *corev1.Node) bool { return !slices.Contains(nm.Spec.Rollout.AcknowledgedNodeUIDs, node.UID) })
	return len(unacknowledged) > int(ptr.Deref(nm.Spec.Rollout.MaxFailedNodes, 0))
}

// names names the first of the nodes.
func (f failedNodes) names() string { return listFirst(namesOf(f), maxFailedNames) }

// maxFailedNames is how many failed nodes are named, as in the status of a maintenance.
const maxFailedNames = 10
