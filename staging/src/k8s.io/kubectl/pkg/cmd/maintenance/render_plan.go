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
	"io"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/utils/ptr"
)

// noteTexts say what a note means.
var noteTexts = map[podNote]string{
	noteUnmanaged:        "unmanaged: will not be recreated",
	noteLocalStorage:     "the data of its emptyDir volumes is lost",
	noteReplacedFirst:    "its Deployment starts a replacement first",
	noteMayBeReplaced:    "its Deployment starts a replacement first, if its strategy allows a surge",
	noteNotReplaced:      "its Deployment starts no replacement first: its strategy no longer allows a surge",
	noteNeedsDaemonSet:   "not evicted: the DaemonSet controller deletes it",
	noteForeignDaemonSet: "not evicted: only the controller of its DaemonSet, which is of another API group, can stop it",
	noteNeedsKubelet:     "not evicted: its kubelet stops it",
	noteSchedulingGroup:  "not evicted: pods of a scheduling group are not evicted one by one",
	noteOneByOne:         "its controller lets its pods leave one after another",
	noteComesAfter:       "its replacement can run on no node outside this drain, and starts after it: pods of its StatefulSet on other nodes wait for it, up to ten minutes each",
	noteTerminating:      "already terminating",

	noteCannotBeReplaced: "evicted without a replacement, because none can start while it runs",
	noteCrowded:          "names so many interceptors that its controller could not add its own: neither replaced first nor evicted one after another",
	noteComesBack:        "comes back: tolerates " + corev1.TaintNodeUnschedulable,
	noteNamesNode:        "comes back: spec.nodeName of its template names this node",
	noteStaysWithSkipped: "stays: spec.podPolicies skips a pod of this node",
}

// hindrances say that a drain does not remove the pod from its node, or not for good. Whether the DaemonSet controller
// and the kubelet do so depends on feature gates that kubectl cannot read.
var hindrances = []podNote{noteSchedulingGroup, noteComesBack, noteNamesNode, noteForeignDaemonSet}

// renderPlan returns the text of a plan.
func renderPlan(plan *plan, width int, now time.Time) string {
	p := &page{width: width}
	title := "A drain of " + counted(plan.Summary.Nodes, "node", "nodes")
	if plan.Maintenance != "" {
		title = fmt.Sprintf("NodeMaintenance %s, a drain of %s", plan.Maintenance, counted(plan.Summary.Nodes, "node", "nodes"))
	}
	p.wrapped("", title+". Nothing is changed by this command.")
	p.wrapped("! ", plan.missingText())
	if plan.Summary.Pods > 0 {
		p.addSteps(plan)
	}
	if text := plan.volumesText(); text != "" {
		p.add("")
		p.wrapped("", text)
	}
	for _, node := range plan.Nodes {
		p.add("")
		p.addNodePlan(node, now)
	}
	p.addBudgets(plan.Budgets)
	p.addWarnings(plan.Warnings)
	if plan.Rollout != nil {
		p.addRolloutPlan(plan.Rollout, cmp.Or(plan.Maintenance, "NAME"), now)
	}
	p.add("")
	p.wrapped("", summaryText(plan, now))
	for _, caveat := range []struct {
		applies bool
		text    string
	}{
		{plan.PoliciesDropped, "The server drops spec.podPolicies and spec.drainedWhen: its feature gate NodeMaintenanceBudgets is off. This plan is without them."},
		{plan.has(noteNeedsDaemonSet), "If the feature gate NodeMaintenanceAwareDaemonSet is off in the cluster, DaemonSet pods stay, and do not count."},
		{plan.has(noteNeedsKubelet), "If the feature gate NodeMaintenanceAwareKubelet is off in the kubelet of a node, its static pods stay, and do not count."},
		{plan.Responders != "", responderTexts[plan.Responders]},
		{len(plan.Unreadable) > 0, fmt.Sprintf("Without the permission to list %s, this plan is incomplete.", strings.Join(plan.Unreadable, ", "))},
	} {
		if caveat.applies {
			p.wrapped("", caveat.text)
		}
	}
	return p.String()
}

