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
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/utils/ptr"
)

const halted = coordinationv1alpha1.NodeMaintenanceConditionHalted

func TestRolloutAdmitsMaxConcurrentNodes(t *testing.T) {
	for name, test := range map[string]struct {
		max  *intstr.IntOrString
		want int
	}{
		"a number":         {ptr.To(intstr.FromInt(2)), 2},
		"a percentage":     {ptr.To(intstr.FromString("59%")), 2},
		"less than a node": {ptr.To(intstr.FromString("1%")), 1},
		"no limit":         {nil, 5},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := []string{"n1", "n2", "n3", "n4", "n5"}
			f := newFleet(t, nodes...)
			f.limitAdmitted(test.want)
			f.createRollout("m", coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: test.max})
			for given := 0; given < len(nodes); given++ {
				f.drainNodes()
				status := f.maintenance("m").Status.RolloutStatus
				if got, want := status.AdmittedNodes, int32(min(test.want, len(nodes)-given)); got != want || int(status.DoneNodes) != given {
					t.Fatalf("%d nodes are admitted, not %d; %d are done, not %d", got, want, status.DoneNodes, given)
				}
				at := slices.IndexFunc(nodes, func(name string) bool { return describeNode(f.node(name)) == drained })
				if at < 0 {
					t.Fatalf("no node is drained: %v", f.describeNodes())
				}
				f.setDone("m", nodes[at])
			}
			f.run(10 * time.Second)
			f.expectNodes("at the end", map[string]string{"n1": done, "n2": done, "n3": done, "n4": done, "n5": done})
			f.expectDrained("m")
			if got, want := f.conditionOf("m", "Drained"), "True Drained: 5 nodes given back."; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// Nodes that wait are announced, get no pods that could run elsewhere, and keep theirs.
func TestNodesThatWait(t *testing.T) {
	f := newFleet(t, "n1", "n2", "n3")
	f.changeNamed("n2", addTaint("other"))
	f.createRollout("m", atOnce(1))
	f.run(10 * time.Second)
	f.expectNodes("after the first admission", map[string]string{"n1": admitted, "n2": waiting, "n3": waiting})
	f.expectWaits("after the first admission", "m", waitFor(coordinationv1alpha1.NodeMaintenanceWaitConcurrency, "", 2))
	if taints := f.node("n2").Spec.Taints; len(taints) != 2 || taints[0].Key != "other" {
		t.Errorf("the taint of another client is gone: %+v", taints)
	}
	if requested := f.requestedPods(); requested != 1 {
		t.Errorf("the eviction of %d pods is requested", requested)
	}
	if got, want := f.conditionOf("m", "Drained"), "False Draining: 1 pod left on 1 of 3 nodes. 2 of 3 nodes waiting. 2 nodes wait until others are given back: spec.rollout.maxConcurrent are admitted."; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	f.changeNamed("n3", removeTaint(coordinationv1alpha1.NodePlannedTaint))
	f.run(time.Second)
	f.expectNode("after its taint was removed by hand", "n3", waiting)
}

func TestAdmissionIsStoredBeforeTheCordon(t *testing.T) {
	f := newFleet(t, "n")
	cordons := 0
	f.watchNodes(func(before *v1.Node, patch string) {
		if !strings.Contains(patch, `"unschedulable":true`) {
			return
		}
		cordons++
		if len(maintenance.Admissions(before)) == 0 {
			t.Errorf("cordoned without an admission: %+v", before.Status.MaintenanceStatus)
		}
	})
	f.createRollout("m", atOnce(1))
	f.client.ClearActions()
	f.drainNodes()
	if cordons != 1 {
		t.Errorf("%d cordons", cordons)
	}
	want := []string{
		"patch nodemaintenances", // The finalizer.
		"update nodemaintenances/status",
		"patch nodes",                    // The taint.
		"patch nodes/status",             // It is planned.
		"update nodemaintenances/status", // The reservation.
		"patch nodes/status",             // The admission.
	}
	if writes := f.writes(); len(writes) < len(want)+1 || !cmp.Equal(writes[:len(want)+1], append(want, "patch nodes")) {
		t.Errorf("writes: %v", writes)
	}
}

func TestNodeIsDone(t *testing.T) {
	annotate := func(f *fixture) { f.setDone("m", "n") }
	rebootNode := func(f *fixture) { f.changeNamed("n", reboot) }
	unreboot := func(f *fixture) {
		f.changeNamed("n", func(node *v1.Node) {
			node.Status.NodeInfo.BootID = strings.TrimSuffix(node.Status.NodeInfo.BootID, "+1")
		})
	}
	pass := func(duration time.Duration) func(*fixture) { return func(f *fixture) { f.run(duration) } }
	settled := pass(decision.RebootSettled + 2*time.Second)
	for name, test := range map[string]struct {
		completeNodes coordinationv1alpha1.NodeCompletionPolicy
		// before happens while the node is drained, and after when it is.
		before, after []func(*fixture)
		want          string
	}{
		"nothing":                      {manual, nil, []func(*fixture){settled}, drained},
		"annotation":                   {manual, nil, []func(*fixture){annotate, pass(5 * time.Second)}, done},
		"annotation, with Rebooted":    {rebooted, nil, []func(*fixture){annotate, pass(5 * time.Second)}, done},
		"annotation before the drain":  {manual, []func(*fixture){annotate}, []func(*fixture){pass(5 * time.Second)}, done},
		"annotation of another":        {manual, nil, []func(*fixture){func(f *fixture) { f.createMaintenance("other", stageIdle, "b"); f.setDone("other", "n") }, settled}, drained},
		"reboot":                       {rebooted, nil, []func(*fixture){rebootNode, settled}, done},
		"reboot, with Manual":          {manual, nil, []func(*fixture){rebootNode, settled}, drained},
		"reboot, not Ready for long":   {rebooted, nil, []func(*fixture){rebootNode, pass(decision.RebootSettled - 5*time.Second)}, drained},
		"reboot before the drain ends": {rebooted, []func(*fixture){rebootNode}, []func(*fixture){settled}, drained},
		"two reboots": {rebooted, nil, []func(*fixture){
			rebootNode, pass(decision.RebootSettled - 5*time.Second), rebootNode, pass(10 * time.Second),
		}, drained},
		"Ready is lost": {rebooted, nil, []func(*fixture){
			rebootNode, pass(20 * time.Second), func(f *fixture) { f.changeNamed("n", setReady(false)) }, pass(time.Second),
			func(f *fixture) { f.changeNamed("n", setReady(true)) }, pass(20 * time.Second),
		}, drained},
		"Ready is lost and back": {rebooted, nil, []func(*fixture){
			rebootNode, pass(20 * time.Second), func(f *fixture) { f.changeNamed("n", setReady(false)) }, pass(time.Second),
			func(f *fixture) { f.changeNamed("n", setReady(true)) }, settled,
		}, done},
		"restart after the reboot": {rebooted, nil, []func(*fixture){
			rebootNode, pass(20 * time.Second), (*fixture).restart, pass(20 * time.Second),
		}, drained},
		"restart after the reboot, and time": {rebooted, nil, []func(*fixture){rebootNode, (*fixture).restart, settled}, done},
		"restart during the reboot": {rebooted, nil, []func(*fixture){
			func(f *fixture) { f.changeNamed("n", setReady(false)) }, pass(time.Second), (*fixture).restart, rebootNode,
			func(f *fixture) { f.changeNamed("n", setReady(true)) }, settled,
		}, done},
		"another boot is reported, and corrected, twice": {rebooted, nil, []func(*fixture){
			rebootNode, pass(5 * time.Second), unreboot, pass(decision.RebootSettled), rebootNode, pass(5 * time.Second),
		}, drained},
		"no boot ID": {rebooted, nil, []func(*fixture){
			func(f *fixture) { f.changeNamed("n", func(node *v1.Node) { node.Status.NodeInfo.BootID = "" }) }, settled,
		}, drained},
		"no boot ID at the drain": {rebooted, []func(*fixture){
			func(f *fixture) { f.changeNamed("n", func(node *v1.Node) { node.Status.NodeInfo.BootID = "" }) },
		}, []func(*fixture){rebootNode, settled}, drained},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n")
			f.createRollout("m", coordinationv1alpha1.NodeMaintenanceRollout{CompleteNodes: test.completeNodes})
			f.run(5 * time.Second)
			for _, happen := range test.before {
				happen(f)
			}
			f.run(time.Second)
			f.drainNodes()
			for _, happen := range test.after {
				happen(f)
			}
			f.expectNode("at the end", "n", test.want)
		})
	}
}

