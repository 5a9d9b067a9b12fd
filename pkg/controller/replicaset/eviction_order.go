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
	"sort"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/evictionrequest"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

// getPodsToDelete returns as many pods as diff says, which are not more than there are.
func (rsc *ReplicaSetController) getPodsToDelete(rs *apps.ReplicaSet, filteredPods, relatedPods []*v1.Pod, diff int) []*v1.Pod {
	if rsc.evictions == nil || diff >= len(filteredPods) {
		return getPodsToDelete(filteredPods, relatedPods, diff)
	}
	sort.Sort(rsc.evictions.order(rs, getPodsRankedByRelatedPodsOnSameNode(filteredPods, relatedPods)))
	reportSortingDeletionAgeRatioMetric(filteredPods, diff)
	return filteredPods[:diff]
}

// evictionOrder is the order in which a scale-down takes pods while some are asked to
// leave. In between the rules of ActivePodsWithRanks:
//
//   - Pods that the Deployment lets go come first, ready or not: their replacements are
//     available, and other pods may be such replacements.
//   - Of two pods that are in the same phase and both ready or both not, one that is
//     asked to leave comes first. A pod that is not ready comes before, so that no
//     scale-down takes a ready pod more than it would without requests.
type evictionOrder struct {
	controller.ActivePodsWithRanks
	leaving   []bool
	requested []bool
	// bare are the pods with nothing but node, phase and readiness.
	bare controller.ActivePods
}

// order returns the order of these pods, which it does not sort yet.
func (e *evictions) order(rs *apps.ReplicaSet, ranked controller.ActivePodsWithRanks) evictionOrder {
	// An annotation that cannot be read has no effect. The Deployment controller, which
	// writes it, says what is wrong.
	surge, _ := deploymentutil.EvictionSurgeOf(rs)
	leaving := sets.New(surge.Leaving...)
	order := evictionOrder{ActivePodsWithRanks: ranked}
	for _, pod := range ranked.Pods {
		requested := e.isRequested(pod)
		order.requested = append(order.requested, requested)
		order.leaving = append(order.leaving, leaving.Has(pod.UID) && (requested || !e.requestsSynced()))
		order.bare = append(order.bare, barePod(pod))
	}
	return order
}

// isRequested tells whether the pod is asked to leave, and nobody has called that off.
func (e *evictions) isRequested(pod *v1.Pod) bool {
	// The name of a request is the UID of its pod.
	request, err := e.requestLister.EvictionRequests(pod.Namespace).Get(string(pod.UID))
	if err != nil {
		return false // There is none.
	}
	state := evictionrequest.StateOf(request)
	return state != evictionrequest.StateCanceled && state != evictionrequest.StateEvicted
}

// barePod returns what the first rules of ActivePods compare, so that the others find no
// difference.
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
	o.leaving[i], o.leaving[j] = o.leaving[j], o.leaving[i]
	o.requested[i], o.requested[j] = o.requested[j], o.requested[i]
}

func (o evictionOrder) Less(i, j int) bool {
	switch {
	case o.leaving[i] != o.leaving[j]:
		return o.leaving[i]
	case o.requested[i] == o.requested[j], o.bare.Less(i, j), o.bare.Less(j, i):
		return o.ActivePodsWithRanks.Less(i, j)
	}
	return o.requested[i]
}
