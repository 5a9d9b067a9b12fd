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
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestStopsStaticPods verifies who stops static pods: kubelets that declare it, and those of the fork that cannot.
func TestStopsStaticPods(t *testing.T) {
	for name, test := range map[string]struct {
		version  string
		declared []string
		want     bool
	}{
		"declared":                        {"v1.37.2+graceful.0", []string{"A", KubeletFeature}, true},
		"declared, of an unknown version": {"", []string{KubeletFeature}, true},
		"of the base":                     {"v1.37.2", []string{"A"}, false},
		"with the gate off":               {"v1.37.2+graceful.0.5.g0123456789ab", []string{"A"}, false},
		"of a later base, gate off":       {"v1.38.0+graceful.0", nil, false},
		"of an earlier base":              {"v1.36.3+graceful.0", []string{"A"}, true},
		"of an earlier base, unreleased":  {"v1.36.3+graceful", nil, true},
		"of the base before":              {"v1.36.3", nil, false},
		"of another vendor, earlier":      {"v1.36.3-eks-123", nil, false},
		"simulated":                       {"kwok-v0.7.0", nil, false},
		"nothing known":                   {"", nil, false},
		"of another vendor with metadata": {"v1.36.3+k3s1", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			node := &v1.Node{Status: v1.NodeStatus{DeclaredFeatures: test.declared, NodeInfo: v1.NodeSystemInfo{KubeletVersion: test.version}}}
			if got := StopsStaticPods(node); got != test.want {
				t.Errorf("StopsStaticPods = %t, want %t", got, test.want)
			}
		})
	}
}

// TestUnstoppedSentences verifies that what is written about pods that nobody stops is found again among others.
func TestUnstoppedSentences(t *testing.T) {
	one, two := UnstoppedSentence(1, v1.PodTypeDaemonSet, "gate A is off"), UnstoppedSentence(20, v1.PodTypeStatic, "gate B is off on a.example.com, b")
	if want := "1 DaemonSet pod stays, which nobody stops: gate A is off."; one != want {
		t.Errorf("got %q, want %q", one, want)
	}
	if want := "20 static pods stay, which nobody stops: gate B is off on a.example.com, b."; two != want {
		t.Errorf("got %q, want %q", two, want)
	}
	sentences, pods := UnstoppedSentences("No pod is left on 2 nodes. " + one + " 3 pods stay, because spec.podPolicies skips them. " + two)
	if want := []string{one[:len(one)-1], two[:len(two)-1]}; !slices.Equal(sentences, want) || pods != 21 {
		t.Errorf("got %d pods, %q, want 21, %q", pods, sentences, want)
	}
	for _, message := range []string{"", "No pod is left on 2 nodes.", ", which nobody stops: x."} {
		if sentences, pods := UnstoppedSentences(message); sentences != nil || pods != 0 {
			t.Errorf("%q has %d pods, %q", message, pods, sentences)
		}
	}
}
