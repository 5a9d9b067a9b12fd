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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// drainRequester is the requester of drains.
const drainRequester = "nodemaintenance.k8s.io"

// drainSlack is how long after its end a drain may evict: kube-apiserver takes a request that is younger than five seconds
// for wanted, and may be suspended.
const drainSlack = 25 * time.Second

// decision is the longest time from what a controller has read to what it writes, if it is suspended in between. The
// histories suspend nobody for longer.
const decision = 40 * time.Second

// FleetRules are those of rollouts and NodeMaintenanceBudgets.
func FleetRules() []Rule {
	limits := &fleetLimits{of: map[Key][]limit{}, claimed: map[types.UID]time.Time{}}
	drains := &pastDrains{until: map[string]time.Time{}}
	return []Rule{
		{"a drain evicts pods only while it goes on", drains.check},
		{"a maintenance begins with no more nodes than each budget and its rollout allow", limits.check},
		{"no maintenance loses a node with which it has begun", admissionStays},
	}
}

// limit is what a NodeMaintenanceBudget or a rollout has allowed since some time.
type limit struct {
	since time.Time
	uid   types.UID
	// nodes and domains are how many may be maintained at the same time.
	nodes, domains int
}

// unlimited is a number that no history reaches.
const unlimited = 1000

// fleetLimits has what each holder has allowed when. A node may be admitted some time after that was decided, so the
// highest number since the maintenance is there counts. A budget or a rollout that is younger than that is not asked.
type fleetLimits struct {
	of map[Key][]limit
	// claimed is since when each maintenance is there.
	claimed map[types.UID]time.Time
}

// highest returns the most that the holder has allowed since a time, and false if it was not there all the time.
func (f *fleetLimits) highest(holder Key, uid types.UID, since time.Time) (nodes, domains int, known bool) {
	for _, l := range slices.Backward(f.of[holder]) {
		if l.uid != uid {
			return 0, 0, false
		}
		nodes, domains = max(nodes, l.nodes), max(domains, l.domains)
		if !l.since.After(since) {
			return nodes, domains, true
		}
	}
	return 0, 0, false
}

func (f *fleetLimits) note(c *Change, uid types.UID, nodes, domains int) {
	past := f.of[c.Key]
	if n := len(past); n == 0 || past[n-1].uid != uid || past[n-1].nodes != nodes || past[n-1].domains != domains {
		f.of[c.Key] = append(past, limit{c.Time, uid, nodes, domains})
	}
}

func numberOf(value *intstr.IntOrString) int {
	if value == nil || value.Type != intstr.Int {
		return unlimited
	}
	return value.IntValue()
}

func (f *fleetLimits) check(w *World, c *Change) string {
	switch after := c.After.(type) {
	case *coordinationv1alpha1.NodeMaintenanceBudget:
		domains := unlimited
		if after.Spec.Topology != nil {
			domains = int(after.Spec.Topology.MaxDomains)
		}
		f.note(c, after.UID, numberOf(after.Spec.MaxUnavailable), domains)
	case *coordinationv1alpha1.NodeMaintenance:
		if _, known := f.claimed[after.UID]; !known {
			f.claimed[after.UID] = c.Time
		}
		nodes := unlimited
		if after.Spec.Rollout != nil {
			nodes = numberOf(after.Spec.Rollout.MaxConcurrent)
		}
		f.note(c, after.UID, nodes, unlimited)
	case *v1.Node:
		before, _, _ := versions[*v1.Node](c)
		for _, admission := range begunWith(after) {
			if slices.ContainsFunc(begunWith(before), func(old v1.MaintenanceAdmission) bool { return old.MaintenanceUID == admission.MaintenanceUID }) {
				continue
			}
			text := f.judgeRollout(w, admission)
			// A node with which another one has begun counts already.
			if text == "" && len(begunWith(before)) == 0 {
				text = f.judgeBudgets(w, after, admission)
			}
			if text != "" {
				return text
			}
		}
	}
	return ""
}

