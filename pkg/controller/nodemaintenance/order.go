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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
)

// order is what a NodeMaintenance asks for: its spec, parsed once, and how far the object itself
// says that it has come.
type order struct {
	name       string
	uid        types.UID
	generation int64
	// rank orders maintenances by age, then by name: the oldest has the least.
	rank  string
	stage coordinationv1alpha1.NodeMaintenanceStage
	// effective is whether the maintenance may change nodes: see isEffective.
	effective bool
	selector  *maintenance.NodeMatcher
	plan      *maintenance.Plan
	// rollout limits how many nodes are drained at the same time; nil for all at once.
	rollout *coordinationv1alpha1.NodeMaintenanceRollout
	// policies say which pods are not evicted, and drainedWhen what else a drained node needs.
	policies    *maintenance.PodPolicies
	drainedWhen *coordinationv1alpha1.NodeMaintenanceDrainedWhen
	// escalation says when the drain of a node stops waiting.
	escalation *maintenance.Escalation
	// phase is how far the maintenance is with one node. It is set only where the orders of a node are
	// meant: see progressStore.selecting.
	phase nodePhase
	// skipped is whether a node in the phase Returning or Done was completed before it was drained.
	skipped bool
	// rolls is whether nodes begin at different times: because of the rollout, or because some had to wait
	// for a budget.
	rolls bool
	// begun is whether the status has a position of the drain plan already.
	begun bool
	// drained is whether the status says that the stage Drain has started.
	drained bool
	// cordonedUntil is when its stage Cordon has ended: nodes that wait may be unschedulable because of it.
	// It is nil if there was no such stage.
	cordonedUntil *metav1.Time
	// completed is whether the status says that the stage Complete has started.
	completed bool
	// failedBefore has since when writes fail, as the status says.
	failedBefore map[failureKey]time.Time
	// finalizerFailed is whether an attempt to store the finalizer has failed. Drains do not wait
	// for such a maintenance. See progressStore.finalizerFailed.
	finalizerFailed bool
}

// newOrder parses a maintenance.
func newOrder(m *coordinationv1alpha1.NodeMaintenance) (order, error) {
	selector, err := maintenance.NewNodeMatcher(m.Spec.NodeSelector)
	if err != nil {
		return order{}, fmt.Errorf("reading spec.nodeSelector: %w", err)
	}
	plan, err := maintenance.NewPlan(m.Spec.DrainPlan)
	if err != nil {
		return order{}, fmt.Errorf("reading spec.drainPlan: %w", err)
	}
	policies, err := maintenance.NewPodPolicies(m.Spec.PodPolicies)
	if err != nil {
		return order{}, fmt.Errorf("reading spec: %w", err)
	}
	escalation, err := maintenance.NewEscalation(m.Spec.Escalation)
	if err != nil {
		return order{}, fmt.Errorf("reading spec: %w", err)
	}
	return order{
		name: m.Name, uid: m.UID, generation: m.Generation,
		rank:      rankOf(m),
		stage:     m.Spec.Stage,
		effective: isEffective(m),
		selector:  selector,
		plan:      plan,
		rollout:   m.Spec.Rollout,
		rolls:     m.Spec.Rollout != nil || m.Status.RolloutStatus != nil,
		policies:  policies, drainedWhen: m.Spec.DrainedWhen, escalation: escalation,
		begun:     m.Status.DrainStatus.DrainPlanPosition != nil,
		drained:   hasStarted(&m.Status, coordinationv1alpha1.NodeMaintenanceStageDrain),
		completed: hasStarted(&m.Status, coordinationv1alpha1.NodeMaintenanceStageComplete),

		cordonedUntil: cordonedUntil(&m.Status),
		failedBefore:  failuresOf(&m.Status),
	}, nil
}

// unended is the end of a stage Cordon that goes on, or whose end is not stored yet.
var unended = metav1.NewTime(time.Unix(1<<40, 0))

