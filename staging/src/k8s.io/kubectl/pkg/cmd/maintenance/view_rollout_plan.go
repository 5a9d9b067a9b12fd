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

package maintenance

import (
	"cmp"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
)

// rolloutPlan says in which batches nodes would be drained. The controller begins with a node as soon
// as another one is given back, so batches are what happens if all nodes take the same time.
type rolloutPlan struct {
	// MaxConcurrent and Paused are those of spec.rollout. Halted is true if so many nodes have failed
	// that no further one is drained.
	MaxConcurrent string `json:"maxConcurrent,omitempty"`
	Paused        bool   `json:"paused,omitempty"`
	Halted        bool   `json:"halted,omitempty"`
	// Batches are the names of the nodes that would be drained at the same time.
	Batches [][]string `json:"batches"`
	// Stuck are nodes that would not be drained as things are.
	Stuck []stuckNodes `json:"stuck,omitempty"`
	// Done and Failed are how many nodes were given back, and did not come back in time. The plan
	// leaves them out.
	Done   int `json:"doneNodes,omitempty"`
	Failed int `json:"failedNodes,omitempty"`
	// Budgets are those that select at least one of the nodes.
	Budgets []nodeBudgetPlan `json:"budgets"`
	// SharedWindows are the names of those of the budgets with different windows that select the same node: they
	// must be open at the same time, which is maybe never.
	SharedWindows []string `json:"sharedWindows,omitempty"`
	// BudgetsNotServed is true if the server has no NodeMaintenanceBudgets.
	BudgetsNotServed bool `json:"budgetsNotServed,omitempty"`
	// Pace is what the nodes took that were given back in the last hour; nil if none was.
	Pace *pace `json:"pace,omitempty"`
	// Capacity says whether the pods of the largest batch find a place.
	Capacity *capacityHint `json:"capacity,omitempty"`

	// batchOf has the batch of each node, from 0.
	batchOf map[string]int
}

// stuckNodes are nodes that wait for the same reason, which does not end by itself.
type stuckNodes struct {
	Reason coordinationv1alpha1.NodeMaintenanceWaitReason `json:"reason"`
	Budget string                                         `json:"budget"`
	Nodes  []string                                       `json:"nodes"`
}

// nodeBudgetPlan is a NodeMaintenanceBudget, and how many of the planned nodes it selects.
type nodeBudgetPlan struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	// MaxUnavailable is how many nodes may be unavailable, and Unavailable how many are.
	MaxUnavailable int `json:"maxUnavailable"`
	Unavailable    int `json:"unavailable"`
	// TopologyKey and MaxDomains are those of spec.topology.
	TopologyKey string `json:"topologyKey,omitempty"`
	MaxDomains  int    `json:"maxDomains,omitempty"`
	// Open and NextWindowTime are set if the budget has windows.
	Open           *bool        `json:"open,omitempty"`
	NextWindowTime *metav1.Time `json:"nextWindowTime,omitempty"`
}

// pace is how long nodes took from their admission until they were given back.
type pace struct {
	Nodes          int   `json:"nodes"`
	AverageSeconds int64 `json:"averageSeconds"`
}

// paceInterval is how long ago nodes count that were given back.
const paceInterval = time.Hour

// remainingNodes returns the nodes that the maintenance has to drain yet, or is draining, and counts
// the others.
func (p *rolloutPlan) remainingNodes(nm *coordinationv1alpha1.NodeMaintenance, nodes []*corev1.Node) []*corev1.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(node *corev1.Node) bool {
		admission := maintenance.AdmissionOf(node, nm.UID)
		switch {
		case nm.UID == "" || admission == nil:
			return false
		case admission.DoneTime != nil:
			p.Done++
			return true
		case admission.FailedTime != nil:
			p.Failed++
			return true
		}
		return false
	})
}

