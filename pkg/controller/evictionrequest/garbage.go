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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
)

// isGarbage reports whether a finished request is to be deleted now. It is kept for ttl; zero keeps it until another
// client deletes it.
//
// A canceled request blocks a new one for the same pod, which would have the same name. It is
// deleted immediately when a requester is added, who needs a new request, and when it is wrong: its
// target is not the pod whose UID is its name, or runs although it was evicted.
func isGarbage(now time.Time, request *coordinationv1alpha1.EvictionRequest, ttl time.Duration, wrong bool) bool {
	finished := evictionrequesttools.FinalCondition(request.Status.Conditions)
	switch {
	case finished == nil || request.DeletionTimestamp != nil:
		return false // It only waits for the finalizers of other controllers.
	case isRequestedAgain(request, finished), wrong:
		return true
	}
	return ttl > 0 && !now.Before(finished.LastTransitionTime.Add(ttl))
}

// isRequestedAgain reports whether a requester was added after the request was canceled. A new
// generation means a change of the requesters: nothing else in the spec is mutable.
func isRequestedAgain(request *coordinationv1alpha1.EvictionRequest, finished *metav1.Condition) bool {
	return finished.Type == string(coordinationv1alpha1.EvictionRequestConditionCanceled) &&
		len(request.Spec.Requesters) > 0 &&
		request.Generation > finished.ObservedGeneration
}
