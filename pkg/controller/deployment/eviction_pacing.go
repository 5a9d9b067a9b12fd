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
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/klog/v2"

	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/deployment/metrics"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/pkg/controller/util/evictionpacing"
	"k8s.io/kubernetes/pkg/controller/util/evictionturn"
	"k8s.io/kubernetes/pkg/controller/util/tombstone"
)

// A Deployment whose maxSurge is 0 cannot start replacements first. It lets its pods leave as in a rollout: at most
// as many are unavailable at a time as its only budget permits, or as maxUnavailable says. The rule is that of
// StatefulSets (evictionpacing); here are the pods and requests of a Deployment.

// release is a pod whose turn was ended here because it may leave.
type release struct {
	request types.UID
	result  turnResult
	at      time.Time
	// broken is true if the pod was broken then: no other pod waits for what comes in its place. unavailable is true if
	// it waited for no available one because it was not available itself.
	broken, unavailable bool
}

// releases are the pods that a process has released, by UID: those whose requests in the cache do not show it yet, and
// broken ones as long as their requests exist. A new process takes no released pod for a broken one.
type releases map[types.UID]*release

// departures is what the requests say about the pods that a Deployment has released.
type departures struct {
	// progress is when a pod was last released or evicted.
	progress time.Time
	// healthy are those that are gone and were not broken, and since is when the first of them was released. broken
	// are the others that are gone.
	healthy, broken int
	since           time.Time
}

// pace adds the results of the open turns of a Deployment that lets its pods leave one after another.
func (s *surger) pace(now time.Time, w *workload, results map[types.UID]turnResult) {
	s.lock.Lock()
	defer s.lock.Unlock()
	known := s.confirm(w)
	if !w.isAsked() {
		return // As in nearly all syncs.
	}
	left := s.departuresOf(now, w, known)
	members, missing := w.members(known, s.hasLeft, left)
	left.assign(members)
	plan := evictionpacing.PlanEvictions(evictionpacing.LimitOf(w.living(), s.budgets, int(deploymentutil.MaxUnavailable(*w.deployment))), members, missing)
	for _, member := range plan.Next {
		result := turnResult{paced: true, outcome: metrics.Released, message: fmt.Sprintf("Released: %s allows the eviction of the pod.", w)}
		if member.Broken {
			result.message = fmt.Sprintf("Released: the pod has not been ready for %v, so it waits for no other pod of %s.", evictionturn.BrokenAfter, w)
		}
		s.release(w, member, result, now)
	}
	waiting := map[types.UID]*evictionpacing.Member{}
	for _, member := range plan.Waiting {
		waiting[member.Pod.UID] = member
	}
	progress := left.progress
	for _, set := range w.sets {
		for _, asked := range set.asked {
			if known := s.releases[w.deployment.UID][asked.uid]; known != nil {
				results[asked.uid] = known.result
				continue
			}
			member := waiting[asked.uid]
			if asked.terminating || member == nil {
				results[asked.uid] = turnResult{outcome: metrics.Completed, message: "The pod is terminating."}
				continue
			}
			result := turnResult{message: plan.WaitingFor(w.String(), int(*w.deployment.Spec.Replicas), member, w.createFailure())}
			since, eta := asked.history.WaitsSince(laterOf(asked.since, progress), w.progressDeadline())
			result.eta = eta
			if deadline := since.Add(w.progressDeadline()); !deadline.After(now) {
				result = turnResult{paced: true, outcome: metrics.GivenUp, message: fmt.Sprintf("Gave up after %v without progress. %s", w.progressDeadline(), result.message)}
				s.release(w, member, result, now)
				// One pod at a time: this is progress for the others, which wait again.
				progress = now
			} else {
				w.recheck(deadline)
			}
			results[asked.uid] = result
		}
	}
	w.recheckBroken(now)
}

