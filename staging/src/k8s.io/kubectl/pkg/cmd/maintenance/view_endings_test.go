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
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubectl/pkg/cmd/maintenance/nodeselection"
	"k8s.io/utils/ptr"
)

// ofGeneration sets a later generation, which the controller has observed.
func (m maintenanceStory) ofGeneration(generation int64) maintenanceStory {
	m.Generation, m.Status.ObservedGeneration = generation, generation
	return m
}

// conditionOf sets the generation for which the conditions were written.
func (m maintenanceStory) conditionOf(generation int64) maintenanceStory {
	for i := range m.Status.Conditions {
		m.Status.Conditions[i].ObservedGeneration = generation
	}
	return m
}

// another sets the UID of another maintenance of the same name.
func (m maintenanceStory) another() maintenanceStory {
	m.UID = "uid-of-another"
	return m
}

func (m maintenanceStory) deletedNow() maintenanceStory {
	m.DeletionTimestamp = ptr.To(ago(0))
	return m
}

// deleteRack deletes the maintenance "rack".
func deleteRack(t *testing.T, s *server) {
	if err := s.Tracker().Delete(coordinationv1alpha1.SchemeGroupVersion.WithResource(resource), "", "rack"); err != nil {
		t.Error(err)
	}
}

// TestEndings covers all ways in which a wait for a drain ends. "watch rack && reboot" is safe only
// if success means that the nodes are drained now.
func TestEndings(t *testing.T) {
	began := func() maintenanceStory {
		return newMaintenance("rack", drain, "node-1").started(time.Minute).condition(metav1.ConditionFalse, "Draining", "1 pod left on 1 of 1 node.")
	}
	drained := func(nodes ...string) maintenanceStory {
		return newMaintenance("rack", drain, nodes...).started(time.Minute).drained()
	}
	end := func(cause error) func(*testing.T, *server) {
		return func(_ *testing.T, s *server) { s.end(cause) }
	}
	becomes := func(stories ...maintenanceStory) func(*testing.T, *server) {
		return func(t *testing.T, s *server) {
			for _, story := range stories {
				s.update(t, story)
			}
		}
	}
	for _, tc := range []struct {
		name    string
		change  func(*testing.T, *server)
		code    int
		failure string
	}{
		{"drained", becomes(drained("node-1")), 0, ""},
		{"deleted", deleteRack, 1, "error: NodeMaintenance rack was deleted: its nodes are released"},
		{"recreated, and drained", func(t *testing.T, s *server) {
			deleteRack(t, s)
			if err := s.Tracker().Create(coordinationv1alpha1.SchemeGroupVersion.WithResource(resource), drained("node-1").another().NodeMaintenance, ""); err != nil {
				t.Error(err)
			}
		}, 1, "was deleted: its nodes are released"}, // The other one may not be observed.
		{"replaced in one update", becomes(drained("node-1").another()), 1, "was deleted: its nodes are released; another maintenance has its name now"},
		{"completed before it was drained", becomes(newMaintenance("rack", complete, "node-1").started(0).completed().
			condition(metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonNotDraining, "The maintenance was completed before all pods had left.")),
			1, "was completed before it was drained: its nodes are released"},
		{"completed after it was drained", becomes(newMaintenance("rack", complete, "node-1").started(0).drained().completed()),
			1, "was drained and then completed: its nodes are released and may run pods again"},
		{"canceled", becomes(began().deletedNow()), 1, "is being deleted: its nodes are released"},
		{"canceled when it was drained", becomes(drained("node-1").deletedNow()), 1, "is being deleted: its nodes are released"},
		{"other nodes are selected, and drained", becomes(drained("node-2").ofGeneration(2).conditionOf(2)), 1, "is drained, but its node selector has changed"},
		{"one node fewer is selected, and drained", becomes(drained().ofGeneration(2).conditionOf(2)), 1, "is drained, but its node selector has changed"},
		{"drained for an older generation", func(t *testing.T, s *server) {
			// observedGeneration is current, but the condition is not: the wait times out.
			s.update(t, drained("node-1").ofGeneration(2).conditionOf(1))
			s.whenLooked(func() { s.end(context.DeadlineExceeded) })
		}, exitTimedOut, "timed out; the maintenance continues: kubectl maintenance watch rack"},
		{"drained, but the controller has not seen the change", func(t *testing.T, s *server) {
			story := drained("node-1").conditionOf(2)
			story.Generation = 2
			s.update(t, story)
			s.whenLooked(func() { s.end(context.DeadlineExceeded) })
		}, exitTimedOut, "timed out; the maintenance continues: kubectl maintenance watch rack"},
		{"no node is selected", func(t *testing.T, s *server) {
			s.update(t, began().condition(metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonNoNodes, "spec.nodeSelector matches no node."))
			s.whenLooked(func() { s.end(context.DeadlineExceeded) })
		}, exitTimedOut, "timed out; the maintenance continues: kubectl maintenance watch rack"},
		{"timeout", end(context.DeadlineExceeded), exitTimedOut, "timed out; the maintenance continues: kubectl maintenance watch rack"},
		{"Ctrl-C", end(nil), exitInterrupted, "interrupted; the maintenance continues: kubectl maintenance watch rack"},
	} {
		for _, command := range [][]string{{"watch", "rack"}, {"start", "--name=rack", "--wait"}} {
			t.Run(command[0]+": "+tc.name, func(t *testing.T) {
				s := newServer(t, began(), drainingNode("node-1", 0, 1, "Draining"), newNode("node-2"), newPod("web-0", "node-1").asked())
				s.whenLooked(func() { tc.change(t, s) })
				s.run(t, command...)
				if s.code != tc.code {
					t.Errorf("exit code %d, want %d: %s", s.code, tc.code, s.failure)
				}
				contains(t, s.failure, tc.failure)
			})
		}
	}
}

