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
	// seen holds the pods of open requests that were in the cache once: if one is not
	// there any more, it was deleted.
	seen *podSet

	// ttlAfterFinished is how long finished requests are kept; zero is for ever.
	ttlAfterFinished time.Duration

	broadcaster  events.EventBroadcaster
	cachesSynced []cache.InformerSynced
	queue        workqueue.TypedRateLimitingInterface[types.NamespacedName]
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
	clock clock.WithTicker,
) (*Controller, error) {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	writer := newRequestWriter(client, broadcaster.NewRecorder(scheme.Scheme, fieldManager), requestInformer.Informer().GetStore())
	c := &Controller{
		requestLister: requestInformer.Lister(),
		podLister:     podInformer.Lister(),
		pods:          newPodGetter(client),
		writer:        writer,
		broadcaster:   broadcaster,
		seen:          newPodSet(),
		queue:         newQueue("evictionrequest", clock),
		clock:         clock,

		ttlAfterFinished: ttlAfterFinished,
	}
	c.imperative = &imperativeInterceptor{
		requestLister: c.requestLister,
		podLister:     c.podLister,
		budgetLister:  budgetInformer.Lister(),
		evict:         evict,
		writer:        writer,
		evicted:       newPodSet(),
		retryAfter:    newPodTimes(),
		queue:         newQueue("evictionrequest_imperative", clock),
		clock:         clock,
	}
	c.imperative.pacer = newPacer(func(request types.NamespacedName) { c.imperative.queue.Add(request) })
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

// newQueue returns a queue of requests that waits on the given clock.
func newQueue(name string, clock clock.WithTicker) workqueue.TypedRateLimitingInterface[types.NamespacedName] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName](),
		workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: name, Clock: clock},
	)
}

// Run works until ctx ends. workers is how many requests are decided on at a time,
// evictionWorkers how many eviction calls are in flight.
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
	for range workers {
		running.Go(func() {
			wait.UntilWithContext(ctx, func(ctx context.Context) { work(ctx, c.queue, c.syncRequest) }, time.Second)
		})
	}
	for range evictionWorkers {
		running.Go(func() {
			wait.UntilWithContext(ctx, func(ctx context.Context) { work(ctx, c.imperative.queue, c.imperative.syncRequest) }, time.Second)
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

// work handles the keys of a queue until it shuts down.
func work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[types.NamespacedName], sync func(context.Context, types.NamespacedName) error) {
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		if err := sync(ctx, key); err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Will retry the eviction request", "evictionRequest", key)
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
}
