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

package returns

import (
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
)

const (
	// returnPause is the time between the first two times that the eviction of pods is requested that come
	// back. It doubles each time up to maxReturnPause, and is as short again after returnMemory
	// without any, which is longer than the longest back-off of a Job, ten minutes.
	returnPause    = 10 * time.Second
	maxReturnPause = 5 * time.Minute
	returnMemory   = 3 * maxReturnPause

	// Settled is how long a node has to be empty before it is drained, if pods may come back to it: who
	// reads that it is drained turns it off. Where some have come back, or the template of their owner names the
	// node, and for pods of Jobs, which are replaced after ten seconds or more, it is LateSettled.
	Settled     = 5 * time.Second
	LateSettled = 30 * time.Second

	// unsettledAfter is after what time pods that come back are a blocker although the node is empty at the moment.
	unsettledAfter = time.Minute

	// BindingDelay is how long after its cordon pods may be bound to a node by a scheduler that does not know
	// of it yet. The first ones of each owner have not come back.
	BindingDelay = 10 * time.Second

	// maxReturnOwners is how many owners of a namespace have a pace of their own on a node: a pod may name
	// any owner.
	maxReturnOwners = 10
)

// Returns has the pods that come back to nodes that are drained: each eviction of such a pod makes its owner
// create another one, at once and for ever. It only delays requests and explains them: after a restart, one
// is made at once again. What a process before knew, it takes from what that has stored: see resume.
type Returns struct {
	lock  sync.Mutex
	nodes map[string]*nodeReturns
	// seen are the nodes whose drain this process has seen, by their UIDs.
	seen map[string]types.UID
	// claims are since when nodes that are drained are claimed, as this process has read it first: what others write
	// into the condition since does not change it.
	claims map[string]nodeClaim
	// owners say whether they create the next pod for the same node.
	owners *OwnerInformers
}

type nodeClaim struct {
	uid   types.UID
	since time.Time
}

// nodeReturns are the pods that come back to one node.
type nodeReturns struct {
	uid    types.UID
	owners map[returnOwner]*ownerReturns
	// held are the pods whose eviction is not requested yet.
	held map[types.UID]Held
	// occupied is whether the node has pods that may come back, or has had some until emptied.
	occupied bool
	emptied  time.Time
	// settled is how long it has to be empty.
	settled time.Duration
	// earlier is since when pods come back, by why they do, as a process before has found, until earlierUntil.
	earlier      map[string]time.Time
	earlierUntil time.Time
}

// returnOwner is whose pods come back. Those without a controller, and those of too many, are of the namespace.
type returnOwner struct {
	namespace string
	uid       types.UID
}

// ownerReturns are the pods of one owner that come back to a node.
type ownerReturns struct {
	// asked are the pods whose eviction may be requested, and last is since when that is so for the last
	// ones; first is when the first one had come back, and rounds how often some have.
	asked       sets.Set[types.UID]
	first, last time.Time
	rounds      int
	// back is whether they have come back indeed: a scheduler that did not know of the cordon has bound the first ones
	// at most.
	back bool
	// pinned is whether the next one can only run on this node as well.
	pinned bool
	// latest is the last one that was seen there, and seen when that was.
	latest *v1.Pod
	seen   time.Time
}

type Held struct {
	Why         string
	Since, Next time.Time
}

// New returns that no pods have come back. owners is nil if they are not known.
func New(owners *OwnerInformers) *Returns {
	return &Returns{nodes: map[string]*nodeReturns{}, seen: map[string]types.UID{}, claims: map[string]nodeClaim{}, owners: owners}
}

// Resume continues what a process before has found on a node, whose drain had begun: if the node is empty, it may
// have become so a moment ago, unless it was drained. earlier returns since when pods come back to the nodes of its
// maintenances, by why they do.
func (r *Returns) Resume(node *v1.Node, empty, drained bool, earlier func() map[string]time.Time, now time.Time) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.seen[node.Name] == node.UID {
		return
	}
	r.seen[node.Name] = node.UID
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if c.Type != v1.NodeDrainInProgress || c.Status != v1.ConditionTrue || !status.OwnReasons.Has(c.Reason) {
			continue
		}
		found := &nodeReturns{
			uid: node.UID, owners: map[returnOwner]*ownerReturns{}, earlier: earlier(), earlierUntil: now.Add(returnMemory),
		}
		switch {
		case !empty:
		case c.Reason == status.ReasonPodsMayComeBack || len(found.earlier) > 0:
			found.emptied, found.settled = now, LateSettled
		case !drained:
			found.emptied, found.settled = now, Settled
		}
		r.nodes[node.Name] = found
	}
}

// begins returns since when the pods of an owner come back, the first of which this process sees now.
func (n *nodeReturns) begins(pod *v1.Pod, now time.Time) time.Time {
	if since, found := n.earlier[maintenance.WhyComesBack(pod)]; found && now.Before(n.earlierUntil) && since.Before(now) {
		return since
	}
	return now
}