// TestEndingsBlocked verifies the exit code if blockers remain.
func TestEndingsBlocked(t *testing.T) {
	s := newServer(t, newMaintenance("rack", drain, "node-1").started(time.Minute), drainingNode("node-1", 0, 1, "Draining"), newPod("db-0", "node-1").asked().blocked(), newBudget("db", "db", 0))
	s.whenLooked(func() { s.end(context.DeadlineExceeded) })
	s.run(t, "watch", "rack")
	contains(t, s.failure, "timed out while pods were blocked", "PodDisruptionBudget default/db")
	if s.code != exitBlocked {
		t.Errorf("exit code %d", s.code)
	}
}

// TestEndingsLostConnection verifies that a lost connection does not end the wait, and that the
// error after a timeout mentions it.
func TestEndingsLostConnection(t *testing.T) {
	s := newServer(t, newMaintenance("rack", drain, "node-1").started(time.Minute), drainingNode("node-1", 0, 1, "Draining"))
	s.PrependWatchReactor(resource, func(clienttesting.Action) (bool, watch.Interface, error) {
		return true, nil, errors.New("connection refused")
	})
	s.clock.looked = func() {
		if strings.Contains(s.out.String(), "may be outdated") {
			s.end(context.DeadlineExceeded)
		}
	}
	s.run(t, "watch", "rack")
	contains(t, s.failure, "timed out; the maintenance continues: kubectl maintenance watch rack\nThe view may be outdated, retrying: connection refused")
	if s.code != exitTimedOut {
		t.Errorf("exit code %d", s.code)
	}
}

// TestEndingsOfSeveral verifies that watch fails if one maintenance is not drained, and names it.
func TestEndingsOfSeveral(t *testing.T) {
	one := newMaintenance("one", drain, "node-1").started(time.Minute).drained()
	two := newMaintenance("two", complete, "node-1").started(time.Minute).completed()
	s := newServer(t, one, two, newNode("node-1"))
	s.run(t, "watch", "one", "two")
	if want := "error: NodeMaintenance two was completed before it was drained: its nodes are released"; s.failure != want || s.code != 1 {
		t.Errorf("exit code %d, %q, want 1, %q", s.code, s.failure, want)
	}
	s.mustRun(t, "watch")
	nothing := newServer(t, two, newNode("node-1"))
	nothing.run(t, "watch")
	if want := "error: no maintenances found that are not completed"; nothing.failure != want || nothing.code != 1 {
		t.Errorf("nothing to watch: exit code %d, %q, want 1, %q", nothing.code, nothing.failure, want)
	}
}

// TestCompleteWaitsForTheSameOne does not wait for another maintenance of the same name.
func TestCompleteWaitsForTheSameOne(t *testing.T) {
	for _, command := range []string{"complete", "cancel"} {
		s := newServer(t, newMaintenance("rack", complete, "node-1").started(0), newNode("node-1"))
		s.PrependReactor("delete", resource, ignoreDelete)
		s.whenLooked(func() { s.update(t, newMaintenance("rack", drain, "node-1").started(0).another()) })
		contains(t, s.mustRun(t, command, "rack", "--wait"), "rack: deleted; another maintenance has its name now\n")
	}
}

