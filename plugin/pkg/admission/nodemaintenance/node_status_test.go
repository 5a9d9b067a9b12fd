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
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/apis/core"
)

// agent may write the status of nodes, like many programs, but lacks the verb control.
const agent = "node-problem-detector"

func nodeWith(status *core.MaintenanceStatus) *core.Node {
	return &core.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-a1", ResourceVersion: "1"},
		Status:     core.NodeStatus{Phase: core.NodeRunning, MaintenanceStatus: status},
	}
}

// upTo is the status of a node that is drained up to this priority.
func upTo(priority int32) *core.MaintenanceStatus {
	return &core.MaintenanceStatus{
		DrainTargets: []core.DrainPlanEntry{{PodType: core.PodTypeDefault, PodPriority: priority}}, DrainMessage: "Draining", ActiveEvictionRequests: 1,
	}
}

// nodeAttributes returns the attributes of a write of the node by the user with that name.
func nodeAttributes(who, subresource string, node, old *core.Node) admission.Attributes {
	return nodeAttributesOf(userNamed(who), subresource, node, old)
}

// nodeAttributesOf returns the attributes of a write of the node. old is nil on creation, where the
// name may be missing.
func nodeAttributesOf(who user.Info, subresource string, node, old *core.Node) admission.Attributes {
	operation, name, oldObject := admission.Create, "", runtime.Object(nil)
	if old != nil {
		operation, name, oldObject = admission.Update, old.Name, old
	}
	return admission.NewAttributesRecord(node, oldObject, core.Kind("Node").WithVersion("v1"), "", name,
		core.Resource("nodes").WithVersion("v1"), subresource, operation, nil, false, who)
}

// write runs the plugin as the API server does before it stores a node.
func write(ctx context.Context, plugin *Plugin, a admission.Attributes) error {
	if err := plugin.Admit(ctx, a, nil); err != nil {
		return err
	}
	return plugin.Validate(ctx, a, nil)
}

// A client that may write the status of a node must not be able to set drain targets, or mark the
// node as claimed, because the controller trusts both.
func TestMaintenanceStatusOfNodes(t *testing.T) {
	const denied = `nodes "node-a1" is forbidden: user "node-problem-detector" cannot change status.maintenanceStatus, which belongs to the node maintenance controller: ` +
		`this requires the verb "control" on the resource "nodes/status", which only controllers should have`
	changed := upTo(1)
	changed.DrainTargets[0].PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	tests := map[string]struct {
		old, node   *core.Node
		subresource string
		wantErr     string
		// want is the stored node. nil stands for node.
		want         *core.Node
		wantWarnings warnings
		wantAsked    int
	}{
		"a heartbeat": {old: nodeWith(nil), node: nodeWith(nil), subresource: "status"},
		"a heartbeat of a node under maintenance": {old: nodeWith(upTo(1)), node: nodeWith(upTo(1)), subresource: "status"},
		"a node":                    {node: nodeWith(nil)},
		"a node with drain targets": {node: nodeWith(upTo(1)), wantErr: denied, wantAsked: 1},
		"a node with an empty maintenance status": {node: nodeWith(&core.MaintenanceStatus{}), wantErr: denied, wantAsked: 1},
		"an empty maintenance status":             {old: nodeWith(nil), node: nodeWith(&core.MaintenanceStatus{}), subresource: "status", wantErr: denied, wantAsked: 1},
		"drain targets":                           {old: nodeWith(nil), node: nodeWith(upTo(1)), subresource: "status", wantErr: denied, wantAsked: 1},
		"more drain targets":                      {old: nodeWith(upTo(1)), node: nodeWith(upTo(2)), subresource: "status", wantErr: denied, wantAsked: 1},
		"other labels in the drain targets":       {old: nodeWith(upTo(1)), node: nodeWith(changed), subresource: "status", wantErr: denied, wantAsked: 1},
		"no drain targets":                        {old: nodeWith(upTo(1)), node: nodeWith(&core.MaintenanceStatus{}), subresource: "status", wantErr: denied, wantAsked: 1},
		"an update of the node":                   {old: nodeWith(upTo(1)), node: nodeWith(upTo(2)), wantErr: denied, wantAsked: 1},
		"removal by a client that does not know it": {
			old: nodeWith(upTo(1)), node: nodeWith(nil), subresource: "status", want: nodeWith(upTo(1)), wantAsked: 1,
			wantWarnings: warnings{`status.maintenanceStatus was kept: removing it requires the verb "control" on the resource "nodes/status"`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rights := newRights()
			plugin := newPlugin(t, twoZones(), rights)
			var got warnings
			ctx := warning.WithWarningRecorder(t.Context(), &got)
			err := write(ctx, plugin, nodeAttributes(agent, test.subresource, test.node, test.old))
			switch {
			case test.wantErr == "" && err != nil:
				t.Fatalf("unexpected error: %v", err)
			case test.wantErr != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.wantErr)):
				t.Fatalf("error %v, must be forbidden: %q", err, test.wantErr)
			}
			if test.want != nil {
				if diff := cmp.Diff(test.want, test.node); diff != "" {
					t.Errorf("unexpected node (-want, +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(test.wantWarnings, got); diff != "" {
				t.Errorf("unexpected warnings (-want, +got):\n%s", diff)
			}
			if len(rights.asked) != test.wantAsked {
				t.Errorf("the authorizer was asked %v, want %d requests", rights.asked, test.wantAsked)
			}
			for _, attributes := range rights.asked {
				if attributes.GetName() != "node-a1" {
					t.Errorf("the authorizer was asked about node %q", attributes.GetName())
				}
			}
		})
	}
}

