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

package evictionpacing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/plaintext"
)

// maxNamedPods limits the number of pods listed in a message.
const maxNamedPods = 3

// maxFailure limits what a message repeats of the answer of the API server, in bytes.
const maxFailure = 300

// Stage is the state of the eviction of a pod from the view of its workload.
type Stage int

const (
	// Stays: there is no eviction request, or the workload is not yet active.
	Stays Stage = iota
	// Asked: the workload is the active interceptor.
	Asked
	// Released: the pod may be evicted at any moment. The workload has completed or was skipped.
	Released
)

// aMissingPod is what has to happen with a pod that gets its name when it is created.
const aMissingPod = "a pod to be created"

// Member is a pod of a workload, or a missing one.
type Member struct {
	// Name of the pod, or "" of a missing one that gets its name when it is created.
	Name string
	// Order says which of several pods leave first: those with the highest one.
	Order int
	// Pod is nil if it is missing.
	Pod   *v1.Pod
	Stage Stage
	// Available is true if the pod is available, whatever its stage.
	Available bool
	// Broken is true if the pod has not been ready for evictionturn.BrokenAfter and does not
	// terminate. Started is true if it was ready before.
	Broken, Started bool
	// Only are the names of the only nodes that may ever run the pod, if it is not bound and all of them are cordoned.
	Only []string
	// NotAwaited are the names of the pods that would have to become available first, but cannot: see holds.
	NotAwaited []string
	Predecessors
}

// IsMissing reports whether the pod does not exist.
func (m *Member) IsMissing() bool { return m.Pod == nil }

// Predecessors says which earlier pods, which the member replaces, the workload has released.
type Predecessors struct {
	// Replaced is true if one of them was not broken when it was released: the workload had one pod
	// less from then on, until this one is available.
	Replaced bool
	// WasBroken is true if one of them, or this pod itself, was broken when it was released.
	WasBroken bool
}

// countsAsUnavailable reports whether the pod is unavailable or may become so at any moment, and
// the other pods wait for it.
//
// They do not wait for a broken pod, which may never become available, nor for what comes in its
// place: the workload has no pod less than before. But they wait for the replacement of a pod that was
// not broken until it has started, however long that takes: maybe no pod of the workload can start
// where the pods are sent now. And they wait for a pod that was not broken when it was released,
// whatever the cache shows since.
func (m *Member) countsAsUnavailable() bool {
	switch {
	case m.Broken && m.Stage != Released && (m.Started || !m.Replaced):
		return false
	case m.WasBroken && !m.Replaced && !m.Available:
		return false
	}
	return !m.Available || m.Stage == Released
}

// leaving reports whether the workload has released the pod or its predecessor and waits for an
// available replacement.
func (m *Member) leaving() bool {
	return m.countsAsUnavailable() && (m.Stage == Released || m.Replaced)
}

// holds reports whether the member waits for that another one leaves: none but its node, which is cordoned, can run the
// member. The cordon usually ends when the drain has, which waits for the other one. If each waited for the other, only a
// timeout would end it. If one of several nodes can run the member, another drain, or a person, may make one of them
// schedulable before: if nobody waited, all pods could be away until then.
func (m *Member) holds(other *Member) bool {
	return other.Pod != nil && other.Pod.Spec.NodeName != "" && len(m.Only) == 1 && m.Only[0] == other.Pod.Spec.NodeName
}

// need returns what must happen before the member no longer counts as unavailable.
func (m *Member) need() string {
	switch {
	case m.Pod == nil && m.Name == "":
		return aMissingPod
	case m.Pod == nil:
		return fmt.Sprintf("pod %s to be created", m.Name)
	case m.Pod.DeletionTimestamp != nil:
		return fmt.Sprintf("pod %s to terminate", m.Name)
	case m.Stage == Released:
		return fmt.Sprintf("pod %s to be evicted", m.Name)
	case len(m.Only) == 1:
		return fmt.Sprintf("pod %s to become available on node %s, which is cordoned", m.Name, m.Only[0])
	case len(m.Only) > 1:
		return fmt.Sprintf("pod %s to become available on one of %d nodes, which are cordoned", m.Name, len(m.Only))
	}
	return fmt.Sprintf("pod %s to become available", m.Name)
}

