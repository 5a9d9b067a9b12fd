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

package decision

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// NeededStatus is the status that the node has to have.
type NeededStatus struct {
	status.Node
	// Stored is whether it has that already. Otherwise it is written after Wait, and Interval after the last one at the
	// soonest.
	Stored         bool
	Wait, Interval time.Duration
}

// NeededStatus returns the status that the node has to have; nil if that is not decided yet: until the node is schedulable, its
// status remembers that it has to be, and the targets stay as long as a request that follows from them may be written.
func (d *Decision) NeededStatus() *NeededStatus {
	if !d.View.Drains() && (!d.Quiet || d.mustUncordon()) {
		return nil
	}
	needed := &NeededStatus{Node: status.Node{
		Maintenance: status.ComputeNode(d.View), Conditions: status.ComputeNodeConditions(d.View, d.Node.Status.Conditions, d.Now),
	}}
	if status.IsStored(d.Node, needed.Maintenance, needed.Conditions) {
		needed.Stored = true
		return needed
	}
	needed.Interval = pace.StatusInterval
	if d.View.Rolls && status.DiffersInProgress(d.Node, &needed.Node) {
		needed.Interval = pace.ProgressInterval
	}
	// Nothing says that a node is claimed before it may be.
	needed.Wait = max(d.Failures[write.Status.Of(d.Node.UID)].Wait(d.Now), d.reclaimWait())
	if d.IsRestoration(&needed.Node) {
		needed.Wait = max(needed.Wait, d.Reverts.Wait(pace.RevertedConditions))
	}
	if d.StatusUndone {
		needed.Wait = max(needed.Wait, d.Reverts.Wait(pace.RevertedStatus))
	}
	return needed
}

// IsRestoration reports whether a status only has to be written because another client has changed the conditions
// that were last written. The cache has that write.
func (d *Decision) IsRestoration(needed *status.Node) bool {
	if d.OwnConditions == nil || d.OwnConditions.UID != d.Node.UID || !apiequality.Semantic.DeepEqual(d.Node.Status.MaintenanceStatus, needed.Maintenance) {
		return false
	}
	return slices.EqualFunc(d.OwnConditions.Conditions, needed.Conditions, func(a, b v1.NodeCondition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
	})
}

// TakesBack reports whether the stored status of the node says that it is claimed, drained further, or that a maintenance has
// begun with it, and the next one does not.
func (d *Decision) TakesBack() bool {
	return withdraws(d.Node, d.View) || forgets(d.Node, d.View.Admissions)
}

// withdraws reports whether the stored status of a node says that it is claimed, or drained further, and the next one
// does not.
func withdraws(node *v1.Node, view *status.View) bool {
	return maintenance.IsClaimed(node) && !view.Claimed() || !view.Targets.Reaches(progress.StoredTargets(node))
}

// forgets reports whether the next admissions of a node lack one that is stored and not over: its maintenance has begun
// with the node.
func forgets(node *v1.Node, next []v1.MaintenanceAdmission) bool {
	return slices.ContainsFunc(maintenance.Admissions(node), func(stored v1.MaintenanceAdmission) bool {
		return stored.DoneTime == nil && !slices.ContainsFunc(next, func(a v1.MaintenanceAdmission) bool { return a.MaintenanceUID == stored.MaintenanceUID })
	})
}

// Takes reports whether the next status of the node says that it is claimed, or that a maintenance has begun with it, and the
// stored one does not.
func (d *Decision) Takes() bool {
	return !maintenance.IsClaimed(d.Node) && d.View.Claimed() || slices.ContainsFunc(d.View.Admissions, func(next v1.MaintenanceAdmission) bool {
		return maintenance.AdmissionOf(d.Node, next.MaintenanceUID) == nil
	})
}
