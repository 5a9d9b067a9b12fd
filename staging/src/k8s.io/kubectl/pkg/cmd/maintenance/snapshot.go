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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// maxNodesOneByOne is for how many nodes a plan reads the pods node by node. Beyond, it
// goes through all pods of the cluster page by page, and keeps those of its nodes.
const maxNodesOneByOne = 50

// snapshot is what the server said, for views to be made of. What the user may not read
// is empty, and named in unreadable.
type snapshot struct {
	maintenances []*coordinationv1alpha1.NodeMaintenance
	// nodes in the order of their names.
	nodes []*corev1.Node
	// pods by the name of their node.
	pods map[string][]*corev1.Pod
	// nodesRead are the nodes whose pods were read; nil if all were.
	nodesRead sets.Set[string]
	// requests by the UID of their pod, which is their name.
	requests map[string]*coordinationv1alpha1.EvictionRequest
	// budgets by namespace.
	budgets map[string][]*policyv1.PodDisruptionBudget
	// deployments by namespace. Only a plan reads them.
	deployments map[string][]*appsv1.Deployment
	// workloads are the owners of the pods. Only a plan reads them.
	workloads *workloads
	// unreadable are the kinds that the user has no right to list.
	unreadable []string
}

// setMaintenances takes them over in the order of their names.
func (s *snapshot) setMaintenances(maintenances []*coordinationv1alpha1.NodeMaintenance) {
	s.maintenances = maintenances
	slices.SortFunc(s.maintenances, func(a, b *coordinationv1alpha1.NodeMaintenance) int { return cmp.Compare(a.Name, b.Name) })
}

func (s *snapshot) setNodes(nodes []*corev1.Node) {
	s.nodes = nodes
	slices.SortFunc(s.nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
}

// setPods takes over those that are bound to a node, each once.
func (s *snapshot) setPods(pods []*corev1.Pod) {
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

func (s *snapshot) setRequests(requests []*coordinationv1alpha1.EvictionRequest) {
	s.requests = map[string]*coordinationv1alpha1.EvictionRequest{}
	for _, request := range requests {
		s.requests[request.Name] = request
	}
}

func (s *snapshot) setBudgets(budgets []*policyv1.PodDisruptionBudget) {
	s.budgets = map[string][]*policyv1.PodDisruptionBudget{}
	for _, budget := range budgets {
		s.budgets[budget.Namespace] = append(s.budgets[budget.Namespace], budget)
	}
}

// budgetsOf returns the budgets that select the pod, in the order of their names.
func (s *snapshot) budgetsOf(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var selecting []*policyv1.PodDisruptionBudget
	for _, budget := range s.budgets[pod.Namespace] {
		// An invalid selector was let in by an old server; it selects nothing.
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			selecting = append(selecting, budget)
		}
	}
	slices.SortFunc(selecting, func(a, b *policyv1.PodDisruptionBudget) int { return cmp.Compare(a.Name, b.Name) })
	return selecting
}

// selectedNodes returns the nodes that the selector matches.
func (s *snapshot) selectedNodes(nodeSelector *corev1.NodeSelector) []*corev1.Node {
	if nodeSelector == nil {
		return nil
	}
	// The error concerns single terms, which then match nothing, here as in the server.
	selector := nodeaffinity.NewLazyErrorNodeSelector(nodeSelector)
	var selected []*corev1.Node
	for _, node := range s.nodes {
		if matches, err := selector.Match(node); err == nil && matches {
			selected = append(selected, node)
		}
	}
	return selected
}

// readSnapshot reads the nodes of the maintenances and all that may hold up their pods.
func readSnapshot(ctx context.Context, client kubernetes.Interface, maintenances []*coordinationv1alpha1.NodeMaintenance) (*snapshot, error) {
	s := &snapshot{}
	s.setMaintenances(maintenances)
	if err := s.readNodes(ctx, client); err != nil {
		return nil, err
	}
	nodes := s.nodesToRead(maintenances)
	s.nodesRead = sets.New(nodes...)
	if len(nodes) == 0 {
		return s, nil
	}
	var selectors []string
	for _, node := range nodes {
		selectors = append(selectors, podsOfNode(node))
	}
	return s, s.readPods(ctx, client, s.nodesRead, selectors)
}

func (s *snapshot) readNodes(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if s.skip("nodes", err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	s.setNodes(pointers(nodes.Items))
	return nil
}

// podsAmong lists the pods of nodes that a field selector selects. They may be among all pods
// of a large cluster, of which no more than some pages are in memory at a time.
func podsAmong(ctx context.Context, client kubernetes.Interface, nodes sets.Set[string], selector string) ([]*corev1.Pod, error) {
	var pods []*corev1.Pod
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{FieldSelector: selector}, func(object runtime.Object) error {
		if pod, ok := object.(*corev1.Pod); ok && nodes.Has(pod.Spec.NodeName) {
			// A copy, because a pointer into a page would keep all of it.
			kept := *pod
			kept.ManagedFields = nil
			pods = append(pods, &kept)
		}
		return nil
	})
	return pods, err
}

// readPods reads the pods of nodes under field selectors, and the requests and budgets of all
// pods.
func (s *snapshot) readPods(ctx context.Context, client kubernetes.Interface, nodes sets.Set[string], selectors []string) error {
	var pods []*corev1.Pod
	for _, selector := range selectors {
		found, err := podsAmong(ctx, client, nodes, selector)
		if s.skip("pods", err) {
			break
		}
		if err != nil {
			return fmt.Errorf("listing pods: %w", err)
		}
		pods = append(pods, found...)
	}
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

// skip notes a kind that the user may not read, and returns whether it is one.
func (s *snapshot) skip(kind string, err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	s.unreadable = append(s.unreadable, kind)
	return true
}

func (s *snapshot) readable(kind string) bool { return !slices.Contains(s.unreadable, kind) }

// countsPods tells whether pods, and which of them were asked to leave, can be counted.
func (s *snapshot) countsPods() bool { return s.readable("pods") && s.readable("evictionrequests") }

func pointers[T any](items []T) []*T {
	all := make([]*T, 0, len(items))
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}
