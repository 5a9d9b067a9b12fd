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
	"k8s.io/klog/v2"

	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

// defaultProgressDeadline bounds how long pods wait for their replacements where the
// Deployment says nothing. It is the default of spec.progressDeadlineSeconds.
const defaultProgressDeadline = 10 * time.Minute

const (
	// failureRetryAfter is how soon a surge is tried again that was refused. What refuses it,
	// such as a webhook or missing rights, rarely changes its mind at once.
	failureRetryAfter = 5 * time.Second

	// retryAfter is how soon is looked again at what should have come to its end by itself.
	retryAfter = time.Minute

	// aliveAfterBeat is for how long a process counts as running after its last heartbeat. It is
	// the least time between two of them: if that did not count, processes that end before their
	// second one, again and again, would never give up.
	aliveAfterBeat = time.Minute
)

// workload is a Deployment as the surge sees it, at one moment.
type workload struct {
	deployment *apps.Deployment
	now        time.Time
	sets       []*replicaSet
	// rolling is true if the Deployment is about to replace its pods, or does so, also where it
	// is paused in between. There is no surge then: the rollout needs the room for itself, and
	// moves the pods. What was extra becomes part of it.
	rolling bool
	// blind is true while not all requests are known, or not all that a rollout has written.
	// Surges only become smaller then.
	blind bool
	// doubtful is true while nobody knows whether something has been written that the cache does
	// not have. Surges only become smaller then, too.
	doubtful bool
	// failure is why the surge could not be brought up to date.
	failure error
}

// replicaSet is one ReplicaSet of it.
type replicaSet struct {
	surgeState
	// stored is the object as the API server has it, view the same without its surge.
	stored, view *apps.ReplicaSet
	// asked are the pods whose turn it is, including those that terminate.
	asked []askedPod
	// living are the pods that neither terminate nor have ended.
	living []*v1.Pod
}

// askedPod is a pod whose eviction request waits for the Deployment.
type askedPod struct {
	uid         types.UID
	since       time.Time
	terminating bool
	// taken, beat and eta are as in its move. They are zero while there is none.
	taken, beat, eta time.Time
}

// waitsSince moves the time from when a deadline counts ahead by all the time in which no process
// ran: nobody was there to bring up a replacement. The ETA has what earlier processes found, and
// what lies between the last of them and this one comes on top.
func (a askedPod) waitsSince(base time.Time, patience time.Duration) time.Time {
	if !base.Before(a.taken) {
		return base
	}
	alive := a.beat.Add(aliveAfterBeat)
	since := base
	// The deadline may have become shorter, so that the ETA says too much.
	if waited := earlier(a.eta.Add(-patience), alive); waited.After(since) {
		since = waited
	}
	last := since
	if alive.After(last) {
		last = alive
	}
	return since.Add(max(a.taken.Sub(last), 0))
}

// observe reads what there is to know, all of it from caches.
func (s *surger) observe(ctx context.Context, now time.Time, d *apps.Deployment, rsList []*apps.ReplicaSet, podMap map[types.UID][]*v1.Pod) *workload {
	w := &workload{deployment: d, now: now}
	beyond := deploymentutil.ReplicasBeyond(d, rsList)
	for _, rs := range rsList {
		view, kept, err := deploymentutil.WithoutEvictionSurge(rs, beyond)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Taking the surge of a replica set for none", "replicaSet", klog.KObj(rs))
		}
		beyond -= int(kept.Surge)
		if kept.Since.After(now) { // A clock was ahead. It must not put off the deadline.
			kept.Since = metav1.Time{}
		}
		set := &replicaSet{stored: rs, view: view}
		set.kept, set.wanted = kept, int(*view.Spec.Replicas)
		for _, pod := range podMap[rs.UID] {
			s.observePod(now, w, set, pod)
		}
		if raw := int(*rs.Spec.Replicas); deploymentutil.CreateFailureOf(rs) == nil {
			set.coming = max(raw-len(set.pods), 0)
		}
		old := rs.Status.ObservedGeneration < rs.Generation
		set.behind, set.shrinking = old || int(rs.Status.Replicas) > len(set.pods), old || rs.Status.Replicas > *rs.Spec.Replicas
		slices.SortFunc(set.asked, func(a, b askedPod) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.uid, b.uid)) })
		w.sets = append(w.sets, set)
	}
	// By what is stored: a ReplicaSet beside another one has no surge, whatever it says.
	w.rolling = d.DeletionTimestamp == nil && isRolling(d, rsList)
	if w.rolling {
		w.handOver()
	}
	w.scale()
	w.assignRoom()
	return w
}

// handOver leaves all replicas to the rollout, those that were extra too: it counts them
// within maxSurge, and takes them from where it can do without. Were they taken back here, it
// would have to wait until their pods have gone, or there would be too many.
func (w *workload) handOver() {
	for _, set := range w.sets {
		if _, recorded := set.stored.Annotations[deploymentutil.EvictionSurgeAnnotation]; recorded {
			set.view = set.stored.DeepCopy()
			delete(set.view.Annotations, deploymentutil.EvictionSurgeAnnotation)
		}
		set.kept, set.wanted = deploymentutil.EvictionSurge{}, int(*set.view.Spec.Replicas)
	}
}