// planRollout plans the batches of the nodes, and returns the nodes that are drained in them.
func (s *podSnapshot) planRollout(nm *coordinationv1alpha1.NodeMaintenance, nodes []*corev1.Node, now time.Time) []*corev1.Node {
	p := &rolloutPlan{Batches: [][]string{}, Budgets: []nodeBudgetPlan{}, BudgetsNotServed: s.budgetsNotServed, Halted: isHalted(nm), batchOf: map[string]int{}}
	slots := len(nodes)
	if rollout := nm.Spec.Rollout; rollout != nil {
		p.Paused = rollout.Paused
		if rollout.MaxConcurrent != nil {
			p.MaxConcurrent, slots = rollout.MaxConcurrent.String(), scaled(rollout.MaxConcurrent, len(nodes))
		}
	}
	remaining := p.remainingNodes(nm, nodes)
	f := newForecast(nm, s, slots)
	for _, b := range f.budgets {
		if planned := b.planOf(remaining); planned.Nodes > 0 {
			p.Budgets = append(p.Budgets, planned)
		}
	}
	p.SharedWindows = f.sharedWindows(remaining)
	p.Batches, p.Stuck = f.run(remaining)
	for i, batch := range p.Batches {
		for _, name := range batch {
			p.batchOf[name] = i
		}
	}
	p.Pace = paceOf(s.nodes, nm.UID, now)
	s.rollout = p
	return remaining
}

// paceOf returns the pace of the last hour: that of the maintenance if it has given back a node, and
// otherwise that of all maintenances.
func paceOf(nodes []*corev1.Node, uid types.UID, now time.Time) *pace {
	var own, all pace
	for _, node := range nodes {
		for _, admission := range maintenance.Admissions(node) {
			if admission.DoneTime == nil || now.Sub(admission.DoneTime.Time) > paceInterval {
				continue
			}
			took := int64(max(0, admission.DoneTime.Sub(admission.AdmittedTime.Time).Seconds()))
			all.Nodes, all.AverageSeconds = all.Nodes+1, all.AverageSeconds+took
			if uid != "" && admission.MaintenanceUID == uid {
				own.Nodes, own.AverageSeconds = own.Nodes+1, own.AverageSeconds+took
			}
		}
	}
	for _, p := range []*pace{&own, &all} {
		if p.Nodes > 0 {
			p.AverageSeconds /= int64(p.Nodes)
			return p
		}
	}
	return nil
}

// duration is how long all batches take at that pace.
func (p *rolloutPlan) duration() time.Duration {
	return time.Duration(len(p.Batches)) * time.Duration(p.Pace.AverageSeconds) * time.Second
}

// scaled returns the number of nodes that a number or a percentage stands for: percentages round
// down, to at least 1, but 0% is 0.
func scaled(value *intstr.IntOrString, nodes int) int {
	if value == nil {
		return 0
	}
	number, err := intstr.GetScaledValueFromIntOrPercent(value, nodes, false)
	if err != nil {
		return 0 // The server refuses it.
	}
	if percent, err := intstr.GetScaledValueFromIntOrPercent(value, 100, false); err == nil && number == 0 && percent > 0 {
		return 1
	}
	return number
}

// forecast simulates the admission of nodes.
type forecast struct {
	// uid and created are those of the maintenance, if it is stored.
	uid     types.UID
	created metav1.Time
	// slots is how many nodes the maintenance may drain at the same time.
	slots int
	// nodes is how many nodes the cluster has.
	nodes   int
	budgets []*budgetForecast
	// waiting are the nodes of later batches, in the order in which the controller begins with them.
	waiting []*nodeForecast
}

// budgetForecast is a budget with the counts of its nodes.
type budgetForecast struct {
	*coordinationv1alpha1.NodeMaintenanceBudget
	matcher *maintenance.NodeMatcher
	// all is how many nodes it selects, unavailable how many of them are unavailable, disrupted how
	// many of those are not only cordoned, and taken, by domain, with how many a maintenance has
	// begun.
	all, unavailable, disrupted int
	taken                       map[string]int
}

// nodeForecast is a node that is planned.
type nodeForecast struct {
	*corev1.Node
	budgets []*budgetForecast
	// domains are those of the budgets that have domains.
	domains []string
	order   uint64
	// unavailable, disrupted, down and taken are whether it counts as such already.
	unavailable, disrupted, down, taken bool
	// young is whether it was created after the maintenance: such nodes come last.
	young bool
}

func newNodeForecast(node *corev1.Node) *nodeForecast {
	return &nodeForecast{
		Node: node, unavailable: !maintenance.IsAvailable(node), disrupted: maintenance.IsDisrupted(node), down: !maintenance.IsReady(node), taken: maintenance.IsTaken(node),
	}
}

