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

package nodemaintenance

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/controller/util/serverclock"
	"k8s.io/utils/clock"
)

// handover is a cluster whose leader has stopped: one maintenance is in the middle of its plan on
// two nodes. Another one, which shares a node with a third, was set to the stage Complete since
// then: the next leader only has to complete it.
type handover struct {
	nodes        []v1.Node
	pods         []v1.Pod
	requests     []coordinationv1alpha1.EvictionRequest
	maintenances []coordinationv1alpha1.NodeMaintenance
	// nodesAfter are the expected nodes after the completion.
	nodesAfter map[string]string
}

func newHandover(t *testing.T) *handover {
	t.Helper()
	f := newFixture(t)
	f.createNode("n1", map[string]string{"a": ""})
	f.createNode("n2", map[string]string{"a": ""})
	f.createNode("n3", map[string]string{"b": "", "c": ""})
	f.createNode("n4", map[string]string{"c": ""})
	f.createPods(1, "n1", 2000)
	f.createPods(1, "n2", 1000)
	f.createPods(1, "n2", 2000)
	f.createMaintenance("m", stageDrain, "a", plan(entry(v1.PodTypeDefault, 1000), entry(v1.PodTypeDefault, 2000))...)
	f.createMaintenance("keep", stageCordon, "b")
	f.createMaintenance("done", stageCordon, "c")
	f.settle()
	f.setStage("done", stageComplete)
	c := f.cluster()
	requests, err := f.client.CoordinationV1alpha1().EvictionRequests("").List(f.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h := &handover{nodes: c.nodes, maintenances: c.maintenances, requests: requests.Items, nodesAfter: map[string]string{
		"n1": "true 1/0 Waiting for m. Default<=1000", "n2": "true 1/1 Draining Default<=1000", "n3": "true 0/0  ", "n4": "false",
	}}
	// An invalid maintenance is ignored, and delays nothing.
	h.maintenances = append(h.maintenances, coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "invalid", UID: f.newUID(), Generation: 1},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{Stage: stageIdle, NodeSelector: &v1.NodeSelector{}, DrainPlan: []v1.DrainPlanEntry{{
			PodType: v1.PodTypeDefault, PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "?"}}},
		}}},
	})
	for _, pods := range c.pods {
		for _, pod := range pods {
			h.pods = append(h.pods, *pod)
		}
	}
	return h
}

// gate delays the events of an informer until it is opened.
type gate struct {
	cache.SharedIndexInformer
	opened chan struct{}
}

func (g *gate) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return g.SharedIndexInformer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(object any, initial bool) { <-g.opened; handler.OnAdd(object, initial) },
		UpdateFunc: func(old, object any) { <-g.opened; handler.OnUpdate(old, object) },
		DeleteFunc: func(object any) { <-g.opened; handler.OnDelete(object) },
	})
}

// successor is the controller of the next leader, in a synctest bubble, with its real queues,
// workers and informers. The test starts the informers.
type successor struct {
	t      *testing.T
	client *fake.Clientset
	gates  []*gate
	// ended is closed when Run has returned.
	ended chan struct{}
}

