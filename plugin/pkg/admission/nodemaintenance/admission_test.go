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
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	helpers "k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"
)

const (
	deniedZoneA    = `user "guest" cannot delete nodes "node-a1", "node-a2", selected by spec.nodeSelector`
	deniedZoneB    = `cannot delete nodes "node-b1", "node-b2", "node-b3", "node-b4", "node-b5" and 2 more, selected`
	deniedUnknown  = `cannot delete all nodes: spec.nodeSelector`
	deniedSecond   = `user "zone-admin" cannot delete all nodes: spec.nodeSelector.nodeSelectorTerms[1] currently selects no node`
	deniedValues   = `user "zone-admin" cannot delete all nodes: spec.nodeSelector.nodeSelectorTerms[0] accepts values of "`
	deniedOpen     = `user "zone-admin" cannot delete all nodes: spec.nodeSelector.nodeSelectorTerms[0] has neither a node name nor a label with the operator In`
	ownFinalizer   = coordination.NodeMaintenanceFinalizer
	otherFinalizer = "example.com/a"
)

var ownerRef = metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "node", UID: "1"}

// writeTest is a change of a maintenance and the expected result.
type writeTest struct {
	user             string // guest if empty
	maintenance, old *coordination.NodeMaintenance
	subresource      string
	errFor           map[string]error
	wantErr          string // none if empty
	// wantAsked are the nodes in the requests to the authorizer. "" stands for all nodes.
	wantAsked []string
}

func (test writeTest) run(t *testing.T) {
	rights := newRights()
	rights.errFor = test.errFor
	plugin := newPlugin(t, twoZones(), rights)
	username := test.user
	if username == "" {
		username = guest
	}
	maintenance, old := test.maintenance.DeepCopy(), test.old.DeepCopy()

	err := plugin.Validate(t.Context(), attributes(operationOf(maintenance, old), userNamed(username), test.subresource, test.maintenance, test.old), nil)

	isInternal := strings.Contains(test.wantErr, "is away")
	switch {
	case test.wantErr == "" && err != nil:
		t.Errorf("unexpected error: %v", err)
	case test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)):
		t.Errorf("error %v, must contain %q", err, test.wantErr)
	case isInternal && !apierrors.IsInternalError(err):
		t.Errorf("error %#v, must be an internal one", err)
	case test.wantErr != "" && !isInternal && !apierrors.IsForbidden(err):
		t.Errorf("error %#v, must be forbidden", err)
	}
	if test.wantAsked == nil {
		test.wantAsked = []string{}
	}
	if diff := cmp.Diff(test.wantAsked, rights.askedNames()); diff != "" {
		t.Errorf("nodes in the requests to the authorizer (-want +got):\n%s", diff)
	}
	if !cmp.Equal(maintenance, test.maintenance) || !cmp.Equal(old, test.old) {
		t.Errorf("validation changed an object")
	}
}

