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
	"cmp"
	"maps"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/metrics"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/rollout"
	"k8s.io/utils/ptr"
)

// Summary is what the status of a maintenance is computed from.
type Summary struct {
	// Nodes counts the nodes that the maintenance selects.
	Nodes int
	// Left counts pods, and Drained the nodes without them that are unschedulable.
	Left, Drained int
	// Uncordoned counts the nodes that the API server has as schedulable.
	Uncordoned int
	// Pending, Active and Blocked are the sums of those of the nodes: see Decision.
	Pending, Active, Blocked int
	// Ready is whether every node was reconciled; in the stage Complete, every one that was not
	// released.
	Ready bool
	// Position is the entry of the plan that is being executed.
	Position int
	// Resumes is for how long the status has to wait for failures that are to be found again: see resume.
	Resumes time.Duration
	// CordonedFirst is whether the stage Cordon came before the stage Drain.
	CordonedFirst bool
	// Unplanned counts the pods that match no entry of the plan.
	Unplanned int
	// Reached are the least of the drain targets of its nodes.
	Reached maintenance.Targets
	// State is that of all nodes together.
	State DrainState
	// Blockers delay the work on the selected nodes, ReleaseBlockers the release of nodes: in the
	// stage Complete of all nodes, before it of those that were deselected.
	Blockers, ReleaseBlockers []maintenance.BlockerGroup
	// Released is whether the stage Complete has released every node, and Requesting whether requests are
	// still written because of the maintenance.
	Released, Requesting bool
	// Waiting and Done count the nodes that wait for their admission and that were given back; both
	// are among Nodes.
	Waiting, Done int
	// Failed are those that did not come back in time, with their UIDs.
	Failed map[string]types.UID
	// SkippedNodes counts those of Done that were given back before they were drained.
	SkippedNodes int
	// Skipped counts the pods that stay, because policies skip them or nobody stops them. Unstopped has the latter.
	Skipped   int
	Unstopped UnstoppedPods
	// Escalated counts the pods that are left although an escalation has acted on them.
	Escalated int
	// Waits counts the nodes that wait by what they wait for, and EndlessSince is since when some have always waited for
	// what only an intervention ends; zero if none does.
	Waits        map[rollout.Wait]int
	EndlessSince time.Time
}

// summarize computes the sums over all nodes, and updates WaitingOn.
func (p *maintenanceProgress) summarize() Summary {
	p.waitingOn = p.waitsFor()
	sums := Summary{
		Nodes: len(p.nodes) + p.waiting.Len() + p.done.Len(), Waiting: p.waiting.Len(), Done: p.done.Len(), Drained: p.done.Len() - p.skipped.Len(),
		SkippedNodes: p.skipped.Len(),
		Failed:       maps.Clone(p.failed), Waits: p.waits, EndlessSince: p.endlessSince, Ready: true, Unstopped: UnstoppedPods{}, Position: p.position, Unplanned: p.remaining[len(p.remaining)-1],
		Released: p.completes() && len(p.unreleased) == 0, CordonedFirst: p.CordonedUntil != nil,
	}
	targets, limitedBy := map[string]maintenance.Targets{}, sets.New[string]()
	var blockers, releaseBlockers [][]maintenance.BlockerGroup
	for name, node := range p.nodes {
		if node == nil || !node.decided {
			sums.Ready = false
			continue
		}
		sums.add(node)
		sums.Unstopped.add(name, node.Unstopped)
		// Most nodes have the same targets.
		targets[node.Targets.String()] = node.Targets
		limitedBy.Insert(node.LimitedByOlder...)
		blockers = append(blockers, node.Blockers)
	}
	if p.completes() {
		sums.Ready = true
	}
	for _, release := range p.unreleased {
		releaseBlockers = append(releaseBlockers, release.blockers)
		if p.completes() && release.blockers == nil {
			sums.Ready = false
		}
	}
	sums.Reached = maintenance.LeastPowerful(slices.Collect(maps.Values(targets))...)
	sums.Blockers, sums.ReleaseBlockers = maintenance.MergeGroups(blockers...), maintenance.MergeGroups(releaseBlockers...)
	sums.State.Skipped, sums.State.Waiting = sums.SkippedNodes > 0, sums.Waiting > 0
	sums.State.Left, sums.State.Cordoned = sums.Left > 0, sums.Uncordoned+sums.Waiting == 0
	sums.State.LimitedBy = sets.List(limitedBy)
	// What delays the drain of its own nodes is among the blockers.
	sums.State.WaitingFor = slices.DeleteFunc(slices.Clone(p.waitingOn), func(other string) bool { return other == p.Name })
	return sums
}

