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
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// defaultHeartbeatDeadline is the default of spec.heartbeatDeadlineSeconds.
const defaultHeartbeatDeadline = 20 * time.Minute

// StateOf returns the state of a request. "kubectl get evictionrequests" prints it.
func StateOf(request *coordinationv1alpha1.EvictionRequest) State {
	// Final states take precedence over the rest of the status.
	for _, state := range []State{StateEvicted, StateCanceled, StateBlocked} {
		if meta.IsStatusConditionTrue(request.Status.Conditions, string(state)) {
			return state
		}
	}
	switch active := request.Status.ActiveInterceptors; {
	case len(active) == 0:
		return StatePending
	case active[0] == coordinationv1alpha1.EvictionInterceptorImperative:
		return StateEvicting
	}
	return StateIntercepting
}

// ActiveInterceptor returns the status entry of the active interceptor, or nil if there is none.
func ActiveInterceptor(request *coordinationv1alpha1.EvictionRequest) *coordinationv1alpha1.InterceptorStatus {
	if len(request.Status.ActiveInterceptors) == 0 {
		return nil
	}
	for i := range request.Status.Interceptors {
		if entry := &request.Status.Interceptors[i]; entry.Name == request.Status.ActiveInterceptors[0] {
			return entry
		}
	}
	return nil
}

// DefaultInterceptors returns the interceptors that each request for such a pod has, even if the
// pod does not name them. Nothing else can stop the pod, because it is exempt from API-initiated
// eviction.
func DefaultInterceptors(pod *v1.Pod) []string {
	if _, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]; mirror {
		return []string{coordinationv1alpha1.EvictionInterceptorKubelet}
	}
	owner := metav1.GetControllerOf(pod)
	if owner != nil && owner.Kind == "DaemonSet" && strings.HasPrefix(owner.APIVersion, "apps/") {
		return []string{coordinationv1alpha1.EvictionInterceptorDaemonSet}
	}
	return nil
}

// ActiveDeadline returns when the active interceptor times out. limited is false if it does not: no
// interceptor is active, or the active one is imperative-eviction.k8s.io or a default interceptor
// of the pod at any position in the list, which no other interceptor can replace. pod is the target
// of the request, or nil if the caller does not have it. If it is nil, the names of all default
// interceptors count as defaults of the pod.
func ActiveDeadline(request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) (deadline time.Time, limited bool) {
	if len(request.Status.ActiveInterceptors) == 0 || !hasDeadline(request.Status.ActiveInterceptors[0], pod) {
		return time.Time{}, false
	}
	return LastSignOfLife(request).Add(HeartbeatDeadline(request)), true
}

func hasDeadline(name string, pod *v1.Pod) bool {
	switch name {
	case coordinationv1alpha1.EvictionInterceptorImperative:
		return false
	case coordinationv1alpha1.EvictionInterceptorDaemonSet, coordinationv1alpha1.EvictionInterceptorKubelet:
		return pod != nil && !slices.Contains(DefaultInterceptors(pod), name)
	}
	return true
}

// LastSignOfLife returns when the active interceptor last reported or was activated, whichever is
// later. The deadline starts at this time.
func LastSignOfLife(request *coordinationv1alpha1.EvictionRequest) time.Time {
	lastSign := request.CreationTimestamp.Time
	if activated := request.Status.ActivationTime; activated != nil {
		lastSign = activated.Time
	}
	if entry := ActiveInterceptor(request); entry != nil && entry.HeartbeatTime != nil && entry.HeartbeatTime.After(lastSign) {
		lastSign = entry.HeartbeatTime.Time
	}
	return lastSign
}

// HeartbeatDeadline returns how long an active interceptor may go without a heartbeat before the
// next one is activated. It is spec.heartbeatDeadlineSeconds, or the default for requests that were
// stored without it.
func HeartbeatDeadline(request *coordinationv1alpha1.EvictionRequest) time.Duration {
	if seconds := request.Spec.HeartbeatDeadlineSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return defaultHeartbeatDeadline
}
