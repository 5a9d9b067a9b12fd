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
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	clientset "k8s.io/client-go/kubernetes"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/statefulset/metrics"
	"k8s.io/kubernetes/pkg/controller/util/evictionpacing"
	"k8s.io/kubernetes/pkg/controller/util/evictionturn"
	"k8s.io/utils/clock"
)

// Reasons for StatefulSet events
const (
	// EvictionReleasedReason is added to an event when the eviction of a pod may proceed.
	EvictionReleasedReason = "EvictionReleased"
	// EvictionPacingGivenUpReason is added to an event when the eviction of a pod may proceed
	// although too many pods are unavailable.
	EvictionPacingGivenUpReason = "EvictionPacingGivenUp"
	// EvictionInterceptorsLeftOutReason is added to an event when a pod is created without the
	// StatefulSet controller as an interceptor.
	EvictionInterceptorsLeftOutReason = "EvictionInterceptorsLeftOut"
)

const (
	// evictionProgressDeadline is how long a pod waits without progress. It equals the default
	// progress deadline of a Deployment; a StatefulSet has no such field.
	evictionProgressDeadline = 10 * time.Minute

	// evictionRetryInterval is how soon a pod that is missing in the cache is looked up again, and how
	// soon the controller tries again to create one for which others wait. It is also the maximum delay
	// between retries of a set.
	evictionRetryInterval = 30 * time.Second

	// evictionCatchUpInterval is how soon a set is decided again if the cache was behind. Usually
	// an event comes before.
	evictionCatchUpInterval = time.Second

	// maxCreateFailure limits what is kept of an error, in bytes.
	maxCreateFailure = 512
)

// evictionPacer takes the turns of statefulset.apps.k8s.io. A turn delays the eviction of one pod
// until the set allows it. Then the turn is completed, and the next interceptor, usually
// imperative-eviction.k8s.io, evicts the pod within its budgets. The pacer itself deletes no pods
// and writes neither to the set nor to its claims.
//
// Turns only wait. A single worker makes all decisions from the cached set, its pods and their
// requests (planEvictions). After a restart, the state is read from the requests.
type evictionPacer struct {
	ssc           *StatefulSetController
	client        clientset.Interface
	live          *evictionpacing.LiveReleases
	places        places
	budgets       *poddisruptionbudget.Index
	requestLister coordinationlisters.EvictionRequestLister
	requests      cache.Indexer
	recorder      record.EventRecorder
	clock         clock.WithTicker
	queue         workqueue.TypedRateLimitingInterface[string]
	unready       evictionturn.Unready

	lock sync.Mutex
	// turns are the open turns by the key of the set and by the UID of the pod.
	turns map[string]map[types.UID]*evictionTurn
	// results are the turns that were ended here but are still open in the cache, because they
	// have not been reported yet. They have the same keys as turns.
	results map[string]map[types.UID]*evictionResult
	// broken are the UIDs of pods that were broken when they were released, by the key of the set.
	// A new process does not know them, and lets the other pods wait for their replacements.
	broken map[string]sets.Set[types.UID]
	// createFailures has the last pod of each set that could not be created, by the key of the set. No field of a
	// StatefulSet says that.
	createFailures map[string]createFailure
}

// createFailure is why a pod could not be created.
type createFailure struct{ pod, message string }

// evictionTurn is an open turn.
type evictionTurn struct {
	key string
	// request is the UID of the request.
	request types.UID
	pod     types.NamespacedName
	uid     types.UID
	// began is when the turn began, and history is what the request says about earlier processes
	// that had it.
	began   time.Time
	history evictionturn.History
	// report reports a message, and an ETA if it is not zero.
	report func(message string, eta time.Time)
	// decided is set when the turn was ended here. A turn must end only once, and its result may be
	// confirmed and removed before handle returns.
	decided bool
	// done receives the final message. It is buffered, so that sending it with the lock never
	// blocks if handle has stopped receiving.
	done chan string
}

// newEvictionTurn returns the turn for a request. An earlier process may have started the turn.
func newEvictionTurn(request *coordinationv1alpha1.EvictionRequest, now time.Time, report func(message string, eta time.Time)) *evictionTurn {
	target := request.Spec.Target.Pod
	return &evictionTurn{
		key:     evictionKey(request.Namespace, target.Name),
		request: request.UID,
		pod:     types.NamespacedName{Namespace: request.Namespace, Name: target.Name},
		uid:     types.UID(target.UID),
		began:   evictionturn.Began(request, coordinationv1alpha1.EvictionInterceptorStatefulSet, now),
		history: evictionturn.HistoryOf(request, coordinationv1alpha1.EvictionInterceptorStatefulSet, now),
		report:  report,
		done:    make(chan string, 1),
	}
}

