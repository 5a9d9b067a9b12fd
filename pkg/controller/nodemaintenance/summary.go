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
	"cmp"
	"maps"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/metrics"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/rollout"
)

// summary is what the status of a maintenance is computed from.
type summary struct {
	nodes int
	// left counts pods, and drained the nodes without them that are unschedulable.
	left, drained int
	// uncordoned counts the nodes that the API server has as schedulable.
	uncordoned               int
	pending, active, blocked int
	// ready is whether every node was reconciled; in the stage Complete, every one that was not
	// released.
	ready    bool
	position int
	// resumes is for how long the status has to wait for failures that are to be found again: see resume.
	resumes time.Duration
	// cordonedFirst is whether the stage Cordon came before the stage Drain.
	cordonedFirst bool
	// unplanned counts the pods that match no entry of the plan.
	unplanned int
	reached   maintenance.Targets
	state     drainState
	// blockers delay the work on the selected nodes, releaseBlockers the release of nodes: in the
	// stage Complete of all nodes, before it of those that were deselected.
	blockers, releaseBlockers []maintenance.HoldGroup
	// released is whether the stage Complete has released every node, and requesting whether requests are
	// still written because of the maintenance.
	released, requesting bool
	// waiting and done count the nodes that wait for their admission and that were given back; both
	// are among nodes. failed are those that did not come back in time, with their UIDs.
	waiting, done int
	failed        map[string]types.UID
	// skippedNodes counts those of done that were given back before they were drained.
	skippedNodes int
	// skipped counts the pods that stay, because policies skip them or nobody stops them. unstopped has the latter.
	skipped   int
	unstopped unstoppedPods
	// escalated counts the pods that are left although an escalation has acted on them.
	escalated int
	// waits counts the nodes that wait by what they wait for, and endlessSince is since when some have always waited for
	// what only an intervention ends; zero if none does.
	waits        map[rollout.Wait]int
	endlessSince time.Time
}

// summarize computes the sums over all nodes, and updates waitingOn.
func (p *maintenanceProgress) summarize() summary {
	p.waitingOn = p.waitsFor()
	sums := summary{
		nodes: len(p.nodes) + p.waiting.Len() + p.done.Len(), waiting: p.waiting.Len(), done: p.done.Len(), drained: p.done.Len() - p.skipped.Len(),
		skippedNodes: p.skipped.Len(),
		failed:       maps.Clone(p.failed), waits: p.waits, endlessSince: p.endlessSince, ready: true, unstopped: unstoppedPods{}, position: p.position, unplanned: p.remaining[len(p.remaining)-1],
		released: p.completes() && len(p.unreleased) == 0, cordonedFirst: p.cordonedUntil != nil,
	}
	targets, limitedBy := map[string]maintenance.Targets{}, sets.New[string]()
	var blockers, releaseBlockers [][]maintenance.HoldGroup
	for name, node := range p.nodes {
		if node == nil || !node.decided {
			sums.ready = false
			continue
		}
		sums.add(node)
		sums.unstopped.add(name, node.unstopped)
		// Most nodes have the same targets.
		targets[node.targets.String()] = node.targets
		limitedBy.Insert(node.limitedByOlder...)
		blockers = append(blockers, node.blockers)
	}
	if p.completes() {
		sums.ready = true
	}
	for _, release := range p.unreleased {
		releaseBlockers = append(releaseBlockers, release.blockers)
		if p.completes() && release.blockers == nil {
			sums.ready = false
		}
	}
	sums.reached = maintenance.LeastPowerful(slices.Collect(maps.Values(targets))...)
	sums.blockers, sums.releaseBlockers = maintenance.MergeGroups(blockers...), maintenance.MergeGroups(releaseBlockers...)
	sums.state.skipped, sums.state.waiting = sums.skippedNodes > 0, sums.waiting > 0
	sums.state.left, sums.state.cordoned = sums.left > 0, sums.uncordoned+sums.waiting == 0
	sums.state.limitedBy = sets.List(limitedBy)
	// What delays the drain of its own nodes is among the blockers.
	sums.state.waitingFor = slices.DeleteFunc(slices.Clone(p.waitingOn), func(other string) bool { return other == p.name })
	return sums
}