func newForecast(nm *coordinationv1alpha1.NodeMaintenance, s *podSnapshot, slots int) *forecast {
	f := &forecast{uid: nm.UID, created: nm.CreationTimestamp, slots: slots, nodes: len(s.nodes)}
	for _, budget := range s.nodeBudgets {
		matcher, err := maintenance.NewNodeMatcher(budget.Spec.NodeSelector)
		if err != nil {
			continue // The server refuses it.
		}
		b := &budgetForecast{NodeMaintenanceBudget: budget, matcher: matcher, taken: map[string]int{}}
		for _, node := range s.nodes {
			if matcher.Matches(node) {
				b.all++
				b.count(newNodeForecast(node))
			}
		}
		f.budgets = append(f.budgets, b)
	}
	return f
}

// sharedWindows returns the names of budgets with different windows that select the same node.
func (f *forecast) sharedWindows(nodes []*corev1.Node) []string {
	shared := sets.New[string]()
	for _, node := range nodes {
		var windowed []*budgetForecast
		for _, b := range f.budgets {
			if len(b.Spec.Windows) > 0 && b.matcher.Matches(node) {
				windowed = append(windowed, b)
			}
		}
		if slices.ContainsFunc(windowed, func(b *budgetForecast) bool {
			return !apiequality.Semantic.DeepEqual(b.Spec.Windows, windowed[0].Spec.Windows)
		}) {
			for _, b := range windowed {
				shared.Insert(b.Name)
			}
		}
	}
	return sets.List(shared)
}

// count adds a node that is unavailable or taken.
func (b *budgetForecast) count(node *nodeForecast) {
	if node.unavailable || node.taken {
		b.unavailable++
	}
	if node.disrupted || node.taken {
		b.disrupted++
	}
	if node.taken {
		b.taken[b.domainOf(node.Node)]++
	}
}

// domainOf returns the domain of a node; empty if the budget has none. A node without the label is a
// domain of its own.
func (b *budgetForecast) domainOf(node *corev1.Node) string {
	if b.Spec.Topology == nil {
		return ""
	}
	if value, found := node.Labels[b.Spec.Topology.Key]; found {
		return value
	}
	return "node/" + node.Name
}

func (b *budgetForecast) max() int { return scaled(b.Spec.MaxUnavailable, b.all) }

// planOf returns what a plan says of the budget as it is now.
func (b *budgetForecast) planOf(nodes []*corev1.Node) nodeBudgetPlan {
	p := nodeBudgetPlan{Name: b.Name, MaxUnavailable: b.max(), Unavailable: b.unavailable, NextWindowTime: b.Status.NextWindowTime}
	for _, node := range nodes {
		if b.matcher.Matches(node) {
			p.Nodes++
		}
	}
	if topology := b.Spec.Topology; topology != nil {
		p.TopologyKey, p.MaxDomains = topology.Key, int(topology.MaxDomains)
	}
	if condition := meta.FindStatusCondition(b.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceBudgetConditionOpen)); condition != nil && len(b.Spec.Windows) > 0 {
		open := condition.Status == metav1.ConditionTrue
		p.Open = &open
	}
	return p
}

// run returns the batches, and the nodes that are in none. Nodes with which the maintenance has begun
// are in the first one.
func (f *forecast) run(nodes []*corev1.Node) (batches [][]string, stuck []stuckNodes) {
	batch := f.sort(nodes)
	batches = [][]string{}
	for {
		batch = f.fill(batch)
		if len(batch) == 0 {
			return batches, f.stuck()
		}
		var names []string
		for _, node := range batch {
			names = append(names, node.Name)
			f.release(node)
		}
		batches, batch = append(batches, names), nil
	}
}

// sort sorts the nodes as the controller does, and returns those with which it has begun.
func (f *forecast) sort(nodes []*corev1.Node) (begun []*nodeForecast) {
	for _, object := range nodes {
		node := newNodeForecast(object)
		node.order = maintenance.NodeOrder(object.Name, f.nodes)
		node.young = !f.created.IsZero() && object.CreationTimestamp.After(f.created.Time)
		for _, b := range f.budgets {
			if !b.matcher.Matches(object) {
				continue
			}
			if b.Spec.Topology != nil {
				node.domains = append(node.domains, b.domainOf(object))
			}
			node.budgets = append(node.budgets, b)
		}
		if f.uid != "" && maintenance.AdmissionOf(object, f.uid) != nil {
			begun = append(begun, node)
		} else {
			f.waiting = append(f.waiting, node)
		}
	}
	slices.SortStableFunc(f.waiting, func(a, b *nodeForecast) int {
		return cmp.Or(slices.Compare(a.domains, b.domains), cmp.Compare(a.order, b.order), cmp.Compare(a.Name, b.Name))
	})
	return begun
}

