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

package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
)

const (
	evicted  = "Evicted"
	canceled = "Canceled"

	// imperative is the interceptor that calls the API that evicts pods, and ofReplicaSets calls it once before, if the
	// Deployment of a pod has ended its turn without a replacement.
	imperative    = "imperative-eviction.k8s.io"
	ofReplicaSets = "replicaset.apps.k8s.io"

	// markPrefix is what begins the message of the condition DisruptionTarget of a pod that is evicted for a request.
	// The UID of the request follows.
	markPrefix = "Eviction API: evicting for EvictionRequest with UID "
)

// RequestRules are the rules of KEP-4563.
func RequestRules() []Rule {
	wanted := newWantedRequests()
	return []Rule{
		{"the end of a request is final", finalConditions},
		{"one interceptor after the other acts, and only that one reports", interceptorsInOrder},
		{"the interceptors of a pod come before its eviction", interceptorsOfPod},
		{"an interceptor has its turn until it has completed or is silent for too long", wholeTurns},
		{"who was evicted is gone", evictedIsTrue},
		{"a pod stays whose request is canceled", wanted.canceledIsTrue},
		{"a pod is evicted only while its request wants that", wanted.check},
	}
}

func isFinished(request *coordinationv1alpha1.EvictionRequest) bool {
	return meta.IsStatusConditionTrue(request.Status.Conditions, evicted) || meta.IsStatusConditionTrue(request.Status.Conditions, canceled)
}

// sameRequest returns a request before and after a change. A request that was deleted and created again is another one.
func sameRequest(c *Change) (before, after *coordinationv1alpha1.EvictionRequest, ok bool) {
	before, after, ok = versions[*coordinationv1alpha1.EvictionRequest](c)
	return before, after, ok && before != nil && after != nil && before.UID == after.UID
}

func finalConditions(_ *World, c *Change) string {
	before, after, ok := sameRequest(c)
	if !ok {
		return ""
	}
	if meta.IsStatusConditionTrue(after.Status.Conditions, evicted) && meta.IsStatusConditionTrue(after.Status.Conditions, canceled) {
		return "it is evicted and canceled"
	}
	for _, conditionType := range []string{evicted, canceled} {
		if meta.IsStatusConditionTrue(before.Status.Conditions, conditionType) && !meta.IsStatusConditionTrue(after.Status.Conditions, conditionType) {
			return fmt.Sprintf("%s was True and is not any more", conditionType)
		}
	}
	return ""
}

func interceptorsInOrder(_ *World, c *Change) string {
	before, after, ok := versions[*coordinationv1alpha1.EvictionRequest](c)
	if !ok || after == nil {
		return ""
	}
	if before == nil || before.UID != after.UID {
		before = &coordinationv1alpha1.EvictionRequest{}
	}
	was, is := &before.Status, &after.Status
	if len(was.TargetInterceptors) > 0 && !slices.Equal(was.TargetInterceptors, is.TargetInterceptors) {
		return fmt.Sprintf("the interceptors were %v and are %v", was.TargetInterceptors, is.TargetInterceptors)
	}
	if len(is.ProcessedInterceptors) < len(was.ProcessedInterceptors) || !slices.Equal(was.ProcessedInterceptors, is.ProcessedInterceptors[:len(was.ProcessedInterceptors)]) {
		return fmt.Sprintf("the processed ones were %v and are %v", was.ProcessedInterceptors, is.ProcessedInterceptors)
	}
	if len(is.ActiveInterceptors) > 1 {
		return fmt.Sprintf("%v are active", is.ActiveInterceptors)
	}
	for _, active := range is.ActiveInterceptors {
		next := slices.IndexFunc(is.TargetInterceptors, func(target coordinationv1alpha1.Interceptor) bool {
			return !slices.Contains(is.ProcessedInterceptors, target.Name)
		})
		if next < 0 || is.TargetInterceptors[next].Name != active {
			return fmt.Sprintf("%s is active, which is not the next one of %v after %v", active, is.TargetInterceptors, is.ProcessedInterceptors)
		}
		if isFinished(after) {
			return fmt.Sprintf("%s is active, and the request is finished", active)
		}
	}
	for i := range is.Interceptors {
		entry := &is.Interceptors[i]
		if entry.StartTime == nil && entry.HeartbeatTime == nil && entry.CompletionTime == nil {
			continue
		}
		old := slices.IndexFunc(was.Interceptors, func(old coordinationv1alpha1.InterceptorStatus) bool { return old.Name == entry.Name })
		hasReported := old < 0 || !was.Interceptors[old].HeartbeatTime.Equal(entry.HeartbeatTime) ||
			!was.Interceptors[old].StartTime.Equal(entry.StartTime) || !was.Interceptors[old].CompletionTime.Equal(entry.CompletionTime)
		if hasReported && !slices.Contains(was.ActiveInterceptors, entry.Name) {
			return fmt.Sprintf("%s reports, and is not active: %v", entry.Name, was.ActiveInterceptors)
		}
	}
	return ""
}

