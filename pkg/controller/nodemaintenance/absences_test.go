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
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
)

const gateOff = "feature gate NodeMaintenanceAwareDaemonSet of the kube-controller-manager is off"

// aware makes the pod one that was created by a DaemonSet controller that takes part in maintenances.
func aware(pod *v1.Pod) {
	pod.Spec.EvictionInterceptors = []v1.EvictionInterceptor{{Name: coordinationv1alpha1.EvictionInterceptorDaemonSet}}
}

// declare sets what the kubelet of a node declares.
func (f *fixture) declare(name string, declared ...string) {
	f.t.Helper()
	node := f.node(name)
	node.Status.DeclaredFeatures = declared
	if _, err := f.client.CoreV1().Nodes().UpdateStatus(f.ctx, node, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// expectCondition checks the condition Drained of the maintenance m, that of its nodes, and how many pods stay.
func (f *fixture) expectCondition(when, want string, skipped int32, nodes ...string) {
	f.t.Helper()
	m := f.maintenance("m")
	if got := f.conditionOf("m", coordinationv1alpha1.NodeMaintenanceConditionDrained); got != want {
		f.t.Errorf("%s: %q, want %q", when, got, want)
	}
	if stored := m.Status.DrainStatus; stored.SkippedPods != skipped || stored.BlockedPods != 0 || status.IsDrained(&m.Status) && len(stored.Blockers) > 0 {
		f.t.Errorf("%s: %d pods stay, want %d; blockers %+v", when, stored.SkippedPods, skipped, stored.Blockers)
	}
	for _, name := range nodes {
		node := f.node(name)
		for _, c := range node.Status.Conditions {
			if c.Type == v1.NodeDrained && (c.Status == v1.ConditionTrue) != status.IsDrained(&m.Status) {
				f.t.Errorf("%s: node %s is drained: %s", when, name, c.Status)
			}
		}
	}
}

// TestBaseGates verifies that nodes are drained with the base gates alone, whose DaemonSet pods and static pods
// nobody stops: these stay, are counted apart, and the status says which gate is off where.
func TestBaseGates(t *testing.T) {
	f := newFixture(t)
	f.absences = NewAbsences(map[string]Absence{coordinationv1alpha1.EvictionInterceptorDaemonSet: {Why: gateOff}})
	f.restart()
	for _, node := range []string{"n1", "n2"} {
		f.createNode(node, map[string]string{"a": ""})
	}
	f.declare("n1", "RestartAllContainersOnContainerExits")
	agents := append(f.createPods(1, "n1", 0, daemon), f.createPods(1, "n2", 0, daemon, aware)...)
	static, stopped, web := f.createPods(1, "n1", 0, mirror)[0], f.createPods(1, "n2", 0, mirror)[0], f.createPods(1, "n1", 0)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	const staying = "2 DaemonSet pods stay, which nobody stops: " + gateOff + ". " +
		"1 static pod stays, which nobody stops: feature gate NodeMaintenanceAwareKubelet of the kubelet is off on n1."
	f.expectCondition("at the beginning", "False Draining: 2 pods left on 2 of 2 nodes. "+staying+" 1 pod is being evicted: default/"+web.Name+".", 3)
	for what, pod := range map[string]*v1.Pod{"a DaemonSet pod": agents[0], "a DaemonSet pod of before": agents[1], "a static pod": static} {
		if f.asksFor(pod) {
			t.Errorf("asks %s to leave, which nobody stops", what)
		}
	}
	f.deletePods(web)
	f.settle()
	if !f.asksFor(stopped) {
		t.Fatal("does not ask the static pod whose kubelet takes part")
	}
	f.deletePods(stopped)
	f.settle()
	f.expectCondition("at the end", "True Drained: No pod is left on 2 nodes. "+staying, 3, "n1", "n2")
	// They run on after the maintenance, which may end.
	f.setStage("m", stageComplete)
	f.settle()
	if m := f.maintenance("m"); len(m.Finalizers) > 0 {
		t.Error("not completed")
	}
}

// TestPartOfTheKubeletChanges verifies that a kubelet which is replaced during a maintenance by one with another
// gate is asked from then on, or not any more.
func TestPartOfTheKubeletChanges(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.declare("n")
	static := f.createPods(1, "n", 0, mirror)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	const staying = "True Drained: No pod is left on 1 node. 1 static pod stays, which nobody stops: feature gate NodeMaintenanceAwareKubelet of the kubelet is off on n."
	f.expectCondition("off", staying, 1, "n")
	f.declare("n", maintenance.KubeletFeature)
	f.settle()
	if !f.asksFor(static) || status.IsDrained(&f.maintenance("m").Status) {
		t.Error("on: the static pod was not asked, or does not count")
	}
	f.declare("n")
	f.settle()
	if f.asksFor(static) {
		t.Error("off again: the request was not withdrawn")
	}
	f.expectCondition("off again", staying, 1, "n")
}

// TestKubeletsMayNotReport verifies that static pods stay while kube-apiserver would deny their kubelets to report
// that they stop them, also if the drain has asked for them already.
func TestKubeletsMayNotReport(t *testing.T) {
	f := newFixture(t)
	f.absences = NewAbsences(nil)
	f.restart()
	f.createNode("n", map[string]string{"a": ""})
	f.declare("n", maintenance.KubeletFeature)
	static := f.createPods(1, "n", 0, mirror)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	if !f.asksFor(static) {
		t.Fatal("does not ask the static pod whose kubelet takes part")
	}
	const why = "feature gate NodeMaintenanceAwareKubelet of the kube-apiserver is off"
	f.absences.Set(coordinationv1alpha1.EvictionInterceptorKubelet, Absence{Why: why})
	f.settle()
	if f.asksFor(static) {
		t.Error("asks the static pod, which nobody may stop")
	}
	f.expectCondition("denied", "True Drained: No pod is left on 1 node. 1 static pod stays, which nobody stops: "+why+".", 1, "n")
	f.absences.Clear(coordinationv1alpha1.EvictionInterceptorKubelet)
	f.settle()
	if !f.asksFor(static) || status.IsDrained(&f.maintenance("m").Status) {
		t.Error("allowed: the static pod was not asked, or does not count")
	}
}

// TestPartOfDaemonSetsChanges verifies that nodes are counted again when the DaemonSet controller takes part, and
// when it does not any more.
func TestPartOfDaemonSetsChanges(t *testing.T) {
	f := newFixture(t)
	f.absences = NewAbsences(nil)
	f.restart()
	f.createNode("n", map[string]string{"a": ""})
	agent := f.createPods(1, "n", 0, daemon)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	if !f.asksFor(agent) {
		t.Fatal("does not ask the DaemonSet pod")
	}
	f.absences.Set(coordinationv1alpha1.EvictionInterceptorDaemonSet, Absence{Why: gateOff})
	f.settle()
	if f.asksFor(agent) {
		t.Error("off: the request was not withdrawn")
	}
	f.expectCondition("off", "True Drained: No pod is left on 1 node. 1 DaemonSet pod stays, which nobody stops: "+gateOff+".", 1, "n")
	f.absences.Clear(coordinationv1alpha1.EvictionInterceptorDaemonSet)
	f.settle()
	if !f.asksFor(agent) || status.IsDrained(&f.maintenance("m").Status) {
		t.Error("on: the DaemonSet pod was not asked, or does not count")
	}
}

// TestUnstoppedBesideSkipped verifies that the status does not blame pod policies for pods that nobody stops.
func TestUnstoppedBesideSkipped(t *testing.T) {
	f := newFixture(t)
	f.absences = NewAbsences(map[string]Absence{coordinationv1alpha1.EvictionInterceptorDaemonSet: {Why: gateOff}})
	f.restart()
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0, daemon)
	f.createPods(2, "n", 0, ofApp("db"))
	f.createWith("m", "a", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
		spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{policy(coordinationv1alpha1.NodeMaintenancePodSkip, "db")}
	})
	f.settle()
	f.expectCondition("", "True Drained: No pod is left on 1 node. 2 pods stay, because spec.podPolicies skips them. "+
		"1 DaemonSet pod stays, which nobody stops: "+gateOff+".", 3, "n")
}

