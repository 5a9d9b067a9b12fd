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

package progress

import (
	"fmt"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

// Spec is what a NodeMaintenance asks for: its spec, parsed once, and how far the object itself
// says that it has come.
type Spec struct {
	// Name, UID and Generation are those of the object.
	Name       string
	UID        types.UID
	Generation int64
	// rank orders maintenances by age, then by name: the oldest has the least.
	rank string
	// Stage is that of the spec, which the maintenance need not have started.
	Stage coordinationv1alpha1.NodeMaintenanceStage
	// Effective is whether the maintenance may change nodes: see IsEffective.
	Effective bool
	// Selector says which nodes it selects, and Plan in which order their pods leave.
	Selector *maintenance.NodeMatcher
	Plan     *maintenance.Plan
	// Rollout limits how many nodes are drained at the same time; nil for all at once.
	Rollout *coordinationv1alpha1.NodeMaintenanceRollout
	// Policies say which pods are not evicted, and drainedWhen what else a drained node needs.
	Policies    *maintenance.PodPolicies
	drainedWhen *coordinationv1alpha1.NodeMaintenanceDrainedWhen
	// Escalation says when the drain of a node stops waiting.
	Escalation *maintenance.Escalation
	// Phase is how far the maintenance is with one node. It is set only where the specs of a node are
	// meant: see Store.Selecting.
	Phase Phase
	// skipped is whether a node in the phase Returning or Done was completed before it was drained.
	skipped bool
	// Rolls is whether nodes begin at different times: because of the rollout, or because some had to wait
	// for a budget.
	Rolls bool
	// begun is whether the status has a position of the drain plan already.
	begun bool
	// drained is whether the status says that the stage Drain has started.
	drained bool
	// CordonedUntil is when its stage Cordon has ended: nodes that wait may be unschedulable because of it.
	// It is nil if there was no such stage.
	CordonedUntil *metav1.Time
	// completed is whether the status says that the stage Complete has started.
	completed bool
	// failedBefore has since when writes fail, as the status says.
	failedBefore map[FailureKey]time.Time
	// finalizerFailed is whether an attempt to store the finalizer has failed. Drains do not wait
	// for such a maintenance. See Store.FinalizerFailed.
	finalizerFailed bool
}

// Phase is how far a maintenance in the stage Drain is with one node.
type Phase int

const (
	// PhaseAdmitted: it may begin, or needs no admission.
	PhaseAdmitted Phase = iota
	// PhaseWaiting: it needs an admission. The node is announced, and nothing else is changed.
	PhaseWaiting
	// PhaseReturning: the work on the node is done. It stays unschedulable until it is healthy, but is
	// not drained.
	PhaseReturning
	// PhaseDone: the node was given back.
	PhaseDone
)

// NewSpec parses a maintenance.
func NewSpec(m *coordinationv1alpha1.NodeMaintenance) (Spec, error) {
	selector, err := maintenance.NewNodeMatcher(m.Spec.NodeSelector)
	if err != nil {
		return Spec{}, fmt.Errorf("reading spec.nodeSelector: %w", err)
	}
	plan, err := maintenance.NewPlan(m.Spec.DrainPlan)
	if err != nil {
		return Spec{}, fmt.Errorf("reading spec.drainPlan: %w", err)
	}
	policies, err := maintenance.NewPodPolicies(m.Spec.PodPolicies)
	if err != nil {
		return Spec{}, fmt.Errorf("reading spec: %w", err)
	}
	escalation, err := maintenance.NewEscalation(m.Spec.Escalation)
	if err != nil {
		return Spec{}, fmt.Errorf("reading spec: %w", err)
	}
	return Spec{
		Name: m.Name, UID: m.UID, Generation: m.Generation,
		rank:      RankOf(m),
		Stage:     m.Spec.Stage,
		Effective: IsEffective(m),
		Selector:  selector,
		Plan:      plan,
		Rollout:   m.Spec.Rollout,
		Rolls:     m.Spec.Rollout != nil || m.Status.RolloutStatus != nil,
		Policies:  policies, drainedWhen: m.Spec.DrainedWhen, Escalation: escalation,
		begun:     m.Status.DrainStatus.DrainPlanPosition != nil,
		drained:   HasStarted(&m.Status, coordinationv1alpha1.NodeMaintenanceStageDrain),
		completed: HasStarted(&m.Status, coordinationv1alpha1.NodeMaintenanceStageComplete),

		CordonedUntil: CordonedUntil(&m.Status),
		failedBefore:  FailuresOf(&m.Status),
	}, nil
}

// unended is the end of a stage Cordon that goes on, or whose end is not stored yet.
var unended = metav1.NewTime(time.Unix(1<<40, 0))

// CordonedUntil returns when the stage Drain has ended the stage Cordon; nil if it was skipped: then both
// have started at the same time.
func CordonedUntil(status *coordinationv1alpha1.NodeMaintenanceStatus) *metav1.Time {
	cordon, drain := StartOf(status, coordinationv1alpha1.NodeMaintenanceStageCordon), StartOf(status, coordinationv1alpha1.NodeMaintenanceStageDrain)
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

// RankOf returns the rank of a maintenance.
func RankOf(m *coordinationv1alpha1.NodeMaintenance) string {
	return m.CreationTimestamp.UTC().Format("2006-01-02T15:04:05") + "/" + m.Name
}

// IsEffective reports whether a maintenance may change nodes: it has its finalizer, or it has
// started its stage, so that it had the finalizer and another client removed it.
func IsEffective(m *coordinationv1alpha1.NodeMaintenance) bool {
	switch m.Spec.Stage {
	case coordinationv1alpha1.NodeMaintenanceStageIdle:
		return true
	case coordinationv1alpha1.NodeMaintenanceStageComplete:
		return HasFinalizer(m)
	default:
		return HasFinalizer(m) || HasStarted(&m.Status, m.Spec.Stage)
	}
}

// HasFinalizer reports whether the controller has to complete the maintenance before the object may go.
func HasFinalizer(m *coordinationv1alpha1.NodeMaintenance) bool {
	return slices.Contains(m.Finalizers, coordinationv1alpha1.NodeMaintenanceFinalizer)
}

// Claims reports whether the maintenance keeps its nodes unschedulable.
func (o *Spec) Claims() bool {
	return o.Effective && o.Phase != PhaseWaiting && o.Phase != PhaseDone && (o.Stage == coordinationv1alpha1.NodeMaintenanceStageCordon || o.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain)
}

// Drains reports whether the maintenance has pods leave its nodes.
func (o *Spec) Drains() bool {
	return o.Effective && o.Phase == PhaseAdmitted && o.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain
}

// Waits reports whether the maintenance waits until it may begin with the node.
func (o *Spec) Waits() bool { return o.Phase == PhaseWaiting }

// HasCordoned reports whether the stage Cordon of the maintenance may have cordoned the node. One that was
// created later came too late for it.
func (o *Spec) HasCordoned(node *v1.Node) bool {
	return o.CordonedUntil != nil && !node.CreationTimestamp.After(o.CordonedUntil.Add(maintenance.MaxClockDifference))
}

// IsShutdownOf reports whether the kubelet of the node has created the maintenance for a shutdown. How long
// others wait for pods is not for it to decide: whoever has the machine can write it.
func (o *Spec) IsShutdownOf(node string) bool { return o.Name == maintenance.ShutdownName(node) }

// AwaitsFinalizer reports whether the maintenance will claim its nodes when its finalizer is
// stored.
func (o *Spec) AwaitsFinalizer() bool {
	return !o.Effective && o.Stage != coordinationv1alpha1.NodeMaintenanceStageComplete
}

// DelaysDrains reports whether the maintenance will drain its nodes when its finalizer is stored,
// so that no other drain of them starts before.
func (o *Spec) DelaysDrains() bool {
	return o.AwaitsFinalizer() && o.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain && !o.finalizerFailed
}

// Plans reports whether the node is only announced.
func (o *Spec) Plans() bool {
	return o.Stage == coordinationv1alpha1.NodeMaintenanceStageIdle || o.Waits()
}

func (o *Spec) completes() bool {
	return o.Effective && o.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete
}

// same reports whether the other spec means the same for nodes.
func (o *Spec) same(other *Spec) bool {
	return o.UID == other.UID && o.Generation == other.Generation && o.Effective == other.Effective
}

// IsDraining reports whether one of the maintenances drains the node that they select.
func IsDraining(specs []Spec) bool {
	return slices.ContainsFunc(specs, func(o Spec) bool { return o.Drains() })
}

// HasStarted reports whether a status says that a stage was started.
func HasStarted(status *coordinationv1alpha1.NodeMaintenanceStatus, stage coordinationv1alpha1.NodeMaintenanceStage) bool {
	return slices.ContainsFunc(status.StageStatuses, func(s coordinationv1alpha1.StageStatus) bool { return s.Name == stage })
}

// StartOf returns when a stage was started, or nil.
func StartOf(status *coordinationv1alpha1.NodeMaintenanceStatus, stage coordinationv1alpha1.NodeMaintenanceStage) *metav1.Time {
	for i := range status.StageStatuses {
		if status.StageStatuses[i].Name == stage {
			return status.StageStatuses[i].StartTimestamp
		}
	}
	return nil
}

// AwaitsVolumes reports whether a node without pods is drained for the maintenance only when its volumes are detached.
func (o *Spec) AwaitsVolumes() bool {
	return o.drainedWhen != nil && o.drainedWhen.Volumes == coordinationv1alpha1.NodeMaintenanceVolumesDetached
}

// DetachTimeout returns how long the maintenance waits for the volumes of a node.
func (o *Spec) DetachTimeout() time.Duration {
	return time.Duration(ptr.Deref(o.drainedWhen.TimeoutSeconds, int32(defaultDetachTimeout/time.Second))) * time.Second
}

// defaultDetachTimeout is the default of the API, should an object lack the field.
const defaultDetachTimeout = 10 * time.Minute

// FailureKey identifies a blocker of a write that fails.
type FailureKey struct {
	// Cause is CordonFailed, NodeStatusFailed or RequestFailed.
	Cause maintenance.BlockerCause
	// Name is the namespace of requests, and empty for the other causes.
	Name string
}

// FailuresOf returns since when writes fail, as a status says.
func FailuresOf(status *coordinationv1alpha1.NodeMaintenanceStatus) map[FailureKey]time.Time {
	found := map[FailureKey]time.Time{}
	for i := range status.DrainStatus.Blockers {
		b := &status.DrainStatus.Blockers[i]
		switch cause := maintenance.BlockerCause(b.Cause); cause {
		case maintenance.BlockerCordonFailed, maintenance.BlockerNodeStatusFailed, maintenance.BlockerRequestFailed:
			if b.SinceTime != nil {
				found[FailureKey{cause, b.Name}] = b.SinceTime.Time
			}
		}
	}
	return found
}
