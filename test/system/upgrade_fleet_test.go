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

package system

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/utils/ptr"
)

const (
	// desk is the name of a node, of its maintenance without a rollout, and of their budget.
	desk = "desk"

	// lone is the name of a node and of its maintenance, which is deleted after the rollback.
	lone = "lone"
)

// TestFleetUpgrade switches the gate NodeMaintenanceBudgets, and changes the release, in the middle
// of a rollout on one etcd. At no time may more nodes be maintained than the rollout and the budget
// allow.
func TestFleetUpgrade(t *testing.T) { testFleetUpgrade(ktesting.Init(t)) }
func testFleetUpgrade(tCtx ktesting.TContext) {
	p := findPrograms(tCtx)
	tCtx, plane := newControlPlane(tCtx, p, "rollout")
	// No controller would remove the taint with which nodes are created.
	args := []string{"--disable-admission-plugins=TaintNodesByCondition"}
	u := &fleetUpgrade{plane: plane, limits: fleetLimits{concurrent: 2, unavailable: 3, domains: 1}, cordonedByHand: sets.New[int]()}
	u.base = controlplane.Release{Name: "the pristine base", Bin: p.base, APIServerArgs: args}
	u.off = controlplane.Release{Name: "the fork with the gate off", Bin: p.fork, FeatureGates: gatesOfDrains, RuntimeConfig: runtimeConfig, APIServerArgs: args}
	u.on = u.off
	u.on.Name, u.on.FeatureGates = "the fork", gatesOfDrains+",NodeMaintenanceBudgets=true"
	runSteps(tCtx, u.steps())
	tCtx.Logf("At most %d nodes were in progress at a time, and %d cordoned.", u.most.concurrent, u.most.unavailable)
}

func (u *fleetUpgrade) steps() []step {
	return []step{
		{"1", "Begin a rollout over 12 nodes in 3 zones; two nodes are being drained, and wait for budgets of their pods.", u.begin},
		{"2", "Switch the gate off in kube-controller-manager only: no node begins, one that has begun is finished.", u.switchControllerOff},
		{"3", "Switch the gate off in kube-apiserver, too: nothing is lost, the other node is finished.", u.switchServerOff},
		{"4", "Switch the gate on in kube-controller-manager only: no node begins.", u.switchControllerOn},
		{"5", "Switch it on in kube-apiserver: the rollout is still paused, the budget frozen; then it goes on, and escalates.", u.switchServerOn},
		{"6", "Switch it off and on in kube-apiserver, under a kube-controller-manager that runs: it waits, and goes on.", u.toggleServer},
		{"7", "Let kube-controller-manager use two kube-apiservers, one of them with the gate off: the rollout goes on.", u.useTwoServers},
		{"8", "Pause the rollout while three nodes are drained, and roll back to the base.", u.rollBack},
		{"9", "Use the nodes under the base.", u.useNodesUnderBase},
		{"10", "Upgrade again: the rollout is paused, with the nodes that the base did not write.", u.upgradeAgain},
		{"10a", "Delete a maintenance whose node the base has written: the node stays cordoned until someone uncordons it.", u.deleteLone},
		{"11", "Resume the rollout, until all nodes are given back.", u.finish},
	}
}

func (u *fleetUpgrade) begin(tCtx ktesting.TContext) string {
	start(tCtx, u.plane, u.on)
	return u.populate(tCtx)
}