// add adds what a node contributes.
func (s *Summary) add(node *nodeProgress) {
	left := node.kept
	for _, n := range node.remaining {
		left += n
	}
	s.Left += left
	s.Pending += node.Pending
	s.Active += node.Active
	s.Blocked += node.Blocked
	s.Skipped += node.Staying
	s.Escalated += node.Escalated
	s.State.Draining = s.State.Draining || node.Draining
	s.State.Detaching = s.State.Detaching || node.Detaching
	s.State.Settling = s.State.Settling || node.Settling
	switch {
	case node.skipped:
		s.SkippedNodes++
	case !node.Cordoned:
		s.Uncordoned++
	case left == 0 && !node.Detaching && !node.Settling:
		s.Drained++
	}
}

// stageOrder ranks the stages by how much they do to a node.
var stageOrder = []coordinationv1alpha1.NodeMaintenanceStage{
	coordinationv1alpha1.NodeMaintenanceStageComplete,
	coordinationv1alpha1.NodeMaintenanceStageIdle,
	coordinationv1alpha1.NodeMaintenanceStageCordon,
	coordinationv1alpha1.NodeMaintenanceStageDrain,
}

// Count counts nodes and pods for the metrics: each once, also if several maintenances select
// them.
func (s *Store) Count(now time.Time) metrics.Counts {
	s.lock.Lock()
	defer s.lock.Unlock()
	stages, drained, blocked := map[string]int{}, map[string]*nodeProgress{}, nodesByCause{}
	oldest, waiting, failed := map[maintenance.BlockerCause]time.Duration{}, map[coordinationv1alpha1.NodeMaintenanceWaitReason]int{}, 0
	for _, p := range s.maintenances {
		for node, release := range p.unreleased {
			blocked.add(node, release.blockers)
			addAges(oldest, release.blockers, now)
		}
		for wait, nodes := range p.waits {
			if p.waiting.Len() > 0 { // What is known may be older.
				listed := ListedWait(wait, nodes)
				waiting[metrics.WaitReason(&listed)] += nodes
			}
		}
		failed += len(p.failed)
		for name, node := range p.nodes {
			stages[name] = max(stages[name], slices.Index(stageOrder, p.Stage))
			if node == nil {
				continue
			}
			blocked.add(name, node.Blockers)
			addAges(oldest, node.Blockers, now)
			// The others do not count pods. What one keeps itself, it does not count either.
			if known := drained[name]; p.Drains() && (known == nil || known.Pending+known.Active < node.Pending+node.Active) {
				drained[name] = node
			}
		}
	}
	counts := metrics.Counts{
		Nodes: map[coordinationv1alpha1.NodeMaintenanceStage]int{}, BlockedPods: map[maintenance.BlockerCause]int{},
		BlockedNodes: map[maintenance.BlockerCause]int{}, OldestBlocker: oldest,
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
		counts.PendingPods += node.Pending
		counts.EvictingPods += node.Active
		for _, group := range node.Blockers {
			if group.Cause.Blocked() && !group.Cause.OfNode() {
				counts.BlockedPods[group.Cause] += group.Pods
			}
			if group.Cause == maintenance.BlockerDisruptionBudget && group.Name != "" { // It may be gone.
				budgets.Insert(group.Name)
			}
		}
	}
	counts.BlockingBudgets = budgets.Len()
	return counts
}

// addAges adds for how long groups that need an intervention have existed, if that is longer than
// what is known of their causes.
func addAges(oldest map[maintenance.BlockerCause]time.Duration, groups []maintenance.BlockerGroup, now time.Time) {
	for _, group := range groups {
		if since := cmp.Or(group.OverdueSince, group.Since); group.Cause.Blocked() && since != nil {
			oldest[group.Cause] = max(oldest[group.Cause], now.Sub(since.Time))
		}
	}
}

// nodesByCause has the nodes that are blocked themselves, as opposed to their pods, by cause.
type nodesByCause map[maintenance.BlockerCause]sets.Set[string]

func (n nodesByCause) add(node string, groups []maintenance.BlockerGroup) {
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

// ListedWait returns a wait of nodes as the API has it.
func ListedWait(wait rollout.Wait, nodes int) coordinationv1alpha1.NodeMaintenanceWait {
	listed := coordinationv1alpha1.NodeMaintenanceWait{Reason: wait.Reason, Budget: wait.Budget, NodeCount: int32(nodes)}
	if !wait.Until.IsZero() {
		listed.UntilTime = ptr.To(metav1.NewTime(wait.Until))
	}
	return listed
}

// IsEndless reports whether only an intervention ends a wait.
func IsEndless(wait rollout.Wait) bool {
	switch wait.Reason {
	case coordinationv1alpha1.NodeMaintenanceWaitDisabled, coordinationv1alpha1.NodeMaintenanceWaitAdmissionFailed,
		coordinationv1alpha1.NodeMaintenanceWaitStatusFailed, coordinationv1alpha1.NodeMaintenanceWaitNotCurrent:
		return true
	case coordinationv1alpha1.NodeMaintenanceWaitWindow:
		return wait.Until.IsZero()
	}
	return false // The others end by themselves, or somebody wants them.
}
