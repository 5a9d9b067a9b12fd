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
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
)

const (
	// quietPeriod is the time for which a pod that must stay is watched. The fork would evict it
	// within a fraction of this when its budget is deleted.
	quietPeriod = 5 * time.Second

	// attemptsMetric counts the attempts of the built-in interceptor.
	attemptsMetric = "evictionrequest_controller_imperative_evictions_total"

	// rack is the name of a node and of its maintenance.
	rack = "rack"

	// doomed is the name of a namespace that is deleted under the base, and of a pod in it.
	doomed = "doomed"
)

// upgradeTest is the state that the steps share.
type upgradeTest struct {
	plane      *controlplane.ControlPlane
	base, fork controlplane.Release

	// pods are the pods that later steps use, by name.
	pods map[string]*v1.Pod
	// requested are the pods of each Deployment whose eviction was requested.
	requested map[string][]*v1.Pod
	// untouched are workloads that must not change, as revisions returned them.
	untouched map[string][]string
	// guard watches the Deployments.
	guard guard
	// activation is the activation time of the interceptor that stays active through the rollback.
	activation metav1.Time
}

// TestUpgrade runs the test of KEP-4563's section "Were upgrade and rollback tested?": the pristine
// base and the fork run alternately on one etcd. kube-apiserver is upgraded first and downgraded
// last. The test adds pods with interceptors, a NodeMaintenance, and Deployments that surge. Each
// step logs what it observed.
func TestUpgrade(t *testing.T) { testUpgrade(ktesting.Init(t)) }
func testUpgrade(tCtx ktesting.TContext) {
	p := findPrograms(tCtx)
	tCtx, plane := newControlPlane(tCtx, p, "upgrade")
	t := newUpgradeTest(plane, controlplane.Release{Name: "the pristine base", Bin: p.base},
		controlplane.Release{Name: "the fork", Bin: p.fork, FeatureGates: gatesOfWorkloads, RuntimeConfig: runtimeConfig})
	runSteps(tCtx, t.steps())
	t.guard.stop(tCtx)
	tCtx.Log("Upgrade, rollback and upgrade again: all as expected.")
}

func newUpgradeTest(plane *controlplane.ControlPlane, base, fork controlplane.Release) *upgradeTest {
	return &upgradeTest{
		plane: plane, base: base, fork: fork,
		pods: map[string]*v1.Pod{}, requested: map[string][]*v1.Pod{}, untouched: map[string][]string{},
		guard: guard{bounds: map[string]bounds{}},
	}
}

// step is a step of the KEP, by its number there, or, with a letter, an additional step that
// belongs to it.
type step struct {
	number, what string
	// run returns what was observed.
	run func(tCtx ktesting.TContext) string
}

// runSteps logs what each step observes.
func runSteps(tCtx ktesting.TContext, steps []step) {
	for _, step := range steps {
		tCtx.Logf("%-3s %s", step.number, step.what)
		observed := step.run(tCtx.WithStep("step " + step.number))
		tCtx.Logf("  -> %s", observed)
	}
}

