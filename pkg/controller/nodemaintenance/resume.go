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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
)

// resumeTime is for how long after its start a process takes over what another one has found before about writes that
// fail: the longest time between two attempts.
const resumeTime = pace.MaxRetry

// failureCauses are the causes of blockers that nothing but the status of a maintenance remembers, by the writes that
// fail, or that others undo again and again.
var failureCauses = map[writeKind]maintenance.HoldCause{
	writeCordon: maintenance.HoldCordonFailed, writeUncordon: maintenance.HoldCordonFailed, writeTaint: maintenance.HoldCordonFailed,
	writeStatus:  maintenance.HoldNodeStatusFailed,
	writeRequest: maintenance.HoldRequestFailed, writeWithdrawal: maintenance.HoldRequestFailed, writeEscalation: maintenance.HoldRequestFailed,
}

// failureKey identifies a blocker with one of these causes: those of requests have the names of their namespaces.
type failureKey struct {
	cause maintenance.HoldCause
	name  string
}

// failuresOf returns since when writes fail, as a status says.
func failuresOf(status *coordinationv1alpha1.NodeMaintenanceStatus) map[failureKey]time.Time {
	found := map[failureKey]time.Time{}
	for i := range status.DrainStatus.Blockers {
		b := &status.DrainStatus.Blockers[i]
		switch cause := maintenance.HoldCause(b.Cause); cause {
		case maintenance.HoldCordonFailed, maintenance.HoldNodeStatusFailed, maintenance.HoldRequestFailed:
			if b.SinceTime != nil {
				found[failureKey{cause, b.Name}] = b.SinceTime.Time
			}
		}
	}
	return found
}

// earlierSince returns since when a write fails for the node, or for a pod of that namespace, as a process before has
// found; zero if it has not, or if this one began too long ago.
func (c *Controller) earlierSince(node string, write writeKind, namespace string) (earliest time.Time) {
	if c.clock.Now().Sub(c.begun) > resumeTime {
		return time.Time{}
	}
	for _, name := range c.progress.concerning(node) {
		m, err := c.maintenanceLister.Get(name)
		if err != nil {
			continue // It is gone.
		}
		since := failuresOf(&m.Status)[failureKey{failureCauses[write], namespace}]
		if !since.IsZero() && (earliest.IsZero() || since.Before(earliest)) {
			earliest = since
		}
	}
	return earliest
}

// resume returns for how long a status has to wait because writes that have failed before the process began were not
// tried again yet; 0 if it need not. Otherwise their blockers would disappear for a moment, and with them since when
// they exist.
func (p *maintenanceProgress) resume(sums *summary, now time.Time) time.Duration {
	for key := range p.failedBefore {
		isFound := findCause(sums.blockers, key) || findCause(sums.releaseBlockers, key)
		if isFound || !now.Before(p.resumeUntil) || sums.released {
			delete(p.failedBefore, key)
		}
	}
	if len(p.failedBefore) == 0 {
		return 0
	}
	return pace.Within(p.resumeUntil.Sub(now), resumeTime)
}

func findCause(groups []maintenance.HoldGroup, key failureKey) bool {
	for i := range groups {
		if groups[i].Cause == key.cause && groups[i].Name == key.name {
			return true
		}
	}
	return false
}
