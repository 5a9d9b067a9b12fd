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

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"
)

const (
	namespace     = "bench"
	budgetName    = "all"
	requesterName = "bench.example.com"

	// pollInterval is how often a state is looked at that comes before or after a
	// measurement.
	pollInterval = 200 * time.Millisecond

	// stepTimeout bounds each thing that is waited for. The longest is a drain of the
	// largest number of pods, at 5 each second.
	stepTimeout = 10 * time.Minute
)

// appLabels are on every pod; the budget selects them. A requester that knows the pod
// puts its labels on the request.
var appLabels = map[string]string{"app": "bench"}

// createNamespace also waits for the service account without which no pod is admitted.
func (c *cluster) createNamespace(ctx context.Context) error {
	_, err := c.setup.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating namespace %s: %w", namespace, err)
	}
	return poll(ctx, func(ctx context.Context) (string, error) {
		_, err := c.setup.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "the default service account", nil
		}
		return "", err
	})
}

// newPod is a pod that is gone at the moment of its eviction, so that nobody's speed in
// ending containers is measured. It is bound to its node: neither is the scheduler's.
func newPod(index int, node string, interceptors ...string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", index), Labels: appLabels},
		Spec: v1.PodSpec{
			NodeName:                      node,
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			AutomountServiceAccountToken:  ptr.To(false),
			Containers:                    []v1.Container{{Name: "app", Image: "registry.k8s.io/pause"}},
		},
	}
	for _, name := range interceptors {
		pod.Spec.EvictionInterceptors = append(pod.Spec.EvictionInterceptors, v1.EvictionInterceptor{Name: name})
	}
	return pod
}

// drainNode is the node that is drained: it has all the pods then.
const drainNode = "node-0"

func (c *cluster) spread(index int) string { return fmt.Sprintf("node-%d", index%c.opts.nodes) }

// createPods creates pods and waits until all are ready: an eviction of a pod that is
// not takes a shorter way through the API server.
func (c *cluster) createPods(ctx context.Context, count int, node func(int) string, interceptors ...string) ([]v1.Pod, error) {
	pods := c.setup.CoreV1().Pods(namespace)
	if err := c.inParallel(ctx, count, func(ctx context.Context, i int) error {
		_, err := pods.Create(ctx, newPod(i, node(i), interceptors...), metav1.CreateOptions{})
		return err
	}); err != nil {
		return nil, fmt.Errorf("creating pods: %w", err)
	}
	var list *v1.PodList
	err := poll(ctx, func(ctx context.Context) (string, error) {
		var err error
		if list, err = pods.List(ctx, metav1.ListOptions{ResourceVersion: "0"}); err != nil {
			return "", err
		}
		ready := 0
		for i := range list.Items {
			if podutil.IsPodReady(&list.Items[i]) {
				ready++
			}
		}
		if ready < count {
			return fmt.Sprintf("%d pods to be ready, %d are", count, ready), nil
		}
		return "", nil
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// createBudget creates a budget over all pods, of which so many must stay, and waits
// until the disruption controller has counted them. The number is absolute, because
// the pods belong to no controller.
func (c *cluster) createBudget(ctx context.Context, pods, minAvailable int) error {
	budgets := c.setup.PolicyV1().PodDisruptionBudgets(namespace)
	_, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: budgetName},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt(minAvailable)),
			Selector:     &metav1.LabelSelector{MatchLabels: appLabels},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a budget: %w", err)
	}
	return poll(ctx, func(ctx context.Context) (string, error) {
		budget, err := budgets.Get(ctx, budgetName, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		status := budget.Status
		if status.ObservedGeneration < budget.Generation || int(status.CurrentHealthy) != pods || int(status.DisruptionsAllowed) != pods-minAvailable {
			return fmt.Sprintf("the budget to count %d pods, it has %d", pods, status.CurrentHealthy), nil
		}
		return "", nil
	})
}

// newRequest asks for the eviction of a pod as a requester does that makes no work for
// others: with the pod's labels.
func newRequest(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	return &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID), Labels: pod.Labels},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: requesterName}},
		},
	}
}

