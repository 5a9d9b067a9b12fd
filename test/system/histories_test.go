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
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/history"
	"k8s.io/kubernetes/test/utils/tcpproxy"
	"k8s.io/utils/ptr"
)

const (
	// historySeedVariable repeats what actors and faults do in an earlier history, as far as the machine allows, and
	// historyCountVariable is how many histories there are; 1 by default. historyWithoutVariable names the actors and
	// faults that are left out, with commas between them. If historyShortenVariable is set, a history that breaks a rule
	// is repeated without one after the other. Otherwise as many run at the same time as go test -parallel allows.
	historySeedVariable    = "HISTORY_SEED"
	historyCountVariable   = "HISTORY_COUNT"
	historyWithoutVariable = "HISTORY_WITHOUT"
	historyShortenVariable = "HISTORY_SHORTEN"
	// historyFaultsVariable names the only faults that there are, with commas between them. All by default.
	historyFaultsVariable = "HISTORY_FAULTS"
	// historyLengthVariable is how long there are actors and faults, such as 10m.
	historyLengthVariable = "HISTORY_LENGTH"
	// historyRuleVariable is a rule with which a history ends as soon as it is broken.
	historyRuleVariable = "HISTORY_RULE"

	// historyDuration is how long there are actors and faults unless historyLengthVariable says something else, and
	// calmDuration within what time afterwards all that was begun must have come to an end. It has the pauses of the
	// last attempts, which double.
	historyDuration = 60 * time.Second
	calmDuration    = 150 * time.Second

	historyNodes = 6

	// etcdMembers is how many members etcd has: it goes on without one of them.
	etcdMembers = 3

	// historyBudget limits how many nodes are maintained at the same time.
	historyBudget = "nodes"
)

// historyTest is one history: two API servers on an etcd, with a controller manager each.
type historyTest struct {
	seed uint64
	// duration is how long there are actors and faults.
	duration time.Duration
	// without are the names of the actors and faults that are left out.
	without sets.Set[string]
	// only are the names of the only faults; all if empty.
	only sets.Set[string]
	// enough are the rules with which the history ends when one is broken; found is closed then.
	enough sets.Set[string]
	found  chan struct{}
	// opensDoor is whether lifecycle.k8s.io is served, and takes effect: in every other history.
	opensDoor bool
	// isCalm is whether there are no faults any more.
	isCalm atomic.Bool
	// isOut is whether no kubelet reaches an API server.
	isOut    atomic.Bool
	replicas []*controlplane.ControlPlane
	releases []controlplane.Release
	// networks are the connections of the replicas, disturbed is what some of them are, and prevents is whether no program
	// can be started then.
	networks []*historyNetwork
	// peers are those from the other members of etcd to each one.
	peers     []*tcpproxy.Proxy
	disturbed sync.WaitGroup
	prevents  bool
	// clients are those of the API servers, any of which may not answer. They are reached through the networks.
	clients []clientset.Interface

	// bin has etcd, which has started before there are releases.
	bin string
	// etcd compacts what is stored.
	etcd *clientv3.Client

	lock    sync.Mutex
	checker *history.Checker
	// refusals are how often a quota or a policy was seen to refuse something.
	refusals map[string]int
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
	without := sets.New[string]()
	if text := os.Getenv(historyWithoutVariable); text != "" {
		without.Insert(strings.Split(text, ",")...)
	}
	enough := sets.New[string]()
	if rule := os.Getenv(historyRuleVariable); rule != "" {
		enough.Insert(rule)
	}
	only := sets.New[string]()
	if text := os.Getenv(historyFaultsVariable); text != "" {
		only.Insert(strings.Split(text, ",")...)
		if unknown := only.Difference(sets.New(faultNames()...)); unknown.Len() > 0 {
			tCtx.Fatalf("%s: there are no faults %q, but %q", historyFaultsVariable, sets.List(unknown), faultNames())
		}
	}
	duration := historyDuration
	if text := os.Getenv(historyLengthVariable); text != "" {
		duration, err = time.ParseDuration(text)
		tCtx.ExpectNoError(err, "reading %s", historyLengthVariable)
	}
	shortens := os.Getenv(historyShortenVariable) != ""
	for i := range uint64(count) {
		broken := runHistory(tCtx, p, seed+i, duration, without, only, enough, !shortens)
		if len(broken) > 0 && shortens {
			shortened := shortenHistory(tCtx, p, seed+i, duration, without, only, broken)
			tCtx.Logf("it is enough for that: make test-histories SEED=%d COUNT=1 LENGTH=%v WITHOUT='%s'", seed+i, duration, strings.Join(sets.List(shortened), ","))
		}
	}
}

