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
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
)

// view is what people and scripts see of one maintenance. "status -o json" prints it: its fields
// are an interface.
type view struct {
	Name  string                                    `json:"name"`
	Stage coordinationv1alpha1.NodeMaintenanceStage `json:"stage"`
	// StageStarted is when the controller started the stage; nil if it has not.
	StageStarted *metav1.Time `json:"stageStarted,omitempty"`
	Reason       string       `json:"reason,omitempty"`
	// Deleting is true if the object has a deletion timestamp.
	Deleting bool `json:"deleting,omitempty"`
	// Outcome is Drained or Completed, or empty while there is something to wait for. With
	// spec.rollout, it is Done instead of Drained, when all nodes were given back.
	Outcome       outcome `json:"outcome,omitempty"`
	SelectedNodes int     `json:"selectedNodes"`
	DrainedNodes  int     `json:"drainedNodes"`
	PodsPending   int     `json:"podsPendingEvictionRequest"`
	PodsEvicting  int     `json:"activeEvictionRequests"`
	PodsBlocked   int     `json:"blockedPods"`
	// PodsSkipped is how many pods stay, because pod policies skip them or nobody stops them.
	PodsSkipped int `json:"skippedPods"`
	// Targets are the drain targets that all nodes have reached.
	Targets []corev1.DrainPlanEntry `json:"reachedDrainTargets,omitempty"`
	// DrainMessage is the controller's, in one line.
	DrainMessage string `json:"drainMessage,omitempty"`
	// ETA is the latest time at which pods are expected to be gone.
	ETA   *metav1.Time `json:"eta,omitempty"`
	Nodes []*nodeView  `json:"nodes"`
	// Blockers are those that the controller publishes, in its order: those that need an
	// intervention first. BlockerCount also counts those that the status does not list.
	Blockers     []*blockerView `json:"blockers"`
	BlockerCount int            `json:"blockerCount"`
	// Condition is the message of the condition Drained.
	Condition string `json:"condition,omitempty"`
	// Rollout is nil if all nodes are drained at the same time.
	Rollout *rolloutView `json:"rollout,omitempty"`
	// Unreadable is "nodes" if the user may not list them. Nodes is empty then.
	Unreadable []string `json:"unreadable,omitempty"`

	// uid distinguishes it from one that was created later under the same name.
	uid types.UID
	// selector selects the nodes.
	selector *corev1.NodeSelector
	// skips reports whether the maintenance may leave pods alone that others want to leave.
	skips bool
	// observed reports whether the status is of the current generation.
	observed bool
	// nodeless reports whether it has selected no node for long, and will not get one.
	nodeless bool
	// changed is when a client last changed the maintenance, as far as it says so.
	changed time.Time
	// wasDrained reports whether no pod was left when a completed maintenance was drained.
	wasDrained bool
	// lost says which nodes it does not select any more, as far as the command has seen.
	lost []string
	// countedNodes is how many nodes the controller has counted.
	countedNodes int
	// counted reports whether the controller has counted pods in this stage. Until then, their
	// number is unknown, not 0.
	counted bool
	// underWay are the nodes of a rollout that are under way, the most urgent ones first, once they
	// are needed: a screen is laid out many times.
	underWay []*nodeView
}

// outcome is how a maintenance ended, as far as a drain is concerned.
type outcome string

const (
	outcomeDrained   outcome = "Drained"
	outcomeDone      outcome = "Done"
	outcomeCompleted outcome = "Completed"
	outcomeDeleted   outcome = "Deleted"
	// outcomeReplaced means that it was deleted, and that another one has its name.
	outcomeReplaced outcome = "Replaced"
)

// isGone reports whether the maintenance does not exist any more.
func (v *view) isGone() bool { return v.Outcome == outcomeDeleted || v.Outcome == outcomeReplaced }

