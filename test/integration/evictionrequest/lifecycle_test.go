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
	"context"
	"strings"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/utils/clock"
)

// expectEnd waits until a request is finished, and compares it with what is expected.
func (c *cluster) expectEnd(pod *v1.Pod, want metav1.Condition, wantState string) {
	c.t.Helper()
	request := c.awaitRequest(pod, "the end of the request", is(coordinationv1alpha1.EvictionRequestConditionType(want.Type)))
	c.expectCondition(request, want)
	if got := describe(request); got != wantState {
		c.t.Errorf("the request for pod %s ended as %q, want %q", pod.Name, got, wantState)
	}
}

func canceledAs(generation int64, reason, message string) metav1.Condition {
	return metav1.Condition{Type: "Canceled", Status: metav1.ConditionTrue, ObservedGeneration: generation, Reason: reason, Message: message}
}

func evictedAs(reason, message string) metav1.Condition {
	return metav1.Condition{Type: "Evicted", Status: metav1.ConditionTrue, ObservedGeneration: 1, Reason: reason, Message: message}
}

// testLastRequesterLeaves has two requesters: the request is canceled only when both have left.
func testLastRequesterLeaves(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("wanted", withInterceptors(first)))
	c.join(pod, drainer)
	c.join(pod, scaler)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))

	left := c.leave(pod, drainer)
	request := c.awaitRequest(pod, "a sync with the remaining requester", observed(left.Generation))
	if got, want := describe(request), "active=first processed="; got != want {
		t.Fatalf("with a requester left the request is %q, want %q", got, want)
	}

	left = c.leave(pod, scaler)
	c.expectEnd(pod, canceledAs(left.Generation, "NoRequesters", "The last requester was removed from spec.requesters."),
		"active= processed=first Canceled=NoRequesters")
	c.expectUntouched(pod)
}

// testBlockedRequestCanceled withdraws a request that a budget blocks. The deletion of the budget
// must not trigger the eviction.
func testBlockedRequestCanceled(t *testing.T, c *cluster) {
	c.StartDisruptionController(c.namespace)
	pod := c.createRunningPod(newPod("protected"), v1.ConditionTrue)
	c.createBudget("guard", pod, 1, policyv1.IfHealthyBudget)
	c.startBlocked(pod)

	left := c.leave(pod, drainer)
	c.expectEnd(pod, canceledAs(left.Generation, "NoRequesters", "The last requester was removed from spec.requesters."),
		"active= processed=imperative imperative=completed Canceled=NoRequesters")
	c.deleteBudget("guard")

	// The eviction of another pod shows that the controller has processed these events.
	other := c.createPod(newPod("other"))
	c.join(other, drainer)
	c.awaitRequest(other, "the end of another request", evicted)
	c.expectUntouched(pod)
}

func testPodDeletedByAnotherClient(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("deleted", withInterceptors(first, second)))
	c.join(pod, drainer)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))

	c.deletePod(pod)
	c.expectEnd(pod, evictedAs("PodDeleted", "Target Pod deleted was deleted."),
		"active= processed=first Evicted=PodDeleted")
}

// testPodDeletedWithoutController deletes the pod while no controller is running, so that none sees
// the deletion.
func testPodDeletedWithoutController(t *testing.T, c *cluster) {
	stop := c.startController(clock.RealClock{})
	pod := c.createPod(newPod("deleted", withInterceptors(first)))
	c.join(pod, drainer)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))

	stop()
	c.deletePod(pod)
	c.startController(clock.RealClock{})
	c.expectEnd(pod, evictedAs("PodDeleted", "Target Pod deleted was deleted."),
		"active= processed=first Evicted=PodDeleted")
}

func testPodTerminal(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("job", withInterceptors(first)))
	c.join(pod, drainer)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))

	pod = c.setPodStatus(pod, v1.PodStatus{Phase: v1.PodSucceeded})
	c.expectEnd(pod, evictedAs("PodTerminal", "Target Pod job finished with phase Succeeded."),
		"active= processed=first Evicted=PodTerminal")
	c.expectUntouched(pod)
}

