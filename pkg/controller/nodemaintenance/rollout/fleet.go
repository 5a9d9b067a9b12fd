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
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/apis/coordination/schedule"
)

// Fleet has what admissions are decided from: the nodes, and the budgets with their counts. A change
// of a node costs as much as it has budgets, and a change of a budget as much as there are nodes.
type Fleet struct {
	// Departed is called by SetNodes for each node that is gone, or was created again. It may be nil.
	Departed func(*v1.Node)
	nodes    map[string]*node
	budgets  map[string]*budget
	// admitted counts the admissions on the nodes, by the UIDs of maintenances.
	admitted map[types.UID]*counts
	// refused are nodes whose last admission could not be written, and when the API server has refused it;
	// zero if only the node has changed, and the next attempt follows at once.
	refused map[string]time.Time
	// admitting are nodes of which the API server may store an admission that they lack here, and for which maintenances.
	// All of their budgets count them, also one that has come to select them since, or was created.
	admitting map[string]admitting
	// behind are the budgets and maintenances with a confirmed admission that the nodes lack, and whether
	// that has lasted for long.
	behind map[types.UID]bool
	// unwritable are the budgets and maintenances whose status could not be written a moment ago.
	unwritable sets.Set[types.UID]
	// failing are those of which the last write has failed, however long ago, or goes on.
	failing sets.Set[types.UID]
	// unranked is whether the order of nodes has to be determined again.
	unranked bool
	// order has the nodes by rank, and places where they are: those that nodes have.
	order  []*node
	places map[string]*place
	// slots numbers the nodes by name, for slotSets, also those that are gone, and waiting has the slots of
	// the nodes that wait, by the UIDs of maintenances.
	slots   map[string]int
	waiting map[types.UID]*waitingNodes
	// serial counts the budgets that there have been.
	serial int
	// lost and working count the nodes that are so, with budgets or without.
	lost, working int
	// meetings has when the windows of budgets are open together, by the keys of their windows.
	meetings map[string]*meeting
}

// admitting is the write of an admission of which the outcome is not in the cache.
type admitting struct {
	node types.UID
	// of are the UIDs of the maintenances.
	of []types.UID
	// ended is when the write has ended; zero while it goes on. unknown is whether it had no answer.
	ended   time.Time
	unknown bool
}

// isSeen reports whether the node has the admissions, or is another one or gone.
func (a *admitting) isSeen(n *node) bool {
	return n == nil || n.UID != a.node || !slices.ContainsFunc(a.of, func(uid types.UID) bool { return maintenance.AdmissionOf(n.Node, uid) == nil })
}

// counts are the nodes of a maintenance, by how far they are.
type counts struct {
	// working are admitted and neither given back nor failed.
	working, done int
	// failed are the UIDs of those that have failed.
	failed sets.Set[types.UID]
	// nodes are all of them.
	nodes slotSet
}

func (c *counts) isEmpty() bool { return c.working == 0 && c.done == 0 && c.failed.Len() == 0 }

// node is what matters of a node.
type node struct {
	*v1.Node
	nodeState
	// downSince is since when it is not Ready, as its condition says.
	downSince time.Time
	budgets   []*budget
	// place is where it is; nil until its rank is determined.
	place *place
	// rank orders all nodes by their domains, then as maintenance.NodeOrder says.
	rank int
	slot int
}

// nodeState is what budgets count of a node.
type nodeState struct {
	// unavailable is whether it is not Ready or unschedulable, for whatever reason, disrupted whether that is
	// not only because it is unschedulable, and down whether it is not Ready.
	unavailable, disrupted, down bool
	// taken is whether a maintenance has begun with it, and has not given it back.
	taken bool
	// lost is whether it is down, and not because of a maintenance.
	lost bool
	// removed is whether others remove it.
	removed bool
}

// isWorking reports whether a maintenance works on the node: whether it is down says nothing of the others.
func (s *nodeState) isWorking() bool { return s.taken && !s.lost }

