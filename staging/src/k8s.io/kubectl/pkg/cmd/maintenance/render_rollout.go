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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/utils/ptr"
)

// maxRolloutRows is how many nodes of a rollout are shown one by one: there may be thousands, and few
// of them need attention.
const maxRolloutRows = 10

// addRollout appends how far the nodes are, and what they wait for. It names failed nodes if they do
// not all get a row below.
func (p *page) addRollout(v *view, now time.Time, rows int) {
	r := v.Rollout
	if r.counted {
		p.field("Rollout", r.countsText())
	}
	p.ownField("Waiting", waitsText(v, now))
	if !r.Halted && (!v.hasPhases() || r.FailedNodes > min(rows, maxRolloutRows)) {
		p.field("Failed", r.failedText())
	}
	if !v.isPlainDrain() {
		p.field("Drain", v.DrainMessage)
	}
	p.ownField("Next", v.nextText())
	p.ownField("Check", v.overdueText(now))
	p.ownField("Check", v.unreleasedText(now))
}

// isPlainDrain reports whether the message of the drain of a rollout says no more than the phases of
// its nodes.
func (v *view) isPlainDrain() bool {
	return v.Rollout != nil && slices.Contains([]string{"Draining", "Drained", "Waiting for admission"}, v.DrainMessage)
}

// nextText says what is expected of people; empty if nothing is.
func (v *view) nextText() string {
	r := v.Rollout
	switch {
	case v.isAbandoned():
		return ""
	case r.phases[phaseDrained] > r.finished && r.CompleteNodes != coordinationv1alpha1.NodeCompletionRebooted && (r.own || r.WaitingNodes > 0):
		return fmt.Sprintf("when the work on a drained node is done: kubectl maintenance complete %s NODE", v.Name)
	case r.CompleteNodes == coordinationv1alpha1.NodeCompletionRebooted && r.phases[phaseDrained] > r.finished+r.bootUnknown && r.phases[phaseDraining]+r.phases[phaseReturning] == 0:
		// While other nodes move on, something reboots them.
		return "reboot the drained nodes: each is released when it is Ready again"
	case r.bootUnknown > 0:
		return fmt.Sprintf("when the work on a node whose boot ID is unknown is done: kubectl maintenance complete %s NODE", v.Name)
	}
	return ""
}

// isAbandoned reports whether the maintenance is gone or is being deleted: its nodes are released, however
// they looked last.
func (v *view) isAbandoned() bool { return v.isGone() || v.Deleting }

// unreleasedPatience is how long a node may be Ready, or its work done, before a person should look why
// it is not released. The controller needs 30 seconds after a reboot.
const unreleasedPatience = time.Minute

// overdueText says where to look if nodes were rebooted and are not released; empty if all are in time.
// Their phases look normal while no controller acts on them.
func (v *view) overdueText(now time.Time) string {
	if v.isAbandoned() {
		return ""
	}
	overdue := filtered(v.Nodes, func(node *nodeView) bool { return node.isOverdue(now) })
	if len(overdue) == 0 {
		return ""
	}
	return fmt.Sprintf("%s not released, so kube-controller-manager may not run; %s", counted(len(overdue), "rebooted node is", "rebooted nodes are"), seeLease)
}

// unreleasedText says where to look if the work on a node is done, and the node itself does not say why it
// is not released; empty if there is none.
func (v *view) unreleasedText(now time.Time) string {
	if v.isAbandoned() {
		return ""
	}
	for _, node := range v.Nodes {
		if isOver(unreleasedPatience, node.unexplainedSince, now) {
			return node.Name + " is " + node.unreleasedText()
		}
	}
	return ""
}

// unreleasedText says how to see why a node is not released that itself does not say it: usually, because of
// pods of DaemonSets. The event of a failed node does not help: it says what was missing when the node failed,
// and is gone later.
func (n *nodeView) unreleasedText() string {
	return notReleased + "; if this lasts, see its DaemonSet pods: kubectl get pods -A --field-selector spec.nodeName=" + n.Name
}

// isOverdue reports whether the node was rebooted, and has been Ready for so long that the controller
// should have released it.
func (n *nodeView) isOverdue(now time.Time) bool {
	return n.rebooted && n.ready && isOver(unreleasedPatience, cmp.Or(n.seenReadySince, n.readySince), now)
}

// isOver reports whether more than the duration has passed since a time; false if that is unknown.
func isOver(limit time.Duration, since *metav1.Time, now time.Time) bool {
	return since != nil && now.Sub(since.Time) > limit
}

// unhealthyText says why the node is not released, as far as can be seen; empty if it is not known to wait
// for anything but its work.
func (n *nodeView) unhealthyText(now time.Time) string {
	switch {
	case !n.rebooted || n.completed:
		return n.unhealthy
	case !n.ready:
		return "rebooted, not Ready"
	}
	text := "rebooted, Ready"
	if n.readySince != nil {
		text += " for " + elapsed(now, *n.readySince)
	}
	if n.isOverdue(now) {
		text += ", " + notReleased
	}
	return text
}

