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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
)

// TestHoldUps verifies that an event tells once what is held up, and that a node which was created again begins anew.
func TestHoldUps(t *testing.T) {
	escalation, err := maintenance.NewEscalation([]coordinationv1alpha1.NodeMaintenanceEscalationStep{{AfterSeconds: 10, Action: v1.MaintenanceEscalationIgnoreBudgets}})
	if err != nil {
		t.Fatal(err)
	}
	node := func(uid types.UID) *v1.Node { return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: uid}} }
	draining := func(name string) order {
		return order{name: name, uid: types.UID(name), stage: stageDrain, effective: true, phase: phaseAdmitted}
	}
	hasty, patient := draining("hasty"), draining("patient")
	hasty.escalation = escalation
	held := []*heldUpEscalation{{action: v1.MaintenanceEscalationIgnoreBudgets, come: []*order{&hasty}, holders: []*order{&patient}}}

	h := newHoldUps()
	h.see(node("uid"), []order{hasty, patient}, start)
	for _, want := range []int{1, 0} {
		if news := h.note("n", append(held, held...)); len(news) != want {
			t.Errorf("%d of the same are news, want %d", len(news), want)
		}
	}
	if ended := h.ended(node("uid")); !ended.IsZero() {
		t.Errorf("ended at %v", ended)
	}
	h.see(node("uid"), []order{hasty}, start.Add(time.Minute))
	if ended := h.ended(node("uid")); !ended.Equal(start.Add(time.Minute)) {
		t.Errorf("ended at %v", ended)
	}
	if ended := h.ended(node("next")); !ended.IsZero() {
		t.Errorf("on another node of that name, ended at %v", ended)
	}
	h.see(node("next"), []order{hasty, patient}, start.Add(time.Hour))
	if ended := h.ended(node("next")); !ended.IsZero() {
		t.Errorf("on the node that was created again, ended at %v", ended)
	}
	if news := h.note("n", held); len(news) != 1 {
		t.Errorf("%d news of the node that was created again", len(news))
	}
}

// TestOverdue verifies when the next blocker makes a maintenance stalled, and that those count at once which do not say
// since when they are there.
func TestOverdue(t *testing.T) {
	group := func(cause maintenance.HoldCause, since time.Duration) maintenance.HoldGroup {
		at := metav1.NewTime(start.Add(-since))
		return maintenance.HoldGroup{Cause: cause, Since: &at}
	}
	sums := summary{blockers: []maintenance.HoldGroup{
		group(maintenance.HoldDisruptionBudget, 2*time.Minute), group(maintenance.HoldEvictionRefused, 4*time.Minute), group(maintenance.HoldStuckTerminating, 3*time.Minute),
		group(maintenance.HoldEvicting, time.Hour),
	}}
	groups, _, next := sums.overdue(&coordinationv1alpha1.NodeMaintenanceStatus{}, start)
	if len(groups) != 0 || next != time.Minute {
		t.Errorf("%d are overdue, the next one after %v", len(groups), next)
	}
	sums.releaseBlockers = []maintenance.HoldGroup{{Cause: maintenance.HoldRequestFailed}}
	if groups, _, _ = sums.overdue(&coordinationv1alpha1.NodeMaintenanceStatus{}, start); len(groups) != 1 {
		t.Errorf("%d are overdue, of which one does not say since when", len(groups))
	}
}

// TestRetries verifies that an escalation waits after a conflict, until the cache has what it contradicts, and that no
// write waits longer because it has failed for long.
func TestRetries(t *testing.T) {
	f, conflict := newFailures(), apierrors.NewConflict(nodeResource, "n", errors.New("changed"))
	f.failed("n", writeKey{writeStatus, "a"}, conflict, time.Time{}, start)
	f.failed("n", writeKey{writeEscalation, "a"}, conflict, time.Time{}, start)
	if wait := f.wait("n", writeKey{writeStatus, "a"}, start); wait != 0 {
		t.Errorf("the status waits %v", wait)
	}
	if wait := f.wait("n", writeKey{writeEscalation, "a"}, start); wait != firstRetry {
		t.Errorf("the escalation waits %v", wait)
	}
	for _, earlier := range []int{10, 100} {
		if wait := retryAfter(earlier); wait != maxRetry {
			t.Errorf("after %d failures: %v", earlier, wait)
		}
	}
}

// TestFailedNodeIsSelected verifies that a node which the maintenance has lost does not count as failed.
func TestFailedNodeIsSelected(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	f.progress.setFailed("n", "uid", "m", true)
	f.progress.setFailed("lost", "uid", "m", true)
	if failed := f.progress.maintenances["m"].failed; len(failed) != 1 || failed["n"] != "uid" {
		t.Errorf("failed are %v", failed)
	}
}
