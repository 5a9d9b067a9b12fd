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
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/kubernetes/test/utils/realcluster"
	"k8s.io/utils/ptr"
)

const (
	// Two nodes have a control plane each. Two others have the pods.
	firstPlane, secondPlane   = "node-0", "node-1"
	firstWorker, secondWorker = "node-2", "node-3"
)

// rolloutTest is a cluster whose control plane is replaced.
type rolloutTest struct {
	programs
	real *realcluster.Cluster
	// base and fork are the releases, off the fork with its gates off.
	base, off, fork realcluster.StaticRelease

	api      *apiClients
	evictor  *evictor
	drain    *interceptedDrain
	restarts []period
	// drainFailures are the runs of kubectl drain that have failed.
	drainFailures []call
}

// period is a time in which something happened.
type period struct {
	what     string
	from, to time.Time
}

// TestRollout replaces the images of a control plane, kubeadm's way: two nodes with static pods,
// of the pristine base first. All the time, clients read and write, and pods are evicted; a drain
// is under way each time. docs/install.md describes the order.
func TestRollout(t *testing.T) { testRollout(ktesting.Init(t)) }
func testRollout(tCtx ktesting.TContext) {
	tCtx, r := newRolloutTest(tCtx)
	for _, step := range []struct {
		what string
		run  func(tCtx ktesting.TContext) string
	}{
		{"The base runs on both nodes. Start clients, and evictions that never end.", r.startLoads},
		{"Roll our images out, gates off, node by node, while kubectl drain of the base drains a node.", r.rollOutOff},
		{"Enable the gates, in the API servers first.", r.enableGates},
		{"Start a NodeMaintenance; its pods wait for an interceptor, which completes for two.", r.startDrain},
		{"Roll back to the base in the middle of the drain: controller managers, API servers, schedulers.", r.rollBack},
		{"The base serves neither kind, and evicts nothing for them.", r.useBase},
		{"Roll out again, gates on: API servers, controller managers, schedulers.", r.rollOutOn},
		{"The drain continues, and ends.", r.finishDrain},
		{"Nothing was lost, and nothing was evicted twice or out of turn.", r.expectEvidence},
	} {
		tCtx.Log(step.what)
		start := time.Now()
		observed := step.run(tCtx)
		tCtx.Logf("  -> %s (%.0f s)", observed, time.Since(start).Seconds())
		if tCtx.Failed() {
			return
		}
	}
}

func newRolloutTest(tCtx ktesting.TContext) (ktesting.TContext, *rolloutTest) {
	tCtx.Helper()
	p := findPrograms(tCtx)
	r := &rolloutTest{programs: p}
	plane := &realcluster.StaticControlPlane{Nodes: 2}
	for release, target := range map[string]*realcluster.StaticRelease{"base": &r.base, "fork": &r.off} {
		dir := filepath.Join(p.output, "rollout", release)
		tag, err := os.ReadFile(filepath.Join(dir, "tag"))
		tCtx.ExpectNoError(err, "reading the images of \"make test-rollout\"")
		archives, err := filepath.Glob(filepath.Join(dir, "images", "docker", "*", "*.tar"))
		tCtx.ExpectNoError(err)
		*target = realcluster.StaticRelease{Repository: "localhost/" + release, Tag: strings.TrimSpace(string(tag))}
		plane.Archives = append(plane.Archives, archives...)
	}
	plane.Release = r.base
	r.fork = r.off
	r.fork.Gates, r.fork.RuntimeConfig = localcluster.DefaultSettings.Gates, localcluster.DefaultSettings.RuntimeConfig
	kubelets := map[string]realcluster.Kubelet{}
	for _, node := range []string{firstPlane, secondPlane, firstWorker, secondWorker} {
		kubelets[node] = realcluster.Kubelet{Bin: p.base}
	}
	local := &localcluster.Cluster{Name: "test-rollout", Output: p.output, Bin: p.fork, Nodes: len(kubelets), Timeout: pollTimeout}
	r.real = &realcluster.Cluster{Local: local, Kubelets: kubelets, StaticControlPlane: plane}
	tCtx.ExpectNoError(r.real.Down(tCtx), "removing an earlier cluster")
	tCtx.CleanupCtx(func(tCtx ktesting.TContext) {
		if tCtx.Failed() {
			logs := filepath.Join(p.output, "test", local.Name+"-logs")
			tCtx.AssertNoError(local.KeepLogs(logs))
			tCtx.Logf("Logs are in %s.", logs)
		}
		tCtx.AssertNoError(r.real.Down(tCtx), "removing the cluster")
	})
	tCtx.ExpectNoError(r.real.Ensure(tCtx))
	config, err := local.Config()
	tCtx.ExpectNoError(err)
	config.QPS = -1
	return tCtx.WithRESTConfig(config).WithNamespace("rollout").WithValue(endedKey{}, r.real.Ended), r
}