// interceptorsOfPod checks that a request names all interceptors of its pod.
func interceptorsOfPod(w *World, c *Change) string {
	before, after, ok := versions[*coordinationv1alpha1.EvictionRequest](c)
	if !ok || after == nil || len(after.Status.TargetInterceptors) == 0 || before != nil && before.UID == after.UID && len(before.Status.TargetInterceptors) > 0 {
		return ""
	}
	pod, found := targetOf(w, after)
	if !found {
		return ""
	}
	for _, own := range pod.Spec.EvictionInterceptors {
		if !slices.ContainsFunc(after.Status.TargetInterceptors, func(target coordinationv1alpha1.Interceptor) bool { return target.Name == own.Name }) {
			return fmt.Sprintf("pod %s has interceptor %s, and the request has %v", describe(pod), own.Name, after.Status.TargetInterceptors)
		}
	}
	return ""
}

// clockSlack is how far the clocks of programs may be apart, and times are in whole seconds.
const clockSlack = 10 * time.Second

// wholeTurns checks why the turn of an interceptor is over.
func wholeTurns(_ *World, c *Change) string {
	before, after, ok := sameRequest(c)
	if !ok || isFinished(after) || meta.IsStatusConditionTrue(after.Status.Conditions, "InterceptorsSkipped") {
		return ""
	}
	for _, name := range before.Status.ActiveInterceptors {
		if slices.Contains(after.Status.ActiveInterceptors, name) {
			continue
		}
		isEntry := func(entry coordinationv1alpha1.InterceptorStatus) bool { return entry.Name == name }
		sign := before.CreationTimestamp.Time
		if activated := before.Status.ActivationTime; activated != nil {
			sign = activated.Time
		}
		if at := slices.IndexFunc(after.Status.Interceptors, isEntry); at >= 0 {
			entry := &after.Status.Interceptors[at]
			if entry.CompletionTime != nil {
				continue
			}
			if entry.HeartbeatTime != nil && entry.HeartbeatTime.After(sign) {
				sign = entry.HeartbeatTime.Time
			}
		}
		limit := coordinationv1alpha1.DefaultHeartbeatDeadlineSeconds * time.Second
		if seconds := after.Spec.HeartbeatDeadlineSeconds; seconds != nil {
			limit = time.Duration(*seconds) * time.Second
		}
		if silent := c.Time.Sub(sign); silent < limit-clockSlack {
			return fmt.Sprintf("the turn of %s is over, which has not completed and was silent for %v, and not for %v", name, silent, limit)
		}
	}
	return ""
}

// targetOf returns the pod of a request, if it is there.
func targetOf(w *World, request *coordinationv1alpha1.EvictionRequest) (*v1.Pod, bool) {
	target := request.Spec.Target.Pod
	if target == nil {
		return nil, false
	}
	pod, found := get[*v1.Pod](w, "Pod", request.Namespace, target.Name)
	return pod, found && string(pod.UID) == target.UID
}

// becomes reports whether a condition becomes True.
func becomes(before, after *coordinationv1alpha1.EvictionRequest, conditionType string) bool {
	return after != nil && meta.IsStatusConditionTrue(after.Status.Conditions, conditionType) && (before == nil || before.UID != after.UID || !meta.IsStatusConditionTrue(before.Status.Conditions, conditionType))
}

func evictedIsTrue(w *World, c *Change) string {
	before, after, ok := versions[*coordinationv1alpha1.EvictionRequest](c)
	if !ok || !becomes(before, after, evicted) {
		return ""
	}
	if pod, found := targetOf(w, after); found && !hasEnded(pod) {
		return fmt.Sprintf("pod %s is %s", describe(pod), pod.Status.Phase)
	}
	return ""
}

func hasEnded(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

func isReady(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition v1.PodCondition) bool {
		return condition.Type == v1.PodReady && condition.Status == v1.ConditionTrue
	})
}

// markOf returns the UID of the request for which the pod is evicted; empty if it is not.
func markOf(pod *v1.Pod) types.UID {
	for _, condition := range pod.Status.Conditions {
		if condition.Type != v1.DisruptionTarget || condition.Status != v1.ConditionTrue {
			continue
		}
		if uid, found := strings.CutPrefix(condition.Message, markPrefix); found {
			uid, _, _ = strings.Cut(uid, ",")
			return types.UID(uid)
		}
	}
	return ""
}

