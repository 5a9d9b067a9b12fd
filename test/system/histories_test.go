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
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/hack/controlplane"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/history"
	"k8s.io/utils/ptr"
)

const (
	// historySeedVariable repeats what actors and faults do in an earlier history, as far as the machine allows, and
	// historyCountVariable is how many histories there are; 1 by default.
	historySeedVariable  = "HISTORY_SEED"
	historyCountVariable = "HISTORY_COUNT"

	// historyDuration is how long there are actors and faults, and calmDuration within what time afterwards all
	// that was begun must have come to an end. It has the pauses of the last attempts, which double.
	historyDuration = 60 * time.Second
	calmDuration    = 150 * time.Second

	historyNodes = 6

	// historyBudget limits how many nodes are maintained at the same time.
	historyBudget = "nodes"
)

// historyTest is one history: two API servers on an etcd, with a controller manager each.
type historyTest struct {
	seed     uint64
	replicas []*controlplane.ControlPlane
	releases []controlplane.Release
	// clients are those of the API servers, any of which may not answer.
	clients []clientset.Interface

	// etcd reads what is stored, and compacts it.
	etcd *clientv3.Client

	lock    sync.Mutex
	checker *history.Checker
}

// TestHistories has actors with different interests, and faults, and checks each revision of etcd.
func TestHistories(t *testing.T) { testHistories(ktesting.Init(t)) }
func testHistories(tCtx ktesting.TContext) {
	p := findPrograms(tCtx)
	seed, count := uint64(time.Now().UnixNano()), 1
	var err error
	if text := os.Getenv(historySeedVariable); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		tCtx.ExpectNoError(err, "reading %s", historySeedVariable)
	}
	if text := os.Getenv(historyCountVariable); text != "" {
		count, err = strconv.Atoi(text)
		tCtx.ExpectNoError(err, "reading %s", historyCountVariable)
	}
	for i := range uint64(count) {
		run(tCtx, fmt.Sprintf("seed %d", seed+i), func(tCtx ktesting.TContext) {
			t := &historyTest{
				seed:    seed + i,
				checker: history.NewChecker(history.AllRules()),
			}
			t.run(tCtx, p)
		})
	}
}

func (t *historyTest) run(tCtx ktesting.TContext, p programs) {
	tCtx, plane := newControlPlane(tCtx, p, "histories")
	stopFollowing := t.follow(tCtx, plane)
	// Also if the end does not come.
	defer t.report(tCtx)
	defer stopFollowing()
	t.startComponents(tCtx, p, plane)
	createNamespace(tCtx)
	for i := range historyNodes {
		createHistoryNode(tCtx, i)
	}

	limit := &coordinationv1alpha1.NodeMaintenanceBudget{
		ObjectMeta: metav1.ObjectMeta{Name: historyBudget},
		Spec: coordinationv1alpha1.NodeMaintenanceBudgetSpec{
			NodeSelector:   &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "rack", Operator: v1.NodeSelectorOpExists}}}}},
			MaxUnavailable: ptr.To(intstr.FromInt32(3)),
			Topology:       &coordinationv1alpha1.NodeMaintenanceTopology{Key: "rack", MaxDomains: 2},
		},
	}
	create(tCtx, tCtx.Client().CoordinationV1alpha1().NodeMaintenanceBudgets(), limit)

	startEvictionWebhook(tCtx, t.decideSlowly)
	actors := newHistoryActors(t, tCtx.Namespace())
	stopKubelets := startLoops(tCtx, actors.kubelets()...)
	defer stopKubelets()
	stopOthers := startLoops(tCtx, actors.others()...)
	t.causeFaults(tCtx)
	stopOthers()
	t.expectEnd(tCtx)
}

// report says what the history has been, and which rules it breaks. Nobody follows it any more.
func (t *historyTest) report(tCtx ktesting.TContext) {
	tCtx.Helper()
	violations := t.checker.Violations()
	for i := range violations {
		tCtx.Errorf("%s\nrepeat: make test-histories SEED=%d", violations[i].String(), t.seed)
	}
	tally := t.checker.Tally()
	tCtx.Logf("seed %d: %d revisions, %d violations, %v", t.seed, t.checker.Revisions(), len(violations), tally)
	for _, what := range []string{"EvictionRequest Evicted", "EvictionRequest Canceled", "Node Drained", "Node uncordoned", "Node begun with", "Node given back"} {
		if tally[what] == 0 {
			tCtx.Errorf("no %s: the history proves nothing about that", what)
		}
	}
}

