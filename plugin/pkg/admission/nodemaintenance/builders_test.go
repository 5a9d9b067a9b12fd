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
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
)

const (
	maintenanceName = "firmware"
	// admin may delete all nodes, zoneAdmin those of zone a (node-a1 and node-a2), guest none.
	admin     = "admin"
	zoneAdmin = "zone-admin"
	guest     = "guest"
	// nodeController may control the status of nodes.
	nodeController = "node-controller"

	zoneLabel = "topology.kubernetes.io/zone"
	idle      = coordination.NodeMaintenanceStageIdle
	cordon    = coordination.NodeMaintenanceStageCordon
	drain     = coordination.NodeMaintenanceStageDrain
	complete  = coordination.NodeMaintenanceStageComplete
)

// rights is an authorizer with the permissions of the test users. It records all requests.
type rights struct {
	// deletableNodes has the names of nodes for each user. An empty name stands for all nodes.
	deletableNodes map[string][]string
	// controllers are the users that may control the status of all nodes.
	controllers []string
	// errFor returns errors for these names.
	errFor map[string]error
	asked  []authorizer.Attributes
}

func (r *rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.asked = append(r.asked, a)
	if err := r.errFor[a.GetName()]; err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	names := r.deletableNodes[a.GetUser().GetName()]
	if a.GetVerb() == "delete" && a.GetAPIGroup() == "" && a.GetAPIVersion() == "v1" && a.GetResource() == "nodes" && a.GetSubresource() == "" &&
		a.IsResourceRequest() && (slices.Contains(names, "") || slices.Contains(names, a.GetName())) {
		return authorizer.DecisionAllow, "", nil
	}
	if a.GetVerb() == "control" && a.GetAPIGroup() == "" && a.GetAPIVersion() == "v1" && a.GetResource() == "nodes" && a.GetSubresource() == "status" &&
		a.IsResourceRequest() && slices.Contains(r.controllers, a.GetUser().GetName()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func (r *rights) askedNames() []string {
	names := []string{}
	for _, attributes := range r.asked {
		names = append(names, attributes.GetName())
	}
	return names
}

func newNode(name, zone string, labels ...string) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{zoneLabel: zone, v1.LabelHostname: name}}}
	for _, label := range labels {
		node.Labels[label] = ""
	}
	return node
}

// twoZones is a cluster with zones a and b, and its control plane in zone c.
func twoZones() []*v1.Node {
	return []*v1.Node{
		newNode("node-a2", "a"), newNode("node-a1", "a"),
		newNode("node-b1", "b"), newNode("node-b2", "b"), newNode("node-b3", "b"), newNode("node-b4", "b"), newNode("node-b5", "b"), newNode("node-b6", "b"), newNode("node-b7", "b"),
		newNode("node-c1", "c", controlPlaneLabel), newNode("node-c2", "c", controlPlaneLabel),
	}
}

// newPlugin returns an initialized plugin with these nodes in its cache.
func newPlugin(t testing.TB, nodes []*v1.Node, rights authorizer.UnconditionalAuthorizer) *Plugin {
	t.Helper()
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: true, features.DeclarativeNodeMaintenance: true,
	})
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	plugin := NewPlugin()
	plugin.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	plugin.SetAuthorizer(authorizer.AuthorizerFunc(rights.Authorize))
	plugin.SetExternalKubeInformerFactory(factory)
	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatalf("initialization: %v", err)
	}
	for _, node := range nodes {
		if err := factory.Core().V1().Nodes().Informer().GetIndexer().Add(node); err != nil {
			t.Fatalf("adding node %s: %v", node.Name, err)
		}
	}
	plugin.nodesSynced = func() bool { return true }
	return plugin
}

func newRights() *rights {
	return &rights{deletableNodes: map[string][]string{admin: {""}, zoneAdmin: {"node-a1", "node-a2"}}, controllers: []string{nodeController}}
}

type option func(*coordination.NodeMaintenance)

// newMaintenance returns a maintenance of zone a in the stage Drain.
func newMaintenance(options ...option) *coordination.NodeMaintenance {
	maintenance := &coordination.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: maintenanceName, ResourceVersion: "1", Generation: 1},
		Spec:       coordination.NodeMaintenanceSpec{NodeSelector: selector(zone("a")), Stage: drain},
	}
	for _, option := range options {
		option(maintenance)
	}
	return maintenance
}

func selector(terms ...core.NodeSelectorTerm) *core.NodeSelector {
	return &core.NodeSelector{NodeSelectorTerms: terms}
}

