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
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// BrokenAfter is how long a pod must have been unready to count as broken. With a shorter time,
// one missed readiness probe would be enough.
const BrokenAfter = 30 * time.Second

// Unready remembers since when pods have not been ready, as this process has seen it: what the condition Ready says is
// from the clock of the node, which may be behind by minutes. A pod that counts as broken too early is one too many that
// leaves. So a restart delays that pods count as broken. The zero value has seen none.
type Unready struct {
	lock sync.Mutex
	pods map[types.UID]seenUnready
}

// seenUnready is when a pod was first seen that is not ready, and when that has begun by the clock of the node. If the
// latter changes, it was ready in between, or is not ready for another reason.
type seenUnready struct{ at, changed time.Time }

// Saw records the state of a pod. It must be called for each change of each pod.
func (u *Unready) Saw(pod *v1.Pod, now time.Time) {
	u.lock.Lock()
	defer u.lock.Unlock()
	if podutil.IsPodReady(pod) || podutil.IsPodPhaseTerminal(pod.Status.Phase) {
		delete(u.pods, pod.UID)
		return
	}
	if seen, ok := u.pods[pod.UID]; ok && seen.changed.Equal(readyChanged(pod)) {
		return
	}
	if u.pods == nil {
		u.pods = map[types.UID]seenUnready{}
	}
	u.pods[pod.UID] = seenUnready{at: now, changed: readyChanged(pod)}
}

// Forget forgets a pod that is gone.
func (u *Unready) Forget(pod types.UID) {
	u.lock.Lock()
	defer u.lock.Unlock()
	delete(u.pods, pod)
}

// Since reports whether a pod is not ready, and since when: since it was seen so, which is now if it was not, or since
// the later time that the pod says.
func (u *Unready) Since(pod *v1.Pod, now time.Time) (notReady bool, since time.Time) {
	if podutil.IsPodReady(pod) {
		return false, time.Time{}
	}
	u.lock.Lock()
	defer u.lock.Unlock()
	seen, ok := u.pods[pod.UID]
	if !ok || !seen.changed.Equal(readyChanged(pod)) || seen.at.After(now) {
		return true, now
	}
	for _, reported := range []time.Time{pod.CreationTimestamp.Time, seen.changed} {
		if reported.After(seen.at) {
			seen.at = reported
		}
	}
	return true, seen.at
}

// IsBroken reports whether a pod has not been ready for BrokenAfter.
func (u *Unready) IsBroken(pod *v1.Pod, now time.Time) bool {
	notReady, since := u.Since(pod, now)
	return notReady && now.Sub(since) >= BrokenAfter
}

func readyChanged(pod *v1.Pod) time.Time {
	if ready := podutil.GetPodReadyCondition(pod.Status); ready != nil {
		return ready.LastTransitionTime.Time
	}
	return time.Time{}
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
