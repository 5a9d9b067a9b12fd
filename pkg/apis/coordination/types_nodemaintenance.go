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
	"k8s.io/kubernetes/pkg/apis/core"
)

// NodeMaintenanceStage is how far a NodeMaintenance goes.
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

	// Spec says which nodes are maintained, how far, and in which order their pods leave.
	Spec NodeMaintenanceSpec

	// Status says how far the maintenance is.
	// +optional
	Status NodeMaintenanceStatus
}

// NodeMaintenanceSpec is what the administrator wants.
type NodeMaintenanceSpec struct {
	// NodeSelector selects the nodes.
	NodeSelector *core.NodeSelector

	// Stage is how far the maintenance should go.
	// +optional
	Stage NodeMaintenanceStage

	// DrainPlan orders the pods in the stage Drain.
	// +optional
	DrainPlan []core.DrainPlanEntry

	// Reason tells people why the nodes are maintained.
	// +optional
	Reason string
}

// NodeMaintenanceStatus is how far the maintenance is.
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

	// ObservedGeneration is the metadata.generation that the status is about.
	// +optional
	ObservedGeneration int64

	// SelectedNodes is how many nodes the selector matches.
	// +optional
	SelectedNodes int32
}

// StageStatus tells of a stage that was started.
type StageStatus struct {
	// Name of the stage.
	Name NodeMaintenanceStage

	// StartTimestamp is when the controller started the stage.
	// +optional
	StartTimestamp *metav1.Time
}

// DrainStatus is the progress of a drain over all nodes of a maintenance.
type DrainStatus struct {
	// ReachedDrainTargets are the lowest drain targets among the selected nodes.
	// +optional
	ReachedDrainTargets []core.DrainPlanEntry

	// PodsPendingEvictionRequest is how many running pods have not been asked to leave.
	PodsPendingEvictionRequest int32

	// ActiveEvictionRequests is how many running pods have been asked to leave.
	ActiveEvictionRequests int32

	// DrainMessage says what the drain does.
	// +optional
	DrainMessage string

	// DrainPlanPosition is the index of the entry that is being executed.
	// +optional
	DrainPlanPosition *int32

	// DrainedNodes is how many nodes have no pod left.
	DrainedNodes int32

	// BlockedPods is how many pods cannot leave without an intervention.
	BlockedPods int32

	// Blockers lists what keeps pods on the selected nodes or delays the completion, the
	// worst first.
	// +optional
	Blockers []DrainBlocker

	// BlockerCount is how many blockers there are, listed or not.
	BlockerCount int32
}

// DrainBlockerCause says why a maintenance does not go on.
type DrainBlockerCause string

// DrainBlocker is one reason why a maintenance does not go on, with the pods that it keeps
// on their nodes or the nodes that it is about.
type DrainBlocker struct {
	// Cause says what kind of blocker it is.
	Cause DrainBlockerCause

	// Name tells blockers of the same cause apart.
	// +optional
	Name string

	// Object is the object to inspect.
	// +optional
	Object *DrainBlockerObject

	// PodCount is how many pods are kept.
	PodCount int32

	// NodeCount is how many nodes are concerned.
	NodeCount int32

	// Pods are the first of the pods.
	// +optional
	Pods []DrainBlockerPod

	// SinceTime is when the first of the pods or nodes was first kept.
	// +optional
	SinceTime *metav1.Time

	// ExpectedFinishTime is when the last of the pods is expected to be gone.
	// +optional
	ExpectedFinishTime *metav1.Time

	// Message tells people what keeps the pods.
	// +optional
	Message string
}

// DrainBlockerObject refers to the object that keeps pods on a node.
type DrainBlockerObject struct {
	// APIGroup of the object, empty for the core group.
	// +optional
	APIGroup string

	// Kind of the object.
	Kind string

	// Namespace of the object, empty for an object that has none.
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