func (t *upgradeTest) steps() []step {
	return []step{
		{"1", "Create a cluster with the base.", t.createCluster},
		{"1a", "Create Deployments and a DaemonSet.", t.createOldWorkloads},
		{"2", "Upgrade to the fork.", t.upgrade},
		{"2a", "The pod from before is unchanged.", t.expectOldPodUntouched},
		{"3", "Create EvictionRequest A and pod A: the pod is evicted, the request ends with Evicted=True.", t.evictA},
		{"3a", "Request the eviction of the pod from before the upgrade.", t.evictOldPod},
		{"3b", "Request the eviction of a pod of a Deployment from before the upgrade.", t.evictOldWorkload},
		{"4", "Create EvictionRequest B, pod B and a budget with maxUnavailable=0: the metric rises, the message explains, the pod stays.", t.blockB},
		{"4a", "Create pods with an interceptor, which starts with one of them.", t.createInterceptedPods},
		{"4b", "Create a namespace with a pod and its EvictionRequest.", t.createDoomed},
		{"4c", "Drain a node by a NodeMaintenance; its pod waits for an interceptor.", t.startMaintenance},
		{"4d", "Create Deployments and request the eviction of some of their pods: they surge, and do not finish.", t.createFleet},
		{"4e", "The Deployment and the DaemonSet from before are unchanged.", t.expectUntouched},
		{"4f", "Switch the gates of the workloads off in kube-controller-manager: the surges are reverted.", t.switchGatesOff},
		{"4g", "The Deployment and the DaemonSet from before are unchanged.", t.expectUntouched},
		{"4h", "Switch the gates on again.", t.switchGatesOn},
		{"5", "Downgrade to the base.", t.downgrade},
		{"5a", "Read, write and evict pods with an interceptor.", t.usePodsUnderBase},
		{"5b", "Use the node that is being drained, and uncordon it.", t.useNodeUnderBase},
		{"5c", "The Deployments that surge return to their replicas.", t.expectFleetUnderBase},
		{"5d", "The Deployment and the DaemonSet from before are unchanged.", t.expectUntouched},
		{"6", "Delete the budget of pod B: the pod keeps running.", t.releaseBUnderBase},
		{"6a", "Delete the namespace from step 4b: the base does not know that it has a request.", t.deleteDoomed},
		{"7", "Upgrade to the fork again.", t.upgrade},
		{"8", "EvictionRequest B evicts pod B and ends with Evicted=True.", t.expectBEvicted},
		{"8a", "Pods with an interceptor have lost the field where the base wrote the pod, and only there.", t.expectFields},
		{"8b", "The interceptor that was active before continues, within its old deadline, although its pod has lost the field.", t.finishWalk},
		{"8c", "Request the eviction of the pods that kept and lost the field.", t.requestKeptAndLost},
		{"8d", "The request whose namespace is gone is finished: since 1.37, what is left there can be updated.", t.expectOrphanFinished},
		{"8e", "The maintenance of the node continues: it is cordoned again.", t.expectDraining},
		{"8f", "Delete the maintenance in the middle of the drain.", t.finishMaintenance},
		{"8g", "The drains of the Deployments continue, where they were not canceled.", t.finishDrains},
		{"8h", "Nothing is left of the surges of the Deployments.", t.expectNothingLeft},
		{"8i", "The Deployment and the DaemonSet from before, and the Deployments with a stale annotation, are unchanged.", t.expectUntouched},
	}
}

func (t *upgradeTest) createCluster(tCtx ktesting.TContext) string {
	start(tCtx, t.plane, t.base)
	createNamespace(tCtx)
	t.guard.start(tCtx)
	expectServed(tCtx, false)
	// The fork's client sends the field; the base does not know it.
	pod := t.createPod(tCtx, "old", interceptor)
	if pod.Spec.EvictionInterceptors != nil {
		tCtx.Fatalf("the base has stored evictionInterceptors %v of pod %s: is it a pristine build?", pod.Spec.EvictionInterceptors, pod.Name)
	}
	return "EvictionRequests are not served; a pod is Running and Ready."
}

// createPod creates a pod that later steps use.
func (t *upgradeTest) createPod(tCtx ktesting.TContext, name string, interceptors ...string) *v1.Pod {
	tCtx.Helper()
	t.pods[name] = createReadyPod(tCtx, newPod(name, interceptors...))
	return t.pods[name]
}

// upgrade replaces the API server first, so that the new controller manager finds the API that it
// needs.
func (t *upgradeTest) upgrade(tCtx ktesting.TContext) string {
	t.guard.stop(tCtx)
	tCtx.ExpectNoError(t.plane.StopAPIServer())
	tCtx.ExpectNoError(t.plane.StartAPIServer(tCtx, t.fork))
	t.guard.start(tCtx)
	expectServed(tCtx, true)
	restartControllerManager(tCtx, t.plane, t.fork)
	return "kube-apiserver, then kube-controller-manager are the fork's; EvictionRequests are served."
}

// downgrade replaces the API server last. Objects change while no controller manager runs.
func (t *upgradeTest) downgrade(tCtx ktesting.TContext) string {
	tCtx.ExpectNoError(t.plane.StopControllerManager())
	t.changeUnobserved(tCtx)
	t.guard.stop(tCtx)
	tCtx.ExpectNoError(t.plane.StopAPIServer())
	tCtx.ExpectNoError(t.plane.StartAPIServer(tCtx, t.base))
	t.guard.start(tCtx)
	tCtx.ExpectNoError(t.plane.StartControllerManager(tCtx, t.base))
	expectServed(tCtx, false)
	return "the base runs on the etcd with the fork's objects; EvictionRequests are not served."
}