// TestNoController verifies that a controller that does not act is reported once, after a while.
func TestNoController(t *testing.T) {
	const notice = "No controller has acted on node-1-x7k2p for 30s: kube-controller-manager does not run, its feature gate DeclarativeNodeMaintenance is off, or the API server refuses its writes. See the events: kubectl describe nodemaintenance node-1-x7k2p\n"
	s := newServer(t, newNode("node-1"))
	looks := 0
	s.clock.looked = func() {
		switch looks++; {
		case looks == 1 && strings.Contains(s.out.String(), "No controller"):
			t.Error("reported immediately")
		case looks == 1:
			s.clock.Step(controllerPatience - 1)
		case looks == 2 && strings.Contains(s.out.String(), "No controller"):
			t.Error("reported too early")
		case looks == 2:
			s.clock.Step(1)
		case looks == 5:
			s.end(nil)
		}
	}
	out := s.run(t, "start", "node-1", "--wait")
	if count := strings.Count(out, notice); count != 1 {
		t.Errorf("reported %d times: %s", count, out)
	}
}

// TestNoControllerForgets verifies that the wait starts again once a controller has acted.
func TestNoControllerForgets(t *testing.T) {
	f := &follower{unobserved: patience{}}
	unseen, seen := view{Name: "rack"}, view{Name: "rack", observed: true}
	for i, step := range []struct {
		view     view
		after    time.Duration
		reported bool
	}{{unseen, 0, false}, {unseen, controllerPatience, true}, {seen, controllerPatience, false}, {unseen, controllerPatience, false}, {unseen, 2 * controllerPatience, true}} {
		if text := f.unobservedText([]*view{&step.view}, testNow.Add(step.after)); (text != "") != step.reported {
			t.Errorf("step %d: %q", i, text)
		}
	}
}

// TestDeletedWhileOthersDrain fails even for a maintenance that was drained before its deletion.
func TestDeletedWhileOthersDrain(t *testing.T) {
	s := newServer(t, newMaintenance("rack", drain, "node-1").started(0).drained(), newMaintenance("slow", drain, "node-1").started(0), newNode("node-1"))
	s.whenLooked(func() {
		deleteRack(t, s)
		s.whenLooked(func() { s.update(t, newMaintenance("slow", drain, "node-1").started(0).drained()) })
	})
	s.run(t, "watch")
	if want := "error: NodeMaintenance rack was deleted: its nodes are released"; s.failure != want || s.code != 1 {
		t.Errorf("exit code %d, %q, want 1, %q", s.code, s.failure, want)
	}
}

// TestEndsAtTheLastMoment verifies that a wait that has reached its goal is not interrupted.
func TestEndsAtTheLastMoment(t *testing.T) {
	ended, end := context.WithCancelCause(t.Context())
	end(context.DeadlineExceeded)
	f := &follower{goal: drained(isEnded)}
	if err := f.interrupted(ended, nil); err != nil {
		t.Error(err)
	}
}

