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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

// refusedDrain is one in which the API server refuses a cordon and requests.
func refusedDrain() []any {
	rack := newMaintenance("rack", drain, "node-1", "node-2").started(time.Hour).draining(coordinationv1alpha1.DrainStatus{
		PodsPendingEvictionRequest: 2, ActiveEvictionRequests: 1, BlockedPods: 3, DrainMessage: "Draining",
		Blockers: []coordinationv1alpha1.DrainBlocker{
			{Cause: coordinationv1alpha1.DrainBlockerCordonFailed, Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: "node-2"}, NodeCount: 2, SinceTime: ptr.To(ago(10 * time.Minute)),
				Message: "2 nodes cannot be cordoned (since 2026-11-21T12:52:25Z, admission webhook \"nodes.example.com\" denied the request)"},
			{Cause: coordinationv1alpha1.DrainBlockerDisruptionBudget, Name: "default/db", PodCount: 7, NodeCount: 1, Message: "7 pods wait for PodDisruptionBudget default/db"},
			{Cause: coordinationv1alpha1.DrainBlockerInterceptorUnresponsive, Name: coordinationv1alpha1.EvictionInterceptorDaemonSet, PodCount: 1, NodeCount: 1,
				Message: "1 DaemonSet pod is not handled by anybody yet (feature gate NodeMaintenanceAwareDaemonSet of the kube-controller-manager is off)"},
			{Cause: coordinationv1alpha1.DrainBlockerRequestFailed, Name: "shop", PodCount: 2, NodeCount: 1, SinceTime: ptr.To(ago(5 * time.Minute)),
				Pods:    []coordinationv1alpha1.DrainBlockerPod{{Namespace: "shop", Name: "web-0"}, {Namespace: "shop", Name: "web-1"}},
				Message: "2 pods in namespace shop cannot be asked to leave (since 2026-11-21T12:57:25Z, exceeded quota:\nrequests)"},
			{Cause: "Later", Name: "later", PodCount: 1, Message: "1 pod waits for something new"},
		},
	})
	agent := newPod("agent-0", "node-1").of("DaemonSet", "agent").asked().
		requestCondition(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive, coordinationv1alpha1.EvictionRequestReasonHeartbeatOverdue, 0)
	agent.request.Status.ActiveInterceptors = []string{coordinationv1alpha1.EvictionInterceptorDaemonSet}
	return []any{
		rack, drainingNode("node-1", 2, 2, "Draining"), newNode("node-2"),
		newPod("web-0", "node-1"), newPod("web-1", "node-1"), newPod("db-0", "node-1").asked().blocked(), newBudget("db", "db", 0), agent,
	}
}

// TestPublishedBlockers shows what only the controller knows beside what pods tell.
func TestPublishedBlockers(t *testing.T) {
	s := snapshotOf(refusedDrain()...)
	golden(t, "status/refused", renderStatus(viewsOf(s, testNow), testNow, defaultWidth))
	v := viewsOf(s, testNow)[0]
	var keys []string
	for i := range v.Blockers {
		keys = append(keys, v.Blockers[i].key())
	}
	want := []string{"CordonFailed ", "DisruptionBudget default/db", "InterceptorUnresponsive daemonset.apps.k8s.io", "RequestFailed shop", "Later later"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	if v.PodsBlocked != 4 {
		t.Errorf("%d pods are blocked, want those that pods tell of and those that cannot be asked", v.PodsBlocked)
	}
	refused := snapshotOf(newMaintenance("rack", drain, "node-1", "node-2").started(0).drained().draining(s.maintenances[0].Status.DrainStatus),
		drainingNode("node-1", 0, 0, "Drained"), drainingNode("node-2", 0, 0, "Drained"))
	if blockers := viewsOf(refused, testNow)[0].Blockers; len(blockers) > 0 {
		t.Errorf("drained, but waits for %v", blockers)
	}
	s.maintenances[0].Spec.Stage, s.maintenances[0].Generation = complete, s.maintenances[0].Generation+1
	if blockers := viewsOf(s, testNow)[0].Blockers; len(blockers) > 0 {
		t.Errorf("completing, but waits for %v", blockers)
	}
}

// TestCompletionThatCannotWithdraw says why the nodes are not given back.
func TestCompletionThatCannotWithdraw(t *testing.T) {
	const why = "1 pod in namespace shop is still asked to leave: its request cannot be withdrawn (since 5 minutes, a webhook says no)"
	rack := newMaintenance("rack", complete, "node-1").started(time.Hour)
	rack.Status.DrainStatus.BlockerCount = 1
	rack.Status.DrainStatus.Blockers = []coordinationv1alpha1.DrainBlocker{{
		Cause: coordinationv1alpha1.DrainBlockerRequestFailed, Name: "shop", PodCount: 1, NodeCount: 1, SinceTime: ptr.To(ago(5 * time.Minute)),
		Pods: []coordinationv1alpha1.DrainBlockerPod{{Namespace: "shop", Name: "web-0"}}, Message: why,
	}}
	views := viewsOf(snapshotOf(rack, newNode("node-1")), testNow)
	if text := strings.Join(strings.Fields(renderStatus(views, testNow, defaultWidth)), " "); !strings.Contains(text, why) {
		t.Errorf("nothing says why it is not completed:\n%s", text)
	}
	free := maintenanceStory{rack.DeepCopy()}
	free.Status.DrainStatus.Blockers = nil
	before := viewsOf(snapshotOf(free, newNode("node-1")), testNow)
	if lines := strings.Join(changesBetween(&before[0], &views[0], testNow), "\n"); !strings.Contains(lines, "cannot be withdrawn") {
		t.Errorf("the log does not say that: %q", lines)
	}
}

// TestRefusedCordon names a node that cannot be cordoned in the stage Cordon, too.
func TestRefusedCordon(t *testing.T) {
	const why = "1 node cannot be cordoned (since 2026-11-21T13:02:15Z, a webhook says no)"
	rack := newMaintenance("rack", cordon, "node-1").started(time.Minute)
	rack.Status.DrainStatus.BlockerCount = 1
	rack.Status.DrainStatus.Blockers = []coordinationv1alpha1.DrainBlocker{{
		Cause: coordinationv1alpha1.DrainBlockerCordonFailed, NodeCount: 1, SinceTime: ptr.To(ago(10 * time.Second)),
		Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: "node-1"}, Message: why,
	}}
	views := viewsOf(snapshotOf(rack, newNode("node-1")), testNow)
	text := strings.Join(strings.Fields(renderStatus(views, testNow, defaultWidth)), " ")
	if !strings.Contains(text, "! "+why+" Node node-1") {
		t.Errorf("does not say why, or since when twice:\n%s", text)
	}
}

