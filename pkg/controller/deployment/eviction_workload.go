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
	"context"
	"fmt"
	"slices"
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"

	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/pkg/controller/util/evictionturn"
)

// defaultProgressDeadline limits how long pods wait for their replacements if the Deployment sets
// no deadline. It is the default of spec.progressDeadlineSeconds.
const defaultProgressDeadline = 10 * time.Minute

const (
	// failureRetryAfter is how soon a failed surge is retried. A webhook or missing permissions
	// rarely change sooner.
	failureRetryAfter = 5 * time.Second

	// retryAfter is how soon the controller checks again what should have completed by itself.
	retryAfter = time.Minute
)

// workload is a Deployment with its ReplicaSets and pods, observed at one moment.
type workload struct {
	deployment *apps.Deployment
	now        time.Time
	unready    *evictionturn.Unready
	sets       []*replicaSet
	// rolling is true if a rollout is about to start, in progress, or paused halfway. There is no
	// surge then: the rollout needs the room, and replaces the pods. Extra replicas become part
	// of it.
	rolling bool
	// incomplete is true while the cache of requests is not complete, or lacks writes of a
	// rollout. Surges can only shrink then.
	incomplete bool
	// uncertain is true while a write whose response was lost may be missing from the cache.
	// Surges can only shrink then, too.
	uncertain bool
	// failure is why the surge could not be updated.
	failure error
	// recheckAt is when to sync again because of the pace of evictions, or zero.
	recheckAt time.Time
}

// recheck has the workload synced again at this time at the latest.
func (w *workload) recheck(at time.Time) {
	if w.recheckAt.IsZero() || at.Before(w.recheckAt) {
		w.recheckAt = at
	}
}

// replicaSet is one ReplicaSet of the workload.
type replicaSet struct {
	surgeState
	// stored is the object from the cache, and view the same object without its surge.
	stored, view *apps.ReplicaSet
	// asked are the pods whose turn is open, including terminating ones.
	asked []askedPod
	// living are the pods that neither terminate nor have finished, in the order of pods.
	living []*v1.Pod
	// hindered is how many more pods have to leave before their replacements can be scheduled.
	hindered int
	// reverted is true if another client has reverted the surge, unrecorded if it has removed only the record: view and
	// surgeState have it nevertheless. pausing is true if that is not restored yet, contested if it happens again and
	// again, and recordOnly if it was the record the last time.
	reverted, unrecorded, pausing, contested, recordOnly bool
}

// askedPod is a pod whose eviction request waits for the Deployment.
type askedPod struct {
	uid         types.UID
	since       time.Time
	terminating bool
	// history is copied from its openTurn. It is zero if there is none.
	history evictionturn.History
}

// observe reads the state of a Deployment from the caches.
func (s *surger) observe(ctx context.Context, now time.Time, d *apps.Deployment, rsList []*apps.ReplicaSet, podMap map[types.UID][]*v1.Pod) *workload {
	w := &workload{deployment: d, now: now, unready: &s.unready}
	beyond := deploymentutil.ReplicasBeyond(d, rsList)
	for _, rs := range rsList {
		written, unrecorded := s.withRecord(d.UID, rs)
		view, recorded, err := deploymentutil.WithoutEvictionSurge(written, beyond)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Ignoring the eviction surge of a replica set", "replicaSet", klog.KObj(rs))
		}
		beyond -= int(recorded.Surge)
		if recorded.Since.After(now) { // From a clock that was ahead. It must not postpone the deadline.
			recorded.Since = metav1.Time{}
		}
		set := &replicaSet{stored: rs, view: view, unrecorded: unrecorded}
		set.recorded, set.wanted = recorded, int(*view.Spec.Replicas)
		for _, pod := range podMap[rs.UID] {
			s.observePod(now, w, set, pod)
		}
		if raw := int(*rs.Spec.Replicas); deploymentutil.CreateFailureOf(rs) == nil {
			set.toCreate = max(raw-len(set.pods), 0)
		}
		old := rs.Status.ObservedGeneration < rs.Generation
		set.behind, set.shrinking = old || int(rs.Status.Replicas) > len(set.pods), old || rs.Status.Replicas > *rs.Spec.Replicas
		slices.SortFunc(set.asked, func(a, b askedPod) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.uid, b.uid)) })
		w.sets = append(w.sets, set)
	}
	// Decided by the stored sizes: a ReplicaSet beside another one has no surge, whatever it
	// records.
	w.rolling = d.DeletionTimestamp == nil && isRolling(d, rsList)
	if w.rolling {
		w.handOver()
	}
	w.scale()
	w.assignRoom()
	s.observeReverts(w)
	s.observeHindered(w)
	return w
}

