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

package evictionrequest

import (
	"fmt"
	"maps"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/util/tombstone"
)

func (c *Controller) addEventHandlers(logger klog.Logger, requests, pods, nodes, budgets cache.SharedIndexInformer) error {
	if _, err := requests.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			if !isInInitialList {
				c.writer.created(obj.(*coordinationv1alpha1.EvictionRequest))
			}
			c.enqueueRequest(obj)
		},
		UpdateFunc: func(_, obj any) { c.enqueueRequest(obj) },
		DeleteFunc: func(obj any) { c.forgetRequest(logger, obj) },
	}); err != nil {
		return fmt.Errorf("watching eviction requests: %w", err)
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.enqueuePod(obj.(*v1.Pod)) },
		UpdateFunc: func(old, obj any) { c.podUpdated(old.(*v1.Pod), obj.(*v1.Pod)) },
		DeleteFunc: func(obj any) { c.podDeleted(logger, obj) },
	}); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	if _, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, obj any) { c.nodeUpdated(old.(*v1.Node), obj.(*v1.Node)) },
	}); err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	if _, err := budgets.AddEventHandler(cache.ResourceEventHandlerFuncs{
		// A new budget allows no more evictions, but the informer may have missed that a budget of
		// the same name was deleted.
		AddFunc: func(obj any) { c.imperative.enqueueRelated(keyOf(obj.(*policyv1.PodDisruptionBudget))) },
		UpdateFunc: func(old, obj any) {
			c.budgetUpdated(old.(*policyv1.PodDisruptionBudget), obj.(*policyv1.PodDisruptionBudget))
		},
		DeleteFunc: func(obj any) { c.budgetDeleted(logger, obj) },
	}); err != nil {
		return fmt.Errorf("watching pod disruption budgets: %w", err)
	}
	return nil
}

func keyOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// enqueueRequest adds a request to the queue of the controller, and to that of the built-in
// interceptor if that is active.
func (c *Controller) enqueueRequest(obj any) {
	request := obj.(*coordinationv1alpha1.EvictionRequest)
	c.queue.Add(keyOf(request))
	if isImperativeActive(request) {
		c.imperative.queue.Add(itemOf(keyOf(request)))
	}
}

func (c *Controller) forgetRequest(logger klog.Logger, obj any) {
	request, err := tombstone.Object[*coordinationv1alpha1.EvictionRequest](obj)
	if err != nil {
		logger.Error(err, "Ignoring the deletion of an eviction request")
		return
	}
	// A sync may be running that stores state about the request. The sync after it removes that.
	c.queue.Add(keyOf(request))
}

// enqueuePod enqueues the request for a pod, if there is one. If the request is created later, its
// own event enqueues it.
func (c *Controller) enqueuePod(pod *v1.Pod) {
	if request, err := c.requestLister.EvictionRequests(pod.Namespace).Get(string(pod.UID)); err == nil {
		c.enqueueRequest(request)
	}
}

func (c *Controller) podUpdated(old, pod *v1.Pod) {
	if old.UID != pod.UID {
		// The informer missed the deletion of the old pod and the creation of the new one.
		c.podGone(old)
		c.enqueuePod(pod)
	} else if mattersToRequest(old, pod) {
		c.imperative.noteChange(pod)
		c.enqueuePod(pod)
	}
}

// mattersToRequest reports whether the change of a pod can affect its request.
func mattersToRequest(old, pod *v1.Pod) bool {
	return old.Status.Phase != pod.Status.Phase ||
		(old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) ||
		podutil.IsPodReady(old) != podutil.IsPodReady(pod) ||
		!maps.Equal(old.Labels, pod.Labels) // Other budgets may select it now.
}

func (c *Controller) podDeleted(logger klog.Logger, obj any) {
	pod, err := tombstone.Object[*v1.Pod](obj)
	if err != nil {
		logger.Error(err, "Ignoring the deletion of a pod")
		return
	}
	c.podGone(pod)
}

// podGone handles that the cache has lost a pod. Its request may not have been synced while the pod was there: then it
// is recorded here that it was, and the sync does not ask the API server.
func (c *Controller) podGone(pod *v1.Pod) {
	c.imperative.podGone(pod)
	request, err := c.requestLister.EvictionRequests(pod.Namespace).Get(string(pod.UID))
	if err == nil && !evictionrequesttools.IsFinished(request.Status.Conditions) {
		c.seen.add(pod.UID)
	}
	c.enqueuePod(pod)
}

// nodeUpdated enqueues the requests of a drain that may have been given up, because its node was
// uncordoned. An uncordon is rare enough to go through all requests.
func (c *Controller) nodeUpdated(old, node *v1.Node) {
	if !old.Spec.Unschedulable || node.Spec.Unschedulable {
		return
	}
	requests, err := c.requestLister.List(labels.Everything())
	if err != nil {
		return // A lister that reads from a cache returns no errors.
	}
	for _, request := range requests {
		if evictionrequesttools.WasEvictionCallCordoned(request, node) {
			c.queue.Add(keyOf(request))
		}
	}
}

// budgetUpdated starts the next eviction if the budget may allow one now, and re-evaluates which
// pods the budget selects if its spec has changed. Other changes have no effect.
func (c *Controller) budgetUpdated(old, budget *policyv1.PodDisruptionBudget) {
	key := keyOf(budget)
	if old.UID != budget.UID || old.Generation != budget.Generation {
		c.imperative.enqueueRelated(key)
	}
	if old.Generation != budget.Generation || !apiequality.Semantic.DeepEqual(old.Status, budget.Status) {
		c.imperative.enqueueBudget(key)
	}
}

func (c *Controller) budgetDeleted(logger klog.Logger, obj any) {
	budget, err := tombstone.Object[*policyv1.PodDisruptionBudget](obj)
	if err != nil {
		logger.Error(err, "Ignoring the deletion of a pod disruption budget")
		return
	}
	c.imperative.enqueueRelated(keyOf(budget))
}
