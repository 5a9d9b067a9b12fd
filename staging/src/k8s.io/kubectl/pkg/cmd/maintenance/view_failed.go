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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

// failedNodes are the nodes of a rollout that did not come back in time, by name. The status of the maintenance has
// only the first names: a node that was created again has the name of one that has failed.
type failedNodes []*corev1.Node

// failedNodesOf returns those of the nodes that have failed to come back to the maintenance.
func failedNodesOf(nm *coordinationv1alpha1.NodeMaintenance, nodes []*corev1.Node) failedNodes {
	found := failedNodes(slices.DeleteFunc(slices.Clone(nodes), func(node *corev1.Node) bool {
		admission := maintenance.AdmissionOf(node, nm.UID)
		return admission == nil || admission.FailedTime == nil || admission.DoneTime != nil
	}))
	slices.SortFunc(found, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// halt reports whether these nodes halt the rollout: more of them are not acknowledged than may fail.
func (f failedNodes) halt(nm *coordinationv1alpha1.NodeMaintenance) bool {
	return isHalted(nm) && len(f.unacknowledged(nm)) > int(ptr.Deref(nm.Spec.Rollout.MaxFailedNodes, 0))
}

// unacknowledged returns those of the nodes that count for maxFailedNodes.
func (f failedNodes) unacknowledged(nm *coordinationv1alpha1.NodeMaintenance) failedNodes {
	return slices.DeleteFunc(slices.Clone(f), func(node *corev1.Node) bool {
		return slices.Contains(nm.Spec.Rollout.AcknowledgedNodeUIDs, node.UID)
	})
}

func (f failedNodes) uids() []types.UID {
	uids := make([]types.UID, 0, len(f))
	for _, node := range f {
		uids = append(uids, node.UID)
	}
	return uids
}

// names names the first of the nodes.
func (f failedNodes) names() string {
	var names []string
	for _, node := range f[:min(len(f), maxFailedNames)] {
		names = append(names, node.Name)
	}
	return listPods(names, len(f))
}

// maxFailedNames is how many failed nodes are named, as in the status of a maintenance.
const maxFailedNames = 10
