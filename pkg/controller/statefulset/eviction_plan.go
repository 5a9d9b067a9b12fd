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
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/features"
)

// maxNamedPods keeps messages readable.
const maxNamedPods = 3

// evictionStage is how far the eviction of a pod concerns its StatefulSet.
type evictionStage int

const (
	// stays: nobody asks for the pod, or other interceptors have their turn first.
	stays evictionStage = iota
	// asked: it is the turn of the StatefulSet, which has not passed the pod on yet.
	asked
	// released: the pod may go at any moment. It was passed on, or never waited for us.
	released
)

// evictionStageOf returns the stage of a pod for which there is this request, or none. A
// request that says that the pod is evicted releases it, too: the cache of the pods, in which
// the pod still is, may be behind.
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

// ownCompletion returns when the turn of the StatefulSet was completed, or nil.
func ownCompletion(request *coordinationv1alpha1.EvictionRequest) *time.Time {
	if entry := ownEntry(request); entry != nil && entry.CompletionTime != nil {
		return &entry.CompletionTime.Time
	}
	return nil
}

// ownEntry returns what was reported of the turn of the StatefulSet, or nil.
func ownEntry(request *coordinationv1alpha1.EvictionRequest) *coordinationv1alpha1.InterceptorStatus {
	for i := range request.Status.Interceptors {
		if entry := &request.Status.Interceptors[i]; entry.Name == coordinationv1alpha1.EvictionInterceptorStatefulSet {
			return entry
		}
	}
	return nil
}

// evictionMember is a pod of the set, or the place of one that does not exist.
type evictionMember struct {
	name    string
	ordinal int
	pod     *v1.Pod
	stage   evictionStage
	// available is what the pod is now, wherever its eviction stands.
	available bool
	// replaced is whether this pod or one before it was passed on by the set.
	replaced bool
}

// away reports whether the set has to do without the pod, now or from one moment to the next.
func (m *evictionMember) away() bool { return !m.available || m.stage == released }

// leaving reports whether the set has passed the pod on, or the one before it, and waits for
// one that is available.
func (m *evictionMember) leaving() bool { return m.stage == released || m.replaced && m.away() }

// need says what has to happen until the pod is not away any more.
func (m *evictionMember) need() string {
	switch {
	case m.pod == nil:
		return fmt.Sprintf("pod %s to be created", m.name)
	case isTerminating(m.pod):
		return fmt.Sprintf("pod %s to terminate", m.name)
	case m.stage == released:
		return fmt.Sprintf("pod %s to leave", m.name)
	}
	return fmt.Sprintf("pod %s to become available", m.name)
}

// evictionPlan is which of the pods that are asked to leave may do so now.
type evictionPlan struct {
	// next may go now, and waiting may not. Both are in the order in which they go.
	next, waiting []*evictionMember
	// members are all pods of the set, by ordinal.
	members []*evictionMember
	// limit is how many of them may be away at a time.
	limit int
}

// planEvictions decides which of the pods that are asked may go. At most maxUnavailable
// pods of the set are away, whatever the reason: as long as more are, no available pod
// goes. Pods that are not available go first, since nobody misses them, but no more
// than maxUnavailable of them at a time either: they may be about to become available. One
// that was passed on counts for that until its replacement is available.
// Pods that the set has beyond its replicas count like the others until they are gone.
func planEvictions(set *apps.StatefulSet, members []*evictionMember) evictionPlan {
	plan := evictionPlan{members: members, limit: maxUnavailableOf(set)}
	var candidates []*evictionMember
	away, leaving := 0, 0
	for _, member := range plan.members {
		if member.away() {
			away++
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
		case member.available && away < plan.limit:
			away++
		case !member.available && others < plan.limit:
		default:
			plan.waiting = append(plan.waiting, member)
			continue
		}
		leaving = others + 1
		member.stage = released
		plan.next = append(plan.next, member)
	}
	return plan
}

// evictionMembers returns the pods that exist, and the places of those that should. Replaced
// says of a name whether the set has passed a pod of it on.
func evictionMembers(set *apps.StatefulSet, pods []*v1.Pod, stageOf func(*v1.Pod) evictionStage, replaced func(name string) bool, now time.Time) []*evictionMember {
	missing := map[int]bool{}
	for ordinal := getStartOrdinal(set); ordinal < getStartOrdinal(set)+replicasOf(set); ordinal++ {
		missing[ordinal] = true
	}
	var members []*evictionMember
	for _, pod := range pods {
		delete(missing, getOrdinal(pod))
		members = append(members, &evictionMember{
			name:      pod.Name,
			ordinal:   getOrdinal(pod),
			pod:       pod,
			stage:     stageOf(pod),
			available: !isUnavailable(pod, set.Spec.MinReadySeconds, now),
			replaced:  replaced(pod.Name),
		})
	}
	for ordinal := range missing {
		name := getPodName(set, ordinal)
		members = append(members, &evictionMember{name: name, ordinal: ordinal, replaced: replaced(name)})
	}
	slices.SortFunc(members, func(a, b *evictionMember) int { return cmp.Compare(a.ordinal, b.ordinal) })
	return members
}

// waitingFor says for what a pod waits.
func (p *evictionPlan) waitingFor(set *apps.StatefulSet, waiting *evictionMember) string {
	var needs []string
	for _, member := range p.members {
		if member != waiting && member.away() {
			needs = append(needs, member.need())
		}
	}
	if more := len(needs) - maxNamedPods; more > 0 {
		needs = append(needs[:maxNamedPods], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("Waiting for %s: at most %d of the %d pods of StatefulSet %s may be unavailable at a time.",
		strings.Join(needs, ", "), p.limit, replicasOf(set), set.Name)
}

// maxUnavailableOf returns how many pods a rolling update would have unavailable at a time.
// The field counts only while its own gate is on, as it does for the controller.
func maxUnavailableOf(set *apps.StatefulSet) int {
	update := set.Spec.UpdateStrategy.RollingUpdate
	if update == nil || !utilfeature.DefaultFeatureGate.Enabled(features.MaxUnavailableStatefulSet) {
		return 1
	}
	limit, err := getStatefulSetMaxUnavailable(update.MaxUnavailable, replicasOf(set))
	if err != nil {
		return 1 // The API server takes no such value.
	}
	return limit
}

// replicasOf returns how many pods the set should have.
func replicasOf(set *apps.StatefulSet) int {
	if set.Spec.Replicas == nil {
		return 1 // The API server sets a default.
	}
	return int(*set.Spec.Replicas)
}
