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
	"slices"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/node/maintenance"
)

// openMaintenance returns the maintenance that a second start of the same nodes resumes: the oldest
// open one with the same selector and, if one is given, that name. With two maintenances, both
// would have to be completed before the nodes are released. Nil if there is none, or if the user
// may not list them.
func openMaintenance(ctx context.Context, client kubernetes.Interface, wanted *coordinationv1alpha1.NodeMaintenance) (*coordinationv1alpha1.NodeMaintenance, error) {
	all, err := getMaintenances(ctx, client, nil)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var oldest *coordinationv1alpha1.NodeMaintenance
	for _, nm := range all {
		switch {
		case nm.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete || nm.DeletionTimestamp != nil:
		case wanted.Name != "" && nm.Name != wanted.Name:
		case !sameNodes(nm.Spec.NodeSelector, wanted.Spec.NodeSelector):
		case oldest == nil || nm.CreationTimestamp.Before(&oldest.CreationTimestamp):
			oldest = nm
		}
	}
	return oldest, nil
}

// sameNodes reports whether the selectors are equal, regardless of the order of their terms,
// requirements and values.
func sameNodes(a, b *corev1.NodeSelector) bool {
	return a != nil && b != nil && slices.Equal(termKeys(a), termKeys(b))
}

func termKeys(selector *corev1.NodeSelector) []string {
	var keys []string
	for _, term := range selector.NodeSelectorTerms {
		keys = append(keys, strings.Join(append(requirementKeys("label", term.MatchExpressions), requirementKeys("field", term.MatchFields)...), " and "))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func requirementKeys(kind string, requirements []corev1.NodeSelectorRequirement) []string {
	var keys []string
	for _, r := range requirements {
		values := slices.Clone(r.Values)
		slices.Sort(values)
		keys = append(keys, fmt.Sprintf("%s %s %s %q", kind, r.Key, r.Operator, slices.Compact(values)))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// resume moves an open maintenance to the requested stage, and says so. Other flags would be for a
// new maintenance.
func (o *startOptions) resume(ctx context.Context, client kubernetes.Interface, open *coordinationv1alpha1.NodeMaintenance) (*coordinationv1alpha1.NodeMaintenance, error) {
	if len(o.drainPlan) > 0 && !apiequality.Semantic.DeepEqual(maintenance.CompletePlan(o.drainPlan), maintenance.CompletePlan(open.Spec.DrainPlan)) {
		return nil, failed("NodeMaintenance %q of these nodes is open and has another drain plan, which is immutable: complete or cancel it first, or start another one with --name", open.Name)
	}
	if o.rolloutFlags.contradicts(o.rollout, open.Spec.Rollout) {
		return nil, failed("NodeMaintenance %q of these nodes is open, and its spec.rollout is not what %s asks for: %s", open.Name, strings.Join(o.rolloutFlags.given(), ", "), changeRollout(open))
	}
	if lacksEscalation(o.escalation, open.Spec.Escalation) {
		return nil, failed("NodeMaintenance %q of these nodes is open, and its spec.escalation is not what %s asks for: change it with \"kubectl edit nm %s\", or start another one with --name",
			open.Name, strings.Join(o.rolloutFlags.given(), ", "), open.Name)
	}
	hint := ""
	if o.name == "" {
		hint = " To start another one, use --name."
	}
	fmt.Fprintf(o.ErrOut, "NodeMaintenance %s of these nodes is open and is resumed.%s\n", open.Name, hint)
	if o.reason != "" && o.reason != open.Spec.Reason {
		fmt.Fprintf(o.ErrOut, "NodeMaintenance %s keeps its reason.\n", open.Name)
	}
	return o.move(ctx, client, open.Name)
}

// changeRollout says how to get another rollout than that of an open maintenance.
func changeRollout(open *coordinationv1alpha1.NodeMaintenance) string {
	if open.Spec.Rollout == nil {
		return "it has none, which cannot be changed. Complete or cancel it first, or start another one with --name"
	}
	return fmt.Sprintf("change it with \"kubectl edit nm %s\" (completeNodes and settle are immutable), \"kubectl maintenance pause\" or \"resume\", or start another one with --name", open.Name)
}

// requireNodes refuses labels that no node has: they are more likely a typo, and a drain without
// nodes would wait for ever.
func requireNodes(ctx context.Context, client kubernetes.Interface, selector string) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
	if err != nil {
		return fmt.Errorf("listing nodes (not needed with --allow-no-nodes): %w", err)
	}
	if len(nodes.Items) == 0 {
		return failed("no node matches --selector=%q; with --allow-no-nodes, the maintenance waits for such nodes", selector)
	}
	return nil
}
