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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/component-helpers/plaintext"
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

// renderPlan returns the text of a plan.
func renderPlan(plan *plan, width int, now time.Time) string {
	p := &page{width: width}
	title := "A drain of " + counted(plan.Summary.Nodes, "node", "nodes")
	if plan.Maintenance != "" {
		title = fmt.Sprintf("NodeMaintenance %s, a drain of %s", plan.Maintenance, counted(plan.Summary.Nodes, "node", "nodes"))
	}
	p.wrapped("", title+". Nothing is changed by this command.")
	if text := plan.missingText(); text != "" {
		p.wrapped("! ", text)
	}
	if plan.Summary.Pods > 0 {
		p.addSteps(plan)
	}
	if text := plan.volumesText(); text != "" {
		p.add("")
		p.wrapped("", text)
	}
	for i := range plan.Nodes {
		p.add("")
		p.addNodePlan(&plan.Nodes[i], now)
	}
	if len(plan.Budgets) > 0 {
		p.addBudgets(plan)
	}
	if len(plan.Warnings) > 0 {
		p.addWarnings(plan.Warnings)
	}
	if plan.Rollout != nil {
		p.addRolloutPlan(plan.Rollout, cmp.Or(plan.Maintenance, "NAME"), now)
	}
	p.add("")
	p.wrapped("", summaryText(plan, now))
	if plan.PoliciesDropped {
		p.wrapped("", "The server drops spec.podPolicies and spec.drainedWhen: its feature gate NodeMaintenanceBudgets is off. This plan is without them.")
	}
	if plan.has(noteNeedsDaemonSet) {
		p.wrapped("", "If the feature gate NodeMaintenanceAwareDaemonSet is off in the cluster, DaemonSet pods stay, and do not count.")
	}
	if plan.has(noteNeedsKubelet) {
		p.wrapped("", "If the feature gate NodeMaintenanceAwareKubelet is off in the kubelet of a node, its static pods stay, and do not count.")
	}
	if text := plan.respondersText(); text != "" {
		p.wrapped("", text)
	}
	if len(plan.Unreadable) > 0 {
		p.wrapped("", fmt.Sprintf("Without the permission to list %s, this plan is incomplete.", strings.Join(plan.Unreadable, ", ")))
	}
	return p.String()
}

// maxMissingNodes is how many nodes that do not exist are named.
const maxMissingNodes = 10

// missingText names nodes that the selector names and that do not exist; empty if there are none.
func (p *plan) missingText() string {
	if len(p.MissingNodes) == 0 {
		return ""
	}
	return fmt.Sprintf("spec.nodeSelector names %s: %s", counted(len(p.MissingNodes), "node that does not exist", "nodes that do not exist"),
		plaintext.Line(listPods(p.MissingNodes[:min(maxMissingNodes, len(p.MissingNodes))], len(p.MissingNodes))))
}

