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
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/ptr"
)

// countWrites returns how many of the writes are this one.
func (f *fixture) countWrites(write string) (count int) {
	for _, w := range f.writes() {
		if w == write {
			count++
		}
	}
	return count
}

// A holder whose status cannot be written is tried less and less often, also while nodes change.
func TestHolderCannotBeWritten(t *testing.T) {
	for _, resource := range []string{"nodemaintenancebudgets", "nodemaintenances"} {
		for name, changes := range map[string]int{"nothing happens": 0, "nodes change": 5} {
			t.Run(resource+", "+name, func(t *testing.T) {
				f := newFleet(t, "n1", "n2")
				f.createLimit("b", 2)
				f.run(5 * time.Second)
				refuse, attempts := true, 0
				f.client.PrependReactor("update", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
					var pending []coordinationv1alpha1.NodeMaintenancePendingAdmission
					switch holder := action.(clienttesting.UpdateAction).GetObject().(type) {
					case *coordinationv1alpha1.NodeMaintenanceBudget:
						pending = holder.Status.PendingAdmissions
					case *coordinationv1alpha1.NodeMaintenance:
						if holder.Status.RolloutStatus != nil {
							pending = holder.Status.RolloutStatus.PendingAdmissions
						}
					}
					if !refuse || len(pending) == 0 {
						return false, nil, nil
					}
					attempts++
					return true, nil, apierrors.NewForbidden(v1.Resource(resource), "", errors.New("denied by a webhook"))
				})
				f.createRollout("m", atOnce(1))
				for range 60 {
					f.run(time.Second)
					for i := range changes {
						f.changeNamed("n2", setReady(i%2 == 0))
						f.run(100 * time.Millisecond)
					}
				}
				if attempts < 5 || attempts > 8 {
					t.Errorf("%d attempts in a minute, not after 1, 2, 4, 8, 16 and 30 s", attempts)
				}
				f.expectNode("meanwhile", "n1", waiting)
				refuse = false
				f.run(31 * time.Second)
				f.expectNode("afterwards", "n1", admitted)
			})
		}
	}
}

// The two workers that write the status of a maintenance do so one after the other.
func TestOneStatusWriteAtATime(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	f.createRollout("m", atOnce(1))
	f.drainNodes()
	cached := f.cachedMaintenance("m")
	if !f.writer.BeginStatus(cached, f.maintenanceLister) || f.writer.BeginStatus(cached, f.maintenanceLister) {
		t.Fatal("two writes at a time")
	}
	f.setDone("m", "n1")
	f.client.ClearActions()
	f.run(5 * time.Second)
	if got := f.countWrites("update nodemaintenances/status"); got > 0 {
		t.Errorf("%d writes beside the one that is in flight", got)
	}
	f.writer.EndStatus("m")
	f.run(5 * time.Second)
	f.expectNodes("afterwards", map[string]string{"n1": done, "n2": admitted})
	if status := f.maintenance("m").Status.RolloutStatus; status.DoneNodes != 1 || status.AdmittedNodes != 1 {
		t.Errorf("status %+v", status)
	}
}

// A write of which the cache does not know yet is in flight, too.
func TestStatusWriteOfAnOldVersion(t *testing.T) {
	f := newFleet(t, "n1")
	f.createRollout("m", atOnce(1))
	f.run(5 * time.Second)
	before := f.cachedMaintenance("m")
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Reason = "changed" })
	f.run(5 * time.Second)
	if f.writer.BeginStatus(before, f.maintenanceLister) {
		t.Error("the cache has a later version")
	}
	f.writer.Maintenances.WroteAt(types.NamespacedName{Name: "m"}, before.UID, write.MaintenanceResource, "1000000")
	if f.writer.BeginStatus(f.cachedMaintenance("m"), f.maintenanceLister) {
		t.Error("the cache has an earlier version")
	}
}