// judgeRollout returns whether the maintenance has begun with more nodes than its rollout allows.
func (f *fleetLimits) judgeRollout(w *World, admission v1.MaintenanceAdmission) string {
	since, known := f.claimed[admission.MaintenanceUID]
	if !known {
		return fmt.Sprintf("maintenance %s has begun with it, and was never there", admission.MaintenanceName)
	}
	key := Key{"NodeMaintenance", types.NamespacedName{Name: admission.MaintenanceName}}
	allowed, _, known := f.highest(key, admission.MaintenanceUID, since)
	begun := 0
	each(w, func(other *v1.Node) {
		if slices.ContainsFunc(begunWith(other), func(a v1.MaintenanceAdmission) bool {
			return a.MaintenanceUID == admission.MaintenanceUID && a.FailedTime == nil
		}) {
			begun++
		}
	})
	if known && begun > allowed {
		return fmt.Sprintf("maintenance %s has begun with %d nodes, and its rollout allows %d", admission.MaintenanceName, begun, allowed)
	}
	return ""
}

// judgeBudgets returns which budget allows the maintenance no more nodes.
func (f *fleetLimits) judgeBudgets(w *World, node *v1.Node, admission v1.MaintenanceAdmission) string {
	since := f.claimed[admission.MaintenanceUID]
	text := ""
	each(w, func(budget *coordinationv1alpha1.NodeMaintenanceBudget) {
		key := Key{"NodeMaintenanceBudget", types.NamespacedName{Name: budget.Name}}
		nodes, domains, known := f.highest(key, budget.UID, since)
		selector, err := nodeaffinity.NewNodeSelector(budget.Spec.NodeSelector)
		if !known || err != nil || !selector.Match(node) {
			return
		}
		unavailable, active := 0, map[string]bool{}
		each(w, func(other *v1.Node) {
			otherKey := Key{"Node", types.NamespacedName{Name: other.Name}}
			isBegun := len(begunWith(other)) > 0
			// One that is cordoned already still runs its pods: it begins while fewer are begun with.
			isCordoned := node.Spec.Unschedulable || other.Spec.Unschedulable && w.hasHeld(otherKey, isHeld, decision)
			// So is one that is down, unless it has just broken.
			isLost := isBroken(other) && w.hasHeld(otherKey, isDown, decision)
			if selector.Match(other) && (isBegun || isLost || isCordoned && !node.Spec.Unschedulable) {
				unavailable++
			}
			if selector.Match(other) && isBegun && budget.Spec.Topology != nil {
				active[other.Labels[budget.Spec.Topology.Key]] = true
			}
		})
		switch {
		case unavailable > nodes:
			text = fmt.Sprintf("maintenance %s has begun with it: %d nodes of budget %s are unavailable, which allows %d", admission.MaintenanceName, unavailable, budget.Name, nodes)
		case len(active) > domains:
			text = fmt.Sprintf("maintenance %s has begun with it: nodes in %d domains of budget %s are maintained, which allows %d", admission.MaintenanceName, len(active), budget.Name, domains)
		}
	})
	return text
}

// begunWith returns the admissions of a node that are not done.
func begunWith(node *v1.Node) []v1.MaintenanceAdmission {
	if node == nil || node.Status.MaintenanceStatus == nil {
		return nil
	}
	var begun []v1.MaintenanceAdmission
	for _, admission := range node.Status.MaintenanceStatus.Admissions {
		if admission.DoneTime == nil {
			begun = append(begun, admission)
		}
	}
	return begun
}

