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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/ptr"
)

// plainly is what describeNode says of a node that is drained without an admission.
const plainly = "cordoned claimed"

// createPlain creates a maintenance without a rollout in the stage Drain.
func (f *fixture) createPlain(name string) {
	f.t.Helper()
	f.createMaintenance(name, stageDrain, "a", maintenance.StandardPlan()...)
}

// A maintenance without a rollout waits for a budget, too, and gives its nodes back when it ends.
func TestPlainMaintenanceWaitsForABudget(t *testing.T) {
	f := newFleet(t, "n1", "n2", "n3")
	f.createLimit("b", 1)
	f.createPlain("m")
	f.drainNodes()
	f.expectNodes("with a budget of 1", map[string]string{"n1": drained, "n2": waiting, "n3": waiting})
	f.expectWaits("with a budget of 1", "m", waitFor(coordinationv1alpha1.NodeMaintenanceWaitBudget, "b", 2))
	f.changeNamed("n3", setReady(false))
	f.setDone("m", "n1")
	f.drainNodes()
	f.expectNodes("a node is given back, another breaks", map[string]string{"n1": done, "n2": waiting, "n3": drained})
	f.setStage("m", stageComplete)
	f.run(time.Minute)
	f.expectNodes("completed", map[string]string{"n1": untouched, "n2": untouched, "n3": untouched})
}

// A node that was cordoned by hand while a maintenance waited for it is not uncordoned when that
// ends, even if the controller was restarted meanwhile.
func TestPlainMaintenanceKeepsCordonsOfNodesThatWait(t *testing.T) {
	for name, step := range map[string]func(*fixture){"the same process": func(*fixture) {}, "a restart": (*fixture).restart} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n")
			f.createLimit("b", 0)
			f.createPlain("m")
			f.run(5 * time.Second)
			f.changeNamed("n", cordonByHand)
			f.run(5 * time.Second)
			f.expectNode("frozen", "n", "planned tainted cordoned")
			f.setStage("m", stageComplete)
			step(f)
			f.run(time.Minute)
			f.expectNode("completed", "n", "cordoned")
		})
	}
}

// The drains that have begun before there was a budget go on, also after a restart.
func TestBudgetDoesNotStopADrain(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	f.createPlain("m")
	f.run(5 * time.Second)
	f.createLimit("b", 0)
	f.run(5 * time.Second)
	f.createReadyNode("n3", map[string]string{"a": ""})
	f.restart()
	f.drainNodes()
	f.expectNodes("with a freeze", map[string]string{"n1": drained, "n2": drained, "n3": waiting})
	if requested := f.requestedPods(); requested > 0 || len(f.cluster().pods) > 0 {
		t.Errorf("pods are left: %v", f.cluster().pods)
	}
	f.expectWaits("with a freeze", "m", waitFor(coordinationv1alpha1.NodeMaintenanceWaitFrozen, "b", 1))
}

// Nodes go on when their budget is deleted, raised, or selects others.
func TestBudgetEnds(t *testing.T) {
	for name, end := range map[string]func(*fixture){
		"deleted": func(f *fixture) { f.deleteLimit("b") },
		"raised": func(f *fixture) {
			f.changeLimit("b", func(spec *coordinationv1alpha1.NodeMaintenanceBudgetSpec) { spec.MaxUnavailable.IntVal = 3 })
		},
		"selects others": func(f *fixture) {
			f.changeLimit("b", func(spec *coordinationv1alpha1.NodeMaintenanceBudgetSpec) {
				spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Key = "b"
			})
		},
		"deleted while the controller was away": func(f *fixture) { f.deleteLimit("b"); f.restart() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n1", "n2")
			f.createLimit("b", 0)
			f.createPlain("m")
			f.run(10 * time.Second)
			f.expectNodes("frozen", map[string]string{"n1": waiting, "n2": waiting})
			end(f)
			f.drainNodes()
			for _, node := range f.cluster().nodes {
				if !maintenance.IsClaimed(&node) || !node.Spec.Unschedulable || write.HasTaint(&node) {
					t.Errorf("node %s: %q", node.Name, describeNode(&node))
				}
			}
			f.expectDrained("m")
		})
	}
}

// withoutAdmissions returns a patch without what the status of a node says of admissions.
func withoutAdmissions(t *testing.T, patch []byte) string {
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		t.Fatal(err)
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(fields, "status", "maintenanceStatus", "admissions"); !found {
		return string(patch)
	}
	unstructured.RemoveNestedField(fields, "status", "maintenanceStatus", "admissions")
	if rest, _, _ := unstructured.NestedMap(fields, "status", "maintenanceStatus"); len(rest) == 0 {
		unstructured.RemoveNestedField(fields, "status", "maintenanceStatus")
	}
	stripped, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(stripped)
}

// Without a budget and a rollout, the gate makes no additional write. What it records of the maintenances that
// have begun with a node is part of the others, and goes with them.
func TestWithoutBudgetsNothingChanges(t *testing.T) {
	version := regexp.MustCompile(`"resourceVersion":"\d+"`)
	run := func(withoutFleet bool) (writes []string, objects map[string]any) {
		f := newFixture(t)
		f.withoutFleet = withoutFleet
		f.restart()
		f.client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			switch action := action.(type) {
			case clienttesting.PatchActionImpl:
				patch := withoutAdmissions(t, version.ReplaceAll(action.Patch, []byte(`"resourceVersion":"0"`)))
				writes = append(writes, fmt.Sprintf("patch %s %s/%s %s", action.Resource.Resource, action.Name, action.Subresource, patch))
			case clienttesting.UpdateActionImpl:
				if !isByController(action) {
					break
				}
				object := action.Object.DeepCopyObject()
				object.(metav1.Object).SetResourceVersion("")
				writes = append(writes, fmt.Sprintf("update %s/%s %+v", action.Resource.Resource, action.Subresource, object))
			}
			return false, nil, nil
		})
		for _, name := range []string{"n1", "n2", "n3"} {
			f.createReadyNode(name, map[string]string{"a": "", "b": ""})
			f.createPods(2, name, 0)
			f.createPods(1, name, 0, daemon)
		}
		f.createMaintenance("first", stageCordon, "a", maintenance.StandardPlan()...)
		f.createMaintenance("second", stageIdle, "b", maintenance.StandardPlan()...)
		f.run(5 * time.Second)
		f.setStage("first", stageDrain)
		f.run(5 * time.Second)
		f.setStage("second", stageDrain)
		f.drainNodes()
		f.changeNamed("n1", setReady(false), reboot)
		f.run(time.Minute)
		f.relabel("n2", nil)
		f.run(10 * time.Second)
		f.changeNamed("n1", setReady(true))
		f.restart()
		f.run(10 * time.Second)
		f.setStage("first", stageComplete)
		f.run(10 * time.Second)
		f.deleteMaintenance("second")
		f.run(10 * time.Second)
		// Nodes are handled in any order.
		slices.Sort(writes)
		slices.Sort(f.events)
		c := f.cluster()
		for i := range c.nodes {
			c.nodes[i].ResourceVersion = ""
		}
		for i := range c.maintenances {
			c.maintenances[i].ResourceVersion = ""
		}
		return writes, map[string]any{"nodes": c.nodes, "maintenances": c.maintenances, "events": f.events}
	}
	writesOff, objectsOff := run(true)
	writesOn, objectsOn := run(false)
	if diff := cmp.Diff(writesOff, writesOn); diff != "" {
		t.Errorf("writes (-gate off, +gate on):\n%s", diff)
	}
	if diff := cmp.Diff(objectsOff, objectsOn); diff != "" {
		t.Errorf("objects (-gate off, +gate on):\n%s", diff)
	}
	if len(writesOn) < 20 {
		t.Errorf("only %d writes", len(writesOn))
	}
}