// request creates a request for each pod and returns when all have reached a state.
func (c *cluster) request(ctx context.Context, pods []v1.Pod, what string, reached func(*coordinationv1alpha1.EvictionRequest) bool) error {
	// The watch begins before the first request is there, and has its own client: it is
	// we who wait, not the requester.
	list, err := c.setup.CoordinationV1alpha1().EvictionRequests(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing requests: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.awaitRequests(ctx, list.ResourceVersion, len(pods), what, reached) })
	group.Go(func() error {
		err := c.inParallel(ctx, len(pods), func(ctx context.Context, i int) error {
			_, err := c.requester.CoordinationV1alpha1().EvictionRequests(namespace).Create(ctx, newRequest(&pods[i]), metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return fmt.Errorf("creating requests: %w", err)
		}
		return nil
	})
	return group.Wait()
}

// awaitRequests watches until so many requests have reached a state.
func (c *cluster) awaitRequests(ctx context.Context, resourceVersion string, count int, what string, reached func(*coordinationv1alpha1.EvictionRequest) bool) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	requests := c.setup.CoordinationV1alpha1().EvictionRequests(namespace)
	there := map[types.UID]bool{}
	_, err := watchtools.Until(ctx, resourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return requests.Watch(ctx, options)
		},
	}, func(event watch.Event) (bool, error) {
		request, ok := event.Object.(*coordinationv1alpha1.EvictionRequest)
		if !ok {
			return false, apierrors.FromObject(event.Object)
		}
		if condition := findCondition(request, coordinationv1alpha1.EvictionRequestConditionCanceled); condition != nil {
			return false, fmt.Errorf("request %s was canceled: %s", request.Name, condition.Message)
		}
		if reached(request) {
			there[request.UID] = true
		}
		return len(there) == count, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %d requests to be %s, %d are: %w", count, what, len(there), err)
	}
	return nil
}

// findCondition returns a condition that is true, or nil.
func findCondition(request *coordinationv1alpha1.EvictionRequest, conditionType coordinationv1alpha1.EvictionRequestConditionType) *metav1.Condition {
	condition := meta.FindStatusCondition(request.Status.Conditions, string(conditionType))
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return nil
	}
	return condition
}

func isEvicted(request *coordinationv1alpha1.EvictionRequest) bool {
	return findCondition(request, coordinationv1alpha1.EvictionRequestConditionEvicted) != nil
}

// clean removes what a measurement has left: maintenances first, which have requests,
// then these, which would have to be finished without their pods.
func (c *cluster) clean(ctx context.Context) error {
	if err := c.endMaintenances(ctx); err != nil {
		return err
	}
	requests := c.setup.CoordinationV1alpha1().EvictionRequests(namespace)
	budgets := c.setup.PolicyV1().PodDisruptionBudgets(namespace)
	pods := c.setup.CoreV1().Pods(namespace)
	for _, kind := range []struct {
		name   string
		delete func(context.Context, metav1.DeleteOptions, metav1.ListOptions) error
		list   func(context.Context, metav1.ListOptions) (runtime.Object, error)
	}{
		{"requests", requests.DeleteCollection, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return requests.List(ctx, o) }},
		{"budgets", budgets.DeleteCollection, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return budgets.List(ctx, o) }},
		{"pods", pods.DeleteCollection, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) }},
	} {
		if err := kind.delete(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			return fmt.Errorf("removing %s: %w", kind.name, err)
		}
		if err := poll(ctx, func(ctx context.Context) (string, error) {
			list, err := kind.list(ctx, metav1.ListOptions{})
			if err != nil || meta.LenList(list) == 0 {
				return "", err
			}
			return fmt.Sprintf("the removal of %d %s", meta.LenList(list), kind.name), nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// poll returns when there is nothing left to wait for. waitsFor names it.
func poll(ctx context.Context, waitsFor func(context.Context) (string, error)) error {
	missing := ""
	err := wait.PollUntilContextTimeout(ctx, pollInterval, stepTimeout, true, func(ctx context.Context) (bool, error) {
		what, err := waitsFor(ctx)
		if what != "" {
			missing = what
		}
		return what == "" && err == nil, err
	})
	if err != nil && missing != "" {
		return fmt.Errorf("waiting for %s: %w", missing, err)
	}
	return err
}

// inParallel calls do for each index, with so many calls in flight as are asked for.
func (c *cluster) inParallel(ctx context.Context, count int, do func(ctx context.Context, index int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.opts.parallel)
	for i := range count {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
