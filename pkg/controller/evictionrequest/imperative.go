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
	"fmt"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/plaintext"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

const (
	// minRetryDelay is the delay after the first refused attempt. It is the minimum time between
	// two heartbeats, so that each attempt can record its own heartbeat, and a restarted controller
	// knows when the last attempt was. A change of the budget or the pod triggers the next attempt
	// earlier.
	minRetryDelay = evictionrequesttools.MinHeartbeatInterval

	// maxRetryDelay is the maximum delay. The delay doubles with each refused attempt (KEP-4563,
	// Eviction: approximately 15 minutes).
	maxRetryDelay = 15 * time.Minute

	// maxMessageLength is the maximum length of status.interceptors[].message and of the message of
	// a condition, in bytes.
	maxMessageLength = 32768

	// terminationReportDelay is how long a pod may terminate before that is reported. Most pods are
	// gone by then, which saves the write.
	terminationReportDelay = 10 * time.Second
)

// imperativeStep is what the built-in interceptor does next.
type imperativeStep int

const (
	// stepWait waits for time to pass or for an event.
	stepWait imperativeStep = iota
	// stepEvict calls the pods/eviction subresource.
	stepEvict
	// stepAwaitBudget evicts as soon as the budget of the pod allows it, or when the delay has
	// passed.
	stepAwaitBudget
	// stepDecline completes without an eviction: pods of this kind are not evicted.
	stepDecline
	// stepReportTermination reports that the pod is terminating.
	stepReportTermination
)

// nextImperativeStep decides the next step for a request and its pod. The duration is the delay
// after which the step changes without an event; zero means that only an event changes it.
// podChanged is whether the pod has changed since the last attempt, which may have removed the
// reason of a refusal.
func nextImperativeStep(now time.Time, request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod, podChanged bool) (imperativeStep, time.Duration) {
	status := &request.Status
	entry := evictionrequesttools.InterceptorStatusOf(status, coordinationv1alpha1.EvictionInterceptorImperative)
	switch {
	case evictionrequesttools.IsFinished(status.Conditions) || !evictionrequesttools.IsWanted(request):
		return stepWait, 0
	case entry == nil || entry.CompletionTime != nil:
		return stepWait, 0
	case activeInterceptor(status) != coordinationv1alpha1.EvictionInterceptorImperative:
		return stepWait, 0
	case podutil.IsPodPhaseTerminal(pod.Status.Phase):
		return stepWait, 0
	case pod.DeletionTimestamp != nil:
		return nextTerminationStep(now, status, entry, pod)
	case declineReason(pod) != "":
		return stepDecline, 0
	case entry.HeartbeatTime == nil:
		return stepEvict, 0
	}
	wait := entry.HeartbeatTime.Add(retryDelay(entry.Retries)).Sub(now)
	switch {
	case wait <= 0:
		return stepEvict, 0
	case isBlockedBy(status, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget):
		return stepAwaitBudget, wait
	case podChanged:
		return stepEvict, 0
	}
	return stepWait, wait
}

// nextTerminationStep decides the next step for a pod that is terminating.
func nextTerminationStep(now time.Time, status *coordinationv1alpha1.EvictionRequestStatus, entry *coordinationv1alpha1.InterceptorStatus, pod *v1.Pod) (imperativeStep, time.Duration) {
	if isBlocked(status) {
		return stepReportTermination, 0
	}
	if entry.HeartbeatTime != nil {
		return stepWait, 0
	}
	// deletionTimestamp is when the grace period ends, not when it began.
	deletedAt := pod.DeletionTimestamp.Time
	if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
		deletedAt = deletedAt.Add(-time.Duration(*seconds) * time.Second)
	}
	if wait := deletedAt.Add(terminationReportDelay).Sub(now); wait > 0 {
		return stepWait, wait
	}
	return stepReportTermination, 0
}

// declineReason returns why a pod is not evicted through the API, or "".
func declineReason(pod *v1.Pod) string {
	switch evictionrequesttools.PodTypeOf(pod) {
	case v1.PodTypeStatic:
		return "Not evicted: the pod is the mirror of a static pod, which only the kubelet can stop."
	case v1.PodTypeDaemonSet:
		return "Not evicted: the DaemonSet would recreate the pod on the same node."
	}
	return ""
}

// retryDelay returns the delay after the given number of refused attempts.
func retryDelay(retries int32) time.Duration {
	delay := minRetryDelay
	for i := int32(1); i < retries && delay < maxRetryDelay; i++ {
		delay *= 2
	}
	return min(delay, maxRetryDelay)
}

// recordRefusal records an attempt that the API server refused.
func recordRefusal(now time.Time, status *coordinationv1alpha1.EvictionRequestStatus, reason, detail string) {
	entry := evictionrequesttools.InterceptorStatusOf(status, coordinationv1alpha1.EvictionInterceptorImperative)
	recordHeartbeat(now, entry)
	entry.Retries++
	entry.Message = plaintext.Truncate(fmt.Sprintf("Eviction refused (attempt %d): %s", entry.Retries, detail), maxMessageLength)
	setCondition(now, status, coordinationv1alpha1.EvictionRequestConditionBlocked, metav1.ConditionTrue, reason, plaintext.Truncate(detail, maxMessageLength))
}

// recordTermination records that the pod is terminating.
func recordTermination(now time.Time, status *coordinationv1alpha1.EvictionRequestStatus) {
	entry := evictionrequesttools.InterceptorStatusOf(status, coordinationv1alpha1.EvictionInterceptorImperative)
	recordHeartbeat(now, entry)
	entry.Message = "The pod is terminating."
	clearCondition(now, status, coordinationv1alpha1.EvictionRequestConditionBlocked,
		coordinationv1alpha1.EvictionRequestReasonNotBlocked, entry.Message)
}

// recordDecline completes the built-in interceptor without an eviction.
func recordDecline(now time.Time, status *coordinationv1alpha1.EvictionRequestStatus, message string) {
	completeImperative(now, status, message)
}

// completeImperative sets the completionTime of the built-in interceptor. The message replaces the
// previous one.
func completeImperative(now time.Time, status *coordinationv1alpha1.EvictionRequestStatus, message string) {
	entry := evictionrequesttools.InterceptorStatusOf(status, coordinationv1alpha1.EvictionInterceptorImperative)
	if entry == nil || entry.CompletionTime != nil {
		return
	}
	recordHeartbeat(now, entry)
	entry.CompletionTime = &metav1.Time{Time: now}
	entry.Message = message
}

// recordHeartbeat follows the validation rules of the API: startTime is set once, together with the
// first heartbeatTime, and two heartbeats are at least a minute apart.
func recordHeartbeat(now time.Time, entry *coordinationv1alpha1.InterceptorStatus) {
	if entry.StartTime == nil {
		entry.StartTime = &metav1.Time{Time: now}
	}
	if entry.HeartbeatTime == nil || now.Sub(entry.HeartbeatTime.Time) >= minRetryDelay {
		entry.HeartbeatTime = &metav1.Time{Time: now}
	}
}

func isBlocked(status *coordinationv1alpha1.EvictionRequestStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionBlocked))
}

func isBlockedBy(status *coordinationv1alpha1.EvictionRequestStatus, reason string) bool {
	condition := meta.FindStatusCondition(status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionBlocked))
	return condition != nil && condition.Status == metav1.ConditionTrue && condition.Reason == reason
}
