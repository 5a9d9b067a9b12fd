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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/apis/core"
)

// NodeMaintenanceStage is a stage of a NodeMaintenance.
type NodeMaintenanceStage string

const (
	// NodeMaintenanceStageIdle announces a maintenance.
	NodeMaintenanceStageIdle NodeMaintenanceStage = "Idle"

	// NodeMaintenanceStageCordon keeps the selected nodes unschedulable.
	NodeMaintenanceStageCordon NodeMaintenanceStage = "Cordon"

	// NodeMaintenanceStageDrain also requests the eviction of their pods.
	NodeMaintenanceStageDrain NodeMaintenanceStage = "Drain"

	// NodeMaintenanceStageComplete ends the maintenance.
	NodeMaintenanceStageComplete NodeMaintenanceStage = "Complete"
)

// NodeMaintenanceFinalizer keeps a NodeMaintenance until its Complete stage is done.
const NodeMaintenanceFinalizer = "nodemaintenance.k8s.io/maintenance-completion"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeMaintenance takes pods off a set of nodes.
type NodeMaintenance struct {
	metav1.TypeMeta
	// +optional
	metav1.ObjectMeta

	// Spec selects the nodes, the stage, and the order in which pods are evicted.
	Spec NodeMaintenanceSpec

	// Status is the progress of the maintenance.
	// +optional
	Status NodeMaintenanceStatus
}

// NodeMaintenanceSpec is the desired maintenance.
type NodeMaintenanceSpec struct {
	// NodeSelector selects the nodes.
	NodeSelector *core.NodeSelector

	// Stage is the desired stage.
	// +optional
	Stage NodeMaintenanceStage

	// DrainPlan orders the evictions in the stage Drain.
	// +optional
	DrainPlan []core.DrainPlanEntry

	// Reason is a human-readable reason for the maintenance.
	// +optional
	Reason string

	// Rollout limits how many of the nodes are drained at the same time.
	// +optional
	Rollout *NodeMaintenanceRollout

	// PodPolicies say which pods are not evicted.
	// +optional
	PodPolicies []NodeMaintenancePodPolicy

	// DrainedWhen says what else has to be true before a node is drained.
	// +optional
	DrainedWhen *NodeMaintenanceDrainedWhen

	// Escalation says when the drain of a node stops waiting, and how.
	// +optional
	Escalation []NodeMaintenanceEscalationStep
}

// NodeMaintenanceEscalationStep is one act by which the drain of a node stops waiting.
type NodeMaintenanceEscalationStep struct {
	// AfterSeconds is how long after its admission a node has come to the step.
	AfterSeconds int32

	// Action is what happens to the pods that are left then.
	Action core.MaintenanceEscalation

	// PodSelector selects pods by their labels.
	// +optional
	PodSelector *metav1.LabelSelector

	// NamespaceSelector selects the namespaces of the pods by their labels.
	// +optional
	NamespaceSelector *metav1.LabelSelector
}

// NodeMaintenancePodAction is what happens to a pod.
type NodeMaintenancePodAction string

const (
	// NodeMaintenancePodDrain means that the eviction of the pod is requested.
	NodeMaintenancePodDrain NodeMaintenancePodAction = "Drain"

	// NodeMaintenancePodSkip means that the pod stays.
	NodeMaintenancePodSkip NodeMaintenancePodAction = "Skip"

	// NodeMaintenancePodWaitCompleted means that the drain waits until the pod has ended.
	NodeMaintenancePodWaitCompleted NodeMaintenancePodAction = "WaitCompleted"
)

// NodeMaintenancePodPolicy says what happens to the pods that it matches.
type NodeMaintenancePodPolicy struct {
	// Action is what happens to the pods.
	Action NodeMaintenancePodAction

	// PodSelector selects pods by their labels.
	// +optional
	PodSelector *metav1.LabelSelector

	// NamespaceSelector selects the namespaces of the pods by their labels.
	// +optional
	NamespaceSelector *metav1.LabelSelector

	// ResourceNames are resources of which the pod requests at least one.
	// +optional
	ResourceNames []core.ResourceName
}

// NodeMaintenanceVolumes is what has to be true of the volumes of a drained node.
type NodeMaintenanceVolumes string

// NodeMaintenanceVolumesDetached means that no VolumeAttachment is left but those of pods that stay.
const NodeMaintenanceVolumesDetached NodeMaintenanceVolumes = "Detached"

