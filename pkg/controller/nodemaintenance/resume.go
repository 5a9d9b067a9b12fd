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

	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// failureCauses are the causes of blockers that nothing but the status of a maintenance remembers, by the writes that
// fail, or that others undo again and again.
var failureCauses = map[write.Kind]maintenance.HoldCause{
	write.Cordon: maintenance.HoldCordonFailed, write.Uncordon: maintenance.HoldCordonFailed, write.Taint: maintenance.HoldCordonFailed,
	write.Status:  maintenance.HoldNodeStatusFailed,
	write.Request: maintenance.HoldRequestFailed, write.Withdrawal: maintenance.HoldRequestFailed, write.Escalation: maintenance.HoldRequestFailed,
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
