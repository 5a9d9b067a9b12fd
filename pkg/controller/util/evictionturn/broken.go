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

package evictionturn

import (
	"time"

	v1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// BrokenAfter is how long a pod must have been unready to count as broken. With a shorter time,
// one missed readiness probe would be enough.
const BrokenAfter = 30 * time.Second

// IsBroken reports whether a pod has not been ready for BrokenAfter.
func IsBroken(pod *v1.Pod, now time.Time) bool {
	notReady, since := NotReadySince(pod)
	return notReady && now.Sub(since) >= BrokenAfter
}

// NotReadySince reports whether a pod is not ready, and since when: since it was last ready, or
// since its creation if it was never ready.
func NotReadySince(pod *v1.Pod) (notReady bool, since time.Time) {
	if podutil.IsPodReady(pod) {
		return false, time.Time{}
	}
	if ready := podutil.GetPodReadyCondition(pod.Status); ready != nil && ready.LastTransitionTime.After(pod.CreationTimestamp.Time) {
		return true, ready.LastTransitionTime.Time
	}
	return true, pod.CreationTimestamp.Time
}

// startsWithin is how long after the start of a pod the kubelet first reports that it is not ready.
const startsWithin = 10 * time.Second

// HasBeenReady reports whether a pod that is not ready was ready before. The condition Ready then
// has changed later than at the start of the pod.
func HasBeenReady(pod *v1.Pod) bool {
	ready := podutil.GetPodReadyCondition(pod.Status)
	if ready == nil {
		return false
	}
	started := pod.CreationTimestamp
	if pod.Status.StartTime != nil {
		started = *pod.Status.StartTime
	}
	return ready.Status == v1.ConditionTrue || ready.LastTransitionTime.After(started.Add(startsWithin))
}
