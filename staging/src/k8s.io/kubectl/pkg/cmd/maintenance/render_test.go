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
	"k8s.io/utils/ptr"
)

const (
	migrate = "migrate.example.com"
	backup  = "backup.example.com"
)

// blockedDrain is a drain of three nodes in which everything happens at once.
func blockedDrain() *snapshot {
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
		// On a node of nobody's maintenance.
		newPod("db-2", "node-4").asked().blocked(),
		newBudget("db", "db", 0),
	)
}

// without makes pods leave.
func (s *snapshot) without(names ...string) {
	for node, pods := range s.pods {
		s.pods[node] = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return slices.Contains(names, pod.Name) })
	}
}

func TestRenderStatus(t *testing.T) {
	long := "ip-10-112-233-44.eu-central-1.compute.internal"
	unreadable := blockedDrain()
	unreadable.unreadable = []string{"pods", "evictionrequests"}
	many := []any{newPod("db-0", "node-99").asked().blocked(), newBudget("db", "db", 0)}
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("node-%02d", i))
		// Every other one is drained.
		many = append(many, drainingNode(names[i], int32(i%2), 0, ""))
		if i%2 == 1 && i < 99 {
			many = append(many, newPod(fmt.Sprintf("web-%d", i), names[i]))
		}
	}
	unseenUnreadable := snapshotOf(newMaintenance("fresh", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1").started(0), newNode("node-1"))
	unseenUnreadable.unreadable = []string{"pods", "evictionrequests"}
	for name, s := range map[string]*snapshot{
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
		"no-nodes": snapshotOf(newMaintenance("typo", coordinationv1alpha1.NodeMaintenanceStageDrain, "nobody").started(time.Second)),
		"unseen":   snapshotOf(newMaintenance("fresh", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1"), newNode("node-1")),
		"unseen-pods": snapshotOf(newMaintenance("fresh", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1"), drainingNode("node-1", 0, 0, ""),
			newPod("web-0", "node-1"), newPod("web-1", "node-1")),
		"uncounted": unseenUnreadable,
		// The maintenance was read after its nodes and pods.
		"drained-since": snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1", "node-2").started(time.Hour).drained(),
			drainingNode("node-1", 0, 2, "Draining"), drainingNode("node-2", 0, 0, "Drained"),
			newPod("db-0", "node-1").asked().blocked(), newPod("web-0", "node-1").asked(), newBudget("db", "db", 0)),
		// The node was read a while before its pods.
		"asked-since": snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1").started(time.Second).
			draining(coordinationv1alpha1.DrainStatus{PodsPendingEvictionRequest: 3, DrainMessage: "Draining"}),
			drainingNode("node-1", 3, 0, "Draining"),
			newPod("db-0", "node-1").asked().blocked(), newPod("web-0", "node-1"), newBudget("db", "db", 0),
			// Nobody asks it any more.
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
			golden(t, "status/"+name, renderStatus(viewsOf(s, testNow), testNow, defaultWidth))
		})
	}
}

// TestRenderProgress is what only somebody knows who looks on for a while.
func TestRenderProgress(t *testing.T) {
	seen := progress{}
	seen.apply(viewsOf(blockedDrain(), testNow))
	later := blockedDrain()
	later.without("cache-0", "cache-1", "cache-2", "web-1")
	views := viewsOf(later, testNow)
	seen.apply(views)
	golden(t, "status/progress", renderStatus(views, testNow, defaultWidth))
}

func TestStatusForScripts(t *testing.T) {
	var out bytes.Buffer
	views := viewsOf(blockedDrain(), testNow)
	if err := printStructured(&out, "yaml", map[string]any{"maintenances": views}); err != nil {
		t.Fatal(err)
	}
	golden(t, "status/blocked-yaml", out.String())
	out.Reset()
	if err := printStructured(&out, "yaml", viewsOf(surgingDrain(), testNow)[0].Blockers); err != nil {
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
		// Read at different times, the counts may contradict each other.
		{"more blocked than left", nodeView{PodsBlocked: 3, PodsEvicting: 2}, "[!!!!!!!!!!]"},
		{"blocked, as asked too late to count", nodeView{PodsBlocked: 1, PodsPending: 2}, "[!!!!!.....]"},
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
}

func TestChangesBetween(t *testing.T) {
	look := func(s *snapshot) *view { return &viewsOf(s, testNow)[0] }
	released := blockedDrain()
	for _, name := range []string{"uid-of-db-0", "uid-of-db-1"} {
		released.requests[name].Status.Conditions = nil
	}
	released.requests["uid-of-vm-0"].Status.Interceptors[0].ExpectedFinishTime = ptr.To(ago(-10 * time.Minute))
	released.requests["uid-of-vm-0"].Status.Interceptors[0].HeartbeatTime = ptr.To(ago(0))
	released.without("web-0")
	drained := snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1", "node-2").started(time.Hour).drained(),
		drainingNode("node-1", 0, 0, "Drained"), drainingNode("node-2", 0, 0, "Drained"))
	completed := snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageComplete, "node-1", "node-2").started(0).completed(),
		newNode("node-1"), newNode("node-2"))
	unreadable := blockedDrain()
	unreadable.unreadable = []string{"pods", "evictionrequests"}
	deletedBudget, noBudgets := blockedDrain(), blockedDrain()
	deletedBudget.budgets, noBudgets.budgets = nil, nil
	noBudgets.unreadable = []string{"poddisruptionbudgets"}
	noBudgets.maintenances[0].Status.Conditions[0].Message = "2 pods wait for somebody."
	daemon := newPod("proxy-0", "node-1", coordinationv1alpha1.EvictionInterceptorDaemonSet).asked()
	rack := newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1").started(0)
	unhandled := snapshotOf(rack, newNode("node-1"), daemon)
	longUnhandled := snapshotOf(rack, newNode("node-1"), newPod("proxy-0", "node-1", coordinationv1alpha1.EvictionInterceptorDaemonSet).asked().
		requestCondition(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive, coordinationv1alpha1.EvictionRequestReasonHeartbeatOverdue, 0))
	handled := snapshotOf(rack, newNode("node-1"))
	completing := snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageComplete, "node-1").started(0), drainingNode("node-1", 0, 0, "Drained"))
	held := snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageComplete, "node-1").started(0).completed(), drainingNode("node-1", 0, 0, "Drained"))
	for _, tc := range []struct {
		name     string
		old, new *view
		want     []string
	}{
		{"the first time", nil, look(blockedDrain()), []string{
			"stage Drain, 3 nodes: Firmware upgrade, ticket OPS-4711",
			"Draining (limited by rack-8)",
			"node-1: drained",
			"node-2: 7 pods left, 3 not asked yet, 4 asked to leave, 2 blocked",
			"node-3: 3 pods left, 3 asked to leave, 2 blocked",
			"blocked by PodDisruptionBudget default/db: 2 pods: default/db-0, default/db-1",
			"blocked by interceptor backup.example.com, which does not report: 1 pod: default/vm-1",
			"blocked by the kubelet or a finalizer, long after the grace period: 1 pod: default/stuck-0",
			"waiting for interceptor migrate.example.com: 1 pod, ETA 13:04:30, in 2m5s: default/vm-0",
		}},
		{"nothing", look(blockedDrain()), look(blockedDrain()), nil},
		{"a budget is gone, a new ETA, a heartbeat", look(blockedDrain()), look(released), []string{
			"node-2: 6 pods left, 3 not asked yet, 3 asked to leave, 1 blocked",
			"node-3: 3 pods left, 3 asked to leave, 1 blocked",
			"waiting for interceptor migrate.example.com: 1 pod, ETA 13:12:25, in 10m: default/vm-0",
			"no longer waiting for PodDisruptionBudget default/db: 2 pods",
		}},
		{"drained, a node has left", look(blockedDrain()), look(drained), []string{
			"node-2: drained",
			"node-3: is not selected any more",
			"no longer waiting for PodDisruptionBudget default/db: 2 pods",
			"no longer waiting for interceptor backup.example.com, which does not report: 1 pod",
			"no longer waiting for the kubelet or a finalizer, long after the grace period: 1 pod",
			"no longer waiting for interceptor migrate.example.com: 1 pod",
			"drained: no pod is left on 2 nodes",
		}},
		{"not counted yet", nil, look(snapshotOf(newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1").started(0), newNode("node-1"))), []string{
			"stage Drain, 1 node",
		}},
		{"an interceptor falls silent", look(intercepted(5, true)), look(intercepted(5, false)), []string{
			"node-1: 5 pods left, 5 asked to leave, 5 blocked",
			"blocked by interceptor migrate.example.com, which does not report: 5 pods: default/vm-0, default/vm-1 and 3 more",
		}},
		{"an interceptor falls silent, two pods leave", look(intercepted(5, true)), look(intercepted(3, false)), []string{
			"node-1: 3 pods left, 3 asked to leave, 3 blocked",
			"blocked by interceptor migrate.example.com, which does not report: 3 pods: default/vm-0, default/vm-1 and 1 more",
			"no longer waiting for interceptor migrate.example.com: 2 pods",
		}},
		{"nobody handles it", nil, look(unhandled), []string{
			"stage Drain, 1 node",
			"node-1: 1 pod left, 1 asked to leave",
			"waiting for interceptor daemonset.apps.k8s.io: 1 pod: default/proxy-0",
		}},
		{"nobody has handled it for long", look(unhandled), look(longUnhandled), []string{
			"node-1: 1 pod left, 1 asked to leave, 1 blocked",
			"blocked: 1 DaemonSet pod is not handled by anybody yet: default/proxy-0",
		}},
		{"somebody handled it", look(longUnhandled), look(handled), []string{
			"no longer waiting for somebody to handle them: 1 pod",
		}},
		{"a surge begins", nil, look(surging("Surging 0/1: a replacement is not available yet.")), []string{
			"stage Drain, 1 node",
			"node-1: 1 pod left, 1 asked to leave",
			"waiting for interceptor deployment.apps.k8s.io: 1 pod: default/web-0",
			"deployment.apps.k8s.io says of default/web-0: Surging 0/1: a replacement is not available yet.",
		}},
		{"a surge goes on", look(surging("Surging 0/1: a replacement is not available yet.")), look(surging("Surging 1/1: scaling\n down.")), []string{
			"deployment.apps.k8s.io says of default/web-0: Surging 1/1: scaling down.",
		}},
		{"a surge stands still", look(surging("Surging 0/1.")), look(surging("Surging 0/1.")), nil},
		{"another pod joins the surge, of which the same is said", look(surging("Surging 0/1.")), look(surging("Surging 0/1.", "Surging 0/1.")), []string{
			"node-1: 2 pods left, 2 asked to leave",
			"waiting for interceptor deployment.apps.k8s.io: 2 pods: default/web-0, default/web-1",
		}},
		{"nothing is said of another pod", look(surging("Surging 0/1.")), look(surging("Surging 0/1.", "")), []string{
			"node-1: 2 pods left, 2 asked to leave",
			"waiting for interceptor deployment.apps.k8s.io: 2 pods: default/web-0, default/web-1",
		}},
		{"a surge falls silent", look(surging("Surging 0/1.")), look(silent(surging("Surging 0/1."))), []string{
			"node-1: 1 pod left, 1 asked to leave, 1 blocked",
			"blocked by interceptor deployment.apps.k8s.io, which does not report: 1 pod: default/web-0",
		}},
		{"a surge is at its end", look(surging("Surging 1/1.")), look(handled), []string{
			"no longer waiting for interceptor deployment.apps.k8s.io: 1 pod",
		}},
		{"completed, but held by another", look(completing), look(held), []string{"completed"}},
		{"a budget was deleted", look(blockedDrain()), look(deletedBudget), []string{"no longer waiting for PodDisruptionBudget default/db: 2 pods"}},
		{"no right to read budgets", look(blockedDrain()), look(noBudgets), []string{
			"blocked by a PodDisruptionBudget: 2 pods: default/db-0, default/db-1",
			"2 pods wait for somebody.",
		}},
		{"completed", look(drained), look(completed), []string{
			"stage Complete, 2 nodes", "node-1: schedulable", "node-2: schedulable", "completed: the nodes are given back",
		}},
		{"no right to read pods", nil, look(unreadable), []string{
			"stage Drain, 3 nodes: Firmware upgrade, ticket OPS-4711",
			"Draining (limited by rack-8)",
			"node-1: drained",
			"node-2: 7 pods left, 3 not asked yet, 4 asked to leave",
			"node-3: 3 pods left, 3 asked to leave",
			"2 pods wait.",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, changesBetween(tc.old, tc.new, testNow)); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
		})
	}
}