// confirm forgets the releases that the cache shows, and returns the others. The caller holds the lock.
func (s *surger) confirm(w *workload) releases {
	known := s.releases[w.deployment.UID]
	known.noteRecovered(w)
	for uid, release := range known {
		obj, exists, _ := s.requests.GetByKey(w.deployment.Namespace + "/" + string(uid))
		request, _ := obj.(*coordinationv1alpha1.EvictionRequest)
		switch {
		case !exists || request.UID != release.request:
			delete(known, uid)
		case evictionrequest.StateOf(request) == evictionrequest.StateCanceled:
			delete(known, uid)
		case turnIn(request) != ourTurn && !release.broken:
			delete(known, uid)
		}
	}
	if len(known) == 0 {
		delete(s.releases, w.deployment.UID)
	}
	return known
}

// noteRecovered notes which pods were broken when they were released, and are available before they are evicted: from
// now on, the Deployment has one pod less when they leave.
func (known releases) noteRecovered(w *workload) {
	if len(known) == 0 {
		return
	}
	for _, set := range w.sets {
		for _, pod := range set.pods {
			if release := known[pod.uid]; release != nil && pod.available {
				release.broken = false
			}
		}
	}
}

// release ends the turn of a pod. The caller holds the lock.
func (s *surger) release(w *workload, member *evictionpacing.Member, result turnResult, now time.Time) {
	obj, exists, _ := s.requests.GetByKey(w.deployment.Namespace + "/" + string(member.Pod.UID))
	if !exists {
		return // It was deleted a moment ago.
	}
	if s.releases[w.deployment.UID] == nil {
		s.releases[w.deployment.UID] = releases{}
	}
	s.releases[w.deployment.UID][member.Pod.UID] = &release{
		request: obj.(*coordinationv1alpha1.EvictionRequest).UID, result: result, at: now, broken: member.Broken,
		unavailable: !member.Available && result.outcome == metrics.Released,
	}
}

// hasLeft reports whether the request of a pod says that it is evicted. The cache of pods may be behind.
func (s *surger) hasLeft(pod *v1.Pod) bool {
	obj, exists, _ := s.requests.GetByKey(pod.Namespace + "/" + string(pod.UID))
	return exists && evictionrequest.StateOf(obj.(*coordinationv1alpha1.EvictionRequest)) == evictionrequest.StateEvicted
}

// members returns the pods of all ReplicaSets, those that have waited longest last, and as many missing ones as may
// replace pods that have left. It also returns how many others are missing: who writes spec.replicas must not decide how
// much memory that takes.
func (w *workload) members(known releases, hasLeft func(*v1.Pod) bool, left departures) (members []*evictionpacing.Member, missing int) {
	since := map[*evictionpacing.Member]time.Time{}
	for _, set := range w.sets {
		for i, pod := range set.pods {
			member := &evictionpacing.Member{
				Name: set.living[i].Name, Pod: set.living[i], Stage: stageOf(pod.turn), Available: pod.available,
				Broken: w.unready.IsBroken(set.living[i], w.now), Started: evictionturn.HasBeenReady(set.living[i]),
			}
			if release := known[pod.uid]; release != nil {
				member.Stage, member.WasBroken = evictionpacing.Released, release.broken
			} else if hasLeft(set.living[i]) {
				member.Stage = evictionpacing.Released
			}
			since[member] = pod.since
			members = append(members, member)
		}
	}
	slices.SortFunc(members, func(a, b *evictionpacing.Member) int {
		return cmp.Or(since[b].Compare(since[a]), cmp.Compare(b.Name, a.Name))
	})
	for i := range members {
		members[i].Order = i
	}
	missing = max(int(*w.deployment.Spec.Replicas)-len(members), 0)
	for range min(missing, left.healthy+left.broken) {
		members = append(members, &evictionpacing.Member{})
		missing--
	}
	return members, missing
}

// createFailure returns why a ReplicaSet cannot create pods, or "".
func (w *workload) createFailure() string {
	for _, set := range w.sets {
		if failure := deploymentutil.CreateFailureOf(set.stored); failure != nil && len(set.living) < set.wanted {
			return failure.Message
		}
	}
	return ""
}

func stageOf(turn turn) evictionpacing.Stage {
	switch turn {
	case ourTurn:
		return evictionpacing.Asked
	case passedOn, evicting:
		return evictionpacing.Released
	}
	return evictionpacing.Stays
}

