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

// DefaultMaxConcurrent is how many calls of Handle run at the same time when the
// configuration does not say. It suits work that talks to an application over the
// network and that the application can stand a few of at once.
const DefaultMaxConcurrent = 10

// Handler does the work of an interceptor on one pod: turn.Request() says which.
//
// It is called when it is the interceptor's turn, and the API server has confirmed
// that. While it runs, the library sends the heartbeats. When it returns nil, the
// interceptor is done and the next one gets its turn; the pod may be gone by then or
// not. Decline does the same for those who do not want to act. Any other error is shown
// in the request and leads to another call after a while.
//
// The context ends when the turn does, and context.Cause says why: ErrCanceled,
// ErrEvicted, ErrTurnLost, ErrRequestGone, or what ended the context of Run. The work
// must stop then, and what Handler returns does not count any more.
//
// Handler must be idempotent. A process that is started anew in the middle of a turn
// calls it again for the same pod, as does an error, and so would a second replica: run
// Interceptors under leader election, or make sure that there is only one.
type Handler func(ctx context.Context, turn *Turn) error

// InterceptorConfig is what an interceptor needs. Client, Name and Handle are required.
type InterceptorConfig struct {
	// Client needs the rights to get, list and watch evictionrequests, to patch
	// evictionrequests/status, and the verb intercept on the virtual resource
	// evictioninterceptors with the Name of the interceptor as resource name.
	Client kubernetes.Interface

	// Name is the domain name by which pods name the interceptor, such as
	// migrate.example.com. FieldManager says under which field manager it applies.
	Name string

	// Handle is called once for each turn, each in its own goroutine.
	Handle Handler

	// Accept, if it is set, is asked before a turn is begun. Where it returns false the
	// interceptor stays silent: it reports nothing, not even a start, and its deadline
	// runs. Return false only to keep out of an eviction that should not happen now; Handle
	// with Decline is the way to pass a pod on.
	//
	// It is asked again whenever the request changes, and after Reconsider. A turn that runs
	// is not taken back by it, and neither is it asked between two attempts of Handle: what
	// has to hold for the whole turn is for Handle to look at. A turn that goes on after a
	// restart of the process is begun anew, so it is asked; the request then has the startTime
	// of the interceptor.
	//
	// One goroutine calls it for all requests, so it must not wait for anything. It must not
	// modify the request. The default accepts every turn.
	Accept func(*coordinationv1alpha1.EvictionRequest) bool

	// Persistent is for interceptors that alone can end a pod, such as the controller of a
	// DaemonSet: nobody takes over from them when they are silent for too long. So their turn
	// is not lost either, and Handle is called again for as long as it fails. The default is
	// to stop when the deadline has passed.
	Persistent bool

	// MaxConcurrent is how many calls of Handle may run at the same time. Turns beyond
	// that wait and say so, but send no heartbeat before their work starts: who waits for
	// longer than the heartbeat deadline of the request loses the turn. Choose it so that a
	// drain does not wait that long. The default is DefaultMaxConcurrent.
	MaxConcurrent int

	// MaxConcurrentPerNamespace is how many of these calls may be for pods of one namespace,
	// while several busy namespaces leave some to others. Set it where a call, with the report
	// before it, takes less than five seconds, unless it hangs because of a tenant, which must
	// not keep the pods of others waiting: namespaces with slower calls have half of
	// MaxConcurrent together, and one without a quick call in the last five minutes has an
	// eighth. Package fairshare has the rules. The default is MaxConcurrent, and any share of
	// it for slow calls.
	MaxConcurrentPerNamespace int

	// Namespace limits the interceptor to the requests of one namespace. The default is
	// all of them.
	Namespace string

	// LabelSelector limits the interceptor to requests with these labels, which are those
	// of their pods. The default is all of them. A request whose labels stop to match
	// counts as gone.
	LabelSelector string

	// Informer is used instead of an own one. The caller starts it; its options decide
	// which requests are seen, so Namespace and LabelSelector must be empty.
	Informer coordinationinformers.EvictionRequestInformer

	// Clock is where the times of the reports come from. The default is the real clock.
	Clock clock.WithTicker
}

func (c *InterceptorConfig) validate() error {
	if c.Client == nil {
		return errors.New("client is nil: give the client that the interceptor should use")
	}
	if err := validateName(c.Name); err != nil {
		return fmt.Errorf("the interceptor %q: %w", c.Name, err)
	}
	if c.Handle == nil {
		return fmt.Errorf("handle of interceptor %s is nil: give the function that does the work", c.Name)
	}
	if c.MaxConcurrent < 0 {
		return fmt.Errorf("maxConcurrent of interceptor %s is %d: give a positive number, or 0 for %d", c.Name, c.MaxConcurrent, DefaultMaxConcurrent)
	}
	if c.MaxConcurrentPerNamespace < 0 {
		return fmt.Errorf("maxConcurrentPerNamespace of interceptor %s is %d: give a positive number, or 0 for as many as maxConcurrent", c.Name, c.MaxConcurrentPerNamespace)
	}
	if _, err := labels.Parse(c.LabelSelector); err != nil {
		return fmt.Errorf("labelSelector of interceptor %s is %q: %w", c.Name, c.LabelSelector, err)
	}
	if c.Informer != nil && (c.Namespace != "" || c.LabelSelector != "") {
		return fmt.Errorf("interceptor %s has an informer, and namespace %q and labelSelector %q: set these on the informer", c.Name, c.Namespace, c.LabelSelector)
	}
	return nil
}

