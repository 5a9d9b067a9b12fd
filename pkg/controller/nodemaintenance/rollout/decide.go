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

package rollout

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
)

const (
	// maxBatch is how many nodes are admitted by one decision. What they have taken, the next
	// decision knows.
	maxBatch = 50

	// deadAfter is how long a node is not Ready until it is admitted at any number: after that time, its pods
	// are evicted by default. When a network or many kubelets are interrupted, the nodes are back before.
	deadAfter = 5 * time.Minute

	// outageShare and outageNodes are how many of the nodes of a budget are down, in percent and at least,
	// when what has failed is not the nodes, but what reports about them. At the same numbers, the node
	// lifecycle controller evicts fewer pods of a zone, or none. A budget with fewer nodes needs as many in the
	// cluster: see Fleet.isOutage.
	outageShare = 55
	outageNodes = 3

	// maxPending is how many pending admissions a holder stores, which the API limits.
	maxPending = 100
)

// Maintenance is a NodeMaintenance in the stage Drain, of which nodes need to be admitted.
type Maintenance struct {
	*coordinationv1alpha1.NodeMaintenance
	// Rank orders maintenances: the one that has been in the stage Drain for the longest has the least.
	Rank string
	// Selected is how many nodes it selects, and Waiting are those that wait for their admission. The slice is
	// not changed any more: the fleet looks the nodes up again when it gets another one.
	Selected int
	Waiting  []string
	// SettlingUntil is until when it waits at most for pods that replace those of drained nodes; zero if they
	// are ready.
	SettlingUntil time.Time
	// Unreleased is how many of its nodes are done, and cannot be made schedulable: they keep their places.
	Unreleased int
	// Disabled is whether this process admits no node of it, because its feature gate is off.
	Disabled bool
	// Unwritable is whether its status cannot be written now, because another write takes long.
	Unwritable bool
}

// Admission is a node with which a maintenance may begin when all of its holders have reserved it.
type Admission struct {
	Node        *v1.Node
	Maintenance *coordinationv1alpha1.NodeMaintenance
	// Budgets, and the maintenance if it has a rollout, have yet to reserve it.
	Budgets            []*coordinationv1alpha1.NodeMaintenanceBudget
	ReserveMaintenance bool
	// reserved is the time of the first reservation that a holder has stored; zero if none has.
	reserved time.Time
}

// Wait is what a node waits for.
type Wait struct {
	Reason coordinationv1alpha1.NodeMaintenanceWaitReason
	// Budget is the name of the NodeMaintenanceBudget; empty if the reason is none.
	Budget string
	// Until is when the window of the budget opens, and all other budgets of the node are open, or until when
	// a rollout settles at most; zero for other reasons, and if the budgets are not open together in the next
	// maxMeetingWait.
	Until time.Time
}

// Decision says what is to be done now.
type Decision struct {
	Admissions []Admission
	// Full is whether as many nodes are new as one decision may have, so that the next one follows at once.
	Full bool
	// Waits counts, by the names of maintenances, the nodes that wait for each cause.
	Waits map[string]map[Wait]int
}

// severities orders reasons: of several, a node shows the one that is least likely to end by itself.
var severities = []coordinationv1alpha1.NodeMaintenanceWaitReason{
	coordinationv1alpha1.NodeMaintenanceWaitBeingRemoved,
	coordinationv1alpha1.NodeMaintenanceWaitDisabled,
	coordinationv1alpha1.NodeMaintenanceWaitPaused,
	coordinationv1alpha1.NodeMaintenanceWaitHalted,
	coordinationv1alpha1.NodeMaintenanceWaitSettling,
	coordinationv1alpha1.NodeMaintenanceWaitStatusFailed,
	coordinationv1alpha1.NodeMaintenanceWaitNotCurrent,
	coordinationv1alpha1.NodeMaintenanceWaitFrozen,
	coordinationv1alpha1.NodeMaintenanceWaitWindow,
	coordinationv1alpha1.NodeMaintenanceWaitAdmissionFailed,
	coordinationv1alpha1.NodeMaintenanceWaitTopology,
	coordinationv1alpha1.NodeMaintenanceWaitOlderMaintenance,
	coordinationv1alpha1.NodeMaintenanceWaitBudget,
	coordinationv1alpha1.NodeMaintenanceWaitConcurrency,
}

