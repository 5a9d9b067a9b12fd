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
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/exec"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// goal is what a command waits for.
type goal struct {
	// reached reports whether there is nothing more to wait for.
	reached func(v *view) bool
	// continues says what happens after a wait that ends early, idle the same if no controller acts, others if
	// none acts on some of the maintenances, and subcommand shows it.
	continues, idle, others, subcommand string
	// needsAdmissions reports whether nodes that wait for their admission delay the goal.
	needsAdmissions bool
}

// drained is the goal of a command that waits for a drain.
func drained(reached func(v *view) bool) goal {
	return goal{reached, "the maintenance continues", "nothing goes on before a controller acts", "the others continue", "watch", true}
}

// released is the goal of a command that waits for the end of a maintenance.
func released(reached func(v *view) bool) goal {
	return goal{reached, "the nodes will be released anyway", "no node is released before a controller acts", "the nodes of the others will be released anyway", "status", false}
}

// follower shows maintenances until each of them has reached the goal.
type follower struct {
	observer *observer
	clock    clock.WithTicker
	show     display
	goal     goal
	// uids are those of the maintenances, by name: another one that is created later under the
	// same name does not count.
	uids map[string]types.UID
	// last are the views that were shown last, by name, also of maintenances that are deleted.
	last map[string]*view
	// shown is what was shown last.
	shown frame
	// unobserved is since when the controller has not acted on a maintenance, and uncordoned since
	// when a node should be cordoned, by name.
	unobserved, uncordoned patience
	// nodeless is since when a maintenance selects no node, by name, and hadNodes has those that selected one
	// before.
	nodeless patience
	hadNodes sets.Set[string]
	// returned is since when a rebooted node is seen Ready, by the clock of this computer: what nodes say is by another one.
	returned patience
	// lost are the nodes that a maintenance does not select any more, by its name, and whether they were drained, fewer
	// is how many those are that cannot be read, and nodes are all nodes.
	lost  map[string]map[string]bool
	fewer map[string]int
	// skipped are the nodes that were seen to be skipped, by maintenance.
	skipped map[string]sets.Set[string]
	nodes   []*corev1.Node
	// uncounted is since when a drained maintenance selects more nodes than its controller has counted.
	uncounted patience
}

// follow returns the last views of the maintenances, by name. It returns an error with an exit code
// of its own if ctx ends first.
func follow(ctx context.Context, client kubernetes.Interface, maintenances []*coordinationv1alpha1.NodeMaintenance, clock clock.WithTicker, show display, goal goal) (map[string]*view, error) {
	f := &follower{clock: clock, show: show, goal: goal, uids: map[string]types.UID{}, last: map[string]*view{}, unobserved: patience{}, uncordoned: patience{}, nodeless: patience{}, hadNodes: sets.New[string](), returned: patience{}, lost: map[string]map[string]bool{}, uncounted: patience{}, fewer: map[string]int{}, skipped: map[string]sets.Set[string]{}}
	for _, nm := range maintenances {
		f.uids[nm.Name] = nm.UID
	}
	var err error
	if f.observer, err = newObserver(ctx, client, sortedNames(f.uids), clock); err == nil {
		err = f.run(ctx)
	}
	return f.last, f.interrupted(ctx, err)
}

func (f *follower) run(ctx context.Context) error {
	seen := progress{}
	// Ages and remainders change without any event.
	seconds := f.clock.NewTicker(time.Second)
	defer seconds.Stop()
	for {
		now := f.clock.Now()
		f.observer.probe(ctx, now)
		s := f.observer.snapshot()
		f.nodes = s.nodes
		views := f.followed(viewsOf(s))
		seen.apply(views)
		f.returned.noteReady(views, now)
		f.findNodeless(views, now)
		f.awaitNodes(views, now)
		done := f.remember(views)
		gone := filtered(slices.Collect(maps.Values(f.last)), (*view).isGone)
		slices.SortFunc(gone, func(a, b *view) int { return cmp.Compare(a.Name, b.Name) })
		f.shown = frame{
			views: append(views, gone...), now: now,
			trouble: f.observer.troubleText(now), unobserved: f.unobservedText(views, now), uncordoned: f.uncordonedText(views, now),
			silent: silenceText(f.observer.silent.Load(), now),
		}
		if err := f.show(f.shown); err != nil {
			return err
		}
		if done {
			return nil
		}
		if err := f.pause(ctx, seconds); err != nil {
			return err
		}
	}
}