// handOver leaves all replicas to the rollout, including extra ones. The rollout counts them within
// maxSurge and scales down where it can. If the surge was removed first, the rollout would have to
// wait until the extra pods are gone, or there would be too many pods.
func (w *workload) handOver() {
	for _, set := range w.sets {
		if _, recorded := set.stored.Annotations[deploymentutil.EvictionSurgeAnnotation]; recorded || set.unrecorded {
			set.view = set.stored.DeepCopy()
			delete(set.view.Annotations, deploymentutil.EvictionSurgeAnnotation)
		}
		set.recorded, set.wanted = deploymentutil.EvictionSurge{}, int(*set.view.Spec.Replicas)
	}
}

func (s *surger) observePod(now time.Time, w *workload, set *replicaSet, pod *v1.Pod) {
	observed := surgePod{
		uid:       pod.UID,
		created:   pod.CreationTimestamp.Time,
		available: podutil.IsPodAvailable(pod, set.view.Spec.MinReadySeconds, metav1.NewTime(now)),
		broken:    !w.brokenSince(pod).After(now),
	}
	// The name of a request is the UID of its pod.
	if obj, exists, _ := s.requests.GetByKey(pod.Namespace + "/" + string(pod.UID)); exists {
		request := obj.(*coordinationv1alpha1.EvictionRequest)
		if observed.turn = turnIn(request); observed.turn != notAsked {
			observed.since = evictionturn.Began(request, coordinationv1alpha1.EvictionInterceptorDeployment, now)
			if !evictionrequest.IsWanted(request) && !deploymentutil.PacesEvictions(w.deployment) {
				observed.turn = withdrawn
			}
		}
	}
	if s.isMisplaced(pod, now) {
		s.noteMisplaced(pod.Spec.NodeName, w.deployment.UID)
		observed.misplaced = s.isMisplaced(pod, now) // Its node may have been released before that.
	}
	if observed.turn == ourTurn {
		asked := askedPod{uid: pod.UID, since: observed.since, terminating: pod.DeletionTimestamp != nil}
		s.lock.Lock()
		if m := s.openTurns[pod.UID]; m != nil {
			asked.history = m.history
		}
		s.lock.Unlock()
		set.asked = append(set.asked, asked)
	}
	if controller.IsPodActive(pod) {
		set.pods = append(set.pods, observed)
		set.living = append(set.living, pod)
	}
}

// isMisplaced reports whether a pod came to a node that a maintenance claims. It tolerates the cordon, or names
// the node, or was bound at the same moment.
func (s *surger) isMisplaced(pod *v1.Pod, now time.Time) bool {
	node, err := s.nodeLister.Get(pod.Spec.NodeName)
	if err != nil {
		return false // It is not bound, or its node is gone.
	}
	claimed := maintenance.ClaimedSince(node, now)
	// Both times are in whole seconds. Within the same one, the pod is more likely a replacement than one
	// that was there.
	return !claimed.IsZero() && !pod.CreationTimestamp.Time.Before(claimed)
}

// brokenSince returns from when a pod counts as broken. A pod that is unready but has no failed
// container may be slow to start, and has the progress deadline as its startup time.
func (w *workload) brokenSince(pod *v1.Pod) time.Time {
	notReady, since := w.unready.Since(pod, w.now)
	if !notReady {
		return farFuture
	}
	since = since.Add(evictionturn.BrokenAfter)
	if started := pod.CreationTimestamp.Add(w.progressDeadline()); !hasFailedContainer(pod) && started.After(since) {
		return started
	}
	return since
}

// hasFailedContainer reports whether a container has been restarted or cannot start.
func hasFailedContainer(pod *v1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(container v1.ContainerStatus) bool {
		waiting := container.State.Waiting
		return container.RestartCount > 0 || waiting != nil && !slices.Contains([]string{"", "ContainerCreating", "PodInitializing"}, waiting.Reason)
	})
}

// farFuture is later than any other time, and leaves room to add durations.
var farFuture = time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC)

// isRolling reports whether the Deployment has more than one ReplicaSet with replicas, or is about
// to. A paused Deployment does not start a rollout.
func isRolling(d *apps.Deployment, rsList []*apps.ReplicaSet) bool {
	active := controller.FilterActiveReplicaSets(rsList)
	if len(active) > 1 {
		return true
	}
	if d.Spec.Paused {
		return false
	}
	current := deploymentutil.FindNewReplicaSet(d, slices.Clone(rsList))
	return current == nil || len(active) == 1 && active[0].UID != current.UID
}

