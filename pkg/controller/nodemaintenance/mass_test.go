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
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycoordination "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typedcoordination "k8s.io/client-go/kubernetes/typed/coordination/v1alpha1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
)

// pacedClient is a client whose writes of nodes and requests wait for its rate limit.
type pacedClient struct {
	kubernetes.Interface
	lock sync.Mutex
	// interval is the time between two writes.
	interval time.Duration
	next     time.Time
}

func newPacedClient(client kubernetes.Interface) *pacedClient {
	return &pacedClient{Interface: client, interval: 10 * time.Millisecond}
}

func (c *pacedClient) slowDown(interval time.Duration) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.interval = interval
}

func (c *pacedClient) wait() {
	c.lock.Lock()
	if now := time.Now(); c.next.Before(now) {
		c.next = now
	}
	c.next = c.next.Add(c.interval)
	until := time.Until(c.next)
	c.lock.Unlock()
	time.Sleep(until)
}

func (c *pacedClient) CoreV1() typedcore.CoreV1Interface { return &pacedCore{c.Interface.CoreV1(), c} }

func (c *pacedClient) CoordinationV1alpha1() typedcoordination.CoordinationV1alpha1Interface {
	return &pacedCoordination{c.Interface.CoordinationV1alpha1(), c}
}

type pacedCore struct {
	typedcore.CoreV1Interface
	client *pacedClient
}

func (c *pacedCore) Nodes() typedcore.NodeInterface {
	return &pacedNodes{c.CoreV1Interface.Nodes(), c.client}
}

type pacedNodes struct {
	typedcore.NodeInterface
	client *pacedClient
}

func (n *pacedNodes) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*v1.Node, error) {
	n.client.wait()
	return n.NodeInterface.Patch(ctx, name, kind, data, options, subresources...)
}

type pacedCoordination struct {
	typedcoordination.CoordinationV1alpha1Interface
	client *pacedClient
}

func (c *pacedCoordination) EvictionRequests(namespace string) typedcoordination.EvictionRequestInterface {
	return &pacedRequests{c.CoordinationV1alpha1Interface.EvictionRequests(namespace), c.client}
}

type pacedRequests struct {
	typedcoordination.EvictionRequestInterface
	client *pacedClient
}

func (r *pacedRequests) Apply(ctx context.Context, request *applycoordination.EvictionRequestApplyConfiguration, options metav1.ApplyOptions) (*coordinationv1alpha1.EvictionRequest, error) {
	r.client.wait()
	return r.EvictionRequestInterface.Apply(ctx, request, options)
}

// massDrain is the drain of many nodes, in a synctest bubble: the controller with its real queues
// and workers, and clients with rate limits that the drain keeps busy for many seconds.
type massDrain struct {
	t      *testing.T
	ctx    context.Context
	client kubernetes.Interface
	// nodeClient is the one that the controller writes nodes with.
	nodeClient *pacedClient
	uids       int
}

const (
	massNodes       = 150
	massPodsPerNode = 6
)

// inMassDrain starts the drain of all nodes with the label mass, waits until some evictions are
// requested, and runs the test.
func inMassDrain(t *testing.T, test func(*massDrain)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		_, ctx := ktesting.NewTestContext(t)
		ctx, cancel := context.WithCancel(ctx)
		client, _ := newVersionedClient()
		d := &massDrain{t: t, ctx: ctx, client: client, nodeClient: newPacedClient(client)}
		d.createNodes("mass", massNodes, massPodsPerNode)
		d.createNodes("few", 3, 1)
		d.createMaintenance("mass")
		factory := informers.NewSharedInformerFactory(client, 0)
		c, err := New(ctx, configOf(factory, d.nodeClient, newPacedClient(client), client))
		if err != nil {
			t.Fatal(err)
		}
		factory.Start(ctx.Done())
		stopped := make(chan struct{})
		go func() { defer close(stopped); c.Run(ctx, 10) }()
		defer func() { cancel(); <-stopped; factory.Shutdown() }()
		d.await("the first requests", time.Minute, func() bool { return d.requested("mass") >= massNodes })
		test(d)
	})
}

func (d *massDrain) newUID() types.UID {
	d.uids++
	return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", d.uids))
}

func (d *massDrain) createNodes(label string, nodes, podsPerNode int) {
	d.t.Helper()
	for n := range nodes {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%03d", label, n), UID: d.newUID(), Labels: map[string]string{label: ""}}}
		if _, err := d.client.CoreV1().Nodes().Create(d.ctx, node, metav1.CreateOptions{}); err != nil {
			d.t.Fatal(err)
		}
		for p := range podsPerNode {
			pod := &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", node.Name, p), UID: d.newUID(), Labels: map[string]string{"of": label}},
				Spec:       v1.PodSpec{NodeName: node.Name},
			}
			if _, err := d.client.CoreV1().Pods(pod.Namespace).Create(d.ctx, pod, metav1.CreateOptions{}); err != nil {
				d.t.Fatal(err)
			}
		}
	}
}

func (d *massDrain) createMaintenance(label string) {
	d.t.Helper()
	m := &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: label, UID: d.newUID(), Generation: 1},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{Stage: stageDrain, DrainPlan: maintenance.StandardPlan(), NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: label, Operator: v1.NodeSelectorOpExists}},
		}}}},
	}
	if _, err := d.client.CoordinationV1alpha1().NodeMaintenances().Create(d.ctx, m, metav1.CreateOptions{}); err != nil {
		d.t.Fatal(err)
	}
}

