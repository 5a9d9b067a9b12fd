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
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/tools/evictionrequest"
)

// standardPriorities are the upper ends of the classes of priorities: those that users may define,
// system-cluster-critical, system-node-critical, and all others.
var standardPriorities = []int32{1000000000, 2000000000, 2000001000, 2147483647}

// podTypes in the order in which they are drained.
var podTypes = []v1.PodType{v1.PodTypeDefault, v1.PodTypeDaemonSet, v1.PodTypeStatic}

// StandardPlan returns the twelve entries that every drain plan has: each selects a class of
// priorities of one pod type.
func StandardPlan() []v1.DrainPlanEntry {
	var plan []v1.DrainPlanEntry
	for _, podType := range podTypes {
		for _, priority := range standardPriorities {
			plan = append(plan, v1.DrainPlanEntry{PodPriority: priority, PodType: podType})
		}
	}
	return plan
}

// CompletePlan returns the plan with the standard entries that it lacks, each in its place. A plan
// that is not in order keeps its order, with a missing entry before the first one that belongs
// after it.
func CompletePlan(plan []v1.DrainPlanEntry) []v1.DrainPlanEntry {
	complete := slices.Clone(plan)
	for _, standard := range StandardPlan() {
		if slices.ContainsFunc(complete, func(entry v1.DrainPlanEntry) bool { return EntryKeyOf(entry) == EntryKeyOf(standard) }) {
			continue
		}
		at := slices.IndexFunc(complete, func(entry v1.DrainPlanEntry) bool { return CompareEntries(entry, standard) > 0 })
		if at < 0 {
			at = len(complete)
		}
		complete = slices.Insert(complete, at, standard)
	}
	return complete
}

// EntryKey identifies an entry of a drain plan. Entries with the same key select the same pods.
type EntryKey struct {
	PodType     v1.PodType
	PodPriority int32
	// Selector is the SelectorKey of the entry.
	Selector string
}

// EntryKeyOf returns the key of an entry.
func EntryKeyOf(entry v1.DrainPlanEntry) EntryKey {
	return EntryKey{PodType: entry.PodType, PodPriority: entry.PodPriority, Selector: SelectorKey(entry.PodSelector)}
}

// Compare compares the order of two entries in a drain plan: by pod type, then by priority, then
// entries with a selector first. Two different selectors with the same type and priority are equal:
// they may be in any order.
func (k EntryKey) Compare(other EntryKey) int {
	return cmp.Or(
		cmp.Compare(slices.Index(podTypes, k.PodType), slices.Index(podTypes, other.PodType)),
		cmp.Compare(k.PodPriority, other.PodPriority),
		cmp.Compare(k.generality(), other.generality()),
	)
}

func (k EntryKey) generality() int {
	if k.Selector == "" {
		return 1
	}
	return 0
}

// CompareEntries compares the order of two entries, like EntryKey.Compare.
func CompareEntries(a, b v1.DrainPlanEntry) int { return EntryKeyOf(a).Compare(EntryKeyOf(b)) }

// SelectorKey identifies the pod selector of an entry of a drain plan. Selectors that select the
// same pods in different notations have the same key, such as "app=web" and "app in (web)". The key
// is empty if all pods are selected: by a selector without requirements, or without a selector.
// Compare entries by this key.
func SelectorKey(selector *metav1.LabelSelector) string {
	if selector == nil {
		return ""
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		// The API server rejects it. It is equal only to itself.
		return metav1.FormatLabelSelector(selector)
	}
	var keys []string
	requirements, _ := compiled.Requirements()
	for i := range requirements {
		keys = append(keys, requirementKey(&requirements[i]))
	}
	slices.Sort(keys)
	return strings.Join(slices.Compact(keys), ",")
}

func requirementKey(requirement *labels.Requirement) string {
	values := requirement.Values().List() // Sorted, each once.
	switch operator := requirement.Operator(); {
	case len(values) == 1 && (operator == selection.In || operator == selection.Equals):
		return requirement.Key() + "=" + values[0]
	case operator == selection.In || operator == selection.NotIn:
		return fmt.Sprintf("%s %s (%s)", requirement.Key(), operator, strings.Join(values, ","))
	}
	return requirement.String()
}

// PodTypeOf returns the type of the pod in a drain plan.
func PodTypeOf(pod *v1.Pod) v1.PodType { return evictionrequest.PodTypeOf(pod) }

// IsLeft reports whether the pod still counts on its node: it has not succeeded or failed.
func IsLeft(pod *v1.Pod) bool {
	return pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed
}

// PodPriority returns the priority of the pod, which is 0 where none is set.
func PodPriority(pod *v1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// compiledEntry is an entry with its compiled selector.
type compiledEntry struct {
	v1.DrainPlanEntry
	key      string
	selector labels.Selector
}

func compile(entries []v1.DrainPlanEntry) ([]compiledEntry, error) {
	compiled := make([]compiledEntry, 0, len(entries))
	for i, entry := range entries {
		selector := labels.Everything()
		if entry.PodSelector != nil {
			var err error
			if selector, err = metav1.LabelSelectorAsSelector(entry.PodSelector); err != nil {
				return nil, fmt.Errorf("podSelector of entry %d: %w", i, err)
			}
		}
		compiled = append(compiled, compiledEntry{DrainPlanEntry: entry, key: SelectorKey(entry.PodSelector), selector: selector})
	}
	return compiled, nil
}

func (e *compiledEntry) takes(pod *v1.Pod, podType v1.PodType) bool {
	return e.PodType == podType && PodPriority(pod) <= e.PodPriority && e.selector.Matches(labels.Set(pod.Labels))
}

// Plan is a compiled drain plan.
type Plan struct {
	entries []compiledEntry
}

// NewPlan compiles a drain plan. It fails if a selector is invalid.
func NewPlan(entries []v1.DrainPlanEntry) (*Plan, error) {
	compiled, err := compile(entries)
	if err != nil {
		return nil, err
	}
	return &Plan{entries: compiled}, nil
}

// Len returns the number of entries.
func (p *Plan) Len() int { return len(p.entries) }

// LastOf returns the index of the last entry of a pod type, and -1 if there is none.
func (p *Plan) LastOf(podType v1.PodType) int {
	for i := len(p.entries) - 1; i >= 0; i-- {
		if p.entries[i].PodType == podType {
			return i
		}
	}
	return -1
}

// EntryFor returns the index of the first entry that selects the pod, or Len if none does: only a
// plan without the standard entries does not select all pods.
func (p *Plan) EntryFor(pod *v1.Pod) int {
	podType := PodTypeOf(pod)
	for i := range p.entries {
		if p.entries[i].takes(pod, podType) {
			return i
		}
	}
	return len(p.entries)
}

// TargetsAt returns the drain targets when the entry at this position is executed: for each pod
// type that was reached, and each selector that the plan has for it, the highest priority so far.
func (p *Plan) TargetsAt(position int) Targets {
	if len(p.entries) == 0 || position < 0 {
		return Targets{}
	}
	reached := p.entries[:min(position+1, len(p.entries))]
	granted := newTargets(reached)
	last := slices.Index(podTypes, reached[len(reached)-1].PodType)
	for _, entry := range p.entries[len(reached):] {
		// A selector of a later entry has the priority of all pods of the type until then.
		if slices.Index(podTypes, entry.PodType) > last || granted.has(entry.PodType, entry.key) {
			continue
		}
		if priority, ok := granted.grant(entry.PodType, entry.key); ok {
			entry.PodPriority = priority
			granted.entries = append(granted.entries, entry)
		}
	}
	granted.sort()
	return granted
}
