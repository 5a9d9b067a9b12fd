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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// EvictionInterceptorImperative is the built-in interceptor that is the last of every request:
	// it calls the pods/eviction subresource, which respects PodDisruptionBudgets. A pod cannot
	// name it in its spec.
	EvictionInterceptorImperative = "imperative-eviction.k8s.io"

	// EvictionInterceptorDaemonSet is the DaemonSet controller. It is an interceptor of every pod
	// that a DaemonSet controls, also where the pod does not name it.
	EvictionInterceptorDaemonSet = "daemonset.apps.k8s.io"

	// EvictionInterceptorDeployment is the Deployment controller. It is set on the pods of
	// Deployments with a rolling update strategy and a maxSurge (gate DeploymentPodSurge): it
	// creates a replacement before such a pod is evicted.
	EvictionInterceptorDeployment = "deployment.apps.k8s.io"

	// EvictionInterceptorHorizontalPodAutoscaler is reserved for the HorizontalPodAutoscaler
	// controller, which is not implemented: the controller completes for it at once.
	EvictionInterceptorHorizontalPodAutoscaler = "horizontalpodautoscaler.autoscaling.k8s.io"

	// EvictionInterceptorKubelet is the kubelet. It is an interceptor of every mirror pod, which
	// represents a static pod that only the kubelet can stop.
	EvictionInterceptorKubelet = "kubelet.k8s.io"

	// EvictionInterceptorReplicaSet is the ReplicaSet controller. It follows
	// EvictionInterceptorDeployment and evicts the pod through the API, which respects
	// PodDisruptionBudgets.
	EvictionInterceptorReplicaSet = "replicaset.apps.k8s.io"

	// EvictionInterceptorStatefulSet is the StatefulSet controller. It is set on the pods of
	// StatefulSets with a rolling update strategy and several replicas (gate
	// StatefulSetEvictionPacing): it lets the eviction of one pod after another continue, so that
	// at most maxUnavailable of them are unavailable at a time.
	EvictionInterceptorStatefulSet = "statefulset.apps.k8s.io"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:prerelease-lifecycle-gen:introduced=1.37
// +k8s:supportsSubresource="/status"

// EvictionRequest requests the eviction of one instance of a pod and tracks its progress
// (KEP-4563).
//
// The interceptors that the pod names act in order, one at a time: the active one reports
// heartbeats, and terminates the pod or completes. The last one is always
// imperative-eviction.k8s.io, which evicts the pod within its PodDisruptionBudgets.
//
// The request is finished when one of its conditions Evicted or Canceled is True.
type EvictionRequest struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name is the UID of the target pod: there is one
	// request per pod instance. generateName is rejected. The eviction request controller copies
	// the labels of the pod, also over existing values.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is the pod to evict and the requesters. Written by requesters.
	// +required
	Spec EvictionRequestSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`

	// status is the progress of the eviction. Written by the eviction request controller and, in
	// its own entry of interceptors, by the active interceptor. Ignored on creation; if the pod has
	// no other interceptor, kube-apiserver then activates imperative-eviction.k8s.io.
	// +optional
	Status EvictionRequestStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// EvictionRequestSpec is the desired eviction.
type EvictionRequestSpec struct {
	// target is the object to evict. Immutable.
	// +required
	// +k8s:immutable
	Target EvictionTarget `json:"target" protobuf:"bytes,1,opt,name=target"`

	// requesters are the clients that request the eviction: at least one on creation; without any,
	// the request is canceled. Each adds and removes only its own entry, preferably by Server-Side
	// Apply with a field manager of its own. At most 110, of which 100 may have names outside of
	// the domain k8s.io; adding and removing names in it needs the verb request on the virtual
	// resource evictionrequesters.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +k8s:optional
	// +k8s:listType=map
	// +k8s:listMapKey=name
	// +k8s:maxItems=110
	Requesters []Requester `json:"requesters,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,2,rep,name=requesters"`

	// heartbeatDeadlineSeconds is how long an active interceptor may send no heartbeat, since its
	// last one or its activation, before the next interceptor becomes active, in seconds. Outages
	// extend it. An interceptor that is the only one that can stop the pod has no deadline:
	// daemonset.apps.k8s.io for pods of DaemonSets, kubelet.k8s.io for static pods,
	// imperative-eviction.k8s.io for all others. From 120 to 21600, default 1200. Set by the first
	// requester. Others may lower it, but not below 1200; it never increases.
	// +optional
	// +default=1200
	// +k8s:optional
	// +k8s:minimum=120
	// +k8s:maximum=21600
	HeartbeatDeadlineSeconds *int32 `json:"heartbeatDeadlineSeconds,omitempty" protobuf:"varint,3,opt,name=heartbeatDeadlineSeconds"`
}

// DefaultHeartbeatDeadlineSeconds is the default of spec.heartbeatDeadlineSeconds of an EvictionRequest, and
// the lowest value to which it can be lowered (KEP-4563, Interceptor).
const DefaultHeartbeatDeadlineSeconds = 20 * 60

// EvictionTarget names the object to evict. Exactly one member is set.
// +union
type EvictionTarget struct {
	// pod is a pod in the namespace of the request. If its PodGroup (spec.schedulingGroup) has the
	// disruptionMode all, or does not exist, the request is canceled.
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

	// uid of the pod, a UUID in lower case.
	// +required
	// +k8s:required
	// +k8s:format=k8s-uuid
	UID string `json:"uid" protobuf:"bytes,2,opt,name=uid"`
}

// Requester is a client that requests the eviction of the target.
// +structType=atomic
type Requester struct {
	// name is a fully qualified domain name in lower case with at most 253 characters
	// (drain.example.com), or a domain-prefixed key (example.com/drain). Unique among the
	// requesters.
	// +required
	// +k8s:required
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

// Interceptor is a component that acts before the pod is evicted.
// +structType=atomic
type Interceptor struct {
	// name is a fully qualified domain name in lower case with at most 253 characters
	// (migrate.example.com), or a domain-prefixed key (example.com/migrate). Unique among the
	// interceptors.
	// +required
	// +k8s:required
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

// EvictionRequestCancellationPolicy determines whether a request can still be canceled.
// +enum
// +k8s:enum
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
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,1,opt,name=observedGeneration"`

	// conditions of the request. Canceled and Evicted are final once True; at most one of them is.
	// InterceptorUnresponsive is True while a heartbeat is overdue, Blocked while the API server
	// refuses the eviction. The node maintenance controller writes InterceptorsSkipped,
	// kube-apiserver Reconciling and Stalled (an unfinished request has one of them, a finished one
	// none), and the eviction request controller all others. An interceptor of the request may add
	// conditions whose types begin with its name and a slash (migrate.example.com/Precopied) or, if
	// its name contains a slash, its name and a dot (example.com/migrate.Precopied). At most 100
	// besides these seven.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	// +k8s:optional
	// +k8s:listType=map
	// +k8s:listMapKey=type
	// +k8s:maxItems=107
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,2,rep,name=conditions"`

	// targetInterceptors are all interceptors in the order in which they act: those that the pod
	// names, then the built-in ones, the last of which is imperative-eviction.k8s.io. Written once
	// by the eviction request controller, or by kube-apiserver on creation if that is the only one,
	// then immutable. At most 16.
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

	// activeInterceptors names the active interceptor, which may act on the pod and must report
	// heartbeats. Written by the eviction request controller; the first one also by kube-apiserver,
	// see targetInterceptors. At most 1; empty before the first interceptor and after the last.
	// +optional
	// +listType=set
	// +k8s:optional
	// +k8s:maxItems=1
	ActiveInterceptors []string `json:"activeInterceptors,omitempty" protobuf:"bytes,4,opt,name=activeInterceptors"`

	// processedInterceptors names the interceptors that have been active, in order: they completed,
	// missed the heartbeat deadline, or were stopped by a cancellation. With the condition
	// InterceptorsSkipped, also those that were passed over. Written by the eviction request
	// controller, which only appends. At most 16.
	// +optional
	// +listType=set
	// +k8s:optional
	// +k8s:listType=set
	// +k8s:maxItems=16
	ProcessedInterceptors []string `json:"processedInterceptors,omitempty" protobuf:"bytes,5,opt,name=processedInterceptors"`

	// interceptors is the progress of each interceptor, in the order of targetInterceptors. The
	// eviction request controller adds empty entries; each is then written by its interceptor while
	// that is active. At most 16.
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

	// evictionRequestCancellationPolicy is Allow or Forbid; empty means Allow. An active
	// interceptor sets Forbid when its work can no longer be undone: the request can then not be
	// canceled. Forbid is final.
	// +optional
	// +k8s:optional
	EvictionRequestCancellationPolicy EvictionRequestCancellationPolicy `json:"evictionRequestCancellationPolicy,omitempty" protobuf:"bytes,7,opt,name=evictionRequestCancellationPolicy,casttype=EvictionRequestCancellationPolicy"`

	// activationTime is when the active interceptor became active. Set by kube-apiserver. Without a
	// heartbeat, the heartbeat deadline counts from here.
	// +optional
	ActivationTime *metav1.Time `json:"activationTime,omitempty" protobuf:"bytes,8,opt,name=activationTime"`
}

