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
	"errors"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/podeviction"
)

// budgetTask is what an eviction worker does for the requests that wait for a budget. The tasks do not
// wait for each other: a probe may take as long as the webhooks of the namespace.
type budgetTask int

const (
	// taskEvict evicts the next pod that the budget allows.
	taskEvict budgetTask = iota
	// taskProbe asks the API server about one pod that the cached budget does not let go.
	taskProbe
	// taskRecord records the answer in the next request that waits for the same budget.
	taskRecord
)

// enqueueBudget enqueues the tasks for a budget if a request waits for it.
func (i *imperativeInterceptor) enqueueBudget(budget types.NamespacedName) {
	if !i.waiting.has(budget) {
		return
	}
	for slot := range i.waiting.limit(budget) {
		i.queue.Add(evictionItem{budget: budget, task: taskEvict, slot: slot})
	}
	i.queue.Add(evictionItem{budget: budget, task: taskProbe})
	i.queue.Add(evictionItem{budget: budget, task: taskRecord})
}

// candidateOf returns the request as it waits for the budget.
func (i *imperativeInterceptor) candidateOf(now time.Time, e *eviction, budget *policyv1.PodDisruptionBudget) *candidate {
	c := &candidate{
		request: e.key(), created: e.request.CreationTimestamp.Time, healthy: podutil.IsPodReady(e.pod),
		report: reportOf(e.request, budget),
	}
	entry := evictionrequesttools.InterceptorStatusOf(&e.request.Status, coordinationv1alpha1.EvictionInterceptorImperative)
	if entry != nil && entry.HeartbeatTime != nil {
		c.dueAt = entry.HeartbeatTime.Add(retryDelay(entry.Retries))
	}
	if wait := i.recordAfter.remaining(e.pod.UID, now); wait > 0 {
		c.recordAfter = now.Add(wait)
	}
	return c
}

// reportOf returns what the request says about the budget for which it waits.
func reportOf(request *coordinationv1alpha1.EvictionRequest, budget *policyv1.PodDisruptionBudget) report {
	blocked := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionBlocked))
	switch {
	case !isBlocked(&request.Status):
		return reportNone
	case blocked.Reason != coordinationv1alpha1.EvictionRequestReasonDisruptionBudget:
		return reportOther
	case podeviction.IsAbout(blocked.Message, budget):
		return reportBudget
	}
	return reportNone
}

// syncBudget does a task for a budget, and returns the request that it was about.
func (i *imperativeInterceptor) syncBudget(ctx context.Context, item evictionItem) (types.NamespacedName, error) {
	budget, err := i.budgetLister.PodDisruptionBudgets(item.budget.Namespace).Get(item.budget.Name)
	if err != nil {
		i.enqueueRelated(item.budget)
		return types.NamespacedName{}, nil
	}
	now := i.clock.Now()
	i.waiting.notice(budget, now)
	switch item.task {
	case taskProbe:
		return i.probeBudget(ctx, now, item, budget)
	case taskRecord:
		return i.recordVerdict(ctx, now, item, budget)
	}
	return i.evictUnder(ctx, now, item, budget)
}

// evictUnder evicts the next pod that the budget allows.
func (i *imperativeInterceptor) evictUnder(ctx context.Context, now time.Time, item evictionItem, budget *policyv1.PodDisruptionBudget) (types.NamespacedName, error) {
	allowance := poddisruptionbudget.AllowanceOf(budget, i.waiting.used(item.budget, budget.ResourceVersion, now))
	key, found, wait := i.waiting.next(item.budget, budget.ResourceVersion, now, allowance)
	if !found {
		i.enqueueAfter(item, wait)
		return types.NamespacedName{}, nil
	}
	// The next request is processed afterwards, whatever the outcome of this one.
	defer i.queue.Add(item)
	defer func() { i.enqueueIf(i.waiting.done(item.budget, key), key) }()
	e, err := i.readWaiting(now, key, budget)
	if err != nil || e == nil {
		return key, err
	}
	if ready := podutil.IsPodReady(e.pod); !allowance.Allows(ready) || !poddisruptionbudget.AllowanceOf(e.budget(), 0).Allows(ready) {
		i.queue.Add(itemOf(key)) // The pod or the budget has changed.
		return key, nil
	}
	return key, i.evictPod(ctx, e)
}

// probeBudget asks the API server about one pod that waits although the cached budget allows no eviction.
func (i *imperativeInterceptor) probeBudget(ctx context.Context, now time.Time, item evictionItem, budget *policyv1.PodDisruptionBudget) (types.NamespacedName, error) {
	key, found, wait := i.waiting.probe(item.budget, budget.ResourceVersion, now, poddisruptionbudget.AllowanceOf(budget, 0))
	if !found {
		i.enqueueAfter(item, wait)
		return types.NamespacedName{}, nil
	}
	defer i.queue.Add(item)
	defer func() { i.enqueueIf(i.waiting.probed(item.budget, key), key) }()
	e, err := i.readBlocked(now, key, budget)
	if err != nil || e == nil {
		return key, err
	}
	e.probe = true
	return key, i.evictPod(ctx, e)
}

