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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
)

// view is what people and scripts are told of one maintenance. "status -o json" prints
// it, so that its fields are an interface.
type view struct {
	Name  string                                    `json:"name"`
	Stage coordinationv1alpha1.NodeMaintenanceStage `json:"stage"`
	// StageStarted is when the controller started the stage; nil if it has not.
	StageStarted *metav1.Time `json:"stageStarted,omitempty"`
	Reason       string       `json:"reason,omitempty"`
	// Deleting tells that the object is going to be deleted.
	Deleting bool `json:"deleting,omitempty"`
	// Outcome is Drained or Completed, or empty while there is something to wait for.
	Outcome       outcome `json:"outcome,omitempty"`
	SelectedNodes int     `json:"selectedNodes"`
	DrainedNodes  int     `json:"drainedNodes"`
	PodsPending   int     `json:"podsPendingEvictionRequest"`
	PodsEvicting  int     `json:"activeEvictionRequests"`
	PodsBlocked   int     `json:"blockedPods"`
	// Targets are the drain targets that all nodes have reached.
	Targets []corev1.DrainPlanEntry `json:"reachedDrainTargets,omitempty"`
	// DrainMessage is the controller's, in one line.
	DrainMessage string `json:"drainMessage,omitempty"`
	// ETA is the latest time at which an interceptor expects to be done.
	ETA   *metav1.Time `json:"eta,omitempty"`
	Nodes []nodeView   `json:"nodes"`
	// Blockers are what pods wait for, with what needs somebody to act first. Where the
	// user may not read pods or eviction requests, there are none, and Condition tells.
	Blockers []blockerView `json:"blockers"`
	// Condition is the message of the condition Drained, as the controller wrote it.
	Condition string `json:"condition,omitempty"`
	// Unreadable are the resources that the user may not list.
	Unreadable []string `json:"unreadable,omitempty"`
	// NodesNotRead is of how many nodes no pod was read, because the nodes are many: their
	// counts are those of the controller, and Condition has what their pods wait for.
	NodesNotRead int `json:"nodesNotRead,omitempty"`

	// uid tells it from another one that was created under the same name.
	uid types.UID
	// selector is what selects the nodes.
	selector *corev1.NodeSelector
	// observed reports whether the controller has acted on what is wanted now.
	observed bool
	// created is when the maintenance was.
	created time.Time
	// wasDrained reports whether no pod was left when a completed one was drained.
	wasDrained bool
	// counted tells that the controller has taken the stage up, and that somebody has
	// counted the pods since: until then, no pod is known rather than left.
	counted bool
	// held is what each pod waits for, as a key of a blocker.
	held map[types.NamespacedName]string
}

// outcome is how a maintenance ended, as far as a drain is concerned.
type outcome string

const (
	outcomeDrained   outcome = "Drained"
	outcomeCompleted outcome = "Completed"
	outcomeDeleted   outcome = "Deleted"
	// outcomeReplaced is deleted, too: one of the same name is another one.
	outcomeReplaced outcome = "Replaced"
)

// isGone reports whether the maintenance that was followed does not exist any more.
func (v *view) isGone() bool { return v.Outcome == outcomeDeleted || v.Outcome == outcomeReplaced }

// nodeView is one node of a maintenance.
type nodeView struct {
	Name     string `json:"name"`
	Cordoned bool   `json:"cordoned"`
	Drained  bool   `json:"drained"`
	// Left tells of pods that are left: not asked to leave, asked to, and, of these,
	// those that stay until somebody acts. Known in the stage Drain.
	PodsPending  int `json:"podsPendingEvictionRequest"`
	PodsEvicting int `json:"activeEvictionRequests"`
	PodsBlocked  int `json:"blockedPods"`
	// PodsGone is how many pods have left since somebody looks on: see progress.
	PodsGone int `json:"podsGone,omitempty"`
	// HeldBy are the other maintenances that keep the node cordoned. Known in the stage
	// Complete.
	HeldBy  []string                `json:"heldBy,omitempty"`
	Targets []corev1.DrainPlanEntry `json:"drainTargets,omitempty"`
	Message string                  `json:"drainMessage,omitempty"`

	// stuck tells that somebody has to act, though none of the pods that are counted here is
	// blocked: the node cannot be cordoned, or its pods cannot be asked to leave.
	stuck bool
}

