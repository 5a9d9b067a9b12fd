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
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"k8s.io/kubernetes/pkg/controller/deployment/metrics"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/pkg/controller/util/consistency"
)

// maxConcurrentTurns is how many pods may be moved at the same time. A turn is a goroutine
// that waits; what bounds the work is maxSurge of each Deployment.
const maxConcurrentTurns = 100000

// requestPatience is how long a surge from before a restart is left alone while nothing is
// known of the requests. After that there are none: the API server does not serve them.
const requestPatience = 2 * time.Minute

// doubtTimeout is how long a write may take effect whose answer was lost, and may be missing in
// the cache. The API server works on a request for a minute at most.
const doubtTimeout = 2 * time.Minute

// surger makes Deployments surge before their pods are evicted: interceptor
// deployment.apps.k8s.io (KEP-4563, "Pod Surge Example").
//
// Its decisions are made in the sync of the Deployment, so that nobody else writes
// spec.replicas of a ReplicaSet meanwhile: surgeForEvictions looks at all ReplicaSets and
// their pods, and nextSurge (eviction_plan.go) says what should be. The rest of the sync
// works on ReplicaSets without their surge, and writeReplicaSet adds it again.
//
// What is reported of a pod goes through the turns: takeTurn holds one open for as long as
// it is the Deployment's, and the sync tells it what to say and when it is over.
//
// A nil surger does nothing: the gate DeploymentPodSurge is off.
type surger struct {
	dc *DeploymentController
	// client is for scaling alone. Turns report with another one: while many do, its limits
	// make them wait, and a worker of the controller must not wait with them.
	client clientset.Interface
	clock  clock.WithTicker
	// requests is the cache of eviction requests. Most pods have none, and a lister would make
	// an error for each of them.
	requests cache.Indexer
	// requestsSynced is not waited for when the controller starts: that could be for ever.
	requestsSynced cache.InformerSynced
	// started is when it was asked for first.
	started     time.Time
	starting    sync.Once
	interceptor *evictionrequest.Interceptor

	// written knows which writes of a surge the cache of ReplicaSets has not seen. Without the
	// surge, a rollout would take its room.
	written consistency.ConsistencyStore
	// rolled knows which writes of the rest of the sync it has not seen. Until it has, no surge
	// grows: it would take the room that a rollout has taken.
	rolled consistency.ConsistencyStore

	lock sync.Mutex
	// moves are the turns that are open, by the UID of the pod.
	moves map[types.UID]*move
	// doubts are the writes of the rest of the sync whose answers were lost, by the UID of the
	// Deployment and the name of the ReplicaSet. Until they are over, no surge grows either.
	doubts map[types.UID]map[string]doubt
	// progress is what the condition of a Deployment should say, by its UID. It is there
	// for Deployments that have something to say.
	progress map[types.UID]progress
}

// doubt is a write of a ReplicaSet of which nobody knows whether it takes effect.
type doubt struct {
	// version is the resourceVersion that the write is for, and empty if it creates.
	version string
	// until is when it would have taken effect, and be in the cache.
	until time.Time
}

// move is one turn of the Deployment controller.
type move struct {
	turn           *evictionrequest.Turn
	namespace, pod string
	uid            types.UID
	// deployment is whose turn it is; only takeTurn writes it, under the lock.
	deployment types.UID
	// taken is when this process has taken the turn, beat and eta the last heartbeat and the ETA
	// of an earlier one that has held it, or zero.
	taken, beat, eta time.Time
	// heard is when the Deployment has said something last. Guarded by the lock of the surger.
	heard time.Time
	// wake tells that the pod may belong to somebody else by now.
	wake chan struct{}
	// over gets how it ended, once.
	over chan verdict
}

// SurgeForEvictions makes the controller an interceptor. It is called before Run. One client
// is for reports and the other for scaling, each with rate limits of its own.
func (dc *DeploymentController) SurgeForEvictions(requests coordinationinformers.EvictionRequestInformer, deployments appsinformers.DeploymentInformer, replicaSets appsinformers.ReplicaSetInformer, pods coreinformers.PodInformer, reportClient, client clientset.Interface) error {
	s := &surger{
		dc:             dc,
		client:         client,
		clock:          clock.RealClock{},
		requests:       requests.Informer().GetIndexer(),
		requestsSynced: requests.Informer().HasSynced,
		written:        newConsistencyStore(replicaSets),
		rolled:         newConsistencyStore(replicaSets),
		moves:          map[types.UID]*move{},
		doubts:         map[types.UID]map[string]doubt{},
		progress:       map[types.UID]progress{},
	}
	var err error
	s.interceptor, err = evictionrequest.NewInterceptor(evictionrequest.InterceptorConfig{
		Client:        reportClient,
		Name:          coordinationv1alpha1.EvictionInterceptorDeployment,
		Handle:        s.takeTurn,
		MaxConcurrent: maxConcurrentTurns,
		Informer:      requests,
	})
	if err != nil {
		return fmt.Errorf("creating the interceptor %s: %w", coordinationv1alpha1.EvictionInterceptorDeployment, err)
	}
	if err := s.watch(requests, deployments, replicaSets, pods); err != nil {
		return err
	}
	metrics.Register()
	dc.surger = s
	return nil
}