// A node that reboots while it is recorded as drained was rebooted before that: the boot that is over
// is not the one that the next reboot is compared with.
func TestRebootBeforeTheDrainIsStored(t *testing.T) {
	f := newFleet(t, "n")
	f.createRollout("m", coordinationv1alpha1.NodeMaintenanceRollout{CompleteNodes: rebooted})
	reboots := 0
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if reboots == 0 && strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), `"drainedTime"`) {
			reboots++
			nodes := v1.SchemeGroupVersion.WithResource("nodes")
			live, err := f.tracker.Get(nodes, "", "n")
			if err != nil {
				return true, nil, err
			}
			rebooted := live.(*v1.Node).DeepCopy()
			reboot(rebooted)
			return false, nil, f.tracker.Update(nodes, rebooted, "")
		}
		return false, nil, nil
	})
	f.drainNodes()
	f.run(decision.RebootSettled + 10*time.Second)
	f.expectNode("rebooted before", "n", drained)
	if got := maintenance.Admissions(f.node("n"))[0].BootID; got != "boot-1+1" || reboots != 1 {
		t.Errorf("the boot is %q after %d reboots", got, reboots)
	}
	f.changeNamed("n", reboot)
	f.run(decision.RebootSettled + 10*time.Second)
	f.expectNode("rebooted after", "n", done)
}

