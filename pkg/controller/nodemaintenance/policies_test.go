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
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/utils/ptr"
)

// createWith creates a maintenance in the stage Drain with more than a plan.
func (f *fixture) createWith(name, label string, change func(*coordinationv1alpha1.NodeMaintenanceSpec)) {
	f.t.Helper()
	f.createMaintenance(name, stageDrain, label, entry(v1.PodTypeDefault, 1000))
	f.change(name, func(m *coordinationv1alpha1.NodeMaintenance) { change(&m.Spec) })
}

func policy(action coordinationv1alpha1.NodeMaintenancePodAction, app string) coordinationv1alpha1.NodeMaintenancePodPolicy {
	return coordinationv1alpha1.NodeMaintenancePodPolicy{Action: action, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
}

func withGPU(pod *v1.Pod) {
	pod.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Limits: v1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}
}

// asksFor reports whether the eviction of the pod is requested.
func (f *fixture) asksFor(pod *v1.Pod) bool {
	f.t.Helper()
	request, err := f.client.CoordinationV1alpha1().EvictionRequests(pod.Namespace).Get(f.ctx, string(pod.UID), metav1.GetOptions{})
	return err == nil && requests.IsRequested(request)
}

func TestPodPolicies(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"ours": ""})
	f.namespaces.Add(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "batch"}}})
	drained, skipped := f.createPods(1, "n", 0, ofApp("web"))[0], f.createPods(1, "n", 0, ofApp("db"))[0]
	job, gpu := f.createPods(1, "n", 0, ofApp("job"))[0], f.createPods(1, "n", 0, ofApp("train"), withGPU)[0]
	f.createWith("m", "ours", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
		job := policy(coordinationv1alpha1.NodeMaintenancePodWaitCompleted, "job")
		job.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "batch"}}
		spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{
			policy(coordinationv1alpha1.NodeMaintenancePodSkip, "db"), job,
			{Action: coordinationv1alpha1.NodeMaintenancePodWaitCompleted, ResourceNames: []v1.ResourceName{"nvidia.com/gpu"}},
		}
	})
	f.settle()
	for pod, want := range map[*v1.Pod]bool{drained: true, skipped: false, job: false, gpu: false} {
		if got := f.asksFor(pod); got != want {
			t.Errorf("pod of %s: requested %t, must be %t", pod.Labels["app"], got, want)
		}
	}
	stored := f.maintenance("m").Status.DrainStatus
	if stored.SkippedPods != 1 || len(stored.Blockers) == 0 {
		t.Errorf("unexpected status: %+v", stored)
	}
	f.deletePods(drained, gpu)
	f.settle()
	if status.IsDrained(&f.maintenance("m").Status) {
		t.Errorf("drained, with a pod that has to complete")
	}
	job.Status.Phase = v1.PodSucceeded
	if _, err := f.client.CoreV1().Pods(job.Namespace).UpdateStatus(f.ctx, job, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.settle()
	if m := f.maintenance("m"); !status.IsDrained(&m.Status) {
		t.Errorf("not drained: %+v", m.Status.Conditions)
	}
}

// TestCautiousPolicy checks that the most cautious policy of two maintenances decides.
func TestCautiousPolicy(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"ours": ""})
	pod := f.createPods(1, "n", 0, ofApp("db"))[0]
	f.createWith("careless", "ours", func(*coordinationv1alpha1.NodeMaintenanceSpec) {})
	f.createWith("careful", "ours", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
		spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{policy(coordinationv1alpha1.NodeMaintenancePodSkip, "db")}
	})
	f.settle()
	if f.asksFor(pod) {
		t.Errorf("the pod was requested, although one of the maintenances skips it")
	}
	f.setStage("careful", stageComplete)
	f.settle()
	if !f.asksFor(pod) {
		t.Errorf("the pod was not requested when only the other maintenance was left")
	}
}

