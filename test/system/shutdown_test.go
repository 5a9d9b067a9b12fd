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
	"path/filepath"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/kubernetes/test/utils/realcluster"
	"k8s.io/kubernetes/test/utils/realcluster/logind"
)

const (
	// baseNode runs the kubelet of the pristine base. The first node drains itself, and pods move
	// to the second one, which stays up.
	baseNode = "node-2"

	// shutdownDelay is how long logind waits for a kubelet, which is longer than all drains take.
	shutdownDelay = time.Minute

	// ordinaryShutdown is how both kubelets terminate pods without a maintenance.
	ordinaryShutdown = "shutdownGracePeriod: 6s\nshutdownGracePeriodCriticalPods: 1s\n"
	// ordinaryPeriod is the whole of it, and normalPeriod that of pods that are not critical.
	ordinaryPeriod = 6 * time.Second
	normalPeriod   = 5 * time.Second
	drainFirst     = "preferNodeMaintenanceDuringGracefulShutdown: true\n"

	kubeletLock = "kubelet"
)

// shutdownTest is a cluster whose nodes shut down.
type shutdownTest struct {
	programs
	real *realcluster.Cluster
}

// TestNodeShutdown shuts nodes with real kubelets down, and powers them on again.
func TestNodeShutdown(t *testing.T) { testNodeShutdown(ktesting.Init(t)) }
func testNodeShutdown(tCtx ktesting.TContext) {
	tCtx, s := newShutdownTest(tCtx)
	for _, scenario := range []struct {
		name string
		play func(tCtx ktesting.TContext)
	}{
		{"drain, beside the base", s.drainBesideBase},
		{"cancel, and shut down again", s.cancelAndShutDown},
		{"cancel, and shut down again, base", s.cancelAndShutDownBase},
		{"API server away, back, away", s.loseAPIServer},
		{"delay too short", s.runOutOfTime},
		{"bus restarted", s.restartBus},
		{"kubelet restarted", s.restartKubelet},
		{"maintenance exists", s.joinMaintenance},
	} {
		run(tCtx, scenario.name, func(tCtx ktesting.TContext) { scenario.play(newShutdownNamespace(tCtx)) })
	}
}

func newShutdownTest(tCtx ktesting.TContext) (ktesting.TContext, *shutdownTest) {
	tCtx.Helper()
	p := findPrograms(tCtx)
	local := &localcluster.Cluster{Name: "test-shutdown", Output: p.output, Bin: p.fork, Nodes: 3, Timeout: pollTimeout}
	return startShutdownTest(tCtx, p, &realcluster.Cluster{
		Local: local, InhibitDelayMax: shutdownDelay,
		Kubelets: map[string]realcluster.Kubelet{
			firstNode: {Gates: localcluster.DefaultSettings.Gates, Config: ordinaryShutdown + drainFirst},
			baseNode:  {Bin: p.base, Config: ordinaryShutdown},
		},
	})
}

// startShutdownTest starts the cluster, which ends with the test.
func startShutdownTest(tCtx ktesting.TContext, p programs, real *realcluster.Cluster) (ktesting.TContext, *shutdownTest) {
	tCtx.Helper()
	local := real.Local
	tCtx.ExpectNoError(real.Down(tCtx), "removing an earlier cluster")
	tCtx.CleanupCtx(func(tCtx ktesting.TContext) {
		if tCtx.Failed() {
			logs := filepath.Join(p.output, "test", local.Name+"-logs")
			tCtx.AssertNoError(local.KeepLogs(logs))
			tCtx.Logf("Logs are in %s.", logs)
		}
		tCtx.AssertNoError(real.Down(tCtx), "removing the cluster")
	})
	tCtx.ExpectNoError(real.Ensure(tCtx))
	client, _, err := local.Client()
	tCtx.ExpectNoError(err)
	return tCtx.WithClients(nil, nil, client, nil, nil).WithValue(endedKey{}, real.Ended), &shutdownTest{p, real}
}

// newShutdownNamespace returns a context with a namespace whose pods end with the scenario.
func newShutdownNamespace(tCtx ktesting.TContext) ktesting.TContext {
	tCtx.Helper()
	tCtx = createDemoNamespace(tCtx, "shutdown")
	tCtx.CleanupCtx(func(tCtx ktesting.TContext) {
		tCtx.AssertNoError(tCtx.Client().CoreV1().Namespaces().Delete(tCtx, tCtx.Namespace(), metav1.DeleteOptions{}))
	})
	return tCtx
}