// A node that is done stays cordoned until it is healthy.
func TestUnhealthyNodeStaysCordoned(t *testing.T) {
	for name, test := range map[string]struct {
		spoil, mend func(*fixture)
		reason      string
	}{
		"not Ready": {
			func(f *fixture) { f.changeNamed("n", setReady(false)) },
			func(f *fixture) { f.changeNamed("n", setReady(true)) },
			"it is not Ready",
		},
		"startup taint": {
			func(f *fixture) { f.changeNamed("n", addTaint("node.cloudprovider.kubernetes.io/uninitialized")) },
			func(f *fixture) {
				f.changeNamed("n", removeTaint("node.cloudprovider.kubernetes.io/uninitialized"))
			},
			"it has the taint node.cloudprovider.kubernetes.io/uninitialized",
		},
		"startup taint of an autoscaler": {
			func(f *fixture) { f.changeNamed("n", addTaint("startup-taint.cluster-autoscaler.kubernetes.io/x")) },
			func(f *fixture) {
				f.changeNamed("n", removeTaint("startup-taint.cluster-autoscaler.kubernetes.io/x"))
			},
			"it has the taint startup-taint.cluster-autoscaler.kubernetes.io/x",
		},
		"pod of a DaemonSet missing": {
			func(f *fixture) { f.createDaemonSet() },
			func(f *fixture) {
				ds := f.daemonSets.List()[0].(*appsv1.DaemonSet)
				f.createPods(1, "n", 0, daemonOf(ds, true))
			},
			"it has no ready pods of default/d (DaemonSet)",
		},
		"pod of another namespace that names the DaemonSet": {
			func(f *fixture) {
				f.createPods(1, "n", 0, daemonOf(f.createDaemonSet(), true), func(pod *v1.Pod) { pod.Namespace = "tenant" })
			},
			func(f *fixture) {
				ds := f.daemonSets.List()[0].(*appsv1.DaemonSet)
				f.createPods(1, "n", 0, daemonOf(ds, true))
			},
			"it has no ready pods of default/d (DaemonSet)",
		},
		"pod of a DaemonSet that goes": {
			func(f *fixture) {
				f.createPods(1, "n", 0, daemonOf(f.createDaemonSet(), true), func(pod *v1.Pod) { pod.DeletionTimestamp = ptr.To(metav1.NewTime(f.clock.Now())) })
			},
			func(f *fixture) {
				ds := f.daemonSets.List()[0].(*appsv1.DaemonSet)
				f.createPods(1, "n", 0, daemonOf(ds, true))
			},
			"it has no ready pods of default/d (DaemonSet)",
		},
		"pod of a DaemonSet not ready": {
			func(f *fixture) { f.createPods(1, "n", 0, daemonOf(f.createDaemonSet(), false)) },
			func(f *fixture) {
				pod := f.cluster().pods["n"][0]
				pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
				if _, err := f.client.CoreV1().Pods(pod.Namespace).Update(f.ctx, pod, metav1.UpdateOptions{}); err != nil {
					f.t.Fatalf("changing a pod: %v", err)
				}
			},
			"it has no ready pods of default/d (DaemonSet)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n")
			f.createRollout("m", atOnce(1))
			f.drainNodes()
			test.spoil(f)
			f.setDone("m", "n")
			f.run(time.Minute)
			f.expectNode("unhealthy", "n", returning)
			if requested := f.requestedPods(); requested > 0 {
				t.Errorf("the eviction of %d pods of a node that is done is requested", requested)
			}
			f.run(decision.DefaultReturnTimeout)
			f.expectNode("too late", "n", failed)
			f.expectEvent("Node n: NodeNotBack: The node did not come back in time for NodeMaintenance m: " + test.reason)
			test.mend(f)
			f.run(2 * decision.HealthInterval)
			f.expectNode("healthy", "n", done)
		})
	}
}

