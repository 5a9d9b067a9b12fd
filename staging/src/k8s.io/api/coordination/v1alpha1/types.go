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

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// EvictionInterceptorImperative is the built-in interceptor that ends every
	// interceptor list of a pod: it calls the pods/eviction subresource, which
	// respects PodDisruptionBudgets. It cannot be put on a pod by hand.
	EvictionInterceptorImperative = "imperative-eviction.k8s.io"

	// EvictionInterceptorDaemonSet is the DaemonSet controller. It gets a turn for every
	// pod that a DaemonSet controls, also where the pod does not name it.
	EvictionInterceptorDaemonSet = "daemonset.apps.k8s.io"

	// EvictionInterceptorDeployment is the Deployment controller. It stands on the pods of
	// Deployments with a rolling update strategy and a maxSurge (gate DeploymentPodSurge):
	// it brings up a replacement before such a pod goes.
	EvictionInterceptorDeployment = "deployment.apps.k8s.io"

	// EvictionInterceptorHorizontalPodAutoscaler is reserved for the HorizontalPodAutoscaler
	// controller, which does not act yet: its turns are passed on at once.
	EvictionInterceptorHorizontalPodAutoscaler = "horizontalpodautoscaler.autoscaling.k8s.io"

	// EvictionInterceptorKubelet is the kubelet. It gets a turn for every mirror pod,
	// which stands for a static pod that only the kubelet can end.
	EvictionInterceptorKubelet = "kubelet.k8s.io"

	// EvictionInterceptorReplicaSet is the ReplicaSet controller. It stands behind
	// EvictionInterceptorDeployment and evicts the pod within its PodDisruptionBudgets.
	EvictionInterceptorReplicaSet = "replicaset.apps.k8s.io"

	// EvictionInterceptorStatefulSet is the StatefulSet controller. It stands on the pods of
	// StatefulSets with a rolling update strategy and several replicas (gate
	// StatefulSetEvictionPacing): it passes them on one after another, so that no more than
	// maxUnavailable of them are away at a time.
	EvictionInterceptorStatefulSet = "statefulset.apps.k8s.io"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:prerelease-lifecycle-gen:introduced=1.36
