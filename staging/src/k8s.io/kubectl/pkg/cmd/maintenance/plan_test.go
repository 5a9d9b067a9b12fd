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
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubectl/pkg/cmd/maintenance/nodeselection"
	"k8s.io/utils/ptr"
)

func (p podStory) withPriority(priority int32) podStory {
	p.Spec.Priority = &priority
	return p
}

func (p podStory) ownedBy(kind string) podStory {
	p.OwnerReferences[0].Kind = kind
	return p
}

// startedFor sets when the pod was started and for how long it may run.
func (p podStory) startedFor(before, deadline time.Duration) podStory {
	p.Status.StartTime, p.Spec.ActiveDeadlineSeconds = ptr.To(ago(before)), ptr.To(int64(deadline/time.Second))
	return p
}

func (p podStory) bare() podStory {
	p.OwnerReferences = nil
	return p
}

func (p podStory) static() podStory {
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
	return p.bare()
}

func (p podStory) withLocalStorage() podStory {
	p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	return p
}

func (p podStory) registering(annotations ...string) podStory {
	p.Annotations = map[string]string{}
	for _, annotation := range annotations {
		name, value, _ := strings.Cut(annotation, "=")
		p.Annotations[coordinationv1alpha1.EvictionInterceptorAnnotationPrefix+name] = value
	}
	return p
}

func (p podStory) toleratingAll() podStory {
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return p
}

func (p podStory) inPhase(phase corev1.PodPhase) podStory {
	p.Status.Phase = phase
	return p
}

func (p podStory) unready() podStory {
	p.Status.Conditions = nil
	return p
}

// busyNodes returns nodes with pods of all kinds, an empty one, and one that no plan selects.
func busyNodes() []any {
	grouped := newPod("batch-0", "node-2")
	grouped.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("batch")}
	foreign := newPod("vm-1", "node-2", migrate).asked()
	foreign.request.Spec.Requesters = []coordinationv1alpha1.Requester{{Name: "drain.example.com"}}
	return []any{
		newNode("node-1"), drainingNode("node-2", 1, 0, "Draining"), newNode("node-3"), newNode("node-4"),
		newMaintenance("rack-8", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-2"),
		newMaintenance("next-week", coordinationv1alpha1.NodeMaintenanceStageIdle, "node-1", "node-2"),
		newMaintenance("over", coordinationv1alpha1.NodeMaintenanceStageComplete, "node-1").started(time.Hour).completed(),
		newPod("web-5b755df8d7-q8rhn", "node-1"),
		newPod("db-0", "node-1", migrate, backup).ownedBy("StatefulSet"),
		newPod("proxy-x", "node-1").ownedBy("DaemonSet").withPriority(2000001000),
		newPod("done-0", "node-1").inPhase(corev1.PodSucceeded),
		newPod("critical-0", "node-1").withPriority(2000000000),
		newPod("etcd-node-2", "node-2").static().withPriority(2000001000),
		newPod("bare-0", "node-2").bare().withLocalStorage(),
		newPod("db-1", "node-2").ownedBy("StatefulSet").registering("observe.example.com=20000"),
		newPod("both-0", "node-2"),
		newPod("web-5b755df8d7-zzzzz", "node-2").terminatingSince(time.Minute),
		grouped, foreign,
		newPod("db-2", "node-4"),
		newBudget("db", "db", 0), newBudget("web", "web", 1), newBudget("both-a", "both", 1), newBudget("both-b", "both", 1), newBudget("idle", "nobody", 0),
	}
}