// round is one decision while it is made: what the fleet has, and what is pending or was decided.
type round struct {
	*Fleet
	now time.Time
	// states has the budgets, with their counts so far.
	states map[*budget]*budgetState
	// admitted is how many nodes were decided on that have yet to be reserved.
	admitted int
	// classes has the class of each node by rank, created when it was created, in seconds, and slots its slot.
	// separate changes the class of a node that is taken.
	classes []*class
	created []int64
	slots   []int
	// changes counts the changes of what verdicts follow from.
	changes int
	// reserved has the nodes that budgets have reserved, by the UIDs of maintenances.
	reserved map[types.UID]sets.Set[string]
}

// budgetState is what a budget has besides the nodes that the cache has.
type budgetState struct {
	// pending are its nodes that are pending or decided, and not taken according to the cache.
	pending sets.Set[string]
	// unavailable, disrupted and taken are the counts of the budget with them.
	unavailable, disrupted int
	taken                  map[string]int
	// gone is how many of them the cache does not have: each may be in a domain of its own.
	gone int
	// reserved is how many pending admissions it has stored and will have.
	reserved int
	// max is how many nodes may be unavailable, and outage is whether most nodes are down.
	max    int
	outage bool
	// reservations are the pending admissions that it has stored.
	reservations map[reservation]*coordinationv1alpha1.NodeMaintenancePendingAdmission
	// early has the nodes that were reserved while they were down or cordoned, or while more was
	// allowed, and why they have to wait. In the order in which they are stored, each counts those
	// before it, so that they do not wait for each other.
	early map[string]coordinationv1alpha1.NodeMaintenanceWaitReason
	// open is whether a window is open, and frozen whether nothing is admitted.
	open, frozen bool
	// next is when the next window opens, if none is open.
	next time.Time
	// waiting is whether this or an older maintenance waits only for another domain, and held
	// whether an older one does.
	waiting, held bool
}

// Decide decides which nodes are next. It changes nothing.
func (f *Fleet) Decide(maintenances []Maintenance, now time.Time) Decision {
	r := f.newRound(now)
	r.classify()
	decision := Decision{Waits: map[string]map[Wait]int{}}
	slices.SortFunc(maintenances, func(a, b Maintenance) int { return strings.Compare(a.Rank, b.Rank) })
	var states []*maintenanceState
	for i := range maintenances {
		states = append(states, newMaintenanceState(f, &maintenances[i], now))
		decision.Waits[maintenances[i].Name] = map[Wait]int{}
	}
	for _, m := range states {
		r.decideReserved(m, &decision)
		r.decideClasses(m, &decision)
		r.holdYounger()
	}
	// Each of their reservations holds a place until it is over: if they came first, others would never get it.
	for _, m := range states {
		r.decideTried(m, &decision)
		r.holdYounger()
	}
	f.forgetWaiting(states)
	f.forgetMeetings()
	decision.Full = r.admitted == maxBatch
	// What nodes waited for a moment ago is the best that is known.
	maps.DeleteFunc(decision.Waits, func(_ string, waits map[Wait]int) bool { return waits[Wait{}] > 0 })
	return decision
}

// explainRest gives all nodes a reason that would be admitted, or that were not looked at.
func (d *Decision) explainRest(maintenances []Maintenance, reason coordinationv1alpha1.NodeMaintenanceWaitReason) {
	for i := range maintenances {
		waits, rest := d.Waits[maintenances[i].Name], len(maintenances[i].Waiting)
		for _, count := range waits {
			rest -= count
		}
		if waits != nil && rest > 0 {
			waits[Wait{Reason: reason}] += rest
		}
	}
}

