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

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/apis/core"
)

// isNodeWrite reports whether a write may contain status.maintenanceStatus. It does not depend on
// the gate: a stored value must not be changed through a server with the gate off.
func isNodeWrite(a admission.Attributes) bool {
	return a.GetResource().GroupResource() == core.Resource("nodes") && (a.GetSubresource() == "" || a.GetSubresource() == "status")
}

// keepMaintenanceStatus restores the field if a write of the status lacks it. Clients that do not know
// the field lose it when they update the status. These updates must succeed, because they report that a
// node is unhealthy, and must not remove it, whatever the client may do otherwise: an administrator has
// all permissions, and with the field it is forgotten which maintenances are done with the node. Only a
// patch can say that the field is to be removed.
func (p *Plugin) keepMaintenanceStatus(ctx context.Context, a admission.Attributes) error {
	node, old := nodesOf(a)
	if node == nil || old == nil || a.GetSubresource() != "status" || node.Status.MaintenanceStatus != nil || old.Status.MaintenanceStatus == nil {
		return nil
	}
	if isReplacement(ctx) {
		node.Status.MaintenanceStatus = old.Status.MaintenanceStatus.DeepCopy()
		warning.AddWarning(ctx, "", "status.maintenanceStatus was kept, although the update omits it: use a patch, or a client that knows the field")
		return nil
	}
	allowed, err := p.mayControl(ctx, a, node)
	if allowed || err != nil {
		return err
	}
	node.Status.MaintenanceStatus = old.Status.MaintenanceStatus.DeepCopy()
	warning.AddWarning(ctx, "", fmt.Sprintf("status.maintenanceStatus was kept: removing it requires the verb %q on the resource %q", maintenance.ControlVerb, "nodes/status"))
	return nil
}

// isReplacement reports whether a client replaces the object by one of its own, as opposed to a patch.
func isReplacement(ctx context.Context) bool {
	info, found := genericapirequest.RequestInfoFrom(ctx)
	return found && info.Verb == "update"
}

// validateMaintenanceStatus allows a write of a node unless it changes status.maintenanceStatus and
// the user lacks the verb for that. The registry has already dropped what this endpoint, or a
// server with the gate off, does not store.
func (p *Plugin) validateMaintenanceStatus(ctx context.Context, a admission.Attributes) error {
	node, old := nodesOf(a)
	if node == nil {
		return nil
	}
	var stored *core.MaintenanceStatus
	if old != nil {
		stored = old.Status.MaintenanceStatus
	}
	if apiequality.Semantic.DeepEqual(node.Status.MaintenanceStatus, stored) {
		return nil // As in all heartbeats, which must cost nothing.
	}
	allowed, err := p.mayControl(ctx, a, node)
	if allowed || err != nil {
		return err
	}
	return apierrors.NewForbidden(a.GetResource().GroupResource(), node.Name, fmt.Errorf("user %q cannot change status.maintenanceStatus, "+
		"which belongs to the node maintenance controller: this requires the verb %q on the resource %q, which only controllers should have",
		a.GetUserInfo().GetName(), maintenance.ControlVerb, "nodes/status"))
}

// mayControl asks the authorizer whether the user may write the maintenance status of the node.
func (p *Plugin) mayControl(ctx context.Context, a admission.Attributes, node *core.Node) (bool, error) {
	decision, _, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User:            a.GetUserInfo(),
		Verb:            maintenance.ControlVerb,
		APIVersion:      "v1",
		Resource:        "nodes",
		Subresource:     "status",
		Name:            node.Name,
		ResourceRequest: true,
	})
	switch {
	case decision == authorizer.DecisionAllow:
		return true, nil
	case err != nil:
		return false, apierrors.NewInternalError(fmt.Errorf("authorizing user %q to change status.maintenanceStatus of node %q: %w", a.GetUserInfo().GetName(), node.Name, err))
	}
	return false, nil
}

// nodesOf returns the node that is created or updated, and the stored one. Objects of other types
// are left to others to reject.
func nodesOf(a admission.Attributes) (node, old *core.Node) {
	switch a.GetOperation() {
	case admission.Create:
		node, _ = a.GetObject().(*core.Node)
	case admission.Update:
		node, _ = a.GetObject().(*core.Node)
		old, _ = a.GetOldObject().(*core.Node)
	}
	return node, old
}
