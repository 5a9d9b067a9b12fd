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
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// computeStatus returns the desired status of a request and the delay to the next sync. pod is nil
// if it is gone. A zero delay means that only an event can change anything. No interceptor times
// out before noTimeoutBefore.
func computeStatus(now, noTimeoutBefore time.Time, request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) (*coordinationv1alpha1.EvictionRequestStatus, time.Duration) {
	status := request.Status.DeepCopy()
	status.ObservedGeneration = request.Generation
	if evictionrequesttools.IsFinished(status.Conditions) {
		return status, 0
	}

	switch {
	case pod == nil && !isInitialized(status):
		finish(now, status, coordinationv1alpha1.EvictionRequestConditionCanceled, coordinationv1alpha1.EvictionRequestReasonValidationFailed,
			fmt.Sprintf("Target Pod %s was not found.", targetName(request)))
	case pod == nil:
		finish(now, status, coordinationv1alpha1.EvictionRequestConditionEvicted, coordinationv1alpha1.EvictionRequestReasonPodDeleted,
			fmt.Sprintf("Target Pod %s was deleted.", targetName(request)))
	case podutil.IsPodPhaseTerminal(pod.Status.Phase):
		finish(now, status, coordinationv1alpha1.EvictionRequestConditionEvicted, coordinationv1alpha1.EvictionRequestReasonPodTerminal,
			fmt.Sprintf("Target Pod %s finished with phase %s.", targetName(request), pod.Status.Phase))
	case pod.Spec.SchedulingGroup != nil:
		finish(now, status, coordinationv1alpha1.EvictionRequestConditionCanceled, coordinationv1alpha1.EvictionRequestReasonValidationFailed,
			groupMessage(request))
	case isLeaving(request, pod):
		// Neither canceled, which would say that the pod stays, nor evicted yet.
		return leavingStatus(now, request), 0
	case !evictionrequesttools.IsWanted(request):
		message := "The last requester was removed from spec.requesters."
		if request.DeletionTimestamp != nil {
			message = "The request is being deleted."
		}
		finish(now, status, coordinationv1alpha1.EvictionRequestConditionCanceled, coordinationv1alpha1.EvictionRequestReasonNoRequesters, message)
	case !isInitialized(status):
		initialize(now, status, pod)
	default:
		advance(now, noTimeoutBefore, request, status, pod)
	}
	if evictionrequesttools.IsFinished(status.Conditions) {
		return status, 0
	}
	reportSilence(now, request, status, pod)
	return status, untilNextSync(now, noTimeoutBefore, request, status, pod)
}

// isInitialized reports whether the controller has recorded the interceptors of the request.
func isInitialized(status *coordinationv1alpha1.EvictionRequestStatus) bool {
	return len(status.TargetInterceptors) > 0
}

// leavingStatus returns the status of a request that nobody wants any more, but whose pod is evicted all
// the same: nothing is to be done about it.
func leavingStatus(now time.Time, request *coordinationv1alpha1.EvictionRequest) *coordinationv1alpha1.EvictionRequestStatus {
	status := request.Status.DeepCopy()
	status.ObservedGeneration = request.Generation
	const leaving = "The request has no requesters any more, and the pod is leaving."
	clearCondition(now, status, coordinationv1alpha1.EvictionRequestConditionBlocked, coordinationv1alpha1.EvictionRequestReasonNotBlocked, leaving)
	clearCondition(now, status, coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive, coordinationv1alpha1.EvictionRequestReasonHeartbeatInTime, leaving)
	return status
}

// isLeaving reports whether nobody wants the eviction any more, but the pod terminates already.
func isLeaving(request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) bool {
	return !evictionrequesttools.IsWanted(request) && pod.DeletionTimestamp != nil
}

// initialize records the interceptors of the pod and activates the first one. If that is the built-in one,
// kube-apiserver has usually done so when it created the request.
func initialize(now time.Time, status *coordinationv1alpha1.EvictionRequestStatus, pod *v1.Pod) {
	evictioninterceptor.Initialize(status, evictioninterceptor.AllTargets(pod), metav1.Time{Time: now})
}

// advance activates the next interceptor if the active one has completed or its deadline has passed,
// or the next one that cannot be passed over if the others are. The write of a timeout requires the
// version of the request that was read: if the interceptor has reported in the meantime, the write
// fails with a conflict.
func advance(now, noTimeoutBefore time.Time, request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus, pod *v1.Pod) {
	active := activeInterceptor(status)
	if active == "" {
		return
	}
	entry := evictionrequesttools.InterceptorStatusOf(status, active)
	completed := entry != nil && entry.CompletionTime != nil
	if completed && pod.DeletionTimestamp != nil {
		return // It is terminating: another interceptor could not do anything for it.
	}
	deadline, limited := turnDeadline(noTimeoutBefore, request, status, pod)
	if completed || limited && !now.Before(deadline) {
		deactivate(status)
		activateNext(now, status)
	}
	if pod.DeletionTimestamp != nil || !meta.IsStatusConditionTrue(status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionInterceptorsSkipped)) {
		return
	}
	for evictionrequesttools.IsPassable(withStatus(request, status), pod) {
		deactivate(status)
		activateNext(now, status)
	}
}

