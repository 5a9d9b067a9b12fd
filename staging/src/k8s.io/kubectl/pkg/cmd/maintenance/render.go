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

	"github.com/mitchellh/go-wordwrap"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
)

const (
	// defaultWidth is how wide text may be where no terminal says otherwise.
	defaultWidth = 80

	// barWidth is how many cells a progress bar has.
	barWidth = 14

	// maxNodeRows is how many nodes of a maintenance are shown one by one. A script can
	// ask for all of them.
	maxNodeRows = 40

	// maxNameWidth is how long the name of a node may be to share a line with its bar.
	maxNameWidth = 20
)

// page collects lines of text of a certain width.
type page struct {
	width int
	lines []string
}

// add appends a line, which the caller knows to fit.
func (p *page) add(format string, args ...any) {
	p.lines = append(p.lines, strings.TrimRight(plaintext.Escape(fmt.Sprintf(format, args...)), " "))
}

// wrapped appends a text behind a prefix. Its further lines are indented as far as the
// prefix is long.
func (p *page) wrapped(prefix, text string) {
	for i, line := range wrap(text, p.width-len(prefix)) {
		if i > 0 {
			prefix = strings.Repeat(" ", len(prefix))
		}
		p.add("%s%s", prefix, line)
	}
}

// cut appends a text behind a prefix, as much of it as one line takes.
func (p *page) cut(prefix, text string) {
	const more = "..."
	line := []rune(prefix + plaintext.Line(text))
	if len(line) > p.width {
		line = append(line[:max(0, p.width-len(more))], []rune(more)...)
	}
	p.add("%s", string(line))
}

func (p *page) String() string { return strings.Join(p.lines, "\n") + "\n" }

// wrap breaks a text into lines. What others wrote may hold anything, so blanks are
// joined, and words that do not fit are broken too.
func wrap(text string, width int) []string {
	width = max(width, 1)
	var lines []string
	for _, line := range strings.Split(wordwrap.WrapString(plaintext.Line(text), uint(width)), "\n") {
		for runes := []rune(line); ; {
			if len(runes) <= width {
				lines = append(lines, string(runes))
				break
			}
			lines = append(lines, string(runes[:width]))
			runes = runes[width:]
		}
	}
	return lines
}

// renderStatus returns the text for some maintenances.
func renderStatus(views []view, now time.Time, width int) string {
	return renderPage(views, now, width, fullLayout(views)).String()
}

func renderPage(views []view, now time.Time, width int, layout layout) *page {
	p := &page{width: width}
	for i := range views {
		if layout.compact {
			p.addCompact(&views[i], now, layout.blockers)
			continue
		}
		if i > 0 {
			p.add("")
		}
		p.addView(&views[i], now, layout)
	}
	return p
}

func (p *page) addView(v *view, now time.Time, layout layout) {
	p.wrapped("", headline(v, now))
	if !layout.noHead {
		p.addHead(v, now)
	}
	if layout.blockersFirst {
		p.addBlockers(v, now, layout)
	}
	// Without a row there is nothing to add to the headline, which counts them.
	if len(v.Nodes) > 0 && layout.nodeRows > 0 {
		p.add("")
		p.addNodes(v, layout.nodeRows)
	}
	if !layout.blockersFirst {
		p.addBlockers(v, now, layout)
	}
}

// addHead appends what is known of the maintenance as a whole.
func (p *page) addHead(v *view, now time.Time) {
	p.field("Reason", v.Reason)
	if !v.observed && now.Sub(v.created) >= controllerPatience {
		p.wrapped("  ", "The controller has not acted on the last change yet. If that stays so: is the feature gate DeclarativeNodeMaintenance enabled in kube-controller-manager?")
	}
	if v.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
		return
	}
	if v.counted {
		p.field("Pods", podsText(v))
	}
	p.field("Targets", targetsText(v.Targets))
	p.field("Drain", v.DrainMessage)
	if v.ETA != nil && !v.ETA.Time.Before(now) {
		p.field("ETA", timeAndRemainder(now, *v.ETA))
	}
}

