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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictions"
	"k8s.io/client-go/util/fairshare"
	"k8s.io/utils/clock"
)

// DefaultMaxConcurrent is the default number of concurrent calls of Handle.
const DefaultMaxConcurrent = evictions.DefaultMaxConcurrent

// Reasons for the end of a turn before the interceptor has completed, see package evictions.
var (
	ErrCanceled    = evictions.ErrCanceled
	ErrEvicted     = evictions.ErrEvicted
	ErrTurnLost    = evictions.ErrTurnLost
	ErrRequestGone = evictions.ErrRequestGone
)

// Decline returns an error for Handle to pass a pod on: the interceptor completes with this
// message, and the next one is activated.
func Decline(message string) error { return evictions.Decline(message) }

// Turn is the period during which an interceptor is active for one request. Its methods are safe
// for concurrent use, and have no effect after the turn.
type Turn struct{ *evictions.Turn }

// Request returns the request as it was at the start of the turn. It must not be modified.
func (t *Turn) Request() *coordinationv1alpha1.EvictionRequest {
	return t.Turn.Request().Object.(*coordinationv1alpha1.EvictionRequest)
}

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

// Interceptor acts on all pods for which the interceptor with its name is active. Its turns are those of package
// evictions, the library for everybody. Added here are the types and the client that upstream does not have, and how
// namespaces share places.
type Interceptor struct{ *evictions.Responder }

// NewInterceptor returns an interceptor that is ready to run.
func NewInterceptor(config InterceptorConfig) (*Interceptor, error) {
	responder, err := newResponder(config)
	if err != nil {
		return nil, err
	}
	return &Interceptor{responder}, nil
}

