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

package evictions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// DefaultMaxConcurrent is the default number of concurrent calls of Handle. It suits handlers that
// call an application over the network, and applications that can handle a few such calls at once.
const DefaultMaxConcurrent = 10

// Handler does the work of a responder for one pod, which is turn.Request().Pod.
//
// It is called when the responder is active and the API server has confirmed that, each time. The
// library sends heartbeats while it runs. When it returns nil, the responder completes and the next one
// is activated. The pod may or may not be gone by then. Return Decline to complete without any
// work. Any other error is written to the request, and Handler is called again after a delay, if the
// eviction still has a requester then.
//
// The context is canceled when the turn ends, and context.Cause returns the reason: ErrCanceled,
// ErrEvicted, ErrTurnLost, ErrRequestGone, or the cause of the context of Run. The handler must
// stop then, and its return value is ignored.
//
// Handler must be idempotent. It is called again for the same pod after an error, after a restart
// of the process, when turn.Request().Report has what was reported before, and by a second replica:
// run a responder with leader election, or make sure that there is only one replica.
type Handler func(ctx context.Context, turn *Turn) error

// ResponderConfig configures a responder. API, Name and Handle are required.
type ResponderConfig struct {
	// API is the group in which the evictions are requested, and the client: Lifecycle or Coordination.
	API API

	// Name is the name that pods use for the responder: a key in a domain, such as example.com/saver. In
	// coordination.k8s.io, where it is called an interceptor, it may be a domain name as well, such as
	// saver.example.com. FieldManager returns its field manager.
	Name string

	// Handle is called for each turn, in a goroutine of its own.
	Handle Handler

	// Accept, if set, is called before a turn starts. If it returns false, the responder reports
	// nothing, not even its start, and its deadline continues to run. Return false only for an
	// eviction that should not happen now. To pass a pod on to the next responder, return Decline
	// from Handle.
	//
	// It is called again when the request changes, and after Reconsider. It is not called for a
	// turn that has started, nor between two attempts of Handle: Handle itself must check what has
	// to be true during the whole turn. A turn that continues after a restart of the process starts
	// again, so Accept is called for it. The request then has the earlier report.
	//
	// One goroutine calls it for all requests, so it must not block. The default accepts every turn.
	Accept func(*Request) bool

	// Persistent is for responders that are the only way to stop a pod, such as the controller of
	// a DaemonSet. The controller does not activate another one if they stop reporting, so
	// their turn does not time out, and Handle is retried until it succeeds. By default, the turn
	// ends at the deadline.
	Persistent bool

	// MaxConcurrent is the maximum number of concurrent calls of Handle. Further turns wait. They
	// report that they wait, but send no heartbeat before their work starts: a turn that waits for
	// longer than the heartbeat deadline of the request is lost. Set it high enough that no pod of
	// a drain waits that long. The default is DefaultMaxConcurrent.
	MaxConcurrent int

	// Places, if set, limits the concurrent calls of Handle instead of MaxConcurrent, which it may
	// share between namespaces.
	Places Places

	// WaitingMessage is reported while a turn waits for a place. The default says MaxConcurrent.
	WaitingMessage string

	// Namespace limits the responder to one namespace. The default is all namespaces.
	Namespace string

	// LabelSelector limits the responder to requests with these labels. In coordination.k8s.io these are the labels of
	// their pods; in lifecycle.k8s.io the names of requesters and responders. The default is all requests. A request whose
	// labels no longer match is treated like a deleted one.
	LabelSelector string

	// Informer is used instead of a new one. The caller starts it. It decides which requests there are, so Namespace
	// and LabelSelector must be empty.
	Informer cache.SharedIndexInformer

	// Clock provides the times of the reports. The default is the real clock.
	Clock clock.WithTicker
}

// Places limits how many turns work at a time.
type Places interface {
	// TryAcquire returns a place, or nil if there is none now.
	TryAcquire(namespace string) Place
	// Acquire waits for a place. It returns the cause of the context if that is done first.
	Acquire(ctx context.Context, namespace string) (Place, error)
}

