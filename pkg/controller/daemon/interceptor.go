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

package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1"
	clientset "k8s.io/client-go/kubernetes"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/daemon/metrics"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/podeviction"
	"k8s.io/kubernetes/pkg/controller/util/tombstone"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// Reasons for DaemonSet events
const (
	// MaintenanceDeleteReason is added to an event when a pod of a DaemonSet is deleted for the
	// maintenance of its node.
	MaintenanceDeleteReason = "DeletedForMaintenance"
	// FailedMaintenanceDeleteReason is added to an event when such a deletion fails.
	FailedMaintenanceDeleteReason = "FailedMaintenanceDelete"
)

const (
	// maxTurns limits the number of pods that terminate at the same time. A turn only waits for the
	// kubelet, so none should have to wait for another: it exceeds the number of pods of DaemonSets
	// in the largest clusters. The rate limit of the client limits the calls.
	maxTurns = 1000000

	// maxNamedMaintenances and maxReasonLength, in bytes, limit the length of messages.
	maxNamedMaintenances = 3
	maxReasonLength      = 200
)

// Interceptor terminates a pod of a DaemonSet when it has an EvictionRequest and is within the
// drain targets of its node: only a maintenance removes such pods. Outside the targets it does not
// even report, because a request for such a pod should not exist, and a response would encourage
// it.
type Interceptor struct {
	dsc               *DaemonSetsController
	client            clientset.Interface
	maintenanceLister coordinationlisters.NodeMaintenanceLister
	interceptor       *evictionrequest.Interceptor
	waiters           podWaiters
	clock             clock.PassiveClock
	cachesSynced      []cache.InformerSynced
}

// NewInterceptor returns the interceptor for the pods of the DaemonSet controller, and makes the
// controller respect the drain targets of nodes. It must be called before the controller runs. The
// client needs the permissions of an interceptor, and the permission to delete pods.
func NewInterceptor(
	dsc *DaemonSetsController,
	maintenanceInformer coordinationinformers.NodeMaintenanceInformer,
	requestInformer coordinationinformers.EvictionRequestInformer,
	nodeInformer coreinformers.NodeInformer,
	podInformer coreinformers.PodInformer,
	classInformer schedulinginformers.PriorityClassInformer,
	client clientset.Interface,
) (*Interceptor, error) {
	metrics.RegisterMaintenance()
	i := &Interceptor{
		dsc:               dsc,
		client:            client,
		maintenanceLister: maintenanceInformer.Lister(),
		waiters:           podWaiters{awaited: map[types.UID]chan struct{}{}},
		clock:             clock.RealClock{},
		cachesSynced: []cache.InformerSynced{
			maintenanceInformer.Informer().HasSynced, nodeInformer.Informer().HasSynced, podInformer.Informer().HasSynced,
		},
	}
	var err error
	if i.interceptor, err = evictionrequest.NewInterceptor(evictionrequest.InterceptorConfig{
		Client:        client,
		Name:          coordinationv1alpha1.EvictionInterceptorDaemonSet,
		Accept:        i.accept,
		Handle:        i.handle,
		MaxConcurrent: maxTurns,
		Persistent:    true,
		Informer:      requestInformer,
	}); err != nil {
		return nil, err
	}
	if err := i.addEventHandlers(nodeInformer.Informer(), podInformer.Informer()); err != nil {
		return nil, fmt.Errorf("adding event handlers: %w", err)
	}
	dsc.podControl = interceptedPodControl{dsc.podControl, evictioninterceptor.NewCreator(i.clock)}
	dsc.priorityClassLister = classInformer.Lister()
	nodesSynced, classesSynced := dsc.nodeStoreSynced, classInformer.Informer().HasSynced
	// Without the priority classes, the controller would consider every priority unknown.
	dsc.nodeStoreSynced = func() bool { return nodesSynced() && classesSynced() }
	return i, nil
}

// Run runs the interceptor until the context is canceled.
func (i *Interceptor) Run(ctx context.Context) {
	if !cache.WaitForNamedCacheSyncWithContext(ctx, i.cachesSynced...) {
		return
	}
	if err := i.interceptor.Run(ctx); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "DaemonSet pods will not be deleted from nodes under maintenance")
	}
}

// addEventHandlers reconsiders requests on changes, other than of the request, that affect whether
// the pod is within the drain targets of its node.
func (i *Interceptor) addEventHandlers(nodes, pods cache.SharedIndexInformer) error {
	if _, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { i.reconsiderNode(obj.(*v1.Node)) },
		UpdateFunc: func(old, obj any) {
			if !sameDaemonSetTargets(old.(*v1.Node), obj.(*v1.Node)) {
				i.reconsiderNode(obj.(*v1.Node))
			}
		},
	}); err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			// The cache of pods may be behind that of the requests.
			if pod := obj.(*v1.Pod); evictionrequest.HasDaemonSetController(pod) && i.isDrained(pod) {
				i.reconsider(pod)
			}
		},
		UpdateFunc: func(old, obj any) { i.podChanged(old.(*v1.Pod), obj.(*v1.Pod)) },
		DeleteFunc: i.podDeleted,
	}); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	return nil
}

