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

package node

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
)

// nodeWith returns a node with this drain message.
func nodeWith(message string) *api.Node {
	node := &api.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", ResourceVersion: "1"}}
	if message != "" {
		node.Status.MaintenanceStatus = &api.MaintenanceStatus{DrainMessage: message}
	}
	return node
}

func withMaintenanceGate(t *testing.T, enabled bool) {
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: enabled, features.DeclarativeNodeMaintenance: enabled,
	})
}

func TestDropDisabledMaintenanceStatus(t *testing.T) {
	const draining, drained = "Draining", "Drained"
	ctx := context.Background()
	create := func(node, _ *api.Node) { Strategy.PrepareForCreate(ctx, node) }
	update := func(node, old *api.Node) { Strategy.PrepareForUpdate(ctx, node, old) }
	updateStatus := func(node, old *api.Node) { StatusStrategy.PrepareForUpdate(ctx, node, old) }

	tests := map[string]struct {
		prepare         func(node, old *api.Node)
		old, sent       string
		wantOff, wantOn string
	}{
		"created with it":                        {prepare: create, sent: draining, wantOn: draining},
		"created without it":                     {prepare: create},
		"status set":                             {prepare: updateStatus, sent: draining, wantOn: draining},
		"status changed while stored":            {prepare: updateStatus, old: draining, sent: drained, wantOff: drained, wantOn: drained},
		"status kept while stored":               {prepare: updateStatus, old: draining, sent: draining, wantOff: draining, wantOn: draining},
		"status removed":                         {prepare: updateStatus, old: draining},
		"not to be set by the main endpoint":     {prepare: update, sent: draining},
		"not to be changed by the main endpoint": {prepare: update, old: draining, sent: drained, wantOff: draining, wantOn: draining},
		"not to be removed by the main endpoint": {prepare: update, old: draining, wantOff: draining, wantOn: draining},
	}
	for name, test := range tests {
		for enabled, want := range map[bool]string{false: test.wantOff, true: test.wantOn} {
			t.Run(fmt.Sprintf("%s, gate %t", name, enabled), func(t *testing.T) {
				withMaintenanceGate(t, enabled)
				node, old := nodeWith(test.sent), nodeWith(test.old)
				test.prepare(node, old)
				if diff := cmp.Diff(nodeWith(want), node); diff != "" {
					t.Errorf("unexpected node (-want, +got):\n%s", diff)
				}
				if diff := cmp.Diff(nodeWith(test.old), old); diff != "" {
					t.Errorf("the stored node was changed (-before, +after):\n%s", diff)
				}
			})
		}
	}
}

// New values are validated wherever a status is written. An invalid stored value does not prevent
// other writes.
func TestValidateMaintenanceStatus(t *testing.T) {
	withMaintenanceGate(t, true)
	ctx := context.Background()
	valid, invalid := nodeWith("Draining"), nodeWith("Draining")
	invalid.Status.MaintenanceStatus.ActiveEvictionRequests = -1
	invalidWithLabel := invalid.DeepCopy()
	invalidWithLabel.Labels = map[string]string{"pool": "old"}
	heartbeat := invalid.DeepCopy()
	heartbeat.Status.Conditions = []api.NodeCondition{{Type: api.NodeReady, Status: api.ConditionTrue}}
	another := nodeWith("Draining")
	another.UID = "another"
	want := field.ErrorList{field.Invalid(field.NewPath("status", "maintenanceStatus", "activeEvictionRequests"), nil, "")}

	for name, test := range map[string]struct{ got, want field.ErrorList }{
		"valid at creation":                {got: Strategy.Validate(ctx, valid)},
		"invalid at creation":              {got: Strategy.Validate(ctx, invalid), want: want},
		"valid status":                     {got: StatusStrategy.ValidateUpdate(ctx, valid, nodeWith(""))},
		"invalid status":                   {got: StatusStrategy.ValidateUpdate(ctx, invalid, valid), want: want},
		"invalid status of a node without": {got: StatusStrategy.ValidateUpdate(ctx, invalid, nodeWith("")), want: want},
		"rejected by upstream": {
			got:  StatusStrategy.ValidateUpdate(ctx, another, valid),
			want: field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), nil, "")},
		},
		"stored invalid, and labelled":    {got: Strategy.ValidateUpdate(ctx, invalidWithLabel, invalid)},
		"stored invalid, and a heartbeat": {got: StatusStrategy.ValidateUpdate(ctx, heartbeat, invalid)},
		"stored invalid, and removed":     {got: StatusStrategy.ValidateUpdate(ctx, nodeWith(""), invalid)},
	} {
		t.Run(name, func(t *testing.T) {
			field.ErrorMatcher{}.ByType().ByField().Test(t, test.want, test.got)
		})
	}
}