// TestTroubleTwice verifies that trouble is reported again if it has ended in between.
func TestTroubleTwice(t *testing.T) {
	var out bytes.Buffer
	d := &lineDisplay{out: &out}
	for _, text := range []string{"lost", "lost", "", "lost"} {
		if err := d.show(frame{trouble: text, now: testNow}); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "lost\nlost\n" {
		t.Errorf("%q", out.String())
	}
}

// TestWhatContinues verifies that the error names the command to continue with.
func TestWhatContinues(t *testing.T) {
	nm := func() maintenanceStory { return newMaintenance("rack", drain, "node-1").started(0) }
	for _, tc := range []struct {
		command []string
		want    string
	}{
		{[]string{"watch"}, "the maintenance continues: kubectl maintenance watch rack"},
		{[]string{"complete", "rack", "--wait"}, "the nodes will be released anyway: kubectl maintenance status rack"},
		{[]string{"cancel", "rack", "--wait"}, "the nodes will be released anyway: kubectl maintenance status rack"},
	} {
		for cause, want := range map[error]string{context.Canceled: "interrupted; " + tc.want, context.DeadlineExceeded: "timed out; " + tc.want} {
			s := newServer(t, nm(), drainingNode("node-1", 0, 1, "Draining"))
			s.PrependReactor("delete", resource, ignoreDelete)
			s.whenLooked(func() { s.end(cause) })
			if s.run(t, tc.command...); s.failure != want {
				t.Errorf("%v: %q, want %q", tc.command, s.failure, want)
			}
		}
	}
	f := &follower{goal: drained(isEnded), uids: map[string]types.UID{"a": "", "b": "", "c": "", "d": ""}}
	if got, want := f.continues(), "the maintenance continues: kubectl maintenance watch"; got != want {
		t.Errorf("of many: %q, want %q", got, want)
	}
	f = &follower{goal: released(isEnded), uids: map[string]types.UID{"a": ""}, shown: frame{silent: "Its lease is old."}}
	if got, want := f.continues(), "no node is released before a controller acts: kubectl maintenance status a"; got != want {
		t.Errorf("of a silent controller: %q, want %q", got, want)
	}
}

// TestTimedOutWithoutAController verifies that the error after a timeout mentions the controller.
func TestTimedOutWithoutAController(t *testing.T) {
	s := newServer(t, newMaintenance("rack", drain, "node-1"), newNode("node-1"))
	looks := 0
	s.clock.looked = func() {
		s.clock.Step(controllerPatience)
		if looks++; looks == 3 {
			s.end(context.DeadlineExceeded)
		}
	}
	s.run(t, "watch", "rack")
	contains(t, s.failure, "timed out while no controller acted; nothing goes on before a controller acts: kubectl maintenance watch rack", "\nNo controller has acted on rack for 30s: kube-controller-manager does not run, its feature gate ", ". See the events: kubectl describe nodemaintenance rack")
}

// TestNotCordoned verifies that nodes without a cordon are reported, and where to find the reason:
// nothing else reports a contested cordon.
func TestNotCordoned(t *testing.T) {
	const notice = "Not cordoned for 30s: node-1, node-2 and 1 more. For the reason, see the events: kubectl describe node node-1"
	s := newServer(t, newMaintenance("rack", cordon, "node-1", "node-2", "node-3", "node-4").started(0), newNode("node-1"), newNode("node-2"), newNode("node-3"), drainingNode("node-4", 0, 0, ""))
	looks := 0
	s.clock.looked = func() {
		switch looks++; {
		case looks == 1:
			s.clock.Step(controllerPatience - 1)
		case looks == 2 && strings.Contains(s.out.String(), "Not cordoned"):
			t.Error("reported too early")
		case looks == 2:
			s.clock.Step(1)
		case looks == 5:
			s.end(context.DeadlineExceeded)
		}
	}
	out := s.run(t, "start", "--name=rack", "--stage=Cordon", "--wait")
	if count := strings.Count(out, notice+"\n"); count != 1 {
		t.Errorf("reported %d times: %s", count, out)
	}
	contains(t, s.failure, "\n"+notice)
	for _, tc := range []struct {
		name     string
		v        view
		reported bool
	}{
		{"contested in a drain", view{Stage: drain, StageStarted: ptr.To(ago(0)), observed: true, Nodes: []*nodeView{{Name: "a"}}}, true},
		{"refused, which is a blocker", view{Stage: drain, StageStarted: ptr.To(ago(0)), observed: true, Nodes: []*nodeView{{Name: "a"}}, Blockers: []*blockerView{{Cause: maintenance.BlockerCordonFailed, Nodes: 1, Object: "Node a"}}}, false},
		{"contested, another one refused", view{Stage: cordon, StageStarted: ptr.To(ago(0)), observed: true, Nodes: []*nodeView{{Name: "a"}, {Name: "b"}}, Blockers: []*blockerView{{Cause: maintenance.BlockerCordonFailed, Nodes: 1, Object: "Node b"}}}, true},
		{"contested, one that has left refused", view{Stage: cordon, StageStarted: ptr.To(ago(0)), observed: true, Nodes: []*nodeView{{Name: "a"}}, Blockers: []*blockerView{{Cause: maintenance.BlockerCordonFailed, Nodes: 1, Object: "Node gone"}}}, true},
		{"two refused", view{Stage: cordon, StageStarted: ptr.To(ago(0)), observed: true, Nodes: []*nodeView{{Name: "a"}, {Name: "b"}}, Blockers: []*blockerView{{Cause: maintenance.BlockerCordonFailed, Nodes: 2, Object: "Node b"}}}, false},
		{"announced", view{Stage: idle, StageStarted: ptr.To(ago(0)), observed: true, Nodes: []*nodeView{{Name: "a"}}}, false},
		{"released", view{Stage: complete, StageStarted: ptr.To(ago(0)), observed: true, Nodes: []*nodeView{{Name: "a"}}}, false},
		{"not started", view{Stage: cordon, Nodes: []*nodeView{{Name: "a"}}}, false},
		{"cordoned", view{Stage: cordon, StageStarted: ptr.To(ago(0)), observed: true, Nodes: []*nodeView{{Name: "a", Cordoned: true}}}, false},
	} {
		f := &follower{uncordoned: patience{"a": testNow}}
		if text := f.uncordonedText([]*view{&tc.v}, testNow.Add(controllerPatience)); (text != "") != tc.reported || strings.Contains(text, "b,") {
			t.Errorf("%s: %q", tc.name, text)
		}
	}
}

// TestCordonWaits verifies that a wait ends when all nodes are cordoned, and fails if the nodes
// cannot be listed.
func TestCordonWaits(t *testing.T) {
	cordonNode := func(t *testing.T, s *server, name string) {
		if err := s.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), drainingNode(name, 0, 0, ""), ""); err != nil {
			t.Error(err)
		}
	}
	for _, tc := range []struct {
		name    string
		change  func(t *testing.T, s *server)
		forbid  bool
		code    int
		failure string
	}{
		{"cordoned", func(t *testing.T, s *server) {
			cordonNode(t, s, "node-1")
			cordonNode(t, s, "node-2")
			s.update(t, newMaintenance("rack", cordon, "node-1", "node-2").started(0))
		}, false, 0, ""},
		{"one of two nodes cordoned", func(t *testing.T, s *server) {
			cordonNode(t, s, "node-1")
			s.update(t, newMaintenance("rack", cordon, "node-1", "node-2").started(0))
			s.whenLooked(func() { s.end(context.DeadlineExceeded) })
		}, false, exitTimedOut, "timed out"},
		{"cordoned before the controller has started", func(t *testing.T, s *server) {
			cordonNode(t, s, "node-1")
			cordonNode(t, s, "node-2")
			s.whenLooked(func() { s.end(context.DeadlineExceeded) })
		}, false, exitTimedOut, "timed out"},
		{"the nodes are deleted", func(t *testing.T, s *server) {
			for _, name := range []string{"node-1", "node-2"} {
				if err := s.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", name); err != nil {
					t.Error(err)
				}
			}
			s.update(t, newMaintenance("rack", cordon, "node-1", "node-2").started(0))
			s.whenLooked(func() { s.end(context.DeadlineExceeded) })
		}, false, exitTimedOut, "timed out"},
		{"deleted", deleteRack, false, 1, "was deleted: its nodes are released"},
		{"without the permission to list nodes", func(*testing.T, *server) {}, true, 1, "without the permission to list nodes, kubectl cannot see when they are cordoned; the maintenance continues"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, newNode("node-1"), newNode("node-2"))
			if tc.forbid {
				s.forbid("nodes")
			}
			s.whenLooked(func() { tc.change(t, s) })
			s.run(t, "start", "node-1", "node-2", "--name=rack", "--stage=Cordon", "--wait")
			if s.code != tc.code {
				t.Errorf("exit code %d, want %d: %s", s.code, tc.code, s.failure)
			}
			contains(t, s.failure, tc.failure)
		})
	}
}

