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
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/exec"
	"k8s.io/component-helpers/node/maintenance"
	plaintexttesting "k8s.io/component-helpers/plaintext/testing"
	"k8s.io/utils/ptr"
)

const (
	manual   = coordinationv1alpha1.NodeCompletionManual
	rebooted = coordinationv1alpha1.NodeCompletionRebooted
)

// twoAtATime is a rollout that waits for reboots or people.
func twoAtATime(policy coordinationv1alpha1.NodeCompletionPolicy) coordinationv1alpha1.NodeMaintenanceRollout {
	return coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt32(2)), CompleteNodes: policy}
}

// counting sets the numbers of waiting, admitted, done and failed nodes in the status.
func (m maintenanceStory) counting(waiting, admitted, done int32, failed ...string) maintenanceStory {
	m.Status.RolloutStatus = &coordinationv1alpha1.NodeMaintenanceRolloutStatus{
		WaitingNodes: waiting, AdmittedNodes: admitted, DoneNodes: done, FailedNodes: int32(len(failed)), Failed: failed[:min(10, len(failed))],
	}
	m.Status.DrainStatus.DrainMessage = "Draining"
	return m
}

// waitingFor adds a cause for which nodes wait.
func (m maintenanceStory) waitingFor(nodes int32, reason coordinationv1alpha1.NodeMaintenanceWaitReason, budget string, until *metav1.Time) maintenanceStory {
	m.Status.RolloutStatus.WaitingFor = append(m.Status.RolloutStatus.WaitingFor, coordinationv1alpha1.NodeMaintenanceWait{NodeCount: nodes, Reason: reason, Budget: budget, UntilTime: until})
	return m
}

// halted sets the condition Halted as the controller does.
func (m maintenanceStory) halted() maintenanceStory {
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
		Type: string(coordinationv1alpha1.NodeMaintenanceConditionHalted), Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.NodeMaintenanceReasonFailedNodes, ObservedGeneration: m.Generation,
	})
	return m
}

// rolloutStories returns a rollout with a node in each phase.
func rolloutStories() (maintenanceStory, []any) {
	m := newMaintenance("kernel", drain, "node-1", "node-2", "node-3", "node-4", "node-5", "node-6", "node-7").reason("Kernel upgrade").
		started(2*time.Hour).rollingOut(twoAtATime(manual)).counting(2, 4, 1, "node-5").
		condition(metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonDraining, "3 pods left on 4 of 7 nodes. 2 of 7 nodes waiting: 1 for spec.rollout.maxConcurrent, 1 for NodeMaintenanceBudget workers.").
		waitingFor(1, coordinationv1alpha1.NodeMaintenanceWaitConcurrency, "", nil).
		waitingFor(1, coordinationv1alpha1.NodeMaintenanceWaitBudget, "workers", nil)
	m.Status.DrainStatus.PodsPendingEvictionRequest, m.Status.DrainStatus.ActiveEvictionRequests = 1, 2
	tainted := admittedNode(m, "node-4", phaseReturning, 4*time.Minute)
	tainted.Status.Conditions[len(tainted.Status.Conditions)-1].Status = corev1.ConditionTrue
	tainted.Spec.Taints = []corev1.Taint{
		{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}, {Key: "example.com/prefer", Effect: corev1.TaintEffectPreferNoSchedule},
		{Key: "example.com/dedicated", Effect: corev1.TaintEffectNoSchedule}, // It stays.
		{Key: "node.cloudprovider.kubernetes.io/shutdown", Effect: corev1.TaintEffectNoSchedule},
	}
	return m, []any{
		m, newNode("node-1"), admittedNode(m, "node-2", phaseDraining, 2*time.Minute), admittedNode(m, "node-3", phaseDrained, 3*time.Minute), tainted,
		admittedNode(m, "node-5", phaseFailed, 5*time.Minute), admittedNode(m, "node-6", phaseDone, 6*time.Minute), newNode("node-7"),
	}
}

// haltedStories returns a rollout that nodes have halted.
func haltedStories() []any {
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("node-%02d", i))
	}
	m := newMaintenance("kernel", drain, append(names, "node-99")...).started(2*time.Hour).rollingOut(twoAtATime(rebooted)).counting(1, 12, 0, names...).halted().
		waitingFor(1, coordinationv1alpha1.NodeMaintenanceWaitHalted, "", nil)
	stories := []any{m, newNode("node-99")}
	for i, name := range names {
		node := admittedNode(m, name, phaseFailed, time.Duration(i)*time.Minute)
		if i%2 == 1 {
			node.Status.Conditions[len(node.Status.Conditions)-1].Status = corev1.ConditionFalse
		}
		stories = append(stories, node)
	}
	return stories
}

