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

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

// testWalk checks all versions of a request, and thereby counts the writes: the controller makes
// four status writes, one for each change of the active interceptor.
func testWalk(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("walker", withInterceptors(first, second)))
	history := c.watchRequest(pod)
	c.join(pod, drainer)

	for _, name := range []string{first, second} {
		c.awaitRequest(pod, name+" to be active", active(name))
		now := metav1.Now()
		c.report(pod, started(name, now))
		c.report(pod, completed(name, now))
	}
	request := c.awaitRequest(pod, "the end of the request", evicted)

	c.expectGone(pod)
	if diff := cmp.Diff(finalStatus(pod), request.Status, ignoreTimes); diff != "" {
		t.Errorf("final status (-want +got):\n%s", diff)
	}
	want := []string{
		"active= processed=",      // With the labels of the pod.
		"active=first processed=", // Written by the controller.
		"active=first processed= first=started",
		"active=first processed= first=completed",
		"active=second processed=first first=completed", // Written by the controller.
		"active=second processed=first first=completed second=started",
		"active=second processed=first first=completed second=completed",
		"active=imperative processed=first,second first=completed second=completed", // Written by the controller.
		"active= processed=first,second,imperative first=completed second=completed imperative=completed Evicted=PodDeleted", // Written by the controller.
	}
	var versions []string
	for _, version := range c.deleteAndReplay(request, history) {
		versions = append(versions, describe(version))
	}
	if diff := cmp.Diff(want, versions); diff != "" {
		t.Errorf("versions of the request (-want +got):\n%s", diff)
	}
}

// finalStatus is the final status of a request for a pod without a budget, whose interceptors
// first and second have completed.
func finalStatus(pod *v1.Pod) coordinationv1alpha1.EvictionRequestStatus {
	return coordinationv1alpha1.EvictionRequestStatus{
		ObservedGeneration: 1,
		Conditions: []metav1.Condition{{
			Type: "Evicted", Status: metav1.ConditionTrue, ObservedGeneration: 1,
			Reason: "PodDeleted", Message: "Target Pod " + pod.Name + " was deleted.",
		}},
		TargetInterceptors:    []coordinationv1alpha1.Interceptor{{Name: first}, {Name: second}, {Name: imperative}},
		ProcessedInterceptors: []string{first, second, imperative},
		Interceptors: []coordinationv1alpha1.InterceptorStatus{
			{Name: first, Message: "done"},
			{Name: second, Message: "done"},
			{Name: imperative, Message: "Target Pod " + pod.Name + " was deleted."},
		},
	}
}

// watchRequest watches the request for a pod from before its creation.
func (c *cluster) watchRequest(pod *v1.Pod) watch.Interface {
	c.t.Helper()
	history, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Watch(c.t.Context(), metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", string(pod.UID)).String(),
		ResourceVersion: pod.ResourceVersion,
	})
	if err != nil {
		c.t.Fatalf("watching the request for pod %s: %v", pod.Name, err)
	}
	c.t.Cleanup(history.Stop)
	return history
}

// deleteAndReplay deletes the request and returns all its versions. The watch ends with the
// deletion, so no version is missing.
func (c *cluster) deleteAndReplay(request *coordinationv1alpha1.EvictionRequest, history watch.Interface) []*coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	if err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Delete(c.t.Context(), request.Name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatalf("deleting the request: %v", err)
	}
	var versions []*coordinationv1alpha1.EvictionRequest
	timeout := time.After(pollTimeout)
	for {
		select {
		case event, open := <-history.ResultChan():
			if !open {
				c.t.Fatalf("the watch ended after %d versions", len(versions))
			}
			if event.Type == watch.Deleted {
				return versions
			}
			versions = append(versions, event.Object.(*coordinationv1alpha1.EvictionRequest))
		case <-timeout:
			c.t.Fatalf("the watch has no deletion after %d versions", len(versions))
		}
	}
}

