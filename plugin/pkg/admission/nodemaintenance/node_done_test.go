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
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
)

// newPluginWithBudgets returns an initialized plugin with the gate NodeMaintenanceBudgets on or off.
func newPluginWithBudgets(t *testing.T, enabled bool, rights *rights) *Plugin {
	t.Helper()
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: true, features.DeclarativeNodeMaintenance: true, features.NodeMaintenanceBudgets: enabled,
	})
	return newPlugin(t, nil, rights)
}

// nodeDone returns node-a1 with this value of the annotation, and without it if the value is empty.
func nodeDone(uid string) *core.Node {
	node := nodeWith(nil)
	node.Annotations = map[string]string{"example.com/rack": "7"}
	if uid != "" {
		node.Annotations["nodemaintenance.k8s.io/done"] = uid
	}
	return node
}

// The annotation makes a node schedulable that is being worked on, so it needs the right that the
// NodeMaintenance needs. What does not change it must not cost a request to the authorizer.
func TestNodeDone(t *testing.T) {
	const denied = `nodes "node-a1" is forbidden: user "%s" cannot set the annotation nodemaintenance.k8s.io/done: ` +
		`ending the maintenance of a node requires the verb "delete" on it, like the NodeMaintenance`
	for name, test := range map[string]struct {
		old, node   *core.Node
		subresource string
		// allowed is whether agents may, who may not delete the node.
		allowed bool
		asked   bool
	}{
		"a heartbeat":                   {old: nodeDone(""), node: nodeDone(""), subresource: "status", allowed: true},
		"a heartbeat of a node that is": {old: nodeDone("1"), node: nodeDone("1"), subresource: "status", allowed: true},
		"a label of a node that is":     {old: nodeDone("1"), node: nodeDone("1"), allowed: true},
		"a new node":                    {node: nodeDone(""), allowed: true},
		"a new node that is":            {node: nodeDone("1"), asked: true},
		"set":                           {old: nodeDone(""), node: nodeDone("1"), asked: true},
		"set on the first annotations":  {old: nodeWith(nil), node: nodeDone("1"), asked: true},
		"set with the status":           {old: nodeDone(""), node: nodeDone("1"), subresource: "status", asked: true},
		"changed":                       {old: nodeDone("1"), node: nodeDone("2"), asked: true},
		"removed":                       {old: nodeDone("1"), node: nodeDone(""), allowed: true},
		"removed with all others":       {old: nodeDone("1"), node: nodeWith(nil), allowed: true},
	} {
		for _, who := range []user.Info{userNamed(agent), userNamed(zoneAdmin), userNamed(nodeController), kubelet("node-a1"), kubelet("node-b1")} {
			t.Run(name+" by "+who.GetName(), func(t *testing.T) {
				rights := newRights()
				want := test.node.DeepCopy()
				err := write(t.Context(), newPluginWithBudgets(t, true, rights), nodeAttributesOf(who, test.subresource, test.node, test.old))
				switch allowed := test.allowed || who.GetName() == zoneAdmin; {
				case allowed && err != nil:
					t.Errorf("unexpected error: %v", err)
				case !allowed && (!apierrors.IsForbidden(err) || err.Error() != fmt.Sprintf(denied, who.GetName())):
					t.Errorf("error %v, must be forbidden", err)
				}
				if diff := cmp.Diff(want, test.node); diff != "" {
					t.Errorf("the node was changed (-want, +got):\n%s", diff)
				}
				wantAsked := []string{}
				if test.asked {
					wantAsked = []string{"node-a1"}
				}
				if diff := cmp.Diff(wantAsked, rights.askedNames()); diff != "" {
					t.Errorf("the authorizer was asked about other nodes (-want, +got):\n%s", diff)
				}
			})
		}
	}
}

// With the gate NodeMaintenanceBudgets off, the controller still acts on what is stored, so the
// annotation stays guarded. Without NodeMaintenances, it is an annotation like any other.
func TestNodeDoneWithoutTheGate(t *testing.T) {
	for _, enabled := range []bool{true, false} {
		rights := newRights()
		plugin := newPluginWithBudgets(t, false, rights)
		plugin.enabled = enabled
		err := write(t.Context(), plugin, nodeAttributes(agent, "", nodeDone("1"), nodeDone("")))
		if apierrors.IsForbidden(err) != enabled || (len(rights.asked) > 0) != enabled {
			t.Errorf("NodeMaintenances %t: error %v, asked %v", enabled, err, rights.asked)
		}
	}
}

// Whoever may give a node back may not write its status: each has a verb of its own.
func TestNodeDoneIsNoControl(t *testing.T) {
	node := nodeDone("1")
	node.Status.MaintenanceStatus = upTo(1)
	err := write(t.Context(), newPluginWithBudgets(t, true, newRights()), nodeAttributes(admin, "status", node, nodeDone("")))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot change status.maintenanceStatus") {
		t.Errorf("error %v, must be forbidden", err)
	}
}

// An error of the authorizer is no denial, and nothing is written.
func TestNodeDoneWithoutAnAnswer(t *testing.T) {
	rights := newRights()
	rights.errFor = map[string]error{"node-a1": errors.New("no connection")}
	err := write(t.Context(), newPluginWithBudgets(t, true, rights), nodeAttributes(admin, "", nodeDone("1"), nodeDone("")))
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), `authorizing user "admin" to annotate node "node-a1": no connection`) {
		t.Errorf("unexpected error: %v", err)
	}
}

// Other writes of nodes have no annotations, or none that matter.
func TestNodeDoneOfOtherRequests(t *testing.T) {
	for name, a := range map[string]admission.Attributes{
		"a deletion":          admission.NewAttributesRecord(nil, nodeDone("1"), core.Kind("Node").WithVersion("v1"), "", "node-a1", core.Resource("nodes").WithVersion("v1"), "", admission.Delete, nil, false, userNamed(agent)),
		"another subresource": nodeAttributes(agent, "proxy", nodeDone("1"), nodeDone("")),
		"another kind":        admission.NewAttributesRecord(nodeDone("1"), nil, core.Kind("Pod").WithVersion("v1"), "", "node-a1", core.Resource("pods").WithVersion("v1"), "", admission.Create, nil, false, userNamed(agent)),
	} {
		rights := newRights()
		if err := write(t.Context(), newPluginWithBudgets(t, true, rights), a); err != nil || len(rights.asked) > 0 {
			t.Errorf("%s: error %v, asked %v", name, err, rights.asked)
		}
	}
}
