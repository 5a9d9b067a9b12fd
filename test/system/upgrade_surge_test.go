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
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/controller/deployment"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/test/utils/availability"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/utils/ptr"
)

// unprotected is a Deployment without a budget: without a surge its pod is evicted.
const unprotected = "unprotected"

// fleet are the Deployments whose surge is interrupted. They have budgets that allow no disruption,
// so that their pods can only leave with a surge.
var fleet = []struct {
	name string
	// count and maxSurge are of the Deployment; requested is the number of its pods whose eviction
	// is requested.
	count, maxSurge, requested int
	// surging is its state while its surge pods are not ready, downgraded its state once no
	// controller supports surges.
	surging, downgraded replicas
}{
	{"single", 1, 1, 1, replicas{2, 2, 1}, replicas{1, 1, 1}},
	{"trio", 3, 2, 2, replicas{5, 5, 3}, replicas{3, 3, 3}},
	{"paused", 1, 1, 1, replicas{2, 2, 1}, replicas{1, 1, 1}},
	// In a rollout, which continues with either controller manager.
	{"rolling", 2, 1, 1, replicas{3, 3, 2}, replicas{3, 3, 2}},
	// Its surge pod is ready; the pod whose eviction is requested keeps terminating.
	{"hanging", 1, 1, 1, replicas{1, 1, 1}, replicas{1, 1, 1}},
	// Under the base, it is scaled to the number of replicas in its annotation.
	{"regrown", 1, 1, 1, replicas{2, 2, 1}, replicas{1, 1, 1}},
	// The same, while no controller manager runs: the base has nothing to do.
	{"grown", 1, 1, 1, replicas{2, 2, 1}, replicas{2, 2, 1}},
}

// replicas is the state of a Deployment.
type replicas struct {
	// wanted is the sum of spec.replicas of its ReplicaSets.
	wanted int
	// living are the pods that do not terminate; serving those of them that are ready.
	living, serving int
}

func (r replicas) String() string {
	return fmt.Sprintf("%d wanted, %d living, %d serving", r.wanted, r.living, r.serving)
}

// bounds are the least number of serving pods, and the highest number of pods of an app.
type bounds struct{ least, most int }

// guard watches pods, and fails the test if an app is outside its bounds at any time.
type guard struct {
	bounds   map[string]bounds
	recorder *availability.Recorder
	from     time.Time
}

// start starts to watch. The API server must run until stop.
func (g *guard) start(tCtx ktesting.TContext) {
	tCtx.Helper()
	var err error
	g.recorder, err = availability.Start(tCtx, tCtx.Client(), tCtx.Namespace())
	tCtx.ExpectNoError(err, "watching the pods")
	g.from = time.Now()
}

// stop fails if an app was outside its bounds since start.
func (g *guard) stop(tCtx ktesting.TContext) {
	tCtx.Helper()
	record, err := g.recorder.Stop(tCtx)
	tCtx.ExpectNoError(err, "watching the pods")
	to := time.Now()
	for name, want := range g.bounds {
		app := record.Apps[name]
		if app == nil {
			app = &availability.App{}
		}
		for _, interval := range app.Ready.Below(want.least, g.from, to) {
			tCtx.Errorf("Deployment %s had fewer than %d serving pods for %s, from %s", name, want.least, interval.Length(), interval.From.Format(time.StampMilli))
		}
		if most := app.Active.Max(g.from, to); most > want.most {
			tCtx.Errorf("Deployment %s had %d pods, must have %d at most", name, most, want.most)
		}
	}
	if tCtx.Failed() {
		tCtx.FailNow()
	}
}

// check fails if an app was outside its bounds until now, and continues to watch.
func (g *guard) check(tCtx ktesting.TContext) {
	tCtx.Helper()
	before := *g
	g.start(tCtx) // Before the other one stops: no change is missed.
	before.stop(tCtx)
}

// require sets the bounds of an app from now on. They must be met now.
func (g *guard) require(tCtx ktesting.TContext, app string, want bounds) {
	tCtx.Helper()
	g.check(tCtx)
	g.bounds[app] = want
}

// release lets an app have any number of pods from now on.
func (g *guard) release(tCtx ktesting.TContext, app string) {
	tCtx.Helper()
	g.check(tCtx)
	delete(g.bounds, app)
}

