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
	"fmt"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/kubernetes/pkg/controller/lifecycleeviction/metrics"
)

// The reasons of the events about EvictionRequests of the group, and about pods. That of an end is the one of its
// condition. What goes as planned has no event here: the request of the other group has those of the engine.
const (
	// eventEvictionWriteFailed: objects about the eviction of a pod cannot be written.
	eventEvictionWriteFailed = "EvictionWriteFailed"
	// eventRequestContested: others delete the request of the other group, or remove its requesters, again and again.
	eventRequestContested = "RequestContested"
	// contestedText is what requests of the group say meanwhile.
	contestedText = "Another client keeps deleting the EvictionRequest of coordination.k8s.io for the pod, or removing its requesters. It is restored ever more slowly, at most once a minute."
	// maxNoteLength is the maximum length of the note of an event, in bytes.
	maxNoteLength = 1024
	// failuresUntilEvent is after how many failures in succession an event says so.
	failuresUntilEvent = 3
)

// failure is that the objects about a pod cannot be brought into agreement.
type failure struct {
	since time.Time
	count int
}

// noteFailure notes a failed sync, and returns whether an event is to be recorded. That is so once, until a sync succeeds.
func (c *Controller) noteFailure(key string) bool {
	metrics.CountSyncError()
	c.lock.Lock()
	defer c.lock.Unlock()
	failed, found := c.failed[key]
	if !found {
		failed.since = c.clock.Now()
	}
	failed.count++
	c.failed[key] = failed
	return failed.count == failuresUntilEvent
}

func (c *Controller) noteSuccess(key string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.failed, key)
}

// countOutdated is for the metrics.
func (c *Controller) countOutdated() metrics.Outdated {
	c.lock.Lock()
	defer c.lock.Unlock()
	outdated := metrics.Outdated{Pods: len(c.failed)}
	for _, failed := range c.failed {
		outdated.Oldest = max(outdated.Oldest, c.clock.Since(failed.since))
	}
	return outdated
}

// regarding is what events about a pod are on: its first request of the group, or the pod itself if there is none.
func (t *target) regarding() *v1.ObjectReference {
	if len(t.requests) > 0 {
		return referenceTo(t.requests[0])
	}
	return referenceToPod(t)
}

// recordFailure records that objects cannot be written.
func (c *Controller) recordFailure(key string, err error) {
	t, readErr := c.read(key)
	if readErr != nil || t == nil {
		return
	}
	c.recorder.Eventf(t.regarding(), referenceToPod(t), v1.EventTypeWarning, eventEvictionWriteFailed, "Write", "%s",
		plaintext.Truncate(plaintext.Line(fmt.Sprintf("What concerns the eviction of pod %s cannot be written, and is retried: %v", t.name, err)), maxNoteLength))
}

// recordContest records that the request of the other group was restored again, because somebody requests the eviction.
func (c *Controller) recordContest(t *target) {
	c.recorder.Eventf(t.regarding(), referenceToPod(t), v1.EventTypeWarning, eventRequestContested, "Request", "%s", contestedText)
}

// recordEnd counts a request that has got its answer, and records it if nothing evicts the pod although somebody asks for it.
func (c *Controller) recordEnd(t *target, request *lifecyclev1alpha1.EvictionRequest, before, after []metav1.Condition) {
	isTrue := func(conditions []metav1.Condition, conditionType lifecyclev1alpha1.EvictionConditionType) *metav1.Condition {
		if found := meta.FindStatusCondition(conditions, string(conditionType)); found != nil && found.Status == metav1.ConditionTrue {
			return found
		}
		return nil
	}
	if isTrue(before, lifecyclev1alpha1.EvictionConditionTargetEvicted) == nil && isTrue(after, lifecyclev1alpha1.EvictionConditionTargetEvicted) != nil {
		metrics.CountRequest("evicted")
		return
	}
	was, failed := isTrue(before, lifecyclev1alpha1.EvictionConditionFailed), isTrue(after, lifecyclev1alpha1.EvictionConditionFailed)
	if failed == nil || was != nil && was.Reason == failed.Reason {
		return
	}
	regarding, pod := referenceTo(request), referenceToPod(t)
	switch lifecyclev1alpha1.EvictionConditionReason(failed.Reason) {
	case lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid:
		metrics.CountRequest("invalid")
		c.recorder.Eventf(regarding, nil, v1.EventTypeWarning, failed.Reason, "Validate", "%s", plaintext.Truncate(plaintext.Line(failed.Message), maxNoteLength))
	case lifecyclev1alpha1.EvictionConditionReasonNoFurtherResponder:
		metrics.CountRequest("no_further_responder")
		if request != t.requests[0] {
			return // It is the same of all.
		}
		c.recorder.Eventf(regarding, pod, v1.EventTypeWarning, failed.Reason, "Evict", "%s", plaintext.Truncate(plaintext.Line(failed.Message), maxNoteLength))
	default:
		metrics.CountRequest("canceled")
	}
}

// observeEvicted observes how long after the end of the pod its Eviction says so.
func observeEvicted(before *lifecyclev1alpha1.Eviction, after *lifecyclev1alpha1.EvictionStatus, request *coordinationv1alpha1.EvictionRequest, now time.Time) {
	if request == nil || hasSucceeded(before) || !meta.IsStatusConditionTrue(after.Conditions, string(lifecyclev1alpha1.EvictionConditionTargetEvicted)) {
		return
	}
	if final := evictionrequest.FinalCondition(request.Status.Conditions); final != nil {
		metrics.ObserveEvictedDelay(now.Sub(final.LastTransitionTime.Time))
	}
}

// References without a resourceVersion, so that the recorder counts an event that repeats.
func referenceTo(request *lifecyclev1alpha1.EvictionRequest) *v1.ObjectReference {
	return &v1.ObjectReference{
		APIVersion: lifecyclev1alpha1.SchemeGroupVersion.String(), Kind: "EvictionRequest",
		Namespace: request.Namespace, Name: request.Name, UID: request.UID,
	}
}

func referenceToPod(t *target) *v1.ObjectReference {
	return &v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: t.namespace, Name: t.name, UID: t.uid}
}
