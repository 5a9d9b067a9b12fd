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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"slices"
	"time"
)

// addVolumes adds which of the maintenances wait until the volumes of a node without pods are detached. Each of them
// gives up after its own timeout.
func (d *Decision) addVolumes() {
	waiting := slices.ContainsFunc(d.Specs, func(o progress.Spec) bool { return o.Drains() && o.AwaitsVolumes() })
	if !waiting || slices.ContainsFunc(d.Pods, func(pod Pod) bool { return !pod.IsKeptByNeighbors() }) {
		return
	}
	emptied := metav1.NewTime(d.Now.Truncate(time.Second))
	if stored := d.Node.Status.MaintenanceStatus; stored != nil && stored.EmptiedTime != nil {
		emptied = *stored.EmptiedTime
	}
	attached := d.Lookups.AttachedVolumes(d.Node, d.Staying)
	if len(attached) == 0 {
		return
	}
	d.View.EmptiedTime, d.View.VolumeBlockers = &emptied, map[string]maintenance.Blocker{}
	for i := range d.Specs {
		o := &d.Specs[i]
		if !o.Drains() || !o.AwaitsVolumes() {
			continue
		}
		if deadline := emptied.Add(o.DetachTimeout()); d.Now.Before(deadline) {
			d.View.VolumeBlockers[o.Name] = maintenance.AttachedVolumes(d.Node.Name, attached, emptied, deadline)
			d.recheck(deadline.Sub(d.Now))
		}
	}
	d.View.State.Detaching = len(d.View.VolumeBlockers) > 0
}
