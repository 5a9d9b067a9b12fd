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

package deployment

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

// turn says how an eviction request of a pod concerns the Deployment of the pod.
type turn int

const (
	// notAsked: there is no request, or it is canceled, or the Deployment is not yet active.
	notAsked turn = iota
	// ourTurn: the Deployment is the active interceptor.
	ourTurn
	// passedOn: the Deployment has completed, and another interceptor is active.
	passedOn
	// evicting: the Deployment has completed, and only the eviction remains. The pod may
	// terminate at any moment.
	evicting
	// withdrawn: the Deployment had its turn, and nobody wants the eviction any more, but the request is not
	// canceled yet: the deletion of the pod may be in flight. Until that is known, the pod keeps its extra
	// replica, and is not removed.
	withdrawn
)

// surgePod is what nextSurge needs to know about a living pod. A pod is living if it neither
// terminates nor has finished.
type surgePod struct {
	uid     types.UID
	created time.Time
	// available has the same meaning as in the status of the ReplicaSet: ready for
	// spec.minReadySeconds.
	available bool
	// broken is true if the pod has been unready for BrokenAfter or, if it may still be starting,
	// for the progress deadline. See brokenSince.
	broken bool
	// misplaced is true if the pod came to a node that a maintenance claims: it has to leave as well, and
	// replaces no other pod.
	misplaced bool
	turn      turn
	// since is when the Deployment's turn began; zero if it has not had one.
	since time.Time
}

// surgeState is the input of nextSurge for one ReplicaSet.
type surgeState struct {
	// wanted is the number of replicas that the Deployment wants, without a surge.
	wanted int
	// room is the number of extra replicas that are allowed.
	room int
	// recorded is the surge that is recorded on the ReplicaSet.
	recorded deploymentutil.EvictionSurge
	// pods are the living pods.
	pods []surgePod
	// toCreate is the number of pods that the ReplicaSet has yet to create.
	toCreate int
	// behind is true if the status may not match the existing pods. shrinking is true if the
	// status may count more pods than spec.replicas.
	behind, shrinking bool
}

// nextSurge returns the surge to record on a ReplicaSet. The result depends on the observed state
// alone, so that a second sync, or a sync after a restart, changes nothing.
//
// Each pod that should leave gets an extra replica, within the room. Pods leave when their
// replacements are available: spec.replicas falls, and the ReplicaSet deletes the pods listed in
// the record first.
func nextSurge(now time.Time, s surgeState) deploymentutil.EvictionSurge {
	leaving := s.leaving()
	surge := s.surgeBeside(leaving)
	if s.wanted+surge == int(s.recorded.Of) && s.spares(leaving) {
		// No other pod leaves in the place of one that stays before the size of the ReplicaSet has changed: with
		// the generation, its controller reports that the deletions are over that it had sent before.
		leaving = nil
		surge = s.surgeBeside(nil)
	}
	next := deploymentutil.EvictionSurge{Surge: int32(surge), Since: s.recorded.Since}
	for _, pod := range leaving {
		next.Leaving = append(next.Leaving, pod.uid)
		if pod.misplaced {
			next.Misplaced = append(next.Misplaced, pod.uid)
		}
	}
	next.Ending = next.Surge < s.recorded.Surge || s.recorded.Ending && s.shrinking
	begins := next.Surge > 0 && s.recorded.Surge == 0 && s.recorded.Since.IsZero()
	left := s.left()
	if s.behind {
		// Keep them recorded until the status no longer counts them. They are removed together
		// with Ending.
		kept := left[:min(len(left), deploymentutil.MaxLeaving-len(next.Leaving))]
		next.Leaving = append(next.Leaving, kept...)
		for _, uid := range kept {
			if slices.Contains(s.recorded.Misplaced, uid) {
				next.Misplaced = append(next.Misplaced, uid)
			}
		}
		left = nil
	}
	slices.Sort(next.Leaving)
	slices.Sort(next.Misplaced)
	// Only a pod that has left counts as progress, but not a misplaced one, which may come back for ever. A
	// surge that starts and ends again while no pod leaves must reach its deadline.
	left = slices.DeleteFunc(left, func(uid types.UID) bool { return slices.Contains(s.recorded.Misplaced, uid) })
	if begins || len(left) > 0 {
		next.Since = metav1.NewTime(now.Truncate(time.Second))
	}
	return next
}

