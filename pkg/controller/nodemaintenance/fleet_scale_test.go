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
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	testsimulation "k8s.io/kubernetes/test/utils/simulation"
	"k8s.io/utils/ptr"
)

const (
	// scaleAtOnce is how many nodes of a large fleet are drained at a time, and scaleTimeout how long
	// they may take to come back.
	scaleAtOnce  = 20
	scaleTimeout = 5 * time.Minute
	scaleZones   = 3
	// scalePods is how many pods each node has at the beginning, and scaleCapacity how many it can have.
	scalePods, scaleCapacity = 2, 4
	// rebootTime is how long nodes take to reboot.
	rebootTime = time.Second
)

// largeFleet is a simulation of a rollout over thousands of nodes, with kubelets and a scheduler. Only
// what was written is looked at: to list everything after each write would take hours.
type largeFleet struct {
	*fixture
	size int
	uid  types.UID
	// written are the keys of what was written and not delivered, by resource.
	written map[schema.GroupVersionResource]sets.Set[string]
	// drained are the nodes on which no pod was left, in this order. Those at the positions lostAt do not
	// come back.
	drained []string
	lostAt  []int
	lost    []string
	lostAll time.Time
	// booting has the time at which nodes are back.
	booting map[string]time.Time
	// admitted are the nodes that have been admitted, and cordoned the zones of those that are cordoned.
	admitted sets.Set[string]
	cordoned map[string]string
	// pods are the numbers of pods of the nodes, and planned are those that have the taint of nodes that
	// are drained later.
	pods    map[string]int
	planned sets.Set[string]
	moves   int
}

// TestSimulationOfManyNodes drains many nodes in three zones, 20 at a time and one zone at a time. Each
// reboots in a second and is given back by itself. Three do not come back: the third of them halts the
// rollout. It goes on when somebody says so, and ends when the three are repaired.
func TestSimulationOfManyNodes(t *testing.T) {
	size := 300
	if testsimulation.IsLong() {
		size = 5000
	}
	began := time.Now()
	f := newLargeFleet(t, size)
	f.runUntil("the rollout to halt", func() bool { return f.status() != nil && status.IsHalted(&f.maintenance("m").Status) })
	if since := f.clock.Since(f.lostAll); since < scaleTimeout-time.Second || since > scaleTimeout+10*time.Second {
		t.Errorf("halted %s after the third lost node was drained, not %s", since, scaleTimeout)
	}
	f.runFor(decision.RebootSettled + time.Minute) // The others come back.
	before := f.admitted.Len()
	f.runFor(time.Hour)
	if f.admitted.Len() != before {
		t.Errorf("%d nodes were admitted after the rollout had halted", f.admitted.Len()-before)
	}
	f.expectStatus("halted", before-len(f.lostAt), len(f.lostAt))

	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Spec.Rollout.MaxFailedNodes = ptr.To(int32(len(f.lostAt)))
	})
	zone := (size + scaleZones - 1) / scaleZones
	f.runUntil("all others of the zone", func() bool { return f.status().DoneNodes == int32(zone-len(f.lostAt)) })
	f.runFor(10 * time.Minute)
	f.expectStatus("resumed", zone-len(f.lostAt), len(f.lostAt)) // The lost ones keep the zone.

	for _, name := range f.lost {
		f.changeNamed(name, reboot, f.setReadyNow(true))
	}
	f.runUntil("all nodes", func() bool { return f.status().DoneNodes == int32(size) })
	f.runFor(time.Minute)
	f.expectStatus("repaired", size, 0)
	for _, node := range f.cluster().nodes {
		if got := describeNode(&node); got != done {
			t.Errorf("node %s is %q in the end", node.Name, got)
		}
	}
	if most := 1.2 * float64(size*scalePods); float64(f.moves) > most {
		t.Errorf("%d pods were moved %d times, more than %.0f", size*scalePods, f.moves, most)
	}
	if testsimulation.IsLong() {
		fmt.Printf("%s: %d nodes, %d pods moved %d times, in %s, simulated in %.0f s\n",
			t.Name(), size, size*scalePods, f.moves, f.clock.Since(start).Round(time.Second), time.Since(began).Seconds())
	}
}