// What one maintenance keeps is left for the others, which say so, and neither holds up the rest of their plans.
// For itself, it is drained.
func TestKeptByNeighbor(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"ours": ""})
	kept, agent, other := f.createPods(1, "n", 0, ofApp("db"))[0], f.createPods(1, "n", 0, daemon)[0], f.createPods(1, "n", 2000)[0]
	f.createWith("keeps", "ours", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
		spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{policy(coordinationv1alpha1.NodeMaintenancePodSkip, "db")}
		spec.DrainPlan = maintenance.StandardPlan()
	})
	f.createWith("wants", "ours", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
		spec.DrainPlan = maintenance.CompletePlan(spec.DrainPlan)
	})
	f.settle()
	if !f.asksFor(other) {
		t.Errorf("a pod of a later entry waits for one that is kept")
	}
	f.deletePods(other)
	f.settle()
	if f.asksFor(kept) || f.asksFor(agent) {
		t.Errorf("requested the eviction of a pod that a maintenance keeps: %t, of the agent on its node: %t", f.asksFor(kept), f.asksFor(agent))
	}
	keeps, wants := f.maintenance("keeps").Status, f.maintenance("wants").Status
	if !status.IsDrained(&keeps) || keeps.DrainStatus.SkippedPods != 2 || keeps.DrainStatus.PodsPendingEvictionRequest != 0 || len(keeps.DrainStatus.Blockers) > 0 {
		t.Errorf("the maintenance that keeps them: %+v", keeps)
	}
	if status.IsDrained(&wants) || wants.DrainStatus.SkippedPods != 0 || wants.DrainStatus.BlockedPods != 2 || wants.DrainStatus.PodsPendingEvictionRequest != 2 {
		t.Errorf("the maintenance that wants them: %+v", wants)
	}
	blockers := wants.DrainStatus.Blockers
	if len(blockers) != 1 || blockers[0].Cause != coordinationv1alpha1.DrainBlockerKeptByMaintenance || blockers[0].PodCount != 2 {
		t.Fatalf("got the blockers %+v", blockers)
	}
	if want := "2 pods are kept by the pod policies of NodeMaintenance keeps"; blockers[0].Message != want {
		t.Errorf("got the blocker %q, want %q", blockers[0].Message, want)
	}
	wantObject := &coordinationv1alpha1.DrainBlockerObject{APIGroup: "coordination.k8s.io", Kind: "NodeMaintenance", Name: "keeps"}
	if diff := cmp.Diff(wantObject, blockers[0].Object); diff != "" {
		t.Errorf("object (-want, +got):\n%s", diff)
	}
	if c := nodeCondition(f.node("n"), v1.NodeDrained); c.Status != v1.ConditionFalse {
		t.Errorf("the node has the condition %+v", c)
	}
	f.clock.Step(time.Hour)
	for range 10 {
		if counts := f.count(); counts.BlockedPods[maintenance.BlockerKeptByMaintenance] != 2 || counts.PendingPods != 2 ||
			counts.OldestBlocker[maintenance.BlockerKeptByMaintenance] < time.Hour {
			t.Fatalf("unexpected metrics: %+v", counts)
		}
	}
	f.setStage("keeps", stageComplete)
	f.settle()
	if !f.asksFor(kept) {
		t.Errorf("the pod stays after the end of the maintenance that has kept it")
	}
	f.deletePods(kept)
	f.settle()
	f.deletePods(agent)
	f.settle()
	if wants := f.maintenance("wants").Status; !status.IsDrained(&wants) {
		t.Errorf("not drained in the end: %+v", wants)
	}
}

// A request that was made for one maintenance is withdrawn when it ends, if all others of the node skip the pod:
// while there is one that does not, it stays.
func TestRequestEndsWithItsMaintenance(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"ours": ""})
	pod := f.createPods(1, "n", 0, ofApp("db"))[0]
	f.createWith("wants", "ours", func(*coordinationv1alpha1.NodeMaintenanceSpec) {})
	f.settle()
	f.createWith("skips", "ours", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
		spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{policy(coordinationv1alpha1.NodeMaintenancePodSkip, "db")}
	})
	f.settle()
	if !f.asksFor(pod) {
		t.Errorf("the request is withdrawn while its maintenance goes on")
	}
	f.deleteMaintenance("wants")
	f.settle()
	if f.asksFor(pod) {
		t.Errorf("the eviction is requested although no maintenance wants it")
	}
	if _, err := f.client.CoordinationV1alpha1().NodeMaintenances().Get(f.ctx, "wants", metav1.GetOptions{}); err == nil {
		t.Errorf("the maintenance does not end")
	}
}