func stateOf(object *v1.Node) nodeState {
	return nodeState{
		unavailable: !maintenance.IsAvailable(object), disrupted: maintenance.IsDisrupted(object), down: !maintenance.IsReady(object),
		taken: maintenance.IsTaken(object), lost: isLost(object), removed: maintenance.IsBeingRemoved(object),
	}
}

// place is what nodes share that have the same budgets, and are in the same domain of each.
type place struct {
	key string
	// domains are those of the budgets that have a topology.
	domains []domain
	// rank orders places by their domains, and nodes counts the nodes.
	rank, nodes int
}

// domain is a domain of the topology of a budget.
type domain struct {
	of   *budget
	name string
}

// budget is a NodeMaintenanceBudget and the counts of its nodes.
type budget struct {
	*coordinationv1alpha1.NodeMaintenanceBudget
	// serial tells it from one of the same name that it has replaced.
	serial   int
	selector *maintenance.NodeMatcher
	windows  []*schedule.Window
	// windowsKey is the same for budgets with the same windows; empty without windows.
	windowsKey string
	nodes      sets.Set[string]
	// unavailable counts its nodes that are unavailable or taken, disrupted those that are disrupted or
	// taken, and taken, by domain, those that are taken.
	unavailable, disrupted int
	taken                  map[string]int
	// lost and working count its nodes that are so.
	lost, working int
	// available counts, by domain, those that are available and not taken.
	available map[string]int
	// unlabeled counts those without the label of the topology.
	unlabeled int
	// invalid is what this process does not understand of the spec; nil if it understands all of it.
	invalid error
}

// NewFleet returns a fleet without nodes and budgets.
func NewFleet() *Fleet {
	return &Fleet{
		nodes: map[string]*node{}, budgets: map[string]*budget{}, admitted: map[types.UID]*counts{}, refused: map[string]time.Time{}, admitting: map[string]admitting{},
		places: map[string]*place{}, slots: map[string]int{}, waiting: map[types.UID]*waitingNodes{}, meetings: map[string]*meeting{},
	}
}

// SetNode adds a node, or replaces the one of the same name. With the same labels, it has the same budgets.
func (f *Fleet) SetNode(object *v1.Node) {
	n := f.nodes[object.Name]
	if n == nil || !maps.Equal(n.Labels, object.Labels) {
		f.RemoveNode(object.Name)
		f.addNode(object)
		return
	}
	f.count(n, -1)
	state := stateOf(object)
	if state != n.nodeState {
		f.countIn(n, -1)
	}
	n.Node, n.downSince = object, downSince(object)
	if state != n.nodeState {
		n.nodeState = state
		f.countIn(n, +1)
	}
	f.count(n, +1)
}

func (f *Fleet) addNode(object *v1.Node) {
	n := &node{Node: object, nodeState: stateOf(object), downSince: downSince(object), slot: f.slotOf(object.Name)}
	for _, b := range f.budgets {
		if b.selector.Matches(object) {
			n.budgets = append(n.budgets, b)
		}
	}
	slices.SortFunc(n.budgets, func(a, b *budget) int { return strings.Compare(a.Name, b.Name) })
	f.nodes[object.Name], f.unranked = n, true
	f.countIn(n, +1)
	f.count(n, +1)
}

// countIn counts the node in the fleet and in its budgets, or subtracts it.
func (f *Fleet) countIn(n *node, sign int) {
	f.lost += sign * flag(n.lost)
	f.working += sign * flag(n.isWorking())
	for _, b := range n.budgets {
		b.add(n, sign)
	}
}

