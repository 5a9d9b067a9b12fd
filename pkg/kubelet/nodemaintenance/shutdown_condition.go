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
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
)

// SetCondition sets the condition GracefulNodeShutdownInProgress of the node. It is True while the
// node shuts down, from the begin of the drain or of the termination of its pods on, and False afterwards. Nodes
// which have not shut down do not have it. What an administrator has set stays while the node does not shut down.
func (s *Shutdown) SetCondition(_ context.Context, node *v1.Node) error {
	now := metav1.NewTime(time.Now())
	condition := s.condition()
	condition.LastHeartbeatTime, condition.LastTransitionTime = now, now
	for i := range node.Status.Conditions {
		old := &node.Status.Conditions[i]
		switch {
		case old.Type != condition.Type:
			continue
		case condition.Status == v1.ConditionFalse && !isOwnReason(old.Reason):
			return nil
		case old.Status == condition.Status:
			condition.LastTransitionTime = old.LastTransitionTime
		}
		*old = condition
		return nil
	}
	if condition.Status == v1.ConditionTrue {
		node.Status.Conditions = append(node.Status.Conditions, condition)
	}
	return nil
}

// condition returns the condition without its times.
func (s *Shutdown) condition() v1.NodeCondition {
	condition := v1.NodeCondition{Type: v1.NodeGracefulNodeShutdownInProgress, Status: v1.ConditionTrue}
	switch {
	case s.IsTerminating != nil && s.IsTerminating():
		// Also without a drain.
		condition.Reason, condition.Message = maintenance.ShutdownTerminatingReason, "The node shuts down, and its pods are terminated"
	case s.IsInProgress():
		condition.Reason, condition.Message = maintenance.ShutdownReason, "The node shuts down"
	default:
		condition.Status, condition.Reason, condition.Message = v1.ConditionFalse, maintenance.NoShutdownReason, "The node does not shut down"
	}
	return condition
}

func isOwnReason(reason string) bool {
	return reason == maintenance.ShutdownReason || reason == maintenance.ShutdownTerminatingReason || reason == maintenance.NoShutdownReason
}
