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

package progress

import (
	"time"

	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
)

// ResumeTime is for how long after its start a process takes over what another one has found before about writes that
// fail: the longest time between two attempts.
const ResumeTime = pace.MaxRetry

// resume returns for how long a status has to wait because writes that have failed before the process began were not
// tried again yet; 0 if it need not. Otherwise their blockers would disappear for a moment, and with them since when
// they exist.
func (p *maintenanceProgress) resume(sums *Summary, now time.Time) time.Duration {
	for key := range p.failedBefore {
		isFound := findCause(sums.Blockers, key) || findCause(sums.ReleaseBlockers, key)
		if isFound || !now.Before(p.resumeUntil) || sums.Released {
			delete(p.failedBefore, key)
		}
	}
	if len(p.failedBefore) == 0 {
		return 0
	}
	return pace.Within(p.resumeUntil.Sub(now), ResumeTime)
}

func findCause(groups []maintenance.BlockerGroup, key FailureKey) bool {
	for i := range groups {
		if groups[i].Cause == key.Cause && groups[i].Name == key.Name {
			return true
		}
	}
	return false
}
