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

package topologyspread

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const zone = "topology.kubernetes.io/zone"

var webLabels = map[string]string{"app": "web"}

func node(name, inZone string, changes ...func(*v1.Node)) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{zone: inZone, v1.LabelHostname: name}}}
	for _, change := range changes {
		change(n)
	}
	return n
}

func tainted(n *v1.Node) {
	n.Spec.Taints = []v1.Taint{{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}}
}

func unlabeled(n *v1.Node) { n.Labels = nil }

// podsOn returns one matching pod for each node.
func podsOn(nodes ...string) []*v1.Pod {
	var pods []*v1.Pod
	for i, name := range nodes {
		pods = append(pods, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), Labels: webLabels}, Spec: v1.PodSpec{NodeName: name}})
	}
	return pods
}

// Whether the node affinity of the pod selects a node is another question: the constraints only say which zones count.
func TestAllows(t *testing.T) {
	now := metav1.Now()
	nodes := []*v1.Node{node("a1", "a"), node("a2", "a"), node("b1", "b")}
	with := func(changes ...func(*v1.TopologySpreadConstraint)) []v1.TopologySpreadConstraint {
		constraint := v1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: zone, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: webLabels}}
		for _, change := range changes {
			change(&constraint)
		}
		return []v1.TopologySpreadConstraint{constraint}
	}
	soft := func(c *v1.TopologySpreadConstraint) { c.WhenUnsatisfiable = v1.ScheduleAnyway }
	skew := func(c *v1.TopologySpreadConstraint) { c.MaxSkew = 2 }
	honor := func(c *v1.TopologySpreadConstraint) { c.NodeTaintsPolicy = ptr.To(v1.NodeInclusionPolicyHonor) }
	ignore := func(c *v1.TopologySpreadConstraint) { c.NodeAffinityPolicy = ptr.To(v1.NodeInclusionPolicyIgnore) }
	domains := func(count int32) func(*v1.TopologySpreadConstraint) {
		return func(c *v1.TopologySpreadConstraint) { c.MinDomains = &count }
	}
	sameHash := func(c *v1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"hash"} }
	others := func(c *v1.TopologySpreadConstraint) { c.LabelSelector.MatchLabels = map[string]string{"app": "db"} }
	onlyA := func(pod *v1.Pod) { pod.Spec.NodeSelector = map[string]string{zone: "a"} }
	for name, test := range map[string]struct {
		constraints []v1.TopologySpreadConstraint
		nodes       []*v1.Node
		pods        []*v1.Pod
		pod         func(*v1.Pod)
		want        []string
	}{
		"no constraint":                          {pods: podsOn("a1", "a1"), want: []string{"a1", "a2", "b1"}},
		"one that does not keep from nodes":      {constraints: with(soft), pods: podsOn("a1", "a1"), want: []string{"a1", "a2", "b1"}},
		"even":                                   {constraints: with(), pods: podsOn("a1", "b1"), want: []string{"a1", "a2", "b1"}},
		"one zone has more":                      {constraints: with(), pods: podsOn("a1"), want: []string{"b1"}},
		"a larger skew":                          {constraints: with(skew), pods: podsOn("a1"), want: []string{"a1", "a2", "b1"}},
		"a pod that terminates":                  {constraints: with(), pods: []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Labels: webLabels, DeletionTimestamp: &now}, Spec: v1.PodSpec{NodeName: "a1"}}}, want: []string{"a1", "a2", "b1"}},
		"a pod of another namespace":             {constraints: with(), pods: []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Labels: webLabels}, Spec: v1.PodSpec{NodeName: "a1"}}}, want: []string{"a1", "a2", "b1"}},
		"pods of others":                         {constraints: with(others), pods: podsOn("a1", "a1"), want: []string{"a1", "a2", "b1"}},
		"a node without the label":               {constraints: with(), nodes: []*v1.Node{node("a1", "a"), node("c1", "c", unlabeled)}, want: []string{"a1"}},
		"a zone of tainted nodes counts":         {constraints: with(), nodes: []*v1.Node{node("a1", "a"), node("b1", "b", tainted)}, pods: podsOn("a1"), want: []string{"b1"}},
		"a zone of tainted nodes does not count": {constraints: with(honor), nodes: []*v1.Node{node("a1", "a"), node("b1", "b", tainted)}, pods: podsOn("a1"), want: []string{"a1", "b1"}},
		"a zone that is not selected":            {constraints: with(), pod: onlyA, pods: podsOn("a1"), want: []string{"a1", "a2", "b1"}},
		"a zone that is not selected counts":     {constraints: with(ignore), pod: onlyA, pods: podsOn("a1"), want: []string{"b1"}},
		"fewer zones than minDomains":            {constraints: with(domains(3)), pods: podsOn("a1", "b1"), want: nil},
		"as many zones as minDomains":            {constraints: with(domains(2)), pods: podsOn("a1", "b1"), want: []string{"a1", "a2", "b1"}},
		"pods of another revision":               {constraints: with(sameHash), pod: func(p *v1.Pod) { p.Labels = map[string]string{"app": "web", "hash": "2"} }, pods: podsOn("a1", "a1"), want: []string{"a1", "a2", "b1"}},
		"two constraints": {constraints: append(with(skew), with(func(c *v1.TopologySpreadConstraint) { c.TopologyKey = v1.LabelHostname })...),
			pods: podsOn("a1", "b1"), want: []string{"a2"}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: webLabels}, Spec: v1.PodSpec{TopologySpreadConstraints: test.constraints}}
			if test.pod != nil {
				test.pod(pod)
			}
			among := test.nodes
			if among == nil {
				among = nodes
			}
			spread := Of(pod, among, test.pods)
			var got []string
			for _, node := range among {
				if spread.Allows(node) {
					got = append(got, node.Name)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("allowed (-want +got):\n%s", diff)
			}
			if hard := slices.ContainsFunc(test.constraints, func(c v1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == v1.DoNotSchedule }); HasHardConstraints(pod) != hard {
				t.Errorf("has hard constraints: %t, want %t", HasHardConstraints(pod), hard)
			}
		})
	}
}