func newConsistencyStore(replicaSets appsinformers.ReplicaSetInformer) consistency.ConsistencyStore {
	return consistency.NewConsistencyStore(map[schema.GroupResource]consistency.LastSyncRVGetter{
		apps.Resource("replicasets"): replicaSets.Informer().GetStore(),
	})
}

// InterceptEvictions takes the turns until the context ends.
func (dc *DeploymentController) InterceptEvictions(ctx context.Context) error {
	// If that fails, the context has ended, and Run only ends what was begun without it.
	cache.WaitForNamedCacheSyncWithContext(ctx, dc.dListerSynced, dc.rsListerSynced, dc.podListerSynced)
	return dc.surger.interceptor.Run(ctx)
}

// surgeForEvictions gives each ReplicaSet the surge that it should have, and returns the
// ReplicaSets as they are without. Each pod whose turn it is hears how it stands.
//
// What it returns is an error only where the rest of the sync could do nothing either: the
// cache is behind, or has been overtaken. Whatever else fails concerns the surge alone.
func (dc *DeploymentController) surgeForEvictions(ctx context.Context, d *apps.Deployment, rsList []*apps.ReplicaSet, podMap map[types.UID][]*v1.Pod) ([]*apps.ReplicaSet, error) {
	s := dc.surger
	if s == nil {
		return rsList, nil
	}
	if err := s.written.EnsureReady(types.NamespacedName{Namespace: d.Namespace, Name: d.Name}); err != nil {
		return nil, err
	}
	now := s.clock.Now()
	w := s.observe(ctx, now, d, rsList, podMap)
	behind := s.rolled.EnsureReady(types.NamespacedName{Namespace: d.Namespace, Name: d.Name}) != nil
	w.blind = behind || !s.knowsRequests(now)
	// A cache that is behind cannot end a doubt: it may show what was written before.
	w.doubtful = !behind && s.inDoubt(d, now)
	w.failure = s.apply(ctx, w)
	if !w.blind {
		// Also after a failure: however long it lasts, pods wait no longer than their deadline.
		s.report(now, w)
	}
	if next := w.nextLook(now); next > 0 {
		dc.enqueueAfter(d, next)
	}
	if apierrors.IsConflict(w.failure) {
		return nil, w.failure
	}
	return w.views(), nil
}

// knowsRequests tells whether the requests can be believed to be all that there are.
func (s *surger) knowsRequests(now time.Time) bool {
	s.starting.Do(func() { s.started = now })
	return s.requestsSynced() || now.Sub(s.started) >= requestPatience
}

// apply writes the surge of each ReplicaSet where it is to change.
func (s *surger) apply(ctx context.Context, w *workload) error {
	for _, set := range w.sets {
		next := w.next(set)
		if set.isAtRest(next) {
			continue
		}
		rs := w.target(set, next)
		if isUpToDate(set.stored, rs) {
			continue
		}
		updated, err := s.client.AppsV1().ReplicaSets(rs.Namespace).Update(ctx, rs, metav1.UpdateOptions{})
		if err != nil {
			return fmt.Errorf("scaling ReplicaSet %s to %d, %d of them for evictions: %w", klog.KObj(rs), *rs.Spec.Replicas, next.Surge, err)
		}
		s.written.WroteAt(types.NamespacedName{Namespace: w.deployment.Namespace, Name: w.deployment.Name}, w.deployment.UID, apps.Resource("replicasets"), updated.ResourceVersion)
		s.recordSurge(w.deployment, set, next)
		if set.view, set.kept, err = deploymentutil.WithoutEvictionSurge(updated, int(next.Surge)); err != nil {
			return err
		}
	}
	return nil
}

