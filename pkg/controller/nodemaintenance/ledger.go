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
	"maps"
	"slices"
	"strings"
	"sync"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/metrics"
)

// ledger keeps, for every maintenance, sums over its nodes. One node is counted anew
// when something on it changes, and the sums follow by the difference: no event costs
// more because a maintenance has more nodes, or because there are more maintenances.
//
// It is derived from the caches and from the objects' own memory, and is filled anew
// when the controller starts.
type ledger struct {
	lock         sync.Mutex
	maintenances map[string]*account
	// byNode finds the maintenances that have a node, or have yet to give it back, and
	// bySelector those that may select one. See enter and reindex.
	byNode     index[string]
	bySelector index[maintenance.NodeKey]
	// observed counts what was observed: who looks at a node remembers how far it was then.
	observed int
}

// account is what the ledger knows of one maintenance.
type account struct {
	order
	// position is the entry of the plan that is being executed. It never goes back.
	position int
	// nodes holds what was last counted on each selected node; nil where nothing was
	// counted yet, which is so for unknown nodes.
	nodes   map[string]*nodeCount
	unknown int
	// ready is whether every node was counted once: nothing is decided before.
	ready bool
	// remaining counts, for each entry of the plan, the pods that are left on all nodes.
	// The last count is of pods that no entry takes.
	remaining []int
	// blame counts the nodes that give the name of a maintenance as the reason why this one
	// gets no further.
	blame nameCounts
	// unreleased are the nodes that the stage Complete has not dealt with yet, and in the stages
	// Cordon and Drain those that are not selected any more and were not given back yet, each
	// with what keeps it, or nil before it was looked at. They need not exist.
	unreleased map[string][]maintenance.HoldGroup
	// cordons are those of them that may still be unschedulable because of this maintenance.
	cordons sets.Set[string]
	// completing is whether unreleased was filled for the stage Complete.
	completing bool
	// since is the count of the ledger when this was observed.
	since int
	// timed are the pod types whose drain was measured.
	timed sets.Set[v1.PodType]
}

// order is what the administrator wants, ready to be used.
type order struct {
	name       string
	uid        types.UID
	generation int64
	rank       string
	stage      coordinationv1alpha1.NodeMaintenanceStage
	// effective is whether the maintenance may touch nodes: see isEffective.
	effective bool
	selector  *maintenance.NodeMatcher
	plan      *maintenance.Plan
	// begun is whether an earlier sync has stored a position already.
	begun bool
	// completed is whether an earlier sync has stored that the stage Complete was reached.
	completed bool
	// refused is whether a claim has failed to become more: nobody waits for it any more.
	refused bool
}

// nodeCount is what one node contributes to one maintenance.
type nodeCount struct {
	nodeRecord
	remaining []int
	// recorded is whether more is known than what is left.
	recorded bool
	// joins is whether the node has come to the maintenance while this controller ran.
	joins bool
}

// nodeRecord is what was decided on a node.
type nodeRecord struct {
	targets maintenance.Targets
	// limitedBy names the maintenances that hold this one back on the node, and
	// limitedByElders those of them that are older.
	limitedBy, limitedByElders []string
	pending, active, blocked   int
	// draining is whether a pod within the targets is left, and cordoned whether it is
	// stored that the node is unschedulable.
	draining, cordoned bool
	holds              []maintenance.HoldGroup
}

func (c *nodeCount) left() int {
	left := 0
	for _, n := range c.remaining {
		left += n
	}
	return left
}

// nameCounts counts how often a name was given.
type nameCounts map[string]int

// add changes the counts of the names and tells whether a name came or went.
func (c nameCounts) add(names []string, by int) bool {
	changed := false
	for _, name := range names {
		before := c[name]
		if c[name] += by; c[name] == 0 {
			delete(c, name)
		}
		changed = changed || (before == 0) != (c[name] == 0)
	}
	return changed
}

func (c nameCounts) names() []string { return slices.Sorted(maps.Keys(c)) }