// countsText counts the nodes.
func (r *rolloutView) countsText() string {
	text := fmt.Sprintf("%d done, ", r.DoneNodes-r.SkippedNodes)
	if r.SkippedNodes > 0 {
		text += fmt.Sprintf("%d skipped, ", r.SkippedNodes)
	}
	text += fmt.Sprintf("%d in progress", r.AdmittedNodes)
	if parts := listParts(part{r.phases[phaseDraining], "draining"}, part{r.phases[phaseDrained], "drained"},
		part{r.phases[phaseReturning], "returning"}, part{r.FailedNodes, "failed"}); parts != "" {
		text += " (" + parts + ")"
	}
	return fmt.Sprintf("%s, %d waiting", text, r.WaitingNodes)
}

// waitsText says what nodes wait for, and how to end that if a command does.
func waitsText(v *view, now time.Time) string {
	if v.Rollout.Paused {
		return v.pausedText() // Nothing else matters.
	}
	formatTime := func(at metav1.Time) string { return windowTime(now, at) }
	return strings.Join(mapped(v.Rollout.WaitingFor, func(wait coordinationv1alpha1.NodeMaintenanceWait) string {
		return fmt.Sprintf("%d %s", wait.NodeCount, namedCause(maintenance.WaitCause(&wait, formatTime), v.Name, wait.Budget))
	}), "; ")
}

// namedCause adds the name to the command at the end of a cause, which shows all objects without it.
func namedCause(cause, name, budget string) string {
	switch {
	case strings.HasSuffix(cause, "kubectl describe nodemaintenance"):
		return cause + " " + name
	case strings.HasSuffix(cause, "kubectl describe nodemaintenancebudget"):
		return cause + " " + budget
	}
	return cause
}

func (v *view) pausedText() string { return "paused; to go on: kubectl maintenance resume " + v.Name }

// failedText names the nodes that did not come back; empty if there is none.
func (r *rolloutView) failedText() string {
	if r.FailedNodes == 0 {
		return ""
	}
	text := r.failedNames() + " did not come back in time"
	if r.AcknowledgedNodes > 0 {
		text += fmt.Sprintf(" (%d acknowledged)", r.AcknowledgedNodes)
	}
	return text
}

func (r *rolloutView) failedNames() string {
	// The list and the number may be of different times.
	names := r.Failed[:min(len(r.Failed), r.FailedNodes)]
	if len(names) == 0 {
		return counted(r.FailedNodes, "node", "nodes")
	}
	return listPods(names, r.FailedNodes)
}

// haltedText says why no further node is drained, and what to do.
func (v *view) haltedText() string {
	r, names, them := v.Rollout, v.Rollout.failedNames(), "them"
	if r.AcknowledgedNodes > 0 && len(r.halting) > 0 { // The status names all that have failed.
		names = r.halting.names()
	}
	if r.FailedNodes-r.AcknowledgedNodes == 1 {
		them = "it"
	}
	return fmt.Sprintf("halted, because %s did not come back in time, and maxFailedNodes is %d: repair %s, or go on without %s: kubectl maintenance resume %s",
		names, *r.MaxFailedNodes, them, them, v.Name)
}

// isHalted reports whether the maintenance needs an intervention to go on.
func (v *view) isHalted() bool {
	return v.Rollout != nil && v.Rollout.Halted && v.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain && v.Outcome == ""
}

// addRolloutNodes appends the nodes that need attention most, at most as many as there are rows.
func (p *page) addRolloutNodes(v *view, now time.Time, rows int) {
	shown, hidden := v.rolloutNodesToShow(min(rows, maxRolloutRows))
	if len(shown) == 0 {
		return
	}
	p.add("")
	const counts = "%-*s  %4s  %7s  "
	p.addTable(shown, fmt.Sprintf(counts, barWidth+2, "PROGRESS", "PODS", "BLOCKED"), func(name string, node *nodeView) {
		left, blocked := fmt.Sprint(node.podsLeft()), fmt.Sprint(node.PodsBlocked)
		if node.Phase == phaseWaiting || node.Phase == phaseDone {
			left, blocked = "-", "-" // It has pods, which are not counted.
		}
		p.wrapped(name+fmt.Sprintf(counts, barWidth+2, rolloutBar(node), left, blocked), phaseText(v, node, now))
	})
	if hidden > 0 {
		p.add("  ... and %s in progress", counted(hidden, "more node", "more nodes"))
	}
}