// explainFailures gives the nodes a reason that would be admitted if these holders had been written.
func (f *Fleet) explainFailures(d *Decision, failed sets.Set[types.UID]) {
	for i := range d.Admissions {
		admission := &d.Admissions[i]
		if !failed.HasAny(admission.holders()...) {
			continue
		}
		wait := failedWait(f.firstBudget(admission, failed))
		if waits := d.Waits[admission.Maintenance.Name]; waits != nil {
			waits[wait]++
		}
	}
}

// decideReserved decides on the nodes that are reserved for the maintenance.
func (r *round) decideReserved(m *maintenanceState, decision *Decision) {
	m.reserved = m.pending.Clone()
	for name := range r.reserved[m.UID] {
		if n := r.nodes[name]; n != nil && slices.ContainsFunc(n.budgets, func(b *budget) bool { return r.states[b].reservations[reservation{name, m.UID}] != nil }) {
			m.reserved.Insert(name)
		}
	}
	r.decideEach(m, m.reserved.UnsortedList(), decision)
}

// decideTried decides on the other nodes whose last admission was refused, or goes on.
func (r *round) decideTried(m *maintenanceState, decision *Decision) {
	r.decideEach(m, r.tried().Difference(m.reserved).UnsortedList(), decision)
}

// tried returns the names of the nodes whose last admission was refused, or may be stored.
func (f *Fleet) tried() sets.Set[string] {
	return sets.KeySet(f.refused).Union(sets.KeySet(f.admitting))
}

// decideEach decides on those of the nodes that wait for the maintenance, one by one.
func (r *round) decideEach(m *maintenanceState, names []string, decision *Decision) {
	var candidates []candidate
	for _, name := range names {
		if n := r.nodes[name]; n != nil && m.waits.has(n.slot) && maintenance.AdmissionOf(n.Node, m.UID) == nil {
			candidates = append(candidates, r.candidateOf(m, n.rank))
		}
	}
	slices.SortFunc(candidates, candidate.compare)
	waits := decision.Waits[m.Name]
	for _, c := range candidates {
		n := r.order[c.rank]
		admission, found := r.check(m, n)
		r.hold(found)
		refusedAt, isRefused := r.refused[n.Name]
		switch {
		case isRefused && r.now.Sub(refusedAt).Abs() < 2*pendingTimeout && (len(found) == 0 || m.reserved.Has(n.Name)):
			// Also while all that it waits for is its own reservation.
			waits[worst(append(found, Wait{Reason: coordinationv1alpha1.NodeMaintenanceWaitAdmissionFailed}))]++
		case len(found) > 0:
			waits[worst(found)]++
		}
		if len(found) == 0 {
			r.admit(m, n, admission, decision)
		}
	}
}

// admit takes a node, unless the decision is full: then the next one follows at once. What is reserved is no
// part of that: what keeps it from being written does not keep others.
func (r *round) admit(m *maintenanceState, n *node, admission Admission, decision *Decision) {
	if len(admission.holders()) > 0 {
		if r.admitted == maxBatch {
			return
		}
		r.admitted++
	}
	r.take(m, n)
	decision.Admissions = append(decision.Admissions, admission)
}

// holdYounger has maintenances wait that are younger than those that were decided on.
func (r *round) holdYounger() {
	for _, state := range r.states {
		if state.waiting && !state.held {
			state.held = true
			r.changes++
		}
	}
}

func (f *Fleet) newRound(now time.Time) *round {
	r := &round{Fleet: f, now: now, states: make(map[*budget]*budgetState, len(f.budgets)), reserved: map[types.UID]sets.Set[string]{}}
	for _, b := range f.budgets {
		state := &budgetState{
			pending: sets.New[string](), unavailable: b.unavailable, disrupted: b.disrupted, taken: maps.Clone(b.taken),
			reserved: len(b.Status.PendingAdmissions), open: b.isOpen(now), frozen: b.isFrozen(),
			early: map[string]coordinationv1alpha1.NodeMaintenanceWaitReason{},
			max:   b.max(), outage: f.isOutage(b), reservations: map[reservation]*coordinationv1alpha1.NodeMaintenancePendingAdmission{},
		}
		if !state.open {
			state.next = b.nextWindow(now).UTC()
		}
		r.states[b] = state
		for i := range b.Status.PendingAdmissions {
			pending := &b.Status.PendingAdmissions[i]
			n := f.nodes[pending.NodeName]
			r.reserve(state, pending)
			switch {
			case state.pending.Has(pending.NodeName):
				continue
			case n == nil:
				state.addGone(pending.NodeName)
				continue
			case !b.nodes.Has(n.Name):
				continue
			}
			if reason := state.exceeds(b, n, now); reason != "" {
				state.early[n.Name] = reason
			}
			state.add(b, n)
		}
	}
	for name := range f.admitting {
		if n := f.nodes[name]; n != nil {
			for _, b := range n.budgets {
				r.states[b].add(b, n)
			}
		}
	}
	return r
}