// TestLinesNameABlockerAtTheFirstLook in the stages that have no drain, and not what a drain that is
// over has waited for.
func TestLinesNameABlockerAtTheFirstLook(t *testing.T) {
	for stage, says := range map[coordinationv1alpha1.NodeMaintenanceStage]string{
		cordon:   "1 node cannot be cordoned (since 2026-11-21T13:02:15Z, a webhook says no)",
		complete: "1 node cannot be made schedulable (since 2026-11-21T13:02:15Z, a webhook says no)",
	} {
		rack := newMaintenance("rack", stage, "node-1").started(time.Minute)
		rack.Status.DrainStatus.BlockerCount = 1
		rack.Status.DrainStatus.Blockers = []coordinationv1alpha1.DrainBlocker{{
			Cause: coordinationv1alpha1.DrainBlockerCordonFailed, NodeCount: 1, SinceTime: ptr.To(ago(10 * time.Second)),
			Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: "node-1"}, Message: says,
		}}
		v := viewsOf(snapshotOf(rack, newNode("node-1")), testNow)[0]
		line := "blocked: " + says + ": Node node-1"
		before := view{Stage: drain, Blockers: []blockerView{{Cause: maintenance.HoldUnhandled, Name: "Static", Blocked: true, Pods: 1, First: []string{"a/b"}}},
			held: map[types.NamespacedName]string{{Namespace: "a", Name: "b"}: blockerKey(maintenance.HoldUnhandled, "Static")}}
		for name, old := range map[string]*view{"first look": nil, "another stage": &before} {
			want := []string{"stage " + string(stage) + ", 1 node", line}
			if diff := cmp.Diff(want, changesBetween(old, &v, testNow)); diff != "" {
				t.Errorf("%s, %s (-want, +got):\n%s", stage, name, diff)
			}
		}
		if lines := changesBetween(&v, &v, testNow); len(lines) > 0 {
			t.Errorf("%s: says again %q", stage, lines)
		}
	}
}

// TestDrainedNamesNodes that the maintenance has ceased to select, and cannot give back.
func TestDrainedNamesNodes(t *testing.T) {
	rack := newMaintenance("rack", drain, "node-1").started(time.Minute).draining(coordinationv1alpha1.DrainStatus{
		BlockerCount: 1, DrainMessage: "Drained",
		Blockers: []coordinationv1alpha1.DrainBlocker{{Cause: coordinationv1alpha1.DrainBlockerCordonFailed, NodeCount: 1, Message: "1 node cannot be made schedulable",
			Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: "node-9"}}},
	}).condition(metav1.ConditionTrue, "Drained", "")
	v := viewsOf(snapshotOf(rack, newNode("node-1"), newPod("late", "node-1")), testNow)[0]
	if v.Outcome != outcomeDrained || len(v.Blockers) != 1 || v.Blockers[0].Object != "Node node-9" {
		t.Errorf("outcome %q, blockers %+v", v.Outcome, v.Blockers)
	}
	contains(t, renderStatus([]view{v}, testNow, defaultWidth), "1 node cannot be made schedulable")
}

