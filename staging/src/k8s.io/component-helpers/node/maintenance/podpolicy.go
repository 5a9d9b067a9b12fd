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
	"fmt"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// PodPolicies are the parsed pod policies of a NodeMaintenance.
type PodPolicies struct {
	policies []podPolicy
}

type podPolicy struct {
	action     coordinationv1alpha1.NodeMaintenancePodAction
	pods       labels.Selector
	namespaces labels.Selector
	resources  []v1.ResourceName
}

// caution orders actions: of several maintenances, the one with the most cautious action decides.
var caution = []coordinationv1alpha1.NodeMaintenancePodAction{
	coordinationv1alpha1.NodeMaintenancePodDrain,
	coordinationv1alpha1.NodeMaintenancePodWaitCompleted,
	coordinationv1alpha1.NodeMaintenancePodSkip,
}

// NewPodPolicies parses policies.
func NewPodPolicies(policies []coordinationv1alpha1.NodeMaintenancePodPolicy) (*PodPolicies, error) {
	parsed := &PodPolicies{}
	for i := range policies {
		policy := &policies[i]
		pods, err := selectorOrAll(policy.PodSelector)
		if err != nil {
			return nil, fmt.Errorf("podPolicies[%d].podSelector: %w", i, err)
		}
		namespaces, err := selectorOrAll(policy.NamespaceSelector)
		if err != nil {
			return nil, fmt.Errorf("podPolicies[%d].namespaceSelector: %w", i, err)
		}
		parsed.policies = append(parsed.policies, podPolicy{policy.Action, pods, namespaces, policy.ResourceNames})
	}
	return parsed, nil
}

func selectorOrAll(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}

// IsEmpty reports whether there are no policies: all pods are drained.
func (p *PodPolicies) IsEmpty() bool { return len(p.policies) == 0 }

// SelectNamespaces reports whether a policy depends on the labels of namespaces.
func (p *PodPolicies) SelectNamespaces() bool {
	return slices.ContainsFunc(p.policies, func(policy podPolicy) bool { return !policy.namespaces.Empty() })
}

// ActionFor returns what happens to a pod. namespace returns the labels of its namespace, and false if
// they are not known: then a policy matches, unless its action is Drain.
func (p *PodPolicies) ActionFor(pod *v1.Pod, namespace func() (labels.Set, bool)) coordinationv1alpha1.NodeMaintenancePodAction {
	for i := range p.policies {
		if p.policies[i].matches(pod, namespace) {
			return p.policies[i].action
		}
	}
	return coordinationv1alpha1.NodeMaintenancePodDrain
}

func (p *podPolicy) matches(pod *v1.Pod, namespace func() (labels.Set, bool)) bool {
	if !p.pods.Matches(labels.Set(pod.Labels)) || len(p.resources) > 0 && !requestsAny(pod, p.resources) {
		return false
	}
	if p.namespaces.Empty() {
		return true
	}
	set, known := namespace()
	if !known {
		return p.action != coordinationv1alpha1.NodeMaintenancePodDrain
	}
	return p.namespaces.Matches(set)
}

// requestsAny reports whether the pod or one of its containers requests one of the resources, or is limited
// to some of it.
func requestsAny(pod *v1.Pod, names []v1.ResourceName) bool {
	has := func(resources *v1.ResourceRequirements) bool {
		return slices.ContainsFunc(names, func(name v1.ResourceName) bool {
			quantity, requested := resources.Requests[name]
			if !requested {
				quantity = resources.Limits[name]
			}
			return !quantity.IsZero()
		})
	}
	requests := func(container v1.Container) bool { return has(&container.Resources) }
	return slices.ContainsFunc(pod.Spec.Containers, requests) || slices.ContainsFunc(pod.Spec.InitContainers, requests) ||
		pod.Spec.Resources != nil && has(pod.Spec.Resources)
}

// MoreCautious returns the action of the two that decides if both apply to a pod.
func MoreCautious(a, b coordinationv1alpha1.NodeMaintenancePodAction) coordinationv1alpha1.NodeMaintenancePodAction {
	if slices.Index(caution, a) >= slices.Index(caution, b) {
		return a
	}
	return b
}
