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
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"
)

// Names that all tests use.
const (
	first      = "first.example.com"
	second     = "second.example.com"
	imperative = coordinationv1alpha1.EvictionInterceptorImperative
	drainer    = "drainer.example.com"
	scaler     = "scaler.example.com"
)

// newPod returns a pod on a node without a kubelet: without a grace period it is removed as soon as
// it is deleted.
func newPod(name string, options ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: v1.PodSpec{
			NodeName:                      "node",
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers:                    []v1.Container{{Name: "main", Image: "main"}},
		},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

func withInterceptors(names ...string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		for _, name := range names {
			pod.Spec.EvictionInterceptors = append(pod.Spec.EvictionInterceptors, v1.EvictionInterceptor{Name: name})
		}
	}
}

func withGracePeriod(seconds int64) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
}

func inSchedulingGroup(name string) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &name} }
}

func (c *cluster) createPod(pod *v1.Pod) *v1.Pod {
	c.t.Helper()
	created, err := c.client.CoreV1().Pods(c.namespace).Create(c.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("creating pod %s: %v", pod.Name, err)
	}
	return created
}

// createRunningPod creates a pod that a PodDisruptionBudget protects: a pending pod would be
// evicted despite the budget.
func (c *cluster) createRunningPod(pod *v1.Pod, ready v1.ConditionStatus) *v1.Pod {
	c.t.Helper()
	return c.setPodStatus(c.createPod(pod), v1.PodStatus{
		Phase:      v1.PodRunning,
		Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: ready}},
	})
}

// setPodStatus writes the status of a pod like the kubelet.
func (c *cluster) setPodStatus(pod *v1.Pod, status v1.PodStatus) *v1.Pod {
	c.t.Helper()
	pod = pod.DeepCopy()
	pod.Status = status
	updated, err := c.client.CoreV1().Pods(c.namespace).UpdateStatus(c.t.Context(), pod, metav1.UpdateOptions{})
	if err != nil {
		c.t.Fatalf("writing the status of pod %s: %v", pod.Name, err)
	}
	return updated
}

// deletePod deletes a pod without a grace period.
func (c *cluster) deletePod(pod *v1.Pod) {
	c.t.Helper()
	if err := c.client.CoreV1().Pods(c.namespace).Delete(c.t.Context(), pod.Name, *metav1.NewDeleteOptions(0)); err != nil {
		c.t.Fatalf("deleting pod %s: %v", pod.Name, err)
	}
}

// expectGone fails unless this instance of the pod was deleted.
func (c *cluster) expectGone(pod *v1.Pod) {
	c.t.Helper()
	current, err := c.client.CoreV1().Pods(c.namespace).Get(c.t.Context(), pod.Name, metav1.GetOptions{})
	if err == nil && current.UID == pod.UID {
		c.t.Errorf("pod %s still exists", pod.Name)
	} else if err != nil && !apierrors.IsNotFound(err) {
		c.t.Errorf("reading pod %s: %v", pod.Name, err)
	}
}

// expectUntouched fails unless the pod is unchanged.
func (c *cluster) expectUntouched(pod *v1.Pod) {
	c.t.Helper()
	current, err := c.client.CoreV1().Pods(c.namespace).Get(c.t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		c.t.Errorf("reading pod %s: %v", pod.Name, err)
	} else if diff := cmp.Diff(pod, current); diff != "" {
		c.t.Errorf("pod %s was changed (-before +now):\n%s", pod.Name, diff)
	}
}

// newRequest returns a request for the eviction of the pod.
func newRequest(pod *v1.Pod, options ...func(*coordinationv1alpha1.EvictionRequest)) *coordinationv1alpha1.EvictionRequest {
	request := &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID)},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: drainer}},
		},
	}
	for _, option := range options {
		option(request)
	}
	return request
}

func withDeadline(seconds int32) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) { request.Spec.HeartbeatDeadlineSeconds = &seconds }
}