func TestIsCordoned(t *testing.T) {
	cordoned := func() *view {
		return &view{StageStarted: ptr.To(ago(0)), observed: true, Nodes: []*nodeView{{Name: "a", Cordoned: true}, {Name: "b", Cordoned: true}}}
	}
	if !cordoned().isCordoned() {
		t.Error("is not cordoned")
	}
	for name, change := range map[string]func(v *view){
		"not started":        func(v *view) { v.StageStarted = nil },
		"not observed":       func(v *view) { v.observed = false },
		"no node":            func(v *view) { v.Nodes = nil },
		"one not cordoned":   func(v *view) { v.Nodes[1].Cordoned = false },
		"first not cordoned": func(v *view) { v.Nodes[0].Cordoned = false },
	} {
		v := cordoned()
		if change(v); v.isCordoned() {
			t.Errorf("%s: is cordoned", name)
		}
	}
}

// TestGoneOnce verifies that a deleted maintenance is reported once, while others continue.
func TestGoneOnce(t *testing.T) {
	var out bytes.Buffer
	d := &lineDisplay{out: &out}
	for range 3 {
		if err := d.show(frame{views: []*view{{Name: "a", Outcome: outcomeDeleted}, {Name: "b", Outcome: outcomeReplaced}}, now: testNow}); err != nil {
			t.Fatal(err)
		}
	}
	if want := "a: deleted\nb: deleted; another maintenance has its name now\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestEndingsWithoutNodes verifies that a wait ends if the nodes are deleted: without one, a maintenance is never
// drained. A node that comes back, or that may still come, is waited for.
func TestEndingsWithoutNodes(t *testing.T) {
	const byName, byLabel = "error: NodeMaintenance rack selects no node: none of those that it names exists", "error: NodeMaintenance rack selects no node any more: its nodes were deleted, or have other labels"
	pool := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}}}}
	rack := func(selector *corev1.NodeSelector) maintenanceStory {
		m := newMaintenance("rack", drain, "node-1").started(time.Minute)
		m.Spec.NodeSelector = selector
		return m
	}
	node := func() *corev1.Node {
		n := drainingNode("node-1", 0, 1, "Draining")
		n.Labels = map[string]string{"pool": "a"}
		return n
	}
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	deleteNode := func(t *testing.T, s *server) {
		if err := s.Tracker().Delete(nodes, "", "node-1"); err != nil {
			t.Error(err)
		}
	}
	for _, tc := range []struct {
		name     string
		selector *corev1.NodeSelector
		// at is what happens when so many seconds have passed.
		at      map[int]func(*testing.T, *server)
		without bool
		forbid  bool
		code    int
		failure string
	}{
		{"deleted", nodeselection.ByName([]string{"node-1"}), map[int]func(*testing.T, *server){10: deleteNode}, false, false, 1, byName},
		{"deleted, selected by label", pool, map[int]func(*testing.T, *server){10: deleteNode}, false, false, 1, byLabel},
		{"deleted before", nodeselection.ByName([]string{"node-1"}), nil, true, false, 1, byName},
		{"one that comes back", nodeselection.ByName([]string{"node-1"}), map[int]func(*testing.T, *server){10: deleteNode, 30: func(t *testing.T, s *server) {
			if err := s.Tracker().Create(nodes, node(), ""); err != nil {
				t.Error(err)
			}
		}}, false, false, exitTimedOut, "timed out; "},
		{"none has the label yet", pool, nil, true, false, exitTimedOut, "timed out; "},
		{"no right to list nodes", nodeselection.ByName([]string{"node-1"}), map[int]func(*testing.T, *server){10: func(t *testing.T, s *server) {
			gone := rack(nodeselection.ByName([]string{"node-1"}))
			gone.Status.SelectedNodes = 0
			s.update(t, gone)
		}}, false, true, 1, byName},
	} {
		for _, command := range [][]string{{"watch", "rack"}, {"start", "--name=rack", "--wait"}} {
			t.Run(command[0]+": "+tc.name, func(t *testing.T) {
				stories := []any{rack(tc.selector), newNode("node-2")}
				if !tc.without {
					stories = append(stories, node())
				}
				s := newServer(t, stories...)
				if tc.forbid {
					s.forbid("nodes")
				}
				seconds := 0
				s.clock.looked = func() {
					seconds += 10
					s.clock.Step(10 * time.Second)
					if change := tc.at[seconds]; change != nil {
						change(t, s)
					}
					if seconds == 200 {
						s.end(context.DeadlineExceeded)
					}
				}
				s.run(t, command...)
				if s.code != tc.code || seconds < 30 {
					t.Errorf("exit code %d after %d seconds, want %d: %s", s.code, seconds, tc.code, s.failure)
				}
				contains(t, s.failure, tc.failure)
			})
		}
	}
}

