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
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/admission"
	helpers "k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// validateKubelet allows a kubelet to write only the maintenance that it creates when its node shuts
// down. Others of its node belong to administrators: a kubelet must not end them. It must name the
// node: with labels, other clients could change which nodes are selected.
func validateKubelet(a admission.Attributes, nodeName string) error {
	if a.GetSubresource() != "" {
		return admission.NewForbidden(a, fmt.Errorf("node %q cannot write the subresource %q of a NodeMaintenance, which belongs to the node maintenance controller", nodeName, a.GetSubresource()))
	}
	maintenance, isMaintenance := a.GetObject().(*coordination.NodeMaintenance)
	old, isOld := a.GetOldObject().(*coordination.NodeMaintenance)
	switch a.GetOperation() {
	case admission.Create:
		isOld, old = true, nil
	case admission.Delete:
		isMaintenance, maintenance = true, nil
	}
	if !isMaintenance || !isOld {
		return unexpectedObjects(a)
	}
	for _, version := range []*coordination.NodeMaintenance{old, maintenance} {
		if version == nil {
			continue
		}
		selector, err := nodeSelectorOf(version)
		if err != nil {
			return err
		}
		if version.Name != helpers.ShutdownName(nodeName) || !helpers.SelectsOnly(selector, nodeName) {
			return forbidden(a, version, fmt.Errorf("node %q may create, change and delete only the NodeMaintenance %q of itself: spec.nodeSelector must have a single term "+
				"with only the matchFields requirement \"metadata.name In [%s]\", before and after a change", nodeName, helpers.ShutdownName(nodeName), nodeName))
		}
	}
	return validateShape(a, maintenance, old, nodeName)
}

// validateShape allows the maintenance of a shutdown only what a kubelet writes: it drains its node, and says
// in which order. With the rest of the API, it could keep others from draining it.
func validateShape(a admission.Attributes, maintenance, old *coordination.NodeMaintenance, nodeName string) error {
	if maintenance == nil {
		return nil
	}
	before := coordination.NodeMaintenanceSpec{}
	if old != nil {
		before = old.Spec
	}
	switch stage := maintenance.Spec.Stage; {
	case stage == coordination.NodeMaintenanceStageDrain, stage == before.Stage, old != nil && stage == coordination.NodeMaintenanceStageComplete:
	default:
		return forbidden(a, maintenance, fmt.Errorf("node %q cannot set spec.stage to %s: the NodeMaintenance of a shutdown is created in the stage %s and ends in %s",
			nodeName, stage, coordination.NodeMaintenanceStageDrain, coordination.NodeMaintenanceStageComplete))
	}
	for _, field := range []struct {
		name          string
		value, before any
	}{
		{"rollout", maintenance.Spec.Rollout, before.Rollout},
		{"podPolicies", maintenance.Spec.PodPolicies, before.PodPolicies},
		{"drainedWhen", maintenance.Spec.DrainedWhen, before.DrainedWhen},
		{"escalation", maintenance.Spec.Escalation, before.Escalation},
	} {
		if !apiequality.Semantic.DeepEqual(field.value, field.before) {
			return forbidden(a, maintenance, fmt.Errorf("node %q cannot set spec.%s: it is for administrators, and the NodeMaintenance of a shutdown has none", nodeName, field.name))
		}
	}
	return nil
}

// validateName keeps users from creating a maintenance that has the name of that of a shutdown: it would
// not wait for NodeMaintenanceBudgets, not even for a freeze.
func (p *Plugin) validateName(a admission.Attributes, maintenance *coordination.NodeMaintenance) error {
	if !p.limited || !helpers.IsShutdownName(maintenance.Name) {
		return nil
	}
	return forbidden(a, maintenance, fmt.Errorf("user %q cannot create a NodeMaintenance with such a name: it is that of the shutdowns of a node, "+
		"which the kubelet creates, and which waits for no NodeMaintenanceBudget: use another name", a.GetUserInfo().GetName()))
}