// recordSurge tells people of a surge that was written.
func (s *surger) recordSurge(d *apps.Deployment, set *replicaSet, next deploymentutil.EvictionSurge) {
	from, to := *set.stored.Spec.Replicas, int32(set.wanted)+next.Surge
	if grown := next.Surge - set.kept.Surge; grown > 0 {
		metrics.SurgesStarted(int(grown))
	}
	switch {
	case to == from:
	case *set.view.Spec.Replicas != int32(set.wanted) && next.Surge > 0:
		s.dc.eventRecorder.Eventf(d, v1.EventTypeNormal, "ScalingReplicaSet", "Scaled replica set %s from %d to %d, %d of them for pods that should leave their nodes", set.stored.Name, from, to, next.Surge)
	case *set.view.Spec.Replicas != int32(set.wanted):
		s.dc.eventRecorder.Eventf(d, v1.EventTypeNormal, "ScalingReplicaSet", "Scaled replica set %s from %d to %d", set.stored.Name, from, to)
	case to > from:
		s.dc.eventRecorder.Eventf(d, v1.EventTypeNormal, "EvictionSurge", "Scaled up replica set %s from %d to %d, for the replacement of %s", set.stored.Name, from, to, pods(set.toLeave()))
	case to < from && len(next.Leaving) > 0:
		s.dc.eventRecorder.Eventf(d, v1.EventTypeNormal, "EvictionSurge", "Scaled down replica set %s from %d to %d: replacements are available, so that %s can leave", set.stored.Name, from, to, pods(len(next.Leaving)))
	case to < from:
		s.dc.eventRecorder.Eventf(d, v1.EventTypeNormal, "EvictionSurge", "Scaled down replica set %s from %d to %d: no replacements are needed any more", set.stored.Name, from, to)
	}
}

// writeReplicaSet updates a ReplicaSet that surgeForEvictions has returned, and which
// therefore lacks its surge.
func (dc *DeploymentController) writeReplicaSet(ctx context.Context, view *apps.ReplicaSet) (*apps.ReplicaSet, error) {
	if dc.surger == nil {
		return dc.client.AppsV1().ReplicaSets(view.Namespace).Update(ctx, view, metav1.UpdateOptions{})
	}
	updated, err := dc.client.AppsV1().ReplicaSets(view.Namespace).Update(ctx, deploymentutil.WithEvictionSurge(view), metav1.UpdateOptions{})
	dc.surger.noteRollout(view, updated, err)
	if err != nil {
		return updated, err
	}
	// The bound of a surge was held when it was read.
	updated, _, err = deploymentutil.WithoutEvictionSurge(updated, math.MaxInt)
	return updated, err
}

