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

package node

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/features"
)

// dropDisabledMaintenanceStatus removes status.maintenanceStatus from a node while the gate is off.
// A stored value is kept until a client removes it, so that nothing is lost if the gate is off
// temporarily, or on one of several servers. old is nil on creation.
func dropDisabledMaintenanceStatus(node, old *api.Node) {
	inUse := old != nil && old.Status.MaintenanceStatus != nil
	if !utilfeature.DefaultFeatureGate.Enabled(features.DeclarativeNodeMaintenance) && !inUse {
		node.Status.MaintenanceStatus = nil
	}
	admits := inUse && (len(old.Status.MaintenanceStatus.Admissions) > 0 || old.Status.MaintenanceStatus.Unclaimed)
	if node.Status.MaintenanceStatus != nil && !utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceBudgets) && !admits {
		node.Status.MaintenanceStatus.Admissions = nil
		if node.Status.MaintenanceStatus.Unclaimed {
			// Without the two fields, it would say that a maintenance has cordoned the node, and the
			// controller would make a node schedulable that someone has cordoned by hand.
			node.Status.MaintenanceStatus = nil
		}
	}
	// Also where a drain has begun: a stored maintenance may wait for volumes since a time that has to
	// be stored, or its timeout would never end.
	empty := inUse && (old.Status.MaintenanceStatus.EmptiedTime != nil || len(old.Status.MaintenanceStatus.DrainTargets) > 0)
	if node.Status.MaintenanceStatus != nil && !utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceBudgets) && !empty {
		node.Status.MaintenanceStatus.EmptiedTime = nil
	}
}

// validateMaintenanceStatus validates status.maintenanceStatus where a status is written: on
// creation, with a nil old, and in updates of the status.
func validateMaintenanceStatus(node, old *api.Node) field.ErrorList {
	var oldStatus *api.MaintenanceStatus
	if old != nil {
		oldStatus = old.Status.MaintenanceStatus
	}
	return validation.ValidateMaintenanceStatus(node.Status.MaintenanceStatus, oldStatus, field.NewPath("status", "maintenanceStatus"))
}