func restartControllerManager(tCtx ktesting.TContext, plane *controlplane.ControlPlane, release controlplane.Release) {
	tCtx.Helper()
	tCtx.ExpectNoError(plane.StopControllerManager())
	tCtx.ExpectNoError(plane.StartControllerManager(tCtx, release))
}

// expectServed fails unless EvictionRequests are served or not served, as wanted.
func expectServed(tCtx ktesting.TContext, want bool) {
	tCtx.Helper()
	_, err := tCtx.Client().Discovery().ServerResourcesForGroupVersion(coordinationv1alpha1.SchemeGroupVersion.String())
	if !apierrors.IsNotFound(err) {
		tCtx.ExpectNoError(err, "discovering the API")
	}
	// The base serves the version with its own alpha kinds only if that is enabled.
	if served := err == nil; served != want {
		tCtx.Fatalf("%s is served: %t, must be %t", coordinationv1alpha1.SchemeGroupVersion, served, want)
	}
}

func (t *upgradeTest) expectOldPodUntouched(tCtx ktesting.TContext) string {
	before := t.pods["old"]
	if now := getPod(tCtx, before); now.ResourceVersion != before.ResourceVersion {
		tCtx.Fatalf("pod %s had resourceVersion %s and has %s", now.Name, before.ResourceVersion, now.ResourceVersion)
	}
	return "pod, UID and resourceVersion are the same."
}

func (t *upgradeTest) evictA(tCtx ktesting.TContext) string {
	return evict(tCtx, t.createPod(tCtx, "a"))
}

func (t *upgradeTest) evictOldPod(tCtx ktesting.TContext) string { return evict(tCtx, t.pods["old"]) }

// evict requests the eviction of a pod that nothing blocks, and waits for it.
func evict(tCtx ktesting.TContext, pod *v1.Pod) string {
	tCtx.Helper()
	requestEviction(tCtx, pod)
	return awaitEvicted(tCtx, pod)
}

func (t *upgradeTest) blockB(tCtx ktesting.TContext) string {
	before := t.evictionAttempts(tCtx)
	pod := t.createPod(tCtx, "b")
	createBudget(tCtx, pod.Name, "maxUnavailable: 0", 1)
	requestEviction(tCtx, pod)
	request := awaitRequest(tCtx, pod, isBlocked)
	message := interceptorStatus(request, coordinationv1alpha1.EvictionInterceptorImperative).Message
	const want = "Eviction refused (attempt 1)"
	if !strings.HasPrefix(message, want) || !strings.Contains(message, "PodDisruptionBudget "+pod.Name) {
		tCtx.Fatalf("the message of the request is %q, must begin with %q and name the budget %s", message, want, pod.Name)
	}
	after := t.evictionAttempts(tCtx)
	if after <= before {
		tCtx.Fatalf("metric %s was %v before the attempt and is %v after it", attemptsMetric, before, after)
	}
	expectStays(tCtx, pod, 0)
	return fmt.Sprintf("%s rose from %v to %v; pod b runs; %q.", attemptsMetric, before, after, message)
}

// evictionAttempts returns the sum of the metric over all labels. A metric with labels appears with
// its first count.
func (t *upgradeTest) evictionAttempts(tCtx ktesting.TContext) float64 {
	tCtx.Helper()
	text, err := t.plane.Metrics(tCtx)
	tCtx.ExpectNoError(err, "reading the metrics")
	metrics := testutil.NewMetrics()
	tCtx.ExpectNoError(testutil.ParseMetrics(text, &metrics), "parsing the metrics")
	sum := 0.0
	for _, sample := range metrics[attemptsMetric] {
		sum += float64(sample.Value)
	}
	return sum
}

// createInterceptedPods creates pods for different uses in the next steps, and starts the eviction
// of one of them.
func (t *upgradeTest) createInterceptedPods(tCtx ktesting.TContext) string {
	for _, name := range []string{"walker", "kept", "written", "evicted"} {
		t.createPod(tCtx, name, interceptor)
	}
	requestEviction(tCtx, t.pods["walker"])
	request := awaitRequest(tCtx, t.pods["walker"], isActive)
	t.activation = *request.Status.ActivationTime
	tCtx.ExpectNoError(report(tCtx, request, false))
	return fmt.Sprintf("%s is active for pod walker since %s, and has reported.", interceptor, t.activation.UTC().Format(time.TimeOnly))
}