// Others do not wait for a maintenance while a write of its status takes long.
func TestSlowStatusWrite(t *testing.T) {
	f := newFleet(t)
	f.createReadyNode("n1", map[string]string{"a": "", "b": ""})
	f.createReadyNode("n2", map[string]string{"a": ""})
	f.createLimit("b", 1)
	rollout := atOnce(1)
	f.createMaintenance("old", stageDrain, "b", maintenance.StandardPlan()...)
	f.change("old", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Rollout = &rollout })
	f.deliverMaintenances()
	if !f.writer.BeginStatus(f.cachedMaintenance("old"), f.maintenanceLister) {
		t.Fatal("another write is in flight")
	}
	f.clock.Step(time.Second)
	f.createRollout("young", atOnce(2))
	f.run(5 * time.Second)
	f.expectNode("meanwhile", "n1", "planned cordoned claimed young:drained")
	if attempts := f.countWrites("update nodemaintenances/status"); attempts > 10 {
		t.Errorf("%d writes", attempts)
	}
	f.writer.EndStatus("old")
}

func (f *fixture) cachedMaintenance(name string) *coordinationv1alpha1.NodeMaintenance {
	f.t.Helper()
	m, err := f.maintenanceLister.Get(name)
	if err != nil {
		f.t.Fatalf("reading a maintenance from the cache: %v", err)
	}
	return m
}

// A namespace concerns the nodes that are drained and have its pods.
func TestNamespaceOfFewNodes(t *testing.T) {
	f := newFleet(t, "n1", "n2", "n3")
	f.createPods(1, "n2", 0, func(pod *v1.Pod) { pod.Namespace = "new" })
	f.createPods(1, "n3", 0, func(pod *v1.Pod) { pod.Namespace = "new" })
	f.createRollout("m", atOnce(2))
	f.settle()
	f.expectNodes("before", map[string]string{"n1": admitted, "n2": admitted, "n3": waiting})
	for _, labels := range []map[string]string{nil, {"a": "b"}} {
		deliver(f, f.namespaceInformer, []*v1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "new", Labels: labels}}}, nil)
		if diff := cmp.Diff([]string{"n2"}, f.nodeQueue.keys); diff != "" {
			t.Errorf("labels %v: reconciled nodes (-want, +got):\n%s", labels, diff)
		}
		f.settle()
	}
}

// A node that is cordoned by one maintenance while it waits for another is schedulable when the first
// one has ended: the other has not cordoned it.
func TestCordonOfAnotherMaintenance(t *testing.T) {
	for name, restart := range map[string]func(*fixture){"the same process": func(*fixture) {}, "a restart": (*fixture).restart} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n1")
			rollout := atOnce(1)
			rollout.Paused = true
			f.createRollout("m", rollout)
			f.run(5 * time.Second)
			f.createMaintenance("other", stageCordon, "a")
			f.run(5 * time.Second)
			f.expectNode("with the other one", "n1", "planned cordoned claimed")
			restart(f)
			f.setStage("other", stageComplete)
			f.run(time.Minute)
			f.expectNode("afterwards", "n1", waiting)
		})
	}
}

// A maintenance that has cordoned a node keeps the cordon while the node waits, although another one has
// drained it, and has given it back or ended.
func TestCordonAfterAnotherMaintenance(t *testing.T) {
	cordon := func(f *fixture) {
		rollout := atOnce(1)
		rollout.Paused = true
		f.createMaintenance("m", stageCordon, "a", maintenance.StandardPlan()...)
		f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Rollout = &rollout })
		f.run(5 * time.Second)
	}
	wait := func(f *fixture) {
		f.setStage("m", stageDrain)
		f.run(5 * time.Second)
	}
	giveBack := func(f *fixture) { f.setDone("first", "n1"); f.run(time.Minute) }
	complete := func(f *fixture) { f.setStage("first", stageComplete); f.run(time.Minute) }
	for name, test := range map[string]struct {
		steps []func(*fixture)
		of    string // what is left of the other maintenance
	}{
		"given back before the cordon":   {[]func(*fixture){giveBack, cordon, wait}, " first:done"},
		"given back before it waits":     {[]func(*fixture){cordon, giveBack, wait}, " first:done"},
		"given back while it waits":      {[]func(*fixture){cordon, wait, giveBack}, " first:done"},
		"completed before it waits":      {[]func(*fixture){cordon, complete, wait}, ""},
		"completed while it waits":       {[]func(*fixture){cordon, wait, complete}, ""},
		"a restart, and then given back": {[]func(*fixture){cordon, wait, (*fixture).restart, giveBack}, " first:done"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n1")
			f.createRollout("first", atOnce(1))
			f.drainNodes()
			for _, step := range test.steps {
				step(f)
			}
			f.expectNode("paused", "n1", "planned cordoned claimed"+test.of)
			f.setStage("m", stageComplete)
			f.run(time.Minute)
			f.expectNode("completed", "n1", strings.TrimSpace(test.of))
		})
	}
}