// pause returns when something changes or a second has passed, at most a few times per second.
func (f *follower) pause(ctx context.Context, seconds clock.Ticker) error {
	timer := f.clock.NewTimer(redrawInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.observer.changed:
	case <-seconds.C():
	}
	return nil
}

// followed omits maintenances that were created under the name of a deleted one.
func (f *follower) followed(views []*view) []*view {
	return filtered(views, func(v *view) bool {
		isIt := v.uid == f.uids[v.Name]
		if !isIt {
			f.goneAs(v.Name, outcomeReplaced)
		}
		return isIt
	})
}

// goneAs records that a maintenance does not exist any more. If it was never seen, only its name is
// known.
func (f *follower) goneAs(name string, as outcome) {
	if gone := ptr.Deref(f.last[name], view{Name: name}); !gone.isGone() {
		gone.Outcome = as
		f.last[name] = &gone
	}
}

// remember records the views, and which maintenances are gone. It reports whether there is nothing
// more to wait for.
func (f *follower) remember(views []*view) bool {
	done := true
	for _, v := range views {
		before := ptr.Deref(f.last[v.Name], view{})
		f.keepSkipped(v)
		f.findLost(&before, v)
		f.last[v.Name] = v
		done = done && f.goal.reached(v)
	}
	for name := range f.uids {
		if !slices.Contains(viewNames(views), name) {
			f.goneAs(name, outcomeDeleted)
		}
	}
	return done
}

// keepSkipped keeps the nodes that were skipped when the maintenance is completed: they do not say it any more, maybe even
// before the maintenance is seen as completed.
func (f *follower) keepSkipped(v *view) {
	if f.skipped[v.Name] == nil {
		f.skipped[v.Name] = sets.New[string]()
	}
	skipped := f.skipped[v.Name]
	for _, node := range v.Nodes {
		switch {
		case node.Skipped:
			skipped.Insert(node.Name)
		case node.Phase.isUnderWay(), node.Phase == phaseDone:
			skipped.Delete(node.Name) // It was begun with after all.
		}
	}
	if v.Rollout != nil && v.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete {
		v.Rollout.SkippedNodes, v.Rollout.skipped = skipped.Len(), sets.List(skipped)
	}
}

// findLost finds the nodes that were seen and that the maintenance does not select any more, because their labels have
// changed or they were deleted, but for those that were given back on purpose: their pods may run. One that is selected
// again is drained like the others, and one that was deleted when it was drained has no pods, unless it registers
// again. What is completed releases all nodes.
func (f *follower) findLost(before, v *view) {
	lost := f.lost[v.Name]
	if v.Stage != coordinationv1alpha1.NodeMaintenanceStageComplete {
		selected := nodesByNames(v)
		for _, node := range before.Nodes {
			isGivenBack := node.completed || node.Phase == phaseReturning || node.Phase == phaseDone
			if selected[node.Name] == nil && !isGivenBack {
				put(&lost, node.Name, node.isFinished())
			}
		}
		maps.DeleteFunc(lost, func(name string, _ bool) bool { return selected[name] != nil })
		f.lost[v.Name] = lost
		if len(v.Unreadable) > 0 {
			f.fewer[v.Name] += max(0, before.SelectedNodes-v.SelectedNodes-max(0, before.givenBack()-v.givenBack()))
		}
	}
	for _, name := range sortedNames(lost) {
		v.lost = appendIf(v.lost, !lost[name], name+" (undrained)")
		v.lost = appendIf(v.lost, lost[name] && slices.Contains(namesOf(f.nodes), name), name)
	}
	if fewer := f.fewer[v.Name]; fewer > 0 {
		v.lost = []string{counted(fewer, "node", "nodes") + " (to see which, the permission to list nodes is needed)"}
	}
}

// awaitNodes does not take a maintenance for drained that selects more nodes than its controller has counted: either
// the controller has yet to see a node, or it has released one, and the watch of nodes, which is another one, is behind.
// A controller that does not run counts no more.
func (f *follower) awaitNodes(views []*view, now time.Time) {
	uncounted := filtered(views, func(v *view) bool {
		return (v.Outcome == outcomeDrained || v.Outcome == outcomeDone) && len(v.Nodes) > v.countedNodes
	})
	exhausted := f.uncounted.exhausted(viewNames(uncounted), now)
	for _, v := range uncounted {
		if !slices.Contains(exhausted, v.Name) {
			v.Outcome = ""
		}
	}
}

// patience is since when names have had a property.
type patience map[string]time.Time

