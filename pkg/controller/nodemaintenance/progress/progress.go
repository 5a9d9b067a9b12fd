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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/rollout"
)

// maintenanceProgress is how far one maintenance is. It follows from the caches and from the
// status of the object. Its methods use neither clients nor locks: see Store.
//
// Three sums are kept up to date with each node, because the decision on a node needs them, and
// must not cost more because a maintenance has more nodes: unknown, remaining and position. All
// other sums are computed where they are published: see summarize.
type maintenanceProgress struct {
	Spec
	// position is the entry of the plan that is being executed. It never decreases.
	position int
	// nodes has what was found on each selected node; nil until that has happened.
	nodes map[string]*nodeProgress
	// unknown counts the nil values in nodes. While there are some, nothing is decided.
	unknown int
	// remaining counts, for each entry of the plan, the pods that are left on all nodes. The
	// last count is of pods that match no entry.
	remaining []int
	// WaitingOn names the maintenances that keep this one from advancing, sorted: see waitsFor.
	// It is as old as the last summary, or newer.
	waitingOn []string
	// unreleased are the nodes that still have to be released: in the stage Complete all that
	// were not released yet, and in Cordon and Drain those that were deselected. They need not
	// exist.
	unreleased map[string]*nodeRelease
	// revision is that of the store when this spec was observed.
	revision int
	// measured are the pod types whose drain duration is in the metrics.
	measured sets.Set[v1.PodType]
	// waiting are the selected nodes that wait for their admission, and done those that were given
	// back. Neither are among nodes.
	waiting, done sets.Set[string]
	// waitingNames are those of waiting; nil until they are listed. See listWaiting.
	waitingNames []string
	// skipped are those of done that were given back before they were drained.
	skipped sets.Set[string]
	// failed are the nodes that have not come back in time, with their UIDs.
	failed map[string]types.UID
	// waits counts the waiting nodes by what they wait for, as of the last decision on admissions.
	waits map[rollout.Wait]int
	// EndlessSince is since when nodes have always waited for what only an intervention ends; zero if none does.
	endlessSince time.Time
	// resumeUntil is until when it is waited for writes to fail again that have failed before the process began.
	resumeUntil time.Time
}

// nodeProgress is what one node contributes to one maintenance.
type nodeProgress struct {
	Decision
	// remaining counts the pods that are left, like that of the maintenance, but for those that the
	// policies of other maintenances keep. These are in kept.
	remaining []int
	kept      int
	// skipped is whether the node was completed before it was drained.
	skipped bool
	// decided is whether Decision was recorded.
	decided bool
	// joined is whether the node was selected while this controller ran, and its first decision was
	// not recorded yet.
	joined bool
}

// Decision is what was decided on a node for one maintenance.
type Decision struct {
	// Targets are the drain targets of the node, for all maintenances.
	Targets maintenance.Targets
	// LimitedBy names the maintenances that limit this one on the node, and LimitedByOlder those
	// of them that are older.
	LimitedBy, LimitedByOlder []string
	// Pending counts the pods without an unfinished request, Active those with one, and Blocked those that need an
	// intervention.
	Pending, Active, Blocked int
	// Draining is whether a pod within the targets is left, and Cordoned whether the API server
	// has the node as unschedulable.
	Draining, Cordoned bool
	// Detaching is whether a node without pods waits for its volumes.
	Detaching bool
	// Settling is whether it waits for pods that may come back.
	Settling bool
	// Staying counts the pods that stay, because policies skip them or nobody stops them.
	Staying int
	// Unstopped counts those of Staying that nobody stops.
	Unstopped map[Unstopped]int
	// Escalated counts the pods that are left although an escalation has acted on them.
	Escalated int
	// Blockers are what delays the drain of the node, with the pods that it delays.
	Blockers []maintenance.BlockerGroup
}

// nodeRelease is a node that a maintenance still has to release.
type nodeRelease struct {
	// blockers are what delays it; nil until the node has been reconciled.
	blockers []maintenance.BlockerGroup
	// cordoned is whether the node may still be unschedulable because of the maintenance,
	// although the status of the node does not say so.
	cordoned bool
}

func newMaintenanceProgress(wanted Spec, storedPosition int) *maintenanceProgress {
	return &maintenanceProgress{
		Spec:       wanted,
		position:   min(storedPosition, max(wanted.Plan.Len()-1, 0)),
		nodes:      map[string]*nodeProgress{},
		remaining:  make([]int, wanted.Plan.Len()+1),
		unreleased: map[string]*nodeRelease{},
		measured:   sets.New[v1.PodType](),
		waiting:    sets.New[string](),
		done:       sets.New[string](),
		skipped:    sets.New[string](),
		failed:     map[string]types.UID{},
	}
}

