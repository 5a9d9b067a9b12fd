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

package status

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
)

// View is what the status of a node is computed from.
type View struct {
	// Planning, Claiming and Draining name the maintenances in the stage Idle, in Cordon or Drain,
	// and in Drain.
	Planning, Claiming, Draining []string
	// KeepsCordon is whether the node is unschedulable because of an earlier claim, and stays so
	// because a maintenance that awaits its finalizer will claim it, or because it waits for its
	// admission after the stage Cordon.
	KeepsCordon bool
	// Waits is whether a maintenance waits until it may begin with the node.
	Waits bool
	// Rolls is whether a maintenance that had to be admitted claims the node.
	Rolls bool
	// Admissions are how far the maintenances are that were admitted to the node.
	Admissions []v1.MaintenanceAdmission
	// CordonRefused is whether the node could not be cordoned, and CordonBlocker says why, or why
	// it cannot be uncordoned.
	CordonRefused bool
	CordonBlocker *maintenance.Blocker
	// ReturnBlockers say which pods keep coming back to a node that is empty at the moment.
	ReturnBlockers []maintenance.Blocker
	// StatusBlocker says why the status of the node cannot be written.
	StatusBlocker *maintenance.Blocker
	// VolumeBlockers say which volumes keep a node without pods from being drained, by the names of the maintenances
	// that wait for them.
	VolumeBlockers map[string]maintenance.Blocker
	// Targets are the drain targets, and State is how far the drain is.
	Targets maintenance.Targets
	State   progress.DrainState
	// Pending counts the pods without an unfinished request, and Active those with one.
	Pending, Active int
	// InitialPods is how many pods were left at most since the drain began, as it is stored.
	InitialPods int32
	// PodBlockers delay the eviction of pods, and Blocked counts the pods that need an
	// intervention. Both are empty unless a maintenance drains the node.
	PodBlockers []maintenance.Blocker
	Blocked     int
	// Escalation is the strongest action that is due for a pod, and Escalated counts the pods that are
	// left although one was taken.
	Escalation v1.MaintenanceEscalation
	Escalated  int
	// EmptiedTime is since when no pod is left, if the node has to wait for its volumes.
	EmptiedTime *metav1.Time
}

// Claimed reports whether the node has to be unschedulable for a maintenance.
func (v *View) Claimed() bool { return len(v.Claiming) > 0 }

// Drains reports whether a maintenance has pods leave the node.
func (v *View) Drains() bool { return len(v.Draining) > 0 }

// IsDrainedFor reports whether the node is drained for a maintenance, for which pods are left or not.
func (v *View) IsDrainedFor(maintenance string, left bool) bool {
	state := v.State
	_, state.Detaching = v.VolumeBlockers[maintenance]
	return state.IsDrainedBut(left)
}

// GroupBlockers groups what delays the eviction of pods, with what delays the writes to the node, and the
// volumes for which the maintenance waits; none without a name.
func (v *View) GroupBlockers(ofPods []maintenance.Blocker, maintenanceName string) []maintenance.BlockerGroup {
	blockers := append(slices.Clip(ofPods), v.ReturnBlockers...)
	for _, blocker := range []*maintenance.Blocker{v.CordonBlocker, v.StatusBlocker} {
		if blocker != nil {
			blockers = append(blockers, *blocker)
		}
	}
	if blocker, waits := v.VolumeBlockers[maintenanceName]; waits {
		blockers = append(blockers, blocker)
	}
	return maintenance.GroupBlockers(blockers)
}
