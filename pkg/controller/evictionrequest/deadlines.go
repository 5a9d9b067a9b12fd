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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
)

const (
	// firstReportTimeout is how long an interceptor may take for its first report before it counts
	// as unresponsive. An interceptor that is running reports within seconds.
	firstReportTimeout = time.Minute

	// nextReportTimeout is how long it may take for each further report. KEP-4563 (Interceptor)
	// advises interceptors to report every three minutes, and the condition must not flap for a
	// healthy one. If the heartbeat deadline is short, three quarters of it are used instead.
	nextReportTimeout = 5 * time.Minute

	// timeoutGracePeriod is how long no interceptor times out after this controller lost contact
	// with the API server: the interceptors may have been unable to report as well. It is longer
	// than the recommended three minutes between two heartbeats, and much longer than the delay
	// between two attempts of the client library.
	timeoutGracePeriod = 5 * time.Minute
)

// turnDeadline returns when the active interceptor of the status times out. This is its deadline,
// but not before noTimeoutBefore, which is timeoutGracePeriod after the last outage. An interceptor
// that has reported or was activated after that outage was able to report, so only its deadline
// counts.
func turnDeadline(noTimeoutBefore time.Time, request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus, pod *v1.Pod) (deadline time.Time, limited bool) {
	current := withStatus(request, status)
	deadline, limited = evictionrequesttools.ActiveDeadline(current, pod)
	silentBefore := evictionrequesttools.LastSignOfLife(current).Before(noTimeoutBefore.Add(-timeoutGracePeriod))
	if limited && silentBefore && deadline.Before(noTimeoutBefore) {
		deadline = noTimeoutBefore
	}
	return deadline, limited
}

// reportOverdue returns when the active interceptor of the status becomes unresponsive. No report
// is expected of the built-in interceptor, nor of one that has completed and remains active because
// the pod terminates.
func reportOverdue(request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus, pod *v1.Pod) (overdue time.Time, expected bool) {
	switch activeInterceptor(status) {
	case "", coordinationv1alpha1.EvictionInterceptorImperative:
		return time.Time{}, false
	}
	timeout := firstReportTimeout
	entry := evictionrequesttools.InterceptorStatusOf(status, activeInterceptor(status))
	if entry != nil && entry.CompletionTime != nil {
		return time.Time{}, false
	}
	if entry != nil && entry.HeartbeatTime != nil {
		timeout = nextReportTimeout
		if !evictionrequesttools.IsResponder(pod, entry.Name) { // The deadline of one is never that short.
			timeout = min(timeout, evictionrequesttools.HeartbeatDeadline(request)*3/4)
		}
	}
	return evictionrequesttools.LastSignOfLife(withStatus(request, status)).Add(timeout), true
}

// withStatus returns a shallow copy of the request with another status.
func withStatus(request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus) *coordinationv1alpha1.EvictionRequest {
	changed := *request
	changed.Status = *status
	return &changed
}
