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
	"k8s.io/apimachinery/pkg/util/sets"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	policyinformers "k8s.io/client-go/informers/policy/v1"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"k8s.io/kubernetes/pkg/controller/deployment/metrics"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/pkg/controller/util/consistency"
	"k8s.io/kubernetes/pkg/controller/util/evictionpacing"
	"k8s.io/kubernetes/pkg/controller/util/evictionturn"
)

// maxConcurrentTurns limits the number of open turns. A turn is a waiting goroutine and cheap; the
// maxSurge of each Deployment limits the actual work.
const maxConcurrentTurns = 100000

// requestSyncTimeout is how long existing surges are left alone after a restart while the informer
// of eviction requests has not synced. After that, the API server is assumed not to serve them.
const requestSyncTimeout = 2 * time.Minute

// uncertainWriteTimeout is how long a write whose response was lost may still take effect or be
// missing from the cache. The API server processes a request for at most one minute.
const uncertainWriteTimeout = 2 * time.Minute

// surgeWriteTimeout limits a write of a surge, which one of the few workers waits for. It is longer than the default
// timeout of an admission webhook: then the answer of the API server names the webhook that hangs.
const surgeWriteTimeout = 15 * time.Second

// surger makes Deployments surge before their pods are evicted. It is the interceptor
// deployment.apps.k8s.io (KEP-4563, "Pod Surge Example").
//
// It decides during the sync of the Deployment, so that no other worker writes spec.replicas of a
// ReplicaSet at the same time: surgeForEvictions reads all ReplicaSets and their pods, and
// nextSurge (eviction_plan.go) computes the surge. The rest of the sync works on ReplicaSets
// without their surge, and writeReplicaSet adds it again.
//
// Progress of a pod is reported through its turn: takeTurn keeps the turn open while the
// Deployment is the active interceptor, and the sync provides the message and ends the turn.
//
// Where the Deployment does not surge, the sync lets one pod leave after another instead
// (eviction_pacing.go).
//
// A nil surger does nothing: the gate DeploymentPodSurge is off.
type surger struct {
	dc *DeploymentController
	// client only scales. Turns report and read with another client: with many open turns its rate limit
	// delays them, and must not delay the workers of the controller.
	client, reportClient clientset.Interface
	clock                clock.WithTicker
	// live reads which pods were released.
	live *evictionpacing.LiveReleases
	// requests is the cache of eviction requests. It is used without a lister because most pods
	// have no request, and a lister would allocate an error for each of them.
	requests cache.Indexer
	// requestsSynced does not delay the start of the controller, because the API server may never
	// serve eviction requests.
	requestsSynced cache.InformerSynced
	// nodeLister says which nodes maintenances claim, and budgets how many pods their owners permit to be disrupted.
	nodeLister  corelisters.NodeLister
	budgets     *poddisruptionbudget.Index
	factsSynced []cache.InformerSynced
	unready     evictionturn.Unready
	// started is when knowsRequests was first called.
	started     time.Time
	starting    sync.Once
	interceptor *evictionrequest.Interceptor

	// surgeWrites tracks the writes of surges that the cache of ReplicaSets has not seen yet.
	// Without them, a rollout would use the room of the surge.
	surgeWrites consistency.ConsistencyStore
	// rolloutWrites tracks the writes of the rest of the sync that the cache has not seen yet. No
	// surge grows before it has: it would use the room of the rollout.
	rolloutWrites consistency.ConsistencyStore

	lock sync.Mutex
	// openTurns are the open turns by the UID of their pod.
	openTurns map[types.UID]*openTurn
	// uncertainWrites are the writes of the rest of the sync whose responses were lost, by the UID
	// of the Deployment and the name of the ReplicaSet. While there are any, no surge grows.
	uncertainWrites map[types.UID]map[string]uncertainWrite
	// written are the surges that this process has written last, by the UID of the Deployment.
	written map[types.UID]*writtenSurge
	// releases are the pods that this process has released, by the UID of the Deployment.
	releases map[types.UID]releases
	// misplaced are the Deployments with a pod that came to a node that maintenances claimed, by the name of the node:
	// when they release it, the pod is a replacement.
	misplaced map[string]sets.Set[types.UID]
	// progress is what the condition of a Deployment reports, by UID. It has no entry for a
	// Deployment without the condition.
	progress map[types.UID]progress
}