// assignRoom sets the number of extra replicas that each ReplicaSet may have, so that the total
// stays within maxSurge.
func (w *workload) assignRoom() {
	total := 0
	for _, set := range w.sets {
		total += set.wanted
	}
	replicas := int(*w.deployment.Spec.Replicas)
	room := max(w.maxSurge()-max(total-replicas, 0), 0)
	for _, set := range w.sets {
		// If the Deployment is not rolling, only one ReplicaSet has replicas.
		if !w.rolling && set.wanted > 0 && w.deployment.DeletionTimestamp == nil {
			set.room = room
		}
	}
}

// scale sets the wanted size of a ReplicaSet with a surge, or about to have one, to the size of the
// Deployment, as the rest of the sync would do next. Otherwise the sync would first remove a surge
// that is no longer needed, and with it pods that are wanted a moment later.
func (w *workload) scale() {
	if w.deployment.DeletionTimestamp != nil {
		return // A Deployment that is being deleted is not scaled.
	}
	for _, set := range w.sets {
		if !w.rolling && set.wanted > 0 && (set.recorded.Of > 0 || set.toLeave() > 0) {
			set.wanted = int(*w.deployment.Spec.Replicas)
		}
	}
}

func (w *workload) maxSurge() int {
	return int(deploymentutil.MaxSurge(*w.deployment))
}

func (w *workload) views() []*apps.ReplicaSet {
	views := make([]*apps.ReplicaSet, 0, len(w.sets))
	for _, set := range w.sets {
		views = append(views, set.view)
	}
	return views
}

// hasSurge reports whether any ReplicaSet has a recorded surge.
func (w *workload) hasSurge() bool {
	return slices.ContainsFunc(w.sets, func(set *replicaSet) bool { return set.recorded.Of > 0 })
}

// hasExtra reports whether any ReplicaSet has extra replicas.
func (w *workload) hasExtra() bool {
	return slices.ContainsFunc(w.sets, func(set *replicaSet) bool { return set.recorded.Surge > 0 })
}

// isAsked reports whether a pod of any ReplicaSet waits for the Deployment.
func (w *workload) isAsked() bool {
	return slices.ContainsFunc(w.sets, func(set *replicaSet) bool { return len(set.asked) > 0 })
}

// progress sums up the progress of all ReplicaSets.
func (w *workload) progress() progress {
	p := progress{paced: deploymentutil.PacesEvictions(w.deployment)}
	for _, set := range w.sets {
		p.surge += set.surging()
		p.replaced += set.availableReplacements()
		for _, asked := range set.asked {
			if !asked.terminating {
				p.asked++
			}
		}
	}
	return p
}

// next returns the surge to record on a ReplicaSet.
func (w *workload) next(set *replicaSet) deploymentutil.EvictionSurge {
	switch {
	case w.rolling, set.wanted == 0:
		return deploymentutil.EvictionSurge{}
	case w.incomplete, w.uncertain, set.pausing && set.reverted:
		next := set.recorded
		next.Surge = int32(min(int(next.Surge), set.room, set.wanted))
		next.Ending = next.Surge < set.recorded.Surge || next.Ending
		return next
	}
	next := nextSurge(w.now, set.surgeState)
	if w.deployment.DeletionTimestamp != nil {
		next.Ending = false // Its status is no longer used.
	}
	return next
}

// target returns the ReplicaSet with its wanted size and the surge.
func (w *workload) target(set *replicaSet, next deploymentutil.EvictionSurge) *apps.ReplicaSet {
	rs := set.view.DeepCopy()
	*rs.Spec.Replicas = int32(set.wanted)
	if replicas := *w.deployment.Spec.Replicas; *rs.Spec.Replicas == replicas {
		// A ReplicaSet that already has this size without its surge is never scaled by the rest of
		// the sync. Without these annotations, it would always appear to need scaling.
		deploymentutil.SetReplicasAnnotations(rs, replicas, replicas+int32(w.maxSurge()))
	}
	deploymentutil.SetEvictionSurge(rs, next)
	return rs
}

// isAtRest reports whether there is nothing to write. It avoids a copy: most ReplicaSets have no
// surge and need none.
func (set *replicaSet) isAtRest(next deploymentutil.EvictionSurge) bool {
	_, recorded := set.stored.Annotations[deploymentutil.EvictionSurgeAnnotation]
	return !recorded && next.IsEmpty() && int(*set.stored.Spec.Replicas) == set.wanted
}

// isUpToDate reports whether a ReplicaSet has the size and the record of its target.
func isUpToDate(stored, target *apps.ReplicaSet) bool {
	const key = deploymentutil.EvictionSurgeAnnotation
	value, recorded := stored.Annotations[key]
	wanted, wants := target.Annotations[key]
	return *stored.Spec.Replicas == *target.Spec.Replicas && recorded == wants && value == wanted
}