// nodeView is one node of a maintenance.
type nodeView struct {
	Name     string `json:"name"`
	Cordoned bool   `json:"cordoned"`
	Drained  bool   `json:"drained"`
	// The pods that are left: without an EvictionRequest, with one, and those whose eviction needs
	// an intervention. Published in the stage Drain.
	PodsPending  int `json:"podsPendingEvictionRequest"`
	PodsEvicting int `json:"activeEvictionRequests"`
	PodsBlocked  int `json:"blockedPods"`
	// PodsGone is how many pods have left since the drain of the node began, as far as the controller has
	// recorded it, and otherwise since the command started: see progress.
	PodsGone int `json:"podsGone,omitempty"`
	// ClaimedBy are the other maintenances that keep the node cordoned. Set in the stage Complete.
	ClaimedBy []string                `json:"claimedBy,omitempty"`
	Targets   []corev1.DrainPlanEntry `json:"drainTargets,omitempty"`
	Message   string                  `json:"drainMessage,omitempty"`
	// Phase is how far a rollout is with the node, and PhaseSince since when. Set in the stage Drain,
	// if nodes are admitted one by one.
	Phase      nodePhase    `json:"phase,omitempty"`
	PhaseSince *metav1.Time `json:"phaseSince,omitempty"`

	// Skipped is true if somebody has completed the node before it was drained, which --force does.
	Skipped bool `json:"skipped,omitempty"`

	// startedBy are other maintenances that have begun with the node and are not done with it.
	startedBy []string
	// stuck reports whether a blocker names the node, as when it cannot be cordoned.
	stuck bool
	// unhealthy says why a node that comes back is not made schedulable yet; often empty. unexplainedSince
	// is since when the node itself does not say why; nil if it does.
	unhealthy        string
	unexplainedSince *metav1.Time
	// rebooted reports whether the node was rebooted after its drain, which ends the work on it, and was
	// not released, and ready whether it is Ready. readySince is since when; nil if that is unknown.
	rebooted, ready bool
	readySince      *metav1.Time
	// seenReadySince is since when the command has seen the node Ready, by the clock of this computer; nil if it looks once.
	seenReadySince *metav1.Time
	// completed reports whether somebody has said that the work on the node is done, and the controller
	// has not acted on it.
	completed bool
	// bootUnknown reports whether the boot in which the node was drained is unknown: no reboot ends the
	// work on it.
	bootUnknown bool
}

// givenBack is how many nodes were given back one by one.
func (v *view) givenBack() int {
	if v.Rollout == nil {
		return 0
	}
	return v.Rollout.DoneNodes
}

// unreadableText says what the user may not see; empty if there is nothing.
func (v *view) unreadableText() string {
	if len(v.Unreadable) == 0 {
		return ""
	}
	return fmt.Sprintf("Without the permission to list %s, they are not shown.", strings.Join(v.Unreadable, ", "))
}

// isHeld reports whether a node stays cordoned.
func (v *view) isHeld() bool {
	return slices.ContainsFunc(v.Nodes, func(node *nodeView) bool { return node.Cordoned })
}

// needsController reports whether the controller has to act for the maintenance to go on.
func (v *view) needsController() bool {
	return v.Outcome == "" && (v.Stage != coordinationv1alpha1.NodeMaintenanceStageIdle || !v.observed) || v.Deleting
}

// isFinished reports whether the maintenance has drained the node, or the work on it is done.
func (n *nodeView) isFinished() bool {
	switch n.Phase {
	case "", phaseDraining, phaseDrained:
		return n.Drained // No pod has come back.
	}
	return n.Phase != phaseWaiting
}

func (n *nodeView) podsLeft() int { return n.PodsPending + n.PodsEvicting }

