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

package nodemaintenance

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
)

// controlPlaneLabel marks the nodes that run the control plane.
const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// needsWarning reports whether a change selects other nodes, or starts the maintenance. Other
// changes would only repeat a warning that the author has already seen.
func needsWarning(maintenance, old *coordination.NodeMaintenance) bool {
	switch {
	case maintenance == nil:
		return false
	case old == nil:
		return true
	case !apiequality.Semantic.DeepEqual(maintenance.Spec.NodeSelector, old.Spec.NodeSelector):
		return true
	}
	return old.Spec.Stage == coordination.NodeMaintenanceStageIdle && maintenance.Spec.Stage != old.Spec.Stage
}

// warn warns the user if no node is selected, or all nodes of the cluster, or all nodes of the
// control plane, or if nodes are named that do not exist. This includes clusters with a single node.
func (p *Plugin) warn(ctx context.Context, selection *selection) error {
	selected := selection.nodes
	if len(selected) == 0 {
		warning.AddWarning(ctx, "", "spec.nodeSelector currently selects no node; it will also select nodes that match it later")
		return nil
	}
	if len(selection.missing) > 0 {
		warning.AddWarning(ctx, "", fmt.Sprintf("spec.nodeSelector names %s, but there is no Node of that name now; one that is created later is selected too",
			describeNodes(sets.List(selection.missing))))
	}
	nodes, err := p.nodes.List(labels.Everything())
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("listing the nodes to compare them with spec.nodeSelector: %w", err))
	}
	if covers(selected, nodes) {
		warning.AddWarning(ctx, "", fmt.Sprintf("spec.nodeSelector selects all nodes of the cluster (%d): evicted pods cannot run on another node, and the cluster may not recover without intervention", len(nodes)))
	}
	var controlPlane []*v1.Node
	for _, node := range nodes {
		if _, labeled := node.Labels[controlPlaneLabel]; labeled {
			controlPlane = append(controlPlane, node)
		}
	}
	if len(controlPlane) > 0 && covers(selected, controlPlane) {
		warning.AddWarning(ctx, "", fmt.Sprintf("spec.nodeSelector selects all control-plane nodes (%d): draining them may stop the control plane, and with it the maintenance", len(controlPlane)))
	}
	return nil
}

// warnOfPriorities warns of entries of a new drain plan with the priority 0: an omitted priority looks
// the same, and probably means all pods of the type. The standard entries have others.
func warnOfPriorities(ctx context.Context, plan []core.DrainPlanEntry) {
	zero := slices.DeleteFunc(slices.Clone(plan), func(entry core.DrainPlanEntry) bool { return entry.PodPriority != 0 })
	if len(zero) == 0 {
		return
	}
	pods, more := string(zero[0].PodType)+" pods", ""
	if selector := zero[0].PodSelector; selector != nil {
		pods += " with " + metav1.FormatLabelSelector(selector)
	}
	if len(zero) > 1 {
		more = fmt.Sprintf(" (so is that of %d more entries)", len(zero)-1)
	}
	warning.AddWarning(ctx, "", fmt.Sprintf("spec.drainPlan: podPriority of the entry for %s is 0, as it is if it is omitted: the entry selects no pod of a higher priority%s", pods, more))
}

func covers(selected sets.Set[string], nodes []*v1.Node) bool {
	for _, node := range nodes {
		if !selected.Has(node.Name) {
			return false
		}
	}
	return true
}
