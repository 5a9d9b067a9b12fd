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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
)

// checkIndexes compares the indexes with a scan of all maintenances.
func (f *fixture) checkIndexes() {
	f.t.Helper()
	l := f.progress
	byNode, bySelector := index[string]{}, index[maintenance.NodeKey]{}
	for name, a := range l.maintenances {
		for node := range a.all() {
			byNode.set(node, name, true)
		}
		for key := range a.selector.Keys() {
			bySelector.set(key, name, true)
		}
	}
	if diff := cmp.Diff(byNode, l.byNode); diff != "" {
		f.t.Errorf("index by node (-scan, +index):\n%s", diff)
	}
	if diff := cmp.Diff(bySelector, l.bySelector, cmp.AllowUnexported(maintenance.NodeKey{})); diff != "" {
		f.t.Errorf("index by selector (-scan, +index):\n%s", diff)
	}
	for _, node := range f.listNodes() {
		var want, got []string
		for name, a := range l.maintenances {
			if a.selector.Matches(node) {
				want = append(want, name)
			}
		}
		orders, _ := l.selecting(node)
		for _, o := range orders {
			got = append(got, o.name)
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			f.t.Errorf("maintenances that select node %s (-scan, +index):\n%s", node.Name, diff)
		}
	}
}

// orderOf returns the order of a maintenance in the given stage. Its plan starts with entries for
// the priorities 0 and 1.
func orderOf(t *testing.T, uid types.UID, generation int64, stage coordinationv1alpha1.NodeMaintenanceStage, finalizers ...string) order {
	t.Helper()
	o, err := newOrder(&coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "m", UID: uid, Generation: generation, Finalizers: finalizers},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{
			Stage: stage, DrainPlan: plan(entry(v1.PodTypeDefault, 0), entry(v1.PodTypeDefault, 1)),
			NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: "none", Operator: v1.NodeSelectorOpDoesNotExist}},
			}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

const ours = coordinationv1alpha1.NodeMaintenanceFinalizer