func (c *cluster) createRequest(request *coordinationv1alpha1.EvictionRequest) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	created, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Create(c.t.Context(), request, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("creating the request for pod %s: %v", request.Spec.Target.Pod.Name, err)
	}
	return created
}

// join adds a requester with Server-Side Apply under its own field manager. The first one creates
// the request.
func (c *cluster) join(pod *v1.Pod, requester string) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	return c.applyRequesters(pod, requester, coordinationapply.Requester().WithName(requester))
}

// leave removes a requester: it applies without its entry.
func (c *cluster) leave(pod *v1.Pod, requester string) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	return c.applyRequesters(pod, requester)
}

func (c *cluster) applyRequesters(pod *v1.Pod, manager string, requesters ...*coordinationapply.RequesterApplyConfiguration) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	request, err := c.tryApplyRequesters(pod, manager, requesters...)
	if err != nil {
		c.t.Fatalf("applying the requesters of %s: %v", manager, err)
	}
	return request
}

func (c *cluster) tryApplyRequesters(pod *v1.Pod, manager string, requesters ...*coordinationapply.RequesterApplyConfiguration) (*coordinationv1alpha1.EvictionRequest, error) {
	target := coordinationapply.EvictionTarget().WithPod(coordinationapply.LocalPodReference().WithName(pod.Name).WithUID(string(pod.UID)))
	patch := coordinationapply.EvictionRequest(string(pod.UID), c.namespace).
		WithSpec(coordinationapply.EvictionRequestSpec().WithTarget(target).WithRequesters(requesters...))
	return c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Apply(c.t.Context(), patch, metav1.ApplyOptions{FieldManager: manager})
}

func (c *cluster) report(pod *v1.Pod, report *coordinationapply.InterceptorStatusApplyConfiguration) {
	c.t.Helper()
	if err := c.tryReport(pod, report); err != nil {
		c.t.Fatalf("reporting as %s: %v", *report.Name, err)
	}
}

// tryReport applies the report of an interceptor. Force is set because the controller has created
// the entry.
func (c *cluster) tryReport(pod *v1.Pod, report *coordinationapply.InterceptorStatusApplyConfiguration) error {
	patch := coordinationapply.EvictionRequest(string(pod.UID), c.namespace).
		WithStatus(coordinationapply.EvictionRequestStatus().WithInterceptors(report))
	_, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).
		ApplyStatus(c.t.Context(), patch, metav1.ApplyOptions{FieldManager: *report.Name, Force: true})
	return err
}

// started returns the first report of an interceptor.
func started(name string, now metav1.Time) *coordinationapply.InterceptorStatusApplyConfiguration {
	return coordinationapply.InterceptorStatus().WithName(name).WithStartTime(now).WithHeartbeatTime(now).WithMessage("at work")
}

// completed returns the final report of an interceptor that started at the same time.
func completed(name string, now metav1.Time) *coordinationapply.InterceptorStatusApplyConfiguration {
	return started(name, now).WithCompletionTime(now).WithMessage("done")
}

// createBudget creates a PodDisruptionBudget for the pod and waits until its status is up to date.
func (c *cluster) createBudget(name string, pod *v1.Pod, minAvailable int32, policy policyv1.UnhealthyPodEvictionPolicyType) *policyv1.PodDisruptionBudget {
	c.t.Helper()
	if _, err := c.client.PolicyV1().PodDisruptionBudgets(c.namespace).Create(c.t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable:               ptr.To(intstr.FromInt32(minAvailable)),
			Selector:                   &metav1.LabelSelector{MatchLabels: pod.Labels},
			UnhealthyPodEvictionPolicy: &policy,
		},
	}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("creating budget %s: %v", name, err)
	}
	healthy := int32(0)
	if podutil.IsPodReady(pod) {
		healthy = 1
	}
	var budget *policyv1.PodDisruptionBudget
	c.Eventually("the status of budget "+name, func(ctx context.Context) (bool, string) {
		var err error
		if budget, err = c.client.PolicyV1().PodDisruptionBudgets(c.namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return false, err.Error()
		}
		counted := budget.Status.ObservedGeneration == budget.Generation && budget.Status.CurrentHealthy == healthy
		return counted, fmt.Sprintf("%+v", budget.Status)
	})
	return budget
}

