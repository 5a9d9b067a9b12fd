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
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Reasons for the end of a turn before the responder has completed. The context.Cause of the context of Handle is, or
// wraps, one of them.
var (
	// ErrCanceled means that the eviction was canceled: the pod stays.
	ErrCanceled = errors.New("the eviction request was canceled")

	// ErrEvicted means that the pod is gone or terminal, whatever the cause.
	ErrEvicted = errors.New("the pod was evicted")

	// ErrTurnLost means that the responder is no longer active, or is about to time out because no heartbeat reached the
	// API server. In lifecycle.k8s.io it is Interrupted then.
	ErrTurnLost = errors.New("the responder is no longer active")

	// ErrRequestGone means that the request was deleted, or no longer matches the label selector.
	ErrRequestGone = errors.New("the eviction request is gone")

	// ErrNotSupported is the error of ForbidCancellation in lifecycle.k8s.io, which does not have it.
	ErrNotSupported = errors.New("lifecycle.k8s.io cannot forbid the cancellation of an eviction")
)

// Report is what a responder has reported about one pod. Times that are zero are not set.
type Report struct {
	// Start is when its work has started. In lifecycle.k8s.io the controller sets it, when the responder becomes Active.
	Start time.Time
	// Heartbeat is the last sign of life.
	Heartbeat time.Time
	// ExpectedCompletion is the time at which it expects to complete.
	ExpectedCompletion time.Time
	// Completion is when it has completed.
	Completion time.Time
	// Message is for people.
	Message string
}

// Pod is the instance of a pod that is to be evicted. It is in the namespace of its request. One that comes back under
// the same name has another UID.
type Pod struct {
	Name string
	UID  types.UID
}

// Request is what one responder has to know about the eviction of one pod, in either group: an EvictionRequest of
// coordination.k8s.io (KEP-4563, Interceptor), or an Eviction of lifecycle.k8s.io. It must not be modified.
type Request struct {
	// Namespace, Name and UID are those of the object.
	Namespace, Name string
	UID             types.UID

	Pod Pod

	// Ended is nil while the responder is active, and otherwise the reason why it is not.
	Ended error

	// Unwanted is whether nobody requests the eviction any more, which is about to be canceled.
	Unwanted bool

	// CancellationForbidden is whether this or an earlier responder has forbidden the cancellation. It is always false in
	// lifecycle.k8s.io.
	CancellationForbidden bool

	// ActiveSince is when the responder became active.
	ActiveSince time.Time

	// HeartbeatDeadline is how long it may be silent before the next one becomes active: from 2 minutes to 6 hours in
	// coordination.k8s.io, and 20 minutes in lifecycle.k8s.io.
	HeartbeatDeadline time.Duration

	// Report is what the responder has reported, perhaps before a restart.
	Report Report

	// Object is the object itself: *unstructured.Unstructured in coordination.k8s.io, and *v1alpha1.Eviction in
	// lifecycle.k8s.io.
	Object any
}

// API is one of the groups in which evictions are requested. Lifecycle and Coordination return one. A program needs none
// of its methods; controllers of the tree implement it with the typed client that only the tree has.
type API interface {
	// Informer returns an informer of the objects in the namespace that have these labels, and concern the responder. All
	// namespaces are "", and all labels as well.
	Informer(responder, namespace, labelSelector string) cache.SharedIndexInformer

	// Read returns what an object of the informer, which is not modified, tells the responder.
	Read(obj any, responder string) *Request

	// Get reads an object from the API server. Its errors are those of the API server.
	Get(ctx context.Context, namespace, name, responder string) (*Request, error)

	// Write replaces the report of the responder, in the object with the UID of the request, and nothing of others. If
	// forbid is set, it forbids the cancellation as well. It returns the object after that. Its errors are those of the
	// API server.
	Write(ctx context.Context, request *Request, responder string, report Report, forbid bool) (*Request, error)

	// Rules returns what the API server demands of reports.
	Rules() Rules
}

// Rules are what an API server demands of reports.
type Rules struct {
	// MaxClockSkew is how far a reported time may differ from the clock of the API server.
	MaxClockSkew time.Duration
	// MaxMessageLength is how long a message may be, in characters.
	MaxMessageLength int
	// MaxMessageBytes is how long it may be in bytes.
	MaxMessageBytes int
	// CanForbid is whether a responder can forbid the cancellation.
	CanForbid bool
}
