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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	plaintexttesting "k8s.io/component-helpers/plaintext/testing"
)

// patches returns the patches of a resource that were sent.
func (s *server) patches(name string) []string {
	var patches []string
	for _, action := range s.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok && action.GetResource().Resource == name {
			patches = append(patches, string(patch.GetPatch()))
		}
	}
	return patches
}

// failedNode returns a node that did not come back to the maintenance.
func failedNode(m maintenanceStory, name string) *corev1.Node {
	node := admittedNode(m, name, phaseFailed, 0)
	node.UID = types.UID("uid-of-" + name)
	return node
}

// failedNodesIn returns the nodes that the status of the maintenance counts as failed: n-01 and so on.
func failedNodesIn(m maintenanceStory) []any {
	var nodes []any
	if status := m.Status.RolloutStatus; status != nil {
		for i := range status.FailedNodes {
			nodes = append(nodes, failedNode(m, fmt.Sprintf("n-%02d", i+1)))
		}
	}
	return nodes
}

func TestPauseAndResume(t *testing.T) {
	const (
		preconditions = `{"metadata":{"resourceVersion":"7","uid":"uid-of-kernel"},"spec":{"rollout":`
		nm            = "nodemaintenance/kernel "
	)
	rollout := func(paused bool) maintenanceStory {
		r := twoAtATime(manual)
		r.Paused = paused
		return newMaintenance("kernel", drain, "node-1").started(time.Hour).rollingOut(r).counting(5, 2, 3)
	}
	halted := func(tolerated int32, paused bool, failed ...string) maintenanceStory {
		m := rollout(paused).counting(5, 2, 3, failed...).halted()
		m.Spec.Rollout.MaxFailedNodes = &tolerated
		return m
	}
	acknowledging := func(m maintenanceStory, uids ...types.UID) maintenanceStory {
		m.Spec.Rollout.AcknowledgedNodeUIDs = uids
		return m
	}
	twelve := []string{"n-01", "n-02", "n-03", "n-04", "n-05", "n-06", "n-07", "n-08", "n-09", "n-10", "n-11", "n-12"}
	planned := newMaintenance("kernel", idle, "node-1").rollingOut(twoAtATime(manual))
	for _, tc := range []struct {
		name  string
		verb  string
		story maintenanceStory
		out   string
		patch string
	}{
		{"pause", "pause", rollout(false), nm + "is paused: 5 waiting; 2 in progress, which go on. To resume it: kubectl maintenance resume kernel\n", preconditions + `{"paused":true}}}`},
		{"pause before it begins", "pause", planned, nm + "is paused. To resume it: kubectl maintenance resume kernel\n", preconditions + `{"paused":true}}}`},
		{"pause again", "pause", rollout(true), nm + "is already paused. To resume it: kubectl maintenance resume kernel\n", ""},
		{"pause a halted one", "pause", halted(0, false, "n-01"), nm + "is paused: 5 waiting; 2 in progress, which go on. To resume it: kubectl maintenance resume kernel\n", preconditions + `{"paused":true}}}`},
		{"resume", "resume", rollout(true), nm + "is resumed\n", preconditions + `{"paused":false}}}`},
		{"resume again", "resume", rollout(false), nm + "is neither paused nor halted. What its nodes wait for: kubectl maintenance status kernel\n", ""},
		{"resume a halted one", "resume", halted(0, false, "n-01"), nm + "is resumed: 1 failed node is acknowledged; it halts again if more than 0 others fail\n" +
			"Not repaired: n-01. It stays cordoned, and unavailable for NodeMaintenanceBudgets, until you repair it; then it is released.\n", preconditions + `{"acknowledgedNodeUIDs":["uid-of-n-01"]}}}`},
		{"resume one that is halted and paused", "resume", halted(2, true, twelve...), nm + "is resumed: 12 failed nodes are acknowledged; it halts again if more than 2 others fail\n" +
			"Not repaired: n-01, n-02, n-03, n-04, n-05, n-06, n-07, n-08, n-09, n-10 and 2 more. They stay cordoned, and unavailable for NodeMaintenanceBudgets, until you repair them; then they are released.\n",
			preconditions + `{"acknowledgedNodeUIDs":["uid-of-n-01","uid-of-n-02","uid-of-n-03","uid-of-n-04","uid-of-n-05","uid-of-n-06","uid-of-n-07","uid-of-n-08","uid-of-n-09","uid-of-n-10","uid-of-n-11","uid-of-n-12"],"paused":false}}}`},
		{"resume one that the next node has halted", "resume", acknowledging(halted(0, false, "n-01", "n-02"), "uid-of-n-01", "uid-of-one-that-is-back"),
			nm + "is resumed: 2 failed nodes are acknowledged; it halts again if more than 0 others fail\n" +
				"Not repaired: n-01, n-02. They stay cordoned, and unavailable for NodeMaintenanceBudgets, until you repair them; then they are released.\n", preconditions + `{"acknowledgedNodeUIDs":["uid-of-n-01","uid-of-n-02"]}}}`},
		{"resume one that is acknowledged", "resume", acknowledging(halted(0, false, "n-01"), "uid-of-n-01"), nm + "was resumed, and the controller has not acted on it yet\n", ""},
		{"resume one whose number was raised", "resume", halted(1, false, "n-01"), nm + "was resumed, and the controller has not acted on it yet\n", ""},
		{"resume one whose number was raised, but is paused", "resume", halted(1, true, "n-01"), nm + "is resumed\n", preconditions + `{"paused":false}}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, append(failedNodesIn(tc.story), tc.story, newNode("node-1"))...)
			if diff := cmp.Diff(tc.out, s.mustRun(t, tc.verb, "kernel")); diff != "" {
				t.Errorf("printed (-want, +got):\n%s", diff)
			}
			var want []string
			if tc.patch != "" {
				want = []string{tc.patch}
			}
			if diff := cmp.Diff(want, s.patches(resource)); diff != "" {
				t.Errorf("patches (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestPauseRefuses(t *testing.T) {
	rollout := twoAtATime(manual)
	for _, tc := range []struct {
		name    string
		stories []any
		args    []string
		want    string
		writes  int
	}{
		{"no rollout", []any{newMaintenance("kernel", drain, "node-1")}, []string{"kernel"}, `error: NodeMaintenance "kernel" has no spec.rollout, which can only be set when it is created, so it cannot be paused. ` +
			`To begin with no further node, create a NodeMaintenanceBudget that selects its nodes, with maxUnavailable 0, which needs the feature gate NodeMaintenanceBudgets. To end it: kubectl maintenance cancel kernel`, 0},
		{"completed", []any{newMaintenance("kernel", complete, "node-1").rollingOut(rollout)}, []string{"kernel"}, `NodeMaintenance "kernel" has ended`, 0},
		{"being deleted", []any{newMaintenance("kernel", drain, "node-1").rollingOut(rollout).deletedNow()}, []string{"kernel"}, `NodeMaintenance "kernel" has ended`, 0},
		{"neither a maintenance nor a node", nil, []string{"kernel"}, `NodeMaintenance "kernel" not found, and no node of that name: "kubectl maintenance status --all" lists them`, 0},
		{"a node of several", []any{newMaintenance("kernel", drain, "node-1", "node-2").rollingOut(rollout)}, []string{"node-1"}, `"node-1" is a node. To pause its maintenances, use: kubectl maintenance pause kernel`, 0},
		{"no name", nil, nil, "at least one NAME is required", 0},
		{"one of two", []any{newMaintenance("kernel", drain, "node-1").rollingOut(rollout)}, []string{"nobody", "kernel"}, "not found, and no node of that name: \"kubectl maintenance status --all\" lists them\nerror: nothing was changed", 0},
		{"a node behind its maintenance", []any{newMaintenance("kernel", drain, "node-1", "node-2").rollingOut(rollout)}, []string{"kernel", "node-1"}, "kubectl maintenance pause kernel\nerror: nothing was changed", 0},
		{"one of two has ended", []any{newMaintenance("kernel", drain, "node-1").rollingOut(rollout), newMaintenance("old", complete, "node-1").rollingOut(rollout)}, []string{"old", "kernel"}, `NodeMaintenance "old" has ended`, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, append(tc.stories, newNode("node-1"))...)
			s.run(t, append([]string{"pause"}, tc.args...)...)
			contains(t, s.failure, tc.want)
			if writes := s.writes(); s.code != 1 || len(writes) != tc.writes {
				t.Errorf("exit code %d, wrote %v", s.code, writes)
			}
		})
	}
	s := newServer(t, newMaintenance("kernel", drain, "node-1"), newNode("node-1"))
	s.run(t, "resume", "kernel")
	contains(t, s.failure, `error: NodeMaintenance "kernel" has no spec.rollout, so it is neither paused nor halted. What it waits for: kubectl maintenance status kernel`)
}

// TestPauseNamesOfNodes pauses the maintenance that a node has alone.
func TestPauseNamesOfNodes(t *testing.T) {
	s := newServer(t, newNode("node-1"), newMaintenance("kernel", drain, "node-1").rollingOut(twoAtATime(manual)))
	contains(t, s.mustRun(t, "pause", "node/node-1"), "nodemaintenance/kernel is paused")
	contains(t, s.errOut.String(), `"node-1" is a node under maintenance: kernel`)
}

// TestResumeAcknowledgesWhatItReads verifies that a node that fails meanwhile is not acknowledged
// without being named.
func TestResumeAcknowledgesWhatItReads(t *testing.T) {
	halted := func(failed ...string) maintenanceStory {
		return newMaintenance("kernel", drain, "node-1").rollingOut(twoAtATime(manual)).counting(0, 1, 0, failed...).halted()
	}
	second := failedNode(halted("n-01"), "n-02")
	s := newServer(t, halted("n-01"), failedNode(halted("n-01"), "n-01"))
	refused := false
	s.PrependReactor("patch", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if refused {
			return false, nil, nil
		}
		refused = true
		s.update(t, halted("n-01", "n-02"))
		if err := s.Tracker().Add(second); err != nil {
			t.Fatal(err)
		}
		return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), "kernel", nil)
	})
	contains(t, s.mustRun(t, "resume", "kernel"), "2 failed nodes are acknowledged; it halts again if more than 0 others fail\nNot repaired: n-01, n-02.")
	if diff := cmp.Diff([]types.UID{"uid-of-n-01", "uid-of-n-02"}, s.get(t, "kernel").Spec.Rollout.AcknowledgedNodeUIDs); diff != "" {
		t.Errorf("acknowledged (-want, +got):\n%s", diff)
	}
}

// TestResumeWithoutNodes covers users who may not list nodes, and API servers that do not know the field.
func TestResumeWithoutNodes(t *testing.T) {
	halted := newMaintenance("kernel", drain, "node-1").rollingOut(twoAtATime(manual)).counting(0, 1, 0, "n-01").halted()
	s := newServer(t, halted, failedNode(halted, "n-01"))
	s.forbid("nodes")
	s.run(t, "resume", "kernel")
	contains(t, s.failure, `NodeMaintenance "kernel" is halted, and to acknowledge the nodes that have failed takes the permission to list nodes. Without it, raise spec.rollout.maxFailedNodes, which is 0`)

	s = newServer(t, halted, failedNode(halted, "n-01"))
	s.PrependReactor("patch", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, halted.NodeMaintenance, nil })
	s.run(t, "resume", "kernel")
	contains(t, s.failure, `kube-apiserver is of an older version, which does not store spec.rollout.acknowledgedNodeUIDs of NodeMaintenance "kernel": raise spec.rollout.maxFailedNodes to 1`)
}

func TestHostilePause(t *testing.T) {
	story := newMaintenance("kernel", drain, "node-1").rollingOut(coordinationv1alpha1.NodeMaintenanceRollout{}).counting(0, 1, 0, "node"+plaintexttesting.Text).halted()
	node := failedNode(story, "node"+plaintexttesting.Text)
	node.UID = "1" // A patch has only valid text.
	s := newServer(t, story, node)
	out := s.mustRun(t, "resume", "kernel")
	plaintexttesting.Check(t, "resume", out)
	contains(t, out, plaintexttesting.Forged)
}