// +k8s:supportsSubresource="/status"

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
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name is the UID of the target
	// pod, so there is at most one request per pod instance; generateName is
	// rejected. The eviction request controller copies the pod's labels here; where
	// both have a key, the pod's value wins.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec says which pod should leave and who asks for it. Written by requesters.
	// +required
	Spec EvictionRequestSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`

	// status says how far the eviction is. Written by the eviction request
	// controller and, in its own entry of status.interceptors, by the active
	// interceptor. Ignored on creation.
	// +optional
	Status EvictionRequestStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// EvictionRequestSpec is what the requesters want.
type EvictionRequestSpec struct {
	// target is the object that should be evicted. Immutable.
	// +required
	// +k8s:immutable
	Target EvictionTarget `json:"target" protobuf:"bytes,1,opt,name=target"`

	// requesters lists everybody who wants the target evicted. A request is created
	// with at least one of them, and is canceled when the last one leaves. At most
	// 100. Each requester adds and removes its own entry only, best by Server-Side
	// Apply, where every requester is its own field manager.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +k8s:optional
	// +k8s:listType=map
	// +k8s:listMapKey=name
	// +k8s:maxItems=100
	Requesters []Requester `json:"requesters,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,2,rep,name=requesters"`

	// heartbeatDeadlineSeconds is how long an active interceptor may be silent before
	// the next one takes over, in seconds. It counts from the later of its last
	// heartbeat and its activation. There is no deadline for the interceptor that is the
	// only one to end the pod: daemonset.apps.k8s.io on pods of DaemonSets,
	// kubelet.k8s.io on static ones, imperative-eviction.k8s.io on all others. After the
	// start of the controller, and after it was cut off from the API server, nobody loses
	// a turn for 5 minutes. From 120 to 21600, default 1200. Set by the first requester,
	// then immutable.
	// +optional
	// +default=1200
	// +k8s:optional
	// +k8s:minimum=120
	// +k8s:maximum=21600
	// +k8s:immutable
	HeartbeatDeadlineSeconds *int32 `json:"heartbeatDeadlineSeconds,omitempty" protobuf:"varint,3,opt,name=heartbeatDeadlineSeconds"`
}

// EvictionTarget names the object to evict. Exactly one member is set.
// +union
type EvictionTarget struct {
	// pod is a pod in the namespace of the request. A pod that belongs to a
	// scheduling group (spec.schedulingGroup) is not evicted this way: its request is
	// canceled.
	// +optional
	// +oneOf=TargetSelection
	// +k8s:optional
	// +k8s:unionMember
	Pod *LocalPodReference `json:"pod,omitempty" protobuf:"bytes,1,opt,name=pod"`
}

// LocalPodReference names one instance of a pod in the namespace of the referrer.
type LocalPodReference struct {
	// name of the pod.
	// +required
	// +k8s:required
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// uid of the pod, a UUID in lower case. It tells this instance from another pod
	// that has, or will have, the same name.
	// +required
	// +k8s:required
	// +k8s:format=k8s-uuid
	UID string `json:"uid" protobuf:"bytes,2,opt,name=uid"`
}

// Requester is somebody who wants the target evicted.
// +structType=atomic
type Requester struct {
	// name is a fully qualified domain name in lower case with at most 253
	// characters, such as drain.example.com, or a domain-prefixed key, such as
	// example.com/drain. Unique among the requesters.
	// +required
	// +k8s:required
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

// Interceptor is somebody who takes a part in the eviction before the pod goes.
// +structType=atomic
type Interceptor struct {
	// name is a fully qualified domain name in lower case with at most 253
	// characters, such as migrate.example.com, or a domain-prefixed key, such as
	// example.com/migrate. Unique among the interceptors.
	// +required
	// +k8s:required
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

// EvictionRequestCancellationPolicy says whether a request can still be called off.
// +enum
// +k8s:enum
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
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,1,opt,name=observedGeneration"`

	// conditions of the request. Canceled and Evicted are written by the eviction
	// request controller and are final once True; at most one of them is.
	// InterceptorUnresponsive is True while the report of the active interceptor is
	// overdue, Blocked while the pod cannot be evicted. At most 100 besides these four.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	// +k8s:optional
	// +k8s:listType=map
	// +k8s:listMapKey=type
	// +k8s:maxItems=104
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,2,rep,name=conditions"`

	// targetInterceptors are all interceptors of this request, in the order in which
	// they get their turn: those that the pod names, then the built-in ones, the last
	// of which is imperative-eviction.k8s.io. Written once by the eviction request
	// controller, then immutable. At most 16.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +k8s:optional
	// +k8s:listType=map
	// +k8s:listMapKey=name
	// +k8s:maxItems=16
	TargetInterceptors []Interceptor `json:"targetInterceptors,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,3,rep,name=targetInterceptors"`

	// activeInterceptors names the interceptor whose turn it is: it may act on the
	// pod, and has to report in its entry of status.interceptors. Written by the
	// eviction request controller. At most 1; empty before the first and after the
	// last turn.
	// +optional
	// +listType=set
	// +k8s:optional
	// +k8s:listType=set
	// +k8s:maxItems=1
	ActiveInterceptors []string `json:"activeInterceptors,omitempty" protobuf:"bytes,4,opt,name=activeInterceptors"`

	// processedInterceptors names the interceptors that had their turn, in order:
	// they completed, fell silent, or were stopped by a cancellation. Written by the
	// eviction request controller; it only grows. At most 16.
	// +optional
	// +listType=set
	// +k8s:optional
	// +k8s:listType=set
	// +k8s:maxItems=16
	ProcessedInterceptors []string `json:"processedInterceptors,omitempty" protobuf:"bytes,5,opt,name=processedInterceptors"`

	// interceptors holds the report of each interceptor, with the names and the order
	// of targetInterceptors. The eviction request controller writes the empty entries;
	// after that, each entry belongs to the interceptor that it names, while that one
	// is active. At most 16.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +k8s:optional
	// +k8s:listType=map
	// +k8s:listMapKey=name
	// +k8s:maxItems=16
	Interceptors []InterceptorStatus `json:"interceptors,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,6,rep,name=interceptors"`

	// evictionRequestCancellationPolicy says whether the request can still be called
	// off. Allow, which is also what an empty value means, or Forbid: an active
	// interceptor sets that when its work can no longer be undone. Forbid is final: nobody
	// can take it back, and it stays when that interceptor's turn ends.
	// +optional
	// +k8s:optional
	EvictionRequestCancellationPolicy EvictionRequestCancellationPolicy `json:"evictionRequestCancellationPolicy,omitempty" protobuf:"bytes,7,opt,name=evictionRequestCancellationPolicy,casttype=EvictionRequestCancellationPolicy"`

	// activationTime is when activeInterceptors last got a new name. Written by the
	// eviction request controller together with activeInterceptors. The heartbeat
	// deadline of an interceptor that has not reported yet counts from here.
	// +optional
	ActivationTime *metav1.Time `json:"activationTime,omitempty" protobuf:"bytes,8,opt,name=activationTime"`
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
	// requester has left, or the request is being deleted.
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

	// EvictionRequestReasonHeartbeatOverdue is the reason of InterceptorUnresponsive
	// while the active interceptor has not reported in time.
	EvictionRequestReasonHeartbeatOverdue = "HeartbeatOverdue"

	// EvictionRequestReasonNotStarted is the reason of InterceptorUnresponsive while the
	// active interceptor has not started, and is one that keeps silent until a maintenance
	// reaches the pod and has no deadline: daemonset.apps.k8s.io on pods of DaemonSets and
	// kubelet.k8s.io on static ones.
	EvictionRequestReasonNotStarted = "NotStarted"

	// EvictionRequestReasonHeartbeatInTime is the reason of InterceptorUnresponsive when
	// it is not True any more.
	EvictionRequestReasonHeartbeatInTime = "HeartbeatInTime"
)