func mustPlan(t *testing.T, s *podSnapshot, name string, entries []corev1.DrainPlanEntry, nodes ...string) *plan {
	t.Helper()
	p, err := planOf(s, name, s.selectedNodes(nodeselection.ByName(nodes)), entries)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// policiesPlan returns the plan of a maintenance with pod policies, on a node that another one, with
// policies of its own, drains as well.
func policiesPlan(t *testing.T) *plan {
	nm := newMaintenance("kernel", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1", "node-2")
	nm.Spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{
		{Action: "Skip", NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "storage"}}},
		{Action: "WaitCompleted", PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}},
	}
	nm.Spec.DrainedWhen = &coordinationv1alpha1.NodeMaintenanceDrainedWhen{Volumes: "Detached"}
	other := newMaintenance("rack-8", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-2")
	other.Spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{{Action: "WaitCompleted", PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	ceph := newPod("ceph-0", "node-1")
	ceph.Namespace = "rook"
	s := snapshotOf(nm, other, newNode("node-1"), newNode("node-2"), ceph,
		newPod("train-0", "node-1").ownedBy("Job").startedFor(time.Hour, 3*time.Hour), newPod("train-1", "node-1").ownedBy("Job"), newPod("train-2", "node-1").ownedBy("Job").startedFor(time.Hour, 2*time.Hour),
		newPod("web-0", "node-1"), newPod("web-1", "node-2"), newBudget("web", "web", 0), newBudget("train", "train", 0))
	s.namespaces = map[string]labels.Set{"rook": {"team": "storage"}, "default": nil}
	// Nothing of it fails: there is no warning.
	s.addJob(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set"}, Spec: batchv1.JobSpec{BackoffLimit: ptr.To[int32](0)}})
	if err := s.setPolicies(nm.NodeMaintenance); err != nil {
		t.Fatal(err)
	}
	s.keepPods(s.selectedNodes(nm.Spec.NodeSelector))
	return mustPlan(t, s, "kernel", maintenance.StandardPlan(), "node-1", "node-2")
}

// skippingPlan returns the plan of a maintenance that skips a pod on one of its nodes: the agents of that
// node stay with it.
func skippingPlan(t *testing.T) *plan {
	nm := newMaintenance("kernel", coordinationv1alpha1.NodeMaintenanceStageDrain, "node-1", "node-2", "node-3")
	nm.Spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{
		{Action: "Skip", PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "ceph"}}},
		{Action: "Skip", PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}},
	}
	s := snapshotOf(nm, newNode("node-1"), newNode("node-2"), newNode("node-3"),
		newPod("ceph-0", "node-1"), newPod("web-0", "node-1"), newPod("proxy-1", "node-1").ownedBy("DaemonSet"), newPod("etcd-1", "node-1").static(),
		// What has ended needs no agents, and agents do not need each other.
		newPod("ceph-1", "node-2").inPhase(corev1.PodSucceeded), newPod("proxy-2", "node-2").ownedBy("DaemonSet"), newPod("etcd-2", "node-2").static(),
		newPod("agent-3", "node-3").ownedBy("DaemonSet"), newPod("proxy-3", "node-3").ownedBy("DaemonSet"))
	if err := s.setPolicies(nm.NodeMaintenance); err != nil {
		t.Fatal(err)
	}
	s.keepPods(s.selectedNodes(nm.Spec.NodeSelector))
	return mustPlan(t, s, "kernel", maintenance.StandardPlan(), "node-1", "node-2", "node-3")
}