// recordVerdict records what the API server has said about the budget in the next request that waits
// for it and does not say so yet. It is no attempt of its own, so it is not worth an event for each pod.
func (i *imperativeInterceptor) recordVerdict(ctx context.Context, now time.Time, item evictionItem, budget *policyv1.PodDisruptionBudget) (types.NamespacedName, error) {
	key, detail, found, wait := i.waiting.unrecorded(item.budget, now, poddisruptionbudget.AllowanceOf(budget, 0))
	if !found {
		i.enqueueAfter(item, wait)
		return types.NamespacedName{}, nil
	}
	defer i.queue.Add(item)
	defer func() { i.enqueueIf(i.waiting.recorded(key), key) }()
	e, err := i.readBlocked(now, key, budget)
	if err != nil || e == nil {
		return key, err
	}
	if reportOf(e.request, budget) != reportNone {
		i.queue.Add(itemOf(key))
		return key, nil
	}
	status, ofAnother := e.request.Status.DeepCopy(), isBlockedBy(&e.request.Status, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget)
	recordRefusal(now, status, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, detail)
	err = i.writer.setStatusSilently(ctx, e.request, status)
	switch {
	case err == nil && ofAnother:
		// Who replaces the budget again and again must not have all requests written as often.
		i.recordAfter.set(e.pod.UID, now.Add(minRetryDelay))
	case err != nil:
		// The pod is evicted all the same when the budget allows it.
		if !errors.As(err, new(*waitError)) {
			utilruntime.HandleErrorWithContext(ctx, err, "Failed to record why a pod is not evicted, will retry", "evictionRequest", key)
		}
		i.recordAfter.set(e.pod.UID, now.Add(i.backoff.When(key)))
		i.queue.Add(itemOf(key))
	}
	return key, nil
}

// readWaiting reads a request that was taken from the queue of a budget. If it does not wait for an
// eviction under this budget any more, it is processed again, and the result is nil.
func (i *imperativeInterceptor) readWaiting(now time.Time, key types.NamespacedName, budget *policyv1.PodDisruptionBudget) (*eviction, error) {
	e, err := i.read(key)
	if err != nil {
		return nil, err
	}
	if e != nil && e.budget() != nil && keyOf(e.budget()) == keyOf(budget) {
		if step, _ := i.nextStep(now, e); step == stepEvict || step == stepAwaitBudget {
			return e, nil
		}
	}
	i.queue.Add(itemOf(key))
	return nil, nil
}

// readBlocked is readWaiting for a pod that its budget does not let go.
func (i *imperativeInterceptor) readBlocked(now time.Time, key types.NamespacedName, budget *policyv1.PodDisruptionBudget) (*eviction, error) {
	e, err := i.readWaiting(now, key, budget)
	if e != nil && poddisruptionbudget.AllowanceOf(e.budget(), 0).Allows(podutil.IsPodReady(e.pod)) {
		i.queue.Add(itemOf(key))
		return nil, nil
	}
	return e, err
}

// attempting takes note of an attempt under a budget.
func (i *imperativeInterceptor) attempting(e *eviction, now time.Time) {
	switch budget := e.budget(); {
	case budget == nil:
	case e.probe:
		i.waiting.asked(keyOf(budget), now)
	default:
		i.waiting.began(keyOf(budget), now)
	}
}

// attempted takes note of its answer. A refusal of a probe holds for all that wait for the budget.
func (i *imperativeInterceptor) attempted(e *eviction, began, now time.Time, outcome podeviction.Outcome, detail string) {
	switch budget := e.budget(); {
	case budget == nil:
	case e.probe:
		i.waiting.asked(keyOf(budget), now)
		if outcome == podeviction.Budget {
			i.waiting.refused(budget, detail)
			i.queue.Add(evictionItem{budget: keyOf(budget), task: taskRecord})
		}
	default:
		if more := i.waiting.ended(keyOf(budget), began, now, outcome == podeviction.Retry); more {
			i.enqueueBudget(keyOf(budget))
		}
	}
}

func (i *imperativeInterceptor) enqueueAfter(item evictionItem, wait time.Duration) {
	if wait > 0 {
		i.queue.AddAfter(item, wait)
	}
}

func (i *imperativeInterceptor) enqueueIf(again bool, request types.NamespacedName) {
	if again {
		i.queue.Add(itemOf(request))
	}
}
