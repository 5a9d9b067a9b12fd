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

package maintenance

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/component-helpers/scheduling/podgroup"
)

// maxNodesOneByOne is for how many nodes pods are read node by node, by requests that the server
// answers from an index. A plan of more nodes reads all pods of the cluster page by page, and keeps
// those of its nodes.
const maxNodesOneByOne = 50

// podSnapshot is a snapshot with the pods of some nodes and what delays their eviction. A plan
// needs it, because no controller has computed anything yet.
type podSnapshot struct {
	snapshot

	// pods by the name of their node.
	pods map[string][]*corev1.Pod
	// requests by the UID of their pod, which is their name.
	requests map[string]*coordinationv1alpha1.EvictionRequest
	budgets  []*policyv1.PodDisruptionBudget
	// budgetIndex finds the budgets of a pod; nil if they cannot be read.
	budgetIndex *poddisruptionbudget.Index
	// independent are the PodGroups whose pods are evicted one by one, as far as they and their ancestors say it.
	independent sets.Set[types.NamespacedName]
	// deployments by namespace.
	deployments map[string][]*appsv1.Deployment
	// obstacles are what may keep replacements from starting; nil if unknown.
	obstacles *obstacles
	// workloads are the owners of the pods.
	workloads *workloads
	// responders is whether responders act; empty if no pod has some.
	responders responderSupport

	// policies say which pods are not evicted, and drainedWhen what else a drained node needs.
	policies    []nodePolicies
	drainedWhen *coordinationv1alpha1.NodeMaintenanceDrainedWhen
	// policiesDropped is whether the server would not store them.
	policiesDropped bool
	// kept are the pods that are not evicted, with what happens to them instead.
	kept map[*corev1.Pod]*keptPod
	// namespaces are the labels of namespaces, if a policy selects them.
	namespaces map[string]labels.Set
	// nodeBudgets limit which nodes are drained at the same time, in the order of their names.
	nodeBudgets      []*coordinationv1alpha1.NodeMaintenanceBudget
	budgetsNotServed bool
	// used are the requests of the pods of every node; nil unless the plan is of a rollout.
	used map[string]amounts
	// rollout says which nodes are drained at the same time; nil if all are.
	rollout *rolloutPlan
}

// setPods stores the pods that are bound to a node, each once.
func (s *podSnapshot) setPods(pods []*corev1.Pod) {
	s.pods = map[string][]*corev1.Pod{}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	pods = slices.CompactFunc(pods, func(a, b *corev1.Pod) bool { return a.Namespace == b.Namespace && a.Name == b.Name })
	for _, pod := range pods {
		if node := pod.Spec.NodeName; node != "" {
			s.pods[node] = append(s.pods[node], pod)
		}
	}
}

func (s *podSnapshot) setRequests(requests []*coordinationv1alpha1.EvictionRequest) {
	s.requests = map[string]*coordinationv1alpha1.EvictionRequest{}
	for _, request := range requests {
		s.requests[request.Name] = request
	}
}

func (s *podSnapshot) setBudgets(budgets []*policyv1.PodDisruptionBudget) {
	s.budgets, s.budgetIndex = budgets, poddisruptionbudget.NewIndex(budgets)
}

// budgetsOf returns the budgets that select the pod, in the order of their names.
func (s *podSnapshot) budgetsOf(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	if s.budgetIndex == nil {
		return nil
	}
	return s.budgetIndex.For(pod)
}

// podsAmong lists the pods of nodes that a field selector selects, and calls seen for every pod that
// it selects. The selector may select all pods of a large cluster, of which only some pages are in
// memory at a time.
func podsAmong(ctx context.Context, client kubernetes.Interface, nodes sets.Set[string], selector string, seen func(*corev1.Pod)) ([]*corev1.Pod, error) {
	var pods []*corev1.Pod
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{FieldSelector: selector}, func(object runtime.Object) error {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return nil
		}
		seen(pod)
		if nodes.Has(pod.Spec.NodeName) {
			// A copy, because a pointer into a page would keep all of it.
			kept := *pod
			kept.ManagedFields = nil
			pods = append(pods, &kept)
		}
		return nil
	})
	return pods, err
}

