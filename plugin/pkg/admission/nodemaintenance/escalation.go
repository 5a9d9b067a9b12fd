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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
)

// validateEscalation returns an error unless the user may escalate, if a change lets pods be acted on
// that were not before, or earlier. old is nil for a creation.
func (p *Plugin) validateEscalation(ctx context.Context, a admission.Attributes, maintenance, old *coordination.NodeMaintenance) error {
	step := tightenedStep(maintenance, old)
	if step < 0 {
		return nil
	}
	user := a.GetUserInfo()
	decision, _, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User:            user,
		Verb:            coordinationv1alpha1.NodeMaintenanceEscalateVerb,
		APIGroup:        a.GetResource().Group,
		APIVersion:      a.GetResource().Version,
		Resource:        a.GetResource().Resource,
		Name:            maintenance.Name,
		ResourceRequest: true,
	})
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("authorizing user %q to set spec.escalation[%d]: %w", user.GetName(), step, err))
	}
	return forbidden(a, maintenance, fmt.Errorf("user %q cannot set spec.escalation[%d] (%s after %d seconds), or select further nodes while it is set: "+
		"this requires the verb %q on the resource %q in API group %q; without it, steps may be removed, and made later",
		user.GetName(), step, maintenance.Spec.Escalation[step].Action, maintenance.Spec.Escalation[step].AfterSeconds,
		coordinationv1alpha1.NodeMaintenanceEscalateVerb, a.GetResource().Resource, coordination.GroupName))
}

// tightenedStep returns the first step that acts on pods on which the old maintenance would not have
// acted, or earlier; -1 if there is none.
func tightenedStep(maintenance, old *coordination.NodeMaintenance) int {
	if maintenance == nil || len(maintenance.Spec.Escalation) == 0 {
		return -1
	}
	otherNodes := old == nil || selectsFurtherNodes(maintenance.Spec.NodeSelector, old.Spec.NodeSelector)
	for i := range maintenance.Spec.Escalation {
		if otherNodes || !isCovered(&maintenance.Spec.Escalation[i], old.Spec.Escalation) {
			return i
		}
	}
	return -1
}

// selectsFurtherNodes reports whether a selector may select nodes that the old one does not: it has a
// term that the old one lacks. To take nodes out gives their pods more time.
func selectsFurtherNodes(selector, old *core.NodeSelector) bool {
	if selector == nil || old == nil {
		return selector != old
	}
	// There may be thousands: each is compared by its text, in which an empty list is like none.
	text := func(term core.NodeSelectorTerm) string { return fmt.Sprintf("%q", term) }
	known := sets.New[string]()
	for _, term := range old.NodeSelectorTerms {
		known.Insert(text(term))
	}
	return slices.ContainsFunc(selector.NodeSelectorTerms, func(term core.NodeSelectorTerm) bool { return !known.Has(text(term)) })
}

// isCovered reports whether one of the steps acts as early on the same pods.
func isCovered(step *coordination.NodeMaintenanceEscalationStep, steps []coordination.NodeMaintenanceEscalationStep) bool {
	for i := range steps {
		other := &steps[i]
		if other.Action == step.Action && other.AfterSeconds <= step.AfterSeconds &&
			apiequality.Semantic.DeepEqual(other.PodSelector, step.PodSelector) &&
			apiequality.Semantic.DeepEqual(other.NamespaceSelector, step.NamespaceSelector) {
			return true
		}
	}
	return false
}
