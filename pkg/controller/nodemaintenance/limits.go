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
	"slices"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
)

// nodePhase is how far a maintenance in the stage Drain is with one node.
type nodePhase int

const (
	// phaseAdmitted: it may begin, or needs no admission.
	phaseAdmitted nodePhase = iota
	// phaseWaiting: it needs an admission. The node is announced, and nothing else is changed.
	phaseWaiting
	// phaseReturning: the work on the node is done. It stays unschedulable until it is healthy, but is
	// not drained.
	phaseReturning
	// phaseDone: the node was given back.
	phaseDone
)

// limits says which nodes a maintenance may only drain with an admission. It is used by all workers.
type limits struct {
	lock sync.RWMutex
	// budgets has the selectors of the NodeMaintenanceBudgets.
	budgets map[string]limitingBudget
	// checked has, by the names of maintenances, for which of their generations all budgets are known:
	// see Controller.hasCurrentLimits.
	checked map[string]checkedMaintenance
	// shutsDown reports whether the kubelet of a node has a maintenance of its own.
	shutsDown func(node string) bool
	// now is the clock.
	now func() time.Time
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

func newLimits() *limits {
	return &limits{
		budgets: map[string]limitingBudget{}, checked: map[string]checkedMaintenance{},
		shutsDown: func(string) bool { return false }, now: time.Now,
	}
}

// haveAll reports whether all of the budgets are known, or later generations of them.
func (l *limits) haveAll(stored []coordinationv1alpha1.NodeMaintenanceBudget) bool {
	l.lock.RLock()
	defer l.lock.RUnlock()
	return !slices.ContainsFunc(stored, func(b coordinationv1alpha1.NodeMaintenanceBudget) bool {
		known, found := l.budgets[b.Name]
		return !found || known.uid != b.UID || known.generation < b.Generation
	})
}

// check records that all budgets are known for this generation of a maintenance.
func (l *limits) check(m *coordinationv1alpha1.NodeMaintenance) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.checked[m.Name] = checkedMaintenance{m.UID, m.Generation}
}

func (l *limits) isChecked(m *coordinationv1alpha1.NodeMaintenance) bool {
	l.lock.RLock()
	defer l.lock.RUnlock()
	return l.checked[m.Name] == checkedMaintenance{m.UID, m.Generation}
}

// forget forgets a maintenance that is gone.
func (l *limits) forget(name string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	delete(l.checked, name)
}

// set adds a budget, and reports whether it may select other nodes than before.
func (l *limits) set(b *coordinationv1alpha1.NodeMaintenanceBudget) (changed bool, err error) {
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

// remove forgets a budget that is gone.
func (l *limits) remove(name string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	delete(l.budgets, name)
}

// limit reports whether a budget selects the node.
func (l *limits) limit(node *v1.Node) bool {
	l.lock.RLock()
	defer l.lock.RUnlock()
	for _, b := range l.budgets {
		if b.selector.Matches(node) {
			return true
		}
	}
	return false
}

// phaseOn returns how far the order is with a node that it selects. Without a rollout and without a
// budget, nothing is recorded, and a drain that has begun without them goes on.
func (l *limits) phaseOn(o *order, node *v1.Node) nodePhase {
	if o.stage != coordinationv1alpha1.NodeMaintenanceStageDrain || !o.effective {
		return phaseAdmitted
	}
	admission := maintenance.AdmissionOf(node, o.uid)
	switch {
	case admission != nil && admission.DoneTime != nil:
		return phaseDone
	case admission != nil && admission.ReturningTime != nil:
		return phaseReturning
	case admission != nil && l.hasEnded(admission, node):
		return phaseWaiting
	case admission != nil, o.isShutdownOf(node.Name):
		return phaseAdmitted
	case o.rollout == nil && (l.hasBegun(o, node) || !l.limit(node)):
		return phaseAdmitted
	case isMarkedDone(node, o.uid) && (!maintenance.IsClaimed(node) || isStartedByAnother(node, o.uid)):
		// There is nothing to begin with. A node that is cordoned has to be given back, which another one does that
		// has begun with it. Then this one is not waited for: a node has one mark, which that one needs as well.
		return phaseDone
	}
	return phaseWaiting
}

// hasEnded reports whether an admission is over that was given at any number because the node was down: it is
// Ready again, and no drain target is stored, so that no eviction was requested yet. If the nodes of an outage
// are back before, they are decided on again: those that the budgets allow. That the node was down follows from
// when it became Ready, for which a clock that is ahead does not count.
func (l *limits) hasEnded(admission *v1.MaintenanceAdmission, node *v1.Node) bool {
	if admission.DrainedTime != nil || admission.FailedTime != nil || hasTargets(node) {
		return false
	}
	since := readySince(node)
	return since.After(admission.AdmittedTime.Time) && !since.After(l.now()) && l.limit(node)
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
func isSkipped(o *order, node *v1.Node) bool {
	admission := maintenance.AdmissionOf(node, o.uid)
	return admission == nil || admission.DrainedTime == nil
}

// isMarkedDone reports whether somebody has said that the work of the maintenance on the node is done.
func isMarkedDone(node *v1.Node, uid types.UID) bool {
	return node.Annotations[coordinationv1alpha1.NodeDoneAnnotation] == string(uid)
}

// isStartedByAnother reports whether another maintenance has begun with the node and is not done with it.
func isStartedByAnother(node *v1.Node, uid types.UID) bool {
	return slices.ContainsFunc(maintenance.Admissions(node), func(a v1.MaintenanceAdmission) bool {
		return a.MaintenanceUID != uid && a.DoneTime == nil
	})
}

// hasBegun reports whether a maintenance without a rollout has begun with the node, and not another one or
// its kubelet: when these end, budgets decide on what comes next.
func (l *limits) hasBegun(o *order, node *v1.Node) bool {
	return maintenance.IsDrainedFor(node, o.uid) && !l.shutsDown(node.Name)
}