// isHeld tells whether a node stays cordoned.
func (v *view) isHeld() bool {
	return slices.ContainsFunc(v.Nodes, func(node nodeView) bool { return node.Cordoned })
}

func (n *nodeView) podsLeft() int { return n.PodsPending + n.PodsEvicting }

// blockerView is what pods have in common that wait for the same.
type blockerView struct {
	Cause maintenance.HoldCause `json:"cause"`
	Name  string                `json:"name,omitempty"`
	// Blocked tells that the pods stay until somebody acts.
	Blocked bool `json:"blocked"`
	Pods    int  `json:"pods"`
	// Nodes is how many nodes are concerned, and Object what to inspect, where only the
	// controller knows.
	Nodes  int    `json:"nodes,omitempty"`
	Object string `json:"object,omitempty"`
	// Says is what the controller says of it, where that is more than the rest says.
	Says string `json:"says,omitempty"`
	// First are the first of them.
	First     []string     `json:"firstPods"`
	Heartbeat *metav1.Time `json:"heartbeat,omitempty"`
	ETA       *metav1.Time `json:"eta,omitempty"`
	Since     *metav1.Time `json:"since,omitempty"`
	// Messages are what an interceptor says of its pods, if it says anything.
	Messages []messageView `json:"messages,omitempty"`
}

// viewsOf returns the views of all maintenances of a snapshot.
func viewsOf(s *snapshot, now time.Time) []view {
	views := []view{}
	for _, nm := range s.maintenances {
		views = append(views, viewOf(nm, s, now))
	}
	return views
}

func viewOf(nm *coordinationv1alpha1.NodeMaintenance, s *snapshot, now time.Time) view {
	drain := &nm.Status.DrainStatus
	v := view{
		Name: nm.Name, Stage: nm.Spec.Stage, Reason: nm.Spec.Reason,
		Deleting:      nm.DeletionTimestamp != nil,
		Outcome:       outcomeOf(nm),
		SelectedNodes: int(nm.Status.SelectedNodes),
		DrainedNodes:  int(drain.DrainedNodes),
		PodsPending:   int(drain.PodsPendingEvictionRequest),
		PodsEvicting:  int(drain.ActiveEvictionRequests),
		PodsBlocked:   int(drain.BlockedPods),
		Targets:       drain.ReachedDrainTargets,
		DrainMessage:  drain.DrainMessage,
		Nodes:         []nodeView{},
		Blockers:      []blockerView{},
		Unreadable:    s.unreadable,
		uid:           nm.UID,
		created:       nm.CreationTimestamp.Time,
		selector:      nm.Spec.NodeSelector,
		observed:      nm.Status.ObservedGeneration == nm.Generation,
		held:          map[types.NamespacedName]string{},
	}
	for _, stage := range nm.Status.StageStatuses {
		if stage.Name == nm.Spec.Stage {
			v.StageStarted = stage.StartTimestamp
		}
	}
	if condition := meta.FindStatusCondition(nm.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained)); condition != nil {
		v.Condition = condition.Message
		v.wasDrained = condition.Status == metav1.ConditionTrue
	}
	if s.readable("nodes") {
		v.addNodes(s.selectedNodes(nm.Spec.NodeSelector), s, now)
	}
	v.addPublished(nm, s)
	if v.Outcome == outcomeDrained && (len(v.Nodes) == 0 || int32(len(v.Nodes)) == nm.Status.SelectedNodes) {
		v.settle()
	}
	v.counted = v.StageStarted != nil && v.observed &&
		(s.countsPods() && s.readable("nodes") || drain.DrainMessage != "")
	return v
}

