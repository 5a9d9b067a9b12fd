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
	"sync"
	"sync/atomic"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/fairshare"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// DefaultMaxConcurrent is the default number of concurrent calls of Handle. It suits handlers that
// call an application over the network, and applications that can handle a few such calls at once.
const DefaultMaxConcurrent = 10

// Handler does the work of an interceptor for one pod, which is the target of turn.Request().
//
// It is called when the interceptor is active and the API server has confirmed that, each time. The
// library sends heartbeats while it runs. When it returns nil, the interceptor completes and the next one
// is activated. The pod may or may not be gone by then. Return Decline to complete without any
// work. Any other error is written to the request, and Handler is called again after a delay, if the
// eviction still has a requester then.
//
// The context is canceled when the turn ends, and context.Cause returns the reason: ErrCanceled,
// ErrEvicted, ErrTurnLost, ErrRequestGone, or the cause of the context of Run. The handler must
// stop then, and its return value is ignored.
//
// Handler must be idempotent. It is called again for the same pod after an error, after a restart
// of the process, and by a second replica: run an interceptor with leader election, or make sure
// that there is only one replica.
type Handler func(ctx context.Context, turn *Turn) error

// InterceptorConfig configures an interceptor. Client, Name and Handle are required.
type InterceptorConfig struct {
	// Client needs permission to get, list and watch evictionrequests, to patch
	// evictionrequests/status, and the verb intercept on the virtual resource evictioninterceptors
	// with the Name of the interceptor as the resource name.
	Client kubernetes.Interface

	// Name is the domain name that pods use for the interceptor, such as migrate.example.com.
	// FieldManager returns its field manager.
	Name string

	// Handle is called for each turn, in a goroutine of its own.
	Handle Handler

	// Accept, if set, is called before a turn starts. If it returns false, the interceptor reports
	// nothing, not even its start, and its deadline continues to run. Return false only for an
	// eviction that should not happen now. To pass a pod on to the next interceptor, return Decline
	// from Handle.
	//
	// It is called again when the request changes, and after Reconsider. It is not called for a
	// turn that has started, nor between two attempts of Handle: Handle itself must check what has
	// to be true during the whole turn. A turn that continues after a restart of the process starts
	// again, so Accept is called for it. The request then has the startTime of the interceptor.
	//
	// One goroutine calls it for all requests, so it must not block. It must not modify the
	// request. The default accepts every turn.
	Accept func(*coordinationv1alpha1.EvictionRequest) bool

	// Persistent is for interceptors that are the only way to stop a pod, such as the controller of
	// a DaemonSet. The controller does not activate another interceptor if they stop reporting, so
	// their turn does not time out, and Handle is retried until it succeeds. By default, the turn
	// ends at the deadline.
	Persistent bool

	// MaxConcurrent is the maximum number of concurrent calls of Handle. Further turns wait. They
	// report that they wait, but send no heartbeat before their work starts: a turn that waits for
	// longer than the heartbeat deadline of the request is lost. Set it high enough that no pod of
	// a drain waits that long. The default is DefaultMaxConcurrent.
	MaxConcurrent int

	// MaxConcurrentPerNamespace is the maximum number of concurrent calls for pods of one
	// namespace. Several busy namespaces together leave some calls to other namespaces. Set it if a
	// call, including the report before it, takes less than five seconds unless a tenant makes it
	// hang, and if such calls must not delay the pods of other tenants. Namespaces with slower
	// calls have at most half of MaxConcurrent together, and a namespace without a quick call in
	// the last five minutes has at most an eighth. See package fairshare for the rules. The default
	// is MaxConcurrent, without these limits for slow calls.
	MaxConcurrentPerNamespace int

	// Namespace limits the interceptor to the requests of one namespace. The default is all
	// namespaces.
	Namespace string

	// LabelSelector limits the interceptor to requests with these labels, which are the labels of
	// their pods. The default is all requests. A request whose labels no longer match is treated
	// like a deleted one.
	LabelSelector string

	// Informer is used instead of a new one. The caller starts it. Its options select the requests,
	// so Namespace and LabelSelector must be empty.
	Informer coordinationinformers.EvictionRequestInformer

	// Clock provides the times of the reports. The default is the real clock.
	Clock clock.WithTicker
}