// TestForeignDaemonSets verifies that pods of DaemonSets of other API groups stay whatever the gates, unless they name
// an interceptor of theirs. The DaemonSet controller leaves them alone.
func TestForeignDaemonSets(t *testing.T) {
	foreign := func(pod *v1.Pod) {
		daemon(pod)
		pod.OwnerReferences[0].APIVersion = "apps.kruise.io/v1alpha1"
	}
	own := func(pod *v1.Pod) {
		foreign(pod)
		pod.Spec.EvictionInterceptors = []v1.EvictionInterceptor{{Name: "daemonset.kruise.io"}}
	}
	registered := func(pod *v1.Pod) {
		foreign(pod)
		pod.Annotations = map[string]string{coordinationv1alpha1.EvictionInterceptorAnnotationPrefix + "move.example.com": "100"}
	}
	for _, why := range []string{"", gateOff} {
		f := newFixture(t)
		if why != "" {
			f.absences = NewAbsences(map[string]Absence{coordinationv1alpha1.EvictionInterceptorDaemonSet: {Why: why}})
			f.restart()
		}
		f.createNode("n", map[string]string{"a": ""})
		f.createPods(1, "n", 0, foreign)
		f.createPods(1, "n", 0, foreign, aware)
		asked := append(f.createPods(1, "n", 0, own), f.createPods(1, "n", 0, registered)...)
		f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
		f.settle()
		for _, pod := range asked {
			if !f.asksFor(pod) {
				t.Errorf("%q: does not ask pod %s, which names an interceptor", why, pod.Name)
			}
		}
		f.deletePods(asked...)
		f.settle()
		f.expectCondition(why, "True Drained: No pod is left on 1 node. 2 DaemonSet pods stay, which nobody stops: "+foreignAbsent+".", 2, "n")
	}
}
