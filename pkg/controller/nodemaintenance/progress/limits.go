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
	"slices"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
)

// Limits says which nodes a maintenance may only drain with an admission. It is used by all workers.
type Limits struct {
	lock sync.RWMutex
	// budgets has the selectors of the NodeMaintenanceBudgets.
	budgets map[string]limitingBudget
	// checked has, by the names of maintenances, for which of their generations all budgets are known:
	// see hasCurrentLimits of the controller.
	checked map[string]checkedMaintenance
	// ShutsDown reports whether the kubelet of a node has a maintenance of its own.
	ShutsDown func(node string) bool
	// Now is the clock.
	Now func() time.Time
}

type checkedMaintenance struct {
	uid        types.UID
	generation int64
}

type limitingBudget struct {
	uid        types.UID
	generation int64
	selector   *maintenance.NodeMatcher
}

// NewLimits returns limits without budgets, for a cluster in which no kubelet shuts down.
func NewLimits() *Limits {
	return &Limits{
		budgets: map[string]limitingBudget{}, checked: map[string]checkedMaintenance{},
		ShutsDown: func(string) bool { return false }, Now: time.Now,
	}
}

// HaveAll reports whether all of the budgets are known, or later generations of them.
func (l *Limits) HaveAll(stored []coordinationv1alpha1.NodeMaintenanceBudget) bool {
	l.lock.RLock()
	defer l.lock.RUnlock()
	return !slices.ContainsFunc(stored, func(b coordinationv1alpha1.NodeMaintenanceBudget) bool {
		known, found := l.budgets[b.Name]
		return !found || known.uid != b.UID || known.generation < b.Generation
	})
}

// MarkChecked records that all budgets are known for this generation of a maintenance.
func (l *Limits) MarkChecked(m *coordinationv1alpha1.NodeMaintenance) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.checked[m.Name] = checkedMaintenance{m.UID, m.Generation}
}

// IsChecked reports whether all budgets are known for this generation of a maintenance.
func (l *Limits) IsChecked(m *coordinationv1alpha1.NodeMaintenance) bool {
	l.lock.RLock()
	defer l.lock.RUnlock()
	return l.checked[m.Name] == checkedMaintenance{m.UID, m.Generation}
}

// Forget forgets a maintenance that is gone.
func (l *Limits) Forget(name string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	delete(l.checked, name)
}

// Set adds a budget, and reports whether it may select other nodes than before.
func (l *Limits) Set(b *coordinationv1alpha1.NodeMaintenanceBudget) (changed bool, err error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	known, found := l.budgets[b.Name]
	if found && known.uid == b.UID && known.generation == b.Generation {
		return false, nil
	}
	selector, err := maintenance.NewNodeMatcher(b.Spec.NodeSelector)
	if err != nil {
		selector = maintenance.MatchNoNode()
	}
	l.budgets[b.Name] = limitingBudget{b.UID, b.Generation, selector}
	return true, err
}

// Remove forgets a budget that is gone.
func (l *Limits) Remove(name string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	delete(l.budgets, name)
}

// Selects reports whether a budget selects the node.
func (l *Limits) Selects(node *v1.Node) bool {
	l.lock.RLock()
	defer l.lock.RUnlock()
	for _, b := range l.budgets {
		if b.selector.Matches(node) {
			return true
		}
	}
	return false
}

// PhaseOn returns how far the spec is with a node that it selects. Without a rollout and without a
// budget, nothing is recorded, and a drain that has begun without them goes on.
func (l *Limits) PhaseOn(o *Spec, node *v1.Node) Phase {
	if o.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain || !o.Effective {
		return PhaseAdmitted
	}
	admission := maintenance.AdmissionOf(node, o.UID)
	switch {
	case admission != nil && admission.DoneTime != nil:
		return PhaseDone
	case admission != nil && admission.ReturningTime != nil:
		return PhaseReturning
	case admission != nil && l.hasEnded(admission, node):
		return PhaseWaiting
	case admission != nil, o.IsShutdownOf(node.Name):
		return PhaseAdmitted
	case o.Rollout == nil && (l.DrainedBefore(o, node) || !l.Selects(node)):
		return PhaseAdmitted
	case IsMarkedDone(node, o.UID) && (!maintenance.IsClaimed(node) || isStartedByAnother(node, o.UID)):
		// There is nothing to begin with. A node that is cordoned has to be given back, which another one does that
		// has begun with it. Then this one is not waited for: a node has one mark, which that one needs as well.
		return PhaseDone
	}
	return PhaseWaiting
}

// hasEnded reports whether an admission is over that was given at any number because the node was down: it is
// Ready again, and no drain target is stored, so that no eviction was requested yet. If the nodes of an outage
// are back before, they are decided on again: those that the budgets allow. That the node was down follows from
// when it became Ready, for which a clock that is ahead does not count.
func (l *Limits) hasEnded(admission *v1.MaintenanceAdmission, node *v1.Node) bool {
	if admission.DrainedTime != nil || admission.FailedTime != nil || hasTargets(node) {
		return false
	}
	since := readySince(node)
	return since.After(admission.AdmittedTime.Time) && !since.After(l.Now()) && l.Selects(node)
}

// hasTargets reports whether the status of the node has drain targets.
func hasTargets(node *v1.Node) bool {
	return node.Status.MaintenanceStatus != nil && len(node.Status.MaintenanceStatus.DrainTargets) > 0
}

// readySince returns since when the node is Ready, as its condition says; zero if it is not.
func readySince(node *v1.Node) time.Time {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == v1.NodeReady && c.Status == v1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// isSkipped reports whether a node in the phase Returning or Done was completed before it was drained: its pods
// may run.
func isSkipped(o *Spec, node *v1.Node) bool {
	admission := maintenance.AdmissionOf(node, o.UID)
	return admission == nil || admission.DrainedTime == nil
}

// IsMarkedDone reports whether somebody has said that the work of the maintenance on the node is done.
func IsMarkedDone(node *v1.Node, uid types.UID) bool {
	return node.Annotations[coordinationv1alpha1.NodeDoneAnnotation] == string(uid)
}

// isStartedByAnother reports whether another maintenance has begun with the node and is not done with it.
func isStartedByAnother(node *v1.Node, uid types.UID) bool {
	return slices.ContainsFunc(maintenance.Admissions(node), func(a v1.MaintenanceAdmission) bool {
		return a.MaintenanceUID != uid && a.DoneTime == nil
	})
}

// DrainedBefore reports whether a maintenance without a rollout has begun with the node, and not another one or
// its kubelet: when these end, budgets decide on what comes next.
func (l *Limits) DrainedBefore(o *Spec, node *v1.Node) bool {
	return maintenance.IsDrainedFor(node, o.UID) && !l.ShutsDown(node.Name)
}
