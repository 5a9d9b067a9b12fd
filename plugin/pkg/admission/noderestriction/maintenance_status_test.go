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
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/pkg/features"
)

func TestAdmitMaintenanceStatus(t *testing.T) {
	kubelet := &user.DefaultInfo{Name: "system:node:mynode", Groups: []string{user.NodesGroup}}
	controller := &user.DefaultInfo{Name: "controller"}
	node := func(status *api.MaintenanceStatus) *api.Node {
		return &api.Node{ObjectMeta: metav1.ObjectMeta{Name: "mynode"}, Status: api.NodeStatus{MaintenanceStatus: status}}
	}
	draining := &api.MaintenanceStatus{DrainTargets: []api.DrainPlanEntry{{PodPriority: 1, PodType: api.PodTypeDefault}}, DrainMessage: "Draining", PodsPendingEvictionRequest: 1}
	further := draining.DeepCopy()
	further.DrainTargets[0].PodPriority = 2
	const denied = `node "mynode" is not allowed to modify status.maintenanceStatus, which belongs to the node maintenance controller`
	tests := map[string]struct {
		user        user.Info // the kubelet if nil
		node, old   *api.Node
		subresource string
		gateOff     bool
		wantErr     bool
	}{
		"create without":                   {node: node(nil)},
		"create with":                      {node: node(draining), wantErr: true},
		"update keeps it":                  {node: node(draining.DeepCopy()), old: node(draining)},
		"update has none":                  {node: node(nil), old: node(nil)},
		"update sets it":                   {node: node(draining), old: node(nil), wantErr: true},
		"update changes it":                {node: node(further), old: node(draining), wantErr: true},
		"update removes it":                {node: node(nil), old: node(draining), wantErr: true},
		"status keeps it":                  {subresource: "status", node: node(draining.DeepCopy()), old: node(draining)},
		"status sets it":                   {subresource: "status", node: node(draining), old: node(nil), wantErr: true},
		"status changes it":                {subresource: "status", node: node(further), old: node(draining), wantErr: true},
		"status removes it":                {subresource: "status", node: node(nil), old: node(draining), wantErr: true},
		"delete":                           {old: node(draining)},
		"status, by the controller":        {user: controller, subresource: "status", node: node(further), old: node(draining)},
		"gate off, create with":            {gateOff: true, node: node(draining)},
		"gate off, status sets it":         {gateOff: true, subresource: "status", node: node(draining), old: node(nil)},
		"gate off, status keeps it":        {gateOff: true, subresource: "status", node: node(draining.DeepCopy()), old: node(draining)},
		"gate off, status changes it":      {gateOff: true, subresource: "status", node: node(further), old: node(draining), wantErr: true},
		"gate off, status removes it":      {gateOff: true, subresource: "status", node: node(nil), old: node(draining), wantErr: true},
		"gate off, update has none":        {gateOff: true, node: node(nil), old: node(nil)},
		"gate off, update by a controller": {gateOff: true, user: controller, node: node(nil), old: node(draining)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
				features.EvictionRequestAPI: !test.gateOff, features.DeclarativeNodeMaintenance: !test.gateOff,
			})
			plugin := NewPlugin(nodeidentifier.NewDefaultNodeIdentifier())
			plugin.InspectFeatureGates(utilfeature.DefaultFeatureGate)
			// Interfaces must stay nil without an object.
			var object, oldObject runtime.Object
			operation := admission.Update
			if test.node != nil {
				object = test.node
			} else {
				operation = admission.Delete
			}
			if test.old != nil {
				oldObject = test.old
			} else {
				operation = admission.Create
			}
			var who user.Info = kubelet
			if test.user != nil {
				who = test.user
			}
			err := plugin.Admit(t.Context(), admission.NewAttributesRecord(object, oldObject, api.Kind("Node").WithVersion("v1"), "", "mynode",
				api.Resource("nodes").WithVersion("v1"), test.subresource, operation, nil, false, who), nil)
			if !test.wantErr && err != nil || test.wantErr && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), denied)) {
				t.Errorf("error %v, must be forbidden: %t", err, test.wantErr)
			}
		})
	}
}