// surging is a drain of pods of which their Deployment says something.
func surging(messages ...string) *snapshot {
	stories := []any{newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1").started(0), newNode("node-1")}
	for i, message := range messages {
		stories = append(stories, newPod(fmt.Sprintf("web-%d", i), "node-1", coordinationv1alpha1.EvictionInterceptorDeployment).asked().saying(message))
	}
	return snapshotOf(stories...)
}

// silent makes all interceptors overdue.
func silent(s *snapshot) *snapshot {
	for _, request := range s.requests {
		request.Status.Conditions = []metav1.Condition{{Type: string(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive), Status: metav1.ConditionTrue}}
	}
	return s
}

// surgingDrain is a drain of pods of several Deployments.
func surgingDrain() *snapshot {
	const deployment = coordinationv1alpha1.EvictionInterceptorDeployment
	one, two := "Surging 0/1: waiting for a replacement to be available.", "Surging 1/2: waiting for replacements to be available."
	return snapshotOf(
		newMaintenance("rack-7", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1", "node-2").started(time.Minute).
			draining(coordinationv1alpha1.DrainStatus{ActiveEvictionRequests: 8, DrainMessage: "Draining"}),
		drainingNode("node-1", 0, 4, "Draining"), drainingNode("node-2", 0, 4, "Draining"),
		// In the order of the pods, whatever their nodes.
		newPod("api-0", "node-2", deployment).asked().reported(20*time.Second, time.Minute).saying(two),
		newPod("web-0", "node-1", deployment).asked().reported(10*time.Second, time.Minute).saying(one),
		newPod("api-1", "node-1", deployment).asked().reported(20*time.Second, time.Minute).saying(two),
		newPod("blog-0", "node-1", deployment).asked(),
		newPod("cart-0", "node-2", deployment).asked().saying("Failed,\ttrying again: \x1b[2J"+strings.Repeat("no ", 200)+"end"),
		newPod("vm-0", "node-1", migrate).asked().reported(time.Second, time.Hour),
		newPod("vm-1", "node-2", backup).asked().saying("Copied 3 of 7 volumes.").
			requestCondition(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive, coordinationv1alpha1.EvictionRequestReasonHeartbeatOverdue, time.Minute),
		// It has said something, and terminates now.
		newPod("old-0", "node-2", deployment).asked().saying(one).terminatingSince(0),
	)
}

// TestManyMessages shows some, and counts the pods of the others.
func TestManyMessages(t *testing.T) {
	var messages []string
	for i := range maxMessages + 2 {
		messages = append(messages, fmt.Sprintf("Surging %d/99.", i))
	}
	// In the order of the pods, which have 10 and 11 before 2.
	text := renderStatus(viewsOf(surging(messages...), testNow), testNow, defaultWidth)
	contains(t, text, "Surging 7/99.\n        default/web-7\n      ... and 2 more pods\n")
	for _, hidden := range messages[8:10] {
		if strings.Contains(text, hidden) {
			t.Errorf("shows more than %d messages:\n%s", maxMessages, text)
		}
	}
}

// intercepted is a drain of some pods whose interceptor reports, or does not.
func intercepted(pods int, reports bool) *snapshot {
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

// TestUnhandledText keeps the words those of the condition Drained.
func TestUnhandledText(t *testing.T) {
	for _, tc := range []struct {
		cause maintenance.HoldCause
		name  string
		want  string
	}{
		{maintenance.HoldInterceptorUnresponsive, coordinationv1alpha1.EvictionInterceptorDaemonSet, "2 DaemonSet pods are not handled by anybody yet"},
		{maintenance.HoldInterceptorUnresponsive, coordinationv1alpha1.EvictionInterceptorKubelet, "2 static pods are not handled by anybody yet"},
		{maintenance.HoldRequestRefused, "", "2 pods cannot be evicted by a request"},
		{maintenance.HoldUnhandled, string(corev1.PodTypeStatic), "2 static pods are not handled by anybody"},
		{maintenance.HoldUnhandled, string(corev1.PodTypeDaemonSet), "2 DaemonSet pods are not handled by anybody"},
		{maintenance.HoldUnhandled, string(corev1.PodTypeDefault), "2 pods are not handled by anybody"},
	} {
		got := blockerText(&blockerView{Cause: tc.cause, Name: tc.name, Pods: 2})
		condition := maintenance.HoldMessage([]maintenance.HoldGroup{{Cause: tc.cause, Name: tc.name, Pods: 2}})
		if got != tc.want || !strings.HasPrefix(condition, tc.want) {
			t.Errorf("%s %s: %q, want %q as in %q", tc.cause, tc.name, got, tc.want, condition)
		}
	}
	reported := &blockerView{Cause: maintenance.HoldInterceptor, Name: coordinationv1alpha1.EvictionInterceptorDaemonSet, Pods: 1, Heartbeat: ptr.To(ago(0))}
	if got, want := blockerText(reported), "interceptor daemonset.apps.k8s.io: 1 pod"; got != want {
		t.Errorf("one that reports: %q, want %q", got, want)
	}
}

func TestTimedOutNamesFewPods(t *testing.T) {
	err := timedOut(map[string]view{"rack-7": viewsOf(intercepted(5, false), testNow)[0]})
	want := "timed out while pods were blocked; the maintenance goes on: kubectl maintenance watch rack-7\n" +
		"rack-7: blocked by interceptor migrate.example.com, which does not report: 5 pods: default/vm-0, default/vm-1 and 3 more"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// TestTimesOfPublishedBlockers leaves out since when, which the message of the controller says.
func TestTimesOfPublishedBlockers(t *testing.T) {
	for cause, want := range map[maintenance.HoldCause]string{
		maintenance.HoldCordonFailed: "", maintenance.HoldNodeStatusFailed: "", maintenance.HoldRequestFailed: "", maintenance.HoldDisruptionBudget: "for 60s",
	} {
		if got := blockerTimes(&blockerView{Cause: cause, Since: ptr.To(metav1.NewTime(testNow.Add(-time.Minute)))}, testNow); got != want {
			t.Errorf("%s: got %q, want %q", cause, got, want)
		}
	}
}

func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, size: func() (int, int) { return 10, 4 }}
	for _, frame := range []struct{ text, want string }{
		{"one\ntwo\n", "\x1b[?25l\rone\x1b[K\n\rtwo\x1b[K\n\x1b[J"},
		{"1234567890+\nb\nc\nd\ne\n", "\x1b[?25l\x1b[2A\r1234567890\x1b[K\n\rb\x1b[K\n\r... 3 line\x1b[K\n\x1b[J"},
		{"end\n", "\x1b[?25l\x1b[3A\rend\x1b[K\n\x1b[J"},
		{"a\nb\nc\n", "\x1b[?25l\x1b[1A\ra\x1b[K\n\rb\x1b[K\n\rc\x1b[K\n\x1b[J"},
		// The terminal has been made lower.
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
	display := &screenDisplay{screen: s}
	if err := display.show(look{views: viewsOf(blockedDrain(), testNow), now: testNow, trouble: "What is shown may be old, trying again: connection refused"}); err != nil {
		t.Fatal(err)
	}
	contains(t, out.String(), "rack-7: Drain", "\r"+legend+clearLineEnd, "\rWhat is shown may be old, trying again: connection refused"+clearLineEnd)
	if newScreen(&out) != nil {
		t.Error("a buffer passes for a terminal")
	}
}
