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
	// firstReportPatience is how long an interceptor may take to take up its turn before
	// it counts as unresponsive: one that runs at all answers within seconds.
	firstReportPatience = time.Minute

	// nextReportPatience is how long it may be silent afterwards. Interceptors are
	// advised to report every three minutes (KEP-4563, Interceptor), and the condition
	// must not come and go with each report of a healthy one. With a short heartbeat
	// deadline it is three quarters of that.
	nextReportPatience = 5 * time.Minute

	// timeoutGracePeriod is how long no interceptor loses its turn after this controller
	// was away from the API server: the interceptors may have been too, and what looks like
	// silence is that they could not report. It is longer than the three minutes between
	// two heartbeats, and much longer than the client library waits between two attempts.
	timeoutGracePeriod = 5 * time.Minute
)

// turnDeadline returns when the active interceptor of the status loses its turn if it stays
// silent: at its deadline, but not before noTimeoutBefore, which is timeoutGracePeriod after
// the last outage. An interceptor that has reported or was activated since then could report
// all the time.
func turnDeadline(noTimeoutBefore time.Time, request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus, pod *v1.Pod) (deadline time.Time, limited bool) {
	current := withStatus(request, status)
	deadline, limited = evictionrequesttools.ActiveDeadline(current, pod)
	silentBefore := evictionrequesttools.LastSignOfLife(current).Before(noTimeoutBefore.Add(-timeoutGracePeriod))
	if limited && silentBefore && deadline.Before(noTimeoutBefore) {
		deadline = noTimeoutBefore
	}
	return deadline, limited
}

// reportOverdue returns when the silence of the active interceptor of the status is
// worth a condition. No report is expected of the built-in interceptor, nor of one that has
// completed and is active because the pod terminates.
func reportOverdue(request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus) (overdue time.Time, expected bool) {
	switch activeInterceptor(status) {
	case "", coordinationv1alpha1.EvictionInterceptorImperative:
		return time.Time{}, false
	}
	patience := firstReportPatience
	entry := interceptorStatus(status, activeInterceptor(status))
	if entry != nil && entry.CompletionTime != nil {
		return time.Time{}, false
	}
	if entry != nil && entry.HeartbeatTime != nil {
		patience = min(nextReportPatience, evictionrequesttools.HeartbeatDeadline(request)*3/4)
	}
	return evictionrequesttools.LastSignOfLife(withStatus(request, status)).Add(patience), true
}

// withStatus returns the request as it is with another status. It shares all else.
func withStatus(request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus) *coordinationv1alpha1.EvictionRequest {
	changed := *request
	changed.Status = *status
	return &changed
}
