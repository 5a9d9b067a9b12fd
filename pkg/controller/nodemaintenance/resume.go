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

package nodemaintenance

import (
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// failureCauses are the causes of blockers that nothing but the status of a maintenance remembers, by the writes that
// fail, or that others undo again and again.
var failureCauses = map[write.Kind]maintenance.BlockerCause{
	write.Cordon: maintenance.BlockerCordonFailed, write.Uncordon: maintenance.BlockerCordonFailed, write.Taint: maintenance.BlockerCordonFailed,
	write.Status:  maintenance.BlockerNodeStatusFailed,
	write.Request: maintenance.BlockerRequestFailed, write.Withdrawal: maintenance.BlockerRequestFailed, write.Escalation: maintenance.BlockerRequestFailed,
}

// earlierSince returns since when a write fails for the node, or for a pod of that namespace, as a process before has
// found; zero if it has not, or if this one began too long ago.
func (c *Controller) earlierSince(node string, write write.Kind, namespace string) (earliest time.Time) {
	if c.clock.Now().Sub(c.begun) > progress.ResumeTime {
		return time.Time{}
	}
	for _, name := range c.progress.Concerning(node) {
		m, err := c.maintenanceLister.Get(name)
		if err != nil {
			continue // It is gone.
		}
		since := progress.FailuresOf(&m.Status)[progress.FailureKey{Cause: failureCauses[write], Name: namespace}]
		if !since.IsZero() && (earliest.IsZero() || since.Before(earliest)) {
			earliest = since
		}
	}
	return earliest
}

// hasBeenDrained reports whether the node was drained for one of the maintenances that drain it.
func hasBeenDrained(node *v1.Node, specs []progress.Spec) bool {
	return slices.ContainsFunc(specs, func(o progress.Spec) bool {
		admission := maintenance.AdmissionOf(node, o.UID)
		return o.Drains() && admission != nil && admission.DrainedTime != nil
	})
}

// comesBackSince returns since when pods come back to nodes of the maintenances that drain a node, as their
// statuses say, by why they do.
func (c *Controller) comesBackSince(specs []progress.Spec) map[string]time.Time {
	since := map[string]time.Time{}
	for i := range specs {
		m, err := c.maintenanceLister.Get(specs[i].Name)
		if err != nil || m.UID != specs[i].UID || !specs[i].Drains() {
			continue
		}
		for _, b := range m.Status.DrainStatus.Blockers {
			if b.Cause != coordinationv1alpha1.DrainBlockerComesBack || b.SinceTime == nil {
				continue
			}
			if known, found := since[b.Name]; !found || b.SinceTime.Time.Before(known) {
				since[b.Name] = b.SinceTime.Time
			}
		}
	}
	return since
}