// EvictionRequestConditionType is a type of condition of an EvictionRequest.
type EvictionRequestConditionType string

const (
	// EvictionRequestConditionCanceled is True when the request was canceled: no interceptor acts
	// any more, and the pod stays.
	EvictionRequestConditionCanceled EvictionRequestConditionType = "Canceled"

	// EvictionRequestConditionEvicted is True when the pod was deleted or has reached a terminal
	// phase, whatever the cause.
	EvictionRequestConditionEvicted EvictionRequestConditionType = "Evicted"

	// EvictionRequestConditionInterceptorUnresponsive is True while the first or the next
	// heartbeat of the active interceptor is overdue, long before the heartbeat deadline.
	EvictionRequestConditionInterceptorUnresponsive EvictionRequestConditionType = "InterceptorUnresponsive"

	// EvictionRequestConditionBlocked is True while imperative-eviction.k8s.io is active and the
	// API server refuses to evict the pod. The message names the object.
	EvictionRequestConditionBlocked EvictionRequestConditionType = "Blocked"

	// EvictionRequestConditionInterceptorsSkipped is True when interceptors that have not acted are
	// passed over, except those that are the only ones that can stop the pod. The message names for
	// whom. It stays True. Setting it needs the verb escalate on evictionrequests/status.
	EvictionRequestConditionInterceptorsSkipped EvictionRequestConditionType = "InterceptorsSkipped"

	// EvictionRequestConditionReconciling is True while the request is not finished and needs no
	// intervention, and absent otherwise. Its reason is the state that kubectl prints: Pending,
	// Intercepting, Evicting or, while a PodDisruptionBudget refuses, Blocked. For tools that
	// follow kstatus (sigs.k8s.io/cli-utils). Set by kube-apiserver.
	EvictionRequestConditionReconciling EvictionRequestConditionType = "Reconciling"

	// EvictionRequestConditionStalled is True, instead of Reconciling, while the request needs an
	// intervention: its reason is EvictionRefused or NoInterceptorLeft. Absent otherwise. Set by
	// kube-apiserver.
	EvictionRequestConditionStalled EvictionRequestConditionType = "Stalled"
)

// EvictionRequestEscalateVerb is the verb on evictionrequests/status that setting the condition
// InterceptorsSkipped needs. It counts only if it is granted in all namespaces.
const EvictionRequestEscalateVerb = "escalate"

const (
	// EvictionRequestReasonNoRequesters is the reason of Canceled when the last requester was
	// removed, or the request is being deleted.
	EvictionRequestReasonNoRequesters = "NoRequesters"

	// EvictionRequestReasonValidationFailed is the reason of Canceled when an EvictionRequest
	// cannot evict the target: the pod does not exist, or is disrupted with its scheduling group only.
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
	// processed and the pod is still there: a pod of a DaemonSet or a static pod, which are not evicted.
	EvictionRequestReasonNoInterceptorLeft = "NoInterceptorLeft"

	// EvictionRequestReasonMaintenanceEscalation is the reason of InterceptorsSkipped when the drain
	// of a node has come to a step SkipInterceptors: see spec.escalation of NodeMaintenance.
	EvictionRequestReasonMaintenanceEscalation = "MaintenanceEscalation"

	// EvictionRequestReasonHeartbeatOverdue is the reason of InterceptorUnresponsive while a
	// heartbeat of the active interceptor is overdue.
	EvictionRequestReasonHeartbeatOverdue = "HeartbeatOverdue"

	// EvictionRequestReasonNotStarted is the reason of InterceptorUnresponsive while the active
	// interceptor has not started, has no deadline, and does not report before a maintenance
	// reaches the pod: daemonset.apps.k8s.io for pods of DaemonSets and kubelet.k8s.io for static
	// pods.
	EvictionRequestReasonNotStarted = "NotStarted"

	// EvictionRequestReasonHeartbeatInTime is the reason of InterceptorUnresponsive when it is no
	// longer True.
	EvictionRequestReasonHeartbeatInTime = "HeartbeatInTime"
)

