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
	"fmt"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
)

// canceling deletes maintenances.
var canceling = &ending{
	verb: "cancel", operands: "NAME...",
	short: i18n.T("End maintenances and delete them"),
	long: templates.LongDesc(i18n.T(`
		End maintenances and delete them.

		The controller completes them first: the nodes become schedulable again, unless another
		maintenance claims them, and the eviction of pods that are still running is canceled. Two
		kinds of pods are still evicted, and are named: pods whose interceptor forbids cancellation,
		and pods whose eviction another client requests too. A node can be named in place of its
		maintenance if it has only one, and that selects no other node. If an argument names no
		maintenance, nothing is changed. Nodes of a rollout that are released although it is not done with
		them are named.

		To end the work on single nodes, use "kubectl maintenance complete NAME NODE".`)),
	example: templates.Examples(i18n.T(`
		# Cancel a maintenance
		kubectl maintenance cancel foo-x7k2p

		# Show which nodes and pods that concerns, and whether the API server would accept it
		kubectl maintenance cancel foo-x7k2p --dry-run=server

		# Return when it is gone
		kubectl maintenance cancel foo-x7k2p --wait`)),
	waitUsage: "If true, return when the maintenances are gone.",
	end:       (*endOptions).cancel,
	isOver:    func(*view) bool { return false },
}

// cancel deletes the maintenance, and returns it as it was before. The precondition keeps one that
// was created later under the same name.
func (o *endOptions) cancel(ctx context.Context, client kubernetes.Interface, name string) (*coordinationv1alpha1.NodeMaintenance, error) {
	nm, err := client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading NodeMaintenance %q: %w", name, err)
	}
	if o.dryRun != cmdutil.DryRunClient {
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(nm.UID)), DryRun: serverDryRun(o.dryRun)}
		if err := client.CoordinationV1alpha1().NodeMaintenances().Delete(ctx, name, options); err != nil {
			return nil, fmt.Errorf("deleting NodeMaintenance %q: %w", name, err)
		}
	}
	o.printChange("nodemaintenance/"+name, "is canceled")
	o.printRemainingEvictions(ctx, client, nm)
	return nm, nil
}
