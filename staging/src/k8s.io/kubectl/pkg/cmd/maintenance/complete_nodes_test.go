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
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

// withUID sets the UID of a node.
func withUID(node *corev1.Node) *corev1.Node {
	node.UID = types.UID("uid-of-" + node.Name)
	return node
}

func marked(node *corev1.Node, uid types.UID) *corev1.Node {
	node.Annotations = map[string]string{coordinationv1alpha1.NodeDoneAnnotation: string(uid)}
	return node
}

// donePatch marks a node as done.
func donePatch(node string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{"nodemaintenance.k8s.io/done":"uid-of-kernel"},"uid":"uid-of-%s"}}`, node)
}

// skippedNode returns a node that somebody has completed with --force before it was drained.
func skippedNode(m maintenanceStory, name string, before time.Duration) *corev1.Node {
	node := admittedNode(m, name, phaseDone, before)
	maintenance.Admissions(node)[0].DrainedTime = nil
	return node
}

// againNode returns a node that was drained, and to which pods have come back.
func againNode(m maintenanceStory, name string) *corev1.Node {
	node := withUID(admittedNode(m, name, phaseDraining, time.Minute))
	maintenance.Admissions(node)[0].DrainedTime = ptr.To(ago(30 * time.Second))
	return node
}

// phasesOf returns a maintenance with a node in each phase, of the name of the phase in lower case.
func phasesOf(m maintenanceStory) []any {
	stories := []any{m, withUID(newNode("waiting")), withUID(newNode("other"))}
	for _, phase := range []nodePhase{phaseDraining, phaseDrained, phaseReturning, phaseFailed, phaseDone} {
		stories = append(stories, withUID(admittedNode(m, strings.ToLower(string(phase)), phase, time.Minute)))
	}
	return stories
}

func TestCompleteNodes(t *testing.T) {
	all := []string{"waiting", "draining", "drained", "returning", "failed", "done"}
	m := newMaintenance("kernel", drain, all...).started(time.Hour).rollingOut(twoAtATime(manual))
	budgets := newMaintenance("kernel", drain, all...).started(time.Hour).counting(1, 1, 1)
	together := newMaintenance("kernel", drain, all...).started(time.Hour)
	also := newMaintenance("other-nm", drain, "drained").started(time.Hour).rollingOut(twoAtATime(manual))
	theirs := newMaintenance("rack", drain, "other").started(time.Hour).rollingOut(twoAtATime(manual))
	recorded := withUID(marked(admittedNode(also, "drained", phaseReturning, time.Minute), also.UID))
	recorded.Status.MaintenanceStatus.Admissions = append(recorded.Status.MaintenanceStatus.Admissions, admittedNode(m, "drained", phaseDrained, 0).Status.MaintenanceStatus.Admissions...)
	unrecorded := withUID(marked(admittedNode(also, "drained", phaseDrained, time.Minute), also.UID))
	unrecorded.Status.MaintenanceStatus.Admissions = append(unrecorded.Status.MaintenanceStatus.Admissions, admittedNode(m, "drained", phaseDrained, 0).Status.MaintenanceStatus.Admissions...)
	unrecordedWaiting := func() *corev1.Node { return withUID(marked(admittedNode(m, "drained", phaseDrained, 0), also.UID)) }
	ended := newMaintenance("other-nm", complete, "drained").started(time.Hour).rollingOut(twoAtATime(manual))
	elsewhere := newMaintenance("other-nm", drain, "other").started(time.Hour).rollingOut(twoAtATime(manual))
	const notRecorded = `error: node "drained" was completed for NodeMaintenance "other-nm" just now, which the controller has not recorded yet: try again`
	again := func(changes ...func(*corev1.Node)) *corev1.Node {
		node := againNode(m, "drained")
		for _, change := range changes {
			change(node)
		}
		return node
	}
	rebooted := func(node *corev1.Node) { node.Status.NodeInfo.BootID = "boot-2" }
	shared := func(node *corev1.Node) {
		node.Status.MaintenanceStatus.Admissions = append(node.Status.MaintenanceStatus.Admissions, admittedNode(also, "drained", phaseDraining, 0).Status.MaintenanceStatus.Admissions...)
	}
	skipping := newMaintenance("kernel", drain, all...).started(time.Hour).rollingOut(twoAtATime(manual))
	skipping.Spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{{Action: "Skip"}}
	const isAgain = `error: node "drained" is not drained any more (3 pods left): pods have come back, wait until they are gone (kubectl maintenance watch kernel). With --force, its drain ends`
	for _, tc := range []struct {
		name    string
		stories []any
		args    []string
		out     string
		patches []string
		failure []string
	}{
		{"pods have come back", []any{m, again()}, []string{"drained"}, "", nil, []string{isAgain}},
		{"pods have come back, forced", []any{m, again()}, []string{"drained", "--force"}, "node/drained is being completed\n", []string{donePatch("drained")}, nil},
		{"pods after a reboot", []any{m, again(rebooted)}, []string{"drained"}, "node/drained is being completed\n", []string{donePatch("drained")}, nil},
		{"pods that others want", []any{skipping, also, again(shared)}, []string{"drained"}, "node/drained is being completed\n", []string{donePatch("drained")}, nil},
		{"pods that others want as well", []any{m, also, again(shared)}, []string{"drained"}, "", nil, []string{isAgain}},
		{"nobody else wants", []any{skipping, again()}, []string{"drained"}, "", nil, []string{isAgain}},
		{"drained", phasesOf(m), []string{"drained"}, "node/drained is being completed\n", []string{donePatch("drained")}, nil},
		{"failed", phasesOf(m), []string{"node/failed"}, "node/failed is being completed\n", []string{donePatch("failed")}, nil},
		{"one twice", phasesOf(m), []string{"drained", "node/drained"}, "node/drained is being completed\n", []string{donePatch("drained")}, nil},
		{"limited by budgets only", phasesOf(budgets), []string{"drained"}, "node/drained is being completed\n", []string{donePatch("drained")}, nil},
		{"already done", phasesOf(m), []string{"done", "returning"}, "node/done is already completed\nnode/returning is already being completed\n", nil, nil},
		{"already marked", []any{m, marked(admittedNode(m, "drained", phaseDrained, 0), m.UID)}, []string{"drained"}, "node/drained is already being completed\n", nil, nil},
		{"marked for another, recorded", []any{m, recorded}, []string{"drained"}, "node/drained is being completed\n", []string{donePatch("drained")}, nil},
		{"marked for another, not recorded", []any{m, also, unrecorded}, []string{"drained"}, "", nil, []string{notRecorded}},
		{"marked for another that waits, not recorded", []any{m, also, unrecordedWaiting()}, []string{"drained", "--force"}, "", nil, []string{notRecorded}},
		{"marked for one that is gone", []any{m, unrecordedWaiting()}, []string{"drained"}, "node/drained is being completed\n", []string{donePatch("drained")}, nil},
		{"marked for one that has ended", []any{m, ended, unrecordedWaiting()}, []string{"drained"}, "node/drained is being completed\n", []string{donePatch("drained")}, nil},
		{"marked for one of other nodes", []any{m, elsewhere, unrecordedWaiting()}, []string{"drained"}, "node/drained is being completed\n", []string{donePatch("drained")}, nil},
		{"waiting", phasesOf(m), []string{"waiting"}, "", nil, []string{`error: node "waiting" waits for its admission and is not drained yet: kubectl maintenance status kernel says for what. With --force, it is never drained by NodeMaintenance "kernel"`}},
		{"draining", phasesOf(m), []string{"draining"}, "", nil, []string{`error: node "draining" is not drained yet (3 pods left): wait for it (kubectl maintenance watch kernel). With --force, its drain ends`}},
		{"forced", phasesOf(m), []string{"waiting", "draining", "--force"}, "node/waiting is being completed\nnode/draining is being completed\n", []string{donePatch("waiting"), donePatch("draining")}, nil},
		{"forced, waiting for a budget", phasesOf(budgets), []string{"waiting", "--force"}, "node/waiting is being completed\n", []string{donePatch("waiting")}, nil},
		{"not selected", phasesOf(m), []string{"other", "--force"}, "", nil, []string{`error: NodeMaintenance "kernel" does not select node "other": kubectl maintenance status kernel`}},
		{"of another maintenance", []any{m, theirs, admittedNode(theirs, "other", phaseDrained, 0)}, []string{"other"}, "", nil, []string{`error: NodeMaintenance "kernel" does not select node "other": it is a node of rack: kubectl maintenance complete rack other`}},
		{"without admissions", phasesOf(together), []string{"waiting", "--force"}, "", nil, []string{`error: NodeMaintenance "kernel" drains all its nodes together, so node "waiting" cannot be completed alone: kubectl maintenance complete kernel`}},
		{"some fail", phasesOf(m), []string{"other", "drained", "waiting", "done", "failed"}, "node/drained is being completed\nnode/done is already completed\nnode/failed is being completed\n",
			[]string{donePatch("drained"), donePatch("failed")}, []string{`does not select node "other"`, `node "waiting" waits for its admission`}},
		{"no such node", phasesOf(m), []string{"drained", "nobody"}, "", nil, []string{`error: "nobody" is neither a node nor a NodeMaintenance: "kubectl maintenance status --all" and "kubectl get nodes" list them. Nothing was changed`}},
		{"no such node, with its kind", phasesOf(m), []string{"drained", "node/nobody"}, "node/drained is being completed\n", []string{donePatch("drained")}, []string{`error: node "nobody" not found`}},
		{"a node and a maintenance of one name", append(phasesOf(m), newMaintenance("drained", drain, "other")), []string{"drained"}, "", nil, []string{`error: "drained" is a node and a NodeMaintenance: write node/drained or nm/drained. Nothing was changed`}},
		{"the node of this name", append(phasesOf(m), newMaintenance("drained", drain, "other")), []string{"node/drained"}, "node/drained is being completed\n", []string{donePatch("drained")}, nil},
		{"nodes and maintenances", append(phasesOf(m), newMaintenance("rack", drain, "other")), []string{"drained", "rack"}, "", nil, []string{"error: drained: complete nodes of one maintenance at a time; rack: a NodeMaintenance. Nothing was changed"}},
		{"not in the stage Drain", phasesOf(newMaintenance("kernel", cordon, "drained").rollingOut(twoAtATime(manual))), []string{"drained"}, "", nil, []string{`error: NodeMaintenance "kernel" is in stage Cordon and drains no node: kubectl maintenance start kernel`}},
		{"ended", phasesOf(newMaintenance("kernel", complete, "drained").rollingOut(twoAtATime(manual))), []string{"drained"}, "", nil, []string{`error: NodeMaintenance "kernel" has ended, which releases all its nodes`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, tc.stories...)
			out := s.run(t, append([]string{"complete", "kernel"}, tc.args...)...)
			if diff := cmp.Diff(tc.out, out); diff != "" {
				t.Errorf("printed (-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.patches, s.patches("nodes")); diff != "" {
				t.Errorf("patches of nodes (-want, +got):\n%s", diff)
			}
			contains(t, s.failure, tc.failure...)
			if failed := s.code != 0; failed != (tc.failure != nil) || len(s.patches(resource)) > 0 {
				t.Errorf("exit code %d: %s, patches of maintenances: %v", s.code, s.failure, s.patches(resource))
			}
		})
	}
}

// TestCompleteMaintenances verifies that several maintenances are completed as before.
func TestCompleteMaintenances(t *testing.T) {
	rollout := newMaintenance("kernel", drain, "node-1").rollingOut(twoAtATime(manual))
	stories := []any{rollout, newMaintenance("rack", drain, "node-2"), newMaintenance("own", drain, "node-3"), newNode("node-1"), newNode("node-2"), newNode("node-3")}
	for _, args := range [][]string{{"kernel", "rack"}, {"nm/kernel", "nm/rack"}, {"node-1", "node-2"}, {"node/node-1", "rack"}} {
		s := newServer(t, stories...)
		contains(t, s.mustRun(t, append([]string{"complete"}, args...)...), "nodemaintenance/kernel is being completed\n", "nodemaintenance/rack is being completed\n")
	}
	s := newServer(t, stories...)
	s.PrependReactor("get", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no permission"))
	})
	contains(t, s.mustRun(t, "complete", "kernel", "rack"), "nodemaintenance/rack is being completed\n")
	for _, args := range [][]string{{"kernel", "node-1"}, {"kernel", "node/own"}, {"node/own", "kernel"}} {
		s.run(t, append([]string{"complete"}, args...)...)
		contains(t, s.failure, "reading nodes: ", "no permission")
	}
	s = newServer(t, stories...)
	s.run(t, "complete", "gone", "rack")
	contains(t, s.failure, `"gone" not found`, "\nerror: nothing was changed")
	if len(s.writes()) > 0 {
		t.Errorf("wrote %v", s.writes())
	}
	s = newServer(t, stories...)
	s.run(t, "complete", "kernal", "node-2")
	contains(t, s.failure, `error: "kernal" is neither a node nor a NodeMaintenance: "kubectl maintenance status --all" and "kubectl get nodes" list them. Nothing was changed`)
	s = newServer(t, newMaintenance("kernel", drain, "node-1", "node-2").rollingOut(twoAtATime(manual)), newNode("node-1"), newNode("node-2"))
	s.run(t, "complete", "node-1")
	contains(t, s.failure, `error: "node-1" is a node. When the work on it is done: kubectl maintenance complete kernel node-1. To end the maintenance of all its nodes: kubectl maintenance complete kernel`)
	for _, args := range [][]string{{"node-1", "kernel"}, {"node/node-1", "kernel"}, {"no/node-1", "nm/kernel"}, {"node-1", "node-2", "kernel"}} {
		s.run(t, append([]string{"complete"}, args...)...)
		contains(t, s.failure, `error: "node-1" is a node. When the work on it is done: kubectl maintenance complete kernel node-1. To end the maintenance of all its nodes: kubectl maintenance complete kernel`, "\nerror: nothing was changed")
	}
	s = newServer(t, newMaintenance("kernel", drain, "node-1", "node-2").rollingOut(twoAtATime(manual)), newMaintenance("node-1", drain, "node-2"), newNode("node-1"), newNode("node-2"))
	for _, args := range [][]string{{"node/node-1", "kernel"}, {"no/node-1", "nm/kernel"}} {
		s.run(t, append([]string{"complete"}, args...)...)
		contains(t, s.failure, `error: "node-1" is a node. When the work on it is done: kubectl maintenance complete kernel node-1.`, "\nerror: nothing was changed")
	}
	// What is said to be a node is never taken as the maintenance of that name.
	for _, command := range []string{"complete", "cancel", "pause", "resume"} {
		s.run(t, command, "node/node-1")
		contains(t, s.failure, `error: "node-1" is a node.`)
	}
	s.run(t, "complete", "node/gone", "kernel")
	contains(t, s.failure, `error: node "gone" not found`, "error: nothing was changed")
	s.run(t, "complete", "node/gone")
	contains(t, s.failure, `error: node "gone" not found`)
	// Nor is the other way around.
	s.run(t, "complete", "nm/node-2", "node-1")
	contains(t, s.failure, `error: "node-2" is neither a node nor a NodeMaintenance`, "Nothing was changed")
	for _, command := range []string{"complete", "cancel", "pause", "resume"} {
		s.run(t, command, "nm/node-2")
		contains(t, s.failure, `nodemaintenances.coordination.k8s.io "node-2" not found`)
	}
	if len(s.writes()) > 0 {
		t.Errorf("wrote %v", s.writes())
	}
}

// TestCompleteOfNodesUnderWay verifies that the end of a rollout does not release nodes on which work is under way,
// that failed, or that are not healthy, unless somebody insists.
func TestCompleteOfNodesUnderWay(t *testing.T) {
	all := []string{"waiting", "draining", "drained", "returning", "failed", "done"}
	m := newMaintenance("kernel", drain, all...).started(time.Hour).rollingOut(twoAtATime(rebooted)).counting(1, 4, 1, "failed")
	const underWay = `NodeMaintenance "kernel" is not done with 4 nodes, which it would release as they are: failed (Failed, not rebooted), returning (Returning, not Ready), draining (Draining), drained (Drained)`
	ended := newMaintenance("kernel", complete, all...).started(time.Hour).rollingOut(twoAtATime(rebooted)).counting(1, 4, 1)
	budgets := newMaintenance("kernel", drain, all...).started(time.Hour).counting(1, 4, 1)
	finished := newMaintenance("kernel", drain, "waiting", "done").started(time.Hour).rollingOut(twoAtATime(rebooted)).counting(1, 0, 1)
	for _, tc := range []struct {
		name    string
		stories []any
		args    []string
		forbid  bool
		out     string
		failure []string
		warning string
	}{
		{"refused", phasesOf(m), nil, false, "", []string{"error: " + underWay + ". When the work on one is done: kubectl maintenance complete kernel NODE. To release them all the same, add --force", "\nerror: nothing was changed"}, ""},
		{"another one, too", append(phasesOf(m), newMaintenance("rack", drain, "other")), []string{"rack"}, false, "", []string{underWay, "\nerror: nothing was changed"}, ""},
		{"forced", phasesOf(m), []string{"--force"}, false, "nodemaintenance/kernel is being completed\n", nil, "Warning: NodeMaintenance \"kernel\" releases 4 nodes with which it is not done: failed (Failed, not rebooted), returning (Returning, not Ready), draining (Draining), drained (Drained)\n"},
		{"nodes cannot be listed", phasesOf(m), nil, true, "", []string{`NodeMaintenance "kernel" is not done with 4 nodes, which it would release as they are. When`}, ""},
		{"nodes cannot be listed, forced", phasesOf(m), []string{"--force"}, true, "nodemaintenance/kernel is being completed\n", nil, "Warning: NodeMaintenance \"kernel\" releases 4 nodes with which it is not done\n"},
		{"the rest only waits", phasesOf(finished), nil, false, "nodemaintenance/kernel is being completed\n", nil, ""},
		{"only budgets: that is how it ends", phasesOf(budgets), nil, false, "nodemaintenance/kernel is being completed\n", nil, ""},
		{"again", phasesOf(ended), nil, false, "nodemaintenance/kernel is already being completed\n", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, tc.stories...)
			if tc.forbid {
				s.forbid("nodes")
			}
			out := s.run(t, append([]string{"complete", "kernel"}, tc.args...)...)
			if diff := cmp.Diff(tc.out, out); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
			contains(t, s.failure, tc.failure...)
			contains(t, s.errOut.String(), tc.warning)
			if (s.code == 1) != (tc.failure != nil) || tc.failure != nil && len(s.writes()) > 0 {
				t.Errorf("exit code %d, wrote %v: %s", s.code, s.writes(), s.failure)
			}
			if tc.warning == "" && strings.Contains(s.errOut.String(), "Warning") {
				t.Errorf("%s", s.errOut)
			}
		})
	}
	// cancel is for that, and says what it does.
	s := newServer(t, phasesOf(m)...)
	s.PrependReactor("delete", resource, ignoreDelete)
	s.mustRun(t, "cancel", "kernel")
	contains(t, s.errOut.String(), "Warning: NodeMaintenance \"kernel\" releases 4 nodes with which it is not done: failed (Failed")
}

// TestSkippedNodes verifies that nodes that were completed before they were drained do not count as drained or done:
// their pods run, and "watch x && reboot" must not take them for empty.
func TestSkippedNodes(t *testing.T) {
	own := newMaintenance("kernel", drain, "n", "m").started(time.Hour).rollingOut(twoAtATime(manual)).drained().counting(0, 0, 2)
	ended := newMaintenance("kernel", complete, "n", "m").started(time.Hour).rollingOut(twoAtATime(manual)).drained().counting(0, 0, 2).completed()
	budgets := newMaintenance("kernel", drain, "n", "m").started(time.Hour).drained().counting(0, 1, 1)
	const reason = `error: NodeMaintenance kernel has not drained 1 of 2 nodes, which somebody has completed before: n`
	skipped, done, drainedNode := skippedNode(own, "n", time.Minute), admittedNode(own, "m", phaseDone, time.Minute), admittedNode(own, "m", phaseDrained, 0)
	for _, tc := range []struct {
		name           string
		stories        []any
		headline, want string
		drained        int
	}{
		{"a rollout", []any{own, skipped, done}, "1 of 2 nodes done, 1 skipped", reason, 1},
		{"a rollout, all drained", []any{own, admittedNode(own, "n", phaseDone, 0), done}, "2 of 2 nodes done", "", 2},
		{"budgets", []any{budgets, skipped, drainedNode}, "1 of 2 nodes drained, 1 skipped", reason, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, tc.stories...)
			s.run(t, "watch", "kernel")
			if s.failure != tc.want || (s.code == 1) != (tc.want != "") {
				t.Errorf("exit code %d, %q, want %q", s.code, s.failure, tc.want)
			}
			contains(t, s.mustRun(t, "status"), tc.headline+"\n")
			if v := viewsIn(snapshotOf(tc.stories...))[0]; v.DrainedNodes != tc.drained {
				t.Errorf("%d nodes are drained, want %d", v.DrainedNodes, tc.drained)
			}
		})
	}
	golden(t, "status/rollout-skipped", renderStatus(viewsIn(snapshotOf(own, skipped, done)), testNow, defaultWidth))
	contains(t, newServer(t, own, skipped, done).mustRun(t, "status", "-o", "json"), `"skippedNodes": 1`, `"doneNodes": 2`, `"skipped": true`)
	// It is completed during the watch, and the watch of nodes is ahead of that of maintenances.
	ahead := &follower{skipped: map[string]sets.Set[string]{}}
	for _, stories := range [][]any{{own, skipped, done}, {own, newNode("n"), done}} {
		ahead.keepSkipped(viewsIn(snapshotOf(stories...))[0])
	}
	last := viewsIn(snapshotOf(ended, newNode("n"), newNode("m")))[0]
	if ahead.keepSkipped(last); !slices.Equal(last.Rollout.skipped, []string{"n"}) {
		t.Errorf("skipped at the end: %v, want n", last.Rollout.skipped)
	}
	// The nodes do not say any more that they were skipped.
	s := newServer(t, newMaintenance("kernel", drain, "n", "m").started(time.Hour).rollingOut(twoAtATime(manual)).counting(0, 1, 1), skipped, drainedNode)
	s.whenLooked(func() {
		if err := s.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), newNode("n"), ""); err != nil {
			t.Error(err)
		}
		s.update(t, ended)
	})
	s.run(t, "watch", "kernel")
	if s.failure != reason || s.code != 1 {
		t.Errorf("completed: exit code %d, %q", s.code, s.failure)
	}
}

// TestLinesOfSkippedNodes verifies what a watch says of a node that somebody completes before it was drained.
func TestLinesOfSkippedNodes(t *testing.T) {
	m := newMaintenance("kernel", drain, "n", "m").started(time.Hour).rollingOut(twoAtATime(manual)).counting(0, 1, 1)
	view := func(n *corev1.Node) *view {
		return viewsIn(snapshotOf(m, n, admittedNode(m, "m", phaseDone, time.Minute)))[0]
	}
	want := []string{"n: skipped: completed before it was drained"}
	if diff := cmp.Diff(want, changesOf(view(admittedNode(m, "n", phaseDraining, time.Minute)), view(skippedNode(m, "n", 0)))); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// TestCompleteManyNodes reads nodes at once.
func TestCompleteManyNodes(t *testing.T) {
	var names []string
	for i := range 2 * maxNodeGets {
		names = append(names, fmt.Sprintf("node-%02d", i))
	}
	m := newMaintenance("kernel", drain, names...).started(time.Hour).rollingOut(twoAtATime(manual))
	stories := []any{m}
	for _, name := range names {
		stories = append(stories, admittedNode(m, name, phaseDrained, 0))
	}
	s := newServer(t, stories...)
	s.mustRun(t, append([]string{"complete", "kernel"}, names...)...)
	if diff := cmp.Diff(map[string]int{"nodemaintenances": 1, "nodes": 1}, s.lists()); diff != "" || len(s.patches("nodes")) != len(names) {
		t.Errorf("%d patches, lists (-want, +got):\n%s", len(s.patches("nodes")), diff)
	}
	s = newServer(t, stories...)
	s.forbid(resource)
	s.forbid("nodes")
	s.mustRun(t, append([]string{"complete", "kernel"}, names...)...)
}

// TestCompleteNodeIsRefused names the node that the server refuses to annotate.
func TestCompleteNodeIsRefused(t *testing.T) {
	m := newMaintenance("kernel", drain, "drained", "failed").started(time.Hour).rollingOut(twoAtATime(manual))
	s := newServer(t, phasesOf(m)...)
	s.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.PatchAction).GetName()
		if name == "failed" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), name, errors.New(`requires the verb "delete" on it`))
	})
	out := s.run(t, "complete", "kernel", "drained", "failed")
	contains(t, s.failure, `annotating node "drained": nodes "drained" is forbidden: requires the verb "delete" on it`)
	if out != "node/failed is being completed\n" || s.code != 1 {
		t.Errorf("exit code %d, printed %q", s.code, out)
	}
}

func TestCompleteNodesWaits(t *testing.T) {
	m := newMaintenance("kernel", drain, "drained", "failed", "waiting").started(time.Hour).rollingOut(twoAtATime(manual))
	for _, tc := range []struct {
		name    string
		change  func(t *testing.T, s *server)
		forbid  bool
		out     string
		failure string
		code    int
	}{
		{"released", func(t *testing.T, s *server) {
			if err := s.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), admittedNode(m, "drained", phaseDone, 0), ""); err != nil {
				t.Error(err)
			}
		}, false, "node/drained is being completed\ndrained: done (2 of 3 nodes)\n", "", 0},
		{"the maintenance ends", func(t *testing.T, s *server) {
			s.update(t, newMaintenance("kernel", complete, "drained").started(0).completed())
		}, false, "node/drained is being completed\n", "", 0},
		{"too late", func(_ *testing.T, s *server) { s.end(context.DeadlineExceeded) }, false, "node/drained is being completed\n", "timed out; the nodes will be released anyway: kubectl maintenance status kernel", exitTimedOut},
		{"nodes cannot be listed", func(*testing.T, *server) {}, true, "node/drained is being completed\n", "without the permission to list nodes, kubectl cannot see when they are released", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, append(phasesOf(m)[:3:3], withUID(admittedNode(m, "drained", phaseDrained, 0)), admittedNode(m, "failed", phaseDone, 0))...)
			if tc.forbid {
				s.forbid("nodes")
			}
			s.whenLooked(func() { tc.change(t, s) })
			out := s.run(t, "complete", "kernel", "drained", "--wait", "--timeout=1h")
			if diff := cmp.Diff(tc.out, out); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
			contains(t, s.failure, tc.failure)
			if s.code != tc.code {
				t.Errorf("exit code %d: %s", s.code, s.failure)
			}
		})
	}
}

// TestDrainedForAnother looks at a node that waits, and that another maintenance drains: it is not drained for this one.
func TestDrainedForAnother(t *testing.T) {
	m := newMaintenance("kernel", drain, "n", "m").started(time.Hour).rollingOut(twoAtATime(manual)).counting(1, 1, 0)
	other := newMaintenance("other-nm", drain, "n").started(time.Hour).rollingOut(twoAtATime(manual))
	look := func(node *corev1.Node) *view {
		return viewsIn(snapshotOf(m, node, admittedNode(m, "m", phaseDrained, time.Minute)))[0]
	}
	draining, drained := look(admittedNode(other, "n", phaseDraining, time.Minute)), look(admittedNode(other, "n", phaseDrained, 0))
	if lines := changesOf(look(newNode("n")), draining); len(lines) > 0 {
		t.Errorf("while the other one drains it: %q", lines)
	}
	if lines := changesOf(draining, drained); len(lines) > 0 {
		t.Errorf("when the other one has drained it: %q", lines)
	}
	for _, node := range drained.Nodes {
		if want := node.Name == "m"; node.Drained != want || drained.DrainedNodes != 1 {
			t.Errorf("node %s: drained %t, %d drained", node.Name, node.Drained, drained.DrainedNodes)
		}
	}
}

// TestCompleteNodesOfOthers waits for a node that another maintenance keeps cordoned, which the output has to say.
func TestCompleteNodesOfOthers(t *testing.T) {
	m := newMaintenance("kernel", drain, "node-1").started(time.Hour).rollingOut(twoAtATime(manual))
	other := newMaintenance("other-nm", drain, "node-1").started(time.Hour).rollingOut(twoAtATime(manual))
	s := newServer(t, m, other, withUID(admittedNode(other, "node-1", phaseDraining, time.Minute)))
	s.whenLooked(func() {
		both := withUID(admittedNode(other, "node-1", phaseDraining, time.Minute))
		both.Status.MaintenanceStatus.Admissions = append(both.Status.MaintenanceStatus.Admissions, admittedNode(m, "node-1", phaseDone, 0).Status.MaintenanceStatus.Admissions...)
		if err := s.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), both, ""); err != nil {
			t.Error(err)
		}
	})
	out := s.mustRun(t, "complete", "kernel", "node-1", "--force", "--wait")
	if diff := cmp.Diff("node/node-1 is being completed\nnode-1: still claimed by other-nm\nnode-1: done (1 of 1 node)\n", out); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// TestNodesDisplay verifies that a wait for nodes says once why they are not released, and that the
// connection is lost.
func TestNodesDisplay(t *testing.T) {
	m := newMaintenance("kernel", drain, "n", "other").started(time.Hour).rollingOut(twoAtATime(manual))
	ready := func(node *corev1.Node) *corev1.Node {
		node.Status.Conditions[len(node.Status.Conditions)-1].Status = corev1.ConditionTrue
		return node
	}
	failed := admittedNode(m, "n", phaseFailed, 0)
	maintenance.Admissions(failed)[0].ReturningTime = ptr.To(ago(time.Hour))
	var out bytes.Buffer
	d := &nodesDisplay{out: &out, names: sets.New("n")}
	for _, step := range []struct {
		name    string
		node    *corev1.Node
		trouble string
		want    string
	}{
		{"drained", admittedNode(m, "n", phaseDrained, 0), "", ""},
		{"completed", marked(admittedNode(m, "n", phaseDrained, 0), m.UID), "", ""},
		{"returning", admittedNode(m, "n", phaseReturning, 0), "", "n: the work is done, waiting until it is healthy\nn: not Ready\n"},
		{"the connection is lost", admittedNode(m, "n", phaseReturning, 0), "The view may be outdated, retrying: EOF", "The view may be outdated, retrying: EOF\n"},
		{"still", admittedNode(m, "n", phaseReturning, 0), "The view may be outdated, retrying: EOF", ""},
		{"Ready", ready(admittedNode(m, "n", phaseReturning, 0)), "", "n: not released yet; if this lasts, see its DaemonSet pods: kubectl get pods -A --field-selector spec.nodeName=n\n"},
		{"failed", failed, "", "n: did not come back in time: not released yet; if this lasts, see its DaemonSet pods: kubectl get pods -A --field-selector spec.nodeName=n\n"},
		{"done", admittedNode(m, "n", phaseDone, 0), "", "n: done (1 of 2 nodes)\n"},
	} {
		for range 2 {
			views := viewsIn(snapshotOf(m, step.node, admittedNode(m, "other", phaseFailed, 0)))
			if err := d.show(frame{views: views, now: testNow, trouble: step.trouble}); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(step.want, out.String()); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", step.name, diff)
		}
		out.Reset()
	}
	// It had failed before.
	d = &nodesDisplay{out: &out, names: sets.New("n")}
	if err := d.show(frame{views: viewsIn(snapshotOf(m, admittedNode(m, "n", phaseFailed, 0)))}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "n: did not come back in time: not rebooted\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

// TestNodesDisplayWithoutController verifies that a wait for nodes that were just completed does not say what was
// missing before, and says after a while that no controller acts.
func TestNodesDisplayWithoutController(t *testing.T) {
	const late = "n: completed, the controller has not acted yet, so kube-controller-manager may not run; see renewTime of its lease: kubectl get lease -n kube-system kube-controller-manager -o yaml\n"
	m := newMaintenance("kernel", drain, "n", "other").started(time.Hour).rollingOut(twoAtATime(rebooted))
	for _, phase := range []nodePhase{phaseDrained, phaseFailed} {
		var out bytes.Buffer
		d := &nodesDisplay{out: &out, names: sets.New("n")}
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{0, ""}, {controllerPatience - time.Second, ""}, {controllerPatience, late}, {time.Hour, ""}} {
			views := viewsIn(snapshotOf(m, marked(admittedNode(m, "n", phase, time.Minute), m.UID), marked(admittedNode(m, "other", phase, 0), m.UID)))
			if err := d.show(frame{views: views, now: testNow.Add(step.after)}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(step.want, out.String()); diff != "" {
				t.Errorf("%s, after %v (-want, +got):\n%s", phase, step.after, diff)
			}
			out.Reset()
		}
	}
}

// TestCompletionOfNodes offers the nodes that can be completed.
func TestCompletionOfNodes(t *testing.T) {
	m := newMaintenance("kernel", drain, "drained", "failed", "done").started(time.Hour).rollingOut(twoAtATime(manual))
	s := newServer(t, phasesOf(m)...)
	for prefix, want := range map[string][]string{"": {"drained", "draining", "failed", "returning"}, "dr": {"drained", "draining"}, "x": nil} {
		names, err := nodesUnderWay(s.environment, "kernel", prefix)
		if diff := cmp.Diff(want, names); diff != "" || err != nil {
			t.Errorf("%q: %v (-want, +got):\n%s", prefix, err, diff)
		}
	}
	if _, err := nodesUnderWay(s.environment, "nobody", ""); !apierrors.IsNotFound(err) {
		t.Errorf("%v", err)
	}
}