func newLedger() *ledger {
	return &ledger{maintenances: map[string]*account{}, byNode: index[string]{}, bySelector: index[maintenance.NodeKey]{}}
}

// newOrder reads what the administrator wants.
func newOrder(m *coordinationv1alpha1.NodeMaintenance) (order, error) {
	selector, err := maintenance.NewNodeMatcher(m.Spec.NodeSelector)
	if err != nil {
		return order{}, fmt.Errorf("reading spec.nodeSelector: %w", err)
	}
	plan, err := maintenance.NewPlan(m.Spec.DrainPlan)
	if err != nil {
		return order{}, fmt.Errorf("reading spec.drainPlan: %w", err)
	}
	return order{
		name: m.Name, uid: m.UID, generation: m.Generation,
		rank:      m.CreationTimestamp.UTC().Format("2006-01-02T15:04:05") + "/" + m.Name,
		stage:     m.Spec.Stage,
		effective: isEffective(m),
		selector:  selector,
		plan:      plan,
		begun:     m.Status.DrainStatus.DrainPlanPosition != nil,
		completed: hasStarted(&m.Status, coordinationv1alpha1.NodeMaintenanceStageComplete),
	}, nil
}

// isEffective reports whether a maintenance may touch nodes: with its finalizer, or where only
// the finalizer was lost, so that its stage was started before.
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

func (o *order) holdsNode() bool {
	return o.effective && (o.stage == coordinationv1alpha1.NodeMaintenanceStageCordon || o.drains())
}

func (o *order) drains() bool {
	return o.effective && o.stage == coordinationv1alpha1.NodeMaintenanceStageDrain
}

// claims tells whether the maintenance would hold its nodes, but has no finalizer yet.
func (o *order) claims() bool {
	return !o.effective && o.stage != coordinationv1alpha1.NodeMaintenanceStageComplete
}

// isAwaited tells whether the maintenance is about to drain its nodes, as soon as its finalizer
// is stored.
func (o *order) isAwaited() bool {
	return o.claims() && o.stage == coordinationv1alpha1.NodeMaintenanceStageDrain && !o.refused
}

func (o *order) plans() bool { return o.stage == coordinationv1alpha1.NodeMaintenanceStageIdle }

func (o *order) completes() bool {
	return o.effective && o.stage == coordinationv1alpha1.NodeMaintenanceStageComplete
}

// same tells whether nodes have nothing new to learn from the other order.
func (o *order) same(other *order) bool {
	return o.uid == other.uid && o.generation == other.generation && o.effective == other.effective
}

// observe takes note of a maintenance and returns the nodes that have to be looked at
// because of it; none if nothing has changed. nodes are all nodes of the cluster.
func (l *ledger) observe(wanted order, storedPosition int, nodes func() []*v1.Node) []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	known := l.maintenances[wanted.name]
	if known != nil && known.same(&wanted) {
		known.begun = wanted.begun
		return nil
	}
	fresh := newAccount(wanted, storedPosition)
	if known != nil && known.uid == wanted.uid {
		fresh.position = max(fresh.position, known.position)
		fresh.timed = known.timed
		fresh.refused = known.refused && wanted.claims()
	}
	// Listed under the lock: a node that comes later is looked at later, and finds the
	// maintenance here.
	for _, node := range nodes() {
		if !wanted.selector.Matches(node) {
			continue
		}
		fresh.nodes[node.Name] = nil
		fresh.unknown++
		if wanted.completes() {
			fresh.unreleased[node.Name] = nil
			if fresh.mayHaveCordoned(known, node.Name) {
				fresh.cordons.Insert(node.Name)
			}
		}
	}
	if known != nil && known.uid == wanted.uid && (wanted.holdsNode() || wanted.completes()) {
		fresh.takeOver(known)
	}
	fresh.completing = wanted.completes()
	l.observed++
	fresh.since = l.observed
	return sets.List(l.enter(wanted.name, fresh))
}