// Stages start in their order, whatever the clocks say of the processes that store them: kube-apiserver refuses others.
func TestStagesStartInTheirOrder(t *testing.T) {
	at := func(stage coordinationv1alpha1.NodeMaintenanceStage, after time.Duration) coordinationv1alpha1.StageStatus {
		return coordinationv1alpha1.StageStatus{Name: stage, StartTimestamp: ptr.To(metav1.NewTime(start.Add(after)))}
	}
	type stages = []coordinationv1alpha1.StageStatus
	for name, test := range map[string]struct {
		reached       coordinationv1alpha1.NodeMaintenanceStage
		stored        stages
		cordonedFirst bool
		want          stages
	}{
		"Cordon":                            {stageCordon, nil, false, stages{at(stageCordon, 0)}},
		"Cordon, the clock was ahead":       {stageCordon, stages{at(stageIdle, time.Minute)}, false, stages{at(stageIdle, time.Minute), at(stageCordon, time.Minute)}},
		"Drain, the clock was ahead":        {stageDrain, stages{at(stageIdle, time.Minute)}, false, stages{at(stageIdle, time.Minute), at(stageCordon, time.Minute), at(stageDrain, time.Minute)}},
		"Cordon is not stored":              {stageDrain, stages{at(stageIdle, -time.Minute)}, true, stages{at(stageIdle, -time.Minute), at(stageCordon, -time.Second), at(stageDrain, 0)}},
		"Cordon is not stored, all at once": {stageDrain, stages{at(stageIdle, 0)}, true, stages{at(stageIdle, 0), at(stageCordon, 0), at(stageDrain, time.Second)}},
		"Complete, the clock was ahead":     {stageComplete, stages{at(stageCordon, 0), at(stageDrain, time.Minute)}, false, stages{at(stageCordon, 0), at(stageDrain, time.Minute), at(stageComplete, time.Minute)}},
		"Complete after Cordon":             {stageComplete, stages{at(stageCordon, -time.Minute)}, false, stages{at(stageCordon, -time.Minute), at(stageComplete, 0)}},
		"Drain was stored by another":       {stageDrain, stages{at(stageDrain, -time.Hour)}, false, stages{at(stageDrain, -time.Hour), at(stageCordon, -time.Hour)}},
	} {
		m := &coordinationv1alpha1.NodeMaintenance{Spec: coordinationv1alpha1.NodeMaintenanceSpec{Stage: test.reached}, Status: coordinationv1alpha1.NodeMaintenanceStatus{StageStatuses: test.stored}}
		if diff := cmp.Diff(test.want, status.Compute(m, &progress.Summary{CordonedFirst: test.cordonedFirst}, start).StageStatuses); diff != "" {
			t.Errorf("%s: unexpected stages (-want, +got):\n%s", name, diff)
		}
	}
}

// Each stage is stored, although a status was written a moment before.
func TestStagesFollowAtOnce(t *testing.T) {
	f := newFleet(t, "n1")
	rollout := atOnce(1)
	rollout.Paused = true
	f.createMaintenance("m", stageIdle, "a", maintenance.StandardPlan()...)
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Rollout = &rollout })
	f.run(100 * time.Millisecond)
	for _, stage := range []coordinationv1alpha1.NodeMaintenanceStage{stageCordon, stageDrain} {
		f.setStage("m", stage)
		f.run(300 * time.Millisecond)
	}
	f.run(5 * time.Second)
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Spec.Rollout.MaxConcurrent = ptr.To(intstr.FromInt32(2))
		m.Generation++
	})
	f.run(5 * time.Second)
	f.expectNode("paused", "n1", "planned cordoned claimed")
}