func TestRenderRollout(t *testing.T) {
	_, stories := rolloutStories()
	// It was resumed just now. Its nodes are where they were.
	changed := newMaintenance("kernel", drain, "node-1", "node-2").started(time.Minute).rollingOut(twoAtATime(manual)).counting(1, 1, 0)
	changed.Generation++
	paused := newMaintenance("kernel", drain, "node-1", "node-2").started(time.Minute).rollingOut(coordinationv1alpha1.NodeMaintenanceRollout{Paused: true}).counting(2, 0, 0).
		waitingFor(2, coordinationv1alpha1.NodeMaintenanceWaitPaused, "", nil)
	budgets := newMaintenance("kernel", drain, "node-1", "node-2", "node-3", "node-4").started(time.Minute).counting(2, 2, 0).
		waitingFor(1, coordinationv1alpha1.NodeMaintenanceWaitWindow, "nights", ptr.To(ago(-9*time.Hour))).
		waitingFor(1, coordinationv1alpha1.NodeMaintenanceWaitFrozen, "freeze", nil)
	drained := newMaintenance("kernel", drain, "node-1", "node-2").started(time.Hour).rollingOut(twoAtATime(rebooted)).drained().
		condition(metav1.ConditionTrue, coordinationv1alpha1.NodeMaintenanceReasonDrained, "1 node given back. No pod is left on 1 others.").counting(0, 1, 1)
	over := newMaintenance("kernel", drain, "node-1").started(time.Hour).rollingOut(twoAtATime(rebooted)).drained().counting(0, 0, 1)
	causes := newMaintenance("kernel", drain, "node-1").started(time.Hour).rollingOut(twoAtATime(rebooted)).counting(1, 0, 0)
	for _, reason := range []coordinationv1alpha1.NodeMaintenanceWaitReason{
		coordinationv1alpha1.NodeMaintenanceWaitBudget, coordinationv1alpha1.NodeMaintenanceWaitFrozen, coordinationv1alpha1.NodeMaintenanceWaitWindow,
		coordinationv1alpha1.NodeMaintenanceWaitTopology, coordinationv1alpha1.NodeMaintenanceWaitDisabled, "OfALaterRelease",
	} {
		causes = causes.waitingFor(7, reason, "workers", nil)
	}
	// The condition repeats what the line Waiting says, with times in UTC.
	message := "1 of 1 node waiting."
	for i := range causes.Status.RolloutStatus.WaitingFor {
		message += " " + maintenance.WaitSentence(&causes.Status.RolloutStatus.WaitingFor[i])
	}
	causes = causes.condition(metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonWaitingForAdmission, message)
	for name, s := range map[string]*podSnapshot{
		"rollout":            snapshotOf(stories...),
		"rollout-unreadable": withoutNodes(snapshotOf(stories...)),
		"rollout-halted":     snapshotOf(haltedStories()...),
		"rollout-changed":    snapshotOf(changed, newNode("node-1"), admittedNode(changed, "node-2", phaseDrained, time.Minute)),
		"rollout-paused":     snapshotOf(paused, newNode("node-1"), newNode("node-2")),
		"rollout-unseen":     snapshotOf(newMaintenance("kernel", drain, "node-1").rollingOut(twoAtATime(manual)), newNode("node-1")),
		"rollout-budgets":    snapshotOf(budgets, drainingNode("node-1", 1, 0, "Draining"), admittedNode(budgets, "node-2", phaseDrained, time.Minute), newNode("node-3"), newNode("node-4")),
		"rollout-drained":    snapshotOf(drained, admittedNode(drained, "node-1", phaseDone, time.Hour), admittedNode(drained, "node-2", phaseDrained, time.Minute)),
		"rollout-done":       snapshotOf(over, admittedNode(over, "node-1", phaseDone, time.Hour)),
		"rollout-causes":     snapshotOf(causes, newNode("node-1")),
		"rollout-fleet":      snapshotOf(fleetOf(fleetSize)...),
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, "status/"+name, renderStatus(viewsIn(s), testNow, defaultWidth))
		})
	}
	golden(t, "status/rollout-screen", renderScreen(viewsIn(snapshotOf(fleetOf(fleetSize)...)), testNow, defaultWidth-1, 18))
	var out bytes.Buffer
	if err := printStructured(&out, "yaml", viewsIn(snapshotOf(stories...))); err != nil {
		t.Fatal(err)
	}
	golden(t, "status/rollout-wide-yaml", out.String())
}

// TestFleetFits verifies that the status of 5,000 nodes fits a terminal, in any of its sizes.
func TestFleetFits(t *testing.T) {
	views := viewsIn(snapshotOf(fleetOf(fleetSize)...))
	if lines := strings.Count(renderStatus(views, testNow, defaultWidth), "\n"); lines > 24 {
		t.Errorf("%d lines", lines)
	}
	halted := viewsIn(snapshotOf(haltedStories()...))
	for height := 1; height < 40; height++ {
		for name, views := range map[string][]*view{"fleet": views, "halted": halted} {
			screen := renderScreen(views, testNow, defaultWidth, height)
			if lines := strings.Count(screen, "\n"); lines > height {
				t.Errorf("%s: %d lines for %d", name, lines, height)
			}
			if name == "halted" && height > 1 {
				contains(t, screen, "! halted, because node-00, ")
			}
		}
	}
}

