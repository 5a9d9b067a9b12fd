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
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testPodSurgeExample follows the example of KEP-4563 with a single replica, step by step: the
// application must always have a ready endpoint.
func testPodSurgeExample(t *testing.T, c *cluster) {
	c.startControllers()
	history := c.watchAll()
	// 1. Pods are created with both controllers as interceptors.
	old := c.createDeployment(newDeployment(1))[0]
	c.expectInterceptors(old, coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet)
	request := string(old.UID)
	c.expect("before the drain", states{"replicaSets": "1", "condition": "none", request: "none"})

	// 2. and 3. A drain cordons the node and requests the eviction of the pod.
	c.setUnready(except(old))
	c.cordon(c.from)
	c.request(old)

	// 4. and 5. The Deployment is active. It creates a surge pod, and no pod terminates.
	c.await("the surge", states{
		request: "Intercepting by deployment: Surging 0/1", "replicaSets": "2 (1 extra, 0 leaving)", "pods": "1 ready, 1 not",
		"condition": "True Surging: Surging 0/1", "deployment": "1 of 1: complete", "scale": "1 of 1", "endpoints": "1 ready",
	})
	c.expectStillAt(old, c.from)

	// 6. The surge pod is scheduled to another node.
	surged := c.others(old)[0]
	c.awaitNode(surged, c.to)

	// 7. and 8. It becomes available. The ReplicaSet is scaled down to its old size, the Deployment
	// completes its turn, and the requested pod is gone.
	c.setLingering(anyOf(old))
	c.setUnready(none)
	c.await("the pod to leave", states{"pods": "1 ready, 1 terminating", "condition": "none", "replicaSets": "1", "endpoints": "1 ready"})
	c.awaitMessage(old, coordinationv1alpha1.EvictionInterceptorDeployment, "The pod is terminating.")
	c.setLingering(none)
	c.await("the end", states{request: "Evicted", "replicaSets": "1", "pods": "1 ready", "deployment": "1 of 1: complete", "scale": "1 of 1"})
	c.expectStillAt(surged, c.to)
	c.expectSurged(history, bounds{most: 2, least: 1})
}

// cordon makes a node unschedulable.
func (c *cluster) cordon(node string) {
	c.T.Helper()
	if _, err := c.Client.CoreV1().Nodes().Patch(c.T.Context(), node, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{}); err != nil {
		c.T.Fatalf("cordoning node %s: %v", node, err)
	}
}