// startSuccessor starts a controller for the cluster. Its gates are those of maintenances,
// requests, nodes, pods and budgets, in this order.
func (h *handover) startSuccessor(ctx context.Context, t *testing.T) *successor {
	t.Helper()
	client, tracker := newVersionedClient()
	var objects []runtime.Object
	for i := range h.nodes {
		objects = append(objects, &h.nodes[i])
	}
	for i := range h.pods {
		objects = append(objects, &h.pods[i])
	}
	for i := range h.maintenances {
		objects = append(objects, &h.maintenances[i])
	}
	for _, object := range objects {
		if err := tracker.Add(object.DeepCopyObject()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range h.requests {
		if err := tracker.requests.Add(h.requests[i].DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	tracker.version = 10000
	s := &successor{t: t, client: client, ended: make(chan struct{})}
	client.PrependReactor("patch", "nodes", s.check)
	factory := informers.NewSharedInformerFactory(client, 0)
	maintenances, requests := factory.Coordination().V1alpha1().NodeMaintenances(), factory.Coordination().V1alpha1().EvictionRequests()
	nodes, pods, budgets := factory.Core().V1().Nodes(), factory.Core().V1().Pods(), factory.Policy().V1().PodDisruptionBudgets()
	for _, informer := range []cache.SharedIndexInformer{maintenances.Informer(), requests.Informer(), nodes.Informer(), pods.Informer(), budgets.Informer()} {
		s.gates = append(s.gates, &gate{informer, make(chan struct{})})
	}
	c, err := New(ctx, Config{
		Maintenances: handledMaintenances{maintenances, s.gates[0]}, Requests: handledRequests{requests, s.gates[1]},
		Nodes: handledNodes{nodes, s.gates[2]}, Pods: handledPods{pods, s.gates[3]}, PodDisruptionBudgets: budgets,
		Client: client, RequestClient: client, EventClient: client, Clock: serverclock.New(clock.RealClock{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		c.Run(ctx, 1)
		close(s.ended)
	}()
	return s
}

// check fails the test if a node is uncordoned that a maintenance claims.
func (s *successor) check(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchAction)
	if strings.Contains(string(patch.GetPatch()), `"unschedulable":false`) && patch.GetName() != "n4" {
		s.t.Errorf("node %s was uncordoned", patch.GetName())
	}
	return false, nil, nil
}

// writes returns the writes so far, except for events.
func (s *successor) writes() []string {
	var writes []string
	for _, action := range s.client.Actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) && action.GetResource().Resource != "events" {
			writes = append(writes, action.GetVerb()+" "+action.GetResource().Resource)
		}
	}
	return writes
}

// waitUntilIdle waits for a minute of fake time, and until all goroutines of the bubble are
// blocked: what has not happened by then does not happen.
func waitUntilIdle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

// expectHandedOver checks that the completion is done, and that the progress of others is kept.
func (s *successor) expectHandedOver(ctx context.Context, h *handover) {
	s.t.Helper()
	nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	got := map[string]string{}
	for _, node := range nodes.Items {
		got[node.Name] = "false"
		if status := node.Status.MaintenanceStatus; node.Spec.Unschedulable && status != nil {
			got[node.Name] = "true " + drainLine(s.t, status.PodsPendingEvictionRequest, status.ActiveEvictionRequests, status.DrainMessage, status.DrainTargets)
		}
	}
	if diff := cmp.Diff(h.nodesAfter, got); diff != "" {
		s.t.Errorf("nodes (-want, +got):\n%s", diff)
	}
	for _, before := range h.maintenances {
		m, err := s.client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, before.Name, metav1.GetOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		if m.Name == "done" {
			if len(m.Finalizers) > 0 {
				s.t.Errorf("not completed: %+v", m)
			}
		} else if diff := cmp.Diff(before.Status, m.Status); diff != "" {
			s.t.Errorf("status of %s (-before, +after):\n%s", m.Name, diff)
		}
	}
	if writes := s.writes(); slices.Contains(writes, "patch evictionrequests") {
		s.t.Errorf("writes: %q", writes)
	}
	recorded, err := s.client.EventsV1().Events("").List(ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	if !slices.ContainsFunc(recorded.Items, func(e eventsv1.Event) bool { return e.Reason == "NodeUncordoned" && e.Regarding.Name == "n4" }) {
		s.t.Errorf("events: %+v", recorded.Items)
	}
	if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(`
# HELP nodemaintenance_controller_nodes [ALPHA] Number of nodes that a maintenance selects, by the stage that they are in: Idle, Cordon, Drain or Complete.
# TYPE nodemaintenance_controller_nodes gauge
nodemaintenance_controller_nodes{stage="Complete"} 0
nodemaintenance_controller_nodes{stage="Cordon"} 1
nodemaintenance_controller_nodes{stage="Drain"} 2
nodemaintenance_controller_nodes{stage="Idle"} 0
`), "nodemaintenance_controller_nodes"); err != nil {
		s.t.Error(err)
	}
}

// permutations returns all orders of the numbers below n.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, order := range permutations(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(order), at, n-1))
		}
	}
	return all
}

// Nothing is written until all caches have synced, in any order. Then the completion is finished,
// and no progress is lost.
func TestCachesSyncInAnyOrder(t *testing.T) {
	h := newHandover(t)
	for _, order := range permutations(5) {
		h.inBubble(t, func(ctx context.Context, s *successor) {
			for _, g := range s.gates {
				close(g.opened)
			}
			for at, i := range order {
				waitUntilIdle()
				if writes := s.writes(); len(writes) > 0 {
					s.t.Fatalf("after %d caches of the order %v have synced: writes %q", at, order, writes)
				}
				go s.gates[i].Run(ctx.Done())
			}
			waitUntilIdle()
			s.expectHandedOver(ctx, h)
		})
	}
}

// Events of existing objects may arrive after the workers have started, in any order: a node is not
// released before the events of the maintenances that claim it have arrived.
func TestEventsArriveInAnyOrder(t *testing.T) {
	h := newHandover(t)
	for _, order := range permutations(4) {
		h.inBubble(t, func(ctx context.Context, s *successor) {
			for _, g := range s.gates {
				go g.Run(ctx.Done())
			}
			for _, i := range order {
				waitUntilIdle()
				close(s.gates[i].opened)
			}
			waitUntilIdle()
			s.expectHandedOver(ctx, h)
		})
	}
}

// inBubble runs the test with a new successor in a synctest bubble, and stops it at the end.
func (h *handover) inBubble(t *testing.T, test func(context.Context, *successor)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		_, ctx := ktesting.NewTestContext(t)
		ctx, cancel := context.WithCancel(ctx)
		s := h.startSuccessor(ctx, t)
		defer func() {
			cancel()
			<-s.ended
			synctest.Wait()
		}()
		test(ctx, s)
	})
}