// populate creates the nodes and the rollout.
func (u *fleetUpgrade) populate(tCtx ktesting.TContext) string {
	createNamespace(tCtx)
	for i := range poolNodes {
		u.createNode(tCtx, poolNode(i), fmt.Sprintf("zone-%c", 'a'+i%poolZones), true)
	}
	for _, i := range []int{0, 3, 6} {
		createBudget(tCtx, appOf(poolNode(i)), "maxUnavailable: 0", 1)
	}
	u.createLimits(tCtx, fleetBudget, fleetSelector(), 3, &coordinationv1alpha1.NodeMaintenanceTopology{Key: v1.LabelTopologyZone, MaxDomains: 1})
	m := newRollout(fleetName, fleetSelector())
	m.Spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{{
		Action: coordinationv1alpha1.NodeMaintenancePodSkip, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{stayingLabel: ""}},
	}}
	m.Spec.DrainedWhen = &coordinationv1alpha1.NodeMaintenanceDrainedWhen{Volumes: coordinationv1alpha1.NodeMaintenanceVolumesDetached, TimeoutSeconds: ptr.To[int32](3)}
	m.Spec.Escalation = []coordinationv1alpha1.NodeMaintenanceEscalationStep{{AfterSeconds: 3600, Action: v1.MaintenanceEscalationIgnoreBudgets}}
	u.maintenance = create(tCtx, tCtx.Client().CoordinationV1alpha1().NodeMaintenances(), m)
	for _, i := range []int{0, 3} {
		awaitRequest(tCtx, u.pods[appOf(poolNode(i))], isBlocked)
	}
	u.expectProgress(tCtx, []int{0, 3}, nil)

	u.createNode(tCtx, desk, "", false)
	u.createLimits(tCtx, desk, nodeNamed(desk), 0, nil)
	create(tCtx, tCtx.Client().CoordinationV1alpha1().NodeMaintenances(), newMaintenance(desk, nodeNamed(desk).NodeSelectorTerms[0]))
	awaitWait(tCtx, desk, coordinationv1alpha1.NodeMaintenanceWaitFrozen, 1)
	return "two nodes of one zone are in progress; a maintenance without a rollout waits for a frozen budget."
}

func (u *fleetUpgrade) switchControllerOff(tCtx ktesting.TContext) string {
	restartControllerManager(tCtx, u.plane, u.off)
	awaitWait(tCtx, fleetName, coordinationv1alpha1.NodeMaintenanceWaitDisabled, poolNodes-2)
	u.patch(tCtx, `{"spec":{"escalation":[{"afterSeconds":1,"action":"IgnoreBudgets"}]}}`)
	u.freeze(tCtx, 0)
	deleteBudget(tCtx, appOf(poolNode(3)))
	u.giveBack(tCtx, 3)
	expectStays(tCtx, u.pods[appOf(poolNode(0))], quietPeriod)
	u.expectProgress(tCtx, []int{0}, []int{3})

	awaitNotFound(tCtx, "the pod", appOf(desk), tCtx.Client().CoreV1().Pods(tCtx.Namespace()))
	for _, object := range []deleter{tCtx.Client().CoordinationV1alpha1().NodeMaintenances(), tCtx.Client().CoordinationV1alpha1().NodeMaintenanceBudgets()} {
		tCtx.ExpectNoError(object.Delete(tCtx, desk, metav1.DeleteOptions{}))
	}
	awaitNotFound(tCtx, "the maintenance", desk, tCtx.Client().CoordinationV1alpha1().NodeMaintenances())
	return "10 nodes wait with the reason Disabled, no escalation acts, one node is given back; " +
		"the maintenance without a rollout was drained in spite of its budget, as documented."
}

func (u *fleetUpgrade) switchServerOff(tCtx ktesting.TContext) string {
	u.remember(tCtx)
	u.restartAPIServer(tCtx, u.off)
	u.expectBudgetsServed(tCtx, false)
	u.heartbeats(tCtx)
	u.expectSpec(tCtx)
	u.expectProgress(tCtx, []int{0}, []int{3})
	deleteBudget(tCtx, appOf(poolNode(0)))
	u.giveBack(tCtx, 0)
	u.expectNoneBegins(tCtx)
	u.expectProgress(tCtx, nil, []int{0, 3})
	return "the fields of the maintenance and the admissions of nodes are kept; the second node is given back."
}

func (u *fleetUpgrade) switchControllerOn(tCtx ktesting.TContext) string {
	restartControllerManager(tCtx, u.plane, u.on)
	u.patch(tCtx, `{"spec":{"rollout":{"paused":true}}}`)
	u.awaitObserved(tCtx)
	awaitWait(tCtx, fleetName, coordinationv1alpha1.NodeMaintenanceWaitDisabled, poolNodes-2)
	u.expectNoneBegins(tCtx)
	return "nothing begins, with the reason Disabled; the rollout can be paused."
}

