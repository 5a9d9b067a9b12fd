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

package nodepin

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// alternative returns a term of a selector: the label or, if it is metadata.name, the node has one of the values.
func alternative(key string, values ...string) v1.NodeSelectorTerm {
	requirements := []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn, Values: values}}
	if key == metav1.ObjectNameField {
		return v1.NodeSelectorTerm{MatchFields: requirements}
	}
	return v1.NodeSelectorTerm{MatchExpressions: requirements}
}

func TestOf(t *testing.T) {
	const host = v1.LabelHostname
	var nodes []*v1.Node
	for _, name := range []string{"a", "b", "c"} {
		nodes = append(nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{host: "host-" + name, "zone": "z"}}})
	}
	type terms []v1.NodeSelectorTerm
	tests := map[string]struct {
		selector map[string]string
		affinity terms
		volumes  []terms
		want     []string
		pinned   bool
	}{
		"any node":                       {},
		"a zone":                         {selector: map[string]string{"zone": "z"}},
		"a hostname":                     {selector: map[string]string{host: "host-a"}, want: []string{"a"}, pinned: true},
		"a hostname of another zone":     {selector: map[string]string{host: "host-a", "zone": "y"}, pinned: true},
		"two hostnames":                  {affinity: terms{alternative(host, "host-a", "host-b")}, want: []string{"a", "b"}, pinned: true},
		"names":                          {affinity: terms{alternative(metav1.ObjectNameField, "a"), alternative(metav1.ObjectNameField, "c")}, want: []string{"a", "c"}, pinned: true},
		"a name or a zone":               {affinity: terms{alternative(metav1.ObjectNameField, "a"), alternative("zone", "z")}},
		"all but one":                    {affinity: terms{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: host, Operator: v1.NodeSelectorOpNotIn, Values: []string{"host-a"}}}}}},
		"no alternative":                 {affinity: terms{}},
		"a volume of a node":             {volumes: []terms{{alternative(host, "host-b")}}, want: []string{"b"}, pinned: true},
		"a volume of a zone":             {volumes: []terms{{alternative("zone", "z")}}},
		"a volume of each":               {volumes: []terms{{alternative("zone", "z")}, {alternative(host, "host-b")}}, want: []string{"b"}, pinned: true},
		"a volume of another node":       {selector: map[string]string{host: "host-a"}, volumes: []terms{{alternative(host, "host-b")}}, pinned: true},
		"a zone, and a volume of a node": {selector: map[string]string{"zone": "z"}, volumes: []terms{{alternative(host, "host-b")}}, want: []string{"b"}, pinned: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &v1.Pod{Spec: v1.PodSpec{NodeSelector: test.selector}}
			if test.affinity != nil {
				pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: test.affinity}}}
			}
			volumes := []*v1.PersistentVolume{{}}
			for _, terms := range test.volumes {
				volumes = append(volumes, &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: terms}}}})
			}
			permitted, pinned := Of(pod, volumes, nodes)
			var got []string
			for _, node := range permitted {
				got = append(got, node.Name)
			}
			if !slices.Equal(got, test.want) || pinned != test.pinned {
				t.Errorf("got %v, pinned: %t; want %v, %t", got, pinned, test.want, test.pinned)
			}
		})
	}
}
