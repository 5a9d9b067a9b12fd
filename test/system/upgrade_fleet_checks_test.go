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
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/utils/ptr"
)

const (
	poolNodes = 12
	poolZones = 3

	// stayingLabel is a label of pods that a policy of the maintenance skips.
	stayingLabel = "stays"

	// calm is for how long nothing may begin. It takes a fraction of this where it may.
	calm = 3 * time.Second
)

// fleetLimits are how many nodes are in progress, how many are cordoned, and in how many domains
// those in progress are.
type fleetLimits struct{ concurrent, unavailable, domains int }

// fleetUpgrade is the state that the steps share.
type fleetUpgrade struct {
	plane         *controlplane.ControlPlane
	base, on, off controlplane.Release
	budgetsServed bool

	// maintenance and budget are as they were when they were remembered.
	maintenance *coordinationv1alpha1.NodeMaintenance
	budget      *coordinationv1alpha1.NodeMaintenanceBudget
	// pods are those that later steps use, by name.
	pods map[string]*v1.Pod
	// limits are what the maintenance and the budget allow, and most what there was.
	limits, most fleetLimits
	// cordonedByHand are the nodes that stay cordoned when they are given back.
	cordonedByHand sets.Set[int]
}

// deleter is a part of the typed clients.
type deleter interface {
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

func poolNode(i int) string         { return fmt.Sprintf("fleet-%02d", i) }
func appOf(node string) string      { return "app-" + node }
func stayingOn(node string) string  { return "stays-" + node }
func returnedTo(node string) string { return "returned-" + node }
func nodeNamed(name string) *v1.NodeSelector {
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{name}}},
	}}}
}

// newRollout returns a maintenance that drains two nodes at a time.
func newRollout(name string, nodes *v1.NodeSelector) *coordinationv1alpha1.NodeMaintenance {
	m := newMaintenance(name, nodes.NodeSelectorTerms[0])
	m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt32(2))}
	return m
}

func newNodePod(name, node string) *v1.Pod {
	pod := newPod(name)
	pod.Spec.NodeName = node
	return pod
}

func (u *fleetUpgrade) createPod(tCtx ktesting.TContext, pod *v1.Pod) {
	tCtx.Helper()
	if u.pods == nil {
		u.pods = map[string]*v1.Pod{}
	}
	u.pods[pod.Name] = createReadyPod(tCtx, pod)
}

// createNode creates a node that is Ready, with a pod that leaves it. One of the pool also has a pod
// that stays.
func (u *fleetUpgrade) createNode(tCtx ktesting.TContext, name, zone string, inPool bool) {
	tCtx.Helper()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelTopologyZone: zone}}}
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	if inPool {
		node.Labels[fleetLabel] = fleetValue
	}
	create(tCtx, tCtx.Client().CoreV1().Nodes(), node)
	u.createPod(tCtx, newNodePod(appOf(name), name))
	if inPool {
		staying := newNodePod(stayingOn(name), name)
		staying.Labels[stayingLabel] = ""
		u.createPod(tCtx, staying)
	}
}

func (u *fleetUpgrade) restartAPIServer(tCtx ktesting.TContext, release controlplane.Release) {
	tCtx.Helper()
	tCtx.ExpectNoError(u.plane.StopAPIServer())
	tCtx.ExpectNoError(u.plane.StartAPIServer(tCtx, release))
}

// expectBudgetsServed fails unless NodeMaintenanceBudgets are served or not served, as wanted.
func (u *fleetUpgrade) expectBudgetsServed(tCtx ktesting.TContext, want bool) {
	tCtx.Helper()
	_, err := tCtx.Client().CoordinationV1alpha1().NodeMaintenanceBudgets().List(tCtx, metav1.ListOptions{})
	if !apierrors.IsNotFound(err) {
		tCtx.ExpectNoError(err)
	}
	if served := err == nil; served != want {
		tCtx.Fatalf("NodeMaintenanceBudgets are served: %t, must be %t", served, want)
	}
	u.budgetsServed = want
}