// settle makes the rest agree with the controller, which has found that no pod is left:
// nodes and pods are read apart from the maintenance, and may be older.
func (v *view) settle() {
	v.PodsPending, v.PodsEvicting, v.PodsBlocked = 0, 0, 0
	v.ETA = nil
	// What stays is about nodes that the maintenance does not select any more.
	v.Blockers = slices.DeleteFunc(v.Blockers, func(b blockerView) bool {
		return !b.Cause.OfNode() || slices.ContainsFunc(v.Nodes, func(node nodeView) bool { return b.Object == "Node "+node.Name })
	})
	clear(v.held)
	for i := range v.Nodes {
		node := &v.Nodes[i]
		node.Drained, node.Cordoned, node.Message = true, true, "Drained"
		node.PodsPending, node.PodsEvicting, node.PodsBlocked = 0, 0, 0
	}
	if len(v.Nodes) > 0 {
		v.DrainedNodes = len(v.Nodes)
	}
}

// outcomeOf returns how the maintenance ended, or nothing while it goes on.
func outcomeOf(nm *coordinationv1alpha1.NodeMaintenance) outcome {
	switch {
	case isCompleted(nm):
		return outcomeCompleted
	case isDrained(nm):
		return outcomeDrained
	}
	return ""
}

// isDrained reports whether no pod is left on the nodes that are selected now. Scripts
// reboot nodes on its word: a condition that was written for another stage or another
// selector says nothing of them, and one that is being deleted gives its nodes back.
func isDrained(nm *coordinationv1alpha1.NodeMaintenance) bool {
	condition := meta.FindStatusCondition(nm.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained))
	return nm.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain && nm.DeletionTimestamp == nil &&
		nm.Status.ObservedGeneration == nm.Generation &&
		condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == nm.Generation
}

// isCompleted tells whether the nodes were given back: the finalizer goes when they are.
func isCompleted(nm *coordinationv1alpha1.NodeMaintenance) bool {
	return nm.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete && nm.Status.ObservedGeneration == nm.Generation && !hasFinalizer(nm)
}

func hasFinalizer(nm *coordinationv1alpha1.NodeMaintenance) bool {
	for _, finalizer := range nm.Finalizers {
		if finalizer == coordinationv1alpha1.NodeMaintenanceFinalizer {
			return true
		}
	}
	return false
}

// addNodes adds the nodes, and, in the stage Drain, what their pods wait for. What can be
// counted in them replaces what the status of the maintenance says: it is of another time.
func (v *view) addNodes(nodes []*corev1.Node, s *snapshot, now time.Time) {
	var groups [][]maintenance.HoldGroup
	var holders map[string][]string
	if v.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete {
		holders = holdersOfNodes(s)
	}
	for _, node := range nodes {
		n := nodeViewOf(node)
		switch {
		case v.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete && n.Cordoned:
			n.HeldBy = holders[n.Name]
		case v.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain && s.countsPods() && !s.readsPodsOf(node.Name):
			v.NodesNotRead++
		case v.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain && s.countsPods():
			holds := holdsOf(node.Name, s, now)
			n.countPods(s, holds)
			for _, hold := range holds {
				v.held[hold.Pod] = blockerKey(hold.Cause, hold.Name)
			}
			groups = append(groups, maintenance.GroupHolds(holds))
		}
		v.Nodes = append(v.Nodes, n)
	}
	v.sumUp(s)
	for _, group := range maintenance.MergeGroups(groups...) {
		v.addBlocker(group)
	}
	v.addMessages(s)
}

// sumUp makes the head of the view the sum of its nodes.
func (v *view) sumUp(s *snapshot) {
	v.SelectedNodes = len(v.Nodes)
	if v.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
		return
	}
	v.DrainedNodes = 0
	blocked := v.PodsBlocked
	if s.countsPods() {
		v.PodsPending, v.PodsEvicting, v.PodsBlocked = 0, 0, 0
	}
	for i := range v.Nodes {
		node := &v.Nodes[i]
		if node.Drained {
			v.DrainedNodes++
		}
		if s.countsPods() {
			v.PodsPending += node.PodsPending
			v.PodsEvicting += node.PodsEvicting
			v.PodsBlocked += node.PodsBlocked
		}
	}
	if v.NodesNotRead > 0 {
		// Only the controller has counted those of all nodes.
		v.PodsBlocked = max(v.PodsBlocked, blocked)
	}
}