func (r *rolloutTest) startLoads(tCtx ktesting.TContext) string {
	createNamespace(tCtx)
	for _, node := range []string{firstPlane, secondPlane} {
		setTaint(tCtx, node)
	}
	r.expectEntrypoints(tCtx)
	r.evictor = startEvictor(tCtx)
	r.api = startAPIClients(tCtx)
	return "two API servers serve " + r.expectVersion(tCtx, firstPlane, r.base)
}

// setTaint keeps pods away that are not static.
func setTaint(tCtx ktesting.TContext, node string) {
	tCtx.Helper()
	await(tCtx, "the taint of "+node, func(tCtx ktesting.TContext) {
		n := getNode(tCtx, node)
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: v1.TaintEffectNoSchedule})
		_, err := tCtx.Client().CoreV1().Nodes().Update(tCtx, n, metav1.UpdateOptions{})
		tCtx.ExpectNoError(err)
	})
}

// expectEntrypoints runs our images as a pod does that has arguments only, and as a user without
// rights: by their entrypoint, which runs the program.
func (r *rolloutTest) expectEntrypoints(tCtx ktesting.TContext) {
	tCtx.Helper()
	for _, component := range realcluster.StaticComponents {
		pod := create(tCtx, tCtx.Client().CoreV1().Pods(tCtx.Namespace()), &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: component},
			Spec: v1.PodSpec{
				NodeName: firstPlane, RestartPolicy: v1.RestartPolicyNever,
				SecurityContext: &v1.PodSecurityContext{RunAsUser: ptr.To[int64](65532)},
				Containers: []v1.Container{{
					Name: "main", Image: r.off.Repository + "/" + component + ":" + r.off.Tag, ImagePullPolicy: v1.PullNever,
					Args: []string{component, "--version"},
				}},
			},
		})
		await(tCtx, "the end of "+component, func(tCtx ktesting.TContext) {
			if pod = getPod(tCtx, pod); pod.Status.Phase != v1.PodSucceeded {
				tCtx.Fatalf("status %+v", pod.Status)
			}
		})
		log, err := tCtx.Client().CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &v1.PodLogOptions{}).DoRaw(tCtx)
		tCtx.ExpectNoError(err)
		// The entrypoint says first what it runs. Both write at the same time.
		lines := strings.Split(strings.ReplaceAll(string(log), "+", "_"), "\n")
		if !slices.Contains(lines, "Kubernetes "+r.off.Tag) || !strings.Contains(string(log), "Running command") {
			tCtx.Errorf("%s --version prints %q, its image is %s", component, log, r.off.Tag)
		}
	}
}

