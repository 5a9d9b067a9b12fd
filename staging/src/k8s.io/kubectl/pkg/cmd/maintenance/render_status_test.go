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
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/utils/ptr"
)

const (
	migrate = "migrate.example.com"
	backup  = "backup.example.com"
)

// blockedDrain returns a drain of three nodes with blockers of several kinds.
func blockedDrain() *podSnapshot {
	return snapshotOf(
		newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1", "node-2", "node-3").
			reason("Firmware upgrade, ticket OPS-4711").started(250*time.Second).
			draining(coordinationv1alpha1.DrainStatus{
				ReachedDrainTargets:        []corev1.DrainPlanEntry{{PodType: corev1.PodTypeDefault, PodPriority: 1000000000}},
				PodsPendingEvictionRequest: 3, ActiveEvictionRequests: 7, DrainedNodes: 1, BlockedPods: 4,
				DrainMessage: "Draining (limited by rack-8)",
			}).condition(metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonBlocked, "2 pods wait."),
		drainingNode("node-1", 0, 0, "Drained"),
		drainingNode("node-2", 3, 4, "Draining"),
		drainingNode("node-3", 0, 3, "Draining (limited by rack-8)"),
		newNode("node-4"),
		newPod("db-0", "node-2").asked().blocked(),
		newPod("db-1", "node-3").asked().blocked(),
		newPod("vm-0", "node-2", migrate).asked().reported(20*time.Second, 125*time.Second),
		newPod("vm-1", "node-2", backup).asked().requestCondition(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive, coordinationv1alpha1.EvictionRequestReasonHeartbeatOverdue, time.Minute),
		newPod("web-0", "node-2").asked(),
		newPod("cache-0", "node-2"), newPod("cache-1", "node-2"), newPod("cache-2", "node-2"),
		newPod("web-1", "node-3").asked(),
		newPod("stuck-0", "node-3").asked().terminatingSince(20*time.Minute),
		// Its node is not selected.
		newPod("db-2", "node-4").asked().blocked(),
		newBudget("db", "db", 0),
	)
}

func (m maintenanceStory) skipping(pods int32) maintenanceStory {
	m.Status.DrainStatus.SkippedPods = pods
	return m
}

// without removes pods.
func (s *podSnapshot) without(names ...string) {
	for node, pods := range s.pods {
		s.pods[node] = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return slices.Contains(names, pod.Name) })
	}
	s.publish()
}

// changed makes it a maintenance of long ago whose spec somebody has changed again. The controller wrote its
// status later, which is no change.
func (m maintenanceStory) changed(before time.Duration) maintenanceStory {
	m.CreationTimestamp, m.Generation = ago(24*time.Hour), m.Status.ObservedGeneration+1
	m.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kubectl-create", Operation: metav1.ManagedFieldsOperationUpdate, Time: ptr.To(ago(24 * time.Hour))},
		{Manager: fieldManager, Operation: metav1.ManagedFieldsOperationUpdate, Time: ptr.To(ago(before))},
		{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", Time: ptr.To(ago(0))},
	}
	return m
}