// countPods counts as the controller does, in what was read at the same time as the holds.
// A pod that was evicted has left, though its end may be read after that of its request.
func (n *nodeView) countPods(s *snapshot, holds []maintenance.Hold) {
	n.PodsPending, n.PodsEvicting, n.PodsBlocked = 0, 0, 0
	for _, pod := range s.pods[n.Name] {
		request := s.requests[string(pod.UID)]
		switch {
		case !maintenance.IsLeft(pod) || request != nil && evictionrequest.StateOf(request) == evictionrequest.StateEvicted:
		case request == nil || isFinal(request):
			n.PodsPending++
		default:
			n.PodsEvicting++
		}
	}
	n.Drained = n.Drained && n.podsLeft() == 0
	for i := range holds {
		if holds[i].Cause.Blocked() {
			n.PodsBlocked++
		}
	}
}

// holdersOfNodes names, by node, the maintenances that keep it cordoned.
func holdersOfNodes(s *snapshot) map[string][]string {
	holders := map[string][]string{}
	for _, nm := range s.maintenances {
		holds := nm.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageCordon || nm.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain
		if !holds {
			continue
		}
		for _, node := range s.selectedNodes(nm.Spec.NodeSelector) {
			holders[node.Name] = append(holders[node.Name], nm.Name)
		}
	}
	return holders
}

func nodeViewOf(node *corev1.Node) nodeView {
	n := nodeView{Name: node.Name, Cordoned: node.Spec.Unschedulable}
	if status := node.Status.MaintenanceStatus; status != nil {
		n.PodsPending, n.PodsEvicting = int(status.PodsPendingEvictionRequest), int(status.ActiveEvictionRequests)
		n.Targets, n.Message = status.DrainTargets, status.DrainMessage
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == coordinationv1alpha1.NodeDrained {
			n.Drained = condition.Status == corev1.ConditionTrue
		}
	}
	return n
}

// holdsOf returns what holds the pods of a node.
func holdsOf(node string, s *snapshot, now time.Time) []maintenance.Hold {
	var holds []maintenance.Hold
	for _, pod := range s.pods[node] {
		if hold, held := maintenance.HoldOf(pod, s.requests[string(pod.UID)], s.budgetsOf, now); held {
			holds = append(holds, hold)
		}
	}
	return holds
}

func (v *view) addBlocker(group maintenance.HoldGroup) {
	blocker := blockerView{
		Cause: group.Cause, Name: group.Name, Blocked: group.Cause.Blocked(), Pods: group.Pods,
		Heartbeat: group.Heartbeat, ETA: group.ETA, Since: group.Since,
	}
	for _, pod := range group.First {
		blocker.First = append(blocker.First, pod.String())
	}
	if group.ETA != nil && (v.ETA == nil || v.ETA.Before(group.ETA)) {
		v.ETA = group.ETA
	}
	v.Blockers = append(v.Blockers, blocker)
}

// key tells blockers apart.
func (b *blockerView) key() string { return blockerKey(b.Cause, b.Name) }

func blockerKey(cause maintenance.HoldCause, name string) string { return string(cause) + " " + name }

// progress remembers how many pods each node had, so that a bar can show how many of
// them are gone: no object tells.
type progress map[string]int

// apply fills in how many pods have left since this was first called.
func (p progress) apply(views []view) {
	for i := range views {
		for j := range views[i].Nodes {
			node := &views[i].Nodes[j]
			key := fmt.Sprintf("%s/%s", views[i].Name, node.Name)
			p[key] = max(p[key], node.podsLeft())
			node.PodsGone = p[key] - node.podsLeft()
		}
	}
}