// responderTexts say on what it depends that responders act.
var responderTexts = map[responderSupport]string{
	respondersIfGate: "If the feature gate LifecycleEvictions is off in kube-controller-manager, responders (spec.evictionResponders) do not act.",
	respondersNotServed: "Responders (spec.evictionResponders) do not act: the server does not serve lifecycle.k8s.io/v1alpha1. Enable it, and the feature gate " +
		"LifecycleEvictions, or let \"kubectl maintenance convert\" make interceptors of them.",
	respondersUnknown: "If the server does not serve lifecycle.k8s.io/v1alpha1, which you may not ask it, or the feature gate LifecycleEvictions is off in " +
		"kube-controller-manager, responders (spec.evictionResponders) do not act.",
}

// maxMissingNodes is how many nodes that do not exist are named.
const maxMissingNodes = 10

// missingText names nodes that the selector names and that do not exist; empty if there are none.
func (p *plan) missingText() string {
	if len(p.MissingNodes) == 0 {
		return ""
	}
	return fmt.Sprintf("spec.nodeSelector names %s: %s", counted(len(p.MissingNodes), "node that does not exist", "nodes that do not exist"),
		plaintext.Line(listFirst(p.MissingNodes, maxMissingNodes)))
}

func (p *plan) has(note podNote) bool {
	return slices.ContainsFunc(p.Nodes, func(node *nodePlan) bool {
		return slices.ContainsFunc(node.Pods, func(pod *podPlan) bool { return slices.Contains(pod.Remarks, note) })
	})
}

// addSteps lists the entries of the drain plan that select pods.
func (p *page) addSteps(plan *plan) {
	p.add("")
	which := "any of the nodes"
	if plan.Rollout != nil {
		which += " that are drained at the same time"
	}
	p.wrapped("", fmt.Sprintf("A step begins when no pod of the previous steps is left on %s:", which))
	for _, step := range plan.Steps {
		if step.Pods > 0 {
			p.wrapped(fmt.Sprintf("  %4d  ", step.Step), fmt.Sprintf("%s: %s", entryText(step.DrainPlanEntry), counted(step.Pods, "pod", "pods")))
		}
	}
}

func (p *page) addNodePlan(node *nodePlan, now time.Time) {
	text := fmt.Sprintf("%s: %s", node.Name, counted(len(node.Pods), "pod", "pods"))
	if node.Cordoned {
		text += ", cordoned"
	}
	if len(node.CoveredBy) > 0 {
		covers := mapped(node.CoveredBy, func(cover coverView) string { return fmt.Sprintf("%s (%s)", cover.Name, cover.Stage) })
		text += ", also maintained by " + strings.Join(covers, ", ")
	}
	p.wrapped("", text)
	if len(node.Pods) == 0 {
		return
	}
	const row = "  %4s  %-9s  %10s  "
	p.add(row+"POD", "STEP", "TYPE", "PRIORITY")
	indent := strings.Repeat(" ", len(fmt.Sprintf(row, "", "", "")))
	for _, pod := range node.Pods {
		p.wrapped(fmt.Sprintf(row, pod.stepText(), pod.Type, fmt.Sprint(pod.Priority)), pod.Namespace+"/"+pod.Name)
		for _, detail := range pod.details(now) {
			p.wrapped(indent+"  ", detail)
		}
	}
}

func (p *podPlan) stepText() string {
	if p.Step == 0 {
		return "-"
	}
	return fmt.Sprint(p.Step)
}

// details are the remarks about a pod. Those about a blocker are marked with "!".
func (p *podPlan) details(now time.Time) []string {
	var details []string
	if p.isKept() {
		details = appendIf(details, !p.staysWithSkipped(), p.keptText(now)) // The remark says why others stay.
	}
	details = appendIf(details, p.Step == 0 && p.Action != actionSkip, "! not evicted: no entry of the drain plan selects it")
	details = appendIf(details, p.Blocked != "", "! "+p.Blocked)
	named := p.namedInterceptors()
	details = appendIf(details, len(named) > 0, "first acts "+strings.Join(named, ", then "))
	if len(p.IdleResponders) > 0 {
		text := "does not act: responder " + strings.Join(p.IdleResponders, ", ")
		if len(p.Requesters) > 0 {
			text += ", which the EvictionRequest of the pod lacks"
		}
		details = append(details, text)
	}
	for _, note := range p.Remarks {
		text := noteTexts[note]
		if note == noteCannotBeReplaced {
			text += ": " + p.ReplacementObstacle
		}
		if slices.Contains(hindrances, note) {
			text = "! " + text
		}
		details = append(details, text)
		details = appendIf(details, note.replaces() && p.BlockedUnreplaced != "", "if that fails, its PodDisruptionBudget blocks it: "+strings.Join(p.Budgets, ", "))
	}
	return appendIf(details, len(p.Requesters) > 0, "eviction already requested by "+strings.Join(p.Requesters, ", "))
}