// A node that does not come back in time halts the rollout. It goes on when the node is back, or
// when more of them are tolerated.
func TestHalt(t *testing.T) {
	const timeout = 10 * time.Minute
	for name, test := range map[string]struct {
		resume func(*fixture)
		want   map[string]string
		halted string
	}{
		"the node comes back": {
			func(f *fixture) {
				f.changeNamed("n1", setReady(true), reboot)
				f.run(decision.RebootSettled + 10*time.Second)
			},
			map[string]string{"n1": done, "n2": admitted, "n3": waiting},
			"False NotHalted: ",
		},
		"the node is given back by hand": {
			func(f *fixture) {
				f.changeNamed("n1", setReady(true))
				f.setDone("m", "n1")
				f.run(10 * time.Second)
			},
			map[string]string{"n1": done, "n2": admitted, "n3": waiting},
			"False NotHalted: ",
		},
		"one is tolerated": {
			func(f *fixture) {
				f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Rollout.MaxFailedNodes = ptr.To[int32](1) })
				f.run(10 * time.Second)
			},
			map[string]string{"n1": failed, "n2": admitted, "n3": waiting},
			"False NotHalted: 1 node did not come back in time: n1.",
		},
		"it is acknowledged": {
			func(f *fixture) {
				f.acknowledge("m", f.node("n1").UID)
				f.run(10 * time.Second)
			},
			map[string]string{"n1": failed, "n2": admitted, "n3": waiting},
			"False NotHalted: 1 failed node acknowledged: n1.",
		},
		"it is acknowledged, and the next one fails": {
			func(f *fixture) {
				f.acknowledge("m", f.node("n1").UID)
				f.drainNodes()
				f.changeNamed("n2", setReady(false))
				f.run(timeout + time.Minute)
			},
			map[string]string{"n1": failed, "n2": failed, "n3": waiting},
			"True FailedNodes: 1 node did not come back in time: n2. 1 failed node acknowledged: n1. spec.rollout.maxFailedNodes is 0: no further node is drained until they are back or acknowledged, or the number is raised.",
		},
		"another node is acknowledged, as one that had the name before": {
			func(f *fixture) {
				f.acknowledge("m", "another")
				f.run(10 * time.Second)
			},
			map[string]string{"n1": failed, "n2": waiting, "n3": waiting},
			"True FailedNodes: 1 node did not come back in time: n1. spec.rollout.maxFailedNodes is 0: no further node is drained until they are back or acknowledged, or the number is raised.",
		},
		"more time": {
			func(f *fixture) {
				f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
					m.Spec.Rollout.ReturnTimeoutSeconds = ptr.To[int32](3600)
				})
				f.run(10 * time.Second)
			},
			map[string]string{"n1": failed, "n2": waiting, "n3": waiting},
			"True FailedNodes: 1 node did not come back in time: n1. spec.rollout.maxFailedNodes is 0: no further node is drained until they are back or acknowledged, or the number is raised.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n1", "n2", "n3")
			rollout := atOnce(1)
			rollout.CompleteNodes, rollout.ReturnTimeoutSeconds, rollout.MaxFailedNodes = rebooted, ptr.To(int32(timeout/time.Second)), ptr.To[int32](0)
			f.createRollout("m", rollout)
			f.drainNodes()
			f.changeNamed("n1", setReady(false))
			f.run(timeout - time.Minute)
			f.expectNodes("in time", map[string]string{"n1": drained, "n2": waiting, "n3": waiting})
			f.run(2 * time.Minute)
			f.expectNodes("too late", map[string]string{"n1": failed, "n2": waiting, "n3": waiting})
			f.expectWaits("too late", "m", waitFor(coordinationv1alpha1.NodeMaintenanceWaitHalted, "", 2))
			if status := f.maintenance("m").Status.RolloutStatus; status.FailedNodes != 1 || !slices.Equal(status.Failed, []string{"n1"}) {
				t.Errorf("status: %+v", status)
			}
			failedTime := maintenance.AdmissionOf(f.node("n1"), f.maintenance("m").UID).FailedTime
			f.expectEvent("Node n1: NodeNotBack: The node did not come back in time for NodeMaintenance m: it is not Ready")
			f.restart()
			f.run(time.Minute)
			f.expectNodes("after a restart", map[string]string{"n1": failed, "n2": waiting, "n3": waiting})
			test.resume(f)
			f.expectNodes("afterwards", test.want)
			if test.want["n1"] == done {
				failedTime = nil
			}
			if got := maintenance.AdmissionOf(f.node("n1"), f.maintenance("m").UID).FailedTime; !got.Equal(failedTime) {
				t.Errorf("failed at %v, not %v", got, failedTime)
			}
			if got := f.conditionOf("m", halted); got != test.halted {
				t.Errorf("got %q, want %q", got, test.halted)
			}
		})
	}
}