// lastSeen returns when a pod of the owner was on the node, or may have left.
func (o *ownerReturns) lastSeen() time.Time {
	if o.seen.After(o.last) {
		return o.seen
	}
	return o.last
}

// isPinned reports whether a pod tolerates the cordon of its node, and its selectors permit no other node.
func isPinned(pod *v1.Pod) bool {
	if maintenance.WhyComesBack(pod) != maintenance.ToleratesCordon {
		return false
	}
	if pod.Spec.NodeSelector[v1.LabelHostname] != "" {
		return true
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil || pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	namesOne := func(r v1.NodeSelectorRequirement) bool {
		return (r.Key == v1.LabelHostname || r.Key == metav1.ObjectNameField) && r.Operator == v1.NodeSelectorOpIn && len(r.Values) == 1
	}
	terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return len(terms) == 1 && (slices.ContainsFunc(terms[0].MatchExpressions, namesOne) || slices.ContainsFunc(terms[0].MatchFields, namesOne))
}

// pause returns the time between the last pods and the next ones.
func (o *ownerReturns) pause() time.Duration {
	pause := returnPause
	for i := 1; i < o.rounds && pause < maxReturnPause; i++ {
		pause = min(2*pause, maxReturnPause)
	}
	return pause
}

// See decides which of the pods on a node that is drained have come back too early. pods are those that are
// to leave it.
func (r *Returns) See(node *v1.Node, pods []*v1.Pod, now time.Time) {
	r.lock.Lock()
	defer r.lock.Unlock()
	found := r.nodes[node.Name]
	if found == nil || found.uid != node.UID {
		found = &nodeReturns{uid: node.UID, owners: map[returnOwner]*ownerReturns{}}
	}
	claimed, returned, occupied := r.claimedSince(node, now), map[returnOwner][]*v1.Pod{}, false
	for _, pod := range pods {
		isBack, named := false, r.owners.nameNodeOf(pod)
		if isCreatedSince(pod, claimed) {
			owner := found.ownerOf(pod)
			returned[owner] = append(returned[owner], pod)
			if found.owners[owner] == nil {
				found.owners[owner] = &ownerReturns{asked: sets.New[types.UID](), first: found.begins(pod, now)}
			}
			state := found.owners[owner]
			if now.Sub(state.lastSeen()) > returnMemory {
				state.rounds = 0
			}
			state.latest, state.seen, state.pinned = pod, now, named || isPinned(pod)
			state.back = state.back || !isLateBinding(pod, claimed) || state.rounds > 0 && !state.asked.Has(pod.UID)
			isBack = state.back
		}
		if isBack || named || maintenance.ComesBack(pod) || leavesGap(pod) {
			occupied = true
			found.settled = max(found.settled, settledAfter(pod, named))
		}
	}
	if found.occupied && !occupied {
		found.emptied = now
		if found.hasReturns() {
			found.settled = LateSettled
		}
	}
	found.occupied = occupied
	found.held = map[types.UID]Held{}
	for owner, state := range found.owners {
		if len(returned[owner]) == 0 && now.Sub(state.lastSeen()) > returnMemory {
			delete(found.owners, owner)
			continue
		}
		found.hold(state, returned[owner], now)
	}
	if now.After(found.earlierUntil) {
		found.earlier = nil
	}
	if !found.occupied && found.emptied.IsZero() && len(found.owners) == 0 && len(found.earlier) == 0 {
		delete(r.nodes, node.Name)
		return
	}
	r.nodes[node.Name] = found
}

// claimedSince returns since when a node that is drained is claimed; zero if its status does not say it yet.
func (r *Returns) claimedSince(node *v1.Node, now time.Time) time.Time {
	known := r.claims[node.Name]
	if known.uid != node.UID || known.since.IsZero() {
		known = nodeClaim{node.UID, maintenance.ClaimedSince(node, now)}
		r.claims[node.Name] = known
	}
	return known.since
}

// hasReturns reports whether pods have come back to the node.
func (n *nodeReturns) hasReturns() bool {
	for _, state := range n.owners {
		if state.back {
			return true
		}
	}
	return false
}

// leavesGap reports whether the owner of a pod may create the next one only when this one is gone, as a StatefulSet
// does: if the template names the node, the node is empty for a moment. Nothing on the pod says whether it does, and
// not every owner is known: see OwnerInformers.
func leavesGap(pod *v1.Pod) bool {
	by := metav1.GetControllerOf(pod)
	if by == nil || maintenance.PodTypeOf(pod) != v1.PodTypeDefault {
		return false
	}
	switch by.Kind {
	case "ReplicaSet", "ReplicationController", "Job":
		return false
	}
	return true
}

// settledAfter returns how long a node has to be empty after this pod. named is whether its template names the node.
func settledAfter(pod *v1.Pod, named bool) time.Duration {
	if by := metav1.GetControllerOf(pod); named || by != nil && by.Kind == "Job" {
		return LateSettled
	}
	return Settled
}

// hold holds the pods of an owner that have come back before their time, and lets all others leave.
func (n *nodeReturns) hold(state *ownerReturns, pods []*v1.Pod, now time.Time) {
	present, waiting := sets.New[types.UID](), 0
	var came time.Time
	for _, pod := range pods {
		present.Insert(pod.UID)
		if !state.asked.Has(pod.UID) {
			waiting++
			if created := pod.CreationTimestamp.Time; came.IsZero() || created.Before(came) {
				came = created
			}
		}
	}
	state.asked = state.asked.Intersection(present)
	if waiting == 0 {
		return
	}
	if now.Before(state.last) { // The clock was set back.
		state.last = now
	}
	next := state.last.Add(state.pause())
	if came.After(next) && !came.After(now) {
		// A Job waits longer each time before it creates the next pod, which would be evicted at once each time, until
		// the backoffLimit is used up.
		next = came.Add(state.pause())
	}
	if state.rounds > 0 && now.Before(next) {
		for _, pod := range pods {
			if !state.asked.Has(pod.UID) {
				n.held[pod.UID] = Held{maintenance.WhyComesBack(pod), state.first.Truncate(time.Second), next}
			}
		}
		return
	}
	state.asked, state.last = present, now
	state.rounds++
}

// ownerOf returns whose pace a pod has.
func (n *nodeReturns) ownerOf(pod *v1.Pod) returnOwner {
	owner, ofNamespace := returnOwner{namespace: pod.Namespace}, 0
	if by := metav1.GetControllerOf(pod); by != nil {
		owner.uid = by.UID
	}
	if n.owners[owner] != nil {
		return owner
	}
	for known := range n.owners {
		if known.namespace == pod.Namespace {
			ofNamespace++
		}
	}
	if ofNamespace >= maxReturnOwners {
		owner.uid = ""
	}
	return owner
}

// isCreatedSince reports whether the pod was created after the node was cordoned for a maintenance.
func isCreatedSince(pod *v1.Pod, claimed time.Time) bool {
	return !claimed.IsZero() && maintenance.PodTypeOf(pod) == v1.PodTypeDefault && pod.CreationTimestamp.After(claimed)
}

// isLateBinding reports whether a scheduler may have bound such a pod that did not know of the cordon yet. Its spec may
// as well name the node.
func isLateBinding(pod *v1.Pod, claimed time.Time) bool {
	return maintenance.WhyComesBack(pod) == maintenance.NamesNode && !pod.CreationTimestamp.After(claimed.Add(BindingDelay))
}

// Held returns why the eviction of a pod is not requested yet, if it has come back.
func (r *Returns) Held(node string, pod types.UID) (Held, bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if found := r.nodes[node]; found != nil {
		held, ok := found.held[pod]
		return held, ok
	}
	return Held{}, false
}

// Settles returns for how long a node without pods is not drained yet, 0 if it is.
func (r *Returns) Settles(node string, now time.Time) time.Duration {
	r.lock.Lock()
	defer r.lock.Unlock()
	found := r.nodes[node]
	if found == nil || found.emptied.IsZero() {
		return 0
	}
	wait := pace.Within(max(0, found.emptied.Add(found.settled).Sub(now)), found.settled)
	for _, state := range found.owners {
		if wait == 0 && r.awaits(state, now) {
			wait = LateSettled // Then it is looked at again.
		}
	}
	return wait
}

// awaits reports whether the next pod of an owner is sure to come back.
func (r *Returns) awaits(state *ownerReturns, now time.Time) bool {
	return state.back && state.pinned && now.Sub(state.seen) <= returnMemory && r.owners.createsMore(state.latest)
}

// Unsettled returns the last pods of those owners whose pods have come back for a while, and keep a node from being
// drained that is empty at the moment: they may go as fast as they come, by themselves.
func (r *Returns) Unsettled(node string, now time.Time) []maintenance.Blocker {
	r.lock.Lock()
	defer r.lock.Unlock()
	found := r.nodes[node]
	if found == nil || found.emptied.IsZero() {
		return nil
	}
	var blockers []maintenance.Blocker
	for _, state := range found.owners {
		if state.back && now.Sub(state.first) >= unsettledAfter && (now.Sub(state.seen) <= found.settled || r.awaits(state, now)) {
			blockers = append(blockers, maintenance.ReturnedPod(state.latest, maintenance.WhyComesBack(state.latest), state.first.Truncate(time.Second), time.Time{}))
		}
	}
	return blockers
}

func (r *Returns) Forget(node string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.nodes, node)
	delete(r.seen, node)
	delete(r.claims, node)
}
