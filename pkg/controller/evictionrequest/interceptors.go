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
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/util/evictioninterceptor"
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
)

// computeTargetInterceptors returns who gets a turn in the eviction of the pod, in
// order: those that the pod names in its spec or by annotation, those that its kind
// calls for, and the built-in one.
func computeTargetInterceptors(pod *v1.Pod) []coordinationv1alpha1.Interceptor {
	var named []string
	for _, interceptor := range pod.Spec.EvictionInterceptors {
		named = append(named, interceptor.Name)
	}
	var interceptors []coordinationv1alpha1.Interceptor
	for _, name := range evictioninterceptor.TargetNames(named, pod.Annotations, defaultInterceptors(pod)) {
		interceptors = append(interceptors, coordinationv1alpha1.Interceptor{Name: name})
	}
	return interceptors
}

// defaultInterceptors returns who can end a pod that is not evicted through the API.
// They get a turn also where the pod does not name them, such as one that is older
// than the feature.
func defaultInterceptors(pod *v1.Pod) []string {
	switch {
	case isMirrorPod(pod):
		return []string{coordinationv1alpha1.EvictionInterceptorKubelet}
	case isDaemonSetPod(pod):
		return []string{coordinationv1alpha1.EvictionInterceptorDaemonSet}
	}
	return nil
}

// isMirrorPod tells whether the pod only shows a static pod of the kubelet.
func isMirrorPod(pod *v1.Pod) bool {
	_, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]
	return mirror
}

// isDaemonSetPod tells whether a DaemonSet controls the pod.
func isDaemonSetPod(pod *v1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet" && strings.HasPrefix(owner.APIVersion, "apps/")
}

// activeInterceptor returns the name of the interceptor whose turn it is, or "".
func activeInterceptor(status *coordinationv1alpha1.EvictionRequestStatus) string {
	if len(status.ActiveInterceptors) == 0 {
		return ""
	}
	return status.ActiveInterceptors[0]
}

// interceptorStatus returns the entry of an interceptor within the status, or nil.
func interceptorStatus(status *coordinationv1alpha1.EvictionRequestStatus, name string) *coordinationv1alpha1.InterceptorStatus {
	for i := range status.Interceptors {
		if status.Interceptors[i].Name == name {
			return &status.Interceptors[i]
		}
	}
	return nil
}

// activeDeadline returns when the active interceptor of the status loses its turn if
// it stays silent. The built-in interceptor has no deadline: nobody could take over
// from it.
func activeDeadline(request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus) (deadline time.Time, limited bool) {
	switch activeInterceptor(status) {
	case "", coordinationv1alpha1.EvictionInterceptorImperative:
		return time.Time{}, false
	}
	return lastSignOfLife(request, status).Add(evictionrequesttools.HeartbeatDeadline(request)), true
}

// reportOverdue returns when the silence of the active interceptor of the status is
// worth a condition. None is expected where there is no deadline, nor of one who has
// completed and is active because the pod terminates.
func reportOverdue(request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus) (overdue time.Time, expected bool) {
	if _, limited := activeDeadline(request, status); !limited {
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
	return lastSignOfLife(request, status).Add(patience), true
}

// lastSignOfLife returns when the active interceptor of the status has reported last,
// or was activated, if that is later.
func lastSignOfLife(request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus) time.Time {
	lastSign := request.CreationTimestamp.Time
	if status.ActivationTime != nil {
		lastSign = status.ActivationTime.Time
	}
	entry := interceptorStatus(status, activeInterceptor(status))
	if entry != nil && entry.HeartbeatTime != nil && entry.HeartbeatTime.After(lastSign) {
		lastSign = entry.HeartbeatTime.Time
	}
	return lastSign
}
