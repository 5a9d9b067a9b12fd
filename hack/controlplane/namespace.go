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

package controlplane

import (
	"context"
	"fmt"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

const (
	// Interceptor is named by the pods that name one.
	Interceptor = "interceptor.example.com"

	// pollTimeout is far beyond what any state takes.
	pollTimeout = time.Minute
)

// Namespace is where the pods of a test live. Its methods are what a user, an
// interceptor and a kubelet would do.
type Namespace struct {
	Client kubernetes.Interface
	Name   string
}

// Create creates the namespace and waits until it takes pods.
func (n *Namespace) Create(ctx context.Context) error {
	if _, err := n.Client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the namespace: %w", err)
	}
	// Pods are admitted only when their service account is there.
	return Poll(ctx, "the default service account", func(ctx context.Context) (bool, error) {
		_, err := n.Client.CoreV1().ServiceAccounts(n.Name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, ignoreNotFound(err)
	})
}

// NewPod returns a pod that ends as soon as it is deleted.
func NewPod(name string, interceptors ...string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: v1.PodSpec{
			NodeName:                      "node",
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers:                    []v1.Container{{Name: "main", Image: "main"}},
		},
	}
	for _, name := range interceptors {
		pod.Spec.EvictionInterceptors = append(pod.Spec.EvictionInterceptors, v1.EvictionInterceptor{Name: name})
	}
	return pod
}

// CreateReadyPod creates a pod and makes it Running and Ready: a budget protects no
// other.
func (n *Namespace) CreateReadyPod(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	created, err := n.Client.CoreV1().Pods(n.Name).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating pod %s: %w", pod.Name, err)
	}
	created.Status = v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}}
	ready, err := n.Client.CoreV1().Pods(n.Name).UpdateStatus(ctx, created, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("writing the status of pod %s: %w", pod.Name, err)
	}
	return ready, nil
}

// GetPod returns the current state of this instance of a pod.
func (n *Namespace) GetPod(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	current, err := n.Client.CoreV1().Pods(n.Name).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading pod %s: %w", pod.Name, err)
	}
	if current.UID != pod.UID {
		return nil, fmt.Errorf("pod %s had UID %s and has %s: somebody has created it anew", pod.Name, pod.UID, current.UID)
	}
	return current, nil
}

// ExpectStays fails if the pod is gone, or told to go, within the period.
func (n *Namespace) ExpectStays(ctx context.Context, pod *v1.Pod, period time.Duration) error {
	deadline := time.Now().Add(period)
	for {
		current, err := n.GetPod(ctx, pod)
		if err != nil {
			return err
		}
		if current.DeletionTimestamp != nil {
			return fmt.Errorf("pod %s terminates since %v, must stay", pod.Name, current.DeletionTimestamp)
		}
		if !time.Now().Before(deadline) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}

// AwaitGone waits until the pod does not exist.
func (n *Namespace) AwaitGone(ctx context.Context, pod *v1.Pod) error {
	return Poll(ctx, "the end of pod "+pod.Name, func(ctx context.Context) (bool, error) {
		_, err := n.Client.CoreV1().Pods(n.Name).Get(ctx, pod.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), ignoreNotFound(err)
	})
}

// LabelPod writes a label of a pod and nothing else.
func (n *Namespace) LabelPod(ctx context.Context, pod *v1.Pod, key, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value)
	if _, err := n.Client.CoreV1().Pods(n.Name).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("labeling pod %s: %w", pod.Name, err)
	}
	return nil
}

// Evict evicts a pod without an EvictionRequest.
func (n *Namespace) Evict(ctx context.Context, pod *v1.Pod) error {
	err := n.Client.PolicyV1().Evictions(n.Name).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: n.Name}})
	if err != nil {
		return fmt.Errorf("evicting pod %s: %w", pod.Name, err)
	}
	return nil
}

// CreateBudget creates a budget that never lets the pod go, and waits until it counts.
func (n *Namespace) CreateBudget(ctx context.Context, pod *v1.Pod) error {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(0)),
			Selector:       &metav1.LabelSelector{MatchLabels: pod.Labels},
		},
	}
	if _, err := n.Client.PolicyV1().PodDisruptionBudgets(n.Name).Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating budget %s: %w", budget.Name, err)
	}
	return Poll(ctx, "the status of budget "+budget.Name, func(ctx context.Context) (bool, error) {
		current, err := n.Client.PolicyV1().PodDisruptionBudgets(n.Name).Get(ctx, budget.Name, metav1.GetOptions{})
		return err == nil && current.Status.ObservedGeneration == current.Generation, err
	})
}