// startLoops runs functions until the returned one is called, which waits for them.
func startLoops(ctx context.Context, loops ...func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, loop := range loops {
		running.Go(func() { loop(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// follow checks all revisions until the returned function is called.
func (t *historyTest) follow(tCtx ktesting.TContext, plane *controlplane.ControlPlane) (stop func()) {
	tCtx.Helper()
	var err error
	t.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{fmt.Sprintf("http://127.0.0.1:%d", plane.Ports()[controlplane.Etcd])}, DialTimeout: 10 * time.Second})
	tCtx.ExpectNoError(err, "connecting to etcd")
	end := startLoops(tCtx, func(ctx context.Context) {
		tCtx.AssertNoError(history.Follow(ctx, t.etcd, "/registry/", 1, func(changes []history.Change) {
			t.lock.Lock()
			defer t.lock.Unlock()
			t.checker.Add(changes)
		}))
	})
	return sync.OnceFunc(func() {
		end()
		_ = t.etcd.Close() // Nothing is written.
	})
}

// startComponents starts two API servers, and a controller manager of each.
func (t *historyTest) startComponents(tCtx ktesting.TContext, p programs, plane *controlplane.ControlPlane) {
	tCtx.Helper()
	second, err := plane.Replica(tCtx.TempDir())
	tCtx.ExpectNoError(err)
	tCtx.Cleanup(second.Close)
	release := controlplane.Release{
		Name: "the fork", Bin: p.fork, RuntimeConfig: runtimeConfig,
		FeatureGates: gatesOfWorkloads + ",NodeMaintenanceBudgets=true,EvictionLane=true,EvictionRequestForEvictions=true,StatefulSetEvictionPacing=true",
		ControllerManagerArgs: []string{
			"--leader-elect=true", "--leader-elect-lease-duration=8s", "--leader-elect-renew-deadline=6s", "--leader-elect-retry-period=1s",
		},
	}
	own := release
	own.ControllerManagerArgs = append(slices.Clone(release.ControllerManagerArgs), "--master="+second.Config().Host)
	t.replicas, t.releases = []*controlplane.ControlPlane{plane, second}, []controlplane.Release{release, own}
	for i, replica := range t.replicas {
		tCtx.ExpectNoError(replica.StartAPIServer(tCtx, t.releases[i]))
		config := rest.CopyConfig(replica.Config())
		config.Timeout = 10 * time.Second
		t.clients = append(t.clients, clientset.NewForConfigOrDie(config))
	}
	for i, replica := range t.replicas {
		tCtx.ExpectNoError(replica.StartControllerManager(tCtx, t.releases[i]))
	}
}

// createHistoryNode creates a node that is ready. Its kubelet is an actor.
func createHistoryNode(tCtx ktesting.TContext, i int) {
	tCtx.Helper()
	node := newSimulatedNode(fmt.Sprintf("node-%d", i), fmt.Sprintf("10.%d.0.0/24", i+1), map[string]string{"rack": strconv.Itoa(i % 3)})
	node.Annotations = nil
	create(tCtx, tCtx.Client().CoreV1().Nodes(), node)
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}}
	await(tCtx, "node "+node.Name+" to be ready", func(tCtx ktesting.TContext) {
		current, err := tCtx.Client().CoreV1().Nodes().Get(tCtx, node.Name, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		current.Status = node.Status
		if _, err = tCtx.Client().CoreV1().Nodes().UpdateStatus(tCtx, current, metav1.UpdateOptions{}); err == nil {
			current, err = tCtx.Client().CoreV1().Nodes().Get(tCtx, node.Name, metav1.GetOptions{})
		}
		tCtx.ExpectNoError(err)
		current.Spec.Taints = nil // A new node is not ready.
		_, err = tCtx.Client().CoreV1().Nodes().Update(tCtx, current, metav1.UpdateOptions{})
		tCtx.ExpectNoError(err)
	})
}

// decideSlowly is a webhook that takes up to five seconds for some evictions, and refuses some.
func (t *historyTest) decideSlowly(string) *metav1.Status {
	switch rand.IntN(8) {
	case 0, 1:
		time.Sleep(rand.N(5 * time.Second))
	case 2:
		return &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "not now"}
	}
	return nil
}

// causeFaults suspends and kills components for the time of the history. One API server goes on at any time.
func (t *historyTest) causeFaults(tCtx ktesting.TContext) {
	tCtx.Helper()
	random := rand.New(rand.NewPCG(t.seed, 1))
	pause := func(longest time.Duration) time.Duration { return time.Duration(random.Int64N(int64(longest))) }
	for end := time.Now().Add(historyDuration); time.Now().Before(end); {
		time.Sleep(pause(6 * time.Second))
		i := random.IntN(len(t.replicas))
		replica, release := t.replicas[i], t.releases[i]
		components, what, long := []string{controlplane.ControllerManager}, random.IntN(9), pause(14*time.Second)
		switch what {
		case 0, 1:
			if what == 1 {
				components = append(components, controlplane.APIServer)
			}
			tCtx.Logf("suspend %v of replica %d for %v", components, i, long.Round(time.Millisecond))
			tCtx.ExpectNoError(replica.Suspend(components...))
			time.Sleep(long)
			tCtx.ExpectNoError(replica.Resume(components...))
		case 2, 3:
			tCtx.Logf("kill the controller manager of replica %d", i)
			_ = replica.KillControllerManager() // One that has lost its lease has ended by itself.
			time.Sleep(pause(3 * time.Second))
			tCtx.ExpectNoError(replica.StartControllerManager(tCtx, release))
		case 4, 5:
			if what == 5 {
				release.FeatureGates = strings.Replace(release.FeatureGates, "EvictionLane=true", "EvictionLane=false", 1)
			}
			tCtx.Logf("kill the API server of replica %d, and start it with %s", i, release.FeatureGates)
			tCtx.ExpectNoError(replica.KillAPIServer())
			time.Sleep(pause(3 * time.Second))
			tCtx.ExpectNoError(replica.StartAPIServer(tCtx, release))
		case 6, 7:
			tCtx.Logf("compact etcd")
			t.compact(tCtx)
		case 8:
			tCtx.Logf("suspend etcd for %v", (long / 3).Round(time.Millisecond))
			tCtx.ExpectNoError(t.replicas[0].Suspend(controlplane.Etcd))
			time.Sleep(long / 3)
			tCtx.ExpectNoError(t.replicas[0].Resume(controlplane.Etcd))
		}
		t.restartEnded(tCtx)
	}
	time.Sleep(time.Second) // Who has been told that another one leads ends.
	t.restartEnded(tCtx)
}

// compact has etcd forget what was before: who reads on from there has to list everything again.
func (t *historyTest) compact(tCtx ktesting.TContext) {
	tCtx.Helper()
	t.lock.Lock()
	revision := t.checker.Revision() // What was not checked is kept.
	t.lock.Unlock()
	ctx, cancel := context.WithTimeout(tCtx, 10*time.Second)
	defer cancel()
	if _, err := t.etcd.Compact(ctx, revision); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		tCtx.Errorf("compacting etcd: %v", err)
	}
}