// fill adds nodes to a batch as long as the limits allow it: first those that begin with the fewest
// domains in which no node is taken.
func (f *forecast) fill(batch []*nodeForecast) []*nodeForecast {
	inactive := map[*nodeForecast]int{}
	for _, node := range f.waiting {
		for _, b := range node.budgets {
			if b.Spec.Topology != nil && b.taken[b.domainOf(node.Node)] == 0 {
				inactive[node]++
			}
		}
	}
	taken := sets.New[*nodeForecast]()
	for _, node := range slices.SortedStableFunc(slices.Values(f.waiting), func(a, b *nodeForecast) int {
		return cmp.Or(a.compareAge(b), inactive[a]-inactive[b])
	}) {
		if len(batch) >= f.slots {
			break
		}
		if node.refusal() == nil {
			node.take()
			taken.Insert(node)
			batch = append(batch, node)
		}
	}
	f.waiting = slices.DeleteFunc(f.waiting, taken.Has)
	return batch
}

// compareAge orders nodes that are younger than the maintenance after all others, the oldest of them first.
func (n *nodeForecast) compareAge(other *nodeForecast) int {
	switch {
	case n.young && other.young:
		return n.CreationTimestamp.Compare(other.CreationTimestamp.Time)
	case n.young:
		return 1
	case other.young:
		return -1
	}
	return 0
}

// refusal returns the first limit that keeps the node from being drained now, or nil.
func (n *nodeForecast) refusal() *stuckNodes {
	if maintenance.IsBeingRemoved(n.Node) {
		return &stuckNodes{Reason: coordinationv1alpha1.NodeMaintenanceWaitBeingRemoved}
	}
	for _, b := range n.budgets {
		switch {
		case scaled(b.Spec.MaxUnavailable, 1) == 0:
			return &stuckNodes{Reason: coordinationv1alpha1.NodeMaintenanceWaitFrozen, Budget: b.Name}
		case b.Spec.Topology != nil && b.domainsWith(b.domainOf(n.Node)) > int(b.Spec.Topology.MaxDomains):
			return &stuckNodes{Reason: coordinationv1alpha1.NodeMaintenanceWaitTopology, Budget: b.Name}
		case n.down || n.taken, n.disrupted && b.unavailable <= b.max():
		case n.unavailable && b.disrupted >= b.max(), !n.unavailable && b.unavailable >= b.max():
			return &stuckNodes{Reason: coordinationv1alpha1.NodeMaintenanceWaitBudget, Budget: b.Name}
		}
	}
	return nil
}

// domainsWith returns how many domains are active together with this one. If there are too many already,
// none gets another node.
func (b *budgetForecast) domainsWith(domain string) int {
	if b.taken[domain] > 0 {
		return len(b.taken)
	}
	return len(b.taken) + 1
}

// take counts a node that is drained.
func (n *nodeForecast) take() {
	for _, b := range n.budgets {
		if !n.unavailable && !n.taken {
			b.unavailable++
		}
		if !n.disrupted && !n.taken {
			b.disrupted++
		}
		if !n.taken {
			b.taken[b.domainOf(n.Node)]++
		}
	}
}

// release counts a node that is given back. It is available then, also if it was not before.
func (f *forecast) release(n *nodeForecast) {
	for _, b := range n.budgets {
		b.unavailable--
		b.disrupted--
		domain := b.domainOf(n.Node)
		if b.taken[domain]--; b.taken[domain] == 0 {
			delete(b.taken, domain)
		}
	}
}

// stuck returns the nodes that are in no batch, by what they wait for.
func (f *forecast) stuck() []stuckNodes {
	var all []stuckNodes
	for _, node := range f.waiting {
		refusal := node.refusal()
		if refusal == nil {
			continue // The maintenance has no slots.
		}
		at := slices.IndexFunc(all, func(s stuckNodes) bool { return s.Reason == refusal.Reason && s.Budget == refusal.Budget })
		if at < 0 {
			all, at = append(all, *refusal), len(all)
		}
		all[at].Nodes = append(all[at].Nodes, node.Name)
	}
	return all
}
