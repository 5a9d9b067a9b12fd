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
	"unicode/utf8"

	"github.com/mitchellh/go-wordwrap"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
)

const (
	// defaultWidth is how wide text may be where no terminal says otherwise.
	defaultWidth = 80

	// barWidth is how many cells a progress bar has.
	barWidth = 14

	// maxNodeRows is how many nodes of a maintenance are shown one by one. -o json prints all.
	maxNodeRows = 40

	// maxNameWidth is the maximum length of the name of a node on the line of its bar.
	maxNameWidth = 20

	// maxCommandWords and maxCommandLength are the limits of what is kept on one line as a command: own
	// texts contain names.
	maxCommandWords, maxCommandLength = 8, 1000

	// noBreak is the blank at which no line is broken.
	noBreak = "\u00a0"
)

// page collects lines of text of at most width columns.
type page struct {
	width int
	lines []string
}

// add appends a line, which the caller keeps within the width.
func (p *page) add(format string, args ...any) {
	p.lines = append(p.lines, strings.TrimRight(plaintext.Escape(fmt.Sprintf(format, args...)), " "))
}

// wrapped appends a text behind a prefix, in which other clients may mention kubectl, unless it is empty. Further lines
// are indented by the length of the prefix.
func (p *page) wrapped(prefix, text string) {
	if text != "" {
		p.addLines(prefix, wrap(plaintext.Line(text), p.width-len(prefix)))
	}
}

// wrappedOwn is wrapped for a text that kubectl composes: its commands are not broken. They are indented by less
// if they do not fit otherwise.
func (p *page) wrappedOwn(prefix, text string) {
	if text != "" {
		p.addLines(prefix, wrap(keepCommands(plaintext.Line(text)), p.width-len(prefix)))
	}
}

func (p *page) addLines(prefix string, lines []string) {
	for i, line := range lines {
		indent := prefix
		if i > 0 {
			room := max(0, p.width-utf8.RuneCountInString(line))
			indent = strings.Repeat(" ", min(len(prefix), room))
		}
		p.add("%s%s", indent, line)
	}
}

// cut appends a text behind a prefix, truncated to one line.
func (p *page) cut(prefix, text string) {
	p.add("%s", truncated(prefix+plaintext.Line(text), p.width))
}

// truncated shows that a line was truncated: without its end, a command may mean something else.
func truncated(line string, width int) string {
	const more = "..."
	runes := []rune(line)
	if len(runes) <= width {
		return line
	}
	return string(runes[:max(0, width-len(more))]) + more[:min(len(more), max(0, width))]
}

func (p *page) String() string { return strings.Join(p.lines, "\n") + "\n" }

// wrap breaks a text of one line into several. Words that do not fit are broken too, but not those with the
// blanks of keepCommands.
func wrap(text string, width int) []string {
	width = max(width, 1)
	var lines []string
	for _, line := range strings.Split(wordwrap.WrapString(text, uint(width)), "\n") {
		if strings.Contains(line, noBreak) {
			lines = append(lines, strings.ReplaceAll(line, noBreak, " "))
			continue
		}
		runes := []rune(line)
		for ; len(runes) > width; runes = runes[width:] {
			lines = append(lines, string(runes[:width]))
		}
		lines = append(lines, string(runes))
	}
	return lines
}

// keepCommands replaces the blanks in commands, which are not broken then, and have a longer line if they do not
// fit: whoever copies only the beginning of "kubectl maintenance complete NAME NODE" would release all nodes.
// It is not for texts of other clients, which could escape the width. A command goes from the word kubectl to the end of the
// text, or of the first word that ends in punctuation, which no name does.
func keepCommands(line string) string {
	const before, behind = "\"'`(", ";,.:)\"'`"
	words := strings.Split(line, " ")
	var kept []string
	for len(words) > 0 {
		length := 1
		if strings.TrimLeft(words[0], before) == "kubectl" {
			for length < min(len(words), maxCommandWords) && strings.TrimRight(words[length-1], behind) == words[length-1] {
				length++
			}
		}
		command := strings.Join(words[:length], noBreak)
		if len(command) > maxCommandLength {
			command = strings.Join(words[:length], " ")
		}
		kept, words = append(kept, command), words[length:]
	}
	return strings.Join(kept, " ")
}