// rolloutNodesToShow returns all nodes if there are no more than rows. Otherwise it returns those
// that are under way, the most urgent ones first, and how many of them are hidden.
func (v *view) rolloutNodesToShow(rows int) (shown []*nodeView, hidden int) {
	if len(v.Nodes) <= rows {
		return v.Nodes, 0
	}
	if v.underWay == nil {
		v.underWay = v.mostUrgent()
	}
	shown = v.underWay[:min(rows, len(v.underWay))]
	return shown, len(v.underWay) - len(shown)
}

// mostUrgent returns the nodes that are under way: failed ones first, then those with blockers, then
// by phase, and those that have waited longest first.
func (v *view) mostUrgent() []*nodeView {
	underWay := filtered(v.Nodes, func(node *nodeView) bool { return node.Phase.isUnderWay() || v.isUncordoned(node) })
	rank := func(node *nodeView) int {
		// A node that is Ready after its reboot is released within a minute, or something is wrong.
		returned := node.rebooted && node.ready
		if node.Phase != phaseFailed && (node.PodsBlocked > 0 || node.stuck || v.isUncordoned(node) || returned) {
			return 1
		}
		return 2 * slices.Index(urgency, node.Phase)
	}
	since := func(node *nodeView) int64 { return ptr.Deref(node.PhaseSince, metav1.Unix(0, 0)).Unix() }
	slices.SortStableFunc(underWay, func(a, b *nodeView) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(since(a), since(b)))
	})
	return underWay
}

// rolloutBar is full of # also for a node that was drained and runs pods again.
func rolloutBar(node *nodeView) string {
	switch node.Phase {
	case phaseDrained, phaseReturning, phaseFailed, phaseDone:
		if node.Skipped {
			break // Its pods are not counted.
		}
		return "[" + strings.Repeat("#", barWidth) + "]"
	}
	return bar(node, barWidth)
}

// phaseText is the state of a node of a rollout.
func phaseText(v *view, node *nodeView, now time.Time) string {
	switch node.Phase {
	case phaseWaiting:
		return "Waiting"
	case phaseDone:
		if node.Skipped {
			return fmt.Sprintf("Skipped %s ago: completed before it was drained", elapsed(now, *node.PhaseSince))
		}
		return fmt.Sprintf("Done %s ago", elapsed(now, *node.PhaseSince))
	case phaseDrained, phaseReturning, phaseFailed:
	default:
		return nodeState(v, node)
	}
	text := fmt.Sprintf("%s for %s", node.Phase, elapsed(now, *node.PhaseSince))
	if unhealthy := node.unhealthyText(now); unhealthy != "" {
		text += ", " + unhealthy
	}
	if v.isUncordoned(node) {
		text += ", not cordoned"
	}
	return text
}

// rolloutChanges returns lines for the changes of a rollout as a whole.
func rolloutChanges(old, v *view, now time.Time) []string {
	if v.Rollout == nil {
		return nil
	}
	var halts []string
	if v.isHalted() && !old.isHalted() {
		halts = append(halts, plaintext.Line("blocked: "+v.haltedText()))
	}
	halts = appendIf(halts, !v.isHalted() && old.isHalted(), "resolved: no longer halted")
	if !v.observed {
		return halts
	}
	before, r, known := &rolloutView{}, v.Rollout, old.Rollout != nil && old.observed
	if known {
		before = old.Rollout
	}
	lines := appendIf(nil, !known, r.countsText())
	lines = appendIf(lines, r.Paused && !before.Paused, v.pausedText())
	lines = appendIf(lines, !r.Paused && before.Paused, "resumed")
	lines = append(lines, halts...)
	waits := waitsText(v, now)
	lines = appendIf(lines, waits != "" && !slices.Equal(waitCauses(before), waitCauses(r)) && !r.Paused, "waiting: "+waits)
	return plaintext.Lines(lines)
}

// waitCauses returns what nodes wait for, without numbers.
func waitCauses(r *rolloutView) []string {
	return slices.Sorted(slices.Values(mapped(r.WaitingFor, func(wait coordinationv1alpha1.NodeMaintenanceWait) string {
		return string(wait.Reason) + " " + wait.Budget
	})))
}

// phaseChange returns the line for a node that has reached a phase that the number of its pods does
// not show; empty if there is none. Nodes that had reached it before get none.
func phaseChange(v *view, was, node *nodeView) string {
	if was == nil || was.Phase == "" || was.Phase == node.Phase {
		return ""
	}
	switch node.Phase {
	case phaseReturning:
		return node.Name + ": the work is done, waiting until it is healthy"
	case phaseFailed:
		return node.Name + ": did not come back in time"
	case phaseDone:
		if node.Skipped {
			return node.Name + ": skipped: completed before it was drained"
		}
		return fmt.Sprintf("%s: done (%d of %s)", node.Name, v.Rollout.DoneNodes-v.Rollout.SkippedNodes, counted(v.SelectedNodes, "node", "nodes"))
	}
	return ""
}