// A node that still has pods when it is done is returned first: their requests have to be withdrawn before
// it is given back.
func TestDoneWithPodsLeft(t *testing.T) {
	for name, before := range map[string]func(*fixture){
		"in the middle of the drain":      func(f *fixture) { f.run(5 * time.Second) },
		"with a pod that came afterwards": func(f *fixture) { f.drainNodes(); f.createPods(1, "n", 0); f.run(5 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n")
			f.createRollout("m", atOnce(1))
			before(f)
			if f.requestedPods() != 1 {
				t.Fatal("no eviction is requested")
			}
			var at []string
			f.watchNodes(func(before *v1.Node, patch string) {
				if strings.Contains(patch, `"doneTime"`) {
					at = append(at, describeNode(before))
				}
			})
			f.setDone("m", "n")
			f.run(10 * time.Second)
			f.expectNode("at the end", "n", done)
			if !slices.Equal(at, []string{returning}) || f.requestedPods() > 0 {
				t.Errorf("given back from %q, %d requests", at, f.requestedPods())
			}
		})
	}
}

// The last admission is confirmed as well, although no node waits any more.
func TestLastAdmissionIsConfirmed(t *testing.T) {
	f := newFleet(t, "n")
	f.createLimit("b", 1)
	f.createRollout("m", atOnce(1))
	f.run(10 * time.Second)
	f.expectNode("admitted", "n", admitted)
	rollout, budget := f.maintenance("m").Status.RolloutStatus, f.limit("b").Status
	if len(rollout.PendingAdmissions) > 0 || rollout.AdmissionResourceVersion == "" || len(budget.PendingAdmissions) > 0 || budget.AdmissionResourceVersion == "" {
		t.Errorf("rollout %+v, budget %+v", rollout, budget)
	}
}

// A node that boots again and again is never Ready for long enough. It has failed in time, until it is.
func TestBootLoop(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	rollout := atOnce(1)
	rollout.CompleteNodes, rollout.ReturnTimeoutSeconds = rebooted, ptr.To[int32](60)
	f.createRollout("m", rollout)
	f.run(5 * time.Second)
	f.drainNodes()
	boot := func(times int) {
		for range times {
			f.changeNamed("n1", reboot)
			f.run(20 * time.Second)
		}
	}
	boot(5)
	f.expectNodes("a moment after its first boot", map[string]string{"n1": drained, "n2": waiting})
	boot(3)
	f.expectNodes("too late", map[string]string{"n1": failed, "n2": waiting})
	f.run(decision.RebootSettled + 5*time.Second)
	f.expectNodes("at last", map[string]string{"n1": done, "n2": admitted})
}

// A node whose work is done, but which is not healthy in time, has failed until it is.
func TestReturnTimeout(t *testing.T) {
	const taint = "node.cloudprovider.kubernetes.io/uninitialized"
	f := newFleet(t, "n1", "n2")
	rollout := atOnce(1)
	rollout.ReturnTimeoutSeconds = ptr.To[int32](600)
	f.createRollout("m", rollout)
	f.drainNodes()
	f.run(time.Hour)
	f.expectNode("nobody has said that it is done", "n1", drained)
	f.changeNamed("n1", addTaint(taint))
	f.setDone("m", "n1")
	f.run(590 * time.Second)
	f.expectNode("in time", "n1", returning)
	f.run(20 * time.Second)
	f.expectNodes("too late", map[string]string{"n1": failed, "n2": waiting})
	f.changeNamed("n1", removeTaint(taint))
	f.run(10 * time.Second)
	f.expectNodes("afterwards", map[string]string{"n1": done, "n2": admitted})
	if a := maintenance.AdmissionOf(f.node("n1"), f.maintenance("m").UID); a.FailedTime != nil {
		t.Errorf("the node has failed at %v, although it is back", a.FailedTime)
	}
}

// A node that returns is looked at again without an event: that of a DaemonSet which is deleted has
// none here.
func TestReturningNodeIsLookedAtAgain(t *testing.T) {
	f := newFleet(t, "n")
	ds := f.createDaemonSet()
	f.createRollout("m", atOnce(1))
	f.drainNodes()
	f.setDone("m", "n")
	f.run(time.Minute)
	f.expectNode("without a pod of the DaemonSet", "n", returning)
	if err := f.daemonSets.Delete(ds); err != nil {
		t.Fatal(err)
	}
	f.run(2 * decision.HealthInterval)
	f.expectNode("without the DaemonSet", "n", done)
}