// renderStatus returns the text of "kubectl maintenance status".
func renderStatus(views []*view, now time.Time, width int) string {
	return renderPage(views, now, width, fullLayout(views)).String()
}

// renderSilence returns a paragraph that says that the controller does not run; empty if it does.
func renderSilence(silent *silence, now time.Time, width int) string {
	if silent == nil {
		return ""
	}
	p := &page{width: width}
	p.wrappedOwn("", silenceText(silent, now))
	p.add("")
	return p.String()
}

func renderPage(views []*view, now time.Time, width int, layout layout) *page {
	p := &page{width: width}
	for i, v := range views {
		if layout.compact {
			p.addCompact(v, now, layout.blockers)
			continue
		}
		if i > 0 {
			p.add("")
		}
		p.addView(v, now, layout)
	}
	return p
}

func (p *page) addView(v *view, now time.Time, layout layout) {
	p.wrapped("", headline(v, now))
	if !layout.noHead {
		p.addHead(v, now, layout)
	}
	if layout.blockersFirst {
		p.addBlockers(v, now, layout)
	}
	// Without a row, the headline already counts the nodes.
	switch {
	case len(v.Nodes) == 0 || layout.nodeRows == 0:
	case v.hasPhases():
		p.addRolloutNodes(v, now, layout.nodeRows)
	default:
		p.add("")
		p.addNodes(v, layout.nodeRows)
	}
	if !layout.blockersFirst {
		p.addBlockers(v, now, layout)
	}
}

// addHead appends the fields of the maintenance as a whole.
func (p *page) addHead(v *view, now time.Time, layout layout) {
	p.field("Reason", v.Reason)
	if !v.observed && now.Sub(v.changed) >= controllerPatience {
		p.wrappedOwn("  ", "The controller has not acted on the last change yet. If this does not change: "+inactiveText(v.Name))
	}
	if v.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
		return
	}
	if v.counted {
		p.field("Pods", podsLeftOf(v)+skippedText(v))
	}
	if v.Rollout != nil {
		p.addRollout(v, now, layout.nodeRows)
	} else {
		p.field("Targets", strings.Join(mapped(v.Targets, entryText), "; "))
		p.field("Drain", v.DrainMessage)
	}
	if v.ETA != nil && !v.ETA.Time.Before(now) {
		p.field("ETA", timeAndRemainder(now, *v.ETA))
	}
}

// inactiveText says why no controller acts on a maintenance, usually.
func inactiveText(name string) string {
	return "kube-controller-manager does not run, its feature gate DeclarativeNodeMaintenance is off, or the API server refuses its writes. See the events: kubectl describe nodemaintenance " + name
}

// section begins a part of the page.
func (p *page) section(title string) {
	p.add("")
	p.add("%s", title)
}

// field appends a line of the head.
func (p *page) field(title, text string) { p.wrapped(fieldPrefix(title), text) }

// ownField is field for a text that kubectl composes.
func (p *page) ownField(title, text string) { p.wrappedOwn(fieldPrefix(title), text) }

func fieldPrefix(title string) string { return fmt.Sprintf("  %-9s", title+":") }

// headline is the progress of the maintenance in one line.
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
		text += ", done, nodes released"
	case v.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete:
		text += ", releasing nodes"
	case v.SelectedNodes == 0:
		text += ", selects no node"
	case v.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain && v.Rollout != nil && v.Rollout.own:
		text += fmt.Sprintf(", %d of %s done", v.Rollout.DoneNodes-v.Rollout.SkippedNodes, counted(v.SelectedNodes, "node", "nodes")) + v.skippedNodesText()
	case v.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain:
		text += fmt.Sprintf(", %d of %s drained", v.DrainedNodes, counted(v.SelectedNodes, "node", "nodes")) + v.skippedNodesText()
	default:
		text += ", " + counted(v.SelectedNodes, "node", "nodes")
	}
	if v.isHalted() {
		text += ", halted"
	} else if v.Rollout != nil && v.Rollout.Paused && v.Outcome == "" {
		text += ", paused"
	}
	if v.Deleting {
		text += ", being deleted"
	}
	return text
}

