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
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance"
	"k8s.io/kubernetes/pkg/kubelet/nodeshutdown"
)

// unknownBootID stands for the boot of a machine that gives boots no IDs.
const unknownBootID = "unknown"

// errShutdownIsOver is why the drain targets of the node are not known: they may be those of a
// maintenance that the kubelet ends.
var errShutdownIsOver = errors.New("the maintenance of an earlier shutdown has not ended")

// startShutdownMaintenance makes the kubelet drain the node before it shuts down, if that is
// configured. It ends the maintenance of an earlier shutdown in any case.
func (kl *Kubelet) startShutdownMaintenance(ctx context.Context, d *Dependencies, holds *nodemaintenance.Holds) *nodemaintenance.Shutdown {
	shutdown := nodemaintenance.NewShutdown(ctx, nodemaintenance.ShutdownConfig{
		Client:         kl.heartbeatClient,
		NodeName:       string(kl.nodeName),
		BootID:         kl.bootID,
		Node:           func() (*v1.Node, error) { return kl.nodeLister.Get(string(kl.nodeName)) },
		Holds:          holds,
		ActivePods:     kl.GetActivePods,
		RunningPods:    kl.runningPods,
		IsTerminating:  func() bool { return kl.shutdownManager.ShutdownStatus() != nil },
		SyncNodeStatus: kl.syncNodeStatus,
		Directory:      kl.rootDirectory,
		Recorder:       d.Recorder,
		NodeRef:        kl.nodeRef,
	})
	// Also without the configuration: the node has the condition in every graceful shutdown.
	kl.setNodeStatusFuncs = append(kl.setNodeStatusFuncs, shutdown.SetCondition)
	drains := kl.kubeletConfiguration.PreferNodeMaintenanceDuringGracefulShutdown
	waits := nodeshutdown.Watch(kl.shutdownManager, shutdown, drains)
	if drains && !waits {
		klog.FromContext(ctx).Error(nil, "The node will not be drained before it shuts down: graceful node shutdown is off, or not possible on this operating system")
	}
	if !(drains && waits) && shutdown.WasInterrupted() {
		shutdown.Cancel(ctx) // Nothing would tell when the shutdown is canceled.
	}
	go shutdown.Run(ctx)
	return shutdown
}

// bootID returns what the status of the node shows, too.
func (kl *Kubelet) bootID() string {
	info, err := kl.GetCachedMachineInfo()
	if err != nil || info == nil || info.BootID == "" {
		// Then logind says whether the machine still shuts down.
		return unknownBootID
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
