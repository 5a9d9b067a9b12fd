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
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	helpers "k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
)

// A kubelet may write only a maintenance of its own node, even if it may delete all nodes, as here.
func TestValidateKubelet(t *testing.T) {
	newMaintenance := func(options ...option) *coordination.NodeMaintenance {
		return newMaintenance(append([]option{func(m *coordination.NodeMaintenance) { m.Name = "graceful-shutdown-node-a1" }}, options...)...)
	}
	own := func(options ...option) *coordination.NodeMaintenance {
		return newMaintenance(append([]option{selecting(named("node-a1"))}, options...)...)
	}
	renamed := func(m *coordination.NodeMaintenance) { m.Name = "kernel-update" }
	foreign := newMaintenance(selecting(named("node-b1")))
	const denied = `node "node-a1" may create, change and delete only the NodeMaintenance "graceful-shutdown-node-a1" of itself: spec.nodeSelector must have a single term ` +
		`with only the matchFields requirement "metadata.name In [node-a1]"`
	tests := map[string]struct {
		maintenance, old *coordination.NodeMaintenance
		subresource      string
		wantErr          string
	}{
		"create":                           {maintenance: own()},
		"create in the stage Idle":         {maintenance: own(inStage(idle)), wantErr: `node "node-a1" cannot set spec.stage to Idle`},
		"create in the stage Complete":     {maintenance: own(inStage(complete)), wantErr: `node "node-a1" cannot set spec.stage to Complete`},
		"change to the stage Idle":         {old: own(), maintenance: own(inStage(idle)), wantErr: `node "node-a1" cannot set spec.stage to Idle`},
		"change another in the stage Idle": {old: own(inStage(idle)), maintenance: own(inStage(idle), withMetadata)},
		"create with policies":             {maintenance: own(skipping), wantErr: `node "node-a1" cannot set spec.podPolicies`},
		"add policies":                     {old: own(), maintenance: own(skipping), wantErr: `node "node-a1" cannot set spec.podPolicies`},
		"remove policies":                  {old: own(skipping), maintenance: own(), wantErr: `node "node-a1" cannot set spec.podPolicies`},
		"complete one with policies":       {old: own(skipping), maintenance: own(skipping, inStage(complete))},
		"create with a rollout": {maintenance: own(func(m *coordination.NodeMaintenance) {
			m.Spec.Rollout = &coordination.NodeMaintenanceRollout{}
		}), wantErr: `node "node-a1" cannot set spec.rollout`},
		"create with another end": {maintenance: own(func(m *coordination.NodeMaintenance) {
			m.Spec.DrainedWhen = &coordination.NodeMaintenanceDrainedWhen{}
		}), wantErr: `node "node-a1" cannot set spec.drainedWhen`},
		"change the stage":                     {old: own(), maintenance: own(inStage(complete))},
		"delete":                               {old: own()},
		"create with another name":             {maintenance: own(renamed), wantErr: denied},
		"create with the name of another node": {maintenance: own(func(m *coordination.NodeMaintenance) { m.Name = "graceful-shutdown-node-b1" }), wantErr: denied},
		"complete that of an administrator":    {old: own(renamed), maintenance: own(renamed, inStage(complete)), wantErr: denied},
		"delete that of an administrator":      {old: own(renamed), wantErr: denied},
		"create for another node":              {maintenance: foreign, wantErr: denied},
		"create for two nodes":                 {maintenance: newMaintenance(selecting(named("node-a1"), named("node-b1"))), wantErr: denied},
		"create twice for itself":              {maintenance: newMaintenance(selecting(named("node-a1"), named("node-a1"))), wantErr: denied},
		"create with a label":                  {maintenance: newMaintenance(selecting(both(zone("a"), named("node-a1")))), wantErr: denied},
		"create by labels":                     {maintenance: newMaintenance(), wantErr: denied},
		"create for all others":                {maintenance: newMaintenance(selecting(notNamed("node-a1"))), wantErr: denied},
		"create for nothing":                   {maintenance: newMaintenance(selecting()), wantErr: denied},
		"create without a selector":            {maintenance: newMaintenance(func(m *coordination.NodeMaintenance) { m.Spec.NodeSelector = nil }), wantErr: denied},
		"create with two names": {maintenance: own(func(m *coordination.NodeMaintenance) {
			m.Spec.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values = []string{"node-a1", "node-b1"}
		}), wantErr: denied},
		"create with another field": {maintenance: own(func(m *coordination.NodeMaintenance) {
			m.Spec.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Key = "metadata.namespace"
		}), wantErr: denied},
		"create with the name twice":           {maintenance: newMaintenance(selecting(both(named("node-a1"), named("node-a1")))), wantErr: denied},
		"change to another node":               {old: own(), maintenance: foreign, wantErr: denied},
		"change that of another to itself":     {old: foreign, maintenance: own(), wantErr: denied},
		"label that of another node":           {old: foreign, maintenance: newMaintenance(selecting(named("node-b1")), withMetadata), wantErr: denied},
		"complete that of another, deleted":    {old: newMaintenance(beingDeleted), maintenance: newMaintenance(beingDeleted, inStage(complete)), wantErr: denied},
		"delete that of another":               {old: foreign, wantErr: denied},
		"delete one of itself and others":      {old: newMaintenance(), wantErr: denied},
		"status of its own":                    {subresource: "status", old: own(), maintenance: own(), wantErr: `node "node-a1" cannot write the subresource "status"`},
		"status of another":                    {subresource: "status", old: foreign, maintenance: foreign, wantErr: `node "node-a1" cannot write the subresource "status"`},
		"delete one that is deleted by others": {old: newMaintenance(beingDeleted), wantErr: denied},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rights := newRights()
			rights.deletableNodes["system:node:node-a1"] = []string{""}
			plugin := newPlugin(t, twoZones(), rights)
			err := plugin.Validate(t.Context(), attributes(operationOf(test.maintenance, test.old), kubelet("node-a1"), test.subresource, test.maintenance, test.old), nil)
			switch {
			case test.wantErr == "" && err != nil:
				t.Errorf("unexpected error: %v", err)
			case test.wantErr != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.wantErr)):
				t.Errorf("error %v, must be forbidden: %q", err, test.wantErr)
			}
			if len(rights.asked) > 0 {
				t.Errorf("the authorizer was asked: %v", rights.asked)
			}
		})
	}
}

