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

// EvictionRequest asks that one instance of a pod leaves its node, and tracks
// how it does (KEP-4563).
//
// Requesters ask by standing in spec.requesters. The interceptors that the pod
// names get their turn one after another, in order: one is active at a time,
// reports its heartbeat, and either ends the pod or completes and lets the next
// one act. The last interceptor is always imperative-eviction.k8s.io, which
// evicts the pod within its PodDisruptionBudgets. An active interceptor whose
// heartbeats stop for spec.heartbeatDeadlineSeconds loses its turn, unless it is the
// only one that can end the pod.
//
// The request is over when one of its conditions Evicted or Canceled is True.
type EvictionRequest struct {
	metav1.TypeMeta

	// metadata is the standard object metadata. The name is the UID of the target
	// pod, so there is at most one request per pod instance; generateName is
	// rejected. The eviction request controller copies the pod's labels here; where
	// both have a key, the pod's value wins.
	metav1.ObjectMeta

	// spec says which pod should leave and who asks for it. Written by requesters.
	Spec EvictionRequestSpec

	// status says how far the eviction is. Written by the eviction request
	// controller and, in its own entry of status.interceptors, by the active
	// interceptor. Ignored on creation.
	Status EvictionRequestStatus
}

// EvictionRequestSpec is what the requesters want.
type EvictionRequestSpec struct {
	// target is the object that should be evicted. Immutable.
	Target EvictionTarget

	// requesters lists everybody who wants the target evicted. A request is created
	// with at least one of them, and is canceled when the last one leaves. At most
	// 100. Each requester adds and removes its own entry only, best by Server-Side
	// Apply, where every requester is its own field manager.
	Requesters []Requester

	// heartbeatDeadlineSeconds is how long an active interceptor may be silent before
	// the next one takes over, in seconds. It counts from the later of its last
	// heartbeat and its activation. There is no deadline for the interceptor that is the
	// only one to end the pod: daemonset.apps.k8s.io on pods of DaemonSets,
	// kubelet.k8s.io on static ones, imperative-eviction.k8s.io on all others. After the
	// start of the controller, and after it was cut off from the API server, nobody loses
	// a turn for 5 minutes. From 120 to 21600, default 1200. Set by the first requester,
	// then immutable.
	HeartbeatDeadlineSeconds *int32
}

// EvictionTarget names the object to evict. Exactly one member is set.
type EvictionTarget struct {
	// pod is a pod in the namespace of the request. A pod that belongs to a
	// scheduling group (spec.schedulingGroup) is not evicted this way: its request is
	// canceled.
	Pod *LocalPodReference
}

// LocalPodReference names one instance of a pod in the namespace of the referrer.
type LocalPodReference struct {
	// name of the pod.
	Name string

	// uid of the pod, a UUID in lower case. It tells this instance from another pod
	// that has, or will have, the same name.
	UID string
}

// Requester is somebody who wants the target evicted.
type Requester struct {
	// name is a fully qualified domain name in lower case with at most 253
	// characters, such as drain.example.com, or a domain-prefixed key, such as
	// example.com/drain. Unique among the requesters.
	Name string
}

// Interceptor is somebody who takes a part in the eviction before the pod goes.
type Interceptor struct {
	// name is a fully qualified domain name in lower case with at most 253
	// characters, such as migrate.example.com, or a domain-prefixed key, such as
	// example.com/migrate. Unique among the interceptors.
	Name string
}

// EvictionRequestCancellationPolicy says whether a request can still be called off.
type EvictionRequestCancellationPolicy string

const (
	// EvictionRequestCancellationPolicyAllow lets a request be canceled at any time.
	// An empty value means the same.
	EvictionRequestCancellationPolicyAllow EvictionRequestCancellationPolicy = "Allow"

	// EvictionRequestCancellationPolicyForbid keeps a request going while its pod
	// exists, even without requesters, and keeps it from being deleted. It is final.
	EvictionRequestCancellationPolicyForbid EvictionRequestCancellationPolicy = "Forbid"
)

