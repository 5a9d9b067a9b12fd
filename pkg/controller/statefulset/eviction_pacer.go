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
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/statefulset/metrics"
	"k8s.io/utils/clock"
)

// Reasons for StatefulSet events
const (
	// EvictionReleasedReason is added to an event when the eviction of a pod may go on.
	EvictionReleasedReason = "EvictionReleased"
	// EvictionPacingGivenUpReason is added to an event when it goes on although too many
	// pods are unavailable.
	EvictionPacingGivenUpReason = "EvictionPacingGivenUp"
)

const (
	// evictionProgressDeadline is how long a pod waits while nothing improves. It is the
	// default of a Deployment's progress deadline; a StatefulSet has no such field.
	evictionProgressDeadline = 10 * time.Minute

	// evictionRetryInterval is when a pod is looked for again that the cache does not have, and
	// at most between two attempts to decide on a set.
	evictionRetryInterval = 30 * time.Second

	// aliveAfterBeat is for how long a process counts as running after its last heartbeat. It is
	// the least time between two of them: if that did not count, processes that end before their
	// second one, again and again, would never give up.
	aliveAfterBeat = time.Minute
)

// evictionPacer takes the turns of statefulset.apps.k8s.io. A turn holds the eviction of one
// pod up until the set can do without it. Then it is completed, and the next interceptor, as
// a rule imperative-eviction.k8s.io, evicts the pod within its budgets. The pacer itself
// writes nothing: it deletes no pod, and touches neither the set nor its claims.
//
// Turns only wait. All decisions are made by one worker, from what the caches have of the set,
// its pods and their requests (planEvictions). What a restart forgets is in the requests.
type evictionPacer struct {
	ssc           *StatefulSetController
	requestLister coordinationlisters.EvictionRequestLister
	requests      cache.Indexer
	recorder      record.EventRecorder
	clock         clock.WithTicker
	queue         workqueue.TypedRateLimitingInterface[string]

	lock sync.Mutex
	// turns are those that wait, by the set that the name of the pod belongs to and by the
	// UID of the pod.
	turns map[string]map[types.UID]*evictionTurn
	// verdicts are the turns that were ended while the cache does not show it yet: the report
	// is on its way. They are kept in the same manner.
	verdicts map[string]map[types.UID]*evictionVerdict
}

// evictionTurn is a turn that waits.
type evictionTurn struct {
	key string
	// request is the UID of the request.
	request types.UID
	pod     types.NamespacedName
	uid     types.UID
	// began is when the turn began, beat the last heartbeat of an earlier process that has held
	// it, and taken when this one has taken it. Without an earlier one, all are the same.
	began, beat, taken time.Time
	// eta is the ETA of an earlier process, or zero.
	eta time.Time
	// report shows people a message, and an ETA if it is not zero.
	report func(message string, eta time.Time)
	// decided is set when the turn was ended here. Its verdict may be confirmed, and so be
	// forgotten, before handle returns: what ends a turn does so once.
	decided bool
	// over gets the last message. It has room for it, so that sending with the lock never
	// waits for handle, which may have stopped receiving.
	over chan string
}

// newEvictionTurn returns the turn for a request, which may have begun before this process did.
func newEvictionTurn(request *coordinationv1alpha1.EvictionRequest, now time.Time, report func(message string, eta time.Time)) *evictionTurn {
	target := request.Spec.Target.Pod
	t := &evictionTurn{
		key:     evictionKey(request.Namespace, target.Name),
		request: request.UID,
		pod:     types.NamespacedName{Namespace: request.Namespace, Name: target.Name},
		uid:     types.UID(target.UID),
		began:   now, beat: now, taken: now,
		report: report,
		over:   make(chan string, 1),
	}
	// A time that is ahead is of another clock.
	if entry := ownEntry(request); entry != nil && entry.StartTime != nil && !entry.StartTime.After(now) {
		t.began, t.beat = entry.StartTime.Time, entry.StartTime.Time
		if entry.HeartbeatTime != nil && !entry.HeartbeatTime.After(now) {
			t.beat = laterOf(t.beat, entry.HeartbeatTime.Time)
		}
		if entry.ExpectedFinishTime != nil {
			t.eta = entry.ExpectedFinishTime.Time
		}
	}
	return t
}

