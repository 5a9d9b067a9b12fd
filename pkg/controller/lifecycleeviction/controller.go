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

package lifecycleeviction

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	lifecycleinformers "k8s.io/client-go/informers/lifecycle/v1alpha1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/fairshare"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/lifecycleeviction/agreement"
	"k8s.io/kubernetes/pkg/controller/lifecycleeviction/metrics"
	"k8s.io/kubernetes/pkg/controller/util/consistency"
	"k8s.io/kubernetes/pkg/controller/util/tombstone"
	"k8s.io/utils/clock"
)

const (
	// targetIndex finds the objects of the group by the UID of their pod, in its namespace.
	targetIndex = "target"

	// nameIndex finds Evictions by the name of their pod, in its namespace.
	nameIndex = "podName"

	// maxRetryInterval is the longest time between two attempts to write what cannot be written.
	maxRetryInterval = 30 * time.Second

	// catchUpInterval is when a pod is looked at again if the caches lack what was written about it. Usually an
	// event comes before.
	catchUpInterval = time.Second

	// restoreInterval is the minimum time between two writes of what others can undo, or change at will: who deletes an
	// Eviction, or its labels, again and again, or reports all the time, must not have this controller write as often.
	restoreInterval = 5 * time.Second

	// missingTimeout is for how long a pod that the cache lacks may still appear, or a request for an Eviction that somebody
	// has made by hand.
	missingTimeout = 3 * time.Second
)

var (
	requestResource  = lifecyclev1alpha1.Resource("evictionrequests")
	evictionResource = lifecyclev1alpha1.Resource("evictions")
	ownResource      = coordinationv1alpha1.Resource("evictionrequests")
)

// Controller keeps the EvictionRequests of two API groups, and the Evictions, in agreement, see the package.
type Controller struct {
	client    clientset.Interface
	requests  cache.Indexer
	evictions cache.Indexer
	own       coordinationlisters.EvictionRequestLister
	pods      corelisters.PodLister
	queue     workqueue.TypedRateLimitingInterface[string]
	// limitWorkers limits the workers per namespace.
	limitWorkers func(workers int)
	clock        clock.WithTicker
	synced       []cache.InformerSynced
	// compared has the requests of the other group that were compared with those of this one.
	compared *agreement.Requests
	// written has which versions this controller has written about a pod: the caches may lack them.
	written consistency.ConsistencyStore

	lock sync.Mutex
	// ended has since when pods are missing or terminal, or nobody requests their eviction, while no request says so, by
	// key.
	ended map[string]time.Time
	// restored has when the Eviction of a pod was created, or its labels and owners were written, by key.
	// reported is the same for reports that were copied.
	restored, reported map[string]time.Time
	// requested has what was written in the request of a pod, by key.
	requested map[string]*requested
	// foreign has which requesters of requests have not come by the group, although their names could, by key.
	foreign map[string]foreign
	// unanswered has the request of a pod with which its next answers begin, by key.
	unanswered map[string]types.UID
	// failed has since when, and how often, the last syncs of a pod have failed, by key.
	failed map[string]failure

	broadcaster events.EventBroadcaster
	recorder    events.EventRecorder
}

// New returns a controller that writes through the client. It must be called before the informers start.
func New(
	client clientset.Interface,
	requestInformer lifecycleinformers.EvictionRequestInformer,
	evictionInformer lifecycleinformers.EvictionInformer,
	ownInformer coordinationinformers.EvictionRequestInformer,
	podInformer coreinformers.PodInformer,
	clock clock.WithTicker,
) (*Controller, error) {
	compared, err := agreement.Of(ownInformer.Informer().GetIndexer())
	if err != nil {
		return nil, err
	}
	metrics.Register()
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	c := &Controller{
		client:      client,
		compared:    compared,
		broadcaster: broadcaster, recorder: broadcaster.NewRecorder(scheme.Scheme, "lifecycle-eviction-controller"),
		failed: map[string]failure{}, unanswered: map[string]types.UID{},
		requests: requestInformer.Informer().GetIndexer(), evictions: evictionInformer.Informer().GetIndexer(),
		own: ownInformer.Lister(), pods: podInformer.Lister(),
		clock:     clock,
		ended:     map[string]time.Time{},
		requested: map[string]*requested{},
		foreign:   map[string]foreign{}, restored: map[string]time.Time{}, reported: map[string]time.Time{},
		written: consistency.NewConsistencyStore(map[schema.GroupResource]consistency.LastSyncRVGetter{
			requestResource: requestInformer.Informer().GetStore(), evictionResource: evictionInformer.Informer().GetStore(), ownResource: ownInformer.Informer().GetStore(),
		}),
	}
	c.queue, c.limitWorkers = newQueue(clock)
	if err := evictionInformer.Informer().AddIndexers(cache.Indexers{nameIndex: podNamesOf}); err != nil {
		return nil, fmt.Errorf("indexing evictions: %w", err)
	}
	for what, informer := range map[string]cache.SharedIndexInformer{
		"eviction requests of lifecycle.k8s.io": requestInformer.Informer(), "evictions": evictionInformer.Informer(),
	} {
		if err := informer.AddIndexers(cache.Indexers{targetIndex: keysOf}); err != nil {
			return nil, fmt.Errorf("indexing %s: %w", what, err)
		}
	}
	for what, watched := range map[string]struct {
		informer cache.SharedIndexInformer
		keys     cache.IndexFunc
	}{
		"eviction requests of lifecycle.k8s.io": {requestInformer.Informer(), keysOf},
		"evictions":                             {evictionInformer.Informer(), keysOf},
		"eviction requests":                     {ownInformer.Informer(), c.keysOfOwn},
		"pods":                                  {podInformer.Informer(), c.keysOfPod},
	} {
		if _, err := watched.informer.AddEventHandler(c.handler(watched.keys)); err != nil {
			return nil, fmt.Errorf("watching %s: %w", what, err)
		}
		c.synced = append(c.synced, watched.informer.HasSynced)
	}
	return c, nil
}

