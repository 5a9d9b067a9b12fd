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
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/ptr"
)

// schedules is the number of random orders of events that a test tries.
const schedules = 20

// If maintenances with contradicting plans are created together, the first one in the order of
// progress drains first, whatever the order in which finalizers are stored and nodes are synced.
func TestWhoGoesFirst(t *testing.T) {
	const pod = v1.PodTypeDefault
	for _, tc := range []struct {
		name string
		// web and db name the maintenances whose plans start with these apps. webAge is how much
		// older the first one is, webPriority and dbPriority are the priorities of the entries.
		web, db                 string
		webAge                  time.Duration
		webPriority, dbPriority int32
		want                    string
	}{
		{"the older one by name", "a", "b", 0, 5, 5, "web"},
		{"the other one by name", "b", "a", 0, 5, 5, "db"},
		{"the older one", "b", "a", time.Second, 5, 5, "web"},
		{"less progress", "a", "b", time.Second, 5, 3, "db"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for schedule := range uint64(schedules) {
				f := newFixture(t)
				f.createNode("n", map[string]string{"a": ""})
				first := f.firstRequested(f.createPods(1, "n", 0, ofApp("web")), f.createPods(1, "n", 0, ofApp("db")))
				created := []func(){
					func() { f.createMaintenance(tc.web, stageDrain, "a", plan(entryFor("web", pod, tc.webPriority))...) },
					func() { f.createMaintenance(tc.db, stageDrain, "a", plan(entryFor("db", pod, tc.dbPriority))...) },
				}
				created[0]()
				f.clock.Step(tc.webAge)
				created[1]()
				f.workInAnyOrder(rand.New(rand.NewPCG(schedule, 2)))
				if *first != tc.want {
					t.Fatalf("schedule %d: the first eviction is requested for app %q, want %q; targets %s", schedule, *first, tc.want, progress.StoredTargets(f.node("n")))
				}
			}
		})
	}
}

// firstRequested records the app of the first pod whose eviction is requested.
func (f *fixture) firstRequested(pods ...[]*v1.Pod) *string {
	first := ptr.To("")
	f.client.PrependReactor("patch", "evictionrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		for _, pod := range slices.Concat(pods...) {
			if *first == "" && string(pod.UID) == action.(clienttesting.PatchAction).GetName() {
				*first = pod.Labels["app"]
			}
		}
		return false, nil, nil
	})
	return first
}

// workInAnyOrder updates caches and syncs keys in a random order until nothing is left to do. The
// initial order of the queue of maintenances is random, too. Like the real one, it is a FIFO queue.
func (f *fixture) workInAnyOrder(random *rand.Rand) {
	f.t.Helper()
	f.deliverAll()
	f.maintenanceQueue.shuffle(random)
	for range 60 {
		switch random.IntN(4) {
		case 0:
			f.deliverSome(random)
		case 1:
			if name, ok := f.maintenanceQueue.next(); ok {
				f.try(f.syncMaintenance(f.ctx, name), f.maintenanceQueue, name)
			}
		case 2:
			f.nodeQueue.Add("n")
			name, _ := f.nodeQueue.next()
			f.try(f.syncNode(f.ctx, name), f.nodeQueue, name)
		case 3:
			f.clock.Step(pace.StaleInterval)
			f.nodeQueue.release()
			f.maintenanceQueue.release()
		}
	}
	f.settle()
}

// A maintenance whose finalizer cannot be stored does not delay others, whatever the reason.
func TestFailedFinalizerDelaysNoDrain(t *testing.T) {
	refused := apierrors.NewForbidden(write.MaintenanceResource, "a", errors.New("denied by a policy"))
	for _, tc := range []struct {
		name  string
		err   error
		claim func(*coordinationv1alpha1.NodeMaintenance)
	}{
		{"refused", refused, func(*coordinationv1alpha1.NodeMaintenance) {}},
		{"too slow", apierrors.NewTimeoutError("too slow", 1), func(*coordinationv1alpha1.NodeMaintenance) {}},
		{"deleted, and cannot be completed either", refused, func(m *coordinationv1alpha1.NodeMaintenance) {
			m.Finalizers, m.DeletionTimestamp = []string{"example.com/f"}, ptr.To(metav1.NewTime(start))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			first := f.firstRequested(f.createPods(1, "n", 0, ofApp("web")), f.createPods(1, "n", 0, ofApp("db")))
			reject := true
			f.refuse("patch", "nodemaintenances", "", func(name string) error {
				if reject && name == "a" {
					return tc.err
				}
				return nil
			})
			f.createMaintenance("a", stageDrain, "a", plan(entryFor("web", v1.PodTypeDefault, 5))...)
			reject = false
			f.change("a", tc.claim)
			reject = true
			f.createMaintenance("b", stageDrain, "a", plan(entryFor("db", v1.PodTypeDefault, 5))...)
			f.restart()
			f.run(pace.StatusInterval)
			if *first != "db" {
				t.Errorf("the first eviction is requested for %q; node %+v", *first, f.node("n").Status.MaintenanceStatus)
			}
			// A new generation of it does not delay them either.
			reject = false
			f.change("a", func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.DrainPlan = plan(entry(v1.PodTypeDefault, 7)) })
			f.deliverAll()
			if err := f.observe(f.maintenance("a")); err != nil {
				t.Fatal(err)
			}
			if specs, _ := f.progress.Selecting(f.node("n")); len(specs) != 2 || specs[0].Name != "a" || specs[0].DelaysDrains() {
				t.Errorf("orders %+v", specs)
			}
		})
	}
}

