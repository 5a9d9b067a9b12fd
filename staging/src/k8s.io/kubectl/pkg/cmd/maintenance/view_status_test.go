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
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/exec"
	"k8s.io/component-helpers/node/maintenance"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

func TestOutcomeOf(t *testing.T) {
	// behind changes the generation, which the controller has not observed yet.
	behind := func(m maintenanceStory) maintenanceStory {
		m.Generation++
		return m
	}
	for _, tc := range []struct {
		name  string
		story maintenanceStory
		want  outcome
	}{
		{"draining", newMaintenance("a", drain, "n").started(0), ""},
		{"drained", newMaintenance("a", drain, "n").started(0).drained(), outcomeDrained},
		{"drained, and then other nodes", behind(newMaintenance("a", drain, "n").started(0).drained()), ""},
		{"a drained condition in stage Cordon", newMaintenance("a", cordon, "n").started(0).drained(), ""},
		{"completing", newMaintenance("a", complete, "n").started(0).drained(), ""},
		{"completed", newMaintenance("a", complete, "n").started(0).drained().completed(), outcomeCompleted},
		{"from Idle to Complete, not observed", behind(newMaintenance("a", complete, "n").started(0).completed()), ""},
	} {
		if got := outcomeOf(tc.story.NodeMaintenance); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestETA verifies that the latest ETA is shown, regardless of the order of the interceptors.
func TestETA(t *testing.T) {
	s := snapshotOf(newMaintenance("rack", drain, "node-1").started(0), drainingNode("node-1", 0, 3, ""),
		newPod("a-0", "node-1", "a.example.com").asked().reported(0, time.Minute),
		newPod("b-0", "node-1", "b.example.com").asked().reported(0, time.Hour),
		newPod("c-0", "node-1", "c.example.com").asked().reported(0, time.Second))
	if diff := cmp.Diff(ptr.To(ago(-time.Hour)), viewsIn(s)[0].ETA); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

func TestPodSelectors(t *testing.T) {
	if diff := cmp.Diff([]string{"spec.nodeName=a", "spec.nodeName=b"}, podSelectors([]string{"a", "b"})); diff != "" {
		t.Errorf("two nodes (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{""}, podSelectors(make([]string, maxNodesOneByOne+1))); diff != "" {
		t.Errorf("many nodes (-want, +got):\n%s", diff)
	}
	if got := podSelectors(nil); got != nil {
		t.Errorf("no nodes: %q", got)
	}
}

func missingNodes(t *testing.T, s *server, names []string) error {
	found, err := existing(t.Context(), "node", names, s.CoreV1().Nodes())
	if err != nil {
		return err
	}
	return notFound(names, found)
}

func TestMissingNodes(t *testing.T) {
	for count, verb := range map[int]string{maxNodeGets: "get", maxNodeGets + 1: "list"} {
		s := newServer(t, newNode("node-0"))
		names := make([]string, count)
		for i := range names {
			names[i] = "node-0"
		}
		if err := missingNodes(t, s, names); err != nil {
			t.Errorf("%d nodes: %v", count, err)
		}
		for _, action := range s.Actions() {
			if action.GetVerb() != verb {
				t.Errorf("%d nodes are read with %s", count, action.GetVerb())
			}
		}
		names[count-1] = "nod-1"
		if err := missingNodes(t, s, names); err == nil || err.Error() != `node "nod-1" not found` {
			t.Errorf("%d nodes, one of which is missing: %v", count, err)
		}
	}
}

// TestServedWithoutDiscovery continues if discovery is forbidden: the request may still succeed.
func TestServedWithoutDiscovery(t *testing.T) {
	s := newServer(t)
	s.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no permission"))
	})
	if err := require(s, resource, errNotServed); err != nil {
		t.Error(err)
	}
	s.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	if err := require(s, resource, errNotServed); err == nil || errors.Is(err, errNotServed) {
		t.Errorf("a server that does not answer: %v", err)
	}
}

func TestTroubleText(t *testing.T) {
	for _, tc := range []struct {
		name  string
		err   error
		after time.Duration
		want  string
	}{
		{"refused", errors.New("connection refused\n"), time.Minute, "The view may be outdated, retrying: connection refused"},
		{"refused long ago", errors.New("connection refused"), time.Minute + 1, ""},
		{"the end of a watch", io.EOF, 0, ""},
		{"cut off", fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), 0, ""},
		{"too old", apierrors.NewResourceExpired("too old"), 0, ""},
		{"none", nil, 0, ""},
	} {
		o := &observer{clock: testingclock.NewFakePassiveClock(testNow), changed: make(chan struct{}, 1)}
		if tc.err != nil {
			o.noteTrouble(&o.troubles[0], tc.err)
		}
		if got := o.troubleText(testNow.Add(tc.after)); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestFollowListsOneOnly verifies that no permission to list other maintenances is needed.
func TestFollowListsOneOnly(t *testing.T) {
	s := newServer(t, newMaintenance("rack", drain, "node-1").started(0).drained(), newMaintenance("other", drain, "node-2").started(0), newNode("node-1"))
	s.mustRun(t, "watch", "rack")
	for _, action := range s.Actions() {
		if list, ok := action.(clienttesting.ListActionImpl); ok && list.GetResource().Resource == resource && list.ListOptions.FieldSelector != "metadata.name=rack" {
			t.Errorf("lists with %q", list.ListOptions.FieldSelector)
		}
	}
}

// TestFollowWaitsForAll verifies that watch waits for all, whichever is drained last.
func TestFollowWaitsForAll(t *testing.T) {
	for _, late := range []string{"a", "b"} {
		s := newServer(t, newMaintenance("a", drain, "node-1").started(0).drained(), newMaintenance("b", drain, "node-1").started(0).drained(), newNode("node-1"))
		s.update(t, newMaintenance(late, drain, "node-1").started(0))
		s.whenLooked(func() { s.update(t, newMaintenance(late, drain, "node-1").started(0).drained()) })
		contains(t, s.mustRun(t, "watch"), "a: drained: no pod is left on 1 node\n", "b: drained: no pod is left on 1 node\n")
	}
}

// timedOut returns the error of a wait for drains that times out.
func timedOut(last map[string]*view) error {
	f := &follower{goal: drained(isEnded), uids: map[string]types.UID{}, last: last}
	for name := range last {
		f.uids[name] = ""
	}
	return f.timedOut()
}

func TestTimedOut(t *testing.T) {
	for _, tc := range []struct {
		name  string
		last  map[string]*view
		shown frame
		code  int
		want  string
	}{
		{"the connection is lost", nil, frame{trouble: "The view may be outdated."}, exitTimedOut, "timed out; the maintenance continues: kubectl maintenance watch b\nThe view may be outdated."},
		{"no view", nil, frame{}, exitTimedOut, "timed out; the maintenance continues: kubectl maintenance watch b"},
		{"blocked", map[string]*view{"b": viewsIn(blockedDrain())[0]}, frame{}, exitBlocked, `timed out while pods were blocked; the maintenance continues: kubectl maintenance watch b
b: 2 pods wait for PodDisruptionBudget default/db: default/db-0, default/db-1
b: 1 pod waits for interceptor backup.example.com, which has never reported: default/vm-1
b: 1 pod is still terminating after the grace period (finalizers: example.com/keep): default/stuck-0`},
		{"a node is blocked", map[string]*view{"b": {Blockers: []*blockerView{{Cause: maintenance.BlockerCordonFailed, Blocked: true, Nodes: 1, Object: "Node n", Message: "1 node cannot be cordoned"}}}}, frame{}, exitBlocked,
			"timed out while something was blocked; the maintenance continues: kubectl maintenance watch b\nb: 1 node cannot be cordoned: Node n"},
		{"a node is blocked, and a pod leaves", map[string]*view{"b": {Blockers: []*blockerView{
			{Cause: maintenance.BlockerNodeStatusFailed, Blocked: true, Nodes: 1, Object: "Node n", Message: "1 node has a status that cannot be written"}, {Cause: maintenance.BlockerEvicting, Pods: 1},
		}}}, frame{}, exitBlocked, "timed out while something was blocked; the maintenance continues: kubectl maintenance watch b\nb: 1 node has a status that cannot be written: Node n"},
		{"pods leave", map[string]*view{"b": {Stage: drain, Blockers: []*blockerView{
			{Cause: maintenance.BlockerInterceptor, Name: "deployment.apps.k8s.io", Pods: 3, Message: "3 pods wait for interceptor deployment.apps.k8s.io", First: []string{"default/web-0", "default/web-1", "default/web-2"}},
			{Cause: maintenance.BlockerEvicting, Pods: 1, Message: "1 pod is being evicted", First: []string{"default/api-0"}}, {Cause: maintenance.BlockerEvicting, Pods: 1, Name: "x", Message: "third"}, {Cause: maintenance.BlockerEvicting, Pods: 1, Name: "y", Message: "fourth"},
		}}}, frame{}, exitTimedOut, "timed out; the maintenance continues: kubectl maintenance watch b\nb: 3 pods wait for interceptor deployment.apps.k8s.io: default/web-0, default/web-1 and 1 more\nb: 1 pod is being evicted: default/api-0\nb: third"},
		{"no controller acts", map[string]*view{"a": {observed: true, Outcome: outcomeDeleted}, "b": {}}, frame{unobserved: "No controller has acted on b."}, exitBlocked,
			"timed out while no controller acted; nothing goes on before a controller acts: kubectl maintenance watch b\nNo controller has acted on b."},
		{"no controller acts on one of two", map[string]*view{"a": {observed: true}, "b": {}}, frame{unobserved: "No controller has acted on b."}, exitBlocked,
			"timed out while no controller acted on some of them; the others continue: kubectl maintenance watch b\nNo controller has acted on b."},
		{"the controller is silent", map[string]*view{"b": {observed: true}}, frame{silent: "Its lease is old."}, exitBlocked,
			"timed out while no controller acted; nothing goes on before a controller acts: kubectl maintenance watch b\nIts lease is old."},
		{"blocked, and no controller acts", map[string]*view{"b": {Blockers: []*blockerView{{Cause: maintenance.BlockerCordonFailed, Blocked: true, Nodes: 1, Object: "Node n", Message: "1 node cannot be cordoned"}}}},
			frame{silent: "Its lease is old."}, exitBlocked, "timed out while something was blocked; nothing goes on before a controller acts: kubectl maintenance watch b\nb: 1 node cannot be cordoned: Node n\nIts lease is old."},
	} {
		f := &follower{goal: drained(isEnded), uids: map[string]types.UID{"b": ""}, last: tc.last, shown: tc.shown}
		err := f.timedOut()
		var coded interface{ ExitStatus() int }
		if !errors.As(err, &coded) || coded.ExitStatus() != tc.code || err.Error() != tc.want {
			t.Errorf("%s: %v, want code %d and %q", tc.name, err, tc.code, tc.want)
		}
	}
}

// TestTimedOutWhileNodesWait verifies that a wait that times out says for what nodes wait, and whether somebody
// has to intervene.
func TestTimedOutWhileNodesWait(t *testing.T) {
	type reasons = []coordinationv1alpha1.NodeMaintenanceWaitReason
	const (
		text    = "timed out; the maintenance continues: kubectl maintenance watch b"
		blocked = "timed out while something was blocked; the maintenance continues: kubectl maintenance watch b"
		paused  = "\nb: paused; to go on: kubectl maintenance resume b"
		halted  = "\nb: halted, because n did not come back in time, and maxFailedNodes is 0: repair it, or go on without it: kubectl maintenance resume b"
	)
	pause := func(m maintenanceStory) maintenanceStory {
		m.Spec.Rollout.Paused = true
		return m
	}
	haltedOne := func(m maintenanceStory) maintenanceStory {
		m.Status.RolloutStatus.Failed, m.Status.RolloutStatus.FailedNodes = []string{"n"}, 1
		return m.halted()
	}
	for _, tc := range []struct {
		name    string
		reasons reasons
		change  func(m maintenanceStory) maintenanceStory
		code    int
		// want is the beginning of the text. What nodes wait for follows, if waits is true.
		want  string
		waits bool
	}{
		{"paused", reasons{coordinationv1alpha1.NodeMaintenanceWaitPaused}, pause, exitBlocked, blocked + paused, false},
		{"paused, but no node waits", nil, func(m maintenanceStory) maintenanceStory { return pause(m.counting(0, 1, 0)) }, exitTimedOut, text, false},
		{"frozen", reasons{coordinationv1alpha1.NodeMaintenanceWaitFrozen}, nil, exitBlocked, blocked, true},
		{"disabled", reasons{coordinationv1alpha1.NodeMaintenanceWaitDisabled}, nil, exitBlocked, blocked, true},
		{"refused", reasons{coordinationv1alpha1.NodeMaintenanceWaitAdmissionFailed}, nil, exitBlocked, blocked, true},
		{"status refused", reasons{coordinationv1alpha1.NodeMaintenanceWaitStatusFailed}, nil, exitBlocked, blocked, true},
		{"not current", reasons{coordinationv1alpha1.NodeMaintenanceWaitNotCurrent}, nil, exitBlocked, blocked, true},
		{"halted", reasons{coordinationv1alpha1.NodeMaintenanceWaitHalted}, haltedOne, exitBlocked, blocked + halted, false},
		{"halted, and closed", reasons{coordinationv1alpha1.NodeMaintenanceWaitHalted, coordinationv1alpha1.NodeMaintenanceWaitWindow}, haltedOne, exitBlocked, blocked + halted, true},
		{"closed", reasons{coordinationv1alpha1.NodeMaintenanceWaitWindow}, nil, exitTimedOut, text, true},
		{"never open", reasons{coordinationv1alpha1.NodeMaintenanceWaitWindow}, nil, exitBlocked, blocked, true},
		{"used up", reasons{coordinationv1alpha1.NodeMaintenanceWaitBudget}, nil, exitTimedOut, text, true},
		{"other domains", reasons{coordinationv1alpha1.NodeMaintenanceWaitTopology}, nil, exitTimedOut, text, true},
		{"an older one", reasons{coordinationv1alpha1.NodeMaintenanceWaitOlderMaintenance}, nil, exitTimedOut, text, true},
		{"other nodes", reasons{coordinationv1alpha1.NodeMaintenanceWaitConcurrency}, nil, exitTimedOut, text, true},
		{"settling", reasons{coordinationv1alpha1.NodeMaintenanceWaitSettling}, nil, exitTimedOut, text, true},
		{"a later reason", reasons{"New"}, nil, exitTimedOut, text, true},
		{"two reasons", reasons{coordinationv1alpha1.NodeMaintenanceWaitConcurrency, coordinationv1alpha1.NodeMaintenanceWaitDisabled}, nil, exitBlocked, blocked, true},
		{"being deleted", reasons{coordinationv1alpha1.NodeMaintenanceWaitFrozen}, maintenanceStory.deletedNow, exitTimedOut, text, false},
	} {
		m := newMaintenance("b", drain, "n").started(time.Hour).rollingOut(twoAtATime(manual)).counting(1, 0, 0)
		var causes []string
		until := ptr.To(ago(-time.Hour))
		if tc.name == "never open" {
			until = nil
		}
		for _, reason := range tc.reasons {
			m = m.waitingFor(1, reason, "workers", until)
			wait := m.Status.RolloutStatus.WaitingFor[len(causes)]
			cause := maintenance.WaitCause(&wait, func(at metav1.Time) string { return windowTime(testNow, at) })
			switch reason {
			case coordinationv1alpha1.NodeMaintenanceWaitAdmissionFailed:
				cause += " b"
			case coordinationv1alpha1.NodeMaintenanceWaitStatusFailed:
				cause += " workers"
			}
			causes = append(causes, "1 "+cause)
		}
		if tc.change != nil {
			m = tc.change(m)
		}
		want := tc.want
		if tc.waits {
			want += "\nb: waiting: " + strings.Join(causes, "; ")
		}
		f := &follower{goal: drained(isEnded), uids: map[string]types.UID{"b": ""}, last: map[string]*view{"b": viewsIn(withoutNodes(snapshotOf(m)))[0]}, shown: frame{now: testNow}}
		err := f.timedOut()
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", tc.name, diff)
		}
		var exit exec.CodeExitError
		if !asExit(err, &exit) || exit.Code != tc.code {
			t.Errorf("%s: exit code %d, want %d", tc.name, exit.Code, tc.code)
		}
		if tc.name != "paused" {
			continue
		}
		// The release of nodes does not depend on others.
		f.goal = released(isEnded)
		if err := f.timedOut(); !asExit(err, &exit) || exit.Code != exitTimedOut || strings.Contains(err.Error(), "paused") {
			t.Errorf("a wait for the release: %v", err)
		}
	}
}

func TestMoveWhileBeingDeleted(t *testing.T) {
	const another, over = `NodeMaintenance "old" is being deleted: start another one`, `NodeMaintenance "old" is being deleted, which releases its nodes: there is nothing to complete`
	for _, tc := range []struct {
		name    string
		stage   coordinationv1alpha1.NodeMaintenanceStage
		args    []string
		failure string
	}{
		{"to a later stage", idle, []string{"start", "--name=old"}, another},
		{"already in the stage", drain, []string{"start", "--name=old"}, another},
		{"complete", drain, []string{"complete", "old"}, over},
		{"already completed", complete, []string{"complete", "old"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nm := newMaintenance("old", tc.stage, "node-1")
			nm.DeletionTimestamp = ptr.To(ago(0))
			s := newServer(t, nm)
			s.run(t, tc.args...)
			contains(t, s.failure, tc.failure)
			if failed := s.code != 0; failed != (tc.failure != "") {
				t.Errorf("exit code %d: %s", s.code, s.failure)
			}
			if writes := s.writes(); len(writes) > 0 {
				t.Errorf("wrote: %v", writes)
			}
		})
	}
}

// TestNoWriteInTheSameStage verifies that only changes of the stage are written.
func TestNoWriteInTheSameStage(t *testing.T) {
	s := newServer(t, newNode("node-1"), newMaintenance("old", drain, "node-1"), newMaintenance("ended", complete, "node-1"))
	s.mustRun(t, "start", "old")
	s.mustRun(t, "complete", "ended")
	if writes := s.writes(); len(writes) > 0 {
		t.Errorf("wrote: %v", writes)
	}
	s.mustRun(t, "start", "--name=ended-not", "-l", "a=b", "--allow-no-nodes", "--dry-run=client")
	s.mustRun(t, "complete", "old")
	patch := s.Actions()[len(s.Actions())-1]
	for _, action := range s.Actions() {
		if action.GetVerb() == "patch" {
			patch = action
		}
	}
	if diff := cmp.Diff(metav1.PatchOptions{FieldManager: fieldManager}, patch.(clienttesting.PatchActionImpl).PatchOptions); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// TestMoveOnDryRun verifies that the patch is sent as a dry run.
func TestMoveOnDryRun(t *testing.T) {
	s := newServer(t, newMaintenance("old", cordon, "node-1"))
	if out, want := s.mustRun(t, "start", "--name=old", "--dry-run=server"), "nodemaintenance.coordination.k8s.io/old moved from Cordon to Drain (server dry run)\n"; out != want {
		t.Errorf("printed %q, want %q", out, want)
	}
	patch, ok := s.Actions()[len(s.Actions())-1].(clienttesting.PatchActionImpl)
	if diff := cmp.Diff(metav1.PatchOptions{FieldManager: fieldManager, DryRun: []string{metav1.DryRunAll}}, patch.PatchOptions); !ok || diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// TestRemainingEvictions verifies that finished requests are ignored.
func TestRemainingEvictions(t *testing.T) {
	over := newPod("vm-1", "node-1", migrate).asked().forbidding().requestCondition(coordinationv1alpha1.EvictionRequestConditionEvicted, coordinationv1alpha1.EvictionRequestReasonPodTerminal, 0)
	s := snapshotOf(newMaintenance("rack", drain, "node-1").started(0), newNode("node-1"), newNode("node-2"), newPod("vm-0", "node-1", migrate).asked().forbidding(), over)
	nodes := s.nodesWithRequests(s.maintenances[0])
	if diff := cmp.Diff([]string{"node-1"}, namesOf(nodes)); diff != "" {
		t.Errorf("nodes (-want, +got):\n%s", diff)
	}
	forbidding, others, _ := s.remainingEvictions(nodes)
	if diff := cmp.Diff([]string{"default/vm-0"}, forbidding); diff != "" || others != nil {
		t.Errorf("others %v (-want, +got):\n%s", others, diff)
	}
	// Now only another client is a requester.
	for _, request := range s.requests {
		request.Status.EvictionRequestCancellationPolicy = coordinationv1alpha1.EvictionRequestCancellationPolicyAllow
		request.Spec.Requesters = []coordinationv1alpha1.Requester{{Name: "drain.example.com"}}
	}
	forbidding, others, _ = s.remainingEvictions(nodes)
	if diff := cmp.Diff([]string{"default/vm-0"}, others); diff != "" || forbidding != nil {
		t.Errorf("forbidding %v (-want, +got):\n%s", forbidding, diff)
	}
}

// TestRemainingEvictionsAreBounded lists the pods of few nodes, and names few pods.
func TestRemainingEvictionsAreBounded(t *testing.T) {
	for nodes, total := range map[int]string{maxRemainingNodes: "\n50 pods", maxRemainingNodes + 5: "\nat least 50 pods"} {
		var stories []any
		var names []string
		for i := range nodes {
			names = append(names, fmt.Sprintf("node-%02d", i))
			stories = append(stories, newNode(names[i]), newPod(fmt.Sprintf("vm-%02d", i), names[i], migrate).asked().forbidding())
		}
		s := newServer(t, append(stories, newMaintenance("rack", drain, names...).started(0))...)
		contains(t, s.mustRun(t, "complete", "rack"),
			total+" will still be evicted, because their interceptors forbid cancellation: default/vm-00, ", "default/vm-09 and 40 more\n")
		if reads := s.lists()["pods"]; reads != maxRemainingNodes {
			t.Errorf("%d nodes: lists pods %d times", nodes, reads)
		}
	}
}

// TestProgressOfTwo counts pods that have left separately for each maintenance of a node.
func TestProgressOfTwo(t *testing.T) {
	views := func(a, b int) []*view {
		return []*view{{Name: "a", Nodes: []*nodeView{{Name: "n", PodsPending: a}}}, {Name: "b", Nodes: []*nodeView{{Name: "n", PodsPending: b}}}}
	}
	p := progress{}
	p.apply(views(5, 2))
	later := views(4, 2)
	p.apply(later)
	if a, b := later[0].Nodes[0].PodsGone, later[1].Nodes[0].PodsGone; a != 1 || b != 0 {
		t.Errorf("%d and %d pods are gone, want 1 and 0", a, b)
	}
}

// TestProgressSinceTheDrainBegan shows how many pods have left before the command was started, and from then on also
// those of pods that came later.
func TestProgressSinceTheDrainBegan(t *testing.T) {
	read := func(initial, pending, evicting int32) []*view {
		node := drainingNode("node-1", pending, evicting, "Draining")
		node.Status.MaintenanceStatus.InitialPods = initial
		return viewsIn(snapshotOf(newMaintenance("rack", drain, "node-1").started(0), node))
	}
	p := progress{}
	for _, step := range []struct {
		what                       string
		initial, pending, evicting int32
		gone                       int
		bar                        string
	}{
		{"at first", 8, 2, 2, 4, "[######>>..]"},
		{"one more has left", 8, 1, 2, 5, "[#######>>.]"},
		{"the controller does not say", 0, 1, 1, 6, "[########>.]"},
	} {
		views := read(step.initial, step.pending, step.evicting)
		p.apply(views)
		node := views[0].Nodes[0]
		if node.PodsGone != step.gone {
			t.Errorf("%s: %d pods have left, want %d", step.what, node.PodsGone, step.gone)
		}
		if got := bar(node, 10); got != step.bar {
			t.Errorf("%s: %s, want %s", step.what, got, step.bar)
		}
	}
	// The first look counts.
	if node := read(8, 2, 2)[0].Nodes[0]; node.PodsGone != 4 {
		t.Errorf("%d pods have left, want 4", node.PodsGone)
	}
}

// TestSettledOnlyAsCounted covers a node that the controller has not counted: it is not drained.
func TestSettledOnlyAsCounted(t *testing.T) {
	nm := newMaintenance("rack", drain, "node-1", "node-2").started(0).drained()
	nm.Status.SelectedNodes = 1
	v := viewsIn(snapshotOf(nm, drainingNode("node-1", 0, 0, "Drained"), drainingNode("node-2", 1, 0, "Draining")))[0]
	if v.Nodes[1].Drained || v.Nodes[1].PodsPending != 1 || v.DrainedNodes != 1 {
		t.Errorf("node-2 is %+v, %d nodes are drained", v.Nodes[1], v.DrainedNodes)
	}
}

// TestNotDrainedWhileDeleting ignores the condition: the nodes are being released.
func TestNotDrainedWhileDeleting(t *testing.T) {
	nm := newMaintenance("rack", drain, "node-1").started(0).drained().deletedNow()
	if got := outcomeOf(nm.NodeMaintenance); got != "" {
		t.Errorf("outcome %q", got)
	}
}

// TestTimesOfOtherClocks covers times in the future and in another year.
func TestTimesOfOtherClocks(t *testing.T) {
	if got := elapsed(testNow, ago(-time.Minute)); got != "0s" {
		t.Errorf("elapsed %q", got)
	}
	year := metav1.NewTime(testNow.AddDate(1, 0, 0))
	if got := timeAndRemainder(testNow, year); !strings.HasPrefix(got, "2027-11-21 13:02:25, in ") {
		t.Errorf("a year later: %q", got)
	}
}

// TestPublishedMessageIsOneLine covers messages that contain the text of a webhook.
func TestPublishedMessageIsOneLine(t *testing.T) {
	b := blockerViewOf(&coordinationv1alpha1.DrainBlocker{Message: "no\nrack: drained"})
	if want := "no rack: drained"; b.Message != want {
		t.Errorf("%q, want %q", b.Message, want)
	}
}

// TestObserverIsWoken verifies that each change of an object notifies the observer immediately.
func TestObserverIsWoken(t *testing.T) {
	s := newServer(t, newMaintenance("rack", drain, "node-1"), newNode("node-1"))
	o, err := newObserver(t.Context(), s, nil, s.clock)
	if err != nil {
		t.Fatal(err)
	}
	woken := func(what string) {
		t.Helper()
		select {
		case <-o.changed:
		case <-time.After(time.Minute):
			t.Fatalf("no notification of %s", what)
		}
	}
	// The observer is ready when it was notified of the existing objects.
	woken("the existing objects")
	s.update(t, newMaintenance("rack", drain, "node-1").started(0))
	woken("an update")
	deleteRack(t, s)
	woken("a deletion")
}

// TestDrainedTextCountsSkippedPods verifies that the last line of a watch does not hide pods that stay.
func TestDrainedTextCountsSkippedPods(t *testing.T) {
	v := viewsIn(snapshotOf(newMaintenance("rack", drain, "node-1").started(time.Hour).drained().skipping(2), drainingNode("node-1", 0, 0, "Drained")))[0]
	if got, want := drainedText(v), "drained: no pod is left on 1 node; 2 are skipped and stay: spec.podPolicies"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestDrainedTextSaysWhyPodsStay verifies that pods which nobody stops are told from those that policies skip.
func TestDrainedTextSaysWhyPodsStay(t *testing.T) {
	m := newMaintenance("rack", drain, "node-1").started(time.Hour).drained().skipping(3)
	const sentence = "2 DaemonSet pods stay, which nobody stops: feature gate A is off"
	m.Status.Conditions[0].Message += " 1 pod stays, because spec.podPolicies skips it. " + sentence + "."
	v := viewsIn(snapshotOf(m, drainingNode("node-1", 0, 0, "Drained")))[0]
	if got, want := drainedText(v), "drained: no pod is left on 1 node; 1 is skipped and stays: spec.podPolicies; "+sentence; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNodesAgreeWithMaintenance verifies that the rows of nodes do not contradict the counts of the maintenance: a node
// counts the pods that others want to leave, and has when it was drained for the first time.
func TestNodesAgreeWithMaintenance(t *testing.T) {
	own := newMaintenance("own", drain, "node-1", "node-2").started(time.Hour)
	own.Spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{{Action: "Skip"}}
	other := newMaintenance("other", drain, "node-1", "node-2").started(time.Hour)
	shared := func(name string) *corev1.Node {
		node := againNode(own, name)
		node.Status.MaintenanceStatus.Admissions = append(node.Status.MaintenanceStatus.Admissions, admittedNode(other, name, phaseDraining, 0).Status.MaintenanceStatus.Admissions...)
		return node
	}
	for name, test := range map[string]struct {
		drainedNodes int32
		want         int
	}{"it is drained": {2, 2}, "pods have come back": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			m := maintenanceStory{own.DeepCopy()}
			m.draining(coordinationv1alpha1.DrainStatus{DrainMessage: "Draining", DrainedNodes: test.drainedNodes})
			s := snapshotOf(m, other, shared("node-1"), shared("node-2"))
			v := viewOf(m.NodeMaintenance, &s.snapshot)
			if v.DrainedNodes != test.want {
				t.Errorf("%d drained nodes", v.DrainedNodes)
			}
			for _, node := range v.Nodes {
				if node.Drained != (test.want > 0) || node.Drained && (node.podsLeft() > 0 || node.Message != drainedButForOthers) {
					t.Errorf("unexpected row: %+v", node)
				}
			}
		})
	}
	rollout := newMaintenance("kernel", drain, "node-1").started(time.Hour).rollingOut(twoAtATime(manual)).counting(0, 1, 0)
	s := snapshotOf(rollout, againNode(rollout, "node-1"))
	if v := viewOf(rollout.NodeMaintenance, &s.snapshot); v.Nodes[0].Phase != phaseDraining {
		t.Errorf("pods have come back, and the node is %s", v.Nodes[0].Phase)
	}
}