func nodesNamed(names ...string) func() []*v1.Node {
	return func() []*v1.Node {
		var nodes []*v1.Node
		for _, name := range names {
			nodes = append(nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return nodes
	}
}

func podsOf(priorities ...int32) []podFacts {
	var pods []podFacts
	for _, priority := range priorities {
		pods = append(pods, podFacts{Pod: &v1.Pod{Spec: v1.PodSpec{Priority: &priority}}, verdict: verdict{wanted: true}})
	}
	return pods
}

func expectNames(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func (l *progressStore) position(t *testing.T) int {
	t.Helper()
	sums, _, known := l.summarize("m")
	if !known {
		t.Error("the maintenance is not known")
	}
	return sums.position
}

// The progress of a maintenance survives its updates, but not its replacement.
func TestObserveAgain(t *testing.T) {
	l := newProgressStore(newLimits())
	first := orderOf(t, "u", 1, stageDrain, ours)
	expectNames(t, "the first", l.observe(first, 0, nodesNamed("n1")), "n1")
	begun := first
	begun.begun = true
	expectNames(t, "the same", l.observe(begun, 0, nodesNamed("n1")))
	if orders, _ := l.selecting(nodesNamed("n1")()[0]); len(orders) != 1 || !orders[0].begun {
		t.Errorf("orders %+v", orders)
	}
	rolls := begun
	rolls.rolls = true
	expectNames(t, "nodes that begin at different times", l.observe(rolls, 0, nodesNamed("n1")), "n1")
	expectNames(t, "nodes that still do", l.observe(rolls, 0, nodesNamed("n1")))
	if orders, _ := l.selecting(nodesNamed("n1")()[0]); len(orders) != 1 || !orders[0].rolls {
		t.Errorf("orders %+v", orders)
	}
	if !l.measureOnce("m", v1.PodTypeDefault) || l.measureOnce("m", v1.PodTypeDefault) || l.measureOnce("other", v1.PodTypeDefault) {
		t.Error("a duration is not measured exactly once")
	}
	l.countPods("n1", []order{begun}, podsOf(1), nil, nil)
	if l.position(t) != 1 {
		t.Errorf("position %d", l.position(t))
	}
	expectNames(t, "another generation", l.observe(orderOf(t, "u", 2, stageDrain, ours), 0, nodesNamed("n2")), "n1", "n2")
	if l.position(t) != 1 || l.measureOnce("m", v1.PodTypeDefault) {
		t.Errorf("after an edit: position %d", l.position(t))
	}
	l.observe(orderOf(t, "u", 3, stageDrain, ours), 2, nodesNamed())
	if l.position(t) != 2 {
		t.Errorf("position %d, want 2 from another leader", l.position(t))
	}
	// The new maintenance does not wait for nodes that the old one has not released.
	expectNames(t, "a replacement of the same generation", l.observe(orderOf(t, "other", 3, stageDrain, ours), 0, nodesNamed("n1")), "n1", "n2")
	if unreleased := l.maintenances["m"].unreleased; len(unreleased) > 0 {
		t.Errorf("a replacement waits for %v", unreleased)
	}
	if l.position(t) != 0 || !l.measureOnce("m", v1.PodTypeDefault) {
		t.Errorf("a replacement begins at position %d", l.position(t))
	}
}

// What delays the release of a node that was deselected stays known when the order changes again: nothing
// has to be found out a second time before it can be reported.
func TestReleaseBlockersOutliveAChange(t *testing.T) {
	for _, stage := range []coordinationv1alpha1.NodeMaintenanceStage{stageDrain, stageComplete} {
		l, o := newProgressStore(newLimits()), orderOf(t, "u", 1, stageDrain, ours)
		l.observe(o, 0, nodesNamed("n1", "n2"))
		for _, node := range []string{"n1", "n2"} {
			l.countPods(node, []order{o}, podsOf(0), nil, nil)
		}
		expectNames(t, "deselected", first(l.deselect("n2", nil, l.revision)), "m")
		blockers := []maintenance.HoldGroup{{Cause: maintenance.HoldCordonFailed, Nodes: 1, Since: &metav1.Time{Time: start}}}
		expectNames(t, "waits for its release", l.delayed("n2", blockers, l.revision), "m")
		l.observe(orderOf(t, "u", 2, stage, ours), 0, nodesNamed("n1"))
		if sums, _, _ := l.summarize("m"); len(sums.releaseBlockers) != 1 || sums.releaseBlockers[0].Cause != maintenance.HoldCordonFailed {
			t.Errorf("%s: blockers after the change: %+v", stage, sums.releaseBlockers)
		}
	}
}

func first[A, B any](a A, _ B) A { return a }

// No decision is made before the pods of all nodes are counted. Then all nodes are reconciled.
func TestAllNodesAreCountedFirst(t *testing.T) {
	l, o := newProgressStore(newLimits()), orderOf(t, "u", 1, stageDrain, ours)
	l.observe(o, 0, nodesNamed("n1", "n2"))
	for _, node := range []string{"n1", "came later", "n1"} {
		if got := l.countPods(node, []order{o}, podsOf(0), nil, nil); got.ready {
			t.Errorf("ready at %s: %+v", node, got)
		}
	}
	got := l.countPods("n2", []order{o}, podsOf(0), nil, nil)
	if !got.ready {
		t.Error("not ready")
	}
	expectNames(t, "to reconcile", got.others, "came later", "n1", "n2")
	if sums, _, _ := l.summarize("m"); sums.ready {
		t.Error("the summary is ready before the decisions")
	}
	for _, node := range []string{"n1", "n2", "came later"} {
		l.decide(node, "m", nodeDecision{})
	}
	if sums, _, _ := l.summarize("m"); !sums.ready || sums.left != 3 {
		t.Errorf("sums %+v", sums)
	}
	changed := o
	changed.generation++
	if got := l.countPods("n1", []order{changed}, podsOf(0), nil, nil); got.ready || len(got.participants) > 0 {
		t.Errorf("with an unknown order: %+v", got)
	}
}

// A maintenance advances when a node is deselected that was the last one not counted, or the last
// one with pods of the first entry.
func TestNodesLeave(t *testing.T) {
	l, o := newProgressStore(newLimits()), orderOf(t, "u", 1, stageDrain, ours)
	l.observe(o, 0, nodesNamed("n1", "n2", "n3"))
	l.countPods("n1", []order{o}, podsOf(1), nil, nil)
	l.countPods("n2", []order{o}, podsOf(0), nil, nil)
	left, others := l.deselect("n3", nil, l.revision)
	expectNames(t, "deselected", left, "m")
	expectNames(t, "to reconcile, because all are counted", others, "n1", "n2")
	if l.position(t) != 0 {
		t.Errorf("position %d", l.position(t))
	}
	_, others = l.deselect("n2", nil, l.revision)
	expectNames(t, "to reconcile, because the position has changed", others, "n1")
	if l.position(t) != 1 {
		t.Errorf("position %d", l.position(t))
	}
	expectNames(t, "waiting on", l.waitingOn([]string{"m"}), "m")
	l.countPods("n1", []order{o}, nil, nil, nil)
	l.summarize("m")
	expectNames(t, "waiting on, with no pods left", l.waitingOn([]string{"m"}))
}

// In the stage Complete, blockers are published only after every node has been reconciled since the
// stage was observed, including nodes without a blocker.
func TestDelaysAreReported(t *testing.T) {
	l, drain, complete := newProgressStore(newLimits()), orderOf(t, "u", 1, stageDrain, ours), orderOf(t, "u", 2, stageComplete, ours)
	l.observe(drain, 0, nodesNamed("n1", "n2"))
	before := l.revision
	l.observe(complete, 0, nodesNamed("n1", "n2"))
	for i, report := range []func(){
		func() { l.delayed("n1", nil, l.revision) },
		func() { l.delayed("n2", nil, before) },
		func() { l.delayed("n2", []maintenance.HoldGroup{{Cause: maintenance.HoldCordonFailed}}, l.revision) },
	} {
		report()
		if sums, _, _ := l.summarize("m"); sums.ready != (i == 2) {
			t.Errorf("after report %d: ready is %t", i, sums.ready)
		}
	}
}

// A node that was counted for an outdated order is reconciled again.
func TestCountForAnOlderMaintenance(t *testing.T) {
	l, old := newProgressStore(newLimits()), orderOf(t, "u", 1, stageDrain, ours)
	l.observe(orderOf(t, "u", 2, stageDrain, ours), 0, nodesNamed("n1", "n2"))
	counted := l.countPods("n1", []order{old}, podsOf(0), nil, nil)
	if expectNames(t, "to reconcile", counted.others, "n1"); counted.ready {
		t.Error("ready")
	}
}

// All nodes of a maintenance are reconciled when its summary waits for other maintenances than the
// previous one.
func TestWaitingOnIsPublished(t *testing.T) {
	l, o := newProgressStore(newLimits()), orderOf(t, "u", 1, stageDrain, ours)
	l.observe(o, 0, nodesNamed("n1", "n2"))
	l.countPods("n1", []order{o}, podsOf(0), nil, nil)
	l.countPods("n2", []order{o}, podsOf(0), nil, nil)
	for _, tc := range []struct {
		name, node string
		limitedBy  []string
		others     []string
		waitingOn  []string
	}{
		{"m drains both nodes", "n1", nil, nil, []string{"m"}},
		{"x besides m", "n1", []string{"x"}, []string{"n1", "n2"}, []string{"m", "x"}},
		{"the same", "n1", []string{"x"}, nil, []string{"m", "x"}},
		{"x alone", "n2", []string{"x"}, []string{"n1", "n2"}, []string{"x"}},
	} {
		l.decide(tc.node, "m", nodeDecision{limitedBy: tc.limitedBy})
		_, others, _ := l.summarize("m")
		expectNames(t, tc.name+": to reconcile", others, tc.others...)
		expectNames(t, tc.name+": waiting on", l.waitingOn([]string{"m"}), tc.waitingOn...)
	}
}

// release returns the maintenance only when its last node is released.
func TestReleaseOfTheLastNode(t *testing.T) {
	l := newProgressStore(newLimits())
	l.observe(orderOf(t, "u", 1, stageComplete, ours), 0, nodesNamed("n1", "n2"))
	expectNames(t, "the first", l.release("n1", l.revision))
	expectNames(t, "the same again", l.release("n1", l.revision))
	expectNames(t, "the last", l.release("n2", l.revision), "m")
	expectNames(t, "afterwards", l.release("n2", l.revision))
}

// Events of pods are ignored on nodes that are not drained.
func TestIsDraining(t *testing.T) {
	l := newProgressStore(newLimits())
	for generation, stage := range []coordinationv1alpha1.NodeMaintenanceStage{stageIdle, stageCordon, stageDrain, stageComplete} {
		l.observe(orderOf(t, "u", int64(generation), stage, ours), 0, nodesNamed("n"))
		if got := l.isDraining("n"); got != (stage == stageDrain) || l.isDraining("other") {
			t.Errorf("%s: %t", stage, got)
		}
	}
}

// A maintenance whose finalizer could not be stored delays no drain until it has the finalizer.
func TestFailedFinalizer(t *testing.T) {
	l := newProgressStore(newLimits())
	awaited := func() bool {
		orders, _ := l.selecting(nodesNamed("n")()[0])
		return len(orders) == 1 && orders[0].delaysDrains()
	}
	expectNames(t, "unknown", l.finalizerFailed("m"))
	l.observe(orderOf(t, "u", 1, stageDrain), 0, nodesNamed("n"))
	if !awaited() {
		t.Error("a maintenance that awaits its finalizer delays no drain")
	}
	expectNames(t, "failed", l.finalizerFailed("m"), "n")
	expectNames(t, "failed again", l.finalizerFailed("m"))
	l.observe(orderOf(t, "u", 2, stageDrain), 0, nodesNamed("n"))
	if awaited() {
		t.Error("delays drains again")
	}
	l.observe(orderOf(t, "u", 2, stageDrain, ours), 0, nodesNamed("n"))
	expectNames(t, "with its finalizer", l.finalizerFailed("m"))
	l.observe(orderOf(t, "u", 3, stageDrain), 0, nodesNamed("n"))
	if !awaited() {
		t.Error("delays no drain after it has lost its finalizer")
	}
	l.observe(orderOf(t, "u", 4, stageCordon), 0, nodesNamed("n"))
	if awaited() {
		t.Error("a maintenance that does not drain delays drains")
	}
}

// benchmarkedNodes is the maximum number of nodes that Kubernetes supports in a cluster.
const benchmarkedNodes = 5000

// filledStore returns a store with maintenances in the stage Drain. The nodes are divided between
// them, selected by name or hostname label, and their pods are counted.
func filledStore(b *testing.B, maintenances int) (*progressStore, []*v1.Node) {
	b.Helper()
	l := newProgressStore(newLimits())
	nodes := make([]*v1.Node, benchmarkedNodes)
	terms := make([][]v1.NodeSelectorTerm, maintenances)
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		nodes[i] = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			v1.LabelHostname: name, v1.LabelOSStable: "linux", v1.LabelTopologyZone: "z", v1.LabelTopologyRegion: "r",
		}}}
		terms[i%maintenances] = append(terms[i%maintenances], termFor(i, name))
	}
	for i := range maintenances {
		o, err := newOrder(&coordinationv1alpha1.NodeMaintenance{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("m-%d", i), UID: types.UID(fmt.Sprintf("u-%d", i)), Finalizers: []string{coordinationv1alpha1.NodeMaintenanceFinalizer},
			},
			Spec: coordinationv1alpha1.NodeMaintenanceSpec{
				Stage: stageDrain, DrainPlan: maintenance.StandardPlan(), NodeSelector: &v1.NodeSelector{NodeSelectorTerms: terms[i]},
			},
		})
		if err != nil {
			b.Fatal(err)
		}
		// The benchmark does not measure the listing of all nodes for each maintenance.
		l.observe(o, 0, func() []*v1.Node {
			if maintenances == 1 {
				return nodes
			}
			return nodes[i : i+1]
		})
	}
	for _, node := range nodes {
		orders, _ := l.selecting(node)
		l.countPods(node.Name, orders, nil, nil, nil)
	}
	return l, nodes
}