// field appends a line of the head, if there is something to say.
func (p *page) field(title, text string) {
	if text != "" {
		p.wrapped(fmt.Sprintf("  %-9s", title+":"), text)
	}
}

// headline says in one line how far the maintenance is.
func headline(v *view, now time.Time) string {
	if v.isGone() {
		return v.Name + ": deleted"
	}
	text := fmt.Sprintf("%s: %s", v.Name, v.Stage)
	if v.StageStarted != nil {
		text += " for " + elapsed(now, *v.StageStarted)
	} else if v.Stage != coordinationv1alpha1.NodeMaintenanceStageIdle {
		text += ", not started yet"
	}
	switch {
	case v.Outcome == outcomeCompleted && v.isHeld():
		text += ", done"
	case v.Outcome == outcomeCompleted:
		text += ", done, the nodes are given back"
	case v.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete:
		text += ", giving the nodes back"
	case v.SelectedNodes == 0:
		text += ", selects no node"
	case v.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain:
		text += fmt.Sprintf(", %d of %s drained", v.DrainedNodes, counted(v.SelectedNodes, "node", "nodes"))
	default:
		text += ", " + counted(v.SelectedNodes, "node", "nodes")
	}
	if v.Deleting {
		text += ", being deleted"
	}
	return text
}

func podsText(v *view) string {
	left := v.PodsPending + v.PodsEvicting
	if left == 0 {
		return "none left"
	}
	text := fmt.Sprintf("%d left: %d not asked yet, %d asked to leave", left, v.PodsPending, v.PodsEvicting)
	if v.PodsBlocked > 0 {
		text += fmt.Sprintf(", %d of them blocked", v.PodsBlocked)
	}
	return text
}

// targetsText says up to which priority pods of which type are asked to leave.
func targetsText(targets []corev1.DrainPlanEntry) string {
	var texts []string
	for _, target := range targets {
		texts = append(texts, entryText(target))
	}
	return strings.Join(texts, "; ")
}

func entryText(entry corev1.DrainPlanEntry) string {
	text := fmt.Sprintf("%s pods up to priority %d", entry.PodType, entry.PodPriority)
	if selector := metav1.FormatLabelSelector(entry.PodSelector); entry.PodSelector != nil && selector != "<none>" {
		text += " with " + selector
	}
	return text
}

// addNodes appends a table. The message takes what is left of the width; a name that is
// too long for its column gets a line of its own.
func (p *page) addNodes(v *view, rows int) {
	nodes, hidden := v.nodesToShow(rows)
	names := len("NODE")
	for _, node := range nodes {
		if len(node.Name) <= maxNameWidth {
			names = max(names, len(node.Name))
		}
	}
	if v.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
		p.add("  %-*s  STATE", names, "NODE")
		for i := range nodes {
			p.wrapped(p.nodeName(nodes[i].Name, names), nodeState(v, &nodes[i]))
		}
		p.addHidden(v, hidden)
		return
	}
	const counts = "%-*s  %7s  %8s  %7s  "
	p.add("  %-*s  "+counts+"STATE", names, "NODE", barWidth+2, "PROGRESS", "PENDING", "EVICTING", "BLOCKED")
	for i := range nodes {
		node := &nodes[i]
		row := p.nodeName(node.Name, names) + fmt.Sprintf(counts, barWidth+2, bar(node, barWidth),
			fmt.Sprint(node.PodsPending), fmt.Sprint(node.PodsEvicting), fmt.Sprint(node.PodsBlocked))
		p.wrapped(row, nodeState(v, node))
	}
	p.addHidden(v, hidden)
}

// nodesToShow returns all nodes, or of many those where something is to be seen: blocked
// ones, then others that are not drained.
func (v *view) nodesToShow(rows int) (shown, hidden []nodeView) {
	nodes := v.Nodes
	if len(nodes) <= rows {
		return nodes, nil
	}
	rank := func(node nodeView) int {
		switch {
		case node.PodsBlocked > 0 || node.stuck || v.isUncordoned(&node):
			return 0
		case !node.Drained:
			return 1
		}
		return 2
	}
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, func(a, b nodeView) int { return cmp.Compare(rank(a), rank(b)) })
	return sorted[:rows], sorted[rows:]
}