// EvictionRequestStatus is how far the eviction is.
type EvictionRequestStatus struct {
	// observedGeneration is the metadata.generation that the controller acted upon
	// last. Written by the eviction request controller; it only grows.
	ObservedGeneration int64

	// conditions of the request. Canceled and Evicted are written by the eviction
	// request controller and are final once True; at most one of them is.
	// InterceptorUnresponsive is True while the active interceptor is overdue, Blocked
	// while the pod cannot be evicted. At most 100 besides these four.
	Conditions []metav1.Condition

	// targetInterceptors are all interceptors of this request, in the order in which
	// they get their turn: those that the pod names, then the built-in ones, the last
	// of which is imperative-eviction.k8s.io. Written once by the eviction request
	// controller, then immutable. At most 16.
	TargetInterceptors []Interceptor

	// activeInterceptors names the interceptor whose turn it is: it may act on the
	// pod, and has to report in its entry of status.interceptors. Written by the
	// eviction request controller. At most 1; empty before the first and after the
	// last turn.
	ActiveInterceptors []string

	// processedInterceptors names the interceptors that had their turn, in order:
	// they completed, fell silent, or were stopped by a cancellation. Written by the
	// eviction request controller; it only grows. At most 16.
	ProcessedInterceptors []string

	// interceptors holds the report of each interceptor, with the names and the order
	// of targetInterceptors. The eviction request controller writes the empty entries;
	// after that, each entry belongs to the interceptor that it names, while that one
	// is active. At most 16.
	Interceptors []InterceptorStatus

	// evictionRequestCancellationPolicy says whether the request can still be called
	// off. Allow, which is also what an empty value means, or Forbid: an active
	// interceptor sets that when its work can no longer be undone. Forbid is final: nobody
	// can take it back, and it stays when that interceptor's turn ends.
	EvictionRequestCancellationPolicy EvictionRequestCancellationPolicy

	// activationTime is when activeInterceptors last got a new name. Written by the
	// eviction request controller together with activeInterceptors. The heartbeat
	// deadline of an interceptor that has not reported yet counts from here.
	ActivationTime *metav1.Time
}

// EvictionRequestConditionType is a type of condition of an EvictionRequest.
type EvictionRequestConditionType string

const (
	// EvictionRequestConditionCanceled is True when the request was given up: nobody
	// acts on it any more, and the pod stays. The reason says why.
	EvictionRequestConditionCanceled EvictionRequestConditionType = "Canceled"

	// EvictionRequestConditionEvicted is True when the target is gone: the pod was
	// deleted or has reached a terminal phase, by whomever.
	EvictionRequestConditionEvicted EvictionRequestConditionType = "Evicted"

	// EvictionRequestConditionInterceptorUnresponsive is True while the active
	// interceptor is overdue with its first or next report, long before it loses its
	// turn.
	EvictionRequestConditionInterceptorUnresponsive EvictionRequestConditionType = "InterceptorUnresponsive"

	// EvictionRequestConditionBlocked is True while imperative-eviction.k8s.io is active
	// and the API server refuses to evict the pod. The reason says what is in the way,
	// the message names it.
	EvictionRequestConditionBlocked EvictionRequestConditionType = "Blocked"
)

const (
	// EvictionRequestReasonNoRequesters is the reason of Canceled when the last
	// requester has left.
	EvictionRequestReasonNoRequesters = "NoRequesters"

	// EvictionRequestReasonValidationFailed is the reason of Canceled when the target
	// cannot be evicted this way: it does not exist, or is part of a scheduling group.
	EvictionRequestReasonValidationFailed = "ValidationFailed"

	// EvictionRequestReasonPodDeleted is the reason of Evicted when the pod does not
	// exist any more.
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

	// EvictionRequestReasonNotBlocked is the reason of Blocked when it is not True any
	// more.
	EvictionRequestReasonNotBlocked = "NotBlocked"
)

// InterceptorStatus is what an interceptor reports of its part in the eviction.
// Written by the interceptor that it names, while that one is active.
type InterceptorStatus struct {
	// name of the interceptor, as in status.targetInterceptors. Immutable.
	Name string

	// heartbeatTime is when the interceptor last said that it is at work. Set together
	// with startTime first, within 10 seconds of the server's time; afterwards it only
	// grows, by at least 60 seconds.
	HeartbeatTime *metav1.Time

	// expectedFinishTime is when the interceptor expects to be done, its ETA. Not in
	// the past when it is set or changed. Empty when there is no estimate.
	ExpectedFinishTime *metav1.Time

	// startTime is when the interceptor took up its part, within 10 seconds of the
	// server's time. Set together with the first heartbeatTime, then immutable.
	StartTime *metav1.Time

	// completionTime is when the interceptor was done, within 10 seconds of the
	// server's time: whether it has ended the pod, prepared for its end, or declined
	// to act. The next interceptor gets its turn then. Immutable once set.
	CompletionTime *metav1.Time

	// message tells people what the interceptor is doing or waiting for. At most 32768
	// characters; may be empty.
	Message string

	// retries counts the attempts of this interceptor that were refused. It outlasts a
	// restart of the interceptor, which spaces its attempts by it. Only
	// imperative-eviction.k8s.io needs it. Not negative; it only grows.
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
