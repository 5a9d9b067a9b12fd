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
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/rollout"
)

// Store has the progress of all maintenances, for use by all workers. It finds those of a
// node by indexes, so that no event costs more because there are more nodes or maintenances.
//
// It is filled from the caches and the status of the objects when the controller starts.
type Store struct {
	lock         sync.Mutex
	maintenances map[string]*maintenanceProgress
	// byNode finds the maintenances that have selected a node or have to release it, and
	// bySelector those whose selector may match it. See replace and reindex.
	byNode     index[string]
	bySelector index[maintenance.NodeKey]
	// revision counts the specs that were observed. A sync of a node remembers it together with
	// the specs that it has read: those that came later do not know of what it decides.
	revision int
	// Limits say which nodes need to be admitted.
	Limits *Limits
	// gone has when maintenances were deleted, or had nothing left to do, within the last UnknownAdmission.
	gone map[types.UID]time.Time
	// deselected has, by node, the maintenances that have claimed it until their selectors were changed, with the revision
	// of that, until the node is reconciled.
	deselected map[string]map[string]int
}

// NewStore returns a store without maintenances.
func NewStore(limits *Limits) *Store {
	return &Store{maintenances: map[string]*maintenanceProgress{}, byNode: index[string]{}, bySelector: index[maintenance.NodeKey]{}, Limits: limits,
		gone: map[types.UID]time.Time{}, deselected: map[string]map[string]int{}}
}

// Observe stores the spec of a maintenance, and returns the nodes that have to be reconciled
// because of it. nodes lists all nodes of the cluster.
func (s *Store) Observe(wanted Spec, storedPosition int, nodes func() []*v1.Node) []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	known := s.maintenances[wanted.Name]
	if known != nil && known.same(&wanted) {
		known.begun = wanted.begun
		if wanted.CordonedUntil != nil {
			known.CordonedUntil = wanted.CordonedUntil
		}
		if known.Rolls == wanted.Rolls {
			return nil
		}
		// Nodes that were admitted follow the plan at their own pace from now on, or no longer.
		known.Rolls = wanted.Rolls
		return known.selected()
	}
	fresh := newMaintenanceProgress(wanted, storedPosition)
	fresh.resumeUntil = s.Limits.Now().Add(ResumeTime)
	if known != nil && known.UID != wanted.UID {
		s.noteGone(known.UID)
		known = nil
	}
	// Listed under the lock: a node that is created later is reconciled later, and finds the
	// maintenance here.
	fresh.selectNodes(nodes(), known, s.Limits)
	if known != nil {
		fresh.takeOver(known)
	}
	s.revision++
	fresh.revision = s.revision
	if known != nil && known.Claims() {
		s.noteDeselected(known, fresh)
	}
	return sets.List(s.replace(wanted.Name, fresh))
}

// noteDeselected records the nodes that a maintenance has claimed, and does not select any more.
func (s *Store) noteDeselected(known, fresh *maintenanceProgress) {
	for node := range known.nodes {
		if _, selected := fresh.nodes[node]; selected || fresh.waiting.Has(node) || fresh.done.Has(node) {
			continue
		}
		if s.deselected[node] == nil {
			s.deselected[node] = map[string]int{}
		}
		s.deselected[node][known.Name] = fresh.revision
	}
}

// Remove removes a maintenance that was deleted and returns the nodes that it had.
func (s *Store) Remove(name string) []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	if known := s.maintenances[name]; known != nil {
		s.noteGone(known.UID)
	}
	return sets.List(s.replace(name, nil))
}

// noteGone records that a maintenance was deleted, or has nothing left to do: an admission that names it is not for one that the cache
// lacks because it is behind.
func (s *Store) noteGone(uid types.UID) {
	now := s.Limits.Now()
	maps.DeleteFunc(s.gone, func(_ types.UID, at time.Time) bool { return now.Sub(at).Abs() >= UnknownAdmission })
	s.gone[uid] = now
}