func newAccount(wanted order, storedPosition int) *account {
	return &account{
		order:      wanted,
		position:   min(storedPosition, max(wanted.plan.Len()-1, 0)),
		nodes:      map[string]*nodeCount{},
		remaining:  make([]int, wanted.plan.Len()+1),
		blame:      nameCounts{},
		unreleased: map[string][]maintenance.HoldGroup{},
		cordons:    sets.New[string](),
		timed:      sets.New[v1.PodType](),
	}
}

// takeOver has the account wait for those nodes of an earlier one that the maintenance has ceased to
// select, and has yet to give back.
func (a *account) takeOver(known *account) {
	for node := range known.all() {
		if _, selected := a.nodes[node]; selected {
			continue
		}
		holds, unreleased := known.unreleased[node]
		if !unreleased && !known.holdsNode() {
			continue
		}
		a.unreleased[node] = holds
		if known.cordons.Has(node) {
			a.cordons.Insert(node)
		}
	}
}

// adopt has the maintenances in Complete wait for a node that nobody holds, and that was not given
// back before a restart: nothing says any more which of them it was, unless one of them selects it.
func (l *ledger) adopt(node string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for _, a := range l.maintenances {
		if _, unreleased := a.unreleased[node]; a.completing && unreleased {
			return
		}
	}
	for _, a := range l.maintenances {
		if _, unreleased := a.unreleased[node]; a.completing && !unreleased {
			a.unreleased[node] = nil
			l.reindex(node, a)
		}
	}
}

// mayHaveCordoned tells whether a node of a maintenance in Complete may be unschedulable because
// of it, although its status says nothing. That is not so for nodes that were given back before,
// by this process or an earlier one: who has cordoned them since is somebody else.
func (a *account) mayHaveCordoned(known *account, node string) bool {
	if known != nil && known.uid == a.uid && known.completing {
		return known.cordons.Has(node)
	}
	return !a.completed
}

// refuse notes that a claim has failed to become more, and returns the nodes that have waited for
// it.
func (l *ledger) refuse(name string) []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	a := l.maintenances[name]
	if a == nil || !a.isAwaited() {
		return nil
	}
	a.refused = true
	return slices.Sorted(maps.Keys(a.nodes))
}

// forget drops a maintenance that is gone and returns the nodes that it had.
func (l *ledger) forget(name string) []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	return sets.List(l.enter(name, nil))
}

// selecting returns the orders that select the node, by rank, and how far the ledger is.
// A nil node is selected by none.
func (l *ledger) selecting(node *v1.Node) (orders []order, observed int) {
	l.lock.Lock()
	if node != nil {
		orders = l.candidates(node)
	}
	observed = l.observed
	l.lock.Unlock()
	// Every event of a pod takes the lock: selectors are matched without it.
	orders = slices.DeleteFunc(orders, func(o order) bool { return !o.selector.Matches(node) })
	slices.SortFunc(orders, func(a, b order) int { return strings.Compare(a.rank, b.rank) })
	return orders, observed
}

// timeOnce tells whether this is the first time that the drain of the pod type is over.
func (l *ledger) timeOnce(name string, podType v1.PodType) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	a := l.maintenances[name]
	if a == nil || a.timed.Has(podType) {
		return false
	}
	a.timed.Insert(podType)
	return true
}

// isCordoned tells whether the node may be unschedulable because of a maintenance that has yet to
// give its cordon back.
func (l *ledger) isCordoned(node string) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	for account := range l.accountsOf(node) {
		if account.cordons.Has(node) {
			return true
		}
	}
	return false
}

// uncordon notes that the node was seen without a trace of a cordon, which the maintenances that
// were observed then have thereby given back. What else they have to do there may take longer.
func (l *ledger) uncordon(node string, observed int) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for account := range l.accountsOf(node) {
		if account.since <= observed {
			account.cordons.Delete(node)
		}
	}
}