// admittedTo returns a node with an admission of each of these maintenances.
func admittedTo(unclaimed bool, names ...string) *api.Node {
	node := nodeWith("Draining")
	node.Status.MaintenanceStatus.Unclaimed = unclaimed
	for _, name := range names {
		node.Status.MaintenanceStatus.Admissions = append(node.Status.MaintenanceStatus.Admissions, api.MaintenanceAdmission{MaintenanceName: name, MaintenanceUID: "uid"})
	}
	return node
}

// Admissions have a gate of their own. Stored ones stay: they say which nodes a maintenance has begun
// with, and which are not to be drained again.
func TestDropDisabledAdmissions(t *testing.T) {
	ctx := context.Background()
	create := func(node, _ *api.Node) { Strategy.PrepareForCreate(ctx, node) }
	updateStatus := func(node, old *api.Node) { StatusStrategy.PrepareForUpdate(ctx, node, old) }
	none := nodeWith("Draining")
	emptied := nodeWith("Draining")
	emptied.Status.MaintenanceStatus.EmptiedTime = &metav1.Time{Time: time.Unix(1, 0)}
	draining := nodeWith("Draining")
	draining.Status.MaintenanceStatus.DrainTargets = []api.DrainPlanEntry{{}}
	drainingEmptied := draining.DeepCopy()
	drainingEmptied.Status.MaintenanceStatus.EmptiedTime = emptied.Status.MaintenanceStatus.EmptiedTime
	for name, test := range map[string]struct {
		prepare                    func(node, old *api.Node)
		old, sent, wantOff, wantOn *api.Node
	}{
		"created with some":   {prepare: create, sent: admittedTo(true, "kernel"), wantOff: nodeWith(""), wantOn: admittedTo(true, "kernel")},
		"the first":           {prepare: updateStatus, old: none, sent: admittedTo(false, "kernel"), wantOff: none, wantOn: admittedTo(false, "kernel")},
		"with the status":     {prepare: updateStatus, old: nodeWith(""), sent: admittedTo(false, "kernel"), wantOff: none, wantOn: admittedTo(false, "kernel")},
		"alone":               {prepare: updateStatus, old: nodeWith(""), sent: admittedTo(true, "kernel"), wantOff: nodeWith(""), wantOn: admittedTo(true, "kernel")},
		"unclaimed":           {prepare: updateStatus, old: none, sent: admittedTo(true), wantOff: nodeWith(""), wantOn: admittedTo(true)},
		"unclaimed before":    {prepare: updateStatus, old: admittedTo(true), sent: admittedTo(true), wantOff: admittedTo(true), wantOn: admittedTo(true)},
		"kept":                {prepare: updateStatus, old: admittedTo(true, "kernel"), sent: admittedTo(true, "kernel"), wantOff: admittedTo(true, "kernel"), wantOn: admittedTo(true, "kernel")},
		"emptied":             {prepare: updateStatus, old: admittedTo(false, "kernel"), sent: emptied, wantOff: none, wantOn: emptied},
		"emptied in a drain":  {prepare: updateStatus, old: draining, sent: drainingEmptied, wantOff: drainingEmptied, wantOn: drainingEmptied},
		"emptied before":      {prepare: updateStatus, old: emptied, sent: emptied, wantOff: emptied, wantOn: emptied},
		"another one":         {prepare: updateStatus, old: admittedTo(false, "kernel"), sent: admittedTo(false, "kernel", "firmware"), wantOff: admittedTo(false, "kernel", "firmware"), wantOn: admittedTo(false, "kernel", "firmware")},
		"removed":             {prepare: updateStatus, old: admittedTo(true, "kernel"), sent: none, wantOff: none, wantOn: none},
		"removed with status": {prepare: updateStatus, old: admittedTo(true, "kernel"), sent: nodeWith(""), wantOff: nodeWith(""), wantOn: nodeWith("")},
	} {
		for enabled, want := range map[bool]*api.Node{false: test.wantOff, true: test.wantOn} {
			t.Run(fmt.Sprintf("%s, gate %t", name, enabled), func(t *testing.T) {
				withMaintenanceGate(t, true)
				featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.NodeMaintenanceBudgets, enabled)
				node, old := test.sent.DeepCopy(), test.old.DeepCopy()
				test.prepare(node, old)
				if diff := cmp.Diff(want, node); diff != "" {
					t.Errorf("unexpected node (-want, +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.old, old); diff != "" {
					t.Errorf("the stored node was changed (-before, +after):\n%s", diff)
				}
			})
		}
	}
}