// IsGone reports whether this process has seen the maintenance, and then that it was deleted or had nothing left to do.
func (s *Store) IsGone(uid types.UID) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	_, found := s.gone[uid]
	return found
}

// Forget removes a maintenance that has nothing left to do and returns the nodes that it had.
func (s *Store) Forget(name string, uid types.UID) []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.noteGone(uid)
	return sets.List(s.replace(name, nil))
}

// Adopt has the maintenances in Complete release a node that no maintenance claims, and that was
// not released before a restart. If one of them selects it, that one releases it; otherwise
// nothing says which one claimed it, and all of them wait for it.
func (s *Store) Adopt(node string) {
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

// FinalizerFailed records that the finalizer of a maintenance could not be stored, and returns the
// nodes whose drain has waited for it.
func (s *Store) FinalizerFailed(name string) []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.maintenances[name]
	if p == nil || !p.DelaysDrains() {
		return nil
	}
	p.Spec.finalizerFailed = true
	return p.selected()
}

// Selecting returns the specs that select the node, by rank, with how far they are there, and the
// revision of the store. No spec selects a nil node.
func (s *Store) Selecting(node *v1.Node) (specs []Spec, revision int) {
	s.lock.Lock()
	if node != nil {
		specs = s.candidates(node)
	}
	revision = s.revision
	s.lock.Unlock()
	// Every event of a pod needs the lock, so selectors are matched without it.
	specs = slices.DeleteFunc(specs, func(o Spec) bool { return !o.Selector.Matches(node) })
	for i := range specs {
		o := &specs[i]
		o.Phase = s.Limits.PhaseOn(o, node)
		o.skipped = (o.Phase == PhaseDone || o.Phase == PhaseReturning) && isSkipped(o, node)
	}
	slices.SortFunc(specs, func(a, b Spec) int { return strings.Compare(a.rank, b.rank) })
	return specs, revision
}

// FlowOf returns the name of the maintenance in whose flow the node is: of those that have selected
// it or have to release it, the one with the fewest nodes, so that it does not wait for the nodes of
// a larger one. It is empty if there is none.
func (s *Store) FlowOf(node string) string {
	s.lock.Lock()
	defer s.lock.Unlock()
	flow, size := "", 0
	for p := range s.having(node) {
		n := len(p.nodes) + len(p.unreleased)
		if flow == "" || n < size || n == size && p.Name < flow {
			flow, size = p.Name, n
		}
	}
	return flow
}

// IsDraining reports whether a maintenance that drains is known to select the node.
func (s *Store) IsDraining(node string) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	for p := range s.having(node) {
		if _, selected := p.nodes[node]; selected && p.Drains() {
			return true
		}
	}
	return false
}

// Counts is what follows from counting the pods of a node.
type Counts struct {
	// Participants are the maintenances that drain the node.
	Participants []Participant
	// Ready is whether the pods on all nodes of these are counted, so that the node can be
	// decided on.
	Ready bool
	// Others are nodes that have to be reconciled because a maintenance has advanced.
	Others []string
}

// Concerning names the maintenances that have selected the node or have to release it.
func (s *Store) Concerning(node string) (names []string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for p := range s.having(node) {
		names = append(names, p.Name)
	}
	return names
}

