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
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

// TestKEP4563 has the tests of the test plan of KEP-4563, in its order. Some of them are also in
// TestEvictionRequest. The first one of the list, the feature gate, needs several API servers and
// is in TestFeatureGate and TestFeatureGateInMidFlight.
func TestKEP4563(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd(), true)
	tests := []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		// Integration tests.
		{"interactions of controller and interceptor: activation, report, completion", testWalk},
		{"interactions of controller and interceptor: a heartbeat extends the deadline", testHeartbeatExtendsDeadline},
		{"interactions of controller and interceptor: both write concurrently", testConcurrentWriters},
		{"evicted without any interceptor", testNoInterceptor},
		{"evicted when the interceptor stops responding", testStopsResponding},
		{"each interceptor has its own deadline", testSwitchedInterceptors},
		{"Canceled=True when canceled", testLastRequesterLeaves},
		{"Canceled=True when validation fails", testPodMissing},
		{"Evicted=True when the pod is terminated", testPodDeletedByAnotherClient},

		// End-to-end tests, as far as they do not need a real cluster.
		{"multiple interceptors end to end", (flow{evictions: 1, play: (*cluster).playBlockedEviction}).runUninterrupted},
		{"backoff while a budget blocks, eviction when it allows it", testBackoff},

		// The reason of the KEP for Server-Side Apply: many independent requesters.
		{"three requesters join and leave concurrently", testThreeRequesters},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, newCluster(t, config)) })
	}
}

func (f flow) runUninterrupted(_ *testing.T, c *cluster) {
	c.StartDisruptionController(c.namespace)
	evictions, _ := c.startRelay(clock.RealClock{}, testcluster.KillFirst(0, testcluster.AfterWrite))
	f.playAndCheck(c, evictions)
}

// newFakeClock returns a fake clock in whole seconds, like the times in the API.
func newFakeClock() *testingclock.FakeClock {
	return testingclock.NewFakeClock(time.Now().Truncate(time.Second))
}

func testNoInterceptor(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("plain"))
	c.join(pod, drainer)
	request := c.awaitRequest(pod, "the end of the request", evicted)
	c.expectGone(pod)
	if got, want := describe(request), "active= processed=imperative imperative=completed Evicted=PodDeleted"; got != want {
		t.Errorf("the request ended as %q, want %q", got, want)
	}
}

// heartbeat returns a report with a heartbeat of an interceptor that has started earlier.
func heartbeat(name string, startTime, now metav1.Time) *coordinationapply.InterceptorStatusApplyConfiguration {
	return started(name, startTime).WithHeartbeatTime(now)
}

// expectStillActive fails unless the interceptor is still active after a sync. The added requester
// causes the sync.
func (c *cluster) expectStillActive(pod *v1.Pod, name, requester string) {
	c.t.Helper()
	joined := c.join(pod, requester)
	request := c.awaitRequest(pod, "a sync of the request", observed(joined.Generation))
	if !active(name)(request) {
		c.t.Fatalf("%s was deactivated too early: %s", name, describe(request))
	}
}

func testHeartbeatExtendsDeadline(t *testing.T, c *cluster) {
	now := newFakeClock()
	c.startController(now)
	pod := c.createPod(newPod("alive", withInterceptors(first, second)))
	c.createRequest(newRequest(pod, withDeadline(120)))
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	start := metav1.NewTime(now.Now())
	c.report(pod, started(first, start))
	now.Step(100 * time.Second)
	c.report(pod, heartbeat(first, start, metav1.NewTime(now.Now())))

	// The first deadline has passed, and the second one is a second away.
	now.Step(119 * time.Second)
	c.expectStillActive(pod, first, scaler)
	now.Step(time.Second)
	c.awaitRequest(pod, "the second interceptor to be active at the deadline", active(second))
}

// testStopsResponding has an interceptor that starts and then stops reporting.
func testStopsResponding(t *testing.T, c *cluster) {
	now := newFakeClock()
	c.startController(now)
	pod := c.createPod(newPod("orphan", withInterceptors(first)))
	c.createRequest(newRequest(pod, withDeadline(120)))
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.report(pod, started(first, metav1.NewTime(now.Now())))

	now.Step(119 * time.Second)
	c.expectStillActive(pod, first, scaler)
	now.Step(time.Second)
	request := c.awaitRequest(pod, "the end of the request", evicted)
	c.expectGone(pod)
	if got, want := describe(request), "active= processed=first,imperative first=started imperative=completed Evicted=PodDeleted"; got != want {
		t.Errorf("the request ended as %q, want %q", got, want)
	}
}