// NodeMaintenanceDrainedWhen says when a node without pods is drained.
type NodeMaintenanceDrainedWhen struct {
	// Volumes is what has to be true of the volumes.
	// +optional
	Volumes NodeMaintenanceVolumes

	// TimeoutSeconds is for how long a node without pods waits for it.
	// +optional
	TimeoutSeconds *int32
}

// NodeCompletionPolicy says when the work on a drained node is done.
type NodeCompletionPolicy string

const (
	// NodeCompletionManual means that somebody annotates the node.
	NodeCompletionManual NodeCompletionPolicy = "Manual"

	// NodeCompletionRebooted means that the node was rebooted after its drain.
	NodeCompletionRebooted NodeCompletionPolicy = "Rebooted"
)

// NodeMaintenanceRollout limits how many nodes of a maintenance are drained at the same time.
type NodeMaintenanceRollout struct {
	// MaxConcurrent is how many nodes may be admitted and not yet given back.
	// +optional
	MaxConcurrent *intstr.IntOrString

	// Paused stops the admission of further nodes.
	// +optional
	Paused bool

	// CompleteNodes says when the work on a drained node is done.
	// +optional
	CompleteNodes NodeCompletionPolicy

	// ReturnTimeoutSeconds is within which time a node has to be given back.
	// +optional
	ReturnTimeoutSeconds *int32

	// MaxFailedNodes is how many nodes may have failed before no further one is admitted.
	// +optional
	MaxFailedNodes *int32

	// Settle says what the admission of further nodes waits for after nodes were drained.
	// +optional
	Settle *NodeMaintenanceSettle

	// AcknowledgedNodeUIDs are the UIDs of failed nodes that do not count for MaxFailedNodes.
	// +optional
	AcknowledgedNodeUIDs []types.UID
}

// NodeMaintenanceReplacements is what has to be true of pods that replace those of drained nodes.
type NodeMaintenanceReplacements string

// NodeMaintenanceReplacementsAvailable means that these pods are ready.
const NodeMaintenanceReplacementsAvailable NodeMaintenanceReplacements = "Available"

// NodeMaintenanceSettle says what the admission of further nodes waits for after nodes were drained.
type NodeMaintenanceSettle struct {
	// Replacements is what has to be true of the pods that replace those of the nodes.
	Replacements NodeMaintenanceReplacements

	// TimeoutSeconds is for how long after its drain a node is waited for.
	// +optional
	TimeoutSeconds *int32
}

// NodeMaintenanceStatus is the progress of the maintenance.
type NodeMaintenanceStatus struct {
	// StageStatuses lists the stages that were started.
	// +optional
	StageStatuses []StageStatus

	// DrainStatus is the progress of the drain over all selected nodes.
	// +optional
	DrainStatus DrainStatus

	// Conditions of the maintenance.
	// +optional
	Conditions []metav1.Condition

	// ObservedGeneration is the metadata.generation for which the status was computed.
	// +optional
	ObservedGeneration int64

	// SelectedNodes is how many nodes the selector matches.
	// +optional
	SelectedNodes int32

	// RolloutStatus says which nodes wait, are drained, and were given back.
	// +optional
	RolloutStatus *NodeMaintenanceRolloutStatus
}

// NodeMaintenanceRolloutStatus counts the selected nodes by how far they are.
type NodeMaintenanceRolloutStatus struct {
	// WaitingNodes is the number of nodes that wait for their admission.
	WaitingNodes int32

	// AdmittedNodes is the number of nodes that were admitted and not yet given back.
	AdmittedNodes int32

	// DoneNodes is the number of nodes that were given back.
	DoneNodes int32

	// FailedNodes is the number of nodes that did not come back in time.
	FailedNodes int32

	// Failed are the names of the first of these.
	// +optional
	Failed []string

	// WaitingFor says what the waiting nodes wait for.
	// +optional
	WaitingFor []NodeMaintenanceWait

	// PendingAdmissions are nodes whose admission is decided and being written.
	// +optional
	PendingAdmissions []NodeMaintenancePendingAdmission

	// AdmissionResourceVersion is that of the node whose admission was confirmed last.
	// +optional
	AdmissionResourceVersion string

	// SkippedNodes is the number of nodes that were completed before they were drained.
	// +optional
	SkippedNodes int32
}

// NodeMaintenanceWaitReason is why nodes wait for their admission.
type NodeMaintenanceWaitReason string