// A pause stops the admission of further nodes. What was begun goes on.
func TestPause(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	pause := func(paused bool) {
		f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Rollout.Paused = paused })
	}
	f.createRollout("m", atOnce(1))
	f.run(5 * time.Second)
	pause(true)
	f.drainNodes()
	f.setDone("m", "n1")
	f.run(time.Minute)
	f.expectNodes("paused", map[string]string{"n1": done, "n2": waiting})
	f.expectWaits("paused", "m", waitFor(coordinationv1alpha1.NodeMaintenanceWaitPaused, "", 1))
	f.client.ClearActions()
	f.run(time.Hour)
	f.expectWrites("an hour of pause")
	pause(false)
	f.run(5 * time.Second)
	f.expectNodes("resumed", map[string]string{"n1": done, "n2": admitted})
}

// inAllPhases returns a maintenance with a node in each phase; the first one was done, and has been
// cordoned by hand since.
func inAllPhases(t *testing.T) *fixture {
	f := newFleet(t, "n1", "n2", "n3", "n4", "n5")
	f.createRollout("m", atOnce(3))
	f.drainNodes()
	f.setDone("m", "n1")
	f.changeNamed("n2", setReady(false))
	f.setDone("m", "n2")
	f.run(10 * time.Second)
	f.changeNamed("n1", cordonByHand)
	f.run(10 * time.Second)
	f.expectNodes("in all phases", map[string]string{"n1": "cordoned m:done", "n2": returning, "n3": drained, "n4": admitted, "n5": waiting})
	return f
}

// A maintenance that ends in the middle gives every node back, with what it has written there. What
// another client has cordoned since stays cordoned.
func TestRolloutEndsInTheMiddle(t *testing.T) {
	remove := func(f *fixture) { f.deleteMaintenance("m") }
	complete := func(f *fixture) { f.setStage("m", stageComplete) }
	for name, steps := range map[string][]func(*fixture){
		"completed":                        {complete},
		"deleted":                          {remove},
		"completed while it was restarted": {complete, (*fixture).restart},
		"deleted while it was restarted":   {remove, (*fixture).restart},
		"completed, then restarted":        {complete, func(f *fixture) { f.run(100 * time.Millisecond) }, (*fixture).restart},
		"the budget goes with it": {
			func(f *fixture) { f.createLimit("b", 1); f.run(time.Second) }, complete, func(f *fixture) { f.deleteLimit("b") },
		},
		"frozen": {func(f *fixture) { f.createLimit("b", 0); f.run(time.Second) }, complete},
	} {
		t.Run(name, func(t *testing.T) {
			f := inAllPhases(t)
			for _, step := range steps {
				step(f)
			}
			f.run(time.Minute)
			f.expectNodes("afterwards", map[string]string{"n1": "cordoned", "n2": untouched, "n3": untouched, "n4": untouched, "n5": untouched})
			if requested := f.requestedPods(); requested > 0 {
				t.Errorf("%d requests are left", requested)
			}
			for _, node := range f.cluster().nodes {
				if node.Status.MaintenanceStatus != nil || len(status.OwnConditions(node.Status.Conditions)) > 0 {
					t.Errorf("node %s has a status: %+v", node.Name, node.Status)
				}
			}
			if strings.HasPrefix(name, "deleted") {
				if list := f.cluster().maintenances; len(list) > 0 {
					t.Errorf("maintenances are left: %v", list)
				}
			} else if m := f.maintenance("m"); len(m.Finalizers) > 0 {
				t.Errorf("not completed: %+v", m)
			}
		})
	}
}

// A controller that is killed after any of its writes is continued by the next one: no limit is
// exceeded, no node is drained twice, and all are given back.
func TestRestartAfterEachWrite(t *testing.T) {
	for killed := 0; ; killed++ {
		f := newFleet(t, "n1", "n2")
		f.limitAdmitted(1)
		writes, dead, restarted := 0, false, false
		f.client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if !isByController(action) {
				return false, nil, nil
			}
			writes++
			if dead = dead || writes > killed && !restarted; dead {
				return true, nil, errors.New("killed")
			}
			return false, nil, nil
		})
		rollout := atOnce(1)
		rollout.CompleteNodes = rebooted
		f.createLimit("b", 2)
		f.createRollout("m", rollout)
		survived := f.rollOut(func() bool { return dead })
		f.restart()
		dead, restarted = false, true
		f.rollOut(func() bool { return false })
		f.expectNodes(fmt.Sprintf("killed after %d writes", killed), map[string]string{"n1": done, "n2": done})
		if t.Failed() || survived {
			return
		}
	}
}

