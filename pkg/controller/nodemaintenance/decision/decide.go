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
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
)

// Decide decides on a node. Which writes follow, and what delays them, the methods of the decision say: the phases of the sync
// of a node ask them one after the other.
func Decide(f *Facts) *Decision {
	d := &Decision{Facts: f, View: &status.View{}, own: f.Memories.Own}
	d.addMaintenances()
	d.addNodeBlockers()
	d.addContests()
	if d.View.Drains() && len(d.Participants) > 0 {
		d.addDrain()
		d.addVolumes()
	}
	d.View.Admissions = d.nextAdmissions()
	d.Wanted = d.wantedWrites()
	if f.Ready {
		d.recheckPods()
	}
	return d
}

// recheckPods has the node decided on again when an escalation or an interceptor of a pod is due.
func (d *Decision) recheckPods() {
	if d.NextEscalation > 0 {
		d.recheck(d.NextEscalation)
	}
	for i := range d.View.PodBlockers {
		if recheckAt := d.View.PodBlockers[i].RecheckAt; !recheckAt.IsZero() {
			d.recheck(recheckAt.Sub(d.Now))
		}
	}
}

// addMaintenances adds what the maintenances want that select the node.
func (d *Decision) addMaintenances() {
	view, awaitsFinalizer, hasCordoned := d.View, false, false
	for i := range d.Specs {
		o := &d.Specs[i]
		if o.Plans() {
			view.Planning = append(view.Planning, o.Name)
		}
		if o.Claims() {
			view.Claiming = append(view.Claiming, o.Name)
			view.Rolls = view.Rolls || o.Rollout != nil || d.Limited
		}
		if o.Drains() {
			view.Draining = append(view.Draining, o.Name)
		}
		awaitsFinalizer = awaitsFinalizer || o.AwaitsFinalizer()
		view.Waits = view.Waits || o.Waits()
		hasCordoned = hasCordoned || o.Waits() && o.HasCordoned(d.Node)
	}
	view.KeepsCordon = (awaitsFinalizer || hasCordoned) && !view.Claimed() && IsOwnCordon(d.Node, d.own, d.CompletionCordoned)
}