// CountPods counts the pods that are left on the node, for each maintenance that drains it. Those that its
// neighbors keep hold up no entry of its plan. admitted are the UIDs of the maintenances that had to be
// admitted. agentsStay names those that skip a pod of the default type there.
func (s *Store) CountPods(node string, specs []Spec, pods []Pod, admitted sets.Set[types.UID], agentsStay sets.Set[string]) Counts {
	s.lock.Lock()
	defer s.lock.Unlock()
	result := Counts{Ready: true}
	for _, o := range specs {
		p := s.maintenances[o.Name]
		if p == nil || !p.same(&o) {
			// It has changed since the specs were read.
			result.Ready = false
			result.Others = append(result.Others, node)
			continue
		}
		if o.Waits() || o.Phase == PhaseDone {
			if p.setPhase(node, o.Phase, o.skipped) {
				result.Others = append(result.Others, p.selected()...)
			}
			s.reindex(node, p)
			continue
		}
		p.setPhase(node, o.Phase, false)
		remaining, kept := make([]int, o.Plan.Len()+1), 0
		if o.Drains() {
			for i := range pods {
				switch pod := &pods[i]; {
				case pod.IsKeptBy(o.Name):
				case pod.IsKeptByNeighbors():
					kept++
				default:
					remaining[o.Plan.EntryFor(pod.Pod)]++
				}
			}
		}
		if p.setRemaining(node, remaining, kept) {
			result.Others = append(result.Others, p.selected()...)
		}
		p.nodes[node].skipped = o.skipped
		if o.Claims() {
			// It was deselected, and is selected again before it was released.
			delete(p.unreleased, node)
		}
		s.reindex(node, p)
		if o.Drains() {
			result.Ready = result.Ready && p.isReady()
			position := p.position
			if admitted.Has(o.UID) {
				// Nodes are admitted at different times. Each follows the plan at its own pace:
				// otherwise one that has just begun would hold those up that are almost done.
				position = o.Plan.Len() - 1
			}
			if agentsStay.Has(o.Name) {
				// A DaemonSet must be able to replace its pod beside one that is skipped.
				position = min(position, o.Plan.LastOf(v1.PodTypeDefault))
			}
			allowed := o.Plan.TargetsAt(AllowedPosition(position, remaining))
			result.Participants = append(result.Participants, Participant{Name: o.Name, rank: o.rank, Allowed: allowed, shutdown: o.IsShutdownOf(node)})
		}
	}
	return result
}

// Decide records what was decided on a node for a maintenance, and reports whether it is the first
// decision on a node that has joined.
func (s *Store) Decide(node, name string, decision Decision) (joined bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.maintenances[name]
	return p != nil && p.decide(node, decision)
}

// Deselect removes a node from the maintenances that do not select it any more, because its labels or their selectors
// have changed. It returns their names, and nodes that have to be reconciled because one has advanced. The specs that select the
// node were read at that revision: later ones have listed the nodes themselves, and have this
// node reconciled again.
func (s *Store) Deselect(node string, specs []Spec, revision int) (names, others []string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for name, since := range s.deselected[node] {
		if since > revision {
			continue
		}
		delete(s.deselected[node], name)
		if !slices.ContainsFunc(specs, func(o Spec) bool { return o.Name == name }) {
			names = append(names, name)
		}
	}
	if len(s.deselected[node]) == 0 {
		delete(s.deselected, node)
	}
	for p := range s.having(node) {
		_, selected := p.nodes[node]
		idle := p.waiting.Has(node) || p.done.Has(node)
		if !selected && !idle || p.revision > revision || slices.ContainsFunc(specs, func(o Spec) bool { return o.Name == p.Name }) {
			continue
		}
		names = append(names, p.Name)
		p.setWaiting(node, false)
		p.done.Delete(node)
		p.skipped.Delete(node)
		if p.leave(node) {
			others = append(others, p.selected()...)
		}
		s.reindex(node, p)
	}
	return names, others
}

// WaitingOn names the maintenances that the given ones wait for.
func (s *Store) WaitingOn(names []string) []string {
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

// Summarize returns the sums of a maintenance, and false if it is not known. It also returns the
// nodes whose status may have to name other maintenances that this one waits for.
func (s *Store) Summarize(name string) (sums Summary, others []string, known bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.maintenances[name]
	if p == nil {
		return Summary{}, nil, false
	}
	before := p.waitingOn
	sums = p.summarize()
	now := s.Limits.Now()
	if sums.Resumes = p.resume(&sums, now); sums.Resumes > 0 {
		sums.Ready = false
	}
	// For what nodes wait is not known before the first decision.
	if sums.Waiting > 0 && p.waits == nil && now.Before(p.resumeUntil) {
		sums.Resumes, sums.Ready = pace.Within(p.resumeUntil.Sub(now), ResumeTime), false
	}
	if !slices.Equal(before, p.waitingOn) {
		others = p.selected()
	}
	return sums, others, true
}

// IsCordoned reports whether the node may be unschedulable because of a maintenance that still has
// to release it, although the status of the node does not say so.
func (s *Store) IsCordoned(node string) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	for p := range s.having(node) {
		if p.cordoned(node) {
			return true
		}
	}
	return false
}

