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
	"fmt"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Targets are the drain targets of a node, or of one of its maintenances: for each pod type and pod
// selector, up to which priority evictions are requested. At most one entry per type and selector.
// The zero value selects no pod.
type Targets struct {
	entries []compiledEntry
}

// NewTargets compiles drain targets from status.maintenanceStatus of a node. It fails if a selector
// is invalid.
func NewTargets(entries []v1.DrainPlanEntry) (Targets, error) {
	compiled, err := compile(entries)
	if err != nil {
		return Targets{}, err
	}
	return newTargets(compiled), nil
}

// newTargets keeps, for each type and selector, the highest priority, which is at least that of all
// pods of the type.
func newTargets(entries []compiledEntry) Targets {
	t := Targets{entries: make([]compiledEntry, 0, len(entries))}
	for _, entry := range entries {
		if i := t.index(entry.PodType, entry.key); i >= 0 {
			t.entries[i].PodPriority = max(t.entries[i].PodPriority, entry.PodPriority)
		} else {
			t.entries = append(t.entries, entry)
		}
	}
	for i := range t.entries {
		t.entries[i].PodPriority, _ = t.grant(t.entries[i].PodType, t.entries[i].key)
	}
	t.sort()
	return t
}

// sort sorts by the order in which pod types are drained, and entries without a selector first.
func (t *Targets) sort() {
	slices.SortFunc(t.entries, func(a, b compiledEntry) int {
		return cmp.Or(
			cmp.Compare(slices.Index(podTypes, a.PodType), slices.Index(podTypes, b.PodType)),
			cmp.Compare(a.key, b.key),
		)
	})
}

func (t Targets) index(podType v1.PodType, key string) int {
	return slices.IndexFunc(t.entries, func(e compiledEntry) bool { return e.PodType == podType && e.key == key })
}

func (t Targets) has(podType v1.PodType, key string) bool { return t.index(podType, key) >= 0 }

// grant returns the highest priority for pods of the type with this selector, of the entry for the
// selector or of the one for all pods, and whether there is one.
func (t Targets) grant(podType v1.PodType, key string) (int32, bool) {
	var priority int32
	found := false
	for _, candidate := range []string{key, ""} {
		if i := t.index(podType, candidate); i >= 0 && (!found || t.entries[i].PodPriority > priority) {
			priority, found = t.entries[i].PodPriority, true
		}
	}
	return priority, found
}

// IsEmpty reports whether no pod is selected.
func (t Targets) IsEmpty() bool { return len(t.entries) == 0 }

// Entries returns the targets for the status of a node or a maintenance, in order; nil
// if there are none.
func (t Targets) Entries() []v1.DrainPlanEntry {
	var entries []v1.DrainPlanEntry
	for _, entry := range t.entries {
		entries = append(entries, *entry.DrainPlanEntry.DeepCopy())
	}
	return entries
}

// String returns the targets in one line, such as "Default<=1000, Default(app=db)<=2000".
// Equal texts mean equal targets.
func (t Targets) String() string {
	texts := make([]string, 0, len(t.entries))
	for _, entry := range t.entries {
		selector := ""
		if entry.key != "" {
			selector = "(" + entry.key + ")"
		}
		texts = append(texts, fmt.Sprintf("%s%s<=%d", entry.PodType, selector, entry.PodPriority))
	}
	return strings.Join(texts, ", ")
}

// Take reports whether the targets select the pod. It does not check whether the pod is still
// running.
func (t Targets) Take(pod *v1.Pod) bool {
	podType := PodTypeOf(pod)
	return slices.ContainsFunc(t.entries, func(e compiledEntry) bool { return e.takes(pod, podType) })
}

// Reaches reports whether these targets select all pods that the others select.
func (t Targets) Reaches(others Targets) bool {
	return !slices.ContainsFunc(others.entries, func(e compiledEntry) bool {
		priority, ok := t.grant(e.PodType, e.key)
		return !ok || priority < e.PodPriority
	})
}

// Equal reports whether two targets select the same pods.
func (t Targets) Equal(others Targets) bool { return t.Reaches(others) && others.Reaches(t) }

// CompareProgress orders targets by the progress of a drain: by the last pod type, then by its
// highest priority, then by the number of entries. Targets at a later position of the same plan are
// never less.
func CompareProgress(a, b Targets) int {
	aType, aPriority := a.last()
	bType, bPriority := b.last()
	return cmp.Or(cmp.Compare(aType, bType), cmp.Compare(aPriority, bPriority), cmp.Compare(len(a.entries), len(b.entries)))
}

// last returns the position of the last pod type in podTypes, -1 if there is none, and its highest
// priority.
func (t Targets) last() (podType int, priority int32) {
	podType, priority = -1, math.MinInt32
	for _, entry := range t.entries {
		switch at := slices.Index(podTypes, entry.PodType); {
		case at > podType:
			podType, priority = at, entry.PodPriority
		case at == podType:
			priority = max(priority, entry.PodPriority)
		}
	}
	return podType, priority
}

// LeastPowerful returns the targets that all of the given targets include: for every type and
// selector of one of them, the lowest priority. If two selectors match the same pod, the result may
// select fewer pods than each of them, and never more.
func LeastPowerful(all ...Targets) Targets {
	var least Targets
	for _, t := range all {
		for _, entry := range t.entries {
			if least.has(entry.PodType, entry.key) {
				continue
			}
			if priority, ok := lowest(all, entry.PodType, entry.key); ok {
				entry.PodPriority = priority
				least.entries = append(least.entries, entry)
			}
		}
	}
	least.sort()
	return least
}

// lowest returns the lowest priority, and false if one of the targets has none.
func lowest(all []Targets, podType v1.PodType, key string) (int32, bool) {
	var priority int32
	for i, t := range all {
		granted, ok := t.grant(podType, key)
		if !ok {
			return 0, false
		}
		if i == 0 || granted < priority {
			priority = granted
		}
	}
	return priority, true
}

// RaisedTo returns these targets, raised to at least the floor: the targets of a node never shrink
// while it is under maintenance.
func (t Targets) RaisedTo(floor Targets) Targets {
	return newTargets(slices.Concat(t.entries, floor.entries))
}