// living returns the living pods of all ReplicaSets.
func (w *workload) living() []*v1.Pod {
	var living []*v1.Pod
	for _, set := range w.sets {
		living = append(living, set.living...)
	}
	return living
}

// departuresOf reads from the requests which pods have left. Their labels are those of the pods: nothing else says
// to which Deployment a pod has belonged. The caller holds the lock.
func (s *surger) departuresOf(now time.Time, w *workload, known releases) departures {
	var left departures
	progressed := func(at time.Time) {
		// Times in the future come from another clock.
		if !at.After(now) {
			left.progress = laterOf(left.progress, at)
		}
	}
	for _, release := range known {
		progressed(release.at)
	}
	selector, err := metav1.LabelSelectorAsSelector(w.deployment.Spec.Selector)
	if err != nil {
		return left // The API server rejects it.
	}
	living := map[types.UID]bool{}
	for _, pod := range w.living() {
		living[pod.UID] = true
	}
	requests, err := s.requests.ByIndex(cache.NamespaceIndex, w.deployment.Namespace)
	if err != nil {
		return left // All informers have this index.
	}
	for _, obj := range requests {
		request := obj.(*coordinationv1alpha1.EvictionRequest)
		if !selector.Matches(labels.Set(request.Labels)) || !isReleased(request) {
			continue
		}
		released := ownCompletion(request)
		if released != nil {
			progressed(*released)
		}
		if evicted := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionEvicted)); evicted != nil && evicted.Status == metav1.ConditionTrue {
			progressed(evicted.LastTransitionTime.Time)
		}
		switch uid := types.UID(request.Name); {
		case living[uid] || released == nil:
		case known[uid] != nil && known[uid].broken:
			left.broken++
		default:
			if left.healthy == 0 || released.Before(left.since) {
				left.since = *released
			}
			left.healthy++
		}
	}
	return left
}

// isReleased reports whether the Deployment has ended its turn for a pod that was to leave, and the request was not
// canceled.
func isReleased(request *coordinationv1alpha1.EvictionRequest) bool {
	return ownCompletion(request) != nil && evictionrequest.StateOf(request) != evictionrequest.StateCanceled
}

// ownCompletion returns the completion time of the turn of the Deployment, or nil.
func ownCompletion(request *coordinationv1alpha1.EvictionRequest) *time.Time {
	if entry := evictionrequest.InterceptorStatusOf(&request.Status, coordinationv1alpha1.EvictionInterceptorDeployment); entry != nil && entry.CompletionTime != nil {
		return &entry.CompletionTime.Time
	}
	return nil
}

// assign says which members replace pods that have left: those that have never been ready and came later, the youngest
// ones first, and missing ones. Which pod replaces which, nothing says, but as many do as have left.
func (d departures) assign(members []*evictionpacing.Member) {
	var replacements []*evictionpacing.Member
	for _, member := range members {
		isNew := member.Pod == nil || !member.Started && !member.Available && !member.Pod.CreationTimestamp.Time.Before(d.since.Truncate(time.Second))
		if isNew && member.Stage != evictionpacing.Released {
			replacements = append(replacements, member)
		}
	}
	slices.SortStableFunc(replacements, func(a, b *evictionpacing.Member) int {
		if a.Pod == nil || b.Pod == nil {
			return compareBool(a.Pod != nil, b.Pod != nil)
		}
		return b.Pod.CreationTimestamp.Compare(a.Pod.CreationTimestamp.Time)
	})
	for i, member := range replacements {
		switch {
		case i < d.healthy:
			member.Replaced = true
		case i < d.healthy+d.broken:
			member.WasBroken = true
		}
	}
}

// recheckBroken rechecks the pods that are about to count as broken.
func (w *workload) recheckBroken(now time.Time) {
	for _, pod := range w.living() {
		if notReady, since := w.unready.Since(pod, now); notReady && since.Add(evictionturn.BrokenAfter).After(now) {
			w.recheck(since.Add(evictionturn.BrokenAfter))
		}
	}
}

