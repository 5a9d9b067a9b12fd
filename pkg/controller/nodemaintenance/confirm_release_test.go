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
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/confirm"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/ptr"
)

// runOnCaches runs the controller for some time with the caches that it has.
func (f *fixture) runOnCaches(duration time.Duration) {
	f.t.Helper()
	for end := f.clock.Now().Add(duration); f.clock.Now().Before(end); f.advanceTo(f.clock.Now().Add(time.Second)) {
		steps := 0
		for f.step() {
			if steps++; steps > 100 {
				f.t.Fatalf("the controller does not wait; queues: %v", f.queues())
			}
		}
	}
}

// A controller that was suspended goes on with the node as the next leader has written it, and the maintenances as they
// were: it takes nothing from one that has begun since.
func TestReleaseIsConfirmed(t *testing.T) {
	for name, known := range map[string]func(m *coordinationv1alpha1.NodeMaintenance) *coordinationv1alpha1.NodeMaintenance{
		"it did not drain yet": func(m *coordinationv1alpha1.NodeMaintenance) *coordinationv1alpha1.NodeMaintenance {
			m.Spec.Stage, m.Generation = stageCordon, m.Generation-1
			return m
		},
		"another one of that name had ended": func(m *coordinationv1alpha1.NodeMaintenance) *coordinationv1alpha1.NodeMaintenance {
			m.Spec.Stage, m.UID = stageComplete, "before"
			return m
		},
		"it did not exist": func(*coordinationv1alpha1.NodeMaintenance) *coordinationv1alpha1.NodeMaintenance { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			f.createPods(1, "n", 0)
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Generation = 2 })
			f.run(10 * time.Second)
			targets := progress.StoredTargets(f.node("n"))
			if f.requested() != 1 || targets.IsEmpty() {
				t.Fatalf("%d requests, targets %v", f.requested(), targets)
			}
			reads := 0
			f.client.PrependReactor("list", "nodemaintenances", func(clienttesting.Action) (bool, runtime.Object, error) {
				reads++
				return false, nil, nil
			})
			var cached []*coordinationv1alpha1.NodeMaintenance
			if old := known(f.maintenance("m").DeepCopy()); old != nil {
				cached = append(cached, old)
			}
			deliver(f, f.maintenanceInformer, cached, nil)
			f.runOnCaches(20 * time.Second)
			if node := f.node("n"); !node.Spec.Unschedulable || !maintenance.IsClaimed(node) || !progress.StoredTargets(node).Equal(targets) || f.requested() != 1 {
				t.Errorf("released: unschedulable %t, %d requests, status %+v", node.Spec.Unschedulable, f.requested(), node.Status)
			}
			if reads == 0 || reads > 25 {
				t.Errorf("the maintenances were read %d times in 20 seconds", reads)
			}
			// It ends indeed, and the cache knows.
			f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Stage, m.Generation = stageComplete, 3 })
			f.run(time.Minute)
			if node := f.node("n"); node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil || f.requested() != 0 {
				t.Errorf("not released in the end: unschedulable %t, %d requests, status %+v", node.Spec.Unschedulable, f.requested(), node.Status)
			}
		})
	}
}

// A controller that was suspended goes on with the node as the next leader has released it, and the maintenances as they
// were: it does not take the node again for one that has ended since.
func TestClaimIsConfirmed(t *testing.T) {
	for name, change := range map[string]func(f *fixture){
		"it is completed": func(f *fixture) {
			f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Stage, m.Finalizers = stageComplete, nil })
		},
		"it is being deleted": func(f *fixture) {
			f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
				m.DeletionTimestamp = ptr.To(metav1.NewTime(f.clock.Now()))
			})
		},
		"it does not select the node any more": func(f *fixture) {
			f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
				m.Spec.NodeSelector = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "other", Operator: v1.NodeSelectorOpExists}}}}}
			})
		},
		"it was deleted": func(f *fixture) {
			f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Finalizers = nil })
			if err := f.client.CoordinationV1alpha1().NodeMaintenances().Delete(f.ctx, "m", metav1.DeleteOptions{}); err != nil {
				f.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "n")
			f.createPods(1, "n", 0)
			f.createPlain("m")
			f.run(10 * time.Second)
			if node := f.node("n"); !node.Spec.Unschedulable || len(maintenance.Admissions(node)) != 1 {
				t.Fatalf("not begun with: %+v", node)
			}
			change(f)
			node := f.node("n").DeepCopy()
			node.Spec.Unschedulable, node.Status.MaintenanceStatus = false, nil
			f.update(node)
			f.deliverNodes()
			f.runOnCaches(20 * time.Second)
			if node := f.node("n"); node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil {
				t.Errorf("claimed again: unschedulable %t, status %+v", node.Spec.Unschedulable, node.Status.MaintenanceStatus)
			}
		})
	}
}