// reserve notes a pending admission of a budget.
func (r *round) reserve(state *budgetState, pending *coordinationv1alpha1.NodeMaintenancePendingAdmission) {
	if state.reservations[reservationOf(pending)] == nil {
		state.reservations[reservationOf(pending)] = pending
	}
	if r.reserved[pending.MaintenanceUID] == nil {
		r.reserved[pending.MaintenanceUID] = sets.New[string]()
	}
	r.reserved[pending.MaintenanceUID].Insert(pending.NodeName)
}

// add counts a node that a maintenance is about to take.
func (s *budgetState) add(b *budget, n *node) {
	if n.taken || s.pending.Has(n.Name) {
		return
	}
	s.pending.Insert(n.Name)
	if !n.unavailable {
		s.unavailable++
	}
	if !n.disrupted {
		s.disrupted++
	}
	s.taken[b.domainOf(n)]++
}

// addGone counts a node that was reserved and that the cache does not have: it may have been created
// again, and a process whose cache has it may be admitting it.
func (s *budgetState) addGone(name string) {
	s.pending.Insert(name)
	s.unavailable++
	s.disrupted++
	s.gone++
}

// exceeds returns which limit of the budget another node would exceed; empty if none. A node that has been
// down for a while costs nothing; one that has been so for a moment, or together with most others, or that is
// disrupted in another way, has its own place, but not that of another one. One that is cordoned makes no further
// node unavailable, but its pods have yet to leave it: without a limit, a pool that was cordoned at once would be
// drained at once.
func (s *budgetState) exceeds(b *budget, n *node, now time.Time) coordinationv1alpha1.NodeMaintenanceWaitReason {
	switch {
	case b.Spec.Topology != nil && s.domainsWith(b.domainOf(n)) > int(b.Spec.Topology.MaxDomains):
		return coordinationv1alpha1.NodeMaintenanceWaitTopology
	case n.taken || s.pending.Has(n.Name):
	case n.down && !s.outage && n.untilDead(now) == 0:
	case n.disrupted && s.unavailable > s.max:
		return coordinationv1alpha1.NodeMaintenanceWaitBudget
	case n.disrupted:
	case n.unavailable && s.disrupted >= s.max, !n.unavailable && s.unavailable >= s.max:
		return coordinationv1alpha1.NodeMaintenanceWaitBudget
	}
	return ""
}

// allowed returns with how many more nodes that are available a maintenance may begin, as far as the budget
// is concerned: if no further domain may become active, they have to be in one that is.
func (r *round) allowed(b *budget) int {
	s := r.states[b]
	allowed := max(min(s.max, len(b.nodes))-s.unavailable, 0)
	if b.Spec.Topology == nil || len(s.taken)+s.gone < int(b.Spec.Topology.MaxDomains) {
		return allowed
	}
	if len(s.taken)+s.gone > int(b.Spec.Topology.MaxDomains) {
		return 0
	}
	available := 0
	for domain := range s.taken {
		available += b.available[domain]
	}
	for name := range s.pending {
		if n := r.nodes[name]; n != nil && !n.unavailable {
			available--
		}
	}
	return min(allowed, available)
}

// domainsWith returns how many domains are active together with this one. If there are too many, none
// gets another node: the cache may be behind, and show one as active that has ended.
func (s *budgetState) domainsWith(domain string) int {
	if s.taken[domain] > 0 {
		return len(s.taken) + s.gone
	}
	return len(s.taken) + s.gone + 1
}