func (u *fleetUpgrade) switchServerOn(tCtx ktesting.TContext) string {
	u.remember(tCtx)
	u.restartAPIServer(tCtx, u.on)
	u.expectBudgetsServed(tCtx, true)
	u.expectSpec(tCtx)
	u.expectNoneBegins(tCtx) // kube-controller-manager has to be restarted.
	restartControllerManager(tCtx, u.plane, u.on)
	awaitWait(tCtx, fleetName, coordinationv1alpha1.NodeMaintenanceWaitPaused, poolNodes-2)
	u.patch(tCtx, `{"spec":{"rollout":{"paused":false}}}`)
	awaitWait(tCtx, fleetName, coordinationv1alpha1.NodeMaintenanceWaitFrozen, poolNodes-2)
	u.expectNoneBegins(tCtx)
	u.freeze(tCtx, 3)
	u.giveBack(tCtx, 6, 9)
	u.awaitDrained(tCtx, 1, 4)
	u.expectProgress(tCtx, []int{1, 4}, []int{0, 3, 6, 9})
	return "it was paused, then frozen; then nodes were drained, one of them against the budget of its pod, and given back."
}

func (u *fleetUpgrade) toggleServer(tCtx ktesting.TContext) string {
	u.restartAPIServer(tCtx, u.off)
	u.giveBack(tCtx, 1)
	u.expectNoneBegins(tCtx)
	u.restartAPIServer(tCtx, u.on)
	u.awaitDrained(tCtx, 7)
	u.expectProgress(tCtx, []int{4, 7}, []int{0, 1, 3, 6, 9})
	return "a node was given back, and the next one begins only when the gate is on again."
}

func (u *fleetUpgrade) useTwoServers(tCtx ktesting.TContext) string {
	second, err := u.plane.Replica(tCtx.TempDir())
	tCtx.ExpectNoError(err)
	tCtx.Cleanup(second.Close)
	tCtx.ExpectNoError(second.StartAPIServer(tCtx, u.off))
	balancer := startBalancer(tCtx, u.plane.Config(), second.Config())
	balanced := u.on
	balanced.ControllerManagerArgs = []string{"--master=" + balancer.URL}
	restartControllerManager(tCtx, u.plane, balanced)
	// When the controller starts, it asks once whether budgets are served.
	u.patch(tCtx, `{"spec":{"rollout":{"returnTimeoutSeconds":1801}}}`)
	u.awaitObserved(tCtx)
	balancer.spread.Store(true)
	u.giveBack(tCtx, 4, 7, 10)
	u.awaitDrained(tCtx, 2, 5)
	u.expectProgress(tCtx, []int{2, 5}, []int{0, 1, 3, 4, 6, 7, 9, 10})
	u.awaitEvent(tCtx, "NodeAdmissionFailed")
	u.createThrough(tCtx, second)
	// It does not outlive its load balancer.
	restartControllerManager(tCtx, u.plane, u.on)
	tCtx.ExpectNoError(second.StopAPIServer())
	return fmt.Sprintf("three nodes were admitted, with %d of %d requests to the kube-apiserver without the gate; a maintenance that is created through it loses its rollout, with a warning.",
		balancer.second.Load(), balancer.requests.Load())
}

// createThrough creates a maintenance through an API server whose gate is off.
func (u *fleetUpgrade) createThrough(tCtx ktesting.TContext, second *controlplane.ControlPlane) {
	tCtx.Helper()
	var warnings bytes.Buffer
	config := rest.CopyConfig(second.Config())
	config.WarningHandler = rest.NewWarningWriter(&warnings, rest.WarningWriterOptions{})
	client, err := kubernetes.NewForConfig(config)
	tCtx.ExpectNoError(err)
	m := newRollout("dropped", nodeNamed(desk))
	m.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageIdle
	created := create(tCtx, client.CoordinationV1alpha1().NodeMaintenances(), m)
	if created.Spec.Rollout != nil || !strings.Contains(warnings.String(), "spec.rollout was dropped") {
		tCtx.Fatalf("the maintenance has the rollout %+v, and the warning is %q", created.Spec.Rollout, warnings.String())
	}
	tCtx.ExpectNoError(client.CoordinationV1alpha1().NodeMaintenances().Delete(tCtx, created.Name, metav1.DeleteOptions{}))
}

