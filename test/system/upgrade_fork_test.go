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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
)

const (
	// allGates are those of the control plane.
	allGates = gatesOfWorkloads + ",NodeMaintenanceBudgets=true,StatefulSetEvictionPacing=true,DownscalePodPicker=true,EvictionLane=true,EvictionRequestForEvictions=true"

	// The namespaces of the scenarios beside that of the requests and surges.
	rolloutNamespace = "rollout"
	pickerNamespace  = "pickers"

	// later is the name of a Deployment, of a node with its maintenance, and of a pod, that the fork
	// begins with before it is rolled back.
	later = "later"

	// pickerPods is how many pods the Deployments with pickers have at first. Each round removes one.
	pickerPods = 8
)

// forkUpgrade is the state that the steps share: the scenarios of the other upgrade tests, in one
// cluster.
type forkUpgrade struct {
	plane *controlplane.ControlPlane
	// second is another API server on the same etcd, for some of the time.
	second           *controlplane.ControlPlane
	secondRuns       bool
	predecessor, own controlplane.Release

	requests *upgradeTest
	fleet    *fleetUpgrade
	pickers  *pickerUpgrade

	// resources are those that the predecessor serves.
	resources []schema.GroupVersionResource
	// pickerPods is how many pods the Deployments with pickers have.
	pickerPods int
	// maintained are nodes whose maintenance is complete.
	maintained []string
}

// TestForkUpgrade upgrades a cluster from the fork on the base before, rolls back to it, and upgrades
// again, each time with both API servers on the etcd for a while. All gates are on, requests, drains,
// a rollout and surges are under way, and must go on in all releases. No stored field may be lost.
func TestForkUpgrade(t *testing.T) { testForkUpgrade(ktesting.Init(t)) }
func testForkUpgrade(tCtx ktesting.TContext) {
	p := findPrograms(tCtx)
	tCtx, plane := newControlPlane(tCtx, p, "fork")
	second, err := plane.Replica(tCtx.TempDir())
	tCtx.ExpectNoError(err)
	tCtx.Cleanup(second.Close)
	f := &forkUpgrade{plane: plane, second: second, pickerPods: pickerPods}
	f.pickers = &pickerUpgrade{plane: plane, picker: startPickerServer(tCtx)}
	f.own = controlplane.Release{
		Name: "the fork", Bin: p.fork, FeatureGates: allGates, RuntimeConfig: runtimeConfig,
		// No controller would remove the taint with which nodes are created.
		APIServerArgs:         []string{"--disable-admission-plugins=TaintNodesByCondition"},
		ControllerManagerArgs: []string{fmt.Sprintf("--downscale-pod-picker-allowed-cidrs=127.0.0.1/32:%d", f.pickers.picker.address().Port)},
	}
	f.predecessor = f.own
	f.predecessor.Name, f.predecessor.Bin = "the predecessor", p.predecessor
	f.requests = newUpgradeTest(plane, f.predecessor, f.own)
	f.fleet = &fleetUpgrade{plane: plane, limits: fleetLimits{concurrent: 2, unavailable: 3, domains: 1}, cordonedByHand: sets.New[int]()}
	runSteps(tCtx, f.steps())
	f.requests.guard.stop(tCtx)
	tCtx.Log("Upgrade from the predecessor, rollback and upgrade again: all as expected.")
}