func TestOutcomeOfRollout(t *testing.T) {
	own := func(done int32) maintenanceStory {
		return newMaintenance("a", drain, "n", "m").started(0).rollingOut(twoAtATime(rebooted)).drained().counting(0, 2-done, done)
	}
	deselected := own(2)
	deselected.Generation++
	for _, tc := range []struct {
		name  string
		story maintenanceStory
		want  outcome
	}{
		{"all done", own(2), outcomeDone},
		{"one is drained", own(1), ""},
		{"another selector", deselected, ""},
		{"only budgets, drained", newMaintenance("a", drain, "n", "m").started(0).drained().counting(0, 1, 1), outcomeDrained},
		{"completed", newMaintenance("a", complete, "n").started(0).completed().rollingOut(twoAtATime(manual)).counting(0, 1, 1), outcomeCompleted},
	} {
		if got := outcomeOf(tc.story.NodeMaintenance); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestRolloutEnds verifies which ends of a rollout are a success for a script.
func TestRolloutEnds(t *testing.T) {
	rollout := func(stage coordinationv1alpha1.NodeMaintenanceStage, done int32) maintenanceStory {
		m := newMaintenance("a", stage, "n", "m").started(0).rollingOut(twoAtATime(rebooted)).drained().counting(0, 2-done, done)
		if stage == complete {
			m = m.completed()
		}
		return m
	}
	for _, tc := range []struct {
		name  string
		story maintenanceStory
		want  string
	}{
		{"done", rollout(drain, 2), ""},
		{"drained", rollout(drain, 1), "error: NodeMaintenance a is not done"},
		{"completed when all were done", rollout(complete, 2), ""},
		{"completed before", rollout(complete, 1), "error: NodeMaintenance a was completed when 1 of 2 nodes were done: the others are released"},
	} {
		v := viewsIn(snapshotOf(tc.story, newNode("n"), newNode("m")))[0]
		got := ""
		if err := undrained(snapshotOf(tc.story).maintenances, map[string]*view{"a": v}); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestRolloutLines follows a rollout from its start to its end.
func TestRolloutLines(t *testing.T) {
	names := []string{"node-1", "node-2", "node-3"}
	base := func() maintenanceStory {
		return newMaintenance("kernel", drain, names...).started(0).rollingOut(twoAtATime(rebooted))
	}
	m := base()
	node := func(name string, phase nodePhase) *corev1.Node { return admittedNode(m, name, phase, time.Minute) }
	paused := base().counting(1, 1, 1)
	paused.Spec.Rollout.Paused = true
	r, previous := &reporter{}, ""
	for _, step := range []struct {
		name  string
		story []any
		want  []string
	}{
		{"not seen by the controller", []any{newMaintenance("kernel", drain, names...).rollingOut(twoAtATime(rebooted)), newNode("node-1"), newNode("node-2"), newNode("node-3")}, []string{"stage Drain, 3 nodes"}},
		{"begun", []any{base().counting(1, 2, 0).waitingFor(1, coordinationv1alpha1.NodeMaintenanceWaitConcurrency, "", nil), node("node-1", phaseDraining), node("node-2", phaseDraining), newNode("node-3")},
			[]string{"0 done, 2 in progress (2 draining), 1 waiting", "waiting: 1 until others are given back: spec.rollout.maxConcurrent are admitted", "node-1: 3 pods left: 1 pending, 2 evicting", "node-2: 3 pods left: 1 pending, 2 evicting"}},
		{"drained", []any{base().counting(1, 2, 0).waitingFor(1, coordinationv1alpha1.NodeMaintenanceWaitConcurrency, "", nil), node("node-1", phaseDrained), node("node-2", phaseDrained), newNode("node-3")}, []string{"node-1: drained", "node-2: drained"}},
		{"one returns, one has failed", []any{base().counting(1, 2, 0, "node-2").halted().waitingFor(1, coordinationv1alpha1.NodeMaintenanceWaitHalted, "", nil), node("node-1", phaseReturning), node("node-2", phaseFailed), newNode("node-3")}, []string{
			"blocked: halted, because node-2 did not come back in time, and maxFailedNodes is 0: repair it, or go on without it: kubectl maintenance resume kernel",
			"waiting: 1 because more nodes have failed than spec.rollout.maxFailedNodes", "node-1: the work is done, waiting until it is healthy", "node-2: did not come back in time",
		}},
		{"one is done", []any{base().counting(1, 1, 1, "node-2").halted().waitingFor(1, coordinationv1alpha1.NodeMaintenanceWaitHalted, "", nil), node("node-1", phaseDone), node("node-2", phaseFailed), newNode("node-3")}, []string{"node-1: done (1 of 3 nodes)"}},
		{"paused", []any{paused, node("node-1", phaseDone), node("node-2", phaseReturning), newNode("node-3")}, []string{"paused; to go on: kubectl maintenance resume kernel", "resolved: no longer halted", "node-2: the work is done, waiting until it is healthy"}},
		{"resumed", []any{base().counting(0, 1, 2), node("node-1", phaseDone), node("node-2", phaseDone), node("node-3", phaseDraining)}, []string{"resumed", "node-2: done (2 of 3 nodes)", "node-3: 3 pods left: 1 pending, 2 evicting"}},
		{"done", []any{base().drained().counting(0, 0, 3), node("node-1", phaseDone), node("node-2", phaseDone), node("node-3", phaseDone)}, []string{"node-3: done (3 of 3 nodes)", "done: released 3 nodes"}},
	} {
		v := viewsIn(snapshotOf(step.story...))[0]
		if diff := cmp.Diff(step.want, r.changes(v, testNow)); diff != "" {
			t.Errorf("%s after %s (-want, +got):\n%s", step.name, previous, diff)
		}
		if again := r.changes(v, testNow); len(again) > 0 {
			t.Errorf("%s: printed again: %q", step.name, again)
		}
		previous = step.name
	}
}

// TestRolloutLinesOfOldNews verifies that nodes get no line that were done when the command started,
// also if the controller had not acted on the last change then.
func TestRolloutLinesOfOldNews(t *testing.T) {
	m := newMaintenance("kernel", drain, "node-1").started(0).rollingOut(twoAtATime(rebooted)).counting(0, 0, 1)
	unseen := maintenanceStory{m.DeepCopy()}
	unseen.Generation++
	r := &reporter{}
	for _, story := range []maintenanceStory{unseen, m, m} {
		v := viewsIn(snapshotOf(story, admittedNode(m, "node-1", phaseDone, time.Minute)))[0]
		for _, line := range r.changes(v, testNow) {
			if strings.HasPrefix(line, "node-1") {
				t.Errorf("printed %q", line)
			}
		}
	}
}

// TestRolloutLinesOfTwoWatches verifies that what the maintenance says of its nodes waits until these say so too: each
// has a watch of its own. After a resume, the controller may write what nodes wait for a moment later.
func TestRolloutLinesOfTwoWatches(t *testing.T) {
	m := newMaintenance("kernel", drain, "node-1", "node-2").started(0).rollingOut(twoAtATime(rebooted)).counting(1, 1, 0)
	failed := func(m maintenanceStory) maintenanceStory {
		return maintenanceStory{m.DeepCopy()}.counting(1, 1, 0, "node-1").halted().waitingFor(1, coordinationv1alpha1.NodeMaintenanceWaitHalted, "", nil)
	}
	inTime, late := admittedNode(m, "node-1", phaseDrained, time.Minute), admittedNode(m, "node-1", phaseFailed, 0)
	inTime.UID, late.UID = "uid-of-node-1", "uid-of-node-1"
	resumed := failed(m)
	resumed.Spec.Rollout.AcknowledgedNodeUIDs = append(resumed.Spec.Rollout.AcknowledgedNodeUIDs, late.UID)
	unseen := maintenanceStory{resumed.DeepCopy()}
	unseen.Generation++
	notHalted := maintenanceStory{resumed.DeepCopy()}
	notHalted.Generation, notHalted.Status.ObservedGeneration = 2, 2
	notHalted.Status.Conditions = nil
	const halted = "blocked: halted, because node-1 did not come back in time, and maxFailedNodes is 0: repair it, or go on without it: kubectl maintenance resume kernel"
	const waiting = "waiting: 1 because more nodes have failed than spec.rollout.maxFailedNodes"
	r := &reporter{}
	for _, step := range []struct {
		name  string
		story maintenanceStory
		node  *corev1.Node
		want  []string
	}{
		{"drained", m, inTime, []string{"stage Drain, 2 nodes", "0 done, 1 in progress (1 drained), 1 waiting", "node-1: drained"}},
		{"the maintenance says it first", failed(m), inTime, nil},
		{"the node says it too", failed(m), late, []string{halted, waiting, "node-1: did not come back in time"}},
		{"resumed", unseen, late, []string{"resolved: no longer halted"}},
		{"the controller has acted", notHalted, late, []string{"0 done, 1 in progress (1 failed), 1 waiting"}},
	} {
		v := viewsIn(snapshotOf(step.story, step.node, newNode("node-2")))[0]
		if diff := cmp.Diff(step.want, r.changes(v, testNow)); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", step.name, diff)
		}
	}
}

// TestDrainedWithDoneNodes verifies that a drain that is limited by budgets shows nodes that were
// given back as they are, when no pod is left on the others.
func TestDrainedWithDoneNodes(t *testing.T) {
	m := newMaintenance("kernel", drain, "node-1", "node-2", "node-3").started(time.Hour).drained().counting(0, 2, 1)
	v := viewsIn(snapshotOf(m, admittedNode(m, "node-1", phaseDone, time.Hour), admittedNode(m, "node-2", phaseDrained, 0), drainingNode("node-3", 0, 1, "Draining")))[0]
	var drainedNodes []string
	for _, node := range v.Nodes {
		if node.Drained && node.Cordoned {
			drainedNodes = append(drainedNodes, node.Name)
		}
	}
	if diff := cmp.Diff([]string{"node-2", "node-3"}, drainedNodes); diff != "" || v.Outcome != outcomeDrained || v.DrainedNodes != 3 {
		t.Errorf("%q, %d nodes are drained (-want, +got):\n%s", v.Outcome, v.DrainedNodes, diff)
	}
}

// TestCrowdedScreenShowsHalted verifies that a maintenance that is halted comes before others if not
// all fit.
func TestCrowdedScreenShowsHalted(t *testing.T) {
	views := append(viewsIn(snapshotOf(drainsOf(1)...)), viewsIn(snapshotOf(haltedStories()...))...)
	for i := range 10 {
		name := fmt.Sprintf("a-%02d", i)
		views = append(views, viewsIn(snapshotOf(newMaintenance(name, drain, "n").started(0), newNode("n")))...)
	}
	views[0], views[len(views)-1] = views[len(views)-1], views[0]
	screen := renderScreen(views, testNow, defaultWidth, 5)
	contains(t, screen, "kernel: Drain for 120m, 0 of 13 nodes done, halted\n  ! halted, because node-00, ", "of them blocked")
}

// TestWatchOfRollout does not end when the nodes are drained, but when all are done.
func TestWatchOfRollout(t *testing.T) {
	begun := func(m maintenanceStory) maintenanceStory {
		return m.started(time.Minute).rollingOut(twoAtATime(rebooted))
	}
	m := begun(newMaintenance("kernel", drain, "node-1")).drained().counting(0, 1, 0)
	s := newServer(t, m, admittedNode(m, "node-1", phaseDrained, time.Minute))
	s.whenLooked(func() {
		if err := s.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), admittedNode(m, "node-1", phaseDone, 0), ""); err != nil {
			t.Error(err)
		}
		s.update(t, begun(newMaintenance("kernel", drain, "node-1")).drained().counting(0, 0, 1))
	})
	contains(t, s.mustRun(t, "watch", "kernel"), "0 done, 1 in progress (1 drained), 0 waiting\n", "kernel: done: released 1 node\n")

	stories := haltedStories()
	s = newServer(t, stories...)
	s.whenLooked(func() { s.end(context.DeadlineExceeded) })
	s.run(t, "watch", "--timeout=1m")
	contains(t, s.failure, "timed out while something was blocked; the maintenance continues: kubectl maintenance watch kernel\nkernel: halted, because node-00, node-01,")
	if s.code != exitBlocked {
		t.Errorf("exit code %d", s.code)
	}
	if strings.Contains(s.failure, "Not cordoned") {
		t.Errorf("nodes that wait are reported as not cordoned: %s", s.failure)
	}
}

// TestWaitingNodesAreNotCordoned verifies that nodes that wait are no problem, whatever the time.
func TestWaitingNodesAreNotCordoned(t *testing.T) {
	_, stories := rolloutStories()
	v := viewsIn(snapshotOf(stories...))[0]
	if names := v.unexplained(); len(names) > 0 {
		t.Errorf("not cordoned: %v", names)
	}
	f := &follower{last: map[string]*view{"kernel": v}, goal: drained(isEnded)}
	var exit exec.CodeExitError
	if err := f.timedOut(); !asExit(err, &exit) || exit.Code != exitTimedOut {
		t.Errorf("%v", err)
	}
}

func asExit(err error, exit *exec.CodeExitError) bool {
	found, ok := err.(exec.CodeExitError)
	*exit = found
	return ok
}

// TestCommandsAreOnOneLine verifies that commands can be copied, on terminals of any usual width: the first
// line of "kubectl maintenance complete NAME NODE" alone would release all nodes.
func TestCommandsAreOnOneLine(t *testing.T) {
	for width := 60; width <= 120; width++ {
		for length := 1; length <= 40; length++ {
			name := strings.Repeat("k", length)
			begun := func(policy coordinationv1alpha1.NodeCompletionPolicy) maintenanceStory {
				return newMaintenance(name, drain, "n", "m").started(time.Hour).rollingOut(twoAtATime(policy)).counting(1, 1, 0)
			}
			paused, halted := begun(manual), begun(rebooted).counting(1, 1, 0, "n").halted()
			paused.Spec.Rollout.Paused = true
			unseen := newMaintenance(name, drain, "n")
			overdue := admittedNode(begun(rebooted), "n", phaseDrained, 2*time.Hour)
			overdue.Status.NodeInfo.BootID = "boot-2"
			readyFor(overdue, corev1.ConditionTrue, time.Hour)
			unknown := admittedNode(begun(rebooted), "n", phaseDrained, 2*time.Hour)
			maintenance.Admissions(unknown)[0].BootID = ""
			views := func(stories ...any) string {
				return renderStatus(viewsIn(snapshotOf(append(stories, newNode("m"))...)), testNow, width)
			}
			plan := &page{width: width}
			plan.addRolloutPlan(&rolloutPlan{Paused: true, Halted: true}, name, testNow)
			notice := &page{width: width}
			notice.wrappedOwn("", (&follower{uncordoned: patience{name: testNow.Add(-time.Hour)}}).uncordonedText([]*view{{Stage: cordon, observed: true, StageStarted: ptr.To(ago(0)), Nodes: []*nodeView{{Name: name}}}}, testNow))
			for _, shown := range []struct{ what, text, command string }{
				{"awaits completion", views(begun(manual), admittedNode(begun(manual), "n", phaseDrained, 0)), "kubectl maintenance complete " + name + " NODE"},
				{"paused", views(paused, newNode("n")), "kubectl maintenance resume " + name},
				{"halted", views(halted, admittedNode(halted, "n", phaseFailed, 0)), "kubectl maintenance resume " + name},
				{"overdue", views(begun(rebooted), overdue), "kubectl get lease -n kube-system kube-controller-manager -o yaml"},
				{"no reboot helps", views(begun(rebooted), unknown), "kubectl maintenance complete " + name + " NODE"},
				{"unseen", views(unseen, newNode("n")), "kubectl describe nodemaintenance " + name},
				{"plan", plan.String(), `until "kubectl maintenance resume ` + name + `"`},
				{"plan", plan.String(), `or "kubectl maintenance resume ` + name + `"`},
				{"notice", notice.String(), "kubectl describe node " + name},
			} {
				if strings.HasPrefix(shown.command, "until") || strings.HasPrefix(shown.command, "or") {
					_, shown.command, _ = strings.Cut(shown.command, " ")
				}
				whole := 0
				for _, line := range strings.Split(shown.text, "\n") {
					whole += strings.Count(line, shown.command)
					// Only a line with a command may be longer, if it has nothing else.
					if len(line) > width && !strings.HasPrefix(strings.TrimLeft(line, " \""), "kubectl ") {
						t.Errorf("%s, width %d: %d columns: %q", shown.what, width, len(line), line)
					}
				}
				if whole == 0 {
					t.Fatalf("%s, width %d: %q is on no line of:\n%s", shown.what, width, shown.command, shown.text)
				}
			}
		}
	}
}

// TestTextsOfOthersAreBroken verifies that texts of other clients stay within the width, also if they look like
// commands.
func TestTextsOfOthersAreBroken(t *testing.T) {
	const width = 60
	text := "kubectl" + strings.Repeat(" "+strings.Repeat("x", 30), 12)
	begun := func(name string) maintenanceStory {
		m := newMaintenance(name, drain, "n", "m").started(time.Hour).reason(text).condition(metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonDraining, text)
		m.Status.DrainStatus.DrainMessage = text
		return m
	}
	blocked := begun("blocked")
	blocked.Status.DrainStatus.Blockers = []coordinationv1alpha1.DrainBlocker{{Cause: coordinationv1alpha1.DrainBlockerInterceptor, Name: "a", PodCount: 1, Message: text}}
	cordoned := newMaintenance("cordoned", cordon, "n").started(time.Hour)
	uncordoned := drainingNode("n", 1, 0, text)
	uncordoned.Spec.Unschedulable = false
	for name, page := range map[string]string{
		"drain":    renderStatus(viewsIn(snapshotOf(begun("plain"), drainingNode("n", 1, 0, text), newNode("m"))), testNow, width),
		"blocked":  renderStatus(viewsIn(snapshotOf(blocked, drainingNode("n", 1, 0, text), newNode("m"))), testNow, width),
		"rollout":  renderStatus(viewsIn(snapshotOf(begun("rollout").rollingOut(twoAtATime(manual)), drainingNode("n", 1, 0, text), newNode("m"))), testNow, width),
		"cordoned": renderStatus(viewsIn(snapshotOf(cordoned, uncordoned)), testNow, width),
		"trouble":  screenOf(t, frame{trouble: "The view may be outdated, retrying: " + text}, width),
	} {
		if !strings.Contains(page, "kubectl") {
			t.Errorf("%s: the text is missing:\n%s", name, page)
		}
		for _, line := range strings.Split(page, "\n") {
			if len(line) > width || strings.HasSuffix(line, "...") || strings.HasPrefix(line, "xxx") && name != "trouble" {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
	const command = "kubectl describe node some-node-of-a-name-of-34-letters"
	contains(t, screenOf(t, frame{uncordoned: "Not cordoned for 30s: some-node. For the reason, see the events: " + command}, width), "\n"+command+"\n")
}

// screenOf returns the lines of a screen of this width.
func screenOf(t *testing.T, shown frame, width int) string {
	t.Helper()
	var out bytes.Buffer
	display := &screen{out: &out, size: func() (int, int) { return width, 40 }}
	if err := display.show(shown); err != nil {
		t.Fatal(err)
	}
	return withoutOwnSequences(out.String())
}

// readyFor sets the condition Ready of a node, and since when it has that status.
func readyFor(node *corev1.Node, status corev1.ConditionStatus, before time.Duration) {
	condition := &node.Status.Conditions[len(node.Status.Conditions)-1]
	condition.Status, condition.LastTransitionTime = status, ago(before)
}

// TestReturnsAreObserved verifies that a command that stays sees which nodes are released too late, by its own clock
// alone: nodes may not say since when they are Ready, or by a clock that differs.
func TestReturnsAreObserved(t *testing.T) {
	m := newMaintenance("kernel", drain, "n").started(time.Hour).rollingOut(twoAtATime(rebooted)).counting(0, 1, 0)
	node := func(boot string) *corev1.Node {
		node := admittedNode(m, "n", phaseDrained, 3*time.Hour)
		node.Status.NodeInfo.BootID = boot
		readyFor(node, corev1.ConditionTrue, 99*time.Hour)
		return node
	}
	seen := patience{}
	for _, step := range []struct {
		name  string
		boot  string
		after time.Duration
		want  bool
	}{
		{"at once, by the clock of a node that is behind", "boot-2", 0, false},
		{"not rebooted", "boot-1", 0, false},
		{"at once", "boot-2", 0, false},
		{"a minute later", "boot-2", time.Minute, false},
		{"later", "boot-2", time.Minute + time.Second, true},
		{"not any more", "boot-1", 2 * time.Minute, false},
		{"again", "boot-2", 3 * time.Minute, false},
		{"again, later", "boot-2", 5 * time.Minute, true},
	} {
		now, n := testNow.Add(step.after), node(step.boot)
		if strings.Contains(step.name, "clock") {
			readyFor(n, corev1.ConditionTrue, 2*time.Hour)
		}
		views := viewsIn(snapshotOf(m, n))
		seen.noteReady(views, now)
		if text := views[0].overdueText(now); (text != "") != step.want {
			t.Errorf("%s: %q", step.name, text)
		}
	}
	s := newServer(t, m, node("boot-2"))
	looks := 0
	s.clock.looked = func() {
		s.clock.Step(2 * time.Minute)
		if looks++; looks == 2 {
			s.end(context.DeadlineExceeded)
		}
	}
	contains(t, s.run(t, "watch", "kernel"), "kernel: check: 1 rebooted node is not released, so kube-controller-manager may not run")
	contains(t, s.failure, "timed out; ", "kernel: 1 rebooted node is not released")
}

// TestNothingToDoForTheGone verifies that nothing is asked for, and that nothing blocks, when a maintenance is gone.
func TestNothingToDoForTheGone(t *testing.T) {
	m := newMaintenance("kernel", drain, "n", "m", "k").started(5*time.Hour).rollingOut(twoAtATime(rebooted)).counting(0, 3, 0)
	late, returning := admittedNode(m, "n", phaseDrained, 3*time.Hour), admittedNode(m, "m", phaseReturning, 3*time.Hour)
	late.Status.NodeInfo.BootID = "boot-2"
	readyFor(late, corev1.ConditionTrue, time.Hour)
	readyFor(returning, corev1.ConditionTrue, time.Hour)
	unknown := admittedNode(m, "k", phaseDrained, time.Hour)
	maintenance.Admissions(unknown)[0].BootID = ""
	shown := viewsIn(snapshotOf(m, late, returning, unknown))[0]
	shown.PodsBlocked, shown.Blockers = 1, []*blockerView{{Cause: maintenance.BlockerDisruptionBudget, Name: "db", Blocked: true, Pods: 1}}
	for _, tc := range []struct {
		name   string
		change func(v *view)
		texts  int
		code   int
	}{
		{"it exists", func(*view) {}, 3, exitBlocked},
		{"being deleted", func(v *view) { v.Deleting = true }, 0, exitBlocked},
		{"deleted", func(v *view) { v.Outcome = outcomeDeleted }, 0, exitTimedOut},
		{"replaced", func(v *view) { v.Outcome = outcomeReplaced }, 0, exitTimedOut},
	} {
		v := shown
		tc.change(v)
		texts := 0
		for _, text := range []string{v.overdueText(testNow), v.unreleasedText(testNow), v.nextText()} {
			if text != "" {
				texts++
			}
		}
		f := &follower{last: map[string]*view{"kernel": v}, shown: frame{now: testNow}, goal: drained(isEnded)}
		var exit exec.CodeExitError
		if err := f.timedOut(); texts != tc.texts || !asExit(err, &exit) || exit.Code != tc.code {
			t.Errorf("%s: %d texts, %v", tc.name, texts, err)
		}
	}
}

// TestRebootedNodes covers nodes that were rebooted and are not released, as while kube-controller-manager does
// not run.
func TestRebootedNodes(t *testing.T) {
	const (
		overdue    = "Check: 1 rebooted node is not released, so kube-controller-manager may not run; see renewTime of its lease: kubectl get lease -n kube-system kube-controller-manager -o yaml"
		reboot     = "reboot the drained nodes"
		daemonSets = "Check: n is not released yet; if this lasts, see its DaemonSet pods: kubectl get pods -A --field-selector spec.nodeName=n"
		notActed   = "completed, the controller has not acted yet"
	)
	boot := func(drained, current string) func(*corev1.Node) {
		return func(node *corev1.Node) {
			maintenance.Admissions(node)[0].BootID, node.Status.NodeInfo.BootID = drained, current
		}
	}
	ready := func(status corev1.ConditionStatus, before time.Duration) func(*corev1.Node) {
		return func(node *corev1.Node) { readyFor(node, status, before) }
	}
	returned := func(before time.Duration) func(*corev1.Node) {
		return func(node *corev1.Node) { maintenance.Admissions(node)[0].ReturningTime = ptr.To(ago(before)) }
	}
	completed := func(node *corev1.Node) { marked(node, "uid-of-kernel") }
	for _, tc := range []struct {
		name    string
		policy  coordinationv1alpha1.NodeCompletionPolicy
		phase   nodePhase
		changes []func(*corev1.Node)
		want    []string
		without []string
	}{
		{"not rebooted", rebooted, phaseDrained, nil, []string{"Drained for 3h", reboot}, []string{"ebooted", "Check:"}},
		{"Ready for long", rebooted, phaseDrained, []func(*corev1.Node){boot("boot-1", "boot-2"), ready(corev1.ConditionTrue, 2*time.Hour)}, []string{"Drained for 3h, rebooted, Ready for 120m, not released yet", overdue}, []string{reboot}},
		{"Ready since its drain", rebooted, phaseDrained, []func(*corev1.Node){boot("boot-1", "boot-2"), ready(corev1.ConditionTrue, 99*time.Hour)}, []string{"Drained for 3h, rebooted, Ready"}, []string{reboot, "Ready for", "not released", "Check:"}},
		{"Ready for a moment", rebooted, phaseDrained, []func(*corev1.Node){boot("boot-1", "boot-2"), ready(corev1.ConditionTrue, 40*time.Second)}, []string{"Drained for 3h, rebooted, Ready for 40s"}, []string{reboot, "not released", "Check:"}},
		{"not Ready", rebooted, phaseDrained, []func(*corev1.Node){boot("boot-1", "boot-2"), ready(corev1.ConditionFalse, time.Hour)}, []string{"Drained for 3h, rebooted, not Ready"}, []string{reboot, "not released", "Check:"}},
		{"the boot at the drain is unknown", rebooted, phaseDrained, []func(*corev1.Node){boot("", "boot-2")}, []string{"Drained for 3h, its boot ID is unknown", "Next: when the work on a node whose boot ID is unknown is done: kubectl maintenance complete kernel NODE"}, []string{reboot, "ebooted", "Check:"}},
		{"its boot is unknown", rebooted, phaseDrained, []func(*corev1.Node){boot("boot-1", "")}, []string{"Drained for 3h", reboot}, []string{"ebooted", "Check:"}},
		{"completed", rebooted, phaseDrained, []func(*corev1.Node){completed}, []string{"Drained for 3h, " + notActed}, []string{"Next:", "Check:"}},
		{"completed by a person", manual, phaseDrained, []func(*corev1.Node){completed}, []string{"Drained for 3h, " + notActed}, []string{"Next:", "Check:"}},
		{"completed for another", manual, phaseDrained, []func(*corev1.Node){func(node *corev1.Node) { marked(node, "uid-of-another") }}, []string{"kubectl maintenance complete kernel NODE"}, []string{notActed, "Check:"}},
		{"completed and rebooted", rebooted, phaseDrained, []func(*corev1.Node){completed, boot("boot-1", "boot-2"), ready(corev1.ConditionTrue, 2*time.Hour)}, []string{"Drained for 3h, " + notActed, overdue}, []string{"Next:"}},
		{"completed, the boot at the drain is unknown", rebooted, phaseDrained, []func(*corev1.Node){completed, boot("", "boot-2")}, []string{"Drained for 3h, " + notActed}, []string{"Next:", "boot ID"}},
		{"failed, then completed", rebooted, phaseFailed, []func(*corev1.Node){completed}, []string{"Failed for 3h, " + notActed}, []string{"Check:", "not rebooted"}},
		{"completed, and the controller has acted", manual, phaseReturning, []func(*corev1.Node){completed}, []string{"Returning for 3h, not Ready"}, []string{notActed, "Check:"}},
		{"a reboot ends nothing", manual, phaseDrained, []func(*corev1.Node){boot("boot-1", "boot-2"), ready(corev1.ConditionTrue, 2*time.Hour)}, []string{"Drained for 3h", "kubectl maintenance complete kernel NODE"}, []string{"ebooted", "Check:"}},
		{"failed", rebooted, phaseFailed, nil, []string{"Failed for 3h, not rebooted"}, []string{"Check:"}},
		{"failed, and rebooted since", rebooted, phaseFailed, []func(*corev1.Node){boot("boot-1", "boot-2"), ready(corev1.ConditionTrue, 2*time.Hour)}, []string{"Failed for 3h, rebooted, Ready for 120m, not released yet", overdue}, []string{"not rebooted"}},
		{"failed, rebooted, not Ready", rebooted, phaseFailed, []func(*corev1.Node){boot("boot-1", "boot-2"), ready(corev1.ConditionUnknown, 2*time.Hour)}, []string{"Failed for 3h, rebooted, not Ready"}, []string{"not rebooted", "Check:"}},
		{"failed, the boot at the drain is unknown", rebooted, phaseFailed, []func(*corev1.Node){boot("", "boot-2")}, []string{"Failed for 3h, its boot ID is unknown"}, []string{"not rebooted"}},
		{"failed, its boot is unknown", rebooted, phaseFailed, []func(*corev1.Node){boot("boot-1", "")}, []string{"Failed for 3h, its boot ID is unknown"}, []string{"not rebooted"}},
		{"failed after its reboot", rebooted, phaseFailed, []func(*corev1.Node){boot("boot-1", "boot-2"), returned(time.Hour)}, []string{"Failed for 3h, not released yet", daemonSets}, []string{"NodeNotBack", "not rebooted"}},
		{"failed, and its work was done a moment ago", rebooted, phaseFailed, []func(*corev1.Node){boot("boot-1", "boot-2"), returned(40 * time.Second)}, []string{"Failed for 3h, not released yet"}, []string{"Check:"}},
		{"failed, and Ready for a moment", rebooted, phaseFailed, []func(*corev1.Node){boot("boot-1", "boot-2"), returned(time.Hour), ready(corev1.ConditionTrue, 40*time.Second)}, []string{"Failed for 3h, not released yet"}, []string{"Check:"}},
		{"returning", manual, phaseReturning, []func(*corev1.Node){ready(corev1.ConditionTrue, time.Hour)}, []string{"Returning for 3h, not released yet", daemonSets}, []string{"pods of DaemonSets not ready"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMaintenance("kernel", drain, "n").started(time.Hour).rollingOut(twoAtATime(tc.policy)).counting(0, 1, 0)
			node := admittedNode(m, "n", tc.phase, 3*time.Hour)
			for _, change := range tc.changes {
				change(node)
			}
			views := viewsIn(snapshotOf(m, node))
			// Lines that are wrapped are joined.
			text := strings.Join(strings.Fields(renderStatus(views, testNow, defaultWidth)), " ")
			contains(t, text, tc.want...)
			for _, unwanted := range tc.without {
				if strings.Contains(text, unwanted) {
					t.Errorf("%q is in %q", unwanted, text)
				}
			}
			// Lines without a terminal say it once.
			r, line := &reporter{}, ""
			for range 2 {
				for _, change := range r.changes(views[0], testNow) {
					if check, found := strings.CutPrefix(change, "check: "); found {
						line += "Check: " + check
					}
				}
			}
			if shown := strings.Contains(text, "Check: "); shown != (line != "") || !strings.Contains(text, line) {
				t.Errorf("a line says %q, and the page %q", line, text)
			}
		})
	}
}

// TestRebootedNodesAreShownFirst verifies that nodes are not hidden that are not released.
func TestRebootedNodesAreShownFirst(t *testing.T) {
	stories := haltedStories()[:1]
	m := stories[0].(maintenanceStory)
	for i := range 12 {
		stories = append(stories, admittedNode(m, fmt.Sprintf("node-%02d", i), phaseDraining, time.Hour))
	}
	late := admittedNode(m, "node-99", phaseDrained, time.Hour)
	late.Status.NodeInfo.BootID = "boot-2"
	v := viewsIn(snapshotOf(append(stories, late)...))[0]
	if shown, _ := v.rolloutNodesToShow(maxRolloutRows); shown[0].Name != "node-99" {
		t.Errorf("the first row is that of %s", shown[0].Name)
	}
}

// TestHostileRollout covers texts of rollouts that a general poisoning makes unreachable.
func TestHostileRollout(t *testing.T) {
	const hostile = plaintexttesting.Text
	stories := haltedStories()
	m := stories[0].(maintenanceStory)
	for i := range m.Status.RolloutStatus.Failed {
		m.Status.RolloutStatus.Failed[i] += hostile
	}
	m.waitingFor(1, coordinationv1alpha1.NodeMaintenanceWaitReason(hostile), "budget"+hostile, nil)
	for _, story := range stories[1:] {
		node := story.(*corev1.Node)
		node.Spec.Taints = []corev1.Taint{{Key: "taint" + hostile, Effect: corev1.TaintEffectNoSchedule}}
		if admissions := maintenance.Admissions(node); len(admissions) > 0 {
			admissions[0].ReturningTime = ptr.To(ago(0))
		}
	}
	for _, args := range [][]string{{"status"}, {"status", "-o", "json"}, {"watch"}} {
		s := newServer(t, stories...)
		s.whenLooked(func() { s.end(context.DeadlineExceeded) })
		out := s.run(t, args...) + s.failure
		plaintexttesting.Check(t, fmt.Sprint(args), out)
		if strings.Count(out, plaintexttesting.Forged) < 10 {
			t.Errorf("%v: not poisoned: %s", args, out)
		}
	}
}