func (s *surger) observePod(now time.Time, w *workload, set *replicaSet, pod *v1.Pod) {
	observed := surgePod{
		uid:       pod.UID,
		created:   pod.CreationTimestamp.Time,
		available: podutil.IsPodAvailable(pod, set.view.Spec.MinReadySeconds, metav1.NewTime(now)),
		broken:    !brokenSince(pod, w.progressDeadline()).After(now),
	}
	// The name of a request is the UID of its pod.
	if obj, exists, _ := s.requests.GetByKey(pod.Namespace + "/" + string(pod.UID)); exists {
		request := obj.(*coordinationv1alpha1.EvictionRequest)
		if observed.turn = turnIn(request); observed.turn != notAsked {
			observed.since = turnBegan(request, now)
		}
	}
	if observed.turn == ourTurn {
		asked := askedPod{uid: pod.UID, since: observed.since, terminating: pod.DeletionTimestamp != nil}
		s.lock.Lock()
		if m := s.moves[pod.UID]; m != nil {
			asked.taken, asked.beat, asked.eta = m.taken, m.beat, m.eta
		}
		s.lock.Unlock()
		set.asked = append(set.asked, asked)
	}
	if controller.IsPodActive(pod) {
		set.pods = append(set.pods, observed)
		set.living = append(set.living, pod)
	}
}

// brokenSince returns from when on a pod counts as broken. One that has no trouble but that it
// is not ready may be slow to start, and has the time that its Deployment gives.
func brokenSince(pod *v1.Pod, startup time.Duration) time.Time {
	since := notReadySince(pod)
	if since.Equal(farAway) {
		return farAway
	}
	since = since.Add(brokenAfter)
	if started := pod.CreationTimestamp.Add(startup); !inTrouble(pod) && started.After(since) {
		return started
	}
	return since
}

// inTrouble tells whether a container has ended or cannot be started.
func inTrouble(pod *v1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(container v1.ContainerStatus) bool {
		waiting := container.State.Waiting
		return container.RestartCount > 0 || waiting != nil && !slices.Contains([]string{"", "ContainerCreating", "PodInitializing"}, waiting.Reason)
	})
}