// queueName is that of the queue in metrics.
const queueName = "lifecycle_eviction"

// newQueue returns the queue of pods, whose workers namespaces share, and a function that limits those per namespace, as
// for the engine: the webhooks of a tenant can make each call take half a minute, and must not delay others.
func newQueue(clock clock.WithTicker) (queue workqueue.TypedRateLimitingInterface[string], limitWorkers func(workers int)) {
	fair := fairshare.NewWorkQueue(workqueue.TypedQueueConfig[string]{Name: queueName, Clock: clock}, func(key string) fairshare.Owner {
		namespace, _, _ := cache.SplitMetaNamespaceKey(key)
		return fairshare.Owner{Tenant: namespace}
	})
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](20*time.Millisecond, maxRetryInterval),
		workqueue.TypedRateLimitingQueueConfig[string]{
			Name: queueName, Clock: clock,
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Name: queueName, Clock: clock, Queue: fair}),
		},
	), func(workers int) { fair.Limit(workers, max(1, workers*3/4)) }
}

func (c *Controller) handler(keys cache.IndexFunc) cache.ResourceEventHandlerFuncs {
	enqueue := func(obj any) {
		found, _ := keys(obj) // None of them returns an error.
		for _, key := range found {
			c.queue.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
		DeleteFunc: func(obj any) {
			if object, err := tombstone.Object[metav1.Object](obj); err == nil {
				enqueue(object)
			}
		},
	}
}

// Run runs so many workers, which namespaces share, until the context is canceled.
func (c *Controller) Run(ctx context.Context, workers int) {
	defer utilruntime.HandleCrashWithContext(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.ShutDown()
	defer c.broadcaster.Shutdown()
	if err := c.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Events are not recorded")
	}
	defer metrics.Track(c.countOutdated)()
	klog.FromContext(ctx).Info("Starting the lifecycle eviction controller")
	if !cache.WaitForNamedCacheSyncWithContext(ctx, c.synced...) {
		return
	}
	c.limitWorkers(workers)
	for range workers {
		running.Go(func() { wait.UntilWithContext(ctx, c.work, time.Second) })
	}
	<-ctx.Done()
}

func (c *Controller) work(ctx context.Context) {
	for c.processNext(ctx) {
	}
}

func (c *Controller) processNext(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	after, err := c.sync(ctx, key)
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		// The caches are behind: an event follows.
		c.queue.AddRateLimited(key)
	case err != nil:
		utilruntime.HandleErrorWithContext(ctx, err, "Failed to sync the eviction of a pod, will retry", "target", key)
		if c.noteFailure(key) {
			c.recordFailure(key, err)
		}
		c.queue.AddRateLimited(key)
	default:
		c.queue.Forget(key)
		if after > 0 {
			c.queue.AddAfter(key, after)
		}
	}
	return true
}

// keyOf returns the key of the pod with this UID.
func keyOf(namespace string, uid types.UID) string { return namespace + "/" + string(uid) }

// keysOf returns the key of the pod of an object of the group.
func keysOf(obj any) ([]string, error) {
	switch object := obj.(type) {
	case *lifecyclev1alpha1.EvictionRequest:
		if pod := object.Spec.Target.Pod; pod != nil {
			return []string{keyOf(object.Namespace, pod.UID)}, nil
		}
	case *lifecyclev1alpha1.Eviction:
		if pod := object.Spec.Target.Pod; pod != nil {
			return []string{keyOf(object.Namespace, pod.UID)}, nil
		}
	}
	return nil, nil
}

// podNamesOf returns the name of the pod of an Eviction, with its namespace.
func podNamesOf(obj any) ([]string, error) {
	eviction := obj.(*lifecyclev1alpha1.Eviction)
	if pod := eviction.Spec.Target.Pod; pod != nil {
		return []string{eviction.Namespace + "/" + pod.Name}, nil
	}
	return nil, nil
}

// keysOfOwn returns the key of the pod of a request of the other group, whose name is the UID, if it concerns this
// controller: others are as many as pods are evicted.
func (c *Controller) keysOfOwn(obj any) ([]string, error) {
	request := obj.(*coordinationv1alpha1.EvictionRequest)
	key := keyOf(request.Namespace, types.UID(request.Name))
	if concerns(request) || c.isKnown(key) {
		return []string{key}, nil
	}
	return nil, nil
}

// concerns reports whether a responder, or a requester of the group, has to do with a request.
func concerns(request *coordinationv1alpha1.EvictionRequest) bool {
	for _, interceptor := range request.Status.TargetInterceptors {
		if strings.Contains(interceptor.Name, "/") {
			return true
		}
	}
	for _, requester := range request.Spec.Requesters {
		if strings.Contains(requester.Name, "/") {
			return true
		}
	}
	return false
}

func (c *Controller) keysOfPod(obj any) ([]string, error) {
	pod := obj.(*v1.Pod)
	if key := keyOf(pod.Namespace, pod.UID); c.isKnown(key) {
		return []string{key}, nil
	}
	return nil, nil
}

// isKnown reports whether there are objects of the group for a pod.
func (c *Controller) isKnown(key string) bool {
	for _, indexer := range []cache.Indexer{c.requests, c.evictions} {
		if found, err := indexer.IndexKeys(targetIndex, key); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}
