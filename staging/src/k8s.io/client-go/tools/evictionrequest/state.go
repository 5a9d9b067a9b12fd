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

// State sums up the status of an EvictionRequest in one word, for people. No field
// holds it: it follows from the conditions and the active interceptor.
type State string

const (
	// StatePending means that nobody acts: the controller has not taken the request
	// up, or all interceptors had their turn and the pod still runs.
	StatePending State = "Pending"

	// StateIntercepting means that it is the turn of an interceptor that the pod names.
	StateIntercepting State = "Intercepting"

	// StateEvicting means that it is the turn of imperative-eviction.k8s.io.
	StateEvicting State = "Evicting"

	// StateBlocked means that imperative-eviction.k8s.io is refused, and tries again.
	StateBlocked State = "Blocked"

	// StateEvicted means that the pod is gone. Final.
	StateEvicted State = "Evicted"

	// StateCanceled means that the request was given up and the pod stays. Final.
	StateCanceled State = "Canceled"
)

// defaultHeartbeatDeadline is the default of spec.heartbeatDeadlineSeconds.
const defaultHeartbeatDeadline = 20 * time.Minute

// StateOf returns the state of a request. "kubectl get evictionrequests" prints it.
func StateOf(request *coordinationv1alpha1.EvictionRequest) State {
	// What is final comes first: nothing that else stands in the status counts then.
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

// ActiveInterceptor returns the report of the interceptor whose turn it is, or nil
// when it is nobody's turn.
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

// DefaultInterceptors returns the interceptors that every request for such a pod has,
// whether or not the pod names them: nothing else can end the pod, because it is exempt from
// API-initiated eviction.
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

// ActiveDeadline returns when the active interceptor loses its turn if it stays silent.
// limited is false when it cannot: no interceptor is active, or it is one that no other
// could take over from, which are imperative-eviction.k8s.io and the default interceptors of
// the pod, wherever they stand in the list. The pod is the target of the request, or nil if
// the caller does not have it: the names of default interceptors then count as default.
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

// LastSignOfLife returns when the active interceptor has reported last, or was activated, if
// that is later. The deadline counts from there.
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

// HeartbeatDeadline returns how long an active interceptor may be silent before the
// next one takes over: spec.heartbeatDeadlineSeconds, or its default for requests that
// were stored without it.
func HeartbeatDeadline(request *coordinationv1alpha1.EvictionRequest) time.Duration {
	if seconds := request.Spec.HeartbeatDeadlineSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return defaultHeartbeatDeadline
}
