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

package coordination

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EvictionRequest requests the eviction of one instance of a pod and tracks its progress
// (KEP-4563).
//
// Requesters add themselves to spec.requesters. The interceptors that the pod names act one after
// another, in order: one is active at a time, reports heartbeats, and either terminates the pod or
// completes, after which the next one becomes active. The last interceptor is always
// imperative-eviction.k8s.io, which evicts the pod through the API that respects
// PodDisruptionBudgets. An active interceptor that sends no heartbeat for
// spec.heartbeatDeadlineSeconds is skipped, unless it is the only one that can stop the pod.
//
// The request is finished when one of its conditions Evicted or Canceled is True.
type EvictionRequest struct {
	metav1.TypeMeta

	// metadata is the standard object metadata. The name is the UID of the target
	// pod, so there is at most one request per pod instance; generateName is
	// rejected. The eviction request controller copies the pod's labels here; where
	// both have a key, the pod's value wins.
	metav1.ObjectMeta

	// spec is the pod to evict and the requesters. Written by requesters.
	Spec EvictionRequestSpec

	// status is the progress of the eviction. Written by the eviction request controller and, in
	// its own entry of status.interceptors, by the active interceptor. Ignored on creation.
	Status EvictionRequestStatus
}

// EvictionRequestSpec is the desired eviction.
type EvictionRequestSpec struct {
	// target is the object to evict. Immutable.
	Target EvictionTarget

	// requesters lists the clients that request the eviction. A request is created with at least
	// one of them, and is canceled when the last one is removed. At most 100. Each requester adds
	// and removes only its own entry, preferably by Server-Side Apply with a field manager of its
	// own.
	Requesters []Requester

	// heartbeatDeadlineSeconds is how long an active interceptor may send no heartbeat before the
	// next interceptor becomes active, in seconds. It counts from the last heartbeat or from the
	// activation, whichever is later. An interceptor that is the only one that can stop the pod
	// has no deadline: daemonset.apps.k8s.io for pods of DaemonSets, kubelet.k8s.io for static
	// pods, imperative-eviction.k8s.io for all others. For 5 minutes after the controller has
	// started, or has reached the API server again, no interceptor is skipped. From 120 to 21600,
	// default 1200. Set by the first requester. Others may lower it, but not below 1200; it never
	// increases.
	HeartbeatDeadlineSeconds *int32
}

// EvictionTarget names the object to evict. Exactly one member is set.
type EvictionTarget struct {
	// pod is a pod in the namespace of the request. A pod of a scheduling group
	// (spec.schedulingGroup) whose PodGroup has the disruptionMode all, or does not exist, cannot be
	// evicted by an EvictionRequest: its request is canceled.
	Pod *LocalPodReference
}

// LocalPodReference names one instance of a pod in the namespace of the referrer.
type LocalPodReference struct {
	// name of the pod.
	Name string

	// uid of the pod, a UUID in lower case. It distinguishes this instance from other pods with
	// the same name.
	UID string
}

// Requester is a client that requests the eviction of the target.
type Requester struct {
	// name is a fully qualified domain name in lower case with at most 253
	// characters, such as drain.example.com, or a domain-prefixed key, such as
	// example.com/drain. Unique among the requesters.
	Name string
}

// Interceptor is a component that acts before the pod is evicted.
type Interceptor struct {
	// name is a fully qualified domain name in lower case with at most 253
	// characters, such as migrate.example.com, or a domain-prefixed key, such as
	// example.com/migrate. Unique among the interceptors.
	Name string
}

// EvictionRequestCancellationPolicy determines whether a request can still be canceled.
type EvictionRequestCancellationPolicy string

const (
	// EvictionRequestCancellationPolicyAllow lets a request be canceled at any time.
	// An empty value means the same.
	EvictionRequestCancellationPolicyAllow EvictionRequestCancellationPolicy = "Allow"

	// EvictionRequestCancellationPolicyForbid continues the request as long as its pod exists,
	// even without requesters, and prevents its deletion. It cannot be changed back.
	EvictionRequestCancellationPolicyForbid EvictionRequestCancellationPolicy = "Forbid"
)

// EvictionRequestStatus is the progress of the eviction.
type EvictionRequestStatus struct {
	// observedGeneration is the metadata.generation that the controller processed last. Written by
	// the eviction request controller; never decreases.
	ObservedGeneration int64

	// conditions of the request. Canceled and Evicted are written by the eviction request
	// controller and are final once True; at most one of them is. InterceptorUnresponsive is True
	// while a heartbeat of the active interceptor is overdue, Blocked while the API server refuses
	// the eviction. InterceptorsSkipped is written by the node maintenance controller. Reconciling and
	// Stalled are set by kube-apiserver. At most 100 besides these seven.
	Conditions []metav1.Condition

	// targetInterceptors are all interceptors of this request, in the order in which they act:
	// those that the pod names, then the built-in ones, the last of which is
	// imperative-eviction.k8s.io. Written once by the eviction request controller, then immutable.
	// At most 16.
	TargetInterceptors []Interceptor

	// activeInterceptors names the interceptor that is active: it may act on the pod, and must
	// report heartbeats in its entry of status.interceptors. Written by the eviction request
	// controller. At most 1; empty before the first interceptor and after the last.
	ActiveInterceptors []string

	// processedInterceptors names the interceptors that have been active, in order: they
	// completed, missed the heartbeat deadline, or were stopped by a cancellation. Written by the
	// eviction request controller, which only appends. At most 16.
	ProcessedInterceptors []string

	// interceptors is the progress of each interceptor, with the names and the order of
	// targetInterceptors. The eviction request controller writes the empty entries; afterwards,
	// each entry is written by the interceptor that it names, while that interceptor is active. At
	// most 16.
	Interceptors []InterceptorStatus

	// evictionRequestCancellationPolicy is Allow or Forbid; empty means Allow. An active
	// interceptor sets Forbid when its work can no longer be undone: the request can then not be
	// canceled. Forbid cannot be changed back, and remains when that interceptor is no longer
	// active.
	EvictionRequestCancellationPolicy EvictionRequestCancellationPolicy

	// activationTime is when the active interceptor became active. Written by the eviction request
	// controller together with activeInterceptors. The heartbeat deadline of an interceptor that
	// has not reported yet counts from here.
	ActivationTime *metav1.Time
}

