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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// State is a summary of the status of an EvictionRequest for users. No field contains it: it is
// derived from the conditions and the active interceptor.
type State string

const (
	// StatePending means that no interceptor is active: the controller has not processed the
	// request yet, or all interceptors are processed and the pod still runs.
	StatePending State = "Pending"

	// StateIntercepting means that an interceptor of the pod is active.
	StateIntercepting State = "Intercepting"

	// StateEvicting means that imperative-eviction.k8s.io is active.
	StateEvicting State = "Evicting"

	// StateBlocked means that the API server refuses the eviction, which is retried.
	StateBlocked State = "Blocked"

	// StateEvicted means that the pod is gone. Final.
	StateEvicted State = "Evicted"

	// StateCanceled means that the request was canceled and the pod stays. Final.
	StateCanceled State = "Canceled"
)

// StateOf returns the state of a request. "kubectl get evictionrequests" prints it.
func StateOf(request *coordinationv1alpha1.EvictionRequest) State {
	// A final state takes precedence over the rest of the status.
	if final := FinalCondition(request.Status.Conditions); final != nil {
		return State(final.Type)
	}
	if isConditionTrue(request, coordinationv1alpha1.EvictionRequestConditionBlocked) {
		return StateBlocked
	}
	switch active := request.Status.ActiveInterceptors; {
	case len(active) == 0:
		return StatePending
	case active[0] == coordinationv1alpha1.EvictionInterceptorImperative:
		return StateEvicting
	}
	return StateIntercepting
}

// IsFinished reports whether a request with these conditions has reached a final state: Evicted or
// Canceled. Requests of all versions of the API have such conditions.
func IsFinished(conditions []metav1.Condition) bool { return FinalCondition(conditions) != nil }

// IsWanted reports whether the request has requesters or can no longer be canceled. Deleting the
// request cancels it as well: this is visible while a finalizer keeps the object.
func IsWanted(request *coordinationv1alpha1.EvictionRequest) bool {
	if request.Status.EvictionRequestCancellationPolicy == coordinationv1alpha1.EvictionRequestCancellationPolicyForbid {
		return true
	}
	return len(request.Spec.Requesters) > 0 && request.DeletionTimestamp == nil
}

// StillRuns reports whether a pod is the one with this UID, and neither terminates nor has ended. A request for it that is
// Evicted is contradicted, as after the restoration of a backup of etcd: it must not keep others from requesting the
// eviction. The pod has to be read after the request. It may be nil.
func StillRuns(pod *v1.Pod, uid types.UID) bool {
	return pod != nil && pod.UID == uid && pod.DeletionTimestamp == nil && pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed
}

// EvictionMark returns with what the message of the condition DisruptionTarget begins with which
// kube-apiserver marks a pod that it is about to delete for the request with this UID. While it is there,
// the request must not be Canceled, which says that the pod stays.
func EvictionMark(requestUID types.UID) string {
	return fmt.Sprintf("%s%s, call ", evictionMarkPrefix, requestUID)
}

const evictionMarkPrefix = "Eviction API: evicting for EvictionRequest with UID "

// IsEvictionMark reports whether the message of the condition DisruptionTarget is the mark of an eviction for any
// request. A call for a former request for the same pod may be in flight while the next one is canceled.
func IsEvictionMark(message string) bool { return strings.HasPrefix(message, evictionMarkPrefix) }

// FinalCondition returns the condition that ended a request with these conditions, or nil if the
// request is not finished.
func FinalCondition(conditions []metav1.Condition) *metav1.Condition {
	for _, state := range []State{StateEvicted, StateCanceled} {
		if condition := meta.FindStatusCondition(conditions, string(state)); condition != nil && condition.Status == metav1.ConditionTrue {
			return condition
		}
	}
	return nil
}

// ActiveInterceptor returns the status entry of the active interceptor, or nil if there is none.
func ActiveInterceptor(request *coordinationv1alpha1.EvictionRequest) *coordinationv1alpha1.InterceptorStatus {
	if len(request.Status.ActiveInterceptors) == 0 {
		return nil
	}
	return InterceptorStatusOf(&request.Status, request.Status.ActiveInterceptors[0])
}

// InterceptorStatusOf returns the status entry of the interceptor with that name, or nil if there
// is none.
func InterceptorStatusOf(status *coordinationv1alpha1.EvictionRequestStatus, name string) *coordinationv1alpha1.InterceptorStatus {
	for i := range status.Interceptors {
		if entry := &status.Interceptors[i]; entry.Name == name {
			return entry
		}
	}
	return nil
}