// The restored value is a copy: the server compares the new object with the old one, and the two
// must not share memory.
func TestKeptMaintenanceStatusIsACopy(t *testing.T) {
	old, node := nodeWith(upTo(1)), nodeWith(nil)
	if err := write(t.Context(), newPlugin(t, nil, newRights()), nodeAttributes(agent, "status", node, old)); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	if node.Status.MaintenanceStatus == nil || node.Status.MaintenanceStatus == old.Status.MaintenanceStatus {
		t.Errorf("the node has %p, the old one %p", node.Status.MaintenanceStatus, old.Status.MaintenanceStatus)
	}
}

// The controller creates, changes and removes the status.
func TestControllerWritesTheMaintenanceStatus(t *testing.T) {
	for name, test := range map[string]struct{ old, node *core.Node }{
		"create": {node: nodeWith(upTo(1))},
		"set":    {old: nodeWith(nil), node: nodeWith(upTo(1))},
		"change": {old: nodeWith(upTo(1)), node: nodeWith(upTo(2))},
		"remove": {old: nodeWith(upTo(1)), node: nodeWith(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			want := test.node.DeepCopy()
			if err := write(t.Context(), newPlugin(t, nil, newRights()), nodeAttributes(nodeController, "status", test.node, test.old)); err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if diff := cmp.Diff(want, test.node); diff != "" {
				t.Errorf("unexpected node (-want, +got):\n%s", diff)
			}
		})
	}
}

