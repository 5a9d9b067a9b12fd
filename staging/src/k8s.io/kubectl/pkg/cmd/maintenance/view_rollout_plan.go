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
	"maps"
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
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// rolloutPlan says in which batches nodes would be drained. The controller begins with a node as soon
// as another one is given back, so batches are what happens if all nodes take the same time.
//
// The limits are those of pkg/controller/nodemaintenance/rollout (fleet.go, decide.go), which kubectl
// cannot import: what changes there has to change here, with a case in TestBatches.
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

	// batches has the batch of each node, from 0.
	batches map[string]int
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
	return filtered(nodes, func(node *corev1.Node) bool {
		admission := maintenance.AdmissionOf(node, nm.UID)
		switch {
		case nm.UID == "" || admission == nil:
		case admission.DoneTime != nil:
			p.Done++
			return false
		case admission.FailedTime != nil:
			p.Failed++
			return false
		}
		return true
	})
}

// planRollout plans the batches of the nodes, and returns the nodes that are drained in them.
func (s *podSnapshot) planRollout(nm *coordinationv1alpha1.NodeMaintenance, nodes []*corev1.Node, now time.Time) []*corev1.Node {
	p := &rolloutPlan{Batches: [][]string{}, Budgets: []nodeBudgetPlan{}, BudgetsNotServed: s.budgetsNotServed, Halted: isHalted(nm), batches: map[string]int{}}
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
			p.batches[name] = i
		}
	}
	p.Pace = paceOf(s.nodes, nm.UID, now)
	s.rollout = p
	return remaining
}

// batchOf returns the number of the batch with which a node is drained; 0 if all are drained at the same time.
func (p *rolloutPlan) batchOf(node string) int {
	if p == nil {
		return 0
	}
	return p.batches[node]
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
	// young is when it was created, if that was after the maintenance: such nodes come last, the oldest of them first.
	young time.Time
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
		for _, node := range filtered(s.nodes, matcher.Matches) {
			b.all++
			b.count(newNodeForecast(node), 1)
		}
		f.budgets = append(f.budgets, b)
	}
	return f
}

// sharedWindows returns the names of budgets with different windows that select the same node.
func (f *forecast) sharedWindows(nodes []*corev1.Node) []string {
	shared := sets.New[string]()
	for _, node := range nodes {
		windowed := filtered(f.budgets, func(b *budgetForecast) bool { return len(b.Spec.Windows) > 0 && b.matcher.Matches(node) })
		if slices.ContainsFunc(windowed, func(b *budgetForecast) bool {
			return !apiequality.Semantic.DeepEqual(b.Spec.Windows, windowed[0].Spec.Windows)
		}) {
			shared.Insert(namesOf(windowed)...)
		}
	}
	return sets.List(shared)
}

