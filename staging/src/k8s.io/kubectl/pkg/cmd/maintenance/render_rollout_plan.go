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
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
)

const (
	// maxBatchRows is how many batches a plan shows one by one.
	maxBatchRows = 3

	// maxBatchNodes is how many nodes of a batch, or stuck nodes, are named.
	maxBatchNodes = 5
)

// addRolloutPlan appends in which batches nodes are drained, when, for how long, and whether their
// pods find a place. The name is that of the maintenance.
func (p *page) addRolloutPlan(plan *rolloutPlan, name string, now time.Time) {
	p.add("")
	p.wrapped("", "Rollout (batches are what happens if all nodes take the same time):")
	p.wrapped("    ", plan.batchesText())
	p.addBatches(plan.Batches)
	if plan.Done+plan.Failed > 0 {
		p.wrapped("    ", fmt.Sprintf("Not in this plan: %d done, %d failed to come back", plan.Done, plan.Failed))
	}
	if plan.Paused {
		p.wrappedOwn("  ! ", "Paused: no further node is drained until \"kubectl maintenance resume "+name+"\"")
	}
	if plan.Halted {
		p.wrappedOwn("  ! ", "Halted: no further node is drained until failed nodes are repaired, or \"kubectl maintenance resume "+name+"\"")
	}
	for i := range plan.Stuck {
		p.wrapped("  ! ", plan.Stuck[i].text())
	}
	for i := range plan.Budgets {
		p.wrapped("    ", plan.Budgets[i].text(now))
	}
	if len(plan.SharedWindows) > 0 {
		p.wrappedOwn("    ", plan.windowsText(name))
	}
	if plan.BudgetsNotServed {
		p.wrapped("    ", "The server does not serve NodeMaintenanceBudgets: its feature gate NodeMaintenanceBudgets is off, and spec.rollout has no effect")
	}
	if len(plan.Batches) > 0 {
		p.wrapped("    ", "Duration: "+plan.durationText())
	}
	if plan.Capacity != nil {
		p.addCapacityHint(plan.Capacity)
	}
}

// addBatches names the first nodes of the first batches, if there are several.
func (p *page) addBatches(batches [][]string) {
	shown := len(batches)
	if shown > maxBatchRows+1 { // A line that counts a single batch could name it.
		shown = maxBatchRows
	}
	for i, batch := range batches[:shown] {
		if len(batches) > 1 {
			p.wrapped(fmt.Sprintf("      %d. ", i+1), listPods(batch[:min(maxBatchNodes, len(batch))], len(batch)))
		}
	}
	if more := len(batches) - shown; more > 0 {
		p.add("      ... and %d more batches", more)
	}
}

func (p *rolloutPlan) batchesText() string {
	largest, nodes := 0, 0
	for _, batch := range p.Batches {
		largest, nodes = max(largest, len(batch)), nodes+len(batch)
	}
	text := fmt.Sprintf("%s in %s", counted(nodes, "node", "nodes"), counted(len(p.Batches), "batch", "batches"))
	if len(p.Batches) > 1 {
		text += fmt.Sprintf(", of at most %s", counted(largest, "node", "nodes"))
	}
	if p.MaxConcurrent != "" {
		text += " (spec.rollout.maxConcurrent " + p.MaxConcurrent + ")"
	}
	return text
}

// text says why nodes are not drained as things are.
func (s *stuckNodes) text() string {
	text := fmt.Sprintf("%s not drained: ", counted(len(s.Nodes), "node is", "nodes are"))
	budget := "NodeMaintenanceBudget " + s.Budget
	switch s.Reason {
	case coordinationv1alpha1.NodeMaintenanceWaitBeingRemoved:
		text += "being deleted by others, or tainted for that"
	case coordinationv1alpha1.NodeMaintenanceWaitFrozen:
		text += budget + " allows none (spec.maxUnavailable 0)"
	case coordinationv1alpha1.NodeMaintenanceWaitTopology:
		text += budget + " allows no further domain, because nodes of others are maintained"
	default:
		text += budget + " allows no further node, because so many others are unavailable"
	}
	return text + ": " + listPods(s.Nodes[:min(maxBatchNodes, len(s.Nodes))], len(s.Nodes))
}

func (b *nodeBudgetPlan) text(now time.Time) string {
	text := fmt.Sprintf("NodeMaintenanceBudget %s selects %s: at most %d unavailable, %d now", b.Name, counted(b.Nodes, "node", "nodes"), b.MaxUnavailable, b.Unavailable)
	if b.TopologyKey != "" {
		text += fmt.Sprintf("; at most %s of %s at a time", counted(b.MaxDomains, "domain", "domains"), b.TopologyKey)
	}
	if ptr.Deref(b.Open, false) {
		text += "; a window is open"
	}
	if b.NextWindowTime != nil {
		text += "; next window " + windowTime(now, *b.NextWindowTime)
	}
	return text
}

// windowsText says that budgets have to be open at the same time. When that is, only the controller computes.
func (p *rolloutPlan) windowsText(name string) string {
	return fmt.Sprintf("The windows of the NodeMaintenanceBudgets %s must be open at the same time. When that is, or that it never is, the maintenance says: kubectl maintenance status %s",
		listPods(p.SharedWindows[:min(maxBatchNodes, len(p.SharedWindows))], len(p.SharedWindows)), name)
}

func (p *rolloutPlan) durationText() string {
	if p.Pace == nil {
		return "unknown, because no node was given back in the last hour"
	}
	text := fmt.Sprintf("about %s at the pace of the last hour, in which %s took %s on average", duration.HumanDuration(p.duration()),
		counted(p.Pace.Nodes, "node", "nodes"), duration.HumanDuration(time.Duration(p.Pace.AverageSeconds)*time.Second))
	if slices.ContainsFunc(p.Budgets, func(b nodeBudgetPlan) bool { return b.Open != nil }) {
		text += ", without the time between windows"
	}
	return text
}

func (p *page) addCapacityHint(hint *capacityHint) {
	mark, text := "    ", fmt.Sprintf("Capacity (a hint): the %s to move in batch %d, the largest, ", counted(hint.Pods, "pod", "pods"), hint.Batch)
	places := counted(hint.SchedulableNodes, "node that stays schedulable", "nodes that stay schedulable")
	if len(hint.Unplaced) == 0 {
		text += "would fit on the " + places
	} else {
		mark = "  ! "
		text += fmt.Sprintf("would not all fit on the %s: %s", places, hint.unplacedText())
	}
	p.wrapped(mark, text+". Volumes, affinity between pods and spreading are not considered.")
}

// unplacedText names some of the pods without a place, by why they have none.
func (h *capacityHint) unplacedText() string {
	names := map[string][]string{}
	for _, pod := range h.Unplaced {
		reason := "no node has enough of everything for "
		switch {
		case pod.NoNode:
			reason = "no node matches node selector, affinity and tolerations of "
		case len(pod.Lacks) > 0:
			reason = "no node has enough " + strings.Join(resourceNames(pod.Lacks), " and ") + " for "
		}
		names[reason] = append(names[reason], pod.Namespace+"/"+pod.Name)
	}
	var texts []string
	for _, reason := range sortedNames(names) {
		pods := names[reason]
		texts = append(texts, fmt.Sprintf("%s%s (%s)", reason, counted(len(pods), "pod", "pods"), listPods(pods[:min(maxLinePods, len(pods))], len(pods))))
	}
	return strings.Join(texts, "; ")
}

func resourceNames(names []corev1.ResourceName) []string {
	var texts []string
	for _, name := range names {
		texts = append(texts, string(name))
	}
	return texts
}
