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
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/utils/auditlog"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/utils/ptr"
)

const (
	// podsPerKind is the number of pods of each of the five kinds.
	podsPerKind = 40

	// killsPerComponent is the number of times each component is killed.
	killsPerComponent = 12

	// maxLifetime is the longest time before a kill. Evictions are in progress during all kills,
	// because some are requested before each.
	maxLifetime = 1500 * time.Millisecond

	// seedVariable repeats the order and the times of the kills of an earlier run, as far as the
	// machine allows.
	seedVariable = "CHAOS_SEED"
)

// The kinds of pods, by their label app. The pods of a kind share a budget, if any.
const (
	plain       = "plain"
	slow        = "slow"        // Takes longer to terminate than a component runs.
	budgeted    = "budgeted"    // Under a budget that allows every eviction.
	intercepted = "intercepted" // Has an interceptor.
	protected   = "protected"   // Under a budget that forbids every eviction.
)

// chaosTest is one control plane with the pods that are evicted on it.
type chaosTest struct {
	plane   *controlplane.ControlPlane
	release controlplane.Release
	random  *rand.Rand
	pods    []*v1.Pod // In the order in which they are evicted.
}

// TestChaos repeatedly kills kube-controller-manager and kube-apiserver with SIGKILL while 200 pods
// are evicted through EvictionRequests. According to the audit logs, every pod must be evicted
// exactly once; pods that a budget protects only after the budget is deleted. No request may be
// stuck.
func TestChaos(t *testing.T) { testChaos(ktesting.Init(t)) }
func testChaos(tCtx ktesting.TContext) {
	p := findPrograms(tCtx)
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		tCtx.ExpectNoError(err, "reading %s", seedVariable)
	}
	tCtx.Logf("seed %d", seed)
	tCtx, plane := newControlPlane(tCtx, p, "chaos")
	t := &chaosTest{
		plane:   plane,
		release: controlplane.Release{Name: "the fork", Bin: p.fork, FeatureGates: gatesOfRequests + ",EvictionLane=true", RuntimeConfig: runtimeConfig},
		random:  rand.New(rand.NewPCG(seed, 0)),
	}
	start(tCtx, plane, t.release)
	t.createPods(tCtx)

	// The kubelet and the interceptor run while components are killed.
	kubelet := newKubelet()
	var others sync.WaitGroup
	working := tCtx.WithCancel()
	stop := func() {
		working.Cancel("the test has ended")
		others.Wait()
	}
	defer stop()
	others.Go(func() { kubelet.run(working) })
	others.Go(func() { intercept(working) })

	t.killWhileEvicting(tCtx)
	t.awaitEvicted(tCtx, func(pod *v1.Pod) bool { return pod.Labels[appLabel] != protected })
	t.expectProtected(tCtx)
	tCtx.Log("all unprotected pods are evicted, and no protected one")
	deleteBudget(tCtx, protected)
	t.awaitEvicted(tCtx, func(*v1.Pod) bool { return true })
	tCtx.Log("after their budget was deleted, the protected pods are evicted too")
	stop()
	t.expectEvictedOnce(tCtx, kubelet)
}

// createPods creates the pods, alternating between the kinds, and the budgets.
func (t *chaosTest) createPods(tCtx ktesting.TContext) {
	tCtx.Helper()
	createNamespace(tCtx)
	for i := range podsPerKind {
		for _, kind := range []string{plain, slow, budgeted, intercepted, protected} {
			pod := newPod(kind + "-" + strconv.Itoa(i))
			if kind == intercepted {
				pod = newPod(pod.Name, interceptor)
			}
			pod.Labels[appLabel] = kind
			// A long grace period makes a second eviction possible, which must not happen.
			pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](3600)
			t.pods = append(t.pods, createReadyPod(tCtx, pod))
		}
	}
	createBudget(tCtx, budgeted, "minAvailable: 0", podsPerKind)
	createBudget(tCtx, protected, "minAvailable: "+strconv.Itoa(podsPerKind), podsPerKind)
	tCtx.Logf("%d pods are ready, %d of them protected", len(t.pods), podsPerKind)
}

// component is a component that can be killed and restarted.
type component struct {
	name  string
	kill  func() error
	start func(context.Context, controlplane.Release) error
}