func (f *forkUpgrade) steps() []step {
	return []step{
		{"1", "Create a cluster with the predecessor.", f.createCluster},
		{"1a", "Create Deployments and a DaemonSet.", f.requests.createOldWorkloads},
		{"1b", "Create EvictionRequests: one is finished, one canceled, one blocked, one in the turn of an interceptor.", f.createRequests},
		{"1c", "Drain a node, whose pod waits for an interceptor.", f.requests.startMaintenance},
		{"1d", "Drain another node, and complete its maintenance.", f.maintain("shelf-1")},
		{"1e", "Create Deployments that surge, and do not finish.", f.requests.createFleet},
		{"1f", "Begin a rollout over 12 nodes in 3 zones; one node is given back.", f.beginRollout},
		{"1g", "Create Deployments with pickers, which are asked.", f.createPickers},

		{"2", "Start a kube-apiserver of the fork beside that of the predecessor, and read and write all objects through both.", f.addServer(&f.own)},
		{"2a", "Let kube-controller-manager of the predecessor use both: all goes on.", f.useBoth("2", []int{0}, []int{9}, []int{6, 9})},
		{"3", "Leave only the kube-apiserver of the fork, with kube-controller-manager of the predecessor.", f.replaceServers(&f.own, &f.predecessor)},
		{"3a", "A new pod is evicted, and what was under way is as before.", f.evictNew("old-manager")},
		{"4", "Replace kube-controller-manager: all goes on.", f.replaceManager(&f.own)},
		{"4a", "All goes on.", f.goOn("4", []int{6, 9}, []int{1, 4}, []int{1, 4})},
		{"4b", "Begin what the predecessor has to go on with: a surge, a drain, the turn of an interceptor.", f.createLater},

		{"5", "Roll back: stop kube-controller-manager, start a kube-apiserver of the predecessor beside that of the fork, and read and write all objects through both.", f.addServer(&f.predecessor)},
		{"5a", "Let kube-controller-manager of the predecessor use both: all goes on.", f.useBoth("5", []int{1}, []int{7}, []int{4, 7})},
		{"6", "Leave only the predecessor.", f.replaceServers(&f.predecessor, &f.predecessor)},
		{"6a", "All goes on.", f.goOn("6", []int{4}, []int{10}, []int{7, 10})},
		{"6b", "The surge and the drain that the fork has begun end under the predecessor.", f.finishLater},

		{"7", "Upgrade kube-apiserver again, in one go.", f.replaceServers(&f.own, nil)},
		{"7a", "Let the kube-controller-managers elect a leader: that of the fork takes over from that of the predecessor.", f.electLeader},
		{"7b", "All goes on.", f.goOn("7", []int{7, 10}, []int{2, 5}, []int{2, 5})},

		{"8", "Delete the budget of a pod from before the upgrade.", f.finishBlocked},
		{"8a", "The interceptors that were active before complete, within their old deadlines.", f.finishWalks},
		{"8b", "The drain from before the upgrade is still under way.", f.requests.expectDraining},
		{"8c", "Delete its maintenance in the middle of the drain.", f.requests.finishMaintenance},
		{"8d", "The surges from before the upgrade end.", f.finishSurges},
		{"8e", "Nothing is left of the surges.", f.requests.expectNothingLeft},
		{"8f", "Finish the rollout.", f.finishRollout},
		{"8g", "Delete the completed maintenances.", f.deleteMaintenances},
		{"8h", "Requests that ended before the upgrade are as they were.", f.expectEnded},
		{"8i", "The Deployment and the DaemonSet from before are unchanged.", f.requests.expectUntouched},
	}
}

func (f *forkUpgrade) createCluster(tCtx ktesting.TContext) string {
	start(tCtx, f.plane, f.predecessor)
	createNamespace(tCtx)
	f.requests.guard.start(tCtx)
	expectServed(tCtx, true)
	f.resources = listedResources(tCtx)
	return fmt.Sprintf("it is %s, and serves %d resources.", serverVersion(tCtx), len(f.resources))
}

// serverVersion returns the version of the API server of a context.
func serverVersion(tCtx ktesting.TContext) *version.Info {
	tCtx.Helper()
	info, err := tCtx.Client().Discovery().ServerVersion()
	tCtx.ExpectNoError(err)
	return info
}

func (f *forkUpgrade) createRequests(tCtx ktesting.TContext) string {
	t := f.requests
	observed := []string{t.evictA(tCtx), t.blockB(tCtx), t.createInterceptedPods(tCtx)}
	canceled := t.createPod(tCtx, "canceled", interceptor)
	requestEviction(tCtx, canceled)
	awaitRequest(tCtx, canceled, isActive)
	withdrawRequest(tCtx, canceled)
	awaitRequest(tCtx, canceled, isCanceled)
	f.evictWaiting(tCtx)
	awaitRequest(tCtx, t.pods["evicted"], isActive)
	return strings.Join(append(observed, "the request for pod canceled is canceled. An eviction through the API waits for the interceptor of pod evicted."), " ")
}

