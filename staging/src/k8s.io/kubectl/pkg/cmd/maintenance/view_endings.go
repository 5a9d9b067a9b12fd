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
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/component-helpers/node/maintenance"
)

// undrainedReason says why the nodes of a maintenance do not count as drained; empty if they do.
// The selector is that at the start of the command.
func undrainedReason(v *view, selector *corev1.NodeSelector) string {
	switch {
	case v.Outcome == outcomeDeleted:
		return "was deleted: its nodes are released"
	case v.Outcome == outcomeReplaced:
		return "was deleted: its nodes are released; another maintenance has its name now"
	case v.nodeless && v.selectsByName():
		return "selects no node: none of those that it names exists"
	case v.nodeless:
		return "selects no node any more: its nodes were deleted, or have other labels"
	case v.Deleting:
		return "is being deleted: its nodes are released"
	case v.Rollout != nil && v.Rollout.own && v.Outcome == outcomeCompleted:
		return cmp.Or(v.Rollout.incompleteReason(v.SelectedNodes), v.skippedReason(), v.lostReason())
	case v.Rollout != nil && v.Rollout.own && v.Outcome != outcomeDone:
		return "is not done"
	case v.Outcome == outcomeCompleted && v.wasDrained:
		return "was drained and then completed: its nodes are released and may run pods again"
	case v.Outcome == outcomeCompleted:
		return "was completed before it was drained: its nodes are released"
	case v.Outcome != outcomeDrained && v.Outcome != outcomeDone:
		return "is not drained"
	case v.skippedReason() != "":
		return v.skippedReason()
	case !apiequality.Semantic.DeepEqual(v.selector, selector):
		return strings.ToLower("is "+string(v.Outcome)) + ", but its node selector has changed: nodes that it no longer selects are released"
	}
	return v.lostReason()
}

// lostReason names the nodes that were released before they were drained: their pods run. Empty if there are none.
func (v *view) lostReason() string {
	if len(v.lost) == 0 {
		return ""
	}
	return "has not drained " + listPods(v.lost[:min(maxHeldNodes, len(v.lost))], len(v.lost)) + ", which it no longer selects: released undrained"
}

// skippedReason names the nodes that were completed before they were drained: their pods run. Empty if there are
// none.
func (v *view) skippedReason() string {
	if v.Rollout == nil || v.Rollout.SkippedNodes == 0 {
		return ""
	}
	names := v.Rollout.skipped
	return fmt.Sprintf("has not drained %d of %s, which somebody has completed before: %s", v.Rollout.SkippedNodes, counted(v.SelectedNodes, "node", "nodes"),
		listPods(names[:min(maxHeldNodes, len(names))], v.Rollout.SkippedNodes))
}

// isEnded reports whether a maintenance is drained, or can no longer become drained.
func isEnded(v *view) bool { return v.Outcome != "" || v.Deleting || v.nodeless }

// incompleteReason says how many nodes a rollout had not given back one by one when it was completed;
// empty if none.
func (r *rolloutView) incompleteReason(nodes int) string {
	if r.DoneNodes >= nodes {
		return ""
	}
	return fmt.Sprintf("was completed when %d of %s were done: the others are released", r.DoneNodes, counted(nodes, "node", "nodes"))
}

// selectsByName reports whether all terms of the selector name a node.
func (v *view) selectsByName() bool {
	return v.selector != nil && !slices.ContainsFunc(v.selector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		_, named := maintenance.NamedNode(&term)
		return !named
	})
}
