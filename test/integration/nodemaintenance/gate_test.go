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
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
)

// withNamespace returns a cluster whose nodes and maintenances are kept when the test ends, for the
// next subtest.
func withNamespace(t *testing.T, config *rest.Config, namespace string) *cluster {
	return clusterIn(testcluster.In(t, config, namespace))
}

// TestFeatureGate disables the gate during maintenances, and enables it again, with one etcd. The
// subtests depend on each other.
func TestFeatureGate(t *testing.T) {
	etcd := framework.SharedEtcd()
	const namespace = "gate"
	before := map[string]*coordinationv1alpha1.NodeMaintenance{}
	var node *v1.Node
	t.Run("on", func(t *testing.T) {
		c := withNamespace(t, startAPIServer(t, etcd, true), namespace)
		if _, err := c.client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
			t.Fatalf("creating the namespace: %v", err)
		}
		c.createNode("one")
		c.createNode("two")
		c.createPod(newPod("leaves", "one", withInterceptor(stubborn)))
		c.createPod(newPod("stays", "one", withInterceptor(stubborn)))
		stop, _ := c.startQuick()
		c.createMaintenance(newMaintenance("draining", stageDrain, nodesNamed("one"), planOf()...))
		c.createMaintenance(newMaintenance("announced", stageIdle, nodesNamed("two"), planOf()...))
		c.await("the drain", states{
			"request/leaves": asked, "request/stays": asked, "node/one": draining, "node/two": planned, "maintenance/announced": "Idle of 1",
			"maintenance/draining": "Cordon, Drain of 1, finalizer, False: Draining",
		})
		c.settle()
		stop()
		node = c.node("one")
		for _, name := range []string{"draining", "announced"} {
			before[name] = c.maintenance(name)
		}
	})
	t.Run("off", func(t *testing.T) {
		c := withNamespace(t, startAPIServer(t, etcd, false), namespace)
		c.expectNotServed()
		c.expectStatusKept(node)
		c.deletePod(newPod("leaves", "one"))
	})
	t.Run("on again", func(t *testing.T) {
		c := withNamespace(t, startAPIServer(t, etcd, true), namespace)
		t.Cleanup(c.removeAll)
		for name, want := range before {
			if diff := cmp.Diff(want, c.maintenance(name)); diff != "" {
				t.Errorf("maintenance %s before and after the gate was off (-before +after):\n%s", name, diff)
			}
		}
		c.startQuick()
		c.await("the drain to continue", states{"request/stays": asked, "node/one": draining, "node/two": planned})
		c.deletePod(newPod("stays", "one"))
		c.await("the drain to finish", states{"node/one": empty, "maintenance/draining": "Cordon, Drain of 1, finalizer, True: Drained"})
		c.deleteMaintenance("draining")
		c.deleteMaintenance("announced")
		c.await("the nodes to be released", states{"node/one": free, "node/two": free, "maintenance/draining": "gone", "maintenance/announced": "gone"})
	})
}

// expectNotServed fails the test if the API server serves NodeMaintenances.
func (c *cluster) expectNotServed() {
	c.t.Helper()
	_, err := c.client.CoordinationV1alpha1().NodeMaintenances().Create(c.t.Context(), newMaintenance("new", stageIdle, nodesNamed("two"), planOf()...), metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) {
		c.t.Errorf("creating a maintenance with the gate off: %v, must be not found", err)
	}
	found, err := c.client.Discovery().ServerResourcesForGroupVersion("coordination.k8s.io/v1alpha1")
	if err != nil {
		c.t.Fatalf("discovering the resources: %v", err) // The group has the resource of the other gate.
	}
	for _, resource := range found.APIResources {
		if resource.Kind == "NodeMaintenance" {
			c.t.Errorf("with the gate off, the resource %s is served", resource.Name)
		}
	}
}

// expectStatusKept fails the test if a node loses its maintenanceStatus while the gate is off, or
// gets one.
func (c *cluster) expectStatusKept(node *v1.Node) {
	c.t.Helper()
	ctx := c.t.Context()
	if node.Status.MaintenanceStatus == nil {
		c.t.Fatal("the node had no maintenanceStatus: nothing to compare")
	}
	patch := []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	patched, err := c.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		c.t.Fatalf("writing a condition: %v", err)
	}
	c.labelNode(node.Name, "gate", "off")
	for _, now := range []*v1.Node{patched, c.node(node.Name)} {
		if diff := cmp.Diff(node.Status.MaintenanceStatus, now.Status.MaintenanceStatus); diff != "" {
			c.t.Errorf("maintenanceStatus with the gate off (-before +now):\n%s", diff)
		}
	}
	created, err := c.client.CoreV1().Nodes().Create(ctx, &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "new"}, Status: v1.NodeStatus{MaintenanceStatus: node.Status.MaintenanceStatus},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("creating a node: %v", err)
	}
	if created.Status.MaintenanceStatus != nil {
		c.t.Errorf("with the gate off a new node has the maintenanceStatus %+v", created.Status.MaintenanceStatus)
	}
	written, err := c.client.CoreV1().Nodes().Patch(ctx, "new", types.StrategicMergePatchType, []byte(`{"status":{"maintenanceStatus":{"drainMessage":"Draining"}}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		c.t.Fatalf("writing a maintenanceStatus: %v", err)
	}
	if written.Status.MaintenanceStatus != nil {
		c.t.Errorf("with the gate off a node got the maintenanceStatus %+v", written.Status.MaintenanceStatus)
	}
	c.deleteNode("new")
}