// newSurgingDeployment returns a Deployment that never goes below its replicas.
func newSurgingDeployment(name string, count, maxSurge int) *appsv1.Deployment {
	d := newDeployment(newPod(name), int32(count))
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt(maxSurge)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}
	return d
}

// createDeployment creates a Deployment and waits until all of its pods serve. From then on they
// must serve, and there must not be more pods than its strategy allows.
func (t *upgradeTest) createDeployment(tCtx ktesting.TContext, d *appsv1.Deployment) {
	tCtx.Helper()
	create(tCtx, tCtx.Client().AppsV1().Deployments(tCtx.Namespace()), d)
	count := int(*d.Spec.Replicas)
	t.awaitServing(tCtx, d.Name, bounds{count, count + d.Spec.Strategy.RollingUpdate.MaxSurge.IntValue()})
}

// awaitServing makes the pods of a Deployment ready until want.least of them serve, and there are
// no others. From then on the bounds apply.
func (t *upgradeTest) awaitServing(tCtx ktesting.TContext, name string, want bounds) {
	tCtx.Helper()
	awaitReplicas(tCtx, name, replicas{want.least, want.least, want.least}, makePodsReady)
	t.guard.require(tCtx, name, want)
}

// awaitReplicas waits until a Deployment has the wanted state. It calls kubelets with every poll.
func awaitReplicas(tCtx ktesting.TContext, name string, want replicas, kubelets ...func(ktesting.TContext, string)) {
	tCtx.Helper()
	await(tCtx, fmt.Sprintf("Deployment %s to have %s", name, want), func(tCtx ktesting.TContext) {
		for _, work := range kubelets {
			work(tCtx, name)
		}
		var got replicas
		for _, set := range replicaSetsOf(tCtx, name) {
			got.wanted += int(*set.Spec.Replicas)
		}
		for _, pod := range podsOf(tCtx, name) {
			if pod.DeletionTimestamp == nil {
				got.living++
			}
			if serves(&pod) {
				got.serving++
			}
		}
		if got != want {
			tCtx.Fatalf("it has %s", got)
		}
	})
}

// makePodsReady makes the starting pods of a workload ready, as a kubelet does.
func makePodsReady(tCtx ktesting.TContext, name string) {
	for _, pod := range podsOf(tCtx, name) {
		if pod.DeletionTimestamp == nil && !serves(&pod) {
			makeReady(tCtx, &pod)
		}
	}
}

func replicaSetsOf(tCtx ktesting.TContext, name string) []appsv1.ReplicaSet {
	tCtx.Helper()
	list, err := tCtx.Client().AppsV1().ReplicaSets(tCtx.Namespace()).List(tCtx, metav1.ListOptions{LabelSelector: appLabel + "=" + name})
	tCtx.ExpectNoError(err, "listing the ReplicaSets of %s", name)
	return list.Items
}

