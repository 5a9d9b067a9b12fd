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
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/rollout"
)

// progressStore has the progress of all maintenances, for use by all workers. It finds those of a
// node by indexes, so that no event costs more because there are more nodes or maintenances.
//
// It is filled from the caches and the status of the objects when the controller starts.
type progressStore struct {
	lock         sync.Mutex
	maintenances map[string]*maintenanceProgress
	// byNode finds the maintenances that have selected a node or have to release it, and
	// bySelector those whose selector may match it. See replace and reindex.
	byNode     index[string]
	bySelector index[maintenance.NodeKey]
	// revision counts the orders that were observed. A sync of a node remembers it together with
	// the orders that it has read: orders that came later do not know of what it decides.
	revision int
	// limits say which nodes need to be admitted.
	limits *limits
	// gone has when maintenances were deleted, within the last unknownAdmission.
	gone map[types.UID]time.Time
	// deselected has, by node, the maintenances that have claimed it until their selectors were changed, with the revision
	// of that, until the node is reconciled.
	deselected map[string]map[string]int
}

func newProgressStore(limits *limits) *progressStore {
	return &progressStore{maintenances: map[string]*maintenanceProgress{}, byNode: index[string]{}, bySelector: index[maintenance.NodeKey]{}, limits: limits,
		gone: map[types.UID]time.Time{}, deselected: map[string]map[string]int{}}
}

// observe stores the order of a maintenance, and returns the nodes that have to be reconciled
// because of it. nodes lists all nodes of the cluster.
func (s *progressStore) observe(wanted order, storedPosition int, nodes func() []*v1.Node) []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	known := s.maintenances[wanted.name]
	if known != nil && known.same(&wanted) {
		known.begun = wanted.begun
		if wanted.cordonedUntil != nil {
			known.cordonedUntil = wanted.cordonedUntil
		}
		if known.rolls == wanted.rolls {
			return nil
		}
		// Nodes that were admitted follow the plan at their own pace from now on, or no longer.
		known.rolls = wanted.rolls
		return known.selected()
	}
	fresh := newMaintenanceProgress(wanted, storedPosition)
	fresh.resumeUntil = s.limits.now().Add(resumeTime)
	if known != nil && known.uid != wanted.uid {
		s.noteGone(known.uid)
		known = nil
	}
	// Listed under the lock: a node that is created later is reconciled later, and finds the
	// maintenance here.
	fresh.selectNodes(nodes(), known, s.limits)
	if known != nil {
		fresh.takeOver(known)
	}
	s.revision++
	fresh.revision = s.revision
	if known != nil && known.claims() {
		s.noteDeselected(known, fresh)
	}
	return sets.List(s.replace(wanted.name, fresh))
}

// noteDeselected records the nodes that a maintenance has claimed, and does not select any more.
func (s *progressStore) noteDeselected(known, fresh *maintenanceProgress) {
	for node := range known.nodes {
		if _, selected := fresh.nodes[node]; selected || fresh.waiting.Has(node) || fresh.done.Has(node) {
			continue
		}
		if s.deselected[node] == nil {
			s.deselected[node] = map[string]int{}
		}
		s.deselected[node][known.name] = fresh.revision
	}
}

// remove removes a maintenance that was deleted and returns the nodes that it had.
func (s *progressStore) remove(name string) []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	if known := s.maintenances[name]; known != nil {
		s.noteGone(known.uid)
	}
	return sets.List(s.replace(name, nil))
}

// noteGone records that a maintenance was deleted: an admission that names it is not for one that the cache
// lacks because it is behind.
func (s *progressStore) noteGone(uid types.UID) {
	now := s.limits.now()
	maps.DeleteFunc(s.gone, func(_ types.UID, at time.Time) bool { return now.Sub(at).Abs() >= unknownAdmission })
	s.gone[uid] = now
}

// isGone reports whether this process has seen the maintenance, and then that it was deleted.
func (s *progressStore) isGone(uid types.UID) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	_, found := s.gone[uid]
	return found
}

// forget removes a maintenance that has nothing left to do and returns the nodes that it had.
func (s *progressStore) forget(name string) []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return sets.List(s.replace(name, nil))
}