// TestPlanOfSeveralMaintenances verifies that each maintenance has a verdict of its own on a pod, and that of a shutdown
// none: what only others skip is left for the planned one.
func TestPlanOfSeveralMaintenances(t *testing.T) {
	skip := func(m maintenanceStory, app string) maintenanceStory {
		m.Spec.PodPolicies = append(m.Spec.PodPolicies, coordinationv1alpha1.NodeMaintenancePodPolicy{
			Action: "Skip", PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		})
		return m
	}
	kernel := skip(skip(newMaintenance("kernel", drain, "node-1", "node-2", "node-3"), "own"), "both")
	rack := skip(skip(newMaintenance("rack", drain, "node-1", "node-3"), "theirs"), "both")
	shutdown := skip(newMaintenance(maintenance.ShutdownName("node-2"), drain, "node-2"), "web")
	s := snapshotOf(kernel, rack, shutdown, newNode("node-1"), newNode("node-2"), newNode("node-3"),
		newPod("own-1", "node-1"), newPod("theirs-1", "node-1"), newPod("both-1", "node-1"), newPod("web-1", "node-1"),
		newPod("theirs-2", "node-2"), newPod("web-2", "node-2"),
		newPod("theirs-3", "node-3"), newPod("agent-3", "node-3").ownedBy("DaemonSet"))
	if err := s.setPolicies(kernel.NodeMaintenance); err != nil {
		t.Fatal(err)
	}
	s.keepPods(s.selectedNodes(kernel.Spec.NodeSelector))
	p := mustPlan(t, s, "kernel", maintenance.StandardPlan(), "node-1", "node-2", "node-3")
	got := map[string]string{}
	for _, node := range p.Nodes {
		for i := range node.Pods {
			got[node.Pods[i].Name] = node.Pods[i].keptText(testNow)
		}
	}
	const kept = "stays until NodeMaintenance rack has ended, which skips it: the node is not drained before"
	want := map[string]string{
		"own-1": "stays: spec.podPolicies skips it", "both-1": "stays: spec.podPolicies skips it", "theirs-1": kept, "web-1": "",
		"theirs-2": "", "web-2": "", "theirs-3": kept, "agent-3": kept,
	}
	for name := range want {
		if p := podOf(p, name); !p.isKept() {
			got[name] = ""
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	if s := p.Summary; s.Skipped != 2 || s.KeptByOthers != 3 || s.StayingAgents != 0 {
		t.Errorf("unexpected summary: %+v", s)
	}
	contains(t, renderPlan(p, defaultWidth, testNow), "3 kept by other maintenances")
	// A shutdown does not skip anything in its own plan either.
	if err := s.setPolicies(shutdown.NodeMaintenance); err != nil {
		t.Fatal(err)
	}
	s.keepPods(s.selectedNodes(shutdown.Spec.NodeSelector))
	if len(s.kept) > 0 && slices.ContainsFunc(s.pods["node-2"], func(pod *corev1.Pod) bool { return s.kept[pod] != nil }) {
		t.Error("a shutdown keeps pods")
	}
}

// podOf returns the plan of a pod.
func podOf(p *plan, name string) *podPlan {
	for _, node := range p.Nodes {
		for _, pod := range node.Pods {
			if pod.Name == name {
				return pod
			}
		}
	}
	return &podPlan{}
}

func TestRenderPlan(t *testing.T) {
	staying := snapshotOf(newNode("node-1"), newDeployment("api"), newPod("web-0", "node-1").toleratingAll(), newPod("db-0", "node-1").ownedBy("StatefulSet").toleratingAll().withPriority(5),
		newPod("api-0", "node-1", coordinationv1alpha1.EvictionInterceptorDeployment).toleratingAll(), newPod("bare-0", "node-1").toleratingAll().bare(), newPod("proxy-0", "node-1").ownedBy("DaemonSet").toleratingAll())
	standard := maintenance.StandardPlan()
	s := snapshotOf(busyNodes()...)
	own := []corev1.DrainPlanEntry{{PodType: corev1.PodTypeDefault, PodPriority: 0, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}}}
	long := snapshotOf(newNode("node-1"), newPod("db-"+strings.Repeat("0", 120), "node-1", strings.Repeat("i", 60)+".example.com"))
	unreadable := snapshotOf(busyNodes()...)
	unreadable.unreadable = []string{"poddisruptionbudgets"}
	for name, p := range map[string]*plan{
		"busy":       mustPlan(t, s, "", standard, "node-1", "node-2", "node-3"),
		"stored":     mustPlan(t, s, "rack-8", standard, "node-2"),
		"own":        mustPlan(t, s, "", maintenance.CompletePlan(own), "node-1"),
		"incomplete": mustPlan(t, s, "", own, "node-1"),
		"empty":      mustPlan(t, s, "", standard, "node-3"),
		"no-node":    mustPlan(t, s, "", standard),
		"long":       mustPlan(t, long, "", standard, "node-1"),
		"surging":    mustPlan(t, surgingNode(), "", standard, "node-1"),
		"policies":   policiesPlan(t),
		"skipping":   skippingPlan(t),
		"back":       mustPlan(t, staying, "", standard, "node-1"),
		"unreadable": mustPlan(t, unreadable, "", standard, "node-3"),
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, "plan/"+name, renderPlan(p, defaultWidth, testNow))
		})
	}
	p := mustPlan(t, s, "", standard, "node-1", "node-2", "node-3")
	var out bytes.Buffer
	if err := writeWidePlan(&out, p, testNow); err != nil {
		t.Fatal(err)
	}
	golden(t, "plan/busy-wide", out.String())
	out.Reset()
	if err := printStructured(&out, "yaml", p); err != nil {
		t.Fatal(err)
	}
	golden(t, "plan/busy-wide-yaml", out.String())
}