// replace gives nodes a component of another release, one by one, and waits until each is ready.
func (r *rolloutTest) replace(tCtx ktesting.TContext, component string, release realcluster.StaticRelease, nodes ...string) {
	tCtx.Helper()
	for _, node := range nodes {
		restart := period{what: fmt.Sprintf("%s of %s becomes %s:%s", component, node, release.Repository, release.Tag), from: time.Now()}
		before := r.mirrorPod(tCtx, component, node)
		tCtx.ExpectNoError(r.real.ReplaceComponent(node, component, release))
		await(tCtx, restart.what, func(tCtx ktesting.TContext) {
			pod := r.mirrorPod(tCtx, component, node)
			if pod.UID == before.UID || !podutil.IsPodReady(pod) {
				tCtx.Fatalf("the pod %s has the image %s, status %+v", pod.UID, pod.Spec.Containers[0].Image, pod.Status)
			}
		})
		if component == controlplane.APIServer {
			r.expectVersion(tCtx, node, release)
		}
		restart.to = time.Now()
		tCtx.Logf("%s, %.1f s", restart.what, restart.to.Sub(restart.from).Seconds())
		if component == controlplane.APIServer {
			r.restarts = append(r.restarts, restart)
		}
	}
}

func (r *rolloutTest) mirrorPod(tCtx ktesting.TContext, component, node string) *v1.Pod {
	tCtx.Helper()
	pod, err := tCtx.Client().CoreV1().Pods(metav1.NamespaceSystem).Get(tCtx, component+"-"+node, metav1.GetOptions{})
	tCtx.ExpectNoError(err)
	return pod
}

// expectVersion waits until the API server of a node is that of a release, and ready. It returns
// its version.
func (r *rolloutTest) expectVersion(tCtx ktesting.TContext, node string, release realcluster.StaticRelease) string {
	tCtx.Helper()
	client := r.clientOf(tCtx, node)
	var version string
	await(tCtx, "the API server of "+node, func(tCtx ktesting.TContext) {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(tCtx)
		tCtx.ExpectNoError(err)
		info, err := client.Discovery().ServerVersion()
		tCtx.ExpectNoError(err)
		if version = info.GitVersion; strings.ReplaceAll(version, "+", "_") != release.Tag {
			tCtx.Fatalf("it is %s, not %s", version, release.Tag)
		}
	})
	return version
}

func (r *rolloutTest) rollOutOff(tCtx ktesting.TContext) string {
	slow := newServer()
	slow.Name, slow.Labels = "slow", map[string]string{appLabel: "slow"}
	slow.Spec.Affinity = preferNode(secondWorker, firstWorker)
	// The drain lasts longer than the rollout of a node.
	slow.Spec.Containers[0].ReadinessProbe.InitialDelaySeconds = 8
	create(tCtx, tCtx.Client().AppsV1().Deployments(tCtx.Namespace()), newDeployment(slow, 8))
	awaitFacts(tCtx, realPodsOn("slow", secondWorker, 8))
	createBudget(tCtx, "slow", "maxUnavailable: 1", 8)
	drained := make(chan []call, 1)
	go func() { drained <- r.drainByKubectl(tCtx, secondWorker) }()
	for _, node := range []string{firstPlane, secondPlane} {
		for _, component := range realcluster.StaticComponents {
			r.replace(tCtx, component, r.off, node)
		}
	}
	failed := <-drained
	if len(failed) >= maxDrains {
		tCtx.Fatalf("kubectl drain has failed %d times: %v", len(failed), failed)
	}
	r.drainFailures = failed
	tCtx.ExpectNoError(exec.CommandContext(tCtx, filepath.Join(r.programs.base, "kubectl"), "--kubeconfig", r.real.Local.Kubeconfig(), "uncordon", secondWorker).Run())
	expectServed(tCtx, false)
	return fmt.Sprintf("kubectl drain has evicted all 8 pods, and was run %d times; neither kind is served", len(failed)+1)
}

// maxDrains is how often kubectl drain is run. It gives up at the first call that fails, and an API
// server that ends fails the evictions that it processes: they read budgets by a connection to
// itself.
const maxDrains = 5

// drainByKubectl drains a node with the kubectl of the base, again when it has failed.
func (r *rolloutTest) drainByKubectl(tCtx ktesting.TContext, node string) (failed []call) {
	for len(failed) < maxDrains && tCtx.Err() == nil {
		output, err := exec.CommandContext(tCtx, filepath.Join(r.programs.base, "kubectl"), "--kubeconfig", r.real.Local.Kubeconfig(),
			"drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=5m").CombinedOutput()
		if err == nil {
			break
		}
		failed = append(failed, call{"kubectl drain", time.Now(), fmt.Errorf("%w:\n%s", err, output)})
	}
	return failed
}