// blockerView is a blocker that the controller publishes.
type blockerView struct {
	Cause maintenance.BlockerCause `json:"cause"`
	Name  string                `json:"name,omitempty"`
	// Blocked reports whether the blocker needs an intervention.
	Blocked bool `json:"blocked"`
	Pods    int  `json:"pods"`
	Nodes   int  `json:"nodes,omitempty"`
	// Object is the kind and name of the object to inspect, if it is a single one.
	Object string `json:"object,omitempty"`
	// Message is that of the controller.
	Message string `json:"message,omitempty"`
	// First are the first of the pods.
	First []string     `json:"firstPods"`
	ETA   *metav1.Time `json:"eta,omitempty"`
	Since *metav1.Time `json:"since,omitempty"`
}

func viewNames(views []*view) []string {
	return mapped(views, func(v *view) string { return v.Name })
}

func nodeNames(nodes []*nodeView) []string {
	return mapped(nodes, func(node *nodeView) string { return node.Name })
}

// viewsOf returns the views of all maintenances of a snapshot.
func viewsOf(s *snapshot) []*view {
	views := mapped(s.maintenances, func(nm *coordinationv1alpha1.NodeMaintenance) *view { return viewOf(nm, s) })
	return append([]*view{}, views...) // JSON has a list in any case.
}

func viewOf(nm *coordinationv1alpha1.NodeMaintenance, s *snapshot) *view {
	drain := &nm.Status.DrainStatus
	v := &view{
		Name: nm.Name, Stage: nm.Spec.Stage, Reason: nm.Spec.Reason,
		Deleting:      nm.DeletionTimestamp != nil,
		Outcome:       outcomeOf(nm),
		SelectedNodes: int(nm.Status.SelectedNodes),
		DrainedNodes:  int(drain.DrainedNodes),
		PodsPending:   int(drain.PodsPendingEvictionRequest),
		PodsEvicting:  int(drain.ActiveEvictionRequests),
		PodsBlocked:   int(drain.BlockedPods),
		PodsSkipped:   int(drain.SkippedPods),
		Targets:       drain.ReachedDrainTargets,
		DrainMessage:  drain.DrainMessage,
		Nodes:         []*nodeView{},
		Blockers:      []*blockerView{},
		Unreadable:    s.unreadable,
		Rollout:       rolloutOf(nm),
		uid:           nm.UID,
		changed:       lastChange(nm),
		selector:      nm.Spec.NodeSelector,
		skips:         skipsPods(nm),
		observed:      nm.Status.ObservedGeneration == nm.Generation,
		countedNodes:  int(nm.Status.SelectedNodes),
	}
	for _, stage := range nm.Status.StageStatuses {
		if stage.Name == nm.Spec.Stage {
			v.StageStarted = stage.StartTimestamp
		}
	}
	if condition := drainedCondition(nm); condition != nil {
		v.Condition, v.wasDrained = condition.Message, condition.Status == metav1.ConditionTrue
	}
	if s.readable("nodes") {
		nodes := s.selectedNodes(nm.Spec.NodeSelector)
		v.addNodes(nodes, s)
		v.addPhases(nm, nodes)
	}
	if r := v.Rollout; r != nil && !r.Halted {
		r.WaitingFor = filtered(r.WaitingFor, func(wait coordinationv1alpha1.NodeMaintenanceWait) bool { return !isHaltedWait(wait) })
	}
	v.addBlockers(nm)
	if v.Outcome == outcomeDrained && (len(v.Nodes) == 0 || int32(len(v.Nodes)) == nm.Status.SelectedNodes) {
		v.settle()
	}
	v.counted = v.StageStarted != nil && v.observed && drain.DrainMessage != ""
	return v
}

