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
// more because a maintenance has more nodes.
//
// It is derived from the caches and from the objects' own memory, and is filled anew
// when the controller starts.
type ledger struct {
	lock         sync.Mutex
	maintenances map[string]*account
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
	// unrecorded is how many of the counted nodes have not said more yet.
	unrecorded int
	// remaining counts, for each entry of the plan, the pods that are left on all nodes.
	// The last count is of pods that no entry takes.
	remaining []int
	totals    totals
	// targets counts the nodes with the same targets, by their text.
	targets map[string]*targetCount
	// limitedBy and blame count the nodes that give the name of another maintenance as
	// the reason why this one gets no further.
	limitedBy, blame nameCounts
	// holds are the groups of held pods of the nodes that have some.
	holds map[string][]maintenance.HoldGroup
	// unreleased are the nodes that the stage Complete has not dealt with yet.
	unreleased sets.Set[string]
	// completing is whether unreleased was filled.
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
	// effective is whether the maintenance may touch nodes: beyond the stage Idle only
	// once its finalizer is there.
	effective bool
	selector  *nodeMatcher
	plan      *maintenance.Plan
	// begun is whether an earlier sync has stored a position already.
	begun bool
}

// totals are sums over the nodes of a maintenance.
type totals struct {
	// left counts pods, drained and draining nodes.
	left, drained, draining  int
	pending, active, blocked int
}

// nodeCount is what one node contributes to one maintenance.
type nodeCount struct {
	remaining []int
	targets   maintenance.Targets
	// limitedBy names the maintenances that hold this one back on the node, and
	// limitedByElders those of them that are older.
	limitedBy, limitedByElders []string
	pending, active, blocked   int
	// draining is whether a pod within the targets is left.
	draining bool
	holds    []maintenance.HoldGroup
	// recorded is whether more is known than what is left.
	recorded bool
	// joins is whether the node has come to the maintenance while this controller ran.
	joins bool
}

func (c *nodeCount) left() int {
	left := 0
	for _, n := range c.remaining {
		left += n
	}
	return left
}

type targetCount struct {
	maintenance.Targets
	nodes int
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
	return &ledger{maintenances: map[string]*account{}}
}

// newOrder reads what the administrator wants.
func newOrder(m *coordinationv1alpha1.NodeMaintenance) (order, error) {
	selector, err := newNodeMatcher(m.Spec.NodeSelector)
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
		effective: m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageIdle || slices.Contains(m.Finalizers, coordinationv1alpha1.NodeMaintenanceFinalizer),
		selector:  selector,
		plan:      plan,
		begun:     m.Status.DrainStatus.DrainPlanPosition != nil,
	}, nil
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
	affected := sets.New[string]()
	if known != nil {
		affected = sets.KeySet(known.nodes).Union(known.unreleased)
		if known.uid == wanted.uid {
			fresh.position = max(fresh.position, known.position)
			fresh.timed = known.timed
		}
	}
	// Listed under the lock: a node that comes later is looked at later, and finds the
	// maintenance here.
	for _, node := range nodes() {
		if !wanted.selector.matches(node) {
			continue
		}
		affected.Insert(node.Name)
		fresh.nodes[node.Name] = nil
		fresh.unknown++
		if wanted.completes() {
			fresh.unreleased.Insert(node.Name)
		}
	}
	fresh.completing = wanted.completes()
	l.observed++
	fresh.since = l.observed
	l.maintenances[wanted.name] = fresh
	return sets.List(affected)
}

func newAccount(wanted order, storedPosition int) *account {
	return &account{
		order:     wanted,
		position:  min(storedPosition, max(wanted.plan.Len()-1, 0)),
		nodes:     map[string]*nodeCount{},
		remaining: make([]int, wanted.plan.Len()+1),
		targets:   map[string]*targetCount{},
		limitedBy: nameCounts{}, blame: nameCounts{},
		holds:      map[string][]maintenance.HoldGroup{},
		unreleased: sets.New[string](),
		timed:      sets.New[v1.PodType](),
	}
}

// forget drops a maintenance that is gone and returns the nodes that it had.
func (l *ledger) forget(name string) []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	known := l.maintenances[name]
	if known == nil {
		return nil
	}
	delete(l.maintenances, name)
	return sets.List(sets.KeySet(known.nodes).Union(known.unreleased))
}

// selecting returns the orders that select the node, by rank, and how far the ledger is.
// A nil node is selected by none.
func (l *ledger) selecting(node *v1.Node) (orders []order, observed int) {
	l.lock.Lock()
	all := make([]order, 0, len(l.maintenances))
	for _, account := range l.maintenances {
		all = append(all, account.order)
	}
	observed = l.observed
	l.lock.Unlock()
	// Every event of a pod takes the lock: selectors are matched without it.
	orders = slices.DeleteFunc(all, func(o order) bool { return !o.selector.matches(node) })
	slices.SortFunc(orders, func(a, b order) int { return strings.Compare(a.rank, b.rank) })
	return orders, observed
}

// holds tells whether the ledger knows the maintenance as one that holds its nodes.
func (l *ledger) holds(name string, uid types.UID) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	a := l.maintenances[name]
	return a != nil && a.uid == uid && a.holdsNode()
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

// isUnreleased tells whether a completing maintenance has yet to give the node back.
func (l *ledger) isUnreleased(node string) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	for _, account := range l.maintenances {
		if account.unreleased.Has(node) {
			return true
		}
	}
	return false
}