// A change requires the permission to delete the nodes that it affects.
func TestValidateNodes(t *testing.T) {
	all, zoneA := []string{""}, []string{"", "node-a1", "node-a2"}
	away := errors.New("webhook is away")
	tests := map[string]writeTest{
		"create, all rights":                 {user: admin, maintenance: newMaintenance(selecting(everywhere())), wantAsked: all},
		"create, right on each":              {user: zoneAdmin, maintenance: newMaintenance(), wantAsked: zoneA},
		"create, no right":                   {maintenance: newMaintenance(), wantErr: deniedZoneA, wantAsked: zoneA},
		"create in the stage Idle, no right": {maintenance: newMaintenance(inStage(idle)), wantErr: deniedZoneA, wantAsked: zoneA},
		"create as Complete, no right":       {maintenance: newMaintenance(inStage(complete)), wantErr: deniedZoneA, wantAsked: zoneA},
		"create, right on some": {
			user: zoneAdmin, maintenance: newMaintenance(selecting(zone("a", "b"))), wantErr: `user "zone-admin" ` + deniedZoneB,
			wantAsked: []string{"", "node-a1", "node-a2", "node-b1", "node-b2", "node-b3", "node-b4", "node-b5", "node-b6", "node-b7"},
		},
		"create, one node": {
			maintenance: newMaintenance(selecting(named("node-b1"))), wantErr: `user "guest" cannot delete node "node-b1", selected`, wantAsked: []string{"", "node-b1"},
		},
		"create, several names":          {user: zoneAdmin, maintenance: newMaintenance(selecting(named("node-a2"), named("node-a1"))), wantAsked: zoneA},
		"create, names and labels":       {user: zoneAdmin, maintenance: newMaintenance(selecting(named("node-b1"), zone("a"))), wantErr: `cannot delete node "node-b1"`, wantAsked: append(zoneA, "node-b1")},
		"create, name with a label":      {user: zoneAdmin, maintenance: newMaintenance(selecting(both(zone("a"), named("node-a1")))), wantAsked: []string{"", "node-a1"}},
		"create, name without the label": {maintenance: newMaintenance(selecting(both(zone("b"), named("node-a1")))), wantErr: `cannot delete node "node-a1"`, wantAsked: []string{"", "node-a1"}},
		"create, all but one":            {user: zoneAdmin, maintenance: newMaintenance(selecting(both(zone("a"), notNamed("node-a1")))), wantAsked: []string{"", "node-a2"}},
		"create, name of a future node":  {user: zoneAdmin, maintenance: newMaintenance(selecting(named("node-z"))), wantErr: `cannot delete node "node-z"`, wantAsked: []string{"", "node-z"}},
		"create, nothing matches":        {user: zoneAdmin, maintenance: newMaintenance(selecting(zone("z"))), wantErr: deniedUnknown, wantAsked: all},
		"create, nothing, all rights":    {user: admin, maintenance: newMaintenance(selecting(zone("z"))), wantAsked: all},
		"create, an own node and future nodes": {
			user: zoneAdmin, maintenance: newMaintenance(selecting(named("node-a1"), zone("z"))), wantErr: deniedSecond, wantAsked: all,
		},
		"create, the own zone and a future zone": {
			user: zoneAdmin, maintenance: newMaintenance(selecting(zone("a"), zone("z"))), wantErr: deniedSecond, wantAsked: all,
		},
		"create, future nodes and their name": {
			user: zoneAdmin, maintenance: newMaintenance(selecting(named("node-a1"), both(zone("z"), named("node-a2")))), wantAsked: zoneA,
		},
		"create, future nodes as Complete": {
			user: zoneAdmin, maintenance: newMaintenance(selecting(zone("a"), zone("z")), inStage(complete)), wantAsked: zoneA,
		},
		"create, future nodes, all rights": {user: admin, maintenance: newMaintenance(selecting(zone("a"), zone("z"))), wantAsked: all},
		"create, a value that no node has": {
			user: zoneAdmin, maintenance: newMaintenance(selecting(zone("a", "z"))), wantAsked: all,
			wantErr: `cannot delete all nodes: spec.nodeSelector.nodeSelectorTerms[0] accepts values of "topology.kubernetes.io/zone" that no selected node currently has`,
		},
		"create, a value that no node has, all rights":  {user: admin, maintenance: newMaintenance(selecting(zone("a", "z"))), wantAsked: all},
		"create, a value that no node has, as Complete": {user: zoneAdmin, maintenance: newMaintenance(selecting(zone("a", "z")), inStage(complete)), wantAsked: zoneA},
		"create, a value twice":                         {user: zoneAdmin, maintenance: newMaintenance(selecting(zone("a", "a"))), wantAsked: zoneA},
		"create, values of two keys, each selected":     {user: zoneAdmin, maintenance: newMaintenance(selecting(both(zone("a"), hostnames("node-a1", "node-a2")))), wantAsked: zoneA},
		"create, values of two keys, together on none":  {user: zoneAdmin, maintenance: newMaintenance(selecting(both(zone("a", "b"), hostnames("node-a1", "node-b1")))), wantErr: deniedValues + `kubernetes.io/hostname, topology.kubernetes.io/zone" that`, wantAsked: all},
		"create, values that two requirements share":    {user: zoneAdmin, maintenance: newMaintenance(selecting(both(zone("a", "z"), zone("a", "y")))), wantAsked: zoneA},
		"create, values that no requirements share":     {user: zoneAdmin, maintenance: newMaintenance(selecting(both(zone("a"), zone("b")))), wantErr: deniedUnknown, wantAsked: all},
		"create, values beside excluded names": {
			user: zoneAdmin, maintenance: newMaintenance(selecting(both(zone("a", "z"), notNamed("node-a1")))), wantErr: deniedValues, wantAsked: all,
		},
		"create, values that two terms share":   {user: zoneAdmin, maintenance: newMaintenance(selecting(hostnames("node-a1", "node-a2"), hostnames("node-a2", "node-a1"))), wantAsked: zoneA},
		"create, a term that no node can match": {user: zoneAdmin, maintenance: newMaintenance(selecting(zone("a"), both(zone("a"), zone("b")))), wantAsked: zoneA},
		"create, label differs":                 {user: zoneAdmin, maintenance: newMaintenance(selecting(having(core.NodeSelectorOpNotIn, "b"))), wantErr: deniedOpen, wantAsked: all},
		"create, label exists":                  {user: zoneAdmin, maintenance: newMaintenance(selecting(having(core.NodeSelectorOpExists))), wantErr: deniedOpen, wantAsked: all},
		"create, label does not exist":          {user: zoneAdmin, maintenance: newMaintenance(selecting(having(core.NodeSelectorOpDoesNotExist))), wantErr: deniedUnknown, wantAsked: all},
		"create, all but a name":                {user: zoneAdmin, maintenance: newMaintenance(selecting(notNamed("node-a1"))), wantErr: deniedOpen, wantAsked: all},
		"create, label differs, all rights":     {user: admin, maintenance: newMaintenance(selecting(having(core.NodeSelectorOpNotIn, "b"))), wantAsked: all},
		"create, In beside others":              {user: zoneAdmin, maintenance: newMaintenance(selecting(both(zone("a"), having(core.NodeSelectorOpNotIn, "b")))), wantAsked: zoneA},
		"create, a name beside others":          {user: zoneAdmin, maintenance: newMaintenance(selecting(both(named("node-a1"), having(core.NodeSelectorOpNotIn, "b")))), wantAsked: []string{"", "node-a1"}},
		"create, the second term is open":       {user: zoneAdmin, maintenance: newMaintenance(selecting(zone("a"), having(core.NodeSelectorOpNotIn, "b"))), wantErr: "nodeSelectorTerms[1] has neither a node name", wantAsked: all},
		"widen to a value that no node has":     {user: zoneAdmin, old: newMaintenance(), maintenance: newMaintenance(selecting(zone("a", "z"))), wantErr: deniedValues, wantAsked: all},
		"remove a value that no node has":       {user: zoneAdmin, old: newMaintenance(selecting(zone("a", "z"))), maintenance: newMaintenance(), wantAsked: zoneA},
		"create, two terms for the same nodes": {
			user: zoneAdmin, maintenance: newMaintenance(selecting(zone("a"), both(zone("a"), notNamed("node-a1")))), wantAsked: zoneA,
		},
		"widen to future nodes": {
			user: zoneAdmin, old: newMaintenance(), maintenance: newMaintenance(selecting(zone("a"), zone("z"))), wantErr: deniedSecond, wantAsked: all,
		},
		"remove nodes that never existed": {
			user: zoneAdmin, old: newMaintenance(selecting(zone("a"), zone("z"))), maintenance: newMaintenance(), wantAsked: zoneA,
		},
		"delete one with nodes that never existed": {user: zoneAdmin, old: newMaintenance(selecting(zone("a"), zone("z"))), wantAsked: zoneA},
		"rights unknown, one term matches": {
			maintenance: newMaintenance(selecting(zone("a"), zone("z"))), errFor: map[string]error{"": away}, wantErr: "webhook is away", wantAsked: all,
		},
		"create, a field that nodes lack": {
			user: zoneAdmin, wantErr: deniedUnknown, wantAsked: all,
			maintenance: newMaintenance(selecting(named("node-a1")), func(m *coordination.NodeMaintenance) {
				m.Spec.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Key = "metadata.namespace"
			}),
		},
		"create, an empty term": {
			user: zoneAdmin, maintenance: newMaintenance(selecting(core.NodeSelectorTerm{}, zone("a"))), wantAsked: zoneA,
		},
		"create, an invalid term": {
			user: zoneAdmin, maintenance: newMaintenance(selecting(zone(), zone("a"))), wantAsked: zoneA,
		},
		"create without a selector": {maintenance: newMaintenance(func(m *coordination.NodeMaintenance) { m.Spec.NodeSelector = nil }), wantErr: deniedUnknown, wantAsked: all},

		"rights on all unknown, each allowed": {user: zoneAdmin, maintenance: newMaintenance(), errFor: map[string]error{"": away}, wantAsked: zoneA},
		"rights on one unknown":               {user: zoneAdmin, maintenance: newMaintenance(), errFor: map[string]error{"node-a1": away}, wantErr: "webhook is away", wantAsked: []string{"", "node-a1"}},
		"rights unknown, nothing matches":     {maintenance: newMaintenance(selecting(zone("z"))), errFor: map[string]error{"": away}, wantErr: "webhook is away", wantAsked: all},

		"widen to nodes without a right":  {user: zoneAdmin, old: newMaintenance(), maintenance: newMaintenance(selecting(zone("a", "b"))), wantErr: deniedZoneB, wantAsked: []string{"", "node-a1", "node-a2", "node-b1", "node-b2", "node-b3", "node-b4", "node-b5", "node-b6", "node-b7"}},
		"remove nodes without a right":    {user: zoneAdmin, old: newMaintenance(selecting(zone("a"), named("node-b1"))), maintenance: newMaintenance(), wantErr: `cannot delete node "node-b1"`, wantAsked: append(zoneA, "node-b1")},
		"narrow within the right":         {user: zoneAdmin, old: newMaintenance(), maintenance: newMaintenance(selecting(named("node-a1"))), wantAsked: zoneA},
		"the next stage, with the right":  {user: zoneAdmin, old: newMaintenance(inStage(cordon)), maintenance: newMaintenance(), wantAsked: zoneA},
		"the next stage, without":         {old: newMaintenance(inStage(cordon)), maintenance: newMaintenance(), wantErr: deniedZoneA, wantAsked: zoneA},
		"complete, without":               {old: newMaintenance(), maintenance: newMaintenance(inStage(complete)), wantErr: deniedZoneA, wantAsked: zoneA},
		"change the reason, without":      {old: newMaintenance(), maintenance: newMaintenance(withReason("x")), wantErr: deniedZoneA, wantAsked: zoneA},
		"change the plan, without":        {old: newMaintenance(), maintenance: newMaintenance(withPlan(core.DrainPlanEntry{PodPriority: 1})), wantErr: deniedZoneA, wantAsked: zoneA},
		"wait for unknown nodes":          {old: newMaintenance(selecting(zone("y"))), maintenance: newMaintenance(selecting(zone("z"))), wantErr: deniedUnknown, wantAsked: all},
		"keep waiting for unknown nodes":  {user: zoneAdmin, old: newMaintenance(selecting(zone("z")), inStage(idle)), maintenance: newMaintenance(selecting(zone("z"))), wantErr: deniedUnknown, wantAsked: all},
		"complete one without nodes":      {old: newMaintenance(selecting(zone("z"))), maintenance: newMaintenance(selecting(zone("z")), inStage(complete))},
		"deselect all nodes":              {user: zoneAdmin, old: newMaintenance(), maintenance: newMaintenance(selecting(zone("z"))), wantErr: deniedUnknown, wantAsked: all},
		"delete, all rights":              {user: admin, old: newMaintenance(), wantAsked: all},
		"delete, right on each":           {user: zoneAdmin, old: newMaintenance(), wantAsked: zoneA},
		"delete, no right":                {old: newMaintenance(), wantErr: deniedZoneA, wantAsked: zoneA},
		"delete a finished one, no right": {old: newMaintenance(inStage(complete)), wantErr: deniedZoneA, wantAsked: zoneA},
		"delete one without nodes":        {old: newMaintenance(selecting(zone("z")))},
		"delete one of a missing node":    {old: newMaintenance(selecting(named("node-z"))), wantErr: `cannot delete node "node-z"`, wantAsked: []string{"", "node-z"}},
	}
	for name, test := range tests {
		t.Run(name, test.run)
	}
}