func (p *page) addBudgets(budgets []budgetPlan) {
	if len(budgets) == 0 {
		return
	}
	p.section("PodDisruptionBudgets (! allows no disruption now):")
	for _, budget := range budgets {
		p.wrapped(mark(budget.DisruptionsAllowed <= 0), fmt.Sprintf("%s: %s, %d may be disrupted at a time", budget.Name, counted(budget.Pods, "pod", "pods"), max(0, budget.DisruptionsAllowed)))
	}
}

// mark is the prefix of a line, which marks what needs attention.
func mark(needsAttention bool) string {
	if needsAttention {
		return "  ! "
	}
	return "    "
}

// addWarnings lists disruptions that no budget and no controller prevents.
func (p *page) addWarnings(warnings []warning) {
	if len(warnings) == 0 {
		return
	}
	p.section("Warnings (a PodDisruptionBudget would prevent most of them):")
	for i := range warnings {
		p.wrapped("  ! ", warnings[i].text())
	}
}

func (w *warning) text() string {
	name := fmt.Sprintf("%s %s/%s", w.Kind, w.Namespace, w.Name)
	switch {
	case w.FailuresAllowed != nil && *w.FailuresAllowed == 0:
		return fmt.Sprintf("%s: %s evicted in step %d, and its backoffLimit allows no further failure", name, counted(w.Pods, "pod is", "pods are"), w.Step)
	case w.FailuresAllowed != nil:
		return fmt.Sprintf("%s: %d pods are evicted in step %d, and its backoffLimit allows only %d further failures", name, w.Pods, w.Step, *w.FailuresAllowed)
	case w.Pods == 1:
		return fmt.Sprintf("%s: its only ready pod is evicted in step %d", name, w.Step)
	}
	return fmt.Sprintf("%s: all %d ready pods are evicted together in step %d", name, w.Pods, w.Step)
}

// summaryText is the last line of a plan.
func summaryText(plan *plan, now time.Time) string {
	s := &plan.Summary
	switch {
	case s.Nodes == 0:
		return "Summary: no node is selected."
	case s.Pods == 0:
		return "Summary: there is no pod to drain."
	}
	steps := len(filtered(plan.Steps, func(step stepView) bool { return step.Pods > 0 }))
	text := fmt.Sprintf("Summary: %s on %s in %s", counted(s.Pods, "pod", "pods"), counted(s.Nodes, "node", "nodes"), counted(steps, "step", "steps"))
	if parts := listParts(
		part{s.Blocked, "currently blocked by budgets"},
		part{s.Intercepted, "with interceptors that act first"},
		part{s.Replaced, "replaced by their Deployments first"},
		part{s.Skipped, "skipped"},
		part{s.KeptByOthers, "kept by other maintenances"},
		part{s.StayingAgents, "staying with skipped pods"},
		part{s.ComingBack, "that come back"},
		part{s.WaitedFor, s.waitedForText(now)},
		part{s.Unhandled, "not evicted"},
		part{s.Unmanaged, "unmanaged"},
		part{s.LocalStorage, "with local data"},
		part{s.IdleResponders, "with responders that do not act"},
	); parts != "" {
		text += ": " + parts
	}
	return text + "."
}

