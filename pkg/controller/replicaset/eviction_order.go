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

package replicaset

import (
	"context"
	"slices"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

// getPodsToDelete returns diff pods to delete. There must be at least as many.
func (rsc *ReplicaSetController) getPodsToDelete(ctx context.Context, rs *apps.ReplicaSet, filteredPods, relatedPods []*v1.Pod, diff int) []*v1.Pod {
	if rsc.evictions == nil && rsc.pickers == nil && rsc.nodeLister == nil || diff >= len(filteredPods) {
		return getPodsToDelete(filteredPods, relatedPods, diff)
	}
	ranked, result := rsc.rank(rs, filteredPods, relatedPods)
	rsc.sortRanked(ctx, rs, ranked)
	if !slices.ContainsFunc(filteredPods, isNew) {
		reportSortingDeletionAgeRatioMetric(filteredPods, diff)
	}
	if result != nil {
		rsc.pickers.report(ctx, rs, *result, filteredPods[:diff], filteredPods[diff:])
	}
	return filteredPods[:diff]
}

// isNew reports whether the pod was created in this very millisecond, by which upstream's metric would divide.
func isNew(pod *v1.Pod) bool { return time.Since(pod.CreationTimestamp.Time) < time.Millisecond }

// evictionOrder is the order in which a scale-down deletes pods while some are requested to leave.
// It adds these rules to those of ActivePodsWithRanks:
//
//   - Pods that the Deployment has marked as leaving come first, ready or not: their replacements
//     are available, and other pods may be such replacements.
//   - Of two pods in the same phase that are both ready or both unready, an unavailable one comes
//     first, and then a requested one. So a scale-down never prefers an available pod because of a
//     request if another pod could be deleted. One that an interceptor of the owner is saving at the
//     moment is not preferred, but spared where another pod can be deleted.
//   - While a surge is taken back, a pod whose request was canceled is spared where another pod in the same
//     state can be deleted: the request says that it stays, and the other one may be its replacement.
type evictionOrder struct {
	controller.ActivePodsWithRanks
	leaving   []bool
	requested []bool
	saved     []bool
	stays     []bool
	available []bool
	// bare are the pods reduced to node, phase and readiness.
	bare controller.ActivePods
}

// order returns the order of these pods, unsorted.
func (e *evictions) order(now metav1.Time, rs *apps.ReplicaSet, surge deploymentutil.EvictionSurge, ranked controller.ActivePodsWithRanks) evictionOrder {
	order := evictionOrder{ActivePodsWithRanks: ranked}
	_, surges := rs.Annotations[deploymentutil.EvictionSurgeAnnotation]
	for _, pod := range ranked.Pods {
		requested, saved := e.progressOf(pod)
		order.requested = append(order.requested, requested && !saved)
		order.saved = append(order.saved, saved)
		order.stays = append(order.stays, surges && e.isCanceled(pod))
		order.available = append(order.available, podutil.IsPodAvailable(pod, rs.Spec.MinReadySeconds, now))
		order.bare = append(order.bare, barePod(pod))
	}
	order.leaving = e.leaving(rs, surge, order)
	return order
}

// leaving returns which pods are marked as leaving. An available pod is only marked if enough other
// pods are available: the replacement may have failed since the Deployment decided, or the
// annotation may be forged.
func (e *evictions) leaving(rs *apps.ReplicaSet, surge deploymentutil.EvictionSurge, order evictionOrder) []bool {
	spare := int(surge.Surge) - int(*rs.Spec.Replicas)
	for _, available := range order.available {
		if available {
			spare++
		}
	}
	leaving := make([]bool, len(order.Pods))
	for _, uid := range surge.Leaving {
		i := slices.IndexFunc(order.Pods, func(pod *v1.Pod) bool { return pod.UID == uid })
		if i < 0 || leaving[i] || e.requestsSynced() && !order.requested[i] || order.available[i] && spare <= 0 {
			continue
		}
		leaving[i] = true
		if order.available[i] {
			spare--
		}
	}
	return leaving
}

// isRequested reports whether the pod has an eviction request that is neither canceled nor
// completed, and that somebody wants.
func (e *evictions) isRequested(pod *v1.Pod) bool {
	requested, _ := e.progressOf(pod)
	return requested
}

// progressOf returns isRequested, and whether an interceptor that is no part of Kubernetes is active for the pod: it
// saves something that is lost if the pod is deleted now.
func (e *evictions) progressOf(pod *v1.Pod) (requested, saved bool) {
	// The name of a request is the UID of its pod.
	request, err := e.requestLister.EvictionRequests(pod.Namespace).Get(string(pod.UID))
	if err != nil || evictionrequest.IsFinished(request.Status.Conditions) || !evictionrequest.IsWanted(request) {
		return false, false
	}
	isForeign := func(name string) bool { return !evictioninterceptor.IsReserved(name) }
	return true, slices.ContainsFunc(request.Status.ActiveInterceptors, isForeign)
}

// isCanceled reports whether the pod has an eviction request that is canceled, or about to be.
func (e *evictions) isCanceled(pod *v1.Pod) bool {
	request, err := e.requestLister.EvictionRequests(pod.Namespace).Get(string(pod.UID))
	if err != nil {
		return false
	}
	if evictionrequest.IsFinished(request.Status.Conditions) {
		return evictionrequest.StateOf(request) == evictionrequest.StateCanceled
	}
	return !evictionrequest.IsWanted(request)
}

// barePod returns the fields that the first rules of ActivePods compare, so that its other rules
// find no difference.
func barePod(pod *v1.Pod) *v1.Pod {
	bare := &v1.Pod{Spec: v1.PodSpec{NodeName: pod.Spec.NodeName}, Status: v1.PodStatus{Phase: pod.Status.Phase}}
	if podutil.IsPodReady(pod) {
		bare.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	}
	return bare
}

func (o evictionOrder) Swap(i, j int) {
	o.ActivePodsWithRanks.Swap(i, j)
	o.bare.Swap(i, j)
	for _, facts := range [][]bool{o.leaving, o.requested, o.saved, o.stays, o.available} {
		facts[i], facts[j] = facts[j], facts[i]
	}
}

func (o evictionOrder) Less(i, j int) bool {
	switch {
	case o.leaving[i] != o.leaving[j]:
		return o.leaving[i]
	case o.bare.Less(i, j), o.bare.Less(j, i):
		return o.bare.Less(i, j)
	case o.available[i] != o.available[j]:
		return o.available[j]
	case o.requested[i] != o.requested[j]:
		return o.requested[i]
	case o.saved[i] != o.saved[j]:
		return o.saved[j]
	case o.stays[i] != o.stays[j]:
		return o.stays[j]
	}
	return o.ActivePodsWithRanks.Less(i, j)
}
