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

package maintenance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

// refusedDrain returns a drain in which the API server refuses a cordon and requests. A newer
// controller publishes a cause that this kubectl does not know.
func refusedDrain() []any {
	node := drainingNode("node-1", 3, 1, "Draining")
	node.Status.MaintenanceStatus.BlockedPods = 3
	return []any{node, newNode("node-2"), newMaintenance("rack", drain, "node-1", "node-2").started(time.Hour).draining(coordinationv1alpha1.DrainStatus{
		PodsPendingEvictionRequest: 3, ActiveEvictionRequests: 1, BlockedPods: 3, DrainMessage: "Draining", BlockerCount: 5,
		Blockers: []coordinationv1alpha1.DrainBlocker{
			{Cause: coordinationv1alpha1.DrainBlockerCordonFailed, Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: "node-2"}, NodeCount: 2, SinceTime: ptr.To(ago(10 * time.Minute)),
				Message: "2 nodes cannot be cordoned (admission webhook \"nodes.example.com\" denied the request)"},
			{Cause: coordinationv1alpha1.DrainBlockerDisruptionBudget, Name: "default/db", PodCount: 7, NodeCount: 1, Message: "7 pods wait for PodDisruptionBudget default/db",
				Object: &coordinationv1alpha1.DrainBlockerObject{APIGroup: "policy", Kind: "PodDisruptionBudget", Namespace: "default", Name: "db"}},
			{Cause: coordinationv1alpha1.DrainBlockerInterceptorUnresponsive, Name: coordinationv1alpha1.EvictionInterceptorDaemonSet, PodCount: 1, NodeCount: 1,
				Message: "1 pod waits for interceptor daemonset.apps.k8s.io, which has never reported (feature gate NodeMaintenanceAwareDaemonSet of the kube-controller-manager is off)"},
			{Cause: coordinationv1alpha1.DrainBlockerRequestFailed, Name: "shop", PodCount: 2, NodeCount: 1, SinceTime: ptr.To(ago(5 * time.Minute)),
				Pods:    []coordinationv1alpha1.DrainBlockerPod{{Namespace: "shop", Name: "web-0"}, {Namespace: "shop", Name: "web-1"}},
				Message: "2 pods in namespace shop cannot get an EvictionRequest (exceeded quota:\nrequests)"},
			{Cause: "Later", Name: "later", PodCount: 1, Message: "1 pod waits for something new"},
		},
	})}
}

// TestPublishedBlockers verifies that blockers are shown in the order in which they are published.
func TestPublishedBlockers(t *testing.T) {
	s := snapshotOf(refusedDrain()...)
	golden(t, "status/refused", renderStatus(viewsIn(s), testNow, defaultWidth))
	v := viewsIn(s)[0]
	var keys []string
	for i := range v.Blockers {
		keys = append(keys, v.Blockers[i].key())
	}
	want := []string{"CordonFailed ", "DisruptionBudget default/db", "InterceptorUnresponsive daemonset.apps.k8s.io", "RequestFailed shop", "Later later"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	if v.PodsBlocked != 3 || v.Nodes[0].PodsBlocked != 3 || v.Blockers[1].Object != "PodDisruptionBudget default/db" {
		t.Errorf("%d pods are blocked, on nodes %+v, by %+v", v.PodsBlocked, v.Nodes, v.Blockers)
	}
	refused := snapshotOf(newMaintenance("rack", drain, "node-1", "node-2").started(0).drained().draining(s.maintenances[0].Status.DrainStatus),
		drainingNode("node-1", 0, 0, "Drained"), drainingNode("node-2", 0, 0, "Drained"))
	if v := viewsIn(refused)[0]; len(v.Blockers) > 0 || v.BlockerCount > 0 {
		t.Errorf("drained, but waits for %v", v.Blockers)
	}
	s.maintenances[0].Spec.Stage, s.maintenances[0].Generation = complete, s.maintenances[0].Generation+1
	if blockers := viewsIn(s)[0].Blockers; len(blockers) > 0 {
		t.Errorf("completing, but waits for %v", blockers)
	}
}

// TestCompletionThatCannotWithdraw verifies that the reason why nodes are not released is shown.
func TestCompletionThatCannotWithdraw(t *testing.T) {
	const why = "1 pod in namespace shop has an EvictionRequest that cannot be withdrawn (a webhook denied the request)"
	rack := newMaintenance("rack", complete, "node-1").started(time.Hour)
	rack.Status.DrainStatus.BlockerCount = 1
	rack.Status.DrainStatus.Blockers = []coordinationv1alpha1.DrainBlocker{{
		Cause: coordinationv1alpha1.DrainBlockerRequestFailed, Name: "shop", PodCount: 1, NodeCount: 1, SinceTime: ptr.To(ago(5 * time.Minute)),
		Pods: []coordinationv1alpha1.DrainBlockerPod{{Namespace: "shop", Name: "web-0"}}, Message: why,
	}}
	views := viewsIn(snapshotOf(rack, newNode("node-1")))
	if text := strings.Join(strings.Fields(renderStatus(views, testNow, defaultWidth)), " "); !strings.Contains(text, why) {
		t.Errorf("the reason is not shown:\n%s", text)
	}
	free := maintenanceStory{rack.DeepCopy()}
	free.Status.DrainStatus.Blockers = nil
	before := viewsIn(snapshotOf(free, newNode("node-1")))
	if lines := strings.Join(changesOf(before[0], views[0]), "\n"); !strings.Contains(lines, "cannot be withdrawn") {
		t.Errorf("the log does not contain the reason: %q", lines)
	}
}

// TestRefusedCordon verifies that stage Cordon names a node that cannot be cordoned, too.
func TestRefusedCordon(t *testing.T) {
	const why = "1 node cannot be cordoned (a webhook denied the request)"
	rack := newMaintenance("rack", cordon, "node-1").started(time.Minute)
	rack.Status.DrainStatus.BlockerCount = 1
	rack.Status.DrainStatus.Blockers = []coordinationv1alpha1.DrainBlocker{{
		Cause: coordinationv1alpha1.DrainBlockerCordonFailed, NodeCount: 1, SinceTime: ptr.To(ago(10 * time.Second)),
		Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: "node-1"}, Message: why,
	}}
	views := viewsIn(snapshotOf(rack, newNode("node-1")))
	text := strings.Join(strings.Fields(renderStatus(views, testNow, defaultWidth)), " ")
	if !strings.Contains(text, "! "+why+" (for 10s) Node node-1") {
		t.Errorf("the reason is not shown:\n%s", text)
	}
}

