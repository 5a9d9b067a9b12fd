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

package lifecycleeviction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/utils/ptr"
)

// sync brings the objects about a pod into agreement. It returns when to do so again without an event.
func (c *Controller) sync(ctx context.Context, key string) (after time.Duration, err error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return 0, err
	}
	if c.written.EnsureReady(types.NamespacedName{Namespace: namespace, Name: name}) != nil {
		return catchUpInterval, nil
	}
	t, err := c.read(key)
	if err != nil || t == nil {
		return 0, err
	}
	current := t.current()
	end, wait, err := c.endOf(ctx, t, current)
	if err != nil {
		return 0, err
	}
	if t.request != nil || t.pod != nil && len(t.wanted) > 0 && !end.isFinal() {
		c.forget(key)
	}
	// What cannot be written must not keep responders from acting, nor requesters from hearing of it.
	var errs []error
	contested := time.Duration(0)
	if !end.isFinal() {
		later, err := c.request(ctx, t)
		contested = c.contestOver(key, t.now)
		wait = earlier(wait, earlier(later, contested))
		switch errs = append(errs, err); {
		case t.request != nil:
			end = t.outcome()
		case apierrors.IsForbidden(err):
			// A quota or a policy, which may allow it later.
			end = awaitingAs(refusal(err))
		}
	}
	eviction, later, err := c.evict(ctx, t, current, end)
	if err != nil {
		eviction = current
	}
	errs, wait = append(errs, err), earlier(wait, later)
	conditions := []metav1.Condition(nil)
	switch {
	case eviction == nil:
	case hasFailed(eviction) && len(t.wanted) > 0 && end.evicted == metav1.ConditionTrue:
		// It is requested again, and over before there was another Eviction.
	case hasFailed(eviction) && len(t.wanted) > 0 && (!end.isFinal() || isCanceled(end)):
		// It is requested again, and gets another Eviction.
		if end.isFinal() {
			end = awaiting
		}
	default:
		next, later, err := c.report(ctx, t, eviction, end)
		conditions, wait, errs = next.Conditions, earlier(wait, later), append(errs, err)
	}
	if contested > 0 && (!end.isFinal() && end.message == "" || isCanceled(end)) {
		conditions, end = nil, awaitingAs(contestedText) // The Eviction does not know it, or was canceled.
	}
	errs = append(errs, c.refuse(ctx, t, eviction))
	later, err = c.answer(ctx, t, conditions, end)
	if err = errors.Join(append(errs, err)...); err == nil && !t.owed {
		c.noteSuccess(key)
	}
	return earlier(wait, later), err
}

// refusal says why the eviction could not be requested. What a quota counts changes all the time, and is left out.
func refusal(err error) string {
	text, _, _ := strings.Cut(err.Error(), ", requested:")
	return plaintext.Truncate("The eviction cannot be requested yet: "+text+".", maxMessageLength)
}

func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// report writes the status of an Eviction, and has the other request say what the active responder reports. It returns the
// status as it is then.
func (c *Controller) report(ctx context.Context, t *target, eviction *lifecyclev1alpha1.Eviction, end outcome) (*lifecyclev1alpha1.EvictionStatus, time.Duration, error) {
	wait, copyErr := c.copyReport(ctx, t, eviction)
	next, after := eviction.Status.DeepCopy(), time.Duration(0)
	switch {
	case hasSucceeded(eviction) || hasFailed(eviction): // Final, also if the other request is gone.
	case t.request != nil:
		next, after = nextStatus(eviction, t.request, t.pod, t.now)
	case end.isFinal():
		end, after = c.endResponders(t, eviction, next, end)
		setOutcome(&next.Conditions, end, eviction.Generation, t.now)
		next.ObservedGeneration = ptr.To(eviction.Generation)
	}
	next.Requesters = requestersOf(eviction.Status.Requesters, t.wanted, t.request)
	if after > 0 && len(eviction.Status.Conditions) == 0 || apiequality.Semantic.DeepEqual(next, &eviction.Status) {
		return next, earlier(wait, after), copyErr
	}
	changed := eviction.DeepCopy()
	changed.Status = *next
	updated, err := c.client.LifecycleV1alpha1().Evictions(t.namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return &eviction.Status, 0, errors.Join(copyErr, fmt.Errorf("writing the status of Eviction %s: %w", eviction.Name, err))
	}
	c.wrote(t, evictionResource, updated)
	observeEvicted(eviction, next, t.request, t.now)
	return next, earlier(wait, after), copyErr
}

