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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/utils/ptr"
)

// oldReport is how old a heartbeat may be when it is copied: later it does not show that the responder works.
const oldReport = 2 * time.Minute

// nextReport returns the entry of the active interceptor with what it reports as a responder, or nil if that says
// nothing new, and when a heartbeat may be copied that comes too early: a responder may report more often than an
// interceptor. The times are those of the copy: each group lets them differ from the present, by another amount.
func nextReport(eviction *lifecyclev1alpha1.Eviction, request *coordinationv1alpha1.EvictionRequest, now time.Time) (next *coordinationv1alpha1.InterceptorStatus, wait time.Duration) {
	active, entry := activeOf(&eviction.Status), evictionrequest.ActiveInterceptor(request)
	if active == nil || entry == nil || interceptorOf(active.Name) != entry.Name || entry.Name == coordinationv1alpha1.EvictionInterceptorImperative || entry.CompletionTime != nil {
		return nil, 0
	}
	report := reportOf(&eviction.Status, active.Name)
	next = entry.DeepCopy()
	if report.HeartbeatTime == nil && report.CompletionTime == nil && report.Message == nil && report.ExpectedCompletionTime == nil {
		return nil, 0
	}
	present := ptr.To(metav1.NewTime(now.Truncate(time.Second)))
	completes := report.CompletionTime != nil
	switch {
	case entry.StartTime == nil:
		next.StartTime, next.HeartbeatTime = present, present
	case report.HeartbeatTime != nil && report.HeartbeatTime.After(entry.HeartbeatTime.Time) && now.Sub(report.HeartbeatTime.Time) < oldReport:
		if wait = entry.HeartbeatTime.Add(evictionrequest.MinHeartbeatInterval).Sub(now); wait <= 0 {
			next.HeartbeatTime, wait = present, 0
		}
	}
	if completes {
		next.CompletionTime = present
	}
	next.Message = ptr.Deref(report.Message, "")
	if eta := report.ExpectedCompletionTime; eta == nil || eta.After(now) {
		next.ExpectedFinishTime = eta.DeepCopy()
	}
	if sameReport(next, entry) {
		return nil, wait
	}
	return next, wait
}

func sameReport(a, b *coordinationv1alpha1.InterceptorStatus) bool {
	return a.Message == b.Message && a.StartTime.Equal(b.StartTime) && a.HeartbeatTime.Equal(b.HeartbeatTime) &&
		a.CompletionTime.Equal(b.CompletionTime) && a.ExpectedFinishTime.Equal(b.ExpectedFinishTime)
}
