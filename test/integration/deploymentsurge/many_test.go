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

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// testMany requests all pods of a Deployment at once, which exceeds maxSurge: they are replaced in
// several steps.
func testMany(maxSurge intstr.IntOrString, extra int) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		c.startControllers()
		const replicas = 10
		pods := c.createDeployment(newDeployment(replicas, withMaxSurge(maxSurge)))
		history := c.watchAll()
		c.setUnready(except(pods...))
		c.request(pods...)
		c.await("as many extra pods as allowed", states{
			"replicaSets": fmt.Sprintf("%d (%d extra, 0 leaving)", replicas+extra, extra),
			"pods":        fmt.Sprintf("%d ready, %d not", replicas, extra),
			"condition":   fmt.Sprintf("True Surging: Surging 0/%d", extra),
		})
		c.expectLiving(pods...)
		c.setUnready(none)
		c.awaitMoved(replicas, pods...)
		c.expectBounds(history, bounds{most: replicas + extra, least: replicas})
	}
}

// awaitMoved waits until these pods are gone, and the Deployment has its old size.
func (c *cluster) awaitMoved(replicas int, pods ...*v1.Pod) {
	c.T.Helper()
	want := states{
		"replicaSets": fmt.Sprint(replicas), "pods": fmt.Sprintf("%d ready", replicas), "condition": "none",
		"deployment": fmt.Sprintf("%d of %d: complete", replicas, replicas),
	}
	for _, pod := range pods {
		want[string(pod.UID)] = "Evicted"
	}
	c.await("the end", want)
	for _, pod := range c.livingPods() {
		if anyOf(pods...)(pod) {
			c.T.Errorf("pod %s still lives", pod.Name)
		}
	}
}

// testSomeAvailable makes one of two replacements available: one pod leaves, and the other one
// waits.
func testSomeAvailable(t *testing.T, c *cluster) {
	c.startControllers()
	pods := c.createDeployment(newDeployment(4, withMaxSurge(intstr.FromInt32(2))))
	history := c.watchAll()
	c.setUnready(except(pods...))
	c.request(pods[0], pods[1])
	c.await("the surge", states{"replicaSets": "6 (2 extra, 0 leaving)", "pods": "4 ready, 2 not"})
	c.setUnready(anyOf(c.others(pods...)[1]))
	c.await("one of them to leave", states{
		"replicaSets": "5 (1 extra, 0 leaving)", "pods": "4 ready, 1 not", "condition": "True Surging: Surging 0/1", "deployment": "4 of 4: complete",
	})
	stays := 0
	for _, pod := range pods[:2] {
		if anyOf(c.livingPods()...)(pod) {
			stays++
			c.await("the other to wait", states{string(pod.UID): "Intercepting by deployment: Surging 0/1"})
		}
	}
	if stays != 1 {
		t.Errorf("%d of the two pods live, must be 1", stays)
	}
	c.expectLiving(pods[2:]...)
	c.setUnready(none)
	c.awaitMoved(4, pods[0], pods[1])
	c.expectLiving(pods[2:]...)
	c.expectBounds(history, bounds{most: 6, least: 4})
}