// podsOf returns the pods of a workload, sorted by name.
func podsOf(tCtx ktesting.TContext, name string) []v1.Pod {
	tCtx.Helper()
	list, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).List(tCtx, metav1.ListOptions{LabelSelector: appLabel + "=" + name})
	tCtx.ExpectNoError(err, "listing the pods of %s", name)
	slices.SortFunc(list.Items, func(a, b v1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

func patchDeployment(tCtx ktesting.TContext, name, patch string) {
	tCtx.Helper()
	_, err := tCtx.Client().AppsV1().Deployments(tCtx.Namespace()).Patch(tCtx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	tCtx.ExpectNoError(err, "patching Deployment %s with %s", name, patch)
}

// createOldWorkloads creates the workloads that exist before the first upgrade.
func (t *upgradeTest) createOldWorkloads(tCtx ktesting.TContext) string {
	for _, name := range []string{"before", "older"} {
		t.createDeployment(tCtx, newSurgingDeployment(name, 1, 1))
	}
	t.guard.release(tCtx, "older") // Its pod has no interceptor: there will be a gap.
	createAgent(tCtx)
	t.remember(tCtx, "before", "agent")
	return "two Deployments and a DaemonSet have their pods."
}

// createAgent creates a DaemonSet with one pod, on a node of its own. There is no scheduler; the
// pod stays Pending.
func createAgent(tCtx ktesting.TContext) {
	tCtx.Helper()
	labels := map[string]string{"of": "agent"}
	create(tCtx, tCtx.Client().CoreV1().Nodes(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "floor", Labels: labels}})
	pod := newPod("agent")
	pod.Spec.NodeName, pod.Spec.NodeSelector = "", labels
	pod.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}} // The node is not ready.
	sets := tCtx.Client().AppsV1().DaemonSets(tCtx.Namespace())
	create(tCtx, sets, newDaemonSet(pod))
	await(tCtx, "the pod of the DaemonSet", func(tCtx ktesting.TContext) {
		set, err := sets.Get(tCtx, "agent", metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		if set.Status.CurrentNumberScheduled != 1 || set.Status.ObservedGeneration != set.Generation {
			tCtx.Fatalf("its status is %+v", set.Status)
		}
	})
}

// remember makes later steps fail if these workloads have changed.
func (t *upgradeTest) remember(tCtx ktesting.TContext, names ...string) {
	tCtx.Helper()
	for _, name := range names {
		t.untouched[name] = revisions(tCtx, name)
	}
}

// expectUntouched checks workloads that must not change. It comes after a step that has waited for
// the controllers.
func (t *upgradeTest) expectUntouched(tCtx ktesting.TContext) string {
	for name, want := range t.untouched {
		if got := revisions(tCtx, name); !slices.Equal(got, want) {
			tCtx.Fatalf("workload %s had\n%q\nand has\n%q", name, want, got)
		}
	}
	return fmt.Sprintf("%s: no rollout, no new revision, the same hashes and pods.", strings.Join(slices.Sorted(maps.Keys(t.untouched)), ", "))
}

// revisions returns a line for each object that a rollout of a Deployment or DaemonSet would
// change or add: ReplicaSets and ControllerRevisions with their revision and the hash of the
// template, and pods.
func revisions(tCtx ktesting.TContext, name string) []string {
	tCtx.Helper()
	var lines []string
	for _, set := range replicaSetsOf(tCtx, name) {
		lines = append(lines, fmt.Sprintf("ReplicaSet %s %s: generation %d, revision %s, hash %s", set.Name, set.UID, set.Generation,
			set.Annotations[deploymentutil.RevisionAnnotation], set.Labels[appsv1.DefaultDeploymentUniqueLabelKey]))
	}
	history, err := tCtx.Client().AppsV1().ControllerRevisions(tCtx.Namespace()).List(tCtx, metav1.ListOptions{LabelSelector: appLabel + "=" + name})
	tCtx.ExpectNoError(err, "listing the ControllerRevisions of %s", name)
	for _, revision := range history.Items {
		lines = append(lines, fmt.Sprintf("ControllerRevision %s %s: revision %d", revision.Name, revision.UID, revision.Revision))
	}
	for _, pod := range podsOf(tCtx, name) {
		lines = append(lines, fmt.Sprintf("Pod %s %s: hash %s%s", pod.Name, pod.UID,
			pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey], pod.Labels[appsv1.ControllerRevisionHashLabelKey]))
	}
	return lines
}

// evictOldWorkload evicts a pod without interceptors. Its successor lists the controllers.
func (t *upgradeTest) evictOldWorkload(tCtx ktesting.TContext) string {
	old := podsOf(tCtx, "older")[0]
	if names := old.Spec.EvictionInterceptors; names != nil {
		tCtx.Fatalf("pod %s has evictionInterceptors %v, must have none", old.Name, names)
	}
	observed := evict(tCtx, &old)
	awaitReplicas(tCtx, "older", replicas{1, 1, 1}, makePodsReady)
	want := []v1.EvictionInterceptor{{Name: coordinationv1alpha1.EvictionInterceptorDeployment}, {Name: coordinationv1alpha1.EvictionInterceptorReplicaSet}}
	if got := podsOf(tCtx, "older")[0].Spec.EvictionInterceptors; !slices.Equal(got, want) {
		tCtx.Fatalf("the successor has evictionInterceptors %v, must be %v", got, want)
	}
	return observed + " Its successor lists the controllers."
}