// reconsiderNode reconsiders the requests of the pods of a node that its targets match.
func (i *Interceptor) reconsiderNode(node *v1.Node) {
	targets := daemonSetTargets(node)
	if targets.IsEmpty() {
		return
	}
	pods, err := i.dsc.podIndexer.ByIndex(controller.PodNodeNameKeyIndex, node.Name)
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("looking up the pods of node %s: %w", node.Name, err))
		return
	}
	for _, obj := range pods {
		if pod := obj.(*v1.Pod); targets.Take(pod) {
			i.reconsider(pod)
		}
	}
}

func (i *Interceptor) reconsider(pod *v1.Pod) {
	i.interceptor.Reconsider(pod.Namespace, string(pod.UID))
}

func (i *Interceptor) podChanged(old, pod *v1.Pod) {
	if old.UID != pod.UID {
		i.waiters.notify(old.UID)
	}
	if !maintenance.IsLeft(pod) {
		i.waiters.notify(pod.UID)
	}
	if changesInterception(old, pod) {
		i.reconsider(pod)
	}
}

func (i *Interceptor) podDeleted(obj any) {
	if pod, err := tombstone.Object[*v1.Pod](obj); err == nil {
		i.waiters.notify(pod.UID)
	}
}

// accept reports whether to act on a request. It also accepts pods that belong to no DaemonSet, for
// example orphaned ones: handle declines these. A request that nobody wants any more is about to be
// canceled.
func (i *Interceptor) accept(request *coordinationv1alpha1.EvictionRequest) bool {
	pod := i.livePod(request)
	return pod != nil && evictionrequest.IsWanted(request) && (!evictionrequest.HasDaemonSetController(pod) || i.isDrained(pod))
}

// livePod returns the target of the request, or nil if it is gone or has finished.
func (i *Interceptor) livePod(request *coordinationv1alpha1.EvictionRequest) *v1.Pod {
	target := request.Spec.Target.Pod
	if target == nil {
		return nil
	}
	pod, err := i.dsc.podLister.Pods(request.Namespace).Get(target.Name)
	if err != nil || string(pod.UID) != target.UID || !maintenance.IsLeft(pod) {
		return nil
	}
	return pod
}

// isDrained reports whether the pod of a DaemonSet is within the drain targets of its node.
func (i *Interceptor) isDrained(pod *v1.Pod) bool {
	if pod.Spec.NodeName == "" {
		return false
	}
	node, err := i.dsc.nodeLister.Get(pod.Spec.NodeName)
	return err == nil && daemonSetTargets(node).Take(pod)
}