func (p *plan) has(note podNote) bool {
	return slices.ContainsFunc(p.Nodes, func(node nodePlan) bool {
		return slices.ContainsFunc(node.Pods, func(pod podPlan) bool { return slices.Contains(pod.Remarks, note) })
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
	for i, cover := range node.CoveredBy {
		separator := ", "
		if i == 0 {
			separator = ", also maintained by "
		}
		text += fmt.Sprintf("%s%s (%s)", separator, cover.Name, cover.Stage)
	}
	p.wrapped("", text)
	if len(node.Pods) == 0 {
		return
	}
	const row = "  %4s  %-9s  %10s  "
	p.add(row+"POD", "STEP", "TYPE", "PRIORITY")
	indent := strings.Repeat(" ", len(fmt.Sprintf(row, "", "", "")))
	for i := range node.Pods {
		pod := &node.Pods[i]
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
	if text := p.keptText(now); p.isKept() && text != "" {
		details = append(details, text)
	}
	if p.Step == 0 && p.Action != actionSkip {
		details = append(details, "! not evicted: no entry of the drain plan selects it")
	}
	if p.Blocked != "" {
		details = append(details, "! "+p.Blocked)
	}
	if named := p.namedInterceptors(); len(named) > 0 {
		details = append(details, "first acts "+strings.Join(named, ", then "))
	}
	if len(p.IdleResponders) > 0 {
		text := "does not act: responder " + strings.Join(p.IdleResponders, ", ")
		if len(p.Requesters) > 0 {
			text += ", which the EvictionRequest of the pod lacks"
		}
		details = append(details, text)
	}
	for _, note := range p.Remarks {
		mark := ""
		if note.hinders() {
			mark = "! "
		}
		text := noteTexts[note]
		if note == noteCannotBeReplaced {
			text += ": " + p.ReplacementObstacle
		}
		details = append(details, mark+text)
		if note.replaces() && p.BlockedUnreplaced != "" {
			details = append(details, "if that fails, its PodDisruptionBudget blocks it: "+strings.Join(p.Budgets, ", "))
		}
	}
	if len(p.Requesters) > 0 {
		details = append(details, "eviction already requested by "+strings.Join(p.Requesters, ", "))
	}
	return details
}

func (p *page) addBudgets(plan *plan) {
	p.add("")
	p.add("PodDisruptionBudgets (! allows no disruption now):")
	for _, budget := range plan.Budgets {
		mark := "    "
		if budget.DisruptionsAllowed <= 0 {
			mark = "  ! "
		}
		p.wrapped(mark, fmt.Sprintf("%s: %s, %d may be disrupted at a time", budget.Name, counted(budget.Pods, "pod", "pods"), max(0, budget.DisruptionsAllowed)))
	}
}

// addWarnings lists disruptions that no budget and no controller prevents.
func (p *page) addWarnings(warnings []warning) {
	p.add("")
	p.add("Warnings (a PodDisruptionBudget would prevent most of them):")
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
	var parts []string
	for _, part := range []struct {
		count int
		text  string
	}{
		{s.Blocked, "currently blocked by budgets"},
		{s.Intercepted, "with interceptors that act first"},
		{s.Replaced, "replaced by their Deployments first"},
		{s.Skipped, "skipped"},
		{s.KeptByOthers, "kept by other maintenances"},
		{s.StayingAgents, "staying with skipped pods"},
		{s.ComingBack, "that come back"},
		{s.WaitedFor, s.waitedForText(now)},
		{s.Unhandled, "not evicted"},
		{s.Unmanaged, "unmanaged"},
		{s.LocalStorage, "with local data"},
		{s.IdleResponders, "with responders that do not act"},
	} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.text))
		}
	}
	steps := len(plan.Steps) - len(slices.DeleteFunc(slices.Clone(plan.Steps), func(step stepView) bool { return step.Pods > 0 }))
	text := fmt.Sprintf("Summary: %s on %s in %s", counted(s.Pods, "pod", "pods"), counted(s.Nodes, "node", "nodes"), counted(steps, "step", "steps"))
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text + "."
}

// writeWidePlan prints one line for each pod, without a limit of its width.
func writeWidePlan(out io.Writer, plan *plan, now time.Time) error {
	w := printers.GetNewTabWriter(out)
	fmt.Fprintln(w, "NODE\tSTEP\tTYPE\tPRIORITY\tNAMESPACE\tPOD\tINTERCEPTORS\tBUDGETS\tREMARKS")
	for _, node := range plan.Nodes {
		for i := range node.Pods {
			pod := &node.Pods[i]
			cells := plaintext.Lines([]string{
				node.Name, pod.stepText(), string(pod.Type), fmt.Sprint(pod.Priority), pod.Namespace, pod.Name,
				orNone(strings.Join(pod.Interceptors, ",")), orNone(strings.Join(pod.Budgets, ",")), orNone(strings.Join(pod.details(now), "; ")),
			})
			fmt.Fprintln(w, strings.Join(cells, "\t"))
		}
	}
	return w.Flush()
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}