// A maintenance that was created a moment ago may be newer than what was read of all.
func TestClaimOfANewMaintenance(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	if f.confirm.AreUnserved(f.ctx) {
		t.Fatal("not served")
	}
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(confirm.LiveClaimsAge / 2)
	if !f.node("n").Spec.Unschedulable {
		t.Error("not cordoned while others share what was read before")
	}
}

// An admission of a maintenance with nothing left to do is not that of one that the cache lacks: an old leader has recorded
// it, for example.
func TestAdmissionByAnOldLeader(t *testing.T) {
	f := newFleet(t, "n")
	f.createPlain("m")
	f.run(10 * time.Second)
	before := f.node("n").Status.MaintenanceStatus.DeepCopy()
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Stage = stageComplete })
	f.run(10 * time.Second)
	node := f.node("n").DeepCopy()
	if node.Status.MaintenanceStatus != nil || len(f.maintenance("m").Finalizers) > 0 {
		t.Fatalf("not released: %+v", node)
	}
	node.Status.MaintenanceStatus = before
	f.update(node)
	f.run(10 * time.Second)
	if status := f.node("n").Status.MaintenanceStatus; status != nil {
		t.Errorf("the status stays: %+v", status)
	}
}

// While kube-apiserver does not serve NodeMaintenances, because its gate was turned off, no node is cordoned for what the
// cache has of them: nobody could complete them.
func TestNoCordonWhileMaintenancesAreNotServed(t *testing.T) {
	for name, test := range map[string]struct {
		answer error
		want   bool
	}{
		"not served": {apierrors.NewGenericServerResponse(404, "get", write.MaintenanceResource, "", "", 0, true), false},
		"no answer":  {apierrors.NewServiceUnavailable("busy"), true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			f.createMaintenance("m", stageCordon, "a", maintenance.StandardPlan()...)
			f.run(10 * time.Second)
			if !f.node("n").Spec.Unschedulable {
				t.Fatal("not cordoned")
			}
			answer, reads := test.answer, 0
			f.client.PrependReactor("list", "nodemaintenances", func(clienttesting.Action) (bool, runtime.Object, error) {
				reads++
				return answer != nil, nil, answer
			})
			node := f.node("n").DeepCopy()
			node.Spec.Unschedulable = false
			f.update(node)
			for range 60 {
				f.deliverNodes()
				f.runOnCaches(time.Second)
			}
			if got := f.node("n").Spec.Unschedulable; got != test.want {
				t.Errorf("unschedulable: %t, want %t", got, test.want)
			}
			if reads > 10 {
				t.Errorf("the maintenances were read %d times in a minute", reads)
			}
			answer = nil
			f.run(20 * time.Second)
			if !f.node("n").Spec.Unschedulable {
				t.Error("not cordoned, although they are served again")
			}
		})
	}
}

