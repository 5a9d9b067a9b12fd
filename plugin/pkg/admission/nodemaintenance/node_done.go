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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// validateDone refuses a change of the annotation that says that the work of a maintenance on the
// node is done, unless the user may maintain the node: whoever may delete it.
func (p *Plugin) validateDone(ctx context.Context, a admission.Attributes) error {
	node, old := nodesOf(a)
	if node == nil || !p.enabled {
		return nil
	}
	before := ""
	if old != nil {
		before = old.Annotations[coordinationv1alpha1.NodeDoneAnnotation]
	}
	// It may be removed, as everything that has no effect any more.
	if done := node.Annotations[coordinationv1alpha1.NodeDoneAnnotation]; done == before || done == "" {
		return nil
	}
	decision, err := p.mayDelete(ctx, a, node.Name)
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("authorizing user %q to annotate node %q: %w", a.GetUserInfo().GetName(), node.Name, err))
	}
	return apierrors.NewForbidden(a.GetResource().GroupResource(), node.Name, fmt.Errorf("user %q cannot set the annotation %s: "+
		"ending the maintenance of a node requires the verb \"delete\" on it, like the NodeMaintenance", a.GetUserInfo().GetName(), coordinationv1alpha1.NodeDoneAnnotation))
}