// Uncordoned records that the node is schedulable: whoever cordons it later is another client. It
// is not released yet, because other steps of that may take longer.
func (s *Store) Uncordoned(node string, revision int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for p := range s.releasing(node, revision) {
		p.unreleased[node].cordoned = false
	}
}

// Delayed records what delays the release of the node, and returns the maintenances that wait for
// it.
func (s *Store) Delayed(node string, blockers []maintenance.BlockerGroup, revision int) []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	if blockers == nil {
		blockers = []maintenance.BlockerGroup{}
	}
	var waiting []string
	for p := range s.releasing(node, revision) {
		p.unreleased[node].blockers = blockers
		waiting = append(waiting, p.Name)
	}
	return waiting
}

// Release records that the node is released, and returns the maintenances of which it was the
// last one.
func (s *Store) Release(node string, revision int) []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	var finished []string
	for p := range s.releasing(node, revision) {
		delete(p.unreleased, node)
		s.reindex(node, p)
		if len(p.unreleased) == 0 {
			finished = append(finished, p.Name)
		}
	}
	return finished
}

// MeasureOnce reports whether this is the first time that the drain of the pod type is over.
func (s *Store) MeasureOnce(name string, podType v1.PodType) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.maintenances[name]
	if p == nil || p.measured.Has(podType) {
		return false
	}
	p.measured.Insert(podType)
	return true
}

// SetFailed records whether a node with that UID has not come back in time.
func (s *Store) SetFailed(node string, uid types.UID, name string, failed bool) {
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

// WaitingNodes returns the nodes of a maintenance that wait for their admission, and how many it selects; false
// unless it drains, in that generation. Nobody may change the slice.
func (s *Store) WaitingNodes(name string, uid types.UID, generation int64) (waiting []string, selected int, found bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.maintenances[name]
	if p == nil || p.UID != uid || p.Generation != generation || !p.Drains() {
		return nil, 0, false
	}
	return p.listWaiting(), p.waiting.Len() + p.done.Len() + len(p.nodes), true
}

// SetWaits records what the nodes of a maintenance wait for, and reports whether that has changed.
func (s *Store) SetWaits(name string, waits map[rollout.Wait]int) (changed bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.maintenances[name]
	if p == nil || p.waits != nil && maps.Equal(p.waits, waits) {
		return false
	}
	p.waits = map[rollout.Wait]int{} // Not nil: the decision is known.
	maps.Copy(p.waits, waits)
	switch {
	case !slices.ContainsFunc(slices.Collect(maps.Keys(waits)), IsEndless):
		p.endlessSince = time.Time{}
	case p.endlessSince.IsZero():
		p.endlessSince = s.Limits.Now()
	}
	return true
}

// Tracked returns all nodes of maintenances that drain.
func (s *Store) Tracked() []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	all := sets.New[string]()
	for _, p := range s.maintenances {
		if p.Drains() {
			all.Insert(p.all().UnsortedList()...)
		}
	}
	return sets.List(all)
}

// Knows reports whether a maintenance of that UID is known.
func (s *Store) Knows(name string, uid types.UID) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.maintenances[name]
	return p != nil && p.UID == uid
}

// UnknownAdmission is for how long an admission is kept of a maintenance that the cache does not
// have: it may have been created since. One that this process has seen deleted is over at once.
const UnknownAdmission = 10 * time.Minute