// InterceptorStatus is the progress that an interceptor reports. Written by the interceptor that
// it names, while it is active.
// +structType=atomic
type InterceptorStatus struct {
	// name of the interceptor, as in status.targetInterceptors. Immutable.
	// +required
	// +k8s:required
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// heartbeatTime is when the interceptor last reported, within 10 seconds of the server's time.
	// First set together with startTime. Each update advances it by at least 60 seconds, except the
	// one that sets completionTime.
	// +optional
	HeartbeatTime *metav1.Time `json:"heartbeatTime,omitempty" protobuf:"bytes,2,opt,name=heartbeatTime"`

	// expectedFinishTime is when the interceptor expects to finish; unset if unknown. Not in the
	// past when it is set or changed, and not after the year 9999 in UTC.
	// +optional
	ExpectedFinishTime *metav1.Time `json:"expectedFinishTime,omitempty" protobuf:"bytes,3,opt,name=expectedFinishTime"`

	// startTime is when the interceptor started, within 10 seconds of the server's time. Set
	// together with the first heartbeatTime, then immutable.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty" protobuf:"bytes,4,opt,name=startTime"`

	// completionTime is when the interceptor completed, within 10 seconds of the server's time: it
	// has terminated the pod, has prepared for that, or declines to act, which does not need
	// startTime. Then the entry is immutable, and the next interceptor becomes active.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty" protobuf:"bytes,5,opt,name=completionTime"`

	// message describes what the interceptor does or waits for. At most 32768 characters; may be
	// empty.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32768
	Message string `json:"message,omitempty" protobuf:"bytes,6,opt,name=message"`

	// retries is the number of refusals that this interceptor has recorded, from which it derives
	// its back-off. Only imperative-eviction.k8s.io needs it. Not negative; never decreases.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	Retries int32 `json:"retries,omitempty" protobuf:"varint,7,opt,name=retries"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:prerelease-lifecycle-gen:introduced=1.37

// EvictionRequestList is a list of EvictionRequests.
type EvictionRequestList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the EvictionRequests.
	Items []EvictionRequest `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// NodeMaintenanceStage is a stage of a NodeMaintenance.
// +enum
// +k8s:enum
type NodeMaintenanceStage string

const (
	// NodeMaintenanceStageIdle announces a maintenance: nodes get the condition MaintenancePlanned,
	// nothing else.
	NodeMaintenanceStageIdle NodeMaintenanceStage = "Idle"

	// NodeMaintenanceStageCordon keeps the selected nodes unschedulable.
	NodeMaintenanceStageCordon NodeMaintenanceStage = "Cordon"

	// NodeMaintenanceStageDrain also requests the eviction of their pods in the order of
	// spec.drainPlan.
	NodeMaintenanceStageDrain NodeMaintenanceStage = "Drain"

	// NodeMaintenanceStageComplete withdraws the requests, and uncordons the nodes that no other
	// maintenance claims.
	NodeMaintenanceStageComplete NodeMaintenanceStage = "Complete"
)

const (
	// NodeMaintenanceRequester is the name of the node maintenance controller among
	// the requesters of an EvictionRequest, and its field manager there.
	NodeMaintenanceRequester = "nodemaintenance.k8s.io"

	// NodeMaintenanceFinalizer delays the deletion of a NodeMaintenance that has left the stage
	// Idle until its stage Complete is done. The node maintenance controller sets and removes it.
	NodeMaintenanceFinalizer = "nodemaintenance.k8s.io/maintenance-completion"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:prerelease-lifecycle-gen:introduced=1.37
// +k8s:supportsSubresource="/status"

// NodeMaintenance drains a set of nodes, for example to upgrade, repair or remove them (KEP-4212).
//
// The administrator advances spec.stage. If several maintenances select a node, only evictions that
// the drain plans of all of them have reached are requested; if that is none of the remaining pods,
// the least advanced maintenance continues. Deleting the object completes it first.
type NodeMaintenance struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is the desired maintenance. Written by the administrator; the controller sets the stage
	// to Complete when the object is deleted.
	// +required
	Spec NodeMaintenanceSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`

	// status is the progress of the maintenance. Written by the node maintenance controller.
	// Ignored on creation.
	// +optional
	Status NodeMaintenanceStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// NodeMaintenanceSpec is the desired maintenance.
type NodeMaintenanceSpec struct {
	// nodeSelector selects the nodes, by labels or by the field metadata.name. It may be changed.
	// At least one term; it may match no node.
	// +required
	// +k8s:required
	NodeSelector *corev1.NodeSelector `json:"nodeSelector" protobuf:"bytes,1,opt,name=nodeSelector"`

	// stage is the desired stage: Idle, Cordon, Drain or Complete, in this order. Stages may be
	// skipped. An earlier stage than the current one is refused or, after Complete, replaced by
	// Complete with a warning. Default Idle.
	// +optional
	// +default="Idle"
	// +k8s:optional
	Stage NodeMaintenanceStage `json:"stage,omitempty" protobuf:"bytes,2,opt,name=stage,casttype=NodeMaintenanceStage"`

	// drainPlan orders the evictions in the stage Drain: an entry is reached when no selected node
	// has pods of the entries before it. Sorted by pod type (Default, DaemonSet, Static), then by
	// ascending priority, then entries with a podSelector first. No duplicates. At most 100; a
	// selector has at most 10 requirements with 20 values each, all together 8192 characters. On
	// creation, the admission plugin NodeMaintenance adds missing standard entries: the priorities
	// 1000000000, 2000000000, 2000001000 and 2147483647 for each pod type. Immutable.
	// +optional
	// +listType=atomic
	// +k8s:optional
	// +k8s:listType=atomic
	// +k8s:maxItems=100
	DrainPlan []corev1.DrainPlanEntry `json:"drainPlan,omitempty" protobuf:"bytes,3,rep,name=drainPlan"`

	// reason is a human-readable reason for the maintenance. At most 1024 characters.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Reason string `json:"reason,omitempty" protobuf:"bytes,4,opt,name=reason"`

	// rollout limits how many of the nodes are drained at the same time, and gives each node back
	// by itself. Unset: all nodes that the NodeMaintenanceBudgets allow are drained at once, and
	// given back when the maintenance completes. Set on creation only; maxConcurrent, paused,
	// maxFailedNodes, acknowledgedNodeUIDs and returnTimeoutSeconds may change. Needs the feature
	// gate NodeMaintenanceBudgets; a controller without it begins with no further node.
	// +optional
	// +k8s:optional
	Rollout *NodeMaintenanceRollout `json:"rollout,omitempty" protobuf:"bytes,5,opt,name=rollout"`

	// podPolicies say which pods are not evicted. The first policy that matches a pod decides;
	// without one, it is drained. Of several maintenances of a node, the most cautious policy
	// decides: Skip before WaitCompleted before Drain. Immutable. At most 20. Needs the feature
	// gate NodeMaintenanceBudgets.
	// +optional
	// +listType=atomic
	// +k8s:optional
	// +k8s:listType=atomic
	// +k8s:maxItems=20
	PodPolicies []NodeMaintenancePodPolicy `json:"podPolicies,omitempty" protobuf:"bytes,6,rep,name=podPolicies"`

	// drainedWhen is what else has to be true, besides that no pod is left, before a node is
	// drained. Immutable. Needs the feature gate NodeMaintenanceBudgets.
	// +optional
	// +k8s:optional
	DrainedWhen *NodeMaintenanceDrainedWhen `json:"drainedWhen,omitempty" protobuf:"bytes,7,opt,name=drainedWhen"`

	// escalation says when the drain of a node stops waiting, and how. Needs spec.rollout: the
	// clock of a node begins with its admission, and stands still while the node waits for other
	// NodeMaintenances. If several drain a node, a pod is acted on when all of them have come to a
	// step with this or a stronger action. Static pods, and pods that a policy skips, are left
	// alone; those that a policy waits for are not subject to SkipInterceptors. Sorted by
	// afterSeconds. At most 10. May be changed. All changes, except removing steps and making them
	// later, need the verb escalate on the NodeMaintenance. Needs the feature gate
	// NodeMaintenanceBudgets.
	// +optional
	// +listType=atomic
	// +k8s:optional
	// +k8s:listType=atomic
	// +k8s:maxItems=10
	Escalation []NodeMaintenanceEscalationStep `json:"escalation,omitempty" protobuf:"bytes,8,rep,name=escalation"`
}

// NodeMaintenanceEscalateVerb is the verb on NodeMaintenances that setting spec.escalation needs.
const NodeMaintenanceEscalateVerb = "escalate"

// NodeMaintenanceEscalationStep is one act by which the drain of a node stops waiting for the
// remaining pods that meet all of its conditions.
type NodeMaintenanceEscalationStep struct {
	// afterSeconds is how long after its admission a node has come to the step, in seconds. 1 to
	// 31536000.
	// +required
	// +k8s:required
	// +k8s:minimum=1
	// +k8s:maximum=31536000
	AfterSeconds int32 `json:"afterSeconds" protobuf:"varint,1,opt,name=afterSeconds"`

	// action is what happens: SkipInterceptors, IgnoreBudgets or ForceDelete.
	// +required
	// +k8s:required
	Action corev1.MaintenanceEscalation `json:"action" protobuf:"bytes,2,opt,name=action,casttype=k8s.io/api/core/v1.MaintenanceEscalation"`

	// podSelector selects pods by labels. Unset: all pods. At most 10 requirements with 20 values
	// each.
	// +optional
	// +k8s:optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty" protobuf:"bytes,3,opt,name=podSelector"`

	// namespaceSelector selects namespaces of pods by labels. Unset: all. At most 10 requirements
	// with 20 values each.
	// +optional
	// +k8s:optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty" protobuf:"bytes,4,opt,name=namespaceSelector"`
}

// NodeMaintenancePodAction is what happens to a pod.
// +enum
// +k8s:enum
type NodeMaintenancePodAction string

const (
	// NodeMaintenancePodDrain means that the eviction is requested, as for pods that no policy
	// matches.
	NodeMaintenancePodDrain NodeMaintenancePodAction = "Drain"

	// NodeMaintenancePodSkip means that the pod stays, counted in status.drainStatus.skippedPods,
	// and the node is drained with it.
	NodeMaintenancePodSkip NodeMaintenancePodAction = "Skip"

	// NodeMaintenancePodWaitCompleted means that the eviction is not requested, and the drain waits
	// until the pod has ended by itself, at its place in the drain plan.
	NodeMaintenancePodWaitCompleted NodeMaintenancePodAction = "WaitCompleted"
)

// NodeMaintenancePodPolicy says what happens to pods that meet all of its conditions.
type NodeMaintenancePodPolicy struct {
	// action is what happens to the pods: Drain, Skip or WaitCompleted.
	// +required
	// +k8s:required
	Action NodeMaintenancePodAction `json:"action" protobuf:"bytes,1,opt,name=action,casttype=NodeMaintenancePodAction"`

	// podSelector selects pods by labels. Unset: all pods. At most 10 requirements with 20 values
	// each.
	// +optional
	// +k8s:optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty" protobuf:"bytes,2,opt,name=podSelector"`

	// namespaceSelector selects namespaces of pods by labels. Unset: all. At most 10 requirements
	// with 20 values each.
	// +optional
	// +k8s:optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty" protobuf:"bytes,3,opt,name=namespaceSelector"`

	// resourceNames are resources, such as nvidia.com/gpu, at least one of which the pod or one of
	// its containers requests or limits; claims of devices do not count. Empty: any pod. At most
	// 20.
	// +optional
	// +listType=atomic
	// +k8s:optional
	// +k8s:listType=atomic
	// +k8s:maxItems=20
	ResourceNames []corev1.ResourceName `json:"resourceNames,omitempty" protobuf:"bytes,4,rep,name=resourceNames,casttype=k8s.io/api/core/v1.ResourceName"`
}

// NodeMaintenanceVolumes is what has to be true of the volumes of a drained node.
// +enum
// +k8s:enum
type NodeMaintenanceVolumes string

const (
	// NodeMaintenanceVolumesDetached means that no VolumeAttachment of the node is left except
	// those of pods that stay.
	NodeMaintenanceVolumesDetached NodeMaintenanceVolumes = "Detached"
)

// NodeMaintenanceDrainedWhen says when a node without pods is drained.
type NodeMaintenanceDrainedWhen struct {
	// volumes is what has to be true of the volumes: Detached. Unset: nothing.
	// +optional
	// +k8s:optional
	Volumes NodeMaintenanceVolumes `json:"volumes,omitempty" protobuf:"bytes,1,opt,name=volumes,casttype=NodeMaintenanceVolumes"`

	// timeoutSeconds is how long a node without pods waits for it, in seconds; then it is drained
	// all the same. 1 to 86400, default 600.
	// +optional
	// +default=600
	// +k8s:optional
	// +k8s:minimum=1
	// +k8s:maximum=86400
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty" protobuf:"varint,2,opt,name=timeoutSeconds"`
}

// NodeCompletionPolicy says when the work on a drained node is done.
// +enum
// +k8s:enum
type NodeCompletionPolicy string

const (
	// NodeCompletionManual means that somebody annotates the node with nodemaintenance.k8s.io/done
	// and the UID of the maintenance: kubectl maintenance complete.
	NodeCompletionManual NodeCompletionPolicy = "Manual"

	// NodeCompletionRebooted means that status.nodeInfo.bootID differs from that at the drain, and
	// the node has been Ready for 30 seconds since. The annotation counts as well.
	NodeCompletionRebooted NodeCompletionPolicy = "Rebooted"
)

// NodeDoneAnnotation says on a node that the work of a NodeMaintenance on it is done: its value is
// the UID of that maintenance. Setting it needs the right to delete the node.
const NodeDoneAnnotation = "nodemaintenance.k8s.io/done"

// NodePlannedTaint is the key of the taint, with the effect PreferNoSchedule, of nodes that wait for
// their admission. The node maintenance controller sets and removes it.
const NodePlannedTaint = "nodemaintenance.k8s.io/planned"

// NodeMaintenanceRollout limits how many nodes of a maintenance are drained at the same time.
type NodeMaintenanceRollout struct {
	// maxConcurrent is how many nodes of this maintenance may be admitted and not yet given back: a
	// number of at least 1, or a percentage of the selected nodes, rounded down to at least 1.
	// Failed nodes do not count. Unset: only NodeMaintenanceBudgets limit it.
	// +optional
	// +k8s:optional
	MaxConcurrent *intstr.IntOrString `json:"maxConcurrent,omitempty" protobuf:"bytes,1,opt,name=maxConcurrent"`

	// paused stops the admission of further nodes; admitted nodes continue. Default false.
	// +optional
	// +k8s:optional
	Paused bool `json:"paused,omitempty" protobuf:"varint,2,opt,name=paused"`

	// completeNodes says when the work on a drained node is done: Manual or Rebooted. The node is
	// then made schedulable when it is Ready, without startup taints, and runs its pods of
	// DaemonSets, and is not drained again by this maintenance. Default Manual.
	// +optional
	// +default="Manual"
	// +k8s:optional
	CompleteNodes NodeCompletionPolicy `json:"completeNodes,omitempty" protobuf:"bytes,3,opt,name=completeNodes,casttype=NodeCompletionPolicy"`

	// returnTimeoutSeconds is within which time a node has to be given back, in seconds: since it
	// is done or, with completeNodes Rebooted, since it was drained. After that it has failed,
	// until it comes back. 1 to 604800, default 1800.
	// +optional
	// +default=1800
	// +k8s:optional
	// +k8s:minimum=1
	// +k8s:maximum=604800
	ReturnTimeoutSeconds *int32 `json:"returnTimeoutSeconds,omitempty" protobuf:"varint,4,opt,name=returnTimeoutSeconds"`

	// maxFailedNodes is how many nodes may have failed at the same time, besides
	// acknowledgedNodeUIDs. While there are more, no further node is admitted and the condition
	// Halted is True. At least 0, default 0.
	// +optional
	// +default=0
	// +k8s:optional
	// +k8s:minimum=0
	MaxFailedNodes *int32 `json:"maxFailedNodes,omitempty" protobuf:"varint,5,opt,name=maxFailedNodes"`

	// settle says what the admission of further nodes waits for after a drain. Unset: nothing.
	// +optional
	// +k8s:optional
	Settle *NodeMaintenanceSettle `json:"settle,omitempty" protobuf:"bytes,6,opt,name=settle"`

	// acknowledgedNodeUIDs are the metadata.uid of failed nodes that do not count for
	// maxFailedNodes, so the next one that fails halts the rollout again. Set by kubectl
	// maintenance resume. At most 1000, with 64 characters each. Default none.
	// +optional
	// +listType=set
	// +k8s:optional
	// +k8s:listType=set
	// +k8s:maxItems=1000
	// +k8s:eachVal=+k8s:maxLength=64
	AcknowledgedNodeUIDs []types.UID `json:"acknowledgedNodeUIDs,omitempty" protobuf:"bytes,7,rep,name=acknowledgedNodeUIDs,casttype=k8s.io/apimachinery/pkg/types.UID"`
}

// NodeMaintenanceReplacements is what has to be true of pods that replace those of drained nodes.
// +enum
// +k8s:enum
type NodeMaintenanceReplacements string

const (
	// NodeMaintenanceReplacementsAvailable means that all pods are ready that controllers have
	// created since the admission of the nodes, except those of DaemonSets and Jobs.
	NodeMaintenanceReplacementsAvailable NodeMaintenanceReplacements = "Available"
)

// NodeMaintenanceSettle says what the admission of further nodes waits for after a drain.
type NodeMaintenanceSettle struct {
	// replacements is what has to be true of the replacements: Available.
	// +required
	// +k8s:required
	Replacements NodeMaintenanceReplacements `json:"replacements" protobuf:"bytes,1,opt,name=replacements,casttype=NodeMaintenanceReplacements"`

	// timeoutSeconds is how long a node is waited for after its drain, and again after the work on
	// it is done or it was deleted, in seconds. 1 to 86400, default 600.
	// +optional
	// +default=600
	// +k8s:optional
	// +k8s:minimum=1
	// +k8s:maximum=86400
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty" protobuf:"varint,2,opt,name=timeoutSeconds"`
}

// NodeMaintenanceStatus is the progress of the maintenance.
type NodeMaintenanceStatus struct {
	// stageStatuses lists the stages that the controller has started, in order. At most 4.
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

	// drainStatus is the progress of the drain over all selected nodes. Zero before the stage
	// Drain, except blockers and blockerCount; unchanged after it, with the same exception.
	// +optional
	DrainStatus DrainStatus `json:"drainStatus,omitempty" protobuf:"bytes,2,opt,name=drainStatus"`

	// conditions of the maintenance. Drained is True when the stage is Drain, every selected node
	// is cordoned, and no pod is left on any of them, except nodes that were given back one by one;
	// otherwise its message names the blockers. It is valid for the current spec only if its
	// observedGeneration equals metadata.generation; after the stage Drain it is unchanged. At most
	// one of Reconciling, which kube-apiserver sets on creation, and Stalled is True, as in kstatus
	// (sigs.k8s.io/cli-utils). Completed ends a maintenance. At most 100.
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

	// observedGeneration is the metadata.generation for which selectedNodes and, in the stage
	// Drain, drainStatus and the condition Drained were computed. They change together, when every
	// node that the new generation selects was processed.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,4,opt,name=observedGeneration"`

	// selectedNodes is the number of nodes that spec.nodeSelector matches, as of
	// observedGeneration.
	// +required
	SelectedNodes int32 `json:"selectedNodes" protobuf:"varint,5,opt,name=selectedNodes"`

	// rolloutStatus says which nodes wait, are drained, and were given back, in the stage Drain;
	// unchanged after it. Unset for a maintenance without spec.rollout of which no node has waited.
	// +optional
	// +k8s:optional
	RolloutStatus *NodeMaintenanceRolloutStatus `json:"rolloutStatus,omitempty" protobuf:"bytes,6,opt,name=rolloutStatus"`
}

// NodeMaintenanceRolloutStatus counts the selected nodes by how far they are.
type NodeMaintenanceRolloutStatus struct {
	// waitingNodes is the number of nodes that wait for their admission.
	// +required
	WaitingNodes int32 `json:"waitingNodes" protobuf:"varint,1,opt,name=waitingNodes"`

	// admittedNodes is the number of nodes that were admitted and not yet given back, including
	// failed ones.
	// +required
	AdmittedNodes int32 `json:"admittedNodes" protobuf:"varint,2,opt,name=admittedNodes"`

	// doneNodes is the number of nodes that were given back.
	// +required
	DoneNodes int32 `json:"doneNodes" protobuf:"varint,3,opt,name=doneNodes"`

	// failedNodes is the number of nodes that did not come back in time.
	// +required
	FailedNodes int32 `json:"failedNodes" protobuf:"varint,4,opt,name=failedNodes"`

	// failed are the names of the nodes that did not come back in time, sorted. At most 10.
	// +optional
	// +listType=atomic
	// +k8s:optional
	// +k8s:listType=atomic
	// +k8s:maxItems=10
	Failed []string `json:"failed,omitempty" protobuf:"bytes,5,rep,name=failed"`

	// waitingFor says what the waiting nodes wait for, most nodes first. At most 10.
	// +optional
	// +listType=atomic
	// +k8s:optional
	// +k8s:listType=atomic
	// +k8s:maxItems=10
	WaitingFor []NodeMaintenanceWait `json:"waitingFor,omitempty" protobuf:"bytes,6,rep,name=waitingFor"`

	// pendingAdmissions are admissions that are being written. At most 100.
	// +optional
	// +listType=map
	// +listMapKey=nodeName
	// +listMapKey=maintenanceUID
	// +k8s:optional
	// +k8s:listType=map
	// +k8s:listMapKey=nodeName
	// +k8s:listMapKey=maintenanceUID
	// +k8s:maxItems=100
	PendingAdmissions []NodeMaintenancePendingAdmission `json:"pendingAdmissions,omitempty" protobuf:"bytes,7,rep,name=pendingAdmissions"`

	// admissionResourceVersion is the resourceVersion of the node that was admitted last. A
	// controller whose cache of nodes is older admits no node. At most 128 characters.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=128
	AdmissionResourceVersion string `json:"admissionResourceVersion,omitempty" protobuf:"bytes,8,opt,name=admissionResourceVersion"`

	// skippedNodes is the number of nodes that were completed before they were drained: pods that
	// should have left may still run there, and Drained is False.
	// +optional
	SkippedNodes int32 `json:"skippedNodes,omitempty" protobuf:"varint,9,opt,name=skippedNodes"`
}

// NodeMaintenanceWaitReason is why nodes wait for their admission.
type NodeMaintenanceWaitReason string

const (
	// NodeMaintenanceWaitBudget means that the NodeMaintenanceBudget allows no further unavailable
	// node now or, for a node that is unschedulable already, no further one that is drained.
	NodeMaintenanceWaitBudget NodeMaintenanceWaitReason = "Budget"

	// NodeMaintenanceWaitFrozen means that the NodeMaintenanceBudget has maxUnavailable 0.
	NodeMaintenanceWaitFrozen NodeMaintenanceWaitReason = "Frozen"

	// NodeMaintenanceWaitWindow means that no window of the NodeMaintenanceBudget is open.
	NodeMaintenanceWaitWindow NodeMaintenanceWaitReason = "Window"

	// NodeMaintenanceWaitTopology means that nodes of so many other domains are maintained that the
	// NodeMaintenanceBudget allows no further domain.
	NodeMaintenanceWaitTopology NodeMaintenanceWaitReason = "Topology"

	// NodeMaintenanceWaitOlderMaintenance means that an older NodeMaintenance waits for another
	// domain of the NodeMaintenanceBudget, which younger ones would delay for ever.
	NodeMaintenanceWaitOlderMaintenance NodeMaintenanceWaitReason = "OlderMaintenance"

	// NodeMaintenanceWaitConcurrency means that spec.rollout.maxConcurrent nodes are admitted.
	NodeMaintenanceWaitConcurrency NodeMaintenanceWaitReason = "MaxConcurrent"

	// NodeMaintenanceWaitPaused means that spec.rollout.paused is set.
	NodeMaintenanceWaitPaused NodeMaintenanceWaitReason = "Paused"

	// NodeMaintenanceWaitSettling means that replacements are not ready: see spec.rollout.settle.
	NodeMaintenanceWaitSettling NodeMaintenanceWaitReason = "Settling"

	// NodeMaintenanceWaitHalted means that more nodes have failed than spec.rollout.maxFailedNodes.
	NodeMaintenanceWaitHalted NodeMaintenanceWaitReason = "Halted"

	// NodeMaintenanceWaitDisabled means that the feature gate NodeMaintenanceBudgets is off in the
	// controller.
	NodeMaintenanceWaitDisabled NodeMaintenanceWaitReason = "Disabled"

	// NodeMaintenanceWaitStatusFailed means that the status of the NodeMaintenanceBudget or, if
	// none is named, of the NodeMaintenance cannot be written, where a node is reserved before its
	// admission.
	NodeMaintenanceWaitStatusFailed NodeMaintenanceWaitReason = "StatusFailed"

	// NodeMaintenanceWaitNotCurrent means that the controller has not had the current nodes or
	// NodeMaintenanceBudgets for a minute or longer: a watch is behind, or a list fails. See its
	// log.
	NodeMaintenanceWaitNotCurrent NodeMaintenanceWaitReason = "NotCurrent"

	// NodeMaintenanceWaitAdmissionFailed means that the API server refuses the admission in the
	// status of the node: see the events of the node and of the NodeMaintenance.
	NodeMaintenanceWaitAdmissionFailed NodeMaintenanceWaitReason = "AdmissionFailed"

	// NodeMaintenanceWaitBeingRemoved means that others remove the nodes: they are being deleted,
	// or have one of the taints ToBeDeletedByClusterAutoscaler, karpenter.sh/disrupted,
	// karpenter.sh/disruption, cloud.google.com/impending-node-termination,
	// aws-node-termination-handler/spot-itn and
	// aws-node-termination-handler/asg-lifecycle-termination. No NodeMaintenance that a budget or
	// its rollout limits begins with them.
	NodeMaintenanceWaitBeingRemoved NodeMaintenanceWaitReason = "BeingRemoved"
)

// NodeMaintenanceWait is one cause for which nodes wait.
type NodeMaintenanceWait struct {
	// reason is the kind of the cause. At most 64 characters.
	// +required
	// +k8s:required
	// +k8s:maxLength=64
	Reason NodeMaintenanceWaitReason `json:"reason" protobuf:"bytes,1,opt,name=reason,casttype=NodeMaintenanceWaitReason"`

	// budget is the name of the NodeMaintenanceBudget, if that is the cause. At most 253
	// characters.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	Budget string `json:"budget,omitempty" protobuf:"bytes,2,opt,name=budget"`

	// nodeCount is the number of nodes that wait for it.
	// +required
	NodeCount int32 `json:"nodeCount" protobuf:"varint,3,opt,name=nodeCount"`

	// untilTime is when the next window of the budget opens while all other budgets of the nodes
	// are open, or until when nodes wait at most for replacements. Unset for other reasons, and
	// with the reason Window if there is no such time, within 30 days if several budgets have
	// windows: then somebody has to change spec.windows.
	// +optional
	UntilTime *metav1.Time `json:"untilTime,omitempty" protobuf:"bytes,4,opt,name=untilTime"`
}

// NodeMaintenancePendingAdmission is the admission of a node that is being written, and counts
// already.
type NodeMaintenancePendingAdmission struct {
	// nodeName is the name of the node. At most 253 characters.
	// +required
	// +k8s:required
	// +k8s:maxLength=253
	NodeName string `json:"nodeName" protobuf:"bytes,1,opt,name=nodeName"`

	// maintenanceUID is the UID of the NodeMaintenance. At most 64 characters.
	// +required
	// +k8s:required
	// +k8s:maxLength=64
	MaintenanceUID types.UID `json:"maintenanceUID" protobuf:"bytes,2,opt,name=maintenanceUID,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// time is when it was decided.
	// +required
	Time metav1.Time `json:"time" protobuf:"bytes,3,opt,name=time"`
}

// StageStatus describes a stage that the controller has started.
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
	// reachedDrainTargets are the drain targets that all selected nodes have reached. They need not
	// be entries of spec.drainPlan, because other maintenances may delay a node. Single nodes may
	// be further: see their status.maintenanceStatus.
	// +optional
	// +listType=atomic
	// +k8s:optional
	// +k8s:listType=atomic
	ReachedDrainTargets []corev1.DrainPlanEntry `json:"reachedDrainTargets,omitempty" protobuf:"bytes,1,rep,name=reachedDrainTargets"`

	// podsPendingEvictionRequest is the number of running pods on the selected nodes without an
	// unfinished EvictionRequest.
	// +required
	PodsPendingEvictionRequest int32 `json:"podsPendingEvictionRequest" protobuf:"varint,2,opt,name=podsPendingEvictionRequest"`

	// activeEvictionRequests is the number of running pods on the selected nodes with an unfinished
	// EvictionRequest.
	// +required
	ActiveEvictionRequests int32 `json:"activeEvictionRequests" protobuf:"varint,3,opt,name=activeEvictionRequests"`

	// drainMessage is "Draining", "Draining (limited by other, maintenances)", "Waiting for other,
	// maintenances.", "Waiting for admission" while nodes wait for it and no pod is left on the
	// others, "Drained", or "Drained, except for skipped nodes".
	// +optional
	DrainMessage string `json:"drainMessage,omitempty" protobuf:"bytes,4,opt,name=drainMessage"`

	// drainPlanPosition is the index in spec.drainPlan of the current entry. It never decreases,
	// even if pods of entries before it appear later.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	DrainPlanPosition *int32 `json:"drainPlanPosition,omitempty" protobuf:"varint,5,opt,name=drainPlanPosition"`

	// drainedNodes is the number of selected nodes that are cordoned without pods, or were given
	// back one by one.
	// +required
	DrainedNodes int32 `json:"drainedNodes" protobuf:"varint,6,opt,name=drainedNodes"`

	// blockedPods is the number of pods within the drain targets whose eviction needs an
	// intervention: see blockers. Unchanged after the stage Drain.
	// +required
	BlockedPods int32 `json:"blockedPods" protobuf:"varint,7,opt,name=blockedPods"`

	// blockers are what delays the eviction of pods within the drain targets, and nodes that cannot
	// be cordoned or whose status cannot be written; in the stage Complete, nodes that cannot be
	// uncordoned or whose status cannot be written, and eviction requests that cannot be withdrawn.
	// One for pods with the same cause and name. Sorted by whether they need an intervention, cause
	// and name. At most 20; blockerCount counts all. Empty in the stage Idle and after the
	// completion.
	// +optional
	// +listType=atomic
	// +k8s:optional
	// +k8s:listType=atomic
	// +k8s:maxItems=20
	Blockers []DrainBlocker `json:"blockers,omitempty" protobuf:"bytes,8,rep,name=blockers"`

	// blockerCount is the number of all blockers, also beyond the limit of blockers.
	// +required
	BlockerCount int32 `json:"blockerCount" protobuf:"varint,9,opt,name=blockerCount"`

	// skippedPods is the number of pods on the selected nodes that stay, because a policy of
	// spec.podPolicies skips them or nobody stops them; the message of the condition Drained has
	// the reason.
	// +optional
	SkippedPods int32 `json:"skippedPods,omitempty" protobuf:"varint,10,opt,name=skippedPods"`

	// escalatedPods is the number of pods that are left on the selected nodes although
	// spec.escalation has acted on them.
	// +optional
	EscalatedPods int32 `json:"escalatedPods,omitempty" protobuf:"varint,11,opt,name=escalatedPods"`
}

// DrainBlockerCause is why a maintenance is delayed. Clients must expect unknown values.
type DrainBlockerCause string

const (
	// DrainBlockerComesBack means that the pods replace others that have left the nodes since these
	// were cordoned: they tolerate that, or name their node. Their eviction is requested less and
	// less often. The blocker's name is the reason. Needs an intervention.
	DrainBlockerComesBack DrainBlockerCause = "ComesBack"

	// DrainBlockerCordonFailed means that nodes cannot be made unschedulable or, in the stage
	// Complete, schedulable: the API server refuses that (an admission webhook, a policy), or
	// another client undoes it again and again, also by changing which nodes spec.nodeSelector
	// selects. Needs an intervention.
	DrainBlockerCordonFailed DrainBlockerCause = "CordonFailed"

	// DrainBlockerDisruptionBudget means that the PodDisruptionBudgets that the blocker names do
	// not allow the eviction. Needs an intervention, unless pods become ready.
	DrainBlockerDisruptionBudget DrainBlockerCause = "DisruptionBudget"

	// DrainBlockerEvictionRefused means that the API server refuses the eviction for another
	// reason, such as an admission webhook. Needs an intervention.
	DrainBlockerEvictionRefused DrainBlockerCause = "EvictionRefused"

	// DrainBlockerInterceptorUnresponsive means that a heartbeat of the interceptor that the
	// blocker names is overdue. Needs an intervention.
	DrainBlockerInterceptorUnresponsive DrainBlockerCause = "InterceptorUnresponsive"

	// DrainBlockerKeptByMaintenance means that policies (spec.podPolicies) of the other
	// NodeMaintenances that the blocker names skip the pods until these end. Needs an intervention.
	DrainBlockerKeptByMaintenance DrainBlockerCause = "KeptByMaintenance"

	// DrainBlockerNodeStatusFailed means that the status of nodes, with their drain targets, cannot
	// be written: the API server refuses that, or another client keeps changing it. Needs an
	// intervention.
	DrainBlockerNodeStatusFailed DrainBlockerCause = "NodeStatusFailed"

	// DrainBlockerRequestFailed means that EvictionRequests of pods, or their statuses, cannot be
	// written: the API server refuses that (a quota, an admission webhook, a policy), other clients
	// keep withdrawing them, or finalizers keep one that was deleted. The blocker's name is that of
	// the namespace. Needs an intervention.
	DrainBlockerRequestFailed DrainBlockerCause = "RequestFailed"

	// DrainBlockerRequestRefused means that the EvictionRequest was canceled because it cannot
	// evict the pod. Needs an intervention.
	DrainBlockerRequestRefused DrainBlockerCause = "RequestRefused"

	// DrainBlockerStuckTerminating means that the pods still exist after their grace period. Needs
	// an intervention.
	DrainBlockerStuckTerminating DrainBlockerCause = "StuckTerminating"

	// DrainBlockerUnhandled means that all interceptors have completed and the pods still run: pods
	// of DaemonSets or static pods that nothing stops. The blocker's name is the pod type. Needs an
	// intervention.
	DrainBlockerUnhandled DrainBlockerCause = "Unhandled"

	// DrainBlockerCompletion means that a policy waits until the pods have ended: see
	// spec.podPolicies.
	DrainBlockerCompletion DrainBlockerCause = "Completion"

	// DrainBlockerVolumesAttached means that no pod is left, but VolumeAttachments are: see
	// spec.drainedWhen.
	DrainBlockerVolumesAttached DrainBlockerCause = "VolumesAttached"

	// DrainBlockerEvicting means that the eviction is in progress.
	DrainBlockerEvicting DrainBlockerCause = "Evicting"

	// DrainBlockerInterceptor means that the interceptor that the blocker names is active.
	DrainBlockerInterceptor DrainBlockerCause = "Interceptor"

	// DrainBlockerTerminating means that the pods are within their grace period.
	DrainBlockerTerminating DrainBlockerCause = "Terminating"
)

// DrainBlocker is one reason why a maintenance is delayed.
type DrainBlocker struct {
	// cause is the kind of the blocker. At most 64 characters.
	// +required
	// +k8s:required
	// +k8s:maxLength=64
	Cause DrainBlockerCause `json:"cause" protobuf:"bytes,1,opt,name=cause,casttype=DrainBlockerCause"`

	// name distinguishes blockers of the same cause: the interceptor, the namespaced names of the
	// PodDisruptionBudgets, the NodeMaintenances, the namespace, the pod type, or why pods come
	// back. Empty if the cause has only one blocker. At most 1024 characters.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Name string `json:"name,omitempty" protobuf:"bytes,2,opt,name=name"`

	// object is the object to inspect: a PodDisruptionBudget, a NodeMaintenance, a Namespace, or
	// the first of the nodes that are concerned. Unset if no single object is the cause.
	// +optional
	// +k8s:optional
	Object *DrainBlockerObject `json:"object,omitempty" protobuf:"bytes,3,opt,name=object"`

	// podCount is the number of delayed pods. 0 if the blocker concerns nodes.
	// +required
	PodCount int32 `json:"podCount" protobuf:"varint,4,opt,name=podCount"`

	// nodeCount is the number of nodes that are concerned.
	// +required
	NodeCount int32 `json:"nodeCount" protobuf:"varint,5,opt,name=nodeCount"`

	// pods are the first of these pods, by namespace and name. At most 5.
	// +optional
	// +listType=atomic
	// +k8s:optional
	// +k8s:listType=atomic
	// +k8s:maxItems=5
	Pods []DrainBlockerPod `json:"pods,omitempty" protobuf:"bytes,6,rep,name=pods"`

	// sinceTime is since when the first of the pods or nodes is delayed; for requests that the
	// controller retries, not before its last start.
	// +optional
	SinceTime *metav1.Time `json:"sinceTime,omitempty" protobuf:"bytes,7,opt,name=sinceTime"`

	// expectedFinishTime is when the last of the pods is expected to be gone, by the interceptor or
	// the grace periods.
	// +optional
	ExpectedFinishTime *metav1.Time `json:"expectedFinishTime,omitempty" protobuf:"bytes,8,opt,name=expectedFinishTime"`

	// message is a human-readable explanation, with the message of the API server or the
	// interceptor. It may change in any release. At most 1024 characters.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Message string `json:"message,omitempty" protobuf:"bytes,9,opt,name=message"`
}

// DrainBlockerObject refers to the object that causes a blocker.
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

	// namespace of the object. Empty for a cluster-scoped object. At most 63 characters.
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
	// NodeMaintenanceConditionDrained is True when the stage is Drain, every selected node is
	// cordoned, and no pod is left on any of them, except nodes that were given back one by one. It
	// is valid for its own observedGeneration.
	NodeMaintenanceConditionDrained NodeMaintenanceConditionType = "Drained"

	// NodeMaintenanceConditionHalted is True while more nodes have failed than
	// spec.rollout.maxFailedNodes: no further node is admitted. Its message names them. Absent
	// without spec.rollout.
	NodeMaintenanceConditionHalted NodeMaintenanceConditionType = "Halted"

	// NodeMaintenanceConditionReconciling is True while what spec.stage asks for is not done and
	// needs no intervention: nodes are not cordoned, drained, given back by a rollout, or released
	// yet.
	NodeMaintenanceConditionReconciling NodeMaintenanceConditionType = "Reconciling"

	// NodeMaintenanceConditionStalled is True while what spec.stage asks for needs an intervention:
	// for five minutes, a blocker has needed one, or nodes have waited because budgets are never
	// open together, a feature gate is off, or their admission or status cannot be written; or the
	// rollout is halted, or nodes were completed before they were drained. Other nodes may
	// continue. Absent until it is True for the first time.
	NodeMaintenanceConditionStalled NodeMaintenanceConditionType = "Stalled"

	// NodeMaintenanceConditionCompleted is True when the stage Complete is done: all nodes are
	// released that no other maintenance claims. Absent before. Final.
	NodeMaintenanceConditionCompleted NodeMaintenanceConditionType = "Completed"
)

const (
	// NodeMaintenanceReasonDrained is the reason of Drained when it is True.
	NodeMaintenanceReasonDrained = "Drained"

	// NodeMaintenanceReasonDraining is the reason of Drained while pods are being evicted.
	NodeMaintenanceReasonDraining = "Draining"

	// NodeMaintenanceReasonBlocked is the reason of Drained while the eviction of at least one
	// pod, or the cordon of at least one node, needs an intervention.
	NodeMaintenanceReasonBlocked = "Blocked"

	// NodeMaintenanceReasonWaiting is the reason of Drained while other maintenances of the same
	// nodes delay this one.
	NodeMaintenanceReasonWaiting = "WaitingForOtherMaintenances"

	// NodeMaintenanceReasonNoNodes is the reason of Drained when spec.nodeSelector
	// matches no node.
	NodeMaintenanceReasonNoNodes = "NoNodesSelected"

	// NodeMaintenanceReasonWaitingForAdmission is the reason of Drained while no node is drained and
	// some wait for their admission. status.rolloutStatus.waitingFor says for what.
	NodeMaintenanceReasonWaitingForAdmission = "WaitingForAdmission"

	// NodeMaintenanceReasonNodesSkipped is the reason of Drained when the work on all nodes is over, and
	// some were completed before they were drained: see status.rolloutStatus.skippedNodes.
	NodeMaintenanceReasonNodesSkipped = "NodesSkipped"

	// NodeMaintenanceReasonFailedNodes is the reason of Halted when it is True.
	NodeMaintenanceReasonFailedNodes = "FailedNodes"

	// NodeMaintenanceReasonNotHalted is the reason of Halted when it is False.
	NodeMaintenanceReasonNotHalted = "NotHalted"

	// NodeMaintenanceReasonNotObserved is the reason of Reconciling before the controller has acted on
	// the maintenance for the first time.
	NodeMaintenanceReasonNotObserved = "NotObserved"

	// NodeMaintenanceReasonCordoning is the reason of Reconciling in the stage Cordon.
	NodeMaintenanceReasonCordoning = "Cordoning"

	// NodeMaintenanceReasonNodesNotReturned is the reason of Reconciling while no pod is left, and nodes
	// of a rollout were not given back yet.
	NodeMaintenanceReasonNodesNotReturned = "NodesNotReturned"

	// NodeMaintenanceReasonReleasing is the reason of Reconciling in the stage Complete.
	NodeMaintenanceReasonReleasing = "ReleasingNodes"

	// NodeMaintenanceReasonReconciled is the reason of Reconciling when what spec.stage asks for is
	// done.
	NodeMaintenanceReasonReconciled = "Reconciled"

	// NodeMaintenanceReasonNotStalled is the reason of Stalled when it is False.
	NodeMaintenanceReasonNotStalled = "NotStalled"

	// NodeMaintenanceReasonNodesReleased is the reason of Completed.
	NodeMaintenanceReasonNodesReleased = "NodesReleased"

	// NodeMaintenanceReasonNotDraining is the reason of Drained after the stage Drain if
	// pods were left. Before that stage there is no such condition.
	NodeMaintenanceReasonNotDraining = "NotDraining"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:prerelease-lifecycle-gen:introduced=1.37

// NodeMaintenanceList is a list of NodeMaintenances.
type NodeMaintenanceList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the NodeMaintenances.
	Items []NodeMaintenance `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:prerelease-lifecycle-gen:introduced=1.37
// +k8s:supportsSubresource="/status"

// NodeMaintenanceBudget limits how many of the nodes that it selects are unavailable because of
// NodeMaintenances, in how many zones, and when. A node that several budgets select needs all of
// them. Shutdowns of kubelets never wait. Needs the feature gate NodeMaintenanceBudgets.
type NodeMaintenanceBudget struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec says which nodes may be maintained, and when. Written by the administrator.
	// +required
	Spec NodeMaintenanceBudgetSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`

	// status is how many of the nodes are unavailable. Written by the node maintenance controller.
	// Ignored on creation.
	// +optional
	Status NodeMaintenanceBudgetStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// NodeMaintenanceBudgetSpec says which nodes may be maintained at the same time, and when.
type NodeMaintenanceBudgetSpec struct {
	// nodeSelector selects the nodes, by labels or by the field metadata.name. At least one term;
	// it may match no node.
	// +required
	// +k8s:required
	NodeSelector *corev1.NodeSelector `json:"nodeSelector" protobuf:"bytes,1,opt,name=nodeSelector"`

	// maxUnavailable is how many of these nodes may be unavailable when a maintenance begins with
	// another one: a number, or a percentage of them, rounded down to at least 1. 0 or 0% is a
	// freeze: no maintenance begins with any of them. A node is unavailable if it is not Ready,
	// unschedulable, admitted, out of service, or being removed by others. Exceptions: a
	// maintenance may begin at any number with a node that has not been Ready for five minutes,
	// unless most of them are not Ready; and, while fewer than maxUnavailable of them are not Ready
	// or admitted, with one that is Ready and unschedulable.
	// +required
	// +k8s:required
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable" protobuf:"bytes,2,opt,name=maxUnavailable"`

	// topology limits in how many domains, such as zones, nodes are maintained at the same time.
	// +optional
	// +k8s:optional
	Topology *NodeMaintenanceTopology `json:"topology,omitempty" protobuf:"bytes,3,opt,name=topology"`

	// windows are when a maintenance may begin with a node; nodes already admitted continue
	// afterwards. None: always. At most 20.
	// +optional
	// +listType=atomic
	// +k8s:optional
	// +k8s:listType=atomic
	// +k8s:maxItems=20
	Windows []NodeMaintenanceWindow `json:"windows,omitempty" protobuf:"bytes,4,rep,name=windows"`
}

// NodeMaintenanceTopology limits in how many domains nodes are maintained at the same time.
type NodeMaintenanceTopology struct {
	// key is the label whose values are the domains, such as topology.kubernetes.io/zone. A node
	// without it is a domain of its own. At most 317 characters.
	// +required
	// +k8s:required
	// +k8s:maxLength=317
	Key string `json:"key" protobuf:"bytes,1,opt,name=key"`

	// maxDomains is in how many domains nodes may be admitted at the same time. At least 1.
	// +required
	// +k8s:required
	// +k8s:minimum=1
	MaxDomains int32 `json:"maxDomains" protobuf:"varint,2,opt,name=maxDomains"`
}

// NodeMaintenanceWindow is a repeated time in which a maintenance may begin with a node.
type NodeMaintenanceWindow struct {
	// schedule is when the window opens, in the format of CronJobs: minute, hour, day of the month,
	// month, day of the week. A schedule that never occurs is refused. At most 256 characters.
	// +required
	// +k8s:required
	// +k8s:maxLength=256
	Schedule string `json:"schedule" protobuf:"bytes,1,opt,name=schedule"`

	// timeZone is the name of the time zone of the schedule, such as Europe/Berlin. Default
	// Etc/UTC. At most 64 characters.
	// +optional
	// +default="Etc/UTC"
	// +k8s:optional
	// +k8s:maxLength=64
	TimeZone string `json:"timeZone,omitempty" protobuf:"bytes,2,opt,name=timeZone"`

	// durationSeconds is for how long the window is open, in real time. 60 to 31536000.
	// +required
	// +k8s:required
	// +k8s:minimum=60
	// +k8s:maximum=31536000
	DurationSeconds int32 `json:"durationSeconds" protobuf:"varint,3,opt,name=durationSeconds"`
}

// NodeMaintenanceBudgetStatus is how many of the nodes of a budget are unavailable.
type NodeMaintenanceBudgetStatus struct {
	// observedGeneration is the metadata.generation for which the status was computed.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,1,opt,name=observedGeneration"`

	// expectedNodes is the number of nodes that spec.nodeSelector matches.
	// +required
	ExpectedNodes int32 `json:"expectedNodes" protobuf:"varint,2,opt,name=expectedNodes"`

	// unavailableNodes is the number of these nodes that are unavailable: see spec.maxUnavailable.
	// +required
	UnavailableNodes int32 `json:"unavailableNodes" protobuf:"varint,3,opt,name=unavailableNodes"`

	// admissionsAllowed is with how many more available nodes a maintenance may begin now, without
	// those of further domains if spec.topology allows none.
	// +required
	AdmissionsAllowed int32 `json:"admissionsAllowed" protobuf:"varint,4,opt,name=admissionsAllowed"`

	// activeDomains are the domains with nodes that are admitted, sorted. At most 10.
	// +optional
	// +listType=atomic
	// +k8s:optional
	// +k8s:listType=atomic
	// +k8s:maxItems=10
	ActiveDomains []string `json:"activeDomains,omitempty" protobuf:"bytes,5,rep,name=activeDomains"`

	// nextWindowTime is when the next window opens. Unset without spec.windows.
	// +optional
	NextWindowTime *metav1.Time `json:"nextWindowTime,omitempty" protobuf:"bytes,6,opt,name=nextWindowTime"`

	// conditions of the budget: Open is True if its windows and maxUnavailable let maintenances
	// begin with nodes now. At most 100.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	// +k8s:optional
	// +k8s:listType=map
	// +k8s:listMapKey=type
	// +k8s:maxItems=100
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,7,rep,name=conditions"`

	// pendingAdmissions are admissions that are being written. At most 100.
	// +optional
	// +listType=map
	// +listMapKey=nodeName
	// +listMapKey=maintenanceUID
	// +k8s:optional
	// +k8s:listType=map
	// +k8s:listMapKey=nodeName
	// +k8s:listMapKey=maintenanceUID
	// +k8s:maxItems=100
	PendingAdmissions []NodeMaintenancePendingAdmission `json:"pendingAdmissions,omitempty" protobuf:"bytes,8,rep,name=pendingAdmissions"`

	// admissionResourceVersion is the resourceVersion of the node that was admitted last. A
	// controller whose cache of nodes is older admits no node. At most 128 characters.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=128
	AdmissionResourceVersion string `json:"admissionResourceVersion,omitempty" protobuf:"bytes,9,opt,name=admissionResourceVersion"`
}

// NodeMaintenanceBudgetConditionType is the type of a condition of a NodeMaintenanceBudget.
type NodeMaintenanceBudgetConditionType string

const (
	// NodeMaintenanceBudgetConditionOpen is True if maintenances may begin with nodes now, as far as
	// spec.windows and a freeze are concerned.
	NodeMaintenanceBudgetConditionOpen NodeMaintenanceBudgetConditionType = "Open"
)

// Reasons of conditions of a NodeMaintenanceBudget.
const (
	// NodeMaintenanceBudgetReasonOpen is the reason of Open when it is True.
	NodeMaintenanceBudgetReasonOpen = "Open"

	// NodeMaintenanceBudgetReasonFrozen is the reason of Open if spec.maxUnavailable is 0.
	NodeMaintenanceBudgetReasonFrozen = "Frozen"

	// NodeMaintenanceBudgetReasonOutsideWindows is the reason of Open while no window is open.
	NodeMaintenanceBudgetReasonOutsideWindows = "OutsideWindows"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:prerelease-lifecycle-gen:introduced=1.37

// NodeMaintenanceBudgetList is a list of NodeMaintenanceBudgets.
type NodeMaintenanceBudgetList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the NodeMaintenanceBudgets.
	Items []NodeMaintenanceBudget `json:"items" protobuf:"bytes,2,rep,name=items"`
}
