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

package nodeselection

import (
	"strings"
	"testing"
)

func TestNamePrefixes(t *testing.T) {
	for _, tc := range []struct {
		nodes []string
		want  string
	}{
		{[]string{"node-1"}, "node-1-"},
		{[]string{"node-1", "node-2", "node-3"}, "node-1-and-2-more-"},
		{[]string{strings.Repeat("a", 39) + ".example.com"}, strings.Repeat("a", 39) + "-"},
	} {
		if got := PrefixForNodes(tc.nodes); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.nodes, got, tc.want)
		}
	}
	for text, want := range map[string]string{
		"topology.kubernetes.io/zone=A_1": "zone-a-1-",
		"!spot":                           "nodes-",
		"gpu":                             "gpu-",
		"a=":                              "a-",
	} {
		selector, err := ByLabels(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := PrefixForLabels(selector); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