func (u *fleetUpgrade) rollBack(tCtx ktesting.TContext) string {
	u.limits.concurrent = 3
	u.patch(tCtx, `{"spec":{"rollout":{"maxConcurrent":3}}}`)
	u.awaitDrained(tCtx, 2, 5, 8)
	u.createNode(tCtx, lone, "", false)
	create(tCtx, tCtx.Client().CoordinationV1alpha1().NodeMaintenances(), newRollout(lone, nodeNamed(lone)))
	await(tCtx, "the drain of "+lone, func(tCtx ktesting.TContext) {
		if node := getNode(tCtx, lone); !node.Spec.Unschedulable || len(maintenance.Admissions(node)) != 1 {
			tCtx.Fatalf("unschedulable %t, maintenance status %+v", node.Spec.Unschedulable, node.Status.MaintenanceStatus)
		}
	})
	patchMaintenance(tCtx, lone, `{"spec":{"rollout":{"paused":true}}}`)
	u.patch(tCtx, `{"spec":{"rollout":{"paused":true}}}`)
	u.awaitObserved(tCtx)
	awaitWait(tCtx, fleetName, coordinationv1alpha1.NodeMaintenanceWaitPaused, 1)
	u.remember(tCtx)
	tCtx.ExpectNoError(u.plane.StopControllerManager())
	u.restartAPIServer(tCtx, u.base)
	tCtx.ExpectNoError(u.plane.StartControllerManager(tCtx, u.base))
	expectServed(tCtx, false)
	return "the base runs on the etcd with the fork's objects, and serves none of them."
}

func (u *fleetUpgrade) useNodesUnderBase(tCtx ktesting.TContext) string {
	for _, i := range []int{2, 5, 8} {
		if !getNode(tCtx, poolNode(i)).Spec.Unschedulable {
			tCtx.Fatalf("node %s is schedulable", poolNode(i))
		}
	}
	if !slices.ContainsFunc(getNode(tCtx, poolNode(11)).Spec.Taints, func(t v1.Taint) bool { return t.Key == coordinationv1alpha1.NodePlannedTaint }) {
		tCtx.Fatalf("node %s waits, and has no taint", poolNode(11))
	}
	for _, name := range []string{poolNode(0), poolNode(2), lone} {
		heartbeat(tCtx, name)
	}
	patchNode(tCtx, poolNode(1), fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, coordinationv1alpha1.NodeDoneAnnotation))
	patchNode(tCtx, poolNode(5), `{"spec":{"unschedulable":null}}`)
	for _, i := range []int{0, 1} {
		u.createPod(tCtx, newNodePod(returnedTo(poolNode(i)), poolNode(i)))
	}
	return "three nodes were still cordoned, and one that waits has its taint. One of them is uncordoned; statuses and annotations of nodes are written, also of nodes that were given back."
}

func (u *fleetUpgrade) upgradeAgain(tCtx ktesting.TContext) string {
	tCtx.ExpectNoError(u.plane.StopControllerManager())
	u.restartAPIServer(tCtx, u.on)
	u.expectSpec(tCtx)
	u.expectProgress(tCtx, []int{8}, []int{3, 4, 6, 7, 9, 10})
	tCtx.ExpectNoError(u.plane.StartControllerManager(tCtx, u.on))
	// The one with the annotation is done already.
	awaitWait(tCtx, fleetName, coordinationv1alpha1.NodeMaintenanceWaitPaused, 4)
	u.expectProgress(tCtx, []int{8}, []int{0, 3, 4, 6, 7, 9, 10})
	u.expectNoneBegins(tCtx)
	for i, unschedulable := range map[int]bool{2: true, 5: false, 8: true} {
		if got := getNode(tCtx, poolNode(i)).Spec.Unschedulable; got != unschedulable {
			tCtx.Fatalf("node %s is unschedulable: %t, must be %t", poolNode(i), got, unschedulable)
		}
	}
	// While they wait, nobody undoes what is done by hand.
	for i, unschedulable := range map[int]bool{2: false, 5: true} {
		patchNode(tCtx, poolNode(i), fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, unschedulable))
		u.expectNoneBegins(tCtx)
		if got := getNode(tCtx, poolNode(i)).Spec.Unschedulable; got != unschedulable {
			tCtx.Fatalf("node %s is unschedulable: %t, must be %t", poolNode(i), got, unschedulable)
		}
	}
	u.cordonedByHand.Insert(5)
	return "the spec is the same. Of the nodes that the base wrote, all wait again but the one with the annotation; the one that is still cordoned stays so until it is uncordoned, the one that was uncordoned, too."
}