func skipping(m *coordination.NodeMaintenance) {
	m.Spec.PodPolicies = []coordination.NodeMaintenancePodPolicy{{Action: coordination.NodeMaintenancePodSkip}}
}

// A kubelet must not escalate, whatever verbs it has.
func TestKubeletMayNotEscalate(t *testing.T) {
	r := &mayEscalate{rights: newRights()}
	with := newMaintenance(selecting(named("node-a1")), escalating(step(60, core.MaintenanceEscalationIgnoreBudgets)), called("graceful-shutdown-node-a1"))
	err := newPlugin(t, twoZones(), r).Validate(t.Context(), attributes("CREATE", kubelet("node-a1"), "", with, nil), nil)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `node "node-a1" cannot set spec.escalation`) {
		t.Errorf("error %v, must be forbidden", err)
	}
}

// Budgets do not hold for shutdowns, so nobody but the kubelet may create a maintenance with such a name.
// One that is there may be changed and ended.
func TestNamesOfShutdowns(t *testing.T) {
	own := newMaintenance(selecting(named("node-a1")), called("graceful-shutdown-node-a1"))
	for name, test := range map[string]struct {
		who              user.Info
		gateOff          bool
		maintenance, old *coordination.NodeMaintenance
		wantErr          string
	}{
		"created by its kubelet":     {who: kubelet("node-a1"), maintenance: own},
		"created by another":         {who: userNamed(zoneAdmin), maintenance: own, wantErr: `user "zone-admin" cannot create a NodeMaintenance with such a name`},
		"created by whoever may all": {who: userNamed(admin), maintenance: own, wantErr: `user "admin" cannot create a NodeMaintenance with such a name`},
		"created by labels": {
			who: userNamed(zoneAdmin), maintenance: newMaintenance(called("graceful-shutdown-node-a1")), wantErr: "cannot create a NodeMaintenance with such a name",
		},
		"created without budgets": {who: userNamed(zoneAdmin), maintenance: own, gateOff: true},
		"completed":               {who: userNamed(zoneAdmin), old: own, maintenance: newMaintenance(selecting(named("node-a1")), called(own.Name), inStage(complete))},
		"deleted":                 {who: userNamed(zoneAdmin), old: own},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := newPlugin(t, twoZones(), newRights())
			featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.NodeMaintenanceBudgets, !test.gateOff)
			plugin.InspectFeatureGates(utilfeature.DefaultFeatureGate)
			err := plugin.Validate(t.Context(), attributes(operationOf(test.maintenance, test.old), test.who, "", test.maintenance, test.old), nil)
			switch {
			case test.wantErr == "" && err != nil:
				t.Errorf("unexpected error: %v", err)
			case test.wantErr != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.wantErr)):
				t.Errorf("error %v, must be forbidden: %q", err, test.wantErr)
			}
		})
	}
}

