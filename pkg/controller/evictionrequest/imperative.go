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
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

const (
	// minRetryDelay separates the first attempts of a blocked eviction. It is the least
	// time between two heartbeats, so that every attempt can record its own, and a
	// restarted controller knows when the last one was. A change of the budget or the
	// pod brings the next attempt forward.
	minRetryDelay = time.Minute

	// maxRetryDelay is where the delay, which doubles with every refused attempt, ends
	// (KEP-4563, Eviction: approximately 15 minutes).
	maxRetryDelay = 15 * time.Minute

	// maxMessageLength is the bound of status.interceptors[].message and of the message
	// of a condition, in bytes.
	maxMessageLength = 32768

	// terminationReportDelay is how long a pod may take to end before that is reported.
	// Most pods are gone by then, and the write is saved.
	terminationReportDelay = 10 * time.Second
)

// imperativeStep is what the built-in interceptor does next.
type imperativeStep int

const (
	// stepWait does nothing until time passes or something changes.
	stepWait imperativeStep = iota
	// stepEvict calls the pods/eviction subresource.
	stepEvict
	// stepAwaitBudget is stepEvict as soon as the budget of the pod allows it, or when time
	// has passed.
	stepAwaitBudget
	// stepDecline completes without an eviction: this kind of pod is not evicted.
	stepDecline
	// stepReportTermination says that the pod is on its way out.
	stepReportTermination
)

// nextImperativeStep decides for a request and its pod. The duration says when time alone
// changes the step; zero leaves that to the next event. podChanged is whether the pod has
// changed since the last attempt, which may have freed it of what refused that.
func nextImperativeStep(now time.Time, request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod, podChanged bool) (imperativeStep, time.Duration) {
	status := &request.Status
	entry := interceptorStatus(status, coordinationv1alpha1.EvictionInterceptorImperative)
	switch {
	case isFinished(status) || !isWanted(request):
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

// nextTerminationStep decides for a pod that is terminating already.
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

// declineReason says why a pod is not evicted through the API, or "".
func declineReason(pod *v1.Pod) string {
	if isMirrorPod(pod) {
		return "Not evicted: a mirror pod only shows a static pod of the kubelet."
	}
	if isDaemonSetPod(pod) {
		return "Not evicted: the DaemonSet would create the pod again on the same node."
	}
	return ""
}

// retryDelay returns how long to wait after the given number of refused attempts.
func retryDelay(retries int32) time.Duration {
	delay := minRetryDelay
	for i := int32(1); i < retries && delay < maxRetryDelay; i++ {
		delay *= 2
	}
	return min(delay, maxRetryDelay)
}

// recordRefusal reports an attempt that the API server refused.
func recordRefusal(now time.Time, status *coordinationv1alpha1.EvictionRequestStatus, reason, detail string) {
	entry := interceptorStatus(status, coordinationv1alpha1.EvictionInterceptorImperative)
	recordHeartbeat(now, entry)
	entry.Retries++
	entry.Message = truncate(fmt.Sprintf("Could not evict a pod due to failing eviction requests, number of retries: %d: %s", entry.Retries, detail), maxMessageLength)
	setCondition(now, status, coordinationv1alpha1.EvictionRequestConditionBlocked, metav1.ConditionTrue, reason, truncate(detail, maxMessageLength))
}

// recordTermination reports that the pod is on its way out.
func recordTermination(now time.Time, status *coordinationv1alpha1.EvictionRequestStatus) {
	entry := interceptorStatus(status, coordinationv1alpha1.EvictionInterceptorImperative)
	recordHeartbeat(now, entry)
	entry.Message = "The pod is terminating."
	clearCondition(now, status, coordinationv1alpha1.EvictionRequestConditionBlocked,
		coordinationv1alpha1.EvictionRequestReasonNotBlocked, entry.Message)
}

// recordDecline completes the turn without an eviction.
func recordDecline(now time.Time, status *coordinationv1alpha1.EvictionRequestStatus, message string) {
	completeImperative(now, status, message)
}

// completeImperative ends the turn of the built-in interceptor in its own entry. The
// message says how; what it said before is history.
func completeImperative(now time.Time, status *coordinationv1alpha1.EvictionRequestStatus, message string) {
	entry := interceptorStatus(status, coordinationv1alpha1.EvictionInterceptorImperative)
	if entry == nil || entry.CompletionTime != nil {
		return
	}
	recordHeartbeat(now, entry)
	entry.CompletionTime = &metav1.Time{Time: now}
	entry.Message = message
}

// recordHeartbeat keeps the rules of the API: startTime is set once, together with
// the first heartbeatTime, and two heartbeats are at least a minute apart.
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

// truncate keeps a message within a bound of length bytes. It cuts no character in two: the rest of
// one would be encoded as a longer replacement character, beyond the bound again.
func truncate(message string, length int) string {
	if len(message) <= length {
		return message
	}
	return strings.ToValidUTF8(message[:length], "")
}