// release notes that the node was given back by those maintenances that were observed
// when it was looked at, and returns those that have now given back all of theirs.
func (l *ledger) release(node string, observed int) []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	var finished []string
	for name, account := range l.maintenances {
		if account.since <= observed && account.unreleased.Has(node) {
			account.unreleased.Delete(node)
			if account.unreleased.Len() == 0 {
				finished = append(finished, name)
			}
		}
	}
	return finished
}

// isDraining tells whether a maintenance drains the node, as far as the ledger knows.
func (l *ledger) isDraining(node string) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	for _, account := range l.maintenances {
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
			result.ready = false // Changed meanwhile: the node will be looked at again.
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
		a.unrecorded++
		a.addTotals(count, +1)
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
	left := count.left()
	a.totals.left += by * left
	if left == 0 {
		a.totals.drained += by
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
	if next := nextPosition(a.position, a.remaining); a.drains() && next != a.position {
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

// record replaces what a node contributes to a maintenance besides the pods that are
// left. It tells whether the node has just joined, and which other nodes may have something
// else to say now.
func (l *ledger) record(node, name string, latest nodeCount) (joined bool, others []string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	a := l.maintenances[name]
	if a == nil || a.nodes[node] == nil {
		return false, nil
	}
	count := a.nodes[node]
	blamed := a.blamed(count)
	a.addTotals(count, -1)
	if !count.recorded {
		a.unrecorded--
	}
	joined = count.joins
	latest.remaining, latest.recorded = count.remaining, true
	*count = latest
	a.addTotals(count, +1)
	delete(a.holds, node)
	if len(latest.holds) > 0 {
		a.holds[node] = latest.holds
	}
	now := a.blamed(count)
	if slices.Equal(blamed, now) {
		return joined, nil
	}
	gone, came := a.blame.add(blamed, -1), a.blame.add(now, +1)
	if gone || came {
		return joined, slices.Sorted(maps.Keys(a.nodes))
	}
	return joined, nil
}

// addTotals adds what else was counted on a node, or takes it out.
func (a *account) addTotals(count *nodeCount, by int) {
	a.totals.pending += by * count.pending
	a.totals.active += by * count.active
	a.totals.blocked += by * count.blocked
	if count.draining {
		a.totals.draining += by
	}
	a.limitedBy.add(count.limitedByElders, by)
	key := count.targets.String()
	if a.targets[key] == nil {
		a.targets[key] = &targetCount{Targets: count.targets}
	}
	if a.targets[key].nodes += by; a.targets[key].nodes == 0 {
		delete(a.targets, key)
	}
}

// leave takes a node out of all maintenances that do not select it any more, and returns
// their names, and nodes that have to be looked at because one has advanced.
func (l *ledger) leave(node string, orders []order) (left, others []string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for name, a := range l.maintenances {
		count, ok := a.nodes[node]
		if !ok || slices.ContainsFunc(orders, func(o order) bool { return o.name == name }) {
			continue
		}
		left = append(left, name)
		waits := a.blame.names()
		delete(a.nodes, node)
		delete(a.holds, node)
		if count == nil {
			a.unknown--
		} else {
			if !count.recorded {
				a.unrecorded--
			}
			a.addTotals(count, -1)
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
	totals
	nodes int
	// ready is whether every node was looked at.
	ready    bool
	position int
	// unplanned counts pods that no entry of the plan takes.
	unplanned int
	reached   maintenance.Targets
	state     drainState
	holds     []maintenance.HoldGroup
	// released is whether the stage Complete is done with every node.
	released bool
}

// summarize returns the sums of a maintenance, and false if it is not known.
func (l *ledger) summarize(name string) (summary, bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	a := l.maintenances[name]
	if a == nil {
		return summary{}, false
	}
	var targets []maintenance.Targets
	for _, t := range a.targets {
		targets = append(targets, t.Targets)
	}
	return summary{
		totals: a.totals, nodes: len(a.nodes), ready: a.unknown == 0 && a.unrecorded == 0, position: a.position, unplanned: a.remaining[len(a.remaining)-1],
		reached: maintenance.LeastPowerful(targets...),
		state: drainState{
			left: a.totals.left > 0, draining: a.totals.draining > 0,
			limitedBy: a.limitedBy.names(), waitingFor: a.blame.names(),
		},
		holds:    maintenance.MergeGroups(slices.Collect(maps.Values(a.holds))...),
		released: a.completing && a.unreleased.Len() == 0,
	}, true
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
	stages, drained := map[string]int{}, map[string]*nodeCount{}
	blocked := map[string][]maintenance.HoldGroup{}
	for _, a := range l.maintenances {
		for node, count := range a.nodes {
			stages[node] = max(stages[node], slices.Index(stageOrder, a.stage))
			if count != nil && a.drains() {
				drained[node], blocked[node] = count, a.holds[node]
			}
		}
	}
	counts := metrics.Counts{Nodes: map[coordinationv1alpha1.NodeMaintenanceStage]int{}, BlockedPods: map[maintenance.HoldCause]int{}}
	for _, stage := range stages {
		counts.Nodes[stageOrder[stage]]++
	}
	for node, count := range drained {
		counts.PendingPods += count.pending
		counts.EvictingPods += count.active
		for _, group := range blocked[node] {
			if group.Cause.Blocked() {
				counts.BlockedPods[group.Cause] += group.Pods
			}
		}
	}
	return counts
}