// createFleet creates Deployments, and waits until they surge.
func (t *upgradeTest) createFleet(tCtx ktesting.TContext) string {
	for _, member := range fleet {
		d := newSurgingDeployment(member.name, member.count, member.maxSurge)
		if member.name == "hanging" {
			d.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](3600)
		}
		t.createRequested(tCtx, d, member.requested)
		createBudget(tCtx, member.name, "maxUnavailable: 0", member.count)
	}
	t.createRequested(tCtx, newSurgingDeployment(unprotected, 1, 1), 1)
	awaitReplicas(tCtx, unprotected, replicas{2, 2, 1})
	// These are changed only after their surge has started.
	for _, member := range fleet {
		if slices.Contains([]string{"paused", "rolling", "hanging"}, member.name) {
			awaitReplicas(tCtx, member.name, replicas{member.count + 1, member.count + 1, member.count})
		}
	}
	awaitReplicas(tCtx, "hanging", replicas{1, 1, 1}, makePodsReady)
	// Its pods are created and deleted by two ReplicaSets, neither of which waits for the other.
	t.guard.require(tCtx, "rolling", bounds{2, math.MaxInt})
	patchDeployment(tCtx, "paused", `{"spec":{"paused":true}}`)
	patchDeployment(tCtx, "rolling", `{"spec":{"template":{"metadata":{"annotations":{"revision":"2"}}}}}`)
	return t.expectSurging(tCtx)
}

// createRequested creates a Deployment and requests the eviction of count of its pods.
func (t *upgradeTest) createRequested(tCtx ktesting.TContext, d *appsv1.Deployment, count int) {
	tCtx.Helper()
	t.createDeployment(tCtx, d)
	for _, pod := range podsOf(tCtx, d.Name)[:count] {
		requestEviction(tCtx, &pod)
		t.requested[d.Name] = append(t.requested[d.Name], &pod)
	}
}

// expectSurging waits until all Deployments of the fleet surge.
func (t *upgradeTest) expectSurging(tCtx ktesting.TContext) string {
	// The Deployment had the same number of pods before the rollout.
	await(tCtx, "the second ReplicaSet of Deployment rolling", func(tCtx ktesting.TContext) {
		if count := len(replicaSetsOf(tCtx, "rolling")); count != 2 {
			tCtx.Fatalf("it has %d", count)
		}
	})
	wanted := 0
	for _, member := range fleet {
		awaitReplicas(tCtx, member.name, member.surging)
		wanted += member.surging.wanted
	}
	awaitCondition(tCtx, "single", true)
	if hanging := getPod(tCtx, t.requested["hanging"][0]); hanging.DeletionTimestamp == nil {
		tCtx.Fatalf("pod %s does not terminate", hanging.Name)
	}
	t.guard.check(tCtx)
	return fmt.Sprintf("%d Deployments want %d pods together.", len(fleet), wanted)
}

