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
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/util/fairshare"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/metrics"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/podeviction"
	"k8s.io/kubernetes/pkg/controller/lifecycleeviction/agreement"
	"k8s.io/utils/clock"
)

// evictionItem is a work item of an eviction worker: the next step for one request, or a task for a
// budget. The queue hands out each item to one worker at a time, so a budget has as many evictions in
// flight as it has slots.
type evictionItem struct {
	// request is set for the step of one request, and empty for a task.
	request types.NamespacedName
	budget  types.NamespacedName
	task    budgetTask
	// slot is one of several tasks that evict.
	slot int
}

func itemOf(request types.NamespacedName) evictionItem { return evictionItem{request: request} }

const (
	// contentionPause is how long no eviction under a budget is attempted after the API server has
	// refused one that the cached budget allows. The API server has a newer version of the budget,
	// and its event ends the pause. Without the pause, the other requests would be refused as well. If
	// that happens again and the event does not come, the pause doubles, up to budgetProbeInterval.
	contentionPause = time.Second

	// maxContentionDelay is the maximum delay of a request that is refused in this way repeatedly.
	// Other requests under the same budget are processed in the meantime.
	maxContentionDelay = time.Minute

	// maxConflictDelay is the maximum delay after a conflict: who writes to the pod all the time must
	// not be able to keep it.
	maxConflictDelay = 2 * time.Second

	// failureTolerance is for how long attempts may end with answers that say nothing about the pod, such as conflicts or
	// timeouts of webhooks, before that is shown as what blocks the eviction. Single ones are ordinary.
	failureTolerance = 30 * time.Second

	// minChangePause is the first delay before a change of a refused pod may cause another attempt. It doubles with
	// each refusal, up to minRetryDelay.
	minChangePause = 5 * time.Second

	// minRetryAfter and maxRetryAfter limit the retry delay that a response asks for. Webhooks can
	// return any value: it must cause neither a busy loop nor an eviction that is never retried.
	minRetryAfter = time.Second
	maxRetryAfter = 2 * time.Minute

	// maxOverloadPause limits how long the other requests of a budget wait if a response asked for
	// a retry later. The API server may be overloaded, or the response may be about that pod only.
	maxOverloadPause = 10 * time.Second
)

// imperativeInterceptor is imperative-eviction.k8s.io. It has a queue of its own, because its calls
// may take long: the API server serializes evictions per budget. A request whose pod has one budget
// waits in the queue of that budget (budget_tasks.go). All other pods are evicted independently.
type imperativeInterceptor struct {
	requestLister coordinationlisters.EvictionRequestLister
	podLister     corelisters.PodLister
	budgetLister  policylisters.PodDisruptionBudgetLister
	budgetIndex   budgetIndex

	evict podeviction.Evictor
	// pods reads the current state of a pod that may have been evicted.
	pods    podeviction.Reader
	writer  *requestWriter
	waiting *budgetQueues
	// evicted holds the times until which pods are skipped after a successful eviction: the cache
	// may still have their previous state.
	evicted *podTimes
	// retryAfter holds the times before which the API server asked not to retry the eviction of a
	// pod.
	retryAfter *podTimes
	// failing holds the times since which all attempts for a pod have ended with such answers.
	failing *podTimes
	// recordAfter holds the times before which the verdict about a budget is not recorded (again), because that failed,
	// or took the place of one about another budget.
	recordAfter *podTimes
	// changed holds the pods that have changed since the last attempt.
	changed *podSet
	// uncertain holds the pods that may have been evicted, although the cache does not show it.
	// They are read before they are evicted again.
	uncertain *podSet

	queue workqueue.TypedDelayingInterface[evictionItem]
	// limitWorkers sets how many workers of the queue its owners share.
	limitWorkers func(workers int)
	owners       *owners
	// compared is that of the controller.
	compared *agreement.Requests
	// backoff computes the delay of a request that fails repeatedly.
	backoff workqueue.TypedRateLimiter[types.NamespacedName]
	clock   clock.WithTicker
}

// sync handles an item. Failed requests are retried with an exponential backoff of their own.
func (i *imperativeInterceptor) sync(ctx context.Context, item evictionItem) {
	request, err := item.request, error(nil)
	if item.request == (types.NamespacedName{}) {
		request, err = i.syncBudget(ctx, item)
	} else {
		err = i.syncRequest(ctx, request)
	}
	paced := (*waitError)(nil)
	switch {
	case errors.As(err, &paced):
		i.queue.AddAfter(itemOf(request), paced.wait)
	case err != nil:
		utilruntime.HandleErrorWithContext(ctx, err, "Failed to process an eviction, will retry", "evictionRequest", request)
		i.queue.AddAfter(itemOf(request), i.backoff.When(request))
	}
}

