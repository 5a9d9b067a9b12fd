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
)

// MaintenanceStatus is the progress of a drain on one node.
type MaintenanceStatus struct {
	// DrainTargets select the pods that are asked to leave this node now.
	// +optional
	DrainTargets []DrainPlanEntry

	// DrainMessage says what the drain does on this node.
	// +optional
	DrainMessage string

	// PodsPendingEvictionRequest is how many running pods have not been asked to leave.
	PodsPendingEvictionRequest int32

	// ActiveEvictionRequests is how many running pods have been asked to leave.
	ActiveEvictionRequests int32
}

// PodType tells pods by who runs them.
type PodType string

const (
	// PodTypeDefault stands for all pods of neither of the other types.
	PodTypeDefault PodType = "Default"

	// PodTypeDaemonSet stands for pods that a DaemonSet controls.
	PodTypeDaemonSet PodType = "DaemonSet"

	// PodTypeStatic stands for static pods, which the API server knows as mirror pods.
	PodTypeStatic PodType = "Static"
)

// DrainPlanEntry selects pods to drain.
type DrainPlanEntry struct {
	// PodSelector selects pods by their labels; all if it is nil.
	// +optional
	PodSelector *metav1.LabelSelector

	// PodPriority selects pods whose priority is at most this.
	PodPriority int32

	// PodType selects pods by who runs them.
	PodType PodType
}