// A node that is deselected is given back at once, in any phase. Selected again, it is a new one.
func TestDeselectedAndSelectedAgain(t *testing.T) {
	f := inAllPhases(t)
	f.changeNamed("n1", func(node *v1.Node) { node.Spec.Unschedulable = false })
	f.changeNamed("n2", setReady(true))
	f.run(10 * time.Second)
	f.drainNodes()
	f.expectNodes("before", map[string]string{"n1": done, "n2": done, "n3": drained, "n4": drained, "n5": drained})
	for _, name := range []string{"n1", "n2", "n3"} {
		f.relabel(name, nil)
	}
	f.run(10 * time.Second)
	f.expectNodes("deselected", map[string]string{"n1": untouched, "n2": untouched, "n3": untouched, "n4": drained, "n5": drained})
	for _, name := range []string{"n1", "n2", "n3"} {
		f.relabel(name, map[string]string{"a": ""})
	}
	f.run(10 * time.Second)
	f.drainNodes()
	// The annotation is still there.
	f.expectNodes("selected again", map[string]string{"n1": done, "n2": done, "n3": drained, "n4": drained, "n5": drained})
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Rollout.Paused = true })
	f.createReadyNode("n6", map[string]string{"a": ""})
	f.run(10 * time.Second)
	f.expectNode("a further node", "n6", waiting)
	f.relabel("n6", nil)
	f.restart()
	f.run(10 * time.Second)
	f.expectNode("deselected during a restart", "n6", untouched)
}

// A node stays cordoned and drained as long as one maintenance wants it, whatever the others wait for.
func TestOverlappingRollouts(t *testing.T) {
	f := newFleet(t, "n1")
	f.createRollout("m", atOnce(1))
	f.run(5 * time.Second)
	paused := atOnce(1)
	paused.Paused = true
	f.clock.Step(time.Second)
	f.createRollout("other", paused)
	f.drainNodes()
	f.expectNode("one is admitted, one waits", "n1", "planned cordoned claimed m:drained")
	f.setDone("m", "n1")
	f.run(10 * time.Second)
	f.expectNode("one is done, one waits", "n1", "planned tainted m:done")

	f = newFleet(t, "n1")
	f.createRollout("m", atOnce(1))
	f.clock.Step(time.Second)
	f.createRollout("other", atOnce(1))
	f.run(10 * time.Second)
	f.expectNode("two are admitted", "n1", "cordoned claimed m:admitted other:admitted")
	f.changeNamed("n1", setReady(false))
	f.setDone("m", "n1")
	f.run(10 * time.Second)
	f.expectNode("one is done, the other drains", "n1", "cordoned claimed m:done other:admitted")
	if requested := f.requestedPods(); requested != 1 {
		t.Errorf("the eviction of %d pods is requested", requested)
	}
	f.changeNamed("n1", setReady(true))
	f.drainNodes()
	f.setDone("other", "n1")
	f.run(10 * time.Second)
	f.expectNode("both are done", "n1", "m:done other:done")
}

// A node that two maintenances give back at the same time is made schedulable when it is healthy:
// neither relies on the other.
func TestTwoGiveBack(t *testing.T) {
	f := newFleet(t, "n1")
	rebooted := atOnce(1)
	rebooted.CompleteNodes = coordinationv1alpha1.NodeCompletionRebooted
	f.createRollout("m", rebooted)
	f.clock.Step(time.Second)
	f.createRollout("other", rebooted)
	f.run(10 * time.Second)
	f.drainNodes()
	f.changeNamed("n1", reboot, addTaint("node.cloudprovider.kubernetes.io/uninitialized"))
	f.run(2 * time.Minute)
	f.expectNode("rebooted, and not healthy", "n1", "cordoned claimed m:returning other:returning")
	f.changeNamed("n1", removeTaint("node.cloudprovider.kubernetes.io/uninitialized"))
	f.run(20 * time.Second)
	f.expectNode("healthy", "n1", "m:done other:done")
}

// A node that was cordoned by the stage Cordon stays so while it waits in the stage Drain.
func TestCordonIsKeptWhileNodesWait(t *testing.T) {
	for name, step := range map[string]func(*fixture){"the same process": func(*fixture) {}, "a restart": (*fixture).restart} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n1", "n2")
			uncordons := 0
			f.watchNodes(func(_ *v1.Node, patch string) {
				if strings.Contains(patch, `"unschedulable":false`) {
					uncordons++
				}
			})
			rollout := atOnce(1)
			f.createMaintenance("m", stageCordon, "a", maintenance.StandardPlan()...)
			f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Rollout = &rollout })
			f.run(5 * time.Second)
			f.setStage("m", stageDrain)
			step(f)
			f.drainNodes()
			f.expectNodes("in the stage Drain", map[string]string{"n1": drained, "n2": "planned cordoned claimed"})
			if uncordons > 0 {
				t.Errorf("%d uncordons", uncordons)
			}
			f.setDone("m", "n1")
			f.drainNodes()
			f.expectNodes("one is done", map[string]string{"n1": done, "n2": drained})
			f.setStage("m", stageComplete)
			f.run(time.Minute)
			f.expectNodes("completed", map[string]string{"n1": untouched, "n2": untouched})
		})
	}
}

