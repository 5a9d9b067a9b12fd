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
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
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
	"k8s.io/client-go/util/fairshare"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/metrics"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/podeviction"
	"k8s.io/utils/clock"
)

// Controller walks EvictionRequests through their interceptors. It exists so that
// requesters and interceptors need not know of each other: it alone decides whose
// turn it is and when a request is over.
type Controller struct {
	requestLister coordinationlisters.EvictionRequestLister
	podLister     corelisters.PodLister
	// pods reads single pods from the API server, where the cache is no proof.
	pods podGetter

	writer     *requestWriter
	imperative *imperativeInterceptor
	outages    *outages
	// seen holds the pods of open requests that were in the cache once: if one is not
	// there any more, it was deleted.
	seen *podSet

	// ttlAfterFinished is how long finished requests are kept; zero is for ever.
	ttlAfterFinished time.Duration

	broadcaster  events.EventBroadcaster
	cachesSynced []cache.InformerSynced
	queue        workqueue.TypedRateLimitingInterface[types.NamespacedName]
	// limitWorkers shares that many workers of the queue among the namespaces.
	limitWorkers func(workers int)
	clock        clock.WithTicker
}

// podGetter reads the current state of one pod.
type podGetter func(ctx context.Context, namespace, name string) (*v1.Pod, error)

// New returns a controller that reads from the informers, writes through client, and
// evicts through evictionClient, whose rate limits are its own: evictions wait for
// budgets, and must not keep state from being written, nor the other way round. Finished
// requests are deleted after ttlAfterFinished; zero keeps them.
func New(
	ctx context.Context,
	requestInformer coordinationinformers.EvictionRequestInformer,
	podInformer coreinformers.PodInformer,
	budgetInformer policyinformers.PodDisruptionBudgetInformer,
	client, evictionClient clientset.Interface,
	ttlAfterFinished time.Duration,
) (*Controller, error) {
	return NewWithClock(ctx, requestInformer, podInformer, budgetInformer, client, evictionClient, ttlAfterFinished, clock.RealClock{})
}

// NewWithClock is New with a clock of the caller's choice. Integration tests, which
// cannot wait for a deadline, turn it by hand.
func NewWithClock(
	ctx context.Context,
	requestInformer coordinationinformers.EvictionRequestInformer,
	podInformer coreinformers.PodInformer,
	budgetInformer policyinformers.PodDisruptionBudgetInformer,
	client, evictionClient clientset.Interface,
	ttlAfterFinished time.Duration,
	clock clock.WithTicker,
) (*Controller, error) {
	metrics.Register()
	return newController(ctx, requestInformer, podInformer, budgetInformer, client, podeviction.NewEvictor(evictionClient), ttlAfterFinished, clock)
}

func newController(
	ctx context.Context,
	requestInformer coordinationinformers.EvictionRequestInformer,
	podInformer coreinformers.PodInformer,
	budgetInformer policyinformers.PodDisruptionBudgetInformer,
	client clientset.Interface,
	evict podeviction.Evictor,
	ttlAfterFinished time.Duration,
	ownClock clock.WithTicker,
) (*Controller, error) {
	clock := newServerClock(ownClock)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	writer := newRequestWriter(client, broadcaster.NewRecorder(scheme.Scheme, fieldManager), requestInformer.Informer().GetStore(), clock)
	away := newOutages(clock, ownClock)
	away.watchThrough(klog.FromContext(ctx), requestInformer.Informer())
	queue, limitWorkers := newQueue(ownClock)
	evictionQueue, limitEvictionWorkers := newEvictionQueue(ownClock)
	c := &Controller{
		requestLister: requestInformer.Lister(),
		podLister:     podInformer.Lister(),
		pods:          newPodGetter(client),
		writer:        writer,
		outages:       away,
		broadcaster:   broadcaster,
		seen:          newPodSet(),
		queue:         queue,
		limitWorkers:  limitWorkers,
		clock:         clock,

		ttlAfterFinished: ttlAfterFinished,
	}
	c.imperative = &imperativeInterceptor{
		requestLister: c.requestLister,
		podLister:     c.podLister,
		budgetLister:  budgetInformer.Lister(),
		evict:         evict,
		writer:        writer,
		waiting:       newBudgetQueues(defaultEvictionsPerBudget),
		evicted:       newPodTimes(),
		retryAfter:    newPodTimes(),
		changed:       newPodSet(),
		queue:         evictionQueue,
		limitWorkers:  limitEvictionWorkers,
		backoff:       workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetryDelay, maxRetryDelay),
		clock:         clock,
	}
	c.cachesSynced = []cache.InformerSynced{
		requestInformer.Informer().HasSynced,
		podInformer.Informer().HasSynced,
		budgetInformer.Informer().HasSynced,
	}
	if err := c.addEventHandlers(klog.FromContext(ctx), requestInformer.Informer(), podInformer.Informer(), budgetInformer.Informer()); err != nil {
		return nil, fmt.Errorf("adding event handlers: %w", err)
	}
	return c, nil
}

