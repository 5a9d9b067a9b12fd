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
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
)

// flow is a sequence of events of one request, from the first requester to its end.
type flow struct {
	name string
	// minWrites is the minimum number of writes of the controller, so that a test that iterates
	// over the writes is not empty.
	minWrites int
	// evictions is the expected number of accepted evictions of the pod.
	evictions int
	play      func(c *cluster, pod *v1.Pod) *coordinationv1alpha1.EvictionRequest
	// fakeClock is whether the controllers and the API server use c.clock, which the flow steps.
	fakeClock bool
}

// flows cover all ways in which a request can end.
var flows = []flow{
	{name: "evicted after two interceptors and a budget", minWrites: 8, evictions: 1, play: (*cluster).playBlockedEviction},
	{name: "canceled while an interceptor is active", minWrites: 2, play: (*cluster).playCanceled},
	{name: "canceled while blocked by a budget", minWrites: 6, play: (*cluster).playCanceledWhileBlocked},
	{name: "deleted by an interceptor", minWrites: 2, play: (*cluster).playDeleted},
	{name: "canceled after a silent interceptor", minWrites: 4, play: (*cluster).playSilent, fakeClock: true},
}

// TestRestart kills the controller before and after each write of a flow, and starts a new one. The
// result must be the same as without the restart.
func TestRestart(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd(), true)
	for _, flow := range flows {
		t.Run(flow.name, func(t *testing.T) {
			uninterrupted, _ := flow.run(t, config, testcluster.KillFirst(0, testcluster.AfterWrite))
			for _, when := range []testcluster.Moment{testcluster.BeforeWrite, testcluster.AfterWrite} {
				flow.runKilledAtEveryWrite(t, when, uninterrupted, func(t *testing.T, n int) (*end, bool) {
					return flow.run(t, config, testcluster.KillFirst(n, when))
				})
			}
			// Not after the first write: a refused eviction must be recorded by the controller that
			// received the response.
			t.Run("each controller is killed after its second write", func(t *testing.T) {
				got, _ := flow.run(t, config, func(int) (int, testcluster.Moment) { return 2, testcluster.AfterWrite })
				expectSameEnd(t, uninterrupted, got)
			})
		})
	}
}

// runKilledAtEveryWrite runs the flow with a controller that is killed at its first write, then at
// its second, and so on until it has fewer writes.
func (f flow) runKilledAtEveryWrite(t *testing.T, when testcluster.Moment, uninterrupted *end, run func(t *testing.T, n int) (got *end, killed bool)) {
	for n, more := 1, true; more && !t.Failed(); n++ {
		t.Run(fmt.Sprintf("killed %s write %d", when, n), func(t *testing.T) {
			got, killed := run(t, n)
			expectSameEnd(t, uninterrupted, got)
			if more = killed; !more && n <= f.minWrites {
				t.Errorf("the flow has %d writes, want at least %d for this test", n-1, f.minWrites)
			}
		})
	}
}

// end is the result of a flow.
type end struct {
	status    coordinationv1alpha1.EvictionRequestStatus
	evictions int
}

func expectSameEnd(t *testing.T, want, got *end) {
	t.Helper()
	if diff := cmp.Diff(want.status, got.status, ignoreTimes); diff != "" {
		t.Errorf("final status (-uninterrupted +killed):\n%s", diff)
	}
	if got.evictions != want.evictions {
		t.Errorf("the API server accepted %d evictions of the pod, uninterrupted %d", got.evictions, want.evictions)
	}
}

// run runs the flow in a namespace of its own. deathOf returns at which write each controller is
// killed. run reports whether any controller was killed.
func (f flow) run(t *testing.T, config *rest.Config, deathOf testcluster.DeathOf) (*end, bool) {
	c := newCluster(t, config)
	c.StartDisruptionController(c.namespace)
	var now clock.WithTicker = clock.RealClock{}
	if f.fakeClock {
		c.clock = newFakeClock()
		now = c.clock
	}
	c.SetServerTime(now)
	evictions, stop := c.startRelay(now, deathOf)
	return f.playAndCheck(c, evictions), stop() > 1
}

// playAndCheck runs the flow with running controllers, and checks the invariants of all versions of
// the request.
func (f flow) playAndCheck(c *cluster, evictions *evictionCounter) *end {
	c.t.Helper()
	pod := c.createRunningPod(newPod("pod", withInterceptors(first, second), withGracePeriod(3600)), v1.ConditionTrue)
	history := c.watchRequest(pod)
	request := f.play(c, pod)
	if got := evictions.of(pod.Name); got != f.evictions {
		c.t.Errorf("the API server accepted %d evictions of the pod, want %d", got, f.evictions)
	}
	c.expectDeadlinesKept(c.deleteAndReplay(request, history))
	return &end{status: request.Status, evictions: evictions.of(pod.Name)}
}

// expectDeadlinesKept fails if an interceptor was deactivated too early or its activationTime
// changed. An interceptor is deactivated when it completes, at its deadline, or when the request is
// finished.
func (c *cluster) expectDeadlinesKept(versions []*coordinationv1alpha1.EvictionRequest) {
	c.t.Helper()
	for i := 1; i < len(versions); i++ {
		before, after := versions[i-1], versions[i]
		if len(before.Status.ActiveInterceptors) == 0 {
			continue
		}
		name := before.Status.ActiveInterceptors[0]
		if active(name)(after) {
			if !before.Status.ActivationTime.Equal(after.Status.ActivationTime) {
				c.t.Errorf("the activationTime of %s changed from %v to %v: its deadline moved", name, before.Status.ActivationTime, after.Status.ActivationTime)
			}
			continue
		}
		if !completedBy(name)(before) && !evicted(after) && !canceled(after) && after.Status.ActivationTime.Time.Before(deadlineOf(before)) {
			c.t.Errorf("%s was deactivated at %v, before its deadline at %v:\n%s\n%s",
				name, after.Status.ActivationTime, deadlineOf(before), describe(before), describe(after))
		}
	}
}