// A node that was cordoned by the stage Cordon, and waits, is made schedulable when its maintenance ends,
// also by another process.
func TestCordonOfNodesThatWaitEnds(t *testing.T) {
	restart, stay := (*fixture).restart, func(*fixture) {}
	for name, end := range map[string]func(*fixture){
		"completed":  func(f *fixture) { f.setStage("m", stageComplete) },
		"deleted":    func(f *fixture) { f.deleteMaintenance("m") },
		"deselected": func(f *fixture) { f.relabel("n1", nil); f.relabel("n2", nil) },
	} {
		for when, steps := range map[string][2]func(*fixture){
			"the same process": {stay, stay}, "a restart before": {restart, stay}, "a restart at the end": {stay, restart}, "two restarts": {restart, restart},
		} {
			t.Run(name+", "+when, func(t *testing.T) {
				f := newFleet(t, "n1", "n2")
				rollout := atOnce(1)
				rollout.Paused = true
				f.createMaintenance("m", stageCordon, "a", maintenance.StandardPlan()...)
				f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Rollout = &rollout })
				f.run(5 * time.Second)
				f.setStage("m", stageDrain)
				steps[0](f)
				f.run(10 * time.Second)
				f.expectNodes("in Drain", map[string]string{"n1": "planned cordoned claimed", "n2": "planned cordoned claimed"})
				end(f)
				steps[1](f)
				f.run(time.Minute)
				f.expectNodes("at the end", map[string]string{"n1": untouched, "n2": untouched})
			})
		}
	}
}

// A kubelet that shuts down cannot wait. Its node counts.
func TestShutdownNeverWaits(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	f.createLimit("b", 1)
	f.createPlain("m")
	f.run(5 * time.Second)
	f.expectNodes("before", map[string]string{"n1": admitted, "n2": waiting})
	f.changeNamed("n2", func(node *v1.Node) { node.Labels["shutdown"] = "" })
	f.createMaintenance(maintenance.ShutdownName("n2"), stageDrain, "shutdown", maintenance.StandardPlan()...)
	f.run(5 * time.Second)
	f.expectNodes("the kubelet of n2 shuts down", map[string]string{"n1": admitted, "n2": admitted})
	if requested := f.requestedPods(); requested != 2 {
		t.Errorf("the eviction of %d pods is requested", requested)
	}
	if b := f.limit("b"); b.Status.UnavailableNodes != 2 || b.Status.AdmissionsAllowed != 0 {
		t.Errorf("the budget is %+v", b.Status)
	}
}

// A shutdown does not begin the work of a maintenance without a rollout, which a freeze has wait.
func TestShutdownDuringAFreeze(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		f := newFleet(t, "n")
		f.createLimit("b", 0)
		f.createPlain("m")
		f.changeNamed("n", func(node *v1.Node) { node.Labels["shutdown"] = "" })
		f.run(5 * time.Second)
		f.createMaintenance(maintenance.ShutdownName("n"), stageDrain, "shutdown", maintenance.StandardPlan()...)
		f.run(5 * time.Second)
		f.expectNode("the kubelet shuts down", "n", "planned cordoned claimed")
		if restarts {
			f.restart()
		}
		f.run(5 * time.Second)
		f.setStage(maintenance.ShutdownName("n"), stageComplete)
		f.run(time.Minute)
		f.expectNode("the shutdown has ended", "n", waiting)
		if b := f.limit("b"); b.Status.UnavailableNodes != 0 {
			t.Errorf("the budget is %+v", b.Status)
		}
	}
}

// A maintenance without a rollout has not begun with a node that another one drains: it waits for the
// budget, also when the other one gives the node back.
func TestDrainOfAnotherMaintenance(t *testing.T) {
	for name, rollout := range map[string]coordinationv1alpha1.NodeMaintenanceRollout{
		"annotated": atOnce(1), "rebooted": {MaxConcurrent: atOnce(1).MaxConcurrent, CompleteNodes: rebooted},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", name, restarts), func(t *testing.T) {
				f := newFleet(t, "n1")
				f.createRollout("m", rollout)
				f.run(5 * time.Second)
				f.createLimit("b", 0)
				f.clock.Step(time.Second)
				f.createPlain("other")
				f.drainNodes()
				f.expectNode("the other one waits", "n1", "planned cordoned claimed m:drained")
				if restarts {
					f.restart()
				}
				if rollout.CompleteNodes == rebooted {
					f.changeNamed("n1", reboot)
				} else {
					f.setDone("m", "n1")
				}
				f.run(time.Minute)
				f.expectNode("the node is given back", "n1", "planned tainted m:done")
				f.expectWaits("the node is given back", "other", waitFor(coordinationv1alpha1.NodeMaintenanceWaitFrozen, "b", 1))
				f.deleteLimit("b")
				f.run(time.Minute)
				f.expectNode("the freeze has ended", "n1", "cordoned claimed m:done other:drained")
			})
		}
	}
}

// A maintenance that has begun before there was a budget gets an admission: it goes on whatever others do,
// and its nodes can be given back one by one.
func TestDrainBeforeTheBudgetIsAdmitted(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	f.createPlain("m")
	f.run(5 * time.Second)
	f.createLimit("b", 0)
	f.run(5 * time.Second)
	f.expectNodes("with a freeze", map[string]string{"n1": admitted, "n2": admitted})
	f.clock.Step(time.Second)
	f.createRollout("other", atOnce(1))
	f.restart()
	f.drainNodes()
	f.setDone("m", "n1")
	f.run(time.Minute)
	f.expectNodes("one is given back", map[string]string{"n1": "planned tainted m:done", "n2": "planned cordoned claimed m:drained"})
}