// activateNext activates the first interceptor that is not processed, if there is one.
func activateNext(now time.Time, status *coordinationv1alpha1.EvictionRequestStatus) {
	next := len(status.ProcessedInterceptors)
	if next >= len(status.TargetInterceptors) {
		return
	}
	status.ActiveInterceptors = []string{status.TargetInterceptors[next].Name}
	status.ActivationTime = &metav1.Time{Time: now}
}

// activeInterceptor returns the name of the active interceptor, or "".
func activeInterceptor(status *coordinationv1alpha1.EvictionRequestStatus) string {
	if len(status.ActiveInterceptors) == 0 {
		return ""
	}
	return status.ActiveInterceptors[0]
}

// deactivate moves the active interceptor to the processed ones.
func deactivate(status *coordinationv1alpha1.EvictionRequestStatus) {
	status.ProcessedInterceptors = append(status.ProcessedInterceptors, status.ActiveInterceptors...)
	status.ActiveInterceptors = nil
}

// finish moves the request into a final state.
func finish(now time.Time, status *coordinationv1alpha1.EvictionRequestStatus, conditionType coordinationv1alpha1.EvictionRequestConditionType, reason, message string) {
	if activeInterceptor(status) == coordinationv1alpha1.EvictionInterceptorImperative {
		// The entry is written here and not when the interceptor acts: this saves one status write
		// for each pod that is evicted without a problem.
		completeImperative(now, status, message)
	}
	deactivate(status)
	const over = "The request is finished."
	clearCondition(now, status, coordinationv1alpha1.EvictionRequestConditionBlocked,
		coordinationv1alpha1.EvictionRequestReasonNotBlocked, over)
	clearCondition(now, status, coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive,
		coordinationv1alpha1.EvictionRequestReasonHeartbeatInTime, over)
	setCondition(now, status, conditionType, metav1.ConditionTrue, reason, message)
}

// setCondition sets a condition for the generation that the status has observed.
func setCondition(now time.Time, status *coordinationv1alpha1.EvictionRequestStatus, conditionType coordinationv1alpha1.EvictionRequestConditionType, value metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type:               string(conditionType),
		Status:             value,
		ObservedGeneration: status.ObservedGeneration,
		LastTransitionTime: metav1.Time{Time: now},
		Reason:             reason,
		Message:            message,
	})
}

// clearCondition sets a condition to False if it is True. It does not add the condition to a
// request that never had it.
func clearCondition(now time.Time, status *coordinationv1alpha1.EvictionRequestStatus, conditionType coordinationv1alpha1.EvictionRequestConditionType, reason, message string) {
	if meta.IsStatusConditionTrue(status.Conditions, string(conditionType)) {
		setCondition(now, status, conditionType, metav1.ConditionFalse, reason, message)
	}
}

// reportSilence sets the condition InterceptorUnresponsive if the report of the active interceptor
// is overdue, so that users see what the request waits for long before the deadline.
func reportSilence(now time.Time, request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus, pod *v1.Pod) {
	name := activeInterceptor(status)
	overdue, expected := reportOverdue(request, status, pod)
	if !expected || now.Before(overdue) {
		clearCondition(now, status, coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive,
			coordinationv1alpha1.EvictionRequestReasonHeartbeatInTime, "No interceptor is overdue.")
		return
	}
	lastSign := evictionrequesttools.LastSignOfLife(withStatus(request, status)).UTC().Format(time.RFC3339)
	reason := coordinationv1alpha1.EvictionRequestReasonHeartbeatOverdue
	message := fmt.Sprintf("Interceptor %s has sent no heartbeat since it was activated at %s.", name, lastSign)
	entry := evictionrequesttools.InterceptorStatusOf(status, name)
	switch {
	case entry != nil && entry.HeartbeatTime != nil:
		message = fmt.Sprintf("Interceptor %s sent its last heartbeat at %s.", name, lastSign)
	case pod != nil && slices.Contains(evictionrequesttools.DefaultInterceptors(pod), name):
		// This is not a failure: it waits for a maintenance of the node and need not report until
		// then.
		reason = coordinationv1alpha1.EvictionRequestReasonNotStarted
		message = fmt.Sprintf("Interceptor %s has not started since it was activated at %s. It acts only during a NodeMaintenance of the node, "+
			"and stays active, because no other interceptor can stop the pod.", name, lastSign)
	}
	setCondition(now, status, coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive, metav1.ConditionTrue, reason, message)
}

// untilNextSync returns how long it is until the active interceptor becomes overdue or times out.
// Zero means never.
func untilNextSync(now, noTimeoutBefore time.Time, request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus, pod *v1.Pod) time.Duration {
	var next time.Duration
	if deadline, limited := turnDeadline(noTimeoutBefore, request, status, pod); limited {
		next = deadline.Sub(now)
	}
	if overdue, expected := reportOverdue(request, status, pod); expected {
		next = earliest(next, overdue.Sub(now))
	}
	return max(0, next)
}

// earliest returns the shorter of two delays. It ignores a delay that is not positive.
func earliest(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// targetName returns the name of the pod that the request targets.
func targetName(request *coordinationv1alpha1.EvictionRequest) string {
	if request.Spec.Target.Pod == nil {
		return ""
	}
	return request.Spec.Target.Pod.Name
}
