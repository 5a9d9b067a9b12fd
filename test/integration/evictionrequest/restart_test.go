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

// flow is the life of one request, from the first requester to the end.
type flow struct {
	name string
	// minWrites is what a controller writes at least in it, so that a test that loops
	// over the writes cannot come down to nothing.
	minWrites int
	// evictions is how often the API server has to accept the eviction of the pod.
	evictions int
	play      func(c *cluster, pod *v1.Pod) *coordinationv1alpha1.EvictionRequest
	// handTurned: controllers and API server go by c.clock, which the flow turns.
	handTurned bool
}

// flows end in all ways that a request can.
var flows = []flow{
	{name: "evicted after two interceptors and a budget", minWrites: 9, evictions: 1, play: (*cluster).playBlockedEviction},
	{name: "canceled while an interceptor is at work", minWrites: 3, play: (*cluster).playCanceled},
	{name: "canceled while blocked by a budget", minWrites: 7, play: (*cluster).playCanceledWhileBlocked},
	{name: "deleted by an interceptor", minWrites: 3, play: (*cluster).playDeleted},
	{name: "canceled after a silent interceptor", minWrites: 4, play: (*cluster).playSilent, handTurned: true},
}

// TestRestart kills the controller at every single write of a flow, just before and
// just after it, and starts a new one. The flow must come to the same end as without.
func TestRestart(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd(), true)
	for _, flow := range flows {
		t.Run(flow.name, func(t *testing.T) {
			undisturbed, _ := flow.run(t, config, testcluster.KillFirst(0, testcluster.AfterWrite))
			for _, when := range []testcluster.Moment{testcluster.BeforeWrite, testcluster.AfterWrite} {
				flow.runKilledAtEveryWrite(t, when, undisturbed, func(t *testing.T, n int) (*end, bool) {
					return flow.run(t, config, testcluster.KillFirst(n, when))
				})
			}
			// Not of its first: an eviction that is refused must be written down by the one
			// who got the answer.
			t.Run("each controller is killed after its second write", func(t *testing.T) {
				got, _ := flow.run(t, config, func(int) (int, testcluster.Moment) { return 2, testcluster.AfterWrite })
				expectSameEnd(t, undisturbed, got)
			})
		})
	}
}

// runKilledAtEveryWrite runs the flow with a controller that is killed at its first
// write, then at its second, and so on until it does not come to as many.
func (f flow) runKilledAtEveryWrite(t *testing.T, when testcluster.Moment, undisturbed *end, run func(t *testing.T, n int) (got *end, killed bool)) {
	for n, more := 1, true; more && !t.Failed(); n++ {
		t.Run(fmt.Sprintf("killed %s write %d", when, n), func(t *testing.T) {
			got, killed := run(t, n)
			expectSameEnd(t, undisturbed, got)
			if more = killed; !more && n <= f.minWrites {
				t.Errorf("the flow has %d writes, must have at least %d for this test to mean anything", n-1, f.minWrites)
			}
		})
	}
}

// end is what a flow comes to.
type end struct {
	status    coordinationv1alpha1.EvictionRequestStatus
	evictions int
}

func expectSameEnd(t *testing.T, want, got *end) {
	t.Helper()
	if diff := cmp.Diff(want.status, got.status, ignoreTimes); diff != "" {
		t.Errorf("final status (-undisturbed +killed):\n%s", diff)
	}
	if got.evictions != want.evictions {
		t.Errorf("the API server accepted %d evictions of the pod, undisturbed %d", got.evictions, want.evictions)
	}
}

// run plays the flow in a namespace of its own. deathOf says at which write which
// controller is killed. It returns whether any of them was.
func (f flow) run(t *testing.T, config *rest.Config, deathOf testcluster.DeathOf) (*end, bool) {
	c := newCluster(t, config)
	c.StartDisruptionController(c.namespace)
	var now clock.WithTicker = clock.RealClock{}
	if f.handTurned {
		c.clock = newFakeClock()
		now = c.clock
	}
	c.SetServerTime(now)
	evictions, stop := c.startRelay(now, deathOf)
	return f.playAndCheck(c, evictions), stop() > 1
}

// playAndCheck plays the flow with controllers that run already, and checks what must
// hold for every version of the request on the way.
func (f flow) playAndCheck(c *cluster, evictions *evictionCounter) *end {
	c.t.Helper()
	pod := c.createRunningPod(newPod("pod", withInterceptors(first, second), withGracePeriod(3600)), v1.ConditionTrue)
	history := c.watchRequest(pod)
	request := f.play(c, pod)
	if got := evictions.of(pod.Name); got != f.evictions {
		c.t.Errorf("the API server accepted %d evictions of the pod, must be %d", got, f.evictions)
	}
	c.expectFairTurns(c.deleteAndReplay(request, history))
	return &end{status: request.Status, evictions: evictions.of(pod.Name)}
}