// The controller may not delete nodes: its writes are allowed, and similar ones are denied.
// appliedBy has a field manager own fields that it has applied.
func appliedBy(manager, fields string) func(*coordination.NodeMaintenance) {
	return func(m *coordination.NodeMaintenance) {
		m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "coordination.k8s.io/v1alpha1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		})
	}
}

func TestValidateHousekeeping(t *testing.T) {
	zoneA := []string{"", "node-a1", "node-a2"}
	blocking := ownerRef
	blocking.BlockOwnerDeletion = ptr.To(true)
	renamed := ownerRef
	renamed.Name = "other"
	free := map[string]writeTest{
		"nothing":                         {old: newMaintenance(), maintenance: newMaintenance(asWritten)},
		"labels and annotations":          {old: newMaintenance(), maintenance: newMaintenance(withMetadata, asWritten)},
		"labels and annotations removed":  {old: newMaintenance(withMetadata), maintenance: newMaintenance()},
		"status":                          {subresource: "status", old: newMaintenance(), maintenance: newMaintenance(inStage(complete))},
		"finalizer added":                 {old: newMaintenance(), maintenance: newMaintenance(withFinalizers(ownFinalizer), asWritten)},
		"finalizer added to another":      {old: newMaintenance(withFinalizers(otherFinalizer)), maintenance: newMaintenance(withFinalizers(otherFinalizer, ownFinalizer))},
		"finalizer removed when Complete": {old: newMaintenance(inStage(complete), withFinalizers(ownFinalizer)), maintenance: newMaintenance(inStage(complete))},
		"finalizer removed while deleted": {old: newMaintenance(inStage(idle), withFinalizers(ownFinalizer), beingDeleted), maintenance: newMaintenance(inStage(idle), beingDeleted)},
		"finalizers change places":        {old: newMaintenance(withFinalizers(ownFinalizer, otherFinalizer)), maintenance: newMaintenance(withFinalizers(otherFinalizer, ownFinalizer))},
		"deletion makes it Complete":      {old: newMaintenance(beingDeleted, withFinalizers(ownFinalizer)), maintenance: newMaintenance(beingDeleted, withFinalizers(ownFinalizer), inStage(complete))},
		"owner removed":                   {old: newMaintenance(withOwners(ownerRef)), maintenance: newMaintenance()},
		"status applied":                  {old: newMaintenance(), maintenance: newMaintenance(appliedBy("gitops", `{"f:metadata":{"f:labels":{"f:a":{}}}}`))},
		"deletion takes over the stage":   {old: newMaintenance(beingDeleted, appliedBy("gitops", `{"f:spec":{"f:reason":{},"f:stage":{}}}`)), maintenance: newMaintenance(beingDeleted, inStage(complete), appliedBy("gitops", `{"f:spec":{"f:reason":{}}}`))},
		"applied again":                   {old: newMaintenance(appliedBy("gitops", `{"f:spec":{"f:reason":{}}}`)), maintenance: newMaintenance(appliedBy("gitops", `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:reason":{}}}`))},
		"owner no longer blocking":        {old: newMaintenance(withOwners(blocking)), maintenance: newMaintenance(withOwners(ownerRef))},
	}
	for name, test := range free {
		t.Run("free: "+name, test.run)
	}
	denied := map[string]writeTest{
		"finalizer added while Idle":               {old: newMaintenance(inStage(idle)), maintenance: newMaintenance(inStage(idle), withFinalizers(ownFinalizer))},
		"finalizer removed while Idle":             {old: newMaintenance(inStage(idle), withFinalizers(ownFinalizer)), maintenance: newMaintenance(inStage(idle))},
		"finalizer removed in mid-drain":           {old: newMaintenance(withFinalizers(ownFinalizer)), maintenance: newMaintenance()},
		"finalizer removed in mid-drain, deleted":  {old: newMaintenance(withFinalizers(ownFinalizer), beingDeleted), maintenance: newMaintenance(beingDeleted)},
		"another finalizer added":                  {old: newMaintenance(), maintenance: newMaintenance(withFinalizers(otherFinalizer))},
		"another finalizer removed":                {old: newMaintenance(withFinalizers(otherFinalizer)), maintenance: newMaintenance()},
		"another finalizer removed when Complete":  {old: newMaintenance(inStage(complete), withFinalizers(ownFinalizer, otherFinalizer)), maintenance: newMaintenance(inStage(complete))},
		"field assigned to another applier":        {old: newMaintenance(appliedBy("kubectl", `{"f:spec":{"f:rollout":{"f:paused":{}}}}`)), maintenance: newMaintenance(appliedBy("gitops", `{"f:spec":{"f:rollout":{"f:paused":{}}}}`))},
		"field assigned to one more applier":       {old: newMaintenance(), maintenance: newMaintenance(appliedBy("gitops", `{"f:spec":{"f:rollout":{"f:maxConcurrent":{}}}}`))},
		"stage assigned to another applier":        {old: newMaintenance(beingDeleted), maintenance: newMaintenance(beingDeleted, appliedBy("gitops", `{"f:spec":{"f:stage":{}}}`))},
		"appliers that cannot be read":             {old: newMaintenance(), maintenance: newMaintenance(appliedBy("gitops", `{"f:spec":`))},
		"owner added":                              {old: newMaintenance(), maintenance: newMaintenance(withOwners(ownerRef))},
		"owner is replaced":                        {old: newMaintenance(withOwners(ownerRef)), maintenance: newMaintenance(withOwners(renamed))},
		"Complete without deletion":                {old: newMaintenance(withFinalizers(ownFinalizer)), maintenance: newMaintenance(withFinalizers(ownFinalizer), inStage(complete))},
		"deletion with another stage":              {old: newMaintenance(inStage(cordon), beingDeleted), maintenance: newMaintenance(beingDeleted)},
		"deletion, Complete and another reason":    {old: newMaintenance(beingDeleted), maintenance: newMaintenance(beingDeleted, inStage(complete), withReason("x"))},
		"deletion, Complete and another selector":  {old: newMaintenance(beingDeleted), maintenance: newMaintenance(beingDeleted, inStage(complete), selecting(named("node-a1")))},
		"deletion, Complete and another finalizer": {old: newMaintenance(beingDeleted, withFinalizers(otherFinalizer)), maintenance: newMaintenance(beingDeleted, inStage(complete))},
		"forged deletion timestamp":                {old: newMaintenance(), maintenance: newMaintenance(beingDeleted, inStage(complete))},
		"another selector beside labels":           {old: newMaintenance(), maintenance: newMaintenance(withMetadata, selecting(named("node-a1")))},
	}
	for name, test := range denied {
		test.wantErr, test.wantAsked = deniedZoneA, zoneA
		t.Run("denied: "+name, test.run)
	}
}

