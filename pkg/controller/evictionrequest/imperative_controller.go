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
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/metrics"
	"k8s.io/utils/clock"
)

// imperativeInterceptor is imperative-eviction.k8s.io. It has a queue of its own,
// because its calls may take long: the API server serializes evictions per budget.
type imperativeInterceptor struct {
	requestLister coordinationlisters.EvictionRequestLister
	podLister     corelisters.PodLister
	budgetLister  policylisters.PodDisruptionBudgetLister

	evict  podEvictor
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

// podEvictor evicts a pod, if it is as the preconditions say.
type podEvictor func(ctx context.Context, pod *v1.Pod, preconditions *metav1.Preconditions) error

// newPodEvictor returns an evictor that calls the pods/eviction subresource once. The
// typed client would not do: it sleeps and retries by itself when a budget is in the
// way, and it takes a failure that the subresource reports in the body of a
// successful response, such as for two budgets on one pod, for a success.
func newPodEvictor(client clientset.Interface) podEvictor {
	return func(ctx context.Context, pod *v1.Pod, preconditions *metav1.Preconditions) error {
		_, err := client.CoreV1().RESTClient().Post().
			Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
			VersionedParams(&metav1.CreateOptions{}, scheme.ParameterCodec).
			Body(&policyv1.Eviction{
				ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
				DeleteOptions: &metav1.DeleteOptions{Preconditions: preconditions},
			}).
			MaxRetries(0).
			Do(ctx).
			Get()
		return err
	}
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
	budgets := i.budgetsOf(pod)

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
	outcome, detail := classifyEviction(err, budgets)
	if outcome == outcomeBudget && budgetsAllow(pod, budgets) {
		// The budget in the cache has room, so the API server knows a newer one, or was
		// busy with other evictions. That is no state worth reporting.
		outcome = outcomeRetry
	}
	metrics.CountImperativeEviction(outcome.String())
	seconds, asked := apierrors.SuggestsClientDelay(err)
	if asked {
		i.retryAfter.set(pod.UID, now.Add(time.Duration(seconds)*time.Second))
	}
	status := request.Status.DeepCopy()
	switch outcome {
	case outcomeEvicted:
		klog.FromContext(ctx).V(2).Info("Evicted pod", "pod", klog.KObj(pod), "podUID", pod.UID)
		i.rememberEvicted(request, pod)
		return nil
	case outcomeGone:
		return nil
	case outcomeRetry:
		if asked {
			klog.FromContext(ctx).V(2).Info("The API server asked to try again later", "pod", klog.KObj(pod), "err", err)
			i.queue.AddAfter(types.NamespacedName{Namespace: request.Namespace, Name: request.Name}, time.Duration(seconds)*time.Second)
			return nil
		}
		return fmt.Errorf("evicting pod %s: %w", pod.Name, err)
	case outcomeBudget:
		recordRefusal(now, status, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, detail)
	case outcomeRefused:
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

// budgetsOf returns the budgets that select the pod, sorted by name.
func (i *imperativeInterceptor) budgetsOf(pod *v1.Pod) []*policyv1.PodDisruptionBudget {
	budgets, err := i.budgetLister.GetPodPodDisruptionBudgets(pod)
	if err != nil {
		return nil // This is how the lister says that there are none.
	}
	slices.SortFunc(budgets, func(a, b *policyv1.PodDisruptionBudget) int { return strings.Compare(a.Name, b.Name) })
	return budgets
}

// evictionOutcome is what came of an attempt to evict a pod.
type evictionOutcome int

const (
	// outcomeEvicted: the pod is being deleted.
	outcomeEvicted evictionOutcome = iota
	// outcomeGone: this instance of the pod does not exist any more.
	outcomeGone
	// outcomeRetry: the API server could not answer; nothing is known.
	outcomeRetry
	// outcomeBudget: the pod's PodDisruptionBudgets are in the way.
	outcomeBudget
	// outcomeRefused: something else is in the way.
	outcomeRefused
)

// String returns the word for the outcome in the metrics.
func (o evictionOutcome) String() string {
	return [...]string{"evicted", "gone", "error", "blocked", "refused"}[o]
}

// classifyEviction reads the answer of the pods/eviction subresource. The detail is
// for people.
func classifyEviction(err error, budgets []*policyv1.PodDisruptionBudget) (evictionOutcome, string) {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return outcomeEvicted, ""
	case apierrors.IsNotFound(err):
		return outcomeGone, ""
	case apierrors.IsTooManyRequests(err) && apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause):
		return outcomeBudget, budgetDetail(err, budgets)
	case apierrors.IsConflict(err), // Another instance, or the pod has just changed.
		apierrors.IsTooManyRequests(err), // The API server is overloaded.
		apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), apierrors.IsServiceUnavailable(err):
		return outcomeRetry, ""
	case !errors.As(err, &status):
		return outcomeRetry, "" // No answer at all.
	case len(budgets) > 1 && apierrors.IsInternalError(err):
		// So the subresource answers where two budgets select a pod.
		return outcomeBudget, fmt.Sprintf("PodDisruptionBudgets %s select this pod, and the API server evicts no pod that more than one budget selects: "+
			"change the selectors so that one of them does.", budgetNames(budgets))
	}
	return outcomeRefused, err.Error()
}

// budgetDetail names the budget that is in the way, first: messages are cut on narrow
// screens.
func budgetDetail(err error, budgets []*policyv1.PodDisruptionBudget) string {
	detail := err.Error()
	if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok && cause.Message != "" {
		detail += " " + strings.TrimSuffix(cause.Message, ".") + "."
	}
	return fmt.Sprintf("PodDisruptionBudget %s: %s", budgetNames(budgets), detail)
}

func budgetNames(budgets []*policyv1.PodDisruptionBudget) string {
	var names []string
	for _, budget := range budgets {
		names = append(names, budget.Name)
	}
	return strings.Join(names, ", ")
}