func (s *shutdownTest) shutDown(tCtx ktesting.TContext, node string) {
	tCtx.Helper()
	tCtx.ExpectNoError(s.real.ShutDown(tCtx, node))
}

// expectDown waits until a node is down, because of this.
func (s *shutdownTest) expectDown(tCtx ktesting.TContext, node string, want logind.Reason) logind.Outcome {
	tCtx.Helper()
	outcome, err := s.real.AwaitDown(tCtx, node)
	tCtx.ExpectNoError(err)
	tCtx.Logf("%s goes down after %.1f s: %s", node, outcome.After.Seconds(), outcome.Reason)
	if outcome.Reason != want {
		tCtx.Errorf("%s goes down because %s, not because %s", node, outcome.Reason, want)
	}
	return outcome
}

// powerOn boots a node, and waits until it takes pods.
func (s *shutdownTest) powerOn(tCtx ktesting.TContext, node string) {
	tCtx.Helper()
	boot := getNode(tCtx, node).Status.NodeInfo.BootID
	tCtx.ExpectNoError(s.real.PowerOn(tCtx, node))
	s.awaitBoot(tCtx, node, boot)
}

// awaitBoot waits until a node takes pods after the boot with this ID.
func (s *shutdownTest) awaitBoot(tCtx ktesting.TContext, node, boot string) {
	tCtx.Helper()
	await(tCtx, node+" to take pods", func(tCtx ktesting.TContext) {
		n := getNode(tCtx, node)
		if n.Status.NodeInfo.BootID == boot {
			tCtx.Fatal("it has not booted")
		}
		expectTakesPods(tCtx, n)
	})
	s.awaitLocks(tCtx, node, kubeletLock)
}

func getNode(tCtx ktesting.TContext, name string) *v1.Node {
	tCtx.Helper()
	node, err := tCtx.Client().CoreV1().Nodes().Get(tCtx, name, metav1.GetOptions{})
	tCtx.ExpectNoError(err)
	return node
}

// expectTakesPods expects a node that is ready, and neither drained nor cordoned.
func expectTakesPods(tCtx ktesting.TContext, node *v1.Node) {
	tCtx.Helper()
	if status := nodeCondition(node, v1.NodeReady); status != v1.ConditionTrue {
		tCtx.Fatalf("it is ready: %s", status)
	}
	if len(node.Spec.Taints) > 0 || node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil {
		tCtx.Fatalf("it has the taints %v, is unschedulable: %t, in maintenance: %v", node.Spec.Taints, node.Spec.Unschedulable, node.Status.MaintenanceStatus)
	}
}

func nodeCondition(node *v1.Node, conditionType v1.NodeConditionType) v1.ConditionStatus {
	for _, condition := range node.Status.Conditions {
		if condition.Type == conditionType {
			return condition.Status
		}
	}
	return v1.ConditionUnknown
}

// awaitLocks waits until just these programs have a lock on a node.
func (s *shutdownTest) awaitLocks(tCtx ktesting.TContext, node string, want ...string) {
	tCtx.Helper()
	await(tCtx, "locks", func(tCtx ktesting.TContext) { s.expectLocks(tCtx, node, want...) })
}

func (s *shutdownTest) expectLocks(tCtx ktesting.TContext, node string, want ...string) {
	tCtx.Helper()
	locks, err := s.real.InhibitLocks(tCtx, node)
	tCtx.ExpectNoError(err)
	var owners []string
	for _, lock := range locks {
		owners = append(owners, lock.Who)
	}
	slices.Sort(owners)
	if !slices.Equal(owners, want) {
		tCtx.Fatalf("locks of %q, want %q", owners, want)
	}
}

// keepUp takes a lock on a node, as any other program could, so that the node does not go down when
// the kubelet has none.
func (s *shutdownTest) keepUp(tCtx ktesting.TContext, node string) (release func()) {
	tCtx.Helper()
	client, err := s.real.Logind(tCtx, node)
	tCtx.ExpectNoError(err)
	defer client.Close()
	lock, err := client.Inhibit(tCtx, logind.Lock{Who: "test", Why: "to keep the node up"})
	tCtx.ExpectNoError(err)
	return func() { tCtx.AssertNoError(lock.Close()) }
}
