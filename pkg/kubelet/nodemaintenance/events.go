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

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// Reasons of events of nodes.
const (
	// StoppingReason is added when the kubelet stops a static pod for a maintenance.
	StoppingReason = "StoppingStaticPod"
	// HeldReason is added when the pod has stopped.
	HeldReason = "StaticPodHeld"
	// ReleasedReason is added when a static pod may run again.
	ReleasedReason = "StaticPodReleased"
	// RefusedReason is added when the control plane did not answer or process the end of a pod.
	RefusedReason = "StaticPodNeeded"
	// FailedReason is added when the kubelet could not read or write its checkpoint.
	FailedReason = "FailedStaticPodMaintenance"

	// DrainingForShutdownReason is added when a maintenance begins to evict the pods of a node that
	// shuts down.
	DrainingForShutdownReason = "DrainingForShutdown"
	// DrainedForShutdownReason is added when all pods have left.
	DrainedForShutdownReason = "DrainedForShutdown"
	// ShutdownDelayTooShortReason is added when the shutdown cannot be delayed until then.
	ShutdownDelayTooShortReason = "ShutdownDelayTooShort"
	// ShutdownWithoutDrainReason is added when pods are terminated because no maintenance evicts
	// them.
	ShutdownWithoutDrainReason = "ShutdownWithoutDrain"
	// ShutdownCanceledReason is added when the node does not shut down after all.
	ShutdownCanceledReason = "ShutdownCanceled"
	// ShutdownMaintenanceEndedReason is added when the kubelet has ended the maintenance.
	ShutdownMaintenanceEndedReason = "ShutdownMaintenanceEnded"
)

// withUID returns the reference with the UID of the node, if that is known. The reference of the
// kubelet has none, and kubectl describe shows only the events of the node that have it.
func withUID(ref *v1.ObjectReference, getNode func() (*v1.Node, error)) *v1.ObjectReference {
	node, err := getNode()
	if err != nil {
		return ref
	}
	ref = ref.DeepCopy()
	ref.UID = node.UID
	return ref
}

func (m *Manager) event(eventType, reason, format string, args ...any) {
	m.Recorder.Eventf(withUID(m.NodeRef, m.Node), eventType, reason, format, args...)
}

// NodeReference returns what events of the node refer to.
func (s *Shutdown) NodeReference() *v1.ObjectReference { return withUID(s.NodeRef, s.Node) }

func (s *Shutdown) event(eventType, reason, format string, args ...any) {
	s.Recorder.Eventf(s.NodeReference(), eventType, reason, format, args...)
}

func (m *Manager) reportError(ctx context.Context, err error, message string) {
	klog.FromContext(ctx).Error(err, message)
	m.event(v1.EventTypeWarning, FailedReason, "%s: %v", message, err)
}