// testSwitchedInterceptors has a first interceptor that times out. The next one has its full
// deadline, and the entry of the first one does not change.
func testSwitchedInterceptors(t *testing.T, c *cluster) {
	now := newFakeClock()
	c.startController(now)
	pod := c.createPod(newPod("switched", withInterceptors(first, second)))
	c.createRequest(newRequest(pod, withDeadline(120)))
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.report(pod, started(first, metav1.NewTime(now.Now())))
	before := c.awaitRequest(pod, "the report", reported(first)).Status.Interceptors[0]

	now.Step(120 * time.Second)
	request := c.awaitRequest(pod, "the second interceptor to be active", active(second))
	if diff := cmp.Diff(before, request.Status.Interceptors[0]); diff != "" {
		t.Errorf("the entry of %s after its timeout (-before +after):\n%s", first, diff)
	}
	if got, want := request.Status.ActivationTime.Time, now.Now(); !got.Equal(want) {
		t.Errorf("%s was activated at %v, want %v", second, got, want)
	}
	now.Step(119 * time.Second)
	c.expectStillActive(pod, second, scaler)
	now.Step(time.Second)
	c.awaitRequest(pod, "the end of the request", evicted)
}

// reported reports whether an interceptor has sent a heartbeat.
func reported(name string) func(*coordinationv1alpha1.EvictionRequest) bool {
	return func(request *coordinationv1alpha1.EvictionRequest) bool {
		for _, entry := range request.Status.Interceptors {
			if entry.Name == name && entry.HeartbeatTime != nil {
				return true
			}
		}
		return false
	}
}

// refused reports whether the API server has refused the eviction n times.
func refused(n int32) func(*coordinationv1alpha1.EvictionRequest) bool {
	return func(request *coordinationv1alpha1.EvictionRequest) bool {
		entries := request.Status.Interceptors
		return len(entries) > 0 && entries[len(entries)-1].Retries == n
	}
}

// testBackoff uses a fake clock: the delay between attempts doubles.
func testBackoff(t *testing.T, c *cluster) {
	c.StartDisruptionController(c.namespace)
	now := newFakeClock()
	c.startController(now)
	pod := c.createRunningPod(newPod("protected"), v1.ConditionTrue)
	c.createBudget("guard", pod, 1, policyv1.IfHealthyBudget)
	c.join(pod, drainer)
	c.awaitRequest(pod, "the first refusal", refused(1))
	for attempt, delay := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		before := int32(attempt + 1)
		now.Step(delay - time.Second)
		joined := c.join(pod, fmt.Sprintf("requester-%d.example.com", attempt))
		request := c.awaitRequest(pod, "a sync before the next attempt", observed(joined.Generation))
		if !refused(before)(request) {
			t.Errorf("a second before the end of the delay of %s: %+v", delay, request.Status.Interceptors)
		}
		now.Step(time.Second)
		c.awaitRequest(pod, fmt.Sprintf("the attempt after %s", delay), refused(before+1))
	}
	c.deleteBudget("guard")
	c.awaitRequest(pod, "the end of the request", evicted)
	c.expectGone(pod)
}

// testThreeRequesters adds and removes requesters concurrently. There must be no conflicts, and no
// requester may remove the entry of another.
func testThreeRequesters(t *testing.T, c *cluster) {
	const rounds = 10
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("wanted", withInterceptors(first)))
	c.join(pod, drainer) // Stays, so that the request is not canceled.
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	requesters := []string{"one.example.com", "two.example.com", "three.example.com"}

	c.concurrently(requesters, func(name string) error {
		for range rounds {
			if _, err := c.tryApplyRequesters(pod, name, coordinationapply.Requester().WithName(name)); err != nil {
				return fmt.Errorf("joining: %w", err)
			}
			if _, err := c.tryApplyRequesters(pod, name); err != nil {
				return fmt.Errorf("leaving: %w", err)
			}
		}
		_, err := c.tryApplyRequesters(pod, name, coordinationapply.Requester().WithName(name))
		return err
	})
	request := c.leave(pod, drainer)
	got := map[string]bool{}
	for _, requester := range request.Spec.Requesters {
		got[requester.Name] = true
	}
	if diff := cmp.Diff(map[string]bool{requesters[0]: true, requesters[1]: true, requesters[2]: true}, got); diff != "" {
		t.Errorf("requesters (-want +got):\n%s", diff)
	}
	request = c.awaitRequest(pod, "a sync after the last requester", observed(request.Generation))
	if got, want := describe(request), "active=first processed="; got != want {
		t.Errorf("with three requesters left the request is %q, want %q", got, want)
	}

	c.concurrently(requesters, func(name string) error {
		_, err := c.tryApplyRequesters(pod, name)
		return err
	})
	c.awaitRequest(pod, "the cancellation", canceled)
	c.expectUntouched(pod)
}

// concurrently calls act for all names concurrently.
func (c *cluster) concurrently(names []string, act func(name string) error) {
	c.t.Helper()
	var acting sync.WaitGroup
	for _, name := range names {
		acting.Go(func() {
			if err := act(name); err != nil {
				c.t.Errorf("%s: %v", name, err)
			}
		})
	}
	testcluster.Join(c.t, "the goroutines", &acting)
}