// Beside a pod that is skipped, the targets do not tell the DaemonSet that its pod is not wanted: it is replaced
// when it is lost.
func TestTargetsBesideSkippedPods(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"ours": ""})
	kept, agent := f.createPods(1, "n", 0, ofApp("db"))[0], f.createPods(1, "n", 0, daemon)[0]
	f.createWith("keeps", "ours", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
		spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{policy(coordinationv1alpha1.NodeMaintenancePodSkip, "db")}
		spec.DrainPlan = maintenance.StandardPlan()
	})
	f.settle()
	if m := f.maintenance("keeps"); !status.IsDrained(&m.Status) || progress.StoredTargets(f.node("n")).Take(agent) {
		t.Errorf("drained %t, targets %s", status.IsDrained(&m.Status), progress.StoredTargets(f.node("n")))
	}
	f.deletePods(kept)
	f.settle()
	if !f.asksFor(agent) {
		t.Errorf("the agent stays when the pod that it serves is gone")
	}
}

// The maintenance of a shutdown is written by a kubelet, which must not keep pods on its node.
func TestShutdownKeepsNothing(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"ours": ""})
	pod := f.createPods(1, "n", 0, ofApp("db"))[0]
	f.createWith("m", "ours", func(*coordinationv1alpha1.NodeMaintenanceSpec) {})
	f.createWith(maintenance.ShutdownName("n"), "ours", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
		spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{policy(coordinationv1alpha1.NodeMaintenancePodSkip, "db")}
	})
	f.settle()
	if !f.asksFor(pod) {
		t.Errorf("the maintenance of a shutdown keeps a pod")
	}
}

// The plan of a shutdown holds up nobody else, whichever begins first, and neither does it before it has its finalizer.
// Alone, it has its own order.
func TestShutdownLimitsNobody(t *testing.T) {
	for name, test := range map[string]struct{ shutdownFirst, together bool }{
		"it begins first":     {shutdownFirst: true},
		"it begins later":     {},
		"both begin together": {together: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createReadyNode("n", map[string]string{"ours": "", "all": ""})
			f.createReadyNode("other", map[string]string{"all": ""})
			stuck, web, db := f.createPods(1, "n", 0, ofApp("stuck"))[0], f.createPods(1, "n", 0, ofApp("web"))[0], f.createPods(1, "other", 5)[0]
			shutdown := func() {
				f.createMaintenance(maintenance.ShutdownName("n"), stageDrain, "ours", append(plan(entryFor("stuck", v1.PodTypeDefault, 0)), maintenance.StandardPlan()...)...)
			}
			if test.shutdownFirst || test.together {
				shutdown()
			}
			if test.shutdownFirst {
				f.settle()
				if !f.asksFor(stuck) || f.asksFor(web) {
					t.Errorf("alone, it asks the first pod of its plan %t, and another one %t", f.asksFor(stuck), f.asksFor(web))
				}
			}
			f.createMaintenance("m", stageDrain, "all", plan(entryFor("web", v1.PodTypeDefault, 0), entry(v1.PodTypeDefault, 5))...)
			f.settle()
			if !test.shutdownFirst && !test.together {
				shutdown()
				f.settle()
			}
			if !f.asksFor(web) {
				t.Errorf("a pod is not asked, because of the plan of a shutdown; targets %s", progress.StoredTargets(f.node("n")))
			}
			if message := f.maintenance("m").Status.DrainStatus.DrainMessage; message != "Draining" {
				t.Errorf("message %q", message)
			}
			f.deletePods(web)
			f.run(pace.StatusInterval)
			if !f.asksFor(db) {
				t.Errorf("another node is not drained, because of the plan of a shutdown")
			}
		})
	}
}

