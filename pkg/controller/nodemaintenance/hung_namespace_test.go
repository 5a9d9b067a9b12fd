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
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	applycoordination "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typedcoordination "k8s.io/client-go/kubernetes/typed/coordination/v1alpha1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/controller/util/serverclock"
	"k8s.io/utils/clock"
)

// hungClient is a client whose writes of EvictionRequests in some namespaces, and of the status of some
// NodeMaintenances, get no response, as if an admission webhook hung there.
type hungClient struct {
	clientset.Interface
	// hangs reports whether the namespace is one of them.
	hangs func(namespace string) bool
	// released is closed at the end of the test.
	released chan struct{}
	// nodes and maintenances are how many writes of them hang.
	nodes, maintenances atomic.Int32
}

// isHung reports whether what has this name hangs.
func isHung(name string) bool { return strings.HasPrefix(name, "hung-") }

func (c *hungClient) CoordinationV1alpha1() typedcoordination.CoordinationV1alpha1Interface {
	return &hungCoordination{c.Interface.CoordinationV1alpha1(), c}
}

type hungCoordination struct {
	typedcoordination.CoordinationV1alpha1Interface
	client *hungClient
}

func (c *hungCoordination) EvictionRequests(namespace string) typedcoordination.EvictionRequestInterface {
	return &hungRequests{c.CoordinationV1alpha1Interface.EvictionRequests(namespace), c.client, namespace}
}

type hungRequests struct {
	typedcoordination.EvictionRequestInterface
	client    *hungClient
	namespace string
}

// Apply waits for the end of the test and ignores its context: no timeout ends a hung write.
func (r *hungRequests) Apply(ctx context.Context, request *applycoordination.EvictionRequestApplyConfiguration, options metav1.ApplyOptions) (*coordinationv1alpha1.EvictionRequest, error) {
	if r.client.hangs(r.namespace) {
		<-r.client.released
		return nil, context.DeadlineExceeded
	}
	return r.EvictionRequestInterface.Apply(ctx, request, options)
}

func (c *hungCoordination) NodeMaintenances() typedcoordination.NodeMaintenanceInterface {
	return &hungMaintenances{c.CoordinationV1alpha1Interface.NodeMaintenances(), c.client}
}

type hungMaintenances struct {
	typedcoordination.NodeMaintenanceInterface
	client *hungClient
}

// UpdateStatus hangs for maintenances whose name hangs as a namespace.
func (m *hungMaintenances) UpdateStatus(ctx context.Context, maintenance *coordinationv1alpha1.NodeMaintenance, options metav1.UpdateOptions) (*coordinationv1alpha1.NodeMaintenance, error) {
	if m.client.hangs(maintenance.Name) {
		m.client.maintenances.Add(1)
		<-m.client.released
		return nil, context.DeadlineExceeded
	}
	return m.NodeMaintenanceInterface.UpdateStatus(ctx, maintenance, options)
}

func (c *hungClient) CoreV1() typedcore.CoreV1Interface { return &hungCore{c.Interface.CoreV1(), c} }

type hungCore struct {
	typedcore.CoreV1Interface
	client *hungClient
}

func (c *hungCore) Nodes() typedcore.NodeInterface {
	return &hungNodes{c.CoreV1Interface.Nodes(), c.client}
}

type hungNodes struct {
	typedcore.NodeInterface
	client *hungClient
}

// Patch hangs for nodes whose name hangs as a namespace.
func (n *hungNodes) Patch(ctx context.Context, name string, patch types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*v1.Node, error) {
	if n.client.hangs(name) {
		n.client.nodes.Add(1)
		<-n.client.released
		return nil, context.DeadlineExceeded
	}
	return n.NodeInterface.Patch(ctx, name, patch, data, options, subresources...)
}