// add adds what a node contributes.
func (s *summary) add(node *nodeProgress) {
	left := node.kept
	for _, n := range node.remaining {
		left += n
	}
	s.left += left
	s.pending += node.pending
	s.active += node.active
	s.blocked += node.blocked
	s.skipped += node.staying
	s.escalated += node.escalated
	s.state.draining = s.state.draining || node.draining
	s.state.detaching = s.state.detaching || node.detaching
	s.state.settling = s.state.settling || node.settling
	switch {
	case node.skipped:
		s.skippedNodes++
	case !node.cordoned:
		s.uncordoned++
	case left == 0 && !node.detaching && !node.settling:
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

// count counts nodes and pods for the metrics: each once, also if several maintenances select
// them.
func (s *progressStore) count(now time.Time) metrics.Counts {
	s.lock.Lock()
	defer s.lock.Unlock()
	stages, drained, blocked := map[string]int{}, map[string]*nodeProgress{}, nodesByCause{}
	oldest, waiting, failed := map[maintenance.HoldCause]time.Duration{}, map[coordinationv1alpha1.NodeMaintenanceWaitReason]int{}, 0
	for _, p := range s.maintenances {
		for node, release := range p.unreleased {
			blocked.add(node, release.blockers)
			addAges(oldest, release.blockers, now)
		}
		for wait, nodes := range p.waits {
			if p.waiting.Len() > 0 { // What is known may be older.
				listed := listedWait(wait, nodes)
				waiting[metrics.WaitReason(&listed)] += nodes
			}
		}
		failed += len(p.failed)
		for name, node := range p.nodes {
			stages[name] = max(stages[name], slices.Index(stageOrder, p.stage))
			if node == nil {
				continue
			}
			blocked.add(name, node.blockers)
			addAges(oldest, node.blockers, now)
			// The others do not count pods. What one keeps itself, it does not count either.
			if known := drained[name]; p.drains() && (known == nil || known.pending+known.active < node.pending+node.active) {
				drained[name] = node
			}
		}
	}
	counts := metrics.Counts{
		Nodes: map[coordinationv1alpha1.NodeMaintenanceStage]int{}, BlockedPods: map[maintenance.HoldCause]int{},
		BlockedNodes: map[maintenance.HoldCause]int{}, OldestBlocker: oldest,
		WaitingNodes: waiting, FailedNodes: failed,
	}
	budgets := sets.New[string]()
	for _, stage := range stages {
		counts.Nodes[stageOrder[stage]]++
	}
	for cause, nodes := range blocked {
		counts.BlockedNodes[cause] = len(nodes)
	}
	for _, node := range drained {
		counts.PendingPods += node.pending
		counts.EvictingPods += node.active
		for _, group := range node.blockers {
			if group.Cause.Blocked() && !group.Cause.OfNode() {
				counts.BlockedPods[group.Cause] += group.Pods
			}
			if group.Cause == maintenance.HoldDisruptionBudget && group.Name != "" { // It may be gone.
				budgets.Insert(group.Name)
			}
		}
	}
	counts.BlockingBudgets = budgets.Len()
	return counts
}

// addAges adds for how long groups that need an intervention have existed, if that is longer than
// what is known of their causes.
func addAges(oldest map[maintenance.HoldCause]time.Duration, groups []maintenance.HoldGroup, now time.Time) {
	for _, group := range groups {
		if since := cmp.Or(group.OverdueSince, group.Since); group.Cause.Blocked() && since != nil {
			oldest[group.Cause] = max(oldest[group.Cause], now.Sub(since.Time))
		}
	}
}

// nodesByCause has the nodes that are blocked themselves, as opposed to their pods, by cause.
type nodesByCause map[maintenance.HoldCause]sets.Set[string]

func (n nodesByCause) add(node string, groups []maintenance.HoldGroup) {
	for _, group := range groups {
		if !group.Cause.OfNode() {
			continue
		}
		if n[group.Cause] == nil {
			n[group.Cause] = sets.New[string]()
		}
		n[group.Cause].Insert(node)
	}
}
