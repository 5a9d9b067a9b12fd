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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
)

// TestHoldUps verifies that an event tells once what is held up, when something that has protected a pod has ended, and
// that a node which was created again begins anew.
func TestHoldUps(t *testing.T) {
	escalation, err := maintenance.NewEscalation([]coordinationv1alpha1.NodeMaintenanceEscalationStep{{AfterSeconds: 10, Action: v1.MaintenanceEscalationIgnoreBudgets}})
	if err != nil {
		t.Fatal(err)
	}
	node := func(uid types.UID) *v1.Node { return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: uid}} }
	draining := func(name string) progress.Spec {
		return progress.Spec{Name: name, UID: types.UID(name), Stage: stageDrain, Effective: true, Phase: progress.PhaseAdmitted}
	}
	hasty, patient, other := draining("hasty"), draining("patient"), draining("other")
	hasty.Escalation = escalation
	held := []*decision.HeldUp{{Action: v1.MaintenanceEscalationIgnoreBudgets, Come: []*progress.Spec{&hasty}, Holders: []*progress.Spec{&patient}}}
	pods := []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "kept"}}, {ObjectMeta: metav1.ObjectMeta{UID: "asked"}}}
	keeps, asks := []progress.Verdict{{KeptBy: []string{"hasty"}}, {}}, []progress.Verdict{{}, {}}

	h := newHoldUps()
	expectEnded := func(when string, node *v1.Node, kept, asked time.Duration) {
		t.Helper()
		for pod, want := range map[types.UID]time.Duration{"kept": kept, "asked": asked} {
			if ended := h.ended(node, pod); want < 0 && !ended.IsZero() || want >= 0 && !ended.Equal(start.Add(want)) {
				t.Errorf("%s: what protects pod %s has ended at %v, want %v after the start", when, pod, ended, want)
			}
		}
	}
	h.see(node("uid"), []progress.Spec{hasty, patient, other}, pods, keeps, start)
	for _, want := range []int{1, 0} {
		if news := h.note("n", sets.New[types.UID]("patient"), append(held, held...)); len(news) != want {
			t.Errorf("%d of the same are news, want %d", len(news), want)
		}
	}
	expectEnded("at first", node("uid"), -1, -1)
	h.see(node("uid"), []progress.Spec{hasty, patient}, pods, keeps, start.Add(time.Minute))
	expectEnded("one has ended that holds up nothing", node("uid"), -1, -1)
	h.see(node("uid"), []progress.Spec{hasty}, pods, keeps, start.Add(2*time.Minute))
	expectEnded("one has ended that holds up another one", node("uid"), 2*time.Minute, 2*time.Minute)
	for _, later := range []time.Duration{3 * time.Minute, 4 * time.Minute} {
		h.see(node("uid"), []progress.Spec{hasty}, pods, asks, start.Add(later))
		expectEnded("a pod is not kept any more", node("uid"), 3*time.Minute, 2*time.Minute)
	}
	late, later := draining("late"), draining("later")
	h.note("n", sets.New[types.UID]("late", "later"), held)
	completes := late
	completes.Stage = stageComplete
	h.see(node("uid"), []progress.Spec{hasty, completes, later}, pods, asks, start.Add(5*time.Minute))
	expectEnded("one does not drain any more that holds up another one", node("uid"), 5*time.Minute, 5*time.Minute)
	h.see(node("uid"), []progress.Spec{hasty}, pods, asks, start.Add(6*time.Minute))
	expectEnded("one more has ended", node("uid"), 6*time.Minute, 6*time.Minute)
	h.note("n", nil, nil)
	if news := h.note("n", nil, held); len(news) != 1 {
		t.Errorf("%d news of what is held up again", len(news))
	}
	expectEnded("another node of that name", node("next"), -1, -1)
	h.see(node("next"), []progress.Spec{hasty, patient}, pods, asks, start.Add(time.Hour))
	expectEnded("the node was created again", node("next"), -1, -1)
	if news := h.note("n", nil, held); len(news) != 1 {
		t.Errorf("%d news of the node that was created again", len(news))
	}
	if h.see(node("next"), []progress.Spec{patient}, pods, asks, start.Add(time.Hour)); len(h.nodes) > 0 {
		t.Errorf("remembered although nothing escalates: %v", h.nodes)
	}
}

// TestHoldUpsOfTheNextController verifies that a controller which takes over knows from the status of a node which
// maintenances have ended meanwhile.
func TestHoldUpsOfTheNextController(t *testing.T) {
	escalation, err := maintenance.NewEscalation([]coordinationv1alpha1.NodeMaintenanceEscalationStep{{AfterSeconds: 10, Action: v1.MaintenanceEscalationIgnoreBudgets}})
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.NewTime(start)
	specs := []progress.Spec{{Name: "m", UID: "m", Stage: stageDrain, Effective: true, Phase: progress.PhaseAdmitted, Escalation: escalation}}
	for name, test := range map[string]struct {
		stored v1.MaintenanceAdmission
		ended  bool
	}{
		"it goes on":             {v1.MaintenanceAdmission{MaintenanceName: "m", MaintenanceUID: "m"}, false},
		"it has ended":           {v1.MaintenanceAdmission{MaintenanceName: "other", MaintenanceUID: "other"}, true},
		"it had ended before":    {v1.MaintenanceAdmission{MaintenanceName: "other", MaintenanceUID: "other", DoneTime: &now}, false},
		"its node comes back":    {v1.MaintenanceAdmission{MaintenanceName: "other", MaintenanceUID: "other", ReturningTime: &now}, false},
		"a shutdown of the node": {v1.MaintenanceAdmission{MaintenanceName: maintenance.ShutdownName("n"), MaintenanceUID: "other"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid"}}
			node.Status.MaintenanceStatus = &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{test.stored}}
			h := newHoldUps()
			h.see(node, specs, nil, nil, start)
			if ended := h.ended(node, "pod"); ended.IsZero() == test.ended {
				t.Errorf("ended at %v", ended)
			}
		})
	}
}

// TestFailedNodeIsSelected verifies that a node which the maintenance has lost does not count as failed.
func TestFailedNodeIsSelected(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	f.progress.SetFailed("n", "uid", "m", true)
	f.progress.SetFailed("lost", "uid", "m", true)
	if sums, _, _ := f.progress.Summarize("m"); len(sums.Failed) != 1 || sums.Failed["n"] != "uid" {
		t.Errorf("failed are %v", sums.Failed)
	}
}
