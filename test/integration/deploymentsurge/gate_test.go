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
	"k8s.io/apimachinery/pkg/util/intstr"
)

// testGateOffInMidSurge restarts the controllers without the gate, as after a rollback, and then
// with it.
func testGateOffInMidSurge(t *testing.T, c *cluster) {
	stop := c.startControllers()
	pods := c.createDeployment(newDeployment(3, withMaxSurge(intstr.FromInt32(2))))
	history := c.watchAll()
	c.setUnready(except(pods...))
	c.request(pods[0], pods[1])
	c.await("the surge", states{"replicaSets": "5 (2 extra, 0 leaving)", "pods": "3 ready, 2 not", "condition": "True Surging: Surging 0/2"})
	stop()
	stop = c.startUpstream()
	c.await("the Deployment to return to its replicas", states{
		"replicaSets": "3 (void)", "pods": "3 ready", "deployment": "3 of 3: complete", "condition": "none",
	})
	c.expectLiving(pods...)
	stop()
	c.startControllers()
	c.await("the surge to start again", states{"replicaSets": "5 (2 extra, 0 leaving)", "pods": "3 ready, 2 not", "condition": "True Surging: Surging 0/2"})
	c.setUnready(none)
	c.awaitMoved(3, pods[0], pods[1])
	c.expectLiving(pods[2])
	// Without the gate, the status counts the extra pods for a moment.
	c.expectBounds(history, bounds{most: 5, least: 3, changes: true})
}

// testGateOffWhenSurged does the same when the replacement is available: which of the two pods is
// deleted is then up to the ReplicaSet.
func testGateOffWhenSurged(t *testing.T, c *cluster) {
	scaling := newScalingBarrier()
	stop := c.startControllersThrough(true, scaling.Wrap)
	old := c.createDeployment(newDeployment(1))[0]
	history := c.watchAll()
	c.replaceBehind(scaling, old)
	stop()
	stop = c.startUpstream()
	c.await("the Deployment to return to its replicas", states{"replicaSets": "1 (void)", "pods": "1 ready", "deployment": "1 of 1: complete"})
	stop()
	c.startControllers()
	c.awaitMoved(1, old)
	c.expectBounds(history, bounds{most: 2, least: 1, changes: true})
}

// testCreatedBeforeGate has pods from before the gate was on. They are not changed, and are evicted
// without a surge: they do not list the Deployment as an interceptor.
func testCreatedBeforeGate(t *testing.T, c *cluster) {
	stop := c.startUpstream()
	pods := c.createDeployment(newDeployment(2))
	history := c.watchAll()
	stop()
	c.startControllers()
	c.expectInterceptors(pods[0])
	c.request(pods[0])
	c.awaitMoved(2, pods[0])
	c.expectLiving(pods[1])
	if report := reportOf(c.requestFor(pods[0]), coordinationv1alpha1.EvictionInterceptorDeployment); report != nil {
		t.Errorf("the Deployment has reported: %+v", report)
	}
	if got := len(c.replicaSets()); got != 1 {
		t.Errorf("%d ReplicaSets, must be 1: the gate must not cause a rollout", got)
	}
	// The next pod is created with the interceptors, and replaced by a surge.
	next := c.others(pods...)[0]
	c.expectInterceptors(next, coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet)
	c.expectBounds(history, bounds{most: 2, least: 1, changes: true})

	again := c.watchAll()
	c.request(next)
	c.awaitMoved(2, next)
	c.expectBounds(again, bounds{most: 3, least: 2})
}