// A controller without the gate begins with no node of a rollout, and ends what was begun.
func TestGateOff(t *testing.T) {
	f := newFixture(t)
	f.withoutFleet = true
	f.restart()
	f.createReadyNode("n1", map[string]string{"a": ""})
	f.createPods(1, "n1", 0)
	f.createRollout("m", atOnce(1))
	f.run(time.Minute)
	f.expectNode("the gate is off", "n1", waiting)
	f.expectWaits("the gate is off", "m", waitFor(coordinationv1alpha1.NodeMaintenanceWaitDisabled, "", 1))
	if requested := f.requestedPods(); requested > 0 {
		t.Errorf("the eviction of %d pods is requested", requested)
	}
	f.withoutFleet = false
	f.restart()
	f.run(5 * time.Second)
	f.expectNode("the gate is on", "n1", admitted)
	f.withoutFleet = true
	f.restart()
	f.drainNodes()
	f.expectNode("off again", "n1", drained)
	f.setDone("m", "n1")
	f.run(10 * time.Second)
	f.expectNode("off, and done", "n1", done)
	f.setStage("m", stageComplete)
	f.run(10 * time.Second)
	f.expectNode("off, and completed", "n1", untouched)
}

// Of two maintenances that wait for a budget, the one goes first that has been in stage Drain for longer: another
// one may have been prepared in stage Idle before it.
func TestWhoDrainsFirstGoesFirst(t *testing.T) {
	f := newFleet(t)
	f.createReadyNode("n1", map[string]string{"a": "", "prepared": ""})
	f.createReadyNode("n2", map[string]string{"a": "", "waits": ""})
	f.createLimit("b", 0)
	f.createMaintenance("prepared", stageIdle, "prepared", maintenance.StandardPlan()...)
	f.run(time.Hour)
	f.createMaintenance("waits", stageDrain, "waits", maintenance.StandardPlan()...)
	f.run(time.Minute)
	f.setStage("prepared", stageDrain)
	f.run(time.Minute)
	f.changeLimit("b", func(spec *coordinationv1alpha1.NodeMaintenanceBudgetSpec) {
		spec.MaxUnavailable = ptr.To(intstr.FromInt(1))
	})
	f.run(time.Minute)
	for node, want := range map[string]bool{"n1": false, "n2": true} {
		if got := len(maintenance.Admissions(f.node(node))) > 0; got != want {
			t.Errorf("node %s: begun with: %t", node, got)
		}
	}
}

// A start of stage Drain that is before the maintenance, which whoever may write its status can store in stage Idle, is
// no place before those that have been waiting.
func TestForgedStartOfDrain(t *testing.T) {
	drainingSince := func(name string, created, since time.Time) *coordinationv1alpha1.NodeMaintenance {
		m := &coordinationv1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(created)}}
		m.Status.StageStatuses = []coordinationv1alpha1.StageStatus{{Name: stageDrain, StartTimestamp: ptr.To(metav1.NewTime(since))}}
		return m
	}
	waits := drainingSince("waits", start, start.Add(time.Hour))
	for name, test := range map[string]struct {
		other *coordinationv1alpha1.NodeMaintenance
		first bool
	}{
		"forged":                       {other: drainingSince("other", start.Add(2*time.Hour), start.AddDate(-26, 0, 0))},
		"later":                        {other: drainingSince("other", start.Add(-time.Hour), start.Add(2*time.Hour))},
		"earlier":                      {other: drainingSince("other", start.Add(30*time.Minute), start.Add(30*time.Minute)), first: true},
		"a clock that is a second off": {other: drainingSince("other", start.Add(30*time.Minute), start.Add(30*time.Minute-time.Second)), first: true},
	} {
		if first := queueRankOf(test.other) < queueRankOf(waits); first != test.first {
			t.Errorf("%s: it goes first: %t", name, first)
		}
	}
}

// The start of the stage Drain says who is first, then the age, then the name. Who has none yet is the last.
func TestPlacesInTheQueue(t *testing.T) {
	at := func(name string, created time.Duration, starts map[coordinationv1alpha1.NodeMaintenanceStage]time.Duration) *coordinationv1alpha1.NodeMaintenance {
		m := &coordinationv1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(start.Add(created))}}
		for stage, began := range starts {
			m.Status.StageStatuses = append(m.Status.StageStatuses, coordinationv1alpha1.StageStatus{Name: stage, StartTimestamp: ptr.To(metav1.NewTime(start.Add(began)))})
		}
		return m
	}
	type starts = map[coordinationv1alpha1.NodeMaintenanceStage]time.Duration
	var before string
	for _, m := range []*coordinationv1alpha1.NodeMaintenance{
		at("cordoned-later", time.Hour, starts{stageCordon: 8 * time.Hour, stageDrain: 9 * time.Hour}),
		at("cordoned-early", 0, starts{stageCordon: time.Hour, stageDrain: 10 * time.Hour}),
		at("same-start", time.Hour, starts{stageDrain: 10 * time.Hour}),
		at("same-start-and-age", time.Hour, starts{stageDrain: 10 * time.Hour}),
		at("cordoned", 0, starts{stageCordon: time.Hour}),
		at("young", time.Hour, nil),
	} {
		rank := queueRankOf(m)
		if rank <= before {
			t.Errorf("%s has the rank %q, after %q", m.Name, rank, before)
		}
		before = rank
	}
}

// An admission that is written when the maintenance is over already does not stay on the node, and goes at once if
// this process has seen that the maintenance was deleted.
func TestAdmissionAfterTheEnd(t *testing.T) {
	f := newFleet(t, "n1")
	f.createRollout("m", atOnce(1))
	m := f.maintenance("m").DeepCopy()
	f.run(5 * time.Second)
	f.deleteMaintenance("m")
	f.run(10 * time.Second)
	admit := func() {
		if err := f.writer.Admit(f.ctx, f.node("n1"), []v1.MaintenanceAdmission{{MaintenanceName: m.Name, MaintenanceUID: m.UID, AdmittedTime: metav1.NewTime(f.clock.Now())}}, func() bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	admit()
	f.run(5 * time.Second)
	f.expectNode("deleted before the eyes of this process", "n1", untouched)
	f.restart()
	f.run(5 * time.Second)
	admit()
	f.run(progress.UnknownAdmission / 2)
	f.expectNode("the cache may be behind", "n1", "m:admitted")
	f.run(progress.UnknownAdmission)
	f.expectNode("the cache is not behind", "n1", untouched)
}

// A maintenance whose finalizer somebody has removed leaves no place in a budget taken when it is deleted.
func TestDeletedWithoutFinalizer(t *testing.T) {
	for name, successor := range map[string]bool{"deleted": false, "created again under its name": true} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n1", "n2")
			f.createLimit("b", 1)
			f.createPlain("m")
			f.drainNodes()
			f.expectNodes("drained", map[string]string{"n1": drained, "n2": waiting})
			if err := f.client.CoordinationV1alpha1().NodeMaintenances().Delete(f.ctx, "m", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if successor {
				f.createMaintenance("m", stageIdle, "a", maintenance.StandardPlan()...)
			}
			f.run(10 * time.Second)
			for _, node := range f.cluster().nodes {
				if admissions := maintenance.Admissions(&node); len(admissions) > 0 || node.Spec.Unschedulable {
					t.Errorf("node %s: unschedulable %t, admissions %+v", node.Name, node.Spec.Unschedulable, admissions)
				}
			}
		})
	}
}