// TestEndingsOfLostNodes verifies that a wait fails if a node was released before it was drained, whichever of the two
// watches says so first: "watch rack && reboot" would reboot nodes whose pods run.
func TestEndingsOfLostNodes(t *testing.T) {
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	rack := func(selected int32) maintenanceStory {
		m := newMaintenance("rack", drain, "any").started(time.Minute)
		m.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpExists}}}}}
		m.Status.SelectedNodes = selected
		return m
	}
	rollout := func(selected int32) maintenanceStory { return rack(selected).rollingOut(twoAtATime(manual)) }
	inPool := func(node *corev1.Node) *corev1.Node {
		node.Labels = map[string]string{"pool": "a"}
		return node
	}
	draining, drained := inPool(drainingNode("node-1", 0, 1, "Draining")), inPool(drainingNode("node-2", 0, 0, "Drained"))
	put := func(node *corev1.Node) func(*testing.T, *server) {
		return func(t *testing.T, s *server) {
			if err := s.Tracker().Update(nodes, node, ""); err != nil {
				t.Error(err)
			}
		}
	}
	without := func(node *corev1.Node) func(*testing.T, *server) {
		node = node.DeepCopy()
		node.Labels = nil
		return put(node)
	}
	remove := func(t *testing.T, s *server) {
		if err := s.Tracker().Delete(nodes, "", "node-1"); err != nil {
			t.Error(err)
		}
	}
	becomes := func(m maintenanceStory) func(*testing.T, *server) {
		return func(t *testing.T, s *server) { s.update(t, m) }
	}
	waiting, done := inPool(newNode("node-1")), inPool(admittedNode(rollout(2), "node-2", phaseDone, time.Minute))
	doneToo := inPool(admittedNode(rollout(2), "node-1", phaseDone, time.Minute))
	const failure = "error: NodeMaintenance rack no longer selects node-1 (undrained): released, and may run pods. To drain such nodes: kubectl maintenance start NODE..."
	const released = "error: NodeMaintenance rack no longer selects node-2: released, and may run pods. To drain such nodes: kubectl maintenance start NODE..."
	removeDrained := func(t *testing.T, s *server) {
		if err := s.Tracker().Delete(nodes, "", "node-2"); err != nil {
			t.Error(err)
		}
	}
	register := func(t *testing.T, s *server) {
		if err := s.Tracker().Create(nodes, newNode("node-2"), ""); err != nil {
			t.Error(err)
		}
	}
	failed := inPool(admittedNode(rollout(2), "node-2", phaseFailed, time.Minute))
	for _, tc := range []struct {
		name    string
		stories []any
		// steps follow each other, one after each view.
		steps   []func(*testing.T, *server)
		failure string
	}{
		{"label removed", []any{rack(2), draining, drained}, []func(*testing.T, *server){without(draining), becomes(rack(1).drained())}, failure},
		{"label removed, seen later", []any{rack(2), draining, drained}, []func(*testing.T, *server){becomes(rack(1).drained()), nil, without(draining)}, failure},
		{"deleted", []any{rack(2), draining, drained}, []func(*testing.T, *server){remove, becomes(rack(1).drained())}, failure},
		{"deleted, seen later", []any{rack(2), draining, drained}, []func(*testing.T, *server){becomes(rack(1).drained()), nil, remove}, failure},
		{"drained before", []any{rack(2), draining, drained}, []func(*testing.T, *server){without(drained), becomes(rack(1).drained())}, released},
		{"drained before, and selected again", []any{rack(2), draining, drained}, []func(*testing.T, *server){without(drained), put(drained), becomes(rack(2).drained())}, ""},
		{"drained and deleted", []any{rack(2), draining, drained}, []func(*testing.T, *server){removeDrained, becomes(rack(1).drained())}, ""},
		{"drained, deleted and registered again", []any{rack(2), draining, drained}, []func(*testing.T, *server){removeDrained, register, becomes(rack(1).drained())}, released},
		{"drained after its return", []any{rack(2), draining, drained}, []func(*testing.T, *server){without(draining), put(inPool(drainingNode("node-1", 0, 0, "Drained"))), becomes(rack(2).drained())}, ""},
		{"a controller that counts no more", []any{rack(1).drained(), draining, drained}, []func(*testing.T, *server){func(_ *testing.T, s *server) { s.clock.Step(controllerPatience) }}, ""},
		{"of a rollout, waiting", []any{rollout(2), waiting, done}, []func(*testing.T, *server){without(waiting), becomes(rollout(1).drained().counting(0, 0, 1))}, failure},
		{"of a rollout, failed", []any{rollout(2), doneToo, failed}, []func(*testing.T, *server){without(failed), becomes(rollout(1).drained().counting(0, 0, 1))}, released},
		{"of a rollout, failed and deleted", []any{rollout(2), doneToo, failed}, []func(*testing.T, *server){removeDrained, becomes(rollout(1).drained().counting(0, 0, 1))}, ""},
		{"of a rollout, done", []any{rollout(2), doneToo, done}, []func(*testing.T, *server){without(doneToo), becomes(rollout(1).drained().counting(0, 0, 1))}, ""},
	} {
		for _, command := range [][]string{{"watch", "rack"}, {"start", "--name=rack", "--wait"}} {
			t.Run(command[0]+": "+tc.name, func(t *testing.T) {
				s := newServer(t, tc.stories...)
				step := 0
				s.clock.looked = func() {
					switch {
					case step == 300:
						s.end(context.DeadlineExceeded)
					case step < len(tc.steps) && tc.steps[step] != nil:
						tc.steps[step](t, s)
					}
					step++
				}
				s.run(t, command...)
				if want := min(len(tc.failure), 1); s.code != want || s.failure != tc.failure {
					t.Errorf("exit code %d: %s", s.code, s.failure)
				}
			})
		}
	}
}

