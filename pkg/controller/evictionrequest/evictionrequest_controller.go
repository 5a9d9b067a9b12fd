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

package evictionrequest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	policyinformers "k8s.io/client-go/informers/policy/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/util/fairshare"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/metrics"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/podeviction"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/statusfailures"
	"k8s.io/kubernetes/pkg/controller/lifecycleeviction/agreement"
	"k8s.io/kubernetes/pkg/controller/util/serverclock"
	"k8s.io/utils/clock"
)

// Controller takes EvictionRequests through their interceptors. Requesters and interceptors do not
// need to know each other: the controller alone decides which interceptor is active and when a
// request is finished.
type Controller struct {
	requests      cache.Indexer
	requestLister coordinationlisters.EvictionRequestLister
	podLister     corelisters.PodLister
	nodeLister    corelisters.NodeLister
	// pods reads single pods from the API server, where the cache may be stale.
	pods podeviction.Reader
	// groups reads how the PodGroups of pods may be disrupted.
	groups groupReader
	// replicaSets reads which pods ReplicaSets are about to remove.
	replicaSets replicaSetReader

	writer     *requestWriter
	imperative *imperativeInterceptor
	outages    *outages
	// seen holds the pods of open requests that were in the cache once. If such a pod is no longer
	// in the cache, it was deleted.
	seen *podSet
	// labelWrites has when the labels of requests were written.
	labelWrites *labelWrites
	// calls has when the last calls of pods/eviction were seen.
	calls *callsSeen
	// marked holds the times since which pods seem to be about to leave although nobody wants that any more.
	marked *podTimes
	// inherited holds the pods whose deletion another process may have sent that led before, and begun is since when
	// this one leads. Both are written before the workers start; only removals follow.
	inherited *podSet
	begun     time.Time

	// respondersAct is whether responders of lifecycle.k8s.io act, see LetRespondersAct, and compared has which requests
	// were compared with those of that group.
	respondersAct bool
	compared      *agreement.Requests

	sweeper sweeper
	// ttlAfterFinished is how long finished requests are kept. Zero keeps them forever.
	ttlAfterFinished time.Duration

	broadcaster  events.EventBroadcaster
	cachesSynced []cache.InformerSynced
	queue        workqueue.TypedRateLimitingInterface[types.NamespacedName]
	// limitWorkers sets how many workers of the queue its owners share.
	limitWorkers func(workers int)
	owners       *owners
	clock        clock.WithTicker
}

// New returns a controller that reads from the informers, writes through client, evicts through
// evictionClient, and records events through eventClient. Each client has rate limits of its own:
// evictions wait for budgets, and neither status writes, evictions nor events may delay each other.
// Finished requests are deleted after ttlAfterFinished. Zero keeps them.
func New(
	ctx context.Context,
	requestInformer coordinationinformers.EvictionRequestInformer,
	podInformer coreinformers.PodInformer,
	nodeInformer coreinformers.NodeInformer,
	budgetInformer policyinformers.PodDisruptionBudgetInformer,
	client, evictionClient, eventClient clientset.Interface,
	ttlAfterFinished time.Duration,
) (*Controller, error) {
	return NewWithClock(ctx, requestInformer, podInformer, nodeInformer, budgetInformer, client, evictionClient, eventClient, ttlAfterFinished, clock.RealClock{})
}

// LetRespondersAct has the responders of pods act, which report through Evictions of lifecycle.k8s.io, and has requests
// that only requesters of that group may want wait until the controller of package lifecycleeviction has compared them.
// It must be called before Run.
func (c *Controller) LetRespondersAct() error {
	compared, err := agreement.Of(c.requests)
	if err != nil {
		return err
	}
	c.respondersAct, c.compared, c.imperative.compared = true, compared, compared
	return nil
}

// NewWithClock is New with a given clock. Integration tests, which cannot wait for a deadline, use
// a fake clock.
func NewWithClock(
	ctx context.Context,
	requestInformer coordinationinformers.EvictionRequestInformer,
	podInformer coreinformers.PodInformer,
	nodeInformer coreinformers.NodeInformer,
	budgetInformer policyinformers.PodDisruptionBudgetInformer,
	client, evictionClient, eventClient clientset.Interface,
	ttlAfterFinished time.Duration,
	clock clock.WithTicker,
) (*Controller, error) {
	metrics.Register()
	c, err := newController(ctx, requestInformer, podInformer, nodeInformer, budgetInformer, client, eventClient, podeviction.NewEvictor(evictionClient), ttlAfterFinished, clock)
	if err != nil {
		return nil, err
	}
	c.imperative.pods = podeviction.NewReader(evictionClient)
	return c, nil
}