// release notes that the node was given back by those maintenances that were observed
// when it was looked at, and returns those that have now given back all of theirs.
func (l *ledger) release(node string, observed int) []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	var finished []string
	for account := range l.accountsOf(node) {
		if _, unreleased := account.unreleased[node]; unreleased && account.since <= observed {
			delete(account.unreleased, node)
			account.cordons.Delete(node)
			l.reindex(node, account)
			if len(account.unreleased) == 0 {
				finished = append(finished, account.name)
			}
		}
	}
	return finished
}

// delay notes what keeps the node from being given back, for those maintenances that were observed
// when it was looked at, and returns those of them that wait for it.
func (l *ledger) delay(node string, holds []maintenance.HoldGroup, observed int) []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	var waiting []string
	for account := range l.accountsOf(node) {
		if _, unreleased := account.unreleased[node]; unreleased && account.since <= observed {
			if holds == nil {
				holds = []maintenance.HoldGroup{}
			}
			account.unreleased[node] = holds
			waiting = append(waiting, account.name)
		}
	}
	return waiting
}

// isDraining tells whether a maintenance drains the node, as far as the ledger knows.
func (l *ledger) isDraining(node string) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	for account := range l.accountsOf(node) {
		if _, ok := account.nodes[node]; ok && account.drains() {
			return true
		}
	}
	return false
}

// recount is what a count of the pods of a node has come to.
type recount struct {
	// members are the maintenances that drain the node.
	members []member
	// ready is whether all of them have all their nodes counted, so that the node can be
	// decided on.
	ready bool
	// others are nodes that have to be looked at because a maintenance has advanced.
	others []string
}

// countPods counts, for each maintenance that drains the node, what is left for it.
func (l *ledger) countPods(node string, orders []order, pods []*v1.Pod) recount {
	l.lock.Lock()
	defer l.lock.Unlock()
	result := recount{ready: true}
	for _, o := range orders {
		a := l.maintenances[o.name]
		if a == nil || !a.same(&o) {
			// Changed meanwhile.
			result.ready = false
			result.others = append(result.others, node)
			continue
		}
		remaining := make([]int, o.plan.Len()+1)
		if o.drains() {
			for _, pod := range pods {
				remaining[o.plan.EntryFor(pod)]++
			}
		}
		// A restart finds all nodes new, but has nothing new to tell.
		joins := a.nodes[node] == nil && (a.ready || !o.begun)
		waits := a.blame.names()
		changed := a.setRemaining(node, remaining) || !slices.Equal(waits, a.blame.names())
		if o.holdsNode() {
			// It may have left, and come back.
			delete(a.unreleased, node)
		}
		l.reindex(node, a)
		if joins {
			a.nodes[node].joins = true
		}
		if changed {
			result.others = append(result.others, slices.Sorted(maps.Keys(a.nodes))...)
		}
		if o.drains() {
			result.ready = result.ready && a.ready
			result.members = append(result.members, member{name: o.name, rank: o.rank, grant: o.plan.TargetsAt(grantedPosition(a.position, remaining))})
		}
	}
	return result
}

// setRemaining replaces the pods that are left on a node, and tells whether all nodes
// of the maintenance have to be looked at because of it.
func (a *account) setRemaining(node string, remaining []int) bool {
	count, known := a.nodes[node]
	if count != nil {
		a.addRemaining(count, -1)
	} else {
		if known {
			a.unknown--
		}
		count = &nodeCount{}
		a.nodes[node] = count
	}
	count.remaining = remaining
	a.addRemaining(count, +1)
	return a.advance()
}

// addRemaining adds what is left on a node, or takes it out.
func (a *account) addRemaining(count *nodeCount, by int) {
	for i := range count.remaining {
		a.remaining[i] += by * count.remaining[i]
	}
	a.blame.add(a.blamed(count), by)
}