// TestShutdownDoesNotWaitForKeptPods verifies that what another maintenance skips does not count for that of a shutdown:
// the machine goes down with it, and would wait in vain.
func TestShutdownDoesNotWaitForKeptPods(t *testing.T) {
	for _, shutdownFirst := range []bool{false, true} {
		f := newFixture(t)
		f.createReadyNode("n", map[string]string{"ours": ""})
		kept, agent, web := f.createPods(1, "n", 0, ofApp("db"))[0], f.createPods(1, "n", 0, daemon)[0], f.createPods(1, "n", 0, ofApp("web"))[0]
		shutdown := func() {
			f.createMaintenance(maintenance.ShutdownName("n"), stageDrain, "ours", maintenance.StandardPlan()...)
		}
		if shutdownFirst {
			shutdown()
			f.clock.Step(time.Second)
		}
		f.createWith("rollout", "ours", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
			spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{policy(coordinationv1alpha1.NodeMaintenancePodSkip, "db")}
			spec.DrainPlan = maintenance.StandardPlan()
		})
		if !shutdownFirst {
			f.settle()
			shutdown()
		}
		f.settle()
		if !f.asksFor(web) || f.asksFor(kept) || f.asksFor(agent) {
			t.Errorf("shutdown first %t: asks the pod that leaves %t, the one that is skipped %t, its agent %t", shutdownFirst, f.asksFor(web), f.asksFor(kept), f.asksFor(agent))
		}
		f.deletePods(web)
		f.settle()
		m, node := f.maintenance(maintenance.ShutdownName("n")), f.node("n")
		if !status.IsDrained(&m.Status) || m.Status.DrainStatus.SkippedPods != 2 || m.Status.DrainStatus.BlockedPods != 0 {
			t.Errorf("shutdown first %t: status %+v", shutdownFirst, m.Status)
		}
		if !slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeDrained && c.Status == v1.ConditionTrue }) {
			t.Errorf("shutdown first %t: the node is not drained: %+v", shutdownFirst, node.Status.Conditions)
		}
		// Without the other one, they leave.
		f.setStage("rollout", stageComplete)
		f.settle()
		if !f.asksFor(kept) {
			t.Errorf("shutdown first %t: does not ask what nobody keeps any more", shutdownFirst)
		}
	}
}

// TestUnknownNamespace checks that a policy applies as long as the labels of a namespace are not known.
func TestUnknownNamespace(t *testing.T) {
	for _, withoutFleet := range []bool{false, true} {
		f := newFixture(t)
		f.withoutFleet = withoutFleet
		f.restart()
		f.createReadyNode("n", map[string]string{"ours": ""})
		pod := f.createPods(1, "n", 0)[0]
		f.createWith("m", "ours", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
			spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{{
				Action: coordinationv1alpha1.NodeMaintenancePodSkip, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"keep": ""}},
			}}
		})
		f.settle()
		if f.asksFor(pod) {
			t.Errorf("without fleet %t: the pod was requested, although its namespace is not known", withoutFleet)
		}
	}
}

// TestLateNamespace checks that a policy is evaluated again when the labels of a namespace become known,
// or change.
func TestLateNamespace(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"ours": ""})
	f.createWith("m", "ours", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
		spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{{
			Action: coordinationv1alpha1.NodeMaintenancePodSkip, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"keep": ""}},
		}}
	})
	pods := map[string]*v1.Pod{}
	for _, namespace := range []string{"kept", "other", "changed"} {
		pods[namespace] = f.createPods(1, "n", 0, func(pod *v1.Pod) { pod.Namespace = namespace })[0]
	}
	expect := func(when string, want map[string]bool) {
		t.Helper()
		f.run(5 * time.Second)
		got := map[string]bool{}
		for namespace, pod := range pods {
			got[namespace] = f.asksFor(pod)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: requested (-want, +got):\n%s", when, diff)
		}
	}
	namespace := func(name string, labels map[string]string) *v1.Namespace {
		return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	expect("no namespace is known", map[string]bool{"kept": false, "other": false, "changed": false})
	keep := map[string]string{"keep": ""}
	known := []*v1.Namespace{namespace("kept", keep), namespace("other", nil), namespace("changed", keep)}
	deliver(f, f.namespaceInformer, known, nil)
	expect("all are known", map[string]bool{"kept": false, "other": true, "changed": false})
	known[2] = namespace("changed", nil)
	deliver(f, f.namespaceInformer, known, nil)
	expect("a label is removed", map[string]bool{"kept": false, "other": true, "changed": true})
}

var bound = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound}

