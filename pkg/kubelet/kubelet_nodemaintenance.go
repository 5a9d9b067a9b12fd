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
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/record"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
)

// answerTimeout is how long the API server may take to answer. A request to an API server that is
// overloaded takes about a second.
const answerTimeout = 5 * time.Second

// staticPodMaintenance has which static pods are affected by a maintenance of the node. It is nil
// if the kubelet does not take part in maintenances.
type staticPodMaintenance struct {
	holds *nodemaintenance.Holds
	// loadError is why the holds of the last kubelet are unknown.
	loadError error
}

// loadStaticPodMaintenance reads which static pods the last kubelet has stopped. Without the gate,
// or without an API server, all static pods run, and nothing must be left that a later kubelet
// would stop them for.
func (d *Dependencies) loadStaticPodMaintenance(ctx context.Context, rootDirectory string) {
	logger := klog.FromContext(ctx)
	if d.KubeClient == nil || !utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceAwareKubelet) {
		removed, err := nodemaintenance.RemoveCheckpoint(rootDirectory)
		if err != nil {
			logger.Error(err, "Could not remove the state of static pods during node maintenances")
		} else if removed {
			logger.Info("Removed the state of static pods during node maintenances: static pods that were stopped start again")
		}
		return
	}
	d.staticPodMaintenance = &staticPodMaintenance{}
	m := d.staticPodMaintenance
	if m.holds, m.loadError = nodemaintenance.LoadHolds(rootDirectory); m.loadError != nil {
		logger.Error(m.loadError, "Could not read which static pods were stopped for a node maintenance: all static pods run")
	}
	if !m.holds.IsEmpty() {
		d.releaseAfterShutdown(ctx, m.holds, rootDirectory)
		d.releaseRunningStaticPods(ctx, m.holds)
	}
}

// releaseAfterShutdown releases static pods that were stopped because the machine shut down, which
// is over.
func (d *Dependencies) releaseAfterShutdown(ctx context.Context, holds *nodemaintenance.Holds, rootDirectory string) {
	logger := klog.FromContext(ctx)
	if d.CAdvisorInterface == nil {
		return
	}
	machine, err := d.CAdvisorInterface.MachineInfo(logger)
	if err != nil {
		logger.Error(err, "Could not read the ID of this boot: static pods that were stopped for a shutdown start when the API server answers")
		return
	}
	isOver, err := nodemaintenance.IsMaintenanceOver(rootDirectory, machine.BootID)
	if err != nil {
		logger.Error(err, "Could not read the state of the last shutdown: all static pods run")
	} else if !isOver {
		return
	}
	released, err := holds.ReleaseAll()
	if err != nil {
		logger.Error(err, "Could not store the release of static pods")
	}
	logger.Info("Released the static pods that were stopped for the last shutdown", "pods", released)
}

// releaseRunningStaticPods releases static pods that another kubelet has started since, such as one
// without the gate: this kubelet would end them without their grace period, because it has not seen
// them.
func (d *Dependencies) releaseRunningStaticPods(ctx context.Context, holds *nodemaintenance.Holds) {
	logger := klog.FromContext(ctx)
	if d.RemoteRuntimeService == nil {
		return
	}
	sandboxes, err := d.RemoteRuntimeService.ListPodSandbox(ctx, &runtimeapi.PodSandboxFilter{
		State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY},
	})
	if err != nil {
		logger.Error(err, "Could not list the running pods: static pods that were stopped for a node maintenance stay away")
		return
	}
	released, err := holds.ReleaseRunning(sandboxes)
	if err != nil {
		logger.Error(err, "Could not store the release of static pods")
	}
	if len(released) > 0 {
		logger.Info("Released static pods that run already", "pods", released)
	}
}

// withholdStaticPods makes the kubelet not see static pods that were stopped for a maintenance.
func (d *Dependencies) withholdStaticPods(cfg *config.PodConfig) {
	if d.staticPodMaintenance != nil {
		cfg.WithholdStaticPods(d.staticPodMaintenance.holds.Withheld)
	}
}

// startStaticPodMaintenance starts to stop static pods for maintenances of the node.
func (kl *Kubelet) startStaticPodMaintenance(ctx context.Context, d *Dependencies) {
	m := d.staticPodMaintenance
	if m == nil {
		return
	}
	if m.loadError != nil {
		go kl.reportLoadError(ctx, d.Recorder, m.loadError)
	}
	kl.mirrorPodClient = &heldMirrorClient{MirrorClient: kl.mirrorPodClient, keeps: m.holds.KeepsMirrorPod}
	shutdown := kl.startShutdownMaintenance(ctx, d, m.holds)
	manager := nodemaintenance.NewManager(nodemaintenance.Config{
		Client: kl.kubeClient,
		Holds:  m.holds,
		Node: func() (*v1.Node, error) {
			if shutdown.IsEnding() {
				return nil, errShutdownIsOver
			}
			return kl.nodeLister.Get(string(kl.nodeName))
		},
		Pods:          kl.podManager,
		HasContainers: kl.podWorkers.CouldHaveRunningContainers,
		IsForgotten:   kl.isForgotten,
		GetNode:       kl.getNodeFromAPIServer,
		Merge:         d.PodConfig.MergeStaticPods,
		Recorder:      d.Recorder,
		NodeRef:       kl.nodeRef,
	})
	go manager.Run(ctx)
}

// reportLoadError waits until the kubelet has seen the node, whose UID kubectl describe looks for.
func (kl *Kubelet) reportLoadError(ctx context.Context, recorder record.EventRecorder, loadError error) {
	if wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) { return kl.nodeRefWithUID().UID != "", nil }) == nil {
		recorder.Eventf(kl.nodeRefWithUID(), v1.EventTypeWarning, nodemaintenance.FailedReason,
			"Could not read which static pods were stopped for a maintenance of the node: all static pods run: %v", loadError)
	}
}

// isForgotten reports whether no pod worker knows the pod with this UID, so that HandlePodAdditions
// admits one that has it. Pods that are not admitted have no allocation, and are not counted.
func (kl *Kubelet) isForgotten(uid types.UID) bool {
	return !kl.podWorkers.CouldHaveRunningContainers(uid) && !kl.podWorkers.IsPodTerminationRequested(uid)
}

// heldMirrorClient deletes the mirror pods of static pods that have stopped when package
// nodemaintenance allows it. It does not wait long for an API server that does not answer: the sync
// loop deletes mirror pods, starts no pods while it waits, and the API server may need one of those.
type heldMirrorClient struct {
	kubepod.MirrorClient
	keeps func(types.NamespacedName) bool
}

// DeleteMirrorPod implements MirrorClient. The sync loop tries again what has failed.
func (c *heldMirrorClient) DeleteMirrorPod(ctx context.Context, podFullName string, uid *types.UID) (bool, error) {
	if name, namespace, err := kubecontainer.ParsePodFullName(podFullName); err == nil && c.keeps(types.NamespacedName{Namespace: namespace, Name: name}) {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return c.MirrorClient.DeleteMirrorPod(ctx, podFullName, uid)
}

// getNodeFromAPIServer returns an error if the API server does not answer. It reads an object, so that
// it also fails without etcd.
func (kl *Kubelet) getNodeFromAPIServer(ctx context.Context) (*v1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return kl.heartbeatClient.CoreV1().Nodes().Get(ctx, string(kl.nodeName), metav1.GetOptions{})
}