// A budget that was created before the stage Drain counts, also if the cache has it later. It costs no
// more reads than there are changes of the maintenance.
func TestBudgetThatTheCacheLacks(t *testing.T) {
	for name, begin := range map[string]func(f *fixture, createLimit func()){
		"created in Drain": func(f *fixture, createLimit func()) {
			createLimit()
			f.createPlain("m")
		},
		"moved to Drain": func(f *fixture, createLimit func()) {
			f.createMaintenance("m", stageCordon, "a", maintenance.StandardPlan()...)
			f.run(5 * time.Second)
			createLimit()
			f.setStage("m", stageDrain)
		},
		"selects other nodes": func(f *fixture, createLimit func()) {
			f.createMaintenance("m", stageDrain, "none", maintenance.StandardPlan()...)
			f.run(5 * time.Second)
			createLimit()
			f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
				m.Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Key = "a"
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n1", "n2")
			f.createReadyNode("other", map[string]string{"shutdown": ""})
			reads := f.countLists("nodemaintenancebudgets")
			f.heldLimits = true
			begin(f, func() { f.createLimit("b", 0) })
			f.run(time.Minute)
			if requested := f.requestedPods(); requested > 0 {
				t.Errorf("the eviction of %d pods is requested", requested)
			}
			if *reads > 100 {
				t.Errorf("%d reads of budgets in a minute", *reads)
			}
			f.createMaintenance(maintenance.ShutdownName("other"), stageDrain, "shutdown", maintenance.StandardPlan()...)
			f.change(maintenance.ShutdownName("other"), func(m *coordinationv1alpha1.NodeMaintenance) {
				m.Spec.NodeSelector = maintenance.ShutdownSelector("other")
			})
			f.run(5 * time.Second)
			f.expectNode("a kubelet does not wait", "other", plainly)
			f.heldLimits = false
			f.run(10 * time.Second)
			f.expectWaits("with the cache", "m", waitFor(coordinationv1alpha1.NodeMaintenanceWaitFrozen, "b", 2))
			*reads = 0
			f.run(time.Hour)
			if *reads > 0 {
				t.Errorf("%d reads of budgets when nothing happens", *reads)
			}
		})
	}
}

// A controller that was just started begins with no node before it knows all budgets.
func TestStartWaitsForBudgets(t *testing.T) {
	f := newFleet(t, "n1")
	f.heldLimits = true
	f.createPlain("m")
	f.deliverMaintenances()
	f.createLimit("b", 0)
	refused := errors.New("overloaded")
	f.client.PrependReactor("list", "nodemaintenancebudgets", func(clienttesting.Action) (bool, runtime.Object, error) { return refused != nil, nil, refused })
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	waits := func(when string) {
		t.Helper()
		if _, current := f.awaitLimits(ended(ctx)); current {
			t.Errorf("%s: the budgets are current", when)
		}
	}
	waits("the API server does not answer")
	refused = nil
	waits("the cache lacks a budget")
	f.heldLimits = false
	f.deliverLimits()
	all, current := f.awaitLimits(ctx)
	if !current || len(all) != 1 || !f.progress.Limits.IsChecked(all[0]) {
		t.Errorf("current %t, maintenances %v", current, all)
	}
	refused = apierrors.NewNotFound(write.BudgetResource, "")
	if _, current := f.awaitLimits(ctx); !current {
		t.Error("an API server that does not serve budgets is waited for")
	}
}

// ended returns a context that has ended, with which a read still succeeds.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// An admission is not written long after its reservation: the process may have been suspended between
// the two, and the reservation may not count any more. It is reserved again then.
func TestLateAdmissionIsNotWritten(t *testing.T) {
	f := newFleet(t, "n1")
	f.createLimit("b", 1)
	suspended := false
	f.client.PrependReactor("update", "nodemaintenancebudgets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		b := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1alpha1.NodeMaintenanceBudget)
		if isByController(action) && !suspended && len(b.Status.PendingAdmissions) > 0 {
			suspended = true
			f.clock.Step(3 * time.Minute)
		}
		return false, nil, nil
	})
	f.createPlain("m")
	f.run(30 * time.Second)
	f.expectNode("the reservation is old", "n1", waiting)
	f.run(3 * time.Minute)
	f.expectNode("it is made again", "n1", admitted)
	if !suspended {
		t.Error("nothing was reserved")
	}
}

// interceptAdmissions answers writes of the controller that admit a node, as long as answer returns
// true, and counts them.
func (f *fixture) interceptAdmissions(answer func(node runtime.Object) (bool, runtime.Object, error)) *int {
	attempts := 0
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		if !isByController(action) || !strings.Contains(string(patch.GetPatch()), `"admittedTime"`) {
			return false, nil, nil
		}
		attempts++
		node, err := f.tracker.Get(v1.SchemeGroupVersion.WithResource("nodes"), "", patch.GetName())
		if err != nil {
			f.t.Errorf("reading a node: %v", err)
		}
		return answer(node)
	})
	return &attempts
}