// Nor does it forget that another leader has begun with the node for a maintenance, while the claim and the targets are
// also those of another one.
func TestAdmissionsAreKept(t *testing.T) {
	for name, known := range map[string]func(m *coordinationv1alpha1.NodeMaintenance){
		"it did not drain yet": func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Stage = stageCordon },
		"it was planned":       func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Stage = stageIdle },
		"it did not select the node yet": func(m *coordinationv1alpha1.NodeMaintenance) {
			m.Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Key = "b"
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			f.createPods(1, "n", 0)
			f.createMaintenance("other", stageDrain, "a", maintenance.StandardPlan()...)
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Generation = 2 })
			f.run(10 * time.Second)
			uid := f.maintenance("m").UID
			if maintenance.AdmissionOf(f.node("n"), uid) == nil {
				t.Fatalf("not begun: %+v", f.node("n").Status)
			}
			// As for all that is older than what is stored.
			isOld := true
			f.client.PrependReactor("update", "nodemaintenances", func(clienttesting.Action) (bool, runtime.Object, error) {
				return isOld, nil, apierrors.NewConflict(write.MaintenanceResource, "m", errors.New("it has changed"))
			})
			old := f.maintenance("m").DeepCopy()
			old.Generation = 1
			known(old)
			deliver(f, f.maintenanceInformer, []*coordinationv1alpha1.NodeMaintenance{f.maintenance("other"), old}, nil)
			// Something else is to be written.
			f.changeNamed("n", func(node *v1.Node) { node.Status.MaintenanceStatus.DrainMessage = "Something else" })
			f.deliverNodes()
			f.runOnCaches(20 * time.Second)
			if maintenance.AdmissionOf(f.node("n"), uid) == nil {
				t.Errorf("forgotten: %+v", f.node("n").Status)
			}
			isOld = false
			f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Stage, m.Generation = stageComplete, 3 })
			f.run(time.Minute)
			if maintenance.AdmissionOf(f.node("n"), uid) != nil {
				t.Errorf("not forgotten in the end: %+v", f.node("n").Status)
			}
		})
	}
}

// A node that somebody has just uncordoned is claimed all the same, also if it is only cordoned.
func TestReleaseOfSchedulableNodeIsConfirmed(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageCordon, "a")
	f.run(10 * time.Second)
	if !maintenance.IsClaimed(f.node("n")) || !progress.StoredTargets(f.node("n")).IsEmpty() {
		t.Fatalf("unexpected status: %+v", f.node("n").Status)
	}
	f.changeNamed("n", func(node *v1.Node) { node.Spec.Unschedulable = false })
	f.deliverNodes()
	deliver[*coordinationv1alpha1.NodeMaintenance](f, f.maintenanceInformer, nil, nil)
	f.runOnCaches(20 * time.Second)
	if !maintenance.IsClaimed(f.node("n")) {
		t.Errorf("released: %+v", f.node("n").Status)
	}
	f.run(time.Minute)
	if node := f.node("n"); !node.Spec.Unschedulable || !maintenance.IsClaimed(node) {
		t.Errorf("not cordoned when the cache knows of it: %+v", node)
	}
}