func newResponder(config InterceptorConfig) (*evictions.Responder, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if config.MaxConcurrent == 0 {
		config.MaxConcurrent = DefaultMaxConcurrent
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	responder := evictions.ResponderConfig{
		API:            typedAPI{config.Client},
		Name:           config.Name,
		Handle:         func(ctx context.Context, turn *evictions.Turn) error { return config.Handle(ctx, &Turn{turn}) },
		Persistent:     config.Persistent,
		MaxConcurrent:  config.MaxConcurrent,
		Places:         places{fairshare.NewPlaces(config.MaxConcurrent, config.MaxConcurrentPerNamespace, config.Clock)},
		WaitingMessage: config.waitingMessage(),
		Namespace:      config.Namespace,
		LabelSelector:  config.LabelSelector,
		Clock:          config.Clock,
	}
	if config.Accept != nil {
		responder.Accept = func(request *evictions.Request) bool {
			return config.Accept(request.Object.(*coordinationv1alpha1.EvictionRequest))
		}
	}
	if config.Informer != nil {
		// A factory only starts informers that were requested before its start.
		responder.Informer = config.Informer.Informer()
	}
	return evictions.NewResponder(responder)
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

// waitingMessage returns the message of a turn that waits for a place.
func (c *InterceptorConfig) waitingMessage() string {
	if perNamespace := c.MaxConcurrentPerNamespace; perNamespace > 0 {
		return fmt.Sprintf("Waiting: the interceptor handles at most %d pods at a time, at most %d of them in this namespace, and fewer if its work is slow.", c.MaxConcurrent, perNamespace)
	}
	return fmt.Sprintf("Waiting: the interceptor handles at most %d pods at a time.", c.MaxConcurrent)
}

// places has namespaces share the places. What it returns is nil, and no interface of a nil pointer, without a place.
type places struct{ *fairshare.Places }

func (p places) TryAcquire(namespace string) evictions.Place {
	if place := p.Places.TryAcquire(namespace); place != nil {
		return place
	}
	return nil
}

func (p places) Acquire(ctx context.Context, namespace string) (evictions.Place, error) {
	place, err := p.Places.Acquire(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return place, nil
}

// typedAPI is what evictions.Coordination is, with the types and the client of the tree.
type typedAPI struct{ client kubernetes.Interface }

func (a typedAPI) Rules() evictions.Rules { return evictions.CoordinationRules }

func (a typedAPI) Informer(_, namespace, labelSelector string) cache.SharedIndexInformer {
	informer := coordinationinformers.NewFilteredEvictionRequestInformer(a.client, namespace, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.LabelSelector = labelSelector })
	if err := informer.SetTransform(ShareMemory()); err != nil {
		utilruntime.HandleError(fmt.Errorf("sharing the memory of eviction requests: %w", err)) // It has started, which cannot be.
	}
	return informer
}

func (a typedAPI) Get(ctx context.Context, namespace, name, interceptor string) (*evictions.Request, error) {
	request, err := a.client.CoordinationV1alpha1().EvictionRequests(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return a.Read(request, interceptor), nil
}

// Write applies the entry of the interceptor and no other entry. An entry is applied as a whole. Force is set because the
// controller, which has created it, is its first owner. The UID ensures that the patch does not apply to another request
// of the same name.
func (a typedAPI) Write(ctx context.Context, request *evictions.Request, interceptor string, report evictions.Report, forbid bool) (*evictions.Request, error) {
	entry := coordinationapply.InterceptorStatus().WithName(interceptor)
	entry.StartTime, entry.HeartbeatTime = evictions.Stored(report.Start), evictions.Stored(report.Heartbeat)
	entry.ExpectedFinishTime, entry.CompletionTime = evictions.Stored(report.ExpectedCompletion), evictions.Stored(report.Completion)
	if report.Message != "" {
		entry.WithMessage(report.Message)
	}
	status := coordinationapply.EvictionRequestStatus().WithInterceptors(entry)
	if forbid {
		status.WithEvictionRequestCancellationPolicy(coordinationv1alpha1.EvictionRequestCancellationPolicyForbid)
	}
	patch := coordinationapply.EvictionRequest(request.Name, request.Namespace).WithUID(request.UID).WithStatus(status)
	written, err := a.client.CoordinationV1alpha1().EvictionRequests(request.Namespace).
		ApplyStatus(ctx, patch, metav1.ApplyOptions{FieldManager: FieldManager(interceptor), Force: true})
	if err != nil {
		return nil, err
	}
	return a.Read(written, interceptor), nil
}

func (a typedAPI) Read(obj any, interceptor string) *evictions.Request {
	request := obj.(*coordinationv1alpha1.EvictionRequest)
	read := &evictions.Request{
		Namespace: request.Namespace, Name: request.Name, UID: request.UID,
		Ended:                 endReason(request, interceptor),
		Unwanted:              !IsWanted(request),
		CancellationForbidden: request.Status.EvictionRequestCancellationPolicy == coordinationv1alpha1.EvictionRequestCancellationPolicyForbid,
		ActiveSince:           evictions.TimeOf(request.Status.ActivationTime),
		HeartbeatDeadline:     HeartbeatDeadline(request),
		Object:                request,
	}
	if pod := request.Spec.Target.Pod; pod != nil {
		read.Pod = evictions.Pod{Name: pod.Name, UID: types.UID(pod.UID)}
	}
	if entry := InterceptorStatusOf(&request.Status, interceptor); entry != nil {
		read.Report = evictions.Report{
			Start: evictions.TimeOf(entry.StartTime), Heartbeat: evictions.TimeOf(entry.HeartbeatTime),
			ExpectedCompletion: evictions.TimeOf(entry.ExpectedFinishTime), Completion: evictions.TimeOf(entry.CompletionTime), Message: entry.Message,
		}
	}
	return read
}

// endReason returns nil if the interceptor is active, and otherwise why it is not.
func endReason(request *coordinationv1alpha1.EvictionRequest, interceptor string) error {
	switch {
	case isConditionTrue(request, coordinationv1alpha1.EvictionRequestConditionEvicted):
		return ErrEvicted
	case isConditionTrue(request, coordinationv1alpha1.EvictionRequestConditionCanceled):
		return ErrCanceled
	case !isActive(request, interceptor):
		return ErrTurnLost
	}
	return nil
}