// A plain maintenance goes on without a record where an API server drops it, and does not write it again and
// again.
func TestClaimIsDropped(t *testing.T) {
	f := newFleet(t, "n")
	f.createPods(1, "n", 0)
	attempts := f.interceptAdmissions(func(node runtime.Object) (bool, runtime.Object, error) { return false, nil, nil })
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		if !strings.Contains(string(patch.Patch), `"admissions"`) {
			return false, nil, nil
		}
		*attempts++
		patch.Patch = []byte(withoutAdmissions(t, patch.Patch))
		for _, reactor := range f.client.ReactionChain[1:] {
			if !reactor.Handles(patch) {
				continue
			}
			if handled, written, err := reactor.React(patch); handled {
				return true, written, err
			}
		}
		return false, nil, nil
	})
	f.createPlain("m")
	f.run(time.Minute)
	if m := f.maintenance("m"); len(m.Status.DrainStatus.Blockers) > 1 || m.Status.DrainStatus.ActiveEvictionRequests != 2 {
		t.Errorf("unexpected status: %+v", m.Status.DrainStatus)
	}
	f.drainNodes()
	f.expectNode("without a record", "n", plainly)
	f.expectDrained("m")
	if *attempts != 1 {
		t.Errorf("%d writes of a record that the API server drops", *attempts)
	}
	f.run(unrecordedInterval + time.Minute)
	if *attempts > 3 {
		t.Errorf("%d writes of a record that the API server drops, in the time of two", *attempts)
	}
}

// A plain drain that has begun goes on when a budget or a freeze appears, whatever shutdowns and other
// maintenances the node has or had.
func TestBudgetUndoesNoDrain(t *testing.T) {
	shutdown := maintenance.ShutdownName("n")
	for name, prepare := range map[string]func(*fixture){
		"alone": func(*fixture) {},
		"after an ended shutdown": func(f *fixture) {
			f.createMaintenance(shutdown, stageDrain, "shutdown", maintenance.StandardPlan()...)
			f.run(5 * time.Second)
			f.setStage(shutdown, stageComplete)
			f.run(time.Hour)
		},
		"with one of its kubelet in the stage Idle": func(f *fixture) {
			f.createMaintenance(shutdown, stageIdle, "shutdown", maintenance.StandardPlan()...)
		},
		"beside one with a rollout": func(f *fixture) { f.createRollout("rollout", atOnce(1)) },
	} {
		for budget, maxUnavailable := range map[string]int{"a budget": 1, "a freeze": 0} {
			for _, restarts := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, restart %t", name, budget, restarts), func(t *testing.T) {
					f := newFleet(t, "n")
					f.changeNamed("n", func(node *v1.Node) { node.Labels["shutdown"] = "" })
					pod := f.createPods(1, "n", 0)[0]
					prepare(f)
					f.run(5 * time.Second)
					f.createPlain("m")
					f.run(5 * time.Second)
					if !f.node("n").Spec.Unschedulable || !f.asksFor(pod) {
						t.Fatal("the drain has not begun")
					}
					if restarts {
						f.restart()
					}
					f.createLimit("b", maxUnavailable)
					f.run(time.Minute)
					if name == "beside one with a rollout" {
						f.setStage("rollout", stageComplete) // Only the plain one is left.
						f.run(time.Minute)
					}
					if !f.node("n").Spec.Unschedulable || !f.asksFor(pod) {
						t.Errorf("the node is given back in the middle of its drain: %s, requested %t", describeNode(f.node("n")), f.asksFor(pod))
					}
				})
			}
		}
	}
}

// A budget or a freeze that comes later does not have the pods of later entries of a plan leave at once.
func TestBudgetKeepsThePlan(t *testing.T) {
	for name, maxUnavailable := range map[string]int{"a budget": 5, "a freeze": 0} {
		f := newFixture(t)
		f.createReadyNode("n1", map[string]string{"a": ""})
		f.createReadyNode("n2", map[string]string{"a": ""})
		first, later := f.createPods(1, "n1", 0)[0], f.createPods(1, "n2", 5000)[0]
		f.createMaintenance("m", stageDrain, "a", entry(v1.PodTypeDefault, 1000), entry(v1.PodTypeDefault, 10000))
		f.run(5 * time.Second)
		f.createLimit("b", maxUnavailable)
		f.run(time.Minute)
		if !f.asksFor(first) || f.asksFor(later) {
			t.Errorf("%s: requested %t and %t, want only the first one", name, f.asksFor(first), f.asksFor(later))
		}
		f.restart()
		f.run(time.Minute)
		f.deletePods(first)
		f.run(5 * time.Second)
		if !f.asksFor(later) {
			t.Errorf("%s: the plan does not go on", name)
		}
	}
}

// An API server whose gate is off drops admissions. Nothing begins without them, everything else goes
// on, and the node and the maintenance say what to do.
func TestAdmissionIsDropped(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	f.createReadyNode("other", map[string]string{"b": ""})
	drops := true
	attempts := f.interceptAdmissions(func(node runtime.Object) (bool, runtime.Object, error) {
		return drops && node.(*v1.Node).Name == "n1", node, nil
	})
	f.createRollout("m", atOnce(2))
	f.createMaintenance("plain", stageDrain, "b", maintenance.StandardPlan()...)
	f.run(time.Minute)
	f.expectNodes("dropped", map[string]string{"n1": waiting, "n2": admitted, "other": "cordoned claimed plain:drained"})
	const why = "an API server has not stored status.maintenanceStatus.admissions of node n1: enable the feature gate NodeMaintenanceBudgets in every kube-apiserver"
	f.expectEvent("Node n1: NodeAdmissionFailed: NodeMaintenance m cannot begin with the node: " + why)
	f.expectEvent("NodeMaintenance m: NodeAdmissionFailed: Cannot begin with a node: " + why)
	if *attempts < 2 || *attempts > 20 {
		t.Errorf("%d attempts in a minute", *attempts)
	}
	drops = false
	f.run(time.Minute)
	f.expectNode("stored", "n1", admitted)
}