// awaitCondition waits until a Deployment has the condition of a surge, or no longer has it.
func awaitCondition(tCtx ktesting.TContext, name string, want bool) {
	tCtx.Helper()
	await(tCtx, fmt.Sprintf("condition %s of Deployment %s: %t", deployment.DeploymentEvictionInProgress, name, want), func(tCtx ktesting.TContext) {
		d, err := tCtx.Client().AppsV1().Deployments(tCtx.Namespace()).Get(tCtx, name, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		if condition := deploymentutil.GetDeploymentCondition(d.Status, deployment.DeploymentEvictionInProgress); (condition != nil) != want {
			tCtx.Fatalf("it is %v", condition)
		}
	})
}

// switchGatesOff restarts the controller manager without the gates of the workloads.
func (t *upgradeTest) switchGatesOff(tCtx ktesting.TContext) string {
	release := t.fork
	release.FeatureGates = gatesOfDrains
	t.guard.release(tCtx, unprotected)
	restartControllerManager(tCtx, t.plane, release)
	for _, member := range fleet {
		want := member.downgraded
		if member.name == "grown" { // It is not scaled yet.
			want = replicas{1, 1, 1}
		}
		awaitReplicas(tCtx, member.name, want)
		awaitCondition(tCtx, member.name, false)
	}
	observed := t.expectDeclined(tCtx)
	t.guard.check(tCtx)
	return "every Deployment has as many pods as it wants, and has no condition of a surge; those that served still do. " + observed
}

// expectDeclined checks an eviction that continues without a surge, because no budget forbids it.
func (t *upgradeTest) expectDeclined(tCtx ktesting.TContext) string {
	tCtx.Helper()
	pod := t.requested[unprotected][0]
	observed := awaitEvicted(tCtx, pod)
	message := interceptorStatus(getRequest(tCtx, pod), coordinationv1alpha1.EvictionInterceptorDeployment).Message
	if !strings.Contains(message, "DeploymentPodSurge") {
		tCtx.Fatalf("the message of the Deployment controller for pod %s is %q, must name its gate", pod.Name, message)
	}
	awaitReplicas(tCtx, unprotected, replicas{1, 1, 1}, makePodsReady)
	return fmt.Sprintf("%s %q", observed, message)
}

// switchGatesOn restarts the controller manager with all gates.
func (t *upgradeTest) switchGatesOn(tCtx ktesting.TContext) string {
	restartControllerManager(tCtx, t.plane, t.fork)
	return "the surges begin again: " + t.expectSurging(tCtx)
}

// changeUnobserved makes changes while no controller runs: evictions are canceled, and a Deployment
// is scaled to the replicas that it had in its surge.
func (t *upgradeTest) changeUnobserved(tCtx ktesting.TContext) {
	tCtx.Helper()
	for _, name := range []string{"regrown", "grown"} {
		for _, pod := range t.requested[name] {
			deleteRequest(tCtx, pod)
		}
		delete(t.requested, name)
	}
	patchDeployment(tCtx, "grown", `{"spec":{"replicas":2}}`)
}

// expectFleetUnderBase checks the Deployments that surge under the base, which has no surges.
func (t *upgradeTest) expectFleetUnderBase(tCtx ktesting.TContext) string {
	for _, member := range fleet {
		awaitReplicas(tCtx, member.name, member.downgraded)
	}
	patchDeployment(tCtx, "regrown", `{"spec":{"replicas":2}}`)
	for _, name := range []string{"rolling", "regrown", "grown"} {
		t.awaitServing(tCtx, name, bounds{2, 3})
	}
	// Their annotations have no effect.
	t.remember(tCtx, "regrown", "grown")
	return "every Deployment has as many pods as it wants; those that served still do. " +
		"The rollout ends; two Deployments are scaled to the replicas in their annotation."
}

// finishDrains makes pods ready, so that the drains that the rollback has interrupted end.
func (t *upgradeTest) finishDrains(tCtx ktesting.TContext) string {
	hanging := t.requested["hanging"][0]
	err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).Delete(tCtx, hanging.Name, *metav1.NewDeleteOptions(0))
	tCtx.ExpectNoError(err, "ending pod %s", hanging.Name)
	count := 0
	for _, member := range fleet {
		for _, pod := range t.requested[member.name] {
			await(tCtx, "the end of the request for pod "+pod.Name, func(tCtx ktesting.TContext) {
				makePodsReady(tCtx, member.name)
				if request := getRequest(tCtx, pod); !isEvicted.reached(request) {
					tCtx.Fatalf("its status is %+v", request.Status)
				}
			})
			count++
		}
	}
	t.guard.check(tCtx)
	return fmt.Sprintf("%d requests have Evicted=True, and at all times as many pods have served as are wanted.", count)
}

// expectNothingLeft checks that the surges leave nothing behind.
func (t *upgradeTest) expectNothingLeft(tCtx ktesting.TContext) string {
	for _, member := range fleet {
		d, err := tCtx.Client().AppsV1().Deployments(tCtx.Namespace()).Get(tCtx, member.name, metav1.GetOptions{})
		tCtx.ExpectNoError(err, "reading Deployment %s", member.name)
		count := int(*d.Spec.Replicas)
		awaitReplicas(tCtx, member.name, replicas{count, count, count})
		await(tCtx, "the annotation of Deployment "+member.name+" to be removed", func(tCtx ktesting.TContext) {
			for _, set := range replicaSetsOf(tCtx, member.name) {
				if value, found := set.Annotations[deploymentutil.EvictionSurgeAnnotation]; found {
					tCtx.Fatalf("ReplicaSet %s has %s", set.Name, value)
				}
			}
		})
		awaitCondition(tCtx, member.name, false)
	}
	t.guard.check(tCtx)
	return "every Deployment has its replicas; no annotation and no condition is left."
}
