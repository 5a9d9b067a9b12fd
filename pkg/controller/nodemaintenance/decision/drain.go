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
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
)

// addDrain adds the targets and the state of the drain.
func (d *Decision) addDrain() {
	view := d.View
	view.Targets = progress.NodeTargets(d.Participants, progress.StoredTargets(d.Node), d.anyTaken)
	if !d.mayRaise() {
		// No further eviction is requested on a node that takes new pods, or whose drain may not
		// start yet.
		view.Targets = progress.StoredTargets(d.Node)
	}
	d.addEscalation()
	view.State.Left, view.State.Cordoned = len(d.Pods) > 0, d.Node.Spec.Unschedulable
	view.Pending, view.Active = d.countRequests()
	if stored := d.Node.Status.MaintenanceStatus; stored != nil {
		view.InitialPods = stored.InitialPods
	}
	view.PodBlockers, view.Blocked = d.podBlockers(view.Targets)
	if d.Settles > 0 {
		view.State.Settling, view.ReturnBlockers = true, d.Unsettled
		d.recheck(d.Settles)
	}
	view.State.Draining = d.anyTaken(view.Targets)
	view.State.LimitedBy = progress.LimitedBy(progress.Oldest(d.Participants), d.Participants, view.Targets)
	if !view.CordonRefused {
		view.State.WaitingFor = d.Lookups.WaitingOn(progress.Satisfied(d.Participants, view.Targets))
	}
}
