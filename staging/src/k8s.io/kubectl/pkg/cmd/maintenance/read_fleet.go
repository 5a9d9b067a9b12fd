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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/node/maintenance"
	resourcehelper "k8s.io/component-helpers/resource"
)

// readNodeBudgets reads the NodeMaintenanceBudgets, if the server serves them. It asks for that first:
// without the permission to list them, the list would be refused also where they are not served.
func (s *podSnapshot) readNodeBudgets(ctx context.Context, client kubernetes.Interface) error {
	resources, err := servedResources(client)
	if err != nil {
		return err
	}
	if s.budgetsNotServed = resources != nil && !serves(resources, budgetResource); s.budgetsNotServed {
		return nil
	}
	budgets, err := client.CoordinationV1alpha1().NodeMaintenanceBudgets().List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		s.budgetsNotServed = true
	case s.skip(budgetResource, err):
	case err != nil:
		return fmt.Errorf("listing %s: %w", budgetResource, err)
	default:
		s.setNodeBudgets(pointers(budgets.Items))
	}
	return nil
}

func (s *podSnapshot) setNodeBudgets(budgets []*coordinationv1alpha1.NodeMaintenanceBudget) {
	s.nodeBudgets = budgets
	slices.SortFunc(s.nodeBudgets, func(a, b *coordinationv1alpha1.NodeMaintenanceBudget) int { return cmp.Compare(a.Name, b.Name) })
}

// isLimited reports whether the nodes are not all drained at the same time: the maintenance has a
// rollout, or a budget selects one of them.
func (s *podSnapshot) isLimited(nm *coordinationv1alpha1.NodeMaintenance, nodes []*corev1.Node) bool {
	return nm.Spec.Rollout != nil || s.haveBudget(nodes)
}

// haveBudget reports whether a NodeMaintenanceBudget selects one of the nodes.
func (s *podSnapshot) haveBudget(nodes []*corev1.Node) bool {
	return slices.ContainsFunc(s.nodeBudgets, func(budget *coordinationv1alpha1.NodeMaintenanceBudget) bool {
		matcher, err := maintenance.NewNodeMatcher(budget.Spec.NodeSelector)
		return err == nil && slices.ContainsFunc(nodes, matcher.Matches)
	})
}

// amounts are quantities of resources: thousandths of cores, and otherwise the number in the unit of
// the resource.
type amounts map[corev1.ResourceName]int64

func amountsOf(quantities corev1.ResourceList) amounts {
	a := amounts{}
	for name, quantity := range quantities {
		a[name] = quantity.Value()
		if name == corev1.ResourceCPU {
			a[name] = quantity.MilliValue()
		}
	}
	return a
}

// requestsOf are what the scheduler reserves for a pod, and its place among the pods of a node.
func requestsOf(pod *corev1.Pod) amounts {
	a := amountsOf(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true}))
	a[corev1.ResourcePods] = 1
	return a
}

// addRequests adds what a pod uses of its node.
func (s *podSnapshot) addRequests(pod *corev1.Pod) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	used := s.used[pod.Spec.NodeName]
	if used == nil {
		used = amounts{}
		s.used[pod.Spec.NodeName] = used
	}
	for name, amount := range requestsOf(pod) {
		used[name] += amount
	}
}