// TestPublishedAreCountedOnce where the count is the controller's, which has them.
func TestPublishedAreCountedOnce(t *testing.T) {
	for name, change := range map[string]func(s *snapshot){
		"no right to list pods":  func(s *snapshot) { s.unreadable = []string{"pods"} },
		"no right to list nodes": func(s *snapshot) { s.unreadable, s.nodes = []string{"nodes"}, nil },
		"many nodes":             func(s *snapshot) { s.nodesRead = sets.New("node-2") },
	} {
		s := snapshotOf(refusedDrain()...)
		s.maintenances[0].Status.DrainStatus.BlockedPods = 4
		if change(s); viewsOf(s, testNow)[0].PodsBlocked != 4 {
			t.Errorf("%s: %d pods are blocked, want 4", name, viewsOf(s, testNow)[0].PodsBlocked)
		}
	}
}

// TestStuckNodesComeFirst although none of the pods that are counted there is blocked.
func TestStuckNodesComeFirst(t *testing.T) {
	rack := newMaintenance("rack", drain, "node-1", "node-2", "node-3", "node-4", "node-5").started(0).draining(coordinationv1alpha1.DrainStatus{
		DrainMessage: "Draining",
		Blockers: []coordinationv1alpha1.DrainBlocker{
			{Cause: coordinationv1alpha1.DrainBlockerCordonFailed, Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: "node-3"}, NodeCount: 1},
			{Cause: coordinationv1alpha1.DrainBlockerRequestFailed, PodCount: 1, Pods: []coordinationv1alpha1.DrainBlockerPod{{Namespace: "default", Name: "web-4"}}},
		},
	})
	contested := drainingNode("node-5", 0, 1, "Draining")
	contested.Spec.Unschedulable = false
	v := viewsOf(snapshotOf(rack, drainingNode("node-1", 0, 1, "Draining"), drainingNode("node-2", 0, 1, "Draining"), drainingNode("node-3", 1, 0, "Draining"),
		drainingNode("node-4", 1, 0, "Draining"), contested, newPod("web-4", "node-4")), testNow)[0]
	shown, _ := v.nodesToShow(3)
	var names []string
	for _, node := range shown {
		names = append(names, node.Name)
	}
	if diff := cmp.Diff([]string{"node-3", "node-4", "node-5"}, names); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	contains(t, renderStatus([]view{v}, testNow, defaultWidth), "Draining, not cordoned\n")
	v.Stage, v.Nodes[4].Message = cordon, ""
	contains(t, renderStatus([]view{v}, testNow, defaultWidth), "node-5  Not cordoned, see: kubectl describe node node-5\n")
}

// TestPublishedOrCondition prints one of both where they say the same.
func TestPublishedOrCondition(t *testing.T) {
	const says = "2 pods in namespace shop cannot be asked to leave (exceeded quota: requests)"
	stories := refusedDrain()
	stories[0] = stories[0].(maintenanceStory).condition(metav1.ConditionFalse, "Blocked", "5 pods left. "+says+": shop/web-0, shop/web-1.")
	s := newServer(t, stories...)
	s.forbid("pods")
	s.whenLooked(func() { s.end(context.DeadlineExceeded) })
	for _, text := range []string{s.run(t, "watch", "rack"), s.failure} {
		if count := strings.Count(text, says); count != 1 {
			t.Errorf("says it %d times: %s", count, text)
		}
	}
	contains(t, s.failure, "2 nodes cannot be cordoned")
}

// TestPublishedBlockersInLines names them in the log, and when the time is over.
func TestPublishedBlockersInLines(t *testing.T) {
	s := newServer(t, refusedDrain()...)
	s.whenLooked(func() { s.end(context.DeadlineExceeded) })
	out := s.run(t, "watch", "rack")
	contains(t, out,
		"rack: blocked: 2 nodes cannot be cordoned (since 2026-11-21T12:52:25Z, admission webhook \"nodes.example.com\" denied the request): Node node-2 and 1 more\n",
		"rack: blocked: 2 pods in namespace shop cannot be asked to leave (since 2026-11-21T12:57:25Z, exceeded quota: requests): shop/web-0, shop/web-1\n")
	contains(t, s.failure, "rack: blocked: 2 pods in namespace shop cannot be asked to leave")
	if s.code != exitBlocked {
		t.Errorf("exit code %d", s.code)
	}
}

func TestPublishedOnly(t *testing.T) {
	for _, cause := range maintenance.HoldCauses() {
		want := cause == maintenance.HoldCordonFailed || cause == maintenance.HoldNodeStatusFailed || cause == maintenance.HoldRequestFailed
		if got := isPublishedOnly(coordinationv1alpha1.DrainBlockerCause(cause)); got != want {
			t.Errorf("%s: %t", cause, got)
		}
	}
}