// adopt has the maintenances in Complete release a node that no maintenance claims, and that was
// not released before a restart. If one of them selects it, that one releases it; otherwise
// nothing says which one claimed it, and all of them wait for it.
func (s *progressStore) adopt(node string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	var completing []*maintenanceProgress
	for _, p := range s.maintenances {
		if !p.completes() {
			continue
		}
		if p.unreleased[node] != nil {
			return
		}
		completing = append(completing, p)
	}
	for _, p := range completing {
		p.unreleased[node] = &nodeRelease{}
		s.reindex(node, p)
	}
}

// finalizerFailed records that the finalizer of a maintenance could not be stored, and returns the
// nodes whose drain has waited for it.
func (s *progressStore) finalizerFailed(name string) []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.maintenances[name]
	if p == nil || !p.delaysDrains() {
		return nil
	}
	p.order.finalizerFailed = true
	return p.selected()
}

// selecting returns the orders that select the node, by rank, with how far they are there, and the
// revision of the store. No order selects a nil node.
func (s *progressStore) selecting(node *v1.Node) (orders []order, revision int) {
	s.lock.Lock()
	if node != nil {
		orders = s.candidates(node)
	}
	revision = s.revision
	s.lock.Unlock()
	// Every event of a pod needs the lock, so selectors are matched without it.
	orders = slices.DeleteFunc(orders, func(o order) bool { return !o.selector.Matches(node) })
	for i := range orders {
		o := &orders[i]
		o.phase = s.limits.phaseOn(o, node)
		o.skipped = (o.phase == phaseDone || o.phase == phaseReturning) && isSkipped(o, node)
	}
	slices.SortFunc(orders, func(a, b order) int { return strings.Compare(a.rank, b.rank) })
	return orders, revision
}

// flowOf returns the name of the maintenance in whose flow the node is: of those that have selected
// it or have to release it, the one with the fewest nodes, so that it does not wait for the nodes of
// a larger one. It is empty if there is none.
func (s *progressStore) flowOf(node string) string {
	s.lock.Lock()
	defer s.lock.Unlock()
	flow, size := "", 0
	for p := range s.having(node) {
		n := len(p.nodes) + len(p.unreleased)
		if flow == "" || n < size || n == size && p.name < flow {
			flow, size = p.name, n
		}
	}
	return flow
}

// isDraining reports whether a maintenance that drains is known to select the node.
func (s *progressStore) isDraining(node string) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	for p := range s.having(node) {
		if _, selected := p.nodes[node]; selected && p.drains() {
			return true
		}
	}
	return false
}

// podCounts is what follows from counting the pods of a node.
type podCounts struct {
	// participants are the maintenances that drain the node.
	participants []participant
	// ready is whether the pods on all nodes of these are counted, so that the node can be
	// decided on.
	ready bool
	// others are nodes that have to be reconciled because a maintenance has advanced.
	others []string
}

// concerning names the maintenances that have selected the node or have to release it.
func (s *progressStore) concerning(node string) (names []string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for p := range s.having(node) {
		names = append(names, p.name)
	}
	return names
}