// That the stage Cordon came first is known, and stored, although its status could not be written.
func TestStageThatWasNotStored(t *testing.T) {
	refuse := true
	f := newFleet(t, "n1")
	rollout := atOnce(1)
	rollout.Paused = true
	f.createMaintenance("m", stageCordon, "a", maintenance.StandardPlan()...)
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Rollout = &rollout })
	f.client.PrependReactor("update", "nodemaintenances", func(action clienttesting.Action) (bool, runtime.Object, error) {
		m, isUpdate := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1alpha1.NodeMaintenance)
		if isUpdate && action.GetSubresource() == "status" && refuse {
			return true, nil, apierrors.NewForbidden(write.MaintenanceResource, m.Name, errors.New("denied by a webhook"))
		}
		return false, nil, nil
	})
	f.run(5 * time.Second)
	f.setStage("m", stageDrain)
	f.run(5 * time.Second)
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Spec.Rollout.MaxConcurrent = ptr.To(intstr.FromInt32(2))
		m.Generation++
	})
	f.run(5 * time.Second)
	f.expectNode("not stored", "n1", "planned cordoned claimed")
	refuse = false
	f.run(time.Minute)
	f.expectNode("paused", "n1", "planned cordoned claimed")
	f.restart()
	f.run(5 * time.Second)
	f.expectNode("after a restart", "n1", "planned cordoned claimed")
}

// A node that waits, and was created after the stage Cordon, keeps no cordon of another maintenance.
func TestNodeThatCameAfterTheStageCordon(t *testing.T) {
	for name, restart := range map[string]func(*fixture){"the same process": func(*fixture) {}, "a restart": (*fixture).restart} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n1")
			rollout := atOnce(1)
			rollout.Paused = true
			f.createMaintenance("m", stageCordon, "a", maintenance.StandardPlan()...)
			f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Rollout = &rollout })
			f.run(5 * time.Second)
			f.setStage("m", stageDrain)
			f.run(5 * time.Second)
			f.clock.Step(2 * maintenance.MaxClockDifference)
			f.createReadyNode("n2", map[string]string{"a": ""})
			f.changeNamed("n2", func(n *v1.Node) { n.CreationTimestamp = metav1.NewTime(f.clock.Now()) })
			f.createMaintenance("other", stageDrain, "a", maintenance.StandardPlan()...)
			f.run(5 * time.Second)
			f.expectNode("with the other one", "n2", "planned cordoned claimed other:drained")
			restart(f)
			f.setStage("other", stageComplete)
			f.run(time.Minute)
			f.expectNode("afterwards", "n1", "planned cordoned claimed")
			f.expectNode("afterwards", "n2", waiting)
		})
	}
}

// A node that was rebooted in time has not failed because no controller was there to see it.
func TestReturnTimeoutWithoutController(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	rollout := atOnce(1)
	rollout.CompleteNodes, rollout.ReturnTimeoutSeconds = rebooted, ptr.To[int32](600)
	f.createRollout("m", rollout)
	f.drainNodes()
	f.changeNamed("n1", reboot)
	f.run(5 * time.Second)
	f.clock.Step(time.Hour)
	f.restart()
	f.run(10 * time.Second)
	f.expectNode("not Ready for long enough", "n1", drained)
	f.run(decision.RebootSettled)
	f.expectNodes("afterwards", map[string]string{"n1": done, "n2": admitted})
	// That is no excuse for one that is not Ready.
	f.drainNodes()
	f.changeNamed("n2", reboot, setReady(false))
	f.clock.Step(time.Hour)
	f.restart()
	f.run(10 * time.Second)
	f.expectNode("not Ready", "n2", failed)
}

// Nor has one whose DaemonSets need a moment after that, but not for long.
func TestReturnGrace(t *testing.T) {
	f := newFleet(t, "n1")
	rollout := atOnce(1)
	rollout.CompleteNodes, rollout.ReturnTimeoutSeconds = rebooted, ptr.To[int32](600)
	f.createRollout("m", rollout)
	f.drainNodes()
	f.changeNamed("n1", reboot)
	f.run(5 * time.Second)
	f.clock.Step(time.Hour)
	f.restart()
	f.createDaemonSet()
	f.run(10*time.Second + decision.RebootSettled)
	f.expectNode("without a pod of the DaemonSet", "n1", returning)
	f.run(decision.ReturnGrace)
	f.expectNode("for too long", "n1", failed)
}