// NodeMaintenanceWait is one cause for which nodes wait.
type NodeMaintenanceWait struct {
	// Reason is the kind of the cause.
	Reason NodeMaintenanceWaitReason

	// Budget is the name of the NodeMaintenanceBudget.
	// +optional
	Budget string

	// NodeCount is the number of nodes that wait for it.
	NodeCount int32

	// UntilTime is when the next window of the budget opens and all other budgets of the nodes are open, or until
	// when the nodes wait at most for pods that replace others. Nil if neither is known.
	// +optional
	UntilTime *metav1.Time
}

// NodeMaintenancePendingAdmission is the admission of a node that is decided and being written.
type NodeMaintenancePendingAdmission struct {
	// NodeName is the name of the node.
	NodeName string

	// MaintenanceUID is the UID of the NodeMaintenance.
	MaintenanceUID types.UID

	// Time is when it was decided.
	Time metav1.Time
}

// StageStatus describes a stage that the controller has started.
type StageStatus struct {
	// Name of the stage.
	Name NodeMaintenanceStage

	// StartTimestamp is when the controller started the stage.
	// +optional
	StartTimestamp *metav1.Time
}

// DrainStatus is the progress of a drain over all nodes of a maintenance.
type DrainStatus struct {
	// ReachedDrainTargets are the drain targets that all selected nodes have reached.
	// +optional
	ReachedDrainTargets []core.DrainPlanEntry

	// PodsPendingEvictionRequest is the number of running pods without an unfinished
	// EvictionRequest.
	PodsPendingEvictionRequest int32

	// ActiveEvictionRequests is the number of running pods with an unfinished EvictionRequest.
	ActiveEvictionRequests int32

	// DrainMessage is the state of the drain.
	// +optional
	DrainMessage string

	// DrainPlanPosition is the index of the current entry in the plan.
	// +optional
	DrainPlanPosition *int32

	// DrainedNodes is the number of selected nodes that are cordoned and have no pod left.
	DrainedNodes int32

	// BlockedPods is the number of pods within the drain targets whose eviction needs an
	// intervention.
	BlockedPods int32

	// Blockers lists what delays the drain or the completion, those that need an intervention
	// first.
	// +optional
	Blockers []DrainBlocker

	// BlockerCount is the number of all blockers, also of those beyond the limit of Blockers.
	BlockerCount int32

	// SkippedPods is the number of pods that stay, because a policy skips them or nobody stops them.
	// +optional
	SkippedPods int32

	// EscalatedPods is the number of pods that are left although an escalation has acted on them.
	// +optional
	EscalatedPods int32
}

// DrainBlockerCause is why a maintenance is delayed.
type DrainBlockerCause string

// DrainBlocker is one reason why a maintenance is delayed, with the pods or nodes that it
// concerns.
type DrainBlocker struct {
	// Cause is the kind of the blocker.
	Cause DrainBlockerCause

	// Name distinguishes blockers of the same cause.
	// +optional
	Name string

	// Object is the object to inspect.
	// +optional
	Object *DrainBlockerObject

	// PodCount is the number of pods that are delayed.
	PodCount int32

	// NodeCount is the number of nodes that are concerned.
	NodeCount int32

	// Pods are the first of the pods.
	// +optional
	Pods []DrainBlockerPod

	// SinceTime is since when the first of the pods or nodes is delayed.
	// +optional
	SinceTime *metav1.Time

	// ExpectedFinishTime is when the last of the pods is expected to be gone.
	// +optional
	ExpectedFinishTime *metav1.Time

	// Message is a human-readable explanation.
	// +optional
	Message string
}

// DrainBlockerObject refers to the object that causes a blocker.
type DrainBlockerObject struct {
	// APIGroup of the object, empty for the core group.
	// +optional
	APIGroup string

	// Kind of the object.
	Kind string

	// Namespace of the object, empty for a cluster-scoped object.
	// +optional
	Namespace string

	// Name of the object.
	Name string
}

// DrainBlockerPod names a pod.
type DrainBlockerPod struct {
	// Namespace of the pod.
	Namespace string

	// Name of the pod.
	Name string
}

// NodeMaintenanceConditionType is a type of condition of a NodeMaintenance.
type NodeMaintenanceConditionType string

const (
	// NodeMaintenanceConditionDrained is True when no pod is left on any selected node.
	NodeMaintenanceConditionDrained NodeMaintenanceConditionType = "Drained"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeMaintenanceList is a list of NodeMaintenances.
type NodeMaintenanceList struct {
	metav1.TypeMeta
	// +optional
	metav1.ListMeta

	// Items are the NodeMaintenances.
	Items []NodeMaintenance
}