func (c *InterceptorConfig) validate() error {
	if c.Client == nil {
		return errors.New("client is nil: set the client of the interceptor")
	}
	if err := validateName(c.Name); err != nil {
		return fmt.Errorf("invalid interceptor %q: %w", c.Name, err)
	}
	if c.Handle == nil {
		return fmt.Errorf("handle of interceptor %s is nil: set the function that does the work", c.Name)
	}
	if c.MaxConcurrent < 0 {
		return fmt.Errorf("maxConcurrent of interceptor %s is %d: must be positive, or 0 for the default, %d", c.Name, c.MaxConcurrent, DefaultMaxConcurrent)
	}
	if c.MaxConcurrentPerNamespace < 0 {
		return fmt.Errorf("maxConcurrentPerNamespace of interceptor %s is %d: must be positive, or 0 for the value of maxConcurrent", c.Name, c.MaxConcurrentPerNamespace)
	}
	if _, err := labels.Parse(c.LabelSelector); err != nil {
		return fmt.Errorf("labelSelector of interceptor %s is %q: %w", c.Name, c.LabelSelector, err)
	}
	if c.Informer != nil && (c.Namespace != "" || c.LabelSelector != "") {
		return fmt.Errorf("interceptor %s has an informer and namespace %q or labelSelector %q: set these on the informer only", c.Name, c.Namespace, c.LabelSelector)
	}
	return nil
}

// Interceptor acts on all pods for which the interceptor with its name is active.
type Interceptor struct {
	config   InterceptorConfig
	informer cache.SharedIndexInformer
	queue    workqueue.TypedRateLimitingInterface[string]

	// places limits the concurrent calls of Handle. The namespaces share them.
	places *fairshare.Places

	// turns holds the latest turn of each request in the cache, by namespace and name. Only sync
	// accesses it, which one goroutine calls.
	turns map[string]*Turn

	// working counts the turns that are running.
	working sync.WaitGroup

	// ran is set by the first call of Run.
	ran atomic.Bool
}

// NewInterceptor returns an interceptor that is ready to run.
func NewInterceptor(config InterceptorConfig) (*Interceptor, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if config.MaxConcurrent == 0 {
		config.MaxConcurrent = DefaultMaxConcurrent
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	if config.Informer != nil {
		// A factory only starts informers that were requested before its start.
		config.Informer.Informer()
	}
	return &Interceptor{
		config: config,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute),
			workqueue.TypedRateLimitingQueueConfig[string]{Clock: config.Clock},
		),
		places: fairshare.NewPlaces(config.MaxConcurrent, config.MaxConcurrentPerNamespace, config.Clock),
		turns:  map[string]*Turn{},
	}, nil
}

// Run runs an interceptor until the context is done. It returns an error immediately if the
// configuration is invalid, and otherwise nil when all calls of Handle have returned.
func Run(ctx context.Context, config InterceptorConfig) error {
	interceptor, err := NewInterceptor(config)
	if err != nil {
		return err
	}
	return interceptor.Run(ctx)
}

// RunOrDie is Run for programs that cannot handle an error: it panics.
func RunOrDie(ctx context.Context, config InterceptorConfig) {
	if err := Run(ctx, config); err != nil {
		panic(err)
	}
}

// Run handles turns until the context is done, and returns when all calls of Handle have returned.
// It can be called once: further calls return an error.
func (i *Interceptor) Run(ctx context.Context) error {
	defer utilruntime.HandleCrashWithContext(ctx)
	if i.ran.Swap(true) {
		return fmt.Errorf("interceptor %s was already run: create a new one", i.config.Name)
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "interceptor", i.config.Name)
	ctx = klog.NewContext(ctx, logger)
	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer func() {
		stop(nil)
		i.queue.ShutDown()
		running.Wait()
		// Only the worker, which has returned, starts turns.
		i.working.Wait()
		logger.Info("Interceptor stopped")
	}()

	if i.informer = i.configuredInformer(); i.informer == nil {
		i.informer = i.newInformer()
		running.Go(func() { i.informer.RunWithContext(ctx) })
	}
	registration, err := i.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    i.enqueue,
		UpdateFunc: func(_, obj any) { i.enqueue(obj) },
		DeleteFunc: i.enqueue,
	})
	if err != nil {
		return fmt.Errorf("watching eviction requests for interceptor %s: %w", i.config.Name, err)
	}
	defer func() {
		if err := i.informer.RemoveEventHandler(registration); err != nil {
			logger.Error(err, "Could not stop watching eviction requests")
		}
	}()
	// WaitFor returns false if the context is done.
	if cache.WaitFor(ctx, "eviction requests", registration.HasSyncedChecker()) {
		logger.Info("Interceptor started", "maxConcurrent", i.config.MaxConcurrent)
		running.Go(func() {
			for i.processNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	return nil
}

// Reconsider calls Accept again for a request that it has not accepted, because something other
// than the request has changed. It does not affect a running turn. It may be called at any time,
// and for requests that do not exist.
func (i *Interceptor) Reconsider(namespace, name string) {
	i.queue.Add(cache.NewObjectName(namespace, name).String())
}

func (i *Interceptor) configuredInformer() cache.SharedIndexInformer {
	if i.config.Informer == nil {
		return nil
	}
	return i.config.Informer.Informer()
}

func (i *Interceptor) newInformer() cache.SharedIndexInformer {
	informer := coordinationinformers.NewFilteredEvictionRequestInformer(i.config.Client, i.config.Namespace, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.LabelSelector = i.config.LabelSelector })
	if err := informer.SetTransform(ShareMemory()); err != nil {
		utilruntime.HandleError(fmt.Errorf("sharing the memory of eviction requests: %w", err)) // It has started, which cannot be.
	}
	return informer
}

func (i *Interceptor) enqueue(obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("getting the key of an eviction request: %w", err))
		return
	}
	i.queue.Add(key)
}