// Interceptor takes its turn in the eviction of all pods that name it.
type Interceptor struct {
	config   InterceptorConfig
	informer cache.SharedIndexInformer
	queue    workqueue.TypedRateLimitingInterface[string]

	// places are for those that may call Handle at the same time, shared by namespace.
	places *fairshare.Places

	// turns holds the turn that was begun last for each request that is there, by
	// namespace and name. Only sync touches it, which one goroutine calls.
	turns map[string]*Turn

	// working counts the turns that have not returned.
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
		// A factory starts only those informers that it was asked for before.
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

// Run runs an interceptor until the context ends. It returns an error at once if the
// configuration is wrong, and otherwise nil when all calls of Handle have returned.
func Run(ctx context.Context, config InterceptorConfig) error {
	interceptor, err := NewInterceptor(config)
	if err != nil {
		return err
	}
	return interceptor.Run(ctx)
}

// RunOrDie is Run for programs that can do nothing about an error: it panics.
func RunOrDie(ctx context.Context, config InterceptorConfig) {
	if err := Run(ctx, config); err != nil {
		panic(err)
	}
}

// Run takes every turn until the context ends, and returns when all calls of Handle
// have returned. It can be called once: another call returns an error and changes nothing.
func (i *Interceptor) Run(ctx context.Context) error {
	defer utilruntime.HandleCrashWithContext(ctx)
	if i.ran.Swap(true) {
		return fmt.Errorf("interceptor %s runs already, or has run: create another one", i.config.Name)
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "interceptor", i.config.Name)
	ctx = klog.NewContext(ctx, logger)
	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer func() {
		stop(nil)
		i.queue.ShutDown()
		running.Wait()
		// Only the worker, which has returned, begins turns.
		i.working.Wait()
		logger.Info("Interceptor has stopped")
	}()

	if i.informer = i.givenInformer(); i.informer == nil {
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
	// False when the context has ended.
	if cache.WaitFor(ctx, "eviction requests", registration.HasSyncedChecker()) {
		logger.Info("Interceptor has started", "maxConcurrent", i.config.MaxConcurrent)
		running.Go(func() {
			for i.processNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	return nil
}

// Reconsider has Accept asked again about a request that it has not accepted, because
// something besides the request has changed. A turn that runs is not affected. It may be
// called at any time, and for requests that do not exist.
func (i *Interceptor) Reconsider(namespace, name string) {
	i.queue.Add(cache.NewObjectName(namespace, name).String())
}

func (i *Interceptor) givenInformer() cache.SharedIndexInformer {
	if i.config.Informer == nil {
		return nil
	}
	return i.config.Informer.Informer()
}

func (i *Interceptor) newInformer() cache.SharedIndexInformer {
	return coordinationinformers.NewFilteredEvictionRequestInformer(i.config.Client, i.config.Namespace, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.LabelSelector = i.config.LabelSelector })
}

func (i *Interceptor) enqueue(obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("naming an eviction request: %w", err))
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

// sync begins a turn, or ends it, as the state of a request says. The request is nil
// when it is gone. It makes no calls to the API server and does not wait.
func (i *Interceptor) sync(ctx context.Context, key string, request *coordinationv1alpha1.EvictionRequest) {
	over := i.whyOver(request)
	turn := i.turns[key]
	if turn != nil && request != nil && turn.request.UID != request.UID {
		turn.cancel(ErrRequestGone)
	} else if turn != nil && over != nil {
		turn.cancel(over)
	}
	if turn != nil && !turn.returned() {
		return // It enqueues the key when it has returned.
	}
	// What is over or belongs to another request is forgotten. What is finished is not:
	// until the controller has moved on, and the cache knows, it still looks like a turn.
	if turn != nil && over == nil && turn.request.UID == request.UID && turn.finished {
		return
	}
	delete(i.turns, key)
	if over != nil || i.ownEntry(request).CompletionTime != nil || !i.accepts(request) {
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

// waitingMessage says why a turn waits for a place.
func (i *Interceptor) waitingMessage() string {
	if perNamespace := i.config.MaxConcurrentPerNamespace; perNamespace > 0 {
		return fmt.Sprintf("Waiting: the interceptor works on as many other pods as it may: %d in all, %d of this namespace, and fewer where its work is slow.", i.config.MaxConcurrent, perNamespace)
	}
	return fmt.Sprintf("Waiting: the interceptor works on %d other pods, as many as it may.", i.config.MaxConcurrent)
}

// accepts tells whether to begin a turn that is the interceptor's.
func (i *Interceptor) accepts(request *coordinationv1alpha1.EvictionRequest) bool {
	return i.config.Accept == nil || i.config.Accept(request)
}

// whyOver returns nil if it is the interceptor's turn, and otherwise why it is not.
func (i *Interceptor) whyOver(request *coordinationv1alpha1.EvictionRequest) error {
	switch {
	case request == nil:
		return ErrRequestGone
	case holds(request, coordinationv1alpha1.EvictionRequestConditionEvicted):
		return ErrEvicted
	case holds(request, coordinationv1alpha1.EvictionRequestConditionCanceled):
		return ErrCanceled
	case !isActive(request, i.config.Name):
		return ErrTurnLost
	}
	return nil
}

// ownEntry returns what the interceptor has reported, which is nothing at first.
func (i *Interceptor) ownEntry(request *coordinationv1alpha1.EvictionRequest) coordinationv1alpha1.InterceptorStatus {
	for _, entry := range request.Status.Interceptors {
		if entry.Name == i.config.Name {
			return entry
		}
	}
	return coordinationv1alpha1.InterceptorStatus{Name: i.config.Name}
}