// evictWaiting evicts a pod with an interceptor as evictors do, which try again for as long as they are
// told to wait.
func (f *forkUpgrade) evictWaiting(tCtx ktesting.TContext) {
	tCtx.Helper()
	pod := f.requests.pods["evicted"]
	err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).EvictV1(tCtx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{
		Name: pod.Name, Annotations: map[string]string{coordinationv1alpha1.EvictionRequestAtOnceAnnotation: "true"},
	}})
	if !apierrors.IsTooManyRequests(err) || !strings.HasPrefix(err.Error(), coordinationv1alpha1.EvictionInterceptedMessage) {
		tCtx.Fatalf("evicting pod %s: %v, must wait for its interceptor", pod.Name, err)
	}
	expectStays(tCtx, pod, 0)
}

// maintain returns a step that drains a node with a pod, and completes its maintenance.
func (f *forkUpgrade) maintain(name string) func(tCtx ktesting.TContext) string {
	return func(tCtx ktesting.TContext) string {
		f.drain(tCtx, name)
		patchMaintenance(tCtx, name, `{"spec":{"stage":"Complete"}}`)
		f.expectReleased(tCtx, name)
		f.maintained = append(f.maintained, name)
		return "node " + name + " was drained, and is schedulable again."
	}
}

// expectReleased waits until the maintenance of a node is complete.
func (f *forkUpgrade) expectReleased(tCtx ktesting.TContext, name string) {
	tCtx.Helper()
	await(tCtx, "the maintenance of "+name+" to be complete", func(tCtx ktesting.TContext) {
		m := readMaintenance(tCtx, name)
		if node := getNode(tCtx, name); node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil || len(m.Finalizers) > 0 {
			tCtx.Fatalf("unschedulable %t, maintenance status %+v, finalizers %q", node.Spec.Unschedulable, node.Status.MaintenanceStatus, m.Finalizers)
		}
	})
}