// lastChange returns when a client last changed something that the controller has to act on: the status is not
// that.
func lastChange(nm *coordinationv1alpha1.NodeMaintenance) time.Time {
	last := nm.CreationTimestamp.Time
	for _, entry := range nm.ManagedFields {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	if nm.DeletionTimestamp != nil && nm.DeletionTimestamp.After(last) {
		last = nm.DeletionTimestamp.Time
	}
	return last
}

// settle makes the view agree with the controller, which has found that no pod is left: the nodes
// are read separately, and may be older.
func (v *view) settle() {
	v.PodsPending, v.PodsEvicting, v.PodsBlocked, v.ETA = 0, 0, 0, nil
	// A drained node is cordoned, but its status may not be written. The other blockers concern nodes
	// that the maintenance does not select any more.
	v.Blockers = slices.DeleteFunc(v.Blockers, func(b *blockerView) bool {
		return !b.Cause.OfNode() || b.Cause == maintenance.BlockerCordonFailed && slices.ContainsFunc(v.Nodes, func(node *nodeView) bool { return b.isOfNode(node.Name) })
	})
	v.BlockerCount = len(v.Blockers)
	for _, node := range v.Nodes {
		if node.Phase == phaseReturning || node.Phase == phaseDone {
			continue // It runs pods again.
		}
		node.Cordoned = true
		node.setDrained("Drained")
	}
	if len(v.Nodes) > 0 {
		v.DrainedNodes = len(v.Nodes)
		if v.Rollout != nil {
			v.DrainedNodes -= v.Rollout.SkippedNodes
		}
	}
}

// outcomeOf returns how the maintenance ended, or nothing if it has not. A rollout is done when all nodes were given
// back, as far as the current selector is concerned. Some may have been skipped: then it is not drained, but there is
// nothing left to wait for.
func outcomeOf(nm *coordinationv1alpha1.NodeMaintenance) outcome {
	condition, rollout := drainedCondition(nm), nm.Status.RolloutStatus
	switch {
	case isCompleted(nm):
		return outcomeCompleted
	case !isCurrent(nm, condition):
		return ""
	case nm.Spec.Rollout == nil && condition.Status == metav1.ConditionTrue:
		return outcomeDrained
	case nm.Spec.Rollout == nil || condition.Status != metav1.ConditionTrue && condition.Reason != coordinationv1alpha1.NodeMaintenanceReasonNodesSkipped:
		return ""
	case rollout != nil && rollout.DoneNodes >= nm.Status.SelectedNodes:
		return outcomeDone
	}
	return ""
}

// isDrained reports whether no pod is left on the nodes that are selected now. Scripts reboot nodes
// when it returns true: a condition that was written for another stage or another selector is not
// about these nodes, and a maintenance that is being deleted releases its nodes.
func isDrained(nm *coordinationv1alpha1.NodeMaintenance) bool {
	condition := drainedCondition(nm)
	return isCurrent(nm, condition) && condition.Status == metav1.ConditionTrue
}

func drainedCondition(nm *coordinationv1alpha1.NodeMaintenance) *metav1.Condition {
	return meta.FindStatusCondition(nm.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained))
}

// isCurrent reports whether the condition is about the drain of the nodes that are selected now.
func isCurrent(nm *coordinationv1alpha1.NodeMaintenance, condition *metav1.Condition) bool {
	return nm.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain && nm.DeletionTimestamp == nil &&
		nm.Status.ObservedGeneration == nm.Generation && condition != nil && condition.ObservedGeneration == nm.Generation
}

// isCompleted reports whether the nodes are released: the controller removes its finalizer then.
func isCompleted(nm *coordinationv1alpha1.NodeMaintenance) bool {
	return nm.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete && nm.Status.ObservedGeneration == nm.Generation && !slices.Contains(nm.Finalizers, coordinationv1alpha1.NodeMaintenanceFinalizer)
}