// rollOut drains nodes and reboots those that are drained, until all are done, and reports whether
// they are.
func (f *fixture) rollOut(stopped func() bool) bool {
	f.t.Helper()
	for range 200 {
		f.run(2 * time.Second)
		if stopped() {
			return false
		}
		f.endRequestedPods()
		all := true
		for name, state := range f.describeNodes() {
			if state == drained && f.node(name).Status.NodeInfo.BootID == "boot-1" {
				f.changeNamed(name, reboot)
			}
			all = all && state == done
		}
		if all {
			return true
		}
	}
	return false
}

// A taint that another client has changed is corrected, and a completed maintenance is not halted.
func TestMendedByTheNextSync(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	f.createRollout("m", atOnce(1))
	f.run(10 * time.Second)
	f.changeNamed("n2", func(node *v1.Node) {
		for i := range node.Spec.Taints {
			node.Spec.Taints[i].Effect = v1.TaintEffectNoSchedule
		}
	})
	f.run(10 * time.Second)
	if taints := f.node("n2").Spec.Taints; len(taints) != 1 || taints[0].Effect != v1.TaintEffectPreferNoSchedule {
		t.Errorf("the taint was not corrected: %+v", taints)
	}
	f.changeNamed("n1", setReady(false))
	f.setDone("m", "n1")
	f.run(2 * decision.DefaultReturnTimeout)
	if m := f.maintenance("m"); !status.IsHalted(&m.Status) {
		t.Fatalf("not halted: %+v", m.Status.Conditions)
	}
	f.setStage("m", stageComplete)
	f.run(10 * time.Second)
	if m := f.maintenance("m"); status.IsHalted(&m.Status) {
		t.Errorf("halted after the completion: %+v", m.Status.Conditions)
	}
}

// A taint that a webhook refuses keeps nothing else from going on, is reported, and is tried again with
// back-off. One that cannot be removed keeps the maintenance from ending, and says so.
func TestRefusedTaint(t *testing.T) {
	f := newFleet(t, "n1", "n2", "n3")
	refused, attempts := true, 0
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		if !refused || patch.GetName() != "n2" || !strings.Contains(string(patch.GetPatch()), `"taints":`) {
			return false, nil, nil
		}
		attempts++
		return true, nil, webhook("n2")
	})
	f.createRollout("m", atOnce(1))
	f.drainNodes()
	f.run(time.Minute)
	f.expectNodes("the taint is refused", map[string]string{"n1": drained, "n2": "planned", "n3": waiting})
	f.expectEvent(`Node n2: TaintFailed: setting the taint nodemaintenance.k8s.io/planned of the node: nodes "n2" is forbidden: a webhook says no`)
	if attempts < 3 || attempts > 8 {
		t.Errorf("%d attempts in a minute", attempts)
	}
	f.restart()
	f.setDone("m", "n1")
	f.drainNodes()
	f.expectNodes("it is the turn of the node", map[string]string{"n1": done, "n2": drained, "n3": waiting})
	refused = false
	f.setDone("m", "n2")
	f.relabel("n2", nil)
	f.run(10 * time.Second)
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Rollout.Paused = true })
	f.changeNamed("n2", func(node *v1.Node) { delete(node.Annotations, coordinationv1alpha1.NodeDoneAnnotation) })
	f.relabel("n2", map[string]string{"a": ""})
	f.run(time.Minute)
	f.expectNodes("the taint is allowed", map[string]string{"n1": done, "n2": waiting, "n3": admitted})
	refused = true
	f.setStage("m", stageComplete)
	f.run(time.Minute)
	f.expectNodes("the removal is refused", map[string]string{"n1": untouched, "n2": "tainted", "n3": untouched})
	want := `1 node cannot be uncordoned (setting the taint nodemaintenance.k8s.io/planned of the node: nodes "n2" is forbidden: a webhook says no)`
	if blockers := f.maintenance("m").Status.DrainStatus.Blockers; len(blockers) != 1 || blockers[0].Message != want {
		t.Errorf("blockers: %+v", blockers)
	}
	refused = false
	f.run(time.Minute)
	f.expectNode("the removal is allowed", "n2", untouched)
	if m := f.maintenance("m"); len(m.Finalizers) > 0 {
		t.Errorf("not completed: %+v", m)
	}
}

