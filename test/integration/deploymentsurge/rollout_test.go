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
)

// testRolloutInMidSurge changes the template while a pod waits for its replacement: the rollout
// takes the room, and replaces the pod.
func testRolloutInMidSurge(t *testing.T, c *cluster) {
	c.startControllers()
	history := c.watchAll()
	pods := c.startSurge(2)
	c.rollOut("second")
	c.await("the rollout to take over", states{
		"replicaSets": "2 + 1", "pods": "2 ready, 1 not", "condition": "True Waiting: Pods waiting for a replacement before their eviction",
		string(pods[0].UID): "Intercepting by deployment: Waiting for the rollout of Deployment app to complete",
	})
	c.expectLiving(pods...)
	c.setUnready(none)
	c.awaitMoved(2, pods[0])
	c.expectImage("second")
	c.expectBounds(history, bounds{most: 3, least: 2, changes: true})
}

// testRequestDuringRollout requests a pod while there are two ReplicaSets. The rollout deletes an
// old pod first; a new one is replaced after the rollout.
func testRequestDuringRollout(ofNew bool) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		c.startControllers()
		pods := c.createDeployment(newDeployment(2))
		history := c.watchAll()
		c.setUnready(except(pods...))
		c.rollOut("second")
		c.await("the first new pod", states{"replicaSets": "2 + 1", "pods": "2 ready, 1 not"})
		asked := pods[1]
		if ofNew {
			asked = c.others(pods...)[0]
		}
		c.request(asked)
		c.await("the request to wait", states{
			string(asked.UID): "Intercepting by deployment: Waiting for the rollout of Deployment app to complete", "replicaSets": "2 + 1", "pods": "2 ready, 1 not",
		})
		c.setUnready(none)
		c.awaitMoved(2, asked)
		c.expectImage("second")
		c.expectBounds(history, bounds{most: 3, least: 2, changes: true})
	}
}

// expectImage fails unless all pods have the image.
func (c *cluster) expectImage(image string) {
	c.T.Helper()
	for _, pod := range c.livingPods() {
		if got := pod.Spec.Containers[0].Image; got != image {
			c.T.Errorf("image of pod %s: %s, must be %s", pod.Name, got, image)
		}
	}
}

// testPausedInMidSurge pauses the Deployment, which stops rollouts but not evictions.
func testPausedInMidSurge(t *testing.T, c *cluster) {
	c.startControllers()
	history := c.watchAll()
	old := c.startSurge(1)[0]
	c.setPaused(true)
	c.setUnready(none)
	c.awaitMoved(1, old)
	c.setPaused(false)
	c.awaitMoved(1, old)
	c.expectBounds(history, bounds{most: 2, least: 1, changes: true})
}

// testPausedWithChangedTemplate evicts pods of a paused Deployment with a changed template: the
// replacements have the old template.
func testPausedWithChangedTemplate(t *testing.T, c *cluster) {
	c.startControllers()
	pods := c.createDeployment(newDeployment(2))
	history := c.watchAll()
	c.setPaused(true)
	c.rollOut("second")
	c.request(pods[0])
	c.await("the pod to be moved", states{string(pods[0].UID): "Evicted", "replicaSets": "2", "pods": "2 ready", "condition": "none"})
	c.expectImage("first")
	c.expectLiving(pods[1])
	c.setPaused(false)
	c.await("the rollout", states{"replicaSets": "2", "pods": "2 ready", "deployment": "2 of 2: complete"})
	c.expectImage("second")
	c.expectBounds(history, bounds{most: 3, least: 2, changes: true})
}