// handle deletes the pod and waits until it has terminated. The API server has confirmed before each call
// that the interceptor is active: a process that was suspended must not delete a pod that stays.
func (i *Interceptor) handle(ctx context.Context, turn *evictionrequest.Turn) error {
	target := turn.Request().Spec.Target.Pod
	// Before the pod is read, so that its termination cannot be missed in between.
	ended, forget := i.waiters.await(types.UID(target.UID))
	defer forget()
	pod := i.livePod(turn.Request())
	if pod == nil {
		return nil
	}
	if !evictionrequest.HasDaemonSetController(pod) {
		return evictionrequest.Decline("Skipped: no DaemonSet controls the pod.")
	}
	cause, daemonSet := i.cause(pod.Spec.NodeName), metav1.GetControllerOf(pod).Name
	turn.SetMessage(fmt.Sprintf("Terminating the pod of DaemonSet %s for %s.", daemonSet, cause))
	grace := podeviction.GracePeriodOf(turn.Request(), pod)
	turn.SetExpectedFinishTime(i.expectedFinishTime(pod, grace))
	if pod.DeletionTimestamp == nil {
		gone, err := i.delete(ctx, pod, grace, cause)
		if err != nil {
			return err
		}
		if gone {
			return nil
		}
	}
	select {
	case <-ended:
		turn.SetMessage(fmt.Sprintf("Terminated the pod of DaemonSet %s for %s.", daemonSet, cause))
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// expectedFinishTime returns the end of the grace period of a pod that is deleted now, with this grace period in seconds
// or its own, or was before.
func (i *Interceptor) expectedFinishTime(pod *v1.Pod, grace *int64) time.Time {
	if pod.DeletionTimestamp != nil {
		return pod.DeletionTimestamp.Time
	}
	seconds := ptr.Deref(grace, ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, int64(v1.DefaultTerminationGracePeriodSeconds)))
	return i.clock.Now().Add(time.Duration(seconds) * time.Second)
}

// delete deletes the pod with this grace period in seconds, or its own, and reports whether it was already gone.
func (i *Interceptor) delete(ctx context.Context, pod *v1.Pod, grace *int64, cause string) (gone bool, err error) {
	if !i.isDrained(pod) {
		// An accepted turn cannot be rejected any more. An error keeps it open without heartbeats.
		// Usually the request is canceled a moment later.
		return false, fmt.Errorf("the drain targets of node %s no longer include the pod", pod.Spec.NodeName)
	}
	if len(i.maintenancesOf(pod.Spec.NodeName)) == 0 {
		// It has ended while no controller led: the targets go, and the request is withdrawn, in a moment.
		return false, fmt.Errorf("no NodeMaintenance drains node %s any more", pod.Spec.NodeName)
	}
	// Before the deletion, because the next sync may follow immediately.
	if ds := i.dsc.resolveControllerRef(pod.Namespace, metav1.GetControllerOf(pod)); ds != nil {
		i.dsc.admitted.remember(ds, pod)
	}
	err = i.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(pod.UID)), GracePeriodSeconds: grace,
	})
	switch {
	case err == nil:
		klog.FromContext(ctx).Info("Deleted a pod of a DaemonSet for a node maintenance", "node", klog.KRef("", pod.Spec.NodeName))
		metrics.CountMaintenanceDelete(metrics.Deleted)
		i.recordEvent(pod, v1.EventTypeNormal, MaintenanceDeleteReason, fmt.Sprintf("Deleted pod %s from node %s for %s; the DaemonSet creates no pod there until the maintenance ends", pod.Name, pod.Spec.NodeName, cause))
		return false, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		// A conflict means that another pod has the name.
		return true, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	}
	metrics.CountMaintenanceDelete(metrics.Failed)
	i.recordEvent(pod, v1.EventTypeWarning, FailedMaintenanceDeleteReason, fmt.Sprintf("Failed to delete pod %s from node %s for %s: %v", pod.Name, pod.Spec.NodeName, cause, err))
	return false, fmt.Errorf("deleting pod %s: %w", klog.KObj(pod), err)
}

// recordEvent records an event for the DaemonSet of the pod, where users look when a pod is
// missing.
func (i *Interceptor) recordEvent(pod *v1.Pod, eventType, reason, message string) {
	if ds := i.dsc.resolveControllerRef(pod.Namespace, metav1.GetControllerOf(pod)); ds != nil {
		i.dsc.eventRecorder.Event(ds, eventType, reason, message)
	}
}

// cause returns the names and reasons of the maintenances that drain the node.
func (i *Interceptor) cause(nodeName string) string {
	var names []string
	for _, m := range i.maintenancesOf(nodeName) {
		name := m.Name
		if reason := m.Spec.Reason; reason != "" {
			name = fmt.Sprintf("%s (%s)", name, plaintext.Truncate(reason, maxReasonLength))
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "the maintenance of its node" // It has ended, or the cache is behind.
	}
	slices.Sort(names)
	if more := len(names) - maxNamedMaintenances; more > 0 {
		names = append(names[:maxNamedMaintenances], fmt.Sprintf("and %d more", more))
	}
	return "node maintenance " + strings.Join(names, ", ")
}

// maintenancesOf returns the maintenances that drain a node, as far as the cache knows. Some may wait until they may
// begin with it.
func (i *Interceptor) maintenancesOf(nodeName string) []*coordinationv1alpha1.NodeMaintenance {
	node, err := i.dsc.nodeLister.Get(nodeName)
	if err != nil {
		return nil
	}
	all, err := i.maintenanceLister.List(labels.Everything())
	if err != nil {
		return nil // Listing from a cache does not fail.
	}
	return slices.DeleteFunc(all, func(m *coordinationv1alpha1.NodeMaintenance) bool {
		return m.DeletionTimestamp != nil || m.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain ||
			maintenance.IsGivenBack(node, m.UID) || !maintenance.SelectsNode(m.Spec.NodeSelector, node)
	})
}

// podWaiters notifies waiters of the termination of a pod.
type podWaiters struct {
	lock    sync.Mutex
	awaited map[types.UID]chan struct{}
}

// await returns a channel that is closed when the pod has terminated. A pod can have only one
// waiter at a time, until forget is called.
func (e *podWaiters) await(uid types.UID) (ended <-chan struct{}, forget func()) {
	e.lock.Lock()
	defer e.lock.Unlock()
	channel := make(chan struct{})
	e.awaited[uid] = channel
	return channel, func() {
		e.lock.Lock()
		defer e.lock.Unlock()
		delete(e.awaited, uid)
	}
}

func (e *podWaiters) notify(uid types.UID) {
	e.lock.Lock()
	defer e.lock.Unlock()
	if channel, ok := e.awaited[uid]; ok {
		close(channel)
		delete(e.awaited, uid)
	}
}