// noteRollout remembers what the rest of the sync has written: what it has sent, and the outcome
// of the call.
func (s *surger) noteRollout(sent, stored *apps.ReplicaSet, err error) {
	d := metav1.GetControllerOf(sent)
	if s == nil || d == nil {
		return
	}
	if err == nil {
		s.rolled.WroteAt(types.NamespacedName{Namespace: sent.Namespace, Name: d.Name}, d.UID, apps.Resource("replicasets"), stored.ResourceVersion)
		return
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError {
		return // It was rejected.
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.doubts[d.UID] == nil {
		s.doubts[d.UID] = map[string]doubt{}
	}
	s.doubts[d.UID][sent.Name] = doubt{version: sent.ResourceVersion, until: s.clock.Now().Add(doubtTimeout)}
}

// inDoubt reports whether the cache may lack a write whose answer was lost. When it shows another
// version, that is the one that was written, or the write fails with a conflict.
func (s *surger) inDoubt(d *apps.Deployment, now time.Time) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	for name, doubt := range s.doubts[d.UID] {
		version := ""
		if rs, err := s.dc.rsLister.ReplicaSets(d.Namespace).Get(name); err == nil {
			version = rs.ResourceVersion
		}
		if version != doubt.version || !now.Before(doubt.until) {
			delete(s.doubts[d.UID], name)
		}
	}
	if len(s.doubts[d.UID]) > 0 {
		return true
	}
	delete(s.doubts, d.UID)
	return false
}

// report tells every open turn how it stands, and remembers what the condition should say.
func (s *surger) report(now time.Time, w *workload) {
	verdicts := map[types.UID]verdict{}
	for _, set := range w.sets {
		w.verdicts(now, set, verdicts)
	}
	moves := map[*move]verdict{}
	s.lock.Lock()
	if p := w.progress(); p.inProgress() {
		s.progress[w.deployment.UID] = p
	} else {
		delete(s.progress, w.deployment.UID)
	}
	for uid, verdict := range verdicts {
		// One that was begun since is looked at again: what it waited for is not in this.
		if m := s.moves[uid]; m != nil && !m.taken.After(now) {
			m.heard = now
			moves[m] = verdict
		}
	}
	s.lock.Unlock()
	for m, verdict := range moves {
		if verdict.outcome != "" {
			m.finish(verdict)
		} else {
			m.turn.SetMessage(verdict.message)
			m.turn.SetExpectedFinishTime(verdict.eta)
		}
	}
}

// finish ends the turn. Only the first verdict counts.
func (m *move) finish(v verdict) {
	select {
	case m.over <- v:
	default:
	}
}

// takeTurn holds the turn for one pod open until the Deployment is done with it.
func (s *surger) takeTurn(ctx context.Context, turn *evictionrequest.Turn) error {
	m := s.begin(turn)
	defer s.end(m)
	// A Deployment that cannot be synced says nothing, and its key is dropped in the end.
	ticker := s.clock.NewTicker(retryAfter)
	defer ticker.Stop()
	for {
		d, known := s.deploymentOf(ctx, m.namespace, m.pod, m.uid)
		if known && d == nil {
			return s.conclude(turn, verdict{outcome: metrics.Declined, message: "No Deployment controls the pod."})
		}
		if d != nil {
			s.assign(m, d)
		}
		select {
		case <-ctx.Done():
			if outcome := outcomeOf(context.Cause(ctx)); outcome != "" {
				metrics.TurnOver(outcome, s.clock.Since(turnBegan(turn.Request(), s.clock.Now())))
			}
			return context.Cause(ctx)
		case v := <-m.over:
			return s.conclude(turn, v)
		case <-m.wake:
		case <-ticker.C():
			if silence := s.silence(m); silence >= defaultProgressDeadline {
				return s.conclude(turn, verdict{outcome: metrics.GivenUp, message: fmt.Sprintf("Gave up: the Deployment could not be looked at for %v.", silence.Round(time.Second))})
			}
		}
	}
}

// silence returns for how long the Deployment has said nothing about a pod.
func (s *surger) silence(m *move) time.Duration {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.clock.Since(m.heard)
}

// conclude completes a turn with these last words.
func (s *surger) conclude(turn *evictionrequest.Turn, v verdict) error {
	metrics.TurnOver(v.outcome, s.clock.Since(turnBegan(turn.Request(), s.clock.Now())))
	return evictionrequest.Decline(v.message)
}

// outcomeOf says how a turn has ended that the Deployment has not ended itself. It is empty
// if the turn goes on elsewhere.
func outcomeOf(cause error) metrics.Outcome {
	switch {
	case errors.Is(cause, evictionrequest.ErrEvicted):
		return metrics.Completed
	case errors.Is(cause, evictionrequest.ErrCanceled), errors.Is(cause, evictionrequest.ErrRequestGone):
		return metrics.Canceled
	case errors.Is(cause, evictionrequest.ErrTurnLost):
		return metrics.Lost
	}
	return ""
}

func (s *surger) begin(turn *evictionrequest.Turn) *move {
	target, now := turn.Request().Spec.Target.Pod, s.clock.Now()
	m := &move{
		turn:      turn,
		namespace: turn.Request().Namespace,
		pod:       target.Name,
		uid:       types.UID(target.UID),
		wake:      make(chan struct{}, 1),
		over:      make(chan verdict, 1),
		heard:     now,
		taken:     now,
	}
	m.beat, m.eta = lastReport(turn.Request(), now)
	s.lock.Lock()
	defer s.lock.Unlock()
	s.moves[m.uid] = m
	return m
}

// assign notes to which Deployment the pod belongs, and has it look.
func (s *surger) assign(m *move, d *apps.Deployment) {
	s.lock.Lock()
	m.deployment = d.UID
	s.lock.Unlock()
	s.dc.enqueueDeployment(d)
}

// end forgets a turn. The Deployment looks once more: what is over may have been canceled.
func (s *surger) end(m *move) {
	s.lock.Lock()
	if s.moves[m.uid] == m { // And not one that was begun since.
		delete(s.moves, m.uid)
	}
	s.lock.Unlock()
	if d, _ := s.deploymentOf(context.TODO(), m.namespace, m.pod, m.uid); d != nil {
		s.dc.enqueueDeployment(d)
	}
}

func pods(count int) string {
	if count == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", count)
}