// DeleteBudget deletes a budget.
func (n *Namespace) DeleteBudget(ctx context.Context, name string) error {
	if err := n.Client.PolicyV1().PodDisruptionBudgets(n.Name).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting budget %s: %w", name, err)
	}
	return nil
}

// Request asks for the eviction of a pod. The error is the API server's own.
func (n *Namespace) Request(ctx context.Context, pod *v1.Pod) error {
	_, err := n.Client.CoordinationV1alpha1().EvictionRequests(n.Name).Create(ctx, &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID)},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: "drain.example.com"}},
		},
	}, metav1.CreateOptions{})
	return err
}

// AwaitRequest waits until the request for a pod is as it should be.
func (n *Namespace) AwaitRequest(ctx context.Context, pod *v1.Pod, what string, reached func(*coordinationv1alpha1.EvictionRequest) bool) (*coordinationv1alpha1.EvictionRequest, error) {
	var request *coordinationv1alpha1.EvictionRequest
	err := Poll(ctx, fmt.Sprintf("%s (pod %s)", what, pod.Name), func(ctx context.Context) (bool, error) {
		var err error
		request, err = n.Client.CoordinationV1alpha1().EvictionRequests(n.Name).Get(ctx, string(pod.UID), metav1.GetOptions{})
		return err == nil && reached(request), err
	})
	return request, err
}

// AwaitEvicted waits for the end of a request, by which the pod must be gone.
func (n *Namespace) AwaitEvicted(ctx context.Context, pod *v1.Pod) (string, error) {
	if _, err := n.AwaitRequest(ctx, pod, "the end of the request", IsTrue(coordinationv1alpha1.EvictionRequestConditionEvicted)); err != nil {
		return "", err
	}
	_, err := n.Client.CoreV1().Pods(n.Name).Get(ctx, pod.Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("the request has Evicted=True; reading pod %s: %v, must be not found", pod.Name, err)
	}
	return fmt.Sprintf("pod %s is gone, its request has Evicted=True.", pod.Name), nil
}

// Report applies what the interceptor says of itself: that it has started, and, later,
// that it has completed.
func (n *Namespace) Report(ctx context.Context, pod *v1.Pod, completed bool) error {
	request, err := n.Client.CoordinationV1alpha1().EvictionRequests(n.Name).Get(ctx, string(pod.UID), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the request for pod %s: %w", pod.Name, err)
	}
	now := metav1.Now()
	entry := coordinationapply.InterceptorStatus().WithName(Interceptor).WithHeartbeatTime(now).WithStartTime(now)
	if started := InterceptorStatus(request, Interceptor).StartTime; started != nil {
		entry.WithStartTime(*started)
	}
	if completed {
		entry.WithCompletionTime(now)
	}
	patch := coordinationapply.EvictionRequest(request.Name, n.Name).WithStatus(coordinationapply.EvictionRequestStatus().WithInterceptors(entry))
	// Force: the controller has created the entry.
	_, err = n.Client.CoordinationV1alpha1().EvictionRequests(n.Name).ApplyStatus(ctx, patch, metav1.ApplyOptions{FieldManager: Interceptor, Force: true})
	if err != nil {
		return fmt.Errorf("reporting as %s: %w", Interceptor, err)
	}
	return nil
}

// InterceptorStatus returns the entry of an interceptor, which is empty if there is none.
func InterceptorStatus(request *coordinationv1alpha1.EvictionRequest, name string) coordinationv1alpha1.InterceptorStatus {
	for _, entry := range request.Status.Interceptors {
		if entry.Name == name {
			return entry
		}
	}
	return coordinationv1alpha1.InterceptorStatus{}
}

// IsTrue tells whether a condition of a request is True.
func IsTrue(condition coordinationv1alpha1.EvictionRequestConditionType) func(*coordinationv1alpha1.EvictionRequest) bool {
	return func(request *coordinationv1alpha1.EvictionRequest) bool {
		return meta.IsStatusConditionTrue(request.Status.Conditions, string(condition))
	}
}

// IsActive tells whether it is the turn of an interceptor.
func IsActive(name string) func(*coordinationv1alpha1.EvictionRequest) bool {
	return func(request *coordinationv1alpha1.EvictionRequest) bool {
		return len(request.Status.ActiveInterceptors) == 1 && request.Status.ActiveInterceptors[0] == name
	}
}

// Poll waits for a condition.
func Poll(ctx context.Context, what string, condition wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, pollInterval, pollTimeout, true, condition); err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