// selectNodes adds the nodes that the spec selects. known is the progress of the same
// maintenance with an earlier spec, or nil. limits say which of them need an admission.
func (p *maintenanceProgress) selectNodes(nodes []*v1.Node, known *maintenanceProgress, limits *Limits) {
	for _, node := range nodes {
		if !p.Selector.Matches(node) {
			continue
		}
		switch limits.PhaseOn(&p.Spec, node) {
		case PhaseWaiting:
			p.waiting.Insert(node.Name)
			continue
		case PhaseDone:
			p.done.Insert(node.Name)
			if isSkipped(&p.Spec, node) {
				p.skipped.Insert(node.Name)
			}
			continue
		}
		p.nodes[node.Name] = nil
		p.unknown++
		if p.completes() {
			p.unreleased[node.Name] = &nodeRelease{cordoned: p.mayHaveCordoned(known, node, limits.Selects(node))}
		}
	}
}

// mayHaveCordoned reports whether a node of a maintenance in Complete may be unschedulable because
// of it. A node that was released before, by this process or an earlier one, is not: whoever
// cordoned it since is another client. Neither is one that has waited for its admission. limited is
// whether a budget selects the node.
func (p *maintenanceProgress) mayHaveCordoned(known *maintenanceProgress, node *v1.Node, limited bool) bool {
	admitted := maintenance.AdmissionOf(node, p.UID)
	switch {
	case admitted != nil && admitted.DoneTime != nil:
		return false
	case known != nil && known.completes():
		return known.cordoned(node.Name)
	case known != nil && (known.waiting.Has(node.Name) || known.done.Has(node.Name)):
		return false
	case known == nil && p.drained && (p.Rollout != nil || limited):
		// An admission is stored before the cordon, but for that of the stage Cordon.
		if admitted == nil {
			return false
		}
	}
	return !p.completed
}

// takeOver continues the progress of the same maintenance with an earlier spec. If it is to
// release nodes, it also has to release those that the earlier spec selected.
func (p *maintenanceProgress) takeOver(known *maintenanceProgress) {
	p.position = max(p.position, known.position)
	p.measured = known.measured
	p.finalizerFailed = known.finalizerFailed && p.AwaitsFinalizer()
	p.waits, p.endlessSince = known.waits, known.endlessSince
	p.failedBefore, p.resumeUntil = known.failedBefore, known.resumeUntil
	switch {
	case p.CordonedUntil != nil:
	case known.Claims() && known.Stage == coordinationv1alpha1.NodeMaintenanceStageCordon:
		p.CordonedUntil = &unended // The status does not say so yet: its write may have failed.
	default:
		p.CordonedUntil = known.CordonedUntil
	}
	if !p.Claims() && !p.completes() {
		return
	}
	for node := range known.all() {
		if _, selected := p.nodes[node]; selected {
			continue
		}
		if release := known.unreleased[node]; release != nil {
			p.unreleased[node] = release
		} else if known.Claims() {
			p.unreleased[node] = &nodeRelease{}
		}
	}
}

// all returns the nodes that are selected, and those that have to be released.
func (p *maintenanceProgress) all() sets.Set[string] {
	return sets.KeySet(p.nodes).Union(sets.KeySet(p.unreleased)).Union(p.waiting).Union(p.done)
}

// has reports whether the node is among all.
func (p *maintenanceProgress) has(node string) bool {
	_, selected := p.nodes[node]
	return selected || p.unreleased[node] != nil || p.waiting.Has(node) || p.done.Has(node)
}

// setPhase moves a node to those that wait or are done, or back from there. skipped is whether a node that is
// done was not drained. It reports whether the remaining nodes of the maintenance have to be reconciled because
// of it.
func (p *maintenanceProgress) setPhase(node string, phase Phase, skipped bool) (advanced bool) {
	p.setWaiting(node, phase == PhaseWaiting)
	p.done.Delete(node)
	p.skipped.Delete(node)
	switch phase {
	case PhaseWaiting:
	case PhaseDone:
		p.done.Insert(node)
		if skipped {
			p.skipped.Insert(node)
		}
	default:
		return false
	}
	delete(p.failed, node)
	return p.leave(node)
}

// leave removes a node that is not worked on any more, or did not begin. It reports whether the remaining nodes
// of the maintenance have to be reconciled because of it.
func (p *maintenanceProgress) leave(node string) bool {
	if _, selected := p.nodes[node]; selected {
		return p.remove(node)
	}
	return p.advance(false) // It may have been the last one that waited.
}

