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

package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// ByHand is an annotation of a node that a person changes with each write of its own: the rules are about what
// controllers do.
const ByHand = "history.test/by-hand"

const (
	// Applier is the field manager with which a person applies whether a node is unschedulable, beside others who write that.
	Applier = "by-hand-applied"
	// Announced is the reason of a condition of a node that somebody else than the controllers writes (KEP-5683).
	Announced = "AnnouncedBySomebodyElse"
)

const (
	// settled is after what time everybody who runs has seen a change. It is far longer than a watch takes, and caches
	// that are older than that lead to violations.
	settled = 5 * time.Second

	// The facts of a world.
	exists   = "exists"
	isOpen   = "is open"
	isDrain  = "is in stage Drain"
	isCordon = "is in stage Cordon"
	isBound  = "is bound"
	isFree   = "is schedulable"
	// isHeld is the opposite.
	isHeld = "is unschedulable"
	isDown = "is not ready"
	// isServed is about pods.
	isServed = "is ready"
)

// NodeRules are the rules of KEP-4212, for maintenances that drain all pods of their nodes.
func NodeRules() []Rule {
	return []Rule{
		{"a node that is drained is cordoned and empty", drainedNode},
		{"drain targets do not step back during a drain", targetsGrow},
		{"a node is uncordoned only when no maintenance claims it", uncordonedWhenFree},
		{"a node stays cordoned that a person has cordoned", newHandCordons().check},
		{"a maintenance that is drained has drained all its nodes", drainedMaintenance},
		{"a condition stays that somebody else has written to a node without a maintenance", announcementStays},
	}
}

// observe takes note of the facts that a change is about.
func (w *World) observe(c *Change) {
	w.note(c.Key, exists, c.After != nil)
	switch after := c.After.(type) {
	case *coordinationv1alpha1.NodeMaintenance:
		w.note(c.Key, isOpen, goesOn(after))
		w.note(c.Key, isDrain, goesOn(after) && after.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain)
		w.note(c.Key, isCordon, goesOn(after) && after.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageCordon)
	case *v1.Pod:
		w.note(c.Key, isBound, after.Spec.NodeName != "")
		w.note(c.Key, isServed, isServing(after))
	case *v1.Node:
		w.note(c.Key, isFree, !after.Spec.Unschedulable)
		w.note(c.Key, isHeld, after.Spec.Unschedulable)
		w.note(c.Key, isDown, isBroken(after))
	case nil:
		for _, what := range []string{isOpen, isDrain, isCordon, isBound, isServed, isFree, isHeld, isDown} {
			w.note(c.Key, what, false)
		}
	}
}

// goesOn reports whether a maintenance keeps the nodes cordoned with which it has begun.
func goesOn(m *coordinationv1alpha1.NodeMaintenance) bool {
	return m.DeletionTimestamp == nil && (m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageCordon || m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain)
}

func selects(m *coordinationv1alpha1.NodeMaintenance, node *v1.Node) bool {
	selector, err := nodeaffinity.NewNodeSelector(m.Spec.NodeSelector)
	return err == nil && m.Spec.NodeSelector != nil && selector.Match(node)
}

// claimant returns a maintenance of the node of which a fact has held for some time, and which has begun with the node. In the
// stage Cordon, it need not begin.
func claimant(w *World, node *v1.Node, what string) string {
	found := ""
	each(w, func(m *coordinationv1alpha1.NodeMaintenance) {
		key := Key{"NodeMaintenance", types.NamespacedName{Name: m.Name}}
		isAtWork := slices.ContainsFunc(begunWith(node), func(a v1.MaintenanceAdmission) bool { return a.MaintenanceUID == m.UID && a.ReturningTime == nil })
		isCordoning := what == isOpen && w.hasHeld(key, isCordon, settled)
		if (isAtWork || isCordoning) && selects(m, node) && w.hasHeld(key, what, settled) {
			found = m.Name
		}
	})
	return found
}

// left returns a pod that has not left a node, and has been there for some time.
func left(w *World, node string) string {
	found := ""
	each(w, func(pod *v1.Pod) {
		key := Key{"Pod", types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}}
		if pod.Spec.NodeName == node && leaves(pod) && w.hasHeld(key, isBound, settled) {
			found = pod.Namespace + "/" + pod.Name
		}
	})
	return found
}

func nodeIs(node *v1.Node, conditionType v1.NodeConditionType) bool {
	return node != nil && slices.ContainsFunc(node.Status.Conditions, func(condition v1.NodeCondition) bool {
		return condition.Type == conditionType && condition.Status == v1.ConditionTrue
	})
}

func drainedNode(w *World, c *Change) string {
	before, after, ok := versions[*v1.Node](c)
	if !ok || !nodeIs(after, v1.NodeDrained) || nodeIs(before, v1.NodeDrained) {
		return ""
	}
	if !after.Spec.Unschedulable {
		return "it becomes drained, and is schedulable"
	}
	if pod := left(w, after.Name); pod != "" {
		return fmt.Sprintf("it becomes drained, and has pod %s", pod)
	}
	return ""
}