func (u *fleetUpgrade) deleteLone(tCtx ktesting.TContext) string {
	awaitWait(tCtx, lone, coordinationv1alpha1.NodeMaintenanceWaitPaused, 1)
	maintenances := tCtx.Client().CoordinationV1alpha1().NodeMaintenances()
	tCtx.ExpectNoError(maintenances.Delete(tCtx, lone, metav1.DeleteOptions{}))
	awaitNotFound(tCtx, "the maintenance", lone, maintenances)
	if node := getNode(tCtx, lone); !node.Spec.Unschedulable {
		tCtx.Fatal("the node is schedulable: upgrade.md says that someone has to uncordon it")
	}
	patchNode(tCtx, lone, `{"spec":{"unschedulable":null}}`)
	u.expectNoneBegins(tCtx)
	if node := getNode(tCtx, lone); node.Spec.Unschedulable || len(node.Spec.Taints) > 0 {
		tCtx.Fatalf("the node is not given back: %+v", node.Spec)
	}
	return "it was still cordoned, and is schedulable after kubectl uncordon."
}

func (u *fleetUpgrade) finish(tCtx ktesting.TContext) string {
	u.patch(tCtx, `{"spec":{"rollout":{"paused":false}}}`)
	u.giveBack(tCtx, 0, 1, 2, 5, 8, 11)
	u.expectAllDone(tCtx)
	expectStays(tCtx, u.pods[returnedTo(poolNode(0))], 0)
	if _, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).Get(tCtx, returnedTo(poolNode(1)), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		tCtx.Fatalf("reading the pod of a node that was drained again: %v, must be not found", err)
	}
	patchNode(tCtx, poolNode(5), `{"spec":{"unschedulable":null}}`)
	u.cordonedByHand.Clear()
	u.complete(tCtx)
	return "all 12 nodes are given back, but for the cordon of one that was cordoned by hand; pods that a policy skips are still there. Of two nodes that were given back before the rollback, and that the base wrote, the one without the annotation was drained again."
}

// expectAllDone fails unless all nodes are given back, with the pods that a policy skips.
func (u *fleetUpgrade) expectAllDone(tCtx ktesting.TContext) {
	tCtx.Helper()
	all := make([]int, 0, poolNodes)
	for i := range poolNodes {
		all = append(all, i)
		getPod(tCtx, u.pods[stayingOn(poolNode(i))])
	}
	u.expectProgress(tCtx, nil, all)
}

// complete ends the maintenance, and waits until nothing is left of it.
func (u *fleetUpgrade) complete(tCtx ktesting.TContext) {
	tCtx.Helper()
	u.patch(tCtx, `{"spec":{"stage":"Complete"}}`)
	await(tCtx, "all nodes to be as before", func(tCtx ktesting.TContext) {
		for _, node := range u.nodes(tCtx) {
			if node.Spec.Unschedulable || len(node.Spec.Taints) > 0 || node.Status.MaintenanceStatus != nil {
				tCtx.Fatalf("node %s has %+v and the maintenance status %+v", node.Name, node.Spec, node.Status.MaintenanceStatus)
			}
		}
	})
}

// expectSpec fails if the maintenance or the budget has another spec than when it was remembered.
func (u *fleetUpgrade) expectSpec(tCtx ktesting.TContext) {
	tCtx.Helper()
	m := readMaintenance(tCtx, fleetName)
	if !apiequality.Semantic.DeepEqual(m.Spec, u.maintenance.Spec) || m.UID != u.maintenance.UID {
		tCtx.Fatalf("the maintenance had\n%+v\nand has\n%+v", u.maintenance.Spec, m.Spec)
	}
	b, err := tCtx.Client().CoordinationV1alpha1().NodeMaintenanceBudgets().Get(tCtx, fleetBudget, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !u.budgetsServed {
		return
	}
	tCtx.ExpectNoError(err)
	if !apiequality.Semantic.DeepEqual(b.Spec, u.budget.Spec) {
		tCtx.Fatalf("the budget had\n%+v\nand has\n%+v", u.budget.Spec, b.Spec)
	}
}

// createLimits creates a budget of nodes.
func (u *fleetUpgrade) createLimits(tCtx ktesting.TContext, name string, nodes *v1.NodeSelector, unavailable int, topology *coordinationv1alpha1.NodeMaintenanceTopology) {
	tCtx.Helper()
	create(tCtx, tCtx.Client().CoordinationV1alpha1().NodeMaintenanceBudgets(), &coordinationv1alpha1.NodeMaintenanceBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1alpha1.NodeMaintenanceBudgetSpec{
			NodeSelector: nodes, MaxUnavailable: ptr.To(intstr.FromInt(unavailable)), Topology: topology,
		},
	})
}