// surgeBeside returns the number of extra replicas while these pods leave.
func (s surgeState) surgeBeside(leaving []surgePod) int {
	surge := min(s.toLeave()-len(leaving), s.room, s.wanted)
	if len(leaving) > 0 {
		// Small enough that the ReplicaSet deletes all leaving pods. The surge grows again
		// afterwards.
		surge = min(surge, len(s.pods)+s.toCreate-len(leaving)-s.wanted)
	}
	return max(surge, 0)
}

// spares reports whether a pod that is recorded as leaving lives, and is not one of these that leave now.
func (s surgeState) spares(leaving []surgePod) bool {
	return slices.ContainsFunc(s.recorded.Leaving, func(uid types.UID) bool {
		return s.isLiving(uid) && !slices.ContainsFunc(leaving, func(pod surgePod) bool { return pod.uid == uid })
	})
}

// left returns the recorded pods that no longer live.
func (s surgeState) left() []types.UID {
	return slices.DeleteFunc(slices.Clone(s.recorded.Leaving), s.isLiving)
}

// stillLiving counts the recorded pods that still live.
func (s surgeState) stillLiving() int { return len(s.recorded.Leaving) - len(s.left()) }

func (s surgeState) isLiving(uid types.UID) bool {
	return slices.ContainsFunc(s.pods, func(pod surgePod) bool { return pod.uid == uid })
}

// leaving returns the pods that can leave now: one for each available pod beyond the wanted
// number, broken ones whose replacements exist, and others that are not available, except as many as
// the available pods lack to the wanted number: these may be available before pods that start are. This
// includes pods whose turn has ended without an available replacement, if one becomes available later,
// unless another interceptor is active for the pod. So none of them costs an available pod that is
// wanted.
//
// A misplaced pod makes room for another replacement, which may come to a better node, while enough
// other pods are available.
//
// A broken pod without a request blocks the other pods until the deadline of their
// turns: it cannot be distinguished from a replacement that is slow to start.
func (s surgeState) leaving() []surgePod {
	if s.wanted == 0 {
		return nil // The ReplicaSet deletes all pods anyway.
	}
	var candidates []surgePod
	available, elsewhere, unavailable, misplaced := 0, 0, 0, 0
	for _, pod := range s.pods {
		if pod.available {
			available++
		}
		if pod.replaces() {
			elsewhere++
		}
		if pod.turn != ourTurn && pod.turn != evicting {
			continue
		}
		candidates = append(candidates, pod)
		switch {
		case pod.broken:
		case pod.misplaced:
			misplaced++
		case !pod.available:
			unavailable++
		}
	}
	unavailable -= max(s.wanted-elsewhere, 0)
	spare := max(elsewhere-s.wanted, min(misplaced, available-s.wanted))
	limit := min(len(s.pods)-s.wanted, deploymentutil.MaxLeaving)
	slices.SortFunc(candidates, func(a, b surgePod) int {
		return cmp.Or(compareBool(b.broken, a.broken), compareBool(b.misplaced, a.misplaced), compareBool(a.available, b.available), a.since.Compare(b.since), cmp.Compare(a.uid, b.uid))
	})
	var leaving []surgePod
	for _, pod := range candidates {
		switch {
		case len(leaving) >= limit:
			return leaving
		case pod.broken: // It does not serve, so it needs no available replacement.
		case !pod.misplaced && !pod.available && unavailable > 0:
			unavailable--
		case spare > 0:
			spare--
		default:
			continue
		}
		leaving = append(leaving, pod)
	}
	return leaving
}

// toLeave counts the pods that should leave, from the start of the Deployment's turn. A pod whose
// request was passed on keeps its extra replica, which replaces it when it leaves.
func (s surgeState) toLeave() int {
	count := 0
	for _, pod := range s.pods {
		if pod.turn != notAsked {
			count++
		}
	}
	return count
}

// replaced returns the number of extra replicas that are available.
func (s surgeState) replaced() int {
	available := 0
	for _, pod := range s.pods {
		if pod.replaces() {
			available++
		}
	}
	return min(int(s.recorded.Surge), max(available-s.wanted, 0))
}

// replaces reports whether another pod may leave because of this one.
func (p surgePod) replaces() bool { return p.available && !p.misplaced }

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