// An act that waits is not made if a policy skips the pod since.
func TestActOnSkippedPod(t *testing.T) {
	for _, kept := range []bool{false, true} {
		f := newFleet(t)
		f.createReadyNode("n", map[string]string{"a": ""})
		pod := f.createPods(1, "n", 0)[0]
		f.createEscalation("m", after(60, ignoreBudgets))
		f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
			m.Spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{{
				Action: coordinationv1alpha1.NodeMaintenancePodSkip, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"keep": ""}},
			}}
		})
		f.run(5 * time.Second)
		f.hung = sets.New(pod.Namespace)
		f.run(2 * time.Minute)
		f.endRequest(0, timedOut)
		f.requests.Set("n", "m", []requests.Write{{Namespace: pod.Namespace, Pod: pod.Name, Node: "n", UID: pod.UID, Act: ignoreBudgets}})
		if kept {
			changed := pod.DeepCopy()
			changed.Labels, changed.ResourceVersion = map[string]string{"keep": ""}, ""
			if _, err := f.client.CoreV1().Pods(pod.Namespace).Update(f.ctx, changed, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			f.deliverAll()
		}
		if !f.beginRequest() || (f.running[0].write == nil) != kept {
			t.Errorf("skipped %t: running %+v", kept, f.running)
		}
	}
}

// A freeze holds for all nodes but those whose admission is being written: what takes long is not written
// because of an old list of budgets.
func TestFreezeWhileNodesAreWritten(t *testing.T) {
	f := newFleet(t, "n1", "n2", "n3")
	f.admissions.admitter.Parallel = 1
	f.createLimit("b", 3)
	budgets, frozen := coordinationv1alpha1.SchemeGroupVersion.WithResource("nodemaintenancebudgets"), false
	f.interceptAdmissions(func(runtime.Object) (bool, runtime.Object, error) {
		if !frozen {
			frozen = true
			f.clock.Step(listTakes)
			stored, err := f.tracker.Get(budgets, "", "b")
			if err != nil {
				t.Error(err)
				return false, nil, nil
			}
			b := stored.DeepCopyObject().(*coordinationv1alpha1.NodeMaintenanceBudget)
			b.Spec.MaxUnavailable, b.Generation = ptr.To(intstr.FromInt32(0)), b.Generation+1
			if err := f.tracker.Update(budgets, b, ""); err != nil {
				t.Error(err)
			}
		}
		return false, nil, nil
	})
	f.createPlain("m")
	f.run(10 * time.Minute)
	f.expectNodes("frozen", map[string]string{"n1": admitted, "n2": waiting, "n3": waiting})
	f.changeLimit("b", func(spec *coordinationv1alpha1.NodeMaintenanceBudgetSpec) {
		spec.MaxUnavailable = ptr.To(intstr.FromInt32(3))
	})
	f.run(time.Minute)
	f.expectNodes("thawed", map[string]string{"n1": admitted, "n2": admitted, "n3": admitted})
}

// If the list of budgets is old when a node is to be written, it is decided again at once: that is no failure
// of the node.
func TestListThatTakesLong(t *testing.T) {
	f := newFleet(t, "n1")
	f.createLimit("b", 1)
	fails := true
	f.interceptAdmissions(func(runtime.Object) (bool, runtime.Object, error) {
		failed := fails
		fails = false
		return failed, nil, context.DeadlineExceeded // Now it is reserved.
	})
	late := false
	f.client.PrependReactor("list", "nodemaintenancebudgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		if !fails && !late {
			late = true
			f.clock.Step(listTakes)
		}
		return false, nil, nil
	})
	f.createPlain("m")
	f.run(30 * time.Second)
	if !late {
		t.Error("no list was late")
	}
	f.expectNode("after a late list", "n1", admitted)
	if slices.ContainsFunc(f.events, func(e string) bool { return strings.Contains(e, "too old") }) {
		t.Errorf("a failure of the node: %q", f.events)
	}
}

// An API server that does not serve budgets has none, as at the start of the controller.
func TestListOfBudgetsThatAreNotServed(t *testing.T) {
	f := newFixture(t)
	var refused error = apierrors.NewNotFound(write.BudgetResource, "")
	f.client.PrependReactor("list", "nodemaintenancebudgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, refused
	})
	store := admissionStore{f.Controller}
	if list, err := store.ListBudgets(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("not served: %v, error %v", list, err)
	}
	refused = apierrors.NewForbidden(write.BudgetResource, "", errors.New("no rights"))
	if _, err := store.ListBudgets(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("not allowed: error %v", err)
	}
}