// For a user who may delete all nodes, the plugin sends only one request to the authorizer.
func TestQuestions(t *testing.T) {
	rights := newRights()
	plugin := newPlugin(t, twoZones(), rights)
	if err := plugin.Validate(t.Context(), attributes(admission.Create, userNamed(admin), "", newMaintenance(selecting(everywhere())), nil), nil); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	want := []authorizer.Attributes{authorizer.AttributesRecord{User: userNamed(admin), Verb: "delete", APIVersion: "v1", Resource: "nodes", ResourceRequest: true}}
	if diff := cmp.Diff(want, rights.asked); diff != "" {
		t.Errorf("requests to the authorizer (-want +got):\n%s", diff)
	}
}

// The error names the missing permission, the nodes and the object, also in the deletion of a
// collection.
func TestForbiddenMessage(t *testing.T) {
	plugin := newPlugin(t, twoZones(), newRights())
	err := plugin.Validate(t.Context(), attributes(admission.Delete, userNamed(guest), "", nil, newMaintenance(selecting(zone("b")))), nil)
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		t.Fatalf("unexpected error: %v", err)
	}
	want := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Details: &metav1.StatusDetails{Group: "coordination.k8s.io", Kind: "nodemaintenances", Name: maintenanceName},
		Message: `nodemaintenances.coordination.k8s.io "firmware" is forbidden: user "guest" cannot delete nodes "node-b1", "node-b2", "node-b3", "node-b4", "node-b5" and 2 more, ` +
			`selected by spec.nodeSelector: creating, changing or deleting a NodeMaintenance requires the verb "delete" on each of its nodes`,
	}
	if diff := cmp.Diff(want, status.ErrStatus); diff != "" {
		t.Errorf("unexpected status (-want +got):\n%s", diff)
	}
}

