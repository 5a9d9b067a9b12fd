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
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/plaintext"
)

// checkUnderWay refuses to complete rollouts that are not done with some of their nodes, unless somebody insists:
// the end of the maintenance releases these nodes whether or not the work on them is done, and without a look
// whether they are healthy. It reads all of them before the first write. cancel only names such nodes.
func (o *endOptions) checkUnderWay(ctx context.Context, client kubernetes.Interface, names []string) error {
	var errs []error
	for _, name := range names {
		nm, err := client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, name, metav1.GetOptions{})
		if err != nil || nm.Spec.Rollout == nil || validateNodesOf(nm) != nil {
			continue // Whoever ends it says what is wrong.
		}
		s, err := readSnapshot(ctx, client, []*coordinationv1alpha1.NodeMaintenance{nm})
		if err != nil {
			return err
		}
		v := viewOf(nm, s)
		count, list := v.underWayText(o.clock.Now())
		switch {
		case count == 0:
		case o.force || !o.ending.asksForForce:
			fmt.Fprintln(o.ErrOut, plaintext.Line(fmt.Sprintf("Warning: NodeMaintenance %q releases %s with which it is not done%s", name, counted(count, "node", "nodes"), list)))
		default:
			errs = append(errs, failed("NodeMaintenance %q is not done with %s, which it would release as they are%s. When the work on one is done: kubectl maintenance complete %s NODE. To release them all the same, add --force",
				name, counted(count, "node", "nodes"), plaintext.Line(list), name))
		}
	}
	if len(errs) > 0 {
		errs = append(errs, failed("nothing was changed"))
	}
	return joined(errs)
}

// underWayText counts the nodes that the maintenance has begun with and not given back, and lists the first of
// them, those first that need attention, if the user may list nodes.
func (v *view) underWayText(now time.Time) (count int, list string) {
	var texts []string
	for _, node := range v.mostUrgent() {
		if !node.Phase.isUnderWay() {
			continue // It should be cordoned, and is not.
		}
		text := string(node.Phase)
		if why := node.unhealthyText(now); why != "" {
			text += ", " + why
		}
		texts = append(texts, fmt.Sprintf("%s (%s)", node.Name, text))
	}
	switch {
	case !v.hasPhases():
		return v.Rollout.AdmittedNodes, ""
	case len(texts) == 0:
		return 0, ""
	}
	return len(texts), ": " + strings.TrimSpace(listPods(texts[:min(maxHeldNodes, len(texts))], len(texts)))
}