// Place is held from when it is acquired until Release.
type Place interface {
	// Begin is called when the work begins.
	Begin()
	// Release gives the place back. Only the first call has an effect.
	Release()
}

func (c *ResponderConfig) validate() error {
	if c.API == nil {
		return errors.New("api is nil: set Lifecycle(client) or Coordination(client)")
	}
	if c.Name == "" {
		return errors.New("name is empty: set the name that pods use for the responder")
	}
	if c.Handle == nil {
		return fmt.Errorf("handle of responder %s is nil: set the function that does the work", c.Name)
	}
	if c.MaxConcurrent < 0 {
		return fmt.Errorf("maxConcurrent of responder %s is %d: must be positive, or 0 for the default, %d", c.Name, c.MaxConcurrent, DefaultMaxConcurrent)
	}
	if _, err := labels.Parse(c.LabelSelector); err != nil {
		return fmt.Errorf("labelSelector of responder %s is %q: %w", c.Name, c.LabelSelector, err)
	}
	if c.Informer != nil && (c.Namespace != "" || c.LabelSelector != "") {
		return fmt.Errorf("responder %s has an informer and namespace %q or labelSelector %q: set these on the informer only", c.Name, c.Namespace, c.LabelSelector)
	}
	return nil
}

// Responder acts on all pods for which the responder with its name is active.
type Responder struct {
	config   ResponderConfig
	rules    Rules
	informer cache.SharedIndexInformer
	queue    workqueue.TypedRateLimitingInterface[string]

	// turns holds the latest turn of each request in the cache, by namespace and name. Only sync
	// accesses it, which one goroutine calls.
	turns map[string]*Turn

	// working counts the turns that are running.
	working sync.WaitGroup

	// ran is set by the first call of Run.
	ran atomic.Bool
}

// NewResponder returns a responder that is ready to run, or an error if the configuration is invalid.
func NewResponder(config ResponderConfig) (*Responder, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if config.MaxConcurrent == 0 {
		config.MaxConcurrent = DefaultMaxConcurrent
	}
	if config.Places == nil {
		config.Places = make(semaphore, config.MaxConcurrent)
	}
	if config.WaitingMessage == "" {
		config.WaitingMessage = fmt.Sprintf("Waiting: the responder handles at most %d pods at a time.", config.MaxConcurrent)
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	return &Responder{
		config: config,
		rules:  config.API.Rules(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute),
			workqueue.TypedRateLimitingQueueConfig[string]{Clock: config.Clock},
		),
		turns: map[string]*Turn{},
	}, nil
}

// Run runs a responder until the context is done. It returns an error immediately if the
// configuration is invalid, and otherwise nil when all calls of Handle have returned.
func Run(ctx context.Context, config ResponderConfig) error {
	responder, err := NewResponder(config)
	if err != nil {
		return err
	}
	return responder.Run(ctx)
}

// RunOrDie is Run for programs that cannot handle an error: it panics.
func RunOrDie(ctx context.Context, config ResponderConfig) {
	if err := Run(ctx, config); err != nil {
		panic(err)
	}
}

