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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// garbageDecision is what happens to a finished request.
type garbageDecision int

const (
	// garbageKeep leaves the request until something changes.
	garbageKeep garbageDecision = iota
	// garbageWait leaves it until its time is over.
	garbageWait
	// garbageDelete deletes it now.
	garbageDelete
)

// decideGarbage decides about a finished request. Its history is kept for ttl; zero
// keeps it until another client deletes it. The duration is how long to wait.
//
// A canceled request blocks a new one for the same pod, whose name is the same. So it goes
// at once when a requester is added, who wants a living one, and when it is misnamed: it
// was never about the pod whose UID is its name.
func decideGarbage(now time.Time, request *coordinationv1alpha1.EvictionRequest, ttl time.Duration, misnamed bool) (garbageDecision, time.Duration) {
	finished := finalCondition(&request.Status)
	switch {
	case finished == nil || request.DeletionTimestamp != nil:
		return garbageKeep, 0 // Only the finalizers of others are left.
	case isRevived(request, finished), misnamed:
		return garbageDelete, 0
	case ttl == 0:
		return garbageKeep, 0
	}
	if wait := finished.LastTransitionTime.Add(ttl).Sub(now); wait > 0 {
		return garbageWait, wait
	}
	return garbageDelete, 0
}

// isRevived reports whether a requester has joined since the request was canceled. The
// generation counts changes of the spec, and requesters are all that may change there.
func isRevived(request *coordinationv1alpha1.EvictionRequest, finished *metav1.Condition) bool {
	return finished.Type == string(coordinationv1alpha1.EvictionRequestConditionCanceled) &&
		len(request.Spec.Requesters) > 0 &&
		request.Generation > finished.ObservedGeneration
}

// finalCondition returns the condition that ended the request, or nil.
func finalCondition(status *coordinationv1alpha1.EvictionRequestStatus) *metav1.Condition {
	for _, conditionType := range []coordinationv1alpha1.EvictionRequestConditionType{
		coordinationv1alpha1.EvictionRequestConditionEvicted,
		coordinationv1alpha1.EvictionRequestConditionCanceled,
	} {
		condition := meta.FindStatusCondition(status.Conditions, string(conditionType))
		if condition != nil && condition.Status == metav1.ConditionTrue {
			return condition
		}
	}
	return nil
}
