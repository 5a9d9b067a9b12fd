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
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/maintenance"
)

// Participant is a maintenance that drains a node together with others.
type Participant struct {
	// Name is that of the maintenance.
	Name string
	// rank orders participants by age, then by name: the oldest has the least.
	rank string
	// Allowed are the targets that the maintenance allows on this node now.
	Allowed maintenance.Targets
	// shutdown is whether the kubelet of this node wrote the maintenance.
	shutdown bool
}

// limiting returns the participants that keep others from going further. What a kubelet wrote does not: whoever has the
// machine could keep its pods from being moved away with a plan that begins with one that never leaves. Alone, it has
// its own order.
func limiting(participants []Participant) []Participant {
	others := slices.DeleteFunc(slices.Clone(participants), func(p Participant) bool { return p.shutdown })
	if len(others) == 0 {
		return participants
	}
	return others
}

// AwaitsFinalizers reports whether a drain may not start on the node yet, because other
// maintenances that will drain it await their finalizers. Which one goes first must not depend on
// which finalizer is stored first. A drain that has started continues: targets never step back.
func AwaitsFinalizers(node *v1.Node, specs []Spec) bool {
	return StoredTargets(node).IsEmpty() && IsDraining(specs) &&
		slices.ContainsFunc(specs, func(o Spec) bool { return o.DelaysDrains() && !o.IsShutdownOf(node.Name) })
}

// AllowedPosition is the entry of its plan up to which a maintenance drains a node. That is the
// position of the maintenance, except on a node that joined late and has pods of an earlier
// entry: it follows the plan from there.
func AllowedPosition(position int, remaining []int) int {
	for i := range min(position, len(remaining)) {
		if remaining[i] > 0 {
			return i
		}
	}
	return position
}

// nextPosition is the first entry of which a pod is left on a node of a maintenance, and never
// before the current position. If no pod is left, it is the last entry.
func nextPosition(position int, remaining []int) int {
	last := len(remaining) - 2 // The last count is of pods that match no entry.
	for i := range last + 1 {
		if remaining[i] > 0 {
			return max(position, i)
		}
	}
	return max(last, 0)
}

// NodeTargets are the drain targets of a node: the least that one of its participants allows that limit others, and
// at least those that the node had before, which are the floor.
//
// If no pod that is left is within them, the participant with the least progress gets what it
// allows. Plans may contradict each other: each begins with pods that the other one drains later.
// A maintenance also waits for its other nodes. So maintenances could wait for each other in a
// circle. A total order of progress excludes that. The participant with the least progress either
// drains this node, or waits for a node on which it has no more progress than here. If another
// participant has less progress there, the same applies to that one, and so on, until one drains a
// node.
//
// takes reports whether a pod that is left is within targets.
func NodeTargets(participants []Participant, floor maintenance.Targets, takes func(maintenance.Targets) bool) maintenance.Targets {
	allowed := make([]maintenance.Targets, 0, len(participants))
	for _, p := range limiting(participants) {
		allowed = append(allowed, p.Allowed)
	}
	least := maintenance.LeastPowerful(allowed...).RaisedTo(floor)
	if takes(least) {
		return least
	}
	return least.RaisedTo(slices.MinFunc(participants, compareProgress).Allowed)
}

// compareProgress orders participants by their progress on a node: by the last pod type that they
// allow, the highest priority of that type, and the number of entries; then by age. The first
// three only grow with the position of a maintenance.
func compareProgress(a, b Participant) int {
	return cmp.Or(maintenance.CompareProgress(a.Allowed, b.Allowed), strings.Compare(a.rank, b.rank))
}

// LimitedBy names the participants that keep the targets of a node below what p allows there.
func LimitedBy(p Participant, participants []Participant, targets maintenance.Targets) []string {
	if targets.Reaches(p.Allowed) {
		return nil
	}
	var names []string
	for _, other := range limiting(participants) {
		if other.Name != p.Name && !other.Allowed.Reaches(p.Allowed) {
			names = append(names, other.Name)
		}
	}
	return names
}

// OlderThan returns those of the names that are older participants than p. The status of a
// maintenance names only these; that a younger one limits it, the status of the node says.
func OlderThan(p Participant, participants []Participant, names []string) []string {
	var older []string
	for _, other := range participants {
		if other.rank < p.rank && slices.Contains(names, other.Name) {
			older = append(older, other.Name)
		}
	}
	return older
}

// Oldest returns the participant that was created first.
func Oldest(participants []Participant) Participant {
	return slices.MinFunc(participants, func(a, b Participant) int { return strings.Compare(a.rank, b.rank) })
}

// Satisfied names the participants that a node has reached: what these wait for is what the node
// waits for.
func Satisfied(participants []Participant, targets maintenance.Targets) []string {
	var names []string
	for _, p := range participants {
		if targets.Reaches(p.Allowed) {
			names = append(names, p.Name)
		}
	}
	return names
}

// DrainState is what the message of a drain is computed from.
type DrainState struct {
	// Left is whether a pod is left, Draining whether one within the targets is, and Cordoned
	// whether the API server has every node as unschedulable.
	Left, Draining, Cordoned bool
	// Detaching is whether a node without pods waits until its volumes are detached.
	Detaching bool
	// Settling is whether a node has just lost its last pod, and others may come back.
	Settling bool
	// Skipped is whether the work on some nodes has ended before they were drained.
	Skipped bool
	// Waiting is whether nodes wait for their admission.
	Waiting bool
	// LimitedBy names the older maintenances that keep the targets below what this one allows, and WaitingFor those that
	// have to advance before it goes on.
	LimitedBy, WaitingFor []string
}

// IsDrained reports whether the drain is over. A node that is not cordoned may get new pods.
func (s DrainState) IsDrained() bool { return s.IsDrainedBut(s.Left) }

// IsDrainedBut is IsDrained for a maintenance for which pods are left, or not.
func (s DrainState) IsDrainedBut(left bool) bool {
	return !left && s.Cordoned && !s.Detaching && !s.Settling
}

// StoredTargets are the targets that the status of the node has, below which the next ones must
// not fall. Invalid ones, which the API server does not accept, count as none.
func StoredTargets(node *v1.Node) maintenance.Targets {
	if node.Status.MaintenanceStatus == nil {
		return maintenance.Targets{}
	}
	targets, err := maintenance.NewTargets(node.Status.MaintenanceStatus.DrainTargets)
	if err != nil {
		return maintenance.Targets{}
	}
	return targets
}