// A claim that only names a volume of others does not make the node Drained while it is attached.
func TestClaimOfOtherVolume(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"ours": ""})
	staying := f.createPods(1, "n", 0, ofApp("db"), func(pod *v1.Pod) {
		pod.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	})[0]
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: staying.Namespace, Name: "data"}, Spec: v1.PersistentVolumeClaimSpec{VolumeName: "attached"},
		Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending},
	}
	f.claims.Add(claim)
	f.attachments.Add(&storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("attached")}},
	})
	if diff := cmp.Diff([]string{"attached"}, f.attachedVolumes(f.node("n"), []*v1.Pod{staying})); diff != "" {
		t.Errorf("with a pending claim (-want, +got):\n%s", diff)
	}
	claim.Status = bound
	if got := f.attachedVolumes(f.node("n"), []*v1.Pod{staying}); len(got) > 0 {
		t.Errorf("waits for %v, which stays", got)
	}
}

func TestDetachedVolumes(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"ours": ""})
	pod := f.createPods(1, "n", 0)[0]
	staying := f.createPods(1, "n", 0, ofApp("db"), func(pod *v1.Pod) {
		pod.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	})[0]
	f.claims.Add(&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: staying.Namespace, Name: "data"}, Spec: v1.PersistentVolumeClaimSpec{VolumeName: "kept"}, Status: bound})
	attachment := func(name, volume string) *storagev1.VolumeAttachment {
		return &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       storagev1.VolumeAttachmentSpec{NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
		}
	}
	f.attachments.Add(attachment("a", "kept"))
	left := attachment("b", "moved")
	f.attachments.Add(left)
	f.createWith("m", "ours", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
		spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{policy(coordinationv1alpha1.NodeMaintenancePodSkip, "db")}
		spec.DrainedWhen = &coordinationv1alpha1.NodeMaintenanceDrainedWhen{Volumes: coordinationv1alpha1.NodeMaintenanceVolumesDetached, TimeoutSeconds: ptr.To[int32](300)}
	})
	f.settle()
	f.deletePods(pod)
	f.run(10 * time.Second)
	m := f.maintenance("m")
	if blockers := m.Status.DrainStatus.Blockers; status.IsDrained(&m.Status) || len(blockers) != 1 || blockers[0].Cause != coordinationv1alpha1.DrainBlockerVolumesAttached {
		t.Fatalf("unexpected status while a volume is attached: %+v", m.Status)
	} else if want := "1 node still has volumes attached (n: moved)"; blockers[0].Message != want {
		t.Errorf("got the blocker %q, want %q", blockers[0].Message, want)
	}
	emptied := f.node("n").Status.MaintenanceStatus.EmptiedTime
	f.restart()
	f.namespaces.Add(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	f.claims.Add(&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: staying.Namespace, Name: "data"}, Spec: v1.PersistentVolumeClaimSpec{VolumeName: "kept"}, Status: bound})
	f.attachments.Add(attachment("a", "kept"))
	f.attachments.Add(left)
	f.run(100 * time.Second)
	if got := f.node("n").Status.MaintenanceStatus.EmptiedTime; !got.Equal(emptied) || status.IsDrained(&f.maintenance("m").Status) {
		t.Errorf("the time begins anew after a restart: %v, was %v", got, emptied)
	}
	f.run(300 * time.Second)
	if m := f.maintenance("m"); !status.IsDrained(&m.Status) {
		t.Errorf("not drained after the timeout: %+v", m.Status)
	}
}

