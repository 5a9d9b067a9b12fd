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

package nodemaintenance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// nodePatches collects the writes of the controller to a node: which fields they have.
func (f *fixture) nodePatches(node string) *[]string {
	patches := &[]string{}
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if patch := action.(clienttesting.PatchActionImpl); patch.Name == node {
			*patches = append(*patches, describePatch(f.t, patch.Patch))
		}
		return false, nil, nil
	})
	return patches
}

// describePatch lists what a patch changes in the spec and in the status.
func describePatch(t testing.TB, patch []byte) string {
	t.Helper()
	var changed map[string]map[string]any
	if err := json.Unmarshal(patch, &changed); err != nil {
		t.Errorf("decoding %s: %v", patch, err)
	}
	var words []string
	for _, part := range []string{"spec", "status"} {
		for _, field := range slices.Sorted(maps.Keys(changed[part])) {
			if !strings.HasPrefix(field, "$") {
				words = append(words, part+"."+field)
			}
		}
	}
	return strings.Join(words, " ")
}

// changeTracked is changeNamed in the middle of a write, when the client can make no other call.
func (f *fixture) changeTracked(name string, change func(*v1.Node)) {
	gvr := v1.SchemeGroupVersion.WithResource("nodes")
	object, err := f.tracker.Get(gvr, "", name)
	if err != nil {
		f.t.Errorf("reading a node: %v", err)
		return
	}
	node := object.(*v1.Node).DeepCopy()
	change(node)
	if err := f.tracker.Update(gvr, node, ""); err != nil {
		f.t.Errorf("changing a node: %v", err)
	}
}

const (
	maintenanceStatus = "status.maintenanceStatus"
	conditionsField   = "status.conditions"
	statusConditions  = conditionsField + " " + maintenanceStatus
)

// What a rollout writes to each of its nodes. Clusters have thousands of them.
func TestWritesToANodeOfARollout(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	f.createPods(3, "n2", 0)
	patches := f.nodePatches("n2")
	f.createRollout("m", atOnce(1))
	f.drainNodes()
	f.setDone("m", "n1")
	for range 4 {
		f.run(time.Second)
		f.endRequestedPods()
	}
	f.run(10 * time.Second)
	f.expectNode("without pods", "n2", drained)
	f.setDone("m", "n2")
	f.run(10 * time.Second)
	f.expectNode("given back", "n2", done)
	f.setStage("m", stageComplete)
	f.run(10 * time.Second)
	f.expectNode("completed", "n2", untouched)
	want := []string{
		"spec.taints",                    // It waits.
		conditionsField,                  // It is planned.
		maintenanceStatus,                // It is admitted.
		"spec.taints spec.unschedulable", // It is cordoned, and does not wait any more.
		statusConditions,                 // It is claimed, with its targets.
		statusConditions,                 // It is drained.
		maintenanceStatus,                // It is done.
		"spec.unschedulable",             // It is uncordoned.
		statusConditions,                 // It is not claimed any more.
		maintenanceStatus,                // The maintenance is completed.
	}
	if diff := cmp.Diff(want, *patches); diff != "" {
		t.Errorf("writes (-want, +got):\n%s", diff)
	}
}

// The cordon removes the taint, but does not depend on that, and keeps the taints of other clients.
func TestCordonRemovesTheTaint(t *testing.T) {
	other := v1.Taint{Key: "other", Effect: v1.TaintEffectNoSchedule}
	planned := v1.Taint{Key: coordinationv1alpha1.NodePlannedTaint, Effect: v1.TaintEffectPreferNoSchedule}
	hasBoth := func(patch string) bool {
		return strings.Contains(patch, `"taints"`) && strings.Contains(patch, `"unschedulable":true`)
	}
	for name, test := range map[string]struct {
		// meanwhile happens before the first write that cordons and removes the taint, and err is its
		// result.
		meanwhile func(*fixture)
		err       error
		// refuses is which further writes have this result.
		refuses func(patch string) bool
		want    []v1.Taint
	}{
		"nothing happens": {want: nil},
		"another client adds a taint": {
			meanwhile: func(f *fixture) { f.changeTracked("n", addTaint("other")) },
			want:      []v1.Taint{other},
		},
		"other clients write the node": {err: apierrors.NewConflict(write.NodeResource, "n", errors.New("changed"))},
		"the taint must stay": {
			err:     apierrors.NewForbidden(write.NodeResource, "n", errors.New("taints are ours")),
			refuses: func(patch string) bool { return strings.Contains(patch, `"taints"`) },
			want:    []v1.Taint{planned},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n")
			f.createLimit("b", 0)
			f.createPlain("m")
			f.run(10 * time.Second)
			f.expectNode("frozen", "n", waiting)
			writes := 0
			f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
				patch := string(action.(clienttesting.PatchAction).GetPatch())
				first := false
				if hasBoth(patch) {
					writes++
					first = writes == 1
				}
				if first && test.meanwhile != nil {
					test.meanwhile(f)
				}
				refused := first || test.refuses != nil && test.refuses(patch)
				return refused && test.err != nil, nil, test.err
			})
			f.changeLimit("b", func(spec *coordinationv1alpha1.NodeMaintenanceBudgetSpec) { spec.MaxUnavailable.IntVal = 1 })
			f.run(10 * time.Second)
			if node := f.node("n"); !node.Spec.Unschedulable {
				t.Errorf("not cordoned: %q", describeNode(node))
			} else if diff := cmp.Diff(test.want, node.Spec.Taints, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("taints (-want, +got):\n%s", diff)
			}
			if writes == 0 {
				t.Error("no write cordons the node and removes its taint")
			}
			if requested := f.requestedPods(); requested != 1 {
				t.Errorf("the eviction of %d pods is requested", requested)
			}
		})
	}
}