// requested counts the requests for pods on the nodes with the label.
func (d *massDrain) requested(label string) int {
	d.t.Helper()
	list, err := d.client.CoordinationV1alpha1().EvictionRequests("").List(d.ctx, metav1.ListOptions{LabelSelector: "of=" + label})
	if err != nil {
		d.t.Fatal(err)
	}
	return len(list.Items)
}

func (d *massDrain) status(name string) coordinationv1alpha1.DrainStatus {
	d.t.Helper()
	m, err := d.client.CoordinationV1alpha1().NodeMaintenances().Get(d.ctx, name, metav1.GetOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	return m.Status.DrainStatus
}

func (d *massDrain) await(what string, atMost time.Duration, done func() bool) {
	d.t.Helper()
	for deadline := time.Now().Add(atMost); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.t.Fatalf("%s: not within %s; %d of %d evictions in the large drain were requested", what, atMost, d.requested("mass"), massNodes*massPodsPerNode)
		}
	}
}

// The eviction of pods on three nodes is requested at once, although requests for hundreds of pods
// wait. That also applies to nodes that the large drain has as well.
func TestDrainOfFewNodesDoesNotWaitForManyOthers(t *testing.T) {
	inMassDrain(t, func(d *massDrain) {
		d.createMaintenance("few")
		d.await("the requests of the second drain", time.Second, func() bool { return d.requested("few") == 3 })
		d.await("its status", pace.StatusInterval+time.Second, func() bool { return d.status("few").ActiveEvictionRequests == 3 })
		if left := massNodes*massPodsPerNode - d.requested("mass"); left < 300 {
			t.Errorf("only %d requests of the first drain waited", left)
		}
	})
}

// While requests and the statuses of nodes wait, the status of the maintenance is at most two seconds
// behind: it is written at most once a second.
func TestProgressDoesNotWaitForWrites(t *testing.T) {
	inMassDrain(t, func(d *massDrain) {
		d.nodeClient.slowDown(time.Second)
		var requested []int
		for range 40 {
			requested = append(requested, d.requested("mass"))
			if i := len(requested) - 21; i >= 0 {
				if status := d.status("mass"); int(status.ActiveEvictionRequests) < requested[i] {
					t.Errorf("status: %d active, but two seconds before there were %d already", status.ActiveEvictionRequests, requested[i])
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		if requested[0] == requested[len(requested)-1] {
			t.Error("nothing was requested meanwhile")
		}
	})
}

// Counts of pods are the least urgent writes to nodes: they have a queue of their own.
func TestCountsOfPodsAreLessUrgent(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pods := f.createPods(2, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	for _, test := range []struct {
		pod               *v1.Pod
		writes, refreshes []string
	}{
		{pod: pods[0], refreshes: []string{"n"}},
		{pod: pods[1], writes: []string{"n"}}, // The node is drained.
	} {
		f.clock.Step(pace.StatusInterval)
		f.deletePods(test.pod)
		f.deliverAll()
		if err := f.syncNode(f.ctx, "n"); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(f.writeQueue.keys, test.writes) || !slices.Equal(f.refreshQueue.keys, test.refreshes) {
			t.Errorf("queued %v and %v, want %v and %v", f.writeQueue.keys, f.refreshQueue.keys, test.writes, test.refreshes)
		}
		f.settle()
	}
	if got := f.drains("n")["n"]; !strings.HasPrefix(got, "0/0 Drained ") {
		t.Errorf("the node: %s", got)
	}
}

// The node is in two queues. Only one worker writes it at a time, and it is decided on again after that.
func TestOneWorkerWritesANode(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	for range 3 {
		f.deliverAll()
		f.syncOnly("m")
	}
	f.nodeQueue.later = map[string]time.Time{}
	f.writing.Store("n", nil)
	if err := f.writeNode(f.ctx, "n"); err != nil || f.node("n").Spec.Unschedulable {
		t.Errorf("written by two workers: %v", err)
	}
	if f.nodeQueue.later["n"].IsZero() {
		t.Error("not decided on again")
	}
	f.writing.Delete("n")
	f.settle()
	if !f.node("n").Spec.Unschedulable {
		t.Error("not cordoned")
	}
}

// A refresh is followed by a pause, which ends early only with the controller.
func TestRefreshesArePaced(t *testing.T) {
	for name, test := range map[string]struct {
		step    time.Duration
		stopped bool
		want    bool
	}{
		"too early":            {step: pace.RefreshInterval - 1},
		"after the interval":   {step: pace.RefreshInterval, want: true},
		"the controller stops": {stopped: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.createNode("n", nil)
				f.deliverAll()
				ctx, cancel := context.WithCancel(f.ctx)
				ended := false
				go func() {
					if err := f.refreshNode(ctx, "n"); err != nil {
						t.Errorf("unexpected error: %v", err)
					}
					ended = true
				}()
				synctest.Wait()
				f.clock.Step(test.step)
				if test.stopped {
					cancel()
				}
				synctest.Wait()
				if ended != test.want {
					t.Errorf("ended: %t, want %t", ended, test.want)
				}
				cancel()
			})
		})
	}
}

// A node of several maintenances is queued with the smallest one.
func TestFlowOfANode(t *testing.T) {
	f := newFixture(t)
	f.createNode("n1", map[string]string{"all": ""})
	f.createNode("n2", map[string]string{"all": "", "few": ""})
	f.createNode("n3", nil)
	f.createMaintenance("all", stageDrain, "all", maintenance.StandardPlan()...)
	f.createMaintenance("few", stageDrain, "few", maintenance.StandardPlan()...)
	f.settle()
	for node, want := range map[string]string{"n1": "all", "n2": "few", "n3": ""} {
		if got := f.flowOf(node); got != want {
			t.Errorf("%s is in the flow %q, want %q", node, got, want)
		}
	}
}