// restartEnded starts controller managers that have ended because another one led.
func (t *historyTest) restartEnded(tCtx ktesting.TContext) {
	tCtx.Helper()
	for i, replica := range t.replicas {
		if replica.Ended() != nil {
			_ = replica.KillControllerManager()
			tCtx.ExpectNoError(replica.StartControllerManager(tCtx, t.releases[i]))
		}
	}
}

// expectEnd expects that all that was begun comes to an end when there are no faults any more, or says what it waits
// for.
func (t *historyTest) expectEnd(tCtx ktesting.TContext) {
	tCtx.Helper()
	awaitWithin(tCtx.WithValue(endedKey{}, func() error { return nil }), calmDuration, "all requests and maintenances to end", func(tCtx ktesting.TContext) {
		t.restartEnded(tCtx)
		requests, err := t.clients[0].CoordinationV1alpha1().EvictionRequests(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
		tCtx.ExpectNoError(err)
		for i := range requests.Items {
			if request := &requests.Items[i]; !hasEnded(request) {
				tCtx.Errorf("request for pod %s goes on: %+v", request.Spec.Target.Pod.Name, request.Status.Conditions)
			}
		}
		maintenances, err := t.clients[0].CoordinationV1alpha1().NodeMaintenances().List(tCtx, metav1.ListOptions{})
		tCtx.ExpectNoError(err)
		for i := range maintenances.Items {
			m := &maintenances.Items[i]
			waits := m.Status.RolloutStatus != nil && len(m.Status.RolloutStatus.WaitingFor) > 0
			if m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain && !meta.IsStatusConditionTrue(m.Status.Conditions, "Drained") && len(m.Status.DrainStatus.Blockers) == 0 && !waits {
				tCtx.Errorf("maintenance %s is not drained, and names neither a blocker nor what it waits for: %+v", m.Name, m.Status)
			}
		}
	})
}

// hasEnded reports whether a request is finished, or is blocked by what a person has to decide.
func hasEnded(request *coordinationv1alpha1.EvictionRequest) bool {
	for _, conditionType := range []string{"Evicted", "Canceled", "Blocked", "Stalled"} {
		if meta.IsStatusConditionTrue(request.Status.Conditions, conditionType) {
			return true
		}
	}
	// Outside of maintenances, somebody has to delete the pods of DaemonSets.
	return slices.Equal(request.Status.ActiveInterceptors, []string{"daemonset.apps.k8s.io"}) && meta.IsStatusConditionTrue(request.Status.Conditions, "InterceptorUnresponsive")
}