// note records since when the names have been passed, and forgets all that are not.
func (p patience) note(names []string, now time.Time) {
	given := sets.New(names...)
	maps.DeleteFunc(p, func(name string, _ time.Time) bool { return !given.Has(name) })
	for _, name := range names {
		if _, known := p[name]; !known {
			p[name] = now
		}
	}
}

// exhausted returns the names that have been passed for controllerPatience.
func (p patience) exhausted(names []string, now time.Time) []string {
	p.note(names, now)
	return filtered(names, func(name string) bool { return now.Sub(p[name]) >= controllerPatience })
}

// noteReady sets since when rebooted nodes are seen Ready.
func (p patience) noteReady(views []*view, now time.Time) {
	ready := map[string]*nodeView{}
	for _, v := range views {
		for _, node := range v.Nodes {
			if node.rebooted && node.ready {
				ready[v.Name+"/"+node.Name] = node
			}
		}
	}
	p.note(sortedNames(ready), now)
	for key, node := range ready {
		node.seenReadySince = ptr.To(metav1.NewTime(p[key]))
	}
}

// findNodeless finds the maintenances that have no node to drain, and will not get one: its nodes were deleted,
// or those that it names do not exist. A node that is created again gets a while for that.
func (f *follower) findNodeless(views []*view, now time.Time) {
	nodeless := filtered(views, func(v *view) bool {
		if v.SelectedNodes > 0 {
			f.hadNodes.Insert(v.Name)
			return false
		}
		return !isEnded(v) && v.observed && v.Stage != coordinationv1alpha1.NodeMaintenanceStageComplete && (f.hadNodes.Has(v.Name) || v.selectsByName())
	})
	exhausted := f.nodeless.exhausted(viewNames(nodeless), now)
	for _, v := range views {
		v.nodeless = slices.Contains(exhausted, v.Name)
	}
}

// unobservedText names maintenances on which the controller has not acted for long.
func (f *follower) unobservedText(views []*view, now time.Time) string {
	names := f.unobserved.exhausted(viewNames(filtered(views, func(v *view) bool { return !v.observed })), now)
	if len(names) == 0 {
		return ""
	}
	return plaintext.Line(fmt.Sprintf("No controller has acted on %s for %s: %s", strings.Join(names, ", "), duration.HumanDuration(controllerPatience), inactiveText(names[0])))
}

// uncordonedText names nodes that are not cordoned for long and have no blocker: that another
// client keeps uncordoning a node is none.
func (f *follower) uncordonedText(views []*view, now time.Time) string {
	names := f.uncordoned.exhausted(unique(slices.Concat(mapped(views, (*view).unexplained)...)), now)
	if len(names) == 0 {
		return ""
	}
	return uncordonedText("Not cordoned for "+duration.HumanDuration(controllerPatience), names)
}

// interrupted returns an error with an exit code of its own if ctx has ended.
func (f *follower) interrupted(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case err == nil || ctx.Err() == nil:
		return err
	case errors.Is(cause, context.DeadlineExceeded):
		return f.timedOut()
	}
	return exec.CodeExitError{Err: errors.New("interrupted; " + f.continues()), Code: exitInterrupted}
}

// continues says what continues without the command, and how to see it.
func (f *follower) continues() string {
	if f.isIdle() {
		return f.seeing(f.goal.idle)
	}
	return f.seeing(f.goal.continues)
}

// seeing adds the command that shows what continues.
func (f *follower) seeing(what string) string {
	text := what + ": kubectl maintenance " + f.goal.subcommand
	if names := sortedNames(f.uids); len(names) <= maxNames {
		text += " " + strings.Join(names, " ")
	}
	return plaintext.Line(text)
}

// isIdle reports whether no controller acts on any of the maintenances. One that has not acted on some of them may
// act on the others.
func (f *follower) isIdle() bool {
	if f.shown.silent != "" {
		return true
	}
	return f.shown.unobserved != "" && !slices.ContainsFunc(slices.Collect(maps.Values(f.last)), func(v *view) bool { return !v.isGone() && v.observed })
}

// maxNames is how many maintenances a command that is suggested names.
const maxNames = 3