// While an admitted node is drained, its counts of pods are written every few seconds. That a pod is
// blocked shows at once.
func TestProgressOfAnAdmittedNode(t *testing.T) {
	f := newFleet(t, "n")
	pods := f.createPods(30, "n", 0)
	f.createRollout("m", atOnce(1))
	f.run(2 * pace.ProgressInterval)
	f.expectNode("while it is drained", "n", admitted)
	patches := f.nodePatches("n")
	for len(pods) > 1 {
		f.deletePods(pods[0])
		pods = pods[1:]
		f.run(500 * time.Millisecond)
	}
	if got, want := len(*patches), 29/2/int(pace.ProgressInterval/time.Second); got < want || got > want+1 {
		t.Errorf("%d writes in about 14 seconds: %v", got, *patches)
	}
	f.run(pace.ProgressInterval)
	if got := f.node("n").Status.MaintenanceStatus.ActiveEvictionRequests; got != 2 {
		t.Errorf("%d requests are active, not 2", got)
	}
	f.refuse("patch", "evictionrequests", "", func(name string) error {
		return apierrors.NewForbidden(requestResource, name, errors.New("no"))
	})
	for blocked := range int32(2) {
		f.createPods(1, "n", 0)
		f.run(2 * time.Second)
		f.expectBlockedPods("n", blocked+1)
	}
}

// Until the cache has an admission, the node seems to wait. It is not written again.
func TestNoNodeIsAdmittedTwice(t *testing.T) {
	f := newFleet(t, "n")
	f.createLimit("b", 0)
	f.createPlain("m")
	f.run(10 * time.Second)
	m := f.maintenance("m")
	added := []v1.MaintenanceAdmission{{MaintenanceName: m.Name, MaintenanceUID: m.UID}}
	store, decided := admissionStore{f.Controller}, f.node("n")
	inTime := f.clock.Now().Add(time.Minute)
	if admitted, err := store.Admit(f.ctx, decided, added, inTime); err != nil || !admitted {
		t.Fatalf("admitted %t, error %v", admitted, err)
	}
	f.client.ClearActions()
	for _, when := range []string{"the cache is behind", "the decision is"} {
		if admitted, err := store.Admit(f.ctx, decided, added, inTime); !apierrors.IsConflict(err) || admitted {
			t.Errorf("%s: admitted %t, error %v", when, admitted, err)
		}
		f.expectWrites(when)
		f.deliverNodes()
	}
}

// A reservation has the rest of the status, too: each holder is written at most once a second.
func TestReservationHasTheStatus(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	f.createRollout("m", atOnce(1))
	f.drainNodes()
	f.setDone("m", "n1")
	var doneNodes []int32
	f.client.PrependReactor("update", "nodemaintenances", func(action clienttesting.Action) (bool, runtime.Object, error) {
		m := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1alpha1.NodeMaintenance)
		if rollout := m.Status.RolloutStatus; rollout != nil && len(rollout.PendingAdmissions) > 0 {
			doneNodes = append(doneNodes, rollout.DoneNodes)
		}
		return false, nil, nil
	})
	f.client.ClearActions()
	f.run(5 * time.Second)
	f.expectNode("afterwards", "n2", admitted)
	if len(doneNodes) == 0 || doneNodes[0] != 1 {
		t.Errorf("nodes that are done in the reservation and later: %v", doneNodes)
	}
	written := 0
	for _, write := range f.writes() {
		if write == "update nodemaintenances/status" {
			written++
		}
	}
	if written > 4 {
		t.Errorf("%d writes of the maintenance in 5 seconds", written)
	}
}

// Two maintenances are done with a node at the same time. Neither leaves its health to the other.
func TestTwoMaintenancesReturnANode(t *testing.T) {
	const startup = "node.cloudprovider.kubernetes.io/uninitialized"
	f := newFleet(t, "n")
	for i := range 2 {
		rollout := atOnce(1)
		rollout.CompleteNodes = rebooted
		f.createRollout(fmt.Sprintf("m%d", i), rollout)
	}
	f.drainNodes()
	f.expectNode("without pods", "n", "cordoned claimed m0:drained m1:drained")
	f.changeNamed("n", addTaint(startup), reboot)
	f.run(2 * decision.RebootSettled)
	f.expectNode("not healthy", "n", "cordoned claimed m0:returning m1:returning")
	f.changeNamed("n", removeTaint(startup))
	f.run(2 * decision.HealthInterval)
	f.expectNode("healthy", "n", "m0:done m1:done")
}
