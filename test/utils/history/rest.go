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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
)

// Liveness is the rule that Unfinished evaluates when nobody disturbs the programs any more.
const Liveness = "everything comes to an end"

// plannedTaint is the key of the taint of nodes that come next.
const plannedTaint = "nodemaintenance.k8s.io/planned"

// Unfinished returns what is left of work that is over: nobody would ever do it. A request that is not finished, and a drain
// that is not over, may wait for a person.
func (c *Checker) Unfinished() []string {
	w := c.world
	var left []string
	add := func(format string, args ...any) { left = append(left, fmt.Sprintf(format, args...)) }
	each(w, func(m *coordinationv1alpha1.NodeMaintenance) {
		if m.DeletionTimestamp != nil {
			add("maintenance %s is being deleted, and never goes", m.Name)
		}
	})
	each(w, func(node *v1.Node) {
		claimed, kept, drained, awaited, selected, cordonedFor := false, false, false, false, false, ""
		each(w, func(m *coordinationv1alpha1.NodeMaintenance) {
			selected = selected || m.DeletionTimestamp == nil && m.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageComplete && selects(m, node)
			if !goesOn(m) || !selects(m, node) {
				return
			}
			isOfThis := func(a v1.MaintenanceAdmission) bool { return a.MaintenanceUID == m.UID }
			hasBegun := slices.ContainsFunc(begunWith(node), isOfThis)
			switch m.Spec.Stage {
			case coordinationv1alpha1.NodeMaintenanceStageCordon:
				claimed, cordonedFor = true, m.Name
			default:
				claimed, drained = claimed || hasBegun, drained || hasBegun
				awaited = awaited || !slices.ContainsFunc(admissionsOf(node), isOfThis)
				kept = kept || wasInStageCordon(m)
			}
		})
		status := node.Status.MaintenanceStatus
		switch {
		case !claimed && !kept && node.Spec.Unschedulable && !c.byHand[node.UID]:
			add("node %s stays unschedulable, and no maintenance claims it", node.Name)
		case cordonedFor != "" && !node.Spec.Unschedulable:
			add("node %s is schedulable, and maintenance %s cordons it", node.Name, cordonedFor)
		case !claimed && saysInProgress(node):
			add("node %s says that a maintenance is in progress, and none is", node.Name)
		case !selected && saysOfMaintenance(node) != "":
			add("node %s says %s, and no maintenance selects it", node.Name, saysOfMaintenance(node))
		case !drained && status != nil && len(status.DrainTargets) > 0:
			add("node %s has the drain targets %v, and no maintenance drains it", node.Name, targets(status.DrainTargets))
		case !awaited && slices.ContainsFunc(node.Spec.Taints, func(taint v1.Taint) bool { return taint.Key == plannedTaint }):
			add("node %s has the taint %s, and no maintenance is to drain it", node.Name, plannedTaint)
		}
		if drained {
			return
		}
		each(w, func(request *coordinationv1alpha1.EvictionRequest) {
			pod, found := targetOf(w, request)
			isForDrain := slices.ContainsFunc(request.Spec.Requesters, func(r coordinationv1alpha1.Requester) bool { return r.Name == drainRequester })
			if found && pod.Spec.NodeName == node.Name && isForDrain && !isFinished(request) {
				add("the eviction of pod %s is requested for a drain, and no maintenance drains node %s", describe(pod), node.Name)
			}
		})
	})
	each(w, func(request *coordinationv1alpha1.EvictionRequest) {
		if _, found := targetOf(w, request); !found && !isFinished(request) && request.Spec.Target.Pod != nil {
			add("pod %s is gone, and request %s does not say so", request.Spec.Target.Pod.Name, describe(request))
		}
	})
	left = append(left, unfinishedViews(w)...)
	slices.Sort(left)
	return left
}

// wasInStageCordon reports whether a maintenance has cordoned nodes before it drains them: they stay so until it begins with them.
func wasInStageCordon(m *coordinationv1alpha1.NodeMaintenance) bool {
	return slices.ContainsFunc(m.Status.StageStatuses, func(s coordinationv1alpha1.StageStatus) bool {
		return s.Name == coordinationv1alpha1.NodeMaintenanceStageCordon
	})
}

// saysInProgress reports whether the controller, and nobody else, has written that a maintenance is in progress.
func saysInProgress(node *v1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition v1.NodeCondition) bool {
		return condition.Type == v1.NodeMaintenanceInProgress && condition.Status == v1.ConditionTrue && condition.Reason != Announced
	})
}

// saysOfMaintenance returns the condition by which the controller, and nobody else, says something of a maintenance; empty
// if none does.
func saysOfMaintenance(node *v1.Node) v1.NodeConditionType {
	for _, condition := range node.Status.Conditions {
		switch condition.Type {
		case v1.NodeMaintenancePlanned, v1.NodeMaintenanceInProgress, v1.NodeDrainInProgress, v1.NodeDrained:
			if condition.Reason != Announced {
				return condition.Type
			}
		}
	}
	return ""
}

// Break records that a rule is broken that is about all objects.
func (c *Checker) Break(rule, text string) {
	c.violations = append(c.violations, Violation{Rule: rule, Text: text, start: c.start, Change: Change{Revision: c.world.Revision}})
}