// zone is a term that selects the nodes of the zones.
func zone(names ...string) core.NodeSelectorTerm {
	return core.NodeSelectorTerm{MatchExpressions: []core.NodeSelectorRequirement{{Key: zoneLabel, Operator: core.NodeSelectorOpIn, Values: names}}}
}

// having is a term with another operator for the zone.
func having(operator core.NodeSelectorOperator, values ...string) core.NodeSelectorTerm {
	term := zone(values...)
	term.MatchExpressions[0].Operator = operator
	return term
}

// hostnames is a term that selects nodes by their hostname label.
func hostnames(names ...string) core.NodeSelectorTerm {
	term := zone(names...)
	term.MatchExpressions[0].Key = v1.LabelHostname
	return term
}

// named is a term that selects the node by its name.
func named(name string) core.NodeSelectorTerm {
	return core.NodeSelectorTerm{MatchFields: []core.NodeSelectorRequirement{{Key: "metadata.name", Operator: core.NodeSelectorOpIn, Values: []string{name}}}}
}

// notNamed is a term that selects all nodes except the named one.
func notNamed(name string) core.NodeSelectorTerm {
	term := named(name)
	term.MatchFields[0].Operator = core.NodeSelectorOpNotIn
	return term
}

// both is a term with the requirements of both terms.
func both(a, b core.NodeSelectorTerm) core.NodeSelectorTerm {
	return core.NodeSelectorTerm{MatchExpressions: append(a.MatchExpressions, b.MatchExpressions...), MatchFields: append(a.MatchFields, b.MatchFields...)}
}

func everywhere() core.NodeSelectorTerm { return zone("a", "b", "c") }

func selecting(terms ...core.NodeSelectorTerm) option {
	return func(maintenance *coordination.NodeMaintenance) {
		maintenance.Spec.NodeSelector = selector(terms...)
	}
}

func inStage(stage coordination.NodeMaintenanceStage) option {
	return func(maintenance *coordination.NodeMaintenance) {
		maintenance.Spec.Stage = stage
		maintenance.Generation++
	}
}

func withReason(reason string) option {
	return func(maintenance *coordination.NodeMaintenance) { maintenance.Spec.Reason = reason }
}

func withPlan(entries ...core.DrainPlanEntry) option {
	return func(maintenance *coordination.NodeMaintenance) { maintenance.Spec.DrainPlan = entries }
}

func withFinalizers(finalizers ...string) option {
	return func(maintenance *coordination.NodeMaintenance) { maintenance.Finalizers = finalizers }
}

func withOwners(owners ...metav1.OwnerReference) option {
	return func(maintenance *coordination.NodeMaintenance) { maintenance.OwnerReferences = owners }
}

func withMetadata(maintenance *coordination.NodeMaintenance) {
	maintenance.Labels, maintenance.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
}

func beingDeleted(maintenance *coordination.NodeMaintenance) {
	now := metav1.Now()
	maintenance.DeletionTimestamp = &now
}

// asWritten changes the metadata that every update changes.
func asWritten(maintenance *coordination.NodeMaintenance) {
	maintenance.ResourceVersion = ""
	maintenance.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "other"}}
}

// attributes returns the attributes of a request of the user. Without an object, the interfaces
// must stay nil.
func attributes(operation admission.Operation, who user.Info, subresource string, maintenance, old *coordination.NodeMaintenance) admission.Attributes {
	var object, oldObject runtime.Object
	name := maintenanceName
	if maintenance != nil {
		object = maintenance
	} else {
		name = "" // As in the deletion of a collection, where the name is missing.
	}
	if old != nil {
		oldObject = old
	}
	return admission.NewAttributesRecord(object, oldObject, coordination.Kind("NodeMaintenance").WithVersion("v1alpha1"), "", name,
		coordination.Resource("nodemaintenances").WithVersion("v1alpha1"), subresource, operation, nil, false, who)
}

func userNamed(name string) user.Info { return &user.DefaultInfo{Name: name} }

func kubelet(node string) user.Info {
	return &user.DefaultInfo{Name: "system:node:" + node, Groups: []string{user.NodesGroup}}
}

// operationOf returns the operation with these versions of the object.
func operationOf(maintenance, old *coordination.NodeMaintenance) admission.Operation {
	switch {
	case old == nil:
		return admission.Create
	case maintenance == nil:
		return admission.Delete
	}
	return admission.Update
}
