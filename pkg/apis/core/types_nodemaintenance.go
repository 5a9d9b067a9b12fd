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

package core

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MaintenanceStatus is the progress of a drain on one node.
type MaintenanceStatus struct {
	// DrainTargets select the pods of this node whose eviction is requested.
	// +optional
	DrainTargets []DrainPlanEntry

	// DrainMessage is the state of the drain on this node.
	// +optional
	DrainMessage string

	// PodsPendingEvictionRequest is the number of running pods without an unfinished
	// EvictionRequest.
	PodsPendingEvictionRequest int32

	// ActiveEvictionRequests is the number of running pods with an unfinished EvictionRequest.
	ActiveEvictionRequests int32

	// BlockedPods is the number of pods within the drain targets whose eviction needs an
	// intervention.
	BlockedPods int32

	// Admissions say which NodeMaintenances may maintain this node, and how far they are.
	// +optional
	Admissions []MaintenanceAdmission

	// Unclaimed is whether no maintenance has cordoned the node.
	// +optional
	Unclaimed bool

	// EmptiedTime is since when no pod is left that has to leave.
	// +optional
	EmptiedTime *metav1.Time

	// InitialPods is the largest number of pods that were left since the drain began.
	// +optional
	InitialPods int32
}

// MaintenanceAdmission is how far a NodeMaintenance is with a node that it was allowed to maintain.
type MaintenanceAdmission struct {
	// MaintenanceName is the name of the NodeMaintenance.
	MaintenanceName string

	// MaintenanceUID is the UID of the NodeMaintenance.
	MaintenanceUID types.UID

	// AdmittedTime is since when it may maintain the node.
	AdmittedTime metav1.Time

	// DrainedTime is when no pod was left that has to leave.
	// +optional
	DrainedTime *metav1.Time

	// BootID is status.nodeInfo.bootID when the node was drained.
	// +optional
	BootID string

	// ReturningTime is since when the work on the node is done.
	// +optional
	ReturningTime *metav1.Time

	// FailedTime is since when the node should have been given back.
	// +optional
	FailedTime *metav1.Time

	// DoneTime is when the node was given back.
	// +optional
	DoneTime *metav1.Time

	// Escalation is the strongest action of spec.escalation that has begun on this node.
	// +optional
	Escalation MaintenanceEscalation

	// EscalationTime is since when Escalation has its value.
	// +optional
	EscalationTime *metav1.Time

	// WaitingTime is since when the clock of spec.escalation stands still.
	// +optional
	WaitingTime *metav1.Time

	// WaitedSeconds is for how long it has stood still before that.
	// +optional
	WaitedSeconds int32
}

// MaintenanceEscalation is how the drain of a node by a NodeMaintenance stops waiting.
type MaintenanceEscalation string

const (
	// MaintenanceEscalationSkipInterceptors means that interceptors are passed over.
	MaintenanceEscalationSkipInterceptors MaintenanceEscalation = "SkipInterceptors"

	// MaintenanceEscalationIgnoreBudgets means that pods are deleted with their grace period.
	MaintenanceEscalationIgnoreBudgets MaintenanceEscalation = "IgnoreBudgets"

	// MaintenanceEscalationForceDelete means that pods are removed from the API, if the node is out of
	// service.
	MaintenanceEscalationForceDelete MaintenanceEscalation = "ForceDelete"
)

// PodType distinguishes pods by what runs them.
type PodType string

const (
	// PodTypeDefault is the type of all pods that are of no other type.
	PodTypeDefault PodType = "Default"

	// PodTypeDaemonSet is the type of pods that a DaemonSet controls.
	PodTypeDaemonSet PodType = "DaemonSet"

	// PodTypeStatic is the type of static pods, which mirror pods represent in the API.
	PodTypeStatic PodType = "Static"
)

// DrainPlanEntry selects pods to evict.
type DrainPlanEntry struct {
	// PodSelector selects pods by their labels; all if it is nil.
	// +optional
	PodSelector *metav1.LabelSelector

	// PodPriority selects pods whose priority is at most this value.
	PodPriority int32

	// PodType selects pods by their type.
	PodType PodType
}
