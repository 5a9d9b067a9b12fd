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

package deploymentsurge

import (
	"fmt"
	"testing"

	apps "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testAutoscaling acts as a HorizontalPodAutoscaler in mid-surge: it must not see the extra
// replica, and scales up.
func testAutoscaling(t *testing.T, c *cluster) {
	c.startControllers()
	history := c.watchAll()
	pods := c.startSurge(1)
	c.expect("what the autoscaler sees", states{"scale": "1 of 1"})
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: app, Namespace: c.Namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	if _, err := c.Client.AppsV1().Deployments(c.Namespace).UpdateScale(t.Context(), app, scale, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("scaling: %v", err)
	}
	c.await("more replicas", states{
		"replicaSets": "4 (1 extra, 0 leaving)", "pods": "1 ready, 3 not", "scale": "3 of 3",
		string(pods[0].UID): "Intercepting by deployment: Surging 0/1",
	})
	c.expectLiving(pods...)
	c.setUnready(none)
	c.awaitMoved(3, pods...)
	c.expectBounds(history, bounds{most: 4, least: 1, changes: true})
}

// testScaleDown scales down from three in mid-surge: the unready pod is deleted first, and then the
// requested pod. No replica is extra any more.
func testScaleDown(replicas int) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		c.startControllers()
		history := c.watchAll()
		pods := c.startSurge(3)
		c.scale(replicas)
		c.awaitMoved(replicas, pods[0])
		if strangers := c.others(pods...); len(strangers) > 0 {
			t.Errorf("pod %s is new, must be one of the old pods", strangers[0].Name)
		}
		c.expectBounds(history, bounds{most: 4, least: replicas, changes: true})
	}
}

// testStrategy changes the strategy in mid-surge to one without extra pods. The Deployment
// declines, and the next interceptor evicts the pod.
func testStrategy(strategy, message string) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		c.startControllers()
		history := c.watchAll()
		pods := c.startSurge(2)
		c.patch(`{"spec":{"strategy":` + strategy + `}}`)
		c.await("the surge to be reverted", states{string(pods[0].UID): "Evicted", "replicaSets": "2", "pods": "1 ready, 1 not", "condition": "none"})
		c.expectMessage(pods[0], coordinationv1alpha1.EvictionInterceptorDeployment, message)
		c.expectTurn(pods[0], coordinationv1alpha1.EvictionInterceptorReplicaSet)
		c.expectLiving(pods[1])
		c.setUnready(none)
		c.awaitMoved(2, pods[0])
		c.expectBounds(history, bounds{most: 3, changes: true})
	}
}

// testDeleted deletes the Deployment in mid-surge together with its pods.
func testDeleted(policy metav1.DeletionPropagation) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		c.startControllers()
		pods := c.startSurge(2)
		c.delete(policy)
		c.await("everything to be gone", states{string(pods[0].UID): "Evicted", "deployment": "none", "replicaSets": "0", "pods": "0 ready"})
	}
}

func (c *cluster) delete(policy metav1.DeletionPropagation) {
	c.T.Helper()
	if err := c.Client.AppsV1().Deployments(c.Namespace).Delete(c.T.Context(), app, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		c.T.Fatalf("deleting the deployment: %v", err)
	}
}

// testOrphaned deletes the Deployment in mid-surge and orphans its ReplicaSet. The surge ends, and
// the next interceptor evicts the pod. The Deployment reverts its surge if its controller sees the
// deletion before the garbage collector does. Otherwise the ReplicaSet keeps the extra replica.
func testOrphaned(t *testing.T, c *cluster) {
	c.startControllers()
	pods := c.startSurge(2)
	c.delete(metav1.DeletePropagationOrphan)
	c.await("the Deployment to be gone", states{"deployment": "none"})
	c.setUnready(none)
	c.await("the pod to be gone", states{string(pods[0].UID): "Evicted"})
	replicas := int(*c.replicaSets()[0].Spec.Replicas)
	if replicas != 2 && replicas != 3 {
		t.Errorf("the ReplicaSet has %d replicas, want 2, or 3 with the extra one", replicas)
	}
	c.await("the pods to be ready", states{"pods": fmt.Sprintf("%d ready", replicas)})
	c.expectLiving(pods[1])
}

// testHandOver orphans the ReplicaSet in mid-surge, and a new Deployment of the same name adopts
// it.
func testHandOver(t *testing.T, c *cluster) {
	c.startControllers()
	pods := c.startSurge(2)
	c.delete(metav1.DeletePropagationOrphan)
	c.await("the Deployment to be gone", states{"deployment": "none"})
	if _, err := c.Client.AppsV1().Deployments(c.Namespace).Create(t.Context(), newDeployment(2), metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating the deployment again: %v", err)
	}
	c.setUnready(none)
	c.awaitMoved(2, pods[0])
	c.expectLiving(pods[1])
}

// testPodDeletedByAnotherClient deletes the waiting pod as another client.
func testPodDeletedByAnotherClient(t *testing.T, c *cluster) {
	c.startControllers()
	history := c.watchAll()
	pods := c.startSurge(2)
	if err := c.Client.CoreV1().Pods(c.Namespace).Delete(t.Context(), pods[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting pod %s: %v", pods[0].Name, err)
	}
	c.await("the surge to be reverted", states{string(pods[0].UID): "Evicted", "replicaSets": "2", "pods": "1 ready, 1 not", "condition": "none"})
	c.setUnready(none)
	c.awaitMoved(2, pods[0])
	c.expectLiving(pods[1])
	c.expectBounds(history, bounds{most: 3, changes: true})
}

// annotate sets the annotation of a surge on the ReplicaSet, as any user may.
func (c *cluster) annotate(patch string) {
	c.T.Helper()
	for _, rs := range c.replicaSets() {
		if _, err := c.Client.AppsV1().ReplicaSets(c.Namespace).Patch(c.T.Context(), rs.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			c.T.Fatalf("patching replicaset %s with %s: %v", rs.Name, patch, err)
		}
	}
}

func (c *cluster) replicaSets() []apps.ReplicaSet {
	c.T.Helper()
	list, err := c.Client.AppsV1().ReplicaSets(c.Namespace).List(c.T.Context(), metav1.ListOptions{})
	if err != nil {
		c.T.Fatalf("listing replicasets: %v", err)
	}
	return list.Items
}
