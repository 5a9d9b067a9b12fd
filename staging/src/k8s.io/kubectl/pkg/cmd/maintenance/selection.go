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
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
)

// maxNodeGets is how many nodes are read one by one. For more, one list is cheaper.
const maxNodeGets = 10

// notFound returns an error that names the nodes that do not exist.
func notFound(names []string, existing sets.Set[string]) error {
	var errs []error
	for _, name := range names {
		if !existing.Has(name) {
			errs = append(errs, fmt.Errorf("node %q not found", name))
		}
	}
	return errors.Join(errs...)
}

func existingNodes(ctx context.Context, client kubernetes.Interface, names []string) (sets.Set[string], error) {
	existing := sets.New[string]()
	if len(names) > maxNodeGets {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, fmt.Errorf("listing nodes: %w", err)
		}
		for i := range nodes.Items {
			existing.Insert(nodes.Items[i].Name)
		}
		return existing, nil
	}
	for _, name := range names {
		switch _, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("reading node %q: %w", name, err)
		default:
			existing.Insert(name)
		}
	}
	return existing, nil
}

// These prefixes may precede a name, as in the output of "kubectl get -o name".
var (
	nodePrefixes        = sets.New("no", "node", "nodes")
	maintenancePrefixes = sets.New("nm", "nodemaintenance", "nodemaintenances", "nodemaintenance.coordination.k8s.io", "nodemaintenances.coordination.k8s.io")
)

func isNodeArgument(arg string) bool { return hasPrefixOf(arg, nodePrefixes) }

func isMaintenanceArgument(arg string) bool { return hasPrefixOf(arg, maintenancePrefixes) }

func hasPrefixOf(arg string, prefixes sets.Set[string]) bool {
	prefix, _, found := strings.Cut(arg, "/")
	return found && prefixes.Has(prefix)
}

// bareName returns the name of an argument without its type prefix.
func bareName(arg string) string {
	if isNodeArgument(arg) || isMaintenanceArgument(arg) {
		_, arg, _ = strings.Cut(arg, "/")
	}
	return arg
}

// bareNames returns the names of arguments without their type prefix, each once.
func bareNames(args []string) []string {
	names := make([]string, 0, len(args))
	for _, arg := range args {
		names = append(names, bareName(arg))
	}
	return unique(names)
}

// unique removes duplicate names, and keeps the order.
func unique(names []string) []string {
	seen := sets.New[string]()
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		if seen.Has(name) {
			return true
		}
		seen.Insert(name)
		return false
	})
}
