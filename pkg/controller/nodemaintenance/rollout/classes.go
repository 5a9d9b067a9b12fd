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
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// class are nodes that only their names tell apart: a maintenance may begin with each of them, or all wait for
// the same. So a decision costs as much as there are classes and budgets, and each node is only counted for
// each maintenance that it waits for. A node that is reserved, or whose last admission was refused, is a class
// of its own.
type class struct {
	// verdicts are what budgets say about those that are not young, and about those that are.
	verdicts [2]verdict
	// counted is the maintenance for which left counts the nodes that are not decided on, in each part, and
	// next has the rank of one of them.
	counted    *maintenanceState
	left, next [2]int
}

// The two parts of a class for a maintenance: nodes that are younger than it come last.
const (
	notYoung = iota
	young
)

// verdict is what budgets say about a class, to any maintenance.
type verdict struct {
	// known is how many changes of the round it knows.
	known int
	// waits are what the nodes wait for, of which worst is shown; none if the budgets allow it.
	waits []Wait
	worst Wait
	// isDomain is whether they wait only for another domain, and isHeld whether younger maintenances are kept
	// from taking it.
	isDomain, isHeld bool
	// behind is whether the cache of nodes is behind a budget, and lasting whether it has been so for long.
	behind, lasting bool
	// failed is the first budget whose status cannot be written; nil if there is none.
	failed *budget
}

// classKey is what tells classes apart.
type classKey struct {
	*place
	nodeState
	// fresh is whether it has not been down for long.
	fresh bool
}

// classify determines the classes of all nodes.
func (r *round) classify() {
	r.rankNodes()
	r.classes, r.created, r.slots = make([]*class, len(r.order)), make([]int64, len(r.order)), make([]int, len(r.order))
	own, shared := r.ownClasses(), map[classKey]*class{}
	for rank, n := range r.order {
		r.created[rank], r.slots[rank] = n.CreationTimestamp.Unix(), n.slot
		key := classKey{n.place, n.nodeState, n.down && n.untilDead(r.now) > 0}
		switch {
		case own.Has(n.Name):
			r.classes[rank] = newClass()
			continue
		case shared[key] == nil:
			shared[key] = newClass()
		}
		r.classes[rank] = shared[key]
	}
}

// ownClasses returns the names of the nodes that are a class of their own.
func (r *round) ownClasses() sets.Set[string] {
	own := r.tried()
	for _, reserved := range r.reserved {
		for name := range reserved {
			own.Insert(name)
		}
	}
	return own
}

// separate makes a node that is taken a class of its own.
func (r *round) separate(n *node) { r.classes[n.rank] = newClass() }

func newClass() *class { return &class{verdicts: [2]verdict{{known: -1}, {known: -1}}} }

// verdictOf returns what the budgets say about a part of a class.
func (r *round) verdictOf(c *class, part int) *verdict {
	v := &c.verdicts[part]
	if v.known == r.changes {
		return v
	}
	n, waits := r.order[c.next[part]], v.waits[:0]
	*v = verdict{known: r.changes}
	if n.removed {
		waits = append(waits, Wait{Reason: coordinationv1alpha1.NodeMaintenanceWaitBeingRemoved})
	}
	for _, b := range n.budgets {
		if wait, refused := r.refusal(b, n, nil, part == young); refused {
			waits = append(waits, wait)
		}
		lasting, behind := r.behind[b.UID]
		v.behind, v.lasting = v.behind || behind, v.lasting || lasting
		if v.failed == nil && r.unwritable.Has(b.UID) {
			v.failed = b
		}
	}
	if v.waits = r.meet(n, waits); len(v.waits) > 0 {
		v.worst, v.isDomain = worst(v.waits), areForDomains(v.waits)
	}
	return v
}

// waitOf returns what a part of a class waits for, like check does for a single node that is not reserved.
func (r *round) waitOf(m *maintenanceState, c *class, part int) (wait Wait, refused bool) {
	v := r.verdictOf(c, part)
	own := slices.Clone(m.stopped)
	if m.Spec.Rollout != nil && m.slots <= 0 {
		own = append(own, Wait{Reason: coordinationv1alpha1.NodeMaintenanceWaitConcurrency})
	}
	lasting, behind := r.behind[m.UID]
	switch {
	case behind || v.behind:
		own = append(own, behindWait(lasting || v.lasting))
	case v.failed != nil, m.Spec.Rollout != nil && r.unwritable.Has(m.UID):
		own = append(own, failedWait(v.failed))
	}
	switch {
	case len(own) > 0 && len(v.waits) > 0:
		return worst(append(own, v.worst)), true
	case len(own) > 0:
		return worst(own), true
	case v.isDomain && !v.isHeld:
		r.hold(v.waits)
		v.isHeld = true
	}
	return v.worst, len(v.waits) > 0
}