// uncertainWrite is a write of a ReplicaSet that may or may not take effect.
type uncertainWrite struct {
	// version is the resourceVersion that the write is based on. It is empty for a create.
	version string
	// until is when the write has been processed and has reached the cache, if it succeeded.
	until time.Time
}

// openTurn is one turn of the Deployment controller.
type openTurn struct {
	turn           *evictionrequest.Turn
	namespace, pod string
	uid            types.UID
	// deployment is the UID of the Deployment of the pod. Only takeTurn writes it, with the lock.
	deployment types.UID
	// history is what the request says about earlier processes that had the turn.
	history evictionturn.History
	// reported is when a sync of the Deployment last reported on the pod. Guarded by the lock of
	// the surger.
	reported time.Time
	// wake signals that the owner of the pod may have changed.
	wake chan struct{}
	// done receives the result of the turn, once.
	done chan turnResult
}

// SurgeInformers are the informers of what a surge depends on.
type SurgeInformers struct {
	Requests    coordinationinformers.EvictionRequestInformer
	Deployments appsinformers.DeploymentInformer
	ReplicaSets appsinformers.ReplicaSetInformer
	Pods        coreinformers.PodInformer
	Nodes       coreinformers.NodeInformer
	Budgets     policyinformers.PodDisruptionBudgetInformer
}

// SurgeForEvictions makes the controller an interceptor. It must be called before Run. reportClient
// reports and client scales; each has its own rate limit.
func (dc *DeploymentController) SurgeForEvictions(informers SurgeInformers, reportClient, client clientset.Interface) error {
	requests, deployments, replicaSets, pods := informers.Requests, informers.Deployments, informers.ReplicaSets, informers.Pods
	budgets, err := poddisruptionbudget.IndexOf(informers.Budgets.Informer().GetIndexer())
	if err != nil {
		return err
	}
	s := &surger{
		dc:              dc,
		client:          client,
		reportClient:    reportClient,
		clock:           clock.RealClock{},
		live:            evictionpacing.NewLiveReleases(reportClient, isReleased),
		requests:        requests.Informer().GetIndexer(),
		requestsSynced:  requests.Informer().HasSynced,
		nodeLister:      informers.Nodes.Lister(),
		budgets:         budgets,
		factsSynced:     []cache.InformerSynced{informers.Nodes.Informer().HasSynced, informers.Budgets.Informer().HasSynced},
		surgeWrites:     newConsistencyStore(replicaSets),
		rolloutWrites:   newConsistencyStore(replicaSets),
		openTurns:       map[types.UID]*openTurn{},
		uncertainWrites: map[types.UID]map[string]uncertainWrite{},
		written:         map[types.UID]*writtenSurge{},
		releases:        map[types.UID]releases{},
		misplaced:       map[string]sets.Set[types.UID]{},
		progress:        map[types.UID]progress{},
	}
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
	if _, err := informers.Nodes.Informer().AddEventHandler(s.nodeHandler()); err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	if _, err := informers.Budgets.Informer().AddEventHandler(s.budgetHandler()); err != nil {
		return fmt.Errorf("watching pod disruption budgets: %w", err)
	}
	metrics.Register()
	metrics.Track(s.countSurges)
	dc.surger = s
	return nil
}

func newConsistencyStore(replicaSets appsinformers.ReplicaSetInformer) consistency.ConsistencyStore {
	return consistency.NewConsistencyStore(map[schema.GroupResource]consistency.LastSyncRVGetter{
		apps.Resource("replicasets"): replicaSets.Informer().GetStore(),
	})
}

// InterceptEvictions runs the interceptor until the context is canceled.
func (dc *DeploymentController) InterceptEvictions(ctx context.Context) error {
	// If the caches do not sync, the context has been canceled. Run must be called even then: it
	// shuts down what was started without it.
	synced := append([]cache.InformerSynced{dc.dListerSynced, dc.rsListerSynced, dc.podListerSynced}, dc.surger.factsSynced...)
	cache.WaitForNamedCacheSyncWithContext(ctx, synced...)
	return dc.surger.interceptor.Run(ctx)
}