// skippedText counts the pods that stay, because pod policies skip them or nobody stops them; empty if there are
// none.
func skippedText(v *view) string {
	unstopped, pods := maintenance.UnstoppedSentences(v.Condition)
	text := ""
	if skipped := v.PodsSkipped - pods; skipped > 0 {
		text = fmt.Sprintf("; %s: spec.podPolicies", counted(skipped, "is skipped and stays", "are skipped and stay"))
	}
	for _, sentence := range unstopped {
		text += "; " + sentence
	}
	return text
}

func podsLeftOf(v *view) string {
	left := v.PodsPending + v.PodsEvicting
	switch {
	case left == 0 && v.Rollout != nil && v.Rollout.WaitingNodes > 0:
		return "none left on nodes in progress"
	case left == 0:
		return "none left"
	}
	text := fmt.Sprintf("%d left: %d pending, %d evicting", left, v.PodsPending, v.PodsEvicting)
	if v.PodsBlocked > 0 {
		text += fmt.Sprintf(", %d blocked", v.PodsBlocked)
	}
	return text
}

// entryText says of which pod type, and up to which priority, evictions are requested.
func entryText(entry corev1.DrainPlanEntry) string {
	text := fmt.Sprintf("%s pods up to priority %d", entry.PodType, entry.PodPriority)
	if selector := metav1.FormatLabelSelector(entry.PodSelector); entry.PodSelector != nil && selector != "<none>" {
		text += " with " + selector
	}
	return text
}

// addNodes appends a table of as many nodes as there are rows.
func (p *page) addNodes(v *view, rows int) {
	nodes, hidden := v.nodesToShow(rows)
	more := "  ... and " + counted(len(hidden), "more node", "more nodes")
	if v.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain {
		const counts = "%-*s  %7s  %8s  %7s  "
		p.addTable(nodes, fmt.Sprintf(counts, barWidth+2, "PROGRESS", "PENDING", "EVICTING", "BLOCKED"), func(name string, node *nodeView) {
			p.wrapped(name+fmt.Sprintf(counts, barWidth+2, bar(node, barWidth), fmt.Sprint(node.PodsPending), fmt.Sprint(node.PodsEvicting), fmt.Sprint(node.PodsBlocked)), nodeState(v, node))
		})
		more += fmt.Sprintf(", %d of them drained", len(filtered(hidden, func(node *nodeView) bool { return node.Drained })))
	} else {
		p.addTable(nodes, "", func(name string, node *nodeView) {
			add := p.wrappedOwn
			if node.Message != "" {
				add = p.wrapped
			}
			add(name, nodeState(v, node))
		})
	}
	if len(hidden) > 0 {
		p.add("%s", more)
	}
}

// addTable appends a table of nodes, whose rows are added behind their first column. The state takes what is left
// of the width; a name that is too long for its column gets a line of its own.
func (p *page) addTable(nodes []*nodeView, titles string, addRow func(name string, node *nodeView)) {
	width := len("NODE")
	for _, node := range nodes {
		if len(node.Name) <= maxNameWidth {
			width = max(width, len(node.Name))
		}
	}
	p.add("  %-*s  %sSTATE", width, "NODE", titles)
	for _, node := range nodes {
		name := node.Name
		if len(name) > width {
			p.add("  %s", name)
			name = ""
		}
		addRow(fmt.Sprintf("  %-*s  ", width, name), node)
	}
}

// nodesToShow returns as many nodes as there are rows: blocked ones first, then others that are not
// drained.
func (v *view) nodesToShow(rows int) (shown, hidden []*nodeView) {
	if len(v.Nodes) <= rows {
		return v.Nodes, nil
	}
	rank := func(node *nodeView) int {
		switch {
		case node.PodsBlocked > 0 || node.stuck || v.isUncordoned(node):
			return 0
		case !node.Drained:
			return 1
		}
		return 2
	}
	sorted := slices.SortedStableFunc(slices.Values(v.Nodes), func(a, b *nodeView) int { return cmp.Compare(rank(a), rank(b)) })
	return sorted[:rows], sorted[rows:]
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
	case len(node.ClaimedBy) > 0:
		return "Cordoned, still claimed by " + strings.Join(node.ClaimedBy, ", ")
	case node.Cordoned:
		return "Cordoned"
	}
	return "Schedulable"
}

