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
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/apis/core"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeMaintenanceBudget limits how many nodes are unavailable because of NodeMaintenances.
type NodeMaintenanceBudget struct {
	metav1.TypeMeta
	// +optional
	metav1.ObjectMeta

	// Spec says which nodes may be maintained, and when.
	Spec NodeMaintenanceBudgetSpec

	// Status is how many of the nodes are unavailable.
	// +optional
	Status NodeMaintenanceBudgetStatus
}

// NodeMaintenanceBudgetSpec says which nodes may be maintained at the same time, and when.
type NodeMaintenanceBudgetSpec struct {
	// NodeSelector selects the nodes that the budget is about.
	NodeSelector *core.NodeSelector

	// MaxUnavailable is how many of these nodes may be unavailable. 0 is a freeze.
	MaxUnavailable *intstr.IntOrString

	// Topology limits in how many domains nodes are maintained at the same time.
	// +optional
	Topology *NodeMaintenanceTopology

	// Windows are when a maintenance may begin with a node.
	// +optional
	Windows []NodeMaintenanceWindow
}

// NodeMaintenanceTopology limits in how many domains nodes are maintained at the same time.
type NodeMaintenanceTopology struct {
	// Key is the label whose values are the domains.
	Key string

	// MaxDomains is in how many domains nodes may be admitted at the same time.
	MaxDomains int32
}

// NodeMaintenanceWindow is a repeated time in which a maintenance may begin with a node.
type NodeMaintenanceWindow struct {
	// Schedule is when the window opens.
	Schedule string

	// TimeZone is the name of the time zone of the schedule.
	// +optional
	TimeZone string

	// DurationSeconds is for how long the window is open.
	DurationSeconds int32
}

// NodeMaintenanceBudgetStatus is how many of the nodes of a budget are unavailable.
type NodeMaintenanceBudgetStatus struct {
	// ObservedGeneration is the metadata.generation for which the status was computed.
	// +optional
	ObservedGeneration int64

	// ExpectedNodes is the number of nodes that the selector matches.
	ExpectedNodes int32

	// UnavailableNodes is the number of these that are unavailable: not Ready, unschedulable, admitted, out of
	// service, or being removed by others.
	UnavailableNodes int32

	// AdmissionsAllowed is with how many more nodes a maintenance may begin now.
	AdmissionsAllowed int32

	// ActiveDomains are the domains with nodes that are admitted.
	// +optional
	ActiveDomains []string

	// NextWindowTime is when the next window opens.
	// +optional
	NextWindowTime *metav1.Time

	// Conditions of the budget.
	// +optional
	Conditions []metav1.Condition

	// PendingAdmissions are nodes whose admission is decided and being written.
	// +optional
	PendingAdmissions []NodeMaintenancePendingAdmission

	// AdmissionResourceVersion is that of the node whose admission was confirmed last.
	// +optional
	AdmissionResourceVersion string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeMaintenanceBudgetList is a list of NodeMaintenanceBudgets.
type NodeMaintenanceBudgetList struct {
	metav1.TypeMeta
	// +optional
	metav1.ListMeta

	// Items are the NodeMaintenanceBudgets.
	Items []NodeMaintenanceBudget
}