func (i *Interceptor) processNext(ctx context.Context) bool {
	key, shutdown := i.queue.Get()
	if shutdown {
		return false
	}
	defer i.queue.Done(key)
	obj, exists, err := i.informer.GetIndexer().GetByKey(key)
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not read an eviction request from the cache", "evictionRequest", key)
		return true
	}
	var request *coordinationv1alpha1.EvictionRequest
	if exists {
		request = obj.(*coordinationv1alpha1.EvictionRequest)
	}
	i.sync(ctx, key, request)
	return true
}

// sync starts or ends a turn according to the state of the request, which is nil if it is gone. It
// makes no API calls and does not block.
func (i *Interceptor) sync(ctx context.Context, key string, request *coordinationv1alpha1.EvictionRequest) {
	reason := i.endReason(request)
	turn := i.turns[key]
	if turn != nil && request != nil && turn.request.UID != request.UID {
		turn.cancel(ErrRequestGone)
	} else if turn != nil && reason != nil {
		turn.cancel(reason)
	}
	if turn != nil && !turn.returned() {
		return // The key is enqueued when the turn returns.
	}
	// Drop turns that ended or belong to another request. Keep completed turns: until the
	// controller has updated the request and the cache has the update, the interceptor still seems
	// to be active.
	if turn != nil && reason == nil && turn.request.UID == request.UID && turn.finished {
		return
	}
	delete(i.turns, key)
	if reason != nil || i.ownEntry(request).CompletionTime != nil || !i.accepts(request) {
		i.queue.Forget(key)
		return
	}
	turn = newTurn(ctx, i, request)
	i.turns[key] = turn
	i.working.Go(func() {
		defer i.queue.AddRateLimited(key)
		turn.run()
	})
}

// waitingMessage returns the message of a turn that waits for a place.
func (i *Interceptor) waitingMessage() string {
	if perNamespace := i.config.MaxConcurrentPerNamespace; perNamespace > 0 {
		return fmt.Sprintf("Waiting: the interceptor handles at most %d pods at a time, at most %d of them in this namespace, and fewer if its work is slow.", i.config.MaxConcurrent, perNamespace)
	}
	return fmt.Sprintf("Waiting: the interceptor handles at most %d pods at a time.", i.config.MaxConcurrent)
}

// accepts reports whether to start a turn for which the interceptor is active.
func (i *Interceptor) accepts(request *coordinationv1alpha1.EvictionRequest) bool {
	return i.config.Accept == nil || i.config.Accept(request)
}

// endReason returns nil if the interceptor is active, and otherwise why it is not.
func (i *Interceptor) endReason(request *coordinationv1alpha1.EvictionRequest) error {
	switch {
	case request == nil:
		return ErrRequestGone
	case isConditionTrue(request, coordinationv1alpha1.EvictionRequestConditionEvicted):
		return ErrEvicted
	case isConditionTrue(request, coordinationv1alpha1.EvictionRequestConditionCanceled):
		return ErrCanceled
	case !isActive(request, i.config.Name):
		return ErrTurnLost
	}
	return nil
}

// ownEntry returns the status entry of the interceptor. It is empty if there is none.
func (i *Interceptor) ownEntry(request *coordinationv1alpha1.EvictionRequest) coordinationv1alpha1.InterceptorStatus {
	if entry := InterceptorStatusOf(&request.Status, i.config.Name); entry != nil {
		return *entry
	}
	return coordinationv1alpha1.InterceptorStatus{Name: i.config.Name}
}