// testRestartBetweenStates runs one eviction twice: with a single controller, and with a controller
// that is replaced at each event. Both must have the same result.
func testRestartBetweenStates(t *testing.T, c *cluster) {
	c.StartDisruptionController(c.namespace)
	stop := c.startController(clock.RealClock{})
	uninterrupted := c.playEviction(func(happen func()) { happen() })
	restarted := c.playEviction(func(happen func()) {
		stop()
		happen()
		stop = c.startController(clock.RealClock{})
	})
	if diff := cmp.Diff(withoutFinalMessages(uninterrupted.Status), withoutFinalMessages(restarted.Status), ignoreTimes); diff != "" {
		t.Errorf("final status without and with restarts (-without +with):\n%s", diff)
	}
}

// withoutFinalMessages removes the final messages for an eviction that was blocked: they depend on
// whether the controller saw the pod terminate or only its deletion.
func withoutFinalMessages(status coordinationv1alpha1.EvictionRequestStatus) *coordinationv1alpha1.EvictionRequestStatus {
	copied := status.DeepCopy()
	if condition := meta.FindStatusCondition(copied.Conditions, "Blocked"); condition != nil {
		condition.Message = ""
	}
	for i := range copied.Interceptors {
		if entry := &copied.Interceptors[i]; entry.Name == imperative {
			entry.Message = ""
		}
	}
	return copied
}

// playEviction takes a pod through all states up to Evicted. let runs each event from outside of
// the controller.
func (c *cluster) playEviction(let func(happen func())) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	pod := c.createRunningPod(newPod("pod", withInterceptors(first, second)), v1.ConditionTrue)
	c.createBudget("guard", pod, 1, policyv1.IfHealthyBudget)

	let(func() { c.join(pod, drainer) })
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	now := metav1.Now()
	let(func() { c.report(pod, started(first, now)) })
	let(func() { c.report(pod, completed(first, now)) })
	c.awaitRequest(pod, "the second interceptor to be active", active(second))
	let(func() { c.report(pod, completed(second, metav1.Now())) })
	c.awaitRequest(pod, "the budget to block the eviction", blocked)
	let(func() { c.deleteBudget("guard") })
	request := c.awaitRequest(pod, "the end of the request", evicted)
	c.expectGone(pod)
	return request
}

// testSilentInterceptor uses a fake clock.
func testSilentInterceptor(t *testing.T, c *cluster) {
	// The API stores whole seconds.
	now := testingclock.NewFakeClock(time.Now().Truncate(time.Second))
	c.startController(now)
	pod := c.createPod(newPod("silent", withInterceptors(first, second)))
	c.createRequest(newRequest(pod, withDeadline(120)))
	firstTurn := c.awaitRequest(pod, "the first interceptor to be active", active(first)).Status.ActivationTime

	// A second before the deadline, a new requester causes a sync, which only updates the
	// observedGeneration.
	now.Step(119 * time.Second)
	joined := c.join(pod, scaler)
	request := c.awaitRequest(pod, "a sync before the deadline", observed(joined.Generation))
	if !active(first)(request) {
		t.Fatalf("a second before the deadline of %s: %s", first, describe(request))
	}

	// At the deadline, a sync deactivates the interceptor.
	now.Step(time.Second)
	left := c.leave(pod, scaler)
	request = c.awaitRequest(pod, "a sync at the deadline", observed(left.Generation))
	if !active(second)(request) {
		t.Fatalf("at the deadline of %s: %s", first, describe(request))
	}
	secondTurn := request.Status.ActivationTime
	if got := secondTurn.Sub(firstTurn.Time); got != 120*time.Second {
		t.Errorf("%s was active for %v, want 2m0s", first, got)
	}

	// From here on, only time passes.
	request = c.awaitRequest(pod, "the last interceptor to be active", func(request *coordinationv1alpha1.EvictionRequest) bool {
		reached := len(request.Status.ProcessedInterceptors) >= 2
		if !reached {
			now.Step(time.Second)
		}
		return reached
	})
	if got := request.Status.ActivationTime.Sub(secondTurn.Time); got < 120*time.Second {
		t.Errorf("%s was active for %v, want at least 2m0s", second, got)
	}
	request = c.awaitRequest(pod, "the end of the request", func(request *coordinationv1alpha1.EvictionRequest) bool {
		now.Step(time.Second)
		return evicted(request)
	})
	if got, want := describe(request), "active= processed=first,second,imperative imperative=completed Evicted=PodDeleted"; got != want {
		t.Errorf("the end is %q, want %q", got, want)
	}
	c.expectGone(pod)
}