// advance moves to the next position, if no pod of those before it is left on any node.
// It tells whether it did, or whether only now every node was counted.
func (a *account) advance() bool {
	if a.unknown > 0 {
		return false
	}
	news := !a.ready
	a.ready = true
	// Without a node nothing is over: a selector that matches none for a while must not let
	// those that come later begin at the end.
	if next := nextPosition(a.position, a.remaining); a.drains() && len(a.nodes) > 0 && next != a.position {
		news = true
		a.position = next
		a.blame = nameCounts{}
		for _, count := range a.nodes {
			a.blame.add(a.blamed(count), +1)
		}
	}
	return news
}

// blamed names the maintenances because of which this node keeps its maintenance from
// advancing: those that hold the node back, or the maintenance itself while it drains.
func (a *account) blamed(count *nodeCount) []string {
	if count == nil || !slices.ContainsFunc(count.remaining[:min(a.position+1, len(count.remaining))], func(n int) bool { return n > 0 }) {
		return nil
	}
	if len(count.limitedBy) > 0 {
		return count.limitedBy
	}
	return []string{a.name}
}

// record replaces what was decided on a node for a maintenance. It reports whether the node
// has just joined, and which other nodes may have something else to say now.
func (l *ledger) record(node, name string, latest nodeRecord) (joined bool, others []string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	a := l.maintenances[name]
	if a == nil || a.nodes[node] == nil {
		return false, nil
	}
	count := a.nodes[node]
	joined, count.joins = count.joins, false
	blamed := a.blamed(count)
	count.nodeRecord, count.recorded = latest, true
	now := a.blamed(count)
	gone, came := a.blame.add(blamed, -1), a.blame.add(now, +1)
	if (gone || came) && !slices.Equal(blamed, now) {
		return joined, slices.Sorted(maps.Keys(a.nodes))
	}
	return joined, nil
}

// leave takes a node out of those maintenances that do not select it any more, and returns
// their names, and nodes that have to be looked at because one has advanced. Which ones
// select it was found out when the ledger was as far as observed: what came later selects
// nodes of its own, and has this one looked at again.
func (l *ledger) leave(node string, orders []order, observed int) (left, others []string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for a := range l.accountsOf(node) {
		count, ok := a.nodes[node]
		if !ok || a.since > observed || slices.ContainsFunc(orders, func(o order) bool { return o.name == a.name }) {
			continue
		}
		left = append(left, a.name)
		waits := a.blame.names()
		if a.holdsNode() {
			a.unreleased[node] = nil
		}
		delete(a.nodes, node)
		l.reindex(node, a)
		if count == nil {
			a.unknown--
		} else {
			a.addRemaining(count, -1)
		}
		if a.advance() || !slices.Equal(waits, a.blame.names()) {
			others = append(others, slices.Sorted(maps.Keys(a.nodes))...)
		}
	}
	return left, others
}

// blamedBy names the maintenances that the given ones wait for.
func (l *ledger) blamedBy(names []string) []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	blamed := sets.New[string]()
	for _, name := range names {
		if a := l.maintenances[name]; a != nil {
			blamed.Insert(a.blame.names()...)
		}
	}
	return sets.List(blamed)
}

// summary is what the status of a maintenance is made of.
type summary struct {
	nodes int
	// left counts pods, and drained the nodes that are done with.
	left, drained int
	// uncordoned counts nodes that are not stored as unschedulable.
	uncordoned               int
	pending, active, blocked int
	// ready is whether every node was looked at; in the stage Complete, every one that was not
	// given back.
	ready    bool
	position int
	// unplanned counts pods that no entry of the plan takes.
	unplanned int
	reached   maintenance.Targets
	state     drainState
	holds     []maintenance.HoldGroup
	// delays are what keeps nodes from being given back: in the stage Complete, and before it of
	// nodes that are not selected any more.
	delays []maintenance.HoldGroup
	// released is whether the stage Complete is done with every node.
	released bool
}