// TestAlarmAfterAChange verifies that a controller that has not acted yet is reported when it takes long, and
// not because the maintenance is old: a pause changed it a moment ago.
func TestAlarmAfterAChange(t *testing.T) {
	const alarm = "The controller has not acted on the last change yet"
	paused := func(before time.Duration) maintenanceStory {
		return newMaintenance("rack", drain, "node-1").started(time.Hour).changed(before)
	}
	deleted := newMaintenance("rack", drain, "node-1").started(time.Hour).changed(time.Hour)
	deleted.DeletionTimestamp = ptr.To(ago(time.Second))
	unknown := paused(0)
	unknown.ManagedFields = nil
	for _, tc := range []struct {
		name  string
		story maintenanceStory
		want  bool
	}{
		{"just now", paused(300 * time.Millisecond), false},
		{"not long ago", paused(controllerPatience - 1), false},
		{"long ago", paused(controllerPatience), true},
		{"deleted just now", deleted, false},
		{"nobody knows", unknown, true},
	} {
		s := newServer(t, tc.story, drainingNode("node-1", 0, 1, "Draining"))
		if out := s.mustRun(t, "status"); strings.Contains(out, alarm) != tc.want {
			t.Errorf("%s:\n%s", tc.name, out)
		}
		// A watch keeps what it needs for that.
		kept, err := forgetUnused(tc.story.NodeMaintenance.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		page := renderStatus(viewsOf(&snapshot{maintenances: []*coordinationv1alpha1.NodeMaintenance{kept.(*coordinationv1alpha1.NodeMaintenance)}}), testNow, defaultWidth)
		if strings.Contains(page, alarm) != tc.want {
			t.Errorf("%s, watched:\n%s", tc.name, page)
		}
	}
}

func TestRenderStatus(t *testing.T) {
	long := "ip-10-112-233-44.eu-central-1.compute.internal"
	unreadable := withoutNodes(blockedDrain())
	many := []any{newPod("db-0", "node-99").asked().blocked(), newBudget("db", "db", 0)}
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("node-%02d", i))
		// Every other node is drained.
		many = append(many, drainingNode(names[i], int32(i%2), 0, ""))
		if i%2 == 1 && i < 99 {
			many = append(many, newPod(fmt.Sprintf("web-%d", i), names[i]))
		}
	}
	unseenUnreadable := withoutNodes(snapshotOf(newMaintenance("fresh", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1").started(0), newNode("node-1")))
	for name, s := range map[string]*podSnapshot{
		"surging": surgingDrain(),
		"many":    snapshotOf(append(many, newMaintenance("all", coordinationv1alpha1.NodeMaintenanceStageDrain, names...).started(time.Hour))...),
		"blocked": blockedDrain(),
		"idle": snapshotOf(newMaintenance("announced", coordinationv1alpha1.NodeMaintenanceStageIdle, "node-1").reason("Next week").started(3*24*time.Hour),
			newNode("node-1")),
		"cordon":  snapshotOf(newMaintenance("cordoned", coordinationv1alpha1.NodeMaintenanceStageCordon, "node-1", "node-2").started(time.Minute), drainingNode("node-1", 0, 0, ""), newNode("node-2")),
		"drained": snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1").started(time.Hour).drained(), drainingNode("node-1", 0, 0, "Drained")),
		"completing": snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageComplete, "node-1").started(time.Second),
			newNode("node-1")),
		"completed": snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageComplete, "node-1").started(time.Hour).completed(),
			newNode("node-1")),
		"no-nodes":  snapshotOf(newMaintenance("typo", coordinationv1alpha1.NodeMaintenanceStageDrain, "nobody").started(time.Second)),
		"unseen":    snapshotOf(newMaintenance("fresh", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1"), newNode("node-1")),
		"uncounted": unseenUnreadable,
		// The list of maintenances is newer than the lists of nodes and pods.
		"drained-since": snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1", "node-2").started(time.Hour).drained(),
			drainingNode("node-1", 0, 2, "Draining"), drainingNode("node-2", 0, 0, "Drained"),
			newPod("db-0", "node-1").asked().blocked(), newPod("web-0", "node-1").asked(), newBudget("db", "db", 0)),
		"canceled": snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1").started(time.Second).
			draining(coordinationv1alpha1.DrainStatus{PodsPendingEvictionRequest: 3, DrainMessage: "Draining"}),
			drainingNode("node-1", 3, 0, "Draining"),
			newPod("db-0", "node-1").asked().blocked(), newPod("web-0", "node-1"), newBudget("db", "db", 0),
			// The request cannot evict the pod.
			newPod("group-0", "node-1").asked().requestCondition(coordinationv1alpha1.EvictionRequestConditionCanceled, coordinationv1alpha1.EvictionRequestReasonValidationFailed, time.Minute)),
		"unhandled": snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1", "node-2").started(time.Hour), drainingNode("node-1", 0, 2, "Draining"), drainingNode("node-2", 0, 2, "Draining"),
			newPod("proxy-0", "node-1", coordinationv1alpha1.EvictionInterceptorDaemonSet).asked(),
			newPod("etcd-0", "node-1", coordinationv1alpha1.EvictionInterceptorKubelet).asked().
				requestCondition(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive, coordinationv1alpha1.EvictionRequestReasonHeartbeatOverdue, time.Minute)),
		"waiting": snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1").started(time.Minute).
			draining(coordinationv1alpha1.DrainStatus{PodsPendingEvictionRequest: 1, DrainMessage: "Waiting for rack-8."}).
			condition(metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonWaiting, "1 pod left on 1 of 1 node. Waiting for rack-8."),
			drainingNode("node-1", 1, 0, "Waiting for rack-8."), newPod("web-0", "node-1")),
		"held": snapshotOf(newMaintenance("a", coordinationv1alpha1.NodeMaintenanceStageComplete, "node-1", "node-2").started(time.Hour).completed(),
			newMaintenance("b", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-2").started(time.Hour).drained(),
			newMaintenance("c", coordinationv1alpha1.NodeMaintenanceStageIdle, "node-2").started(time.Hour),
			newNode("node-1"), drainingNode("node-2", 0, 0, "Drained")),
		"unreadable": unreadable,
		"unexplained": snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1").started(time.Minute).
			draining(coordinationv1alpha1.DrainStatus{PodsPendingEvictionRequest: 2, DrainMessage: "Waiting for rack-8."}).
			condition(metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonWaiting, "2 pods left on 1 of 1 node. Waiting for rack-8, which is in the stage Cordon and has no drain plan that goes as far."),
			drainingNode("node-1", 2, 0, "Waiting for rack-8."), newPod("web-0", "node-1"), newPod("web-1", "node-1")),
		"unlisted": snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1").started(time.Minute).
			draining(coordinationv1alpha1.DrainStatus{ActiveEvictionRequests: 30, BlockedPods: 30, DrainMessage: "Draining", BlockerCount: 25, Blockers: []coordinationv1alpha1.DrainBlocker{
				{Cause: coordinationv1alpha1.DrainBlockerEvictionRefused, PodCount: 30, NodeCount: 1, Message: "30 pods wait because the API server refuses to evict"},
				{Cause: "Later", Name: "later"},
			}}), drainingNode("node-1", 0, 30, "Draining")),
		"skipped": snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1").started(time.Hour).drained().skipping(2), drainingNode("node-1", 0, 0, "Drained"),
			newMaintenance("rack-8", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-2").started(time.Minute).draining(coordinationv1alpha1.DrainStatus{DrainMessage: "Draining"}).skipping(1).
				condition(metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonDraining, "1 pod left on 1 of 1 node. 1 pod stays, because spec.podPolicies skips it."),
			drainingNode("node-2", 1, 0, "Draining"), newPod("web-0", "node-2")),
		"two": snapshotOf(newMaintenance("b", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1").started(time.Hour).drained(),
			newMaintenance("a", coordinationv1alpha1.NodeMaintenanceStageCordon, "node-1").started(time.Hour), drainingNode("node-1", 0, 0, "Drained")),
		"long-names": snapshotOf(
			newMaintenance(strings.Repeat("very-", 20)+"long", coordinationv1alpha1.NodeMaintenanceStageDrain, long, "node-1").
				reason(strings.Repeat("because of this and that ", 8)+"\x1b[2J"+strings.Repeat("x", 100)).started(time.Hour),
			drainingNode(long, 10, 40, "Draining (limited by maintenance-a, maintenance-b, maintenance-c, maintenance-d, maintenance-e and 3 more)"),
			drainingNode("node-1", 1, 1, "Waiting for other."), newPod("web-0", "node-1"), newPod("web-1", "node-1").asked(), newPod("web-2", long),
			newPod("db-"+strings.Repeat("0", 120), long, strings.Repeat("i", 60)+".example.com").asked().reported(time.Hour, -time.Hour),
		),
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, "status/"+name, renderStatus(viewsIn(s), testNow, defaultWidth))
		})
	}
}