// finish ends the turn. The caller holds the lock of the pacer.
func (t *evictionTurn) finish(message string) {
	if t.decided {
		return
	}
	t.decided = true
	t.done <- message
}

// evictionResult is how a turn was ended.
type evictionResult struct {
	request types.UID
	outcome metrics.EvictionOutcome
	message string
	// at is when that was decided, and began is when the turn began.
	at, began time.Time
	// unavailable is true if the pod waited for no available one because it was not available itself.
	unavailable bool
}

// handle is called by the library for each turn. It blocks until the turn ends.
func (p *evictionPacer) handle(ctx context.Context, turn *evictionrequest.Turn) error {
	t := newEvictionTurn(turn.Request(), p.clock.Now(), func(message string, eta time.Time) {
		turn.SetMessage(message)
		turn.SetExpectedFinishTime(eta)
	})
	p.begin(t)
	defer p.end(t)
	for {
		select {
		case message := <-t.done:
			behind, err := p.isBehind(ctx, t)
			if err != nil {
				return err // The library calls handle again, with the same result.
			}
			if behind {
				p.withdraw(t)
				continue
			}
			return evictionrequest.Decline(message)
		case <-ctx.Done():
			p.canceled(t, context.Cause(ctx))
			return context.Cause(ctx)
		}
	}
}

// isBehind reports whether pods of the set were released without that the cache shows it, so that
// this pod would be one too many, or whether it serves although the cache shows that it does not.
func (p *evictionPacer) isBehind(ctx context.Context, t *evictionTurn) (bool, error) {
	set := p.setOfRelease(t)
	if set == nil {
		return false, nil
	}
	isKnown := func(request *coordinationv1alpha1.EvictionRequest) bool {
		if keys, err := statefulSetOfRequest(request); err != nil || !slices.Contains(keys, t.key) {
			return true // It is not of this set.
		}
		cached, err := p.requestLister.EvictionRequests(request.Namespace).Get(request.Name)
		return err == nil && cached.UID == request.UID && evictionStageOf(cached) == evictionpacing.Released || p.hasResult(t.key, types.UID(request.Name))
	}
	other, err := p.live.Unknown(ctx, set.Namespace, set.Spec.Selector, isKnown)
	if err != nil {
		return false, fmt.Errorf("looking for pods of StatefulSet %s that were released: %w", t.key, err)
	}
	if other != "" {
		klog.FromContext(ctx).Info("Not releasing a StatefulSet pod, because the cache does not show yet that another one was released", "pod", klog.KRef(t.pod.Namespace, t.pod.Name), "other", other)
		return true, nil
	}
	isStill := func(pod *v1.Pod) bool { return isUnavailable(pod, set.Spec.MinReadySeconds, p.clock.Now()) }
	switch {
	case p.isBroken(t):
		isStill = func(pod *v1.Pod) bool { return p.unready.IsBroken(pod, p.clock.Now()) }
	case !p.wasUnavailable(t):
		return false, nil
	}
	return evictionpacing.HasChanged(ctx, p.client, t.pod, t.uid, isStill)
}

// hasResult reports whether the turn of a pod was ended here.
func (p *evictionPacer) hasResult(key string, pod types.UID) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.results[key][pod] != nil
}

// isBroken reports whether the pod was released because it was broken.
func (p *evictionPacer) isBroken(t *evictionTurn) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.broken[t.key].Has(t.uid)
}

// wasUnavailable reports whether the pod was released because it was not available.
func (p *evictionPacer) wasUnavailable(t *evictionTurn) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	result := p.results[t.key][t.uid]
	return result != nil && result.unavailable
}

// setOfRelease returns the set of a turn that was ended here because the set releases the pod, and
// nil if it was ended for another reason.
func (p *evictionPacer) setOfRelease(t *evictionTurn) *apps.StatefulSet {
	p.lock.Lock()
	defer p.lock.Unlock()
	result := p.results[t.key][t.uid]
	if result == nil || result.outcome != metrics.EvictionReleased && result.outcome != metrics.EvictionGivenUp {
		return nil
	}
	namespace, name, err := cache.SplitMetaNamespaceKey(t.key)
	if err != nil {
		return nil
	}
	set, err := p.ssc.setLister.StatefulSets(namespace).Get(name)
	if err != nil {
		return nil // Without a set, nothing is paced.
	}
	return set
}

