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
	"fmt"
	"slices"
	"testing"
)

// TestNodeOrder begins with nodes of a large cluster, and counts in how many of the windows that
// kube-scheduler scores there is one of them.
func TestNodeOrder(t *testing.T) {
	for _, n := range []int{0, 1, 100} {
		if a, b := NodeOrder("node-2", n), NodeOrder("node-1", n); a != b {
			t.Errorf("in a cluster of %d nodes, the places are %d and %d", n, a, b)
		}
	}
	const nodes, window = 5000, 100
	for _, format := range []string{"node-%04d", "ip-10-0-%d.ec2.internal", "gke-pool-1-%x-0"} {
		var names []string
		for i := range nodes {
			names = append(names, fmt.Sprintf(format, i))
		}
		ordered := slices.SortedFunc(slices.Values(names), func(a, b string) int {
			return cmp.Or(cmp.Compare(NodeOrder(a, nodes), NodeOrder(b, nodes)), cmp.Compare(a, b))
		})
		for begun, want := range map[int]float64{50: 0.5, 250: 0.95} {
			found := 0
			for first := 0; first < nodes; first += window {
				if slices.ContainsFunc(names[first:first+window], func(name string) bool { return slices.Contains(ordered[:begun], name) }) {
					found++
				}
			}
			if share := float64(found) / (nodes / window); share < want {
				t.Errorf("%s: %d nodes are in %.2f of the windows, not in %.2f", format, begun, share, want)
			}
		}
	}
	if got := NodeOrder("node-1", 101); got != 0x35971be6e9bb024a {
		t.Errorf("the place of node-1 is %#x: kubectl and the controller of different releases would disagree", got)
	}
}