// surgeForEvictions applies the surge of each ReplicaSet, reports on each pod whose turn is open,
// and returns the ReplicaSets without their surge.
//
// It only returns an error if the rest of the sync could not succeed either: the cache is behind,
// or a write had a conflict. All other failures concern the surge alone.
func (dc *DeploymentController) surgeForEvictions(ctx context.Context, d *apps.Deployment, rsList []*apps.ReplicaSet) ([]*apps.ReplicaSet, error) {
	s := dc.surger
	if s == nil {
		return rsList, nil
	}
	if err := s.surgeWrites.EnsureReady(types.NamespacedName{Namespace: d.Namespace, Name: d.Name}); err != nil {
		return nil, err
	}
	podMap, err := dc.getPodMapForDeployment(d, rsList)
	if err != nil {
		return nil, err
	}
	now := s.clock.Now()
	w := s.observe(ctx, now, d, rsList, podMap)
	behind := s.rolloutWrites.EnsureReady(types.NamespacedName{Namespace: d.Namespace, Name: d.Name}) != nil
	w.incomplete = behind || !s.knowsRequests(now)
	// A cache that is behind may still show the old version, which resolves no uncertain write.
	w.uncertain = !behind && s.hasUncertainWrite(d, now)
	w.failure = s.apply(ctx, w)
	if !w.incomplete {
		// Report also after a failure: pods wait no longer than their deadline, however long it
		// lasts.
		s.report(now, w)
	}
	if next := w.requeueAfter(now); next > 0 {
		dc.enqueueAfter(d, next)
	}
	if apierrors.IsConflict(w.failure) {
		return nil, w.failure
	}
	return w.views(), nil
}

// knowsRequests reports whether the cache of eviction requests can be considered complete.
func (s *surger) knowsRequests(now time.Time) bool {
	s.starting.Do(func() { s.started = now })
	return s.requestsSynced() || now.Sub(s.started) >= requestSyncTimeout
}

// apply writes each ReplicaSet whose surge changes.
func (s *surger) apply(ctx context.Context, w *workload) error {
	for _, set := range w.sets {
		next := w.next(set)
		if set.isAtRest(next) {
			continue
		}
		rs := w.target(set, next)
		if isUpToDate(set.stored, rs) || set.isPaced(rs) {
			continue
		}
		updated, err := s.writeSurge(ctx, rs)
		if err != nil {
			if !isRefused(err) {
				s.noteUnanswered(w.deployment.UID)
			}
			// The cause is first, because messages are cut.
			return fmt.Errorf("%w (when scaling ReplicaSet %s to %d, including an eviction surge of %d)", err, klog.KObj(rs), *rs.Spec.Replicas, next.Surge)
		}
		s.surgeWrites.WroteAt(types.NamespacedName{Namespace: w.deployment.Namespace, Name: w.deployment.Name}, w.deployment.UID, apps.Resource("replicasets"), updated.ResourceVersion)
		s.recordSurge(w.deployment, set, next)
		s.noteSurge(w.now, w, set, rs, next)
		if set.view, set.recorded, err = deploymentutil.WithoutEvictionSurge(updated, int(next.Surge)); err != nil {
			return err
		}
	}
	return nil
}

// writeSurge updates a ReplicaSet whose surge changes.
func (s *surger) writeSurge(ctx context.Context, rs *apps.ReplicaSet) (*apps.ReplicaSet, error) {
	limited, cancel := context.WithTimeout(ctx, surgeWriteTimeout)
	defer cancel()
	updated, err := s.client.AppsV1().ReplicaSets(rs.Namespace).Update(limited, rs, metav1.UpdateOptions{})
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("no answer within %v, perhaps because an admission webhook for ReplicaSets hangs: %w", surgeWriteTimeout, err)
	}
	return updated, err
}