// Plan is the decision which of the pods with eviction requests may be evicted now.
type Plan struct {
	// Next may leave now, and Waiting may not. Both are in the order in which the pods leave.
	Next, Waiting []*Member

	members []*Member
	// pinned are the members that only certain nodes may run: usually none.
	pinned []*Member
	// missing counts further members, of which nothing is known but that they do not exist.
	missing int
	limit   Limit
}

// PlanEvictions decides which of the asked pods may leave. At most as many members as the limit
// count as unavailable, whatever the reason: while it is reached, no available pod leaves.
// Unavailable pods leave first, because they do not serve, but also at most so many of them at a
// time: they may be about to become available. A released pod counts toward that limit until its
// replacement is available. Broken pods leave at once.
// A pod does not wait for one that can only run on its own node, or others, when they are no longer cordoned.
// Pods beyond the replicas of the workload count like the others until they are gone. Members are
// named in messages in the given order. missing counts members that do not exist and replace no pod that has left:
// an owner may want billions.
func PlanEvictions(limit Limit, members []*Member, missing int) Plan {
	plan := Plan{members: members, missing: missing, limit: limit}
	var candidates []*Member
	unavailable, leaving := missing, 0
	for _, member := range plan.members {
		if member.countsAsUnavailable() {
			unavailable++
		}
		if member.leaving() {
			leaving++
		}
		if member.Stage == Asked {
			candidates = append(candidates, member)
		}
		if len(member.Only) > 0 {
			plan.pinned = append(plan.pinned, member)
		}
	}
	slices.SortStableFunc(candidates, func(a, b *Member) int {
		if a.Available != b.Available {
			if b.Available {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.Order, a.Order)
	})
	for _, member := range candidates {
		others := leaving
		if member.leaving() {
			others--
		}
		held, heldLeaving := plan.heldBy(member)
		switch {
		case member.Broken:
			// If it counts, because it is a replacement, it does so before and after.
			member.WasBroken = true
		case member.Available && unavailable-len(held) < limit.Pods:
			if unavailable >= limit.Pods {
				member.NotAwaited = held
			}
			unavailable++
			leaving++
		case !member.Available && others-heldLeaving < limit.Pods:
			if others >= limit.Pods {
				member.NotAwaited = held
			}
			leaving = others + 1
		default:
			plan.Waiting = append(plan.Waiting, member)
			continue
		}
		member.Stage = Released
		plan.Next = append(plan.Next, member)
	}
	return plan
}

// heldBy returns the names of the members that count and wait for that this one leaves, and how many of them are leaving.
func (p *Plan) heldBy(candidate *Member) (names []string, leaving int) {
	for _, member := range p.pinned {
		if member == candidate || !member.holds(candidate) || !member.countsAsUnavailable() {
			continue
		}
		names = append(names, member.Name)
		if member.leaving() {
			leaving++
		}
	}
	return names, leaving
}

// WaitingFor returns the message about what a pod waits for. owner is the kind and name of the workload,
// and replicas how many pods it wants. failure is why the last pod could not be created, or "".
func (p *Plan) WaitingFor(owner string, replicas int, waiting *Member, failure string) string {
	var needs []string
	more, toBeCreated := p.missing, p.missing > 0
	for _, member := range p.members {
		switch {
		case member == waiting || !member.countsAsUnavailable() || member.holds(waiting):
			continue
		case len(needs) < maxNamedPods:
			needs = append(needs, member.need())
		default:
			more++
		}
		toBeCreated = toBeCreated || member.IsMissing()
	}
	for len(needs) < maxNamedPods && more > 0 {
		needs = append(needs, aMissingPod)
		more--
	}
	if more > 0 {
		needs = append(needs, fmt.Sprintf("%d more", more))
	}
	failed := ""
	if toBeCreated && failure != "" {
		failed = fmt.Sprintf(" (failed: %s)", plaintext.Truncate(failure, maxFailure))
	}
	source := ""
	if p.limit.Budget != "" {
		source = fmt.Sprintf(" (PodDisruptionBudget %s)", p.limit.Budget)
	}
	return fmt.Sprintf("Waiting for %s%s: at most %d of the %d pods of %s may be unavailable at a time%s.",
		strings.Join(needs, ", "), failed, p.limit.Pods, replicas, owner, source)
}
