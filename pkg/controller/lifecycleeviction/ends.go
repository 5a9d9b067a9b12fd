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
	"fmt"
	"slices"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// endOf returns how the eviction ends for other reasons than what its request says: it is not valid, or nobody requests it.
// It also returns when that may be different without an event. An end is final, so nothing but kube-apiserver is believed
// about a pod or a request that is missing: caches may be behind.
func (c *Controller) endOf(ctx context.Context, t *target, eviction *lifecyclev1alpha1.Eviction) (end outcome, wait time.Duration, err error) {
	isOpen := eviction != nil && !hasFailed(eviction) && !hasSucceeded(eviction)
	hasBegun := isOpen && len(eviction.Status.TargetResponders) > 0
	switch {
	case t.request != nil, isEvicted(t.evictions):
		return awaiting, 0, nil
	case t.pod == nil:
		return c.endWithoutPod(ctx, t, isOpen, hasBegun)
	case isOpen:
		return c.endOfPod(ctx, t, hasBegun)
	}
	return awaiting, 0, nil
}

// endOfPod is endOf for an open Eviction whose pod is there.
func (c *Controller) endOfPod(ctx context.Context, t *target, hasBegun bool) (end outcome, wait time.Duration, err error) {
	if !hasBegun {
		if len(t.wanted) > 0 {
			return awaiting, 0, nil
		}
		// Somebody has made it by hand, and may request the eviction as well.
		if wait := c.endedSince(t).Add(missingTimeout).Sub(t.now); wait > 0 {
			return awaiting, wait, nil
		}
	}
	switch {
	case podutil.IsPodPhaseTerminal(t.pod.Status.Phase):
		return evictedAs(lifecyclev1alpha1.EvictionConditionReasonPodTerminal, fmt.Sprintf("Target Pod %s finished with phase %s.", t.name, t.pod.Status.Phase)), 0, nil
	case hasBegun:
		return c.confirmDeletedRequest(ctx, t)
	}
	return canceledAs(""), 0, nil
}

// endWithoutPod is endOf if the cache lacks the pod.
func (c *Controller) endWithoutPod(ctx context.Context, t *target, isOpen, hasBegun bool) (end outcome, wait time.Duration, err error) {
	wasThere := slices.ContainsFunc(t.evictions, provesPod) || t.past != nil
	switch {
	case isOpen, len(t.evictions) > 0 && len(t.wanted) > 0, wasThere && len(t.wanted) > 0:
		return c.confirmMissing(ctx, t, wasThere, hasBegun)
	case len(t.evictions) == 0 && slices.ContainsFunc(t.requests, isNotOver):
		return c.confirmMissing(ctx, t, false, false)
	}
	return awaiting, 0, nil
}

// provesPod reports whether an Eviction says that its pod was there: others may make one, but only this controller writes
// its status.
func provesPod(eviction *lifecyclev1alpha1.Eviction) bool {
	failed := meta.FindStatusCondition(eviction.Status.Conditions, string(lifecyclev1alpha1.EvictionConditionFailed))
	return len(eviction.Status.TargetResponders) > 0 || failed != nil && failed.Reason != string(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid)
}

func isNotOver(request *lifecyclev1alpha1.EvictionRequest) bool { return !isOver(request) }

// confirmDeletedRequest asks whether somebody has deleted the request in the middle of the eviction.
func (c *Controller) confirmDeletedRequest(ctx context.Context, t *target) (end outcome, wait time.Duration, err error) {
	_, err = c.client.CoordinationV1alpha1().EvictionRequests(t.namespace).Get(ctx, string(t.uid), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return canceledAs("The EvictionRequest of coordination.k8s.io was deleted."), 0, nil
	case err != nil:
		return end, 0, fmt.Errorf("reading the request for pod %s: %w", t.name, err)
	}
	return awaiting, catchUpInterval, nil
}

// confirmMissing asks whether a pod that the cache lacks is gone, or, if no Eviction says that it was there, has never been.
// Unless its eviction has begun, it has some time to appear.
func (c *Controller) confirmMissing(ctx context.Context, t *target, wasThere, hasBegun bool) (end outcome, wait time.Duration, err error) {
	if wait := c.endedSince(t).Add(missingTimeout).Sub(t.now); wait > 0 && !hasBegun && t.successor == "" {
		return awaitingAs("Waiting for the target to appear."), wait, nil
	}
	pod, err := c.client.CoreV1().Pods(t.namespace).Get(ctx, t.name, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return end, 0, fmt.Errorf("reading pod %s: %w", t.name, err)
	case err == nil && pod.UID == t.uid:
		return awaiting, catchUpInterval, nil
	case wasThere:
		return evictedAs(lifecyclev1alpha1.EvictionConditionReasonPodDeleted, fmt.Sprintf("Target Pod %s was deleted.", t.name)), 0, nil
	case err != nil:
		return failedAs(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid, "Target pod not found."), 0, nil
	}
	return failedAs(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid, fmt.Sprintf("Target pod UID mismatch: expected %s, got %s.", t.uid, pod.UID)), 0, nil
}

// outcome returns how the eviction ends as the request says. A request that is deleted in the middle of it is created again as
// long as somebody wants that, and may come too late for the pod: then it says that there never was one.
func (t *target) outcome() outcome {
	end := outcomeOf(t.request)
	if t.pod == nil && end.failedReason == lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid && slices.ContainsFunc(t.evictions, provesPod) {
		return evictedAs(lifecyclev1alpha1.EvictionConditionReasonPodDeleted, fmt.Sprintf("Target Pod %s was deleted.", t.name))
	}
	return end
}

// endedSince returns since when the pod of an Eviction is missing or terminal, or nobody requests it, while no request says
// so.
func (c *Controller) endedSince(t *target) time.Time {
	c.lock.Lock()
	defer c.lock.Unlock()
	since, found := c.ended[t.key]
	if !found {
		since = t.now
		c.ended[t.key] = since
	}
	return since
}

// endResponders gives the active responder of an Eviction without a request its final state, and returns the outcome as it
// is to be shown meanwhile: a silent one has some time to report.
func (c *Controller) endResponders(t *target, eviction *lifecyclev1alpha1.Eviction, status *lifecyclev1alpha1.EvictionStatus, end outcome) (outcome, time.Duration) {
	active := activeOf(status)
	switch {
	case active == nil:
		return end, 0
	case end.evicted == metav1.ConditionTrue && reportOf(status, active.Name).CompletionTime == nil:
		if wait := c.endedSince(t).Add(lastReport).Sub(t.now); wait > 0 {
			return awaiting, wait
		}
		if complete(status, end, lastWords(eviction, nil, t.pod, end), t.now) {
			return awaiting, 0
		}
	}
	active.State = finalState(status, active, end)
	return end, 0
}
