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

package kubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance"
	"k8s.io/kubernetes/pkg/kubelet/nodeshutdown"
)

const (
	// gracefulNodeShutdownInProgress is the type of the condition of a node that shuts down. A node
	// has it since its first shutdown that a maintenance was to drain.
	gracefulNodeShutdownInProgress v1.NodeConditionType = "GracefulNodeShutdownInProgress"

	nodeShutdownReason    = "NodeShutdown"
	noNodeShutdownReason  = "NoNodeShutdown"
	nodeShutdownMessage   = "The node shuts down"
	noNodeShutdownMessage = "The node does not shut down"
)

// startShutdownMaintenance makes the kubelet drain the node before it shuts down, if that is
// configured. It ends the maintenance of an earlier shutdown in any case.
func (kl *Kubelet) startShutdownMaintenance(ctx context.Context, d *Dependencies, holds *nodemaintenance.Holds) {
	shutdown := nodemaintenance.NewShutdown(ctx, nodemaintenance.ShutdownConfig{
		Client:         kl.heartbeatClient,
		NodeName:       string(kl.nodeName),
		BootID:         kl.bootID,
		Node:           func() (*v1.Node, error) { return kl.nodeLister.Get(string(kl.nodeName)) },
		Holds:          holds,
		ActivePods:     kl.GetActivePods,
		RunningPods:    kl.runningPods,
		Ping:           kl.pingAPIServer,
		SyncNodeStatus: kl.syncNodeStatus,
		Directory:      kl.rootDirectory,
		Recorder:       d.Recorder,
		NodeRef:        kl.nodeRef,
	})
	if kl.kubeletConfiguration.PreferNodeMaintenanceDuringGracefulShutdown {
		if !nodeshutdown.DrainFirst(kl.shutdownManager, shutdown) {
			klog.FromContext(ctx).Error(nil, "The node will not be drained before it shuts down: graceful node shutdown is off, or not possible on this operating system")
		}
		kl.setNodeStatusFuncs = append(kl.setNodeStatusFuncs, kl.shutdownCondition(shutdown.IsInProgress))
	} else if shutdown.WasInterrupted() {
		shutdown.Cancel(ctx)
	}
	go shutdown.Run(ctx)
}

func (kl *Kubelet) bootID() string {
	info, err := kl.GetCachedMachineInfo()
	if err != nil || info == nil {
		return ""
	}
	return info.BootID
}

// runningPods returns the pods that run according to the container runtime.
func (kl *Kubelet) runningPods(ctx context.Context) ([]types.NamespacedName, error) {
	pods, err := kl.containerRuntime.GetPods(ctx, false)
	if err != nil {
		return nil, err
	}
	keys := make([]types.NamespacedName, 0, len(pods))
	for _, pod := range pods {
		keys = append(keys, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
	return keys, nil
}

// shutdownCondition returns a function that sets the condition of a node that shuts down.
func (kl *Kubelet) shutdownCondition(isInProgress func() bool) func(context.Context, *v1.Node) error {
	return func(_ context.Context, node *v1.Node) error {
		now := metav1.NewTime(kl.clock.Now())
		condition := v1.NodeCondition{
			Type: gracefulNodeShutdownInProgress, Status: v1.ConditionFalse, Reason: noNodeShutdownReason, Message: noNodeShutdownMessage,
			LastHeartbeatTime: now, LastTransitionTime: now,
		}
		if isInProgress() {
			condition.Status, condition.Reason, condition.Message = v1.ConditionTrue, nodeShutdownReason, nodeShutdownMessage
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
}

// pingAPIServer returns an error if the API server does not answer.
func (kl *Kubelet) pingAPIServer(ctx context.Context) error {
	_, err := kl.getNodeFromAPIServer(ctx)
	return err
}