// ownerOf returns for whom an item is processed: under a budget, the oldest request that waits for it.
func (i *imperativeInterceptor) ownerOf(item evictionItem) fairshare.Owner {
	if item.request != (types.NamespacedName{}) {
		return i.owners.of(item.request)
	}
	return i.owners.of(i.waiting.first(item.budget))
}

// budgetIndex is a poddisruptionbudget.Index.
type budgetIndex interface {
	For(pod *v1.Pod) []*policyv1.PodDisruptionBudget
	Version() poddisruptionbudget.Version
}

// eviction is a request with its pod and its budgets, as read from the caches.
type eviction struct {
	request *coordinationv1alpha1.EvictionRequest
	pod     *v1.Pod
	budgets []*policyv1.PodDisruptionBudget
	// version is that of the cache of budgets, or an older one.
	version poddisruptionbudget.Version
	// probe is whether the API server is asked although the cached budget allows no eviction.
	probe bool
}

func (e *eviction) key() types.NamespacedName { return keyOf(e.request) }

// maxRecordedBudgets is how many budgets of a pod are recorded. A pod with several is not evicted
// until at most one is left, and before that, one of any two has to change. A tenant may have
// thousands of budgets that each select thousands of pods.
const maxRecordedBudgets = 2

// budgetKeys returns the keys of the first budgets that select the pod.
func (e *eviction) budgetKeys() []types.NamespacedName {
	var keys []types.NamespacedName
	for _, budget := range e.budgets[:min(len(e.budgets), maxRecordedBudgets)] {
		keys = append(keys, keyOf(budget))
	}
	return keys
}

// budget returns the budget in whose queue the pod waits. It returns nil if the pod has none, or
// several: the API server refuses to evict such a pod without a check of the budgets.
func (e *eviction) budget() *policyv1.PodDisruptionBudget {
	if budgets := poddisruptionbudget.Applicable(e.pod, e.budgets); len(budgets) == 1 {
		return budgets[0]
	}
	return nil
}

// read returns the cached state of a request. It returns nil if the request or its pod is gone, or
// if the cache is older than the last write.
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
	version := i.budgetIndex.Version()
	return &eviction{request: request, pod: pod, budgets: i.budgetIndex.For(pod), version: version}, nil
}