// countPods counts the pods that are left on the node, for each maintenance that drains it. Those that its
// neighbors keep hold up no entry of its plan. admitted are the UIDs of the maintenances that had to be
// admitted. agentsStay names those that skip a pod of the default type there.
func (s *progressStore) countPods(node string, orders []order, pods []podFacts, admitted sets.Set[types.UID], agentsStay sets.Set[string]) podCounts {
	s.lock.Lock()
	defer s.lock.Unlock()
	result := podCounts{ready: true}
	for _, o := range orders {
		p := s.maintenances[o.name]
		if p == nil || !p.same(&o) {
			// It has changed since the orders were read.
			result.ready = false
			result.others = append(result.others, node)
			continue
		}
		if o.waits() || o.phase == phaseDone {
			if p.setPhase(node, o.phase, o.skipped) {
				result.others = append(result.others, p.selected()...)
			}
			s.reindex(node, p)
			continue
		}
		p.setPhase(node, o.phase, false)
		remaining, kept := make([]int, o.plan.Len()+1), 0
		if o.drains() {
			for i := range pods {
				switch pod := &pods[i]; {
				case pod.isKeptBy(o.name):
				case pod.isKeptByNeighbors():
					kept++
				default:
					remaining[o.plan.EntryFor(pod.Pod)]++
				}
			}
		}
		if p.setRemaining(node, remaining, kept) {
			result.others = append(result.others, p.selected()...)
		}
		p.nodes[node].skipped = o.skipped
		if o.claims() {
			// It was deselected, and is selected again before it was released.
			delete(p.unreleased, node)
		}
		s.reindex(node, p)
		if o.drains() {
			result.ready = result.ready && p.isReady()
			position := p.position
			if admitted.Has(o.uid) {
				// Nodes are admitted at different times. Each follows the plan at its own pace:
				// otherwise one that has just begun would hold those up that are almost done.
				position = o.plan.Len() - 1
			}
			if agentsStay.Has(o.name) {
				// A DaemonSet must be able to replace its pod beside one that is skipped.
				position = min(position, o.plan.LastOf(v1.PodTypeDefault))
			}
			allowed := o.plan.TargetsAt(allowedPosition(position, remaining))
			result.participants = append(result.participants, participant{name: o.name, rank: o.rank, allowed: allowed, shutdown: o.isShutdownOf(node)})
		}
	}
	return result
}

// decide records what was decided on a node for a maintenance, and reports whether it is the first
// decision on a node that has joined.
func (s *progressStore) decide(node, name string, decision nodeDecision) (joined bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.maintenances[name]
	return p != nil && p.decide(node, decision)
}

// deselect removes a node from the maintenances that do not select it any more, because its labels or their selectors
// have changed. It returns their names, and nodes that have to be reconciled because one has advanced. The orders that select the
// node were read at that revision: later ones have listed the nodes themselves, and have this
// node reconciled again.
func (s *progressStore) deselect(node string, orders []order, revision int) (names, others []string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for name, since := range s.deselected[node] {
		if since > revision {
			continue
		}
		delete(s.deselected[node], name)
		if !slices.ContainsFunc(orders, func(o order) bool { return o.name == name }) {
			names = append(names, name)
		}
	}
	if len(s.deselected[node]) == 0 {
		delete(s.deselected, node)
	}
	for p := range s.having(node) {
		_, selected := p.nodes[node]
		idle := p.waiting.Has(node) || p.done.Has(node)
		if !selected && !idle || p.revision > revision || slices.ContainsFunc(orders, func(o order) bool { return o.name == p.name }) {
			continue
		}
		names = append(names, p.name)
		p.setWaiting(node, false)
		p.done.Delete(node)
		p.skipped.Delete(node)
		if selected && p.remove(node) {
			others = append(others, p.selected()...)
		}
		s.reindex(node, p)
	}
	return names, others
}

// waitingOn names the maintenances that the given ones wait for.
func (s *progressStore) waitingOn(names []string) []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	found := sets.New[string]()
	for _, name := range names {
		if p := s.maintenances[name]; p != nil {
			found.Insert(p.waitingOn...)
		}
	}
	return sets.List(found)
}

// summarize returns the sums of a maintenance, and false if it is not known. It also returns the
// nodes whose status may have to name other maintenances that this one waits for.
func (s *progressStore) summarize(name string) (sums summary, others []string, known bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.maintenances[name]
	if p == nil {
		return summary{}, nil, false
	}
	before := p.waitingOn
	sums = p.summarize()
	now := s.limits.now()
	if sums.resumes = p.resume(&sums, now); sums.resumes > 0 {
		sums.ready = false
	}
	// For what nodes wait is not known before the first decision.
	if sums.waiting > 0 && p.waits == nil && now.Before(p.resumeUntil) {
		sums.resumes, sums.ready = pace.Within(p.resumeUntil.Sub(now), resumeTime), false
	}
	if !slices.Equal(before, p.waitingOn) {
		others = p.selected()
	}
	return sums, others, true
}

