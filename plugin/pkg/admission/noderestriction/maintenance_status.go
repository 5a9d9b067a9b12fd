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

package noderestriction

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/admission"
	api "k8s.io/kubernetes/pkg/apis/core"
)

// admitMaintenanceStatus prevents a kubelet from writing status.maintenanceStatus of its node: the
// field decides which pods have to leave the node, and the node maintenance controller never
// removes its entries.
//
// With the gate off, the registry drops the field if it is not stored yet, so it is not rejected
// here. A stored value is kept until the gate is on again.
func (p *Plugin) admitMaintenanceStatus(nodeName string, a admission.Attributes) error {
	node, isNode := a.GetObject().(*api.Node)
	if !isNode || a.GetOperation() != admission.Create && a.GetOperation() != admission.Update {
		return nil // The caller rejects unexpected objects.
	}
	var stored *api.MaintenanceStatus
	if old, isNode := a.GetOldObject().(*api.Node); isNode && a.GetOperation() == admission.Update {
		stored = old.Status.MaintenanceStatus
	}
	if apiequality.Semantic.DeepEqual(node.Status.MaintenanceStatus, stored) || !p.nodeMaintenanceEnabled && stored == nil {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("node %q is not allowed to modify status.maintenanceStatus, which belongs to the node maintenance controller", nodeName))
}