// A node whose admission cannot be written keeps its place for as long as its reservation lasts, and is
// last from then on: of its own maintenance, and of a younger one that waits for the same budget.
func TestRefusedNodeIsLast(t *testing.T) {
	for name, result := range map[string]error{
		"refused": errors.New("refused"),
		"changed": apierrors.NewConflict(write.NodeResource, "n1", errors.New("changed")),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n1", "n2", "n3")
			for node, label := range map[string]string{"n1": "m", "n2": "m", "n3": "younger"} {
				f.changeNamed(node, func(node *v1.Node) { node.Labels[label] = "" })
			}
			f.createLimit("b", 1)
			refuses := true
			f.interceptAdmissions(func(node runtime.Object) (bool, runtime.Object, error) {
				return refuses && node.(*v1.Node).Name == "n1", nil, result
			})
			f.createMaintenance("m", stageDrain, "m", maintenance.StandardPlan()...)
			rollout := atOnce(1)
			f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Rollout = &rollout })
			f.run(time.Minute)
			f.expectNodes("reserved", map[string]string{"n1": waiting, "n2": waiting, "n3": untouched})
			f.run(5 * time.Minute)
			f.expectNodes("the reservation is over", map[string]string{"n1": waiting, "n2": admitted, "n3": untouched})
			f.createMaintenance("younger", stageDrain, "younger", maintenance.StandardPlan()...)
			f.drainNodes()
			f.setDone("m", "n2")
			f.run(time.Minute)
			f.expectNodes("n2 is done", map[string]string{"n1": waiting, "n2": done, "n3": "cordoned claimed younger:admitted"})
			refuses = false
			f.drainNodes()
			f.setDone("younger", "n3")
			f.run(6 * time.Minute)
			f.expectNode("written", "n1", admitted)
		})
	}
}

// Conflicts that go on are a failure that is seen, and retried with back-off.
func TestAdmissionConflicts(t *testing.T) {
	f := newFleet(t, "n1")
	contested := true
	attempts := f.interceptAdmissions(func(runtime.Object) (bool, runtime.Object, error) {
		return contested, nil, apierrors.NewConflict(write.NodeResource, "n1", errors.New("changed"))
	})
	f.createRollout("m", atOnce(1))
	f.run(time.Minute)
	f.expectNode("contested", "n1", waiting)
	f.expectEvent("Node n1: NodeAdmissionFailed: NodeMaintenance m cannot begin with the node: other clients write node n1 so often that 10 attempts in a row to admit it failed")
	if *attempts < 2*write.MaxStatusConflicts || *attempts > 20*write.MaxStatusConflicts {
		t.Errorf("%d attempts in a minute", *attempts)
	}
	contested = false
	f.run(time.Minute)
	f.expectNode("not contested", "n1", admitted)
}

// A budget whose status is never written because of conflicts keeps places of another one only until that is known.
func TestBudgetConflicts(t *testing.T) {
	f := newFleet(t, "n1", "n3")
	f.changeNamed("n1", func(node *v1.Node) { node.Labels["contested"], node.Labels["m"] = "", "" })
	f.changeNamed("n3", func(node *v1.Node) { node.Labels["younger"] = "" })
	f.createLimit("any", 1)
	f.createLimit("contested", 1, func(b *coordinationv1alpha1.NodeMaintenanceBudget) {
		b.Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Key = "contested"
	})
	contested := true
	f.client.PrependReactor("update", "nodemaintenancebudgets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		changed := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1alpha1.NodeMaintenanceBudget)
		return contested && changed.Name == "contested", nil, apierrors.NewConflict(coordinationv1alpha1.Resource("nodemaintenancebudgets"), changed.Name, errors.New("changed"))
	})
	f.createMaintenance("m", stageDrain, "m", maintenance.StandardPlan()...)
	f.run(time.Minute)
	f.createMaintenance("younger", stageDrain, "younger", maintenance.StandardPlan()...)
	f.run(6 * time.Minute)
	f.expectEvent("NodeMaintenanceBudget contested: BudgetWriteFailed: 10 attempts in a row failed, because other clients write it so often, or a webhook refuses it: " +
		`Operation cannot be fulfilled on nodemaintenancebudgets.coordination.k8s.io "contested": changed`)
	f.expectNodes("known", map[string]string{"n1": waiting, "n3": "cordoned claimed younger:admitted"})
	contested = false
	f.drainNodes()
	f.setDone("younger", "n3")
	f.run(6 * time.Minute)
	f.expectNode("not contested", "n1", "cordoned claimed m:admitted")
}

// After a conflict, a node is admitted only if nothing has changed that the decision was based on.
func TestAdmissionOfAChangedNode(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*v1.Node)
		admitted bool
	}{
		"something else": {func(n *v1.Node) { n.Status.Images = []v1.ContainerImage{{SizeBytes: 1}} }, true},
		"cordoned":       {cordonByHand, false},
		"labels":         {func(n *v1.Node) { n.Labels = map[string]string{"zone": "b"} }, false},
		"another admitted": {func(n *v1.Node) {
			n.Status.MaintenanceStatus = &v1.MaintenanceStatus{Unclaimed: true, Admissions: []v1.MaintenanceAdmission{{MaintenanceName: "other", MaintenanceUID: "other"}}}
		}, false},
		"not Ready": {setReady(false), false},
		"rebooted":  {reboot, false},
		"done": {func(n *v1.Node) {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, coordinationv1alpha1.NodeDoneAnnotation, "m")
		}, false},
		"tainted":       {addTaint(v1.TaintNodeOutOfService), false},
		"another taint": {func(n *v1.Node) { n.Spec.Taints[0].Value = "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n")
			f.changeNamed("n", addTaint("first"))
			f.createLimit("b", 0)
			f.createPlain("m")
			f.run(10 * time.Second)
			m, decided := f.maintenance("m"), f.node("n")
			changed := false
			attempts := f.interceptAdmissions(func(node runtime.Object) (bool, runtime.Object, error) {
				if changed {
					return false, nil, nil
				}
				changed = true
				latest := node.(*v1.Node).DeepCopy()
				test.change(latest)
				if err := f.tracker.Update(v1.SchemeGroupVersion.WithResource("nodes"), latest, ""); err != nil {
					t.Errorf("changing the node: %v", err)
				}
				return true, nil, apierrors.NewConflict(write.NodeResource, "n", errors.New("changed"))
			})
			got, err := admissionStore{f.Controller}.Admit(f.ctx, decided, []v1.MaintenanceAdmission{{MaintenanceName: m.Name, MaintenanceUID: m.UID}}, f.clock.Now().Add(time.Minute))
			wanted := 1
			if test.admitted {
				wanted = 2
			}
			if got != test.admitted || *attempts != wanted || apierrors.IsConflict(err) == test.admitted {
				t.Errorf("admitted %t after %d attempts, error %v", got, *attempts, err)
			}
		})
	}
}