func TestRefusalOf(t *testing.T) {
	full, room, unprocessed := newBudget("full", "web", 0), newBudget("room", "web", 1), newBudget("unprocessed", "web", 1)
	unprocessed.Generation, unprocessed.Status.ObservedGeneration = 2, 1
	short, always := newBudget("short", "web", 0), newBudget("always", "web", 0)
	short.Status.CurrentHealthy, always.Status.CurrentHealthy = 1, 1
	always.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
	none := newBudget("none", "web", 0)
	none.Status.DesiredHealthy, none.Status.CurrentHealthy = 0, 0
	pod := newPod("web-0", "node-1")
	for _, tc := range []struct {
		name    string
		pod     podStory
		budgets []*policyv1.PodDisruptionBudget
		want    string
	}{
		{"no budget", pod, nil, ""},
		{"a disruption is allowed", pod, []*policyv1.PodDisruptionBudget{room}, ""},
		{"no disruption is allowed", pod, []*policyv1.PodDisruptionBudget{full}, "PodDisruptionBudget default/full allows no disruption: 3 of 3 healthy pods are needed"},
		{"two budgets that allow a disruption", pod, []*policyv1.PodDisruptionBudget{room, room}, "2 PodDisruptionBudgets select it, and the API server does not evict such pods: default/room, default/room"},
		{"not processed", pod, []*policyv1.PodDisruptionBudget{unprocessed}, "PodDisruptionBudget default/unprocessed is not processed yet"},
		{"pending pod", newPod("web-0", "node-1").inPhase(corev1.PodPending), []*policyv1.PodDisruptionBudget{full, full}, ""},
		{"terminating pod", newPod("web-0", "node-1").terminatingSince(0), []*policyv1.PodDisruptionBudget{full}, ""},
		{"unready pod, healthy budget", newPod("web-0", "node-1").unready(), []*policyv1.PodDisruptionBudget{full}, ""},
		{"unready pod, unhealthy budget", newPod("web-0", "node-1").unready(), []*policyv1.PodDisruptionBudget{short}, "PodDisruptionBudget default/short allows no disruption: 3 of 1 healthy pods are needed; the pod is not ready: unhealthyPodEvictionPolicy AlwaysAllow lets such pods go"},
		{"unready pod, always", newPod("web-0", "node-1").unready(), []*policyv1.PodDisruptionBudget{always}, ""},
		{"ready pod, always", pod, []*policyv1.PodDisruptionBudget{always}, "PodDisruptionBudget default/always allows no disruption: 3 of 1 healthy pods are needed"},
		{"unready pod, budget that needs no healthy pod", newPod("web-0", "node-1").unready(), []*policyv1.PodDisruptionBudget{none}, "PodDisruptionBudget default/none allows no disruption: 0 of 0 healthy pods are needed; the pod is not ready: unhealthyPodEvictionPolicy AlwaysAllow lets such pods go"},
	} {
		if got := refusalOf(tc.pod.Pod, tc.budgets); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestInterceptorsOf(t *testing.T) {
	const last = coordinationv1alpha1.EvictionInterceptorImperative
	for _, tc := range []struct {
		name string
		pod  podStory
		want []string
	}{
		{"none", newPod("a", "n"), []string{last}},
		{"of the spec", newPod("a", "n", "b.example.com", "a.example.com"), []string{"b.example.com", "a.example.com", last}},
		{"registered after them", newPod("a", "n", "spec.example.com").registering("low.example.com=1", "high.example.com=10001", "controller.example.com=10000/controller"),
			[]string{"spec.example.com", "high.example.com", "controller.example.com", "low.example.com", last}},
		{"in both", newPod("a", "n", "a.example.com", "b.example.com").registering("b.example.com=20000"), []string{"a.example.com", "b.example.com", last}},
		{"registered in a template, and on the pod", newPod("a", "n", "saver.example.com", "deployment.apps.k8s.io", "replicaset.apps.k8s.io").registering("saver.example.com=20000", "deployment.apps.k8s.io=10000/controller", "late.example.com=100000"),
			[]string{"saver.example.com", "deployment.apps.k8s.io", "replicaset.apps.k8s.io", "late.example.com", last}},
		{"a domain-prefixed key", newPod("a", "n", "example.com/migrate").registering("b.example.com=5"), []string{"example.com/migrate", "b.example.com", last}},
		{"two controllers", newPod("a", "n").registering("b.example.com=10000/controller", "a.example.com=10000/controller"), []string{"a.example.com", last}},
		{"same priority", newPod("a", "n").registering("b.example.com=5", "a.example.com=5/role"), []string{"a.example.com", "b.example.com", last}},
		{"invalid", newPod("a", "n").registering("a.example.com=-1", "b.example.com=100001", "c.example.com=1/", "one=1", "d.k8s.io=1", "e.example.com.=1", last+"=1", "f.example.com=7/controller"), []string{last}},
		{"DaemonSet", newPod("a", "n", "a.example.com").ownedBy("DaemonSet"), []string{"a.example.com", "daemonset.apps.k8s.io", last}},
		{"static", newPod("a", "n").static(), []string{"kubelet.k8s.io", last}},
		{"DaemonSet, registered", newPod("a", "n", "a.example.com").ownedBy("DaemonSet").registering("daemonset.apps.k8s.io=10000/controller"), []string{"a.example.com", "daemonset.apps.k8s.io", last}},
	} {
		if diff := cmp.Diff(tc.want, evictioninterceptor.Targets(tc.pod.Pod)); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", tc.name, diff)
		}
	}
}

func TestPlanCommand(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	manifest := file("nm.yaml", `apiVersion: coordination.k8s.io/v1alpha1
kind: NodeMaintenance
metadata: {name: next}
spec:
  nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-2]}]}]}
`)
	drainPlan := file("plan.yaml", "- {podType: Default, podPriority: 0, podSelector: {matchLabels: {app: db}}}\n")
	noPriority := file("no-priority.yaml", "- {podType: Default, podSelector: {matchLabels: {app: db}}}\n- {podType: Default, podPriority: 5}\n- {podType: DaemonSet}\n")
	misspelt := file("misspelt.yaml", `apiVersion: coordination.k8s.io/v1alpha1
kind: NodeMaintenance
metadata: {name: next}
spec:
  drainPlan: [{podType: Default}]
  nodeSelector:
    nodeSelectorTerms:
    - matchFields: [{key: metadata.name, operator: In, values: [node-2]}]
    - matchFields: [{key: metadata.name, operator: In, values: [nod-3]}]
`)
	const (
		misspeltText   = "spec.nodeSelector names 1 node that does not exist: nod-3"
		noPriorityText = "Warning: entry 1 of the drain plan has no podPriority, so it is 0: the entry selects no pod of a higher priority\n"
	)
	for _, tc := range []struct {
		name    string
		args    []string
		out     []string
		failure string
		warning string
	}{
		{name: "nodes", args: []string{"node-1"}, out: []string{"A drain of 1 node. Nothing is changed", "node-1: 4 pods, also maintained by next-week (Idle)\n", "! PodDisruptionBudget default/db allows no", "Summary: 4 pods on 1 node in 3 steps"}},
		{name: "labels that no node has", args: []string{"-l", "a=b"}, out: []string{"Summary: no node is selected."}},
		{name: "stored", args: []string{"--maintenance=rack-8"}, out: []string{"NodeMaintenance rack-8, a drain of 1 node.", "cordoned, also maintained by next-week (Idle)\n"}},
		{name: "a manifest", args: []string{"-f", manifest}, out: []string{"NodeMaintenance next, a drain of 1 node.", "also maintained by next-week (Idle), rack-8 (Drain)\n"}},
		{name: "a drain plan from a file", args: []string{"node-1", "--drain-plan-file", drainPlan}, out: []string{"     1  Default pods up to priority 0 with app=db: 1 pod\n"}},
		{name: "a drain plan without priorities", args: []string{"node-1", "--drain-plan-file", noPriority}, out: []string{"     1  Default pods up to priority 0 with app=db: 1 pod\n"},
			warning: noPriorityText + strings.Replace(noPriorityText, "entry 1", "entry 3", 1)},
		{name: "a manifest with a node that does not exist, and without priorities", args: []string{"-f", misspelt}, out: []string{"NodeMaintenance next, a drain of 1 node.", "! " + misspeltText + "\n"}, warning: noPriorityText},
		{name: "the same, wide", args: []string{"-f", misspelt, "-o", "wide"}, out: []string{"NODE"}, warning: noPriorityText + "Warning: " + misspeltText + "\n"},
		{name: "the same, for a script", args: []string{"-f", misspelt, "-o", "json"}, out: []string{"\"missingNodes\": [\n        \"nod-3\"\n    ]"}, warning: noPriorityText},
		{name: "the name of a maintenance", args: []string{"rack-8"}, out: []string{"NodeMaintenance rack-8, a drain of 1 node."}},
		{name: "its name and a drain plan", args: []string{"rack-8", "--drain-plan-file", drainPlan}, failure: "has its own drain plan"},
		{name: "its name and a rollout", args: []string{"rack-8", "--max-concurrent=1"}, failure: "has its own rollout"},
		{name: "its name among nodes", args: []string{"node-1", "rack-8"}, failure: `node "rack-8" not found; NodeMaintenance "rack-8" exists: name it alone`},
		{name: "neither a node nor a maintenance", args: []string{"nobody"}, failure: `node "nobody" not found, nor is there a NodeMaintenance of that name: "kubectl maintenance status --all" lists them`},
		{name: "a node, with its kind", args: []string{"node/rack-8"}, failure: `node "rack-8" not found`},
		{name: "wide", args: []string{"node-1", "-o", "wide"}, out: []string{"NODE", "migrate.example.com,backup.example.com,imperative-eviction.k8s.io"}},
		{name: "json", args: []string{"node-1", "-o", "json"}, out: []string{`"podsWithLocalStorage": 0`, `"podType": "Static"`, `"step": 1`}},
		{name: "a node that does not exist", args: []string{"node-1", "nod-2"}, failure: `node "nod-2" not found`},
		{name: "no argument", failure: "exactly one of NODE..., --selector, --maintenance and --filename is required"},
		{name: "nodes and a selector", args: []string{"node-1", "-l", "a=b"}, failure: "exactly one of"},
		{name: "a maintenance and a drain plan", args: []string{"--maintenance=rack-8", "--drain-plan-file", drainPlan}, failure: "has its own drain plan"},
		{name: "no such maintenance", args: []string{"--maintenance=none"}, failure: `reading NodeMaintenance "none"`},
		{name: "no maintenance in the file", args: []string{"-f", file("pod.yaml", "kind: Pod\n")}, failure: "pod.yaml: is a Pod of \"\", and not a NodeMaintenance of coordination.k8s.io/v1alpha1"},
		{name: "another object in the file", args: []string{"-f", file("deployment.yaml", "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1}}")}, failure: "deployment.yaml: is a Deployment of \"apps/v1\", and not a NodeMaintenance of coordination.k8s.io/v1alpha1"},
		{name: "no object in the file", args: []string{"-f", file("empty.yaml", "{}")}, failure: "empty.yaml: not a NodeMaintenance with a spec.nodeSelector"},
		{name: "a file that does not exist", args: []string{"-f", "/nowhere"}, failure: "--filename: open /nowhere"},
		{name: "an unknown format", args: []string{"node-1", "-o", "xml"}, failure: `--output="xml": must be one of [json yaml wide]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, busyNodes()...)
			out := s.run(t, append([]string{"plan"}, tc.args...)...)
			contains(t, out, tc.out...)
			contains(t, s.failure, tc.failure)
			if diff := cmp.Diff(tc.warning, s.errOut.String()); diff != "" && tc.failure == "" {
				t.Errorf("warnings (-want, +got):\n%s", diff)
			}
			if (s.code != 0) != (tc.failure != "") {
				t.Errorf("exit code %d: %s", s.code, s.failure)
			}
			if writes := s.writes(); len(writes) > 0 {
				t.Errorf("wrote: %v", writes)
			}
		})
	}
}

func TestPlanWithoutRights(t *testing.T) {
	for resource, want := range map[string]string{"pods": "pods is forbidden", "nodes": "nodes is forbidden"} {
		s := newServer(t, busyNodes()...)
		s.forbid(resource)
		s.run(t, "plan", "node-1")
		contains(t, s.failure, want)
	}
	s := newServer(t, busyNodes()...)
	for _, kind := range []string{"evictionrequests", "poddisruptionbudgets", resource} {
		s.forbid(kind)
	}
	contains(t, s.mustRun(t, "plan", "node-1"), "Without the permission to list nodemaintenances, evictionrequests,\npoddisruptionbudgets, this plan is incomplete.")
}

// TestPlanOfPods covers stored requests, the order of pod types, and budgets that do not apply.
func TestPlanOfPods(t *testing.T) {
	asked := newPod("asked-0", "node-1", migrate).asked()
	asked.request.Status.TargetInterceptors = []coordinationv1alpha1.Interceptor{{Name: backup}, {Name: coordinationv1alpha1.EvictionInterceptorImperative}}
	s := snapshotOf(newNode("node-1"), newBudget("db", "db", 0), asked,
		newPod("high-0", "node-1").withPriority(2000000000),
		// The lowest priority, but pods of DaemonSets leave last.
		newPod("db-0", "node-1").ownedBy("DaemonSet").withPriority(-10))
	want := []*podPlan{
		{
			Namespace: "default", Name: "asked-0", Step: 1, Type: corev1.PodTypeDefault, Priority: 0,
			// As recorded in the request.
			Interceptors: []string{backup, coordinationv1alpha1.EvictionInterceptorImperative},
			Requesters:   []string{coordinationv1alpha1.NodeMaintenanceRequester},
		},
		{Namespace: "default", Name: "high-0", Step: 2, Type: corev1.PodTypeDefault, Priority: 2000000000, Interceptors: []string{coordinationv1alpha1.EvictionInterceptorImperative}},
		{
			Namespace: "default", Name: "db-0", Step: 5, Type: corev1.PodTypeDaemonSet, Priority: -10,
			Interceptors: []string{coordinationv1alpha1.EvictionInterceptorDaemonSet, coordinationv1alpha1.EvictionInterceptorImperative},
			// It is not evicted, so its budget does not block it.
			Budgets: []string{"default/db"}, Remarks: []podNote{noteNeedsDaemonSet},
		},
	}
	p := mustPlan(t, s, "", maintenance.StandardPlan(), "node-1")
	if diff := cmp.Diff(want, p.Nodes[0].Pods); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	if len(p.Budgets) > 0 {
		t.Errorf("budgets apply: %v", p.Budgets)
	}
}

func TestPlanOfAnotherProject(t *testing.T) {
	s := newServer(t, newNode("node-1"))
	s.environment.In = strings.NewReader("{apiVersion: nodemaintenance.medik8s.io/v1beta1, kind: NodeMaintenance, spec: {nodeName: node-1}}")
	s.run(t, "plan", "-f", "-")
	contains(t, s.failure, `--filename=-: is a NodeMaintenance of "nodemaintenance.medik8s.io/v1beta1", and not of coordination.k8s.io/v1alpha1: convert it with "kubectl maintenance convert -f -"`)
}

// TestPlanAsksTheServer verifies that a manifest is checked by the server, which stores nothing.
func TestPlanAsksTheServer(t *testing.T) {
	const manifest = `{apiVersion: coordination.k8s.io/v1alpha1, kind: NodeMaintenance, metadata: {name: next},
		spec: {stage: drain, nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-1]}]}]}}}`
	gr := coordinationv1alpha1.Resource(resource)
	kind := coordinationv1alpha1.SchemeGroupVersion.WithKind("NodeMaintenance").GroupKind()
	invalid := apierrors.NewInvalid(kind, "next", field.ErrorList{field.NotSupported(field.NewPath("spec", "stage"), "drain", []string{"Drain"})})
	immutable := apierrors.NewInvalid(kind, "next", field.ErrorList{field.Forbidden(field.NewPath("spec", "drainPlan"), "is immutable")})
	forbidden := apierrors.NewForbidden(gr, "next", errors.New("no permission"))
	exists := apierrors.NewAlreadyExists(gr, "next")
	noDryRun := apierrors.NewBadRequest(`admission webhook "a.example.com" does not support dry run`)
	for _, tc := range []struct {
		name          string
		create, patch error
		allowed       bool
		failure       string
		warning       string
		asked         []string
	}{
		{name: "accepted", asked: []string{"create"}},
		{name: "refused", create: invalid, failure: `--filename=-: the server does not accept it: NodeMaintenance.coordination.k8s.io "next" is invalid: spec.stage: Unsupported value: "drain"`, asked: []string{"create"}},
		{name: "exists", create: exists, asked: []string{"create", "patch"}},
		{name: "exists, and the change is refused", create: exists, patch: immutable, failure: "spec.drainPlan: Forbidden: is immutable", asked: []string{"create", "patch"}},
		{name: "no right to create", create: forbidden, warning: "Warning: the server was not asked whether it accepts the manifest: nodemaintenances.coordination.k8s.io \"next\" is forbidden: no permission\n", asked: []string{"create"}},
		{name: "exists, and no right to change it", create: exists, patch: forbidden, warning: "Warning: the server was not asked whether", asked: []string{"create", "patch"}},
		{name: "a webhook knows no dry runs", create: noDryRun, warning: "Warning: the server was not asked whether it accepts the manifest: admission webhook", asked: []string{"create"}},
		{name: "refused by admission", create: forbidden, allowed: true, failure: "the server does not accept it: ", asked: []string{"create"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, newNode("node-1"))
			s.environment.In = strings.NewReader(manifest)
			var asked []string
			answer := func(err error, dryRun func(clienttesting.Action) []string) clienttesting.ReactionFunc {
				return func(action clienttesting.Action) (bool, runtime.Object, error) {
					if asked = append(asked, action.GetVerb()); !slices.Equal(dryRun(action), []string{metav1.DryRunAll}) {
						t.Errorf("%s is no dry run", action.GetVerb())
					}
					return true, &coordinationv1alpha1.NodeMaintenance{}, err
				}
			}
			s.PrependReactor("create", resource, answer(tc.create, func(a clienttesting.Action) []string { return a.(clienttesting.CreateActionImpl).CreateOptions.DryRun }))
			s.PrependReactor("patch", resource, answer(tc.patch, func(a clienttesting.Action) []string { return a.(clienttesting.PatchActionImpl).PatchOptions.DryRun }))
			s.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: tc.allowed}}, nil
			})
			out := s.run(t, "plan", "-f", "-")
			if want := min(len(tc.failure), 1); s.code != want || want == 0 && !strings.Contains(out, "node-1: ") {
				t.Errorf("exit code %d: %s%s", s.code, out, s.failure)
			}
			contains(t, s.failure, tc.failure)
			contains(t, s.errOut.String(), tc.warning)
			if diff := cmp.Diff(tc.asked, asked); diff != "" {
				t.Errorf("requests (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestPlanOfUncheckedMaxConcurrent verifies that a value that nothing has refused, because the server was not asked, is
// at least warned of.
func TestPlanOfUncheckedMaxConcurrent(t *testing.T) {
	for _, value := range []string{`"10"`, "0", "-1", `"0%"`, `"101%"`, `"all"`} {
		s := newServer(t, newNode("node-1"))
		s.PrependReactor("create", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(coordinationv1alpha1.Resource(resource), "next", errors.New("no permission"))
		})
		s.environment.In = strings.NewReader(`{apiVersion: coordination.k8s.io/v1alpha1, kind: NodeMaintenance, metadata: {name: next},
			spec: {stage: Drain, rollout: {maxConcurrent: ` + value + `}, nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-1]}]}]}}}`)
		s.run(t, "plan", "-f", "-")
		contains(t, s.errOut.String(), "Warning: the server was not asked whether it accepts the manifest: ")
	}
}

func TestPlanOfPodPolicies(t *testing.T) {
	manifest := func(policy string) string {
		path := filepath.Join(t.TempDir(), "nm.yaml")
		text := `apiVersion: coordination.k8s.io/v1alpha1
