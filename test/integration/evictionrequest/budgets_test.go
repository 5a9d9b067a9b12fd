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

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// budgetMessage is the message of a request about budget guard, which requires one healthy pod and
// has one.
const budgetMessage = "PodDisruptionBudget guard: Cannot evict pod as it would violate the pod's disruption budget. " +
	"The disruption budget guard needs 1 healthy pods and has 1 currently."

// startBlocked starts the controller and waits until the eviction of the pod is blocked.
func (c *cluster) startBlocked(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	c.startController(clock.RealClock{})
	c.join(pod, drainer)
	request := c.awaitRequest(pod, "the budget to block the eviction", blocked)
	c.expectUntouched(pod)
	return request
}

// expectReleased waits for the eviction of a pod that was blocked.
func (c *cluster) expectReleased(pod *v1.Pod) {
	c.t.Helper()
	request := c.awaitRequest(pod, "the end of the request", evicted)
	c.expectGone(pod)
	// The message depends on whether the controller saw the pod terminate or only its deletion.
	got := meta.FindStatusCondition(request.Status.Conditions, "Blocked")
	if got == nil || got.Status != metav1.ConditionFalse || got.Reason != "NotBlocked" {
		c.t.Errorf("condition Blocked of the evicted pod is %v, want False with reason NotBlocked", got)
	}
	if got, want := describe(request), "active= processed=imperative imperative=completed Evicted=PodDeleted"; got != want {
		c.t.Errorf("the request ended as %q, want %q", got, want)
	}
}

func testBudgetDeleted(t *testing.T, c *cluster) {
	c.StartDisruptionController(c.namespace)
	pod := c.createRunningPod(newPod("protected"), v1.ConditionTrue)
	c.createBudget("guard", pod, 1, policyv1.IfHealthyBudget)

	request := c.startBlocked(pod)
	c.expectCondition(request, metav1.Condition{
		Type: "Blocked", Status: metav1.ConditionTrue, ObservedGeneration: 1,
		Reason: "DisruptionBudget", Message: budgetMessage,
	})
	want := []coordinationv1alpha1.InterceptorStatus{{
		Name: imperative, Retries: 1,
		Message: "Eviction refused (attempt 1): " + budgetMessage,
	}}
	if diff := cmp.Diff(want, request.Status.Interceptors, ignoreTimes); diff != "" {
		t.Errorf("report of the blocked interceptor (-want +got):\n%s", diff)
	}

	c.deleteBudget("guard")
	c.expectReleased(pod)
}

func testBudgetRelaxed(t *testing.T, c *cluster) {
	c.StartDisruptionController(c.namespace)
	pod := c.createRunningPod(newPod("protected"), v1.ConditionTrue)
	c.createBudget("guard", pod, 1, policyv1.IfHealthyBudget)
	c.startBlocked(pod)

	c.patchBudget("guard", `{"minAvailable":0}`)
	c.expectReleased(pod)
}

// testTwoBudgets has two budgets that would each allow the eviction: the API server refuses to
// evict such a pod.
func testTwoBudgets(t *testing.T, c *cluster) {
	c.StartDisruptionController(c.namespace)
	pod := c.createRunningPod(newPod("protected"), v1.ConditionTrue)
	c.createBudget("guard", pod, 0, policyv1.IfHealthyBudget)
	c.createBudget("spare", pod, 0, policyv1.IfHealthyBudget)

	request := c.startBlocked(pod)
	c.expectCondition(request, metav1.Condition{
		Type: "Blocked", Status: metav1.ConditionTrue, ObservedGeneration: 1, Reason: "DisruptionBudget",
		Message: "PodDisruptionBudgets guard, spare select this pod, and the API server does not evict a pod with more than one PodDisruptionBudget: " +
			"change their selectors so that only one selects the pod.",
	})

	c.deleteBudget("spare")
	c.expectReleased(pod)
}

func testUnhealthyPodAlwaysAllowed(t *testing.T, c *cluster) {
	c.StartDisruptionController(c.namespace)
	pod := c.createRunningPod(newPod("unhealthy"), v1.ConditionFalse)
	budget := c.createBudget("guard", pod, 1, policyv1.AlwaysAllow)
	if budget.Status.DisruptionsAllowed != 0 {
		t.Fatalf("the budget allows %d disruptions, want 0 for this test", budget.Status.DisruptionsAllowed)
	}
	c.startController(clock.RealClock{})
	c.join(pod, drainer)
	request := c.awaitRequest(pod, "the end of the request", evicted)
	c.expectGone(pod)
	if got, want := describe(request), "active= processed=imperative imperative=completed Evicted=PodDeleted"; got != want {
		t.Errorf("the end is %q, want %q", got, want)
	}
}

// testUnhealthyPodReleased changes only the policy of the budget.
func testUnhealthyPodReleased(t *testing.T, c *cluster) {
	c.StartDisruptionController(c.namespace)
	pod := c.createRunningPod(newPod("unhealthy"), v1.ConditionFalse)
	c.createBudget("guard", pod, 1, policyv1.IfHealthyBudget)
	c.startBlocked(pod)

	c.patchBudget("guard", `{"unhealthyPodEvictionPolicy":"AlwaysAllow"}`)
	c.expectReleased(pod)
}