// Of several maintenances, each waits for volumes as long as it says, and not for those of others. Ephemeral volumes of
// pods that stay are not waited for.
func TestEachHasItsDetachTimeout(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"ours": ""})
	staying := f.createPods(1, "n", 0, ofApp("db"), func(pod *v1.Pod) {
		pod.Spec.Volumes = []v1.Volume{{Name: "scratch", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}}
	})[0]
	f.claims.Add(&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: staying.Namespace, Name: staying.Name + "-scratch"}, Spec: v1.PersistentVolumeClaimSpec{VolumeName: "kept"}, Status: bound})
	for _, volume := range []string{"kept", "moved"} {
		f.attachments.Add(&storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: volume},
			Spec:       storagev1.VolumeAttachmentSpec{NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
		})
	}
	skip := []coordinationv1alpha1.NodeMaintenancePodPolicy{policy(coordinationv1alpha1.NodeMaintenancePodSkip, "db")}
	for i, seconds := range []int32{60, 600} {
		f.createWith(fmt.Sprintf("m%d", i), "ours", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
			spec.PodPolicies = skip
			spec.DrainedWhen = &coordinationv1alpha1.NodeMaintenanceDrainedWhen{Volumes: coordinationv1alpha1.NodeMaintenanceVolumesDetached, TimeoutSeconds: &seconds}
		})
	}
	f.createWith("plain", "ours", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) { spec.PodPolicies = skip })
	f.createMaintenance("cordons", stageCordon, "ours")
	expect := func(after time.Duration, drained map[string]bool) {
		t.Helper()
		f.run(after)
		for name, want := range drained {
			m, text := f.maintenance(name), ""
			for _, blocker := range m.Status.DrainStatus.Blockers {
				text += blocker.Message
			}
			wantText := ""
			if !want {
				wantText = "1 node still has volumes attached (n: moved)"
			}
			admission := maintenance.AdmissionOf(f.node("n"), m.UID)
			if status.IsDrained(&m.Status) != want || text != wantText || admission == nil || (admission.DrainedTime != nil) != want {
				t.Errorf("%s, drained %t, blockers %q, admission %+v; want %t, %q", name, status.IsDrained(&m.Status), text, admission, want, wantText)
			}
		}
		if blockers := f.maintenance("cordons").Status.DrainStatus.Blockers; len(blockers) > 0 {
			t.Errorf("one that only cordons has the blockers %+v", blockers)
		}
	}
	expect(50*time.Second, map[string]bool{"plain": true, "m0": false, "m1": false})
	if c := nodeCondition(f.node("n"), v1.NodeDrained); c.Status != v1.ConditionFalse {
		t.Errorf("the node has the condition %+v", c)
	}
	expect(50*time.Second, map[string]bool{"plain": true, "m0": true, "m1": false})
	expect(600*time.Second, map[string]bool{"plain": true, "m0": true, "m1": true})
	if c := nodeCondition(f.node("n"), v1.NodeDrained); c.Status != v1.ConditionTrue {
		t.Errorf("the node has the condition %+v", c)
	}
}

func TestSettle(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"n1", "n2"} {
		f.createReadyNode(name, map[string]string{"ours": ""})
	}
	f.createReadyNode("other", nil)
	f.createWith("m", "ours", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
		spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{
			Settle: &coordinationv1alpha1.NodeMaintenanceSettle{Replacements: coordinationv1alpha1.NodeMaintenanceReplacementsAvailable, TimeoutSeconds: ptr.To[int32](300)},
		}
		spec.Rollout.MaxConcurrent = ptr.To(intstr.FromInt32(1))
	})
	f.run(5 * time.Second)
	if maintenance.AdmissionOf(f.node("n1"), f.maintenance("m").UID) == nil {
		t.Fatalf("n1 was not admitted: %+v", f.maintenance("m").Status)
	}
	replacement := f.createPods(1, "other", 0, func(pod *v1.Pod) {
		pod.CreationTimestamp = metav1.NewTime(f.clock.Now())
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", Controller: ptr.To(true)}}
	})[0]
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Spec.Rollout.MaxConcurrent = ptr.To(intstr.FromInt32(2))
		m.Generation++
	})
	f.run(20 * time.Second)
	waits := f.maintenance("m").Status.RolloutStatus.WaitingFor
	if len(waits) != 1 || waits[0].Reason != coordinationv1alpha1.NodeMaintenanceWaitSettling {
		t.Fatalf("n2 does not wait for the replacement: %+v", waits)
	}
	replacement.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	if _, err := f.client.CoreV1().Pods(replacement.Namespace).UpdateStatus(f.ctx, replacement, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.run(5 * time.Second)
	if maintenance.AdmissionOf(f.node("n2"), f.maintenance("m").UID) == nil {
		t.Errorf("n2 was not admitted when the replacement was ready: %+v", f.maintenance("m").Status.RolloutStatus)
	}
}