func newLargeFleet(t *testing.T, size int) *largeFleet {
	f := &largeFleet{
		fixture: newFixture(t), size: size, written: map[schema.GroupVersionResource]sets.Set[string]{},
		lostAt:  []int{scaleAtOnce / 2, size / 10, size / 5},
		booting: map[string]time.Time{}, admitted: sets.New[string](), cordoned: map[string]string{}, pods: map[string]int{}, planned: sets.New[string](),
	}
	f.client.PrependReactor("*", "*", f.note)
	for i := range size {
		name := fmt.Sprintf("node-%d", i)
		f.createReadyNode(name, map[string]string{"a": "", v1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%scaleZones)})
		f.createPods(scalePods, name, 0)
		f.pods[name] = scalePods
	}
	f.createLimit("b", scaleAtOnce, func(b *coordinationv1alpha1.NodeMaintenanceBudget) {
		b.Spec.Topology = &coordinationv1alpha1.NodeMaintenanceTopology{Key: v1.LabelTopologyZone, MaxDomains: 1}
	})
	rollout := atOnce(scaleAtOnce)
	rollout.CompleteNodes, rollout.ReturnTimeoutSeconds, rollout.MaxFailedNodes = rebooted, ptr.To(int32(scaleTimeout/time.Second)), ptr.To(int32(len(f.lostAt)-1))
	f.createRollout("m", rollout)
	f.uid = f.maintenance("m").UID
	return f
}

// note keeps the key of an object that is written.
func (f *largeFleet) note(action clienttesting.Action) (bool, runtime.Object, error) {
	name := ""
	switch action := action.(type) {
	case clienttesting.PatchAction:
		name = action.GetName()
	case clienttesting.DeleteAction:
		name = action.GetName()
	case clienttesting.CreateAction: // Updates have the same methods.
		if object, err := meta.Accessor(action.GetObject()); err == nil {
			name = object.GetName()
		}
	}
	if gvr := action.GetResource(); name != "" {
		if f.written[gvr] == nil {
			f.written[gvr] = sets.New[string]()
		}
		f.written[gvr].Insert(action.GetNamespace() + "/" + name)
	}
	return false, nil, nil
}

// deliverWritten updates the caches, and lets kubelets and the scheduler see what was written.
func (f *largeFleet) deliverWritten() {
	f.t.Helper()
	informers := map[schema.GroupVersionResource]*handledInformer{
		v1.SchemeGroupVersion.WithResource("nodes"): f.nodeInformer, v1.SchemeGroupVersion.WithResource("pods"): f.podInformer,
		maintenances: f.maintenanceInformer, evictionRequests: f.requestInformer,
		coordinationv1alpha1.SchemeGroupVersion.WithResource("nodemaintenancebudgets"): f.limitInformer,
	}
	written := f.written
	f.written = map[schema.GroupVersionResource]sets.Set[string]{}
	for gvr, informer := range informers {
		for _, key := range sets.List(written[gvr]) {
			f.deliverOne(gvr, informer, key)
		}
		informer.GetIndexer().Bookmark(strconv.Itoa(f.tracker.version))
	}
}

func (f *largeFleet) deliverOne(gvr schema.GroupVersionResource, informer *handledInformer, key string) {
	f.t.Helper()
	indexer := informer.GetIndexer()
	namespace, name, _ := strings.Cut(key, "/")
	old, known, err := indexer.GetByKey(strings.TrimPrefix(key, "/"))
	if err != nil {
		f.t.Fatalf("reading a cache: %v", err)
	}
	object, err := f.tracker.Get(gvr, namespace, name)
	switch {
	case apierrors.IsNotFound(err) && known:
		if err := indexer.Delete(old); err != nil {
			f.t.Fatalf("updating a cache: %v", err)
		}
		informer.handler.OnDelete(old)
		return
	case apierrors.IsNotFound(err):
		return
	case err != nil:
		f.t.Fatalf("reading %s: %v", key, err)
	}
	if err := indexer.Update(object); err != nil {
		f.t.Fatalf("updating a cache: %v", err)
	}
	if known {
		informer.handler.OnUpdate(old, object)
	} else {
		informer.handler.OnAdd(object, false)
	}
	switch object := object.(type) {
	case *v1.Node:
		f.seeNode(object)
	case *coordinationv1alpha1.EvictionRequest:
		if requests.IsRequested(object) {
			f.move(object.Spec.Target.Pod.Name)
		}
	}
}

