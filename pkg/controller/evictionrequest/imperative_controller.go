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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/metrics"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/podeviction"
	"k8s.io/utils/clock"
)

// imperativeInterceptor is imperative-eviction.k8s.io. It has a queue of its own,
// because its calls may take long: the API server serializes evictions per budget.
type imperativeInterceptor struct {
	requestLister coordinationlisters.EvictionRequestLister
	podLister     corelisters.PodLister
	budgetLister  policylisters.PodDisruptionBudgetLister

	evict  podeviction.Evictor
	writer *requestWriter
	pacer  *pacer
	// evicted holds the pods whose eviction succeeded, until their requests finish: the
	// cache may still show them as they were.
	evicted *podSet
	// retryAfter holds the times before which the API server does not want to be asked
	// again about a pod.
	retryAfter *podTimes

	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]
	clock clock.WithTicker
}

// syncRequest takes the next step for one request.
func (i *imperativeInterceptor) syncRequest(ctx context.Context, key types.NamespacedName) error {
	defer i.pacer.pass(key)
	if !i.writer.isCurrent(key) {
		return nil // The event that brings our own last write brings the next sync.
	}
	request, err := i.requestLister.EvictionRequests(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	pod, err := i.podLister.Pods(key.Namespace).Get(targetName(request))
	if apierrors.IsNotFound(err) || (err == nil && string(pod.UID) != key.Name) {
		return nil // Gone, or not seen yet: its event brings the next sync.
	}
	if err != nil {
		return fmt.Errorf("reading pod %s: %w", targetName(request), err)
	}
	budgets := podeviction.BudgetsOf(i.budgetLister, pod)

	now := i.clock.Now()
	step, lookAgainAfter := nextImperativeStep(now, request, pod, budgetsAllow(pod, budgets))
	if lookAgainAfter > 0 {
		i.queue.AddAfter(key, lookAgainAfter)
	}
	status := request.Status.DeepCopy()
	switch step {
	case stepEvict:
		return i.evictInTurn(ctx, request, pod, budgets)
	case stepDecline:
		recordDecline(now, status, declineReason(pod))
	case stepReportTermination:
		recordTermination(now, status)
	}
	return i.writer.setStatus(ctx, request, status)
}

// evictInTurn makes an attempt when the API server wants one: not before the time that
// it has named, and not while enough others go on under the same budget.
func (i *imperativeInterceptor) evictInTurn(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod, budgets []*policyv1.PodDisruptionBudget) error {
	key := types.NamespacedName{Namespace: request.Namespace, Name: request.Name}
	if i.evicted.has(pod.UID) {
		return nil // Its termination is on its way into the cache.
	}
	if wait := i.retryAfter.remaining(pod.UID, i.clock.Now()); wait > 0 {
		i.queue.AddAfter(key, wait)
		return nil
	}
	// Two budgets on one pod are refused without a write to either.
	if len(budgets) == 1 {
		budget := types.NamespacedName{Namespace: budgets[0].Namespace, Name: budgets[0].Name}
		if !i.pacer.enter(budget, key) {
			return nil
		}
		defer i.pacer.leave(budget)
	}
	return i.evictPod(ctx, request, pod, budgets)
}

// evictPod makes one attempt. Only a refusal is written down: after a success, the
// end of the pod speaks for itself.
func (i *imperativeInterceptor) evictPod(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod, budgets []*policyv1.PodDisruptionBudget) error {
	err := i.evict(ctx, pod, evictionPreconditions(pod, budgets))
	// The call may have taken seconds: what is recorded carries the time of the answer.
	now := i.clock.Now()
	outcome, detail := podeviction.Classify(err, budgets)
	if outcome == podeviction.Budget && budgetsAllow(pod, budgets) {
		// The budget in the cache has room, so the API server knows a newer one, or was
		// busy with other evictions. That is no state worth reporting.
		outcome = podeviction.Retry
	}
	metrics.CountImperativeEviction(outcome.String())
	seconds, asked := apierrors.SuggestsClientDelay(err)
	if asked {
		i.retryAfter.set(pod.UID, now.Add(time.Duration(seconds)*time.Second))
	}
	status := request.Status.DeepCopy()
	switch outcome {
	case podeviction.Evicted:
		klog.FromContext(ctx).V(2).Info("Evicted pod", "pod", klog.KObj(pod), "podUID", pod.UID)
		i.rememberEvicted(request, pod)
		return nil
	case podeviction.Gone:
		return nil
	case podeviction.Retry:
		if asked {
			klog.FromContext(ctx).V(2).Info("The API server asked to try again later", "pod", klog.KObj(pod), "err", err)
			i.queue.AddAfter(types.NamespacedName{Namespace: request.Namespace, Name: request.Name}, time.Duration(seconds)*time.Second)
			return nil
		}
		return fmt.Errorf("evicting pod %s: %w", pod.Name, err)
	case podeviction.Budget:
		recordRefusal(now, status, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, detail)
	case podeviction.Refused:
		recordRefusal(now, status, coordinationv1alpha1.EvictionRequestReasonEvictionRefused, detail)
	}
	return i.writer.setStatus(ctx, request, status)
}

// evictionPreconditions makes sure that this instance of the pod is evicted and no
// other. Without a budget it also has to be as it was seen: where another leader, or an
// API server that died before it answered, has evicted it already, it is not evicted
// again. With a budget that would do harm: the API server takes the pod off the budget
// before it compares versions, and a pod whose status had just changed would cost the
// budget one disruption, until the disruption controller notices after two minutes.
func evictionPreconditions(pod *v1.Pod, budgets []*policyv1.PodDisruptionBudget) *metav1.Preconditions {
	preconditions := &metav1.Preconditions{UID: &pod.UID}
	if len(budgets) == 0 {
		preconditions.ResourceVersion = &pod.ResourceVersion
	}
	return preconditions
}

// rememberEvicted keeps the pod from being evicted again before the cache shows that
// it terminates. When its request was deleted during the call, no event will come to
// forget it.
func (i *imperativeInterceptor) rememberEvicted(request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) {
	i.evicted.add(pod.UID)
	if _, err := i.requestLister.EvictionRequests(request.Namespace).Get(request.Name); apierrors.IsNotFound(err) {
		i.evicted.remove(pod.UID)
	}
}