// bar shows the pods of a node: # gone, ! blocked, > evicting, . pending. It is full of # when the
// node is drained, and empty while nothing is known.
func bar(node *nodeView, width int) string {
	if node.Drained && node.podsLeft() == 0 {
		return "[" + strings.Repeat("#", width) + "]"
	}
	blocked := min(node.PodsBlocked, node.podsLeft())
	evicting := max(0, node.PodsEvicting-blocked)
	cells := shares(width, node.PodsGone, blocked, evicting, node.podsLeft()-blocked-evicting)
	var b strings.Builder
	for i, sign := range []string{"#", "!", ">", "."} {
		b.WriteString(strings.Repeat(sign, cells[i]))
	}
	return fmt.Sprintf("[%-*s]", width, b.String())
}

// shares divides cells among counts. Each count above 0 gets a cell, and the largest count gets the
// cells that rounding leaves.
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

// addBlockers appends the blockers or, if there are none, what the controller says instead.
func (p *page) addBlockers(v *view, now time.Time, layout layout) {
	switch {
	case len(v.Blockers) > 0 || v.isHalted():
		p.listBlockers(v, now, layout)
	case v.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain && v.Outcome == "" && v.Condition != "" && !v.conditionRepeats():
		p.section("  The controller reports:")
		p.wrapped("    ", v.Condition)
	}
	// A screen has a notice for this, and in stage Cordon each node says it.
	names := v.unexplained()
	if isLong := v.StageStarted != nil && now.Sub(v.StageStarted.Time) >= controllerPatience; isLong && len(names) > 0 && !layout.blockersFirst && v.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain {
		p.add("")
		p.wrappedOwn("  ", uncordonedText("Not cordoned", names))
	}
	if text := v.unreadableText(); text != "" {
		p.add("")
		p.wrapped("  ", text)
	}
}

// uncordonedText says where to see why nodes are not cordoned: no object but their events says that another client
// keeps uncordoning them.
func uncordonedText(what string, names []string) string {
	return plaintext.Line(fmt.Sprintf("%s: %s. For the reason, see the events: kubectl describe node %s",
		what, listFirst(names, maxLinePods), names[0]))
}

// listBlockers appends some of the blockers, and counts the others. What a drain consists of is no blocker: it
// comes below them, under a title of its own.
func (p *page) listBlockers(v *view, now time.Time, layout layout) {
	blockers := slices.SortedStableFunc(slices.Values(v.Blockers), func(a, b *blockerView) int { return cmp.Compare(a.progressRank(), b.progressRank()) })
	shown := min(layout.blockers, len(blockers))
	if v.isHalted() || len(blockers) > 0 && (shown == 0 || blockers[0].progressRank() == 0) {
		p.section("  BLOCKERS (! needs an intervention)")
	}
	if v.isHalted() {
		p.wrappedOwn("  ! ", v.haltedText())
	}
	inProgress, remedy := false, ""
	if !layout.blockersFirst { // A screen has no line to spare.
		remedy = silenceRemedy(blockers[:shown])
	}
	for i, b := range blockers[:shown] {
		if b.progressRank() > 0 && !inProgress {
			inProgress = true
			p.wrappedOwn("    ", remedy)
			remedy = ""
			if i == 0 || !layout.blockersFirst { // A screen has no line to spare.
				p.add("")
			}
			p.add("  IN PROGRESS (as reported)")
		}
		p.wrapped(mark(b.Blocked), blockerLabel(b, now))
		if layout.details == detailsOfAll || layout.details == detailsOfBlocked && b.Blocked {
			p.wrapped("      ", b.names(len(b.First)))
		}
	}
	p.wrappedOwn("    ", remedy)
	if hidden := blockers[shown:]; len(hidden) > 0 {
		p.add("  ... and %d more, %d of them marked !", len(hidden), countBlocked(hidden))
	}
	if unlisted := v.BlockerCount - len(v.Blockers); unlisted > 0 {
		p.add("  ... and %d that the status does not list", unlisted)
	}
}