// A node has one mark. That of a maintenance that waits while another one drains the node is recorded before the other
// one needs it.
func TestDoneWhileAnotherDrains(t *testing.T) {
	f := newFleet(t, "n1")
	f.createRollout("first", atOnce(1))
	f.drainNodes()
	paused := atOnce(1)
	paused.Paused = true
	f.createRollout("second", paused)
	f.run(10 * time.Second)
	f.setDone("second", "n1")
	f.run(10 * time.Second)
	if a := maintenance.AdmissionOf(f.node("n1"), f.maintenance("second").UID); a == nil || a.DoneTime == nil || a.DrainedTime != nil {
		t.Errorf("while the other one drains the node: %+v", a)
	}
	if node := f.node("n1"); !node.Spec.Unschedulable || !maintenance.IsClaimed(node) {
		t.Errorf("the other one has lost the node: %+v", node)
	}
	f.change("second", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Rollout.Paused = false })
	f.setDone("first", "n1")
	f.run(time.Minute)
	if node := f.node("n1"); node.Spec.Unschedulable || maintenance.IsClaimed(node) {
		t.Errorf("the node was not given back, or is drained again: %+v", node)
	}
}

// A node that was done before the maintenance could begin with it is not touched, and takes no place.
func TestDoneBeforeTheAdmission(t *testing.T) {
	for name, test := range map[string]struct {
		begin func(*fixture)
		want  string
	}{
		"before the stage Drain": {func(f *fixture) {
			f.createMaintenance("m", stageIdle, "a", maintenance.StandardPlan()...)
			f.run(5 * time.Second)
			f.setDone("m", "n1")
			f.setStage("m", stageDrain)
		}, done},
		"while it waits": {func(f *fixture) {
			f.createLimit("freeze", 0)
			f.createPlain("m")
			f.run(5 * time.Second)
			f.setDone("m", "n1")
			f.run(5 * time.Second)
			f.deleteLimit("freeze")
		}, done},
		"not Ready": {func(f *fixture) {
			f.changeNamed("n1", setReady(false))
			f.createMaintenance("m", stageIdle, "a", maintenance.StandardPlan()...)
			f.setDone("m", "n1")
			f.setStage("m", stageDrain)
		}, done},
		"cordoned by hand": {func(f *fixture) {
			f.changeNamed("n1", cordonByHand)
			f.createMaintenance("m", stageIdle, "a", maintenance.StandardPlan()...)
			f.setDone("m", "n1")
			f.setStage("m", stageDrain)
		}, "cordoned " + done},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n1", "n2")
			f.createLimit("b", 2)
			f.watchNodes(func(before *v1.Node, patch string) {
				if before.Name == "n1" && strings.Contains(patch, `"unschedulable":`) {
					t.Errorf("wrote %s", patch)
				}
			})
			test.begin(f)
			f.drainNodes()
			f.expectNodes("in Drain", map[string]string{"n1": test.want, "n2": drained})
			f.changeNamed("n1", func(node *v1.Node) { delete(node.Annotations, coordinationv1alpha1.NodeDoneAnnotation) })
			f.restart()
			f.drainNodes()
			f.expectNode("without the annotation", "n1", test.want)
			if status := f.maintenance("m").Status.RolloutStatus; status == nil || status.DoneNodes != 1 {
				t.Errorf("status: %+v", status)
			}
			if pods := f.cluster().pods["n1"]; len(pods) != 1 {
				t.Errorf("%d pods are left", len(pods))
			}
		})
	}
}

// A node that is completed by force, before it is drained, is not drained: the maintenance says so, also at its
// end, and while the node comes back.
func TestSkippedNodeIsNotDrained(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	f.createRollout("m", atOnce(1))
	f.run(5 * time.Second)
	f.changeNamed("n1", setReady(false))
	f.setDone("m", "n1")
	f.run(10 * time.Second)
	check := func(when string) {
		t.Helper()
		m := f.maintenance("m")
		if status := m.Status.RolloutStatus; status == nil || status.SkippedNodes != 1 {
			t.Errorf("%s: unexpected status %+v", when, status)
		}
		if status.IsDrained(&m.Status) {
			t.Errorf("%s: drained, although pods run on n1: %+v", when, m.Status)
		}
	}
	check("it returns")
	f.changeNamed("n1", setReady(true))
	f.run(time.Minute)
	f.expectNode("given back", "n1", "m:done")
	check("given back")
	f.drainNodes()
	f.setDone("m", "n2")
	f.run(time.Minute)
	check("all are given back")
	m := f.maintenance("m")
	c := status.FindDrained(&m.Status)
	if c.Reason != coordinationv1alpha1.NodeMaintenanceReasonNodesSkipped || m.Status.DrainStatus.DrainedNodes != 1 || m.Status.DrainStatus.DrainMessage != status.MessageSkipped {
		t.Errorf("unexpected end: %+v, %+v", c, m.Status.DrainStatus)
	}
}
