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
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
)

// serverStamp returns the time that the API server set in this update of a status: it sets activationTime and the
// times of the built-in interceptor, see pkg/registry/coordination/evictionrequest. Deadlines and delays use
// the clock that is derived from it.
func serverStamp(before, written *coordinationv1alpha1.EvictionRequestStatus) (stamp time.Time, stamped bool) {
	if activation := written.ActivationTime; activation != nil && !activation.Equal(before.ActivationTime) {
		return activation.Time, true
	}
	old := evictionrequesttools.InterceptorStatusOf(before, coordinationv1alpha1.EvictionInterceptorImperative)
	entry := evictionrequesttools.InterceptorStatusOf(written, coordinationv1alpha1.EvictionInterceptorImperative)
	if old == nil || entry == nil || entry.HeartbeatTime == nil || entry.HeartbeatTime.Equal(old.HeartbeatTime) {
		return time.Time{}, false
	}
	return entry.HeartbeatTime.Time, true
}
