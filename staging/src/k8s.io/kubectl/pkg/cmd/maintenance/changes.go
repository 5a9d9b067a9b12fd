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
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
)

// changesBetween says in lines what has changed between two views of a maintenance. The
// old one is nil where it is seen for the first time.
func changesBetween(old *view, v *view, now time.Time) []string {
	if old == nil {
		old = &view{}
	}
	var lines []string
	if old.Stage != v.Stage {
		lines = append(lines, stageChange(v))
	}
	if v.Deleting && !old.Deleting {
		lines = append(lines, "is being deleted")
	}
	if v.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
		lines = append(lines, cordonChanges(old, v)...)
		if old.Stage != v.Stage { // What the drain has waited for is no matter any more.
			old = &view{}
		}
		return append(lines, blockerChanges(old, v, now)...)
	}
	if old.DrainMessage != v.DrainMessage && v.DrainMessage != "" && v.Outcome == "" {
		lines = append(lines, plaintext.Line(v.DrainMessage))
	}
	lines = append(lines, nodeChanges(old, v)...)
	lines = append(lines, blockerChanges(old, v, now)...)
	if len(v.Unreadable) > 0 && old.Condition != v.Condition && v.Condition != "" {
		lines = append(lines, plaintext.Line(v.Condition))
	}
	if v.Outcome == outcomeDrained && old.Outcome != outcomeDrained {
		lines = append(lines, "drained: no pod is left on "+counted(v.SelectedNodes, "node", "nodes"))
	}
	return lines
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
	for i := range v.Nodes {
		node := &v.Nodes[i]
		was, known := before[node.Name]
		switch {
		case v.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete && node.Cordoned:
			// About to be given back, or held by another one.
		case node.Cordoned && !(known && was.Cordoned):
			lines = append(lines, node.Name+": cordoned")
		case !node.Cordoned && known && was.Cordoned:
			lines = append(lines, node.Name+": schedulable")
		}
	}
	if v.Outcome == outcomeCompleted && old.Outcome != outcomeCompleted {
		line := "completed: the nodes are given back"
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
	for i := range v.Nodes {
		node := &v.Nodes[i]
		was, known := before[node.Name]
		switch {
		case node.Drained && !(known && was.Drained):
			lines = append(lines, node.Name+": drained")
		case node.podsLeft() == 0:
			// Not counted yet, or about to be drained.
		case !node.Drained && (!known || was.PodsPending != node.PodsPending || was.PodsEvicting != node.PodsEvicting || was.PodsBlocked != node.PodsBlocked):
			lines = append(lines, node.Name+": "+nodePodsText(node))
		}
		delete(before, node.Name)
	}
	for i := range old.Nodes {
		if _, left := before[old.Nodes[i].Name]; left {
			lines = append(lines, old.Nodes[i].Name+": is not selected any more")
		}
	}
	return lines
}

func nodePodsText(node *nodeView) string {
	var parts []string
	for _, part := range []struct {
		count int
		text  string
	}{{node.PodsPending, "not asked yet"}, {node.PodsEvicting, "asked to leave"}, {node.PodsBlocked, "blocked"}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.text))
		}
	}
	return counted(node.podsLeft(), "pod", "pods") + " left, " + strings.Join(parts, ", ")
}

func nodesByNames(v *view) map[string]*nodeView {
	nodes := map[string]*nodeView{}
	for i := range v.Nodes {
		nodes[v.Nodes[i].Name] = &v.Nodes[i]
	}
	return nodes
}

// maxLinePods is how many pods a line names.
const maxLinePods = 2

// blockerChanges names who holds pods up. Evictions under way are what a drain is made
// of, and heartbeats are expected: neither gets a line.
func blockerChanges(old, v *view, now time.Time) []string {
	var lines []string
	before := map[string]*blockerView{}
	for i := range old.Blockers {
		before[old.Blockers[i].key()] = &old.Blockers[i]
	}
	for i := range v.Blockers {
		b := &v.Blockers[i]
		was := before[b.key()]
		delete(before, b.key())
		switch {
		case !worthALine(v, b) || v.conditionHas(b):
		case was == nil || linePods(was) != linePods(b) || !was.ETA.Equal(b.ETA):
			lines = append(lines, blockerLine(b, now))
		}
		lines = append(lines, messageChanges(old, b)...)
	}
	for i := range old.Blockers {
		b := &old.Blockers[i]
		if _, gone := before[b.key()]; gone && worthALine(old, b) {
			if released := *b; released.onlyReleased(old, v) {
				lines = append(lines, releaseLine(&released))
			}
		}
	}
	return lines
}

// onlyReleased leaves of the pods of a blocker that is gone those that another line does
// not name: they were not released, only the cause is another one. False if none is left.
func (b *blockerView) onlyReleased(old, v *view) bool {
	named := map[string]bool{}
	for i := range v.Blockers {
		named[v.Blockers[i].key()] = worthALine(v, &v.Blockers[i])
	}
	b.Pods = 0
	for pod, key := range old.held {
		if key == b.key() && !named[v.held[pod]] {
			b.Pods++
		}
	}
	return b.Pods > 0
}

func releaseLine(b *blockerView) string {
	if unhandledText(b) != "" {
		return "no longer waiting for somebody to handle them: " + counted(b.Pods, "pod", "pods")
	}
	return "no longer waiting for " + blockerText(b)
}

// conditionHas reports whether the condition, which is printed where pods cannot be read,
// says what the blocker does.
func (v *view) conditionHas(b *blockerView) bool {
	return len(v.Unreadable) > 0 && b.Says != "" && strings.Contains(plaintext.Line(v.Condition), b.Says)
}

// worthALine also drops a budget without a name: it was deleted a moment ago, unless the
// user may not read budgets.
func worthALine(v *view, b *blockerView) bool {
	if b.Cause == maintenance.HoldDisruptionBudget && b.Name == "" {
		return slices.Contains(v.Unreadable, "poddisruptionbudgets")
	}
	return b.Blocked || b.Name != ""
}

// heldText says of pods what they do.
func heldText(b *blockerView) string {
	switch unhandled := unhandledText(b) != ""; {
	case unhandled && b.Blocked:
		return "blocked: " + blockerText(b)
	case unhandled:
		return blockerText(b)
	case b.Blocked:
		return "blocked by " + blockerText(b)
	}
	return "waiting for " + blockerText(b)
}

func blockerLine(b *blockerView, now time.Time) string {
	text := heldText(b)
	if b.ETA != nil {
		text += ", ETA " + timeAndRemainder(now, *b.ETA)
	}
	return plaintext.Line(text + ": " + linePods(b))
}

// linePods names few pods: whoever reads lines sees one for each change.
func linePods(b *blockerView) string { return heldNames(b, maxLinePods) }
