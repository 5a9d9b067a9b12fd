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

package deployment

import (
	"fmt"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

const (
	// DeploymentEvictionInProgress is True while the Deployment surges, or waits to surge, for
	// pods that are about to be evicted. It is absent otherwise.
	DeploymentEvictionInProgress apps.DeploymentConditionType = "EvictionInProgress"

	// SurgingReason means that replacements exist or are being created.
	SurgingReason = "Surging"
	// WaitingReason means that no surge has started: the pods wait for a rollout, for room within
	// maxSurge or, if that is 0, for each other.
	WaitingReason = "Waiting"
)

// progress is what the condition reports about a Deployment.
type progress struct {
	// asked is the number of pods that wait for the Deployment, surge the number of replacements
	// that should exist, and replaced the number of replacements that are available.
	asked, surge, replaced int
	// paced is true if the pods wait for each other instead.
	paced bool
}

func (p progress) inProgress() bool { return p.asked > 0 || p.surge > 0 }

func (p progress) condition() apps.DeploymentCondition {
	c := apps.DeploymentCondition{Type: DeploymentEvictionInProgress, Status: v1.ConditionTrue}
	if p.surge > 0 {
		c.Reason = SurgingReason
		c.Message = fmt.Sprintf("Surging %d/%d: pods are removed when their replacements are available.", p.replaced, p.surge)
	} else if p.paced {
		c.Reason = WaitingReason
		c.Message = fmt.Sprintf("Pods waiting for other pods before their eviction: %d. Their EvictionRequests show the reason.", p.asked)
	} else {
		c.Reason = WaitingReason
		c.Message = fmt.Sprintf("Pods waiting for a replacement before their eviction: %d. Their EvictionRequests show the reason.", p.asked)
	}
	return c
}

// setCondition updates the condition of a Deployment in a status that is about to be written.
// A nil surger removes the condition, which may be left over from when the gate was on.
func (s *surger) setCondition(status *apps.DeploymentStatus, d *apps.Deployment) {
	if s == nil {
		deploymentutil.RemoveDeploymentCondition(status, DeploymentEvictionInProgress)
		return
	}
	if !s.knowsRequests(s.clock.Now()) {
		return // The condition is from before a restart and may still be right.
	}
	s.lock.Lock()
	p := s.progress[d.UID]
	s.lock.Unlock()
	if !p.inProgress() {
		deploymentutil.RemoveDeploymentCondition(status, DeploymentEvictionInProgress)
		return
	}
	now := metav1.NewTime(s.clock.Now())
	condition := p.condition()
	condition.LastTransitionTime, condition.LastUpdateTime = now, now
	for i, existing := range status.Conditions {
		if existing.Type != DeploymentEvictionInProgress {
			continue
		}
		// Replace it in place: the order of the conditions is part of the status.
		if existing.Reason != condition.Reason || existing.Message != condition.Message {
			condition.LastTransitionTime = existing.LastTransitionTime
			status.Conditions[i] = condition
		}
		return
	}
	status.Conditions = append(status.Conditions, condition)
}
