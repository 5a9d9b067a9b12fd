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
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
)

// wantsTaint reports whether the node should get no new pods because it comes next. One that is
// claimed gets none anyway.
func wantsTaint(view *nodeView) bool { return view.waits && !view.claimed() && !view.keepsCordon }

// neededTaint reports whether the taint has to be added, removed, or corrected.
func neededTaint(s *nodeSync) bool {
	if !wantsTaint(s.view) {
		return hasTaint(s.node)
	}
	return !slices.ContainsFunc(s.node.Spec.Taints, func(t v1.Taint) bool {
		return isPlannedTaint(t) && t.Effect == v1.TaintEffectPreferNoSchedule && t.Value == ""
	})
}

func hasTaint(node *v1.Node) bool { return slices.ContainsFunc(node.Spec.Taints, isPlannedTaint) }

func isPlannedTaint(taint v1.Taint) bool { return taint.Key == coordinationv1alpha1.NodePlannedTaint }

// queueTaint queues the node if its taint has to be written. What follows does not wait for it.
func (c *Controller) queueTaint(s *nodeSync) bool {
	if neededTaint(s) {
		c.writes.Add(s.node.Name)
	}
	return true
}

// reconcileTaint adds or removes the taint.
func (c *Controller) reconcileTaint(ctx context.Context, s *nodeSync) error {
	if !neededTaint(s) {
		return nil
	}
	written, err := c.writer.setTaint(ctx, s.node, wantsTaint(s.view))
	if err != nil {
		return err
	}
	s.node = written
	c.enqueueAfterWrite(written)
	return nil
}

// taintsWith returns the taints with that of planned nodes, or without it. Another value or effect,
// which another client has given it, is corrected.
func taintsWith(taints []v1.Taint, planned bool) []v1.Taint {
	others := slices.DeleteFunc(slices.Clone(taints), isPlannedTaint)
	if !planned {
		return others
	}
	return append(others, v1.Taint{Key: coordinationv1alpha1.NodePlannedTaint, Effect: v1.TaintEffectPreferNoSchedule})
}