const (
	// firstRetryDelay separates the first two attempts of something that fails. It doubles
	// with each failure of the same request; requests do not delay each other.
	firstRetryDelay = time.Second

	// maxDecisionRetryDelay bounds it where the status of a request cannot be written. It is
	// within the time that an interceptor may be silent, so that no turn ends much too late.
	maxDecisionRetryDelay = 5 * time.Minute
)

// newQueue returns a queue of requests to decide on, which waits on the given clock, and how
// to share its workers among the namespaces. The name of the queue is the one of KEP-4563
// (Monitoring Requirements).
func newQueue(clock clock.WithTicker) (workqueue.TypedRateLimitingInterface[types.NamespacedName], func(workers int)) {
	delaying, limitWorkers := newFairQueue("evictionrequests", clock, func(key types.NamespacedName) string { return key.Namespace })
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetryDelay, maxDecisionRetryDelay),
		workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{DelayingQueue: delaying},
	), limitWorkers
}

// newEvictionQueue returns a queue of evictions, which waits on the given clock, and how to
// share its workers among the namespaces.
func newEvictionQueue(clock clock.WithTicker) (workqueue.TypedDelayingInterface[evictionItem], func(workers int)) {
	return newFairQueue("evictionrequests_imperative", clock, evictionItem.namespace)
}

// newFairQueue returns a queue whose workers the namespaces share.
func newFairQueue[T comparable](name string, clock clock.WithTicker, namespaceOf func(T) string) (workqueue.TypedDelayingInterface[T], func(workers int)) {
	queue := fairshare.NewWorkQueue(workqueue.TypedQueueConfig[T]{Name: name, Clock: clock}, namespaceOf)
	return workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{Name: name, Clock: clock, Queue: queue}), func(workers int) {
		queue.Limit(workers, workersPerNamespace(workers))
	}
}

// workersPerNamespace is how many of the workers may be busy with requests of one namespace:
// three quarters, and less where its calls are slow, which fairshare sees to. The webhooks of
// a tenant can make each call last for half a minute, and must not keep the requests of others
// waiting. A smaller share would slow down a cluster that has
// nearly all of its pods in one namespace: a quarter costs it 30 % of its evictions a second.
func workersPerNamespace(workers int) int { return max(1, workers*3/4) }

// Run works until ctx ends. workers is how many requests are decided on at a time,
// evictionWorkers how many eviction calls are in flight. The namespaces share each.
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
		utilruntime.HandleErrorWithContext(ctx, err, "No events will be recorded")
	}
	defer metrics.Track(c.countRequests)()
	// Nobody knows whether interceptors could report while this controller did not run.
	c.outages.note()
	running.Go(func() { c.outages.probe(ctx, c.clock, c.writer.client) })
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

// countRequests counts the unfinished requests for the metrics.
func (c *Controller) countRequests() metrics.Counts {
	counts := metrics.Counts{Interceptors: map[string]int{}, Requesters: map[string]int{}}
	requests, err := c.requestLister.List(labels.Everything())
	if err != nil {
		return counts // A lister of a cache has no errors.
	}
	for _, request := range requests {
		if isFinished(&request.Status) {
			continue
		}
		if active := activeInterceptor(&request.Status); active != "" {
			counts.Interceptors[active]++
		}
		for _, requester := range request.Spec.Requesters {
			counts.Requesters[requester.Name]++
		}
	}
	return counts
}

// work decides on requests until the queue shuts down.
func (c *Controller) work(ctx context.Context) {
	for c.workOnce(ctx) {
	}
}

// workOnce decides on the next request. It returns false when the queue shuts down.
func (c *Controller) workOnce(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if err := c.syncRequest(ctx, key); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Will retry the eviction request", "evictionRequest", key)
		c.queue.AddRateLimited(key)
	} else {
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
