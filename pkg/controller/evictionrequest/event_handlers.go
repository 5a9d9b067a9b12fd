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
	"slices"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// blockedByBudgetIndex finds, by namespace, the requests that wait for a
// PodDisruptionBudget, so that a change of one costs nothing where nobody waits.
const blockedByBudgetIndex = "blockedByBudget"

func (c *Controller) addEventHandlers(logger klog.Logger, requests, pods, budgets cache.SharedIndexInformer) error {
	if err := requests.AddIndexers(cache.Indexers{blockedByBudgetIndex: indexBlockedByBudget}); err != nil {
		return fmt.Errorf("indexing eviction requests: %w", err)
	}
	if _, err := requests.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueueRequest,
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
	indexer := requests.GetIndexer()
	if _, err := budgets.AddEventHandler(cache.ResourceEventHandlerFuncs{
		// A new budget cannot help a blocked pod: it may only add an obstacle.
		UpdateFunc: func(old, obj any) {
			c.budgetUpdated(logger, indexer, old.(*policyv1.PodDisruptionBudget), obj.(*policyv1.PodDisruptionBudget))
		},
		DeleteFunc: func(obj any) { c.budgetDeleted(logger, indexer, obj) },
	}); err != nil {
		return fmt.Errorf("watching pod disruption budgets: %w", err)
	}
	return nil
}

func indexBlockedByBudget(obj any) ([]string, error) {
	request, ok := obj.(*coordinationv1alpha1.EvictionRequest)
	if !ok || !isBlockedBy(&request.Status, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget) {
		return nil, nil
	}
	return []string{request.Namespace}, nil
}

// enqueueRequest has a request looked at by whoever has something to do for it.
func (c *Controller) enqueueRequest(obj any) {
	request := obj.(*coordinationv1alpha1.EvictionRequest)
	key := types.NamespacedName{Namespace: request.Namespace, Name: request.Name}
	c.queue.Add(key)
	if !isFinished(&request.Status) && activeInterceptor(&request.Status) == coordinationv1alpha1.EvictionInterceptorImperative {
		c.imperative.queue.Add(key)
	}
}

func (c *Controller) forgetRequest(logger klog.Logger, obj any) {
	request, err := deletedObject[*coordinationv1alpha1.EvictionRequest](obj)
	if err != nil {
		logger.Error(err, "Ignoring the deletion of an eviction request")
		return
	}
	// A sync may be under way that remembers something; the one after it forgets all.
	c.queue.Add(types.NamespacedName{Namespace: request.Namespace, Name: request.Name})
}

// enqueuePod has the request for a pod looked at, if there is one. A request that
// comes later brings an event of its own.
func (c *Controller) enqueuePod(pod *v1.Pod) {
	if request, err := c.requestLister.EvictionRequests(pod.Namespace).Get(string(pod.UID)); err == nil {
		c.enqueueRequest(request)
	}
}

func (c *Controller) podUpdated(old, pod *v1.Pod) {
	if old.UID != pod.UID {
		// The informer missed the end of one pod and the start of another.
		c.enqueuePod(old)
	}
	if old.UID != pod.UID || podNeedsLook(old, pod) {
		c.enqueuePod(pod)
	}
}

// podNeedsLook tells whether a change of a pod can change what happens to its request.
func podNeedsLook(old, pod *v1.Pod) bool {
	return old.Status.Phase != pod.Status.Phase ||
		(old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) ||
		podutil.IsPodReady(old) != podutil.IsPodReady(pod) ||
		!maps.Equal(old.Labels, pod.Labels) // Other budgets may select it now.
}

func (c *Controller) podDeleted(logger klog.Logger, obj any) {
	pod, err := deletedObject[*v1.Pod](obj)
	if err != nil {
		logger.Error(err, "Ignoring the deletion of a pod")
		return
	}
	c.enqueuePod(pod)
}

func (c *Controller) budgetUpdated(logger klog.Logger, indexer cache.Indexer, old, budget *policyv1.PodDisruptionBudget) {
	sameStatus := apiequality.Semantic.DeepEqual(old.Status, budget.Status)
	if sameStatus && old.Generation == budget.Generation {
		return
	}
	if old.Generation != budget.Generation {
		// Its selector may have let some pods go.
		c.enqueueBlocked(logger, indexer, old, noLimit)
	}
	// With nothing to give there is nothing to try, except for unhealthy pods: those
	// decide for themselves when they are looked at.
	limit := int(budget.Status.DisruptionsAllowed)
	if limit == 0 && old.Status.CurrentHealthy != budget.Status.CurrentHealthy {
		limit = noLimit
	}
	c.enqueueBlocked(logger, indexer, budget, limit)
}

func (c *Controller) budgetDeleted(logger klog.Logger, indexer cache.Indexer, obj any) {
	budget, err := deletedObject[*policyv1.PodDisruptionBudget](obj)
	if err != nil {
		logger.Error(err, "Ignoring the deletion of a pod disruption budget")
		return
	}
	c.enqueueBlocked(logger, indexer, budget, noLimit)
}

// noLimit wakes every request that a budget blocks.
const noLimit = -1

// enqueueBlocked wakes requests that the budget may have blocked, the oldest first.
// Only as many as the budget allows are woken: more would be refused again.
func (c *Controller) enqueueBlocked(logger klog.Logger, indexer cache.Indexer, budget *policyv1.PodDisruptionBudget, limit int) {
	if limit == 0 {
		return
	}
	objs, err := indexer.ByIndex(blockedByBudgetIndex, budget.Namespace)
	if err != nil {
		logger.Error(err, "Cannot find the eviction requests that wait for a pod disruption budget", "podDisruptionBudget", klog.KObj(budget))
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return // An invalid selector selects no pod.
	}
	blocked := c.selectedRequests(objs, selector)
	if limit > 0 && len(blocked) > limit {
		blocked = blocked[:limit]
	}
	for _, request := range blocked {
		c.imperative.queue.Add(types.NamespacedName{Namespace: request.Namespace, Name: request.Name})
	}
}

// selectedRequests returns the requests whose pods the selector matches, oldest first.
func (c *Controller) selectedRequests(objs []any, selector labels.Selector) []*coordinationv1alpha1.EvictionRequest {
	var requests []*coordinationv1alpha1.EvictionRequest
	for _, obj := range objs {
		request := obj.(*coordinationv1alpha1.EvictionRequest)
		pod, err := c.podLister.Pods(request.Namespace).Get(targetName(request))
		if err == nil && string(pod.UID) == request.Name && selector.Matches(labels.Set(pod.Labels)) {
			requests = append(requests, request)
		}
	}
	slices.SortFunc(requests, func(a, b *coordinationv1alpha1.EvictionRequest) int {
		if byAge := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); byAge != 0 {
			return byAge
		}
		return strings.Compare(a.Name, b.Name)
	})
	return requests
}

// deletedObject returns the object of a delete event, also when the informer only
// noticed later that it is gone.
func deletedObject[T any](obj any) (T, error) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	object, ok := obj.(T)
	if !ok {
		return object, fmt.Errorf("unexpected object of type %T in a delete event", obj)
	}
	return object, nil
}