// writeWidePlan prints one line for each pod, without a limit of its width.
func writeWidePlan(out io.Writer, plan *plan, now time.Time) error {
	w := printers.GetNewTabWriter(out)
	fmt.Fprintln(w, "NODE\tSTEP\tTYPE\tPRIORITY\tNAMESPACE\tPOD\tINTERCEPTORS\tBUDGETS\tREMARKS")
	for _, node := range plan.Nodes {
		for _, pod := range node.Pods {
			cells := plaintext.Lines([]string{
				node.Name, pod.stepText(), string(pod.Type), fmt.Sprint(pod.Priority), pod.Namespace, pod.Name,
				cmp.Or(strings.Join(pod.Interceptors, ","), "<none>"), cmp.Or(strings.Join(pod.Budgets, ","), "<none>"), cmp.Or(strings.Join(pod.details(now), "; "), "<none>"),
			})
			fmt.Fprintln(w, strings.Join(cells, "\t"))
		}
	}
	return w.Flush()
}

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
	if shared := plan.SharedWindows; len(shared) > 0 {
		// When that is, only the controller computes.
		p.wrappedOwn("    ", fmt.Sprintf("The windows of the NodeMaintenanceBudgets %s must be open at the same time. When that is, or that it never is, the maintenance says: kubectl maintenance status %s",
			listFirst(shared, maxBatchNodes), name))
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
			p.wrapped(fmt.Sprintf("      %d. ", i+1), listFirst(batch, maxBatchNodes))
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
	return text + ": " + listFirst(s.Nodes, maxBatchNodes)
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

func (p *rolloutPlan) durationText() string {
	if p.Pace == nil {
		return "unknown, because no node was given back in the last hour"
	}
	pace := time.Duration(p.Pace.AverageSeconds) * time.Second
	text := fmt.Sprintf("about %s at the pace of the last hour, in which %s took %s on average", duration.HumanDuration(time.Duration(len(p.Batches))*pace),
		counted(p.Pace.Nodes, "node", "nodes"), duration.HumanDuration(pace))
	if slices.ContainsFunc(p.Budgets, func(b nodeBudgetPlan) bool { return b.Open != nil }) {
		text += ", without the time between windows"
	}
	return text
}

func (p *page) addCapacityHint(hint *capacityHint) {
	text := fmt.Sprintf("Capacity (a hint): the %s to move in batch %d, the largest, ", counted(hint.Pods, "pod", "pods"), hint.Batch)
	places := counted(hint.SchedulableNodes, "node that stays schedulable", "nodes that stay schedulable")
	if len(hint.Unplaced) == 0 {
		text += "would fit on the " + places
	} else {
		text += fmt.Sprintf("would not all fit on the %s: %s", places, hint.unplacedText())
	}
	p.wrapped(mark(len(hint.Unplaced) > 0), text+". Volumes, affinity between pods and spreading are not considered.")
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
			reason = "no node has enough " + strings.Join(mapped(pod.Lacks, corev1.ResourceName.String), " and ") + " for "
		}
		names[reason] = append(names[reason], pod.Namespace+"/"+pod.Name)
	}
	var texts []string
	for _, reason := range sortedNames(names) {
		pods := names[reason]
		texts = append(texts, fmt.Sprintf("%s%s (%s)", reason, counted(len(pods), "pod", "pods"), listFirst(pods, maxLinePods)))
	}
	return strings.Join(texts, "; ")
}

// keptText says why a pod is not evicted, and when the drain goes on.
func (p *podPlan) keptText(now time.Time) string {
	switch {
	case len(p.KeptBy) > 0:
		return fmt.Sprintf("stays until NodeMaintenance %s has ended, which skips it: the node is not drained before", strings.Join(p.KeptBy, ", "))
	case p.Action == actionSkip:
		return "stays: spec.podPolicies skips it"
	case p.EndsBy != nil:
		return fmt.Sprintf("not evicted: waited for until it ends, at the latest at %s", timeAndRemainder(now, *p.EndsBy))
	}
	return "not evicted: waited for until it ends, without a limit: it has no activeDeadlineSeconds"
}

// waitedForText says how many pods are waited for, and until when.
func (s *planSummary) waitedForText(now time.Time) string {
	var limits []string
	if s.WaitedForUntil != nil {
		limits = append(limits, "at the latest at "+timeAndRemainder(now, *s.WaitedForUntil))
	}
	limits = appendIf(limits, s.WaitedForEndless > 0, fmt.Sprintf("%d of them without a limit", s.WaitedForEndless))
	return "waited for until they end (" + strings.Join(limits, "; ") + ")"
}

// volumesText says what a drained node needs besides that no pod is left; empty if it needs nothing.
func (p *plan) volumesText() string {
	if p.DrainedWhen == nil || p.DrainedWhen.Volumes == "" {
		return ""
	}
	return fmt.Sprintf("A node without pods is drained when its volumes are %s, or after %s.", p.DrainedWhen.Volumes,
		duration.HumanDuration(time.Duration(ptr.Deref(p.DrainedWhen.TimeoutSeconds, defaultDetachSeconds))*time.Second))
}

// defaultDetachSeconds is the default of the API, for a manifest that is not stored yet.
const defaultDetachSeconds = 600