// expectFairTurns fails if a turn ended early or its beginning moved. A turn ends with
// a completion, at the deadline, or with the request.
func (c *cluster) expectFairTurns(versions []*coordinationv1alpha1.EvictionRequest) {
	c.t.Helper()
	for i := 1; i < len(versions); i++ {
		before, after := versions[i-1], versions[i]
		if len(before.Status.ActiveInterceptors) == 0 {
			continue
		}
		name := before.Status.ActiveInterceptors[0]
		if active(name)(after) {
			if !before.Status.ActivationTime.Equal(after.Status.ActivationTime) {
				c.t.Errorf("the turn of %s began at %v and then at %v: its deadline moved", name, before.Status.ActivationTime, after.Status.ActivationTime)
			}
			continue
		}
		if !completedBy(name)(before) && !evicted(after) && !canceled(after) && after.Status.ActivationTime.Time.Before(deadlineOf(before)) {
			c.t.Errorf("the turn of %s ended at %v, before its deadline at %v:\n%s\n%s",
				name, after.Status.ActivationTime, deadlineOf(before), describe(before), describe(after))
		}
	}
}

// deadlineOf returns until when the active interceptor may be silent.
func deadlineOf(request *coordinationv1alpha1.EvictionRequest) time.Time {
	last := request.Status.ActivationTime.Time
	for _, entry := range request.Status.Interceptors {
		if entry.Name == request.Status.ActiveInterceptors[0] && entry.HeartbeatTime != nil && entry.HeartbeatTime.After(last) {
			last = entry.HeartbeatTime.Time
		}
	}
	return last.Add(time.Duration(*request.Spec.HeartbeatDeadlineSeconds) * time.Second)
}

// completedBy tells whether the interceptor has reported its completion.
func completedBy(name string) func(*coordinationv1alpha1.EvictionRequest) bool {
	return func(request *coordinationv1alpha1.EvictionRequest) bool {
		return slices.ContainsFunc(request.Status.Interceptors, func(entry coordinationv1alpha1.InterceptorStatus) bool {
			return entry.Name == name && entry.CompletionTime != nil
		})
	}
}

// startRelay keeps one controller at work: when it is killed, the next takes over. The
// evictions of all of them are counted.
func (c *cluster) startRelay(now clock.WithTicker, deathOf testcluster.DeathOf) (evictions *evictionCounter, stop func() (controllers int)) {
	evictions = newEvictionCounter()
	return evictions, c.StartRelay(deathOf, func(life *testcluster.Lifeline) func() {
		return c.startControllerWith(c.ClientThrough(controllerUser, evictions.behind(life)), now)
	})
}

// playBlockedEviction has a budget refuse the eviction until it is deleted, and a pod
// that takes its time to end: while it terminates, a forgetful controller could evict
// it again.
func (c *cluster) playBlockedEviction(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	c.createBudget("guard", pod, 1, policyv1.IfHealthyBudget)
	c.join(pod, drainer)
	c.completeTurns(pod, first, second)
	c.awaitRequest(pod, "the budget to block the eviction", blocked)
	c.deleteBudget("guard")
	c.awaitRequest(pod, "the report that the pod terminates", unblocked)
	c.deletePod(pod)
	return c.awaitRequest(pod, "the end", evicted)
}

func (c *cluster) playCanceled(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	c.join(pod, drainer)
	c.awaitRequest(pod, "the turn of the first", active(first))
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

// playDeleted has the first interceptor end the pod by itself.
func (c *cluster) playDeleted(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	c.join(pod, drainer)
	c.awaitRequest(pod, "the turn of the first", active(first))
	c.report(pod, started(first, metav1.Now()))
	c.deletePod(pod)
	return c.awaitRequest(pod, "the end", evicted)
}

// playSilent has time pass until the first interceptor has lost its turn. Whoever
// takes over in between must neither shorten its time nor give it a second one.
func (c *cluster) playSilent(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	c.createRequest(newRequest(pod, withDeadline(120)))
	firstTurn := c.awaitWithTime(pod, "the turn of the first", active(first)).Status.ActivationTime
	secondTurn := c.awaitWithTime(pod, "the turn of the second", active(second)).Status.ActivationTime
	// Time goes on while a killed controller is being replaced, and the next one takes no turn
	// away for five minutes.
	if got := secondTurn.Sub(firstTurn.Time); got >= 200*time.Second+5*time.Minute {
		c.t.Errorf("the turn of %s lasted %v, must be 2m0s, or five minutes more", first, got)
	}
	c.withdrawAll(pod)
	c.awaitWithTime(pod, "the cancellation", canceled)
	return c.expectCanceled(pod)
}

// awaitWithTime lets a second pass with every look.
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

// completeTurns has the interceptors begin and complete, one after another.
func (c *cluster) completeTurns(pod *v1.Pod, names ...string) {
	c.t.Helper()
	for _, name := range names {
		c.awaitRequest(pod, "the turn of "+name, active(name))
		now := metav1.Now()
		c.report(pod, started(name, now))
		c.report(pod, completed(name, now))
	}
}

// expectCanceled waits for the cancellation. The pod must be there still, and stay
// when nothing protects it any more.
func (c *cluster) expectCanceled(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	request := c.awaitRequest(pod, "the cancellation", canceled)
	c.expectUntouched(pod)
	return request
}

// unblocked tells whether a request was blocked and is not any more.
func unblocked(request *coordinationv1alpha1.EvictionRequest) bool {
	return meta.IsStatusConditionFalse(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionBlocked))
}