func called(name string) option {
	return func(maintenance *coordination.NodeMaintenance) { maintenance.Name = name }
}

// The name alone does not make a user a kubelet.
func TestUserWithTheNameOfANode(t *testing.T) {
	rights := newRights()
	plugin := newPlugin(t, twoZones(), rights)
	maintenance := newMaintenance(selecting(named("node-a1")))
	who := &user.DefaultInfo{Name: "system:node:node-a1"}
	err := plugin.Validate(t.Context(), attributes(operationOf(maintenance, nil), who, "", maintenance, nil), nil)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `user "system:node:node-a1" cannot delete node "node-a1"`) {
		t.Errorf("unexpected error: %v", err)
	}
}

// TestAnnotationsOfShutdowns verifies that the annotations by which a kubelet knows that it has to end a maintenance
// take what its spec takes, whoever may update it. Others are free, and those of other maintenances.
func TestAnnotationsOfShutdowns(t *testing.T) {
	// An annotation without a value is one as well.
	without, with := newMaintenance(), newMaintenance()
	without.Name, with.Name, with.Annotations = "graceful-shutdown-node-a1", "graceful-shutdown-node-a1", map[string]string{helpers.BootIDAnnotation: ""}
	if leavesShutdown(without, with) || leavesShutdown(with, without) || !leavesShutdown(with, with) {
		t.Error("an empty annotation may be added and removed")
	}
	annotated := func(annotations map[string]string) option {
		return func(m *coordination.NodeMaintenance) { m.Annotations = annotations }
	}
	named := func(name string) option { return func(m *coordination.NodeMaintenance) { m.Name = name } }
	const shutdown, endedBy, bootID = "graceful-shutdown-node-a1", helpers.EndedByAnnotation, helpers.BootIDAnnotation
	whole := map[string]string{endedBy: "kubelet", bootID: "boot-1", "note": "a"}
	for name, test := range map[string]struct {
		user, name string
		changed    map[string]string
		denied     bool
	}{
		"all removed":               {guest, shutdown, nil, true},
		"the kubelet removed":       {guest, shutdown, map[string]string{bootID: "boot-1", "note": "a"}, true},
		"another one ends it":       {guest, shutdown, map[string]string{endedBy: "me", bootID: "boot-1", "note": "a"}, true},
		"the boot removed":          {guest, shutdown, map[string]string{endedBy: "kubelet", "note": "a"}, true},
		"another boot":              {guest, shutdown, map[string]string{endedBy: "kubelet", bootID: "boot-2", "note": "a"}, true},
		"another annotation":        {guest, shutdown, map[string]string{endedBy: "kubelet", bootID: "boot-1"}, false},
		"of another maintenance":    {guest, "firmware", nil, false},
		"an administrator takes it": {zoneAdmin, shutdown, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := newPlugin(t, twoZones(), newRights())
			update := attributes(admission.Update, userNamed(test.user), "", newMaintenance(named(test.name), annotated(test.changed)), newMaintenance(named(test.name), annotated(whole)))
			if err := plugin.Validate(t.Context(), update, nil); apierrors.IsForbidden(err) != test.denied || err != nil && !test.denied {
				t.Errorf("denied: %v, want %t", err, test.denied)
			}
			if test.user != guest {
				return
			}
			// To have the kubelet end one of an administrator is the same.
			update = attributes(admission.Update, userNamed(test.user), "", newMaintenance(named(test.name), annotated(whole)), newMaintenance(named(test.name), annotated(test.changed)))
			if err := plugin.Validate(t.Context(), update, nil); apierrors.IsForbidden(err) != test.denied || err != nil && !test.denied {
				t.Errorf("the other way around, denied: %v, want %t", err, test.denied)
			}
		})
	}
}