// EvictionRequestConditionType is a type of condition of an EvictionRequest.
type EvictionRequestConditionType string

const (
	// EvictionRequestConditionCanceled is True when the request was canceled: no interceptor acts
	// on it any more, and the pod stays. The reason says why.
	EvictionRequestConditionCanceled EvictionRequestConditionType = "Canceled"

	// EvictionRequestConditionEvicted is True when the pod was deleted or has reached a terminal
	// phase, whatever the cause.
	EvictionRequestConditionEvicted EvictionRequestConditionType = "Evicted"

	// EvictionRequestConditionInterceptorUnresponsive is True while the first or the next
	// heartbeat of the active interceptor is overdue, long before the heartbeat deadline.
	EvictionRequestConditionInterceptorUnresponsive EvictionRequestConditionType = "InterceptorUnresponsive"

	// EvictionRequestConditionBlocked is True while imperative-eviction.k8s.io is active and the
	// API server refuses to evict the pod. The reason says why, the message names the object.
	EvictionRequestConditionBlocked EvictionRequestConditionType = "Blocked"

	// EvictionRequestConditionInterceptorsSkipped is True when the interceptors that have not acted
	// are passed over, but those that are the only ones that can stop the pod.
	EvictionRequestConditionInterceptorsSkipped EvictionRequestConditionType = "InterceptorsSkipped"

	// EvictionRequestConditionReconciling is True while the request goes on without an intervention.
	EvictionRequestConditionReconciling EvictionRequestConditionType = "Reconciling"

	// EvictionRequestConditionStalled is True while the request needs an intervention.
	EvictionRequestConditionStalled EvictionRequestConditionType = "Stalled"
)

const (
	// EvictionRequestReasonNoRequesters is the reason of Canceled when the last requester was
	// removed, or the request is being deleted.
	EvictionRequestReasonNoRequesters = "NoRequesters"

	// EvictionRequestReasonValidationFailed is the reason of Canceled when an EvictionRequest
	// cannot evict the target: the pod does not exist, or is part of a scheduling group.
	EvictionRequestReasonValidationFailed = "ValidationFailed"

	// EvictionRequestReasonPodDeleted is the reason of Evicted when the pod no longer exists.
	EvictionRequestReasonPodDeleted = "PodDeleted"

	// EvictionRequestReasonPodTerminal is the reason of Evicted when the pod has
	// succeeded or failed.
	EvictionRequestReasonPodTerminal = "PodTerminal"

	// EvictionRequestReasonDisruptionBudget is the reason of Blocked when a
	// PodDisruptionBudget does not allow the eviction now, or two of them select the pod.
	EvictionRequestReasonDisruptionBudget = "DisruptionBudget"

	// EvictionRequestReasonEvictionRefused is the reason of Blocked when the API server
	// refuses the eviction for any other reason, such as an admission webhook.
	EvictionRequestReasonEvictionRefused = "EvictionRefused"

	// EvictionRequestReasonNotBlocked is the reason of Blocked when it is no longer True.
	EvictionRequestReasonNotBlocked = "NotBlocked"

	// EvictionRequestReasonNoInterceptorLeft is the reason of Stalled when all interceptors are
	// processed and the pod is still there.
	EvictionRequestReasonNoInterceptorLeft = "NoInterceptorLeft"
)

// InterceptorStatus is the progress that an interceptor reports. Written by the interceptor that
// it names, while it is active.
type InterceptorStatus struct {
	// name of the interceptor, as in status.targetInterceptors. Immutable.
	Name string

	// heartbeatTime is when the interceptor last reported that it is working. First set together
	// with startTime; always within 10 seconds of the server's time. Each update advances it by at
	// least 60 seconds.
	HeartbeatTime *metav1.Time

	// expectedFinishTime is when the interceptor expects to finish. Not in the past when it is set
	// or changed, and not after the year 9999 in UTC. Unset if there is no estimate.
	ExpectedFinishTime *metav1.Time

	// startTime is when the interceptor started, within 10 seconds of the server's time. Set
	// together with the first heartbeatTime, then immutable.
	StartTime *metav1.Time

	// completionTime is when the interceptor completed, within 10 seconds of the server's time: it
	// has terminated the pod, has prepared for its termination, or declines to act, which does not
	// need startTime. The next interceptor then becomes active. Once it is set, the entry is
	// immutable.
	CompletionTime *metav1.Time

	// message is a human-readable description of what the interceptor is doing or waiting for. At
	// most 32768 characters; may be empty.
	Message string

	// retries is the number of attempts of this interceptor that were refused. The interceptor
	// derives its back-off from it, also after a restart. Only imperative-eviction.k8s.io needs
	// it. Not negative; never decreases.
	Retries int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EvictionRequestList is a list of EvictionRequests.
type EvictionRequestList struct {
	metav1.TypeMeta

	// metadata is the standard list metadata.
	metav1.ListMeta

	// items are the EvictionRequests.
	Items []EvictionRequest
}