// Whoever replaces the status by one without the field does not know the field, whatever they may do. A patch that
// removes it means that.
func TestReplacementKeepsTheMaintenanceStatus(t *testing.T) {
	for verb, test := range map[string]struct {
		want         *core.MaintenanceStatus
		wantWarnings warnings
	}{
		"update": {upTo(1), warnings{"status.maintenanceStatus was kept, although the update omits it: use a patch, or a client that knows the field"}},
		"patch":  {nil, nil},
	} {
		t.Run(verb, func(t *testing.T) {
			var got warnings
			ctx := genericapirequest.WithRequestInfo(warning.WithWarningRecorder(t.Context(), &got), &genericapirequest.RequestInfo{Verb: verb})
			node := nodeWith(nil)
			if err := write(ctx, newPlugin(t, nil, newRights()), nodeAttributes(nodeController, "status", node, nodeWith(upTo(1)))); err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if diff := cmp.Diff(test.want, node.Status.MaintenanceStatus); diff != "" {
				t.Errorf("unexpected status (-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.wantWarnings, got); diff != "" {
				t.Errorf("unexpected warnings (-want, +got):\n%s", diff)
			}
		})
	}
}

// The permission to delete nodes, which is enough to maintain them, does not include control.
func TestDeletePermissionIsNoControl(t *testing.T) {
	err := write(t.Context(), newPlugin(t, nil, newRights()), nodeAttributes(admin, "status", nodeWith(upTo(1)), nodeWith(nil)))
	if !apierrors.IsForbidden(err) {
		t.Errorf("error %v, must be forbidden", err)
	}
}

// The registry drops the status of an update of the node itself after Admit. So Admit must not call
// the authorizer, which would cost a request for each client that sends an old status.
func TestNodeUpdateIsNotAuthorizedBeforeItsStatusIsDropped(t *testing.T) {
	rights := newRights()
	node := nodeWith(nil)
	if err := newPlugin(t, nil, rights).Admit(t.Context(), nodeAttributes(agent, "", node, nodeWith(upTo(1))), nil); err != nil || node.Status.MaintenanceStatus != nil || len(rights.asked) > 0 {
		t.Errorf("error %v, status %v, asked %v", err, node.Status.MaintenanceStatus, rights.asked)
	}
}

// With the gate off the registry drops new values, and keeps stored ones. In a cluster with several
// servers, this must not bypass the checks of the others.
func TestMaintenanceStatusWithoutTheGate(t *testing.T) {
	newPluginWithoutGate := func() *Plugin {
		plugin := newPlugin(t, nil, newRights())
		plugin.enabled = false
		return plugin
	}
	if err := write(t.Context(), newPluginWithoutGate(), nodeAttributes(agent, "status", nodeWith(upTo(2)), nodeWith(upTo(1)))); !apierrors.IsForbidden(err) {
		t.Errorf("changing a stored one: error %v, must be forbidden", err)
	}
	node := nodeWith(nil)
	if err := write(t.Context(), newPluginWithoutGate(), nodeAttributes(agent, "status", node, nodeWith(upTo(1)))); err != nil || node.Status.MaintenanceStatus == nil {
		t.Errorf("removing a stored one: error %v, status %v", err, node.Status.MaintenanceStatus)
	}
}

// An error of the authorizer is returned as an internal error, and nothing is written.
func TestMaintenanceStatusWithoutAnAnswer(t *testing.T) {
	for name, node := range map[string]*core.Node{"change": nodeWith(upTo(2)), "remove": nodeWith(nil)} {
		t.Run(name, func(t *testing.T) {
			rights := newRights()
			rights.errFor = map[string]error{"node-a1": errors.New("no connection")}
			err := write(t.Context(), newPlugin(t, nil, rights), nodeAttributes(agent, "status", node, nodeWith(upTo(1))))
			if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), `authorizing user "node-problem-detector" to change status.maintenanceStatus of node "node-a1": no connection`) {
				t.Errorf("unexpected error: %v", err)
			}
		})
	}
}

// Requests with objects that are not nodes are ignored.
func TestUnexpectedObjectsAsNodes(t *testing.T) {
	plugin := newPlugin(t, nil, newRights())
	for _, a := range []admission.Attributes{
		admission.NewAttributesRecord(&core.Pod{}, &core.Pod{}, core.Kind("Node").WithVersion("v1"), "", "node-a1", core.Resource("nodes").WithVersion("v1"), "status", admission.Update, nil, false, userNamed(agent)),
		admission.NewAttributesRecord(nil, nodeWith(upTo(1)), core.Kind("Node").WithVersion("v1"), "", "node-a1", core.Resource("nodes").WithVersion("v1"), "", admission.Delete, nil, false, userNamed(agent)),
	} {
		if err := write(t.Context(), plugin, a); err != nil {
			t.Errorf("%s of %T: %v", a.GetOperation(), a.GetObject(), err)
		}
	}
}

// The cost for heartbeats must be negligible.
func BenchmarkHeartbeat(b *testing.B) {
	claimed := func() *core.MaintenanceStatus {
		status := &core.MaintenanceStatus{DrainMessage: "Draining"}
		for i := range int32(12) {
			status.DrainTargets = append(status.DrainTargets, core.DrainPlanEntry{
				PodType: core.PodTypeDefault, PodPriority: i, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			})
		}
		return status
	}
	for name, node := range map[string][2]*core.Node{"NotClaimed": {nodeWith(nil), nodeWith(nil)}, "Claimed": {nodeWith(claimed()), nodeWith(claimed())}} {
		b.Run(name, func(b *testing.B) {
			unused := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
				b.Error("the authorizer was asked")
				return authorizer.DecisionDeny, "", nil
			})
			plugin := newPlugin(b, nil, unused)
			a := nodeAttributes(agent, "status", node[0], node[1])
			for b.Loop() {
				if err := write(b.Context(), plugin, a); err != nil {
					b.Fatal(err)
				}
			}
			if perBeat := b.Elapsed() / time.Duration(b.N); perBeat > maxPerHeartbeat {
				b.Errorf("%s per heartbeat, must be at most %s", perBeat, maxPerHeartbeat)
			}
		})
	}
}

// maxPerHeartbeat is the limit for the duration of the check, even if many targets are compared. It
// is small compared to the decoding and storing of a node.
const maxPerHeartbeat = 200 * time.Microsecond