func (p *page) addHidden(v *view, hidden []nodeView) {
	if len(hidden) == 0 {
		return
	}
	if v.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
		p.add("  ... and %s", counted(len(hidden), "more node", "more nodes"))
		return
	}
	drained := 0
	for _, node := range hidden {
		if node.Drained {
			drained++
		}
	}
	p.add("  ... and %s, %d of them drained", counted(len(hidden), "more node", "more nodes"), drained)
}

// nodeName returns the first column, which is empty below a name that is too long.
func (p *page) nodeName(name string, width int) string {
	if len(name) > width {
		p.add("  %s", name)
		name = ""
	}
	return fmt.Sprintf("  %-*s  ", width, name)
}

func nodeState(v *view, node *nodeView) string {
	switch {
	case v.isUncordoned(node) && node.Message != "":
		return node.Message + ", not cordoned"
	case v.isUncordoned(node) && v.Stage == coordinationv1alpha1.NodeMaintenanceStageCordon:
		return "Not cordoned, see: kubectl describe node " + node.Name
	case v.isUncordoned(node):
		return "Not cordoned"
	case v.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain && node.Message != "":
		return node.Message
	case len(node.HeldBy) > 0:
		return "Cordoned, still held by " + strings.Join(node.HeldBy, ", ")
	case node.Cordoned:
		return "Cordoned"
	}
	return "Schedulable"
}

// isUncordoned reports whether the controller has acted, and the node is not cordoned as it
// should be: that is refused, or somebody makes it schedulable again.
func (v *view) isUncordoned(node *nodeView) bool {
	cordons := v.Stage == coordinationv1alpha1.NodeMaintenanceStageCordon || v.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain
	return cordons && v.StageStarted != nil && v.observed && !node.Cordoned
}

// bar shows the pods of a node: gone #, blocked !, asked to leave >, not asked yet a
// dot. All # when it is drained, empty when nothing is known.
func bar(node *nodeView, width int) string {
	if node.Drained && node.podsLeft() == 0 {
		return "[" + strings.Repeat("#", width) + "]"
	}
	blocked := min(node.PodsBlocked, node.podsLeft())
	asked := max(0, node.PodsEvicting-blocked)
	cells := shares(width, node.PodsGone, blocked, asked, node.podsLeft()-blocked-asked)
	var b strings.Builder
	for i, sign := range []string{"#", "!", ">", "."} {
		b.WriteString(strings.Repeat(sign, cells[i]))
	}
	return fmt.Sprintf("[%-*s]", width, b.String())
}

// shares divides cells among counts. Whoever counts at all gets a cell, and the
// largest gives for it what rounding has left over.
func shares(cells int, counts ...int) []int {
	total, largest := 0, 0
	for i, count := range counts {
		total += count
		if count > counts[largest] {
			largest = i
		}
	}
	shares := make([]int, len(counts))
	if total == 0 {
		return shares
	}
	rest := cells
	for i, count := range counts {
		if count > 0 && i != largest {
			shares[i] = max(1, count*cells/total)
			rest -= shares[i]
		}
	}
	shares[largest] = rest
	return shares
}

// addBlockers appends what the drain waits for, what needs somebody to act first, or what keeps
// the nodes from being given back.
func (p *page) addBlockers(v *view, now time.Time, layout layout) {
	if v.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
		p.addWaiting(v, now, layout)
		return
	}
	known := true
	for _, kind := range v.Unreadable {
		known = known && kind != "pods" && kind != "evictionrequests" && kind != "nodes"
	}
	switch {
	case !known && v.Condition == "":
		p.add("")
		p.wrapped("  ", fmt.Sprintf("Without the right to list %s, nothing is known before the controller has counted the pods.", strings.Join(v.Unreadable, ", ")))
	case !known:
		p.add("")
		p.wrapped("  ", fmt.Sprintf("Without the right to list %s, all that is known is what the controller says:", strings.Join(v.Unreadable, ", ")))
		p.wrapped("    ", v.Condition)
	case len(v.Blockers) == 0 && v.NodesNotRead == 0 && v.Outcome == "" && v.Condition != "" && !v.conditionRepeats():
		// Nothing that was read explains why it is not drained.
		p.add("")
		p.add("  The controller says:")
		p.wrapped("    ", v.Condition)
	default:
		p.addWaiting(v, now, layout)
	}
	if known && v.NodesNotRead > 0 && v.Outcome == "" {
		p.add("")
		p.wrapped("  ", fmt.Sprintf("The pods of %s were not read. The controller says of all:", counted(v.NodesNotRead, "node", "nodes")))
		p.wrapped("    ", v.Condition)
	}
}