// What was read of the maintenances serves for all nodes for a second, also if it could not be read.
func TestLiveClaims(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createNode("o", map[string]string{"b": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	reads, broken, takes := 0, false, time.Duration(0)
	f.client.PrependReactor("list", "nodemaintenances", func(clienttesting.Action) (bool, runtime.Object, error) {
		reads++
		f.clock.Step(takes)
		if !broken {
			return false, nil, nil
		}
		f.clock.Step(write.ReadTimeout)
		return true, nil, apierrors.NewTimeoutError("too slow", 1)
	})
	for _, step := range []struct {
		name   string
		wait   time.Duration
		node   string
		broken bool
		takes  time.Duration
		reads  int
		fails  bool
	}{
		{name: "the cache lacks a maintenance of the node", wait: confirm.LiveClaimsAge, node: "n", reads: 1, fails: true},
		{name: "another node shares what was read", wait: confirm.LiveClaimsAge - time.Millisecond, node: "o"},
		{name: "what was read is old", wait: time.Millisecond, node: "o", reads: 1},
		{name: "the clock was set back", wait: -time.Hour, node: "o", reads: 1},
		{name: "they cannot be read", wait: confirm.LiveClaimsAge, node: "o", broken: true, reads: 1, fails: true},
		{name: "they could not be read, for one that has waited", node: "o", fails: true},
		{name: "they can be read again", wait: confirm.LiveClaimsAge, node: "o", reads: 1},
		{name: "reading them takes time", wait: confirm.LiveClaimsAge, node: "o", takes: 600 * time.Millisecond, reads: 1},
		{name: "they are as old as their reading", wait: confirm.LiveClaimsAge - 600*time.Millisecond, node: "o", reads: 1},
	} {
		f.clock.Step(step.wait)
		reads, broken, takes = 0, step.broken, step.takes
		if err := f.confirm.Release(f.ctx, f.node(step.node), nil); (err != nil) != step.fails || reads != step.reads {
			t.Errorf("%s: read %d times, want %d; error %v, want one: %t", step.name, reads, step.reads, err, step.fails)
		}
	}
}

// Only a maintenance that claims the node keeps it from being released, and only if the decision did not know of it yet.
func TestClaimsThatPreventRelease(t *testing.T) {
	stage := func(stage coordinationv1alpha1.NodeMaintenanceStage) func(*coordinationv1alpha1.NodeMaintenance) {
		return func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Stage = stage }
	}
	generation := func(generation int64) func(*coordinationv1alpha1.NodeMaintenance) {
		return func(m *coordinationv1alpha1.NodeMaintenance) { m.Generation = generation }
	}
	for name, test := range map[string]struct {
		stored func(*coordinationv1alpha1.NodeMaintenance)
		// known are on what it was decided. The cache has the maintenance as it is, or as cached says.
		known  []progress.Spec
		cached func(*coordinationv1alpha1.NodeMaintenance)
		fails  bool
	}{
		"it drains":               {stored: stage(stageDrain), fails: true},
		"it cordons":              {stored: stage(stageCordon), fails: true},
		"it has not begun":        {stored: stage(stageIdle)},
		"it is complete":          {stored: stage(stageComplete)},
		"it is being deleted":     {stored: func(m *coordinationv1alpha1.NodeMaintenance) { m.DeletionTimestamp = ptr.To(metav1.NewTime(start)) }},
		"it is known":             {stored: generation(2), known: []progress.Spec{{UID: "m", Generation: 2}}},
		"an earlier one is known": {stored: generation(2), known: []progress.Spec{{UID: "m", Generation: 1}}, fails: true},
		"a later one is known":    {stored: generation(2), known: []progress.Spec{{UID: "m", Generation: 3}}},
		"another one is known":    {stored: generation(2), known: []progress.Spec{{UID: "other", Generation: 2}}, fails: true},
		"only the cache has it":   {stored: generation(2), fails: true},
		"it is invalid": {stored: func(m *coordinationv1alpha1.NodeMaintenance) {
			m.Spec.DrainPlan[0].PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "no value!"}}
		}},
		"the cache is newer, and it is complete": {stored: generation(2), cached: func(m *coordinationv1alpha1.NodeMaintenance) {
			m.Generation, m.Spec.Stage = 3, stageComplete
		}},
		"the cache is newer, and it drains": {stored: generation(2), cached: generation(3), known: []progress.Spec{{UID: "m", Generation: 2}}, fails: true},
		"the cache is older, and it is complete": {stored: generation(2), cached: func(m *coordinationv1alpha1.NodeMaintenance) {
			m.Generation, m.Spec.Stage = 1, stageComplete
		}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			f.change("m", test.stored)
			for i := range test.known {
				if test.known[i].UID == "m" {
					test.known[i].UID = f.maintenance("m").UID
				}
			}
			cached := f.maintenance("m").DeepCopy()
			if test.cached != nil {
				test.cached(cached)
			}
			deliver(f, f.maintenanceInformer, []*coordinationv1alpha1.NodeMaintenance{cached}, nil)
			if err := f.confirm.Release(f.ctx, f.node("n"), test.known); (err != nil) != test.fails || err != nil && !apierrors.IsConflict(err) {
				t.Errorf("got error %v, want a conflict: %t", err, test.fails)
			}
		})
	}
}
