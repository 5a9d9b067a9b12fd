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
	"io"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/plaintext"
)

const (
	// maxRemainingNodes is of how many nodes pods are read to name those that are still evicted.
	maxRemainingNodes = maxNodesOneByOne

	// maxRemainingPods is how many of these pods are named.
	maxRemainingPods = 10
)

// printRemainingEvictions names the pods that are evicted although the maintenance ends. No status
// has them, so it reads the pods of the nodes with active requests. Errors are ignored: the
// maintenance has ended, and the user may not have the permission.
func (o *endOptions) printRemainingEvictions(ctx context.Context, client kubernetes.Interface, nm *coordinationv1alpha1.NodeMaintenance) {
	if nm.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
		return
	}
	s := &podSnapshot{}
	if err := s.readNodes(ctx, client); err != nil {
		return
	}
	names, more := s.nodesWithRequests(nm)
	if len(names) == 0 {
		return
	}
	if err := s.readPods(ctx, client, sets.New(names...), podSelectors(names)); err != nil {
		return
	}
	forbidding, others := s.remainingEvictions(names)
	printRemaining(o.Out, forbidding, more, "its interceptor forbids cancellation", "their interceptors forbid cancellation")
	printRemaining(o.Out, others, more, "another client requests it", "other clients request it")
}

// printRemaining names some of the pods. With more, there may be others, on nodes that were not read.
func printRemaining(out io.Writer, pods []string, more bool, reason, reasons string) {
	atLeast := ""
	if more {
		atLeast = "at least "
	}
	switch {
	case len(pods) == 1:
		fmt.Fprintf(out, "%s1 pod will still be evicted, because %s: %s\n", atLeast, reason, plaintext.Line(pods[0]))
	case len(pods) > 1:
		fmt.Fprintf(out, "%s%d pods will still be evicted, because %s: %s\n", atLeast, len(pods), reasons,
			plaintext.Line(listPods(pods[:min(maxRemainingPods, len(pods))], len(pods))))
	}
}

// nodesWithRequests returns the first nodes of the maintenance on which evictions are requested, and
// whether there are more.
func (s *podSnapshot) nodesWithRequests(nm *coordinationv1alpha1.NodeMaintenance) (names []string, more bool) {
	for _, node := range s.selectedNodes(nm.Spec.NodeSelector) {
		status := node.Status.MaintenanceStatus
		switch {
		case status == nil || status.ActiveEvictionRequests == 0:
		case len(names) == maxRemainingNodes:
			return names, true
		default:
			names = append(names, node.Name)
		}
	}
	return names, false
}

// remainingEvictions returns the pods whose eviction does not end with the maintenance: their
// interceptor forbids it, or another client requests it too.
func (s *podSnapshot) remainingEvictions(nodes []string) (forbidding, others []string) {
	for _, node := range nodes {
		for _, pod := range s.pods[node] {
			request := s.requests[string(pod.UID)]
			if request == nil || evictionrequest.IsFinished(request.Status.Conditions) {
				continue
			}
			name := pod.Namespace + "/" + pod.Name
			switch {
			case request.Status.EvictionRequestCancellationPolicy == coordinationv1alpha1.EvictionRequestCancellationPolicyForbid:
				forbidding = append(forbidding, name)
			case hasOtherRequester(request):
				others = append(others, name)
			}
		}
	}
	return forbidding, others
}

func hasOtherRequester(request *coordinationv1alpha1.EvictionRequest) bool {
	return slices.ContainsFunc(request.Spec.Requesters, func(requester coordinationv1alpha1.Requester) bool {
		return requester.Name != coordinationv1alpha1.NodeMaintenanceRequester
	})
}