// maintenanceState is a maintenance with what limits its rollout.
type maintenanceState struct {
	*Maintenance
	// pending are the nodes for which its own limit is reserved, and expired those of them for which
	// it has to be reserved again.
	pending, expired sets.Set[string]
	// slots is how many more nodes its own limits allow, and stopped why there are none at all.
	slots   int
	stopped []Wait
	// waits has the slots of the nodes that wait, and reserved are those that any holder has reserved.
	waits    slotSet
	reserved sets.Set[string]
	// counted has the slots of those that are counted in their classes.
	counted slotSet
}

func newMaintenanceState(f *Fleet, m *Maintenance, now time.Time) *maintenanceState {
	state := &maintenanceState{Maintenance: m, pending: sets.New[string](), expired: sets.New[string](), slots: unlimited, waits: f.waitingSlots(m)}
	if m.Disabled {
		state.stopped = append(state.stopped, Wait{Reason: coordinationv1alpha1.NodeMaintenanceWaitDisabled})
	}
	rollout := m.Spec.Rollout
	if rollout == nil {
		return state
	}
	admitted := counts{}
	if c := f.admitted[m.UID]; c != nil {
		admitted = *c
	}
	inFlight := 0
	if m.Status.RolloutStatus != nil {
		for _, pending := range m.Status.RolloutStatus.PendingAdmissions {
			state.pending.Insert(pending.NodeName)
			if now.Sub(pending.Time.Time) >= pendingUsable {
				state.expired.Insert(pending.NodeName)
			}
			// One that the cache does not have may have been created again: a process whose cache has it
			// may be admitting it.
			if n := f.nodes[pending.NodeName]; n == nil || maintenance.AdmissionOf(n.Node, m.UID) == nil {
				inFlight++
			}
		}
	}
	for name, write := range f.admitting {
		if slices.Contains(write.of, m.UID) && !state.pending.Has(name) && f.nodes[name] != nil && maintenance.AdmissionOf(f.nodes[name].Node, m.UID) == nil {
			inFlight++
		}
	}
	state.slots = min(limit(rollout.MaxConcurrent, m.Selected)-admitted.working-inFlight-m.Unreleased, maxPending-state.pending.Len())
	if rollout.Paused {
		state.stopped = append(state.stopped, Wait{Reason: coordinationv1alpha1.NodeMaintenanceWaitPaused})
	}
	if !m.SettlingUntil.IsZero() {
		state.stopped = append(state.stopped, Wait{Reason: coordinationv1alpha1.NodeMaintenanceWaitSettling, Until: m.SettlingUntil.UTC()})
	}
	if IsHalted(rollout, admitted.failed) {
		state.stopped = append(state.stopped, Wait{Reason: coordinationv1alpha1.NodeMaintenanceWaitHalted})
	}
	return state
}

// isYoung reports whether the node is younger than the maintenance, by whole seconds, as the API has them.
func (m *maintenanceState) isYoung(n *node) bool {
	return n.CreationTimestamp.Unix() > m.CreationTimestamp.Unix()
}

// pendingOf returns the reservation of the node for the limits of the rollout, or nil.
func (m *maintenanceState) pendingOf(node string) *coordinationv1alpha1.NodeMaintenancePendingAdmission {
	if m.Status.RolloutStatus == nil {
		return nil
	}
	return pendingOf(m.Status.RolloutStatus.PendingAdmissions, node, m.UID)
}

// IsHalted reports whether the failed nodes with these UIDs stop a rollout: more of them are not acknowledged than may
// fail.
func IsHalted(rollout *coordinationv1alpha1.NodeMaintenanceRollout, failed sets.Set[types.UID]) bool {
	tolerated := 0
	if rollout.MaxFailedNodes != nil {
		tolerated = int(*rollout.MaxFailedNodes)
	}
	return failed.Len() > tolerated && failed.Difference(sets.New(rollout.AcknowledgedNodeUIDs...)).Len() > tolerated
}

