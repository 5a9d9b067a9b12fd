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
	"fmt"
	"slices"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/controller/util/evictionturn"
	"k8s.io/kubernetes/pkg/features"
)

// maxNamedPods limits the number of pods listed in a message.
const maxNamedPods = 3

// evictionStage is the state of the eviction of a pod from the view of its StatefulSet.
type evictionStage int

const (
	// stays: there is no eviction request, or the StatefulSet is not yet active.
	stays evictionStage = iota
	// asked: the StatefulSet is the active interceptor.
	asked
	// released: the pod may be evicted at any moment. The StatefulSet has completed or was skipped.
	released
)

// evictionStageOf returns the stage of a pod with this request, which may be nil. A request with
// the condition Evicted also releases the pod: the cache of pods, which still has the pod, may be
// behind.
func evictionStageOf(request *coordinationv1alpha1.EvictionRequest) evictionStage {
	if request == nil {
		return stays
	}
	switch evictionrequest.StateOf(request) {
	case evictionrequest.StateCanceled:
		return stays
	case evictionrequest.StateEvicted, evictionrequest.StateEvicting, evictionrequest.StateBlocked:
		return released
	}
	const own = coordinationv1alpha1.EvictionInterceptorStatefulSet
	switch {
	case slices.Contains(request.Status.ProcessedInterceptors, own), ownCompletion(request) != nil:
		return released
	case slices.Contains(request.Status.ActiveInterceptors, own):
		return asked
	}
	return stays
}

// ownCompletion returns the completion time of the turn of the StatefulSet, or nil.
func ownCompletion(request *coordinationv1alpha1.EvictionRequest) *time.Time {
	if entry := evictionrequest.InterceptorStatusOf(&request.Status, coordinationv1alpha1.EvictionInterceptorStatefulSet); entry != nil && entry.CompletionTime != nil {
		return &entry.CompletionTime.Time
	}
	return nil
}

// evictionMember is a pod of the set, or the ordinal of a missing one.
type evictionMember struct {
	name    string
	ordinal int
	pod     *v1.Pod
	stage   evictionStage
	// available is true if the pod is available, whatever its stage.
	available bool
	// broken is true if the pod has not been ready for evictionturn.BrokenAfter and does not
	// terminate. started is true if it was ready before.
	broken, started bool
	predecessors
}

// predecessors says which earlier pods of the same name the set has released.
type predecessors struct {
	// replaced is true if one of them was not broken when it was released: the set had one pod less
	// from then on, until this one is available.
	replaced bool
	// wasBroken is true if one of them, or this pod itself, was broken when it was released.
	wasBroken bool
}

// countsAsUnavailable reports whether the pod is unavailable or may become so at any moment, and
// the other pods wait for it.
//
// They do not wait for a broken pod, which may never become available, nor for what comes in its
// place: the set has no pod less than before. But they wait for the replacement of a pod that was
// not broken until it has started, however long that takes: maybe no pod of the set can start
// where the pods are sent now. And they wait for a pod that was not broken when it was released,
// whatever the cache shows since.
func (m *evictionMember) countsAsUnavailable() bool {
	switch {
	case m.broken && m.stage != released && (m.started || !m.replaced):
		return false
	case m.wasBroken && !m.replaced && !m.available:
		return false
	}
	return !m.available || m.stage == released
}

// leaving reports whether the set has released the pod or its predecessor and waits for an
// available replacement.
func (m *evictionMember) leaving() bool {
	return m.countsAsUnavailable() && (m.stage == released || m.replaced)
}

// need returns what must happen before the member no longer counts as unavailable.
func (m *evictionMember) need() string {
	switch {
	case m.pod == nil:
		return fmt.Sprintf("pod %s to be created", m.name)
	case isTerminating(m.pod):
		return fmt.Sprintf("pod %s to terminate", m.name)
	case m.stage == released:
		return fmt.Sprintf("pod %s to be evicted", m.name)
	}
	return fmt.Sprintf("pod %s to become available", m.name)
}

