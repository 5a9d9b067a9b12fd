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
	"maps"
	"slices"

	"github.com/spf13/cobra"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"
)

// completeNames completes the names of maintenances, or of nodes, as many as there are.
func completeNames(f cmdutil.Factory, resource string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return cmdutil.Difference(completion.CompGetResource(f, resource, toComplete), args), cobra.ShellCompDirectiveNoFileComp
	}
}

// getMaintenances reads maintenances by their names, or all if there are none.
func getMaintenances(ctx context.Context, client kubernetes.Interface, names []string) ([]*coordinationv1alpha1.NodeMaintenance, error) {
	if len(names) == 0 {
		list, err := client.CoordinationV1alpha1().NodeMaintenances().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing NodeMaintenances: %w", err)
		}
		return pointers(list.Items), nil
	}
	var found []*coordinationv1alpha1.NodeMaintenance
	var errs []error
	for _, name := range bareNames(names) {
		nm, err := client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			errs = append(errs, fmt.Errorf("reading NodeMaintenance %q: %w", name, err))
			continue
		}
		found = append(found, nm)
	}
	return found, errors.Join(errs...)
}

func sortedNames[T any](byName map[string]T) []string {
	return slices.Sorted(maps.Keys(byName))
}