// syncRequest does the next step for one request. If that is an eviction under a budget, the
// request is added to the queue of the budget.
func (i *imperativeInterceptor) syncRequest(ctx context.Context, key types.NamespacedName) error {
	request, err := i.requestLister.EvictionRequests(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) || err == nil && !isImperativeActive(request) {
		i.forget(key)
		return nil
	}
	if err == nil && lacksAgreement(i.compared, request) {
		i.queue.AddAfter(itemOf(key), agreementInterval)
		return nil
	}
	e, err := i.read(key)
	if err != nil {
		return err
	}
	if e == nil {
		// The event of our write or of the pod should trigger the next sync.
		i.queue.AddAfter(itemOf(key), safetyDelay())
		return nil
	}
	now := i.clock.Now()
	step, wait := i.nextStep(now, e)
	queued, taken := i.place(now, e, step)
	if wait > 0 && !queued {
		i.queue.AddAfter(itemOf(key), wait) // In the queue of a budget, the budget says when it is tried.
	}
	if taken {
		return nil // It is enqueued again when its eviction returns.
	}
	status := e.request.Status.DeepCopy()
	switch step {
	case stepEvict:
		if e.budget() == nil {
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

// isImperativeActive reports whether the built-in interceptor is active for the request.
func isImperativeActive(request *coordinationv1alpha1.EvictionRequest) bool {
	return !evictionrequesttools.IsFinished(request.Status.Conditions) && activeInterceptor(&request.Status) == coordinationv1alpha1.EvictionInterceptorImperative
}

// nextStep is nextImperativeStep with the state of this process.
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
	applicable := len(poddisruptionbudget.Applicable(e.pod, e.budgets))
	switch {
	case step == stepAwaitBudget && applicable == 0:
		return stepEvict, 0 // The budget that refused it no longer applies.
	case step == stepEvict && applicable > 1 && isBlockedBy(&e.request.Status, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget):
		// The API server does not evict a pod with several budgets, whatever they allow, and that is recorded. The
		// events of these budgets trigger the next step.
		return stepWait, 0
	}
	return step, wait
}

// place adds the request to the queue of its budget if the step is an eviction. It reports whether it did, and
// whether the request is being evicted at the moment instead.
func (i *imperativeInterceptor) place(now time.Time, e *eviction, step imperativeStep) (queued, taken bool) {
	var c *candidate
	budget := e.budget()
	if budget != nil && (step == stepEvict || step == stepAwaitBudget) {
		c = i.candidateOf(now, e, budget)
	}
	keys := e.budgetKeys()
	taken = i.waiting.place(e.key(), keys, c)
	if c != nil {
		i.enqueueBudget(keyOf(budget))
	}
	// A budget event that was handled before the request was placed did not find the request.
	if i.budgetIndex.Version() != e.version {
		again := eviction{request: e.request, pod: e.pod, budgets: i.budgetIndex.For(e.pod)}
		if !slices.Equal(keys, again.budgetKeys()) {
			i.queue.Add(itemOf(e.key()))
		}
	}
	return c != nil && !taken, taken
}

// podGone drops what is known about a deleted pod.
func (i *imperativeInterceptor) podGone(pod *v1.Pod) { i.uncertain.remove(pod.UID) }

// noteChange records that a pod has changed, if it may be evicted: what refused the eviction
// before, such as a webhook, may now allow it.
func (i *imperativeInterceptor) noteChange(pod *v1.Pod) {
	request, err := i.requestLister.EvictionRequests(pod.Namespace).Get(string(pod.UID))
	if err == nil && isImperativeActive(request) {
		i.changed.add(pod.UID)
	}
}

// enqueueRelated enqueues all requests whose pods the budget selected, because its selector has
// changed or it is gone.
func (i *imperativeInterceptor) enqueueRelated(budget types.NamespacedName) {
	for _, request := range i.waiting.relatedTo(budget) {
		i.queue.Add(itemOf(request))
	}
}

// evictPod makes one attempt. Only a refusal is recorded in the status: after a success, the
// deletion of the pod ends the request.
func (i *imperativeInterceptor) evictPod(ctx context.Context, e *eviction) error {
	if i.uncertain.has(e.pod.UID) {
		return i.confirm(ctx, e)
	}
	i.changed.remove(e.pod.UID)
	began := i.clock.Now()
	i.attempting(e, began)
	err := i.evict(ctx, e.request, coordinationv1alpha1.EvictionInterceptorImperative, e.pod)
	// The call may have taken seconds. The recorded time is the time of the response.
	now := i.clock.Now()
	outcome, detail := podeviction.Classify(err, e.budgets)
	i.attempted(e, began, now, outcome, detail)
	if outcome != podeviction.Budget && podeviction.MayHaveEvicted(err) {
		i.addUncertain(e.pod)
	}
	refusedAsAllowed := outcome == podeviction.Budget && poddisruptionbudget.AllowEviction(e.pod, podutil.IsPodReady(e.pod), e.budgets)
	if refusedAsAllowed {
		// The cached budget allows the eviction, so the API server has a newer version of it, or
		// had conflicts with other evictions, or the pod has changed. Such a state is too short to report.
		outcome = podeviction.Retry
	}
	conflict := apierrors.IsConflict(err) || refusedAsAllowed && isPodConflict(e.pod, err)
	metrics.CountImperativeEviction(outcome.String())
	if delay, asked := requestedDelay(err); asked {
		i.retryAfter.set(e.pod.UID, now.Add(delay))
	}
	contended := refusedAsAllowed && !conflict
	if outcome == podeviction.Retry && !contended && isAnswer(err) || outcome == podeviction.NotRequested && conflict {
		i.failed(ctx, began, now, e, err)
	} else {
		i.failing.remove(e.pod.UID)
	}
	switch outcome {
	case podeviction.Retry:
		return i.retry(ctx, now, e, err, contended, conflict)
	case podeviction.NotRequested:
		// The event of that change is on its way: the request changes, or its drain has ended and it is withdrawn.
		klog.FromContext(ctx).V(2).Info("Not evicted, because the cached request is old, or about to be withdrawn", "pod", klog.KObj(e.pod), "err", err)
		i.queue.AddAfter(itemOf(e.key()), min(i.backoff.When(e.key()), maxContentionDelay))
		return nil
	}
	i.refresh(e)
	status := e.request.Status.DeepCopy()
	switch outcome {
	case podeviction.Evicted:
		i.backoff.Forget(e.key())
		klog.FromContext(ctx).V(2).Info("Evicted pod", "pod", klog.KObj(e.pod), "podUID", e.pod.UID)
		i.rememberEvicted(now, e)
		return nil
	case podeviction.Gone:
		i.backoff.Forget(e.key())
		return nil
	case podeviction.Budget:
		recordRefusal(now, status, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, detail)
	case podeviction.Refused:
		recordRefusal(now, status, coordinationv1alpha1.EvictionRequestReasonEvictionRefused, detail)
		i.retryAfter.set(e.pod.UID, now.Add(changePause(status)))
	}
	if err := i.writer.setStatus(ctx, e.request, status); err != nil {
		// The status, which cannot be written, does not say how often the eviction was refused.
		i.retryAfter.set(e.pod.UID, now.Add(max(changePause(status), i.unrecordedDelay(e.key()))))
		return err
	}
	i.backoff.Forget(e.key())
	return nil
}

// unrecordedDelay returns the delay after a refusal that could not be recorded: the next one of the back-off.
func (i *imperativeInterceptor) unrecordedDelay(key types.NamespacedName) time.Duration {
	delay := firstRetryDelay
	for n := i.backoff.NumRequeues(key); n > 0 && delay < maxRetryDelay; n-- {
		delay *= 2
	}
	return min(delay, maxRetryDelay)
}

// isPodConflict reports whether a refusal by a budget that allows the eviction is a conflict about the pod alone. The API
// server lets a pod that is not ready go without counting it. If it has changed before it is deleted, the API server
// blames the budget, and asks for a delay.
func isPodConflict(pod *v1.Pod, err error) bool {
	_, asked := requestedDelay(err)
	return asked && !podutil.IsPodReady(pod)
}

// changePause returns for how long a change of a pod whose eviction was refused does not cause another attempt: one
// whose readiness flaps changes all the time.
func changePause(status *coordinationv1alpha1.EvictionRequestStatus) time.Duration {
	pause := minChangePause
	for i := int32(1); i < evictionrequesttools.InterceptorStatusOf(status, coordinationv1alpha1.EvictionInterceptorImperative).Retries && pause < minRetryDelay; i++ {
		pause *= 2
	}
	return min(pause, minRetryDelay)
}

// refresh replaces a request by what the cache has: it may have changed during the call, such as by the
// labels that this controller copies, and a refusal could not be recorded in the old version.
func (i *imperativeInterceptor) refresh(e *eviction) {
	request, err := i.requestLister.EvictionRequests(e.request.Namespace).Get(e.request.Name)
	if err == nil && request.UID == e.request.UID && isImperativeActive(request) {
		e.request = request
	}
}

// confirm reads a pod that may have been evicted, although the cache does not show it: the same
// failure may have interrupted the watch, and the API server accepts the eviction of a pod that
// terminates. A pod that still runs is evicted by the next sync, because the request may have changed
// while the API server responded.
func (i *imperativeInterceptor) confirm(ctx context.Context, e *eviction) error {
	leaving, err := podeviction.IsLeaving(ctx, i.pods, e.pod)
	switch {
	case err != nil:
		return fmt.Errorf("reading pod %s, which may have been evicted: %w", e.pod.Name, err)
	case leaving:
		i.skip(i.clock.Now(), e)
	default:
		i.uncertain.remove(e.pod.UID)
		i.queue.Add(itemOf(e.key()))
	}
	return nil
}

// retry schedules the next attempt after a response that says nothing about the pod: after the
// delay that the API server asked for, or after an increasing one. Contention is about the budget, and a conflict about
// the pod.
func (i *imperativeInterceptor) retry(ctx context.Context, now time.Time, e *eviction, err error, contended, conflict bool) error {
	item, budget := itemOf(e.key()), e.budget()
	delay, asked := requestedDelay(err)
	if !asked && !contended && !conflict {
		return fmt.Errorf("evicting pod %s: %w", e.pod.Name, err)
	}
	klog.FromContext(ctx).V(2).Info("Will retry the eviction later", "pod", klog.KObj(e.pod), "err", err)
	if budget != nil {
		switch {
		case contended:
			i.waiting.contend(keyOf(budget), budget.ResourceVersion, now)
		case asked && !conflict:
			i.waiting.pause(keyOf(budget), now.Add(min(delay, maxOverloadPause)))
		}
	}
	switch {
	case asked:
	case conflict:
		delay = min(i.backoff.When(e.key()), maxConflictDelay)
	default:
		delay = min(i.backoff.When(e.key()), maxContentionDelay)
	}
	i.queue.AddAfter(item, delay)
	return nil
}

// failed records that an attempt that began at this time has failed with an answer that says nothing about the pod. If all of
// them do for a while, the status shows, once, that this blocks the eviction. They go on as often as before.
func (i *imperativeInterceptor) failed(ctx context.Context, began, now time.Time, e *eviction, failure error) {
	since, found := i.failing.get(e.pod.UID)
	if !found {
		since = began
		i.failing.set(e.pod.UID, since)
	}
	if now.Sub(since) < failureTolerance {
		return
	}
	i.refresh(e)
	if isBlockedBy(&e.request.Status, coordinationv1alpha1.EvictionRequestReasonEvictionRefused) {
		return
	}
	status := e.request.Status.DeepCopy()
	setCondition(now, status, coordinationv1alpha1.EvictionRequestConditionBlocked, metav1.ConditionTrue, coordinationv1alpha1.EvictionRequestReasonEvictionRefused,
		plaintext.Truncate(fmt.Sprintf("Each attempt for %s has failed, the last one: %v", failureTolerance, failure), maxMessageLength))
	if err := i.writer.setStatus(ctx, e.request, status); err != nil {
		klog.FromContext(ctx).V(2).Info("Could not record that all attempts to evict the pod fail, will retry", "pod", klog.KObj(e.pod), "err", err)
	}
}

// isAnswer reports whether an API server has processed the call. What an intermediary answers, or a server that is
// overloaded, is about all pods, and is not written to each of them.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// requestedDelay returns the delay that the response asks for, within limits.
func requestedDelay(err error) (delay time.Duration, asked bool) {
	seconds, asked := apierrors.SuggestsClientDelay(err)
	// Limited as a number of seconds, because the conversion to a duration could overflow.
	seconds = min(max(seconds, int(minRetryAfter/time.Second)), int(maxRetryAfter/time.Second))
	return time.Duration(seconds) * time.Second, asked
}

// rememberEvicted records a successful eviction, which the caches do not show yet.
func (i *imperativeInterceptor) rememberEvicted(now time.Time, e *eviction) {
	if budget := e.budget(); budget != nil {
		key, version := keyOf(budget), budget.ResourceVersion
		if podutil.IsPodReady(e.pod) || !poddisruptionbudget.AllowanceOf(budget, int(budget.Status.DisruptionsAllowed)).Unhealthy {
			i.waiting.spend(key, version, now)
		}
		i.waiting.moved(key, version, now, e.probe)
		i.queue.Add(evictionItem{budget: key, task: taskProbe})
	}
	i.skip(now, e)
}

// skip prevents that the pod is evicted again before the cache shows that it terminates. If the
// request was deleted during the call, no event removes the entry, so it is removed here.
func (i *imperativeInterceptor) skip(now time.Time, e *eviction) {
	i.evicted.set(e.pod.UID, now.Add(safetyInterval))
	i.addUncertain(e.pod) // The cache may be even older.
	if _, err := i.requestLister.EvictionRequests(e.request.Namespace).Get(e.request.Name); apierrors.IsNotFound(err) {
		i.evicted.remove(e.pod.UID)
	}
}

// addUncertain records that the pod may have been evicted, until it is deleted. If the cache has
// lost the pod during the call, no event removes the entry, so it is removed here.
func (i *imperativeInterceptor) addUncertain(pod *v1.Pod) {
	i.uncertain.add(pod.UID)
	if cached, err := i.podLister.Pods(pod.Namespace).Get(pod.Name); err != nil || cached.UID != pod.UID {
		i.uncertain.remove(pod.UID)
	}
}

// forget drops the state of this process about a finished request.
func (i *imperativeInterceptor) forget(key types.NamespacedName) {
	uid := types.UID(key.Name)
	i.waiting.forget(key)
	i.evicted.remove(uid)
	i.retryAfter.remove(uid)
	i.recordAfter.remove(uid)
	i.failing.remove(uid)
	i.changed.remove(uid)
	i.backoff.Forget(key)
}