// TestLinesNameBlockersInTheFirstView covers the stages other than Drain. The blockers of a drain
// that has ended are not reported.
func TestLinesNameBlockersInTheFirstView(t *testing.T) {
	for stage, message := range map[coordinationv1alpha1.NodeMaintenanceStage]string{
		cordon:   "1 node cannot be cordoned (a webhook denied the request)",
		complete: "1 node cannot be made schedulable (a webhook denied the request)",
	} {
		rack := newMaintenance("rack", stage, "node-1").started(time.Minute)
		rack.Status.DrainStatus.BlockerCount = 1
		rack.Status.DrainStatus.Blockers = []coordinationv1alpha1.DrainBlocker{{
			Cause: coordinationv1alpha1.DrainBlockerCordonFailed, NodeCount: 1, SinceTime: ptr.To(ago(10 * time.Second)),
			Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: "node-1"}, Message: message,
		}}
		v := viewsIn(snapshotOf(rack, newNode("node-1")))[0]
		line := "blocked: " + message + ": Node node-1"
		before := view{Stage: drain, Blockers: []*blockerView{{Cause: maintenance.BlockerUnhandled, Name: "Static", Blocked: true, Pods: 1, First: []string{"a/b"}}}}
		for name, old := range map[string]*view{"first view": nil, "another stage": &before} {
			want := []string{"stage " + string(stage) + ", 1 node", line}
			if diff := cmp.Diff(want, changesOf(old, v)); diff != "" {
				t.Errorf("%s, %s (-want, +got):\n%s", stage, name, diff)
			}
		}
		if lines := changesOf(v, v); len(lines) > 0 {
			t.Errorf("%s: reported again: %q", stage, lines)
		}
	}
}

// TestDrainedNamesNodes covers nodes that the maintenance no longer selects but cannot release.
func TestDrainedNamesNodes(t *testing.T) {
	rack := newMaintenance("rack", drain, "node-1").started(time.Minute).draining(coordinationv1alpha1.DrainStatus{
		BlockerCount: 1, DrainMessage: "Drained",
		Blockers: []coordinationv1alpha1.DrainBlocker{{Cause: coordinationv1alpha1.DrainBlockerCordonFailed, NodeCount: 1, Message: "1 node cannot be made schedulable",
			Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: "node-9"}}},
	}).condition(metav1.ConditionTrue, "Drained", "")
	v := viewsIn(snapshotOf(rack, newNode("node-1")))[0]
	if v.Outcome != outcomeDrained || len(v.Blockers) != 1 || v.Blockers[0].Object != "Node node-9" {
		t.Errorf("outcome %q, blockers %+v", v.Outcome, v.Blockers)
	}
	contains(t, renderStatus([]*view{v}, testNow, defaultWidth), "1 node cannot be made schedulable")
}