func (t *upgradeTest) usePodsUnderBase(tCtx ktesting.TContext) string {
	pods := tCtx.Client().CoreV1().Pods(tCtx.Namespace())
	for _, name := range []string{"walker", "kept", "written"} {
		if pod := getPod(tCtx, t.pods[name]); pod.Spec.EvictionInterceptors != nil {
			tCtx.Fatalf("the base shows evictionInterceptors %v of pod %s", pod.Spec.EvictionInterceptors, name)
		}
	}
	for _, name := range []string{"walker", "written"} {
		_, err := pods.Patch(tCtx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"written-by":"base"}}}`), metav1.PatchOptions{})
		tCtx.ExpectNoError(err, "labeling pod %s", name)
	}
	tCtx.ExpectNoError(pods.EvictV1(tCtx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "evicted"}}), "evicting a pod")
	awaitNotFound(tCtx, "the evicted pod", "evicted", pods)
	return "the base shows the pods without the field, takes labels for two of them, and evicts one."
}

func (t *upgradeTest) releaseBUnderBase(tCtx ktesting.TContext) string {
	if err := createRequest(tCtx, t.pods["kept"]); !apierrors.IsNotFound(err) {
		tCtx.Fatalf("creating an EvictionRequest under the base: %v, must be not found", err)
	}
	deleteBudget(tCtx, "b")
	expectStays(tCtx, t.pods["b"], quietPeriod)
	return fmt.Sprintf("pod b runs for %s; new EvictionRequests are answered with not found.", quietPeriod)
}

func (t *upgradeTest) expectBEvicted(tCtx ktesting.TContext) string {
	return awaitEvicted(tCtx, t.pods["b"])
}

// expectFields checks which pods have kept the field: when the base writes a pod, it drops fields
// that it does not know, as every API server does with fields of a later release.
func (t *upgradeTest) expectFields(tCtx ktesting.TContext) string {
	named := []v1.EvictionInterceptor{{Name: interceptor}}
	for name, want := range map[string][]v1.EvictionInterceptor{"kept": named, "written": nil, "walker": nil} {
		if got := getPod(tCtx, t.pods[name]).Spec.EvictionInterceptors; !slices.Equal(got, want) {
			tCtx.Fatalf("pod %s has evictionInterceptors %v, must be %v", name, got, want)
		}
	}
	return "kept by the pod that the base only read, lost by the two that it labeled."
}

func (t *upgradeTest) finishWalk(tCtx ktesting.TContext) string {
	walker := t.pods["walker"]
	request := awaitRequest(tCtx, walker, isActive)
	if got := request.Status.ActivationTime; !got.Equal(&t.activation) {
		tCtx.Fatalf("it became active at %v before the rollback and at %v after it: its deadline has moved", t.activation, got)
	}
	expectStays(tCtx, walker, 0)
	tCtx.ExpectNoError(report(tCtx, request, true))
	return "it is active since the same time; it completes; " + awaitEvicted(tCtx, walker)
}

func (t *upgradeTest) requestKeptAndLost(tCtx ktesting.TContext) string {
	kept := t.pods["kept"]
	requestEviction(tCtx, kept)
	tCtx.ExpectNoError(report(tCtx, awaitRequest(tCtx, kept, isActive), false))
	tCtx.ExpectNoError(report(tCtx, getRequest(tCtx, kept), true))
	return fmt.Sprintf("with the field: intercepted, then %s Without: %s", awaitEvicted(tCtx, kept), evict(tCtx, t.pods["written"]))
}

func (t *upgradeTest) createDoomed(tCtx ktesting.TContext) string {
	tCtx = tCtx.WithNamespace(doomed)
	createNamespace(tCtx)
	requestEviction(tCtx, t.createPod(tCtx, doomed, interceptor))
	awaitRequest(tCtx, t.pods[doomed], isActive)
	return interceptor + " is active for the pod."
}

func (t *upgradeTest) deleteDoomed(tCtx ktesting.TContext) string {
	namespaces := tCtx.Client().CoreV1().Namespaces()
	tCtx.ExpectNoError(namespaces.Delete(tCtx, doomed, metav1.DeleteOptions{}), "deleting the namespace")
	awaitNotFound(tCtx, "the namespace", doomed, namespaces)
	return "the namespace is gone with its pod; the request is left in etcd, unseen."
}

func (t *upgradeTest) expectOrphanFinished(tCtx ktesting.TContext) string {
	return awaitEvicted(tCtx.WithNamespace(doomed), t.pods[doomed])
}

// startMaintenance starts a drain that does not finish: its pod waits for an interceptor.
func (t *upgradeTest) startMaintenance(tCtx ktesting.TContext) string {
	create(tCtx, tCtx.Client().CoreV1().Nodes(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: rack}})
	pod := newPod("racked", interceptor)
	pod.Spec.NodeName = rack
	t.pods["racked"] = createReadyPod(tCtx, pod)
	create(tCtx, tCtx.Client().CoordinationV1alpha1().NodeMaintenances(), newMaintenance(rack, v1.NodeSelectorTerm{
		MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{rack}}},
	}))
	return t.expectDraining(tCtx)
}

// expectDraining waits until the node and its pod are under maintenance.
func (t *upgradeTest) expectDraining(tCtx ktesting.TContext) string {
	await(tCtx, "the node to be drained", func(tCtx ktesting.TContext) {
		node := getRack(tCtx)
		status := node.Status.MaintenanceStatus
		if !node.Spec.Unschedulable || status == nil || len(status.DrainTargets) == 0 || status.ActiveEvictionRequests != 1 {
			tCtx.Fatalf("it has unschedulable %t and maintenance status %+v", node.Spec.Unschedulable, status)
		}
	})
	awaitRequest(tCtx, t.pods["racked"], isActive)
	return "the node is unschedulable, its status has drain targets, the eviction of its pod is requested."
}

func getRack(tCtx ktesting.TContext) *v1.Node {
	tCtx.Helper()
	node, err := tCtx.Client().CoreV1().Nodes().Get(tCtx, rack, metav1.GetOptions{})
	tCtx.ExpectNoError(err, "reading the node")
	return node
}

// expectRack fails unless the node is cordoned or not, as wanted, and has no maintenance status.
func expectRack(tCtx ktesting.TContext, unschedulable bool) {
	tCtx.Helper()
	if node := getRack(tCtx); node.Spec.Unschedulable != unschedulable || node.Status.MaintenanceStatus != nil {
		tCtx.Fatalf("the node has unschedulable %t and maintenance status %v, must be %t and none", node.Spec.Unschedulable, node.Status.MaintenanceStatus, unschedulable)
	}
}

// useNodeUnderBase uncordons the node: the base knows of no maintenance.
func (t *upgradeTest) useNodeUnderBase(tCtx ktesting.TContext) string {
	if _, err := tCtx.Client().CoordinationV1alpha1().NodeMaintenances().List(tCtx, metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		tCtx.Fatalf("listing NodeMaintenances under the base: %v, must be not found", err)
	}
	expectRack(tCtx, true)
	uncordon := []byte(`{"spec":{"unschedulable":null},"metadata":{"labels":{"written-by":"base"}}}`)
	_, err := tCtx.Client().CoreV1().Nodes().Patch(tCtx, rack, types.MergePatchType, uncordon, metav1.PatchOptions{})
	tCtx.ExpectNoError(err, "uncordoning the node")
	return "the node was still unschedulable, and takes an uncordon and a label; its maintenance is not served."
}

// finishMaintenance deletes the maintenance, which uncordons the node and cancels the eviction.
func (t *upgradeTest) finishMaintenance(tCtx ktesting.TContext) string {
	maintenances := tCtx.Client().CoordinationV1alpha1().NodeMaintenances()
	tCtx.ExpectNoError(maintenances.Delete(tCtx, rack, metav1.DeleteOptions{}), "deleting the maintenance")
	awaitNotFound(tCtx, "the maintenance", rack, maintenances)
	expectRack(tCtx, false)
	awaitRequest(tCtx, t.pods["racked"], isCanceled)
	expectStays(tCtx, t.pods["racked"], 0)
	return "the node is schedulable, the request for its pod canceled, the maintenance gone."
}