func TestNodesNotKnownYet(t *testing.T) {
	rights := newRights()
	plugin := newPlugin(t, twoZones(), rights)
	plugin.nodesSynced, plugin.syncTimeout = func() bool { return false }, 0
	create := attributes(admission.Create, userNamed(admin), "", newMaintenance(), nil)
	if err := plugin.Validate(t.Context(), create, nil); !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "because its node cache has not synced") {
		t.Errorf("unexpected error: %v", err)
	}
	if len(rights.asked) > 0 {
		t.Errorf("the authorizer was asked %v", rights.asked)
	}
	housekeeping := attributes(admission.Update, userNamed(guest), "", newMaintenance(withMetadata), newMaintenance())
	if err := plugin.Validate(t.Context(), housekeeping, nil); err != nil {
		t.Errorf("an update of metadata waits for the node cache: %v", err)
	}
	// The cache syncs after the first check.
	asked := 0
	plugin.nodesSynced = func() bool { asked++; return asked > 1 }
	plugin.syncTimeout = syncTimeout
	if err := plugin.Validate(t.Context(), create, nil); err != nil {
		t.Errorf("did not wait: %v", err)
	}
}

// Requests for other objects, and all requests while the gate is off, are neither authorized nor
// changed.
func TestOtherRequestsAreIgnored(t *testing.T) {
	node := admission.NewAttributesRecord(&core.Node{}, nil, core.Kind("Node").WithVersion("v1"), "", "node-a1",
		core.Resource("nodes").WithVersion("v1"), "", admission.Create, nil, false, userNamed(guest))
	foreign := admission.NewAttributesRecord(newMaintenance(), nil, coordination.Kind("NodeMaintenance").WithVersion("v1"), "", maintenanceName,
		core.Resource("nodemaintenances").WithVersion("v1"), "", admission.Create, nil, false, userNamed(guest))
	for name, test := range map[string]struct {
		disabled   bool
		attributes admission.Attributes
	}{
		"gate off":                {true, attributes(admission.Create, userNamed(guest), "", newMaintenance(), nil)},
		"gate off, kubelet":       {true, attributes(admission.Create, kubelet("node-b1"), "", newMaintenance(), nil)},
		"another kind":            {false, node},
		"a kind of another group": {false, foreign},
		"status, by a user":       {false, attributes(admission.Update, userNamed(guest), "status", newMaintenance(), newMaintenance())},
	} {
		t.Run(name, func(t *testing.T) {
			rights := newRights()
			plugin := newPlugin(t, twoZones(), rights)
			plugin.enabled = !test.disabled
			before := test.attributes.GetObject().DeepCopyObject()
			if err := plugin.Admit(t.Context(), test.attributes, nil); err != nil {
				t.Errorf("unexpected error of Admit: %v", err)
			}
			if err := plugin.Validate(t.Context(), test.attributes, nil); err != nil {
				t.Errorf("unexpected error: %v", err)
			}
			if len(rights.asked) > 0 {
				t.Errorf("the authorizer was asked %v", rights.asked)
			}
			if diff := cmp.Diff(before, test.attributes.GetObject()); diff != "" {
				t.Errorf("the object changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestUnexpectedObjects(t *testing.T) {
	plugin := newPlugin(t, twoZones(), newRights())
	for _, who := range []string{admin, "system:node:node-a1"} {
		info := userNamed(who)
		if who != admin {
			info = kubelet("node-a1")
		}
		for name, unexpected := range map[string]admission.Attributes{
			"create without an object":     attributes(admission.Create, info, "", nil, nil),
			"update without an object":     attributes(admission.Update, info, "", nil, newMaintenance(selecting(named("node-a1")))),
			"update without an old object": attributes(admission.Update, info, "", newMaintenance(selecting(named("node-a1"))), nil),
			"delete without an old object": attributes(admission.Delete, info, "", nil, nil),
		} {
			t.Run(who+" "+name, func(t *testing.T) {
				if err := plugin.Admit(t.Context(), unexpected, nil); err != nil {
					t.Errorf("unexpected error of Admit: %v", err)
				}
				if err := plugin.Validate(t.Context(), unexpected, nil); !apierrors.IsBadRequest(err) {
					t.Errorf("error %v, must be a bad request", err)
				}
			})
		}
	}
}

func TestValidateInitialization(t *testing.T) {
	tests := map[string]struct {
		enabled, inspected bool
		rights             authorizer.UnconditionalAuthorizer
		factory            informers.SharedInformerFactory
		wantErr            string
	}{
		"complete":                   {enabled: true, inspected: true, rights: newRights(), factory: informers.NewSharedInformerFactory(fake.NewClientset(), 0)},
		"off needs no informer":      {inspected: true, rights: newRights()},
		"off, without an authorizer": {inspected: true, wantErr: "authorizer"},
		"gates unknown":              {rights: newRights(), factory: informers.NewSharedInformerFactory(fake.NewClientset(), 0), wantErr: "feature gates"},
		"on, without an authorizer":  {enabled: true, inspected: true, factory: informers.NewSharedInformerFactory(fake.NewClientset(), 0), wantErr: "authorizer"},
		"on, without an informer":    {enabled: true, inspected: true, rights: newRights(), wantErr: "informer"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
				features.EvictionRequestAPI: test.enabled, features.DeclarativeNodeMaintenance: test.enabled,
			})
			plugin := NewPlugin()
			if test.inspected {
				plugin.InspectFeatureGates(utilfeature.DefaultFeatureGate)
			}
			if test.rights != nil {
				plugin.SetAuthorizer(authorizer.AuthorizerFunc(test.rights.Authorize))
			}
			if test.factory != nil {
				plugin.SetExternalKubeInformerFactory(test.factory)
			}
			err := plugin.ValidateInitialization()
			if test.wantErr == "" && err != nil || test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)) {
				t.Errorf("error %v, must be %q", err, test.wantErr)
			}
		})
	}
}