// cordonedUntil returns when the stage Drain has ended the stage Cordon; nil if it was skipped: then both
// have started at the same time.
func cordonedUntil(status *coordinationv1alpha1.NodeMaintenanceStatus) *metav1.Time {
	cordon, drain := startOf(status, coordinationv1alpha1.NodeMaintenanceStageCordon), startOf(status, coordinationv1alpha1.NodeMaintenanceStageDrain)
	switch {
	case cordon == nil:
		return nil
	case drain == nil:
		return &unended
	case cordon.Before(drain):
		return drain
	}
	return nil
}

// rankOf returns the rank of a maintenance.
func rankOf(m *coordinationv1alpha1.NodeMaintenance) string {
	return m.CreationTimestamp.UTC().Format("2006-01-02T15:04:05") + "/" + m.Name
}

// isEffective reports whether a maintenance may change nodes: it has its finalizer, or it has
// started its stage, so that it had the finalizer and another client removed it.
func isEffective(m *coordinationv1alpha1.NodeMaintenance) bool {
	switch m.Spec.Stage {
	case coordinationv1alpha1.NodeMaintenanceStageIdle:
		return true
	case coordinationv1alpha1.NodeMaintenanceStageComplete:
		return hasFinalizer(m)
	default:
		return hasFinalizer(m) || hasStarted(&m.Status, m.Spec.Stage)
	}
}

func hasFinalizer(m *coordinationv1alpha1.NodeMaintenance) bool {
	return slices.Contains(m.Finalizers, coordinationv1alpha1.NodeMaintenanceFinalizer)
}

// claims reports whether the maintenance keeps its nodes unschedulable.
func (o *order) claims() bool {
	return o.effective && o.phase != phaseWaiting && o.phase != phaseDone && (o.stage == coordinationv1alpha1.NodeMaintenanceStageCordon || o.stage == coordinationv1alpha1.NodeMaintenanceStageDrain)
}

func (o *order) drains() bool {
	return o.effective && o.phase == phaseAdmitted && o.stage == coordinationv1alpha1.NodeMaintenanceStageDrain
}

// waits reports whether the maintenance waits until it may begin with the node.
func (o *order) waits() bool { return o.phase == phaseWaiting }

// hasCordoned reports whether the stage Cordon of the maintenance may have cordoned the node. One that was
// created later came too late for it.
func (o *order) hasCordoned(node *v1.Node) bool {
	return o.cordonedUntil != nil && !node.CreationTimestamp.After(o.cordonedUntil.Add(maintenance.MaxClockDifference))
}

// isShutdownOf reports whether the kubelet of the node has created the maintenance for a shutdown. How long
// others wait for pods is not for it to decide: whoever has the machine can write it.
func (o *order) isShutdownOf(node string) bool { return o.name == maintenance.ShutdownName(node) }

// awaitsFinalizer reports whether the maintenance will claim its nodes when its finalizer is
// stored.
func (o *order) awaitsFinalizer() bool {
	return !o.effective && o.stage != coordinationv1alpha1.NodeMaintenanceStageComplete
}

// delaysDrains reports whether the maintenance will drain its nodes when its finalizer is stored,
// so that no other drain of them starts before.
func (o *order) delaysDrains() bool {
	return o.awaitsFinalizer() && o.stage == coordinationv1alpha1.NodeMaintenanceStageDrain && !o.finalizerFailed
}

func (o *order) plans() bool {
	return o.stage == coordinationv1alpha1.NodeMaintenanceStageIdle || o.waits()
}

func (o *order) completes() bool {
	return o.effective && o.stage == coordinationv1alpha1.NodeMaintenanceStageComplete
}

// same reports whether the other order means the same for nodes.
func (o *order) same(other *order) bool {
	return o.uid == other.uid && o.generation == other.generation && o.effective == other.effective
}

// isDraining reports whether one of the maintenances drains the node that they select.
func isDraining(orders []order) bool {
	return slices.ContainsFunc(orders, func(o order) bool { return o.drains() })
}
