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
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
)

// minSlots is how many slots may be those of nodes that are gone before the slots are numbered again.
const minSlots = 1000

// slotSet is a set of nodes by their slots. Hundreds of maintenances of thousands of nodes are compared with
// it bit by bit, which costs less than to look names up.
type slotSet []uint64

// set adds or removes a slot.
func (s *slotSet) set(slot int, present bool) {
	word, bit := slot/64, uint64(1)<<(slot%64)
	if present {
		if word >= len(*s) {
			*s = append(*s, make(slotSet, word+1-len(*s))...)
		}
		(*s)[word] |= bit
	} else if word < len(*s) {
		(*s)[word] &^= bit
	}
}

func (s slotSet) has(slot int) bool {
	return slot/64 < len(s) && s[slot/64]&(1<<(slot%64)) != 0
}

// remove removes the slots of another set.
func (s slotSet) remove(other slotSet) {
	for word := range min(len(s), len(other)) {
		s[word] &^= other[word]
	}
}

// waitingNodes are the nodes that wait for a maintenance: the names, and the slots that they had.
type waitingNodes struct {
	names []string
	slots slotSet
}

// slotOf returns the slot of a name, which need not be that of a node: one may come back under it.
func (f *Fleet) slotOf(name string) int {
	slot, found := f.slots[name]
	if !found {
		slot = len(f.slots)
		f.slots[name] = slot
	}
	return slot
}

// renumber gives up the slots of nodes that are gone.
func (f *Fleet) renumber() {
	clear(f.slots)
	clear(f.waiting)
	for _, c := range f.admitted {
		c.nodes = nil
	}
	for _, n := range f.nodes {
		n.slot = f.slotOf(n.Name)
		for _, a := range maintenance.Admissions(n.Node) {
			f.admitted[a.MaintenanceUID].nodes.set(n.slot, true)
		}
	}
}

// waitingSlots returns the slots of the nodes that wait for a maintenance. They are looked up if the slice of
// names is another one than before.
func (f *Fleet) waitingSlots(m *Maintenance) slotSet {
	known := f.waiting[m.UID]
	if known != nil && sameSlice(known.names, m.Waiting) {
		return known.slots
	}
	found := &waitingNodes{names: m.Waiting}
	for _, name := range m.Waiting {
		found.slots.set(f.slotOf(name), true)
	}
	f.waiting[m.UID] = found
	return found.slots
}

// forgetWaiting removes what is known of other maintenances.
func (f *Fleet) forgetWaiting(current []*maintenanceState) {
	if len(f.waiting) <= len(current) {
		return
	}
	known := make(map[types.UID]*waitingNodes, len(current))
	for _, m := range current {
		known[m.UID] = f.waiting[m.UID]
	}
	maps.DeleteFunc(f.waiting, func(uid types.UID, _ *waitingNodes) bool { return known[uid] == nil })
}

// sameSlice reports whether both are the same slice, not only equal.
func sameSlice(a, b []string) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