// addNodes adds the nodes with what the controller has published on each. Their number replaces
// that of the status, which is 0 before the controller has observed the maintenance.
func (v *view) addNodes(nodes []*corev1.Node, s *snapshot) {
	drained := 0
	var coversOf func(node *corev1.Node) []coverView
	if v.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete {
		coversOf = s.covers(v.Name)
	}
	for _, node := range nodes {
		n := nodeViewOf(node)
		if coversOf != nil && n.Cordoned {
			holders := filtered(coversOf(node), func(cover coverView) bool { return cordons(cover.Stage) })
			n.ClaimedBy = mapped(holders, func(cover coverView) string { return cover.Name })
		}
		if n.Drained {
			drained++
		}
		v.Nodes = append(v.Nodes, n)
	}
	if v.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain {
		most := v.DrainedNodes - drained
		if v.Rollout != nil {
			most -= v.Rollout.DoneNodes
		}
		drained += v.addDrainedButForOthers(nodes, most)
	}
	v.SelectedNodes = len(v.Nodes)
	if v.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain {
		v.DrainedNodes = drained
	}
}

// drainedButForOthers is the state of a node on which only pods are left that the maintenance skips.
const drainedButForOthers = "Drained, but for pods that others want to leave"

// addDrainedButForOthers shows nodes as drained for which the node itself only says that other maintenances are not
// done, and returns their number: one row must not contradict the counts of the maintenance, which are about its own
// pods. most is how many drained nodes the maintenance has besides the others: with more, pods may have come back.
func (v *view) addDrainedButForOthers(nodes []*corev1.Node, most int) int {
	var found []*nodeView
	for i, node := range nodes {
		admission := maintenance.AdmissionOf(node, v.uid)
		if hasPodsAfterDrain(node, admission) && mayBeOfOthers(node, admission, v.skips) {
			found = append(found, v.Nodes[i])
		}
	}
	if len(found) > most {
		return 0
	}
	for _, node := range found {
		node.setDrained(drainedButForOthers)
	}
	return len(found)
}

// setDrained shows the node as drained, without pods.
func (n *nodeView) setDrained(message string) {
	n.Drained, n.Message = true, message
	n.PodsPending, n.PodsEvicting, n.PodsBlocked = 0, 0, 0
}

// maxHeldNodes is how many of the nodes that the same maintenances claim are named.
const maxHeldNodes = 5

func nodeViewOf(node *corev1.Node) *nodeView {
	n := &nodeView{Name: node.Name, Cordoned: node.Spec.Unschedulable, Drained: saysDrained(node)}
	if status := node.Status.MaintenanceStatus; status != nil {
		n.PodsPending, n.PodsEvicting = int(status.PodsPendingEvictionRequest), int(status.ActiveEvictionRequests)
		n.PodsBlocked = int(status.BlockedPods)
		n.PodsGone = max(0, int(status.InitialPods)-n.podsLeft())
		n.Targets, n.Message = status.DrainTargets, status.DrainMessage
	}
	return n
}

// saysDrained reports whether the node has the condition Drained.
func saysDrained(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeDrained && c.Status == corev1.ConditionTrue
	})
}

// cordons reports whether the nodes of a maintenance in this stage are kept cordoned.
func cordons(stage coordinationv1alpha1.NodeMaintenanceStage) bool {
	return stage == coordinationv1alpha1.NodeMaintenanceStageCordon || stage == coordinationv1alpha1.NodeMaintenanceStageDrain
}

// addBlockers adds the blockers that the controller publishes.
func (v *view) addBlockers(nm *coordinationv1alpha1.NodeMaintenance) {
	// Until the controller has observed the stage Complete, they are those of the previous stage.
	if !cordons(nm.Spec.Stage) && (nm.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageComplete || !v.observed) {
		return
	}
	drain := &nm.Status.DrainStatus
	for _, published := range drain.Blockers {
		b := blockerViewOf(&published)
		if b.ETA != nil && (v.ETA == nil || v.ETA.Before(b.ETA)) {
			v.ETA = b.ETA
		}
		for _, node := range v.Nodes {
			node.stuck = node.stuck || b.isOfNode(node.Name)
		}
		v.Blockers = append(v.Blockers, b)
	}
	v.BlockerCount = max(len(v.Blockers), int(drain.BlockerCount))
}

