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

package nodemaintenance

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/utils/ptr"
)

// protect sets the pod to Running and creates a budget that does not allow its eviction.
func (c *cluster) protect(pod *v1.Pod) {
	c.t.Helper()
	pod = c.setPhase(pod, v1.PodRunning, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue})
	if _, err := c.client.PolicyV1().PodDisruptionBudgets(c.namespace).Create(c.t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}},
	}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("creating a budget: %v", err)
	}
	c.eventually("the budget to count the pod", func(ctx context.Context) (bool, string) {
		budget, err := c.client.PolicyV1().PodDisruptionBudgets(c.namespace).Get(ctx, "guard", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return budget.Status.ObservedGeneration == budget.Generation && budget.Status.CurrentHealthy == 1, fmt.Sprintf("%+v", budget.Status)
	})
}

// testBudget blocks a pod with a budget until the budget is deleted.
func testBudget(t *testing.T, c *cluster) {
	c.createNode("one")
	c.StartDisruptionController("")
	c.protect(c.createPod(newPod("pod", "one")))
	c.createPod(newPod("free", "one"))
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.awaitDrained("m", blocked("1 pod left on 1 of 1 node. 1 pod waits for PodDisruptionBudget %[1]s/guard (it never allows a disruption: it needs 1 healthy pod, of 1: lower minAvailable or raise maxUnavailable, or add a pod): %[1]s/pod.", c.namespace), 1)
	c.awaitEvent("DrainBlocked", "m")
	c.expect("only the protected pod to stay", states{"pod/pod": "here", "pod/free": "gone", "node/one": draining})

	if err := c.client.PolicyV1().PodDisruptionBudgets(c.namespace).Delete(t.Context(), "guard", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting the budget: %v", err)
	}
	c.awaitDrained("m", metav1.Condition{Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.NodeMaintenanceReasonDrained, Message: "No pod is left on 1 node."}, 0)
	c.expect("the pod to be gone", states{"pod/pod": "gone"})
}

// testInterceptorAtWork reports an expected finish time as the interceptor.
func testInterceptorAtWork(t *testing.T, c *cluster) {
	c.createNode("one")
	pod := c.createPod(newPod("pod", "one", withInterceptor(stubborn)))
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.await("the interceptor to become active", states{"request/pod": asked})
	now := time.Now().Truncate(time.Second).UTC()
	report := startedBy(stubborn).WithStartTime(metav1.NewTime(now)).WithHeartbeatTime(metav1.NewTime(now)).WithExpectedFinishTime(metav1.NewTime(now.Add(20 * time.Minute)))
	c.report(pod, coordinationapply.EvictionRequestStatus().WithInterceptors(report))
	c.awaitDrained("m", metav1.Condition{
		Status: metav1.ConditionFalse, Reason: coordinationv1alpha1.NodeMaintenanceReasonDraining,
		Message: fmt.Sprintf("1 pod left on 1 of 1 node. 1 pod waits for interceptor %s (last heartbeat %s, expected to finish %s, at work): %s/pod.",
			stubborn, now.Format("2006-01-02T15:04Z"), now.Add(20*time.Minute).Format(time.RFC3339), c.namespace),
	}, 0)
	c.report(pod, coordinationapply.EvictionRequestStatus().WithInterceptors(report.WithCompletionTime(metav1.Now())))
	c.await("the drain to finish", states{"pod/pod": "gone", "maintenance/m": "Cordon, Drain of 1, finalizer, True: Drained"})
}

// testStuckTerminating blocks the drain with a pod that still exists after its grace period,
// because no kubelet removes it.
func testStuckTerminating(t *testing.T, c *cluster) {
	c.createNode("one")
	c.createPod(newPod("pod", "one", func(pod *v1.Pod) { pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](600) }))
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.await("the pod to terminate", states{"pod/pod": "terminating"})
	pod, err := c.client.CoreV1().Pods(c.namespace).Get(t.Context(), "pod", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading the pod: %v", err)
	}
	ends := pod.DeletionTimestamp.UTC()
	since := ends.Add(-600 * time.Second).Format(time.RFC3339)
	c.awaitDrained("m", metav1.Condition{
		Status: metav1.ConditionFalse, Reason: coordinationv1alpha1.NodeMaintenanceReasonDraining,
		Message: fmt.Sprintf("1 pod left on 1 of 1 node. 1 pod is terminating (since %s, grace period ends %s): %s/pod.", since, ends.Format(time.RFC3339), c.namespace),
	}, 0)
	c.clock.SetTime(ends.Add(30 * time.Second))
	c.awaitDrained("m", blocked("1 pod left on 1 of 1 node. 1 pod is still terminating after the grace period (since %s): %s/pod.", since, c.namespace), 1)
	c.deletePod(pod)
	c.await("the drain to finish", states{"maintenance/m": "Cordon, Drain of 1, finalizer, True: Drained", "node/one": empty})
}
