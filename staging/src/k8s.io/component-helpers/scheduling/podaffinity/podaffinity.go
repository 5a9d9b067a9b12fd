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

// Package podaffinity decides beside which pods a pod may run, by the rules of the scheduler for its required affinity and
// anti-affinity.
package podaffinity

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Rules are the required terms of a pod.
type Rules struct {
	pod             *v1.Pod
	together, apart []term
}

// term is a term with what it selects.
type term struct {
	topologyKey string
	namespaces  sets.Set[string]
	selector    labels.Selector
}

// Of returns the rules of a pod. The namespaces have to be all, if it selects some by their labels.
func Of(pod *v1.Pod, namespaces []*v1.Namespace) *Rules {
	together, apart := termsOf(pod)
	r := &Rules{pod: pod}
	for i := range together {
		r.together = append(r.together, newTerm(pod, &together[i], namespaces))
	}
	for i := range apart {
		r.apart = append(r.apart, newTerm(pod, &apart[i], namespaces))
	}
	return r
}

func termsOf(pod *v1.Pod) (together, apart []v1.PodAffinityTerm) {
	if pod.Spec.Affinity == nil {
		return nil, nil
	}
	if affinity := pod.Spec.Affinity.PodAffinity; affinity != nil {
		together = affinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if affinity := pod.Spec.Affinity.PodAntiAffinity; affinity != nil {
		apart = affinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return together, apart
}

func newTerm(pod *v1.Pod, t *v1.PodAffinityTerm, namespaces []*v1.Namespace) term {
	selected := sets.New(t.Namespaces...)
	if t.NamespaceSelector == nil && len(selected) == 0 {
		selected.Insert(pod.Namespace)
	}
	ofNamespaces := selectorOf(t.NamespaceSelector) // Nothing, if there is none.
	for _, namespace := range namespaces {
		if ofNamespaces.Matches(labels.Set(namespace.Labels)) {
			selected.Insert(namespace.Name)
		}
	}
	return term{t.TopologyKey, selected, selectorOf(t.LabelSelector)}
}

func selectorOf(selector *metav1.LabelSelector) labels.Selector {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Nothing() // The API server rejects it.
	}
	return parsed
}

// SelectsNamespaces reports whether a pod selects namespaces by their labels.
func SelectsNamespaces(pod *v1.Pod) bool {
	together, apart := termsOf(pod)
	selects := func(t v1.PodAffinityTerm) bool { return t.NamespaceSelector != nil }
	return slices.ContainsFunc(together, selects) || slices.ContainsFunc(apart, selects)
}

// Namespaces returns those in which the rules select pods.
func (r *Rules) Namespaces() sets.Set[string] {
	all := sets.New[string]()
	for _, t := range slices.Concat(r.together, r.apart) {
		all = all.Union(t.namespaces)
	}
	return all
}

// HasAffinity reports whether the pod has to run beside others.
func (r *Rules) HasAffinity() bool { return len(r.together) > 0 }

// HasAntiAffinity reports whether it must not run beside others.
func (r *Rules) HasAntiAffinity() bool { return len(r.apart) > 0 }

// Permits returns whether the anti-affinity lets the pod run on a node beside others.
func (r *Rules) Permits(nodes []*v1.Node, others []*v1.Pod) func(*v1.Node) bool {
	var taken []sets.Set[string]
	for i := range r.apart {
		taken = append(taken, r.apart[i].domains(nodes, others, r.apart[i].selects))
	}
	return func(node *v1.Node) bool {
		for i := range r.apart {
			if taken[i].Has(node.Labels[r.apart[i].topologyKey]) {
				return false
			}
		}
		return true
	}
}

// Attracts returns whether the affinity lets the pod run on a node: beside pods that all of its terms select, or
// anywhere, if one of these is not bound to its node. If they select no pod but itself, it may be the first one.
func (r *Rules) Attracts(nodes []*v1.Node, others []*v1.Pod, isUnbound func(*v1.Pod) bool) func(*v1.Node) bool {
	selected := func(pod *v1.Pod) bool {
		return !slices.ContainsFunc(r.together, func(t term) bool { return !t.selects(pod) })
	}
	anywhere := !slices.ContainsFunc(others, selected) && selected(r.pod) ||
		slices.ContainsFunc(others, func(pod *v1.Pod) bool { return selected(pod) && isUnbound(pod) })
	var permitted []sets.Set[string]
	for i := range r.together {
		permitted = append(permitted, r.together[i].domains(nodes, others, selected))
	}
	return func(node *v1.Node) bool {
		for i := range r.together {
			if domain, labeled := node.Labels[r.together[i].topologyKey]; !labeled || !anywhere && !permitted[i].Has(domain) {
				return false
			}
		}
		return true
	}
}

func (t *term) selects(pod *v1.Pod) bool {
	return t.namespaces.Has(pod.Namespace) && t.selector.Matches(labels.Set(pod.Labels))
}

// domains returns those of the nodes on which selected pods are.
func (t *term) domains(nodes []*v1.Node, pods []*v1.Pod, selected func(*v1.Pod) bool) sets.Set[string] {
	having := sets.New[string]()
	for _, pod := range pods {
		if selected(pod) {
			having.Insert(pod.Spec.NodeName)
		}
	}
	domains := sets.New[string]()
	for _, node := range nodes {
		if domain, labeled := node.Labels[t.topologyKey]; labeled && having.Has(node.Name) {
			domains.Insert(domain)
		}
	}
	return domains
}
