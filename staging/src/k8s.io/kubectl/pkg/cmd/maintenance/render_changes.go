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
	"k8s.io/component-helpers/plaintext"
)

// reporter reports the changes of one maintenance in lines.
type reporter struct {
	// last is the view that was reported last; nil before the first one.
	last *view
	// printed are the blockers that have a line, by key, as they were when it was printed.
	printed map[string]*blockerView
	// checks says where to look for the reason when nodes begin to be released too late. That depends on the time, not
	// only on the last view.
	checks printedTexts
}

// changes returns a line for each change since the last call.
func (r *reporter) changes(v *view, now time.Time) []string {
	old := r.last
	if old == nil {
		old = &view{}
	}
	current := *v
	r.last = &current
	switch {
	case v.isGone() && old.isGone():
		return nil
	case v.Outcome == outcomeReplaced:
		return []string{"deleted; another maintenance has its name now"}
	case v.Outcome == outcomeDeleted:
		return []string{"deleted"}
	}
	return r.changesBetween(old, v, now)
}

func (r *reporter) changesBetween(old, v *view, now time.Time) []string {
	lines := appendIf(nil, old.Stage != v.Stage, stageChange(v))
	lines = appendIf(lines, v.Deleting && !old.Deleting, "is being deleted")
	if v.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
		lines = append(lines, cordonChanges(old, v)...)
		if old.Stage != v.Stage {
			// The blockers of the drain do not matter any more.
			old, r.printed = &view{}, nil
		}
		return append(lines, r.blockerChanges(old, v, now)...)
	}
	lines = appendIf(lines, old.DrainMessage != v.DrainMessage && v.DrainMessage != "" && v.Outcome == "" && !v.isPlainDrain(), plaintext.Line(v.DrainMessage))
	lines = append(lines, rolloutChanges(old, v, now)...)
	lines = append(lines, nodeChanges(old, v)...)
	for _, text := range r.checks.fresh(v.overdueText(now), v.unreleasedText(now)) {
		lines = append(lines, plaintext.Line("check: "+text))
	}
	lines = append(lines, r.blockerChanges(old, v, now)...)
	lines = appendIf(lines, v.Outcome == outcomeDrained && old.Outcome != outcomeDrained, drainedText(v))
	return appendIf(lines, v.Outcome == outcomeDone && old.Outcome != outcomeDone, "done: released "+counted(v.SelectedNodes, "node", "nodes")+v.skippedNodesText())
}

// printedTexts are which texts were printed: each is printed once, until the problem is over.
type printedTexts []bool

// fresh returns those of the texts, which are given in the same order each time, that are to be printed. An empty one
// says that there is no problem.
func (p *printedTexts) fresh(texts ...string) []string {
	var found []string
	current := make(printedTexts, len(texts))
	for i, text := range texts {
		if current[i] = text != ""; current[i] && (len(*p) == 0 || !(*p)[i]) {
			found = append(found, text)
		}
	}
	*p = current
	return found
}

// drainedText says on which nodes no pod is left. Those that were given back one by one run pods again.
func drainedText(v *view) string {
	given := 0
	if v.Rollout != nil {
		given = v.Rollout.DoneNodes
	}
	text := "drained: no pod is left on " + counted(v.SelectedNodes-given, "node", "nodes")
	if given > 0 {
		text += fmt.Sprintf("; given back: %d", given) + v.skippedNodesText()
	}
	return text + skippedText(v)
}

func stageChange(v *view) string {
	text := fmt.Sprintf("stage %s, %s", v.Stage, counted(v.SelectedNodes, "node", "nodes"))
	if v.SelectedNodes == 0 {
		text = fmt.Sprintf("stage %s, selects no node", v.Stage)
	}
	if v.Reason != "" {
		text += ": " + plaintext.Line(v.Reason)
	}
	return text
}

func cordonChanges(old, v *view) []string {
	var lines []string
	before := nodesByNames(old)
	for _, node := range v.Nodes {
		was, known := before[node.Name]
		switch {
		case v.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete && node.Cordoned:
			// It is about to be released, or another maintenance claims it.
		case node.Cordoned && !(known && was.Cordoned):
			lines = append(lines, node.Name+": cordoned")
		case !node.Cordoned && known && was.Cordoned:
			lines = append(lines, node.Name+": schedulable")
		}
	}
	if v.Outcome == outcomeCompleted && old.Outcome != outcomeCompleted {
		line := "completed: the nodes are released"
		if v.isHeld() {
			line = "completed"
		}
		lines = append(lines, line)
	}
	return lines
}

