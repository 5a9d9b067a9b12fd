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

package statefulset

import (
	"cmp"
	"slices"
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/controller/util/evictionpacing"
	"k8s.io/kubernetes/pkg/controller/util/evictionturn"
	"k8s.io/kubernetes/pkg/features"
)

// evictionStageOf returns the stage of a pod with this request, which may be nil. A request with
// the condition Evicted also releases the pod: the cache of pods, which still has the pod, may be
// behind.
func evictionStageOf(request *coordinationv1alpha1.EvictionRequest) evictionpacing.Stage {
	if request == nil {
		return evictionpacing.Stays
	}
	switch evictionrequest.StateOf(request) {
	case evictionrequest.StateCanceled:
		return evictionpacing.Stays
	case evictionrequest.StateEvicted, evictionrequest.StateEvicting, evictionrequest.StateBlocked:
		return evictionpacing.Released
	}
	const own = coordinationv1alpha1.EvictionInterceptorStatefulSet
	switch {
	case slices.Contains(request.Status.ProcessedInterceptors, own), ownCompletion(request) != nil:
		return evictionpacing.Released
	case slices.Contains(request.Status.ActiveInterceptors, own):
		return evictionpacing.Asked
	}
	return evictionpacing.Stays
}

// isReleasedRequest reports whether a pod with this request is released.
func isReleasedRequest(request *coordinationv1alpha1.EvictionRequest) bool {
	return evictionStageOf(request) == evictionpacing.Released
}

// ownCompletion returns the completion time of the turn of the StatefulSet, or nil.
func ownCompletion(request *coordinationv1alpha1.EvictionRequest) *time.Time {
	if entry := evictionrequest.InterceptorStatusOf(&request.Status, coordinationv1alpha1.EvictionInterceptorStatefulSet); entry != nil && entry.CompletionTime != nil {
		return &entry.CompletionTime.Time
	}
	return nil
}

// evictionLimitOf returns how many of these pods of the set may be unavailable at a time.
func evictionLimitOf(set *apps.StatefulSet, pods []*v1.Pod, budgets *poddisruptionbudget.Index) evictionpacing.Limit {
	return evictionpacing.LimitOf(pods, budgets, maxUnavailableOf(set))
}

// evictionMembers returns the existing pods and the ordinals of the missing ones. before returns
// the predecessors of a member with this name, whose pod has this UID or is missing. onlyOn returns the only nodes of a
// pod if all of them are cordoned.
func evictionMembers(set *apps.StatefulSet, pods []*v1.Pod, stageOf func(*v1.Pod) evictionpacing.Stage, before func(name string, uid types.UID) evictionpacing.Predecessors, onlyOn func(*v1.Pod) []string, unready *evictionturn.Unready, now time.Time) []*evictionpacing.Member {
	missing := map[int]bool{}
	for ordinal := getStartOrdinal(set); ordinal < getStartOrdinal(set)+replicasOf(set); ordinal++ {
		missing[ordinal] = true
	}
	var members []*evictionpacing.Member
	for _, pod := range pods {
		delete(missing, getOrdinal(pod))
		members = append(members, &evictionpacing.Member{
			Name:         pod.Name,
			Order:        getOrdinal(pod),
			Pod:          pod,
			Stage:        stageOf(pod),
			Available:    !isUnavailable(pod, set.Spec.MinReadySeconds, now),
			Broken:       !isTerminating(pod) && !isTerminalPhase(pod) && unready.IsBroken(pod, now),
			Started:      evictionturn.HasBeenReady(pod),
			Only:         onlyOn(pod),
			Predecessors: before(pod.Name, pod.UID),
		})
	}
	for ordinal := range missing {
		name := getPodName(set, ordinal)
		members = append(members, &evictionpacing.Member{Name: name, Order: ordinal, Predecessors: before(name, "")})
	}
	slices.SortFunc(members, func(a, b *evictionpacing.Member) int { return cmp.Compare(a.Order, b.Order) })
	return members
}

// waitingFor returns the message about what a pod waits for. failure is why a pod could not be created, or "".
func waitingFor(plan *evictionpacing.Plan, set *apps.StatefulSet, waiting *evictionpacing.Member, failure string) string {
	return plan.WaitingFor("StatefulSet "+set.Name, replicasOf(set), waiting, failure)
}

// maxUnavailableOf returns how many pods may be unavailable during a rolling update. As in the
// controller, the field has an effect only while its own gate is on.
func maxUnavailableOf(set *apps.StatefulSet) int {
	update := set.Spec.UpdateStrategy.RollingUpdate
	if update == nil || !utilfeature.DefaultFeatureGate.Enabled(features.MaxUnavailableStatefulSet) {
		return 1
	}
	limit, err := getStatefulSetMaxUnavailable(update.MaxUnavailable, replicasOf(set))
	if err != nil {
		return 1 // The API server rejects such a value.
	}
	return limit
}

// replicasOf returns the number of replicas of the set.
func replicasOf(set *apps.StatefulSet) int {
	if set.Spec.Replicas == nil {
		return 1 // The API server sets a default.
	}
	return int(*set.Spec.Replicas)
}
