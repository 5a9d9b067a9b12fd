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
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/metrics"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/podeviction"
	"k8s.io/utils/clock"
)

// evictionItem is what an eviction worker takes on: the next step for a request, or the
// next eviction under a budget. As the queue hands out each item once at a time, a budget
// has as many evictions in flight as it has slots.
type evictionItem struct {
	// request is set for the step of a request, and empty for an eviction under a budget.
	request types.NamespacedName
	budget  types.NamespacedName
	slot    int
}

func itemOf(request types.NamespacedName) evictionItem { return evictionItem{request: request} }

// namespace is where the pod is that the item is about. A budget is in that of its pods.
func (i evictionItem) namespace() string { return cmp.Or(i.request.Namespace, i.budget.Namespace) }

const (
	// contentionPause is how long no eviction under a budget is tried after the API server
	// has refused one for which the cached budget has room: there is a newer one, and its
	// event ends the pause. The requests would only be refused one after another.
	contentionPause = time.Second

	// maxContentionDelay bounds the delay of a request that is refused so again and again.
	// Others under the same budget go first meanwhile.
	maxContentionDelay = time.Minute

	// minRetryAfter and maxRetryAfter bound the time after which an answer asks to be called
	// again. Webhooks can name any: none may cause a loop without a pause, nor silence.
	minRetryAfter = time.Second
	maxRetryAfter = 2 * time.Minute

	// maxOverloadPause bounds how long the other requests of a budget wait, too, where one was
	// asked to come back later: the API server is busy, or it was only about that pod.
	maxOverloadPause = 10 * time.Second
)

// imperativeInterceptor is imperative-eviction.k8s.io. It has a queue of its own,
// because its calls may take long: the API server serializes evictions per budget. A
// request whose pod has one budget waits for its eviction in the queue of that budget, of
// which the oldest that may go is evicted; all others are evicted for themselves.
type imperativeInterceptor struct {
	requestLister coordinationlisters.EvictionRequestLister
	podLister     corelisters.PodLister
	budgetLister  policylisters.PodDisruptionBudgetLister

	evict   podeviction.Evictor
	writer  *requestWriter
	waiting *budgetQueues
	// evicted holds until when pods whose eviction succeeded are left alone: the cache may
	// still show them as they were.
	evicted *podTimes
	// retryAfter holds the times before which the API server does not want to be asked
	// again about a pod.
	retryAfter *podTimes
	// changed holds the pods that have changed since the last attempt.
	changed *podSet

	queue workqueue.TypedDelayingInterface[evictionItem]
	// limitWorkers shares that many workers of the queue among the namespaces.
	limitWorkers func(workers int)
	// backoff says how long a request waits that fails again and again.
	backoff workqueue.TypedRateLimiter[types.NamespacedName]
	clock   clock.WithTicker
}

// sync handles an item. What fails is tried again with an increasing delay of its own.
func (i *imperativeInterceptor) sync(ctx context.Context, item evictionItem) {
	request, err := item.request, error(nil)
	if item.request == (types.NamespacedName{}) {
		request, err = i.syncBudget(ctx, item)
	} else {
		err = i.syncRequest(ctx, request)
	}
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Will retry the eviction", "evictionRequest", request)
		i.queue.AddAfter(itemOf(request), i.backoff.When(request))
	}
}

// eviction is what the caches say of a request, its pod and its budgets.
type eviction struct {
	request *coordinationv1alpha1.EvictionRequest
	pod     *v1.Pod
	budgets []*policyv1.PodDisruptionBudget
}

func (e *eviction) key() types.NamespacedName { return keyOf(e.request) }

// budgetKeys names the budgets that select the pod.
func (e *eviction) budgetKeys() []types.NamespacedName {
	var keys []types.NamespacedName
	for _, budget := range e.budgets {
		keys = append(keys, keyOf(budget))
	}
	return keys
}

// governedBy returns the budget in whose queue the pod waits, or nil: it has none, or
// several, of which the API server would ask none.
func (e *eviction) governedBy() *policyv1.PodDisruptionBudget {
	if budgets := governing(e.pod, e.budgets); len(budgets) == 1 {
		return budgets[0]
	}
	return nil
}