// withdraw opens a turn again that was ended here, and was not reported.
func (p *evictionPacer) withdraw(t *evictionTurn) {
	p.lock.Lock()
	defer p.lock.Unlock()
	t.decided = false
	delete(p.results[t.key], t.uid)
	p.forget(t.key, t.uid)
	p.queue.AddAfter(t.key, evictionCatchUpInterval)
}

// begin adds a turn and enqueues its set. If the library could not report the end of a turn, it
// begins the turn again: the earlier result is used then.
func (p *evictionPacer) begin(t *evictionTurn) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if result := p.results[t.key][t.uid]; result != nil && result.request == t.request {
		t.finish(result.message)
	}
	if p.turns[t.key] == nil {
		p.turns[t.key] = map[types.UID]*evictionTurn{}
	}
	p.turns[t.key][t.uid] = t
	p.queue.Add(t.key)
}

// end removes a turn and enqueues the set: other pods may leave if this one stays.
func (p *evictionPacer) end(t *evictionTurn) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.turns[t.key][t.uid] == t { // A newer turn for the pod may have replaced it.
		delete(p.turns[t.key], t.uid)
	}
	if len(p.turns[t.key]) == 0 {
		delete(p.turns, t.key)
	}
	p.queue.Add(t.key)
}

// canceled counts a turn that was ended from outside. If it was also ended here, confirm counts it
// with the outcome shown in the request.
func (p *evictionPacer) canceled(t *evictionTurn, cause error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if t.decided {
		return
	}
	took := p.clock.Since(t.began)
	switch {
	case errors.Is(cause, evictionrequest.ErrEvicted):
		metrics.EvictionTurnOver(metrics.EvictionGone, took)
	case errors.Is(cause, evictionrequest.ErrCanceled), errors.Is(cause, evictionrequest.ErrRequestGone):
		metrics.EvictionTurnOver(metrics.EvictionCanceled, took)
	case errors.Is(cause, evictionrequest.ErrTurnLost):
		metrics.EvictionTurnOver(metrics.EvictionLost, took)
	}
}

// isTracked reports whether a set has open turns, unconfirmed results, or pods that were broken when they were
// released: those may recover.
func (p *evictionPacer) isTracked(key string) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return len(p.turns[key]) > 0 || len(p.results[key]) > 0 || len(p.broken[key]) > 0
}

// pacedIn returns the keys of the sets in a namespace that have open turns or unconfirmed results.
func (p *evictionPacer) pacedIn(namespace string) []string {
	p.lock.Lock()
	defer p.lock.Unlock()
	var keys []string
	for _, key := range slices.Concat(slices.Collect(maps.Keys(p.turns)), slices.Collect(maps.Keys(p.results))) {
		if strings.HasPrefix(key, namespace+"/") {
			keys = append(keys, key)
		}
	}
	return keys
}

// run runs the worker until the context is canceled. One worker is enough for all sets, because a
// decision only reads caches.
func (p *evictionPacer) run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	defer p.queue.ShutDown()
	working.Go(func() { wait.UntilWithContext(ctx, p.work, time.Second) })
	<-ctx.Done()
}

func (p *evictionPacer) work(ctx context.Context) {
	for p.processNext(ctx) {
	}
}

func (p *evictionPacer) processNext(ctx context.Context) bool {
	key, shutdown := p.queue.Get()
	if shutdown {
		return false
	}
	defer p.queue.Done(key)
	if err := p.sync(ctx, key); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Failed to decide which pods of a StatefulSet may be evicted, will retry", "statefulSet", key)
		p.queue.AddRateLimited(key)
		return true
	}
	p.queue.Forget(key)
	return true
}

// sync decides which turns of a set end.
func (p *evictionPacer) sync(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	set, err := p.ssc.setLister.StatefulSets(namespace).Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading StatefulSet %s: %w", key, err)
	}
	if err != nil {
		set = nil
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	now := p.clock.Now()
	p.confirm(ctx, key, namespace, set)
	p.declineUnpaced(key, set, now)
	if set == nil || len(p.turns[key]) == 0 && len(p.broken[key]) == 0 {
		return nil
	}
	pods, err := p.podsOf(set)
	if err != nil {
		return err
	}
	next := p.pace(key, set, pods, now)
	p.queue.AddAfter(key, next)
	return nil
}