func nodeChanges(old, v *view) []string {
	var lines []string
	before := nodesByNames(old)
	for _, node := range v.Nodes {
		was, known := before[node.Name]
		change := phaseChange(v, was, node)
		lines = appendIf(lines, change != "", change)
		switch {
		case node.Phase == phaseDone || node.Phase == phaseWaiting:
			// What the node says is about others.
		case node.Drained && !(known && was.Drained):
			lines = append(lines, node.Name+": drained")
		case node.podsLeft() == 0:
			// Its pods are not counted yet, or it is about to be drained.
		case !node.Drained && (!known || was.PodsPending != node.PodsPending || was.PodsEvicting != node.PodsEvicting || was.PodsBlocked != node.PodsBlocked):
			parts := listParts(part{node.PodsPending, "pending"}, part{node.PodsEvicting, "evicting"}, part{node.PodsBlocked, "blocked"})
			lines = append(lines, fmt.Sprintf("%s: %s left: %s", node.Name, counted(node.podsLeft(), "pod", "pods"), parts))
		}
		delete(before, node.Name)
	}
	for _, was := range old.Nodes {
		switch {
		case before[was.Name] == nil:
		case was.isFinished():
			lines = append(lines, was.Name+": is no longer selected")
		default:
			lines = append(lines, was.Name+": is no longer selected, released undrained")
		}
	}
	return lines
}

func nodesByNames(v *view) map[string]*nodeView {
	return keyed(v.Nodes, func(node *nodeView) string { return node.Name })
}

const (
	// maxLinePods is how many pods a line names.
	maxLinePods = 2

	// reportedDelay is by how much an ETA must move to be reported.
	reportedDelay = time.Minute
)

// blockerChanges reports blockers that appear, change, or are gone. Evictions in progress are what
// a drain consists of: they get no line.
func (r *reporter) blockerChanges(old, v *view, now time.Time) []string {
	if r.printed == nil {
		r.printed = map[string]*blockerView{}
	}
	before, current := keyed(old.Blockers, (*blockerView).key), keyed(v.Blockers, (*blockerView).key)
	var lines []string
	for _, b := range v.Blockers {
		printed := r.printed[b.key()]
		// Others neither need an intervention nor name what the drain waits for.
		isReported := b.Blocked || b.Name != ""
		if isReported && (printed == nil || b.differs(printed, before[b.key()])) {
			r.printed[b.key()] = b
			lines = append(lines, b.lineWithETA(now))
		}
	}
	if len(v.Blockers) < v.BlockerCount {
		// The status does not list all: one that is missing may still exist.
		return lines
	}
	for _, key := range sortedNames(r.printed) {
		if current[key] != nil {
			continue
		}
		gone := r.printed[key]
		delete(r.printed, key)
		if !gone.isReplaced(v) {
			lines = append(lines, plaintext.Line("resolved: "+gone.title()))
		}
	}
	return lines
}

// differs reports whether a blocker needs another line. A drain changes the number of pods all the
// time, so it must at least double or halve since the last line, which bounds the output. If the
// number is that of the previous view, another text is news of the interceptor or the API server.
func (b *blockerView) differs(printed, previous *blockerView) bool {
	switch {
	case b.Pods >= 2*printed.Pods && b.Pods > printed.Pods, 2*b.Pods <= printed.Pods && b.Pods < printed.Pods:
		return true
	case b.ETA != nil && (printed.ETA == nil || b.ETA.Sub(printed.ETA.Time).Abs() >= reportedDelay):
		return true
	}
	return previous != nil && b.Pods == previous.Pods && b.Nodes == previous.Nodes && b.Message != previous.Message
}

// isReplaced reports whether another blocker has the same name, such as that of an interceptor that
// does not report any more: then the pods still wait for it.
func (b *blockerView) isReplaced(v *view) bool {
	return b.Name != "" && slices.ContainsFunc(v.Blockers, func(other *blockerView) bool { return other.Name == b.Name })
}

// title is the object that has the name of the blocker, if there is one, as its message names it, and
// otherwise its cause and its name.
func (b *blockerView) title() string {
	if b.Name != "" && strings.HasSuffix(b.Object, " "+b.Name) {
		return b.Object
	}
	return strings.TrimSpace(string(b.Cause) + " " + b.Name)
}

// line is the text of the blocker with a few of its pods.
func (b *blockerView) line() string {
	text := b.text()
	if names := b.names(maxLinePods); names != "" {
		text += ": " + names
	}
	return text
}

func (b *blockerView) lineWithETA(now time.Time) string {
	line := b.line()
	if b.Blocked {
		line = "blocked: " + line
	}
	if b.ETA != nil {
		line += " (" + etaText(now, *b.ETA) + ")"
	}
	return plaintext.Line(line)
}