// testPodTerminating evicts a pod with a long grace period: the request is evicted when the pod is
// gone, and not when it starts to terminate.
func testPodTerminating(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("slow", withGracePeriod(3600)))
	pod = c.setPodStatus(pod, v1.PodStatus{Phase: v1.PodRunning})
	c.join(pod, drainer)
	c.Eventually("the pod to terminate", func(ctx context.Context) (bool, string) {
		current, err := c.client.CoreV1().Pods(c.namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return current.DeletionTimestamp != nil, "not terminating"
	})
	joined := c.join(pod, scaler)
	request := c.awaitRequest(pod, "a sync of the terminating pod", observed(joined.Generation))
	if got, want := describe(request), "active=imperative processed="; got != want {
		t.Fatalf("while the pod terminates the request is %q, want %q", got, want)
	}

	c.deletePod(pod)
	request = c.awaitRequest(pod, "the end of the request", evicted)
	if got, want := describe(request), "active= processed=imperative imperative=completed Evicted=PodDeleted"; got != want {
		t.Errorf("the request ended as %q, want %q", got, want)
	}
}

func testPodMissing(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := newPod("missing")
	pod.UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
	c.join(pod, drainer)
	c.expectEnd(pod, canceledAs(1, "ValidationFailed", "Target Pod missing was not found."),
		"active= processed= Canceled=ValidationFailed")
}

// testPodOfAnotherUID requests the eviction of a deleted instance of a pod whose name exists:
// otherwise, a client could block the name of the request for any other pod.
func testPodOfAnotherUID(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("reborn"))
	former := pod.DeepCopy()
	former.UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
	_, err := c.tryApplyRequesters(former, drainer, coordinationapply.Requester().WithName(drainer))
	if want := `pod "reborn" in namespace "` + c.namespace + `" has the UID "` + string(pod.UID) + `", but spec.target.pod.uid is "` + string(former.UID) + `"`; !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want Forbidden because %s", err, want)
	}
	c.expectUntouched(pod)
}

func testPodInSchedulingGroup(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("member", inSchedulingGroup("group")))
	c.join(pod, drainer)
	c.expectEnd(pod, canceledAs(1, "ValidationFailed", "Target Pod member references a SchedulingGroup whose pods are not evicted individually."),
		"active= processed= Canceled=ValidationFailed")
	c.expectUntouched(pod)
}

// testPodReplaced replaces the pod by another one of the same name while the controller is running.
func testPodReplaced(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("replaced", withInterceptors(first)))
	c.join(pod, drainer)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))

	c.deletePod(pod)
	replacement := c.createPod(newPod("replaced"))
	c.expectEnd(pod, evictedAs("PodDeleted", "Target Pod replaced was deleted."),
		"active= processed=first Evicted=PodDeleted")
	c.expectUntouched(replacement)
}

// testPodReplacedWithoutController replaces a pod while no controller is running. The next
// controller finds a request with the imperative interceptor active, and a pod of the same name
// that no budget protects.
func testPodReplacedWithoutController(t *testing.T, c *cluster) {
	c.StartDisruptionController(c.namespace)
	stop := c.startController(clock.RealClock{})
	pod := c.createRunningPod(newPod("replaced"), v1.ConditionTrue)
	c.createBudget("guard", pod, 1, policyv1.IfHealthyBudget)
	c.join(pod, drainer)
	c.awaitRequest(pod, "the budget to block the eviction", blocked)

	stop()
	c.deleteBudget("guard")
	c.deletePod(pod)
	replacement := c.createPod(newPod("replaced"))
	c.startController(clock.RealClock{})
	c.expectEnd(pod, evictedAs("PodDeleted", "Target Pod replaced was deleted."),
		"active= processed=imperative imperative=completed Evicted=PodDeleted")
	c.expectUntouched(replacement)
}