// waitsSince returns from when the patience counts after the last progress. The time between
// two processes does not count: the StatefulSet controller was away, too, so that nothing could
// get better. The ETA is the end of the patience where outages have postponed that, and so has
// what earlier processes found. What lies between the last of them and this one comes on top.
func (t *evictionTurn) waitsSince(progress time.Time) (since, eta time.Time) {
	base := laterOf(t.began, progress)
	if !base.Before(t.taken) {
		return base, time.Time{}
	}
	since = laterOf(base, t.eta.Add(-evictionProgressDeadline))
	since = since.Add(max(t.taken.Sub(laterOf(since, t.beat.Add(aliveAfterBeat))), 0))
	if since.After(base) {
		eta = since.Add(evictionProgressDeadline)
	}
	return since, eta
}

// finish ends the turn. It is called with the lock of the pacer.
func (t *evictionTurn) finish(message string) {
	if t.decided {
		return
	}
	t.decided = true
	t.over <- message
}

// evictionVerdict is how a turn was ended.
type evictionVerdict struct {
	request types.UID
	outcome metrics.EvictionOutcome
	message string
	// at is when that was decided, began when the turn began.
	at, began time.Time
}

// handle is called by the library for each turn. It waits until the pod may go.
func (p *evictionPacer) handle(ctx context.Context, turn *evictionrequest.Turn) error {
	t := newEvictionTurn(turn.Request(), p.clock.Now(), func(message string, eta time.Time) {
		turn.SetMessage(message)
		turn.SetExpectedFinishTime(eta)
	})
	p.begin(t)
	defer p.end(t)
	select {
	case message := <-t.over:
		return evictionrequest.Decline(message)
	case <-ctx.Done():
		p.canceled(t, context.Cause(ctx))
		return context.Cause(ctx)
	}
}

// begin has the set decide on a turn. The library may begin one again that was ended here,
// if it could not report that: what was decided stands.
func (p *evictionPacer) begin(t *evictionTurn) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if verdict := p.verdicts[t.key][t.uid]; verdict != nil && verdict.request == t.request {
		t.finish(verdict.message)
	}
	if p.turns[t.key] == nil {
		p.turns[t.key] = map[types.UID]*evictionTurn{}
	}
	p.turns[t.key][t.uid] = t
	p.queue.Add(t.key)
}

// end forgets a turn. The set is looked at again: others may go if the pod stays.
func (p *evictionPacer) end(t *evictionTurn) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.turns[t.key][t.uid] == t { // And not one that was begun since.
		delete(p.turns[t.key], t.uid)
	}
	if len(p.turns[t.key]) == 0 {
		delete(p.turns, t.key)
	}
	p.queue.Add(t.key)
}

// canceled counts a turn that was ended by others. One that was ended here, too, is counted
// by what the request says of it in the end.
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

// isTracked reports whether anything is to be decided about a set.
func (p *evictionPacer) isTracked(key string) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return len(p.turns[key]) > 0 || len(p.verdicts[key]) > 0
}

// run decides until the context ends. One worker is enough for all sets: a decision reads
// caches only.
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
		utilruntime.HandleErrorWithContext(ctx, err, "Could not decide which pods of a StatefulSet may leave, trying again", "statefulSet", key)
		p.queue.AddRateLimited(key)
		return true
	}
	p.queue.Forget(key)
	return true
}