// termFor selects a node by its name (even i, like kubectl) or by its hostname label (like users).
func termFor(i int, name string) v1.NodeSelectorTerm {
	if i%2 == 0 {
		return v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{name}}}}
	}
	return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{name}}}}
}

// BenchmarkProgressStore measures an event of a pod and the sync of a node after it. Their costs
// must not depend on the number of nodes or maintenances.
func BenchmarkProgressStore(b *testing.B) {
	for _, maintenances := range []int{1, benchmarkedNodes} {
		l, nodes := filledStore(b, maintenances)
		name := func(what string) string {
			return fmt.Sprintf("%s/%d maintenances of %d nodes", what, maintenances, benchmarkedNodes/maintenances)
		}
		b.Run(name("event of a pod"), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if !l.isDraining(nodes[i%benchmarkedNodes].Name) {
					b.Fatal("not draining")
				}
			}
		})
		b.Run(name("event of a node without maintenance"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if l.isDraining("other") {
					b.Fatal("draining")
				}
			}
		})
		b.Run(name("sync of a node"), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				node := nodes[i%benchmarkedNodes]
				orders, revision := l.selecting(node)
				if len(orders) != 1 {
					b.Fatalf("selected by %d", len(orders))
				}
				l.deselect(node.Name, orders, revision)
				if counts := l.countPods(node.Name, orders, nil, nil, nil); !counts.ready || len(counts.others) > 0 {
					b.Fatalf("counted %+v", counts)
				}
				l.decide(node.Name, orders[0].name, nodeDecision{cordoned: true})
				l.waitingOn([]string{orders[0].name})
				l.isCordoned(node.Name)
				l.release(node.Name, revision)
			}
		})
	}
}

// That a maintenance was deleted is known for as long as the cache may be behind, and no longer, also if the clock is set
// back.
func TestDeletionsAreForgotten(t *testing.T) {
	limits := newLimits()
	s := newProgressStore(limits)
	deleted := func(at time.Duration, uid types.UID, want ...types.UID) {
		t.Helper()
		limits.now = func() time.Time { return start.Add(at) }
		s.noteGone(uid)
		for _, known := range want {
			if !s.isGone(known) {
				t.Errorf("%v: the deletion of %s is not known", at, known)
			}
		}
		if len(s.gone) != len(want) {
			t.Errorf("%v: known are %v, want %v", at, s.gone, want)
		}
	}
	deleted(0, "a", "a")
	deleted(time.Minute, "b", "a", "b")
	deleted(unknownAdmission-time.Second, "c", "a", "b", "c")
	deleted(unknownAdmission, "d", "b", "c", "d")
	deleted(-time.Hour, "e", "e")
}