// deadlineOf returns when the active interceptor times out.
func deadlineOf(request *coordinationv1alpha1.EvictionRequest) time.Time {
	last := request.Status.ActivationTime.Time
	for _, entry := range request.Status.Interceptors {
		if entry.Name == request.Status.ActiveInterceptors[0] && entry.HeartbeatTime != nil && entry.HeartbeatTime.After(last) {
			last = entry.HeartbeatTime.Time
		}
	}
	return last.Add(time.Duration(*request.Spec.HeartbeatDeadlineSeconds) * time.Second)
}

// completedBy reports whether the interceptor has completed.
func completedBy(name string) func(*coordinationv1alpha1.EvictionRequest) bool {
	return func(request *coordinationv1alpha1.EvictionRequest) bool {
		return slices.ContainsFunc(request.Status.Interceptors, func(entry coordinationv1alpha1.InterceptorStatus) bool {
			return entry.Name == name && entry.CompletionTime != nil
		})
	}
}

// startRelay keeps one controller running: when it is killed, the next one is started. The
// evictions of all of them are counted.
func (c *cluster) startRelay(now clock.WithTicker, deathOf testcluster.DeathOf) (evictions *evictionCounter, stop func() (controllers int)) {
	evictions = newEvictionCounter()
	return evictions, c.StartRelay(deathOf, func(life *testcluster.Lifeline) func() {
		return c.startControllerWith(c.ClientThrough(controllerUser, evictions.behind(life)), now)
	})
}

// playBlockedEviction has a budget that refuses the eviction until it is deleted, and a pod with a
// long grace period: while it terminates, a restarted controller could evict it again.
func (c *cluster) playBlockedEviction(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	c.createBudget("guard", pod, 1, policyv1.IfHealthyBudget)
	c.join(pod, drainer)
	c.completeTurns(pod, first, second)
	c.awaitRequest(pod, "the budget to block the eviction", blocked)
	c.deleteBudget("guard")
	c.awaitRequest(pod, "the report that the pod terminates", unblocked)
	c.deletePod(pod)
	return c.awaitRequest(pod, "the end of the request", evicted)
}

func (c *cluster) playCanceled(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	c.join(pod, drainer)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.report(pod, started(first, metav1.Now()))
	c.leave(pod, drainer)
	return c.expectCanceled(pod)
}

func (c *cluster) playCanceledWhileBlocked(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	c.createBudget("guard", pod, 1, policyv1.IfHealthyBudget)
	c.join(pod, drainer)
	c.completeTurns(pod, first, second)
	c.awaitRequest(pod, "the budget to block the eviction", blocked)
	c.leave(pod, drainer)
	return c.expectCanceled(pod)
}

// playDeleted has the first interceptor delete the pod.
func (c *cluster) playDeleted(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	c.join(pod, drainer)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.report(pod, started(first, metav1.Now()))
	c.deletePod(pod)
	return c.awaitRequest(pod, "the end of the request", evicted)
}

// playSilent advances the clock until the first interceptor has timed out. A controller that takes
// over must neither shorten nor restart the deadline.
func (c *cluster) playSilent(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	c.createRequest(newRequest(pod, withDeadline(120)))
	firstTurn := c.awaitWithTime(pod, "the first interceptor to be active", active(first)).Status.ActivationTime
	secondTurn := c.awaitWithTime(pod, "the second interceptor to be active", active(second)).Status.ActivationTime
	// Time advances while a killed controller is replaced, and the next one lets no interceptor
	// time out for five minutes.
	if got := secondTurn.Sub(firstTurn.Time); got >= 200*time.Second+5*time.Minute {
		c.t.Errorf("%s was active for %v, want 2m0s, or five minutes more", first, got)
	}
	c.withdrawAll(pod)
	c.awaitWithTime(pod, "the cancellation", canceled)
	return c.expectCanceled(pod)
}

// awaitWithTime advances the clock by a second with each poll.
func (c *cluster) awaitWithTime(pod *v1.Pod, what string, reached func(*coordinationv1alpha1.EvictionRequest) bool) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	return c.awaitRequest(pod, what, func(request *coordinationv1alpha1.EvictionRequest) bool {
		done := reached(request)
		if !done {
			c.clock.Step(time.Second)
		}
		return done
	})
}

// withdrawAll removes all requesters.
func (c *cluster) withdrawAll(pod *v1.Pod) {
	c.t.Helper()
	patch := []byte(`{"spec":{"requesters":[]}}`)
	if _, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Patch(c.t.Context(), string(pod.UID), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		c.t.Fatalf("removing all requesters: %v", err)
	}
}

// completeTurns starts and completes the interceptors, one after another.
func (c *cluster) completeTurns(pod *v1.Pod, names ...string) {
	c.t.Helper()
	for _, name := range names {
		c.awaitRequest(pod, name+" to be active", active(name))
		now := metav1.Now()
		c.report(pod, started(name, now))
		c.report(pod, completed(name, now))
	}
}

// expectCanceled waits for the cancellation. The pod must still exist.
func (c *cluster) expectCanceled(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	request := c.awaitRequest(pod, "the cancellation", canceled)
	c.expectUntouched(pod)
	return request
}

// unblocked reports whether a request was blocked before and no longer is.
func unblocked(request *coordinationv1alpha1.EvictionRequest) bool {
	return meta.IsStatusConditionFalse(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionBlocked))
}
