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

package evictionrequest

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/utils/clock"
)

// skewedClock has an offset to the real clock.
type skewedClock struct {
	clock.RealClock
	offset time.Duration
}

func (c skewedClock) Now() time.Time                     { return c.RealClock.Now().Add(c.offset) }
func (c skewedClock) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

// TestClockSkew has controllers whose clocks differ from that of the API server. Each evicts a pod
// that has an interceptor and a budget that blocks at first.
func TestClockSkew(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd(), true)
	for name, offset := range map[string]time.Duration{
		"11 seconds ahead":  11 * time.Second,
		"3 minutes ahead":   3 * time.Minute,
		"3 minutes behind":  -3 * time.Minute,
		"20 minutes ahead":  20 * time.Minute,
		"20 minutes behind": -20 * time.Minute,
	} {
		t.Run(name, func(t *testing.T) { testClockSkew(t, newCluster(t, config), offset) })
	}
}

func testClockSkew(t *testing.T, c *cluster, offset time.Duration) {
	c.StartDisruptionController(c.namespace)
	pod := c.createRunningPod(newPod("protected", withInterceptors(first)), v1.ConditionTrue)
	c.createBudget("guard", pod, 1, policyv1.IfHealthyBudget)
	c.startControllerWith(c.ClientOf(controllerUser), skewedClock{offset: offset})
	// The shortest valid deadline.
	c.createRequest(newRequest(pod, withDeadline(120)))

	request := c.awaitRequest(pod, "the first interceptor to be active", active(first))
	if since := time.Since(request.Status.ActivationTime.Time).Abs(); since > 10*time.Second {
		t.Errorf("activated at %s, %s from now", request.Status.ActivationTime, since)
	}
	// Each report causes a sync of the request.
	now := metav1.Now()
	c.report(pod, started(first, now))
	c.report(pod, completed(first, now))
	blockedRequest := c.awaitRequest(pod, "the budget to block the eviction", blocked)
	for _, entry := range blockedRequest.Status.Interceptors {
		if entry.HeartbeatTime == nil || time.Since(entry.HeartbeatTime.Time).Abs() > 20*time.Second || entry.Retries > 2 {
			t.Errorf("report of %s: %+v", entry.Name, entry)
		}
	}
	c.deleteBudget("guard")
	ended := c.awaitRequest(pod, "the end of the request", evicted)
	if condition := meta.FindStatusCondition(ended.Status.Conditions, "InterceptorUnresponsive"); condition != nil {
		t.Errorf("the interceptor has reported, but the request has %+v", condition)
	}
}
