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
	"errors"
	"fmt"
	"maps"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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

// selectedNodes returns the nodes that the selector matches.
func (s *snapshot) selectedNodes(nodeSelector *corev1.NodeSelector) []*corev1.Node {
	if nodeSelector == nil {
		return nil
	}
	matcher, err := maintenance.NewNodeMatcher(nodeSelector)
	if err != nil {
		return nil // The controller does nothing for an invalid selector either.
	}
	return filtered(s.nodes, matcher.Matches)
}

// missingNames returns the nodes that the selector names and that do not exist, sorted; none if the nodes
// cannot be read.
func (s *snapshot) missingNames(nodeSelector *corev1.NodeSelector) []string {
	if nodeSelector == nil || !s.readable("nodes") {
		return nil
	}
	missing := sets.New[string]()
	for i := range nodeSelector.NodeSelectorTerms {
		if name, named := maintenance.NamedNode(&nodeSelector.NodeSelectorTerms[i]); named {
			missing.Insert(name)
		}
	}
	return sets.List(missing.Delete(namesOf(s.nodes)...))
}

// readSnapshot returns the maintenances with all nodes.
func readSnapshot(ctx context.Context, client kubernetes.Interface, maintenances ...*coordinationv1alpha1.NodeMaintenance) (*snapshot, error) {
	s := &snapshot{maintenances: sorted(maintenances)}
	return s, s.readNodes(ctx, client)
}

func (s *snapshot) readNodes(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := list[corev1.Node](ctx, s, "nodes", client.CoreV1().Nodes().List, metav1.ListOptions{})
	s.nodes = sorted(nodes)
	return err
}

// list lists objects by a method of the client. If the user may not list the resource, there are none, and it
// is noted as unreadable.
func list[T any, L runtime.Object](ctx context.Context, s *snapshot, resource string, from func(context.Context, metav1.ListOptions) (L, error), options metav1.ListOptions) ([]*T, error) {
	listed, err := from(ctx, options)
	switch {
	case s.skip(resource, err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing %s: %w", resource, err)
	}
	var all []*T
	err = meta.EachListItem(listed, func(object runtime.Object) error {
		all = append(all, any(object).(*T))
		return nil
	})
	return all, err
}

// each calls a function with each object of a list.
func each[T any, L runtime.Object](ctx context.Context, s *snapshot, resource string, from func(context.Context, metav1.ListOptions) (L, error), use func(*T)) error {
	all, err := list[T](ctx, s, resource, from, metav1.ListOptions{})
	for _, object := range all {
		use(object)
	}
	return err
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

// getMaintenance reads a maintenance by its name.
func getMaintenance(ctx context.Context, client kubernetes.Interface, name string) (*coordinationv1alpha1.NodeMaintenance, error) {
	nm, err := client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading NodeMaintenance %q: %w", name, err)
	}
	return nm, nil
}

// listMaintenances reads all maintenances.
func listMaintenances(ctx context.Context, client kubernetes.Interface) ([]*coordinationv1alpha1.NodeMaintenance, error) {
	list, err := client.CoordinationV1alpha1().NodeMaintenances().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing NodeMaintenances: %w", err)
	}
	return pointers(list.Items), nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, 0, len(items))
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

// sorted sorts objects by their names.
func sorted[T metav1.Object](objects []T) []T {
	slices.SortFunc(objects, func(a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return objects
}

func namesOf[T metav1.Object](objects []T) []string { return mapped(objects, T.GetName) }

func sortedNames[T any](byName map[string]T) []string {
	return slices.Sorted(maps.Keys(byName))
}

// keyed returns the items by their keys.
func keyed[K comparable, T any](items []*T, key func(*T) K) map[K]*T {
	all := map[K]*T{}
	for _, item := range items {
		all[key(item)] = item
	}
	return all
}

// put sets an entry of a map that may be nil yet.
func put[K comparable, V any](all *map[K]V, key K, value V) {
	if *all == nil {
		*all = map[K]V{}
	}
	(*all)[key] = value
}

// filtered returns a new slice of the items of which something is true, nil if there are none.
func filtered[T any](items []T, is func(T) bool) []T {
	var found []T
	for _, item := range items {
		if is(item) {
			found = append(found, item)
		}
	}
	return found
}

// mapped returns what becomes of each item.
func mapped[T, R any](items []T, to func(T) R) []R {
	var all []R
	for _, item := range items {
		all = append(all, to(item))
	}
	return all
}

const (
	// resource is NodeMaintenance in URLs and messages.
	resource = "nodemaintenances"

	// qualifiedResource is for requests that do not use the typed client: other projects have a resource
	// of the same name, which is the only one while the gates are off.
	qualifiedResource = resource + "." + coordinationv1alpha1.GroupName

	// budgetResource is NodeMaintenanceBudget in URLs and messages.
	budgetResource = "nodemaintenancebudgets"
)

// errNotServed is the error on a server without the API.
var errNotServed = errors.New(`the server does not serve NodeMaintenance (coordination.k8s.io/v1alpha1): ` +
	`enable its feature gates EvictionRequestAPI and DeclarativeNodeMaintenance in kube-apiserver and kube-controller-manager, ` +
	`and --runtime-config=coordination.k8s.io/v1alpha1=true in kube-apiserver, or use "kubectl drain"`)

// require returns an error if the server does not serve a resource.
func require(client kubernetes.Interface, resource string, missing error) error {
	if served, err := serves(client, resource); err != nil || served {
		return err
	}
	return missing
}

// serves asks the server itself what it serves: the discovery cache of kubectl can be hours old. If the user
// may not read the discovery document, the next request will fail if the resource is not served.
func serves(client kubernetes.Interface, resource string) (bool, error) {
	resources, err := client.Discovery().ServerResourcesForGroupVersion(coordinationv1alpha1.SchemeGroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return false, errNotServed
	case apierrors.IsForbidden(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("asking the server whether it serves NodeMaintenance: %w", err)
	}
	return slices.ContainsFunc(resources.APIResources, func(served metav1.APIResource) bool { return served.Name == resource }), nil
}