// TestEndingsOfUnreadableNodes verifies that a wait of a user who may not list nodes fails too if the maintenance has
// released one, which only its count says, and that it says that nodes are not shown.
func TestEndingsOfUnreadableNodes(t *testing.T) {
	const failure = "error: NodeMaintenance rack no longer selects 1 node (to see which, the permission to list nodes is needed): released, and may run pods. To drain such nodes: kubectl maintenance start NODE..."
	rack := func(selected int32) maintenanceStory {
		m := newMaintenance("rack", drain, "node-1", "node-2").started(time.Minute)
		m.Status.SelectedNodes = selected
		return m
	}
	rollout := func(selected int32) maintenanceStory { return rack(selected).rollingOut(twoAtATime(manual)) }
	for _, tc := range []struct {
		name    string
		first   maintenanceStory
		later   []maintenanceStory
		failure string
	}{
		{"all drained", rack(2), []maintenanceStory{rack(2).drained()}, ""},
		{"one more", rack(1), []maintenanceStory{rack(2).drained()}, ""},
		{"one fewer", rack(2), []maintenanceStory{rack(1).drained()}, failure},
		{"another one later", rack(2), []maintenanceStory{rack(1), rack(2).drained()}, failure},
		{"of a rollout, not done", rollout(2).counting(0, 1, 1), []maintenanceStory{rollout(1).drained().counting(0, 0, 1)}, failure},
		{"of a rollout, done", rollout(2).counting(0, 0, 2), []maintenanceStory{rollout(1).drained().counting(0, 0, 1)}, ""},
	} {
		for _, command := range [][]string{{"watch", "rack"}, {"start", "--name=rack", "--wait"}} {
			t.Run(command[0]+": "+tc.name, func(t *testing.T) {
				s := newServer(t, tc.first)
				s.forbid("nodes")
				step := 0
				s.clock.looked = func() {
					if step == 300 {
						s.end(context.DeadlineExceeded)
					} else if step%10 == 0 && step/10 < len(tc.later) {
						s.update(t, tc.later[step/10])
					}
					step++
				}
				out := s.run(t, command...)
				if want := min(len(tc.failure), 1); s.code != want || s.failure != tc.failure {
					t.Errorf("exit code %d: %s", s.code, s.failure)
				}
				const notice = "rack: Without the permission to list nodes, they are not shown.\n"
				if strings.Count(out, notice) != 1 {
					t.Errorf("printed %s", out)
				}
			})
		}
	}
}

// With skipped nodes, the controller writes that the maintenance is not drained. It has ended all the same.
func TestEndWithSkippedNodes(t *testing.T) {
	for name, generation := range map[string]int64{"of this spec": 0, "of an earlier one": 1} {
		own := newMaintenance("kernel", drain, "n", "m").started(time.Hour).rollingOut(twoAtATime(manual)).drained().counting(0, 0, 2).
			condition(metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonNodesSkipped, "1 node completed before the drain was over.")
		own.Status.RolloutStatus.SkippedNodes = 1
		own.Generation += generation
		v := viewsIn(snapshotOf(own, skippedNode(own, "n", time.Minute), admittedNode(own, "m", phaseDone, time.Minute)))[0]
		if got, want := isEnded(v), generation == 0; got != want {
			t.Errorf("%s: ended %t, outcome %q", name, got, v.Outcome)
		}
	}
}