// seeNode does what happens on a node, and checks the limits.
func (f *largeFleet) seeNode(node *v1.Node) {
	f.t.Helper()
	f.planned.Delete(node.Name)
	for _, taint := range node.Spec.Taints {
		if taint.Key == coordinationv1alpha1.NodePlannedTaint {
			f.planned.Insert(node.Name)
		}
	}
	delete(f.cordoned, node.Name)
	if node.Spec.Unschedulable {
		f.cordoned[node.Name] = node.Labels[v1.LabelTopologyZone]
	}
	zones := sets.New[string]()
	for _, zone := range f.cordoned {
		zones.Insert(zone)
	}
	if len(f.cordoned) > scaleAtOnce || zones.Len() > 1 {
		f.t.Fatalf("%d nodes are cordoned, in %d zones", len(f.cordoned), zones.Len())
	}
	a := maintenance.AdmissionOf(node, f.uid)
	if a == nil {
		return
	}
	f.admitted.Insert(node.Name)
	if a.DrainedTime == nil || slices.Contains(f.drained, node.Name) {
		return
	}
	if f.pods[node.Name] > 0 {
		f.t.Errorf("node %s is drained with %d pods", node.Name, f.pods[node.Name])
	}
	if slices.Contains(f.lostAt, len(f.drained)) {
		f.lost, f.lostAll = append(f.lost, node.Name), f.clock.Now()
	} else {
		f.booting[node.Name] = f.clock.Now().Add(rebootTime)
	}
	f.drained = append(f.drained, node.Name)
	f.changeNamed(node.Name, f.setReadyNow(false))
}

// setReadyNow is setReady with the time at which it changed.
func (f *largeFleet) setReadyNow(ready bool) func(*v1.Node) {
	return func(node *v1.Node) {
		setReady(ready)(node)
		for i := range node.Status.Conditions {
			if node.Status.Conditions[i].Type == v1.NodeReady {
				node.Status.Conditions[i].LastTransitionTime = metav1.NewTime(f.clock.Now())
			}
		}
	}
}

// move ends a pod and creates one in its place, on the node with the fewest pods of those that are not
// to be drained, if there is room.
func (f *largeFleet) move(name string) {
	f.t.Helper()
	pod, err := f.client.CoreV1().Pods("default").Get(f.ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	if err != nil {
		f.t.Fatalf("reading a pod: %v", err)
	}
	f.deletePods(pod)
	f.pods[pod.Spec.NodeName]--
	f.moves++
	best, fewest := "", math.MaxInt
	for i := range f.size {
		node := fmt.Sprintf("node-%d", i)
		if _, cordoned := f.cordoned[node]; cordoned || f.pods[node] >= scaleCapacity {
			continue
		}
		count := f.pods[node]
		if f.planned.Has(node) {
			count += scaleCapacity
		}
		if count < fewest {
			best, fewest = node, count
		}
	}
	f.createPods(1, best, 0)
	f.pods[best]++
}

// runUntil runs the controller until something is true.
func (f *largeFleet) runUntil(what string, isTrue func() bool) {
	f.t.Helper()
	end := f.clock.Now().Add(24 * time.Hour)
	for f.clock.Now().Before(end) {
		if f.work(end); isTrue() {
			return
		}
	}
	f.t.Fatalf("waiting for %s: status %+v, queues %v", what, f.status(), f.queues())
}

func (f *largeFleet) runFor(duration time.Duration) {
	f.t.Helper()
	for end := f.clock.Now().Add(duration); f.clock.Now().Before(end); {
		f.work(end)
	}
}

// work handles all keys that are due, and goes on to the time at which the next one is, or at which a
// node has rebooted, but not beyond end.
func (f *largeFleet) work(end time.Time) {
	f.t.Helper()
	for worked := true; worked || len(f.written) > 0; {
		f.deliverWritten()
		worked = false
		for range scaleAtOnce {
			worked = f.step() || worked
		}
	}
	next := end
	if due, found := f.nextDue(); found && due.Before(next) {
		next = due
	}
	for _, back := range f.booting {
		if back.Before(next) {
			next = back
		}
	}
	f.advanceTo(next)
	for _, name := range f.drained {
		if back, booting := f.booting[name]; booting && !back.After(next) {
			delete(f.booting, name)
			f.changeNamed(name, reboot, f.setReadyNow(true))
		}
	}
}

func (f *largeFleet) status() *coordinationv1alpha1.NodeMaintenanceRolloutStatus {
	return f.maintenance("m").Status.RolloutStatus
}

func (f *largeFleet) expectStatus(when string, done, failed int) {
	f.t.Helper()
	if status := f.status(); status.DoneNodes != int32(done) || status.FailedNodes != int32(failed) || len(status.Failed) != failed {
		f.t.Errorf("%s: %d nodes are done and %d have failed, not %d and %d: %+v", when, status.DoneNodes, status.FailedNodes, done, failed, status)
	}
}