// setWaiting adds a node to those that wait, or removes it.
func (p *maintenanceProgress) setWaiting(node string, waits bool) {
	if p.waiting.Has(node) == waits {
		return
	}
	if waits {
		p.waiting.Insert(node)
	} else {
		p.waiting.Delete(node)
	}
	if p.waiting.Len() == 0 {
		p.waits, p.endlessSince = map[rollout.Wait]int{}, time.Time{}
	}
	p.waitingNames = nil
}

// listWaiting lists the nodes that wait: in the same slice as before, which nobody changes, as long as they
// are the same. Each decision on admissions asks that of hundreds of maintenances of thousands of nodes.
func (p *maintenanceProgress) listWaiting() []string {
	if p.waitingNames == nil {
		p.waitingNames = p.waiting.UnsortedList()
	}
	return p.waitingNames
}

// selected returns the names of the nodes that are worked on, sorted.
func (p *maintenanceProgress) selected() []string { return slices.Sorted(maps.Keys(p.nodes)) }

// cordoned reports whether the node may be unschedulable because of this maintenance, which still
// has to release it.
func (p *maintenanceProgress) cordoned(node string) bool {
	release := p.unreleased[node]
	return release != nil && release.cordoned
}

// isReady reports whether the pods on all nodes are counted.
func (p *maintenanceProgress) isReady() bool { return p.unknown == 0 }

// setRemaining replaces the counts of the pods that are left on a node. It reports whether all
// nodes of the maintenance have to be reconciled because of it.
func (p *maintenanceProgress) setRemaining(node string, remaining []int, kept int) bool {
	found, selected := p.nodes[node]
	complete := false
	switch {
	case found != nil:
		p.add(found.remaining, -1)
		found.remaining, found.kept = remaining, kept
	default:
		// After a restart all nodes are unknown, and none of them is new.
		found = &nodeProgress{remaining: remaining, kept: kept, joined: p.isReady() || !p.begun}
		p.nodes[node] = found
		if selected {
			p.unknown--
			complete = p.isReady()
		}
	}
	p.add(remaining, +1)
	return p.advance(complete)
}

// remove removes a node that is not selected any more. It reports whether the remaining nodes of
// the maintenance have to be reconciled because of it.
func (p *maintenanceProgress) remove(node string) bool {
	found := p.nodes[node]
	delete(p.nodes, node)
	delete(p.failed, node)
	if p.Claims() {
		p.unreleased[node] = &nodeRelease{}
	}
	if found == nil {
		p.unknown--
		return p.advance(p.isReady())
	}
	p.add(found.remaining, -1)
	return p.advance(false)
}

// add adds what is left on a node to the sums, or subtracts it.
func (p *maintenanceProgress) add(remaining []int, sign int) {
	for i, n := range remaining {
		p.remaining[i] += sign * n
	}
}

// advance moves to the first entry of the plan that has pods left on a node. complete is whether the
// last node was just counted. It reports whether one of both changes what is decided on all nodes.
func (p *maintenanceProgress) advance(complete bool) bool {
	changed := complete
	// Without nodes no entry is done: nodes that are selected later begin at this position, and
	// not at the end of the plan.
	// With a rollout, the nodes that wait begin at the start of the plan, each at its own pace.
	if p.isReady() && p.Drains() && len(p.nodes) > 0 && (p.Rollout == nil || p.waiting.Len() == 0) {
		next := nextPosition(p.position, p.remaining)
		changed = changed || next != p.position
		p.position = next
	}
	if changed {
		p.waitingOn = p.waitsFor()
	}
	return changed
}

// waitsFor names the maintenances that keep this one from advancing, sorted. It reads all nodes.
// Therefore it is only called where that costs little in comparison: by advance, before all nodes
// are reconciled, and by summarize.
func (p *maintenanceProgress) waitsFor() []string {
	names := sets.New[string]()
	for _, node := range p.nodes {
		switch {
		case node == nil || !hasPods(node.remaining, p.position):
		case len(node.LimitedBy) > 0:
			names.Insert(node.LimitedBy...)
		default:
			names.Insert(p.Name) // The node is drained for this maintenance.
		}
	}
	return sets.List(names)
}

// hasPods reports whether a pod is left of an entry up to the position.
func hasPods(remaining []int, position int) bool {
	return slices.ContainsFunc(remaining[:min(position+1, len(remaining))], func(n int) bool { return n > 0 })
}

// decide records what was decided on a selected node. It reports whether that is the first
// decision on a node that has joined.
func (p *maintenanceProgress) decide(node string, decision Decision) (joined bool) {
	found := p.nodes[node]
	if found == nil {
		return false
	}
	joined, found.joined = found.joined, false
	found.Decision, found.decided = decision, true
	return joined
}