// A maintenance whose finalizer is stored late joins the drain at its current targets.
func TestFinalizerThatIsStoredLate(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0, ofApp("web"))
	f.createPods(1, "n", 0, ofApp("db"))
	refused := f.refuse("patch", "nodemaintenances", "", func(name string) error {
		if name == "a" {
			return apierrors.NewForbidden(write.MaintenanceResource, "a", errors.New("denied by a policy"))
		}
		return nil
	})
	f.createMaintenance("a", stageDrain, "a", plan(entryFor("web", v1.PodTypeDefault, 5))...)
	f.createMaintenance("b", stageDrain, "a", plan(entryFor("db", v1.PodTypeDefault, 5))...)
	f.run(pace.StatusInterval)
	refused.err = allowed
	f.expectDrains("later", map[string]string{"n": "1/1 Draining (limited by b) Default(app=db)<=5"})
	f.expectEvent("NodeMaintenance a: DrainFastForwarded: Fast-forwarded on node n: another maintenance has already drained it up to Default(app=db)<=5, and drain targets do not step back")
	f.drainAll()
	f.expectDrained("a", "b")
}

// A drain that has begun does not wait for the finalizer of a new maintenance, neither on nodes
// that both select nor on others.
func TestBegunDrainDoesNotWait(t *testing.T) {
	f := newFixture(t)
	f.createNode("shared", map[string]string{"a": "", "b": ""})
	f.createNode("other", map[string]string{"b": ""})
	f.createMaintenance("b", stageDrain, "b", plan(entryFor("db", v1.PodTypeDefault, 5))...)
	f.settle()
	f.createMaintenance("a", stageDrain, "a", plan(entryFor("web", v1.PodTypeDefault, 5))...)
	f.deliverMaintenances()
	if err := f.observe(f.maintenance("a")); err != nil {
		t.Fatal(err)
	}
	f.maintenanceQueue.keys = nil
	f.createPods(1, "shared", 0, ofApp("db"))
	f.createPods(1, "other", 0, ofApp("db"))
	f.deliverPods()
	f.run(0)
	if got := len(f.cluster().requested); got != 2 {
		t.Errorf("%d evictions requested, want 2", got)
	}
}

// A maintenance is no longer Drained when it selects a node whose drain waits for a finalizer.
func TestNodeThatAwaitsAFinalizerIsNotDrained(t *testing.T) {
	f := newFixture(t)
	f.createNode("drained", map[string]string{"a": ""})
	f.createNode("joins", map[string]string{"b": ""})
	f.createPods(2, "joins", 0)
	f.createMaintenance("m", stageDrain, "a", plan(entry(v1.PodTypeDefault, 5))...)
	f.settle()
	f.expectDrained("m")
	// Its finalizer is not stored yet.
	f.createMaintenance("claim", stageDrain, "b", plan(entry(v1.PodTypeDefault, 5))...)
	f.deliverMaintenances()
	if err := f.observe(f.maintenance("claim")); err != nil {
		t.Fatal(err)
	}
	f.maintenanceQueue.keys = nil
	f.relabel("joins", map[string]string{"a": "", "b": ""})
	for range 3 {
		f.clock.Step(pace.StatusInterval)
		f.deliverAll()
		f.reconcile("joins")
		f.syncOnly("m")
	}
	m := f.maintenance("m")
	if status.IsDrained(&m.Status) || m.Status.SelectedNodes != 2 || m.Status.DrainStatus.DrainedNodes != 1 || m.Status.DrainStatus.PodsPendingEvictionRequest != 2 {
		t.Errorf("status %+v", m.Status)
	}
	if node := f.node("joins"); !node.Spec.Unschedulable || !progress.StoredTargets(node).IsEmpty() || f.requested() > 0 {
		t.Errorf("the drain has begun: %+v", node)
	}
	f.maintenanceQueue.Add("claim")
	f.drainAll()
	f.expectDrained("m", "claim")
}