// recordSurge records metrics and events of a surge that was written.
func (s *surger) recordSurge(d *apps.Deployment, set *replicaSet, next deploymentutil.EvictionSurge) {
	from, to := *set.stored.Spec.Replicas, int32(set.wanted)+next.Surge
	if grown := next.Surge - set.recorded.Surge; grown > 0 {
		metrics.SurgesStarted(int(grown))
	}
	switch {
	case to == from:
	case *set.view.Spec.Replicas != int32(set.wanted) && next.Surge > 0:
		s.dc.eventRecorder.Eventf(d, v1.EventTypeNormal, "ScalingReplicaSet", "Scaled replica set %s from %d to %d, including an eviction surge of %d", set.stored.Name, from, to, next.Surge)
	case *set.view.Spec.Replicas != int32(set.wanted):
		s.dc.eventRecorder.Eventf(d, v1.EventTypeNormal, "ScalingReplicaSet", "Scaled replica set %s from %d to %d", set.stored.Name, from, to)
	case to > from:
		s.dc.eventRecorder.Eventf(d, v1.EventTypeNormal, "EvictionSurge", "Scaled up replica set %s from %d to %d to replace %s before eviction", set.stored.Name, from, to, pods(set.toLeave()))
	case to < from && len(next.Leaving) > 0:
		s.dc.eventRecorder.Eventf(d, v1.EventTypeNormal, "EvictionSurge", "Scaled down replica set %s from %d to %d after the replacement of %s", set.stored.Name, from, to, pods(len(next.Leaving)))
	case to < from:
		s.dc.eventRecorder.Eventf(d, v1.EventTypeNormal, "EvictionSurge", "Scaled down replica set %s from %d to %d: replacements are no longer needed", set.stored.Name, from, to)
	}
}

// writeReplicaSet updates a ReplicaSet that surgeForEvictions returned, and adds the surge that
// was removed from it.
func (dc *DeploymentController) writeReplicaSet(ctx context.Context, view *apps.ReplicaSet) (*apps.ReplicaSet, error) {
	if dc.surger == nil {
		return dc.client.AppsV1().ReplicaSets(view.Namespace).Update(ctx, view, metav1.UpdateOptions{})
	}
	sent := deploymentutil.WithEvictionSurge(view)
	updated, err := dc.client.AppsV1().ReplicaSets(view.Namespace).Update(ctx, sent, metav1.UpdateOptions{})
	dc.surger.noteRollout(sent, updated, err)
	if err != nil {
		return updated, err
	}
	// No bound here: it was applied when the surge was read.
	updated, _, err = deploymentutil.WithoutEvictionSurge(updated, math.MaxInt)
	return updated, err
}

// noteRollout records a write of the rest of the sync: the object sent, the object stored, and the
// error of the call.
func (s *surger) noteRollout(sent, stored *apps.ReplicaSet, err error) {
	d := metav1.GetControllerOf(sent)
	if s == nil || d == nil {
		return
	}
	if err == nil {
		s.rolloutWrites.WroteAt(types.NamespacedName{Namespace: sent.Namespace, Name: d.Name}, d.UID, apps.Resource("replicasets"), stored.ResourceVersion)
		s.noteScaled(d.UID, sent)
		return
	}
	if isRefused(err) {
		return
	}
	s.noteUnanswered(d.UID)
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.uncertainWrites[d.UID] == nil {
		s.uncertainWrites[d.UID] = map[string]uncertainWrite{}
	}
	s.uncertainWrites[d.UID][sent.Name] = uncertainWrite{version: sent.ResourceVersion, until: s.clock.Now().Add(uncertainWriteTimeout)}
}

// isRefused reports whether a write that has failed had no effect.
func isRefused(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError
}

// hasUncertainWrite reports whether the cache may lack a write whose response was lost. Another
// version in the cache resolves the write: it is either the written one, or the write has failed
// with a conflict.
func (s *surger) hasUncertainWrite(d *apps.Deployment, now time.Time) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	for name, write := range s.uncertainWrites[d.UID] {
		version := ""
		if rs, err := s.dc.rsLister.ReplicaSets(d.Namespace).Get(name); err == nil {
			version = rs.ResourceVersion
		}
		if version != write.version || !now.Before(write.until) {
			delete(s.uncertainWrites[d.UID], name)
		}
	}
	if len(s.uncertainWrites[d.UID]) > 0 {
		return true
	}
	delete(s.uncertainWrites, d.UID)
	return false
}

// countSurges returns the number of replicas that replace pods before their eviction.
func (s *surger) countSurges() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	count := 0
	for _, p := range s.progress {
		count += p.surge
	}
	return count
}