// InterceptorStatus is what an interceptor reports of its part in the eviction.
// Written by the interceptor that it names, while that one is active.
// +structType=atomic
type InterceptorStatus struct {
	// name of the interceptor, as in status.targetInterceptors. Immutable.
	// +required
	// +k8s:required
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// heartbeatTime is when the interceptor last said that it is at work. Set together
	// with startTime first, within 10 seconds of the server's time; afterwards it only
	// grows, by at least 60 seconds, except in the update that sets completionTime.
	// +optional
	HeartbeatTime *metav1.Time `json:"heartbeatTime,omitempty" protobuf:"bytes,2,opt,name=heartbeatTime"`

	// expectedFinishTime is when the interceptor expects to be done, its ETA. Not in
	// the past when it is set or changed. Empty when there is no estimate.
	// +optional
	ExpectedFinishTime *metav1.Time `json:"expectedFinishTime,omitempty" protobuf:"bytes,3,opt,name=expectedFinishTime"`

	// startTime is when the interceptor took up its part, within 10 seconds of the
	// server's time. Set together with the first heartbeatTime, then immutable.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty" protobuf:"bytes,4,opt,name=startTime"`

	// completionTime is when the interceptor was done, within 10 seconds of the
	// server's time: whether it has ended the pod, prepared for its end, or declined
	// to act, for which startTime is not needed. The next interceptor gets its turn then.
	// Immutable once set, as is all of the entry.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty" protobuf:"bytes,5,opt,name=completionTime"`

	// message tells people what the interceptor is doing or waiting for. At most 32768
	// characters; may be empty.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32768
	Message string `json:"message,omitempty" protobuf:"bytes,6,opt,name=message"`

	// retries counts the attempts of this interceptor that were refused. It outlasts a
	// restart of the interceptor, which spaces its attempts by it. Only
	// imperative-eviction.k8s.io needs it. Not negative; it only grows.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	Retries int32 `json:"retries,omitempty" protobuf:"varint,7,opt,name=retries"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:prerelease-lifecycle-gen:introduced=1.36

// EvictionRequestList is a list of EvictionRequests.
type EvictionRequestList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the EvictionRequests.
	Items []EvictionRequest `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// NodeMaintenanceStage is how far a NodeMaintenance goes.
// +enum
// +k8s:enum
type NodeMaintenanceStage string

const (
	// NodeMaintenanceStageIdle announces a maintenance: nodes get the condition
	// MaintenancePlanned, and nothing else is done to them or to their pods.
	NodeMaintenanceStageIdle NodeMaintenanceStage = "Idle"

	// NodeMaintenanceStageCordon keeps the selected nodes unschedulable.
	NodeMaintenanceStageCordon NodeMaintenanceStage = "Cordon"

	// NodeMaintenanceStageDrain keeps the selected nodes unschedulable and requests
	// the eviction of their pods, as spec.drainPlan orders them.
	NodeMaintenanceStageDrain NodeMaintenanceStage = "Drain"

	// NodeMaintenanceStageComplete ends the maintenance: eviction requests that nobody
	// else wants are withdrawn, and nodes that no other maintenance holds become
	// schedulable.
	NodeMaintenanceStageComplete NodeMaintenanceStage = "Complete"
)

const (
	// NodeMaintenanceRequester is the name of the node maintenance controller among
	// the requesters of an EvictionRequest, and its field manager there.
	NodeMaintenanceRequester = "nodemaintenance.k8s.io"

	// NodeMaintenanceFinalizer keeps a NodeMaintenance that has left the stage Idle
	// until its Complete stage is done. The node maintenance controller sets and
	// removes it.
	NodeMaintenanceFinalizer = "nodemaintenance.k8s.io/maintenance-completion"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:prerelease-lifecycle-gen:introduced=1.36
// +k8s:supportsSubresource="/status"

// NodeMaintenance takes pods off a set of nodes, for an upgrade, a repair or the end
// of the nodes (KEP-4212).
//
// The administrator moves it through its stages, forward only: Idle announces it,
// Cordon keeps new pods away, Drain asks for the eviction of the pods that are there,
// Complete gives the nodes back. The pods leave by EvictionRequests, in the order of
// spec.drainPlan. Where maintenances share a node, those pods are asked to leave that all
// of them allow to leave; should that be none while pods are left, the maintenance that is
// least far goes on. Deleting the object completes it first.
type NodeMaintenance struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec says which nodes are maintained, how far, and in which order their pods
	// leave. Written by the administrator; the controller sets its stage to Complete
	// when the object is deleted.
	// +required
	Spec NodeMaintenanceSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`

	// status says how far the maintenance is. Written by the node maintenance
	// controller. Ignored on creation.
	// +optional
	Status NodeMaintenanceStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// NodeMaintenanceSpec is what the administrator wants.
type NodeMaintenanceSpec struct {
	// nodeSelector selects the nodes, by labels or by the field metadata.name. It may
	// change: nodes then join and leave. At least one term; a selector that matches
	// nothing is allowed.
	// +required
	// +k8s:required
	NodeSelector *corev1.NodeSelector `json:"nodeSelector" protobuf:"bytes,1,opt,name=nodeSelector"`

	// stage is how far the maintenance should go: Idle, Cordon, Drain or Complete, in
	// this order. Stages may be skipped, and never go back. Default Idle.
	// +optional
	// +default="Idle"
	// +k8s:optional
	Stage NodeMaintenanceStage `json:"stage,omitempty" protobuf:"bytes,2,opt,name=stage,casttype=NodeMaintenanceStage"`

	// drainPlan orders the pods in the stage Drain: an entry is taken when no pod of
	// those before it is left on any selected node. Pod types come in the order Default,
	// DaemonSet, Static; priorities ascend within a type; at equal priority entries with
	// a podSelector come first. No duplicates. At most 100 entries; a selector has at most
	// 10 requirements with 20 values each, and all of them together 8192 characters. On creation the
	// admission plugin NodeMaintenance adds what is missing of the standard entries:
	// the priorities 1000000000, 2000000000, 2000001000 and 2147483647 for each pod
	// type. Immutable.
	// +optional
	// +listType=atomic
	// +k8s:optional
	// +k8s:listType=atomic
	// +k8s:maxItems=100
	DrainPlan []corev1.DrainPlanEntry `json:"drainPlan,omitempty" protobuf:"bytes,3,rep,name=drainPlan"`

	// reason tells people why the nodes are maintained. At most 1024 characters.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Reason string `json:"reason,omitempty" protobuf:"bytes,4,opt,name=reason"`
}

// NodeMaintenanceStatus is how far the maintenance is.
type NodeMaintenanceStatus struct {
	// stageStatuses lists the stages that were started, in that order. At most 4.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +k8s:optional
	// +k8s:listType=map
	// +k8s:listMapKey=name
	// +k8s:maxItems=4
	StageStatuses []StageStatus `json:"stageStatuses,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,1,rep,name=stageStatuses"`

	// drainStatus is the progress of the drain over all selected nodes. Zero before
	// the stage Drain, but for blockers and blockerCount; after it everything but these two
	// is kept as it was.
	// +optional
	DrainStatus DrainStatus `json:"drainStatus,omitempty" protobuf:"bytes,2,opt,name=drainStatus"`

	// conditions of the maintenance. Drained is True when the stage is Drain, every
	// selected node is cordoned, and no pod is left on any of them. Its message otherwise
	// names what is blocking. A program may trust it if the observedGeneration of the
	// condition equals metadata.generation; after the stage Drain it keeps what the drain
	// had reached, with the observedGeneration of that time. At most 100.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	// +k8s:optional
	// +k8s:listType=map
	// +k8s:listMapKey=type
	// +k8s:maxItems=100
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,3,rep,name=conditions"`

	// observedGeneration is the metadata.generation that selectedNodes and, in the stage
	// Drain, drainStatus and the condition Drained are about. It stays behind, and they
	// stay as they were, until the controller has examined every node that the new
	// generation selects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,4,opt,name=observedGeneration"`

	// selectedNodes is how many nodes spec.nodeSelector matches, as of
	// observedGeneration.
	// +required
	SelectedNodes int32 `json:"selectedNodes" protobuf:"varint,5,opt,name=selectedNodes"`
}

// StageStatus tells of a stage that was started.
type StageStatus struct {
	// name of the stage.
	// +required
	// +k8s:required
	Name NodeMaintenanceStage `json:"name" protobuf:"bytes,1,opt,name=name,casttype=NodeMaintenanceStage"`

	// startTimestamp is when the controller started the stage.
	// +optional
	StartTimestamp *metav1.Time `json:"startTimestamp,omitempty" protobuf:"bytes,2,opt,name=startTimestamp"`
}

// DrainStatus is the progress of a drain over all nodes of a maintenance.
type DrainStatus struct {
	// reachedDrainTargets are the lowest drain targets among the selected nodes: the
	// pods that are asked to leave on every one of them. A single node may be further,
	// and other maintenances of a node may hold it back, so these need not be entries
	// of spec.drainPlan. See maintenanceStatus in the status of each node.
	// +optional
	// +listType=atomic
	// +k8s:optional
	// +k8s:listType=atomic
	ReachedDrainTargets []corev1.DrainPlanEntry `json:"reachedDrainTargets,omitempty" protobuf:"bytes,1,rep,name=reachedDrainTargets"`

	// podsPendingEvictionRequest is how many running pods of the selected nodes have
	// not been asked to leave.
	// +required
	PodsPendingEvictionRequest int32 `json:"podsPendingEvictionRequest" protobuf:"varint,2,opt,name=podsPendingEvictionRequest"`

	// activeEvictionRequests is how many running pods of the selected nodes have been
	// asked to leave by an EvictionRequest that is not over.
	// +required
	ActiveEvictionRequests int32 `json:"activeEvictionRequests" protobuf:"varint,3,opt,name=activeEvictionRequests"`

	// drainMessage says what the drain does: "Draining", "Draining (limited by other,
	// maintenances)", "Waiting for other, maintenances." or "Drained".
	// +optional
	DrainMessage string `json:"drainMessage,omitempty" protobuf:"bytes,4,opt,name=drainMessage"`

	// drainPlanPosition is the index in spec.drainPlan of the entry that is being
	// executed: no pod of those before it was left when it was taken. It never goes
	// back, also when such pods appear later.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	DrainPlanPosition *int32 `json:"drainPlanPosition,omitempty" protobuf:"varint,5,opt,name=drainPlanPosition"`

	// drainedNodes is how many of the selected nodes are cordoned and have no pod left.
	// +required
	DrainedNodes int32 `json:"drainedNodes" protobuf:"varint,6,opt,name=drainedNodes"`

	// blockedPods is how many pods within the drain targets cannot leave without an
	// intervention: a PodDisruptionBudget or an admission webhook refuses, the API server
	// refuses their EvictionRequest, their interceptor is silent, they are terminating
	// for too long, or nothing handles them. Kept as it was after the stage Drain. See
	// blockers.
	// +required
	BlockedPods int32 `json:"blockedPods" protobuf:"varint,7,opt,name=blockedPods"`

	// blockers lists what keeps pods on the selected nodes that were asked to leave, or
	// should be, and which nodes cannot be cordoned. Pods with the same cause and name are
	// one blocker. Those that need an intervention come first, then in order of cause and
	// name. At most 20; blockerCount counts all of them. In the stage Cordon they name the
	// nodes that cannot be cordoned or whose status cannot be written, in the stage Complete
	// what delays the completion: nodes that cannot be made schedulable, or whose status
	// cannot be written, and eviction requests that cannot be withdrawn. Empty in the stage
	// Idle and after the completion.
	// +optional
	// +listType=atomic
	// +k8s:optional
	// +k8s:listType=atomic
	// +k8s:maxItems=20
	Blockers []DrainBlocker `json:"blockers,omitempty" protobuf:"bytes,8,rep,name=blockers"`

	// blockerCount is how many blockers there are, including those that blockers has no
	// room for.
	// +required
	BlockerCount int32 `json:"blockerCount" protobuf:"varint,9,opt,name=blockerCount"`
}

// DrainBlockerCause says why a maintenance does not go on. Clients have to expect values
// that they do not know.
type DrainBlockerCause string

const (
	// DrainBlockerCordonFailed means that the API server refuses to make nodes
	// unschedulable or, in the stage Complete, schedulable again, because of an admission
	// webhook or a policy, for example. Needs an intervention.
	DrainBlockerCordonFailed DrainBlockerCause = "CordonFailed"

	// DrainBlockerDisruptionBudget means that PodDisruptionBudgets do not allow the
	// eviction. The blocker's name is theirs. Needs an intervention, unless pods become
	// ready.
	DrainBlockerDisruptionBudget DrainBlockerCause = "DisruptionBudget"

	// DrainBlockerEvictionRefused means that the API server refuses the eviction for
	// another reason, such as an admission webhook. Needs an intervention.
	DrainBlockerEvictionRefused DrainBlockerCause = "EvictionRefused"

	// DrainBlockerInterceptorUnresponsive means that the report of the interceptor that
	// the blocker names is overdue. Needs an intervention.
	DrainBlockerInterceptorUnresponsive DrainBlockerCause = "InterceptorUnresponsive"

	// DrainBlockerNodeStatusFailed means that the status of nodes cannot be written, so that
	// it does not say which pods have to leave: the API server refuses it, or somebody else
	// writes it all the time. Needs an intervention.
	DrainBlockerNodeStatusFailed DrainBlockerCause = "NodeStatusFailed"

	// DrainBlockerRequestFailed means that the API server refuses to create, change or
	// withdraw the EvictionRequests of pods, because of a quota, an admission webhook or a
	// policy, for example. The blocker's name is that of the namespace. Needs an intervention.
	DrainBlockerRequestFailed DrainBlockerCause = "RequestFailed"

	// DrainBlockerRequestRefused means that the EvictionRequest was given up for good: the
	// pod cannot be evicted this way. Needs an intervention.
	DrainBlockerRequestRefused DrainBlockerCause = "RequestRefused"

	// DrainBlockerStuckTerminating means that the pods are still there after their grace
	// period. Needs an intervention.
	DrainBlockerStuckTerminating DrainBlockerCause = "StuckTerminating"

	// DrainBlockerUnhandled means that all interceptors had their turn, and the pods run
	// on: DaemonSet pods or static pods that nothing handles. The blocker's name is the
	// pod type. Needs an intervention.
	DrainBlockerUnhandled DrainBlockerCause = "Unhandled"

	// DrainBlockerEvicting means that the eviction is on its way.
	DrainBlockerEvicting DrainBlockerCause = "Evicting"

	// DrainBlockerInterceptor means that the interceptor that the blocker names acts.
	DrainBlockerInterceptor DrainBlockerCause = "Interceptor"

	// DrainBlockerTerminating means that the pods are within their grace period.
	DrainBlockerTerminating DrainBlockerCause = "Terminating"
)

// DrainBlocker is one reason why a maintenance does not go on, with the pods that it keeps
// on their nodes or the nodes that it is about.
type DrainBlocker struct {
	// cause says what kind of blocker it is. At most 64 characters.
	// +required
	// +k8s:required
	// +k8s:maxLength=64
	Cause DrainBlockerCause `json:"cause" protobuf:"bytes,1,opt,name=cause,casttype=DrainBlockerCause"`

	// name tells blockers of the same cause apart: the interceptor, the namespaced names
	// of the PodDisruptionBudgets, the namespace, or the pod type. Empty for causes of
	// which there is only one blocker. At most 1024 characters.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Name string `json:"name,omitempty" protobuf:"bytes,2,opt,name=name"`

	// object is the object to inspect: a PodDisruptionBudget, a Namespace, or the first of
	// the nodes where the blocker is about nodes. Not set where no single object is the cause.
	// +optional
	// +k8s:optional
	Object *DrainBlockerObject `json:"object,omitempty" protobuf:"bytes,3,opt,name=object"`

	// podCount is how many pods are kept. 0 if the blocker is about nodes.
	// +required
	PodCount int32 `json:"podCount" protobuf:"varint,4,opt,name=podCount"`

	// nodeCount is how many nodes are concerned.
	// +required
	NodeCount int32 `json:"nodeCount" protobuf:"varint,5,opt,name=nodeCount"`

	// pods are the first of the pods, by namespace and name. At most 5.
	// +optional
	// +listType=atomic
	// +k8s:optional
	// +k8s:listType=atomic
	// +k8s:maxItems=5
	Pods []DrainBlockerPod `json:"pods,omitempty" protobuf:"bytes,6,rep,name=pods"`

	// sinceTime is when the first of the pods or nodes was first kept, as far as the
	// controller knows: what it has to try again itself counts from its last start.
	// +optional
	SinceTime *metav1.Time `json:"sinceTime,omitempty" protobuf:"bytes,7,opt,name=sinceTime"`

	// expectedFinishTime is when the last of the pods is expected to be gone: an
	// interceptor says so, or their grace periods end.
	// +optional
	ExpectedFinishTime *metav1.Time `json:"expectedFinishTime,omitempty" protobuf:"bytes,8,opt,name=expectedFinishTime"`

	// message tells people what keeps the pods and, where the API server refuses
	// something, what it says. It may change in any release. At most 1024 characters.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Message string `json:"message,omitempty" protobuf:"bytes,9,opt,name=message"`
}

// DrainBlockerObject refers to the object that keeps pods on a node.
type DrainBlockerObject struct {
	// apiGroup of the object. Empty for the core group. At most 253 characters.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	APIGroup string `json:"apiGroup,omitempty" protobuf:"bytes,1,opt,name=apiGroup"`

	// kind of the object. At most 63 characters.
	// +required
	// +k8s:required
	// +k8s:maxLength=63
	Kind string `json:"kind" protobuf:"bytes,2,opt,name=kind"`

	// namespace of the object. Empty for an object that has none. At most 63 characters.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=63
	Namespace string `json:"namespace,omitempty" protobuf:"bytes,3,opt,name=namespace"`

	// name of the object. At most 253 characters.
	// +required
	// +k8s:required
	// +k8s:maxLength=253
	Name string `json:"name" protobuf:"bytes,4,opt,name=name"`
}

// DrainBlockerPod names a pod.
type DrainBlockerPod struct {
	// namespace of the pod. At most 63 characters.
	// +required
	// +k8s:required
	// +k8s:maxLength=63
	Namespace string `json:"namespace" protobuf:"bytes,1,opt,name=namespace"`

	// name of the pod. At most 253 characters.
	// +required
	// +k8s:required
	// +k8s:maxLength=253
	Name string `json:"name" protobuf:"bytes,2,opt,name=name"`
}

// NodeMaintenanceConditionType is a type of condition of a NodeMaintenance.
type NodeMaintenanceConditionType string

const (
	// NodeMaintenanceConditionDrained is True when the stage is Drain, every selected
	// node is cordoned, and no pod is left on any of them. It is about the generation in
	// its own observedGeneration.
	NodeMaintenanceConditionDrained NodeMaintenanceConditionType = "Drained"
)

const (
	// NodeMaintenanceReasonDrained is the reason of Drained when it is True.
	NodeMaintenanceReasonDrained = "Drained"

	// NodeMaintenanceReasonDraining is the reason of Drained while pods leave.
	NodeMaintenanceReasonDraining = "Draining"

	// NodeMaintenanceReasonBlocked is the reason of Drained while at least one pod
	// cannot leave, or one node cannot be cordoned, without an intervention.
	NodeMaintenanceReasonBlocked = "Blocked"

	// NodeMaintenanceReasonWaiting is the reason of Drained while other maintenances of
	// the same nodes hold this one back.
	NodeMaintenanceReasonWaiting = "WaitingForOtherMaintenances"

	// NodeMaintenanceReasonNoNodes is the reason of Drained when spec.nodeSelector
	// matches no node.
	NodeMaintenanceReasonNoNodes = "NoNodesSelected"

	// NodeMaintenanceReasonNotDraining is the reason of Drained after the stage Drain if
	// pods were left. Before that stage there is no such condition.
	NodeMaintenanceReasonNotDraining = "NotDraining"
)

// Conditions of a node that a NodeMaintenance selects. A node that none selects has
// none of them. Written by the node maintenance controller.
const (
	// NodeMaintenancePlanned is True while a maintenance in the stage Idle selects the
	// node.
	NodeMaintenancePlanned corev1.NodeConditionType = "MaintenancePlanned"

	// NodeMaintenanceInProgress is True while a maintenance in the stage Cordon or
	// Drain selects the node.
	NodeMaintenanceInProgress corev1.NodeConditionType = "MaintenanceInProgress"

	// NodeDrainInProgress is True while a maintenance in the stage Drain selects the
	// node, and pods are left on it or it is not cordoned.
	NodeDrainInProgress corev1.NodeConditionType = "DrainInProgress"

	// NodeDrained is True while a maintenance in the stage Drain selects the node, it is
	// cordoned, and no pod is left on it.
	NodeDrained corev1.NodeConditionType = "Drained"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:prerelease-lifecycle-gen:introduced=1.36

// NodeMaintenanceList is a list of NodeMaintenances.
type NodeMaintenanceList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the NodeMaintenances.
	Items []NodeMaintenance `json:"items" protobuf:"bytes,2,rep,name=items"`
}