// silenceRemedy says what to do about programs that do not report; empty if all do. The controllers of Kubernetes need
// something else, which depends on them.
func silenceRemedy(blockers []*blockerView) string {
	i := slices.IndexFunc(blockers, func(b *blockerView) bool {
		return b.Cause == maintenance.BlockerInterceptorUnresponsive && !evictioninterceptor.IsReserved(b.Name) && len(b.First) > 0
	})
	if i < 0 {
		return ""
	}
	namespace, _, _ := strings.Cut(blockers[i].First[0], "/")
	return plaintext.Line(fmt.Sprintf("An interceptor or responder that does not report may not run: start or repair its program. "+
		"Until when pods wait for it, see \"kubectl describe er -n %s\". If its work is not needed, delete the pod.", namespace))
}

// progressRank is 1 for what goes on by itself, and 0 for what needs an intervention, or may: a cause of a
// later release.
func (b *blockerView) progressRank() int {
	if b.Blocked || !slices.Contains(maintenance.BlockerCauses(), b.Cause) {
		return 0
	}
	return 1
}

// countBlocked returns how many of the blockers need an intervention.
func countBlocked(blockers []*blockerView) int {
	return len(filtered(blockers, func(b *blockerView) bool { return b.Blocked }))
}

// conditionRepeats reports whether the condition says no more than the head: how many pods are
// left, how many nodes wait, and the message of the drain.
func (v *view) conditionRepeats() bool {
	text := v.Condition
	if v.Rollout != nil && v.wasDrained {
		return true // Which nodes are done, and which drained, is shown.
	}
	if v.Rollout != nil {
		for _, wait := range v.Rollout.WaitingFor {
			text = strings.TrimSpace(strings.Replace(text, maintenance.WaitSentence(&wait), "", 1))
		}
		sentences := strings.Split(strings.TrimSuffix(text, "."), ". ")
		text = strings.Join(slices.DeleteFunc(sentences, func(sentence string) bool { return strings.Contains(sentence, " waiting") }), ". ")
		if text == "" {
			return true
		}
	}
	unstopped, pods := maintenance.UnstoppedSentences(text) // How many stay, and why, is shown.
	for _, sentence := range append(unstopped, strings.TrimSuffix(maintenance.SkippedSentence(v.PodsSkipped-pods), ".")) {
		text = strings.TrimSpace(strings.Replace(text, sentence+".", "", 1))
	}
	left, more, _ := strings.Cut(text, ". ")
	more = strings.TrimSuffix(more, ".")
	return strings.Contains(left, " left on ") && (more == "" || more == strings.TrimSuffix(v.DrainMessage, "."))
}

// text is the message of the controller, or the cause if there is none.
func (b *blockerView) text() string {
	return cmp.Or(b.Message, strings.TrimSpace(string(b.Cause)+" "+b.Name))
}

// blockerLabel is the text of a blocker with its times: for how long it exists, and when it is expected to end.
func blockerLabel(b *blockerView, now time.Time) string {
	var times []string
	if b.Since != nil {
		times = append(times, "for "+elapsed(now, *b.Since))
	}
	if b.ETA != nil {
		times = append(times, etaText(now, *b.ETA))
	}
	if len(times) == 0 {
		return b.text()
	}
	return b.text() + " (" + strings.Join(times, ", ") + ")"
}

func etaText(now time.Time, at metav1.Time) string { return "ETA " + timeAndRemainder(now, at) }

// names lists the first pods of a blocker, or the object of one that concerns nodes.
func (b *blockerView) names(n int) string {
	switch {
	case len(b.First) > 0:
		return listPods(b.First[:min(n, len(b.First))], b.Pods)
	case b.Cause.OfNode() && b.Object != "":
		return listPods([]string{b.Object}, b.Nodes)
	}
	return ""
}