// rankNodes determines the order of the nodes, if nodes, their labels or budgets have changed. To
// compare thousands of names for each decision would cost more than everything else about it.
func (f *Fleet) rankNodes() {
	if !f.unranked {
		return
	}
	if len(f.slots) > 2*len(f.nodes)+minSlots {
		f.renumber()
	}
	type ordered struct {
		*node
		order uint64
	}
	all := make([]ordered, 0, len(f.nodes))
	for _, n := range f.nodes {
		if n.place == nil {
			f.locate(n)
		}
		all = append(all, ordered{n, maintenance.NodeOrder(n.Name, len(f.nodes))})
	}
	f.rankPlaces()
	slices.SortFunc(all, func(a, b ordered) int {
		return cmp.Or(a.place.rank-b.place.rank, cmp.Compare(a.order, b.order), strings.Compare(a.Name, b.Name))
	})
	f.order = make([]*node, len(all))
	for i := range all {
		all[i].rank, f.order[i] = i, all[i].node
	}
	f.unranked = false
}

// rankPlaces gives places with the same names of domains the same rank, whatever budgets they are of.
func (f *Fleet) rankPlaces() {
	compare := func(a, b *place) int {
		return slices.CompareFunc(a.domains, b.domains, func(a, b domain) int { return strings.Compare(a.name, b.name) })
	}
	places := slices.SortedFunc(maps.Values(f.places), compare)
	for i, p := range places {
		p.rank = i
		if i > 0 && compare(places[i-1], p) == 0 {
			p.rank = places[i-1].rank
		}
	}
}

// locate determines the place of a node.
func (f *Fleet) locate(n *node) {
	var key []byte
	for _, b := range n.budgets {
		key = strconv.AppendInt(key, int64(b.serial), 36)
		if b.Spec.Topology != nil {
			key = append(append(key, '/'), b.domainOf(n)...)
		}
		key = append(key, 0)
	}
	p := f.places[string(key)]
	if p == nil {
		p = &place{key: string(key)}
		for _, b := range n.budgets {
			if b.Spec.Topology != nil {
				p.domains = append(p.domains, domain{b, b.domainOf(n)})
			}
		}
		f.places[p.key] = p
	}
	p.nodes++
	n.place = p
}

// dislocate has the place of a node determined again.
func (f *Fleet) dislocate(n *node) {
	f.unranked = true
	if n.place == nil {
		return
	}
	if n.place.nodes--; n.place.nodes == 0 {
		delete(f.places, n.place.key)
	}
	n.place = nil
}

// SetNodes makes these the nodes. Those that are the same objects as before cost next to nothing.
func (f *Fleet) SetNodes(objects []*v1.Node) {
	for _, object := range objects {
		known := f.nodes[object.Name]
		if known != nil && known.UID != object.UID {
			f.departed(known.Node)
			delete(f.refused, object.Name)
		}
		if known == nil || known.Node != object {
			f.SetNode(object)
		}
	}
	if len(f.nodes) == len(objects) {
		return
	}
	present := sets.New[string]()
	for _, object := range objects {
		present.Insert(object.Name)
	}
	for name := range f.nodes {
		if !present.Has(name) {
			f.departed(f.nodes[name].Node)
			f.RemoveNode(name)
			delete(f.refused, name)
		}
	}
}

func (f *Fleet) departed(object *v1.Node) {
	if f.Departed != nil {
		f.Departed(object)
	}
}

// RemoveNode removes a node that is gone.
func (f *Fleet) RemoveNode(name string) {
	removed := f.nodes[name]
	if removed == nil {
		return
	}
	f.countIn(removed, -1)
	f.count(removed, -1)
	f.dislocate(removed)
	delete(f.nodes, name)
}