// isBackInTime reports whether a node is Ready again before anything of it was drained. A maintenance begins with nodes
// that are down at any number, and budgets decide again if they are back before.
func isBackInTime(node *v1.Node, admission v1.MaintenanceAdmission) bool {
	return admission.DrainedTime == nil && admission.FailedTime == nil && len(node.Status.MaintenanceStatus.DrainTargets) == 0 &&
		slices.ContainsFunc(node.Status.Conditions, func(condition v1.NodeCondition) bool {
			return condition.Type == v1.NodeReady && condition.Status == v1.ConditionTrue && condition.LastTransitionTime.After(admission.AdmittedTime.Time)
		})
}

// admissionStays checks that a maintenance that goes on keeps the nodes with which it has begun.
func admissionStays(w *World, c *Change) string {
	before, after, ok := versions[*v1.Node](c)
	if !ok || before == nil || after == nil || before.UID != after.UID {
		return ""
	}
	for _, admission := range begunWith(before) {
		m, found := get[*coordinationv1alpha1.NodeMaintenance](w, "NodeMaintenance", "", admission.MaintenanceName)
		isKept := slices.ContainsFunc(admissionsOf(after), func(a v1.MaintenanceAdmission) bool { return a.MaintenanceUID == admission.MaintenanceUID })
		if isKept || !found || m.UID != admission.MaintenanceUID || !goesOn(m) || !selects(m, after) || isBackInTime(before, admission) {
			continue
		}
		return fmt.Sprintf("maintenance %s had begun with it, and goes on", m.Name)
	}
	return ""
}

// countDone returns how many maintenances have given the node back.
func countDone(node *v1.Node) int { return len(admissionsOf(node)) - len(begunWith(node)) }

func admissionsOf(node *v1.Node) []v1.MaintenanceAdmission {
	if node.Status.MaintenanceStatus == nil {
		return nil
	}
	return node.Status.MaintenanceStatus.Admissions
}

// pastDrains has until when each node was drained that is not drained any more.
type pastDrains struct{ until map[string]time.Time }

// isDraining reports whether the maintenance drains the node.
func isDraining(m *coordinationv1alpha1.NodeMaintenance, node *v1.Node) bool {
	return m != nil && goesOn(m) && m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain && selects(m, node) &&
		slices.ContainsFunc(begunWith(node), func(a v1.MaintenanceAdmission) bool { return a.MaintenanceUID == m.UID })
}

func (d *pastDrains) check(w *World, c *Change) string {
	switch before := c.Before.(type) {
	case *coordinationv1alpha1.NodeMaintenance:
		each(w, func(node *v1.Node) {
			if isDraining(before, node) {
				d.until[node.Name] = c.Time
			}
		})
	case *v1.Node:
		each(w, func(m *coordinationv1alpha1.NodeMaintenance) {
			if isDraining(m, before) {
				d.until[before.Name] = c.Time
			}
		})
	case *v1.Pod:
		after, _ := c.After.(*v1.Pod)
		isLeft := after != nil && after.UID == before.UID && after.DeletionTimestamp == nil
		request, found := get[*coordinationv1alpha1.EvictionRequest](w, "EvictionRequest", before.Namespace, string(before.UID))
		if isLeft || before.DeletionTimestamp != nil || !found || markOf(before) != request.UID ||
			len(request.Spec.Requesters) != 1 || request.Spec.Requesters[0].Name != drainRequester {
			return ""
		}
		return d.judge(w, before.Spec.NodeName)
	}
	return ""
}

func (d *pastDrains) judge(w *World, nodeName string) string {
	node, found := get[*v1.Node](w, "Node", "", nodeName)
	isDrained := false
	each(w, func(m *coordinationv1alpha1.NodeMaintenance) { isDrained = isDrained || found && isDraining(m, node) })
	until, was := d.until[nodeName]
	switch age := w.Time.Sub(until); {
	case isDrained || was && age <= drainSlack:
		return ""
	case was:
		return fmt.Sprintf("its node %s is drained by no maintenance, for %v", nodeName, age)
	}
	return fmt.Sprintf("its node %s is drained by no maintenance", nodeName)
}
