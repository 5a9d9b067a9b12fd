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

// Outcome is what is decided on the node for one maintenance.
type Outcome struct {
	progress.Decision
	Maintenance string
	// Outrun is whether the node was drained further already than the maintenance allows.
	Outrun bool
}

// Outcomes returns what is decided for the maintenances that claim the node.
func (d *Decision) Outcomes() []Outcome {
	var outcomes []Outcome
	view := d.View
	groups, floor := view.GroupBlockers(view.PodBlockers, ""), progress.StoredTargets(d.Node)
	for _, p := range d.Participants {
		limiting := progress.LimitedBy(p, d.Participants, view.Targets)
		_, detaching := view.VolumeBlockers[p.Name]
		decision := progress.Decision{
			Targets: view.Targets, LimitedBy: limiting, LimitedByOlder: progress.OlderThan(p, d.Participants, limiting),
			Pending: view.Pending, Active: view.Active, Blocked: view.Blocked,
			Draining: view.State.Draining, Cordoned: view.State.Cordoned, Blockers: groups,
			Detaching: detaching, Settling: view.State.Settling, Staying: d.Skipped[p.Name], Unstopped: d.Unstopped, Escalated: view.Escalated,
		}
		own, blockers := d.leftFor(p.Name), view.PodBlockers
		if own != d.Facts {
			// What it keeps itself is neither left nor blocked for it.
			decision.Pending, decision.Active = own.countRequests()
			blockers, decision.Blocked = own.podBlockers(view.Targets)
		}
		if own != d.Facts || detaching {
			decision.Blockers = view.GroupBlockers(blockers, p.Name)
		}
		outcomes = append(outcomes, Outcome{decision, p.Name, !p.Allowed.Reaches(floor)})
	}
	for i := range d.Specs {
		if o := &d.Specs[i]; o.Claims() && !o.Drains() {
			// What blocks pods does not concern it.
			decision := progress.Decision{Cordoned: d.Node.Spec.Unschedulable, Blockers: view.GroupBlockers(nil, "")}
			outcomes = append(outcomes, Outcome{decision, o.Name, false})
		}
	}
	return outcomes
}

// IsOver reports whether the maintenances that do not claim the node any more have nothing left to do there, but for its status.
// Requests on a node that is still drained do not concern them: another maintenance wants these, but for those of pods that all
// others skip.
func (d *Decision) IsOver() bool {
	return len(d.Unneeded) == 0 && (d.View.Drains() || len(d.Withdrawals()) == 0)
}