kind: NodeMaintenance
metadata: {name: next}
spec:
  nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-1]}]}]}
  podPolicies: [` + policy + "]\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const (
		ofDB        = "{action: Skip, podSelector: {matchLabels: {app: db}}}"
		ofNamespace = "{action: Skip, namespaceSelector: {matchLabels: {team: storage}}}"
	)
	for _, tc := range []struct {
		name, policy string
		change       func(*server)
		out          []string
		failure      string
	}{
		{"skipped", ofDB, nil, []string{"stays: spec.podPolicies skips it", "1 skipped"}, ""},
		{"another namespace", ofNamespace, nil, []string{"Summary: 4 pods on 1 node in 3 steps: 1 currently blocked"}, ""},
		{"no right to list namespaces", ofNamespace, func(s *server) { s.forbid("namespaces") }, []string{"4 skipped", "Without the permission to list namespaces, this plan is incomplete."}, ""},
		{"not stored by the server", ofDB, func(s *server) { s.Resources[0].APIResources = s.Resources[0].APIResources[:2] }, []string{"The server drops spec.podPolicies", "1 currently blocked by budgets"}, ""},
		{"a typo", "{action: skip}", nil, nil, `spec.podPolicies[0].action: unknown value "skip": must be Drain, Skip or WaitCompleted`},
		{"a bad selector", "{action: Skip, podSelector: {matchExpressions: [{key: app, operator: Within}]}}", nil, nil, `spec.podPolicies[0].podSelector: "Within" is not a valid label selector operator`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, append(busyNodes(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})...).servesBudgets()
			if tc.change != nil {
				tc.change(s)
			}
			contains(t, s.run(t, "plan", "-f", manifest(tc.policy)), tc.out...)
			contains(t, s.failure, tc.failure)
		})
	}
}
