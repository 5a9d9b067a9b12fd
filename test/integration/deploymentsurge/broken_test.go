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
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/controller/util/evictionturn"
)

// createWithBroken creates a Deployment with two pods. The second one breaks after it was ready.
func (c *cluster) createWithBroken(options ...func(*apps.Deployment)) (healthy, broken *v1.Pod) {
	c.T.Helper()
	pods := c.createDeployment(newDeployment(2, options...))
	c.setUnready(anyOf(pods[1]))
	c.await("the broken pod", states{"pods": "1 ready, 1 not", "deployment": "1 of 2", "endpoints": "1 ready"})
	return pods[0], pods[1]
}

// testBrokenRequested evicts a pod that never becomes ready. It leaves although only the wanted
// number of pods is ready then, because it does not serve.
func testBrokenRequested(t *testing.T, c *cluster) {
	c.startControllers()
	healthy, broken := c.createWithBroken()
	history := c.watchAll()
	// If the pod is gone first, the turn ends without this message.
	c.setLingering(anyOf(broken))
	c.request(broken)
	// A pod counts as broken after 30 seconds.
	c.awaitMessage(broken, coordinationv1alpha1.EvictionInterceptorDeployment, "The pod is terminating.")
	c.setLingering(none)
	c.awaitMoved(2, broken)
	c.expectLiving(healthy)
	c.expectBounds(history, bounds{most: 3, least: 1, changes: true})
}

// testBrokenBeside evicts a pod while another one is broken and not requested. The broken pod
// cannot be distinguished from a replacement that does not start, and blocks the other one until
// the deadline.
func testBrokenBeside(t *testing.T, c *cluster) {
	c.startControllers()
	healthy, broken := c.createWithBroken(withDeadline(3))
	history := c.watchAll()
	c.request(healthy)
	// If the ReplicaSet creates another pod before the surge ends, the broken one is deleted.
	c.await("the pod to be moved", states{string(healthy.UID): "Evicted", "replicaSets": "2", "condition": "none"})
	c.expectMessage(healthy, coordinationv1alpha1.EvictionInterceptorDeployment, "Gave up after 3s without progress. Surging 0/1: waiting for pod "+broken.Name)
	c.expectTurn(healthy, coordinationv1alpha1.EvictionInterceptorReplicaSet)
	c.expectBounds(history, bounds{most: 3, least: 1, changes: true})
}

// testUnreadyRequested evicts more pods that have never been ready than maxSurge. They are young, so they may still become
// ready: one leaves for each replacement that is available.
func testUnreadyRequested(ready int) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		c.startControllers()
		c.setUnready(func(*v1.Pod) bool { return true })
		c.createIncomplete(newDeployment(3))
		c.await("the pods", states{"pods": "0 ready, 3 not"})
		pods := c.livingPods()
		c.setUnready(anyOf(pods[ready:]...))
		c.await("some to be ready", states{"pods": fmt.Sprintf("%d ready, %d not", ready, 3-ready)})
		history := c.watchAll()
		began := time.Now()
		c.request(pods[ready:]...)
		c.awaitMoved(3, pods[ready:]...)
		c.expectLiving(pods[:ready]...)
		if took := time.Since(began); took > evictionturn.BrokenAfter {
			t.Errorf("it took %s: they may count as broken", took)
		}
		c.expectBounds(history, bounds{most: 4, least: ready, changes: true})
	}
}