func newController(
	ctx context.Context,
	requestInformer coordinationinformers.EvictionRequestInformer,
	podInformer coreinformers.PodInformer,
	nodeInformer coreinformers.NodeInformer,
	budgetInformer policyinformers.PodDisruptionBudgetInformer,
	client, eventClient clientset.Interface,
	evict podeviction.Evictor,
	ttlAfterFinished time.Duration,
	localClock clock.WithTicker,
) (*Controller, error) {
	budgets, err := poddisruptionbudget.IndexOf(budgetInformer.Informer().GetIndexer())
	if err != nil {
		return nil, err
	}
	clock := serverclock.New(localClock)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: eventClient.EventsV1()})
	failures, err := statusfailures.Of(requestInformer.Informer().GetIndexer())
	if err != nil {
		return nil, err
	}
	writer := newRequestWriter(client, broadcaster.NewRecorder(scheme.Scheme, fieldManager), requestInformer.Informer().GetStore(), clock)
	writer.failures = failures
	outages := newOutages(clock, localClock)
	outages.watchThrough(klog.FromContext(ctx), requestInformer.Informer())
	if err := requestInformer.Informer().SetTransform(evictionrequesttools.ShareMemory()); err != nil {
		klog.FromContext(ctx).V(2).Info("Failed to set the transform of the informer, requests will take more memory", "err", err)
	}
	c := &Controller{
		requests:      requestInformer.Informer().GetIndexer(),
		requestLister: requestInformer.Lister(),
		podLister:     podInformer.Lister(),
		nodeLister:    nodeInformer.Lister(),
		pods:          podeviction.NewReader(client),
		groups:        newGroupReader(client),
		replicaSets:   newReplicaSetReader(client),
		writer:        writer,
		outages:       outages,
		broadcaster:   broadcaster,
		seen:          newPodSet(),
		labelWrites:   newLabelWrites(),
		calls:         newCallsSeen(),
		marked:        newPodTimes(),
		inherited:     newPodSet(),
		owners:        &owners{requestLister: requestInformer.Lister(), podLister: podInformer.Lister(), nodeLister: nodeInformer.Lister()},
		clock:         clock,

		ttlAfterFinished: ttlAfterFinished,
	}
	c.sweeper.last = clock.Now()
	c.imperative = &imperativeInterceptor{
		requestLister: c.requestLister,
		podLister:     c.podLister,
		budgetLister:  budgetInformer.Lister(),
		budgetIndex:   budgets,
		evict:         evict,
		pods:          c.pods,
		writer:        writer,
		waiting:       newBudgetQueues(),
		evicted:       newPodTimes(),
		retryAfter:    newPodTimes(),
		recordAfter:   newPodTimes(),
		failing:       newPodTimes(),
		changed:       newPodSet(),
		uncertain:     newPodSet(),
		owners:        c.owners,
		backoff:       workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetryDelay, maxRetryDelay),
		clock:         clock,
	}
	c.queue, c.limitWorkers = newQueue(localClock, c.owners.of)
	c.imperative.queue, c.imperative.limitWorkers = newEvictionQueue(localClock, c.imperative.ownerOf)
	writer.pending.retry = func(request types.NamespacedName) {
		c.queue.Add(request)
		c.imperative.queue.Add(itemOf(request))
	}
	c.cachesSynced = []cache.InformerSynced{
		requestInformer.Informer().HasSynced,
		podInformer.Informer().HasSynced,
		nodeInformer.Informer().HasSynced,
		budgetInformer.Informer().HasSynced,
	}
	if err := c.addEventHandlers(klog.FromContext(ctx), requestInformer.Informer(), podInformer.Informer(), nodeInformer.Informer(), budgetInformer.Informer()); err != nil {
		return nil, fmt.Errorf("adding event handlers: %w", err)
	}
	return c, nil
}

const (
	// firstRetryDelay is the delay after the first failure. It doubles with each failure of the
	// same request. Requests do not delay each other.
	firstRetryDelay = time.Second

	// maxDecisionRetryDelay is the maximum of that delay where the status of a request cannot be
	// written. It is shorter than the default heartbeat deadline, so that no timeout is detected
	// much too late.
	maxDecisionRetryDelay = 5 * time.Minute
)

// newQueue returns the queue of the requests to sync, which uses the given clock, and a function
// that limits the workers per namespace. KEP-4563 (Monitoring Requirements) defines the name of the
// queue.
func newQueue(clock clock.WithTicker, ownerOf func(types.NamespacedName) fairshare.Owner) (workqueue.TypedRateLimitingInterface[types.NamespacedName], func(workers int)) {
	delaying, limitWorkers := newFairQueue("evictionrequests", clock, ownerOf)
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetryDelay, maxDecisionRetryDelay),
		workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{DelayingQueue: delaying},
	), limitWorkers
}

// newEvictionQueue returns the queue of evictions, which uses the given clock, and a function that
// limits the workers per namespace.
func newEvictionQueue(clock clock.WithTicker, ownerOf func(evictionItem) fairshare.Owner) (workqueue.TypedDelayingInterface[evictionItem], func(workers int)) {
	return newFairQueue("evictionrequests_imperative", clock, ownerOf)
}

// newFairQueue returns a queue whose workers are shared fairly between owners.
func newFairQueue[T comparable](name string, clock clock.WithTicker, ownerOf func(T) fairshare.Owner) (workqueue.TypedDelayingInterface[T], func(workers int)) {
	queue := fairshare.NewWorkQueue(workqueue.TypedQueueConfig[T]{Name: name, Clock: clock}, ownerOf)
	return workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{Name: name, Clock: clock, Queue: queue}), func(workers int) {
		queue.Limit(workers, workersPerNamespace(workers))
	}
}