// check returns the admission of a node, or what it waits for. What a holder has reserved counts
// already, and another process may be writing it. This one does not as long as the holder is frozen,
// closed or stopped, or if it was reserved because of a cache that was behind.
func (r *round) check(m *maintenanceState, n *node) (Admission, []Wait) {
	admission, waits := Admission{Node: n.Node, Maintenance: m.NodeMaintenance}, slices.Clone(m.stopped)
	if n.removed {
		waits = append(waits, Wait{Reason: coordinationv1alpha1.NodeMaintenanceWaitBeingRemoved})
	}
	if m.Spec.Rollout != nil {
		reserved := m.pendingOf(n.Name)
		admission.ReserveMaintenance = reserved == nil
		admission.note(reserved)
	}
	if admission.ReserveMaintenance && m.slots <= 0 || m.expired.Has(n.Name) {
		waits = append(waits, Wait{Reason: coordinationv1alpha1.NodeMaintenanceWaitConcurrency})
	}
	isYoung, isOver := m.isYoung(n), m.expired.Has(n.Name)
	for _, b := range n.budgets {
		reserved := r.states[b].reservations[reservation{n.Name, m.UID}]
		isOver = isOver || reserved != nil && r.now.Sub(reserved.Time.Time) >= pendingUsable
		if wait, refused := r.refusal(b, n, reserved, isYoung); refused {
			waits = append(waits, wait)
		}
		if reserved == nil {
			admission.Budgets = append(admission.Budgets, b.NodeMaintenanceBudget)
		}
		admission.note(reserved)
	}
	// Who asks a budget for a place because of an attempt of which the outcome is not known would keep it from others.
	if write, found := r.admitting[n.Name]; found && (write.ended.IsZero() || write.unknown && len(admission.holders()) > 0) {
		waits = append(waits, Wait{Reason: coordinationv1alpha1.NodeMaintenanceWaitAdmissionFailed})
	}
	if behind, lasting := r.isBehind(m, n); behind {
		waits = append(waits, behindWait(lasting)) // It is not written, and could be.
	} else if r.unwritable.HasAny(admission.holders()...) {
		waits = append(waits, failedWait(r.firstBudget(&admission, r.unwritable)))
	} else if isOver && r.failing.HasAny(admission.holders()...) {
		// It waits for its own reservation, which was of no use because another holder cannot be written.
		waits = append(waits, failedWait(r.firstBudget(&admission, r.failing)))
	}
	return admission, r.meet(n, waits)
}

// behindWait returns the wait of a node, of whose holders one has confirmed an admission that the cache
// of nodes lacks. As long as that is usual, it has no reason.
func behindWait(lasting bool) Wait {
	if lasting {
		return Wait{Reason: coordinationv1alpha1.NodeMaintenanceWaitNotCurrent}
	}
	return Wait{}
}

// isBehind reports whether one of the holders of a node has confirmed an admission that the cache of nodes
// lacks, and whether one has for long.
func (r *round) isBehind(m *maintenanceState, n *node) (behind, lasting bool) {
	note := func(holder types.UID) {
		long, found := r.behind[holder]
		behind, lasting = behind || found, lasting || long
	}
	note(m.UID)
	for _, b := range n.budgets {
		note(b.UID)
	}
	return behind, lasting
}

// failedWait returns the wait of a node which a holder would have to reserve that cannot be written: this
// budget, or the maintenance.
func failedWait(failed *budget) Wait {
	wait := Wait{Reason: coordinationv1alpha1.NodeMaintenanceWaitStatusFailed}
	if failed != nil {
		wait.Budget = failed.Name
	}
	return wait
}

// firstBudget returns the first budget of these holders that would have to reserve the admission; nil if none would.
func (f *Fleet) firstBudget(a *Admission, holders sets.Set[types.UID]) *budget {
	for _, b := range a.Budgets {
		if holders.Has(b.UID) {
			return f.budgets[b.Name]
		}
	}
	return nil
}

// holders returns the UIDs of those that have yet to reserve the admission.
func (a *Admission) holders() []types.UID {
	uids := make([]types.UID, 0, len(a.Budgets)+1)
	if a.ReserveMaintenance {
		uids = append(uids, a.Maintenance.UID)
	}
	for _, b := range a.Budgets {
		uids = append(uids, b.UID)
	}
	return uids
}