func (p *page) addWaiting(v *view, now time.Time, layout layout) {
	if len(v.Blockers) > 0 {
		p.add("")
		p.add("  WAITING FOR (! stays until somebody acts)")
		p.listBlockers(v.Blockers, now, layout)
	}
}

// listBlockers appends some of the blockers, and counts the others.
func (p *page) listBlockers(blockers []blockerView, now time.Time, layout layout) {
	shown := min(layout.blockers, len(blockers))
	for i := range blockers[:shown] {
		p.addBlocker(&blockers[i], now, layout.details)
	}
	if hidden := blockers[shown:]; len(hidden) > 0 {
		acting := len(hidden) - len(slices.DeleteFunc(slices.Clone(hidden), func(b blockerView) bool { return b.Blocked }))
		p.add("  ... and %d more, %d of them marked !", len(hidden), acting)
	}
}

func (p *page) addBlocker(b *blockerView, now time.Time, details details) {
	mark := "    "
	if b.Blocked {
		mark = "  ! "
	}
	p.wrapped(mark, blockerLabel(b, now))
	if b.Says != "" && !isPublishedOnly(coordinationv1alpha1.DrainBlockerCause(b.Cause)) {
		p.wrapped("      ", "The controller says: "+b.Says)
	}
	switch {
	case !details.include(b):
	case len(b.Messages) > 0:
		p.addMessages(b)
	default:
		if names := podNames(b); names != "" {
			p.wrapped("      ", names)
		}
	}
}

// conditionRepeats tells whether the condition says no more than the head does: how many
// pods are left, and the message of the drain.
func (v *view) conditionRepeats() bool {
	left, more, _ := strings.Cut(v.Condition, ". ")
	more = strings.TrimSuffix(more, ".")
	return strings.Contains(left, " left on ") && (more == "" || more == strings.TrimSuffix(v.DrainMessage, "."))
}

// unhandledText says that there is nobody to wait for, in the words of the condition
// Drained: nobody ends pods of this type, or a request cannot. Empty if somebody does, or
// is expected to.
//
// The API server appends the interceptors of these types to each request, whether or not
// anybody runs them. The DaemonSet controller may be about to report, until that is overdue;
// of a kubelet nothing is expected before its first report.
func unhandledText(b *blockerView) string {
	kind, yet := b.Name, " yet"
	switch {
	case b.Cause == maintenance.HoldRequestRefused:
		return counted(b.Pods, "pod", "pods") + " cannot be evicted by a request"
	case isPublishedOnly(coordinationv1alpha1.DrainBlockerCause(b.Cause)):
		return cmp.Or(b.Says, string(b.Cause)+" "+b.Name)
	case b.Cause == maintenance.HoldUnhandled:
		yet = ""
	case b.Heartbeat != nil || b.Cause != maintenance.HoldInterceptor && b.Cause != maintenance.HoldInterceptorUnresponsive:
		return ""
	case b.Name == coordinationv1alpha1.EvictionInterceptorDaemonSet && b.Cause == maintenance.HoldInterceptor:
		return ""
	case b.Name == coordinationv1alpha1.EvictionInterceptorDaemonSet:
		kind = string(corev1.PodTypeDaemonSet)
	case b.Name == coordinationv1alpha1.EvictionInterceptorKubelet:
		kind = string(corev1.PodTypeStatic)
	default:
		return ""
	}
	switch corev1.PodType(kind) {
	case corev1.PodTypeDaemonSet:
		kind = "DaemonSet "
	case corev1.PodTypeStatic:
		kind = "static "
	default:
		kind = ""
	}
	return counted(b.Pods, kind+"pod is", kind+"pods are") + " not handled by anybody" + yet
}