// sync decides which of the turns of a set are over.
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
	p.declineOthers(key, set, now)
	if set == nil || len(p.turns[key]) == 0 {
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

// pace ends the turns of pods that may go, and tells the others for what they wait. It
// returns when to look again if nothing happens. It is called with the lock.
func (p *evictionPacer) pace(key string, set *apps.StatefulSet, pods []*v1.Pod, now time.Time) time.Duration {
	stageOf := func(pod *v1.Pod) evictionStage {
		if p.verdicts[key][pod.UID] != nil {
			return released
		}
		return evictionStageOf(p.requestOf(pod))
	}
	progress, replaced := p.lookBack(key, now)
	plan := planEvictions(set, evictionMembers(set, pods, stageOf, func(name string) bool { return replaced.Has(name) }, now))
	for _, member := range plan.next {
		p.decide(key, member.pod.UID, metrics.EvictionReleased, fmt.Sprintf("Passed on: StatefulSet %s can do without the pod now.", set.Name), now)
	}
	next := evictionProgressDeadline
	if check := controller.FindMinNextPodAvailabilityCheck(pods, set.Spec.MinReadySeconds, now, p.clock); check != nil {
		next = min(next, *check)
	}
	for _, member := range plan.waiting {
		turn := p.turns[key][member.pod.UID]
		if turn == nil {
			continue // The library is about to begin it.
		}
		message := plan.waitingFor(set, member)
		since, eta := turn.waitsSince(progress)
		patience := since.Add(evictionProgressDeadline).Sub(now)
		if patience <= 0 {
			p.decide(key, turn.uid, metrics.EvictionGivenUp, fmt.Sprintf("Gave up after %v without progress. %s", now.Sub(since).Round(time.Second), message), now)
			// One at a time: that was progress for the others, which wait again.
			member.stage, progress = released, now
			continue
		}
		next = min(next, patience)
		turn.report(message, eta)
	}
	return next
}

// lookBack returns when a pod of the set was passed on or has left for the last time, and the
// names of those that were passed on: the pod that has such a name now may be another one,
// whatever the caches know of the end of the first. Each pod counts once: one that becomes
// ready and unready for ever is no progress, so that it makes nobody wait for ever. Times that
// are ahead are of another clock, and do not count. It is called with the lock.
func (p *evictionPacer) lookBack(key string, now time.Time) (progress time.Time, replaced sets.Set[string]) {
	replaced = sets.New[string]()
	progressed := func(at time.Time) {
		if !at.After(now) {
			progress = laterOf(progress, at)
		}
	}
	for _, verdict := range p.verdicts[key] {
		progressed(verdict.at)
	}
	requests, err := p.requests.ByIndex(statefulSetIndex, key)
	if err != nil {
		return progress, replaced // The index was added when the pacer was made.
	}
	for _, obj := range requests {
		request := obj.(*coordinationv1alpha1.EvictionRequest)
		completed := ownCompletion(request)
		if completed != nil {
			progressed(*completed)
		}
		if passedOn := completed != nil || p.verdicts[key][types.UID(request.Name)] != nil; passedOn && evictionStageOf(request) != stays {
			replaced.Insert(request.Spec.Target.Pod.Name)
		}
		if evicted := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionEvicted)); evicted != nil && evicted.Status == metav1.ConditionTrue {
			progressed(evicted.LastTransitionTime.Time)
		}
	}
	return progress, replaced
}

// requestOf returns the request about a pod, or nil. It has the UID of the pod as its name.
func (p *evictionPacer) requestOf(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	request, err := p.requestLister.EvictionRequests(pod.Namespace).Get(string(pod.UID))
	if err != nil {
		return nil
	}
	return request
}

// declineOthers ends the turns that there is nothing to pace for. It is called with the lock.
func (p *evictionPacer) declineOthers(key string, set *apps.StatefulSet, now time.Time) {
	for uid, turn := range p.turns[key] {
		pod, err := p.ssc.podLister.Pods(turn.pod.Namespace).Get(turn.pod.Name)
		if err != nil || pod.UID != turn.uid {
			// It is gone, and its request will soon say so, or its cache is behind.
			if now.Sub(turn.taken) >= evictionProgressDeadline {
				p.decide(key, uid, metrics.EvictionDeclined, "Passed on: the pod is not found.", now)
			}
			p.queue.AddAfter(key, evictionRetryInterval)
			continue
		}
		if outcome, message := reasonNotToPace(set, pod); message != "" {
			p.decide(key, uid, outcome, message, now)
		}
	}
}