// evictionPlan is the decision which of the pods with eviction requests may be evicted now.
type evictionPlan struct {
	// next may leave now, and waiting may not. Both are in the order in which the pods leave.
	next, waiting []*evictionMember
	// members are all pods of the set, by ordinal.
	members []*evictionMember
	// limit is how many members may count as unavailable at a time.
	limit evictionLimit
}

// planEvictions decides which of the asked pods may leave. At most as many members as the limit
// count as unavailable, whatever the reason: while it is reached, no available pod leaves.
// Unavailable pods leave first, because they do not serve, but also at most so many of them at a
// time: they may be about to become available. A released pod counts toward that limit until its
// replacement is available. Broken pods leave at once.
// Pods beyond the replicas of the set count like the others until they are gone.
func planEvictions(limit evictionLimit, members []*evictionMember) evictionPlan {
	plan := evictionPlan{members: members, limit: limit}
	var candidates []*evictionMember
	unavailable, leaving := 0, 0
	for _, member := range plan.members {
		if member.countsAsUnavailable() {
			unavailable++
		}
		if member.leaving() {
			leaving++
		}
		if member.stage == asked {
			candidates = append(candidates, member)
		}
	}
	slices.SortFunc(candidates, func(a, b *evictionMember) int {
		if a.available != b.available {
			if b.available {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.ordinal, a.ordinal)
	})
	for _, member := range candidates {
		others := leaving
		if member.leaving() {
			others--
		}
		switch {
		case member.broken:
			// If it counts, because it is a replacement, it does so before and after.
			member.wasBroken = true
		case member.available && unavailable < limit.pods:
			unavailable++
			leaving++
		case !member.available && others < limit.pods:
			leaving = others + 1
		default:
			plan.waiting = append(plan.waiting, member)
			continue
		}
		member.stage = released
		plan.next = append(plan.next, member)
	}
	return plan
}

// evictionMembers returns the existing pods and the ordinals of the missing ones. before returns
// the predecessors of a member with this name, whose pod has this UID or is missing.
func evictionMembers(set *apps.StatefulSet, pods []*v1.Pod, stageOf func(*v1.Pod) evictionStage, before func(name string, uid types.UID) predecessors, now time.Time) []*evictionMember {
	missing := map[int]bool{}
	for ordinal := getStartOrdinal(set); ordinal < getStartOrdinal(set)+replicasOf(set); ordinal++ {
		missing[ordinal] = true
	}
	var members []*evictionMember
	for _, pod := range pods {
		delete(missing, getOrdinal(pod))
		members = append(members, &evictionMember{
			name:         pod.Name,
			ordinal:      getOrdinal(pod),
			pod:          pod,
			stage:        stageOf(pod),
			available:    !isUnavailable(pod, set.Spec.MinReadySeconds, now),
			broken:       !isTerminating(pod) && !isTerminalPhase(pod) && evictionturn.IsBroken(pod, now),
			started:      evictionturn.HasBeenReady(pod),
			predecessors: before(pod.Name, pod.UID),
		})
	}
	for ordinal := range missing {
		name := getPodName(set, ordinal)
		members = append(members, &evictionMember{name: name, ordinal: ordinal, predecessors: before(name, "")})
	}
	slices.SortFunc(members, func(a, b *evictionMember) int { return cmp.Compare(a.ordinal, b.ordinal) })
	return members
}

// waitingFor returns the message about what a pod waits for.
func (p *evictionPlan) waitingFor(set *apps.StatefulSet, waiting *evictionMember) string {
	var needs []string
	for _, member := range p.members {
		if member != waiting && member.countsAsUnavailable() {
			needs = append(needs, member.need())
		}
	}
	if more := len(needs) - maxNamedPods; more > 0 {
		needs = append(needs[:maxNamedPods], fmt.Sprintf("%d more", more))
	}
	source := ""
	if p.limit.budget != "" {
		source = fmt.Sprintf(" (PodDisruptionBudget %s)", p.limit.budget)
	}
	return fmt.Sprintf("Waiting for %s: at most %d of the %d pods of StatefulSet %s may be unavailable at a time%s.",
		strings.Join(needs, ", "), p.limit.pods, replicasOf(set), set.Name, source)
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