func (r *rolloutTest) enableGates(tCtx ktesting.TContext) string {
	r.replace(tCtx, controlplane.APIServer, r.fork, firstPlane)
	// As docs/upgrade.md says of several kube-apiservers, one without the gate.
	r.expectServedBy(tCtx, firstPlane, true)
	r.expectServedBy(tCtx, secondPlane, false)
	r.replace(tCtx, controlplane.APIServer, r.fork, secondPlane)
	r.replace(tCtx, controlplane.ControllerManager, r.fork, firstPlane, secondPlane)
	r.replace(tCtx, controlplane.Scheduler, r.fork, firstPlane, secondPlane)
	expectServed(tCtx, true)
	return "both API servers serve both kinds"
}

// expectServedBy checks whether the API server of a node serves EvictionRequests.
func (r *rolloutTest) expectServedBy(tCtx ktesting.TContext, node string, want bool) {
	tCtx.Helper()
	_, err := r.clientOf(tCtx, node).CoordinationV1alpha1().EvictionRequests(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
	if want {
		tCtx.AssertNoError(err)
	} else if !apierrors.IsNotFound(err) {
		tCtx.Errorf("the API server of %s answers %v, not that it does not know EvictionRequests", node, err)
	}
}

func (r *rolloutTest) startDrain(tCtx ktesting.TContext) string {
	r.drain = startInterceptedDrain(tCtx)
	r.drain.complete(tCtx, 2)
	return "two pods have left, the interceptor is active for the others"
}

func (r *rolloutTest) rollBack(tCtx ktesting.TContext) string {
	for _, component := range []string{controlplane.ControllerManager, controlplane.APIServer, controlplane.Scheduler} {
		r.replace(tCtx, component, r.base, firstPlane, secondPlane)
	}
	expectServed(tCtx, false)
	return "both nodes run the base"
}

func (r *rolloutTest) useBase(tCtx ktesting.TContext) string {
	accepted := r.evictor.count()
	await(tCtx, "evictions through the base", func(tCtx ktesting.TContext) {
		if now := r.evictor.count(); now < accepted+3 {
			tCtx.Fatalf("%d evictions, %d before", now, accepted)
		}
	})
	for _, pod := range r.drain.left(tCtx) {
		expectStays(tCtx, pod, 0)
	}
	if !getNode(tCtx, firstWorker).Spec.Unschedulable {
		tCtx.Error("the node in maintenance was uncordoned by the rollback")
	}
	return fmt.Sprintf("%d pods of the drain are still there, the node is still cordoned", len(r.drain.left(tCtx)))
}

func (r *rolloutTest) rollOutOn(tCtx ktesting.TContext) string {
	for _, component := range realcluster.StaticComponents {
		r.replace(tCtx, component, r.fork, firstPlane, secondPlane)
	}
	expectServed(tCtx, true)
	return "both nodes run the fork again"
}

func (r *rolloutTest) finishDrain(tCtx ktesting.TContext) string {
	r.drain.expectSame(tCtx)
	r.drain.complete(tCtx, len(r.drain.pods))
	maintenances := tCtx.Client().CoordinationV1alpha1().NodeMaintenances()
	await(tCtx, "the end of the drain", func(tCtx ktesting.TContext) {
		nm, err := maintenances.Get(tCtx, firstWorker, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		if !slices.ContainsFunc(nm.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == string(coordinationv1alpha1.NodeMaintenanceConditionDrained) && c.Status == metav1.ConditionTrue
		}) {
			tCtx.Fatalf("status %+v", nm.Status)
		}
	})
	tCtx.ExpectNoError(maintenances.Delete(tCtx, firstWorker, metav1.DeleteOptions{}))
	await(tCtx, "the release of the node", func(tCtx ktesting.TContext) {
		if getNode(tCtx, firstWorker).Spec.Unschedulable {
			tCtx.Fatal("it is cordoned")
		}
	})
	return "all pods have left, and the node takes pods again"
}