// listTakes is longer than a list of budgets may be old.
const listTakes = 6 * time.Second

// Nodes that lose their network for a moment are not admitted beyond the budget. One that stays away is.
func TestInterruptionAdmitsNothing(t *testing.T) {
	f := newFleet(t, "n1", "n2", "n3", "n4")
	f.createLimit("b", 1)
	f.createPlain("m")
	f.run(5 * time.Second)
	want := map[string]string{"n1": admitted, "n2": waiting, "n3": waiting, "n4": waiting}
	f.expectNodes("before", want)
	set := func(ready bool, names ...string) {
		for _, name := range names {
			f.changeNamed(name, setReady(ready), func(node *v1.Node) { node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(f.clock.Now()) })
		}
	}
	set(false, "n2", "n3", "n4")
	f.run(2 * time.Minute)
	f.expectNodes("interrupted", want)
	set(true, "n2", "n3")
	f.run(2 * time.Minute)
	f.expectNodes("back", want)
	f.run(2 * time.Minute) // Without any event.
	want["n4"] = admitted
	f.expectNodes("one is dead", want)
}

// A node that is done keeps its place while the API server refuses to make it schedulable: otherwise the
// whole pool would be cordoned, one after the other.
func TestRefusedUncordonKeepsThePlace(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	refuse := true
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if refuse && strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), `"unschedulable":false`) {
			return true, nil, apierrors.NewForbidden(write.NodeResource, "n1", errors.New("a policy says no"))
		}
		return false, nil, nil
	})
	f.createRollout("m", atOnce(1))
	f.drainNodes()
	f.setDone("m", "n1")
	f.run(2 * time.Minute)
	f.expectNodes("refused", map[string]string{"n1": "cordoned claimed m:done", "n2": waiting})
	f.expectWaits("refused", "m", waitFor(coordinationv1alpha1.NodeMaintenanceWaitConcurrency, "", 1))
	f.restart()
	if got := f.countUnreleased(f.listNodes())[f.maintenance("m").UID]; got != 1 {
		t.Errorf("%d nodes keep their places after a restart", got)
	}
	f.run(2 * time.Minute)
	f.expectNode("refused after a restart", "n2", waiting)
	refuse = false
	f.run(2 * time.Minute)
	f.expectNode("allowed", "n1", done)
	f.expectNode("allowed", "n2", admitted)
}

// What keeps a node unschedulable besides, such as another maintenance or a person, keeps no place.
func TestOthersKeepNoPlace(t *testing.T) {
	for name, cordon := range map[string]func(f *fixture){
		"by a maintenance in the stage Cordon": func(f *fixture) { f.createMaintenance("other", stageCordon, "a", maintenance.StandardPlan()...) },
		"by hand":                              func(f *fixture) { f.changeNamed("n1", cordonByHand) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n1", "n2")
			f.createRollout("m", atOnce(1))
			f.drainNodes()
			f.setDone("m", "n1")
			if name != "by hand" {
				cordon(f)
			}
			f.run(10 * time.Second)
			if name == "by hand" {
				cordon(f)
				f.deliverAll()
			}
			if got := f.countUnreleased(f.listNodes())[f.maintenance("m").UID]; got != 0 || !f.node("n1").Spec.Unschedulable {
				t.Errorf("%d nodes keep their places", got)
			}
		})
	}
}