// isBehind reports whether a pod must not be released although its turn was ended: another process has released one
// of which the cache does not know, or the pod serves although the cache shows that it does not.
func (s *surger) isBehind(ctx context.Context, m *openTurn, result turnResult) (bool, error) {
	if !result.paced {
		return false, nil
	}
	d, _ := s.deploymentOf(ctx, m.namespace, m.pod, m.uid)
	if d == nil {
		return false, nil // Nothing is paced without one.
	}
	isKnown := func(request *coordinationv1alpha1.EvictionRequest) bool {
		if s.releaseOf(d, types.UID(request.Name)) != nil {
			return true
		}
		obj, exists, _ := s.requests.GetByKey(request.Namespace + "/" + request.Name)
		cached, _ := obj.(*coordinationv1alpha1.EvictionRequest)
		return exists && cached.UID == request.UID && isReleased(cached)
	}
	other, err := s.live.Unknown(ctx, d.Namespace, d.Spec.Selector, isKnown)
	if err != nil {
		return false, fmt.Errorf("looking for pods of Deployment %s that were released: %w", klog.KObj(d), err)
	}
	if other != "" {
		klog.FromContext(ctx).Info("Not releasing a Deployment pod, because the cache does not show yet that another one was released", "pod", klog.KRef(m.namespace, m.pod), "other", other)
		return true, nil
	}
	release := s.releaseOf(d, m.uid)
	isStill := func(pod *v1.Pod) bool {
		return !podutil.IsPodAvailable(pod, d.Spec.MinReadySeconds, metav1.NewTime(s.clock.Now())) || pod.DeletionTimestamp != nil
	}
	switch {
	case release != nil && release.broken:
		isStill = func(pod *v1.Pod) bool { return s.unready.IsBroken(pod, s.clock.Now()) }
	case release == nil || !release.unavailable:
		return false, nil
	}
	return evictionpacing.HasChanged(ctx, s.reportClient, types.NamespacedName{Namespace: m.namespace, Name: m.pod}, m.uid, isStill)
}

// releaseOf returns the release of a pod by this process, or nil.
func (s *surger) releaseOf(d *apps.Deployment, pod types.UID) *release {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.releases[d.UID][pod]
}

// withdraw takes a release back that was not reported.
func (s *surger) withdraw(m *openTurn) {
	s.lock.Lock()
	delete(s.releases[m.deployment], m.uid)
	s.lock.Unlock()
	if d, _ := s.deploymentOf(context.TODO(), m.namespace, m.pod, m.uid); d != nil {
		s.dc.enqueueAfter(d, catchUpInterval)
	}
}

// catchUpInterval is how soon a Deployment is decided on again if the cache was behind. Usually an event comes
// before.
const catchUpInterval = time.Second

// budgetHandler enqueues the Deployments in the namespace of a budget that wait: which of them it selects, or how many
// pods it permits to be disrupted, may have changed.
func (s *surger) budgetHandler() cache.ResourceEventHandler {
	changed := func(obj any) {
		if budget, err := tombstone.Object[*policy.PodDisruptionBudget](obj); err == nil {
			s.wakeNamespace(budget.Namespace)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: changed,
		UpdateFunc: func(old, new any) {
			// Each eviction changes the status of its budget, but not what the budget permits.
			if !evictionpacing.SamePermission(old.(*policy.PodDisruptionBudget), new.(*policy.PodDisruptionBudget)) {
				changed(new)
			}
		},
		DeleteFunc: changed,
	}
}

// wakeNamespace makes the open turns of a namespace look up their Deployments again, which enqueues these.
func (s *surger) wakeNamespace(namespace string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, m := range s.openTurns {
		if m.namespace == namespace {
			m.wakeUp()
		}
	}
}

// reasonNotToPace says why pods of a Deployment without a surge do not wait for each other.
func reasonNotToPace(w *workload) string {
	if evictioninterceptor.IsPacingDisabled(w.deployment.Annotations, evictioninterceptor.DeploymentPacingAnnotation) {
		return fmt.Sprintf("%s does not surge, because its maxSurge is 0, and its annotation %s turns off that its pods wait for each other.", w, evictioninterceptor.DeploymentPacingAnnotation)
	}
	return fmt.Sprintf("%s does not surge: its maxSurge is 0.", w)
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