// A rollout settles while a pod is not ready that was created since the first of the nodes was admitted
// which were drained a short time ago.
func TestSettlesSinceTheFirstAdmission(t *testing.T) {
	for name, test := range map[string]struct {
		created int // of the newest pod that is not ready, in seconds after the admission of n1
		want    bool
	}{
		"before":                     {-1, false},
		"with the first admission":   {0, true},
		"between the two admissions": {50, true},
		"after the second admission": {150, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			begin := f.clock.Now()
			at := func(seconds int) metav1.Time { return metav1.NewTime(begin.Add(time.Duration(seconds) * time.Second)) }
			for i, name := range []string{"n1", "n2"} {
				f.createReadyNode(name, nil)
				f.changeNamed(name, func(node *v1.Node) {
					node.Status.MaintenanceStatus = &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{
						{MaintenanceUID: "m", AdmittedTime: at(i * 100), DrainedTime: ptr.To(at(200 + 30*i))},
					}}
				})
			}
			f.deliverNodes()
			m := &coordinationv1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "m"}}
			m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{Settle: &coordinationv1alpha1.NodeMaintenanceSettle{}}
			drained := func() map[types.UID][]departedNode {
				return drainedNodes(f.listNodes(), []*coordinationv1alpha1.NodeMaintenance{m}, at(250).Time)
			}
			until := f.departed.settlingUntil(m, drained, at(250).Time, func() time.Time { return at(test.created).Time })
			want := time.Time{}
			if test.want {
				want = at(230).Add(defaultSettleTimeout)
			}
			if !until.Equal(want) {
				t.Errorf("it settles until %s, not %s", until, want)
			}
		})
	}
}

func TestSettleTimeout(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"n1", "n2"} {
		f.createReadyNode(name, map[string]string{"ours": ""})
	}
	f.createWith("m", "ours", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
		spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{
			MaxConcurrent: ptr.To(intstr.FromInt32(1)),
			Settle:        &coordinationv1alpha1.NodeMaintenanceSettle{Replacements: coordinationv1alpha1.NodeMaintenanceReplacementsAvailable, TimeoutSeconds: ptr.To[int32](60)},
		}
	})
	f.run(5 * time.Second)
	f.createPods(1, "other", 0, func(pod *v1.Pod) {
		pod.CreationTimestamp = metav1.NewTime(f.clock.Now())
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", Controller: ptr.To(true)}}
	})
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Spec.Rollout.MaxConcurrent = ptr.To(intstr.FromInt32(2))
		m.Generation++
	})
	f.run(30 * time.Second)
	if maintenance.AdmissionOf(f.node("n2"), f.maintenance("m").UID) != nil {
		t.Fatalf("n2 did not wait")
	}
	f.run(60 * time.Second)
	if maintenance.AdmissionOf(f.node("n2"), f.maintenance("m").UID) == nil {
		t.Errorf("n2 waits longer than the timeout: %+v", f.maintenance("m").Status.RolloutStatus)
	}
}

// A rollout settles also when the work on the last node is done after the timeout of its drain, or when that
// node is deleted: before, its place was not free.
func TestSettlesWhenAPlaceIsFree(t *testing.T) {
	for name, test := range map[string]struct {
		work time.Duration
		free func(f *fixture)
	}{
		"done at once":               {time.Second, func(f *fixture) { f.setDone("m", "n1") }},
		"done after the timeout":     {time.Hour, func(f *fixture) { f.setDone("m", "n1") }},
		"deleted when it is drained": {time.Second, func(f *fixture) { f.deleteNode("n1") }},
		"deleted after the timeout":  {time.Hour, func(f *fixture) { f.deleteNode("n1") }},
		"deleted after it was released": {time.Second, func(f *fixture) {
			f.setDone("m", "n1")
			f.run(2 * time.Second)
			f.deleteNode("n1")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n1", "n2")
			rollout := atOnce(1)
			rollout.Settle = &coordinationv1alpha1.NodeMaintenanceSettle{Replacements: coordinationv1alpha1.NodeMaintenanceReplacementsAvailable, TimeoutSeconds: ptr.To[int32](60)}
			f.createRollout("m", rollout)
			f.drainNodes()
			f.expectNode("drained", "n1", drained)
			f.createPods(1, "other", 0, func(pod *v1.Pod) {
				pod.CreationTimestamp = metav1.NewTime(f.clock.Now())
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", Controller: ptr.To(true)}}
			})
			f.run(test.work)
			test.free(f)
			f.run(40 * time.Second)
			f.expectNode("while a replacement is not ready", "n2", waiting)
			if waits := f.maintenance("m").Status.RolloutStatus.WaitingFor; len(waits) != 1 || waits[0].Reason != coordinationv1alpha1.NodeMaintenanceWaitSettling ||
				waits[0].UntilTime == nil || waits[0].UntilTime.After(f.clock.Now().Add(time.Minute)) {
				t.Errorf("it waits for %+v", waits)
			}
			f.run(30 * time.Second)
			f.expectNode("after the timeout", "n2", admitted)
		})
	}
}

