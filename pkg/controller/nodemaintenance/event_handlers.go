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
	"fmt"
	"maps"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/kubernetes/pkg/controller/util/tombstone"
)

func (c *Controller) addEventHandlers(logger klog.Logger, maintenances, evictionRequests, nodes, pods cache.SharedIndexInformer) error {
	if _, err := maintenances.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueueMaintenance,
		UpdateFunc: func(_, obj any) { c.enqueueMaintenance(obj) },
		DeleteFunc: func(obj any) { deleted(logger, obj, c.enqueueMaintenance) },
	}); err != nil {
		return fmt.Errorf("watching node maintenances: %w", err)
	}
	if _, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.enqueueNode(obj); c.admissions.changed() },
		UpdateFunc: func(old, obj any) {
			if nodeNeedsSync(old.(*v1.Node), obj.(*v1.Node)) {
				c.enqueueNode(obj)
				c.admissions.changed()
			}
		},
		DeleteFunc: func(obj any) {
			deleted(logger, obj, func(obj any) { c.enqueueNode(obj); c.admissions.changed() })
		},
	}); err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.enqueueNodeOfPod,
		UpdateFunc: func(old, obj any) {
			if podNeedsSync(old.(*v1.Pod), obj.(*v1.Pod)) {
				c.enqueueNodeOfPod(obj)
			}
		},
		DeleteFunc: func(obj any) { deleted(logger, obj, c.enqueueNodeOfPod) },
	}); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	if _, err := evictionRequests.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.enqueueNodeOfRequest,
		UpdateFunc: func(old, obj any) {
			c.enqueueNodeOfRequest(obj)
			// The old one has this controller as a requester, if it has just withdrawn.
			c.enqueueNodeOfRequest(old)
		},
		DeleteFunc: func(obj any) { deleted(logger, obj, c.enqueueNodeOfRequest) },
	}); err != nil {
		return fmt.Errorf("watching eviction requests: %w", err)
	}
	return nil
}

// deleted passes on the object of a delete event, also if the informer has missed the deletion and
// only has a tombstone.
func deleted(logger klog.Logger, obj any, enqueue func(any)) {
	object, err := tombstone.Object[metav1.Object](obj)
	if err != nil {
		logger.Error(err, "Ignoring a delete event")
		return
	}
	enqueue(object)
}

func (c *Controller) enqueueMaintenance(obj any) {
	c.maintenanceQueue.Add(obj.(*coordinationv1alpha1.NodeMaintenance).Name)
}

func (c *Controller) enqueueNode(obj any) { c.nodeQueue.Add(obj.(*v1.Node).Name) }

// nodeNeedsSync reports whether a change of a node may change its maintenance. Heartbeats of the
// kubelet do not.
func nodeNeedsSync(old, node *v1.Node) bool {
	return write.NeedsDecision(old, node) || write.ChangesAdmission(old, node) || !status.IsStored(old, node.Status.MaintenanceStatus, status.OwnConditions(node.Status.Conditions))
}

// enqueueNodeOfPod enqueues the node of a pod if it is being drained. A drain that starts later
// reads all pods.
func (c *Controller) enqueueNodeOfPod(obj any) {
	if node := obj.(*v1.Pod).Spec.NodeName; node != "" && c.progress.IsDraining(node) {
		c.nodeQueue.Add(node)
	}
}

// podNeedsSync reports whether a change of a pod may change what a drain has to do.
func podNeedsSync(old, pod *v1.Pod) bool {
	return old.UID != pod.UID ||
		old.Spec.NodeName != pod.Spec.NodeName ||
		maintenance.IsLeft(old) != maintenance.IsLeft(pod) ||
		maintenance.PodTypeOf(old) != maintenance.PodTypeOf(pod) ||
		!apiequality.Semantic.DeepEqual(old.DeletionTimestamp, pod.DeletionTimestamp) ||
		// A node is given back when these are ready.
		maintenance.PodTypeOf(pod) == v1.PodTypeDaemonSet && podutil.IsPodReady(old) != podutil.IsPodReady(pod) ||
		// An interceptor that registers can stop a pod that stays.
		maintenance.PodTypeOf(pod) == v1.PodTypeDaemonSet && !maps.Equal(old.Annotations, pod.Annotations) && whyForeign(old) != whyForeign(pod) ||
		// A blocker names them.
		pod.DeletionTimestamp != nil && !slices.Equal(old.Finalizers, pod.Finalizers) ||
		!maps.Equal(old.Labels, pod.Labels)
}

// enqueueNodeOfStatus is enqueueNodeOfRequest for a request whose status cannot be written, or can be again.
func (c *Controller) enqueueNodeOfStatus(request types.NamespacedName) {
	if found, err := c.requestLister.EvictionRequests(request.Namespace).Get(request.Name); err == nil {
		c.enqueueNodeOfRequest(found)
	}
}

// enqueueNodeOfRequest enqueues the node of the requested pod if it is being drained, or if this
// controller is one of the requesters.
func (c *Controller) enqueueNodeOfRequest(obj any) {
	request := obj.(*coordinationv1alpha1.EvictionRequest)
	if request.Spec.Target.Pod == nil {
		return
	}
	pod, err := c.podLister.Pods(request.Namespace).Get(request.Spec.Target.Pod.Name)
	if err != nil || string(pod.UID) != request.Name || pod.Spec.NodeName == "" {
		return
	}
	if c.progress.IsDraining(pod.Spec.NodeName) || requests.IsRequested(request) && !evictionrequest.IsFinished(request.Status.Conditions) {
		c.nodeQueue.Add(pod.Spec.NodeName)
	}
}
