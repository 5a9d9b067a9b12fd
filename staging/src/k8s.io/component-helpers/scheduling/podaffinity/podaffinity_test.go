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

package podaffinity

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod(name, node string, labels map[string]string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: name, Labels: labels}, Spec: v1.PodSpec{NodeName: node}}
}

func selecting(topologyKey, label string) v1.PodAffinityTerm {
	return v1.PodAffinityTerm{TopologyKey: topologyKey, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: ""}}}
}

// TestRules has node a in zone x, where the pods are, b in zone x as well, and c without a zone. All terms of affinity
// have to select the same pod; each of anti-affinity keeps away.
func TestRules(t *testing.T) {
	nodes := []*v1.Node{
		{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"host": "a", "zone": "x"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: map[string]string{"host": "b", "zone": "x"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"host": "c"}}},
	}
	both, one := pod("both", "a", map[string]string{"l": "", "m": ""}), pod("one", "a", map[string]string{"l": ""})
	inOther := func(term v1.PodAffinityTerm) v1.PodAffinityTerm {
		term.Namespaces = []string{"other"}
		return term
	}
	ofTeam := func(term v1.PodAffinityTerm) v1.PodAffinityTerm {
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": ""}}
		return term
	}
	for name, test := range map[string]struct {
		terms     []v1.PodAffinityTerm
		others    []*v1.Pod
		isUnbound bool
		// attracted and permitted are the nodes on which the pod may run if these are its affinity, or its anti-affinity.
		attracted, permitted string
	}{
		"a host":                {terms: []v1.PodAffinityTerm{selecting("host", "l")}, others: []*v1.Pod{one}, attracted: "a", permitted: "bc"},
		"a zone":                {terms: []v1.PodAffinityTerm{selecting("zone", "l")}, others: []*v1.Pod{one}, attracted: "ab", permitted: "c"},
		"two terms":             {terms: []v1.PodAffinityTerm{selecting("zone", "l"), selecting("host", "m")}, others: []*v1.Pod{both}, attracted: "a", permitted: "c"},
		"two terms, one pod":    {terms: []v1.PodAffinityTerm{selecting("host", "l"), selecting("host", "m")}, others: []*v1.Pod{one}, permitted: "bc"},
		"nobody":                {terms: []v1.PodAffinityTerm{selecting("host", "m")}, others: []*v1.Pod{one}, permitted: "abc"},
		"nobody but itself":     {terms: []v1.PodAffinityTerm{selecting("zone", "self")}, others: []*v1.Pod{one}, attracted: "ab", permitted: "abc"},
		"who may come anywhere": {terms: []v1.PodAffinityTerm{selecting("zone", "l")}, others: []*v1.Pod{one}, isUnbound: true, attracted: "ab", permitted: "c"},
		"another namespace":     {terms: []v1.PodAffinityTerm{inOther(selecting("host", "l"))}, others: []*v1.Pod{one}, permitted: "abc"},
		"selected namespaces":   {terms: []v1.PodAffinityTerm{ofTeam(selecting("host", "l"))}, others: []*v1.Pod{one}, attracted: "a", permitted: "bc"},
	} {
		together, apart := pod("p", "", map[string]string{"self": ""}), pod("p", "", map[string]string{"self": ""})
		together.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: test.terms}}
		apart.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: test.terms}}
		namespaces := []*v1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "own", Labels: map[string]string{"team": ""}}}}
		attracts := Of(together, namespaces).Attracts(nodes, test.others, func(*v1.Pod) bool { return test.isUnbound })
		permits := Of(apart, namespaces).Permits(nodes, test.others)
		attracted, permitted := "", ""
		for _, node := range nodes {
			if attracts(node) {
				attracted += node.Name
			}
			if permits(node) {
				permitted += node.Name
			}
		}
		if attracted != test.attracted || permitted != test.permitted {
			t.Errorf("%s: attracted to %q, not %q; permitted on %q, not %q", name, attracted, test.attracted, permitted, test.permitted)
		}
	}
}