// runHistory returns the rules that a history breaks, which ends when one of some rules is. One that runs beside others
// begins later, and returns none.
func runHistory(tCtx ktesting.TContext, p programs, seed uint64, duration time.Duration, without, only, enough sets.Set[string], besideOthers bool) (broken sets.Set[string]) {
	broken = sets.New[string]()
	run(tCtx, fmt.Sprintf("seed %d", seed), func(tCtx ktesting.TContext) {
		if besideOthers {
			tCtx.Parallel()
		}
		t := &historyTest{seed: seed, duration: duration, bin: p.fork, without: without, only: only, enough: enough, found: make(chan struct{}), opensDoor: seed%2 == 0, checker: history.NewChecker(history.AllRules()), refusals: map[string]int{}}
		defer func() {
			for _, violation := range t.checker.Violations() {
				broken.Insert(violation.Rule)
			}
		}()
		t.run(tCtx, p)
	})
	return broken
}

// shortenHistory leaves out as many actors and faults as it can, half of them first, as long as one of the rules is broken.
func shortenHistory(tCtx ktesting.TContext, p programs, seed uint64, duration time.Duration, without, only, broken sets.Set[string]) sets.Set[string] {
	var leaveOut func(names []string)
	leaveOutEach := func(names []string) {
		leaveOut(names[:len(names)/2])
		leaveOut(names[len(names)/2:])
	}
	leaveOut = func(names []string) {
		names = slices.DeleteFunc(slices.Clone(names), without.Has)
		if len(names) == 0 {
			return
		}
		if fewer := without.Clone().Insert(names...); runHistory(tCtx, p, seed, duration, fewer, only, broken, false).HasAny(sets.List(broken)...) {
			without = fewer
		} else if len(names) > 1 {
			leaveOutEach(names)
		}
	}
	leaveOutEach(append(faultNames(), actorsNames()...))
	return without
}

func (t *historyTest) run(tCtx ktesting.TContext, p programs) {
	tCtx, plane := newControlPlaneWith(tCtx, p, "histories", controlplane.Options{EtcdMembers: etcdMembers, ReachPeer: t.reachPeer(tCtx)})
	stopFollowing := t.follow(tCtx, plane)
	// Also if the end does not come.
	defer t.report(tCtx)
	defer stopFollowing()
	t.startComponents(tCtx, p, plane)
	createNamespace(tCtx)
	for i := range historyNodes {
		createHistoryNode(tCtx, i)
	}

	actors := newHistoryActors(t, tCtx.Namespace())
	limit := &coordinationv1alpha1.NodeMaintenanceBudget{
		ObjectMeta: metav1.ObjectMeta{Name: historyBudget},
		Spec: coordinationv1alpha1.NodeMaintenanceBudgetSpec{
			NodeSelector:   &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "rack", Operator: v1.NodeSelectorOpExists}}}}},
			MaxUnavailable: ptr.To(intstr.FromInt32(3)),
			Topology:       &coordinationv1alpha1.NodeMaintenanceTopology{Key: "rack", MaxDomains: 2},
		},
	}
	if actors.strict {
		limit.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	}
	create(tCtx, tCtx.Client().CoordinationV1alpha1().NodeMaintenanceBudgets(), limit)

	// Faults may come so soon, and so often, that a history proves nothing about drains otherwise.
	create(tCtx, tCtx.Client().CoordinationV1alpha1().NodeMaintenances(), newHistoryRollout("r-0", 1))
	startEvictionWebhook(tCtx, t.decideSlowly)
	stopKubelets := startLoops(tCtx, actors.loops(carriers)...)
	defer stopKubelets()
	stopOthers := startLoops(tCtx, actors.loops(deciders)...)
	t.awaitFirst()
	t.causeFaults(tCtx)
	ending := t.ending()
	if ending != asItIs && !t.isEnough() {
		t.beginDrain(tCtx, tCtx.Client())
	}
	stopOthers()
	t.removeLimits(tCtx)
	t.end(tCtx, ending)
	t.isCalm.Store(true)
	if !t.isEnough() {
		t.expectEnd(tCtx)
	}
}