// report reports on every open turn and records what the condition should say.
func (s *surger) report(now time.Time, w *workload) {
	results := map[types.UID]turnResult{}
	if deploymentutil.PacesEvictions(w.deployment) {
		s.pace(now, w, results)
	} else {
		for _, set := range w.sets {
			w.turnResults(now, set, results)
		}
	}
	reports := map[*openTurn]turnResult{}
	s.lock.Lock()
	if p := w.progress(); p.inProgress() {
		s.progress[w.deployment.UID] = p
	} else {
		delete(s.progress, w.deployment.UID)
	}
	for uid, result := range results {
		// Skip a turn that began after the observation. The Deployment is synced again for it.
		if m := s.openTurns[uid]; m != nil && !m.history.Taken.After(now) {
			m.reported = now
			reports[m] = result
		}
	}
	s.lock.Unlock()
	for m, result := range reports {
		if result.outcome != "" {
			m.finish(result)
		} else {
			m.turn.SetMessage(result.message)
			m.turn.SetExpectedFinishTime(result.eta)
		}
	}
}

// finish ends the turn. Only the first result counts.
func (m *openTurn) finish(result turnResult) {
	select {
	case m.done <- result:
	default:
	}
}

// takeTurn keeps the turn for one pod open until the Deployment ends it.
func (s *surger) takeTurn(ctx context.Context, turn *evictionrequest.Turn) error {
	m := s.begin(turn)
	defer s.end(m)
	// A Deployment that cannot be synced reports nothing, and its key is eventually dropped.
	ticker := s.clock.NewTicker(retryAfter)
	defer ticker.Stop()
	for {
		d, known := s.deploymentOf(ctx, m.namespace, m.pod, m.uid)
		if known && d == nil {
			return s.conclude(turn, turnResult{outcome: metrics.Declined, message: "No Deployment controls the pod."})
		}
		if d != nil {
			s.assign(m, d)
		}
		select {
		case <-ctx.Done():
			if outcome := outcomeOf(context.Cause(ctx)); outcome != "" {
				metrics.TurnOver(outcome, s.clock.Since(evictionturn.Began(turn.Request(), coordinationv1alpha1.EvictionInterceptorDeployment, s.clock.Now())))
			}
			return context.Cause(ctx)
		case result := <-m.done:
			behind, err := s.isBehind(ctx, m, result)
			if err != nil {
				return err // The library takes the turn again, and it ends with the same result.
			}
			if !behind {
				return s.conclude(turn, result)
			}
			s.withdraw(m)
		case <-m.wake:
		case <-ticker.C():
			if silence := s.sinceReport(m); silence >= defaultProgressDeadline {
				return s.conclude(turn, turnResult{outcome: metrics.GivenUp, message: fmt.Sprintf("Gave up: the Deployment was not synced for %v.", silence.Round(time.Second))})
			}
		}
	}
}

// sinceReport returns the time since the last report of the Deployment on a pod.
func (s *surger) sinceReport(m *openTurn) time.Duration {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.clock.Since(m.reported)
}

// conclude completes a turn with a result.
func (s *surger) conclude(turn *evictionrequest.Turn, result turnResult) error {
	metrics.TurnOver(result.outcome, s.clock.Since(evictionturn.Began(turn.Request(), coordinationv1alpha1.EvictionInterceptorDeployment, s.clock.Now())))
	return evictionrequest.Decline(result.message)
}

// outcomeOf returns the outcome of a turn that was ended from outside. It is empty if the turn
// continues in another process.
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

func (s *surger) begin(turn *evictionrequest.Turn) *openTurn {
	target, now := turn.Request().Spec.Target.Pod, s.clock.Now()
	m := &openTurn{
		turn:      turn,
		namespace: turn.Request().Namespace,
		pod:       target.Name,
		uid:       types.UID(target.UID),
		wake:      make(chan struct{}, 1),
		done:      make(chan turnResult, 1),
		reported:  now,
		history:   evictionturn.HistoryOf(turn.Request(), coordinationv1alpha1.EvictionInterceptorDeployment, now),
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.openTurns[m.uid] = m
	return m
}

// assign records the Deployment of the pod and enqueues it.
func (s *surger) assign(m *openTurn, d *apps.Deployment) {
	s.lock.Lock()
	m.deployment = d.UID
	s.lock.Unlock()
	s.dc.enqueueDeployment(d)
}

// end removes a turn and enqueues the Deployment: the request may have been canceled, which ends
// the surge.
func (s *surger) end(m *openTurn) {
	s.lock.Lock()
	if s.openTurns[m.uid] == m { // A newer turn for the pod may have replaced it.
		delete(s.openTurns, m.uid)
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