// read returns what the caches say of a request, or nil when it or its pod is not there, or
// the cache is older than the last own write.
func (i *imperativeInterceptor) read(key types.NamespacedName) (*eviction, error) {
	if !i.writer.isCurrent(key) {
		return nil, nil
	}
	request, err := i.requestLister.EvictionRequests(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	pod, err := i.podLister.Pods(key.Namespace).Get(targetName(request))
	if apierrors.IsNotFound(err) || err == nil && string(pod.UID) != key.Name {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading pod %s: %w", targetName(request), err)
	}
	return &eviction{request, pod, podeviction.BudgetsOf(i.budgetLister, pod)}, nil
}

// syncRequest takes the next step for one request. Where that is an eviction under a
// budget, the request joins the queue of the budget.
func (i *imperativeInterceptor) syncRequest(ctx context.Context, key types.NamespacedName) error {
	request, err := i.requestLister.EvictionRequests(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) || err == nil && !isItsTurn(request) {
		i.forget(key)
		return nil
	}
	e, err := i.read(key)
	if err != nil {
		return err
	}
	if e == nil {
		// The event of the own write or of the pod should bring the next sync.
		i.queue.AddAfter(itemOf(key), safetyDelay())
		return nil
	}
	now := i.clock.Now()
	step, wait := i.nextStep(now, e)
	i.queue.AddAfter(itemOf(key), earliest(wait, safetyDelay()))
	if taken := i.place(now, e, step, wait); taken {
		return nil // It comes again when its eviction has an answer.
	}
	status := e.request.Status.DeepCopy()
	switch step {
	case stepEvict:
		if e.governedBy() == nil {
			return i.evictPod(ctx, e)
		}
		return nil
	case stepDecline:
		recordDecline(now, status, declineReason(e.pod))
	case stepReportTermination:
		recordTermination(now, status)
	}
	return i.writer.setStatus(ctx, e.request, status)
}

// isItsTurn reports whether the built-in interceptor has anything to do for the request.
func isItsTurn(request *coordinationv1alpha1.EvictionRequest) bool {
	return !isFinished(&request.Status) && activeInterceptor(&request.Status) == coordinationv1alpha1.EvictionInterceptorImperative
}

// nextStep is nextImperativeStep with what this process remembers.
func (i *imperativeInterceptor) nextStep(now time.Time, e *eviction) (imperativeStep, time.Duration) {
	step, wait := nextImperativeStep(now, e.request, e.pod, i.changed.has(e.pod.UID))
	if step != stepEvict && step != stepAwaitBudget {
		return step, wait
	}
	for _, notBefore := range []*podTimes{i.evicted, i.retryAfter} {
		if wait := notBefore.remaining(e.pod.UID, now); wait > 0 {
			return stepWait, wait
		}
	}
	if step == stepAwaitBudget && len(governing(e.pod, e.budgets)) == 0 {
		return stepEvict, 0 // What it has waited for is gone.
	}
	return step, wait
}

// place has the request wait in the queue of its budget if that is the step, and returns
// whether it is being evicted at this moment.
func (i *imperativeInterceptor) place(now time.Time, e *eviction, step imperativeStep, wait time.Duration) (taken bool) {
	var c *candidate
	budget := e.governedBy()
	if budget != nil && (step == stepEvict || step == stepAwaitBudget) {
		c = &candidate{request: e.key(), created: e.request.CreationTimestamp.Time, healthy: podutil.IsPodReady(e.pod), dueAt: now.Add(wait)}
	}
	keys := e.budgetKeys()
	taken = i.waiting.place(e.key(), keys, c)
	if c != nil {
		i.wake(keyOf(budget))
	}
	// Who handled the event of a budget before the request was placed has not found it.
	again := eviction{e.request, e.pod, podeviction.BudgetsOf(i.budgetLister, e.pod)}
	if !slices.Equal(keys, again.budgetKeys()) {
		i.queue.Add(itemOf(e.key()))
	}
	return taken
}

// wake has an eviction tried under the budget, if a request waits for it.
func (i *imperativeInterceptor) wake(budget types.NamespacedName) {
	if !i.waiting.has(budget) {
		return
	}
	for slot := range i.waiting.perBudget {
		i.queue.Add(evictionItem{budget: budget, slot: slot})
	}
}

// noteChange remembers that a pod has changed, if an attempt to evict it may follow: what
// has refused it before, such as a webhook, may not do so any more.
func (i *imperativeInterceptor) noteChange(pod *v1.Pod) {
	request, err := i.requestLister.EvictionRequests(pod.Namespace).Get(string(pod.UID))
	if err == nil && isItsTurn(request) {
		i.changed.add(pod.UID)
	}
}

// placeAgain decides again for all requests whose pods the budget selected: its selector has
// changed, or it is gone.
func (i *imperativeInterceptor) placeAgain(budget types.NamespacedName) {
	for _, request := range i.waiting.relatedTo(budget) {
		i.queue.Add(itemOf(request))
	}
}

// syncBudget evicts the oldest pod under a budget that may go now, and returns its request.
func (i *imperativeInterceptor) syncBudget(ctx context.Context, item evictionItem) (types.NamespacedName, error) {
	budget, err := i.budgetLister.PodDisruptionBudgets(item.budget.Namespace).Get(item.budget.Name)
	if err != nil {
		i.placeAgain(item.budget)
		return types.NamespacedName{}, nil
	}
	now := i.clock.Now()
	room := roomOf(budget, i.waiting.used(item.budget, budget.ResourceVersion))
	key, found, wait := i.waiting.next(item.budget, budget.ResourceVersion, now, room)
	if !found {
		if wait > 0 {
			i.queue.AddAfter(item, wait)
		}
		return types.NamespacedName{}, nil
	}
	// Whatever becomes of this one, it is the turn of the next then.
	defer i.queue.Add(item)
	defer func() {
		if again := i.waiting.done(item.budget, key); again {
			i.queue.Add(itemOf(key))
		}
	}()
	return key, i.evictNext(ctx, now, key, budget, room)
}

// evictNext evicts the pod of a request that was taken out of the queue of a budget, if all
// is still as it was when the request was placed there.
func (i *imperativeInterceptor) evictNext(ctx context.Context, now time.Time, key types.NamespacedName, budget *policyv1.PodDisruptionBudget, room room) error {
	e, err := i.read(key)
	if err != nil {
		return err
	}
	if e != nil && e.governedBy() != nil && keyOf(e.governedBy()) == keyOf(budget) {
		step, _ := i.nextStep(now, e)
		if step == stepEvict || step == stepAwaitBudget && room.allows(podutil.IsPodReady(e.pod)) {
			return i.evictPod(ctx, e)
		}
	}
	i.queue.Add(itemOf(key))
	return nil
}

// evictPod makes one attempt. Only a refusal is written down: after a success, the
// end of the pod speaks for itself.
func (i *imperativeInterceptor) evictPod(ctx context.Context, e *eviction) error {
	i.changed.remove(e.pod.UID)
	err := i.evict(ctx, e.pod, evictionPreconditions(e.pod, e.budgets))
	// The call may have taken seconds: what is recorded carries the time of the answer.
	now := i.clock.Now()
	outcome, detail := podeviction.Classify(err, e.budgets)
	contended := outcome == podeviction.Budget && budgetsAllow(e.pod, e.budgets)
	if contended {
		// The budget in the cache has room, so the API server knows a newer one, or was
		// busy with other evictions. That is no state worth reporting.
		outcome = podeviction.Retry
	}
	metrics.CountImperativeEviction(outcome.String())
	if delay, asked := requestedDelay(err); asked {
		i.retryAfter.set(e.pod.UID, now.Add(delay))
	}
	if outcome == podeviction.Retry {
		return i.retry(ctx, now, e, err, contended)
	}
	i.backoff.Forget(e.key())
	status := e.request.Status.DeepCopy()
	switch outcome {
	case podeviction.Evicted:
		klog.FromContext(ctx).V(2).Info("Evicted pod", "pod", klog.KObj(e.pod), "podUID", e.pod.UID)
		i.rememberEvicted(now, e)
		return nil
	case podeviction.Gone:
		return nil
	case podeviction.Budget:
		recordRefusal(now, status, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, detail)
	case podeviction.Refused:
		recordRefusal(now, status, coordinationv1alpha1.EvictionRequestReasonEvictionRefused, detail)
	}
	return i.writer.setStatus(ctx, e.request, status)
}

// retry has the eviction tried again after an answer that says nothing of the pod: when
// the API server has asked to, or after a delay that increases.
func (i *imperativeInterceptor) retry(ctx context.Context, now time.Time, e *eviction, err error, contended bool) error {
	item, budget := itemOf(e.key()), e.governedBy()
	delay, asked := requestedDelay(err)
	if !asked && !contended {
		return fmt.Errorf("evicting pod %s: %w", e.pod.Name, err)
	}
	klog.FromContext(ctx).V(2).Info("The eviction is tried again later", "pod", klog.KObj(e.pod), "err", err)
	if budget != nil {
		if contended {
			i.waiting.pause(keyOf(budget), now.Add(contentionPause), budget.ResourceVersion)
		} else {
			i.waiting.pause(keyOf(budget), now.Add(min(delay, maxOverloadPause)), "")
		}
	}
	if !asked {
		delay = min(i.backoff.When(e.key()), maxContentionDelay)
	}
	i.queue.AddAfter(item, delay)
	return nil
}

// requestedDelay returns how long to wait if the answer asks for a delay, within bounds.
func requestedDelay(err error) (delay time.Duration, asked bool) {
	seconds, asked := apierrors.SuggestsClientDelay(err)
	// Compared as a number of seconds, which no duration may overflow.
	seconds = min(max(seconds, int(minRetryAfter/time.Second)), int(maxRetryAfter/time.Second))
	return time.Duration(seconds) * time.Second, asked
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
func (i *imperativeInterceptor) rememberEvicted(now time.Time, e *eviction) {
	if budget := e.governedBy(); budget != nil && podutil.IsPodReady(e.pod) {
		key, version := keyOf(budget), budget.ResourceVersion
		if spent := i.waiting.spend(key, version); !roomOf(budget, spent).healthy {
			// The API server has just written that there is no room any more.
			i.waiting.pause(key, now.Add(contentionPause), version)
		}
	}
	i.evicted.set(e.pod.UID, now.Add(safetyInterval))
	if _, err := i.requestLister.EvictionRequests(e.request.Namespace).Get(e.request.Name); apierrors.IsNotFound(err) {
		i.evicted.remove(e.pod.UID)
	}
}

// forget drops what is remembered of a request that is over.
func (i *imperativeInterceptor) forget(key types.NamespacedName) {
	uid := types.UID(key.Name)
	i.waiting.forget(key)
	i.evicted.remove(uid)
	i.retryAfter.remove(uid)
	i.changed.remove(uid)
	i.backoff.Forget(key)
}