// Which writes people have to know of that have failed.
func TestIsRefusal(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelLate()
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want bool
	}{
		"none":       {t.Context(), nil, false},
		"a policy":   {t.Context(), apierrors.NewForbidden(write.MaintenanceResource, "m", nil), true},
		"a conflict": {t.Context(), apierrors.NewConflict(write.MaintenanceResource, "m", nil), false},
		"gone":       {t.Context(), apierrors.NewNotFound(write.MaintenanceResource, "m"), false},
		"no answer":  {late, context.DeadlineExceeded, true},
		"the end":    {canceled, context.Canceled, false},
	} {
		if got := isRefusal(test.ctx, test.err); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// An old leader whose cordon comes late does not leave a node cordoned that was released meanwhile.
func TestLateCordonOfAnOldLeader(t *testing.T) {
	f := newFleet(t, "n1")
	late := true
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if !late || !strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), `"unschedulable":true`) {
			return false, nil, nil
		}
		late = false
		// What the new leader has left.
		nodes := v1.SchemeGroupVersion.WithResource("nodes")
		stored, err := f.tracker.Get(nodes, "", "n1")
		if err != nil {
			t.Error(err)
			return false, nil, nil
		}
		node := stored.DeepCopyObject().(*v1.Node)
		now := metav1.NewTime(f.clock.Now())
		a := &node.Status.MaintenanceStatus.Admissions[0]
		a.DrainedTime, a.ReturningTime, a.DoneTime = &now, &now, &now
		node.Status.MaintenanceStatus.Unclaimed = true
		if err := f.tracker.Update(nodes, node, ""); err != nil {
			t.Error(err)
		}
		return false, nil, nil
	})
	f.createRollout("m", atOnce(1))
	f.run(time.Minute)
	if late {
		t.Error("it was not cordoned")
	}
	f.expectNode("released", "n1", done)
}

// The API server refuses the status of a maintenance: what nobody can read there, an event says.
func TestRefusedStatusOfAMaintenance(t *testing.T) {
	f := newFleet(t, "n1")
	refuse := func(resource string) {
		f.client.PrependReactor("update", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
			return isByController(action), nil, apierrors.NewForbidden(write.MaintenanceResource, "m", errors.New("a policy says no"))
		})
	}
	refuse("nodemaintenances")
	refuse("nodemaintenancebudgets")
	f.createLimit("b", 1)
	f.createPlain("m")
	f.run(10 * time.Second)
	for _, prefix := range []string{"NodeMaintenance m: MaintenanceWriteFailed: ", "NodeMaintenanceBudget b: BudgetWriteFailed: "} {
		if !slices.ContainsFunc(f.events, func(e string) bool { return strings.HasPrefix(e, prefix) && strings.HasSuffix(e, "a policy says no") }) {
			t.Errorf("no event %q in %q", prefix, f.events)
		}
	}
}

// A budget that is not completely understood says so by an event.
func TestInvalidBudgetEvent(t *testing.T) {
	f := newFleet(t, "n1")
	f.createLimit("b", 1, func(b *coordinationv1alpha1.NodeMaintenanceBudget) {
		b.Spec.Windows = []coordinationv1alpha1.NodeMaintenanceWindow{{Schedule: "* * * * *", TimeZone: "Mars/Olympus", DurationSeconds: 60}}
	})
	f.run(10 * time.Second)
	count := 0
	for _, event := range f.events {
		if strings.HasPrefix(event, "NodeMaintenanceBudget b: InvalidBudget: ") && strings.Contains(event, "Mars/Olympus") {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d events: %q", count, f.events)
	}
}

// A client that removes the taint of a node that waits does not make the controller write all the time.
func TestContestedTaint(t *testing.T) {
	f := newFleet(t, "n1")
	f.createLimit("b", 0)
	f.createRollout("m", atOnce(1))
	writes := 0
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if isByController(action) && strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), coordinationv1alpha1.NodePlannedTaint) {
			writes++
		}
		return false, nil, nil
	})
	for range 5 * 60 {
		f.run(time.Second)
		if write.HasTaint(f.node("n1")) {
			f.changeNamed("n1", func(node *v1.Node) { node.Spec.Taints = nil })
		}
	}
	if writes < pace.RevertLimit || writes > pace.RevertLimit+5 {
		t.Errorf("the taint was written %d times in five minutes", writes)
	}
	contested := func(event string) bool { return strings.HasPrefix(event, "Node n1: TaintContested") }
	if !slices.ContainsFunc(f.events, contested) {
		t.Errorf("no event says that it is contested: %q", f.events)
	}
	f.run(2 * pace.RevertPause)
	f.expectNode("nobody removes it any more", "n1", waiting)
	f.deleteLimit("b")
	f.drainNodes()
	f.expectNode("the freeze has ended", "n1", drained)
	if len(f.pacer.Names(pace.RevertedTaint)) > 0 {
		t.Errorf("left: %v", f.pacer.Names(pace.RevertedTaint))
	}
}