// targets returns up to which priority the pods of each type and selector are drained.
func targets(entries []v1.DrainPlanEntry) map[string]int32 {
	upTo := map[string]int32{}
	for _, entry := range entries {
		key := string(entry.PodType)
		if entry.PodSelector != nil {
			key += " " + metav1.FormatLabelSelector(entry.PodSelector)
		}
		upTo[key] = entry.PodPriority
	}
	return upTo
}

func targetsGrow(w *World, c *Change) string {
	before, after, ok := versions[*v1.Node](c)
	if !ok || before == nil || after == nil || before.UID != after.UID || before.Status.MaintenanceStatus == nil || claimant(w, before, isDrain) == "" {
		return ""
	}
	var now map[string]int32
	if status := after.Status.MaintenanceStatus; status != nil {
		now = targets(status.DrainTargets)
	}
	for key, priority := range targets(before.Status.MaintenanceStatus.DrainTargets) {
		if upTo, found := now[key]; !found || upTo < priority {
			return fmt.Sprintf("%s went up to %d, and now the targets are %v, while maintenance %s drains it", key, priority, now, claimant(w, before, isDrain))
		}
	}
	return ""
}

// isByHand reports whether a person has made the change.
func isByHand(before, after *v1.Node) bool {
	return before.Annotations[ByHand] != after.Annotations[ByHand]
}

// handCordons are the nodes that a person has cordoned, and nobody before, by their UIDs.
type handCordons map[types.UID]bool

func newHandCordons() handCordons { return handCordons{} }

func (h handCordons) check(_ *World, c *Change) string {
	before, after, ok := versions[*v1.Node](c)
	if !ok || before == nil || after == nil || before.UID != after.UID {
		return ""
	}
	changes := before.Spec.Unschedulable != after.Spec.Unschedulable
	switch {
	case isByHand(before, after):
		// Who applies what is so already becomes an owner of it, and who updates it does not.
		if changes || isApplied(after) {
			h[after.UID] = after.Spec.Unschedulable
		}
	case changes && h[after.UID] && !after.Spec.Unschedulable:
		return "it is uncordoned, and a person has cordoned it"
	}
	return ""
}

// isApplied reports whether a person has applied whether the node is unschedulable, and nobody has written another value since.
func isApplied(node *v1.Node) bool {
	return slices.ContainsFunc(node.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == Applier && entry.Operation == metav1.ManagedFieldsOperationApply && entry.FieldsV1 != nil &&
			strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:unschedulable"`)
	})
}

// isBroken reports whether the kubelet of a node has said that it is not ready, or nobody hears of it.
func isBroken(node *v1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition v1.NodeCondition) bool {
		return condition.Type == v1.NodeReady && condition.Status != v1.ConditionTrue
	})
}

// announcementStays checks that the controllers take no condition away that is not theirs. A maintenance of the node may
// give it another reason.
func announcementStays(_ *World, c *Change) string {
	before, after, ok := versions[*v1.Node](c)
	if !ok || before == nil || after == nil || before.UID != after.UID {
		return ""
	}
	for _, condition := range before.Status.Conditions {
		isLeft := slices.ContainsFunc(after.Status.Conditions, func(left v1.NodeCondition) bool { return left.Type == condition.Type })
		if condition.Reason == Announced && !isLeft {
			return fmt.Sprintf("somebody else has written %s, and it is gone", condition.Type)
		}
	}
	return ""
}

func uncordonedWhenFree(w *World, c *Change) string {
	before, after, ok := versions[*v1.Node](c)
	if !ok || before == nil || after == nil || before.UID != after.UID || !before.Spec.Unschedulable || after.Spec.Unschedulable || isByHand(before, after) {
		return ""
	}
	if m := claimant(w, before, isOpen); m != "" {
		return fmt.Sprintf("it is uncordoned, and maintenance %s claims it", m)
	}
	return ""
}

func drainedMaintenance(w *World, c *Change) string {
	before, after, ok := versions[*coordinationv1alpha1.NodeMaintenance](c)
	const drained = "Drained"
	if !ok || after == nil || !meta.IsStatusConditionTrue(after.Status.Conditions, drained) || before != nil && before.UID == after.UID && meta.IsStatusConditionTrue(before.Status.Conditions, drained) {
		return ""
	}
	text := ""
	each(w, func(node *v1.Node) {
		key := Key{"Node", types.NamespacedName{Name: node.Name}}
		isReturned, isSkipped := false, false
		for _, a := range admissionsOf(node) {
			if a.MaintenanceUID == after.UID && a.ReturningTime != nil {
				isReturned, isSkipped = true, a.DrainedTime == nil
			}
		}
		if selects(after, node) && isSkipped {
			text = fmt.Sprintf("it becomes drained, and node %s was given back before it was drained", node.Name)
		}
		if !selects(after, node) || !w.hasHeld(key, exists, settled) || isReturned {
			return
		}
		switch pod := left(w, node.Name); {
		case w.hasHeld(key, isFree, settled):
			text = fmt.Sprintf("it becomes drained, and node %s is schedulable", node.Name)
		case pod != "":
			text = fmt.Sprintf("it becomes drained, and node %s has pod %s", node.Name, pod)
		}
	})
	return text
}