// With the gate off, the plugin must not start a watch of nodes.
func TestNoInformerWithTheGateOff(t *testing.T) {
	client := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a1"}})
	factory := informers.NewSharedInformerFactory(client, 0)
	plugin := NewPlugin()
	plugin.SetExternalKubeInformerFactory(factory)
	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel()
	if synced := factory.WaitForCacheSync(ctx.Done()); len(synced) > 0 {
		t.Errorf("started informers: %v", synced)
	}
}

// gatesOnly initializes the plugin without an informer factory, as with the gate off.
type gatesOnly struct{}

func (gatesOnly) Initialize(plugin admission.Interface) {
	plugin.(*Plugin).InspectFeatureGates(utilfeature.DefaultFeatureGate)
	plugin.(*Plugin).SetAuthorizer(authorizer.AuthorizerFunc(newRights().Authorize))
}

func TestRegister(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.DeclarativeNodeMaintenance, false)
	plugins := admission.NewPlugins()
	Register(plugins)
	if diff := cmp.Diff([]string{"NodeMaintenance"}, plugins.Registered()); diff != "" {
		t.Errorf("registered plugins (-want +got):\n%s", diff)
	}
	plugin, err := plugins.InitPlugin("NodeMaintenance", nil, admission.PluginInitializers{gatesOnly{}})
	if err != nil {
		t.Fatalf("initialization: %v", err)
	}
	for operation, want := range map[admission.Operation]bool{admission.Create: true, admission.Update: true, admission.Delete: true, admission.Connect: false} {
		if got := plugin.Handles(operation); got != want {
			t.Errorf("handles %s: %t, must be %t", operation, got, want)
		}
	}
}