func readMaintenance(tCtx ktesting.TContext, name string) *coordinationv1alpha1.NodeMaintenance {
	tCtx.Helper()
	m, err := tCtx.Client().CoordinationV1alpha1().NodeMaintenances().Get(tCtx, name, metav1.GetOptions{})
	tCtx.ExpectNoError(err, "reading maintenance %s", name)
	return m
}

func patchMaintenance(tCtx ktesting.TContext, name, patch string) {
	tCtx.Helper()
	_, err := tCtx.Client().CoordinationV1alpha1().NodeMaintenances().Patch(tCtx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	tCtx.ExpectNoError(err, "patching maintenance %s with %s", name, patch)
}

func (u *fleetUpgrade) patch(tCtx ktesting.TContext, patch string) {
	tCtx.Helper()
	patchMaintenance(tCtx, fleetName, patch)
}

// freeze sets spec.maxUnavailable of the budget, of which 0 is a freeze.
func (u *fleetUpgrade) freeze(tCtx ktesting.TContext, unavailable int) {
	tCtx.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"maxUnavailable":%d}}`, unavailable)
	_, err := tCtx.Client().CoordinationV1alpha1().NodeMaintenanceBudgets().Patch(tCtx, fleetBudget, types.MergePatchType, patch, metav1.PatchOptions{})
	tCtx.ExpectNoError(err, "patching the budget with %s", patch)
}

// remember makes later steps fail if the spec of the maintenance or of the budget has changed.
func (u *fleetUpgrade) remember(tCtx ktesting.TContext) {
	tCtx.Helper()
	u.maintenance = readMaintenance(tCtx, fleetName)
	if b, err := tCtx.Client().CoordinationV1alpha1().NodeMaintenanceBudgets().Get(tCtx, fleetBudget, metav1.GetOptions{}); err == nil {
		u.budget, u.budgetsServed = b, true
	}
}

// awaitObserved waits until the controller has examined the latest spec.
func (u *fleetUpgrade) awaitObserved(tCtx ktesting.TContext) {
	tCtx.Helper()
	await(tCtx, "the spec to be examined", func(tCtx ktesting.TContext) {
		m := readMaintenance(tCtx, fleetName)
		halted := meta.FindStatusCondition(m.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionHalted))
		if halted == nil || halted.ObservedGeneration != m.Generation {
			tCtx.Fatalf("generation %d, condition %+v", m.Generation, halted)
		}
	})
}

// awaitWait waits until so many nodes of a maintenance wait for this reason, and no others.
func awaitWait(tCtx ktesting.TContext, name string, reason coordinationv1alpha1.NodeMaintenanceWaitReason, nodes int) {
	tCtx.Helper()
	await(tCtx, fmt.Sprintf("%d nodes of %s to wait with the reason %s", nodes, name, reason), func(tCtx ktesting.TContext) {
		status := readMaintenance(tCtx, name).Status.RolloutStatus
		if status == nil || len(status.WaitingFor) != 1 || status.WaitingFor[0].Reason != reason || int(status.WaitingFor[0].NodeCount) != nodes {
			tCtx.Fatalf("the status is %+v", status)
		}
	})
}

func patchNode(tCtx ktesting.TContext, name, patch string, subresources ...string) {
	tCtx.Helper()
	_, err := tCtx.Client().CoreV1().Nodes().Patch(tCtx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	tCtx.ExpectNoError(err, "patching node %s with %s", name, patch)
}

// heartbeat writes the status of a node, as its kubelet does.
func heartbeat(tCtx ktesting.TContext, name string) {
	tCtx.Helper()
	patchNode(tCtx, name, fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339)), "status")
}

func (u *fleetUpgrade) heartbeats(tCtx ktesting.TContext) {
	tCtx.Helper()
	for i := range poolNodes {
		heartbeat(tCtx, poolNode(i))
	}
}

// nodes returns those of the pool, sorted by name, and records how many are in progress and cordoned.
// A node that is in progress stays so until giveBack, so that none is missed.
func (u *fleetUpgrade) nodes(tCtx ktesting.TContext) []v1.Node {
	tCtx.Helper()
	list, err := tCtx.Client().CoreV1().Nodes().List(tCtx, metav1.ListOptions{LabelSelector: fleetLabel + "=" + fleetValue})
	tCtx.ExpectNoError(err)
	slices.SortFunc(list.Items, func(a, b v1.Node) int { return strings.Compare(a.Name, b.Name) })
	var now fleetLimits
	domains := sets.New[string]()
	for i := range list.Items {
		node := &list.Items[i]
		if node.Spec.Unschedulable {
			now.unavailable++
		}
		if a := maintenance.AdmissionOf(node, u.maintenance.UID); a != nil && a.DoneTime == nil {
			now.concurrent++
			domains.Insert(node.Labels[v1.LabelTopologyZone])
		}
	}
	u.most = fleetLimits{max(u.most.concurrent, now.concurrent), max(u.most.unavailable, now.unavailable), max(u.most.domains, domains.Len())}
	return list.Items
}

// expectLimits fails if there were ever more nodes in progress or cordoned than allowed.
func (u *fleetUpgrade) expectLimits(tCtx ktesting.TContext) {
	tCtx.Helper()
	if u.most.concurrent > u.limits.concurrent || u.most.unavailable > u.limits.unavailable || u.most.domains > u.limits.domains {
		tCtx.Fatalf("there were %+v, and allowed are %+v", u.most, u.limits)
	}
}

// progress returns which nodes are in progress, and which are given back.
func (u *fleetUpgrade) progress(tCtx ktesting.TContext) (working, done []int) {
	tCtx.Helper()
	for i, node := range u.nodes(tCtx) {
		switch a := maintenance.AdmissionOf(&node, u.maintenance.UID); {
		case a == nil:
		case a.DoneTime == nil:
			working = append(working, i)
		default:
			done = append(done, i)
		}
	}
	return working, done
}

// expectProgress fails unless these nodes are in progress and given back, and no others.
func (u *fleetUpgrade) expectProgress(tCtx ktesting.TContext, wantWorking, wantDone []int) {
	tCtx.Helper()
	working, done := u.progress(tCtx)
	if !slices.Equal(working, wantWorking) || !slices.Equal(done, wantDone) {
		tCtx.Fatalf("nodes %v are in progress and %v given back, must be %v and %v", working, done, wantWorking, wantDone)
	}
	u.expectLimits(tCtx)
}

// expectNoneBegins fails if a maintenance begins with a node of the pool for a while.
func (u *fleetUpgrade) expectNoneBegins(tCtx ktesting.TContext) {
	tCtx.Helper()
	working, done := u.progress(tCtx)
	for deadline := time.Now().Add(calm); time.Now().Before(deadline); time.Sleep(pollInterval) {
		u.expectProgress(tCtx, working, done)
	}
}

// awaitDrained waits until these nodes are drained.
func (u *fleetUpgrade) awaitDrained(tCtx ktesting.TContext, indexes ...int) {
	tCtx.Helper()
	await(tCtx, fmt.Sprintf("the nodes %v to be drained", indexes), func(tCtx ktesting.TContext) {
		nodes := u.nodes(tCtx)
		for _, i := range indexes {
			if a := maintenance.AdmissionOf(&nodes[i], u.maintenance.UID); a == nil || a.DrainedTime == nil || !nodes[i].Spec.Unschedulable {
				tCtx.Fatalf("node %s has the admission %+v, and is unschedulable: %t", nodes[i].Name, a, nodes[i].Spec.Unschedulable)
			}
		}
	})
	u.expectLimits(tCtx)
}

// giveBack says of these nodes that the work on them is done, as soon as they are drained, and
// waits until they are schedulable, but for those that somebody has cordoned by hand.
func (u *fleetUpgrade) giveBack(tCtx ktesting.TContext, indexes ...int) {
	tCtx.Helper()
	await(tCtx, fmt.Sprintf("the nodes %v to be given back", indexes), func(tCtx ktesting.TContext) {
		nodes, left := u.nodes(tCtx), []string(nil)
		for _, i := range indexes {
			a := maintenance.AdmissionOf(&nodes[i], u.maintenance.UID)
			if a != nil && a.DrainedTime != nil && a.ReturningTime == nil {
				patchNode(tCtx, nodes[i].Name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, coordinationv1alpha1.NodeDoneAnnotation, u.maintenance.UID))
			}
			if a == nil || a.DoneTime == nil || nodes[i].Spec.Unschedulable != u.cordonedByHand.Has(i) {
				left = append(left, fmt.Sprintf("%s: %+v", nodes[i].Name, a))
			}
		}
		if len(left) > 0 {
			tCtx.Fatalf("not given back: %q", left)
		}
	})
	u.expectLimits(tCtx)
}

// awaitEvent waits until there is an event on the maintenance.
func (u *fleetUpgrade) awaitEvent(tCtx ktesting.TContext, reason string) {
	tCtx.Helper()
	await(tCtx, "the event "+reason, func(tCtx ktesting.TContext) {
		events, err := tCtx.Client().CoreV1().Events(metav1.NamespaceDefault).List(tCtx, metav1.ListOptions{
			FieldSelector: "involvedObject.name=" + fleetName + ",reason=" + reason,
		})
		tCtx.ExpectNoError(err)
		if len(events.Items) == 0 {
			tCtx.Fatal("there is none")
		}
	})
}

// balancer is a load balancer in front of two API servers.
type balancer struct {
	*httptest.Server
	// spread is whether requests go to both, and not only to the first one.
	spread atomic.Bool
	// requests counts them since, and second those to the second server.
	requests, second atomic.Int64
	// written has the statuses of nodes that were written since.
	written sync.Map
}

// startBalancer starts one with the certificate of the API servers, which its clients expect.
func startBalancer(tCtx ktesting.TContext, first, second *rest.Config) *balancer {
	tCtx.Helper()
	certificate, err := tls.LoadX509KeyPair(first.CAFile, filepath.Join(filepath.Dir(first.CAFile), "server.key"))
	tCtx.ExpectNoError(err)
	var hosts []*url.URL
	for _, config := range []*rest.Config{first, second} {
		host, err := url.Parse(config.Host)
		tCtx.ExpectNoError(err)
		hosts = append(hosts, host)
	}
	b := &balancer{}
	b.Server = httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(hosts[b.choose(r.In)]) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true},
		FlushInterval: -1, // Watches are answered bit by bit.
		ErrorLog:      log.New(io.Discard, "", 0),
	})
	b.EnableHTTP2, b.TLS = true, &tls.Config{Certificates: []tls.Certificate{certificate}}
	b.StartTLS()
	tCtx.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
	})
	return b
}

// choose returns the number of the server for a request. The second one gets the first write of the
// status of each node, which is an admission in this test, and no other one: each admission that it
// does not store is tried again later than the one before. All else is random: a fixed order could
// keep a request from ever reaching one of them.
func (b *balancer) choose(r *http.Request) int {
	if !b.spread.Load() {
		return 0
	}
	b.requests.Add(1)
	chosen := rand.IntN(2)
	if r.Method == http.MethodPatch && strings.HasPrefix(r.URL.Path, "/api/v1/nodes/") && strings.HasSuffix(r.URL.Path, "/status") {
		chosen = 0
		if _, again := b.written.LoadOrStore(r.URL.Path, true); !again {
			chosen = 1
		}
	}
	b.second.Add(int64(chosen))
	return chosen
}