// stopReasons are those for which nodes wait until somebody intervenes. Causes of the others, such as a
// window that is closed, end by themselves, but for windows of budgets that are never open together.
var stopReasons = sets.New(
	coordinationv1alpha1.NodeMaintenanceWaitPaused, coordinationv1alpha1.NodeMaintenanceWaitFrozen, coordinationv1alpha1.NodeMaintenanceWaitHalted,
	coordinationv1alpha1.NodeMaintenanceWaitDisabled, coordinationv1alpha1.NodeMaintenanceWaitAdmissionFailed,
	coordinationv1alpha1.NodeMaintenanceWaitStatusFailed, coordinationv1alpha1.NodeMaintenanceWaitNotCurrent,
)

// admissionText says what nodes wait for with which the maintenance has not begun, and whether somebody has
// to intervene; empty if none waits. That it is halted is said elsewhere.
func (v *view) admissionText(now time.Time) (text string, isStopped bool) {
	r := v.Rollout
	switch {
	case r == nil || v.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain || isEnded(v) || r.counted && r.WaitingNodes == 0:
		return "", false
	case r.Paused:
		return v.pausedText(), true
	case !slices.ContainsFunc(r.WaitingFor, func(wait coordinationv1alpha1.NodeMaintenanceWait) bool { return !isHaltedWait(wait) }):
		return "", false
	}
	isStopped = slices.ContainsFunc(r.WaitingFor, func(wait coordinationv1alpha1.NodeMaintenanceWait) bool {
		return stopReasons.Has(wait.Reason) || maintenance.IsNeverOpen(&wait)
	})
	return "waiting: " + waitsText(v, now), isStopped
}

// maxWaits is of how many causes a timeout names the pods that wait while nothing is blocked.
const maxWaits = 3

// timedOut names the blockers, or else what pods wait for, what nodes wait for, and other problems.
func (f *follower) timedOut() error {
	var blockers, waits, others []string
	what, isBlocked := "something was", false
	for _, name := range sortedNames(f.last) {
		v := f.last[name]
		if v.isGone() {
			continue // What blocked it does not matter any more.
		}
		// The causes of a later release may be unknown here.
		isBlocked = isBlocked || v.PodsBlocked > 0
		if v.isHalted() {
			addLine(&blockers, name, v.haltedText())
		}
		if text, isStopped := v.admissionText(f.shown.now); isStopped && f.goal.needsAdmissions {
			addLine(&blockers, name, text)
		} else if f.goal.needsAdmissions {
			addLine(&others, name, text)
		}
		addLine(&others, name, v.overdueText(f.shown.now))
		addLine(&others, name, v.unreleasedText(f.shown.now))
		for _, b := range filtered(v.Blockers, func(b *blockerView) bool { return b.Blocked }) {
			if b.Pods > 0 {
				what = "pods were"
			}
			addLine(&blockers, name, b.line())
		}
		for _, b := range filtered(v.Blockers, func(b *blockerView) bool { return !b.Blocked && f.goal.needsAdmissions }) {
			addLine(&waits, name, b.lineWithETA(f.shown.now))
		}
	}
	text, code := "timed out; "+f.continues(), exitTimedOut
	switch {
	case len(blockers) > 0 || isBlocked:
		text, code = "timed out while "+what+" blocked; "+f.continues(), exitBlocked
	case f.isIdle():
		text, code = "timed out while no controller acted; "+f.continues(), exitBlocked
	case f.shown.unobserved != "":
		text, code = "timed out while no controller acted on some of them; "+f.seeing(f.goal.others), exitBlocked
	default:
		others = append(waits[:min(maxWaits, len(waits))], others...)
	}
	lines := slices.Concat([]string{text}, blockers, others, filtered(f.shown.notices(), func(text string) bool { return text != "" }))
	return exec.CodeExitError{Err: errors.New(strings.Join(lines, "\n")), Code: code}
}

// addLine adds what is said of a maintenance, if there is something.
func addLine(lines *[]string, name, text string) {
	if text != "" {
		*lines = append(*lines, plaintext.Line(name+": "+text))
	}
}

// undrained returns an error with exit code 1 that names the maintenances that are not drained at
// the end, or nil. "watch x && reboot" relies on it: success means that the nodes that were selected at any
// time were drained, and that those that still are have no pod left and stay cordoned, but for those that were given
// back one by one.
func undrained(maintenances []*coordinationv1alpha1.NodeMaintenance, last map[string]*view) error {
	var reasons []string
	for _, nm := range maintenances {
		if reason := undrainedReason(last[nm.Name], nm.Spec.NodeSelector); reason != "" {
			reasons = append(reasons, plaintext.Line("NodeMaintenance "+nm.Name+" "+reason))
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return failed("%w", errors.New(strings.Join(reasons, "\n")))
}
