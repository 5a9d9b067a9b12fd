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
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
)

// participant is a maintenance that drains a node together with others.
type participant struct {
	name string
	// rank orders participants by age, then by name: the oldest has the least.
	rank string
	// allowed are the targets that the maintenance allows on this node now.
	allowed maintenance.Targets
	// shutdown is whether the kubelet of this node wrote the maintenance.
	shutdown bool
}

// limiting returns the participants that keep others from going further. What a kubelet wrote does not: whoever has the
// machine could keep its pods from being moved away with a plan that begins with one that never leaves. Alone, it has
// its own order.
func limiting(participants []participant) []participant {
	others := slices.DeleteFunc(slices.Clone(participants), func(p participant) bool { return p.shutdown })
	if len(others) == 0 {
		return participants
	}
	return others
}

// awaitsFinalizers reports whether a drain may not start on the node yet, because other
// maintenances that will drain it await their finalizers. Which one goes first must not depend on
// which finalizer is stored first. A drain that has started continues: targets never step back.
func awaitsFinalizers(node *v1.Node, orders []order) bool {
	return storedTargets(node).IsEmpty() && isDraining(orders) &&
		slices.ContainsFunc(orders, func(o order) bool { return o.delaysDrains() && !o.isShutdownOf(node.Name) })
}

// allowedPosition is the entry of its plan up to which a maintenance drains a node. That is the
// position of the maintenance, except on a node that joined late and has pods of an earlier
// entry: it follows the plan from there.
func allowedPosition(position int, remaining []int) int {
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

// nodeTargets are the drain targets of a node: the least that one of its participants allows that limit others, and
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
func nodeTargets(participants []participant, floor maintenance.Targets, takes func(maintenance.Targets) bool) maintenance.Targets {
	allowed := make([]maintenance.Targets, 0, len(participants))
	for _, p := range limiting(participants) {
		allowed = append(allowed, p.allowed)
	}
	least := maintenance.LeastPowerful(allowed...).RaisedTo(floor)
	if takes(least) {
		return least
	}
	return least.RaisedTo(slices.MinFunc(participants, compareProgress).allowed)
}

// compareProgress orders participants by their progress on a node: by the last pod type that they
// allow, the highest priority of that type, and the number of entries; then by age. The first
// three only grow with the position of a maintenance.
func compareProgress(a, b participant) int {
	return cmp.Or(maintenance.CompareProgress(a.allowed, b.allowed), strings.Compare(a.rank, b.rank))
}

// limitedBy names the participants that keep the targets of a node below what p allows there.
func limitedBy(p participant, participants []participant, targets maintenance.Targets) []string {
	if targets.Reaches(p.allowed) {
		return nil
	}
	var names []string
	for _, other := range limiting(participants) {
		if other.name != p.name && !other.allowed.Reaches(p.allowed) {
			names = append(names, other.name)
		}
	}
	return names
}

// olderThan returns those of the names that are older participants than p. The status of a
// maintenance names only these; that a younger one limits it, the status of the node says.
func olderThan(p participant, participants []participant, names []string) []string {
	var older []string
	for _, other := range participants {
		if other.rank < p.rank && slices.Contains(names, other.name) {
			older = append(older, other.name)
		}
	}
	return older
}

// oldest returns the participant that was created first.
func oldest(participants []participant) participant {
	return slices.MinFunc(participants, func(a, b participant) int { return strings.Compare(a.rank, b.rank) })
}

// satisfied names the participants that a node has reached: what these wait for is what the node
// waits for.
func satisfied(participants []participant, targets maintenance.Targets) []string {
	var names []string
	for _, p := range participants {
		if targets.Reaches(p.allowed) {
			names = append(names, p.name)
		}
	}
	return names
}

const (
	messageDrained  = "Drained"
	messageDraining = "Draining"
	messageSkipped  = "Drained, except for skipped nodes"
	messageWaiting  = "Waiting for admission"

	// maxNamesShown bounds the names in a message.
	maxNamesShown = 5
)

// drainState is what the message of a drain is computed from.
type drainState struct {
	// left is whether a pod is left, draining whether one within the targets is, and cordoned
	// whether the API server has every node as unschedulable.
	left, draining, cordoned bool
	// detaching is whether a node without pods waits until its volumes are detached.
	detaching bool
	// settling is whether a node has just lost its last pod, and others may come back.
	settling bool
	// skipped is whether the work on some nodes has ended before they were drained.
	skipped bool
	// waiting is whether nodes wait for their admission.
	waiting    bool
	limitedBy  []string
	waitingFor []string
}

// isDrained reports whether the drain is over. A node that is not cordoned may get new pods.
func (s drainState) isDrained() bool { return s.isDrainedBut(s.left) }

// isDrainedBut is isDrained for a maintenance for which pods are left, or not.
func (s drainState) isDrainedBut(left bool) bool {
	return !left && s.cordoned && !s.detaching && !s.settling
}

// message describes the state of a drain in the words of the KEP.
func (s drainState) message() string {
	switch {
	case s.isDrained() && s.skipped:
		return messageSkipped
	case s.isDrained():
		return messageDrained
	case !s.left && s.waiting:
		return messageWaiting
	case !s.left:
		return messageDraining
	case s.draining && len(s.limitedBy) > 0:
		return fmt.Sprintf("%s (limited by %s)", messageDraining, joinNames(s.limitedBy))
	case s.draining || len(s.waitingFor) == 0:
		return messageDraining
	}
	return fmt.Sprintf("Waiting for %s.", joinNames(s.waitingFor))
}

// joinNames lists names, sorted, so that a message changes only when the names do.
func joinNames(names []string) string {
	sorted := sets.List(sets.New(names...))
	if len(sorted) > maxNamesShown {
		return fmt.Sprintf("%s and %d more", strings.Join(sorted[:maxNamesShown], ", "), len(sorted)-maxNamesShown)
	}
	return strings.Join(sorted, ", ")
}