// TestBlockersOfDrainedNodes verifies that a drained node whose status cannot be written is named,
// and that what a drained node cannot have is not.
func TestBlockersOfDrainedNodes(t *testing.T) {
	rack := newMaintenance("rack", drain, "node-1", "node-2").started(0).draining(coordinationv1alpha1.DrainStatus{
		DrainMessage: "Drained", DrainedNodes: 2, BlockerCount: 3,
		Blockers: []coordinationv1alpha1.DrainBlocker{
			{Cause: coordinationv1alpha1.DrainBlockerCordonFailed, Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: "node-1"}, NodeCount: 1, Message: "1 node cannot be cordoned"},
			{Cause: coordinationv1alpha1.DrainBlockerNodeStatusFailed, Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: "node-2"}, NodeCount: 1, Message: "1 node has a status that cannot be written (no)"},
			{Cause: coordinationv1alpha1.DrainBlockerDisruptionBudget, Name: "shop/web", PodCount: 1, NodeCount: 1, Message: "1 pod waits"},
		},
	})
	rack.Status.Conditions = []metav1.Condition{{Type: string(coordinationv1alpha1.NodeMaintenanceConditionDrained), Status: metav1.ConditionTrue, ObservedGeneration: rack.Generation, Reason: coordinationv1alpha1.NodeMaintenanceReasonDrained}}
	v := viewsIn(snapshotOf(rack, drainingNode("node-1", 0, 0, "Drained"), drainingNode("node-2", 0, 0, "Drained")))[0]
	if v.Outcome != outcomeDrained || len(v.Blockers) != 1 || v.Blockers[0].Cause != maintenance.BlockerNodeStatusFailed {
		t.Errorf("outcome %q, blockers %+v", v.Outcome, v.Blockers)
	}
	contains(t, renderStatus([]*view{v}, testNow, defaultWidth), "! 1 node has a status that cannot be written (no)", "Node node-2")
}

// TestStuckNodesComeFirst covers nodes with blocked pods, nodes that a blocker names, and nodes
// that are not cordoned.
func TestStuckNodesComeFirst(t *testing.T) {
	rack := newMaintenance("rack", drain, "node-1", "node-2", "node-3", "node-4", "node-5").started(0).draining(coordinationv1alpha1.DrainStatus{
		DrainMessage: "Draining",
		Blockers: []coordinationv1alpha1.DrainBlocker{
			{Cause: coordinationv1alpha1.DrainBlockerCordonFailed, Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: "node-3"}, NodeCount: 1},
		},
	})
	blocked := drainingNode("node-4", 1, 0, "Draining")
	blocked.Status.MaintenanceStatus.BlockedPods = 1
	contested := drainingNode("node-5", 0, 1, "Draining")
	contested.Spec.Unschedulable = false
	v := viewsIn(snapshotOf(rack, drainingNode("node-1", 0, 1, "Draining"), drainingNode("node-2", 0, 1, "Draining"), drainingNode("node-3", 1, 0, "Draining"),
		blocked, contested))[0]
	shown, _ := v.nodesToShow(3)
	var names []string
	for _, node := range shown {
		names = append(names, node.Name)
	}
	if diff := cmp.Diff([]string{"node-3", "node-4", "node-5"}, names); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	v.StageStarted = ptr.To(ago(controllerPatience))
	text := renderStatus([]*view{v}, testNow, defaultWidth)
	contains(t, text, "Draining, not cordoned\n", "\n  Not cordoned: node-5. For the reason, see the events:\n  kubectl describe node node-5\n")
	if early := renderStatus([]*view{v}, v.StageStarted.Add(controllerPatience-1), defaultWidth); strings.Contains(early, "For the reason") {
		t.Errorf("too early:\n%s", early)
	}
	v.Stage, v.Nodes[4].Message = cordon, ""
	contains(t, renderStatus([]*view{v}, testNow, defaultWidth), "node-5  Not cordoned, see: kubectl describe node node-5\n")
}

// TestPublishedBlockersInLines verifies that the log and the error after a timeout name blockers.
func TestPublishedBlockersInLines(t *testing.T) {
	s := newServer(t, refusedDrain()...)
	s.whenLooked(func() { s.end(context.DeadlineExceeded) })
	out := s.run(t, "watch", "rack")
	contains(t, out,
		"rack: blocked: 2 nodes cannot be cordoned (admission webhook \"nodes.example.com\" denied the request): Node node-2 and 1 more\n",
		"rack: blocked: 2 pods in namespace shop cannot get an EvictionRequest (exceeded quota: requests): shop/web-0, shop/web-1\n")
	contains(t, s.failure, "rack: 2 pods in namespace shop cannot get an EvictionRequest", "2 nodes cannot be cordoned")
	if s.code != exitBlocked {
		t.Errorf("exit code %d", s.code)
	}
}
