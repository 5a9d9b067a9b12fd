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
	"context"
	"fmt"
	"maps"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/node/maintenance"
)

// snapshot is what status and watch read: NodeMaintenances, with the blockers that the controller
// publishes, and nodes. A resource that the user may not list is empty, and named in unreadable.
type snapshot struct {
	// maintenances and nodes are in the order of their names.
	maintenances []*coordinationv1alpha1.NodeMaintenance
	nodes        []*corev1.Node
	unreadable   []string
}

// setMaintenances stores the maintenances in the order of their names.
func (s *snapshot) setMaintenances(maintenances []*coordinationv1alpha1.NodeMaintenance) {
	s.maintenances = maintenances
	slices.SortFunc(s.maintenances, func(a, b *coordinationv1alpha1.NodeMaintenance) int { return cmp.Compare(a.Name, b.Name) })
}

func (s *snapshot) setNodes(nodes []*corev1.Node) {
	s.nodes = nodes
	slices.SortFunc(s.nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
}

// selectedNodes returns the nodes that the selector matches.
func (s *snapshot) selectedNodes(nodeSelector *corev1.NodeSelector) []*corev1.Node {
	if nodeSelector == nil {
		return nil
	}
	matcher, err := maintenance.NewNodeMatcher(nodeSelector)
	if err != nil {
		return nil // The controller does nothing for an invalid selector either.
	}
	var selected []*corev1.Node
	for _, node := range s.nodes {
		if matcher.Matches(node) {
			selected = append(selected, node)
		}
	}
	return selected
}

// missingNames returns the nodes that the selector names and that do not exist, sorted; none if the nodes
// cannot be read.
func (s *snapshot) missingNames(nodeSelector *corev1.NodeSelector) []string {
	if nodeSelector == nil || !s.readable("nodes") {
		return nil
	}
	existing, missing := sets.New[string](), sets.New[string]()
	for _, node := range s.nodes {
		existing.Insert(node.Name)
	}
	for i := range nodeSelector.NodeSelectorTerms {
		if name, named := maintenance.NamedNode(&nodeSelector.NodeSelectorTerms[i]); named && !existing.Has(name) {
			missing.Insert(name)
		}
	}
	return sets.List(missing)
}

// readSnapshot returns the maintenances with all nodes.
func readSnapshot(ctx context.Context, client kubernetes.Interface, maintenances []*coordinationv1alpha1.NodeMaintenance) (*snapshot, error) {
	s := &snapshot{}
	s.setMaintenances(maintenances)
	return s, s.readNodes(ctx, client)
}

func (s *snapshot) readNodes(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if s.skip("nodes", err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	s.setNodes(pointers(nodes.Items))
	return nil
}

// skip notes a resource that the user may not list, and reports whether the error says that.
func (s *snapshot) skip(resource string, err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	s.unreadable = append(s.unreadable, resource)
	return true
}

func (s *snapshot) readable(resource string) bool { return !slices.Contains(s.unreadable, resource) }

func pointers[T any](items []T) []*T {
	all := make([]*T, 0, len(items))
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

func sortedNames[T any](byName map[string]T) []string {
	return slices.Sorted(maps.Keys(byName))
}