func blockerViewOf(published *coordinationv1alpha1.DrainBlocker) *blockerView {
	cause := maintenance.BlockerCause(published.Cause)
	b := &blockerView{
		Cause: cause, Name: published.Name, Blocked: cause.Blocked(), Pods: int(published.PodCount), Nodes: int(published.NodeCount),
		First: []string{}, Since: published.SinceTime, ETA: published.ExpectedFinishTime, Message: plaintext.Line(published.Message),
	}
	for _, pod := range published.Pods {
		b.First = append(b.First, pod.Namespace+"/"+pod.Name)
	}
	if object := published.Object; object != nil {
		b.Object = object.Kind + " " + object.Name
		if object.Namespace != "" {
			b.Object = object.Kind + " " + object.Namespace + "/" + object.Name
		}
	}
	return b
}

// isOfNode reports whether the blocker names the node as its object.
func (b *blockerView) isOfNode(name string) bool { return b.Object == "Node "+name }

// isUncordoned reports whether the controller has acted, and the node is still not cordoned: the
// API server refuses it, or another client keeps uncordoning the node. One that waits for its
// admission, or that was given back, is schedulable.
func (v *view) isUncordoned(node *nodeView) bool {
	if node.Phase == phaseWaiting || node.Phase == phaseDone {
		return false
	}
	return cordons(v.Stage) && v.StageStarted != nil && v.observed && !node.Cordoned
}

// unexplained names the nodes that are not cordoned and that no blocker concerns. A blocker names
// one node and counts the others. It may concern nodes that are not selected any more.
func (v *view) unexplained() []string {
	names := nodeNames(filtered(v.Nodes, v.isUncordoned))
	for _, b := range v.Blockers {
		if b.Cause != maintenance.BlockerCordonFailed || !slices.ContainsFunc(names, b.isOfNode) {
			continue
		}
		if len(names) <= b.Nodes {
			return nil
		}
		names = slices.DeleteFunc(names, b.isOfNode)
	}
	return names
}

// key identifies a blocker of a maintenance.
func (b *blockerView) key() string { return string(b.Cause) + " " + b.Name }

// progress remembers how many pods each node had, so that a bar can show how many have left: a node
// records that for all of its maintenances together, and only if its controller is of this version.
type progress map[string]int

// apply sets how many pods have left since its first call.
func (p progress) apply(views []*view) {
	for _, v := range views {
		for _, node := range v.Nodes {
			key := v.Name + "/" + node.Name
			p[key] = max(p[key], node.PodsGone+node.podsLeft())
			node.PodsGone = p[key] - node.podsLeft()
		}
	}
}

// undrainedReason says why the nodes of a maintenance do not count as drained; empty if they do.
// The selector is that at the start of the command.
func undrainedReason(v *view, selector *corev1.NodeSelector) string {
	switch {
	case v.Outcome == outcomeDeleted:
		return "was deleted: its nodes are released"
	case v.Outcome == outcomeReplaced:
		return "was deleted: its nodes are released; another maintenance has its name now"
	case v.nodeless && v.selectsByName():
		return "selects no node: none of those that it names exists"
	case v.nodeless:
		return "selects no node any more: its nodes were deleted, or have other labels"
	case v.Deleting:
		return "is being deleted: its nodes are released"
	case v.Rollout != nil && v.Rollout.own && v.Outcome == outcomeCompleted:
		return cmp.Or(v.Rollout.incompleteReason(v.SelectedNodes), v.skippedReason(), v.lostReason())
	case v.Rollout != nil && v.Rollout.own && v.Outcome != outcomeDone:
		return "is not done"
	case v.Outcome == outcomeCompleted && v.wasDrained:
		return "was drained and then completed: its nodes are released and may run pods again"
	case v.Outcome == outcomeCompleted:
		return "was completed before it was drained: its nodes are released"
	case v.Outcome != outcomeDrained && v.Outcome != outcomeDone:
		return "is not drained"
	case v.skippedReason() != "":
		return v.skippedReason()
	case !apiequality.Semantic.DeepEqual(v.selector, selector):
		return strings.ToLower("is "+string(v.Outcome)) + ", but its node selector has changed: nodes that it no longer selects are released"
	}
	return v.lostReason()
}