// readPods reads the pods of nodes by field selectors, and all requests and budgets.
func (s *podSnapshot) readPods(ctx context.Context, client kubernetes.Interface, nodes sets.Set[string], selectors []string) error {
	var pods []*corev1.Pod
	seen := func(*corev1.Pod) {}
	if s.used != nil {
		seen = s.addRequests
	}
	for _, selector := range selectors {
		found, err := podsAmong(ctx, client, nodes, selector, seen)
		if s.skip("pods", err) {
			break
		}
		if err != nil {
			return fmt.Errorf("listing pods: %w", err)
		}
		pods = append(pods, found...)
	}
	s.readGroups(ctx, client, pods)
	s.setPods(pods)
	requests, err := client.CoordinationV1alpha1().EvictionRequests(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	switch {
	case s.skip("evictionrequests", err):
	case err != nil:
		return fmt.Errorf("listing evictionrequests: %w", err)
	default:
		s.setRequests(pointers(requests.Items))
	}
	budgets, err := client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	switch {
	case s.skip("poddisruptionbudgets", err):
	case err != nil:
		return fmt.Errorf("listing poddisruptionbudgets: %w", err)
	default:
		s.setBudgets(pointers(budgets.Items))
	}
	return nil
}

// readGroups reads the PodGroups if a pod is in one. If they cannot be read, plans say the same as of groups whose pods
// are not evicted one by one, which is what happens where the server has no such group.
func (s *podSnapshot) readGroups(ctx context.Context, client kubernetes.Interface, pods []*corev1.Pod) {
	if !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.SchedulingGroup != nil }) {
		return
	}
	list, err := client.SchedulingV1beta1().PodGroups(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	parents := readParents(ctx, client, list.Items)
	s.independent = sets.New[types.NamespacedName]()
	for i := range list.Items {
		group := &list.Items[i]
		mode, err := podgroup.ModeOf(group, func(name string) (*schedulingv1alpha3.CompositePodGroup, error) {
			return parents[types.NamespacedName{Namespace: group.Namespace, Name: name}], nil
		})
		if err == nil && mode == podgroup.Single {
			s.independent.Insert(types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
		}
	}
}

// readParents reads the CompositePodGroups if a group has a parent; none if they cannot be read.
func readParents(ctx context.Context, client kubernetes.Interface, groups []schedulingv1beta1.PodGroup) map[types.NamespacedName]*schedulingv1alpha3.CompositePodGroup {
	if !slices.ContainsFunc(groups, func(group schedulingv1beta1.PodGroup) bool { return group.Spec.ParentCompositePodGroupName != nil }) {
		return nil
	}
	list, err := client.SchedulingV1alpha3().CompositePodGroups(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	parents := map[types.NamespacedName]*schedulingv1alpha3.CompositePodGroup{}
	for i := range list.Items {
		parents[types.NamespacedName{Namespace: list.Items[i].Namespace, Name: list.Items[i].Name}] = &list.Items[i]
	}
	return parents
}

// isGrouped reports whether the pod is evicted with its group only.
func (s *podSnapshot) isGrouped(pod *corev1.Pod) bool {
	group := pod.Spec.SchedulingGroup
	return group != nil && (group.PodGroupName == nil || !s.independent.Has(types.NamespacedName{Namespace: pod.Namespace, Name: *group.PodGroupName}))
}

// podSelectors returns the field selectors under which a plan reads the pods of the nodes.
func podSelectors(nodes []string) []string {
	if len(nodes) > maxNodesOneByOne {
		return []string{""}
	}
	var selectors []string
	for _, node := range nodes {
		selectors = append(selectors, podsOfNode(node))
	}
	return selectors
}

func podsOfNode(node string) string {
	return fields.OneTermEqualSelector("spec.nodeName", node).String()
}