// blockerText says in the words of the users what pods wait for.
func blockerText(b *blockerView) string {
	if text := unhandledText(b); text != "" {
		return text
	}
	pods := counted(b.Pods, "pod", "pods")
	switch b.Cause {
	case maintenance.HoldDisruptionBudget:
		if b.Name == "" {
			return "a PodDisruptionBudget: " + pods
		}
		return fmt.Sprintf("PodDisruptionBudget %s: %s", b.Name, pods)
	case maintenance.HoldEvictionRefused:
		return fmt.Sprintf("the API server, which refuses to evict: %s", pods)
	case maintenance.HoldInterceptor:
		return fmt.Sprintf("interceptor %s: %s", b.Name, pods)
	case maintenance.HoldInterceptorUnresponsive:
		return fmt.Sprintf("interceptor %s, which does not report: %s", b.Name, pods)
	case maintenance.HoldTerminating:
		return fmt.Sprintf("the end of the grace period: %s", pods)
	case maintenance.HoldStuckTerminating:
		return fmt.Sprintf("the kubelet or a finalizer, long after the grace period: %s", pods)
	case maintenance.HoldEvicting:
		return fmt.Sprintf("evictions under way: %s", pods)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s", b.Cause, b.Name)) + ": " + pods
}

// blockerLabel says what pods wait for, and how long.
func blockerLabel(b *blockerView, now time.Time) string {
	text := blockerText(b)
	if times := blockerTimes(b, now); times != "" {
		text += " (" + times + ")"
	}
	return text
}

// blockerTimes are those that tell whether it is worth waiting.
func blockerTimes(b *blockerView, now time.Time) string {
	var times []string
	switch b.Cause {
	case maintenance.HoldInterceptor, maintenance.HoldInterceptorUnresponsive:
		switch {
		case b.Heartbeat != nil:
			times = append(times, "last heartbeat "+elapsed(now, *b.Heartbeat)+" ago")
		case b.Since != nil:
			times = append(times, "no heartbeat for "+elapsed(now, *b.Since))
		}
	case maintenance.HoldEvicting, maintenance.HoldTerminating:
	case maintenance.HoldCordonFailed, maintenance.HoldNodeStatusFailed, maintenance.HoldRequestFailed:
		// The message of the controller says since when.
	default:
		if b.Since != nil {
			times = append(times, "for "+elapsed(now, *b.Since))
		}
	}
	if b.ETA != nil {
		times = append(times, "ETA "+timeAndRemainder(now, *b.ETA))
	}
	return strings.Join(times, ", ")
}

func podNames(b *blockerView) string { return heldNames(b, len(b.First)) }

// firstPods names some pods, and counts the others.
func firstPods(b *blockerView, n int) string {
	return listPods(b.First[:min(n, len(b.First))], b.Pods)
}

func listPods(first []string, pods int) string {
	text := strings.Join(first, ", ")
	if more := pods - len(first); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// elapsed is never negative: the clock of whoever wrote the time may be ahead.
func elapsed(now time.Time, at metav1.Time) string {
	return duration.HumanDuration(max(0, now.Sub(at.Time)))
}

// timeAndRemainder is a point in time, with the date where it is not today.
func timeAndRemainder(now time.Time, at metav1.Time) string {
	local := at.In(now.Location())
	format := time.TimeOnly
	if local.YearDay() != now.YearDay() || local.Year() != now.Year() {
		format = time.DateTime
	}
	if remainder := at.Sub(now); remainder >= 0 {
		return fmt.Sprintf("%s, in %s", local.Format(format), duration.HumanDuration(remainder))
	}
	return fmt.Sprintf("%s, %s ago", local.Format(format), elapsed(now, at))
}