func (c *cluster) deleteBudget(name string) {
	c.t.Helper()
	if err := c.client.PolicyV1().PodDisruptionBudgets(c.namespace).Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatalf("deleting budget %s: %v", name, err)
	}
}

// patchBudget applies a merge patch to the spec of a budget.
func (c *cluster) patchBudget(name, spec string) {
	c.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":%s}`, spec)
	if _, err := c.client.PolicyV1().PodDisruptionBudgets(c.namespace).Patch(c.t.Context(), name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		c.t.Fatalf("patching budget %s with %s: %v", name, patch, err)
	}
}

// Conditions for awaitRequest.

func active(name string) func(*coordinationv1alpha1.EvictionRequest) bool {
	return func(request *coordinationv1alpha1.EvictionRequest) bool {
		return len(request.Status.ActiveInterceptors) == 1 && request.Status.ActiveInterceptors[0] == name
	}
}

func observed(generation int64) func(*coordinationv1alpha1.EvictionRequest) bool {
	return func(request *coordinationv1alpha1.EvictionRequest) bool {
		return request.Status.ObservedGeneration >= generation
	}
}

func is(conditionType coordinationv1alpha1.EvictionRequestConditionType) func(*coordinationv1alpha1.EvictionRequest) bool {
	return func(request *coordinationv1alpha1.EvictionRequest) bool {
		return meta.IsStatusConditionTrue(request.Status.Conditions, string(conditionType))
	}
}

var (
	evicted  = is(coordinationv1alpha1.EvictionRequestConditionEvicted)
	canceled = is(coordinationv1alpha1.EvictionRequestConditionCanceled)
	blocked  = is(coordinationv1alpha1.EvictionRequestConditionBlocked)
)

// describe returns the state of a request in one line: the active and processed interceptors, which
// interceptors have started or completed, and which conditions are True. Names have no domain.
func describe(request *coordinationv1alpha1.EvictionRequest) string {
	status := &request.Status
	words := []string{
		"active=" + strings.Join(status.ActiveInterceptors, ","),
		"processed=" + strings.Join(status.ProcessedInterceptors, ","),
	}
	for _, interceptor := range status.Interceptors {
		switch {
		case interceptor.CompletionTime != nil:
			words = append(words, interceptor.Name+"=completed")
		case interceptor.StartTime != nil:
			words = append(words, interceptor.Name+"=started")
		}
	}
	for _, condition := range status.Conditions {
		// Reconciling and Stalled follow from the others: see pkg/registry/coordination/evictionrequest.
		derived := condition.Type == string(coordinationv1alpha1.EvictionRequestConditionReconciling) || condition.Type == string(coordinationv1alpha1.EvictionRequestConditionStalled)
		if condition.Status == metav1.ConditionTrue && !derived {
			words = append(words, condition.Type+"="+condition.Reason)
		}
	}
	return shortNames.Replace(strings.Join(words, " "))
}

var shortNames = strings.NewReplacer(".example.com", "", "-eviction.k8s.io", "")

// ignoreTimes ignores all times in a comparison.
var ignoreTimes = cmpopts.IgnoreTypes(metav1.Time{}, &metav1.Time{})

// expectCondition compares a condition, except for its time.
func (c *cluster) expectCondition(request *coordinationv1alpha1.EvictionRequest, want metav1.Condition) {
	c.t.Helper()
	got := meta.FindStatusCondition(request.Status.Conditions, want.Type)
	if diff := cmp.Diff(&want, got, ignoreTimes); diff != "" {
		c.t.Errorf("condition %s of the request for pod %s (-want +got):\n%s", want.Type, request.Spec.Target.Pod.Name, diff)
	}
}