// Nodes that are back from an outage before the first eviction is requested are decided on again: as many are
// drained as the budget allows, and the others are as before.
func TestOutageEndsBeforeTheFirstRequest(t *testing.T) {
	for name, restart := range map[string]func(*fixture){"the same process": func(*fixture) {}, "a restart": (*fixture).restart} {
		t.Run(name, func(t *testing.T) {
			nodes := []string{"n1", "n2", "n3", "n4", "n5", "n6"}
			f := newFleet(t, nodes...)
			change := func(ready bool, names ...string) {
				for _, name := range names {
					f.changeNamed(name, setReady(ready), func(node *v1.Node) {
						for i := range node.Status.Conditions {
							node.Status.Conditions[i].LastTransitionTime = metav1.NewTime(f.clock.Now())
						}
					})
				}
			}
			change(false, "n1", "n2", "n3")
			f.run(10 * time.Minute)
			// Nothing is requested before the cordon, which is refused.
			refuse := true
			f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
				patch := action.(clienttesting.PatchAction)
				if refuse && action.GetSubresource() == "" && strings.Contains(string(patch.GetPatch()), "unschedulable") {
					return true, nil, apierrors.NewForbidden(write.NodeResource, patch.GetName(), errors.New("a webhook says no"))
				}
				return false, nil, nil
			})
			f.createLimit("b", 1)
			f.createRollout("m", atOnce(6))
			f.run(5 * time.Second)
			for _, name := range []string{"n1", "n2", "n3"} {
				if len(maintenance.Admissions(f.node(name))) != 1 || f.node(name).Spec.Unschedulable {
					t.Fatalf("%s is not admitted, or cordoned: %+v", name, f.node(name).Status.MaintenanceStatus)
				}
			}
			change(true, "n1", "n2", "n3")
			restart(f)
			refuse = false
			f.run(time.Minute)
			var begun []string
			for _, name := range nodes {
				node := f.node(name)
				if len(maintenance.Admissions(node)) > 0 || node.Spec.Unschedulable {
					begun = append(begun, name)
				}
			}
			if diff := cmp.Diff([]string{"n1"}, begun); diff != "" {
				t.Errorf("nodes that are drained (-want, +got):\n%s", diff)
			}
			f.setDone("m", "n1")
			f.run(time.Minute)
			f.expectNode("afterwards", "n2", admitted)
		})
	}
}

// An API server that drops admissions is forgiven only if none of them was needed, whichever comes first.
func TestForgivesOnlyUnneededAdmissions(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	plain, rollout := progress.Spec{Name: "plain", UID: "p"}, progress.Spec{Name: "rollout", UID: "r", Rollout: &coordinationv1alpha1.NodeMaintenanceRollout{}}
	for _, test := range []struct {
		dropped  []types.UID
		forgiven bool
	}{{[]types.UID{"p"}, true}, {[]types.UID{"r"}, false}, {[]types.UID{"p", "r"}, false}, {[]types.UID{"p", "gone"}, false}} {
		s := &nodeSync{Decision: &decision.Decision{Facts: &decision.Facts{Node: f.node("n"), Specs: []progress.Spec{plain, rollout}, Now: f.clock.Now()}}}
		var added []v1.MaintenanceAdmission
		for _, uid := range test.dropped {
			added = append(added, v1.MaintenanceAdmission{MaintenanceUID: uid})
		}
		if err := f.forgiveUnrecorded(s, write.HasStored(s.Node, added)); (err == nil) != test.forgiven {
			t.Errorf("without %v: %v", test.dropped, err)
		}
	}
}

// Nodes whose budgets are never open together are counted apart from those that wait for a window: somebody has to
// change a budget for them.
func TestCountsWaitsWithoutEnd(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	daily := func(schedule string) func(*coordinationv1alpha1.NodeMaintenanceBudget) {
		return func(b *coordinationv1alpha1.NodeMaintenanceBudget) {
			b.Spec.Windows = []coordinationv1alpha1.NodeMaintenanceWindow{{Schedule: schedule, DurationSeconds: 3600}}
		}
	}
	f.createLimit("mornings", 1, daily("0 6 * * *"))
	f.createRollout("m", atOnce(1))
	f.run(10 * time.Second)
	expect := func(when string, want map[coordinationv1alpha1.NodeMaintenanceWaitReason]int) {
		t.Helper()
		if diff := cmp.Diff(want, f.count().WaitingNodes); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", when, diff)
		}
	}
	expect("a window will open", map[coordinationv1alpha1.NodeMaintenanceWaitReason]int{"Window": 2})
	f.createLimit("evenings", 1, daily("0 18 * * *"))
	f.run(10 * time.Second)
	expect("the windows never meet", map[coordinationv1alpha1.NodeMaintenanceWaitReason]int{"NeverOpen": 2})
	f.changeLimit("evenings", func(spec *coordinationv1alpha1.NodeMaintenanceBudgetSpec) { spec.Windows[0].Schedule = "30 6 * * *" })
	f.run(10 * time.Second)
	expect("they meet", map[coordinationv1alpha1.NodeMaintenanceWaitReason]int{"Window": 2})

	expectStalled := func(when string, want metav1.ConditionStatus, message string) {
		t.Helper()
		stalled := ptr.Deref(status.FindCondition(&f.maintenance("m").Status, coordinationv1alpha1.NodeMaintenanceConditionStalled), metav1.Condition{})
		if stalled.Status != want || !strings.Contains(stalled.Message, message) {
			t.Errorf("%s: %+v", when, stalled)
		}
	}
	const never = "2 nodes wait for a window of NodeMaintenanceBudget evenings, and in the next 30 days there is none"
	setEvenings := func(schedule string) {
		f.changeLimit("evenings", func(spec *coordinationv1alpha1.NodeMaintenanceBudgetSpec) { spec.Windows[0].Schedule = schedule })
	}
	expectStalled("they have not met for ten seconds", "", "")
	setEvenings("0 18 * * *")
	f.run(status.StalledAfter - 10*time.Second)
	expectStalled("they do not meet for less than five minutes", "", "")
	f.run(20 * time.Second)
	expectStalled("they have not met for five minutes", metav1.ConditionTrue, never)
	f.restart()
	f.run(10 * time.Second)
	expectStalled("after a restart", metav1.ConditionTrue, never)
	setEvenings("30 6 * * *")
	f.run(10 * time.Second)
	expectStalled("they meet again", metav1.ConditionFalse, "")
}
