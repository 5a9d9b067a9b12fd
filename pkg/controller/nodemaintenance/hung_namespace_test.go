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
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	applycoordination "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typedcoordination "k8s.io/client-go/kubernetes/typed/coordination/v1alpha1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"
)

// hungClient is a client whose writes of EvictionRequests in some namespaces, and of the status of some
// NodeMaintenances, get no response, as if an admission webhook hung there.
type hungClient struct {
	kubernetes.Interface
	// hangs reports whether the namespace is one of them.
	hangs func(namespace string) bool
	// released is closed at the end of the test.
	released chan struct{}
}

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
		<-m.client.released
		return nil, context.DeadlineExceeded
	}
	return m.NodeMaintenanceInterface.UpdateStatus(ctx, maintenance, options)
}

// While the status of some maintenances cannot be written, others go on.
func TestHungMaintenancesDelayNoOther(t *testing.T) {
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	client := &hungClient{Interface: fake.NewClientset(), released: make(chan struct{}), hangs: func(name string) bool { return name != "z-good" }}
	for _, name := range []string{"hung-0", "hung-1", "hung-2", "z-good"} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), Labels: map[string]string{"m": name}}}
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		m := &coordinationv1alpha1.NodeMaintenance{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1, Finalizers: []string{coordinationv1alpha1.NodeMaintenanceFinalizer}},
			Spec: coordinationv1alpha1.NodeMaintenanceSpec{Stage: stageCordon, NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: "m", Operator: v1.NodeSelectorOpIn, Values: []string{name}}},
			}}}},
		}
		if _, err := client.Interface.CoordinationV1alpha1().NodeMaintenances().Create(ctx, m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	factory := informers.NewSharedInformerFactory(client.Interface, 0)
	c, err := NewWithClock(ctx, factory.Coordination().V1alpha1().NodeMaintenances(), factory.Coordination().V1alpha1().EvictionRequests(), factory.Core().V1().Nodes(),
		factory.Core().V1().Pods(), factory.Policy().V1().PodDisruptionBudgets(), client, client, client, nil, nil, nil, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	stopped := make(chan struct{})
	go func() { defer close(stopped); c.Run(ctx, 4) }()
	defer func() { cancel(); close(client.released); <-stopped; factory.Shutdown() }()
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		m, err := client.Interface.CoordinationV1alpha1().NodeMaintenances().Get(ctx, "z-good", metav1.GetOptions{})
		return err == nil && len(m.Status.StageStatuses) > 0, err
	})
	if err != nil {
		t.Errorf("the status of the maintenance that does not hang: %v", err)
	}
}

// While the writes in some namespaces hang, nodes are cordoned, and the eviction of pods in other
// namespaces is requested, also on the same nodes.
func TestHungNamespacesDelayNoOther(t *testing.T) {
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	client := &hungClient{Interface: fake.NewClientset(), released: make(chan struct{}), hangs: func(namespace string) bool { return namespace != "fast" }}
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
	c, err := NewWithClock(ctx, factory.Coordination().V1alpha1().NodeMaintenances(), factory.Coordination().V1alpha1().EvictionRequests(), factory.Core().V1().Nodes(),
		factory.Core().V1().Pods(), factory.Policy().V1().PodDisruptionBudgets(), client, client, client, nil, nil, nil, clock.RealClock{})
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