// withoutNodes revokes the permission to list nodes.
func withoutNodes(s *podSnapshot) *podSnapshot {
	s.unreadable, s.nodes = []string{"nodes"}, nil
	return s
}

// TestRenderProgress shows how many pods have left since the first view.
func TestRenderProgress(t *testing.T) {
	seen := progress{}
	seen.apply(viewsIn(blockedDrain()))
	later := blockedDrain()
	later.without("cache-0", "cache-1", "cache-2", "web-1")
	views := viewsIn(later)
	seen.apply(views)
	golden(t, "status/progress", renderStatus(views, testNow, defaultWidth))
}

func TestStatusForScripts(t *testing.T) {
	var out bytes.Buffer
	views := viewsIn(blockedDrain())
	if err := printStructured(&out, "yaml", map[string]any{"maintenances": views}); err != nil {
		t.Fatal(err)
	}
	golden(t, "status/blocked-wide-yaml", out.String())
	out.Reset()
	if err := printStructured(&out, "yaml", viewsIn(surgingDrain())[0].Blockers); err != nil {
		t.Fatal(err)
	}
	golden(t, "status/surging-wide-yaml", out.String())
}

func TestBar(t *testing.T) {
	for _, tc := range []struct {
		name string
		node nodeView
		want string
	}{
		{"nothing known", nodeView{}, "[          ]"},
		{"drained", nodeView{Drained: true}, "[##########]"},
		{"a pod came back", nodeView{Drained: true, PodsPending: 1}, "[..........]"},
		{"half gone", nodeView{PodsGone: 5, PodsPending: 5}, "[#####.....]"},
		{"all", nodeView{PodsGone: 2, PodsEvicting: 4, PodsBlocked: 2, PodsPending: 4}, "[##!!>>....]"},
		{"few among many", nodeView{PodsGone: 1000, PodsEvicting: 2, PodsBlocked: 1, PodsPending: 1}, "[#######!>.]"},
		// The counts may contradict each other.
		{"more blocked than left", nodeView{PodsBlocked: 3, PodsEvicting: 2}, "[!!!!!!!!!!]"},
		{"blocked, and pending", nodeView{PodsBlocked: 1, PodsPending: 2}, "[!!!!!.....]"},
	} {
		if got := bar(&tc.node, 10); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestTimeAndRemainder(t *testing.T) {
	for _, tc := range []struct {
		at   time.Duration
		want string
	}{
		{2 * time.Minute, "13:04:25, in 2m"},
		{-time.Hour, "12:02:25, 60m ago"},
		{24 * time.Hour, "2026-11-22 13:02:25, in 24h"},
	} {
		if got := timeAndRemainder(testNow, ago(-tc.at)); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.at, got, tc.want)
		}
	}
	// Windows are agreed upon by people in several zones.
	berlin := testNow.In(time.FixedZone("CET", 3600))
	for want, at := range map[string]metav1.Time{"14:04 CET, in 2m": ago(-2 * time.Minute), "2026-11-22 14:02 CET, in 24h": ago(-24 * time.Hour)} {
		if got := windowTime(berlin, at); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// changesOf returns the lines that are reported for v after old, or for v as the first view.
func changesOf(old, v *view) []string {
	r := &reporter{}
	if old != nil {
		r.changes(old, testNow)
	}
	return r.changes(v, testNow)
}

func TestChanges(t *testing.T) {
	look := func(s *podSnapshot) *view { return viewsIn(s)[0] }
	rack := func(stories ...any) *podSnapshot {
		return snapshotOf(append(stories, newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1").started(0), newNode("node-1"))...)
	}
	released := blockedDrain()
	for _, name := range []string{"uid-of-db-0", "uid-of-db-1"} {
		released.requests[name].Status.Conditions = nil
	}
	released.requests["uid-of-vm-0"].Status.Interceptors[0].ExpectedFinishTime = ptr.To(ago(-10 * time.Minute))
	released.requests["uid-of-vm-0"].Status.Interceptors[0].HeartbeatTime = ptr.To(ago(0))
	released.without("web-0")
	reported := blockedDrain()
	reported.requests["uid-of-vm-0"].Status.Interceptors[0].ExpectedFinishTime = ptr.To(ago(-134 * time.Second))
	reported.requests["uid-of-vm-0"].Status.Interceptors[0].HeartbeatTime = ptr.To(ago(0))
	reported.publish()
	drained := snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1", "node-2").started(time.Hour).drained(),
		drainingNode("node-1", 0, 0, "Drained"), drainingNode("node-2", 0, 0, "Drained"))
	completed := snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageComplete, "node-1", "node-2").started(0).completed(),
		newNode("node-1"), newNode("node-2"))
	deletedBudget := blockedDrain()
	deletedBudget.setBudgets(nil)
	deletedBudget.publish()
	crowded := blockedDrain()
	crowded.maintenances[0].Status.DrainStatus.BlockerCount = 25
	crowded.maintenances[0].Status.DrainStatus.Blockers = crowded.maintenances[0].Status.DrainStatus.Blockers[:1]
	unhandled := rack(newPod("proxy-0", "node-1", coordinationv1alpha1.EvictionInterceptorDaemonSet).asked())
	longUnhandled := rack(newPod("proxy-0", "node-1", coordinationv1alpha1.EvictionInterceptorDaemonSet).asked().
		requestCondition(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive, coordinationv1alpha1.EvictionRequestReasonHeartbeatOverdue, 0))
	completing := snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageComplete, "node-1").started(0), drainingNode("node-1", 0, 0, "Drained"))
	held := snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageComplete, "node-1").started(0).completed(), drainingNode("node-1", 0, 0, "Drained"))
	blockers := []string{
		"blocked: 2 pods wait for PodDisruptionBudget default/db: default/db-0, default/db-1",
		"blocked: 1 pod waits for interceptor backup.example.com, which has never reported: default/vm-1",
		"blocked: 1 pod is still terminating after the grace period (finalizers: example.com/keep): default/stuck-0",
		"1 pod waits for interceptor migrate.example.com: default/vm-0 (ETA 13:04:30, in 2m5s)",
	}
	for _, tc := range []struct {
		name     string
		old, new *view
		want     []string
	}{
		{"the first view", nil, look(blockedDrain()), append([]string{
			"stage Drain, 3 nodes: Firmware upgrade, ticket OPS-4711",
			"Draining (limited by rack-8)",
			"node-1: drained",
			"node-2: 7 pods left: 3 pending, 4 evicting, 2 blocked",
			"node-3: 3 pods left: 3 evicting, 2 blocked",
		}, blockers...)},
		{"no permission to list nodes", nil, look(withoutNodes(blockedDrain())), append([]string{
			"stage Drain, 3 nodes: Firmware upgrade, ticket OPS-4711",
			"Without the permission to list nodes, they are not shown.",
			"Draining (limited by rack-8)",
		}, blockers...)},
		{"nothing", look(blockedDrain()), look(blockedDrain()), nil},
		{"a heartbeat, and an ETA a few seconds later", look(blockedDrain()), look(reported), nil},
		{"a budget is gone, a new ETA, a heartbeat", look(blockedDrain()), look(released), []string{
			"node-2: 6 pods left: 3 pending, 3 evicting, 1 blocked",
			"node-3: 3 pods left: 3 evicting, 1 blocked",
			"1 pod waits for interceptor migrate.example.com: default/vm-0 (ETA 13:12:25, in 10m)",
			"resolved: PodDisruptionBudget default/db",
		}},
		{"drained, a node is no longer selected", look(blockedDrain()), look(drained), []string{
			"node-2: drained",
			"node-3: is no longer selected, released undrained",
			"resolved: PodDisruptionBudget default/db",
			"resolved: Interceptor migrate.example.com",
			"resolved: InterceptorUnresponsive backup.example.com",
			"resolved: StuckTerminating",
			"drained: no pod is left on 2 nodes",
		}},
		{"not listed in the status", look(blockedDrain()), look(crowded), nil},
		{"listed in the status again", look(crowded), look(blockedDrain()), blockers[1:]},
		{"not counted yet", nil, look(rack()), []string{
			"stage Drain, 1 node",
		}},
		{"one pod fewer", look(intercepted(5, true)), look(intercepted(4, true)), []string{
			"node-1: 4 pods left: 4 evicting",
		}},
		{"less than half of the pods are left", look(intercepted(5, true)), look(intercepted(2, true)), []string{
			"node-1: 2 pods left: 2 evicting",
			"2 pods wait for interceptor migrate.example.com (no heartbeat yet): default/vm-0, default/vm-1",
		}},
		{"an interceptor stops reporting", look(intercepted(5, true)), look(intercepted(5, false)), []string{
			"node-1: 5 pods left: 5 evicting, 5 blocked",
			"blocked: 5 pods wait for interceptor migrate.example.com, which has never reported: default/vm-0, default/vm-1 and 3 more",
		}},
		{"an interceptor stops reporting, two pods leave", look(intercepted(5, true)), look(intercepted(3, false)), []string{
			"node-1: 3 pods left: 3 evicting, 3 blocked",
			"blocked: 3 pods wait for interceptor migrate.example.com, which has never reported: default/vm-0, default/vm-1 and 1 more",
		}},
		{"a DaemonSet pod", nil, look(unhandled), []string{
			"stage Drain, 1 node",
			"Draining",
			"node-1: 1 pod left: 1 evicting",
			"1 pod waits for interceptor daemonset.apps.k8s.io (no heartbeat yet): default/proxy-0",
		}},
		{"a DaemonSet pod whose interceptor never reports", look(unhandled), look(longUnhandled), []string{
			"node-1: 1 pod left: 1 evicting, 1 blocked",
			"blocked: 1 pod waits for interceptor daemonset.apps.k8s.io, which has never reported: default/proxy-0",
		}},
		{"the DaemonSet pod is gone", look(longUnhandled), look(rack()), []string{
			"resolved: InterceptorUnresponsive daemonset.apps.k8s.io",
		}},
		{"a surge begins", nil, look(surging("Surging 0/1: a replacement is not available yet.")), []string{
			"stage Drain, 1 node",
			"Draining",
			"node-1: 1 pod left: 1 evicting",
			"1 pod waits for interceptor deployment.apps.k8s.io (no heartbeat yet, Surging 0/1: a replacement is not available yet.): default/web-0",
		}},
		{"a surge continues", look(surging("Surging 0/1: a replacement is not available yet.")), look(surging("Surging 1/1: scaling\n down.")), []string{
			"1 pod waits for interceptor deployment.apps.k8s.io (no heartbeat yet, Surging 1/1: scaling down.): default/web-0",
		}},
		{"a surge makes no progress", look(surging("Surging 0/1.")), look(surging("Surging 0/1.")), nil},
		{"another pod joins the surge", look(surging("Surging 0/1.")), look(surging("Surging 0/1.", "Surging 0/1.")), []string{
			"node-1: 2 pods left: 2 evicting",
			"2 pods wait for interceptor deployment.apps.k8s.io (no heartbeat yet, Surging 0/1.): default/web-0, default/web-1",
		}},
		{"another pod without a message", look(surging("Surging 0/1.")), look(surging("Surging 0/1.", "")), []string{
			"node-1: 2 pods left: 2 evicting",
			"2 pods wait for interceptor deployment.apps.k8s.io (no heartbeat yet, default/web-0: Surging 0/1.): default/web-0, default/web-1",
		}},
		{"a surge stops reporting", look(surging("Surging 0/1.")), look(silent(surging("Surging 0/1."))), []string{
			"node-1: 1 pod left: 1 evicting, 1 blocked",
			"blocked: 1 pod waits for interceptor deployment.apps.k8s.io, which has never reported (Surging 0/1.): default/web-0",
		}},
		{"a surge is finished", look(surging("Surging 1/1.")), look(rack()), []string{
			"resolved: Interceptor deployment.apps.k8s.io",
		}},
		{"completed, but a node is not released", look(completing), look(held), []string{"completed"}},
		{"a budget was deleted", look(blockedDrain()), look(deletedBudget), []string{
			"blocked: 2 pods wait for a PodDisruptionBudget: default/db-0, default/db-1",
			"resolved: PodDisruptionBudget default/db",
		}},
		{"completed", look(drained), look(completed), []string{
			"stage Complete, 2 nodes", "node-1: schedulable", "node-2: schedulable", "completed: the nodes are released",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, changesOf(tc.old, tc.new)); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
		})
	}
}