// The number of combinations of a term is capped, and a capped term never counts as known.
func TestTooManyCombinations(t *testing.T) {
	hundred := make([]string, 100)
	for i := range hundred {
		hundred[i] = strconv.Itoa(i)
	}
	var requirements []v1.NodeSelectorRequirement
	for i, want := range []int{100, maxCombinations, maxCombinations + 1, maxCombinations + 1} {
		requirements = append(requirements, v1.NodeSelectorRequirement{Key: strconv.Itoa(i), Operator: v1.NodeSelectorOpIn, Values: hundred})
		term := newLabelTerm(v1.NodeSelectorTerm{MatchExpressions: requirements}, nil, nil)
		if term.combinations != want {
			t.Errorf("%d keys of 100 values: %d combinations, must be %d", i+1, term.combinations, want)
		}
		for i := range want {
			term.found.Insert(strconv.Itoa(i))
		}
		if got, want := term.isKnown(), want <= maxCombinations; got != want {
			t.Errorf("%d keys of 100 values: known: %t, must be %t", i+1, got, want)
		}
	}
}

// The authorizer is not asked about tens of thousands of nodes to say what is known after a few.
func TestManyDeniedNodes(t *testing.T) {
	for count, want := range map[int]struct {
		asked int
		text  string
	}{
		maxDeniedNodes - 1:  {maxDeniedNodes, " and 94 more, selected"},
		20 * maxDeniedNodes: {maxDeniedNodes + 1, " and at least 95 more, selected"},
	} {
		var terms []core.NodeSelectorTerm
		for i := range count {
			terms = append(terms, named("other-"+strconv.Itoa(i)))
		}
		rights := newRights()
		maintenance := newMaintenance(selecting(terms...))
		err := newPlugin(t, twoZones(), rights).Validate(t.Context(), attributes(operationOf(maintenance, nil), userNamed(guest), "", maintenance, nil), nil)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%d nodes: error %v, must be forbidden: %q", count, err, want.text)
		}
		if len(rights.asked) != want.asked { // Once for all nodes.
			t.Errorf("%d nodes: the authorizer was asked %d times, want %d", count, len(rights.asked), want.asked)
		}
	}
}

