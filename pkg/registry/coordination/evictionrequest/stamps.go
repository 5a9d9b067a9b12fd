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
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// stampTimes sets the times that controllers write for the moment of their update to the time of
// the server: the activationTime, and the times of the built-in interceptor. Deadlines and delays
// are computed from them, so they need to come from one clock. Otherwise, a controller with a wrong
// clock could not write at all, because validation rejects times that differ from the time of the
// server.
//
// Other interceptors keep the times that they report. They apply their whole entry repeatedly,
// including the startTime, and would not know a time that the server has set instead.
func stampTimes(status, old *coordination.EvictionRequestStatus, now time.Time) {
	present := &metav1.Time{Time: now.Truncate(time.Second)}
	isNew := func(name string) bool { return !slices.Contains(old.ActiveInterceptors, name) }
	if slices.ContainsFunc(status.ActiveInterceptors, isNew) {
		status.ActivationTime = present
	}
	const own = coordinationv1alpha1.EvictionInterceptorImperative
	entry, oldEntry := coordination.InterceptorStatusOf(status, own), coordination.InterceptorStatusOf(old, own)
	if entry == nil || oldEntry == nil {
		return // There is no entry to stamp.
	}
	if entry.StartTime != nil && oldEntry.StartTime == nil {
		entry.StartTime = present
	}
	if entry.CompletionTime != nil && oldEntry.CompletionTime == nil {
		entry.CompletionTime = present
	}
	if entry.HeartbeatTime != nil && !entry.HeartbeatTime.Equal(oldEntry.HeartbeatTime) {
		entry.HeartbeatTime = nextHeartbeat(present, oldEntry.HeartbeatTime, entry.CompletionTime != nil)
	}
}

// nextHeartbeat returns the present, or the last heartbeat if it is too early for another one.
func nextHeartbeat(present, last *metav1.Time, completes bool) *metav1.Time {
	if last == nil || present.Sub(last.Time) >= evictionrequesttools.MinHeartbeatInterval || completes && !present.Before(last) {
		return present
	}
	return last
}