// TestLinesAreBounded verifies that few lines are printed for a blocker whose pods leave one by
// one, or whose number of pods alternates.
func TestLinesAreBounded(t *testing.T) {
	blocked := func(pods int) *view {
		return &view{Stage: drain, BlockerCount: 1, Blockers: []*blockerView{{
			Cause: maintenance.BlockerDisruptionBudget, Name: "default/db", Blocked: true, Pods: pods, Message: fmt.Sprintf("%d pods wait", pods), First: []string{"default/db-0"},
		}}}
	}
	r := &reporter{}
	lines := 0
	for pods := 1000; pods > 0; pods-- {
		lines += len(r.changes(blocked(pods), testNow))
	}
	// One line for the stage, and one each time that the number halves.
	if lines != 11 {
		t.Errorf("%d lines", lines)
	}
	lines = 0
	for i := range 1000 {
		lines += len(r.changes(blocked(8+i%2), testNow))
	}
	if lines != 1 {
		t.Errorf("%d lines, while the number alternates", lines)
	}
	if last := r.changes(&view{Stage: drain}, testNow); len(last) != 1 {
		t.Errorf("at the end: %q", last)
	}
}

// surging returns a drain of one pod for each message, which its Deployment reports.
func surging(messages ...string) *podSnapshot {
	stories := []any{newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1").started(0), newNode("node-1")}
	for i, message := range messages {
		stories = append(stories, newPod(fmt.Sprintf("web-%d", i), "node-1", coordinationv1alpha1.EvictionInterceptorDeployment).asked().saying(message))
	}
	return snapshotOf(stories...)
}

// silent marks all interceptors as unresponsive.
func silent(s *podSnapshot) *podSnapshot {
	for _, request := range s.requests {
		request.Status.Conditions = []metav1.Condition{{Type: string(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive), Status: metav1.ConditionTrue}}
	}
	s.publish()
	return s
}

// surgingDrain returns a drain with pods of several Deployments.
func surgingDrain() *podSnapshot {
	const deployment = coordinationv1alpha1.EvictionInterceptorDeployment
	one, two := "Surging 0/1: waiting for a replacement to be available.", "Surging 1/2: waiting for replacements to be available."
	return snapshotOf(
		newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1", "node-2").started(time.Minute).
			draining(coordinationv1alpha1.DrainStatus{ActiveEvictionRequests: 8, DrainMessage: "Draining"}),
		drainingNode("node-1", 0, 4, "Draining"), drainingNode("node-2", 0, 4, "Draining"),
		// Pods are listed by name, regardless of their nodes.
		newPod("api-0", "node-2", deployment).asked().reported(20*time.Second, time.Minute).saying(two),
		newPod("web-0", "node-1", deployment).asked().reported(10*time.Second, time.Minute).saying(one),
		newPod("api-1", "node-1", deployment).asked().reported(20*time.Second, time.Minute).saying(two),
		newPod("blog-0", "node-1", deployment).asked(),
		newPod("cart-0", "node-2", deployment).asked().saying("Failed,\ttrying again: \x1b[2J"+strings.Repeat("no ", 200)+"end"),
		newPod("vm-0", "node-1", migrate).asked().reported(time.Second, time.Hour),
		newPod("vm-1", "node-2", backup).asked().saying("Copied 3 of 7 volumes.").
			requestCondition(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive, coordinationv1alpha1.EvictionRequestReasonHeartbeatOverdue, time.Minute),
		// Its interceptor has reported a message, and the pod is terminating.
		newPod("old-0", "node-2", deployment).asked().saying(one).terminatingSince(0),
	)
}

// intercepted returns a drain of pods whose interceptor is unresponsive unless reports is true.
func intercepted(pods int, reports bool) *podSnapshot {
	stories := []any{newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1").started(0), newNode("node-1")}
	for i := range pods {
		pod := newPod(fmt.Sprintf("vm-%d", i), "node-1", migrate).asked()
		if !reports {
			pod = pod.requestCondition(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive, coordinationv1alpha1.EvictionRequestReasonHeartbeatOverdue, 0)
		}
		stories = append(stories, pod)
	}
	return snapshotOf(stories...)
}

func TestTimedOutNamesFewPods(t *testing.T) {
	err := timedOut(map[string]*view{"rack-7": viewsIn(intercepted(5, false))[0]})
	want := "timed out while pods were blocked; the maintenance continues: kubectl maintenance watch rack-7\n" +
		"rack-7: 5 pods wait for interceptor migrate.example.com, which has never reported: default/vm-0, default/vm-1 and 3 more"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

func TestBlockerLabel(t *testing.T) {
	for want, b := range map[string]blockerView{
		"2 pods wait":          {Message: "2 pods wait"},
		"2 pods wait (for 3m)": {Message: "2 pods wait", Since: ptr.To(ago(3 * time.Minute))},
		"2 pods wait (for 3m, ETA 13:04:25, in 2m)": {Message: "2 pods wait", Since: ptr.To(ago(3 * time.Minute)), ETA: ptr.To(ago(-2 * time.Minute))},
		"Later later":     {Cause: "Later", Name: "later"},
		"EvictionRefused": {Cause: maintenance.BlockerEvictionRefused},
	} {
		if got := blockerLabel(&b, testNow); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestWrap verifies that a command is one word, and that other texts with such words are not.
func TestWrap(t *testing.T) {
	long := strings.Repeat("x", maxCommandLength)
	for _, tc := range []struct {
		name, text string
		width      int
		want       []string
	}{
		{"prose", "one two three", 7, []string{"one two", "three"}},
		{"a long word", "one twothreefour", 7, []string{"one", "twothre", "efour"}},
		{"at the end", "do this: kubectl a b", 14, []string{"do this:", "kubectl a b"}},
		{"longer than the line", "do this: kubectl a b", 7, []string{"do", "this:", "kubectl a b"}},
		{"it fits", "do this: kubectl a b", 20, []string{"do this: kubectl a b"}},
		{"in quotes", `until "kubectl a b" is run`, 11, []string{"until", `"kubectl a b"`, "is run"}},
		{"in parentheses", "one (kubectl a b) two", 12, []string{"one", "(kubectl a b)", "two"}},
		{"before more", "see kubectl a b; one two", 9, []string{"see", "kubectl a b;", "one two"}},
		{"two", "kubectl a b, kubectl c", 9, []string{"kubectl a b,", "kubectl c"}},
		{"a name with dots", "kubectl a b.example.com.", 9, []string{"kubectl a b.example.com."}},
		{"prose with the word", "kubectl 2 3 4 5 6 7 8 9 10", 9, []string{"kubectl 2 3 4 5 6 7 8", "9 10"}},
		{"too long", "kubectl " + long, 900, []string{"kubectl", long[:900], long[900:]}},
		{"no blanks of others", "one\u00a0two\nthree", 7, []string{"one two", "three"}},
	} {
		if diff := cmp.Diff(tc.want, wrap(keepCommands(plaintext.Line(tc.text)), tc.width)); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", tc.name, diff)
		}
	}
	p := &page{width: 20}
	p.wrappedOwn("  prefix:  ", "see: kubectl get nodes and more")
	p.wrappedOwn("  prefix:  ", "see: kubectl get nodes, and more")
	p.wrapped("  prefix:  ", "see: kubectl\u00a0get nodes")
	if diff := cmp.Diff("  prefix:  see:\nkubectl get nodes and more\n  prefix:  see:\n  kubectl get nodes,\n           and more\n  prefix:  see:\n           kubectl\n           get nodes\n", p.String()); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, size: func() (int, int) { return 10, 4 }}
	for _, frame := range []struct{ text, want string }{
		{"one\ntwo\n", "\x1b[?25l\rone\x1b[K\n\rtwo\x1b[K\n\x1b[J"},
		{"1234567890+\nb\nc\nd\ne\n", "\x1b[?25l\x1b[2A\r1234567...\x1b[K\n\rb\x1b[K\n\r... 3 l...\x1b[K\n\x1b[J"},
		{"end\n", "\x1b[?25l\x1b[3A\rend\x1b[K\n\x1b[J"},
		{"a\nb\nc\n", "\x1b[?25l\x1b[1A\ra\x1b[K\n\rb\x1b[K\n\rc\x1b[K\n\x1b[J"},
		// The terminal became smaller.
		{"lower\n", "\x1b[?25l\x1b[1A\rlower\x1b[K\n\x1b[J"},
	} {
		if frame.text == "lower\n" {
			s.size = func() (int, int) { return 10, 2 }
		}
		out.Reset()
		if err := s.draw(frame.text); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(frame.want, out.String()); diff != "" {
			t.Errorf("%q (-want, +got):\n%s", frame.text, diff)
		}
	}
	out.Reset()
	s.close()
	if out.String() != showCursor {
		t.Errorf("at the end: %q", out.String())
	}
	out.Reset()
	s.size = func() (int, int) { return defaultWidth - 1, 100 }
	display := s
	if err := display.show(frame{views: viewsIn(blockedDrain()), now: testNow, trouble: "The view may be outdated, retrying: connection refused"}); err != nil {
		t.Fatal(err)
	}
	contains(t, out.String(), "rack-7: Drain", "\r"+legend+clearLineEnd, "\rThe view may be outdated, retrying: connection refused"+clearLineEnd)
	if newScreen(&out) != nil {
		t.Error("a buffer is treated as a terminal")
	}
}