// notReadySince returns when a pod was ready last, or was created if it never was. It
// returns the distant future for a pod that is ready.
func notReadySince(pod *v1.Pod) time.Time {
	if podutil.IsPodReady(pod) {
		return farAway
	}
	if ready := podutil.GetPodReadyCondition(pod.Status); ready != nil && ready.LastTransitionTime.After(pod.CreationTimestamp.Time) {
		return ready.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

// farAway is later than all else, and stays so when something is added to it.
var farAway = time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC)

// isRolling reports whether the Deployment has more than one ReplicaSet with replicas, or is
// about to. A paused one does not begin anything.
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

// assignRoom says how many extra replicas each ReplicaSet may have: together with what the
// Deployment wants, not more than its strategy allows.
func (w *workload) assignRoom() {
	total := 0
	for _, set := range w.sets {
		total += set.wanted
	}
	replicas := int(*w.deployment.Spec.Replicas)
	room := max(w.maxSurge()-max(total-replicas, 0), 0)
	for _, set := range w.sets {
		// Only one has replicas, if it is not rolling.
		if !w.rolling && set.wanted > 0 && w.deployment.DeletionTimestamp == nil {
			set.room = room
		}
	}
}

// scale lets a ReplicaSet with a surge, or about to have one, have the replicas that the
// Deployment wants by now, which the sync would give it next. Otherwise a surge that is not
// needed any more would be taken back first, from pods that are wanted again a moment later.
func (w *workload) scale() {
	if w.deployment.DeletionTimestamp != nil {
		return // It is not scaled any more.
	}
	for _, set := range w.sets {
		if !w.rolling && set.wanted > 0 && (set.kept.Of > 0 || set.toLeave() > 0) {
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

// hasSurge tells whether any ReplicaSet has a record of one.
func (w *workload) hasSurge() bool {
	return slices.ContainsFunc(w.sets, func(set *replicaSet) bool { return set.kept.Of > 0 })
}

// hasExtra tells whether any ReplicaSet has replicas that are extra.
func (w *workload) hasExtra() bool {
	return slices.ContainsFunc(w.sets, func(set *replicaSet) bool { return set.kept.Surge > 0 })
}

// isAsked tells whether a pod of any ReplicaSet waits for the Deployment.
func (w *workload) isAsked() bool {
	return slices.ContainsFunc(w.sets, func(set *replicaSet) bool { return len(set.asked) > 0 })
}

// progress sums up all ReplicaSets.
func (w *workload) progress() progress {
	var p progress
	for _, set := range w.sets {
		p.surge += set.surging()
		p.replaced += set.moved()
		for _, asked := range set.asked {
			if !asked.terminating {
				p.asked++
			}
		}
	}
	return p
}

// next returns what should be recorded on a ReplicaSet.
func (w *workload) next(set *replicaSet) deploymentutil.EvictionSurge {
	switch {
	case w.rolling, set.wanted == 0:
		return deploymentutil.EvictionSurge{}
	case w.blind, w.doubtful:
		next := set.kept
		next.Surge = int32(min(int(next.Surge), set.room, set.wanted))
		next.Ending = next.Surge < set.kept.Surge || next.Ending
		return next
	}
	next := nextSurge(w.now, set.surgeState)
	if w.deployment.DeletionTimestamp != nil {
		next.Ending = false // Its counters do not matter any more.
	}
	return next
}

// target returns the ReplicaSet as it should be, with this surge recorded.
func (w *workload) target(set *replicaSet, next deploymentutil.EvictionSurge) *apps.ReplicaSet {
	rs := set.view.DeepCopy()
	*rs.Spec.Replicas = int32(set.wanted)
	if replicas := *w.deployment.Spec.Replicas; *rs.Spec.Replicas == replicas {
		// A ReplicaSet that has the right size by accident is never scaled, and so would
		// look for ever as if that was still to be done.
		deploymentutil.SetReplicasAnnotations(rs, replicas, replicas+int32(w.maxSurge()))
	}
	deploymentutil.SetEvictionSurge(rs, next)
	return rs
}

// isAtRest reports whether there is nothing to write, without making a copy: most ReplicaSets
// have no surge, and are to have none.
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

// surging counts the replacements that there are to be, with those whose pods leave now.
func (set *replicaSet) surging() int {
	return int(set.kept.Surge) + set.stillThere()
}

// moved counts those of them that are available.
func (set *replicaSet) moved() int {
	return set.replaced() + set.stillThere()
}

// turnDeadline is when a pod has waited for long enough. Whatever gets on postpones it: an
// earlier pod that was moved, or the rollout that comes first. So do outages.
func (w *workload) turnDeadline(set *replicaSet, asked askedPod) time.Time {
	patience := w.progressDeadline()
	return asked.waitsSince(w.lastProgress(set, asked), patience).Add(patience)
}

// etaAfterOutage returns the deadline of a turn where outages have postponed it, and else zero.
// As the ETA of the turn it tells the next process.
func (w *workload) etaAfterOutage(set *replicaSet, asked askedPod) time.Time {
	if asked.beat.IsZero() {
		return time.Time{} // No earlier process had the turn.
	}
	deadline := w.turnDeadline(set, asked)
	if deadline.Equal(w.lastProgress(set, asked).Add(w.progressDeadline())) {
		return time.Time{}
	}
	return deadline
}

// lastProgress is when the turn of a pod began, or when something got on that it waits for.
func (w *workload) lastProgress(set *replicaSet, asked askedPod) time.Time {
	base := asked.since
	if set.kept.Since.After(base) {
		base = set.kept.Since.Time
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

// nextLook returns after how long something may have changed that causes no event, or 0.
func (w *workload) nextLook(now time.Time) time.Duration {
	next := farAway
	if w.failure != nil {
		next = now.Add(failureRetryAfter)
	}
	if w.blind {
		if w.hasSurge() || w.isAsked() {
			return time.Second
		}
		return 0
	}
	if w.doubtful && (w.hasSurge() || w.isAsked()) {
		next = earlier(next, now.Add(failureRetryAfter))
	}
	for _, set := range w.sets {
		if len(set.asked) == 0 && set.toLeave() == 0 {
			continue
		}
		for _, asked := range set.asked {
			deadline := w.turnDeadline(set, asked)
			if !deadline.After(now) { // The verdict waits to be delivered.
				deadline = now.Add(retryAfter)
			}
			next = earlier(next, deadline)
		}
		for _, pod := range set.living {
			if broken := brokenSince(pod, w.progressDeadline()); broken.After(now) {
				next = earlier(next, broken)
			}
			if ready := podutil.GetPodReadyCondition(pod.Status); podutil.IsPodReady(pod) {
				if available := ready.LastTransitionTime.Add(time.Duration(set.view.Spec.MinReadySeconds) * time.Second); available.After(now) {
					next = earlier(next, available)
				}
			}
		}
	}
	if next.Equal(farAway) {
		return 0
	}
	// A second later, because times in objects have no fractions of one.
	return max(next.Sub(now), 0) + time.Second
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// replacements returns the pods that are not asked to leave and not available, the newest
// first: those that everybody waits for.
func (set *replicaSet) replacements() []*v1.Pod {
	var waitedFor []*v1.Pod
	for i, pod := range set.pods {
		if pod.turn == notAsked && !pod.available {
			waitedFor = append(waitedFor, set.living[i])
		}
	}
	slices.SortFunc(waitedFor, func(a, b *v1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return waitedFor
}

func (w *workload) String() string {
	return fmt.Sprintf("Deployment %s", w.deployment.Name)
}