// copyReport has the request say what the active responder reports, and returns when to do so if that is too early now.
func (c *Controller) copyReport(ctx context.Context, t *target, eviction *lifecyclev1alpha1.Eviction) (wait time.Duration, err error) {
	if t.request == nil || len(t.request.Status.ActiveInterceptors) == 0 {
		return 0, nil
	}
	report, wait := nextReport(eviction, t.request, t.now)
	if report == nil {
		return wait, nil
	}
	if report.CompletionTime == nil {
		// A responder may report as often as it likes.
		if wait := c.mayWrite(c.reported, t.key, t.now); wait > 0 {
			t.owed = true
			return wait, nil
		}
	}
	changed := t.request.DeepCopy()
	*evictionrequest.InterceptorStatusOf(&changed.Status, report.Name) = *report
	updated, err := c.client.CoordinationV1alpha1().EvictionRequests(t.namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return 0, fmt.Errorf("reporting as %s: %w", report.Name, err)
	}
	t.request = updated
	c.wrote(t, ownResource, updated)
	return wait, nil
}

// maxAnswers is how many EvictionRequests of a pod are answered in one go: whoever makes thousands for one pod must not keep
// the others waiting. The next time begins where this one ends, so that all have their turn, however often others change.
const maxAnswers = 50

// answer writes the statuses of the EvictionRequests of the group, and returns when to write those that were left.
func (c *Controller) answer(ctx context.Context, t *target, conditions []metav1.Condition, end outcome) (time.Duration, error) {
	if len(conditions) == 0 {
		setOutcome(&conditions, end, 0, t.now)
	}
	var other []metav1.Condition
	if len(t.others) > 0 && t.isIdentified {
		why := fmt.Sprintf("The UID %s is not that of pod %s.", t.uid, t.others[0].Spec.Target.Pod.Name)
		setOutcome(&other, failedAs(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid, why), 0, t.now)
	}
	var errs []error
	all, answered := slices.Clone(t.requests), 0
	for _, request := range t.others {
		if t.isIdentified || isOver(request) {
			all = append(all, request)
		}
	}
	first := c.firstToAnswer(t.key, all)
	for i := range all {
		at := (first + i) % len(all)
		request, says := all[at], conditions
		if at >= len(t.requests) {
			says = other
		}
		next := nextRequestStatus(request, says, t.now)
		if apiequality.Semantic.DeepEqual(next, &request.Status) {
			continue
		}
		if answered++; answered > maxAnswers {
			c.noteFirstToAnswer(t.key, request.UID)
			return catchUpInterval, errors.Join(errs...)
		}
		errs = append(errs, c.answerOne(ctx, t, request, next))
	}
	c.noteFirstToAnswer(t.key, "")
	return 0, errors.Join(errs...)
}

func (c *Controller) answerOne(ctx context.Context, t *target, request *lifecyclev1alpha1.EvictionRequest, next *lifecyclev1alpha1.EvictionRequestStatus) error {
	changed := request.DeepCopy()
	changed.Status = *next
	updated, err := c.client.LifecycleV1alpha1().EvictionRequests(t.namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: fieldManager})
	switch {
	case err == nil:
		c.wrote(t, requestResource, updated)
		c.recordEnd(t, request, request.Status.Conditions, next.Conditions)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("writing the status of EvictionRequest %s: %w", request.Name, err)
	}
	return nil
}