// summarize returns the sums of a maintenance, and false if it is not known. It goes over all
// nodes, which is why a status is computed at most once a second.
func (l *ledger) summarize(name string) (summary, bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	a := l.maintenances[name]
	if a == nil {
		return summary{}, false
	}
	sums := summary{
		nodes: len(a.nodes), ready: true, position: a.position, unplanned: a.remaining[len(a.remaining)-1],
		released: a.completing && len(a.unreleased) == 0,
	}
	targets, delays := map[string]maintenance.Targets{}, slices.Collect(maps.Values(a.unreleased))
	var holds [][]maintenance.HoldGroup
	limitedBy := sets.New[string]()
	for _, count := range a.nodes {
		if count == nil || !count.recorded {
			sums.ready = false
			continue
		}
		sums.add(count)
		// As a rule all nodes have the same targets.
		targets[count.targets.String()] = count.targets
		limitedBy.Insert(count.limitedByElders...)
		holds = append(holds, count.holds)
	}
	sums.delays = maintenance.MergeGroups(delays...)
	if a.completing {
		sums.ready = !slices.ContainsFunc(delays, func(groups []maintenance.HoldGroup) bool { return groups == nil })
	}
	sums.reached = maintenance.LeastPowerful(slices.Collect(maps.Values(targets))...)
	sums.holds = maintenance.MergeGroups(holds...)
	sums.state.left, sums.state.cordoned = sums.left > 0, sums.uncordoned == 0
	// What keeps it from draining nodes of its own is among the blockers.
	sums.state.limitedBy = sets.List(limitedBy)
	sums.state.waitingFor = slices.DeleteFunc(a.blame.names(), func(other string) bool { return other == name })
	return sums, true
}

// add adds what a node contributes.
func (s *summary) add(count *nodeCount) {
	left := count.left()
	s.left += left
	s.pending += count.pending
	s.active += count.active
	s.blocked += count.blocked
	s.state.draining = s.state.draining || count.draining
	switch {
	case !count.cordoned:
		s.uncordoned++
	case left == 0:
		s.drained++
	}
}

// stageOrder ranks the stages by how much they do to a node.
var stageOrder = []coordinationv1alpha1.NodeMaintenanceStage{
	coordinationv1alpha1.NodeMaintenanceStageComplete,
	coordinationv1alpha1.NodeMaintenanceStageIdle,
	coordinationv1alpha1.NodeMaintenanceStageCordon,
	coordinationv1alpha1.NodeMaintenanceStageDrain,
}

// count counts nodes and pods for the metrics, each once, however many maintenances
// select them.
func (l *ledger) count() metrics.Counts {
	l.lock.Lock()
	defer l.lock.Unlock()
	stages, drained, blocked := map[string]int{}, map[string]*nodeCount{}, map[maintenance.HoldCause]sets.Set[string]{}
	block := func(node string, groups []maintenance.HoldGroup) {
		for _, group := range groups {
			if group.Cause.OfNode() {
				if blocked[group.Cause] == nil {
					blocked[group.Cause] = sets.New[string]()
				}
				blocked[group.Cause].Insert(node)
			}
		}
	}
	for _, a := range l.maintenances {
		for node, groups := range a.unreleased {
			block(node, groups)
		}
		for node, count := range a.nodes {
			stages[node] = max(stages[node], slices.Index(stageOrder, a.stage))
			if count == nil {
				continue
			}
			block(node, count.holds)
			if a.drains() { // Others know nothing of pods.
				drained[node] = count
			}
		}
	}
	counts := metrics.Counts{Nodes: map[coordinationv1alpha1.NodeMaintenanceStage]int{}, BlockedPods: map[maintenance.HoldCause]int{}, BlockedNodes: map[maintenance.HoldCause]int{}}
	for _, stage := range stages {
		counts.Nodes[stageOrder[stage]]++
	}
	for cause, nodes := range blocked {
		counts.BlockedNodes[cause] = len(nodes)
	}
	for _, count := range drained {
		counts.PendingPods += count.pending
		counts.EvictingPods += count.active
		for _, group := range count.holds {
			if group.Cause.Blocked() && !group.Cause.OfNode() {
				counts.BlockedPods[group.Cause] += group.Pods
			}
		}
	}
	return counts
}