// While some nodes, and the status of some maintenances, cannot be written, others go on.
func TestHungMaintenancesDelayNoOther(t *testing.T) {
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	client := &hungClient{Interface: fake.NewClientset(), released: make(chan struct{}), hangs: isHung}
	const workers = 4
	maintain := func(name string, nodes ...string) {
		t.Helper()
		for _, node := range nodes {
			if _, err := client.CoreV1().Nodes().Create(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, UID: types.UID(node), Labels: map[string]string{"m": name}}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		m := &coordinationv1alpha1.NodeMaintenance{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1, Finalizers: []string{coordinationv1alpha1.NodeMaintenanceFinalizer}},
			Spec: coordinationv1alpha1.NodeMaintenanceSpec{Stage: stageCordon, NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: "m", Operator: v1.NodeSelectorOpIn, Values: []string{name}}},
			}}}},
		}
		if _, err := client.CoordinationV1alpha1().NodeMaintenances().Create(ctx, m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	await := func(what string, is func(ctx context.Context) (bool, error)) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 20*time.Second, true, is); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range workers - 1 {
		maintain(fmt.Sprintf("hung-%d", i), fmt.Sprintf("hung-%d-a", i), fmt.Sprintf("hung-%d-b", i), fmt.Sprintf("hung-%d-c", i))
	}
	factory := informers.NewSharedInformerFactory(client.Interface, 0)
	c, err := New(ctx, configOf(factory, client, client, client))
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	stopped := make(chan struct{})
	go func() { defer close(stopped); c.Run(ctx, workers) }()
	defer func() { cancel(); close(client.released); <-stopped; factory.Shutdown() }()
	await("writes hang", func(context.Context) (bool, error) {
		return client.nodes.Load() > workers && client.maintenances.Load() == workers-1, nil
	})
	maintain("good", "good")
	await("the maintenance that does not hang, and its node", func(ctx context.Context) (bool, error) {
		m, err := client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, "good", metav1.GetOptions{})
		if err != nil || len(m.Status.StageStatuses) == 0 {
			return false, err
		}
		node, err := client.CoreV1().Nodes().Get(ctx, "good", metav1.GetOptions{})
		return err == nil && node.Spec.Unschedulable, err
	})
}

// While the writes in some namespaces hang, nodes are cordoned, and the eviction of pods in other
// namespaces is requested, also on the same nodes.
func TestHungNamespacesDelayNoOther(t *testing.T) {
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	client := &hungClient{Interface: fake.NewClientset(), released: make(chan struct{}), hangs: isHung}
	const nodes, podsPerNode, hungNamespaces = 20, 10, 3
	uid := 0
	newUID := func() types.UID { uid++; return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", uid)) }
	for n := range nodes {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%02d", n), UID: newUID(), Labels: map[string]string{"a": ""}}}
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for p := range podsPerNode + 1 {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("hung-%d", p%hungNamespaces), Name: fmt.Sprintf("p%d-%d", n, p), UID: newUID()}, Spec: v1.PodSpec{NodeName: node.Name}}
			if p == podsPerNode {
				pod.Namespace = "fast"
			}
			if _, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	m := &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "m", UID: newUID(), Generation: 1},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{Stage: stageDrain, DrainPlan: maintenance.StandardPlan(), NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: "a", Operator: v1.NodeSelectorOpExists}},
		}}}},
	}
	if _, err := client.CoordinationV1alpha1().NodeMaintenances().Create(ctx, m, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client.Interface, 0)
	c, err := New(ctx, configOf(factory, client, client, client))
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	stopped := make(chan struct{})
	go func() { defer close(stopped); c.Run(ctx, 4) }()
	defer func() { cancel(); close(client.released); <-stopped; factory.Shutdown() }()
	requested := 0
	if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		list, err := client.CoordinationV1alpha1().EvictionRequests("").List(ctx, metav1.ListOptions{})
		requested = len(list.Items)
		return requested == nodes, err
	}); err != nil {
		t.Errorf("%d of %d evictions in the namespace that responds were requested: %v", requested, nodes, err)
	}
}

// configOf returns the configuration of a controller that reads from a factory, without what is optional.
func configOf(factory informers.SharedInformerFactory, client, requestClient, eventClient clientset.Interface) Config {
	return Config{
		Maintenances: factory.Coordination().V1alpha1().NodeMaintenances(), Requests: factory.Coordination().V1alpha1().EvictionRequests(),
		Nodes: factory.Core().V1().Nodes(), Pods: factory.Core().V1().Pods(), PodDisruptionBudgets: factory.Policy().V1().PodDisruptionBudgets(),
		Client: client, RequestClient: requestClient, EventClient: eventClient, Clock: serverclock.New(clock.RealClock{}),
	}
}