// Run handles turns until the context is done, and returns when all calls of Handle have returned.
// It can be called once: further calls return an error.
func (r *Responder) Run(ctx context.Context) error {
	defer utilruntime.HandleCrashWithContext(ctx)
	if r.ran.Swap(true) {
		return fmt.Errorf("responder %s was already run: create a new one", r.config.Name)
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "responder", r.config.Name)
	ctx = klog.NewContext(ctx, logger)
	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer func() {
		stop(nil)
		r.queue.ShutDown()
		running.Wait()
		// Only the worker, which has returned, starts turns.
		r.working.Wait()
		logger.Info("Responder stopped")
	}()

	if r.informer = r.config.Informer; r.informer == nil {
		r.informer = r.config.API.Informer(r.config.Name, r.config.Namespace, r.config.LabelSelector)
		running.Go(func() { r.informer.RunWithContext(ctx) })
	}
	registration, err := r.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    r.enqueue,
		UpdateFunc: func(_, obj any) { r.enqueue(obj) },
		DeleteFunc: r.enqueue,
	})
	if err != nil {
		return fmt.Errorf("watching eviction requests for responder %s: %w", r.config.Name, err)
	}
	defer func() {
		if err := r.informer.RemoveEventHandler(registration); err != nil {
			logger.Error(err, "Could not stop watching eviction requests")
		}
	}()
	// WaitFor returns false if the context is done.
	if cache.WaitFor(ctx, "eviction requests", registration.HasSyncedChecker()) {
		logger.Info("Responder started", "maxConcurrent", r.config.MaxConcurrent)
		running.Go(func() {
			for r.processNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	return nil
}

// Reconsider calls Accept again for a request that it has not accepted, because something other
// than the request has changed. It does not affect a running turn. It may be called at any time,
// and for requests that do not exist.
func (r *Responder) Reconsider(namespace, name string) {
	r.queue.Add(cache.NewObjectName(namespace, name).String())
}

func (r *Responder) enqueue(obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("getting the key of an eviction request: %w", err))
		return
	}
	r.queue.Add(key)
}

func (r *Responder) processNext(ctx context.Context) bool {
	key, shutdown := r.queue.Get()
	if shutdown {
		return false
	}
	defer r.queue.Done(key)
	obj, exists, err := r.informer.GetIndexer().GetByKey(key)
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not read an eviction request from the cache", "evictionRequest", key)
		return true
	}
	var request *Request
	if exists {
		request = r.config.API.Read(obj, r.config.Name)
	}
	r.sync(ctx, key, request)
	return true
}

// sync starts or ends a turn according to the state of the request, which is nil if it is gone. It
// makes no API calls and does not block.
func (r *Responder) sync(ctx context.Context, key string, request *Request) {
	reason := ErrRequestGone
	if request != nil {
		reason = request.Ended
	}
	turn := r.turns[key]
	if turn != nil && request != nil && turn.request.UID != request.UID {
		turn.cancel(ErrRequestGone)
	} else if turn != nil && reason != nil {
		turn.cancel(reason)
	}
	if turn != nil && !turn.returned() {
		return // The key is enqueued when the turn returns.
	}
	// Drop turns that ended or belong to another request. Keep completed turns: until the
	// controller has updated the request and the cache has the update, the responder still seems
	// to be active.
	if turn != nil && reason == nil && turn.request.UID == request.UID && turn.finished {
		return
	}
	delete(r.turns, key)
	if reason != nil || !request.Report.Completion.IsZero() || !r.accepts(request) {
		r.queue.Forget(key)
		return
	}
	turn = newTurn(ctx, r, request)
	r.turns[key] = turn
	r.working.Go(func() {
		defer r.queue.AddRateLimited(key)
		turn.run()
	})
}

// accepts reports whether to start a turn for which the responder is active.
func (r *Responder) accepts(request *Request) bool {
	return r.config.Accept == nil || r.config.Accept(request)
}

// ref returns how logs and errors name the request.
func (r *Request) ref() klog.ObjectRef { return klog.KRef(r.Namespace, r.Name) }

// semaphore is Places without regard to namespaces: it has a value for each place that is taken.
type semaphore chan struct{}

type semaphorePlace struct {
	semaphore semaphore
	release   sync.Once
}

func (s semaphore) TryAcquire(string) Place {
	select {
	case s <- struct{}{}:
		return &semaphorePlace{semaphore: s}
	default:
		return nil
	}
}

func (s semaphore) Acquire(ctx context.Context, _ string) (Place, error) {
	select {
	case s <- struct{}{}:
		return &semaphorePlace{semaphore: s}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *semaphorePlace) Begin() {}

func (p *semaphorePlace) Release() { p.release.Do(func() { <-p.semaphore }) }