// isEvicted reports whether a pod is about to be deleted by the API that evicts pods.
func isEvicted(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition v1.PodCondition) bool {
		return condition.Type == v1.DisruptionTarget && condition.Status == v1.ConditionTrue && condition.Reason == "EvictionByEvictionAPI"
	})
}

// isIntercepted reports whether an eviction of the pod has to wait for a request: not for the controller of a DaemonSet,
// which acts during maintenances only.
func isIntercepted(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.EvictionInterceptors, func(i v1.EvictionInterceptor) bool { return i.Name != "daemonset.apps.k8s.io" })
}

// wantedRequests has the last revision at which each request wanted that its pod is evicted, and the one at which each
// pod was marked. kube-apiserver marks the pod, reads the request, and deletes the pod: who withdraws after the reading
// has come too late.
type wantedRequests struct {
	wanted  map[types.UID]bool
	until   map[types.UID]int64
	marked  map[types.UID]int64
	markFor map[types.UID]types.UID
	// lastWanted is when the eviction of each pod was wanted last.
	lastWanted map[types.UID]time.Time
	// carriedOut are the requests for which a pod was deleted, with the pod.
	carriedOut map[types.UID]string
}

func newWantedRequests() *wantedRequests {
	return &wantedRequests{wanted: map[types.UID]bool{}, until: map[types.UID]int64{}, marked: map[types.UID]int64{}, markFor: map[types.UID]types.UID{}, lastWanted: map[types.UID]time.Time{}, carriedOut: map[types.UID]string{}}
}

func wantsEviction(request *coordinationv1alpha1.EvictionRequest) bool {
	return len(request.Spec.Requesters) > 0 && request.DeletionTimestamp == nil && !isFinished(request) &&
		(slices.Equal(request.Status.ActiveInterceptors, []string{imperative}) || slices.Equal(request.Status.ActiveInterceptors, []string{ofReplicaSets}))
}

// canceledIsTrue finds pods that were deleted, or are about to be, for a request that says that they stay. One that was
// marked after the request was withdrawn stays: kube-apiserver reads it after that, and removes the mark.
func (r *wantedRequests) canceledIsTrue(w *World, c *Change) string {
	before, after, ok := versions[*coordinationv1alpha1.EvictionRequest](c)
	if !ok || !becomes(before, after, canceled) {
		return ""
	}
	if pod, gone := r.carriedOut[after.UID]; gone {
		return fmt.Sprintf("pod %s was deleted for it", pod)
	}
	pod, found := targetOf(w, after)
	if found && markOf(pod) == after.UID && (r.wanted[after.UID] || r.until[after.UID] >= r.marked[pod.UID]) {
		return fmt.Sprintf("pod %s is marked for its eviction", describe(pod))
	}
	return ""
}

func (r *wantedRequests) check(w *World, c *Change) string {
	if before, after, ok := versions[*coordinationv1alpha1.EvictionRequest](c); ok {
		if before != nil && wantsEviction(before) || after != nil && wantsEviction(after) {
			r.lastWanted[types.UID(c.Key.Name)] = c.Time
		}
		if before != nil && r.wanted[before.UID] && (after == nil || after.UID != before.UID || !wantsEviction(after)) {
			r.wanted[before.UID], r.until[before.UID] = false, c.Revision-1
		}
		if after != nil && wantsEviction(after) {
			r.wanted[after.UID] = true
		}
		return ""
	}
	before, after, ok := versions[*v1.Pod](c)
	if !ok {
		return ""
	}
	if after != nil {
		if request := markOf(after); request != r.markFor[after.UID] {
			r.marked[after.UID], r.markFor[after.UID] = c.Revision, request
		}
	}
	if before == nil || before.DeletionTimestamp != nil || after != nil && after.UID == before.UID && after.DeletionTimestamp == nil {
		return ""
	}
	request := markOf(before)
	if request != "" && (r.wanted[request] || r.until[request] >= r.marked[before.UID]) {
		r.carriedOut[request] = describe(before)
	}
	if request == "" && isEvicted(before) && isIntercepted(before) {
		// Who evicts without a request may do so when the interceptors are done, as of a moment ago.
		present, found := get[*coordinationv1alpha1.EvictionRequest](w, "EvictionRequest", before.Namespace, string(before.UID))
		last, known := r.lastWanted[before.UID]
		if found && wantsEviction(present) || known && c.Time.Sub(last) <= drainSlack {
			return ""
		}
		return "it is evicted, and not for a request"
	}
	if request == "" || r.wanted[request] || r.until[request] >= r.marked[before.UID] {
		return ""
	}
	return fmt.Sprintf("it was marked at revision %d for the request with the UID %s, which did not want that since revision %d", r.marked[before.UID], request, r.until[request]+1)
}