// workersPerNamespace returns how many workers may process requests of one namespace at a time:
// three quarters. fairshare lowers this for a namespace with slow calls. The webhooks of a tenant
// can make each call take half a minute, and must not delay the requests of others. A smaller share
// would slow down a cluster that has nearly all of its pods in one namespace: a quarter reduces its
// rate of evictions by 30 %.
func workersPerNamespace(workers int) int { return max(1, workers*3/4) }

// Run runs the controller until ctx is done. workers is the number of requests synced at a time,
// evictionWorkers the number of eviction calls in flight. The namespaces share each of them.
func (c *Controller) Run(ctx context.Context, workers, evictionWorkers int) {
	defer utilruntime.HandleCrashWithContext(ctx)
	logger := klog.FromContext(ctx)
	logger.Info("Starting controller", "controller", "evictionrequest")

	var running sync.WaitGroup
	defer func() {
		logger.Info("Shutting down controller", "controller", "evictionrequest")
		c.queue.ShutDown()
		c.imperative.queue.ShutDown()
		running.Wait()
		c.broadcaster.Shutdown()
	}()

	if !cache.WaitForNamedCacheSyncWithContext(ctx, c.cachesSynced...) {
		return
	}
	if err := c.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Failed to start recording events")
	}
	defer metrics.Track(c.countRequests)()
	// Interceptors may have been unable to report while this controller did not run.
	c.outages.note()
	c.noteInherited()
	running.Go(func() { c.outages.probe(ctx, c.clock, c.writer.client, c.hasActiveInterceptor) })
	running.Go(func() { c.sweep(ctx) })
	c.limitWorkers(workers)
	c.imperative.limitWorkers(evictionWorkers)
	for range workers {
		running.Go(func() {
			wait.UntilWithContext(ctx, c.work, time.Second)
		})
	}
	for range evictionWorkers {
		running.Go(func() {
			wait.UntilWithContext(ctx, c.imperative.work, time.Second)
		})
	}
	<-ctx.Done()
}

// hasActiveInterceptor reports whether an interceptor of any request may be active. A write that the
// cache does not have yet may have activated one.
func (c *Controller) hasActiveInterceptor() bool {
	if !c.writer.isCacheCurrent() {
		return true
	}
	requests, err := c.requestLister.List(labels.Everything())
	return err != nil || slices.ContainsFunc(requests, func(request *coordinationv1alpha1.EvictionRequest) bool {
		return len(request.Status.ActiveInterceptors) > 0
	})
}

// countRequests counts the unfinished requests for the metrics.
func (c *Controller) countRequests() metrics.Counts {
	counts, now := metrics.NewCounts(), c.clock.Now()
	requests, err := c.requestLister.List(labels.Everything())
	if err != nil {
		return counts // A lister that reads from a cache returns no errors.
	}
	for _, request := range requests {
		if evictionrequesttools.IsFinished(request.Status.Conditions) {
			continue
		}
		if active := activeInterceptor(&request.Status); active != "" {
			counts.Interceptors[active]++
			if _, expected := reportOverdue(request, &request.Status, nil); expected {
				counts.OldestHeartbeats[active] = max(counts.OldestHeartbeats[active], now.Sub(evictionrequesttools.LastSignOfLife(request)))
			}
		}
		if blocked := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionBlocked)); blocked != nil && blocked.Status == metav1.ConditionTrue {
			counts.Blocked[blocked.Reason]++
			counts.OldestBlocked[blocked.Reason] = max(counts.OldestBlocked[blocked.Reason], now.Sub(blocked.LastTransitionTime.Time))
		}
		for _, requester := range request.Spec.Requesters {
			counts.Requesters[requester.Name]++
		}
	}
	return counts
}

// work syncs requests until the queue shuts down.
func (c *Controller) work(ctx context.Context) {
	for c.workOnce(ctx) {
	}
}

// workOnce syncs the next request. It returns false when the queue shuts down.
func (c *Controller) workOnce(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	err, paced := c.syncRequest(ctx, key), (*waitError)(nil)
	switch {
	case errors.As(err, &paced):
		c.queue.AddAfter(key, paced.wait)
	case err != nil:
		utilruntime.HandleErrorWithContext(ctx, err, "Failed to sync an eviction request, will retry", "evictionRequest", key)
		c.queue.AddRateLimited(key)
	default:
		c.queue.Forget(key)
	}
	return true
}

// work evicts pods until the queue shuts down.
func (i *imperativeInterceptor) work(ctx context.Context) {
	for i.workOnce(ctx) {
	}
}

// workOnce handles the next item. It returns false when the queue shuts down.
func (i *imperativeInterceptor) workOnce(ctx context.Context) bool {
	item, shutdown := i.queue.Get()
	if shutdown {
		return false
	}
	defer i.queue.Done(item)
	i.sync(ctx, item)
	return true
}
