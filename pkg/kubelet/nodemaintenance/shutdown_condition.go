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
)

const (
	// nodeShutdownReason is the reason when it is True.
	nodeShutdownReason = "NodeShutdown"
	// noNodeShutdownReason is the reason when it is False.
	noNodeShutdownReason = "NoNodeShutdown"
)

// SetCondition sets the condition GracefulNodeShutdownInProgress of the node. It is True while the
// node shuts down, from the begin of the drain on, and False afterwards. Nodes which have not shut
// down do not have it.
func (s *Shutdown) SetCondition(_ context.Context, node *v1.Node) error {
	now := metav1.NewTime(time.Now())
	condition := v1.NodeCondition{
		Type: v1.NodeGracefulNodeShutdownInProgress, Status: v1.ConditionFalse, Reason: noNodeShutdownReason, Message: "The node does not shut down",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
	if s.IsInProgress() {
		condition.Status, condition.Reason, condition.Message = v1.ConditionTrue, nodeShutdownReason, "The node shuts down"
	}
	for i := range node.Status.Conditions {
		if old := &node.Status.Conditions[i]; old.Type == condition.Type {
			if old.Status == condition.Status {
				condition.LastTransitionTime = old.LastTransitionTime
			}
			*old = condition
			return nil
		}
	}
	if condition.Status == v1.ConditionTrue {
		node.Status.Conditions = append(node.Status.Conditions, condition)
	}
	return nil
}