// createWithPod creates a node and a pod on it.
func createWithPod(tCtx ktesting.TContext, t *upgradeTest, name string, interceptors ...string) {
	tCtx.Helper()
	create(tCtx, tCtx.Client().CoreV1().Nodes(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	pod := newPod(name, interceptors...)
	pod.Spec.NodeName = name
	t.pods[name] = createReadyPod(tCtx, pod)
}

// drain drains a node with a pod until the pod is gone.
func (f *forkUpgrade) drain(tCtx ktesting.TContext, name string, interceptors ...string) {
	tCtx.Helper()
	createWithPod(tCtx, f.requests, name, interceptors...)
	create(tCtx, tCtx.Client().CoordinationV1alpha1().NodeMaintenances(), newMaintenance(name, nodeNamed(name).NodeSelectorTerms[0]))
	if len(interceptors) > 0 {
		awaitRequest(tCtx, f.requests.pods[name], isActive)
		return
	}
	f.awaitDrained(tCtx, name)
}

// useKubectl drains nodes with the kubectls of both releases through each API server, and completes
// their maintenances.
func (f *forkUpgrade) useKubectl(tCtx ktesting.TContext, round string) string {
	tCtx.Helper()
	var names []string
	for i, server := range f.servers(tCtx) {
		for _, release := range []controlplane.Release{f.predecessor, f.own} {
			name := fmt.Sprintf("kubectl-%s-%d", round, len(names))
			createWithPod(tCtx, f.requests, name)
			for _, command := range []struct{ args, want string }{
				{"start " + name + " --name=" + name + " --wait --timeout=1m", ""},
				{"status " + name, "Drained"},
				{"complete " + name + " --wait --timeout=1m", ""},
			} {
				printed, err := kubectlMaintenance(server, release, command.args)
				if err != nil || !strings.Contains(printed, command.want) {
					tCtx.Fatalf("kubectl of %s, API server %d: kubectl maintenance %s: %v, must print %q:\n%s", release.Name, i, command.args, err, command.want, printed)
				}
			}
			f.expectReleased(tCtx, name)
			f.maintained = append(f.maintained, name)
			names = append(names, name)
		}
	}
	return fmt.Sprintf("The kubectls of both releases have drained %d nodes.", len(names))
}

// kubectlMaintenance runs a command of the kubectl of a release against the API server of a context.
func kubectlMaintenance(server ktesting.TContext, release controlplane.Release, args string) (string, error) {
	config := server.RESTConfig()
	command := exec.CommandContext(server, filepath.Join(release.Bin, "kubectl"), append(strings.Fields("maintenance "+args),
		"--server="+config.Host, "--token="+config.BearerToken, "--certificate-authority="+config.CAFile)...)
	// The environment must not influence the command.
	command.Env = []string{"HOME=" + server.TempDir(), "KUBECONFIG=" + os.DevNull}
	printed, err := command.CombinedOutput()
	return string(printed), err
}

func (f *forkUpgrade) awaitDrained(tCtx ktesting.TContext, name string) {
	tCtx.Helper()
	await(tCtx, "node "+name+" to be drained", func(tCtx ktesting.TContext) {
		m := readMaintenance(tCtx, name)
		if !slices.ContainsFunc(m.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == string(coordinationv1alpha1.NodeMaintenanceConditionDrained) && c.Status == metav1.ConditionTrue
		}) {
			tCtx.Fatalf("its status is %+v", m.Status)
		}
	})
	awaitNotFound(tCtx, "the pod", name, tCtx.Client().CoreV1().Pods(tCtx.Namespace()))
}

func (f *forkUpgrade) beginRollout(tCtx ktesting.TContext) string {
	tCtx = tCtx.WithNamespace(rolloutNamespace)
	observed := f.fleet.populate(tCtx)
	f.fleet.remember(tCtx)
	deleteBudget(tCtx, appOf(poolNode(3)))
	f.fleet.giveBack(tCtx, 3)
	awaitRequest(tCtx, f.fleet.pods[appOf(poolNode(6))], isBlocked)
	f.fleet.expectProgress(tCtx, []int{0, 6}, []int{3})
	// Of its pods, the next ones wait for nothing.
	for _, i := range []int{0, 6} {
		deleteBudget(tCtx, appOf(poolNode(i)))
	}
	f.fleet.awaitDrained(tCtx, 0, 6)
	return observed
}

func (f *forkUpgrade) createPickers(tCtx ktesting.TContext) string {
	tCtx = tCtx.WithNamespace(pickerNamespace)
	createNamespace(tCtx)
	for _, name := range []string{pickerRead, pickerWritten} {
		create(tCtx, tCtx.Client().AppsV1().Deployments(tCtx.Namespace()), newDeployment(newPod(name), pickerPods))
		f.pickers.await(tCtx, name, pickerPods)
		f.pickers.setPicker(tCtx, name)
		f.pickers.expectPickers(tCtx, name, true)
	}
	return f.scale(tCtx)
}

// scale removes a pod of each Deployment with a picker.
func (f *forkUpgrade) scale(tCtx ktesting.TContext) string {
	tCtx = tCtx.WithNamespace(pickerNamespace)
	for _, name := range []string{pickerRead, pickerWritten} {
		f.pickers.expectPickers(tCtx, name, true)
		f.pickers.scale(tCtx, name, f.pickers.await(tCtx, name, f.pickerPods), f.pickerPods-1, true)
	}
	f.pickerPods--
	return fmt.Sprintf("pickers were asked, and chose the pods that were removed; %d are left.", f.pickerPods)
}

// through returns a context with clients of the second API server.
func (f *forkUpgrade) through(tCtx ktesting.TContext) ktesting.TContext {
	return tCtx.WithRESTConfig(f.second.Config())
}

// servers returns a context for each API server that runs.
func (f *forkUpgrade) servers(tCtx ktesting.TContext) []ktesting.TContext {
	if !f.secondRuns {
		return []ktesting.TContext{tCtx}
	}
	return []ktesting.TContext{tCtx, f.through(tCtx)}
}

// addServer returns a step that starts the second API server. No controller changes objects while
// they are compared.
func (f *forkUpgrade) addServer(release *controlplane.Release) func(tCtx ktesting.TContext) string {
	return func(tCtx ktesting.TContext) string {
		tCtx.ExpectNoError(f.plane.StopControllerManager())
		before := f.read(tCtx)
		tCtx.ExpectNoError(f.second.StartAPIServer(tCtx, *release))
		f.secondRuns = true
		other := f.through(tCtx)
		if minor := serverVersion(tCtx).Minor; minor == serverVersion(other).Minor {
			tCtx.Fatalf("both API servers have the minor version %s: is _output/predecessor the predecessor's?", minor)
		}
		compared := compareStored(tCtx, before, f.read(other))
		compareStored(tCtx, before, f.read(tCtx))
		fields := f.compareFilled(tCtx, other)
		written := f.rewrite(tCtx, tCtx, "first") + f.rewrite(tCtx, other, "second")
		return fmt.Sprintf("they are %s and %s; %s; both show all %d fields of the fork; %d objects were written, and nothing of them is lost.",
			serverVersion(tCtx), serverVersion(other), compared, fields, written)
	}
}

// useBoth returns a step with a load balancer between kube-controller-manager and both API servers.
// It is the predecessor's: it must not be newer than an API server that it uses. The load balancer
// ends with the step.
func (f *forkUpgrade) useBoth(round string, give, drained, working []int) func(tCtx ktesting.TContext) string {
	return func(tCtx ktesting.TContext) string {
		balancer := startBalancer(tCtx, f.plane.Config(), f.second.Config())
		defer balancer.CloseClientConnections()
		release := f.predecessor
		release.ControllerManagerArgs = slices.Concat(release.ControllerManagerArgs, []string{"--master=" + balancer.URL})
		balancer.spread.Store(true)
		tCtx.ExpectNoError(f.plane.StartControllerManager(tCtx, release))
		observed := f.goOn(round, give, drained, working)(tCtx)
		tCtx.ExpectNoError(f.plane.StopControllerManager())
		return fmt.Sprintf("%s %d of %d requests of kube-controller-manager were for the second server.", observed, balancer.second.Load(), balancer.requests.Load())
	}
}

// replaceServers returns a step that leaves one API server, and starts a controller manager if one
// is given. It must find all objects as they were.
func (f *forkUpgrade) replaceServers(server, manager *controlplane.Release) func(tCtx ktesting.TContext) string {
	return func(tCtx ktesting.TContext) string {
		if manager == nil {
			tCtx.ExpectNoError(f.plane.StopControllerManager())
		}
		before := f.read(tCtx)
		f.requests.guard.stop(tCtx)
		tCtx.ExpectNoError(f.plane.StopAPIServer())
		if f.secondRuns {
			tCtx.ExpectNoError(f.second.StopAPIServer())
			f.secondRuns = false
		}
		tCtx.ExpectNoError(f.plane.StartAPIServer(tCtx, *server))
		f.requests.guard.start(tCtx)
		compared := compareStored(tCtx, before, f.read(tCtx))
		if manager != nil {
			tCtx.ExpectNoError(f.plane.StartControllerManager(tCtx, *manager))
		}
		return fmt.Sprintf("it is %s; %s.", serverVersion(tCtx), compared)
	}
}

func (f *forkUpgrade) replaceManager(release *controlplane.Release) func(tCtx ktesting.TContext) string {
	return func(tCtx ktesting.TContext) string {
		restartControllerManager(tCtx, f.plane, *release)
		return "it is that of " + release.Name + "."
	}
}

// goOn returns a step in which all that is under way makes a step: the rollout gives nodes back and
// begins with the next ones.
func (f *forkUpgrade) goOn(round string, give, drained, working []int) func(tCtx ktesting.TContext) string {
	return func(tCtx ktesting.TContext) string {
		observed := []string{f.evictNew(round)(tCtx), f.maintain("shelf-" + round)(tCtx)}
		observed = append(observed, f.useKubectl(tCtx, round), f.requests.expectSurging(tCtx), f.scale(tCtx))
		f.requests.expectDraining(tCtx)

		rollout := tCtx.WithNamespace(rolloutNamespace)
		f.fleet.giveBack(rollout, give...)
		f.fleet.awaitDrained(rollout, drained...)
		_, done := f.fleet.progress(rollout)
		f.fleet.expectProgress(rollout, working, done)
		f.fleet.expectSpec(rollout)
		awaitWait(rollout, desk, coordinationv1alpha1.NodeMaintenanceWaitFrozen, 1)
		observed = append(observed, fmt.Sprintf("Of the rollout, nodes %v were given back, and %v are drained.", give, working))

		f.requests.expectUntouched(tCtx)
		return strings.Join(observed, " ")
	}
}

// evictNew returns a step that has a pod with an interceptor evicted through each API server, and
// sees that requests of before are as they were.
func (f *forkUpgrade) evictNew(round string) func(tCtx ktesting.TContext) string {
	return func(tCtx ktesting.TContext) string {
		var names []string
		for i, server := range f.servers(tCtx) {
			name := fmt.Sprintf("new-%s-%d", round, i)
			pod := createReadyPod(server, newPod(name, interceptor))
			requestEviction(server, pod)
			tCtx.ExpectNoError(report(server, awaitRequest(server, pod, isActive), false))
			tCtx.ExpectNoError(report(server, getRequest(server, pod), true))
			awaitEvicted(server, pod)
			names = append(names, name)

			walker := f.requests.pods["walker"]
			request := awaitRequest(server, walker, isActive)
			if got := request.Status.ActivationTime; !got.Equal(&f.requests.activation) {
				tCtx.Fatalf("the interceptor of pod %s was active since %v, and is since %v", walker.Name, f.requests.activation, got)
			}
			f.evictWaiting(server)
		}
		expectStays(tCtx, f.requests.pods["walker"], 0)
		f.expectEnded(tCtx)
		awaitRequest(tCtx, f.requests.pods["b"], isBlocked)
		return fmt.Sprintf("Pods %s are evicted after their interceptor.", strings.Join(names, ", "))
	}
}

// expectEnded checks the requests that ended before the first upgrade.
func (f *forkUpgrade) expectEnded(tCtx ktesting.TContext) string {
	for name, want := range map[string]state{"a": isEvicted, "canceled": isCanceled} {
		if request := getRequest(tCtx, f.requests.pods[name]); !want.reached(request) {
			tCtx.Fatalf("the request for pod %s is not %s: %+v", name, want.name, request.Status)
		}
	}
	expectStays(tCtx, f.requests.pods["canceled"], 0)
	return "one is evicted, one canceled, whose pod stays."
}

func (f *forkUpgrade) createLater(tCtx ktesting.TContext) string {
	f.requests.createRequested(tCtx, newSurgingDeployment(later, 1, 1), 1)
	createBudget(tCtx, later, "maxUnavailable: 0", 1)
	awaitReplicas(tCtx, later, replicas{2, 2, 1})
	f.drain(tCtx, "later-node", interceptor)
	f.requests.createPod(tCtx, "later-pod", interceptor)
	requestEviction(tCtx, f.requests.pods["later-pod"])
	awaitRequest(tCtx, f.requests.pods["later-pod"], isActive)
	return "a Deployment surges, the pod of a node and another pod wait for their interceptor."
}

func (f *forkUpgrade) finishLater(tCtx ktesting.TContext) string {
	f.finishSurge(tCtx, later)
	tCtx.ExpectNoError(report(tCtx, getRequest(tCtx, f.requests.pods["later-node"]), true))
	f.awaitDrained(tCtx, "later-node")
	f.maintained = append(f.maintained, "later-node")
	awaitRequest(tCtx, f.requests.pods["later-pod"], isActive)
	return "the pod of the Deployment was replaced, the node is drained; the other pod still waits."
}

// finishSurge makes the pods of a Deployment ready until those whose eviction was requested are gone.
func (f *forkUpgrade) finishSurge(tCtx ktesting.TContext, name string) {
	tCtx.Helper()
	for _, pod := range f.requests.requested[name] {
		await(tCtx, "the end of the request for pod "+pod.Name, func(tCtx ktesting.TContext) {
			makePodsReady(tCtx, name)
			if request := getRequest(tCtx, pod); !isEvicted.reached(request) {
				tCtx.Fatalf("its status is %+v", request.Status)
			}
		})
	}
	awaitReplicas(tCtx, name, replicas{1, 1, 1}, makePodsReady)
	awaitCondition(tCtx, name, false)
}

// electLeader starts the controller manager of the predecessor, and that of the fork beside it.
func (f *forkUpgrade) electLeader(tCtx ktesting.TContext) string {
	elected := func(release controlplane.Release) controlplane.Release {
		release.ControllerManagerArgs = slices.Concat(release.ControllerManagerArgs, []string{"--leader-elect=true"})
		return release
	}
	tCtx.ExpectNoError(f.plane.StartControllerManager(tCtx, elected(f.predecessor)))
	before := awaitLeader(tCtx, "")
	f.evictNew("before-election")(tCtx)
	tCtx.ExpectNoError(f.second.StartControllerManager(tCtx, elected(f.own)))
	f.evictNew("during-election")(tCtx)
	if leader := awaitLeader(tCtx, ""); leader != before {
		tCtx.Fatalf("%s leads, must still be %s", leader, before)
	}
	tCtx.ExpectNoError(f.plane.StopControllerManager())
	after := awaitLeader(tCtx, before)
	f.evictNew("after-election")(tCtx)
	// From here on, there is one again.
	tCtx.ExpectNoError(f.second.StopControllerManager())
	tCtx.ExpectNoError(f.plane.StartControllerManager(tCtx, f.own))
	return fmt.Sprintf("they use one Lease; %s led, and then %s.", before, after)
}

// awaitLeader waits until a controller manager leads that is not the one before.
func awaitLeader(tCtx ktesting.TContext, before string) (leader string) {
	tCtx.Helper()
	await(tCtx, "a leader that is not "+before, func(tCtx ktesting.TContext) {
		lease, err := tCtx.Client().CoordinationV1().Leases(metav1.NamespaceSystem).Get(tCtx, controlplane.ControllerManager, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || *lease.Spec.HolderIdentity == before {
			tCtx.Fatalf("the lease is %+v", lease.Spec)
		}
		leader = *lease.Spec.HolderIdentity
	})
	return leader
}

func (f *forkUpgrade) finishBlocked(tCtx ktesting.TContext) string {
	deleteBudget(tCtx, "b")
	return f.requests.expectBEvicted(tCtx)
}

func (f *forkUpgrade) finishWalks(tCtx ktesting.TContext) string {
	observed := []string{f.requests.finishWalk(tCtx)}
	for _, name := range []string{"evicted", "later-pod"} {
		tCtx.ExpectNoError(report(tCtx, getRequest(tCtx, f.requests.pods[name]), true))
		observed = append(observed, awaitEvicted(tCtx, f.requests.pods[name]))
	}
	return strings.Join(observed, " ")
}

func (f *forkUpgrade) finishSurges(tCtx ktesting.TContext) string {
	f.finishSurge(tCtx, unprotected)
	observed := f.requests.finishDrains(tCtx)
	// Its rollout needs further pods to become ready.
	awaitReplicas(tCtx, "rolling", replicas{2, 2, 2}, makePodsReady)
	return observed
}

func (f *forkUpgrade) finishRollout(tCtx ktesting.TContext) string {
	tCtx = tCtx.WithNamespace(rolloutNamespace)
	f.fleet.giveBack(tCtx, 2, 5, 8, 11)
	f.fleet.expectAllDone(tCtx)
	f.fleet.complete(tCtx)
	// One after the other: a controller that sees the budget go first may begin with the node.
	maintenances := tCtx.Client().CoordinationV1alpha1().NodeMaintenances()
	tCtx.ExpectNoError(maintenances.Delete(tCtx, desk, metav1.DeleteOptions{}))
	awaitNotFound(tCtx, "the maintenance", desk, maintenances)
	tCtx.ExpectNoError(tCtx.Client().CoordinationV1alpha1().NodeMaintenanceBudgets().Delete(tCtx, desk, metav1.DeleteOptions{}))
	expectStays(tCtx, f.fleet.pods[appOf(desk)], 0)
	return fmt.Sprintf("all nodes are given back, at most %d at a time; the pod of the node whose budget was frozen is still there.", f.fleet.most.concurrent)
}

func (f *forkUpgrade) deleteMaintenances(tCtx ktesting.TContext) string {
	maintenances := tCtx.Client().CoordinationV1alpha1().NodeMaintenances()
	for _, name := range f.maintained {
		tCtx.ExpectNoError(maintenances.Delete(tCtx, name, metav1.DeleteOptions{}))
		awaitNotFound(tCtx, "the maintenance", name, maintenances)
		if node := getNode(tCtx, name); node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil {
			tCtx.Fatalf("node %s is unschedulable: %t, and has the maintenance status %+v", name, node.Spec.Unschedulable, node.Status.MaintenanceStatus)
		}
	}
	return fmt.Sprintf("%d maintenances are gone.", len(f.maintained))
}
