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

// Package topologyspread predicts where the topologySpreadConstraints of a pod let it run. It serves to explain why
// a pod is not scheduled, never to bind one.
package topologyspread

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// HasHardConstraints reports whether constraints of the pod keep it from nodes.
func HasHardConstraints(pod *v1.Pod) bool { return len(hardConstraints(pod)) > 0 }

func hardConstraints(pod *v1.Pod) []v1.TopologySpreadConstraint {
	var hard []v1.TopologySpreadConstraint
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		if constraint.WhenUnsatisfiable == v1.DoNotSchedule {
			hard = append(hard, constraint)
		}
	}
	return hard
}

// Spread has the domains of the hard constraints of one pod.
type Spread struct {
	constraints []spreadConstraint
}

// spreadConstraint is one constraint, with the number of matching pods by domain.
type spreadConstraint struct {
	v1.TopologySpreadConstraint
	self    int
	domains map[string]int
	// least is how many the domain with the fewest has. While there are fewer domains than minDomains, that is 0.
	least int
}

// Of returns the spread of a pod over the nodes, where these pods run. The pod itself is not added to them.
func Of(pod *v1.Pod, nodes []*v1.Node, pods []*v1.Pod) *Spread {
	spread, hard := &Spread{}, hardConstraints(pod)
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	for _, constraint := range hard {
		selector, err := selectorOf(&constraint, pod)
		if err != nil {
			continue // The API server rejects it.
		}
		counted := spreadConstraint{TopologySpreadConstraint: constraint, domains: map[string]int{}}
		if selector.Matches(labels.Set(pod.Labels)) {
			counted.self = 1
		}
		domainOf := map[string]string{}
		for _, node := range nodes {
			if hasAllKeys(node, hard) && counts(&constraint, pod, node, affinity) {
				domain := node.Labels[constraint.TopologyKey]
				domainOf[node.Name] = domain
				counted.domains[domain] += 0
			}
		}
		for _, other := range pods {
			if domain, counts := domainOf[other.Spec.NodeName]; counts && other.Namespace == pod.Namespace && other.DeletionTimestamp == nil && selector.Matches(labels.Set(other.Labels)) {
				counted.domains[domain]++
			}
		}
		counted.least = counted.fewest() // Once: each node may be a domain.
		spread.constraints = append(spread.constraints, counted)
	}
	return spread
}

// Allows reports whether all constraints let the pod run on the node, whether or not its affinity and its tolerations
// do.
func (s *Spread) Allows(node *v1.Node) bool {
	for i := range s.constraints {
		constraint := &s.constraints[i]
		domain, labeled := node.Labels[constraint.TopologyKey]
		if !labeled || constraint.domains[domain]+constraint.self-constraint.least > int(constraint.MaxSkew) {
			return false
		}
	}
	return true
}

// fewest computes least.
func (c *spreadConstraint) fewest() int {
	if c.MinDomains != nil && len(c.domains) < int(*c.MinDomains) {
		return 0
	}
	least, found := 0, false
	for _, count := range c.domains {
		if !found || count < least {
			least, found = count, true
		}
	}
	return least
}

func selectorOf(constraint *v1.TopologySpreadConstraint, pod *v1.Pod) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(constraint.LabelSelector)
	if err != nil || len(constraint.MatchLabelKeys) == 0 {
		return selector, err
	}
	same := labels.Set{}
	for _, key := range constraint.MatchLabelKeys {
		if value, labeled := pod.Labels[key]; labeled {
			same[key] = value
		}
	}
	requirements, _ := labels.SelectorFromSet(same).Requirements()
	return selector.Add(requirements...), nil
}

func hasAllKeys(node *v1.Node, constraints []v1.TopologySpreadConstraint) bool {
	for i := range constraints {
		if _, labeled := node.Labels[constraints[i].TopologyKey]; !labeled {
			return false
		}
	}
	return true
}

// counts reports whether the pods of a node count for a constraint of the pod.
func counts(constraint *v1.TopologySpreadConstraint, pod *v1.Pod, node *v1.Node, affinity nodeaffinity.RequiredNodeAffinity) bool {
	if policy := constraint.NodeAffinityPolicy; policy == nil || *policy == v1.NodeInclusionPolicyHonor {
		if matches, err := affinity.Match(node); err != nil || !matches {
			return false
		}
	}
	if policy := constraint.NodeTaintsPolicy; policy == nil || *policy == v1.NodeInclusionPolicyIgnore {
		return true
	}
	_, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations, func(taint *v1.Taint) bool {
		return taint.Effect == v1.TaintEffectNoSchedule || taint.Effect == v1.TaintEffectNoExecute
	}, true)
	return !untolerated
}