// count adds a node that is unavailable or taken, or removes it.
func (b *budgetForecast) count(node *nodeForecast, by int) {
	if node.unavailable || node.taken {
		b.unavailable += by
	}
	if node.disrupted || node.taken {
		b.disrupted += by
	}
	if domain := b.domainOf(node.Node); node.taken {
		if b.taken[domain] += by; b.taken[domain] == 0 {
			delete(b.taken, domain)
		}
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
	p := nodeBudgetPlan{Name: b.Name, Nodes: len(filtered(nodes, b.matcher.Matches)), MaxUnavailable: b.max(), Unavailable: b.unavailable, NextWindowTime: b.Status.NextWindowTime}
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
	for batch = f.fill(batch); len(batch) > 0; batch = f.fill(nil) {
		batches = append(batches, namesOf(batch))
		for _, node := range batch {
			node.release()
		}
	}
	return batches, f.stuck()
}

// sort sorts the nodes as the controller does, and returns those with which it has begun.
func (f *forecast) sort(nodes []*corev1.Node) (begun []*nodeForecast) {
	for _, object := range nodes {
		node := newNodeForecast(object)
		node.order = maintenance.NodeOrder(object.Name, f.nodes)
		if !f.created.IsZero() && object.CreationTimestamp.After(f.created.Time) {
			node.young = object.CreationTimestamp.Time
		}
		node.budgets = filtered(f.budgets, func(b *budgetForecast) bool { return b.matcher.Matches(object) })
		for _, b := range node.budgets {
			if b.Spec.Topology != nil {
				node.domains = append(node.domains, b.domainOf(object))
			}
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
		return cmp.Or(a.young.Compare(b.young), inactive[a]-inactive[b])
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
		b.count(n, -1)
	}
	n.taken = true
	for _, b := range n.budgets {
		b.count(n, 1)
	}
}

// release counts a node that is given back. It is available then, also if it was not before.
func (n *nodeForecast) release() {
	for _, b := range n.budgets {
		b.count(n, -1)
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

// capacityHint says whether the pods of a batch find a place on the nodes that stay schedulable. It is
// a hint: it puts each pod, the largest first, on the first node where it fits by requests, node
// selector, required node affinity and tolerations. It knows neither volumes, nor affinity between
// pods, spreading, preemption and autoscalers.
type capacityHint struct {
	// Batch is the number of the batch with the most pods that need another node, from 1.
	Batch int `json:"batch"`
	Nodes int `json:"nodes"`
	Pods  int `json:"pods"`
	// SchedulableNodes is how many other nodes are Ready and schedulable.
	SchedulableNodes int `json:"schedulableNodes"`
	// Unplaced are the pods without a place.
	Unplaced []unplacedPod `json:"unplaced"`
}

// unplacedPod is a pod without a place.
type unplacedPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Lacks are the resources of which no node that the pod may run on has enough left. Empty if there
	// is no such node, or if each resource is left somewhere.
	Lacks []corev1.ResourceName `json:"lacks,omitempty"`
	// NoNode is true if there is no node on which the pod may run, however much is left there.
	NoNode bool `json:"noNode,omitempty"`
}

// addCapacity adds the hint for the batch with the most pods, unless no pod needs another node.
func (p *rolloutPlan) addCapacity(s *podSnapshot) {
	hint := &capacityHint{Unplaced: []unplacedPod{}}
	var pods []*corev1.Pod
	for i, batch := range p.Batches {
		if moving := s.podsToMove(batch); len(moving) > len(pods) {
			hint.Batch, hint.Nodes, pods = i+1, len(batch), moving
		}
	}
	if len(pods) == 0 {
		return
	}
	var places []freePlace
	for _, node := range s.schedulable(sets.New(p.Batches[hint.Batch-1]...)) {
		left := amountsOf(node.Status.Allocatable)
		for name, amount := range s.used[node.Name] {
			left[name] -= amount
		}
		places = append(places, freePlace{node, left})
	}
	hint.Pods, hint.SchedulableNodes = len(pods), len(places)
	hint.placeAll(largestFirst(pods), places)
	p.Capacity = hint
}

// placeAll puts pods on nodes. A pod with the same controller and requests as one that has found no
// place is not tried: only less is left. A full cluster has many of them.
func (h *capacityHint) placeAll(pods []requestingPod, places []freePlace) {
	type failure struct {
		requests amounts
		why      *unplacedPod
	}
	failures := map[types.UID]failure{}
	for _, pod := range pods {
		var controller types.UID
		if owner := metav1.GetControllerOf(pod.Pod); owner != nil {
			controller = owner.UID
		}
		known, found := failures[controller]
		if !found || controller == "" || !maps.Equal(known.requests, pod.requests) {
			known = failure{pod.requests, place(pod, places)}
		}
		if known.why == nil {
			continue
		}
		failures[controller] = known
		h.Unplaced = append(h.Unplaced, unplacedPod{pod.Namespace, pod.Name, known.why.Lacks, known.why.NoNode})
	}
}

// podsToMove returns the pods of nodes that are created again elsewhere.
func (s *podSnapshot) podsToMove(nodes []string) []*corev1.Pod {
	pods := slices.Concat(mapped(nodes, func(node string) []*corev1.Pod { return s.pods[node] })...)
	return filtered(pods, func(pod *corev1.Pod) bool {
		return s.kept[pod] == nil && maintenance.IsLeft(pod) && maintenance.PodTypeOf(pod) == corev1.PodTypeDefault && metav1.GetControllerOf(pod) != nil
	})
}

// freePlace is a node with what is left there.
type freePlace struct {
	*corev1.Node
	left amounts
}

// schedulable returns the nodes that are Ready and schedulable while some are drained.
func (s *podSnapshot) schedulable(drained sets.Set[string]) []*corev1.Node {
	return filtered(s.nodes, func(node *corev1.Node) bool { return !drained.Has(node.Name) && maintenance.IsAvailable(node) })
}

// largestFirst sorts pods by their requests: small ones find a place between large ones.
func largestFirst(pods []*corev1.Pod) []requestingPod {
	sorted := mapped(pods, func(pod *corev1.Pod) requestingPod {
		return requestingPod{pod, requestsOf(pod), nodeaffinity.GetRequiredNodeAffinity(pod)}
	})
	slices.SortStableFunc(sorted, func(a, b requestingPod) int {
		return cmp.Or(cmp.Compare(b.requests[corev1.ResourceCPU], a.requests[corev1.ResourceCPU]), cmp.Compare(b.requests[corev1.ResourceMemory], a.requests[corev1.ResourceMemory]))
	})
	return sorted
}

type requestingPod struct {
	*corev1.Pod
	requests amounts
	affinity nodeaffinity.RequiredNodeAffinity
}

// place puts a pod on the first node where it fits. It returns why there is none, without the name of
// the pod, or nil.
func place(pod requestingPod, places []freePlace) *unplacedPod {
	for i := range places {
		if len(pod.lacking(places[i].left)) > 0 || !mayRunOn(pod, places[i].Node) {
			continue
		}
		for name, amount := range pod.requests {
			places[i].left[name] -= amount
		}
		return nil
	}
	return whyUnplaced(pod, places)
}

// lacking returns the resources of which not enough is left for the pod.
func (p *requestingPod) lacking(left amounts) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name, amount := range p.requests {
		if amount > 0 && left[name] < amount {
			names = append(names, name)
		}
	}
	return names
}

func whyUnplaced(pod requestingPod, places []freePlace) *unplacedPod {
	unplaced := &unplacedPod{NoNode: true}
	lacks := sets.KeySet(pod.requests)
	for i := range places {
		if mayRunOn(pod, places[i].Node) {
			unplaced.NoNode = false
			lacks = lacks.Intersection(sets.New(pod.lacking(places[i].left)...))
		}
	}
	if !unplaced.NoNode && lacks.Len() > 0 {
		unplaced.Lacks = sets.List(lacks)
	}
	return unplaced
}

// mayRunOn reports whether the pod may run on the node, whatever is left there.
func mayRunOn(pod requestingPod, node *corev1.Node) bool {
	matches, err := pod.affinity.Match(node)
	if err != nil || !matches {
		return false
	}
	_, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations, func(taint *corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
	}, true)
	return !untolerated
}