// firstReturn is how long the first node of the first rollout may take, and faults wait for it.
const firstReturn = 10 * time.Second

// awaitFirst waits until a maintenance has given a node back.
func (t *historyTest) awaitFirst() {
	for end := time.Now().Add(firstReturn); time.Now().Before(end); time.Sleep(lookInterval) {
		t.lock.Lock()
		isBack := t.checker.Tally()["Node given back"] > 0
		t.lock.Unlock()
		if isBack {
			return
		}
	}
}

// report says what the history has been, and which rules it breaks. Nobody follows it any more.
func (t *historyTest) report(tCtx ktesting.TContext) {
	tCtx.Helper()
	violations := t.checker.Violations()
	for i := range violations {
		tCtx.Errorf("%s\nrepeat: make test-histories SEED=%d COUNT=1 LENGTH=%v FAULTS='%s'", violations[i].String(), t.seed, t.duration, strings.Join(sets.List(t.only), ","))
	}
	tally := t.checker.Tally()
	tCtx.Logf("seed %d: %d revisions, %d violations, %v, refused by a %s", t.seed, t.checker.Revisions(), len(violations), tally, t.describeRefusals())
	if t.isEnough() {
		return
	}
	expected := []string{"EvictionRequest Evicted", "EvictionRequest Canceled", "Node Drained", "Node uncordoned", "Node begun with", "Node given back"}
	if t.opensDoor {
		expected = append(expected, "EvictionRequest.lifecycle.k8s.io TargetEvicted", "EvictionRequest.lifecycle.k8s.io Failed", "Eviction TargetEvicted", "Eviction Failed")
	}
	for _, what := range expected {
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
	connect := func(servers ...string) *clientv3.Client {
		client, err := clientv3.New(clientv3.Config{Endpoints: servers, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
		tCtx.ExpectNoError(err, "connecting to etcd")
		return client
	}
	t.etcd = connect(plane.EtcdServers()...)
	clients := []*clientv3.Client{t.etcd}
	var members []clientv3.Watcher
	for _, server := range plane.EtcdServers() {
		client := connect(server)
		clients, members = append(clients, client), append(members, client)
	}
	end := startLoops(tCtx, func(ctx context.Context) {
		tCtx.AssertNoError(history.Follow(ctx, members, "/registry/", 1, func(changes []history.Change) {
			t.lock.Lock()
			defer t.lock.Unlock()
			for _, violation := range t.checker.Add(changes) {
				if t.enough.Has(violation.Rule) && !t.isEnough() {
					close(t.found)
				}
			}
		}))
	})
	return sync.OnceFunc(func() {
		end()
		for _, client := range clients {
			_ = client.Close() // Nothing is written.
		}
	})
}

// isEnough reports whether the rule is broken with which the history ends.
func (t *historyTest) isEnough() bool {
	select {
	case <-t.found:
		return true
	default:
		return false
	}
}

// startComponents starts two API servers, and a controller manager of each.
func (t *historyTest) startComponents(tCtx ktesting.TContext, p programs, plane *controlplane.ControlPlane) {
	tCtx.Helper()
	second, err := plane.Replica(filepath.Join(plane.Dir(), "second"))
	tCtx.ExpectNoError(err)
	tCtx.Cleanup(second.Close)
	release := controlplane.Release{
		Name: "the fork", Bin: p.fork, RuntimeConfig: runtimeConfig,
		FeatureGates: gatesOfWorkloads + ",NodeMaintenanceBudgets=true,EvictionLane=true,EvictionRequestForEvictions=true,StatefulSetEvictionPacing=true",
		// An API server that is killed while it deletes a pod without a node leaves it terminating, for the garbage collector.
		ControllerManagerArgs: []string{
			"--controllers=*,-node-lifecycle-controller,-taint-eviction-controller",
			"--leader-elect=true", "--leader-elect-lease-duration=8s", "--leader-elect-renew-deadline=6s", "--leader-elect-retry-period=1s",
		},
	}
	if t.opensDoor {
		release.RuntimeConfig += ",lifecycle.k8s.io/v1alpha1=true"
		release.FeatureGates += ",LifecycleEvictions=true"
	}
	t.replicas = []*controlplane.ControlPlane{plane, second}
	for i, replica := range t.replicas {
		n := newHistoryNetwork(tCtx, replica)
		own := release
		own.ControllerManagerArgs = append(slices.Clone(release.ControllerManagerArgs), "--master="+throughProxy(replica.Config(), n.controllerManager[0]).Host)
		t.networks, t.releases = append(t.networks, n), append(t.releases, own)
		tCtx.ExpectNoError(replica.StartAPIServer(tCtx, t.releases[i]))
		config := throughProxy(replica.Config(), n.clients[0])
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

// restartEnded starts controller managers that have ended because another one led, or because they did not reach their
// API servers for too long.
func (t *historyTest) restartEnded(tCtx ktesting.TContext) {
	tCtx.Helper()
	for i, replica := range t.replicas {
		if replica.Ended() != nil {
			tCtx.Logf("the controller manager of replica %d has ended, and starts again", i)
			t.awaitNetwork()
			_ = replica.KillControllerManager()
			tCtx.ExpectNoError(replica.StartControllerManager(tCtx, t.releases[i]))
		}
	}
}

// expectEnd expects that all that was begun comes to an end when there are no faults any more, or says what it waits
// for.
func (t *historyTest) expectEnd(tCtx ktesting.TContext) {
	tCtx.Helper()
	left := []string{"the API servers answer"}
	defer func() {
		t.lock.Lock()
		defer t.lock.Unlock()
		if len(left) > 0 {
			t.checker.Break(history.Liveness, strings.Join(left, "; "))
		}
	}()
	awaitWithin(whoeverEnds(tCtx), calmDuration, "all requests and maintenances to end", func(tCtx ktesting.TContext) {
		t.restartEnded(tCtx)
		requests, err := t.clients[0].CoordinationV1alpha1().EvictionRequests(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
		tCtx.ExpectNoError(err)
		t.lock.Lock()
		left = t.checker.Unfinished()
		t.lock.Unlock()
		for i := range requests.Items {
			if request := &requests.Items[i]; !hasEnded(request) && !waitsForBlocked(request, requests.Items) {
				left = append(left, fmt.Sprintf("request for pod %s goes on: %+v", request.Spec.Target.Pod.Name, request.Status.Conditions))
			}
		}
		maintenances, err := t.clients[0].CoordinationV1alpha1().NodeMaintenances().List(tCtx, metav1.ListOptions{})
		tCtx.ExpectNoError(err)
		for i := range maintenances.Items {
			m := &maintenances.Items[i]
			waits := m.Status.RolloutStatus != nil && len(m.Status.RolloutStatus.WaitingFor) > 0
			drained := meta.FindStatusCondition(m.Status.Conditions, "Drained")
			isOver := drained != nil && (drained.Status == metav1.ConditionTrue || drained.Reason == coordinationv1alpha1.NodeMaintenanceReasonNodesSkipped)
			if m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain && !isOver && len(m.Status.DrainStatus.Blockers) == 0 && !waits {
				left = append(left, fmt.Sprintf("maintenance %s is not drained, and names neither a blocker nor what it waits for: %+v", m.Name, m.Status))
			}
		}
		for _, text := range left {
			tCtx.Error(text)
		}
	})
}

// waitsForBlocked reports whether the pod of a request waits, as the active interceptor says, for the eviction of another one
// that is blocked.
func waitsForBlocked(request *coordinationv1alpha1.EvictionRequest, all []coordinationv1alpha1.EvictionRequest) bool {
	active := evictionrequest.ActiveInterceptor(request)
	return active != nil && slices.ContainsFunc(all, func(other coordinationv1alpha1.EvictionRequest) bool {
		return meta.IsStatusConditionTrue(other.Status.Conditions, "Blocked") && strings.Contains(active.Message, fmt.Sprintf("pod %s to be evicted", other.Spec.Target.Pod.Name))
	})
}

// hasFinished reports whether a request is finished.
func hasFinished(request *coordinationv1alpha1.EvictionRequest) bool {
	return meta.IsStatusConditionTrue(request.Status.Conditions, "Evicted") || meta.IsStatusConditionTrue(request.Status.Conditions, "Canceled")
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