// countClasses returns the classes of the nodes that wait for the maintenance, without those that are decided
// on one by one.
func (r *round) countClasses(m *maintenanceState) (found []*class) {
	waits := slices.Clone(m.waits)
	m.counted = waits
	if admitted := r.Fleet.admitted[m.UID]; admitted != nil {
		waits.remove(admitted.nodes) // The progress of the maintenance is behind the cache.
	}
	for name := range m.reserved {
		waits.set(r.slotOf(name), false)
	}
	for name := range r.tried() {
		waits.set(r.slotOf(name), false)
	}
	created := m.CreationTimestamp.Unix()
	for rank, slot := range r.slots {
		if !waits.has(slot) {
			continue
		}
		c := r.classes[rank]
		if c.counted != m {
			c.counted, c.left = m, [2]int{}
			found = append(found, c)
		}
		part := notYoung
		if r.created[rank] > created {
			part = young
		}
		c.left[part]++
		c.next[part] = rank
	}
	return found
}

// decideClasses decides on the nodes that nothing is known about but what their classes have in common.
func (r *round) decideClasses(m *maintenanceState, decision *Decision) {
	classes := r.countClasses(m)
	for _, part := range []int{notYoung, young} {
		open := 0
		for _, c := range classes {
			if c.left[part] > 0 && !r.close(m, c, part, decision) {
				open++
			}
		}
		if open > 0 {
			r.admitClasses(m, part, open, decision)
		}
	}
}

// close reports whether the maintenance begins with no more nodes of a part of a class, and counts what they
// wait for. If the decision is full, they wait for nothing but the next one.
func (r *round) close(m *maintenanceState, c *class, part int, decision *Decision) bool {
	if wait, refused := r.waitOf(m, c, part); refused {
		decision.Waits[m.Name][wait] += c.left[part]
		c.left[part] = 0
		return true
	}
	if r.admitted == maxBatch && (m.Spec.Rollout != nil || len(r.order[c.next[part]].budgets) > 0) {
		c.left[part] = 0
		return true
	}
	return false
}

// candidate is a node with which a maintenance may begin.
type candidate struct {
	rank int
	// young is whether it is younger than the maintenance, and created when it was created, if it is young.
	young   bool
	created int64
	// inactive is how many of its domains have no node that is taken.
	inactive int
}

// candidateOf returns the node of that rank as a candidate.
func (r *round) candidateOf(m *maintenanceState, rank int) candidate {
	c := candidate{rank: rank, inactive: r.inactive(r.order[rank].place)}
	if created := r.created[rank]; created > m.CreationTimestamp.Unix() {
		c.young, c.created = true, created
	}
	return c
}

// inactive returns how many domains have no node that is taken.
func (r *round) inactive(p *place) (count int) {
	for _, d := range p.domains {
		if r.states[d.of].taken[d.name] == 0 {
			count++
		}
	}
	return count
}

// compare orders candidates. Last are those that are younger than the maintenance, because a machine may have
// been replaced by it and come back under its name; of these, the one that has been back the longest is first.
// Of the others, those in domains with nodes that are taken are first, then domain by domain; within each, as
// maintenance.NodeOrder says. If a node has several budgets with domains, fewer domains that are new come first,
// and those of the first budget by name change last.
func (a candidate) compare(b candidate) int {
	return cmp.Or(compareFlags(b.young, a.young), cmp.Compare(a.created, b.created), a.inactive-b.inactive, a.rank-b.rank)
}

// admitClasses begins with nodes of classes, of which so many are open.
func (r *round) admitClasses(m *maintenanceState, part, open int, decision *Decision) {
	var candidates []candidate
	inactive := map[*place]int{}
	for rank, c := range r.classes {
		isYoung := r.created[rank] > m.CreationTimestamp.Unix()
		if c.counted != m || c.left[part] == 0 || isYoung != (part == young) || !m.counted.has(r.slots[rank]) {
			continue
		}
		found := candidate{rank: rank}
		p, known := r.order[rank].place, false
		if found.inactive, known = inactive[p]; !known {
			found.inactive = r.inactive(p)
			inactive[p] = found.inactive
		}
		if isYoung {
			found.young, found.created = true, r.created[rank]
		}
		candidates = append(candidates, found)
	}
	slices.SortFunc(candidates, candidate.compare)
	for _, found := range candidates {
		n, c := r.order[found.rank], r.classes[found.rank]
		if c.left[part] == 0 {
			continue
		}
		c.next[part] = found.rank
		if r.close(m, c, part, decision) {
			if open--; open == 0 {
				return
			}
			continue
		}
		c.left[part]--
		admission, _ := r.check(m, n)
		r.admit(m, n, admission, decision)
	}
}
