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

// member is a maintenance in the stage Drain, as one of its nodes sees it.
type member struct {
	name string
	// rank orders members by age, then by name: the eldest is the least.
	rank string
	// grant is what the maintenance allows to be drained on this node now.
	grant maintenance.Targets
}

// waitsForClaims tells whether a drain does not begin on the node yet: others that are about to
// drain it, too, are waited for, so that it does not matter who gets its finalizer first. A drain
// that has begun is not held up: what was granted is not taken back.
func waitsForClaims(node *v1.Node, orders []order) bool {
	return storedTargets(node).IsEmpty() &&
		slices.ContainsFunc(orders, func(o order) bool { return o.drains() }) &&
		slices.ContainsFunc(orders, func(o order) bool { return o.isAwaited() })
}

// grantedPosition is the entry of its plan up to which a maintenance drains a node.
// As a rule that is the position of the maintenance. A node that joined late, whose
// first pods belong to an earlier entry, follows the plan from there at its own pace.
func grantedPosition(position int, remaining []int) int {
	for i := range min(position, len(remaining)) {
		if remaining[i] > 0 {
			return i
		}
	}
	return position
}

// nextPosition is the first entry for which a pod is left on any node of a
// maintenance, and never before the position that was reached. With no pod left it is
// the last entry.
func nextPosition(position int, remaining []int) int {
	last := len(remaining) - 2 // The last count is of pods that no entry takes.
	for i := range last + 1 {
		if remaining[i] > 0 {
			return max(position, i)
		}
	}
	return max(last, 0)
}

// nodeTargets are the drain targets of a node: the least that one of its members
// grants, and never less than what was granted before.
//
// Where no pod is left that all members grant, the one with the least progress gets what it
// grants. Plans may contradict each other, because each begins with pods that another one
// wants later, and a maintenance also waits for its other nodes: around such a circle each
// would wait for the next one for ever. With a total order of progress none can close. The
// member with the least progress either drains this node, or waits for a node on which it
// has no more progress than here; if another member has less progress there, the same
// applies to that one, and so on down to one that drains a node.
//
// takes reports whether targets take a pod that is left.
func nodeTargets(members []member, floor maintenance.Targets, takes func(maintenance.Targets) bool) maintenance.Targets {
	grants := make([]maintenance.Targets, 0, len(members))
	for _, m := range members {
		grants = append(grants, m.grant)
	}
	least := maintenance.LeastPowerful(grants...).RaisedTo(floor)
	if takes(least) {
		return least
	}
	return least.RaisedTo(slices.MinFunc(members, compareProgress).grant)
}

// compareProgress orders members by how far they are on a node: by the last pod type that
// they grant, the highest priority of that type, and the number of entries; then by age. All
// three only ever grow with the position of a maintenance.
func compareProgress(a, b member) int {
	return cmp.Or(maintenance.CompareProgress(a.grant, b.grant), strings.Compare(a.rank, b.rank))
}

// limiters are the members that keep a node below what m grants there.
func limiters(m member, members []member, targets maintenance.Targets) []string {
	if targets.Reaches(m.grant) {
		return nil
	}
	var names []string
	for _, other := range members {
		if other.name != m.name && !other.grant.Reaches(m.grant) {
			names = append(names, other.name)
		}
	}
	return names
}

// elders are those among the names that are older than m: in what it says of itself, a
// maintenance names only these. That a younger one holds a node back, the node says.
func elders(m member, members []member, names []string) []string {
	var older []string
	for _, other := range members {
		if other.rank < m.rank && slices.Contains(names, other.name) {
			older = append(older, other.name)
		}
	}
	return older
}

// eldest returns the member that came first.
func eldest(members []member) member {
	return slices.MinFunc(members, func(a, b member) int { return strings.Compare(a.rank, b.rank) })
}

// holders are the members that do not let a node go further than its targets: they have
// all that they grant.
func holders(members []member, targets maintenance.Targets) []string {
	var names []string
	for _, m := range members {
		if targets.Reaches(m.grant) {
			names = append(names, m.name)
		}
	}
	return names
}

const (
	messageDrained  = "Drained"
	messageDraining = "Draining"

	// maxNamesShown bounds the names in a message.
	maxNamesShown = 5
)

// drainState is what a message tells.
type drainState struct {
	// left is whether a pod is left, draining whether one within the targets is, and cordoned
	// whether every node is stored as unschedulable.
	left, draining, cordoned bool
	limitedBy                []string
	waitingFor               []string
}

// isDrained reports whether the drain is over. New pods may come to a node that is not cordoned.
func (s drainState) isDrained() bool { return !s.left && s.cordoned }

// message puts the state of a drain in the words of the KEP.
func (s drainState) message() string {
	switch {
	case s.isDrained():
		return messageDrained
	case !s.left:
		return messageDraining
	case s.draining && len(s.limitedBy) > 0:
		return fmt.Sprintf("%s (limited by %s)", messageDraining, joinNames(s.limitedBy))
	case s.draining || len(s.waitingFor) == 0:
		return messageDraining
	}
	return fmt.Sprintf("Waiting for %s.", joinNames(s.waitingFor))
}

// joinNames lists names, sorted, so that a message does not change while nothing does.
func joinNames(names []string) string {
	sorted := sets.List(sets.New(names...))
	if len(sorted) > maxNamesShown {
		return fmt.Sprintf("%s and %d more", strings.Join(sorted[:maxNamesShown], ", "), len(sorted)-maxNamesShown)
	}
	return strings.Join(sorted, ", ")
}