// lostReason names the nodes that were released before the end: their pods may run. Empty if there are none.
func (v *view) lostReason() string {
	if len(v.lost) == 0 {
		return ""
	}
	return "no longer selects " + listFirst(v.lost, maxHeldNodes) + ": released, and may run pods. To drain such nodes: kubectl maintenance start NODE..."
}

// skippedReason names the nodes that were completed before they were drained: their pods run. Empty if there are
// none.
func (v *view) skippedReason() string {
	if v.Rollout == nil || v.Rollout.SkippedNodes == 0 {
		return ""
	}
	return fmt.Sprintf("has not drained %d of %s, which somebody has completed before: %s", v.Rollout.SkippedNodes, counted(v.SelectedNodes, "node", "nodes"),
		listFirst(v.Rollout.skipped, maxHeldNodes))
}

// isEnded reports whether a maintenance is drained, or can no longer become drained.
func isEnded(v *view) bool { return v.Outcome != "" || v.Deleting || v.nodeless }

// incompleteReason says how many nodes a rollout had not given back one by one when it was completed;
// empty if none.
func (r *rolloutView) incompleteReason(nodes int) string {
	if r.DoneNodes >= nodes {
		return ""
	}
	return fmt.Sprintf("was completed when %d of %s were done: the others are released", r.DoneNodes, counted(nodes, "node", "nodes"))
}

// selectsByName reports whether all terms of the selector name a node.
func (v *view) selectsByName() bool {
	return v.selector != nil && !slices.ContainsFunc(v.selector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		_, named := maintenance.NamedNode(&term)
		return !named
	})
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// listPods joins the first names, and counts the others.
func listPods(first []string, pods int) string {
	text := strings.Join(first, ", ")
	if more := pods - len(first); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// listFirst joins as many names as may be named, and counts the others.
func listFirst(names []string, limit int) string {
	return listPods(names[:min(limit, len(names))], len(names))
}

// elapsed is never negative: the clock of the writer of the time may be ahead.
func elapsed(now time.Time, at metav1.Time) string {
	return duration.HumanDuration(max(0, now.Sub(at.Time)))
}

// timeAndRemainder is a time and how far away it is, with the date unless it is today.
func timeAndRemainder(now time.Time, at metav1.Time) string {
	return formatTime(now, at, time.TimeOnly)
}

// windowTime is timeAndRemainder with the time zone, because people in several zones agree upon windows, which
// open at full minutes.
func windowTime(now time.Time, at metav1.Time) string { return formatTime(now, at, "15:04 MST") }

func formatTime(now time.Time, at metav1.Time, format string) string {
	local := at.In(now.Location())
	if local.YearDay() != now.YearDay() || local.Year() != now.Year() {
		format = time.DateOnly + " " + format
	}
	if remainder := at.Sub(now); remainder >= 0 {
		return fmt.Sprintf("%s, in %s", local.Format(format), duration.HumanDuration(remainder))
	}
	return fmt.Sprintf("%s, %s ago", local.Format(format), elapsed(now, at))
}

// part is a number of things.
type part struct {
	count int
	what  string
}

// listParts lists the numbers that are not 0.
func listParts(parts ...part) string {
	parts = slices.DeleteFunc(parts, func(p part) bool { return p.count <= 0 })
	return strings.Join(mapped(parts, func(p part) string { return fmt.Sprintf("%d %s", p.count, p.what) }), ", ")
}

// appendIf appends a text if something is so.
func appendIf(texts []string, isSo bool, text string) []string {
	if isSo {
		return append(texts, text)
	}
	return texts
}