// downSince returns since when a node is not Ready, if it is not.
func downSince(object *v1.Node) time.Time {
	since := object.CreationTimestamp.Time
	for _, c := range object.Status.Conditions {
		if c.Type == v1.NodeReady && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since
}

// untilDead returns how much longer a node has to be down to be admitted although no node may become
// unavailable: it may be back in a moment. Zero if it is not down, or has been down for long enough. A time
// that is far in the future is that of a clock that is wrong.
func (n *node) untilDead(now time.Time) time.Duration {
	if wait := n.downSince.Add(deadAfter).Sub(now); n.down && wait > 0 && wait <= 2*deadAfter {
		return wait
	}
	return 0
}

// count adds the admissions of a node, or subtracts them.
func (f *Fleet) count(n *node, sign int) {
	for i := range maintenance.Admissions(n.Node) {
		admission := &n.Status.MaintenanceStatus.Admissions[i]
		c := f.admitted[admission.MaintenanceUID]
		if c == nil {
			c = &counts{failed: sets.New[types.UID]()}
			f.admitted[admission.MaintenanceUID] = c
		}
		switch {
		case admission.DoneTime != nil:
			c.done += sign
		case admission.FailedTime != nil && sign > 0:
			c.failed.Insert(n.UID)
		case admission.FailedTime != nil:
			c.failed.Delete(n.UID)
		default:
			c.working += sign
		}
		c.nodes.set(n.slot, sign > 0)
		if c.isEmpty() {
			delete(f.admitted, admission.MaintenanceUID)
		}
	}
}

// SetBudget adds a budget, or replaces the one of the same name. If the stored object is not completely
// valid, it returns an error, and what is valid counts: with an invalid selector, the budget has no
// node. It is kept, because decisions need to know all budgets that the API server has.
func (f *Fleet) SetBudget(object *coordinationv1alpha1.NodeMaintenanceBudget) error {
	if known := f.budgets[object.Name]; known != nil && known.UID == object.UID && known.Generation == object.Generation {
		known.NodeMaintenanceBudget = object
		return nil
	}
	f.RemoveBudget(object.Name)
	selector, err := maintenance.NewNodeMatcher(object.Spec.NodeSelector)
	if err != nil {
		err = fmt.Errorf("reading spec.nodeSelector: %w", err)
		selector = maintenance.MatchNoNode()
	}
	f.serial++
	b := &budget{NodeMaintenanceBudget: object, serial: f.serial, selector: selector, nodes: sets.New[string](), taken: map[string]int{}, available: map[string]int{}}
	for i := range object.Spec.Windows {
		w := &object.Spec.Windows[i]
		window, parseErr := schedule.NewWindow(w.Schedule, w.TimeZone, time.Duration(w.DurationSeconds)*time.Second)
		if parseErr != nil {
			// It was valid for another release. The others still open.
			err = fmt.Errorf("reading spec.windows[%d]: %w", i, parseErr)
			continue
		}
		b.windows = append(b.windows, window)
		b.windowsKey += fmt.Sprintf("%q %q %d\n", w.Schedule, w.TimeZone, w.DurationSeconds)
	}
	b.invalid = err
	f.budgets[object.Name] = b
	for _, n := range f.nodes {
		if selector.Matches(n.Node) {
			at, _ := slices.BinarySearchFunc(n.budgets, b.Name, func(known *budget, name string) int { return strings.Compare(known.Name, name) })
			n.budgets = slices.Insert(n.budgets, at, b)
			b.add(n, +1)
			f.dislocate(n)
		}
	}
	return err
}

// RemoveBudget removes a budget that is gone.
func (f *Fleet) RemoveBudget(name string) {
	removed := f.budgets[name]
	if removed == nil {
		return
	}
	for node := range removed.nodes {
		n := f.nodes[node]
		n.budgets = slices.DeleteFunc(n.budgets, func(b *budget) bool { return b == removed })
		f.dislocate(n)
	}
	delete(f.budgets, name)
}

// BudgetNames returns the names of the budgets.
func (f *Fleet) BudgetNames() []string { return slices.Collect(maps.Keys(f.budgets)) }

// add counts a node of the budget, or subtracts it.
func (b *budget) add(n *node, sign int) {
	if sign > 0 {
		b.nodes.Insert(n.Name)
	} else {
		b.nodes.Delete(n.Name)
	}
	if n.unavailable || n.taken {
		b.unavailable += sign
	}
	if n.disrupted || n.taken {
		b.disrupted += sign
	}
	b.lost += sign * flag(n.lost)
	b.working += sign * flag(n.isWorking())
	if b.Spec.Topology != nil {
		if _, found := n.Labels[b.Spec.Topology.Key]; !found {
			b.unlabeled += sign
		}
	}
	switch domain := b.domainOf(n); {
	case n.taken:
		addTo(b.taken, domain, sign)
	case !n.unavailable:
		addTo(b.available, domain, sign)
	}
}

// flag returns 1 if it is set.
func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

// addTo changes a count, and removes it if it is 0.
func addTo(counts map[string]int, key string, sign int) {
	if counts[key] += sign; counts[key] == 0 {
		delete(counts, key)
	}
}

// domainOf returns the domain of a node; empty if the budget has none. A node without the label is a
// domain of its own, with a name that no value of a label has.
func (b *budget) domainOf(n *node) string {
	if b.Spec.Topology == nil {
		return ""
	}
	if value, found := n.Labels[b.Spec.Topology.Key]; found {
		return value
	}
	return "node/" + n.Name
}

// max returns how many nodes of the budget may be unavailable.
func (b *budget) max() int { return limit(b.Spec.MaxUnavailable, len(b.nodes)) }

// isOutage reports whether so many nodes are down that no maintenance has to do with that nobody can tell which of
// them have failed. They are most of those of the budget, and of a few nodes all may have failed, unless most of the
// cluster is down as well.
func (f *Fleet) isOutage(b *budget) bool {
	return b.lost > 0 && areMost(b.lost, len(b.nodes)-b.working) && (b.lost >= outageNodes || f.isDown())
}

// isDown reports whether most nodes of the cluster are down.
func (f *Fleet) isDown() bool {
	return f.lost >= outageNodes && areMost(f.lost, len(f.nodes)-f.working)
}

// areMost reports whether as many of the nodes are down as in an outage.
func areMost(down, nodes int) bool { return 100*down >= outageShare*nodes }

// isFrozen reports whether the budget admits no node at all.
func (b *budget) isFrozen() bool {
	return b.Spec.MaxUnavailable == nil || limit(b.Spec.MaxUnavailable, 1) == 0
}

// isOpen reports whether one of its windows is open.
func (b *budget) isOpen(now time.Time) bool {
	return len(b.Spec.Windows) == 0 || slices.ContainsFunc(b.windows, func(w *schedule.Window) bool { return w.IsOpen(now) })
}

// nextWindow returns when the next window opens; zero if it has none.
func (b *budget) nextWindow(now time.Time) time.Time {
	var next time.Time
	for _, w := range b.windows {
		if at := w.Next(now); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// limit returns the number that a value stands for: a percentage of all rounds down, to at least 1,
// but 0% is 0. Without a value there is no limit.
func limit(value *intstr.IntOrString, all int) int {
	if value == nil {
		return unlimited
	}
	scaled, err := intstr.GetScaledValueFromIntOrPercent(value, all, false)
	if err != nil {
		return 0 // The API server refuses it.
	}
	if percent, err := intstr.GetScaledValueFromIntOrPercent(value, 100, false); err == nil && scaled == 0 && percent > 0 {
		return 1
	}
	return scaled
}

// unlimited is more than there are nodes.
const unlimited = 1 << 30

// isLost reports whether the node is down, and not because of a maintenance: none of those that have begun with it has
// drained it before. An outage may last until nodes are admitted that it has taken down, and spread. If only targets
// say that something has begun, it is a shutdown.
func isLost(node *v1.Node) bool {
	if maintenance.IsReady(node) {
		return false
	}
	begun, since := false, downSince(node)
	for _, a := range maintenance.Admissions(node) {
		if a.DoneTime != nil {
			continue
		}
		if a.DrainedTime != nil && since.After(a.DrainedTime.Time) {
			return false
		}
		begun = true
	}
	return begun || !maintenance.IsTaken(node)
}
