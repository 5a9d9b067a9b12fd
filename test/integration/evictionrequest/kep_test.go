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

// TestKEP4563 has the tests that the test plan of KEP-4563 lists, in its order. Some
// are in TestEvictionRequest as well, where they are one of many of their kind. The
// first of the list, switching the gate, needs API servers of its own and is in
// TestFeatureGate and TestFeatureGateInMidFlight.
func TestKEP4563(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd(), true)
	tests := []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		// Integration tests.
		{"interactions of controller and interceptor: turn, report, completion", testWalk},
		{"interactions of controller and interceptor: a heartbeat moves the deadline", testHeartbeatMovesDeadline},
		{"interactions of controller and interceptor: both write at once", testConcurrentWriters},
		{"evicted without any interceptor", testNoInterceptor},
		{"evicted when the interceptor stops responding", testStopsResponding},
		{"switching between interceptors gives each a time of its own", testSwitchedInterceptors},
		{"Canceled=True when canceled", testLastRequesterLeaves},
		{"Canceled=True when validation fails", testPodMissing},
		{"Evicted=True when the pod is terminated", testPodDeletedBySomebodyElse},

		// End-to-end tests: what they need of a cluster is here.
		{"multiple interceptors end to end", (flow{evictions: 1, play: (*cluster).playBlockedEviction}).runUndisturbed},
		{"backoff while a budget blocks, eviction when it stops", testBackoff},

		// The KEP's reason for Server-Side Apply: many requesters, who know nothing of
		// one another.
		{"three requesters join and leave at once", testThreeRequesters},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, newCluster(t, config)) })
	}
}

func (f flow) runUndisturbed(_ *testing.T, c *cluster) {
	c.StartDisruptionController(c.namespace)
	evictions, _ := c.startRelay(clock.RealClock{}, testcluster.KillFirst(0, testcluster.AfterWrite))
	f.playAndCheck(c, evictions)
}

// newFakeClock returns a clock to be turned by hand. The API stores whole seconds.
func newFakeClock() *testingclock.FakeClock {
	return testingclock.NewFakeClock(time.Now().Truncate(time.Second))
}

func testNoInterceptor(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("plain"))
	c.join(pod, drainer)
	request := c.awaitRequest(pod, "the end", evicted)
	c.expectGone(pod)
	if got, want := describe(request), "active= processed=imperative imperative=completed Evicted=PodDeleted"; got != want {
		t.Errorf("the request ended as %q, must be %q", got, want)
	}
}

// heartbeat is a sign of life of an interceptor that has started earlier.
func heartbeat(name string, startTime, now metav1.Time) *coordinationapply.InterceptorStatusApplyConfiguration {
	return started(name, startTime).WithHeartbeatTime(now)
}

// expectStillActive fails unless a look at the request leaves the turn where it is.
// A requester that joins makes the controller look.
func (c *cluster) expectStillActive(pod *v1.Pod, name, requester string) {
	c.t.Helper()
	joined := c.join(pod, requester)
	request := c.awaitRequest(pod, "a look at the request", observed(joined.Generation))
	if !active(name)(request) {
		c.t.Fatalf("the turn of %s ended early: %s", name, describe(request))
	}
}

func testHeartbeatMovesDeadline(t *testing.T, c *cluster) {
	now := newFakeClock()
	c.startController(now)
	pod := c.createPod(newPod("alive", withInterceptors(first, second)))
	c.createRequest(newRequest(pod, withDeadline(120)))
	c.awaitRequest(pod, "the turn of the first", active(first))
	start := metav1.NewTime(now.Now())
	c.report(pod, started(first, start))
	now.Step(100 * time.Second)
	c.report(pod, heartbeat(first, start, metav1.NewTime(now.Now())))

	// The first deadline has passed, the second one has a second to go.
	now.Step(119 * time.Second)
	c.expectStillActive(pod, first, scaler)
	now.Step(time.Second)
	c.awaitRequest(pod, "the turn of the second at the deadline", active(second))
}

