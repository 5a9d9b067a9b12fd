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
	"strings"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// testGivenUpWithinBudget has a replacement that does not become available in time. The Deployment
// gives up, the next interceptors respect the budget, and the extra replica stays. When it becomes
// available, it allows the eviction.
func testGivenUpWithinBudget(t *testing.T, c *cluster) {
	c.startControllers()
	old := c.createDeployment(newDeployment(1, withDeadline(3)))[0]
	c.createBudget(policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1))})
	c.await("the budget", states{"budget": "1 healthy of 1 expected, 0 allowed"})
	history := c.watchAll()
	c.setUnready(except(old))
	c.request(old)
	c.await("the surge", states{string(old.UID): "Intercepting by deployment: Surging 0/1", "condition": "True Surging: Surging 0/1"})
	c.expectNoPromise(old)

	c.await("the deadline to pass", states{
		"replicaSets": "2 (1 extra, 0 leaving)", "pods": "1 ready, 1 not", "condition": "True Surging: Surging 0/1",
		"deployment": "1 of 1: complete", "endpoints": "1 ready",
	})
	c.awaitRequest(old, "the budget to block the eviction", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return strings.HasPrefix(describeRequest(request), "Blocked by imperative-eviction")
	})
	c.expectMessage(old, coordinationv1alpha1.EvictionInterceptorDeployment, "Gave up after 3s without progress. Surging 0/1: waiting for pod "+c.others(old)[0].Name+" to become ready.")
	c.expectMessage(old, coordinationv1alpha1.EvictionInterceptorReplicaSet, "Not evicted: ")
	c.expectNoPromise(old)
	c.expect("the extra replica", states{"replicaSets": "2 (1 extra, 0 leaving)", "pods": "1 ready, 1 not"})
	c.expectLiving(old)

	c.setUnready(none)
	c.awaitMoved(1, old)
	c.expectSurged(history, bounds{most: 2, least: 1})
}

// expectNoPromise fails if the Deployment reports an ETA, which it cannot know, or more heartbeats
// than it has sent.
func (c *cluster) expectNoPromise(pod *v1.Pod) {
	c.T.Helper()
	report := reportOf(c.requestFor(pod), coordinationv1alpha1.EvictionInterceptorDeployment)
	switch {
	case report == nil || report.StartTime == nil || report.HeartbeatTime == nil:
		c.T.Errorf("the Deployment has not started its turn: %+v", report)
	case report.ExpectedFinishTime != nil:
		c.T.Errorf("expected finish time %v, must be empty", report.ExpectedFinishTime)
	case report.CompletionTime == nil && !report.HeartbeatTime.Equal(report.StartTime):
		c.T.Errorf("heartbeat %v, must be the first one, %v", report.HeartbeatTime, report.StartTime)
	}
}

// testGivenUpWithoutBudget has no budget that blocks the following eviction: the extra replica
// becomes the replacement.
func testGivenUpWithoutBudget(t *testing.T, c *cluster) {
	c.startControllers()
	old := c.createDeployment(newDeployment(1, withDeadline(2)))[0]
	history := c.watchAll()
	c.setUnready(except(old))
	c.request(old)
	c.await("the eviction", states{string(old.UID): "Evicted", "replicaSets": "1", "pods": "0 ready, 1 not", "condition": "none"})
	c.expectMessage(old, coordinationv1alpha1.EvictionInterceptorDeployment, "Gave up after 2s without progress. ")
	c.expectTurn(old, coordinationv1alpha1.EvictionInterceptorReplicaSet)
	c.setUnready(none)
	c.awaitMoved(1, old)
	c.expectBounds(history, bounds{most: 2, changes: true})
}
