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
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/evictions"
)

const (
	// MinHeartbeatInterval is the minimum time between two heartbeats of an interceptor. The API
	// server rejects earlier ones, because each heartbeat is a write that all watchers receive.
	MinHeartbeatInterval = evictions.MinHeartbeatInterval

	// MaxClockSkew is how far a reported time may differ from the clock of the API server.
	MaxClockSkew = evictions.CoordinationClockSkew

	// defaultHeartbeatDeadline is the default of spec.heartbeatDeadlineSeconds.
	defaultHeartbeatDeadline = coordinationv1alpha1.DefaultHeartbeatDeadlineSeconds * time.Second

	// responderDeadline is how long a responder of lifecycle.k8s.io may be silent at least: that group lets nobody
	// interrupt it before.
	responderDeadline = 20 * time.Minute
)

// ActiveDeadline returns when the active interceptor times out. limited is false if it does not: no
// interceptor is active, or the active one is imperative-eviction.k8s.io or a default interceptor
// of the pod at any position in the list, which no other interceptor can replace. pod is the target
// of the request, or nil if the caller does not have it. If it is nil, the names of all default
// interceptors count as defaults of the pod, and none as that of a responder, which has 20 minutes at least.
func ActiveDeadline(request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) (deadline time.Time, limited bool) {
	if len(request.Status.ActiveInterceptors) == 0 || !hasDeadline(request.Status.ActiveInterceptors[0], pod) {
		return time.Time{}, false
	}
	deadline = LastSignOfLife(request).Add(HeartbeatDeadline(request))
	if earliest := LastSignOfLife(request).Add(responderDeadline); IsResponder(pod, request.Status.ActiveInterceptors[0]) && deadline.Before(earliest) {
		deadline = earliest
	}
	return deadline, true
}

// IsResponder reports whether the interceptor is a responder of the pod (spec.evictionResponders), which may be nil.
func IsResponder(pod *v1.Pod, interceptor string) bool {
	return pod != nil && slices.ContainsFunc(pod.Spec.EvictionResponders, func(r v1.EvictionResponder) bool { return r.Name == interceptor })
}

// IsPassable reports whether the active interceptor of a request may be passed over: another one can
// stop the pod as well.
func IsPassable(request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) bool {
	return len(request.Status.ActiveInterceptors) > 0 && hasDeadline(request.Status.ActiveInterceptors[0], pod)
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
// next one is activated. It is spec.heartbeatDeadlineSeconds, or the default for requests
// that lack it.
func HeartbeatDeadline(request *coordinationv1alpha1.EvictionRequest) time.Duration {
	if seconds := request.Spec.HeartbeatDeadlineSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return defaultHeartbeatDeadline
}