// isCordoned reports whether the node may be unschedulable because of a maintenance that still has
// to release it, although the status of the node does not say so.
func (s *progressStore) isCordoned(node string) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	for p := range s.having(node) {
		if p.cordoned(node) {
			return true
		}
	}
	return false
}

// uncordoned records that the node is schedulable: whoever cordons it later is another client. It
// is not released yet, because other steps of that may take longer.
func (s *progressStore) uncordoned(node string, revision int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for p := range s.releasing(node, revision) {
		p.unreleased[node].cordoned = false
	}
}

// delayed records what delays the release of the node, and returns the maintenances that wait for
// it.
func (s *progressStore) delayed(node string, blockers []maintenance.HoldGroup, revision int) []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	if blockers == nil {
		blockers = []maintenance.HoldGroup{}
	}
	var waiting []string
	for p := range s.releasing(node, revision) {
		p.unreleased[node].blockers = blockers
		waiting = append(waiting, p.name)
	}
	return waiting
}

// release records that the node is released, and returns the maintenances of which it was the
// last one.
func (s *progressStore) release(node string, revision int) []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	var finished []string
	for p := range s.releasing(node, revision) {
		delete(p.unreleased, node)
		s.reindex(node, p)
		if len(p.unreleased) == 0 {
			finished = append(finished, p.name)
		}
	}
	return finished
}

// measureOnce reports whether this is the first time that the drain of the pod type is over.
func (s *progressStore) measureOnce(name string, podType v1.PodType) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.maintenances[name]
	if p == nil || p.measured.Has(podType) {
		return false
	}
	p.measured.Insert(podType)
	return true
}

// setFailed records whether a node with that UID has not come back in time.
func (s *progressStore) setFailed(node string, uid types.UID, name string, failed bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.maintenances[name]
	if p == nil {
		return
	}
	if _, selected := p.nodes[node]; failed && selected {
		p.failed[node] = uid
	} else {
		delete(p.failed, node)
	}
}

// waitingNodes returns the nodes of a maintenance that wait for their admission, and how many it selects; false
// unless it drains, in that generation. Nobody may change the slice.
func (s *progressStore) waitingNodes(name string, uid types.UID, generation int64) (waiting []string, selected int, found bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.maintenances[name]
	if p == nil || p.uid != uid || p.generation != generation || !p.drains() {
		return nil, 0, false
	}
	return p.listWaiting(), p.waiting.Len() + p.done.Len() + len(p.nodes), true
}

// setWaits records what the nodes of a maintenance wait for, and reports whether that has changed.
func (s *progressStore) setWaits(name string, waits map[rollout.Wait]int) (changed bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.maintenances[name]
	if p == nil || p.waits != nil && maps.Equal(p.waits, waits) {
		return false
	}
	p.waits = map[rollout.Wait]int{} // Not nil: the decision is known.
	maps.Copy(p.waits, waits)
	switch {
	case !slices.ContainsFunc(slices.Collect(maps.Keys(waits)), isEndless):
		p.endlessSince = time.Time{}
	case p.endlessSince.IsZero():
		p.endlessSince = s.limits.now()
	}
	return true
}

// isEndless reports whether only an intervention ends a wait.
func isEndless(wait rollout.Wait) bool {
	switch wait.Reason {
	case coordinationv1alpha1.NodeMaintenanceWaitDisabled, coordinationv1alpha1.NodeMaintenanceWaitAdmissionFailed,
		coordinationv1alpha1.NodeMaintenanceWaitStatusFailed, coordinationv1alpha1.NodeMaintenanceWaitNotCurrent:
		return true
	case coordinationv1alpha1.NodeMaintenanceWaitWindow:
		return wait.Until.IsZero()
	}
	return false // The others end by themselves, or somebody wants them.
}

// tracked returns all nodes of maintenances that drain.
func (s *progressStore) tracked() []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	all := sets.New[string]()
	for _, p := range s.maintenances {
		if p.drains() {
			all.Insert(p.all().UnsortedList()...)
		}
	}
	return sets.List(all)
}

// knows reports whether a maintenance of that UID is known.
func (s *progressStore) knows(name string, uid types.UID) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.maintenances[name]
	return p != nil && p.uid == uid
}