// testStopsResponding has an interceptor begin and then say no more.
func testStopsResponding(t *testing.T, c *cluster) {
	now := newFakeClock()
	c.startController(now)
	pod := c.createPod(newPod("orphan", withInterceptors(first)))
	c.createRequest(newRequest(pod, withDeadline(120)))
	c.awaitRequest(pod, "the turn of the first", active(first))
	c.report(pod, started(first, metav1.NewTime(now.Now())))

	now.Step(119 * time.Second)
	c.expectStillActive(pod, first, scaler)
	now.Step(time.Second)
	request := c.awaitRequest(pod, "the end", evicted)
	c.expectGone(pod)
	if got, want := describe(request), "active= processed=first,imperative first=started imperative=completed Evicted=PodDeleted"; got != want {
		t.Errorf("the request ended as %q, must be %q", got, want)
	}
}

// testSwitchedInterceptors has the first interceptor use up its time. The next one
// gets all of its own, and the report of the first stays as it was.
func testSwitchedInterceptors(t *testing.T, c *cluster) {
	now := newFakeClock()
	c.startController(now)
	pod := c.createPod(newPod("switched", withInterceptors(first, second)))
	c.createRequest(newRequest(pod, withDeadline(120)))
	c.awaitRequest(pod, "the turn of the first", active(first))
	c.report(pod, started(first, metav1.NewTime(now.Now())))
	before := c.awaitRequest(pod, "the report", reported(first)).Status.Interceptors[0]

	now.Step(120 * time.Second)
	request := c.awaitRequest(pod, "the turn of the second", active(second))
	if diff := cmp.Diff(before, request.Status.Interceptors[0]); diff != "" {
		t.Errorf("the report of %s when its turn had ended (-before +after):\n%s", first, diff)
	}
	if got, want := request.Status.ActivationTime.Time, now.Now(); !got.Equal(want) {
		t.Errorf("the turn of %s began at %v, must be %v", second, got, want)
	}
	now.Step(119 * time.Second)
	c.expectStillActive(pod, second, scaler)
	now.Step(time.Second)
	c.awaitRequest(pod, "the end", evicted)
}

// reported tells whether an interceptor has said anything.
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

// refused tells whether the API server has refused the eviction n times.
func refused(n int32) func(*coordinationv1alpha1.EvictionRequest) bool {
	return func(request *coordinationv1alpha1.EvictionRequest) bool {
		entries := request.Status.Interceptors
		return len(entries) > 0 && entries[len(entries)-1].Retries == n
	}
}

// testBackoff turns the clock by hand: the delay between attempts doubles.
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
		request := c.awaitRequest(pod, "a look before the next attempt", observed(joined.Generation))
		if !refused(before)(request) {
			t.Errorf("a second before the delay of %s is over: %+v", delay, request.Status.Interceptors)
		}
		now.Step(time.Second)
		c.awaitRequest(pod, fmt.Sprintf("the attempt after %s", delay), refused(before+1))
	}
	c.deleteBudget("guard")
	c.awaitRequest(pod, "the end", evicted)
	c.expectGone(pod)
}

// testThreeRequesters has requesters come and go at the same time. None of them may
// see a conflict, nor take another's entry away.
func testThreeRequesters(t *testing.T, c *cluster) {
	const rounds = 10
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("wanted", withInterceptors(first)))
	c.join(pod, drainer) // Stays throughout, or the request would be canceled.
	c.awaitRequest(pod, "the turn of the first", active(first))
	requesters := []string{"one.example.com", "two.example.com", "three.example.com"}

	c.atOnce(requesters, func(name string) error {
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
	request = c.awaitRequest(pod, "a look at the last requester", observed(request.Generation))
	if got, want := describe(request), "active=first processed="; got != want {
		t.Errorf("with three requesters left the request is %q, must be %q", got, want)
	}

	c.atOnce(requesters, func(name string) error {
		_, err := c.tryApplyRequesters(pod, name)
		return err
	})
	c.awaitRequest(pod, "the cancellation", canceled)
	c.expectUntouched(pod)
}

// atOnce lets all of them act at the same time.
func (c *cluster) atOnce(names []string, act func(name string) error) {
	c.t.Helper()
	var acting sync.WaitGroup
	for _, name := range names {
		acting.Go(func() {
			if err := act(name); err != nil {
				c.t.Errorf("%s: %v", name, err)
			}
		})
	}
	testcluster.Join(c.t, "those who act at once", &acting)
}