// podsOf returns the pods that the set controls.
func (p *evictionPacer) podsOf(set *apps.StatefulSet) ([]*v1.Pod, error) {
	owned, err := controller.FilterPodsByOwner(p.ssc.podIndexer, &set.ObjectMeta, controllerKind.Kind, false)
	if err != nil {
		return nil, fmt.Errorf("reading the pods of StatefulSet %s: %w", klog.KObj(set), err)
	}
	var pods []*v1.Pod
	for _, pod := range owned {
		if isMemberOf(set, pod) {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// pace ends the turns of the pods that may leave, and reports on the others. It returns when to
// sync again if nothing changes. The caller holds the lock.
func (p *evictionPacer) pace(key string, set *apps.StatefulSet, pods []*v1.Pod, now time.Time) time.Duration {
	stageOf := func(pod *v1.Pod) evictionpacing.Stage {
		if p.results[key][pod.UID] != nil {
			return evictionpacing.Released
		}
		return evictionStageOf(p.requestOf(pod))
	}
	history := p.evictionHistory(key, now)
	members := evictionMembers(set, pods, stageOf, history.before, p.places.onlyOn, &p.unready, now)
	p.forgetBroken(key, members, history)
	plan := evictionpacing.PlanEvictions(evictionLimitOf(set, pods, p.budgets), members, 0)
	for _, member := range plan.Next {
		message := fmt.Sprintf("Released: StatefulSet %s allows the eviction of the pod.", set.Name)
		switch {
		case len(member.NotAwaited) > 0:
			message = fmt.Sprintf("Released: %s of StatefulSet %s cannot be scheduled before node %s, which the pod has to leave, is no longer cordoned.", podsNamed(member.NotAwaited), set.Name, member.Pod.Spec.NodeName)
		case member.Broken:
			message = fmt.Sprintf("Released: the pod has not been ready for %v, so it waits for no other pod of StatefulSet %s.", evictionturn.BrokenAfter, set.Name)
		}
		if p.decide(key, member.Pod.UID, metrics.EvictionReleased, message, now) {
			p.results[key][member.Pod.UID].unavailable = !member.Available
			if member.Broken {
				p.noteBroken(key, member.Pod.UID)
			}
		}
	}
	progress := history.progress
	next := evictionProgressDeadline
	if len(plan.Waiting) > 0 && slices.ContainsFunc(members, (*evictionpacing.Member).IsMissing) {
		// A quota or a webhook may have refused the pod: the controller then waits twice as long after each
		// refusal, up to 17 minutes, and no event says that it would be accepted now.
		p.ssc.queue.AddAfter(key, evictionRetryInterval)
		next = evictionRetryInterval
	}
	if check := controller.FindMinNextPodAvailabilityCheck(pods, set.Spec.MinReadySeconds, now, p.clock); check != nil {
		next = min(next, *check)
	}
	for _, pod := range pods {
		if notReady, since := p.unready.Since(pod, now); notReady && since.Add(evictionturn.BrokenAfter).After(now) {
			next = min(next, since.Add(evictionturn.BrokenAfter).Sub(now))
		}
	}
	for _, member := range plan.Waiting {
		turn := p.turns[key][member.Pod.UID]
		if turn == nil {
			continue // The library has not started the turn yet.
		}
		message := waitingFor(&plan, set, member, p.createFailures[key].message)
		since, eta := turn.history.WaitsSince(laterOf(turn.began, progress), evictionProgressDeadline)
		timeout := since.Add(evictionProgressDeadline).Sub(now)
		if timeout <= 0 {
			p.decide(key, turn.uid, metrics.EvictionGivenUp, fmt.Sprintf("Gave up after %v without progress. %s", now.Sub(since).Round(time.Second), message), now)
			// Only one pod at a time: this counts as progress for the others, which wait again.
			member.Stage, progress = evictionpacing.Released, now
			continue
		}
		next = min(next, timeout)
		turn.report(message, eta)
	}
	return next
}

// created notes that a pod was created, or why it was not. One that exists already is no news: the cache is behind.
func (p *evictionPacer) created(set *apps.StatefulSet, pod string, err error) {
	if apierrors.IsAlreadyExists(err) {
		return
	}
	key := cache.MetaObjectToName(set).String()
	p.lock.Lock()
	defer p.lock.Unlock()
	before := p.createFailures[key]
	switch {
	case err != nil:
		p.createFailures[key] = createFailure{pod, plaintext.Truncate(err.Error(), maxCreateFailure)}
	case before.pod == pod:
		delete(p.createFailures, key)
	}
	if p.createFailures[key] != before && len(p.turns[key]) > 0 {
		p.queue.Add(key)
	}
}

// evictionHistory is what the requests say about the pods that a set has released.
type evictionHistory struct {
	// progress is when a pod of the set was last released or evicted. Each pod counts as progress
	// once: a pod that is ready and unready again and again must not make others wait forever.
	// Times in the future come from another clock and do not count.
	progress time.Time
	// released are the released pods by name and UID, and whether they were broken. The current pod
	// of such a name may be the replacement, whether or not the caches show the end of the old pod.
	released map[string]map[types.UID]bool
}

// before returns the predecessors of the pod with this UID, or of a missing one.
func (h *evictionHistory) before(name string, uid types.UID) evictionpacing.Predecessors {
	var before evictionpacing.Predecessors
	for released, wasBroken := range h.released[name] {
		switch {
		case wasBroken:
			before.WasBroken = true
		case released != uid:
			before.Replaced = true
		}
	}
	return before
}

// evictionHistory returns the history of a set. The caller holds the lock.
func (p *evictionPacer) evictionHistory(key string, now time.Time) *evictionHistory {
	history := &evictionHistory{released: map[string]map[types.UID]bool{}}
	progressed := func(at time.Time) {
		if !at.After(now) {
			history.progress = laterOf(history.progress, at)
		}
	}
	for _, result := range p.results[key] {
		progressed(result.at)
	}
	requests, err := p.requests.ByIndex(statefulSetIndex, key)
	if err != nil {
		return history // Cannot happen: the constructor adds the index.
	}
	for _, obj := range requests {
		request := obj.(*coordinationv1alpha1.EvictionRequest)
		name, uid := request.Spec.Target.Pod.Name, types.UID(request.Name)
		completed := ownCompletion(request)
		if completed != nil {
			progressed(*completed)
		}
		if passedOn := completed != nil || p.results[key][uid] != nil; passedOn && evictionStageOf(request) != evictionpacing.Stays {
			if history.released[name] == nil {
				history.released[name] = map[types.UID]bool{}
			}
			history.released[name][uid] = p.broken[key].Has(uid)
		}
		if evicted := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionEvicted)); evicted != nil && evicted.Status == metav1.ConditionTrue {
			progressed(evicted.LastTransitionTime.Time)
		}
	}
	return history
}

// noteBroken notes that a pod was broken when it was released. The caller holds the lock.
func (p *evictionPacer) noteBroken(key string, uid types.UID) {
	if p.broken[key] == nil {
		p.broken[key] = sets.New[types.UID]()
	}
	p.broken[key].Insert(uid)
}

// forget removes the note about a pod. The caller holds the lock.
func (p *evictionPacer) forget(key string, uid types.UID) {
	delete(p.broken[key], uid)
	if len(p.broken[key]) == 0 {
		delete(p.broken, key)
	}
}

// forgetBroken forgets the pods that were broken when they were released if they no longer matter:
// their requests are gone or canceled, or they or their replacements are available. The caller holds the
// lock.
func (p *evictionPacer) forgetBroken(key string, members []*evictionpacing.Member, history *evictionHistory) {
	known := sets.New[types.UID]()
	for _, pods := range history.released {
		known.Insert(slices.Collect(maps.Keys(pods))...)
	}
	for _, member := range members {
		if member.Available {
			known.Delete(slices.Collect(maps.Keys(history.released[member.Name]))...)
		}
	}
	if p.broken[key] = p.broken[key].Intersection(known); len(p.broken[key]) == 0 {
		delete(p.broken, key)
	}
}

// requestOf returns the request for a pod, or nil. Its name is the UID of the pod.
func (p *evictionPacer) requestOf(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	request, err := p.requestLister.EvictionRequests(pod.Namespace).Get(string(pod.UID))
	if err != nil {
		return nil
	}
	return request
}

// declineUnpaced ends the turns of pods that are not paced. The caller holds the lock.
func (p *evictionPacer) declineUnpaced(key string, set *apps.StatefulSet, now time.Time) {
	for uid, turn := range p.turns[key] {
		pod, err := p.ssc.podLister.Pods(turn.pod.Namespace).Get(turn.pod.Name)
		if err != nil || pod.UID != turn.uid {
			// The pod is gone, which its request will soon show, or the cache is behind.
			if now.Sub(turn.history.Taken) >= evictionProgressDeadline {
				p.decide(key, uid, metrics.EvictionDeclined, "Skipped: the pod was not found.", now)
			}
			p.queue.AddAfter(key, evictionRetryInterval)
			continue
		}
		if outcome, message := reasonNotToPace(set, pod); message != "" {
			p.decide(key, uid, outcome, message, now)
		}
	}
}

// reasonNotToPace returns why a pod does not wait for others of its set, or "". The set may be nil.
func reasonNotToPace(set *apps.StatefulSet, pod *v1.Pod) (metrics.EvictionOutcome, string) {
	ref := metav1.GetControllerOfNoCopy(pod)
	switch {
	case isTerminating(pod):
		return metrics.EvictionGone, "The pod is terminating."
	case isTerminalPhase(pod):
		return metrics.EvictionGone, "The pod has finished."
	case ref == nil || ref.Kind != controllerKind.Kind || set == nil || ref.UID != set.UID || !isMemberOf(set, pod):
		return metrics.EvictionDeclined, "Skipped: no StatefulSet controls the pod."
	case set.DeletionTimestamp != nil:
		return metrics.EvictionDeclined, fmt.Sprintf("Skipped: StatefulSet %s is being deleted.", set.Name)
	case isPacingDisabled(set):
		return metrics.EvictionDeclined, fmt.Sprintf("Skipped: the annotation %s of StatefulSet %s turns off that its pods wait for each other.", coordinationv1alpha1.EvictionPacingAnnotation, set.Name)
	case set.Spec.UpdateStrategy.Type != apps.RollingUpdateStatefulSetStrategyType:
		return metrics.EvictionDeclined, fmt.Sprintf("Skipped: the update strategy of StatefulSet %s is %s.", set.Name, set.Spec.UpdateStrategy.Type)
	}
	return "", ""
}

// decide ends a turn if it is open, and reports whether it was. The caller holds the lock.
func (p *evictionPacer) decide(key string, uid types.UID, outcome metrics.EvictionOutcome, message string, now time.Time) bool {
	turn := p.turns[key][uid]
	if turn == nil || turn.decided || p.results[key][uid] != nil {
		return false
	}
	if p.results[key] == nil {
		p.results[key] = map[types.UID]*evictionResult{}
	}
	p.results[key][uid] = &evictionResult{request: turn.request, outcome: outcome, message: message, at: now, began: turn.began}
	turn.finish(message)
	return true
}

// confirm removes the results of turns that have ended in the cache, and records their outcomes.
// The caller holds the lock.
func (p *evictionPacer) confirm(ctx context.Context, key, namespace string, set *apps.StatefulSet) {
	for uid, result := range p.results[key] {
		request, err := p.requestLister.EvictionRequests(namespace).Get(string(uid))
		if err != nil || request.UID != result.request {
			request = nil // It existed when the turn began, so it was deleted.
		}
		outcome := result.outcome
		switch stage := evictionStageOf(request); {
		case stage == evictionpacing.Asked:
			continue
		case stage == evictionpacing.Stays:
			outcome = metrics.EvictionCanceled
		case ownCompletion(request) != nil:
			p.announce(ctx, set, request, result)
		case evictionrequest.StateOf(request) == evictionrequest.StateEvicted:
			outcome = metrics.EvictionGone
		default:
			outcome = metrics.EvictionLost
		}
		metrics.EvictionTurnOver(outcome, result.at.Sub(result.began))
		delete(p.results[key], uid)
	}
	if len(p.results[key]) == 0 {
		delete(p.results, key)
	}
}

// announce records an event for the set, where users look for the reason when a pod is evicted.
func (p *evictionPacer) announce(ctx context.Context, set *apps.StatefulSet, request *coordinationv1alpha1.EvictionRequest, result *evictionResult) {
	pod := request.Spec.Target.Pod.Name
	klog.FromContext(ctx).Info("Finished intercepting the eviction of a StatefulSet pod", "pod", klog.KRef(request.Namespace, pod), "outcome", result.outcome, "message", result.message)
	if set == nil {
		return
	}
	switch result.outcome {
	case metrics.EvictionReleased:
		p.recorder.Eventf(set, v1.EventTypeNormal, EvictionReleasedReason, "Released pod %s for eviction", pod)
	case metrics.EvictionGivenUp:
		p.recorder.Eventf(set, v1.EventTypeWarning, EvictionPacingGivenUpReason, "Released pod %s for eviction although too many pods are unavailable: %s", pod, result.message)
	}
}

// podsNamed names some of the pods.
func podsNamed(names []string) string {
	if len(names) == 1 {
		return "pod " + names[0]
	}
	return fmt.Sprintf("pod %s and %d more", names[0], len(names)-1)
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