// A selector with more than is matched with all nodes needs the right on all of them, whatever it
// selects: also to delete it.
func TestLargeSelectors(t *testing.T) {
	ofZoneA := func(terms, requirements, values int) option {
		var selected []core.NodeSelectorTerm
		for range terms {
			term := zone(slices.Repeat([]string{"a"}, values)...)
			for range requirements - 1 {
				term = both(term, notNamed("node-b1"))
			}
			selected = append(selected, term)
		}
		return selecting(selected...)
	}
	tooMany := ofZoneA(helpers.MaxLabelTerms+1, 1, 1)
	const denied = `user "zone-admin" cannot delete all nodes: spec.nodeSelector has 101 terms that name no node, and at most 100 are checked`
	for name, test := range map[string]struct {
		user             string
		maintenance, old *coordination.NodeMaintenance
		wantErr          string
	}{
		"as many terms as are checked":        {maintenance: newMaintenance(ofZoneA(helpers.MaxLabelTerms, 1, 1))},
		"as many requirements as are checked": {maintenance: newMaintenance(ofZoneA(1, helpers.MaxLabelRequirements, 1))},
		"as many values as are checked":       {maintenance: newMaintenance(ofZoneA(1, 1, helpers.MaxLabelValues))},
		"too many terms":                      {maintenance: newMaintenance(tooMany), wantErr: denied},
		"too many terms, as Complete":         {maintenance: newMaintenance(tooMany, inStage(complete)), wantErr: denied},
		"too many terms, all rights":          {user: admin, maintenance: newMaintenance(tooMany)},
		"too many requirements": {
			maintenance: newMaintenance(ofZoneA(2, helpers.MaxLabelRequirements/2+1, 1)), wantErr: "spec.nodeSelector has 1002 requirements in terms that name no node, and at most 1000 are checked",
		},
		"too many values": {
			maintenance: newMaintenance(ofZoneA(2, 1, helpers.MaxLabelValues/2+1)), wantErr: "spec.nodeSelector has 10002 values in terms that name no node, and at most 10000 are checked",
		},
		"changed to too many":   {old: newMaintenance(), maintenance: newMaintenance(tooMany), wantErr: denied},
		"changed from too many": {old: newMaintenance(tooMany), maintenance: newMaintenance(), wantErr: denied},
		"deleted":               {old: newMaintenance(tooMany), wantErr: denied},
		"deleted, all rights":   {user: admin, old: newMaintenance(tooMany)},
	} {
		t.Run(name, func(t *testing.T) {
			got, who := warnings{}, zoneAdmin
			if test.user != "" {
				who = test.user
			}
			err := newPlugin(t, twoZones(), newRights()).Validate(warning.WithWarningRecorder(t.Context(), &got),
				attributes(operationOf(test.maintenance, test.old), userNamed(who), "", test.maintenance, test.old), nil)
			switch {
			case test.wantErr == "" && err != nil:
				t.Errorf("unexpected error: %v", err)
			case test.wantErr != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.wantErr)):
				t.Errorf("error %v, must be forbidden: %q", err, test.wantErr)
			}
			if len(got) > 0 {
				t.Errorf("warnings: %v", got)
			}
		})
	}
}
