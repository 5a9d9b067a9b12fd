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
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// maxNodesRead is for how many nodes pods are read, each by a request of its own that the
// server answers from an index. The pods of a whole cluster are never read for a view: of
// further nodes the counts of the controller are shown.
const maxNodesRead = 100

// nodesToRead returns the names of the nodes whose pods say what a drain waits for: those
// of maintenances in the stage Drain. Where they are many, nodes with pods that were asked
// to leave come first, and drained ones last.
func (s *snapshot) nodesToRead(maintenances []*coordinationv1alpha1.NodeMaintenance) []string {
	var nodes []*corev1.Node
	seen := sets.New[string]()
	for _, nm := range maintenances {
		if nm.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
			continue
		}
		for _, node := range s.selectedNodes(nm.Spec.NodeSelector) {
			if !seen.Has(node.Name) {
				seen.Insert(node.Name)
				nodes = append(nodes, node)
			}
		}
	}
	slices.SortStableFunc(nodes, func(a, b *corev1.Node) int { return cmp.Compare(readRank(a), readRank(b)) })
	var names []string
	for _, node := range nodes[:min(maxNodesRead, len(nodes))] {
		names = append(names, node.Name)
	}
	return names
}

func readRank(node *corev1.Node) int {
	switch view := nodeViewOf(node); {
	case view.Drained:
		return 2
	case view.PodsEvicting > 0:
		return 0
	}
	return 1
}

// readsPodsOf reports whether the pods of a node, and which of them were asked to leave,
// can be counted. Snapshots of tests, and of plans, have the pods of all their nodes.
func (s *snapshot) readsPodsOf(node string) bool {
	return s.countsPods() && (s.nodesRead == nil || s.nodesRead.Has(node))
}