// isPaced reports whether the target restores nothing but a record, which is too early: no pod waits for that.
func (set *replicaSet) isPaced(target *apps.ReplicaSet) bool {
	return set.pausing && set.unrecorded && *target.Spec.Replicas == *set.stored.Spec.Replicas
}

// surging counts the replacements that should exist, including those of pods that leave now.
func (set *replicaSet) surging() int {
	return int(set.recorded.Surge) + set.stillLiving()
}

// availableReplacements counts the replacements that are available.
func (set *replicaSet) availableReplacements() int {
	return set.replaced() + set.stillLiving()
}

// turnDeadline returns when the turn of a pod times out. Progress postpones it: a pod that has left
// before, or the rollout that the pods wait for. Outages of the controller postpone it as well:
// then eta is the deadline, and otherwise zero.
func (w *workload) turnDeadline(set *replicaSet, asked askedPod) (deadline, eta time.Time) {
	timeout := w.progressDeadline()
	since, eta := asked.history.WaitsSince(w.lastProgress(set, asked), timeout)
	return since.Add(timeout), eta
}

// lastProgress returns when the turn of a pod began, or the last progress that the pod waited for.
func (w *workload) lastProgress(set *replicaSet, asked askedPod) time.Time {
	base := asked.since
	if set.recorded.Since.After(base) {
		base = set.recorded.Since.Time
	}
	if w.rolling {
		if progressing := deploymentutil.GetDeploymentCondition(w.deployment.Status, apps.DeploymentProgressing); progressing != nil && progressing.LastUpdateTime.After(base) && !progressing.LastUpdateTime.After(w.now) {
			base = progressing.LastUpdateTime.Time
		}
	}
	return base
}

func (w *workload) progressDeadline() time.Duration {
	if !deploymentutil.HasProgressDeadline(w.deployment) {
		return defaultProgressDeadline
	}
	return time.Duration(*w.deployment.Spec.ProgressDeadlineSeconds) * time.Second
}

// requeueAfter returns when to sync again for changes that cause no event, or 0.
func (w *workload) requeueAfter(now time.Time) time.Duration {
	next := farFuture
	if w.failure != nil {
		next = now.Add(failureRetryAfter)
	}
	if w.incomplete {
		if w.hasSurge() || w.isAsked() {
			return time.Second
		}
		return 0
	}
	if w.uncertain && (w.hasSurge() || w.isAsked()) {
		next = earlier(next, now.Add(failureRetryAfter))
	}
	if w.recheckAt.After(now) {
		next = earlier(next, w.recheckAt)
	}
	for _, set := range w.sets {
		if len(set.asked) == 0 && set.toLeave() == 0 {
			continue
		}
		for _, asked := range set.asked {
			deadline, _ := w.turnDeadline(set, asked)
			if !deadline.After(now) { // The result is being reported.
				deadline = now.Add(retryAfter)
			}
			next = earlier(next, deadline)
		}
		for _, pod := range set.living {
			if broken := w.brokenSince(pod); broken.After(now) {
				next = earlier(next, broken)
			}
			if ready := podutil.GetPodReadyCondition(pod.Status); podutil.IsPodReady(pod) {
				if available := ready.LastTransitionTime.Add(time.Duration(set.view.Spec.MinReadySeconds) * time.Second); available.After(now) {
					next = earlier(next, available)
				}
			}
		}
	}
	if next.Equal(farFuture) {
		return 0
	}
	// Add a second, because times in objects have a resolution of one second.
	return max(next.Sub(now), 0) + time.Second
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// replacements returns the pods without an eviction request that replace no other pod yet, newest first. The pods to
// be evicted wait for these.
func (set *replicaSet) replacements() []*v1.Pod {
	return set.notReplacing(func(pod surgePod) bool { return pod.turn == notAsked })
}

// notReplacing returns those of the pods that replace no other pod yet, newest first.
func (set *replicaSet) notReplacing(isOne func(surgePod) bool) []*v1.Pod {
	var found []*v1.Pod
	for i, pod := range set.pods {
		if !pod.replaces() && isOne(pod) {
			found = append(found, set.living[i])
		}
	}
	slices.SortFunc(found, func(a, b *v1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// isMisplaced reports whether a living pod is misplaced.
func (set *replicaSet) isMisplaced(living *v1.Pod) bool {
	return slices.ContainsFunc(set.pods, func(pod surgePod) bool { return pod.uid == living.UID && pod.misplaced })
}

func (w *workload) String() string {
	return fmt.Sprintf("Deployment %s", w.deployment.Name)
}