func (a *Admission) needs(holder types.UID) bool { return slices.Contains(a.holders(), holder) }

// note notes the time of a reservation that a holder may have.
func (a *Admission) note(reserved *coordinationv1alpha1.NodeMaintenancePendingAdmission) {
	if reserved != nil && (a.reserved.IsZero() || reserved.Time.Time.Before(a.reserved)) {
		a.reserved = reserved.Time.Time
	}
}

// refusal returns why a budget does not admit the node now, for which it may have reserved it.
func (r *round) refusal(b *budget, n *node, reserved *coordinationv1alpha1.NodeMaintenancePendingAdmission, isYoung bool) (Wait, bool) {
	state, wait := r.states[b], Wait{Budget: b.Name}
	switch {
	case state.frozen:
		wait.Reason = coordinationv1alpha1.NodeMaintenanceWaitFrozen
	case !state.open:
		wait.Reason, wait.Until = coordinationv1alpha1.NodeMaintenanceWaitWindow, state.next
	case reserved != nil && r.now.Sub(reserved.Time.Time) >= pendingUsable:
		wait.Reason = coordinationv1alpha1.NodeMaintenanceWaitBudget // It will be reserved again.
	case reserved != nil || state.early[n.Name] != "":
		wait.Reason = state.early[n.Name]
	case b.Spec.Topology != nil && state.held:
		wait.Reason = coordinationv1alpha1.NodeMaintenanceWaitOlderMaintenance
	case b.Spec.Topology != nil && state.waiting && isYoung:
		// A machine that comes back again and again would keep its domain active forever.
		wait.Reason = coordinationv1alpha1.NodeMaintenanceWaitTopology
	case state.reserved >= maxPending:
		wait.Reason = coordinationv1alpha1.NodeMaintenanceWaitBudget
	default:
		wait.Reason = state.exceeds(b, n, r.now)
	}
	return wait, wait.Reason != ""
}

// hold keeps younger maintenances from beginning with further nodes of budgets that keep this one
// from beginning with a node only because of its domain.
func (r *round) hold(waits []Wait) {
	if !areForDomains(waits) {
		return
	}
	for _, wait := range waits {
		if state := r.states[r.budgets[wait.Budget]]; !state.waiting {
			state.waiting = true
			r.changes++
		}
	}
}

// areForDomains reports whether all of the waits end when another domain may be begun.
func areForDomains(waits []Wait) bool {
	return !slices.ContainsFunc(waits, func(w Wait) bool {
		return w.Reason != coordinationv1alpha1.NodeMaintenanceWaitTopology && w.Reason != coordinationv1alpha1.NodeMaintenanceWaitOlderMaintenance
	})
}

// take counts an admission that was decided.
func (r *round) take(m *maintenanceState, n *node) {
	if !m.pending.Has(n.Name) {
		m.slots--
	}
	for _, b := range n.budgets {
		if state := r.states[b]; state.reservations[reservation{n.Name, m.UID}] == nil {
			state.add(b, n)
			state.reserved++
		}
	}
	r.changes++
	r.separate(n)
}

// pendingOf returns the pending admission of the node for the maintenance, or nil.
func pendingOf(pending []coordinationv1alpha1.NodeMaintenancePendingAdmission, node string, uid types.UID) *coordinationv1alpha1.NodeMaintenancePendingAdmission {
	i := slices.IndexFunc(pending, func(p coordinationv1alpha1.NodeMaintenancePendingAdmission) bool {
		return p.NodeName == node && p.MaintenanceUID == uid
	})
	if i < 0 {
		return nil
	}
	return &pending[i]
}

// worst returns the wait with the first reason of severities.
func worst(waits []Wait) Wait {
	return slices.MinFunc(waits, func(a, b Wait) int {
		return cmp.Or(slices.Index(severities, a.Reason)-slices.Index(severities, b.Reason), strings.Compare(a.Budget, b.Budget))
	})
}

// compareFlags orders what has the flag first.
func compareFlags(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