// Deleted nodes are remembered for as long as a rollout may wait for them.
func TestDepartedNodes(t *testing.T) {
	d := departedNodes{}
	node := func(uid types.UID, drained, done *metav1.Time) *v1.Node {
		return &v1.Node{Status: v1.NodeStatus{MaintenanceStatus: &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{
			{MaintenanceUID: uid, AdmittedTime: metav1.NewTime(start), DrainedTime: drained, DoneTime: done},
		}}}}
	}
	at := func(hours int) *metav1.Time {
		return ptr.To(metav1.NewTime(start.Add(time.Duration(hours) * time.Hour)))
	}
	d.note(&v1.Node{}, start)
	d.note(node("a", nil, nil), at(1).Time)
	d.note(node("a", at(1), at(2)), at(3).Time)
	want := []departedNode{{start, at(1).Time}, {start, at(2).Time}}
	if got := d["a"]; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	d.note(node("b", at(1), nil), at(27).Time)
	if got := d["a"]; len(got) > 0 || len(d) != 1 || len(d["b"]) != 1 {
		t.Errorf("kept %v", d)
	}
}

// TestIsReplacement checks for which pods a rollout settles.
func TestIsReplacement(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1.Pod)
		want   bool
	}{
		"of a ReplicaSet": {func(*v1.Pod) {}, true},
		"of a Job":        {func(p *v1.Pod) { p.OwnerReferences[0].Kind = "Job" }, false},
		"of nobody":       {func(p *v1.Pod) { p.OwnerReferences = nil }, false},
		"of a DaemonSet":  {func(p *v1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }, false},
		"being deleted":   {func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, false},
		"failed":          {func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }, false},
		"not controlled":  {func(p *v1.Pod) { p.OwnerReferences[0].Controller = nil }, false},
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", Controller: ptr.To(true)}}}}
		test.change(pod)
		if got := isReplacement(pod); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The newest pod counts that a controller keeps running and that is not ready.
func TestNewestUnready(t *testing.T) {
	owned := func(kind string) func(*v1.Pod) {
		return func(pod *v1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "owner", Controller: ptr.To(true)}}
		}
	}
	for name, test := range map[string]struct {
		change func(*v1.Pod)
		counts bool
	}{
		"of a ReplicaSet":  {owned("ReplicaSet"), true},
		"of a StatefulSet": {owned("StatefulSet"), true},
		"ready": {func(pod *v1.Pod) {
			owned("ReplicaSet")(pod)
			pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		}, false},
		"of nobody":        {func(*v1.Pod) {}, false},
		"of a Job":         {owned("Job"), false},
		"of a DaemonSet":   {owned("DaemonSet"), false},
		"has ended":        {func(pod *v1.Pod) { owned("ReplicaSet")(pod); pod.Status.Phase = v1.PodFailed }, false},
		"is being deleted": {func(pod *v1.Pod) { owned("ReplicaSet")(pod); pod.DeletionTimestamp = ptr.To(metav1.Now()) }, false},
	} {
		f := newFixture(t)
		created := func(seconds int) func(*v1.Pod) {
			return func(pod *v1.Pod) {
				pod.CreationTimestamp = metav1.NewTime(start.Add(time.Duration(seconds) * time.Second))
			}
		}
		f.createPods(1, "n", 0, owned("ReplicaSet"), created(1))
		f.createPods(1, "n", 0, owned("ReplicaSet"), created(0))
		f.createPods(1, "", 0, test.change, created(2))
		f.deliverAll()
		want := start.Add(time.Second)
		if test.counts {
			want = start.Add(2 * time.Second)
		}
		if got := newestUnready(f.podIndexer); !got.Equal(want) {
			t.Errorf("%s: %v, not %v", name, got, want)
		}
	}
}