// reasonNotToPace says why a pod does not wait for others of its set, which may be nil, or "".
func reasonNotToPace(set *apps.StatefulSet, pod *v1.Pod) (metrics.EvictionOutcome, string) {
	ref := metav1.GetControllerOfNoCopy(pod)
	switch {
	case isTerminating(pod):
		return metrics.EvictionGone, "The pod terminates."
	case isFailed(pod) || isSucceeded(pod):
		return metrics.EvictionGone, "The pod has ended."
	case ref == nil || ref.Kind != controllerKind.Kind || set == nil || ref.UID != set.UID || !isMemberOf(set, pod):
		return metrics.EvictionDeclined, "Passed on: no StatefulSet controls the pod."
	case set.DeletionTimestamp != nil:
		return metrics.EvictionDeclined, fmt.Sprintf("Passed on: StatefulSet %s is being deleted.", set.Name)
	case set.Spec.UpdateStrategy.Type != apps.RollingUpdateStatefulSetStrategyType:
		return metrics.EvictionDeclined, fmt.Sprintf("Passed on: the update strategy of StatefulSet %s is %s.", set.Name, set.Spec.UpdateStrategy.Type)
	}
	return "", ""
}

// decide ends a turn, if it has begun. It is called with the lock.
func (p *evictionPacer) decide(key string, uid types.UID, outcome metrics.EvictionOutcome, message string, now time.Time) {
	turn := p.turns[key][uid]
	if turn == nil || turn.decided || p.verdicts[key][uid] != nil {
		return
	}
	if p.verdicts[key] == nil {
		p.verdicts[key] = map[types.UID]*evictionVerdict{}
	}
	p.verdicts[key][uid] = &evictionVerdict{request: turn.request, outcome: outcome, message: message, at: now, began: turn.began}
	turn.finish(message)
}

// confirm forgets the verdicts that the cache shows the end of, and tells people what came
// of them. It is called with the lock.
func (p *evictionPacer) confirm(ctx context.Context, key, namespace string, set *apps.StatefulSet) {
	for uid, verdict := range p.verdicts[key] {
		request, err := p.requestLister.EvictionRequests(namespace).Get(string(uid))
		if err != nil || request.UID != verdict.request {
			request = nil // It was there when its turn began, so it was deleted.
		}
		outcome := verdict.outcome
		switch stage := evictionStageOf(request); {
		case stage == asked:
			continue
		case stage == stays:
			outcome = metrics.EvictionCanceled
		case ownCompletion(request) != nil:
			p.announce(ctx, set, request, verdict)
		case evictionrequest.StateOf(request) == evictionrequest.StateEvicted:
			outcome = metrics.EvictionGone
		default:
			outcome = metrics.EvictionLost
		}
		metrics.EvictionTurnOver(outcome, verdict.at.Sub(verdict.began))
		delete(p.verdicts[key], uid)
	}
	if len(p.verdicts[key]) == 0 {
		delete(p.verdicts, key)
	}
}

// announce records an event about the set, which is where people look when its pods move.
func (p *evictionPacer) announce(ctx context.Context, set *apps.StatefulSet, request *coordinationv1alpha1.EvictionRequest, verdict *evictionVerdict) {
	pod := request.Spec.Target.Pod.Name
	klog.FromContext(ctx).Info("Passed on the eviction of a pod of a StatefulSet", "pod", klog.KRef(request.Namespace, pod), "outcome", verdict.outcome, "message", verdict.message)
	if set == nil {
		return
	}
	switch verdict.outcome {
	case metrics.EvictionReleased:
		p.recorder.Eventf(set, v1.EventTypeNormal, EvictionReleasedReason, "Pod %s, which was asked to leave, may be evicted now", pod)
	case metrics.EvictionGivenUp:
		p.recorder.Eventf(set, v1.EventTypeWarning, EvictionPacingGivenUpReason, "Pod %s may be evicted now, although too many pods are unavailable: %s", pod, verdict.message)
	}
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