// killWhileEvicting kills the components in random order, at random moments, and requests some
// evictions before each kill.
func (t *chaosTest) killWhileEvicting(tCtx ktesting.TContext) {
	tCtx.Helper()
	var kills []component
	for range killsPerComponent {
		kills = append(kills,
			component{"kube-apiserver", t.plane.KillAPIServer, t.plane.StartAPIServer},
			component{"kube-controller-manager", t.plane.KillControllerManager, t.plane.StartControllerManager})
	}
	t.random.Shuffle(len(kills), func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
	requested := 0
	for i, victim := range kills {
		for ; requested < len(t.pods)*(i+1)/len(kills); requested++ {
			pod := t.pods[requested]
			// An API server that has just started may refuse the first requests.
			await(tCtx, "the request for pod "+pod.Name, func(tCtx ktesting.TContext) {
				if err := createRequest(tCtx, pod); !apierrors.IsAlreadyExists(err) {
					tCtx.ExpectNoError(err)
				}
			})
		}
		lifetime := time.Duration(t.random.Int64N(int64(maxLifetime)))
		time.Sleep(lifetime)
		tCtx.ExpectNoError(victim.kill())
		tCtx.ExpectNoError(victim.start(tCtx, t.release))
		tCtx.Logf("kill %d of %d: %s after %d ms, %d evictions requested", i+1, len(kills), victim.name, lifetime.Milliseconds(), requested)
	}
}

// awaitEvicted waits until the wanted pods are gone and their requests have Evicted=True.
func (t *chaosTest) awaitEvicted(tCtx ktesting.TContext, wanted func(*v1.Pod) bool) {
	tCtx.Helper()
	await(tCtx, "the evictions", func(tCtx ktesting.TContext) {
		pods, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
		tCtx.ExpectNoError(err, "listing the pods")
		there := map[types.UID]bool{}
		for _, pod := range pods.Items {
			there[pod.UID] = true
		}
		requests, err := tCtx.Client().CoordinationV1alpha1().EvictionRequests(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
		tCtx.ExpectNoError(err, "listing the requests")
		status, ended := map[types.UID]any{}, map[types.UID]bool{}
		for i := range requests.Items {
			uid := types.UID(requests.Items[i].Name)
			status[uid], ended[uid] = requests.Items[i].Status, isEvicted.reached(&requests.Items[i])
		}
		left := 0
		for _, pod := range t.pods {
			if wanted(pod) && (there[pod.UID] || !ended[pod.UID]) {
				if left++; left <= 3 {
					tCtx.Errorf("%s is not evicted (exists: %t, status of the request: %+v)", pod.Name, there[pod.UID], status[pod.UID])
				}
			}
		}
		if left > 3 {
			tCtx.Errorf("%d pods are not evicted", left)
		}
	})
}

// expectProtected fails if the eviction of a protected pod was accepted, or is not blocked.
func (t *chaosTest) expectProtected(tCtx ktesting.TContext) {
	tCtx.Helper()
	evictions, err := auditlog.ReadEvictions(t.plane.AuditLogs())
	tCtx.ExpectNoError(err)
	for _, pod := range t.pods {
		if pod.Labels[appLabel] != protected {
			continue
		}
		expectStays(tCtx, pod, 0)
		if len(evictions[pod.Name].Accepted) > 0 {
			tCtx.Fatalf("the eviction of the protected pod %s was accepted", pod.Name)
		}
		awaitRequest(tCtx, pod, isBlocked)
	}
}

// expectEvictedOnce fails unless each pod was evicted exactly once.
func (t *chaosTest) expectEvictedOnce(tCtx ktesting.TContext, kubelet *kubelet) {
	tCtx.Helper()
	evictions, err := auditlog.ReadEvictions(t.plane.AuditLogs())
	tCtx.ExpectNoError(err)
	unanswered := 0
	for _, pod := range t.pods {
		if since, seen := kubelet.terminating[pod.UID]; !seen {
			tCtx.Errorf("pod %s is gone, but never terminated", pod.Name)
		} else if err := evictions[pod.Name].CheckOnce(since.server); err != nil {
			tCtx.Errorf("pod %s: %v", pod.Name, err)
		}
		unanswered += evictions[pod.Name].Unanswered
	}
	if !tCtx.Failed() {
		tCtx.Logf("ok: %d pods, each evicted exactly once; %d calls were interrupted by a kill", len(t.pods), unanswered)
	}
}
