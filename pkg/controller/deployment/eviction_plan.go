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

// brokenAfter is how long a pod must not have been ready to count as broken. A shorter time
// would give up a pod for one missed readiness probe.
const brokenAfter = 30 * time.Second

// turn is how far an eviction request of a pod concerns its Deployment.
type turn int

const (
	// notAsked: no request, or one where it is not the Deployment's turn yet, or canceled.
	notAsked turn = iota
	// ourTurn: the request waits for the Deployment.
	ourTurn
	// passedOn: the Deployment had its turn, and another interceptor works on the pod.
	passedOn
	// evicting: the Deployment had its turn, and all that is left is the eviction. The pod may
	// go at any moment.
	evicting
)

// surgePod is what the surge has to know of a pod that lives: one that neither terminates
// nor has ended.
type surgePod struct {
	uid     types.UID
	created time.Time
	// available is as in the status of the ReplicaSet: ready for spec.minReadySeconds.
	available bool
	// broken is true if the pod has not been ready for brokenAfter.
	broken bool
	turn   turn
	// since is when the Deployment's turn began; zero if it has not had one.
	since time.Time
}

// surgeState is one ReplicaSet as the surge sees it.
type surgeState struct {
	// wanted is how many replicas the Deployment wants, without a surge.
	wanted int
	// room is how many extra replicas there may be.
	room int
	// kept is what is recorded on the ReplicaSet.
	kept deploymentutil.EvictionSurge
	// pods are those that live.
	pods []surgePod
	// coming is how many pods more are about to be created.
	coming int
	// behind is true if the status may count pods that are not there any more, or not yet, and
	// shrinking if it may count more than there are to be.
	behind, shrinking bool
}

// nextSurge returns what should be recorded on a ReplicaSet. It follows from what is there
// alone, so that a second sync, or one after a restart, changes nothing.
//
// There is an extra replica for each pod that is to leave, as far as there is room. Pods
// leave when their replacements are available: spec.replicas falls, and the pods that the
// record names go first.
func nextSurge(now time.Time, s surgeState) deploymentutil.EvictionSurge {
	leaving := s.leaving()
	surge := min(s.toLeave()-len(leaving), s.room, s.wanted)
	if len(leaving) > 0 {
		// So small that all of them go. More extra replicas come when they have gone.
		surge = min(surge, len(s.pods)+s.coming-len(leaving)-s.wanted)
	}
	next := deploymentutil.EvictionSurge{Surge: int32(max(surge, 0)), Since: s.kept.Since}
	for _, pod := range leaving {
		next.Leaving = append(next.Leaving, pod.uid)
	}
	next.Ending = next.Surge < s.kept.Surge || s.kept.Ending && s.shrinking
	begins := next.Surge > 0 && s.kept.Surge == 0 && s.kept.Since.IsZero()
	left := s.left()
	if s.behind {
		// They stay in the record until they are not counted any more, to be removed together
		// with Ending.
		next.Leaving = append(next.Leaving, left[:min(len(left), deploymentutil.MaxLeaving-len(next.Leaving))]...)
		left = nil
	}
	slices.Sort(next.Leaving)
	// Only a pod that has made way is progress: a surge that comes and goes while no pod leaves
	// must end in giving up.
	if begins || len(left) > 0 {
		next.Since = metav1.NewTime(now.Truncate(time.Second))
	}
	return next
}

// left returns the pods that were to make way and have done so.
func (s surgeState) left() []types.UID {
	return slices.DeleteFunc(slices.Clone(s.kept.Leaving), s.isLiving)
}

// stillThere counts the pods that were to make way and live.
func (s surgeState) stillThere() int { return len(s.kept.Leaving) - len(s.left()) }

func (s surgeState) isLiving(uid types.UID) bool {
	return slices.ContainsFunc(s.pods, func(pod surgePod) bool { return pod.uid == uid })
}

// leaving returns the pods that can go now: as many as are available beyond what is wanted,
// and broken ones whose replacements exist. A pod that the Deployment has given up goes as
// well, when its replacement becomes available late; but not while another interceptor works
// on it.
//
// A broken pod that is not asked to leave holds the others up, until the deadline of their
// turns: from the outside it looks like a replacement that is slow to start.
func (s surgeState) leaving() []surgePod {
	if s.wanted == 0 {
		return nil // They go anyway, all of them.
	}
	var candidates []surgePod
	available, broken := 0, 0
	for _, pod := range s.pods {
		if pod.available {
			available++
		}
		if pod.turn != ourTurn && pod.turn != evicting {
			continue
		}
		candidates = append(candidates, pod)
		if pod.broken {
			broken++ // It does not serve.
		}
	}
	spare := max(available-s.wanted, 0)
	count := min(len(candidates), len(s.pods)-s.wanted, broken+spare, deploymentutil.MaxLeaving)
	if count <= 0 {
		return nil
	}
	slices.SortFunc(candidates, func(a, b surgePod) int {
		return cmp.Or(compareBool(b.broken, a.broken), compareBool(a.available, b.available), a.since.Compare(b.since), cmp.Compare(a.uid, b.uid))
	})
	return candidates[:count]
}

// toLeave counts the pods that are to leave, from the Deployment's turn on. One that was
// passed on keeps its extra replica, which takes its place when it goes.
func (s surgeState) toLeave() int {
	count := 0
	for _, pod := range s.pods {
		if pod.turn != notAsked {
			count++
		}
	}
	return count
}

// replaced returns how many of the extra replicas have become available.
func (s surgeState) replaced() int {
	available := 0
	for _, pod := range s.pods {
		if pod.available {
			available++
		}
	}
	return min(int(s.kept.Surge), max(available-s.wanted, 0))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
